//! A copy of the session's state for the expressions of copied rows: ALTER TABLE evaluates them on
//! a thread that may block and cannot access the session.

use std::cell::Cell;

use nfold_exec::SessionEnv;
use nfold_observe::SessionCounters;
use nfold_plan::{SqlMode, VarScope};
use nfold_types::collation::CollationId;
use nfold_types::temporal::TimeZone;
use nfold_types::{ColumnType, ErrorCode, SqlError, Timestamp, Value};

use crate::session::env::Env;

/// See the module's header.
pub struct RowEnv {
    mode: SqlMode,
    now: Timestamp,
    zone: TimeZone,
    collation: CollationId,
    connection_id: u64,
    names: [String; 3],
    database: Option<String>,
    div_precision_increment: u8,
    max_allowed_packet: usize,
    random: Cell<u64>,
    counters: SessionCounters,
}

impl RowEnv {
    /// Copies the current state of the session.
    pub fn of(env: &Env) -> RowEnv {
        RowEnv {
            mode: env.sql_mode(),
            now: env.now(),
            zone: env.time_zone().clone(),
            collation: env.collation(),
            connection_id: env.connection_id(),
            names: [env.user(), env.current_user(), env.version()],
            database: SessionEnv::database(env),
            div_precision_increment: env.div_precision_increment(),
            max_allowed_packet: env.max_allowed_packet(),
            random: Cell::new(env.random()),
            counters: SessionCounters::default(),
        }
    }
}

impl SessionEnv for RowEnv {
    fn counters(&self) -> &SessionCounters {
        &self.counters
    }

    fn sysvar(&self, _: Option<VarScope>, name: &str) -> Result<Value, SqlError> {
        let code = ErrorCode::ER_UNKNOWN_SYSTEM_VARIABLE;
        Err(SqlError::new(code, &[&name]))
    }

    fn user_var(&self, _: &str) -> Value {
        Value::Null
    }

    fn set_user_var(&self, _: &str, _: Value, _: Option<&ColumnType>) -> Result<(), SqlError> {
        Ok(())
    }

    fn sql_mode(&self) -> SqlMode {
        self.mode
    }

    fn now(&self) -> Timestamp {
        self.now
    }

    fn clock(&self) -> Timestamp {
        self.now
    }

    fn time_zone(&self) -> &TimeZone {
        &self.zone
    }

    fn collation(&self) -> CollationId {
        self.collation
    }

    fn last_insert_id(&self) -> u64 {
        0
    }

    fn set_last_insert_id(&self, _: u64) {}

    fn found_rows(&self) -> u64 {
        0
    }

    fn row_count(&self) -> i64 {
        0
    }

    fn connection_id(&self) -> u64 {
        self.connection_id
    }

    fn user(&self) -> String {
        self.names[0].clone()
    }

    fn current_user(&self) -> String {
        self.names[1].clone()
    }

    fn database(&self) -> Option<String> {
        self.database.clone()
    }

    fn version(&self) -> String {
        self.names[2].clone()
    }

    fn random(&self) -> u64 {
        // xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators").
        let mut x = self.random.get() | 1;
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        self.random.set(x);
        x.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn div_precision_increment(&self) -> u8 {
        self.div_precision_increment
    }

    fn max_allowed_packet(&self) -> usize {
        self.max_allowed_packet
    }

    fn isolation(&self) -> nfold_engine::Isolation {
        nfold_engine::Isolation::RepeatableRead
    }
}
