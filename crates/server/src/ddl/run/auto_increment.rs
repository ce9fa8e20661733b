//! The values of a column that ALTER TABLE makes AUTO_INCREMENT, for the rows that are copied.

use nfold_catalog::{ColumnDef, TableDef};
use nfold_engine::ValueSeries;
use nfold_types::{ErrorCode, SqlError, Value};

use crate::ddl::bind::alter::Source;

/// Fills in the values that rows of the copy lack. As in MySQL, where a copy is an INSERT of as
/// many rows as the statistics say: the first row without a value reserves values for all rows, and
/// those that remain leave a gap. A column that MySQL adds in place takes one value after the
/// other.
pub(super) struct NewValues {
    /// Number of the column.
    pub column: usize,
    series: ValueSeries,
    /// The greatest value of the column's type.
    max: u64,
    /// MySQL would add the column in place.
    inplace: bool,
    /// A zero stays as it is.
    zero_is_a_value: bool,
    /// The next value, if it is below `end`.
    next: u64,
    end: u64,
    /// The table's counter.
    counter: u64,
    /// The number of reservations so far.
    reservations: u32,
    /// The number of rows, and after the first reservation of those still to come.
    rows: u64,
}

/// The session's settings for automatic values.
#[derive(Clone, Copy)]
pub(super) struct NewValueOptions {
    pub series: ValueSeries,
    pub zero_is_a_value: bool,
    /// MySQL would change the table in place.
    pub inplace: bool,
    /// The table option AUTO_INCREMENT; 0: there is none.
    pub first: u64,
    /// The number of rows as the statistics say.
    pub rows: u64,
}

impl NewValues {
    /// For a copy of `old`. `None` if no column of the new table becomes AUTO_INCREMENT.
    pub fn of(
        columns: &[ColumnDef],
        sources: &[Source],
        old: &TableDef,
        options: NewValueOptions,
    ) -> Option<NewValues> {
        let column = columns.iter().position(|c| c.auto_increment)?;
        let added = match sources[column] {
            Source::Old(n) if old.columns[n].auto_increment => return None,
            Source::Old(_) => false,
            Source::Default => true,
        };
        let NewValueOptions {
            series,
            first,
            rows,
            ..
        } = options;
        let range = columns[column].ty.int_range();
        let max = range.map_or(u64::MAX, |(_, max)| max as u64);
        let inplace = added && options.inplace;
        let stepped = series.increment > 1 || series.offset > 1;
        Some(NewValues {
            column,
            series,
            max,
            inplace,
            zero_is_a_value: options.zero_is_a_value && !added,
            next: match stepped {
                true => series.counter_behind(first, 1, max),
                false => first.max(1),
            },
            end: if inplace { u64::MAX } else { 0 },
            counter: first.max(1),
            reservations: 0,
            rows,
        })
    }

    /// The value of a row that has `value`, or none.
    ///
    /// # Errors
    /// 1467 if the type has no further value.
    pub fn value(&mut self, value: Option<Value>) -> Result<Value, SqlError> {
        let given = match value {
            None | Some(Value::Null) => None,
            Some(Value::Int(0) | Value::UInt(0)) if !self.zero_is_a_value => None,
            Some(value) => Some(value),
        };
        let value = match given {
            Some(value) => {
                self.observe(&value);
                value
            }
            None => Value::UInt(self.generated()?),
        };
        if self.reservations > 0 {
            self.rows = self.rows.saturating_sub(1);
        }
        Ok(value)
    }

    fn generated(&mut self) -> Result<u64, SqlError> {
        if self.next >= self.end && !self.inplace {
            self.reserve();
        }
        let v = self.next;
        if v > self.max || v == u64::MAX {
            return Err(SqlError::new(ErrorCode::ER_AUTOINC_READ_FAILED, &[]));
        }
        let behind = self.series.counter_behind(v, 1, self.max);
        self.next = match self.inplace {
            true if v == self.max => u64::MAX,
            true => behind,
            false => self.series.next_after(v),
        };
        if self.inplace || v >= self.counter {
            self.counter = self.counter.max(behind);
        }
        Ok(v)
    }

    fn reserve(&mut self) {
        /// The binary logarithm of the largest reservation for an unknown number of rows.
        const MAX_BITS: u32 = 16;
        if self.rows == 0 {
            self.rows = 1 << self.reservations.min(MAX_BITS);
        }
        self.reservations += 1;
        self.next = self.series.next_after(self.counter - 1);
        self.end = (self.next).saturating_add(self.series.increment.saturating_mul(self.rows));
        let behind = self.series.counter_behind(self.next, self.rows, self.max);
        self.counter = self.counter.max(behind);
    }

    /// A row has a value of its own.
    fn observe(&mut self, value: &Value) {
        let v = match value {
            Value::Int(v) => u64::try_from(*v).unwrap_or(0),
            Value::UInt(v) => *v,
            _ => 0,
        };
        if v == 0 || v > self.max {
            return;
        }
        if v >= self.next && self.next < self.end {
            self.next = self.series.next_after(v);
        }
        let series = match self.reservations {
            0 => ValueSeries::EVERY_NUMBER,
            _ => self.series,
        };
        self.counter = self.counter.max(series.counter_behind(v, 1, self.max));
    }

    /// The table's counter after the rows so far.
    pub fn counter(&self) -> u64 {
        self.counter
    }
}
