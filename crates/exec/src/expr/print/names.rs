//! The texts of EXPLAIN. Every part of a query has a name: columns of enclosing queries, subqueries
//! by their numbers, and the kinds of expressions that messages leave out.

use std::borrow::Cow;

use nfold_plan::expr::{Expr, ExprKind, SubqueryUse};
use nfold_plan::query::{Aggregate, Block, OrderKey, SubqueryPlan, TableSource};
use nfold_sql::ast::TrimSide;
use nfold_sql::keywords::Kw;
use nfold_sql::printer::Quoted;
use nfold_types::Value;

use super::Printer;
use crate::expr::eval::{EvalCx, Scope};

/// The names of a query that EXPLAIN prints.
#[derive(Clone, Copy)]
pub(crate) struct QueryNames<'a> {
    /// The rows of the enclosing queries, innermost last.
    pub outer: &'a [Scope<'a>],
    /// The text of a subquery.
    pub subquery: &'a dyn Fn(&SubqueryPlan) -> String,
    /// `t.a`, otherwise `` `db`.`t`.`a` ``.
    pub short: bool,
}

impl<'a> Printer<'a> {
    /// A printer with names for every part of a query.
    pub fn with_names(cx: EvalCx<'a>, names: &'a QueryNames<'a>) -> Printer<'a> {
        Printer {
            cx,
            names: Some(names),
        }
    }

    /// The text of an expression over `scope`.
    pub fn expr(&self, e: &Expr, scope: Scope<'_>) -> String {
        self.text(e, scope)
            .unwrap_or_else(|| "<expression>".to_string())
    }

    /// The texts of expressions, joined by `between`.
    pub fn exprs(&self, list: &[Expr], between: &str, scope: Scope<'_>) -> String {
        let texts: Vec<String> = list.iter().map(|e| self.expr(e, scope)).collect();
        texts.join(between)
    }

    /// The text of conditions that must all hold.
    pub fn all_of(&self, list: &[&Expr], scope: Scope<'_>) -> String {
        match list {
            [one] => {
                let text = self.expr(one, scope);
                let condition =
                    matches!(&one.kind, ExprKind::Subquery { use_as, .. } if is_condition(use_as));
                match text.starts_with('(') || condition {
                    true => text,
                    false => format!("(0 <> {text})"),
                }
            }
            list => {
                let list: Vec<Expr> = list.iter().map(|e| (*e).clone()).collect();
                let all = self.truths(&list, " and ", scope);
                all.unwrap_or_else(|| "<expression>".to_string())
            }
        }
    }

    /// The text of an aggregate of `block`.
    pub fn call(&self, a: &Aggregate, block: &Block) -> String {
        self.aggregate(a, block)
            .unwrap_or_else(|| "<expression>".to_string())
    }

    /// The text of a window function, the one in column `n` of pass `pass`.
    pub fn window_call(&self, block: &Block, pass: usize, n: usize, scope: Scope<'_>) -> String {
        let text = super::window::text(self, block, pass, n, scope);
        let text = text.unwrap_or_else(|| "<expression>".to_string());
        text.trim_matches('`').to_string()
    }

    /// The texts of the values of list parameter `list`, row by row. `e` has their type.
    pub fn list_rows(&self, list: u32, e: &Expr) -> Vec<Vec<String>> {
        let (members, width) = self.cx.st.params.list(list);
        let texts: Vec<String> = members.map(|v| self.value(&v.to_owned(), e)).collect();
        let rows = texts.chunks(width.max(1));
        rows.map(<[String]>::to_vec).collect()
    }

    /// The text of the keys of a sort.
    pub fn order(&self, keys: &[OrderKey], scope: Scope<'_>) -> String {
        let text = |key: &OrderKey| {
            let desc = if key.desc { " DESC" } else { "" };
            format!("{}{desc}", self.expr(&key.expr, scope))
        };
        let texts: Vec<String> = keys.iter().map(text).collect();
        texts.join(", ")
    }
}

/// A name that is quoted only where it must be.
pub(crate) fn short_name(name: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$') || !c.is_ascii();
    let digits = name.bytes().all(|b| b.is_ascii_digit());
    let free = Kw::of(name.as_bytes()) == Kw::Other || name == "PRIMARY";
    match name.chars().all(plain) && !digits && free {
        true => Cow::Borrowed(name),
        false => Cow::Owned(Quoted(name).to_string()),
    }
}

/// The text of a string. A string that is no text is printed in hexadecimal digits.
pub(super) fn string(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'")),
        Err(_) => {
            let digits: Vec<String> = bytes.iter().map(|b| format!("{b:02x}")).collect();
            format!("0x{}", digits.concat())
        }
    }
}

/// The literal of a value whose text is `text`.
pub(super) fn literal(value: &Value, text: &str) -> String {
    match value {
        Value::Date(_) => format!("DATE'{text}'"),
        Value::Time(_) => format!("TIME'{text}'"),
        Value::DateTime(_) | Value::Timestamp(_) => format!("TIMESTAMP'{text}'"),
        _ => text.to_string(),
    }
}

/// The name of column `n` of a row slot.
pub(super) fn column(
    p: &Printer<'_>,
    source: &TableSource,
    alias: &str,
    n: usize,
) -> Option<String> {
    let (schema, name) = match source {
        TableSource::Table(t) | TableSource::Virtual(t) => {
            (Some(&t.schema), &t.columns.get(n)?.name)
        }
        TableSource::Json(t) => (None, &t.shape.columns.get(n)?.name),
        TableSource::Derived(q) => (None, &q.columns.get(n)?.name),
    };
    if p.names?.short {
        return Some(format!("{}.{}", short_name(alias), short_name(name)));
    }
    let schema = schema.map_or_else(String::new, |schema| format!("{}.", Quoted(schema)));
    Some(format!("{schema}{}.{}", Quoted(alias), Quoted(name)))
}

/// The ORDER BY and the separator of GROUP_CONCAT.
pub(super) fn group_concat(p: &Printer<'_>, a: &Aggregate, block: &Block) -> Option<String> {
    let mut order = Vec::new();
    for key in &a.order {
        let desc = if key.desc { " DESC" } else { "" };
        order.push(format!(
            "{}{desc}",
            p.text(&key.expr, Scope::Tables(block))?
        ));
    }
    let order = match order.is_empty() {
        true => String::new(),
        false => format!(" order by {}", order.join(",")),
    };
    Some(format!("{order} separator {}", string(&a.separator)))
}

/// The text of an expression that no message prints.
pub(super) fn text(p: &Printer<'_>, e: &Expr, scope: Scope<'_>) -> Option<String> {
    use ExprKind::*;
    let names = p.names?;
    let row = |list: &[Expr]| Some(format!("({})", p.list(list, ",", scope)?));
    let not = |negated: bool| if negated { "not " } else { "" };
    Some(match &e.kind {
        Outer { level, at } => {
            let above = names.outer.len().checked_sub(usize::from(*level))?;
            super::column(p, *at, *names.outer.get(above)?)?
        }
        CompareRows {
            op, left, right, ..
        } => {
            format!("({} {} {})", row(left)?, op.symbol(), row(right)?)
        }
        InRows {
            left,
            rows,
            negated,
        } => {
            let mut members = Vec::new();
            for members_of in rows {
                let texts: Option<Vec<String>> =
                    members_of.iter().map(|(_, e)| p.text(e, scope)).collect();
                members.push(format!("({})", texts?.join(",")));
            }
            let (left, members) = (row(left)?, members.join(","));
            format!("({left} {}in ({members}))", not(*negated))
        }
        InParam {
            left,
            list,
            negated,
            ..
        } => {
            let rows = p.list_rows(*list, e);
            let rows: Vec<String> = rows.iter().map(|r| format!("({})", r.join(","))).collect();
            format!("({} {}in ({}))", row(left)?, not(*negated), rows.join(","))
        }
        Trim { side, what, expr } => {
            let side = match side {
                TrimSide::Both => "both ",
                TrimSide::Leading => "leading ",
                TrimSide::Trailing => "trailing ",
            };
            match what {
                Some(what) => {
                    let (what, expr) = (p.text(what, scope)?, p.text(expr, scope)?);
                    format!("trim({side}{what} from {expr})")
                }
                None => format!("trim({})", p.text(expr, scope)?),
            }
        }
        Default(v) => p.value(v, e),
        Subquery { index, use_as } => subquery(p, (*index).into(), use_as, scope)?,
        _ => return None,
    })
}

/// Whether a subquery is a condition, not a value.
pub(super) fn is_condition(use_as: &SubqueryUse) -> bool {
    !matches!(use_as, SubqueryUse::Scalar | SubqueryUse::Column(_))
}

fn subquery(
    p: &Printer<'_>,
    index: usize,
    use_as: &SubqueryUse,
    scope: Scope<'_>,
) -> Option<String> {
    let block = match scope {
        Scope::Tables(block) | Scope::Groups(block) => block,
        Scope::None => return None,
    };
    let query = (p.names?.subquery)(block.subqueries.get(index)?);
    Some(match use_as {
        SubqueryUse::Scalar => format!("({query})"),
        SubqueryUse::Column(n) => format!("({query}).{}", n + 1),
        SubqueryUse::Exists => format!("exists({query})"),
        SubqueryUse::In { left, negated, .. } => {
            let left = match left.as_slice() {
                [one] => p.text(one, scope)?,
                list => format!("({})", p.list(list, ",", scope)?),
            };
            let test = match p.names?.short {
                true => format!("<in_optimizer>({left},{left} in ({query}))"),
                false => format!("({left} in ({query}))"),
            };
            match negated {
                true => format!("(not({test}))"),
                false => test,
            }
        }
        SubqueryUse::Quantified { left, op, all, .. } => {
            let left = p.text(left, scope)?;
            let word = if *all { "all" } else { "any" };
            format!("({left} {} {word} ({query}))", op.symbol())
        }
    })
}
