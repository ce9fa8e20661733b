//! An open table: its definition compiled into what reads and writes need.
//!
//! # Picture
//! ```text
//! Table ── def, row layout (all columns, table order)
//!   └─ indexes[0] clustered: key = encoded primary key, or the 8-byte hidden row id
//!      indexes[i] secondary:  key = encoded parts ‖ primary key;  value = record::SecondaryEntry
//! ```
//! # Concurrency
//! Everything but `auto_increment`, `row_id`, `rows` and `stats` is immutable: DDL makes a new
//! `Table`. Those are written by writers and background work, never by reads. `io` has cache lines
//! of its own for each worker.
//! # Not here
//! Transactions: see `write` and `read`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};

use nfold_btree::{MAX_ENTRY, MAX_KEY, Tree, TreeHandle};
use nfold_catalog::codec::StoredStats;
use nfold_catalog::{HistogramType, IndexKind, TableDef, TableStats};
use nfold_observe::{TableCall, TableIo};
use nfold_store::{Lsn, Store, StoreError};
use nfold_sync::CachePadded;
use nfold_types::key::{KeyError, KeyLayout, KeyPart, KeyRows, KeySource};
use nfold_types::row::{RawField, RowColumn, RowError, RowLayout};
use nfold_types::{Value, ValueRef};
use parking_lot::RwLock;

use crate::batch::RowBatch;
use crate::counters::ValueCounter;
use crate::error::{EngineError, Stop};
use crate::lost_entries::LostEntries;
use crate::orphaned::OrphanedPages;
use crate::overflow;
use crate::pending_chains::PendingChains;
use crate::record::{self, SecondaryEntry};

/// Bytes of a key that a byte of text makes at most: eighteen weights for three bytes, zeros
/// doubled.
const LONGEST_WEIGHTS: usize = 24;
/// Bytes of a text's part in a key besides its weights, at most.
const PART_MARKS: usize = 8;
/// Bytes of a part of any other type, at most.
const FIXED_PART: usize = 64;

/// One index of an open table.
pub struct Index {
    /// Where the tree is.
    pub tree: TreeHandle,
    /// How the key's own parts are encoded (without the primary key behind them).
    pub key: KeyLayout,
    /// The row layout of covering reads: the columns of the index's parts, then the primary key
    /// columns that are not among them.
    pub layout: RowLayout,
    /// Table ordinals of the columns of `layout`.
    pub columns: Vec<usize>,
    /// For each column of `layout`: where its value comes from.
    sources: Vec<Source>,
    /// The multi-valued part of the key.
    array: Option<usize>,
    /// Makes these rows, unless some column is a string that the key itself holds.
    rows: Option<KeyRows>,
    /// Table ordinals of the columns whose original bytes stand in the entry, in order.
    originals: Vec<usize>,
    /// Whether any two rows with equal keys (without NULL) are refused.
    pub unique: bool,
    /// Snapshots below this LSN cannot use it: it was filled later, with the newest versions alone.
    /// 0: all can.
    pub(crate) usable_from: Lsn,
}

/// Where a covering read takes a column from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// Part `n` of the entry's own key.
    Part(usize),
    /// Part `n` of the primary key at its end.
    PrimaryPart(usize),
    /// Original bytes number `n`.
    Original(usize),
}

impl Source {
    /// The same as [`KeyRows`] knows it: originals come in the order of their columns.
    fn of_key(self) -> KeySource {
        match self {
            Source::Part(n) => KeySource::Part(n),
            Source::PrimaryPart(n) => KeySource::PrimaryPart(n),
            Source::Original(_) => KeySource::Original,
        }
    }
}

/// An open table.
pub struct Table {
    def: Arc<TableDef>,
    store: Arc<Store>,
    layout: RowLayout,
    indexes: Vec<Index>,
    pub(crate) auto_increment: CachePadded<ValueCounter>,
    /// Next hidden row id; 0: not known yet.
    pub(crate) row_id: CachePadded<AtomicU64>,
    /// Values below this are logged as used.
    pub(crate) reserved: CachePadded<parking_lot::Mutex<Reserved>>,
    /// Rows added less rows removed since `stats` were made.
    pub(crate) rows_changed: CachePadded<AtomicI64>,
    stats: RwLock<Arc<TableStats>>,
    /// The dictionary has other statistics, or none.
    stats_unsaved: AtomicBool,
    /// A crash has lost `rows_changed`.
    pub(crate) stats_in_doubt: AtomicBool,
    /// A bit for each column that a condition uses: its histogram belongs to the statistics.
    histograms_wanted: AtomicU64,
    /// `stats.rows`, for readers who take no lock.
    rows_counted: AtomicU64,
    /// A damaged page was found.
    damaged: AtomicBool,
    /// What statements do to it.
    io: TableIo,
    orphaned: Arc<OrphanedPages>,
    lost: LostEntries,
    /// No restart keeps it.
    private: bool,
}

/// Upper ends of the logged blocks of automatic values.
#[derive(Default)]
pub(crate) struct Reserved {
    pub auto_increment: u64,
    pub row_id: u64,
    pub loaded: bool,
}

impl Table {
    /// Compiles a definition.
    pub fn new(def: Arc<TableDef>, store: Arc<Store>) -> Table {
        let orphaned = OrphanedPages::new(def.space);
        let layout = RowLayout::new(
            def.row_version,
            def.columns.iter().map(|c| RowColumn {
                ty: c.ty.clone(),
                nullable: c.nullable,
            }),
        );
        let primary = key_layout(&def, 0);
        let indexes = (0..def.indexes.len())
            .map(|i| Index::new(&def, i, &primary))
            .collect();
        let auto_increment = CachePadded::new(ValueCounter::new(&def));
        Table {
            io: TableIo::new(def.indexes.len()),
            def,
            store,
            layout,
            indexes,
            auto_increment,
            row_id: CachePadded::default(),
            reserved: CachePadded::default(),
            rows_changed: CachePadded::default(),
            stats: RwLock::default(),
            stats_unsaved: AtomicBool::new(false),
            stats_in_doubt: AtomicBool::new(false),
            histograms_wanted: AtomicU64::new(0),
            rows_counted: AtomicU64::new(0),
            damaged: AtomicBool::new(false),
            orphaned,
            lost: LostEntries::default(),
            private: false,
        }
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Its chains of overflow pages that no row names.
    pub(crate) fn orphaned(&self) -> &Arc<OrphanedPages> {
        &self.orphaned
    }

    pub(crate) fn lost_entries(&self) -> &LostEntries {
        &self.lost
    }

    /// The definition it was compiled from.
    pub fn def(&self) -> &Arc<TableDef> {
        &self.def
    }

    /// From now on the table takes no changes, or does again after it was checked.
    pub(crate) fn set_damaged(&self, damaged: bool) {
        self.damaged.store(damaged, Relaxed);
    }

    /// An error says that a page, or the file, is damaged: no more changes. Said once in the log.
    pub(crate) fn fence(&self, error: &dyn std::fmt::Display) {
        if !self.damaged.swap(true, Relaxed) {
            let (name, space) = (&self.def.name, self.def.space);
            tracing::error!(table = %name, space, "{error}; the table takes no more changes");
        }
    }

    /// Refuses changes of a table in which a damaged page was found, so that its remaining rows can
    /// be saved.
    pub fn check_sound(&self) -> Result<(), EngineError> {
        if !self.damaged.load(Relaxed) {
            return Ok(());
        }
        Err(EngineError::TableDamaged {
            schema: self.def.schema.clone(),
            table: self.def.name.clone(),
        })
    }

    /// Layout of its rows: all columns in table order.
    pub fn layout(&self) -> &RowLayout {
        &self.layout
    }

    /// The index with this ordinal in the definition.
    ///
    /// # Panics
    /// If the table has no such index.
    // A table is no container: `table[n]` would not say that it is an index.
    #[allow(clippy::should_implement_trait)]
    pub fn index(&self, ordinal: usize) -> &Index {
        &self.indexes[ordinal]
    }

    /// All indexes, the clustered one first.
    pub fn indexes(&self) -> &[Index] {
        &self.indexes
    }

    /// The row layout of covering reads of an index.
    pub fn index_layout(&self, ordinal: usize) -> &RowLayout {
        if ordinal == 0 {
            &self.layout
        } else {
            &self.indexes[ordinal].layout
        }
    }

    /// Table ordinals of the columns in [`Table::index_layout`].
    pub fn index_columns(&self, ordinal: usize) -> &[usize] {
        &self.indexes[ordinal].columns
    }

    /// How an index's bounds and points are encoded.
    pub fn key_layout(&self, ordinal: usize) -> &KeyLayout {
        &self.indexes[ordinal].key
    }

    /// The counters of what statements do to the table.
    pub fn io(&self) -> &TableIo {
        &self.io
    }

    /// The place among the counters of calls that go through an index. The hidden row id is no
    /// index to clients.
    pub fn io_place(&self, index: usize) -> usize {
        match index == 0 && self.has_hidden_row_id() {
            true => self.io.no_index(),
            false => index,
        }
    }

    /// Counts rows that statements have fetched through an index or, at the place
    /// [`TableIo::no_index`], without one.
    #[inline]
    pub fn count_fetches(&self, place: usize, n: u64) {
        self.io.add(place, TableCall::Fetch, n);
    }

    /// Whether the clustered key is a hidden row id.
    pub fn has_hidden_row_id(&self) -> bool {
        self.def.indexes[0].kind == IndexKind::HiddenRowId
    }

    /// Estimated number of rows now. Takes no lock.
    pub fn estimate_rows(&self) -> u64 {
        let base = self.rows_counted.load(Relaxed) as i64;
        base.saturating_add(self.rows_changed.load(Relaxed)).max(0) as u64
    }

    /// The newest statistics, with the row count as it is estimated now.
    pub fn stats(&self) -> Arc<TableStats> {
        self.stats.read().clone()
    }

    /// Notes that a condition uses a column. Stores only the first time.
    pub fn want_histogram(&self, column: usize) {
        let kind = self
            .def
            .columns
            .get(column)
            .map(|c| HistogramType::of(&c.ty));
        let bit = 1u64.checked_shl(column as u32).unwrap_or(0);
        if kind.flatten().is_some() && self.histograms_wanted.load(Relaxed) & bit != bit {
            self.histograms_wanted.fetch_or(bit, Relaxed);
        }
    }

    /// Whether a condition uses a column.
    pub(crate) fn wants_histogram(&self, column: usize) -> bool {
        let bit = 1u64.checked_shl(column as u32).unwrap_or(0);
        self.histograms_wanted.load(Relaxed) & bit != 0
    }

    /// Whether a wanted histogram has not been made yet.
    pub(crate) fn lacks_histogram(&self) -> bool {
        let wanted = self.histograms_wanted.load(Relaxed);
        let stats = self.stats();
        wanted != 0
            && (0..self.def.columns.len().min(64))
                .any(|column| wanted >> column & 1 == 1 && stats.histogram(column).is_none())
    }

    /// The table is one that no restart keeps.
    pub(crate) fn of_one_session(mut self) -> Table {
        self.private = true;
        self
    }

    /// Whether it is a temporary table of one session, which no restart keeps.
    pub fn is_private(&self) -> bool {
        self.private
    }

    /// The table was filled just now, with the newest versions alone: older snapshots cannot read
    /// it.
    pub(crate) fn usable_from(mut self, now: Lsn) -> Table {
        self.indexes.iter_mut().for_each(|i| i.usable_from = now);
        self
    }

    /// Takes over what outlives a change of the definition. `now`: snapshots from here on can use
    /// indexes that are new.
    pub(crate) fn take_over(&mut self, old: &Table, now: Lsn) {
        for (index, def) in self.indexes.iter_mut().zip(&self.def.indexes) {
            let before = old.def.indexes.iter().position(|i| i.id == def.id);
            index.usable_from = before.map_or(now, |n| old.indexes[n].usable_from);
            if let Some(n) = before {
                // Purge and rollback may still be at work on the old table: one structure mutex for
                // each tree.
                index.tree = old.indexes[n].tree.clone();
            }
        }
        self.damaged.store(old.damaged.load(Relaxed), Relaxed);
        self.orphaned = old.orphaned.clone();
        self.auto_increment.continue_from(&old.auto_increment);
        self.row_id.store(old.row_id.load(Relaxed), Relaxed);
        *self.reserved.lock() = std::mem::take(&mut *old.reserved.lock());
        self.rows_changed
            .store(old.rows_changed.load(Relaxed), Relaxed);
        let mut stats = TableStats::clone(&old.stats.read());
        self.rows_counted.store(stats.rows, Relaxed);
        let column = |n: usize| self.def.columns.get(n).map(|c| &c.name);
        let mut before = old.def.columns.iter().enumerate();
        let same = before.all(|(n, c)| column(n) == Some(&c.name));
        if !same || self.def.columns.len() != old.def.columns.len() {
            stats.columns.clear();
            stats.histograms.clear();
        } else {
            let wanted = old.histograms_wanted.load(Relaxed);
            self.histograms_wanted.store(wanted, Relaxed);
            let types = self.def.columns.iter().zip(&old.def.columns);
            for ((new, before), histogram) in types.zip(&mut stats.histograms) {
                histogram.take_if(|_| new.ty != before.ty);
            }
        }
        // Statistics go with their index; a new index has none yet.
        let of = |id| old.def.indexes.iter().position(|i| i.id == id);
        stats.indexes = self
            .def
            .indexes
            .iter()
            .map(|i| {
                of(i.id)
                    .and_then(|n| stats.indexes.get(n).cloned())
                    .unwrap_or_default()
            })
            .collect();
        let made = stats.analyzed_at != 0;
        self.stats_unsaved.store(made, Relaxed);
        *self.stats.write() = Arc::new(stats);
    }

    /// Replaces the statistics by those that were made just now.
    pub(crate) fn set_stats(&self, stats: TableStats) {
        let mut current = self.stats.write();
        self.rows_counted.store(stats.rows, Relaxed);
        self.rows_changed.store(0, Relaxed);
        self.stats_unsaved.store(true, Relaxed);
        *current = Arc::new(stats);
    }

    /// Takes the statistics that the dictionary holds, when the table is opened.
    pub(crate) fn restore_stats(&self, stored: &StoredStats) {
        let columns = self.def.columns.iter().enumerate().take(64);
        let wanted = columns
            .filter(|(_, column)| stored.column(&column.name).is_some_and(|c| c.wanted))
            .fold(0, |wanted, (n, _)| wanted | 1 << n);
        self.histograms_wanted.store(wanted, Relaxed);
        self.rows_counted.store(stored.rows, Relaxed);
        self.rows_changed.store(stored.rows_changed, Relaxed);
        *self.stats.write() = Arc::new(stored.stats(&self.def));
    }

    /// Whether the dictionary has other statistics, or none.
    pub(crate) fn has_unsaved_stats(&self) -> bool {
        self.stats_unsaved.load(Relaxed)
    }

    /// The statistics for the dictionary. From now on they count as saved.
    pub(crate) fn stats_to_save(&self) -> StoredStats {
        self.stats_unsaved.store(false, Relaxed);
        let changed = self.rows_changed.load(Relaxed);
        StoredStats::new(&self.def, &self.stats(), changed, |n| {
            self.wants_histogram(n)
        })
    }

    /// They could not be saved.
    pub(crate) fn stats_not_saved(&self) {
        self.stats_unsaved.store(true, Relaxed);
    }

    /// Appends the clustered key of a row image. A hidden row id is not part of the image and is
    /// appended by the caller.
    pub(crate) fn clustered_key(&self, row: &[u8], out: &mut Vec<u8>) -> Result<(), EngineError> {
        self.indexes[0]
            .key
            .encode_row(&self.layout, row, out)
            .map_err(|e| self.key_error(0, e))
    }

    /// Appends the clustered key of row `i` of a batch that was read in the table's layout.
    ///
    /// # Errors
    /// Corruption.
    pub fn batch_row_key(
        &self,
        batch: &RowBatch,
        i: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), EngineError> {
        match batch.row_id(i) {
            Some(id) if self.has_hidden_row_id() => out.extend_from_slice(&id.to_be_bytes()),
            _ => self.clustered_key(batch.row(i), out)?,
        }
        Ok(())
    }

    /// Appends the key of index `ordinal` (parts, then `primary`) for a row image; gives the length
    /// of the parts. Brings in a long column of which a prefix is indexed. The index is not a
    /// multi-valued one: see [`Table::entry_keys`](crate::entry_keys).
    pub(crate) fn secondary_key(
        &self,
        ordinal: usize,
        row: &[u8],
        primary: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<usize, Stop> {
        let start = out.len();
        let index = &self.indexes[ordinal];
        match index.key.encode_row(&self.layout, row, out) {
            Ok(()) => {}
            Err(KeyError::Row(RowError::External(_))) => {
                let whole = self.row_of_index(ordinal, row)?;
                index
                    .key
                    .encode_row(&self.layout, &whole, out)
                    .map_err(|e| self.key_error(ordinal, e))?;
            }
            Err(e) => return Err(self.key_error(ordinal, e).into()),
        }
        let own = out.len() - start;
        out.extend_from_slice(primary);
        Ok(own)
    }

    /// Checks, before a row is first changed, that all its keys, each followed by `primary`, fit on
    /// a page. `buffer` is scratch memory.
    ///
    /// # Errors
    /// [`EngineError::KeyTooLong`].
    pub(crate) fn check_keys(
        &self,
        row: &[u8],
        primary: &[u8],
        buffer: &mut Vec<u8>,
    ) -> Result<(), Stop> {
        let too_long = EngineError::KeyTooLong { limit: MAX_KEY };
        if primary.len() > MAX_KEY {
            return Err(too_long.into());
        }
        for n in 1..self.indexes.len() {
            let index = &self.indexes[n];
            // Values are short as a rule: then no key has to be made.
            let longest = |part: &KeyPart| match self.layout.raw(row, part.ordinal) {
                Ok(RawField::Var(bytes)) => bytes.len() * LONGEST_WEIGHTS + PART_MARKS,
                Ok(RawField::External(_) | RawField::Patched(..)) => MAX_KEY,
                _ => FIXED_PART,
            };
            let parts = index.key.parts();
            if primary.len() + parts.iter().map(longest).sum::<usize>() > MAX_KEY {
                buffer.clear();
                if index.is_multi_valued() {
                    let keys = self.entry_keys(n, row, primary)?;
                    if keys.iter().any(|key| key.len() > MAX_KEY) {
                        return Err(too_long.into());
                    }
                    continue;
                }
                self.secondary_key(n, row, primary, buffer)?;
                if buffer.len() > MAX_KEY {
                    return Err(too_long.into());
                }
            }
        }
        Ok(())
    }

    /// Appends the value of a secondary entry. `lengths`: of its key and of the primary key at the
    /// key's end. Original bytes that would make the entry too large are left out: such an entry
    /// covers nothing.
    pub(crate) fn secondary_value(
        &self,
        ordinal: usize,
        row: &[u8],
        lengths: (usize, usize),
        trx: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), Stop> {
        let start = out.len();
        self.secondary_value_whole(ordinal, row, lengths.1, trx, out)?;
        if lengths.0 + (out.len() - start) > MAX_ENTRY {
            out.truncate(start + record::SECONDARY_HEADER);
            record::set_bare(&mut out[start..]);
        }
        Ok(())
    }

    fn secondary_value_whole(
        &self,
        ordinal: usize,
        row: &[u8],
        primary_len: usize,
        trx: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), Stop> {
        let start = out.len();
        let put = |row: &[u8], out: &mut Vec<u8>| {
            record::put_secondary_header(out, trx, false, primary_len);
            self.indexes[ordinal].originals.iter().try_for_each(|&c| {
                record::put_original(out, self.layout.var_bytes(row, c)?);
                Ok(())
            })
        };
        match put(row, out) {
            Err(RowError::External(_)) => {
                out.truncate(start);
                let whole = self.row_of_index(ordinal, row)?;
                put(&whole, out).map_err(|_| self.corrupt_row().into())
            }
            other => other.map_err(|_: RowError| self.corrupt_row().into()),
        }
    }

    /// The row with its long columns. See [`overflow::inflate`].
    pub(crate) fn whole_row(&self, row: &[u8], pending: &PendingChains) -> Result<Vec<u8>, Stop> {
        let mut whole = Vec::new();
        let (from, layout) = ((&*self.store, self.def.space), &self.layout);
        overflow::inflate(from, layout, row, |_| true, pending, &mut whole)?;
        Ok(whole)
    }

    /// The row with those of its long columns that index `ordinal` covers.
    pub(crate) fn row_of_index(&self, ordinal: usize, row: &[u8]) -> Result<Vec<u8>, Stop> {
        let mut out = Vec::new();
        let (from, layout) = ((&*self.store, self.def.space), &self.layout);
        let Index { key, columns, .. } = &self.indexes[ordinal];
        let is_part = |column| key.parts().iter().any(|part| part.ordinal == column);
        let wanted = |column| is_part(column) || columns.contains(&column);
        let pending = PendingChains::default();
        overflow::inflate(from, layout, row, wanted, &pending, &mut out)?;
        Ok(out)
    }

    /// Whether a column is a part of an index.
    pub(crate) fn is_in_key(&self, ordinal: usize) -> bool {
        let mut parts = self.indexes.iter().flat_map(|index| index.key.parts());
        parts.any(|part| part.ordinal == ordinal)
    }

    /// Puts values in the places of the overflow pointers of columns that an index covers
    /// (overflow::O3).
    pub(crate) fn inflate_key_columns(
        &self,
        row: &mut Vec<u8>,
        pending: &PendingChains,
    ) -> Result<(), Stop> {
        let parts = || self.indexes.iter().flat_map(|index| index.key.parts());
        let is_external = |part: &KeyPart| {
            let field = self.layout.raw(row, part.ordinal);
            field.is_ok_and(|field| field.pointer().is_some())
        };
        if !parts().any(is_external) {
            return Ok(());
        }
        let wanted = |column| parts().any(|part| part.ordinal == column);
        let mut out = Vec::new();
        let (from, layout) = ((&*self.store, self.def.space), &self.layout);
        overflow::inflate(from, layout, row, wanted, pending, &mut out)?;
        *row = out;
        Ok(())
    }

    pub(crate) fn key_error(&self, _ordinal: usize, error: KeyError) -> EngineError {
        match error {
            KeyError::Corrupt | KeyError::Row(_) => self.corrupt_row(),
            other => EngineError::Key(other),
        }
    }

    /// A row that contradicts its own layout.
    pub(crate) fn corrupt_row(&self) -> EngineError {
        let page = nfold_store::PageId {
            space: self.def.space,
            page: self.def.indexes[0].root,
        };
        EngineError::Store(StoreError::Corrupt {
            page,
            lsn: 0,
            what: "a row contradicts its table's definition",
        })
    }

    /// The builder of rows from entries of a secondary index, with the given columns of the table.
    /// `None` if one of them is a string that the key itself holds.
    pub(crate) fn key_rows(&self, ordinal: usize, columns: &[usize]) -> Option<KeyRows> {
        let index = &self.indexes[ordinal];
        let sources: Vec<KeySource> = index.sources.iter().map(|s| s.of_key()).collect();
        let wanted = |place: usize| columns.contains(&index.columns[place]);
        let primary = &self.indexes[0].key;
        KeyRows::new(&index.layout, &sources, &index.key, primary, wanted)
    }

    /// Appends the row image of a secondary entry in the index's own layout. False: the entry is
    /// damaged.
    pub(crate) fn covering_row(
        &self,
        ordinal: usize,
        key: &[u8],
        entry: &SecondaryEntry<'_>,
        scratch: &mut CoveringScratch,
        out: &mut Vec<u8>,
    ) -> bool {
        let index = &self.indexes[ordinal];
        let Some(primary) = entry.primary_key(key) else {
            return false;
        };
        if let Some(rows) = &index.rows
            && rows.append(key, primary, entry.originals(), out)
        {
            return true;
        }
        scratch.own.clear();
        scratch.primary.clear();
        if decode_parts(&index.key, key, &mut scratch.own).is_none() {
            return false;
        }
        if index
            .sources
            .iter()
            .any(|s| matches!(s, Source::PrimaryPart(_)))
            && decode_parts(&self.indexes[0].key, primary, &mut scratch.primary).is_none()
        {
            return false;
        }
        let originals = entry.originals_bytes();
        let values = index.sources.iter().map(|source| match *source {
            Source::Part(n) => scratch.own[n].as_ref(),
            Source::PrimaryPart(n) => scratch.primary[n].as_ref(),
            Source::Original(n) => nth_original(originals, n),
        });
        index.layout.encode(values, out).is_ok()
    }

    /// Adds a clustered row to a batch in the layout of an index. A covering read uses it for older
    /// versions.
    pub(crate) fn project_into(
        &self,
        ordinal: usize,
        row: &[u8],
        point: usize,
        batch: &mut RowBatch,
    ) -> bool {
        let mut whole = true;
        batch.push_with(point, |out| {
            whole = self.project_row(ordinal, row, out);
            whole
        });
        whole
    }

    fn project_row(&self, ordinal: usize, row: &[u8], out: &mut Vec<u8>) -> bool {
        let index = &self.indexes[ordinal];
        let mut damaged = false;
        let values = index.columns.iter().map(|&c| {
            self.layout.get(row, c).unwrap_or_else(|_| {
                damaged = true;
                ValueRef::Null
            })
        });
        index.layout.encode(values, out).is_ok() && !damaged
    }
}

/// Reused by covering reads.
#[derive(Default)]
pub(crate) struct CoveringScratch {
    own: Vec<Value>,
    primary: Vec<Value>,
}

/// Decodes the invertible parts of a key; the others stand as NULL (their bytes come from the
/// originals).
fn decode_parts(layout: &KeyLayout, key: &[u8], out: &mut Vec<Value>) -> Option<()> {
    let mut rest = key;
    for (n, part) in layout.parts().iter().enumerate() {
        if part.is_invertible() {
            out.push(layout.decode_part(n, &mut rest).ok()?);
        } else {
            rest = &key[layout.prefix_bytes(key, n + 1).ok()?..];
            out.push(Value::Null);
        }
    }
    Some(())
}

fn nth_original(bytes: &[u8], n: usize) -> ValueRef<'_> {
    let mut rest = bytes;
    for i in 0..=n {
        let Some((len, tail)) = rest.split_first_chunk::<2>() else {
            return ValueRef::Null;
        };
        let len = u16::from_le_bytes(*len);
        let (this, next) = match len {
            record::NULL_LENGTH => (None, tail),
            _ => match tail.split_at_checked(len.into()) {
                Some((this, next)) => (Some(this), next),
                None => return ValueRef::Null,
            },
        };
        if i == n {
            return this.map_or(ValueRef::Null, ValueRef::Bytes);
        }
        rest = next;
    }
    ValueRef::Null
}

/// The key layout of an index of a definition.
pub(crate) fn key_layout(def: &TableDef, ordinal: usize) -> KeyLayout {
    let index = &def.indexes[ordinal];
    // The key of a full-text index is a word alone.
    let parts = match index.fulltext() {
        Some(_) => index.parts.get(..1).unwrap_or_default(),
        None => &index.parts,
    };
    KeyLayout::new(parts.iter().map(|p| {
        let column = &def.columns[p.column];
        KeyPart {
            ordinal: p.column,
            ty: def.array_of(p.column).unwrap_or(&column.ty).clone(),
            nullable: column.nullable,
            desc: p.desc,
            prefix_len: p.prefix_len.unwrap_or(0).into(),
        }
    }))
}

impl Index {
    /// Whether a row has an entry for each element of an array.
    #[inline]
    pub fn is_multi_valued(&self) -> bool {
        self.array.is_some()
    }

    /// The multi-valued part of the key.
    pub(crate) fn array_part(&self) -> Option<usize> {
        self.array
    }

    fn new(def: &TableDef, ordinal: usize, primary: &KeyLayout) -> Index {
        let index = &def.indexes[ordinal];
        let key = key_layout(def, ordinal);
        let mut columns = Vec::new();
        let mut sources = Vec::new();
        let mut originals = Vec::new();
        let mut add = |column: usize, part: &KeyPart, source: Source| {
            // An entry has one element of an array. A covering read of a full-text index returns
            // the element.
            let element = def.array_of(column).is_some() && index.fulltext().is_none();
            let partial = part.prefix_len != 0 || element;
            if partial || columns.contains(&column) {
                return;
            }
            let source = if part.is_invertible() {
                source
            } else {
                originals.push(column);
                Source::Original(originals.len() - 1)
            };
            columns.push(column);
            sources.push(source);
        };
        for (n, part) in key.parts().iter().enumerate() {
            add(part.ordinal, part, Source::Part(n));
        }
        if ordinal != 0 {
            for (n, part) in primary.parts().iter().enumerate() {
                add(part.ordinal, part, Source::PrimaryPart(n));
            }
        }
        let layout = RowLayout::new(
            0,
            columns.iter().map(|&c| RowColumn {
                ty: def.array_of(c).unwrap_or(&def.columns[c].ty).clone(),
                nullable: def.columns[c].nullable,
            }),
        );
        let of_key: Vec<KeySource> = sources.iter().map(|s| s.of_key()).collect();
        let rows = KeyRows::new(&layout, &of_key, &key, primary, |_| true);
        if ordinal == 0 {
            columns = (0..def.columns.len()).collect();
            originals.clear();
        }
        Index {
            tree: TreeHandle::open(Tree {
                space: def.space,
                root: index.root,
                index_id: index.id.0,
            }),
            key,
            layout,
            columns,
            sources,
            array: def.array_part(index),
            rows,
            originals,
            unique: index.is_unique(),
            usable_from: 0,
        }
    }
}
