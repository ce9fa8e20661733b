//! Prints queries as text.

use super::{Commas, Quoted, Text};
use crate::ast::*;
use std::fmt::{Display, Formatter, Result};

/// `schema`.`name`
struct Name<'a>(&'a ObjectName);

impl Display for Name<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if let Some(schema) = &self.0.schema {
            write!(f, "{}.", Quoted(&schema.value))?;
        }
        Quoted(&self.0.name.value).fmt(f)
    }
}

/// A list of names separated by commas.
struct Names<'a>(&'a [Ident]);

impl Display for Names<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        for (i, name) in self.0.iter().enumerate() {
            write!(
                f,
                "{}{}",
                if i == 0 { "" } else { ", " },
                Quoted(&name.value)
            )?;
        }
        Ok(())
    }
}

/// Prints `(names)`, or nothing.
fn columns(f: &mut Formatter<'_>, names: &[Ident]) -> Result {
    if names.is_empty() {
        Ok(())
    } else {
        write!(f, " ({})", Names(names))
    }
}

impl Display for Query {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if let Some(with) = &self.with {
            write!(f, "with {}", if with.recursive { "recursive " } else { "" })?;
            for (i, table) in with.tables.iter().enumerate() {
                write!(
                    f,
                    "{}{}",
                    if i == 0 { "" } else { ", " },
                    Quoted(&table.name.value)
                )?;
                columns(f, &table.columns)?;
                write!(f, " as ({})", table.query)?;
            }
            f.write_str(" ")?;
        }
        self.body.fmt(f)?;
        if !self.order_by.is_empty() {
            write!(f, " order by {}", Commas(&self.order_by))?;
        }
        if let Some(limit) = &self.limit {
            write!(f, " limit {}", limit.count)?;
            if let Some(offset) = &limit.offset {
                write!(f, " offset {offset}")?;
            }
        }
        for locking in &self.locking {
            locking.fmt(f)?;
        }
        match &self.into {
            None => Ok(()),
            Some(SelectInto::Outfile(to)) => write!(f, " into outfile {}", Text(&to.file)),
            Some(SelectInto::Dumpfile(file)) => write!(f, " into dumpfile {}", Text(file)),
            Some(SelectInto::Variables(names)) => {
                f.write_str(" into ")?;
                for (i, name) in names.iter().enumerate() {
                    write!(f, "{}@{}", if i == 0 { "" } else { ", " }, Quoted(name))?;
                }
                Ok(())
            }
        }
    }
}

impl Display for Locking {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self.strength {
            LockStrength::Update => " for update",
            LockStrength::Share => " for share",
        })?;
        for (i, table) in self.of.iter().enumerate() {
            write!(f, "{}{}", if i == 0 { " of " } else { ", " }, Name(table))?;
        }
        f.write_str(match self.wait {
            LockWait::Wait => "",
            LockWait::NoWait => " nowait",
            LockWait::SkipLocked => " skip locked",
        })
    }
}

impl Display for QueryBody {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            QueryBody::Select(select) => select.fmt(f),
            QueryBody::SetOperation {
                op,
                distinct,
                left,
                right,
            } => {
                let op = match op {
                    SetOp::Union => "union",
                    SetOp::Intersect => "intersect",
                    SetOp::Except => "except",
                };
                write!(
                    f,
                    "{left} {op} {}{right}",
                    if *distinct { "" } else { "all " }
                )
            }
            QueryBody::Paren(query) => write!(f, "({query})"),
            QueryBody::Values(rows) => {
                for (i, row) in rows.iter().enumerate() {
                    write!(
                        f,
                        "{}row({})",
                        if i == 0 { "values " } else { ", " },
                        Commas(row)
                    )?;
                }
                Ok(())
            }
            QueryBody::Table(name) => write!(f, "table {}", Name(name)),
        }
    }
}

impl Display for Select {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str("select ")?;
        let options = &self.options;
        if let Some(ms) = options.max_execution_ms {
            write!(f, "/*+ max_execution_time({ms}) */ ")?;
        }
        for (on, word) in [
            (self.distinct, "distinct "),
            (options.straight_join, "straight_join "),
            (options.sql_calc_found_rows, "sql_calc_found_rows "),
            (options.high_priority, "high_priority "),
            (options.sql_small_result, "sql_small_result "),
            (options.sql_big_result, "sql_big_result "),
            (options.sql_buffer_result, "sql_buffer_result "),
        ] {
            f.write_str(if on { word } else { "" })?;
        }
        Commas(&self.items).fmt(f)?;
        if !self.from.is_empty() {
            write!(f, " from {}", Commas(&self.from))?;
        }
        if let Some(selection) = &self.selection {
            write!(f, " where {selection}")?;
        }
        if !self.group_by.is_empty() {
            write!(f, " group by {}", Commas(&self.group_by))?;
        }
        if self.with_rollup {
            f.write_str(" with rollup")?;
        }
        if let Some(having) = &self.having {
            write!(f, " having {having}")?;
        }
        for (i, (name, window)) in self.windows.iter().enumerate() {
            write!(
                f,
                "{}{} as {window}",
                if i == 0 { " window " } else { ", " },
                Quoted(&name.value)
            )?;
        }
        Ok(())
    }
}

impl Display for SelectItem {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            SelectItem::Star => f.write_str("*"),
            SelectItem::TableStar(name) => write!(f, "{}.*", Name(name)),
            SelectItem::Expr {
                expr, alias: None, ..
            } => expr.fmt(f),
            SelectItem::Expr {
                expr,
                alias: Some(alias),
                ..
            } => write!(f, "{expr} as {}", Quoted(&alias.value)),
        }
    }
}

impl Display for OrderItem {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(
            f,
            "{}{}",
            self.expr,
            if self.descending { " desc" } else { "" }
        )
    }
}

impl Display for TableRef {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            TableRef::Table(table) => table.fmt(f),
            TableRef::Derived {
                lateral,
                query,
                alias,
                columns: names,
            } => {
                write!(
                    f,
                    "{}({query}) as {}",
                    if *lateral { "lateral " } else { "" },
                    Quoted(&alias.value)
                )?;
                columns(f, names)
            }
            TableRef::Join(join) => join.fmt(f),
            TableRef::JsonTable(table) => table.fmt(f),
        }
    }
}

impl Display for Join {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let kind = match (self.kind, &self.constraint) {
            (JoinKind::Inner, JoinConstraint::Natural) => "natural join",
            (JoinKind::Left, JoinConstraint::Natural) => "natural left join",
            (JoinKind::Right, JoinConstraint::Natural) => "natural right join",
            (JoinKind::Straight, _) => "straight_join",
            (JoinKind::Inner, _) => "join",
            (JoinKind::Left, _) => "left join",
            (JoinKind::Right, _) => "right join",
        };
        write!(f, "({} {kind} {}", self.left, self.right)?;
        match &self.constraint {
            JoinConstraint::On(condition) => write!(f, " on {condition}")?,
            JoinConstraint::Using(names) => write!(f, " using ({})", Names(names))?,
            JoinConstraint::None | JoinConstraint::Natural => {}
        }
        f.write_str(")")
    }
}

impl Display for TableFactor {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        Name(&self.name).fmt(f)?;
        if !self.partitions.is_empty() {
            write!(f, " partition ({})", Names(&self.partitions))?;
        }
        if let Some(alias) = &self.alias {
            write!(f, " as {}", Quoted(&alias.value))?;
        }
        for hint in &self.hints {
            let kind = match hint.kind {
                IndexHintKind::Use => "use",
                IndexHintKind::Ignore => "ignore",
                IndexHintKind::Force => "force",
            };
            let scope = match hint.scope {
                IndexHintScope::All => "",
                IndexHintScope::Join => " for join",
                IndexHintScope::OrderBy => " for order by",
                IndexHintScope::GroupBy => " for group by",
            };
            write!(f, " {kind} index{scope} ({})", Names(&hint.indexes))?;
        }
        Ok(())
    }
}
