//! Transactions on several connections that see the same moment, and the source's position at it.

use std::time::{Duration, Instant};

use nfold_replica::{ChannelConfig, Client, SourceError};

use crate::branches::BranchWait;
use crate::check::is_mariadb;
use crate::error::CopyError;

/// The longest time that the lock is waited for, in seconds. New statements wait behind it.
const LOCK_WAIT_S: u32 = 5;
const ATTEMPTS: u32 = 10;

/// Where a source's binary log was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Position {
    pub file: String,
    pub position: u64,
    pub gtids: String,
}

/// See the module's header.
pub(crate) struct Snapshot {
    /// The connections; each is in its transaction.
    pub clients: Vec<Client>,
    pub position: Position,
    /// How long writes on the source were locked.
    pub locked: Duration,
    /// Whether `locker` holds LOCK INSTANCE FOR BACKUP, so that definitions stay.
    pub ddl_locked: bool,
}

/// The position of a server's binary log.
pub(crate) fn position(client: &mut Client) -> Result<Position, SourceError> {
    let rows = match client.query("SHOW BINARY LOG STATUS") {
        // Before MySQL 8.2 it has the older name.
        Err(SourceError::Server { code: 1064, .. }) => client.query("SHOW MASTER STATUS")?,
        other => other?,
    };
    let row = rows.into_iter().next().unwrap_or_default();
    let value = |n: usize| row.get(n).cloned().flatten().unwrap_or_default();
    let gtids = match is_mariadb(client) {
        true => {
            let gtids = client.value("SELECT @@global.gtid_binlog_pos")?;
            gtids.unwrap_or_default()
        }
        false => value(4),
    };
    Ok(Position {
        file: value(0),
        position: value(1).parse().unwrap_or(0),
        gtids: gtids.replace('\n', ""),
    })
}

/// Opens `connections`, and begins their transactions under a short lock of all tables, which
/// `locker` holds. No XA transaction is prepared at this moment.
pub(crate) fn begin(
    config: &ChannelConfig,
    locker: &mut Client,
    connections: usize,
    branches: &mut BranchWait<'_>,
) -> Result<Snapshot, CopyError> {
    let mut clients = Vec::new();
    for _ in 0..connections {
        let mut client =
            Client::connect(config).map_err(CopyError::at("connecting to the source"))?;
        client.run(b"SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")?;
        client.run(
            b"SET SESSION time_zone = '+00:00', \
              sql_mode = '', character_set_results = NULL, net_write_timeout = 3600, \
              wait_timeout = 86400",
        )?;
        clients.push(client);
    }
    locker.run(format!("SET SESSION lock_wait_timeout = {LOCK_WAIT_S}").as_bytes())?;
    let begun = loop {
        branches.wait(locker)?;
        let begun = lock_tables(locker)?;
        // XA PREPARE and the ends of branches wait for the lock.
        match branches.is_none(locker) {
            Ok(true) => break begun,
            other => locker.run(b"UNLOCK TABLES").map(|_| other)??,
        };
    };
    let begin_all = |clients: &mut [Client], locker: &mut Client| {
        for client in clients {
            client.run(b"START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")?;
        }
        position(locker)
    };
    let position = begin_all(&mut clients, locker);
    // No DDL statement runs now. A lock that was taken before would make one that waits for it, and
    // the lock of all tables, a deadlock.
    let ddl_locked = locker.run(b"LOCK INSTANCE FOR BACKUP").is_ok();
    let unlocked = locker.run(b"UNLOCK TABLES");
    let locked = begun.elapsed();
    let position = position.map_err(CopyError::at("beginning the snapshot"))?;
    unlocked?;
    Ok(Snapshot {
        clients,
        position,
        locked,
        ddl_locked,
    })
}

/// FLUSH TABLES WITH READ LOCK. Returns when it began.
fn lock_tables(locker: &mut Client) -> Result<Instant, CopyError> {
    let mut attempt = 1;
    loop {
        let begun = Instant::now();
        match locker.run(b"FLUSH TABLES WITH READ LOCK") {
            Ok(_) => return Ok(begun),
            Err(SourceError::Server { code: 1205, .. }) if attempt < ATTEMPTS => {
                attempt += 1;
                std::thread::sleep(Duration::from_secs(1));
            }
            Err(e) => {
                return Err(CopyError::at("FLUSH TABLES WITH READ LOCK on the source")(
                    e,
                ));
            }
        }
    }
}
