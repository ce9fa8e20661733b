//! The page cleaner: writes dirty pages in batches, and takes checkpoints.
//!
//! # Picture
//! ```text
//! choose dirty frames
//!   → copy each image; its rec_lsn becomes 0 and "writing" is set
//!   → log durable up to the newest LSN
//!   → doublewrite, sync → pages in place, sync → "writing" cleared
//!   → (sometimes) checkpoint
//! ```
//! # Invariants
//! - I1: one batch is written at a time: the `cleaner` mutex is held from the copy to the last
//!   sync. A checkpoint is computed under the same mutex, so no page is between "copied" and "on
//!   disk" then. I/O threads never lock this mutex, because reads would wait for a batch. So the
//!   pages of a dropped space are discarded even while a batch is being written (`Core::discard`).
//! - I2: write-ahead logging: the log is durable up to the LSN of each image before the image is
//!   written anywhere.
//! - I3: the checkpoint is the horizon, which is loaded *first*, or the smallest `rec_lsn` found
//!   afterwards, if that is lower. A mini-transaction below the horizon set the `rec_lsn` of its
//!   pages before it marked its range, so this scan cannot miss it. One above the horizon starts
//!   above the checkpoint.
//! - I4: page writing is paced. Each round advances the oldest change by the amount of log produced
//!   since the last round, times a factor that grows with the log's age: 0 up to a quarter of the
//!   usable log, 1 at a half, 2 at three quarters. So the age stabilizes, checkpoints advance, and
//!   writers run out of log only if the disk cannot keep up. Until the log is three quarters full,
//!   a round writes no more than the upper I/O capacity allows.
//! - I5: a thread that waits for a frame during page writing waits for one batch, not for all: the
//!   free list is refilled after each batch.
//! # Failure
//! A failed page write makes the batch's pages dirty again, with their old `rec_lsn`. A failed sync
//! ends the process.

use crate::buf::AlignedBuf;
use crate::core::{Core, Count};
use crate::doublewrite::{BATCH, Doublewrite, HEADER};
use crate::error::StoreError;
use crate::options::StoreOptions;
use crate::page::{Lsn, PAGE_SIZE, PageId, image_lsn, seal};
use crate::space::HeldSpace;
use nfold_sync::page_word::{frame_of, is_exclusive};
use nfold_sync::planted::{self, Bug};
use nfold_sync::words;
use parking_lot::{Mutex, MutexGuard};
use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// The interval of background rounds when the cleaner is not woken.
const ROUND: Duration = Duration::from_millis(1000 / ROUNDS_A_SECOND as u64);
const ROUNDS_A_SECOND: usize = 10;
/// The pages written between two checkpoints when log space is short.
const SLICE: usize = 8 * BATCH;
/// The number of threads that sync a batch's files, and write it in place where no system call
/// writes many pages, when background threads run.
const WRITERS: usize = 4;
/// The longest interval between checkpoints while there is new log.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(5);

/// The state of the page cleaner, with the batch being written.
pub(crate) struct Cleaner {
    doublewrite: Option<Doublewrite>,
    /// Room for the header of the doublewrite file, followed by the images.
    buf: AlignedBuf,
    checkpointed_at: Instant,
    /// The time of the last paced round, and the horizon at that time.
    paced_at: Instant,
    paced_to: Lsn,
}

/// The page cleaner's part of [`Core`].
pub(crate) struct Cleaning {
    pub(crate) cleaner: Mutex<Cleaner>,
    pub(crate) io_capacity: IoCapacity,
    thread: OnceLock<Thread>,
    /// Whether the thread was woken and has not begun its round yet.
    kicked: AtomicBool,
}

impl Cleaning {
    pub(crate) fn new(cleaner: Cleaner, options: &StoreOptions) -> Cleaning {
        Cleaning {
            cleaner: Mutex::new(cleaner),
            io_capacity: IoCapacity::new(options.io_capacity, options.io_capacity_max),
            thread: OnceLock::new(),
            kicked: AtomicBool::new(false),
        }
    }

    /// Wakes the cleaner's thread, if it runs, for a round at once.
    pub(crate) fn kick(&self) {
        if !self.kicked.swap(true, Ordering::SeqCst)
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
    }
}

struct Item {
    frame: u32,
    id: PageId,
    space: HeldSpace,
    rec: Lsn,
}

impl Item {
    /// Whether this page follows `other` in the same file.
    fn follows(&self, other: &Item) -> bool {
        self.id.space == other.id.space && self.id.page == other.id.page + 1
    }
}

/// The I/O capacity in page writes per second: the target rate, and the highest rate under
/// pressure. May be changed at any time.
pub(crate) struct IoCapacity {
    low: AtomicU32,
    high: AtomicU32,
}

impl IoCapacity {
    pub(crate) fn new(low: u32, high: u32) -> IoCapacity {
        IoCapacity {
            low: AtomicU32::new(low),
            high: AtomicU32::new(high),
        }
    }

    pub(crate) fn set(&self, low: u32, high: u32) {
        self.low.store(low, Ordering::Relaxed);
        self.high.store(high, Ordering::Relaxed);
    }

    /// (Target rate, highest rate) in pages per second. The latter is at least the former.
    pub(crate) fn get(&self) -> (usize, usize) {
        let low = self.low.load(Ordering::Relaxed) as usize;
        (low, low.max(self.high.load(Ordering::Relaxed) as usize))
    }

    /// The same per round; at least one page.
    fn of_a_round(&self) -> (usize, usize) {
        let (low, high) = self.get();
        (
            (low / ROUNDS_A_SECOND).max(1),
            (high / ROUNDS_A_SECOND).max(1),
        )
    }
}

/// The number of pages to write in one round when `dirty` of `count` pages are dirty: none up to a
/// tenth, a share of the lower capacity up to a half, then increasingly more up to the upper
/// capacity at three quarters. Above that, [`Core::clean_round`] writes without a limit.
fn due(dirty: usize, count: usize, (low, high): (usize, usize)) -> usize {
    if dirty * 10 <= count {
        0
    } else if dirty * 2 <= count {
        (low * 2 * dirty).div_ceil(count)
    } else {
        low + ((high - low) * (4 * dirty - 2 * count) / count).min(high - low)
    }
}

impl Cleaner {
    pub(crate) fn new(doublewrite: Option<Doublewrite>) -> Cleaner {
        Cleaner {
            doublewrite,
            buf: AlignedBuf::new(HEADER + BATCH * PAGE_SIZE),
            checkpointed_at: Instant::now(),
            paced_at: Instant::now(),
            paced_to: 0,
        }
    }
}

impl Core {
    /// The frames whose `rec_lsn` is below `below`. If there are more than `limit`, the oldest
    /// ones.
    fn dirty_frames(&self, below: Lsn, limit: usize) -> Vec<u32> {
        let mut found: Vec<(Lsn, u32)> = (0..self.pool.frames.extent() as u32)
            .map(|f| (self.pool.frames.rec_lsn(f), f))
            .filter(|(rec, _)| *rec != 0 && *rec < below)
            .collect();
        if found.len() > limit {
            found.select_nth_unstable(limit);
            found.truncate(limit);
        }
        found.into_iter().map(|(_, f)| f).collect()
    }

    /// Writes the `limit` oldest dirty pages, and returns the number written.
    pub(crate) fn clean_some(&self, limit: usize) -> Result<usize, StoreError> {
        let mut cleaner = self.cleaning.cleaner.lock();
        self.flush(&mut cleaner, &self.dirty_frames(Lsn::MAX, limit))
    }

    /// Writes those of `frames` that are dirty, and returns the number written.
    pub(crate) fn clean_frames(&self, frames: &[u32]) -> Result<usize, StoreError> {
        let mut cleaner = self.cleaning.cleaner.lock();
        self.flush(&mut cleaner, frames)
    }

    /// Writes the `limit` oldest pages with changes from before `below`, records a checkpoint, and
    /// returns the number of pages written.
    pub(crate) fn clean_below(&self, below: Lsn, limit: usize) -> Result<usize, StoreError> {
        let mut cleaner = self.cleaning.cleaner.lock();
        let n = self.flush(&mut cleaner, &self.dirty_frames(below, limit))?;
        self.record_checkpoint(&mut cleaner);
        Ok(n)
    }

    /// Writes every page that is dirty now, and records a checkpoint. A page that is latched all
    /// the time is skipped after some attempts.
    pub(crate) fn checkpoint_now(&self) -> Result<Lsn, StoreError> {
        let below = self.log.horizon();
        let mut cleaner = self.cleaning.cleaner.lock();
        for turn in 0..100 {
            let frames = self.dirty_frames(below, usize::MAX);
            if frames.is_empty() {
                break;
            }
            self.flush(&mut cleaner, &frames)?;
            if turn > 10 {
                std::thread::sleep(Duration::from_micros(100));
            }
        }
        Ok(self.record_checkpoint(&mut cleaner))
    }

    /// Writes all dirty pages without recording a checkpoint. For recovery.
    pub(crate) fn flush_everything(&self) -> Result<(), StoreError> {
        let mut cleaner = self.cleaning.cleaner.lock();
        let frames = self.dirty_frames(Lsn::MAX, usize::MAX);
        self.flush(&mut cleaner, &frames)?;
        debug_assert!(
            self.pool.frames.dirty_count() == 0,
            "during recovery, no other thread latches or changes pages"
        );
        Ok(())
    }

    fn record_checkpoint(&self, cleaner: &mut MutexGuard<'_, Cleaner>) -> Lsn {
        let horizon = self.log.horizon(); // I3: first
        fence(Ordering::SeqCst);
        let mut lsn = self.oldest_change(horizon);
        if let Some(floor) = self.attachments.floor() {
            lsn = lsn.min(floor);
        }
        if planted::is(Bug::WrongCheckpoint) {
            lsn = horizon;
        }
        cleaner.checkpointed_at = Instant::now();
        if lsn > self.log.checkpoint() {
            self.log.sync_to(lsn);
            self.update_control(|c| c.checkpoint = lsn);
            self.log.set_checkpoint(lsn);
        }
        self.log.checkpoint()
    }

    /// Writes the images of those `frames` that are dirty and not latched, and returns the number
    /// written.
    fn flush(
        &self,
        cleaner: &mut MutexGuard<'_, Cleaner>,
        frames: &[u32],
    ) -> Result<usize, StoreError> {
        let mut order: Vec<(PageId, u32)> = frames
            .iter()
            .filter_map(|f| Some((self.pool.frames.page(*f)?, *f)))
            .collect();
        order.sort_unstable();
        let mut written = 0;
        for part in order.chunks(BATCH) {
            let cleaner = &mut **cleaner;
            let mut batch = Vec::with_capacity(part.len());
            let mut newest = 0;
            for (_, frame) in part {
                let at = HEADER + batch.len() * PAGE_SIZE;
                let image = &mut cleaner.buf[at..at + PAGE_SIZE];
                if let Some(item) = self.take_image(*frame, image) {
                    newest = newest.max(image_lsn(image));
                    seal(image);
                    batch.push(item);
                }
            }
            if batch.is_empty() {
                continue;
            }
            self.log.sync_to(newest); // I2
            let result = self.write_batch(cleaner, &batch);
            self.end_batch(&batch, result.is_err());
            result?;
            written += batch.len();
            if self.threaded() {
                self.evict_short(); // I5
            }
        }
        self.counters
            .add(Count::PagesWritten as usize, written as u64);
        Ok(written)
    }

    /// Copies the image of a dirty page, and marks the page as clean and being written. `None` if
    /// the page is clean, latched, or no longer in the frame.
    fn take_image(&self, frame: u32, image: &mut [u8]) -> Option<Item> {
        let id = self.pool.frames.page(frame)?;
        let space = self.spaces.hold(id.space)?;
        let word = space.dir().get(id.page)?;
        let bytes = self.pool.frames.words(frame);
        for turn in 0.. {
            let seen = word.load();
            if frame_of(seen) != Some(frame) || is_exclusive(seen) {
                return None;
            }
            // The copy is made without a latch, so that readers and writers can continue. A page
            // that keeps changing is copied under its latch.
            let copied = turn < 3;
            if copied {
                words::copy_page(bytes, image);
                if !word.validate(seen) {
                    continue;
                }
            }
            if !word.try_latch(seen) {
                continue;
            }
            if !copied {
                words::copy_page(bytes, image);
            }
            let rec = self.pool.frames.take_dirty(frame);
            self.pool.frames.set_writing(frame, rec != 0);
            word.release_unchanged(seen);
            if rec == 0 {
                return None;
            }
            return Some(Item {
                frame,
                id,
                space,
                rec,
            });
        }
        None
    }

    fn write_batch(&self, cleaner: &mut Cleaner, batch: &[Item]) -> Result<(), StoreError> {
        if let Some(doublewrite) = &mut cleaner.doublewrite {
            let ids: Vec<PageId> = batch.iter().map(|i| i.id).collect();
            doublewrite.write(&ids, &mut cleaner.buf)?;
            if let Err(e) = doublewrite.sync() {
                self.die(&format!(
                    "a sync failed, and what is on disk is unknown: {e}"
                ));
            }
        }
        self.write_pages(batch, &cleaner.buf[HEADER..])?;
        let mut spaces: Vec<&Item> = batch.iter().collect();
        spaces.dedup_by_key(|item| item.id.space);
        let synced = self.in_parallel(&spaces, |Item { space, .. }| match space.file() {
            Ok(file) => file.sync_data().map_err(|e| space.error(&e, "sync")),
            Err(_) => Ok(()),
        });
        if let Err(e) = synced {
            self.die(&format!(
                "a sync failed, and what is on disk is unknown: {e}"
            ));
        }
        Ok(())
    }

    /// Writes the images of a batch, which lie in `images` one after the other, to their pages.
    fn write_pages(&self, batch: &[Item], images: &[u8]) -> Result<(), StoreError> {
        let bytes =
            |run: &[Item], from: usize| &images[from * PAGE_SIZE..][..run.len() * PAGE_SIZE];
        let mut from = 0;
        let mut result = Ok(());
        for pages in batch.chunk_by(|a, b| a.id.space == b.id.space) {
            let space = &pages[0].space;
            // Pages that are adjacent in the file are adjacent in the buffer: one write suffices.
            let mut writes = Vec::new();
            for run in pages.chunk_by(|a, b| b.follows(a)) {
                let offset = u64::from(run[0].id.page) * PAGE_SIZE as u64;
                writes.push((offset, bytes(run, from)));
                from += run.len();
            }
            let Ok(file) = space.file() else {
                continue; // The space was dropped meanwhile.
            };
            let error = |e| space.error(&e, "write");
            let written = match file.write_many(&writes) {
                Some(written) => written.map_err(error),
                None => self.in_parallel(&writes, |(offset, bytes)| {
                    file.write_at(*offset, bytes).map_err(error)
                }),
            };
            if let (Ok(()), Some(last)) = (&written, pages.last()) {
                let end = last.id.page + 1;
                space.file_pages.fetch_max(end, Ordering::AcqRel);
            }
            result = result.and(written);
        }
        result
    }

    /// Calls `f` for all of `work`, on several threads if there is enough work. Inline mode keeps
    /// the order. Returns the first error, but tries all items.
    fn in_parallel<T: Sync>(
        &self,
        work: &[T],
        f: impl Fn(&T) -> Result<(), StoreError> + Sync,
    ) -> Result<(), StoreError> {
        let all = |part: &[T]| part.iter().map(&f).fold(Ok(()), Result::and);
        if self.options.io_threads == 0 || work.len() < WRITERS {
            return all(work);
        }
        std::thread::scope(|scope| {
            let mut parts = work.chunks(work.len().div_ceil(WRITERS));
            let own = parts.next().unwrap_or_default();
            let others: Vec<_> = parts.map(|part| scope.spawn(|| all(part))).collect();
            let mut result = all(own);
            for other in others {
                result = result.and(other.join().unwrap_or_else(|e| resume_unwind(e)));
            }
            result
        })
    }

    fn end_batch(&self, batch: &[Item], failed: bool) {
        for item in batch {
            // The page is still in its frame, because a frame that is being written is not evicted,
            // unless its space was dropped.
            let word = item.space.dir().get(item.id.page).filter(|_| failed);
            let latched = word.and_then(|word| Some((word, word.latch_resident()?)));
            if let Some((_, before)) = latched
                && frame_of(before) == Some(item.frame)
            {
                self.pool.frames.restore_dirty(item.frame, item.rec);
            }
            self.pool.frames.set_writing(item.frame, false);
            if let Some((word, before)) = latched {
                word.release_unchanged(before);
            }
        }
    }

    /// Does one round of background work. Returns whether there was any.
    pub(crate) fn clean_round(&self) -> Result<bool, StoreError> {
        let mut busy = self.stock_up()?;
        if self.resize_step()? {
            busy = true;
            // No pause before the next slice.
            self.cleaning.kicked.store(true, Ordering::SeqCst);
        }
        let count = self.pool.frames.count();
        while self.pool.frames.dirty_count() > count * 3 / 4 && !self.stopping() {
            if self.clean_some(SLICE.min(count / 4))? == 0 {
                break;
            }
            busy = true;
        }
        let usable = self.log.usable();
        // In slices, so that threads waiting for log space can continue as soon as there is some.
        while self.log.age() > usable / 4 * 3 && !self.stopping() {
            let below = self.log.checkpoint() + self.log.age() / 4;
            if self.clean_below(below, SLICE)? == 0 {
                break;
            }
            busy = true;
        }
        let mut cleaner = self.cleaning.cleaner.lock();
        if !self.threaded() || cleaner.paced_at.elapsed() >= ROUND {
            busy |= self.clean_paced(&mut cleaner)? > 0;
        }
        let moved = self.log.horizon() > self.log.checkpoint();
        // Inline mode ignores the clock, so that a simulation can be replayed exactly.
        let is_due = !self.threaded() || cleaner.checkpointed_at.elapsed() > CHECKPOINT_EVERY;
        if moved && (is_due || self.log.age() > usable / 4) {
            self.record_checkpoint(&mut cleaner);
        }
        Ok(busy)
    }

    /// Writes the pages that this round must write to keep pace with the log (I4), and then those
    /// [`due`] because of the share of dirty pages.
    fn clean_paced(&self, cleaner: &mut MutexGuard<'_, Cleaner>) -> Result<usize, StoreError> {
        let horizon = self.log.horizon();
        let produced = horizon - cleaner.paced_to.clamp(self.log.checkpoint(), horizon);
        (cleaner.paced_to, cleaner.paced_at) = (horizon, Instant::now());
        let (age, usable) = (self.log.age(), self.log.usable());
        let (low, high) = self.cleaning.io_capacity.of_a_round();
        let factor = (4.0 * age as f64 / usable as f64 - 1.0).max(0.0);
        let mut written = 0;
        if factor > 0.0 {
            let oldest = self.oldest_change(horizon);
            let below = oldest + (produced as f64 * factor) as Lsn;
            written = self.flush(cleaner, &self.dirty_frames(below, high))?;
        }
        let (dirty, count) = (self.pool.frames.dirty_count(), self.pool.frames.count());
        let share = due(dirty, count, (low, high)).saturating_sub(written);
        if share > 0 {
            written += self.flush(cleaner, &self.dirty_frames(Lsn::MAX, share))?;
        }
        Ok(written)
    }

    /// The smallest `rec_lsn` of all dirty pages, or `horizon` if no page is dirty.
    fn oldest_change(&self, horizon: Lsn) -> Lsn {
        (0..self.pool.frames.extent() as u32)
            .map(|f| self.pool.frames.rec_lsn(f))
            .filter(|rec| *rec != 0)
            .fold(horizon, Lsn::min)
    }

    /// Refills the free list by eviction. If the cold pages are dirty, they are written first.
    fn stock_up(&self) -> Result<bool, StoreError> {
        let (short, evicted) = self.evict_short();
        if short == 0 {
            return Ok(false);
        }
        if evicted < short {
            let cold = self.cold_dirty_frames((2 * short).max(BATCH));
            if !cold.is_empty() {
                self.clean_frames(&cold)?;
                self.evict(short - evicted);
            }
        }
        Ok(true)
    }

    /// Refills the free list by evicting clean pages. Returns (missing frames, evicted frames).
    fn evict_short(&self) -> (usize, usize) {
        let short = self.stock().saturating_sub(self.free_count());
        let mut evicted = 0;
        // Each turn clears clock marks, so that more pages become cold. Further turns are taken
        // only if no frame is free at all, because then threads are waiting.
        for turn in 0..3 {
            if short > 0 && (turn == 0 || (evicted == 0 && self.free_count() == 0)) {
                evicted += self.evict(short);
            }
        }
        (short, evicted)
    }

    /// The body of the cleaner thread.
    pub(crate) fn run_cleaner(&self) {
        let _ = self.cleaning.thread.set(std::thread::current());
        let mut failing = false;
        while !self.stopping() {
            self.cleaning.kicked.store(false, Ordering::SeqCst);
            match self.clean_round() {
                Ok(_) => failing = false,
                Err(e) => {
                    if !failing {
                        tracing::error!("writing pages failed, will be tried again: {e}");
                    }
                    failing = true;
                }
            }
            if failing || !self.cleaning.kicked.load(Ordering::SeqCst) {
                std::thread::park_timeout(ROUND);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_due_grow_with_dirty_pages() {
        let of = |dirty| due(dirty, 1000, (50, 400));
        assert_eq!([of(0), of(100), of(101), of(250)], [0, 0, 11, 25]);
        assert_eq!([of(500), of(501), of(625)], [50, 51, 225]);
        assert_eq!([of(750), of(1000), of(1100)], [400, 400, 400]);
        assert!((0..1000).all(|dirty| of(dirty) <= of(dirty + 1)));
        let capacity = IoCapacity::new(300, 100);
        assert_eq!(
            capacity.get(),
            (300, 300),
            "the upper capacity is never below the lower one"
        );
        capacity.set(5, 70);
        assert_eq!(capacity.of_a_round(), (1, 7));
    }
}
