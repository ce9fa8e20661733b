//! Statistics: made by ANALYZE TABLE from the whole table, and in the background from the first
//! entries of each index.
//!
//! # Cost
//! The background form reads at most [`SAMPLE`] entries of each index and holds nothing over waits
//! but a key.

use std::time::{SystemTime, UNIX_EPOCH};

use nfold_btree::{EntryBatch, KeyRange};
use nfold_catalog::{IndexStats, TableStats};
use nfold_store::{Stop as StoreStop, Store, Wait};

use crate::ddl::stop;
use crate::error::EngineError;
use crate::table::Table;

/// Entries that a background refresh looks at, per index.
const SAMPLE: u64 = 20_000;

/// Makes statistics of `table`; from every entry if `whole`. Blocks: not for workers.
pub(crate) fn make(store: &Store, table: &Table, whole: bool) -> Result<TableStats, EngineError> {
    let mut stats = TableStats {
        made_at: now(),
        ..TableStats::default()
    };
    for (ordinal, index) in table.indexes().iter().enumerate() {
        let size = block(|| index.tree.stats(store))?;
        let sample = sample(store, table, ordinal, if whole { u64::MAX } else { SAMPLE })?;
        let entries = if sample.complete {
            sample.entries
        } else {
            size.entries.max(sample.entries)
        };
        let scale = if sample.entries == 0 {
            1.0
        } else {
            entries as f64 / sample.entries as f64
        };
        let grown = |&d: &u64| ((d as f64 * scale) as u64).clamp(d.min(1), entries.max(1));
        let distinct = sample.distinct.iter().map(grown).collect();
        stats.indexes.push(IndexStats {
            distinct,
            pages: size.leaf_pages + size.inner_pages,
        });
        if ordinal == 0 {
            stats.rows = entries;
            stats.avg_row_bytes = sample.bytes.checked_div(sample.entries).unwrap_or(0) as u32;
        }
    }
    Ok(stats)
}

struct Sample {
    entries: u64,
    bytes: u64,
    distinct: Vec<u64>,
    /// The whole index was read.
    complete: bool,
}

/// Reads entries from the front of an index and counts the different values of each prefix of its
/// parts.
fn sample(store: &Store, table: &Table, ordinal: usize, limit: u64) -> Result<Sample, EngineError> {
    let index = table.index(ordinal);
    let parts = index.key.parts().len();
    let mut sample = Sample {
        entries: 0,
        bytes: 0,
        distinct: vec![0; parts],
        complete: false,
    };
    let mut cursor = index.tree.cursor(KeyRange::all(), false);
    let mut batch = EntryBatch::default();
    let mut last: Vec<u8> = Vec::new();
    while sample.entries < limit {
        stop::check()?;
        batch.clear();
        let more = block(|| cursor.next_batch(&index.tree, store, 1024, &mut batch))?;
        for (key, value) in batch.iter() {
            sample.bytes += value.len() as u64;
            let equal = key.iter().zip(&last).take_while(|(a, b)| a == b).count();
            for (n, distinct) in sample.distinct.iter_mut().enumerate() {
                let end = index.key.prefix_bytes(key, n + 1).unwrap_or(key.len());
                if sample.entries == 0 || equal < end {
                    *distinct += 1;
                }
            }
            sample.entries += 1;
            last.clear();
            last.extend_from_slice(key);
        }
        if !more {
            sample.complete = true;
            break;
        }
    }
    Ok(sample)
}

/// Repeats a call until it needs no wait. For threads that may block.
pub fn block<T, E>(mut call: impl FnMut() -> Result<T, StoreStop<E>>) -> Result<T, EngineError>
where
    EngineError: From<E>,
{
    finish(&mut Wait::block, &mut call)
}

/// Repeats `call` until it no longer has to wait; `wait` carries out each wait.
pub(crate) fn finish<T, E>(
    wait: &mut dyn FnMut(Wait),
    mut call: impl FnMut() -> Result<T, StoreStop<E>>,
) -> Result<T, EngineError>
where
    EngineError: From<E>,
{
    loop {
        match call() {
            Ok(value) => return Ok(value),
            Err(StoreStop::Wait(until)) => wait(until),
            Err(StoreStop::Error(e)) => return Err(e.into()),
        }
    }
}

/// Seconds since 1970 UTC.
pub(crate) fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_secs())
}
