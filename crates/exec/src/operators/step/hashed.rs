//! Hash joins: the table's rows are read once into a hash table, in which the outer rows find their
//! candidates.
//!
//! # Invariants
//! H1. Candidates are a superset of the matching rows, so the join tests its conditions on them;
//!     except an equality that equal hashes imply ([`ImpliedConditions`]).

use std::time::Instant;

use nfold_plan::expr::{CmpKind, Expr, ExprKind};
use nfold_plan::query::{AccessKind, HashKey, JoinStep, JoinType};
use nfold_sql::ast::BinaryOp;
use nfold_types::row::RowLayout;
use nfold_types::{Checkpoint, SqlError};

use super::integer_keys::IntegerKeys;
use super::nested_outer::is_null_extended;
use super::{
    CANDIDATE_WORK, CANDIDATES, Lookup, MoreCandidates, RowRefs, StepCx, StepExec, hash_access,
};
use crate::env::batch::{BATCH_ROWS, Batch};
use crate::expr::eval::tuple::normal_key;
use crate::expr::eval::{EvalCx, compare};
use crate::operators::hash::{HashTable, hash_of, with_id};
use crate::runtime::Runtime;
use crate::runtime::profile::{Counts, Stage};

/// The keys of a hash join, prepared for one execution.
#[derive(Default)]
pub(super) struct JoinKeys {
    /// How integer columns are read; `None`: the evaluator computes the keys.
    integers: Option<IntegerKeys>,
    pub implied: ImpliedConditions,
    /// The key of the current row.
    key: Vec<u8>,
}

/// The conditions of a step that need not be tested on candidates, as bit sets.
#[derive(Default, Clone, Copy)]
pub(super) struct ImpliedConditions {
    /// Of `JoinStep::access`, of the ON conditions, and of the filter.
    pub access: u64,
    pub on: u64,
    pub filter: u64,
}

impl ImpliedConditions {
    fn new(step: &JoinStep, keys: &[HashKey], integers: Option<&IntegerKeys>) -> ImpliedConditions {
        let [key] = keys else {
            return ImpliedConditions::default();
        };
        let exact = integers.is_some_and(IntegerKeys::is_exact);
        let is_key = |e: &Expr| match &e.kind {
            ExprKind::Compare {
                op: BinaryOp::Eq,
                kind,
                sides,
            } => {
                let [a, b] = &**sides;
                let same = (a, b) == (&key.inner, &key.outer) || (a, b) == (&key.outer, &key.inner);
                exact && *kind == key.kind && same
            }
            _ => false,
        };
        let set = |list: &[Expr]| {
            let list = list.iter().take(u64::BITS as usize).enumerate();
            let implied = list.filter(|(_, e)| is_key(e));
            implied.fold(0, |set, (n, _)| set | 1 << n)
        };
        ImpliedConditions {
            // The rows of a planned hash table have passed these conditions.
            access: match &step.access.kind {
                AccessKind::Hash { .. } => u64::MAX,
                _ => set(&step.access.implied),
            },
            on: set(&step.on),
            filter: set(&step.filter),
        }
    }
}

/// Whether a row passes the conditions that are not in the bit set `implied`.
#[inline]
pub(super) fn passes_others<'a>(
    cx: &EvalCx<'a>,
    conditions: &'a [Expr],
    implied: u64,
) -> Result<bool, SqlError> {
    match implied {
        0 => return cx.passes(conditions),
        u64::MAX => return Ok(true),
        _ => {}
    }
    for (n, e) in conditions.iter().enumerate() {
        let known = n < u64::BITS as usize && implied >> n & 1 == 1;
        if !known && !cx.passes(std::slice::from_ref(e))? {
            return Ok(false);
        }
    }
    Ok(true)
}

impl JoinKeys {
    /// The memory that it holds, in bytes.
    pub fn memory(&self) -> usize {
        self.key.capacity()
    }

    /// Prepares the keys of a step.
    pub fn prepare(&mut self, cx: &StepCx<'_, '_>, step: &JoinStep, keys: &[HashKey]) {
        self.integers = IntegerKeys::new(cx, step, keys);
        self.implied = ImpliedConditions::new(step, keys, self.integers.as_ref());
    }

    /// The hash of row `i` of the outer side, which finds nothing if it is `None`. `rows` is a
    /// buffer.
    pub fn outer<'a>(
        &mut self,
        cx: &'a StepCx<'_, '_>,
        (step, keys): (&JoinStep, &[HashKey]),
        (outer, i): (&'a Batch, usize),
        rows: &mut RowRefs<'a>,
    ) -> Result<Option<u64>, SqlError> {
        if self.integers.is_none() || step.nested_join.is_some() {
            cx.fill(outer, i, rows);
            if is_null_extended(step, rows) {
                return Ok(None);
            }
        }
        if let Some(integers) = &self.integers {
            return Ok(integers.outer(outer, i));
        }
        let found = hash_key(&cx.eval(rows), keys, outer_side, &mut self.key)?;
        Ok(found.then(|| hash_of(&self.key)))
    }

    /// The hash of a row of the inner side, which `cx` sees; `None`: it is never found.
    pub fn inner<'a>(
        &mut self,
        cx: &EvalCx<'a>,
        keys: &'a [HashKey],
        image: &[u8],
    ) -> Result<Option<u64>, SqlError> {
        if let Some(integers) = &self.integers {
            return Ok(integers.inner(image));
        }
        let found = hash_key(cx, keys, inner_side, &mut self.key)?;
        Ok(found.then(|| hash_of(&self.key)))
    }
}

/// The keys, and the conditions on the table alone, of a hash table.
pub(super) fn keys_and_filter(step: &JoinStep, switches: bool) -> (&[HashKey], &[Expr]) {
    match &hash_access(step, switches).kind {
        AccessKind::Hash { keys, filter, .. } => (keys, filter),
        _ => (&[], &[]),
    }
}

impl StepExec {
    /// The hash table, if it is in memory and is probed without further ado.
    pub(super) fn has_plain_hash(&self, step: &JoinStep) -> bool {
        let plain = step.nested_join.is_none() && self.kept.is_none();
        plain && matches!(&self.lookup, Lookup::Hash(table) if !table.is_spilled())
    }
}

impl StepCx<'_, '_> {
    /// Finds the candidates of outer rows from `outer_at` on in the hash table.
    pub(super) fn look_up_hash(&self, me: &mut StepExec, step: &JoinStep) -> Result<(), SqlError> {
        let (keys, _) = keys_and_filter(step, me.switch.is_some());
        let built = matches!(&me.lookup, Lookup::Hash(t) if t.built);
        if !built {
            me.join_keys.prepare(self, step, keys);
            self.build(me, step, keys)?;
        }
        let Lookup::Hash(table) = &mut me.lookup else {
            return Ok(());
        };
        let mut rows = self.empty_rows();
        if let Some(file) = table.spilled() {
            if me.hashes.is_empty() {
                // Computed once for the outer batch, so that one request reads many blocks.
                me.hashes.resize(me.outer_at, None);
                for i in me.outer_at..me.outer.len() {
                    let outer = (&me.outer, i);
                    let hash = me.join_keys.outer(self, (step, keys), outer, &mut rows)?;
                    me.hashes.push(hash);
                }
            }
            if let Some(hash) = me.hashes[me.outer_at] {
                let ahead = me.hashes[me.outer_at..].iter().flatten();
                file.prefetch(self.rt, ahead.copied())?;
                me.more = MoreCandidates::Spilled(file.find(hash));
            }
            me.group_end = me.outer_at + 1;
            drop(rows);
            return self.next_piece(me, step);
        }
        for i in me.outer_at..me.outer.len() {
            let start = me.inner_order.len() as u32;
            let outer = (&me.outer, i);
            if let Some(hash) = me.join_keys.outer(self, (step, keys), outer, &mut rows)? {
                me.inner_order.extend(table.places(hash));
            }
            me.spans.push((start, me.inner_order.len() as u32));
            me.group_end = i + 1;
            if me.inner_order.len() > 4 * BATCH_ROWS {
                break;
            }
        }
        Ok(())
    }

    /// Builds the hash tables that the plan wants before the first row. Returns whether one of them
    /// is empty, so that the join has no rows.
    #[inline(never)]
    pub fn finds_empty_side(&self, steps: &mut [StepExec]) -> Result<bool, SqlError> {
        if self.block.joins[0].builds_early && !self.read_ahead(steps)? {
            return Ok(true);
        }
        for (position, step) in self.block.joins.iter().enumerate() {
            let me = &mut steps[position];
            if !step.builds_early || !matches!(me.lookup, Lookup::Hash(_)) {
                continue;
            }
            let (keys, _) = keys_and_filter(step, false);
            me.join_keys.prepare(self, step, keys);
            let (examined, start) = (self.rt.examined.get(), Instant::now());
            self.build(me, step, keys)?;
            if let Some(profile) = &self.rt.profile {
                let counts = Counts {
                    loops: 1,
                    rows: self.rt.examined.get() - examined,
                    first: start.elapsed(),
                    last: start.elapsed(),
                };
                profile.add(self.block, Stage::Read(position), counts);
            }
            if matches!(&me.lookup, Lookup::Hash(table) if table.is_empty()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads the first batch of the first step for the second one. Returns whether it has a row.
    fn read_ahead(&self, steps: &mut [StepExec]) -> Result<bool, SqlError> {
        let (first, rest) = steps.split_at_mut(1);
        let me = &mut rest[0];
        let mut outer = std::mem::take(&mut me.outer);
        let more = self.next(first, 0, &mut outer);
        (me.outer, me.outer_at) = (outer, 0);
        me.outer_done = !more?;
        Ok(!me.outer.is_empty())
    }

    /// Reads the table's rows into the hash table.
    fn build(&self, me: &mut StepExec, step: &JoinStep, keys: &[HashKey]) -> Result<(), SqlError> {
        let Lookup::Hash(table) = &mut me.lookup else {
            return Ok(());
        };
        table.clear();
        let slot = &self.slots[step.table];
        let access = hash_access(step, me.switch.is_some());
        let (_, filter) = keys_and_filter(step, me.switch.is_some());
        let mut adder = Adder {
            table,
            keys,
            join_keys: &mut me.join_keys,
            whole: Vec::new(),
            has_ids: slot.has_ids,
            distinct: self.distinct_columns(step, keys),
            layout: slot.layout(),
        };
        match (&mut me.reader, &access.kind) {
            (Some(reader), AccessKind::Hash { build, .. }) => {
                let rows = self.empty_rows();
                let cx = self.eval(&rows);
                reader.choose_parts(&cx, &self.block.tables[step.table].documents)?;
                let exact = reader.bind(&cx, build)?;
                let own = match reader.gives_up(self.rt) {
                    true => conditions_of(step),
                    false => Vec::new(),
                };
                me.kernel.compile(self, step.table, filter);
                let batch = &mut me.inner;
                let mut more = true;
                while more {
                    batch.clear();
                    more = reader.next(self.rt, batch)?;
                    self.rt.checkpoint(CANDIDATE_WORK * batch.len() as u64)?;
                    let mut rows = self.empty_rows();
                    for i in 0..batch.len() {
                        let image = batch.row(i);
                        rows[step.table] = slot.row(Some(image));
                        let cx = self.eval(&rows);
                        if me.kernel.passes(&cx, slot.layout(), image, filter)?
                            && (exact || cx.passes(&build.implied)?)
                            && passes_all(&cx, &own)?
                        {
                            adder.add(self.rt, &cx, image, batch.row_id(i))?;
                        } else {
                            reader.release(self.rt, batch, i);
                        }
                    }
                }
            }
            (None, kind) if !matches!(kind, AccessKind::Empty) => {
                me.kernel.compile(self, step.table, filter);
                let kernel = &me.kernel;
                self.all_made(step.table, &mut |image| {
                    let mut rows = self.empty_rows();
                    rows[step.table] = slot.row(Some(image));
                    let cx = self.eval(&rows);
                    match kernel.passes(&cx, slot.layout(), image, filter)? {
                        true => adder.add(self.rt, &cx, image, None),
                        false => Ok(()),
                    }
                })?;
            }
            _ => {}
        }
        table.finish(self.rt)
    }

    /// The columns by which the rows of a semi or anti join's hash table are distinct: those that
    /// the block reads. `None`: equal rows are not worth a search, as the first candidate decides.
    fn distinct_columns(&self, step: &JoinStep, keys: &[HashKey]) -> Option<Vec<usize>> {
        let is_key = |e: &Expr| match &e.kind {
            ExprKind::Compare { op, sides, .. } => {
                let [a, b] = &**sides;
                let same = |key: &HashKey| {
                    (a, b) == (&key.inner, &key.outer) || (a, b) == (&key.outer, &key.inner)
                };
                *op == BinaryOp::Eq && keys.iter().any(same)
            }
            _ => false,
        };
        let decides = matches!(step.kind, JoinType::Semi | JoinType::Anti);
        let slot = &self.slots[step.table];
        if !decides || slot.has_ids || step.on.iter().all(is_key) {
            return None;
        }
        let used = self.block.tables[step.table].used.iter().enumerate();
        used.filter(|(_, used)| **used)
            .map(|(column, _)| slot.ordinal(column))
            .collect()
    }

    /// Joins outer rows of the current lookup with their candidates in a plain hash table, until
    /// the batch is full.
    pub(super) fn join_hashed(
        &self,
        me: &mut StepExec,
        step: &JoinStep,
        position: usize,
        out: &mut Batch,
    ) -> Result<(), SqlError> {
        let slot = &self.slots[step.table];
        let StepExec {
            lookup: Lookup::Hash(table),
            outer,
            outer_at,
            group_start,
            group_end,
            spans,
            inner_order,
            candidate,
            matched,
            join_keys,
            filter_kernel,
            ..
        } = me
        else {
            return Ok(());
        };
        let mut kernel = filter_kernel.as_deref_mut();
        let (outer, implied) = (&*outer, join_keys.implied);
        let keeps_unmatched = matches!(step.kind, JoinType::Left | JoinType::Anti);
        let mut rows = self.empty_rows();
        while *outer_at < *group_end && !out.is_full() {
            let (start, end) = spans[*outer_at - *group_start];
            if start < end || keeps_unmatched {
                self.fill(outer, *outer_at, &mut rows);
            }
            let mut n = (start as usize).max(*candidate);
            while n < end as usize {
                let row = table.rows.row(inner_order[n] as usize);
                let (image, id) = match slot.has_ids {
                    true => with_id(row),
                    false => (row, None),
                };
                n += 1;
                if n.is_multiple_of(CANDIDATES) {
                    self.rt.checkpoint(CANDIDATE_WORK * CANDIDATES as u64)?;
                }
                rows[step.table] = slot.row(Some(image));
                let cx = self.eval(&rows);
                if !(passes_others(&cx, &step.access.implied, implied.access)?
                    && passes_others(&cx, &step.on, implied.on)?)
                {
                    continue;
                }
                *matched = true;
                if step.kind == JoinType::Anti {
                    break;
                }
                let passes = match &mut kernel {
                    Some(kernel) if implied.filter == 0 => {
                        kernel.passes_filter(self, step, &cx, image)?
                    }
                    _ => passes_others(&cx, &step.filter, implied.filter)?,
                };
                if passes {
                    for p in 0..position {
                        out.push_of(outer, *outer_at, p);
                    }
                    out.push_row(Some(image), id);
                }
                if step.kind == JoinType::Semi {
                    break;
                }
                if out.is_full() && n < end as usize {
                    *candidate = n;
                    return Ok(());
                }
            }
            if keeps_unmatched && !*matched {
                rows[step.table] = slot.row(None);
                self.push_unmatched(&rows, step, (outer, *outer_at), out)?;
            }
            (*outer_at, *candidate, *matched) = (*outer_at + 1, 0, false);
        }
        Ok(())
    }

    /// Adds an outer row that has no match, as in `rows`, if it passes the filter.
    pub(super) fn push_unmatched<'a>(
        &'a self,
        rows: &'a [crate::expr::eval::RowRef<'a>],
        step: &'a JoinStep,
        (outer, i): (&Batch, usize),
        out: &mut Batch,
    ) -> Result<(), SqlError> {
        if self.eval(rows).passes(&step.filter)? {
            for p in 0..outer.width() {
                out.push_of(outer, i, p);
            }
            out.push_row(None, None);
        }
        Ok(())
    }
}

/// Adds rows to a hash table.
struct Adder<'t> {
    table: &'t mut HashTable,
    keys: &'t [HashKey],
    join_keys: &'t mut JoinKeys,
    /// A buffer for a row with its id.
    whole: Vec<u8>,
    has_ids: bool,
    /// See [`StepCx::distinct_columns`].
    distinct: Option<Vec<usize>>,
    layout: &'t RowLayout,
}

impl<'t> Adder<'t> {
    /// Adds the row of `cx`, unless a part of its key is NULL.
    fn add<'a>(
        &mut self,
        rt: &Runtime<'_>,
        cx: &EvalCx<'a>,
        image: &[u8],
        id: Option<u64>,
    ) -> Result<(), SqlError>
    where
        't: 'a,
    {
        let Some(hash) = self.join_keys.inner(cx, self.keys, image)? else {
            return Ok(());
        };
        if let Some(columns) = &self.distinct {
            let layout = self.layout;
            let equal = |row: &[u8], &column: &usize| {
                matches!((layout.raw(row, column), layout.raw(image, column)),
                    (Ok(a), Ok(b)) if a == b)
            };
            let known = |row: &[u8]| columns.iter().all(|column| equal(row, column));
            if self.table.has_recent(hash, known) {
                return Ok(());
            }
        }
        if !self.has_ids {
            return self.table.push(rt, hash, image);
        }
        self.whole.clear();
        self.whole.extend_from_slice(image);
        self.whole.extend_from_slice(&id.unwrap_or(0).to_le_bytes());
        self.table.push(rt, hash, &self.whole)
    }
}

/// The conditions that read the step's table only, in the order of evaluation. A row that does not
/// pass them is part of no joined row.
fn conditions_of(step: &JoinStep) -> Vec<&Expr> {
    let conditions = match (step.kind, &step.nested_join) {
        (JoinType::Inner, None) => &step.filter,
        _ => &step.on,
    };
    let asks_more = |e: &Expr| match &e.kind {
        ExprKind::Column(at) => usize::from(at.table) != step.table,
        ExprKind::Call { .. } | ExprKind::AssignUserVar(..) | ExprKind::Subquery { .. } => true,
        _ => false,
    };
    let own = |e: &&Expr| !e.any(&mut |e| asks_more(e));
    conditions.iter().filter(own).collect()
}

fn passes_all(cx: &EvalCx<'_>, conditions: &[&Expr]) -> Result<bool, SqlError> {
    for e in conditions {
        if !cx.passes(std::slice::from_ref(*e))? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The outer side of an equality, then the side that it is compared with.
fn outer_side(key: &HashKey) -> (&Expr, &Expr) {
    (&key.outer, &key.inner)
}

/// The inner side of an equality, then the side that it is compared with.
fn inner_side(key: &HashKey) -> (&Expr, &Expr) {
    (&key.inner, &key.outer)
}

/// In a key: whether a part that is compared by `<=>` is NULL.
const IS_NULL: u8 = 1;
const NOT_NULL: u8 = 0;

/// Appends the hash key of a row. Returns false if a part is NULL, which equals nothing.
fn hash_key<'a>(
    cx: &EvalCx<'a>,
    keys: &'a [HashKey],
    side: impl Fn(&'a HashKey) -> (&'a Expr, &'a Expr),
    out: &mut Vec<u8>,
) -> Result<bool, SqlError> {
    out.clear();
    for key in keys {
        let (e, other) = side(key);
        let mut v = cx.val(e)?;
        if key.kind == CmpKind::DateTime {
            v = compare::day_of_text(cx, e, v, &other.ty.col);
        }
        let start = out.len();
        if key.null_safe {
            out.push(NOT_NULL);
        }
        if !normal_key(cx, (&v, &e.ty), key.kind, out) {
            if !key.null_safe {
                return Ok(false);
            }
            out.truncate(start);
            out.push(IS_NULL);
        }
    }
    Ok(true)
}
