//! Every option and system variable the server knows: one table for the option file, the command line and `@@variables`.
//!
//! The session layer reads the same entries for names, ranges, defaults and for what may be SET; it does not repeat them.
//! Source: MySQL 8.4 manual, "Server System Variables"; defaults are MySQL's.

/// What values an option takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// ON or OFF.
    Bool { default: bool },
    /// A whole number, in the file with an optional K, M, G, T.
    Int { default: u64, min: u64, max: u64 },
    /// A number with fractions.
    Real { default: f64, min: f64, max: f64 },
    /// Text; `None`: NULL or unset.
    Text { default: Option<&'static str> },
    /// One of several words, without regard to case; its number in the list is accepted as well.
    Choice {
        default: &'static str,
        values: &'static [&'static str],
    },
}

/// Where a variable lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// `@@GLOBAL` only.
    Global,
    /// Each session has its own, begun from the global one.
    Both,
}

/// One option.
#[derive(Debug, Clone, Copy)]
pub struct OptionDef {
    /// With underscores, in lower case.
    pub name: &'static str,
    pub kind: Kind,
    pub scope: Scope,
    /// May be changed by SET while the server runs.
    pub dynamic: bool,
    /// In effect. Not: accepted and shown so that files and clients written for MySQL work, but nothing depends on it.
    pub effective: bool,
}

const K: u64 = 1 << 10;
const M: u64 = 1 << 20;
const G: u64 = 1 << 30;

const fn option(name: &'static str, kind: Kind, scope: Scope) -> OptionDef {
    OptionDef {
        name,
        kind,
        scope,
        dynamic: true,
        effective: true,
    }
}

impl OptionDef {
    /// Only at start.
    const fn fixed(mut self) -> Self {
        self.dynamic = false;
        self
    }

    /// Accepted without effect.
    const fn inert(mut self) -> Self {
        self.effective = false;
        self
    }
}

const fn int(name: &'static str, default: u64, min: u64, max: u64) -> OptionDef {
    option(name, Kind::Int { default, min, max }, Scope::Global)
}

const fn int_both(name: &'static str, default: u64, min: u64, max: u64) -> OptionDef {
    option(name, Kind::Int { default, min, max }, Scope::Both)
}

const fn flag(name: &'static str, default: bool) -> OptionDef {
    option(name, Kind::Bool { default }, Scope::Global)
}

const fn flag_both(name: &'static str, default: bool) -> OptionDef {
    option(name, Kind::Bool { default }, Scope::Both)
}

const fn text(name: &'static str, default: Option<&'static str>) -> OptionDef {
    option(name, Kind::Text { default }, Scope::Global)
}

const fn text_both(name: &'static str, default: &'static str) -> OptionDef {
    option(
        name,
        Kind::Text {
            default: Some(default),
        },
        Scope::Both,
    )
}

const fn choice(
    name: &'static str,
    default: &'static str,
    values: &'static [&'static str],
    scope: Scope,
) -> OptionDef {
    option(name, Kind::Choice { default, values }, scope)
}

const ISOLATION: &[&str] = &[
    "READ-UNCOMMITTED",
    "READ-COMMITTED",
    "REPEATABLE-READ",
    "SERIALIZABLE",
];

const SQL_MODE: &str = "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,\
ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION";

/// All options, ordered by name.
pub static OPTIONS: &[OptionDef] = &[
    text("authentication_policy", Some("*,,")).inert(),
    int_both("auto_increment_increment", 1, 1, 65535),
    int_both("auto_increment_offset", 1, 1, 65535),
    flag_both("autocommit", true),
    int("back_log", 1024, 1, 65535).fixed(),
    flag_both("big_tables", false).inert(),
    text("bind_address", Some("127.0.0.1")).fixed(),
    text_both("character_set_client", "utf8mb4"),
    text_both("character_set_connection", "utf8mb4"),
    text_both("character_set_results", "utf8mb4"),
    text_both("character_set_server", "utf8mb4"),
    text_both("collation_connection", "utf8mb4_0900_ai_ci"),
    text_both("collation_server", "utf8mb4_0900_ai_ci"),
    int("connect_timeout", 10, 2, 31_536_000),
    int_both("cte_max_recursion_depth", 1000, 0, u32::MAX as u64),
    text("datadir", None).fixed(),
    text_both("default_storage_engine", "InnoDB"),
    text_both("default_tmp_storage_engine", "InnoDB").inert(),
    int_both("default_week_format", 0, 0, 7),
    int_both("div_precision_increment", 4, 0, 30),
    int_both("eq_range_index_dive_limit", 200, 0, u32::MAX as u64).inert(),
    choice(
        "event_scheduler",
        "OFF",
        &["OFF", "ON", "DISABLED"],
        Scope::Global,
    )
    .inert(),
    flag_both("explicit_defaults_for_timestamp", true),
    flag_both("foreign_key_checks", true),
    int_both("group_concat_max_len", 1024, 4, u64::MAX),
    text("init_connect", Some("")).inert(),
    flag("innodb_adaptive_hash_index", true),
    int("innodb_autoinc_lock_mode", 2, 0, 2).fixed().inert(),
    flag("innodb_buffer_pool_dump_at_shutdown", true).inert(),
    int("innodb_buffer_pool_instances", 1, 1, 64)
        .fixed()
        .inert(),
    flag("innodb_buffer_pool_load_at_startup", true)
        .fixed()
        .inert(),
    int("innodb_buffer_pool_size", 128 * M, 5 * M, u64::MAX),
    choice(
        "innodb_checksum_algorithm",
        "crc32",
        &["crc32", "strict_crc32"],
        Scope::Global,
    )
    .inert(),
    flag("innodb_deadlock_detect", true).inert(),
    flag("innodb_dedicated_server", false).fixed().inert(),
    flag("innodb_doublewrite", true).fixed(),
    flag("innodb_file_per_table", true).inert(),
    int("innodb_fill_factor", 100, 10, 100).inert(),
    choice(
        "innodb_flush_log_at_trx_commit",
        "1",
        &["0", "1", "2"],
        Scope::Global,
    ),
    choice(
        "innodb_flush_method",
        "O_DIRECT",
        &["fsync", "O_DSYNC", "O_DIRECT", "O_DIRECT_NO_FSYNC"],
        Scope::Global,
    )
    .fixed()
    .inert(),
    int("innodb_io_capacity", 10_000, 100, u32::MAX as u64),
    int("innodb_io_capacity_max", 20_000, 100, u32::MAX as u64).inert(),
    int_both("innodb_lock_wait_timeout", 50, 1, 1_073_741_824),
    int("innodb_log_buffer_size", 64 * M, 256 * K, 2 * G).fixed(),
    choice(
        "innodb_page_size",
        "16384",
        &["16384", "16k"],
        Scope::Global,
    )
    .fixed(),
    flag("innodb_print_all_deadlocks", false),
    int("innodb_purge_threads", 1, 1, 32).fixed().inert(),
    int("innodb_read_io_threads", 4, 1, 64).fixed(),
    int("innodb_redo_log_capacity", 100 * M, 8 * M, 512 * G),
    flag("innodb_rollback_on_timeout", false).fixed(),
    flag("innodb_stats_persistent", true).inert(),
    flag_both("innodb_strict_mode", true).inert(),
    int("innodb_thread_concurrency", 0, 0, 1000),
    flag("innodb_undo_log_truncate", true).inert(),
    flag("innodb_use_native_aio", true).fixed().inert(),
    int("innodb_write_io_threads", 4, 1, 64).fixed(),
    int_both("interactive_timeout", 28_800, 1, 31_536_000),
    int_both("join_buffer_size", 256 * K, 128, u64::MAX),
    flag("local_infile", false),
    int_both("lock_wait_timeout", 31_536_000, 1, 31_536_000),
    flag("log_bin", false).fixed(),
    int("log_error_verbosity", 2, 1, 3),
    option(
        "long_query_time",
        Kind::Real {
            default: 10.0,
            min: 0.0,
            max: 31_536_000.0,
        },
        Scope::Both,
    )
    .inert(),
    int("lower_case_table_names", 0, 0, 0).fixed(),
    int_both("max_allowed_packet", 64 * M, K, G),
    int("max_connect_errors", 100, 1, u64::MAX).inert(),
    int("max_connections", 151, 1, 100_000),
    int_both("max_error_count", 1024, 0, 65535),
    int_both("max_execution_time", 0, 0, u32::MAX as u64),
    int_both("max_heap_table_size", 16 * M, 16 * K, u64::MAX).inert(),
    int("max_prepared_stmt_count", 16_382, 0, 4_194_304),
    int_both("max_user_connections", 0, 0, u32::MAX as u64).inert(),
    int_both("net_buffer_length", 16 * K, K, M).inert(),
    int_both("net_read_timeout", 30, 1, 31_536_000),
    int_both("net_write_timeout", 60, 1, 31_536_000),
    flag("nfold_pin_workers", true).fixed(),
    int("nfold_workers", 0, 0, 1024).fixed(),
    int("open_files_limit", 0, 0, u32::MAX as u64)
        .fixed()
        .inert(),
    text_both("optimizer_switch", "").inert(),
    flag("performance_schema", false).fixed().inert(),
    text("pid_file", None).fixed(),
    int("port", 3306, 0, 65535).fixed(),
    int_both("range_optimizer_max_mem_size", 8 * M, 0, u64::MAX).inert(),
    flag("read_only", false),
    flag("require_secure_transport", false),
    text("secure_file_priv", None).fixed(),
    int("server_id", 1, 0, u32::MAX as u64),
    flag("skip_name_resolve", true).fixed().inert(),
    text("socket", None).fixed(),
    int_both("sort_buffer_size", 256 * K, 32 * K, u64::MAX),
    text_both("sql_mode", SQL_MODE),
    flag_both("sql_require_primary_key", false),
    flag_both("sql_safe_updates", false),
    flag("ssl", true).fixed(),
    text("ssl_cert", None).fixed(),
    text("ssl_key", None).fixed(),
    flag("super_read_only", false),
    int("table_definition_cache", 2000, 400, 524_288).inert(),
    int("table_open_cache", 4000, 1, 524_288).inert(),
    int("thread_cache_size", 0, 0, 16_384).inert(),
    text_both("time_zone", "SYSTEM"),
    int_both("tmp_table_size", 16 * M, K, u64::MAX),
    text("tmpdir", None).fixed(),
    choice(
        "transaction_isolation",
        "REPEATABLE-READ",
        ISOLATION,
        Scope::Both,
    ),
    flag_both("transaction_read_only", false),
    flag_both("unique_checks", true),
    int_both("wait_timeout", 28_800, 1, 31_536_000),
];

/// The position in [`OPTIONS`] of a name in any of its spellings: `-` for `_`, any case.
pub fn find(name: &str) -> Option<usize> {
    let name = name.replace('-', "_").to_ascii_lowercase();
    OPTIONS.binary_search_by(|o| o.name.cmp(&name)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_ordered_and_its_defaults_are_in_range() {
        assert!(OPTIONS.windows(2).all(|w| w[0].name < w[1].name));
        for o in OPTIONS {
            match o.kind {
                Kind::Int { default, min, max } => {
                    assert!((min..=max).contains(&default), "{}", o.name)
                }
                Kind::Real { default, min, max } => {
                    assert!((min..=max).contains(&default), "{}", o.name)
                }
                Kind::Choice { default, values } => {
                    assert!(values.contains(&default), "{}", o.name)
                }
                Kind::Bool { .. } | Kind::Text { .. } => {}
            }
        }
    }

    #[test]
    fn names_are_found_in_every_spelling() {
        assert_eq!(
            find("innodb-buffer_pool-SIZE").map(|i| OPTIONS[i].name),
            Some("innodb_buffer_pool_size")
        );
        assert_eq!(find("nonsense"), None);
    }
}
