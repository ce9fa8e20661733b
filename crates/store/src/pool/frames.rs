//! The memory that pages lie in, and what is known about each frame.
//!
//! # Picture
//! ```text
//! base ─► | frame 0 | frame 1 | ... | extent .. max: only reserved |    one mapping, never unmapped while the store lives
//! page    [ id     ][ free    ] ...            flat arrays beside it, one entry a frame
//! rec_lsn [ 0      ][ 8128    ] ...            0: clean
//! used    [ 1      ][ 0       ] ...            the clock's mark: 2 loaded for a waiter, 1 used, 0 cold
//! trial   [ 0      ][ 1       ] ...            on probation (pool/probation.rs): not the clock's
//! writing [ 0      ][ 1       ] ...            its image is on the way to disk
//! ```
//! # Invariants
//! - I1: `rec_lsn` and `writing` change only under the exclusive latch of the frame's page; `writing` is also cleared, and `rec_lsn`
//!   lowered again, by the flusher that set it, when its batch is over.
//! - I2: a frame whose `rec_lsn` is not 0, or that is being written, is not evicted.
//! - I3: `rec_lsn` is at most the start of the first mini-transaction whose change of the page is not on disk.
//! - I4: `count` ≤ `extent` ≤ `max`. Frames from `count` to `extent` are being withdrawn (pool/resize.rs); those from `extent` on hold nothing.
//!   What was withdrawn stays readable, as zeros, for readers with an old page word; a store to it ends the process.
//! # Cost
//! A reader loads one byte of `used` and stores it only when it is clear.

use crate::page::{Lsn, PAGE_SIZE, PAGE_WORDS, PageId};
use crate::pool::flat::{Flat, Zeroable};
use nfold_sync::prim::AtomicU64;
use nfold_sync::words;
use std::ops::Range;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::*, fence};

/// In `page`, which holds a page's number inverted, so that memory nobody has touched says "free".
const FREE: u64 = 0;

/// See the module's header.
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

// SAFETY: the mapping is owned, and its bytes are only touched as atomics.
unsafe impl Send for Frames {}
// SAFETY: as above.
unsafe impl Sync for Frames {}

impl Frames {
    /// Maps `count` frames, and reserves addresses for `max` of them (at least `count`). `None` if the system gives no memory.
    pub(crate) fn new(count: usize, max: usize, huge_pages: bool) -> Option<Frames> {
        let max = max.max(count);
        let len = max * PAGE_SIZE;
        // SAFETY: a fresh private anonymous mapping; the result is checked.
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
            // SAFETY: advice about the mapping just made; failing is harmless.
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

    /// Address and length of the mapping that is in use.
    pub(crate) fn memory(&self) -> (usize, usize) {
        (self.base.as_ptr().addr(), self.extent() * PAGE_SIZE)
    }

    /// How many frames the pool is to have.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Acquire)
    }

    /// Pages lie in frames below this.
    pub(crate) fn extent(&self) -> usize {
        self.extent.load(Acquire)
    }

    /// The most that [`extend`](Self::extend) can give.
    pub(crate) fn max(&self) -> usize {
        self.max
    }

    /// Makes frames up to `count` usable. False if the system gives no memory. Only by whoever resizes the pool.
    pub(crate) fn extend(&self, count: usize) -> bool {
        let extent = self.extent();
        debug_assert!(count <= self.max, "I4");
        if count > extent {
            if !self.protect(extent..count, libc::PROT_READ | libc::PROT_WRITE) {
                return false;
            }
            self.extent.store(count, Release);
        }
        self.count.store(count, Release);
        true
    }

    /// The pool is to have fewer frames. Only by whoever resizes the pool.
    pub(crate) fn lower_count(&self, count: usize) {
        debug_assert!(count <= self.count(), "I4");
        self.count.store(count, Release);
    }

    /// Frames from `count` on are not part of the pool any more: no page lies there. Gives them. Only by whoever resizes the pool.
    pub(crate) fn lower_extent(&self) -> Range<usize> {
        let (count, extent) = (self.count(), self.extent());
        debug_assert!(
            (count..extent).all(|f| self.page(f as u32).is_none()),
            "I4: withdrawn frames hold nothing"
        );
        self.extent.store(count, Release);
        count..extent
    }

    /// Gives the memory of [such](Self::lower_extent) frames back to the system. Only by whoever resizes the pool, before it grows again.
    pub(crate) fn give_back(&self, frames: Range<usize>) {
        debug_assert!(self.extent() <= frames.start, "I4");
        if frames.is_empty() {
            return;
        }
        // A reader of a page that lay there, and that sees a zero, sees that page's word changed.
        fence(SeqCst);
        // SAFETY: whole pages of the mapping; they stay mapped, and read as zeros from now on.
        unsafe {
            libc::madvise(
                self.base.as_ptr().add(frames.start).cast(),
                frames.len() * PAGE_SIZE,
                libc::MADV_DONTNEED,
            )
        };
        self.protect(frames, libc::PROT_READ);
    }

    /// Has the system find memory for these frames, whatever they hold; waits for it. False if it cannot do that ahead of the first touch.
    pub(crate) fn bring_memory(&self, range: Range<usize>) -> bool {
        debug_assert!(range.end <= self.max, "I4");
        // SAFETY: whole pages of the mapping; what they hold stays. Where stores are not allowed (frames that were given back), nothing happens.
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
        // SAFETY: whole pages of the mapping. Nobody stores into frames at or beyond `extent` (I4), which is where access is taken away.
        unsafe {
            let from = self.base.as_ptr().add(range.start);
            libc::mprotect(from.cast(), range.len() * PAGE_SIZE, how) == 0
        }
    }

    /// The bytes of a frame.
    #[inline(always)]
    pub(crate) fn words(&self, frame: u32) -> &[AtomicU64; PAGE_WORDS] {
        debug_assert!(
            (frame as usize) < self.max,
            "page words name frames of this pool"
        );
        // SAFETY: only frame numbers below `extent` are ever put into page words, and what was below it stays readable (I4); the
        // mapping is aligned, zeroed at the start, lives as long as `self`, and is only accessed as atomics.
        unsafe { self.base.add(frame as usize).as_ref() }
    }

    /// Marks a frame as used, storing only when the mark is clear. True if it had to store.
    #[inline(always)]
    pub(crate) fn touch(&self, frame: u32) -> bool {
        let used = &self.used[frame as usize];
        if used.load(Relaxed) == 0 {
            used.store(1, Relaxed);
            return true;
        }
        false
    }

    /// Asks the CPU for what [`touch`](Self::touch) looks at.
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

    /// The clock passes: lowers the mark by one. Gives the mark before.
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

    /// Before the frame is installed under a page word, or after it was taken out.
    pub(crate) fn set_page(&self, frame: u32, id: Option<PageId>) {
        self.page[frame as usize].store(id.map_or(FREE, |id| !id.packed()), Release);
    }

    /// 0: clean.
    pub(crate) fn rec_lsn(&self, frame: u32) -> Lsn {
        self.rec_lsn[frame as usize].load(Acquire)
    }

    /// Under the page's latch: the page changes from `start` on.
    pub(crate) fn mark_dirty(&self, frame: u32, start: Lsn) {
        let cell = &self.rec_lsn[frame as usize];
        if cell.load(Relaxed) == 0 {
            cell.store(start, Release);
            self.dirty.fetch_add(1, Relaxed);
        }
    }

    /// Under the page's latch: its present bytes are on their way to disk, or given up. Gives the `rec_lsn` it had.
    pub(crate) fn take_dirty(&self, frame: u32) -> Lsn {
        let rec = self.rec_lsn[frame as usize].swap(0, AcqRel);
        if rec != 0 {
            self.dirty.fetch_sub(1, Relaxed);
        }
        rec
    }

    /// Under the page's latch: the write that `take_dirty` was for failed; the page is as old as `rec` again (I3).
    pub(crate) fn restore_dirty(&self, frame: u32, rec: Lsn) {
        if self.rec_lsn[frame as usize].swap(rec, AcqRel) == 0 {
            self.dirty.fetch_add(1, Relaxed);
        }
    }

    /// Both pages latched, or the second frame in the caller's hands: `to` is to the clock and to the cleaner what `from` was, and `from` is
    /// clean. Under the `cleaner` mutex, so that nobody looks for dirty pages between the two.
    pub(crate) fn move_state(&self, from: u32, to: u32) {
        let (from, to) = (from as usize, to as usize);
        self.used[to].store(self.used[from].load(Relaxed), Relaxed);
        self.trial[to].store(self.trial[from].load(Relaxed), Relaxed);
        debug_assert!(!self.is_writing(from as u32), "I2: not while it is written");
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

/// Zeroed memory for `count` atomics, which the system gives when it is touched.
pub(crate) fn zeroed<T: Zeroable>(count: usize) -> Box<[T]> {
    // SAFETY: `T` is an atomic integer, for which all bits clear is a value.
    unsafe { Box::new_zeroed_slice(count).assume_init() }
}

impl Drop for Frames {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `new` with this length, and all references borrow `self`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.max * PAGE_SIZE) };
    }
}
