//! The record of the optimizer trace while a statement is planned. The session writes it as JSON.

use std::cell::RefCell;
use std::sync::Arc;

/// The records of one statement, in the order of planning: nested blocks first.
#[derive(Debug, Default)]
pub struct OptimizerTrace {
    blocks: RefCell<Vec<BlockTrace>>,
}

/// How the tables of one block were joined.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BlockTrace {
    /// By slot.
    pub tables: Vec<TableTrace>,
    /// Join orders that the search compared, in the order of comparison.
    pub considered: Vec<ConsideredPlan>,
    /// The order that the plan has.
    pub steps: Vec<PlacedTable>,
}

/// The estimates of one table by its own conditions alone.
#[derive(Debug, Clone, PartialEq)]
pub struct TableTrace {
    /// The table's name or alias.
    pub name: Arc<str>,
    /// Whether it is on the inner side of an outer join.
    pub nullable: bool,
    /// The slots that must be placed before it, as a bit set.
    pub depends: u64,
    /// The rows of the table, if statistics tell.
    pub rows: Option<u64>,
    /// The cheapest access path without other tables.
    pub path: AccessPathTrace,
    /// The rows that pass the table's own conditions; `None`: the table is alone in its block.
    pub passing: Option<f64>,
}

/// An access path.
#[derive(Debug, Clone, PartialEq)]
pub struct AccessPathTrace {
    /// In the words of EXPLAIN's column `type`.
    pub kind: &'static str,
    pub index: Option<Arc<str>>,
    pub rows: f64,
    /// In microseconds.
    pub cost: f64,
}

/// A table that the search appended to the best order of the tables before it.
#[derive(Debug, Clone, PartialEq)]
pub struct ConsideredPlan {
    /// The slots before it, in their order.
    pub prefix: Vec<usize>,
    pub table: usize,
    /// The cost of each way to join it: the way's name, and the cost in microseconds.
    pub ways: Vec<(&'static str, f64)>,
    /// The rows and the cost of the order with this table.
    pub rows: f64,
    pub cost: f64,
    /// Whether it was the cheapest order of these tables so far.
    pub chosen: bool,
}

/// A table of the chosen order.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacedTable {
    pub table: usize,
    pub path: AccessPathTrace,
    /// Whether the table is joined by a hash table.
    pub hashed: bool,
}

impl OptimizerTrace {
    /// Adds a block.
    pub(crate) fn add(&self, block: BlockTrace) {
        self.blocks.borrow_mut().push(block);
    }

    /// The recorded blocks.
    pub fn into_blocks(self) -> Vec<BlockTrace> {
        self.blocks.into_inner()
    }
}
