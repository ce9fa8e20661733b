//! The statement that a plan runs, as SQL text in MySQL's form: the note of EXPLAIN, and `query` of
//! FORMAT=JSON. It shows what the planner's rewrites have made of the statement.

use nfold_plan::expr::{Expr, ExprKind, ExprType};
use nfold_plan::query::{
    AccessKind, Assignment, Block, HashKey, InsertPlan, InsertSource, JoinStep, JoinType,
    LimitPlan, Plan, QueryBody, QueryPlan, ResultOrder, SubqueryPlan, TableSource,
};
use nfold_sql::ast::{BinaryOp, SetOp};
use nfold_sql::printer::Quoted;

use super::tree::Builder;
use crate::expr::eval::{EvalCx, Scope};
use crate::expr::print::Printer;
use crate::expr::print::names::QueryNames;

/// The text of a statement. `nothing`: its condition is known to be false.
pub(super) fn statement(builder: &Builder<'_>, plan: &Plan, nothing: bool) -> String {
    let text = Text {
        builder,
        nothing,
        in_expression: false,
    };
    match plan {
        Plan::Query(q) => text.query(q, &[]),
        Plan::Insert(p) => text.insert(p),
        Plan::Update(p) => {
            let name = text.tables(&p.source, &[]);
            let set = text.assignments(&p.source, p.target, &p.assignments);
            let limit = p.limit.as_ref().map_or_else(String::new, |l| text.limit(l));
            let rows = text.conditions(&p.source, &[]);
            let order = text.order(&p.source, &[]);
            format!("update {name} set {set}{rows}{order}{limit}")
        }
        Plan::Delete(p) => {
            let name = text.tables(&p.source, &[]);
            let limit = p.limit.as_ref().map_or_else(String::new, |l| text.limit(l));
            let rows = text.conditions(&p.source, &[]);
            let order = text.order(&p.source, &[]);
            format!("delete from {name}{rows}{order}{limit}")
        }
        Plan::UpdateTables(p) => {
            let set = p.targets.iter();
            let set = set.map(|t| text.assignments(&p.source, t.slot, &t.assignments));
            let set: Vec<String> = set.collect();
            let rows = text.conditions(&p.source, &[]);
            let tables = text.tables(&p.source, &[]);
            format!("update {tables} set {}{rows}", set.join(","))
        }
        Plan::DeleteTables(p) => {
            let name = |slot: usize| qualified(&p.source, slot);
            let names: Vec<String> = p.targets.iter().map(|t| name(t.1)).collect();
            let rows = text.conditions(&p.source, &[]);
            let tables = text.tables(&p.source, &[]);
            format!("delete {} from {tables}{rows}", names.join(","))
        }
        Plan::Do(..) | Plan::Explain(_) => String::new(),
    }
}

#[derive(Clone, Copy)]
struct Text<'b> {
    builder: &'b Builder<'b>,
    nothing: bool,
    /// Whether it is the text of a subquery in an expression, whose columns have no names.
    in_expression: bool,
}

/// `` `db`.`alias` `` of a slot.
fn qualified(b: &Block, slot: usize) -> String {
    let slot = &b.tables[slot];
    match &slot.source {
        TableSource::Table(t) | TableSource::Virtual(t) => {
            format!("{}.{}", Quoted(&t.schema), Quoted(&slot.alias))
        }
        _ => Quoted(&slot.alias).to_string(),
    }
}

impl Text<'_> {
    fn with<T>(
        &self,
        block: &Block,
        outer: &[Scope<'_>],
        scope: Scope<'_>,
        f: impl FnOnce(&Printer<'_>) -> T,
    ) -> T {
        let above = match (scope, block.group.is_some()) {
            (Scope::Tables(_), true) => Scope::Groups(block),
            (scope, _) => scope,
        };
        let outer_of_subquery: Vec<Scope<'_>> = outer.iter().copied().chain([above]).collect();
        let inner = Text {
            in_expression: true,
            nothing: false,
            ..*self
        };
        let subquery = |sub: &SubqueryPlan| inner.query(&sub.plan, &outer_of_subquery);
        let names = QueryNames {
            outer,
            subquery: &subquery,
            short: false,
        };
        let cx = EvalCx {
            rows: &[],
            outer: &[],
            st: self.builder.state,
        };
        f(&Printer::with_names(cx, &names))
    }

    fn query(&self, q: &QueryPlan, outer: &[Scope<'_>]) -> String {
        let mut text = match &q.body {
            QueryBody::Block(b) => self.block(q, b, outer),
            QueryBody::Set {
                op,
                distinct,
                left,
                right,
                ..
            } => {
                let word = match op {
                    SetOp::Union => "union",
                    SetOp::Intersect => "intersect",
                    SetOp::Except => "except",
                };
                let all = if *distinct { "" } else { " all" };
                let side = |q: &QueryPlan| {
                    let text = self.query(q, outer);
                    let own = q.limit.is_some()
                        || matches!(&q.body, QueryBody::Block(b) if !b.order.is_empty());
                    if own { format!("({text})") } else { text }
                };
                format!("{} {word}{all} {}", side(left), side(right))
            }
            QueryBody::Rows(rows) => self.without_rows(outer, |p| {
                let row = |r: &Vec<Expr>| format!("row({})", p.exprs(r, ",", Scope::None));
                let rows: Vec<String> = rows.iter().map(row).collect();
                format!("values {}", rows.join(","))
            }),
            QueryBody::Recursive(r) => {
                let all = if r.distinct { " union " } else { " union all " };
                let queries: Vec<String> = r.queries().map(|q| self.query(q, outer)).collect();
                queries.join(all)
            }
            QueryBody::Working(_) => String::new(),
        };
        if !q.order.is_empty() {
            let key = |k: &ResultOrder| {
                let desc = if k.desc { " desc" } else { "" };
                format!("{}{desc}", Quoted(&q.columns[k.column].name))
            };
            let keys: Vec<String> = q.order.iter().map(key).collect();
            text += &format!(" order by {}", keys.join(","));
        }
        if let Some(limit) = &q.limit {
            text += &self.limit(limit);
        }
        text
    }

    fn block(&self, q: &QueryPlan, b: &Block, outer: &[Scope<'_>]) -> String {
        let number = self.builder.numbers.get(q);
        let rows = match b.group.is_some() {
            true => Scope::Groups(b),
            false => Scope::Tables(b),
        };
        let items = self.with(b, outer, rows, |p| {
            let items = b.select.iter().zip(&q.columns);
            let items = items.map(|(e, c)| match self.in_expression {
                true => p.expr(e, rows),
                false => format!("{} AS {}", p.expr(e, rows), Quoted(&c.name)),
            });
            items.collect::<Vec<String>>()
        });
        let distinct = if b.distinct { "distinct " } else { "" };
        let mut text = format!("/* select#{number} */ select {distinct}{}", items.join(","));
        if !b.tables.is_empty() {
            text += &format!(" from {}", self.tables(b, outer));
        }
        text += &self.conditions(b, outer);
        if let Some(group) = &b.group {
            if !group.keys.is_empty() {
                let tables = Scope::Tables(b);
                let keys = self.with(b, outer, tables, |p| p.exprs(&group.keys, ",", tables));
                text += &format!(" group by {keys}");
            }
            text += if group.rollup { " with rollup" } else { "" };
        }
        let having: Vec<&Expr> = b.constant_having.iter().chain(&b.having).collect();
        if !having.is_empty() {
            let having = self.with(b, outer, rows, |p| p.all_of(&having, rows));
            text += &format!(" having {having}");
        }
        text + &self.order(b, outer)
    }

    fn order(&self, b: &Block, outer: &[Scope<'_>]) -> String {
        if b.order.is_empty() {
            return String::new();
        }
        let rows = match b.group.is_some() {
            true => Scope::Groups(b),
            false => Scope::Tables(b),
        };
        let keys = b.order.iter().map(|k| {
            let desc = if k.desc { " desc" } else { "" };
            let text = self.with(b, outer, rows, |p| p.expr(&k.expr, rows));
            format!("{text}{desc}")
        });
        format!(" order by {}", keys.collect::<Vec<String>>().join(","))
    }

    fn limit(&self, limit: &LimitPlan) -> String {
        self.without_rows(&[], |p| {
            let count = p.expr(&limit.count, Scope::None);
            match &limit.offset {
                Some(offset) => format!(" limit {},{count}", p.expr(offset, Scope::None)),
                None => format!(" limit {count}"),
            }
        })
    }

    /// For expressions that read no row of their own query.
    fn without_rows<T>(&self, outer: &[Scope<'_>], f: impl FnOnce(&Printer<'_>) -> T) -> T {
        let names = QueryNames {
            outer,
            subquery: &|_| String::new(),
            short: false,
        };
        let cx = EvalCx {
            rows: &[],
            outer: &[],
            st: self.builder.state,
        };
        f(&Printer::with_names(cx, &names))
    }

    /// The tables in the order of the joins.
    fn tables(&self, b: &Block, outer: &[Scope<'_>]) -> String {
        let mut text = String::new();
        let mut open: usize = 0;
        let scope = Scope::Tables(b);
        for (n, step) in b.joins.iter().enumerate() {
            let begins = step.nested_join.as_ref().is_some_and(|join| join.begins);
            text += match (n, step.kind, begins) {
                (0, ..) => "",
                (_, _, true) => " left join (",
                (_, JoinType::Left, _) => " left join ",
                (_, JoinType::Semi, _) => " semi join ",
                (_, JoinType::Anti, _) => " anti join ",
                (_, JoinType::Inner, _) => " join ",
            };
            open += usize::from(begins);
            text += &self.table(b, step.table, outer);
            if step.kind != JoinType::Inner {
                let on = matching(step);
                if !on.is_empty() {
                    let on: Vec<&Expr> = on.iter().collect();
                    let on = self.with(b, outer, scope, |p| p.all_of(&on, scope));
                    text += &format!(" on({on})");
                }
            }
            for end in step.nested_join.iter().flat_map(|join| &join.ends) {
                open = open.saturating_sub(1);
                text += ")";
                if !end.on.is_empty() {
                    let on: Vec<&Expr> = end.on.iter().collect();
                    let on = self.with(b, outer, scope, |p| p.all_of(&on, scope));
                    text += &format!(" on({on})");
                }
            }
        }
        text + &")".repeat(open)
    }

    fn table(&self, b: &Block, slot: usize, outer: &[Scope<'_>]) -> String {
        let slot = &b.tables[slot];
        let alias = Quoted(&slot.alias);
        match &slot.source {
            TableSource::Table(t) | TableSource::Virtual(t) => {
                let name = format!("{}.{}", Quoted(&t.schema), Quoted(&t.name));
                match *t.name == *slot.alias {
                    true => name,
                    false => format!("{name} {alias}"),
                }
            }
            TableSource::Derived(q) if matches!(q.body, QueryBody::Working(_)) => alias.to_string(),
            TableSource::Derived(q) => {
                let derived = Text {
                    in_expression: false,
                    ..*self
                };
                format!("({}) {alias}", derived.query(q, outer))
            }
            TableSource::Json(_) => format!("json_table(...) {alias}"),
        }
    }

    /// ` where` with the conditions on the joined rows.
    fn conditions(&self, b: &Block, outer: &[Scope<'_>]) -> String {
        if self.nothing {
            return " where false".to_string();
        }
        let scope = Scope::Tables(b);
        let mut conditions: Vec<Expr> = b.constant_filter.clone();
        for step in &b.joins {
            if step.kind == JoinType::Inner {
                conditions.extend(matching(step));
            }
            for e in &step.filter {
                if !conditions.iter().any(|known| is_same(known, e)) {
                    conditions.push(e.clone());
                }
            }
        }
        if conditions.is_empty() {
            return String::new();
        }
        let conditions: Vec<&Expr> = conditions.iter().collect();
        let text = self.with(b, outer, scope, |p| p.all_of(&conditions, scope));
        format!(" where {text}")
    }

    fn assignments(&self, b: &Block, slot: usize, list: &[Assignment]) -> String {
        let TableSource::Table(def) = &b.tables[slot].source else {
            return String::new();
        };
        let scope = Scope::Tables(b);
        let one = |a: &Assignment| {
            let value = a.value.as_ref();
            let value = value.map_or_else(
                || "default".to_string(),
                |e| self.with(b, &[], scope, |p| p.expr(e, scope)),
            );
            let column = Quoted(&def.columns[a.column].name);
            format!("{}.{column} = {value}", qualified(b, slot))
        };
        list.iter().map(one).collect::<Vec<String>>().join(",")
    }

    fn insert(&self, p: &InsertPlan) -> String {
        let verb = if p.replace { "replace" } else { "insert" };
        let ignore = if p.ignore { " ignore" } else { "" };
        let table = format!("{}.{}", Quoted(&p.table.schema), Quoted(&p.table.name));
        let every = p.columns.len() == p.table.columns.len();
        let columns = match every {
            true => String::new(),
            false => {
                let name = |&c: &usize| format!("{table}.{}", Quoted(&p.table.columns[c].name));
                let names: Vec<String> = p.columns.iter().map(name).collect();
                format!(" ({})", names.join(","))
            }
        };
        let source = match &p.source {
            InsertSource::Query(q) => self.query(q, &[]),
            InsertSource::Rows(rows) => self.value_rows(rows),
            InsertSource::Param(list) => self.value_list(*list),
            InsertSource::File(_) => String::new(),
        };
        format!("{verb}{ignore} into {table}{columns} {source}")
    }

    fn value_rows(&self, rows: &[Vec<Option<Expr>>]) -> String {
        self.without_rows(&[], |p| {
            let value = |e: &Option<Expr>| match e {
                Some(e) => p.expr(e, Scope::None),
                None => "default".to_string(),
            };
            let row = |row: &Vec<Option<Expr>>| {
                let values: Vec<String> = row.iter().map(value).collect();
                format!("({})", values.join(","))
            };
            let rows: Vec<String> = rows.iter().map(row).collect();
            format!("values {}", rows.join(","))
        })
    }

    fn value_list(&self, list: u32) -> String {
        let rows = self.without_rows(&[], |p| p.list_rows(list, &Expr::null()));
        let rows: Vec<String> = rows.iter().map(|r| format!("({})", r.join(","))).collect();
        format!("values {}", rows.join(","))
    }
}

/// The conditions by which a step finds its rows: the keys of a hash join, and the conditions that
/// an access path implies; of an outer join with its ON condition.
fn matching(step: &JoinStep) -> Vec<Expr> {
    let mut list: Vec<Expr> = Vec::new();
    if let AccessKind::Hash {
        build,
        keys,
        filter,
        ..
    } = &step.access.kind
    {
        list.extend(keys.iter().map(equality));
        list.extend(build.implied.iter().chain(filter).cloned());
    }
    list.extend(step.access.implied.iter().chain(&step.on).cloned());
    let mut distinct: Vec<Expr> = Vec::new();
    for e in list {
        if !distinct.iter().any(|d| is_same(d, &e)) {
            distinct.push(e);
        }
    }
    distinct
}

/// Whether two conditions are equal, apart from the order of the sides of an equality.
pub(super) fn is_same(a: &Expr, b: &Expr) -> bool {
    match (&a.kind, &b.kind) {
        (
            ExprKind::Compare { op, sides, .. },
            ExprKind::Compare {
                op: other_op,
                sides: other,
                ..
            },
        ) if *op == BinaryOp::Eq && *other_op == BinaryOp::Eq => {
            (sides[0] == other[0] && sides[1] == other[1])
                || (sides[0] == other[1] && sides[1] == other[0])
        }
        _ => a == b,
    }
}

fn equality(key: &HashKey) -> Expr {
    Expr {
        kind: ExprKind::Compare {
            op: match key.null_safe {
                true => BinaryOp::NullSafeEq,
                false => BinaryOp::Eq,
            },
            kind: key.kind,
            sides: Box::new([key.inner.clone(), key.outer.clone()]),
        },
        ty: ExprType::boolean(true),
    }
}
