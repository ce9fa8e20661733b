//! The thread of a channel: connects, reads events, and tries again after a lost connection.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use nfold_replica::{ChannelConfig, Source, SourceError, StartAt};

use super::applier::{Applier, ApplyError, SourceFacts};
use crate::session::ServerState;
use crate::session::replication::{ChannelError, ChannelPhase, ChannelStart, StopSignal};
use crate::unix_time::unix_us;

/// The longest time that a transaction waits for SOURCE_DELAY while the source keeps the
/// connection. Behind `net_write_timeout` a source ends a connection that reads nothing.
const HOLD: Duration = Duration::from_secs(20);

/// Why the stream of events has ended.
enum End {
    Source(SourceError),
    Applier(ApplyError),
}

impl From<SourceError> for End {
    fn from(e: SourceError) -> Self {
        End::Source(e)
    }
}

/// Starts the thread.
pub(crate) fn launch(
    server: Arc<ServerState>,
    start: ChannelStart,
) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new()
        .name("nfold-replica".into())
        .spawn(move || {
            follow(&server, start);
            server.replication.with_status(|status| {
                status.phase = ChannelPhase::Stopped;
                status.event_time = None;
            });
        })
}

fn error(code: u16, message: String) -> Option<ChannelError> {
    Some(ChannelError {
        code,
        message,
        at_us: unix_us(),
    })
}

fn follow(server: &Arc<ServerState>, start: ChannelStart) {
    let ChannelStart {
        config,
        coordinates,
        until,
        signal,
    } = start;
    let status = &server.replication;
    let mut applier = match Applier::open(server, coordinates, &config) {
        Ok(applier) => applier,
        Err(e) => {
            let error = error(e.errno(), e.message.to_string());
            return status.with_status(|s| s.applier_error = error);
        }
    };
    signal.set_session(applier.session_id());
    applier.stop_at(until);
    let mut attempts = 0;
    let mut retries = Retries::default();
    while !signal.is_set() {
        if applier.has_arrived() {
            return status.with_status(|s| s.arrived = true);
        }
        let end = stream(server, &config, &mut applier, &signal, &mut attempts);
        signal.watch(None);
        status.with_status(|s| s.semi_sync = false);
        if signal.is_set() {
            break;
        }
        match end {
            Ok(()) => {}
            Err(End::Applier(e)) if retries.next(&e, &applier, server) => {
                tracing::warn!("replication: a transaction is tried again: {}", e.message);
                status.with_status(|s| s.retries += 1);
                signal.sleep(retries.pause());
            }
            Err(End::Applier(e)) => {
                tracing::error!("the replication channel stops: {}", e.message);
                return status.with_status(|s| s.applier_error = error(e.code, e.message));
            }
            Err(End::Source(e)) => {
                attempts += 1;
                let (user, host, port) = (&config.user, &config.host, config.port);
                let retry = config.connect_retry_s;
                let shown = match e.is_transient() {
                    true => format!(
                        "Error connecting to source '{user}@{host}:{port}'. This was attempt \
                         {attempts}/{}, with a delay of {retry} seconds between attempts. Message: {e}",
                        config.retry_count
                    ),
                    false => format!("Source '{user}@{host}:{port}': {e}"),
                };
                tracing::warn!("replication: {shown}");
                status.with_status(|s| {
                    s.source_error = error(e.code(), shown);
                    s.phase = ChannelPhase::Connecting;
                });
                let tried_all = config.retry_count != 0 && attempts >= config.retry_count;
                if !e.is_transient() || tried_all {
                    return;
                }
                signal.sleep(Duration::from_secs(retry.into()));
            }
        }
    }
}

/// Connects, and applies events until the connection ends.
fn stream(
    server: &Arc<ServerState>,
    config: &ChannelConfig,
    applier: &mut Applier,
    signal: &StopSignal,
    attempts: &mut u64,
) -> Result<(), End> {
    let mut source = Source::connect(config)?;
    let own_clock = unix_us() / 1_000_000;
    signal.watch(source.handle().ok());
    let own_id = server.int("server_id") as u32;
    if own_id == source.server_id {
        let text =
            "the source and this server have the same server_id; these ids must be different";
        return Err(SourceError::Protocol(text.into()).into());
    }
    let source_is = SourceFacts {
        checksums: source.checksums,
        explicit_defaults: source.explicit_defaults,
    };
    applier.reconnected(source_is).map_err(|e| {
        End::Applier(ApplyError {
            code: e.errno(),
            message: e.message.to_string(),
        })
    })?;
    let committed = applier.committed().clone();
    // Those that clients have committed with gtid_next are not needed, either.
    let mut known = committed.gtids.clone();
    if let Some(log) = server.binlog.as_ref().filter(|log| log.is_active()) {
        known.add_all(&log.gtids().0);
    }
    let at = match config.auto_position {
        true => StartAt::Gtids(&known),
        false => StartAt::Position {
            file: &committed.file,
            position: committed.position,
        },
    };
    let semi_sync = server.flag("rpl_semi_sync_replica_enabled");
    source.start(config, (own_id, ""), at, semi_sync)?;
    server.replication.with_status(|status| {
        status.source_id = source.server_id;
        status.source_uuid.clone_from(&source.uuid);
        status.semi_sync = source.is_semi_sync();
    });
    loop {
        let event = source.next_event()?;
        *attempts = 0;
        server.replication.with_status(|status| {
            status.phase = ChannelPhase::Running;
            status.source_error = None;
        });
        applier.event(event).map_err(End::Applier)?;
        if let (1.., Some(time)) = (config.delay_s, applier.announced()) {
            let ahead = own_clock.saturating_sub_unsigned(source.clock_s);
            let due = Due {
                us: time as i64 + (i64::from(config.delay_s) + ahead) * 1_000_000,
                event_time: (time / 1_000_000) as u32,
            };
            if due.left() > HOLD {
                // The source sends the transaction again.
                drop(source);
                due.wait(server, signal);
                return Ok(());
            }
            due.wait(server, signal);
            if signal.is_set() {
                return Ok(());
            }
        }
        if applier.has_arrived() {
            return Ok(());
        }
        if source.wants_ack() {
            server.engine.sync_log();
            let (file, position) = applier.place();
            source.ack(file, position).map_err(SourceError::from)?;
        }
    }
}

/// Counts how often a transaction was tried again after a lock wait timeout or a deadlock. The
/// source sends it again each time. `file` and `position` are where the transaction begins.
#[derive(Default)]
struct Retries {
    file: String,
    position: u64,
    count: u64,
}

impl Retries {
    /// Counts, and returns whether the transaction is to be tried once more
    /// (`replica_transaction_retries`).
    fn next(&mut self, error: &ApplyError, applier: &Applier, server: &ServerState) -> bool {
        if !error.is_transient() {
            return false;
        }
        let at = applier.committed();
        if (&self.file, self.position) != (&at.file, at.position) {
            (self.file, self.position) = (at.file.clone(), at.position);
            self.count = 0;
        }
        self.count += 1;
        self.count <= server.int("replica_transaction_retries")
    }

    /// MySQL's pause: a second longer each time, at most 5 seconds.
    fn pause(&self) -> Duration {
        Duration::from_secs((self.count - 1).min(5))
    }
}

/// When a delayed transaction is applied.
#[derive(Clone, Copy)]
struct Due {
    /// By this server's clock, in microseconds since 1970.
    us: i64,
    /// When the source committed it, by the source's clock, in seconds since 1970.
    event_time: u32,
}

impl Due {
    fn left(self) -> Duration {
        Duration::from_micros(u64::try_from(self.us - unix_us()).unwrap_or(0))
    }

    /// Waits until then, or until the channel is to stop, and shows what is left meanwhile.
    fn wait(self, server: &ServerState, signal: &StopSignal) {
        let left = self.left();
        if left.is_zero() {
            return;
        }
        server.replication.with_status(|status| {
            status.due_us = Some(self.us);
            status.event_time = Some(self.event_time);
        });
        signal.sleep(left);
        server
            .replication
            .with_status(|status| status.due_us = None);
    }
}
