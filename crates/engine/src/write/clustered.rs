//! One change of one clustered row: the step that carries the undo record.

use nfold_btree::{ENTRY_LOG_OVERHEAD, LeafPos, Room, RowHint};
use nfold_store::{Mtr, TrxId};
use nfold_txn::locks::{LockKey, LockKind, LockMode, LockRequest, Locked};
use nfold_txn::undo::{OldVersion, RowChange, UndoKind, UndoPrep};
use nfold_types::row::RowLayout;
use smallvec::SmallVec;

use crate::error::{EngineError, Stop, lift};
use crate::overflow::{self, Mover};
use crate::read::damaged;
use crate::record::{CLUSTERED_HEADER, RowHeader};
use crate::session::EngineSession;
use crate::table::Table;

/// What became of an insert into the clustered index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inserted {
    /// On this leaf.
    Done(RowHint),
    Duplicate,
}

/// Log bytes of one step besides keys, values and the undo record.
const LOG_OVERHEAD: usize = 4 * ENTRY_LOG_OVERHEAD + 512;

/// The most rows that one mini-transaction changes. Readers of the leaf wait for all of them.
const NEIGHBOURS: usize = 16;

/// Makes room for the step's log and its undo record, before its first change (W2).
fn prepare(
    session: &mut EngineSession,
    mtr: &mut Mtr<'_>,
    table: &Table,
    bytes: usize,
    undo: usize,
) -> Result<UndoPrep, Stop> {
    reserve(mtr, table, bytes)?;
    session.prepare_undo(mtr, undo)
}

/// Makes room for the step's log.
pub(super) fn reserve(mtr: &mut Mtr<'_>, table: &Table, bytes: usize) -> Result<(), Stop> {
    mtr.reserve(bytes + LOG_OVERHEAD, table.def().space, 0)
        .map_err(lift)
}

/// What the undo log is told of a change of the row `current` (header and image; empty: there was
/// none). `leaves_nothing`: the new version has the
/// same entries in all indexes, and names all overflow chains of the old one, so purge need not
/// look for those.
fn replaced<'a>(
    kind: UndoKind,
    table: &Table,
    key: &'a [u8],
    current: &'a [u8],
    leaves_nothing: bool,
) -> Result<RowChange<'a>, Stop> {
    let (old, image): (OldVersion, _) = match kind {
        UndoKind::Insert => (OldVersion::default(), &[][..]),
        _ => {
            let (header, image) = RowHeader::split(current).ok_or_else(damaged)?;
            (header.into(), image)
        }
    };
    // As `undo::purge` has it.
    let quiet = match kind {
        UndoKind::Insert => true,
        UndoKind::Update => leaves_nothing,
        _ => false,
    };
    Ok(RowChange {
        kind,
        table_id: table.def().id.0,
        key,
        old,
        image,
        quiet,
    })
}

/// Inserts a row under `key`, over a delete-marked one if there is one. `duplicates`: how a row
/// that is there already is locked.
pub(super) fn insert(
    session: &mut EngineSession,
    table: &Table,
    (key, duplicates): (&[u8], LockMode),
    image: &[u8],
    mover: &mut Mover,
    (current, next, value): (&mut Vec<u8>, &mut Vec<u8>, &mut Vec<u8>),
) -> Result<Inserted, Stop> {
    let trx = session.write_id()?;
    let index = table.def().indexes[0].id.0;
    let tree = &table.index(0).tree;
    let store = table.store();
    let mut mtr = store.mtr();
    let mut pos = tree
        .leaf_for_write(
            store,
            &mut mtr,
            key,
            Room::Value(CLUSTERED_HEADER + image.len()),
        )
        .map_err(lift)?;
    if pos.found {
        current.clear();
        tree.value(&mtr, &pos, current);
        let (header, _) = RowHeader::split(current).ok_or_else(damaged)?;
        let holder = session.active_other(header.trx);
        if holder.is_some() || !header.deleted {
            // The transaction that has locked the row may still roll back, so lock the row and read
            // it again under the lock.
            drop(mtr);
            return duplicate_under_lock(session, table, (key, duplicates), holder, current);
        }
        let wanted = LockRequest::new(index, LockKey::Key(key), LockMode::X, LockKind::Record)
            .becomes_implicit();
        session.lock(&wanted)?;
        let change = replaced(UndoKind::Update, table, key, current, false)?;
        let orphaned = mover.latch(&mut mtr)?;
        let bytes = image.len() + key.len() + mover.log_bytes();
        let mut prep = prepare(session, &mut mtr, table, bytes, change.body_len())?;
        let undo = session.append_undo(&mut mtr, &mut prep, &change);
        let header = RowHeader {
            trx,
            undo,
            deleted: false,
        };
        let version = (header, image);
        put(&mut mtr, table, &pos, version, (&current[..], value));
        mover.named(&mut mtr, orphaned);
        let place = tree.place(&mtr, &pos);
        mtr.commit();
        return Ok(Inserted::Done(place));
    }
    next.clear();
    let successor = tree.next_entry(&mut mtr, &pos, next).map_err(lift)?;
    let gap = if successor.is_some() {
        LockKey::Key(next)
    } else {
        LockKey::Supremum
    };
    session.lock(&LockRequest::new(
        index,
        gap,
        LockMode::X,
        LockKind::InsertIntention,
    ))?;
    let change = replaced(UndoKind::Insert, table, key, &[], true)?;
    let orphaned = mover.latch(&mut mtr)?;
    let bytes = image.len() + 2 * key.len() + mover.log_bytes();
    let mut prep = prepare(session, &mut mtr, table, bytes, change.body_len())?;
    let undo = session.append_undo(&mut mtr, &mut prep, &change);
    value.clear();
    value.extend_from_slice(
        &RowHeader {
            trx,
            undo,
            deleted: false,
        }
        .to_bytes(),
    );
    value.extend_from_slice(image);
    tree.insert_at(&mut mtr, &mut pos, key, value);
    tree.set_newest_trx(&mut mtr, &pos, trx);
    mover.named(&mut mtr, orphaned);
    session.locks().inherit_on_insert(index, [key], gap);
    let place = tree.place(&mtr, &pos);
    mtr.commit();
    Ok(Inserted::Done(place))
}

/// Whether the clustered index has a live row with this key; that row is then locked in `mode`.
/// Inserts of rows with long columns call this before they write overflow pages, so that a
/// duplicate key writes none. The outcome is the one that [`insert`] would have.
pub(super) fn is_duplicate(
    session: &mut EngineSession,
    table: &Table,
    (key, mode): (&[u8], LockMode),
    current: &mut Vec<u8>,
) -> Result<bool, Stop> {
    current.clear();
    let tree = &table.index(0).tree;
    if !tree.get(table.store(), key, current).map_err(lift)? {
        return Ok(false);
    }
    let (header, _) = RowHeader::split(current).ok_or_else(damaged)?;
    let holder = session.active_other(header.trx);
    if header.deleted && holder.is_none() {
        return Ok(false);
    }
    let inserted = duplicate_under_lock(session, table, (key, mode), holder, current)?;
    Ok(inserted == Inserted::Duplicate)
}

/// Locks, in `mode`, the existing row with the key of a row to be inserted. Returns whether it
/// still exists under the lock.
fn duplicate_under_lock(
    session: &mut EngineSession,
    table: &Table,
    (key, mode): (&[u8], LockMode),
    holder: Option<TrxId>,
    current: &mut Vec<u8>,
) -> Result<Inserted, Stop> {
    let index = table.def().indexes[0].id.0;
    let wanted =
        LockRequest::new(index, LockKey::Key(key), mode, LockKind::Record).implicit_holder(holder);
    let locked = session.lock(&wanted)?;
    current.clear();
    let store = table.store();
    let there = table.index(0).tree.get(store, key, current).map_err(lift)?;
    let header = there
        .then(|| RowHeader::split(current).ok_or_else(damaged))
        .transpose()?
        .map(|(header, _)| header);
    if locked == Locked::New && header.is_some_and(|h| session.active_other(h.trx).is_some()) {
        // Another transaction has changed the row in between, which the lock did not cover (K6 of
        // `read::locking`).
        session.unlock(index, key, mode, LockKind::Record);
        return Err(Stop::Wait(nfold_store::Wait::ready()));
    }
    if header.is_some_and(|h| !h.deleted) {
        return Ok(Inserted::Duplicate);
    }
    // It is gone: the insert starts over, with the lock that it holds now.
    Err(Stop::Wait(nfold_store::Wait::ready()))
}

/// Replaces the value `current` of an existing row. `value` is scratch memory.
fn put(
    mtr: &mut Mtr<'_>,
    table: &Table,
    pos: &LeafPos,
    (header, image): (RowHeader, &[u8]),
    (current, value): (&[u8], &mut Vec<u8>),
) {
    let tree = &table.index(0).tree;
    value.clear();
    value.extend_from_slice(&header.to_bytes());
    value.extend_from_slice(image);
    match changed_len(current, value) {
        Some(len) => tree.write_value_bytes(mtr, pos, 0, &value[..len]),
        None => tree.replace_value_at(mtr, pos, value),
    }
    tree.set_newest_trx(mtr, pos, header.trx);
}

/// The length of `new` without the bytes at its end that are equal in `current`, if both have one
/// length and end equally. These bytes need not be logged.
fn changed_len(current: &[u8], new: &[u8]) -> Option<usize> {
    if current.len() != new.len() {
        return None;
    }
    let (old_words, new_words) = (current.rchunks_exact(8), new.rchunks_exact(8));
    let equal = old_words.zip(new_words).take_while(|(a, b)| a == b).count();
    (equal > 0).then(|| new.len() - 8 * equal)
}

/// The kind of change of an existing row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change<'a> {
    /// Another image; whether the entries of all indexes stay under their keys.
    Image(&'a [u8], bool),
    /// The delete mark.
    Delete,
}

/// Whether the new image names all overflow chains of the row `current` (header and image).
///
/// # Errors
/// The new image names a chain that neither that row names nor `mover` has written (overflow::O3).
fn keeps_chains(table: &Table, current: &[u8], new: &[u8], mover: &Mover) -> Result<bool, Stop> {
    let (_, old) = RowHeader::split(current).ok_or_else(damaged)?;
    if !RowLayout::has_external(old) && !RowLayout::has_external(new) {
        return Ok(true);
    }
    let old = overflow::pointers(table.layout(), old);
    let new = overflow::pointers(table.layout(), new);
    if !new
        .iter()
        .all(|chain| old.contains(chain) || mover.has_written(chain))
    {
        let what = "an overflow chain of another version";
        return Err(EngineError::Dictionary(what.into()).into());
    }
    Ok(old.iter().all(|chain| new.contains(chain)))
}

/// Changes the row under `key`, which this transaction has locked exclusively. The version before
/// it goes to the undo log and is left in `current`. Returns the leaf.
pub(super) fn change(
    session: &mut EngineSession,
    table: &Table,
    key: &[u8],
    change: Change<'_>,
    mover: &mut Mover,
    (current, value): (&mut Vec<u8>, &mut Vec<u8>),
) -> Result<RowHint, Stop> {
    let trx = session.write_id()?;
    let tree = &table.index(0).tree;
    let store = table.store();
    let mut mtr = store.mtr();
    let room = match change {
        Change::Image(image, _) => Room::Value(CLUSTERED_HEADER + image.len()),
        Change::Delete => Room::Unchanged,
    };
    let pos = tree
        .leaf_for_write(store, &mut mtr, key, room)
        .map_err(lift)?;
    if !pos.found {
        return Err(EngineError::Dictionary("a locked row is gone".into()).into());
    }
    current.clear();
    tree.value(&mtr, &pos, current);
    let (header, _) = RowHeader::split(current).ok_or_else(damaged)?;
    let holder = session.active_other(header.trx);
    let index = table.def().indexes[0].id.0;
    let wanted = LockRequest::new(index, LockKey::Key(key), LockMode::X, LockKind::Record)
        .implicit_holder(holder)
        .becomes_implicit();
    session.lock(&wanted)?;
    let (kind, bytes, leaves_nothing) = match change {
        Change::Image(image, same_keys) => {
            let keeps = keeps_chains(table, current, image, mover)?;
            (UndoKind::Update, image.len(), same_keys && keeps)
        }
        Change::Delete => (UndoKind::DeleteMark, CLUSTERED_HEADER, false),
    };
    let old = replaced(kind, table, key, current, leaves_nothing)?;
    let orphaned = mover.latch(&mut mtr)?;
    let bytes = bytes + key.len() + mover.log_bytes();
    let mut prep = prepare(session, &mut mtr, table, bytes, old.body_len())?;
    let undo = session.append_undo(&mut mtr, &mut prep, &old);
    match change {
        Change::Image(image, _) => {
            let header = RowHeader {
                trx,
                undo,
                deleted: false,
            };
            let version = (header, image);
            put(&mut mtr, table, &pos, version, (&current[..], value));
        }
        Change::Delete => {
            let header = RowHeader {
                trx,
                undo,
                deleted: true,
            };
            tree.write_value_bytes(&mut mtr, &pos, 0, &header.to_bytes());
            tree.set_newest_trx(&mut mtr, &pos, trx);
        }
    }
    mover.named(&mut mtr, orphaned);
    let place = tree.place(&mtr, &pos);
    mtr.commit();
    Ok(place)
}

/// A row of [`change_neighbours`] on the latched leaf.
struct Neighbour {
    pos: LeafPos,
    header: RowHeader,
    value_len: usize,
}

impl Neighbour {
    /// The row at `pos`. `None`: [`change`] must change it, because another transaction may hold it
    /// or it has overflow chains.
    fn new(
        session: &EngineSession,
        table: &Table,
        mtr: &Mtr<'_>,
        pos: LeafPos,
    ) -> Option<Neighbour> {
        let mut start = [0; CLUSTERED_HEADER + RowLayout::FLAGS_END];
        let tree = &table.index(0).tree;
        let value_len = tree.value_len(mtr, &pos);
        if value_len < start.len() {
            return None;
        }
        tree.value_bytes(mtr, &pos, 0, &mut start);
        let (header, image) = RowHeader::split(&start)?;
        let is_plain = !RowLayout::has_external(image) && !header.deleted;
        (is_plain && session.active_other(header.trx).is_none()).then_some(Neighbour {
            pos,
            header,
            value_len,
        })
    }
}

/// As [`change`] with an image that leaves all entries as they are, for the first of `rows` and for
/// those behind it that lie on the same leaf. `rows` are keys, which this transaction has locked
/// exclusively, and images without overflow chains. Returns the number of rows that it has changed;
/// 0: the first one needs [`change`].
pub(super) fn change_neighbours<'r>(
    session: &mut EngineSession,
    table: &Table,
    rows: impl Iterator<Item = (&'r [u8], &'r [u8])> + Clone,
    (current, value): (&mut Vec<u8>, &mut Vec<u8>),
) -> Result<usize, Stop> {
    let Some((first_key, first_image)) = rows.clone().next() else {
        return Ok(0);
    };
    let trx = session.write_id()?;
    let tree = &table.index(0).tree;
    let store = table.store();
    let mut mtr = store.mtr();
    let room = Room::Value(CLUSTERED_HEADER + first_image.len());
    let mut pos = tree
        .leaf_for_write(store, &mut mtr, first_key, room)
        .map_err(lift)?;
    let mut there: SmallVec<[Neighbour; NEIGHBOURS]> = SmallVec::new();
    let mut bodies: SmallVec<[usize; NEIGHBOURS]> = SmallVec::new();
    let mut bytes = 0;
    for (n, (key, image)) in rows.clone().take(NEIGHBOURS).enumerate() {
        if n > 0 {
            match tree.find_behind(&mtr, &pos, key) {
                Some(next) => pos = next,
                None => break,
            }
        }
        if !pos.found {
            return Err(EngineError::Dictionary("a locked row is gone".into()).into());
        }
        let Some(row) = Neighbour::new(session, table, &mtr, pos) else {
            break;
        };
        // The leaf has room for the first row. The others must not grow.
        if n > 0 && row.value_len < CLUSTERED_HEADER + image.len() {
            break;
        }
        bytes += key.len() + image.len() + 4 * ENTRY_LOG_OVERHEAD;
        bodies.push(key.len() + row.value_len - CLUSTERED_HEADER);
        there.push(row);
    }
    if there.is_empty() {
        return Ok(0);
    }
    reserve(&mut mtr, table, bytes)?;
    let (mut prep, count) = session.prepare_undo_of_several(&mut mtr, &bodies)?;
    // From here on nothing waits or fails (W2).
    for ((key, image), row) in rows.zip(&there[..count]) {
        current.clear();
        tree.value(&mtr, &row.pos, current);
        let old = RowChange {
            kind: UndoKind::Update,
            table_id: table.def().id.0,
            key,
            old: row.header.into(),
            image: &current[CLUSTERED_HEADER..],
            quiet: true,
        };
        let undo = session.append_undo(&mut mtr, &mut prep, &old);
        let header = RowHeader {
            trx,
            undo,
            deleted: false,
        };
        put(&mut mtr, table, &row.pos, (header, image), (current, value));
    }
    mtr.commit();
    Ok(count)
}
