//! The operators that read one table, and the texts of the ranges that they read.

use nfold_catalog::{IndexDef, TableDef};
use nfold_plan::expr::{Expr, ExprKind};
use nfold_plan::query::{
    Access, AccessKind, JoinStep, LOOKUP_COST, MergeBranch, MergeKind, PointPart, QueryBody,
    RangePart, SCAN_ROW_COST, SkipRows, SkipScan, TableSlot, TableSource,
};

use super::json::Json;
use super::names::short_name;
use super::node::Node;
use super::tree::{BlockCx, zero_rows};
use crate::expr::eval::Scope;
use crate::runtime::profile::Stage;

/// Of more ranges than this, only the first ones are printed.
const RANGES_SHOWN: usize = 3;

impl BlockCx<'_> {
    /// The operator that reads the rows of a step's table by `access`: `rows` for each execution.
    pub fn table(&self, step: &JoinStep, access: &Access, rows: f64, stage: Stage) -> Node {
        let slot = &self.block.tables[step.table];
        let node = match &slot.source {
            TableSource::Table(def) => self.base_table(def, slot, access, rows, stage),
            _ if matches!(access.kind, AccessKind::Empty) => zero_rows("Impossible WHERE"),
            TableSource::Virtual(def) => {
                let name = short_name(&slot.alias);
                Node::new(format!("Table scan on {name}"))
                    .kind("table")
                    .field("table_name", Json::text(&*slot.alias))
                    .field("schema_name", Json::text(&*def.schema))
                    .estimated(rows * SCAN_ROW_COST, rows)
            }
            TableSource::Json(_) => Node::new("Materialize table function")
                .kind("materialize_table_function")
                .field("table_name", Json::text(&*slot.alias))
                .estimated(rows * SCAN_ROW_COST, rows),
            TableSource::Derived(q) => {
                if let QueryBody::Working(_) = q.body {
                    let name = short_name(&slot.alias);
                    let node = Node::new(format!("Scan new records on {name}"));
                    node.estimated(rows * SCAN_ROW_COST, rows)
                } else {
                    self.derived(slot, q)
                }
            }
        };
        let node = node.measured(self.measured(stage));
        if self.block.run_by(step.table).next().is_none() {
            return node;
        }
        let name = short_name(&slot.alias);
        let (cost, rows) = (node.cost(), node.rows());
        let operation = format!("Invalidate materialized tables (row from {name})");
        Node::over(operation, node)
            .kind("invalidate_materialized_tables")
            .estimated(cost, rows)
    }

    fn derived(&self, slot: &TableSlot, q: &nfold_plan::query::QueryPlan) -> Node {
        let name = short_name(&slot.alias);
        if let Some(number) = slot.shared {
            return self.shared(slot, q, number);
        }
        let tables = (slot.lateral != 0).then_some(Scope::Tables(self.block));
        let outer: Vec<Scope<'_>> = self.texts.outer.iter().copied().chain(tables).collect();
        let mut input = self.builder.query(q, &outer);
        let (cost, rows) = (input.cost(), input.rows());
        let columns = q.columns.iter().map(|c| &*c.name);
        let streamed = self.block.joins.len() == 1;
        if matches!(q.body, QueryBody::Recursive(_)) {
            input.operation += &format!(" {name}");
        } else if streamed {
            input = Node::over("Stream results", input)
                .kind("stream")
                .estimated(cost, rows);
        } else {
            let written = cost + rows * SCAN_ROW_COST;
            let by = self.block.last_read(slot.lateral);
            let by = by.map_or_else(String::new, |by| {
                let by = short_name(&self.block.tables[by].alias);
                format!(" (invalidate on row from {by})")
            });
            input = Node::over(format!("Materialize{by}"), input)
                .kind("materialize")
                .materialized(written, written, rows);
        }
        let cost = input.cost();
        let node = Node::over(format!("Table scan on {name}"), input)
            .kind("table")
            .field("table_name", Json::text(&*slot.alias))
            .field("used_columns", Json::texts(columns));
        match streamed {
            true => node.estimated(cost, rows),
            false => node.materialized(cost, cost + rows * SCAN_ROW_COST, rows),
        }
    }

    /// The operator that reads the rows of a query that the statement computes once. The query is
    /// an input of the first such operator only.
    fn shared(&self, slot: &TableSlot, q: &nfold_plan::query::QueryPlan, number: u32) -> Node {
        let shown = self.builder.shared.borrow().contains(&number);
        let mut store = match shown {
            true => Node::new("Materialize if needed (query plan printed elsewhere)"),
            false => {
                self.builder.shared.borrow_mut().push(number);
                let input = self.builder.query(q, self.texts.outer);
                let written = input.cost() + input.rows() * SCAN_ROW_COST;
                let rows = input.rows();
                Node::over("Materialize if needed", input).materialized(written, written, rows)
            }
        };
        if shown {
            store = store.materialized(0.0, 0.0, q.result_rows());
        }
        let (cost, rows) = (store.cost(), store.rows());
        let name = short_name(&slot.alias);
        let columns = q.columns.iter().map(|c| &*c.name);
        Node::over(
            format!("Table scan on {name}"),
            store
                .kind("materialize")
                .field("materialize_once", Json::Bool(true)),
        )
        .kind("table")
        .field("table_name", Json::text(&*slot.alias))
        .field("used_columns", Json::texts(columns))
        .materialized(cost, cost + rows * SCAN_ROW_COST, rows)
    }

    fn base_table(
        &self,
        def: &TableDef,
        slot: &TableSlot,
        access: &Access,
        rows: f64,
        stage: Stage,
    ) -> Node {
        let index = &def.indexes[access.index];
        let name = short_name(&slot.alias);
        let key = index_name(index);
        let reverse = if access.reverse { " (reverse)" } else { "" };
        let cost = self.builder.read_cost(access, rows);
        let groups = self.block.group.as_ref();
        let in_order = self.block.ordered || groups.is_some_and(|g| g.ordered || g.first_row_only);
        let ordered = access.reverse || (stage == Stage::Read(0) && in_order);
        let of_table = Node::default()
            .field("table_name", Json::text(&*slot.alias))
            .field("schema_name", Json::text(&*def.schema))
            .field("used_columns", used_columns(def, slot));
        let on = |words: &str, covering: bool, lookup: bool| {
            let covers = match (covering, lookup) {
                (true, true) => "covering ",
                (true, false) => "Covering ",
                (false, _) => "",
            };
            capital(&format!(
                "{covers}{words} on {name} using {}",
                short_name(key)
            ))
        };
        let by_index = |node: Node, operation: String, kind: &'static str| {
            let mut node = node
                .kind("index")
                .field("covering", Json::Bool(access.covering))
                .field("index_name", Json::text(key))
                .field("index_access_type", Json::text(kind));
            node.operation = operation;
            node.estimated(cost, rows)
        };
        match &access.kind {
            AccessKind::Empty => zero_rows("Impossible WHERE"),
            AccessKind::Full if access.index == 0 && !ordered => {
                let mut node = of_table.kind("table");
                node.operation = format!("Table scan on {name}");
                node.estimated(cost, rows)
            }
            AccessKind::Full => {
                let operation = on("index scan", access.covering, false) + reverse;
                by_index(of_table, operation, "index_scan")
            }
            AccessKind::Fulltext(search) => {
                let scope = Scope::Tables(self.block);
                let against = match &search.kind {
                    ExprKind::Call { args, .. } => args.get(1),
                    _ => None,
                };
                let text = against.map_or(String::new(), |e| self.texts.expr(e, scope));
                let first = index.shown_parts().first();
                let first = first.map_or("", |p| &*def.columns[p.column].name);
                let condition = format!("{} = {text}", short_name(first));
                let words = format!("Full-text index search on {name}");
                let operation = format!("{words} using {} ({condition})", short_name(key));
                by_index(of_table, operation, "full_text_search")
                    .field("key_columns", Json::texts([first.to_string()]))
                    .field("lookup_condition", Json::text(condition))
                    .field("lookup_references", Json::texts(["const".to_string()]))
            }
            AccessKind::Skip(scan) => {
                let (words, kind) = match scan.rows {
                    SkipRows::Values(_) => ("index skip scan", "index_skip_scan"),
                    SkipRows::Ends { .. } => {
                        ("index skip scan for grouping", "group_index_skip_scan")
                    }
                };
                let operation = on(words, access.covering, false);
                let operation = match self.bounds_of_skip(def, index, scan) {
                    Some(text) => format!("{operation} over {text}"),
                    None => operation,
                };
                by_index(of_table, operation, kind)
                    .field("key_columns", key_columns(def, index, scan.parts))
            }
            AccessKind::Merge(merge) => {
                let branches = merge.branches.iter();
                let inputs = branches.map(|branch| self.merge_branch(def, slot, branch));
                let mut node = of_table.kind("rowid_ordered_merge");
                node.operation = match merge.kind {
                    MergeKind::Union => "Deduplicate rows sorted by row ID",
                    MergeKind::SortUnion => "Sort-deduplicate by row ID",
                    MergeKind::Intersection => "Intersect rows sorted by row ID",
                }
                .into();
                node.inputs = inputs.collect();
                node.estimated(cost, rows)
            }
            AccessKind::Points(parts) if parts.iter().all(is_equality) => {
                let whole = index.is_unique() && parts.len() == index.parts.len();
                let single = if whole { "single-row " } else { "" };
                let covering = if access.covering { "covering " } else { "" };
                let conditions = self.equalities(def, index, parts);
                let text = conditions.join(", ");
                let words = format!("{single}{covering}index lookup");
                let operation = format!("{} ({text}){reverse}", on(&words, false, true));
                let columns = key_columns(def, index, parts.len());
                by_index(of_table, operation, "index_lookup")
                    .field("key_columns", columns)
                    .field("lookup_condition", Json::text(text))
            }
            kind => {
                let (ranges, parts) = self.ranges(def, index, kind);
                let text = ranges_text(&ranges);
                let words = on("index range scan", access.covering, false);
                let columns = key_columns(def, index, parts);
                let mut of_table = of_table;
                of_table.inputs = self.subqueries_of_path(kind);
                by_index(
                    of_table,
                    format!("{words} over {text}{reverse}"),
                    "index_range_scan",
                )
                .field("key_columns", columns)
                .field("ranges", Json::texts([text]))
            }
        }
    }

    /// The bounds of a skip scan on the part after the skipped ones.
    fn bounds_of_skip(&self, def: &TableDef, index: &IndexDef, scan: &SkipScan) -> Option<String> {
        let column = column(def, index, scan.parts);
        match &scan.rows {
            SkipRows::Values(AccessKind::Range { range, .. }) => Some(self.bounds(&column, range)),
            SkipRows::Values(AccessKind::Points(parts)) => {
                let values = self.values(parts.first()?);
                let values = values.iter().map(|value| format!("({column} {value})"));
                Some(values.collect::<Vec<_>>().join(" OR "))
            }
            _ => None,
        }
    }

    /// One index of an index merge.
    fn merge_branch(&self, def: &TableDef, slot: &TableSlot, branch: &MergeBranch) -> Node {
        let index = &def.indexes[branch.index];
        let (name, key) = (short_name(&slot.alias), index_name(index));
        let (ranges, parts) = self.ranges(def, index, &branch.kind);
        let text = ranges_text(&ranges);
        let mut node = Node::default()
            .kind("index")
            .field("covering", Json::Bool(false))
            .field("index_name", Json::text(key))
            .field("index_access_type", Json::text("index_range_scan"))
            .field("key_columns", key_columns(def, index, parts))
            .field("ranges", Json::texts([text.clone()]));
        let key = short_name(key);
        node.operation = format!("Index range scan on {name} using {key} over {text}");
        node.estimated(LOOKUP_COST + branch.rows * SCAN_ROW_COST, branch.rows)
    }

    /// The subqueries whose values a path looks up.
    fn subqueries_of_path(&self, kind: &AccessKind) -> Vec<Node> {
        let AccessKind::Points(parts) = kind else {
            return Vec::new();
        };
        let subquery = |part: &PointPart| match part {
            PointPart::Subquery { index, .. } => self.subquery_of_condition((*index).into()),
            _ => None,
        };
        parts.iter().filter_map(subquery).collect()
    }

    /// `a = 1` for each part of a lookup.
    fn equalities(&self, def: &TableDef, index: &IndexDef, parts: &[PointPart]) -> Vec<String> {
        let part = |(n, p): (usize, &PointPart)| {
            let value = match p {
                PointPart::Eq { expr, .. } => self.texts.expr(expr, Scope::Tables(self.block)),
                _ => String::new(),
            };
            format!("{} = {value}", column(def, index, n))
        };
        parts.iter().enumerate().map(part).collect()
    }

    /// The ranges that a path reads, and the number of key parts in them. Beyond the number of
    /// ranges that is printed, texts are empty.
    fn ranges(&self, def: &TableDef, index: &IndexDef, kind: &AccessKind) -> (Vec<String>, usize) {
        match kind {
            AccessKind::Points(parts) => (self.points(def, index, parts), parts.len()),
            AccessKind::Range { prefix, range } => {
                let bounds = self.bounds(&column(def, index, prefix.len()), range);
                let mut ranges = self.points(def, index, prefix);
                if ranges.is_empty() {
                    return (vec![bounds], 1);
                }
                for text in &mut ranges {
                    *text += &format!(" AND {bounds}");
                }
                (ranges, prefix.len() + 1)
            }
            AccessKind::Ranges(list) => {
                let column = column(def, index, 0);
                (list.iter().map(|r| self.bounds(&column, r)).collect(), 1)
            }
            AccessKind::Full
            | AccessKind::Merge(_)
            | AccessKind::Skip(_)
            | AccessKind::Fulltext(_)
            | AccessKind::Source
            | AccessKind::Hash { .. }
            | AccessKind::Empty => (Vec::new(), 0),
        }
    }

    /// The combinations of the values of key parts.
    fn points(&self, def: &TableDef, index: &IndexDef, parts: &[PointPart]) -> Vec<String> {
        let mut points = vec![String::new()];
        if parts.is_empty() {
            return Vec::new();
        }
        let mut lists: Vec<(u32, usize)> = Vec::new();
        for (n, part) in parts.iter().enumerate() {
            let column = column(def, index, n);
            let values = self.values(part);
            let joined = match part {
                PointPart::List { list, .. } if lists.contains(&(*list, 0)) => true,
                PointPart::List { list, .. } => {
                    lists.push((*list, 0));
                    false
                }
                PointPart::Rows { at, .. } => *at > 0,
                _ => false,
            };
            let with = |text: &str, value: &str| match text.is_empty() {
                true => format!("{column} {value}"),
                false => format!("{text} AND {column} {value}"),
            };
            points = match joined && values.len() == points.len() {
                true => {
                    let both = points.iter().zip(&values);
                    both.map(|(text, value)| with(text, value)).collect()
                }
                false => {
                    let each = |text: &String| {
                        let texts = values.iter().map(|value| with(text, value));
                        texts.collect::<Vec<String>>()
                    };
                    points.iter().flat_map(each).collect()
                }
            };
            // The number of ranges is of interest, and the first few of them.
            points.truncate(1 << 16);
        }
        points
    }

    /// `= 1` for each value of a key part.
    fn values(&self, part: &PointPart) -> Vec<String> {
        let scope = Scope::Tables(self.block);
        let equal = |e: &Expr| format!("= {}", self.texts.expr(e, scope));
        match part {
            PointPart::Eq { expr, .. } => vec![equal(expr)],
            PointPart::Elements { value, .. } => vec![equal(value)],
            PointPart::In(list) | PointPart::AnyEq(list) => list.iter().map(equal).collect(),
            PointPart::List { list, at, .. } => {
                let rows = self.texts.list(*list, &Expr::null());
                let values = rows.iter().filter_map(|row| row.get(*at));
                values.map(|v| format!("= {v}")).collect()
            }
            PointPart::Rows { rows, at } => {
                rows.iter().filter_map(|r| r.get(*at)).map(equal).collect()
            }
            PointPart::Subquery { index, .. } => {
                let sub = &self.block.subqueries[usize::from(*index)];
                let number = self.builder.numbers.get(&sub.plan);
                vec![format!("IN (select #{number})")]
            }
        }
    }

    /// `1 < a <= 9`
    fn bounds(&self, column: &str, range: &RangePart) -> String {
        let scope = Scope::Tables(self.block);
        if let Some((pattern, _)) = &range.like {
            return format!("{column} LIKE {}", self.texts.expr(pattern, scope));
        }
        let sign = |included: bool| if included { "<=" } else { "<" };
        let text = |e: &Expr| self.texts.expr(e, scope);
        match (&range.lo, &range.hi) {
            (Some((lo, true)), Some((hi, true))) if lo == hi => format!("{column} = {}", text(lo)),
            (Some((lo, a)), Some((hi, b))) => {
                let (a, b) = (sign(*a), sign(*b));
                format!("{} {a} {column} {b} {}", text(lo), text(hi))
            }
            (Some((lo, a)), None) => format!("{} {} {column}", text(lo), sign(*a)),
            (None, Some((hi, b))) => format!("{column} {} {}", sign(*b), text(hi)),
            (None, None) => format!("NULL < {column}"),
        }
    }
}

fn is_equality(part: &PointPart) -> bool {
    matches!(part, PointPart::Eq { .. })
}

fn index_name(index: &IndexDef) -> &str {
    match index.is_clustered() {
        true => "PRIMARY",
        false => &index.name,
    }
}

/// The name of key part `n`.
fn column(def: &TableDef, index: &IndexDef, n: usize) -> String {
    let part = index.parts.get(n);
    let name = part.map(|p| &*def.columns[p.column].name);
    short_name(name.unwrap_or("?"))
}

fn key_columns(def: &TableDef, index: &IndexDef, parts: usize) -> Json {
    let parts = index.parts.iter().take(parts);
    Json::texts(parts.map(|p| &*def.columns[p.column].name))
}

fn used_columns(def: &TableDef, slot: &TableSlot) -> Json {
    let columns = def.columns.iter().zip(&slot.used);
    let is_words = |name: &str| {
        let mut words = def.indexes.iter().filter(|i| i.fulltext().is_some());
        words.any(|i| *def.columns[i.parts[0].column].name == *name)
    };
    let used = columns.filter(|(column, used)| **used && !is_words(&column.name));
    Json::texts(used.map(|(column, _)| &*column.name))
}

fn ranges_text(ranges: &[String]) -> String {
    let shown = match ranges.len() > RANGES_SHOWN {
        true => RANGES_SHOWN - 1,
        false => ranges.len(),
    };
    let mut texts: Vec<String> = ranges[..shown].iter().map(|r| format!("({r})")).collect();
    if shown < ranges.len() {
        texts.push(format!("({} more)", ranges.len() - shown));
    }
    texts.join(" OR ")
}

/// The text with its first letter in upper case.
fn capital(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(chars).collect()
}
