//! Set operations: UNION and its like, VALUES and TABLE, and the order of their results.

use std::sync::Arc;

use nfold_sql::ast::{self, Literal, OrderItem, QueryBody as AstBody, Select, SelectItem};
use nfold_types::{CollationId, ErrorCode, SqlError};

use super::block::{Bound, bind_in, block, made_column};
use super::keyed::Asked;
use super::{BlockBinder, PlanCx};
use crate::collate;
use crate::expr::{Class, Coercibility, Expr, ExprType};
use crate::query::{ColumnMeta, QueryBody, QueryPlan, ResultOrder, RowLocking};

/// Binds what a query consists of.
pub(super) fn set_body(
    around: &PlanCx<'_>,
    body: &AstBody,
    outer: Option<&BlockBinder<'_>>,
) -> Result<Bound, SqlError> {
    let cx = &PlanCx {
        derived: false,
        ..*around
    };
    let plain = (cx, Asked::Rows);
    match body {
        AstBody::Select(s) => block(plain, s, &[], None, RowLocking::NONE, outer),
        AstBody::Paren(q) => bind_in(cx, q, outer, Asked::Rows),
        AstBody::Table(name) => {
            let select = Select {
                distinct: false,
                options: Default::default(),
                items: vec![SelectItem::Star],
                from: vec![ast::TableRef::Table(ast::TableFactor {
                    name: name.clone(),
                    partitions: Vec::new(),
                    alias: None,
                    hints: Vec::new(),
                })],
                selection: None,
                group_by: Vec::new(),
                with_rollup: false,
                having: None,
                windows: Vec::new(),
            };
            block(plain, &select, &[], None, RowLocking::NONE, outer)
        }
        AstBody::Values(rows) => values(cx, rows, outer),
        AstBody::SetOperation {
            op,
            distinct,
            left,
            right,
        } => {
            let chained = [left, right].map(|side| is_chained(side, *op, *distinct));
            let (left, right) = (set_body(cx, left, outer)?, set_body(cx, right, outer)?);
            let correlated = left.correlated || right.correlated;
            let (mut left, mut right) = (left.plan, right.plan);
            if left.types.len() != right.types.len() {
                return Err(SqlError::new(
                    ErrorCode::ER_WRONG_NUMBER_OF_COLUMNS_IN_SELECT,
                    &[],
                ));
            }
            // What stands in one chain is merged together, not two by two.
            let mut operands = Vec::new();
            chain(&left, chained[0], &mut operands);
            chain(&right, chained[1], &mut operands);
            let types = (0..right.types.len())
                .map(|n| {
                    let of: Vec<&ExprType> = operands.iter().map(|q| &q.types[n]).collect();
                    union_type(&of, cx.connection)
                })
                .collect::<Result<Vec<_>, _>>()?;
            for (side, _) in [&mut left, &mut right]
                .into_iter()
                .zip(chained)
                .filter(|c| c.1)
            {
                set_types(side, &types);
            }
            let columns = left
                .columns
                .iter()
                .zip(&types)
                .map(|(c, t)| kept_column(c.name.clone(), t))
                .collect();
            let body = QueryBody::Set {
                op: *op,
                distinct: *distinct,
                left: Box::new(left),
                right: Box::new(right),
                chained,
            };
            let plan = QueryPlan {
                body,
                columns,
                types,
                order: Vec::new(),
                limit: None,
            };
            Ok(Bound {
                plan,
                correlated,
                keyed: None,
            })
        }
    }
}

fn values(
    cx: &PlanCx<'_>,
    rows: &[Vec<ast::Expr>],
    outer: Option<&BlockBinder<'_>>,
) -> Result<Bound, SqlError> {
    let mut b = BlockBinder::new(cx, outer);
    let width = rows.first().map_or(0, Vec::len);
    let mut bound = Vec::with_capacity(rows.len());
    for row in rows {
        if row.len() != width {
            return Err(SqlError::new(
                ErrorCode::ER_WRONG_VALUE_COUNT_ON_ROW,
                &[&(bound.len() + 1)],
            ));
        }
        bound.push(
            row.iter()
                .map(|e| b.expr(e))
                .collect::<Result<Vec<_>, _>>()?,
        );
    }
    let mut types = Vec::with_capacity(width);
    for i in 0..width {
        let column: Vec<&ExprType> = bound.iter().map(|r: &Vec<Expr>| &r[i].ty).collect();
        types.push(collate::common_type(&column, cx.connection, "VALUES")?);
    }
    let columns = types
        .iter()
        .enumerate()
        .map(|(i, t)| made_column(format!("column_{i}").into(), t))
        .collect();
    let plan = QueryPlan {
        body: QueryBody::Rows(bound),
        columns,
        types,
        order: Vec::new(),
        limit: None,
    };
    Ok(Bound {
        plan,
        correlated: b.correlated.get(),
        keyed: None,
    })
}

/// ORDER BY of a set operation: result columns by name or number.
pub(super) fn result_order(
    plan: &QueryPlan,
    order: &[OrderItem],
) -> Result<Vec<ResultOrder>, SqlError> {
    order
        .iter()
        .map(|o| {
            let unknown = |name: &dyn std::fmt::Display| {
                SqlError::new(ErrorCode::ER_BAD_FIELD_ERROR, &[name, &"order clause"])
            };
            let column = match &o.expr {
                ast::Expr::Literal(Literal::Int(n)) => {
                    let n = *n as usize;
                    if n == 0 || n > plan.columns.len() {
                        return Err(unknown(&n));
                    }
                    n - 1
                }
                ast::Expr::Column(c) => {
                    let called =
                        |m: &ColumnMeta| nfold_catalog::schema::eq_name(&m.name, &c.name.value);
                    let mut at = (0..plan.columns.len()).filter(|&n| called(&plan.columns[n]));
                    match (at.next(), at.next()) {
                        (Some(at), None) => at,
                        (None, _) => return Err(unknown(&c.name.value)),
                        (Some(_), Some(_)) => {
                            let code = ErrorCode::ER_NON_UNIQ_ERROR;
                            return Err(SqlError::new(code, &[&c.name.value, &"order clause"]));
                        }
                    }
                }
                _ => {
                    return Err(SqlError::not_supported(
                        "an expression in ORDER BY of a set operation",
                    ));
                }
            };
            Ok(ResultOrder {
                column,
                desc: o.descending,
            })
        })
        .collect()
}

/// Whether an operand of a set operation is one itself that is done together with it: what is distinct at last need not be so before.
fn is_chained(operand: &AstBody, op: ast::SetOp, distinct: bool) -> bool {
    match operand {
        AstBody::SetOperation {
            op: inner,
            distinct: d,
            ..
        } => *inner == op && (distinct || !d),
        AstBody::Paren(q) => {
            let plain = q.with.is_none() && q.order_by.is_empty() && q.limit.is_none();
            plain && is_chained(&q.body, op, distinct)
        }
        _ => false,
    }
}

/// The operands of a chain of set operations; `q` is part of the chain where it is one itself.
fn chain<'q>(q: &'q QueryPlan, part: bool, out: &mut Vec<&'q QueryPlan>) {
    match &q.body {
        QueryBody::Set {
            left,
            right,
            chained,
            ..
        } if part => {
            chain(left, chained[0], out);
            chain(right, chained[1], out);
        }
        _ => out.push(q),
    }
}

/// The types of a chain's whole result count for its parts.
fn set_types(q: &mut QueryPlan, types: &[ExprType]) {
    if let QueryBody::Set {
        left,
        right,
        chained,
        ..
    } = &mut q.body
    {
        for (side, _) in [left, right].into_iter().zip(*chained).filter(|c| c.1) {
            set_types(side, types);
        }
        q.types = types.to_vec();
    }
}

/// The type of a column of a UNION; error 1271 where collations do not go together.
pub(super) fn union_type(
    types: &[&ExprType],
    connection: CollationId,
) -> Result<ExprType, SqlError> {
    let mixed = || SqlError::new(ErrorCode::ER_CANT_AGGREGATE_NCOLLATIONS, &[&"UNION"]);
    let explicit = |t: &&ExprType| t.coercibility == Coercibility::Explicit;
    let mixes = ErrorCode::ER_CANT_AGGREGATE_2COLLATIONS.errno();
    let ty = collate::common_type(types, connection, "UNION").map_err(|e| {
        if e.errno() == mixes && !types.iter().all(explicit) {
            mixed()
        } else {
            e
        }
    })?;
    match ty.coercibility {
        Coercibility::NoCollation => Err(mixed()),
        _ => Ok(ty),
    }
}

/// A result column that MySQL keeps in a temporary table: a column of a UNION.
pub(super) fn kept_column(name: Arc<str>, ty: &ExprType) -> ColumnMeta {
    let ty = match ty.class() {
        Class::Null => &ty.kept(),
        _ => ty,
    };
    ColumnMeta {
        made: false,
        ..made_column(name, ty)
    }
}
