//! Nested outer joins: outer joins whose inner side has several steps
//! ([`nfold_plan::query::NestedJoinStep`]).
//!
//! # Picture
//! ```text
//!   a LEFT JOIN (b JOIN c), rows of a: 1, 2;  b joins 1;  c joins nothing
//!
//!   a ──▶ b, begins   ──▶ c, ends
//!   1     1 b             (no c)
//!         1 NULL          1 NULL NULL     no match since the last NULL-extended row: returned
//!   2     2 NULL          2 NULL NULL
//! ```

use nfold_plan::query::JoinStep;
use nfold_types::SqlError;

use crate::expr::eval::{EvalCx, RowRef};

fn is_null(rows: &[RowRef<'_>], slot: Option<usize>) -> bool {
    slot.is_some_and(|slot| rows[slot].image.is_none())
}

/// Whether an outer row is the NULL-extended row of a nested outer join that contains the step and
/// began earlier. The step passes such a row on.
#[inline]
pub(super) fn is_null_extended(step: &JoinStep, rows: &[RowRef<'_>]) -> bool {
    let join = step.nested_join.as_ref();
    join.is_some_and(|join| is_null(rows, join.within))
}

/// Whether the step adds a NULL-extended row after the joined rows of each outer row.
#[inline]
pub(super) fn begins(step: &JoinStep) -> bool {
    step.nested_join.as_ref().is_some_and(|join| join.begins)
}

/// Whether a row passes the ends of the nested outer joins that end at this step. `found` says for
/// each of them whether a row has matched since its last NULL-extended row.
#[inline]
pub(super) fn end_nested_joins<'a>(
    cx: &EvalCx<'a>,
    step: &'a JoinStep,
    found: &mut [bool],
) -> Result<bool, SqlError> {
    let Some(join) = &step.nested_join else {
        return Ok(true);
    };
    for (end, found) in join.ends.iter().zip(found) {
        // The row is NULL-extended by an enclosing nested outer join.
        if is_null(cx.rows, end.within) {
            continue;
        }
        if is_null(cx.rows, Some(end.first)) {
            if std::mem::take(found) {
                return Ok(false);
            }
        } else {
            *found = true;
        }
        if !cx.passes(&end.on)? {
            return Ok(false);
        }
    }
    Ok(true)
}
