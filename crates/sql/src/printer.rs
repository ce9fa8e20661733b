//! Prints expressions and queries as text, with every operation in parentheses and every name in
//! backquotes.
//!
//! The text parses to the same tree, except for parameters, which are printed as `?` with their
//! slot in a comment. It does not depend on sql_mode, except for ANSI_QUOTES and
//! NO_BACKSLASH_ESCAPES. It is used by EXPLAIN, for stored expressions, and by tests.

mod json;
mod query;

use crate::ast::*;
use std::fmt::{Display, Formatter, Result, Write};

/// A name in backquotes.
pub struct Quoted<'a>(pub &'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_char('`')?;
        for c in self.0.chars() {
            f.write_str(if c == '`' { "``" } else { "" })?;
            if c != '`' {
                f.write_char(c)?;
            }
        }
        f.write_char('`')
    }
}

/// A string in single quotes. Bytes that are not UTF-8 are printed as hexadecimal digits.
struct Text<'a>(&'a [u8]);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Ok(text) = std::str::from_utf8(self.0) else {
            return Hex(self.0).fmt(f);
        };
        f.write_char('\'')?;
        for c in text.chars() {
            match c {
                '\'' => f.write_str("''")?,
                '\\' => f.write_str("\\\\")?,
                '\0' => f.write_str("\\0")?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('\'')
    }
}

struct Hex<'a>(&'a [u8]);

impl Display for Hex<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str("x'")?;
        for b in self.0 {
            write!(f, "{b:02x}")?;
        }
        f.write_char('\'')
    }
}

/// A list of members separated by commas.
struct Commas<'a, T>(&'a [T]);

impl<T: Display> Display for Commas<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        for (i, member) in self.0.iter().enumerate() {
            f.write_str(if i == 0 { "" } else { ", " })?;
            member.fmt(f)?;
        }
        Ok(())
    }
}

fn not(negated: bool) -> &'static str {
    if negated { "not " } else { "" }
}

impl Display for ColumnRef {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        for qualifier in [&self.schema, &self.table].into_iter().flatten() {
            write!(f, "{}.", Quoted(&qualifier.value))?;
        }
        Quoted(&self.name.value).fmt(f)
    }
}

impl Display for Literal {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Literal::Null => f.write_str("NULL"),
            Literal::Bool(b) => f.write_str(if *b { "true" } else { "false" }),
            Literal::Int(i) => i.fmt(f),
            Literal::Decimal(text) | Literal::Float(text) => f.write_str(text),
            Literal::String(s) => {
                if let Some(charset) = &s.charset {
                    write!(f, "_{charset}")?;
                }
                Text(&s.bytes).fmt(f)
            }
            Literal::Hex(bytes) => Hex(bytes).fmt(f),
            Literal::Bit(bytes) => {
                f.write_str("b'")?;
                for b in bytes {
                    write!(f, "{b:08b}")?;
                }
                f.write_char('\'')
            }
            Literal::Temporal { kind, text, .. } => write!(f, "{}{}", temporal(*kind), Text(text)),
        }
    }
}

fn temporal(kind: TemporalKind) -> &'static str {
    match kind {
        TemporalKind::Date => "DATE",
        TemporalKind::Time => "TIME",
        TemporalKind::Timestamp => "TIMESTAMP",
    }
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Expr::Literal(literal) => literal.fmt(f),
            Expr::Param(n) => write!(f, "? /* {n} */"),
            Expr::Column(column) => column.fmt(f),
            Expr::UserVar(name) => write!(f, "@{}", Quoted(name)),
            Expr::AssignUserVar { name, value } => write!(f, "(@{} := {value})", Quoted(name)),
            Expr::SysVar { scope, name } => write!(f, "@@{}{name}", scope_prefix(*scope)),
            Expr::Unary { op, expr } => write!(f, "({}{expr})", unary(*op)),
            Expr::Binary { op, left, right } => write!(f, "({left} {} {right})", op.symbol()),
            Expr::And(members) => chain(f, members, " and "),
            Expr::Or(members) => chain(f, members, " or "),
            Expr::Xor(a, b) => write!(f, "({a} xor {b})"),
            Expr::Not(a) => write!(f, "(not({a}))"),
            Expr::Is {
                expr,
                test,
                negated,
            } => write!(f, "({expr} is {}{})", not(*negated), is_test(*test)),
            Expr::Between {
                expr,
                low,
                high,
                negated,
            } => {
                write!(f, "({expr} {}between {low} and {high})", not(*negated))
            }
            Expr::InList {
                expr,
                list: InList::Exprs(list),
                negated,
            } => {
                write!(f, "({expr} {}in ({}))", not(*negated), Commas(list))
            }
            Expr::InList {
                expr,
                list: InList::ListParam(n),
                negated,
            } => {
                write!(f, "({expr} {}in (? /* list {n} */))", not(*negated))
            }
            Expr::InSubquery {
                expr,
                query,
                negated,
            } => write!(f, "({expr} {}in ({query}))", not(*negated)),
            Expr::Exists(query) => write!(f, "exists({query})"),
            Expr::Subquery(query) => write!(f, "({query})"),
            Expr::Quantified {
                op,
                expr,
                all,
                query,
            } => {
                write!(
                    f,
                    "({expr} {} {} ({query}))",
                    op.symbol(),
                    if *all { "all" } else { "any" }
                )
            }
            Expr::Like {
                expr,
                pattern,
                escape,
                negated,
            } => {
                write!(f, "({expr} {}like {pattern}", not(*negated))?;
                if let Some(escape) = escape {
                    write!(f, " escape {escape}")?;
                }
                f.write_char(')')
            }
            Expr::Regexp {
                expr,
                pattern,
                negated,
            } => write!(f, "({expr} {}regexp {pattern})", not(*negated)),
            Expr::SoundsLike(a, b) => write!(f, "({a} sounds like {b})"),
            Expr::MemberOf(a, b) => write!(f, "({a} member of ({b}))"),
            Expr::Collate { expr, collation } => write!(f, "({expr} collate {collation})"),
            Expr::Row(members) => write!(f, "({})", Commas(members)),
            other => other.fmt_call(f),
        }
    }
}

impl Expr {
    /// Prints expressions that have the syntax of a function call.
    fn fmt_call(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Expr::Case {
                operand,
                whens,
                otherwise,
            } => {
                f.write_str("(case")?;
                if let Some(operand) = operand {
                    write!(f, " {operand}")?;
                }
                for (when, then) in whens {
                    write!(f, " when {when} then {then}")?;
                }
                if let Some(otherwise) = otherwise {
                    write!(f, " else {otherwise}")?;
                }
                f.write_str(" end)")
            }
            Expr::Cast { expr, ty, array } => {
                write!(
                    f,
                    "cast({expr} as {ty}{})",
                    if *array { " array" } else { "" }
                )
            }
            Expr::ConvertUsing { expr, charset } => write!(f, "convert({expr} using {charset})"),
            Expr::IntervalArith {
                expr,
                amount,
                unit,
                subtract,
            } => {
                let sign = if *subtract { '-' } else { '+' };
                write!(
                    f,
                    "({expr} {sign} interval {amount} {})",
                    unit.name().to_lowercase()
                )
            }
            Expr::Extract { unit, expr } => {
                write!(f, "extract({} from {expr})", unit.name().to_lowercase())
            }
            Expr::TimestampDiff { unit, from, to } => {
                write!(
                    f,
                    "timestampdiff({},{from},{to})",
                    unit.name().to_lowercase()
                )
            }
            Expr::Trim { side, what, expr } => {
                let side = match side {
                    TrimSide::Both => "both",
                    TrimSide::Leading => "leading",
                    TrimSide::Trailing => "trailing",
                };
                match what {
                    Some(what) => write!(f, "trim({side} {what} from {expr})"),
                    None => write!(f, "trim({side} from {expr})"),
                }
            }
            Expr::Char {
                args,
                charset: Some(charset),
            } => write!(f, "char({} using {charset})", Commas(args)),
            Expr::Char {
                args,
                charset: None,
            } => write!(f, "char({})", Commas(args)),
            Expr::Function(call) => call.fmt(f),
            Expr::JsonValue(call) => call.fmt(f),
            Expr::Default(None) => f.write_str("default"),
            Expr::Default(Some(column)) => write!(f, "default({column})"),
            Expr::Values(column) => write!(f, "values({column})"),
            Expr::Match {
                columns,
                against,
                mode,
            } => {
                let mode = match mode {
                    MatchMode::NaturalLanguage => "",
                    MatchMode::Boolean => " in boolean mode",
                    MatchMode::QueryExpansion => " with query expansion",
                };
                write!(f, "match ({}) against ({against}{mode})", Commas(columns))
            }
            _ => Ok(()),
        }
    }
}

fn scope_prefix(scope: Option<VarScope>) -> &'static str {
    match scope {
        None => "",
        Some(VarScope::Global) => "global.",
        Some(VarScope::Session) => "session.",
        Some(VarScope::Persist) => "persist.",
        Some(VarScope::PersistOnly) => "persist_only.",
    }
}

fn unary(op: UnaryOp) -> &'static str {
    match op {
        UnaryOp::Plus => "+",
        // `--` before a blank starts a comment, so each minus is followed by a blank.
        UnaryOp::Minus => "- ",
        UnaryOp::BitNot => "~",
        UnaryOp::Binary => "binary ",
    }
}

fn is_test(test: IsTest) -> &'static str {
    match test {
        IsTest::Null => "null",
        IsTest::True => "true",
        IsTest::False => "false",
        IsTest::Unknown => "unknown",
    }
}

fn chain(f: &mut Formatter<'_>, members: &[Expr], word: &str) -> Result {
    for (i, member) in members.iter().enumerate() {
        write!(f, "{}{member}", if i == 0 { "(" } else { word })?;
    }
    f.write_char(')')
}

impl Display for FunctionCall {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if let Some(schema) = &self.schema {
            write!(f, "{}.", Quoted(&schema.value))?;
        }
        // The name of a user function may contain any characters. Built-in names are plain words.
        let plain = self
            .name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if plain {
            f.write_str(&self.name)?;
        } else {
            Quoted(&self.name).fmt(f)?;
        }
        if let ("get_format", [Expr::Literal(Literal::String(kind)), which]) =
            (self.name.as_str(), &self.args[..])
        {
            return write!(f, "({}, {which})", String::from_utf8_lossy(&kind.bytes));
        }
        let distinct = if self.distinct { "distinct " } else { "" };
        let star = if self.star { "*" } else { "" };
        write!(f, "({distinct}{star}{}", Commas(&self.args))?;
        if !self.order_by.is_empty() {
            write!(f, " order by {}", Commas(&self.order_by))?;
        }
        if let Some(separator) = &self.separator {
            write!(f, " separator {}", Text(separator))?;
        }
        f.write_char(')')?;
        match &self.over {
            Some(window) => write!(f, " over {window}"),
            None => Ok(()),
        }
    }
}

impl Display for Window {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if let (false, Some(name)) = (self.written, &self.name) {
            return Quoted(&name.value).fmt(f);
        }
        f.write_char('(')?;
        if let Some(name) = &self.name {
            write!(f, "{} ", Quoted(&name.value))?;
        }
        if !self.partition_by.is_empty() {
            write!(f, "partition by {} ", Commas(&self.partition_by))?;
        }
        if !self.order_by.is_empty() {
            write!(f, "order by {} ", Commas(&self.order_by))?;
        }
        if let Some(frame) = &self.frame {
            let unit = if frame.range { "range" } else { "rows" };
            write!(f, "{unit} between {} and {}", frame.start, frame.end)?;
        }
        f.write_char(')')
    }
}

impl Display for FrameBound {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let side = |following: bool| if following { "following" } else { "preceding" };
        match self {
            FrameBound::CurrentRow => f.write_str("current row"),
            FrameBound::Unbounded { following } => write!(f, "unbounded {}", side(*following)),
            FrameBound::By {
                amount,
                unit,
                following,
            } => match unit {
                None => write!(f, "{amount} {}", side(*following)),
                Some(unit) => write!(f, "interval {amount} {} {}", unit.name(), side(*following)),
            },
        }
    }
}

impl Display for TypeSpec {
    /// The type of a CAST.
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(self.kind.cast_name())?;
        match (self.length, self.decimals) {
            (Some(length), Some(decimals)) => write!(f, "({length},{decimals})")?,
            (Some(length), None) => write!(f, "({length})")?,
            _ => {}
        }
        if let Some(charset) = &self.charset {
            write!(f, " charset {charset}")?;
        }
        if self.binary {
            f.write_str(" binary")?;
        }
        Ok(())
    }
}
