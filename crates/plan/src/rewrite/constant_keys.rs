//! Constants in GROUP BY that no result shows: `SELECT COUNT(*) FROM t GROUP BY 'a' + 0`. As in
//! MySQL, they are not evaluated, and cause no warning.

use nfold_types::Value;

use super::decorrelate::is_repeatable;
use crate::logical::context::PlanCx;
use crate::logical::expr::{Expr, ExprKind, ExprType, is_constant};
use crate::logical::query::Block;

/// Puts a literal in the place of each constant key of GROUP BY that the block does not name again.
pub(super) fn simplify(cx: &PlanCx<'_>, block: &mut Block) {
    let Some(group) = &mut block.group else {
        return;
    };
    let computed = |e: &Expr| {
        let literal = matches!(e.kind, ExprKind::Const(_) | ExprKind::Param(_));
        !literal && is_constant(e) && is_repeatable(cx, e)
    };
    let named_elsewhere = group.rollup
        || !block.windows.is_empty()
        || block.subqueries.iter().any(|subquery| subquery.correlated);
    if named_elsewhere || !group.keys.iter().any(computed) {
        return;
    }
    for (n, key) in group.keys.iter_mut().enumerate() {
        let names_key = |e: &Expr| {
            e.as_column()
                .is_some_and(|at| at.table == 0 && usize::from(at.column) == n)
        };
        let order = block.order.iter().map(|k| &k.expr);
        let mut over_groups = block.select.iter().chain(&block.having).chain(order);
        if computed(key) && !over_groups.any(|e| e.any(&mut |e| names_key(e))) {
            *key = Expr::constant(Value::Int(1), ExprType::int(1, false));
        }
    }
}
