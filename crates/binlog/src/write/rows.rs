//! Row events.

use nfold_protocol::lenenc::put_int;

use super::{Stamp, event};
use crate::event::{Header, code};
use crate::rows::{RowChangeKind, RowsEvent};

/// Which columns the images of a row event have, as bits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImageColumns(pub Vec<u8>);

impl ImageColumns {
    /// All of `n` columns.
    pub fn all(n: usize) -> ImageColumns {
        let mut bits = vec![0xff; n.div_ceil(8)];
        if let (Some(last), true) = (bits.last_mut(), !n.is_multiple_of(8)) {
            *last = (1 << (n % 8)) - 1;
        }
        ImageColumns(bits)
    }
}

/// The fixed part of a row event.
#[derive(Debug, Clone, Copy)]
pub struct RowsHead<'a> {
    pub kind: RowChangeKind,
    pub table_id: u64,
    pub columns: usize,
    /// The columns of the old image of an update or delete, or of the new image of an insert.
    pub first: &'a ImageColumns,
    /// The columns of an update's new image.
    pub second: &'a ImageColumns,
    pub no_foreign_key_checks: bool,
    pub no_unique_checks: bool,
}

const TABLE_ID_BYTES: usize = 6;
const NO_UNIQUE_CHECKS: u16 = 4;

/// Appends a row event with `rows`: for each row a NULL bit for each of its columns, then its
/// values.
pub fn rows_event(out: &mut Vec<u8>, stamp: Stamp, head: &RowsHead<'_>, rows: &[u8]) {
    let code = match head.kind {
        RowChangeKind::Insert => code::WRITE_ROWS,
        RowChangeKind::Update | RowChangeKind::PartialUpdate => code::UPDATE_ROWS,
        RowChangeKind::Delete => code::DELETE_ROWS,
    };
    event(out, stamp, (code, 0), |out| {
        out.extend_from_slice(&head.table_id.to_le_bytes()[..TABLE_ID_BYTES]);
        let mut flags = 0;
        if head.no_foreign_key_checks {
            flags |= RowsEvent::NO_FOREIGN_KEY_CHECKS;
        }
        if head.no_unique_checks {
            flags |= NO_UNIQUE_CHECKS;
        }
        out.extend_from_slice(&flags.to_le_bytes());
        // The length of extra data: only itself.
        out.extend_from_slice(&2u16.to_le_bytes());
        put_int(out, head.columns as u64);
        out.extend_from_slice(&head.first.0);
        if head.kind == RowChangeKind::Update {
            out.extend_from_slice(&head.second.0);
        }
        out.extend_from_slice(rows);
    });
}

/// Marks the row event at the beginning of `event` as the last one of its statement.
pub fn end_statement(event: &mut [u8]) {
    event[Header::BYTES + TABLE_ID_BYTES] |= RowsEvent::STATEMENT_END as u8;
}
