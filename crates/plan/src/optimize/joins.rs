//! The join order: tables are placed one by one. Each step takes the table that multiplies the rows
//! so far least, by the access path that costs least given the placed tables. A condition goes to
//! the first step at which all its tables are placed. Estimates come from statistics alone: the
//! optimizer reads no index.

use nfold_types::TypeKind;

use super::candidate::{self, Candidate};
use super::order;
use super::outer::OuterJoins;
use crate::logical::context::PlanCx;
use crate::logical::expr::{Expr, ExprKind};
use crate::logical::func::is_volatile;
use crate::logical::query::{IndexHints, OuterJoin};
use crate::physical::{Access, AccessKind, Block, HashKey, JoinStep, JoinType, TableSource};

/// Rows assumed of a table without statistics.
pub(super) const UNKNOWN_ROWS: f64 = 10_000.0;
/// A range for each outer row is read where it has no more rows than these, about; of more a hash
/// table is made where there is an equality for it.
const RANGED_MAX: f64 = 64.0;
/// Rows assumed of derived tables and views.
const DERIVED_ROWS: f64 = 100.0;
/// A list parameter counts for so many members at most: the plan serves shorter lists as well, and
/// losing an index over a list's length costs far more than using it in vain.
pub(super) const LIST_ROWS_MAX: usize = 16;
/// A table counts for so many rows at least where a scan of it is weighed: it may have grown by the
/// time the plan runs.
pub(super) const SCAN_ROWS_MIN: f64 = 1_000.0;

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

/// The parts of a logical block that decide how its tables are joined.
#[derive(Debug, Clone)]
pub(super) struct JoinGraph {
    /// The conditions of WHERE and of inner joins.
    pub conditions: Vec<Expr>,
    pub outer_joins: Vec<OuterJoin>,
    /// Of each slot.
    pub hints: Vec<IndexHints>,
    /// STRAIGHT_JOIN
    pub straight: bool,
    /// LIMIT cuts the rows off, so that few may be read.
    pub limited: bool,
}

/// Chooses the access paths and the join order of `block`, and puts every condition in its place.
pub(super) fn join_tables(cx: &PlanCx<'_>, block: &mut Block, graph: JoinGraph) {
    let JoinGraph {
        conditions,
        outer_joins,
        hints,
        straight,
        limited,
    } = graph;
    let (constant, pending): (Vec<Expr>, Vec<Expr>) = conditions
        .into_iter()
        .partition(|e| slots_of(e, block) == 0 && !is_volatile(cx.funcs, e));
    block.constant_filter = constant;
    let mut placer = Placer {
        cx,
        block,
        hints: &hints,
        limited,
        outer: OuterJoins::new(outer_joins),
        pending,
        placed: 0,
    };
    let n = placer.block.tables.len();
    let mut steps: Vec<JoinStep> = Vec::with_capacity(n);
    for _ in 0..n {
        let Some(mut step) = placer.cheapest_step(straight) else {
            break;
        };
        placer.place(&mut step);
        steps.push(step);
    }
    let mut pending = placer.pending;
    match steps.last_mut() {
        Some(last) => last.filter.append(&mut pending),
        // No table at all.
        None => block.having.append(&mut pending),
    }
    block.joins = steps;
    order::use_index_order(block);
}

/// The tables placed so far, and the conditions that wait for others.
struct Placer<'p> {
    cx: &'p PlanCx<'p>,
    block: &'p Block,
    hints: &'p [IndexHints],
    limited: bool,
    outer: OuterJoins,
    pending: Vec<Expr>,
    /// As a bit set.
    placed: u64,
}

impl Placer<'_> {
    /// The step that multiplies the rows least. `straight`: that of the next table as written.
    fn cheapest_step(&self, straight: bool) -> Option<JoinStep> {
        let may_come =
            |t: &usize| self.placed >> t & 1 == 0 && self.outer.may_place(*t, self.placed);
        let mut best: Option<(f64, JoinStep)> = None;
        for t in (0..self.block.tables.len()).filter(may_come) {
            let step = self.step_for(t);
            let weight = step.rows * step.filtered / 100.0 + 0.001 * step.rows;
            if best.as_ref().is_none_or(|(w, _)| weight < *w) {
                best = Some((weight, step));
            }
            if straight {
                break;
            }
        }
        best.map(|(_, step)| step)
    }

    /// Places the table of `step`, which gets the conditions that have all their tables now. Those
    /// that the access path implies are not tested again.
    fn place(&mut self, step: &mut JoinStep) {
        self.placed |= 1 << step.table;
        let placed = self.placed;
        let own = self.outer.place(self.block, step.table, placed);
        let implied = |e: &Expr| step.access.implied.contains(e);
        step.on = own.on.into_iter().filter(|e| !implied(e)).collect();
        step.nest = own.nest;
        if own.whole {
            let (ready, rest): (Vec<Expr>, Vec<Expr>) = std::mem::take(&mut self.pending)
                .into_iter()
                .partition(|e| slots_of(e, self.block) & !placed == 0);
            self.pending = rest;
            let inner = step.kind == JoinType::Inner && step.nest.is_none();
            step.filter = ready
                .into_iter()
                .filter(|e| !inner || !implied(e))
                .collect();
        }
    }

    /// The step that would join slot `t` next.
    fn step_for(&self, t: usize) -> JoinStep {
        let (block, placed) = (self.block, self.placed);
        let with_t = placed | 1 << t;
        let usable = self.outer.conditions(block, t, with_t).unwrap_or_else(|| {
            let ready = |e: &&Expr| slots_of(e, block) & !with_t == 0;
            self.pending.iter().filter(ready).collect()
        });
        let first = placed == 0;
        let mut candidate = self.candidate(t, &usable);
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
            candidate = self.candidate(t, &own);
        }
        let (mut access, mut rows) = (candidate.access, candidate.rows);
        let depends_on_outer = access_slots(&access, block) & placed != 0;
        if !first && !depends_on_outer && !matches!(access.kind, AccessKind::Empty) {
            // Read once into a hash table, and probed by the equalities.
            if !keys.is_empty() {
                rows = (rows / 10.0).max(1.0);
            }
            access = hash_access(access, keys);
        }
        let own = usable.iter().filter(|e| !access.implied.contains(e));
        let filtered = own.fold(100.0, |f: f64, e| f * selectivity(e)).max(0.01);
        let kind = match self.outer.is_alone(t) {
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

    /// The cheapest access path of slot `t` by these conditions.
    fn candidate(&self, t: usize, usable: &[&Expr]) -> Candidate {
        let TableSource::Table(def) = &self.block.tables[t].source else {
            return Candidate {
                access: candidate::path(0, false, AccessKind::Source),
                rows: DERIVED_ROWS,
                cost: DERIVED_ROWS,
            };
        };
        let stats = self.cx.info.stats(def.id);
        let wanted = match self.placed {
            0 => order::wanted(self.block, self.limited),
            _ => None,
        };
        candidate::choose(
            self.cx,
            self.block,
            t,
            def,
            stats.as_deref(),
            usable,
            &self.hints[t],
            wanted,
        )
    }
}

/// The path that puts the rows of `build` into a hash table by `keys`.
fn hash_access(mut build: Access, keys: Vec<HashKey>) -> Access {
    let kind = std::mem::replace(&mut build.kind, AccessKind::Empty);
    let shell = build.clone();
    build.kind = kind;
    Access {
        kind: AccessKind::Hash {
            build: Box::new(build),
            keys,
        },
        ..shell
    }
}

/// Whether an access path reads, for each row of the slots in `placed`, a range that follows from
/// it, and no equality that does.
fn ranges_by(access: &Access, placed: u64, block: &Block) -> bool {
    let free = match &access.kind {
        AccessKind::Range { prefix, .. } => {
            let mut mask = 0;
            let points = AccessKind::Points(prefix.clone());
            points.each_expr(&mut |e| mask |= slots_of(e, block));
            mask & placed == 0
        }
        AccessKind::Ranges(_) => true,
        _ => false,
    };
    free && access_slots(access, block) & placed != 0
}

fn access_slots(access: &Access, block: &Block) -> u64 {
    let mut mask = 0;
    access.kind.each_expr(&mut |e| mask |= slots_of(e, block));
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
