//! OR of conditions on several tables: what all its branches say stands beside it, and so does what
//! they say of each table alone. Joins and indexes find the first, scans test the second early.
//!
//! ```text
//!   a.id = b.k AND a.x = 1 OR a.id = b.k AND a.x = 2 AND b.x > 3
//!     ─▶  a.id = b.k  AND  (a.x = 1 OR a.x = 2 AND b.x > 3)  AND  (a.x = 1 OR a.x = 2)
//! ```

use crate::logical::context::PlanCx;
use crate::logical::expr::{Expr, ExprKind, ExprType};
use crate::logical::query::Block;
use crate::logical::tame::{converts, is_tame};

/// OR of more branches is left as it is.
const BRANCHES_MAX: usize = 64;

/// Takes conditions out of OR in the WHERE of `block`, and adds what OR says of single tables.
pub(super) fn take_apart(cx: &PlanCx<'_>, block: &mut Block) {
    if block.tables.len() < 2 {
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
                    block.conditions.push(either(branches, condition.ty));
                }
            }
            kind => block.conditions.push(Expr { kind, ..condition }),
        }
    }
    block.conditions.append(&mut added);
}

fn conjuncts(e: Expr) -> Vec<Expr> {
    match e.kind {
        ExprKind::And(list) => list.into_iter().flat_map(conjuncts).collect(),
        _ => vec![e],
    }
}

/// Takes the conditions out that all branches have.
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

/// What the branches say of table `t` alone, if each says something; nothing that is several
/// tables' is in them.
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
    Some(either(parts, ExprType::boolean(true)))
}

/// Whether it names columns of slot `t` alone, and runs no subquery.
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

/// OR of branches that are each AND of conditions.
fn either(branches: Vec<Vec<Expr>>, ty: ExprType) -> Expr {
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
