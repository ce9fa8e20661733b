//! Statistics: made by ANALYZE TABLE from the whole table, and in the background from the first
//! entries of each index. ANALYZE TABLE makes histograms of all columns, the background those of
//! the columns that conditions use, from leaves all over the table.
//!
//! # Cost
//! The background form reads at most [`SAMPLE`] entries of each index, and [`LEAVES`] leaves of the
//! clustered one. It holds nothing over waits but a key.

use std::ops::Bound;
use std::time::{SystemTime, UNIX_EPOCH};

use nfold_btree::{EntryBatch, KeyRange};
use nfold_catalog::{IndexStats, TableStats};
use nfold_store::{Stop as StoreStop, Store, Wait};

use nfold_types::row::{RawField, RowLayout};

use crate::column_sample::ColumnSamples;
use crate::ddl::stop;
use crate::distinct::DistinctCounter;
use crate::error::EngineError;
use crate::record::RowHeader;
use crate::table::Table;

/// Entries that a background refresh looks at, per index.
const SAMPLE: u64 = 20_000;

/// Leaves that a background refresh reads for the histograms.
const LEAVES: usize = 256;

/// Makes statistics of `table`; from every entry if `whole`. Blocks: not for workers.
pub(crate) fn make(store: &Store, table: &Table, whole: bool) -> Result<TableStats, EngineError> {
    let mut stats = TableStats {
        analyzed_at: now(),
        ..TableStats::default()
    };
    for (ordinal, index) in table.indexes().iter().enumerate() {
        let size = block_stoppable(|| index.tree.stats(store))?;
        let mut values = match ordinal {
            0 => ColumnSamples::new(table, &sampled_columns(table, whole), size.entries),
            _ => ColumnSamples::new(table, &[], 0),
        };
        let limit = if whole { u64::MAX } else { SAMPLE };
        let sample = sample(store, table, ordinal, limit, &mut values)?;
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
            let columns = sample.columns.iter().map(DistinctCounter::estimate);
            let grown = |distinct| grown_distinct(distinct, sample.entries, entries);
            stats.columns = columns.map(grown).collect();
            if !values.is_empty() {
                if !sample.complete {
                    values = spread_sample(store, table)?;
                }
                stats.histograms = values.histograms(entries, &stats.columns);
            }
        }
    }
    keep_histograms(&mut stats, &table.stats());
    Ok(stats)
}

/// Takes over the histograms of columns that were not sampled this time.
fn keep_histograms(stats: &mut TableStats, old: &TableStats) {
    if stats.histograms.is_empty() {
        stats.histograms = old.histograms.clone();
        return;
    }
    for (new, old) in stats.histograms.iter_mut().zip(&old.histograms) {
        if new.is_none() {
            *new = old.clone();
        }
    }
}

/// The different values of a column among `entries` rows, of which `sampled` have `distinct`.
/// Values that repeat are all in the sample; the others grow with the table.
fn grown_distinct(distinct: u64, sampled: u64, entries: u64) -> u64 {
    if sampled == 0 || sampled >= entries {
        return distinct.min(entries);
    }
    let unique = distinct as f64 / sampled as f64;
    let grows = ((unique - 0.1) / 0.4).clamp(0.0, 1.0);
    let scale = 1.0 + (entries as f64 / sampled as f64 - 1.0) * grows;
    ((distinct as f64 * scale) as u64).min(entries)
}

/// The columns whose values are sampled.
fn sampled_columns(table: &Table, whole: bool) -> Vec<usize> {
    let all = 0..table.def().columns.len();
    all.filter(|&column| whole || table.wants_histogram(column) || is_auto_updated(table, column))
        .collect()
}

/// Whether a user has made a histogram of the column with `AUTO UPDATE`.
fn is_auto_updated(table: &Table, column: usize) -> bool {
    let def = table.def().columns.get(column);
    let histogram = def.and_then(|column| column.histogram.as_deref());
    histogram.is_some_and(|h| h.auto_update)
}

/// Samples the columns that conditions use from leaves all over the table.
fn spread_sample<'t>(store: &Store, table: &'t Table) -> Result<ColumnSamples<'t>, EngineError> {
    let mut values = ColumnSamples::new(table, &sampled_columns(table, false), 0);
    let tree = &table.index(0).tree;
    let starts = block_stoppable(|| tree.spread(store, LEAVES))?;
    let each = (values.rows_wanted() as usize / starts.len().max(1)).max(1);
    let mut batch = EntryBatch::default();
    for start in starts {
        stop::check()?;
        let range = KeyRange {
            lo: Bound::Included(start),
            hi: Bound::Unbounded,
        };
        let mut cursor = tree.cursor(range, false);
        batch.clear();
        block_stoppable(|| cursor.next_batch(tree, store, each, &mut batch))?;
        batch.iter().for_each(|(_, value)| values.add(value));
    }
    Ok(values)
}

struct Sample {
    entries: u64,
    bytes: u64,
    distinct: Vec<u64>,
    /// Of the clustered index: the values of each column.
    columns: Vec<DistinctCounter>,
    /// The whole index was read.
    complete: bool,
}

/// Reads entries from the front of an index and counts the different values of each prefix of its
/// parts. Entries of the clustered index are added to `values`.
fn sample(
    store: &Store,
    table: &Table,
    ordinal: usize,
    limit: u64,
    values: &mut ColumnSamples<'_>,
) -> Result<Sample, EngineError> {
    let index = table.index(ordinal);
    let parts = index.key.parts().len();
    let mut sample = Sample {
        entries: 0,
        bytes: 0,
        distinct: vec![0; parts],
        columns: match ordinal {
            0 => vec![DistinctCounter::default(); table.def().columns.len()],
            _ => Vec::new(),
        },
        complete: false,
    };
    let mut cursor = index.tree.cursor(KeyRange::all(), false);
    let mut batch = EntryBatch::default();
    let mut last: Vec<u8> = Vec::new();
    while sample.entries < limit {
        stop::check()?;
        batch.clear();
        let more = block_stoppable(|| cursor.next_batch(&index.tree, store, 1024, &mut batch))?;
        for (key, value) in batch.iter() {
            sample.bytes += value.len() as u64;
            count_columns(table.layout(), value, &mut sample.columns);
            values.add(value);
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

/// Adds the values of a clustered row to `columns`. Rows of an older layout, and values on overflow
/// pages, are not counted.
fn count_columns(layout: &RowLayout, value: &[u8], columns: &mut [DistinctCounter]) {
    let Some((_, image)) = RowHeader::split(value).filter(|_| !columns.is_empty()) else {
        return;
    };
    if RowLayout::version_of(image) != Ok(layout.version()) {
        return;
    }
    for (column, counter) in columns.iter_mut().enumerate() {
        if let Ok(RawField::Fixed(bytes) | RawField::Var(bytes)) = layout.raw(image, column) {
            counter.add(bytes);
        }
    }
}

/// Repeats a call until it needs no wait. For threads that may block.
pub fn block<T, E>(mut call: impl FnMut() -> Result<T, StoreStop<E>>) -> Result<T, EngineError>
where
    EngineError: From<E>,
{
    finish(&mut Wait::block, &mut call)
}

/// As [`block`], but ends with [`EngineError::Stopped`] where the thread would wait although its
/// operation is [to stop](stop): one call may wait for thousands of pages of a long value. The
/// caller's operation must allow an end at any wait.
pub(crate) fn block_stoppable<T, E>(
    mut call: impl FnMut() -> Result<T, StoreStop<E>>,
) -> Result<T, EngineError>
where
    EngineError: From<E>,
{
    loop {
        match call() {
            Ok(value) => return Ok(value),
            Err(StoreStop::Wait(until)) => {
                stop::check()?;
                until.block();
            }
            Err(StoreStop::Error(e)) => return Err(e.into()),
        }
    }
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

/// Microseconds since 1970 UTC.
pub(crate) fn now_us() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_micros() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    #[test]
    fn block_stoppable_ends_at_a_wait_after_the_flag() {
        let asked = Arc::new(AtomicBool::new(false));
        let (mut calls, raised) = (0, asked.clone());
        let ended = stop::stoppable(asked, || {
            block_stoppable(|| -> Result<(), StoreStop<EngineError>> {
                calls += 1;
                raised.store(calls == 3, Relaxed);
                Err(StoreStop::Wait(Wait::ready()))
            })
        });
        assert_eq!((ended, calls), (Err(EngineError::Stopped), 3));
    }
}
