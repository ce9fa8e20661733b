//! Mini-transactions: the unit of atomic change.
//!
//! # Picture
//! ```text
//! reserve (may wait) → latch pages (may wait) → write / op / alloc_page / free_page → commit
//!                                                 └ each changes the page and appends a redo record to `records`
//! commit: reserve the log range, copy the records in, run the caller's function, stamp pages (LSN, rec_lsn),
//!         release latches, mark the range filled
//! ```
//! # Invariants
//! - I1: a changed mini-transaction is committed; dropping it ends the process, because its pages cannot be put back.
//! - I2: from the first change on nothing waits for a lock of the layers above, for I/O, or for space; all of that was reserved.
//! - I3: a changed page stays latched until its LSN and `rec_lsn` are set.
//! - I4: a page is latched at most once by a mini-transaction.
//! # Concurrency
//! Latch order: tree pages top-down and left to right → undo pages → space header pages. [`Mtr::alloc_page`] and
//! [`Mtr::free_page`] latch the header page of the space, so they come after all other latches, one space at a time in rising
//! order of ids.

use crate::core::{Core, Count};
use crate::error::{Stop, StoreError};
use crate::log::Short;
use crate::log::format;
use crate::page::{Lsn, PAGE_WORDS, PageId, PageMut, PageType, SpaceId, TrxId, header};
use crate::page_ref::PageRef;
use crate::redo;
use crate::space::{self, Space};
use crate::wait::Wait;
use nfold_sync::page_word::{frame_of, is_exclusive};
use nfold_sync::prim::AtomicU64;
use nfold_sync::{PageWord, words};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Log bytes that allocating one page takes at most, unless a trunk page is used up.
const ALLOC_LOG: usize = 160;
/// Log bytes that moving a trunk page into the header takes.
const TRUNK_LOG: usize = crate::PAGE_SIZE + 128;
/// Records buffers larger than this are not kept for reuse.
const KEEP_RECORDS: usize = 256 << 10;

thread_local! {
    static RECORDS: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// A page that an [`Mtr`] has latched: its index there.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Latched(pub(crate) u32);

/// The log range of a committed mini-transaction; `start == end` if it changed nothing.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct MtrEnd {
    pub start: Lsn,
    pub end: Lsn,
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum State {
    Unchanged,
    Changed,
    Released,
}

struct Held<'a> {
    id: PageId,
    word: &'a PageWord,
    words: &'a [AtomicU64; PAGE_WORDS],
    frame: u32,
    before: u64,
    state: State,
}

/// What was reserved in one space.
struct Claim<'a> {
    space: &'a Space,
    pages: u32,
    trunk: Option<Latched>,
}

/// See the module's header. Dropping it without changes releases the latches; with changes it ends the process.
pub struct Mtr<'a> {
    core: &'a Core,
    pages: SmallVec<[Held<'a>; 8]>,
    records: Vec<u8>,
    log_claimed: u64,
    frames: SmallVec<[u32; 4]>,
    claims: SmallVec<[Claim<'a>; 2]>,
}

impl<'a> Mtr<'a> {
    pub(crate) fn new(core: &'a Core) -> Self {
        let records = RECORDS
            .with_borrow_mut(|pool| pool.pop())
            .unwrap_or_default();
        Mtr {
            core,
            pages: SmallVec::new(),
            records,
            log_claimed: 0,
            frames: SmallVec::new(),
            claims: SmallVec::new(),
        }
    }

    /// Before the first change: log space for `log_bytes` of redo in all, and for `new_pages` calls of
    /// [`alloc_page`](Self::alloc_page) on `space` frames and file space (their own redo is added). Also needed before
    /// [`free_page`](Self::free_page) (with `new_pages` 0), because it makes the space's header page resident and keeps it so.
    /// May be called several times, for several spaces; not after a change.
    pub fn reserve(
        &mut self,
        log_bytes: usize,
        space: SpaceId,
        new_pages: usize,
    ) -> Result<(), Stop> {
        debug_assert!(!self.changed(), "I2: reserve before the first change");
        if self.core.stopping() {
            return Err(Stop::Error(StoreError::ShuttingDown));
        }
        let mut log_bytes =
            log_bytes + format::MTR_HEADER + format::ALIGN as usize + new_pages * ALLOC_LOG;
        let claim = self.claim_space(space)?;
        if new_pages > 0 {
            let pages = u32::try_from(new_pages).unwrap_or(u32::MAX);
            let fits =
                self.log_claimed + ((log_bytes + TRUNK_LOG) as u64) <= self.core.log.max_mtr();
            if fits && self.claim_trunk(claim, pages)? {
                log_bytes += TRUNK_LOG;
            }
            self.claim_pages(claim, pages)?;
            self.claim_frames(new_pages)?;
        }
        self.claim_log(log_bytes as u64)
    }

    fn claim_log(&mut self, bytes: u64) -> Result<(), Stop> {
        let core = self.core;
        let limit = core.log.max_mtr();
        if self.log_claimed + bytes > limit {
            return Err(Stop::Error(StoreError::TooLarge {
                what: "redo of one mini-transaction, bytes",
                limit,
            }));
        }
        for _ in 0..8 {
            let short = match core.log.try_claim(bytes) {
                Ok(()) => {
                    self.log_claimed += bytes;
                    return Ok(());
                }
                Err(short) => short,
            };
            core.log.counters.waits.fetch_add(1, Ordering::Relaxed);
            if core.threaded() {
                match short {
                    Short::Files => core.kick_cleaner(),
                    Short::Ring => core.log.want_write(),
                }
                return Err(Stop::Wait(Wait::on(core.log.room.clone(), bytes)));
            }
            match short {
                Short::Ring => core.log.write_out(),
                Short::Files => {
                    core.clean_below(core.log.checkpoint() + core.log.age() / 2, usize::MAX)?;
                }
            }
        }
        // The oldest dirty page is latched, perhaps by this very caller: it has to let go and come back.
        Err(Stop::Wait(Wait::ready()))
    }

    /// The claim on a space, with its header page resident and pinned. Gives its index.
    fn claim_space(&mut self, id: SpaceId) -> Result<usize, Stop> {
        let core = self.core;
        let at = match self.claims.iter().position(|c| c.space.id == id) {
            Some(at) => at,
            None => {
                let space = core.spaces.get(id).ok_or(StoreError::SpaceGone(id))?;
                core.pin_header(space);
                self.claims.push(Claim {
                    space,
                    pages: 0,
                    trunk: None,
                });
                self.claims.len() - 1
            }
        };
        core.resident(self.claims[at].space, space::header_page(id))?;
        Ok(at)
    }

    /// If the list in the header page is too short, latches the trunk page that continues it. Gives whether it did.
    fn claim_trunk(&mut self, claim: usize, pages: u32) -> Result<bool, Stop> {
        let Claim { space, trunk, .. } = &self.claims[claim];
        if trunk.is_some() {
            return Ok(false);
        }
        let id = space.id;
        let header = self.core.read(space::header_page(id))?;
        let (count, trunk) = (header.u32(space::COUNT_OFF), header.u32(space::TRUNK_OFF));
        if !header.validate() || count >= pages || trunk == 0 {
            return Ok(false); // without the trunk page, numbers come from the end of the space
        }
        let latched = self.latch(PageId::new(id, trunk))?;
        if self.u16(latched, header::PAGE_TYPE) != PageType::FREE_TRUNK {
            self.unlatch(latched);
            return Ok(false);
        }
        self.claims[claim].trunk = Some(latched);
        Ok(true)
    }

    /// Promises page numbers, with blocks in the file behind them.
    fn claim_pages(&mut self, claim: usize, pages: u32) -> Result<(), Stop> {
        let core = self.core;
        let space = self.claims[claim].space;
        let claimed = space
            .claimed
            .fetch_add(pages, Ordering::SeqCst)
            .saturating_add(pages);
        let needed = space.pages.load(Ordering::SeqCst).saturating_add(claimed);
        if needed <= space.file_pages.load(Ordering::SeqCst) {
            self.claims[claim].pages += pages;
            return Ok(());
        }
        if !core.threaded() {
            let grown = space.grow(needed, core.options.extend_bytes);
            if let Err(e) = grown {
                space.claimed.fetch_sub(pages, Ordering::SeqCst);
                return Err(Stop::Error(e));
            }
            self.claims[claim].pages += pages;
            return Ok(());
        }
        space.claimed.fetch_sub(pages, Ordering::SeqCst);
        Err(core.grow_later(space, needed))
    }

    fn claim_frames(&mut self, count: usize) -> Result<(), Stop> {
        let core = self.core;
        let limit = core.frames.count() / 4;
        if self.frames.len() + count > limit {
            return Err(Stop::Error(StoreError::TooLarge {
                what: "number of new pages of one mini-transaction",
                limit: limit as u64,
            }));
        }
        let want = self.frames.len() + count;
        while self.frames.len() < want {
            if core.threaded() {
                let freed = core.freed.get();
                match core.pop_free() {
                    Some(frame) => self.frames.push(frame),
                    None if core.evict(1) > 0 => {}
                    None => {
                        core.kick_cleaner();
                        return Err(Stop::Wait(Wait::on(core.freed.clone(), freed + 1)));
                    }
                }
            } else {
                self.frames.push(core.frame_blocking()?);
            }
        }
        Ok(())
    }

    /// Latches a page exclusively; sleeps while another holds it; `Wait` if it is not resident. A page latched already stays so.
    pub fn latch(&mut self, id: PageId) -> Result<Latched, Stop> {
        if let Some(p) = self.find(id) {
            return Ok(p);
        }
        let core = self.core;
        let space = core
            .spaces
            .get(id.space)
            .ok_or(StoreError::SpaceGone(id.space))?;
        loop {
            if let Some(word) = space.dir.get(id.page)
                && let Some(before) = core.latch_word(word)
            {
                return Ok(self.hold(id, word, before));
            }
            core.miss(id)?;
        }
    }

    fn hold(&mut self, id: PageId, word: &'a PageWord, before: u64) -> Latched {
        let frame = frame_of(before).expect("I: a latched page is resident");
        self.core.frames.touch(frame);
        let words = self.core.frames.words(frame);
        self.pages.push(Held {
            id,
            word,
            words,
            frame,
            before,
            state: State::Unchanged,
        });
        Latched(self.pages.len() as u32 - 1)
    }

    /// Latches the page that was read, if it is unchanged since.
    pub fn upgrade(&mut self, page: &PageRef<'_>) -> Option<Latched> {
        let id = page.id();
        if let Some(p) = self.find(id) {
            let held = self.held(p);
            return (held.before == page.seen && held.state == State::Unchanged).then_some(p);
        }
        let word = self.core.spaces.get(id.space)?.dir.get(id.page)?;
        if !std::ptr::eq(word, page.word) || !word.try_latch(page.seen) {
            return None;
        }
        Some(self.hold(id, word, page.seen))
    }

    /// The latch that this mini-transaction already has on `id`, if any.
    pub fn find(&self, id: PageId) -> Option<Latched> {
        let at = self
            .pages
            .iter()
            .position(|h| h.id == id && h.state != State::Released)?;
        Some(Latched(at as u32))
    }

    /// Releases a latch early. Panics if the page was changed by this mini-transaction.
    pub fn unlatch(&mut self, p: Latched) {
        let held = &mut self.pages[p.0 as usize];
        assert!(
            held.state == State::Unchanged,
            "I3: a changed page stays latched until the end"
        );
        held.state = State::Released;
        held.word.release_unchanged(held.before);
    }

    fn held(&self, p: Latched) -> &Held<'a> {
        let held = &self.pages[p.0 as usize];
        debug_assert!(
            held.state != State::Released,
            "I: a released latch is not used"
        );
        held
    }

    pub fn words(&self, p: Latched) -> &'a [AtomicU64] {
        self.held(p).words
    }

    pub fn id(&self, p: Latched) -> PageId {
        self.held(p).id
    }

    pub fn u8(&self, p: Latched, off: usize) -> u8 {
        words::load_u8(self.words(p), off)
    }

    pub fn u16(&self, p: Latched, off: usize) -> u16 {
        words::load_u16(self.words(p), off)
    }

    pub fn u32(&self, p: Latched, off: usize) -> u32 {
        words::load_u32(self.words(p), off)
    }

    pub fn u64(&self, p: Latched, off: usize) -> u64 {
        words::load_u64(self.words(p), off)
    }

    pub fn copy(&self, p: Latched, off: usize, out: &mut [u8]) {
        words::copy_out(self.words(p), off, out);
    }

    /// Changes page `p`, and logs it as `op` with `payload` in pieces.
    fn change(&mut self, p: Latched, op: u8, payload: &[&[u8]], apply: impl FnOnce(&PageMut<'_>)) {
        let held = &mut self.pages[p.0 as usize];
        assert!(held.state != State::Released, "I3: changes need the latch");
        held.state = State::Changed;
        format::push_record(&mut self.records, op, held.id, payload);
        apply(&PageMut::new(held.id, held.words));
    }

    /// Stores `bytes` at `off`, and logs them. They lie within the page.
    pub fn write(&mut self, p: Latched, off: usize, bytes: &[u8]) {
        assert!(
            off + bytes.len() <= crate::PAGE_SIZE,
            "I: writes lie within the page"
        );
        self.change(
            p,
            redo::WRITE,
            &[&(off as u16).to_le_bytes(), bytes],
            |page| page.write(off, bytes),
        );
    }

    /// Zeroes `[off, off + len)`, and logs that in a few bytes.
    pub fn zero(&mut self, p: Latched, off: usize, len: usize) {
        assert!(
            off + len <= crate::PAGE_SIZE,
            "I: writes lie within the page"
        );
        let payload = [(off as u16).to_le_bytes(), (len as u16).to_le_bytes()];
        self.change(p, redo::ZERO, &[&payload[0], &payload[1]], |page| {
            page.fill_zero(off, len)
        });
    }

    /// Logs `op` (0x20 and above) with `payload` (below 64 KiB), and applies it through the [`crate::RedoHandler`].
    pub fn op(&mut self, p: Latched, op: u8, payload: &[u8]) {
        assert!(
            op >= redo::FIRST_USER_OP,
            "ops below 0x20 belong to the store"
        );
        let core = self.core;
        self.change(p, op, &[payload], |page| {
            if let Err(e) = core.redo.apply(op, payload, page) {
                core.die(&format!(
                    "redo operation {op:#x} does not apply to page {}: {e}",
                    page.id()
                ));
            }
        });
    }

    /// Raises the page's newest transaction id to `id`; logged.
    pub fn set_newest_trx(&mut self, p: Latched, id: TrxId) {
        if self.u64(p, header::NEWEST_TRX) < id {
            self.change(p, redo::NEWEST_TRX, &[&id.to_le_bytes()], |page| {
                redo::raise_newest_trx(page, id)
            });
        }
    }

    /// Makes `p` a fresh page: zero but for its header. For reusing a page that is latched.
    pub fn init_page(&mut self, p: Latched, page_type: u16, level: u16, index_id: u64) {
        let payload = redo::init_payload(page_type, level, index_id, 1);
        self.change(p, redo::INIT, &[&payload], |page| {
            redo::init(page, page_type, level, index_id, 1)
        });
    }

    /// A new page, zero but for its header, latched. Reserved before; never fails.
    pub fn alloc_page(
        &mut self,
        space: SpaceId,
        page_type: u16,
        level: u16,
        index_id: u64,
    ) -> Latched {
        let at = self
            .claims
            .iter()
            .position(|c| c.space.id == space)
            .expect("I2: reserve() comes before alloc_page()");
        let claim = &mut self.claims[at];
        claim.pages = claim
            .pages
            .checked_sub(1)
            .expect("I2: no more pages are taken than were reserved");
        let space = claim.space;
        let page = self.take_number(at);
        space.claimed.fetch_sub(1, Ordering::SeqCst);
        let p = self.latch_new(space, PageId::new(space.id, page));
        self.init_page(p, page_type, level, index_id);
        self.core.counters.add(Count::PagesCreated as usize, 1);
        p
    }

    /// A page number: from the header's list, the trunk page, or the end of the space.
    fn take_number(&mut self, claim: usize) -> u32 {
        let (space, trunk) = (self.claims[claim].space, self.claims[claim].trunk);
        let h = self.latch_header(space);
        let count = self.u32(h, space::COUNT_OFF);
        if count > 0 {
            let page = self.u32(h, space::list_entry(count as usize - 1));
            self.write(h, space::COUNT_OFF, &(count - 1).to_le_bytes());
            return page;
        }
        if let Some(t) = trunk {
            self.claims[claim].trunk = None;
            if self.u32(h, space::TRUNK_OFF) == self.id(t).page {
                let mut list = vec![0u8; space::LIST_MAX * 4];
                self.copy(t, space::LIST_OFF, &mut list);
                self.write(h, space::LIST_OFF, &list);
                self.write(h, space::COUNT_OFF, &(space::LIST_MAX as u32).to_le_bytes());
                let next = self.u32(t, space::NEXT_TRUNK_OFF);
                self.write(h, space::TRUNK_OFF, &next.to_le_bytes());
                return self.id(t).page;
            }
        }
        let page = self.u32(h, space::PAGES_OFF);
        self.write(h, space::PAGES_OFF, &(page + 1).to_le_bytes());
        space.pages.fetch_max(page + 1, Ordering::SeqCst);
        page
    }

    /// The space's header page; resident, because `reserve` pinned it.
    fn latch_header(&mut self, space: &Space) -> Latched {
        loop {
            match self.latch(space::header_page(space.id)) {
                Ok(p) => return p,
                Err(Stop::Wait(wait)) => wait.block(),
                Err(Stop::Error(e)) => self.core.die(&format!(
                    "the header page of {} is unusable: {e}",
                    space.name
                )),
            }
        }
    }

    /// Latches a page whose old content does not matter, resident or not.
    fn latch_new(&mut self, space: &'a Space, id: PageId) -> Latched {
        if let Some(p) = self.find(id) {
            return p; // a trunk page that gave its own number
        }
        let word = space.dir.get_or_make(id.page);
        loop {
            if let Some(before) = self.core.latch_word(word) {
                return self.hold(id, word, before);
            }
            let seen = word.load();
            if is_exclusive(seen) || frame_of(seen).is_some() {
                continue;
            }
            let frame = *self
                .frames
                .last()
                .expect("I2: a frame was reserved for each new page");
            self.core.frames.set_page(frame, Some(id));
            self.core.frames.set_used(frame, 2);
            if let Some(before) = word.install_latched(seen, frame) {
                self.frames.pop();
                return self.hold(id, word, before);
            }
        }
    }

    /// Gives the page back to its space. It stays latched until the end.
    pub fn free_page(&mut self, p: Latched) {
        let id = self.id(p);
        assert!(id.page != 0, "I: a space's header page is never freed");
        debug_assert!(
            self.u16(p, header::PAGE_TYPE) != PageType::FREE,
            "I: a page is freed once"
        );
        let at = self
            .claims
            .iter()
            .position(|c| c.space.id == id.space)
            .expect("I2: reserve() comes before free_page()");
        let h = self.latch_header(self.claims[at].space);
        let count = self.u32(h, space::COUNT_OFF) as usize;
        if count < space::LIST_MAX {
            self.init_page(p, PageType::FREE, 0, 0);
            self.write(h, space::list_entry(count), &id.page.to_le_bytes());
            self.write(h, space::COUNT_OFF, &(count as u32 + 1).to_le_bytes());
            return;
        }
        let mut list = vec![0u8; space::LIST_MAX * 4];
        self.copy(h, space::LIST_OFF, &mut list);
        let next = self.u32(h, space::TRUNK_OFF);
        self.init_page(p, PageType::FREE_TRUNK, 0, 0);
        self.write(p, space::LIST_OFF, &list);
        self.write(p, space::NEXT_TRUNK_OFF, &next.to_le_bytes());
        self.write(h, space::TRUNK_OFF, &id.page.to_le_bytes());
        self.write(h, space::COUNT_OFF, &0u32.to_le_bytes());
    }

    /// Whether anything was changed: from then on only `commit` is allowed to end this.
    pub fn changed(&self) -> bool {
        !self.records.is_empty()
    }

    /// Bytes of redo so far.
    pub fn log_len(&self) -> usize {
        self.records.len()
    }

    /// Appends the redo to the log, stamps and releases the pages. Does not wait for the disk.
    pub fn commit(self) -> MtrEnd {
        self.commit_with(|_| {})
    }

    /// As [`commit`](Self::commit); `f` gets the end LSN after the log range is reserved, and runs before the range counts as
    /// filled: what it stores is visible to whoever reads a horizon at or past that LSN. If nothing was changed, `f` gets
    /// the current horizon.
    pub fn commit_with(mut self, f: impl FnOnce(Lsn)) -> MtrEnd {
        if !self.changed() {
            let lsn = self.core.log.horizon();
            f(lsn);
            return MtrEnd {
                start: lsn,
                end: lsn,
            };
        }
        let core = self.core;
        let claimed = std::mem::take(&mut self.log_claimed);
        let records = std::mem::take(&mut self.records);
        let (start, end) = core.log.append(&records, claimed, |start, end| {
            f(end);
            for held in &mut self.pages {
                if held.state == State::Changed {
                    words::store_u64(held.words, header::LSN, end);
                    core.frames.mark_dirty(held.frame, start);
                    held.word.release_changed(held.before);
                    held.state = State::Released;
                }
            }
        });
        self.records = records;
        self.records.clear();
        MtrEnd { start, end }
    }

    /// A corruption error about a latched page.
    pub fn corrupt(&self, p: Latched, what: &'static str) -> StoreError {
        StoreError::Corrupt {
            page: self.id(p),
            lsn: self.u64(p, header::LSN),
            what,
        }
    }
}

impl Drop for Mtr<'_> {
    fn drop(&mut self) {
        if self.changed() {
            self.core.die("I1: a changed mini-transaction was dropped");
        }
        for held in &self.pages {
            if held.state != State::Released {
                held.word.release_unchanged(held.before);
            }
        }
        for frame in &self.frames {
            self.core.give_frame(*frame);
        }
        self.core.log.unclaim(self.log_claimed);
        for claim in &self.claims {
            if claim.pages > 0 {
                claim.space.claimed.fetch_sub(claim.pages, Ordering::SeqCst);
            }
            claim.space.pins.fetch_sub(1, Ordering::SeqCst);
        }
        let records = std::mem::take(&mut self.records);
        if records.capacity() > 0 && records.capacity() <= KEEP_RECORDS {
            // Fails only while the thread's locals are torn down: the buffer is then simply dropped.
            let _ = RECORDS.try_with(|pool| pool.borrow_mut().push(records));
        }
    }
}

impl Core {
    /// Latches a resident page; counts when it had to wait.
    pub(crate) fn latch_word(&self, word: &PageWord) -> Option<u64> {
        if is_exclusive(word.load()) {
            self.counters.add(Count::LatchWaits as usize, 1);
        }
        word.latch_resident()
    }

    /// Makes a page resident, or says what to wait for.
    fn resident(&self, space: &Space, id: PageId) -> Result<(), Stop> {
        loop {
            if let Some(word) = space.dir.get(id.page)
                && frame_of(word.begin_read()).is_some()
            {
                return Ok(());
            }
            self.miss(id)?;
        }
    }

    /// Has an I/O thread grow a space's file to `pages`; the answer to the caller.
    fn grow_later(&self, space: &Space, pages: u32) -> Stop {
        let Some(space) = self.spaces.arc(space.id) else {
            return Stop::Error(StoreError::SpaceGone(space.id));
        };
        let mut growth = space.growth.lock();
        if let Some(error) = growth.error.take() {
            return Stop::Error(error);
        }
        let load = match &growth.running {
            Some(load) => load.clone(),
            None => {
                let load = Arc::new(crate::pool::load::Load::default());
                growth.running = Some(load.clone());
                self.jobs.push(crate::pool::load::Job::Grow(
                    space.clone(),
                    pages,
                    load.clone(),
                ));
                load
            }
        };
        Stop::Wait(Wait::on(load, 0))
    }
}
