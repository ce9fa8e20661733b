//! Conditions on a derived table, view or common table expression that is computed apart are tested
//! inside it, so that it reads, groups and keeps fewer rows. What WHERE says of a column says the
//! same of the columns that equal it.
//!
//! ```text
//! SELECT * FROM (SELECT k, SUM(x) FROM a GROUP BY k) q WHERE q.k = 5      .. FROM a WHERE k = 5 GROUP BY k
//! .. FROM b JOIN (SELECT k FROM a UNION SELECT id FROM c) q ON q.k = b.id WHERE b.id < 9
//!     a.k < 9 and c.id < 9
//! ```
//!
//! # Invariants
//! - D1: where rows are merged (groups, DISTINCT, UNION), a condition holds for all rows that are
//!   merged into one, or for none of them. A text therefore is compared by its own collation.
//! - D2: the condition sees the same value inside as outside.

use nfold_sql::ast::{BinaryOp, IsTest, SetOp};
use nfold_types::TypeKind;

use super::decorrelate::{is_repeatable, is_stored_unchanged};
use super::outer_joins;
use crate::logical::clauses::OrderKey;
use crate::logical::context::PlanCx;
use crate::logical::expr::{Class, CmpKind, ColumnAt, Expr, ExprKind, ExprType};
use crate::logical::mode::Switches;
use crate::logical::query::{Block, Query, QueryBody, Source, Table, Unpushed};
use crate::logical::tame::{converts, is_tame};
use crate::logical::walk;

/// Moves conditions of `block` into its derived tables.
pub(super) fn push_into_derived(cx: &PlanCx<'_>, block: &mut Block) {
    let by_default = cx.switches.has(Switches::DERIVED_CONDITION_PUSHDOWN);
    for t in 0..block.tables.len().min(63) {
        let wanted = block.tables[t].hints.pushdown.unwrap_or(by_default);
        if !wanted || !matches!(block.tables[t].source, Source::Derived(_)) {
            continue;
        }
        // Innermost first: beyond it the rows may be NULL.
        let join = block.outer_joins.iter().position(|j| j.inner >> t & 1 == 1);
        let implied = match join {
            Some(_) => Vec::new(),
            None => transferred(&block.conditions, t),
        };
        let Table {
            source: Source::Derived(query),
            common,
            unpushed,
            ..
        } = &mut block.tables[t]
        else {
            continue;
        };
        if !is_steady(cx, query) {
            continue;
        }
        let mut some = false;
        let mut push = |c: &Expr| {
            let fits = is_of_slot(c, t) && accepts(cx, query, c, false);
            if fits {
                if common.is_some() && unpushed.is_none() {
                    *unpushed = Some(Box::new(Unpushed {
                        query: (**query).clone(),
                        conditions: Vec::new(),
                    }));
                }
                add(query, c);
            }
            some |= fits;
            fits
        };
        match join {
            Some(n) => block.outer_joins[n].on.iter().for_each(|c| {
                push(c);
            }),
            None => {
                let mut moved = Vec::new();
                block.conditions.retain(|c| {
                    let moves = push(c);
                    moved.extend(moves.then(|| c.clone()));
                    !moves
                });
                implied.iter().for_each(|c| {
                    push(c);
                });
                if let Some(unpushed) = unpushed {
                    moved.iter_mut().for_each(|c| move_columns(c, 0));
                    unpushed.conditions.append(&mut moved);
                }
            }
        }
        if some {
            each_block(query, &mut |b| {
                outer_joins::make_inner(b);
                push_into_derived(cx, b);
            });
        }
    }
}

/// Makes a condition on one slot one on the slot `t`.
pub(super) fn move_columns(e: &mut Expr, t: usize) {
    match &mut e.kind {
        ExprKind::Column(at) => at.table = t as u16,
        _ => e.each_child_mut(&mut |child| move_columns(child, t)),
    }
}

/// Whether it names columns of slot `t` alone, and neither a subquery nor an enclosing query.
fn is_of_slot(e: &Expr, t: usize) -> bool {
    let mut named = false;
    let other = e.any(&mut |e| match &e.kind {
        ExprKind::Column(at) => {
            named = true;
            usize::from(at.table) != t
        }
        ExprKind::Subquery { .. } | ExprKind::Outer { .. } => true,
        _ => false,
    });
    named && !other
}

/// The conditions on columns of other slots that equal columns of slot `t`, as conditions on these.
fn transferred(conditions: &[Expr], t: usize) -> Vec<Expr> {
    let mut found = Vec::new();
    for (own, other) in conditions.iter().filter_map(|c| equal_columns(c, t)) {
        let Some(at) = other.as_column() else {
            continue;
        };
        for c in conditions {
            let about = |e: &Expr| matches!(e.kind, ExprKind::Column(column) if column != at);
            if is_of_slot(c, at.table.into()) && !c.any(&mut |e| about(e)) && keeps_equal(c) {
                let mut c = c.clone();
                put(&mut c, at, own);
                found.push(c);
            }
        }
    }
    found
}

/// The sides of an equality of a column of slot `t` and one of another slot, whose values are of
/// one kind.
fn equal_columns(c: &Expr, t: usize) -> Option<(&Expr, &Expr)> {
    let ExprKind::Compare {
        op: BinaryOp::Eq,
        kind,
        sides,
    } = &c.kind
    else {
        return None;
    };
    let [a, b] = &**sides;
    let slot = |e: &Expr| e.as_column().map(|at| usize::from(at.table));
    let (own, other) = match (slot(a)?, slot(b)?) {
        (x, y) if x == t && y != t => (a, b),
        (x, y) if y == t && x != t => (b, a),
        _ => return None,
    };
    let by_value = match kind {
        CmpKind::String(collation) => *collation == own.ty.collation(),
        CmpKind::Int | CmpKind::Decimal | CmpKind::DateTime => true,
        _ => false,
    };
    (by_value && same_values(&own.ty, &other.ty)).then_some((own, other))
}

/// Puts `column` in the place of the column `at`.
fn put(e: &mut Expr, at: ColumnAt, column: &Expr) {
    match e.as_column() == Some(at) {
        true => *e = column.clone(),
        false => e.each_child_mut(&mut |child| put(child, at, column)),
    }
}

/// Whether each run of the query has the same rows, and no effect.
pub(super) fn is_steady(cx: &PlanCx<'_>, query: &mut Query) -> bool {
    let mut steady = true;
    walk::each_expr(query, 1, &mut |e, _| steady &= is_repeatable(cx, e));
    steady
}

/// Whether the condition can be tested inside the query. `merged`: its rows are merged with others.
fn accepts(cx: &PlanCx<'_>, query: &Query, c: &Expr, merged: bool) -> bool {
    if query.limit.is_some() {
        return false;
    }
    match &query.body {
        QueryBody::Block(b) => {
            let merged = merged || b.distinct || b.group.is_some();
            let inner = is_open(b).then(|| inside(b, c)).flatten();
            inner.is_some_and(|c| is_tame(cx, &c) && !converts(&c) && (!merged || keeps_equal(&c)))
        }
        QueryBody::Set {
            op: SetOp::Union,
            distinct,
            left,
            right,
            ..
        } => [left, right]
            .iter()
            .all(|q| accepts(cx, q, c, merged || *distinct)),
        _ => false,
    }
}

/// Adds the condition, which [`accepts`] allows.
fn add(query: &mut Query, c: &Expr) {
    each_block(query, &mut |b| {
        let inner = inside(b, c);
        b.conditions.extend(inner);
    });
}

fn each_block(query: &mut Query, f: &mut dyn FnMut(&mut Block)) {
    match &mut query.body {
        QueryBody::Block(b) => f(b),
        QueryBody::Set { left, right, .. } => {
            each_block(left, f);
            each_block(right, f);
        }
        QueryBody::Rows(_) | QueryBody::Recursive(_) | QueryBody::Working(_) => {}
    }
}

/// Whether a condition on the rows of the block's result may be one on the rows that it joins.
fn is_open(b: &Block) -> bool {
    let groups = b.group.as_ref().is_none_or(|g| !g.implicit && !g.rollup);
    let first_rows = |k: &OrderKey| {
        k.expr
            .any(&mut |e| matches!(e.kind, ExprKind::Subquery { .. }))
    };
    groups
        && b.windows.is_empty()
        && !b.calc_found_rows
        && !b.pads_char
        && !b.tables.is_empty()
        && !b.order.iter().any(first_rows)
}

/// A condition on the result of the block as one on the rows that it joins (D2).
fn inside(b: &Block, c: &Expr) -> Option<Expr> {
    let mut inner = c.clone();
    let mut found = true;
    replace(b, &mut inner, &mut found);
    found.then_some(inner)
}

fn replace(b: &Block, e: &mut Expr, found: &mut bool) {
    let Some(at) = e.as_column() else {
        return e.each_child_mut(&mut |child| replace(b, child, found));
    };
    match source_of(b, at.column.into()) {
        Some(source) if same_values(&e.ty, &source.ty) => *e = source.clone(),
        _ => *found = false,
    }
}

/// The expression of column `n` of the block's result, over the rows that it joins.
fn source_of(b: &Block, n: usize) -> Option<&Expr> {
    let selected = b.select.get(n)?;
    let source = match &b.group {
        Some(group) => group.keys.get(usize::from(selected.as_column()?.column))?,
        None => selected,
    };
    let foreign = |e: &Expr| matches!(e.kind, ExprKind::Subquery { .. } | ExprKind::Outer { .. });
    (is_stored_unchanged(source) && !source.any(&mut |e| foreign(e))).then_some(source)
}

/// Whether values of both types are alike, and a temporary table keeps them as they are.
fn same_values(a: &ExprType, b: &ExprType) -> bool {
    let class = a.class();
    if class != b.class() {
        return false;
    }
    match class {
        Class::Int => {
            let plain = |ty: &ExprType| !matches!(ty.col.kind, TypeKind::Bit(_) | TypeKind::Year);
            plain(a) && plain(b) && a.col.unsigned == b.col.unsigned
        }
        Class::Decimal => true,
        Class::String => {
            let plain = |ty: &ExprType| !ty.col.is_enum_or_set();
            plain(a) && plain(b) && a.collation() == b.collation()
        }
        Class::Date | Class::DateTime => a.col.kind == b.col.kind,
        Class::Null | Class::Double | Class::Time | Class::Json => false,
    }
}

/// Whether the condition is the same for values that are equal by their own comparison (D1).
fn keeps_equal(c: &Expr) -> bool {
    let text = |e: &Expr| e.as_column().is_some() && e.ty.class() == Class::String;
    let by_own = |e: &Expr, kinds: &[CmpKind]| match text(e) {
        true => kinds
            .iter()
            .all(|kind| *kind == CmpKind::String(e.ty.collation())),
        false => keeps_equal(e),
    };
    match &c.kind {
        ExprKind::Column(_) => !text(c),
        ExprKind::Compare { kind, sides, .. } => sides.iter().all(|e| by_own(e, &[*kind])),
        ExprKind::Between { parts, kinds, .. } => parts.iter().all(|e| by_own(e, kinds)),
        ExprKind::In { expr, list, .. } => {
            let kinds: Vec<CmpKind> = list.iter().map(|(kind, _)| *kind).collect();
            by_own(expr, &kinds) && list.iter().all(|(_, e)| keeps_equal(e))
        }
        ExprKind::InParam { left, kinds, .. } => left.iter().all(|e| by_own(e, kinds)),
        ExprKind::Is {
            expr,
            test: IsTest::Null,
            ..
        } => text(expr) || keeps_equal(expr),
        _ => {
            let mut all = true;
            c.each_child(&mut |e| all &= keeps_equal(e));
            all
        }
    }
}
