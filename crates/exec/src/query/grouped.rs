//! Blocks with aggregates: counts rows, sums them by kernels, or evaluates and adds them one by
//! one.

use nfold_plan::expr::{Class, Expr, ExprKind};
use nfold_plan::query::{AggFunc, Aggregate, Block, GroupPlan};
use nfold_types::SqlError;

use super::block::{Each, Run};
use crate::expr::eval::{EvalCx, RowRef, Scope, StmtState};
use crate::expr::kernels::NumberKernel;
use crate::operators::aggregate::Acc;
use crate::operators::group;
use crate::operators::group::{GroupedImages, Grouper, Grouping, ImageInput, PlainColumn};
use crate::operators::step::{COMPILE_AFTER, Slot, Source};

/// The grouping of the block's rows.
pub(super) fn grouping(block: &Block, slots: &[Slot], plan: &GroupPlan) -> Grouping {
    let inputs = image_inputs(block, slots, plan);
    let grouped = grouped_images(block, slots, plan);
    Grouping::new(plan, inputs, grouped)
}

impl Run<'_, '_> {
    /// The kernels for [`Grouping::inputs`], by aggregate; empty if it needs none. `None`: row
    /// images are not sufficient.
    fn number_kernels(
        &self,
        plan: &GroupPlan,
        grouping: &Grouping,
    ) -> Option<Vec<Option<NumberKernel>>> {
        let inputs = match &grouping.grouped {
            Some(grouped) => &grouped.inputs,
            None => grouping.inputs.as_ref()?,
        };
        let sums = |agg: &Aggregate| {
            matches!(agg.func, AggFunc::Sum | AggFunc::Avg)
                && agg.args.iter().all(|e| e.ty.class() == Class::Decimal)
        };
        if !plan.aggregates.iter().any(sums) {
            return Some(Vec::new());
        }
        let (scx, table) = (self.scx, self.scx.block.joins.first()?.table);
        let rows = scx.empty_rows();
        let cx = scx.eval(&rows);
        let kernel = |(input, agg): (&ImageInput, &Aggregate)| {
            let slot = &scx.slots[0];
            let ordinal = |column| slot.ordinal(column);
            let compile = |e| NumberKernel::compile(&cx, slot.images(table, &ordinal), e);
            let kernel = agg.args.first().filter(|_| sums(agg)).and_then(compile);
            let needed = grouping.grouped.is_none() && matches!(input, ImageInput::Number);
            let missing = kernel.is_none() && needed;
            (!missing).then_some(kernel)
        };
        inputs.iter().zip(&plan.aggregates).map(kernel).collect()
    }

    /// Groups the rows of one table by their images. The evaluator adds the first rows, so that a
    /// short statement compiles nothing.
    fn grouped_by_image(
        &mut self,
        plan: &GroupPlan,
        (grouping, grouper): (&Grouping, &mut Grouper<'_>),
        emit: &mut dyn FnMut(&[u8]) -> Result<bool, SqlError>,
    ) -> Result<(), SqlError> {
        let scx = self.scx;
        let (slot, table) = (&scx.slots[0], scx.block.joins[0].table);
        let layout = slot.layout();
        let mut kernels = None;
        let mut evaluated = 0;
        while scx.next(self.steps, 0, self.batch)? {
            if evaluated >= COMPILE_AFTER && kernels.is_none() {
                kernels = self.number_kernels(plan, grouping);
            }
            for image in self.batch.images() {
                let mut rows = scx.empty_rows();
                rows[table] = slot.row(Some(image));
                let cx = scx.eval(&rows);
                if let Some(kernels) = &kernels {
                    let evaluate = |n: usize, acc: &mut Acc| {
                        group::add_evaluated(&cx, (plan, grouping), n, acc)
                    };
                    if grouper.add_image(layout, kernels, image, evaluate)? {
                        continue;
                    }
                }
                evaluated += 1;
                grouper.add(scx.rt, &cx, plan, emit)?;
                grouper.remember();
            }
        }
        grouper.add_parts(kernels.as_deref().unwrap_or_default())
    }

    pub(super) fn grouped(
        mut self,
        plan: &GroupPlan,
        grouping: &Grouping,
        each: &mut Each<'_>,
    ) -> Result<(), SqlError> {
        let scx = self.scx;
        let (rt, block) = (scx.rt, scx.block);
        let result = &grouping.result;
        let above = StmtState {
            scope: Scope::Groups(block),
            ..*scx.state
        };
        let mut emit = |image: &[u8]| -> Result<bool, SqlError> {
            let rows = [RowRef {
                layout: result,
                image: Some(image),
                places: None,
            }];
            let cx = EvalCx {
                rows: &rows,
                outer: scx.outer_rows,
                st: &above,
            };
            if !cx.passes(&block.having)? {
                return Ok(true);
            }
            each(&cx, &block.select)
        };
        if plan.rollup {
            return self.rolled_up(plan, grouping, &mut emit);
        }
        let mut grouper = Grouper::new(plan, grouping, rt.env.work_memory());
        let mut go_on = true;
        if grouper.counts_only()
            && !self.nothing
            && !self.steps.is_empty()
            && scx.streamed().is_none()
        {
            let last = self.steps.len() - 1;
            while scx.next(self.steps, last, self.batch)? {
                grouper.count_rows(self.batch.len() as u64);
            }
        } else if grouping.grouped.is_some() && !self.nothing {
            self.grouped_by_image(plan, (grouping, &mut grouper), &mut emit)?;
        } else if let Some(kernels) = self.number_kernels(plan, grouping)
            && !self.nothing
        {
            let slot = &scx.slots[0];
            let layout = slot.layout();
            let evaluate = |image: &[u8], e: &Expr| {
                let mut rows = scx.empty_rows();
                rows[block.joins[0].table] = slot.row(Some(image));
                scx.eval(&rows).decimal(e)
            };
            while scx.next(self.steps, 0, self.batch)? {
                let read = &self.batch.read;
                match self.batch.is_whole() {
                    true => grouper.add_images(layout, &kernels, read.iter(), evaluate)?,
                    false => {
                        grouper.add_images(layout, &kernels, self.batch.images(), evaluate)?;
                    }
                }
            }
        } else {
            let first_only = plan.first_row_only;
            self.joined(&mut |cx| {
                // MIN and MAX by the first row: a NULL does not count.
                let found = first_only
                    && plan
                        .aggregates
                        .iter()
                        .all(|a| a.args.iter().all(|e| cx.val(e).is_ok_and(|v| !v.is_null())));
                go_on = grouper.add(rt, cx, plan, &mut emit)?;
                Ok(go_on && !found)
            })?;
        }
        if go_on {
            let empty: [RowRef<'_>; 0] = [];
            let cx = EvalCx {
                rows: &empty,
                outer: scx.outer_rows,
                st: scx.state,
            };
            grouper.finish(rt, &cx, &mut emit)?;
        }
        Ok(())
    }
}

/// See [`Grouping::inputs`]. `None` also if the rows come from several tables.
fn image_inputs(block: &Block, slots: &[Slot], plan: &GroupPlan) -> Option<Vec<ImageInput>> {
    let (table, slot) = only_table(block, slots, plan)?;
    group::image_inputs(plan, table, |e| image_column(table, slot, e))
}

/// See [`Grouping::grouped`].
fn grouped_images(block: &Block, slots: &[Slot], plan: &GroupPlan) -> Option<GroupedImages> {
    let (table, slot) = only_table(block, slots, plan)?;
    group::grouped_images(plan, table, |e| image_column(table, slot, e))
}

/// The table whose rows are grouped, if all rows come from one table.
fn only_table<'s>(block: &Block, slots: &'s [Slot], plan: &GroupPlan) -> Option<(usize, &'s Slot)> {
    let ([step], [slot]) = (block.joins.as_slice(), slots) else {
        return None;
    };
    let whole = !plan.first_row_only && matches!(slot.source, Source::Table(_));
    whole.then_some((step.table, slot))
}

/// The position of the column that `e` is in the images of a table.
fn image_column(table: usize, slot: &Slot, e: &Expr) -> Option<PlainColumn> {
    let ExprKind::Column(at) = e.kind else {
        return None;
    };
    let own = usize::from(at.table) == table;
    let ordinal = own.then(|| slot.ordinal(at.column.into()))??;
    Some(PlainColumn {
        ordinal,
        field: slot.layout().ordered_field(ordinal),
    })
}
