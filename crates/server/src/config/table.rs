//! All options and system variables of the server: one table for the option file, the command line
//! and `@@variables`.
//!
//! The session layer takes names, ranges, defaults and permissions for SET from the same entries.
//! Many variables have no effect here (`inert`): clients, ORMs and dump tools read or SET them, and
//! option files for MySQL contain them. Source: MySQL 8.4 manual, "Server System Variables"; the
//! defaults are MySQL's.

/// The type and range of an option.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OptionKind {
    /// ON or OFF.
    Bool { default: bool },
    /// An integer; in a file with an optional suffix K, M, G, T.
    Int { default: u64, min: u64, max: u64 },
    /// A floating-point number.
    Real { default: f64, min: f64, max: f64 },
    /// A string; `None`: NULL or unset.
    Text { default: Option<&'static str> },
    /// One of several words, case-insensitive, or its number in the list.
    Choice {
        default: &'static str,
        values: &'static [&'static str],
    },
}

/// The scopes of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// `@@GLOBAL` only.
    Global,
    /// Global and session: a session's value starts as the global one.
    Both,
    /// Session only.
    Session,
}

/// The definition of an option.
#[derive(Debug, Clone, Copy)]
pub struct OptionDef {
    /// The name in lower case, with underscores.
    pub name: &'static str,
    pub kind: OptionKind,
    pub scope: Scope,
    /// Whether SET can change it at run time.
    pub dynamic: bool,
    /// Whether it is allowed in an option file or on the command line.
    pub startup: bool,
    /// Whether it has an effect. Otherwise it is accepted and shown, so that files and clients for
    /// MySQL work.
    pub effective: bool,
}

const K: u64 = 1 << 10;
const M: u64 = 1 << 20;
const G: u64 = 1 << 30;

const fn option(name: &'static str, kind: OptionKind, scope: Scope) -> OptionDef {
    OptionDef {
        name,
        kind,
        scope,
        dynamic: true,
        startup: true,
        effective: true,
    }
}

impl OptionDef {
    /// Set at start-up only.
    const fn fixed(mut self) -> Self {
        self.dynamic = false;
        self
    }

    /// Set at run time only: by a session, or by the server itself.
    const fn runtime(mut self) -> Self {
        self.startup = false;
        self
    }

    /// Accepted without effect.
    const fn inert(mut self) -> Self {
        self.effective = false;
        self
    }
}

const fn int(name: &'static str, default: u64, min: u64, max: u64) -> OptionDef {
    option(name, OptionKind::Int { default, min, max }, Scope::Global)
}

const fn int_both(name: &'static str, default: u64, min: u64, max: u64) -> OptionDef {
    option(name, OptionKind::Int { default, min, max }, Scope::Both)
}

const fn flag(name: &'static str, default: bool) -> OptionDef {
    option(name, OptionKind::Bool { default }, Scope::Global)
}

const fn flag_both(name: &'static str, default: bool) -> OptionDef {
    option(name, OptionKind::Bool { default }, Scope::Both)
}

const fn text(name: &'static str, default: Option<&'static str>) -> OptionDef {
    option(name, OptionKind::Text { default }, Scope::Global)
}

const fn text_both(name: &'static str, default: &'static str) -> OptionDef {
    option(
        name,
        OptionKind::Text {
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
    option(name, OptionKind::Choice { default, values }, scope)
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
#[rustfmt::skip]
pub static OPTIONS: &[OptionDef] = &[
    flag("activate_all_roles_on_login", false),
    text("authentication_policy", Some("*,,")).inert(),
    int_both("auto_increment_increment", 1, 1, 65535),
    int_both("auto_increment_offset", 1, 1, 65535),
    flag_both("autocommit", true),
    int("back_log", 1024, 1, 65535).fixed(),
    option("basedir", OptionKind::Text { default: Some("") }, Scope::Global).fixed(),
    flag_both("big_tables", false).inert(),
    text("bind_address", Some("127.0.0.1")).fixed(),
    option("binlog_cache_size", OptionKind::Int { default: 32_768, min: 4096, max: 18_446_744_073_709_547_520 }, Scope::Global).inert(),
    option("binlog_direct_non_transactional_updates", OptionKind::Bool { default: false }, Scope::Both).inert(),
    option("binlog_expire_logs_seconds", OptionKind::Int { default: 2_592_000, min: 0, max: 4_294_967_295 }, Scope::Global).inert(),
    option("binlog_format", OptionKind::Text { default: Some("ROW") }, Scope::Both).inert(),
    option("binlog_row_image", OptionKind::Text { default: Some("FULL") }, Scope::Both).inert(),
    option("binlog_row_metadata", OptionKind::Text { default: Some("MINIMAL") }, Scope::Global).inert(),
    option("binlog_rows_query_log_events", OptionKind::Bool { default: false }, Scope::Both).inert(),
    option("block_encryption_mode", OptionKind::Text { default: Some("aes-128-ecb") }, Scope::Both).inert(),
    option("bulk_insert_buffer_size", OptionKind::Int { default: 8_388_608, min: 0, max: u64::MAX }, Scope::Both).inert(),
    text_both("character_set_client", "utf8mb4"),
    text_both("character_set_connection", "utf8mb4"),
    option("character_set_database", OptionKind::Text { default: Some("utf8mb4") }, Scope::Both).runtime(),
    option("character_set_filesystem", OptionKind::Text { default: Some("binary") }, Scope::Both).inert(),
    text_both("character_set_results", "utf8mb4"),
    text_both("character_set_server", "utf8mb4"),
    option("character_set_system", OptionKind::Text { default: Some("utf8mb3") }, Scope::Global).fixed().runtime(),
    text_both("collation_connection", "utf8mb4_0900_ai_ci"),
    option("collation_database", OptionKind::Text { default: Some("utf8mb4_0900_ai_ci") }, Scope::Both).runtime(),
    text_both("collation_server", "utf8mb4_0900_ai_ci"),
    option("completion_type", OptionKind::Text { default: Some("NO_CHAIN") }, Scope::Both),
    option("concurrent_insert", OptionKind::Choice { default: "AUTO", values: &["NEVER", "AUTO", "ALWAYS"] }, Scope::Global).inert(),
    int("connect_timeout", 10, 2, 31_536_000),
    int_both("connection_memory_chunk_size", 8192, 0, 512 * M).inert(),
    int_both("connection_memory_limit", u64::MAX, 2 * M, u64::MAX).inert(),
    int("connection_memory_status_limit", u64::MAX, 2 * M, u64::MAX).inert(),
    int_both("cte_max_recursion_depth", 1000, 0, u32::MAX as u64),
    text("datadir", None).fixed(),
    option("default_collation_for_utf8mb4", OptionKind::Text { default: Some("utf8mb4_0900_ai_ci") }, Scope::Both).runtime(),
    option("default_password_lifetime", OptionKind::Int { default: 0, min: 0, max: 65_535 }, Scope::Global).inert(),
    text_both("default_storage_engine", "InnoDB"),
    option("default_table_encryption", OptionKind::Bool { default: false }, Scope::Both).inert(),
    text_both("default_tmp_storage_engine", "InnoDB").inert(),
    int_both("default_week_format", 0, 0, 7),
    int_both("div_precision_increment", 4, 0, 30),
    option("end_markers_in_json", OptionKind::Bool { default: false }, Scope::Both).inert(),
    option("enforce_gtid_consistency", OptionKind::Text { default: Some("OFF") }, Scope::Global).inert(),
    int_both("eq_range_index_dive_limit", 200, 0, u32::MAX as u64).inert(),
    option("error_count", OptionKind::Int { default: 0, min: 0, max: u64::MAX }, Scope::Session).fixed().runtime(),
    choice("event_scheduler", "OFF", &["OFF", "ON", "DISABLED"], Scope::Global).inert(),
    option("explain_format", OptionKind::Text { default: Some("TREE") }, Scope::Both),
    int_both("explain_json_format_version", 2, 1, 2),
    flag_both("explicit_defaults_for_timestamp", true),
    flag_both("foreign_key_checks", true),
    option("ft_boolean_syntax", OptionKind::Text { default: Some("+ -><()~*:\"\"&|") }, Scope::Global).inert(),
    option("ft_min_word_len", OptionKind::Int { default: 4, min: 1, max: 84 }, Scope::Global).fixed().inert(),
    option("general_log", OptionKind::Bool { default: false }, Scope::Global),
    option("general_log_file", OptionKind::Text { default: Some("") }, Scope::Global),
    int("global_connection_memory_limit", u64::MAX, 16 * M, u64::MAX).inert(),
    int("global_connection_memory_status_limit", u64::MAX, 16 * M, u64::MAX).inert(),
    flag_both("global_connection_memory_tracking", false).inert(),
    int_both("group_concat_max_len", 1024, 4, u64::MAX),
    option("gtid_executed", OptionKind::Text { default: Some("") }, Scope::Global).fixed().runtime(),
    option("gtid_mode", OptionKind::Text { default: Some("OFF") }, Scope::Global).inert(),
    option("gtid_owned", OptionKind::Text { default: Some("") }, Scope::Both).fixed().runtime(),
    option("gtid_purged", OptionKind::Text { default: Some("") }, Scope::Global).runtime(),
    option("have_compress", OptionKind::Text { default: Some("NO") }, Scope::Global).fixed().runtime(),
    option("have_dynamic_loading", OptionKind::Text { default: Some("NO") }, Scope::Global).fixed().runtime(),
    option("have_geometry", OptionKind::Text { default: Some("NO") }, Scope::Global).fixed().runtime(),
    option("have_profiling", OptionKind::Text { default: Some("NO") }, Scope::Global).fixed().runtime(),
    option("have_query_cache", OptionKind::Text { default: Some("NO") }, Scope::Global).fixed().runtime(),
    option("have_rtree_keys", OptionKind::Text { default: Some("YES") }, Scope::Global).fixed().runtime(),
    option("have_statement_timeout", OptionKind::Text { default: Some("YES") }, Scope::Global).fixed().runtime(),
    option("have_symlink", OptionKind::Text { default: Some("DISABLED") }, Scope::Global).fixed().runtime(),
    option("hostname", OptionKind::Text { default: Some("localhost") }, Scope::Global).fixed().runtime(),
    option("identity", OptionKind::Int { default: 0, min: 0, max: u64::MAX }, Scope::Session).runtime(),
    option("information_schema_stats_expiry", OptionKind::Int { default: 86_400, min: 0, max: 31_536_000 }, Scope::Both).inert(),
    text("init_connect", Some("")).inert(),
    flag("innodb_adaptive_hash_index", true),
    int("innodb_autoinc_lock_mode", 2, 0, 2).fixed().inert(),
    option("innodb_buffer_pool_chunk_size", OptionKind::Int { default: 134_217_728, min: 1_048_576, max: 144_115_188_075_855_871 }, Scope::Global).fixed().inert(),
    flag("innodb_buffer_pool_dump_at_shutdown", true),
    flag("innodb_buffer_pool_dump_now", false).runtime(),
    int("innodb_buffer_pool_dump_pct", 25, 1, 100),
    text("innodb_buffer_pool_filename", Some("ib_buffer_pool")),
    int("innodb_buffer_pool_instances", 1, 1, 64).fixed().inert(),
    flag("innodb_buffer_pool_load_abort", false).runtime(),
    flag("innodb_buffer_pool_load_at_startup", true).fixed(),
    flag("innodb_buffer_pool_load_now", false).runtime(),
    int("innodb_buffer_pool_size", 128 * M, 5 * M, u64::MAX),
    option("innodb_change_buffering", OptionKind::Text { default: Some("all") }, Scope::Global).inert(),
    choice("innodb_checksum_algorithm", "crc32", &["crc32", "strict_crc32"], Scope::Global).inert(),
    option("innodb_data_file_path", OptionKind::Text { default: Some("ibdata1:12M:autoextend") }, Scope::Global).fixed().inert(),
    flag("innodb_deadlock_detect", true).inert(),
    flag("innodb_dedicated_server", false).fixed().inert(),
    option("innodb_default_row_format", OptionKind::Text { default: Some("dynamic") }, Scope::Global).inert(),
    flag("innodb_doublewrite", true).fixed(),
    option("innodb_fast_shutdown", OptionKind::Int { default: 1, min: 0, max: 2 }, Scope::Global).inert(),
    flag("innodb_file_per_table", true).inert(),
    int("innodb_fill_factor", 100, 10, 100).inert(),
    choice("innodb_flush_log_at_trx_commit", "1", &["0", "1", "2"], Scope::Global),
    choice("innodb_flush_method", "O_DIRECT", &["fsync", "O_DSYNC", "O_DIRECT", "O_DIRECT_NO_FSYNC"], Scope::Global).fixed().inert(),
    option("innodb_flush_neighbors", OptionKind::Int { default: 0, min: 0, max: 2 }, Scope::Global).inert(),
    flag_both("innodb_ft_enable_stopword", true),
    int("innodb_ft_max_token_size", 84, 10, 84).fixed(),
    int("innodb_ft_min_token_size", 3, 0, 16).fixed(),
    int("innodb_io_capacity", 10_000, 100, u32::MAX as u64),
    int("innodb_io_capacity_max", 20_000, 100, u32::MAX as u64),
    int_both("innodb_lock_wait_timeout", 50, 1, 1_073_741_824),
    int("innodb_log_buffer_size", 64 * M, 256 * K, 2 * G).fixed(),
    option("innodb_max_dirty_pages_pct", OptionKind::Real { default: 90.0, min: 0.0, max: 99.0 }, Scope::Global).inert(),
    int("innodb_max_undo_log_size", G, 10 * M, u64::MAX),
    option("innodb_open_files", OptionKind::Int { default: 4000, min: 0, max: 2_147_483_647 }, Scope::Global).fixed().inert(),
    choice("innodb_page_size", "16384", &["16384", "16k"], Scope::Global).fixed(),
    flag("innodb_print_all_deadlocks", false),
    int("innodb_purge_threads", 1, 1, 32).fixed().inert(),
    int("innodb_read_io_threads", 4, 1, 64).fixed(),
    option("innodb_read_only", OptionKind::Bool { default: false }, Scope::Global).fixed().inert(),
    int("innodb_redo_log_capacity", 100 * M, 8 * M, 512 * G),
    flag("innodb_rollback_on_timeout", false).fixed(),
    option("innodb_stats_auto_recalc", OptionKind::Bool { default: true }, Scope::Global).inert(),
    option("innodb_stats_on_metadata", OptionKind::Bool { default: false }, Scope::Global).inert(),
    flag("innodb_stats_persistent", true).inert(),
    option("innodb_stats_persistent_sample_pages", OptionKind::Int { default: 20, min: 1, max: u64::MAX }, Scope::Global).inert(),
    flag_both("innodb_strict_mode", true).inert(),
    option("innodb_table_locks", OptionKind::Bool { default: true }, Scope::Both).inert(),
    int("innodb_thread_concurrency", 0, 0, 1000),
    option("innodb_undo_directory", OptionKind::Text { default: Some("./") }, Scope::Global).fixed().inert(),
    flag("innodb_undo_log_truncate", true),
    flag("innodb_use_native_aio", true).fixed().inert(),
    option("innodb_version", OptionKind::Text { default: Some("8.4.0") }, Scope::Global).fixed().runtime(),
    int("innodb_write_io_threads", 4, 1, 64).fixed(),
    option("insert_id", OptionKind::Int { default: 0, min: 0, max: u64::MAX }, Scope::Session).runtime(),
    int_both("interactive_timeout", 28_800, 1, 31_536_000),
    option("internal_tmp_mem_storage_engine", OptionKind::Text { default: Some("TempTable") }, Scope::Both).inert(),
    int_both("join_buffer_size", 256 * K, 128, u64::MAX),
    option("key_buffer_size", OptionKind::Int { default: 8_388_608, min: 0, max: 18_446_744_073_709_547_520 }, Scope::Global).inert(),
    option("large_files_support", OptionKind::Bool { default: true }, Scope::Global).fixed().runtime(),
    option("last_insert_id", OptionKind::Int { default: 0, min: 0, max: u64::MAX }, Scope::Session).runtime(),
    option("lc_messages", OptionKind::Text { default: Some("en_US") }, Scope::Both).inert(),
    option("lc_time_names", OptionKind::Text { default: Some("en_US") }, Scope::Both),
    option("license", OptionKind::Text { default: Some("Apache-2.0") }, Scope::Global).fixed().runtime(),
    flag("local_infile", false),
    int_both("lock_wait_timeout", 31_536_000, 1, 31_536_000),
    flag("log_bin", false).fixed(),
    option("log_bin_trust_function_creators", OptionKind::Bool { default: false }, Scope::Global).inert(),
    option("log_error", OptionKind::Text { default: Some("stderr") }, Scope::Global).fixed().inert(),
    int("log_error_verbosity", 2, 1, 3),
    option("log_output", OptionKind::Text { default: Some("FILE") }, Scope::Global),
    option("log_queries_not_using_indexes", OptionKind::Bool { default: false }, Scope::Global).inert(),
    option("log_replica_updates", OptionKind::Bool { default: false }, Scope::Global).fixed().inert(),
    option("log_timestamps", OptionKind::Text { default: Some("UTC") }, Scope::Global).inert(),
    option("long_query_time", OptionKind::Real { default: 10.0, min: 0.0, max: 31_536_000.0 }, Scope::Both),
    option("lower_case_file_system", OptionKind::Bool { default: false }, Scope::Global).fixed().runtime(),
    int("lower_case_table_names", 0, 0, 0).fixed(),
    text("mandatory_roles", Some("")),
    int_both("max_allowed_packet", 64 * M, K, G),
    option("max_binlog_size", OptionKind::Int { default: 1_073_741_824, min: 4096, max: 1_073_741_824 }, Scope::Global).inert(),
    int("max_connect_errors", 100, 1, u64::MAX).inert(),
    int("max_connections", 151, 1, 100_000),
    option("max_digest_length", OptionKind::Int { default: 1024, min: 0, max: 1_048_576 }, Scope::Global).fixed().inert(),
    int_both("max_error_count", 1024, 0, 65535),
    int_both("max_execution_time", 0, 0, u32::MAX as u64),
    int_both("max_heap_table_size", 16 * M, 16 * K, u64::MAX).inert(),
    option("max_join_size", OptionKind::Int { default: u64::MAX, min: 1, max: u64::MAX }, Scope::Both).inert(),
    option("max_length_for_sort_data", OptionKind::Int { default: 4096, min: 4, max: 8_388_608 }, Scope::Both).inert(),
    int("max_prepared_stmt_count", 16_382, 0, 4_194_304),
    option("max_seeks_for_key", OptionKind::Int { default: u64::MAX, min: 1, max: u64::MAX }, Scope::Both).inert(),
    option("max_sort_length", OptionKind::Int { default: 1024, min: 4, max: 8_388_608 }, Scope::Both),
    option("max_sp_recursion_depth", OptionKind::Int { default: 0, min: 0, max: 255 }, Scope::Both).inert(),
    int_both("max_user_connections", 0, 0, u32::MAX as u64).inert(),
    option("min_examined_row_limit", OptionKind::Int { default: 0, min: 0, max: u64::MAX }, Scope::Both),
    int_both("net_buffer_length", 16 * K, K, M).inert(),
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
    int("open_files_limit", 0, 0, u32::MAX as u64).fixed().inert(),
    option("optimizer_max_subgraph_pairs", OptionKind::Int { default: 100_000, min: 1, max: 2_147_483_647 }, Scope::Both).inert(),
    option("optimizer_prune_level", OptionKind::Int { default: 1, min: 0, max: 1 }, Scope::Both).inert(),
    option("optimizer_search_depth", OptionKind::Int { default: 62, min: 0, max: 62 }, Scope::Both).inert(),
    text_both("optimizer_switch", super::switches::DEFAULT).inert(),
    option("optimizer_trace", OptionKind::Text { default: Some("enabled=off,one_line=off") }, Scope::Both).inert(),
    option("optimizer_trace_features", OptionKind::Text { default: Some("greedy_search=on,range_optimizer=on,dynamic_range=on,repeated_subselect=on") }, Scope::Both).inert(),
    option("optimizer_trace_limit", OptionKind::Int { default: 1, min: 0, max: 9_223_372_036_854_775_807 }, Scope::Both).inert(),
    option("optimizer_trace_max_mem_size", OptionKind::Int { default: 1_048_576, min: 0, max: u64::MAX }, Scope::Both).inert(),
    option("optimizer_trace_offset", OptionKind::Int { default: 0, min: 0, max: 9_223_372_036_854_775_807 }, Scope::Both).inert(),
    flag("performance_schema", false).fixed().inert(),
    int("performance_schema_digests_size", 2000, 0, M).fixed(),
    text("pid_file", None).fixed(),
    int("port", 3306, 0, 65535).fixed(),
    option("print_identified_with_as_hex", OptionKind::Bool { default: false }, Scope::Both).runtime(),
    option("profiling", OptionKind::Bool { default: false }, Scope::Both).runtime(),
    option("profiling_history_size", OptionKind::Int { default: 15, min: 0, max: 100 }, Scope::Both).runtime(),
    option("protocol_compression_algorithms", OptionKind::Text { default: Some("uncompressed") }, Scope::Global).inert(),
    option("protocol_version", OptionKind::Int { default: 10, min: 0, max: u64::MAX }, Scope::Global).fixed().runtime(),
    option("pseudo_replica_mode", OptionKind::Bool { default: false }, Scope::Session).runtime(),
    option("pseudo_slave_mode", OptionKind::Bool { default: false }, Scope::Session).runtime(),
    option("pseudo_thread_id", OptionKind::Int { default: 0, min: 0, max: u64::MAX }, Scope::Session).runtime(),
    option("rand_seed1", OptionKind::Int { default: 0, min: 0, max: u64::MAX }, Scope::Session).runtime(),
    option("rand_seed2", OptionKind::Int { default: 0, min: 0, max: u64::MAX }, Scope::Session).runtime(),
    int_both("range_optimizer_max_mem_size", 8 * M, 0, u64::MAX).inert(),
    option("read_buffer_size", OptionKind::Int { default: 131_072, min: 8192, max: 2_147_479_552 }, Scope::Both).inert(),
    flag("read_only", false),
    option("read_rnd_buffer_size", OptionKind::Int { default: 262_144, min: 1, max: 2_147_483_647 }, Scope::Both).inert(),
    option("regexp_stack_limit", OptionKind::Int { default: 8_000_000, min: 0, max: 2_147_483_647 }, Scope::Global),
    option("regexp_time_limit", OptionKind::Int { default: 32, min: 0, max: 2_147_483_647 }, Scope::Global),
    option("require_row_format", OptionKind::Bool { default: false }, Scope::Session).runtime(),
    flag("require_secure_transport", false),
    flag_both("restrict_fk_on_non_standard_key", true),
    option("resultset_metadata", OptionKind::Text { default: Some("FULL") }, Scope::Session).runtime(),
    text("secure_file_priv", None).fixed(),
    int("server_id", 1, 0, u32::MAX as u64),
    option("server_uuid", OptionKind::Text { default: Some("") }, Scope::Global).fixed().runtime(),
    option("session_track_gtids", OptionKind::Text { default: Some("OFF") }, Scope::Both).inert(),
    option("session_track_schema", OptionKind::Bool { default: true }, Scope::Both).inert(),
    option("session_track_state_change", OptionKind::Bool { default: false }, Scope::Both).inert(),
    option("session_track_system_variables", OptionKind::Text { default: Some("time_zone,autocommit,character_set_client,character_set_results,character_set_connection") }, Scope::Both).inert(),
    option("session_track_transaction_info", OptionKind::Text { default: Some("OFF") }, Scope::Both).inert(),
    option("show_create_table_verbosity", OptionKind::Bool { default: false }, Scope::Both).runtime(),
    option("show_gipk_in_create_table_and_information_schema", OptionKind::Bool { default: true }, Scope::Both).inert(),
    option("skip_external_locking", OptionKind::Bool { default: true }, Scope::Global).fixed().inert(),
    flag("skip_name_resolve", true).fixed().inert(),
    flag("skip_networking", false).fixed(),
    option("slow_launch_time", OptionKind::Int { default: 2, min: 0, max: 31_536_000 }, Scope::Global).inert(),
    option("slow_query_log", OptionKind::Bool { default: false }, Scope::Global),
    option("slow_query_log_file", OptionKind::Text { default: Some("") }, Scope::Global),
    text("socket", None).fixed(),
    int_both("sort_buffer_size", 256 * K, 32 * K, u64::MAX),
    option("sql_auto_is_null", OptionKind::Bool { default: false }, Scope::Both).runtime(),
    option("sql_big_selects", OptionKind::Bool { default: true }, Scope::Both).runtime(),
    option("sql_buffer_result", OptionKind::Bool { default: false }, Scope::Both).runtime(),
    option("sql_generate_invisible_primary_key", OptionKind::Bool { default: false }, Scope::Both).inert(),
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
    option("ssl_ca", OptionKind::Text { default: Some("") }, Scope::Global).inert(),
    option("ssl_capath", OptionKind::Text { default: Some("") }, Scope::Global).inert(),
    text("ssl_cert", None).fixed(),
    option("ssl_cipher", OptionKind::Text { default: Some("") }, Scope::Global).inert(),
    text("ssl_key", None).fixed(),
    flag("super_read_only", false),
    option("sync_binlog", OptionKind::Int { default: 1, min: 0, max: 4_294_967_295 }, Scope::Global).inert(),
    option("system_time_zone", OptionKind::Text { default: Some("UTC") }, Scope::Global).fixed().runtime(),
    int("table_definition_cache", 2000, 400, 524_288).inert(),
    option("table_encryption_privilege_check", OptionKind::Bool { default: false }, Scope::Global).inert(),
    int("table_open_cache", 4000, 1, 524_288).inert(),
    option("table_open_cache_instances", OptionKind::Int { default: 16, min: 1, max: 64 }, Scope::Global).fixed().inert(),
    option("temptable_max_ram", OptionKind::Int { default: 1_073_741_824, min: 2_097_152, max: u64::MAX }, Scope::Global).inert(),
    int("thread_cache_size", 0, 0, 16_384).inert(),
    option("thread_stack", OptionKind::Int { default: 1_048_576, min: 131_072, max: 18_446_744_073_709_550_592 }, Scope::Global).fixed().inert(),
    text_both("time_zone", "SYSTEM"),
    option("timestamp", OptionKind::Real { default: 0.0, min: 0.0, max: 32_536_771_199.0 }, Scope::Session).runtime(),
    option("tls_ciphersuites", OptionKind::Text { default: Some("") }, Scope::Global).inert(),
    option("tls_version", OptionKind::Text { default: Some("TLSv1.2,TLSv1.3") }, Scope::Global).inert(),
    int_both("tmp_table_size", 16 * M, K, u64::MAX),
    text("tmpdir", None).fixed(),
    option("transaction_alloc_block_size", OptionKind::Int { default: 8192, min: 1024, max: 131_072 }, Scope::Both).inert(),
    choice("transaction_isolation", "REPEATABLE-READ", ISOLATION, Scope::Both),
    option("transaction_prealloc_size", OptionKind::Int { default: 4096, min: 1024, max: 131_072 }, Scope::Both).inert(),
    flag_both("transaction_read_only", false),
    flag_both("unique_checks", true),
    option("updatable_views_with_limit", OptionKind::Text { default: Some("YES") }, Scope::Both).inert(),
    option("version", OptionKind::Text { default: Some("") }, Scope::Global).fixed().runtime(),
    option("version_comment", OptionKind::Text { default: Some("Nfold") }, Scope::Global).fixed().runtime(),
    option("version_compile_machine", OptionKind::Text { default: Some(std::env::consts::ARCH) }, Scope::Global).fixed().runtime(),
    option("version_compile_os", OptionKind::Text { default: Some("Linux") }, Scope::Global).fixed().runtime(),
    int_both("wait_timeout", 28_800, 1, 31_536_000),
    option("warning_count", OptionKind::Int { default: 0, min: 0, max: u64::MAX }, Scope::Session).fixed().runtime(),
    option("windowing_use_high_precision", OptionKind::Bool { default: true }, Scope::Both).inert(),
];

/// The position in [`OPTIONS`] of a variable's name in any case, as in SET.
pub fn variable(name: &str) -> Option<usize> {
    let name = name.to_ascii_lowercase();
    OPTIONS.binary_search_by(|o| o.name.cmp(&name)).ok()
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
