//! Subqueries: queries that run during the evaluation of an expression. Their operators and cached
//! rows belong to the operators of the block whose expressions contain them.
//!
//! # Invariants
//! - B1: an uncorrelated subquery runs once per run of its block ([`BlockSubqueries::new`] starts a
//!   run).
//! - B2: a subquery does not run inside itself: its plan refers to its own block's subqueries and
//!   to outer columns.
//! - B3: a correlated subquery that has a decorrelated form runs for each outer row at first. When
//!   these runs have cost as much as computing its decorrelated form once, the result of that form
//!   answers the remaining rows ([`BlockSubqueries::by_keys`]).
//! - B4: a result that is kept for outer rows with the same values caused no warning. It depends on
//!   no volatile function or user variable ([`BlockSubqueries::by_results`]).

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::rc::Rc;
use std::time::Instant;

use nfold_catalog::UserLockWait;
use nfold_plan::expr::{CmpKind, Expr, ExprType, SubqueryUse};
use nfold_plan::fulltext::SearchTarget;
use nfold_plan::query::{DecorrelatedPlan, OuterKey, SubqueryPlan};
use nfold_sql::ast::BinaryOp;
use nfold_types::{ErrorCode, SqlError, Value};
use smallvec::SmallVec;

use super::CachedQuery;
use super::subquery_groups::Groups;
use super::subquery_results::{Results, push_values};
use super::subquery_set::{KeySet, push_part};
use super::subquery_tests::TestedRows;
use crate::env::batch::POOLED_BYTES;
use crate::expr::eval::{EvalCx, Member, RowRef, Subqueries, Val, compare};
use crate::fulltext::program::Program;
use crate::operators::aggregate::owned;
use crate::operators::row_out::{RowOut, values_of};
use crate::runtime::Runtime;

/// The minimum number of runs before a set is computed.
const RUNS_MIN: u32 = 2;

/// The cached state of one subquery: its operators, and memory for its rows.
#[derive(Default)]
pub(crate) struct CachedSubquery {
    query: CachedQuery,
    rows: RefCell<SubRows>,
    /// Whether the rows belong to the current run of the block.
    known: Cell<bool>,
    decorrelated: Option<Box<CachedDecorrelated>>,
    /// Its results by outer values, if these decide its rows.
    results: Option<Box<RefCell<Results>>>,
}

/// The cached state of a subquery's decorrelated form.
#[derive(Default)]
struct CachedDecorrelated {
    query: CachedQuery,
    set: RefCell<Option<KeySet>>,
    /// For a subquery with tests, instead of the set.
    tested: RefCell<Option<Box<TestedRows>>>,
    /// For an aggregate, instead of the set.
    groups: RefCell<Groups>,
    /// Whether the set belongs to the current run of the block.
    known: Cell<bool>,
    /// How often the correlated subquery ran in this run of the block, and how many rows it has
    /// read.
    runs: Cell<u32>,
    spent: Cell<u64>,
}

impl CachedDecorrelated {
    fn begin(&self) {
        self.known.set(false);
        self.runs.set(0);
        self.spent.set(0);
        self.tested.take();
        self.groups.take();
    }

    /// Whether the correlated runs have cost as much as reading all rows once.
    fn pays(&self, plan: &DecorrelatedPlan, rt: &Runtime<'_>) -> bool {
        let spent = self.runs.get() >= RUNS_MIN && self.spent.get() as f64 >= plan.rows;
        spent && !(plan.converts && rt.warnings.borrow().is_strict())
    }
}

impl CachedSubquery {
    /// One for each subquery of a block.
    pub fn of(plans: &[SubqueryPlan]) -> Box<[CachedSubquery]> {
        let kept = |plan: &SubqueryPlan| CachedSubquery {
            decorrelated: plan.decorrelated.as_ref().map(|_| Box::default()),
            results: plan.depends_on.as_ref().map(|_| Box::default()),
            ..CachedSubquery::default()
        };
        plans.iter().map(kept).collect()
    }

    /// The memory that it keeps between executions, approximately, in bytes.
    pub fn memory(&self) -> usize {
        let rows = self.rows.borrow().values.capacity() * size_of::<Value>();
        let decorrelated = self.decorrelated.as_ref().map_or(0, |k| k.query.memory());
        rows + self.query.memory() + decorrelated
    }

    /// Starts a run of the block.
    fn begin(&self) {
        self.known.set(false);
        if let Some(decorrelated) = &self.decorrelated {
            decorrelated.begin();
        }
        if let Some(results) = &self.results {
            results.borrow_mut().clear();
        }
    }

    /// Called after the block has run: removes the rows, and frees unusually large memory.
    pub fn release(&self) {
        self.known.set(false);
        self.rows.borrow_mut().release();
        if let Some(decorrelated) = &self.decorrelated {
            decorrelated.begin();
            if let Some(set) = &mut *decorrelated.set.borrow_mut() {
                set.release();
            }
        }
        if let Some(results) = &self.results {
            results.borrow_mut().clear();
        }
    }
}

/// The rows of a subquery.
#[derive(Default)]
struct SubRows {
    /// Row by row.
    values: Vec<Value>,
    rows: usize,
    /// For an uncorrelated IN, instead of the values.
    set: Option<Box<KeySet>>,
}

impl SubRows {
    fn clear(&mut self) {
        self.values.clear();
        self.rows = 0;
        if let Some(set) = &mut self.set {
            set.clear();
        }
    }

    fn release(&mut self) {
        self.values.clear();
        if self.values.capacity() * size_of::<Value>() > POOLED_BYTES {
            self.values = Vec::new();
        }
        if let Some(set) = &mut self.set {
            set.release();
        }
    }

    /// Column `n` of the only row. Error 1242 if there are several rows.
    fn only<'a>(&self, n: usize) -> Result<Val<'a>, SqlError> {
        match self.rows {
            0 => Ok(Val::Null),
            1 => Ok(owned(self.values[n].clone())),
            _ => Err(SqlError::new(ErrorCode::ER_SUBQUERY_NO_1_ROW, &[])),
        }
    }

    /// The rows, of `width` values each.
    fn rows(&self, width: usize) -> impl Iterator<Item = &[Value]> {
        self.values.chunks_exact(width.max(1))
    }
}

/// Collects a limited number of rows as values.
struct Values<'o> {
    to: &'o mut SubRows,
    most: usize,
}

impl RowOut for Values<'_> {
    fn row<'a>(&mut self, cx: &EvalCx<'a>, select: &'a [Expr]) -> Result<bool, SqlError> {
        for e in select {
            self.to.values.push(cx.val(e)?.to_value());
        }
        self.to.rows += 1;
        Ok(self.to.rows < self.most)
    }
}

/// Collects the smallest and the largest value of the only column, and whether there is a NULL. For
/// a comparison with ANY or ALL this is sufficient.
struct Extremes<'o> {
    to: &'o mut SubRows,
    kind: CmpKind,
    ty: &'o ExprType,
    null: bool,
}

impl Extremes<'_> {
    /// Ends the input.
    fn finish(self) {
        let SubRows { values, rows, .. } = self.to;
        values.extend(self.null.then_some(Value::Null));
        *rows = values.len();
    }
}

impl RowOut for Extremes<'_> {
    fn row<'a>(&mut self, cx: &EvalCx<'a>, select: &'a [Expr]) -> Result<bool, SqlError> {
        let v = cx.val(&select[0])?;
        if v.is_null() {
            self.null = true;
            return Ok(true);
        }
        let values = &mut self.to.values;
        if values.is_empty() {
            values.extend([v.to_value(), v.to_value()]);
            return Ok(true);
        }
        for (known, beyond) in values.iter_mut().zip([Ordering::Less, Ordering::Greater]) {
            let at_hand = Val::from_ref(known.as_ref());
            if compare::order(cx, self.kind, (&v, self.ty), (&at_hand, self.ty)) == Some(beyond) {
                *known = v.to_value();
            }
        }
        Ok(true)
    }
}

/// Counts rows up to a limit, without reading their values.
struct Existence<'o> {
    to: &'o mut SubRows,
}

impl RowOut for Existence<'_> {
    fn row<'a>(&mut self, cx: &EvalCx<'a>, select: &'a [Expr]) -> Result<bool, SqlError> {
        // Evaluated only for side effects, such as an error or an assignment.
        for e in select {
            cx.val(e)?;
        }
        self.to.rows += 1;
        Ok(false)
    }
}

/// Collects the groups of an aggregate.
struct Collector<'g> {
    groups: &'g mut Groups,
    keys: &'g [OuterKey],
    memory: usize,
}

impl RowOut for Collector<'_> {
    fn row<'a>(&mut self, cx: &EvalCx<'a>, select: &'a [Expr]) -> Result<bool, SqlError> {
        let Some((value, inner)) = select.split_last() else {
            return Ok(true);
        };
        let mut key = Vec::new();
        for (part, e) in self.keys.iter().zip(inner) {
            // A NULL key matches no outer row.
            if !push_part(cx, (&cx.val(e)?, &e.ty), part.kind, &mut key) {
                return Ok(true);
            }
        }
        let value = cx.val(value)?.to_value();
        Ok(self.groups.push(&key, value, self.memory))
    }
}

/// The key of the group for the outer row of `cx`; `None`: the row matches no group.
fn group_key<'a>(cx: &EvalCx<'a>, plan: &'a DecorrelatedPlan) -> Result<Option<Vec<u8>>, SqlError> {
    if !cx.passes(&plan.conditions)? {
        return Ok(None);
    }
    let mut key = Vec::new();
    for part in &plan.keys {
        let value = cx.val(&part.outer)?;
        if !push_part(cx, (&value, &part.outer.ty), part.kind, &mut key) {
            return Ok(None);
        }
    }
    Ok(Some(key))
}

/// The subqueries of a block during its run.
pub(crate) struct BlockSubqueries<'r, 's> {
    rt: &'r Runtime<'s>,
    plans: &'r [SubqueryPlan],
    /// One for each of `plans`.
    kept: &'r [CachedSubquery],
}

impl<'r, 's> BlockSubqueries<'r, 's> {
    /// Starts a run of the block: results of earlier runs become invalid.
    #[inline]
    pub fn new(rt: &'r Runtime<'s>, plans: &'r [SubqueryPlan], kept: &'r [CachedSubquery]) -> Self {
        kept.iter().for_each(CachedSubquery::begin);
        BlockSubqueries { rt, plans, kept }
    }

    /// Whether IN looks up its left side in a set. For rows, only if this converts no column that a
    /// row-by-row comparison would not reach, because a conversion may fail.
    fn in_set(&self, sub: &SubqueryPlan, left: &[Expr], kinds: &[CmpKind]) -> bool {
        let strict = kinds.len() > 1 && self.rt.warnings.borrow().is_strict();
        let mut columns = left.iter().zip(&sub.plan.types).zip(kinds);
        !sub.correlated
            && (kinds.len() == 1
                || kinds.len() <= super::subquery_set::MAX_COLUMNS
                    && columns.all(|((l, ty), kind)| {
                        kind.has_key(&l.ty, ty) && (!strict || l.ty.is_alike(ty))
                    }))
    }

    /// The subquery with its rows for the current rows of `cx`.
    fn found(
        &self,
        cx: &EvalCx<'_>,
        index: u16,
        use_as: &SubqueryUse,
    ) -> Result<&'r CachedSubquery, SqlError> {
        let n = usize::from(index);
        let (sub, kept) = (&self.plans[n], &self.kept[n]);
        if kept.known.get() {
            return Ok(kept);
        }
        let mut frames: SmallVec<[&[RowRef<'_>]; 4]> = SmallVec::from_slice(cx.outer);
        frames.push(cx.rows);
        let mut rows = kept.rows.take();
        rows.clear();
        let before = self.rt.rows_read();
        let found = self.fill(cx, (sub, &kept.query), use_as, &frames, &mut rows);
        kept.rows.replace(rows);
        found?;
        kept.known.set(!sub.correlated);
        if let Some(decorrelated) = &kept.decorrelated {
            let read = self.rt.rows_read() - before + 1;
            decorrelated.spent.set(decorrelated.spent.get() + read);
            decorrelated.runs.set(decorrelated.runs.get() + 1);
        }
        Ok(kept)
    }

    /// The decorrelated form of subquery `n`, with its operators.
    fn decorrelated(&self, n: usize) -> Option<(&'r DecorrelatedPlan, &'r CachedDecorrelated)> {
        let plan = self.plans[n].decorrelated.as_deref()?;
        Some((plan, self.kept[n].decorrelated.as_deref()?))
    }

    /// Probes the set of subquery `n` with the current rows of `cx`. `None`: computing the set does
    /// not pay yet.
    fn by_keys(
        &self,
        cx: &EvalCx<'_>,
        n: usize,
        use_as: &SubqueryUse,
    ) -> Result<Option<Option<bool>>, SqlError> {
        let Some((plan, kept)) = self.decorrelated(n).filter(|(plan, _)| !plan.grouped) else {
            return Ok(None);
        };
        let (left, kinds): (&[Expr], &[CmpKind]) = match use_as {
            SubqueryUse::In { left, kinds, .. } => (left, kinds),
            _ => (&[], &[]),
        };
        if !plan.tests.is_empty() {
            return self.by_tests(cx, (plan, kept), left, kinds);
        }
        if !kept.known.get() {
            if !kept.pays(plan, self.rt) {
                return Ok(None);
            }
            let mut frames: SmallVec<[&[RowRef<'_>]; 4]> = SmallVec::from_slice(cx.outer);
            frames.push(cx.rows);
            let set = kept.set.take();
            let mut set = set.unwrap_or_else(|| KeySet::new(&plan.plan, &plan.keys, kinds));
            set.collect(self.rt, (&kept.query, &plan.plan), cx, &frames)?;
            kept.set.replace(Some(set));
            kept.known.set(true);
        }
        let cx = EvalCx { ..*cx };
        if !cx.passes(&plan.conditions)? {
            return Ok(Some(Some(false)));
        }
        // Taken out while expressions are evaluated.
        let Some(mut set) = kept.set.take() else {
            return Ok(None);
        };
        let keys = plan.keys.iter().map(|key| &key.outer);
        let found = set.find(self.rt, &cx, keys.chain(left));
        kept.set.replace(Some(set));
        found.map(Some)
    }

    /// As [`Self::by_keys`], for a subquery with conditions on both rows besides equalities. If a
    /// number is out of range in one of them, the correlated subquery runs, and so decides whether
    /// that is an error.
    fn by_tests(
        &self,
        cx: &EvalCx<'_>,
        (plan, kept): (&DecorrelatedPlan, &CachedDecorrelated),
        left: &[Expr],
        kinds: &[CmpKind],
    ) -> Result<Option<Option<bool>>, SqlError> {
        let mut frames: SmallVec<[&[RowRef<'_>]; 4]> = SmallVec::from_slice(cx.outer);
        frames.push(cx.rows);
        if !kept.known.get() {
            if !kept.pays(plan, self.rt) {
                return Ok(None);
            }
            let mut rows = Box::new(TestedRows::new(plan, kinds));
            rows.collect(self.rt, (&kept.query, plan), cx, &frames)?;
            kept.tested.replace(Some(rows));
            kept.known.set(true);
        }
        // Taken out while expressions are evaluated.
        let Some(mut rows) = kept.tested.take() else {
            return Ok(None);
        };
        let cx = EvalCx { ..*cx };
        let found = rows.find(&cx, &frames, plan, left);
        kept.tested.replace(Some(rows));
        match found {
            Err(e) if e.code == ErrorCode::ER_DATA_OUT_OF_RANGE => Ok(None),
            found => found,
        }
    }

    /// Looks up the value of an aggregate for the current rows of `cx` among its groups. `None`:
    /// the correlated subquery must run, because the groups do not pay yet, or because the value of
    /// an empty group is not known.
    fn by_groups<'a>(&'a self, cx: &EvalCx<'a>, n: usize) -> Result<Option<Value>, SqlError> {
        let Some((plan, kept)) = self.decorrelated(n).filter(|(plan, _)| plan.grouped) else {
            return Ok(None);
        };
        if !kept.known.get() {
            if kept.groups.borrow().too_many || !kept.pays(plan, self.rt) {
                return Ok(None);
            }
            let mut frames: SmallVec<[&[RowRef<'_>]; 4]> = SmallVec::from_slice(cx.outer);
            frames.push(cx.rows);
            // Taken out while the query runs.
            let mut groups = kept.groups.take();
            let mut out = Collector {
                groups: &mut groups,
                keys: &plan.keys,
                memory: self.rt.env.work_memory(),
            };
            let done = kept.query.run(self.rt, &plan.plan, &frames, &mut out);
            kept.known.set(done.is_ok() && !groups.too_many);
            kept.groups.replace(groups);
            done?;
            if !kept.known.get() {
                return Ok(None);
            }
        }
        let key = group_key(cx, plan)?;
        let known = kept.groups.borrow().value(key.as_deref());
        if known.is_some() {
            return Ok(known);
        }
        // The value of an empty group is computed for this outer row.
        let found = self.found(cx, n as u16, &SubqueryUse::Scalar)?;
        let value = found.rows.borrow().values.first().cloned();
        kept.groups.borrow_mut().empty = value.clone();
        Ok(value)
    }

    fn fill(
        &self,
        cx: &EvalCx<'_>,
        (sub, query): (&SubqueryPlan, &CachedQuery),
        use_as: &SubqueryUse,
        frames: &[&[RowRef<'_>]],
        rows: &mut SubRows,
    ) -> Result<(), SqlError> {
        let most = match use_as {
            SubqueryUse::In { left, kinds, .. } if self.in_set(sub, left, kinds) => {
                let set = rows
                    .set
                    .get_or_insert_with(|| Box::new(KeySet::new(&sub.plan, &[], kinds)));
                return set.collect(self.rt, (query, &sub.plan), cx, frames);
            }
            SubqueryUse::Exists => {
                let mut out = Existence { to: rows };
                return query.run(self.rt, &sub.plan, frames, &mut out);
            }
            SubqueryUse::Quantified { left, kind, .. } if by_extremes(sub, left, *kind) => {
                let mut out = Extremes {
                    to: rows,
                    kind: *kind,
                    ty: &sub.plan.types[0],
                    null: false,
                };
                query.run(self.rt, &sub.plan, frames, &mut out)?;
                out.finish();
                return Ok(());
            }
            SubqueryUse::Scalar | SubqueryUse::Column(_) => 2,
            _ => usize::MAX,
        };
        let mut out = Values { to: rows, most };
        query.run(self.rt, &sub.plan, frames, &mut out)
    }
}

/// Whether the smallest and the largest value of the subquery can represent all values, and finding
/// them causes no warning.
fn by_extremes(sub: &SubqueryPlan, left: &Expr, kind: CmpKind) -> bool {
    let ty = &sub.plan.types[0];
    !sub.correlated && left.ty.is_alike(ty) && kind.has_key(&left.ty, ty)
}

impl Subqueries for BlockSubqueries<'_, '_> {
    fn members(
        &self,
        cx: &EvalCx<'_>,
        index: u16,
        kind: CmpKind,
        most: usize,
        f: &mut Member<'_>,
    ) -> Result<bool, SqlError> {
        let n = usize::from(index);
        let (sub, kept) = (&self.plans[n], &self.kept[n]);
        let mut rows = kept.rows.take();
        let set = rows
            .set
            .get_or_insert_with(|| Box::new(KeySet::new(&sub.plan, &[], &[kind])));
        let mut result = Ok(());
        if !kept.known.get() {
            let mut frames: SmallVec<[&[RowRef<'_>]; 4]> = SmallVec::from_slice(cx.outer);
            frames.push(cx.rows);
            set.want_members(most);
            result = set.collect(self.rt, (&kept.query, &sub.plan), cx, &frames);
            set.want_members(0);
            kept.known.set(result.is_ok());
        }
        let result = result.and_then(|()| set.members(f));
        kept.rows.replace(rows);
        result
    }

    fn search(&self, target: SearchTarget, text: &[u8]) -> Result<Rc<Program>, SqlError> {
        self.rt.search(target, text)
    }

    fn sleep(&self, time: std::time::Duration) -> Result<bool, SqlError> {
        self.rt.sleep(time)
    }

    fn wait_for_user_lock(
        &self,
        wait: &mut UserLockWait,
        deadline: Option<Instant>,
    ) -> Result<(), SqlError> {
        self.rt.wait_for_user_lock(wait, deadline)
    }

    fn value<'a>(
        &self,
        cx: &EvalCx<'a>,
        index: u16,
        use_as: &'a SubqueryUse,
        _: &'a ExprType,
    ) -> Result<Val<'a>, SqlError> {
        if matches!(use_as, SubqueryUse::Scalar)
            && let Some(value) = self.by_groups(cx, usize::from(index))?
        {
            return Ok(owned(value));
        }
        if let Some(found) = self.by_keys(cx, usize::from(index), use_as)? {
            let negated = matches!(use_as, SubqueryUse::In { negated: true, .. });
            return Ok(Val::from_bool(found.map(|f| f != negated)));
        }
        let n = usize::from(index);
        match (&self.kept[n].results, &self.plans[n].depends_on) {
            (Some(results), Some(columns)) => {
                self.by_results(cx, index, use_as, (results, columns))
            }
            _ => self.computed(cx, index, use_as),
        }
    }
}

impl BlockSubqueries<'_, '_> {
    /// The result of subquery `index` for the current rows of `cx`. It may be known from an outer
    /// row with the same values in `columns`.
    fn by_results<'a>(
        &self,
        cx: &EvalCx<'a>,
        index: u16,
        use_as: &'a SubqueryUse,
        (results, columns): (&RefCell<Results>, &[Expr]),
    ) -> Result<Val<'a>, SqlError> {
        let mut key = Vec::new();
        let left: &[Expr] = match use_as {
            SubqueryUse::Scalar | SubqueryUse::Exists => &[],
            SubqueryUse::In { left, .. } => left,
            SubqueryUse::Quantified { left, .. } => std::slice::from_ref(left),
            SubqueryUse::Column(_) => return self.computed(cx, index, use_as),
        };
        let looks = results.borrow().pay() && {
            let cx = EvalCx { ..*cx };
            push_values(&cx, columns, &mut key)? && push_values(&cx, left, &mut key)?
        };
        if looks && let Some(value) = results.borrow_mut().get(&key) {
            return Ok(owned(value));
        }
        let (warned, read) = (self.rt.warnings.borrow().total(), self.rt.rows_read());
        let value = self.computed(cx, index, use_as)?;
        let read = self.rt.rows_read() - read;
        let mut results = results.borrow_mut();
        results.count(read);
        // A run that warns is repeated for each row.
        if looks && self.rt.warnings.borrow().total() == warned {
            let memory = self.rt.env.work_memory();
            results.push(&key, value.to_value(), memory);
        }
        Ok(value)
    }

    /// Runs subquery `index`, unless its rows are known, and evaluates its use.
    fn computed<'a>(
        &self,
        cx: &EvalCx<'a>,
        index: u16,
        use_as: &'a SubqueryUse,
    ) -> Result<Val<'a>, SqlError> {
        let kept = self.found(cx, index, use_as)?;
        let sub = &self.plans[usize::from(index)];
        let types = sub.plan.types.as_slice();
        match use_as {
            SubqueryUse::Scalar => kept.rows.borrow().only(0),
            SubqueryUse::Column(n) => kept.rows.borrow().only(usize::from(*n)),
            SubqueryUse::Exists => Ok(Val::Int(i64::from(kept.rows.borrow().rows > 0))),
            SubqueryUse::In {
                left,
                kinds,
                negated,
            } => {
                let mut rows = kept.rows.borrow_mut();
                let found = match &mut rows.set {
                    Some(set) if self.in_set(sub, left, kinds) => {
                        set.find(self.rt, cx, left.iter())?
                    }
                    _ => in_rows(cx, (&rows, types), left, kinds)?,
                };
                Ok(Val::from_bool(found.map(|f| f != *negated)))
            }
            SubqueryUse::Quantified {
                left,
                op,
                kind,
                all,
            } => {
                let x = cx.val(left)?;
                let mut unknown = false;
                for row in kept.rows.borrow().rows(types.len()) {
                    let y = Val::from_ref(row[0].as_ref());
                    match compare::order(cx, *kind, (&x, &left.ty), (&y, &types[0])) {
                        None => unknown = true,
                        Some(o) => {
                            let holds = compare::holds(
                                if *op == BinaryOp::NullSafeEq {
                                    BinaryOp::Eq
                                } else {
                                    *op
                                },
                                o,
                            );
                            if holds != *all {
                                return Ok(Val::Int(i64::from(!all)));
                            }
                        }
                    }
                }
                Ok(if unknown {
                    Val::Null
                } else {
                    Val::Int(i64::from(*all))
                })
            }
        }
    }
}

/// Evaluates `left IN (rows)`; the types are those of the rows' columns.
fn in_rows<'a>(
    cx: &EvalCx<'a>,
    (rows, types): (&SubRows, &[ExprType]),
    left: &'a [Expr],
    kinds: &[CmpKind],
) -> Result<Option<bool>, SqlError> {
    if rows.rows == 0 {
        return Ok(Some(false));
    }
    let values = values_of(cx, left)?;
    let mut unknown = false;
    for row in rows.rows(types.len()) {
        let mut result = Some(true);
        for (n, (x, e)) in values.iter().zip(left).enumerate() {
            let y = Val::from_ref(row[n].as_ref());
            match compare::order(cx, kinds[n], (x, &e.ty), (&y, &types[n])) {
                Some(o) if o.is_eq() => {}
                Some(_) => {
                    result = Some(false);
                    break;
                }
                None => result = None,
            }
        }
        match result {
            Some(true) => return Ok(Some(true)),
            None => unknown = true,
            Some(false) => {}
        }
    }
    Ok(if unknown { None } else { Some(false) })
}
