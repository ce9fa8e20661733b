//! Window frames: the rows `start..end` of a partition, by number. For consecutive rows, both
//! bounds only move forwards.

use std::cmp::Ordering;

use nfold_plan::SqlMode;
use nfold_plan::expr::{CmpKind, Expr};
use nfold_plan::query::FrameBound;
use nfold_types::{Date, SqlError};

use super::pass::{CallShape, PassCx, Peers};
use super::rows::{Cursor, Rows};
use crate::expr::eval::{EvalCx, Val, compare, convert};
use crate::operators::aggregate::owned;

/// A frame bound that depends on values.
#[derive(Default)]
struct ValueBound {
    at: u64,
    cursor: Cursor,
}

/// The frame of one call; see the module.
#[derive(Default)]
pub(super) struct Frame {
    start: ValueBound,
    end: ValueBound,
    own: Cursor,
}

/// The position of a row in its partition.
#[derive(Clone, Copy)]
pub(super) struct At {
    pub row: u64,
    pub rows: u64,
    pub peers: Peers,
}

impl Frame {
    /// Starts the next partition.
    pub fn reset(&mut self) {
        (self.start.at, self.end.at) = (0, 0);
        for cursor in [&mut self.start.cursor, &mut self.end.cursor, &mut self.own] {
            cursor.reset();
        }
    }

    /// The frame of a row.
    pub fn of(
        &mut self,
        cx: &PassCx<'_, '_>,
        shape: &CallShape<'_>,
        rows: &Rows,
        at: At,
    ) -> Result<(u64, u64), SqlError> {
        let frame = &shape.call.frame;
        let start = match &frame.start {
            FrameBound::Unbounded => 0,
            FrameBound::CurrentRow => at.row,
            FrameBound::Peers => at.peers.start,
            FrameBound::Rows { following, .. } => match following {
                false => at.row.saturating_sub(shape.start_rows),
                true => at.row.saturating_add(shape.start_rows).min(at.rows),
            },
            FrameBound::Value { value, kind, .. } => {
                let to = (value, *kind, Ordering::Less);
                match self.bound(cx, shape, rows, at.row, shape.start)? {
                    None => at.peers.start,
                    Some(bound) => self.start.move_to(cx, shape, rows, &bound, to)?,
                }
            }
        };
        let end = match &frame.end {
            FrameBound::Unbounded => at.rows,
            FrameBound::CurrentRow => at.row + 1,
            FrameBound::Peers => at.peers.end,
            FrameBound::Rows { following, .. } => match following {
                false => (at.row + 1).saturating_sub(shape.end_rows),
                true => (at.row + 1).saturating_add(shape.end_rows).min(at.rows),
            },
            FrameBound::Value { value, kind, .. } => {
                let to = (value, *kind, Ordering::Equal);
                match self.bound(cx, shape, rows, at.row, shape.end)? {
                    None => at.peers.end,
                    Some(bound) => self.end.move_to(cx, shape, rows, &bound, to)?,
                }
            }
        };
        Ok((start, end))
    }

    /// The value that bounds the frame of a row. `None` if the row's own order value is NULL: then
    /// the frame is its peers.
    fn bound(
        &mut self,
        cx: &PassCx<'_, '_>,
        shape: &CallShape<'_>,
        rows: &Rows,
        row: u64,
        input: usize,
    ) -> Result<Option<Val<'static>>, SqlError> {
        let image = rows.get(cx.rt, &mut self.own, row)?;
        if shape.input(cx, image, shape.key)?.is_null() {
            return Ok(None);
        }
        let v = shape.input(cx, image, input)?;
        if v.is_null() {
            let key = shape.input(cx, image, shape.key)?;
            warn_zero_date(&cx.eval, &key, &cx.pass.order[0].expr);
        }
        Ok(Some(owned(v.to_value())))
    }
}

impl ValueBound {
    /// Moves past the rows that are before the bound, or (`Equal`) not after it. Returns the first
    /// other row.
    fn move_to(
        &mut self,
        cx: &PassCx<'_, '_>,
        shape: &CallShape<'_>,
        rows: &Rows,
        bound: &Val<'_>,
        (value, kind, most): (&Expr, CmpKind, Ordering),
    ) -> Result<u64, SqlError> {
        while self.at < rows.len() && self.compared(cx, shape, rows, (bound, value), kind)? <= most
        {
            self.at += 1;
        }
        Ok(self.at)
    }

    /// Compares a row with a bound in the order of the window. NULL sorts first. A bound that does
    /// not exist, beyond the last date, sorts last.
    fn compared(
        &mut self,
        cx: &PassCx<'_, '_>,
        shape: &CallShape<'_>,
        rows: &Rows,
        (bound, value): (&Val<'_>, &Expr),
        kind: CmpKind,
    ) -> Result<Ordering, SqlError> {
        let image = rows.get(cx.rt, &mut self.cursor, self.at)?;
        let key = shape.input(cx, image, shape.key)?;
        let member = &cx.pass.order[0];
        let sides = ((&key, &member.expr.ty), (bound, &value.ty));
        let order = match key.is_null() || bound.is_null() {
            true => Ordering::Less,
            false => compare::order(&cx.eval, kind, sides.0, sides.1).unwrap_or(Ordering::Equal),
        };
        Ok(match member.desc {
            true => order.reverse(),
            false => order,
        })
    }
}

/// Warning 1292 for an order value that is the zero date, to which no interval can be added. As in
/// MySQL, a DATE warns only where the SQL mode forbids that date.
#[cold]
fn warn_zero_date(cx: &EvalCx<'_>, key: &Val<'_>, e: &Expr) {
    let (zero, kind) = match key {
        Val::Date(d) => {
            let forbidden = cx.env().sql_mode().has(SqlMode::NO_ZERO_DATE);
            (*d == Date::ZERO && forbidden, "date")
        }
        Val::DateTime(d) => (d.date() == Date::ZERO, "datetime"),
        _ => return,
    };
    if zero && let Some(text) = convert::to_bytes(cx, key.clone(), &e.ty) {
        convert::warn_no_value(cx, kind, &text, &e.ty);
    }
}
