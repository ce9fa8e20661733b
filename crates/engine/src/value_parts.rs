//! Parts of long values, read from their overflow pages without a copy of the value.
//!
//! # Picture
//! ```text
//!   ValuePart ──▶ bytes at an offset of the value ──▶ Pieces ──▶ bytes of the chain ──▶ ChainPages
//!   (executor)                                        (changes since the chain was written)
//! ```
//! # Invariants
//! P1. The part counts only if every page that was visited validates afterwards, and belongs to the
//!     chain (overflow::O2). Before that its bytes may be garbage.
//! P2. Nothing waits here. If a page is not in memory, the value is copied as ever
//!     ([`overflow::inflate`](crate::overflow::inflate)), which keeps its progress.
//!
//! # Cost
//! The first lines of each page up to the last one that is needed, and the lines of the bytes read.
//! Documents of one column are alike as a rule: while the part of one value is read, the lines of
//! the next values are prefetched in which the part before was found ([`LastLines`]). Writes
//! nothing but the caller's row and the session's memory.

use std::cell::{RefCell, RefMut};
use std::fmt::Debug;
use std::sync::Arc;

use nfold_store::{PageId, PageRef, PageType, SpaceId, Store};
use nfold_types::row::{OverflowPointer, RawField, RowLayout};
use smallvec::SmallVec;

use crate::overflow::{DATA, NEXT, ROOM, USED};
use crate::value_changes::Pieces;

/// Selects the part of a column's long values that a statement needs. Values that lie in the row
/// come as a whole all the same, and so may others.
pub trait ValuePart: Debug + Send + Sync {
    /// Appends what stands for a value of `length` bytes. `read` reads its bytes from an offset on,
    /// which may be garbage; false: it cannot. False: the value is needed as a whole, and `out` may
    /// have any bytes behind its end.
    fn append(
        &self,
        length: usize,
        read: &mut dyn FnMut(usize, &mut [u8]) -> bool,
        out: &mut Vec<u8>,
    ) -> bool;
}

/// The table ordinal of a column, and the part of its long values that is needed.
pub type ColumnPart = (usize, Arc<dyn ValuePart>);

/// The most lines of a page that are prefetched.
const LINES_MAX: usize = 40;
const LINE: usize = 64;

/// The lines of the first page of the last value of which a part was read. Belongs to one session.
#[derive(Default)]
pub(crate) struct LastLines(RefCell<Vec<u16>>);

impl LastLines {
    /// Prefetches the same lines of the values of another row.
    pub(crate) fn prefetch(
        &self,
        (store, space): (&Store, SpaceId),
        layout: &RowLayout,
        row: &[u8],
        parts: &[ColumnPart],
    ) {
        for (column, _) in parts {
            let field = layout.raw(row, *column).ok();
            let Some(chain) = field.and_then(RawField::pointer) else {
                continue;
            };
            let page = chain.first_page;
            store.prefetch_lines(PageId { space, page }, &self.0.borrow());
        }
    }
}

/// Appends the part of the value that is stored as `chain` and `changes`. False: it is to be
/// copied, and `out` is as before.
pub(crate) fn append_part(
    (store, space, last): (&Store, SpaceId, &LastLines),
    chain: OverflowPointer,
    changes: &[u8],
    part: &dyn ValuePart,
    out: &mut Vec<u8>,
) -> bool {
    let Ok(stored) = usize::try_from(chain.length) else {
        return false;
    };
    let mut pages = ChainPages {
        store,
        space,
        chain,
        pages: SmallVec::new(),
        lines: last.0.borrow_mut(),
    };
    pages.lines.clear();
    let start = out.len();
    let appended = match changes {
        [] => {
            let mut read = |at: usize, bytes: &mut [u8]| {
                let inside = at.checked_add(bytes.len()).is_some_and(|end| end <= stored);
                inside && pages.read(at, bytes).is_some()
            };
            part.append(stored, &mut read, out)
        }
        changes => {
            let Some(pieces) = Pieces::of(changes, stored) else {
                return false;
            };
            let mut read = |at: usize, bytes: &mut [u8]| {
                pieces.read(at, bytes, |at, bytes| pages.read(at, bytes).is_some())
            };
            part.append(pieces.length(), &mut read, out)
        }
    };
    // P1
    if !appended || !pages.validate() {
        out.truncate(start);
        return false;
    }
    true
}

/// The pages of a chain, as far as they were visited.
struct ChainPages<'s> {
    store: &'s Store,
    space: SpaceId,
    chain: OverflowPointer,
    pages: SmallVec<[PageRef<'s>; 2]>,
    /// Lines of the first page that were read, without most repetitions.
    lines: RefMut<'s, Vec<u16>>,
}

impl<'s> ChainPages<'s> {
    /// Page number `n` of the chain.
    #[inline]
    fn page(&mut self, n: usize) -> Option<PageRef<'s>> {
        if let Some(page) = self.pages.get(n) {
            return Some(*page);
        }
        self.visit(n)
    }

    /// Visits the pages up to number `n`.
    fn visit(&mut self, n: usize) -> Option<PageRef<'s>> {
        while self.pages.len() <= n {
            let page = match self.pages.last() {
                None => self.chain.first_page,
                Some(last) => {
                    let next = last.u32(NEXT);
                    (last.validate() && next != 0).then_some(next)?
                }
            };
            let space = self.space;
            let page = self.store.read(PageId { space, page }).ok()?;
            let before = (self.pages.len() * ROOM) as u64;
            let bytes = self.chain.length.saturating_sub(before).min(ROOM as u64);
            let belongs =
                page.page_type() == PageType::OVERFLOW && page.newest_trx() == self.chain.owner;
            if !belongs || u64::from(page.u32(USED)) != bytes {
                return None;
            }
            self.pages.push(page);
        }
        self.pages.get(n).copied()
    }

    /// Reads the bytes of the chain from `at` on.
    #[inline]
    fn read(&mut self, mut at: usize, mut out: &mut [u8]) -> Option<()> {
        if at < ROOM {
            self.note_lines(at, out.len());
        }
        if out.len() <= size_of::<u64>() && at % ROOM <= ROOM - size_of::<u64>() {
            let word = self.page(at / ROOM)?.u64(DATA + at % ROOM).to_le_bytes();
            out.copy_from_slice(&word[..out.len()]);
            return Some(());
        }
        while !out.is_empty() {
            let offset = at % ROOM;
            let here = out.len().min(ROOM - offset);
            let (bytes, rest) = out.split_at_mut(here);
            self.page(at / ROOM)?.copy(DATA + offset, bytes);
            (out, at) = (rest, at + here);
        }
        Some(())
    }

    fn note_lines(&mut self, at: usize, len: usize) {
        let (first, last) = (
            (DATA + at) / LINE,
            (DATA + at + len.saturating_sub(1)) / LINE,
        );
        for line in first..=last {
            if self.lines.len() == LINES_MAX || self.lines.last() == Some(&(line as u16)) {
                return;
            }
            self.lines.push(line as u16);
        }
    }

    fn validate(&self) -> bool {
        self.pages.iter().all(PageRef::validate)
    }
}
