//! Statistics in the dictionary: written when they are new, read when the engine opens. A restart
//! leaves every plan as it was.
//!
//! # Concurrency
//! A save takes `Shared::ddl`, as every change of the dictionary does, and looks up the table again
//! under it: statistics of a dropped table are not written. Readers of statistics take part in
//! nothing of this.
//!
//! # Failure
//! Statistics are no data: those that could not be written or read are made anew. A crash loses the
//! count of rows that changed since the statistics were made. So the size of each table is compared
//! with its statistics after a crash.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use nfold_catalog::TableId;
use nfold_catalog::codec::{Stored, StoredStats};
use nfold_store::Store;

use crate::dictionary::{self, ObjectKind};
use crate::error::EngineError;
use crate::session::EngineSession;
use crate::shared::Shared;
use crate::stats::block;
use crate::table::Table;

/// After a crash, statistics that differ from the table's size by more rows than this, and by more
/// than a quarter, are made anew.
const ROWS_APART_MIN: u64 = 16;

/// Puts saved statistics into the tables that have just been opened.
pub(crate) fn restore(shared: &Shared, all: Vec<(TableId, StoredStats)>, clean: bool) {
    let tables = shared.tables.read();
    for (id, stored) in all {
        if let Some(table) = tables.get(&id) {
            table.restore_stats(&stored);
            table.stats_in_doubt.store(!clean, Relaxed);
        }
    }
}

/// Whether the statistics are too old: a crash has lost the count of changed rows, and the table
/// has another size than they say. Answers once for each table.
pub(crate) fn are_outdated(store: &Store, table: &Table) -> bool {
    if !table.stats_in_doubt.swap(false, Relaxed) {
        return false;
    }
    let Ok(size) = block(|| table.index(0).tree.stats(store)) else {
        return false;
    };
    let rows = table.stats().rows;
    let apart = rows.abs_diff(size.entries);
    apart > ROWS_APART_MIN && apart > rows / 4
}

/// Saves the statistics of a table, if it still exists. An error is logged.
pub(crate) fn save(shared: &Arc<Shared>, id: TableId) {
    save_all(shared, &[id]);
}

/// Saves the statistics of all tables whose rows have changed, at the end of a server.
pub(crate) fn save_changed(shared: &Arc<Shared>) {
    let made = |table: &&Arc<Table>| {
        let changed = table.rows_changed.load(Relaxed) != 0 || table.has_unsaved_stats();
        changed && table.stats().analyzed_at != 0
    };
    let ids: Vec<TableId> = {
        let tables = shared.tables.read();
        tables.values().filter(made).map(|t| t.def().id).collect()
    };
    save_all(shared, &ids);
}

fn save_all(shared: &Arc<Shared>, ids: &[TableId]) {
    let _one = shared.ddl.lock();
    let named = shared.catalog.snapshot();
    let tables: Vec<Arc<Table>> = {
        let open = shared.tables.read();
        let open = |id: &TableId| named.table_by_id(*id).and_then(|_| open.get(id).cloned());
        ids.iter().filter_map(open).collect()
    };
    if tables.is_empty() {
        return;
    }
    if let Err(error) = write(shared, &tables) {
        tracing::debug!(%error, "statistics of tables could not be saved");
        tables.iter().for_each(|table| table.stats_not_saved());
    }
}

fn write(shared: &Arc<Shared>, tables: &[Arc<Table>]) -> Result<(), EngineError> {
    let mut session = EngineSession::internal(shared)?;
    session.begin_internal();
    let mut data = Vec::new();
    let written = tables.iter().try_for_each(|table| {
        data.clear();
        table.stats_to_save().encode(&mut data);
        let id = table.def().id.0.to_be_bytes();
        let (dictionary, kind) = (&shared.dictionary, ObjectKind::Statistics);
        dictionary::put(&mut session, dictionary, kind, &id, &data)
    });
    match written {
        Ok(()) => block(|| session.commit()),
        Err(error) => {
            block(|| session.rollback())?;
            Err(error)
        }
    }
}
