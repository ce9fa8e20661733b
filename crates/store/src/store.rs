//! The store's facade.
//!
//! # Concurrency
//! Everything is `&self`, from any thread. See [`crate::core`] for the parts and the lock order.
//! # Cost
//! [`Store::read`] of a resident page: space pointer, chunk pointer, page word, the clock's mark; no store but the mark when it
//! is clear.

use crate::core::{Core, Count};
use crate::disk::Disk;
use crate::error::{Stop, StoreError};
use crate::mtr::Mtr;
use crate::options::StoreOptions;
use crate::page::{Lsn, PAGE_SIZE, PAGE_WORDS, PageId, PageNo, SpaceId, TrxId};
use crate::page_ref::{Glance, PageRef};
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

/// Space ids are made durable this many at a time.
const SPACE_IDS: u64 = 64;

/// The filled prefix of the log, on a cache line of its own.
#[derive(Copy, Clone)]
pub struct Horizon<'a>(&'a AtomicU64);

impl Horizon<'_> {
    /// Acquire: everything below was filled, and what its writers did in `commit_with` is visible.
    #[inline(always)]
    pub fn load(&self) -> Lsn {
        self.0.load(Ordering::Acquire)
    }
}

/// What [`Store::prefetch`] found.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Residency {
    Resident,
    /// A load was queued, or is under way.
    Loading,
    /// There is no such page: reading it says why.
    Absent,
}

/// See the crate's header.
pub struct Store {
    core: Arc<Core>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Store {
    /// Opens what `disk` holds, recovering it if needed; makes a new store when it is empty.
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
        self.core.jobs.set_threads(io_threads);
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

    /// Writes everything, takes a checkpoint, stops the threads. The store then refuses changes.
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

    /// Makes the file `name.nfd`, durable when this returns, with page 0 as its header. The id is never reused, also not after
    /// a crash. `name`: letters, digits, `_ # . - @ $`, at most 200 bytes. Blocks on the disk for a moment.
    pub fn create_space(&self, name: &str) -> Result<SpaceId, Stop> {
        let id = self.new_space_id()?;
        self.core.spaces.create(&*self.core.disk, id, name)?;
        Ok(id)
    }

    /// A new space that no restart keeps: its file is made when one of its pages has to leave
    /// memory. Blocks on the disk only where the control file's limit of ids is
    /// raised.
    pub fn create_private_space(&self, name: &str) -> Result<SpaceId, Stop> {
        let core = &*self.core;
        let id = self.new_space_id()?;
        let space = core.spaces.create_private(&core.disk, id, name)?;
        if core.has_free_frames() {
            // Nothing is read for it, so that is done before an I/O thread could be asked.
            core.load_now(&space, space::header_page(id))?;
        }
        Ok(id)
    }

    fn new_space_id(&self) -> Result<SpaceId, Stop> {
        let core = &*self.core;
        if core.stopping() {
            return Err(Stop::Error(StoreError::ShuttingDown));
        }
        let id = core.spaces.next_id(&core.next_space)?;
        if u64::from(id) >= core.control.lock().now.space_limit {
            let limit = u64::from(id) + SPACE_IDS;
            core.update_control(|c| c.space_limit = c.space_limit.max(limit));
        }
        Ok(id)
    }

    /// Opens `name.nfd`, checking that it is space `id`. Nothing to do if it is open. Blocks on the disk.
    pub fn open_space(&self, id: SpaceId, name: &str) -> Result<(), StoreError> {
        self.core.open_space(id, name)
    }

    /// Unlinks the file and forgets the pages in the background. Whoever still uses the space is told [`StoreError::SpaceGone`]; a mini-transaction
    /// that has reserved pages of it ends as if it were there.
    pub fn drop_space(&self, id: SpaceId) -> Result<(), StoreError> {
        let core = &*self.core;
        let space = core.spaces.remove(id).ok_or(StoreError::SpaceGone(id))?;
        if let Some(file) = space.take_private_file() {
            core.forget_private(space, file);
            return Ok(());
        }
        let name = format!("{}{}", space.name(), space::SUFFIX);
        let removed = core.disk.remove(&name).and_then(|()| core.disk.sync_dir());
        core.forget_later(space);
        removed.map_err(|e| StoreError::io(&e, format!("{name}: remove")))
    }

    /// A new file for what does not fit in memory. Blocks on the disk.
    pub fn scratch(&self) -> Result<Scratch, StoreError> {
        Scratch::create(&self.core.disk)
    }

    /// All space files: (id, name). Blocks on the disk. A file that cannot be read is an error: it is not that there is none.
    pub fn spaces_on_disk(&self) -> Result<Vec<(SpaceId, String)>, StoreError> {
        space::discover(&*self.core.disk)
    }

    /// The names of all files that are named as space files are, also of those with damaged headers, which are none. Blocks on the disk.
    pub fn space_names(&self) -> Result<Vec<String>, StoreError> {
        space::names(&*self.core.disk)
    }

    /// Pages of the space in use or once used: page numbers are below this.
    pub fn space_pages(&self, id: SpaceId) -> Result<u32, StoreError> {
        let space = self.core.spaces.look(id);
        let pages = space.map(|space| (space, space.pages.load(Ordering::Acquire)));
        let (_, pages) = pages
            .filter(|(space, _)| space.is(id))
            .ok_or(StoreError::SpaceGone(id))?;
        Ok(pages)
    }

    /// The page numbers on the space's free list, for checks at rest: nobody allocates or frees meanwhile. Blocks.
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

    /// Bytes that spaces take beside their pages: objects and page words.
    #[doc(hidden)]
    pub fn space_bytes(&self) -> usize {
        self.core.spaces.bytes()
    }

    /// Who waited where, of all that works on this store.
    pub fn contention(&self) -> &Arc<Contention> {
        &self.core.contention
    }

    /// An optimistic look at a page. Waits shortly while somebody changes it; `Wait` if it is not resident (its load is queued).
    /// A page number beyond the space's end is an error, which counts only once the page that named it is validated.
    #[inline]
    pub fn read(&self, id: PageId) -> Result<PageRef<'_>, Stop> {
        self.core.read(id)
    }

    /// The pages of one space, to look at many of them; `None` if it is not open.
    #[inline]
    pub fn pages_of(&self, space: SpaceId) -> Option<SpacePages<'_>> {
        let core = &*self.core;
        let (id, space) = (space, core.spaces.look(space)?);
        Some(SpacePages { core, space, id })
    }

    /// Resident: asks the CPU for the page's first lines. Otherwise queues its load. Never waits.
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

    /// Whether the page is in memory just now. Never queues a load.
    #[inline]
    pub fn is_resident(&self, id: PageId) -> bool {
        self.core.is_resident(id)
    }

    /// Queues the loads of all pages that are missing, neighbours as one read; over when all are done. `None` if none is missing. Pages
    /// that cannot be loaded are not waited for: reading them says why.
    pub fn wait_for(&self, ids: &[PageId]) -> Option<Wait> {
        let mut waits = Vec::new();
        self.core
            .load_many(ids, false, |load| waits.push(Wait::on(load, 0)));
        (self.core.threaded() && !waits.is_empty())
            .then(|| Wait::all(waits).watched(&self.core.contention, WaitKind::PageLoad))
    }

    /// Queues the loads of all pages that are missing, as [`wait_for`](Self::wait_for) does, for whoever is going to read them.
    pub fn start_loads(&self, ids: &[PageId]) {
        self.core.load_many(ids, false, |_| ());
    }

    /// Asks for pages that a scan will come to; waits for nothing, and such pages leave memory first. Gives how many were missing.
    pub fn read_ahead(&self, ids: &[PageId]) -> usize {
        let mut missing = 0;
        self.core.load_many(ids, true, |_| missing += 1);
        missing
    }

    /// At most `percent` of the pages in memory, the most used first.
    pub fn pages_in_memory(&self, percent: u32) -> Vec<PageId> {
        self.core.pages_in_memory(percent)
    }

    /// Loads those of `ids` that exist and are missing, neighbours together and behind what somebody waits for, and blocks until they are there.
    /// Gives how many were missing.
    pub fn warm(&self, ids: &[PageId]) -> usize {
        self.core.warm(ids)
    }

    /// How many missing pages one caller should ask for at a time: as many will still be there when it looks.
    pub fn load_batch(&self) -> usize {
        self.core.probation.batch()
    }

    pub fn mtr(&self) -> Mtr<'_> {
        Mtr::new(&self.core)
    }

    /// The filled prefix of the log.
    #[inline(always)]
    pub fn horizon(&self) -> Horizon<'_> {
        Horizon(self.core.log.filled.prefix.horizon_cell())
    }

    /// Everything below is on disk.
    pub fn durable_lsn(&self) -> Lsn {
        self.core.log.durable()
    }

    /// `None` if the log is durable up to `lsn`; otherwise asks for it, and gives what to wait for. In inline mode it is made
    /// durable in place.
    pub fn wait_durable(&self, lsn: Lsn) -> Option<Wait> {
        self.core.log.wait_durable(lsn)
    }

    /// Asks for the syncs that this thread has held back; see [`crate::gather_syncs`]. A thread that `may_block` for the time of a sync, because nothing
    /// else waits for it, makes the log durable itself where a sync is short and nobody else waits for one.
    pub fn settle_syncs(&self, may_block: bool) {
        self.core.log.request_held(may_block);
    }

    /// `None` if the horizon has reached `lsn`.
    pub fn wait_filled(&self, lsn: Lsn) -> Option<Wait> {
        self.core.log.wait_filled(lsn)
    }

    /// `None` if the log up to `lsn`, which the horizon has reached, is in the operating system's hands, without a sync: it survives the end of the process. Otherwise asks for
    /// that, and gives what to wait for. In inline mode it is written here.
    pub fn wait_written(&self, lsn: Lsn) -> Option<Wait> {
        self.core.log.wait_written(lsn)
    }

    /// Writes all pages that are dirty now and records a checkpoint; gives its LSN. Blocks: not for workers.
    pub fn checkpoint(&self) -> Result<Lsn, StoreError> {
        self.core.checkpoint_now()
    }

    /// Has the pool grow or shrink to `bytes` in the background: whole frames, at least 32, at most [`max_pool_bytes`](Self::max_pool_bytes).
    /// Gives the size that it will have. The last call wins.
    pub fn resize_pool(&self, bytes: u64) -> u64 {
        self.core.ask_size(bytes)
    }

    /// Page writes a second that background writing aims at, and goes up to under pressure.
    pub fn set_io_capacity(&self, low: u32, high: u32) {
        self.core.io_capacity.set(low, high);
    }

    /// What the pool can grow to.
    pub fn max_pool_bytes(&self) -> u64 {
        (self.core.frames.max() * PAGE_SIZE) as u64
    }

    /// Inline mode: one round of what the background threads would do. Gives whether there was anything to do.
    pub fn step_background(&self) -> Result<bool, StoreError> {
        let log = &self.core.log;
        let behind = log.durable() < log.horizon();
        log.sync_to(log.horizon());
        Ok(self.core.clean_round()? || behind)
    }

    /// An optimistic reader met a change and starts over.
    pub fn count_restart(&self) {
        self.core
            .counters
            .add(Count::OptimisticRestarts as usize, 1);
    }

    /// A reader met changes again and again, and takes a latch.
    pub fn count_latch_fallback(&self) {
        self.core.counters.add(Count::LatchFallbacks as usize, 1);
    }

    /// Address and length of the frames' mapping, for tests that make it read-only to prove that nobody writes there.
    #[doc(hidden)]
    pub fn frame_memory(&self) -> (usize, usize) {
        self.core.frames.memory()
    }

    pub fn status(&self) -> StoreStatus {
        self.core.status()
    }

    /// After opening: no transaction id at or above this was ever used by a change in the log or in a page it touched.
    pub fn next_trx_id_floor(&self) -> TrxId {
        self.core.trx_floor.load(Ordering::Relaxed)
    }

    /// Where checkpoints get the next transaction id from.
    pub fn set_trx_id_source(&self, source: impl Fn() -> TrxId + Send + Sync + 'static) {
        self.core.set_trx_source(Box::new(source));
    }
}

impl Drop for Store {
    /// Stops the threads, and writes nothing: what a crash would leave, less what was synced.
    fn drop(&mut self) {
        self.stop_threads();
    }
}

/// The pages of one open space. See [`Store::pages_of`].
#[derive(Copy, Clone)]
pub struct SpacePages<'a> {
    core: &'a Core,
    /// Where to look; whether it is this space's is told by every look anew.
    space: &'a space::Space,
    id: SpaceId,
}

/// Where a page's word is.
#[derive(Copy, Clone)]
pub struct WordRef<'a>(&'a PageWord);

impl<'a> SpacePages<'a> {
    /// Where the word of a page is, which says where the page is; asked for from memory, for [`peek_at`](Self::peek_at) a little later.
    #[inline(always)]
    pub fn word(self, page: PageNo) -> Option<WordRef<'a>> {
        let word = self.space.dir().get(page)?;
        words::prefetch_line(word);
        Some(WordRef(word))
    }

    /// The bytes of the page with this word if it is resident just now, to be asked for only: nothing read from them would count.
    #[inline(always)]
    pub fn resident_at(self, WordRef(word): WordRef<'a>) -> Option<&'a [AtomicU64; PAGE_WORDS]> {
        let frame = frame_of(word.load())?;
        self.core.frames.prefetch_mark(frame);
        Some(self.core.frames.words(frame))
    }

    /// An optimistic look at a page that is resident and not being changed just now. Never waits, never queues a load. Asks the CPU
    /// for what [`touch`](Self::touch) needs, which the caller calls later.
    #[inline(always)]
    pub fn peek(self, page: PageNo) -> Option<PageRef<'a>> {
        let word = self.space.dir().get(page)?;
        self.peek_at(WordRef(word), page)
    }

    /// As [`peek`](Self::peek), with the word of this page.
    #[inline(always)]
    pub fn peek_at(self, word: WordRef<'a>, page: PageNo) -> Option<PageRef<'a>> {
        let Glance { words, word, seen } = self.glance_at(word)?;
        let space = self.id;
        Some(PageRef {
            id: PageId { space, page },
            words,
            word,
            seen,
        })
    }

    /// As [`peek_at`](Self::peek_at), where the caller knows which page it is.
    #[inline(always)]
    pub fn glance_at(self, WordRef(word): WordRef<'a>) -> Option<Glance<'a>> {
        let seen = word.load();
        let frame = frame_of(seen)?;
        if is_exclusive(seen) || !self.space.is(self.id) {
            return None;
        }
        self.core.frames.prefetch_mark(frame);
        let words = self.core.frames.words(frame);
        Some(Glance { words, word, seen })
    }

    /// Marks the frame of a page that was [peeked](Self::peek) at as used.
    #[inline(always)]
    pub fn touch(self, page: &PageRef<'_>) {
        self.touch_seen(page.seen);
    }

    /// The same for one that was [glanced](Self::glance_at) at.
    #[inline(always)]
    pub fn touch_glanced(self, page: &Glance<'_>) {
        self.touch_seen(page.seen);
    }

    #[inline(always)]
    fn touch_seen(self, seen: u64) {
        if let Some(frame) = frame_of(seen)
            && self.core.frames.touch(frame)
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

    /// As [`read`](Self::read), when [`peek`](Self::peek) found nothing.
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
                // The word first: then it was this space's (T2 of `spaces`).
                if let Some(frame) = frame_of(seen)
                    && space.is(id.space)
                {
                    if self.frames.touch(frame) {
                        self.counters.add(Count::UsedMarks as usize, 1);
                    }
                    return Ok(PageRef {
                        id,
                        words: self.frames.words(frame),
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

    /// Sets the in-memory page count from page 0.
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
            let pages = words::load_u32(self.frames.words(frame), space::PAGES_OFF);
            if word.validate(seen) {
                space.pages.store(pages.max(1), Ordering::Release);
                return Ok(());
            }
        }
    }
}
