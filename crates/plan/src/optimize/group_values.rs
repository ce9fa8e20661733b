//! Values of groups as MySQL reads them from its temporary tables. The extremes of texts are
//! columns, so that reading a number from one warns about the rest of the text. The years by which
//! ROLLUP groups are integers, without leading zeros.

use nfold_types::TypeKind;

use crate::logical::clauses::AggFunc;
use crate::logical::expr::{Class, Expr, TextOrigin};
use crate::physical::Block;

/// Marks the results of MIN and MAX in the clauses that read the groups of a block, if MySQL stores
/// the groups in a temporary table.
pub(super) fn mark_stored(block: &mut Block) {
    let Some(group) = &block.group else { return };
    if group.implicit || group.ordered || group.rollup || group.is_sorted() {
        return;
    }
    let first = group.first_aggregate();
    let is_text = |e: &Expr| {
        let long = matches!(e.ty.col.kind, TypeKind::Text(_) | TypeKind::Blob(_));
        e.ty.class() == Class::String && !long
    };
    let extremes: Vec<bool> = (group.aggregates.iter())
        .map(|a| matches!(a.func, AggFunc::Min | AggFunc::Max) && a.args.iter().all(is_text))
        .collect();
    if !extremes.contains(&true) {
        return;
    }
    each_clause(block, &mut |e| mark(e, first, &extremes));
}

/// Makes the YEAR keys of a block WITH ROLLUP integers in the clauses that read the groups, if
/// MySQL stores the keys before it computes these clauses.
pub(super) fn number_rolled_up_years(block: &mut Block) {
    let Some(group) = &block.group else { return };
    let is_year: Vec<bool> = (group.keys.iter())
        .map(|key| key.ty.col.kind == TypeKind::Year)
        .collect();
    if !is_year.contains(&true) || !block.keeps_rolled_up_rows_twice() {
        return;
    }
    each_clause(block, &mut |e| number_years(e, &is_year));
}

fn number_years(e: &mut Expr, is_year: &[bool]) {
    if let Some(at) = e.as_column()
        && at.table == 0
        && is_year.get(usize::from(at.column)) == Some(&true)
    {
        e.ty = e.ty.clone().computed();
    }
    e.each_child_mut(&mut |e| number_years(e, is_year));
}

/// Calls `f` with each expression of the clauses that read the groups of a block.
fn each_clause(block: &mut Block, f: &mut dyn FnMut(&mut Expr)) {
    let order = block.order.iter_mut().map(|key| &mut key.expr);
    let clauses = block
        .having
        .iter_mut()
        .chain(&mut block.select)
        .chain(order);
    clauses.for_each(f);
}

fn mark(e: &mut Expr, first: usize, extremes: &[bool]) {
    if let Some(at) = e.as_column()
        && at.table == 0
        && let Some(place) = usize::from(at.column).checked_sub(first)
        && extremes.get(place) == Some(&true)
    {
        e.ty.origin = TextOrigin::Column;
    }
    e.each_child_mut(&mut |e| mark(e, first, extremes));
}
