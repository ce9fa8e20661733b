//! The rows of a partition that a function looks at: `start..end`, by the numbers of rows. Both only ever move on.

use std::cmp::Ordering;

use nfold_plan::expr::CmpKind;
use nfold_plan::query::FrameBound;
use nfold_types::SqlError;

use super::pass::{CallShape, PassCx, Peers};
use super::rows::{Cursor, Rows};
use crate::aggregate::owned;
use crate::eval::{Val, compare};

/// A bound that values decide.
#[derive(Default)]
struct Mark {
    at: u64,
    cursor: Cursor,
}

/// See the module.
#[derive(Default)]
pub(super) struct Frame {
    start: Mark,
    end: Mark,
    own: Cursor,
}

/// Where a row is in its partition.
#[derive(Clone, Copy)]
pub(super) struct At {
    pub row: u64,
    pub rows: u64,
    pub peers: Peers,
}

impl Frame {
    /// Another partition begins.
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
            FrameBound::Value { kind, .. } => {
                match self.bound(cx, shape, rows, at.row, shape.start)? {
                    None => at.peers.start,
                    Some(bound) => {
                        let mark = &mut self.start;
                        while mark.at < at.rows
                            && compared(cx, shape, rows, mark, *kind, (&bound, true))?
                                == Ordering::Less
                        {
                            mark.at += 1;
                        }
                        mark.at
                    }
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
            FrameBound::Value { kind, .. } => {
                match self.bound(cx, shape, rows, at.row, shape.end)? {
                    None => at.peers.end,
                    Some(bound) => {
                        let mark = &mut self.end;
                        while mark.at < at.rows
                            && compared(cx, shape, rows, mark, *kind, (&bound, false))?
                                != Ordering::Greater
                        {
                            mark.at += 1;
                        }
                        mark.at
                    }
                }
            }
        };
        Ok((start, end))
    }

    /// The value that bounds the frame of a row; `None` where the order's own value is NULL, which is like its peers only.
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
        Ok(Some(owned(v.to_value())))
    }
}

/// How the row at `mark` is to a bound, in the order of the window: NULL is less than everything, and a bound that there is not, beyond
/// the last date, is more.
fn compared(
    cx: &PassCx<'_, '_>,
    shape: &CallShape<'_>,
    rows: &Rows,
    mark: &mut Mark,
    kind: CmpKind,
    (bound, is_start): (&Val<'_>, bool),
) -> Result<Ordering, SqlError> {
    let image = rows.get(cx.rt, &mut mark.cursor, mark.at)?;
    let key = shape.input(cx, image, shape.key)?;
    let key_order = &cx.pass.order[0];
    let bound_ty = match (&shape.call.frame.start, &shape.call.frame.end) {
        (FrameBound::Value { value, .. }, _) if is_start => &value.ty,
        (_, FrameBound::Value { value, .. }) => &value.ty,
        _ => &key_order.expr.ty,
    };
    let order = match key.is_null() || bound.is_null() {
        true => Ordering::Less,
        false => compare::order(
            &cx.eval,
            kind,
            (&key, &key_order.expr.ty),
            (bound, bound_ty),
        )
        .unwrap_or(Ordering::Equal),
    };
    Ok(match key_order.desc {
        true => order.reverse(),
        false => order,
    })
}
