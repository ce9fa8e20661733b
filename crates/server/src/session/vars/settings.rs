//! The variables that the server itself uses, as typed values. They are computed once per change.

use std::sync::LazyLock;
use std::time::Duration;

use nfold_exec::RowImages;
use nfold_plan::{SqlMode, Switches};
use nfold_sql::ast::{ExplainFormat, IsolationLevel};
use nfold_sql::lexer::LexMode;
use nfold_types::collation::CollationId;
use nfold_types::temporal::TimeZone;
use nfold_types::{Charset, Collation, Locale};

use super::{VarValue, known, parse_modes};
use crate::config::switches::is_on;

/// The typed values. Times are durations, sizes are bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub autocommit: bool,
    pub isolation: IsolationLevel,
    pub read_only: bool,
    pub mode: SqlMode,
    pub lexing: LexMode,
    /// NO_ENGINE_SUBSTITUTION
    pub no_engine_substitution: bool,
    /// STRICT_ALL_TABLES. [`Self::mode`] does not tell it from STRICT_TRANS_TABLES.
    pub strict_all_tables: bool,
    pub zone: TimeZone,
    /// `character_set_client`, if a text of it must be rewritten for the lexer.
    pub rewritten: Option<&'static Charset>,
    /// `collation_connection`.
    pub collation: CollationId,
    /// The collation in the description of results: `collation_connection` if it belongs to
    /// `character_set_results`, otherwise the default of that set. `None` if
    /// `character_set_results` is NULL.
    pub results: Option<CollationId>,
    /// `collation_server`, for new databases.
    pub collation_server: CollationId,
    /// `max_execution_time`; `None`: no limit.
    pub max_execution_time: Option<Duration>,
    /// The time limit for a metadata lock.
    pub lock_wait_timeout: Duration,
    pub innodb_lock_wait_timeout: Duration,
    pub wait_timeout: Duration,
    pub net_read_timeout: Duration,
    pub net_write_timeout: Duration,
    pub max_allowed_packet: usize,
    pub max_error_count: usize,
    pub max_prepared_stmt_count: usize,
    /// `read_only` and `super_read_only`; only the global values matter.
    pub server_read_only: bool,
    pub super_read_only: bool,
    pub sql_notes: bool,
    pub sql_safe_updates: bool,
    pub foreign_key_checks: bool,
    /// `optimizer_switch`.
    pub switches: Switches,
    /// `explain_format`, and `explain_json_format_version`.
    pub explain_format: (ExplainFormat, u8),
    pub restrict_fk_on_non_standard_key: bool,
    pub sql_select_limit: u64,
    pub auto_increment_increment: u64,
    pub auto_increment_offset: u64,
    pub group_concat_max_len: usize,
    pub div_precision_increment: u8,
    /// `lc_time_names`
    pub time_names: &'static Locale,
    pub max_sort_length: usize,
    pub cte_max_recursion_depth: u64,
    /// Only the global values of these two matter.
    pub regexp_time_limit: u64,
    pub regexp_stack_limit: u64,
    /// The larger of `sort_buffer_size` and `tmp_table_size`, limited by `nfold_statement_memory`.
    pub work_memory: usize,
    /// `nfold_statement_memory`; 0: the server's default.
    pub statement_memory: u64,
    pub completion_chain: bool,
    pub completion_release: bool,
    /// `long_query_time`.
    pub long_query_ns: u64,
    pub min_examined_row_limit: u64,
    pub sql_log_off: bool,
    pub sql_log_bin: bool,
    /// `binlog_row_image`
    pub row_images: RowImages,
    /// `binlog_rows_query_log_events`
    pub logs_row_queries: bool,
    /// `optimizer_trace`: each statement is planned anew.
    pub tracing: bool,
}

macro_rules! places {
    ($($field:ident),* $(,)?) => {
        struct Places { $($field: usize),* }
        static PLACES: LazyLock<Places> = LazyLock::new(|| Places { $($field: known(stringify!($field))),* });
    };
}

places! {
    autocommit, transaction_isolation, transaction_read_only, sql_mode, time_zone, character_set_client, character_set_results, collation_connection, collation_server,
    max_execution_time, lock_wait_timeout, innodb_lock_wait_timeout, wait_timeout, net_read_timeout, net_write_timeout,
    max_allowed_packet, max_error_count, max_prepared_stmt_count, read_only, super_read_only, sql_notes, sql_safe_updates, foreign_key_checks, optimizer_switch, restrict_fk_on_non_standard_key, sql_select_limit, auto_increment_increment,
    auto_increment_offset, group_concat_max_len, div_precision_increment, lc_time_names, max_sort_length, cte_max_recursion_depth, regexp_time_limit, regexp_stack_limit, sort_buffer_size, tmp_table_size, nfold_statement_memory, completion_type,
    long_query_time, min_examined_row_limit, sql_log_off, sql_log_bin, binlog_row_image, binlog_rows_query_log_events,
    explain_format, explain_json_format_version, optimizer_trace,
}

/// The isolation level of a value of `transaction_isolation`.
pub fn isolation_of(word: &str) -> IsolationLevel {
    match word {
        "READ-UNCOMMITTED" => IsolationLevel::ReadUncommitted,
        "READ-COMMITTED" => IsolationLevel::ReadCommitted,
        "SERIALIZABLE" => IsolationLevel::Serializable,
        _ => IsolationLevel::RepeatableRead,
    }
}

/// The value of `transaction_isolation` for an isolation level.
pub fn isolation_word(level: IsolationLevel) -> &'static str {
    match level {
        IsolationLevel::ReadUncommitted => "READ-UNCOMMITTED",
        IsolationLevel::ReadCommitted => "READ-COMMITTED",
        IsolationLevel::RepeatableRead => "REPEATABLE-READ",
        IsolationLevel::Serializable => "SERIALIZABLE",
    }
}

impl Settings {
    /// The settings that plans depend on, except the time zone. A new variable that changes plans
    /// must be added here; otherwise cached plans survive its change.
    fn plan_key(&self) -> impl PartialEq + std::fmt::Debug + use<> {
        (
            self.mode,
            self.lexing,
            self.collation,
            self.results,
            self.div_precision_increment,
            self.group_concat_max_len,
            self.max_sort_length,
            self.sql_select_limit,
            self.sql_safe_updates,
            self.foreign_key_checks,
            (self.switches, self.explain_format, self.tracing),
        )
    }

    /// Whether a plan made under `other` is valid under these settings.
    pub fn plans_like(&self, other: &Settings) -> bool {
        self.plan_key() == other.plan_key() && self.zone == other.zone
    }

    /// A text that is equal exactly if [`Self::plans_like`] is true.
    pub fn plan_context(&self) -> String {
        format!("{:?} {:?}", self.plan_key(), self.zone)
    }

    /// Computes all settings from the values, which `get` finds by position. SET has checked them;
    /// an invalid value from an option file counts as the default.
    pub fn of<'v>(get: impl Fn(usize) -> &'v VarValue) -> Settings {
        let p = &*PLACES;
        let int = |at: usize| match get(at) {
            VarValue::Int(n) => *n,
            _ => 0,
        };
        let size = |at: usize| usize::try_from(int(at)).unwrap_or(usize::MAX);
        let seconds = |at: usize| Duration::from_secs(int(at));
        let flag = |at: usize| *get(at) == VarValue::Bool(true);
        let text = |at: usize| match get(at) {
            VarValue::Text(Some(s)) => &**s,
            _ => "",
        };
        let collation = |at: usize| {
            Collation::by_name(text(at)).map_or(CollationId::UTF8MB4_0900_AI_CI, |c| c.id)
        };
        let modes = parse_modes(text(p.sql_mode)).unwrap_or_default();
        Settings {
            autocommit: flag(p.autocommit),
            isolation: isolation_of(text(p.transaction_isolation)),
            read_only: flag(p.transaction_read_only),
            mode: modes.semantics(),
            lexing: modes.lexing(),
            no_engine_substitution: modes.has("NO_ENGINE_SUBSTITUTION"),
            strict_all_tables: modes.has("STRICT_ALL_TABLES"),
            zone: TimeZone::parse(text(p.time_zone)).unwrap_or_else(TimeZone::system),
            collation: collation(p.collation_connection),
            rewritten: Charset::by_name(text(p.character_set_client))
                .filter(|set| set.is_multi_byte() && !set.is_utf8()),
            results: results(
                text(p.character_set_results),
                collation(p.collation_connection),
            ),
            collation_server: collation(p.collation_server),
            max_execution_time: Some(int(p.max_execution_time))
                .filter(|&ms| ms > 0)
                .map(Duration::from_millis),
            lock_wait_timeout: seconds(p.lock_wait_timeout),
            innodb_lock_wait_timeout: seconds(p.innodb_lock_wait_timeout),
            wait_timeout: seconds(p.wait_timeout),
            net_read_timeout: seconds(p.net_read_timeout),
            net_write_timeout: seconds(p.net_write_timeout),
            max_allowed_packet: size(p.max_allowed_packet),
            max_error_count: size(p.max_error_count),
            max_prepared_stmt_count: size(p.max_prepared_stmt_count),
            server_read_only: flag(p.read_only),
            super_read_only: flag(p.super_read_only),
            sql_notes: flag(p.sql_notes),
            sql_safe_updates: flag(p.sql_safe_updates),
            foreign_key_checks: flag(p.foreign_key_checks),
            switches: Switches::of(text(p.optimizer_switch)),
            explain_format: (
                match text(p.explain_format) {
                    "TRADITIONAL" | "TRADITIONAL_STRICT" => ExplainFormat::Traditional,
                    "JSON" => ExplainFormat::Json,
                    _ => ExplainFormat::Tree,
                },
                int(p.explain_json_format_version) as u8,
            ),
            restrict_fk_on_non_standard_key: flag(p.restrict_fk_on_non_standard_key),
            sql_select_limit: int(p.sql_select_limit),
            auto_increment_increment: int(p.auto_increment_increment),
            auto_increment_offset: int(p.auto_increment_offset),
            group_concat_max_len: size(p.group_concat_max_len),
            div_precision_increment: int(p.div_precision_increment) as u8,
            time_names: Locale::by_name(text(p.lc_time_names)).unwrap_or_else(Locale::english),
            max_sort_length: size(p.max_sort_length),
            cte_max_recursion_depth: int(p.cte_max_recursion_depth),
            regexp_time_limit: int(p.regexp_time_limit),
            regexp_stack_limit: int(p.regexp_stack_limit),
            work_memory: work_memory(
                size(p.sort_buffer_size).max(size(p.tmp_table_size)),
                size(p.nfold_statement_memory),
            ),
            statement_memory: int(p.nfold_statement_memory),
            completion_chain: text(p.completion_type) == "CHAIN",
            completion_release: text(p.completion_type) == "RELEASE",
            long_query_ns: match get(p.long_query_time) {
                VarValue::Real(seconds) => (seconds * 1e9) as u64,
                _ => u64::MAX,
            },
            min_examined_row_limit: int(p.min_examined_row_limit),
            sql_log_off: flag(p.sql_log_off),
            sql_log_bin: flag(p.sql_log_bin),
            row_images: match text(p.binlog_row_image) {
                "MINIMAL" => RowImages::Minimal,
                "NOBLOB" => RowImages::NoBlob,
                _ => RowImages::Full,
            },
            logs_row_queries: flag(p.binlog_rows_query_log_events),
            tracing: is_on(text(p.optimizer_trace), "enabled"),
        }
    }
}

/// The memory of one sort or hash table. A statement may have several, and each doubles its buffers
/// as it grows. So one of them takes at most a sixteenth of the statement's limit.
fn work_memory(configured: usize, statement_memory: usize) -> usize {
    match statement_memory {
        0 => configured,
        limit => configured.min(limit / 16),
    }
}

fn results(set: &str, connection: CollationId) -> Option<CollationId> {
    let set = nfold_types::Charset::by_name(set)?;
    Some(if connection.known().charset == set {
        connection
    } else {
        set.default_collation
    })
}
