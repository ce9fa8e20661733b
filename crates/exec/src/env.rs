//! What the executor asks of the session, and what it hands to it.

pub(crate) mod batch;
pub mod params;
pub(crate) mod scratch;
pub(crate) mod stoppable_sort;

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use nfold_catalog::UserLockSession;
use nfold_plan::query::ColumnMeta;
use nfold_plan::{SqlMode, Value, VarScope};
use nfold_types::collation::CollationId;
use nfold_types::temporal::TimeZone;
use nfold_types::wire::RowFrames;
use nfold_types::{CHECKPOINT_WORK, Charset, Checkpoint, ColumnType};
use nfold_types::{SqlError, Timestamp};

/// Session state that expressions read and, for user variables, write. The session implements it with interior mutability;
/// nothing here is called while the session itself runs.
pub trait SessionEnv {
    /// `@@[scope.]name`. Error 1193 for an unknown name.
    fn sysvar(&self, scope: Option<VarScope>, name: &str) -> Result<Value, SqlError>;
    /// `@name` (lower case); NULL where it was never set.
    fn user_var(&self, name: &str) -> Value;
    /// As [`Self::user_var`], but of a text longer than `max` bytes the length as an error.
    fn short_user_var(&self, name: &str, max: usize) -> Result<Value, usize> {
        let _ = max;
        Ok(self.user_var(name))
    }
    /// Appends these bytes of a user variable's text; nothing where it has become shorter.
    fn append_user_var(&self, name: &str, range: Range<usize>, to: &mut Vec<u8>) {
        if let Value::Bytes(text) = self.user_var(name) {
            to.extend_from_slice(text.get(range).unwrap_or_default());
        }
    }
    /// Sets a user variable to a value of an expression of type `ty`. Without one, the variable
    /// keeps the type that it has for NULL.
    ///
    /// # Errors
    /// 3170: the session's variables would take too much memory.
    fn set_user_var(
        &self,
        name: &str,
        value: Value,
        ty: Option<&ColumnType>,
    ) -> Result<(), SqlError>;
    fn sql_mode(&self) -> SqlMode;
    /// `NOW()` of this statement, with microseconds; the same however often it is asked for (`SET timestamp` fixes it).
    fn now(&self) -> Timestamp;
    /// The clock itself, for `SYSDATE()`.
    fn clock(&self) -> Timestamp;
    /// `@@time_zone`
    fn time_zone(&self) -> &TimeZone;
    /// `collation_connection`
    fn collation(&self) -> CollationId;
    /// `character_set_results`; `None` (NULL and binary): strings go out in the character sets they have.
    fn result_charset(&self) -> Option<&'static Charset> {
        Some(self.collation().known().charset)
    }
    fn last_insert_id(&self) -> u64;
    /// `LAST_INSERT_ID(expr)`
    fn set_last_insert_id(&self, id: u64);
    fn found_rows(&self) -> u64;
    fn row_count(&self) -> i64;
    fn connection_id(&self) -> u64;
    /// `USER()`: the name and host the client gave.
    fn user(&self) -> String;
    /// `CURRENT_USER()`: the account that was matched.
    fn current_user(&self) -> String;
    fn database(&self) -> Option<String>;
    /// `VERSION()`
    fn version(&self) -> String;
    /// The next two words of the session's random sequence (`RAND()` without a seed).
    fn random(&self) -> u64;
    /// The session's user-level locks; `None`: not supported here.
    fn user_locks(&self) -> Option<&UserLockSession> {
        None
    }
    /// The session waits for a user-level lock: breaks the deadlocks that it is part of. Called when the wait begins, and again
    /// while it lasts, as another session's wait may close a cycle.
    fn break_user_lock_deadlocks(&self) {}
    /// `div_precision_increment`
    fn div_precision_increment(&self) -> u8 {
        4
    }
    /// `group_concat_max_len`, bytes
    fn group_concat_max_len(&self) -> usize {
        1024
    }
    /// `max_sort_length`, bytes of weights
    fn max_sort_length(&self) -> usize {
        1024
    }
    /// `cte_max_recursion_depth`: how often a recursive common table expression is gone through.
    fn cte_max_recursion_depth(&self) -> u64 {
        1000
    }
    /// `max_allowed_packet`, bytes: longer strings become NULL with warning 1301.
    fn max_allowed_packet(&self) -> usize {
        64 << 20
    }
    /// `regexp_time_limit`, `regexp_stack_limit`
    fn regexp_limits(&self) -> nfold_regexp::Limits {
        nfold_regexp::Limits::default()
    }
    /// Memory that one sort or one hash table may use before it spills, bytes.
    fn work_memory(&self) -> usize {
        8 << 20
    }
    /// `innodb_lock_wait_timeout`
    fn lock_wait_timeout(&self) -> Duration {
        Duration::from_secs(50)
    }
    /// The isolation level that a new transaction of this statement gets.
    fn isolation(&self) -> nfold_engine::Isolation;
    /// A new transaction of this statement is READ ONLY.
    fn read_only(&self) -> bool {
        false
    }
    /// Rows of a system view, each as long as the view has columns; values are of the columns' kinds.
    fn virtual_rows(
        &self,
        _schema: &str,
        _name: &str,
        _row: &mut dyn FnMut(&[Value]) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        Ok(())
    }
    /// `SET insert_id`: the next automatic value of the statement at hand, if one was given.
    fn insert_id(&self) -> Option<u64> {
        None
    }
    /// Directory of spill files.
    fn tmpdir(&self) -> std::path::PathBuf {
        std::env::temp_dir()
    }
    /// `auto_increment_increment`, `auto_increment_offset`
    fn auto_increment(&self) -> (u64, u64) {
        (1, 1)
    }
}

/// Why the executor must stop.
#[derive(Debug, Clone, PartialEq)]
pub enum Interrupt {
    /// `KILL QUERY`: error 1317.
    Killed,
    /// `KILL`, or the connection is gone.
    ConnectionKilled,
    /// `max_execution_time` has passed: error 3024.
    TimedOut,
    /// A deadline of the wait itself has passed.
    Deadline,
    /// Anything else, with its error.
    Error(SqlError),
}

impl Interrupt {
    /// The error that the client gets.
    pub fn to_sql(self) -> SqlError {
        use nfold_types::ErrorCode::*;
        match self {
            Interrupt::Killed | Interrupt::ConnectionKilled => {
                SqlError::new(ER_QUERY_INTERRUPTED, &[])
            }
            Interrupt::TimedOut => SqlError::new(ER_QUERY_TIMEOUT, &[]),
            Interrupt::Deadline => SqlError::new(ER_LOCK_WAIT_TIMEOUT, &[]),
            Interrupt::Error(e) => e,
        }
    }
}

/// The fiber that a statement runs in.
pub trait StatementFiber {
    /// Suspends until `w` is done.
    fn wait(
        &mut self,
        w: Pin<&mut dyn Future<Output = ()>>,
        deadline: Option<Instant>,
    ) -> Result<(), Interrupt>;
    /// Suspends until `w` is done, whoever kills the statement meanwhile: a commit cannot be taken back.
    fn wait_through(&mut self, w: Pin<&mut dyn Future<Output = ()>>);
    /// Polled with every batch: cancel flag, time slice.
    fn tick(&mut self) -> Result<(), Interrupt>;
    /// The cancel flag alone: never suspends.
    fn interrupted(&self) -> Result<(), Interrupt>;
    /// Runs `job` on a thread that may block, and waits for it.
    fn offload(&mut self, job: Box<dyn FnOnce() + Send>) -> Result<(), Interrupt>;
    /// As [`Self::offload`] for a job that looks at `asked`, which is set when the statement is killed, runs out of time, or loses its
    /// client. The job is waited for all the same.
    fn offload_stoppable(
        &mut self,
        job: Box<dyn FnOnce() + Send>,
        asked: &AtomicBool,
    ) -> Result<(), Interrupt>;
    /// From its start on the statement may take so long; `None`: there is no limit.
    fn limit_time(&mut self, limit: Option<Duration>);
    /// Suspends for so long.
    fn sleep(&mut self, time: Duration) -> Result<(), Interrupt>;
}

/// Counts work, and ticks when about 100 µs of it have been done.
pub struct Checkpoints<'c> {
    cx: RefCell<&'c mut dyn StatementFiber>,
    work: Cell<u64>,
    /// The error that a look ended with: whoever passes over it meets it again.
    stopped: RefCell<Option<SqlError>>,
}

impl<'c> Checkpoints<'c> {
    /// For a computation in this fiber.
    pub fn new(cx: &'c mut dyn StatementFiber) -> Checkpoints<'c> {
        Checkpoints {
            cx: RefCell::new(cx),
            work: Cell::new(0),
            stopped: RefCell::new(None),
        }
    }

    /// The fiber.
    pub(crate) fn cx(&self) -> std::cell::RefMut<'_, &'c mut dyn StatementFiber> {
        self.cx.borrow_mut()
    }

    /// Adds work; true: it is time to look at the statement.
    #[inline]
    pub(crate) fn is_due(&self, work: u64) -> bool {
        let done = self.work.get().saturating_add(work);
        let due = done >= CHECKPOINT_WORK;
        self.work.set(if due { 0 } else { done });
        due
    }

    /// Looks at the statement by `look`, unless it was stopped before.
    #[cold]
    pub(crate) fn look(&self, look: impl FnOnce() -> Result<(), SqlError>) -> Result<(), SqlError> {
        let stopped = self.stopped.borrow().clone();
        let looked = stopped.map_or_else(look, Err);
        if let Err(e) = &looked {
            *self.stopped.borrow_mut() = Some(e.clone());
            // The next checkpoint is due at once.
            self.work.set(CHECKPOINT_WORK);
        }
        looked
    }
}

impl Checkpoint for Checkpoints<'_> {
    #[inline]
    fn checkpoint(&self, work: u64) -> Result<(), SqlError> {
        match self.is_due(work) {
            true => self.look(|| self.cx().tick().map_err(Interrupt::to_sql)),
            false => Ok(()),
        }
    }
}

/// How values go to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireFormat {
    Text,
    Binary,
}

/// Takes the rows of a result set.
pub trait RowSink {
    /// Called once, before the first row, also when there is none.
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<(), SqlError>;
    fn format(&self) -> WireFormat;
    /// The buffer that the next row's bytes are appended to: for text, length-encoded values (0xfb for NULL); for binary, the
    /// whole row with its 0x00 and null map.
    fn row_buffer(&mut self) -> &mut Vec<u8>;
    /// The row in the buffer is whole. `row_buffer` may be flushed here.
    fn end_row(&mut self) -> Result<(), SqlError>;
    /// Where many rows can be put one behind the other; `None`: they go by [`row_buffer`](Self::row_buffer), and between that and
    /// [`end_row`](Self::end_row) there are no frames. After them comes [`framed`](Self::framed).
    fn frames(&mut self) -> Option<RowFrames<'_>> {
        None
    }
    /// So many rows were put into [`frames`](Self::frames). They may be flushed here.
    fn framed(&mut self, rows: u64) -> Result<(), SqlError> {
        let _ = rows;
        Ok(())
    }
}
