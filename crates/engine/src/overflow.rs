//! Long column values: chains of pages of the table's space, written once and never changed.
//!
//! # Picture (format v1)
//! ```text
//! page of type OVERFLOW:  header (64; newest transaction = the owner) │ u32 next page, 0 = last │ u32 bytes here │ bytes ...
//! ```
//! # Invariants
//! O1. A chain is whole and durable no later than the row version that points to it: it is written
//!     first.
//! O2. A page of a chain bears its owner's transaction id, and so does every pointer to the chain:
//!     a page that was freed and taken by another chain is told apart, and freeing a chain again
//!     after a crash frees nothing.
//! O3. A chain belongs to successive versions of one row: an update names the chains of the columns
//!     that it leaves alone. A chain is freed when the last version that names it is purged, or the
//!     first one is rolled back. Purge takes the records of a transaction newest first, so earlier
//!     versions of that transaction may name a chain that is gone. Purge computes index keys of
//!     these versions; hence a column of an index is never shared, but written anew.
//!     A version may also describe a value by its changes since the chain was written
//!     ([`value_changes`]).
//! O4. A chain that no row names yet, or any more, is listed in the table's
//!     [`orphaned`](crate::orphaned).

use nfold_btree::{MAX_ENTRY, MAX_KEY};
use nfold_store::{
    Latched, Mtr, PAGE_HEADER, PAGE_SIZE, PageId, PageNo, PageRef, PageType, SpaceId, Store,
    StoreError, TrxId,
};
use nfold_types::row::{OverflowPointer, RawField, RowError, RowLayout};

use crate::error::{EngineError, Stop, lift};
use crate::orphaned::{SLOT_LOG, Slot};
use crate::pending_chains::{PendingChain, PendingChains};
use crate::record::CLUSTERED_HEADER;
use crate::table::Table;
use crate::value_changes;
use crate::value_parts::{ColumnPart, LastLines, append_part};

pub(crate) const NEXT: usize = PAGE_HEADER;
pub(crate) const USED: usize = PAGE_HEADER + 4;
pub(crate) const DATA: usize = PAGE_HEADER + 8;
/// Bytes of a value on one page. All pages of a chain but the last are full.
pub(crate) const ROOM: usize = PAGE_SIZE - DATA;
/// Redo bytes of one page of a chain, generously.
const LOG_BYTES: usize = PAGE_SIZE + 512 + SLOT_LOG;
/// Longest row image that stays on a tree page behind a short key.
const MAX_INLINE: usize = 4000;
/// Shortest value that is worth moving out.
const MIN_MOVED: usize = 64;
/// Most bytes of a row image with its long values.
const LONGEST_IMAGE: usize = 1 << 31;
/// Buffers beyond these bytes grow by what they need, smaller ones to twice their size.
const DOUBLED_UP_TO: usize = 256 << 10;
/// Bytes by which a copy from a page may go on behind its end, at most.
const OVER: usize = 64;

/// Long values of a row to be inserted that lie beside its image, by column, each of at least
/// [`LEAST_BESIDE`] bytes. The image has an empty value in each of these columns, so a long value
/// is not copied into it. No index has such a column.
pub type ValuesBeside<'v> = &'v [(usize, &'v [u8])];

/// The least size of a value beside an image, in bytes: one that always moves to overflow pages.
pub const LEAST_BESIDE: usize = MAX_INLINE + 1;

/// Writes one value, last page first, each page in a mini-transaction of its own, and keeps its
/// progress over waits.
#[derive(Debug, Default)]
pub(crate) struct ChainWriter {
    /// Page written last; the next one links to it.
    next: PageNo,
    /// Bytes still to be written, from the front of the value.
    left: Option<usize>,
    /// Where the chain is listed while no row names it (O4).
    slot: Option<Slot>,
}

impl ChainWriter {
    /// Continues writing, and returns the pointer when the whole value is written.
    fn run(
        &mut self,
        store: &Store,
        space: SpaceId,
        owner: TrxId,
        value: &[u8],
    ) -> Result<OverflowPointer, Stop> {
        let mut left = self.left.unwrap_or(value.len());
        while left > 0 {
            let here = match left % ROOM {
                0 => ROOM,
                rest => rest,
            };
            let mut mtr = store.mtr();
            mtr.reserve(LOG_BYTES, space, 1).map_err(lift)?;
            let orphaned = match &self.slot {
                Some(slot) => Some(slot.latch(&mut mtr)?),
                None => None,
            };
            let page = mtr.alloc_page(space, PageType::OVERFLOW, 0, 0);
            mtr.write(page, NEXT, &self.next.to_le_bytes());
            mtr.write(page, USED, &(here as u32).to_le_bytes());
            mtr.write(page, DATA, &value[left - here..left]);
            mtr.set_newest_trx(page, owner);
            self.next = mtr.id(page).page;
            if let (Some(slot), Some(orphaned)) = (&mut self.slot, orphaned) {
                slot.put(&mut mtr, orphaned, self.next, owner);
            }
            mtr.commit();
            left -= here;
            self.left = Some(left);
        }
        Ok(OverflowPointer {
            first_page: self.next,
            length: value.len() as u64,
            owner,
        })
    }
}

/// Moves the longest values of a row out until it fits a tree page; keeps its progress over waits.
#[derive(Debug, Default)]
pub(crate) struct Mover {
    /// (ordinal, pointer) of the values that are out.
    moved: Vec<(usize, OverflowPointer)>,
    writer: ChainWriter,
    /// Of the chains that are written, until a row names them (O4).
    slots: Vec<Slot>,
    unlisted: bool,
}

impl Mover {
    /// For a space that is thrown away if the work is not finished.
    pub(crate) fn unlisted() -> Mover {
        Mover {
            unlisted: true,
            ..Mover::default()
        }
    }

    /// For another row. Chains that no row has come to name are freed in the background.
    pub(crate) fn reset(&mut self) {
        self.moved.clear();
        self.writer = ChainWriter::default();
        self.slots.clear();
    }

    /// For the mini-transaction that stores the row, before its first change: latches the orphan
    /// list page, if the row has chains.
    pub(crate) fn latch(&self, mtr: &mut Mtr<'_>) -> Result<Option<Latched>, Stop> {
        self.slots.first().map(|slot| slot.latch(mtr)).transpose()
    }

    /// Log bytes that [`named`](Self::named) takes.
    pub(crate) fn log_bytes(&self) -> usize {
        self.slots.len() * SLOT_LOG
    }

    /// Whether it has written this chain for the row at hand.
    pub(crate) fn has_written(&self, chain: &OverflowPointer) -> bool {
        self.moved.iter().any(|(_, written)| written == chain)
    }

    /// The row that `mtr` has stored names the chains. `orphaned` comes from
    /// [`latch`](Self::latch).
    pub(crate) fn named(&mut self, mtr: &mut Mtr<'_>, orphaned: Option<Latched>) {
        if let Some(orphaned) = orphaned {
            self.slots
                .iter_mut()
                .for_each(|slot| slot.clear(mtr, orphaned));
        }
    }

    /// Writes to `out` the image that is stored on the tree page behind a key of `key_len` bytes,
    /// with long values moved to overflow pages. Returns false if `row` fits unchanged. `beside`:
    /// long values of the row.
    ///
    /// # Errors
    /// [`EngineError::RowTooLarge`] if the row does not fit even with all long values moved.
    pub(crate) fn run(
        &mut self,
        store: &Store,
        table: &Table,
        owner: TrxId,
        (key_len, row): (usize, &[u8]),
        beside: ValuesBeside<'_>,
        out: &mut Vec<u8>,
    ) -> Result<bool, Stop> {
        let bytes_beside: usize = beside.iter().map(|(_, value)| value.len()).sum();
        let (mut size, inline) = (row.len() + bytes_beside, longest_inline(key_len));
        if size <= inline {
            return Ok(false);
        }
        let layout = table.layout();
        let beside_in = |ordinal| value_beside(beside, ordinal);
        let of_beside = |&(ordinal, value): &(usize, &[u8])| (value.len(), ordinal);
        let mut candidates: Vec<(usize, usize)> = beside.iter().map(of_beside).collect();
        for ordinal in 0..layout.columns().len() {
            if let Ok(RawField::Var(bytes)) = layout.raw(row, ordinal)
                && bytes.len() > MIN_MOVED
            {
                candidates.push((bytes.len(), ordinal));
            }
        }
        candidates.sort_unstable_by_key(|&(len, ordinal)| (std::cmp::Reverse(len), ordinal));
        for (n, &(len, ordinal)) in candidates.iter().enumerate() {
            if size <= inline {
                break;
            }
            size -= len - nfold_types::row::OVERFLOW_POINTER_BYTES;
            if n < self.moved.len() {
                continue;
            }
            let value = match beside_in(ordinal) {
                Some(value) => value,
                None => layout
                    .var_bytes(row, ordinal)
                    .map_err(|_| table.corrupt_row())?
                    .unwrap_or_default(),
            };
            if !self.unlisted && self.writer.slot.is_none() {
                self.writer.slot = Some(table.orphaned().take(store)?);
            }
            let pointer = self.writer.run(store, table.def().space, owner, value)?;
            self.moved.push((ordinal, pointer));
            self.slots.extend(std::mem::take(&mut self.writer).slot);
        }
        if size > inline {
            return Err(EngineError::RowTooLarge.into());
        }
        out.clear();
        let rewritten = layout.rewrite(row, out, |ordinal, field| {
            self.moved
                .iter()
                .find(|(o, _)| *o == ordinal)
                .map_or(field, |(_, p)| RawField::External(*p))
        });
        rewritten.map_err(|_| table.corrupt_row())?;
        Ok(true)
    }
}

/// The value of column `ordinal`, if it lies beside the image.
fn value_beside<'v>(beside: ValuesBeside<'v>, ordinal: usize) -> Option<&'v [u8]> {
    let found = beside.iter().find(|(column, _)| *column == ordinal);
    found.map(|(_, value)| *value)
}

/// Longest row image that stays on a tree page behind a key of `key_len` bytes: key, header and
/// image are one entry.
fn longest_inline(key_len: usize) -> usize {
    MAX_INLINE.min(MAX_ENTRY - CLUSTERED_HEADER - key_len.min(MAX_KEY))
}

/// The value of a chain without the changes of a row, and without waiting for its pages.
pub(crate) fn chain_in_memory(
    store: &Store,
    space: SpaceId,
    chain: OverflowPointer,
) -> Result<Option<Vec<u8>>, Stop> {
    let mut value = Vec::with_capacity(usize::try_from(chain.length).unwrap_or(0) + OVER);
    let mut next = chain.first_page;
    match read_pages(store, space, chain, &mut next, (0, &mut value)) {
        Ok(()) => Ok(Some(value)),
        Err(Stop::Wait(_)) => Ok(None),
        Err(stop) => Err(stop),
    }
}

/// Whether values of `row` have to move out, behind a key of `key_len` bytes.
pub(crate) fn is_long((key_len, row): (usize, &[u8])) -> bool {
    row.len() > longest_inline(key_len)
}

/// Appends the value of a chain to `out`. On an error or a wait `out` is as before; at a wait the
/// pages that were read go to `pending`.
fn read_chain(
    store: &Store,
    space: SpaceId,
    chain: OverflowPointer,
    pending: &PendingChains,
    out: &mut Vec<u8>,
) -> Result<(), Stop> {
    let (start, mut next) = (out.len(), chain.first_page);
    let read = read_pages(store, space, chain, &mut next, (start, out));
    read.inspect_err(|stop| {
        if matches!(stop, Stop::Wait(_)) {
            let bytes = out[start..].to_vec();
            pending.put(PendingChain {
                space,
                chain,
                next,
                bytes,
            });
        }
        out.truncate(start);
    })
}

/// Appends the pages of a chain from `next` on to `out`, where the chain begins at `start`. After a
/// wait, call again with both as they are.
fn read_pages(
    store: &Store,
    space: SpaceId,
    chain: OverflowPointer,
    next: &mut PageNo,
    (start, out): (usize, &mut Vec<u8>),
) -> Result<(), Stop> {
    while *next != 0 && ((out.len() - start) as u64) < chain.length {
        let id = PageId { space, page: *next };
        *next = append_page(store, id, chain.owner, out)?;
    }
    if (out.len() - start) as u64 != chain.length {
        let page = chain.first_page;
        return Err(corrupt(PageId { space, page }));
    }
    *next = 0;
    Ok(())
}

/// Reads one page of a chain: calls `take` with the page and the number of its bytes, until nothing
/// has changed meanwhile. Returns that number, the number of the page behind it, and what `take`
/// returned last.
#[inline]
fn read_page<T>(
    store: &Store,
    id: PageId,
    owner: TrxId,
    mut take: impl FnMut(&PageRef<'_>, usize) -> T,
) -> Result<(usize, PageNo, T), Stop> {
    loop {
        let read = store.read(id).map_err(lift)?;
        let (behind, used) = (read.u32(NEXT), (read.u32(USED) as usize).min(ROOM));
        // O2
        let ours = read.page_type() == PageType::OVERFLOW && read.newest_trx() == owner;
        let taken = take(&read, used);
        if !read.validate() {
            continue;
        }
        return match ours && used > 0 {
            true => Ok((used, behind, taken)),
            false => Err(corrupt(id)),
        };
    }
}

/// Appends the bytes of one page of a chain, and returns the number of the page behind it. On an
/// error or a wait `out` may end with bytes of the page.
fn append_page(store: &Store, id: PageId, owner: TrxId, out: &mut Vec<u8>) -> Result<PageNo, Stop> {
    let mark = out.len();
    let (_, behind, ()) = read_page(store, id, owner, |page, used| {
        out.truncate(mark);
        page.append_long(DATA, used, out);
    })?;
    Ok(behind)
}

/// Reads on the chains of a row for which a read has waited before. When it returns, `pending` has
/// all of them.
fn read_on(
    store: &Store,
    space: SpaceId,
    chains: impl Iterator<Item = OverflowPointer>,
    pending: &PendingChains,
) -> Result<(), Stop> {
    for chain in chains {
        let begun = pending.take(space, &chain);
        let mut begun = begun.unwrap_or_else(|| PendingChain {
            space,
            chain,
            next: chain.first_page,
            bytes: Vec::new(),
        });
        let room = chain.length.saturating_sub(begun.bytes.len() as u64);
        begun
            .bytes
            .reserve_exact(usize::try_from(room).unwrap_or(0) + OVER);
        let bytes = (0, &mut begun.bytes);
        let read = read_pages(store, space, chain, &mut begun.next, bytes);
        if matches!(read, Ok(()) | Err(Stop::Wait(_))) {
            pending.put(begun);
        }
        read?;
    }
    Ok(())
}

const GONE: &str = "not the overflow page that a row names";

fn corrupt(page: PageId) -> Stop {
    let what = GONE;
    EngineError::Store(StoreError::Corrupt { page, lsn: 0, what }).into()
}

/// Whether a chain was not there. For a version that purge may have been past, that is how it
/// should be.
pub(crate) fn is_gone(stop: &Stop) -> bool {
    matches!(stop, Stop::Error(EngineError::Store(StoreError::Corrupt { what, .. })) if *what == GONE)
}

/// Page `id` as it is now, if it is one of a chain of `owner` (O2). Called before a latch is held,
/// so the page may be any, and may change.
pub(crate) fn look(store: &Store, id: PageId, owner: TrxId) -> Result<Option<PageRef<'_>>, Stop> {
    loop {
        let page = store.read(id).map_err(lift)?;
        let belongs = page.page_type() == PageType::OVERFLOW && page.newest_trx() == owner;
        if page.validate() {
            return Ok(belongs.then_some(page));
        }
    }
}

/// The page behind this one in its chain; 0: the last.
pub(crate) fn next_page(mtr: &Mtr<'_>, page: Latched) -> PageNo {
    mtr.u32(page, NEXT)
}

/// Appends a row image to `out` in which the values of the `wanted` columns take the place of their
/// overflow pointers. On an error or a wait `out` is as before. At a wait `pending` keeps the pages
/// that were read; the next call for the row continues there.
pub(crate) fn inflate(
    from: (&Store, SpaceId),
    layout: &RowLayout,
    row: &[u8],
    wanted: impl Fn(usize) -> bool,
    pending: &PendingChains,
    out: &mut Vec<u8>,
) -> Result<(), Stop> {
    let parts = (&[][..], &LastLines::default());
    inflate_parts(from, layout, row, (wanted, parts), pending, out)
}

/// As [`inflate`]; of the columns that have a part, that part may come in place of the value.
pub(crate) fn inflate_parts(
    (store, space): (&Store, SpaceId),
    layout: &RowLayout,
    row: &[u8],
    (wanted, (parts, last)): (impl Fn(usize) -> bool, (&[ColumnPart], &LastLines)),
    pending: &PendingChains,
    out: &mut Vec<u8>,
) -> Result<(), Stop> {
    let part_of = |ordinal| parts.iter().find(|(column, _)| *column == ordinal);
    let chains = || pointers_of(layout, row).filter(|(ordinal, _)| wanted(*ordinal));
    let waited = !pending.is_empty() && chains().any(|(_, chain)| pending.has(space, &chain));
    if waited {
        read_on(store, space, chains().map(|(_, chain)| chain), pending)?;
    }
    let others = row.len() + size_of::<u32>() * layout.columns().len() + OVER;
    // Where parts are enough, a value that is copied all the same takes its room then.
    let values = match parts {
        [] => chains().fold(0, |sum: u64, (_, chain)| sum.saturating_add(chain.length)),
        _ => 0,
    };
    make_room(out, space, (values, others))?;
    let put = |ordinal, field: RawField<'_>, out: &mut Vec<u8>| match field {
        RawField::External(chain) | RawField::Patched(chain, _) if wanted(ordinal) => {
            let start = out.len();
            let changes = match field {
                RawField::Patched(_, changes) => changes,
                _ => &[],
            };
            if let Some((_, part)) = part_of(ordinal)
                && !waited
                && append_part((store, space, last), chain, changes, &**part, out)
            {
                return Ok(false);
            }
            if !parts.is_empty() {
                make_room(out, space, (chain.length, others)).map_err(InflateStop::Stop)?;
            }
            match pending.take(space, &chain) {
                Some(whole) => out.extend_from_slice(&whole.bytes),
                None => {
                    let read = read_chain(store, space, chain, pending, out);
                    read.map_err(InflateStop::Stop)?;
                }
            }
            value_changes::apply(changes, start, out).map_err(|_| InflateStop::Damaged)?;
            Ok(false)
        }
        field => Ok(field.append_to(out)),
    };
    match layout.rewrite_with(row, out, put) {
        Ok(()) => Ok(()),
        Err(InflateStop::Stop(stop)) => Err(stop),
        Err(InflateStop::Damaged) => Err(damaged_row(space)),
    }
}

/// Reserves room for this many bytes of values, and `others`.
fn make_room(
    out: &mut Vec<u8>,
    space: SpaceId,
    (values, others): (u64, usize),
) -> Result<(), Stop> {
    let values = usize::try_from(values).unwrap_or(usize::MAX);
    if values > LONGEST_IMAGE {
        return Err(damaged_row(space));
    }
    let room = values + others;
    match out.len() + room > DOUBLED_UP_TO {
        true => out.reserve_exact(room),
        false => out.reserve(room),
    }
    Ok(())
}

/// Whether `row`, some of whose values lie on overflow pages, has the same values as `whole`, which
/// has all of them, `beside` among them. At a wait `pending` keeps the pages that were read, as in
/// [`inflate`].
pub(crate) fn is_same_row(
    (store, space): (&Store, SpaceId),
    layout: &RowLayout,
    row: &[u8],
    (whole, beside): (&[u8], ValuesBeside<'_>),
    pending: &PendingChains,
) -> Result<bool, Stop> {
    let chains = || pointers_of(layout, row);
    if !chains().any(|(_, chain)| pending.has(space, &chain)) {
        match compare_by_pages((store, space), layout, row, (whole, beside)) {
            Ok(Some(same)) => return Ok(same),
            // `inflate` waits for the page, and keeps the others.
            Ok(None) | Err(Stop::Wait(_)) => {}
            Err(error) => return Err(error),
        }
    }
    let mut inflated = Vec::new();
    inflate(
        (store, space),
        layout,
        row,
        |_| true,
        pending,
        &mut inflated,
    )?;
    for ordinal in 0..layout.columns().len() {
        let field = |row| layout.raw(row, ordinal).map_err(|_| damaged_row(space));
        if field(&inflated)? != field_of((layout, space), (whole, beside), ordinal)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A field of a row that has all its values, some of them beside its image.
fn field_of<'r>(
    (layout, space): (&RowLayout, SpaceId),
    (whole, beside): (&'r [u8], ValuesBeside<'r>),
    ordinal: usize,
) -> Result<RawField<'r>, Stop> {
    match value_beside(beside, ordinal) {
        Some(value) => Ok(RawField::Var(value)),
        None => layout.raw(whole, ordinal).map_err(|_| damaged_row(space)),
    }
}

/// [`is_same_row`] that compares the bytes on the pages, without a copy. `None`: a value is
/// described by its changes.
fn compare_by_pages(
    (store, space): (&Store, SpaceId),
    layout: &RowLayout,
    row: &[u8],
    whole: (&[u8], ValuesBeside<'_>),
) -> Result<Option<bool>, Stop> {
    for ordinal in 0..layout.columns().len() {
        let stored = layout.raw(row, ordinal).map_err(|_| damaged_row(space))?;
        let same = match (stored, field_of((layout, space), whole, ordinal)?) {
            (RawField::Patched(..), _) => return Ok(None),
            (RawField::External(chain), RawField::Var(value)) => {
                chain.length == value.len() as u64
                    && is_value_of_chain((store, space), chain, value)?
            }
            (a, b) => a == b,
        };
        if !same {
            return Ok(Some(false));
        }
    }
    Ok(Some(true))
}

/// Whether `value`, of the length of the chain, is the chain's value.
fn is_value_of_chain(
    (store, space): (&Store, SpaceId),
    chain: OverflowPointer,
    value: &[u8],
) -> Result<bool, Stop> {
    let (mut next, mut left) = (chain.first_page, value);
    while !left.is_empty() {
        let id = PageId { space, page: next };
        let (used, behind, same) = read_page(store, id, chain.owner, |page, used| {
            let first = left.get(..used);
            first.is_some_and(|first| page.equal(DATA, first))
        })?;
        if !same {
            return Ok(false);
        }
        (left, next) = (&left[used..], behind);
    }
    Ok(true)
}

/// Why [`inflate`] ended.
enum InflateStop {
    Damaged,
    Stop(Stop),
}

impl From<RowError> for InflateStop {
    fn from(_: RowError) -> InflateStop {
        InflateStop::Damaged
    }
}

fn damaged_row(space: SpaceId) -> Stop {
    let page = PageId { space, page: 0 };
    let what = "a row with overflow pointers is damaged";
    EngineError::Store(StoreError::Corrupt { page, lsn: 0, what }).into()
}

/// The overflow pointers of a row image.
pub(crate) fn pointers(layout: &RowLayout, row: &[u8]) -> Vec<OverflowPointer> {
    pointers_of(layout, row).map(|(_, chain)| chain).collect()
}

/// Columns on overflow pages, each with its pointer.
fn pointers_of<'r>(
    layout: &'r RowLayout,
    row: &'r [u8],
) -> impl Iterator<Item = (usize, OverflowPointer)> + 'r {
    let columns = match RowLayout::has_external(row) {
        true => layout.columns().len(),
        false => 0,
    };
    (0..columns).filter_map(|ordinal| Some((ordinal, layout.raw(row, ordinal).ok()?.pointer()?)))
}
