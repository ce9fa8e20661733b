//! The transactions of the binary log as commits carry them in the engine's log.
//!
//! # Picture
//! ```text
//! u8 version = 1 · u8 flags (1: a DDL statement, 2: the events lie in a file, 4: with a GTID,
//! 8: of an XA transaction)
//! · u32 server id · u64 commit, microseconds since 1970 · [16 uuid · u64 number]
//! · events without checksums and positions │ name of the file with these events
//! ```
//! Integers are little-endian.

use nfold_binlog::{BinlogError, SourceUuid};
use nfold_protocol::Reader;

const VERSION: u8 = 1;
const IS_STATEMENT: u8 = 1;
const IN_FILE: u8 = 2;
const HAS_GTID: u8 = 4;
const IS_XA: u8 = 8;

/// Where the events of a transaction are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GroupEvents<'a> {
    Here(&'a [u8]),
    /// A transaction that is too large for a log record: the name of a file.
    InFile(&'a str),
}

/// How a transaction ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GroupForm {
    /// By XID, which the writer adds.
    Changes,
    /// It is a DDL statement, which commits by itself and has the number of its commit.
    Statement,
    /// An XA transaction that is prepared or committed in one phase, the statement that ends one,
    /// or a transaction without changes. The events are complete, and have no place for the number
    /// of the commit.
    Xa,
}

/// A transaction between its commit and its place in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Group<'a> {
    pub form: GroupForm,
    pub server_id: u32,
    /// In microseconds since 1970.
    pub commit_us: u64,
    /// The GTID that another source gave it; `None`: the next one of this server.
    pub gtid: Option<(SourceUuid, u64)>,
    pub events: GroupEvents<'a>,
}

impl<'a> Group<'a> {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION, 0];
        out.extend_from_slice(&self.server_id.to_le_bytes());
        out.extend_from_slice(&self.commit_us.to_le_bytes());
        out[1] |= match self.form {
            GroupForm::Changes => 0,
            GroupForm::Statement => IS_STATEMENT,
            GroupForm::Xa => IS_XA,
        };
        if let Some((uuid, number)) = self.gtid {
            out[1] |= HAS_GTID;
            out.extend_from_slice(&uuid.0);
            out.extend_from_slice(&number.to_le_bytes());
        }
        match self.events {
            GroupEvents::Here(events) => out.extend_from_slice(events),
            GroupEvents::InFile(name) => {
                out[1] |= IN_FILE;
                out.extend_from_slice(name.as_bytes());
            }
        }
        out
    }

    /// # Errors
    /// The bytes are no transaction.
    pub fn decode(bytes: &'a [u8]) -> Result<Group<'a>, BinlogError> {
        let bad = BinlogError::Malformed("transaction of the binary log");
        let mut r = Reader::new(bytes);
        if r.u8("version")? != VERSION {
            return Err(bad);
        }
        let flags = r.u8("flags")?;
        let (server_id, commit_us) = (r.u32("server id")?, r.u64("commit")?);
        let mut gtid = None;
        if flags & HAS_GTID != 0 {
            let mut uuid = [0; 16];
            uuid.copy_from_slice(r.take(16, "uuid")?);
            gtid = Some((SourceUuid(uuid), r.u64("number")?));
        }
        let rest = r.rest();
        Ok(Group {
            form: match flags & (IS_STATEMENT | IS_XA) {
                0 => GroupForm::Changes,
                IS_STATEMENT => GroupForm::Statement,
                IS_XA => GroupForm::Xa,
                _ => return Err(bad),
            },
            server_id,
            commit_us,
            gtid,
            events: match flags & IN_FILE != 0 {
                false => GroupEvents::Here(rest),
                true => GroupEvents::InFile(std::str::from_utf8(rest).map_err(|_| bad)?),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_round_trip() {
        let here = Group {
            form: GroupForm::Statement,
            server_id: 7,
            commit_us: 1 << 50,
            gtid: Some((SourceUuid([3; 16]), 9)),
            events: GroupEvents::Here(b"events"),
        };
        assert_eq!(Group::decode(&here.encode()), Ok(here));
        let in_file = Group {
            form: GroupForm::Xa,
            gtid: None,
            events: GroupEvents::InFile("binlog-large.000001"),
            ..here
        };
        assert_eq!(Group::decode(&in_file.encode()), Ok(in_file));
        assert!(Group::decode(b"\x02").is_err());
    }
}
