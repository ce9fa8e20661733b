//! Applies rollback and purge to tables: the engine's side of the undo log.
//!
//! # Invariants
//! U1. *Undo* changes nothing unless the clustered row still points at the record, and it restores
//!     the row itself last. So a step that a crash interrupted is repeated, and a completed one is
//!     not.
//! U2. *Purge* removes an entry or a row only if it is delete-marked and no version newer than the
//!     record needs it. The check runs under the leaf's latch and is idempotent.
//! U3. A restored entry, or one that is marked again, gets the transaction id of the row version
//!     that becomes current again. The id of the rolled-back transaction would be wrong: after
//!     ROLLBACK TO SAVEPOINT that transaction goes on reading, and would take an entry with its own
//!     id for visible (visibility::V1).
//! U4. Purge skips a delete-marked row that a newer transaction has revived. If that transaction is
//!     undone, and the transaction of the mark is purgeable, undo removes the row and its entries
//!     as if they had been inserted, because purge does not come back. The same holds for an entry
//!     that purge has skipped because an unfinished transaction had inserted its key again: undo
//!     leaves it marked only if purge has not passed yet. Both conditions are checked again under
//!     the row's latch, behind a fence: purge publishes its floor, fences, and reads the row. So
//!     either purge sees the restored row and removes it, or undo sees the floor and starts over.
//! U5. Purge of a version frees its overflow chains last. So no snapshot needs a version without
//!     its chains: it was purged before a crash, or it shared them with a version that is purged
//!     (overflow::O3). In the second case no index covered the long column when the version was
//!     replaced, so there is no entry to remove.
//! U6. Damage counts only on the current table definition. A step that began on an older one, whose
//!     indexes a DDL statement frees meanwhile, is repeated. DDL publishes the new table before it
//!     frees anything of the old one.
//!
//! # Failure
//! The overflow chains of an undone row enter the table's [`orphaned`](crate::orphaned) in the
//! mini-transaction that removes the row; the chains of a purged version enter it last. The
//! background frees them. A crash in between loses nothing.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use nfold_btree::{MAX_KEY, Room};
use nfold_store::{Latched, Mtr, PageId, Stop as StoreStop, Store, StoreError, TrxId, Wait};
use nfold_txn::locks::LockKey;
use nfold_txn::undo::{UndoKind, UndoRecord};
use nfold_txn::{RowApplier, Step, TrxSystem, TxnError};
use nfold_types::row::OverflowPointer;

use crate::error::{EngineError, Stop, lift};
use crate::orphaned::{SLOT_LOG, Slot};
use crate::overflow;
use crate::read::{Scratch, damaged, previous_version};
use crate::record::{self, CLUSTERED_HEADER, RowHeader, SecondaryEntry};
use crate::shared::Shared;
use crate::table::Table;
use lost::version_keys;

pub(crate) mod lost;

/// Undoes and purges rows of the open tables.
pub(crate) struct Applier(pub Arc<Shared>);

impl Applier {
    /// Runs a step on a table. It holds no metadata lock, so a DDL statement may replace the table
    /// meanwhile and free an index under the step: what looks like damage then is none, and the
    /// step is done again on the table as it is now (U6).
    pub(crate) fn on(
        &self,
        table: &Arc<Table>,
        step: impl FnOnce() -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        match step() {
            Err(Stop::Error(_)) if is_replaced(&self.0, table) => Err(Stop::Wait(Wait::ready())),
            other => other,
        }
    }
}

/// Whether the table was dropped, or another definition has taken its place.
fn is_replaced(shared: &Shared, table: &Table) -> bool {
    let now = shared.table(table.def().id.0);
    !now.is_some_and(|now| std::ptr::eq(&*now, table))
}

impl RowApplier for Applier {
    fn undo(&self, record: &UndoRecord, _system: &TrxSystem) -> Step<()> {
        match self.0.table(record.table_id) {
            Some(table) => self
                .on(&table, || undo(&self.0, &table, record))
                .map_err(StoreStop::lift),
            None => Ok(()),
        }
    }

    fn purge(&self, record: &UndoRecord, _system: &TrxSystem) -> Step<()> {
        match self.0.table(record.table_id) {
            Some(table) => self
                .on(&table, || purge(&self.0, &table, record))
                .map_err(StoreStop::lift),
            None => Ok(()),
        }
    }

    fn give_up(&self, record: &UndoRecord, error: &TxnError) -> bool {
        let damage = matches!(
            error,
            TxnError::Store(StoreError::Corrupt { .. } | StoreError::SpaceGone(_))
                | TxnError::VersionGone { .. }
        );
        if damage && let Some(table) = self.0.table(record.table_id) {
            table.fence(error);
        }
        damage
    }
}

/// Log bytes of a step besides the bytes of the entry it touches.
const LOG_OVERHEAD: usize = 1024;

/// Takes one change back.
fn undo(shared: &Shared, table: &Table, record: &UndoRecord) -> Result<(), Stop> {
    let store = &*shared.store;
    let mut current = Vec::new();
    if !table
        .index(0)
        .tree
        .get(store, record.key(), &mut current)
        .map_err(lift)?
    {
        return Ok(());
    }
    let (header, image) = RowHeader::split(&current).ok_or_else(damaged)?;
    if header.undo != record.ptr.0 || header.trx != record.trx_id {
        return Ok(()); // U1
    }
    let old = match record.kind {
        UndoKind::Insert => None,
        _ => Some((RowHeader::from(record.old), record.image())),
    };
    let old = old.filter(|(header, _)| !leaves_nothing(shared, header));
    let mut relying = Vec::new();
    for n in (1..table.indexes().len()).rev() {
        match undo_entries(shared, table, n, record, image, old) {
            Ok(on) => relying.extend(on),
            // The row comes back all the same; its index can be made anew from the rows.
            Err(Stop::Error(error @ EngineError::Store(StoreError::Corrupt { .. })))
                if !is_replaced(shared, table) =>
            {
                table.fence(&error);
            }
            Err(stop) => return Err(stop),
        }
    }
    let kept = old
        .map(|(_, image)| overflow::pointers(table.layout(), image))
        .unwrap_or_default();
    let mut chains = overflow::pointers(table.layout(), image);
    chains.retain(|chain| chain.owner == record.trx_id && !kept.contains(chain));
    let mut discarded = Discarded::new(store, table, chains)?;
    restore_row(
        shared,
        table,
        record,
        old.is_none(),
        &relying,
        &mut discarded,
    )
}

/// Chains that go into the orphan list with the change that takes their row away.
struct Discarded(Vec<(OverflowPointer, Slot)>);

impl Discarded {
    fn new(store: &Store, table: &Table, chains: Vec<OverflowPointer>) -> Result<Discarded, Stop> {
        let with_slot = |chain| Ok((chain, table.orphaned().take(store)?));
        Ok(Discarded(
            chains
                .into_iter()
                .map(with_slot)
                .collect::<Result<_, Stop>>()?,
        ))
    }

    fn log_bytes(&self) -> usize {
        self.0.len() * SLOT_LOG
    }

    /// Latches the orphan list, if it is needed; before the first change.
    fn latch(&self, mtr: &mut Mtr<'_>) -> Result<Option<Latched>, Stop> {
        let first = self.0.first();
        first.map(|(_, slot)| slot.latch(mtr)).transpose()
    }

    fn put(&mut self, mtr: &mut Mtr<'_>, orphaned: Option<Latched>) {
        if let Some(orphaned) = orphaned {
            for (chain, slot) in &mut self.0 {
                slot.put(mtr, orphaned, chain.first_page, chain.owner);
            }
        }
    }
}

/// Whether a version is a delete mark that purge has passed (U4).
fn leaves_nothing(shared: &Shared, version: &RowHeader) -> bool {
    version.deleted && shared.trx.is_purgeable(version.trx)
}

/// The entries of one index: those of the new version go, those of the old one come back. Returns
/// the transactions on whose purge it relies, where entries stay marked (U4).
fn undo_entries(
    shared: &Shared,
    table: &Table,
    n: usize,
    record: &UndoRecord,
    new: &[u8],
    old: Option<(RowHeader, &[u8])>,
) -> Result<Vec<TrxId>, Stop> {
    let store = &*shared.store;
    let new_keys = version_keys(shared, table, n, new, record, false)?;
    // Also one that a step before this one, which had to start over, has marked.
    let removable = |entry: &SecondaryEntry<'_>| entry.deleted || entry.trx == record.trx_id;
    let Some((old_header, old_image)) = old else {
        for key in &new_keys {
            remove_entry(shared, table, n, key, removable)?;
        }
        return Ok(Vec::new());
    };
    let old_keys = version_keys(shared, table, n, old_image, record, true)?;
    let replaced = record.kind == UndoKind::Update;
    let mut relying = Vec::new();
    for new_key in new_keys.iter().filter(|_| replaced) {
        let stays = old_keys.contains(new_key);
        if stays && !old_header.deleted {
            continue;
        }
        let on = match stays {
            true => Some(old_header.trx),
            false => older_version_ended_by(shared, table, n, old_header, record.key(), new_key)?,
        };
        if on.is_some() {
            let mark = EntryChange::Mark(old_header.trx, true);
            write_entry(store, table, n, new_key, record.trx_id, mark)?;
        } else {
            remove_entry(shared, table, n, new_key, removable)?;
        }
        relying.extend(on);
    }
    for old_key in old_keys.iter().filter(|_| !old_header.deleted) {
        let mut value = Vec::new();
        let (lengths, trx) = ((old_key.len(), record.key().len()), old_header.trx);
        let change = match table.secondary_value(n, old_image, lengths, trx, &mut value) {
            Ok(()) => EntryChange::Value(&value),
            // Its original bytes are still there: the entry was only marked.
            Err(Stop::Error(EngineError::Store(StoreError::Corrupt { .. }))) => {
                EntryChange::Mark(trx, false)
            }
            Err(stop) => return Err(stop),
        };
        write_entry(store, table, n, old_key, record.trx_id, change)?;
    }
    Ok(relying)
}

/// What happens to an entry that the rolled-back transaction touched.
enum EntryChange<'a> {
    /// With this transaction id, deleted or not.
    Mark(TrxId, bool),
    Value(&'a [u8]),
}

/// Changes an entry if `trx` was the last to touch it.
fn write_entry(
    store: &Store,
    table: &Table,
    n: usize,
    key: &[u8],
    trx: TrxId,
    change: EntryChange<'_>,
) -> Result<(), Stop> {
    if key.len() > MAX_KEY {
        return Ok(()); // No such entry was ever made.
    }
    let tree = &table.index(n).tree;
    let mut mtr = store.mtr();
    let room = match change {
        EntryChange::Mark(..) => Room::Unchanged,
        EntryChange::Value(value) => Room::Value(value.len()),
    };
    let pos = tree
        .leaf_for_write(store, &mut mtr, key, room)
        .map_err(lift)?;
    if !pos.found {
        return Ok(());
    }
    let mut current = Vec::new();
    tree.value(&mtr, &pos, &mut current);
    if SecondaryEntry::parse(&current).ok_or_else(damaged)?.trx != trx {
        return Ok(());
    }
    mtr.reserve(
        LOG_OVERHEAD + key.len() + 2 * current.len(),
        table.def().space,
        0,
    )
    .map_err(lift)?;
    match change {
        EntryChange::Mark(by, deleted) => {
            tree.write_value_bytes(&mut mtr, &pos, 0, &record::secondary_mark(by, deleted))
        }
        EntryChange::Value(value) => tree.replace_value_at(&mut mtr, &pos, value),
    }
    tree.set_newest_trx(&mut mtr, &pos, trx);
    mtr.commit();
    Ok(())
}

/// Removes an entry for which `wanted` holds under the latch.
fn remove_entry(
    shared: &Shared,
    table: &Table,
    n: usize,
    key: &[u8],
    wanted: impl Fn(&SecondaryEntry<'_>) -> bool,
) -> Result<(), Stop> {
    let wanted = |value: &[u8]| SecondaryEntry::parse(value).is_some_and(|entry| wanted(&entry));
    remove(shared, table, n, key, wanted, &mut Discarded(Vec::new()))
}

/// Removes the entry or row under `key` of index `n` if `wanted` holds for its value under the
/// latch; gap locks pass to its successor.
fn remove(
    shared: &Shared,
    table: &Table,
    n: usize,
    key: &[u8],
    wanted: impl Fn(&[u8]) -> bool,
    discarded: &mut Discarded,
) -> Result<(), Stop> {
    if key.len() > MAX_KEY {
        return Ok(()); // No such entry was ever made.
    }
    let store = &*shared.store;
    let tree = &table.index(n).tree;
    let underfull = {
        let mut mtr = store.mtr();
        let mut pos = tree
            .leaf_for_write(store, &mut mtr, key, Room::Unchanged)
            .map_err(lift)?;
        if !pos.found {
            return Ok(());
        }
        let mut current = Vec::new();
        tree.value(&mtr, &pos, &mut current);
        if !wanted(&current) {
            return Ok(());
        }
        let mut next = Vec::new();
        let successor = tree.next_entry(&mut mtr, &pos, &mut next).map_err(lift)?;
        let bytes = LOG_OVERHEAD + key.len() + current.len() + discarded.log_bytes();
        mtr.reserve(bytes, table.def().space, 0).map_err(lift)?;
        let orphaned = discarded.latch(&mut mtr)?;
        let underfull = tree.remove_at(&mut mtr, &mut pos);
        discarded.put(&mut mtr, orphaned);
        let gap = if successor.is_some() {
            LockKey::Key(&next)
        } else {
            LockKey::Supremum
        };
        shared
            .trx
            .locks()
            .inherit_on_remove(table.def().indexes[n].id.0, key, gap);
        mtr.commit();
        underfull
    };
    if underfull {
        // Only tidying: if it has to wait, a later removal does it.
        match tree.compact(store, key) {
            Ok(()) | Err(StoreStop::Wait(_)) => {}
            Err(StoreStop::Error(e)) => return Err(EngineError::from(e).into()),
        }
    }
    Ok(())
}

/// Puts the old version back, or removes the row if there is none to put back.
fn restore_row(
    shared: &Shared,
    table: &Table,
    record: &UndoRecord,
    remove_it: bool,
    relying: &[TrxId],
    discarded: &mut Discarded,
) -> Result<(), Stop> {
    let points_here = |value: &[u8]| {
        RowHeader::split(value)
            .is_some_and(|(h, _)| h.undo == record.ptr.0 && h.trx == record.trx_id)
    };
    if remove_it {
        return remove(shared, table, 0, record.key(), points_here, discarded);
    }
    let store = &*shared.store;
    let tree = &table.index(0).tree;
    let mut mtr = store.mtr();
    let pos = tree
        .leaf_for_write(
            store,
            &mut mtr,
            record.key(),
            Room::Value(CLUSTERED_HEADER + record.image().len()),
        )
        .map_err(lift)?;
    let mut current = Vec::new();
    if pos.found {
        tree.value(&mtr, &pos, &mut current);
    }
    if !points_here(&current) {
        return Ok(());
    }
    fence(Ordering::SeqCst); // U4; pairs with the one behind purge's floor
    if leaves_nothing(shared, &RowHeader::from(record.old))
        || relying.iter().any(|trx| shared.trx.is_purgeable(*trx))
    {
        // Purge came by since this step began: it starts over.
        return Err(Stop::Wait(Wait::ready()));
    }
    let bytes = LOG_OVERHEAD + record.image().len() + discarded.log_bytes();
    mtr.reserve(bytes, table.def().space, 0).map_err(lift)?;
    let orphaned = discarded.latch(&mut mtr)?;
    current.clear();
    current.extend_from_slice(&RowHeader::from(record.old).to_bytes());
    current.extend_from_slice(record.image());
    tree.replace_value_at(&mut mtr, &pos, &current);
    discarded.put(&mut mtr, orphaned);
    mtr.commit();
    Ok(())
}

/// Searches the versions before `header`'s that a snapshot may still need for one with `key` in
/// index `n`. Returns the transaction that replaced that version, whose purge removes the entry.
fn older_version_ended_by(
    shared: &Shared,
    table: &Table,
    n: usize,
    mut header: RowHeader,
    primary: &[u8],
    key: &[u8],
) -> Result<Option<TrxId>, Stop> {
    let mut scratch = Scratch::default();
    let mut buffer = Vec::new();
    loop {
        let ended_by = header.trx;
        if shared.trx.is_purgeable(ended_by) || !existing_version(shared, header, &mut scratch)? {
            return Ok(None); // U4
        }
        let (older, image) = RowHeader::split(&scratch.version).ok_or_else(damaged)?;
        if !older.deleted {
            match table.has_entry_key(n, image, (key, primary), &mut buffer) {
                Err(stop) if overflow::is_gone(&stop) => return Ok(None), // U5
                Ok(false) => {}
                found => return found.map(|_| Some(ended_by)),
            }
        }
        header = older;
    }
}

/// Walks versions from `from` on, until one's undo pointer is `until` (that one counts) or the
/// chain ends.
fn walk(
    shared: &Shared,
    table: &Table,
    n: usize,
    from: (RowHeader, Vec<u8>),
    primary: &[u8],
    key: &[u8],
    until: u64,
) -> Result<bool, Stop> {
    let (mut header, mut image) = from;
    let first = header.undo;
    let mut buffer = Vec::new();
    let mut scratch = Scratch::default();
    loop {
        if !header.deleted {
            match table.has_entry_key(n, &image, (key, primary), &mut buffer) {
                // U5
                Err(stop) if header.undo != first && overflow::is_gone(&stop) => return Ok(false),
                Ok(false) => {}
                found => return found,
            }
        }
        if header.undo == until || !existing_version(shared, header, &mut scratch)? {
            return Ok(false);
        }
        let (h, i) = RowHeader::split(&scratch.version).ok_or_else(damaged)?;
        (header, image) = (h, i.to_vec());
    }
}

/// The version before `header`'s, if its undo record still exists. If purge has removed the record,
/// no snapshot needs the version.
fn existing_version(
    shared: &Shared,
    header: RowHeader,
    scratch: &mut Scratch,
) -> Result<bool, Stop> {
    match previous_version(&shared.trx, header, scratch) {
        Err(Stop::Error(EngineError::VersionGone { .. })) => Ok(false),
        other => other,
    }
}

/// Removes the versions that a change has replaced. The change is visible to every snapshot, so no
/// snapshot needs them.
fn purge(shared: &Shared, table: &Table, record: &UndoRecord) -> Result<(), Stop> {
    if record.kind == UndoKind::Insert {
        return Ok(());
    }
    let store = &*shared.store;
    let (old_header, old) = (RowHeader::from(record.old), record.image());
    if old_header.deleted {
        return Ok(()); // the delete's own record has seen to it
    }
    let mut current = Vec::new();
    let there = table
        .index(0)
        .tree
        .get(store, record.key(), &mut current)
        .map_err(lift)?;
    let newest = if there {
        Some(RowHeader::split(&current).ok_or_else(damaged)?)
    } else {
        None
    };
    for n in 1..table.indexes().len() {
        if table.index(n).is_multi_valued() {
            let keys = match table.entry_keys(n, old, record.key()) {
                Err(stop) if overflow::is_gone(&stop) => continue, // U5
                other => other?,
            };
            for key in &keys {
                purge_entry(shared, table, n, record, newest, key)?;
            }
            continue;
        }
        let mut key = Vec::new();
        match table.secondary_key(n, old, record.key(), &mut key) {
            Err(stop) if overflow::is_gone(&stop) => continue, // U5
            other => other?,
        };
        purge_entry(shared, table, n, record, newest, &key)?;
    }
    let mut kept = Vec::new();
    if record.kind == UndoKind::DeleteMark {
        let marked_here = |value: &[u8]| {
            RowHeader::split(value).is_some_and(|(h, _)| h.deleted && h.undo == record.ptr.0)
        };
        let none = &mut Discarded(Vec::new());
        remove(shared, table, 0, record.key(), marked_here, none)?;
    } else if let Some((header, image)) = newest {
        kept = version_after(shared, table, (header, image.to_vec()), record.ptr.0)?;
    }
    let mut chains = overflow::pointers(table.layout(), old);
    chains.retain(|chain| !kept.contains(chain));
    chains
        .into_iter()
        .try_for_each(|chain| discard(store, table, chain))?;
    table.orphaned().drain(store).map(drop)
}

/// Removes an entry of a version that `record`'s change has replaced, unless a version up to the
/// newest one has its key.
fn purge_entry(
    shared: &Shared,
    table: &Table,
    n: usize,
    record: &UndoRecord,
    newest: Option<(RowHeader, &[u8])>,
    key: &[u8],
) -> Result<(), Stop> {
    let needed = match newest {
        Some((header, image)) => walk(
            shared,
            table,
            n,
            (header, image.to_vec()),
            record.key(),
            key,
            record.ptr.0,
        )?,
        None => false,
    };
    if needed {
        return Ok(());
    }
    // A writer that revives the entry after the walk has made a version with this key first
    // (write::W1): it unmarks under the latch, or finds the entry gone and inserts it.
    remove_entry(shared, table, n, key, |entry| entry.deleted)
}

/// Puts a chain of a purged version into the orphan list, unless that was done before a crash.
pub(crate) fn discard(store: &Store, table: &Table, chain: OverflowPointer) -> Result<(), Stop> {
    let mut slot = table.orphaned().take(store)?;
    let first = PageId {
        space: table.def().space,
        page: chain.first_page,
    };
    // Looked at before the orphan list is latched (`orphaned`, Concurrency).
    while let Some(page) = overflow::look(store, first, chain.owner)? {
        let mut mtr = store.mtr();
        mtr.reserve(LOG_OVERHEAD, table.def().space, 0)
            .map_err(lift)?;
        let orphaned = slot.latch(&mut mtr)?;
        if mtr.upgrade(&page).is_some() {
            slot.put(&mut mtr, orphaned, chain.first_page, chain.owner);
            mtr.commit();
            break;
        }
    }
    Ok(())
}

/// The overflow pointers of the version that `pointer`'s change made.
fn version_after(
    shared: &Shared,
    table: &Table,
    from: (RowHeader, Vec<u8>),
    pointer: u64,
) -> Result<Vec<OverflowPointer>, Stop> {
    let (mut header, mut image) = from;
    let mut scratch = Scratch::default();
    while header.undo != pointer && header.undo != 0 {
        if !existing_version(shared, header, &mut scratch)? {
            break;
        }
        let (h, i) = RowHeader::split(&scratch.version).ok_or_else(damaged)?;
        (header, image) = (h, i.to_vec());
    }
    Ok(overflow::pointers(table.layout(), &image))
}
