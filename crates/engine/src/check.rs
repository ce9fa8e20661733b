//! CHECK TABLE: every tree by itself, then the secondary indexes against the rows.
//!
//! Works beside writers: the comparison reads both sides through one snapshot.

use std::sync::Arc;

use nfold_btree::TreeCheck;
use nfold_store::StoreError;

use crate::batch::{KeyRange, RowBatch};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::read::{Read, ReadSpec};
use crate::record::{RowHeader, SecondaryEntry};
use crate::session::EngineSession;
use crate::stats::block;
use crate::table::Table;

/// What CHECK TABLE found; no problems: the table is sound.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckReport {
    pub rows: u64,
    /// Rows and entries that are delete-marked: what purge has still to remove.
    pub marked: u64,
    pub problems: Vec<String>,
}

/// A count and an order-independent sum over the rows that an index gives.
#[derive(Default, PartialEq, Eq)]
struct Sum {
    rows: u64,
    sum: u64,
}

impl Engine {
    /// CHECK TABLE. Blocks.
    pub fn check_table(&self, table: &Arc<Table>) -> Result<CheckReport, EngineError> {
        let mut report = CheckReport::default();
        for (n, index) in table.indexes().iter().enumerate() {
            let mut check = TreeCheck::default();
            let mut marked = 0;
            let mut count = |_: &[u8], value: &[u8]| {
                marked += u64::from(if n == 0 {
                    RowHeader::split(value).is_some_and(|(h, _)| h.deleted)
                } else {
                    SecondaryEntry::parse(value).is_some_and(|e| e.deleted)
                });
            };
            loop {
                let step = block(|| {
                    index
                        .tree
                        .check_step(&self.shared().store, &mut check, &mut count)
                });
                match step {
                    Ok(false) => {}
                    Ok(true) => break,
                    Err(EngineError::Store(error @ StoreError::Corrupt { .. })) => {
                        check.problems.push(error.to_string());
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
            report.marked += marked;
            let name = &table.def().indexes[n].name;
            report.problems.extend(
                check
                    .problems
                    .iter()
                    .map(|p| format!("index '{name}': {p}")),
            );
        }
        table.set_damaged(!report.problems.is_empty());
        if report.problems.is_empty() {
            self.shared().trx.retry_parked();
        }
        if !report.problems.is_empty() {
            return Ok(report);
        }
        let mut session = EngineSession::internal(self.shared())?;
        session.begin_internal();
        for n in 1..table.indexes().len() {
            let from_rows = sum_of_rows(&mut session, table, n)?;
            let from_index = sum_of_index(&mut session, table, n)?;
            report.rows = from_rows.rows;
            if from_rows != from_index {
                let name = &table.def().indexes[n].name;
                let (found, expected) = (from_index.rows, from_rows.rows);
                report.problems.push(format!(
                    "index '{name}' gives {found} entries for {expected} rows, or other values"
                ));
            }
        }
        if table.indexes().len() == 1 {
            report.rows = count_rows(&mut session, table)?;
        }
        block(|| session.rollback())?;
        Ok(report)
    }
}

fn each_row(
    session: &mut EngineSession,
    table: &Arc<Table>,
    spec: ReadSpec,
    mut visit: impl FnMut(&[u8]) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let mut read = Read::range(table.clone(), spec, &KeyRange::all(), false);
    let mut batch = RowBatch::new();
    loop {
        batch.clear();
        let more = block(|| read.next(session, &mut batch))?;
        batch.iter().try_for_each(&mut visit)?;
        if !more {
            return Ok(());
        }
    }
}

fn count_rows(session: &mut EngineSession, table: &Arc<Table>) -> Result<u64, EngineError> {
    let mut rows = 0;
    each_row(session, table, ReadSpec::default(), |row| {
        table
            .layout()
            .validate(row)
            .map_err(|_| table.corrupt_row())?;
        rows += 1;
        Ok(())
    })?;
    Ok(rows)
}

/// The rows, each projected to what the index covers.
fn sum_of_rows(
    session: &mut EngineSession,
    table: &Arc<Table>,
    n: usize,
) -> Result<Sum, EngineError> {
    let mut sum = Sum::default();
    let mut projected = RowBatch::new();
    let spec = ReadSpec {
        columns: table.index_columns(n).to_vec(),
        ..ReadSpec::default()
    };
    each_row(session, table, spec, |row| {
        projected.clear();
        if !table.project_into(n, row, 0, &mut projected) {
            return Err(table.corrupt_row());
        }
        sum.add(projected.row(0));
        Ok(())
    })?;
    Ok(sum)
}

fn sum_of_index(
    session: &mut EngineSession,
    table: &Arc<Table>,
    n: usize,
) -> Result<Sum, EngineError> {
    let mut sum = Sum::default();
    let spec = ReadSpec {
        index: n,
        covering: true,
        ..ReadSpec::default()
    };
    each_row(session, table, spec, |row| {
        sum.add(row);
        Ok(())
    })?;
    Ok(sum)
}

impl Sum {
    fn add(&mut self, bytes: &[u8]) {
        use std::hash::Hasher;
        let mut hasher = rustc_hash::FxHasher::default();
        hasher.write(bytes);
        self.rows += 1;
        self.sum = self.sum.wrapping_add(hasher.finish());
    }
}
