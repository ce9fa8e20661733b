//! Disjunctions of ranges over one integer column: `(n > 1 AND n < 5) OR n = 9 OR ...`. The ranges
//! are sorted once per execution; a value is then found by binary search.

use nfold_plan::expr::{CmpKind, Expr, ExprKind};
use nfold_sql::ast::BinaryOp;

/// The minimum number of ranges; fewer are tested one by one.
pub(crate) const RANGES_MIN: usize = 8;

/// A range of integers with both ends included. It is empty if the first is greater than the
/// second.
pub(crate) type Range = (i128, i128);
const ALL: Range = (i128::MIN, i128::MAX);

/// The column of a range, taken from its first comparison.
pub(crate) fn column_of(member: &Expr) -> Option<&Expr> {
    let is_column = |e: &&Expr| matches!(e.kind, ExprKind::Column(_));
    match &member.kind {
        ExprKind::And(list) => list.first().and_then(column_of),
        ExprKind::Compare { sides, .. } => sides.iter().find(is_column),
        ExprKind::Between { parts, .. } => Some(&parts[0]).filter(is_column),
        _ => None,
    }
}

/// The values of `column` for which `member` holds. `None`: `member` is no range with constant
/// bounds.
pub(crate) fn range_of(
    member: &Expr,
    column: &Expr,
    constant: &impl Fn(&Expr) -> Option<i128>,
) -> Option<Range> {
    match &member.kind {
        ExprKind::And(list) => list.iter().try_fold(ALL, |(low, high), part| {
            let (from, to) = range_of(part, column, constant)?;
            Some((low.max(from), high.min(to)))
        }),
        ExprKind::Compare {
            op,
            kind: CmpKind::Int,
            sides,
        } => {
            let [left, right] = &**sides;
            if left.kind == column.kind {
                compared(*op, constant(right)?)
            } else if right.kind == column.kind {
                compared(turned(*op)?, constant(left)?)
            } else {
                None
            }
        }
        ExprKind::Between {
            parts,
            kinds: [CmpKind::Int, CmpKind::Int],
            negated: false,
        } if parts[0].kind == column.kind => Some((constant(&parts[1])?, constant(&parts[2])?)),
        _ => None,
    }
}

fn compared(op: BinaryOp, value: i128) -> Option<Range> {
    Some(match op {
        BinaryOp::Eq => (value, value),
        BinaryOp::Lt => (ALL.0, value - 1),
        BinaryOp::Le => (ALL.0, value),
        BinaryOp::Gt => (value + 1, ALL.1),
        BinaryOp::Ge => (value, ALL.1),
        _ => return None,
    })
}

/// The operator for exchanged operands.
fn turned(op: BinaryOp) -> Option<BinaryOp> {
    Some(match op {
        BinaryOp::Eq => BinaryOp::Eq,
        BinaryOp::Lt => BinaryOp::Gt,
        BinaryOp::Le => BinaryOp::Ge,
        BinaryOp::Gt => BinaryOp::Lt,
        BinaryOp::Ge => BinaryOp::Le,
        _ => return None,
    })
}
