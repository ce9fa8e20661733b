//! Populates frames with memory before they are needed.
//!
//! At the first touch of a frame, the operating system allocates and clears memory for it, with
//! huge pages 2 MiB at a time. That takes milliseconds on some machines. A frame for a new page is
//! touched under the page's latch, and during a split also under the tree's structure mutex. Other
//! threads would wait for these locks meanwhile. So an I/O thread touches frames ahead of time.
//!
//! # Picture
//! ```text
//! frames   0 ........... high ............ until ................ extent
//!          | handed out  | have memory    | only reserved addresses
//!
//! until - high is at most `ahead`; more is requested when it falls to half of that
//! ```
//! # Invariants
//! - M1: frames that never contained a page are handed out in ascending order
//!   ([`FreeFrames`](super::resize::FreeFrames)), so `until` stays ahead of them. In any other
//!   order, memory is allocated at the first touch, which is only slower.
//! - M2: memory that a shrinking pool returned to the system is not populated again before the pool
//!   grows: both steps hold the mutex `populating`.
//! # Cost
//! Taking a frame costs two loads. A server that uses little of its pool has at most
//! [`Core::ahead`] more frames in memory than it uses.

use crate::core::Core;
use crate::page_load::Job;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// The frames populated by one call: one huge page.
const STEP: usize = (2 << 20) / crate::PAGE_SIZE;
/// The share of the pool that is kept populated ahead: 1 / `SHARE`.
const SHARE: usize = 32;
/// The most frames that are populated ahead: 64 MiB.
const MAX_AHEAD: usize = 32 * STEP;

/// See the module header.
#[derive(Default)]
pub(crate) struct Ready {
    /// Frames below this were handed out before.
    high: AtomicUsize,
    /// Frames below this have memory. `usize::MAX` if the system cannot populate memory ahead of
    /// time.
    until: AtomicUsize,
    /// Whether a populating job is queued or running.
    busy: AtomicBool,
    populating: Mutex<()>,
}

impl Ready {
    /// Returns the memory of the frames from `count` on to the system, by calling `give_back` (M2).
    pub(crate) fn withdraw(&self, count: usize, give_back: impl FnOnce()) {
        let _populating = self.populating.lock();
        give_back();
        self.high.fetch_min(count, Relaxed);
        self.until.fetch_min(count, Relaxed);
    }
}

impl Core {
    /// The number of frames that should have memory before they are needed.
    fn ahead(&self) -> usize {
        (self.pool.frames.count() / SHARE).clamp(1, MAX_AHEAD)
    }

    /// Called when `frame` is handed out. Queues a populating job if few populated frames are left.
    #[inline]
    pub(crate) fn note_handed_out(&self, frame: u32) {
        let handed_out = frame as usize + 1;
        if handed_out > self.pool.ready.high.load(Relaxed) {
            self.populate_ahead_of(handed_out);
        }
    }

    #[cold]
    fn populate_ahead_of(&self, handed_out: usize) {
        self.pool.ready.high.fetch_max(handed_out, Relaxed);
        let until = self.pool.ready.until.load(Relaxed);
        let enough = handed_out + self.ahead() / 2 < until || until >= self.pool.frames.extent();
        if !enough && self.threaded() && !self.pool.ready.busy.swap(true, Relaxed) {
            self.io
                .jobs
                .push_other(Job::Call(Box::new(Core::populate_memory)));
        }
    }

    /// The populating job of an I/O thread: populates the frames that will be handed out next.
    fn populate_memory(&self) {
        while !self.stopping() {
            let Some(_populating) = self.pool.ready.populating.try_lock() else {
                break; // The pool is shrinking. The next frame handed out starts a new job.
            };
            let (high, until) = (
                self.pool.ready.high.load(Relaxed),
                self.pool.ready.until.load(Relaxed),
            );
            let from = until.max(high);
            let goal = (high + self.ahead()).min(self.pool.frames.extent());
            if from >= goal {
                break;
            }
            let to = (from + STEP).min(self.pool.frames.extent());
            if !self.pool.frames.populate_memory(from..to) {
                // Not supported by this system, so memory is allocated at the first touch.
                self.pool.ready.until.store(usize::MAX, Relaxed);
                break;
            }
            self.pool.ready.until.store(to, Relaxed);
        }
        self.pool.ready.busy.store(false, Relaxed);
    }
}
