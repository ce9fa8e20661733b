//! OR of equalities of the same columns becomes IN over rows, whose members are searched, and which
//! an index over the columns can look up.
//!
//! ```text
//!   a = 1 AND b = 2  OR  b = 4 AND a = 3  OR  …     ─▶     (a, b) IN ((1, 2), (3, 4), …)
//! ```

use nfold_sql::ast::BinaryOp;

use crate::logical::expr::{Class, CmpKind, ColumnAt, Expr, ExprKind, ExprType};
use crate::logical::query::Block;

/// With fewer branches the search does not pay.
const BRANCHES_MIN: usize = 8;

/// Replaces such conditions in the WHERE of `block`.
pub(super) fn use_row_lists(block: &mut Block) {
    for condition in &mut block.conditions {
        if let ExprKind::Or(branches) = &condition.kind
            && branches.len() >= BRANCHES_MIN
            && let Some(list) = row_list(branches)
        {
            *condition = list;
        }
    }
}

/// A column, the comparison, and the constant of an equality.
type Member<'e> = (&'e Expr, CmpKind, &'e Expr);

fn row_list(branches: &[Expr]) -> Option<Expr> {
    let mut left: Vec<Expr> = Vec::new();
    let mut rows = Vec::with_capacity(branches.len());
    for branch in branches {
        let ExprKind::And(parts) = &branch.kind else {
            return None;
        };
        let members: Vec<Member<'_>> = parts.iter().map(equality).collect::<Option<_>>()?;
        if left.is_empty() {
            left.extend(members.iter().map(|(column, ..)| (*column).clone()));
        }
        let row = left.iter().map(|column| {
            let mut own = members.iter().filter(|(c, ..)| *c == column);
            let (_, kind, value) = own.next()?;
            own.next().is_none().then(|| (*kind, (*value).clone()))
        });
        let row: Vec<(CmpKind, Expr)> = row.collect::<Option<_>>()?;
        if members.len() != left.len() {
            return None;
        }
        rows.push(row);
    }
    let tables = left.iter().filter_map(Expr::as_column);
    let mut tables = tables.map(|ColumnAt { table, .. }| table);
    let first = tables.next()?;
    let one_table = tables.all(|table| table == first);
    one_table.then(|| Expr {
        kind: ExprKind::InRows {
            left,
            rows,
            negated: false,
        },
        ty: ExprType::boolean(true),
    })
}

/// `column = constant`, if IN compares the two in the same way.
fn equality(e: &Expr) -> Option<Member<'_>> {
    let ExprKind::Compare {
        op: BinaryOp::Eq,
        kind,
        sides,
    } = &e.kind
    else {
        return None;
    };
    let [a, b] = &**sides;
    let (column, value) = match (a.as_column(), b.as_column()) {
        (Some(_), None) => (a, b),
        (None, Some(_)) => (b, a),
        _ => return None,
    };
    let plain = match kind {
        CmpKind::Int => column.ty.class() == Class::Int && value.ty.class() == Class::Int,
        CmpKind::String(_) => {
            column.ty.class() == Class::String
                && column.ty.col.is_string()
                && !column.ty.col.is_enum_or_set()
                && value.ty.class() == Class::String
        }
        _ => false,
    };
    let literal = matches!(value.kind, ExprKind::Const(_) | ExprKind::Param(_));
    (plain && literal).then_some((column, *kind, value))
}
