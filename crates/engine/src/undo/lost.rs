//! Finds index entries of a row version whose key cannot be computed because an overflow page of
//! the version is damaged. The search uses the columns that do not need the page.
//!
//! # Invariants
//! U7. Rollback removes a transaction's entries from a sound index even if its long columns are
//!     damaged. An entry without a row would appear in covering reads, and would occupy its unique
//!     key for ever.
//!
//! # Cost
//! A scan of the index. It continues at its position after a wait, so it waits for each page once.

use nfold_btree::{EntryBatch, KeyRange};
use nfold_store::{Store, StoreError};
use nfold_txn::undo::UndoRecord;

use super::is_replaced;
use crate::error::{EngineError, Stop, lift};
use crate::read::damaged;
use crate::record::SecondaryEntry;
use crate::shared::Shared;
use crate::table::Table;

/// Entries looked at together.
const BATCH: usize = 256;

/// The keys, in index `n`, of the entries of `image`: a version of the row that `record` changed.
/// If damage hides them, searches the index instead, and returns the row's entries that the
/// record's transaction was the last to change: those marked as deleted if `marked`, else the
/// others.
pub(super) fn version_keys(
    shared: &Shared,
    table: &Table,
    n: usize,
    image: &[u8],
    record: &UndoRecord,
    marked: bool,
) -> Result<Vec<Vec<u8>>, Stop> {
    match table.entry_keys(n, image, record.key()) {
        Ok(keys) => Ok(keys),
        Err(Stop::Error(error @ EngineError::Store(StoreError::Corrupt { .. })))
            if !is_replaced(shared, table) =>
        {
            table.fence(&error);
            find(&shared.store, table, n, record, marked)
        }
        Err(stop) => Err(stop),
    }
}

/// Walks over index `n`.
fn find(
    store: &Store,
    table: &Table,
    n: usize,
    record: &UndoRecord,
    marked: bool,
) -> Result<Vec<Vec<u8>>, Stop> {
    let several = table.index(n).is_multi_valued();
    let mut found = Vec::new();
    let tree = &table.index(n).tree;
    let walk = (record.ptr.0, n, marked);
    let kept = table.lost_entries().0.lock().remove(&walk);
    let mut cursor = kept.unwrap_or_else(|| tree.cursor(KeyRange::all(), false));
    let mut batch = EntryBatch::default();
    let mut more = true;
    while more {
        batch.clear();
        more = match cursor
            .next_batch(tree, store, BATCH, &mut batch)
            .map_err(lift)
        {
            Ok(more) => more,
            Err(stop) => {
                if matches!(stop, Stop::Wait(_)) {
                    table.lost_entries().0.lock().insert(walk, cursor);
                }
                return Err(stop);
            }
        };
        for (key, value) in batch.iter() {
            let entry = SecondaryEntry::parse(value).ok_or_else(damaged)?;
            if (entry.trx, entry.deleted) == (record.trx_id, marked)
                && entry.primary_key(key) == Some(record.key())
            {
                found.push(key.to_vec());
                if !several {
                    return Ok(found);
                }
            }
        }
    }
    Ok(found)
}
