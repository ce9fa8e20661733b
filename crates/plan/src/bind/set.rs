//! Set operations (UNION, INTERSECT, EXCEPT), VALUES and TABLE, and ORDER BY over their results.

use std::sync::Arc;

use nfold_sql::ast::{self, Literal, OrderItem, QueryBody as AstBody, Select, SelectItem};
use nfold_types::{CollationId, ErrorCode, SqlError};

use super::block::{Bound, bind_in, block};
use super::{BindCx, BlockBinder, ScopeColumn, ScopeSlot};
use crate::logical::clauses::{ColumnMeta, LimitPlan, OrderKey, ResultOrder};
use crate::logical::collate;
use crate::logical::describe::computed_column;
use crate::logical::expr::{Class, Coercibility, ColumnAt, Expr, ExprKind, ExprType};
use crate::logical::query::{Block, IndexHints, Query, QueryBody, Source, SubqueryForm, Table};

/// Binds the body of a query, without its ORDER BY and LIMIT.
pub(super) fn set_body(
    around: &BindCx<'_>,
    body: &AstBody,
    outer: Option<&BlockBinder<'_>>,
) -> Result<Bound, SqlError> {
    let cx = &BindCx {
        derived: false,
        ..*around
    };
    let plain = (cx, SubqueryForm::Rows);
    match body {
        AstBody::Select(s) => Ok(block(plain, s, &[], None, &[], outer)?.described()),
        AstBody::Paren(q) => Ok(bind_in(cx, q, outer, SubqueryForm::Rows)?.described()),
        AstBody::Table(name) => {
            let select = whole_table(name);
            Ok(block(plain, &select, &[], None, &[], outer)?.described())
        }
        AstBody::Values(rows) => values(cx, rows, outer),
        AstBody::SetOperation { .. } => {
            let mut set = set_operation(cx, body, outer)?;
            give_types(cx, &mut set.query)?;
            Ok(set)
        }
    }
}

/// Binds a set operation together with the operations chained to it, but leaves the types of its
/// columns open: they depend on all operands of the chain ([`give_types`]).
fn set_operation(
    cx: &BindCx<'_>,
    body: &AstBody,
    outer: Option<&BlockBinder<'_>>,
) -> Result<Bound, SqlError> {
    let AstBody::SetOperation {
        op,
        distinct,
        left,
        right,
    } = without_parentheses(body)
    else {
        return set_body(cx, body, outer);
    };
    // `a EXCEPT (b EXCEPT c)` is not a chain.
    let chained = [(left, true), (right, *op != ast::SetOp::Except)]
        .map(|(side, may_be)| may_be && is_chained(side, *op, *distinct));
    let operand = |side: &AstBody, part: bool| match part {
        true => set_operation(cx, side, outer),
        false => set_body(cx, side, outer),
    };
    let (left, right) = (operand(left, chained[0])?, operand(right, chained[1])?);
    let correlated = left.correlated || right.correlated;
    let (left, right) = (left.query, right.query);
    if left.columns.len() != right.columns.len() {
        return Err(SqlError::new(
            ErrorCode::ER_WRONG_NUMBER_OF_COLUMNS_IN_SELECT,
            &[],
        ));
    }
    let query = Query {
        columns: left.columns.clone(),
        types: Vec::new(),
        body: QueryBody::Set {
            op: *op,
            distinct: *distinct,
            left: Box::new(left),
            right: Box::new(right),
            chained,
        },
        order: Vec::new(),
        limit: None,
        description: None,
    };
    Ok(Bound {
        query,
        correlated,
        dependencies: Vec::new(),
    })
}

/// The body of a query with its locking clauses at its last operand: as in MySQL, those behind a
/// set operation are of that operand alone.
pub(super) fn with_locking(body: &AstBody, locking: &[ast::Locking]) -> AstBody {
    let mut body = body.clone();
    match &mut body {
        AstBody::SetOperation { right, .. } => **right = with_locking(right, locking),
        AstBody::Paren(query) if query.locking.is_empty() => query.locking = locking.to_vec(),
        AstBody::Select(_) | AstBody::Table(_) => {
            let mut query = ast::Query::of(body);
            query.locking = locking.to_vec();
            return AstBody::Paren(Box::new(query));
        }
        AstBody::Paren(_) | AstBody::Values(_) => {}
    }
    body
}

/// Removes the parentheses around a set operation, unless they enclose another clause, such as
/// ORDER BY.
fn without_parentheses(body: &AstBody) -> &AstBody {
    match body {
        AstBody::Paren(q) if is_plain(q) => match without_parentheses(&q.body) {
            inner @ AstBody::SetOperation { .. } => inner,
            _ => body,
        },
        _ => body,
    }
}

/// Computes the column types of a set operation and of the operations chained to it.
fn give_types(cx: &BindCx<'_>, set: &mut Query) -> Result<(), SqlError> {
    let QueryBody::Set { op, .. } = &set.body else {
        return Ok(());
    };
    let mut operands = Vec::new();
    chain(set, true, &mut operands);
    let types = (0..set.columns.len())
        .map(|n| {
            let of: Vec<&ExprType> = operands.iter().map(|q| &q.types[n]).collect();
            let ty = set_type(&of, cx.connection, name_of(*op))?;
            Ok(ExprType {
                nullable: may_be_null(*op, &of, ty.nullable),
                ..ty
            })
        })
        .collect::<Result<Vec<_>, SqlError>>()?;
    set_types(set, &types);
    Ok(())
}

/// `TABLE name` as a SELECT.
pub(super) fn whole_table(name: &ast::ObjectName) -> Select {
    Select {
        distinct: false,
        options: Default::default(),
        plan_hints: Vec::new(),
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
    }
}

fn values(
    cx: &BindCx<'_>,
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
    if width == 0 {
        let code = ErrorCode::ER_TABLE_VALUE_CONSTRUCTOR_MUST_HAVE_COLUMNS;
        return Err(SqlError::new(code, &[]));
    }
    let mut types = Vec::with_capacity(width);
    for i in 0..width {
        let column: Vec<&ExprType> = bound.iter().map(|r: &Vec<Expr>| &r[i].ty).collect();
        types.push(collate::common_type(&column, cx.connection, "VALUES")?);
    }
    let columns = types
        .iter()
        .enumerate()
        .map(|(i, t)| computed_column(format!("column_{i}").into(), t))
        .collect();
    let query = Query {
        body: QueryBody::Rows(bound),
        columns,
        types,
        order: Vec::new(),
        limit: None,
        description: None,
    };
    Ok(Bound {
        query,
        correlated: b.correlated.get(),
        dependencies: Vec::new(),
    })
}

/// ORDER BY of a set operation as a list of result columns. `None` if a member is neither the name
/// nor the number of a result column.
pub(super) fn result_order(
    plan: &Query,
    order: &[OrderItem],
) -> Result<Option<Vec<ResultOrder>>, SqlError> {
    let mut out = Vec::with_capacity(order.len());
    for o in order {
        let Some(column) = result_column(plan, &o.expr)? else {
            return Ok(None);
        };
        out.push(ResultOrder {
            column,
            desc: o.descending,
        });
    }
    Ok(Some(out))
}

/// The result column that a member of ORDER BY names. `None`: the member is an expression.
fn result_column(plan: &Query, e: &ast::Expr) -> Result<Option<usize>, SqlError> {
    let unknown = |name: &dyn std::fmt::Display| {
        SqlError::new(ErrorCode::ER_BAD_FIELD_ERROR, &[name, &"order clause"])
    };
    match e {
        ast::Expr::Literal(Literal::Int(n)) => {
            let n = *n as usize;
            match n == 0 || n > plan.columns.len() {
                true => Err(unknown(&n)),
                false => Ok(Some(n - 1)),
            }
        }
        ast::Expr::Column(c) => {
            if let Some(table) = &c.table {
                let place = "global ORDER clause";
                let code = ErrorCode::ER_TABLENAME_NOT_ALLOWED_HERE;
                return Err(SqlError::new(code, &[&table.value, &place]));
            }
            let called = |m: &ColumnMeta| nfold_catalog::schema::eq_name(&m.name, &c.name.value);
            let mut at = (0..plan.columns.len()).filter(|&n| called(&plan.columns[n]));
            match (at.next(), at.next()) {
                (Some(at), None) => Ok(Some(at)),
                (None, _) => Err(unknown(&c.name.value)),
                (Some(_), Some(_)) => {
                    let code = ErrorCode::ER_NON_UNIQ_ERROR;
                    Err(SqlError::new(code, &[&c.name.value, &"order clause"]))
                }
            }
        }
        _ => Ok(None),
    }
}

/// Wraps `query` in a block that sorts its rows by expressions over its columns and applies
/// `limit`.
///
/// # Errors
/// 3028 for aggregates and window functions.
pub(super) fn ordered(
    cx: &BindCx<'_>,
    bound: Bound,
    order: &[OrderItem],
    limit: Option<LimitPlan>,
    outer: Option<&BlockBinder<'_>>,
) -> Result<Bound, SqlError> {
    let Bound {
        query: plan,
        correlated,
        dependencies: _,
    } = bound;
    let types = plan.types.clone();
    let columns: Vec<ColumnMeta> = plan
        .columns
        .iter()
        .zip(&types)
        .map(|(c, ty)| stored_column(c.name.clone(), ty))
        .collect();
    let cx = &BindCx {
        derived: false,
        ..*cx
    };
    let mut b = BlockBinder::new(cx, outer);
    let mut named: Vec<ScopeColumn> = Vec::with_capacity(columns.len());
    for (meta, ty) in columns.iter().zip(&types) {
        // In an expression a repeated name means the first column of that name.
        let again = named
            .iter()
            .any(|c| nfold_catalog::schema::eq_name(&c.name, &meta.name));
        named.push(ScopeColumn {
            name: if again { "".into() } else { meta.name.clone() },
            ty: ty.col.clone(),
            nullable: ty.nullable,
            coercibility: None,
            made: false,
            visible: true,
        });
    }
    let alias: Arc<str> = "".into();
    b.used.borrow_mut().push(vec![true; named.len()]);
    b.scope.push(ScopeSlot {
        schema: None,
        object: None,
        view_schema: None,
        alias: alias.clone(),
        columns: named,
        dependencies: Vec::new(),
    });
    b.tables.push(Table {
        alias,
        used: vec![true; columns.len()],
        documents: Vec::new(),
        nullable: false,
        merged: false,
        in_subquery: true,
        source: Source::Derived(Box::new(plan.clone())),
        hints: IndexHints::default(),
        lateral: 0,
        shared: None,
        common: None,
        unpushed: None,
    });
    let select: Vec<Expr> = types
        .iter()
        .enumerate()
        .map(|(n, ty)| Expr {
            kind: ExprKind::Column(ColumnAt {
                table: 0,
                column: n as u16,
            }),
            ty: ty.clone(),
        })
        .collect();
    b.clause = "order clause";
    (b.aggregates_allowed, b.windows_allowed) = (true, true);
    let mut keys: Vec<OrderKey> = Vec::with_capacity(order.len());
    for (n, o) in order.iter().enumerate() {
        let expr = match result_column(&plan, &o.expr)? {
            Some(n) => select[n].clone(),
            None => b.expr(&o.expr)?,
        };
        if !b.aggregates.borrow().is_empty() || !b.windows.is_empty() {
            let code = ErrorCode::ER_AGGREGATE_ORDER_FOR_UNION;
            return Err(SqlError::new(code, &[&(n + 1)]));
        }
        let constant = matches!(expr.kind, ExprKind::Const(_) | ExprKind::Param(_));
        if !constant && !keys.iter().any(|k| k.expr.kind == expr.kind) {
            keys.push(OrderKey {
                expr,
                desc: o.descending,
            });
        }
    }
    let block = Block {
        select,
        order: keys,
        warnings: b.warnings,
        pads_char: cx.pads_char(),
        ..Block::of_tables(b.tables, b.subqueries)
    };
    Ok(Bound {
        query: Query {
            body: QueryBody::Block(Box::new(block)),
            columns,
            types,
            order: Vec::new(),
            limit,
            description: None,
        },
        correlated: correlated || b.correlated.get(),
        dependencies: Vec::new(),
    })
}

/// Whether an operand is a set operation that is evaluated as one chain with its parent: the
/// operators are equal, and an inner DISTINCT is implied by the outer one.
fn is_chained(operand: &AstBody, op: ast::SetOp, distinct: bool) -> bool {
    match operand {
        AstBody::SetOperation {
            op: inner,
            distinct: d,
            ..
        } => *inner == op && (distinct || !d),
        AstBody::Paren(q) => is_plain(q) && is_chained(&q.body, op, distinct),
        _ => false,
    }
}

/// Whether a query is a body without any other clause.
fn is_plain(q: &ast::Query) -> bool {
    q.with.is_none()
        && q.order_by.is_empty()
        && q.limit.is_none()
        && q.locking.is_empty()
        && q.into.is_none()
}

/// Collects the operands of a chain of set operations. `part`: `q` itself belongs to the chain if
/// it is a set operation.
fn chain<'q>(q: &'q Query, part: bool, out: &mut Vec<&'q Query>) {
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

/// Sets the column types of all operations of a chain.
fn set_types(q: &mut Query, types: &[ExprType]) {
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
        let named = q.columns.iter().zip(types);
        q.columns = named
            .map(|(c, t)| stored_column(c.name.clone(), t))
            .collect();
        q.types = types.to_vec();
    }
}

fn name_of(op: ast::SetOp) -> &'static str {
    match op {
        ast::SetOp::Union => "UNION",
        ast::SetOp::Intersect => "INTERSECT",
        ast::SetOp::Except => "EXCEPT",
    }
}

/// Whether a column of a set operation may be NULL. `types` are its types in the operands; `any`:
/// it is nullable in at least one of them.
fn may_be_null(op: ast::SetOp, types: &[&ExprType], any: bool) -> bool {
    match op {
        ast::SetOp::Union => any,
        ast::SetOp::Intersect => types.iter().all(|t| t.nullable),
        ast::SetOp::Except => types.first().is_some_and(|t| t.nullable),
    }
}

/// The type of a column of a set operation whose operands have these types. Error 1271 if no
/// collation wins.
pub(super) fn set_type(
    types: &[&ExprType],
    connection: CollationId,
    name: &str,
) -> Result<ExprType, SqlError> {
    let mixed = || SqlError::new(ErrorCode::ER_CANT_AGGREGATE_NCOLLATIONS, &[&name]);
    let explicit = |t: &&ExprType| t.coercibility == Coercibility::Explicit;
    let mixes = ErrorCode::ER_CANT_AGGREGATE_2COLLATIONS.errno();
    let ty = collate::common_type(types, connection, name).map_err(|e| {
        if e.errno() == mixes && !types.iter().all(explicit) {
            mixed()
        } else {
            e
        }
    })?;
    match ty.coercibility {
        Coercibility::NoCollation => Err(mixed()),
        _ => Ok(ty.of_set_operation()),
    }
}

/// Describes a result column that MySQL stores in a temporary table, such as a column of a UNION.
pub(super) fn stored_column(name: Arc<str>, ty: &ExprType) -> ColumnMeta {
    let ty = match ty.class() {
        Class::Null => &ty.kept(),
        _ => ty,
    };
    ColumnMeta {
        made: false,
        ..computed_column(name, ty)
    }
}
