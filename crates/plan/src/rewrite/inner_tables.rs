//! Inner joins of an IN subquery that become semi joins. IN does not count equal rows, so a table
//! whose columns are not selected is read only up to the first row that matches.
//!
//! ```text
//! x IN (SELECT a.k FROM sales a JOIN sales b ON a.k = b.k AND a.w <> b.w)
//!     reads one b for each a, and not all pairs of an order's rows
//! ```
//!
//! A semi join fixes which of the two tables is read first. So the rule applies only where lookups
//! in the other table cannot pay: it has no index for the equality, or both are the same table.

use std::sync::Arc;

use super::decorrelate::{is_plain, is_repeatable};
use super::semi_joins::{is_unique, slots_of};
use crate::logical::context::PlanCx;
use crate::logical::expr::Expr;
use crate::logical::query::{
    Block, JoinType, OuterJoin, QueryBody, Source, Subquery, SubqueryForm,
};
use crate::logical::tame::is_tame;

/// Turns inner joins of an uncorrelated IN subquery into semi joins, where that is possible.
pub(super) fn make_semi(cx: &PlanCx<'_>, sub: &mut Subquery) {
    let in_list = sub.form == SubqueryForm::Membership && !sub.correlated;
    let QueryBody::Block(block) = &mut sub.query.body else {
        return;
    };
    let evaluated = || block.conditions.iter().chain(&block.select);
    if !in_list
        || sub.query.limit.is_some()
        || block.tables.len() < 2
        || !is_plain(block)
        || block.straight
        || !block.straight_joins.is_empty()
        || !block.subqueries.is_empty()
        || !evaluated().all(|e| is_tame(cx, e) && is_repeatable(cx, e))
    {
        return;
    }
    // From the last table on: the first ones are more often those that are selected.
    for slot in (0..block.tables.len()).rev() {
        if let Some(outer) = joined_table(block, slot) {
            let own = 1u64 << slot;
            let on = block.conditions.extract_if(.., |e| slots_of(e) & own != 0);
            block.outer_joins.push(OuterJoin {
                kind: JoinType::Semi,
                on: on.collect(),
                inner: own,
                outer: 1 << outer,
            });
        }
    }
}

/// The table that table `slot` only restricts. `None`: the tables remain an inner join.
fn joined_table(block: &Block, slot: usize) -> Option<usize> {
    let own = 1u64 << slot;
    let joined = |join: &OuterJoin| (join.inner | join.outer) & own != 0;
    let selected = |e: &Expr| slots_of(e) & own != 0;
    if block.select.iter().any(selected) || block.outer_joins.iter().any(joined) {
        return None;
    }
    let on: Vec<Expr> = block
        .conditions
        .iter()
        .filter(|e| selected(e))
        .cloned()
        .collect();
    // A table with a condition of its own may be the best one to read first.
    let first = slots_of(on.first()?);
    let outer = (first & !own).trailing_zeros() as usize;
    let linked = (first & !own).count_ones() == 1;
    let (Source::Table(def), true) = (&block.tables[slot].source, linked) else {
        return None;
    };
    let same = |e: &Expr| slots_of(e) == first;
    if !on.iter().all(same) || is_unique(def, slot as u16, 0, &on) {
        return None;
    }
    let Source::Table(other) = &block.tables.get(outer)?.source else {
        return None;
    };
    let mut equated = on
        .iter()
        .filter_map(|e| e.equated_columns(outer))
        .peekable();
    equated.peek()?;
    let indexed = |column: usize| {
        let mut firsts = other.indexes.iter().filter_map(|index| index.parts.first());
        firsts.any(|part| part.column == column)
    };
    let mut equated = equated.map(|(of_outer, _)| usize::from(of_outer.column));
    (Arc::ptr_eq(def, other) || !equated.any(indexed)).then_some(outer)
}
