//! Steps of a join pipeline: the first reads its table, each later one joins its table to the rows before it.
//!
//! # Picture
//! ```text
//!   outer batch ──▶ lookup: points of all outer rows in one read (equality on an index)
//!                          or one read per outer row (other access paths)
//!                          or a hash table over the inner rows, read once
//!               ──▶ for each outer row, its candidates ──▶ ON ──▶ (no match: NULLs) ──▶ filter ──▶ batch
//! ```

use std::sync::Arc;

use nfold_catalog::TableDef;
use nfold_engine::{LockWaitPolicy, PointSet, Read, ReadSpec, RowBatch, RowLock, Table};
use nfold_plan::expr::{CmpKind, Expr};
use nfold_plan::query::{
    Access, AccessKind, Block, HashKey, JoinStep, JoinType, PointPart, QueryPlan, TableSource,
};
use nfold_sql::ast::{LockStrength, LockWait};
use nfold_types::row::RowLayout;
use nfold_types::{SqlError, Value};
use smallvec::SmallVec;

use crate::batch::{BATCH_ROWS, Batch, KEPT_BYTES};
use crate::eval::{ABSENT, EvalCx, RowRef, StmtState, Val, convert};
use crate::hash::{HashTable, Place, hash_of};
use crate::keys::{BoundAccess, BoundKind};
use crate::runtime::Runtime;
use crate::spill::{Spool, SpoolRows};
use crate::tuple;

/// Outer rows whose points go into one read.
const OUTER_ROWS: usize = 256;
/// Candidates of one outer row that are looked at together, about, where there may be very many.
const PIECE_BYTES: usize = 256 << 10;

/// Where a slot's rows come from, opened.
pub(crate) enum Source {
    Table(Arc<Table>),
    Derived(Box<QueryPlan>),
    Virtual(Arc<TableDef>),
}

/// A row slot, opened: how to read its images.
pub(crate) struct Slot {
    pub source: Source,
    /// Layout of made rows; a table's own is in the table.
    made: Option<RowLayout>,
    /// A covering read gives rows in the index's layout.
    covering: Option<usize>,
    places: Option<Vec<u16>>,
}

impl Slot {
    pub fn open(
        rt: &Runtime<'_>,
        block: &Block,
        table: usize,
        access: &Access,
    ) -> Result<Slot, SqlError> {
        let source = match &block.tables[table].source {
            TableSource::Table(def) => Source::Table(rt.table(def.id)?),
            TableSource::Derived(q) => Source::Derived(q.clone()),
            TableSource::Virtual(v) => Source::Virtual(v.clone()),
        };
        let access = match &access.kind {
            AccessKind::Hash { build, .. } => build,
            _ => access,
        };
        let (mut covering, mut places, mut made) = (None, None, None);
        match &source {
            Source::Table(t) if access.covering && row_lock(rt, block) == RowLock::None => {
                covering = Some(access.index);
                let mut map = vec![ABSENT; t.def().columns.len()];
                for (place, &column) in t.index_columns(access.index).iter().enumerate() {
                    map[column] = place as u16;
                }
                places = Some(map);
            }
            Source::Table(_) => {}
            Source::Derived(q) => made = Some(tuple::layout_of(&q.types)),
            Source::Virtual(v) => {
                let types: Vec<_> = v
                    .columns
                    .iter()
                    .map(|c| nfold_plan::expr::ExprType::new(c.ty.clone(), true))
                    .collect();
                made = Some(tuple::layout_of(&types));
            }
        }
        Ok(Slot {
            source,
            made,
            covering,
            places,
        })
    }

    pub fn layout(&self) -> &RowLayout {
        match (&self.source, &self.made) {
            (_, Some(made)) => made,
            (Source::Table(t), None) => match self.covering {
                Some(i) => t.index_layout(i),
                None => t.layout(),
            },
            _ => unreachable!("derived rows have a layout of their own"),
        }
    }

    /// Where the images hold the table's column `column`; `None` where they do not.
    pub fn ordinal(&self, column: usize) -> Option<usize> {
        match &self.places {
            None => Some(column),
            Some(places) => places
                .get(column)
                .filter(|&&p| p != ABSENT)
                .map(|&p| p.into()),
        }
    }

    #[inline]
    pub fn row<'a>(&'a self, image: Option<&'a [u8]>) -> RowRef<'a> {
        RowRef {
            layout: self.layout(),
            image,
            places: self.places.as_deref(),
        }
    }
}

/// What a block's reads lock.
pub(crate) fn row_lock(rt: &Runtime<'_>, block: &Block) -> RowLock {
    match block.lock.strength {
        None if rt.lock_reads => RowLock::Shared,
        None => RowLock::None,
        Some(LockStrength::Share) => RowLock::Shared,
        Some(LockStrength::Update) => RowLock::Exclusive,
    }
}

/// How a block's tables are read.
fn read_spec(
    rt: &Runtime<'_>,
    block: &Block,
    table: usize,
    access: &Access,
    first_rows: usize,
) -> ReadSpec {
    let used = block.tables[table].used.iter().enumerate();
    let lock = row_lock(rt, block);
    ReadSpec {
        index: access.index,
        // Locks are on clustered rows, so those are read.
        covering: access.covering && lock == RowLock::None,
        lock,
        wait: match block.lock.wait {
            LockWait::Wait => LockWaitPolicy::Wait,
            LockWait::NoWait => LockWaitPolicy::NoWait,
            LockWait::SkipLocked => LockWaitPolicy::SkipLocked,
        },
        columns: used.filter(|(_, u)| **u).map(|(c, _)| c).collect(),
        first_rows,
        semi_consistent: rt.semi_consistent
            && block.joins.len() == 1
            && block.lock.strength == Some(LockStrength::Update),
    }
}

/// Reads one table by its access path.
pub(crate) struct TableReader {
    table: Arc<Table>,
    spec: ReadSpec,
    read: Option<Read>,
    pub bound: BoundAccess,
    kind: BoundKind,
    /// Next of `bound.ranges`.
    next_range: usize,
    reverse: bool,
    open: bool,
    /// What `bound` held when it was bound last: points go on to `read`, which keeps as much.
    bound_bytes: usize,
}

impl TableReader {
    pub fn new(table: Arc<Table>, spec: ReadSpec) -> TableReader {
        TableReader {
            table,
            spec,
            read: None,
            bound: BoundAccess::default(),
            kind: BoundKind::Empty,
            next_range: 0,
            reverse: false,
            open: false,
            bound_bytes: 0,
        }
    }

    /// After an execution: gives back what a long list has taken.
    fn give_back(&mut self) {
        if self.bound_bytes > KEPT_BYTES {
            self.read = None;
            self.bound = BoundAccess::default();
            self.bound_bytes = 0;
        }
    }

    /// Binds the access path; whether its conditions hold for every row found.
    pub fn bind<'a>(&mut self, cx: &EvalCx<'a>, access: &'a Access) -> Result<bool, SqlError> {
        self.reverse = access.reverse;
        self.kind = self
            .bound
            .bind(cx, &self.table, access.index, &access.kind)?;
        self.bound_bytes = self.bound.memory();
        // Points are read forwards; reading them backwards is reading their ranges.
        if self.kind == BoundKind::Points && self.reverse {
            let keys: Vec<_> = self
                .bound
                .points
                .iter()
                .map(nfold_engine::KeyRange::prefix)
                .collect();
            self.bound.ranges = keys;
            self.kind = BoundKind::Ranges;
        }
        if self.reverse {
            self.bound.ranges.reverse();
        }
        if self.kind == BoundKind::Points {
            self.bind_points();
        }
        self.next_range = 0;
        self.open = self.kind == BoundKind::Points;
        Ok(self.bound.exact)
    }

    fn bind_points(&mut self) {
        let points = std::mem::take(&mut self.bound.points);
        match &mut self.read {
            Some(read) => self.bound.points = read.bind_points(points),
            None => self.read = Some(Read::points(self.table.clone(), self.spec.clone(), points)),
        }
    }

    /// Binds these points.
    pub fn look_up(&mut self, points: PointSet) {
        self.bound.points = points;
        self.kind = BoundKind::Points;
        self.bind_points();
        self.open = true;
    }

    /// Appends rows; false: there are no more.
    pub fn next(&mut self, rt: &Runtime<'_>, out: &mut RowBatch) -> Result<bool, SqlError> {
        loop {
            if !self.open {
                if self.kind != BoundKind::Ranges || self.next_range == self.bound.ranges.len() {
                    return Ok(false);
                }
                let range = &self.bound.ranges[self.next_range];
                match &mut self.read {
                    Some(read) => read.bind_range(range, self.reverse),
                    None => {
                        self.read = Some(Read::range(
                            self.table.clone(),
                            self.spec.clone(),
                            range,
                            self.reverse,
                        ))
                    }
                }
                self.next_range += 1;
                self.open = true;
            }
            let Some(read) = &mut self.read else {
                return Ok(false);
            };
            let more = rt.read(read, out)?;
            if more {
                return Ok(true);
            }
            self.open = false;
            let last = self.kind != BoundKind::Ranges || self.next_range == self.bound.ranges.len();
            if last || !out.is_empty() {
                return Ok(!last);
            }
        }
    }

    /// Row `i` of the rows read last does not match.
    fn release(&self, rt: &Runtime<'_>, batch: &RowBatch, i: usize) {
        if let Some(read) = &self.read
            && self.spec.lock != RowLock::None
        {
            rt.release(read, batch, i);
        }
    }

    /// Row `i` of the rows read last matches: locked now if it is not yet. False: it is gone, or has changed and is to be looked at again.
    fn lock_row(&self, rt: &Runtime<'_>, batch: &mut RowBatch, i: usize) -> Result<bool, SqlError> {
        match &self.read {
            Some(read) => rt.lock_row(read, batch, i),
            None => Ok(true),
        }
    }

    /// The hidden row id of the table's rows is needed by writers; it is in the batch.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }
}

/// Candidates of one outer row that come in pieces, as they may be too many for memory.
enum More {
    /// All are there.
    No,
    /// The reader has more.
    Read,
    /// The build side's file has more.
    Spilled(Place),
}

enum Lookup {
    /// The first step, or a source read whole.
    Scan,
    /// Equality on an index: the points of many outer rows in one read.
    Batched,
    /// The access path is bound for each outer row.
    PerRow,
    Hash(Box<HashTable>),
}

/// One step.
pub(crate) struct StepExec {
    reader: Option<TableReader>,
    lookup: Lookup,
    /// Rows of the outer side at hand, and the next of them.
    outer: Batch,
    outer_at: usize,
    outer_done: bool,
    /// Candidates of the outer rows from `group_start` on.
    inner: RowBatch,
    /// For each outer row of the lookup at hand: its candidates, as places in `inner_order`.
    spans: Vec<(u32, u32)>,
    inner_order: Vec<u32>,
    group_start: usize,
    group_end: usize,
    candidate: usize,
    /// Behind the candidates at hand.
    more: More,
    matched: bool,
    pub exact: bool,
    started: bool,
    /// Rows of a derived table or view that is the first step.
    made: Option<SpoolRows>,
}

impl StepExec {
    pub fn new(
        rt: &Runtime<'_>,
        block: &Block,
        step: &JoinStep,
        position: usize,
        first_rows: usize,
    ) -> Result<StepExec, SqlError> {
        let (access, hash) = match &step.access.kind {
            AccessKind::Hash { build, .. } => (&**build, true),
            _ => (&step.access, false),
        };
        let reader = match &block.tables[step.table].source {
            TableSource::Table(def) => Some(TableReader::new(
                rt.table(def.id)?,
                read_spec(rt, block, step.table, access, first_rows),
            )),
            _ => None,
        };
        let lookup = match &step.access.kind {
            _ if hash => Lookup::Hash(Box::default()),
            _ if position == 0 => Lookup::Scan,
            AccessKind::Points(parts)
                if parts.iter().all(|p| matches!(p, PointPart::Eq { .. })) =>
            {
                Lookup::Batched
            }
            AccessKind::Empty | AccessKind::Source => Lookup::Hash(Box::default()),
            _ => Lookup::PerRow,
        };
        Ok(StepExec {
            reader,
            lookup,
            outer: Batch::new(if position <= 1 { 0 } else { position }),
            outer_at: 0,
            outer_done: false,
            inner: RowBatch::new(),
            spans: Vec::new(),
            inner_order: Vec::new(),
            group_start: 0,
            group_end: 0,
            candidate: 0,
            more: More::No,
            matched: false,
            exact: true,
            started: false,
            made: None,
        })
    }

    /// After an execution: closes files, gives back what is more than usual.
    pub fn release(&mut self) {
        self.made = None;
        self.outer.release();
        if self.inner.memory() > KEPT_BYTES {
            self.inner = RowBatch::new();
        }
        if let Some(reader) = &mut self.reader {
            reader.give_back();
        }
        if let Lookup::Hash(table) = &mut self.lookup {
            table.release();
        }
    }

    /// Ready for the next execution; keeps all memory.
    pub fn reset(&mut self) {
        self.outer.clear();
        (self.outer_at, self.outer_done) = (0, false);
        self.inner.clear();
        self.spans.clear();
        (self.group_start, self.group_end, self.candidate) = (0, 0, 0);
        (self.matched, self.exact, self.started) = (false, true, false);
        (self.made, self.more) = (None, More::No);
        if let Lookup::Hash(table) = &mut self.lookup {
            table.clear();
        }
    }
}

/// The row slots of a block.
pub(crate) type RowRefs<'a> = SmallVec<[RowRef<'a>; 4]>;

/// What steps share while a block runs.
pub(crate) struct StepCx<'r, 's> {
    pub rt: &'r Runtime<'s>,
    pub block: &'r Block,
    pub slots: &'r [Slot],
    pub state: &'r StmtState<'r>,
    pub outer_rows: &'r [&'r [RowRef<'r>]],
}

impl<'r> StepCx<'r, '_> {
    /// Row slots with nothing in them.
    pub fn empty_rows(&self) -> RowRefs<'r> {
        self.slots.iter().map(|s| s.row(None)).collect()
    }

    /// An evaluation over `rows`.
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

    /// The next batch of joined rows of step `position`; false: no more.
    pub fn next(
        &self,
        steps: &mut [StepExec],
        position: usize,
        out: &mut Batch,
    ) -> Result<bool, SqlError> {
        out.clear();
        if position == 0 {
            return self.first(&mut steps[0], out);
        }
        loop {
            let (before, rest) = steps.split_at_mut(position);
            let me = &mut rest[0];
            if me.outer_at >= me.outer.len() {
                if me.outer_done {
                    return Ok(!out.is_empty());
                }
                let mut outer = std::mem::take(&mut me.outer);
                let more = self.next(before, position - 1, &mut outer);
                let me = &mut steps[position];
                me.outer = outer;
                me.outer_at = 0;
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

    fn first(&self, me: &mut StepExec, out: &mut Batch) -> Result<bool, SqlError> {
        let step = &self.block.joins[0];
        if !me.started {
            me.started = true;
            if let Some(reader) = &mut me.reader {
                me.exact = reader.bind(&self.eval(&self.empty_rows()), &step.access)?;
            }
        }
        loop {
            out.clear();
            let more = match &mut me.reader {
                Some(reader) => reader.next(self.rt, &mut out.read)?,
                None => self.made(me, step, &mut out.read)?,
            };
            out.select_all();
            let filtered = !step.filter.is_empty() || !me.exact;
            if let Some(reader) = &me.reader
                && reader.spec.lock != RowLock::None
                && (filtered || reader.spec.semi_consistent)
            {
                self.select_locked(me, reader, step, out)?;
            } else if filtered {
                let slot = &self.slots[step.table];
                let mut rows = self.empty_rows();
                out.selected.clear();
                for i in 0..out.read.len() {
                    rows[step.table] = slot.row(Some(out.read.row(i)));
                    let cx = self.eval(&rows);
                    if (me.exact || cx.passes(&step.access.implied)?) && cx.passes(&step.filter)? {
                        out.selected.push(i as u32);
                    }
                }
            }
            if !out.is_empty() || !more {
                return Ok(more || !out.is_empty());
            }
        }
    }

    /// Selects the rows of a locking read that pass: they are locked then, those that do not pass are let go.
    fn select_locked(
        &self,
        me: &StepExec,
        reader: &TableReader,
        step: &JoinStep,
        out: &mut Batch,
    ) -> Result<(), SqlError> {
        out.selected.clear();
        let mut i = 0;
        while i < out.read.len() {
            let passes = {
                let mut rows = self.empty_rows();
                rows[step.table] = self.slots[step.table].row(Some(out.read.row(i)));
                let cx = self.eval(&rows);
                (me.exact || cx.passes(&step.access.implied)?) && cx.passes(&step.filter)?
            };
            if !passes {
                reader.release(self.rt, &out.read, i);
            } else if !out.read.is_unlocked(i) {
                out.selected.push(i as u32);
            } else if reader.lock_row(self.rt, &mut out.read, i)? {
                continue; // it may have changed meanwhile: look again
            }
            i += 1;
        }
        Ok(())
    }

    /// Some rows of a derived table or view; false: no more.
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
            let mut spool = Spool::new(self.rt.env.work_memory());
            self.all_made(step.table, &mut |image| spool.push(self.rt, 0, image))?;
            me.made = Some(spool.into_rows(self.rt)?);
        }
        let Some(rows) = &mut me.made else {
            return Ok(false);
        };
        self.rt.tick()?;
        while out.len() < BATCH_ROWS && out.bytes() < PIECE_BYTES {
            let Some((_, image)) = rows.next(self.rt)? else {
                return Ok(false);
            };
            out.push(0, image);
        }
        Ok(true)
    }

    fn all_made(
        &self,
        table: usize,
        push: &mut dyn FnMut(&[u8]) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        let slot = &self.slots[table];
        match &slot.source {
            Source::Derived(q) => {
                crate::query::collect(self.rt, q, self.outer_rows, slot.layout(), push)
            }
            Source::Virtual(v) => {
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
            Source::Table(_) => Ok(()),
        }
    }

    /// Joins outer rows until the batch is full or the outer rows at hand are used up.
    fn join(&self, me: &mut StepExec, position: usize, out: &mut Batch) -> Result<(), SqlError> {
        let step = &self.block.joins[position];
        if me.outer_at >= me.group_end {
            self.look_up(me, position)?;
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
        let (start, end) = me.spans[me.outer_at - me.group_start];
        let slot = &self.slots[step.table];
        // What the access path promises is tested where values did not convert exactly, and for hash keys.
        let (candidates, promised) = match &me.lookup {
            Lookup::Hash(table) if table.is_spilled() => (&me.inner, false),
            Lookup::Hash(table) => (&table.rows, false),
            _ => (&me.inner, me.exact),
        };
        let mut n = (start as usize).max(me.candidate);
        while n < end as usize {
            let image = candidates.row(me.inner_order[n] as usize);
            n += 1;
            rows[step.table] = slot.row(Some(image));
            let cx = self.eval(&rows);
            if !((promised || cx.passes(&step.access.implied)?) && cx.passes(&step.on)?) {
                continue;
            }
            me.matched = true;
            if cx.passes(&step.filter)? {
                for p in 0..position {
                    out.push_image(me.outer.image(me.outer_at, p));
                }
                out.push_image(Some(image));
                if out.is_full() && n < end as usize {
                    me.candidate = n;
                    return Ok(());
                }
            }
        }
        if !matches!(me.more, More::No) {
            drop(rows);
            return self.next_piece(me);
        }
        if !me.matched && step.kind == JoinType::Left {
            rows[step.table] = slot.row(None);
            if self.eval(&rows).passes(&step.filter)? {
                for p in 0..position {
                    out.push_image(me.outer.image(me.outer_at, p));
                }
                out.push_image(None);
            }
        }
        me.outer_at += 1;
        me.candidate = 0;
        me.matched = false;
        Ok(())
    }

    /// Finds the candidates of outer rows from `outer_at` on.
    fn look_up(&self, me: &mut StepExec, position: usize) -> Result<(), SqlError> {
        let step = &self.block.joins[position];
        me.group_start = me.outer_at;
        me.spans.clear();
        me.inner_order.clear();
        me.candidate = 0;
        me.more = More::No;
        me.exact = true;
        self.rt.tick()?;
        match me.lookup {
            Lookup::Batched => self.look_up_batched(me, step),
            Lookup::Hash(_) => self.look_up_hash(me, step),
            Lookup::Scan | Lookup::PerRow => self.look_up_one(me, step),
        }
    }

    /// The candidates of one outer row, in pieces.
    fn look_up_one(&self, me: &mut StepExec, step: &JoinStep) -> Result<(), SqlError> {
        let mut rows = self.empty_rows();
        self.fill(&me.outer, me.outer_at, &mut rows);
        if let Some(reader) = &mut me.reader {
            me.exact = reader.bind(&self.eval(&rows), &step.access)?;
            me.more = More::Read;
        }
        drop(rows);
        me.group_end = me.outer_at + 1;
        self.next_piece(me)
    }

    /// Reads the next candidates of the only outer row of the group.
    fn next_piece(&self, me: &mut StepExec) -> Result<(), SqlError> {
        me.inner.clear();
        while me.inner.bytes() < PIECE_BYTES {
            me.more = match std::mem::replace(&mut me.more, More::No) {
                More::No => break,
                More::Read => match &mut me.reader {
                    Some(reader) => match reader.next(self.rt, &mut me.inner)? {
                        true => More::Read,
                        false => More::No,
                    },
                    None => More::No,
                },
                More::Spilled(place) => match &mut me.lookup {
                    Lookup::Hash(table) => match table.spilled() {
                        Some(file) => file
                            .next(self.rt, place, &mut me.inner)?
                            .map_or(More::No, More::Spilled),
                        None => More::No,
                    },
                    _ => More::No,
                },
            };
        }
        me.candidate = 0;
        me.inner_order.clear();
        me.inner_order.extend(0..me.inner.len() as u32);
        me.spans.clear();
        me.spans.push((0, me.inner.len() as u32));
        Ok(())
    }

    fn look_up_batched(&self, me: &mut StepExec, step: &JoinStep) -> Result<(), SqlError> {
        let Some(reader) = &mut me.reader else {
            return Ok(());
        };
        let end = (me.outer_at + OUTER_ROWS).min(me.outer.len());
        let mut keys: Vec<Option<Vec<u8>>> = Vec::with_capacity(end - me.outer_at);
        let mut points = PointSet::new();
        for i in me.outer_at..end {
            let mut rows = self.empty_rows();
            self.fill(&me.outer, i, &mut rows);
            let cx = self.eval(&rows);
            let table = reader.table().clone();
            let kind = reader
                .bound
                .bind(&cx, &table, step.access.index, &step.access.kind)?;
            me.exact &= reader.bound.exact;
            let key = (kind == BoundKind::Points).then(|| reader.bound.points.key(0).to_vec());
            if let Some(key) = &key {
                points.push(key);
            }
            keys.push(key);
        }
        points.seal();
        let places: Vec<Option<usize>> = keys
            .iter()
            .map(|k| k.as_ref().and_then(|k| place_of(&points, k)))
            .collect();
        let count = points.len();
        me.inner.clear();
        if count > 0 {
            reader.look_up(points);
            while reader.next(self.rt, &mut me.inner)? {
                if me.inner.bytes() > self.rt.env.work_memory().max(PIECE_BYTES) {
                    return self.look_up_one(me, step);
                }
            }
        }
        // Rows by point.
        let mut starts = vec![0u32; count + 1];
        for i in 0..me.inner.len() {
            starts[me.inner.point(i) + 1] += 1;
        }
        for p in 0..count {
            starts[p + 1] += starts[p];
        }
        let mut next = starts.clone();
        me.inner_order.resize(me.inner.len(), 0);
        for i in 0..me.inner.len() {
            let p = me.inner.point(i);
            me.inner_order[next[p] as usize] = i as u32;
            next[p] += 1;
        }
        me.spans.extend(
            places
                .iter()
                .map(|p| p.map_or((0, 0), |p| (starts[p], starts[p + 1]))),
        );
        me.group_end = end;
        Ok(())
    }

    fn look_up_hash(&self, me: &mut StepExec, step: &JoinStep) -> Result<(), SqlError> {
        let keys: &[HashKey] = match &step.access.kind {
            AccessKind::Hash { keys, .. } => keys,
            _ => &[],
        };
        let built = matches!(&me.lookup, Lookup::Hash(t) if t.built);
        if !built {
            self.build(me, step, keys)?;
        }
        let Lookup::Hash(table) = &mut me.lookup else {
            return Ok(());
        };
        let mut key = Vec::new();
        if let Some(file) = table.spilled() {
            let mut rows = self.empty_rows();
            self.fill(&me.outer, me.outer_at, &mut rows);
            if hash_key(&self.eval(&rows), keys, |k| &k.outer, &mut key)? {
                me.more = More::Spilled(file.find(hash_of(&key)));
            }
            drop(rows);
            me.group_end = me.outer_at + 1;
            return self.next_piece(me);
        }
        for i in me.outer_at..me.outer.len() {
            let mut rows = self.empty_rows();
            self.fill(&me.outer, i, &mut rows);
            let cx = self.eval(&rows);
            let start = me.inner_order.len() as u32;
            if hash_key(&cx, keys, |k| &k.outer, &mut key)? {
                me.inner_order
                    .extend_from_slice(table.places(hash_of(&key)));
            }
            me.spans.push((start, me.inner_order.len() as u32));
            me.group_end = i + 1;
            if me.inner_order.len() > 4 * BATCH_ROWS {
                break;
            }
        }
        Ok(())
    }

    fn build(&self, me: &mut StepExec, step: &JoinStep, keys: &[HashKey]) -> Result<(), SqlError> {
        let Lookup::Hash(table) = &mut me.lookup else {
            return Ok(());
        };
        table.clear();
        let slot = &self.slots[step.table];
        let mut key = Vec::new();
        let mut add = |image: &[u8]| -> Result<(), SqlError> {
            let mut rows = self.empty_rows();
            rows[step.table] = slot.row(Some(image));
            if hash_key(&self.eval(&rows), keys, |k| &k.inner, &mut key)? {
                table.push(self.rt, hash_of(&key), image)?;
            }
            Ok(())
        };
        match (&mut me.reader, &step.access.kind) {
            (Some(reader), AccessKind::Hash { build, .. }) => {
                let exact = reader.bind(&self.eval(&self.empty_rows()), build)?;
                let mut batch = RowBatch::new();
                let mut more = true;
                while more {
                    batch.clear();
                    more = reader.next(self.rt, &mut batch)?;
                    for image in batch.iter() {
                        let mut rows = self.empty_rows();
                        rows[step.table] = slot.row(Some(image));
                        if exact || self.eval(&rows).passes(&build.implied)? {
                            add(image)?;
                        }
                    }
                }
            }
            (None, kind) if !matches!(kind, AccessKind::Empty) => {
                self.all_made(step.table, &mut add)?;
            }
            _ => {}
        }
        table.finish(self.rt)
    }
}

/// The hash key of a row; false where a part is NULL, which equals nothing.
fn hash_key<'a>(
    cx: &EvalCx<'a>,
    keys: &'a [HashKey],
    side: impl Fn(&'a HashKey) -> &'a Expr,
    out: &mut Vec<u8>,
) -> Result<bool, SqlError> {
    out.clear();
    for key in keys {
        let e = side(key);
        let v = cx.val(e)?;
        if !normal_key(cx, &v, e, key.kind, out) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Bytes that are equal exactly when values compare equal under `kind`. False for NULL.
pub(crate) fn normal_key(
    cx: &EvalCx<'_>,
    v: &Val<'_>,
    e: &Expr,
    kind: CmpKind,
    out: &mut Vec<u8>,
) -> bool {
    let done = match kind {
        CmpKind::Int => {
            convert::to_integer(cx, v, &e.ty).map(|i| out.extend_from_slice(&i.to_le_bytes()))
        }
        CmpKind::Decimal => convert::to_decimal(cx, v, &e.ty).map(|d| {
            let d = d.without_trailing_zeros();
            d.write_to(out);
            out.push(0);
        }),
        CmpKind::Double => convert::to_f64(cx, v, &e.ty)
            .map(|f| out.extend_from_slice(&(f + 0.0).to_bits().to_le_bytes())),
        CmpKind::String(collation) => convert::to_text(cx, v.clone(), &e.ty, collation).map(|t| {
            let start = out.len();
            collation.known().sort_key(&t, out);
            let len = (out.len() - start) as u32;
            out.extend_from_slice(&len.to_le_bytes());
        }),
        CmpKind::DateTime => {
            // A text that is no date is the zero date.
            let text = matches!(v, Val::Bytes(_)) || (e.ty.col.is_enum_or_set() && !v.is_null());
            let text = text.then_some(nfold_types::DateTime::ZERO);
            let found = convert::to_datetime(cx, v, &e.ty).or(text);
            found.map(|d| out.extend_from_slice(&d.packed().to_le_bytes()))
        }
        CmpKind::Time => {
            convert::to_time(cx, v, &e.ty).map(|t| out.extend_from_slice(&t.micros().to_le_bytes()))
        }
    };
    done.is_some()
}

/// The number of a key among sealed points.
fn place_of(points: &PointSet, key: &[u8]) -> Option<usize> {
    let (mut lo, mut hi) = (0, points.len());
    while lo < hi {
        let mid = (lo + hi) / 2;
        match points.key(mid).cmp(key) {
            std::cmp::Ordering::Equal => return Some(mid),
            std::cmp::Ordering::Less => lo = mid + 1,
            std::cmp::Ordering::Greater => hi = mid,
        }
    }
    None
}
