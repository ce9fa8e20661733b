//! Blocks with aggregates: counts rows, sums them by kernels, or evaluates and adds them one by
//! one.

use std::cell::Cell;

use nfold_plan::expr::{Class, ColumnAt, Expr, ExprKind};
use nfold_plan::query::{AggFunc, Block, GroupPlan, JoinStep};
use nfold_types::row::RowLayout;
use nfold_types::{Checkpoint, SqlError};
use smallvec::SmallVec;

use super::block::{ROW_WORK, RowConsumer, Run};
use crate::expr::eval::{EvalCx, RowRef, Scope, StmtState};
use crate::expr::kernels::{NO_GROUP, NumberColumn};
use crate::operators::aggregate::Acc;
use crate::operators::group;
use crate::operators::group::{
    GroupedImages, Grouper, Grouping, ImageInput, ImageSums, JoinedRows, PlainColumn,
};
use crate::operators::step::{COMPILE_AFTER, Slot, Source, StepCx};
use crate::runtime::profile::{Execution, Stage};

/// The grouping of the block's rows.
pub(super) fn grouping(block: &Block, slots: &[Slot], plan: &GroupPlan) -> Grouping {
    let inputs = image_inputs(block, slots, plan);
    let grouped = match inputs {
        Some(_) => None,
        None => grouped_images(block, slots, plan),
    };
    Grouping::new(plan, inputs, grouped)
}

impl Run<'_, '_> {
    /// The kernels of [`Grouping::inputs`] or [`Grouping::grouped`]. `None`: the rows' images are
    /// not enough for the former.
    fn image_sums(&self, plan: &GroupPlan, inputs: Option<&[ImageInput]>) -> Option<ImageSums> {
        let scx = self.scx;
        let rows = scx.empty_rows();
        let cx = scx.eval(&rows);
        let column = |at: ColumnAt| {
            let (position, slot) = joined_slot(scx.block, scx.slots, at.table.into())?;
            let of_table = matches!(slot.source, Source::Table(_));
            let ordinal = of_table.then(|| slot.ordinal(at.column.into()))??;
            NumberColumn::new(position, slot.layout(), ordinal)
        };
        // Plain integers of one table are added without a vector.
        let wanted = |e: &Expr| inputs.is_none() || e.ty.class() == Class::Decimal;
        let sums = ImageSums::new(plan, |program, e| {
            wanted(e).then(|| program.add(&cx, &column, e)).flatten()
        });
        let needed = |n| inputs.is_some_and(|inputs| matches!(inputs[n], ImageInput::Number));
        let missing = (0..plan.aggregates.len()).any(|n| needed(n) && !sums.has(n));
        (!missing).then_some(sums)
    }

    /// Groups joined rows by their images; the first ones by the evaluator, so that a short
    /// statement compiles nothing. False: no more groups are wanted.
    fn grouped_by_image(
        &mut self,
        plan: &GroupPlan,
        (grouping, grouper): (&Grouping, &mut Grouper<'_>),
        emit: &mut dyn FnMut(&[u8]) -> Result<bool, SqlError>,
        taken: &Cell<u64>,
    ) -> Result<bool, SqlError> {
        let scx = self.scx;
        let last = self.steps.len() - 1;
        let layout = |step: &JoinStep| scx.slots[step.table].layout();
        let layouts: SmallVec<[&RowLayout; 8]> = scx.block.joins.iter().map(layout).collect();
        let mut sums = None;
        let mut evaluated = 0;
        while scx.next(self.steps, last, self.batch)? {
            let batch = &*self.batch;
            taken.set(taken.get() + batch.len() as u64);
            if last > 0 {
                scx.rt.checkpoint(ROW_WORK * batch.len() as u64)?;
            }
            if evaluated >= COMPILE_AFTER && sums.is_none() {
                sums = self.image_sums(plan, None);
            }
            let rows = JoinedRows {
                batch,
                layouts: &layouts,
            };
            let go_on = match &mut sums {
                Some(sums) => {
                    let into = (plan, grouping, &mut *grouper);
                    group_batch(scx, &rows, into, sums, emit)?
                }
                None => {
                    evaluated += batch.len();
                    let mut images = scx.empty_rows();
                    let mut go_on = true;
                    for i in 0..batch.len() {
                        scx.fill(batch, i, &mut images);
                        let cx = scx.eval(&images);
                        go_on = grouper.add(scx.rt, &cx, plan, emit)?.1;
                        if !go_on {
                            break;
                        }
                    }
                    go_on
                }
            };
            if !go_on {
                return Ok(false);
            }
        }
        if let Some(sums) = &sums {
            grouper.add_sums(sums)?;
        }
        Ok(true)
    }

    /// Sums up the rows of one table by their images.
    fn summed_by_image(
        &mut self,
        (plan, grouping): (&GroupPlan, &Grouping),
        grouper: &mut Grouper<'_>,
        mut sums: ImageSums,
    ) -> Result<(), SqlError> {
        let scx = self.scx;
        let (slot, table) = (&scx.slots[0], scx.block.joins[0].table);
        let layout = slot.layout();
        while scx.next(self.steps, 0, self.batch)? {
            let batch = &*self.batch;
            sums.run(batch);
            let evaluate = |row: usize, n: usize, acc: &mut Acc| {
                let mut rows = scx.empty_rows();
                rows[table] = slot.row(batch.image(row, 0));
                group::add_evaluated(&scx.eval(&rows), (plan, grouping), n, acc)
            };
            let (sums, rows) = (&mut sums, batch.len());
            match batch.is_whole() {
                true => grouper.add_images(layout, sums, batch.read.iter(), rows, evaluate)?,
                false => grouper.add_images(layout, sums, batch.images(), rows, evaluate)?,
            }
        }
        Ok(())
    }

    pub(super) fn grouped(
        mut self,
        plan: &GroupPlan,
        grouping: &Grouping,
        each: &mut RowConsumer<'_>,
    ) -> Result<(), SqlError> {
        let scx = self.scx;
        let (rt, block) = (scx.rt, scx.block);
        let result = &grouping.result;
        let above = StmtState {
            scope: Scope::Groups(block),
            ..*scx.state
        };
        let by_table = !plan.implicit && !plan.ordered && !plan.first_row_only;
        let (taken, groups) = (Cell::new(0), Cell::new(0));
        let mut emit = |image: &[u8]| -> Result<bool, SqlError> {
            groups.set(groups.get() + 1);
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
        let mut execution = rt.profile.as_ref().map(|_| Execution::begin());
        let mut measure = || {
            if let (Some(profile), Some(execution)) = (&rt.profile, &mut execution) {
                execution.count(groups.get());
                profile.end(block, Stage::Groups, execution);
            }
        };
        if plan.rollup {
            self.rolled_up(plan, grouping, &mut emit)?;
            measure();
            return Ok(());
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
        } else if grouping.grouped.is_some()
            && !self.nothing
            && !self.steps.is_empty()
            && scx.streamed().is_none()
        {
            go_on = self.grouped_by_image(plan, (grouping, &mut grouper), &mut emit, &taken)?;
        } else if grouping.inputs.is_some() && !self.nothing && !has_decimal_sum(plan) {
            let layout = scx.slots[0].layout();
            while scx.next(self.steps, 0, self.batch)? {
                match self.batch.is_whole() {
                    true => grouper.add_columns(layout, self.batch.read.iter())?,
                    false => grouper.add_columns(layout, self.batch.images())?,
                }
            }
        } else if let Some(inputs) = &grouping.inputs
            && !self.nothing
            && let Some(sums) = self.image_sums(plan, Some(inputs))
        {
            self.summed_by_image((plan, grouping), &mut grouper, sums)?;
        } else {
            let first_only = plan.first_row_only;
            self.joined(&mut |cx| {
                // MIN and MAX by the first row: a NULL does not count.
                let found = first_only
                    && plan
                        .aggregates
                        .iter()
                        .all(|a| a.args.iter().all(|e| cx.val(e).is_ok_and(|v| !v.is_null())));
                taken.set(taken.get() + 1);
                go_on = grouper.add(rt, cx, plan, &mut emit)?.1;
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
        if by_table {
            match plan.aggregates.is_empty() {
                true => rt.count_temporary_table(taken.get(), groups.get()),
                false => rt.count_grouping(taken.get(), groups.get()),
            }
        }
        measure();
        Ok(())
    }
}

/// Whether an aggregate may need a kernel. Integers of one table are added without a vector.
fn has_decimal_sum(plan: &GroupPlan) -> bool {
    let decimal = |e: &Expr| e.ty.class() == Class::Decimal;
    plan.aggregates
        .iter()
        .any(|agg| matches!(agg.func, AggFunc::Sum | AggFunc::Avg) && agg.args.iter().any(decimal))
}

/// Adds the rows of a batch to their groups. False: no more groups are wanted.
fn group_batch(
    scx: &StepCx<'_, '_>,
    rows: &JoinedRows<'_>,
    (plan, grouping, grouper): (&GroupPlan, &Grouping, &mut Grouper<'_>),
    sums: &mut ImageSums,
    emit: &mut dyn FnMut(&[u8]) -> Result<bool, SqlError>,
) -> Result<bool, SqlError> {
    let batch = rows.batch;
    sums.run(batch);
    let evaluate = |row: usize, n: usize, acc: &mut Acc| {
        let mut images = scx.empty_rows();
        scx.fill(batch, row, &mut images);
        group::add_evaluated(&scx.eval(&images), (plan, grouping), n, acc)
    };
    let mut groups = grouper.take_row_groups();
    let (mut start, mut go_on) = (0, true);
    for row in 0..batch.len() {
        if let Some(group) = grouper.known_group(rows, row) {
            groups.push(group as u32);
            continue;
        }
        if grouper.is_last_resort() {
            grouper.add_rows(rows, start..row, &groups, sums, evaluate)?;
            start = row;
        }
        let mut images = scx.empty_rows();
        scx.fill(batch, row, &mut images);
        let (place, more) = grouper.place(scx.rt, &scx.eval(&images), plan, emit)?;
        grouper.remember(place);
        groups.push(place.map_or(NO_GROUP, |place| place as u32));
        go_on = more;
        if !go_on {
            break;
        }
    }
    if go_on {
        grouper.add_rows(rows, start..batch.len(), &groups, sums, evaluate)?;
    }
    grouper.give_back_row_groups(groups);
    Ok(go_on)
}

/// See [`Grouping::inputs`]; `None` also where the rows are not those of one table.
fn image_inputs(block: &Block, slots: &[Slot], plan: &GroupPlan) -> Option<Vec<ImageInput>> {
    let ([_], [slot]) = (block.joins.as_slice(), slots) else {
        return None;
    };
    let whole = !plan.first_row_only && matches!(slot.source, Source::Table(_));
    whole.then(|| group::image_inputs(plan, |e| image_column(block, slots, e)))?
}

/// See [`Grouping::grouped`].
fn grouped_images(block: &Block, slots: &[Slot], plan: &GroupPlan) -> Option<GroupedImages> {
    group::grouped_images(plan, |e| image_column(block, slots, e))
}

/// The join step of a slot, and the slot.
fn joined_slot<'s>(block: &Block, slots: &'s [Slot], table: usize) -> Option<(usize, &'s Slot)> {
    let position = block.joins.iter().position(|step| step.table == table)?;
    Some((position, slots.get(table)?))
}

/// Where the images of joined rows hold the column that an expression is.
fn image_column(block: &Block, slots: &[Slot], e: &Expr) -> Option<PlainColumn> {
    let ExprKind::Column(at) = e.kind else {
        return None;
    };
    let (position, slot) = joined_slot(block, slots, at.table.into())?;
    let ordinal = slot.ordinal(at.column.into())?;
    Some(PlainColumn {
        position,
        ordinal,
        of_table: matches!(slot.source, Source::Table(_)),
        field: slot.layout().ordered_field(ordinal),
    })
}
