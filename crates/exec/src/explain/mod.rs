//! EXPLAIN: the operators of a plan in the words and formats of MySQL, with estimates, and with
//! measurements if the statement is EXPLAIN ANALYZE.
//!
//! ```text
//!   plan ─▶ tree, joins, access ─▶ Node ─▶ FORMAT=TREE, FORMAT=JSON version 2
//!   plan ─▶ rows (made by the planner) ─▶ FORMAT=TRADITIONAL
//! ```
//! It is built when the statement runs, because only then the values of literals are known.

mod access;
mod joins;
mod json;
mod names;
mod node;
mod statement_text;
mod tables_json;
mod tree;

use std::borrow::Cow;
use std::cell::RefCell;

use nfold_plan::expr::Expr;
use nfold_plan::query::{Block, ExplainOutput, ExplainPlan, InsertSource, Plan, QueryPlan};
use nfold_types::{ErrorCode, Level, SqlError};

use crate::env::RowSink;
use crate::expr::eval::{EvalCx, NoSubqueries, StmtState};
use crate::operators::row_out::{Limits, RowOut, values_of};
use crate::operators::text_rows::write_texts;
use crate::query::block::BlockExec;
use crate::query::run_once;
use crate::runtime::Runtime;
use crate::runtime::result::StatementResult;
use json::Json;
use names::{SelectNumbers, short_name};
use node::Node;
use tree::Builder;

/// Runs EXPLAIN.
///
/// # Errors
/// The errors of the parts of the statement that it runs.
#[inline(never)]
pub(crate) fn run(
    rt: &Runtime<'_>,
    e: &ExplainPlan,
    sink: &mut dyn RowSink,
) -> Result<StatementResult, SqlError> {
    let empty = why_empty(rt, e)?;
    let rows: Cow<'_, [Vec<Option<String>>]> = match (e.format, empty) {
        (ExplainOutput::Rows, None) => Cow::Borrowed(&e.rows),
        (ExplainOutput::Rows, Some(why)) => {
            let mut row = vec![None; e.columns.len()];
            row[..2].clone_from_slice(&e.rows[0][..2]);
            row[e.columns.len() - 1] = Some(why.to_string());
            Cow::Owned(vec![row])
        }
        _ => {
            if e.analyze && empty.is_none() {
                measure(rt, &e.plan)?;
            }
            Cow::Owned(vec![vec![Some(text(rt, e, empty))]])
        }
    };
    note_statement(rt, e, empty.is_some());
    sink.columns(&e.columns)?;
    for row in rows.iter() {
        write_texts(row, &e.columns, rt.env, sink)?;
    }
    Ok(StatementResult {
        is_query: true,
        rows: rows.len() as u64,
        found_rows: rows.len() as u64,
        ..StatementResult::default()
    })
}

/// The statement that a plan runs, as SQL text: what the planner's rewrites have made of it.
pub fn plan_text(state: &StmtState<'_>, plan: &Plan) -> String {
    let plan = match plan {
        Plan::Explain(e) => &e.plan,
        plan => plan,
    };
    let numbers = SelectNumbers::of(plan);
    let builder = Builder {
        state,
        numbers: &numbers,
        profile: None,
        shared: RefCell::default(),
    };
    statement_text::statement(&builder, plan, false)
}

/// Why the statement has no rows, if a part of it that MySQL runs during planning shows that.
fn why_empty(rt: &Runtime<'_>, e: &ExplainPlan) -> Result<Option<&'static str>, SqlError> {
    for probe in &e.probes {
        let mut first = FirstRow { found: false };
        run_once(rt, &probe.query, &mut first)?;
        if !first.found {
            return Ok(Some(probe.why));
        }
    }
    Ok(None)
}

/// The text of FORMAT=TREE or FORMAT=JSON.
fn text(rt: &Runtime<'_>, e: &ExplainPlan, empty: Option<&'static str>) -> String {
    let numbers = SelectNumbers::of(&e.plan);
    let state = rt.state(&NoSubqueries);
    let builder = Builder {
        state: &state,
        numbers: &numbers,
        profile: rt.profile.as_ref(),
        shared: RefCell::default(),
    };
    let node = match empty {
        Some(why) => tree::zero_rows(why),
        None => statement(&builder, &e.plan),
    };
    match e.format {
        ExplainOutput::Tree => node.tree(),
        ExplainOutput::TablesJson => tables_json::document(&builder, &e.plan, empty),
        _ => {
            let query = statement_text::statement(&builder, &e.plan, empty.is_some());
            json::document(&node, Some(query), query_type(&e.plan))
        }
    }
}

/// The note of the formats that do not show it themselves: the statement after all rewrites.
fn note_statement(rt: &Runtime<'_>, e: &ExplainPlan, nothing: bool) {
    if !matches!(e.format, ExplainOutput::Rows | ExplainOutput::TablesJson) {
        return;
    }
    let numbers = SelectNumbers::of(&e.plan);
    let state = rt.state(&NoSubqueries);
    let builder = Builder {
        state: &state,
        numbers: &numbers,
        profile: None,
        shared: RefCell::default(),
    };
    let text = statement_text::statement(&builder, &e.plan, nothing);
    let note = SqlError::with_message(ErrorCode::ER_YES, text);
    rt.warnings.borrow_mut().push_error(Level::Note, &note);
}

fn query_type(plan: &Plan) -> &'static str {
    match plan {
        Plan::Insert(p) if p.replace => "replace",
        Plan::Insert(_) => "insert",
        Plan::Update(_) | Plan::UpdateTables(_) => "update",
        Plan::Delete(_) | Plan::DeleteTables(_) => "delete",
        Plan::Query(_) | Plan::Do(..) | Plan::Explain(_) => "select",
    }
}

/// The operators of a statement.
fn statement(builder: &Builder<'_>, plan: &Plan) -> Node {
    let changed = |verb: &str, b: &Block, slots: &[(usize, bool)]| {
        let name = |&(slot, at_once): &(usize, bool)| {
            let how = if at_once { "immediate" } else { "buffered" };
            format!("{} ({how})", short_name(&b.tables[slot].alias))
        };
        let names: Vec<String> = slots.iter().map(name).collect();
        format!("{verb} {}", names.join(", "))
    };
    match plan {
        Plan::Query(q) => builder.query(q, &[]),
        Plan::Insert(p) => {
            let verb = if p.replace { "Replace" } else { "Insert" };
            let name = short_name(&p.table.name);
            let input = match &p.source {
                InsertSource::Query(q) => builder.query(q, &[]),
                _ => {
                    Node::new("Rows fetched before execution").kind("rows_fetched_before_execution")
                }
            };
            let values = !matches!(p.source, InsertSource::Query(_));
            let columns = p.columns.iter().map(|&c| &*p.table.columns[c].name);
            let node = Node::over(format!("{verb} into {name}"), input)
                .field("table_name", Json::text(&*p.table.name))
                .field("schema_name", Json::text(&*p.table.schema))
                .field("used_columns", Json::texts(columns));
            match values {
                true => node.kind(if p.replace {
                    "replace_values"
                } else {
                    "insert_values"
                }),
                false => node,
            }
        }
        Plan::Update(p) => {
            let input = builder.block(&p.source, p.limit.as_ref(), &[]);
            let operation = changed("Update", &p.source, &[(p.target, !p.collect)]);
            changes(operation, input, "update_rows")
        }
        Plan::Delete(p) => {
            let input = builder.block(&p.source, p.limit.as_ref(), &[]);
            let operation = changed("Delete from", &p.source, &[(p.target, !p.collect)]);
            changes(operation, input, "delete_rows")
        }
        Plan::UpdateTables(p) => {
            let slots = p.targets.iter().enumerate();
            let slots: Vec<(usize, bool)> = slots
                .map(|(n, target)| (target.slot, p.at_once == Some(n)))
                .collect();
            let input = builder.block(&p.source, None, &[]);
            changes(changed("Update", &p.source, &slots), input, "update_rows")
        }
        Plan::DeleteTables(p) => {
            let slots: Vec<(usize, bool)> = p.targets.iter().map(|t| (t.1, false)).collect();
            let input = builder.block(&p.source, None, &[]);
            changes(
                changed("Delete from", &p.source, &slots),
                input,
                "delete_rows",
            )
        }
        Plan::Do(..) | Plan::Explain(_) => Node::new("Rows fetched before execution"),
    }
}

fn changes(operation: String, input: Node, kind: &'static str) -> Node {
    Node::over(operation, input).kind(kind)
}

/// Finds out whether a query has a row.
struct FirstRow {
    found: bool,
}

impl RowOut for FirstRow {
    fn row<'a>(&mut self, _: &EvalCx<'a>, _: &'a [Expr]) -> Result<bool, SqlError> {
        self.found = true;
        Ok(false)
    }
}

/// Discards the rows of a query, after computing them.
struct Discard;

impl RowOut for Discard {
    fn row<'a>(&mut self, cx: &EvalCx<'a>, select: &'a [Expr]) -> Result<bool, SqlError> {
        values_of(cx, select)?;
        Ok(true)
    }
}

/// Runs the parts of a statement that read rows, and measures them. Nothing is changed. As in
/// MySQL, changes of one table and INSERT ... VALUES are not run.
fn measure(rt: &Runtime<'_>, plan: &Plan) -> Result<(), SqlError> {
    let query = |q: &QueryPlan| run_once(rt, q, &mut Discard);
    let block =
        |b: &Block| BlockExec::open(rt, b, Limits::NONE)?.batches(rt, b, &mut |_, _| Ok(true));
    match plan {
        Plan::Query(q) => query(q),
        Plan::Insert(p) => match &p.source {
            InsertSource::Query(q) => query(q),
            _ => Ok(()),
        },
        Plan::UpdateTables(p) => block(&p.source),
        Plan::DeleteTables(p) => block(&p.source),
        Plan::Update(_) | Plan::Delete(_) | Plan::Do(..) | Plan::Explain(_) => Ok(()),
    }
}
