//! Subqueries. A correlated subquery that has a decorrelated form gets both plans, and the executor
//! chooses by the number of outer rows. If an index finds few inner rows per outer row, the
//! correlated plan remains alone.

use super::QueryUse;
use super::context::OptimizeCx;
use super::joins::{self, JoinGraph};
use crate::logical::context::PlanCx;
use crate::logical::expr::{Class, ColumnAt, Expr, ExprKind, SubqueryUse, TextOrigin};
use crate::logical::func::VOLATILE;
use crate::logical::query::{self as logical, Decorrelated, Subquery, SubqueryForm};
use crate::logical::walk;
use crate::physical::{
    Block, DecorrelatedPlan, GroupPlan, QueryBody, QueryPlan, SubqueryPlan, TableSource,
};

/// The maximum nesting of decorrelated subqueries. Each has two plans, so two nested ones have
/// four.
const NESTED_MAX: usize = 2;

/// The estimated rows of an index per outer row, up to which the correlated plan remains alone.
const LOOKED_UP_MAX: f64 = 16.0;

/// Plans the subqueries of a block.
pub(super) fn plan_all(cx: &OptimizeCx<'_>, list: Vec<Subquery>) -> Vec<SubqueryPlan> {
    list.into_iter().map(|sub| plan(cx, sub)).collect()
}

fn plan(cx: &OptimizeCx<'_>, mut sub: Subquery) -> SubqueryPlan {
    let depends_on = match sub.correlated && sub.decorrelated.is_none() {
        true => named_columns(cx, &mut sub),
        false => None,
    };
    let first_row = sub.form == SubqueryForm::Existence;
    let (plan, decorrelated) = match sub.decorrelated {
        Some(decorrelated) => two_plans(cx, *sub.query, *decorrelated, first_row),
        None if first_row => (super::query_for(cx, *sub.query, QueryUse::FirstRow), None),
        None => (super::nested_query(cx, *sub.query), None),
    };
    SubqueryPlan {
        plan: Box::new(plan),
        correlated: sub.correlated,
        depends_on,
        decorrelated: decorrelated.map(Box::new),
    }
}

/// The columns of the enclosing query that a subquery names. `None` if its rows may differ although
/// these columns have the same values.
fn named_columns(cx: &PlanCx<'_>, sub: &mut Subquery) -> Option<Vec<Expr>> {
    let (mut columns, mut repeatable) = (Vec::new(), true);
    walk::each_expr(&mut sub.query, 1, &mut |e, depth| match &e.kind {
        ExprKind::Outer { level, at } if *level == depth => {
            let column = Expr {
                kind: ExprKind::Column(*at),
                ty: e.ty.clone(),
            };
            let known = columns.iter().any(|c: &Expr| c.kind == column.kind);
            columns.extend((!known).then_some(column));
        }
        ExprKind::UserVar(_) | ExprKind::AssignUserVar(..) => repeatable = false,
        ExprKind::Call { func, .. } => {
            repeatable &= cx.funcs.get(*func).flags & VOLATILE == 0;
        }
        _ => {}
    });
    repeatable.then_some(columns)
}

/// The correlated plan, and the decorrelated one if it pays off. `first_row`: the first row is
/// enough.
fn two_plans(
    cx: &OptimizeCx<'_>,
    q: logical::Query,
    decorrelated: Decorrelated,
    first_row: bool,
) -> (QueryPlan, Option<DecorrelatedPlan>) {
    let logical::QueryBody::Block(b) = q.body else {
        return (super::nested_query(cx, q), None);
    };
    let limited = q.limit.is_some() && b.windows.is_empty();
    let (mut block, graph) = super::open(cx, *b, limited);
    // Both plans share the nested queries, which are planned once.
    let other = (nested(&block) <= NESTED_MAX).then(|| (block.clone(), graph.clone()));
    let correlated = JoinGraph { first_row, ..graph };
    joins::join_tables(cx, &mut block, correlated);
    let decorrelated = match looks_up_few_rows(&block) {
        true => None,
        false => other.map(|(block, graph)| plan_decorrelated(cx, block, graph, decorrelated)),
    };
    let plan = QueryPlan {
        body: QueryBody::Block(Box::new(block)),
        columns: q.columns,
        types: q.types,
        order: q.order,
        limit: q.limit,
        empty_columns: None,
    };
    (plan, decorrelated)
}

/// Whether an index finds the rows for an outer row, and they are few.
fn looks_up_few_rows(correlated: &Block) -> bool {
    let mut looked_up = false;
    if let Some(first) = correlated.joins.first().filter(|j| j.rows <= LOOKED_UP_MAX) {
        first
            .access
            .kind
            .each_expr(&mut |e| looked_up |= names_outer(e));
    }
    looked_up
}

fn names_outer(e: &Expr) -> bool {
    e.any(&mut |e| matches!(e.kind, ExprKind::Outer { level: 1, .. }))
}

fn plan_decorrelated(
    cx: &PlanCx<'_>,
    mut block: Block,
    mut graph: JoinGraph,
    decorrelated: Decorrelated,
) -> DecorrelatedPlan {
    match &mut block.group {
        Some(group) => {
            let mut select = std::mem::take(&mut block.select);
            select.truncate(decorrelated.members);
            let shift = decorrelated.select.len() as u16;
            let having = block.having.iter_mut();
            having.for_each(|e| shift_columns(e, shift));
            block.select = group_by(group, decorrelated.select, select);
        }
        None => block.select = decorrelated.select,
    }
    block.order.clear();
    for (table, used) in block
        .tables
        .iter_mut()
        .zip(decorrelated.used.into_iter().flatten())
    {
        table.used = used;
    }
    (graph.conditions, graph.limited) = (decorrelated.conditions, false);
    joins::join_tables(cx, &mut block, graph);
    let rows = block.joins.iter().map(|step| step.rows).sum();
    let types = block.select.iter().map(|e| e.ty.clone()).collect();
    let plan = QueryPlan {
        body: QueryBody::Block(Box::new(block)),
        columns: Vec::new(),
        types,
        order: Vec::new(),
        limit: None,
        empty_columns: None,
    };
    DecorrelatedPlan {
        plan: Box::new(plan),
        keys: decorrelated.keys,
        conditions: decorrelated.outer_conditions,
        tests: decorrelated.tests,
        extreme: decorrelated.extreme,
        rows,
        converts: decorrelated.converts,
        grouped: decorrelated.grouped,
    }
}

/// Adds `keys` to a grouping, before its own. Returns the columns of the keys, followed by `select`
/// over the groups.
fn group_by(group: &mut GroupPlan, mut keys: Vec<Expr>, mut select: Vec<Expr>) -> Vec<Expr> {
    let column = |(n, key): (usize, &Expr)| Expr {
        kind: ExprKind::Column(ColumnAt {
            table: 0,
            column: n as u16,
        }),
        ty: key.ty.clone(),
    };
    let mut columns: Vec<Expr> = keys.iter().enumerate().map(column).collect();
    let shift = keys.len() as u16;
    select.iter_mut().for_each(|e| shift_columns(e, shift));
    columns.append(&mut select);
    keys.append(&mut group.keys);
    (group.keys, group.implicit) = (keys, false);
    columns
}

/// Shifts references to aggregates by the number of added keys.
fn shift_columns(e: &mut Expr, shift: u16) {
    if let ExprKind::Column(at) = &mut e.kind {
        at.column += shift;
    }
    e.each_child_mut(&mut |child| shift_columns(child, shift));
}

/// The maximum nesting of decorrelated subqueries below this block, including those in derived
/// tables.
fn nested(block: &Block) -> usize {
    fn of(q: &QueryPlan) -> usize {
        match &q.body {
            QueryBody::Block(b) => nested(b),
            QueryBody::Set { left, right, .. } => of(left).max(of(right)),
            QueryBody::Recursive(r) => r.queries().map(of).max().unwrap_or(0),
            QueryBody::Rows(_) | QueryBody::Working(_) => 0,
        }
    }
    let depth = |sub: &SubqueryPlan| of(&sub.plan) + usize::from(sub.decorrelated.is_some());
    let derived = block.tables.iter().map(|slot| match &slot.source {
        TableSource::Derived(q) => of(q),
        _ => 0,
    });
    let subqueries = block.subqueries.iter().map(depth);
    subqueries.chain(derived).max().unwrap_or(0)
}

/// Lets texts that IN looks up among the numbers of a subquery convert without a warning, unless
/// MySQL makes a semi-join of the IN: it stores the text in a key, which does not warn.
/// `limited`: the block has a LIMIT.
pub(super) fn silence_lookups(block: &mut Block, limited: bool) {
    if block.subqueries.is_empty() {
        return;
    }
    let subqueries = std::mem::take(&mut block.subqueries);
    let joined = block.changed == 0 || block.order.is_empty() && !limited;
    for step in &mut block.joins {
        for e in step.on.iter_mut().chain(&mut step.filter) {
            if !(joined && is_semi_join(&subqueries, e)) {
                silence(&subqueries, e);
            }
        }
    }
    let group = block.group.iter_mut();
    let keys = group.flat_map(|group| &mut group.keys);
    let order = block.order.iter_mut().map(|key| &mut key.expr);
    let others = block.having.iter_mut().chain(&mut block.select);
    keys.chain(order)
        .chain(others)
        .for_each(|e| silence(&subqueries, e));
    block.subqueries = subqueries;
}

/// Whether MySQL makes a semi-join or an anti-join of a condition.
fn is_semi_join(subqueries: &[SubqueryPlan], e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Is { expr, .. } | ExprKind::Not(expr) => is_semi_join(subqueries, expr),
        ExprKind::Subquery {
            index,
            use_as: SubqueryUse::In { left, negated, .. },
        } => {
            let types = &subqueries[usize::from(*index)].plan.types;
            !negated
                || !left
                    .iter()
                    .map(|e| &e.ty)
                    .chain(types)
                    .any(|ty| ty.nullable)
        }
        _ => false,
    }
}

fn silence(subqueries: &[SubqueryPlan], e: &mut Expr) {
    if let ExprKind::Subquery {
        index,
        use_as: SubqueryUse::In { left, .. },
    } = &mut e.kind
    {
        let query = &subqueries[usize::from(*index)].plan;
        let reads = match &query.body {
            QueryBody::Block(block) => !block.joins.is_empty(),
            _ => true,
        };
        for (operand, ty) in left.iter_mut().zip(&query.types) {
            if reads && operand.ty.class() == Class::String && ty.class().is_number() {
                operand.ty.origin = TextOrigin::Cached;
            }
        }
    }
    e.each_child_mut(&mut |child| silence(subqueries, child));
}
