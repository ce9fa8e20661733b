//! All options and system variables of the server: one table for the option file, the command line
//! and `@@variables`.
//!
//! The session layer takes names, ranges, defaults and permissions for SET from the same entries.
//! The variables that have an effect stand here, the others in [`super::accepted`]. Source: MySQL
//! 9.7, `performance_schema.variables_metadata`; the defaults are MySQL's.

use nfold_sql::parser::OLDER_NAMES;

use super::accepted::ACCEPTED;
use super::option::{
    G, K, M, choice, flag, flag_both, int, int_both, option, signed_both, text, text_both,
};
pub use super::option::{OptionDef, OptionKind, Scope};

const ISOLATION: &[&str] = &[
    "READ-UNCOMMITTED",
    "READ-COMMITTED",
    "REPEATABLE-READ",
    "SERIALIZABLE",
];

const SQL_MODE: &str = "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,\
ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION";

const AES_MODES: &[&str] = &[
    "aes-128-ecb",
    "aes-192-ecb",
    "aes-256-ecb",
    "aes-128-cbc",
    "aes-192-cbc",
    "aes-256-cbc",
    "aes-128-cfb1",
    "aes-192-cfb1",
    "aes-256-cfb1",
    "aes-128-cfb8",
    "aes-192-cfb8",
    "aes-256-cfb8",
    "aes-128-cfb128",
    "aes-192-cfb128",
    "aes-256-cfb128",
    "aes-128-ofb",
    "aes-192-ofb",
    "aes-256-ofb",
];

/// The options that have an effect, ordered by name.
#[rustfmt::skip]
const EFFECTIVE: &[OptionDef] = &[
    flag("activate_all_roles_on_login", false),
    int_both("auto_increment_increment", 1, 1, 65535),
    int_both("auto_increment_offset", 1, 1, 65535),
    flag_both("autocommit", true),
    int("back_log", 1024, 1, 65535).fixed(),
    option("basedir", OptionKind::Text { default: Some("") }, Scope::Global).fixed().unpersisted(),
    text("bind_address", Some("127.0.0.1")).fixed().unpersisted(),
    choice("binlog_checksum", "CRC32", &["NONE", "CRC32"], Scope::Global),
    int("binlog_expire_logs_seconds", 2_592_000, 0, 4_294_967_295),
    choice("binlog_row_image", "FULL", &["MINIMAL", "NOBLOB", "FULL"], Scope::Both),
    choice("binlog_row_metadata", "MINIMAL", &["MINIMAL", "FULL"], Scope::Global),
    flag_both("binlog_rows_query_log_events", false),
    choice("block_encryption_mode", "aes-128-ecb", AES_MODES, Scope::Both),
    text_both("character_set_client", "utf8mb4"),
    text_both("character_set_connection", "utf8mb4"),
    option("character_set_database", OptionKind::Text { default: Some("utf8mb4") }, Scope::Both).runtime(),
    text_both("character_set_results", "utf8mb4"),
    text_both("character_set_server", "utf8mb4"),
    option("character_set_system", OptionKind::Text { default: Some("utf8mb3") }, Scope::Global).fixed().runtime().unpersisted(),
    text_both("collation_connection", "utf8mb4_0900_ai_ci"),
    option("collation_database", OptionKind::Text { default: Some("utf8mb4_0900_ai_ci") }, Scope::Both).runtime(),
    text_both("collation_server", "utf8mb4_0900_ai_ci"),
    option("completion_type", OptionKind::Text { default: Some("NO_CHAIN") }, Scope::Both),
    int("connect_timeout", 10, 2, 31_536_000),
    int_both("cte_max_recursion_depth", 1000, 0, u32::MAX as u64),
    text("datadir", None).fixed().unpersisted(),
    option("default_collation_for_utf8mb4", OptionKind::Text { default: Some("utf8mb4_0900_ai_ci") }, Scope::Both).runtime(),
    int("default_password_lifetime", 0, 0, 65_535),
    text_both("default_storage_engine", "InnoDB"),
    int_both("default_week_format", 0, 0, 7),
    flag("disconnect_on_expired_password", true).fixed(),
    int_both("div_precision_increment", 4, 0, 30),
    option("error_count", OptionKind::Int { default: 0, min: 0, max: u64::MAX }, Scope::Session).fixed().runtime(),
    option("explain_format", OptionKind::Text { default: Some("TREE") }, Scope::Both),
    int_both("explain_json_format_version", 2, 1, 2),
    flag_both("explicit_defaults_for_timestamp", true),
    flag_both("foreign_key_checks", true),
    option("general_log", OptionKind::Bool { default: false }, Scope::Global),
    option("general_log_file", OptionKind::Text { default: Some("") }, Scope::Global),
    int_both("generated_random_password_length", 20, 5, 255),
    int_both("group_concat_max_len", 1024, 4, u64::MAX),
    option("gtid_executed", OptionKind::Text { default: Some("") }, Scope::Global).fixed().runtime().unpersisted(),
    choice("gtid_mode", "OFF", &["OFF", "OFF_PERMISSIVE", "ON_PERMISSIVE", "ON"], Scope::Global),
    text_both("gtid_next", "AUTOMATIC").session().runtime(),
    option("gtid_owned", OptionKind::Text { default: Some("") }, Scope::Both).fixed().runtime().unpersisted(),
    option("gtid_purged", OptionKind::Text { default: Some("") }, Scope::Global).runtime().unpersisted(),
    option("have_compress", OptionKind::Text { default: Some("YES") }, Scope::Global).fixed().runtime().unpersisted(),
    option("have_dynamic_loading", OptionKind::Text { default: Some("NO") }, Scope::Global).fixed().runtime().unpersisted(),
    option("have_geometry", OptionKind::Text { default: Some("NO") }, Scope::Global).fixed().runtime().unpersisted(),
    option("have_profiling", OptionKind::Text { default: Some("NO") }, Scope::Global).fixed().runtime().unpersisted(),
    option("have_query_cache", OptionKind::Text { default: Some("NO") }, Scope::Global).fixed().runtime().unpersisted(),
    option("have_rtree_keys", OptionKind::Text { default: Some("YES") }, Scope::Global).fixed().runtime().unpersisted(),
    option("have_statement_timeout", OptionKind::Text { default: Some("YES") }, Scope::Global).fixed().runtime().unpersisted(),
    option("have_symlink", OptionKind::Text { default: Some("DISABLED") }, Scope::Global).fixed().runtime().unpersisted(),
    option("hostname", OptionKind::Text { default: Some("localhost") }, Scope::Global).fixed().runtime().unpersisted(),
    option("identity", OptionKind::Int { default: 0, min: 0, max: u64::MAX }, Scope::Session).runtime(),
    flag("innodb_adaptive_hash_index", true),
    flag("innodb_buffer_pool_dump_at_shutdown", true),
    flag("innodb_buffer_pool_dump_now", false).runtime(),
    int("innodb_buffer_pool_dump_pct", 25, 1, 100),
    text("innodb_buffer_pool_filename", Some("ib_buffer_pool")),
    flag("innodb_buffer_pool_load_abort", false).runtime(),
    flag("innodb_buffer_pool_load_at_startup", true).fixed().unpersisted(),
    flag("innodb_buffer_pool_load_now", false).runtime(),
    int("innodb_buffer_pool_size", 128 * M, 5 * M, u64::MAX),
    flag("innodb_doublewrite", true).fixed().unpersisted(),
    choice("innodb_flush_log_at_trx_commit", "1", &["0", "1", "2"], Scope::Global),
    choice("innodb_flush_method", "O_DIRECT", &["fsync", "O_DSYNC", "O_DIRECT", "O_DIRECT_NO_FSYNC"], Scope::Global).fixed(),
    flag_both("innodb_ft_enable_stopword", true),
    int("innodb_ft_max_token_size", 84, 10, 84).fixed(),
    int("innodb_ft_min_token_size", 3, 0, 16).fixed(),
    int("innodb_io_capacity", 10_000, 100, u32::MAX as u64),
    int("innodb_io_capacity_max", 20_000, 100, u32::MAX as u64),
    int_both("innodb_lock_wait_timeout", 50, 1, 1_073_741_824),
    int("innodb_log_buffer_size", 64 * M, 256 * K, 2 * G).fixed(),
    int("innodb_max_undo_log_size", G, 10 * M, u64::MAX),
    choice("innodb_page_size", "16384", &["16384", "16k"], Scope::Global).fixed().unpersisted(),
    flag("innodb_print_all_deadlocks", false),
    int("innodb_read_io_threads", 4, 1, 64).fixed(),
    int("innodb_redo_log_capacity", 100 * M, 8 * M, 512 * G),
    flag("innodb_rollback_on_timeout", false).fixed(),
    int("innodb_thread_concurrency", 0, 0, 1000),
    flag("innodb_undo_log_truncate", true),
    option("innodb_version", OptionKind::Text { default: Some("8.4.0") }, Scope::Global).fixed().runtime().unpersisted(),
    int("innodb_write_io_threads", 4, 1, 64).fixed(),
    option("insert_id", OptionKind::Int { default: 0, min: 0, max: u64::MAX }, Scope::Session).runtime(),
    int_both("interactive_timeout", 28_800, 1, 31_536_000),
    int_both("join_buffer_size", 256 * K, 128, u64::MAX),
    option("large_files_support", OptionKind::Bool { default: true }, Scope::Global).fixed().runtime().unpersisted(),
    option("last_insert_id", OptionKind::Int { default: 0, min: 0, max: u64::MAX }, Scope::Session).runtime(),
    option("lc_time_names", OptionKind::Text { default: Some("en_US") }, Scope::Both),
    option("license", OptionKind::Text { default: Some("Apache-2.0") }, Scope::Global).fixed().runtime().unpersisted(),
    flag("local_infile", false),
    int_both("lock_wait_timeout", 31_536_000, 1, 31_536_000),
    flag("log_bin", false).fixed().unpersisted(),
    // Given by `log_bin`.
    text("log_bin_basename", None).fixed().runtime().unpersisted(),
    int("log_error_verbosity", 2, 1, 3),
    option("log_output", OptionKind::Text { default: Some("FILE") }, Scope::Global),
    option("long_query_time", OptionKind::Real { default: 10.0, min: 0.0, max: 31_536_000.0 }, Scope::Both),
    option("lower_case_file_system", OptionKind::Bool { default: false }, Scope::Global).fixed().runtime().unpersisted(),
    int("lower_case_table_names", 0, 0, 0).fixed(),
    text("mandatory_roles", Some("")),
    int_both("max_allowed_packet", 64 * M, K, G),
    int("max_binlog_size", 1_073_741_824, 4096, 1_073_741_824),
    int("max_connections", 151, 1, 100_000),
    int_both("max_error_count", 1024, 0, 65535),
    int_both("max_execution_time", 0, 0, u32::MAX as u64),
    int("max_prepared_stmt_count", 16_382, 0, 4_194_304),
    option("max_sort_length", OptionKind::Int { default: 1024, min: 4, max: 8_388_608 }, Scope::Both),
    int_both("max_user_connections", 0, 0, u32::MAX as u64),
    option("min_examined_row_limit", OptionKind::Int { default: 0, min: 0, max: u64::MAX }, Scope::Both),
    int_both("net_read_timeout", 30, 1, 31_536_000),
    int_both("net_write_timeout", 60, 1, 31_536_000),
    flag("nfold_io_uring", true).fixed(),
    flag("nfold_move_connections", true).fixed(),
    flag("nfold_pin_workers", true).fixed(),
    int("nfold_plan_cache_size", 64 * M, 0, u64::MAX),
    int("nfold_server_memory", 0, 0, u64::MAX),
    int_both("nfold_statement_memory", 0, 0, u64::MAX),
    int("nfold_workers", 0, 0, 1024).fixed(),
    int("ngram_token_size", 2, 1, 10).fixed(),
    text_both("optimizer_switch", super::switches::DEFAULT),
    text_both("optimizer_trace", "enabled=off,one_line=off"),
    text_both("optimizer_trace_features", "greedy_search=on,range_optimizer=on,dynamic_range=on,repeated_subselect=on"),
    int_both("optimizer_trace_limit", 1, 0, 9_223_372_036_854_775_807),
    int_both("optimizer_trace_max_mem_size", 1_048_576, 0, u64::MAX),
    signed_both("optimizer_trace_offset", -1, -9_223_372_036_854_775_808, 9_223_372_036_854_775_807),
    flag("partial_revokes", false),
    int("password_history", 0, 0, 4_294_967_295),
    flag("password_require_current", false),
    int("password_reuse_interval", 0, 0, 4_294_967_295),
    int("performance_schema_digests_size", 2000, 0, M).fixed(),
    text("pid_file", None).fixed().unpersisted(),
    int("port", 3306, 0, 65535).fixed().unpersisted(),
    option("print_identified_with_as_hex", OptionKind::Bool { default: false }, Scope::Both).runtime(),
    option("profiling", OptionKind::Bool { default: false }, Scope::Both).runtime(),
    option("profiling_history_size", OptionKind::Int { default: 15, min: 0, max: 100 }, Scope::Both).runtime(),
    text("protocol_compression_algorithms", Some("zlib,zstd,uncompressed")),
    option("protocol_version", OptionKind::Int { default: 10, min: 0, max: u64::MAX }, Scope::Global).fixed().runtime().unpersisted(),
    option("pseudo_replica_mode", OptionKind::Bool { default: false }, Scope::Session).runtime(),
    option("pseudo_slave_mode", OptionKind::Bool { default: false }, Scope::Session).runtime(),
    option("pseudo_thread_id", OptionKind::Int { default: 0, min: 0, max: u64::MAX }, Scope::Session).runtime(),
    option("rand_seed1", OptionKind::Int { default: 0, min: 0, max: u64::MAX }, Scope::Session).runtime(),
    option("rand_seed2", OptionKind::Int { default: 0, min: 0, max: u64::MAX }, Scope::Session).runtime(),
    flag("read_only", false),
    option("regexp_stack_limit", OptionKind::Int { default: 8_000_000, min: 0, max: 2_147_483_647 }, Scope::Global),
    option("regexp_time_limit", OptionKind::Int { default: 32, min: 0, max: 2_147_483_647 }, Scope::Global),
    int("replica_transaction_retries", 10, 0, u64::MAX),
    option("require_row_format", OptionKind::Bool { default: false }, Scope::Session).runtime(),
    flag("require_secure_transport", false),
    flag_both("restrict_fk_on_non_standard_key", true).unpersisted(),
    option("resultset_metadata", OptionKind::Text { default: Some("FULL") }, Scope::Session).runtime(),
    flag("rpl_semi_sync_replica_enabled", false),
    flag("rpl_semi_sync_source_enabled", false),
    int("rpl_semi_sync_source_timeout", 10_000, 0, 4_294_967_295),
    int("rpl_semi_sync_source_wait_for_replica_count", 1, 1, 65_535),
    flag("rpl_semi_sync_source_wait_no_replica", true),
    choice("rpl_semi_sync_source_wait_point", "AFTER_COMMIT", &["AFTER_COMMIT"], Scope::Global),
    text("secure_file_priv", None).fixed().unpersisted(),
    int("server_id", 1, 0, u32::MAX as u64),
    option("server_uuid", OptionKind::Text { default: Some("") }, Scope::Global).fixed().runtime().unpersisted(),
    choice("session_track_gtids", "OFF", &["OFF", "OWN_GTID", "ALL_GTIDS"], Scope::Both),
    flag_both("session_track_schema", true),
    flag_both("session_track_state_change", false),
    text_both("session_track_system_variables", "time_zone,autocommit,character_set_client,character_set_results,character_set_connection"),
    choice("session_track_transaction_info", "OFF", &["OFF", "STATE", "CHARACTERISTICS"], Scope::Both),
    option("show_create_table_verbosity", OptionKind::Bool { default: false }, Scope::Both).runtime(),
    flag("skip_networking", false).fixed().unpersisted(),
    flag("skip_replica_start", false).fixed(),
    flag("skip_slave_start", false).fixed(),
    int("slave_transaction_retries", 10, 0, u64::MAX),
    option("slow_query_log", OptionKind::Bool { default: false }, Scope::Global),
    option("slow_query_log_file", OptionKind::Text { default: Some("") }, Scope::Global),
    text("socket", None).fixed().unpersisted(),
    int_both("sort_buffer_size", 256 * K, 32 * K, u64::MAX),
    option("sql_auto_is_null", OptionKind::Bool { default: false }, Scope::Both).runtime(),
    option("sql_big_selects", OptionKind::Bool { default: true }, Scope::Both).runtime(),
    option("sql_buffer_result", OptionKind::Bool { default: false }, Scope::Both).runtime(),
    option("sql_log_bin", OptionKind::Bool { default: true }, Scope::Session).runtime(),
    option("sql_log_off", OptionKind::Bool { default: false }, Scope::Both).runtime(),
    text_both("sql_mode", SQL_MODE),
    option("sql_notes", OptionKind::Bool { default: true }, Scope::Both).runtime(),
    option("sql_quote_show_create", OptionKind::Bool { default: true }, Scope::Both).runtime(),
    flag_both("sql_require_primary_key", false),
    flag_both("sql_safe_updates", false),
    option("sql_select_limit", OptionKind::Int { default: u64::MAX, min: 0, max: u64::MAX }, Scope::Both).runtime(),
    option("sql_warnings", OptionKind::Bool { default: false }, Scope::Both).runtime(),
    flag("ssl", true).fixed(),
    text("ssl_ca", Some("")),
    text("ssl_cert", None).fixed(),
    text("ssl_key", None).fixed(),
    flag("super_read_only", false),
    option("system_time_zone", OptionKind::Text { default: Some("UTC") }, Scope::Global).fixed().runtime().unpersisted(),
    text_both("time_zone", "SYSTEM"),
    option("timestamp", OptionKind::Real { default: 0.0, min: 0.0, max: 32_536_771_199.0 }, Scope::Session).runtime(),
    int_both("tmp_table_size", 16 * M, K, u64::MAX),
    text("tmpdir", None).fixed().unpersisted(),
    choice("transaction_isolation", "REPEATABLE-READ", ISOLATION, Scope::Both),
    flag_both("transaction_read_only", false),
    flag_both("unique_checks", true),
    int("validate_password.changed_characters_percentage", 0, 0, 100),
    flag("validate_password.check_user_name", true),
    text("validate_password.dictionary_file", None),
    int("validate_password.length", 8, 0, 2_147_483_647),
    int("validate_password.mixed_case_count", 1, 0, 2_147_483_647),
    int("validate_password.number_count", 1, 0, 2_147_483_647),
    choice("validate_password.policy", "MEDIUM", &["LOW", "MEDIUM", "STRONG"], Scope::Global),
    int("validate_password.special_char_count", 1, 0, 2_147_483_647),
    option("version", OptionKind::Text { default: Some("") }, Scope::Global).fixed().runtime().unpersisted(),
    option("version_comment", OptionKind::Text { default: Some("Nfold") }, Scope::Global).fixed().runtime().unpersisted(),
    option("version_compile_machine", OptionKind::Text { default: Some(std::env::consts::ARCH) }, Scope::Global).fixed().runtime().unpersisted(),
    option("version_compile_os", OptionKind::Text { default: Some("Linux") }, Scope::Global).fixed().runtime().unpersisted(),
    int_both("wait_timeout", 28_800, 1, 31_536_000),
    option("warning_count", OptionKind::Int { default: 0, min: 0, max: u64::MAX }, Scope::Session).fixed().runtime(),
    flag_both("xa_detach_on_prepare", true),
];

/// The number of all options.
const COUNT: usize = EFFECTIVE.len() + ACCEPTED.len();

/// All options, ordered by name.
pub static OPTIONS: &[OptionDef] = &MERGED;

static MERGED: [OptionDef; COUNT] = merged();

/// [`EFFECTIVE`] and [`ACCEPTED`], merged by name.
const fn merged() -> [OptionDef; COUNT] {
    let mut all = [EFFECTIVE[0]; COUNT];
    let (mut effective, mut accepted) = (0, 0);
    while effective + accepted < COUNT {
        let at = effective + accepted;
        let first = accepted == ACCEPTED.len()
            || effective < EFFECTIVE.len()
                && precedes(EFFECTIVE[effective].name, ACCEPTED[accepted].name);
        if first {
            all[at] = EFFECTIVE[effective];
            effective += 1;
        } else {
            all[at] = ACCEPTED[accepted];
            all[at].effective = false;
            accepted += 1;
        }
    }
    all
}

/// Whether a name stands before another in the order of their bytes.
const fn precedes(name: &str, other: &str) -> bool {
    let (a, b) = (name.as_bytes(), other.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() {
        if a[i] != b[i] {
            return a[i] < b[i];
        }
        i += 1;
    }
    a.len() < b.len()
}

/// The position in [`OPTIONS`] of a variable's name in any case, as in SET.
pub fn variable(name: &str) -> Option<usize> {
    let name = name.to_ascii_lowercase();
    OPTIONS.binary_search_by(|o| o.name.cmp(&name)).ok()
}

/// The position in [`OPTIONS`] of the other name of a variable that has two. Both have one value.
pub fn other_name(at: usize) -> Option<usize> {
    let name = OPTIONS[at].name;
    let other = OLDER_NAMES.iter().find_map(|&(older, present)| match name {
        _ if name == older => Some(present),
        _ if name == present => Some(older),
        _ => None,
    });
    other.and_then(variable)
}

/// The position in [`OPTIONS`] of a start-up option, with `-` for `_`, in any case.
pub fn find(name: &str) -> Option<usize> {
    variable(&name.replace('-', "_")).filter(|&at| OPTIONS[at].startup)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_ordered_and_its_defaults_are_in_range() {
        assert!(OPTIONS.windows(2).all(|w| w[0].name < w[1].name));
        for o in OPTIONS {
            match o.kind {
                OptionKind::Int { default, min, max } => {
                    assert!((min..=max).contains(&default), "{}", o.name)
                }
                OptionKind::Signed { default, min, max } => {
                    assert!((min..=max).contains(&default), "{}", o.name)
                }
                OptionKind::Real { default, min, max } => {
                    assert!((min..=max).contains(&default), "{}", o.name)
                }
                OptionKind::Choice { default, values } => {
                    assert!(values.contains(&default), "{}", o.name)
                }
                OptionKind::Bool { .. } | OptionKind::Text { .. } => {}
            }
        }
    }

    #[test]
    fn both_names_of_a_variable_have_one_definition() {
        for (older, present) in OLDER_NAMES {
            let [a, b] = [older, present].map(|name| variable(name).expect(name));
            assert_eq!((other_name(a), other_name(b)), (Some(b), Some(a)));
            let [mut a, b] = [OPTIONS[a], OPTIONS[b]];
            a.name = b.name;
            assert_eq!(format!("{a:?}"), format!("{b:?}"));
        }
        assert_eq!(variable("port").and_then(other_name), None);
    }

    #[test]
    fn names_are_found_in_every_spelling() {
        assert_eq!(
            find("innodb-buffer_pool-SIZE").map(|i| OPTIONS[i].name),
            Some("innodb_buffer_pool_size")
        );
        assert_eq!(find("nonsense"), None);
        assert_eq!(find("last_insert_id"), None, "no start-up option");
        assert_eq!(variable("innodb-page-size"), None, "SET knows no dashes");
        assert!(variable("Last_Insert_ID").is_some());
    }
}
