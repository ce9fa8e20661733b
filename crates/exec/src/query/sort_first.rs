//! ORDER BY of results with a side effect: `SELECT @n := @n + 1, v FROM t ORDER BY v`.
//!
//! If all sort keys are columns of the first table, MySQL sorts its rows before it computes the
//! results. So assignments to user variables happen in the order of the result, and only for the
//! rows within LIMIT. Here, the images of the joined rows are sorted as one record each, where
//! [`ordered`](super::ordered) sorts results.

use nfold_plan::expr::{Expr, ExprKind};
use nfold_plan::query::Block;
use nfold_types::SqlError;

use super::block::{Limiter, Run};
use crate::expr::eval::tuple::KeyMaker;
use crate::operators::cells::{put, take};
use crate::operators::row_out::{Limits, give_sorted, sorter_of};
use crate::runtime::Runtime;

/// Whether results are computed after the sort.
pub(crate) fn applies(block: &Block) -> bool {
    let Some(first) = block.joins.first() else {
        return false;
    };
    let assigns = |e: &Expr| e.any(&mut |e| matches!(e.kind, ExprKind::AssignUserVar(..)));
    let elsewhere = |e: &Expr| match &e.kind {
        ExprKind::Column(at) => usize::from(at.table) != first.table,
        ExprKind::AssignUserVar(..) | ExprKind::Subquery { .. } => true,
        _ => false,
    };
    let sorted = !block.order.is_empty()
        && !block.distinct
        && block.group.is_none()
        && block.windows.is_empty();
    sorted
        && block.select.iter().any(assigns)
        && !block
            .order
            .iter()
            .any(|k| k.expr.any(&mut |e| elsewhere(e)))
}

/// Sorts the joined rows of `run`, then passes the results to the consumer of `limiter`.
pub(crate) fn run(
    rt: &Runtime<'_>,
    block: &Block,
    run: Run<'_, '_>,
    limits: Limits,
    limiter: &mut Limiter<'_>,
) -> Result<(), SqlError> {
    let scx = run.scx;
    let mut sorter = sorter_of(rt, block, limits);
    let maker = KeyMaker::of_order(
        block.order.iter().map(|k| (&k.expr.ty, k.desc)),
        rt.env.max_sort_length(),
    );
    let (mut key, mut entry) = (Vec::new(), Vec::new());
    run.rows(&mut |cx, _| {
        key.clear();
        for (n, k) in block.order.iter().enumerate() {
            maker.push(n, &cx.val(&k.expr)?, &mut key)?;
        }
        entry.clear();
        cx.rows.iter().for_each(|row| put(row.image, &mut entry));
        sorter.push(rt, &key, &entry)?;
        Ok(true)
    })?;
    let rows = give_sorted(rt, sorter, &mut |mut entry| {
        let mut rows = scx.empty_rows();
        for (row, slot) in rows.iter_mut().zip(scx.slots) {
            let Some((image, rest)) = take(entry) else {
                break;
            };
            *row = slot.row(image);
            entry = rest;
        }
        limiter.row(&scx.eval(&rows), &block.select)
    })?;
    rt.count_sort(rows);
    Ok(())
}
