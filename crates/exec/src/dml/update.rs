//! UPDATE of one table.

use nfold_plan::query::UpdatePlan;
use nfold_types::SqlError;

use super::assignment::Assigner;
use super::auto_increment::observe_updated;
use super::duplicate::{duplicate_error, fail_or_warn};
use super::pipeline::{ROWS_PER_TICK, RowOutcome, TableChanges};
use super::target_rows::each_target;
use crate::expr::eval::{Scope, StmtState};
use crate::operators::column_values::ColumnValues;
use crate::query::block::BlockExec;
use crate::query::subquery::{BlockSubqueries, CachedSubquery};
use crate::runtime::Runtime;
use crate::runtime::result::{ChangeSummary, StatementResult};

/// Runs an UPDATE. `exec` holds the operators that find its rows; they are created at the first
/// use.
#[inline]
pub(crate) fn update(
    rt: &Runtime<'_>,
    plan: &UpdatePlan,
    exec: &mut Option<Box<BlockExec>>,
) -> Result<StatementResult, SqlError> {
    let table = rt.table(plan.table.id)?;
    let values = ColumnValues::new(rt, plan.ignore, false);
    let assigner = Assigner::new(&table, &plan.assignments, plan.exprs.as_deref());
    let kept = CachedSubquery::of(&plan.source.subqueries);
    let subqueries = BlockSubqueries::new(rt, &plan.source.subqueries, &kept);
    let state = StmtState {
        scope: Scope::Tables(&plan.source),
        ..rt.state(&subqueries)
    };
    let (exprs, foreign) = (plan.exprs.as_ref(), plan.foreign.as_ref());
    let mut changes = TableChanges::new(rt, table.clone(), exprs, foreign, plan.ignore);
    changes.set_view(plan.view.as_ref());
    changes.set_written(plan.assignments.iter().map(|a| a.column));
    changes.found_by(&plan.source, plan.collect);
    let may_defer = plan.source.subqueries.is_empty();
    let moves_counter = assigner.changes_auto_increment();
    let (mut matched, mut changed) = (0u64, 0u64);
    each_target(
        rt,
        &plan.source,
        exec,
        plan.limit.as_ref(),
        plan.collect,
        &mut |old, row_id, n| {
            rt.counts.sent.set(n - 1);
            matched += 1;
            if matched % ROWS_PER_TICK == 0 {
                rt.tick()?;
            }
            // Deferring costs more than it saves for a single row.
            if n == 2 && may_defer {
                changes.defer_updates();
            }
            let image = changes.begin_update(old, row_id);
            let around = [assigner.slot_of(None)];
            if !assigner.apply(rt, &values, &state, old, &around, n, image)? {
                return Ok(());
            }
            match changes.update(rt)? {
                RowOutcome::Done => {
                    changed += 1;
                    if moves_counter {
                        observe_updated(rt, &table, changes.updated())?;
                    }
                    Ok(())
                }
                RowOutcome::Refused(error) => fail_or_warn(rt, plan.ignore, error),
                RowOutcome::Gone => Ok(()),
                RowOutcome::Duplicate { index } => fail_or_warn(
                    rt,
                    plan.ignore,
                    duplicate_error(rt, &table, index, changes.updated()),
                ),
            }
        },
    )?;
    changes.finish_updates(rt)?;
    Ok(StatementResult {
        affected: changed,
        matched,
        summary: Some(ChangeSummary::Update {
            matched,
            changed,
            warnings: rt.warnings.borrow().total(),
        }),
        ..StatementResult::default()
    })
}
