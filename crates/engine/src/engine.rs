//! The engine: opens and recovers a data directory, owns the open tables, runs the background work.
//!
//! # Concurrency
//! `Shared` is what sessions, purge and DDL have in common. `tables` is read when a plan is
//! compiled and by undo and purge, never per statement; a plan keeps its own `Arc<Table>`.
//!
//! # Failure
//! Opening recovers the store first (redo), then the dictionary's unfinished transactions, then
//! loads the schema, removes orphans, and leaves the other unfinished transactions to the
//! background: their rows are locked by their ids until they are rolled back.

use std::sync::Arc;

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use nfold_btree::BtreeRedo;
use nfold_catalog::{AccountSnapshot, Catalog, SchemaSnapshot, TableDef, TableId};
use nfold_store::{
    Attachments, Disk, Lsn, PageMut, RecoveryProgress, RecoveryReport, RedoHandler, Store,
    StoreError, StoreOptions, StoreStatus,
};
use nfold_txn::undo::{UNDO_OP_FIRST, UNDO_OP_LAST, UndoRedo};
use nfold_txn::{TrxOptions, TrxRecovery, TrxStatus, TrxSystem};
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashSet;

use crate::background::{self, Background};
use crate::branches::Branches;
use crate::dictionary::{self, Contents};
use crate::error::EngineError;
use crate::row_hint::{Repairer, RowHintStatus, RowHints};
use crate::saved_stats;
use crate::session::EngineSession;
use crate::shared::{DICTIONARY, Shared};
use crate::stats::{self, block};
use crate::table::Table;
use crate::undo::Applier;

/// How an engine is opened.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// Pages, log, files. `io_threads: 0` means that nothing runs in the background:
    /// [`Engine::step_background`] does it.
    pub store: StoreOptions,
    /// `innodb_flush_log_at_trx_commit`: 0, 1 or 2.
    pub flush_at_commit: u8,
    /// The bytes of an index under construction that are sorted in memory. More entries are sorted
    /// through a scratch file.
    pub build_memory: usize,
}

impl EngineOptions {
    /// The default of `build_memory` in a server, in bytes.
    pub const BUILD_MEMORY: usize = 128 << 20;
}

/// What opening found.
#[derive(Debug, Clone)]
pub struct OpenReport {
    pub store: RecoveryReport,
    pub trx: TrxRecovery,
    /// Tablespaces without a table, removed.
    pub orphans: usize,
    pub tables: usize,
}

/// Redo of the layers above the store.
struct Redo(BtreeRedo, UndoRedo);

impl RedoHandler for Redo {
    fn apply(&self, op: u8, payload: &[u8], page: &PageMut<'_>) -> Result<(), StoreError> {
        if (UNDO_OP_FIRST..=UNDO_OP_LAST).contains(&op) {
            self.1.apply(op, payload, page)
        } else {
            self.0.apply(op, payload, page)
        }
    }
}

/// The storage engine. Dropping it without [`Engine::shutdown`] is a crash.
pub struct Engine {
    shared: Arc<Shared>,
    background: Mutex<Option<Background>>,
}

impl Engine {
    /// Opens what `disk` holds, recovering it; makes a new database when it is empty. Blocks.
    pub fn open(
        options: EngineOptions,
        disk: Arc<dyn Disk>,
        progress: &dyn Fn(RecoveryProgress),
    ) -> Result<(Arc<Engine>, OpenReport), EngineError> {
        let threads = options.store.io_threads > 0;
        let redo = Arc::new(Redo(BtreeRedo, UndoRedo));
        let (store, store_report) = Store::open(options.store, disk, redo, progress)?;
        let (trx, trx_report) = TrxSystem::open(&store, &TrxOptions::default())?;
        let dictionary = Arc::new(open_dictionary(&store)?);
        let shared = Arc::new(Shared {
            store,
            trx,
            catalog: Arc::new(Catalog::new()),
            dictionary,
            tables: RwLock::default(),
            ddl: Mutex::new(()),
            flush_at_commit: AtomicU8::new(options.flush_at_commit),
            build_memory: options.build_memory,
            row_hints: RowHints::new(),
            branches: Arc::new(Branches::default()),
        });
        // Rows that a definition cut short has changed are locked by it, and opening itself may
        // change them.
        shared
            .trx
            .undo_all_of(DICTIONARY.0, &Applier(shared.clone()))?;
        let mut session = EngineSession::internal(&shared)?;
        session.begin_internal();
        let mut contents = dictionary::load(&mut session, &shared.dictionary)?;
        block(|| session.commit())?;
        let engine = Engine {
            shared,
            background: Mutex::new(None),
        };
        let tables = contents.tables.len();
        let statistics = std::mem::take(&mut contents.statistics);
        let orphans = engine.adopt(contents)?;
        let shared = &engine.shared;
        let mdl = shared.catalog.mdl();
        (shared.branches).recover(shared.trx.take_recovered(), || mdl.slot(0));
        saved_stats::restore(&engine.shared, statistics, store_report.clean);
        if threads {
            let background = Background::start(&engine.shared)
                .map_err(|e| StoreError::io(&e, "starting a background thread"))?;
            *engine.background.lock() = Some(background);
        }
        Ok((
            Arc::new(engine),
            OpenReport {
                store: store_report,
                trx: trx_report,
                orphans,
                tables,
            },
        ))
    }

    /// Opens the tables of the dictionary, and removes files that it does not name. Returns the
    /// number of removed files.
    fn adopt(&self, contents: Contents) -> Result<usize, EngineError> {
        let store = &self.shared.store;
        let on_disk = store.spaces_on_disk()?;
        let mut named: FxHashSet<u32> = contents.tables.iter().map(|t| t.space).collect();
        named.insert(self.shared.dictionary.def().space);
        named.extend(self.shared.trx.undo_spaces());
        let mut orphans = 0;
        for (id, name) in &on_disk {
            if let Err(error) = store.open_space(*id, name) {
                // Only this table's file is missing. The engine serves the others, and statements
                // on this table get an error.
                if !contents.tables.iter().any(|t| t.space == *id) {
                    return Err(error.into());
                }
                tracing::error!(space = name, "a table cannot be used: {error}");
            }
            if !named.contains(id) {
                tracing::info!(space = name, "removing a tablespace that no table uses");
                store.drop_space(*id)?;
                orphans += 1;
            }
        }
        for table in &contents.tables {
            if !on_disk.iter().any(|(id, _)| *id == table.space) {
                tracing::error!(table = %table.name, space = table.space, "the tablespace of this table is missing");
            }
        }
        let tables: Vec<Arc<TableDef>> = contents.tables.into_iter().map(Arc::new).collect();
        tables.iter().for_each(|t| self.open_table(t));
        self.shared
            .catalog
            .publish_schema(|schema: &mut SchemaSnapshot| {
                contents
                    .databases
                    .into_iter()
                    .for_each(|d| schema.put_database(d));
                tables.iter().for_each(|t| schema.put_table(t.clone()));
                let views = contents.views.into_iter().map(Arc::new);
                views.for_each(|view| schema.put_table(view));
            });
        self.shared
            .catalog
            .publish_accounts(|all: &mut AccountSnapshot| {
                contents.accounts.into_iter().for_each(|a| all.put(a));
            });
        for (id, space, root) in contents.leftovers {
            self.remove_leftover(id, space, root)?;
        }
        Ok(orphans)
    }

    /// `innodb_adaptive_hash_index`: whether reads through a secondary index look first where a row
    /// was last seen.
    pub fn set_row_hints(&self, on: bool) {
        self.shared.row_hints.turn(on);
    }

    /// How often that led to the row.
    pub fn row_hint_status(&self) -> RowHintStatus {
        self.shared.row_hints.status()
    }

    /// The attachments of commits, for the thread that writes the binary log.
    pub fn attachments(&self) -> &Attachments {
        self.shared.store.attachments()
    }

    /// The largest attachment of a commit in bytes.
    pub fn max_attachment(&self) -> usize {
        self.shared.store.max_attachment()
    }

    /// The LSN up to which the log is durable.
    pub fn durable_lsn(&self) -> Lsn {
        self.shared.store.durable_lsn()
    }

    /// Waits until the log is durable up to `lsn`, without requesting a sync. Blocks.
    pub fn block_until_durable(&self, lsn: Lsn) {
        self.shared.store.block_until_durable(lsn);
    }

    /// Makes all log durable that is filled now. Blocks.
    pub fn sync_log(&self) {
        self.shared.store.sync_log();
    }

    /// A session; `number` names it in status views.
    ///
    /// # Errors
    /// [`EngineError::Limit`] when there are too many.
    pub fn session(&self, number: u64) -> Result<EngineSession, EngineError> {
        EngineSession::open(&self.shared, number)
    }

    /// Ends the background work, makes counters exact, writes everything, takes a checkpoint. No
    /// session has a transaction open.
    pub fn shutdown(&self) -> Result<(), EngineError> {
        if let Some(background) = self.background.lock().take() {
            background.stop();
        }
        saved_stats::save_changed(&self.shared);
        let tables: Vec<_> = self.shared.tables.read().values().cloned().collect();
        for table in tables {
            if let Err(error) = table.save_counters(&self.shared.store) {
                tracing::warn!(table = %table.def().name, %error, "AUTO_INCREMENT was not saved exactly");
            }
        }
        if let Err(error) = self.shared.trx.rest() {
            tracing::warn!(%error, "it was not written down that no transaction is unfinished");
        }
        Ok(self.shared.store.shutdown()?)
    }

    /// Runs one round of the background threads' work, for an engine without these threads. Returns
    /// whether there was work.
    pub fn step_background(&self) -> Result<bool, EngineError> {
        let applier = Applier(self.shared.clone());
        let mut more = block(|| self.shared.trx.rollback_step(&applier, 64))?;
        more |= block(|| self.shared.trx.purge_step(&applier, 64))?.more;
        more |= background::drain(&self.shared);
        more |= Repairer::default().step(&self.shared);
        more |= self.shared.store.step_background()?;
        Ok(more)
    }

    /// Writes all dirty pages and records a checkpoint, so that recovery begins here. Blocks.
    pub fn checkpoint(&self) -> Result<(), EngineError> {
        self.shared.store.checkpoint()?;
        Ok(())
    }

    /// `innodb_max_undo_log_size`, and `innodb_undo_log_truncate`: `None` is off. An undo file
    /// larger than this, bytes, is given up for a new one, and removed when everything in it is
    /// purged.
    pub fn set_undo_limit(&self, bytes: Option<u64>) {
        let pages = bytes.map_or(u64::from(u32::MAX), |b| b / nfold_store::PAGE_SIZE as u64);
        let pages = u32::try_from(pages).unwrap_or(u32::MAX);
        self.shared.trx.set_undo_limit(pages);
    }

    /// `innodb_flush_log_at_trx_commit`
    pub fn set_flush_at_commit(&self, value: u8) {
        self.shared.flush_at_commit.store(value, Relaxed);
    }

    /// ANALYZE TABLE. Blocks, until it is done or [`stoppable`](crate::stoppable) stops it.
    pub fn analyze_table(&self, table: &Table) -> Result<(), EngineError> {
        table.set_stats(stats::make(&self.shared.store, table, true)?);
        self.shared.catalog.renew_plans();
        saved_stats::save(&self.shared, table.def().id);
        Ok(())
    }

    /// History, floor, oldest reader.
    pub fn trx_status(&self) -> TrxStatus {
        self.shared.trx.status()
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Schema and account snapshots, metadata locks.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.shared.catalog
    }

    /// The open table with this id.
    pub fn table(&self, id: TableId) -> Option<Arc<Table>> {
        self.shared.tables.read().get(&id).cloned()
    }

    /// What an error says about a table's file: a damaged page, or no file. The table takes no more
    /// changes from then on; others are not concerned. `None`: it concerns no table.
    pub fn fence(&self, error: &EngineError) -> Option<Arc<Table>> {
        let space = match error {
            EngineError::Store(StoreError::Corrupt { page, .. }) => page.space,
            EngineError::Store(StoreError::SpaceGone(space)) => *space,
            _ => return None,
        };
        let tables = self.shared.tables.read();
        let table = tables.values().find(|t| t.def().space == space)?.clone();
        table.fence(error);
        Some(table)
    }

    /// Counters of buffer pool, log and files.
    pub fn store_status(&self) -> StoreStatus {
        self.shared.store.status()
    }

    /// Requests the syncs that this thread's commits have collected since
    /// [`gather_syncs`](crate::gather_syncs). A worker calls it before it sleeps. `may_block` says
    /// that the thread has nothing else to do, so it may run a short sync itself if no other thread
    /// waits for one.
    pub fn finish_syncs(&self, may_block: bool) {
        self.shared.store.finish_syncs(may_block);
    }

    /// Transactions, locks, purge: for status views.
    pub fn trx_system(&self) -> &Arc<TrxSystem> {
        &self.shared.trx
    }

    /// Estimated rows in a range of an index, from two descents; `None` when pages would have to be
    /// read first.
    pub fn estimate_range(
        &self,
        table: &Table,
        index: usize,
        range: &crate::batch::KeyRange,
    ) -> Option<u64> {
        let (lo, hi) = range.as_bytes();
        table
            .index(index)
            .tree
            .estimate_range(&self.shared.store, &lo, hi.as_deref().unwrap_or_default())
            .ok()
    }

    /// Opens a definition as a new table object, at the start.
    pub(crate) fn open_table(&self, def: &Arc<TableDef>) {
        let table = Arc::new(Table::new(def.clone(), self.shared.store.clone()));
        self.shared.tables.write().insert(def.id, table);
    }

    /// Opens a table that no restart keeps.
    pub(crate) fn open_private_table(&self, def: &Arc<TableDef>) {
        let table = Table::new(def.clone(), self.shared.store.clone());
        let table = Arc::new(table.of_one_session());
        self.shared.tables.write().insert(def.id, table);
    }

    /// Opens a table whose rows were put there just now: snapshots that are open cannot read it
    /// (error 1412).
    pub(crate) fn open_new_table(&self, def: &Arc<TableDef>) {
        let table = Table::new(def.clone(), self.shared.store.clone());
        let table = Arc::new(table.usable_from(self.shared.store.horizon().load()));
        self.shared.tables.write().insert(def.id, table);
    }

    /// Opens a table that was filled by a transaction before it had a name: snapshots that are open
    /// cannot read it (error 1412).
    pub(crate) fn open_filled_table(&self, def: &Arc<TableDef>) {
        let now = self.shared.store.horizon().load();
        let mut tables = self.shared.tables.write();
        let mut table = Table::new(def.clone(), self.shared.store.clone());
        if let Some(filled) = tables.get(&def.id) {
            table.take_over(filled, now);
        }
        tables.insert(def.id, Arc::new(table.usable_from(now)));
    }

    /// Opens a changed definition of a table whose rows stay: counters and statistics stay too.
    pub(crate) fn redefine_table(&self, def: &Arc<TableDef>) {
        let mut tables = self.shared.tables.write();
        let mut table = Table::new(def.clone(), self.shared.store.clone());
        if let Some(old) = tables.get(&def.id) {
            table.take_over(old, self.shared.store.horizon().load());
        }
        tables.insert(def.id, Arc::new(table));
    }

    /// Dropped tables: out of the map.
    pub(crate) fn forget_tables(&self, gone: &[Arc<TableDef>]) {
        let mut tables = self.shared.tables.write();
        gone.iter().for_each(|t| drop(tables.remove(&t.id)));
    }

    /// Unlinks the files of tables that were [forgotten](Self::forget_tables), without
    /// `Shared::ddl` (L2 of `ddl`). The tables are gone in any case: a file that is missing was to
    /// go, and one that cannot be removed, or that a crash leaves, is an orphan of the next start.
    pub(crate) fn unlink_tables(&self, gone: &[Arc<TableDef>]) {
        gone.iter()
            .for_each(|table| self.abandon_space(table.space));
        self.shared.trx.retry_parked();
    }
}

fn open_dictionary(store: &Arc<Store>) -> Result<Table, EngineError> {
    let known = store
        .spaces_on_disk()?
        .into_iter()
        .find(|(_, name)| name == dictionary::SPACE_NAME);
    let space = match known {
        Some((id, name)) => {
            store.open_space(id, &name)?;
            id
        }
        None => block(|| store.create_space(dictionary::SPACE_NAME))?,
    };
    match dictionary::open(store, space) {
        // A crash came between the file and its first contents.
        Err(EngineError::Dictionary(_)) => {
            dictionary::create(store, space)?;
            dictionary::open(store, space)
        }
        other => other,
    }
}
