//! One execution of a statement: the session, the fiber, the parameters, the warnings.

pub(crate) mod handler_calls;
pub(crate) mod profile;
pub(crate) mod result;
mod search;
mod shared_rows;
pub(crate) mod spill;
pub(crate) mod working;

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nfold_catalog::{TableDef, TableId, UserLockOutcome, UserLockWait};
use nfold_engine::{
    Engine, EngineError, EngineSession, Isolation, PageRowSink, Read, RowBatch, Stop, StoreError,
    Table, reborrow,
};
use nfold_observe::contention::{Site, WaitKind};
use nfold_observe::{SessionCounters, StatusCounter};
use nfold_plan::expr::{ExprType, SubqueryUse};
use nfold_plan::fulltext::SearchTarget;
use nfold_types::{Checkpoint, ErrorCode, SqlError, Warnings, append_in_pieces};

use crate::env::params::Params;
use crate::env::{Checkpoints, FileSource, Interrupt, SessionEnv, StatementFiber};
use crate::expr::eval::{
    EvalCx, ListCache, NoSubqueries, RowCounts, Scope, StmtState, Subqueries, Val,
};
use crate::fulltext::program::Program;
use profile::Profile;
use search::Searches;
use shared_rows::SharedRows;
use working::Working;

/// How often a session that waits for a user-level lock searches for deadlocks.
const DEADLOCK_SEARCH_INTERVAL: Duration = Duration::from_millis(100);

/// The resources of an execution, for operators. The session and the fiber are in cells, because a
/// subquery runs during the evaluation of an expression; each is borrowed for one call at a time.
pub(crate) struct Runtime<'s> {
    pub engine: &'s Arc<Engine>,
    session: RefCell<&'s mut EngineSession>,
    cx: Checkpoints<'s>,
    pub env: &'s dyn SessionEnv,
    pub counters: &'s SessionCounters,
    pub params: &'s Params,
    pub warnings: &'s RefCell<Warnings>,
    pub lists: ListCache,
    pub counts: RowCounts,
    searches: Searches,
    /// Whether errors such as a division by zero are errors, not warnings (strict mode).
    pub strict: Cell<bool>,
    /// Whether plain reads lock rows like FOR SHARE: under SERIALIZABLE, and for the reads of a
    /// statement that changes rows under REPEATABLE READ.
    pub lock_reads: bool,
    /// UPDATE: whether rows that other transactions have locked are tested before waiting for the
    /// lock.
    pub semi_consistent: bool,
    /// Whether the statement is an UPDATE or DELETE.
    pub changes: bool,
    /// For FOUND_ROWS(): the number of rows without LIMIT, if it was counted.
    pub found_rows: Cell<Option<u64>>,
    /// The number of rows that the engine has returned.
    pub examined: Cell<u64>,
    /// The number of rows read from computed tables, such as derived tables.
    pub computed_read: Cell<u64>,
    pub working: Working,
    pub shared: SharedRows,
    /// EXPLAIN ANALYZE: the measurements of the operators.
    pub profile: Option<Profile>,
}

/// For expressions without subqueries, which may still have to wait.
impl Subqueries for Runtime<'_> {
    fn value<'a>(
        &self,
        cx: &EvalCx<'a>,
        index: u16,
        use_as: &'a SubqueryUse,
        ty: &'a ExprType,
    ) -> Result<Val<'a>, SqlError> {
        NoSubqueries.value(cx, index, use_as, ty)
    }

    fn search(&self, target: SearchTarget, text: &[u8]) -> Result<Rc<Program>, SqlError> {
        Runtime::search(self, target, text)
    }

    fn sleep(&self, time: Duration) -> Result<bool, SqlError> {
        Runtime::sleep(self, time)
    }

    fn wait_for_user_lock(
        &self,
        wait: &mut UserLockWait,
        deadline: Option<Instant>,
    ) -> Result<(), SqlError> {
        Runtime::wait_for_user_lock(self, wait, deadline)
    }
}

impl<'s> Runtime<'s> {
    pub fn new(
        engine: &'s Arc<Engine>,
        session: &'s mut EngineSession,
        cx: &'s mut dyn StatementFiber,
        env: &'s dyn SessionEnv,
        params: &'s Params,
        warnings: &'s RefCell<Warnings>,
    ) -> Self {
        Runtime {
            engine,
            lock_reads: false,
            semi_consistent: false,
            changes: false,
            session: RefCell::new(session),
            cx: Checkpoints::new(cx),
            env,
            counters: env.counters(),
            params,
            warnings,
            lists: ListCache::default(),
            counts: RowCounts::default(),
            searches: Searches::default(),
            strict: Cell::new(false),
            found_rows: Cell::new(None),
            examined: Cell::new(0),
            computed_read: Cell::new(0),
            working: Working::default(),
            shared: SharedRows::default(),
            profile: None,
        }
    }

    /// Releases the lock of row `i`, which does not match, if the isolation level allows it.
    pub fn release(&self, read: &Read, batch: &RowBatch, i: usize) {
        read.release(&mut self.session.borrow_mut(), batch, i);
    }

    /// Locks row `i`, which was tested without a lock. False: the row has been deleted.
    pub fn lock_row(&self, read: &Read, batch: &mut RowBatch, i: usize) -> Result<bool, SqlError> {
        self.drive(|session| read.lock_row(session, batch, i))
    }

    /// The state for evaluating expressions.
    pub fn state<'a>(&'a self, subqueries: &'a dyn Subqueries) -> StmtState<'a> {
        StmtState {
            params: self.params,
            env: self.env,
            warnings: self.warnings,
            subqueries,
            checkpoint: self,
            lists: &self.lists,
            counts: &self.counts,
            strict: self.strict.get(),
            scope: Scope::None,
            changes: self.changes,
        }
    }

    /// Checks for KILL and for the end of the time slice.
    pub fn tick(&self) -> Result<(), SqlError> {
        self.cx.cx().tick().map_err(Interrupt::to_sql)
    }

    /// Checks for KILL and the end of the time slice during a computation. Inside an engine call,
    /// which may be reading a page without a latch, it checks for KILL only: the fiber must not be
    /// suspended there.
    #[cold]
    fn pause(&self) -> Result<(), SqlError> {
        if self.session.try_borrow().is_err() {
            return self.cx.cx().interrupted().map_err(Interrupt::to_sql);
        }
        self.tick()
    }

    /// Appends a row, whose columns may be large, with checkpoints.
    #[inline]
    pub fn copy_row(&self, row: &[u8], out: &mut RowBatch) -> Result<(), SqlError> {
        let mut copied = Ok(());
        out.push_with(0, |out| {
            copied = append_in_pieces(row, out, self);
            copied.is_ok()
        });
        copied
    }

    /// Records a row change that was made last in the session's journal.
    pub fn record_change(&self, table: &Table, kind: u8, bytes: &[u8]) {
        let mut session = self.session.borrow_mut();
        let write = |out: &mut Vec<u8>| {
            out.extend_from_slice(bytes);
            Ok::<(), Infallible>(())
        };
        let Ok(()) = session.record_change(table, kind, write);
    }

    /// Runs `job` on a thread that may block, while other sessions continue.
    pub fn offload(&self, job: Box<dyn FnOnce() + Send>) -> Result<(), SqlError> {
        self.cx.cx().offload(job).map_err(Interrupt::to_sql)
    }

    /// Appends the next bytes of a file to `to`; false: it has ended.
    pub fn read_file(&self, file: &mut dyn FileSource, to: &mut Vec<u8>) -> Result<bool, SqlError> {
        self.tick()?;
        file.read(&mut **self.cx.cx(), to)
    }

    /// Suspends the fiber. False: KILL QUERY or the time limit has ended the sleep.
    pub fn sleep(&self, time: Duration) -> Result<bool, SqlError> {
        match self.cx.cx().sleep(time) {
            Ok(()) => Ok(true),
            Err(Interrupt::Killed | Interrupt::TimedOut) => Ok(false),
            Err(why) => Err(why.to_sql()),
        }
    }

    /// Waits for a user-level lock until `deadline`. The first session in the lock's queue
    /// periodically searches for deadlocks, on behalf of all waiting sessions.
    pub fn wait_for_user_lock(
        &self,
        wait: &mut UserLockWait,
        deadline: Option<Instant>,
    ) -> Result<(), SqlError> {
        let contention = self.engine.contention();
        let ticket = contention.enter(Site::of(WaitKind::UserLock));
        self.env.break_user_lock_deadlocks();
        let result = loop {
            let now = Instant::now();
            if wait.outcome() != UserLockOutcome::Waiting || deadline.is_some_and(|d| d <= now) {
                break Ok(());
            }
            let search = now + DEADLOCK_SEARCH_INTERVAL;
            let until = deadline.map_or(search, |d| d.min(search));
            let pinned: Pin<&mut UserLockWait> = Pin::new(wait);
            match self.cx.cx().wait(pinned, Some(until)) {
                Ok(()) => {}
                Err(Interrupt::Deadline) if wait.is_first() => self.env.break_user_lock_deadlocks(),
                Err(Interrupt::Deadline) => {}
                Err(interrupt) => break Err(interrupt.to_sql()),
            }
        };
        contention.leave(ticket, None);
        result
    }

    /// Calls `f` again after each wait, until it succeeds or fails.
    pub fn drive<T>(
        &self,
        mut f: impl FnMut(&mut EngineSession) -> Result<T, Stop>,
    ) -> Result<T, SqlError> {
        loop {
            let stop = {
                let mut session = self.session.borrow_mut();
                match f(&mut session) {
                    Ok(value) => return Ok(value),
                    Err(stop) => stop,
                }
            };
            self.wait_or_fail(stop)?;
        }
    }

    /// Waits for the event that has stopped an engine call.
    ///
    /// # Errors
    /// The error that has stopped the call, or the error that ends the wait.
    #[cold]
    fn wait_or_fail(&self, stop: Stop) -> Result<(), SqlError> {
        if let Stop::Error(error) = &stop
            && let Some(table) = self.engine.fence(error)
        {
            return Err(damage(error, table.def()));
        }
        let timeout = self.env.lock_wait_timeout();
        wait_or_fail(&mut **self.cx.cx(), stop, Some(timeout))
    }

    /// The transaction's changes so far, for `EngineSession::return_to`.
    pub fn change_mark(&self) -> u32 {
        self.session.borrow().change_mark()
    }

    /// Appends the next rows of a read; false: there are no more.
    pub fn read(&self, read: &mut Read, out: &mut RowBatch) -> Result<bool, SqlError> {
        Ok(self.read_into(read, out, None)?.0)
    }

    /// As [`Self::read`], and the number of rows; `row_sink` receives rows that need no copy
    /// ([`Read::next_into`]).
    pub fn read_into(
        &self,
        read: &mut Read,
        out: &mut RowBatch,
        mut row_sink: Option<&mut dyn PageRowSink>,
    ) -> Result<(bool, u64), SqlError> {
        loop {
            self.tick()?;
            let before = out.len() + out.taken();
            let more =
                self.drive(|session| read.next_into(session, out, reborrow(&mut row_sink)))?;
            let read = (out.len() + out.taken()).saturating_sub(before);
            self.examined.set(self.examined.get() + read as u64);
            if read > 0 || !more {
                return Ok((more, read as u64));
            }
        }
    }

    /// Counts rows that are read from a computed table.
    pub fn count_computed(&self, rows: u64) {
        self.computed_read.set(self.computed_read.get() + rows);
    }

    /// The number of rows read from tables and from computed tables.
    pub fn rows_read(&self) -> u64 {
        self.examined.get() + self.computed_read.get()
    }

    /// Counts a temporary table of MySQL's: `written` rows are written to it, and then it is
    /// scanned, with `kept` rows that are no duplicates.
    pub fn count_temporary_table(&self, written: u64, kept: u64) {
        use StatusCounter::{CreatedTmpTables, HandlerReadRndNext, HandlerWrite};
        self.counters.add(CreatedTmpTables, 1);
        self.counters.add(HandlerWrite, written);
        self.counters.add(HandlerReadRndNext, kept + 1);
    }

    /// Counts a grouping that MySQL does by a temporary table: each row looks its group up there.
    pub fn count_grouping(&self, rows: u64, groups: u64) {
        use StatusCounter::{HandlerReadKey, HandlerUpdate};
        self.count_temporary_table(groups, groups);
        self.counters.add(HandlerReadKey, rows);
        self.counters
            .add(HandlerUpdate, rows.saturating_sub(groups));
    }

    /// Counts a sort and the rows of its result.
    pub fn count_sort(&self, rows: u64) {
        self.counters.add(StatusCounter::SortScan, 1);
        self.counters.add(StatusCounter::SortRows, rows);
    }

    /// The open table with this id. Error 1412 if it was dropped.
    pub fn table(&self, id: TableId) -> Result<Arc<Table>, SqlError> {
        self.engine
            .table(id)
            .ok_or_else(|| SqlError::new(ErrorCode::ER_TABLE_DEF_CHANGED, &[]))
    }
}

impl Checkpoint for Runtime<'_> {
    #[inline]
    fn checkpoint(&self, work: u64) -> Result<(), SqlError> {
        match self.cx.is_due(work) {
            true => self.cx.look(|| self.pause()),
            false => Ok(()),
        }
    }
}

/// Whether the plain reads of a statement lock rows. Under REPEATABLE READ those of a statement
/// that `writes` do, because its changes depend on what it reads. Under SERIALIZABLE all do, except
/// those of a query that is a transaction by itself.
pub(crate) fn locks_reads(session: &EngineSession, writes: bool) -> bool {
    match session.isolation() {
        Isolation::Serializable => writes || session.is_explicit(),
        Isolation::RepeatableRead => writes,
        _ => false,
    }
}

fn wait_or_fail(
    cx: &mut dyn StatementFiber,
    stop: Stop,
    timeout: Option<std::time::Duration>,
) -> Result<(), SqlError> {
    match stop {
        Stop::Wait(wait) => {
            let deadline = timeout.and_then(|t| Instant::now().checked_add(t));
            cx.wait(std::pin::pin!(wait), deadline)
                .map_err(Interrupt::to_sql)
        }
        Stop::Error(error) => Err(engine_error(&error)),
    }
}

/// Calls `f` again after each wait, outside of a statement: for commit, rollback and similar calls.
///
/// # Errors
/// MySQL's error for the engine's error; 1317 if the session is killed meanwhile.
pub fn drive<T>(
    cx: &mut dyn StatementFiber,
    mut f: impl FnMut() -> Result<T, Stop>,
) -> Result<T, SqlError> {
    loop {
        match f() {
            Ok(value) => return Ok(value),
            Err(stop) => wait_or_fail(cx, stop, None)?,
        }
    }
}

/// The error for a damaged or missing file of a table, with all known details of the place.
fn damage(error: &EngineError, table: &TableDef) -> SqlError {
    let name = format!("`{}`.`{}`", table.schema, table.name);
    match error {
        EngineError::Store(StoreError::Corrupt { page, .. }) => SqlError::with_message(
            ErrorCode::ER_TABLE_CORRUPT,
            format!(
                "Table {name}: {error}, at offset {} of its file",
                u64::from(page.page) * nfold_engine::PAGE_SIZE as u64
            ),
        ),
        _ => SqlError::new(ErrorCode::ER_TABLESPACE_MISSING, &[&name]),
    }
}

/// MySQL's error for an engine error.
pub fn engine_error(error: &EngineError) -> SqlError {
    use ErrorCode::*;
    match error {
        EngineError::Deadlock => SqlError::new(ER_LOCK_DEADLOCK, &[]),
        EngineError::Stopped => SqlError::new(ER_QUERY_INTERRUPTED, &[]),
        EngineError::LockNoWait => SqlError::new(ER_LOCK_NOWAIT, &[]),
        EngineError::ReadOnlyTransaction => {
            SqlError::new(ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION, &[])
        }
        EngineError::RowTooLarge => SqlError::new(ER_TOO_BIG_ROWSIZE, &[&65_535]),
        EngineError::KeyTooLong { limit } => SqlError::new(ER_TOO_LONG_KEY, &[&limit]),
        EngineError::TableChanged => SqlError::new(ER_TABLE_DEF_CHANGED, &[]),
        EngineError::TableDamaged { schema, table } => {
            SqlError::new(ER_TABLE_CORRUPT, &[schema, table])
        }
        EngineError::NoSuchSavepoint => SqlError::new(ER_SP_DOES_NOT_EXIST, &[&"SAVEPOINT", &""]),
        EngineError::Store(StoreError::DiskFull) => SqlError::new(ER_RECORD_FILE_FULL, &[&"table"]),
        other => SqlError::with_message(ER_UNKNOWN_ERROR, other.to_string()),
    }
}
