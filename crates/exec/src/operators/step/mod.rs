//! The steps of a join pipeline. The first step reads its table; each later one joins its table to
//! the rows of the earlier ones.
//!
//! # Picture
//! ```text
//!   outer batch ──▶ lookup: the keys of all outer rows in one read (equality on an index)
//!                          or one read per outer row (other access paths)
//!                          or a hash table over the inner rows, read once
//!                          or a hash table over the outer rows, if they are few (swapped)
//!               ──▶ for each outer row, its candidates ──▶ ON ──▶ (no match: NULLs) ──▶ filter
//!               ──▶ batch
//! ```

mod first;
mod hashed;
mod integer_keys;
mod lookup;
mod measured;
mod merge;
mod nested_outer;
mod read;
mod skip;
mod slot;
mod swapped;

use nfold_engine::{PageRowSink, RowBatch, RowLock};
use nfold_plan::expr::Expr;
use nfold_plan::query::{Access, AccessKind, Block, JoinStep, JoinType, PointPart, TableSource};
use nfold_types::row::RowLayout;
use nfold_types::{Checkpoint, SqlError};
use smallvec::{SmallVec, smallvec};

use super::hash;
use super::hash::{HashTable, ReaderPosition};
use crate::env::batch::{Batch, POOLED_BYTES};
use crate::expr::eval::{EvalCx, RowRef, StmtState};
use crate::expr::kernels::RowFilter;
use crate::runtime::Runtime;
use crate::runtime::spill::SpoolRows;

pub(crate) use read::row_lock;
pub(crate) use slot::{DerivedTable, Slot, Source, keeps_ids};

use hashed::JoinKeys;
use lookup::LookupKeys;
use read::{TableReader, read_spec};
use swapped::{SwappedJoin, Swapping};

/// The approximate size of a piece, if an outer row has many candidates, in bytes.
const PIECE_BYTES: usize = 256 << 10;
/// The work of testing one candidate; then the number of rows between two checkpoints.
const CANDIDATE_WORK: u64 = 100;
const CANDIDATES: usize = 64;

/// The source of further candidates of an outer row. They are read in pieces, because they may
/// exceed memory.
enum MoreCandidates {
    /// There are no more.
    No,
    /// The table reader has more.
    Read,
    /// The hash table's file has more.
    Spilled(ReaderPosition),
    /// The rows that were computed from the outer row.
    Computed,
}

enum Lookup {
    /// The first step, or a source that is read as a whole.
    Scan,
    /// Equality on an index: the keys of many outer rows in one read.
    Batched,
    /// The access path is bound once for each outer row.
    PerRow,
    Hash(Box<HashTable>),
}

/// A step with its operators.
pub(crate) struct StepExec {
    reader: Option<TableReader>,
    lookup: Lookup,
    /// Present if the plan has an alternative: a hash table instead of lookups.
    switch: Option<Box<Switch>>,
    /// The current rows of the outer side, and the index of the next one.
    outer: Batch,
    outer_at: usize,
    outer_done: bool,
    /// The candidates of the outer rows from `group_start` on.
    inner: RowBatch,
    /// For each outer row of the current lookup: its candidates, as a range in `inner_order`.
    spans: Vec<(u32, u32)>,
    inner_order: Vec<u32>,
    group_start: usize,
    group_end: usize,
    candidate: usize,
    looking: LookupKeys,
    join_keys: JoinKeys,
    swapping: Swapping,
    swapped: Option<Box<SwappedJoin>>,
    /// The hashes of the keys of the outer batch, once a spilled hash table is probed.
    hashes: Vec<Option<u64>>,
    /// For each current candidate, whether a joined row contains it. Only if the locks of other
    /// candidates are released: under READ COMMITTED, with locked rows that no other slot reads.
    kept: Option<Vec<bool>>,
    /// The source of the candidates after the current ones.
    more: MoreCandidates,
    matched: bool,
    /// For each nested outer join that ends here: whether a row has matched since its last
    /// NULL-extended row.
    found: SmallVec<[bool; 2]>,
    pub exact: bool,
    started: bool,
    /// The next row of the current batch to be tested ([`Block::row_by_row`]).
    next_row: usize,
    /// The rows of a derived table or view in the first step, or of a JSON_TABLE.
    made: Option<SpoolRows>,
    kernel: Kernel,
    /// Of a later step: its filter, compiled.
    filter_kernel: Option<Box<Kernel>>,
}

/// Lookups that are replaced by a hash table when they have cost too much
/// ([`nfold_plan::query::Alternative`]).
struct Switch {
    /// The reader and the lookup of the other way. A switch exchanges them with those of the step.
    reader: Option<TableReader>,
    lookup: Lookup,
    /// The cost of the lookups in this execution.
    spent: f64,
    /// Whether the rows come from the hash table.
    hashed: bool,
}

/// The compiled conditions of the first step, of the build side of a hash join, or of the rows that
/// a later step finds.
#[derive(Default)]
struct Kernel {
    /// The number of rows that the evaluator has tested.
    evaluated: usize,
    /// Compiled once [`COMPILE_AFTER`] rows are tested or wait for the test, reusing the memory of
    /// the previous execution.
    filter: RowFilter,
    /// `None`: not compiled in this execution. False: the evaluator tests all conditions.
    compiled: Option<bool>,
}

impl Kernel {
    /// Compiles the conditions on the rows of the build side of a hash join.
    fn compile(&mut self, cx: &StepCx<'_, '_>, table: usize, conditions: &[Expr]) {
        if conditions.is_empty() || self.compiled.is_some() {
            return;
        }
        let slot = &cx.slots[table];
        let ordinal = |column| slot.ordinal(column);
        let images = slot.images(table, &ordinal);
        let rows = cx.empty_rows();
        let eval = cx.eval(&rows);
        self.compiled = Some(self.filter.compile(&eval, images, conditions.iter()));
    }

    /// Whether the row of `cx`, which is of the build side, passes the conditions.
    fn passes<'a>(
        &self,
        cx: &EvalCx<'a>,
        layout: &RowLayout,
        image: &[u8],
        conditions: &'a [Expr],
    ) -> Result<bool, SqlError> {
        if self.compiled != Some(true) {
            return cx.passes(conditions);
        }
        let evaluate = |n: usize| Ok(cx.bool(&conditions[n])? == Some(true));
        self.filter.passes(layout, image, evaluate)
    }
}

impl Kernel {
    /// Whether the joined row of `cx` passes the filter of `step`, whose table has the row `image`.
    #[inline]
    fn passes_filter<'a>(
        &mut self,
        step_cx: &StepCx<'_, '_>,
        step: &'a JoinStep,
        cx: &EvalCx<'a>,
        image: &[u8],
    ) -> Result<bool, SqlError> {
        if self.compiled.is_none() {
            self.evaluated += 1;
            if self.evaluated < COMPILE_AFTER {
                return cx.passes(&step.filter);
            }
            self.compile(step_cx, step.table, &step.filter);
        }
        let layout = step_cx.slots[step.table].layout();
        self.passes(cx, layout, image, &step.filter)
    }

    /// Prepares for the next execution.
    fn reset(&mut self) {
        (self.evaluated, self.compiled) = (0, None);
    }

    /// Frees unusually large memory.
    fn release(&mut self) {
        if self.compiled.is_some() {
            self.filter.clear();
        }
    }
}

/// The number of tested rows from which conditions are compiled: compiling does not pay for a short
/// statement.
pub(crate) const COMPILE_AFTER: usize = 32;

impl StepExec {
    pub fn new(
        rt: &Runtime<'_>,
        block: &Block,
        step: &JoinStep,
        position: usize,
        first_rows: usize,
    ) -> Result<StepExec, SqlError> {
        let reader_of = |access: &Access| -> Result<Option<TableReader>, SqlError> {
            let TableSource::Table(def) = &block.tables[step.table].source else {
                return Ok(None);
            };
            let first_rows = match stops_early(step) && !is_hash(access) {
                true => FIRST_CANDIDATES,
                false => first_rows,
            };
            let (access, ordered) = (access.of_table(), position == 0 && block.ordered);
            let spec = read_spec(rt, block, step.table, access, first_rows);
            let table = rt.table(def.id)?;
            let reader = TableReader::new(table, spec, access, ordered);
            Ok(Some(match counts_ends(block, position) {
                true => reader.count_ends(),
                false => reader,
            }))
        };
        // A statement that locks rows locks those that the plan says.
        let switches = row_lock(rt, block, step.table) == RowLock::None;
        let switch = match step.alternative.is_some() && switches {
            false => None,
            true => Some(Box::new(Switch {
                reader: reader_of(hash_access(step, true))?,
                lookup: Lookup::Hash(Box::default()),
                spent: 0.0,
                hashed: false,
            })),
        };
        let access = lookup_access(step, switch.is_some());
        let reader = reader_of(access)?;
        let lookup = match position > 0 && depends_on_outer(block, step.table) {
            true if matches!(access.kind, AccessKind::Source) => Lookup::PerRow,
            _ => Lookup::by(access, position, stops_early(step)),
        };
        let locks = reader
            .as_ref()
            .is_some_and(|r| r.spec.lock != RowLock::None);
        let kept = locks && position > 0 && !matches!(lookup, Lookup::Hash(_));
        let kept = kept && is_named_once(block, step.table);
        Ok(StepExec {
            reader,
            lookup,
            switch,
            outer: Batch::with_ids(if position <= 1 { 0 } else { position }, keeps_ids(block)),
            outer_at: 0,
            outer_done: false,
            inner: RowBatch::new(),
            spans: Vec::new(),
            inner_order: Vec::new(),
            group_start: 0,
            group_end: 0,
            candidate: 0,
            looking: LookupKeys::default(),
            join_keys: JoinKeys::default(),
            swapping: Swapping::of(rt, block, step, position),
            swapped: None,
            hashes: Vec::new(),
            kept: kept.then(Vec::new),
            more: MoreCandidates::No,
            matched: false,
            found: smallvec![false; step.nested_join.as_ref().map_or(0, |join| join.ends.len())],
            exact: true,
            started: false,
            next_row: 0,
            made: None,
            kernel: Kernel::default(),
            filter_kernel: (position > 0 && !step.filter.is_empty() && step.nested_join.is_none())
                .then(Box::default),
        })
    }

    /// The memory that it keeps between executions, approximately, in bytes.
    pub fn memory(&self) -> usize {
        let hash = match &self.lookup {
            Lookup::Hash(table) => table.memory(),
            _ => 0,
        };
        let reader = self.reader.as_ref().map_or(0, TableReader::memory);
        let read = self.inner.memory() + self.looking.memory() + reader;
        let filter = self.filter_kernel.as_ref().map_or(0, |k| k.filter.memory());
        let kernels = self.kernel.filter.memory() + filter;
        self.outer.memory() + read + hash + kernels + self.join_keys.memory()
    }

    /// Called after an execution: closes files, and frees unusually large memory.
    pub fn release(&mut self) {
        (self.made, self.swapped) = (None, None);
        self.outer.release();
        self.kernel.release();
        if let Some(kernel) = &mut self.filter_kernel {
            kernel.release();
        }
        if self.inner.memory() > POOLED_BYTES {
            self.inner = RowBatch::new();
        }
        if self.looking.memory() > POOLED_BYTES {
            self.looking = LookupKeys::default();
        }
        if let Some(reader) = &mut self.reader {
            reader.give_back();
        }
        if let Lookup::Hash(table) = &mut self.lookup {
            table.release();
        }
        if let Some(switch) = &mut self.switch {
            if let Some(reader) = &mut switch.reader {
                reader.give_back();
            }
            if let Lookup::Hash(table) = &mut switch.lookup {
                table.release();
            }
        }
    }

    /// Moves to the next outer row.
    fn next_outer(&mut self) {
        self.outer_at += 1;
        self.candidate = 0;
        self.matched = false;
    }

    /// Removes gathered outer rows: further ones come in the batches of the step before.
    fn ungather(&mut self) {
        self.outer = Batch::new(match self.outer.width() {
            1 => 0,
            width => width,
        });
    }

    /// Switches from lookups to the hash table, or back.
    fn change_over(&mut self) {
        if let Some(switch) = &mut self.switch {
            std::mem::swap(&mut self.reader, &mut switch.reader);
            std::mem::swap(&mut self.lookup, &mut switch.lookup);
            switch.hashed = !switch.hashed;
        }
    }

    /// Prepares for the next execution, and keeps all memory.
    pub fn reset(&mut self) {
        self.swapped = None;
        if self.swapping == Swapping::Decided {
            self.swapping = Swapping::Possible;
            self.ungather();
        }
        self.outer.clear();
        (self.outer_at, self.outer_done) = (0, false);
        self.hashes.clear();
        self.inner.clear();
        self.spans.clear();
        (self.group_start, self.group_end, self.candidate) = (0, 0, 0);
        (self.matched, self.exact, self.started) = (false, true, false);
        self.found.fill(false);
        (self.made, self.more) = (None, MoreCandidates::No);
        self.kernel.reset();
        if let Some(kernel) = &mut self.filter_kernel {
            kernel.reset();
        }
        if let Some(kept) = &mut self.kept {
            kept.clear();
        }
        if let Lookup::Hash(table) = &mut self.lookup {
            table.clear();
        }
        if self.switch.as_ref().is_some_and(|switch| switch.hashed) {
            self.change_over();
        }
        if let Some(switch) = &mut self.switch {
            switch.spent = 0.0;
        }
    }
}

/// The access path of a step's lookups. A step that does not switch has only one path.
fn lookup_access(step: &JoinStep, switches: bool) -> &Access {
    match (&step.alternative, &step.access.kind) {
        (Some(other), AccessKind::Hash { .. }) if switches => &other.access,
        _ => &step.access,
    }
}

/// The access path of a step's hash table. A step that does not switch has only one path.
fn hash_access(step: &JoinStep, switches: bool) -> &Access {
    match (&step.alternative, &step.access.kind) {
        (_, AccessKind::Hash { .. }) => &step.access,
        (Some(other), _) if switches => &other.access,
        _ => &step.access,
    }
}

/// The estimated number of rows per outer row beyond which a semi or anti join looks up each outer
/// row alone, so that it can stop at the first match; and the number of rows that it reads first.
const CANDIDATES_MAX: f64 = 16.0;
const FIRST_CANDIDATES: usize = 4;

/// Whether a step reads the rows of each outer row piece by piece, up to the first match.
pub(crate) fn stops_early(step: &JoinStep) -> bool {
    let decides = matches!(step.kind, JoinType::Semi | JoinType::Anti);
    decides && step.rows > CANDIDATES_MAX && !is_hash(&step.access)
}

/// Whether a step's fetches count the ends of ranges, too: the step before the last one of a join,
/// unless a hash join reads its rows, and the reads of rows that the statement changes.
fn counts_ends(block: &Block, position: usize) -> bool {
    let next = block.joins.get(position + 1);
    block.changed != 0 || next.is_some_and(|next| !is_hash(&next.access))
}

fn is_hash(access: &Access) -> bool {
    matches!(access.kind, AccessKind::Hash { .. })
}

impl Lookup {
    /// How a step at `position` finds rows by an access path. `alone`: each outer row is looked up
    /// alone.
    fn by(access: &Access, position: usize, alone: bool) -> Lookup {
        match &access.kind {
            AccessKind::Hash { .. } => Lookup::Hash(Box::default()),
            _ if position == 0 => Lookup::Scan,
            AccessKind::Points(parts)
                if !alone && parts.iter().all(|p| matches!(p, PointPart::Eq { .. })) =>
            {
                Lookup::Batched
            }
            AccessKind::Empty | AccessKind::Source => Lookup::Hash(Box::default()),
            _ => Lookup::PerRow,
        }
    }
}

/// Whether the rows of a slot are computed from the outer row: those of a JSON_TABLE, or of a
/// LATERAL derived table.
fn depends_on_outer(block: &Block, slot: usize) -> bool {
    let slot = &block.tables[slot];
    matches!(slot.source, TableSource::Json(_)) || slot.lateral != 0
}

/// Whether no other slot reads the same table.
pub(crate) fn is_named_once(block: &Block, slot: usize) -> bool {
    let TableSource::Table(def) = &block.tables[slot].source else {
        return true;
    };
    let same = |s: &TableSource| matches!(s, TableSource::Table(t) if t.id == def.id);
    block.tables.iter().filter(|t| same(&t.source)).count() == 1
}

/// The row slots of a block.
pub(crate) type RowRefs<'a> = SmallVec<[RowRef<'a>; 4]>;

/// The shared context of all steps while a block runs.
pub(crate) struct StepCx<'r, 's> {
    pub rt: &'r Runtime<'s>,
    pub block: &'r Block,
    pub slots: &'r [Slot],
    pub state: &'r StmtState<'r>,
    pub outer_rows: &'r [&'r [RowRef<'r>]],
}

impl<'r> StepCx<'r, '_> {
    /// Row slots without images.
    pub fn empty_rows(&self) -> RowRefs<'r> {
        self.slots.iter().map(|s| s.row(None)).collect()
    }

    /// Evaluates over row slots of which only that of `table` may have an image. The slot of a
    /// single table needs no list.
    #[inline]
    pub fn with_row<T>(
        &self,
        table: usize,
        image: Option<&[u8]>,
        evaluate: impl FnOnce(EvalCx<'_>) -> T,
    ) -> T {
        if let [slot] = self.slots {
            return evaluate(self.eval(&[slot.row(image)]));
        }
        let mut rows = self.empty_rows();
        rows[table] = self.slots[table].row(image);
        evaluate(self.eval(&rows))
    }

    /// An evaluation context over `rows`.
    pub fn eval<'a>(&'a self, rows: &'a [RowRef<'a>]) -> EvalCx<'a> {
        EvalCx {
            rows,
            outer: self.outer_rows,
            st: self.state,
        }
    }

    /// Puts row `i` of a batch of step `position` into the slots.
    pub fn fill<'a>(&'a self, batch: &'a Batch, i: usize, rows: &mut [RowRef<'a>]) {
        for (n, step) in self.block.joins.iter().take(batch.width()).enumerate() {
            rows[step.table] = self.slots[step.table].row(batch.image(i, n));
        }
    }

    /// Whether rows of the only step may go to a [`PageRowSink`]: all of them are found through a
    /// secondary index and looked up in the clustered index.
    #[inline]
    pub fn may_be_taken(&self, steps: &[StepExec]) -> bool {
        let reader = steps.first().and_then(|step| step.reader.as_ref());
        reader.is_some_and(|reader| reader.looks_up_rows())
    }

    /// Reads the next batch of the only step; false: there are no more rows. `row_sink` receives
    /// rows that need no copy.
    pub fn next_into(
        &self,
        steps: &mut [StepExec],
        out: &mut Batch,
        row_sink: Option<&mut dyn PageRowSink>,
    ) -> Result<bool, SqlError> {
        self.first(&mut steps[0], out, row_sink)
    }

    /// Reads the next batch of joined rows of step `position`; false: there are no more.
    pub fn next(
        &self,
        steps: &mut [StepExec],
        position: usize,
        out: &mut Batch,
    ) -> Result<bool, SqlError> {
        match &self.rt.profile {
            None => self.next_batch(steps, position, out),
            Some(profile) => self.next_measured(profile, steps, position, out),
        }
    }

    #[inline]
    fn next_batch(
        &self,
        steps: &mut [StepExec],
        position: usize,
        out: &mut Batch,
    ) -> Result<bool, SqlError> {
        if position == 0 {
            return self.first(&mut steps[0], out, None);
        }
        out.clear();
        loop {
            if steps[position].swapping == Swapping::Possible {
                self.gather(steps, position)?;
            }
            let (before, rest) = steps.split_at_mut(position);
            let me = &mut rest[0];
            if me.swapped.is_some() {
                return self.next_swapped(me, position, out);
            }
            if me.outer_at >= me.outer.len() {
                if me.outer_done {
                    self.give_up(me);
                    return Ok(!out.is_empty());
                }
                if me.swapping == Swapping::Decided {
                    me.ungather();
                }
                let mut outer = std::mem::take(&mut me.outer);
                let more = self.next(before, position - 1, &mut outer);
                let me = &mut steps[position];
                me.outer = outer;
                me.outer_at = 0;
                me.hashes.clear();
                (me.group_start, me.group_end, me.candidate, me.matched) = (0, 0, 0, false);
                me.outer_done = !more?;
                continue;
            }
            self.join(me, position, out)?;
            if out.is_full() {
                return Ok(true);
            }
        }
    }

    /// Joins outer rows until the batch is full, or the current outer rows are used up.
    fn join(&self, me: &mut StepExec, position: usize, out: &mut Batch) -> Result<(), SqlError> {
        let step = &self.block.joins[position];
        if me.outer_at >= me.group_end {
            match &self.rt.profile {
                None => self.look_up(me, position)?,
                Some(profile) => self.look_up_measured(profile, me, position)?,
            }
        }
        if me.has_plain_hash(step) {
            return self.join_hashed(me, step, position, out);
        }
        while me.outer_at < me.group_end && !out.is_full() {
            self.join_row(me, step, position, out)?;
        }
        Ok(())
    }

    /// Joins one outer row with its candidates.
    fn join_row(
        &self,
        me: &mut StepExec,
        step: &JoinStep,
        position: usize,
        out: &mut Batch,
    ) -> Result<(), SqlError> {
        let mut rows = self.empty_rows();
        self.fill(&me.outer, me.outer_at, &mut rows);
        if nested_outer::is_null_extended(step, &rows) {
            rows[step.table] = self.slots[step.table].row(None);
            self.add_missing(&rows, step, (&me.outer, me.outer_at), &mut me.found, out)?;
            drop(rows);
            me.next_outer();
            return Ok(());
        }
        let (start, end) = me.spans[me.outer_at - me.group_start];
        let slot = &self.slots[step.table];
        // Conditions that the access path implies are tested if its values were not converted
        // exactly, and after a lookup by hash.
        let (candidates, promised) = match &me.lookup {
            Lookup::Hash(table) if table.is_spilled() => (&me.inner, false),
            Lookup::Hash(table) => (&table.rows, false),
            _ => (&me.inner, me.exact),
        };
        // Conditions that are tested when a planned hash table is built.
        let (built, excluding): (&[Expr], &[Expr]) = match (&me.switch, &step.access.kind) {
            (Some(switch), AccessKind::Hash { filter, .. }) if !switch.hashed => {
                (&step.access.implied, filter)
            }
            _ => (&[], &[]),
        };
        let mut n = (start as usize).max(me.candidate);
        while n < end as usize {
            let candidate = me.inner_order[n] as usize;
            let (image, id) = match (&me.lookup, slot.has_ids) {
                (_, false) => (candidates.row(candidate), None),
                (Lookup::Hash(_), true) => hash::with_id(candidates.row(candidate)),
                (_, true) => (candidates.row(candidate), candidates.row_id(candidate)),
            };
            n += 1;
            if n.is_multiple_of(CANDIDATES) {
                self.rt.checkpoint(CANDIDATE_WORK * CANDIDATES as u64)?;
            }
            rows[step.table] = slot.row(Some(image));
            let cx = self.eval(&rows);
            if !((promised || cx.passes(&step.access.implied)?)
                && cx.passes(built)?
                && cx.passes(excluding)?
                && cx.passes(&step.on)?)
            {
                continue;
            }
            me.matched = true;
            if step.kind == JoinType::Anti {
                break;
            }
            if nested_outer::end_nested_joins(&cx, step, &mut me.found)?
                && match &mut me.filter_kernel {
                    Some(kernel) => kernel.passes_filter(self, step, &cx, image)?,
                    None => cx.passes(&step.filter)?,
                }
            {
                for p in 0..position {
                    out.push_of(&me.outer, me.outer_at, p);
                }
                out.push_row(Some(image), id);
                if let Some(kept) = &mut me.kept {
                    kept[candidate] = true;
                }
            }
            if step.kind == JoinType::Semi {
                break;
            }
            if out.is_full() && n < end as usize {
                me.candidate = n;
                return Ok(());
            }
        }
        // The first match decides a semi or anti join.
        let decided = me.matched && matches!(step.kind, JoinType::Semi | JoinType::Anti);
        if !decided && !matches!(me.more, MoreCandidates::No) {
            drop(rows);
            return match &self.rt.profile {
                None => self.next_piece(me, step),
                Some(profile) => self.next_piece_measured(profile, me, position),
            };
        }
        let missing = !me.matched && matches!(step.kind, JoinType::Left | JoinType::Anti);
        if missing || nested_outer::begins(step) {
            rows[step.table] = slot.row(None);
            self.add_missing(&rows, step, (&me.outer, me.outer_at), &mut me.found, out)?;
        }
        drop(rows);
        me.next_outer();
        Ok(())
    }

    /// Adds an outer row with NULL in the step's slot, as in `rows`, if it passes the filter.
    fn add_missing<'a>(
        &'a self,
        rows: &'a [RowRef<'a>],
        step: &'a JoinStep,
        (outer, i): (&Batch, usize),
        found: &mut [bool],
        out: &mut Batch,
    ) -> Result<(), SqlError> {
        let cx = self.eval(rows);
        if nested_outer::end_nested_joins(&cx, step, found)? && cx.passes(&step.filter)? {
            for p in 0..outer.width() {
                out.push_of(outer, i, p);
            }
            out.push_row(None, None);
        }
        Ok(())
    }
}
