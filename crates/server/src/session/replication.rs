//! What sessions see of the replication channel: whether it runs, how far it is, why it stopped.
//!
//! # Concurrency
//! One mutex, which the channel's thread takes for each event, and SHOW REPLICA STATUS for each
//! call. No other statement takes it.

use std::collections::HashMap;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nfold_binlog::{EventReader, GtidSet, TableMap};
use nfold_engine::{ChannelRecord, Engine, EngineError, Lsn, PendingCoordinates};
use nfold_replica::{ChannelConfig, Coordinates};
use nfold_types::{ErrorCode, SqlError};
use parking_lot::{Condvar, Mutex};

use super::ServerState;
use crate::net::worker::{KillKind, Registry};

/// The name of the only channel.
pub(crate) const CHANNEL: &str = "";

/// An error of the channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChannelError {
    pub code: u16,
    pub message: String,
    /// In microseconds since 1970.
    pub at_us: i64,
}

/// What the channel's thread is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ChannelPhase {
    #[default]
    Stopped,
    Connecting,
    Running,
}

/// What a session keeps between two BINLOG statements.
pub(crate) struct PrintedEvents {
    pub reader: EventReader,
    /// The tables of the statement at hand.
    pub tables: HashMap<u64, Arc<TableMap>>,
}

impl Default for PrintedEvents {
    fn default() -> PrintedEvents {
        PrintedEvents {
            reader: EventReader::new(false),
            tables: HashMap::new(),
        }
    }
}

/// Where the channel stops by itself, as START REPLICA UNTIL says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Until {
    /// Before the first transaction of the set.
    BeforeGtids(GtidSet),
    /// When all transactions of the set are applied.
    AfterGtids(GtidSet),
    /// Before the first event at or behind a position.
    Position { file: String, position: u64 },
}

impl Until {
    /// Whether the channel stops, which has applied `gtids` and all up to a place of the source.
    pub fn is_reached(&self, gtids: &GtidSet, (file, position): (&str, u64)) -> bool {
        match self {
            // One of them is applied already: the applier stops before the others itself.
            Until::BeforeGtids(set) => set.without(gtids) != *set,
            Until::AfterGtids(set) => set.is_subset(gtids),
            // The numbers of files have leading zeros, and one digit more beyond 999999.
            Until::Position {
                file: end,
                position: at,
            } => (file.len(), file, position) >= (end.len(), end, *at),
        }
    }
}

/// The state that SHOW REPLICA STATUS shows.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChannelStatus {
    pub phase: ChannelPhase,
    pub source_id: u32,
    pub source_uuid: String,
    /// The source's commits may wait for this replica.
    pub semi_sync: bool,
    /// The place behind the last event that was received.
    pub read_file: String,
    pub read_position: u64,
    /// The transactions received since the channel started.
    pub retrieved: GtidSet,
    /// What is applied and committed.
    pub applied: Coordinates,
    /// The newest commit of the applier, which may not be durable yet.
    pub last_commit: Lsn,
    /// The time of the event that is being applied, in seconds since 1970; `None`: all is applied.
    pub event_time: Option<u32>,
    /// When the transaction that waits for SOURCE_DELAY is applied, in microseconds since 1970.
    pub due_us: Option<i64>,
    /// How often a transaction was tried again since the channel started.
    pub retries: u64,
    pub source_error: Option<ChannelError>,
    pub applier_error: Option<ChannelError>,
    /// Where it stops by itself.
    pub until: Option<Until>,
    /// It has arrived there.
    pub arrived: bool,
}

impl ChannelStatus {
    /// The time until the transaction at hand is applied, in seconds, if it waits for SOURCE_DELAY.
    pub fn remaining_delay_s(&self) -> Option<u64> {
        let left = self.due_us? - crate::unix_time::unix_us();
        Some(u64::try_from(left).unwrap_or(0).div_ceil(1_000_000))
    }
}

/// How a channel is doing, for a log line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelSummary {
    pub host: String,
    pub port: u16,
    pub databases: Vec<String>,
    /// Whether it is connected to the source and applies its events.
    pub runs: bool,
    /// The age of the event that is being applied; zero if all are applied.
    pub behind: Duration,
    pub applied_gtids: String,
    pub file: String,
    pub position: u64,
    /// Why it does not run.
    pub error: Option<String>,
}

/// Requests the channel's thread to stop, and ends what it waits for.
#[derive(Default)]
pub(crate) struct StopSignal {
    asked: AtomicBool,
    /// The connection to the source.
    socket: Mutex<Option<TcpStream>>,
    /// The id of the session that applies events.
    session: AtomicU32,
    pause: (Mutex<()>, Condvar),
}

impl StopSignal {
    pub fn is_set(&self) -> bool {
        self.asked.load(Relaxed)
    }

    /// Sets the connection that [`Self::set`] closes.
    pub fn watch(&self, socket: Option<TcpStream>) {
        *self.socket.lock() = socket;
        if self.is_set() {
            self.close();
        }
    }

    pub fn set_session(&self, id: u32) {
        self.session.store(id, Relaxed);
    }

    fn close(&self) {
        if let Some(socket) = &*self.socket.lock() {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    fn set(&self, registry: &Registry) {
        {
            let _pause = self.pause.0.lock();
            self.asked.store(true, Relaxed);
        }
        self.pause.1.notify_all();
        self.close();
        registry.kill(self.session.load(Relaxed), KillKind::Connection);
    }

    /// Sleeps, but not longer than until the signal is set.
    pub fn sleep(&self, time: Duration) {
        let end = Instant::now() + time;
        let mut pause = self.pause.0.lock();
        while !self.is_set() && !self.pause.1.wait_until(&mut pause, end).timed_out() {}
    }
}

/// A running channel.
struct Running {
    signal: Arc<StopSignal>,
    thread: JoinHandle<()>,
}

/// What the channel's thread begins with.
pub(crate) struct ChannelStart {
    pub config: ChannelConfig,
    pub coordinates: Coordinates,
    pub until: Option<Until>,
    pub signal: Arc<StopSignal>,
}

/// Starts the thread of a channel.
pub(crate) type Launcher = fn(Arc<ServerState>, ChannelStart) -> std::io::Result<JoinHandle<()>>;

/// The replication channel of the server.
#[derive(Default)]
pub(crate) struct Replication {
    status: Mutex<ChannelStatus>,
    /// As it is stored.
    config: Mutex<Option<Arc<ChannelConfig>>>,
    /// Held while the channel is started, stopped or configured.
    running: Mutex<Option<Running>>,
    /// The channel completes a copy whose rows come from several moments: see
    /// [`Self::complete`].
    completing: AtomicBool,
    pub launcher: OnceLock<Launcher>,
}

fn engine_error(e: EngineError) -> SqlError {
    nfold_exec::engine_error(&e)
}

fn damaged(e: nfold_binlog::BinlogError) -> SqlError {
    SqlError::with_message(ErrorCode::ER_REPLICA_AM_INIT_REPOSITORY, e.to_string())
}

/// The stored configuration of the channel. Blocks.
fn load_config(engine: &Engine) -> Result<Option<ChannelConfig>, SqlError> {
    let stored = engine.channel_record(ChannelRecord::Configuration, CHANNEL);
    let stored = stored.map_err(engine_error)?;
    stored
        .map(|data| ChannelConfig::load(&data).map_err(damaged))
        .transpose()
}

/// The stored coordinates of the channel. The channel does not run. Blocks.
pub(crate) fn load_coordinates(engine: &Engine) -> Result<Coordinates, SqlError> {
    let stored = engine.channel_record(ChannelRecord::Coordinates, CHANNEL);
    let Some(data) = stored.map_err(engine_error)? else {
        return Ok(Coordinates::default());
    };
    let at = Coordinates::load(&data).map_err(damaged)?;
    if at.step.is_none() {
        return Ok(at);
    }
    // The server died, or the channel stopped, in the middle of it.
    let prepared = engine.prepared_branches();
    let at = at.resolve(|name| prepared.iter().any(|branch| **branch == *name));
    let stored = engine.put_coordinates_alone(CHANNEL, &pending(&at).data);
    stored.map_err(engine_error)?;
    Ok(at)
}

/// Coordinates for [`nfold_engine::with_statement_writes`].
pub(crate) fn pending(at: &Coordinates) -> PendingCoordinates {
    let mut data = Vec::new();
    at.store(&mut data);
    PendingCoordinates {
        channel: CHANNEL.into(),
        data,
    }
}

impl Replication {
    /// Calls `f` with the state.
    pub fn with_status<T>(&self, f: impl FnOnce(&mut ChannelStatus) -> T) -> T {
        f(&mut self.status.lock())
    }

    /// Reads how far the channel is, when the server starts. Blocks.
    ///
    /// # Errors
    /// The stored state cannot be read.
    pub fn load(&self, engine: &Engine) -> Result<(), SqlError> {
        let applied = load_coordinates(engine)?;
        self.with_status(|status| status.applied = applied);
        *self.config.lock() = load_config(engine)?.map(Arc::new);
        Ok(())
    }

    /// The configuration of the channel, if it has a source.
    pub fn config(&self) -> Option<Arc<ChannelConfig>> {
        let config = self.config.lock().clone();
        config.filter(|config| !config.host.is_empty())
    }

    /// How the channel is doing; `None` without a configuration. Blocks.
    ///
    /// # Errors
    /// The stored configuration cannot be read.
    pub fn summary(&self, engine: &Engine) -> Result<Option<ChannelSummary>, SqlError> {
        let config = load_config(engine)?.filter(|c| !c.host.is_empty());
        let status = self.with_status(|status| status.clone());
        let now = crate::unix_time::unix_time().as_secs();
        let behind = |time: u32| Duration::from_secs(now.saturating_sub(time.into()));
        let error = status.applier_error.or(status.source_error);
        Ok(config.map(|config| ChannelSummary {
            host: config.host,
            port: config.port,
            databases: config.databases,
            runs: status.phase == ChannelPhase::Running,
            behind: status.event_time.map_or(Duration::ZERO, behind),
            applied_gtids: status.applied.gtids.to_string(),
            file: status.applied.file,
            position: status.applied.position,
            error: error.map(|e| e.message),
        }))
    }

    /// Runs the channel up to `until` on tables that may be ahead of its events: an event sets a
    /// row to its new values, even if it finds another one or none, and DDL statements stop the
    /// channel. Blocks.
    ///
    /// Returns the error of the applier if it has stopped before: it would stop there again.
    ///
    /// # Errors
    /// The channel does not start, or the source cannot be reached.
    pub fn complete(
        &self,
        server: &Arc<ServerState>,
        until: Until,
    ) -> Result<Result<(), String>, SqlError> {
        self.completing.store(true, Relaxed);
        let started = self.start(server, Some(until));
        let running = self.running.lock().take();
        if let Some(running) = running
            && running.thread.join().is_err()
        {
            tracing::error!("the thread of the replication channel panicked");
        }
        self.completing.store(false, Relaxed);
        started?;
        let status = self.with_status(|status| status.clone());
        if status.arrived {
            return Ok(Ok(()));
        }
        if let Some(e) = status.applier_error {
            return Ok(Err(e.message));
        }
        let error = status.source_error;
        let text = error.map_or("the channel has stopped".into(), |e| e.message);
        Err(SqlError::with_message(ErrorCode::ER_UNKNOWN_ERROR, text))
    }

    /// Whether [`Self::complete`] runs.
    pub fn is_completing(&self) -> bool {
        self.completing.load(Relaxed)
    }

    /// The transactions of the source that are in the tables.
    pub fn applied_gtids(&self) -> GtidSet {
        self.with_status(|status| status.applied.gtids.clone())
    }

    /// START REPLICA, which stops at `until`. Returns false if it runs already. Blocks.
    ///
    /// # Errors
    /// 1200 without a configuration.
    pub fn start(&self, server: &Arc<ServerState>, until: Option<Until>) -> Result<bool, SqlError> {
        let mut running = self.running.lock();
        if running.as_ref().is_some_and(|r| !r.thread.is_finished()) {
            return Ok(false);
        }
        let config = load_config(&server.engine)?.filter(|c| !c.host.is_empty());
        let config = config.ok_or_else(|| SqlError::new(ErrorCode::ER_BAD_REPLICA, &[]))?;
        let coordinates = load_coordinates(&server.engine)?;
        let launcher = self.launcher.get();
        let launcher = launcher.ok_or_else(|| SqlError::not_supported("START REPLICA"))?;
        let signal = Arc::new(StopSignal::default());
        *self.status.lock() = ChannelStatus {
            phase: ChannelPhase::Connecting,
            read_file: coordinates.file.clone(),
            read_position: coordinates.position,
            applied: coordinates.clone(),
            until: until.clone(),
            ..ChannelStatus::default()
        };
        let start = ChannelStart {
            config,
            coordinates,
            until,
            signal: signal.clone(),
        };
        let thread = launcher(server.clone(), start).map_err(|e| {
            let text = format!("cannot start a thread for the replica: {e}");
            SqlError::with_message(ErrorCode::ER_UNKNOWN_ERROR, text)
        })?;
        *running = Some(Running { signal, thread });
        Ok(true)
    }

    /// STOP REPLICA. Returns false if it did not run. Blocks until the thread has ended.
    pub fn stop(&self, registry: &Registry) -> bool {
        let Some(Running { signal, thread }) = self.running.lock().take() else {
            return false;
        };
        let ran = !thread.is_finished();
        signal.set(registry);
        if thread.join().is_err() {
            tracing::error!("the thread of the replication channel panicked");
        }
        ran
    }

    /// Stores a changed configuration, and coordinates. `change` gets the stored ones. Blocks.
    ///
    /// # Errors
    /// 3021 or 3081 (`must_stop`) while the channel runs; the errors of `change`.
    pub fn configure(
        &self,
        engine: &Engine,
        must_stop: ErrorCode,
        change: impl FnOnce(&mut Option<ChannelConfig>, &mut Coordinates) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        let running = self.running.lock();
        if running.as_ref().is_some_and(|r| !r.thread.is_finished()) {
            return Err(SqlError::new(must_stop, &[&CHANNEL]));
        }
        let (mut config, mut at) = (load_config(engine)?, load_coordinates(engine)?);
        change(&mut config, &mut at)?;
        let stored = config.as_ref().map(|config| {
            let mut data = Vec::new();
            config.store(&mut data);
            data
        });
        let coordinates = pending(&at).data;
        let records = [
            (ChannelRecord::Configuration, stored.as_deref()),
            (ChannelRecord::Coordinates, Some(&*coordinates)),
        ];
        engine
            .put_channel_records(CHANNEL, &records)
            .map_err(engine_error)?;
        *self.config.lock() = config.map(Arc::new);
        *self.status.lock() = ChannelStatus {
            read_file: at.file.clone(),
            read_position: at.position,
            applied: at,
            ..ChannelStatus::default()
        };
        Ok(())
    }
}
