//! Constants in conditions that have to be computed: `d > NOW() - INTERVAL 1 DAY`. The executor
//! computes each once in an execution, not for each row. So does MySQL, and such a constant warns
//! once.

use crate::logical::context::PlanCx;
use crate::logical::expr::{ArithOp, Class, CmpKind, Expr, ExprKind, is_constant};
use crate::logical::func::{COMPUTED_ONCE, FuncSet, PADDED, YEAR_CONSTANT, is_volatile};
use crate::physical::query::Block;

/// Functions that return one of their arguments. A reader may want the argument, not its text.
const PASSING: [&str; 6] = ["if", "ifnull", "coalesce", "nullif", "greatest", "least"];

/// Marks the computed constants in the conditions of a block whose tables are joined. MySQL
/// computes them once, and warns once. In UPDATE and DELETE of one table it does so only for
/// members of lists and constants that are compared with dates, and warns about the others for each
/// row.
pub(super) fn compute_once(cx: &PlanCx<'_>, block: &mut Block) {
    let mark = match block.changed != 0 && block.tables.len() == 1 {
        true => mark_converted,
        false => mark,
    };
    for step in &mut block.joins {
        let conditions = step.on.iter_mut().chain(&mut step.filter);
        conditions.for_each(|e| mark(cx.funcs, e));
    }
    block.having.iter_mut().for_each(|e| mark(cx.funcs, e));
}

/// Marks the computed members of lists, and computed constants beside dates.
fn mark_converted(funcs: &dyn FuncSet, e: &mut Expr) {
    match &mut e.kind {
        ExprKind::In { list, .. } if list.len() > 1 => {
            list.iter_mut().for_each(|(_, member)| mark(funcs, member));
        }
        ExprKind::Compare {
            kind: CmpKind::DateTime,
            sides,
            ..
        } => sides.iter_mut().for_each(|side| mark(funcs, side)),
        _ => e.each_child_mut(&mut |child| mark_converted(funcs, child)),
    }
}

fn mark(funcs: &dyn FuncSet, e: &mut Expr) {
    if !is_computed(e) {
        return e.each_child_mut(&mut |child| mark(funcs, child));
    }
    let variable = |e: &Expr| matches!(e.kind, ExprKind::UserVar(_) | ExprKind::SysVar { .. });
    if !is_constant(e) || e.any(&mut |e| variable(e)) || is_volatile(funcs, e) {
        return e.each_child_mut(&mut |child| mark(funcs, child));
    }
    if let ExprKind::Call { func, .. } = &e.kind {
        let name = funcs.get(*func).name;
        if PASSING.contains(&name) || [PADDED, YEAR_CONSTANT, COMPUTED_ONCE].contains(&name) {
            return;
        }
    }
    if let Some((func, _)) = funcs.find(COMPUTED_ONCE) {
        let constant = std::mem::replace(e, Expr::null());
        e.ty = constant.ty.clone();
        e.kind = ExprKind::Call {
            func,
            args: vec![constant],
        };
    }
}

/// Whether an expression is a function, or arithmetic or a cast that may warn or is expensive. Sums
/// of exact numbers are left alone: lists of them are prepared as they are.
fn is_computed(e: &Expr) -> bool {
    use ExprKind::{Arith, Call, Cast, Const, Extract, IntervalArith, Param, TimestampDiff};
    let exact = |e: &Expr| matches!(e.ty.class(), Class::Int | Class::Decimal);
    let (number, temporal) = (e.ty.class().is_number(), e.ty.class().is_temporal());
    match &e.kind {
        _ if matches!(e.ty.class(), Class::Json | Class::Null) => false,
        Call { .. } | IntervalArith { .. } | Extract { .. } | TimestampDiff { .. } => true,
        Cast { expr, .. } if number && expr.ty.class() == Class::String => true,
        // The text is parsed.
        Cast { expr, .. } if temporal && expr.ty.class() == Class::String => true,
        Cast { expr, .. } => !matches!(expr.kind, Const(_) | Param(_)),
        Arith(ArithOp::Div | ArithOp::IntDiv | ArithOp::Mod, _) => true,
        Arith(_, sides) => !sides.iter().all(exact),
        _ => false,
    }
}
