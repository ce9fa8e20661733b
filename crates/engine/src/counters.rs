//! AUTO_INCREMENT values and hidden row ids.
//!
//! # Picture (format v1)
//! ```text
//! user area of the table's space header:   0 u64 AUTO_INCREMENT values below this are used or logged as used
//!                                          8 u64 hidden row ids, likewise
//! ```
//! # Invariants
//! A1. A value is given out only below a bound whose log record precedes the row's; so no crash
//!     brings a value back.
//! A2. Bounds are logged [`BLOCK`] values ahead and brought back to the exact value by a clean
//!     shutdown: a crash skips at most a block.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use nfold_store::{PageId, Store, USER_AREA};

use crate::error::{EngineError, Stop, lift};
use crate::table::Table;

/// Values logged ahead. A crash loses them, so a small type has fewer: at most this part of it.
const BLOCK: u64 = 1024;
const PART_OF_TYPE: u64 = 2048;
const AUTO_INCREMENT: usize = USER_AREA;
const ROW_ID: usize = USER_AREA + 8;
const LOG_BYTES: usize = 256;

/// Which of a table's two counters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counter {
    AutoIncrement,
    RowId,
}

impl Counter {
    fn offset(self) -> usize {
        match self {
            Counter::AutoIncrement => AUTO_INCREMENT,
            Counter::RowId => ROW_ID,
        }
    }
}

impl Table {
    fn counter(&self, which: Counter) -> &AtomicU64 {
        match which {
            Counter::AutoIncrement => &self.auto_increment,
            Counter::RowId => &self.row_id,
        }
    }

    /// The greatest value of the AUTO_INCREMENT column's type. As in InnoDB, values that rows use
    /// raise the counter up to it, and not beyond.
    fn auto_increment_max(&self) -> u64 {
        let column = self.def().columns.iter().find(|c| c.auto_increment);
        let range = column.and_then(|c| c.ty.int_range());
        range.map_or(u64::MAX, |(_, max)| max as u64)
    }

    fn header_page(&self) -> PageId {
        PageId {
            space: self.def().space,
            page: 0,
        }
    }

    /// Reads the bounds from the space header, once.
    fn load_counters(&self, store: &Store) -> Result<(), Stop> {
        if self.auto_increment.load(Relaxed) != 0 {
            return Ok(());
        }
        let (auto, row) = loop {
            let page = store.read(self.header_page()).map_err(lift)?;
            let found = (page.u64(AUTO_INCREMENT).max(1), page.u64(ROW_ID).max(1));
            if page.validate() {
                break found;
            }
        };
        let mut reserved = self.reserved.lock();
        if !reserved.loaded {
            (reserved.auto_increment, reserved.row_id, reserved.loaded) = (auto, row, true);
            self.row_id.store(row, Relaxed);
            self.auto_increment.store(auto, Relaxed);
        }
        Ok(())
    }

    /// Logs that values below `bound` may be used (A1).
    fn log_bound(&self, store: &Store, which: Counter, bound: u64) -> Result<(), Stop> {
        let mut mtr = store.mtr();
        mtr.reserve(LOG_BYTES, self.def().space, 0).map_err(lift)?;
        let page = mtr.latch(self.header_page()).map_err(lift)?;
        if mtr.u64(page, which.offset()) < bound {
            mtr.write(page, which.offset(), &bound.to_le_bytes());
        }
        mtr.commit();
        let mut reserved = self.reserved.lock();
        let known = match which {
            Counter::AutoIncrement => &mut reserved.auto_increment,
            Counter::RowId => &mut reserved.row_id,
        };
        *known = (*known).max(bound);
        Ok(())
    }

    fn bound(&self, which: Counter) -> u64 {
        let reserved = self.reserved.lock();
        match which {
            Counter::AutoIncrement => reserved.auto_increment,
            Counter::RowId => reserved.row_id,
        }
    }

    /// Makes sure that every value below `end` is logged as used.
    fn cover(&self, store: &Store, which: Counter, end: u64) -> Result<(), Stop> {
        if end > self.bound(which) {
            let max = match which {
                Counter::AutoIncrement => self.auto_increment_max(),
                Counter::RowId => u64::MAX,
            };
            let ahead = BLOCK.min(max / PART_OF_TYPE);
            let bound = end.saturating_add(ahead).min(max).max(end);
            self.log_bound(store, which, bound)?;
        }
        Ok(())
    }

    /// Takes `n` values for rows that name none: the first one; the others follow at `increment`.
    /// `offset` and `increment` as `auto_increment_offset` and `auto_increment_increment`.
    pub fn auto_increment_reserve(&self, n: u64, offset: u64, increment: u64) -> Result<u64, Stop> {
        let store = self.store();
        self.load_counters(store)?;
        let increment = increment.max(1);
        let first_from = |next: u64| {
            let base = if offset > increment { 1 } else { offset.max(1) };
            if next <= base {
                base
            } else {
                base.saturating_add((next - base).div_ceil(increment).saturating_mul(increment))
            }
        };
        let end_of = |first: u64| {
            first
                .saturating_add((n.max(1) - 1).saturating_mul(increment))
                .saturating_add(1)
        };
        let max = self.auto_increment_max();
        let mut next = self.auto_increment.load(Relaxed);
        loop {
            let end = end_of(first_from(next)).min(max).max(next);
            self.cover(store, Counter::AutoIncrement, end)?;
            match self
                .auto_increment
                .compare_exchange_weak(next, end, Relaxed, Relaxed)
            {
                Ok(_) => return Ok(first_from(next)),
                Err(now) => next = now,
            }
        }
    }

    /// Takes back a reservation of `n` values from `first` on, none of which a row uses. Returns
    /// false, and changes nothing, if other values were reserved since.
    pub fn auto_increment_give_back(&self, first: u64, n: u64, increment: u64) -> bool {
        let end = first
            .saturating_add((n.max(1) - 1).saturating_mul(increment.max(1)))
            .saturating_add(1)
            .min(self.auto_increment_max());
        let counter = &self.auto_increment;
        counter
            .compare_exchange(end, first, Relaxed, Relaxed)
            .is_ok()
    }

    /// A row came with `value` of its own: later automatic values are above it.
    pub fn auto_increment_observe(&self, value: u64) -> Result<(), Stop> {
        // `auto_increment_begin` may set a value beyond the type, which no row gets.
        self.auto_increment_begin(value.saturating_add(1).min(self.auto_increment_max()))
    }

    /// Raises the value that the next row without one gets to `end`.
    pub(crate) fn auto_increment_begin(&self, end: u64) -> Result<(), Stop> {
        let store = self.store();
        self.load_counters(store)?;
        if end > self.auto_increment.load(Relaxed) {
            self.cover(store, Counter::AutoIncrement, end)?;
            self.auto_increment.fetch_max(end, Relaxed);
        }
        Ok(())
    }

    /// The value that the next row without one gets (for SHOW CREATE TABLE and SHOW TABLE STATUS).
    pub fn auto_increment_next(&self) -> Result<u64, Stop> {
        self.load_counters(self.store())?;
        Ok(self.auto_increment.load(Relaxed))
    }

    /// A hidden row id for a new row.
    pub(crate) fn next_row_id(&self) -> Result<u64, Stop> {
        let store = self.store();
        self.load_counters(store)?;
        let mut id = self.row_id.load(Relaxed);
        loop {
            self.cover(store, Counter::RowId, id + 1)?;
            match self
                .row_id
                .compare_exchange_weak(id, id + 1, Relaxed, Relaxed)
            {
                Ok(_) => return Ok(id),
                Err(now) => id = now,
            }
        }
    }

    /// Clean shutdown: the bounds become exact (A2). Blocks.
    pub(crate) fn save_counters(&self, store: &Store) -> Result<(), EngineError> {
        if self.auto_increment.load(Relaxed) == 0 {
            return Ok(());
        }
        crate::stats::block(|| -> Result<(), Stop> {
            let mut mtr = store.mtr();
            mtr.reserve(LOG_BYTES, self.def().space, 0).map_err(lift)?;
            let page = mtr.latch(self.header_page()).map_err(lift)?;
            for which in [Counter::AutoIncrement, Counter::RowId] {
                mtr.write(
                    page,
                    which.offset(),
                    &self.counter(which).load(Relaxed).to_le_bytes(),
                );
            }
            mtr.commit();
            Ok(())
        })
    }
}
