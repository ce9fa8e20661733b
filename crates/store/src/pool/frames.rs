//! The memory that pages lie in, and what is known about each frame.
//!
//! # Picture
//! ```text
//! base ─► | frame 0 | frame 1 | ...            one mapping, never unmapped while the store lives, 16 KiB each
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
//! # Cost
//! A reader loads one byte of `used` and stores it only when it is clear.

use crate::page::{Lsn, PAGE_SIZE, PAGE_WORDS, PageId};
use nfold_sync::prim::AtomicU64;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::*};

const FREE: u64 = u64::MAX;

/// See the module's header.
pub(crate) struct Frames {
    base: NonNull<[AtomicU64; PAGE_WORDS]>,
    count: usize,
    page: Box<[AtomicU64]>,
    rec_lsn: Box<[AtomicU64]>,
    used: Box<[AtomicU8]>,
    trial: Box<[AtomicU8]>,
    writing: Box<[AtomicU8]>,
    dirty: AtomicUsize,
}

// SAFETY: the mapping is owned, and its bytes are only touched as atomics.
unsafe impl Send for Frames {}
// SAFETY: as above.
unsafe impl Sync for Frames {}

impl Frames {
    /// Maps `count` frames. `None` if the system gives no memory.
    pub(crate) fn new(count: usize, huge_pages: bool) -> Option<Frames> {
        let len = count * PAGE_SIZE;
        // SAFETY: a fresh private anonymous mapping; the result is checked.
        let base = unsafe {
            libc::mmap(
                null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
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
        Some(Frames {
            base: NonNull::new(base.cast())?,
            count,
            page: (0..count).map(|_| AtomicU64::new(FREE)).collect(),
            rec_lsn: (0..count).map(|_| AtomicU64::new(0)).collect(),
            used: (0..count).map(|_| AtomicU8::new(0)).collect(),
            trial: (0..count).map(|_| AtomicU8::new(0)).collect(),
            writing: (0..count).map(|_| AtomicU8::new(0)).collect(),
            dirty: AtomicUsize::new(0),
        })
    }

    /// Address and length of the mapping.
    pub(crate) fn memory(&self) -> (usize, usize) {
        (self.base.as_ptr().addr(), self.count * PAGE_SIZE)
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The bytes of a frame.
    #[inline(always)]
    pub(crate) fn words(&self, frame: u32) -> &[AtomicU64; PAGE_WORDS] {
        debug_assert!(
            (frame as usize) < self.count,
            "page words name frames of this pool"
        );
        // SAFETY: only frame numbers below `count` are ever put into page words; the mapping is aligned, zeroed at
        // the start, lives as long as `self`, and is only accessed as atomics.
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
            packed => Some(PageId::unpacked(packed)),
        }
    }

    /// Before the frame is installed under a page word, or after it was taken out.
    pub(crate) fn set_page(&self, frame: u32, id: Option<PageId>) {
        self.page[frame as usize].store(id.map_or(FREE, PageId::packed), Release);
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

impl Drop for Frames {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `new` with this length, and all references borrow `self`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.count * PAGE_SIZE) };
    }
}
