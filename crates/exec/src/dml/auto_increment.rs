//! AUTO_INCREMENT values of one INSERT: the value of the next row, and the values that the client
//! can ask about.

use std::sync::Arc;

use nfold_engine::Table;
use nfold_types::{ColumnType, ErrorCode, SqlError, TypeKind, Value, ValueRef};

use crate::runtime::Runtime;

/// AUTO_INCREMENT values that a statement has reserved from its table. The sizes are MySQL's
/// (`handler::update_auto_increment`, InnoDB's `get_auto_increment`): the first reservation covers
/// all rows of the statement, or one row if their number is unknown. A later one covers the rows
/// that remain of that number, or else twice as many as the one before.
/// Values that remain at the end leave a gap.
#[derive(Default)]
struct Reserved {
    next: u64,
    /// The first value after the reserved ones.
    end: u64,
    /// The number of reservations so far.
    reservations: u32,
    /// The number of rows, and after the first reservation of those still to come; 0: unknown.
    rows: u64,
    /// The reservation that was made for the row at hand.
    fresh: Option<Reservation>,
}

/// One reservation of values.
#[derive(Clone, Copy)]
struct Reservation {
    first: u64,
    count: u64,
    increment: u64,
}

impl Reserved {
    /// Skips values up to `value`, which a row has specified explicitly.
    fn observe(&mut self, value: u64, increment: u64) {
        if value >= self.next && self.next < self.end {
            let steps = (value - self.next) / increment + 1;
            self.next = self.next.saturating_add(steps.saturating_mul(increment));
        }
    }
}

/// The AUTO_INCREMENT state of one INSERT.
pub(super) struct AutoIncrement {
    reserved: Reserved,
    /// The last value of this statement that came from `SET insert_id`.
    forced: Option<u64>,
    /// The first automatic value of an inserted row, which becomes `LAST_INSERT_ID()`.
    pub generated: Option<u64>,
    /// The last value that a row has specified explicitly.
    pub explicit: Option<u64>,
    /// The value that the row at hand has specified explicitly, unless it is negative.
    pub given: Option<u64>,
}

impl AutoIncrement {
    /// `rows`: the number of rows that the statement inserts; 0 if it is unknown.
    pub fn new(rows: u64) -> AutoIncrement {
        AutoIncrement {
            reserved: Reserved {
                rows,
                ..Reserved::default()
            },
            forced: None,
            generated: None,
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
        rt.drive(|_| table.auto_increment_observe(v))
    }

    /// Replaces a NULL, or a zero if `zero_generates`, by the next automatic value, and returns
    /// that value.
    ///
    /// # Errors
    /// 1467 if the column's type has no further value.
    pub fn assign(
        &mut self,
        rt: &Runtime<'_>,
        table: &Arc<Table>,
        ty: &ColumnType,
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
        let v = self.next(rt, table)?;
        // The table gives the last value of the type again, so the error is that of a duplicate
        // key. A statement that needs several values fails at the first one beyond.
        if v == u64::MAX || v > ty.int_range().map_or(u64::MAX, |(_, max)| max as u64) {
            return Err(SqlError::new(ErrorCode::ER_AUTOINC_READ_FAILED, &[]));
        }
        *value = match ty.kind {
            TypeKind::Double => Value::Double(v as f64),
            TypeKind::Float => Value::Float(v as f32),
            _ if ty.unsigned => Value::UInt(v),
            _ => Value::Int(v as i64),
        };
        Ok(Some(v))
    }

    /// Skips reserved values up to `value`.
    pub fn observe(&mut self, rt: &Runtime<'_>, value: u64) {
        self.reserved
            .observe(value, rt.env.auto_increment().0.max(1));
    }

    /// Ends a row. `made` is its automatic value, if it has one. If the row was not inserted, the
    /// next row gets the value.
    pub fn row_done(&mut self, made: Option<u64>, inserted: bool) {
        if self.reserved.reservations > 0 {
            self.reserved.rows = self.reserved.rows.saturating_sub(1);
        }
        match made {
            Some(v) if !inserted && self.forced.is_none() && self.reserved.next > v => {
                self.reserved.next = v;
            }
            Some(v) if inserted && self.generated.is_none() => self.generated = Some(v),
            _ => {}
        }
    }

    /// Ends a row that a constraint refuses. As in MySQL, where constraints are checked before
    /// values are reserved, a reservation for this row is taken back.
    pub fn row_refused(&mut self, table: &Table, made: Option<u64>) {
        let reserved = &mut self.reserved;
        if let Some(fresh) = reserved.fresh.take()
            && table.auto_increment_give_back(fresh.first, fresh.count, fresh.increment)
        {
            (reserved.next, reserved.end) = (0, 0);
            reserved.reservations -= 1;
        } else if made.is_some_and(|v| self.forced.is_none() && reserved.next > v) {
            reserved.next = made.unwrap_or(reserved.next);
        }
    }

    /// The next automatic value: after `SET insert_id` it continues from there, otherwise the table
    /// provides it.
    fn next(&mut self, rt: &Runtime<'_>, table: &Arc<Table>) -> Result<u64, SqlError> {
        let (increment, offset) = rt.env.auto_increment();
        let forced = match self.forced {
            Some(last) => last.checked_add(increment),
            None => rt.env.insert_id(),
        };
        let Some(v) = forced else {
            return self.next_reserved(rt, table, offset, increment.max(1));
        };
        rt.drive(|_| table.auto_increment_observe(v))?;
        self.forced = Some(v);
        Ok(v)
    }

    /// The next of the reserved values.
    fn next_reserved(
        &mut self,
        rt: &Runtime<'_>,
        table: &Arc<Table>,
        offset: u64,
        increment: u64,
    ) -> Result<u64, SqlError> {
        /// The binary logarithm of the largest reservation for an unknown number of rows.
        const MAX_BITS: u32 = 16;
        let reserved = &mut self.reserved;
        if reserved.next >= reserved.end {
            if reserved.rows == 0 {
                reserved.rows = 1 << reserved.reservations.min(MAX_BITS);
            }
            let n = reserved.rows;
            let first = rt.drive(|_| table.auto_increment_reserve(n, offset, increment))?;
            reserved.fresh = Some(Reservation {
                first,
                count: n,
                increment,
            });
            reserved.next = first;
            reserved.end = first.saturating_add(n.saturating_mul(increment));
            reserved.reservations += 1;
        }
        let v = reserved.next;
        reserved.next = v.saturating_add(increment);
        Ok(v)
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
