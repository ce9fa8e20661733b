//! The pool grows and shrinks while it is used.
//!
//! # Picture
//! ```text
//!            0                count               extent                max
//!  growing   | frames in use    | ───────────────►  |  made accessible, then put on the free list
//!  shrinking | frames in use    | being withdrawn   |  addresses only, or zeros that were frames once
//!                                 free ones: set aside          pages: moved below `count`, or evicted
//!                                 in somebody's hands: set aside when they come back (`give_frame`)
//! ```
//! # Invariants
//! - R1: `count` and `extent` change under the free list's mutex. Once `count` is lower, no frame from there on leaves that list, so their number
//!   under page words and in hands only shrinks, but for those in hands that go under a page word.
//! - R2: memory goes back when every frame from `count` to `extent` is set aside: nobody stores there then. Readers with an old page word may
//!   still load from it; their page's word has changed.
//! - R3: a page moves under its exclusive latch and the `cleaner` mutex: no batch is being written, and nobody looks for the oldest change.
//! # Concurrency
//! The cleaner does the work in slices, between its rounds; a reader waits for a page no longer than one copy of it. The size asked for last
//! wins, at any moment.
//! # Failure
//! If the system gives no memory, the pool stays as large as it was. If pages cannot be written, it shrinks when they can.

use crate::core::Core;
use crate::error::StoreError;
use crate::page::PAGE_SIZE;
use nfold_sync::page_word::{frame_of, is_exclusive};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::time::SystemTime;

/// Frames looked at, and pages moved, by one step at most.
const LOOKS: usize = 1 << 16;
const MOVES: usize = 512;

/// How many whole frames `bytes` are, and no fewer than the least.
pub(crate) fn frames_in(bytes: u64) -> usize {
    (bytes / PAGE_SIZE as u64).max(32) as usize
}

/// Frames in nobody's hands.
pub(crate) struct FreeFrames {
    pub(crate) frames: Vec<u32>,
    /// From `count` on.
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

    /// An empty frame comes back.
    pub(crate) fn put(&mut self, frame: u32) {
        if frame < self.count {
            self.frames.push(frame);
        } else {
            self.aside.push(frame);
        }
    }

    /// New ones, behind all that are free already, the lowest first (`pool::ready`, M1).
    fn add_new(&mut self, frames: std::ops::Range<usize>) {
        let new = (frames.start as u32..frames.end as u32).rev();
        self.frames.splice(0..0, new);
    }

    /// Sorts all anew by another count.
    fn set_count(&mut self, count: usize) {
        self.count = count as u32;
        let all = [
            std::mem::take(&mut self.aside),
            std::mem::take(&mut self.frames),
        ];
        all.into_iter().flatten().for_each(|frame| self.put(frame));
    }
}

/// What a resize is doing, as `Innodb_buffer_pool_resize_status_code` numbers it.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum ResizePhase {
    /// Nothing; perhaps it has been done.
    #[default]
    Idle = 0,
    Withdrawing = 3,
    Resizing = 5,
    /// The system gave no memory.
    Failed = 7,
}

/// How far the last resize of the pool is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ResizeStatus {
    pub phase: ResizePhase,
    /// Of the phase.
    pub percent: u8,
    pub from_bytes: u64,
    pub to_bytes: u64,
    /// When it was done, or failed. `None`: under way, or there never was one.
    pub ended: Option<SystemTime>,
}

/// See the module's header.
pub(crate) struct Resize {
    /// Frames that the pool is to have.
    wanted: AtomicUsize,
    /// Where the search for pages to move goes on.
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

    /// Of the way to `count` frames; nothing if another size was asked for meanwhile.
    fn tell(&self, count: usize, phase: ResizePhase, percent: usize) {
        let mut status = self.status.lock(); // `ask_size` changes both under it
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
    /// Asks for another size: rounded down to whole frames, at least 32, at most what was reserved. Gives the bytes that it will be.
    pub(crate) fn ask_size(&self, bytes: u64) -> u64 {
        let wanted = frames_in(bytes).min(self.frames.max());
        let mut status = self.resize.status.lock();
        let before = self.resize.wanted.swap(wanted, Ordering::SeqCst);
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

    /// Whether there is anything for [`resize_step`](Self::resize_step) to do.
    pub(crate) fn is_resizing(&self) -> bool {
        let wanted = self.resize.wanted.load(Ordering::SeqCst);
        wanted != self.frames.count() || wanted != self.frames.extent()
    }

    /// A slice of the way to the size asked for. Gives whether it changed anything.
    pub(crate) fn resize_step(&self) -> Result<bool, StoreError> {
        if !self.is_resizing() {
            return Ok(false);
        }
        let wanted = self.resize.wanted.load(Ordering::SeqCst);
        if wanted > self.frames.count() {
            self.grow_pool(wanted);
            return Ok(true);
        }
        if wanted < self.frames.count() {
            let mut free = self.free.lock(); // R1
            self.frames.lower_count(wanted);
            free.set_count(wanted);
            drop(free);
            self.probation.resize(wanted);
        }
        let moved = self.withdraw()?;
        Ok(self.finish_shrinking() || moved > 0)
    }

    fn grow_pool(&self, wanted: usize) {
        let mut free = self.free.lock(); // R1
        let extent = self.frames.extent();
        if !self.frames.extend(wanted) {
            drop(free);
            tracing::error!("the system gives no memory for a larger buffer pool");
            let now = self.frames.count();
            self.resize.tell(wanted, ResizePhase::Failed, 0);
            // Unless another size was asked for meanwhile.
            let _ = self.resize.wanted.compare_exchange(
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
        self.probation.resize(wanted);
        self.freed.bump();
        if wanted >= extent {
            self.resize.tell(wanted, ResizePhase::Idle, 100);
        }
    }

    /// Moves or evicts some of the pages that lie from `count` on. Gives how many.
    fn withdraw(&self) -> Result<usize, StoreError> {
        let (count, extent) = (self.frames.count(), self.frames.extent());
        let (mut moved, mut dirty) = (0, Vec::new());
        {
            let _cleaner = self.cleaner.lock(); // R3
            let from = self.resize.next.load(Ordering::Relaxed);
            let mut looks = 0;
            while looks < LOOKS.min(extent - count) && moved < MOVES && dirty.len() < MOVES {
                let frame = count + (from + looks) % (extent - count);
                looks += 1;
                let frame = frame as u32;
                if self.frames.page(frame).is_none() {
                    continue;
                }
                let room = self.free_count() > self.stock() / 2 || self.evict(1) > 0;
                // Where there is no room, the page itself has to leave.
                if (room && self.move_page(frame)) || self.try_evict(frame) {
                    moved += 1;
                } else if self.frames.rec_lsn(frame) != 0 {
                    dirty.push(frame);
                }
            }
            self.resize.next.store(from + looks, Ordering::Relaxed);
        }
        moved += self.clean_frames(&dirty)?; // they can leave now
        Ok(moved)
    }

    /// Moves the page in `from` to a free frame, if it is not latched and there is one.
    fn move_page(&self, from: u32) -> bool {
        let Some(id) = self.frames.page(from) else {
            return false;
        };
        let Some(space) = self.spaces.hold(id.space) else {
            return false; // dropped: about to be forgotten
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
        fence(Ordering::Release); // as in `install_image`: readers of the page that lay in `to`
        let (source, target) = (self.frames.words(from), self.frames.words(to));
        for (source, target) in source.iter().zip(target) {
            target.store(source.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        self.frames.set_page(to, Some(id));
        self.frames.move_state(from, to);
        word.release_moved(seen, to);
        if self.frames.on_probation(to) {
            self.probation.put_back(to, id);
        }
        self.give_frame(from);
        true
    }

    /// Gives the memory back once all frames are withdrawn (R2). Whether it did.
    fn finish_shrinking(&self) -> bool {
        let mut free = self.free.lock(); // R1
        let going = self.frames.extent() - self.frames.count();
        let done = free.aside.len();
        if done < going {
            drop(free);
            let percent = done * 100 / going;
            let count = self.frames.count();
            self.resize.tell(count, ResizePhase::Withdrawing, percent);
            return false;
        }
        free.aside = Vec::new();
        let going = self.frames.lower_extent();
        drop(free); // the system takes its time over many pages, and who misses a page needs that mutex
        self.ready
            .withdraw(going.start, || self.frames.give_back(going));
        self.resize
            .tell(self.frames.count(), ResizePhase::Idle, 100);
        true
    }
}
