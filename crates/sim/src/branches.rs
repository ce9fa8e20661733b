//! Prepared transactions (M9): they belong to no actor, survive each engine run, and end in the
//! same run or a later one.

use std::collections::{BTreeMap, BTreeSet};

use nfold_engine::{Engine, block};

use crate::model::{Changes, Db, applied, orphan};
use crate::run::World;

/// A prepared transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct Branch {
    pub changes: Changes,
    /// The tables that it has used. DDL on them must wait.
    pub touched: BTreeSet<String>,
}

/// All of them, and what a crash interrupted.
#[derive(Default)]
pub struct Branches {
    pub prepared: BTreeMap<Vec<u8>, Branch>,
    /// The branch whose preparation is in progress.
    pub preparing: Option<(Vec<u8>, Branch)>,
    /// The branch whose end is in progress, and whether that is a commit.
    ending: Option<(Vec<u8>, bool)>,
}

impl Branches {
    /// Whether a prepared transaction has used a table.
    pub fn use_table(&self, table: &str) -> bool {
        self.prepared.values().any(|b| b.touched.contains(table))
    }

    /// Whether the crash interrupted a commit. Only the disk tells whether it was durable.
    pub fn interrupted_commit(&self) -> bool {
        matches!(self.ending, Some((_, true)))
    }

    /// The state after the commit that the crash interrupted, if it was durable: `engine`, opened
    /// after the crash, has the branch no more.
    pub fn committed(&self, db: &Db, engine: &Engine) -> Option<Db> {
        let Some((name, true)) = &self.ending else {
            return None;
        };
        let branch = self.prepared.get(name)?;
        let found = engine.prepared_branches();
        let prepared = found.iter().any(|other| **other == **name);
        (!prepared).then(|| applied(db, &branch.changes))
    }

    /// Compares the prepared transactions of an opened engine with the model. Returns the committed
    /// state if it is certain, because a commit that the crash interrupted was durable.
    pub fn adopt(&mut self, db: &Db, engine: &Engine) -> Result<Option<Db>, String> {
        let committed = self.committed(db, engine);
        let (preparing, ending) = (self.preparing.take(), self.ending.take());
        let mut found: BTreeSet<Vec<u8>> = BTreeSet::new();
        found.extend(engine.prepared_branches().into_iter().map(Vec::from));
        if let Some((name, _)) = ending
            && !found.contains(&name)
        {
            self.prepared.remove(&name);
        }
        if let Some((name, branch)) = preparing
            && found.contains(&name)
        {
            self.prepared.insert(name, branch);
        }
        let known: BTreeSet<Vec<u8>> = self.prepared.keys().cloned().collect();
        if found != known {
            let lost: Vec<_> = known.difference(&found).collect();
            let strange: Vec<_> = found.difference(&known).collect();
            return Err(format!(
                "prepared transactions {lost:?} are lost, {strange:?} were not prepared"
            ));
        }
        Ok(committed)
    }
}

impl World {
    /// Commits or rolls back a prepared transaction.
    pub(crate) fn end_branch(&mut self, engine: &Engine) -> Result<(), String> {
        let count = self.branches.prepared.len() as u64;
        let Some(n) = count.checked_sub(1) else {
            return Ok(());
        };
        let (n, commit) = (self.rng.below(n + 1) as usize, !self.rng.one_in(3));
        let Some((name, branch)) = self.branches.prepared.iter().nth(n) else {
            return Ok(());
        };
        let (name, branch) = (name.clone(), branch.clone());
        tell!("{} ends {name:?}, commit: {commit}", self.now);
        self.branches.ending = Some((name.clone(), commit));
        let mut session = engine.session(101).map_err(|e| e.to_string())?;
        if !session.resume_branch(engine, &name, false) {
            return Err(format!("the prepared transaction {name:?} is unknown"));
        }
        let ended = match commit {
            true => block(|| session.commit_branch()),
            false => block(|| session.rollback_branch()),
        };
        ended.map_err(|e| format!("the end of a prepared transaction: {e}"))?;
        self.branches.ending = None;
        self.branches.prepared.remove(&name);
        self.outcome.branches += 1;
        if commit {
            let after = applied(&self.db, &branch.changes);
            if let Some(orphan) = orphan(&after) {
                return Err(format!("a prepared commit leaves an {orphan}"));
            }
            self.put_db(after);
            // It is durable, and so are all commits before it.
            self.maybe.clear();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;

    use nfold_catalog::DatabaseDef;
    use nfold_engine::{InsertOp, Isolation, PrepareOptions, TrxOptions};
    use nfold_types::Value;
    use nfold_types::collation::CollationId;

    use super::*;
    use crate::damage;
    use crate::model::{Rows, TableModel, rows_with};
    use crate::shape::{DATABASE, Shape, encode, find};

    const NAME: &[u8] = b"branch";

    /// A world whose table `t` is empty, and the engine with a prepared branch that inserts a row.
    fn prepared(seed: u64) -> (World, Arc<Engine>) {
        let mut world = World::new(seed);
        let (engine, _) = damage::open(&world.disk).unwrap();
        let database = DatabaseDef {
            name: DATABASE.into(),
            collation: CollationId::UTF8MB4_0900_AI_CI,
        };
        engine.put_database(database).unwrap();
        let shape = Shape {
            primary: true,
            x: false,
            indexes: BTreeSet::new(),
            action: None,
        };
        engine.create_table(shape.spec("t")).unwrap();
        let table = find(&engine, "t").unwrap();
        let row = Arc::new(vec![
            Value::Int(34),
            Value::Int(4),
            Value::Null,
            Value::Null,
        ]);
        let mut session = engine.session(1).unwrap();
        let isolation = Isolation::RepeatableRead;
        session.begin(TrxOptions {
            isolation,
            read_only: false,
            consistent_snapshot: false,
        });
        session.statement_begin(isolation, false);
        let mut insert = InsertOp::new(table.clone());
        encode(table.layout(), &row, insert.row());
        block(|| session.insert(&mut insert)).unwrap();
        block(|| session.statement_end(true)).unwrap();
        let claimed = engine.claim_branch(NAME).unwrap();
        block(|| session.prepare(&claimed, PrepareOptions::default())).unwrap();
        let model = TableModel {
            shape,
            rows: Rows::new(),
        };
        world.put_db(Db::from([("t".to_owned(), Arc::new(model))]));
        let branch = Branch {
            changes: Changes::from([(("t".to_owned(), 34), Some(row))]),
            touched: BTreeSet::from(["t".to_owned()]),
        };
        world.branches.prepared.insert(NAME.to_vec(), branch);
        (world, engine)
    }

    /// Lets the power fail while the branch commits, and flips bits. Returns whether the commit was
    /// durable, or `None` if it ended before the power failed, or the branch is rolled back.
    fn interrupted_commit(seed: u64) -> Option<bool> {
        let (mut world, engine) = prepared(seed);
        world.disk.fail_power_after(seed % 4);
        let end = AssertUnwindSafe(|| world.end_branch(&engine));
        let ended = catch_unwind(end);
        if !world.disk.is_dead() {
            assert!(matches!(ended, Ok(Ok(()))));
            return None;
        }
        if !world.branches.interrupted_commit() {
            return None;
        }
        world.disk = world.disk.crash(seed);
        let committed = world.committed_by_crash().unwrap();
        for _ in 0..6 {
            world
                .flip_bits()
                .unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        }
        if let Some(after) = &committed {
            let rows = rows_with(after, &Changes::new(), "t");
            assert_eq!(rows.keys().copied().collect::<Vec<_>>(), [34]);
        }
        Some(committed.is_some())
    }

    #[test]
    fn interrupted_commit_survives_flipped_bits() {
        let ends: BTreeSet<_> = (0..80).filter_map(interrupted_commit).collect();
        assert_eq!(ends, BTreeSet::from([false, true]));
    }
}
