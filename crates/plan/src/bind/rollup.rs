//! GROUPING: tells which members of GROUP BY a row of WITH ROLLUP summarizes.
//!
//! A call first becomes a column of the placeholder slot [`GROUPINGS`]. Once GROUP BY is bound, its
//! arguments are looked up there, and the call becomes an expression over the row's level, which is
//! the number of members of GROUP BY that the row does not summarize ([`Grouping::level`]).

use nfold_sql::ast::{self, BinaryOp, Literal};
use nfold_types::{ErrorCode, SqlError, Value};

use super::{BlockBinder, GROUPINGS, Grouped};
use crate::logical::expr::{BitOp, CmpKind, ColumnAt, Expr, ExprKind, ExprType};
use crate::logical::query::Grouping;

/// The maximum number of arguments of GROUPING: each is one bit of the result.
const MAX_ARGUMENTS: usize = 64;

fn grouping_type(nullable: bool) -> ExprType {
    ExprType::bigint(nullable)
}

impl BlockBinder<'_> {
    /// Binds a call of GROUPING.
    ///
    /// # Errors
    /// 1111 where GROUPING is not allowed, 3601, 1210.
    pub(super) fn grouping(&mut self, args: &[ast::Expr]) -> Result<Expr, SqlError> {
        let bound = args.iter().map(|e| self.expr(e));
        let bound = bound.collect::<Result<Vec<Expr>, _>>()?;
        if self.grouped == Grouped::No || (!self.aggregates_allowed && !self.in_aggregate) {
            return Err(match self.clause {
                "group statement" => not_grouped_by(),
                _ => SqlError::new(ErrorCode::ER_INVALID_GROUP_FUNC_USE, &[]),
            });
        }
        if args.len() > MAX_ARGUMENTS {
            return Err(SqlError::new(
                ErrorCode::ER_INVALID_NO_OF_ARGS,
                &[&"GROUPING", &args.len(), &MAX_ARGUMENTS],
            ));
        }
        if args
            .iter()
            .any(|e| matches!(e, ast::Expr::Literal(Literal::Int(_))))
        {
            let what = "GROUPING function";
            return Err(SqlError::new(ErrorCode::ER_WRONG_ARGUMENTS, &[&what]));
        }
        let known = self.groupings.iter().position(|args| *args == bound);
        let place = known.unwrap_or_else(|| {
            self.groupings.push(bound);
            self.groupings.len() - 1
        });
        // The input rows of an aggregate are not summary rows.
        if self.in_aggregate {
            return Ok(Expr::constant(Value::Int(0), grouping_type(false)));
        }
        let column = u16::try_from(place);
        let too_many = |_| SqlError::new(ErrorCode::ER_TOO_MANY_FIELDS, &[]);
        Ok(Expr {
            kind: ExprKind::Column(ColumnAt {
                table: GROUPINGS,
                column: column.map_err(too_many)?,
            }),
            ty: grouping_type(self.grouped == Grouped::RolledUp),
        })
    }
}

/// Error 1056 for GROUPING in GROUP BY.
pub(super) fn not_grouped_by() -> SqlError {
    let what = "GROUPING function";
    SqlError::new(ErrorCode::ER_WRONG_GROUP_FIELD, &[&what])
}

/// Rewrites a call of GROUPING with these arguments over the grouped row.
///
/// # Errors
/// 3602 if an argument is not a member of GROUP BY.
pub(super) fn over_groups(args: &[Expr], plan: &Grouping) -> Result<Expr, SqlError> {
    let mut bits = Vec::with_capacity(args.len());
    for (n, arg) in args.iter().enumerate() {
        let key = plan.keys.iter().position(|k| k.kind == arg.kind);
        let key = key.ok_or_else(|| {
            SqlError::new(ErrorCode::ER_FIELD_IN_GROUPING_NOT_GROUP_BY, &[&(n + 1)])
        })?;
        bits.push(summed_up(key, plan));
    }
    let ty = grouping_type(plan.rollup);
    if !plan.rollup {
        return Ok(Expr::constant(Value::Int(0), ty));
    }
    let last = bits.len() - 1;
    if last == 0 {
        return Ok(Expr {
            ty,
            ..bits.swap_remove(0)
        });
    }
    let unsigned = || ExprType::ubigint(false);
    let shifted = bits.into_iter().enumerate().map(|(n, bit)| Expr {
        kind: ExprKind::Bit(
            BitOp::ShiftLeft,
            Box::new([bit, Expr::int((last - n) as i64)]),
        ),
        ty: unsigned(),
    });
    let all = shifted.reduce(|a, b| Expr {
        kind: ExprKind::Bit(BitOp::Or, Box::new([a, b])),
        ty: unsigned(),
    });
    Ok(Expr::cast(all.unwrap_or_else(|| Expr::int(0)), ty))
}

/// 1 if the row summarizes this member of GROUP BY, otherwise 0.
fn summed_up(key: usize, plan: &Grouping) -> Expr {
    let level = match plan.level() {
        Some(at) => Expr {
            kind: ExprKind::Column(at),
            ty: ExprType::ubigint(false),
        },
        None => Expr::int(plan.keys.len() as i64),
    };
    Expr {
        kind: ExprKind::Compare {
            op: BinaryOp::Le,
            kind: CmpKind::Int,
            sides: Box::new([level, Expr::int(key as i64)]),
        },
        ty: ExprType::boolean(false),
    }
}
