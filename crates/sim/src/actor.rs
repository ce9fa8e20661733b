//! One session. It runs transactions step by step, and knows the rows that it must see.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};

use nfold_engine::{
    BranchName, Engine, EngineError, EngineSession, Isolation, LockWaitPolicy, PrepareOptions,
    RowBatch, Stop, StoreError, TrxOptions, Wait,
};
use nfold_store::SimRng;

use crate::branches::Branch;
use crate::foreign::ForeignKey;
use crate::model::{Changes, Db, Rows, rows_with, same_where_changed};
use crate::select::{Reading, Wanted};
use crate::shape::{find, used_tables};
use crate::write::{Locking, Scale, Writing, Wrote};

/// The operation in progress.
enum Doing {
    Nothing,
    Lock(Box<Locking>),
    Write(Box<Writing>),
    Read(Box<Reading>),
    /// Ends the statement: true keeps its changes, false rolls them back.
    EndStatement(bool),
    /// Rolls back to the savepoint with this index.
    RollbackTo(usize),
    Commit,
    /// Prepares the transaction under this name.
    Prepare(BranchName),
    Rollback,
}

/// The context of a step.
pub struct StepContext<'a> {
    pub engine: &'a Engine,
    /// The committed state.
    pub db: &'a Db,
    /// The step of the last DDL statement on each table.
    pub changed_at: &'a BTreeMap<String, u64>,
    pub now: u64,
    pub scale: Scale,
    /// Whether I/O errors and a full disk are expected.
    pub faulty: bool,
    /// Whether all transactions must end: no new transactions and statements are begun.
    pub ending: bool,
}

/// See the module header.
pub struct Actor {
    number: u64,
    session: EngineSession,
    doing: Doing,
    waiting: Option<Wait>,
    isolation: Isolation,
    began: u64,
    /// The changes of this transaction.
    changes: Changes,
    /// The changes before the current statement.
    before_statement: Changes,
    /// The changes at each savepoint.
    savepoints: Vec<(&'static str, Changes)>,
    /// The committed state when the snapshot was opened.
    snapshot: Option<Db>,
    touched: BTreeSet<String>,
    steps_left: u64,
}

/// The result of a step.
pub enum Stepped {
    Going,
    Waiting,
    /// No transaction is open, and none is begun.
    Idle,
    Committed(Changes),
    Prepared(Vec<u8>, Branch),
}

impl Actor {
    pub fn new(engine: &Engine, number: u64) -> Result<Actor, EngineError> {
        Ok(Actor {
            number,
            session: engine.session(number)?,
            doing: Doing::Nothing,
            waiting: None,
            isolation: Isolation::RepeatableRead,
            began: 0,
            changes: Changes::new(),
            before_statement: Changes::new(),
            savepoints: Vec::new(),
            snapshot: None,
            touched: BTreeSet::new(),
            steps_left: 0,
        })
    }

    /// The changes of the commit in progress, if there is one.
    pub fn committing(&self) -> Option<&Changes> {
        matches!(self.doing, Doing::Commit).then_some(&self.changes)
    }

    /// The preparation in progress, if there is one.
    pub fn preparing(&self) -> Option<(Vec<u8>, Branch)> {
        match &self.doing {
            Doing::Prepare(name) => Some((name.bytes().to_vec(), self.as_branch())),
            _ => None,
        }
    }

    fn as_branch(&self) -> Branch {
        Branch {
            changes: self.changes.clone(),
            touched: self.touched.clone(),
        }
    }

    /// Whether the open transaction has used a table. Then DDL on that table must wait.
    pub fn uses(&self, table: &str) -> bool {
        self.touched.contains(table)
    }

    /// Runs one step.
    pub fn step(&mut self, rng: &mut SimRng, around: &StepContext<'_>) -> Result<Stepped, String> {
        if !self.wait_is_over(rng) {
            return Ok(Stepped::Waiting);
        }
        if matches!(self.doing, Doing::Nothing) {
            if !self.session.in_transaction() {
                if around.ending {
                    return Ok(Stepped::Idle);
                }
                self.begin(rng, around);
            }
            self.choose(rng, around)?;
            // Committing is a separate step, so that the model knows of the commit before it
            // begins.
            if matches!(self.doing, Doing::Commit | Doing::Prepare(_)) {
                return Ok(Stepped::Going);
            }
        }
        tell!("{} actor {}: {}", around.now, self.number, self.described());
        let stop = match self.go_on(rng, around) {
            Ok(stepped) => return stepped,
            Err(stop) => stop,
        };
        tell!("    stopped: {stop:?}");
        match stop {
            Stop::Wait(wait) => {
                self.waiting = Some(wait);
                return Ok(Stepped::Waiting);
            }
            Stop::Error(EngineError::Deadlock) => self.doing = Doing::Rollback,
            Stop::Error(EngineError::LockNoWait) => self.doing = Doing::EndStatement(false),
            Stop::Error(EngineError::Store(StoreError::Io { .. } | StoreError::DiskFull))
                if around.faulty =>
            {
                self.give_up();
            }
            Stop::Error(e) => return Err(format!("unexpected error: {e}")),
        }
        Ok(Stepped::Going)
    }

    /// Whether the actor is not waiting (any more). Now and then it cancels a wait, like a lock
    /// wait timeout (1205).
    fn wait_is_over(&mut self, rng: &mut SimRng) -> bool {
        let Some(wait) = &mut self.waiting else {
            return true;
        };
        let mut context = Context::from_waker(Waker::noop());
        if Pin::new(wait).poll(&mut context).is_pending() {
            let statement = matches!(self.doing, Doing::Lock(_) | Doing::Write(_));
            if !(statement && rng.one_in(100)) {
                return false;
            }
            self.doing = Doing::EndStatement(false);
        }
        self.waiting = None;
        true
    }

    fn described(&self) -> String {
        let trx = self.session.trx_id();
        match &self.doing {
            Doing::Nothing => "nothing".into(),
            Doing::Lock(l) => format!(
                "trx {trx} {:?} locks {:?} of {} to {:?}, {:?}",
                self.isolation, l.wanted, l.name, l.intent, l.policy
            ),
            Doing::Write(w) => format!("trx {trx} {}", w.described()),
            Doing::Read(r) => format!(
                "trx {trx} {:?} reads index {} of {}, covering {}, {} rows so far",
                self.isolation,
                r.index,
                r.table.def().name,
                r.covering,
                r.batch.len()
            ),
            Doing::EndStatement(ok) => format!("trx {trx} ends its statement: {ok}"),
            Doing::RollbackTo(at) => format!("trx {trx} rolls back to savepoint {at}"),
            Doing::Commit => format!("trx {trx} commits {} changes", self.changes.len()),
            Doing::Prepare(name) => format!(
                "trx {trx} prepares {} changes as {:?}",
                self.changes.len(),
                name.bytes()
            ),
            Doing::Rollback => format!("trx {trx} rolls back"),
        }
    }

    /// Handles an I/O error: the statement fails, and a rollback is retried.
    fn give_up(&mut self) {
        match self.doing {
            Doing::Commit | Doing::Prepare(_) | Doing::Rollback => self.doing = Doing::Rollback,
            Doing::EndStatement(false) | Doing::RollbackTo(_) => {}
            _ => self.doing = Doing::EndStatement(false),
        }
    }

    fn begin(&mut self, rng: &mut SimRng, around: &StepContext<'_>) {
        self.isolation = match rng.below(8) {
            0 => Isolation::ReadUncommitted,
            1 | 2 => Isolation::ReadCommitted,
            3 => Isolation::Serializable,
            _ => Isolation::RepeatableRead,
        };
        let at_once = rng.one_in(2);
        self.session.begin(TrxOptions {
            isolation: self.isolation,
            read_only: false,
            consistent_snapshot: at_once,
        });
        self.began = around.now;
        self.snapshot = (at_once && self.isolation.repeatable()).then(|| around.db.clone());
        self.changes.clear();
        self.savepoints.clear();
        self.touched.clear();
        self.steps_left = 1 + rng.below(8);
    }

    fn choose(&mut self, rng: &mut SimRng, around: &StepContext<'_>) -> Result<(), String> {
        let mut usable: Vec<&String> = around
            .db
            .keys()
            .filter(|t| self.may_use(t, around))
            .collect();
        let has_foreign_key = |t: &&String| used_tables(t).len() > 1;
        if usable.iter().any(has_foreign_key) && rng.one_in(2) {
            usable.retain(has_foreign_key);
        }
        if self.steps_left == 0 || usable.is_empty() || around.ending {
            self.doing = match rng.below(12) {
                0 | 1 => Doing::Rollback,
                2 | 3 if !around.ending => {
                    let name = format!("{} of {}", around.now, self.number);
                    let claimed = around.engine.claim_branch(name.as_bytes());
                    Doing::Prepare(claimed.ok_or("the name of a branch is in use")?)
                }
                _ => Doing::Commit,
            };
            return Ok(());
        }
        self.steps_left -= 1;
        if rng.one_in(8) {
            self.savepoint(rng);
            return Ok(());
        }
        let name = usable[rng.below(usable.len() as u64) as usize].clone();
        let table = find(around.engine, &name)?;
        let used = used_tables(&name);
        self.touched.extend(used.into_iter().map(String::from));
        let scale = around.scale.of_table(&name);
        self.session.statement_begin(self.isolation, false);
        self.before_statement.clone_from(&self.changes);
        self.doing = match rng.below(12) {
            0..=3 => {
                let foreign = ForeignKey::of_table(&name, around)?;
                let mut writing = Writing::inserts(&name, &table, &scale, rng);
                writing.check_foreign_key(foreign, rng);
                Doing::Write(Box::new(writing))
            }
            4..=8 => {
                let locking = Locking::choose(&name, &table, &scale, rng);
                Doing::Lock(Box::new(locking))
            }
            _ => Doing::Read(Box::new(self.reading(&name, &table, rng, around))),
        };
        Ok(())
    }

    /// Whether the tables that a statement on `name` uses exist, and are those of the transaction's
    /// snapshot: a table changed by DDL since the transaction began is a different one.
    fn may_use(&self, name: &str, around: &StepContext<'_>) -> bool {
        let unchanged = |t: &str| around.changed_at.get(t).is_none_or(|at| *at < self.began);
        let mut used = used_tables(name).into_iter();
        used.all(|t| around.db.contains_key(t) && unchanged(t))
    }

    fn savepoint(&mut self, rng: &mut SimRng) {
        let name = ["a", "b", "c"][rng.below(3) as usize];
        let known = self.savepoints.iter().position(|s| s.0 == name);
        match (rng.below(4), known) {
            (0, Some(at)) => {
                self.savepoints.truncate(at);
                self.session
                    .release_savepoint(name)
                    .expect("the model knows the savepoint");
            }
            (1 | 2, Some(at)) => self.doing = Doing::RollbackTo(at),
            _ => {
                self.savepoints.retain(|s| s.0 != name);
                self.savepoints.push((name, self.changes.clone()));
                self.session.savepoint(name);
            }
        }
    }

    fn reading(
        &mut self,
        name: &str,
        table: &std::sync::Arc<nfold_engine::Table>,
        rng: &mut SimRng,
        around: &StepContext<'_>,
    ) -> Reading {
        let db = match self.isolation {
            Isolation::ReadUncommitted => None,
            Isolation::ReadCommitted => Some(around.db),
            _ => Some(&*self.snapshot.get_or_insert_with(|| around.db.clone())),
        };
        let wanted = if rng.one_in(2) {
            Wanted::All
        } else {
            Wanted::choose(table, around.scale.of_table(name).ids, rng)
        };
        // Without a primary key, the id does not identify a row: a row changed by this transaction
        // may have had another id in its snapshot. Then the model's rows, which are keyed by id, do
        // not show what the transaction sees.
        let known = |db: &&Db| {
            table.def().has_primary_key() || same_where_changed(db, around.db, &self.changes, name)
        };
        let expected = db
            .filter(known)
            .map(|db| wanted.of(rows_with(db, &self.changes, name)));
        let any = rng.below(table.indexes().len() as u64) as usize;
        let first_rows = if rng.one_in(2) { 1 + rng.below(30) } else { 0 };
        let cover = rng.one_in(2);
        let reverse = rng.one_in(4);
        let (read, index, covering) = wanted.read(table, any, reverse, |spec| {
            spec.first_rows = first_rows as usize;
            spec.covering = cover;
        });
        Reading {
            table: table.clone(),
            read,
            index,
            covering,
            batch: RowBatch::new(),
            expected,
        }
    }

    /// The newest rows of a table as seen by this transaction.
    fn current(&self, around: &StepContext<'_>, name: &str) -> Rows {
        rows_with(around.db, &self.changes, name)
    }

    fn go_on(
        &mut self,
        rng: &mut SimRng,
        around: &StepContext<'_>,
    ) -> Result<Result<Stepped, String>, Stop> {
        let checked = match &mut self.doing {
            Doing::Nothing => Ok(()),
            Doing::Lock(locking) => {
                while locking.read.next(&mut self.session, &mut locking.batch)? {}
                self.locked(rng, around)
            }
            Doing::Write(_) => {
                let mut rows = around.scale.burst;
                loop {
                    let wrote = self.write_row(rng, around)?;
                    rows -= 1;
                    if rows == 0 || wrote.is_err() || !matches!(self.doing, Doing::Write(_)) {
                        break wrote;
                    }
                }
            }
            Doing::Read(reading) => {
                if reading.go_on(&mut self.session)? {
                    return Ok(Ok(Stepped::Going));
                }
                let checked = reading.check();
                self.doing = Doing::EndStatement(true);
                checked
            }
            Doing::EndStatement(ok) => {
                let ok = *ok;
                self.session.statement_end(ok)?;
                if !ok {
                    self.changes.clone_from(&self.before_statement);
                }
                self.doing = Doing::Nothing;
                Ok(())
            }
            Doing::RollbackTo(at) => {
                let at = *at;
                self.session.rollback_to(self.savepoints[at].0)?;
                self.changes.clone_from(&self.savepoints[at].1);
                self.savepoints.truncate(at + 1);
                self.doing = Doing::Nothing;
                Ok(())
            }
            Doing::Commit => {
                self.session.commit()?;
                self.end();
                return Ok(Ok(Stepped::Committed(std::mem::take(&mut self.changes))));
            }
            Doing::Prepare(name) => {
                self.session.prepare(name, PrepareOptions::default())?;
                let (name, branch) = (name.bytes().to_vec(), self.as_branch());
                self.end();
                return Ok(Ok(Stepped::Prepared(name, branch)));
            }
            Doing::Rollback => {
                self.session.rollback()?;
                self.end();
                Ok(())
            }
        };
        Ok(checked.map(|()| Stepped::Going))
    }

    /// Writes one row of the current statement.
    fn write_row(
        &mut self,
        rng: &mut SimRng,
        around: &StepContext<'_>,
    ) -> Result<Result<(), String>, Stop> {
        let Doing::Write(writing) = &mut self.doing else {
            return Ok(Ok(()));
        };
        match writing.go_on(&mut self.session, around.db, &mut self.changes)? {
            Ok(Wrote::Row | Wrote::Part) => {}
            Ok(Wrote::Duplicate) if rng.one_in(2) => {}
            Ok(Wrote::Duplicate | Wrote::Refused) => self.doing = Doing::EndStatement(false),
            Ok(Wrote::All) => self.doing = Doing::EndStatement(!rng.one_in(10)),
            Err(what) => return Ok(Err(what)),
        }
        Ok(Ok(()))
    }

    fn end(&mut self) {
        self.doing = Doing::Nothing;
        self.touched.clear();
        self.snapshot = None;
    }

    /// Handles the rows of a completed locking read: checks M4, and then chooses the changes to
    /// make.
    fn locked(&mut self, rng: &mut SimRng, around: &StepContext<'_>) -> Result<(), String> {
        let Doing::Lock(mut locking) =
            std::mem::replace(&mut self.doing, Doing::EndStatement(true))
        else {
            return Ok(());
        };
        let gaps = self.isolation.repeatable();
        locking.check(self.current(around, &locking.name), gaps)?;
        let scale = around.scale.of_table(&locking.name);
        let changes = locking.changes(&scale, rng);
        if !changes.is_empty() && locking.policy != LockWaitPolicy::SkipLocked {
            let foreign = ForeignKey::of_table(&locking.name, around)?;
            let mut writing = Writing::new(&locking.name, &locking.table, changes);
            writing.check_foreign_key(foreign, rng);
            self.doing = Doing::Write(Box::new(writing));
        }
        Ok(())
    }
}
