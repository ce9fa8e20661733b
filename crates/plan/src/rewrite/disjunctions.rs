//! OR of conditions on several tables. Conditions that all branches share are moved out of the OR.
//! The conditions of all branches on a single table form an additional OR. Joins and indexes can
//! use the former, and scans can test the latter early.
//!
//! ```text
//!   a.id = b.k AND a.x = 1 OR a.id = b.k AND a.x = 2 AND b.x > 3
//!     ─▶  a.id = b.k  AND  (a.x = 1 OR a.x = 2 AND b.x > 3)  AND  (a.x = 1 OR a.x = 2)
//! ```
//!
//! In a correlated subquery the columns of the enclosing query count as another table.

use crate::logical::context::PlanCx;
use crate::logical::expr::{Expr, ExprKind, ExprType};
use crate::logical::query::Block;
use crate::logical::tame::{converts, is_tame};

/// An OR with more branches is left unchanged.
const BRANCHES_MAX: usize = 64;

/// Extracts the shared conditions of each OR in the WHERE of `block`, and adds what the OR implies
/// for single tables.
pub(super) fn take_apart(cx: &PlanCx<'_>, block: &mut Block) {
    // The shared equalities of a correlated subquery are those by which it is decorrelated.
    let joins = |e: &Expr| matches!(e.kind, ExprKind::Or(_)) && e.any(&mut names_outer);
    if block.tables.len() < 2 && !block.conditions.iter().any(joins) {
        return;
    }
    let mut added = Vec::new();
    let conditions = std::mem::take(&mut block.conditions);
    for condition in conditions {
        match condition.kind {
            ExprKind::Or(list) if list.len() <= BRANCHES_MAX => {
                let mut branches: Vec<Vec<Expr>> = list.into_iter().map(conjuncts).collect();
                block.conditions.extend(common(cx, &mut branches));
                if branches.iter().all(|branch| !branch.is_empty()) {
                    let tables = 0..block.tables.len().min(63);
                    added.extend(tables.filter_map(|t| of_table(cx, t, &branches)));
                    block.conditions.push(any_branch(branches, condition.ty));
                }
            }
            kind => block.conditions.push(Expr { kind, ..condition }),
        }
    }
    block.conditions.append(&mut added);
}

fn names_outer(e: &Expr) -> bool {
    matches!(e.kind, ExprKind::Outer { .. })
}

fn conjuncts(e: Expr) -> Vec<Expr> {
    match e.kind {
        ExprKind::And(list) => list.into_iter().flat_map(conjuncts).collect(),
        _ => vec![e],
    }
}

/// Removes the conditions that all branches share, and returns them.
fn common(cx: &PlanCx<'_>, branches: &mut [Vec<Expr>]) -> Vec<Expr> {
    let Some((first, others)) = branches.split_first_mut() else {
        return Vec::new();
    };
    let shared = |e: &mut Expr| is_tame(cx, e) && others.iter().all(|branch| branch.contains(e));
    let taken: Vec<Expr> = first.extract_if(.., shared).collect();
    for branch in branches {
        branch.retain(|e| !taken.contains(e));
    }
    taken
}

/// The condition on table `t` alone that the branches imply; `None` if a branch has no condition on
/// `t` alone.
fn of_table(cx: &PlanCx<'_>, t: usize, branches: &[Vec<Expr>]) -> Option<Expr> {
    let one_table = branches.iter().flatten().all(|e| is_of(e, t));
    if one_table {
        return None;
    }
    let mut parts = Vec::with_capacity(branches.len());
    for branch in branches {
        let own = branch.iter().filter(|e| is_of(e, t));
        let own: Vec<Expr> = own
            .filter(|e| is_tame(cx, e) && !converts(e))
            .cloned()
            .collect();
        if own.is_empty() {
            return None;
        }
        parts.push(own);
    }
    Some(any_branch(parts, ExprType::boolean(true)))
}

/// Whether `e` names columns of slot `t` only, and has no subquery.
fn is_of(e: &Expr, t: usize) -> bool {
    let mut named = false;
    let other = e.any(&mut |e| match &e.kind {
        ExprKind::Column(at) => {
            named = true;
            usize::from(at.table) != t
        }
        ExprKind::Subquery { .. } => true,
        _ => false,
    });
    named && !other
}

/// OR of branches, each of which is an AND of conditions.
fn any_branch(branches: Vec<Vec<Expr>>, ty: ExprType) -> Expr {
    let all = |mut branch: Vec<Expr>| match branch.len() {
        1 => branch.remove(0),
        _ => Expr {
            kind: ExprKind::And(branch),
            ty: ExprType::boolean(true),
        },
    };
    let mut list: Vec<Expr> = branches.into_iter().map(all).collect();
    match list.len() {
        1 => list.remove(0),
        _ => Expr {
            kind: ExprKind::Or(list),
            ty,
        },
    }
}
