//! One change of one secondary entry.

use nfold_btree::{Cursor, EntryBatch, Room};
use nfold_store::TrxId;
use nfold_txn::locks::{LockKey, LockKind, LockMode, LockRequest, Locked};

use crate::error::{Stop, lift};
use crate::read::damaged;
use crate::record::{self, SecondaryEntry};
use crate::session::EngineSession;
use crate::table::Table;
use crate::write::Work;
use crate::write::clustered::reserve;

/// Whether unique index `n` has a live entry of another row with the same own key parts (`own`
/// bytes of `key`). Locks the key first (W4), and each entry that it finds.
pub(super) fn unique_conflict(
    session: &mut EngineSession,
    table: &Table,
    n: usize,
    own_key: &[u8],
    (primary, duplicates): (&[u8], LockMode),
) -> Result<bool, Stop> {
    let index = table.index(n);
    if !index.unique
        || index
            .key
            .has_null(own_key, index.key.parts().len())
            .unwrap_or(false)
    {
        return Ok(false);
    }
    let id = table.def().indexes[n].id.0;
    session.lock(&LockRequest::new(
        id,
        LockKey::Key(own_key),
        LockMode::X,
        LockKind::Record,
    ))?;
    let store = table.store();
    let mut cursor: Cursor = index.tree.cursor(crate::read::prefix_range(own_key), false);
    let mut batch = EntryBatch::default();
    let mut more = true;
    while more {
        batch.clear();
        more = cursor
            .next_batch(&index.tree, store, 16, &mut batch)
            .map_err(lift)?;
        for (key, value) in batch.iter() {
            let entry = SecondaryEntry::parse(value).ok_or_else(damaged)?;
            let holder = session.active_other(entry.trx);
            let others = entry.primary_key(key).ok_or_else(damaged)? != primary;
            if !others {
                continue;
            }
            if entry.deleted && holder.is_none() && is_gone(table, n, key, entry.trx)? {
                continue;
            }
            if live_under_lock(session, table, (n, key, duplicates), holder)? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Whether an entry that `trx` has deleted is deleted for good; it was copied before, and `trx` has
/// ended. A rollback may have restored it in between.
fn is_gone(table: &Table, n: usize, key: &[u8], trx: TrxId) -> Result<bool, Stop> {
    let mut now = Vec::new();
    let tree = &table.index(n).tree;
    if !tree.get(table.store(), key, &mut now).map_err(lift)? {
        return Ok(true);
    }
    let entry = SecondaryEntry::parse(&now).ok_or_else(damaged)?;
    Ok(entry.deleted && entry.trx == trx)
}

/// Whether an entry of another row is live once it is locked in `mode`; it was copied before.
fn live_under_lock(
    session: &mut EngineSession,
    table: &Table,
    (n, key, mode): (usize, &[u8], LockMode),
    mut holder: Option<TrxId>,
) -> Result<bool, Stop> {
    let id = table.def().indexes[n].id.0;
    let mut now = Vec::new();
    loop {
        let wanted =
            LockRequest::new(id, LockKey::Key(key), mode, LockKind::Record).implicit_holder(holder);
        let locked = session.lock(&wanted)?;
        now.clear();
        let tree = &table.index(n).tree;
        let looked = tree.get(table.store(), key, &mut now).map_err(lift);
        let entry = match &looked {
            Ok(true) => Some(SecondaryEntry::parse(&now).ok_or_else(damaged)?),
            _ => None,
        };
        holder = entry.as_ref().and_then(|e| session.active_other(e.trx));
        if locked == Locked::New && (holder.is_some() || looked.is_err()) {
            // Another transaction has changed the entry in between, which the lock did not cover
            // (K6 of `read::locking`).
            session.unlock(id, key, mode, LockKind::Record);
            looked?;
            continue;
        }
        looked?;
        return Ok(entry.is_some_and(|e| !e.deleted));
    }
}

/// Inserts the entry of `row` into index `n`, or revives it.
pub(super) fn insert(
    session: &mut EngineSession,
    table: &Table,
    work: &mut Work,
    n: usize,
    row: &[u8],
) -> Result<(), Stop> {
    work.key.clear();
    table.secondary_key(n, row, &work.primary, &mut work.key)?;
    insert_key(session, table, work, n, row)
}

/// Inserts the entry of `row` under the key in `work`, or revives it.
pub(super) fn insert_key(
    session: &mut EngineSession,
    table: &Table,
    work: &mut Work,
    n: usize,
    row: &[u8],
) -> Result<(), Stop> {
    let Work {
        primary,
        key,
        value,
        current,
        next,
        place,
        ..
    } = work;
    let trx = session.write_id()?;
    let id = table.def().indexes[n].id.0;
    let tree = &table.index(n).tree;
    value.clear();
    table.secondary_value(n, row, (key.len(), primary.len()), trx, value)?;
    record::set_row_hint(value, *place);
    let store = table.store();
    let mut mtr = store.mtr();
    let mut pos = tree
        .leaf_for_write(store, &mut mtr, key, Room::Value(value.len()))
        .map_err(lift)?;
    if pos.found {
        current.clear();
        tree.value(&mtr, &pos, current);
        let entry = SecondaryEntry::parse(current).ok_or_else(damaged)?;
        let holder = session.active_other(entry.trx);
        let wanted = LockRequest::new(id, LockKey::Key(key), LockMode::X, LockKind::Record)
            .implicit_holder(holder)
            .becomes_implicit();
        session.lock(&wanted)?;
        reserve(&mut mtr, table, 2 * (key.len() + value.len()))?;
        tree.replace_value_at(&mut mtr, &pos, value);
    } else {
        next.clear();
        let successor = tree.next_entry(&mut mtr, &pos, next).map_err(lift)?;
        let gap = if successor.is_some() {
            LockKey::Key(next)
        } else {
            LockKey::Supremum
        };
        session.lock(&LockRequest::new(
            id,
            gap,
            LockMode::X,
            LockKind::InsertIntention,
        ))?;
        reserve(&mut mtr, table, key.len() + value.len())?;
        tree.insert_at(&mut mtr, &mut pos, key, value);
        session.locks().inherit_on_insert(id, [&key[..]], gap);
    }
    tree.set_newest_trx(&mut mtr, &pos, trx);
    mtr.commit();
    Ok(())
}

/// Marks the entry of `row` in index `n` deleted.
pub(super) fn mark(
    session: &mut EngineSession,
    table: &Table,
    work: &mut Work,
    n: usize,
    row: &[u8],
) -> Result<(), Stop> {
    work.key.clear();
    table.secondary_key(n, row, &work.primary, &mut work.key)?;
    mark_key(session, table, work, n)
}

/// Marks the entry under the key in `work` deleted.
pub(super) fn mark_key(
    session: &mut EngineSession,
    table: &Table,
    work: &mut Work,
    n: usize,
) -> Result<(), Stop> {
    let Work { key, current, .. } = work;
    let trx = session.write_id()?;
    let id = table.def().indexes[n].id.0;
    let tree = &table.index(n).tree;
    let store = table.store();
    let mut mtr = store.mtr();
    let pos = tree
        .leaf_for_write(store, &mut mtr, key, Room::Unchanged)
        .map_err(lift)?;
    if !pos.found {
        return Err(damaged());
    }
    current.clear();
    tree.value(&mtr, &pos, current);
    let entry = SecondaryEntry::parse(current).ok_or_else(damaged)?;
    let holder = session.active_other(entry.trx);
    let wanted = LockRequest::new(id, LockKey::Key(key), LockMode::X, LockKind::Record)
        .implicit_holder(holder)
        .becomes_implicit();
    session.lock(&wanted)?;
    reserve(&mut mtr, table, key.len())?;
    tree.write_value_bytes(&mut mtr, &pos, 0, &record::secondary_mark(trx, true));
    tree.set_newest_trx(&mut mtr, &pos, trx);
    mtr.commit();
    Ok(())
}

/// Whether index `n` has another entry for `new` than for `old`: another key, or other original
/// bytes.
pub(super) fn differs(
    table: &Table,
    n: usize,
    old: &[u8],
    new: &[u8],
    (a, b): (&mut Vec<u8>, &mut Vec<u8>),
) -> Result<Differs, Stop> {
    a.clear();
    b.clear();
    if table.index(n).is_multi_valued() {
        if table.entry_keys(n, old, &[])? != table.entry_keys(n, new, &[])? {
            return Ok(Differs::Key);
        }
    } else {
        table.secondary_key(n, old, &[], a)?;
        table.secondary_key(n, new, &[], b)?;
        if a != b {
            return Ok(Differs::Key);
        }
    }
    a.clear();
    b.clear();
    table.secondary_value(n, old, (0, 0), 0, a)?;
    table.secondary_value(n, new, (0, 0), 0, b)?;
    Ok(if a == b {
        Differs::No
    } else {
        Differs::Originals
    })
}

/// How two rows differ in one index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Differs {
    No,
    /// The entry stays where it is and gets other original bytes.
    Originals,
    Key,
}
