//! The interface between the executor and the session.

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

use nfold_binlog::GtidSet;
use nfold_catalog::UserLockSession;
use nfold_observe::SessionCounters;
use nfold_plan::query::ColumnMeta;
use nfold_plan::{SqlMode, Value, VarScope};
use nfold_types::collation::CollationId;
use nfold_types::convert::store::StoreMode;
use nfold_types::temporal::{DateFlags, TimeZone};
use nfold_types::wire::RowFrames;
use nfold_types::{CHECKPOINT_WORK, Charset, Checkpoint, ColumnType, Locale};
use nfold_types::{SqlError, Timestamp};

/// The columns of row images: `binlog_row_image`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RowImages {
    #[default]
    Full,
    /// The old image has the key that finds the row, the new image the written columns.
    Minimal,
    /// As `Full`, but without BLOB and TEXT columns that are not needed.
    NoBlob,
}

/// How a session's row changes are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoggedChanges {
    /// Added to the kinds of changes.
    pub flags: u8,
    pub images: RowImages,
}

/// Session state that expressions read and, for user variables, write. The session implements it
/// with interior mutability. Nothing here is called while the session's own code runs.
pub trait SessionEnv {
    /// The session's status counters.
    fn counters(&self) -> &SessionCounters;
    /// `@@[scope.]name`. Error 1193 for an unknown name.
    fn sysvar(&self, scope: Option<VarScope>, name: &str) -> Result<Value, SqlError>;
    /// `@name` (in lower case). NULL if the variable was never set.
    fn user_var(&self, name: &str) -> Value;
    /// As [`Self::user_var`], but for a string longer than `max` bytes returns its length as the
    /// error.
    fn short_user_var(&self, name: &str, max: usize) -> Result<Value, usize> {
        let _ = max;
        Ok(self.user_var(name))
    }
    /// Appends a byte range of a string variable's value. Appends nothing if the value has become
    /// shorter.
    fn append_user_var(&self, name: &str, range: Range<usize>, to: &mut Vec<u8>) {
        if let Value::Bytes(text) = self.user_var(name) {
            to.extend_from_slice(text.get(range).unwrap_or_default());
        }
    }
    /// Sets a user variable to a value of an expression of type `ty`. Without a type (for NULL),
    /// the variable keeps its type.
    ///
    /// # Errors
    /// 3170 if the session's variables would take too much memory.
    fn set_user_var(
        &self,
        name: &str,
        value: Value,
        ty: Option<&ColumnType>,
    ) -> Result<(), SqlError>;
    fn sql_mode(&self) -> SqlMode;
    /// `NOW()`, with microseconds. It returns the same time during the whole statement; `SET
    /// timestamp` overrides it.
    fn now(&self) -> Timestamp;
    /// The current time, for `SYSDATE()`.
    fn clock(&self) -> Timestamp;
    /// `@@time_zone`.
    fn time_zone(&self) -> &TimeZone;
    /// `collation_connection`.
    fn collation(&self) -> CollationId;
    /// `character_set_results`. `None` (NULL or binary): strings are sent in their own character
    /// sets.
    fn result_charset(&self) -> Option<&'static Charset> {
        Some(self.collation().known().charset)
    }
    fn last_insert_id(&self) -> u64;
    /// How row changes are recorded for the binary log; `None`: they are not.
    fn logged_changes(&self) -> Option<LoggedChanges> {
        None
    }
    /// `LAST_INSERT_ID(expr)`.
    fn set_last_insert_id(&self, id: u64);
    fn found_rows(&self) -> u64;
    fn row_count(&self) -> i64;
    fn connection_id(&self) -> u64;
    /// `USER()`: the name and host of the client.
    fn user(&self) -> String;
    /// `CURRENT_USER()`: the account that authenticated the client.
    fn current_user(&self) -> String;

    /// `CURRENT_ROLE()`: the active roles, or `NONE`.
    fn current_role(&self) -> String {
        "NONE".into()
    }
    fn database(&self) -> Option<String>;
    /// `VERSION()`.
    fn version(&self) -> String;
    /// The next two words of the session's random sequence, for `RAND()` without a seed.
    fn random(&self) -> u64;
    /// The session's user-level locks; `None` if they are not supported here.
    fn user_locks(&self) -> Option<&UserLockSession> {
        None
    }
    /// Whether the server has executed all transactions of `set`.
    fn has_executed(&self, _set: &GtidSet) -> bool {
        false
    }
    /// The strength of a password by the server's rules: from 0 to 100.
    fn password_strength(&self, _password: &str) -> u64 {
        0
    }
    /// Resolves deadlocks that this session is part of. Called when it begins to wait for a
    /// user-level lock, and repeatedly during the wait, because another session's wait may close a
    /// cycle.
    fn break_user_lock_deadlocks(&self) {}
    /// `div_precision_increment`.
    fn div_precision_increment(&self) -> u8 {
        4
    }
    /// `lc_time_names`: names of days and months.
    fn time_names(&self) -> &'static Locale {
        Locale::english()
    }
    /// `group_concat_max_len`, in bytes.
    fn group_concat_max_len(&self) -> usize {
        1024
    }
    /// `max_sort_length`, in bytes of weights.
    fn max_sort_length(&self) -> usize {
        1024
    }
    /// `cte_max_recursion_depth`: the maximum number of rounds of a recursive common table
    /// expression.
    fn cte_max_recursion_depth(&self) -> u64 {
        1000
    }
    /// `max_allowed_packet`, in bytes. Longer strings become NULL with warning 1301.
    fn max_allowed_packet(&self) -> usize {
        64 << 20
    }
    /// `regexp_time_limit` and `regexp_stack_limit`.
    fn regexp_limits(&self) -> nfold_regexp::Limits {
        nfold_regexp::Limits::default()
    }
    /// The memory in bytes that one sort or one hash table may use before it spills.
    fn work_memory(&self) -> usize {
        8 << 20
    }
    /// `innodb_lock_wait_timeout`.
    fn lock_wait_timeout(&self) -> Duration {
        Duration::from_secs(50)
    }
    /// The isolation level of a transaction that this statement starts.
    fn isolation(&self) -> nfold_engine::Isolation;
    /// Whether a transaction that this statement starts is READ ONLY.
    fn read_only(&self) -> bool {
        false
    }
    /// The rows of a system table: one value for each column, of the column's kind.
    fn virtual_rows(
        &self,
        _schema: &str,
        _name: &str,
        _row: &mut dyn FnMut(&[Value]) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        Ok(())
    }
    /// `SET insert_id`: the next AUTO_INCREMENT value of the current statement, if it was set.
    fn insert_id(&self) -> Option<u64> {
        None
    }
    /// The directory of spill files.
    fn tmpdir(&self) -> std::path::PathBuf {
        std::env::temp_dir()
    }
    /// `auto_increment_increment` and `auto_increment_offset`.
    fn auto_increment(&self) -> (u64, u64) {
        (1, 1)
    }
}

/// The reason why the executor must stop.
#[derive(Debug, Clone, PartialEq)]
pub enum Interrupt {
    /// `KILL QUERY`: error 1317.
    Killed,
    /// `KILL`, or the client has disconnected.
    ConnectionKilled,
    /// `max_execution_time` has passed: error 3024.
    TimedOut,
    /// A deadline of the wait itself has passed.
    Deadline,
    /// Any other reason, with its error.
    Error(SqlError),
}

impl Interrupt {
    /// The error that the client receives.
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

/// The fiber in which a statement runs.
pub trait StatementFiber {
    /// Suspends the fiber until `w` is done.
    fn wait(
        &mut self,
        w: Pin<&mut dyn Future<Output = ()>>,
        deadline: Option<Instant>,
    ) -> Result<(), Interrupt>;
    /// Suspends the fiber until `w` is done, even if the statement is killed meanwhile. For
    /// commits, which cannot be taken back.
    fn wait_through(&mut self, w: Pin<&mut dyn Future<Output = ()>>);
    /// Checks for KILL and for the end of the time slice; may suspend. Called after each batch.
    fn tick(&mut self) -> Result<(), Interrupt>;
    /// Checks for KILL only. Never suspends.
    fn interrupted(&self) -> Result<(), Interrupt>;
    /// Runs `job` on a thread that may block, and suspends until it is done.
    fn offload(&mut self, job: Box<dyn FnOnce() + Send>) -> Result<(), Interrupt>;
    /// As [`Self::offload`], for a job that polls a stop flag. The flag is set when the statement
    /// is killed, runs out of time, or loses its client. The fiber still waits until the job has
    /// returned.
    fn offload_stoppable(
        &mut self,
        job: Box<dyn FnOnce() + Send>,
        asked: &AtomicBool,
    ) -> Result<(), Interrupt>;
    /// Limits the statement's time, counted from its start. `None`: no limit.
    fn limit_time(&mut self, limit: Option<Duration>);
    /// Suspends the fiber for this time.
    fn sleep(&mut self, time: Duration) -> Result<(), Interrupt>;
}

/// Counts work, and calls `tick` after about 100 µs of it.
pub struct Checkpoints<'c> {
    cx: RefCell<&'c mut dyn StatementFiber>,
    work: Cell<u64>,
    /// The error of an earlier check. It is returned again if a caller ignored it.
    stopped: RefCell<Option<SqlError>>,
}

impl<'c> Checkpoints<'c> {
    /// For a computation that runs in this fiber.
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

    /// Adds work. Returns whether a check is due.
    #[inline]
    pub(crate) fn is_due(&self, work: u64) -> bool {
        let done = self.work.get().saturating_add(work);
        let due = done >= CHECKPOINT_WORK;
        self.work.set(if due { 0 } else { done });
        due
    }

    /// Runs the check `look`, unless the statement has already been stopped.
    #[cold]
    pub(crate) fn look(&self, look: impl FnOnce() -> Result<(), SqlError>) -> Result<(), SqlError> {
        let stopped = self.stopped.borrow().clone();
        let looked = stopped.map_or_else(look, Err);
        if let Err(e) = &looked {
            *self.stopped.borrow_mut() = Some(e.clone());
            // Makes the next checkpoint due at once.
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

/// The encoding of values for the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireFormat {
    Text,
    Binary,
}

/// The file that LOAD DATA reads.
pub trait FileSource {
    /// A collation of the file's character set.
    fn collation(&self) -> CollationId;
    /// Appends the next bytes of the file to `to`; false: it has ended.
    ///
    /// # Errors
    /// The file cannot be read, or the statement has been interrupted meanwhile.
    fn read(&mut self, fiber: &mut dyn StatementFiber, to: &mut Vec<u8>) -> Result<bool, SqlError>;
}

/// The column definitions of a result as a [`RowSink`] encoded them, which it may send again the
/// next time the same plan runs.
#[derive(Debug, Default)]
pub struct EncodedColumns {
    /// The inputs of the encoding besides the columns. 0: nothing is encoded.
    pub key: u32,
    pub bytes: Vec<u8>,
}

/// Receives the rows of a result set.
pub trait RowSink {
    /// Called once before the first row, even if there is no row.
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<(), SqlError>;
    /// As [`columns`](Self::columns), with memory that belongs to the columns.
    fn columns_again(
        &mut self,
        columns: &[ColumnMeta],
        _encoded: &mut EncodedColumns,
    ) -> Result<(), SqlError> {
        self.columns(columns)
    }
    fn format(&self) -> WireFormat;
    /// The buffer to which the next row is appended. Text protocol: length-encoded values, 0xfb for
    /// NULL. Binary protocol: the whole row with its 0x00 byte and null bitmap.
    fn row_buffer(&mut self) -> &mut Vec<u8>;
    /// Ends the row in the buffer. The sink may send the buffer now.
    fn end_row(&mut self) -> Result<(), SqlError>;
    /// As [`end_row`](Self::end_row), with `value` inserted at byte `at` of the buffer. A sink that
    /// sends need not copy the value.
    fn end_row_with(&mut self, at: usize, value: &[u8]) -> Result<(), SqlError> {
        let buffer = self.row_buffer();
        buffer.splice(at..at, value.iter().copied());
        self.end_row()
    }
    /// A buffer for many consecutive rows with packet headers. `None`: the rows are passed one by
    /// one through [`row_buffer`](Self::row_buffer). Between `row_buffer` and
    /// [`end_row`](Self::end_row) the result is always `None`. The caller reports the rows by
    /// [`framed`](Self::framed).
    fn frames(&mut self) -> Option<RowFrames<'_>> {
        None
    }
    /// Reports how many rows were written into [`frames`](Self::frames). The sink may send them
    /// now.
    fn framed(&mut self, rows: u64) -> Result<(), SqlError> {
        let _ = rows;
        Ok(())
    }
    /// The file that the statement reads, if it is LOAD DATA.
    fn file(&mut self) -> Option<&mut dyn FileSource> {
        None
    }
}

/// How values are stored under the session's settings.
#[inline]
pub(crate) fn store_mode(env: &dyn SessionEnv, strict: bool, ignore: bool) -> StoreMode {
    let sql_mode = env.sql_mode();
    StoreMode {
        strict,
        ignore,
        dates: DateFlags {
            no_zero_in_date: sql_mode.has(SqlMode::NO_ZERO_IN_DATE),
            no_zero_date: sql_mode.has(SqlMode::NO_ZERO_DATE),
            allow_invalid: sql_mode.has(SqlMode::ALLOW_INVALID_DATES),
        },
        truncate_fractional: sql_mode.has(SqlMode::TIME_TRUNCATE_FRACTIONAL),
        time_zone: env.time_zone().clone(),
        now: env.now(),
    }
}
