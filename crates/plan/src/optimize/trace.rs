//! Records for the optimizer trace. Nothing here runs while the trace is off.

use std::cell::RefCell;
use std::sync::Arc;

use super::candidate::Candidate;
use super::relation::Relation;
use crate::logical::trace::{AccessPathTrace, BlockTrace, ConsideredPlan, PlacedTable, TableTrace};
use crate::physical::{Access, AccessKind, Block, JoinStep, TableSource};

/// The join orders that a search compares.
pub(super) type ConsideredPlans = RefCell<Vec<ConsideredPlan>>;

/// The estimates of a block's tables. `relations` are empty if the block has one table.
pub(super) fn tables(
    block: &Block,
    candidates: &[Candidate],
    relations: &[Relation],
    depends: &[u64],
    rows: impl Fn(usize) -> Option<u64>,
) -> BlockTrace {
    let table = |(t, candidate): (usize, &Candidate)| TableTrace {
        name: block.tables[t].alias.clone(),
        nullable: block.tables[t].nullable,
        depends: depends.get(t).copied().unwrap_or(0),
        rows: rows(t),
        path: path(block, t, &candidate.access, candidate.rows, candidate.cost),
        passing: relations.get(t).map(|relation| relation.passing),
    };
    BlockTrace {
        tables: candidates.iter().enumerate().map(table).collect(),
        ..BlockTrace::default()
    }
}

/// The tables in the order of the plan.
pub(super) fn steps(block: &Block, joins: &[JoinStep]) -> Vec<PlacedTable> {
    let step = |step: &JoinStep| PlacedTable {
        table: step.table,
        path: path(block, step.table, step.access.of_table(), step.rows, 0.0),
        hashed: matches!(step.access.kind, AccessKind::Hash { .. }),
    };
    joins.iter().map(step).collect()
}

fn path(block: &Block, t: usize, access: &Access, rows: f64, cost: f64) -> AccessPathTrace {
    let kind = match &access.kind {
        AccessKind::Full if access.covering => "index",
        AccessKind::Full => "scan",
        AccessKind::Points(_) => "ref",
        AccessKind::Range { .. } | AccessKind::Ranges(_) | AccessKind::Skip(_) => "range",
        AccessKind::Merge(_) => "index_merge",
        AccessKind::Fulltext(_) => "fulltext",
        AccessKind::Source => "materialized",
        AccessKind::Hash { .. } => "hash",
        AccessKind::Empty => "const",
    };
    let index = match &block.tables[t].source {
        TableSource::Table(def) if kind != "scan" => def.indexes.get(access.index),
        _ => None,
    };
    AccessPathTrace {
        kind,
        index: index.map(|index| Arc::clone(&index.name)),
        rows,
        cost,
    }
}
