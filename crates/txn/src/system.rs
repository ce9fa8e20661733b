//! The transaction system of an engine: ids, snapshots, undo, locks, and recovery of transactions.
//!
//! # Invariants
//! - T1: every assigned id is below the ceiling in the undo space's header page. The log has the
//!   change of the ceiling before any change that carries the id. So after a crash the next id is
//!   above all used ids.
//! - T2: a transaction that a crash interrupted stays active, with its row locks implicit, until
//!   its last change is undone; a prepared one (`prepared`) until it is committed or rolled
//!   back.
//! - T3: if a damaged table prevents a change from being undone, the transaction's other changes
//!   are undone, and it is *parked*: it stays active, so no reader sees its remaining change.
//!   Rollback is tried again after tables were repaired or dropped, and at the next start.
//!
//! # Concurrency
//! Beginning, reading and ending a read-only transaction touch the session's own slot only. Taking
//! an id is one `fetch_add`; the mutex around the ceiling is taken once in 65,536 ids.

pub use crate::error::block_on;
use crate::error::{Step, TxnError};
use crate::locks::{LockOwner, LockTable};
use crate::prepared::RecoveredTrx;
use crate::purge::PurgeState;
use crate::trx::Trx;
use crate::undo::{TrxUndo, UndoLog, UndoPtr, UndoSpaces};
use crate::view::{CHUNK_IDS, RING_CHUNKS, Snapshots, Status, StatusTable};
use nfold_observe::contention::{Site, WaitKind};
use nfold_store::{Lsn, SpaceId, Store, StoreError, TrxId, lock_watched};
use nfold_sync::planted::{self, Bug};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Ids that one write of the ceiling covers.
const LEASE: u64 = 65536;
/// The ceiling is raised when fewer ids than this are left: more threads than half of this never
/// take ids at once.
const LEASE_MARGIN: u64 = 8192;
/// While more than this many ids are left, no thread waits for another that raises the ceiling.
const LEASE_URGENT: u64 = LEASE_MARGIN / 2;

/// Pages of an undo file that is not given up: 1 GiB.
const UNDO_LIMIT: u32 = 1 << 16;

/// Ids between the oldest active transaction and the newest.
const ID_SPAN: u64 = RING_CHUNKS * CHUNK_IDS;

/// How the transaction system is set up.
#[derive(Clone, Debug)]
pub struct TrxOptions {
    /// Append streams of the undo log; sessions are spread over them.
    pub undo_streams: usize,
}

impl Default for TrxOptions {
    fn default() -> Self {
        TrxOptions { undo_streams: 32 }
    }
}

/// What opening found.
#[derive(Copy, Clone, Default, PartialEq, Eq, Debug)]
pub struct TrxRecovery {
    /// Transactions that are being undone in the background, and their row changes at most.
    pub unfinished: usize,
    pub changes_to_undo: u64,
    /// Transactions that are prepared, and wait for a commit or rollback.
    pub prepared: usize,
    /// Ended transactions that are purged again.
    pub ended: usize,
    pub undo_pages: usize,
    pub next_id: TrxId,
}

/// A transaction without a session, to be undone in the background.
pub(crate) struct Orphan {
    pub undo: TrxUndo,
    pub owner: Option<Arc<LockOwner>>,
    /// The first record that could not be undone, because its table is damaged.
    pub stuck: Option<UndoPtr>,
}

/// See the module's header. One per engine.
pub struct TrxSystem {
    store: Arc<Store>,
    views: Snapshots,
    locks: Arc<LockTable>,
    undo: UndoLog,
    ceiling: AtomicU64,
    undo_limit: AtomicU32,
    raising: Mutex<()>,
    pub(crate) orphans: Mutex<VecDeque<Orphan>>,
    /// Those of them that are not undone yet, the one at hand included.
    pub(crate) undoing: AtomicUsize,
    /// T3
    parked: Mutex<Vec<Orphan>>,
    /// Prepared transactions that the start has found.
    recovered: Mutex<Vec<RecoveredTrx>>,
    pub(crate) purge: Mutex<PurgeState>,
}

impl TrxSystem {
    /// Opens the undo space, or creates it if the store has none, and finds unfinished
    /// transactions. [`rollback_step`](Self::rollback_step) rolls them back, and
    /// [`purge_step`](Self::purge_step) purges. Blocks.
    pub fn open(
        store: &Arc<Store>,
        options: &TrxOptions,
    ) -> Result<(Arc<TrxSystem>, TrxRecovery), TxnError> {
        let (spaces, on_disk) = UndoSpaces::open(store)?;
        let undo = UndoLog::new(store.clone(), spaces, options.undo_streams);
        let mut scanned = undo.scan()?;
        if planted::is(Bug::LostUndo) {
            scanned.unfinished.pop();
        }
        let next = store
            .next_trx_id_floor()
            .max(on_disk)
            .max(scanned.max_id + 1)
            .max(1);
        let prepared = scanned.prepared.iter().map(|(u, _)| u.id);
        let unfinished = scanned.unfinished.iter().map(|u| u.id);
        let active: Vec<TrxId> = unfinished.chain(prepared).collect();
        let first = active.iter().copied().min().unwrap_or(next);
        if !StatusTable::can_hold(first, next) {
            return Err(TxnError::TooManyTransactions { limit: ID_SPAN });
        }
        let report = TrxRecovery {
            unfinished: scanned.unfinished.len(),
            prepared: scanned.prepared.len(),
            changes_to_undo: scanned.unfinished.iter().map(|u| u.undo_no as u64).sum(),
            ended: scanned.ended.len(),
            undo_pages: scanned.pages,
            next_id: next,
        };
        undo.add_recovered(scanned.ended);
        let system = Arc::new(TrxSystem {
            store: store.clone(),
            views: Snapshots::new(next, &active),
            locks: Arc::new(LockTable::noting(store.contention().clone())),
            undo,
            ceiling: AtomicU64::new(next),
            undo_limit: AtomicU32::new(UNDO_LIMIT),
            raising: Mutex::new(()),
            orphans: Mutex::new(VecDeque::new()),
            undoing: AtomicUsize::new(0),
            parked: Mutex::default(),
            recovered: Mutex::default(),
            purge: Mutex::new(PurgeState::default()),
        });
        // No reader is older than the start.
        system.views.raise_floor(|| system.horizon());
        for undo in scanned.unfinished {
            system.adopt(undo, None);
        }
        for (undo, at) in scanned.prepared {
            let found = RecoveredTrx::open(&system, undo, at)?;
            system.recovered.lock().push(found);
        }
        let source = Arc::downgrade(&system);
        store.set_trx_id_source(move || source.upgrade().map_or(0, |s| s.views.next()));
        Ok((system, report))
    }

    /// The prepared transactions that the start has found; only the first call has them.
    pub fn take_recovered(&self) -> Vec<RecoveredTrx> {
        std::mem::take(&mut *self.recovered.lock())
    }

    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    pub fn views(&self) -> &Snapshots {
        &self.views
    }

    pub fn locks(&self) -> &Arc<LockTable> {
        &self.locks
    }

    pub fn undo(&self) -> &UndoLog {
        &self.undo
    }

    /// The spaces that hold the undo log; not orphans, though no table names them. The first is the
    /// one that is appended to.
    pub fn undo_spaces(&self) -> Vec<SpaceId> {
        let active = self.undo.spaces().active();
        let mut all: Vec<_> = self.undo.spaces().all().map(|(id, _)| id).collect();
        all.sort_by_key(|id| *id != active);
        all
    }

    /// `innodb_max_undo_log_size`, in pages: a larger undo file is given up for a new one, and
    /// removed when everything in it is purged. `u32::MAX`: never (`innodb_undo_log_truncate` is
    /// off).
    pub fn set_undo_limit(&self, pages: u32) {
        self.undo_limit.store(pages, Ordering::Relaxed);
    }

    /// Purge thread: turns to a new undo file when it is time, and gets on with giving the old one
    /// back.
    pub(crate) fn tend_undo_files(&self) -> Step<()> {
        let limit = self.undo_limit.load(Ordering::Relaxed);
        {
            let _raising = self.raising.lock();
            let ceiling = self.ceiling.load(Ordering::Acquire);
            match self.undo.turn_file(limit, ceiling) {
                // There may be room later.
                Err(TxnError::Store(StoreError::DiskFull)) | Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.undo
            .retire_step(self.ceiling.load(Ordering::Acquire))?;
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn horizon(&self) -> Lsn {
        self.store.horizon().load()
    }

    /// Whether the transaction of a row is still active, so that its id is a lock. It counts as
    /// active until its commit is visible.
    #[inline]
    pub fn is_active(&self, id: TrxId) -> bool {
        self.views.is_active(id, || self.horizon())
    }

    /// Every transaction with an id below this has ended, and its end is visible.
    #[inline]
    pub fn ended_below(&self) -> TrxId {
        self.views.low()
    }

    /// Whether purge has passed, or is about to pass, the end of a committed transaction, so that
    /// no snapshot needs the versions it replaced. See
    /// [`RowApplier::undo`](crate::RowApplier::undo).
    pub fn is_purgeable(&self, id: TrxId) -> bool {
        match self.views.status.get(id) {
            Status::Active | Status::Aborted(_) => false,
            Status::Committed(end) => end <= self.views.floor(),
            Status::Gone => true,
        }
    }

    /// A transaction object for a session; `session` is its number for the status views.
    pub fn session(self: &Arc<Self>, session: u64) -> Result<Trx, TxnError> {
        let slot = self.views.slots.take(session).ok_or(TxnError::TooLarge {
            what: "open sessions",
            limit: u32::MAX as u64,
        })?;
        Ok(Trx::new(self.clone(), session, slot))
    }

    /// A new transaction id. Waits at most for the undo space's header page.
    pub(crate) fn allocate_id(&self) -> Step<TrxId> {
        if self.views.next() + LEASE_MARGIN >= self.ceiling.load(Ordering::Acquire) {
            self.raise_ceiling()?;
        }
        let id = self
            .views
            .allocate()
            .ok_or(TxnError::TooManyTransactions { limit: ID_SPAN })?;
        assert!(
            id < self.ceiling.load(Ordering::Acquire),
            "T1: the id is below the ceiling"
        );
        Ok(id)
    }

    fn raise_ceiling(&self) -> Step<()> {
        let _raising = match self.raising.try_lock() {
            Some(raising) => raising,
            // Another thread raises it, or switches the undo file, which waits for the disk. There
            // is no need to wait while ids are left.
            None if self.views.next() + LEASE_URGENT < self.ceiling.load(Ordering::Acquire) => {
                return Ok(());
            }
            None => lock_watched(&self.raising, self.store.contention(), || {
                Site::of(WaitKind::TransactionIds)
            }),
        };
        let next = self.views.next();
        if next + LEASE_MARGIN < self.ceiling.load(Ordering::Acquire) {
            return Ok(());
        }
        let ceiling = next + LEASE;
        self.undo.write_ceiling(ceiling)?;
        self.ceiling.store(ceiling, Ordering::Release);
        Ok(())
    }

    /// For a shutdown, when no session has a transaction any more: writes down that nothing is
    /// unfinished, if that is so. Then a damaged undo page stops no start. Blocks.
    pub fn rest(&self) -> Result<(), TxnError> {
        let _raising = self.raising.lock();
        self.views.advance_low(u64::MAX, || self.horizon());
        let next = self.views.next();
        if self.undoing() > 0 || self.parked() > 0 || self.views.low() != next {
            return Ok(());
        }
        // Before it is on the page: an id that is taken all the same raises it first (T1).
        self.ceiling.store(next, Ordering::Release);
        block_on(|| self.undo.write_rest(next))
    }

    /// Hands a transaction without a session to the background, which rolls it back (T2).
    pub(crate) fn adopt(&self, undo: TrxUndo, owner: Option<Arc<LockOwner>>) {
        let owner = owner.unwrap_or_else(|| {
            let owner = LockOwner::new(0, true);
            self.locks.register(&owner, undo.id);
            owner
        });
        self.undoing.fetch_add(1, Ordering::SeqCst);
        self.orphans.lock().push_back(Orphan {
            undo,
            owner: Some(owner),
            stuck: None,
        });
    }

    /// Sets a transaction aside that is undone but for changes of damaged tables, from `stuck` on
    /// (T3). Its explicit locks are released.
    pub(crate) fn park(&self, mut undo: TrxUndo, stuck: UndoPtr, owner: Option<Arc<LockOwner>>) {
        undo.head = stuck;
        if let Some(owner) = owner {
            self.locks.release_all(&owner);
        }
        let owner = LockOwner::new(0, true);
        self.locks.register(&owner, undo.id);
        tracing::error!(
            transaction = undo.id,
            "rolled back as far as possible: what is left is in damaged tables, and stays invisible"
        );
        self.parked.lock().push(Orphan {
            undo,
            owner: Some(owner),
            stuck: None,
        });
    }

    /// Retries parked transactions after tables were repaired or dropped.
    pub fn retry_parked(&self) {
        let parked = std::mem::take(&mut *self.parked.lock());
        self.undoing.fetch_add(parked.len(), Ordering::SeqCst);
        self.orphans.lock().extend(parked);
    }

    /// Transactions that wait for a damaged table to be repaired or dropped (T3).
    pub fn parked(&self) -> usize {
        self.parked.lock().len()
    }

    /// How many transactions without a session are not undone yet, parked ones apart.
    pub fn undoing(&self) -> usize {
        self.undoing.load(Ordering::SeqCst)
    }

    /// The end of a transaction whose changes are all undone, and whose undo log says so.
    pub(crate) fn end_rollback(&self, undo: &mut TrxUndo) -> Step<Lsn> {
        let id = undo.id;
        if undo.undo_no == 0 {
            let now = self.horizon().max(1);
            self.views.status.set_aborted(id, now);
            return Ok(now);
        }
        let mut mtr = self.store.mtr();
        let prep = self.undo.prepare_end(&mut mtr, undo)?;
        Ok(self.undo.end(&mut mtr, prep, undo, false, |end| {
            self.views.status.set_aborted(id, end)
        }))
    }
}
