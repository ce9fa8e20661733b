//! Walks over a syntax tree of an expression.

use crate::ast::{ColumnRef, Expr, InList};

/// Calls `f` on each direct operand. Subqueries and windows are not entered.
pub fn each_child<'e>(e: &'e Expr, f: &mut dyn FnMut(&'e Expr)) {
    use Expr::*;
    match e {
        Literal(_) | Param(_) | Column(_) | UserVar(_) | SysVar { .. } | Default(_) | Values(_) => {
        }
        Exists(_) | Subquery(_) => {}
        AssignUserVar { value: a, .. }
        | Unary { expr: a, .. }
        | Not(a)
        | Is { expr: a, .. }
        | Cast { expr: a, .. }
        | ConvertUsing { expr: a, .. }
        | Collate { expr: a, .. }
        | Extract { expr: a, .. }
        | InSubquery { expr: a, .. }
        | Quantified { expr: a, .. }
        | Match { against: a, .. } => f(a),
        Binary { left, right, .. } => [left, right].into_iter().for_each(|e| f(e)),
        Xor(a, b) | SoundsLike(a, b) | MemberOf(a, b) => [a, b].into_iter().for_each(|e| f(e)),
        Regexp { expr, pattern, .. } => [expr, pattern].into_iter().for_each(|e| f(e)),
        IntervalArith { expr, amount, .. } => [expr, amount].into_iter().for_each(|e| f(e)),
        TimestampDiff { from, to, .. } => [from, to].into_iter().for_each(|e| f(e)),
        And(list) | Or(list) | Row(list) | Char { args: list, .. } => list.iter().for_each(f),
        Between {
            expr, low, high, ..
        } => [expr, low, high].into_iter().for_each(|e| f(e)),
        InList { expr, list, .. } => {
            f(expr);
            if let self::InList::Exprs(list) = list {
                list.iter().for_each(f);
            }
        }
        Like {
            expr,
            pattern,
            escape,
            ..
        } => {
            f(expr);
            f(pattern);
            escape.iter().for_each(|e| f(e));
        }
        Case {
            operand,
            whens,
            otherwise,
        } => {
            operand.iter().for_each(|e| f(e));
            for (when, then) in whens {
                f(when);
                f(then);
            }
            otherwise.iter().for_each(|e| f(e));
        }
        Trim { what, expr, .. } => {
            what.iter().for_each(|e| f(e));
            f(expr);
        }
        Function(call) => call.args.iter().for_each(f),
        JsonValue(call) => f(&call.document),
    }
}

/// The columns that an expression names, DEFAULT(column) among them.
pub fn columns(e: &Expr) -> Vec<&ColumnRef> {
    fn walk<'e>(e: &'e Expr, found: &mut Vec<&'e ColumnRef>) {
        match e {
            Expr::Column(c) | Expr::Default(Some(c)) | Expr::Values(c) => found.push(c),
            e => each_child(e, &mut |e| walk(e, found)),
        }
    }
    let mut found = Vec::new();
    walk(e, &mut found);
    found
}
