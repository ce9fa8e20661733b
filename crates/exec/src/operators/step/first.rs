//! The first step of a join: reads the rows of one table, and locks those that pass; or the rows of
//! a derived table or view.

use nfold_engine::{PageRowSink, RowBatch, RowLock, reborrow};
use nfold_plan::expr::Expr;
use nfold_plan::query::{AccessKind, JoinStep, TableSource};
use nfold_types::{Checkpoint, SqlError, Value};
use smallvec::SmallVec;

use super::{CANDIDATE_WORK, COMPILE_AFTER, PIECE_BYTES, Source, StepCx, StepExec, TableReader};
use crate::env::batch::{BATCH_ROWS, Batch};
use crate::expr::eval::tuple;
use crate::expr::eval::{RowRef, Val};
use crate::operators::json_table;
use crate::runtime::spill::{Spool, SpoolRows};

/// The work of testing one row by compiled conditions.
const KERNEL_WORK: u64 = 10;

/// The conditions on the rows of the first step, in the order of evaluation: those that the access
/// path implies, unless its values were converted exactly, then the filter.
fn conditions(step: &JoinStep, exact: bool) -> impl Iterator<Item = &Expr> {
    let implied = match exact {
        true => &[],
        false => step.access.implied.as_slice(),
    };
    implied.iter().chain(&step.filter)
}

impl StepCx<'_, '_> {
    /// Reads the next batch of rows; false: there are no more. `row_sink` receives rows that need
    /// neither a filter nor a copy.
    pub(super) fn first(
        &self,
        me: &mut StepExec,
        out: &mut Batch,
        mut row_sink: Option<&mut dyn PageRowSink>,
    ) -> Result<bool, SqlError> {
        let step = &self.block.joins[0];
        let continues = me.started;
        if !me.started {
            me.started = true;
            if let Some(reader) = &mut me.reader {
                let documents = &self.block.tables[step.table].documents;
                me.exact = self.with_row(step.table, None, |cx| {
                    reader.choose_parts(&cx, documents)?;
                    reader.bind(&cx, &step.access)
                })?;
            }
        }
        let filtered = !step.filter.is_empty() || !me.exact;
        if self.block.row_by_row && continues && self.select_next(me, step, out)? {
            return Ok(true);
        }
        let mut continues = continues;
        loop {
            if self.block.changed != 0 {
                self.rt
                    .counts
                    .add_batch(if continues { out.read.len() } else { 0 });
                continues = true;
            }
            out.clear();
            me.next_row = 0;
            let more = match &mut me.reader {
                Some(reader) => {
                    let row_sink = reborrow(&mut row_sink).filter(|_| !filtered);
                    reader.next_into(self.rt, &mut out.read, row_sink)?
                }
                None => self.made(me, step, &mut out.read)?,
            };
            out.select_all();
            if self.block.row_by_row {
                self.select_next(me, step, out)?;
            } else if let Some(reader) = &me.reader
                && reader.spec.lock != RowLock::None
                && (filtered || reader.spec.semi_consistent)
            {
                self.select_locked(me, reader, step, out)?;
            } else if filtered {
                self.select(me, step, out)?;
            }
            let some = !out.is_empty() || out.read.taken() > 0;
            if some || !more {
                return Ok(some || more);
            }
        }
    }

    /// Selects the rows that pass.
    fn select(&self, me: &mut StepExec, step: &JoinStep, out: &mut Batch) -> Result<(), SqlError> {
        let slot = &self.slots[step.table];
        let mut rows = self.empty_rows();
        out.selected.clear();
        let kernel = &mut me.kernel;
        let tested = kernel.evaluated + out.read.len();
        if tested >= COMPILE_AFTER && kernel.compiled.is_none() {
            let ordinal = |column| slot.ordinal(column);
            let images = slot.images(step.table, &ordinal);
            let conditions = conditions(step, me.exact);
            let cx = self.eval(&rows);
            kernel.compiled = Some(kernel.filter.compile(&cx, images, conditions));
        }
        if kernel.compiled == Some(true) {
            let filter = &kernel.filter;
            self.rt.checkpoint(KERNEL_WORK * out.read.len() as u64)?;
            let layout = slot.layout();
            for i in 0..out.read.len() {
                let image = out.read.row(i);
                let passed = out.selected.len() as u64;
                let evaluate = |condition: usize| {
                    self.rt.counts.passed.set(passed);
                    self.rt.checkpoint(CANDIDATE_WORK)?;
                    rows[step.table] = slot.row(Some(image));
                    let condition = conditions(step, me.exact).nth(condition);
                    let cx = self.eval(&rows);
                    condition.map_or(Ok(true), |e| Ok(cx.bool(e)? == Some(true)))
                };
                if filter.passes(layout, image, evaluate)? {
                    out.selected.push(i as u32);
                }
            }
            self.rt.counts.passed.set(0);
            return Ok(());
        }
        self.rt.checkpoint(CANDIDATE_WORK * out.read.len() as u64)?;
        kernel.evaluated = tested;
        for i in 0..out.read.len() {
            rows[step.table] = slot.row(Some(out.read.row(i)));
            let cx = self.eval(&rows);
            if (me.exact || cx.passes(&step.access.implied)?) && cx.passes(&step.filter)? {
                out.selected.push(i as u32);
                self.rt.counts.passed.set(out.selected.len() as u64);
            }
        }
        self.rt.counts.passed.set(0);
        Ok(())
    }

    /// Selects the rows of a locking read that pass. Rows that pass are locked, the locks of the
    /// others are released.
    fn select_locked(
        &self,
        me: &StepExec,
        reader: &TableReader,
        step: &JoinStep,
        out: &mut Batch,
    ) -> Result<(), SqlError> {
        out.selected.clear();
        self.rt.checkpoint(CANDIDATE_WORK * out.read.len() as u64)?;
        for i in 0..out.read.len() {
            self.select_row(me, Some(reader), step, out, i)?;
        }
        Ok(())
    }

    /// Selects the next row of the current batch that passes, alone. Returns false if there is
    /// none.
    fn select_next(
        &self,
        me: &mut StepExec,
        step: &JoinStep,
        out: &mut Batch,
    ) -> Result<bool, SqlError> {
        out.selected.clear();
        while me.next_row < out.read.len() {
            self.rt.checkpoint(CANDIDATE_WORK)?;
            let i = me.next_row;
            me.next_row += 1;
            self.select_row(me, me.reader.as_ref(), step, out, i)?;
            if !out.selected.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Selects row `i` of the batch if it passes. As [`Self::select_locked`] in a locking read.
    fn select_row(
        &self,
        me: &StepExec,
        reader: Option<&TableReader>,
        step: &JoinStep,
        out: &mut Batch,
        i: usize,
    ) -> Result<(), SqlError> {
        loop {
            let passes = self.with_row(step.table, Some(out.read.row(i)), |cx| {
                Ok::<_, SqlError>(
                    (me.exact || cx.passes(&step.access.implied)?) && cx.passes(&step.filter)?,
                )
            })?;
            let unlocked = passes && out.read.is_unlocked(i);
            match reader {
                Some(reader) if !passes => reader.release(self.rt, &out.read, i),
                // It may have changed before it was locked: it is tested again.
                Some(reader) if unlocked && reader.lock_row(self.rt, &mut out.read, i)? => continue,
                // It has been deleted.
                Some(_) if unlocked => {}
                _ if passes => out.selected.push(i as u32),
                _ => {}
            }
            return Ok(());
        }
    }

    /// Reads rows of a derived table or view; false: there are no more.
    fn made(
        &self,
        me: &mut StepExec,
        step: &JoinStep,
        out: &mut RowBatch,
    ) -> Result<bool, SqlError> {
        if matches!(step.access.kind, AccessKind::Empty) {
            return Ok(false);
        }
        if me.made.is_none() {
            me.made = Some(match self.block.tables[step.table].shared {
                Some(number) => self.shared_rows(step.table, number)?,
                None => self.stored(step.table)?,
            });
        }
        let Some(rows) = &mut me.made else {
            return Ok(false);
        };
        self.rt.tick()?;
        let before = out.len();
        let mut more = true;
        while more && out.len() < BATCH_ROWS && out.bytes() < PIECE_BYTES {
            match rows.next(self.rt)? {
                Some((_, image)) => self.rt.copy_row(image, out)?,
                None => more = false,
            }
        }
        self.rt.count_computed((out.len() - before) as u64);
        Ok(more)
    }

    /// Computes and stores the rows of slot `table`.
    fn stored(&self, table: usize) -> Result<SpoolRows, SqlError> {
        let mut spool = Spool::new(self.rt.env.work_memory());
        self.compute(table, &mut |image| spool.push(self.rt, 0, image))?;
        spool.into_rows(self.rt)
    }

    /// The rows of the derived table in slot `table`, which this statement computes once as
    /// `number`.
    fn shared_rows(&self, table: usize, number: u32) -> Result<SpoolRows, SqlError> {
        if let Some(rows) = self.rt.shared.reader(number) {
            return Ok(rows);
        }
        let rows = self.stored(table)?.into_stored();
        let reader = rows.reader();
        self.rt.shared.add(number, rows);
        Ok(reader)
    }

    /// The rows of a JSON_TABLE or a LATERAL derived table in slot `table`, for the outer row
    /// `rows`.
    pub(super) fn dependent_rows<'a>(
        &'a self,
        table: usize,
        rows: &'a [RowRef<'a>],
        push: &mut dyn FnMut(&[u8]) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        let slot = &self.slots[table];
        let layout = slot.layout();
        match (&slot.source, &self.block.tables[table].source) {
            (_, TableSource::Json(json)) => {
                json_table::rows(self.rt, &self.eval(rows), json, layout, push)
            }
            (Source::Derived(exec), TableSource::Derived(q)) => {
                let mut frames: SmallVec<[&[RowRef<'_>]; 4]> =
                    SmallVec::from_slice(self.outer_rows);
                frames.push(rows);
                exec.collect(self.rt, q, &frames, layout, push)
            }
            _ => Ok(()),
        }
    }

    /// Passes the rows of a slot that is no base table to `push`.
    pub(super) fn all_made(
        &self,
        table: usize,
        push: &mut dyn FnMut(&[u8]) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        let Some(number) = self.block.tables[table].shared else {
            return self.compute(table, push);
        };
        let mut rows = self.shared_rows(table, number)?;
        while let Some((_, image)) = rows.next(self.rt)? {
            self.rt.tick()?;
            self.rt.count_computed(1);
            push(image)?;
        }
        Ok(())
    }

    /// Computes the rows of a slot that is no base table.
    fn compute(
        &self,
        table: usize,
        push: &mut dyn FnMut(&[u8]) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        let slot = &self.slots[table];
        match (&slot.source, &self.block.tables[table].source) {
            (Source::Derived(exec), TableSource::Derived(q)) => {
                let mut rows = 0;
                let mut count = |image: &[u8]| {
                    rows += 1;
                    push(image)
                };
                exec.collect(self.rt, q, self.outer_rows, slot.layout(), &mut count)?;
                self.rt.count_temporary_table(rows, rows);
                Ok(())
            }
            (Source::Json(_), _) => self.dependent_rows(table, &self.empty_rows(), push),
            (Source::Virtual(v), _) => {
                let layout = slot.layout();
                self.rt
                    .env
                    .virtual_rows(&v.schema, &v.name, &mut |values: &[Value]| {
                        let vals: Vec<Val<'_>> =
                            values.iter().map(|v| Val::from_ref(v.as_ref())).collect();
                        let mut image = Vec::new();
                        tuple::encode_row(layout, &vals, &mut image)?;
                        push(&image)
                    })
            }
            _ => Ok(()),
        }
    }
}
