//! Hash tables that are built before the first row of a join is read. A small table may have no row
//! that passes its conditions. Then the join has no rows, and the large tables need not be read.
//!
//! ```text
//!   sales JOIN store ON ..  WHERE store.name = 'x'
//!     store is read first; if it has no such row, sales is not read
//! ```
//!
//! If the first table of the join is as small, its first rows are read before these hash tables.

use crate::logical::expr::Expr;
use crate::physical::{Access, AccessKind, Block, JoinStep, SCAN_ROW_COST, TableSource};

/// The minimum cost of a join, in microseconds, and the maximum share of it that building one of
/// the hash tables costs.
const JOIN_COST_MIN: f64 = 100.0;
const BUILD_SHARE_MAX: f64 = 0.1;

/// Lets `step`, which is an inner join of a table with conditions of its own, build its hash table
/// before the first row is read, if that costs little. `build_cost` is the cost of building it, and
/// `cost` that of the whole join. `is_silent`: an expression may be evaluated for more rows.
pub(super) fn build_early(
    block: &Block,
    step: &mut JoinStep,
    build_cost: f64,
    cost: f64,
    is_silent: &dyn Fn(&Expr) -> bool,
) {
    let cheap = build_cost <= cost * BUILD_SHARE_MAX;
    let locks = block.lock.is_some() || block.changed != 0;
    let of_table = matches!(block.tables[step.table].source, TableSource::Table(_));
    if cost < JOIN_COST_MIN || !cheap || locks || !of_table {
        return;
    }
    let fits = |access: &Access| match &access.kind {
        AccessKind::Hash { keys, .. } => keys.iter().all(|k| is_silent(&k.inner)),
        _ => false,
    };
    if fits(&step.access) {
        (step.builds_early, step.alternative) = (true, None);
    } else if let Some(other) = step.alternative.take_if(|other| fits(&other.access)) {
        (step.builds_early, step.access) = (true, other.access);
    }
}

/// Lets the first step read its first rows before such hash tables are built, if that costs less
/// than any of them: it may have no row that passes. `build_cost` is the cost of the cheapest one.
pub(super) fn read_first(step: &mut JoinStep, build_cost: f64, is_silent: &dyn Fn(&Expr) -> bool) {
    let cheap = step.rows * SCAN_ROW_COST <= build_cost;
    step.builds_early = cheap && !step.filter.is_empty() && step.filter.iter().all(is_silent);
}
