//! READ UNCOMMITTED: reads the newest version of each row, committed or not.
//!
//! # Invariants
//! V3. An uncommitted version can disappear while it is read: its transaction may roll back, and
//!     its overflow chains are then freed or reused. So a row counts only if it still has the same
//!     newest version after its chains were read; otherwise the reader starts over with the current
//!     version. A version that a rollback restores has kept its chains.
//! V4. An entry and its row are read at different times, so the row must have the entry's key.

use super::consistent::has_key;
use super::visibility::damaged;
use super::{ReadSpec, View};
use crate::batch::RowBatch;
use crate::error::{Stop, lift};
use crate::record::RowHeader;
use crate::session::EngineSession;
use crate::table::Table;
use nfold_types::row::RowLayout;

/// Where a row was found.
#[derive(Clone, Copy)]
pub(crate) struct Origin<'a> {
    /// Its clustered key.
    pub primary: &'a [u8],
    /// The key of the secondary entry that led to it.
    pub entry: Option<&'a [u8]>,
    pub point: u32,
}

/// Whether V3 concerns this row.
#[inline]
pub(crate) fn is_unsteady(view: &View<'_>, image: &[u8]) -> bool {
    matches!(view, View::Newest) && RowLayout::has_external(image)
}

/// Appends the newest version of a row that was found as `value`, if there still is one that
/// belongs there.
#[cold]
pub(crate) fn emit_newest(
    table: &Table,
    spec: &ReadSpec,
    session: &EngineSession,
    origin: Origin<'_>,
    value: &[u8],
    out: &mut RowBatch,
) -> Result<(), Stop> {
    let (mut found, mut now) = (value.to_vec(), Vec::new());
    let (mut row, mut key) = (Vec::new(), Vec::new());
    loop {
        let (header, image) = RowHeader::split(&found).ok_or_else(damaged)?;
        if header.deleted {
            return Ok(());
        }
        row.clear();
        session.pending_chains().belong_to(header.undo); // V3
        let read = whole_row(table, spec, session, image, &mut row);
        let read = match (read, origin.entry) {
            (Ok(()), Some(entry)) => {
                has_key(table, spec.index, image, (entry, origin.primary), &mut key)
            }
            (read, _) => read.map(|()| true),
        };
        if matches!(read, Err(Stop::Wait(_))) {
            return read.map(drop);
        }
        now.clear();
        let tree = &table.index(0).tree;
        let there = tree.get(session.store(), origin.primary, &mut now);
        if !there.map_err(lift)? {
            return Ok(());
        }
        let (current, _) = RowHeader::split(&now).ok_or_else(damaged)?;
        if current == header {
            if read? {
                out.push(origin.point as usize, &row);
            }
            return Ok(());
        }
        std::mem::swap(&mut found, &mut now); // V3
    }
}

/// The image with the long columns that are needed.
fn whole_row(
    table: &Table,
    spec: &ReadSpec,
    session: &EngineSession,
    image: &[u8],
    row: &mut Vec<u8>,
) -> Result<(), Stop> {
    if super::consistent::needs_chains(table, &spec.columns, image) {
        super::consistent::inflate_used(table, spec, session, image, row)
    } else {
        row.extend_from_slice(image);
        Ok(())
    }
}
