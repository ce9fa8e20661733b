//! Syntax that MySQL takes with a warning.

use nfold_types::error::{ErrorCode, SqlError};

/// Deprecated syntax that a text uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deprecated {
    /// `!a`
    Bang,
    /// `a && b`
    Ampersands,
    /// `a || b` that is OR
    Bars,
    /// SQL_NO_CACHE
    NoCache,
    /// `@a := b`
    Assignment,
    /// `VALUES(column)`
    ValuesFunction,
    /// SQL_CALC_FOUND_ROWS
    CalcFoundRows,
    /// `FOUND_ROWS()`
    FoundRows,
    /// The character set utf8mb3.
    Utf8mb3,
    /// The character set utf8mb3 by the name utf8.
    Utf8,
    /// A character set, by its name.
    Charset(&'static str),
    /// A collation of utf8mb3, by its name.
    Utf8mb3Collation(&'static str),
    /// `N'x'`, `NCHAR(1)`
    National,
    /// `CHAR(1) BINARY`
    BinaryAttribute,
    /// `CHAR(1) ASCII`, `CHAR(1) UNICODE`: the word
    CharsetAttribute(&'static str),
    /// `INT(1)`
    DisplayWidth,
    /// ZEROFILL
    Zerofill,
    /// UNSIGNED of a number that is no integer.
    UnsignedReal,
    /// `FLOAT(7, 3)`
    RealDigits,
    /// `YEAR(4)`
    YearLength,
    /// FLUSH PRIVILEGES
    FlushPrivileges,
    /// SHOW PROFILE and SHOW PROFILES
    Profiles(&'static str),
    /// INTO inside an operand of a set operation.
    IntoOfOperand,
    /// `JSON_MERGE(…)`
    JsonMerge,
    /// ON EMPTY behind ON ERROR, in JSON_TABLE.
    EmptyAfterError,
    /// A system variable, by its name.
    Variable(&'static str),
    /// A system variable by its older name; the present name.
    OlderName(&'static str, &'static str),
    /// The hint MAX_EXECUTION_TIME where it has no effect.
    MisplacedTimeLimit,
    /// A second hint MAX_EXECUTION_TIME of a block, with its milliseconds.
    SecondTimeLimit(u32),
}

/// System variables that MySQL 9.7 deprecates, whether they are read or set.
const VARIABLES: &[&str] = &[
    "binlog_format",
    "binlog_max_flush_queue_time",
    "delayed_insert_limit",
    "delayed_insert_timeout",
    "delayed_queue_size",
    "have_profiling",
    "have_query_cache",
    "log_bin_trust_function_creators",
    "log_statements_unsafe_for_binlog",
    "max_delayed_threads",
    "max_insert_delayed_threads",
    "max_length_for_sort_data",
    "profiling",
    "profiling_history_size",
    "query_prealloc_size",
    "ssl_fips_mode",
    "sync_relay_log_info",
    "terminology_use_previous",
    "transaction_prealloc_size",
];

/// System variables with an older name: the older one, which MySQL 9.7 deprecates, and the present
/// one. Both have one value.
pub const OLDER_NAMES: &[(&str, &str)] = &[
    ("init_slave", "init_replica"),
    ("log_slave_updates", "log_replica_updates"),
    ("log_slow_slave_statements", "log_slow_replica_statements"),
    ("master_verify_checksum", "source_verify_checksum"),
    ("pseudo_slave_mode", "pseudo_replica_mode"),
    ("rpl_stop_slave_timeout", "rpl_stop_replica_timeout"),
    ("skip_slave_start", "skip_replica_start"),
    ("slave_allow_batching", "replica_allow_batching"),
    ("slave_checkpoint_group", "replica_checkpoint_group"),
    ("slave_checkpoint_period", "replica_checkpoint_period"),
    ("slave_compressed_protocol", "replica_compressed_protocol"),
    ("slave_exec_mode", "replica_exec_mode"),
    ("slave_load_tmpdir", "replica_load_tmpdir"),
    ("slave_max_allowed_packet", "replica_max_allowed_packet"),
    ("slave_net_timeout", "replica_net_timeout"),
    ("slave_parallel_workers", "replica_parallel_workers"),
    (
        "slave_pending_jobs_size_max",
        "replica_pending_jobs_size_max",
    ),
    (
        "slave_preserve_commit_order",
        "replica_preserve_commit_order",
    ),
    ("slave_skip_errors", "replica_skip_errors"),
    ("slave_sql_verify_checksum", "replica_sql_verify_checksum"),
    ("slave_transaction_retries", "replica_transaction_retries"),
    ("slave_type_conversions", "replica_type_conversions"),
    ("sql_slave_skip_counter", "sql_replica_skip_counter"),
    ("sync_master_info", "sync_source_info"),
];

const DISPLAY_WIDTH: &str =
    "Integer display width is deprecated and will be removed in a future release.";
const UNSIGNED: &str = "UNSIGNED for decimal and floating point data types is deprecated and \
                        support for it will be removed in a future release.";
const ZEROFILL: &str = "The ZEROFILL attribute is deprecated and will be removed in a future \
                        release. Use the LPAD function to zero-pad numbers, or store the \
                        formatted numbers in a CHAR column.";
const DIGITS: &str = "Specifying number of digits for floating point data types is deprecated and \
                      will be removed in a future release.";
const ASSIGNMENT: &str = "Setting user variables within expressions is deprecated and will be \
                          removed in a future release. Consider alternatives: 'SET \
                          variable=expression, ...', or 'SELECT expression(s) INTO variables(s)'.";
const CALC_FOUND_ROWS: &str = "SQL_CALC_FOUND_ROWS is deprecated and will be removed in a future \
                               release. Consider using two separate queries instead.";
const FOUND_ROWS: &str = "FOUND_ROWS() is deprecated and will be removed in a future release. \
                          Consider using COUNT(*) instead.";
const ROW_ALIAS: &str = "an alias (INSERT INTO ... VALUES (...) AS alias) and replace VALUES(col) \
                         in the ON DUPLICATE KEY UPDATE clause with alias.col";
const EMPTY_AFTER_ERROR: &str = "Specifying an ON EMPTY clause after the ON ERROR clause in a \
                                 JSON_TABLE column definition is deprecated syntax and will be \
                                 removed in a future release. Specify ON EMPTY before ON ERROR \
                                 instead.";

/// Character sets other than utf8mb3 that MySQL 9.7 deprecates.
const CHARSETS: &[&str] = &["dec8", "hp8", "macce", "macroman", "ucs2"];

impl Deprecated {
    /// The deprecated character set of this name, which is in lower case.
    pub fn charset(name: &str) -> Option<Deprecated> {
        let known = CHARSETS.iter().find(|set| **set == name)?;
        Some(Deprecated::Charset(known))
    }

    /// The deprecated system variable of this name.
    pub(super) fn variable(name: &str) -> Option<Deprecated> {
        let older = OLDER_NAMES.iter();
        let mut older = older.filter(|(older, _)| older.eq_ignore_ascii_case(name));
        if let Some((older, present)) = older.next() {
            return Some(Deprecated::OlderName(older, present));
        }
        let known = VARIABLES.iter().find(|v| v.eq_ignore_ascii_case(name))?;
        Some(Deprecated::Variable(known))
    }

    /// The warning: 1287, 1681, 3125, 3126, 3719, 3720, 3778 or 3962.
    pub fn warning(self) -> SqlError {
        use ErrorCode::{
            ER_WARN_DEPRECATED_SYNTAX as INSTEAD, ER_WARN_DEPRECATED_SYNTAX_NO_REPLACEMENT as ALONE,
        };
        let with_text = |code, text: &str| SqlError::with_message(code, text);
        match self {
            Deprecated::Bang => SqlError::new(INSTEAD, &[&"!", &"NOT"]),
            Deprecated::Ampersands => SqlError::new(INSTEAD, &[&"&&", &"AND"]),
            Deprecated::Bars => SqlError::new(INSTEAD, &[&"|| as a synonym for OR", &"OR"]),
            Deprecated::NoCache => SqlError::new(ALONE, &[&"SQL_NO_CACHE"]),
            Deprecated::Assignment => with_text(INSTEAD, ASSIGNMENT),
            Deprecated::ValuesFunction => SqlError::new(INSTEAD, &[&"VALUES function", &ROW_ALIAS]),
            Deprecated::CalcFoundRows => with_text(INSTEAD, CALC_FOUND_ROWS),
            Deprecated::FoundRows => with_text(INSTEAD, FOUND_ROWS),
            Deprecated::Charset(name) => SqlError::new(INSTEAD, &[&name, &"utf8mb4"]),
            Deprecated::Utf8mb3 => SqlError::new(INSTEAD, &[&"utf8mb3", &"utf8mb4"]),
            Deprecated::Utf8 => SqlError::new(ErrorCode::ER_DEPRECATED_UTF8_ALIAS, &[]),
            Deprecated::Utf8mb3Collation(name) => {
                SqlError::new(ErrorCode::ER_WARN_DEPRECATED_UTF8MB3_COLLATION, &[&name])
            }
            Deprecated::National => SqlError::new(ErrorCode::ER_DEPRECATED_NATIONAL, &[]),
            Deprecated::BinaryAttribute => {
                let clause = "a CHARACTER SET clause with _bin collation";
                SqlError::new(INSTEAD, &[&"BINARY as attribute of a type", &clause])
            }
            Deprecated::CharsetAttribute(word) => {
                SqlError::new(INSTEAD, &[&word, &"CHARACTER SET charset_name"])
            }
            Deprecated::DisplayWidth => with_text(ALONE, DISPLAY_WIDTH),
            Deprecated::Zerofill => with_text(ALONE, ZEROFILL),
            Deprecated::UnsignedReal => with_text(ALONE, UNSIGNED),
            Deprecated::RealDigits => with_text(ALONE, DIGITS),
            Deprecated::YearLength => SqlError::new(INSTEAD, &[&"YEAR(4)", &"YEAR"]),
            Deprecated::FlushPrivileges => SqlError::new(ALONE, &[&"FLUSH PRIVILEGES"]),
            Deprecated::Profiles(command) => {
                SqlError::new(INSTEAD, &[&command, &"Performance Schema"])
            }
            Deprecated::IntoOfOperand => {
                SqlError::new(ErrorCode::ER_WARN_DEPRECATED_INNER_INTO, &[])
            }
            Deprecated::MisplacedTimeLimit => {
                SqlError::new(ErrorCode::ER_WARN_UNSUPPORTED_MAX_EXECUTION_TIME, &[])
            }
            Deprecated::SecondTimeLimit(ms) => {
                let hint = format!("MAX_EXECUTION_TIME({ms})");
                SqlError::new(ErrorCode::ER_WARN_CONFLICTING_HINT, &[&hint])
            }
            Deprecated::JsonMerge => {
                let others = "JSON_MERGE_PRESERVE/JSON_MERGE_PATCH";
                SqlError::new(INSTEAD, &[&"JSON_MERGE", &others])
            }
            Deprecated::EmptyAfterError => with_text(INSTEAD, EMPTY_AFTER_ERROR),
            Deprecated::Variable(name) => with_text(
                INSTEAD,
                &format!("'@@{name}' is deprecated and will be removed in a future release."),
            ),
            Deprecated::OlderName(older, present) => with_text(
                INSTEAD,
                &format!(
                    "'@@{older}' is deprecated and will be removed in a future release. \
                     Please use {present} instead."
                ),
            ),
        }
    }
}
