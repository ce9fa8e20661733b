//! Merges derived tables, views and common table expressions into the query that reads them, so
//! that their tables can be found by index and joined in any order. A block is merged if it has no
//! groups, windows, DISTINCT, LIMIT and subqueries, and if its expressions are not volatile.
//!
//! # Picture
//! ```text
//!   SELECT q.s FROM t JOIN (SELECT a.x + 1 AS s FROM a JOIN b ON .. WHERE p) q ON q.s = t.id
//!      slots  t, q        ─▶  t, a, b          a takes q's slot, b comes behind the others
//!      q.s                ─▶  a.x + 1          in every expression over the joined row
//!      p, and b's ON      ─▶  conditions of WHERE, or of the outer join on whose inner side q is
//! ```
//! The names and descriptions of the result columns do not change: the binder has decided them.

use std::convert::Infallible;

use super::push_down::is_steady;
use crate::logical::clauses::{OrderKey, RowLocking};
use crate::logical::context::PlanCx;
use crate::logical::expr::{Expr, ExprKind};
use crate::logical::func::is_volatile;
use crate::logical::mode::Switches;
use crate::logical::query::{Block, MAX_TABLES, OuterJoin, Query, QueryBody, Source, Table};
use crate::logical::walk;

/// Merges the derived tables of `block` that can be merged. Then gives the locks of FOR UPDATE and
/// FOR SHARE to the views that cannot.
pub(super) fn merge_derived_tables(cx: &PlanCx<'_>, block: &mut Block) {
    merge_all(cx, block);
    if block.changed == 0 && block.lock.is_some() {
        lock_views(block, block.lock);
    }
}

/// Merges the derived tables that can be merged. The rows of their tables are not locked, those of
/// views are.
fn merge_all(cx: &PlanCx<'_>, block: &mut Block) {
    // A correlated subquery names columns by slot, and the slots would change.
    if block.subqueries.iter().any(|q| q.correlated) {
        return;
    }
    let count = block.tables.len();
    let mut merged = false;
    // LATERAL ones first and backwards, while the slots that they read are as they were bound.
    for slot in (0..count).rev() {
        if block.tables[slot].lateral != 0 {
            if !merges(cx, block, slot) {
                break;
            }
            merge_slot(block, slot);
            merged = true;
        }
    }
    let plain = block.tables.iter().all(|t| t.lateral == 0);
    for slot in (0..count).filter(|_| plain) {
        if merges(cx, block, slot) {
            merge_slot(block, slot);
            merged = true;
        }
    }
    if merged {
        mark_used(block);
        // A statement that changes rows locks all that it reads.
        if block.changed == 0 {
            let tables = block.tables.iter().enumerate();
            let inside = tables.filter(|(_, t)| t.in_subquery);
            let slots = inside.fold(0, |set, (slot, _)| set | 1 << slot);
            block.lock.remove(slots);
        }
    }
}

/// Locks the rows that views read which stay derived tables, as `lock`, the one of `block`, locks
/// their results. As in MySQL, a view that groups its rows or limits their number locks none.
fn lock_views(block: &mut Block, lock: RowLocking) {
    for (slot, table) in block.tables.iter_mut().enumerate() {
        let (Source::Derived(query), false) = (&mut table.source, table.in_subquery) else {
            continue;
        };
        let limited = query.limit.is_some();
        let QueryBody::Block(view) = &mut query.body else {
            continue;
        };
        let computed = limited || view.group.is_some() || view.distinct || !view.having.is_empty();
        let Some(strength) = lock.of_slot(slot).filter(|_| !computed) else {
            continue;
        };
        let tables = view.tables.iter().enumerate();
        let tables = tables.filter(|(_, t)| !t.in_subquery);
        let mut inherited = RowLocking::NONE;
        let slots = tables.fold(0, |set, (slot, _)| set | 1 << slot);
        inherited.add(slots, strength, lock.wait_of(slot));
        if !view.lock.is_some() && slots != 0 {
            view.lock = inherited;
        }
        lock_views(view, inherited);
    }
}

/// Whether the derived table in `slot` may be merged.
fn merges(cx: &PlanCx<'_>, block: &Block, slot: usize) -> bool {
    let table = &block.tables[slot];
    let wanted = table.hints.merge;
    let wanted = wanted.unwrap_or_else(|| cx.switches.has(Switches::DERIVED_MERGE));
    // A statement that changes rows through a view reads the view's tables.
    if !wanted && block.changed == 0 {
        return false;
    }
    match &table.source {
        Source::Derived(query) => {
            let differs = table.common.is_some() && reads_varying_rows(cx, query);
            !differs && is_mergeable(cx, query) && fits(block, slot, query)
        }
        _ => false,
    }
}

/// Whether a derived table inside `query` may have other rows when it is computed again. Several
/// references to a common table expression of such a query read the same rows.
fn reads_varying_rows(cx: &PlanCx<'_>, query: &Query) -> bool {
    let QueryBody::Block(b) = &query.body else {
        return false;
    };
    b.tables.iter().any(|t| match &t.source {
        Source::Derived(q) => !is_steady(cx, &mut q.clone()),
        _ => false,
    })
}

/// Whether `query` may be merged into any block.
fn is_mergeable(cx: &PlanCx<'_>, query: &Query) -> bool {
    let QueryBody::Block(b) = &query.body else {
        return false;
    };
    let plain = b.mergeable
        && query.limit.is_none()
        && b.group.is_none()
        && !b.distinct
        && b.windows.is_empty()
        && b.subqueries.is_empty()
        && b.having.is_empty()
        && !b.lock.is_some()
        && !b.tables.is_empty()
        && b.tables.iter().all(|t| t.lateral == 0)
        && !b.straight
        && !b.pads_char;
    let joined = b.outer_joins.iter().flat_map(|join| &join.on);
    let all = b.select.iter().chain(&b.conditions).chain(joined);
    let mut all = all.chain(b.order.iter().map(|k| &k.expr));
    let steady = |e: &Expr| {
        !is_volatile(cx.funcs, e) && !e.any(&mut |e| matches!(e.kind, ExprKind::UserVar(_)))
    };
    plain && all.all(steady)
}

fn fits(block: &Block, slot: usize, query: &Query) -> bool {
    let QueryBody::Block(inner) = &query.body else {
        return false;
    };
    let more = inner.tables.len() - 1;
    // An outer join turns columns into NULL, but not every expression over them.
    let join = (block.outer_joins.iter()).find(|join| join.inner >> slot & 1 == 1);
    let columns = || inner.select.iter().all(|e| e.as_column().is_some());
    // The conditions of a LATERAL table become part of ON, which reads the tables of its join.
    let reads = block.tables[slot].lateral;
    let joins = |join: &OuterJoin| reads & !(join.inner | join.outer) == 0 && columns();
    let outer = |e: &Expr| e.any(&mut |e| matches!(e.kind, ExprKind::Outer { .. }));
    let mut on = inner.outer_joins.iter().flat_map(|join| &join.on);
    // A derived table inside of it sees the tables beside it as well.
    let derived = |t: &Table| matches!(t.source, Source::Derived(_));
    block.tables.len() + more <= MAX_TABLES
        && (more == 0 || block.windows.is_empty())
        && join.is_none_or(joins)
        && (reads == 0 || !on.any(outer) && !inner.tables.iter().any(derived))
}

/// The new slots of a merged block's tables.
#[derive(Clone, Copy)]
struct Shift {
    /// The slot of its first table.
    slot: usize,
    /// The slot of its second table; the others follow.
    base: usize,
    /// Whether the block sees the tables beside it as those of an enclosing query.
    lateral: bool,
}

impl Shift {
    fn table(self, t: usize) -> usize {
        match t {
            0 => self.slot,
            _ => self.base + t - 1,
        }
    }

    fn set(self, set: u64) -> u64 {
        let slots = (0..64).filter(|t| set >> t & 1 == 1);
        slots.fold(0, |all, t| all | 1 << self.table(t))
    }

    fn expr(self, e: &mut Expr) {
        match &mut e.kind {
            ExprKind::Column(at) => at.table = self.table(usize::from(at.table)) as u16,
            ExprKind::Outer { level: 1, at } if self.lateral => e.kind = ExprKind::Column(*at),
            ExprKind::Outer { level, .. } if self.lateral => *level -= 1,
            _ => {}
        }
        e.each_child_mut(&mut |child| self.expr(child));
    }
}

/// Merges the block of the derived table in `slot` into `block`.
fn merge_slot(block: &mut Block, slot: usize) {
    let shift = Shift {
        slot,
        base: block.tables.len(),
        lateral: block.tables[slot].lateral != 0,
    };
    let nothing = Source::Derived(Box::new(Query {
        body: QueryBody::Rows(Vec::new()),
        columns: Vec::new(),
        types: Vec::new(),
        order: Vec::new(),
        limit: None,
        description: None,
    }));
    let source = std::mem::replace(&mut block.tables[slot].source, nothing);
    let Source::Derived(query) = source else {
        return;
    };
    let QueryBody::Block(mut inner) = query.body else {
        return;
    };
    inner.select.iter_mut().for_each(|e| shift.expr(e));
    inner.conditions.iter_mut().for_each(|e| shift.expr(e));
    for table in &mut inner.tables {
        if let Source::Json(json) = &mut table.source {
            shift.expr(&mut json.document);
        }
    }
    for join in &mut inner.outer_joins {
        join.on.iter_mut().for_each(|e| shift.expr(e));
        (join.inner, join.outer) = (shift.set(join.inner), shift.set(join.outer));
    }
    for (left, right) in &mut inner.straight_joins {
        (*left, *right) = (shift.set(*left), shift.set(*right));
    }
    block.each_joined_expr_mut(&mut |e| substitute(e, slot, &inner.select));
    block.each_condition_mut(&mut |e| substitute(e, slot, &inner.select));
    take_order(block, inner.order, shift);
    // Inserts the tables, and puts them on the same sides of outer joins as the derived table.
    let Table {
        nullable,
        in_subquery,
        ..
    } = block.tables[slot];
    let mut added = 0;
    for (n, mut table) in inner.tables.into_iter().enumerate() {
        table.nullable |= nullable;
        table.merged = true;
        table.in_subquery |= in_subquery;
        if n == 0 {
            block.tables[slot] = table;
        } else {
            added |= 1 << block.tables.len();
            block.tables.push(table);
        }
    }
    let has = |set: u64| set >> slot & 1 == 1;
    block.lock.extend(slot, added);
    for join in &mut block.outer_joins {
        for side in [&mut join.inner, &mut join.outer] {
            *side |= if has(*side) { added } else { 0 };
        }
    }
    for (left, right) in &mut block.straight_joins {
        for side in [left, right] {
            *side |= if has(*side) { added } else { 0 };
        }
    }
    block.straight_joins.append(&mut inner.straight_joins);
    match block.outer_joins.iter_mut().find(|join| has(join.inner)) {
        Some(join) => join.on.append(&mut inner.conditions),
        None => block.conditions.append(&mut inner.conditions),
    }
    // Inner joins come before the joins that contain them.
    block.outer_joins.splice(0..0, inner.outer_joins);
}

/// Takes over the order of a derived table, if the query has none and reads no other table.
fn take_order(block: &mut Block, order: Vec<OrderKey>, shift: Shift) {
    let alone = block.tables.len() == 1 && block.group.is_none() && !block.distinct;
    if alone && block.order.is_empty() && block.windows.is_empty() {
        block.order = order;
        block.order.iter_mut().for_each(|k| shift.expr(&mut k.expr));
    }
}

/// Replaces the columns of the slot by the expressions behind them. Each keeps the type that the
/// query gave the column.
fn substitute(e: &mut Expr, slot: usize, select: &[Expr]) {
    match e.as_column().filter(|at| usize::from(at.table) == slot) {
        Some(at) => e.kind = select[usize::from(at.column)].kind.clone(),
        None => e.each_child_mut(&mut |child| substitute(child, slot, select)),
    }
}

/// Recomputes which columns the block reads, for all slots.
fn mark_used(block: &mut Block) {
    let unused = |table: &crate::logical::query::Table| vec![false; table.used.len()];
    let mut used: Vec<Vec<bool>> = block.tables.iter().map(unused).collect();
    let mut mark = |e: &mut Expr| {
        e.any(&mut |e| {
            let at = e.as_column();
            let flag = at.and_then(|at| {
                let columns = used.get_mut(usize::from(at.table))?;
                columns.get_mut(usize::from(at.column))
            });
            flag.into_iter().for_each(|flag| *flag = true);
            false
        });
    };
    block.each_condition_mut(&mut mark);
    block.each_joined_expr_mut(&mut mark);
    for table in &mut block.tables {
        if let (Source::Derived(q), true) = (&mut table.source, table.lateral != 0) {
            let read = walk::outer_columns(q, 1, &mut |at, _| {
                used[usize::from(at.table)][usize::from(at.column)] = true;
                Ok::<(), Infallible>(())
            });
            read.unwrap_or_else(|never| match never {});
        }
    }
    for (table, used) in block.tables.iter_mut().zip(used) {
        table.used = used;
    }
}
