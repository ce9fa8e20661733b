//! One session's transaction: from begin to commit or rollback.
//!
//! # Picture
//! ```text
//!           begin                 commit: record in the log           horizon there             durable, if required
//!   Idle ──────────▶ Active ─────────────────────────────▶ Filling ──────────────▶ Syncing ─────────────────────▶ Idle
//!                      │ prepare: see `prepared`
//!                      │ rollback: changes undone, end record                     (locks released)                  ▲
//!                      └───────────────────────────────────────▶ Ended ─────────────────────────────────────────────┘
//!                                                                     locks released
//! ```
//! Locks are released in slices: a transaction may hold millions, and other sessions of the thread
//! run in between.
//!
//! # Invariants
//! - X1: the id is taken with the first change; a transaction without one costs nothing shared.
//! - X2: row locks are released when the commit is below the horizon, so the next holder of a lock
//!   sees the commit in a new snapshot.
//! - X3: a call that stopped to wait is repeated, and continues where it stopped. No step runs
//!   twice.
//!
//! # Failure
//! A transaction that is dropped while it has changes is rolled back in the background, and keeps
//! its locks until then. Once its commit is in the log, it stays committed.

use crate::applier::RowApplier;
use crate::error::{Step, TxnError};
use crate::locks::{LockKind, LockMode, LockOwner, LockRequest, Locked};
use crate::prepared::Prepared;
use crate::savepoints::Savepoints;
use crate::system::TrxSystem;
use crate::turn;
use crate::undo::{RowChange, TrxUndo, UndoPrep, UndoPtr, UndoRecord};
use crate::view::Snapshot;
use nfold_store::{Lsn, Mtr, Stop, TrxId};
use nfold_sync::words::prefetch_line_outer;
use std::sync::Arc;

/// The four isolation levels of SQL.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Isolation {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

impl Isolation {
    /// Whether gaps are locked, and one snapshot serves the whole transaction.
    pub fn repeatable(self) -> bool {
        self >= Isolation::RepeatableRead
    }
}

/// The properties of a transaction for the status views.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct TrxAbout {
    pub isolation: Isolation,
    pub read_only: bool,
    /// It is one statement's, outside of BEGIN, with autocommit.
    pub single: bool,
}

impl TrxAbout {
    /// `[single][read only][isolation: 2 bits]`
    fn encode(self) -> u64 {
        self.isolation as u64 | u64::from(self.read_only) << 2 | u64::from(self.single) << 3
    }

    /// What the server's own transactions are like.
    pub fn of_the_server() -> TrxAbout {
        TrxAbout {
            isolation: Isolation::RepeatableRead,
            read_only: false,
            single: false,
        }
    }

    /// Decodes the properties from a slot.
    pub fn decode(about: u64) -> TrxAbout {
        let isolation = match about & 3 {
            0 => Isolation::ReadUncommitted,
            1 => Isolation::ReadCommitted,
            2 => Isolation::RepeatableRead,
            _ => Isolation::Serializable,
        };
        TrxAbout {
            isolation,
            read_only: about & 4 != 0,
            single: about & 8 != 0,
        }
    }
}

/// `innodb_flush_log_at_trx_commit`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum FlushAtCommit {
    /// 0: the log is written and synced every second; a crash of the process may lose what came
    /// since.
    Lazy,
    /// 2: OK is said when the commit is with the operating system; a crash of the machine may lose
    /// the last second, one of the process nothing.
    Written,
    /// 1: OK is said when the commit is on disk.
    Durable,
    /// 1 of a replica's applier: OK is said at once, and the commit is on disk soon. After a crash
    /// the source sends the transactions that were lost.
    Behind,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum State {
    Idle,
    Active,
    Filling(Lsn),
    Syncing(Lsn),
    /// The prepare record is in the log.
    Preparing(Lsn),
    /// Rolled back, or committed without a change; its locks are being released.
    Ended,
}

/// Advancing L at a commit looks at no more ids than this; purge does the rest.
const ADVANCE_AT_COMMIT: u64 = 256;

/// See the module's header. Belongs to one session, and serves one transaction after the other.
pub struct Trx {
    system: Arc<TrxSystem>,
    session: u64,
    slot: u32,
    state: State,
    isolation: Isolation,
    read_only: bool,
    view: Option<Snapshot>,
    owner: Option<Arc<LockOwner>>,
    undo: TrxUndo,
    savepoints: Savepoints,
    record: UndoRecord,
    /// Bytes that the commit carries in the log.
    attachment: Option<Vec<u8>>,
    /// The status views know of it.
    noted: bool,
    /// The first change that could not be undone, because its table is damaged.
    stuck: Option<UndoPtr>,
    /// The changes after this number could not be undone: until a later attempt succeeds, the
    /// transaction can only be rolled back.
    broken: Option<(u32, TxnError)>,
}

impl Trx {
    pub(crate) fn new(system: Arc<TrxSystem>, session: u64, slot: u32) -> Trx {
        let stream = system.undo().stream_for(slot);
        Trx {
            system,
            session,
            slot,
            state: State::Idle,
            isolation: Isolation::RepeatableRead,
            read_only: false,
            view: None,
            owner: None,
            undo: TrxUndo {
                stream,
                ..TrxUndo::default()
            },
            savepoints: Savepoints::default(),
            record: UndoRecord::default(),
            attachment: None,
            noted: false,
            stuck: None,
            broken: None,
        }
    }

    /// Asks the processor for what reads touch, without reading any of it.
    pub fn prefetch_own(&self) {
        prefetch_line_outer(&self.state);
        prefetch_line_outer(&self.view);
        prefetch_line_outer(&self.slot);
        prefetch_line_outer(&self.undo);
        prefetch_line_outer(&self.broken);
        prefetch_line_outer(&self.stuck);
    }

    /// Prefetches the slot in which snapshots are announced.
    pub fn prefetch_rest(&self) {
        self.system.views().slots.prefetch(self.slot);
    }

    pub fn system(&self) -> &Arc<TrxSystem> {
        &self.system
    }

    /// Begins. The one before has ended.
    #[inline]
    pub fn begin(&mut self, isolation: Isolation, read_only: bool) {
        assert_eq!(self.state, State::Idle, "the transaction before has ended");
        self.state = State::Active;
        self.isolation = isolation;
        self.read_only = read_only;
    }

    /// For the status views: the transaction has begun to work, at `since_us` (microseconds since
    /// 1970). `single`: it is one statement's.
    #[inline]
    pub fn note_start(&mut self, since_us: u64, single: bool) {
        if self.noted || self.state == State::Idle {
            return;
        }
        self.noted = true;
        let about = TrxAbout {
            isolation: self.isolation,
            read_only: self.read_only,
            single,
        };
        let slots = &self.system.views().slots;
        slots.note(self.slot, since_us.max(1), about.encode());
    }

    /// Whether [`note_start`](Self::note_start) was called for the open transaction.
    pub fn is_noted(&self) -> bool {
        self.noted
    }

    /// Between `begin` and the end of `commit` or `rollback`.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.state != State::Idle
    }

    #[inline]
    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    pub fn read_only(&self) -> bool {
        self.read_only
    }

    /// 0 until the first change.
    pub fn id(&self) -> TrxId {
        self.undo.id
    }

    /// Row changes so far, also undone ones.
    pub fn changes(&self) -> u32 {
        self.undo.undo_no
    }

    /// The snapshot to read with: opened when there is none. With the repeatable levels it lasts
    /// for the transaction, with the others until [`end_statement`](Self::end_statement). READ
    /// UNCOMMITTED opens one too, to keep the undo log in place, and then reads the newest
    /// versions.
    #[inline]
    pub fn snapshot(&mut self) -> Snapshot {
        let own = self.undo.id;
        match &mut self.view {
            Some(view) => {
                view.own = own;
                *view
            }
            None => {
                let view = self
                    .system
                    .views()
                    .open(self.slot, own, || self.system.horizon());
                self.view = Some(view);
                view
            }
        }
    }

    /// The snapshot, if one is open.
    #[inline]
    pub fn open_snapshot(&self) -> Option<Snapshot> {
        self.view.map(|view| Snapshot {
            own: self.undo.id,
            ..view
        })
    }

    /// Ends what belongs to a statement: the snapshot of READ COMMITTED and below.
    #[inline]
    pub fn end_statement(&mut self) {
        if !self.isolation.repeatable() {
            self.close_snapshot();
        }
    }

    #[inline]
    fn close_snapshot(&mut self) {
        if self.view.take().is_some() {
            self.system.views().slots.close(self.slot);
        }
    }

    /// The id, taken now if there is none. Before the first change.
    pub fn assign_id(&mut self) -> Step<TrxId> {
        if self.undo.id == 0 {
            if self.read_only {
                return Err(TxnError::ReadOnly.into());
            }
            let id = self.system.allocate_id()?;
            self.undo.id = id;
            let owner = self.owner().clone();
            self.system.locks().register(&owner, id);
        }
        Ok(self.undo.id)
    }

    fn owner(&mut self) -> &Arc<LockOwner> {
        let (session, gaps) = (self.session, self.isolation.repeatable());
        self.owner
            .get_or_insert_with(|| LockOwner::new(session, gaps))
    }

    /// Requests a row lock; see [`LockTable::lock`](crate::locks::LockTable::lock). After
    /// `Deadlock` the caller rolls the transaction back.
    pub fn lock(&mut self, request: &LockRequest<'_>) -> Step<Locked> {
        let owner = self.owner().clone();
        self.system.locks().lock(&owner, request)
    }

    /// Sets the bytes that the commit carries in the log, at most
    /// [`Store::max_attachment`](nfold_store::Store::max_attachment). They are dropped if the
    /// transaction has changed nothing, or is rolled back. [`prepare`](Self::prepare) and the
    /// rollback of a prepared transaction carry them as well.
    pub fn attach(&mut self, bytes: Vec<u8>) {
        self.attachment = Some(bytes);
    }

    /// The mark of a savepoint.
    pub fn savepoint_mark(&self, name: &str) -> Option<u32> {
        self.savepoints.changes_before(name)
    }

    /// Releases a record lock on a row that turned out not to match; see
    /// [`LockTable::unlock`](crate::locks::LockTable::unlock).
    pub fn unlock(&mut self, index: u64, key: &[u8], mode: LockMode, kind: LockKind) {
        if let Some(owner) = &self.owner {
            self.system.locks().unlock(owner, index, key, mode, kind);
        }
    }

    /// The owner of its locks, if it has requested a lock or changed a row.
    pub fn lock_owner(&self) -> Option<&Arc<LockOwner>> {
        self.owner.as_ref()
    }

    /// Makes room for one undo record; see [`UndoLog::prepare`](crate::undo::UndoLog::prepare). The
    /// id is taken before.
    pub fn prepare_undo(&self, mtr: &mut Mtr<'_>, body_len: usize) -> Step<UndoPrep> {
        self.system.undo().prepare(mtr, &self.undo, body_len)
    }

    /// Makes room for several undo records, and returns for how many; see
    /// [`UndoLog::prepare_several`](crate::undo::UndoLog::prepare_several). The id is taken before.
    pub fn prepare_undo_of_several(
        &self,
        mtr: &mut Mtr<'_>,
        bodies: &[usize],
    ) -> Step<(UndoPrep, usize)> {
        let undo = self.system.undo();
        undo.prepare_several(mtr, &self.undo, bodies)
    }

    /// Logs a row change that `mtr` makes; returns the undo pointer for the row's new version.
    pub fn append_undo(
        &mut self,
        mtr: &mut Mtr<'_>,
        prep: &mut UndoPrep,
        change: &RowChange<'_>,
    ) -> UndoPtr {
        let ptr = self.system.undo().append(mtr, prep, &mut self.undo, change);
        if let Some(owner) = &self.owner {
            owner.set_changes(self.undo.undo_no as u64);
        }
        ptr
    }

    /// A mark to roll back to, for the savepoint that every statement has.
    #[inline]
    pub fn mark(&self) -> u32 {
        self.undo.undo_no
    }

    /// Undoes everything after `mark`, newest first. Row locks stay. Called again after a wait.
    pub fn rollback_to_mark(&mut self, mark: u32, applier: &dyn RowApplier) -> Step<()> {
        let Trx {
            system,
            undo,
            record,
            broken,
            ..
        } = self;
        let mut left = turn::RECORDS;
        loop {
            match system.undo_newest(undo, mark, applier, record) {
                Ok(true) => turn::count_record(&mut left)?,
                Ok(false) => {
                    if broken.as_ref().is_some_and(|(lowest, _)| mark <= *lowest) {
                        *broken = None;
                    }
                    return Ok(());
                }
                Err(stop) => {
                    if let Stop::Error(error) = &stop {
                        let (lowest, _) = broken.get_or_insert((mark, error.clone()));
                        *lowest = mark.min(*lowest);
                    }
                    return Err(stop);
                }
            }
        }
    }

    /// SAVEPOINT: the newest of a name counts. Names compare without case.
    pub fn savepoint(&mut self, name: &str) {
        self.savepoints.set(name, self.undo.undo_no);
    }

    /// ROLLBACK TO SAVEPOINT: undoes what came after it, and forgets the savepoints after it.
    pub fn rollback_to_savepoint(&mut self, name: &str, applier: &dyn RowApplier) -> Step<()> {
        let changes = self.savepoints.changes_before(name);
        self.rollback_to_mark(changes.ok_or(TxnError::NoSuchSavepoint)?, applier)?;
        self.savepoints.remove_newer(name);
        Ok(())
    }

    /// RELEASE SAVEPOINT: forgets it and those after it.
    pub fn release_savepoint(&mut self, name: &str) -> Result<(), TxnError> {
        match self.savepoints.release(name) {
            true => Ok(()),
            false => Err(TxnError::NoSuchSavepoint),
        }
    }

    /// Commits a transaction that has changed and locked nothing. False: nothing was done, and
    /// [`commit`](Self::commit) has to look at it.
    #[inline]
    pub fn end_read(&mut self) -> bool {
        let nothing = self.state == State::Active
            && self.undo.id == 0
            && self.owner.is_none()
            && self.broken.is_none()
            && self.savepoints.is_empty();
        if nothing {
            self.close_snapshot();
            self.close_note();
            self.state = State::Idle;
        }
        nothing
    }

    /// The status views forget it.
    #[inline]
    fn close_note(&mut self) {
        if std::mem::take(&mut self.noted) {
            self.system.views().slots.note(self.slot, 0, 0);
        }
    }

    /// Commits. Returns the LSN of the end, or 0 if nothing was changed. After a wait for room, for
    /// the horizon or for the disk, call again.
    ///
    /// # Errors
    /// The error of a failed [`rollback_to_mark`](Self::rollback_to_mark) that was not repeated
    /// with success. The caller must roll back then.
    pub fn commit(&mut self, flush: FlushAtCommit) -> Step<Lsn> {
        if self.state == State::Active {
            if let Some((_, error)) = &self.broken {
                return Err(Stop::Error(error.clone()));
            }
            match self.fill_commit()? {
                Some(end) => self.state = State::Filling(end),
                None => self.state = State::Ended,
            }
        }
        if let State::Filling(end) = self.state {
            if let Some(wait) = self.system.store().wait_filled(end) {
                return Err(Stop::Wait(wait));
            }
            self.release()?;
            self.state = State::Syncing(end);
        }
        let State::Syncing(end) = self.state else {
            self.close_snapshot();
            if self.state == State::Ended {
                self.finish()?;
            }
            return Ok(0);
        };
        let store = self.system.store();
        let wait = match flush {
            FlushAtCommit::Durable => store.wait_durable(end),
            FlushAtCommit::Written => store.wait_written(end),
            FlushAtCommit::Lazy => None,
            FlushAtCommit::Behind => {
                store.sync_behind(end);
                None
            }
        };
        if let Some(wait) = wait {
            return Err(Stop::Wait(wait));
        }
        self.finish()?;
        Ok(end)
    }

    /// Whether the commit is in the log and cannot be taken back, though `commit` has not returned
    /// yet.
    pub fn is_committed(&self) -> bool {
        matches!(self.state, State::Filling(_) | State::Syncing(_))
    }

    fn fill_commit(&mut self) -> Step<Option<Lsn>> {
        self.close_snapshot();
        if self.undo.id == 0 {
            return Ok(None);
        }
        let Trx {
            system,
            undo,
            attachment,
            ..
        } = self;
        if undo.undo_no == 0 {
            system.end_rollback(undo)?;
            return Ok(None);
        }
        let mut mtr = system.store().mtr();
        if let Some(bytes) = attachment.take() {
            return Trx::fill_attached(system, undo, &mut mtr, (bytes, attachment)).map(Some);
        }
        let prep = system.undo().prepare_end(&mut mtr, undo)?;
        let (id, status) = (undo.id, &system.views().status);
        Ok(Some(system.undo().end(&mut mtr, prep, undo, true, |end| {
            status.set_committed(id, end)
        })))
    }

    /// Fills the commit together with its attachment. After a wait `left` has the bytes again.
    fn fill_attached(
        system: &TrxSystem,
        undo: &mut TrxUndo,
        mtr: &mut Mtr<'_>,
        (bytes, left): (Vec<u8>, &mut Option<Vec<u8>>),
    ) -> Step<Lsn> {
        let prep = match system.undo().prepare_end_with(mtr, undo, bytes.len()) {
            Ok(prep) => prep,
            Err(stop) => {
                *left = Some(bytes);
                return Err(stop);
            }
        };
        let (store, id, status) = (system.store(), undo.id, &system.views().status);
        mtr.attach(&bytes);
        // The mini-transaction begins behind every horizon that is known now.
        let floor = store.horizon().load();
        Ok(system.undo().end(mtr, prep, undo, true, |end| {
            status.set_committed(id, end);
            store.attachments().push(floor, end, bytes);
        }))
    }

    /// Prepares the transaction and takes it out of the session, which is idle then. `name` and
    /// `about` are stored with it: together at most [`MAX_BODY`](crate::undo::MAX_BODY) bytes.
    /// After a wait for room or for the disk, call again.
    ///
    /// # Errors
    /// As [`commit`](Self::commit). The transaction stays open then.
    pub fn prepare(&mut self, name: &[u8], about: &[u8]) -> Step<Prepared> {
        if self.state == State::Active {
            if let Some((_, error)) = &self.broken {
                return Err(Stop::Error(error.clone()));
            }
            self.close_snapshot();
            // One that has changed nothing gets an id, too: a restart must find it.
            let read_only = std::mem::take(&mut self.read_only);
            let id = self.assign_id();
            self.read_only = read_only;
            id?;
            let mut mtr = self.system.store().mtr();
            let undo = self.system.undo();
            let prep = undo.prepare(&mut mtr, &self.undo, name.len() + about.len())?;
            let len = self.attachment.as_ref().map_or(0, Vec::len);
            undo.reserve_attachment(&mut mtr, &prep, len)?;
            let ready = self.system.attached(&mut mtr, &mut self.attachment);
            let body = (name, about);
            let end = undo.append_prepare(&mut mtr, prep, &mut self.undo, body, ready);
            self.state = State::Preparing(end);
        }
        let State::Preparing(end) = self.state else {
            unreachable!("only an open transaction is prepared: {:?}", self.state)
        };
        if let Some(wait) = self.system.store().wait_durable(end) {
            return Err(Stop::Wait(wait));
        }
        let owner = self.owner().clone();
        owner.leave_session();
        self.owner = None;
        let stream = self.undo.stream;
        let undo = std::mem::take(&mut self.undo);
        self.undo.stream = stream;
        self.close_note();
        self.savepoints.clear();
        self.attachment = None;
        self.state = State::Idle;
        Ok(Prepared { undo, owner })
    }

    /// Makes a prepared transaction the open one of this idle `Trx`, so that it can be committed or
    /// rolled back; see [`leave_resumed`](Self::leave_resumed).
    pub fn resume(&mut self, prepared: Prepared) {
        self.begin(Isolation::RepeatableRead, false);
        self.undo = prepared.undo;
        self.owner = Some(prepared.owner);
    }

    /// After the end of a resumed transaction: turns back to the `Trx`'s own stream.
    pub fn leave_resumed(&mut self) {
        self.undo.stream = self.system.undo().stream_for(self.slot);
    }

    /// Rolls back the transaction. Changes that damaged tables prevent from being undone are left
    /// to the background (system::T3). After a wait, call again.
    pub fn rollback(&mut self, applier: &dyn RowApplier) -> Step<()> {
        match self.state {
            State::Idle => {
                self.close_snapshot();
                return Ok(());
            }
            State::Active | State::Preparing(_) => {}
            // Too late: it is committed.
            State::Filling(_) | State::Syncing(_) => {
                return self.commit(FlushAtCommit::Lazy).map(|_| ());
            }
            State::Ended => return self.finish(),
        }
        self.close_snapshot();
        let Trx {
            system,
            undo,
            record,
            stuck,
            owner,
            attachment,
            ..
        } = self;
        if undo.prepared {
            system.unprepare(undo, attachment)?;
        }
        let mut left = turn::RECORDS;
        while system.undo_or_skip(undo, stuck, applier, record)? {
            turn::count_record(&mut left)?;
        }
        if let Some(stuck) = stuck.take() {
            let stream = undo.stream;
            system.park(std::mem::take(undo), stuck, owner.take());
            undo.stream = stream;
        } else if undo.id != 0 {
            system.end_rollback(undo)?;
        }
        self.state = State::Ended;
        self.finish()
    }

    /// Releases the locks (X2) and lets L pass. After a wait for a turn, call again.
    fn release(&mut self) -> Step<()> {
        if let Some(owner) = &self.owner {
            if !self.system.locks().release_slice(owner) {
                return Err(turn::wait());
            }
            self.owner = None;
        }
        if self.undo.id != 0 {
            self.system
                .views()
                .advance_low(ADVANCE_AT_COMMIT, || self.system.horizon());
        }
        Ok(())
    }

    /// Ends a transaction as a crash does: nothing is undone or released.
    #[cfg(test)]
    pub(crate) fn vanish(mut self) {
        self.undo = TrxUndo::default();
        self.owner = None;
        self.state = State::Idle;
    }

    /// Releases what the transaction has left, and makes room for the next one. After a wait for a
    /// turn, call again.
    fn finish(&mut self) -> Step<()> {
        self.close_snapshot();
        self.release()?;
        self.close_note();
        self.savepoints.clear();
        self.attachment = None;
        self.broken = None;
        self.undo = TrxUndo {
            stream: self.undo.stream,
            ..TrxUndo::default()
        };
        self.state = State::Idle;
        Ok(())
    }
}

impl Drop for Trx {
    fn drop(&mut self) {
        self.close_snapshot();
        if matches!(self.state, State::Active | State::Preparing(_)) && self.undo.id != 0 {
            self.system
                .adopt(std::mem::take(&mut self.undo), self.owner.take());
        }
        if let Some(owner) = self.owner.take() {
            self.system.locks().release_all(&owner);
        }
        self.system.views().slots.give(self.slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_note_says_is_what_was_noted() {
        for isolation in [
            Isolation::ReadUncommitted,
            Isolation::ReadCommitted,
            Isolation::RepeatableRead,
            Isolation::Serializable,
        ] {
            for (read_only, single) in [(false, false), (true, false), (false, true), (true, true)]
            {
                let about = TrxAbout {
                    isolation,
                    read_only,
                    single,
                };
                assert_eq!(TrxAbout::decode(about.encode()), about);
            }
        }
    }
}
