//! The names that MySQL's warnings about a value show: what the value belongs to.
//!
//! A select item is named by its alias or text. An argument is named by its text, unless the name
//! of the function is a keyword; then it has no name.

use nfold_sql::ast;

use super::BlockBinder;
use crate::logical::expr::{Class, Expr, ExprKind, ExprType, ItemName};

/// Whether the value of an expression may bring warning 1264 with its name.
fn is_decimal_cast(e: &Expr) -> bool {
    matches!(&e.kind, ExprKind::Cast { to, .. } if Class::of(to) == Class::Decimal)
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
        if args.len() != call.args.len() {
            return;
        }
        for (n, (arg, span)) in args.iter_mut().zip(&call.arg_spans).enumerate() {
            let parameter = |e: &Expr| matches!(e.kind, ExprKind::Param(_));
            if !(date == Some(n) || is_decimal_cast(arg)) || arg.any(&mut |e| parameter(e)) {
                continue;
            }
            arg.ty.item_name = match &call.args[n] {
                ast::Expr::Column(c) => ItemName::new(&c.name.value),
                _ => ItemName::new(&String::from_utf8_lossy(span.of(self.cx.text))),
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
