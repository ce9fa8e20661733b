//! AUTO_INCREMENT values of one INSERT: the value of the next row, and the values that the client
//! can ask about.

use std::sync::Arc;

use nfold_catalog::ColumnDef;
use nfold_engine::{ReservedValues, Table, ValueSeries};
use nfold_types::{CollationId, ErrorCode, SqlError, TypeKind, Value, ValueRef};

use crate::operators::column_values::ColumnValues;
use crate::runtime::Runtime;

/// AUTO_INCREMENT values that a statement has reserved. The sizes are MySQL's
/// (`handler::update_auto_increment`, InnoDB's `get_auto_increment`): the first reservation covers
/// all rows of the statement, or one row if their number is unknown. A later one covers the rows
/// that remain of that number, or else twice as many as the one before. Values that remain at the
/// end leave a gap.
#[derive(Default)]
struct Reserved {
    next: u64,
    /// The first value after the reserved ones.
    end: u64,
    /// The table's counter after the last reservation; 0: there was none. Rows with a value from
    /// here on raise it.
    counter: u64,
    /// The number of reservations so far.
    reservations: u32,
    /// The number of rows, and after the first reservation of those still to come; 0: unknown.
    rows: u64,
    /// The reservation that was made for the row at hand.
    fresh: Option<ReservedValues>,
}

/// The AUTO_INCREMENT state of one INSERT.
pub(super) struct AutoIncrement {
    reserved: Reserved,
    /// The value of `SET insert_id` was used.
    forced: bool,
    /// The first automatic value of an inserted row, which becomes `LAST_INSERT_ID()`.
    pub generated: Option<u64>,
    /// The number of that row.
    generated_row: u64,
    /// The last value that a row has specified explicitly.
    pub explicit: Option<u64>,
    /// The value that the row at hand has specified explicitly, unless it is negative.
    pub given: Option<u64>,
}

/// An automatic value.
struct NextValue {
    value: u64,
    /// The number of values that it is the first one of.
    begins: Option<u64>,
}

/// The values that the session takes.
fn series(rt: &Runtime<'_>) -> ValueSeries {
    let (increment, offset) = rt.env.auto_increment();
    let increment = increment.max(1);
    ValueSeries { offset, increment }
}

fn read_failed() -> SqlError {
    SqlError::new(ErrorCode::ER_AUTOINC_READ_FAILED, &[])
}

impl AutoIncrement {
    /// `rows`: the number of rows that the statement inserts; 0 if it is unknown.
    pub fn new(rows: u64) -> AutoIncrement {
        AutoIncrement {
            reserved: Reserved {
                rows,
                ..Reserved::default()
            },
            forced: false,
            generated: None,
            generated_row: 0,
            explicit: None,
            given: None,
        }
    }

    /// Whether a row without a value would reserve further values from its table.
    pub fn is_used_up(&self) -> bool {
        self.reserved.next >= self.reserved.end
    }

    /// Whether [`assign`](Self::assign) replaces the value of a row.
    pub fn generates(value: &Value, zero_generates: bool) -> bool {
        match value {
            Value::Null => true,
            Value::Int(0) | Value::UInt(0) => zero_generates,
            Value::Double(v) => zero_generates && *v as i128 == 0,
            Value::Float(v) => zero_generates && *v as i128 == 0,
            _ => false,
        }
    }

    /// Later automatic values are above `given`, which a row has specified. As in MySQL, this comes
    /// after the row's insert: the value of a refused row does not count.
    ///
    /// # Errors
    /// The errors of the engine.
    pub fn observe_given(
        &mut self,
        rt: &Runtime<'_>,
        table: &Table,
        given: Option<u64>,
    ) -> Result<(), SqlError> {
        let Some(v) = given else {
            return Ok(());
        };
        self.observe(rt, v);
        self.raise_counter(rt, table, v)
    }

    /// Raises the table's counter above the value of an inserted row, unless the statement's own
    /// reservation has done so.
    fn raise_counter(&self, rt: &Runtime<'_>, table: &Table, value: u64) -> Result<(), SqlError> {
        match value >= self.reserved.counter {
            true => rt.drive(|_| table.auto_increment_observe(value)),
            false => Ok(()),
        }
    }

    /// Replaces a NULL, or a zero if `zero_generates`, by the next automatic value, and returns
    /// that value. `row`: the row's number, for messages.
    ///
    /// # Errors
    /// 1467 if the column's type has no further value; in strict mode 1264 if its first value would
    /// be beyond the type.
    pub fn assign(
        &mut self,
        rt: &Runtime<'_>,
        (table, column): (&Arc<Table>, &ColumnDef),
        (values, row): (&ColumnValues, u64),
        zero_generates: bool,
        value: &mut Value,
    ) -> Result<Option<u64>, SqlError> {
        self.given = None;
        let given = match value {
            Value::Null => 0,
            Value::Int(v) => i128::from(*v),
            Value::UInt(v) => i128::from(*v),
            Value::Double(v) => *v as i128,
            Value::Float(v) => *v as i128,
            _ => return Ok(None),
        };
        self.reserved.fresh = None;
        if !Self::generates(value, zero_generates) {
            if let Ok(v) = u64::try_from(given) {
                self.given = Some(v);
            }
            self.explicit = Some(given as u64);
            return Ok(None);
        }
        let (ty, series) = (&column.ty, series(rt));
        let max = ty.int_range().map_or(u64::MAX, |(_, max)| max as u64);
        let next = self.next(rt, table, (series, max))?;
        let mut v = next.value;
        if v > max && next.begins.is_some() && v < u64::MAX {
            let stored = ValueRef::UInt(v);
            values.store_ref(rt, column, stored, CollationId::BINARY, row)?;
            v = series.last_up_to(max);
        }
        if v > max || v == u64::MAX {
            return Err(read_failed());
        }
        let reserved = &mut self.reserved;
        if let Some(count) = next.begins {
            reserved.end = v.saturating_add(count.saturating_mul(series.increment));
        }
        reserved.next = series.next_after(v);
        *value = match ty.kind {
            TypeKind::Double => Value::Double(v as f64),
            TypeKind::Float => Value::Float(v as f32),
            _ if ty.unsigned => Value::UInt(v),
            _ => Value::Int(v as i64),
        };
        Ok(Some(v))
    }

    /// Skips reserved values up to `value`, which a row has specified explicitly.
    pub fn observe(&mut self, rt: &Runtime<'_>, value: u64) {
        let reserved = &mut self.reserved;
        if value >= reserved.next && reserved.next < reserved.end {
            reserved.next = series(rt).next_after(value);
        }
    }

    /// Ends row number `row`. `made` is its automatic value, if it has one. If the row was not
    /// inserted, the next row gets the value.
    ///
    /// # Errors
    /// The errors of the engine.
    pub fn row_done(
        &mut self,
        (rt, table): (&Runtime<'_>, &Table),
        (row, made): (u64, Option<u64>),
        inserted: bool,
    ) -> Result<(), SqlError> {
        let reserved = &mut self.reserved;
        if reserved.reservations > 0 {
            reserved.rows = reserved.rows.saturating_sub(1);
        }
        let Some(v) = made else {
            return Ok(());
        };
        match inserted {
            true => {
                if self.generated.is_none() {
                    (self.generated, self.generated_row) = (Some(v), row);
                }
                self.raise_counter(rt, table, v)
            }
            false => {
                reserved.next = reserved.next.min(v);
                Ok(())
            }
        }
    }

    /// The statement ends with an error in row number `row`, which had counted as inserted, as the
    /// rows behind it.
    pub fn failed_at(&mut self, row: u64) {
        self.generated = self.generated.filter(|_| self.generated_row < row);
    }

    /// Ends a row that a constraint refuses. As in MySQL, where constraints are checked before
    /// values are reserved, a reservation for this row is taken back.
    pub fn row_refused(&mut self, table: &Table, made: Option<u64>) {
        let reserved = &mut self.reserved;
        if let Some(fresh) = reserved.fresh.take()
            && table.auto_increment_give_back(fresh)
        {
            (reserved.next, reserved.end, reserved.counter) = (0, 0, 0);
            reserved.reservations -= 1;
        } else if let Some(v) = made {
            reserved.next = reserved.next.min(v);
        }
    }

    /// The next automatic value: one that is reserved, or the value of `SET insert_id`, or the
    /// first one of a new reservation. `max`: the greatest value of the column's type.
    fn next(
        &mut self,
        rt: &Runtime<'_>,
        table: &Arc<Table>,
        (series, max): (ValueSeries, u64),
    ) -> Result<NextValue, SqlError> {
        /// The binary logarithm of the largest reservation for an unknown number of rows.
        const MAX_BITS: u32 = 16;
        let reserved = &mut self.reserved;
        if reserved.next < reserved.end {
            return Ok(NextValue {
                value: reserved.next,
                begins: None,
            });
        }
        if let (false, Some(value)) = (self.forced, rt.env.insert_id()) {
            self.forced = true;
            let rows = std::mem::take(&mut reserved.rows);
            reserved.reservations += 1;
            let count = if rows > 0 { rows } else { u64::MAX };
            return Ok(NextValue {
                value,
                begins: Some(count),
            });
        }
        // The counter stays at the greatest value of the type, which an earlier reservation of the
        // statement may have used. As in MySQL a later one continues behind it.
        if reserved.reservations > 0 && reserved.next > max {
            return Err(read_failed());
        }
        if reserved.rows == 0 {
            reserved.rows = 1 << reserved.reservations.min(MAX_BITS);
        }
        let count = reserved.rows;
        let fresh = rt.drive(|_| table.auto_increment_reserve(count, series))?;
        if fresh.first == u64::MAX {
            return Err(read_failed());
        }
        reserved.reservations += 1;
        reserved.counter = fresh.counter;
        reserved.fresh = Some(fresh);
        // As MySQL's server, which looks for the next value of the series from the engine's on.
        let value = series.next_after(fresh.first - 1);
        let begins = Some(count);
        Ok(NextValue { value, begins })
    }
}

/// Raises the table's counter beyond the AUTO_INCREMENT value of an updated row, and returns the
/// value.
pub(super) fn observe_updated(
    rt: &Runtime<'_>,
    table: &Arc<Table>,
    image: &[u8],
) -> Result<Option<u64>, SqlError> {
    let Some(c) = table.def().auto_increment_column() else {
        return Ok(None);
    };
    let v = match table.layout().get(image, c) {
        Ok(ValueRef::Int(v)) => match u64::try_from(v) {
            Ok(v) => v,
            Err(_) => return Ok(Some(v as u64)),
        },
        Ok(ValueRef::UInt(v)) => v,
        _ => return Ok(None),
    };
    rt.drive(|_| table.auto_increment_observe(v))?;
    Ok(Some(v))
}
