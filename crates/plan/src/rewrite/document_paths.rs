//! JSON columns of which a statement needs only the values that constant paths lead to: they are
//! the first argument of JSON_EXTRACT (`->`, `->>`) and of JSON_VALUE, and nothing else. The
//! executor reads such members in place, where a long document is stored.
//!
//! Columns that a subquery or a LATERAL derived table names are left alone. So are the tables of a
//! decorrelated subquery.

use std::collections::BTreeMap;

use crate::logical::context::PlanCx;
use crate::logical::expr::{ColumnAt, Expr, ExprKind, FuncId};
use crate::logical::query::{Block, DocumentPaths, Query, QueryBody, Source, Subquery};
use crate::logical::walk;

/// The functions whose first argument is a document, and whose second one is a path. Whether all
/// arguments from the second on are paths.
const READERS: [(&str, bool); 2] = [("json_extract", true), ("json_value", false)];

/// Marks the columns in all blocks of a query.
pub(super) fn mark_documents(cx: &PlanCx<'_>, q: &mut Query) {
    let known = READERS.iter().filter_map(|(name, all_paths)| {
        let (func, _) = cx.funcs.find(name)?;
        Some((func, *all_paths))
    });
    let readers: Vec<(FuncId, bool)> = known.collect();
    query(&readers, q);
}

fn query(readers: &[(FuncId, bool)], q: &mut Query) {
    match &mut q.body {
        QueryBody::Block(b) => block(readers, b),
        QueryBody::Set { left, right, .. } => {
            query(readers, left);
            query(readers, right);
        }
        QueryBody::Recursive(r) => r.queries_mut().for_each(|q| query(readers, q)),
        QueryBody::Rows(_) | QueryBody::Working(_) => {}
    }
}

fn block(readers: &[(FuncId, bool)], b: &mut Block) {
    for table in &mut b.tables {
        if let Source::Derived(q) = &mut table.source {
            query(readers, q);
        }
    }
    for sub in b.subqueries.iter_mut().filter(|s| s.decorrelated.is_none()) {
        query(readers, &mut sub.query);
    }
    let mut uses: BTreeMap<ColumnAt, ColumnUses> = BTreeMap::new();
    for (slot, table) in b.tables.iter().enumerate() {
        let Source::Table(def) = &table.source else {
            continue;
        };
        for (column, _) in (table.used.iter().enumerate()).filter(|(_, used)| **used) {
            if def.columns[column].ty.is_json() {
                let (table, column) = (slot as u16, column as u16);
                uses.insert(ColumnAt { table, column }, ColumnUses::default());
            }
        }
    }
    if uses.is_empty() {
        return;
    }
    walk::each_of_nested(b, 0, &mut |e, level| {
        if let ExprKind::Outer { level: l, at } = &e.kind
            && *l == level
        {
            uses.remove(at);
        }
    });
    for sub in &b.subqueries {
        forget_named(sub, &mut uses);
    }
    walk::each_of_clauses(b, 0, &mut |e, _| count_uses(readers, e, &mut uses));
    for (at, found) in uses {
        if found.all > 0 && found.all == found.by_paths {
            let documents = &mut b.tables[usize::from(at.table)].documents;
            documents.push(DocumentPaths {
                column: usize::from(at.column),
                paths: found.paths,
            });
        }
    }
}

/// How the clauses of a block use a column.
#[derive(Default)]
struct ColumnUses {
    all: usize,
    /// As a document in which constant paths are followed.
    by_paths: usize,
    paths: Vec<Expr>,
}

/// Forgets the columns that the keys and conditions of a decorrelated subquery name.
fn forget_named(sub: &Subquery, uses: &mut BTreeMap<ColumnAt, ColumnUses>) {
    let Some(decorrelated) = &sub.decorrelated else {
        return;
    };
    let keys = decorrelated.keys.iter().map(|key| &key.outer);
    for e in keys.chain(&decorrelated.outer_conditions) {
        e.any(&mut |e| {
            if let Some(at) = e.as_column() {
                uses.remove(&at);
            }
            false
        });
    }
}

/// Called for each node of the block's expressions, a call before its arguments.
fn count_uses(readers: &[(FuncId, bool)], e: &Expr, uses: &mut BTreeMap<ColumnAt, ColumnUses>) {
    if let ExprKind::Column(at) = &e.kind {
        if let Some(found) = uses.get_mut(at) {
            found.all += 1;
        }
        return;
    }
    let ExprKind::Call { func, args } = &e.kind else {
        return;
    };
    let Some((_, all_paths)) = readers.iter().find(|(reader, _)| reader == func) else {
        return;
    };
    let (Some(document), Some(paths)) = (args.first(), args.get(1..)) else {
        return;
    };
    let paths = match all_paths {
        true => paths,
        false => &paths[..paths.len().min(1)],
    };
    let constant = |e: &Expr| matches!(e.kind, ExprKind::Const(_) | ExprKind::Param(_));
    if let Some(found) = document.as_column().and_then(|at| uses.get_mut(&at))
        && paths.iter().all(constant)
    {
        found.by_paths += 1;
        for path in paths {
            if !found.paths.contains(path) {
                found.paths.push(path.clone());
            }
        }
    }
}
