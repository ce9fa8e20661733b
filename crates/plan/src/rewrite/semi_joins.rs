//! Semi and anti joins. EXISTS and IN in WHERE, over one table, become a semi join of the table;
//! NOT EXISTS and NOT IN become an anti join. The join planner then chooses the position of the
//! table, and whether lookups or a hash table find its rows. If a unique key identifies the inner
//! row, the semi join is an inner join, whose tables may be read in any order. So is EXISTS or IN
//! over several tables, if unique keys identify the row of each.
//!
//! ```text
//! a WHERE EXISTS (SELECT 1 FROM b WHERE b.i = a.id AND b.d > 5)     a semi join b on b.i = a.id, b.d > 5
//! a WHERE a.x NOT IN (SELECT b.y FROM b WHERE b.i = a.id)           a anti join b on b.i = a.id, a.x = b.y
//! a WHERE a.x IN (SELECT b.id FROM b WHERE b.d > 5)                 a join b on a.x = b.id, b.d > 5
//! a WHERE a.x IN (SELECT b.id FROM b JOIN c ON b.y = c.id)          a join b join c on a.x = b.id, b.y = c.id
//! ```
//!
//! # Invariants
//! J1. NOT IN becomes an anti join only if no compared value can be NULL: with a NULL it may be
//!     unknown, which rejects the outer row as well.
//! J2. A condition that moves into the join causes no error, because it may be evaluated for more
//!     rows than before.
//! J3. The rows of a statement that locks or changes rows are not joined: it would lock other rows.

use nfold_catalog::TableDef;
use nfold_sql::ast::BinaryOp;

use super::decorrelate::{is_plain, is_repeatable};
use super::inner_tables;
use crate::logical::context::PlanCx;
use crate::logical::expr::{Class, CmpKind, ColumnAt, Expr, ExprKind, ExprType, SubqueryUse};
use crate::logical::mode::Switches;
use crate::logical::query::{
    Block, JoinType, MAX_TABLES, OuterJoin, Query, QueryBody, Source, Subquery, Table,
};
use crate::logical::tame::is_tame;
use crate::logical::walk;

/// Turns the subqueries of a query and of its nested queries into joins, where that is possible.
pub(super) fn join_subqueries(cx: &PlanCx<'_>, q: &mut Query) {
    match &mut q.body {
        QueryBody::Block(b) => block(cx, b),
        QueryBody::Set { left, right, .. } => {
            join_subqueries(cx, left);
            join_subqueries(cx, right);
        }
        QueryBody::Recursive(_) | QueryBody::Rows(_) | QueryBody::Working(_) => {}
    }
}

fn block(cx: &PlanCx<'_>, block: &mut Block) {
    join_all(cx, block);
    for table in &mut block.tables {
        if let Source::Derived(q) = &mut table.source {
            join_subqueries(cx, q);
        }
    }
    // A decorrelated form refers to the subqueries of its block by their numbers.
    let nested = block.subqueries.iter_mut();
    for sub in nested.filter(|sub| sub.decorrelated.is_none()) {
        join_subqueries(cx, &mut sub.query);
        if may_join(cx, sub) {
            inner_tables::make_semi(cx, sub);
        }
    }
}

/// Whether hint and switch allow that a subquery becomes a join.
fn may_join(cx: &PlanCx<'_>, sub: &Subquery) -> bool {
    let hint = match &sub.query.body {
        QueryBody::Block(block) => block.semijoin,
        _ => None,
    };
    hint.unwrap_or_else(|| cx.switches.has(Switches::SEMIJOIN))
}

fn join_all(cx: &PlanCx<'_>, block: &mut Block) {
    // A window function adds slots after the tables.
    let windows = block.group.is_none() && !block.windows.is_empty();
    if block.subqueries.is_empty()
        || block.tables.is_empty()
        || windows
        || block.lock.is_some()
        || block.changed != 0
    {
        return;
    }
    let uses = uses(block);
    let mut removed = vec![false; uses.len()];
    let mut conditions = Vec::with_capacity(block.conditions.len());
    for condition in std::mem::take(&mut block.conditions) {
        let member = Membership::of(&condition).filter(|m| uses[m.index] == 1);
        let join = member.and_then(|m| Some((m.index, joined(cx, block, &m)?)));
        let Some((index, join)) = join else {
            conditions.push(condition);
            continue;
        };
        removed[index] = true;
        add(block, &mut conditions, join);
    }
    block.conditions = conditions;
    if removed.contains(&true) {
        remove_subqueries(block, &removed);
    }
}

/// Adds the tables of a join, and its conditions: to WHERE as far as they need not decide which
/// rows match.
fn add(block: &mut Block, conditions: &mut Vec<Expr>, mut join: Join) {
    let inner = slot_set(block.tables.len(), join.tables.len());
    block.tables.append(&mut join.tables);
    let moves = |e: &mut Expr| match join.kind {
        JoinType::Inner | JoinType::Left => true,
        JoinType::Semi => slots_of(e) & inner == 0,
        JoinType::Anti => false,
    };
    conditions.extend(join.on.extract_if(.., moves));
    if join.kind != JoinType::Inner {
        block.outer_joins.push(OuterJoin {
            kind: join.kind,
            on: join.on,
            inner,
            outer: join.outer,
        });
    }
}

/// How often the block's clauses name each of its subqueries.
pub(super) fn uses(block: &mut Block) -> Vec<usize> {
    let mut uses = vec![0; block.subqueries.len()];
    walk::each_of_clauses(block, 1, &mut |e, _| {
        if let ExprKind::Subquery { index, .. } = &e.kind {
            uses[usize::from(*index)] += 1;
        }
    });
    uses
}

/// Removes subqueries that are no longer named, and renumbers the others.
fn remove_subqueries(block: &mut Block, removed: &[bool]) {
    walk::each_of_clauses(block, 1, &mut |e, _| {
        if let ExprKind::Subquery { index, .. } = &mut e.kind {
            let before = removed.iter().take(usize::from(*index));
            *index -= before.filter(|removed| **removed).count() as u16;
        }
    });
    let mut n = 0;
    block.subqueries.retain(|_| {
        n += 1;
        !removed[n - 1]
    });
}

/// A condition that tests whether a subquery has a row.
struct Membership<'c> {
    index: usize,
    /// NOT EXISTS or NOT IN.
    negated: bool,
    /// The left side of IN. `None`: EXISTS.
    left: Option<(&'c [Expr], &'c [CmpKind])>,
}

impl<'c> Membership<'c> {
    fn of(condition: &'c Expr) -> Option<Membership<'c>> {
        match &condition.kind {
            ExprKind::Not(e) => Membership::of(e).map(|member| Membership {
                negated: !member.negated,
                ..member
            }),
            ExprKind::Subquery { index, use_as } => {
                let (left, negated) = match use_as {
                    SubqueryUse::Exists => (None, false),
                    SubqueryUse::In {
                        left,
                        kinds,
                        negated,
                    } => (Some((left.as_slice(), kinds.as_slice())), *negated),
                    _ => return None,
                };
                Some(Membership {
                    index: usize::from(*index),
                    negated,
                    left,
                })
            }
            _ => None,
        }
    }
}

/// The tables of a subquery, and how they are joined.
struct Join {
    /// One table, unless `kind` is `Inner`.
    tables: Vec<Table>,
    /// [`JoinType::Inner`], `Semi` or `Anti`.
    kind: JoinType,
    on: Vec<Expr>,
    /// The slots that `on` reads besides these tables, as a bit set.
    outer: u64,
}

/// The join that replaces the condition `member` of `block`; `None`: the subquery remains.
fn joined(cx: &PlanCx<'_>, block: &Block, member: &Membership<'_>) -> Option<Join> {
    let sub = &block.subqueries[member.index];
    if !may_join(cx, sub) {
        return None;
    }
    let inner = plain_block(sub)?;
    if is_decided_by_extreme(sub) {
        return None;
    }
    let defs = inner.tables.iter().map(|table| match &table.source {
        Source::Table(def) => Some(&**def),
        _ => None,
    });
    let defs: Vec<&TableDef> = defs.collect::<Option<_>>()?;
    let (slot, count) = (block.tables.len() as u16, defs.len());
    if usize::from(slot) + count > MAX_TABLES || block.tables.iter().any(is_json) {
        return None;
    }
    let lift = |e: &Expr| lifted(e, slot);
    let mut on: Vec<Expr> = inner.conditions.iter().map(lift).collect();
    if let Some((left, kinds)) = member.left {
        for ((left, kind), right) in left.iter().zip(kinds).zip(&inner.select) {
            let right = lift(right);
            // J1. A subquery that runs once converts values without a warning, or with other ones.
            let unknown = member.negated && (may_be_null(block, left) || right.ty.nullable);
            if unknown || !left.ty.is_alike(&right.ty) {
                return None;
            }
            on.push(equal(left.clone(), right, *kind));
        }
    }
    let subquery = |e: &Expr| matches!(e.kind, ExprKind::Subquery { .. });
    let moves = |e: &Expr| is_tame(cx, e) && is_repeatable(cx, e) && !e.any(&mut |e| subquery(e));
    let own = slot_set(slot.into(), count);
    let slots = on.iter().map(slots_of);
    let links = slots
        .clone()
        .any(|slots| slots & own != 0 && slots & !own != 0);
    if !links || !on.iter().all(moves) {
        return None;
    }
    let outer = slots.fold(0, |all, slots| all | slots) & !own;
    let kind = match (member.negated, defs.as_slice()) {
        (false, defs) if are_unique(defs, slot, &on) => JoinType::Inner,
        (false, [_]) => JoinType::Semi,
        (true, [_]) => JoinType::Anti,
        _ => return None,
    };
    let indexed =
        sub.correlated || kind == JoinType::Inner || looks_up(block, defs[0], member, inner);
    let tables = inner.tables.iter().zip(slot..);
    indexed.then(|| Join {
        tables: tables
            .map(|(table, slot)| Table {
                used: used_columns(table, slot, &on),
                documents: Vec::new(),
                ..table.clone()
            })
            .collect(),
        kind,
        on,
        outer,
    })
}

/// The set of `count` slots from `first` on.
fn slot_set(first: usize, count: usize) -> u64 {
    (first..first + count).fold(0, |set, slot| set | 1 << slot)
}

/// Whether one value of the subquery's rows decides each outer row. A join would test many rows.
fn is_decided_by_extreme(sub: &Subquery) -> bool {
    let decorrelated = sub.decorrelated.as_ref();
    decorrelated.is_some_and(|d| d.extreme.is_some() && d.keys.is_empty() && d.select.len() == 1)
}

/// The block of a subquery that reads tables by inner joins and nothing else.
fn plain_block(sub: &Subquery) -> Option<&Block> {
    let QueryBody::Block(inner) = &sub.query.body else {
        return None;
    };
    let plain = sub.query.limit.is_none()
        && is_plain(inner)
        && inner.subqueries.is_empty()
        && inner.outer_joins.is_empty()
        && !inner.straight
        && inner.straight_joins.is_empty();
    plain.then_some(&**inner)
}

fn is_json(table: &Table) -> bool {
    matches!(table.source, Source::Json(_))
}

/// Whether an uncorrelated IN is better evaluated by lookups for each outer row. Otherwise the
/// subquery runs once: an index of the outer table finds its values, or a set holds them.
fn looks_up(block: &Block, def: &TableDef, member: &Membership<'_>, inner: &Block) -> bool {
    let first = |def: &TableDef, at: ColumnAt| {
        let column = usize::from(at.column);
        let mut parts = def.indexes.iter().filter_map(|index| index.parts.first());
        parts.any(|part| part.column == column && part.prefix_len.is_none())
    };
    let Some((left, _)) = member.left else {
        return false;
    };
    let found_by_value = left.iter().filter_map(Expr::as_column).any(|at| {
        let source = block.tables.get(usize::from(at.table)).map(|t| &t.source);
        matches!(source, Some(Source::Table(def)) if first(def, at))
    });
    let own = inner.select.first().and_then(Expr::as_column);
    own.is_some_and(|at| first(def, at)) && (member.negated || !found_by_value)
}

/// Whether at most one combination of rows of these tables, in the slots from `first` on, passes
/// the conditions for each outer row.
fn are_unique(defs: &[&TableDef], first: u16, on: &[Expr]) -> bool {
    let mut unknown = slot_set(first.into(), defs.len());
    while unknown != 0 {
        let mut slots = defs.iter().zip(first..);
        let next = slots
            .find(|(def, slot)| unknown >> *slot & 1 == 1 && is_unique(def, *slot, unknown, on));
        let Some((_, slot)) = next else {
            return false;
        };
        unknown &= !(1 << slot);
    }
    true
}

/// Whether at most one row of table `slot` passes the conditions for each row of the others, except
/// those in `unknown`: they equate all parts of a unique key, in comparisons that two different
/// values of a column cannot both pass.
pub(super) fn is_unique(def: &TableDef, slot: u16, unknown: u64, on: &[Expr]) -> bool {
    let equated = on.iter().filter_map(|e| equated_column(e, slot, unknown));
    let equated: Vec<usize> = equated.collect();
    def.indexes.iter().any(|index| {
        let mut parts = index.parts.iter();
        index.is_unique() && parts.all(|p| p.prefix_len.is_none() && equated.contains(&p.column))
    })
}

/// The column of table `slot` that a condition equates with a value that reads no slot of
/// `unknown`.
fn equated_column(e: &Expr, slot: u16, unknown: u64) -> Option<usize> {
    let ExprKind::Compare {
        op: BinaryOp::Eq,
        kind,
        sides,
    } = &e.kind
    else {
        return None;
    };
    let [a, b] = &**sides;
    let own = |e: &Expr| e.as_column().filter(|at| at.table == slot);
    let (at, own, other) = match (own(a), own(b)) {
        (Some(at), None) => (at, a, b),
        (None, Some(at)) => (at, b, a),
        _ => return None,
    };
    let exact = match kind {
        CmpKind::Int => own.ty.class() == Class::Int && other.ty.class() == Class::Int,
        CmpKind::Decimal => own.ty.class().is_number() && own.ty.class() != Class::Double,
        CmpKind::String(collation) => {
            own.ty.class() == Class::String && own.ty.collation() == *collation
        }
        CmpKind::DateTime => own.ty.class().is_temporal() && other.ty.class().is_temporal(),
        CmpKind::Double | CmpKind::Time | CmpKind::Json => false,
    };
    (exact && slots_of(other) & unknown == 0).then_some(usize::from(at.column))
}

/// Rewrites an expression of the subquery as seen from the block that contains it: the subquery's
/// tables are in the slots from `slot` on there.
fn lifted(e: &Expr, slot: u16) -> Expr {
    fn shift(e: &mut Expr, slot: u16) {
        match &mut e.kind {
            ExprKind::Column(at) => at.table += slot,
            ExprKind::Outer { level: 1, at } => e.kind = ExprKind::Column(*at),
            ExprKind::Outer { level, .. } => *level -= 1,
            _ => e.each_child_mut(&mut |child| shift(child, slot)),
        }
    }
    let mut e = e.clone();
    shift(&mut e, slot);
    e
}

fn equal(left: Expr, right: Expr, kind: CmpKind) -> Expr {
    Expr {
        ty: ExprType::boolean(left.ty.nullable || right.ty.nullable),
        kind: ExprKind::Compare {
            op: BinaryOp::Eq,
            kind,
            sides: Box::new([left, right]),
        },
    }
}

/// Whether an expression over the joined row may be NULL.
pub(super) fn may_be_null(block: &Block, e: &Expr) -> bool {
    let nullable = |at: ColumnAt| {
        let table = block.tables.get(usize::from(at.table));
        table.is_none_or(|table| table.nullable)
    };
    e.ty.nullable || e.any(&mut |e| e.as_column().is_some_and(nullable))
}

/// The slots that an expression without subqueries reads, as a bit set.
pub(super) fn slots_of(e: &Expr) -> u64 {
    let mut slots = 0;
    e.any(&mut |e| {
        slots |= e.as_column().map_or(0, |at| 1u64 << at.table.min(63));
        false
    });
    slots
}

/// Which columns of `table`, in `slot`, the conditions read.
fn used_columns(table: &Table, slot: u16, on: &[Expr]) -> Vec<bool> {
    let mut used = vec![false; table.used.len()];
    for e in on {
        e.any(&mut |e| {
            let own = e.as_column().filter(|at| at.table == slot);
            if let Some(flag) = own.and_then(|at| used.get_mut(usize::from(at.column))) {
                *flag = true;
            }
            false
        });
    }
    used
}
