//! Foreign keys as the executor checks them: a row of a child counts as one of the parent whose `k`
//! it has, and no order of transactions may leave a child without a parent.

use super::*;

/// Parents, and values of `k`.
const PARENTS: i64 = 3;
const WORKERS: u64 = 4;
const TRANSACTIONS: usize = 200;

fn tables(db: &Db) -> [Arc<Table>; 2] {
    ["p", "c"].map(|name| {
        let def = db.engine.create_table(spec(name, true)).unwrap();
        db.engine.table(def.id).unwrap()
    })
}

/// Index `k` of a table.
const K: usize = 2;

fn probe_of(table: &Arc<Table>, k: i64) -> KeyProbe {
    let mut probe = KeyProbe::new(table.clone(), K);
    let layout = table.key_layout(K);
    layout
        .encode_values([ValueRef::Int(k)], probe.key())
        .unwrap();
    probe
}

fn begin(s: &mut EngineSession) {
    s.begin(TrxOptions {
        isolation: Isolation::ReadCommitted,
        read_only: false,
        consistent_snapshot: false,
    });
}

fn finds(s: &mut EngineSession, probe: &mut KeyProbe) -> Result<bool, EngineError> {
    block(|| s.probe(probe))
}

fn parent(k: i64) -> Row {
    (k, Some(k), None, None)
}

#[test]
fn probe_decides_by_ended_transactions() {
    let db = Db::new();
    let [p, _] = tables(&db);
    assert_eq!(p.def().index("k"), Some(K), "the index that is probed");
    let mut s = db.session();
    begin(&mut s);
    assert_eq!(finds(&mut s, &mut probe_of(&p, 1)), Ok(false), "no row");
    insert(&mut s, &p, &parent(1));
    assert_eq!(finds(&mut s, &mut probe_of(&p, 1)), Ok(true), "its own");
    delete(&mut s, &p, 1);
    assert_eq!(finds(&mut s, &mut probe_of(&p, 1)), Ok(false), "own delete");
    block(|| s.rollback()).unwrap();
    begin(&mut s);
    insert(&mut s, &p, &parent(2));
    commit(&mut s);
    begin(&mut s);
    assert_eq!(finds(&mut s, &mut probe_of(&p, 1)), Ok(false), "undone");
    assert_eq!(finds(&mut s, &mut probe_of(&p, 2)), Ok(true), "committed");
    commit(&mut s);
}

/// Whether a probe stops at a wait; the wait ends when the transaction of `other` does.
fn waits(s: &mut EngineSession, probe: &mut KeyProbe) -> bool {
    matches!(s.probe(probe), Err(Stop::Wait(_)))
}

#[test]
fn probe_waits_for_active_transactions() {
    let db = Db::new();
    let [p, _] = tables(&db);
    let (mut a, mut b) = (db.session(), db.engine.session(2).unwrap());
    begin(&mut a);
    begin(&mut b);
    insert(&mut a, &p, &parent(1));
    assert!(waits(&mut b, &mut probe_of(&p, 1)), "an active insert");
    assert_eq!(
        finds(&mut b, &mut probe_of(&p, 2)),
        Ok(false),
        "another key"
    );
    commit(&mut a);
    assert_eq!(finds(&mut b, &mut probe_of(&p, 1)), Ok(true));
    begin(&mut a);
    delete(&mut a, &p, 1);
    assert!(waits(&mut b, &mut probe_of(&p, 1)), "an active delete");
    block(|| a.rollback()).unwrap();
    assert_eq!(finds(&mut b, &mut probe_of(&p, 1)), Ok(true), "undone");
    begin(&mut a);
    delete(&mut a, &p, 1);
    commit(&mut a);
    assert_eq!(finds(&mut b, &mut probe_of(&p, 1)), Ok(false));
    commit(&mut b);
}

#[test]
fn probe_keeps_no_lock() {
    let db = Db::new();
    let [p, _] = tables(&db);
    let (mut a, mut b) = (db.session(), db.engine.session(2).unwrap());
    begin(&mut a);
    insert(&mut a, &p, &parent(1));
    commit(&mut a);
    begin(&mut b);
    assert_eq!(finds(&mut b, &mut probe_of(&p, 1)), Ok(true));
    begin(&mut a);
    // Would wait for ever if the probe had locked the row.
    delete(&mut a, &p, 1);
    commit(&mut a);
    commit(&mut b);
}

/// One connection that inserts children and deletes parents, as the executor would.
struct Worker {
    number: i64,
    next_id: i64,
    random: Random,
    session: EngineSession,
    tables: [Arc<Table>; 2],
}

impl Worker {
    /// Changes a row, then probes; `wanted`: the answer that lets the transaction commit.
    fn transaction(&mut self) {
        let [p, c] = self.tables.clone();
        let k = self.random.below(PARENTS as u64) as i64;
        begin(&mut self.session);
        let committed = match self.random.below(3) {
            0 => self.change_parent(&p, &c, k),
            1 => self.delete_child(&c, k),
            _ => self.insert_child(&p, &c, k),
        };
        match committed {
            Ok(true) => commit(&mut self.session),
            // After a deadlock the transaction is rolled back already.
            Ok(false) | Err(EngineError::Deadlock) => {
                block(|| self.session.rollback()).unwrap();
            }
            Err(other) => panic!("{other}"),
        }
    }

    fn insert_child(
        &mut self,
        p: &Arc<Table>,
        c: &Arc<Table>,
        k: i64,
    ) -> Result<bool, EngineError> {
        self.next_id += WORKERS as i64;
        let row = (self.next_id + self.number, Some(k), None, None);
        self.changed(c, None, Some(&row))?;
        finds(&mut self.session, &mut probe_of(p, k))
    }

    fn delete_child(&mut self, c: &Arc<Table>, k: i64) -> Result<bool, EngineError> {
        let rows = self.locked(c, K, k)?;
        for row in &rows {
            self.changed(c, Some(row), None)?;
        }
        Ok(true)
    }

    /// Deletes the parent, or inserts it if it is not there.
    fn change_parent(
        &mut self,
        p: &Arc<Table>,
        c: &Arc<Table>,
        k: i64,
    ) -> Result<bool, EngineError> {
        let Some(row) = self.locked(p, 0, k)?.pop() else {
            return self.changed(p, None, Some(&parent(k)));
        };
        self.changed(p, Some(&row), None)?;
        Ok(!finds(&mut self.session, &mut probe_of(c, k))?)
    }

    fn locked(
        &mut self,
        table: &Arc<Table>,
        index: usize,
        k: i64,
    ) -> Result<Vec<Row>, EngineError> {
        self.session
            .statement_begin(Isolation::ReadCommitted, false);
        let mut key = Vec::new();
        let layout = table.key_layout(index);
        layout.encode_values([ValueRef::Int(k)], &mut key).unwrap();
        let spec = ReadSpec {
            index,
            lock: RowLock::Exclusive,
            columns: vec![0, 1, 2, 3],
            ..ReadSpec::default()
        };
        let mut read = Read::range(table.clone(), spec, &KeyRange::prefix(&key), false);
        let mut batch = RowBatch::new();
        while block(|| read.next(&mut self.session, &mut batch))? {}
        block(|| self.session.statement_end(true))?;
        Ok(batch.iter().map(|image| decode(table, image)).collect())
    }

    /// Inserts or deletes a row; false: its key is there already.
    fn changed(
        &mut self,
        table: &Arc<Table>,
        old: Option<&Row>,
        new: Option<&Row>,
    ) -> Result<bool, EngineError> {
        let s = &mut self.session;
        s.statement_begin(Isolation::ReadCommitted, false);
        let mut image = Vec::new();
        let mut done = true;
        if let Some(row) = old {
            encode(table, row, &mut image);
            let mut op = DeleteOp::new(table.clone());
            op.row(&image, None);
            block(|| s.delete(&mut op))?;
        }
        if let Some(row) = new {
            let mut op = InsertOp::new(table.clone());
            encode(table, row, op.row());
            done = block(|| s.insert(&mut op))? == WriteOutcome::Done;
        }
        block(|| s.statement_end(true))?;
        Ok(done)
    }
}

#[test]
fn concurrent_probes_leave_no_orphan() {
    let db = Db::threaded();
    let tables = tables(&db);
    std::thread::scope(|scope| {
        for number in 0..WORKERS {
            let (session, tables) = (db.engine.session(number + 10).unwrap(), tables.clone());
            scope.spawn(move || {
                let mut worker = Worker {
                    number: number as i64,
                    next_id: 0,
                    random: Random(0x9e37_79b9 + number),
                    session,
                    tables,
                };
                for _ in 0..TRANSACTIONS {
                    worker.transaction();
                }
            });
        }
    });
    let mut s = db.session();
    let parents = all(&mut s, &tables[0]);
    let children = all(&mut s, &tables[1]);
    for child in &children {
        let with_key = |p: &&Row| p.1 == child.1;
        assert!(parents.iter().any(|p| with_key(&p)), "an orphan: {child:?}");
    }
    commit(&mut s);
    let (parents, children) = (parents.len(), children.len());
    let db = db.crash();
    let mut s = db.session();
    let found = [
        all(&mut s, &db.find("p")).len(),
        all(&mut s, &db.find("c")).len(),
    ];
    assert_eq!(found, [parents, children], "after the crash");
}
