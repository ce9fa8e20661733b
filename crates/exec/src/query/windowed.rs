//! Window functions of a block: over the joined rows, or the groups, that pass HAVING.

use nfold_types::SqlError;

use super::block::{RowConsumer, Run};
use crate::expr::eval::{EvalCx, Scope, StmtState};
use crate::operators::window::{Stage, WindowSlots, Windowing};

/// Calls the consumer with each row of `run` and the results of the block's window functions.
#[cold]
#[inline(never)]
pub(crate) fn run(
    run: Run<'_, '_>,
    windowing: &Windowing,
    each: &mut RowConsumer<'_>,
) -> Result<(), SqlError> {
    let scx = run.scx;
    let (rt, block) = (scx.rt, scx.block);
    let below = match run.grouping {
        Some(grouping) => WindowSlots::Groups(&grouping.result),
        None => WindowSlots::Tables(scx.slots),
    };
    let above = StmtState {
        scope: match run.grouping {
            Some(_) => Scope::Groups(block),
            None => Scope::Tables(block),
        },
        ..*scx.state
    };
    let cx = EvalCx {
        rows: &[],
        outer: scx.outer_rows,
        st: &above,
    };
    let mut stage = Stage::new(rt, &cx, &block.windows, windowing, below)?;
    run.plain_rows(&mut |cx, _| {
        stage.add(rt, cx)?;
        Ok(true)
    })?;
    stage.finish(rt, scx.outer_rows, &above, &mut |cx| {
        each(cx, &block.select)
    })
}
