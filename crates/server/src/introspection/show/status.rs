//! SHOW STATUS, SHOW ENGINE, and the answer to COM_STATISTICS.

use nfold_catalog::Privileges;
use nfold_sql::ast::{EngineInfo, ShowFilter, VarScope};
use nfold_types::temporal::{TimeZone, Timestamp};
use nfold_types::{ColumnType, ErrorCode, SqlError, Value};

use super::filter;
use crate::session::env::Env;
use crate::session::response::{Response, RowSet, text_type};
use crate::session::{ServerState, Session, storage};

/// Counters of MySQL's that are always 0.
const NEVER_COUNTED: &[&str] = &[
    "Com_alter_event",
    "Com_alter_function",
    "Com_alter_instance",
    "Com_alter_library",
    "Com_alter_procedure",
    "Com_alter_resource_group",
    "Com_alter_server",
    "Com_alter_tablespace",
    "Com_assign_to_keycache",
    "Com_binlog",
    "Com_call_procedure",
    "Com_clone",
    "Com_create_event",
    "Com_create_function",
    "Com_create_library",
    "Com_create_masking_policy",
    "Com_create_procedure",
    "Com_create_resource_group",
    "Com_create_server",
    "Com_create_spatial_reference_system",
    "Com_create_trigger",
    "Com_create_udf",
    "Com_drop_event",
    "Com_drop_function",
    "Com_drop_library",
    "Com_drop_masking_policy",
    "Com_drop_procedure",
    "Com_drop_resource_group",
    "Com_drop_server",
    "Com_drop_spatial_reference_system",
    "Com_drop_trigger",
    "Com_group_replication_start",
    "Com_group_replication_stop",
    "Com_help",
    "Com_import",
    "Com_install_plugin",
    "Com_preload_keys",
    "Com_restart",
    "Com_set_resource_group",
    "Com_show_create_event",
    "Com_show_create_func",
    "Com_show_create_library",
    "Com_show_create_masking_policy",
    "Com_show_create_proc",
    "Com_show_create_trigger",
    "Com_show_function_code",
    "Com_show_library_status",
    "Com_show_parse_tree",
    "Com_show_procedure_code",
    "Com_show_profile",
    "Com_shutdown",
    "Com_stmt_reprepare",
    "Com_uninstall_plugin",
    "Created_tmp_disk_tables",
    "Created_tmp_files",
    "Handler_discover",
    "Handler_mrr_init",
    "Handler_prepare",
    "Open_files",
    "Open_streams",
    "Opened_files",
    "Opened_table_definitions",
    "Select_range_check",
];

/// A time as status variables show it, in the server's time zone.
fn read_time(seconds: u64) -> String {
    let micros = i64::try_from(seconds).unwrap_or_default() * 1_000_000;
    let local = TimeZone::system().to_local(Timestamp::from_micros(micros, 0));
    local.map_or(String::new(), |at| at.to_string())
}

impl ServerState {
    /// Name and value of every status variable, in the order of their names. `session`: the values
    /// of a session where a variable has such; those of the server if `None`.
    pub fn status_values(&self, session: Option<&Env>) -> Vec<(&'static str, String)> {
        let mut all = self.server_values();
        let counters = match session {
            Some(env) => env.counters.values(),
            None => self.session_counters.values(),
        };
        let (algorithm, level) = session.map_or(("", 0), Env::compression);
        all.extend([
            ("Compression", if level > 0 { "ON" } else { "OFF" }.into()),
            ("Compression_algorithm", algorithm.into()),
            ("Compression_level", level.to_string()),
        ]);
        // Counters of things that Nfold does not do, or does not count.
        let none = NEVER_COUNTED.iter().map(|name| (*name, 0));
        all.extend(
            counters
                .iter()
                .chain(none)
                .map(|(name, n)| (name, n.to_string())),
        );
        if self.components.validates_passwords() {
            let words = self.password_words.load();
            all.extend([
                (
                    "validate_password.dictionary_file_last_parsed",
                    read_time(words.read_s),
                ),
                (
                    "validate_password.dictionary_file_words_count",
                    words.count().to_string(),
                ),
            ]);
        }
        all.sort_unstable_by_key(|(name, _)| name.to_ascii_lowercase());
        all
    }

    /// The variables that have one value for the whole server.
    fn server_values(&self) -> Vec<(&'static str, String)> {
        let totals = self.counters.get().map(|c| c.totals()).unwrap_or_default();
        let store = self.engine.store_status();
        let trx = self.engine.trx_status();
        let row_locks = self.engine.row_lock_status();
        let row_hints = self.engine.row_hint_status();
        let plans = self.plans.status();
        let schema = self.engine.catalog().snapshot();
        let definitions = schema.tables().count() as u64;
        let tables = self.opened.count(schema.tables().map(|t| t.id));
        let page_bytes = 16_384;
        let used = store.pool_pages_total.saturating_sub(store.pool_pages_free);
        let mut all: Vec<(&'static str, String)> = [
            ("Aborted_clients", totals.aborted_clients),
            ("Aborted_connects", totals.aborted_connects),
            ("Bytes_received", totals.bytes_received),
            ("Bytes_sent", totals.bytes_sent),
            ("Connections", self.registry.connections_made()),
            ("Innodb_buffer_pool_pages_data", used),
            ("Innodb_buffer_pool_pages_dirty", store.pool_pages_dirty),
            ("Innodb_buffer_pool_pages_free", store.pool_pages_free),
            ("Innodb_buffer_pool_pages_total", store.pool_pages_total),
            ("Innodb_buffer_pool_bytes_data", used * page_bytes),
            (
                "Innodb_buffer_pool_bytes_dirty",
                store.pool_pages_dirty * page_bytes,
            ),
            ("Innodb_buffer_pool_reads", store.read_misses),
            ("Innodb_buffer_pool_read_ahead", store.read_ahead),
            ("Innodb_data_reads", store.reads),
            ("Innodb_data_writes", store.pages_written),
            ("Innodb_history_list_length", trx.history_length as u64),
            ("Innodb_log_waits", store.log_waits),
            ("Innodb_log_writes", store.log_writes),
            ("Innodb_os_log_fsyncs", store.log_syncs),
            ("Innodb_os_log_written", store.log_bytes_written),
            ("Innodb_page_size", page_bytes),
            ("Innodb_pages_created", store.pages_created),
            ("Innodb_pages_read", store.pages_read),
            ("Innodb_pages_written", store.pages_written),
            ("Innodb_redo_log_checkpoint_lsn", store.checkpoint_lsn),
            ("Innodb_redo_log_current_lsn", store.horizon_lsn),
            ("Innodb_redo_log_flushed_to_disk_lsn", store.durable_lsn),
            ("Innodb_row_lock_current_waits", row_locks.waiting),
            ("Innodb_row_lock_time", row_locks.waited_us / 1000),
            (
                "Innodb_row_lock_time_avg",
                row_locks.waited_us / row_locks.waits.max(1) / 1000,
            ),
            ("Innodb_row_lock_time_max", row_locks.longest_us / 1000),
            ("Innodb_row_lock_waits", row_locks.waits),
            ("Nfold_clock_marks", store.clock_marks),
            ("Nfold_answers_together", totals.together),
            ("Nfold_connections_moved", totals.moved),
            ("Nfold_row_hint_hits", row_hints.hits),
            ("Nfold_row_hint_misses", row_hints.misses),
            ("Nfold_row_hints_repaired", row_hints.repaired),
            ("Nfold_latch_acquired", store.latches_acquired),
            ("Nfold_latch_fallbacks", store.latch_fallbacks),
            ("Nfold_latch_waits", store.latch_waits),
            ("Nfold_optimistic_restarts", store.optimistic_restarts),
            ("Nfold_pages_evicted", store.pages_evicted),
            ("Nfold_plan_cache_bytes", plans.bytes),
            ("Nfold_plan_cache_evictions", plans.evictions),
            ("Nfold_plan_cache_hits", plans.hits),
            ("Nfold_plan_cache_misses", plans.misses),
            ("Nfold_plan_cache_plans", plans.plans),
            ("Nfold_memory_allocated", nfold_memory::allocated_by_all()),
            ("Nfold_statement_waits", totals.waits),
            ("Nfold_statement_yields", totals.yields),
            ("Nfold_transactions_purged", trx.purged_transactions),
            ("Nfold_undo_pages", trx.undo_pages as u64),
            ("Open_table_definitions", definitions),
            ("Open_tables", tables),
            ("Queries", totals.commands),
            ("Questions", totals.commands),
            ("Threads_connected", self.registry.connections() as u64),
            ("Threads_running", totals.running),
            ("Uptime", self.started.elapsed().as_secs()),
        ]
        .into_iter()
        .map(|(name, value)| (name, value.to_string()))
        .collect();
        all.extend(storage::resize_values(&store.resize));
        all.extend(self.pool_list.status());
        all.extend(self.slow_log.status());
        all.push(self.general_log.status());
        let semi_sync = self.replication.with_status(|status| status.semi_sync);
        let word = if semi_sync { "ON" } else { "OFF" };
        all.push(("Rpl_semi_sync_replica_status", word.to_owned()));
        let log = self.binlog.as_ref().filter(|log| log.is_active());
        let status = log.map(|log| log.semi_sync.status()).unwrap_or_default();
        let word = if status.is_on { "ON" } else { "OFF" };
        all.push(("Rpl_semi_sync_source_status", word.to_owned()));
        let counts = [
            ("Rpl_semi_sync_source_clients", status.clients),
            ("Rpl_semi_sync_source_no_times", status.times_off),
            ("Rpl_semi_sync_source_no_tx", status.unacknowledged),
            (
                "Rpl_semi_sync_source_tx_avg_wait_time",
                status.wait_us.checked_div(status.waits).unwrap_or(0),
            ),
            ("Rpl_semi_sync_source_tx_wait_time", status.wait_us),
            ("Rpl_semi_sync_source_tx_waits", status.waits),
            ("Rpl_semi_sync_source_wait_sessions", status.waiting),
            ("Rpl_semi_sync_source_yes_tx", status.acknowledged),
        ];
        all.extend(counts.map(|(name, value)| (name, value.to_string())));
        all
    }
}

impl Session {
    pub(super) fn show_status(
        &mut self,
        scope: VarScope,
        wanted: Option<&ShowFilter>,
    ) -> Result<Response, SqlError> {
        let own = (scope != VarScope::Global).then_some(&self.env);
        let mut set = RowSet::of_text(&[("Variable_name", 64), ("Value", 1024)]);
        for (name, value) in self.server.status_values(own) {
            set.push(vec![Value::from(name), Value::from(value)]);
        }
        filter::apply(&mut set, wanted, 0);
        Ok(Response::Rows(set))
    }

    pub(super) fn show_engine(
        &mut self,
        name: &str,
        what: EngineInfo,
    ) -> Result<Response, SqlError> {
        if what == EngineInfo::Contention {
            return Ok(self.show_contention());
        }
        if !name.eq_ignore_ascii_case("innodb") {
            return Err(SqlError::new(
                ErrorCode::ER_UNKNOWN_STORAGE_ENGINE,
                &[&name],
            ));
        }
        if what != EngineInfo::Status {
            return Err(SqlError::not_supported("SHOW ENGINE MUTEX and LOGS"));
        }
        self.rights.need_global(Privileges::PROCESS, "PROCESS")?;
        let text = self.innodb_status();
        let mut set = RowSet::of_text(&[("Type", 10), ("Name", 512), ("Status", 16_000)]);
        set.push(vec![
            Value::from("InnoDB"),
            Value::from(""),
            Value::from(text),
        ]);
        Ok(Response::Rows(set))
    }

    /// SHOW ENGINE NFOLD CONTENTION: the wait sites, longest waits first.
    fn show_contention(&self) -> Response {
        let number = ColumnType::bigint().with_unsigned();
        let mut set = RowSet::new(&[
            ("Wait", text_type(32)),
            ("Table_schema", text_type(64)),
            ("Table_name", text_type(64)),
            ("Index_name", text_type(64)),
            ("Space", number.clone()),
            ("Page", number.clone()),
            ("Level", number.clone()),
            ("Detail", text_type(1024)),
            ("Waits", number.clone()),
            ("Total_us", number.clone()),
            ("Longest_us", number),
            ("Waiting_now", text_type(1024)),
        ]);
        let optional = |n: Option<u32>| n.map_or(Value::Null, |n| Value::UInt(n.into()));
        for site in self.server.engine.wait_sites() {
            let waiting: Vec<String> = site.waiting.iter().map(u32::to_string).collect();
            set.push(vec![
                Value::from(site.kind),
                site.schema.as_deref().into(),
                site.table.as_deref().into(),
                site.index.as_deref().into(),
                optional(site.space),
                optional(site.page),
                optional(site.level.map(u32::from)),
                site.detail.into(),
                Value::UInt(site.waits),
                Value::UInt(site.time.as_micros() as u64),
                Value::UInt(site.longest.as_micros() as u64),
                Value::from(waiting.join(",")),
            ]);
        }
        Response::Rows(set)
    }

    /// The answer to COM_STATISTICS.
    pub(crate) fn statistics_line(&self) -> String {
        let totals = self
            .server
            .counters
            .get()
            .map(|c| c.totals())
            .unwrap_or_default();
        let uptime = self.server.started.elapsed().as_secs();
        let per_second = totals.commands as f64 / uptime.max(1) as f64;
        format!(
            "Uptime: {uptime}  Threads: {}  Questions: {}  Slow queries: {}  Opens: 0  Flush tables: 0  Open tables: {}  \
             Queries per second avg: {per_second:.3}",
            self.server.registry.connections(),
            totals.commands,
            self.server.slow_log.slow_queries(),
            self.schema.tables().count(),
        )
    }
}
