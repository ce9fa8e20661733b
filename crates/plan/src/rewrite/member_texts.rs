//! An ENUM or SET on the left of a subquery is compared with numbers by its text, without a
//! warning: MySQL keeps the left side in a cache, as a text. The number of the member is compared
//! where MySQL has no such cache: in a condition `x IN (SELECT ...)` of WHERE or ON, which is a
//! semi join, in a NOT IN without NULLs, and in IN with one column and an uncorrelated subquery.

use crate::logical::describe::keep;
use crate::logical::expr::{CmpKind, Expr, ExprKind, SubqueryUse, TextOrigin};
use crate::logical::query::{Block, Subquery};

/// Makes members on the left of the block's subqueries texts.
pub(super) fn compare_texts(block: &mut Block) {
    if block.subqueries.is_empty() {
        return;
    }
    let of_joins = block.outer_joins.iter().flat_map(|join| &join.on);
    let conditions = block.conditions.iter().chain(of_joins);
    let joined: Vec<u16> = (conditions.filter_map(|e| semi_joined(e, &block.subqueries))).collect();
    let mut subqueries = std::mem::take(&mut block.subqueries);
    crate::logical::walk::each_of_clauses(block, 1, &mut |e, _| {
        if let ExprKind::Subquery { index, use_as } = &mut e.kind
            && !joined.contains(index)
        {
            compare_text(&mut subqueries[usize::from(*index)], use_as);
        }
    });
    block.subqueries = subqueries;
}

/// The subquery of a condition that MySQL turns into a semi or an anti join.
fn semi_joined(condition: &Expr, subqueries: &[Subquery]) -> Option<u16> {
    let ExprKind::Subquery { index, use_as } = &condition.kind else {
        return None;
    };
    let SubqueryUse::In { left, negated, .. } = use_as else {
        return None;
    };
    let types = &subqueries[usize::from(*index)].query.types;
    let nullable = left
        .iter()
        .map(|e| &e.ty)
        .chain(types)
        .any(|ty| ty.nullable);
    (!negated || !nullable).then_some(*index)
}

fn compare_text(sub: &mut Subquery, use_as: &mut SubqueryUse) {
    let (left, kinds) = match use_as {
        SubqueryUse::In { left, .. } if !sub.correlated && left.len() == 1 => return,
        SubqueryUse::In { left, kinds, .. } => (left.as_mut_slice(), kinds.as_mut_slice()),
        SubqueryUse::Quantified { left, kind, .. } => (
            std::slice::from_mut(&mut **left),
            std::slice::from_mut(kind),
        ),
        _ => return,
    };
    for (n, (e, kind)) in left.iter_mut().zip(kinds).enumerate() {
        let number = matches!(kind, CmpKind::Int | CmpKind::Decimal | CmpKind::Double);
        if number && e.ty.col.is_enum_or_set() {
            keep(e);
            e.ty.origin = TextOrigin::Checked;
            *kind = CmpKind::Double;
            if let Some(operand) = sub.operands.get_mut(n) {
                *operand = (e.ty.clone(), *kind);
            }
        }
    }
}
