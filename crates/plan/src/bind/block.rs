//! Queries and query blocks.
//!
//! The clauses of a block are bound in MySQL's order of name resolution: FROM, WHERE, the select
//! list, GROUP BY, HAVING, ORDER BY. If the block is grouped, its later clauses are then rewritten
//! over the grouped row. At last its window functions are assigned to passes.

use nfold_sql::ast::{self, OrderItem, Query as AstQuery, QueryBody as AstBody, Select};
use nfold_types::{ErrorCode, SqlError};

use super::aggregate::unchecked;
use super::dependencies::BoundBlock;
use super::from::FromInfo;
use super::group::{GroupPosition, Grouper};
use super::items::Item;
use super::order::check_distinct_order;
use super::set::{ordered, result_order, set_body, whole_table, with_locking};
use super::window::{self, WindowSpecs};
use super::{
    AGGREGATES, BindCx, BlockBinder, Dependency, Grouped, MAX_DEPTH, WindowDraft, too_deep, with,
};
use crate::logical::clauses::{AggFunc, Aggregate, ColumnMeta, LimitPlan, OrderKey, RowLocking};
use crate::logical::describe::{Description, ResultKind};
use crate::logical::expr::{Expr, ExprKind, ExprType, SubqueryUse, is_constant};
use crate::logical::mode::SqlMode;
use crate::logical::query::{Block, Grouping, Query, QueryBody, Subquery, SubqueryForm};

/// Binds the outermost query of a statement. Its columns are described once its plan is known.
pub(super) fn bind_statement(cx: &BindCx<'_>, q: &AstQuery) -> Result<Query, SqlError> {
    Ok(bind_in(cx, q, None, SubqueryForm::Rows)?.query)
}

/// Binds a derived table, or a query inside another statement, with its columns described.
pub(crate) fn bind_query(
    cx: &BindCx<'_>,
    q: &AstQuery,
    outer: Option<&BlockBinder<'_>>,
) -> Result<Query, SqlError> {
    let bound = bind_in(cx, q, outer, SubqueryForm::Rows)?;
    Ok(bound.described().query)
}

/// A bound query.
pub(crate) struct Bound {
    pub query: Query,
    /// Whether it names columns of an enclosing query.
    pub correlated: bool,
    /// The functional dependencies between its columns, if it is a derived table.
    pub dependencies: Vec<Dependency>,
}

impl Bound {
    /// The same query with its columns described as an enclosing query sees them.
    pub fn described(mut self) -> Bound {
        self.query.describe();
        self
    }
}

/// Binds a subquery of `outer`. `form` says which result the outer query needs.
pub(crate) fn bind_subquery(
    cx: &BindCx<'_>,
    q: &AstQuery,
    outer: &BlockBinder<'_>,
    form: SubqueryForm,
) -> Result<Bound, SqlError> {
    Ok(bind_in(cx, q, Some(outer), form)?.described())
}

pub(super) fn bind_in(
    cx: &BindCx<'_>,
    q: &AstQuery,
    outer: Option<&BlockBinder<'_>>,
    form: SubqueryForm,
) -> Result<Bound, SqlError> {
    let within = cx.deeper()?;
    with::with_ctes(&within, q.with.as_ref(), outer, |cx| {
        bind_within(cx, q, outer, form)
    })
}

/// As [`bind_in`], after the query's own WITH has been added to the context.
fn bind_within(
    cx: &BindCx<'_>,
    q: &AstQuery,
    outer: Option<&BlockBinder<'_>>,
    form: SubqueryForm,
) -> Result<Bound, SqlError> {
    if outer.is_some_and(|o| o.depth >= MAX_DEPTH) {
        return Err(too_deep());
    }
    let limit = limit(cx, q.limit.as_ref())?;
    match &q.body {
        AstBody::Select(s) => block((cx, form), s, &q.order_by, limit, &q.locking, outer),
        AstBody::Paren(inner)
            if q.order_by.is_empty() && q.limit.is_none() && q.locking.is_empty() =>
        {
            bind_in(cx, inner, outer, form)
        }
        AstBody::Table(name) => {
            let select = whole_table(name);
            block((cx, form), &select, &q.order_by, limit, &q.locking, outer)
        }
        // `(SELECT ... ORDER BY ...) ORDER BY ...`: without an inner LIMIT the outer ORDER BY
        // replaces the inner one.
        AstBody::Paren(inner) if inner.limit.is_none() && inner.with.is_none() => {
            let mut whole = AstQuery::clone(inner);
            if !q.order_by.is_empty() {
                whole.order_by = q.order_by.clone();
            }
            whole.limit = q.limit.clone();
            if whole.locking.is_empty() {
                whole.locking = q.locking.clone();
            }
            bind_in(cx, &whole, outer, form)
        }
        body => {
            let mut bound = match q.locking.is_empty() {
                true => set_body(cx, body, outer)?,
                false => set_body(cx, &with_locking(body, &q.locking), outer)?,
            };
            let order = match body {
                AstBody::Paren(_) => None,
                _ => result_order(&bound.query, &q.order_by)?,
            };
            match order {
                Some(order) => (bound.query.order, bound.query.limit) = (order, limit),
                None => bound = ordered(cx, bound, &q.order_by, limit, outer)?,
            }
            Ok(bound)
        }
    }
}

/// Binds LIMIT. Its values are constants or parameters.
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

/// Splits a condition into the operands of its ANDs.
pub(crate) fn conjuncts(e: Expr, out: &mut Vec<Expr>) {
    match e.kind {
        ExprKind::And(list) => list.into_iter().for_each(|e| conjuncts(e, out)),
        _ => out.push(e),
    }
}

/// The clauses of a SELECT, bound over the joined row. Aggregates and window functions are columns
/// of the placeholder slots [`AGGREGATES`] and [`WINDOWS`](super::WINDOWS).
struct Clauses {
    items: Vec<Item>,
    select: Vec<Expr>,
    keys: Vec<Expr>,
    /// WITH ROLLUP: for each select item the member of GROUP BY that names it.
    item_keys: Vec<Option<usize>>,
    having: Vec<Expr>,
    order: Vec<OrderKey>,
    specs: WindowSpecs,
    drafts: Vec<WindowDraft>,
}

/// Binds one SELECT.
pub(super) fn block(
    (cx, form): (&BindCx<'_>, SubqueryForm),
    s: &Select,
    order_by: &[OrderItem],
    limit: Option<LimitPlan>,
    locking: &[ast::Locking],
    outer: Option<&BlockBinder<'_>>,
) -> Result<Bound, SqlError> {
    let distinct = s.distinct && form.needs_distinct(limit.is_some());
    let mergeable = cx.derived && limit.is_none();
    let has_dependencies = cx.has_dependencies;
    let cx = &BindCx {
        derived: false,
        has_dependencies: false,
        ..*cx
    };
    let mut b = BlockBinder::new(cx, outer);
    b.is_existence_test = form == SubqueryForm::Existence;
    let mut info = b.from(&s.from)?;
    let hints = b.plan_hints(&s.plan_hints, &info);
    let straight = s.options.straight_join || hints.straight;
    if !straight {
        info.straight_joins.extend(hints.orders);
    }
    let lock = b.locking(locking)?;
    let mut conditions = b.where_conditions(&mut info, s.selection.as_ref())?;
    let mut c = b.clauses(s, order_by, &info)?;
    b.mark_assigned_vars(conditions.iter_mut());
    // A computed ENUM or SET member is sorted by its text. DISTINCT compares such values by itself.
    let is_computed = |e: &Expr| matches!(e.kind, ExprKind::Case { .. } | ExprKind::Call { .. });
    if !distinct {
        let keys = c.order.iter_mut().map(|k| &mut k.expr);
        keys.filter(|e| is_computed(e))
            .for_each(super::stored::members_as_texts);
    }
    if s.group_by.is_empty() {
        replace_lone_any_values(&b, &mut c);
    }
    c.select = c.items.iter().map(|i| i.expr.clone()).collect();
    let windowed = !c.drafts.is_empty();
    let mut dependencies = Vec::new();
    if has_dependencies && !windowed && cx.mode.has(SqlMode::ONLY_FULL_GROUP_BY) {
        let bound = BoundBlock {
            block: &b,
            keys: &c.keys,
            implicit: s.group_by.is_empty() && !b.aggregates.borrow().is_empty(),
            conditions: &conditions,
            outer_joins: &info.outer_joins,
        };
        dependencies = bound.dependencies(&c.select);
    }
    let mut group = None;
    if !s.group_by.is_empty() || !b.aggregates.borrow().is_empty() {
        let (grouping, mut subqueries) = over_groups(&b, &mut c, s, &conditions, &info)?;
        b.subqueries.append(&mut subqueries);
        group = Some(grouping);
    } else if distinct && cx.mode.has(SqlMode::ONLY_FULL_GROUP_BY) {
        check_distinct_order(&c.order, &c.select, &c.drafts, &b)?;
    }
    let slots = match group {
        Some(_) => 1,
        None => b.tables.len(),
    };
    let (windows, places) = window::passes(&b, std::mem::take(&mut c.drafts), &c.specs, slots);
    if windowed {
        let order = c.order.iter_mut().map(|k| &mut k.expr);
        let all = c.select.iter_mut().chain(order);
        all.for_each(|e| window::place(e, &places));
    }
    let mut description = description(&c.items, &b.aggregates.take(), distinct, windowed);
    for (kind, item) in description.kinds.iter_mut().zip(&c.items) {
        if *kind != ResultKind::Value {
            continue;
        }
        let is_subquery = matches!(item.expr.kind, ExprKind::Subquery { .. });
        if is_subquery && b.reads_an_aggregate(&item.expr) {
            *kind = ResultKind::OfAggregates;
        } else if is_stored(&item.expr, &b.subqueries, distinct) {
            *kind = ResultKind::Subquery;
        } else if is_uncorrelated_subquery(&item.expr, &b.subqueries) {
            *kind = ResultKind::UncorrelatedSubquery;
        }
    }
    let columns: Vec<ColumnMeta> = c.items.into_iter().map(|i| i.meta).collect();
    let used = b.used.take();
    for (table, used) in b.tables.iter_mut().zip(used) {
        table.used = used;
    }
    let types = c.select.iter().map(|e| e.ty.clone()).collect();
    let block = Block {
        tables: b.tables,
        conditions,
        outer_joins: info.outer_joins,
        straight,
        straight_joins: info.straight_joins,
        semijoin: hints.semijoin,
        group,
        having: c.having,
        windows,
        select: c.select,
        distinct,
        order: c.order,
        subqueries: b.subqueries,
        lock,
        changed: 0,
        calc_found_rows: s.options.sql_calc_found_rows,
        warnings: b.warnings,
        mergeable,
        pads_char: cx.pads_char(),
    };
    Ok(Bound {
        query: Query {
            body: QueryBody::Block(Box::new(block)),
            columns,
            types,
            order: Vec::new(),
            limit,
            description: Some(Box::new(description)),
        },
        correlated: b.correlated.get(),
        dependencies,
    })
}

/// Error 3029 if ORDER BY has an aggregate and no other clause has one: the aggregate would reduce
/// the query to one row.
fn refuse_aggregates_in_order(
    order: &[OrderKey],
    aggregates: &[Aggregate],
) -> Result<(), SqlError> {
    let gathers = |e: &Expr| {
        e.as_column().is_some_and(|at| {
            at.table == AGGREGATES && aggregates[usize::from(at.column)].func != AggFunc::Any
        })
    };
    match order.iter().position(|k| k.expr.any(&mut |e| gathers(e))) {
        Some(n) => Err(SqlError::new(
            ErrorCode::ER_AGGREGATE_ORDER_NON_AGG_QUERY,
            &[&(n + 1)],
        )),
        None => Ok(()),
    }
}

/// Groups a block: rewrites its clauses over the grouped row. Returns the grouping, and the
/// correlated subqueries as rewritten.
fn over_groups(
    b: &BlockBinder<'_>,
    c: &mut Clauses,
    s: &Select,
    conditions: &[Expr],
    info: &FromInfo,
) -> Result<(Grouping, Vec<Subquery>), SqlError> {
    let implicit = s.group_by.is_empty();
    let keys = std::mem::take(&mut c.keys);
    let mut g = Grouper::new(b, keys, implicit, conditions, &info.outer_joins)?;
    g.drafts = std::mem::take(&mut c.drafts);
    g.item_keys = std::mem::take(&mut c.item_keys);
    for (n, e) in c.select.iter_mut().enumerate() {
        *e = g.rewrite(e.clone(), GroupPosition::Select(n))?;
    }
    for e in &mut c.having {
        *e = g.rewrite(e.clone(), GroupPosition::Having)?;
    }
    // Without GROUP BY the result is one row, so there is nothing to sort.
    if implicit {
        c.order.clear();
    }
    for (n, key) in c.order.iter_mut().enumerate() {
        key.expr = g.rewrite(key.expr.clone(), GroupPosition::Order(n))?;
    }
    c.specs.regroup(&mut g)?;
    c.drafts = std::mem::take(&mut g.drafts);
    let subqueries = std::mem::take(&mut g.subqueries);
    Ok((g.finish(), subqueries))
}

fn description(
    items: &[Item],
    aggregates: &[Aggregate],
    distinct: bool,
    windowed: bool,
) -> Description {
    let mut aggregated = aggregates.iter();
    Description {
        kinds: items
            .iter()
            .map(|i| result_kind(&i.expr, aggregates))
            .collect(),
        sorted_groups: aggregated.any(|a| a.distinct || a.func == AggFunc::GroupConcat),
        distinct,
        windowed,
    }
}

/// Whether `e` is the value of a subquery that reads tables, and the rows store it. MySQL replaces
/// any other scalar subquery by its select item. Without DISTINCT an uncorrelated one is a constant
/// of the grouped rows.
fn is_stored(e: &Expr, subqueries: &[Subquery], distinct: bool) -> bool {
    let ExprKind::Subquery { index, .. } = e.kind else {
        return false;
    };
    subqueries.get(usize::from(index)).is_some_and(|subquery| {
        let read = matches!(&subquery.query.body, QueryBody::Block(b) if !b.tables.is_empty());
        read && (distinct || subquery.correlated)
    })
}

/// Whether `e` is the value of an uncorrelated subquery that reads tables. MySQL computes it before
/// it reads a row, and does not store it beside the rows.
fn is_uncorrelated_subquery(e: &Expr, subqueries: &[Subquery]) -> bool {
    let ExprKind::Subquery {
        index,
        use_as: SubqueryUse::Scalar,
    } = e.kind
    else {
        return false;
    };
    subqueries.get(usize::from(index)).is_some_and(|subquery| {
        let read = matches!(&subquery.query.body, QueryBody::Block(b) if !b.tables.is_empty());
        read && !subquery.correlated
    })
}

fn result_kind(e: &Expr, aggregates: &[Aggregate]) -> ResultKind {
    let aggregate = |e: &Expr| e.as_column().filter(|at| at.table == AGGREGATES);
    if window::has_window(e) {
        ResultKind::Value
    } else if let Some(at) = aggregate(e) {
        match aggregates[usize::from(at.column)].func {
            AggFunc::Any => ResultKind::Subquery,
            _ => ResultKind::Aggregate,
        }
    } else if e.any(&mut |e| aggregate(e).is_some()) {
        ResultKind::OfAggregates
    } else if is_constant(e) {
        ResultKind::Constant
    } else {
        ResultKind::Value
    }
}

impl BlockBinder<'_> {
    /// Binds WHERE, and returns its conditions together with those of FROM, which MySQL tests after
    /// them.
    pub(super) fn where_conditions(
        &mut self,
        info: &mut FromInfo,
        selection: Option<&ast::Expr>,
    ) -> Result<Vec<Expr>, SqlError> {
        let mut conditions = Vec::new();
        if let Some(e) = selection {
            self.clause = "where clause";
            let mut e = self.truth(e)?;
            self.check_condition(&mut e, false);
            self.conditions(e, &mut conditions);
        }
        conditions.append(&mut info.conditions);
        Ok(conditions)
    }

    /// Binds the clauses after WHERE.
    fn clauses(
        &mut self,
        s: &Select,
        order_by: &[OrderItem],
        info: &FromInfo,
    ) -> Result<Clauses, SqlError> {
        self.grouped = match (s.group_by.is_empty(), s.with_rollup) {
            (true, _) => Grouped::No,
            (false, false) => Grouped::Plainly,
            (false, true) => Grouped::RolledUp,
        };
        self.clause = "field list";
        self.aggregates_allowed = true;
        self.windows_allowed = true;
        let items = self.items(s, info)?;
        let alias = |i: &Item| (i.meta.name.clone(), i.expr.clone());
        self.aliases = items.iter().map(alias).collect();
        self.clause = "group statement";
        self.aggregates_allowed = false;
        self.windows_allowed = false;
        let keys = self.group_keys(&s.group_by, &items)?;
        self.keys = keys.clone();
        let item_keys = self.item_keys(&s.group_by);
        self.aggregates_allowed = true;
        self.clause = "having clause";
        let mut having = Vec::new();
        if let Some(e) = &s.having {
            let e = self.truth(e)?;
            conjuncts(e, &mut having);
        }
        self.clause = "order clause";
        self.windows_allowed = true;
        let gathers = !self.aggregates.borrow().is_empty();
        let order = self.order_keys(order_by, &items)?;
        self.windows_allowed = false;
        if s.group_by.is_empty() && !gathers {
            refuse_aggregates_in_order(&order, &self.aggregates.borrow())?;
        }
        let specs = match s.windows.is_empty() && self.windows.is_empty() {
            true => WindowSpecs::default(),
            false => self.window_specs(&s.windows)?,
        };
        Ok(Clauses {
            items,
            select: Vec::new(),
            keys,
            item_keys,
            having,
            order,
            specs,
            drafts: std::mem::take(&mut self.windows),
        })
    }

    /// Binds FOR UPDATE and FOR SHARE.
    ///
    /// # Errors
    /// 3568 for a table that FROM does not name, 3569 for a table that is named twice.
    fn locking(&self, clauses: &[ast::Locking]) -> Result<RowLocking, SqlError> {
        let twice = |name: &str| SqlError::new(ErrorCode::ER_DUPLICATE_TABLE_LOCK, &[&name]);
        let (mut lock, mut named) = (RowLocking::NONE, 0u64);
        for clause in clauses {
            // Without OF it means all tables. The merge of derived tables takes out theirs.
            let mut slots = u64::MAX;
            if !clause.of.is_empty() {
                slots = 0;
                for name in &clause.of {
                    let shown = format!("`{}`", name.name);
                    let unknown = || SqlError::new(ErrorCode::ER_UNRESOLVED_TABLE_LOCK, &[&shown]);
                    let slot = 1 << self.slot_named(name).ok_or_else(unknown)?;
                    if (named | slots) & slot != 0 {
                        return Err(twice(&shown));
                    }
                    slots |= slot;
                }
            } else if let Some(n) = (0..self.tables.len()).find(|n| named >> n & 1 == 1) {
                return Err(twice(&self.tables[n].alias));
            }
            named |= slots;
            lock.add(slots, clause.strength, clause.wait);
        }
        Ok(lock)
    }
}

/// Replaces `ANY_VALUE(x)` by `x` in a query without GROUP BY and without other aggregates.
fn replace_lone_any_values(b: &BlockBinder<'_>, c: &mut Clauses) {
    fn replace(e: &mut Expr, values: &[Expr]) {
        match e.as_column().filter(|at| at.table == AGGREGATES) {
            Some(at) => *e = values[usize::from(at.column)].clone(),
            None => e.each_child_mut(&mut |child| replace(child, values)),
        }
    }
    let alone = b.aggregates.borrow().iter().all(|a| a.func == AggFunc::Any);
    // A subquery may name the aggregates.
    if !alone || b.aggregates.borrow().is_empty() || !b.subqueries.is_empty() {
        return;
    }
    let values = b.aggregates.take().into_iter();
    let values: Vec<Expr> = values
        .filter_map(|mut a| a.args.pop())
        .map(unchecked)
        .collect();
    let exprs = c.items.iter_mut().map(|i| &mut i.expr);
    let exprs = exprs.chain(&mut c.having);
    let exprs = exprs.chain(c.drafts.iter_mut().flat_map(|d| &mut d.args));
    let exprs = exprs.chain(c.specs.exprs_mut());
    exprs
        .chain(c.order.iter_mut().map(|k| &mut k.expr))
        .for_each(|e| replace(e, &values));
}

impl BlockBinder<'_> {
    /// Binds a subquery of this block. Returns its index in `subqueries` and the types of its
    /// columns.
    pub fn subquery(
        &mut self,
        query: &nfold_sql::ast::Query,
        form: SubqueryForm,
    ) -> Result<(u16, Vec<ExprType>), SqlError> {
        if self.constants_only {
            return Err(SqlError::not_supported("a subquery in a constant"));
        }
        let bound = bind_subquery(self.cx, query, self, form)?;
        let types = bound.query.types.clone();
        self.subqueries.push(Subquery {
            query: Box::new(bound.query),
            correlated: bound.correlated,
            form,
            operands: Vec::new(),
            decorrelated: None,
        });
        Ok(((self.subqueries.len() - 1) as u16, types))
    }
}
