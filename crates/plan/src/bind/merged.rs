//! Derived tables, views and common table expressions that become part of the query that reads them, so that their tables are found by index and joined in
//! any order. What is merged: query blocks without groups, windows, DISTINCT, LIMIT and subqueries, of expressions that are the same whenever they are computed.
//!
//! # Picture
//! ```text
//!   SELECT q.s FROM t JOIN (SELECT a.x + 1 AS s FROM a JOIN b ON .. WHERE p) q ON q.s = t.id
//!      slots  t, q        ─▶  t, a, b          a has the place of q, b comes behind the others
//!      q.s                ─▶  a.x + 1          wherever the joined row is looked at
//!      p, and b's ON      ─▶  conditions of WHERE, or of the outer join on whose inner side q is
//! ```
//! What columns are called and described as was settled before: nothing of that changes.

use super::from::FromInfo;
use super::{BindCx, MAX_TABLES};
use crate::logical::expr::{Expr, ExprKind};
use crate::logical::func::is_volatile;
use crate::logical::mode::SqlMode;
use crate::query::{Block, OrderKey, QueryBody, TableSource};

/// A block as it was before its access paths were chosen.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Unplanned {
    block: Block,
    conditions: Vec<Expr>,
    info: FromInfo,
}

impl Unplanned {
    /// Of a block that can be merged.
    pub fn of(
        cx: &BindCx<'_>,
        block: &Block,
        conditions: &[Expr],
        info: &FromInfo,
    ) -> Option<Box<Unplanned>> {
        let plain = block.group.is_none()
            && !block.distinct
            && block.windows.is_empty()
            && block.subqueries.is_empty()
            && block.having.is_empty()
            && block.lock.strength.is_none()
            && !block.tables.is_empty()
            && !info.straight
            && !cx.mode.has(SqlMode::PAD_CHAR_TO_FULL_LENGTH);
        let joined = info.outer_joins.iter().flat_map(|join| &join.on);
        let all = block.select.iter().chain(conditions).chain(joined);
        let mut all = all.chain(block.order.iter().map(|k| &k.expr));
        let steady = |e: &Expr| {
            !is_volatile(cx.funcs, e) && !e.any(&mut |e| matches!(e.kind, ExprKind::UserVar(_)))
        };
        (plain && all.all(steady)).then(|| {
            Box::new(Unplanned {
                block: block.clone(),
                conditions: conditions.to_vec(),
                info: info.clone(),
            })
        })
    }
}

/// Merges what can be merged into `block`, whose access paths are to be chosen next.
pub(super) fn merge(block: &mut Block, conditions: &mut Vec<Expr>, info: &mut FromInfo) {
    // A subquery that names columns of the block is planned already.
    let fixed = block.subqueries.iter().any(|q| q.correlated);
    let mut merged = false;
    for slot in 0..block.tables.len() {
        let TableSource::Derived(query) = &mut block.tables[slot].source else {
            continue;
        };
        let QueryBody::Block(inner) = &mut query.body else {
            continue;
        };
        let Some(unplanned) = inner.unplanned.take() else {
            continue;
        };
        if !fixed && query.limit.is_none() && fits(block, info, slot, &unplanned) {
            put_in(block, conditions, info, slot, *unplanned);
            merged = true;
        }
    }
    if merged {
        mark_used(block, conditions, info);
    }
}

/// Nothing will be merged into `block`.
pub(super) fn forget(block: &mut Block) {
    for table in &mut block.tables {
        if let TableSource::Derived(query) = &mut table.source
            && let QueryBody::Block(inner) = &mut query.body
        {
            inner.unplanned = None;
        }
    }
}

fn fits(block: &Block, info: &FromInfo, slot: usize, inner: &Unplanned) -> bool {
    let more = inner.block.tables.len() - 1;
    // NULLs of an outer join make NULLs of columns, and not of every expression.
    let nullable = info
        .outer_joins
        .iter()
        .any(|join| join.inner >> slot & 1 == 1);
    let columns = || inner.block.select.iter().all(|e| e.as_column().is_some());
    block.tables.len() + more <= MAX_TABLES
        && (more == 0 || block.windows.is_empty())
        && (!nullable || columns())
}

/// Where the slots of a merged block go.
#[derive(Clone, Copy)]
struct Shift {
    /// Of its first table.
    slot: usize,
    /// Of its second one.
    base: usize,
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
        if let ExprKind::Column(at) = &mut e.kind {
            at.table = self.table(usize::from(at.table)) as u16;
        }
        e.each_child_mut(&mut |child| self.expr(child));
    }
}

fn put_in(
    block: &mut Block,
    conditions: &mut Vec<Expr>,
    info: &mut FromInfo,
    slot: usize,
    unplanned: Unplanned,
) {
    let Unplanned {
        block: mut inner,
        conditions: mut own,
        info: mut own_info,
    } = unplanned;
    let shift = Shift {
        slot,
        base: block.tables.len(),
    };
    inner.select.iter_mut().for_each(|e| shift.expr(e));
    own.iter_mut().for_each(|e| shift.expr(e));
    for join in &mut own_info.outer_joins {
        join.on.iter_mut().for_each(|e| shift.expr(e));
        (join.inner, join.outer) = (shift.set(join.inner), shift.set(join.outer));
    }
    each_of_rows(block, &mut |e| put_expr(e, slot, &inner.select));
    let joined = info.outer_joins.iter_mut().flat_map(|join| &mut join.on);
    conditions
        .iter_mut()
        .chain(joined)
        .for_each(|e| put_expr(e, slot, &inner.select));
    take_order(block, inner.order, shift);
    // The tables, and on which sides of outer joins they are.
    let nullable = block.tables[slot].nullable;
    let mut added = 0;
    for (n, (mut table, hints)) in inner.tables.into_iter().zip(own_info.hints).enumerate() {
        table.nullable |= nullable;
        table.merged = true;
        if n == 0 {
            block.tables[slot] = table;
            info.hints[slot] = hints;
        } else {
            added |= 1 << block.tables.len();
            block.tables.push(table);
            info.hints.push(hints);
        }
    }
    let has = |set: u64| set >> slot & 1 == 1;
    block.lock.of |= if has(block.lock.of) { added } else { 0 };
    for join in &mut info.outer_joins {
        for side in [&mut join.inner, &mut join.outer] {
            *side |= if has(*side) { added } else { 0 };
        }
    }
    match info.outer_joins.iter_mut().find(|join| has(join.inner)) {
        Some(join) => join.on.append(&mut own),
        None => conditions.append(&mut own),
    }
    // Those within others come first.
    info.outer_joins.splice(0..0, own_info.outer_joins);
}

/// The order of a derived table is that of a query that has none, and reads nothing else.
fn take_order(block: &mut Block, order: Vec<OrderKey>, shift: Shift) {
    let alone = block.tables.len() == 1 && block.group.is_none() && !block.distinct;
    if alone && block.order.is_empty() && block.windows.is_empty() {
        block.order = order;
        block.order.iter_mut().for_each(|k| shift.expr(&mut k.expr));
    }
}

/// Puts in what stands for the columns of the slot; what they are to the query stays.
fn put_expr(e: &mut Expr, slot: usize, select: &[Expr]) {
    match e.as_column().filter(|at| usize::from(at.table) == slot) {
        Some(at) => e.kind = select[usize::from(at.column)].kind.clone(),
        None => e.each_child_mut(&mut |child| put_expr(child, slot, select)),
    }
}

/// Calls `f` with each expression over the joined row.
fn each_of_rows(block: &mut Block, f: &mut dyn FnMut(&mut Expr)) {
    match &mut block.group {
        Some(group) => {
            group.keys.iter_mut().for_each(&mut *f);
            for a in &mut group.aggregates {
                a.args.iter_mut().for_each(&mut *f);
                a.order.iter_mut().for_each(|k| f(&mut k.expr));
            }
        }
        None => {
            block.having.iter_mut().for_each(&mut *f);
            for pass in &mut block.windows {
                pass.each_expr_mut(&mut *f);
            }
            block.select.iter_mut().for_each(&mut *f);
            block.order.iter_mut().for_each(|k| f(&mut k.expr));
        }
    }
}

/// Which columns are looked at, of all slots.
fn mark_used(block: &mut Block, conditions: &[Expr], info: &FromInfo) {
    let mut used: Vec<Vec<bool>> = Vec::with_capacity(block.tables.len());
    for table in &block.tables {
        used.push(vec![false; table.used.len()]);
    }
    let mut mark = |e: &Expr| {
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
    let joined = info.outer_joins.iter().flat_map(|join| &join.on);
    conditions.iter().chain(joined).for_each(&mut mark);
    each_of_rows(block, &mut |e| mark(e));
    for (table, used) in block.tables.iter_mut().zip(used) {
        table.used = used;
    }
}
