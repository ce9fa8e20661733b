//! The frames: the memory that contains the pages, and the state of each frame.
//!
//! # Picture
//! ```text
//! base ─► | frame 0 | frame 1 | ... | extent .. max: only reserved |   one mapping for the store's
//! life
//!
//! flat arrays beside it, one entry per frame:
//! page    [ id     ][ free    ] ...
//! rec_lsn [ 0      ][ 8128    ] ...   0: clean
//! used    [ 1      ][ 0       ] ...   the clock mark: 2 loaded for a waiter, 1 used, 0 cold
//! trial   [ 0      ][ 1       ] ...   on probation (pool/probation.rs), ignored by the clock
//! writing [ 0      ][ 1       ] ...   the page's image is being written to disk
//! ```
//! # Invariants
//! - F1: `rec_lsn` and `writing` change only under the exclusive latch of the frame's page. In
//!   addition, the flusher that set `writing` clears it, and may restore `rec_lsn`, at the end of
//!   its batch.
//! - F2: a frame whose `rec_lsn` is not 0, or that is being written, is not evicted.
//! - F3: `rec_lsn` is at most the start of the first mini-transaction whose change of the page is
//!   not on disk.
//! - F4: `count` ≤ `extent` ≤ `max`. Frames from `count` to `extent` are being withdrawn
//!   (pool/resize.rs). Frames from `extent` on contain no page. Withdrawn memory stays readable, as
//!   zeros, for readers with an old page word. A store to it ends the process.
//! # Cost
//! A reader loads one byte of `used`, and stores it only if it is clear.

use crate::page::{Lsn, PAGE_SIZE, PAGE_WORDS, PageId};
use crate::pool::flat::{Flat, Zeroable};
use nfold_sync::prim::AtomicU64;
use nfold_sync::words;
use std::ops::Range;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::*, fence};

/// The value of a free frame in `page`. Page ids are stored inverted, so that untouched memory
/// means "free".
const FREE: u64 = 0;

/// See the module header.
pub(crate) struct Frames {
    base: NonNull<[AtomicU64; PAGE_WORDS]>,
    max: usize,
    extent: AtomicUsize,
    count: AtomicUsize,
    page: Box<[AtomicU64]>,
    rec_lsn: Box<[AtomicU64]>,
    used: Flat<AtomicU8>,
    trial: Box<[AtomicU8]>,
    writing: Box<[AtomicU8]>,
    dirty: AtomicUsize,
}

// SAFETY: the mapping is owned, and its bytes are accessed only as atomics.
unsafe impl Send for Frames {}
// SAFETY: as above.
unsafe impl Sync for Frames {}

impl Frames {
    /// Maps `count` frames, and reserves addresses for `max` of them (at least `count`). `None` if
    /// the system has no memory.
    pub(crate) fn new(count: usize, max: usize, huge_pages: bool) -> Option<Frames> {
        let max = max.max(count);
        let len = max * PAGE_SIZE;
        // SAFETY: creates a private anonymous mapping; the result is checked.
        let base = unsafe {
            libc::mmap(
                null_mut(),
                len,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return None;
        }
        if huge_pages {
            // SAFETY: advice about the new mapping; failing is harmless.
            unsafe { libc::madvise(base, len, libc::MADV_HUGEPAGE) };
        }
        let frames = Frames {
            base: NonNull::new(base.cast())?,
            max,
            extent: AtomicUsize::new(0),
            count: AtomicUsize::new(0),
            page: zeroed(max),
            rec_lsn: zeroed(max),
            used: Flat::new(max, huge_pages),
            trial: zeroed(max),
            writing: zeroed(max),
            dirty: AtomicUsize::new(0),
        };
        frames.extend(count).then_some(frames)
    }

    /// The address and length in bytes of the mapping's part that is in use.
    pub(crate) fn memory(&self) -> (usize, usize) {
        (self.base.as_ptr().addr(), self.extent() * PAGE_SIZE)
    }

    /// The number of frames that the pool should have.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Acquire)
    }

    /// The end of the frames that may contain pages.
    pub(crate) fn extent(&self) -> usize {
        self.extent.load(Acquire)
    }

    /// The largest number of frames that [`extend`](Self::extend) accepts.
    pub(crate) fn max(&self) -> usize {
        self.max
    }

    /// Makes the frames below `count` usable. Returns false if the system has no memory. Only for
    /// the thread that resizes the pool.
    pub(crate) fn extend(&self, count: usize) -> bool {
        let extent = self.extent();
        debug_assert!(count <= self.max, "F4");
        if count > extent {
            if !self.protect(extent..count, libc::PROT_READ | libc::PROT_WRITE) {
                return false;
            }
            self.extent.store(count, Release);
        }
        self.count.store(count, Release);
        true
    }

    /// Lowers the number of frames that the pool should have. Only for the thread that resizes the
    /// pool.
    pub(crate) fn lower_count(&self, count: usize) {
        debug_assert!(count <= self.count(), "F4");
        self.count.store(count, Release);
    }

    /// Lowers the extent to `count`, and returns the frames above it, which must contain no pages.
    /// Only for the thread that resizes the pool.
    pub(crate) fn lower_extent(&self) -> Range<usize> {
        let (count, extent) = (self.count(), self.extent());
        debug_assert!(
            (count..extent).all(|f| self.page(f as u32).is_none()),
            "F4: withdrawn frames contain no page"
        );
        self.extent.store(count, Release);
        count..extent
    }

    /// Returns the memory of frames from [`lower_extent`](Self::lower_extent) to the system. Only
    /// for the thread that resizes the pool, and before the pool grows again.
    pub(crate) fn give_back(&self, frames: Range<usize>) {
        debug_assert!(self.extent() <= frames.start, "F4");
        if frames.is_empty() {
            return;
        }
        // A reader of a page that lay there and that sees a zero also sees that its page word has
        // changed.
        fence(SeqCst);
        // SAFETY: these are whole pages of the mapping. They stay mapped and read as zeros from now
        // on.
        unsafe {
            libc::madvise(
                self.base.as_ptr().add(frames.start).cast(),
                frames.len() * PAGE_SIZE,
                libc::MADV_DONTNEED,
            )
        };
        self.protect(frames, libc::PROT_READ);
    }

    /// Lets the system allocate memory for these frames without changing their contents, and waits
    /// for it. Returns false if the system cannot do that ahead of the first touch.
    pub(crate) fn populate_memory(&self, range: Range<usize>) -> bool {
        debug_assert!(range.end <= self.max, "F4");
        // SAFETY: these are whole pages of the mapping, and their contents stay. If stores are not
        // allowed there (returned frames), nothing happens.
        let rc = unsafe {
            let from = self.base.as_ptr().add(range.start);
            libc::madvise(
                from.cast(),
                range.len() * PAGE_SIZE,
                libc::MADV_POPULATE_WRITE,
            )
        };
        rc == 0
    }

    fn protect(&self, range: Range<usize>, how: i32) -> bool {
        // SAFETY: these are whole pages of the mapping. Access is removed only at or beyond
        // `extent`, and no thread stores there (F4).
        unsafe {
            let from = self.base.as_ptr().add(range.start);
            libc::mprotect(from.cast(), range.len() * PAGE_SIZE, how) == 0
        }
    }

    /// The contents of a frame.
    #[inline(always)]
    pub(crate) fn words(&self, frame: u32) -> &[AtomicU64; PAGE_WORDS] {
        debug_assert!(
            (frame as usize) < self.max,
            "the frame number is one of this pool"
        );
        // SAFETY: page words contain only frame numbers below `extent`, and memory that was below
        // it stays readable (F4). The mapping is aligned, initially zeroed, lives as long as
        // `self`, and is accessed only as atomics.
        unsafe { self.base.add(frame as usize).as_ref() }
    }

    /// Marks a frame as used. Stores only if the mark is clear, and returns whether it did.
    #[inline(always)]
    pub(crate) fn touch(&self, frame: u32) -> bool {
        let used = &self.used[frame as usize];
        if used.load(Relaxed) == 0 {
            used.store(1, Relaxed);
            return true;
        }
        false
    }

    /// Prefetches the mark that [`touch`](Self::touch) reads.
    #[inline(always)]
    pub(crate) fn prefetch_mark(&self, frame: u32) {
        if let Some(used) = self.used.get(frame as usize) {
            words::prefetch_line(used);
        }
    }

    pub(crate) fn set_used(&self, frame: u32, mark: u8) {
        self.used[frame as usize].store(mark, Relaxed);
    }

    pub(crate) fn set_on_probation(&self, frame: u32, trial: bool) {
        self.trial[frame as usize].store(u8::from(trial), Relaxed);
    }

    pub(crate) fn on_probation(&self, frame: u32) -> bool {
        self.trial[frame as usize].load(Relaxed) != 0
    }

    /// Lowers the clock mark by one, when the clock's hand passes. Returns the previous mark.
    pub(crate) fn cool(&self, frame: u32) -> u8 {
        let used = &self.used[frame as usize];
        let mark = used.load(Relaxed);
        if mark > 0 {
            used.store(mark - 1, Relaxed);
        }
        mark
    }

    pub(crate) fn is_cold(&self, frame: u32) -> bool {
        self.used[frame as usize].load(Relaxed) == 0
    }

    pub(crate) fn page(&self, frame: u32) -> Option<PageId> {
        match self.page[frame as usize].load(Acquire) {
            FREE => None,
            inverted => Some(PageId::unpacked(!inverted)),
        }
    }

    /// To be called before the frame is installed under a page word, or after it was removed.
    pub(crate) fn set_page(&self, frame: u32, id: Option<PageId>) {
        self.page[frame as usize].store(id.map_or(FREE, |id| !id.packed()), Release);
    }

    /// The LSN of the frame's oldest change that is not on disk; 0 if the page is clean.
    pub(crate) fn rec_lsn(&self, frame: u32) -> Lsn {
        self.rec_lsn[frame as usize].load(Acquire)
    }

    /// Marks the page as changed from LSN `start` on. The caller holds its latch.
    pub(crate) fn mark_dirty(&self, frame: u32, start: Lsn) {
        let cell = &self.rec_lsn[frame as usize];
        if cell.load(Relaxed) == 0 {
            cell.store(start, Release);
            self.dirty.fetch_add(1, Relaxed);
        }
    }

    /// Marks the page as clean, because its bytes are being written or are discarded. Returns its
    /// `rec_lsn`. The caller holds its latch.
    pub(crate) fn take_dirty(&self, frame: u32) -> Lsn {
        let rec = self.rec_lsn[frame as usize].swap(0, AcqRel);
        if rec != 0 {
            self.dirty.fetch_sub(1, Relaxed);
        }
        rec
    }

    /// Restores the `rec_lsn` that `take_dirty` returned, because the write failed (F3). The caller
    /// holds the page's latch.
    pub(crate) fn restore_dirty(&self, frame: u32, rec: Lsn) {
        if self.rec_lsn[frame as usize].swap(rec, AcqRel) == 0 {
            self.dirty.fetch_add(1, Relaxed);
        }
    }

    /// Moves the state of frame `from` to frame `to`, and marks `from` as clean. The caller has
    /// latched the page in `from`, owns `to`, and holds the `cleaner` mutex, so no thread searches
    /// for dirty pages meanwhile.
    pub(crate) fn move_state(&self, from: u32, to: u32) {
        let (from, to) = (from as usize, to as usize);
        self.used[to].store(self.used[from].load(Relaxed), Relaxed);
        self.trial[to].store(self.trial[from].load(Relaxed), Relaxed);
        debug_assert!(
            !self.is_writing(from as u32),
            "F2: the page is not being written"
        );
        let rec = self.rec_lsn[from].load(Relaxed);
        self.rec_lsn[to].store(rec, Release);
        self.rec_lsn[from].store(0, Release);
    }

    pub(crate) fn set_writing(&self, frame: u32, writing: bool) {
        self.writing[frame as usize].store(u8::from(writing), Release);
    }

    pub(crate) fn is_writing(&self, frame: u32) -> bool {
        self.writing[frame as usize].load(Acquire) != 0
    }

    pub(crate) fn dirty_count(&self) -> usize {
        self.dirty.load(Relaxed)
    }
}

/// Zeroed memory for `count` atomics. The system commits it when it is touched.
pub(crate) fn zeroed<T: Zeroable>(count: usize) -> Box<[T]> {
    // SAFETY: `T` is an atomic integer, for which all bits clear is a valid value.
    unsafe { Box::new_zeroed_slice(count).assume_init() }
}

impl Drop for Frames {
    fn drop(&mut self) {
        // SAFETY: `new` made the mapping with this length, and all references into it borrow
        // `self`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.max * PAGE_SIZE) };
    }
}
