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
use crate::value_changes::{Pieces, StoredRun};

/// Selects the part of a column's long values that a statement needs. Values that lie in the row
/// come as a whole all the same, and so may others.
pub trait ValuePart: Debug + Send + Sync {
    /// Appends what stands for a value of `length` bytes. False: the value is needed as a whole,
    /// and `out` may have any bytes behind its end.
    fn append(&self, length: usize, bytes: &mut dyn ValueBytes, out: &mut Vec<u8>) -> bool;
}

/// The bytes of a long value where they are stored. They may be garbage (P1).
pub trait ValueBytes {
    /// The 8 bytes from `at` on, the first one lowest; those behind the end of the value are any.
    /// `None` if they cannot be read.
    fn word(&mut self, at: usize) -> Option<u64>;

    /// Appends `length` bytes from `at` on. False if they cannot be read.
    fn append(&mut self, at: usize, length: usize, out: &mut Vec<u8>) -> bool;
}

/// The table ordinal of a column, and the part of its long values that is needed.
pub type ColumnPart = (usize, Arc<dyn ValuePart>);

/// The most lines of a page that are prefetched.
const LINES_MAX: usize = 40;
const LINE: usize = 64;
const WORD: usize = size_of::<u64>();

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
    let Some(mut pages) = ChainPages::begin((store, space, last), chain, stored) else {
        return false;
    };
    let start = out.len();
    let appended = match changes {
        [] => part.append(stored, &mut pages, out),
        changes => match Pieces::of(changes, stored) {
            Some(pieces) => {
                let length = pieces.length();
                let mut value = ChangedValue {
                    pieces,
                    pages: &mut pages,
                    run: StoredRun::default(),
                };
                part.append(length, &mut value, out)
            }
            None => false,
        },
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
    /// Bytes of the value.
    stored: usize,
    first: PageRef<'s>,
    later: SmallVec<[PageRef<'s>; 2]>,
    /// Lines of the first page that were read, without most repetitions.
    lines: RefMut<'s, Vec<u16>>,
    last_line: usize,
}

impl<'s> ChainPages<'s> {
    fn begin(
        (store, space, last): (&'s Store, SpaceId, &'s LastLines),
        chain: OverflowPointer,
        stored: usize,
    ) -> Option<ChainPages<'s>> {
        let page = chain.first_page;
        let first = store.read(PageId { space, page }).ok()?;
        if !belongs(&first, chain, 0) {
            return None;
        }
        let mut lines = last.0.borrow_mut();
        lines.clear();
        Some(ChainPages {
            store,
            space,
            chain,
            stored,
            first,
            later: SmallVec::new(),
            lines,
            last_line: usize::MAX,
        })
    }

    /// Page number `n` of the chain.
    fn page(&mut self, n: usize) -> Option<PageRef<'s>> {
        let Some(later) = n.checked_sub(1) else {
            return Some(self.first);
        };
        while self.later.len() <= later {
            let last = self.later.last().unwrap_or(&self.first);
            let next = last.u32(NEXT);
            if !last.validate() || next == 0 {
                return None;
            }
            let (space, page) = (self.space, next);
            let page = self.store.read(PageId { space, page }).ok()?;
            if !belongs(&page, self.chain, self.later.len() + 1) {
                return None;
            }
            self.later.push(page);
        }
        self.later.get(later).copied()
    }

    /// Reads the bytes of the chain from `at` on.
    fn read(&mut self, mut at: usize, mut out: &mut [u8]) -> Option<()> {
        if at
            .checked_add(out.len())
            .is_none_or(|end| end > self.stored)
        {
            return None;
        }
        self.note_lines(at, out.len());
        while !out.is_empty() {
            let offset = at % ROOM;
            let here = out.len().min(ROOM - offset);
            let (bytes, rest) = out.split_at_mut(here);
            self.page(at / ROOM)?.copy(DATA + offset, bytes);
            (out, at) = (rest, at + here);
        }
        Some(())
    }

    /// The word at `at`, some of whose bytes may lie behind the end of the page or the value.
    #[inline(never)]
    fn far_word(&mut self, at: usize) -> Option<u64> {
        if at % ROOM <= ROOM - WORD {
            return Some(self.page(at / ROOM)?.u64(DATA + at % ROOM));
        }
        let mut word = [0; WORD];
        let length = WORD.min(self.stored.saturating_sub(at));
        self.read(at, &mut word[..length])?;
        Some(u64::from_le_bytes(word))
    }

    #[inline(always)]
    fn note_line(&mut self, line: usize) {
        if line != self.last_line {
            self.last_line = line;
            if self.lines.len() < LINES_MAX {
                self.lines.push(line as u16);
            }
        }
    }

    fn note_lines(&mut self, at: usize, length: usize) {
        let end = (at + length).min(ROOM);
        if at < end {
            let lines = (DATA + at) / LINE..=(DATA + end - 1) / LINE;
            lines.take(LINES_MAX).for_each(|line| self.note_line(line));
        }
    }

    fn validate(&self) -> bool {
        self.first.validate() && self.later.iter().all(PageRef::validate)
    }
}

impl ValueBytes for ChainPages<'_> {
    #[inline]
    fn word(&mut self, at: usize) -> Option<u64> {
        if at > ROOM - WORD {
            return self.far_word(at);
        }
        self.note_line((DATA + at) / LINE);
        Some(self.first.u64(DATA + at))
    }

    fn append(&mut self, mut at: usize, length: usize, out: &mut Vec<u8>) -> bool {
        let Some(end) = at.checked_add(length).filter(|end| *end <= self.stored) else {
            return false;
        };
        self.note_lines(at, length);
        while at < end {
            let offset = at % ROOM;
            let here = (end - at).min(ROOM - offset);
            let Some(page) = self.page(at / ROOM) else {
                return false;
            };
            page.append_long(DATA + offset, here, out);
            at += here;
        }
        true
    }
}

/// Whether the page is number `n` of the chain (overflow::O2).
#[inline]
fn belongs(page: &PageRef<'_>, chain: OverflowPointer, n: usize) -> bool {
    let bytes = chain.length.saturating_sub((n * ROOM) as u64);
    page.page_type() == PageType::OVERFLOW
        && page.newest_trx() == chain.owner
        && u64::from(page.u32(USED)) == bytes.min(ROOM as u64)
}

/// A value with changes since its chain was written.
struct ChangedValue<'p, 's, 'c> {
    pieces: Pieces<'c>,
    pages: &'p mut ChainPages<'s>,
    /// The bytes of the value that were last found to lie in the chain one after the other.
    run: StoredRun,
}

impl ChangedValue<'_, '_, '_> {
    fn read(&mut self, at: usize, out: &mut [u8]) -> bool {
        let pages = &mut *self.pages;
        (self.pieces).read(at, out, |at, bytes| pages.read(at, bytes).is_some())
    }

    /// Where `length` bytes of the value lie in the chain, if no change is among them.
    #[inline]
    fn stored(&mut self, at: usize, length: usize) -> Option<usize> {
        if let Some(stored) = self.run.place_of(at, length) {
            return Some(stored);
        }
        self.run = self.pieces.run_at(at)?;
        self.run.place_of(at, length)
    }
}

impl ValueBytes for ChangedValue<'_, '_, '_> {
    #[inline]
    fn word(&mut self, at: usize) -> Option<u64> {
        if let Some(stored) = self.stored(at, WORD) {
            return self.pages.word(stored);
        }
        let mut word = [0; WORD];
        let length = WORD.min(self.pieces.length().saturating_sub(at));
        let read = self.read(at, &mut word[..length]);
        read.then(|| u64::from_le_bytes(word))
    }

    fn append(&mut self, at: usize, length: usize, out: &mut Vec<u8>) -> bool {
        if length > self.pieces.length() {
            return false;
        }
        if let Some(stored) = self.stored(at, length) {
            return self.pages.append(stored, length, out);
        }
        let start = out.len();
        out.resize(start + length, 0);
        self.read(at, &mut out[start..])
    }
}
