//! READ COMMITTED: locks on rows that do not match are given up, and UPDATE looks at rows that
//! others have locked before it waits for them (a *semi-consistent* read, as InnoDB calls it).

use nfold_txn::locks::{LockKey, LockKind, LockMode, LockRequest, Locked};

use crate::batch::{RowBatch, RowNote};
use crate::error::{Stop, lift};
use crate::read::consistent::push_image;
use crate::read::visibility::{damaged, previous_version};
use crate::read::{ReadSpec, RowLock, Scratch};
use crate::record::RowHeader;
use crate::session::EngineSession;
use crate::table::Table;

/// Keys whose locks the read at hand took itself, since the last row that it gave out.
#[derive(Default)]
pub(super) struct Fresh {
    entries: Vec<Vec<u8>>,
    rows: Vec<Vec<u8>>,
}

impl Fresh {
    pub fn clear(&mut self) {
        self.entries.clear();
        self.rows.clear();
    }

    /// A lock on an entry of the index that is read is granted, or being waited for.
    pub fn entry(&mut self, key: &[u8]) {
        if !self.has_entry(key) {
            self.entries.push(key.to_vec());
        }
    }

    /// The same of the clustered row behind an entry.
    pub fn row(&mut self, primary: &[u8]) {
        if !self.has_row(primary) {
            self.rows.push(primary.to_vec());
        }
    }

    pub fn has_entry(&self, key: &[u8]) -> bool {
        self.entries.iter().any(|k| k == key)
    }

    pub fn has_row(&self, primary: &[u8]) -> bool {
        self.rows.iter().any(|k| k == primary)
    }
}

pub(super) fn mode(spec: &ReadSpec) -> LockMode {
    if spec.lock == RowLock::Shared {
        LockMode::S
    } else {
        LockMode::X
    }
}

/// Releases the locks that the read took on a row of its batch.
pub(super) fn release(
    table: &Table,
    spec: &ReadSpec,
    session: &mut EngineSession,
    batch: &RowBatch,
    i: usize,
) {
    if let Some((note, key)) = batch.note(i) {
        release_noted(table, spec, session, note, key);
    }
}

/// Releases the locks that a note lists.
pub(super) fn release_noted(
    table: &Table,
    spec: &ReadSpec,
    session: &mut EngineSession,
    note: RowNote,
    key: &[u8],
) {
    let id = |n: usize| table.def().indexes[n].id.0;
    if note.fresh.1 {
        let primary = &key[key.len() - note.primary as usize..];
        session.unlock(id(0), primary, mode(spec), LockKind::Record);
    }
    if note.fresh.0 {
        session.unlock(id(spec.index), key, mode(spec), LockKind::Record);
    }
}

/// See [`Read::lock_row`](super::Read::lock_row). Such rows come from the clustered index only.
pub(super) fn lock_row(
    table: &Table,
    spec: &ReadSpec,
    session: &mut EngineSession,
    batch: &mut RowBatch,
    i: usize,
) -> Result<bool, Stop> {
    let Some((_, key)) = batch.note(i) else {
        return Ok(true);
    };
    let key = key.to_vec();
    let mut value = Vec::new();
    let index = table.def().indexes[0].id.0;
    let mut new = false;
    loop {
        value.clear();
        let tree = &table.index(0).tree;
        if !tree.get(table.store(), &key, &mut value).map_err(lift)? {
            return Ok(false);
        }
        let (header, image) = RowHeader::split(&value).ok_or_else(damaged)?;
        let holder = session.active_other(header.trx);
        if new && holder.is_some() {
            session.unlock(index, &key, mode(spec), LockKind::Record); // K6 of `locking`
        }
        let wanted = LockRequest::new(index, LockKey::Key(&key), mode(spec), LockKind::Record)
            .implicit_holder(holder);
        if session.lock(&wanted)? == Locked::New {
            new = true;
            continue; // the row was read before the lock was there
        }
        if header.deleted {
            session.unlock(index, &key, mode(spec), LockKind::Record);
            return Ok(false);
        }
        let point = batch.point(i) as u32;
        push_image(table, spec, session, image, point, batch)?;
        batch.replace_by_last(i);
        return Ok(true);
    }
}

/// Whether the version before the row that had `header` may be purged by now: its successor has
/// ended, or is not the newest any more.
pub(crate) fn may_have_gone(
    table: &Table,
    session: &EngineSession,
    key: &[u8],
    header: &RowHeader,
) -> Result<bool, Stop> {
    let mut now = Vec::new();
    let tree = &table.index(0).tree;
    if !tree.get(table.store(), key, &mut now).map_err(lift)? {
        return Ok(true);
    }
    let (current, _) = RowHeader::split(&now).ok_or_else(damaged)?;
    Ok(current != *header || session.active_other(header.trx).is_none())
}

/// Puts the version of a row that was committed last into the scratch; false: there is none, or it
/// is a delete mark.
pub(super) fn committed_version(
    session: &EngineSession,
    value: &[u8],
    scratch: &mut Scratch,
) -> Result<bool, Stop> {
    let (mut header, _) = RowHeader::split(value).ok_or_else(damaged)?;
    scratch.version.clear();
    scratch.version.extend_from_slice(value);
    while session.active_other(header.trx).is_some() {
        if !previous_version(session.system(), header, scratch)? {
            return Ok(false);
        }
        header = RowHeader::split(&scratch.version).ok_or_else(damaged)?.0;
    }
    Ok(!header.deleted)
}
