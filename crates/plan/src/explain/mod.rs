//! EXPLAIN: checks its options, and makes the rows of FORMAT=TRADITIONAL with MySQL's columns and
//! texts. The executor makes the other formats, because they show the values of literals.

mod table_access;

use nfold_sql::ast::{ExplainFormat, ExplainOptions, SetOp};
use nfold_types::collation::CollationId;
use nfold_types::sql_type::ColumnFlags;
use nfold_types::{ColumnType, ErrorCode, SqlError, TextSize, TypeKind};

use crate::logical::context::PlanCx;
use crate::logical::expr::{Expr, ExprKind};
use crate::physical::{
    AccessKind, Block, ColumnMeta, ExplainOutput, ExplainPlan, ExplainProbe, InsertSource,
    JoinStep, JoinType, Plan, QueryBody, QueryPlan, RowLocking, TableSlot, TableSource, WindowPass,
};

pub use table_access::{TableAccess, table_access};

type Row = Vec<Option<String>>;

const COLUMNS: [&str; 12] = [
    "id",
    "select_type",
    "table",
    "partitions",
    "type",
    "possible_keys",
    "key",
    "key_len",
    "ref",
    "rows",
    "filtered",
    "Extra",
];

/// The output of EXPLAIN with these options.
///
/// # Errors
/// 1049 for an unknown database of FOR SCHEMA; 1235 for ANALYZE with FORMAT=TRADITIONAL; 6412 for
/// ANALYZE with version 1 of FORMAT=JSON.
pub(crate) fn output(cx: &PlanCx<'_>, options: &ExplainOptions) -> Result<ExplainOutput, SqlError> {
    let (default, json) = cx.explain_format;
    // Without FORMAT, ANALYZE ignores a default of TRADITIONAL.
    let default = match default {
        ExplainFormat::Traditional if options.analyze => ExplainFormat::Tree,
        default => default,
    };
    let format = ExplainOutput::of(options.format.unwrap_or(default), json);
    match format {
        ExplainOutput::Rows if options.analyze => {
            let what = "EXPLAIN ANALYZE with TRADITIONAL format";
            return Err(SqlError::not_supported(what));
        }
        ExplainOutput::TablesJson if options.analyze => {
            let code = ErrorCode::ER_EXPLAIN_ANALYZE_JSON_FORMAT_VERSION_NOT_SUPPORTED;
            return Err(SqlError::new(code, &[]));
        }
        _ => {}
    }
    if let Some(name) = &options.schema
        && cx.snapshot.database(name.as_str()).is_none()
    {
        return Err(SqlError::new(ErrorCode::ER_BAD_DB_ERROR, &[&name.as_str()]));
    }
    Ok(format)
}

/// EXPLAIN of a plan.
pub(crate) fn explain(format: ExplainOutput, analyze: bool, plan: Plan) -> ExplainPlan {
    ExplainPlan {
        format,
        analyze,
        columns: match format {
            ExplainOutput::Rows => columns(),
            _ => vec![text_column()],
        },
        rows: match format {
            ExplainOutput::Rows => table_rows(&plan),
            _ => Vec::new(),
        },
        probes: probes(&plan),
        changed: plan.changed_tables(),
        plan,
    }
}

/// The rows of FORMAT=TRADITIONAL.
fn table_rows(plan: &Plan) -> Vec<Row> {
    let mut e = Explainer {
        rows: Vec::new(),
        next_id: 1,
        shared: Vec::new(),
    };
    match plan {
        Plan::Query(q) => e.query(q, "PRIMARY", true),
        Plan::Update(u) => e.block(&u.source, 1, "UPDATE"),
        Plan::Delete(d) => e.block(&d.source, 1, "DELETE"),
        Plan::UpdateTables(u) => e.block(&u.source, 1, "UPDATE"),
        Plan::DeleteTables(d) => e.block(&d.source, 1, "DELETE"),
        Plan::Insert(i) => {
            let verb = if i.replace { "REPLACE" } else { "INSERT" };
            e.rows.push(row(1, verb, Some(&i.table.name), "ALL", None));
            if let InsertSource::Query(q) = &i.source {
                e.next_id = 1;
                e.query(q, "SIMPLE", true);
            }
        }
        Plan::Do(..) | Plan::Explain(_) => {
            e.rows
                .push(row(1, "SIMPLE", None, "", Some("No tables used")))
        }
    }
    e.rows
}

/// The [`ExplainProbe`]s of a plan that is a single query block; other plans have none.
fn probes(plan: &Plan) -> Vec<ExplainProbe> {
    let Plan::Query(q) = plan else {
        return Vec::new();
    };
    let QueryBody::Block(b) = &q.body else {
        return Vec::new();
    };
    let plain = |t: &TableSlot| matches!(t.source, TableSource::Table(_));
    if !b.subqueries.is_empty() || b.tables.is_empty() || !b.tables.iter().all(plain) {
        return Vec::new();
    }
    let probe = |joins: Vec<JoinStep>, why: &'static str| ExplainProbe {
        query: probe_query(b, joins),
        why,
    };
    let mut out = Vec::new();
    if !b.constant_filter.is_empty() {
        out.push(probe(Vec::new(), "Impossible WHERE"));
    }
    if !b.constant_having.is_empty() {
        let decided = Block {
            constant_filter: b.constant_having.clone(),
            ..(**b).clone()
        };
        out.push(ExplainProbe {
            query: probe_query(&decided, Vec::new()),
            why: "Impossible HAVING",
        });
    }
    let constants: Vec<JoinStep> = b
        .joins
        .iter()
        .take_while(|step| b.is_const_table(step))
        .cloned()
        .collect();
    if !constants.is_empty() {
        let mut bare = constants.clone();
        for step in &mut bare {
            step.filter.clear();
            if let AccessKind::Hash { filter, .. } = &mut step.access.kind {
                filter.clear();
            }
        }
        out.push(probe(bare, "no matching row in const table"));
        out.push(probe(
            constants,
            "Impossible WHERE noticed after reading const tables",
        ));
    }
    out
}

/// A query that returns one row for each row of the join of `joins`, the first steps of `b`.
///
/// The executor needs one step for each slot. So the tables of the other steps are removed, and the
/// remaining slots are renumbered.
fn probe_query(b: &Block, mut joins: Vec<JoinStep>) -> QueryPlan {
    let one = Expr::int(1);
    let types = vec![one.ty.clone()];
    let kept: Vec<usize> = joins.iter().map(|step| step.table).collect();
    for (slot, step) in joins.iter_mut().enumerate() {
        step.table = slot;
    }
    let mut block = Block {
        joins,
        tables: kept.iter().map(|&table| b.tables[table].clone()).collect(),
        group: None,
        having: Vec::new(),
        windows: Vec::new(),
        select: vec![one],
        distinct: false,
        order: Vec::new(),
        ordered: false,
        lock: RowLocking::NONE,
        constant_having: Vec::new(),
        changed: 0,
        calc_found_rows: false,
        warnings: Vec::new(),
        ..b.clone()
    };
    block.each_step_expr_mut(&mut |e| renumber(e, &kept));
    QueryPlan {
        body: QueryBody::Block(Box::new(block)),
        columns: Vec::new(),
        types,
        order: Vec::new(),
        limit: None,
        empty_columns: None,
    }
}

fn renumber(e: &mut Expr, kept: &[usize]) {
    if let ExprKind::Column(at) = &mut e.kind
        && let Some(slot) = kept.iter().position(|&t| t == usize::from(at.table))
    {
        at.table = slot as u16;
    }
    e.each_child_mut(&mut |child| renumber(child, kept));
}

/// The column of the formats that return a text, described as MySQL does.
fn text_column() -> ColumnMeta {
    let ty = ColumnType::string(TypeKind::VarChar(78), CollationId::UTF8MB4_0900_AI_CI);
    let mut column = ColumnMeta::without_table("EXPLAIN", ty);
    column.flags |= ColumnFlags::NOT_NULL;
    column
}

fn columns() -> Vec<ColumnMeta> {
    COLUMNS
        .iter()
        .map(|name| {
            let ty = match *name {
                "id" | "rows" => ColumnType::bigint().with_unsigned(),
                "filtered" => ColumnType {
                    decimals: 2,
                    ..ColumnType::double()
                },
                "partitions" => ColumnType::string(
                    TypeKind::Text(TextSize::Medium),
                    CollationId::UTF8MB4_0900_AI_CI,
                ),
                _ => ColumnType::string(TypeKind::VarChar(255), CollationId::UTF8MB4_0900_AI_CI),
            };
            ColumnMeta::without_table(name, ty)
        })
        .collect()
}

fn row(id: u32, select_type: &str, table: Option<&str>, kind: &str, extra: Option<&str>) -> Row {
    let mut row: Row = vec![None; COLUMNS.len()];
    row[0] = Some(id.to_string());
    row[1] = Some(select_type.to_string());
    row[2] = table.map(str::to_string);
    row[4] = (!kind.is_empty()).then(|| kind.to_string());
    row[11] = extra.map(str::to_string);
    row
}

struct Explainer {
    rows: Vec<Row>,
    next_id: u32,
    /// The numbers of the shared queries whose rows are there.
    shared: Vec<u32>,
}

/// The row for the result of a set operation, before its number is known.
struct SetResult {
    place: usize,
    id: u32,
    op: SetOp,
    operands: Vec<Operand>,
    sorted: bool,
}

/// An operand of a set operation: a query block by its number, or another result by its index.
#[derive(Clone, Copy)]
enum Operand {
    Block(u32),
    Result(usize),
}

fn set_name(op: SetOp) -> &'static str {
    match op {
        SetOp::Union => "UNION",
        SetOp::Intersect => "INTERSECT",
        SetOp::Except => "EXCEPT",
    }
}

impl Explainer {
    /// Adds the rows of the operands of a set operation. If the result is `kept` in a temporary
    /// table, adds its row to `results` as well.
    fn set(&mut self, q: &QueryPlan, role: &str, kept: bool, results: &mut Vec<SetResult>) {
        let QueryBody::Set { op, .. } = &q.body else {
            return;
        };
        let mut operands = Vec::new();
        for (n, part) in q.chain().enumerate() {
            if matches!(part.body, QueryBody::Set { .. }) {
                self.set(part, if n == 0 { role } else { "PRIMARY" }, true, results);
                operands.push(Operand::Result(results.len() - 1));
            } else {
                operands.push(Operand::Block(self.next_id));
                self.query(part, if n == 0 { role } else { set_name(*op) }, false);
            }
        }
        if kept {
            results.push(SetResult {
                place: self.rows.len(),
                id: 0,
                op: *op,
                operands,
                sorted: !q.order.is_empty(),
            });
            self.rows.push(Row::new());
        }
    }

    /// Fills in the row of a result once its number is known.
    fn result(&mut self, results: &[SetResult], n: usize) {
        let result = &results[n];
        let ids = result.operands.iter().map(|operand| match operand {
            Operand::Block(id) => id.to_string(),
            Operand::Result(n) => results[*n].id.to_string(),
        });
        let name = set_name(result.op);
        let ids = ids.collect::<Vec<_>>().join(",");
        let extra = match result.sorted {
            true => "Using temporary; Using filesort",
            false => "Using temporary",
        };
        self.rows[result.place] = row(
            result.id,
            &format!("{name} RESULT"),
            Some(&format!("<{}{ids}>", name.to_lowercase())),
            "ALL",
            Some(extra),
        );
    }

    fn query(&mut self, q: &QueryPlan, role: &str, top: bool) {
        match &q.body {
            QueryBody::Block(b) => {
                let id = self.next_id;
                let nested = !b.subqueries.is_empty()
                    || b.tables
                        .iter()
                        .any(|t| matches!(t.source, TableSource::Derived(_)));
                let role = if top && !nested && role == "PRIMARY" {
                    "SIMPLE"
                } else {
                    role
                };
                self.next_id += 1;
                self.block(b, id, role);
            }
            QueryBody::Set { op, distinct, .. } => {
                let role = if role == "SIMPLE" { "PRIMARY" } else { role };
                let mut results = Vec::new();
                let kept = *op != SetOp::Union || *distinct || !q.order.is_empty();
                self.set(q, role, kept, &mut results);
                // Results are numbered after all operands.
                for result in &mut results {
                    result.id = self.next_id;
                    self.next_id += 1;
                }
                for n in 0..results.len() {
                    self.result(&results, n);
                }
            }
            QueryBody::Recursive(r) => {
                self.query(&r.seed, role, false);
                for step in &r.steps {
                    self.query(step, "UNION", false);
                }
            }
            QueryBody::Rows(_) | QueryBody::Working(_) => {
                self.rows
                    .push(row(self.next_id, role, None, "", Some("No tables used")));
                self.next_id += 1;
            }
        }
    }

    fn block(&mut self, b: &Block, id: u32, role: &str) {
        self.next_id = self.next_id.max(id + 1);
        if b.joins.is_empty() {
            self.rows
                .push(row(id, role, None, "", Some("No tables used")));
        }
        let one_row = b.group.as_ref().is_some_and(|g| g.first_row_only);
        if one_row {
            self.rows.push(row(
                id,
                role,
                None,
                "",
                Some("Select tables optimized away"),
            ));
        }
        let derived = |t: &TableSlot| matches!(t.source, TableSource::Derived(_));
        let read = match b.subqueries.is_empty() && !b.tables.iter().any(derived) {
            true => "SIMPLE",
            false => "PRIMARY",
        };
        for (n, step) in b.joins.iter().enumerate().filter(|_| !one_row) {
            let role = match b.changed == 0 || b.changes(step.table) {
                true => role,
                false => read,
            };
            self.step(b, step, id, role, n);
        }
        for slot in &b.tables {
            if let TableSource::Derived(q) = &slot.source {
                if slot.shared.is_some_and(|n| self.shared.contains(&n)) {
                    continue;
                }
                self.shared.extend(slot.shared);
                let role = match slot.lateral {
                    0 => "DERIVED",
                    _ => "DEPENDENT DERIVED",
                };
                self.query(q, role, false);
            }
        }
        for sub in &b.subqueries {
            let role = if sub.correlated {
                "DEPENDENT SUBQUERY"
            } else {
                "SUBQUERY"
            };
            self.query(&sub.plan, role, false);
        }
    }

    fn step(&mut self, b: &Block, step: &JoinStep, id: u32, role: &str, n: usize) {
        let slot = &b.tables[step.table];
        let (access, hash, tested): (_, _, &[Expr]) = match &step.access.kind {
            AccessKind::Hash {
                build,
                keys,
                filter,
                ..
            } => (&**build, Some(!keys.is_empty()), filter),
            _ => (&step.access, None, &[]),
        };
        let name = match &slot.source {
            TableSource::Derived(_) => format!("<derived{}>", self.next_id),
            _ => slot.alias.to_string(),
        };
        let mut out = row(id, role, Some(&name), "", None);
        let mut extra: Vec<String> = Vec::new();
        let filtered_here = !step.filter.is_empty() || !step.on.is_empty() || !tested.is_empty();
        match &slot.source {
            TableSource::Table(_) => {
                let read = table_access(b, step.table, access);
                show(read, &mut out, &mut extra, filtered_here);
            }
            source => {
                out[4] = Some("ALL".into());
                if matches!(source, TableSource::Json(_)) {
                    extra.push("Table function: json_table".into());
                    extra.push("Using temporary".into());
                }
                if filtered_here {
                    extra.push("Using where".into());
                }
            }
        }
        out[9] = Some(format!("{}", step.rows.round().max(1.0) as u64));
        let whole = out[4].as_deref() == Some("const");
        out[10] = Some(format!("{:.2}", if whole { 100.0 } else { step.filtered }));
        if n == 0 {
            // ROLLUP sorts its input. Its output goes to a temporary table only if DISTINCT, ORDER
            // BY or a window function follows.
            let rolled_up = b.group.as_ref().filter(|g| g.rollup);
            let kept = match rolled_up {
                Some(_) => b.keeps_rows(),
                None => b.group.as_ref().is_some_and(|g| !g.implicit && !g.ordered),
            };
            if kept || (b.distinct && b.group.is_none() && b.windows.is_empty()) {
                extra.push("Using temporary".into());
            }
            let sorts = |p: &WindowPass| !p.partition.is_empty() || !p.order.is_empty();
            let sorted = !b.order.is_empty() || b.windows.iter().any(sorts);
            if sorted || rolled_up.is_some_and(|g| !g.ordered) {
                extra.push("Using filesort".into());
            }
        }
        if hash.is_some() && !whole {
            extra.push("Using join buffer (hash join)".into());
        }
        let is_null = |f: &Expr| matches!(&f.kind, ExprKind::Is { negated: false, .. });
        match step.kind {
            JoinType::Left if step.filter.iter().any(is_null) => extra.push("Not exists".into()),
            JoinType::Anti => extra.push("Not exists".into()),
            JoinType::Semi => {
                let before = n.checked_sub(1).and_then(|n| b.joins.get(n));
                let before = before.map(|step| &b.tables[step.table].alias);
                extra.extend(before.map(|alias| format!("FirstMatch({alias})")));
            }
            JoinType::Inner | JoinType::Left => {}
        }
        if access.reverse && b.ordered {
            extra.push("Backward index scan".into());
        }
        if b.run_by(step.table).next().is_some() {
            extra.push(format!("Rematerialize (<derived{}>)", self.next_id));
        }
        out[11] = (!extra.is_empty()).then(|| extra.join("; "));
        self.rows.push(out);
    }
}

/// Fills in the columns of FORMAT=TRADITIONAL. `filtered`: conditions are tested on the rows.
fn show(read: TableAccess, out: &mut Row, extra: &mut Vec<String>, filtered: bool) {
    let list = |list: Vec<String>| (!list.is_empty()).then(|| list.join(","));
    out[4] = Some(read.kind.to_string());
    out[5] = list(read.possible_keys);
    if read.key.is_some() {
        out[7] = Some(read.key_length.to_string());
    }
    out[6] = read.key;
    out[8] = list(read.refs);
    if let Some(merge) = read.merge {
        (out[6], out[7]) = (Some(merge.keys), Some(merge.key_lengths));
        extra.push(format!("Using {}", merge.combined));
    }
    // A range over a secondary index is tested on the index entries, which MySQL calls an index
    // condition.
    if read.index_condition {
        extra.push("Using index condition".into());
    }
    if read.kind == "const" {
        return;
    }
    if filtered || (read.kind == "range" && !read.index_condition && read.skip.is_none()) {
        extra.push("Using where".into());
    }
    if let Some(skip) = read.skip {
        extra.push(skip.into());
    } else if read.covering {
        extra.push("Using index".into());
    }
}
