//! Locking reads: `FOR UPDATE`, `FOR SHARE`, and the rows that UPDATE and DELETE are about to
//! change.
//!
//! # Protocol
//! The read copies a few entries without a latch and locks each of them. If a lock was new, it
//! copies the entries again. The entries count only if both copies have the same keys, so no entry
//! was inserted in between. (REPEATABLE READ locks the gaps as well, READ COMMITTED only the
//! records.) Behind the last entry of a range it locks the gap up to the next entry. The statement
//! then works on the newest version of each row.
//!
//! # Invariants
//! K1. A row is returned only after its clustered record was locked and read again under the lock.
//!     (Exception: K5.)
//! K2. After a wait the current entries are copied and locked again (a lock that is already held
//!     costs one lookup). Rows that were already returned are recognized by their key, in scan
//!     direction.
//! K3. READ COMMITTED: every returned row records the locks that this read took for it, so that
//!     they can be released.
//! K4. A version that was read without a lock may be purged once its successor is committed. If the
//!     version or one of its overflow chains is missing, and the successor has ended or is no
//!     longer the newest version, the step is repeated; otherwise the row is damaged.
//! K5. A shared covering read locks the index entries alone, as in InnoDB. A transaction that
//!     changes an entry must lock it, and a locked entry without a delete mark belongs to no other
//!     active transaction. So the entry is visible without its row.
//! K6. A lock that was granted although another transaction has an uncommitted change does not
//!     count: the change was made between the read of the entry and the lock. The lock is released
//!     before the step is repeated, and before any wait.
//! K7. A forward scan locks a gap together with the entry behind it, after it has returned the
//!     entries before the gap. Once the gap is locked, the scan looks for entries that were
//!     inserted into it meanwhile: behind the last entry of a leaf, and behind the last one of the
//!     range.

use std::cmp::Ordering;
use std::sync::Arc;

use nfold_btree::{Cursor, EntryBatch, TreeHandle};
use nfold_store::{Store, Wait};
use nfold_txn::locks::{LockKey, LockKind, LockRequest, Locked, OnConflict};

use crate::batch::{Bound, EqualityKeys, KeyBytes, KeyRange, RowBatch, RowNote, successor};
use crate::error::{EngineError, Stop, lift};
use crate::overflow;
use crate::read::consistent::{as_slice, has_key, push_image, tree_bounds};
use crate::read::release::{Fresh, committed_version, may_have_gone, mode, release_noted};
use crate::read::visibility::damaged;
use crate::read::{LockWaitPolicy, ReadSpec, RowLock, Scratch};
use crate::record::{RowHeader, SecondaryEntry};
use crate::session::EngineSession;
use crate::table::{CoveringScratch, Table};

/// An end of a range of the tree.
type TreeBound = std::ops::Bound<KeyBytes>;

/// Entries locked in one go.
const SLICE: usize = 32;
/// Slices, or points, looked at in one go where they give no row.
const STEPS: usize = 64;

/// The state of one locking read.
#[derive(Default)]
pub(super) struct LockingRead {
    points: EqualityKeys,
    /// Set for a range, absent for points.
    range: Option<(TreeBound, TreeBound)>,
    /// Whole clustered keys that are the range's ends: nothing can be inserted outside of them and
    /// be inside the range.
    first_key: Option<Vec<u8>>,
    last_key: Option<Vec<u8>>,
    reverse: bool,
    /// Point at hand; a range is point 0 of 1.
    at: usize,
    here: Option<Here>,
    /// Before the entries at hand; kept for its memory.
    from: Cursor,
    /// Behind them.
    to: Cursor,
    /// For K7.
    back: Cursor,
    first: EntryBatch,
    again: EntryBatch,
    /// Which entries of `first` were locked anew.
    new: Vec<usize>,
    key: Vec<u8>,
    value: Vec<u8>,
    row: Vec<u8>,
    /// Rows given out since the points or the range were bound.
    given: usize,
    fresh: Fresh,
    scratch: Scratch,
    covering: CoveringScratch,
}

/// The position in the current key or range.
struct Here {
    /// First byte string above the range; `None`: no end.
    end: Option<KeyBytes>,
    /// The point is a whole unique key: its record alone is locked if it exists.
    exact: bool,
    /// Key of the entry given out last.
    last: Option<KeyBytes>,
    found: bool,
    /// The gap at the far end is locked (first of all when going backwards).
    end_locked: bool,
    exhausted: bool,
}

impl LockingRead {
    #[inline]
    pub(super) fn memory(&self) -> usize {
        self.first.memory()
            + self.again.memory()
            + self.scratch.version.capacity()
            + self.value.capacity()
            + self.row.capacity()
    }

    /// The keys, or key prefixes, that it looks up.
    pub(super) fn lookup_keys(&self) -> Vec<&[u8]> {
        self.points.iter().collect()
    }

    pub(super) fn bind_points(&mut self, points: EqualityKeys) -> EqualityKeys {
        (self.at, self.here, self.range, self.reverse) = (0, None, None, false);
        self.start_over();
        std::mem::replace(&mut self.points, points)
    }

    pub(super) fn bind_range(
        &mut self,
        table: &Table,
        spec: &ReadSpec,
        range: &KeyRange,
        reverse: bool,
    ) {
        (self.at, self.here, self.reverse) = (0, None, reverse);
        self.start_over();
        self.range = Some(tree_bounds(range));
        let whole = |bound: &Bound| match bound {
            Bound::Included(key) if spec.index == 0 && !reverse => {
                let layout = &table.index(0).key;
                let parts = layout.parts().len();
                let whole = parts > 0 && layout.prefix_bytes(key, parts) == Ok(key.len());
                whole.then(|| key.to_vec())
            }
            _ => None,
        };
        (self.first_key, self.last_key) = (whole(&range.lo), whole(&range.hi));
    }

    fn start_over(&mut self) {
        self.given = 0;
        self.fresh.clear();
        (self.first_key, self.last_key) = (None, None);
    }

    pub(super) fn next(
        &mut self,
        table: &Arc<Table>,
        spec: &ReadSpec,
        session: &mut EngineSession,
        out: &mut RowBatch,
    ) -> Result<bool, Stop> {
        if spec.lock == RowLock::Exclusive && session.is_read_only() {
            return Err(EngineError::ReadOnlyTransaction.into());
        }
        let before = out.len();
        let count = if self.range.is_some() {
            1
        } else {
            self.points.len()
        };
        let mut steps = 0;
        while self.at < count {
            if out.len() > before || steps == STEPS {
                return Ok(true);
            }
            steps += 1;
            if self.here.is_none() {
                let here = self.start(table, spec);
                self.here = Some(here);
            }
            self.step(table, spec, session, out)?;
        }
        Ok(false)
    }

    fn start(&mut self, table: &Table, spec: &ReadSpec) -> Here {
        let index = table.index(spec.index);
        let (lo, hi, exact) = match &self.range {
            Some((lo, hi)) => (lo.clone(), hi.clone(), false),
            None => {
                let point = self.points.key(self.at);
                let parts = index.key.parts().len();
                let whole = index.unique
                    && index
                        .key
                        .prefix_bytes(point, parts)
                        .is_ok_and(|n| n == point.len())
                    && !index.key.has_null(point, parts).unwrap_or(true);
                let (lo, hi) = tree_bounds(&KeyRange::prefix(point));
                (lo, hi, whole)
            }
        };
        self.from.reset(as_slice(&lo), as_slice(&hi), self.reverse);
        let end = match hi {
            std::ops::Bound::Excluded(hi) => Some(hi),
            std::ops::Bound::Included(hi) => successor(&hi),
            std::ops::Bound::Unbounded => None,
        };
        Here {
            end,
            exact,
            last: None,
            found: false,
            end_locked: false,
            exhausted: false,
        }
    }

    /// Locks and gives out the next slice of the point or range at hand.
    fn step(
        &mut self,
        table: &Table,
        spec: &ReadSpec,
        session: &mut EngineSession,
        out: &mut RowBatch,
    ) -> Result<(), Stop> {
        let gaps = session.locks_gaps();
        let here = self.here.as_mut().expect("next() sets it before each step");
        let tree = &table.index(spec.index).tree;
        if gaps && self.reverse && !here.end_locked {
            lock_end(table, spec, session, here, &mut self.first)?;
        }
        if here.exhausted {
            let closed = here.last.is_some() && here.last.as_deref() == self.last_key.as_deref();
            let nothing_fits = closed || here.exact && here.found;
            if gaps && !here.end_locked && !nothing_fits {
                lock_end(table, spec, session, here, &mut self.first)?;
            }
            if gaps && !self.reverse && !nothing_fits {
                let (from, back) = (&mut self.from, &mut self.back);
                let store = table.store();
                first_behind(tree, store, here, (&*from, back), &mut self.first)?;
                if self.first.iter().next().is_some() {
                    from.back_to(here.last.as_deref()); // K7
                    here.exhausted = false;
                    return Ok(());
                }
            }
            self.at += 1;
            self.here = None;
            return Ok(());
        }
        let slice = if spec.first_rows == 0 {
            SLICE
        } else {
            spec.first_rows.saturating_sub(self.given).clamp(1, SLICE)
        };
        let store = table.store();
        self.to.copy_from(&self.from);
        self.first.clear();
        let mut more = self
            .to
            .next_batch(tree, store, slice, &mut self.first)
            .map_err(lift)?;
        let kind = if gaps && !here.exact {
            LockKind::NextKey
        } else {
            LockKind::Record
        };
        let semi = spec.semi_consistent && spec.index == 0 && !here.exact && !gaps;
        let how = How {
            kind,
            semi,
            first_key: self.first_key.as_deref(),
            many: gaps && self.range.is_some() && !self.reverse && self.given >= SLICE,
        };
        self.new.clear();
        let entries = (&self.first, &mut self.new);
        let skipped = match lock_entries(table, spec, session, &how, entries, &mut self.fresh) {
            Ok(skipped) => skipped,
            Err(stop) => {
                look_again(table, spec, session, &how, (&self.first, &self.new))?;
                return Err(stop);
            }
        };
        // An unchanged leaf is not read again: a writer latches the leaf before it requests its
        // lock.
        if !self.new.is_empty() && !self.to.is_unchanged(tree, store) {
            self.to.copy_from(&self.from);
            self.again.clear();
            let read = self.to.next_batch(tree, store, slice, &mut self.again);
            if let Err(stop) = read {
                look_again(table, spec, session, &how, (&self.first, &self.new))?;
                return Err(lift(stop));
            }
            more = read.map_err(lift)?;
            let same = self
                .first
                .iter()
                .map(|e| e.0)
                .eq(self.again.iter().map(|e| e.0));
            let mut late = false;
            for (key, value) in self.again.iter() {
                late |= give_up_late(
                    table,
                    spec,
                    session,
                    &how,
                    &self.first,
                    &self.new,
                    (key, value),
                )?;
            }
            if late {
                return Err(Stop::Wait(Wait::ready())); // K6
            }
            if !same {
                return Ok(()); // something came between: once more, most locks are held by now
            }
            std::mem::swap(&mut self.first, &mut self.again);
        }
        if gaps
            && !self.reverse
            && !here.exact
            && self.from.is_between_leaves()
            && let Some((first, _)) = self.first.iter().next()
        {
            let (from, back) = (&mut self.from, &mut self.back);
            first_behind(tree, store, here, (&*from, back), &mut self.again)?;
            if self.again.iter().next().map(|e| e.0) != Some(first) {
                from.back_to(here.last.as_deref()); // K7
                return Ok(());
            }
        }
        for (i, (key, value)) in self.first.iter().enumerate() {
            let order = here
                .last
                .as_deref()
                .map_or(Ordering::Greater, |last| key.cmp(last));
            if order
                != (if self.reverse {
                    Ordering::Less
                } else {
                    Ordering::Greater
                })
                && here.last.is_some()
            {
                continue; // K2
            }
            let mut given = Given {
                at: self.at,
                noted: !gaps,
                fresh: &mut self.fresh,
                buffers: (&mut self.key, &mut self.value, &mut self.row),
                covering: &mut self.covering,
                out,
            };
            let found = if !skipped.contains(&i) {
                give_out(table, spec, session, (key, value), &mut given)?
            } else if semi {
                let scratch = &mut self.scratch;
                match look_unlocked(table, spec, session, (key, value), scratch, &mut given) {
                    Err(stop) if is_missing(&stop) && is_outdated(table, session, key, value)? => {
                        return Err(Stop::Wait(Wait::ready())); // K4
                    }
                    looked => looked?,
                }
            } else {
                false
            };
            if found {
                here.found = true;
                self.given += 1;
            }
            here.last = Some(KeyBytes::from_slice(key));
        }
        self.fresh.clear();
        std::mem::swap(&mut self.from, &mut self.to);
        here.exhausted = !more;
        Ok(())
    }
}

/// The first entry of the range behind the one that was given out last, as it is now.
fn first_behind(
    tree: &TreeHandle,
    store: &Store,
    here: &Here,
    (from, back): (&Cursor, &mut Cursor),
    out: &mut EntryBatch,
) -> Result<(), Stop> {
    back.copy_from(from);
    back.back_to(here.last.as_deref());
    out.clear();
    while out.is_empty() && back.next_batch(tree, store, 1, out).map_err(lift)? {}
    Ok(())
}

/// How entries are locked.
struct How<'a> {
    kind: LockKind,
    /// Locked ones are left out, to be looked at without a lock.
    semi: bool,
    /// The entry with this key needs no lock on the gap before it: the range begins here.
    first_key: Option<&'a [u8]>,
    /// The scan goes forward and has locked many entries already.
    many: bool,
}

impl How<'_> {
    fn kind(&self, key: &[u8]) -> LockKind {
        if self.first_key == Some(key) {
            LockKind::Record
        } else {
            self.kind
        }
    }
}

/// The transaction that changed an entry of the index that is read, if it is another one and not
/// over.
fn holder_of(
    spec: &ReadSpec,
    session: &EngineSession,
    value: &[u8],
) -> Result<Option<nfold_store::TrxId>, Stop> {
    let trx = if spec.index == 0 {
        RowHeader::split(value).ok_or_else(damaged)?.0.trx
    } else {
        SecondaryEntry::parse(value).ok_or_else(damaged)?.trx
    };
    Ok(session.active_other(trx))
}

/// Releases the new lock on an entry that another transaction has changed (K6). Returns whether it
/// has.
fn give_up_late(
    table: &Table,
    spec: &ReadSpec,
    session: &mut EngineSession,
    how: &How<'_>,
    first: &EntryBatch,
    new: &[usize],
    (key, value): (&[u8], &[u8]),
) -> Result<bool, Stop> {
    if holder_of(spec, session, value)?.is_none() {
        return Ok(false);
    }
    let late = first
        .iter()
        .enumerate()
        .any(|(i, entry)| entry.0 == key && new.contains(&i));
    if late {
        let index = table.def().indexes[spec.index].id.0;
        session.unlock(index, key, mode(spec), how.kind(key));
    }
    Ok(late)
}

/// [`give_up_late`] for the entries that were locked before something has to be waited for.
fn look_again(
    table: &Table,
    spec: &ReadSpec,
    session: &mut EngineSession,
    how: &How<'_>,
    (first, new): (&EntryBatch, &[usize]),
) -> Result<(), Stop> {
    let mut value = Vec::new();
    for (i, (key, _)) in first.iter().enumerate() {
        if !new.contains(&i) {
            continue;
        }
        value.clear();
        let tree = &table.index(spec.index).tree;
        match tree.get(table.store(), key, &mut value) {
            Ok(true) => {
                give_up_late(table, spec, session, how, first, new, (key, &value))?;
            }
            Ok(false) => {}
            // It cannot be looked at now.
            Err(_) => {
                let index = table.def().indexes[spec.index].id.0;
                session.unlock(index, key, mode(spec), how.kind(key));
            }
        }
    }
    Ok(())
}

/// Locks the entries of a slice in the index that is read, and notes which locks are new; those
/// skipped.
fn lock_entries(
    table: &Table,
    spec: &ReadSpec,
    session: &mut EngineSession,
    how: &How<'_>,
    (entries, new): (&EntryBatch, &mut Vec<usize>),
    fresh: &mut Fresh,
) -> Result<Vec<usize>, Stop> {
    let gaps = session.locks_gaps();
    let mut skipped = Vec::new();
    for (i, (key, value)) in entries.iter().enumerate() {
        let holder = holder_of(spec, session, value)?;
        let kind = how.kind(key);
        let mut request =
            request(table, spec, spec.index, LockKey::Key(key), kind).implicit_holder(holder);
        request.one_of_many = how.many;
        if how.semi {
            request = request.on_conflict(OnConflict::Skip);
        }
        let locked = session.lock(&request);
        if !gaps && matches!(locked, Ok(Locked::New) | Err(Stop::Wait(_))) {
            fresh.entry(key);
        }
        match locked? {
            Locked::New => new.push(i),
            Locked::Held => {}
            Locked::Skipped => skipped.push(i),
        }
    }
    Ok(skipped)
}

/// Locks the gap between the range's end and the first entry behind it.
fn lock_end(
    table: &Table,
    spec: &ReadSpec,
    session: &mut EngineSession,
    here: &mut Here,
    buffer: &mut EntryBatch,
) -> Result<(), Stop> {
    let tree = &table.index(spec.index).tree;
    let store = table.store();
    loop {
        let first_behind = |buffer: &mut EntryBatch| -> Result<(), Stop> {
            buffer.clear();
            let Some(end) = &here.end else { return Ok(()) };
            let lo = std::ops::Bound::Included(end.to_vec());
            let mut cursor = tree.cursor(
                nfold_btree::KeyRange {
                    lo,
                    hi: std::ops::Bound::Unbounded,
                },
                false,
            );
            while buffer.is_empty() && cursor.next_batch(tree, store, 1, buffer).map_err(lift)? {}
            Ok(())
        };
        first_behind(buffer)?;
        let next = buffer.iter().next().map(|(key, _)| key.to_vec());
        let key = next.as_deref().map_or(LockKey::Supremum, LockKey::Key);
        let locked = session.lock(&request(table, spec, spec.index, key, LockKind::Gap))?;
        if locked == Locked::New {
            first_behind(buffer)?;
            if buffer.iter().next().map(|(key, _)| key) != next.as_deref() {
                continue;
            }
        }
        here.end_locked = true;
        return Ok(());
    }
}

fn request<'k>(
    table: &Table,
    spec: &ReadSpec,
    index: usize,
    key: LockKey<'k>,
    kind: LockKind,
) -> LockRequest<'k> {
    let conflict = match spec.wait {
        LockWaitPolicy::Wait => OnConflict::Wait,
        LockWaitPolicy::NoWait => OnConflict::NoWait,
        LockWaitPolicy::SkipLocked => OnConflict::Skip,
    };
    LockRequest::new(table.def().indexes[index].id.0, key, mode(spec), kind).on_conflict(conflict)
}

/// Where a row goes that is given out.
struct Given<'a> {
    /// The point at hand.
    at: usize,
    /// K3.
    noted: bool,
    fresh: &'a mut Fresh,
    /// Key, value, row.
    buffers: (&'a mut Vec<u8>, &'a mut Vec<u8>, &'a mut Vec<u8>),
    covering: &'a mut CoveringScratch,
    out: &'a mut RowBatch,
}

/// Returns the last committed version of a row that another transaction has locked, if that version
/// exists.
fn look_unlocked(
    table: &Table,
    spec: &ReadSpec,
    session: &mut EngineSession,
    (key, value): (&[u8], &[u8]),
    scratch: &mut Scratch,
    given: &mut Given<'_>,
) -> Result<bool, Stop> {
    let there = committed_version(session, value, scratch)?;
    if there {
        give_unlocked(table, spec, session, key, &scratch.version, given)?;
    }
    Ok(there)
}

/// Whether a version, or a chain of one, was not there.
fn is_missing(stop: &Stop) -> bool {
    let version = matches!(stop, Stop::Error(EngineError::VersionGone { .. }));
    version || overflow::is_gone(stop)
}

fn is_outdated(
    table: &Table,
    session: &EngineSession,
    key: &[u8],
    value: &[u8],
) -> Result<bool, Stop> {
    let (header, _) = RowHeader::split(value).ok_or_else(damaged)?;
    may_have_gone(table, session, key, &header)
}

/// Appends the last committed version of a row that another transaction has locked.
fn give_unlocked(
    table: &Table,
    spec: &ReadSpec,
    session: &mut EngineSession,
    key: &[u8],
    version: &[u8],
    given: &mut Given<'_>,
) -> Result<(), Stop> {
    let (_, image) = RowHeader::split(version).ok_or_else(damaged)?;
    push_image(table, spec, session, image, given.at as u32, given.out)?;
    give_row_id(table, key, given.out);
    let note = RowNote {
        unlocked: true,
        ..RowNote::default()
    };
    given.out.note_last(note, key);
    Ok(())
}

/// Returns the row of a locked entry, if there is one; locks the clustered record first when the
/// entry is a secondary one. Otherwise READ COMMITTED gives up the locks again.
fn give_out(
    table: &Table,
    spec: &ReadSpec,
    session: &mut EngineSession,
    (key, value): (&[u8], &[u8]),
    given: &mut Given<'_>,
) -> Result<bool, Stop> {
    let mut note = RowNote {
        fresh: (given.noted && given.fresh.has_entry(key), false),
        ..RowNote::default()
    };
    let found = if spec.index == 0 {
        let (header, image) = RowHeader::split(value).ok_or_else(damaged)?;
        if !header.deleted {
            push_image(table, spec, session, image, given.at as u32, given.out)?;
            give_row_id(table, key, given.out);
        }
        !header.deleted
    } else {
        let entry = SecondaryEntry::parse(value).ok_or_else(damaged)?;
        let primary = entry.primary_key(key).ok_or_else(damaged)?;
        note.primary = primary.len() as u32;
        let found = if entry.deleted {
            false
        } else if spec.covering {
            give_entry(table, spec, session, (key, primary), &entry, given)?
        } else {
            give_row_of(table, spec, session, (key, primary), given)?
        };
        note.fresh.1 = given.noted && given.fresh.has_row(primary);
        found
    };
    if found && given.noted {
        given.out.note_last(note, key);
    } else if given.noted {
        release_noted(table, spec, session, note, key);
    }
    Ok(found)
}

/// Returns the columns that the entry itself holds (K5).
fn give_entry(
    table: &Table,
    spec: &ReadSpec,
    session: &EngineSession,
    (key, primary): (&[u8], &[u8]),
    entry: &SecondaryEntry<'_>,
    given: &mut Given<'_>,
) -> Result<bool, Stop> {
    let Given { at, covering, .. } = given;
    let mut whole = true;
    if entry.bare {
        // The entry is locked, so the row belongs to it.
        let row = &mut *given.buffers.2;
        row.clear();
        let tree = &table.index(0).tree;
        if !tree.get(table.store(), primary, row).map_err(lift)? {
            return Err(damaged());
        }
        let (_, image) = RowHeader::split(row).ok_or_else(damaged)?;
        let image = table.whole_row(image, session.pending_chains())?;
        whole = table.project_into(spec.index, &image, *at, given.out);
    } else {
        given.out.push_with(*at, |out| {
            whole = table.covering_row(spec.index, key, entry, covering, out);
            whole
        });
    }
    if !whole {
        return Err(damaged());
    }
    give_row_id(table, primary, given.out);
    Ok(true)
}

/// The part of [`give_out`] behind a secondary entry.
fn give_row_of(
    table: &Table,
    spec: &ReadSpec,
    session: &mut EngineSession,
    (key, primary): (&[u8], &[u8]),
    given: &mut Given<'_>,
) -> Result<bool, Stop> {
    let tree = &table.index(0).tree;
    let (key_buffer, value_buffer, _) = &mut given.buffers;
    let mut new = false;
    loop {
        value_buffer.clear();
        if !tree
            .get(table.store(), primary, value_buffer)
            .map_err(lift)?
        {
            return Ok(false);
        }
        let (header, image) = RowHeader::split(value_buffer).ok_or_else(damaged)?;
        let holder = session.active_other(header.trx);
        if new && holder.is_some() {
            let index = table.def().indexes[0].id.0;
            session.unlock(index, primary, mode(spec), LockKind::Record); // K6
        }
        let wanted = request(table, spec, 0, LockKey::Key(primary), LockKind::Record)
            .implicit_holder(holder);
        let locked = session.lock(&wanted);
        if given.noted && matches!(locked, Ok(Locked::New) | Err(Stop::Wait(_))) {
            given.fresh.row(primary);
        }
        match locked? {
            Locked::Skipped => return Ok(false),
            Locked::New => {
                new = true;
                continue; // K1
            }
            Locked::Held => {}
        }
        if header.deleted || !has_key(table, spec.index, image, (key, primary), key_buffer)? {
            return Ok(false);
        }
        push_image(table, spec, session, image, given.at as u32, given.out)?;
        give_row_id(table, primary, given.out);
        return Ok(true);
    }
}

/// A table without a primary key: writes need the row's clustered key, which its image does not
/// hold.
pub(super) fn give_row_id(table: &Table, primary: &[u8], out: &mut RowBatch) {
    if table.has_hidden_row_id()
        && let Ok(bytes) = primary.try_into()
    {
        out.set_row_id(u64::from_be_bytes(bytes));
    }
}
