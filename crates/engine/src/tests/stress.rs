//! Many threads against one table and a model each: keys that go from A to B and back, rows that
//! are deleted and made again under their key, NULLs in a unique key, long columns, savepoints,
//! refused statements, lost connections; purge and rollback beside them, and readers that compare
//! all indexes within one snapshot.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::*;

const WRITERS: u64 = 3;
const TRANSACTIONS: usize = 60;
/// Ids of one writer; those of different writers alternate, so they share pages and neighbours.
const IDS: i64 = 12;

type Model = BTreeMap<i64, Row>;

struct Writer<'a> {
    number: u64,
    random: Random,
    db: &'a Db,
    table: Arc<Table>,
    session: EngineSession,
    committed: Model,
    now: Model,
}

impl Writer<'_> {
    fn id(&mut self) -> i64 {
        self.random.below(IDS as u64) as i64 * WRITERS as i64 + self.number as i64
    }

    fn row(&mut self, id: i64) -> Row {
        let r = &mut self.random;
        let k = (r.below(5) > 0).then(|| r.below(3) as i64);
        let s = (r.below(3) > 0).then(|| format!("w{}-{}", self.number, r.below(8)));
        let b = (r.below(8) == 0).then(|| format!("{:09000}", r.below(1 << 40)));
        (id, k, s, b)
    }

    /// The outcome that must follow if `row` is written, in place of row `instead` if there is one.
    fn expected(&self, row: &Row, instead: Option<i64>) -> WriteOutcome {
        let others = self.now.iter().filter(|(id, _)| Some(**id) != instead);
        let mut same_s = false;
        for (id, other) in others {
            if *id == row.0 {
                return WriteOutcome::Duplicate { index: 0 };
            }
            same_s |= row.2.is_some() && other.2 == row.2;
        }
        if same_s {
            let index = self.table.def().index("s").unwrap();
            return WriteOutcome::Duplicate { index };
        }
        WriteOutcome::Done
    }

    fn step(&mut self) {
        let id = self.id();
        let what = self.random.below(10);
        let there = self.now.contains_key(&id);
        if what < 2 && there {
            delete(&mut self.session, &self.table, id);
            self.now.remove(&id);
            return;
        }
        // Sometimes under another key.
        let new_id = if there && what == 9 { self.id() } else { id };
        let row = self.row(new_id);
        let instead = there.then_some(id);
        let expected = self.expected(&row, instead);
        let outcome = match instead {
            Some(id) => update(&mut self.session, &self.table, id, &row),
            None => insert(&mut self.session, &self.table, &row),
        };
        assert_eq!(outcome, expected, "writer {}: {row:?}", self.number);
        if outcome == WriteOutcome::Done {
            instead.map(|id| self.now.remove(&id));
            self.now.insert(new_id, row);
        }
    }

    fn transaction(&mut self) {
        self.session.begin(TrxOptions {
            isolation: Isolation::RepeatableRead,
            read_only: false,
            consistent_snapshot: false,
        });
        let mut saved: Option<Model> = None;
        for _ in 0..1 + self.random.below(9) {
            match (self.random.below(6), &saved) {
                (0, _) => {
                    self.session.savepoint("here");
                    saved = Some(self.now.clone());
                }
                (1, Some(model)) => {
                    self.now.clone_from(model);
                    block(|| self.session.rollback_to("here")).unwrap();
                }
                _ => self.step(),
            }
        }
        match self.random.below(10) {
            0 => {
                // The connection is lost: the background undoes it, and its locks stay until then.
                self.session = self.db.engine.session(self.number + 1).unwrap();
                self.now.clone_from(&self.committed);
            }
            1..4 => {
                block(|| self.session.rollback()).unwrap();
                self.now.clone_from(&self.committed);
            }
            _ => {
                commit(&mut self.session);
                self.committed.clone_from(&self.now);
            }
        }
    }
}

/// All indexes show the same rows, and the same ones again, as long as the snapshot is open.
fn read_all_ways(db: &Db, table: &Arc<Table>) {
    let mut s = db.engine.session(99).unwrap();
    s.begin(TrxOptions {
        isolation: Isolation::RepeatableRead,
        read_only: true,
        consistent_snapshot: true,
    });
    let first = all(&mut s, table);
    for _ in 0..3 {
        for index in 0..table.indexes().len() {
            s.statement_begin(Isolation::RepeatableRead, false);
            let spec = ReadSpec {
                index,
                columns: vec![0, 1, 2, 3],
                ..ReadSpec::default()
            };
            let mut rows = read(
                &mut s,
                Read::range(table.clone(), spec, &KeyRange::all(), false),
            );
            block(|| s.statement_end(true)).unwrap();
            rows.sort();
            assert_eq!(rows, first, "by index {index}");
        }
        std::thread::yield_now();
    }
    commit(&mut s);
}

fn run(seed: u64) {
    let db = Db::new();
    let table = db.table();
    let over = AtomicBool::new(false);
    let models: Vec<Model> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|number| {
                let mut writer = Writer {
                    number,
                    random: Random(seed * 1_000_003 + number * 7_919 + 88_172_645_463_325_252),
                    db: &db,
                    table: table.clone(),
                    session: db.engine.session(number + 1).unwrap(),
                    committed: Model::new(),
                    now: Model::new(),
                };
                scope.spawn(move || {
                    (0..TRANSACTIONS).for_each(|_| writer.transaction());
                    writer.committed
                })
            })
            .collect();
        scope.spawn(|| {
            while !over.load(Relaxed) {
                db.engine.step_background().unwrap();
            }
        });
        scope.spawn(|| {
            while !over.load(Relaxed) {
                read_all_ways(&db, &table);
            }
        });
        let models = writers.into_iter().map(|w| w.join());
        let models: Vec<_> = models.collect();
        over.store(true, Relaxed);
        models.into_iter().map(|m| m.unwrap()).collect()
    });
    let expected: Vec<Row> = models
        .into_iter()
        .flatten()
        .collect::<Model>()
        .into_values()
        .collect();
    let mut s = db.session();
    assert_eq!(all(&mut s, &table), expected, "seed {seed}");
    commit(&mut s);
    assert_sound(&db.engine, &table);
    drop((s, table));
    // Purges everything, now and again after a crash. The visible rows stay the same.
    for _ in 0..2 {
        assert_purged(&db.engine, &db.find("t"));
        assert_sound(&db.engine, &db.find("t"));
    }
    let db = db.crash();
    let table = db.find("t");
    assert_purged(&db.engine, &table);
    let mut s = db.session();
    assert_eq!(all(&mut s, &table), expected, "seed {seed}, after a crash");
    commit(&mut s);
    assert_sound(&db.engine, &table);
}

#[test]
fn concurrent_writers_and_readers_agree_with_the_models() {
    let seeds = std::env::var("NFOLD_STRESS_SEEDS").map_or(3, |n| n.parse().unwrap());
    (1..=seeds).for_each(run);
}
