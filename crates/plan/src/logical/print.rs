//! Prints expressions and logical trees, for tests of the stages.
//!
//! A column of the joined row is printed as `alias.column`, one of the grouped row as `group.N`,
//! and one of an enclosing query as `outer[level].slot.N`.

use std::fmt::{self, Write};
use std::sync::Arc;

use nfold_sql::ast::IsTest;

use super::clauses::{Aggregate, LimitPlan, OrderKey};
use super::expr::{ArithOp, ColumnAt, Expr, ExprKind, SubqueryUse};
use super::query::{Block, Decorrelated, JoinType, Query, QueryBody, Source, Subquery, Table};
use super::statement::{InsertRows, Statement};

/// The names of the columns of row slots.
#[derive(Debug, Default)]
pub(crate) struct SlotNames(Vec<(Arc<str>, Vec<Arc<str>>)>);

impl SlotNames {
    /// The slot of a grouped row.
    pub fn grouped() -> SlotNames {
        SlotNames(vec![("group".into(), Vec::new())])
    }

    pub fn push(&mut self, alias: Arc<str>, columns: Vec<Arc<str>>) {
        self.0.push((alias, columns));
    }

    fn column(&self, at: ColumnAt) -> String {
        let column = usize::from(at.column);
        match self.0.get(usize::from(at.table)) {
            Some((alias, names)) => match names.get(column) {
                Some(name) => format!("{alias}.{name}"),
                None => format!("{alias}.{column}"),
            },
            None => format!("slot{}.{column}", at.table),
        }
    }

    pub fn list(&self, exprs: &[Expr]) -> String {
        let texts: Vec<String> = exprs.iter().map(|e| self.expr(e)).collect();
        texts.join(", ")
    }

    pub fn order(&self, keys: &[OrderKey]) -> String {
        let text = |k: &OrderKey| {
            let desc = if k.desc { " DESC" } else { "" };
            format!("{}{desc}", self.expr(&k.expr))
        };
        let texts: Vec<String> = keys.iter().map(text).collect();
        texts.join(", ")
    }

    pub fn aggregate(&self, a: &Aggregate) -> String {
        let distinct = if a.distinct { "DISTINCT " } else { "" };
        format!("{:?}({distinct}{})", a.func, self.list(&a.args))
    }

    /// Prints an expression.
    pub fn expr(&self, e: &Expr) -> String {
        use ExprKind::*;
        let two = |op: &str, sides: &[Expr; 2]| {
            format!("({} {op} {})", self.expr(&sides[0]), self.expr(&sides[1]))
        };
        let many = |op: &str, list: &[Expr]| {
            let texts: Vec<String> = list.iter().map(|e| self.expr(e)).collect();
            format!("({})", texts.join(op))
        };
        let not = |negated: bool| if negated { "NOT " } else { "" };
        match &e.kind {
            Const(v) => format!("{v:?}"),
            Param(n) => format!("?{n}"),
            Column(at) => self.column(*at),
            Outer { level, at } => format!("outer[{level}].{}.{}", at.table, at.column),
            Compare { op, sides, .. } => two(op.symbol(), sides),
            Arith(op, sides) => two(arith_symbol(*op), sides),
            And(list) => many(" AND ", list),
            Or(list) => many(" OR ", list),
            Not(inner) => format!("NOT {}", self.expr(inner)),
            Cast { expr, to } => format!("CAST({} AS {:?})", self.expr(expr), to.kind),
            Is {
                expr,
                test: IsTest::Null,
                negated,
            } => format!("({} IS {}NULL)", self.expr(expr), not(*negated)),
            Between { parts, negated, .. } => {
                let [value, low, high] = &**parts;
                let (value, low, high) = (self.expr(value), self.expr(low), self.expr(high));
                format!("({value} {}BETWEEN {low} AND {high})", not(*negated))
            }
            In {
                expr,
                list,
                negated,
            } => {
                let members: Vec<String> = list.iter().map(|(_, m)| self.expr(m)).collect();
                let (expr, members) = (self.expr(expr), members.join(", "));
                format!("({expr} {}IN ({members}))", not(*negated))
            }
            Subquery { index, use_as } => match use_as {
                SubqueryUse::Exists => format!("EXISTS(subquery {index})"),
                SubqueryUse::In { left, negated, .. } => {
                    format!("({} {}IN subquery {index})", self.list(left), not(*negated))
                }
                _ => format!("(subquery {index})"),
            },
            _ => {
                let mut operands = Vec::new();
                e.each_child(&mut |child| operands.push(self.expr(child)));
                format!("{}({})", kind_name(&e.kind), operands.join(", "))
            }
        }
    }
}

fn arith_symbol(op: ArithOp) -> &'static str {
    match op {
        ArithOp::Add => "+",
        ArithOp::Sub => "-",
        ArithOp::Mul => "*",
        ArithOp::Div => "/",
        ArithOp::IntDiv => "DIV",
        ArithOp::Mod => "%",
    }
}

/// The variant's name of an expression that has no text form.
fn kind_name(kind: &ExprKind) -> String {
    let debug = format!("{kind:?}");
    let end = debug.find([' ', '(', '{']).unwrap_or(debug.len());
    debug[..end].to_string()
}

/// A writer of indented lines.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    text: String,
    depth: usize,
}

impl Lines {
    pub fn line(&mut self, text: impl AsRef<str>) {
        let indent = 2 * self.depth;
        let _ = writeln!(self.text, "{:indent$}{}", "", text.as_ref());
    }

    /// Writes a line with a heading, unless `text` is empty.
    pub fn clause(&mut self, heading: &str, text: &str) {
        if !text.is_empty() {
            self.line(format!("{heading} {text}"));
        }
    }

    pub fn indented(&mut self, f: impl FnOnce(&mut Lines)) {
        self.depth += 1;
        f(self);
        self.depth -= 1;
    }

    pub fn limit(&mut self, limit: Option<&LimitPlan>) {
        if let Some(limit) = limit {
            let names = SlotNames::default();
            let offset = limit.offset.as_ref().map(|e| names.expr(e));
            let offset = offset.map_or_else(String::new, |e| format!(" offset {e}"));
            self.line(format!("limit {}{offset}", names.expr(&limit.count)));
        }
    }

    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Prints a bit set of slots.
fn slots(set: u64) -> String {
    let list: Vec<String> = (0..64)
        .filter(|t| set >> t & 1 == 1)
        .map(|t| t.to_string())
        .collect();
    format!("{{{}}}", list.join(","))
}

/// The names of the columns that are read.
pub(crate) fn used_names(names: &[Arc<str>], used: &[bool]) -> String {
    let read = names.iter().zip(used).filter(|(_, used)| **used);
    let list: Vec<&str> = read.map(|(name, _)| &**name).collect();
    list.join(", ")
}

fn query(q: &Query, out: &mut Lines) {
    match &q.body {
        QueryBody::Block(b) => block(b, out),
        QueryBody::Set {
            op,
            distinct,
            left,
            right,
            ..
        } => {
            out.line(format!(
                "{op:?}{}",
                if *distinct { " distinct" } else { "" }
            ));
            out.indented(|out| {
                query(left, out);
                query(right, out);
            });
        }
        QueryBody::Rows(rows) => {
            let names = SlotNames::default();
            let rows: Vec<String> = rows
                .iter()
                .map(|r| format!("({})", names.list(r)))
                .collect();
            out.line(format!("values {}", rows.join(", ")));
        }
        QueryBody::Recursive(r) => {
            out.line("recursion");
            out.indented(|out| {
                query(&r.seed, out);
                r.steps.iter().for_each(|q| query(q, out));
            });
        }
        QueryBody::Working(_) => out.line("rows of the last round"),
    }
    for key in &q.order {
        let desc = if key.desc { " DESC" } else { "" };
        out.line(format!("order by column {}{desc}", key.column));
    }
    out.limit(q.limit.as_ref());
}

fn column_names(table: &Table) -> Vec<Arc<str>> {
    match &table.source {
        Source::Table(def) | Source::Virtual(def) => {
            def.columns.iter().map(|c| c.name.clone()).collect()
        }
        Source::Derived(q) => q.columns.iter().map(|c| c.name.clone()).collect(),
        Source::Json(t) => t.shape.columns.iter().map(|c| c.name.clone()).collect(),
    }
}

fn block(b: &Block, out: &mut Lines) {
    out.line(match b.mergeable {
        true => "block (mergeable)",
        false => "block",
    });
    out.indented(|out| {
        let mut joined = SlotNames::default();
        for (n, slot) in b.tables.iter().enumerate() {
            let names = column_names(slot);
            table(n, slot, &names, out);
            joined.push(slot.alias.clone(), names);
        }
        out.clause("where", &joined.list(&b.conditions));
        for join in &b.outer_joins {
            let kind = match join.kind {
                JoinType::Semi => "semi",
                JoinType::Anti => "anti",
                JoinType::Inner | JoinType::Left => "left",
            };
            let sides = format!("{} {kind} join {}", slots(join.outer), slots(join.inner));
            out.line(format!("{sides} on {}", joined.list(&join.on)));
        }
        let rows = match &b.group {
            None => joined,
            Some(group) => {
                out.line(format!("group by [{}]", joined.list(&group.keys)));
                for a in &group.aggregates {
                    out.line(format!("  {}", joined.aggregate(a)));
                }
                SlotNames::grouped()
            }
        };
        out.clause("having", &rows.list(&b.having));
        for pass in &b.windows {
            let partition = rows.list(&pass.partition);
            let order = rows.order(&pass.order);
            let calls: Vec<&str> = pass.calls.iter().map(|c| c.func.name()).collect();
            let calls = calls.join(", ");
            out.line(format!(
                "windows {calls} partition [{partition}] order [{order}]"
            ));
        }
        let distinct = if b.distinct { " distinct" } else { "" };
        out.clause(&format!("select{distinct}"), &rows.list(&b.select));
        out.clause("order by", &rows.order(&b.order));
        for (n, sub) in b.subqueries.iter().enumerate() {
            subquery(n, sub, &rows, out);
        }
    });
}

fn table(n: usize, table: &Table, names: &[Arc<str>], out: &mut Lines) {
    let marks = [
        (table.merged, " merged"),
        (table.nullable, " nullable"),
        (table.lateral != 0, " lateral"),
        (table.hints.force, " force"),
    ];
    let mut marks: String = marks.iter().filter(|m| m.0).map(|m| m.1).collect();
    if let Some(n) = table.shared {
        marks += &format!(" shared {n}");
    }
    let source = match &table.source {
        Source::Table(def) => &*def.name,
        Source::Virtual(_) => "system table",
        Source::Derived(_) => "derived",
        Source::Json(_) => "JSON_TABLE",
    };
    let used = used_names(names, &table.used);
    out.line(format!("slot {n} {}: {source}({used}){marks}", table.alias));
    if let Source::Derived(q) = &table.source {
        out.indented(|out| query(q, out));
    }
}

fn subquery(n: usize, sub: &Subquery, rows: &SlotNames, out: &mut Lines) {
    let correlated = if sub.correlated { " correlated" } else { "" };
    out.line(format!("subquery {n} {:?}{correlated}", sub.form));
    out.indented(|out| query(&sub.query, out));
    if let (Some(d), QueryBody::Block(b)) = (&sub.decorrelated, &sub.query.body) {
        decorrelated(d, b, rows, out);
    }
}

fn decorrelated(d: &Decorrelated, b: &Block, rows: &SlotNames, out: &mut Lines) {
    let mut inner = SlotNames::default();
    for slot in &b.tables {
        inner.push(slot.alias.clone(), column_names(slot));
    }
    out.line(if d.grouped {
        "decorrelated, grouped"
    } else {
        "decorrelated"
    });
    out.indented(|out| {
        let keys: Vec<String> = d.keys.iter().map(|k| rows.expr(&k.outer)).collect();
        out.clause("probe", &keys.join(", "));
        out.clause("if", &rows.list(&d.outer_conditions));
        out.clause("select", &inner.list(&d.select));
        out.clause("where", &inner.list(&d.conditions));
        let mut selected = SlotNames::default();
        let names = d.select.iter().map(|e| inner.expr(e).into());
        selected.push("set".into(), names.collect());
        out.clause("test", &selected.list(&d.tests));
        if let Some(extreme) = d.extreme {
            let which = if extreme.greatest { "MAX" } else { "MIN" };
            let kept = inner.expr(&d.select[usize::from(extreme.column)]);
            out.clause("keep", &format!("{which}({kept})"));
        }
    });
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Lines::default();
        query(self, &mut out);
        f.write_str(out.text())
    }
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Lines::default();
        let mut find = |verb: &str, source: &Block, limit: Option<&LimitPlan>| {
            out.line(format!("{verb} slots {}", slots(source.changed)));
            out.indented(|out| block(source, out));
            out.limit(limit);
        };
        match self {
            Statement::Query(q) => query(q, &mut out),
            Statement::Update(u) => find("update", &u.source, u.limit.as_ref()),
            Statement::Delete(d) => find("delete", &d.source, d.limit.as_ref()),
            Statement::UpdateTables(u) => find("update", &u.source, None),
            Statement::DeleteTables(d) => find("delete", &d.source, None),
            Statement::Insert(i) => {
                out.line(format!("insert into {}", i.table.name));
                if let InsertRows::Query(q) = &i.source {
                    out.indented(|out| query(q, out));
                }
            }
            Statement::Do(exprs, _) => {
                out.clause("do", &SlotNames::default().list(exprs));
            }
        }
        f.write_str(out.text())
    }
}
