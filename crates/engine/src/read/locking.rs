//! Locking reads: `FOR UPDATE`, `FOR SHARE`, and the rows that UPDATE and DELETE are about to change.
//!
//! # Protocol
//! A handful of entries is copied without latch, each is locked, and if any lock was new the entries are copied again: only when
//! both copies have the same keys do they count, so nothing can have come between (REPEATABLE READ locks the gaps too, READ
//! COMMITTED only the records). Behind the last entry of a range the gap up to the next entry is locked. Then the newest version
//! of each row is what the statement works on.
//!
//! # Invariants
//! K1. A row is given out only after its clustered record is locked and was read again under that lock.
//! K2. After a wait the entries at hand are copied and locked again (locks that are held cost a lookup); rows that were given
//!     out are told apart by their key, in the direction of the scan.

use std::cmp::Ordering;
use std::sync::Arc;

use nfold_btree::{Cursor, EntryBatch};
use nfold_txn::locks::{LockKey, LockKind, LockMode, LockRequest, Locked, OnConflict};

use crate::batch::{KeyRange, PointSet, RowBatch, successor};
use crate::error::{Stop, lift};
use crate::read::consistent::{has_key, push_image, tree_range};
use crate::read::settle::damaged;
use crate::read::{LockWaitPolicy, ReadSpec, RowLock};
use crate::record::{RowHeader, SecondaryEntry};
use crate::session::EngineSession;
use crate::table::Table;

/// Entries locked in one go.
const SLICE: usize = 32;

/// The state of one locking read.
#[derive(Default)]
pub(super) struct LockingRead {
    points: PointSet,
    /// Set for a range, absent for points.
    range: Option<nfold_btree::KeyRange>,
    reverse: bool,
    /// Point at hand; a range is point 0 of 1.
    at: usize,
    here: Option<Here>,
    first: EntryBatch,
    again: EntryBatch,
    key: Vec<u8>,
    value: Vec<u8>,
    row: Vec<u8>,
}

/// Where the point or range at hand stands.
struct Here {
    cursor: Cursor,
    /// First byte string above the range; `None`: no end.
    end: Option<Vec<u8>>,
    /// The point is a whole unique key: its record alone is locked if it exists.
    exact: bool,
    /// Key of the entry given out last.
    last: Option<Vec<u8>>,
    found: bool,
    /// The gap at the far end is locked (first of all when going backwards).
    end_locked: bool,
    exhausted: bool,
}

impl LockingRead {
    pub(super) fn bind_points(&mut self, points: PointSet) -> PointSet {
        (self.at, self.here, self.range, self.reverse) = (0, None, None, false);
        std::mem::replace(&mut self.points, points)
    }

    pub(super) fn bind_range(
        &mut self,
        _table: &Table,
        _spec: &ReadSpec,
        range: &KeyRange,
        reverse: bool,
    ) {
        (self.at, self.here, self.reverse) = (0, None, reverse);
        self.range = Some(tree_range(range));
    }

    pub(super) fn next(
        &mut self,
        table: &Arc<Table>,
        spec: &ReadSpec,
        session: &mut EngineSession,
        out: &mut RowBatch,
    ) -> Result<bool, Stop> {
        let before = out.len();
        let count = if self.range.is_some() {
            1
        } else {
            self.points.len()
        };
        while self.at < count {
            if out.len() > before {
                return Ok(true);
            }
            if self.here.is_none() {
                self.here = Some(self.start(table, spec));
            }
            self.step(table, spec, session, out)?;
        }
        Ok(false)
    }

    fn start(&self, table: &Table, spec: &ReadSpec) -> Here {
        let index = table.index(spec.index);
        let (range, exact) = match &self.range {
            Some(range) => (range.clone(), false),
            None => {
                let point = self.points.key(self.at);
                let parts = index.key.parts().len();
                let whole = index.unique
                    && index
                        .key
                        .prefix_bytes(point, parts)
                        .is_ok_and(|n| n == point.len())
                    && !index.key.has_null(point, parts).unwrap_or(true);
                (tree_range(&KeyRange::prefix(point)), whole)
            }
        };
        let end = match &range.hi {
            std::ops::Bound::Excluded(hi) => Some(hi.clone()),
            std::ops::Bound::Included(hi) => successor(hi),
            std::ops::Bound::Unbounded => None,
        };
        let cursor = index.tree.cursor(range, self.reverse);
        Here {
            cursor,
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
        let here = self.here.as_mut().expect("K0: next() made it");
        let tree = &table.index(spec.index).tree;
        if gaps && self.reverse && !here.end_locked {
            lock_end(table, spec, session, here, &mut self.first)?;
        }
        if here.exhausted {
            if gaps && !here.end_locked && !(here.exact && here.found) {
                lock_end(table, spec, session, here, &mut self.first)?;
            }
            self.at += 1;
            self.here = None;
            return Ok(());
        }
        let slice = if spec.first_rows == 0 {
            SLICE
        } else {
            spec.first_rows.min(SLICE)
        };
        let store = session.store_arc();
        let mut cursor = here.cursor.clone();
        self.first.clear();
        let mut more = cursor
            .next_batch(tree, &store, slice, &mut self.first)
            .map_err(lift)?;
        let kind = if gaps && !here.exact {
            LockKind::NextKey
        } else {
            LockKind::Record
        };
        let (skipped, any_new) = lock_entries(table, spec, session, kind, &self.first)?;
        if any_new {
            cursor = here.cursor.clone();
            self.again.clear();
            more = cursor
                .next_batch(tree, &store, slice, &mut self.again)
                .map_err(lift)?;
            if !self
                .first
                .iter()
                .map(|e| e.0)
                .eq(self.again.iter().map(|e| e.0))
            {
                return Ok(()); // something came between: once more, most locks are held by now
            }
            std::mem::swap(&mut self.first, &mut self.again);
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
            let buffers = (&mut self.key, &mut self.value, &mut self.row);
            if !skipped.contains(&i)
                && give_out(table, spec, session, (key, value), self.at, buffers, out)?
            {
                here.found = true;
            }
            here.last = Some(key.to_vec());
        }
        here.cursor = cursor;
        here.exhausted = !more;
        Ok(())
    }
}

/// Locks the entries of a slice in the index that is read; (those skipped, whether any lock was new).
fn lock_entries(
    table: &Table,
    spec: &ReadSpec,
    session: &mut EngineSession,
    kind: LockKind,
    entries: &EntryBatch,
) -> Result<(Vec<usize>, bool), Stop> {
    let mut skipped = Vec::new();
    let mut any_new = false;
    for (i, (key, value)) in entries.iter().enumerate() {
        let trx = if spec.index == 0 {
            RowHeader::split(value).ok_or_else(damaged)?.0.trx
        } else {
            SecondaryEntry::parse(value).ok_or_else(damaged)?.trx
        };
        let holder = session.active_other(trx);
        let request =
            request(table, spec, spec.index, LockKey::Key(key), kind).implicit_holder(holder);
        match session.lock(&request)? {
            Locked::New => any_new = true,
            Locked::Held => {}
            Locked::Skipped => skipped.push(i),
        }
    }
    Ok((skipped, any_new))
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
    let store = session.store_arc();
    loop {
        let first_behind = |buffer: &mut EntryBatch| -> Result<(), Stop> {
            buffer.clear();
            let Some(end) = &here.end else { return Ok(()) };
            let lo = std::ops::Bound::Included(end.clone());
            let mut cursor = tree.cursor(
                nfold_btree::KeyRange {
                    lo,
                    hi: std::ops::Bound::Unbounded,
                },
                false,
            );
            while buffer.is_empty() && cursor.next_batch(tree, &store, 1, buffer).map_err(lift)? {}
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
    let mode = if spec.lock == RowLock::Shared {
        LockMode::S
    } else {
        LockMode::X
    };
    let conflict = match spec.wait {
        LockWaitPolicy::Wait => OnConflict::Wait,
        LockWaitPolicy::NoWait => OnConflict::NoWait,
        LockWaitPolicy::SkipLocked => OnConflict::Skip,
    };
    LockRequest::new(table.def().indexes[index].id.0, key, mode, kind).on_conflict(conflict)
}

/// Gives out the row of a locked entry, if there is one; locks the clustered record first when the entry is a secondary one.
fn give_out(
    table: &Table,
    spec: &ReadSpec,
    session: &mut EngineSession,
    (key, value): (&[u8], &[u8]),
    point: usize,
    (key_buffer, value_buffer, row): (&mut Vec<u8>, &mut Vec<u8>, &mut Vec<u8>),
    out: &mut RowBatch,
) -> Result<bool, Stop> {
    if spec.index == 0 {
        let (header, image) = RowHeader::split(value).ok_or_else(damaged)?;
        if header.deleted {
            return Ok(false);
        }
        push_image(table, spec, session, image, point as u32, row, out)?;
        give_row_id(table, key, out);
        return Ok(true);
    }
    let entry = SecondaryEntry::parse(value).ok_or_else(damaged)?;
    if entry.deleted {
        return Ok(false);
    }
    let primary = entry.primary_key(key).ok_or_else(damaged)?;
    let store = session.store_arc();
    let tree = &table.index(0).tree;
    loop {
        value_buffer.clear();
        if !tree.get(&store, primary, value_buffer).map_err(lift)? {
            return Ok(false);
        }
        let (header, image) = RowHeader::split(value_buffer).ok_or_else(damaged)?;
        let holder = session.active_other(header.trx);
        let wanted = request(table, spec, 0, LockKey::Key(primary), LockKind::Record)
            .implicit_holder(holder);
        match session.lock(&wanted)? {
            Locked::Skipped => return Ok(false),
            Locked::New => continue, // K1
            Locked::Held => {}
        }
        if header.deleted || !has_key(table, spec.index, image, (key, primary), key_buffer)? {
            return Ok(false);
        }
        push_image(table, spec, session, image, point as u32, row, out)?;
        give_row_id(table, primary, out);
        return Ok(true);
    }
}

/// A table without a primary key: writes need the row's clustered key, which its image does not hold.
fn give_row_id(table: &Table, primary: &[u8], out: &mut RowBatch) {
    if table.has_hidden_row_id()
        && let Ok(bytes) = primary.try_into()
    {
        out.set_row_id(u64::from_be_bytes(bytes));
    }
}
