//! One query block: join steps, then grouping, HAVING, DISTINCT, ORDER BY and LIMIT, then the
//! consumer of the result.
//!
//! Rows are pulled from the join steps in batches, and pushed through the other operators one by
//! one. An operator that needs no more rows returns false, which ends the pull.

use std::cell::RefCell;
use std::time::Duration;

use nfold_engine::RowLock;
use nfold_plan::expr::{Expr, ExprKind};
use nfold_plan::query::{AccessKind, Block, BlockWarning, QueryBody, QueryPlan, TableSource};
use nfold_types::row::RowLayout;
use nfold_types::{Checkpoint, ErrorCode, SqlError};
use smallvec::SmallVec;

use super::CachedQuery;
use super::measured::MeasuredRows;
use super::sort_first::SortsFirst;
use super::subquery::{BlockSubqueries, CachedSubquery};
use crate::env::RowSink;
use crate::env::batch::{Batch, POOLED_BYTES};
use crate::env::scratch::{Buffer, Pooled};
use crate::expr::eval::compare::ListCache;
use crate::expr::eval::constant_checks::{check_numbers, check_time_points};
use crate::expr::eval::tuple;
use crate::expr::eval::tuple::KeyMaker;
use crate::expr::eval::{EvalCx, NoSubqueries, RowCounts, RowRef, Scope, StmtState};
use crate::operators::distinct::Distinct;
use crate::operators::group::Grouping;
use crate::operators::output::{Direct, DirectRows};
use crate::operators::raw_rows::RawRows;
use crate::operators::row_out::{Limits, RowOut, give_sorted, projected, sorter_of, values_of};
use crate::operators::step::{DerivedTable, Slot, Source, StepCx, StepExec, keeps_ids, row_lock};
use crate::operators::window::Windowing;
use crate::runtime::Runtime;
use crate::runtime::profile::{Execution, Stage};

/// Work of one row in an operator.
pub(super) const ROW_WORK: u64 = 200;

/// The operators of a block, which are cached between executions.
pub(crate) struct BlockExec {
    slots: Vec<Slot>,
    steps: Vec<StepExec>,
    batch: Batch,
    /// The select list as plain columns, for sorted rows.
    projected: Vec<Expr>,
    direct: Option<Direct>,
    /// Boxed, like `made` and `grouping`: most statements have none of these, and operator trees
    /// should be small.
    raw_rows: Option<Box<RawRows>>,
    made: Option<Box<Projected>>,
    grouping: Option<Box<Grouping>>,
    windowing: Option<Box<Windowing>>,
    sorts_first: SortsFirst,
    subqueries: Box<[CachedSubquery]>,
}

/// The operators for rows that are sorted, or stored for DISTINCT.
struct Projected {
    /// The layout of the result's columns.
    layout: RowLayout,
    direct: Direct,
    unique: KeyMaker,
    order: KeyMaker,
    /// Buffers for the current row.
    key: Vec<u8>,
    image: Vec<u8>,
}

impl Projected {
    fn new(rt: &Runtime<'_>, block: &Block) -> Projected {
        Projected {
            layout: tuple::layout_of(block.select.iter().map(|e| &e.ty)),
            direct: Direct::of_made(block.select.len()),
            unique: KeyMaker::new(block.select.iter().map(|e| (&e.ty, false))),
            order: KeyMaker::of_order(
                block.order.iter().map(|k| (&k.expr.ty, k.desc)),
                rt.env.max_sort_length(),
            ),
            key: Vec::new(),
            image: Vec::new(),
        }
    }
}

impl BlockExec {
    pub fn open(rt: &Runtime<'_>, block: &Block, limits: Limits) -> Result<BlockExec, SqlError> {
        let mut slots: Vec<Option<Slot>> = (0..block.tables.len()).map(|_| None).collect();
        let raw_rows = block.group.is_none()
            && block.windows.is_empty()
            && block.order.is_empty()
            && !block.distinct;
        let few = raw_rows
            && limits.wanted() < 1000
            && block.joins.len() == 1
            && block.joins[0].filter.is_empty();
        // Rows beyond the LIMIT must not be locked.
        let locks = (block.joins.first())
            .is_some_and(|step| row_lock(rt, block, step.table) != RowLock::None);
        let first_rows = match &block.group {
            Some(g) if g.first_row_only => 1,
            _ if few => limits.wanted() as usize,
            _ if raw_rows && locks && limits.count != u64::MAX => 1,
            _ => 0,
        };
        let mut steps = Vec::with_capacity(block.joins.len());
        for (position, step) in block.joins.iter().enumerate() {
            slots[step.table] = Some(Slot::open(
                rt,
                block,
                step.table,
                &step.access,
                CachedQuery::derived,
            )?);
            steps.push(StepExec::new(
                rt,
                block,
                step,
                position,
                if position == 0 { first_rows } else { 0 },
            )?);
        }
        let slots: Vec<Slot> = slots.into_iter().flatten().collect();
        let grouping = block
            .group
            .as_ref()
            .map(|plan| Box::new(super::grouped::grouping(block, &slots, plan)));
        let direct = Direct::open(block, slots.first());
        let raw_rows = RawRows::open(rt, block, slots.first()).map(Box::new);
        let windowing =
            (!block.windows.is_empty()).then(|| Box::new(Windowing::new(block, &slots)));
        let width = if block.joins.len() <= 1 {
            0
        } else {
            block.joins.len()
        };
        let batch = Batch::with_ids(width, keeps_ids(block));
        Ok(BlockExec {
            slots,
            steps,
            batch,
            projected: projected(&block.select),
            direct,
            raw_rows,
            made: (block.distinct || !block.order.is_empty())
                .then(|| Box::new(Projected::new(rt, block))),
            grouping,
            windowing,
            sorts_first: SortsFirst::of(block),
            subqueries: CachedSubquery::of(&block.subqueries),
        })
    }

    /// Runs the block once.
    pub fn run(
        &mut self,
        rt: &Runtime<'_>,
        block: &Block,
        limits: Limits,
        outer_rows: &[&[RowRef<'_>]],
        out: &mut dyn RowOut,
    ) -> Result<(), SqlError> {
        let result = match &rt.profile {
            None => self.execute(rt, block, limits, outer_rows, out),
            Some(profile) => {
                profile.begin_steps(block, block.joins.len());
                let mut out = MeasuredRows::new(out);
                let result = self.execute(rt, block, limits, outer_rows, &mut out);
                profile.end(block, Stage::Result, &out.execution);
                result
            }
        };
        self.release();
        result
    }

    /// The memory that it keeps between executions, approximately, in bytes.
    pub fn memory(&self) -> usize {
        let made = self.made.as_ref();
        let derived = self.slots.iter().filter_map(|slot| match &slot.source {
            Source::Derived(query) => Some(query.memory()),
            _ => None,
        });
        self.batch.memory()
            + made.map_or(0, |made| made.key.capacity() + made.image.capacity())
            + self.steps.iter().map(StepExec::memory).sum::<usize>()
            + self
                .subqueries
                .iter()
                .map(CachedSubquery::memory)
                .sum::<usize>()
            + derived.sum::<usize>()
    }

    fn release(&mut self) {
        self.batch.release();
        if let Some(made) = &mut self.made
            && made.key.capacity() + made.image.capacity() > POOLED_BYTES
        {
            (made.key, made.image) = Default::default();
        }
        self.steps.iter_mut().for_each(StepExec::release);
        self.subqueries.iter().for_each(CachedSubquery::release);
    }

    fn execute(
        &mut self,
        rt: &Runtime<'_>,
        block: &Block,
        limits: Limits,
        outer_rows: &[&[RowRef<'_>]],
        out: &mut dyn RowOut,
    ) -> Result<(), SqlError> {
        self.steps.iter_mut().for_each(StepExec::reset);
        self.batch.clear();
        if !block.warnings.is_empty() {
            warn(rt, &block.warnings);
        }
        let subqueries = BlockSubqueries::new(rt, &block.subqueries, &self.subqueries);
        let state = StmtState {
            scope: Scope::Tables(block),
            ..rt.state(&subqueries)
        };
        let cx = EvalCx {
            rows: &[],
            outer: outer_rows,
            st: &state,
        };
        let reads_rows = limits.wanted() > 0 || block.calc_found_rows;
        let nothing = match constant_conditions(&cx, block, reads_rows)? {
            Passing::All => false,
            Passing::Total => true,
            Passing::Nothing => {
                if block.calc_found_rows {
                    rt.found_rows.set(Some(0));
                }
                return Ok(());
            }
        };
        let scx = StepCx {
            rt,
            block,
            slots: &self.slots,
            state: &state,
            outer_rows,
        };
        let joins = self.steps.len() > 1 && reads_rows && outer_rows.is_empty();
        let nothing = nothing || joins && scx.finds_empty_side(&mut self.steps)?;
        let run = Run {
            scx: &scx,
            steps: &mut self.steps,
            batch: &mut self.batch,
            grouping: self.grouping.as_deref(),
            windowing: self.windowing.as_deref(),
            nothing,
        };
        if let Some(direct) = &mut self.direct
            && let Some((sink, counts)) = out.sink()
            && let Some(rows) = direct.rows(self.slots[0].layout(), &block.select, rt.env)
        {
            return run.direct(&rows, limits, sink, counts);
        }
        if let Some(raw_rows) = self.raw_rows.as_deref_mut()
            && out.sink().is_some()
        {
            let layout = self.slots[0].layout();
            let RawRows { direct, select, .. } = &mut *raw_rows;
            if direct.prepare(layout, select, rt.env)
                && let Some(to) = out.sink()
            {
                let encoder = raw_rows.direct.prepared(layout, &raw_rows.select, rt.env);
                let rows = |each: &mut dyn FnMut(&[u8]) -> Result<bool, SqlError>| run.images(each);
                return match encoder {
                    Some(encoder) => {
                        RawRows::run((raw_rows, &encoder, layout), rt, block, limits, rows, to)
                    }
                    None => Ok(()),
                };
            }
        }
        // As in MySQL, LIMIT 0 OFFSET 5 groups and sorts.
        let computed = self.made.is_some() || self.grouping.is_some();
        if !reads_rows || limits.count == 0 && !computed && !block.calc_found_rows {
            return Ok(());
        }
        let mut limiter = Limiter {
            limits,
            seen: 0,
            out,
            counting: block.calc_found_rows,
        };
        match &mut self.made {
            None => run.rows(&mut |cx, select| limiter.row(cx, select))?,
            Some(_) if self.sorts_first.applies(limits) => {
                super::sort_first::run(rt, block, run, limits, &mut limiter)?
            }
            Some(made) => {
                let projected = &self.projected;
                ordered(rt, block, &state, run, (projected, made), &mut limiter)?;
            }
        }
        if block.calc_found_rows {
            rt.found_rows.set(Some(limiter.seen));
        }
        Ok(())
    }

    /// Passes batches of joined rows to a statement that changes rows.
    pub fn batches(
        &mut self,
        rt: &Runtime<'_>,
        block: &Block,
        f: &mut dyn FnMut(&StepCx<'_, '_>, &Batch) -> Result<bool, SqlError>,
    ) -> Result<(), SqlError> {
        if let Some(profile) = &rt.profile {
            profile.begin_steps(block, block.joins.len());
        }
        let result = self.pull(rt, block, f);
        self.release();
        result
    }

    /// Evaluates the constant conditions, for a statement that reads no row.
    ///
    /// # Errors
    /// Those of the conditions.
    pub fn check_constants(&self, rt: &Runtime<'_>, block: &Block) -> Result<(), SqlError> {
        let subqueries = BlockSubqueries::new(rt, &block.subqueries, &self.subqueries);
        let state = StmtState {
            scope: Scope::Tables(block),
            ..rt.state(&subqueries)
        };
        let cx = EvalCx {
            rows: &[],
            outer: &[],
            st: &state,
        };
        constant_conditions(&cx, block, true)?;
        for subquery in &self.subqueries {
            subquery.release();
        }
        Ok(())
    }

    fn pull(
        &mut self,
        rt: &Runtime<'_>,
        block: &Block,
        f: &mut dyn FnMut(&StepCx<'_, '_>, &Batch) -> Result<bool, SqlError>,
    ) -> Result<(), SqlError> {
        self.steps.iter_mut().for_each(StepExec::reset);
        let subqueries = BlockSubqueries::new(rt, &block.subqueries, &self.subqueries);
        let state = StmtState {
            scope: Scope::Tables(block),
            ..rt.state(&subqueries)
        };
        let cx = EvalCx {
            rows: &[],
            outer: &[],
            st: &state,
        };
        if !matches!(constant_conditions(&cx, block, true)?, Passing::All) {
            return Ok(());
        }
        let scx = StepCx {
            rt,
            block,
            slots: &self.slots,
            state: &state,
            outer_rows: &[],
        };
        let last = self.steps.len().saturating_sub(1);
        while scx.next(&mut self.steps, last, &mut self.batch)? {
            if !self.batch.is_empty() && !f(&scx, &self.batch)? {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// What the conditions of a block that read no row leave of its result.
enum Passing {
    All,
    /// The groups that exist without rows: that of a query without GROUP BY, and the total of WITH
    /// ROLLUP.
    Total,
    /// HAVING leaves out the total of WITH ROLLUP, too.
    Nothing,
}

/// Tests the conditions of a block that read no row, and checks the constants of the others. As in
/// MySQL, dates are checked before the conditions, and numbers only if rows are read.
fn constant_conditions<'a>(
    cx: &EvalCx<'a>,
    block: &'a Block,
    reads_rows: bool,
) -> Result<Passing, SqlError> {
    let checks = &block.constant_checks;
    if !checks.is_empty() {
        check_time_points(cx, checks)?;
    }
    let has_total = block.group.as_ref().is_some_and(|g| g.rollup);
    let mut passes = cx.passes(&block.constant_filter)?;
    if (passes || has_total) && !cx.passes(&block.constant_having)? {
        passes = false;
        if has_total {
            return Ok(Passing::Nothing);
        }
    }
    if passes && reads_rows && !checks.is_empty() {
        check_numbers(cx, checks)?;
    }
    Ok(match passes {
        true => Passing::All,
        false => Passing::Total,
    })
}

/// Whether LIMIT 0 or a constant condition leaves no rows of a query. The conditions warn when the
/// query runs.
#[cold]
pub(crate) fn is_known_empty(rt: &Runtime<'_>, q: &QueryPlan) -> bool {
    let QueryBody::Block(block) = &q.body else {
        return false;
    };
    if Limits::new(rt, q.limit.as_ref()).is_ok_and(|limits| limits.wanted() == 0) {
        return true;
    }
    let subquery = |e: &Expr| matches!(e.kind, ExprKind::Subquery { .. });
    let mut conditions = block.constant_filter.iter().chain(&block.constant_having);
    if (conditions.clone()).any(|e| e.any(&mut |e| subquery(e))) {
        return false;
    }
    let (ignored, lists) = (RefCell::default(), ListCache::default());
    let state = StmtState {
        scope: Scope::Tables(block),
        warnings: &ignored,
        lists: &lists,
        ..rt.state(&NoSubqueries)
    };
    let cx = EvalCx {
        rows: &[],
        outer: &[],
        st: &state,
    };
    conditions.any(|e| matches!(cx.bool(e), Ok(Some(false) | None)))
}

/// Applies LIMIT and OFFSET to the result.
pub(super) struct Limiter<'o> {
    pub(super) limits: Limits,
    pub(super) seen: u64,
    pub(super) out: &'o mut dyn RowOut,
    /// SQL_CALC_FOUND_ROWS: continue to count after LIMIT.
    pub(super) counting: bool,
}

impl Limiter<'_> {
    pub(super) fn row<'a>(
        &mut self,
        cx: &EvalCx<'a>,
        select: &'a [Expr],
    ) -> Result<bool, SqlError> {
        self.pass(|out| out.row(cx, select))
    }

    /// Counts a row, and passes it on if it is within OFFSET and LIMIT.
    #[inline]
    pub(super) fn pass(
        &mut self,
        give: impl FnOnce(&mut dyn RowOut) -> Result<bool, SqlError>,
    ) -> Result<bool, SqlError> {
        let wanted = self.limits.wanted();
        if wanted == 0 && !self.counting {
            return Ok(false);
        }
        self.seen += 1;
        if self.seen <= self.limits.skip {
            self.out.skip();
        }
        if self.seen > self.limits.skip && self.seen <= wanted && !give(self.out)? {
            return Ok(false);
        }
        Ok(self.counting || self.seen < wanted)
    }
}

impl<'r> StepCx<'r, '_> {
    /// The derived table, if it is this block's only source: its rows are streamed.
    pub(super) fn streamed(&self) -> Option<(&'r QueryPlan, &'r dyn DerivedTable)> {
        let [step] = self.block.joins.as_slice() else {
            return None;
        };
        match (
            &self.block.tables[step.table].source,
            &self.slots[step.table].source,
        ) {
            _ if matches!(step.access.kind, AccessKind::Empty) => None,
            _ if self.block.tables[step.table].shared.is_some() => None,
            (TableSource::Derived(q), Source::Derived(exec)) => Some((q, &**exec)),
            _ => None,
        }
    }
}

/// Consumes the rows of a derived table one by one, as the only slot of the block that reads it.
struct Streamed<'r, 's, 'e> {
    scx: &'r StepCx<'r, 's>,
    layout: &'r RowLayout,
    image: Pooled<Buffer>,
    each: &'e mut dyn for<'a> FnMut(&EvalCx<'a>) -> Result<bool, SqlError>,
    rows: u64,
}

impl RowOut for Streamed<'_, '_, '_> {
    fn row<'a>(&mut self, cx: &EvalCx<'a>, select: &'a [Expr]) -> Result<bool, SqlError> {
        self.rows += 1;
        let values = values_of(cx, select)?;
        let image = &mut self.image.0;
        image.clear();
        tuple::encode_row(self.layout, &values, image)?;
        let rows = [self.scx.slots[0].row(Some(image))];
        let cx = self.scx.eval(&rows);
        if !cx.passes(&self.scx.block.joins[0].filter)? {
            return Ok(true);
        }
        (self.each)(&cx)
    }
}

pub(super) type RowConsumer<'f> =
    dyn for<'a> FnMut(&EvalCx<'a>, &'a [Expr]) -> Result<bool, SqlError> + 'f;

/// The pull side of a block: its joined or grouped rows that pass HAVING.
pub(super) struct Run<'r, 's> {
    pub(super) scx: &'r StepCx<'r, 's>,
    pub(super) steps: &'r mut [StepExec],
    pub(super) batch: &'r mut Batch,
    pub(super) grouping: Option<&'r Grouping>,
    pub(super) windowing: Option<&'r Windowing>,
    pub(super) nothing: bool,
}

impl Run<'_, '_> {
    /// Sends the rows of the only table, encoded as they were read.
    fn direct(
        self,
        rows: &DirectRows<'_>,
        limits: Limits,
        sink: &mut dyn RowSink,
        counts: &RowCounts,
    ) -> Result<(), SqlError> {
        if self.nothing || limits.wanted() == 0 {
            return Ok(());
        }
        let format = sink.format();
        let mut left = limits;
        let zero_copy =
            limits.is_none() && rows.are_simple(format) && self.scx.may_be_taken(self.steps);
        loop {
            let mut page_rows = match zero_copy {
                true => rows.page_rows(format, sink),
                false => None,
            };
            let to = page_rows.as_mut().map(|page_rows| page_rows as _);
            let more = self.scx.next_into(self.steps, self.batch, to);
            let taken = page_rows.map_or(0, |page_rows| page_rows.taken());
            if taken > 0 {
                // Counted even before an error is returned: the rows are in the buffer.
                counts.add_sent(taken);
                sink.framed(taken)?;
            }
            if !more? {
                return Ok(());
            }
            let batch = &*self.batch;
            let skipped = left.skip.min(batch.len() as u64);
            let sent = left.count.min(batch.len() as u64 - skipped);
            rows.emit_batch(batch, (skipped as usize, sent as usize), format, sink)?;
            counts.add_skipped(skipped);
            counts.add_sent(sent);
            (left.skip, left.count) = (left.skip - skipped, left.count - sent);
            if left.wanted() == 0 {
                return Ok(());
            }
        }
    }

    /// The images of the only table's rows that pass the filter.
    pub(super) fn images(
        self,
        each: &mut dyn FnMut(&[u8]) -> Result<bool, SqlError>,
    ) -> Result<(), SqlError> {
        if self.nothing {
            return Ok(());
        }
        while self.scx.next(self.steps, 0, self.batch)? {
            for i in 0..self.batch.len() {
                if let Some(image) = self.batch.image(i, 0)
                    && !each(image)?
                {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    #[inline]
    pub(super) fn rows(self, each: &mut RowConsumer<'_>) -> Result<(), SqlError> {
        match &self.scx.rt.profile {
            None => self.all_rows(each),
            Some(profile) => {
                let (block, mut execution) = (self.scx.block, Execution::begin());
                let result = self.all_rows(&mut |cx, select| {
                    execution.row();
                    each(cx, select)
                });
                profile.end(block, Stage::Rows, &execution);
                result
            }
        }
    }

    #[inline]
    fn all_rows(self, each: &mut RowConsumer<'_>) -> Result<(), SqlError> {
        match self.windowing {
            None => self.plain_rows(each),
            Some(windowing) => super::windowed::run(self, windowing, each),
        }
    }

    /// As [`rows`](Self::rows), without window functions.
    #[inline]
    pub(super) fn plain_rows(self, each: &mut RowConsumer<'_>) -> Result<(), SqlError> {
        let block = self.scx.block;
        match &block.group {
            None => self.joined(&mut |cx| {
                if !cx.passes(&block.having)? {
                    return Ok(true);
                }
                each(cx, &block.select)
            }),
            Some(plan) => match self.grouping {
                Some(grouping) => self.grouped(plan, grouping, each),
                None => Ok(()),
            },
        }
    }

    /// Calls `each` with every joined row.
    pub(super) fn joined(
        self,
        each: &mut dyn for<'a> FnMut(&EvalCx<'a>) -> Result<bool, SqlError>,
    ) -> Result<(), SqlError> {
        let Run {
            scx,
            steps,
            batch,
            nothing,
            grouping: _,
            windowing: _,
        } = self;
        if nothing {
            return Ok(());
        }
        if steps.is_empty() {
            // Without a table there is one row without columns.
            return each(&scx.eval(&[])).map(|_| ());
        }
        if let Some((q, exec)) = scx.streamed() {
            let layout = scx.slots[0].layout();
            let mut out = Streamed {
                scx,
                image: Pooled::take(),
                layout,
                each,
                rows: 0,
            };
            exec.run(scx.rt, q, scx.outer_rows, &mut out)?;
            let rows = out.rows;
            scx.rt.count_temporary_table(rows, rows);
            if let Some(profile) = &scx.rt.profile {
                profile.add_call(scx.block, Stage::Read(0), rows, Duration::ZERO);
            }
            return Ok(());
        }
        let last = steps.len() - 1;
        while scx.next(steps, last, batch)? {
            let mut rows = scx.empty_rows();
            scx.rt.checkpoint(ROW_WORK * batch.len() as u64)?;
            for i in 0..batch.len() {
                scx.fill(batch, i, &mut rows);
                if !each(&scx.eval(&rows))? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// DISTINCT and ORDER BY: projects rows, deduplicates or sorts them, and passes them on.
fn ordered(
    rt: &Runtime<'_>,
    block: &Block,
    state: &StmtState<'_>,
    run: Run<'_, '_>,
    (projected, made): (&[Expr], &mut Projected),
    limiter: &mut Limiter<'_>,
) -> Result<(), SqlError> {
    let limits = limiter.limits;
    let Projected {
        layout,
        direct,
        unique,
        order: maker,
        key,
        image,
    } = made;
    let (layout, unique) = (&*layout, &*unique);
    let direct = direct.rows(layout, projected, rt.env);
    let mut seen = block.distinct.then(|| Distinct::new(rt.env.work_memory()));
    let mut give = |image: &[u8]| -> Result<bool, SqlError> {
        limiter.pass(|out| {
            if let Some(direct) = &direct
                && let Some((sink, counts)) = out.sink()
            {
                direct.emit(image, sink.format(), sink)?;
                counts.add_sent(1);
                return Ok(true);
            }
            let rows = [RowRef {
                layout,
                image: Some(image),
                places: None,
            }];
            let cx = EvalCx {
                rows: &rows,
                outer: &[],
                st: state,
            };
            out.row(&cx, projected)
        })
    };
    if block.order.is_empty() {
        let mut more = true;
        run.rows(&mut |cx, select| {
            let values = values_of(cx, select)?;
            if let Some(seen) = &mut seen
                && !seen.is_new(
                    rt,
                    |key| unique.push_all(&values, key),
                    |out| tuple::encode_row(layout, &values, out),
                )?
            {
                return Ok(true);
            }
            image.clear();
            tuple::encode_row(layout, &values, image)?;
            more = give(image)?;
            Ok(more)
        })?;
        if let Some(seen) = seen {
            seen.count(rt);
            if more {
                seen.give_deferred(rt, &mut give)?;
            }
        }
    } else {
        let mut sorter = sorter_of(rt, block, limits);
        // A sort key that equals a result column is not evaluated again: another RAND() would
        // return another number.
        let same: SmallVec<[Option<usize>; 4]> = block
            .order
            .iter()
            .map(|k| match k.expr.kind {
                ExprKind::Column(_) => None,
                _ => block.select.iter().position(|s| *s == k.expr),
            })
            .collect();
        run.rows(&mut |cx, select| {
            let values = values_of(cx, select)?;
            key.clear();
            for (n, (k, same)) in block.order.iter().zip(&same).enumerate() {
                match same {
                    Some(i) => maker.push(n, &values[*i], key)?,
                    None => maker.push(n, &cx.val(&k.expr)?, key)?,
                }
            }
            if let Some(seen) = &mut seen
                && !seen.is_new(
                    rt,
                    |unique_key| unique.push_all(&values, unique_key),
                    |out| {
                        out.extend_from_slice(&(key.len() as u32).to_le_bytes());
                        out.extend_from_slice(key);
                        tuple::encode_row(layout, &values, out)
                    },
                )?
            {
                return Ok(true);
            }
            image.clear();
            tuple::encode_row(layout, &values, image)?;
            sorter.push(rt, key, image)?;
            Ok(true)
        })?;
        if let Some(seen) = seen {
            seen.count(rt);
            seen.give_deferred(rt, &mut |row| {
                if let Some((len, rest)) = row.split_first_chunk::<4>() {
                    let (key, image) = rest.split_at(u32::from_le_bytes(*len) as usize);
                    sorter.push(rt, key, image)?;
                }
                Ok(true)
            })?;
        }
        let rows = give_sorted(rt, sorter, &mut give)?;
        rt.count_sort(rows);
    }
    Ok(())
}

/// Raises the warnings of a block.
#[cold]
fn warn(rt: &Runtime<'_>, list: &[BlockWarning]) {
    let mut warnings = rt.warnings.borrow_mut();
    for warning in list {
        match warning {
            BlockWarning::Deprecated { what, instead } => {
                warnings.warn(ErrorCode::ER_WARN_DEPRECATED_SYNTAX, &[what, instead]);
            }
            BlockWarning::Ambiguous(name) => {
                warnings.warn(ErrorCode::ER_NON_UNIQ_ERROR, &[name, &"group statement"]);
            }
            BlockWarning::SpacesBeforeName(name) => {
                warnings.warn(ErrorCode::ER_REMOVED_SPACES, &[name]);
            }
            BlockWarning::EmptyName(name) => {
                warnings.warn(ErrorCode::ER_NAME_BECOMES_EMPTY, &[name]);
            }
            BlockWarning::ExtremeOfDocuments => {
                let what = "comparison of JSON in the LEAST and GREATEST operators";
                warnings.warn(ErrorCode::ER_NOT_SUPPORTED_YET, &[&what]);
            }
            BlockWarning::RangeOfDocuments => {
                let what = "comparison of JSON in the BETWEEN operator";
                warnings.warn(ErrorCode::ER_NOT_SUPPORTED_YET, &[&what]);
            }
            BlockWarning::ListOfDocuments(list) => {
                let has_one_row = |list: u32| {
                    let (members, width) = rt.params.list(list);
                    members.len() <= width
                };
                if list.is_some_and(has_one_row) {
                    continue;
                }
                let what = "comparison of JSON within a ROW in the IN operator";
                warnings.warn(ErrorCode::ER_NOT_SUPPORTED_YET, &[&what]);
            }
            BlockWarning::DocumentAsCondition => {
                warnings.warn(ErrorCode::ER_IMPLICIT_COMPARISON_FOR_JSON, &[]);
            }
        }
    }
}
