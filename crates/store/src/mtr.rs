//! Mini-transactions: the unit of atomic change.

use crate::error::{Stop, StoreError};
use crate::page::{Lsn, PageId, SpaceId, TrxId};
use crate::page_ref::PageRef;
use crate::store::Store;
use nfold_sync::prim::AtomicU64;

/// A page that an [`Mtr`] has latched: its index there.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Latched(pub(crate) u32);

/// The log range of a committed mini-transaction; `start == end` if it changed nothing.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct MtrEnd {
    pub start: Lsn,
    pub end: Lsn,
}

/// See the module's header. Dropping it without changes releases the latches; with changes it ends the process.
pub struct Mtr<'a> {
    store: &'a Store,
}

impl<'a> Mtr<'a> {
    pub(crate) fn new(store: &'a Store) -> Self {
        Mtr { store }
    }

    /// Before the first change: log space for `log_bytes` of redo in all, and for `new_pages` calls of
    /// [`alloc_page`](Self::alloc_page) on `space` frames and file space. Also needed before [`free_page`](Self::free_page)
    /// (with `new_pages` 0), because it makes the space's header page resident and keeps it so. May be called several times (several spaces).
    pub fn reserve(
        &mut self,
        log_bytes: usize,
        space: SpaceId,
        new_pages: usize,
    ) -> Result<(), Stop> {
        let _ = (log_bytes, space, new_pages, self.store);
        todo!()
    }

    /// Latches a page exclusively; sleeps while another holds it; `Wait` if it is not resident.
    pub fn latch(&mut self, id: PageId) -> Result<Latched, Stop> {
        let _ = id;
        todo!()
    }

    /// Latches the page that was read, if it is unchanged since.
    pub fn upgrade(&mut self, page: &PageRef<'_>) -> Option<Latched> {
        let _ = page;
        todo!()
    }

    /// The latch that this mini-transaction already has on `id`, if any.
    pub fn find(&self, id: PageId) -> Option<Latched> {
        let _ = id;
        todo!()
    }

    /// Releases a latch early. Panics if the page was changed by this mini-transaction.
    pub fn unlatch(&mut self, p: Latched) {
        let _ = p;
        todo!()
    }

    pub fn words(&self, p: Latched) -> &'a [AtomicU64] {
        let _ = p;
        todo!()
    }

    pub fn id(&self, p: Latched) -> PageId {
        let _ = p;
        todo!()
    }

    pub fn u8(&self, p: Latched, off: usize) -> u8 {
        nfold_sync::words::load_u8(self.words(p), off)
    }

    pub fn u16(&self, p: Latched, off: usize) -> u16 {
        nfold_sync::words::load_u16(self.words(p), off)
    }

    pub fn u32(&self, p: Latched, off: usize) -> u32 {
        nfold_sync::words::load_u32(self.words(p), off)
    }

    pub fn u64(&self, p: Latched, off: usize) -> u64 {
        nfold_sync::words::load_u64(self.words(p), off)
    }

    pub fn copy(&self, p: Latched, off: usize, out: &mut [u8]) {
        nfold_sync::words::copy_out(self.words(p), off, out);
    }

    /// Stores `bytes` at `off`, and logs them.
    pub fn write(&mut self, p: Latched, off: usize, bytes: &[u8]) {
        let _ = (p, off, bytes);
        todo!()
    }

    /// Logs `op` (0x20 and above) with `payload` (below 64 KiB), and applies it through the [`crate::RedoHandler`].
    pub fn op(&mut self, p: Latched, op: u8, payload: &[u8]) {
        let _ = (p, op, payload);
        todo!()
    }

    /// Raises the page's newest transaction id to `id`; logged.
    pub fn set_newest_trx(&mut self, p: Latched, id: TrxId) {
        let _ = (p, id);
        todo!()
    }

    /// A new page, zero but for its header, latched. Reserved before; never fails.
    pub fn alloc_page(
        &mut self,
        space: SpaceId,
        page_type: u16,
        level: u16,
        index_id: u64,
    ) -> Latched {
        let _ = (space, page_type, level, index_id);
        todo!()
    }

    /// Gives the page back to its space. It stays latched until the end.
    pub fn free_page(&mut self, p: Latched) {
        let _ = p;
        todo!()
    }

    /// Whether anything was changed: from then on only `commit` is allowed to end this.
    pub fn changed(&self) -> bool {
        todo!()
    }

    /// Appends the redo to the log, stamps and releases the pages. Does not wait for the disk.
    pub fn commit(self) -> MtrEnd {
        self.commit_with(|_| {})
    }

    /// As [`commit`](Self::commit); `f` gets the end LSN after the log range is reserved, and runs before the range counts as
    /// filled: what it stores is visible to whoever reads a horizon at or past that LSN. If nothing was changed, `f` gets
    /// the current horizon.
    pub fn commit_with(self, f: impl FnOnce(Lsn)) -> MtrEnd {
        let _ = f;
        todo!()
    }

    /// A corruption error about a latched page.
    pub fn corrupt(&self, p: Latched, what: &'static str) -> StoreError {
        StoreError::Corrupt {
            page: self.id(p),
            lsn: self.u64(p, crate::page::header::LSN),
            what,
        }
    }
}
