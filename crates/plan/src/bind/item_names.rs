//! The names that MySQL gives to items, where a warning about a value shows them.
//!
//! A select item and an argument of a function called by an ordinary name are named by their text.
//! The arguments of functions whose names are keywords have no name.

use nfold_sql::ast;

use super::BlockBinder;
use crate::logical::expr::{Class, Expr, ExprKind, ExprType, ItemName};

/// Functions with arguments of names that are keywords.
const KEYWORDS: [&str; 30] = [
    "ascii",
    "char",
    "charset",
    "coalesce",
    "collation",
    "date",
    "day",
    "format",
    "hour",
    "if",
    "insert",
    "interval",
    "left",
    "microsecond",
    "minute",
    "mod",
    "month",
    "now",
    "quarter",
    "repeat",
    "replace",
    "reverse",
    "right",
    "second",
    "time",
    "timestamp",
    "truncate",
    "week",
    "weight_string",
    "year",
];

/// Whether the value of an expression may bring warning 1264 with its name.
fn is_decimal_cast(e: &Expr) -> bool {
    matches!(e.kind, ExprKind::Cast(_)) && e.ty.class() == Class::Decimal
}

/// Names a select item.
pub(super) fn name_selected(e: &mut Expr, name: &str) {
    if is_decimal_cast(e) {
        e.ty.item_name = ItemName::new(name);
    }
}

/// The position of the DATETIME that MySQL names when another argument of GREATEST or LEAST is no
/// date: the first, or the first TIMESTAMP if there is none.
fn named_date(args: &[Expr]) -> Option<usize> {
    let of_kind = |timestamp: bool| {
        let mut args = args.iter().map(|e| &e.ty);
        args.position(|ty: &ExprType| {
            let stamp = matches!(ty.col.kind, nfold_types::TypeKind::Timestamp(_));
            ty.class() == Class::DateTime && stamp == timestamp
        })
    };
    of_kind(false).or_else(|| of_kind(true))
}

/// The texts of the arguments in the text of a call.
fn argument_texts(call: &str) -> Vec<&str> {
    let Some(start) = call.find('(') else {
        return Vec::new();
    };
    let (bytes, mut out) = (call.as_bytes(), Vec::new());
    let (mut at, mut begin, mut depth) = (start + 1, start + 1, 0);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\'' | b'"' | b'`' => {
                let quote = byte;
                at += 1;
                while bytes.get(at).is_some_and(|b| *b != quote) {
                    at += 1 + usize::from(bytes[at] == b'\\' && quote != b'`');
                }
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                at += call[at..].find("*/").unwrap_or(0) + 1;
                if depth == 0 && call[begin..].trim_start().starts_with("/*") {
                    begin = at + 1;
                }
            }
            b'(' => depth += 1,
            b')' if depth > 0 => depth -= 1,
            b',' | b')' if depth == 0 => {
                out.extend(call.get(begin..at).map(str::trim));
                begin = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    out
}

impl BlockBinder<'_> {
    /// Names those arguments of a call whose values may bring warnings with their names. The name
    /// of an argument with a parameter is not known.
    pub(super) fn name_arguments(&self, e: &mut Expr, call: &ast::FunctionCall) {
        let ExprKind::Call { args, .. } = &mut e.kind else {
            return;
        };
        let extreme = matches!(call.name.as_str(), "greatest" | "least");
        let date = match extreme && e.ty.class() == Class::String {
            true => named_date(args),
            false => None,
        };
        if date.is_none() && !args.iter().any(is_decimal_cast)
            || args.len() != call.args.len()
            || KEYWORDS.contains(&call.name.as_str())
        {
            return;
        }
        let written = String::from_utf8_lossy(call.span.of(self.cx.text));
        let texts = argument_texts(&written);
        for (n, arg) in args.iter_mut().enumerate() {
            let parameter = |e: &Expr| matches!(e.kind, ExprKind::Param(_));
            if !(date == Some(n) || is_decimal_cast(arg)) || arg.any(&mut |e| parameter(e)) {
                continue;
            }
            arg.ty.item_name = match &call.args[n] {
                ast::Expr::Column(c) => ItemName::new(&c.name.value),
                _ => texts
                    .get(n)
                    .map_or_else(ItemName::default, |t| ItemName::new(t)),
            };
        }
    }
}

/// Names the operand of IN, for the warnings about texts among dates.
pub(super) fn name_operand(left: &mut Expr, written: &ast::Expr, members: &[Expr]) {
    if let ast::Expr::Column(c) = written
        && left.ty.class() == Class::String
        && members.iter().any(|m| m.ty.class().is_temporal())
    {
        left.ty.item_name = ItemName::new(&c.name.value);
    }
}

#[cfg(test)]
mod tests {
    use super::argument_texts;

    #[test]
    fn argument_texts_are_split_at_top_level_commas() {
        let texts = argument_texts(r#"F( a , g(b, c), ',\'(' , /* x, */ "d)" )"#);
        assert_eq!(texts, ["a", "g(b, c)", r"',\'('", "\"d)\""]);
        assert_eq!(argument_texts("f()"), [""]);
        assert!(argument_texts("f").is_empty());
    }
}
