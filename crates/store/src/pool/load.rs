//! Bringing pages in: one load per page however many want it, a waker list each, errors kept for the waiters' next try.
//!
//! # Invariants
//! - I1: a page that is being loaded has one [`Load`] in the table, and its word stays "not resident" until the bytes in the frame
//!   are complete and their checksum is right. Whoever else installs the page first wins; the load then drops its frame.
//! - I2: a load that is over has left the table, then counts as ready, then wakes.
//! # Failure
//! A failed or corrupt read fails the waiters (they find the error when they try again) and is tried anew after a second.

use crate::core::{Core, Count};
use crate::error::{Stop, StoreError};
use crate::page::{PAGE_SIZE, PageId, check_image, image_lsn};
use crate::space::Space;
use crate::wait::{Source, Wait, WakeList};
use nfold_sync::page_word::frame_of;
use nfold_sync::prim::{Ordering::Relaxed, Ordering::Release, fence};
use parking_lot::{Condvar, Mutex};
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const SHARDS: usize = 16;
/// How long an error is handed out before the page is read again.
const ERROR_AGE: Duration = Duration::from_secs(1);
/// Errors remembered at most.
const MAX_ERRORS: usize = 1024;

/// Something under way on an I/O thread.
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

/// Loads under way, and errors of recent ones.
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

    fn remember(&self, id: PageId, error: StoreError) {
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

/// What I/O threads do.
pub(crate) enum Job {
    Load(Arc<Space>, PageId, Arc<Load>),
    Grow(Arc<Space>, u32, Arc<Load>),
    Call(Box<dyn FnOnce(&Core) + Send>),
}

/// The queue of the I/O threads.
#[derive(Default)]
pub(crate) struct Jobs {
    queue: Mutex<(VecDeque<Job>, bool)>,
    bell: Condvar,
}

impl Jobs {
    pub(crate) fn push(&self, job: Job) {
        self.queue.lock().0.push_back(job);
        self.bell.notify_one();
    }

    pub(crate) fn stop(&self) {
        self.queue.lock().1 = true;
        self.bell.notify_all();
    }

    fn pop(&self) -> Option<Job> {
        let mut queue = self.queue.lock();
        loop {
            if let Some(job) = queue.0.pop_front() {
                return Some(job);
            }
            if queue.1 {
                return None;
            }
            self.bell.wait(&mut queue);
        }
    }
}

thread_local! {
    static PAGE: RefCell<crate::buf::AlignedBuf> = RefCell::new(crate::buf::AlignedBuf::new(PAGE_SIZE));
}

impl Core {
    /// Body of an I/O thread.
    pub(crate) fn run_jobs(&self) {
        while let Some(job) = self.jobs.pop() {
            match job {
                Job::Load(space, id, load) => {
                    if let Err(e) = self.load_now(&space, id) {
                        self.loads.remember(id, e);
                    }
                    self.loads.shard(id).lock().remove(&id);
                    load.finish();
                }
                Job::Grow(space, pages, load) => {
                    let result = space.grow(pages, self.options.extend_bytes);
                    let mut growth = space.growth.lock();
                    growth.error = result.err();
                    growth.running = None;
                    drop(growth);
                    load.finish();
                }
                Job::Call(f) => f(self),
            }
        }
    }

    /// The page is not resident (or its space unknown): loads it in place in inline mode, queues the load otherwise.
    #[cold]
    pub(crate) fn miss(&self, id: PageId) -> Result<(), Stop> {
        self.counters.add(Count::ReadMisses as usize, 1);
        if let Some(e) = self.loads.error_of(id) {
            return Err(Stop::Error(e));
        }
        let space = self.space_for(id)?;
        if !self.threaded() {
            return self.load_now(&space, id).map_err(Stop::Error);
        }
        if self.stopping() {
            return Err(Stop::Error(StoreError::ShuttingDown)); // nobody would do the load
        }
        match self.queue_load(space, id) {
            Some(load) => Err(Stop::Wait(Wait::on(load, 0))),
            None => Ok(()),
        }
    }

    /// The space of a page that exists.
    pub(crate) fn space_for(&self, id: PageId) -> Result<Arc<Space>, StoreError> {
        let space = self
            .spaces
            .arc(id.space)
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

    /// Queues a load unless one is under way. `None`: it is resident after all.
    pub(crate) fn queue_load(&self, space: Arc<Space>, id: PageId) -> Option<Arc<Load>> {
        let load = {
            let mut running = self.loads.shard(id).lock();
            if let Some(load) = running.get(&id) {
                return Some(load.clone());
            }
            // I2: a load that is over installed its page before it left the table.
            if frame_of(space.dir.get_or_make(id.page).load()).is_some() {
                return None;
            }
            let load = Arc::new(Load::default());
            running.insert(id, load.clone());
            load
        };
        self.jobs.push(Job::Load(space, id, load.clone()));
        Some(load)
    }

    /// Reads a page into a frame and installs it; blocks. Nothing to do if it is resident.
    pub(crate) fn load_now(&self, space: &Space, id: PageId) -> Result<(), StoreError> {
        let word = space.dir.get_or_make(id.page);
        let seen = word.begin_read();
        if frame_of(seen).is_some() {
            return Ok(());
        }
        PAGE.with_borrow_mut(|buf| {
            self.read_image(space, id, buf)?;
            let frame = self.frame_blocking()?;
            // The frame's last page was taken out of it before this (the free list's mutex orders it): a reader of that page
            // that sees one of these stores sees its page word changed.
            fence(Release);
            for (word, bytes) in self.frames.words(frame).iter().zip(buf.chunks_exact(8)) {
                let mut chunk = [0u8; 8];
                chunk.copy_from_slice(bytes);
                word.store(u64::from_le_bytes(chunk), Relaxed);
            }
            self.frames.set_page(frame, Some(id));
            self.frames.set_used(frame, 2);
            self.probation.admit(&self.frames, frame, id);
            if !word.install(seen, frame) {
                self.give_frame(frame); // I1: somebody else was first
                return Ok(());
            }
            self.probation.enter(&self.frames, frame, id);
            if space.gone.load(Ordering::SeqCst) {
                self.forget(word);
                return Err(StoreError::SpaceGone(space.id));
            }
            Ok(())
        })
    }

    /// Reads a page's image from its file, and checks it.
    pub(crate) fn read_image(
        &self,
        space: &Space,
        id: PageId,
        buf: &mut [u8],
    ) -> Result<(), StoreError> {
        let file = space.file()?;
        self.counters.add(Count::PagesRead as usize, 1);
        match file.read_at(u64::from(id.page) * PAGE_SIZE as u64, buf) {
            Ok(()) => {}
            Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => {
                return Err(StoreError::Corrupt {
                    page: id,
                    lsn: 0,
                    what: "page beyond the file's end",
                });
            }
            Err(e) => return Err(space.error(&e, "read")),
        }
        check_image(id, buf).map_err(|what| StoreError::Corrupt {
            page: id,
            lsn: image_lsn(buf),
            what,
        })
    }
}
