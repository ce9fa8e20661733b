//! Page loads by the I/O threads. Concurrent requests for a page share one load and its list of
//! wakers. Errors are kept for the waiters' next attempt.
//!
//! # Invariants
//! - L1: a page that is being loaded has one [`Load`] in the table. Its word stays "not resident"
//!   until the bytes in the frame are complete and the checksum is verified. If another thread
//!   installs the page first, the load drops its frame.
//! - L2: a finished load first leaves the table, then becomes ready, then wakes its waiters.
//! - L3: pages requested together are read in runs of neighbouring pages, one call per run.
//!   Read-ahead has lower priority than loads with waiters, but does not starve.
//! - L4: long jobs that are not loads (a file grows, memory is populated, pages of a dropped space
//!   are discarded) occupy at most half of the I/O threads, and a single I/O thread alternates
//!   between loads and such jobs. No job of an I/O thread waits for a mutex that is held during
//!   I/O. So a thread that waits for a cold page waits only for the disk and for earlier loads.
//! # Failure
//! A failed or corrupt read fails its waiters: they find the error when they try again. After a
//! second, the page is read again.

use crate::core::{Core, Count};
use crate::error::{Stop, StoreError};
use crate::page::{NEWER, PAGE_SIZE, PageId, check_image, image_lsn};
use crate::pool::directory::VisitPosition;
use crate::space::{HeldSpace, Space};
use crate::wait::{Source, Wait, WakeList};
use nfold_observe::contention::WaitKind;
use nfold_sync::page_word::frame_of;
use nfold_sync::prim::{Ordering::Relaxed, Ordering::Release, fence};
use parking_lot::{Condvar, Mutex};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const SHARDS: usize = 16;
/// The most pages read by one call.
const RUN: usize = 16;
/// Every `FAIR`-th turn, read-ahead has priority.
const FAIR: u32 = 5;
/// How long an error is returned before the page is read again.
const ERROR_AGE: Duration = Duration::from_secs(1);
/// The most errors that are remembered.
const MAX_ERRORS: usize = 1024;

/// An operation in progress on an I/O thread, as a source of waits.
#[derive(Default)]
pub(crate) struct Load {
    done: AtomicBool,
    wakers: WakeList,
}

impl Load {
    pub(crate) fn finish(&self) {
        self.done.store(true, Ordering::SeqCst);
        self.wakers.wake(|_| true);
    }
}

impl Source for Load {
    fn ready(&self, _: u64) -> bool {
        self.done.load(Ordering::SeqCst)
    }

    fn wakers(&self) -> &WakeList {
        &self.wakers
    }
}

/// The work of the I/O threads.
#[derive(Default)]
pub(crate) struct PageIo {
    pub(crate) loads: Loads,
    pub(crate) jobs: Jobs,
}

/// The loads in progress, and the errors of recent ones.
#[derive(Default)]
pub(crate) struct Loads {
    running: [Mutex<HashMap<PageId, Arc<Load>>>; SHARDS],
    errors: Mutex<HashMap<PageId, (Instant, StoreError)>>,
    error_count: AtomicUsize,
}

impl Loads {
    fn shard(&self, id: PageId) -> &Mutex<HashMap<PageId, Arc<Load>>> {
        &self.running[(id.page ^ id.space) as usize % SHARDS]
    }

    fn remember_error(&self, id: PageId, error: StoreError) {
        let mut errors = self.errors.lock();
        if errors.len() >= MAX_ERRORS {
            errors.retain(|_, (at, _)| at.elapsed() < ERROR_AGE);
        }
        if errors.len() < MAX_ERRORS {
            errors.insert(id, (Instant::now(), error));
        }
        self.error_count.store(errors.len(), Ordering::SeqCst);
    }

    fn error_of(&self, id: PageId) -> Option<StoreError> {
        if self.error_count.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let mut errors = self.errors.lock();
        let (at, error) = errors.get(&id)?;
        if at.elapsed() < ERROR_AGE {
            return Some(error.clone());
        }
        errors.remove(&id);
        self.error_count.store(errors.len(), Ordering::SeqCst);
        None
    }
}

/// A job of the I/O threads.
pub(crate) enum Job {
    /// Loads a run of neighbouring pages of one file. The flag is set for read-ahead.
    Load(HeldSpace, Run, bool),
    Grow(HeldSpace, u32, Arc<Load>),
    /// Discards pages of a dropped space, from a position on.
    Discard(HeldSpace, VisitPosition),
    Call(Box<dyn FnOnce(&Core) + Send>),
}

/// Pages with consecutive numbers that are being loaded, each with its load.
pub(crate) type Run = SmallVec<[(PageId, Arc<Load>); 1]>;

#[derive(Default)]
struct Queue {
    urgent: VecDeque<Job>,
    ahead: VecDeque<Job>,
    /// Jobs that are not loads (L4).
    others: VecDeque<Job>,
    /// The number of those that are running, and the limit for it.
    busy: usize,
    most: usize,
    turn: u32,
    stopped: bool,
}

impl Queue {
    fn pop(&mut self) -> Option<Job> {
        self.turn = self.turn.wrapping_add(1);
        let loads = !self.turn.is_multiple_of(2);
        if loads && let Some(job) = self.pop_load() {
            return Some(job);
        }
        if self.busy < self.most
            && let Some(job) = self.others.pop_front()
        {
            self.busy += 1;
            return Some(job);
        }
        if loads { None } else { self.pop_load() }
    }

    fn pop_load(&mut self) -> Option<Job> {
        let (first, second) = if self.turn.is_multiple_of(FAIR) {
            (&mut self.ahead, &mut self.urgent)
        } else {
            (&mut self.urgent, &mut self.ahead)
        };
        first.pop_front().or_else(|| second.pop_front())
    }
}

/// The job queue of the I/O threads.
#[derive(Default)]
pub(crate) struct Jobs {
    queue: Mutex<Queue>,
    bell: Condvar,
}

impl Jobs {
    /// Sets the number of I/O threads, before they start.
    pub(crate) fn set_threads(&self, threads: usize) {
        self.queue.lock().most = (threads / 2).max(1);
    }

    fn push_load(&self, job: Job) {
        self.queue.lock().urgent.push_back(job);
        self.bell.notify_one();
    }

    /// Queues a job that is not a load (L4).
    pub(crate) fn push_other(&self, job: Job) {
        self.queue.lock().others.push_back(job);
        self.bell.notify_one();
    }

    /// Called when a job that is not a load has ended. Wakes a thread for the next one.
    fn other_ended(&self) {
        let mut queue = self.queue.lock();
        queue.busy -= 1;
        let more = !queue.others.is_empty();
        drop(queue);
        if more {
            self.bell.notify_one(); // This thread may take a load first.
        }
    }

    /// Queues the loads of several runs together.
    fn push_loads(&self, runs: Vec<(HeldSpace, Run)>, ahead: bool) {
        let count = runs.len();
        let jobs = runs
            .into_iter()
            .map(|(space, run)| Job::Load(space, run, ahead));
        let mut queue = self.queue.lock();
        if ahead {
            queue.ahead.extend(jobs);
        } else {
            queue.urgent.extend(jobs);
        }
        drop(queue);
        for _ in 0..count {
            self.bell.notify_one();
        }
    }

    pub(crate) fn stop(&self) {
        self.queue.lock().stopped = true;
        self.bell.notify_all();
    }

    fn pop(&self) -> Option<Job> {
        let mut queue = self.queue.lock();
        loop {
            if let Some(job) = queue.pop() {
                return Some(job);
            }
            if queue.stopped {
                return None;
            }
            self.bell.wait(&mut queue);
        }
    }
}

thread_local! {
    static PAGES: RefCell<Option<crate::buf::AlignedBuf>> = const { RefCell::new(None) };
}

impl Core {
    /// The body of an I/O thread.
    pub(crate) fn run_jobs(&self) {
        while let Some(job) = self.io.jobs.pop() {
            match job {
                Job::Load(space, run, ahead) => {
                    self.load_run(&space, &run, ahead);
                    continue;
                }
                Job::Grow(space, pages, load) => {
                    let result = space.grow(pages, self.options.extend_bytes);
                    let mut growth = space.growth.lock();
                    growth.error = result.err();
                    growth.running = None;
                    drop(growth);
                    load.finish();
                }
                Job::Discard(space, from) => {
                    if !self.stopping()
                        && let Some((space, next)) = self.discard_some(space, from)
                    {
                        self.io.jobs.push_other(Job::Discard(space, next));
                    }
                }
                Job::Call(f) => f(self),
            }
            self.io.jobs.other_ended();
        }
    }

    /// Handles a page that is not resident. In inline mode, loads it and returns `Ok`. Otherwise
    /// queues the load and returns `Wait`.
    #[cold]
    pub(crate) fn miss(&self, id: PageId) -> Result<(), Stop> {
        self.counters.add(Count::ReadMisses as usize, 1);
        if let Some(e) = self.io.loads.error_of(id) {
            return Err(Stop::Error(e));
        }
        let space = self.space_for(id)?;
        if !self.threaded() {
            return self.load_now(&space, id).map_err(Stop::Error);
        }
        if self.stopping() {
            // The I/O threads are stopping and would not do the load.
            return Err(Stop::Error(StoreError::ShuttingDown));
        }
        match self.queue_load(space, id) {
            Some(load) => {
                let wait = Wait::on(load, 0);
                Err(Stop::Wait(
                    wait.watched(&self.contention, WaitKind::PageLoad),
                ))
            }
            None => Ok(()),
        }
    }

    /// The space of a page. An error if the space does not exist or the page lies beyond its end.
    pub(crate) fn space_for(&self, id: PageId) -> Result<HeldSpace, StoreError> {
        let space = self
            .spaces
            .hold(id.space)
            .ok_or(StoreError::SpaceGone(id.space))?;
        if id.page >= space.pages.load(Ordering::Acquire) {
            return Err(StoreError::Corrupt {
                page: id,
                lsn: 0,
                what: "page number beyond the space's end",
            });
        }
        Ok(space)
    }

    /// Queues a load unless one is in progress. `None` if the page has become resident.
    pub(crate) fn queue_load(&self, space: HeldSpace, id: PageId) -> Option<Arc<Load>> {
        let (load, new) = self.register_load(&space, id)?;
        if new {
            let run = SmallVec::from_iter([(id, load.clone())]);
            self.io.jobs.push_load(Job::Load(space, run, false));
        }
        Some(load)
    }

    /// The load of a page that is not resident, and whether the caller must start it. `None` if the
    /// page is resident.
    fn register_load(&self, space: &Space, id: PageId) -> Option<(Arc<Load>, bool)> {
        let mut running = self.io.loads.shard(id).lock();
        if let Some(load) = running.get(&id) {
            return Some((load.clone(), false));
        }
        // L2: a finished load has installed its page before it left the table.
        if frame_of(space.dir().get_or_make(id.page).load()).is_some() {
            return None;
        }
        let load = Arc::new(Load::default());
        running.insert(id, load.clone());
        Some((load, true))
    }

    /// Starts the loads of all of `ids` that are neither resident nor being loaded, with
    /// neighbouring pages in one run, and passes each load to `waits`. Skips pages that cannot be
    /// loaded; reading them returns the error.
    pub(crate) fn load_many(&self, ids: &[PageId], ahead: bool, mut waits: impl FnMut(Arc<Load>)) {
        let mut missing: SmallVec<[PageId; 32]> = SmallVec::new();
        missing.extend(ids.iter().copied().filter(|id| !self.is_resident(*id)));
        missing.sort_unstable();
        missing.dedup();
        let mut runs: Vec<(HeldSpace, Run)> = Vec::new();
        for id in missing {
            let count = if ahead {
                Count::ReadAhead
            } else {
                Count::ReadMisses
            };
            let known = self.io.loads.error_of(id).is_none();
            let Some(space) = self
                .space_for(id)
                .ok()
                .filter(|_| known && !self.stopping())
            else {
                continue;
            };
            let Some((load, new)) = self.register_load(&space, id) else {
                continue;
            };
            if new || !ahead {
                self.counters.add(count as usize, 1);
            }
            waits(load.clone());
            if !new {
                continue;
            }
            match runs.last_mut() {
                Some((_, run)) if run.len() < RUN && follows(run, id) => run.push((id, load)),
                _ => runs.push((space, SmallVec::from_iter([(id, load)]))),
            }
        }
        if self.threaded() {
            self.io.jobs.push_loads(runs, ahead);
        } else {
            for (space, run) in runs {
                self.load_run(&space, &run, ahead);
            }
        }
    }

    pub(crate) fn is_resident(&self, id: PageId) -> bool {
        let space = self.spaces.look(id.space);
        let word = space.and_then(|space| Some((space, space.dir().get(id.page)?)));
        word.is_some_and(|(space, word)| frame_of(word.load()).is_some() && space.is(id.space))
    }

    /// Loads a run, with a single read if possible, and finishes its loads (L2).
    fn load_run(&self, space: &Space, run: &[(PageId, Arc<Load>)], ahead: bool) {
        let together = run.len() > 1 && self.load_together(space, run, ahead).is_ok();
        for (id, load) in run {
            if !together && let Err(e) = self.load_now(space, *id) {
                // In inline mode, the reader of the page gets the error from its own attempt.
                if self.threaded() {
                    self.io.loads.remember_error(*id, e);
                }
            }
            self.io.loads.shard(*id).lock().remove(id);
            load.finish();
        }
    }

    /// Reads a run with a single call. If it fails, the error may concern any of the pages, so the
    /// caller loads them one by one.
    fn load_together(
        &self,
        space: &Space,
        run: &[(PageId, Arc<Load>)],
        ahead: bool,
    ) -> Result<(), StoreError> {
        let words: SmallVec<[u64; RUN]> = run
            .iter()
            .map(|(id, _)| space.dir().get_or_make(id.page).begin_read())
            .collect();
        with_buffer(|buf| {
            let buf = &mut buf[..run.len() * PAGE_SIZE];
            self.read_bytes(space, run[0].0, buf)?;
            for (i, (id, _)) in run.iter().enumerate() {
                let image = &buf[i * PAGE_SIZE..(i + 1) * PAGE_SIZE];
                if frame_of(words[i]).is_none() {
                    self.check(*id, image)?;
                    self.install_image(space, *id, words[i], image, ahead)?;
                }
            }
            Ok(())
        })
    }

    /// Reads a page into a frame and installs it, unless it is resident. Blocks.
    pub(crate) fn load_now(&self, space: &Space, id: PageId) -> Result<(), StoreError> {
        let seen = space.dir().get_or_make(id.page).begin_read();
        if frame_of(seen).is_some() {
            return Ok(());
        }
        with_buffer(|buf| {
            let image = &mut buf[..PAGE_SIZE];
            self.read_image(space, id, image)?;
            self.install_image(space, id, seen, image, false)
        })
    }

    /// Copies `image` into a frame, and installs the frame under the page's word, unless the word
    /// has changed from `seen`. `seen` must have been loaded before the image was read.
    fn install_image(
        &self,
        space: &Space,
        id: PageId,
        seen: u64,
        image: &[u8],
        scan: bool,
    ) -> Result<(), StoreError> {
        let word = space.dir().get_or_make(id.page);
        let frame = self.frame_blocking()?;
        // The frame's previous page was removed before this; the free list's mutex orders the two.
        // So a reader of that page that sees one of the following stores also sees that its page
        // word has changed.
        fence(Release);
        for (word, bytes) in self
            .pool
            .frames
            .words(frame)
            .iter()
            .zip(image.chunks_exact(8))
        {
            let mut chunk = [0u8; 8];
            chunk.copy_from_slice(bytes);
            word.store(u64::from_le_bytes(chunk), Relaxed);
        }
        self.pool.frames.set_page(frame, Some(id));
        self.pool.frames.set_used(frame, 2);
        self.pool
            .probation
            .admit(&self.pool.frames, frame, id, scan);
        if !word.install(seen, frame) {
            self.give_frame(frame); // L1: another thread was first.
            return Ok(());
        }
        self.pool.probation.enter(&self.pool.frames, frame, id);
        // Pairs with the fence in `discard_some`: either that finds this page, or this thread sees
        // that the space is gone.
        fence(Ordering::SeqCst);
        if space.gone.load(Ordering::SeqCst) {
            self.discard(word);
            return Err(StoreError::SpaceGone(id.space));
        }
        Ok(())
    }

    /// Reads a page's image from its file and verifies it.
    pub(crate) fn read_image(
        &self,
        space: &Space,
        id: PageId,
        buf: &mut [u8],
    ) -> Result<(), StoreError> {
        self.read_bytes(space, id, buf)?;
        self.check(id, buf)
    }

    fn check(&self, id: PageId, image: &[u8]) -> Result<(), StoreError> {
        let lsn = image_lsn(image);
        let checked = check_image(id, image).and_then(|()| {
            // The log was durable up to the page's LSN before the page was written.
            let known = lsn <= self.log.horizon();
            known.then_some(()).ok_or(NEWER)
        });
        checked.map_err(|what| StoreError::Corrupt {
            page: id,
            lsn,
            what,
        })
    }

    /// Reads whole pages into `buf`, from page `id` on.
    fn read_bytes(&self, space: &Space, id: PageId, buf: &mut [u8]) -> Result<(), StoreError> {
        let file = space.file()?;
        let pages = (buf.len() / PAGE_SIZE) as u64;
        self.counters.add(Count::Reads as usize, 1);
        self.counters.add(Count::PagesRead as usize, pages);
        match file.read_at(u64::from(id.page) * PAGE_SIZE as u64, buf) {
            Ok(()) => Ok(()),
            Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => Err(StoreError::Corrupt {
                page: id,
                lsn: 0,
                what: "page beyond the file's end",
            }),
            Err(e) => Err(space.error(&e, "read")),
        }
    }
}

/// Whether page `id` directly follows the last page of a run.
fn follows(run: &Run, id: PageId) -> bool {
    run.last().is_some_and(|(last, _)| {
        last.space == id.space && last.page.checked_add(1) == Some(id.page)
    })
}

/// Calls `f` with this thread's buffer for a run of pages, which is allocated at its first use.
fn with_buffer<T>(f: impl FnOnce(&mut crate::buf::AlignedBuf) -> T) -> T {
    PAGES.with_borrow_mut(|buf| {
        f(buf.get_or_insert_with(|| crate::buf::AlignedBuf::new(RUN * PAGE_SIZE)))
    })
}
