//! Semi-synchronous replication, seen from the replica: the source's commits wait until a replica
//! says that it has their events.
//!
//! # Picture
//! ```text
//! SELECT @@global.rpl_semi_sync_source_enabled ─ 1 ─▶ SET @rpl_semi_sync_replica = 1 ─▶ dump
//! 0 · u8 magic 0xef · u8 flag · event        ◀── each event; flag 1: a commit waits for it
//! u8 magic 0xef · u64 position · file        ──▶ the position behind that event, which is durable
//! ```
//! Older sources and MariaDB name the variables `rpl_semi_sync_master_enabled` and
//! `@rpl_semi_sync_slave`.

use std::io;

use crate::source::{Source, SourceError};

const MAGIC: u8 = 0xef;
/// The bytes before each event.
pub(crate) const HEADER: usize = 2;
const UNKNOWN_SYSTEM_VARIABLE: u16 = 1193;

/// Reads the bytes before an event: whether a commit waits for it.
pub(crate) fn wants_ack(packet: &[u8]) -> Result<bool, SourceError> {
    match packet {
        [MAGIC, flag, ..] => Ok(flag & 1 != 0),
        _ => Err(SourceError::Protocol(
            "an event of a semi-synchronous source has no header".into(),
        )),
    }
}

impl Source {
    /// Tells the source that this replica acknowledges, if the source wants that now.
    pub(crate) fn agree_on_acks(&mut self) -> Result<(), SourceError> {
        for (variable, own) in [
            ("rpl_semi_sync_source_enabled", "rpl_semi_sync_replica"),
            ("rpl_semi_sync_master_enabled", "rpl_semi_sync_slave"),
        ] {
            match self.client.value(&format!("SELECT @@global.{variable}")) {
                Ok(value) if value.as_deref() == Some("1") => {
                    self.client.run(format!("SET @{own} = 1").as_bytes())?;
                    self.semi_sync = true;
                    return Ok(());
                }
                Ok(_) => return Ok(()),
                Err(SourceError::Server {
                    code: UNKNOWN_SYSTEM_VARIABLE,
                    ..
                }) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Whether the source sends events semi-synchronously.
    pub fn is_semi_sync(&self) -> bool {
        self.semi_sync
    }

    /// Whether a commit of the source waits for the acknowledgement of the last event.
    pub fn wants_ack(&self) -> bool {
        self.ack_wanted
    }

    /// Acknowledges all events before a position of the source's file. They are durable here.
    ///
    /// # Errors
    /// The connection breaks.
    pub fn ack(&mut self, file: &str, position: u64) -> io::Result<()> {
        self.ack_wanted = false;
        let mut packet = vec![MAGIC];
        packet.extend_from_slice(&position.to_le_bytes());
        packet.extend_from_slice(file.as_bytes());
        self.client.wire.command(&packet)
    }
}
