//! CHECK TABLE: every tree by itself, then the secondary indexes against the rows.
//!
//! Works beside writers: the comparison reads both sides through one snapshot.

use std::sync::Arc;

use nfold_btree::TreeCheck;
use nfold_store::StoreError;

use crate::batch::{KeyRange, RowBatch};
use crate::ddl::stop;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::read::{Read, ReadSpec};
use crate::record::{RowHeader, SecondaryEntry};
use crate::session::EngineSession;
use crate::stats::{block, block_stoppable};
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
#[derive(Default)]
struct Sum {
    rows: u64,
    sum: u64,
    /// Elements of the rows for which a multi-valued index has no entry.
    missing: u64,
}

impl Engine {
    /// CHECK TABLE: reads every page of the trees and every value, long ones too. A table that is
    /// sound takes changes again, one that is not takes none. Blocks.
    ///
    /// # Errors
    /// [`EngineError::Stopped`]; then nothing is known of the table, and nothing is changed.
    pub fn check_table(&self, table: &Arc<Table>) -> Result<CheckReport, EngineError> {
        let mut report = CheckReport::default();
        for n in 0..table.indexes().len() {
            self.check_tree(table, n, &mut report)?;
        }
        if report.problems.is_empty() {
            match self.check_rows(table, &mut report) {
                Err(EngineError::Store(error @ StoreError::Corrupt { .. })) => {
                    report.problems.push(error.to_string());
                }
                other => other?,
            }
        }
        table.set_damaged(!report.problems.is_empty());
        if report.problems.is_empty() {
            self.shared().trx.retry_parked();
        }
        Ok(report)
    }

    /// The pages of one index.
    fn check_tree(
        &self,
        table: &Table,
        n: usize,
        report: &mut CheckReport,
    ) -> Result<(), EngineError> {
        let mut check = TreeCheck::default();
        let mut count = |_: &[u8], value: &[u8]| {
            report.marked += u64::from(if n == 0 {
                RowHeader::split(value).is_some_and(|(h, _)| h.deleted)
            } else {
                SecondaryEntry::parse(value).is_some_and(|e| e.deleted)
            });
        };
        let (store, tree) = (&self.shared().store, &table.index(n).tree);
        loop {
            stop::check()?;
            match block_stoppable(|| tree.check_step(store, &mut check, &mut count)) {
                Ok(false) => {}
                Ok(true) => break,
                Err(EngineError::Store(error @ StoreError::Corrupt { .. })) => {
                    check.problems.push(error.to_string());
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        let name = &table.def().indexes[n].name;
        let problems = check.problems.iter();
        report
            .problems
            .extend(problems.map(|p| format!("index '{name}': {p}")));
        Ok(())
    }

    /// Every row of one snapshot, and each secondary index against what the rows say that it should
    /// hold.
    fn check_rows(&self, table: &Arc<Table>, report: &mut CheckReport) -> Result<(), EngineError> {
        let mut session = EngineSession::internal(self.shared())?;
        session.begin_internal();
        let expected = self.sums_of_rows(&mut session, table, report)?;
        for (n, expected) in (1..).zip(&expected) {
            let found = sum_of_index(&mut session, table, n)?;
            let name = &table.def().indexes[n].name;
            if expected.missing > 0 {
                let missing = expected.missing;
                report.problems.push(format!(
                    "index '{name}' lacks {missing} elements of the rows"
                ));
            } else if (found.rows, found.sum) != (expected.rows, expected.sum) {
                report.problems.push(format!(
                    "index '{name}' gives {} entries for {} rows, or other values",
                    found.rows, expected.rows
                ));
            }
        }
        block(|| session.rollback())
    }

    /// For each secondary index the rows, each projected to what the index covers.
    fn sums_of_rows(
        &self,
        session: &mut EngineSession,
        table: &Arc<Table>,
        report: &mut CheckReport,
    ) -> Result<Vec<Sum>, EngineError> {
        let mut sums: Vec<Sum> = Vec::new();
        sums.resize_with(table.indexes().len() - 1, Sum::default);
        let mut projected = RowBatch::new();
        let spec = ReadSpec {
            columns: (0..table.layout().columns().len()).collect(),
            ..ReadSpec::default()
        };
        let mut primary = Vec::new();
        each_row(session, table, spec, |batch, i| {
            let (layout, row) = (table.layout(), batch.row(i));
            layout.validate(row).map_err(|_| table.corrupt_row())?;
            for (n, sum) in (1..).zip(&mut sums) {
                projected.clear();
                if !table.project_into(n, row, 0, &mut projected) {
                    return Err(table.corrupt_row());
                }
                if table.def().indexes[n].fulltext().is_some() {
                    let keys = block(|| table.entry_keys(n, row, &[]))?;
                    keys.iter().for_each(|key| sum.add(key));
                    continue;
                }
                if !table.index(n).is_multi_valued() {
                    sum.add(projected.row(0));
                    continue;
                }
                // A covering read of a multi-valued index returns a row for each entry, without the
                // element.
                primary.clear();
                table.batch_row_key(batch, i, &mut primary)?;
                for key in block(|| table.entry_keys(n, row, &primary))? {
                    sum.add(projected.row(0));
                    sum.missing += u64::from(!self.has_entry(table, n, &key)?);
                }
            }
            report.rows += 1;
            Ok(())
        })?;
        Ok(sums)
    }

    /// Whether a multi-valued index has this entry, which a row of the snapshot needs.
    fn has_entry(&self, table: &Table, n: usize, key: &[u8]) -> Result<bool, EngineError> {
        let (mut value, tree) = (Vec::new(), &table.index(n).tree);
        if !block_stoppable(|| tree.get(table.store(), key, &mut value))? {
            return Ok(false);
        }
        let entry = SecondaryEntry::parse(&value).ok_or_else(|| table.corrupt_row())?;
        // A transaction that the snapshot does not see may have marked it.
        Ok(!entry.deleted || !self.shared().trx.is_purgeable(entry.trx))
    }
}

fn each_row(
    session: &mut EngineSession,
    table: &Arc<Table>,
    spec: ReadSpec,
    mut visit: impl FnMut(&RowBatch, usize) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let mut read = Read::range(table.clone(), spec, &KeyRange::all(), false);
    let mut batch = RowBatch::new();
    loop {
        stop::check()?;
        batch.clear();
        let more = block_stoppable(|| read.next(session, &mut batch))?;
        (0..batch.len()).try_for_each(|i| visit(&batch, i))?;
        if !more {
            return Ok(());
        }
    }
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
        columns: table.index_columns(n).to_vec(),
        ..ReadSpec::default()
    };
    let fulltext = table.def().indexes[n].fulltext().is_some();
    let mut key = Vec::new();
    each_row(session, table, spec, |batch, i| {
        let row = batch.row(i);
        if !fulltext {
            sum.add(row);
            return Ok(());
        }
        // Entries of a full-text index cover the word alone.
        let word = table.index_layout(n).get(row, 0);
        let word = word.map_err(|_| table.corrupt_row())?;
        key.clear();
        let made = table.key_layout(n).encode_part(0, word, &mut key);
        made.map_err(|_| table.corrupt_row())?;
        sum.add(&key);
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
