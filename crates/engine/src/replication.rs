//! What replication keeps in the dictionary: for each channel its configuration and its
//! coordinates. Both are bytes here.
//!
//! # Invariants
//! - C1. Coordinates change in the transaction whose changes they cover: that of applied rows, or
//!   that of a DDL statement over the dictionary. A crash leaves both or neither.
//!
//! # Concurrency
//! A DDL statement runs on a thread that may block. [`with_statement_writes`] hands the
//! coordinates to the engine there, in a variable of the thread.

use std::cell::RefCell;

use crate::dictionary::{self, ObjectKind};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::session::EngineSession;
use crate::stats::block;

/// What is stored for a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChannelRecord {
    Configuration,
    Coordinates,
}

impl ChannelRecord {
    fn kind(self) -> ObjectKind {
        match self {
            ChannelRecord::Configuration => ObjectKind::Channel,
            ChannelRecord::Coordinates => ObjectKind::Coordinates,
        }
    }
}

/// Coordinates that a DDL statement is to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingCoordinates {
    pub channel: String,
    pub data: Vec<u8>,
}

/// What the transaction of a DDL statement's change writes besides the change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StatementWrites {
    pub coordinates: Option<PendingCoordinates>,
    /// Bytes that the commit carries in the log.
    pub attachment: Option<Vec<u8>>,
}

thread_local! {
    static PENDING: RefCell<StatementWrites> = const {
        RefCell::new(StatementWrites { coordinates: None, attachment: None })
    };
}

/// Calls `f`, a step of a DDL statement. If the step changes a definition, the transaction of that
/// change writes `pending` (C1). If it changes nothing, `pending` is not written, and returned
/// beside the result of `f`.
pub fn with_statement_writes<T>(
    pending: StatementWrites,
    f: impl FnOnce() -> T,
) -> (T, StatementWrites) {
    PENDING.set(pending);
    let result = f();
    (result, PENDING.take())
}

impl Engine {
    /// What is stored for a channel, or `None`. Blocks.
    ///
    /// # Errors
    /// A damaged dictionary.
    pub fn channel_record(
        &self,
        record: ChannelRecord,
        channel: &str,
    ) -> Result<Option<Vec<u8>>, EngineError> {
        let mut session = EngineSession::internal(self.shared())?;
        session.begin_internal();
        let dictionary = &self.shared().dictionary;
        let found = dictionary::get(&mut session, dictionary, record.kind(), channel.as_bytes());
        block(|| session.rollback())?;
        found
    }

    /// Stores or removes records of a channel in one transaction. Blocks.
    ///
    /// # Errors
    /// The errors of writing.
    pub fn put_channel_records(
        &self,
        channel: &str,
        records: &[(ChannelRecord, Option<&[u8]>)],
    ) -> Result<(), EngineError> {
        let _one = self.shared().ddl.lock();
        let (dictionary, id) = (&self.shared().dictionary, channel.as_bytes());
        self.change_dictionary(|session| {
            for (record, data) in records {
                match data {
                    Some(data) => dictionary::put(session, dictionary, record.kind(), id, data)?,
                    None => drop(dictionary::remove(session, dictionary, record.kind(), id)?),
                }
            }
            Ok(())
        })
    }

    /// Commits a transaction that changes nothing and carries these bytes in the log, durably.
    /// Blocks.
    ///
    /// # Errors
    /// The errors of writing.
    pub fn commit_attachment(&self, bytes: Vec<u8>) -> Result<(), EngineError> {
        /// No channel has this name.
        const NONE: &[u8] = b"\xff";
        let _one = self.shared().ddl.lock();
        let (dictionary, kind) = (&self.shared().dictionary, ObjectKind::Coordinates);
        self.change_leftovers(|session| {
            // A transaction without a change would not be in the log.
            dictionary::put(session, dictionary, kind, NONE, b"")?;
            dictionary::remove(session, dictionary, kind, NONE)?;
            session.attach(bytes);
            Ok(())
        })
    }

    /// Writes the coordinates of a channel in a transaction of their own. It becomes durable with
    /// the next durable commit or prepared transaction, not before. Blocks.
    ///
    /// # Errors
    /// The errors of writing.
    pub fn put_coordinates_alone(&self, channel: &str, data: &[u8]) -> Result<(), EngineError> {
        let mut session = EngineSession::internal(self.shared())?;
        session.begin_internal();
        match self.put_coordinates(&mut session, channel, data) {
            Ok(()) => block(|| session.commit_unsynced()),
            Err(e) => {
                block(|| session.rollback())?;
                Err(e)
            }
        }
    }

    /// Writes the coordinates of a channel as a part of the session's transaction (C1). Blocks.
    ///
    /// # Errors
    /// The errors of writing.
    pub fn put_coordinates(
        &self,
        session: &mut EngineSession,
        channel: &str,
        data: &[u8],
    ) -> Result<(), EngineError> {
        let (dictionary, kind) = (&self.shared().dictionary, ObjectKind::Coordinates);
        dictionary::put(session, dictionary, kind, channel.as_bytes(), data)
    }

    /// Writes what the thread's DDL statement carries.
    pub(crate) fn put_statement_writes(
        &self,
        session: &mut EngineSession,
    ) -> Result<(), EngineError> {
        let StatementWrites {
            coordinates,
            attachment,
        } = PENDING.take();
        if let Some(bytes) = attachment {
            session.attach(bytes);
        }
        match coordinates {
            Some(at) => self.put_coordinates(session, &at.channel, &at.data),
            None => Ok(()),
        }
    }
}
