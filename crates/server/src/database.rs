//! Opens the engine with the server's options, logs the progress of recovery, and creates the first
//! account.
//!
//! # Failure
//! The account is created whenever there is none, not only at the first start. So after a crash
//! between the creation of the files and that of the account, the next start completes the data
//! directory.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nfold_binlog::SourceUuid;
use nfold_catalog::{Account as StoredAccount, Catalog, Privileges, ProxyGrant};
use nfold_engine::{
    AttachmentReader, CountedDisk, Disk, Engine, EngineOptions, FileCounters, OpenReport, RealDisk,
    RecoveryPhase, RecoveryProgress, StoreOptions,
};
use nfold_protocol::consts::CACHING_SHA2_PASSWORD;

use crate::binlog::{
    BASE_NAME, BinaryLog, BinlogOptions, BinlogTunables, ONLY_VALUES, SemiSyncOptions,
};
use crate::config::{DataDir, ServerOptions, Values, server_uuid};
use crate::net::auth::{Account, AccountSource};
use crate::net::conn::Peer;
use crate::net::fiber::login_failures::FailureLimit;
use crate::server::StartError;
use crate::unix_time::unix_time;

/// Table files grow by this many bytes.
const EXTEND_BYTES: u64 = 4 << 20;
/// The time between two log lines about one phase of recovery.
const PROGRESS_EVERY: Duration = Duration::from_secs(2);

/// An open engine, its binary log, and the counters of its files.
pub struct OpenDatabase {
    pub engine: Arc<Engine>,
    pub binlog: Option<Arc<BinaryLog>>,
    pub files: Arc<FileCounters>,
}

/// The current accounts of the catalog.
pub struct CatalogAccounts(pub Arc<Catalog>);

impl AccountSource for CatalogAccounts {
    fn find(&self, user: &str, peer: Peer) -> Option<Account> {
        let accounts = self.0.accounts();
        let host = peer.address().unwrap_or_else(|| "localhost".into());
        let a = accounts.find(user, &host)?;
        let may = |p| a.global.contains(p);
        Some(Account {
            user: a.user.to_string(),
            host: a.host.to_string(),
            plugin: a.plugin.to_string(),
            auth_string: a.auth_string.to_vec(),
            second: a.options.password.second.to_vec(),
            locked: a.locked,
            require_tls: a.options.require_tls,
            certificate: a.options.certificate.clone().map(Box::new),
            failure_limit: FailureLimit {
                attempts: a.options.password.failed_attempts,
                days: a.options.password.lock_days,
            },
            connection_admin: may(Privileges::SUPER)
                || a.dynamic_grant("CONNECTION_ADMIN").is_some(),
        })
    }
}

/// Opens the database in a data directory, recovers it if necessary, and creates `root` if there is
/// no account. Blocks.
pub fn open(options: &ServerOptions, datadir: &DataDir) -> Result<OpenDatabase, StartError> {
    open_with(options, engine_options(options), datadir)
}

/// As [`open`], but without background threads: [`Engine::step_background`] does their work. Runs
/// with the same calls are identical.
pub fn open_inline(options: &ServerOptions, datadir: &DataDir) -> Result<OpenDatabase, StartError> {
    let mut engine = engine_options(options);
    engine.store.io_threads = 0;
    engine.store.huge_pages = false;
    open_with(options, engine, datadir)
}

fn open_with(
    options: &ServerOptions,
    mut engine: EngineOptions,
    datadir: &DataDir,
) -> Result<OpenDatabase, StartError> {
    let line = |e: nfold_engine::EngineError| {
        StartError(format!(
            "cannot open the database in {}: {e}",
            datadir.path().display()
        ))
    };
    let values = &options.values;
    let direct = values
        .text("innodb_flush_method")
        .is_some_and(|m| m.starts_with("O_DIRECT"));
    let disk = CountedDisk::new(Arc::new(RealDisk::new(datadir.path(), direct)));
    let files = disk.counters().clone();
    let disk: Arc<dyn Disk> = Arc::new(disk);
    let log = open_binlog(options, datadir, &disk)
        .map_err(|e| StartError(format!("cannot open the binary log: {e}")))?;
    engine.store.attachments = log.clone().map(|log| log as Arc<dyn AttachmentReader>);
    let said = Cell::new(None);
    let start = Instant::now();
    let progress = |p: RecoveryProgress| say_progress(&p, &said);
    let (engine, report) = Engine::open(engine, disk, &progress).map_err(line)?;
    say_report(&report, start.elapsed());
    if engine.catalog().accounts().iter().next().is_none() {
        make_root(&engine).map_err(line)?;
    }
    if let Some(log) = &log {
        log.start(&engine)
            .map_err(|e| StartError(format!("cannot begin a file of the binary log: {e}")))?;
    }
    Ok(OpenDatabase {
        engine,
        binlog: log,
        files,
    })
}

/// Checks the options that the binary log depends on, as SET checks the variables.
fn refuse_log_options(v: &Values) -> std::io::Result<()> {
    let refused = |name: &str, shown: &str| {
        let text = format!("{name} = {shown} is not supported with log_bin = ON");
        Err(std::io::Error::new(std::io::ErrorKind::Unsupported, text))
    };
    for (name, only) in ONLY_VALUES {
        let shown = match only {
            "OFF" if v.flag(name) => "ON",
            "OFF" => "OFF",
            _ => v.text(name).unwrap_or(""),
        };
        if !shown.eq_ignore_ascii_case(only) {
            return refused(name, shown);
        }
    }
    match v.text("gtid_mode").unwrap_or("OFF") {
        "ON" | "OFF" => Ok(()),
        other => refused("gtid_mode", other),
    }
}

/// The name of the binary log's files before their numbers. As in MySQL, an extension does not
/// count.
pub(crate) fn log_base_name(v: &Values) -> std::io::Result<String> {
    let Some(given) = v.text_of_variable("log_bin_basename") else {
        return Ok(BASE_NAME.into());
    };
    let base = given.split('.').next().unwrap_or_default();
    let own = ["redo", "binlog-large"];
    if base.is_empty() || base.contains(['/', '\\']) || own.contains(&base) {
        return Err(std::io::Error::other(format!(
            "log_bin: '{given}' cannot be the name of the files, which are in the data directory"
        )));
    }
    Ok(base.into())
}

/// Opens the files of the binary log. `None`: there are none, and `log_bin` is OFF.
fn open_binlog(
    options: &ServerOptions,
    datadir: &DataDir,
    disk: &Arc<dyn Disk>,
) -> std::io::Result<Option<Arc<BinaryLog>>> {
    let v = &options.values;
    if v.flag("log_bin") {
        refuse_log_options(v)?;
    }
    let uuid = server_uuid(datadir.path())?;
    let log_options = BinlogOptions {
        base_name: log_base_name(v)?,
        uuid: SourceUuid::parse(&uuid).unwrap_or_default(),
        server_version: options.server_version.clone(),
        gtids: v.text("gtid_mode") == Some("ON"),
        tunables: BinlogTunables {
            server_id: v.int("server_id") as u32,
            checksums: v.text("binlog_checksum") != Some("NONE"),
            max_bytes: v.int("max_binlog_size"),
            expire_s: v.int("binlog_expire_logs_seconds"),
            semi_sync: SemiSyncOptions {
                enabled: v.flag("rpl_semi_sync_source_enabled"),
                timeout: Duration::from_millis(v.int("rpl_semi_sync_source_timeout")),
                replicas: v.int("rpl_semi_sync_source_wait_for_replica_count") as usize,
                waits_alone: v.flag("rpl_semi_sync_source_wait_no_replica"),
            },
        },
    };
    BinaryLog::open(disk, log_options, v.flag("log_bin"))
}

fn engine_options(options: &ServerOptions) -> EngineOptions {
    let v = &options.values;
    EngineOptions {
        store: StoreOptions {
            pool_bytes: v.int("innodb_buffer_pool_size"),
            log_bytes: v.int("innodb_redo_log_capacity"),
            log_fill_bytes: StoreOptions::LOG_FILL_BYTES,
            log_buffer_bytes: v.int("innodb_log_buffer_size"),
            io_threads: (v.int("innodb_read_io_threads") + v.int("innodb_write_io_threads"))
                as usize,
            pool_max_bytes: machine_memory(),
            io_capacity: v.int("innodb_io_capacity") as u32,
            io_capacity_max: v.int("innodb_io_capacity_max") as u32,
            doublewrite: v.flag("innodb_doublewrite"),
            huge_pages: true,
            extend_bytes: EXTEND_BYTES,
            attachments: None,
            fatal: Some(Arc::new(|message: &str| {
                tracing::error!("{message}; going on would lose data: the server ends");
                std::process::abort();
            })),
        },
        flush_at_commit: v.int("innodb_flush_log_at_trx_commit") as u8,
        build_memory: EngineOptions::BUILD_MEMORY,
    }
}

/// The memory of the machine, up to which the buffer pool may grow, in bytes; 0 if the system does
/// not say.
pub(crate) fn machine_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text.lines().find_map(|l| l.strip_prefix("MemTotal:"));
    let kib = total.and_then(|l| l.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// Logs the start of each phase, and its progress every [`PROGRESS_EVERY`].
fn say_progress(p: &RecoveryProgress, said: &Cell<Option<(RecoveryPhase, Instant)>>) {
    let due = match said.get() {
        Some((phase, at)) => phase != p.phase || at.elapsed() >= PROGRESS_EVERY,
        None => true,
    };
    if !due {
        return;
    }
    said.set(Some((p.phase, Instant::now())));
    match p.phase {
        RecoveryPhase::RepairPages => tracing::info!("recovery: looking for torn pages"),
        RecoveryPhase::Redo if p.end_lsn > p.from_lsn => {
            let done = p.at_lsn.saturating_sub(p.from_lsn) * 100 / (p.end_lsn - p.from_lsn);
            tracing::info!("recovery: redo at {} of {} ({done} %)", p.at_lsn, p.end_lsn);
        }
        RecoveryPhase::Redo => {
            tracing::info!("recovery: redo from {}, at {}", p.from_lsn, p.at_lsn);
        }
        RecoveryPhase::Flush => tracing::info!("recovery: writing recovered pages"),
        RecoveryPhase::Done => {}
    }
}

fn say_report(report: &OpenReport, took: Duration) {
    let (store, trx) = (&report.store, &report.trx);
    if store.created {
        tracing::info!("made a new database in {took:.1?}");
        return;
    }
    if store.clean {
        tracing::info!(
            "opened after a clean shutdown: {} tables, {took:.1?}",
            report.tables
        );
    } else {
        tracing::info!(
            "recovered from an unclean end: log up to {}, {} redo records, {} pages repaired, {} tables, {took:.1?}",
            store.end_lsn,
            store.redo_records,
            store.repaired_pages,
            report.tables
        );
    }
    if trx.unfinished > 0 {
        tracing::info!(
            "rolling back {} unfinished transactions in the background, at most {} changes",
            trx.unfinished,
            trx.changes_to_undo
        );
    }
    if trx.prepared > 0 {
        tracing::info!(
            "{} prepared transactions wait for XA COMMIT or XA ROLLBACK; XA RECOVER lists them",
            trx.prepared
        );
    }
    for page in &store.corrupt_pages {
        tracing::error!("page {page:?} could not be recovered");
    }
}

/// Creates `root` without a password, for this machine only.
fn make_root(engine: &Engine) -> Result<(), nfold_engine::EngineError> {
    let id = ("root".into(), "localhost".into());
    let mut root = StoredAccount::new(id, CACHING_SHA2_PASSWORD);
    root.global = Privileges::all_global().union(Privileges::GRANT_OPTION);
    root.add_all_dynamic(true);
    root.proxies.push(ProxyGrant {
        proxied: ("".into(), "".into()),
        grant_option: true,
        grantor: "".into(),
        granted_s: unix_time().as_secs(),
    });
    engine.put_accounts(vec![root])?;
    tracing::warn!(
        "made the account 'root'@'localhost' without a password; it can be reached from this machine only \
         (ALTER USER root@localhost IDENTIFIED BY '...' gives it one)"
    );
    Ok(())
}
