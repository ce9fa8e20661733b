//! The session state that expressions use: variables, the clock, the account, the results of the
//! last statement.
//!
//! The session changes it between statements. During a statement the executor reads it through
//! [`SessionEnv`], and writes only to its cells.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use nfold_binlog::GtidSet;
use nfold_catalog::UserLockSession;
use nfold_exec::eval::convert;
use nfold_exec::{LoggedChanges, SessionEnv};
use nfold_observe::{OwnCounters, SessionCounters};
use nfold_plan::expr::Class;
use nfold_plan::{SqlMode, VarScope};
use nfold_sync::words::prefetch_line_outer;
use nfold_types::collation::CollationId;
use nfold_types::temporal::{MICROS_PER_SECOND, TimeZone};
use nfold_types::{ColumnType, ErrorCode, Locale, SqlError, TextSize, Timestamp, TypeKind, Value};
use rustc_hash::FxHashMap;

use super::optimizer_traces::{TraceLimits, Traces};
use super::tracking::{TrackedGtids, Tracking};
use super::transaction::engine_isolation;
use super::transaction_info::{Now, TransactionInfo};
use super::vars::{self, Globals, Scope, SessionVars, VarValue};
use super::{ServerState, deadlock};
use crate::net::fiber::compression::{Algorithm, ZLIB_LEVEL};
use crate::net::fiber::handler::{LoginInfo, memory_exceeded};
use crate::net::worker::Exceeded;
use crate::unix_time::unix_us;

/// The longest name of a user variable, in characters.
const USER_VAR_CHARS: usize = 64;

/// A user variable. `collation` is that of a string, if it is not the connection's.
struct UserVar {
    value: Value,
    collation: Option<CollationId>,
    /// The class of its value. NULL has the class of the previous value, or of the assigned
    /// expression.
    class: Class,
}

/// The memory of a user variable in bytes.
fn user_var_bytes(name: &str, value: &Value) -> usize {
    let text = match value {
        Value::Bytes(text) => text.len(),
        _ => 0,
    };
    name.len() + size_of::<UserVar>() + text
}

/// See the module's header.
pub struct Env {
    /// For the rows of system tables.
    pub server: Arc<ServerState>,
    pub globals: Arc<Globals>,
    pub vars: SessionVars,
    pub login: LoginInfo,
    /// The active roles.
    pub active_roles: Vec<nfold_catalog::AccountId>,
    /// The current database. The text is the session's own copy, so that its reference count is not
    /// shared.
    pub database: Option<Arc<str>>,
    /// Incremented with every change of a variable or of the database.
    changes: u64,
    /// The number of warnings and errors of the previous statement, for `@@warning_count` and
    /// `@@error_count`.
    pub warning_count: u64,
    pub error_count: u64,
    /// `SET timestamp`, in microseconds.
    pub fixed_time: Option<i64>,
    /// `SET insert_id`: the next AUTO_INCREMENT value.
    pub insert_id: Cell<u64>,
    pub last_insert_id: Cell<u64>,
    /// The argument of `LAST_INSERT_ID(expr)` in the current statement, for its OK packet.
    pub given_insert_id: Cell<Option<u64>>,
    pub found_rows: Cell<u64>,
    pub row_count: Cell<i64>,
    statement_time: Cell<i64>,
    user_vars: RefCell<FxHashMap<Box<str>, UserVar>>,
    /// The memory of the user variables' names and strings, in bytes.
    user_var_bytes: Cell<usize>,
    user_locks: UserLockSession,
    random: Cell<u64>,
    /// Changes of the session's state that the client has not heard of.
    tracking: Tracking,
    /// The session's status counters.
    pub counters: OwnCounters,
    /// The result goes into a file, so its texts keep their character sets.
    pub writes_file: Cell<bool>,
    /// For `information_schema.OPTIMIZER_TRACE`.
    pub traces: RefCell<Traces>,
}

impl Env {
    /// The state of a new session.
    pub fn new(server: Arc<ServerState>, login: LoginInfo) -> Env {
        let globals = server.globals.clone();
        let vars = SessionVars::new(&globals);
        let session = u64::from(login.connection_id);
        let user_locks = server.engine.catalog().user_locks().clone();
        let counters = server.session_counters.open();
        let now = unix_us();
        let seed = (now as u64) ^ (u64::from(login.connection_id) << 40) | 1;
        Env {
            server,
            globals,
            tracking: Tracking::of_client(login.capabilities, &vars),
            vars,
            login,
            active_roles: Vec::new(),
            database: None,
            changes: 0,
            warning_count: 0,
            error_count: 0,
            fixed_time: None,
            insert_id: Cell::new(0),
            last_insert_id: Cell::new(0),
            given_insert_id: Cell::new(None),
            found_rows: Cell::new(0),
            row_count: Cell::new(-1),
            statement_time: Cell::new(now),
            user_vars: RefCell::default(),
            user_var_bytes: Cell::new(0),
            user_locks: UserLockSession::new(user_locks, session),
            random: Cell::new(seed),
            counters,
            writes_file: Cell::new(false),
            traces: RefCell::default(),
        }
    }

    /// The traces that the session remembers.
    pub fn trace_limits(&self) -> TraceLimits {
        let get = |name| vars::find(name).map(|at| self.vars.get(at).clone());
        let int = |name, default| match get(name) {
            Ok(VarValue::Int(n)) => n,
            _ => default,
        };
        TraceLimits {
            offset: match get("optimizer_trace_offset") {
                Ok(VarValue::Signed(n)) => n,
                _ => -1,
            },
            limit: int("optimizer_trace_limit", 1),
            bytes: int("optimizer_trace_max_mem_size", 1 << 20),
        }
    }

    /// The algorithm and level that the connection's bytes are compressed with; empty and 0: they
    /// are not.
    pub fn compression(&self) -> (&'static str, u8) {
        match Algorithm::of(self.login.capabilities) {
            Some(Algorithm::Zlib) => ("zlib", ZLIB_LEVEL),
            Some(Algorithm::Zstd) => ("zstd", self.login.zstd_level),
            None => ("", 0),
        }
    }

    /// Prefetches the fields that every statement uses.
    pub fn prefetch(&self) {
        prefetch_line_outer(&self.vars);
        prefetch_line_outer(&self.database);
        prefetch_line_outer(&self.changes);
        prefetch_line_outer(&self.statement_time);
        prefetch_line_outer(&self.given_insert_id);
        prefetch_line_outer(&self.found_rows);
        prefetch_line_outer(&self.fixed_time);
        prefetch_line_outer(&self.tracking);
    }

    /// Starts a statement: sets NOW() to `unix_us`, microseconds since 1970, unless `SET timestamp`
    /// has set it.
    #[inline]
    pub fn begin_statement(&self, unix_us: i64) {
        self.given_insert_id.set(None);
        self.statement_time.set(self.fixed_time.unwrap_or(unix_us));
    }

    /// When the statement began, in microseconds since 1970, without regard to `SET timestamp`.
    pub fn started_us(&self) -> u64 {
        match self.fixed_time {
            None => self.statement_time.get() as u64,
            Some(_) => unix_us() as u64,
        }
    }

    /// Removes all user variables.
    pub fn clear_user_vars(&self) {
        self.user_vars.borrow_mut().clear();
        self.user_var_bytes.set(0);
    }

    /// The value of a user variable as a parameter: a text is converted to the character set of the
    /// connection.
    pub fn parameter(&self, name: &str) -> Value {
        let value = self.user_var(name);
        let from = self.user_var_type(name).charset();
        let to = self.collation().known().charset;
        match value {
            Value::Bytes(text) if from != to && !from.is_binary() && !to.is_binary() => {
                let mut converted = Vec::with_capacity(text.len());
                nfold_types::charset::convert(from, to, &text, &mut converted);
                Value::Bytes(converted)
            }
            value => value,
        }
    }

    /// The type of a user variable's current value.
    pub fn user_var_type(&self, name: &str) -> ColumnType {
        let long = |kind: TypeKind, collation: CollationId| ColumnType {
            width: TextSize::Medium.max_bytes() as u32,
            ..ColumnType::string(kind, collation)
        };
        let number = |ty: ColumnType, width: u32| ColumnType { width, ..ty };
        let vars = self.user_vars.borrow();
        let found = vars.get(name);
        match found.map(|v| (v.class, &v.value)) {
            None => ColumnType::string(TypeKind::VarBinary(65_532), CollationId::BINARY),
            Some((Class::Null, _)) => long(TypeKind::Blob(TextSize::Medium), CollationId::BINARY),
            Some((Class::Int, Value::UInt(_))) => number(ColumnType::bigint().with_unsigned(), 21),
            Some((Class::Int, _)) => number(ColumnType::bigint(), 21),
            Some((Class::Double, _)) => number(ColumnType::double(), 23),
            Some((Class::Decimal, _)) => ColumnType::decimal(65, 30),
            Some(_) => {
                let own = found.and_then(|v| v.collation);
                let collation = own.unwrap_or_else(|| self.collation());
                let size = match collation.known().charset.max_len {
                    1 => TextSize::Medium,
                    _ => TextSize::Long,
                };
                match collation == CollationId::BINARY {
                    true => long(TypeKind::Blob(size), collation),
                    false => long(TypeKind::Text(size), collation),
                }
            }
        }
    }

    /// The position of a variable that the session sees. Error 1193 if it does not exist.
    pub fn find_var(&self, name: &str) -> Result<usize, SqlError> {
        let at = vars::find(name)?;
        match self.sees_var(at) {
            true => Ok(at),
            false => Err(SqlError::new(
                ErrorCode::ER_UNKNOWN_SYSTEM_VARIABLE,
                &[&name],
            )),
        }
    }

    /// Whether the variable at a position exists: those of components may not.
    pub fn sees_var(&self, at: usize) -> bool {
        self.server
            .components
            .has_variable(vars::definitions()[at].name)
    }

    /// The value of a system variable for SHOW VARIABLES and `@@`.
    pub fn read_var(&self, at: usize, global: bool) -> VarValue {
        self.with_var(at, global, VarValue::clone)
    }

    /// As [`Env::read_var`], but passes the value by reference, so that no reference is counted.
    fn with_var<T>(&self, at: usize, global: bool, f: impl FnOnce(&VarValue) -> T) -> T {
        let def = &vars::definitions()[at];
        if matches!(def.name, "gtid_executed" | "gtid_purged") {
            return f(&VarValue::text(self.server.gtids(def.name).to_string()));
        }
        if def.name == "gtid_owned" {
            let of = (!global).then_some(self.login.connection_id);
            let log = self.server.binlog.as_ref();
            return f(&VarValue::text(
                log.map_or_else(String::new, |log| log.owned_gtids(of)),
            ));
        }
        if global || def.scope == Scope::Global {
            return self.globals.with_value(at, f);
        }
        let made = match def.name {
            "warning_count" => VarValue::Int(self.warning_count),
            "error_count" => VarValue::Int(self.error_count),
            "last_insert_id" | "identity" => VarValue::Int(self.last_insert_id.get()),
            "insert_id" => VarValue::Int(self.insert_id.get()),
            "pseudo_thread_id" => VarValue::Int(u64::from(self.login.connection_id)),
            "timestamp" => {
                VarValue::Real(self.statement_time.get() as f64 / MICROS_PER_SECOND as f64)
            }
            _ => return f(self.vars.get(at)),
        };
        f(&made)
    }

    /// The scope that a reference to a variable reads: true for the global value.
    ///
    /// # Errors
    /// 1238 if the variable does not have this scope.
    pub fn scope_of(&self, at: usize, scope: Option<VarScope>) -> Result<bool, SqlError> {
        let def = &vars::definitions()[at];
        let wrong = |kind: &str| {
            SqlError::new(
                ErrorCode::ER_INCORRECT_GLOBAL_LOCAL_VAR,
                &[&def.name, &kind],
            )
        };
        match (scope, def.scope) {
            (None, s) => Ok(s == Scope::Global),
            (Some(VarScope::Session), Scope::Global) => Err(wrong("GLOBAL")),
            (Some(VarScope::Session), _) => Ok(false),
            (Some(_), Scope::Session) => Err(wrong("SESSION")),
            (Some(_), _) => Ok(true),
        }
    }

    /// The user's names: that of the login, and that of the account.
    pub fn user_names(&self) -> [&str; 2] {
        [&self.login.user, &self.login.account_user]
    }

    /// The user and the host of the account.
    pub fn account(&self) -> (&str, &str) {
        (&self.login.account_user, &self.login.account_host)
    }
}

impl SessionEnv for Env {
    fn counters(&self) -> &SessionCounters {
        &self.counters
    }

    fn sysvar(&self, scope: Option<VarScope>, name: &str) -> Result<Value, SqlError> {
        let at = self.find_var(name)?;
        let global = self.scope_of(at, scope)?;
        Ok(self.with_var(at, global, VarValue::to_value))
    }

    fn user_var(&self, name: &str) -> Value {
        self.user_vars
            .borrow()
            .get(name)
            .map(|v| v.value.clone())
            .unwrap_or_default()
    }

    fn short_user_var(&self, name: &str, max: usize) -> Result<Value, usize> {
        let vars = self.user_vars.borrow();
        match vars.get(name).map(|v| &v.value) {
            Some(Value::Bytes(text)) if text.len() > max => Err(text.len()),
            found => Ok(found.cloned().unwrap_or_default()),
        }
    }

    fn append_user_var(&self, name: &str, range: Range<usize>, to: &mut Vec<u8>) {
        let vars = self.user_vars.borrow();
        if let Some(Value::Bytes(text)) = vars.get(name).map(|v| &v.value) {
            to.extend_from_slice(text.get(range).unwrap_or_default());
        }
    }

    fn set_user_var(
        &self,
        name: &str,
        value: Value,
        ty: Option<&ColumnType>,
    ) -> Result<(), SqlError> {
        let blank = name.is_empty() || name.ends_with(' ');
        if blank || name.chars().count() > USER_VAR_CHARS {
            return Err(SqlError::new(ErrorCode::ER_ILLEGAL_USER_VAR, &[&name]));
        }
        let mut vars = self.user_vars.borrow_mut();
        let before = (vars.get(name)).map_or(0, |v| user_var_bytes(name, &v.value));
        let (bytes, all) = (user_var_bytes(name, &value), self.user_var_bytes.get());
        let after = (all + bytes).saturating_sub(before);
        let limit = self.vars.settings().statement_memory;
        if bytes > before && limit != 0 && after as u64 > limit {
            return Err(memory_exceeded(Exceeded::Statement(limit)));
        }
        self.user_var_bytes.set(after);
        let before = || vars.get(name).map_or(Class::Null, |v| v.class);
        let class = match (&value, ty.map(Class::of)) {
            (Value::Null, None | Some(Class::Null)) => before(),
            (Value::Null, Some(class)) if class.is_number() => class,
            (Value::Int(_) | Value::UInt(_), _) => Class::Int,
            (Value::Float(_) | Value::Double(_), _) => Class::Double,
            (Value::Decimal(_), _) => Class::Decimal,
            _ => Class::String,
        };
        let var = UserVar {
            value,
            collation: ty.and_then(convert::var_collation),
            class,
        };
        vars.insert(name.into(), var);
        Ok(())
    }

    fn sql_mode(&self) -> SqlMode {
        self.vars.settings().mode
    }

    fn user_locks(&self) -> Option<&UserLockSession> {
        Some(&self.user_locks)
    }

    fn break_user_lock_deadlocks(&self) {
        deadlock::break_deadlocks(&self.server, self.connection_id());
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.statement_time.get(), 6)
    }

    fn clock(&self) -> Timestamp {
        Timestamp::from_micros(unix_us(), 6)
    }

    fn time_zone(&self) -> &TimeZone {
        &self.vars.settings().zone
    }

    #[allow(
        clippy::misnamed_getters,
        reason = "the executor waits for row locks only"
    )]
    fn lock_wait_timeout(&self) -> Duration {
        self.vars.settings().innodb_lock_wait_timeout
    }

    fn logged_changes(&self) -> Option<LoggedChanges> {
        let log = self.server.binlog.as_ref()?;
        let settings = self.vars.settings();
        let flags = match settings.foreign_key_checks {
            true => 0,
            false => nfold_exec::change_kind::NO_FOREIGN_KEYS,
        };
        let images = settings.row_images;
        (log.is_active() && settings.sql_log_bin).then_some(LoggedChanges { flags, images })
    }

    fn isolation(&self) -> nfold_engine::Isolation {
        engine_isolation(self.vars.settings().isolation)
    }

    fn read_only(&self) -> bool {
        self.vars.settings().read_only
    }

    fn result_charset(&self) -> Option<&'static nfold_types::Charset> {
        if self.writes_file.get() {
            return None;
        }
        let charset = self.vars.settings().results?.known().charset;
        (!charset.is_binary()).then_some(charset)
    }

    fn collation(&self) -> CollationId {
        self.vars.settings().collation
    }

    fn last_insert_id(&self) -> u64 {
        self.last_insert_id.get()
    }

    fn set_last_insert_id(&self, id: u64) {
        self.given_insert_id.set(Some(id));
        self.last_insert_id.set(id);
    }

    fn found_rows(&self) -> u64 {
        self.found_rows.get()
    }

    fn row_count(&self) -> i64 {
        self.row_count.get()
    }

    fn connection_id(&self) -> u64 {
        u64::from(self.login.connection_id)
    }

    fn user(&self) -> String {
        format!("{}@{}", self.login.user, self.login.client_host)
    }

    fn current_user(&self) -> String {
        format!("{}@{}", self.login.account_user, self.login.account_host)
    }

    fn current_role(&self) -> String {
        if self.active_roles.is_empty() {
            return "NONE".into();
        }
        let mut names: Vec<String> = self
            .active_roles
            .iter()
            .map(|(user, host)| format!("`{user}`@`{host}`"))
            .collect();
        names.sort();
        names.join(",")
    }

    fn database(&self) -> Option<String> {
        self.database.as_deref().map(str::to_owned)
    }

    fn version(&self) -> String {
        self.sysvar(None, "version")
            .ok()
            .and_then(|v| {
                v.as_ref()
                    .as_bytes()
                    .map(|b| String::from_utf8_lossy(b).into_owned())
            })
            .unwrap_or_default()
    }

    fn random(&self) -> u64 {
        // splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators").
        let state = self.random.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.random.set(state);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn div_precision_increment(&self) -> u8 {
        self.vars.settings().div_precision_increment
    }

    fn time_names(&self) -> &'static Locale {
        self.vars.settings().time_names
    }

    fn group_concat_max_len(&self) -> usize {
        self.vars.settings().group_concat_max_len
    }

    fn max_sort_length(&self) -> usize {
        self.vars.settings().max_sort_length
    }

    fn cte_max_recursion_depth(&self) -> u64 {
        self.vars.settings().cte_max_recursion_depth
    }

    fn max_allowed_packet(&self) -> usize {
        self.vars.settings().max_allowed_packet
    }

    fn regexp_limits(&self) -> nfold_exec::RegexpLimits {
        let s = self.vars.settings();
        nfold_exec::RegexpLimits {
            time: s.regexp_time_limit,
            stack_bytes: s.regexp_stack_limit,
        }
    }

    fn work_memory(&self) -> usize {
        self.vars.settings().work_memory
    }

    fn insert_id(&self) -> Option<u64> {
        Some(self.insert_id.get()).filter(|n| *n > 0)
    }

    fn virtual_rows(
        &self,
        schema: &str,
        name: &str,
        row: &mut dyn FnMut(&[Value]) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        self.server.system_tables.rows(self, schema, name, row)
    }

    fn has_executed(&self, set: &GtidSet) -> bool {
        self.server.has_executed(set)
    }

    fn password_strength(&self, password: &str) -> u64 {
        let policy = self.server.password_policy();
        policy.map_or(0, |policy| {
            policy.strength(
                password,
                &self.user_names(),
                &self.server.password_words.load(),
            )
        })
    }

    fn tmpdir(&self) -> std::path::PathBuf {
        match super::vars::find("tmpdir").map(|at| self.globals.load().get(at).clone()) {
            Ok(VarValue::Text(Some(path))) => std::path::PathBuf::from(&*path),
            _ => std::env::temp_dir(),
        }
    }

    fn auto_increment(&self) -> (u64, u64) {
        let s = self.vars.settings();
        (s.auto_increment_increment, s.auto_increment_offset)
    }
}

impl Env {
    /// Sets the character sets and the collation of the client's handshake.
    pub fn set_handshake_collation(&mut self, id: u16) {
        let found = CollationId(id).get();
        let Some(collation) = found.filter(|c| !c.charset.is_wide()) else {
            return;
        };
        let set = VarValue::text(collation.charset.name);
        let changes = [
            ("character_set_client", set.clone()),
            ("character_set_results", set.clone()),
            ("character_set_connection", set),
            ("collation_connection", VarValue::text(collation.name)),
        ];
        self.vars.set_shared(&self.globals, &changes);
    }

    /// Sets the current database, and the variables that depend on it.
    pub fn set_database(&mut self, database: Option<&str>, collation: CollationId) {
        self.database = database.map(Arc::from);
        let collation = collation.known();
        let changes = [
            ("collation_database", VarValue::text(collation.name)),
            (
                "character_set_database",
                VarValue::text(collation.charset.name),
            ),
        ];
        // The first change of a session is often the same as in many others, so the result is
        // shared.
        match self.changes {
            0 => self.vars.set_shared(&self.globals, &changes),
            _ => self.vars.set_known(&changes),
        }
        self.changes += 1;
    }

    /// A number that grows with every change of a variable or of the database.
    #[inline]
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Notes for the client that the current database was set.
    pub(crate) fn note_database(&mut self) {
        self.tracking.note_database(&self.vars);
    }

    /// Notes for the client that a user variable, a temporary table or a prepared statement has
    /// changed.
    pub(crate) fn note_change(&mut self) {
        self.tracking.note(&self.vars);
    }

    /// Whether changes were noted for the client.
    #[inline]
    pub(crate) fn has_changes(&self) -> bool {
        self.tracking.any()
    }

    /// The noted changes, encoded for an OK packet. `news`: the GTIDs and the transaction that the
    /// client is to hear of.
    pub(crate) fn take_changes(
        &mut self,
        news: (Option<String>, Option<Now>),
    ) -> Option<Box<[u8]>> {
        self.tracking
            .take(&self.vars, self.database.as_deref(), news)
    }

    /// Forgets the noted changes of a statement that failed.
    pub(crate) fn forget_changes(&mut self) {
        self.tracking.forget();
    }

    /// What the client hears of its transactions; `None`: nothing.
    #[inline]
    pub(crate) fn transaction_info(&mut self) -> Option<&mut TransactionInfo> {
        self.tracking.transaction()
    }

    /// What the client hears of the GTID of a commit since the last call.
    pub(crate) fn take_tracked_gtids(&mut self) -> TrackedGtids {
        self.tracking.take_gtids()
    }

    /// Sets session variables by position, for a SET of the client.
    pub fn set_vars(&mut self, changes: &[(usize, VarValue)]) {
        self.tracking.note_variables(&self.vars, changes);
        self.vars.set_all(changes);
        self.changes += 1;
    }

    /// The collation of `character_set_results`. `None` if it is NULL: results are sent
    /// unconverted.
    pub fn result_collation(&self) -> Option<CollationId> {
        self.vars.settings().results
    }

    /// The character set that names and messages are converted to from UTF-8.
    pub fn name_charset(&self) -> Option<&'static nfold_types::Charset> {
        self.result_charset().filter(|set| !set.is_utf8())
    }
}
