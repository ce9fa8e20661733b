//! The operators of queries and blocks, in MySQL's words. Where Nfold does something that MySQL
//! does not, the operator says so after MySQL's words.

use std::cell::RefCell;

use nfold_plan::expr::{Expr, ExprKind, is_constant};
use nfold_plan::query::{
    Access, AccessKind, Block, GroupPlan, HASH_BUILD_COST, LOOKUP_COST, LOOKUP_ROW_COST, LimitPlan,
    QueryBody, QueryPlan, Recursion, SCAN_ROW_COST, SubqueryPlan, WindowFunc, WindowPass,
    sort_cost,
};
use nfold_sql::ast::SetOp;

use super::json::Json;
use super::names::{SelectNumbers, Texts, short_name};
use super::node::{Estimate, Measured, Node, readable};
use crate::expr::eval::{Scope, StmtState};
use crate::runtime::profile::{Counts, Profile, Stage};

/// The number of rows of a sort up to which LIMIT bounds its memory.
const TOP_ROWS_MAX: u64 = 1 << 20;

/// The inputs from which the operators of a plan are built.
pub(super) struct Builder<'p> {
    pub state: &'p StmtState<'p>,
    pub numbers: &'p SelectNumbers,
    /// The measurements of EXPLAIN ANALYZE.
    pub profile: Option<&'p Profile>,
    /// The numbers of the shared queries that have been built.
    pub shared: RefCell<Vec<u32>>,
}

/// A block whose operators are being built.
pub(super) struct BlockCx<'b> {
    pub builder: &'b Builder<'b>,
    pub block: &'b Block,
    pub texts: Texts<'b>,
    /// For each subquery, whether an operator has it as an input.
    shown: RefCell<Vec<bool>>,
}

/// The values of LIMIT.
#[derive(Clone, Copy)]
struct Limit {
    offset: u64,
    count: u64,
}

impl Builder<'_> {
    /// The mean of an operator's measurements, with EXPLAIN ANALYZE.
    pub fn measured<T>(&self, of: &T, stage: Stage) -> Option<Measured> {
        let counts = self.profile?.of(of, stage).unwrap_or_default();
        Some(mean(counts))
    }

    /// The estimated cost of reading `rows` rows by an access path.
    pub fn read_cost(&self, access: &Access, rows: f64) -> f64 {
        let by_row = match &access.kind {
            AccessKind::Merge(merge) => {
                let branches = merge.branches.iter();
                let keys = branches
                    .map(|b| LOOKUP_COST + b.rows * SCAN_ROW_COST)
                    .sum::<f64>();
                return keys + rows * LOOKUP_ROW_COST;
            }
            _ if access.index == 0 || access.covering => SCAN_ROW_COST,
            _ => LOOKUP_ROW_COST,
        };
        LOOKUP_COST + rows * by_row
    }

    /// The operators of a query inside the queries whose rows are `outer`.
    pub fn query(&self, q: &QueryPlan, outer: &[Scope<'_>]) -> Node {
        match &q.body {
            QueryBody::Block(b) => self.block(b, q.limit.as_ref(), outer),
            QueryBody::Set {
                op: SetOp::Union,
                distinct,
                ..
            } => {
                let inputs: Vec<Node> = q.chain().map(|q| self.query(q, outer)).collect();
                self.set(q, SetOp::Union, *distinct, inputs)
            }
            QueryBody::Set {
                op,
                distinct,
                left,
                right,
                ..
            } => {
                let inputs = vec![self.query(left, outer), self.query(right, outer)];
                self.set(q, *op, *distinct, inputs)
            }
            QueryBody::Rows(rows) => {
                let node = fetched(rows.len() as f64);
                self.ordered_result(q, node.measured(self.measured(q, Stage::Result)))
            }
            QueryBody::Recursive(r) => self.recursion(r, outer),
            QueryBody::Working(_) => Node::new("Scan new records"),
        }
    }

    fn set(&self, q: &QueryPlan, op: SetOp, distinct: bool, inputs: Vec<Node>) -> Node {
        let cost: f64 = inputs.iter().map(Node::cost).sum();
        let rows: f64 = match op {
            SetOp::Union => inputs.iter().map(Node::rows).sum(),
            _ => inputs.first().map_or(1.0, Node::rows),
        };
        let measured = self.measured(q, Stage::Result);
        if op == SetOp::Union && !distinct && q.order.is_empty() {
            let mut node = Node::new("Append").kind("append").estimated(cost, rows);
            node.inputs = inputs;
            return self.ordered_result(q, node.measured(measured));
        }
        let (name, word) = match op {
            SetOp::Union => ("union", "Union"),
            SetOp::Intersect => ("intersect", "Intersect"),
            SetOp::Except => ("except", "Except"),
        };
        let how = match distinct {
            true => format!("{word} materialize with deduplication"),
            false => format!("{word} all materialize"),
        };
        let written = cost + rows * HASH_BUILD_COST;
        let mut store = Node::new(how)
            .kind("materialize")
            .field(name, Json::Bool(true))
            .materialized(written, written, rows);
        if distinct {
            store = store.field("deduplication", Json::Bool(true));
        }
        store.inputs = inputs;
        let name = format!("<{name} temporary>");
        let scan = Node::over(format!("Table scan on {name}"), store.measured(measured))
            .kind("table")
            .field("table_name", Json::text(name))
            .materialized(written, written, rows);
        self.ordered_result(q, scan.measured(measured))
    }

    /// ORDER BY and LIMIT of a set operation.
    fn ordered_result(&self, q: &QueryPlan, mut node: Node) -> Node {
        let measured = self.measured(q, Stage::Result);
        let limit = q.limit.as_ref().map(|l| self.limit(l));
        if !q.order.is_empty() {
            let name = |n: usize| short_name(&q.columns[n].name);
            let key = |k: &nfold_plan::query::ResultOrder| {
                let desc = if k.desc { " DESC" } else { "" };
                format!("{}{desc}", name(k.column))
            };
            let keys: Vec<String> = q.order.iter().map(key).collect();
            node = sort(node, &keys, limit).measured(measured);
        }
        match limit {
            Some(limit) => limited(node, limit, false).measured(measured),
            None => node,
        }
    }

    fn recursion(&self, r: &Recursion, outer: &[Scope<'_>]) -> Node {
        let seed = self.query(&r.seed, outer);
        let steps = r.steps.iter().map(|q| self.query(q, outer));
        let mut repeat = Node::new("Repeat until convergence").kind("repeat_until_convergence");
        repeat.inputs = steps.collect();
        let cost = seed.cost() + repeat.inputs.iter().map(Node::cost).sum::<f64>();
        let rows = seed.rows() + repeat.inputs.iter().map(Node::rows).sum::<f64>();
        let mut node = Node::new("Materialize recursive CTE")
            .kind("materialize")
            .materialized(cost, cost, rows);
        node.inputs = vec![seed, repeat];
        node
    }

    /// The operators of a block.
    pub fn block(&self, b: &Block, limit: Option<&LimitPlan>, outer: &[Scope<'_>]) -> Node {
        let cx = BlockCx {
            builder: self,
            block: b,
            texts: Texts {
                state: self.state,
                numbers: self.numbers,
                outer,
            },
            shown: RefCell::new(vec![false; b.subqueries.len()]),
        };
        cx.build(limit.map(|l| self.limit(l)))
    }

    fn limit(&self, plan: &LimitPlan) -> Limit {
        let texts = Texts {
            state: self.state,
            numbers: self.numbers,
            outer: &[],
        };
        let number = |e: &Expr| texts.expr(e, Scope::None).parse().unwrap_or(0);
        Limit {
            offset: plan.offset.as_ref().map_or(0, number),
            count: number(&plan.count),
        }
    }
}

fn mean(counts: Counts) -> Measured {
    let each = counts.loops.max(1) as f64;
    Measured {
        loops: counts.loops,
        rows: counts.rows as f64 / each,
        first_ms: counts.first.as_secs_f64() * 1e3 / each,
        last_ms: counts.last.as_secs_f64() * 1e3 / each,
    }
}

/// Rows that are known without reading a table.
fn fetched(rows: f64) -> Node {
    Node::new("Rows fetched before execution")
        .kind("rows_fetched_before_execution")
        .materialized(0.0, 0.0, rows)
}

/// No rows.
pub(super) fn zero_rows(why: &str) -> Node {
    Node::new(format!("Zero rows ({why})"))
        .kind("zero_rows")
        .field("zero_rows_cause", Json::text(why))
        .materialized(0.0, 0.0, 0.0)
}

fn sort(input: Node, keys: &[String], limit: Option<Limit>) -> Node {
    let top = limit.map(|l| l.offset.saturating_add(l.count));
    let top = top.filter(|&top| top < TOP_ROWS_MAX);
    let chunk = top.map_or_else(String::new, |top| {
        format!(", limit input to {top} row(s) per chunk")
    });
    let (cost, rows) = (input.cost() + sort_cost(input.rows()), input.rows());
    let rows = top.map_or(rows, |top| rows.min(top as f64));
    let mut node = Node::over(format!("Sort: {}{chunk}", keys.join(", ")), input)
        .kind("sort")
        .field("sort_fields", Json::texts(keys))
        .estimated(cost, rows);
    if let Some(top) = top {
        node = node.field("per_chunk_limit", Json::Integer(top));
    }
    node
}

fn limited(input: Node, limit: Limit, counts_all: bool) -> Node {
    let Limit { offset, count } = limit;
    let early = match counts_all {
        true => " (no early end due to SQL_CALC_FOUND_ROWS)",
        false => "",
    };
    let operation = match offset {
        0 => format!("Limit: {count} row(s){early}"),
        _ => format!("Limit/Offset: {count}/{offset} row(s){early}"),
    };
    let left = (input.rows() - offset as f64).max(0.0);
    let rows = left.min(count as f64);
    // A plan without a sort or a temporary table ends early.
    let streams = !input.operation.starts_with("Sort");
    let estimate = input.estimate.map(|e| match e.startup {
        None if streams && left > rows => Estimate {
            cost: e.cost * (rows + offset as f64) / e.rows,
            ..e
        },
        _ => e,
    });
    let mut node = Node::over(operation, input)
        .kind("limit")
        .field("limit", Json::Integer(count))
        .field("limit_offset", Json::Integer(offset));
    node.estimate = estimate.map(|e| Estimate { rows, ..e });
    node
}

impl BlockCx<'_> {
    fn build(&self, limit: Option<Limit>) -> Node {
        let b = self.block;
        if limit.is_some_and(|l| l.count == 0) && !b.calc_found_rows {
            return zero_rows("Zero limit");
        }
        let mut node = match b.joins.is_empty() {
            true => fetched(1.0).measured(self.measured(Stage::Rows)),
            false => self.joins(),
        };
        let outer: Vec<&Expr> = b
            .constant_filter
            .iter()
            .filter(|e| !is_constant(e))
            .collect();
        node = self.filter(node, &outer, 100.0, Scope::Tables(b));
        if let Some(group) = &b.group {
            node = self.group(node, group);
        }
        let rows = match b.group.is_some() {
            true => Scope::Groups(b),
            false => Scope::Tables(b),
        };
        let having: Vec<&Expr> = b.having.iter().collect();
        if !having.is_empty() {
            node = self.filter(node, &having, 10.0, rows);
            node.measured = self.measured(Stage::Rows);
        }
        for (n, pass) in b.windows.iter().enumerate() {
            node = self.window(node, n, pass, rows);
        }
        if b.distinct {
            node = self.deduplicate(node);
        }
        if !b.order.is_empty() {
            let key = |k| self.texts.order(std::slice::from_ref(k), rows);
            let keys: Vec<String> = b.order.iter().map(key).collect();
            node = sort(node, &keys, limit.filter(|_| !b.calc_found_rows));
            node.measured = self.measured(Stage::Result);
        }
        if let Some(limit) = limit {
            node = limited(node, limit, b.calc_found_rows);
            node.measured = self.measured(Stage::Result);
        }
        node.of_select_list = self.remaining_subqueries();
        node
    }

    pub fn measured(&self, stage: Stage) -> Option<Measured> {
        self.builder.measured(self.block, stage)
    }

    /// A filter above `input`, with the subqueries in its conditions. `percentage`: the share of
    /// the input's rows that pass, estimated.
    pub fn filter(
        &self,
        input: Node,
        conditions: &[&Expr],
        percentage: f64,
        scope: Scope<'_>,
    ) -> Node {
        if conditions.is_empty() {
            return input;
        }
        let text = self.texts.all_of(conditions, scope);
        let (cost, rows) = (input.cost(), input.rows() * percentage / 100.0);
        let mut node = Node::over(format!("Filter: {text}"), input)
            .kind("filter")
            .field("condition", Json::text(text))
            .estimated(cost, rows);
        for condition in conditions {
            node.inputs.extend(self.subqueries_of(condition));
        }
        node
    }

    /// The subqueries in a condition, as inputs of its operator.
    fn subqueries_of(&self, e: &Expr) -> Vec<Node> {
        let mut found = Vec::new();
        e.any(&mut |e| {
            if let ExprKind::Subquery { index, .. } = e.kind {
                found.push(usize::from(index));
            }
            false
        });
        let subqueries = found.into_iter();
        subqueries
            .filter_map(|n| self.subquery_of_condition(n))
            .collect()
    }

    /// Subquery `n`, unless it is already the input of an operator.
    pub fn subquery_of_condition(&self, n: usize) -> Option<Node> {
        let shown = std::mem::replace(&mut self.shown.borrow_mut()[n], true);
        (!shown).then(|| self.subquery(n, "condition"))
    }

    /// The subqueries that are no operator's input.
    fn remaining_subqueries(&self) -> Vec<Node> {
        let shown = self.shown.take();
        let rest = (0..shown.len()).filter(|&n| !shown[n]);
        rest.map(|n| self.subquery(n, "projection")).collect()
    }

    fn subquery(&self, n: usize, place: &'static str) -> Node {
        let sub = &self.block.subqueries[n];
        let number = self.builder.numbers.get(&sub.plan);
        let how = match sub.correlated {
            true => "dependent",
            false => "run only once",
        };
        let scope = match self.block.group.is_some() && place == "projection" {
            true => Scope::Groups(self.block),
            false => Scope::Tables(self.block),
        };
        let outer: Vec<Scope<'_>> = self.texts.outer.iter().copied().chain([scope]).collect();
        let mut node = self.builder.query(&sub.plan, &outer);
        if let Some(decorrelated) = self.decorrelated(sub, &outer) {
            node.inputs.push(decorrelated);
        }
        node.heading = Some(format!("Select #{number} (subquery in {place}; {how})"));
        node.field("subquery", Json::Bool(true))
            .field("dependent", Json::Bool(sub.correlated))
            .field("cacheable", Json::Bool(!sub.correlated))
            .field("subquery_location", Json::text(place))
    }

    /// The decorrelated form of a subquery, which replaces its runs once these have cost as much.
    fn decorrelated(&self, sub: &SubqueryPlan, outer: &[Scope<'_>]) -> Option<Node> {
        let plan = sub.decorrelated.as_deref()?;
        let keys: Vec<Expr> = plan.keys.iter().map(|k| k.outer.clone()).collect();
        let keys = self.texts.exprs(&keys, Scope::Tables(self.block));
        let input = self.builder.query(&plan.plan, outer);
        let (cost, rows) = (input.cost() + input.rows() * HASH_BUILD_COST, input.rows());
        let distinct = !plan.grouped && plan.tests.is_empty();
        let what = match (distinct, plan.tests.is_empty(), plan.keys.is_empty()) {
            (true, ..) => format!("Materialize with deduplication for lookups by {keys}"),
            (_, true, _) => format!("Materialize for lookups by {keys}"),
            (_, _, true) => "Materialize for tests".to_owned(),
            _ => format!("Materialize for tests after lookups by {keys}"),
        };
        let after = readable(plan.rows);
        let operation = format!("{what} (once runs have read {after} row(s))");
        let node = Node::over(operation, input)
            .kind("materialize")
            .field("deduplication", Json::Bool(distinct))
            .materialized(cost, cost, rows);
        let measured = self.builder.measured(&*plan.plan, Stage::Result);
        Some(node.measured(measured))
    }

    fn group(&self, input: Node, group: &GroupPlan) -> Node {
        let b = self.block;
        let calls = self.texts.aggregates(&group.aggregates, b);
        let list = calls.join(", ");
        let (cost, joined) = (input.cost(), input.rows());
        let rows = match group.implicit {
            true => 1.0,
            false => joined.powf(0.8).max(1.0),
        };
        let stage = match b.having.is_empty() {
            true => Stage::Rows,
            false => Stage::Groups,
        };
        let measured = self.measured(stage);
        let functions = Json::texts(calls);
        if group.first_row_only {
            let first = limited(
                input,
                Limit {
                    offset: 0,
                    count: 1,
                },
                false,
            );
            let first = first.measured(self.measured(Stage::Join(0)));
            let node = Node::over(format!("Aggregate: {list}"), first).kind("aggregate");
            let node = node.field("functions", functions);
            return node.estimated(0.0, 1.0).measured(measured);
        }
        let of = |words: &str| match list.is_empty() {
            true => format!("{words} (no aggregates)"),
            false => format!("{words}: {list}"),
        };
        let words = match (group.implicit, group.rollup) {
            (true, _) => "Aggregate",
            (false, true) => "Group aggregate with rollup",
            (false, false) if list.is_empty() => "Group",
            (false, false) => "Group aggregate",
        };
        if group.implicit || group.ordered || group.rollup {
            let input = match group.ordered || group.implicit {
                true => input,
                false => {
                    let key = |e: &Expr| self.texts.expr(e, Scope::Tables(b));
                    let keys: Vec<String> = group.keys.iter().map(key).collect();
                    sort(input, &keys, None)
                }
            };
            let cost = input.cost() + joined * HASH_BUILD_COST * 0.25;
            let node = Node::over(of(words), input).kind("aggregate");
            let node = node.field("functions", functions);
            let node = match group.implicit {
                true => node,
                false => node.field("group_by", Json::Bool(true)),
            };
            return node.estimated(cost, rows).measured(measured);
        }
        let cost = cost + joined * HASH_BUILD_COST;
        let store = match group.aggregates.is_empty() {
            true => Node::over("Temporary table with deduplication", input)
                .kind("materialize")
                .field("deduplication", Json::Bool(true)),
            false => Node::over("Aggregate using temporary table", input)
                .kind("temp_table_aggregate")
                .field("functions", functions),
        };
        let store = store.materialized(cost, cost, rows).measured(measured);
        Node::over("Table scan on <temporary>", store)
            .kind("table")
            .field("table_name", Json::text("<temporary>"))
            .materialized(cost, cost, rows)
            .measured(measured)
    }

    fn window(&self, input: Node, n: usize, pass: &WindowPass, rows: Scope<'_>) -> Node {
        let b = self.block;
        let calls: Vec<String> = (0..pass.calls.len())
            .map(|call| self.texts.window_call(b, n, call, rows))
            .collect();
        let by_partition = pass.partition.iter().map(|e| self.texts.expr(e, rows));
        let by_order = pass.order.iter();
        let by_order = by_order.map(|k| self.texts.order(std::slice::from_ref(k), rows));
        let keys: Vec<String> = by_partition.chain(by_order).collect();
        let input = match keys.is_empty() {
            true => input,
            false => sort(input, &keys, None),
        };
        let ranks = |f: WindowFunc| {
            matches!(
                f,
                WindowFunc::RowNumber | WindowFunc::Rank | WindowFunc::DenseRank
            )
        };
        let buffers = !pass.calls.iter().all(|c| ranks(c.func));
        let words = match buffers {
            true => "Window aggregate with buffering",
            false => "Window aggregate",
        };
        let (cost, rows) = (input.cost() + input.rows() * HASH_BUILD_COST, input.rows());
        let node = Node::over(format!("{words}: {}", calls.join(", ")), input)
            .kind("window")
            .field("buffering", Json::Bool(buffers))
            .field("functions", Json::texts(calls))
            .estimated(cost, rows);
        match n + 1 == b.windows.len() {
            true => node.measured(self.measured(Stage::Rows)),
            false => node,
        }
    }

    fn deduplicate(&self, input: Node) -> Node {
        let rows = input.rows().powf(0.8).max(1.0);
        let cost = input.cost() + input.rows() * HASH_BUILD_COST;
        let measured = match self.block.order.is_empty() {
            true => self.measured(Stage::Result),
            false => None,
        };
        let store = Node::over("Temporary table with deduplication", input)
            .kind("materialize")
            .field("deduplication", Json::Bool(true))
            .materialized(cost, cost, rows)
            .measured(measured);
        Node::over("Table scan on <temporary>", store)
            .kind("table")
            .field("table_name", Json::text("<temporary>"))
            .materialized(cost, cost, rows)
            .measured(measured)
    }
}
