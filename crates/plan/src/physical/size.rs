//! The memory that a plan takes, for caches of bounded size.
//!
//! Counts the nodes of the plan's trees with the texts and values that they own. Shared objects
//! (table definitions, member lists of ENUM) are not counted. The sum is close to the allocated
//! memory, but leaves out the spare capacity of vectors.

use std::mem::{size_of, size_of_val};

use nfold_types::Value;

use super::{
    Access, AccessKind, Assignment, Block, ColumnMeta, InsertSource, JoinStep, LimitPlan, OrderKey,
    Plan, QueryBody, QueryPlan, SubqueryPlan, TableSource, UpdateTarget,
};
use crate::logical::expr::{Expr, ExprKind};

impl Plan {
    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Plan::Query(q) => query(q),
            Plan::Insert(p) => {
                let source = match &p.source {
                    InsertSource::Rows(rows) => rows
                        .iter()
                        .map(|row| size_of_val(row) + row.iter().map(optional).sum::<usize>())
                        .sum(),
                    InsertSource::Param(_) => 0,
                    InsertSource::Query(q) => query(q),
                    InsertSource::File(file) => size_of_val(&**file) + assignments(&file.set),
                };
                size_of_val(&**p)
                    + size_of_val(&*p.columns)
                    + source
                    + assignments(&p.on_duplicate)
                    + subqueries(&p.subqueries)
            }
            Plan::Update(p) => {
                size_of_val(&**p) + block(&p.source) + limit(&p.limit) + assignments(&p.assignments)
            }
            Plan::Delete(p) => size_of_val(&**p) + block(&p.source) + limit(&p.limit),
            Plan::UpdateTables(p) => {
                let target = |t: &UpdateTarget| size_of_val(t) + assignments(&t.assignments);
                let targets = p.targets.iter().map(target);
                size_of_val(&**p) + block(&p.source) + targets.sum::<usize>()
            }
            Plan::DeleteTables(p) => {
                size_of_val(&**p) + block(&p.source) + size_of_val(&*p.targets)
            }
            Plan::Do(list, subs) => exprs(list) + subqueries(subs),
            Plan::Explain(e) => {
                let texts = e.rows.iter().flatten().flatten();
                let probes = e.probes.iter().map(|p| query(&p.query)).sum::<usize>();
                let texts = texts.map(String::len).sum::<usize>();
                size_of_val(&**e) + e.plan.heap_bytes() + columns(&e.columns) + texts + probes
            }
        }
    }
}

fn query(q: &QueryPlan) -> usize {
    let body = match &q.body {
        QueryBody::Block(b) => size_of_val(&**b) + block(b),
        QueryBody::Set { left, right, .. } => {
            2 * size_of::<QueryPlan>() + query(left) + query(right)
        }
        QueryBody::Recursive(r) => {
            size_of_val(&**r)
                + r.queries().map(query).sum::<usize>()
                + size_of_val(&*r.steps)
                + size_of_val(&*r.columns)
        }
        QueryBody::Working(_) => 0,
        QueryBody::Rows(rows) => rows.iter().map(|r| size_of_val(r) + exprs(r)).sum(),
    };
    body + columns(&q.columns) + size_of_val(&*q.types) + size_of_val(&*q.order) + limit(&q.limit)
}

fn nested_join_bytes(step: &JoinStep) -> usize {
    step.nested_join.as_ref().map_or(0, |n| {
        let ends = n.ends.iter().map(|end| size_of_val(end) + exprs(&end.on));
        size_of_val(&**n) + ends.sum::<usize>()
    })
}

fn block(b: &Block) -> usize {
    let tables = b.tables.iter().map(|t| {
        let derived = match &t.source {
            TableSource::Derived(q) => size_of_val(&**q) + query(q),
            TableSource::Json(t) => size_of_val(&**t) + expr(&t.document),
            TableSource::Table(_) | TableSource::Virtual(_) => 0,
        };
        let documents = t.documents.iter().map(|d| {
            let paths = d.paths.iter().map(|(path, _)| expr(path));
            size_of_val(d) + paths.sum::<usize>() + size_of_val(&*d.row_paths)
        });
        size_of_val(t) + t.used.len() + documents.sum::<usize>() + derived
    });
    let joins = b.joins.iter().map(|j| {
        let other = j.alternative.as_ref();
        let other = other.map_or(0, |a| size_of_val(&**a) + access(&a.access));
        let tested = exprs(&j.on) + exprs(&j.filter) + nested_join_bytes(j);
        size_of_val(j) + access(&j.access) + other + tested
    });
    let group = b.group.as_ref().map_or(0, |g| {
        let aggregates = g
            .aggregates
            .iter()
            .map(|a| size_of_val(a) + exprs(&a.args) + order(&a.order) + a.separator.len());
        exprs(&g.keys) + aggregates.sum::<usize>()
    });
    let windows = b.windows.iter().map(|pass| {
        let mut bytes = size_of_val(pass) + size_of_val(&*pass.calls);
        pass.each_expr(&mut |e| bytes += expr(e));
        bytes
    });
    tables.sum::<usize>()
        + windows.sum::<usize>()
        + joins.sum::<usize>()
        + group
        + exprs(&b.constant_filter)
        + exprs(&b.constant_having)
        + exprs(&b.having)
        + exprs(&b.select)
        + order(&b.order)
        + subqueries(&b.subqueries)
        + size_of_val(&*b.warnings)
        + size_of_val(&*b.constant_checks)
}

fn access(a: &Access) -> usize {
    let mut bytes = exprs(&a.implied) + size_of_val(&*a.possible);
    match &a.kind {
        AccessKind::Hash {
            build,
            keys,
            filter,
            ..
        } => {
            bytes += size_of_val(&**build) + access(build) + exprs(filter);
            bytes += keys
                .iter()
                .map(|k| expr(&k.inner) + expr(&k.outer))
                .sum::<usize>();
        }
        kind => {
            if let AccessKind::Merge(merge) = kind {
                bytes += size_of_val(&**merge) + size_of_val(&*merge.branches);
            }
            if let AccessKind::Skip(scan) = kind {
                bytes += size_of_val(&**scan);
            }
            kind.each_expr(&mut |e| bytes += expr(e));
        }
    }
    bytes
}

/// The bytes of an expression node and of all nodes below it.
fn expr(e: &Expr) -> usize {
    let own = match &e.kind {
        ExprKind::Const(v) | ExprKind::Default(v) => value(v),
        ExprKind::UserVar(name)
        | ExprKind::VaryingUserVar(name)
        | ExprKind::SysVar { name, .. } => name.len(),
        ExprKind::AssignUserVar(name, _) => name.len(),
        _ => 0,
    };
    let mut bytes = size_of::<Expr>() + own;
    e.each_child(&mut |child| bytes += expr(child));
    bytes
}

fn value(v: &Value) -> usize {
    match v {
        Value::Bytes(b) => b.capacity(),
        _ => 0,
    }
}

fn exprs(list: &[Expr]) -> usize {
    list.iter().map(expr).sum()
}

fn optional(e: &Option<Expr>) -> usize {
    e.as_ref().map_or(size_of::<Option<Expr>>(), expr)
}

fn order(list: &[OrderKey]) -> usize {
    list.iter().map(|k| expr(&k.expr)).sum()
}

fn limit(l: &Option<LimitPlan>) -> usize {
    l.as_ref()
        .map_or(0, |l| expr(&l.count) + l.offset.as_ref().map_or(0, expr))
}

fn assignments(list: &[Assignment]) -> usize {
    list.iter().map(|a| 8 + optional(&a.value)).sum()
}

fn subqueries(list: &[SubqueryPlan]) -> usize {
    list.iter()
        .map(|s| {
            let decorrelated = s.decorrelated.as_ref().map_or(0, |k| {
                let parts = k.keys.iter().map(|p| size_of_val(p) + expr(&p.outer));
                size_of_val(&**k)
                    + query(&k.plan)
                    + exprs(&k.conditions)
                    + exprs(&k.tests)
                    + parts.sum::<usize>()
            });
            let columns = s.depends_on.as_ref().map_or(0, |list| exprs(list));
            size_of_val(s) + size_of::<QueryPlan>() + query(&s.plan) + decorrelated + columns
        })
        .sum()
}

fn columns(list: &[ColumnMeta]) -> usize {
    list.iter()
        .map(|c| size_of_val(c) + c.name.len() + 16)
        .sum()
}
