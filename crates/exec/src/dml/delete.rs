//! DELETE from one table.

use nfold_plan::query::DeletePlan;
use nfold_types::SqlError;

use super::duplicate::fail_or_warn;
use super::pipeline::{ROWS_PER_TICK, RowOutcome, TableChanges};
use super::target_rows::each_target;
use crate::query::block::BlockExec;
use crate::runtime::Runtime;
use crate::runtime::result::StatementResult;

/// Runs a DELETE. `exec` holds the operators that find its rows; they are created at the first use.
#[inline]
pub(crate) fn delete(
    rt: &Runtime<'_>,
    plan: &DeletePlan,
    exec: &mut Option<Box<BlockExec>>,
) -> Result<StatementResult, SqlError> {
    let (table, foreign) = (rt.table(plan.table.id)?, plan.foreign.as_ref());
    let mut changes = TableChanges::new(rt, table, None, foreign, plan.ignore);
    changes.found_by(&plan.source, plan.collect);
    let (mut found, mut deleted) = (0u64, 0u64);
    each_target(
        rt,
        &plan.source,
        exec,
        plan.limit.as_ref(),
        plan.collect,
        &mut |row, row_id, _| {
            found += 1;
            if found % ROWS_PER_TICK == 0 {
                rt.tick()?;
            }
            match changes.delete(rt, row, row_id)? {
                RowOutcome::Refused(error) => return fail_or_warn(rt, plan.ignore, error),
                RowOutcome::Done => deleted += 1,
                RowOutcome::Duplicate { .. } | RowOutcome::Gone => {}
            }
            Ok(())
        },
    )?;
    Ok(StatementResult {
        affected: deleted,
        matched: deleted,
        ..StatementResult::default()
    })
}
