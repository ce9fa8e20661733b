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

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use nfold_catalog::TableDef;
use nfold_store::{PageId, Store, USER_AREA};

use crate::error::{EngineError, Stop, lift};
use crate::table::Table;

/// Values logged ahead. A crash loses them, so a small type has fewer: at most this part of it.
const BLOCK: u64 = 1024;
const PART_OF_TYPE: u64 = 2048;
const AUTO_INCREMENT: usize = USER_AREA;
const ROW_ID: usize = USER_AREA + 8;
const LOG_BYTES: usize = 256;

/// The AUTO_INCREMENT values that a session takes: those at `offset` (`auto_increment_offset`) and
/// every `increment` (`auto_increment_increment`, at least 1) from there on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueSeries {
    /// At most 65535.
    pub offset: u64,
    /// At least 1, at most 65535.
    pub increment: u64,
}

impl ValueSeries {
    /// The series of a table before the first reservation.
    pub const EVERY_NUMBER: ValueSeries = ValueSeries {
        offset: 0,
        increment: 1,
    };

    /// The least value of the series above `v`; `u64::MAX` if there is none. As in MySQL
    /// (`compute_next_insert_id`) an increment of 1 ignores the offset, and numbers wrap around
    /// below an offset above the increment: the values there are a series of their own.
    pub fn next_after(self, v: u64) -> u64 {
        let next = match self.increment {
            1 => v.wrapping_add(1),
            increment => {
                let steps = v.wrapping_add(increment).wrapping_sub(self.offset) / increment;
                steps.wrapping_mul(increment).wrapping_add(self.offset)
            }
        };
        if next > v { next } else { u64::MAX }
    }

    /// The greatest value of the series up to `v`; `v` if all are above it (MySQL's
    /// `prev_insert_id`).
    pub fn last_up_to(self, v: u64) -> u64 {
        match v.checked_sub(self.offset) {
            Some(above) if self.increment > 1 => {
                above / self.increment * self.increment + self.offset
            }
            _ => v,
        }
    }

    /// The counter of a table behind `count` values from `first` on, in a column whose greatest
    /// value is `max`. InnoDB's formula (`innobase_next_autoinc`): it ignores an offset above the
    /// reserved range, and the counter becomes `max` already where the next value and the offset
    /// have no room.
    pub fn counter_behind(self, first: u64, count: u64, max: u64) -> u64 {
        let range = count.saturating_mul(self.increment);
        let offset = if self.offset > range { 0 } else { self.offset };
        let end = first.saturating_add(range);
        if range >= max || offset > max || end >= max - offset {
            return max;
        }
        let steps = first.abs_diff(offset) / self.increment;
        (steps * self.increment)
            .saturating_add(range + offset)
            .min(max)
    }
}

/// AUTO_INCREMENT values that a statement has taken from its table.
#[derive(Clone, Copy, Debug)]
pub struct ReservedValues {
    /// The first value; `u64::MAX`: the type has no further one.
    pub first: u64,
    /// The table's counter before.
    before: u64,
    /// The table's counter behind the values.
    pub counter: u64,
}

/// A table's AUTO_INCREMENT counter.
pub(crate) struct ValueCounter {
    /// The greatest value of the column's type. As in InnoDB, values that rows use raise the
    /// counter up to it, and not beyond.
    max: u64,
    /// The least number that the next automatic value may have; 0: not known yet.
    next: AtomicU64,
    /// The series of the last reservation, increment and offset as 16 bits each; 0: there was none.
    series: AtomicU32,
}

impl ValueCounter {
    pub fn new(def: &TableDef) -> ValueCounter {
        let column = def.columns.iter().find(|c| c.auto_increment);
        let range = column.and_then(|c| c.ty.int_range());
        ValueCounter {
            max: range.map_or(u64::MAX, |(_, max)| max as u64),
            next: AtomicU64::new(0),
            series: AtomicU32::new(0),
        }
    }

    /// Continues from the counter of an older version of the table.
    pub fn continue_from(&self, old: &ValueCounter) {
        self.next.store(old.next.load(Relaxed), Relaxed);
    }

    fn series(&self) -> ValueSeries {
        let packed = u64::from(self.series.load(Relaxed));
        match packed {
            0 => ValueSeries::EVERY_NUMBER,
            _ => ValueSeries {
                offset: packed & 0xFFFF,
                increment: packed >> 16,
            },
        }
    }

    fn set_series(&self, series: ValueSeries) {
        let packed = (series.increment << 16 | series.offset) as u32;
        if self.series.load(Relaxed) != packed {
            self.series.store(packed, Relaxed);
        }
    }
}

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
            Counter::AutoIncrement => &self.auto_increment.next,
            Counter::RowId => &self.row_id,
        }
    }

    fn header_page(&self) -> PageId {
        PageId {
            space: self.def().space,
            page: 0,
        }
    }

    /// Reads the bounds from the space header, once.
    fn load_counters(&self, store: &Store) -> Result<(), Stop> {
        if self.auto_increment.next.load(Relaxed) != 0 {
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
            self.auto_increment.next.store(auto, Relaxed);
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
                Counter::AutoIncrement => self.auto_increment.max,
                Counter::RowId => u64::MAX,
            };
            let ahead = BLOCK.min(max / PART_OF_TYPE);
            let bound = end.saturating_add(ahead).min(max).max(end);
            self.log_bound(store, which, bound)?;
        }
        Ok(())
    }

    /// Takes `count` values for rows that name none. The others follow the first one in `series`.
    /// As in InnoDB, the series stays that of the table: values that rows name raise the counter
    /// by it ([`auto_increment_observe`](Self::auto_increment_observe)).
    pub fn auto_increment_reserve(
        &self,
        count: u64,
        series: ValueSeries,
    ) -> Result<ReservedValues, Stop> {
        let store = self.store();
        self.load_counters(store)?;
        let (count, max) = (count.max(1), self.auto_increment.max);
        let counter = &self.auto_increment.next;
        let mut before = counter.load(Relaxed);
        loop {
            if before > max {
                return Ok(ReservedValues {
                    first: u64::MAX,
                    before,
                    counter: before,
                });
            }
            let first = series.next_after(before - 1);
            let end = series.counter_behind(first, count, max).max(before);
            // With an offset above the increment, the last value may lie above the counter.
            let range = (count - 1).saturating_mul(series.increment);
            let used = first.saturating_add(range).saturating_add(1);
            self.cover(store, Counter::AutoIncrement, end.max(used.min(max)))?;
            match counter.compare_exchange_weak(before, end, Relaxed, Relaxed) {
                Ok(_) => {
                    self.auto_increment.set_series(series);
                    return Ok(ReservedValues {
                        first,
                        before,
                        counter: end,
                    });
                }
                Err(now) => before = now,
            }
        }
    }

    /// Takes back a reservation, none of whose values a row uses. Returns false, and changes
    /// nothing, if the counter has moved since.
    pub fn auto_increment_give_back(&self, reserved: ReservedValues) -> bool {
        let counter = &self.auto_increment.next;
        counter
            .compare_exchange(reserved.counter, reserved.before, Relaxed, Relaxed)
            .is_ok()
    }

    /// A row came with `value` of its own: later automatic values are above it.
    pub fn auto_increment_observe(&self, value: u64) -> Result<(), Stop> {
        let max = self.auto_increment.max;
        if value > max {
            return Ok(());
        }
        let series = self.auto_increment.series();
        self.auto_increment_begin(series.counter_behind(value, 1, max))
    }

    /// Raises the value that the next row without one gets to `end`.
    pub(crate) fn auto_increment_begin(&self, end: u64) -> Result<(), Stop> {
        let store = self.store();
        self.load_counters(store)?;
        if end > self.auto_increment.next.load(Relaxed) {
            self.cover(store, Counter::AutoIncrement, end)?;
            self.auto_increment.next.fetch_max(end, Relaxed);
        }
        Ok(())
    }

    /// Sets the value that the next row without one gets: `first`, or the one behind `used`, the
    /// greatest of the rows, if that is higher. No other session uses the table.
    pub(crate) fn auto_increment_reset(&self, first: u64, used: u64) -> Result<(), Stop> {
        let store = self.store();
        self.load_counters(store)?;
        let behind = ValueSeries::EVERY_NUMBER.counter_behind(used, 1, self.auto_increment.max);
        let end = behind.max(first);
        let mut mtr = store.mtr();
        mtr.reserve(LOG_BYTES, self.def().space, 0).map_err(lift)?;
        let page = mtr.latch(self.header_page()).map_err(lift)?;
        mtr.write(page, AUTO_INCREMENT, &end.to_le_bytes());
        mtr.commit();
        self.reserved.lock().auto_increment = end;
        self.auto_increment.next.store(end, Relaxed);
        Ok(())
    }

    /// The value that the next row without one gets (for SHOW CREATE TABLE and SHOW TABLE STATUS).
    pub fn auto_increment_next(&self) -> Result<u64, Stop> {
        self.load_counters(self.store())?;
        Ok(self.auto_increment.next.load(Relaxed))
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
        if self.auto_increment.next.load(Relaxed) == 0 {
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
