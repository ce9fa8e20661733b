//! Mini-transactions: the unit of atomic change of pages.
//!
//! # Picture
//! ```text
//! reserve (may wait) → latch pages (may wait) → write / op / alloc_page / free_page → commit
//!                                               each changes a page and appends a redo record
//! commit: reserve the log range, copy the records in, run the caller's function,
//!         stamp pages (LSN, rec_lsn), release latches, mark the range filled
//! ```
//! # Invariants
//! - I1: a changed mini-transaction is committed. Dropping it ends the process, because its changes
//!   cannot be undone.
//! - I2: after the first change, it does not wait for locks of the layers above, for I/O, or for
//!   space. All of these were reserved before.
//! - I3: a changed page stays latched until its LSN and `rec_lsn` are set.
//! - I4: a mini-transaction latches a page at most once.
//! # Concurrency
//! The latch order is: pages of one tree (leaves from left to right, then inner pages upwards), the
//! table's orphaned-page list, undo pages, overflow pages, header pages of spaces.
//!
//! [`Mtr::alloc_page`] and [`Mtr::free_page`] latch the header page of the space. So they come
//! after all other latches, one space at a time in ascending order of ids. [`Mtr::reserve`] may
//! latch a trunk page of the free list. That page has no place in the order, because no thread
//! waits for its latch. [`Mtr::upgrade`] and `try_latch` do not wait either.
//!
//! The order depends on the kind of page. A page number that is not protected by a latch (of the
//! parent, of the left sibling, of the page that contains it) may belong to any kind of page by the
//! time of the latch. So a thread that waits for the latch of such a page must hold no latch, and
//! must release it before it waits for another. Therefore a mini-transaction latches pages of one
//! tree only: the descent uses unprotected page numbers.

mod alloc;
mod reserve;

use crate::attachments;
use crate::core::{Core, Count};
use crate::error::{Stop, StoreError};
use crate::log::format;
use crate::page::{Lsn, PAGE_WORDS, PageId, PageMut, TrxId, header};
use crate::page_ref::PageRef;
use crate::redo;
use crate::space::Space;
use nfold_sync::page_word::{frame_of, is_exclusive};
use nfold_sync::prim::AtomicU64;
use nfold_sync::{PageWord, words};
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::sync::atomic::Ordering;

/// Buffers for records that are larger than this are not reused.
const KEEP_RECORDS: usize = 256 << 10;

thread_local! {
    static RECORDS: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
    static HERE: Cell<u32> = const { Cell::new(0) };
}

/// The number of mini-transactions that this thread has open. After a panic, this shows whether the
/// panic happened inside one.
pub fn mini_transactions_here() -> u32 {
    HERE.get()
}

/// A handle for a page that an [`Mtr`] has latched.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Latched(pub(crate) u32);

/// The log range of a committed mini-transaction. `start == end` if it changed nothing.
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

struct LatchedPage<'a> {
    id: PageId,
    word: &'a PageWord,
    words: &'a [AtomicU64; PAGE_WORDS],
    frame: u32,
    before: u64,
    state: State,
}

/// The reservations in one space.
struct Claim<'a> {
    space: &'a Space,
    pages: u32,
    trunk: Option<Latched>,
}

/// A mini-transaction. See the module header. Dropping it releases the latches if it changed
/// nothing; otherwise it ends the process.
pub struct Mtr<'a> {
    core: &'a Core,
    pages: SmallVec<[LatchedPage<'a>; 8]>,
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
        HERE.set(HERE.get() + 1);
        Mtr {
            core,
            pages: SmallVec::new(),
            records,
            log_claimed: 0,
            frames: SmallVec::new(),
            claims: SmallVec::new(),
        }
    }

    /// Latches a page exclusively, and waits while another thread holds the latch. Returns `Wait`
    /// if the page is not resident. Does nothing if this mini-transaction has already latched the
    /// page.
    pub fn latch(&mut self, id: PageId) -> Result<Latched, Stop> {
        if let Some(p) = self.find(id) {
            return Ok(p);
        }
        let space = self.space(id)?;
        self.latch_in(space, id)
    }

    /// As [`latch`](Self::latch), for a page of `space`.
    fn latch_in(&mut self, space: &'a Space, id: PageId) -> Result<Latched, Stop> {
        let core = self.core;
        loop {
            if let Some(word) = space.dir().get(id.page)
                && let Some(before) = core.latch_word(id, (space, word))
            {
                return Ok(self.hold(id, word, before));
            }
            core.miss(id)?;
        }
    }

    fn space(&self, id: PageId) -> Result<&'a Space, Stop> {
        let space = self.core.spaces.get(id.space);
        Ok(space.ok_or(StoreError::SpaceGone(id.space))?)
    }

    /// As [`latch`](Self::latch), for a page that this mini-transaction has not latched. Returns
    /// `None` instead of waiting for another holder.
    fn try_latch(&mut self, id: PageId) -> Result<Option<Latched>, Stop> {
        debug_assert!(self.find(id).is_none(), "I4: a page is latched once");
        let (core, space) = (self.core, self.space(id)?);
        loop {
            if let Some(word) = space.dir().get(id.page) {
                let seen = word.load();
                if is_exclusive(seen) {
                    return Ok(None);
                }
                if frame_of(seen).is_some() {
                    if !word.try_latch(seen) {
                        return Ok(None);
                    }
                    if space.is(id.space) {
                        return Ok(Some(self.hold(id, word, seen)));
                    }
                    word.release_unchanged(seen);
                }
            }
            core.miss(id)?;
        }
    }

    /// Whether this mini-transaction holds no latch.
    pub fn holds_nothing(&self) -> bool {
        self.pages.iter().all(|h| h.state == State::Released)
    }

    fn hold(&mut self, id: PageId, word: &'a PageWord, before: u64) -> Latched {
        let frame = frame_of(before).expect("a latched page is resident");
        self.core.counters.add(Count::LatchesAcquired as usize, 1);
        self.core.pool.frames.touch(frame);
        let words = self.core.pool.frames.words(frame);
        self.pages.push(LatchedPage {
            id,
            word,
            words,
            frame,
            before,
            state: State::Unchanged,
        });
        Latched(self.pages.len() as u32 - 1)
    }

    /// Latches a page that was read before, unless it has changed since.
    pub fn upgrade(&mut self, page: &PageRef<'_>) -> Option<Latched> {
        let id = page.id();
        if let Some(p) = self.find(id) {
            let held = self.held(p);
            return (held.before == page.seen && held.state == State::Unchanged).then_some(p);
        }
        // `try_latch` succeeds only if the page is still the one that was read, and so a page of
        // this space.
        let word = self.core.spaces.get(id.space)?.dir().get(id.page)?;
        if !std::ptr::eq(word, page.word) || !word.try_latch(page.seen) {
            return None;
        }
        Some(self.hold(id, word, page.seen))
    }

    /// The handle of page `id` if this mini-transaction has latched it.
    pub fn find(&self, id: PageId) -> Option<Latched> {
        let at = self
            .pages
            .iter()
            .position(|h| h.id == id && h.state != State::Released)?;
        Some(Latched(at as u32))
    }

    /// Releases a latch before the end. Panics if this mini-transaction has changed the page.
    pub fn unlatch(&mut self, p: Latched) {
        let held = &mut self.pages[p.0 as usize];
        assert!(
            held.state == State::Unchanged,
            "I3: a changed page stays latched until the end"
        );
        held.state = State::Released;
        held.word.release_unchanged(held.before);
    }

    fn held(&self, p: Latched) -> &LatchedPage<'a> {
        let held = &self.pages[p.0 as usize];
        debug_assert!(
            held.state != State::Released,
            "a released latch is not used"
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

    /// Changes page `p` with `apply`, and logs the change as `op`. `payload` is concatenated from
    /// its pieces.
    fn change(&mut self, p: Latched, op: u8, payload: &[&[u8]], apply: impl FnOnce(&PageMut<'_>)) {
        let held = &mut self.pages[p.0 as usize];
        assert!(held.state != State::Released, "I3: changes need the latch");
        held.state = State::Changed;
        format::push_record(&mut self.records, op, held.id, payload);
        apply(&PageMut::new(held.id, held.words));
    }

    /// Stores `bytes` at `off`, and logs them. They must lie within the page.
    pub fn write(&mut self, p: Latched, off: usize, bytes: &[u8]) {
        assert!(
            off + bytes.len() <= crate::PAGE_SIZE,
            "writes lie within the page"
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
        assert!(off + len <= crate::PAGE_SIZE, "writes lie within the page");
        let payload = [(off as u16).to_le_bytes(), (len as u16).to_le_bytes()];
        self.change(p, redo::ZERO, &[&payload[0], &payload[1]], |page| {
            page.fill_zero(off, len)
        });
    }

    /// Logs operation `op` (at least 0x20) with `payload` (less than 64 KiB), and applies it
    /// through the [`crate::RedoHandler`].
    pub fn op(&mut self, p: Latched, op: u8, payload: &[u8]) {
        self.op_pieces(p, op, &[payload]);
    }

    /// As [`op`](Self::op), with the payload in pieces.
    pub fn op_pieces(&mut self, p: Latched, op: u8, payload: &[&[u8]]) {
        assert!(
            op >= redo::FIRST_USER_OP,
            "ops below 0x20 belong to the store"
        );
        let held = &mut self.pages[p.0 as usize];
        assert!(held.state != State::Released, "I3: changes need the latch");
        held.state = State::Changed;
        let from = self.records.len() + format::RECORD_HEADER;
        format::push_record(&mut self.records, op, held.id, payload);
        let page = PageMut::new(held.id, held.words);
        if let Err(e) = self.core.redo.apply(op, &self.records[from..], &page) {
            self.core.die(&format!(
                "redo operation {op:#x} does not apply to page {}: {e}",
                page.id()
            ));
        }
    }

    /// Logs an attachment, for whose log bytes [`reserve`](Self::reserve) has made room.
    pub fn attach(&mut self, bytes: &[u8]) {
        for piece in bytes.chunks(attachments::PIECE) {
            let page = PageId { space: 0, page: 0 };
            format::push_record(&mut self.records, redo::ATTACHMENT, page, &[piece]);
        }
    }

    /// The log bytes of an attachment of `len` bytes, at most.
    pub fn attachment_log(len: usize) -> usize {
        len + format::RECORD_HEADER * (len / attachments::PIECE + 1)
    }

    /// Raises the page's newest transaction id to `id`, and logs that.
    pub fn set_newest_trx(&mut self, p: Latched, id: TrxId) {
        if self.u64(p, header::NEWEST_TRX) < id {
            self.change(p, redo::NEWEST_TRX, &[&id.to_le_bytes()], |page| {
                redo::raise_newest_trx(page, id)
            });
        }
    }

    /// Initializes `p`: its header, followed by zeros. For reusing a latched page.
    pub fn init_page(&mut self, p: Latched, page_type: u16, level: u16, index_id: u64) {
        let payload = redo::init_payload(page_type, level, index_id, 1);
        self.change(p, redo::INIT, &[&payload], |page| {
            redo::init(page, page_type, level, index_id, 1)
        });
    }

    /// Stores bytes that are only a hint. They are not logged, do not make the page dirty, and do
    /// not invalidate concurrent reads.
    pub fn write_hint(&mut self, p: Latched, off: usize, bytes: &[u8]) {
        words::store_bytes(self.words(p), off, bytes);
    }

    /// Whether anything was changed. If so, the mini-transaction must end with a commit.
    pub fn changed(&self) -> bool {
        !self.records.is_empty()
    }

    /// Removes the redo after the first `len` bytes, as if it had not been logged.
    #[cfg(feature = "planted")]
    pub fn unlog(&mut self, len: usize) {
        self.records.truncate(len);
    }

    /// The bytes of redo so far.
    pub fn log_len(&self) -> usize {
        self.records.len()
    }

    /// Appends the redo to the log, stamps the changed pages and releases all latches. Does not
    /// wait for the disk.
    ///
    /// The mini-transaction is empty afterwards, as a new one. It is not consumed, because a move
    /// would copy its lists of pages.
    pub fn commit(&mut self) -> MtrEnd {
        self.commit_with(|_| {})
    }

    /// As [`commit`](Self::commit). Calls `f` with the end LSN after the log range is reserved and
    /// before it is marked as filled. So the effects of `f` are visible to every thread that reads
    /// a horizon at or above that LSN. If nothing was changed, `f` receives the current horizon.
    pub fn commit_with(&mut self, f: impl FnOnce(Lsn)) -> MtrEnd {
        if !self.changed() {
            let lsn = self.core.log.horizon();
            f(lsn);
            self.release();
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
                    core.pool.frames.mark_dirty(held.frame, start);
                    held.word.release_changed(held.before);
                    held.state = State::Released;
                }
            }
        });
        self.records = records;
        self.records.clear();
        self.release();
        MtrEnd { start, end }
    }

    /// Whether there are latches or reservations. There are none after a commit.
    #[inline]
    fn holds_any(&self) -> bool {
        let held = self.pages.len() + self.frames.len() + self.claims.len();
        held as u64 + self.log_claimed != 0
    }

    /// Releases the latches, and gives back what was reserved and not used.
    fn release(&mut self) {
        for held in &self.pages {
            if held.state != State::Released {
                held.word.release_unchanged(held.before);
            }
        }
        self.pages.clear();
        for frame in &self.frames {
            self.core.give_frame(*frame);
        }
        self.frames.clear();
        if self.log_claimed != 0 {
            self.core.log.unclaim(std::mem::take(&mut self.log_claimed));
        }
        for claim in &self.claims {
            if claim.pages > 0 {
                claim.space.claimed.fetch_sub(claim.pages, Ordering::SeqCst);
            }
            self.core.unpin_header(claim.space);
        }
        self.claims.clear();
    }

    /// A corruption error that names a latched page.
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
        HERE.set(HERE.get().saturating_sub(1));
        if self.changed() {
            self.core.die("I1: a changed mini-transaction was dropped");
        }
        if self.holds_any() {
            self.release();
        }
        let records = std::mem::take(&mut self.records);
        if records.capacity() > 0 && records.capacity() <= KEEP_RECORDS {
            // Fails only while the thread's locals are being destroyed. Then the buffer is dropped.
            let _ = RECORDS.try_with(|pool| pool.borrow_mut().push(records));
        }
    }
}
