//! One SQL session's side of the engine: its transaction, its snapshot slot, its metadata locks.
//!
//! # Picture
//! ```text
//!   statement_begin ─ reads and writes ─ statement_end(ok)      implicit savepoint: a failed statement leaves nothing
//!   begin ─ statements ... ─ commit | rollback                  autocommit: the caller commits after each statement
//! ```
//! # Invariants
//! S1. Statements run inside a transaction; `statement_begin` opens one when none is open. One that
//!     only reads costs a store into the session's own slot.
//! S2. Metadata locks are given up when the transaction ends, after its row locks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use nfold_catalog::MdlSlot;
use nfold_store::{Lsn, Mtr, Store, TrxId};
use nfold_sync::words::prefetch_line_outer;
use nfold_txn::locks::{LockKind, LockMode, LockRequest, LockTable, Locked};
use nfold_txn::undo::{RowChange, UndoPrep};
use nfold_txn::{FlushAtCommit, Isolation, Prepared, Trx, TrxSystem};
use nfold_types::row::RowLayout;

use crate::branches::Resumed;
use crate::error::{EngineError, Stop, lift};
use crate::journal::ChangeJournal;
use crate::overflow::{self, ValuesBeside};
use crate::pending_chains::PendingChains;
use crate::read::View;
use crate::row_hint::RowHints;
use crate::shared::Shared;
use crate::table::{Index, Table};
use crate::undo::Applier;
use crate::value_parts::LastLines;

/// How an explicit transaction begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrxOptions {
    pub isolation: Isolation,
    pub read_only: bool,
    /// `WITH CONSISTENT SNAPSHOT`
    pub consistent_snapshot: bool,
}

/// See the module's header. Dropping it rolls back in the background.
pub struct EngineSession {
    shared: Arc<Shared>,
    /// For rollbacks; kept, so that ending a transaction that has changed nothing counts no
    /// reference.
    applier: Applier,
    trx: Trx,
    mdl: MdlSlot,
    /// The transaction was begun by the caller, not by a statement.
    explicit: bool,
    /// Undo number before the statement at hand; between statements, that of the transaction
    /// ([`statement_end`](Self::statement_end)).
    mark: u32,
    /// A read of the statement at hand met a table or index that is newer than its snapshot.
    refused: bool,
    /// The transaction has changed a table that a restart keeps: only then has its commit to be
    /// durable.
    is_kept: bool,
    /// See [`EngineSession::sync_behind`].
    syncs_behind: bool,
    /// The newest commit of a transaction that may have changed something.
    last_commit: Option<Lsn>,
    pending_chains: PendingChains,
    last_lines: LastLines,
    /// The changes of the open transaction, if the caller records them.
    journal: Option<Box<ChangeJournal>>,
    /// The open transaction was prepared, and is being ended.
    resumed: Option<Box<Resumed>>,
}

static NEXT_INTERNAL: AtomicU64 = AtomicU64::new(1 << 32);

impl EngineSession {
    pub(crate) fn internal(shared: &Arc<Shared>) -> Result<EngineSession, EngineError> {
        Self::open(shared, NEXT_INTERNAL.fetch_add(1, Relaxed))
    }

    pub(crate) fn open(shared: &Arc<Shared>, number: u64) -> Result<EngineSession, EngineError> {
        let trx = shared.trx.session(number)?;
        let mdl = shared.catalog.mdl().slot(number);
        Ok(EngineSession {
            shared: shared.clone(),
            applier: Applier(shared.clone()),
            trx,
            mdl,
            explicit: false,
            is_kept: false,
            syncs_behind: false,
            last_commit: None,
            mark: 0,
            refused: false,
            pending_chains: PendingChains::default(),
            last_lines: LastLines::default(),
            journal: None,
            resumed: None,
        })
    }

    /// A statement is about to come: asks the processor for the session's own lines, without
    /// reading any of them.
    pub fn prefetch_own(&self) {
        prefetch_line_outer(&self.mdl);
        prefetch_line_outer(&self.mark);
        self.trx.prefetch_own();
    }

    /// Prefetches the slots in which snapshots and tables are announced.
    pub fn prefetch_rest(&self) {
        self.mdl.prefetch();
        self.trx.prefetch_rest();
    }

    #[inline]
    pub(crate) fn row_hints(&self) -> &RowHints {
        &self.shared.row_hints
    }

    /// BEGIN. The transaction before has ended.
    pub fn begin(&mut self, options: TrxOptions) {
        self.trx.begin(options.isolation, options.read_only);
        self.explicit = true;
        if options.consistent_snapshot && options.isolation.repeatable() {
            self.trx.snapshot();
        }
    }

    /// A transaction of the engine's own.
    pub(crate) fn begin_internal(&mut self) {
        self.trx.begin(Isolation::RepeatableRead, false);
        self.explicit = true;
    }

    /// Whether a transaction is open: begun by the caller, or by a statement that has not been
    /// committed.
    pub fn in_transaction(&self) -> bool {
        self.trx.is_active()
    }

    /// Whether the open transaction was begun explicitly.
    pub fn is_explicit(&self) -> bool {
        self.explicit && self.trx.is_active()
    }

    /// Whether the caller has begun the open transaction, or a statement of it has worked on tables
    /// ([`note_start`](Self::note_start)).
    pub fn has_worked(&self) -> bool {
        self.is_explicit() || self.trx.is_active() && self.trx.is_noted()
    }

    /// Whether the open transaction has changed anything.
    pub fn has_writes(&self) -> bool {
        self.trx.changes() > 0
    }

    /// The open transaction's id; 0 before its first change.
    pub fn trx_id(&self) -> TrxId {
        self.trx.id()
    }

    /// The isolation level of the open transaction.
    pub fn isolation(&self) -> Isolation {
        self.trx.isolation()
    }

    /// A statement begins; without an open transaction one is opened with these properties.
    #[inline]
    pub fn statement_begin(&mut self, isolation: Isolation, read_only: bool) {
        if !self.trx.is_active() {
            self.trx.begin(isolation, read_only);
            self.explicit = false;
        }
        self.mark = self.trx.mark();
        self.refused = false;
    }

    /// Records for the status views that the open transaction has begun to work; only the first
    /// call counts. `since_us` is in microseconds since 1970. `single` says that the transaction
    /// ends with its statement.
    #[inline]
    pub fn note_start(&mut self, since_us: u64, single: bool) {
        self.trx.note_start(since_us, single);
    }

    /// Whether the statement at hand failed because its snapshot is older than a table or index
    /// ([`EngineError::TableChanged`]): planning again does not help.
    pub fn snapshot_refused(&self) -> bool {
        self.refused
    }

    /// Checks that the open snapshot, if there is one, can use an index.
    #[inline]
    pub(crate) fn check_usable(&mut self, index: &Index) -> Result<(), Stop> {
        match self.trx.open_snapshot() {
            Some(snapshot) if snapshot.s < index.usable_from => {
                self.refused = true;
                Err(EngineError::TableChanged.into())
            }
            _ => Ok(()),
        }
    }

    /// Ends a statement, and undoes its changes if it failed. After a wait, call again.
    ///
    /// It also moves the statement's mark. So a later statement that fails before it began, because
    /// its table does not exist, does not undo the changes of this one.
    #[inline]
    pub fn statement_end(&mut self, ok: bool) -> Result<(), Stop> {
        if !ok {
            self.pending_chains.clear();
            if self.trx.is_active() && self.trx.mark() > self.mark {
                self.undo_to(self.mark)?;
            }
        }
        self.mark = self.trx.mark();
        self.trx.end_statement();
        Ok(())
    }

    /// Commits; call again after a wait. When it returns, the commit is visible to everybody, and
    /// durable as configured.
    #[inline]
    pub fn commit(&mut self) -> Result<(), Stop> {
        if !self.end_read() {
            return self.commit_changes();
        }
        Ok(())
    }

    /// Commits a transaction that has changed and locked nothing. False: nothing was done, and
    /// [`commit`](Self::commit) has to look at it.
    #[inline]
    pub fn end_read(&mut self) -> bool {
        let ended = self.trx.end_read();
        if ended {
            self.end();
        }
        ended
    }

    /// [`commit`](Self::commit), where there may be something to commit.
    fn commit_changes(&mut self) -> Result<(), Stop> {
        if self.trx.is_active() {
            let flush = match self.shared.flush_at_commit.load(Relaxed) {
                _ if !self.is_kept => FlushAtCommit::Lazy,
                0 => FlushAtCommit::Lazy,
                2 => FlushAtCommit::Written,
                _ if self.syncs_behind => FlushAtCommit::Behind,
                _ => FlushAtCommit::Durable,
            };
            self.last_commit = Some(self.trx.commit(flush).map_err(lift)?);
        }
        self.end();
        Ok(())
    }

    /// From now on a commit does not wait until it is durable, although it will be soon. For the
    /// session that applies a source's transactions: its coordinates commit with them, so a crash
    /// loses both, and the source sends the transactions again.
    pub fn sync_behind(&mut self) {
        self.syncs_behind = true;
    }

    /// The newest commit, if there was one since the last call.
    pub fn take_last_commit(&mut self) -> Option<Lsn> {
        self.last_commit.take()
    }

    /// As [`commit`](Self::commit), but always durable, for any value of
    /// `innodb_flush_log_at_trx_commit`.
    pub(crate) fn commit_durably(&mut self) -> Result<(), Stop> {
        self.commit_as(FlushAtCommit::Durable)
    }

    /// As [`commit`](Self::commit), without a wait for the disk. A later commit that is durable
    /// makes this one durable, too.
    pub(crate) fn commit_unsynced(&mut self) -> Result<(), Stop> {
        self.commit_as(FlushAtCommit::Lazy)
    }

    fn commit_as(&mut self, flush: FlushAtCommit) -> Result<(), Stop> {
        if self.trx.is_active() {
            self.last_commit = Some(self.trx.commit(flush).map_err(lift)?);
        }
        self.end();
        Ok(())
    }

    /// Rolls everything back; call again after a wait.
    pub fn rollback(&mut self) -> Result<(), Stop> {
        self.trx.rollback(&self.applier).map_err(lift)?;
        self.end();
        Ok(())
    }

    /// Makes a prepared transaction the open one.
    pub(crate) fn resume(&mut self, prepared: Prepared, resumed: Resumed) {
        self.trx.resume(prepared);
        self.explicit = true;
        self.mark = self.trx.mark();
        self.resumed = Some(Box::new(resumed));
    }

    /// After the rollback of a transaction that was resumed: waits until it is durable, so that no
    /// restart finds the transaction prepared. After a wait, call again.
    pub(crate) fn sync_rollback(&mut self) -> Result<(), Stop> {
        let store = &self.shared.store;
        let Some(resumed) = &mut self.resumed else {
            return Ok(());
        };
        let end = resumed.undone_at(store.horizon().load());
        match store.wait_durable(end) {
            Some(wait) => Err(Stop::Wait(wait)),
            None => Ok(()),
        }
    }

    /// The branch that the open transaction was prepared as.
    pub(crate) fn resumed(&self) -> Option<&Resumed> {
        self.resumed.as_deref()
    }

    /// After the end of a transaction that was resumed.
    pub(crate) fn leave_branch(&mut self) {
        self.trx.leave_resumed();
        self.resumed = None;
    }

    #[inline]
    pub(crate) fn end(&mut self) {
        self.explicit = false;
        self.is_kept = false;
        self.journal = None;
        self.mark = 0;
        self.mdl.release_all();
    }

    /// SAVEPOINT
    pub fn savepoint(&mut self, name: &str) {
        self.trx.savepoint(name);
    }

    /// ROLLBACK TO SAVEPOINT; call again after a wait.
    ///
    /// # Errors
    /// [`EngineError::NoSuchSavepoint`]
    pub fn rollback_to(&mut self, name: &str) -> Result<(), Stop> {
        let mark = self.trx.savepoint_mark(name);
        self.trx
            .rollback_to_savepoint(name, &self.applier)
            .map_err(lift)?;
        if let (Some(journal), Some(mark)) = (&mut self.journal, mark) {
            journal.truncate(mark);
        }
        Ok(())
    }

    /// RELEASE SAVEPOINT
    ///
    /// # Errors
    /// [`EngineError::NoSuchSavepoint`]
    pub fn release_savepoint(&mut self, name: &str) -> Result<(), EngineError> {
        Ok(self.trx.release_savepoint(name)?)
    }

    /// Before a change of a row of `table`.
    pub(crate) fn note_change(&mut self, table: &Table) -> Result<(), Stop> {
        table.check_sound()?;
        self.is_kept |= !table.is_private();
        Ok(())
    }

    /// The transaction, and the system of all.
    pub(crate) fn trx_and_system(&mut self) -> (&mut Trx, &Arc<TrxSystem>) {
        (&mut self.trx, &self.shared.trx)
    }

    /// A mark for [`return_to`](Self::return_to): what the transaction has changed so far.
    pub fn change_mark(&self) -> u32 {
        self.trx.mark()
    }

    /// Undoes what came after a mark of the statement at hand; call again after a wait.
    pub fn return_to(&mut self, mark: u32) -> Result<(), Stop> {
        self.undo_to(mark)
    }

    /// The session's metadata locks.
    pub fn mdl(&mut self) -> &mut MdlSlot {
        &mut self.mdl
    }

    /// The session's metadata locks, to compare with.
    pub fn mdl_ref(&self) -> &MdlSlot {
        &self.mdl
    }

    pub(crate) fn store(&self) -> &Store {
        &self.shared.store
    }

    pub(crate) fn system(&self) -> &TrxSystem {
        &self.shared.trx
    }

    pub(crate) fn locks(&self) -> &LockTable {
        self.shared.trx.locks()
    }

    /// The long values of the row that a read waits for.
    #[inline]
    pub(crate) fn pending_chains(&self) -> &PendingChains {
        &self.pending_chains
    }

    /// Where parts of long values were found last.
    #[inline]
    pub(crate) fn last_lines(&self) -> &LastLines {
        &self.last_lines
    }

    /// Opens the snapshot that reads use, if there is none.
    #[inline]
    pub(crate) fn open_view(&mut self) {
        self.trx.snapshot();
    }

    /// The parts of the session that a read needs to open the snapshot itself.
    #[inline]
    pub(crate) fn reader(&mut self) -> (&Store, &mut Trx) {
        (&self.shared.store, &mut self.trx)
    }

    /// What reads see: [`open_view`](Self::open_view) was called.
    #[inline]
    pub(crate) fn view(&self) -> View<'_> {
        match self.trx.open_snapshot() {
            Some(snapshot) if self.trx.isolation() != Isolation::ReadUncommitted => {
                View::Snapshot(snapshot, &self.shared.trx.views().status)
            }
            _ => View::Newest,
        }
    }

    /// Whether locking reads lock gaps.
    pub(crate) fn locks_gaps(&self) -> bool {
        self.trx.isolation().repeatable()
    }

    /// The transaction of a row or entry, if it is active and not this one: then its id is a lock.
    #[inline]
    pub(crate) fn active_other(&self, trx: TrxId) -> Option<TrxId> {
        (trx != self.trx.id() && self.shared.trx.is_active(trx)).then_some(trx)
    }

    pub(crate) fn lock(&mut self, request: &LockRequest<'_>) -> Result<Locked, Stop> {
        self.trx.lock(request).map_err(lift)
    }

    /// Whether the last call has stopped to wait for a row lock. The wait still exists.
    pub(crate) fn waits_for_lock(&self) -> bool {
        self.trx
            .lock_owner()
            .is_some_and(|owner| owner.is_waiting())
    }

    /// Releases a record lock.
    pub(crate) fn unlock(&mut self, index: u64, key: &[u8], mode: LockMode, kind: LockKind) {
        self.trx.unlock(index, key, mode, kind);
    }

    /// Whether the transaction is READ ONLY.
    pub(crate) fn is_read_only(&self) -> bool {
        self.trx.read_only()
    }

    /// The transaction's id, taken now if it has none.
    pub(crate) fn write_id(&mut self) -> Result<TrxId, Stop> {
        self.trx.assign_id().map_err(lift)
    }

    pub(crate) fn prepare_undo(
        &mut self,
        mtr: &mut Mtr<'_>,
        bytes: usize,
    ) -> Result<UndoPrep, Stop> {
        self.trx.prepare_undo(mtr, bytes).map_err(lift)
    }

    pub(crate) fn prepare_undo_of_several(
        &mut self,
        mtr: &mut Mtr<'_>,
        bodies: &[usize],
    ) -> Result<(UndoPrep, usize), Stop> {
        self.trx.prepare_undo_of_several(mtr, bodies).map_err(lift)
    }

    pub(crate) fn append_undo(
        &mut self,
        mtr: &mut Mtr<'_>,
        prep: &mut UndoPrep,
        change: &RowChange<'_>,
    ) -> u64 {
        self.trx.append_undo(mtr, prep, change).0
    }

    /// A mark for [`undo_to`](Self::undo_to).
    pub(crate) fn undo_position(&self) -> u32 {
        self.trx.mark()
    }

    /// Undoes what came after a mark; call again after a wait.
    pub(crate) fn undo_to(&mut self, mark: u32) -> Result<(), Stop> {
        self.trx
            .rollback_to_mark(mark, &self.applier)
            .map_err(lift)?;
        if let Some(journal) = &mut self.journal {
            journal.truncate(mark);
        }
        Ok(())
    }

    /// Records the change that was made last. `write` appends its description.
    ///
    /// # Errors
    /// The error of `write`.
    pub fn record_change<E>(
        &mut self,
        table: &Table,
        kind: u8,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let at = (self.trx.mark(), self.mark);
        let journal = self.journal.get_or_insert_default();
        journal.add(at, (table.def().id, kind), write)
    }

    /// Sets the text of the statement whose changes were recorded last.
    pub fn set_statement_text(&mut self, text: &[u8]) {
        if let Some(journal) = &mut self.journal {
            journal.set_text(text);
        }
    }

    /// The recorded changes of the open transaction.
    pub fn journal(&self) -> Option<&ChangeJournal> {
        self.journal
            .as_deref()
            .filter(|journal| !journal.is_empty())
    }

    /// Takes the recorded changes out of the transaction.
    pub fn take_journal(&mut self) -> Option<Box<ChangeJournal>> {
        self.journal.take().filter(|journal| !journal.is_empty())
    }

    /// Sets the bytes that the commit of the open transaction carries in the log, at most
    /// [`Engine::max_attachment`](crate::Engine::max_attachment).
    pub fn attach(&mut self, bytes: Vec<u8>) {
        self.trx.attach(bytes);
    }

    /// Writes a row image to `out` with all long values in the place of their overflow pointers;
    /// call again after a wait.
    ///
    /// # Errors
    /// Damage.
    pub fn whole_row(&self, table: &Table, row: &[u8], out: &mut Vec<u8>) -> Result<(), Stop> {
        let from = (self.store(), table.def().space);
        let pending = &self.pending_chains;
        out.clear();
        overflow::inflate(from, table.layout(), row, |_| true, pending, out)
    }

    /// Whether `row`, some of whose values may lie on overflow pages, has the same values as
    /// `whole`, which has all of them, `beside` among them. Call again after a wait.
    ///
    /// # Errors
    /// Damage.
    pub fn is_same_row(
        &self,
        table: &Table,
        row: &[u8],
        (whole, beside): (&[u8], ValuesBeside<'_>),
    ) -> Result<bool, Stop> {
        if !RowLayout::has_external(row) {
            return Ok(beside.is_empty() && row == whole);
        }
        let from = (self.store(), table.def().space);
        let whole = (whole, beside);
        overflow::is_same_row(from, table.layout(), row, whole, &self.pending_chains)
    }

    /// Keeps the table's estimated row count.
    pub(crate) fn count_rows(&self, table: &Table, change: i64) {
        table.rows_changed.fetch_add(change, Relaxed);
    }
}
