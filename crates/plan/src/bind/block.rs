//! Queries and query blocks.

use std::convert::Infallible;
use std::sync::Arc;

use nfold_sql::ast::{self, Literal, OrderItem, Query, QueryBody as AstBody, Select, SelectItem};
use nfold_types::sql_type::ColumnFlags;
use nfold_types::{ErrorCode, SqlError, TypeKind};

use super::from::FromInfo;
use super::group::{Grouper, Place};
use super::keyed::{self, Asked};
use super::rollup::{self, Grouped};
use super::set::{ordered, result_order, set_body, whole_table};
use super::window::{self, Draft, Specs};
use super::{BindCx, BlockBinder, MAX_DEPTH, Unplanned, with};
use crate::logical::expr::{ColumnAt, Expr, ExprKind, ExprType, is_constant};
use crate::query::KeyedPlan;
use crate::query::{
    AggFunc, Block, ColumnMeta, LimitPlan, OrderKey, QueryBody, QueryPlan, RowLocking, TableSource,
};
use crate::walk::outer_columns;

/// Binds a query that stands alone or as a derived table.
pub(crate) fn bind_query(
    cx: &BindCx<'_>,
    q: &Query,
    outer: Option<&BlockBinder<'_>>,
) -> Result<QueryPlan, SqlError> {
    Ok(bind_in(cx, q, outer, Asked::Rows)?.plan)
}

/// A query, bound.
pub(crate) struct Bound {
    pub plan: QueryPlan,
    /// It names columns of an enclosing query.
    pub correlated: bool,
    pub keyed: Option<Box<KeyedPlan>>,
}

/// Binds a subquery of `outer`, which is asked for something.
pub(crate) fn bind_subquery(
    cx: &BindCx<'_>,
    q: &Query,
    outer: &BlockBinder<'_>,
    asked: Asked,
) -> Result<Bound, SqlError> {
    bind_in(cx, q, Some(outer), asked)
}

pub(super) fn bind_in(
    cx: &BindCx<'_>,
    q: &Query,
    outer: Option<&BlockBinder<'_>>,
    asked: Asked,
) -> Result<Bound, SqlError> {
    let within = cx.deeper()?;
    with::in_sight(&within, q.with.as_ref(), outer, |cx| {
        bind_within(cx, q, outer, asked)
    })
}

/// [`bind_in`], with what the query's WITH defines in sight.
fn bind_within(
    cx: &BindCx<'_>,
    q: &Query,
    outer: Option<&BlockBinder<'_>>,
    asked: Asked,
) -> Result<Bound, SqlError> {
    if q.into.is_some() {
        return Err(SqlError::not_supported("SELECT ... INTO"));
    }
    if outer.is_some_and(|o| o.depth >= MAX_DEPTH) {
        return Err(super::too_deep());
    }
    let limit = limit(cx, q.limit.as_ref())?;
    match &q.body {
        AstBody::Select(s) => block((cx, asked), s, &q.order_by, limit, &q.locking, outer),
        AstBody::Paren(inner) if q.order_by.is_empty() && q.limit.is_none() => {
            bind_in(cx, inner, outer, asked)
        }
        AstBody::Table(name) => {
            let select = whole_table(name);
            block((cx, asked), &select, &q.order_by, limit, &q.locking, outer)
        }
        // What is not cut off is ordered by the outermost ORDER BY, as if there were no parentheses.
        AstBody::Paren(inner) if inner.limit.is_none() && inner.with.is_none() => {
            let mut whole = Query::clone(inner);
            if !q.order_by.is_empty() {
                whole.order_by = q.order_by.clone();
            }
            whole.limit = q.limit.clone();
            if whole.locking.is_empty() {
                whole.locking = q.locking.clone();
            }
            bind_in(cx, &whole, outer, asked)
        }
        body => {
            let mut bound = set_body(cx, body, outer)?;
            let order = match body {
                AstBody::Paren(_) => None,
                _ => result_order(&bound.plan, &q.order_by)?,
            };
            match order {
                Some(order) => (bound.plan.order, bound.plan.limit) = (order, limit),
                None => bound = ordered(cx, bound, &q.order_by, limit, outer)?,
            }
            Ok(bound)
        }
    }
}

/// `LIMIT`: constants and parameters.
pub(super) fn limit(
    cx: &BindCx<'_>,
    l: Option<&ast::Limit>,
) -> Result<Option<LimitPlan>, SqlError> {
    let Some(l) = l else { return Ok(None) };
    let mut free = BlockBinder::new(cx, None);
    let offset = l.offset.as_ref().map(|e| free.expr(e)).transpose()?;
    Ok(Some(LimitPlan {
        offset,
        count: free.expr(&l.count)?,
    }))
}

/// Takes an AND apart.
pub(crate) fn conjuncts(e: Expr, out: &mut Vec<Expr>) {
    match e.kind {
        ExprKind::And(list) => list.into_iter().for_each(|e| conjuncts(e, out)),
        _ => out.push(e),
    }
}

/// A result column that is made by the query.
pub(super) fn made_column(name: Arc<str>, ty: &ExprType) -> ColumnMeta {
    let none: Arc<str> = "".into();
    let flags = ty.col.wire_flags()
        | if ty.nullable {
            0
        } else {
            ColumnFlags::NOT_NULL
        };
    ColumnMeta {
        schema: none.clone(),
        table: none.clone(),
        org_table: none.clone(),
        name,
        org_name: none,
        ty: ty.col.clone(),
        flags,
        made: true,
    }
}

/// What a selected expression is to the temporary table with which MySQL groups: what it keeps is described as its column.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    Constant,
    Aggregate,
    /// Computed from what the table has.
    OfAggregates,
    Value,
}

impl Kept {
    fn of(e: &Expr, aggregates: &[crate::query::Aggregate]) -> Kept {
        let aggregate = |e: &Expr| e.as_column().filter(|at| at.table == super::AGGREGATES);
        if window::has_window(e) {
            Kept::Value
        } else if let Some(at) = aggregate(e) {
            match aggregates[usize::from(at.column)].func {
                AggFunc::Any => Kept::Value,
                _ => Kept::Aggregate,
            }
        } else if e.any(&mut |e| aggregate(e).is_some()) {
            Kept::OfAggregates
        } else if is_constant(e) {
            Kept::Constant
        } else {
            Kept::Value
        }
    }
}

/// What a column of a table has in its description, but not that of the temporary table into which MySQL puts the results of windows.
pub(super) const OF_TABLES: u16 = ColumnFlags::PRI_KEY
    | ColumnFlags::UNIQUE_KEY
    | ColumnFlags::MULTIPLE_KEY
    | ColumnFlags::PART_KEY
    | ColumnFlags::AUTO_INCREMENT
    | ColumnFlags::TIMESTAMP
    | ColumnFlags::ON_UPDATE_NOW;

/// Columns of a result at most, as in MySQL; the protocol counts them in 16 bits.
const MAX_COLUMNS: usize = 4096;

/// A select item, bound.
pub(super) struct Item {
    expr: Expr,
    meta: ColumnMeta,
}

pub(super) fn block(
    (cx, asked): (&BindCx<'_>, Asked),
    s: &Select,
    order_by: &[OrderItem],
    limit: Option<LimitPlan>,
    locking: &[ast::Locking],
    outer: Option<&BlockBinder<'_>>,
) -> Result<Bound, SqlError> {
    let tells_apart = s.distinct && keyed::tells_apart(asked, limit.as_ref());
    let derived = cx.derived;
    let cx = &BindCx {
        derived: false,
        ..*cx
    };
    let mut b = BlockBinder::new(cx, outer);
    let mut info = b.from(&s.from)?;
    let lock = b.locking(locking)?;
    info.straight |= s.options.straight_join;
    let mut conditions = std::mem::take(&mut info.conditions);
    if let Some(e) = &s.selection {
        b.clause = "where clause";
        let e = b.expr(e)?;
        b.conditions(e, &mut conditions);
    }
    b.grouped = match (s.group_by.is_empty(), s.with_rollup) {
        (true, _) => Grouped::No,
        (false, false) => Grouped::Plainly,
        (false, true) => Grouped::RolledUp,
    };
    b.clause = "field list";
    b.aggregates_allowed = true;
    b.windows_allowed = true;
    let mut items = b.items(s, &info)?;
    b.aliases = items
        .iter()
        .map(|i| (i.meta.name.clone(), i.expr.clone()))
        .collect();
    b.clause = "group statement";
    b.aggregates_allowed = false;
    b.windows_allowed = false;
    let keys = b.group_keys(&s.group_by, &items)?;
    b.keys = keys.clone();
    b.aggregates_allowed = true;
    b.clause = "having clause";
    let mut having = Vec::new();
    if let Some(e) = &s.having {
        let e = b.expr(e)?;
        conjuncts(e, &mut having);
    }
    b.clause = "order clause";
    b.windows_allowed = true;
    let mut order = b.order_keys(order_by, &items)?;
    b.windows_allowed = false;
    let mut specs = match s.windows.is_empty() && b.windows.is_empty() {
        true => Specs::default(),
        false => b.window_specs(&s.windows)?,
    };
    let mut drafts = std::mem::take(&mut b.windows);
    let windowed = !drafts.is_empty();
    // What DISTINCT keeps is made a text below.
    let passed_on = |e: &Expr| matches!(e.kind, ExprKind::Case { .. } | ExprKind::Call { .. });
    if !tells_apart {
        let keys = order.iter_mut().map(|k| &mut k.expr);
        keys.filter(|e| passed_on(e))
            .for_each(super::stored::members_as_texts);
    }
    if s.group_by.is_empty() {
        let exprs = items.iter_mut().map(|i| &mut i.expr);
        let exprs = exprs.chain(&mut having);
        let exprs = exprs.chain(drafts.iter_mut().flat_map(|d| &mut d.args));
        let exprs = exprs.chain(specs.exprs_mut());
        lone_any_values(&b, exprs.chain(order.iter_mut().map(|k| &mut k.expr)));
    }

    let grouped = !keys.is_empty() || !b.aggregates.borrow().is_empty() || !s.group_by.is_empty();
    let implicit = s.group_by.is_empty();
    let mut select: Vec<Expr> = items.iter().map(|i| i.expr.clone()).collect();
    let mut group = None;
    let mut added = Vec::new();
    let mut distinct = tells_apart;
    if grouped {
        let mut g = Grouper::new(&b, keys, implicit, &conditions, &info.outer_joins)?;
        g.drafts = drafts;
        select = select
            .into_iter()
            .enumerate()
            .map(|(n, e)| g.rewrite(e, Place::Select(n)))
            .collect::<Result<_, _>>()?;
        having = having
            .into_iter()
            .map(|e| g.rewrite(e, Place::Having))
            .collect::<Result<_, _>>()?;
        // Without GROUP BY there is one row: its order does not matter.
        if implicit {
            order.clear();
        }
        for (n, key) in order.iter_mut().enumerate() {
            key.expr = g.rewrite(key.expr.clone(), Place::Order(n))?;
        }
        specs.regroup(&mut g)?;
        drafts = std::mem::take(&mut g.drafts);
        added = std::mem::take(&mut g.subqueries);
        group = Some(g.finish());
    } else if tells_apart {
        if cx
            .mode
            .has(crate::logical::mode::SqlMode::ONLY_FULL_GROUP_BY)
        {
            distinct_order(&order, &select, &drafts, &b)?;
        }
        // As groups of the whole row, which spill; where the first few rows are enough, rows are compared as they come.
        let streams = limit.is_some() && order.is_empty();
        if !streams
            && !windowed
            && !b.subqueries.iter().any(|q| q.correlated)
            && !b.tables.is_empty()
        {
            let mut keys: Vec<Expr> = Vec::new();
            for e in &select {
                if !keys.iter().any(|k| k.kind == e.kind) {
                    keys.push(e.clone());
                }
            }
            let mut g = Grouper::new(&b, keys, false, &conditions, &info.outer_joins)?;
            select = select
                .into_iter()
                .enumerate()
                .map(|(n, e)| g.rewrite(e, Place::Select(n)))
                .collect::<Result<_, _>>()?;
            having = having
                .into_iter()
                .map(|e| g.rewrite(e, Place::Having))
                .collect::<Result<_, _>>()?;
            for (n, key) in order.iter_mut().enumerate() {
                key.expr = g.rewrite(key.expr.clone(), Place::Order(n))?;
            }
            group = Some(g.finish());
            distinct = false;
        }
    }
    b.subqueries.append(&mut added);
    let slots = match group {
        Some(_) => 1,
        None => b.tables.len(),
    };
    let (windows, window_places) = window::passes(&b, drafts, &specs, slots);
    if windowed {
        let order = order.iter_mut().map(|k| &mut k.expr);
        let all = select.iter_mut().chain(order);
        all.for_each(|e| window::place(e, &window_places));
    }
    let aggregates = b.aggregates.take();
    let places: Vec<Kept> = items
        .iter()
        .map(|i| Kept::of(&i.expr, &aggregates))
        .collect();
    let sorted_groups = aggregates
        .iter()
        .any(|a| a.distinct || a.func == AggFunc::GroupConcat);
    let mut columns: Vec<ColumnMeta> = items.into_iter().map(|i| i.meta).collect();
    let used = b.used.take();
    for (slot, used) in b.tables.iter_mut().zip(used) {
        slot.used = used;
    }
    let mut block = Block {
        tables: b.tables,
        joins: Vec::new(),
        constant_filter: Vec::new(),
        group,
        having,
        windows,
        select,
        distinct,
        order,
        ordered: false,
        subqueries: b.subqueries,
        lock,
        changed: 0,
        calc_found_rows: s.options.sql_calc_found_rows,
        deprecated: b.deprecated,
        unplanned: None,
    };
    let correlated = b.correlated.get();
    super::merged::merge(&mut block, &mut conditions, &mut info);
    let unplanned = (derived && limit.is_none())
        .then(|| Unplanned::of(cx, &block, &conditions, &info))
        .flatten();
    let draft = correlated
        .then(|| keyed::Draft::of((cx, asked), &block, &conditions, &info, limit.as_ref()));
    let few = limit.is_some() && !windowed;
    crate::access::optimize(cx, &mut block, conditions, &info, few);
    block.unplanned = unplanned;
    let keyed = draft
        .flatten()
        .and_then(|draft| draft.plan(cx, &info, &block))
        .map(Box::new);
    let group = |wanted: bool| block.group.as_ref().is_some_and(|g| g.implicit == wanted);
    let ordered = block.group.as_ref().is_some_and(|g| g.ordered);
    let grouped = group(false) && !ordered && !sorted_groups;
    let rolled_up = block.group.clone().filter(|g| g.rollup);
    let kept_rows = [rollup::keeps_rows(&block), block.distinct || windowed];
    let distinct_rows = tells_apart && !group(true);
    for ((meta, e), place) in columns.iter_mut().zip(&mut block.select).zip(places) {
        if let Some(group) = &rolled_up {
            rollup::describe(meta, e, group, place, kept_rows);
            continue;
        }
        let kept = match place {
            Kept::Constant => false,
            _ if windowed => true,
            Kept::Aggregate => grouped,
            Kept::OfAggregates => distinct_rows,
            Kept::Value => grouped || distinct_rows,
        };
        if windowed {
            meta.flags &= !OF_TABLES;
        }
        if meta.made && kept {
            meta.made = false;
            if windowed && e.ty.col.kind == TypeKind::Year {
                meta.flags &= !ColumnFlags::ZEROFILL;
            }
            if place == Kept::Aggregate {
                e.ty.col = e.ty.column();
            } else {
                super::group::keep(e);
                meta.flags &= !(ColumnFlags::ENUM | ColumnFlags::SET);
            }
        }
        meta.ty = e.ty.col.clone();
    }
    let types: Vec<ExprType> = block.select.iter().map(|e| e.ty.clone()).collect();
    let plan = QueryPlan {
        body: QueryBody::Block(Box::new(block)),
        columns,
        types,
        order: Vec::new(),
        limit,
    };
    Ok(Bound {
        plan,
        correlated,
        keyed,
    })
}

/// A column in `e` that is not selected. Of a window function the arguments count, unless the same function of the same arguments is selected.
fn unselected(e: &Expr, select: &[Expr], drafts: &[Draft]) -> Option<ColumnAt> {
    let mut missing = None;
    e.any(&mut |e| {
        let Some(at) = e.as_column() else {
            return false;
        };
        if at.table == super::WINDOWS {
            let draft = &drafts[usize::from(at.column)];
            let selected = select.iter().filter(|s| window::is_window(s)).any(|s| {
                let of = s.as_column().map(|at| &drafts[usize::from(at.column)]);
                of.is_some_and(|of| of.is_like(draft))
            });
            if !selected {
                let args = draft.args.iter();
                missing = args.filter_map(|a| unselected(a, select, drafts)).next();
            }
        } else if !select.iter().any(|s| s.kind == e.kind) {
            missing = Some(at);
        }
        missing.is_some()
    });
    missing
}

/// DISTINCT with ORDER BY: what is sorted by must be selected (error 3065).
fn distinct_order(
    order: &[OrderKey],
    select: &[Expr],
    drafts: &[Draft],
    b: &BlockBinder<'_>,
) -> Result<(), SqlError> {
    for (n, key) in order.iter().enumerate() {
        if select.iter().any(|s| s.kind == key.expr.kind) {
            continue;
        }
        let missing = unselected(&key.expr, select, drafts);
        if let Some(at) = missing {
            let slot = &b.scope[usize::from(at.table)];
            let column = &slot.columns[usize::from(at.column)].name;
            let name = match &slot.schema {
                Some(s) => format!("{s}.{}.{column}", slot.alias),
                None => format!("{}.{column}", slot.alias),
            };
            return Err(SqlError::new(
                ErrorCode::ER_FIELD_IN_ORDER_NOT_SELECT,
                &[&(n + 1), &name, &"DISTINCT"],
            ));
        }
    }
    Ok(())
}

impl BlockBinder<'_> {
    /// FOR UPDATE, FOR SHARE.
    ///
    /// # Errors
    /// 3568 for a table that FROM does not name, 3569 for one that is named twice, 1235 for several clauses.
    fn locking(&self, clauses: &[ast::Locking]) -> Result<RowLocking, SqlError> {
        let clause = match clauses {
            [] => return Ok(RowLocking::NONE),
            [clause] => clause,
            _ => return Err(SqlError::not_supported("several locking clauses")),
        };
        let mut of = 0;
        for name in &clause.of {
            let shown = format!("`{}`", name.name);
            let unknown = || SqlError::new(ErrorCode::ER_UNRESOLVED_TABLE_LOCK, &[&shown]);
            let slot = 1 << self.slot_named(name).ok_or_else(unknown)?;
            if of & slot != 0 {
                let code = ErrorCode::ER_DUPLICATE_TABLE_LOCK;
                return Err(SqlError::new(code, &[&shown]));
            }
            of |= slot;
        }
        Ok(RowLocking {
            strength: Some(clause.strength),
            wait: clause.wait,
            of,
        })
    }

    fn items(&mut self, s: &Select, info: &FromInfo) -> Result<Vec<Item>, SqlError> {
        let mut out = Vec::new();
        for item in &s.items {
            if out.len() > MAX_COLUMNS {
                break;
            }
            match item {
                SelectItem::Star => {
                    if self.scope.is_empty() {
                        return Err(SqlError::new(ErrorCode::ER_NO_TABLES_USED, &[]));
                    }
                    for at in &info.shown {
                        out.push(self.star_column(*at));
                    }
                }
                SelectItem::TableStar(name) => {
                    let Some(t) = self.slot_named(name) else {
                        return Err(SqlError::new(ErrorCode::ER_BAD_TABLE_ERROR, &[&name]));
                    };
                    for c in 0..self.scope[t].columns.len() {
                        out.push(self.star_column(ColumnAt {
                            table: t as u16,
                            column: c as u16,
                        }));
                    }
                }
                SelectItem::Expr { expr, alias, text } => {
                    let bound = self.expr(expr)?;
                    let source = String::from_utf8_lossy(text.of(self.cx.text));
                    let written = || source.trim();
                    let name: Arc<str> = match (alias, expr) {
                        (Some(a), _) => a.value.as_str().into(),
                        (None, ast::Expr::Column(c)) => self
                            .view_column(&bound)
                            .unwrap_or_else(|| c.name.value.as_str().into()),
                        (None, ast::Expr::Literal(Literal::String(s))) => {
                            literal_name(s, &bound.ty, written())
                        }
                        (None, ast::Expr::Literal(Literal::Null)) => "NULL".into(),
                        // A plus sign leaves nothing behind.
                        (
                            None,
                            ast::Expr::Unary {
                                op: ast::UnaryOp::Plus,
                                expr,
                            },
                        ) => match &**expr {
                            ast::Expr::Literal(Literal::String(s)) => {
                                literal_name(s, &bound.ty, written())
                            }
                            _ => basic(written()),
                        },
                        (None, ast::Expr::Function(f)) if f.name == "name_const" => {
                            match f.args.first() {
                                Some(ast::Expr::Literal(Literal::String(s))) => {
                                    String::from_utf8_lossy(&s.bytes).into()
                                }
                                _ => basic(written()),
                            }
                        }
                        _ => basic(written()),
                    };
                    let meta = match bound.as_column() {
                        Some(at) if at.table < super::WINDOWS => ColumnMeta {
                            name,
                            ..self.column_meta(at)
                        },
                        _ => made_column(name, &bound.ty),
                    };
                    // What comes after it may be a subquery that names it.
                    self.aliases.push((meta.name.clone(), bound.clone()));
                    out.push(Item { expr: bound, meta });
                }
            }
        }
        if out.len() > MAX_COLUMNS {
            return Err(SqlError::new(ErrorCode::ER_TOO_MANY_FIELDS, &[]));
        }
        Ok(out)
    }

    /// The name of a column of `information_schema`, whose tables are views in MySQL: their columns are called as defined, not as written.
    fn view_column(&self, e: &Expr) -> Option<Arc<str>> {
        let at = e.as_column().filter(|at| at.table < super::WINDOWS)?;
        let slot = &self.scope[usize::from(at.table)];
        let view = slot.schema.as_deref() == Some("information_schema");
        view.then(|| slot.columns[usize::from(at.column)].name.clone())
    }

    fn star_column(&mut self, at: ColumnAt) -> Item {
        Item {
            expr: self.column_expr(at),
            meta: self.column_meta(at),
        }
    }

    fn column_meta(&self, at: ColumnAt) -> ColumnMeta {
        let slot = &self.scope[usize::from(at.table)];
        let column = &slot.columns[usize::from(at.column)];
        let nullable = column.nullable || self.tables[usize::from(at.table)].nullable;
        let mut flags = column.ty.wire_flags() | if nullable { 0 } else { ColumnFlags::NOT_NULL };
        let mut org_table: Arc<str> = "".into();
        if let TableSource::Table(def) | TableSource::Virtual(def) =
            &self.tables[usize::from(at.table)].source
        {
            org_table = def.name.clone();
            flags |= key_flags(def, usize::from(at.column));
        }
        ColumnMeta {
            schema: slot.schema.clone().unwrap_or_else(|| "".into()),
            table: slot.alias.clone(),
            org_table,
            name: column.name.clone(),
            org_name: column.name.clone(),
            ty: column.ty.clone(),
            flags,
            made: column.made,
        }
    }

    fn position(&self, e: &ast::Expr, items: &[Item]) -> Result<Option<Expr>, SqlError> {
        let ast::Expr::Literal(Literal::Int(n)) = e else {
            return Ok(None);
        };
        match usize::try_from(*n)
            .ok()
            .and_then(|n| items.get(n.checked_sub(1)?))
        {
            Some(item) => Ok(Some(item.expr.clone())),
            None => Err(SqlError::new(
                ErrorCode::ER_BAD_FIELD_ERROR,
                &[n, &self.clause],
            )),
        }
    }

    fn group_keys(&mut self, list: &[ast::Expr], items: &[Item]) -> Result<Vec<Expr>, SqlError> {
        let mut keys: Vec<Expr> = Vec::new();
        for e in list {
            if let ast::Expr::Column(c) = e
                && c.table.is_none()
            {
                // It is there once at most, whatever the tables have.
                self.alias(&c.name.value, self.clause)?;
            }
            let key = match self.position(e, items)? {
                Some(e) => e,
                None => match self.expr(e) {
                    Err(error) => return Err(self.selected_aggregate(e, items).unwrap_or(error)),
                    key => key?,
                },
            };
            if window::has_window(&key) {
                let item = items.iter().find(|i| i.expr.kind == key.kind);
                let name = item.map_or("window", |i| &*i.meta.name);
                return Err(SqlError::new(ErrorCode::ER_WRONG_GROUP_FIELD, &[&name]));
            }
            if self.reads_an_aggregate(&key) {
                let item = items.iter().find(|i| i.expr.kind == key.kind);
                let name = item.map_or("aggregate", |i| &*i.meta.name);
                return Err(SqlError::new(ErrorCode::ER_WRONG_GROUP_FIELD, &[&name]));
            }
            if key.any(
                &mut |e| matches!(e.kind, ExprKind::Column(at) if at.table == super::GROUPINGS),
            ) {
                return Err(rollup::not_grouped_by());
            }
            // Grouping by a constant makes one group, but still none of no rows. What is rolled up has a row for each member, named twice or not.
            let again = keys.iter().any(|k| k.kind == key.kind);
            if !again || self.grouped == Grouped::RolledUp {
                keys.push(key);
            }
        }
        Ok(keys)
    }

    /// Whether the value of `key` depends on an aggregate: of this block, by itself or in a subquery, or of an enclosing one. No group
    /// can be made by it, because aggregates are computed after the groups are made.
    fn reads_an_aggregate(&mut self, key: &Expr) -> bool {
        let mut found = false;
        let mut subqueries = Vec::new();
        key.any(&mut |e| {
            match &e.kind {
                ExprKind::Column(at) | ExprKind::Outer { at, .. } => {
                    found |= at.table == super::AGGREGATES;
                }
                ExprKind::Subquery { index, .. } => subqueries.push(usize::from(*index)),
                _ => {}
            }
            false
        });
        for index in subqueries {
            let Ok(()) =
                outer_columns::<Infallible>(&mut self.subqueries[index].plan, 1, &mut |at, _| {
                    found |= at.table == super::AGGREGATES;
                    Ok(())
                });
        }
        found
    }

    /// Error 1056 where a GROUP BY member, which no group can be made by, is an aggregate of the select list.
    fn selected_aggregate(&mut self, e: &ast::Expr, items: &[Item]) -> Option<SqlError> {
        self.aggregates_allowed = true;
        let bound = self.expr(e);
        self.aggregates_allowed = false;
        let kind = bound.ok()?.kind;
        let item = items.iter().find(|i| i.expr.kind == kind)?;
        let name = &item.meta.name;
        Some(SqlError::new(ErrorCode::ER_WRONG_GROUP_FIELD, &[&name]))
    }

    pub(super) fn order_keys(
        &mut self,
        list: &[OrderItem],
        items: &[Item],
    ) -> Result<Vec<OrderKey>, SqlError> {
        let mut keys: Vec<OrderKey> = Vec::new();
        for o in list {
            let expr = match self.position(&o.expr, items)? {
                Some(e) => e,
                None => match &o.expr {
                    // A bare name is looked for in the select list first.
                    ast::Expr::Column(c) if c.table.is_none() => {
                        match self.alias(&c.name.value, self.clause)? {
                            Some(e) => e,
                            None => self.expr(&o.expr)?,
                        }
                    }
                    e => self.expr(e)?,
                },
            };
            // The order by a constant is no order.
            let constant = matches!(expr.kind, ExprKind::Const(_) | ExprKind::Param(_));
            if !constant && !keys.iter().any(|k| k.expr.kind == expr.kind) {
                keys.push(OrderKey {
                    expr,
                    desc: o.descending,
                });
            }
        }
        Ok(keys)
    }
}

/// Flags that tell of keys, as MySQL sets them.
pub(crate) fn key_flags(def: &nfold_catalog::TableDef, column: usize) -> u16 {
    let mut flags = 0;
    let c = &def.columns[column];
    if c.auto_increment {
        flags |= ColumnFlags::AUTO_INCREMENT;
    }
    if c.on_update_now.is_some() {
        flags |= ColumnFlags::TIMESTAMP | ColumnFlags::ON_UPDATE_NOW;
    }
    if matches!(c.default, nfold_catalog::ColumnDefault::CurrentTimestamp(_)) {
        flags |= ColumnFlags::TIMESTAMP;
    }
    if !c.nullable && matches!(c.default, nfold_catalog::ColumnDefault::None) && !c.auto_increment {
        flags |= ColumnFlags::NO_DEFAULT_VALUE;
    }
    for index in &def.indexes {
        let Some(at) = index.parts.iter().position(|p| p.column == column) else {
            continue;
        };
        flags |= ColumnFlags::PART_KEY;
        match index.kind {
            nfold_catalog::IndexKind::Primary => flags |= ColumnFlags::PRI_KEY,
            nfold_catalog::IndexKind::Unique if index.parts.len() == 1 => {
                flags |= ColumnFlags::UNIQUE_KEY
            }
            _ if at == 0 => flags |= ColumnFlags::MULTIPLE_KEY,
            _ => {}
        }
    }
    flags
}

/// A name made from text: it has characters of the basic plane only, others are question marks.
fn basic(text: &str) -> Arc<str> {
    if text.is_ascii() {
        return text.into();
    }
    let shown = |c: char| if u32::from(c) > 0xffff { '?' } else { c };
    text.chars().map(shown).collect::<String>().into()
}

/// The name of a column that is a string literal: its value without what is no visible character in front; of hexadecimal digits
/// behind an introducer, what is written.
fn literal_name(s: &ast::StringLiteral, ty: &ExprType, written: &str) -> Arc<str> {
    if s.charset.is_some() && !written.ends_with(['\'', '"']) {
        return basic(written);
    }
    let digits = |quoted: &str| quoted.trim_end().ends_with(['x', 'X', 'b', 'B']);
    if s.charset.is_some()
        && let Some((introducer, _)) = written.split_once('\'')
        && introducer.contains(char::is_whitespace)
        && digits(introducer)
    {
        return basic(written);
    }
    let set = ty.col.charset();
    let visible = |b: &u8| b.is_ascii_graphic() || (!b.is_ascii() && !set.is_binary());
    let start = s.bytes.iter().position(visible).unwrap_or(s.bytes.len());
    let mut name = Vec::new();
    nfold_types::charset::convert(
        set,
        &nfold_types::charset::UTF8MB4,
        &s.bytes[start..],
        &mut name,
    );
    basic(&String::from_utf8_lossy(&name))
}

/// `ANY_VALUE(x)` makes no group of a query that has none: there it is `x`.
fn lone_any_values<'e>(b: &BlockBinder<'_>, exprs: impl Iterator<Item = &'e mut Expr>) {
    fn replace(e: &mut Expr, values: &[Expr]) {
        match e.as_column().filter(|at| at.table == super::AGGREGATES) {
            Some(at) => *e = values[usize::from(at.column)].clone(),
            None => e.each_child_mut(&mut |child| replace(child, values)),
        }
    }
    let alone = b.aggregates.borrow().iter().all(|a| a.func == AggFunc::Any);
    // A subquery may name them.
    if !alone || b.aggregates.borrow().is_empty() || !b.subqueries.is_empty() {
        return;
    }
    let values: Vec<Expr> = b
        .aggregates
        .take()
        .into_iter()
        .filter_map(|mut a| a.args.pop())
        .collect();
    exprs.for_each(|e| replace(e, &values));
}
