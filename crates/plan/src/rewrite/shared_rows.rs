//! Derived tables, views and common table expressions whose rows are computed once for a statement
//! and then shared: those that are equal, and those inside a query that runs many times.
//!
//! ```text
//! WITH q AS (SELECT k, SUM(x) AS s FROM a GROUP BY k) SELECT * FROM q q1 JOIN q q2 ON ..
//!     q1 and q2 read the same rows
//! SELECT (SELECT MAX(s) FROM (SELECT k, SUM(x) AS s FROM a GROUP BY k) q WHERE q.s < b.x) FROM b
//!     q is computed once, not for each row of b
//! ```
//!
//! # Invariants
//! - R1: a shared query names no column of an enclosing query.
//! - R2: queries with the same number are equal. If their rows may differ between two runs
//!   (`RAND()`), they are references to one common table expression, which MySQL computes once.
//! - R3: the rows of INSERT ... VALUES share nothing: each reads the table as the rows before it
//!   have left it.

use super::push_down::{is_steady, move_columns};
use crate::logical::context::PlanCx;
use crate::logical::expr::ExprKind;
use crate::logical::query::{Block, Query, QueryBody, Source, Subquery, Table};
use crate::logical::statement::{InsertRows, Statement};
use crate::logical::walk;

/// A query that may be shared.
struct Candidate {
    query: Query,
    /// The common table expression that it defines, if its rows may differ between two runs.
    definition: Option<usize>,
    /// How often its rows are read. A query that runs many times counts twice.
    reads: usize,
}

/// Forgets which common table expression a reference names, where no other one names it.
pub(super) fn forget_single_references(statement: &mut Statement) {
    let mut named = Vec::new();
    each_of_statement(statement, &mut |table, _| {
        named.extend(table.common);
        true
    });
    let is_single = |of: &mut usize| named.iter().filter(|n| **n == *of).count() == 1;
    each_of_statement(statement, &mut |table, _| {
        table.common.take_if(is_single);
        true
    });
}

/// Takes conditions out of references to common table expressions that another part of the
/// statement computes without them: all read its rows.
pub(super) fn undo_push_down(query: &mut Query) {
    let mut whole: Vec<(usize, Query)> = Vec::new();
    each_derived(query, false, &mut |table, _| {
        if let (Source::Derived(q), Some(definition), None) =
            (&mut table.source, table.common, &table.unpushed)
            && !whole.iter().any(|(known, _)| *known == definition)
            && is_shareable(q)
        {
            whole.push((definition, (**q).clone()));
        }
        true
    });
    if !whole.is_empty() {
        undo_in_query(query, &whole);
    }
}

fn undo_in_query(query: &mut Query, whole: &[(usize, Query)]) {
    match &mut query.body {
        QueryBody::Block(b) => undo_in_block(b, whole),
        QueryBody::Set { left, right, .. } => {
            undo_in_query(left, whole);
            undo_in_query(right, whole);
        }
        QueryBody::Recursive(r) => r.queries_mut().for_each(|q| undo_in_query(q, whole)),
        QueryBody::Rows(_) | QueryBody::Working(_) => {}
    }
}

fn undo_in_block(block: &mut Block, whole: &[(usize, Query)]) {
    for t in 0..block.tables.len() {
        let table = &mut block.tables[t];
        let Source::Derived(source) = &mut table.source else {
            continue;
        };
        let of_whole = |query: &Query| {
            let known =
                |(definition, q): &(usize, Query)| Some(*definition) == table.common && q == query;
            whole.iter().any(known)
        };
        let Some(unpushed) = table.unpushed.take_if(|before| of_whole(&before.query)) else {
            undo_in_query(source, whole);
            continue;
        };
        **source = unpushed.query;
        let mut conditions = unpushed.conditions;
        for c in &mut conditions {
            move_columns(c, t);
            c.any(&mut |e| {
                let column = e.as_column().map(|at| usize::from(at.column));
                if let Some(used) = column.and_then(|column| table.used.get_mut(column)) {
                    *used = true;
                }
                false
            });
        }
        match block
            .outer_joins
            .iter_mut()
            .find(|join| join.inner >> t & 1 == 1)
        {
            Some(join) => join.on.append(&mut conditions),
            None => block.conditions.append(&mut conditions),
        }
    }
    // A decorrelated form has conditions of its own.
    let nested = block.subqueries.iter_mut();
    for sub in nested.filter(|sub| sub.decorrelated.is_none()) {
        undo_in_query(&mut sub.query, whole);
    }
}

/// Numbers the derived tables of a statement whose rows are shared.
pub(super) fn share(cx: &PlanCx<'_>, statement: &mut Statement) {
    let mut first = 0;
    if let Statement::Insert(insert) = statement {
        // Each row of VALUES reads the rows that were inserted before it (R3).
        for sub in &mut insert.subqueries {
            let sub = std::slice::from_mut(sub);
            share_in(cx, &mut first, &mut |f| each_of_subqueries(sub, false, f));
        }
        if let InsertRows::Query(q) = &mut insert.source {
            share_in(cx, &mut first, &mut |f| each_derived(q, false, f));
        }
        return;
    }
    share_in(cx, &mut first, &mut |f| each_of_statement(statement, f));
}

/// Numbers the derived tables of one part of a statement. `each` visits them. `first` is the first
/// free number, and is raised by those that are taken.
fn share_in(cx: &PlanCx<'_>, first: &mut u32, each: &mut dyn FnMut(&mut Visit<'_>)) {
    let mut reads = 0;
    each(&mut |_, repeated| {
        reads += 1 + usize::from(repeated);
        true
    });
    if reads < 2 {
        return;
    }
    let mut known: Vec<Candidate> = Vec::new();
    let from = *first;
    each(&mut |table, repeated| {
        let Source::Derived(q) = &mut table.source else {
            return false;
        };
        let varies = !is_steady(cx, q);
        let worthwhile = match varies {
            true => table.common.is_some(),
            false => is_computed(q),
        };
        if table.lateral != 0 || !worthwhile || !is_shareable(q) {
            return true;
        }
        let definition = table.common.filter(|_| varies);
        let is_equal = |known: &Candidate| known.definition == definition && known.query == **q;
        let equal = known.iter().position(is_equal);
        let number = equal.unwrap_or_else(|| {
            known.push(Candidate {
                query: (**q).clone(),
                definition,
                reads: 0,
            });
            known.len() - 1
        });
        known[number].reads += 1 + usize::from(repeated);
        table.shared = Some(from + number as u32);
        equal.is_none()
    });
    each(&mut |table, _| {
        let read_once = |n: &mut u32| known[(*n - from) as usize].reads < 2;
        table.shared.take_if(read_once);
        true
    });
    *first += known.len() as u32;
}

/// A visitor of a derived table. Its second argument tells whether the query around it runs many
/// times. Returns whether the derived tables inside it are visited, too.
type Visit<'f> = dyn FnMut(&mut Table, bool) -> bool + 'f;

fn each_of_statement(statement: &mut Statement, f: &mut Visit<'_>) {
    match statement {
        Statement::Query(q) => each_derived(q, false, f),
        Statement::Insert(insert) => {
            if let InsertRows::Query(q) = &mut insert.source {
                each_derived(q, false, f);
            }
            each_of_subqueries(&mut insert.subqueries, true, f);
        }
        Statement::Update(update) => each_of_block(&mut update.source, false, f),
        Statement::Delete(delete) => each_of_block(&mut delete.source, false, f),
        Statement::UpdateTables(update) => each_of_block(&mut update.source, false, f),
        Statement::DeleteTables(delete) => each_of_block(&mut delete.source, false, f),
        Statement::Do(_, list) => each_of_subqueries(list, false, f),
    }
}

fn each_derived(query: &mut Query, repeated: bool, f: &mut Visit<'_>) {
    match &mut query.body {
        QueryBody::Block(b) => each_of_block(b, repeated, f),
        QueryBody::Set { left, right, .. } => {
            each_derived(left, repeated, f);
            each_derived(right, repeated, f);
        }
        QueryBody::Recursive(r) => {
            each_derived(&mut r.seed, repeated, f);
            r.steps.iter_mut().for_each(|q| each_derived(q, true, f));
        }
        QueryBody::Rows(_) | QueryBody::Working(_) => {}
    }
}

fn each_of_block(block: &mut Block, repeated: bool, f: &mut Visit<'_>) {
    for table in &mut block.tables {
        let is_derived = matches!(table.source, Source::Derived(_));
        let repeated = repeated || table.lateral != 0;
        if is_derived
            && f(table, repeated)
            && let Source::Derived(q) = &mut table.source
        {
            each_derived(q, repeated, f);
        }
    }
    each_of_subqueries(&mut block.subqueries, repeated, f);
}

fn each_of_subqueries(list: &mut [Subquery], repeated: bool, f: &mut Visit<'_>) {
    for sub in list {
        each_derived(&mut sub.query, repeated || sub.correlated, f);
    }
}

/// Whether storing the rows of a query may cost less than computing them again.
fn is_computed(query: &Query) -> bool {
    !matches!(query.body, QueryBody::Rows(_)) && !query.has_one_row()
}

/// Whether the rows of a query are the same for each row of the enclosing queries.
fn is_shareable(query: &mut Query) -> bool {
    let mut closed = true;
    walk::each_expr(query, 1, &mut |e, level| {
        closed &= !matches!(e.kind, ExprKind::Outer { level: l, .. } if l >= level);
    });
    closed && is_complete(query, false)
}

/// Whether a query locks no rows, and reads the rows of no recursion around it. `recursive`: it is
/// part of a recursion that is shared as a whole.
fn is_complete(query: &Query, recursive: bool) -> bool {
    let complete = |b: &Block| {
        let derived = b.tables.iter().filter_map(|table| match &table.source {
            Source::Derived(q) => Some(&**q),
            _ => None,
        });
        let nested = b.subqueries.iter().map(|sub| &*sub.query);
        !b.lock.is_some() && derived.chain(nested).all(|q| is_complete(q, recursive))
    };
    match &query.body {
        QueryBody::Block(b) => complete(b),
        QueryBody::Set { left, right, .. } => {
            is_complete(left, recursive) && is_complete(right, recursive)
        }
        QueryBody::Recursive(r) => {
            is_complete(&r.seed, recursive) && r.steps.iter().all(|q| is_complete(q, true))
        }
        QueryBody::Rows(_) => true,
        QueryBody::Working(_) => recursive,
    }
}
