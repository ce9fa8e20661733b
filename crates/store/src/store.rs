//! The public facade of the storage layer.
//!
//! # Concurrency
//! Every method takes `&self` and may be called from any thread. See [`crate::core`] for the parts
//! and the lock order.
//! # Cost
//! [`Store::read`] of a resident page loads the space pointer, the chunk pointer, the page word and
//! the frame's clock mark. It writes only the clock mark, and only if that is clear.

use crate::attachments::Attachments;
use crate::core::{Core, Count};
use crate::disk::Disk;
use crate::error::{Stop, StoreError};
use crate::mtr::Mtr;
use crate::options::StoreOptions;
use crate::page::{Lsn, PAGE_SIZE, PAGE_WORDS, PageId, PageNo, SpaceId, TrxId};
use crate::page_ref::{PagePeek, PageRef};
use crate::redo::RedoHandler;
use crate::scratch::Scratch;
use crate::space;
use crate::status::{RecoveryProgress, RecoveryReport, StoreStatus};
use crate::wait::Wait;
use nfold_observe::contention::{Contention, WaitKind};
use nfold_sync::PageWord;
use nfold_sync::page_word::{frame_of, is_exclusive};
use nfold_sync::prim::AtomicU64;
use nfold_sync::words;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

/// The number of space ids that one write of the control file reserves.
const SPACE_IDS: u64 = 64;

/// The horizon: the end of the contiguous filled prefix of the log. It has its own cache line.
#[derive(Copy, Clone)]
pub struct Horizon<'a>(&'a AtomicU64);

impl Horizon<'_> {
    /// Loads the horizon with Acquire ordering. All log below it is filled, and the effects of its
    /// writers' `commit_with` callbacks are visible.
    #[inline(always)]
    pub fn load(&self) -> Lsn {
        self.0.load(Ordering::Acquire)
    }
}

/// The result of [`Store::prefetch`].
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Residency {
    Resident,
    /// A load of the page is queued or in progress.
    Loading,
    /// The page does not exist. Reading it returns the reason.
    Absent,
}

/// An open store. See the crate documentation.
pub struct Store {
    core: Arc<Core>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Store {
    /// Opens the store on `disk` and recovers it if needed. Creates a new store if the disk is
    /// empty. `progress` is called during recovery.
    pub fn open(
        options: StoreOptions,
        disk: Arc<dyn Disk>,
        redo: Arc<dyn RedoHandler>,
        progress: &dyn Fn(RecoveryProgress),
    ) -> Result<(Arc<Store>, RecoveryReport), StoreError> {
        let io_threads = options.io_threads;
        let (core, report) = crate::recovery::open(options, disk, redo, progress)?;
        let store = Store {
            core: Arc::new(core),
            threads: Mutex::new(Vec::new()),
        };
        if io_threads > 0 {
            store.start(io_threads)?;
        }
        Ok((Arc::new(store), report))
    }

    fn start(&self, io_threads: usize) -> Result<(), StoreError> {
        self.core.set_threaded();
        self.core.io.jobs.set_threads(io_threads);
        let spawn = |name: String, f: fn(&Core)| {
            let core = self.core.clone();
            let handle = std::thread::Builder::new()
                .name(name)
                .spawn(move || f(&core))
                .map_err(|e| StoreError::io(&e, "starting a thread"))?;
            self.threads.lock().push(handle);
            Ok::<(), StoreError>(())
        };
        spawn("nfold-log".into(), |core| core.log.run())?;
        spawn("nfold-clean".into(), Core::run_cleaner)?;
        if self.core.log.is_to_fill() {
            spawn("nfold-fill".into(), |core| core.log.fill_ahead())?;
        }
        for i in 0..io_threads {
            spawn(format!("nfold-io-{i}"), Core::run_jobs)?;
        }
        Ok(())
    }

    /// Writes all dirty pages, takes a checkpoint and stops the threads. Afterwards, the store
    /// rejects changes.
    pub fn shutdown(&self) -> Result<(), StoreError> {
        self.core.log.sync_to(self.core.log.horizon());
        let result = self.core.checkpoint_now();
        self.stop_threads();
        result.map(|_| ())
    }

    fn stop_threads(&self) {
        self.core.stop();
        for thread in self.threads.lock().drain(..) {
            if thread.join().is_err() {
                tracing::error!("a store thread panicked");
            }
        }
    }

    /// Creates the space file `name.nfd`, with page 0 as its header. It is durable when this
    /// returns, and its id is never reused, even after a crash. `name` may contain letters, digits
    /// and `_ # . - @ $`, at most 200 bytes. Blocks briefly on the disk.
    pub fn create_space(&self, name: &str) -> Result<SpaceId, Stop> {
        let id = self.new_space_id()?;
        self.core.spaces.create(&*self.core.disk, id, name)?;
        Ok(id)
    }

    /// Creates a space that does not survive a restart. Its file is created only when one of its
    /// pages must be evicted. Blocks on the disk only when the control file's limit of space ids
    /// must be raised.
    pub fn create_private_space(&self, name: &str) -> Result<SpaceId, Stop> {
        let core = &*self.core;
        let id = self.new_space_id()?;
        let space = core.spaces.create_private(&core.disk, id, name)?;
        if core.has_free_frames() {
            // No disk read is needed, so the header page is made here instead of by an I/O thread.
            core.load_now(&space, space::header_page(id))?;
        }
        Ok(id)
    }

    fn new_space_id(&self) -> Result<SpaceId, Stop> {
        let core = &*self.core;
        if core.stopping() {
            return Err(Stop::Error(StoreError::ShuttingDown));
        }
        let id = core.spaces.next_id(&core.control.next_space)?;
        if u64::from(id) >= core.control.file.lock().now.space_limit {
            let limit = u64::from(id) + SPACE_IDS;
            core.update_control(|c| c.space_limit = c.space_limit.max(limit));
        }
        Ok(id)
    }

    /// Opens `name.nfd` after checking that it is space `id`. Does nothing if the space is open.
    /// Blocks on the disk.
    pub fn open_space(&self, id: SpaceId, name: &str) -> Result<(), StoreError> {
        self.core.open_space(id, name)
    }

    /// Deletes the file, and discards the space's pages in the background. Later uses of the space
    /// return [`StoreError::SpaceGone`]. A mini-transaction that has already reserved pages of the
    /// space ends normally.
    pub fn drop_space(&self, id: SpaceId) -> Result<(), StoreError> {
        let core = &*self.core;
        let space = core.spaces.remove(id).ok_or(StoreError::SpaceGone(id))?;
        if let Some(file) = space.take_private_file() {
            core.discard_private(space, file);
            return Ok(());
        }
        let name = format!("{}{}", space.name(), space::SUFFIX);
        let removed = core.disk.remove(&name).and_then(|()| core.disk.sync_dir());
        core.discard_later(space);
        removed.map_err(|e| StoreError::io(&e, format!("{name}: remove")))
    }

    /// Creates a temporary file. Blocks on the disk.
    pub fn scratch(&self) -> Result<Scratch, StoreError> {
        Scratch::create(&self.core.disk)
    }

    /// All space files as (id, name). Blocks on the disk. A file that cannot be read is an error
    /// and not just missing from the result.
    pub fn spaces_on_disk(&self) -> Result<Vec<(SpaceId, String)>, StoreError> {
        space::discover(&*self.core.disk)
    }

    /// The names of all files that have the name of a space file, including those with damaged
    /// headers. Blocks on the disk.
    pub fn space_names(&self) -> Result<Vec<String>, StoreError> {
        space::names(&*self.core.disk)
    }

    /// The number of pages of the space that are or were in use. All its page numbers are below
    /// this.
    pub fn space_pages(&self, id: SpaceId) -> Result<u32, StoreError> {
        let space = self.core.spaces.look(id);
        let pages = space.map(|space| (space, space.pages.load(Ordering::Acquire)));
        let (_, pages) = pages
            .filter(|(space, _)| space.is(id))
            .ok_or(StoreError::SpaceGone(id))?;
        Ok(pages)
    }

    /// The page numbers on the space's free list. No other thread may allocate or free pages
    /// meanwhile. Blocks. For tests.
    #[doc(hidden)]
    pub fn free_pages(&self, id: SpaceId) -> Result<Vec<PageNo>, StoreError> {
        let read = |page| loop {
            match self.read(PageId { space: id, page }) {
                Ok(page) => return Ok(page),
                Err(Stop::Wait(wait)) => wait.block(),
                Err(Stop::Error(e)) => return Err(e),
            }
        };
        let header = read(0)?;
        let mut free = Vec::new();
        let entry = |page: &PageRef<'_>, at: u32| page.u32(space::list_entry(at as usize));
        free.extend((0..header.u32(space::COUNT_OFF)).map(|at| entry(&header, at)));
        let mut trunk = header.u32(space::TRUNK_OFF);
        while trunk != 0 {
            let page = read(trunk)?;
            free.push(trunk);
            free.extend((0..space::LIST_MAX as u32).map(|at| entry(&page, at)));
            trunk = page.u32(space::NEXT_TRUNK_OFF);
        }
        Ok(free)
    }

    /// The memory in bytes of all space objects and page words. For tests.
    #[doc(hidden)]
    pub fn space_bytes(&self) -> usize {
        self.core.spaces.bytes()
    }

    /// The wait statistics of everything that works on this store.
    pub fn contention(&self) -> &Arc<Contention> {
        &self.core.contention
    }

    /// Reads a page optimistically. Waits briefly while another thread changes it. If the page is
    /// not resident, queues its load and returns `Wait`. A page number beyond the end of the space
    /// is an error, which is valid only if the page that contained the number validates.
    #[inline]
    pub fn read(&self, id: PageId) -> Result<PageRef<'_>, Stop> {
        self.core.read(id)
    }

    /// A handle for reading many pages of one space; `None` if the space is not open.
    #[inline]
    pub fn pages_of(&self, space: SpaceId) -> Option<SpacePages<'_>> {
        let core = &*self.core;
        let (id, space) = (space, core.spaces.look(space)?);
        Some(SpacePages { core, space, id })
    }

    /// Prefetches the first cache lines of a resident page, or queues the load of a missing one.
    /// Never waits.
    #[inline]
    pub fn prefetch(&self, id: PageId) -> Residency {
        if let Some(pages) = self.pages_of(id.space)
            && let Some(word) = pages.word(id.page)
            && let Some(bytes) = pages.resident_at(word)
        {
            words::prefetch(bytes, 0);
            words::prefetch(bytes, 64);
            words::prefetch(bytes, 128);
            return Residency::Resident;
        }
        match self.core.miss(id) {
            Ok(()) => Residency::Resident,
            Err(Stop::Wait(_)) => Residency::Loading,
            Err(Stop::Error(_)) => Residency::Absent,
        }
    }

    /// Prefetches these lines of 64 bytes of a page, and its first one, if it is resident.
    #[inline]
    pub fn prefetch_lines(&self, id: PageId, lines: &[u16]) {
        if let Some(pages) = self.pages_of(id.space)
            && let Some(word) = pages.word(id.page)
            && let Some(bytes) = pages.resident_at(word)
        {
            words::prefetch(bytes, 0);
            for line in lines {
                words::prefetch_outer(bytes, usize::from(*line) * 64);
            }
        }
    }

    /// Whether the page is resident at this moment. Never queues a load.
    #[inline]
    pub fn is_resident(&self, id: PageId) -> bool {
        self.core.is_resident(id)
    }

    /// Queues the loads of all missing pages, with neighbouring pages in one read, and returns a
    /// wait for all of them. `None` if no page is missing. The wait also ends when pages cannot be
    /// loaded; reading these returns the error.
    pub fn wait_for(&self, ids: &[PageId]) -> Option<Wait> {
        let mut waits = Vec::new();
        self.core
            .load_many(ids, false, |load| waits.push(Wait::on(load, 0)));
        (self.core.threaded() && !waits.is_empty())
            .then(|| Wait::all(waits).watched(&self.core.contention, WaitKind::PageLoad))
    }

    /// Queues the loads of all missing pages like [`wait_for`](Self::wait_for), but returns no
    /// wait.
    pub fn start_loads(&self, ids: &[PageId]) {
        self.core.load_many(ids, false, |_| ());
    }

    /// Queues the loads of pages that a scan will soon need, and returns the number of missing
    /// ones. Does not wait. These pages are evicted before others.
    pub fn read_ahead(&self, ids: &[PageId]) -> usize {
        let mut missing = 0;
        self.core.load_many(ids, true, |_| missing += 1);
        missing
    }

    /// Up to `percent` percent of the pages in memory, the most frequently used first.
    pub fn pages_in_memory(&self, percent: u32) -> Vec<PageId> {
        self.core.pages_in_memory(percent)
    }

    /// Loads those of `ids` that exist and are missing, and blocks until they are loaded.
    /// Neighbouring pages share a read, and loads with waiters come first. Returns the number of
    /// missing pages.
    pub fn warm(&self, ids: &[PageId]) -> usize {
        self.core.warm(ids)
    }

    /// The recommended number of missing pages per request. That number stays resident until the
    /// caller reads them.
    pub fn load_batch(&self) -> usize {
        self.core.pool.probation.batch()
    }

    pub fn mtr(&self) -> Mtr<'_> {
        Mtr::new(&self.core)
    }

    /// The horizon of the log.
    #[inline(always)]
    pub fn horizon(&self) -> Horizon<'_> {
        Horizon(self.core.log.filled.prefix.horizon_cell())
    }

    /// The LSN up to which the log is durable.
    pub fn durable_lsn(&self) -> Lsn {
        self.core.log.durable()
    }

    /// Requests a sync of the log up to `lsn`, and returns a wait for it. `None` if the log is
    /// durable up to there. In inline mode, this syncs the log itself and returns `None`.
    pub fn wait_durable(&self, lsn: Lsn) -> Option<Wait> {
        self.core.log.wait_durable(lsn)
    }

    /// Requests the syncs that this thread has deferred; see [`crate::gather_syncs`]. A thread that
    /// `may_block` for the time of a sync, because it has no other work, may sync the log itself if
    /// syncs are short and no other thread waits for one.
    pub fn finish_syncs(&self, may_block: bool) {
        self.core.log.request_held(may_block);
    }

    /// Requests that the log be durable up to `lsn` soon: the log thread syncs it after about the
    /// time of a sync, together with all log that is filled until then.
    pub fn sync_behind(&self, lsn: Lsn) {
        self.core.log.sync_behind(lsn);
    }

    /// Waits until the log is durable up to `lsn`, without requesting a sync. Blocks.
    pub fn block_until_durable(&self, lsn: Lsn) {
        if self.core.log.durable() < lsn {
            Wait::on(self.core.log.durable.clone(), lsn).block();
        }
    }

    /// Makes all log durable that is filled now. Blocks.
    pub fn sync_log(&self) {
        self.core.log.sync_to(self.core.log.horizon());
    }

    /// The attachments of commits.
    pub fn attachments(&self) -> &Attachments {
        &self.core.attachments
    }

    /// The largest attachment in bytes.
    pub fn max_attachment(&self) -> usize {
        (self.core.log.max_mtr() / 4) as usize
    }

    /// The files beside which the store has its own.
    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.core.disk
    }

    /// A wait until the horizon reaches `lsn`; `None` if it has.
    pub fn wait_filled(&self, lsn: Lsn) -> Option<Wait> {
        self.core.log.wait_filled(lsn)
    }

    /// Requests that the log up to `lsn` be written to the operating system without a sync, and
    /// returns a wait for it. Such log survives the end of the process but not a power failure.
    /// `None` if it has been written. The horizon must have reached `lsn`. In inline mode, this
    /// writes the log itself.
    pub fn wait_written(&self, lsn: Lsn) -> Option<Wait> {
        self.core.log.wait_written(lsn)
    }

    /// Writes all pages that are dirty now, records a checkpoint and returns its LSN. Blocks, so
    /// workers must not call it.
    pub fn checkpoint(&self) -> Result<Lsn, StoreError> {
        self.core.checkpoint_now()
    }

    /// Resizes the pool to `bytes` in the background, in whole frames, to at least 32 frames and at
    /// most [`max_pool_bytes`](Self::max_pool_bytes). Returns the size that it will have. A later
    /// call overrides an earlier one.
    pub fn resize_pool(&self, bytes: u64) -> u64 {
        self.core.request_size(bytes)
    }

    /// Sets the target rate and the highest rate of background flushing, in page writes per second.
    pub fn set_io_capacity(&self, low: u32, high: u32) {
        self.core.cleaning.io_capacity.set(low, high);
    }

    /// The largest size of the pool in bytes.
    pub fn max_pool_bytes(&self) -> u64 {
        (self.core.pool.frames.max() * PAGE_SIZE) as u64
    }

    /// In inline mode: does one round of the background threads' work. Returns whether there was
    /// any.
    pub fn step_background(&self) -> Result<bool, StoreError> {
        let log = &self.core.log;
        let behind = log.durable() < log.horizon();
        log.sync_to(log.horizon());
        Ok(self.core.clean_round()? || behind)
    }

    /// Counts an optimistic read that restarts because of a concurrent change.
    pub fn count_restart(&self) {
        self.core
            .counters
            .add(Count::OptimisticRestarts as usize, 1);
    }

    /// Counts a read that takes a latch after repeated restarts.
    pub fn count_latch_fallback(&self) {
        self.core.counters.add(Count::LatchFallbacks as usize, 1);
    }

    /// The address and length of the frames' memory. Tests make it read-only to prove that reads do
    /// not write there.
    #[doc(hidden)]
    pub fn frame_memory(&self) -> (usize, usize) {
        self.core.pool.frames.memory()
    }

    pub fn status(&self) -> StoreStatus {
        self.core.status()
    }

    /// After opening: a transaction id above all ids that changes in the log or in pages ever used.
    pub fn next_trx_id_floor(&self) -> TrxId {
        self.core.control.trx_floor.load(Ordering::Relaxed)
    }

    /// Sets the function from which checkpoints get the next transaction id.
    pub fn set_trx_id_source(&self, source: impl Fn() -> TrxId + Send + Sync + 'static) {
        self.core.control.set_trx_source(Box::new(source));
    }
}

impl Drop for Store {
    /// Stops the threads and writes nothing. The files are left as after a crash.
    fn drop(&mut self) {
        self.stop_threads();
    }
}

/// A handle for reading the pages of one open space. See [`Store::pages_of`].
#[derive(Copy, Clone)]
pub struct SpacePages<'a> {
    core: &'a Core,
    /// The space object. It may be reused for another space, so every read checks that it still
    /// belongs to `id`.
    space: &'a space::Space,
    id: SpaceId,
}

/// A reference to a page's page word.
#[derive(Copy, Clone)]
pub struct WordRef<'a>(&'a PageWord);

impl<'a> SpacePages<'a> {
    /// The page word of a page, for a later [`peek_at`](Self::peek_at). Prefetches the word.
    #[inline(always)]
    pub fn word(self, page: PageNo) -> Option<WordRef<'a>> {
        let word = self.space.dir().get(page)?;
        words::prefetch_line(word);
        Some(WordRef(word))
    }

    /// The bytes of the page with this word if it is resident. They may only be prefetched, because
    /// nothing validates a read from them.
    #[inline(always)]
    pub fn resident_at(self, WordRef(word): WordRef<'a>) -> Option<&'a [AtomicU64; PAGE_WORDS]> {
        let frame = frame_of(word.load())?;
        self.core.pool.frames.prefetch_mark(frame);
        Some(self.core.pool.frames.words(frame))
    }

    /// Reads a page optimistically if it is resident and not latched exclusively; otherwise returns
    /// `None`. Never waits and never queues a load. Prefetches the clock mark for a later
    /// [`touch`](Self::touch).
    #[inline(always)]
    pub fn peek(self, page: PageNo) -> Option<PageRef<'a>> {
        let word = self.space.dir().get(page)?;
        self.peek_at(WordRef(word), page)
    }

    /// As [`peek`](Self::peek), with the page's word.
    #[inline(always)]
    pub fn peek_at(self, word: WordRef<'a>, page: PageNo) -> Option<PageRef<'a>> {
        let PagePeek { words, word, seen } = self.peek_page_at(word)?;
        let space = self.id;
        Some(PageRef {
            id: PageId { space, page },
            words,
            word,
            seen,
        })
    }

    /// As [`peek_at`](Self::peek_at), for a caller that knows the page id.
    #[inline(always)]
    pub fn peek_page_at(self, WordRef(word): WordRef<'a>) -> Option<PagePeek<'a>> {
        let seen = word.load();
        let frame = frame_of(seen)?;
        if is_exclusive(seen) || !self.space.is(self.id) {
            return None;
        }
        self.core.pool.frames.prefetch_mark(frame);
        let words = self.core.pool.frames.words(frame);
        Some(PagePeek { words, word, seen })
    }

    /// Sets the clock mark of a page that [`peek`](Self::peek) returned.
    #[inline(always)]
    pub fn touch(self, page: &PageRef<'_>) {
        self.touch_seen(page.seen);
    }

    /// As [`touch`](Self::touch), for a page that [`peek_page_at`](Self::peek_page_at) returned.
    #[inline(always)]
    pub fn touch_peeked(self, page: &PagePeek<'_>) {
        self.touch_seen(page.seen);
    }

    #[inline(always)]
    fn touch_seen(self, seen: u64) {
        if let Some(frame) = frame_of(seen)
            && self.core.pool.frames.touch(frame)
        {
            self.core.counters.add(Count::UsedMarks as usize, 1);
        }
    }

    /// As [`Store::read`].
    #[inline(always)]
    pub fn read(self, page: PageNo) -> Result<PageRef<'a>, Stop> {
        match self.peek(page) {
            Some(page) => {
                self.touch(&page);
                Ok(page)
            }
            None => self.read_slow(page),
        }
    }

    /// The slow path of [`read`](Self::read), for when [`peek`](Self::peek) returned `None`.
    #[inline(never)]
    pub fn read_slow(self, page: PageNo) -> Result<PageRef<'a>, Stop> {
        self.core.read(PageId {
            space: self.id,
            page,
        })
    }
}

impl Core {
    #[inline(always)]
    pub(crate) fn read(&self, id: PageId) -> Result<PageRef<'_>, Stop> {
        loop {
            if let Some(space) = self.spaces.look(id.space)
                && let Some(word) = space.dir().get(id.page)
            {
                let mut seen = word.load();
                if is_exclusive(seen) {
                    seen = self.wait_to_read(id, (space, word));
                }
                // The word is loaded before this check. So the word was this space's when it was
                // loaded (T2 of `spaces`).
                if let Some(frame) = frame_of(seen)
                    && space.is(id.space)
                {
                    if self.pool.frames.touch(frame) {
                        self.counters.add(Count::UsedMarks as usize, 1);
                    }
                    return Ok(PageRef {
                        id,
                        words: self.pool.frames.words(frame),
                        word,
                        seen,
                    });
                }
            }
            self.miss(id)?;
        }
    }

    pub(crate) fn open_space(&self, id: SpaceId, name: &str) -> Result<(), StoreError> {
        if self.spaces.get(id).is_some() {
            return Ok(());
        }
        let opened = self.spaces.open(&*self.disk, id, name)?;
        self.load_now(&opened, space::header_page(id))?;
        self.take_page_count(&opened)
    }

    /// Reads the space's page count from page 0 into memory.
    pub(crate) fn take_page_count(&self, space: &space::Space) -> Result<(), StoreError> {
        let id = space::header_page(space.id());
        loop {
            self.load_now(space, id)?;
            let Some(word) = space.dir().get(0) else {
                continue;
            };
            let seen = word.begin_read();
            let Some(frame) = frame_of(seen) else {
                continue;
            };
            let pages = words::load_u32(self.pool.frames.words(frame), space::PAGES_OFF);
            if word.validate(seen) {
                space.pages.store(pages.max(1), Ordering::Release);
                return Ok(());
            }
        }
    }
}
