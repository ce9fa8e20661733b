//! One mini-transaction that inserts several rows, or index entries, into one leaf.

use std::ops::Range;

use nfold_btree::{ENTRY_LOG_OVERHEAD, EntryRun, LeafPos, LeafUse, Room, RowHint};
use nfold_store::{Mtr, PageNo};
use nfold_txn::locks::{LockKey, LockKind, LockMode, LockRequest, OnConflict};
use nfold_txn::undo::{OldVersion, RowChange, UndoKind};
use smallvec::SmallVec;

use crate::error::{EngineError, Stop, lift};
use crate::record::{CLUSTERED_HEADER, RowHeader};
use crate::session::EngineSession;
use crate::table::Table;
use crate::write::clustered::reserve;
use crate::write::deferred::{MOST, RowList};

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
    /// What they take of the leaf.
    used: LeafUse,
}

/// How a run finds its leaf and locks its gap.
#[derive(Clone, Copy)]
struct Approach {
    /// The leaf, probably.
    leaf: Option<PageNo>,
    on_conflict: OnConflict,
}

/// Latches the leaf of the first of `entries`, which are keys and lengths of values, and locks the
/// gap that it goes to. `None`: there is an entry with that key. `next` is scratch memory.
fn latch_gap<'t, 'k, 'e>(
    session: &mut EngineSession,
    (table, n): (&'t Table, usize),
    entries: impl Iterator<Item = (&'e [u8], usize)> + Clone,
    approach: Approach,
    next: &'k mut Vec<u8>,
) -> Result<Option<RunPlace<'t, 'k>>, Stop> {
    let Some((first_key, first_len)) = entries.clone().next() else {
        return Ok(None);
    };
    let tree = &table.index(n).tree;
    let store = table.store();
    let mut mtr = store.mtr();
    let room = Room::Value(first_len);
    let pos = match approach.leaf {
        Some(leaf) => tree.leaf_for_write_near(store, &mut mtr, (first_key, room), leaf),
        None => tree.leaf_for_write(store, &mut mtr, first_key, room),
    };
    let pos = pos.map_err(lift)?;
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
    session.lock(&LockRequest::new(index, gap, mode, kind).on_conflict(approach.on_conflict))?;
    let mut used = LeafUse::default();
    let count = tree.run_len(&mtr, &pos, next, entries.take(MOST), &mut used);
    Ok(Some(RunPlace {
        mtr,
        pos,
        gap,
        count,
        used,
    }))
}

/// Inserts the first of `rows`, and those behind it that go to the same leaf and the same gap
/// between existing keys. `rows` are clustered keys, and images without overflow chains. `None`:
/// there is a row with the first key, which may be a duplicate or marked as deleted.
/// `on_conflict`: what happens if the gap is locked.
pub(super) fn insert<'r>(
    session: &mut EngineSession,
    table: &Table,
    rows: impl Iterator<Item = (&'r [u8], &'r [u8])> + Clone,
    on_conflict: OnConflict,
    (run, next): (&mut EntryRun, &mut Vec<u8>),
) -> Result<Option<Neighbours>, Stop> {
    let trx = session.write_id()?;
    let index = table.def().indexes[0].id.0;
    let tree = &table.index(0).tree;
    let lengths = rows.clone();
    let lengths = lengths.map(|(key, image)| (key, CLUSTERED_HEADER + image.len()));
    let approach = Approach {
        leaf: None,
        on_conflict,
    };
    let Some(place) = latch_gap(session, (table, 0), lengths, approach, next)? else {
        return Ok(None);
    };
    let RunPlace {
        mut mtr,
        pos,
        gap,
        count,
        ..
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

/// Keys and values of entries, in ascending order.
#[derive(Clone, Copy)]
pub(super) struct SortedEntries<'e> {
    pub list: &'e RowList,
    /// The numbers of the entries in `list`, each behind the first bytes of its key.
    pub order: &'e [(u64, u16)],
}

impl<'e> SortedEntries<'e> {
    fn len(self) -> usize {
        self.order.len()
    }

    fn get(self, n: usize) -> (&'e [u8], &'e [u8]) {
        self.list.row(usize::from(self.order[n].1))
    }

    fn range(
        self,
        range: Range<usize>,
    ) -> impl Iterator<Item = (&'e [u8], &'e [u8])> + Clone + use<'e> {
        let numbers = self.order[range].iter();
        numbers.map(move |(_, n)| self.list.row(usize::from(*n)))
    }

    /// Keys and lengths of values.
    fn lengths(
        self,
        range: Range<usize>,
    ) -> impl Iterator<Item = (&'e [u8], usize)> + Clone + use<'e> {
        self.range(range).map(|(key, value)| (key, value.len()))
    }

    pub(super) fn keys(self) -> impl Iterator<Item = &'e [u8]> + use<'e> {
        self.range(0..self.len()).map(|(key, _)| key)
    }
}

/// A run behind the first one of a mini-transaction.
struct LaterRun {
    pos: LeafPos,
    /// The range of the key behind its gap in the list of those keys.
    gap: Range<usize>,
    /// The range of its entries.
    entries: Range<usize>,
}

/// Finds the gaps of the leaf of `pos` to which the next of `entries` go, and locks them as far as
/// no session is in the way. The keys behind the gaps are appended to `next`.
fn later_runs(
    session: &mut EngineSession,
    (table, n): (&Table, usize),
    entries: SortedEntries<'_>,
    (mtr, mut pos, mut used): (&Mtr<'_>, LeafPos, LeafUse),
    next: &mut Vec<u8>,
) -> Result<SmallVec<[LaterRun; 8]>, Stop> {
    let tree = &table.index(n).tree;
    let index = table.def().indexes[n].id.0;
    let mut runs = SmallVec::new();
    let most = entries.len().min(MOST);
    while used.entries < most {
        let (from, first) = (next.len(), used.entries);
        let (key, _) = entries.get(first);
        let Some(here) = tree.gap_behind(mtr, &pos, key, next) else {
            break;
        };
        let rest = entries.lengths(first..most);
        let count = tree.run_len(mtr, &here, Some(&next[from..]), rest, &mut used);
        if count == 0 {
            break;
        }
        let gap = LockKey::Key(&next[from..]);
        let (mode, kind) = (LockMode::X, LockKind::InsertIntention);
        let wanted = LockRequest::new(index, gap, mode, kind).on_conflict(OnConflict::NoWait);
        match session.lock(&wanted) {
            Err(Stop::Error(EngineError::LockNoWait)) => break,
            locked => locked?,
        };
        runs.push(LaterRun {
            pos: here,
            gap: from..next.len(),
            entries: first..first + count,
        });
        pos = here;
    }
    Ok(runs)
}

/// Inserts the first of `entries`, which are keys and values in ascending order, into secondary
/// index `n`, and those behind it that go to the same leaf. Returns their number; 0: there is an
/// entry with the first key. `leaf` is probably the leaf.
pub(super) fn insert_entries(
    session: &mut EngineSession,
    (table, n): (&Table, usize),
    entries: SortedEntries<'_>,
    leaf: Option<PageNo>,
    (run, next, nexts): (&mut EntryRun, &mut Vec<u8>, &mut Vec<u8>),
) -> Result<usize, Stop> {
    let trx = session.write_id()?;
    let tree = &table.index(n).tree;
    let lengths = entries.lengths(0..entries.len().min(MOST));
    let approach = Approach {
        leaf,
        on_conflict: OnConflict::Wait,
    };
    let Some(place) = latch_gap(session, (table, n), lengths, approach, next)? else {
        return Ok(0);
    };
    let RunPlace {
        mut mtr,
        pos,
        gap,
        count,
        used,
    } = place;
    nexts.clear();
    let later = later_runs(session, (table, n), entries, (&mtr, pos, used), nexts)?;
    let end = later.last().map_or(count, |run| run.entries.end);
    let logged = |(key, value): (&[u8], &[u8])| key.len() + value.len() + ENTRY_LOG_OVERHEAD;
    let bytes = entries.range(0..end).map(logged).sum();
    reserve(&mut mtr, table, bytes)?;
    // From here on nothing waits or fails (W2).
    let index = table.def().indexes[n].id.0;
    let first = (pos, gap, 0..count);
    let behind = later.iter().map(|run| {
        (
            run.pos,
            LockKey::Key(&nexts[run.gap.clone()]),
            run.entries.clone(),
        )
    });
    for (pos, gap, range) in std::iter::once(first).chain(behind).rev() {
        let entries = entries.range(range);
        tree.begin_run(&mtr, &pos, run);
        for (key, value) in entries.clone() {
            run.push(key, [value, &[]]);
        }
        tree.insert_run(&mut mtr, &pos, run);
        let keys = entries.map(|(key, _)| key);
        session.locks().inherit_on_insert(index, keys, gap);
    }
    tree.set_newest_trx(&mut mtr, &pos, trx);
    mtr.commit();
    Ok(end)
}
