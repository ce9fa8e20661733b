//! From conditions to access paths and a join order.
//!
//! Tables are placed one by one; each step takes the table that multiplies the rows so far least, by the access path that costs least
//! given what is placed already. A condition goes to the first step at which all its tables are there. Estimates come from statistics
//! alone: no plan looks into an index.

mod candidate;
mod order;
mod outer;
mod predicate;

use nfold_types::TypeKind;

use crate::bind::FromInfo;
use crate::logical::context::PlanCx;
use crate::logical::expr::{Expr, ExprKind};
use crate::logical::func::is_volatile;
use crate::query::{Access, AccessKind, Block, HashKey, JoinStep, JoinType, TableSource};

pub(crate) use candidate::{Candidate, each_expr};
use outer::OuterJoins;

/// Rows assumed of a table without statistics.
const UNKNOWN_ROWS: f64 = 10_000.0;
/// A range for each outer row is read where it has no more rows than these, about; of more a hash table is made where there is an equality for it.
const RANGED_MAX: f64 = 64.0;
/// Rows assumed of derived tables and views.
const DERIVED_ROWS: f64 = 100.0;
/// A list parameter counts for so many members at most: the plan serves shorter lists as well, and losing an index over a list's
/// length costs far more than using it in vain.
const LIST_ROWS_MAX: usize = 16;
/// A table counts for so many rows at least where a scan of it is weighed: it may have grown by the time the plan runs.
const SCAN_ROWS_MIN: f64 = 1_000.0;

/// The row slots that an expression looks at, as a bit set.
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

/// Chooses access paths and join order, and puts every condition in its place.
pub(crate) fn optimize(
    cx: &PlanCx<'_>,
    block: &mut Block,
    mut conditions: Vec<Expr>,
    info: &FromInfo,
    has_limit: bool,
) {
    let mut joins = info.outer_joins.clone();
    crate::bind::pad::pad_block(cx, block, &mut conditions, &mut joins);
    let mut pending = conditions;
    let mut outer = OuterJoins::new(joins, block, &mut pending);
    let (constant, mut pending): (Vec<Expr>, Vec<Expr>) = pending
        .into_iter()
        .partition(|e| slots_of(e, block) == 0 && !is_volatile(cx.funcs, e));
    block.constant_filter = constant;

    let n = block.tables.len();
    let mut placed = 0u64;
    let mut steps: Vec<JoinStep> = Vec::with_capacity(n);
    for _ in 0..n {
        let may_come = |t: &usize| placed >> t & 1 == 0 && outer.may_place(*t, placed);
        let mut best: Option<(f64, JoinStep)> = None;
        for t in (0..n).filter(may_come) {
            let step = step_for(cx, block, t, placed, &pending, &outer, info, has_limit);
            let weight = step.rows * step.filtered / 100.0 + 0.001 * step.rows;
            if best.as_ref().is_none_or(|(w, _)| weight < *w) {
                best = Some((weight, step));
            }
            if info.straight {
                break;
            }
        }
        let Some((_, mut step)) = best else { break };
        placed |= 1 << step.table;
        // The access path's own conditions are not tested again.
        let left = outer.place(block, step.table, placed);
        let implied = |e: &Expr| step.access.implied.contains(e);
        step.on = left.on.into_iter().filter(|e| !implied(e)).collect();
        step.nest = left.nest;
        if left.whole {
            // Conditions that have all their tables now.
            let (ready, rest): (Vec<Expr>, Vec<Expr>) = pending
                .into_iter()
                .partition(|e| slots_of(e, block) & !placed == 0);
            pending = rest;
            let inner = step.kind == JoinType::Inner && step.nest.is_none();
            step.filter = ready
                .into_iter()
                .filter(|e| !inner || !implied(e))
                .collect();
        }
        steps.push(step);
    }
    if let (Some(last), false) = (steps.last_mut(), pending.is_empty()) {
        last.filter.append(&mut pending);
    } else if !pending.is_empty() {
        // No table at all.
        block.having.append(&mut pending);
    }
    block.joins = steps;
    order::settle(block);
}

#[allow(clippy::too_many_arguments)]
fn step_for(
    cx: &PlanCx<'_>,
    block: &Block,
    t: usize,
    placed: u64,
    pending: &[Expr],
    outer: &OuterJoins,
    info: &FromInfo,
    has_limit: bool,
) -> JoinStep {
    let in_sight = placed | 1 << t;
    let usable = outer.conditions(block, t, in_sight).unwrap_or_else(|| {
        let ready = |e: &&Expr| slots_of(e, block) & !in_sight == 0;
        pending.iter().filter(ready).collect()
    });
    let first = placed == 0;
    let choose = |usable: &[&Expr]| match &block.tables[t].source {
        TableSource::Table(def) => {
            let stats = cx.info.stats(def.id);
            let wish = if first {
                order::wish(block, has_limit)
            } else {
                None
            };
            candidate::choose(
                cx,
                block,
                t,
                def,
                stats.as_deref(),
                usable,
                &info.hints[t],
                wish,
            )
        }
        _ => Candidate {
            access: Access {
                index: 0,
                covering: false,
                reverse: false,
                kind: AccessKind::Source,
                implied: Vec::new(),
                possible: Vec::new(),
            },
            rows: DERIVED_ROWS,
            cost: DERIVED_ROWS,
        },
    };
    let mut candidate = choose(&usable);
    let keys = match first {
        true => Vec::new(),
        false => hash_keys(&usable, t, placed, block),
    };
    if !keys.is_empty()
        && candidate.rows > RANGED_MAX
        && ranges_by(&candidate.access, placed, block)
    {
        let own = |e: &&&Expr| slots_of(e, block) & placed == 0;
        let own: Vec<&Expr> = usable.iter().filter(own).copied().collect();
        candidate = choose(&own);
    }
    let mut access = candidate.access;
    let mut rows = candidate.rows;
    let depends_on_outer = access_slots(&access, block) & placed != 0;
    if !first && !depends_on_outer && !matches!(access.kind, AccessKind::Empty) {
        // Read once, kept, looked up by what is equal.
        if !keys.is_empty() {
            rows = (rows / 10.0).max(1.0);
        }
        let shell = Access {
            kind: AccessKind::Empty,
            ..access.clone()
        };
        let build = std::mem::replace(&mut access, shell);
        access.implied = build.implied.clone();
        access.kind = AccessKind::Hash {
            build: Box::new(build),
            keys,
        };
    }
    let own: Vec<&&Expr> = usable
        .iter()
        .filter(|e| !access.implied.contains(e))
        .collect();
    let filtered = own
        .iter()
        .fold(100.0, |f: f64, e| f * selectivity(e))
        .max(0.01);
    let kind = match outer.is_alone(t) {
        true => JoinType::Left,
        false => JoinType::Inner,
    };
    JoinStep {
        table: t,
        access,
        kind,
        on: Vec::new(),
        nest: None,
        filter: Vec::new(),
        rows,
        filtered,
    }
}

/// Whether an access path reads, for each row of the slots in `placed`, a range that follows from it, and no equality that does.
fn ranges_by(access: &Access, placed: u64, block: &Block) -> bool {
    let free = match &access.kind {
        AccessKind::Range { prefix, .. } => {
            let mut mask = 0;
            let points = AccessKind::Points(prefix.clone());
            candidate::each_expr(&points, &mut |e| mask |= slots_of(e, block));
            mask & placed == 0
        }
        AccessKind::Ranges(_) => true,
        _ => false,
    };
    free && access_slots(access, block) & placed != 0
}

fn access_slots(access: &Access, block: &Block) -> u64 {
    let mut mask = 0;
    candidate::each_expr(&access.kind, &mut |e| mask |= slots_of(e, block));
    mask
}

/// Equalities between slot `t` and those before it.
fn hash_keys(usable: &[&Expr], t: usize, placed: u64, block: &Block) -> Vec<HashKey> {
    let mut keys = Vec::new();
    for c in usable {
        let ExprKind::Compare {
            op: nfold_sql::ast::BinaryOp::Eq,
            kind,
            sides,
        } = &c.kind
        else {
            continue;
        };
        let (a, b) = (slots_of(&sides[0], block), slots_of(&sides[1], block));
        let own = 1u64 << t;
        let key = if a == own && b != 0 && b & !placed == 0 {
            HashKey {
                inner: sides[0].clone(),
                outer: sides[1].clone(),
                kind: *kind,
            }
        } else if b == own && a != 0 && a & !placed == 0 {
            HashKey {
                inner: sides[1].clone(),
                outer: sides[0].clone(),
                kind: *kind,
            }
        } else {
            continue;
        };
        keys.push(key);
    }
    keys
}

/// The share of rows that MySQL assumes a condition keeps when it knows nothing better.
fn selectivity(e: &Expr) -> f64 {
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

/// Whether a column's key order is the order in which comparisons of its type see its values.
pub(crate) fn orders_like_key(kind: &TypeKind) -> bool {
    !matches!(kind, TypeKind::Enum(_) | TypeKind::Set(_))
}
