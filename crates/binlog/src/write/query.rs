//! QUERY events.

use super::{Stamp, event};
use crate::event::{Header, code};
use crate::query::{QueryContext, QueryEvent};

/// Where the number of a DDL statement lies in its event: behind the header, the fixed part, and
/// the code of the first setting.
pub const DDL_XID_OFFSET: usize = Header::BYTES + 13 + 1;

/// Appends QUERY. With [`QueryContext::is_atomic_ddl`], the eight bytes at [`DDL_XID_OFFSET`] are
/// to be replaced by the number of the transaction.
pub fn query_event(out: &mut Vec<u8>, stamp: Stamp, query: &QueryEvent) {
    let is_bound = query.sql == b"BEGIN" || query.sql == b"COMMIT";
    let suppresses = query.sql.starts_with(b"XA ") || is_bound || query.context.names_database;
    let flags = if suppresses { Header::SUPPRESS_USE } else { 0 };
    event(out, stamp, (code::QUERY, flags), |out| {
        let context = query.context.encode();
        let database = query.database.as_bytes();
        out.extend_from_slice(&query.thread.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out.push(database.len() as u8);
        out.extend_from_slice(&query.error.to_le_bytes());
        out.extend_from_slice(&(context.len() as u16).to_le_bytes());
        out.extend_from_slice(&context);
        out.extend_from_slice(database);
        out.push(0);
        out.extend_from_slice(&query.sql);
    });
}

impl QueryContext {
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if self.is_atomic_ddl {
            out.push(17);
            out.extend_from_slice(&[0; 8]);
        }
        let mut flags = 0;
        for (on, flag) in [
            (self.auto_is_null, Self::AUTO_IS_NULL),
            (self.no_foreign_key_checks, Self::NO_FOREIGN_KEY_CHECKS),
            (self.no_unique_checks, Self::NO_UNIQUE_CHECKS),
        ] {
            flags |= if on { flag } else { 0 };
        }
        out.push(0);
        out.extend_from_slice(&flags.to_le_bytes());
        if let Some(mode) = self.sql_mode {
            out.push(1);
            out.extend_from_slice(&mode.to_le_bytes());
        }
        // The catalog.
        out.extend_from_slice(b"\x06\x03std");
        if let Some((increment, offset)) = self.auto_increment {
            out.push(3);
            out.extend_from_slice(&increment.to_le_bytes());
            out.extend_from_slice(&offset.to_le_bytes());
        }
        if let Some((client, connection, server)) = self.collations {
            out.push(4);
            for id in [client, connection, server] {
                out.extend_from_slice(&id.to_le_bytes());
            }
        }
        if let Some(zone) = &self.time_zone {
            out.push(5);
            put_short(&mut out, zone);
        }
        let mut number = |kind: u8, value: Option<u16>| {
            if let Some(value) = value {
                out.push(kind);
                out.extend_from_slice(&value.to_le_bytes());
            }
        };
        number(7, self.lc_time_names);
        number(8, self.collation_database);
        let databases = &self.updated_databases;
        if databases.len() > Self::MAX_DATABASES {
            out.extend_from_slice(&[12, Self::TOO_MANY_DATABASES]);
        } else if !databases.is_empty() {
            out.extend_from_slice(&[12, databases.len() as u8]);
            for name in databases {
                out.extend_from_slice(name.as_bytes());
                out.push(0);
            }
        }
        if self.microseconds > 0 {
            out.push(13);
            out.extend_from_slice(&self.microseconds.to_le_bytes()[..3]);
        }
        if let Some(on) = self.explicit_defaults_for_timestamp {
            out.extend_from_slice(&[16, u8::from(on)]);
        }
        if let Some(id) = self.collation_for_utf8mb4 {
            out.push(18);
            out.extend_from_slice(&id.to_le_bytes());
        }
        if let Some(on) = self.sql_require_primary_key {
            out.extend_from_slice(&[19, u8::from(on)]);
        }
        if let Some(on) = self.default_table_encryption {
            out.extend_from_slice(&[20, u8::from(on)]);
        }
        out
    }
}

fn put_short(out: &mut Vec<u8>, text: &str) {
    let bytes = &text.as_bytes()[..text.len().min(255)];
    out.push(bytes.len() as u8);
    out.extend_from_slice(bytes);
}
