//! The state that all sessions share: the engine, global variables, accounts, connections.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use nfold_binlog::GtidSet;
use nfold_catalog::{Account, AccountId, DatabaseNames, PasswordOptions, TableId};
use nfold_engine::{Engine, FileCounters};
use nfold_observe::contention::{Site, WaitKind, WaitPlace};
use nfold_observe::digests::Digests;
use nfold_observe::{AllSessionCounters, ResetSums};
use nfold_types::{ErrorCode, SqlError};
use parking_lot::Mutex;
use rustc_hash::FxHashSet;

use super::gate::AccountUsage;
use super::locks::SharedPermits;
use super::replication::{ChannelSummary, Replication, Until};
use super::server_locks::ServerLock;
use super::shared_plans::SharedPlans;
use super::storage;
use super::system_schemas::SystemTables;
use super::vars::{self, Globals, VarValue};
use crate::binlog::{BinaryLog, BinlogTunables, SemiSyncOptions};
use crate::config::{Components, Persisted, ServerOptions, Source, server_uuid};
use crate::database::{OpenDatabase, machine_memory};
use crate::general_log::GeneralLog;
use crate::net::fiber::compression::Algorithms;
use crate::net::worker::{ProcessInfo, Registry, WorkerCounters};
use crate::password_policy::Words;
use crate::pool_list::PoolList;
use crate::slow_log::SlowLog;
use crate::unix_time::unix_time;

/// The minimum for the default of `nfold_server_memory`.
const MIN_SERVER_MEMORY: u64 = 256 << 20;

/// See the module's header.
pub struct ServerState {
    pub engine: Arc<Engine>,
    pub globals: Arc<Globals>,
    pub registry: Arc<Registry>,
    /// What SET PERSIST has stored.
    pub persisted: Arc<Persisted>,
    /// What INSTALL COMPONENT has installed.
    pub components: Arc<Components>,
    /// The values that the variables of components had when the server started.
    pub(crate) component_defaults: Vec<(usize, VarValue)>,
    /// The words of `validate_password.dictionary_file`.
    pub(crate) password_words: ArcSwap<Words>,
    /// Where the values come from with which the server has started, parallel to
    /// [`vars::definitions`].
    pub sources: Vec<Source>,
    pub system_tables: &'static dyn SystemTables,
    pub started: Instant,
    /// Held during each search for deadlocks that involve user-level locks.
    pub(crate) deadlock_search: Mutex<()>,
    /// The write permits of LOCK TABLES ... READ.
    pub(crate) read_permits: SharedPermits,
    /// The use that limited accounts make of the server.
    pub(crate) usage: AccountUsage,
    /// FLUSH TABLES WITH READ LOCK
    pub(crate) read_lock: ServerLock,
    /// LOCK INSTANCE FOR BACKUP
    pub(crate) backup_lock: ServerLock,
    /// The shared plan cache.
    pub(crate) plans: SharedPlans,
    /// Statistics by digest.
    pub digests: Digests,
    /// The counters of the data directory's files.
    pub(crate) files: Arc<FileCounters>,
    /// The sums that TRUNCATE of tables of `performance_schema` has subtracted.
    pub(crate) reset_sums: ResetSums,
    /// The list of the buffer pool's pages, which is kept over a restart.
    pub pool_list: Arc<PoolList>,
    pub slow_log: SlowLog,
    pub general_log: GeneralLog,
    /// Tables that statements have used.
    pub(crate) opened: OpenedTables,
    pub(crate) replication: Replication,
    /// `None`: there are no files of a binary log, and `log_bin` is OFF.
    pub(crate) binlog: Option<Arc<BinaryLog>>,
    /// Status counters of the sessions.
    pub session_counters: Arc<AllSessionCounters>,
    /// Set once the workers run.
    pub counters: OnceLock<WorkerCounters>,
}

/// Tables that are remembered as opened. Dropped ones are among them until all are forgotten.
const MOST_OPEN_TABLES: usize = 100_000;

/// Tables that statements have used since they were opened, for SHOW STATUS. Looked at when a
/// statement is planned.
#[derive(Default)]
pub(crate) struct OpenedTables(Mutex<FxHashSet<TableId>>);

impl OpenedTables {
    /// How many of these tables are used for the first time.
    pub fn open(&self, ids: &[TableId]) -> u64 {
        let mut open = self.0.lock();
        if open.len() > MOST_OPEN_TABLES {
            open.clear();
        }
        ids.iter().filter(|id| open.insert(**id)).count() as u64
    }

    /// How many of these tables have been used.
    pub fn count(&self, ids: impl Iterator<Item = TableId>) -> u64 {
        let open = self.0.lock();
        ids.filter(|id| open.contains(id)).count() as u64
    }

    /// FLUSH TABLES
    pub fn close_all(&self) {
        self.0.lock().clear();
    }
}

impl ServerState {
    /// The roles of `mandatory_roles` that exist.
    pub(crate) fn mandatory_roles(&self) -> Vec<AccountId> {
        let list = self.text("mandatory_roles");
        let accounts = self.engine.catalog().accounts();
        let named = list.split(',').map(|name| {
            let (user, host) = name.split_once('@').unwrap_or((name, "%"));
            let plain = |part: &str| Box::from(part.trim().trim_matches(['\'', '"', '`']));
            (plain(user), plain(host))
        });
        let exists = |id: &AccountId| accounts.get(&id.0, &id.1).is_some();
        named.filter(exists).collect()
    }

    /// All roles that an account may activate, sorted: those that it was granted, and the mandatory
    /// ones.
    pub(crate) fn roles_of(&self, account: &Account) -> Vec<AccountId> {
        let mut roles = self.mandatory_roles();
        roles.extend(account.roles.iter().map(|r| r.role.clone()));
        roles.sort();
        roles.dedup();
        roles
    }

    /// Whether the password has passed its lifetime.
    pub(crate) fn is_too_old(&self, password: &PasswordOptions) -> bool {
        let lifetime = password.lifetime_days.map(u64::from);
        let days = lifetime.unwrap_or_else(|| self.int("default_password_lifetime"));
        let age = unix_time().as_secs().saturating_sub(password.changed_s);
        days > 0 && password.changed_s > 0 && age >= days * 24 * 60 * 60
    }

    /// `activate_all_roles_on_login`
    pub(crate) fn activates_all_roles(&self) -> bool {
        self.flag("activate_all_roles_on_login")
    }

    /// Creates the state over an open engine.
    pub fn new(
        options: &ServerOptions,
        database: OpenDatabase,
        registry: Arc<Registry>,
        system_tables: &'static dyn SystemTables,
    ) -> Arc<ServerState> {
        let OpenDatabase {
            engine,
            binlog,
            files,
        } = database;
        let globals = Arc::new(Globals::new(&options.values, &facts(options)));
        let state = ServerState {
            component_defaults: vars::of_components(&globals),
            pool_list: PoolList::new(engine.clone(), &options.datadir),
            slow_log: SlowLog::new(banner(options)),
            general_log: GeneralLog::new(banner(options)),
            engine,
            globals,
            registry,
            persisted: options.persisted.clone(),
            components: options.components.clone(),
            password_words: ArcSwap::default(),
            sources: options.values.sources().to_vec(),
            system_tables,
            started: Instant::now(),
            deadlock_search: Mutex::default(),
            read_permits: SharedPermits::default(),
            usage: AccountUsage::default(),
            read_lock: ServerLock::default(),
            backup_lock: ServerLock::default(),
            plans: SharedPlans::default(),
            digests: Digests::new(
                options.workers,
                options.values.int("performance_schema_digests_size") as usize,
            ),
            files,
            reset_sums: ResetSums::default(),
            opened: OpenedTables::default(),
            replication: Replication::default(),
            binlog,
            session_counters: Arc::default(),
            counters: OnceLock::new(),
        };
        state.keep_partial_revokes();
        state.globals_changed();
        if state.components.validates_passwords() {
            state.raise_password_length();
            let none = Words::of_now(unix_time().as_secs());
            let words = state.read_password_words().unwrap_or(none);
            state.take_password_words(Some(words));
        }
        Arc::new(state)
    }

    /// Whether an account lacks a global privilege on some database.
    pub(crate) fn has_partial_revokes(&self) -> bool {
        let accounts = self.engine.catalog().accounts();
        accounts.iter().any(|a| !a.restrictions.is_empty())
    }

    /// Turns `partial_revokes` on where an account has some: OFF would not lift them.
    fn keep_partial_revokes(&self) {
        if self.flag("partial_revokes") || !self.has_partial_revokes() {
            return;
        }
        if let Ok(at) = vars::find("partial_revokes") {
            self.globals.set(at, VarValue::Bool(true));
            tracing::warn!("partial_revokes is ON, because there are partial revokes");
        }
    }

    /// Passes changed global values to the components that have their own copies.
    pub fn globals_changed(&self) {
        let tunables = self.registry.tunables();
        tunables.set_max_connections(self.int("max_connections") as usize);
        tunables.set_connect_timeout(Duration::from_secs(self.int("connect_timeout")));
        tunables.set_server_memory(self.server_memory());
        self.plans.set_limit(self.int("nfold_plan_cache_size"));
        tunables.set_require_secure_transport(self.flag("require_secure_transport"));
        let algorithms = Algorithms::parse(&self.text("protocol_compression_algorithms"));
        tunables.set_compression(algorithms.unwrap_or_default());
        storage::hand_over(self);
        let names = match self.flag("partial_revokes") {
            true => DatabaseNames::Literal,
            false => DatabaseNames::Patterns,
        };
        let catalog = self.engine.catalog();
        if catalog.accounts().database_names != names {
            catalog.publish_accounts(|all| all.database_names = names);
        }
        if let Some(log) = &self.binlog {
            log.set_tunables(self.binlog_tunables());
        }
        let datadir = self.text("datadir");
        let file = |name| Path::new(&*datadir).join(&*self.text(name));
        let to_files = vars::logs_to_files(&self.text("log_output"));
        let (slow, general) = (self.flag("slow_query_log"), self.flag("general_log"));
        self.slow_log
            .configure(slow && to_files, file("slow_query_log_file"));
        self.general_log
            .configure(general && to_files, file("general_log_file"));
    }

    fn binlog_tunables(&self) -> BinlogTunables {
        BinlogTunables {
            server_id: self.int("server_id") as u32,
            checksums: &*self.text("binlog_checksum") == "CRC32",
            max_bytes: self.int("max_binlog_size"),
            expire_s: self.int("binlog_expire_logs_seconds"),
            semi_sync: SemiSyncOptions {
                enabled: self.flag("rpl_semi_sync_source_enabled"),
                timeout: Duration::from_millis(self.int("rpl_semi_sync_source_timeout")),
                replicas: self.int("rpl_semi_sync_source_wait_for_replica_count") as usize,
                waits_alone: self.flag("rpl_semi_sync_source_wait_no_replica"),
            },
        }
    }

    /// Whether `gtid_executed` has all of `set`, durably if commits are to be durable. Commits
    /// whose transactions have no GTID yet do not count.
    pub(crate) fn has_executed(&self, set: &GtidSet) -> bool {
        let (mut executed, commit) = self
            .replication
            .with_status(|s| (s.applied.gtids.clone(), s.last_commit));
        let is_lazy = self.int("innodb_flush_log_at_trx_commit") != 1;
        if !is_lazy && self.engine.durable_lsn() < commit {
            // The applier does not wait for the disk.
            executed = GtidSet::new();
        }
        if let Some(log) = &self.binlog {
            executed.add_all(&log.gtids().0);
        }
        set.is_subset(&executed)
    }

    /// `gtid_executed`, the transactions that are in the tables, and `gtid_purged`, those of them
    /// that are not in the files of the binary log.
    pub(crate) fn gtids(&self, name: &str) -> GtidSet {
        let applied = self.replication.applied_gtids();
        let Some(log) = &self.binlog else {
            return applied;
        };
        // Blocks for the time of a sync, at most: the session's own commits are to be in the sets.
        log.catch_up();
        let (mut executed, mut purged) = log.gtids();
        if name == "gtid_executed" {
            executed.add_all(&applied);
            return executed;
        }
        purged.add_all(&applied.without(&executed));
        purged
    }

    /// `nfold_server_memory`; 0: four fifths of the machine's memory without the buffer pool.
    fn server_memory(&self) -> u64 {
        match self.int("nfold_server_memory") {
            0 => {
                let left = machine_memory().saturating_sub(self.int("innodb_buffer_pool_size"));
                (left / 5 * 4).max(MIN_SERVER_MEMORY)
            }
            bytes => bytes,
        }
    }

    /// Connections with the states in the process list.
    pub fn with_states(&self, processes: Vec<ProcessInfo>) -> Vec<(ProcessInfo, &'static str)> {
        let waits = self.engine.contention().waiting();
        let waits_for = |id, kind| {
            let mut own = waits.iter().filter(|(connection, _)| *connection == id);
            own.any(|(_, site)| site.kind == kind)
        };
        let metadata_wait = |id| {
            let is_wait = |(connection, site): &&(u32, Site)| {
                *connection == id && site.kind == WaitKind::MetadataLock
            };
            waits
                .iter()
                .find(is_wait)
                .map(|(_, site)| site.place == WaitPlace::Server)
        };
        let state = |p: &ProcessInfo| match p.text {
            None => "",
            Some(_) if waits_for(p.id, WaitKind::UserLock) => "User lock",
            Some(_) => match metadata_wait(p.id) {
                Some(true) => "Waiting for global read lock",
                Some(false) => "Waiting for table metadata lock",
                None => "executing",
            },
        };
        let with_state = processes.into_iter().map(|p| {
            let state = state(&p);
            (p, state)
        });
        with_state.collect()
    }

    /// The value of the global integer variable `name`; 0 if it is no integer.
    pub fn int(&self, name: &'static str) -> u64 {
        match vars::find(name).map(|at| self.globals.load().get(at).clone()) {
            Ok(VarValue::Int(n)) => n,
            _ => 0,
        }
    }

    /// The value of the global string variable `name`; empty if it is no string.
    pub fn text(&self, name: &'static str) -> Arc<str> {
        match vars::find(name).map(|at| self.globals.load().get(at).clone()) {
            Ok(VarValue::Text(Some(text))) => text,
            _ => "".into(),
        }
    }

    /// `innodb_buffer_pool_filename` and `innodb_buffer_pool_dump_pct`.
    pub fn pool_list_file(&self) -> (Arc<str>, u32) {
        let percent = self.int("innodb_buffer_pool_dump_pct") as u32;
        (self.text("innodb_buffer_pool_filename"), percent)
    }

    /// Called when the server starts to serve: reloads the buffer pool's pages, and starts the
    /// replication channel, if configured.
    pub fn begin(self: &Arc<Self>) {
        if self.flag("innodb_buffer_pool_load_at_startup") {
            self.pool_list.load(&self.pool_list_file().0);
        }
        if let Err(e) = self.replication.load(&self.engine) {
            tracing::error!("the replication channel cannot be read: {}", e.message);
        } else if !self.flag("skip_replica_start") {
            match self.replication.start(self, None) {
                Ok(_) => {}
                Err(e) if e.code == ErrorCode::ER_BAD_REPLICA => {}
                Err(e) => tracing::error!("the replication channel does not start: {}", e.message),
            }
        }
    }

    /// Applies the source's changes to a copy whose rows come from several moments, up to the
    /// latest of them: a set of GTIDs, or a file and a position. Returns why they cannot be
    /// applied, if so. Blocks.
    ///
    /// # Errors
    /// The channel does not start, or the source cannot be reached.
    pub fn complete_copy(
        self: &Arc<Self>,
        gtids: Option<&str>,
        (file, position): (&str, u64),
    ) -> Result<Result<(), String>, SqlError> {
        let until = match gtids.map(GtidSet::parse) {
            Some(Ok(set)) => Until::AfterGtids(set),
            Some(Err(e)) => {
                let code = ErrorCode::ER_UNKNOWN_ERROR;
                return Err(SqlError::with_message(code, e.to_string()));
            }
            None => Until::Position {
                file: file.into(),
                position,
            },
        };
        self.replication.complete(self, until)
    }

    /// How the replication channel is doing; `None` without one. Blocks.
    ///
    /// # Errors
    /// The stored configuration cannot be read.
    pub fn channel_summary(&self) -> Result<Option<ChannelSummary>, SqlError> {
        self.replication.summary(&self.engine)
    }

    /// Called at shutdown, after the sessions have ended: stops the replication channel, and writes
    /// the list of the buffer pool's pages if configured.
    pub fn end(&self) {
        self.replication.stop(&self.registry);
        if let Some(log) = &self.binlog {
            log.close(&self.engine);
        }
        self.slow_log.close();
        self.general_log.close();
        let (file, percent) = self.pool_list_file();
        let wanted = self.flag("innodb_buffer_pool_dump_at_shutdown");
        self.pool_list.close(wanted.then_some((&*file, percent)));
    }

    /// Whether the global switch `name` is ON.
    pub fn flag(&self, name: &'static str) -> bool {
        vars::find(name).is_ok_and(|at| *self.globals.load().get(at) == VarValue::Bool(true))
    }
}

/// The first lines of a log file, as in MySQL.
fn banner(options: &ServerOptions) -> String {
    let socket = options.socket.as_deref().unwrap_or(Path::new(""));
    format!(
        "nfold, Version: {} (Nfold {}). started with:\nTcp port: {}  Unix socket: {}\nTime                 Id Command    Argument\n",
        options.server_version,
        env!("CARGO_PKG_VERSION"),
        options.port,
        socket.display(),
    )
}

/// Read-only variables about the server and its machine.
fn facts(options: &ServerOptions) -> Vec<(&'static str, VarValue)> {
    let hostname = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let path = |p: &std::path::Path| VarValue::text(p.to_string_lossy().into_owned());
    let mut facts = vec![
        ("version", VarValue::text(options.server_version.clone())),
        (
            "version_comment",
            VarValue::text(format!("Nfold {}", env!("CARGO_PKG_VERSION"))),
        ),
        ("hostname", VarValue::text(hostname.trim())),
        ("datadir", path(&options.datadir.join(""))),
        (
            "server_uuid",
            VarValue::text(server_uuid(&options.datadir).unwrap_or_default()),
        ),
        ("basedir", VarValue::text("/usr/")),
        ("port", VarValue::Int(u64::from(options.port))),
        ("system_time_zone", VarValue::text(system_zone())),
        (
            "tmpdir",
            match options.values.text("tmpdir") {
                Some(dir) if !dir.is_empty() => VarValue::text(dir),
                _ => path(&std::env::temp_dir()),
            },
        ),
        (
            "innodb_version",
            VarValue::text(options.server_version.clone()),
        ),
    ];
    if options.values.flag("log_bin")
        && let Ok(base) = crate::database::log_base_name(&options.values)
    {
        facts.push(("log_bin_basename", path(&options.datadir.join(base))));
    }
    let capacity = options.values.int("innodb_io_capacity");
    let capacity_max = options.values.int("innodb_io_capacity_max");
    if capacity > capacity_max {
        facts.push((
            "innodb_io_capacity_max",
            VarValue::Int(capacity.saturating_mul(2).min(u64::from(u32::MAX))),
        ));
    }
    for (option, ending) in [
        ("slow_query_log_file", "-slow.log"),
        ("general_log_file", ".log"),
    ] {
        if options.values.text(option).unwrap_or_default().is_empty() {
            let name = format!("{}{ending}", hostname.trim());
            facts.push((option, path(&options.datadir.join(name))));
        }
    }
    if let Some(socket) = &options.socket {
        facts.push(("socket", path(socket)));
    }
    facts
}

/// The machine's time zone by its offset, such as `UTC`.
fn system_zone() -> String {
    use nfold_types::temporal::TimeZone;
    match TimeZone::system() {
        TimeZone::System(zone) => zone.iana_name().unwrap_or("UTC").replace("Etc/", ""),
        _ => "UTC".into(),
    }
}
