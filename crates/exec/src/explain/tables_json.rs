//! Version 1 of FORMAT=JSON: the tables of each block in the order of the joins, inside the
//! operations on their rows.

use nfold_plan::explain::table_access;
use nfold_plan::expr::{Expr, ExprKind};
use nfold_plan::query::{
    AccessKind, Block, InsertPlan, InsertSource, JoinStep, Plan, QueryBody, QueryPlan,
    SubqueryPlan, TableSource, WindowPass,
};
use nfold_sql::ast::SetOp;

use super::json::Json;
use super::names::Texts;
use super::tree::Builder;
use crate::expr::eval::Scope;

type Members = Vec<(&'static str, Json)>;

/// The document of a statement. `empty`: why it has no rows, if that is known.
pub(super) fn document(builder: &Builder<'_>, plan: &Plan, empty: Option<&str>) -> String {
    let block = match (plan, empty) {
        (_, Some(why)) => message(1, why),
        (Plan::Query(q), _) => query_block(builder, q, &[]),
        (Plan::Insert(p), _) => insert(builder, p),
        (Plan::Update(p), _) => changes(builder, &p.source, "update"),
        (Plan::UpdateTables(p), _) => changes(builder, &p.source, "update"),
        (Plan::Delete(p), _) => changes(builder, &p.source, "delete"),
        (Plan::DeleteTables(p), _) => changes(builder, &p.source, "delete"),
        (Plan::Do(..) | Plan::Explain(_), _) => message(1, "No tables used"),
    };
    Json::Object(vec![("query_block", Json::Object(block))]).print()
}

fn message(id: u32, text: &str) -> Members {
    vec![
        ("select_id", Json::Integer(id.into())),
        ("message", Json::text(text)),
    ]
}

fn insert(builder: &Builder<'_>, p: &InsertPlan) -> Members {
    let verb = if p.replace { "replace" } else { "insert" };
    let mut members = vec![
        ("select_id", Json::Integer(1)),
        (
            "table",
            Json::Object(vec![
                (verb, Json::Bool(true)),
                ("table_name", Json::text(&*p.table.name)),
                ("access_type", Json::text("ALL")),
            ]),
        ),
    ];
    if let InsertSource::Query(q) = &p.source {
        let from = match &q.body {
            QueryBody::Block(b) => {
                let cx = BlockJson::new(builder, b, &[], "");
                cx.rows(q)
            }
            _ => query_block(builder, q, &[]),
        };
        members.push(("insert_from", Json::Object(from)));
    }
    members
}

fn changes(builder: &Builder<'_>, b: &Block, verb: &'static str) -> Members {
    let cx = BlockJson::new(builder, b, &[], verb);
    let mut members = vec![("select_id", Json::Integer(1))];
    members.extend(cx.joins());
    members
}

fn number(n: f64) -> Json {
    Json::Integer(n.round().max(0.0) as u64)
}

fn cost(n: f64) -> Json {
    Json::Text(format!("{n:.2}"))
}

/// The members of a `query_block` for a query.
fn query_block(builder: &Builder<'_>, q: &QueryPlan, outer: &[Scope<'_>]) -> Members {
    let id = builder.numbers.get(q);
    match &q.body {
        QueryBody::Block(b) if b.joins.is_empty() => message(id, "No tables used"),
        QueryBody::Block(b) => {
            let cx = BlockJson::new(builder, b, outer, "");
            let whole = builder.block(b, q.limit.as_ref(), outer);
            let mut members = vec![
                ("select_id", Json::Integer(id.into())),
                (
                    "cost_info",
                    Json::Object(vec![("query_cost", cost(whole.cost()))]),
                ),
            ];
            members.extend(cx.rows(q));
            members
        }
        QueryBody::Set { op, distinct, .. } => {
            let stored = *op != SetOp::Union || *distinct || !q.order.is_empty();
            let operands: Vec<&QueryPlan> = q.chain().collect();
            let (name, member) = match op {
                SetOp::Union => ("union", "union_result"),
                SetOp::Intersect => ("intersect", "intersect_result"),
                SetOp::Except => ("except", "except_result"),
            };
            let mut result = vec![("using_temporary_table", Json::Bool(stored))];
            if stored {
                let ids = operands.iter().map(|q| builder.numbers.get(q).to_string());
                let ids: Vec<String> = ids.collect();
                let name = format!("<{name}{}>", ids.join(","));
                let id = builder.numbers.last() + 1;
                result.push(("select_id", Json::Integer(id.into())));
                result.push(("table_name", Json::text(name)));
                result.push(("access_type", Json::text("ALL")));
                if !q.order.is_empty() {
                    result.push(("using_filesort", Json::Bool(true)));
                }
            }
            let list = operands
                .iter()
                .map(|q| specification(builder, q, outer, false));
            result.push(("query_specifications", Json::List(list.collect())));
            vec![(member, Json::Object(result))]
        }
        QueryBody::Recursive(r) => {
            let list = r.queries().map(|q| specification(builder, q, outer, false));
            let result = vec![
                ("using_temporary_table", Json::Bool(false)),
                ("query_specifications", Json::List(list.collect())),
            ];
            vec![("union_result", Json::Object(result))]
        }
        QueryBody::Rows(_) | QueryBody::Working(_) => message(id, "No tables used"),
    }
}

/// A query inside another one.
fn specification(
    builder: &Builder<'_>,
    q: &QueryPlan,
    outer: &[Scope<'_>],
    dependent: bool,
) -> Json {
    Json::Object(vec![
        ("dependent", Json::Bool(dependent)),
        ("cacheable", Json::Bool(!dependent)),
        ("query_block", Json::Object(query_block(builder, q, outer))),
    ])
}

/// A block whose JSON is being made.
struct BlockJson<'b> {
    builder: &'b Builder<'b>,
    block: &'b Block,
    texts: Texts<'b>,
    /// `update` or `delete`, of the tables that the statement changes.
    verb: &'static str,
}

impl<'b> BlockJson<'b> {
    fn new(
        builder: &'b Builder<'b>,
        block: &'b Block,
        outer: &'b [Scope<'b>],
        verb: &'static str,
    ) -> BlockJson<'b> {
        BlockJson {
            builder,
            block,
            texts: Texts {
                state: builder.state,
                numbers: builder.numbers,
                outer,
            },
            verb,
        }
    }

    /// The joined tables inside the operations on their rows.
    fn rows(&self, q: &QueryPlan) -> Members {
        let b = self.block;
        let mut members = self.joins();
        if let Some(group) = &b.group
            && (!group.implicit || !b.having.is_empty())
        {
            let temporary = !group.implicit && !group.ordered && !group.rollup;
            let sorts = !group.implicit && !group.ordered && group.rollup;
            let mut operation = flags(temporary, sorts);
            operation.append(&mut members);
            let having = self.subqueries(|e| b.having.iter().any(|h| has(h, e)));
            if !having.is_empty() {
                operation.push(("having_subqueries", Json::List(having)));
            }
            members = vec![("grouping_operation", Json::Object(operation))];
        }
        if !b.windows.is_empty() {
            let windows = b.windows.iter().map(window);
            let mut operation = vec![("windows", Json::List(windows.collect()))];
            operation.append(&mut members);
            members = vec![("windowing", Json::Object(operation))];
        }
        if b.distinct {
            let mut operation = flags(true, false);
            operation.append(&mut members);
            members = vec![("duplicates_removal", Json::Object(operation))];
        }
        let ordered = b.ordered && q.limit.is_some();
        if !b.order.is_empty() || ordered {
            let mut operation = flags(false, !b.order.is_empty());
            operation.append(&mut members);
            members = vec![("ordering_operation", Json::Object(operation))];
        }
        let rest = self.subqueries(|n| {
            let in_steps = b.joins.iter().any(|step| {
                let conditions = step.filter.iter().chain(&step.on);
                conditions.chain(&b.constant_filter).any(|e| has(e, n))
            });
            !in_steps && !b.having.iter().any(|h| has(h, n))
        });
        if !rest.is_empty() {
            members.push(("select_list_subqueries", Json::List(rest)));
        }
        members
    }

    /// The tables: `table` for one, otherwise `nested_loop`.
    fn joins(&self) -> Members {
        let b = self.block;
        if b.group.as_ref().is_some_and(|g| g.first_row_only) {
            return vec![("message", Json::text("Select tables optimized away"))];
        }
        let mut produced = 1.0;
        let mut tables: Vec<Json> = Vec::new();
        for step in &b.joins {
            produced *= step.rows * step.filtered / 100.0;
            tables.push(Json::Object(self.table(step, produced)));
        }
        match <[Json; 1]>::try_from(tables) {
            Ok([one]) => vec![("table", one)],
            Err(tables) => {
                let table = |t| Json::Object(vec![("table", t)]);
                let tables = tables.into_iter().map(table).collect();
                vec![("nested_loop", Json::List(tables))]
            }
        }
    }

    fn table(&self, step: &JoinStep, produced: f64) -> Members {
        let b = self.block;
        let slot = &b.tables[step.table];
        let (access, hashed, built): (_, _, &[Expr]) = match &step.access.kind {
            AccessKind::Hash { build, filter, .. } => (&**build, true, filter),
            _ => (&step.access, false, &[]),
        };
        let mut table = Members::new();
        if !self.verb.is_empty() && b.changes(step.table) {
            table.push((self.verb, Json::Bool(true)));
        }
        table.push(("table_name", Json::text(&*slot.alias)));
        let read = table_access(b, step.table, access);
        let kind = if read.kind.is_empty() {
            "ALL"
        } else {
            read.kind
        };
        table.push(("access_type", Json::text(kind)));
        if !read.possible_keys.is_empty() {
            table.push(("possible_keys", Json::texts(read.possible_keys)));
        }
        if let Some(key) = read.key {
            table.push(("key", Json::text(key)));
            table.push(("used_key_parts", Json::texts(read.key_parts)));
            table.push(("key_length", Json::text(read.key_length.to_string())));
        }
        if let Some(merge) = read.merge {
            table.push(("key", Json::text(merge.combined)));
            table.push(("key_length", Json::text(merge.key_lengths)));
        }
        if !read.refs.is_empty() {
            table.push(("ref", Json::texts(read.refs)));
        }
        table.push(("rows_examined_per_scan", number(step.rows.max(1.0))));
        table.push(("rows_produced_per_join", number(produced)));
        let filtered = if kind == "const" {
            100.0
        } else {
            step.filtered
        };
        table.push(("filtered", cost(filtered)));
        if access.reverse && b.ordered {
            table.push(("backward_index_scan", Json::Bool(true)));
        }
        if read.index_condition {
            let text = self.conditions(&access.implied.iter().collect::<Vec<_>>());
            table.push(("index_condition", Json::text(text)));
        }
        if read.covering {
            table.push(("using_index", Json::Bool(true)));
        }
        if hashed {
            table.push(("using_join_buffer", Json::text("hash join")));
        }
        let read_cost = self.builder.read_cost(access, step.rows);
        table.push((
            "cost_info",
            Json::Object(vec![
                ("read_cost", cost(read_cost)),
                ("prefix_cost", cost(read_cost)),
            ]),
        ));
        self.contents(step, &mut table);
        let conditions: Vec<&Expr> = built.iter().chain(&step.on).chain(&step.filter).collect();
        if !conditions.is_empty() {
            let text = self.conditions(&conditions);
            table.push(("attached_condition", Json::text(text)));
        }
        let attached = self.subqueries(|n| conditions.iter().any(|e| has(e, n)));
        if !attached.is_empty() {
            table.push(("attached_subqueries", Json::List(attached)));
        }
        table
    }

    /// The columns that are read, and the query of a derived table.
    fn contents(&self, step: &JoinStep, table: &mut Members) {
        let slot = &self.block.tables[step.table];
        let used = |names: Vec<&str>| {
            let used = names.into_iter().zip(&slot.used);
            Json::texts(used.filter(|(_, used)| **used).map(|(name, _)| name))
        };
        match &slot.source {
            TableSource::Table(def) | TableSource::Virtual(def) => {
                let names = def.columns.iter().map(|c| &*c.name).collect();
                table.push(("used_columns", used(names)));
            }
            TableSource::Derived(q) => {
                let names = q.columns.iter().map(|c| &*c.name).collect();
                table.push(("used_columns", used(names)));
                if !matches!(q.body, QueryBody::Working(_)) {
                    let mut query = flags(true, false);
                    query.retain(|(name, _)| *name == "using_temporary_table");
                    if let Json::Object(members) =
                        specification(self.builder, q, self.texts.outer, false)
                    {
                        query.extend(members);
                    }
                    table.push(("materialized_from_subquery", Json::Object(query)));
                }
            }
            TableSource::Json(t) => {
                let names = t.shape.columns.iter().map(|c| &*c.name).collect();
                table.push(("table_function", Json::text("json_table")));
                table.push(("using_temporary_table", Json::Bool(true)));
                table.push(("used_columns", used(names)));
            }
        }
    }

    fn conditions(&self, list: &[&Expr]) -> String {
        self.texts.full(list, Scope::Tables(self.block))
    }

    /// The subqueries of the block that `which` selects.
    fn subqueries(&self, which: impl Fn(usize) -> bool) -> Vec<Json> {
        let scope = match self.block.group.is_some() {
            true => Scope::Groups(self.block),
            false => Scope::Tables(self.block),
        };
        let outer: Vec<Scope<'_>> = self.texts.outer.iter().copied().chain([scope]).collect();
        let list = self.block.subqueries.iter().enumerate();
        let list = list.filter(|(n, _)| which(*n));
        let json = |(_, sub): (usize, &SubqueryPlan)| {
            specification(self.builder, &sub.plan, &outer, sub.correlated)
        };
        list.map(json).collect()
    }
}

/// Whether an expression contains subquery `n` of its block.
fn has(e: &Expr, n: usize) -> bool {
    e.any(&mut |e| matches!(e.kind, ExprKind::Subquery { index, .. } if usize::from(index) == n))
}

fn flags(temporary: bool, sorts: bool) -> Members {
    let mut flags = Members::new();
    if temporary {
        flags.push(("using_temporary_table", Json::Bool(true)));
    }
    flags.push(("using_filesort", Json::Bool(sorts)));
    flags
}

fn window(pass: &WindowPass) -> Json {
    let name = pass.calls.first().map_or("", |call| &call.window);
    let sorts = !pass.partition.is_empty() || !pass.order.is_empty();
    Json::Object(vec![
        ("name", Json::text(name)),
        ("using_temporary_table", Json::Bool(true)),
        ("using_filesort", Json::Bool(sorts)),
        (
            "functions",
            Json::texts(pass.calls.iter().map(|call| call.func.name())),
        ),
    ])
}
