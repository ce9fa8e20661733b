//! ORDER BY before the results are computed: `SELECT @n := @n + 1, v FROM t ORDER BY v`, and
//! `SELECT SHA2(v, 256) FROM t ORDER BY v LIMIT 10`.
//!
//! If all sort keys are columns of the first table, MySQL sorts its rows before it computes the
//! results. So assignments to user variables happen in the order of the result, and only for the
//! rows within LIMIT; and only those rows cost the computation, and cause its warnings and errors.
//! Here, the images of the joined rows are sorted as one record each, where
//! [`ordered`](super::ordered) sorts results.

use nfold_plan::expr::{Class, Expr, ExprKind};
use nfold_plan::query::Block;
use nfold_types::SqlError;

use super::block::{Limiter, Run};
use crate::expr::eval::tuple::KeyMaker;
use crate::expr::func::{is_repeatable, is_unchanged};
use crate::operators::cells::{put, take};
use crate::operators::row_out::{Limits, give_sorted, sorter_of};
use crate::runtime::Runtime;

/// Which executions of a block compute its results after the sort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SortsFirst {
    Never,
    /// Those with a LIMIT. Without one, every result is computed anyway, and sorting results is
    /// cheaper than sorting whole rows.
    UnderLimit,
    Always,
}

impl SortsFirst {
    pub(crate) fn of(block: &Block) -> SortsFirst {
        let Some(first) = block.joins.first() else {
            return SortsFirst::Never;
        };
        let sorted = !block.order.is_empty()
            && !block.distinct
            && block.group.is_none()
            && block.windows.is_empty();
        let elsewhere = |e: &Expr| match &e.kind {
            ExprKind::Column(at) => usize::from(at.table) != first.table,
            _ => false,
        };
        let sorted = sorted
            && block
                .order
                .iter()
                .all(|k| is_repeatable(&k.expr) && !k.expr.any(&mut |e| elsewhere(e)));
        if !sorted {
            return SortsFirst::Never;
        }
        let assigns = |e: &Expr| e.any(&mut |e| matches!(e.kind, ExprKind::AssignUserVar(..)));
        let computed = |e: &Expr| {
            use ExprKind::{Column, Const, Param};
            !matches!(e.kind, Column(_) | Const(_) | Param(_))
        };
        match &block.select {
            select if select.iter().any(|e| assigns(e) || varies_in_scale(e)) => SortsFirst::Always,
            select if select.iter().any(computed) => SortsFirst::UnderLimit,
            _ => SortsFirst::Never,
        }
    }

    pub(crate) fn applies(self, limits: Limits) -> bool {
        match self {
            SortsFirst::Never => false,
            SortsFirst::UnderLimit => limits.count != u64::MAX,
            SortsFirst::Always => true,
        }
    }
}

/// Whether the scale of a DECIMAL depends on the row: stored for a sort, each value would have the
/// scale of the type.
fn varies_in_scale(e: &Expr) -> bool {
    e.ty.class() == Class::Decimal
        && match &e.kind {
            ExprKind::Case { .. } => true,
            ExprKind::Call { func, .. } => is_unchanged(*func),
            _ => false,
        }
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
        if sorter.is_beyond_top(&key) {
            return Ok(true);
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
