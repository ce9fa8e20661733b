//! Frames get their memory before somebody needs them.
//!
//! The first touch of a frame makes the system find memory and clear it, 2 MiB at a time with huge pages: milliseconds, on some machines. Whoever
//! needs a frame for a new page touches it under the page's latch, and with a split under the tree's structure mutex, so everybody who comes
//! near would wait. An I/O thread does it ahead.
//!
//! # Picture
//! ```text
//! frames   0 ........... high ............ until ................ extent
//!          | given out     | have memory    | addresses only            until - high: at most AHEAD, asked for anew at a half of it
//! ```
//! # Invariants
//! - M1: frames that never held a page are given out in ascending order ([`FreeFrames`](super::resize::FreeFrames)), so that `until` runs ahead of
//!   them. Where the order is another one, memory comes at the first touch, which is slower and nothing else.
//! - M2: memory that a shrinking pool gave back does not return before the pool grows again: both happen under `bringing`.
//! # Cost
//! Whoever takes a frame does two loads. A server that uses little of its pool has at most [`Core::ahead`] frames more than it uses.

use crate::core::Core;
use crate::pool::load::Job;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// Frames that get memory by one call: a huge page.
const STEP: usize = (2 << 20) / crate::PAGE_SIZE;
/// Of the pool, one part in so many is kept ready.
const SHARE: usize = 32;
/// Frames kept ready at most: 64 MiB.
const MOST: usize = 32 * STEP;

/// See the module's header.
#[derive(Default)]
pub(crate) struct Ready {
    /// Frames below this were given out before.
    high: AtomicUsize,
    /// Frames below this have memory, or whoever touches them sees to it.
    until: AtomicUsize,
    /// A job is queued or running.
    busy: AtomicBool,
    bringing: Mutex<()>,
}

impl Ready {
    /// Frames from `count` on have lost their memory; `give_back` takes it (M2).
    pub(crate) fn withdraw(&self, count: usize, give_back: impl FnOnce()) {
        let _bringing = self.bringing.lock();
        give_back();
        self.high.fetch_min(count, Relaxed);
        self.until.fetch_min(count, Relaxed);
    }
}

impl Core {
    /// How many frames are to have memory before they are needed.
    fn ahead(&self) -> usize {
        (self.frames.count() / SHARE).clamp(1, MOST)
    }

    /// `frame` was given out.
    #[inline]
    pub(crate) fn note_given(&self, frame: u32) {
        let given = frame as usize + 1;
        if given > self.ready.high.load(Relaxed) {
            self.bring_ahead_of(given);
        }
    }

    #[cold]
    fn bring_ahead_of(&self, given: usize) {
        self.ready.high.fetch_max(given, Relaxed);
        let until = self.ready.until.load(Relaxed);
        let enough = given + self.ahead() / 2 < until || until >= self.frames.extent();
        if !enough && self.threaded() && !self.ready.busy.swap(true, Relaxed) {
            self.jobs
                .push_other(Job::Call(Box::new(Core::bring_memory)));
        }
    }

    /// On an I/O thread: memory for the frames that are given out next.
    fn bring_memory(&self) {
        while !self.stopping() {
            let Some(_bringing) = self.ready.bringing.try_lock() else {
                break; // memory is being given back: whoever needs more asks anew
            };
            let (high, until) = (
                self.ready.high.load(Relaxed),
                self.ready.until.load(Relaxed),
            );
            let from = until.max(high);
            let goal = (high + self.ahead()).min(self.frames.extent());
            if from >= goal {
                break;
            }
            let to = (from + STEP).min(self.frames.extent());
            if !self.frames.bring_memory(from..to) {
                self.ready.until.store(usize::MAX, Relaxed); // this system cannot: it comes at the first touch
                break;
            }
            self.ready.until.store(to, Relaxed);
        }
        self.ready.busy.store(false, Relaxed);
    }
}
