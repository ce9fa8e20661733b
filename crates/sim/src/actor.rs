//! One session: runs a transaction step by step, and remembers what the rows are for it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use nfold_engine::{
    DeleteOp, Engine, EngineError, EngineSession, InsertOp, Isolation, KeyRange, PointSet, Read,
    ReadSpec, RowBatch, RowLock, Stop, Table, TrxOptions, UpdateOp, Wait, WriteOutcome,
};
use nfold_store::SimRng;
use nfold_types::ValueRef;

use crate::model::{Fields, Rows, decode, encode};

/// What an actor is in the middle of.
enum Doing {
    Nothing,
    /// Finds and locks the row, to change it (or delete it).
    Find {
        id: i64,
        new: Option<Fields>,
        read: Box<Read>,
        batch: RowBatch,
    },
    Insert {
        id: i64,
        new: Fields,
        op: Box<InsertOp>,
    },
    Update {
        id: i64,
        new: Fields,
        op: Box<UpdateOp>,
    },
    Delete {
        id: i64,
        op: Box<DeleteOp>,
    },
    Commit,
    Rollback,
}

/// See the module's header.
pub struct Actor {
    session: EngineSession,
    table: Arc<Table>,
    doing: Doing,
    waiting: Option<Wait>,
    /// Rows that this transaction has changed: their new fields, `None` when deleted.
    changed: std::collections::BTreeMap<i64, Option<Fields>>,
    /// What was committed when the snapshot was opened.
    snapshot: Option<Rows>,
    steps_left: u64,
}

/// What a step came to.
pub enum Stepped {
    Going,
    Waiting,
    /// Committed: these rows are changed.
    Committed(Vec<(i64, Option<Fields>)>),
}

impl Actor {
    pub fn new(engine: &Engine, table: &Arc<Table>, number: u64) -> Result<Actor, EngineError> {
        Ok(Actor {
            session: engine.session(number)?,
            table: table.clone(),
            doing: Doing::Nothing,
            waiting: None,
            changed: Default::default(),
            snapshot: None,
            steps_left: 0,
        })
    }

    /// The rows that the commit at hand changes, if the actor is committing.
    pub fn committing(&self) -> Option<Vec<(i64, Option<Fields>)>> {
        matches!(self.doing, Doing::Commit).then(|| self.changes())
    }

    fn changes(&self) -> Vec<(i64, Option<Fields>)> {
        self.changed
            .iter()
            .map(|(id, f)| (*id, f.clone()))
            .collect()
    }

    /// One step. `committed`: the rows as they are for a new snapshot.
    pub fn step(&mut self, rng: &mut SimRng, committed: &Rows) -> Result<Stepped, String> {
        if let Some(wait) = &mut self.waiting {
            if Pin::new(wait)
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_pending()
            {
                return Ok(Stepped::Waiting);
            }
            self.waiting = None;
        }
        if !self.session.in_transaction() && matches!(self.doing, Doing::Nothing) {
            self.begin(rng, committed);
        }
        if matches!(self.doing, Doing::Nothing) {
            self.choose(rng)?;
            // A step of its own, so that the model knows of a commit before it begins.
            if matches!(self.doing, Doing::Commit) {
                return Ok(Stepped::Going);
            }
        }
        match self.go_on() {
            Ok(stepped) => Ok(stepped),
            Err(Stop::Wait(wait)) => {
                self.waiting = Some(wait);
                Ok(Stepped::Waiting)
            }
            Err(Stop::Error(EngineError::Deadlock | EngineError::LockNoWait)) => {
                self.doing = Doing::Rollback;
                Ok(Stepped::Going)
            }
            Err(Stop::Error(e)) => Err(format!("unexpected error: {e}")),
        }
    }

    fn begin(&mut self, rng: &mut SimRng, committed: &Rows) {
        let isolation = if rng.one_in(4) {
            Isolation::ReadCommitted
        } else {
            Isolation::RepeatableRead
        };
        self.session.begin(TrxOptions {
            isolation,
            read_only: false,
            consistent_snapshot: true,
        });
        self.snapshot = (isolation == Isolation::RepeatableRead).then(|| committed.clone());
        self.changed.clear();
        self.steps_left = 1 + rng.below(8);
    }

    fn choose(&mut self, rng: &mut SimRng) -> Result<(), String> {
        if self.steps_left == 0 {
            self.doing = if rng.one_in(6) {
                Doing::Rollback
            } else {
                Doing::Commit
            };
            return Ok(());
        }
        self.steps_left -= 1;
        if rng.one_in(4) {
            return self.check_snapshot();
        }
        let id = rng.below(40) as i64;
        let long = rng
            .one_in(12)
            .then(|| "overflow ".repeat(rng.below(4000) as usize));
        let short = (!rng.one_in(3)).then(|| "x".repeat(rng.below(300) as usize));
        let s = (!rng.one_in(5)).then(|| format!("name{}", rng.below(60)));
        let new = (Some(rng.below(8) as i64), s, long.or(short));
        self.session
            .statement_begin(Isolation::RepeatableRead, false);
        self.doing = match rng.below(3) {
            0 => {
                let mut op = Box::new(InsertOp::new(self.table.clone()));
                encode(&self.table, id, &new, op.row());
                Doing::Insert { id, new, op }
            }
            n => {
                let mut points = PointSet::new();
                let key = |out: &mut Vec<u8>| {
                    self.table
                        .key_layout(0)
                        .encode_values([ValueRef::Int(id)], out)
                        .expect("an integer key");
                };
                points.push_with(key);
                let spec = ReadSpec {
                    lock: RowLock::Exclusive,
                    columns: vec![0, 1, 2, 3],
                    ..ReadSpec::default()
                };
                let read = Box::new(Read::points(self.table.clone(), spec, points));
                Doing::Find {
                    id,
                    new: (n == 1).then_some(new),
                    read,
                    batch: RowBatch::new(),
                }
            }
        };
        Ok(())
    }

    fn go_on(&mut self) -> Result<Stepped, Stop> {
        match &mut self.doing {
            Doing::Nothing => {}
            Doing::Find {
                id,
                new,
                read,
                batch,
            } => {
                while read.next(&mut self.session, batch)? {}
                let (id, new) = (*id, new.take());
                let image = (!batch.is_empty()).then(|| batch.row(0).to_vec());
                self.doing = match (image, new) {
                    (None, _) => Doing::Nothing,
                    (Some(image), Some(new)) => {
                        let mut op = Box::new(UpdateOp::new(self.table.clone()));
                        encode(&self.table, id, &new, op.row(&image, None));
                        Doing::Update { id, new, op }
                    }
                    (Some(image), None) => {
                        let mut op = Box::new(DeleteOp::new(self.table.clone()));
                        op.row(&image, None);
                        Doing::Delete { id, op }
                    }
                };
                if matches!(self.doing, Doing::Nothing) {
                    self.session.statement_end(true)?;
                }
            }
            Doing::Insert { id, new, op } => {
                let done = self.session.insert(op)? == WriteOutcome::Done;
                let change = done.then(|| (*id, Some(new.clone())));
                self.end_statement(change)?;
            }
            Doing::Update { id, new, op } => {
                let done = self.session.update(op)? == WriteOutcome::Done;
                let change = done.then(|| (*id, Some(new.clone())));
                self.end_statement(change)?;
            }
            Doing::Delete { id, op } => {
                self.session.delete(op)?;
                let change = Some((*id, None));
                self.end_statement(change)?;
            }
            Doing::Commit => {
                self.session.commit()?;
                self.doing = Doing::Nothing;
                return Ok(Stepped::Committed(self.changes()));
            }
            Doing::Rollback => {
                self.session.rollback()?;
                self.doing = Doing::Nothing;
            }
        }
        Ok(Stepped::Going)
    }

    fn end_statement(&mut self, change: Option<(i64, Option<Fields>)>) -> Result<(), Stop> {
        self.changed.extend(change);
        self.doing = Doing::Nothing;
        self.session.statement_end(true)
    }

    /// M2, through the clustered index.
    fn check_snapshot(&mut self) -> Result<(), String> {
        let Some(mut expected) = self.snapshot.clone() else {
            return Ok(());
        };
        for (id, fields) in &self.changed {
            match fields {
                Some(f) => expected.insert(*id, f.clone()),
                None => expected.remove(id),
            };
        }
        let found = rows_of(&mut self.session, &self.table)?;
        if found != expected {
            return Err(difference("a snapshot has changed", &expected, &found));
        }
        Ok(())
    }
}

/// All rows as the session's transaction sees them.
pub fn rows_of(session: &mut EngineSession, table: &Arc<Table>) -> Result<Rows, String> {
    let spec = ReadSpec {
        columns: vec![0, 1, 2, 3],
        ..ReadSpec::default()
    };
    let mut read = Read::range(table.clone(), spec, &KeyRange::all(), false);
    let mut batch = RowBatch::new();
    loop {
        match read.next(session, &mut batch) {
            Ok(true) => {}
            Ok(false) => break,
            Err(Stop::Wait(_)) => return Err("a plain read had to wait with inline I/O".into()),
            Err(Stop::Error(e)) => return Err(format!("a plain read failed: {e}")),
        }
    }
    batch
        .iter()
        .map(|image| decode(table, image).ok_or_else(|| "a damaged row".to_owned()))
        .collect()
}

/// Says where two states differ.
pub fn difference(what: &str, expected: &Rows, found: &Rows) -> String {
    let short =
        |f: Option<&Fields>| f.map(|(k, s, b)| (*k, s.clone(), b.as_ref().map(String::len)));
    let ids: std::collections::BTreeSet<_> = expected.keys().chain(found.keys()).collect();
    let lines: Vec<String> = ids
        .into_iter()
        .filter(|id| expected.get(id) != found.get(id))
        .take(5)
        .map(|id| {
            format!(
                "row {id}: expected {:?}, found {:?}",
                short(expected.get(id)),
                short(found.get(id))
            )
        })
        .collect();
    format!("{what}: {}", lines.join("; "))
}
