//! Prints plans, for tests of the optimizer.

use std::fmt;
use std::sync::Arc;

use super::{
    Access, AccessKind, Block, JoinStep, JoinType, MergeBranch, MergeKind, Plan, PointPart,
    QueryBody, QueryPlan, RangePart, SkipRows, SubqueryPlan, TableSlot, TableSource,
};
use crate::logical::print::{Lines, SlotNames, used_names};

fn query(q: &QueryPlan, out: &mut Lines) {
    match &q.body {
        QueryBody::Block(b) => block(b, out),
        QueryBody::Set {
            op, left, right, ..
        } => {
            out.line(format!("{op:?}"));
            out.indented(|out| {
                query(left, out);
                query(right, out);
            });
        }
        QueryBody::Rows(rows) => out.line(format!("values, {} rows", rows.len())),
        QueryBody::Recursive(r) => {
            out.line("recursion");
            out.indented(|out| r.queries().for_each(|q| query(q, out)));
        }
        QueryBody::Working(_) => out.line("rows of the last round"),
    }
    out.limit(q.limit.as_ref());
}

fn column_names(slot: &TableSlot) -> Vec<Arc<str>> {
    match &slot.source {
        TableSource::Table(def) | TableSource::Virtual(def) => {
            def.columns.iter().map(|c| c.name.clone()).collect()
        }
        TableSource::Derived(q) => q.columns.iter().map(|c| c.name.clone()).collect(),
        TableSource::Json(t) => t.shape.columns.iter().map(|c| c.name.clone()).collect(),
    }
}

fn block(b: &Block, out: &mut Lines) {
    out.line("block");
    out.indented(|out| {
        let mut joined = SlotNames::default();
        for slot in &b.tables {
            joined.push(slot.alias.clone(), column_names(slot));
        }
        out.clause("if", &joined.list(&b.constant_filter));
        for s in &b.joins {
            step(b, s, &joined, out);
        }
        let rows = match &b.group {
            None => joined,
            Some(group) => {
                let how = match (group.first_row_only, group.ordered) {
                    (true, _) => "group, first row only",
                    (_, true) => "group in index order",
                    _ => "group",
                };
                out.line(format!("{how} by [{}]", joined.list(&group.keys)));
                for a in &group.aggregates {
                    out.line(format!("  {}", joined.aggregate(a)));
                }
                SlotNames::grouped()
            }
        };
        out.clause("having", &rows.list(&b.having));
        let distinct = if b.distinct { " distinct" } else { "" };
        out.clause(&format!("select{distinct}"), &rows.list(&b.select));
        out.clause("sort by", &rows.order(&b.order));
        if b.ordered {
            out.line("in index order");
        }
        for (n, sub) in b.subqueries.iter().enumerate() {
            subquery(n, sub, &rows, out);
        }
    });
}

fn step(b: &Block, step: &JoinStep, names: &SlotNames, out: &mut Lines) {
    let slot = &b.tables[step.table];
    let join = match (step.kind, &step.nested_join) {
        (JoinType::Left, _) => "left join ",
        (JoinType::Semi, _) => "semi join ",
        (JoinType::Anti, _) => "anti join ",
        (JoinType::Inner, Some(_)) => "nested ",
        (JoinType::Inner, None) => "",
    };
    let path = access(slot, &step.access, names);
    let used = used_names(&column_names(slot), &slot.used);
    let shared = slot
        .shared
        .map_or_else(String::new, |n| format!(" shared {n}"));
    out.line(format!(
        "{join}{}({used}){shared}: {path}, {} rows",
        slot.alias, step.rows
    ));
    out.indented(|out| {
        if let Some(other) = &step.alternative {
            let first = match other.access.kind {
                AccessKind::Hash { .. } => "later",
                _ => "first",
            };
            let path = access(slot, &other.access, names);
            out.line(format!("or {first} {path}"));
        }
        match (step.builds_early, &step.access.kind) {
            (false, _) => {}
            (true, AccessKind::Hash { .. }) => out.line("built before the first row is read"),
            (true, _) => out.line("read before the hash tables are built"),
        }
        out.clause("on", &names.list(&step.on));
        out.clause("filter", &names.list(&step.filter));
        if let TableSource::Derived(q) = &slot.source {
            query(q, out);
        }
    });
}

fn access(slot: &TableSlot, access: &Access, names: &SlotNames) -> String {
    let index = match &slot.source {
        TableSource::Table(def) if access.index == 0 => {
            format!("rows of {}", def.name)
        }
        TableSource::Table(def) => format!("index {}", def.indexes[access.index].name),
        _ => "rows".to_string(),
    };
    let points = |parts: &[PointPart]| {
        let parts: Vec<String> = parts.iter().map(|p| point(p, names)).collect();
        parts.join(", ")
    };
    let path = match &access.kind {
        AccessKind::Full => format!("scan {index}"),
        AccessKind::Source => "derived rows".to_string(),
        AccessKind::Empty => "no rows".to_string(),
        AccessKind::Fulltext(_) => format!("search {index}"),
        AccessKind::Points(parts) => format!("look up {index} by [{}]", points(parts)),
        AccessKind::Range { prefix, range } => {
            format!(
                "range of {index} by [{}] {}",
                points(prefix),
                bounds(range, names)
            )
        }
        AccessKind::Ranges(list) => {
            let list: Vec<String> = list.iter().map(|r| bounds(r, names)).collect();
            format!("ranges of {index} {}", list.join(" or "))
        }
        AccessKind::Merge(merge) => {
            let branch = |branch: &MergeBranch| {
                let path = Access {
                    index: branch.index,
                    covering: false,
                    reverse: false,
                    kind: branch.kind.clone(),
                    implied: Vec::new(),
                    possible: Vec::new(),
                };
                self::access(slot, &path, names)
            };
            let branches: Vec<String> = merge.branches.iter().map(branch).collect();
            let word = match merge.kind {
                MergeKind::Union => "union",
                MergeKind::SortUnion => "sorted union",
                MergeKind::Intersection => "intersection",
            };
            format!("{word} of ({})", branches.join("; "))
        }
        AccessKind::Skip(scan) => {
            let rows = match scan.rows.kind() {
                AccessKind::Points(parts) => points(parts),
                AccessKind::Range { range, .. } => bounds(range, names),
                _ => String::new(),
            };
            let ends = match scan.rows {
                SkipRows::Values(_) => "rows",
                SkipRows::Ends { last: false, .. } => "first row",
                SkipRows::Ends {
                    first: AccessKind::Empty,
                    ..
                } => "last row",
                SkipRows::Ends { last: true, .. } => "first and last row",
            };
            let text = format!("skip {} parts of {index} to {ends} {rows}", scan.parts);
            text.trim_end().to_string()
        }
        AccessKind::Hash {
            build,
            keys,
            filter,
            ..
        } => {
            let keys: Vec<String> = keys
                .iter()
                .map(|k| {
                    let op = if k.null_safe { "<=>" } else { "=" };
                    format!("{} {op} {}", names.expr(&k.inner), names.expr(&k.outer))
                })
                .collect();
            let build = self::access(slot, build, names);
            let only = match filter.is_empty() {
                true => String::new(),
                false => format!(" where {}", names.list(filter)),
            };
            format!("hash [{}] of {build}{only}", keys.join(", "))
        }
    };
    let covering = if access.covering { ", covering" } else { "" };
    let reverse = if access.reverse { ", backwards" } else { "" };
    format!("{path}{covering}{reverse}")
}

fn point(p: &PointPart, names: &SlotNames) -> String {
    match p {
        PointPart::Eq { expr, .. } => names.expr(expr),
        PointPart::In(list) | PointPart::AnyEq(list) => format!("any of {}", names.list(list)),
        PointPart::List { list, .. } => format!("list {list}"),
        PointPart::Subquery { index, .. } => format!("subquery {index}"),
        PointPart::Elements { value, .. } => format!("elements of {}", names.expr(value)),
        PointPart::Rows { at, .. } => format!("column {at} of rows"),
    }
}

fn bounds(range: &RangePart, names: &SlotNames) -> String {
    let bound = |b: &Option<(crate::logical::expr::Expr, bool)>, none: &str| match b {
        Some((e, true)) => format!("{}, inclusive", names.expr(e)),
        Some((e, false)) => names.expr(e),
        None => none.to_string(),
    };
    match &range.like {
        Some((pattern, _)) => format!("like {}", names.expr(pattern)),
        None => format!(
            "from {} to {}",
            bound(&range.lo, "start"),
            bound(&range.hi, "end")
        ),
    }
}

fn subquery(n: usize, sub: &SubqueryPlan, rows: &SlotNames, out: &mut Lines) {
    let correlated = if sub.correlated { " correlated" } else { "" };
    out.line(format!("subquery {n}{correlated}"));
    out.indented(|out| query(&sub.plan, out));
    if let Some(set) = &sub.decorrelated {
        let keys: Vec<String> = set.keys.iter().map(|k| rows.expr(&k.outer)).collect();
        let grouped = if set.grouped {
            "grouped"
        } else {
            "decorrelated"
        };
        out.line(format!("or {grouped}, probed by [{}]", keys.join(", ")));
        out.indented(|out| query(&set.plan, out));
    }
}

impl fmt::Display for QueryPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Lines::default();
        query(self, &mut out);
        f.write_str(out.text())
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Lines::default();
        let mut find = |heading: String, source: &Block| {
            out.line(heading);
            out.indented(|out| block(source, out));
        };
        match self {
            Plan::Query(q) => query(q, &mut out),
            Plan::Update(u) => find(format!("update, collect: {}", u.collect), &u.source),
            Plan::Delete(d) => find(format!("delete, collect: {}", d.collect), &d.source),
            Plan::UpdateTables(u) => {
                find(
                    format!("update tables, at once: {:?}", u.at_once),
                    &u.source,
                );
            }
            Plan::DeleteTables(d) => find("delete tables".into(), &d.source),
            Plan::Insert(_) => out.line("insert"),
            Plan::Do(..) => out.line("do"),
            Plan::Explain(_) => out.line("explain"),
        }
        f.write_str(out.text())
    }
}
