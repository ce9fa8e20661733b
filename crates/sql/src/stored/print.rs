//! The text of an expression in normal form.

use std::fmt::{Display, Formatter, Result, Write};

use crate::ast::*;
use crate::printer::Quoted;

/// An expression in normal form, as text.
pub(super) struct Printed<'a>(pub &'a Expr);

/// Members with commas between them.
struct Commas<'a>(&'a [Expr]);

impl Display for Commas<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        for (n, e) in self.0.iter().enumerate() {
            f.write_str(if n == 0 { "" } else { "," })?;
            Printed(e).fmt(f)?;
        }
        Ok(())
    }
}

/// A text with the escapes that it needs between single quotes.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\'' => out.push_str("\\'"),
            '\0' => out.push_str("\\0"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\u{1a}' => out.push_str("\\Z"),
            c => out.push(c),
        }
    }
    out
}

fn hex(bytes: &[u8], f: &mut Formatter<'_>) -> Result {
    f.write_str("0x")?;
    bytes.iter().try_for_each(|b| write!(f, "{b:02X}"))
}

fn string(s: &StringLiteral, f: &mut Formatter<'_>) -> Result {
    if let Some(charset) = &s.charset {
        write!(f, "_{charset}")?;
    }
    let utf8 = s.charset.as_deref().is_none_or(|c| c.starts_with("utf8"));
    match std::str::from_utf8(&s.bytes) {
        Ok(text) if utf8 || text.is_ascii() => write!(f, "'{}'", escaped(text)),
        _ => {
            f.write_char(' ')?;
            hex(&s.bytes, f)
        }
    }
}

fn literal(l: &Literal, f: &mut Formatter<'_>) -> Result {
    match l {
        Literal::String(s) => string(s, f),
        Literal::Hex(bytes) | Literal::Bit(bytes) => hex(bytes, f),
        other => other.fmt(f),
    }
}

fn chain(members: &[Expr], word: &str, f: &mut Formatter<'_>) -> Result {
    for (n, e) in members.iter().enumerate() {
        write!(f, "{}{}", if n == 0 { "(" } else { word }, Printed(e))?;
    }
    f.write_char(')')
}

fn cast_type(ty: &TypeSpec, array: bool, f: &mut Formatter<'_>) -> Result {
    f.write_str(ty.kind.cast_name())?;
    match (ty.length, ty.decimals) {
        (Some(length), Some(decimals)) if array => write!(f, "({length}, {decimals})")?,
        (Some(length), Some(decimals)) => write!(f, "({length},{decimals})")?,
        (Some(0), None) if ty.kind != TypeKind::Char => {}
        (Some(length), None) => write!(f, "({length})")?,
        _ => {}
    }
    match &ty.charset {
        Some(charset) => write!(f, " charset {charset}"),
        None => Ok(()),
    }
}

impl Display for Printed<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let not = |negated: bool| if negated { "not " } else { "" };
        match self.0 {
            Expr::Literal(l) => literal(l, f),
            Expr::Column(c) => Quoted(&c.name.value).fmt(f),
            Expr::Default(Some(c)) => write!(f, "default({})", Quoted(&c.name.value)),
            Expr::Unary { op, expr } => match op {
                UnaryOp::BitNot => write!(f, "~({})", Printed(expr)),
                _ => write!(f, "-({})", Printed(expr)),
            },
            Expr::Binary { op, left, right } => {
                write!(f, "({} {} {})", Printed(left), op.symbol(), Printed(right))
            }
            Expr::And(list) => chain(list, " and ", f),
            Expr::Or(list) => chain(list, " or ", f),
            Expr::Xor(a, b) => write!(f, "({} xor {})", Printed(a), Printed(b)),
            Expr::Not(e) => write!(f, "(not({}))", Printed(e)),
            Expr::Is {
                expr,
                test,
                negated,
            } => {
                let test = match test {
                    IsTest::True => "true",
                    IsTest::False => "false",
                    IsTest::Null | IsTest::Unknown => "null",
                };
                write!(f, "({} is {}{test})", Printed(expr), not(*negated))
            }
            Expr::Between {
                expr,
                low,
                high,
                negated,
            } => {
                write!(f, "({} {}between ", Printed(expr), not(*negated))?;
                write!(f, "{} and {})", Printed(low), Printed(high))
            }
            Expr::InList {
                expr,
                list: InList::Exprs(list),
                negated,
            } => write!(
                f,
                "({} {}in ({}))",
                Printed(expr),
                not(*negated),
                Commas(list)
            ),
            Expr::Like {
                expr,
                pattern,
                escape,
                ..
            } => {
                write!(f, "({} like {}", Printed(expr), Printed(pattern))?;
                if let Some(escape) = escape {
                    write!(f, " escape {}", Printed(escape))?;
                }
                f.write_char(')')
            }
            Expr::MemberOf(a, b) => write!(f, "{} member of ({})", Printed(a), Printed(b)),
            other => call(other, f),
        }
    }
}

/// Prints nodes with the syntax of a function call.
fn call(e: &Expr, f: &mut Formatter<'_>) -> Result {
    match e {
        Expr::Case {
            operand,
            whens,
            otherwise,
        } => {
            f.write_str("(case")?;
            if let Some(operand) = operand {
                write!(f, " {}", Printed(operand))?;
            }
            for (when, then) in whens {
                write!(f, " when {} then {}", Printed(when), Printed(then))?;
            }
            if let Some(otherwise) = otherwise {
                write!(f, " else {}", Printed(otherwise))?;
            }
            f.write_str(" end)")
        }
        Expr::Cast { expr, ty, array } => {
            write!(f, "cast({} as ", Printed(expr))?;
            cast_type(ty, *array, f)?;
            f.write_str(if *array { " array)" } else { ")" })
        }
        Expr::ConvertUsing { expr, charset } => {
            write!(f, "convert({} using {charset})", Printed(expr))
        }
        Expr::Collate { expr, collation } => write!(f, "({} collate {collation})", Printed(expr)),
        Expr::IntervalArith {
            expr,
            amount,
            unit,
            subtract,
        } => {
            let sign = if *subtract { '-' } else { '+' };
            let unit = unit.name().to_lowercase();
            write!(
                f,
                "({} {sign} interval {} {unit})",
                Printed(expr),
                Printed(amount)
            )
        }
        Expr::Extract { unit, expr } => {
            let unit = unit.name().to_lowercase();
            write!(f, "extract({unit} from {})", Printed(expr))
        }
        Expr::TimestampDiff { unit, from, to } => {
            let unit = unit.name().to_uppercase();
            write!(f, "timestampdiff({unit},{},{})", Printed(from), Printed(to))
        }
        Expr::Trim { side, what, expr } => {
            let side = match (side, what) {
                (TrimSide::Both, None) => "",
                (TrimSide::Both, Some(_)) => "both ",
                (TrimSide::Leading, _) => "leading ",
                (TrimSide::Trailing, _) => "trailing ",
            };
            match what {
                Some(what) => write!(f, "trim({side}{} from {})", Printed(what), Printed(expr)),
                None if side.is_empty() => write!(f, "trim({})", Printed(expr)),
                None => write!(f, "trim({side}_utf8mb4' ' from {})", Printed(expr)),
            }
        }
        Expr::Char { args, charset } => {
            write!(f, "char({}", Commas(args))?;
            match charset {
                Some(charset) => write!(f, " using {charset})"),
                None => f.write_char(')'),
            }
        }
        Expr::Row(list) => write!(f, "({})", Commas(list)),
        Expr::Function(call) => match (call.name.as_str(), &call.args[..]) {
            ("get_format", [Expr::Literal(Literal::String(kind)), which]) => {
                let kind = String::from_utf8_lossy(&kind.bytes).to_uppercase();
                write!(f, "get_format({kind}, {})", Printed(which))
            }
            (name, args) => write!(f, "{name}({})", Commas(args)),
        },
        // A refused one.
        other => other.fmt(f),
    }
}
