//! Background work: purging what nobody can see any more, and undoing what nobody will finish.
//!
//! # Picture
//! ```text
//!  streams' ended lists ──(end <= floor)──▶ batch, in order of the ends ──▶ records, newest first ──▶ RowApplier::purge
//!                                                                       └─▶ pages released ──▶ freed, one mini-transaction each
//! ```
//! # Concurrency
//! One purger at a time: a second caller finds the state locked and does nothing. A step that has to wait keeps its place.
//! # Failure
//! Nothing of purge's progress is on disk but its effects; after a crash it begins again, and finds them done.

use crate::applier::RowApplier;
use crate::error::{Step, TxnError};
use crate::system::{Orphan, TrxSystem, block_on};
use crate::undo::{Ended, TrxUndo, UndoPtr, UndoRecord};
use crate::view::OldestReader;
use nfold_store::{Lsn, Stop, StoreError};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;

/// Where the purger is.
#[derive(Default)]
pub(crate) struct PurgeState {
    batch: VecDeque<Ended>,
    /// The next record of the first of the batch; `None`: not begun.
    at: Option<UndoPtr>,
    record: UndoRecord,
    purged: u64,
    oldest: Option<OldestReader>,
}

/// What a step did.
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

/// Whether an error of the undo log is one that stays.
pub(crate) fn is_damage(error: &TxnError) -> bool {
    matches!(
        error,
        TxnError::Store(StoreError::Corrupt { .. }) | TxnError::VersionGone { .. }
    )
}

impl TrxSystem {
    /// Purges up to `budget` row records and frees as many pages. Errors leave the place where it is, so the next step tries again.
    pub fn purge_step(&self, applier: &dyn RowApplier, budget: usize) -> Step<PurgeProgress> {
        let mut done = PurgeProgress::default();
        let Some(mut state) = self.purge.try_lock() else {
            return Ok(done);
        };
        self.views().advance_low(u64::MAX, || self.horizon());
        let (floor, oldest) = self.views().raise_floor(|| self.horizon());
        self.views().status.recycle(self.views().low(), floor);
        state.oldest = oldest;
        while done.records < budget {
            if state.batch.is_empty() {
                state.batch = self.undo().take_ended(floor);
            }
            if state.batch.is_empty() {
                break;
            }
            self.purge_one(applier, &mut state, &mut done)?;
        }
        while done.pages_freed < budget && self.undo().free_one()? {
            done.pages_freed += 1;
        }
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
            record,
            purged,
            ..
        } = state;
        let Some(first) = batch.front() else {
            return Ok(());
        };
        let ptr = at.unwrap_or(if first.committed {
            first.head
        } else {
            UndoPtr::NONE
        });
        if !ptr.is_none() {
            match self.undo().read(ptr, first.id, record) {
                Ok(()) => {
                    match applier.purge(record, self) {
                        // What it would have removed stays in the damaged table.
                        Err(Stop::Error(e)) if applier.give_up(record, &e) => {}
                        other => other?,
                    }
                    *at = Some(record.prev_of_trx);
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
        *at = None;
        *purged += 1;
        done.transactions += 1;
        batch.pop_front();
        Ok(())
    }

    /// Undoes up to `budget` row changes of transactions without a session: what a crash left, and what dropped sessions left.
    /// Gives whether there is more to do.
    pub fn rollback_step(&self, applier: &dyn RowApplier, budget: usize) -> Step<bool> {
        let Some(mut orphan) = self.orphans.lock().pop_front() else {
            return Ok(false);
        };
        let result = self.undo_orphan(&mut orphan, applier, budget);
        let mut orphans = self.orphans.lock();
        if !matches!(result, Ok(true)) {
            orphans.push_front(orphan);
            return result.map(|_| true);
        }
        Ok(!orphans.is_empty())
    }

    /// Undoes to their ends the transactions without a session whose newest change is in this table. For an opening: blocks, and nothing else
    /// undoes meanwhile.
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

    /// Undoes the newest change, or passes over it if its table is damaged; the first such is kept in `stuck` (T3). Gives whether there was one.
    pub(crate) fn undo_or_skip(
        &self,
        undo: &mut TrxUndo,
        stuck: &mut Option<UndoPtr>,
        applier: &dyn RowApplier,
        record: &mut UndoRecord,
    ) -> Step<bool> {
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

    /// The counters; not one moment's picture.
    pub fn status(&self) -> TrxStatus {
        let (undo_pages, undo_pages_free) = self.undo().page_counts();
        let (waiting, oldest_reader, purged_transactions) = {
            let state = self.purge.lock();
            (state.batch.len(), state.oldest, state.purged)
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
