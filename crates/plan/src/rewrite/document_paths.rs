//! JSON columns of which a statement needs only the values that constant paths lead to, or parts of
//! these, or only the names of the members, or the type and the number of elements: every use of
//! the column is the document of a function in [`READERS`], a test for NULL, or the document of a
//! JSON_TABLE. The executor reads such parts in place, where a long document is stored.
//!
//! The tables of a decorrelated subquery are left alone.

use std::collections::BTreeMap;

use nfold_json::ValueNeed::{self, Head, Names, Whole};
use nfold_json::{Leg, Path};
use nfold_sql::ast::IsTest;

use crate::logical::context::PlanCx;
use crate::logical::expr::{ColumnAt, Expr, ExprKind, FuncId};
use crate::logical::json_table::{JsonRows, JsonTable};
use crate::logical::query::{Block, DocumentPaths, Query, QueryBody, Source, Subquery};
use crate::logical::walk;

/// A function whose first argument is a document.
struct Reader {
    name: &'static str,
    /// The first of the arguments that are paths, and the last one.
    paths: (usize, usize),
    /// The part of the paths' values that it needs.
    at: ValueNeed,
    /// The part of the document that a call without paths needs; `None`: whether it is NULL.
    without: Option<ValueNeed>,
}

const READERS: [Reader; 9] = [
    reader("json_extract", (1, usize::MAX), Whole, Some(Whole)),
    reader("json_value", (1, 1), Whole, Some(Whole)),
    reader("json_contains", (2, 2), Whole, Some(Whole)),
    reader("json_contains_path", (2, usize::MAX), Head, Some(Whole)),
    reader("json_search", (4, usize::MAX), Whole, Some(Whole)),
    reader("json_length", (1, 1), Head, Some(Head)),
    reader("json_keys", (1, 1), Names, Some(Names)),
    reader("json_type", (1, 1), Whole, Some(Head)),
    reader("json_valid", (1, 1), Whole, None),
];

const fn reader(
    name: &'static str,
    paths: (usize, usize),
    at: ValueNeed,
    without: Option<ValueNeed>,
) -> Reader {
    Reader {
        name,
        paths,
        at,
        without,
    }
}

type Readers = Vec<(FuncId, &'static Reader)>;

/// Marks the columns in all blocks of a query.
pub(super) fn mark_documents(cx: &PlanCx<'_>, q: &mut Query) {
    let known = READERS.iter().filter_map(|reader| {
        let (func, _) = cx.funcs.find(reader.name)?;
        Some((func, reader))
    });
    let readers: Readers = known.collect();
    query(&readers, q);
}

fn query(readers: &Readers, q: &mut Query) {
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

fn block(readers: &Readers, b: &mut Block) {
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
    let mut count = |e: &mut Expr, level| count_uses((readers, level), e, &mut uses);
    let nested = b
        .tables
        .iter_mut()
        .filter_map(|table| match &mut table.source {
            Source::Derived(q) if table.lateral != 0 => Some(q),
            _ => None,
        });
    for q in nested.chain(b.subqueries.iter_mut().map(|sub| &mut sub.query)) {
        walk::each_expr(q, 1, &mut count);
    }
    walk::each_of_clauses(b, 0, &mut count);
    for sub in &b.subqueries {
        count_decorrelated(readers, sub, &mut uses);
    }
    for table in &b.tables {
        if let Source::Json(json) = &table.source {
            count_rows(json, &mut uses);
        }
    }
    for (at, found) in uses {
        if found.all > 0 && found.all == found.in_part {
            let documents = &mut b.tables[usize::from(at.table)].documents;
            documents.push(DocumentPaths {
                column: usize::from(at.column),
                paths: found.paths,
                row_paths: found.row_paths,
                own: found.own,
            });
        }
    }
}

/// How a block uses a column.
#[derive(Default)]
struct ColumnUses {
    all: usize,
    /// The uses that need a part of the document.
    in_part: usize,
    paths: Vec<(Expr, ValueNeed)>,
    row_paths: Vec<Path>,
    own: Option<ValueNeed>,
}

/// Counts the uses in the keys and conditions of a decorrelated subquery.
fn count_decorrelated(
    readers: &Readers,
    sub: &Subquery,
    uses: &mut BTreeMap<ColumnAt, ColumnUses>,
) {
    let Some(decorrelated) = &sub.decorrelated else {
        return;
    };
    let keys = decorrelated.keys.iter().map(|key| &key.outer);
    for e in keys.chain(&decorrelated.outer_conditions) {
        e.any(&mut |e| {
            count_uses((readers, 0), e, uses);
            false
        });
    }
}

/// The column of the marked block, as seen from an expression `level` queries inside it.
fn column_of(e: &Expr, level: u16) -> Option<ColumnAt> {
    match &e.kind {
        ExprKind::Column(at) if level == 0 => Some(*at),
        ExprKind::Outer { level: l, at } if level > 0 && *l == level => Some(*at),
        _ => None,
    }
}

/// Called for each expression node, with the level of the block as seen from there.
fn count_uses(
    (readers, level): (&Readers, u16),
    e: &Expr,
    uses: &mut BTreeMap<ColumnAt, ColumnUses>,
) {
    match &e.kind {
        ExprKind::Call { func, args } => {
            let reader = readers.iter().find(|(known, _)| known == func);
            if let (Some((_, reader)), Some((document, rest))) = (reader, args.split_first())
                && let Some(found) = column_of(document, level).and_then(|at| uses.get_mut(&at))
            {
                count_call(reader, rest, found);
            }
        }
        ExprKind::Is {
            expr,
            test: IsTest::Null,
            ..
        } => {
            if let Some(found) = column_of(expr, level).and_then(|at| uses.get_mut(&at)) {
                found.in_part += 1;
            }
        }
        _ => {
            if let Some(found) = column_of(e, level).and_then(|at| uses.get_mut(&at)) {
                found.all += 1;
            }
        }
    }
}

/// Counts a call with the column as its document. `rest` are the other arguments.
fn count_call(reader: &Reader, rest: &[Expr], found: &mut ColumnUses) {
    let (first, last) = reader.paths;
    let paths = rest.get(first - 1..rest.len().min(last)).unwrap_or(&[]);
    let constant = |e: &Expr| matches!(e.kind, ExprKind::Const(_) | ExprKind::Param(_));
    if !paths.is_empty() {
        if paths.iter().all(constant) {
            found.in_part += 1;
            for path in paths {
                let path = (path.clone(), reader.at);
                if !found.paths.contains(&path) {
                    found.paths.push(path);
                }
            }
        }
        return;
    }
    match (reader.without, found.own) {
        (Some(Whole), _) => return,
        (Some(need), None) => found.own = Some(need),
        (Some(need), Some(own)) if need != own => found.own = Some(Names),
        _ => {}
    }
    found.in_part += 1;
}

/// Counts a JSON_TABLE with a column as its document.
fn count_rows(json: &JsonTable, uses: &mut BTreeMap<ColumnAt, ColumnUses>) {
    if let Some(found) = json.document.as_column().and_then(|at| uses.get_mut(&at)) {
        let mut paths = Vec::new();
        add_row_paths(&json.shape.rows, &[], &mut paths);
        if paths
            .iter()
            .all(|path| matches!(path.legs.first(), Some(Leg::Member(_))))
        {
            found.in_part += 1;
            found.row_paths.append(&mut paths);
        }
    }
}

/// Appends the paths from the root of the document that the rows at `above` follow.
fn add_row_paths(rows: &JsonRows, above: &[Leg], paths: &mut Vec<Path>) {
    let at = [above, &rows.path.legs].concat();
    if rows.values.is_empty() && rows.nested.is_empty() {
        paths.push(Path { legs: at.clone() });
    }
    for value in &rows.values {
        let legs = [&at[..], &value.path.legs].concat();
        paths.push(Path { legs });
    }
    for nested in &rows.nested {
        add_row_paths(nested, &at, paths);
    }
}
