//! DELETE of one row that the transaction has locked.

use std::sync::Arc;

use crate::error::Stop;
use crate::session::EngineSession;
use crate::table::Table;
use crate::write::clustered::{self, Change};
use crate::write::{Progress, Work, WriteOutcome, buffers, elements, secondary};

/// One row to be deleted. Reuse it for the next row with [`DeleteOp::row`].
pub struct DeleteOp {
    table: Arc<Table>,
    work: Work,
    row: Vec<u8>,
    row_id: Option<u64>,
}

impl DeleteOp {
    pub(crate) fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// An operation on `table`, without a row yet.
    pub fn new(table: Arc<Table>) -> DeleteOp {
        DeleteOp {
            table,
            work: Work::new(),
            row: buffers::take(),
            row_id: None,
        }
    }

    /// The row as a locking read gave it, with its hidden row id if the table has one.
    pub fn row(&mut self, image: &[u8], row_id: Option<u64>) {
        self.work.reset();
        self.row.clear();
        self.row.extend_from_slice(image);
        self.row_id = row_id;
    }

    pub(crate) fn run(&mut self, session: &mut EngineSession) -> Result<WriteOutcome, Stop> {
        let DeleteOp {
            table,
            work,
            row,
            row_id,
        } = self;
        if work.progress == Progress::Start {
            work.primary.clear();
            locate(table, row, *row_id, &mut work.primary)?;
            clustered::change(
                session,
                table,
                &work.primary,
                Change::Delete,
                &mut work.mover,
                (&mut work.current, &mut work.value),
            )?;
            work.progress = Progress::Index { n: 1, half: false };
        }
        while let Progress::Index { n, .. } | Progress::Elements { n, .. } = work.progress {
            if n == table.indexes().len() {
                break;
            }
            if table.index(n).is_multi_valued() {
                let primary = work.primary.clone();
                let versions = (Some((&row[..], &primary[..])), None);
                let how = (work.duplicates, false);
                elements::replace(session, table, work, n, versions, how)?;
            } else {
                secondary::mark(session, table, work, n, row)?;
            }
            work.progress = Progress::Index {
                n: n + 1,
                half: false,
            };
        }
        session.count_rows(table, -1);
        Ok(WriteOutcome::Done)
    }
}

/// Appends the clustered key of a row that was read.
pub(super) fn locate(
    table: &Table,
    row: &[u8],
    row_id: Option<u64>,
    out: &mut Vec<u8>,
) -> Result<(), Stop> {
    match row_id {
        Some(id) => out.extend_from_slice(&id.to_be_bytes()),
        None => table.clustered_key(row, out)?,
    }
    Ok(())
}

impl Drop for DeleteOp {
    fn drop(&mut self) {
        buffers::give(&mut self.row);
    }
}
