//! Background work: purges versions that no snapshot can see, and rolls back transactions without a
//! session.
//!
//! # Picture
//! ```text
//!  streams' ended lists ──(end <= floor)──▶ batch, in order of the ends ──▶ records, newest first ──▶ RowApplier::purge
//!                                                                       └─▶ pages released ──▶ freed, one mini-transaction each
//! ```
//! # Concurrency
//! One purger runs at a time: a second caller finds the state locked and does nothing. A step that
//! has to wait keeps its position.
//!
//! # Failure
//! Purge does not store its progress. After a crash it starts again, and skips versions that are
//! already removed.
//!
//! A persistent I/O error is no sign of damage: after a few attempts purge *defers* the transaction
//! that needs the page, and goes on with the following ones. It retries the deferred transaction
//! rarely, up to [`RARELY`] steps apart. Purging a transaction later than its successors is safe,
//! as purging again after a crash is: versions that are gone are skipped. Its undo pages stay until
//! then.

use crate::applier::RowApplier;
use crate::error::{Step, TxnError, is_damage};
use crate::system::{Orphan, TrxSystem, block_on};
use crate::undo::{Ended, TrxUndo, UndoPtr, UndoRecord};
use crate::view::OldestReader;
use nfold_store::{Lsn, PageNo, Stop, StoreError};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;

/// Attempts at a record before its transaction is deferred.
const ATTEMPTS: u32 = 3;
/// Steps until the first attempt after that; twice as many after each that fails.
const SOON: u64 = 16;
/// Steps between attempts at most: some minutes, when there is nothing else to purge.
const RARELY: u64 = 4096;

/// A transaction that an I/O error keeps from being purged.
struct DeferredPurge {
    ended: Ended,
    at: Option<UndoPtr>,
    error: TxnError,
    /// The step at which it is tried again, and how many steps it has waited for that.
    due: u64,
    after: u64,
}

/// Where the purger is.
#[derive(Default)]
pub(crate) struct PurgeState {
    batch: VecDeque<Ended>,
    /// The next record of the first of the batch; `None`: not begun.
    at: Option<UndoPtr>,
    /// How often it has failed.
    attempts: u32,
    deferred: Vec<DeferredPurge>,
    /// Undo pages that could not be freed, and the steps at which they are tried again; due ones
    /// stay here until they are gone.
    aside: Vec<(PageNo, u64)>,
    /// Steps that were begun.
    steps: u64,
    record: UndoRecord,
    purged: u64,
    oldest: Option<OldestReader>,
}

/// The result of a step.
#[derive(Copy, Clone, Default, PartialEq, Eq, Debug)]
pub struct PurgeProgress {
    /// Row records purged.
    pub records: usize,
    /// Transactions finished.
    pub transactions: usize,
    pub pages_freed: usize,
    /// The budget was used up, so there may be more to do now.
    pub more: bool,
}

/// For SHOW ENGINE STATUS and the status counters.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct TrxStatus {
    /// Ended transactions that are not purged yet.
    pub history_length: usize,
    /// Who held purge back when it last looked.
    pub oldest_reader: Option<OldestReader>,
    pub purge_floor: Lsn,
    pub horizon: Lsn,
    pub oldest_active_id: u64,
    pub next_id: u64,
    pub undo_pages: usize,
    pub undo_pages_free: usize,
    /// Pages of the undo files, and how many files were given up since the data directory was made.
    pub undo_file_pages: u64,
    pub undo_files_given_up: u64,
    /// Transactions that are being undone in the background.
    pub rolling_back: usize,
    /// Transactions that cannot be undone to the end, because a table is damaged.
    pub parked: usize,
    pub purged_transactions: u64,
}

/// Whether an error is an I/O error, which is no proof of damage.
fn is_io(error: &TxnError) -> bool {
    matches!(error, TxnError::Store(StoreError::Io { .. }))
}

impl PurgeState {
    /// The record at hand could not be read or purged. When it was tried a few times, its
    /// transaction is deferred: at once, if another one is for the same reason. Returns whether it
    /// was.
    fn failed(&mut self, error: TxnError) -> bool {
        self.attempts += 1;
        let known = self.deferred.iter().any(|p| p.error == error);
        if self.attempts < ATTEMPTS && !known {
            return false;
        }
        let at = self.at.take();
        self.attempts = 0;
        if let Some(ended) = self.batch.pop_front() {
            if !known {
                let transaction = ended.id;
                tracing::error!(%error, transaction, "purge goes on without it, and tries it again rarely");
            }
            self.deferred.push(DeferredPurge {
                ended,
                at,
                error,
                due: self.steps + SOON,
                after: SOON,
            });
        }
        true
    }

    /// An undo page cannot be freed: it is offered again later.
    fn set_aside(&mut self, page: PageNo, error: &TxnError) {
        let known = self.aside.iter().any(|(p, _)| *p == page);
        if !known {
            tracing::error!(%error, "an undo page is not freed; it will be tried again rarely");
        }
        self.aside.retain(|(p, _)| *p != page);
        self.aside.push((page, self.steps + RARELY));
    }
}

impl TrxSystem {
    /// Purges up to `budget` row records and frees as many pages. Errors leave the place where it
    /// is, so the next step tries again.
    pub fn purge_step(&self, applier: &dyn RowApplier, budget: usize) -> Step<PurgeProgress> {
        let mut done = PurgeProgress::default();
        let Some(mut state) = self.purge.try_lock() else {
            return Ok(done);
        };
        self.views().advance_low(u64::MAX, || self.horizon());
        let (floor, oldest) = self.views().raise_floor(|| self.horizon());
        self.views().status.recycle(self.views().low(), floor);
        state.oldest = oldest;
        state.steps += 1;
        while done.records < budget {
            if state.batch.is_empty() {
                state.batch = self.undo().take_ended(floor);
            }
            if state.batch.is_empty() {
                break;
            }
            match self.purge_one(applier, &mut state, &mut done) {
                Err(Stop::Error(error)) if is_io(&error) => {
                    if !state.failed(error) {
                        break; // the next step tries it again
                    }
                }
                other => other?,
            }
        }
        self.purge_deferred(applier, &mut state, &mut done);
        let steps = state.steps;
        let due = state.aside.iter().filter(|(_, due)| *due == steps);
        due.for_each(|(page, _)| self.undo().offer_free(*page));
        while done.pages_freed < budget {
            match self.undo().free_one() {
                Ok(true) => done.pages_freed += 1,
                Ok(false) => break,
                Err(Stop::Error(error)) if is_io(&error) => match self.undo().set_aside_free() {
                    Some(page) => state.set_aside(page, &error),
                    None => break,
                },
                Err(stop) => return Err(stop),
            }
        }
        state.aside.retain(|(_, due)| *due > steps);
        self.tend_undo_files()?;
        done.more = done.records >= budget || done.pages_freed >= budget;
        Ok(done)
    }

    /// One record of the first transaction of the batch, or its end.
    fn purge_one(
        &self,
        applier: &dyn RowApplier,
        state: &mut PurgeState,
        done: &mut PurgeProgress,
    ) -> Step<()> {
        let PurgeState {
            batch,
            at,
            attempts,
            record,
            purged,
            ..
        } = state;
        let Some(first) = batch.front() else {
            return Ok(());
        };
        let ptr = at.unwrap_or(if first.committed && !first.quiet {
            first.head
        } else {
            UndoPtr::NONE
        });
        if !ptr.is_none() {
            match self
                .undo()
                .read_if(ptr, first.id, record, |h| !h.is_quiet())
            {
                Ok(()) => {
                    if !record.quiet {
                        match applier.purge(record, self) {
                            // The old version stays in the damaged table.
                            Err(Stop::Error(e)) if applier.give_up(record, &e) => {}
                            other => other?,
                        }
                    }
                    *at = Some(record.prev_of_trx);
                    *attempts = 0;
                    done.records += 1;
                    return Ok(());
                }
                // It was purged to its end before the crash, and some of its pages are gone.
                Err(Stop::Error(TxnError::VersionGone { .. })) if first.recovered => {}
                Err(Stop::Error(error)) if is_damage(&error) => {
                    let transaction = first.id;
                    tracing::error!(%error, transaction, "a part of what it deleted will not be purged");
                }
                Err(stop) => return Err(stop),
            }
        }
        self.undo().release(first);
        (*at, *attempts) = (None, 0);
        *purged += 1;
        done.transactions += 1;
        batch.pop_front();
        Ok(())
    }

    /// Tries again one of the deferred transactions that are due.
    fn purge_deferred(
        &self,
        applier: &dyn RowApplier,
        state: &mut PurgeState,
        done: &mut PurgeProgress,
    ) {
        let due = |p: &DeferredPurge| p.due <= state.steps;
        let Some(n) = state.deferred.iter().position(due) else {
            return;
        };
        let off = state.deferred.swap_remove(n);
        let (id, mut after) = (off.ended.id, off.after);
        let mut alone = PurgeState {
            batch: VecDeque::from([off.ended]),
            at: off.at,
            record: std::mem::take(&mut state.record),
            ..PurgeState::default()
        };
        let result = loop {
            let result = self.purge_one(applier, &mut alone, done);
            if result.is_err() || alone.batch.is_empty() {
                break result;
            }
        };
        state.record = alone.record;
        state.purged += alone.purged;
        let Some(ended) = alone.batch.pop_front() else {
            tracing::info!(transaction = id, "purged, after it was deferred");
            return;
        };
        let (error, due) = match result {
            Err(Stop::Error(error)) => {
                tracing::debug!(%error, transaction = id, "purge is deferred once more");
                after = (after * 2).min(RARELY);
                (error, state.steps + after)
            }
            // A page that is being loaded is there at the next step.
            _ => (off.error, state.steps + 1),
        };
        state.deferred.push(DeferredPurge {
            ended,
            at: alone.at,
            error,
            due,
            after,
        });
    }

    /// Undoes up to `budget` row changes of transactions without a session: those that a crash
    /// interrupted, and those of closed sessions. Returns whether there is more to undo.
    pub fn rollback_step(&self, applier: &dyn RowApplier, budget: usize) -> Step<bool> {
        let Some(mut orphan) = self.orphans.lock().pop_front() else {
            return Ok(false);
        };
        let result = self.undo_orphan(&mut orphan, applier, budget);
        let mut orphans = self.orphans.lock();
        if !matches!(result, Ok(true)) {
            match &result {
                // The others need not wait for a disk that does not answer for this one.
                Err(Stop::Error(error)) if is_io(error) => orphans.push_back(orphan),
                _ => orphans.push_front(orphan),
            }
            return result.map(|_| true);
        }
        Ok(!orphans.is_empty())
    }

    /// Undoes to their ends the transactions without a session whose newest change is in this
    /// table. For an opening: blocks, and nothing else undoes meanwhile.
    pub fn undo_all_of(&self, table_id: u64, applier: &dyn RowApplier) -> Result<(), TxnError> {
        let mut record = UndoRecord::default();
        let all = std::mem::take(&mut *self.orphans.lock());
        for mut orphan in all {
            let (head, id) = (orphan.undo.head, orphan.undo.id);
            let mine = !head.is_none() && {
                block_on(|| self.undo().read(head, id, &mut record))?;
                record.table_id == table_id
            };
            if mine {
                // Damage here is an error: nothing is set aside.
                while block_on(|| self.undo_newest(&mut orphan.undo, 0, applier, &mut record))? {}
                block_on(|| self.undo_orphan(&mut orphan, applier, 1))?;
            } else {
                self.orphans.lock().push_back(orphan);
            }
        }
        Ok(())
    }

    /// Whether the transaction is done with.
    fn undo_orphan(
        &self,
        orphan: &mut Orphan,
        applier: &dyn RowApplier,
        budget: usize,
    ) -> Step<bool> {
        let mut record = UndoRecord::default();
        let Orphan { undo, owner, stuck } = orphan;
        for _ in 0..budget {
            if self.undo_or_skip(undo, stuck, applier, &mut record)? {
                continue;
            }
            if let Some(stuck) = stuck.take() {
                self.park(std::mem::take(undo), stuck, owner.take());
            } else {
                self.end_rollback(undo)?;
                if let Some(owner) = owner.take() {
                    self.locks().release_all(&owner);
                }
            }
            self.undoing.fetch_sub(1, Ordering::SeqCst);
            return Ok(true);
        }
        Ok(false)
    }

    /// Undoes the newest change, or passes over it if its table is damaged; the first such is kept
    /// in `stuck` (system::T3). Returns whether there was one.
    pub(crate) fn undo_or_skip(
        &self,
        undo: &mut TrxUndo,
        stuck: &mut Option<UndoPtr>,
        applier: &dyn RowApplier,
        record: &mut UndoRecord,
    ) -> Step<bool> {
        if undo.prepared {
            self.unprepare(undo, &mut None)?;
        }
        if undo.head.is_none() {
            return Ok(false);
        }
        let error = match self.undo().read(undo.head, undo.id, record) {
            Ok(()) => match applier.undo(record, self) {
                Ok(()) => None,
                Err(Stop::Error(e)) if applier.give_up(record, &e) => Some(e),
                Err(stop) => return Err(stop),
            },
            // The chain cannot be followed.
            Err(Stop::Error(e)) if is_damage(&e) => {
                record.prev_of_trx = UndoPtr::NONE;
                Some(e)
            }
            Err(stop) => return Err(stop),
        };
        if let Some(error) = error {
            tracing::debug!(%error, transaction = undo.id, "a change is not undone");
            stuck.get_or_insert(undo.head);
        }
        undo.head = record.prev_of_trx;
        Ok(true)
    }

    /// Undoes the newest change above number `down_to`; gives whether there was one.
    pub(crate) fn undo_newest(
        &self,
        undo: &mut TrxUndo,
        down_to: u32,
        applier: &dyn RowApplier,
        record: &mut UndoRecord,
    ) -> Step<bool> {
        if undo.head.is_none() {
            return Ok(false);
        }
        self.undo().read(undo.head, undo.id, record)?;
        if record.undo_no <= down_to {
            return Ok(false);
        }
        applier.undo(record, self)?;
        undo.head = record.prev_of_trx;
        Ok(true)
    }

    /// The counters, which are not read at one point in time.
    pub fn status(&self) -> TrxStatus {
        let (undo_pages, undo_pages_free) = self.undo().page_counts();
        let (waiting, oldest_reader, purged_transactions) = {
            let state = self.purge.lock();
            let waiting = state.batch.len() + state.deferred.len();
            (waiting, state.oldest, state.purged)
        };
        TrxStatus {
            history_length: self.undo().ended_count() + waiting,
            oldest_reader,
            purge_floor: self.views().floor(),
            horizon: self.horizon(),
            oldest_active_id: self.views().low(),
            next_id: self.views().next(),
            undo_pages,
            undo_pages_free,
            undo_file_pages: self.undo().file_pages(),
            undo_files_given_up: self.undo().spaces().generation(),
            rolling_back: self.undoing(),
            parked: self.parked(),
            purged_transactions,
        }
    }
}
