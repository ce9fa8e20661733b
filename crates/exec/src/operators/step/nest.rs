//! Nests: inner sides of outer joins that are several steps ([`nfold_plan::query::NestStep`]).
//!
//! # Picture
//! ```text
//!   a LEFT JOIN (b JOIN c), rows of a: 1, 2;  b joins 1;  c joins nothing
//!
//!   a ──▶ b, begins   ──▶ c, ends
//!   1     1 b             (no c)
//!         1 NULL          1 NULL NULL     no match since the nest was last left: kept
//!   2     2 NULL          2 NULL NULL
//! ```

use nfold_plan::query::JoinStep;
use nfold_types::SqlError;

use crate::expr::eval::{EvalCx, RowRef};

fn is_null(rows: &[RowRef<'_>], slot: Option<usize>) -> bool {
    slot.is_some_and(|slot| rows[slot].image.is_none())
}

/// Whether an outer row is one with NULLs for a nest that the step is in the middle of.
#[inline]
pub(super) fn goes_through(step: &JoinStep, rows: &[RowRef<'_>]) -> bool {
    let nest = step.nest.as_ref();
    nest.is_some_and(|nest| is_null(rows, nest.within))
}

/// Whether a row with NULLs follows those that join an outer row.
#[inline]
pub(super) fn begins(step: &JoinStep) -> bool {
    step.nest.as_ref().is_some_and(|nest| nest.begins)
}

/// Whether a row goes on behind the nests that end with the step. `found`: of each, whether a row
/// has matched since it was last left.
#[inline]
pub(super) fn leave<'a>(
    cx: &EvalCx<'a>,
    step: &'a JoinStep,
    found: &mut [bool],
) -> Result<bool, SqlError> {
    let Some(nest) = &step.nest else {
        return Ok(true);
    };
    for (end, found) in nest.ends.iter().zip(found) {
        // Of a nest around this one.
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
