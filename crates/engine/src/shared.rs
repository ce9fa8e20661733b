//! What sessions, purge, background work and DDL have in common.

use std::sync::Arc;
use std::sync::atomic::AtomicU8;

use nfold_catalog::{Catalog, TableId};
use nfold_store::Store;
use nfold_txn::TrxSystem;
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;

use crate::branches::Branches;
use crate::row_hint::RowHints;
use crate::table::Table;

/// The id of the dictionary's own table.
pub(crate) const DICTIONARY: TableId = TableId(1);

/// What everything in the engine shares.
pub(crate) struct Shared {
    pub store: Arc<Store>,
    pub trx: Arc<TrxSystem>,
    pub catalog: Arc<Catalog>,
    pub dictionary: Arc<Table>,
    pub tables: RwLock<FxHashMap<TableId, Arc<Table>>>,
    /// One change of the dictionary at a time (L2 of [`crate::ddl`]).
    pub ddl: Mutex<()>,
    pub flush_at_commit: AtomicU8,
    pub build_memory: usize,
    pub row_hints: RowHints,
    pub branches: Arc<Branches>,
}

impl Shared {
    /// The open table with this id, the dictionary's own included.
    pub(crate) fn table(&self, id: u64) -> Option<Arc<Table>> {
        if id == DICTIONARY.0 {
            return Some(self.dictionary.clone());
        }
        self.tables.read().get(&TableId(id)).cloned()
    }
}
