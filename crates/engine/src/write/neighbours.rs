//! One mini-transaction that inserts several rows, or index entries, into one leaf.

use nfold_btree::{ENTRY_LOG_OVERHEAD, EntryRun, LeafPos, Room, RowHint};
use nfold_store::{Mtr, PageNo};
use nfold_txn::locks::{LockKey, LockKind, LockMode, LockRequest};
use nfold_txn::undo::{OldVersion, RowChange, UndoKind};
use smallvec::SmallVec;

use crate::error::{Stop, lift};
use crate::record::{CLUSTERED_HEADER, RowHeader};
use crate::session::EngineSession;
use crate::table::Table;
use crate::write::clustered::reserve;
use crate::write::deferred::MOST;

/// Rows that were inserted side by side.
pub(super) struct Neighbours {
    page: PageNo,
    slot: usize,
    count: usize,
}

impl Neighbours {
    /// Where the rows are, for the hints of their entries.
    pub(super) fn places(&self) -> impl Iterator<Item = RowHint> {
        let page = self.page;
        (self.slot..self.slot + self.count).map(move |slot| RowHint::new(page, slot))
    }
}

/// The latched leaf and the gap between existing keys into which a run goes.
struct RunPlace<'t, 'k> {
    mtr: Mtr<'t>,
    pos: LeafPos,
    gap: LockKey<'k>,
    /// The number of entries, from the first one on, that go there.
    count: usize,
}

/// Latches the leaf of the first of `entries`, which are keys and lengths of values, and locks the
/// gap that it goes to. `None`: there is an entry with that key. `next` is scratch memory.
fn latch_gap<'t, 'k, 'e>(
    session: &mut EngineSession,
    (table, n): (&'t Table, usize),
    entries: impl Iterator<Item = (&'e [u8], usize)> + Clone,
    next: &'k mut Vec<u8>,
) -> Result<Option<RunPlace<'t, 'k>>, Stop> {
    let Some((first_key, first_len)) = entries.clone().next() else {
        return Ok(None);
    };
    let tree = &table.index(n).tree;
    let store = table.store();
    let mut mtr = store.mtr();
    let pos = tree
        .leaf_for_write(store, &mut mtr, first_key, Room::Value(first_len))
        .map_err(lift)?;
    if pos.found {
        return Ok(None);
    }
    next.clear();
    let successor = tree.next_entry(&mut mtr, &pos, next).map_err(lift)?;
    let (gap, next) = match successor {
        Some(_) => (LockKey::Key(next), Some(&next[..])),
        None => (LockKey::Supremum, None),
    };
    // One lock for all entries of the run, which lie in one gap.
    let index = table.def().indexes[n].id.0;
    let (mode, kind) = (LockMode::X, LockKind::InsertIntention);
    session.lock(&LockRequest::new(index, gap, mode, kind))?;
    let count = tree.run_len(&mtr, &pos, next, entries.take(MOST));
    Ok(Some(RunPlace {
        mtr,
        pos,
        gap,
        count,
    }))
}

/// Inserts the first of `rows`, and those behind it that go to the same leaf and the same gap
/// between existing keys. `rows` are clustered keys, and images without overflow chains. `None`:
/// there is a row with the first key, which may be a duplicate or marked as deleted.
pub(super) fn insert<'r>(
    session: &mut EngineSession,
    table: &Table,
    rows: impl Iterator<Item = (&'r [u8], &'r [u8])> + Clone,
    (run, next): (&mut EntryRun, &mut Vec<u8>),
) -> Result<Option<Neighbours>, Stop> {
    let trx = session.write_id()?;
    let index = table.def().indexes[0].id.0;
    let tree = &table.index(0).tree;
    let lengths = rows.clone();
    let lengths = lengths.map(|(key, image)| (key, CLUSTERED_HEADER + image.len()));
    let Some(place) = latch_gap(session, (table, 0), lengths, next)? else {
        return Ok(None);
    };
    let RunPlace {
        mut mtr,
        pos,
        gap,
        count,
    } = place;
    let mut bodies: SmallVec<[usize; MOST]> = SmallVec::new();
    let mut bytes = 0;
    for (key, image) in rows.clone().take(count) {
        bodies.push(key.len());
        bytes += 2 * key.len() + CLUSTERED_HEADER + image.len() + ENTRY_LOG_OVERHEAD;
    }
    reserve(&mut mtr, table, bytes)?;
    let (mut prep, count) = session.prepare_undo_of_several(&mut mtr, &bodies)?;
    // From here on nothing waits or fails (W2).
    let rows = rows.take(count);
    tree.begin_run(&mtr, &pos, run);
    for (key, image) in rows.clone() {
        let change = RowChange {
            kind: UndoKind::Insert,
            table_id: table.def().id.0,
            key,
            old: OldVersion::default(),
            image: &[],
            quiet: true,
        };
        let undo = session.append_undo(&mut mtr, &mut prep, &change);
        let header = RowHeader {
            trx,
            undo,
            deleted: false,
        };
        run.push(key, [&header.to_bytes(), image]);
    }
    tree.insert_run(&mut mtr, &pos, run);
    tree.set_newest_trx(&mut mtr, &pos, trx);
    let keys = rows.map(|(key, _)| key);
    session.locks().inherit_on_insert(index, keys, gap);
    let (page, slot) = (mtr.id(pos.leaf).page, pos.slot);
    mtr.commit();
    Ok(Some(Neighbours { page, slot, count }))
}

/// Inserts the first of `entries`, which are keys and values in ascending order, into secondary
/// index `n`, and those behind it that go to the same leaf and the same gap between existing keys.
/// Returns their number; 0: there is an entry with the first key.
pub(super) fn insert_entries<'e>(
    session: &mut EngineSession,
    (table, n): (&Table, usize),
    entries: impl Iterator<Item = (&'e [u8], &'e [u8])> + Clone,
    (run, next): (&mut EntryRun, &mut Vec<u8>),
) -> Result<usize, Stop> {
    let trx = session.write_id()?;
    let tree = &table.index(n).tree;
    let lengths = entries.clone().map(|(key, value)| (key, value.len()));
    let Some(place) = latch_gap(session, (table, n), lengths, next)? else {
        return Ok(0);
    };
    let RunPlace {
        mut mtr,
        pos,
        gap,
        count,
    } = place;
    let entries = entries.take(count);
    tree.begin_run(&mtr, &pos, run);
    let mut bytes = 0;
    for (key, value) in entries.clone() {
        bytes += key.len() + value.len() + ENTRY_LOG_OVERHEAD;
        run.push(key, [value, &[]]);
    }
    reserve(&mut mtr, table, bytes)?;
    // From here on nothing waits or fails (W2).
    tree.insert_run(&mut mtr, &pos, run);
    tree.set_newest_trx(&mut mtr, &pos, trx);
    let index = table.def().indexes[n].id.0;
    let keys = entries.map(|(key, _)| key);
    session.locks().inherit_on_insert(index, keys, gap);
    mtr.commit();
    Ok(count)
}
