//! Grows and shrinks the pool while it is in use.
//!
//! # Picture
//! ```text
//!            0                count               extent                max
//!  growing   | frames in use    | ───────────────►  |  made accessible, then added to the free
//!  list
//!  shrinking | frames in use    | being withdrawn   |  only addresses, or frames that were
//!  returned
//!
//!            a frame being withdrawn:  free             set aside
//!                                      with a page      page moved below `count`, or evicted
//!                                      held by a thread set aside by `give_frame`
//! ```
//! # Invariants
//! - R1: `count` and `extent` change under the free list's mutex. Once `count` is lower, no frame
//!   from `count` on is taken from the free list. So fewer and fewer of them are in use; only those
//!   already held by a thread can still receive a page.
//! - R2: memory is returned to the system when every frame from `count` to `extent` is set aside,
//!   so no thread stores there. Readers with an old page word may still load from it, but their
//!   page's word has changed.
//! - R3: a page moves under its exclusive latch and the `cleaner` mutex, so no batch is being
//!   written, and no checkpoint is being computed.
//! # Concurrency
//! The cleaner does the work in slices, between its rounds. A reader waits for a page no longer
//! than one copy of it takes. The most recently requested size wins, at any moment.
//! # Failure
//! If the system has no memory, the pool keeps its size. If pages cannot be written, the pool
//! shrinks once they can.

use crate::core::Core;
use crate::error::StoreError;
use crate::page::PAGE_SIZE;
use nfold_sync::page_word::{frame_of, is_exclusive};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::time::SystemTime;

/// The most frames examined, and the most pages moved, by one step.
const MAX_EXAMINED: usize = 1 << 16;
const MAX_MOVES: usize = 512;

/// The number of whole frames in `bytes`, but at least 32.
pub(crate) fn frames_in(bytes: u64) -> usize {
    (bytes / PAGE_SIZE as u64).max(32) as usize
}

/// The free frames.
pub(crate) struct FreeFrames {
    pub(crate) frames: Vec<u32>,
    /// The withdrawn frames: those from `count` on.
    aside: Vec<u32>,
    count: u32,
}

impl FreeFrames {
    pub(crate) fn new(count: usize) -> FreeFrames {
        FreeFrames {
            frames: (0..count as u32).rev().collect(),
            aside: Vec::new(),
            count: count as u32,
        }
    }

    /// Returns an empty frame.
    pub(crate) fn put(&mut self, frame: u32) {
        if frame < self.count {
            self.frames.push(frame);
        } else {
            self.aside.push(frame);
        }
    }

    /// Adds new frames after all free ones, in ascending order of their use (`ready_frames::M1`).
    fn add_new(&mut self, frames: std::ops::Range<usize>) {
        let new = (frames.start as u32..frames.end as u32).rev();
        self.frames.splice(0..0, new);
    }

    /// Sorts all frames again for another count.
    fn set_count(&mut self, count: usize) {
        self.count = count as u32;
        let all = [
            std::mem::take(&mut self.aside),
            std::mem::take(&mut self.frames),
        ];
        all.into_iter().flatten().for_each(|frame| self.put(frame));
    }
}

/// The phase of a resize, with the numbers of `Innodb_buffer_pool_resize_status_code`.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum ResizePhase {
    /// No resize is in progress.
    #[default]
    Idle = 0,
    Withdrawing = 3,
    Resizing = 5,
    /// The system had no memory.
    Failed = 7,
}

/// The progress of the last resize of the pool.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ResizeStatus {
    pub phase: ResizePhase,
    /// The progress of the phase.
    pub percent: u8,
    pub from_bytes: u64,
    pub to_bytes: u64,
    /// When the resize was completed or failed. `None` if it is in progress, or if there was none.
    pub ended: Option<SystemTime>,
}

/// See the module header.
pub(crate) struct Resize {
    /// The requested number of frames.
    wanted: AtomicUsize,
    /// Where the search for pages to move continues.
    next: AtomicUsize,
    status: Mutex<ResizeStatus>,
}

impl Resize {
    pub(crate) fn new(count: usize) -> Resize {
        Resize {
            wanted: AtomicUsize::new(count),
            next: AtomicUsize::new(0),
            status: Mutex::default(),
        }
    }

    pub(crate) fn status(&self) -> ResizeStatus {
        self.status.lock().clone()
    }

    /// Records the progress of the resize to `count` frames, unless another size was requested
    /// meanwhile.
    fn record(&self, count: usize, phase: ResizePhase, percent: usize) {
        // `request_size` also changes both under this mutex.
        let mut status = self.status.lock();
        if self.wanted.load(Ordering::SeqCst) != count {
            return;
        }
        (status.phase, status.percent) = (phase, percent.min(100) as u8);
        if matches!(phase, ResizePhase::Idle | ResizePhase::Failed) {
            status.ended = Some(SystemTime::now());
        }
    }
}

impl Core {
    /// Requests another size, rounded down to whole frames, at least 32 and at most the reserved
    /// maximum. Returns that size in bytes.
    pub(crate) fn request_size(&self, bytes: u64) -> u64 {
        let wanted = frames_in(bytes).min(self.pool.frames.max());
        let mut status = self.pool.resize.status.lock();
        let before = self.pool.resize.wanted.swap(wanted, Ordering::SeqCst);
        let in_bytes = |frames: usize| (frames * PAGE_SIZE) as u64;
        if before != wanted {
            *status = ResizeStatus {
                phase: ResizePhase::Resizing,
                percent: 0,
                from_bytes: in_bytes(before),
                to_bytes: in_bytes(wanted),
                ended: None,
            };
        }
        drop(status);
        if self.threaded() {
            self.kick_cleaner();
        }
        in_bytes(wanted)
    }

    /// Whether [`resize_step`](Self::resize_step) has work to do.
    pub(crate) fn is_resizing(&self) -> bool {
        let wanted = self.pool.resize.wanted.load(Ordering::SeqCst);
        wanted != self.pool.frames.count() || wanted != self.pool.frames.extent()
    }

    /// Does one slice of the resize. Returns whether it changed anything.
    pub(crate) fn resize_step(&self) -> Result<bool, StoreError> {
        if !self.is_resizing() {
            return Ok(false);
        }
        let wanted = self.pool.resize.wanted.load(Ordering::SeqCst);
        if wanted > self.pool.frames.count() {
            self.grow_pool(wanted);
            return Ok(true);
        }
        if wanted < self.pool.frames.count() {
            let mut free = self.pool.free.lock(); // R1
            self.pool.frames.lower_count(wanted);
            free.set_count(wanted);
            drop(free);
            self.pool.probation.resize(wanted);
        }
        let moved = self.withdraw()?;
        Ok(self.finish_shrinking() || moved > 0)
    }

    fn grow_pool(&self, wanted: usize) {
        let mut free = self.pool.free.lock(); // R1
        let extent = self.pool.frames.extent();
        if !self.pool.frames.extend(wanted) {
            drop(free);
            tracing::error!("the system gives no memory for a larger buffer pool");
            let now = self.pool.frames.count();
            self.pool.resize.record(wanted, ResizePhase::Failed, 0);
            // Unless another size was requested meanwhile.
            let _ = self.pool.resize.wanted.compare_exchange(
                wanted,
                now,
                Ordering::SeqCst,
                Ordering::SeqCst,
            );
            return;
        }
        free.set_count(wanted);
        free.add_new(extent..wanted);
        drop(free);
        self.pool.probation.resize(wanted);
        self.pool.freed.bump();
        if wanted >= extent {
            self.pool.resize.record(wanted, ResizePhase::Idle, 100);
        }
    }

    /// Moves or evicts some of the pages from frame `count` on. Returns the number of pages.
    fn withdraw(&self) -> Result<usize, StoreError> {
        let (count, extent) = (self.pool.frames.count(), self.pool.frames.extent());
        let (mut moved, mut dirty) = (0, Vec::new());
        {
            let _cleaner = self.cleaning.cleaner.lock(); // R3
            let from = self.pool.resize.next.load(Ordering::Relaxed);
            let mut examined = 0;
            while examined < MAX_EXAMINED.min(extent - count)
                && moved < MAX_MOVES
                && dirty.len() < MAX_MOVES
            {
                let frame = count + (from + examined) % (extent - count);
                examined += 1;
                let frame = frame as u32;
                if self.pool.frames.page(frame).is_none() {
                    continue;
                }
                let room = self.free_count() > self.stock() / 2 || self.evict(1) > 0;
                // If there is no free frame to move the page to, the page itself is evicted.
                if (room && self.move_page(frame)) || self.try_evict(frame) {
                    moved += 1;
                } else if self.pool.frames.rec_lsn(frame) != 0 {
                    dirty.push(frame);
                }
            }
            self.pool
                .resize
                .next
                .store(from + examined, Ordering::Relaxed);
        }
        moved += self.clean_frames(&dirty)?; // A later step can evict them.
        Ok(moved)
    }

    /// Moves the page in frame `from` to a free frame. Returns false if the page is latched or no
    /// frame is free.
    fn move_page(&self, from: u32) -> bool {
        let Some(id) = self.pool.frames.page(from) else {
            return false;
        };
        let Some(space) = self.spaces.hold(id.space) else {
            return false; // The space was dropped, and its pages are about to be discarded.
        };
        let Some(word) = space.dir().get(id.page) else {
            return false;
        };
        let seen = word.load();
        if is_exclusive(seen) || frame_of(seen) != Some(from) || !word.try_latch(seen) {
            return false;
        }
        let Some(to) = self.pop_free() else {
            word.release_unchanged(seen);
            return false;
        };
        // As in `install_image`, for readers of the page that lay in `to`.
        fence(Ordering::Release);
        let (source, target) = (self.pool.frames.words(from), self.pool.frames.words(to));
        for (source, target) in source.iter().zip(target) {
            target.store(source.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        self.pool.frames.set_page(to, Some(id));
        self.pool.frames.move_state(from, to);
        word.release_moved(seen, to);
        if self.pool.frames.on_probation(to) {
            self.pool.probation.put_back(to, id);
        }
        self.give_frame(from);
        true
    }

    /// Returns the memory to the system once all frames are withdrawn (R2). Returns whether it did.
    fn finish_shrinking(&self) -> bool {
        let mut free = self.pool.free.lock(); // R1
        let going = self.pool.frames.extent() - self.pool.frames.count();
        let done = free.aside.len();
        if done < going {
            drop(free);
            let percent = done * 100 / going;
            let count = self.pool.frames.count();
            self.pool
                .resize
                .record(count, ResizePhase::Withdrawing, percent);
            return false;
        }
        free.aside = Vec::new();
        let going = self.pool.frames.lower_extent();
        // Released first, because the system takes its time for many pages, and every miss needs
        // this mutex.
        drop(free);
        self.pool
            .ready
            .withdraw(going.start, || self.pool.frames.give_back(going));
        self.pool
            .resize
            .record(self.pool.frames.count(), ResizePhase::Idle, 100);
        true
    }
}
