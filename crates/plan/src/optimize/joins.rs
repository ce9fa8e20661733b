//! Joins. [`super::search`] finds the join order; then the tables are placed one after the other,
//! each with the access path that costs least given the tables before it. A condition is tested at
//! the first step at which all its tables are placed. Estimates come from statistics only: the
//! optimizer reads no index.

use std::cell::RefCell;

use nfold_sql::ast::{BinaryOp, IsTest};
use nfold_types::TypeKind;

use super::candidate::{self, Candidate};
use super::equalities::Equalities;
use super::group_values;
use super::histogram::Histograms;
use super::order::{self, WantedOrder};
use super::outer::OuterJoins;
use super::relation::{KnownShares, Relation, Statistics, TableConditions};
use super::search::{JoinOrder, JoinSearch, Joined};
use super::trace::{self, ConsideredPlans};
use super::{constants, early_builds, first_conditions, subquery, truth_values};
use crate::logical::clauses::AggFunc;
use crate::logical::context::{ParamType, PlanCx};
use crate::logical::expr::{ColumnAt, Expr, ExprKind};
use crate::logical::func::is_volatile;
use crate::logical::query::{IndexHints, OuterJoin};
use crate::logical::tame::{converts, is_silent, is_tame};
use crate::logical::trace::BlockTrace;
use crate::physical::{
    Access, AccessKind, Alternative, Block, HashKey, JoinStep, JoinType, SCAN_ROW_COST,
    TableSource, sort_cost,
};

/// Assumed number of rows of a table without statistics.
pub(super) const UNKNOWN_ROWS: f64 = 10_000.0;
/// The budget of index lookups, relative to the cost of building the hash table instead: if the
/// plan chose lookups, and if it chose a hash table. Beyond the budget the executor builds the hash
/// table.
const LOOKUPS_PLANNED: f64 = 2.0;
const HASH_PLANNED: f64 = 0.25;
/// Assumed number of rows that a query with LIMIT reads.
const LIMITED_ROWS: f64 = 100.0;
/// Assumed number of rows of a derived table or view.
const DERIVED_ROWS: f64 = 100.0;
/// Assumed number of rows of a JSON_TABLE, as in MySQL.
const DOCUMENT_ROWS: f64 = 2.0;
/// The cost of reading a table, and of a join, in microseconds, from which the estimates of a
/// statement depend on the values of literals: it is much more than that of another plan for other
/// values.
const COSTLY: f64 = 5_000.0;
const COSTLY_JOIN: f64 = 2_500.0;
/// The maximum length of a list parameter in estimates. The plan serves shorter lists as well, and
/// not using an index because of a long list costs far more than using it in vain.
pub(super) const LIST_ROWS_MAX: usize = 16;
/// The minimum number of rows in the cost of a table scan: the table may have grown when the plan
/// runs.
pub(super) const SCAN_ROWS_MIN: f64 = 1_000.0;

/// The row slots that an expression reads, as a bit set.
pub(crate) fn slots_of(e: &Expr, block: &Block) -> u64 {
    let mut mask = 0;
    e.any(&mut |e| {
        match &e.kind {
            ExprKind::Column(at) => mask |= 1u64 << at.table.min(63),
            ExprKind::Subquery { index, .. }
                if block.subqueries[usize::from(*index)].correlated =>
            {
                mask |= all_slots(block);
            }
            _ => {}
        }
        false
    });
    mask
}

fn all_slots(block: &Block) -> u64 {
    if block.tables.len() >= 64 {
        u64::MAX
    } else {
        (1u64 << block.tables.len()) - 1
    }
}

/// The parts of a logical block that determine how its tables are joined.
#[derive(Debug, Clone)]
pub(super) struct JoinGraph {
    /// The conditions of WHERE and of inner joins.
    pub conditions: Vec<Expr>,
    pub outer_joins: Vec<OuterJoin>,
    /// For each slot, its index hints.
    pub hints: Vec<IndexHints>,
    /// SELECT STRAIGHT_JOIN
    pub straight: bool,
    /// The left and the right sides of the operator STRAIGHT_JOIN.
    pub straight_joins: Vec<(u64, u64)>,
    /// Whether LIMIT may end the query early.
    pub limited: bool,
    /// Whether the first joined row is enough (EXISTS).
    pub first_row: bool,
    /// Whether an enclosing query is planned by the estimated number of rows.
    pub nested: bool,
}

/// Chooses the join order and the access paths of `block`, and assigns each condition to a step.
pub(super) fn join_tables(cx: &PlanCx<'_>, block: &mut Block, graph: JoinGraph) {
    let JoinGraph {
        conditions,
        outer_joins,
        hints,
        straight,
        straight_joins,
        limited,
        first_row,
        nested,
    } = graph;
    let of_no_row = |e: &Expr, block: &Block| slots_of(e, block) == 0 && !is_volatile(cx.funcs, e);
    let (constant, mut pending): (Vec<Expr>, Vec<Expr>) =
        conditions.into_iter().partition(|e| of_no_row(e, block));
    block.constant_filter = constant;
    let tests = first_conditions::range_tests(cx, &pending);
    block.constant_filter.extend(tests);
    // A condition of HAVING that names no group decides before any row is read. A group without
    // GROUP BY exists without rows, too.
    if !block.having.is_empty() && block.group.as_ref().is_some_and(|g| !g.implicit) {
        let mut having = std::mem::take(&mut block.having);
        having.iter_mut().for_each(|e| decide_null_tests(block, e));
        (block.constant_having, block.having) =
            having.into_iter().partition(|e| of_no_row(e, block));
    }
    let equalities = match block.tables.len() > 2 {
        true => Equalities::take(block, &mut pending),
        false => Equalities::default(),
    };
    let mut placer = Placer {
        cx,
        block,
        histograms: Histograms::new(cx, block),
        hints: &hints,
        straight_joins: &straight_joins,
        limited,
        outer: OuterJoins::new(outer_joins),
        pending,
        equalities,
        joint: RefCell::default(),
        placed: 0,
        considered: cx.trace.map(|_| ConsideredPlans::default()),
    };
    let estimates = cx.trace.map(|_| placer.trace_tables());
    let order = placer.order(straight, first_row);
    let rows = match block.tables.len() {
        0 => None,
        1 => nested.then(|| placer.relations()[0].passing),
        _ => Some(order.rows),
    };
    let derived = block.tables.iter().map(|slot| match &slot.source {
        TableSource::Derived(q) => q.cost(),
        _ => 0.0,
    });
    let mut cost = order.cost + derived.sum::<f64>();
    let mut steps: Vec<JoinStep> = Vec::with_capacity(order.steps.len());
    let mut early_cost = f64::MAX;
    for joined in order.steps {
        let mut step = placer.step_for(joined);
        // A table that may become the outer side of its join is not small.
        if let (Some(build), true) = (joined.build_cost, joined.hashed == 0.0)
            && placer.decides(joined.table)
        {
            let is_silent = |e: &Expr| filters_build_side(cx, e);
            early_builds::build_early(block, &mut step, build, cost, &is_silent);
            if step.builds_early {
                early_cost = early_cost.min(build);
            }
        }
        placer.place(&mut step);
        steps.push(step);
    }
    if let Some(first) = steps.first_mut().filter(|_| early_cost < f64::MAX) {
        let is_silent = |e: &Expr| filters_build_side(cx, e);
        early_builds::read_first(first, early_cost, &is_silent);
    }
    let mut pending = placer.pending;
    let considered = placer.considered;
    match steps.last_mut() {
        Some(last) => last.filter.append(&mut pending),
        // The block has no table.
        None => block.having.append(&mut pending),
    }
    if let (Some(trace), Some(mut traced)) = (cx.trace, estimates) {
        traced.considered = considered.unwrap_or_default().into_inner();
        traced.steps = trace::steps(block, &steps);
        trace.add(traced);
    }
    if let [only] = steps.as_slice() {
        cost += only.rows * SCAN_ROW_COST;
    }
    (block.joins, block.cost, block.rows) = (steps, cost, rows);
    first_conditions::move_equalities(cx, block);
    subquery::silence_lookups(block, limited);
    block.row_by_row = reads_assigned_var(block);
    if block.changed != 0 && !limited {
        read_forward(cx, block);
    }
    order::use_index_order(block);
    constants::compute_once(cx, block);
    truth_values::use_integers(cx, block);
    group_values::mark_stored(block);
    group_values::number_rolled_up_years(block);
}

/// Replaces `IS NULL` of a value of a group that is never NULL by its result.
fn decide_null_tests(block: &Block, e: &mut Expr) {
    if let ExprKind::Is {
        expr,
        test: IsTest::Null,
        negated,
    } = &e.kind
        && is_never_null(block, expr)
    {
        *e = Expr::int((*negated).into());
        return;
    }
    if let ExprKind::And(list) | ExprKind::Or(list) = &mut e.kind {
        list.iter_mut().for_each(|e| decide_null_tests(block, e));
    }
}

/// Whether a value of a group is a count, or a key that is a NOT NULL column of a table.
fn is_never_null(block: &Block, e: &Expr) -> bool {
    let (Some(group), Some(at)) = (&block.group, e.as_column()) else {
        return false;
    };
    let place = usize::from(at.column);
    if at.table != 0 || group.rollup {
        return false;
    }
    if let Some(key) = group.keys.get(place) {
        let inner = |at: ColumnAt| !block.tables[usize::from(at.table)].nullable;
        return !key.ty.nullable && key.as_column().is_some_and(inner);
    }
    let aggregate = group.aggregates.get(place - group.first_aggregate());
    aggregate.is_some_and(|a| matches!(a.func, AggFunc::Count | AggFunc::CountStar))
}

/// Whether the conditions on the rows of the only table read a user variable that the block
/// assigns.
fn reads_assigned_var(block: &Block) -> bool {
    let [step] = block.joins.as_slice() else {
        return false;
    };
    let varies = |e: &Expr| matches!(e.kind, ExprKind::VaryingUserVar(_));
    step.filter.iter().any(|e| e.any(&mut |e| varies(e)))
}

/// Reads the rows of an UPDATE or DELETE without LIMIT in the order of the clustered index, if its
/// conditions may warn. As in MySQL, they are then sorted.
fn read_forward(cx: &PlanCx<'_>, block: &mut Block) {
    let [step] = block.joins.as_mut_slice() else {
        return;
    };
    let clustered = step.access.index == 0 && matches!(step.access.kind, AccessKind::Full);
    if clustered && step.access.reverse && !step.filter.iter().all(|e| is_silent(cx, e)) {
        step.access.reverse = false;
    }
}

/// The state of placing tables: those placed so far, and the conditions that wait for others.
struct Placer<'p> {
    cx: &'p PlanCx<'p>,
    block: &'p Block,
    histograms: Histograms<'p>,
    hints: &'p [IndexHints],
    straight_joins: &'p [(u64, u64)],
    limited: bool,
    outer: OuterJoins,
    pending: Vec<Expr>,
    equalities: Equalities,
    /// The joint shares of equal columns, which no literal changes.
    joint: RefCell<Vec<KnownShares>>,
    /// The placed slots, as a bit set.
    placed: u64,
    /// The compared orders, if the optimizer trace is on.
    considered: Option<ConsideredPlans>,
}

impl Placer<'_> {
    /// Finds the join order. `straight`: as written; `first_row`: the first joined row is enough.
    fn order(&self, straight: bool, first_row: bool) -> JoinOrder {
        let n = self.block.tables.len();
        if n <= 1 {
            return JoinOrder {
                steps: vec![Joined::first(0); n],
                cost: 0.0,
                rows: 0.0,
            };
        }
        let mut relations = self.relations();
        let sources = self.sources();
        let best = |relations: &[Relation]| match straight {
            true => self.search(relations, &sources).as_written(),
            false => self.search(relations, &sources).cheapest(None),
        };
        let mut whole = best(&relations);
        if whole.cost >= COSTLY_JOIN && self.histograms.may_tell_more() {
            self.histograms.read_literals();
            relations = self.relations();
            whole = best(&relations);
        }
        if straight {
            return whole;
        }
        let mut search = self.search(&relations, &sources);
        let block = self.block;
        let streams = block.group.is_none() && block.windows.is_empty() && !block.distinct;
        let wanted = match first_row {
            true => 1.0,
            false => LIMITED_ROWS,
        };
        if !(streams && (first_row || self.limited)) || whole.rows <= wanted {
            return whole;
        }
        search.share = wanted / whole.rows;
        if block.order.is_empty() || first_row {
            return search.cheapest(None);
        }
        let Some(first) = order::first_table(block).filter(|t| sources[*t] == 0) else {
            return whole;
        };
        // An index of the first table that has the wanted order ends the query early, unless a sort
        // costs less.
        let usable: Vec<&Expr> = self.own_conditions(first);
        let candidate = self.candidate(first, &usable, order::wanted(block, true));
        let ordered = order::gives_order(block, first, &candidate.access);
        let early = search.cheapest(Some(first));
        let sort = sort_cost(whole.rows);
        match ordered && early.cost < whole.cost + sort {
            true => early,
            false => whole,
        }
    }

    /// For each table, the slots that must be placed before it: those that its rows are computed
    /// from, and those on the left side of STRAIGHT_JOIN.
    fn sources(&self) -> Vec<u64> {
        let straight = |t: usize| {
            let joins = self.straight_joins.iter();
            let joins = joins.filter(move |(_, right)| right >> t & 1 == 1);
            joins.fold(0, |set, (left, _)| set | left)
        };
        let tables = 0..self.block.tables.len();
        tables
            .map(|t| source_slots(self.block, t) | straight(t))
            .collect()
    }

    /// The search over all joined rows.
    fn search<'s>(&'s self, relations: &'s [Relation], sources: &'s [u64]) -> JoinSearch<'s> {
        JoinSearch {
            relations,
            outer: &self.outer,
            sources,
            lookups: self.block.lock.is_some() || self.block.changed != 0,
            share: 1.0,
            trace: self.considered.as_ref(),
        }
    }

    /// The estimates of the tables, for the optimizer trace.
    fn trace_tables(&self) -> BlockTrace {
        let n = self.block.tables.len();
        let alone = |t: usize| self.candidate(t, &self.own_conditions(t), None);
        let candidates: Vec<Candidate> = (0..n).map(alone).collect();
        let relations = if n > 1 { self.relations() } else { Vec::new() };
        let depends = self.sources();
        trace::tables(self.block, &candidates, &relations, &depends, |t| {
            self.histograms.stats(t).map(|stats| stats.rows)
        })
    }

    /// The estimates of each table for the search.
    fn relations(&self) -> Vec<Relation> {
        let block = self.block;
        let statistics = Statistics {
            cx: self.cx,
            block,
            histograms: &self.histograms,
            joint: &self.joint,
        };
        let list_count = |n: u32| match self.cx.params.get(n as usize) {
            Some(ParamType::List { count, .. }) => (*count).min(LIST_ROWS_MAX),
            _ => 1,
        };
        let masked = |e| (e, slots_of(e, block));
        let pending: Vec<(&Expr, u64)> = self.pending.iter().map(masked).collect();
        let relation = |t: usize| {
            let mut conditions = match self.outer.conditions(block, t, u64::MAX) {
                Some(on) => on.into_iter().map(masked).collect(),
                None => pending.clone(),
            };
            conditions.retain(|(_, slots)| slots >> t & 1 == 1);
            let own: Vec<&Expr> = self.own_conditions(t);
            let own = self.candidate(t, &own, None);
            let from = TableConditions {
                conditions,
                list_count: &list_count,
                equalities: &self.equalities,
                kind: self.outer.kind(t),
            };
            Relation::new(&statistics, t, &own, &from)
        };
        (0..block.tables.len()).map(relation).collect()
    }

    /// The conditions that read slot `t` only.
    fn own_conditions(&self, t: usize) -> Vec<&Expr> {
        let own = |e: &&Expr| slots_of(e, self.block) & !(1 << t) == 0;
        match self.outer.conditions(self.block, t, 1 << t) {
            Some(on) => on.into_iter().filter(own).collect(),
            None => self.pending.iter().filter(own).collect(),
        }
    }

    /// Whether slot `t` is joined by an inner join to an outer row, and has conditions of its own:
    /// without a row that passes them, no joined row exists.
    fn decides(&self, t: usize) -> bool {
        self.placed != 0
            && self.outer.conditions(self.block, t, 0).is_none()
            && !self.own_conditions(t).is_empty()
    }

    /// Places the table of `step`, and assigns it the conditions that now have all their tables,
    /// except those that its access path implies.
    fn place(&mut self, step: &mut JoinStep) {
        let more = self.equalities.conditions(step.table, self.placed);
        self.pending.extend(more);
        self.placed |= 1 << step.table;
        let placed = self.placed;
        let own = self.outer.place(self.block, step.table, placed);
        let implied = |e: &Expr| step.access.implied.contains(e);
        step.on = own.on.into_iter().filter(|e| !implied(e)).collect();
        step.nested_join = own.nested_join;
        if own.whole {
            let (ready, rest): (Vec<Expr>, Vec<Expr>) = std::mem::take(&mut self.pending)
                .into_iter()
                .partition(|e| slots_of(e, self.block) & !placed == 0);
            self.pending = rest;
            let inner = is_inner(step);
            step.filter = ready
                .into_iter()
                .filter(|e| !inner || !implied(e))
                .collect();
        }
        self.filter_build_side(step);
    }

    /// Moves conditions on the table alone into the build of its hash table, if evaluating them for
    /// more rows has no visible effect.
    fn filter_build_side(&self, step: &mut JoinStep) {
        let inner = is_inner(step);
        let AccessKind::Hash { filter, .. } = &mut step.access.kind else {
            return;
        };
        let conditions = match inner {
            true => &mut step.filter,
            false => &mut step.on,
        };
        let own = |e: &mut Expr| {
            slots_of(e, self.block) == 1 << step.table && filters_build_side(self.cx, e)
        };
        filter.extend(conditions.extract_if(.., own));
    }

    /// The step that joins a table to the placed ones.
    fn step_for(&self, joined: Joined) -> JoinStep {
        let (block, placed, t) = (self.block, self.placed, joined.table);
        let with_t = placed | 1 << t;
        let equal = self.equalities.conditions(t, placed);
        let usable = self.outer.conditions(block, t, with_t).unwrap_or_else(|| {
            let ready = |e: &&Expr| slots_of(e, block) & !with_t == 0;
            self.pending.iter().filter(ready).chain(&equal).collect()
        });
        let first = placed == 0;
        let keys = match first {
            true => Vec::new(),
            false => hash_keys(&usable, t, placed, block),
        };
        let wanted = match first {
            true => order::wanted(block, self.limited),
            false => None,
        };
        let candidate = match first || joined.lookup {
            true => self.candidate(t, &usable, wanted),
            false => {
                let own = |e: &&&Expr| slots_of(e, block) & placed == 0;
                let own: Vec<&Expr> = usable.iter().filter(own).copied().collect();
                self.candidate(t, &own, None)
            }
        };
        let own = |e: &&&Expr| slots_of(e, block) & placed == 0;
        let own: Vec<&Expr> = usable.iter().filter(own).copied().collect();
        let alternative = self.alternative(&joined, &candidate.access, &usable, &own, &keys);
        let (mut access, mut rows) = (candidate.access, candidate.rows);
        let read = access_slots(&access, block) | source_slots(block, t);
        let depends_on_outer = read & placed != 0;
        if !first && !depends_on_outer && !matches!(access.kind, AccessKind::Empty) {
            // The table is read once into a hash table, which is probed by the equalities.
            if !keys.is_empty() {
                rows = (rows / 10.0).max(1.0);
            }
            access = hash_access(access, keys, joined.hashed);
        }
        let own = usable.iter().filter(|e| !access.implied.contains(e));
        let filtered = own.fold(100.0, |f: f64, e| f * selectivity(e)).max(0.01);
        let kind = match self.outer.is_alone(t) {
            true => self.outer.kind(t),
            false => JoinType::Inner,
        };
        JoinStep {
            table: t,
            access,
            kind,
            on: Vec::new(),
            nested_join: None,
            filter: Vec::new(),
            alternative,
            builds_early: false,
            rows,
            filtered,
        }
    }

    /// The other way to join a table: see [`Alternative`]. `chosen` is the access path of the
    /// lookups, or the one that builds the hash table.
    fn alternative(
        &self,
        joined: &Joined,
        chosen: &Access,
        usable: &[&Expr],
        own: &[&Expr],
        keys: &[HashKey],
    ) -> Option<Box<Alternative>> {
        let block = self.block;
        let (lookup_cost, build_cost) = (joined.lookup_cost?, joined.build_cost?);
        let locks = block.lock.is_some() || block.changed != 0;
        if locks
            || keys.is_empty()
            || !matches!(block.tables[joined.table].source, TableSource::Table(_))
        {
            return None;
        }
        let depends = |access: &Access| access_slots(access, block) & self.placed != 0;
        let fits = |other: &Access| {
            other.covering == chosen.covering && (!other.covering || other.index == chosen.index)
        };
        if depends(chosen) != joined.lookup {
            return None;
        }
        let (access, budget) = if joined.lookup {
            let build = self.candidate(joined.table, own, None).access;
            let build = match fits(&build) {
                true => build,
                false if chosen.covering => candidate::path(chosen.index, true, AccessKind::Full),
                false => candidate::path(0, false, AccessKind::Full),
            };
            (
                hash_access(build, keys.to_vec(), joined.hashed),
                build_cost * LOOKUPS_PLANNED,
            )
        } else {
            let lookup = self.candidate(joined.table, usable, None).access;
            (lookup, build_cost * HASH_PLANNED)
        };
        let other = fits(access.of_table()) && depends(&access) != joined.lookup;
        other.then(|| {
            Box::new(Alternative {
                access,
                budget,
                lookup_cost,
            })
        })
    }

    /// The cheapest access path of slot `t` with the conditions `usable`.
    fn candidate(&self, t: usize, usable: &[&Expr], wanted: Option<WantedOrder>) -> Candidate {
        let TableSource::Table(def) = &self.block.tables[t].source else {
            let rows = match &self.block.tables[t].source {
                TableSource::Json(_) => DOCUMENT_ROWS,
                _ => DERIVED_ROWS,
            };
            return Candidate {
                access: candidate::path(0, false, AccessKind::Source),
                rows,
                cost: rows,
            };
        };
        let choose = || {
            candidate::choose(
                self.cx,
                self.block,
                t,
                def,
                &self.histograms,
                usable,
                &self.hints[t],
                wanted,
            )
        };
        let found = choose();
        // A join decides by the cost of all its tables: see `order`. A table alone may lose much by
        // a scan, but little by lookups.
        let scans = matches!(found.access.kind, AccessKind::Full);
        let costly = scans && found.cost >= COSTLY && self.block.tables.len() == 1;
        match costly && self.histograms.may_tell_more() {
            true => {
                self.histograms.read_literals();
                choose()
            }
            false => found,
        }
    }
}

/// Whether a condition on one table may be tested when its hash table is built: evaluating it for
/// more rows has no visible effect.
pub(super) fn filters_build_side(cx: &PlanCx<'_>, e: &Expr) -> bool {
    !e.any(&mut |e| matches!(e.kind, ExprKind::Subquery { .. })) && is_tame(cx, e) && !converts(e)
}

/// Whether the table is not on the inner side of an outer join.
fn is_inner(step: &JoinStep) -> bool {
    step.kind == JoinType::Inner && step.nested_join.is_none()
}

/// An access path that puts the rows of `build` into a hash table by `keys`; `rows` are expected.
fn hash_access(mut build: Access, keys: Vec<HashKey>, rows: f64) -> Access {
    let kind = std::mem::replace(&mut build.kind, AccessKind::Empty);
    let shell = build.clone();
    build.kind = kind;
    Access {
        kind: AccessKind::Hash {
            build: Box::new(build),
            keys,
            filter: Vec::new(),
            rows,
        },
        ..shell
    }
}

fn access_slots(access: &Access, block: &Block) -> u64 {
    let mut mask = 0;
    access.kind.each_expr(&mut |e| mask |= slots_of(e, block));
    mask
}

/// The slots that a JSON_TABLE or a LATERAL derived table in slot `t` reads.
fn source_slots(block: &Block, t: usize) -> u64 {
    match &block.tables[t].source {
        TableSource::Json(json) => slots_of(&json.document, block),
        _ => block.tables[t].lateral,
    }
}

/// The equalities between slot `t` and the placed slots, as keys of a hash join.
fn hash_keys(usable: &[&Expr], t: usize, placed: u64, block: &Block) -> Vec<HashKey> {
    let mut keys = Vec::new();
    for c in usable {
        let ExprKind::Compare {
            op: op @ (BinaryOp::Eq | BinaryOp::NullSafeEq),
            kind,
            sides,
        } = &c.kind
        else {
            continue;
        };
        let null_safe = *op == BinaryOp::NullSafeEq;
        if null_safe && !kind.has_key(&sides[0].ty, &sides[1].ty) {
            continue;
        }
        let (a, b) = (slots_of(&sides[0], block), slots_of(&sides[1], block));
        let own = 1u64 << t;
        let key = if a == own && b != 0 && b & !placed == 0 {
            HashKey {
                inner: sides[0].clone(),
                outer: sides[1].clone(),
                kind: *kind,
                null_safe,
            }
        } else if b == own && a != 0 && a & !placed == 0 {
            HashKey {
                inner: sides[1].clone(),
                outer: sides[0].clone(),
                kind: *kind,
                null_safe,
            }
        } else {
            continue;
        };
        keys.push(key);
    }
    keys
}

/// The share of rows that a condition keeps according to MySQL's default estimates.
pub(super) fn selectivity(e: &Expr) -> f64 {
    use nfold_sql::ast::BinaryOp::*;
    match &e.kind {
        ExprKind::Compare {
            op: Eq | NullSafeEq,
            ..
        } => 0.1,
        ExprKind::Compare { op: Ne, .. } => 0.9,
        ExprKind::Compare { .. } | ExprKind::Like { negated: false, .. } => 0.3333,
        ExprKind::Between { negated: false, .. } => 0.1111,
        ExprKind::In {
            list,
            negated: false,
            ..
        } => (0.1 * list.len() as f64).min(0.5),
        ExprKind::InParam { negated: false, .. } => 0.5,
        ExprKind::Is { .. } => 0.1,
        _ => 1.0,
    }
}

/// Whether the order of a column's index keys is the order of comparisons of its type.
pub(crate) fn orders_like_key(kind: &TypeKind) -> bool {
    !matches!(kind, TypeKind::Enum(_) | TypeKind::Set(_))
}
