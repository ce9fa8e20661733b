//! `PAD_CHAR_TO_FULL_LENGTH`: wherever a statement reads a CHAR column, the value has its trailing spaces. The column becomes an argument
//! of a function, so no fast path and no index takes it for the bytes that are stored.

use nfold_types::TypeKind;

use super::from::OuterJoin;
use crate::logical::context::PlanCx;
use crate::logical::expr::{Expr, ExprKind};
use crate::query::{Block, TableSource};

/// Wraps the CHAR columns in `e` of the slots for which `stored` holds, and those of enclosing queries.
pub(super) fn pad(cx: &PlanCx<'_>, stored: &dyn Fn(usize) -> bool, e: &mut Expr) {
    if !cx
        .mode
        .has(crate::logical::mode::SqlMode::PAD_CHAR_TO_FULL_LENGTH)
    {
        return;
    }
    let own = match e.kind {
        ExprKind::Column(at) => stored(usize::from(at.table)),
        ExprKind::Outer { .. } | ExprKind::Default(_) => true,
        _ => return e.each_child_mut(&mut |child| pad(cx, stored, child)),
    };
    if let (true, TypeKind::Char(_), Some((func, _))) = (
        own,
        &e.ty.col.kind,
        cx.funcs.find(crate::logical::func::PADDED),
    ) {
        let column = std::mem::replace(e, Expr::null());
        e.ty = column.ty.clone();
        e.kind = ExprKind::Call {
            func,
            args: vec![column],
        };
    }
}

/// All that a block reads from its tables: its conditions, and what is grouped, selected and sorted by.
pub(crate) fn pad_block(
    cx: &PlanCx<'_>,
    block: &mut Block,
    conditions: &mut [Expr],
    outer_joins: &mut [OuterJoin],
) {
    if !cx
        .mode
        .has(crate::logical::mode::SqlMode::PAD_CHAR_TO_FULL_LENGTH)
    {
        return;
    }
    let tables = std::mem::take(&mut block.tables);
    let stored = |t: usize| {
        let source = tables.get(t).map(|slot| &slot.source);
        matches!(source, Some(TableSource::Table(_)))
    };
    let mut each = |e: &mut Expr| pad(cx, &stored, e);
    conditions.iter_mut().for_each(&mut each);
    for join in outer_joins {
        join.on.iter_mut().for_each(&mut each);
    }
    match &mut block.group {
        // Above the groups the values are those of the keys.
        Some(group) => {
            group.keys.iter_mut().for_each(&mut each);
            for a in &mut group.aggregates {
                a.args.iter_mut().for_each(&mut each);
                a.order.iter_mut().for_each(|k| each(&mut k.expr));
            }
        }
        None => {
            block.having.iter_mut().for_each(&mut each);
            for pass in &mut block.windows {
                pass.each_expr_mut(&mut each);
            }
            block.select.iter_mut().for_each(&mut each);
            block.order.iter_mut().for_each(|k| each(&mut k.expr));
        }
    }
    block.tables = tables;
}
