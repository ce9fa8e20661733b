//! Appending to the streams, ending transactions, and freeing pages.

use super::pages::PageUse;
use super::record::{
    FLAG_LONG, FLAG_QUIET, HEADER, MAX_BODY, OldVersion, RowChange, SHORT, UndoHeader, UndoKind,
    UndoPtr,
};
use super::spaces::{Turning, UndoSpaces, file_of};
use super::{
    CAPACITY, LONG_CAPACITY, LONG_LEN, LONG_NEXT, LONG_TRX, OP_APPEND, RECORDS, UNDO_OVERFLOW, USED,
};
use crate::error::{Step, TxnError, is_damage};
use nfold_store::{
    Latched, Lsn, Mtr, PAGE_HEADER, PageId, PageNo, PageType, SpaceId, Stop, Store, TrxId,
};
use nfold_sync::CachePadded;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Log bytes of a record's redo beyond the record itself, and of a new page.
const LOG_OVERHEAD: usize = 256;
/// Row changes in one transaction.
const MAX_CHANGES: u32 = u32::MAX - 1;

#[derive(Default)]
struct Stream {
    /// The page that records are appended to; 0 if there is none yet. Changed under its latch.
    current: AtomicU32,
    /// Transactions that ended, in the order of their ends.
    ended: Mutex<VecDeque<Ended>>,
}

/// The pages of one transaction, in order. Short ones need no allocation.
pub(crate) type PageList = SmallVec<[PageNo; 4]>;

/// A transaction that ended, until it is purged.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ended {
    /// LSN of the end.
    pub end: Lsn,
    pub id: TrxId,
    pub committed: bool,
    /// Found at start: it may have been purged before.
    pub recovered: bool,
    /// Purge has nothing to do for any of its records.
    pub quiet: bool,
    /// The last row record that was not undone.
    pub head: UndoPtr,
    /// Pages with its records, in order; the last has its end.
    pub pages: PageList,
}

/// A transaction's side of the undo log.
#[derive(Clone, Debug, Default)]
pub struct TrxUndo {
    pub(crate) id: TrxId,
    /// The last row record that was not undone.
    pub(crate) head: UndoPtr,
    /// The number of the last record, 0 before the first.
    pub(crate) undo_no: u32,
    /// Purge has something to do for one of its records.
    pub(crate) loud: bool,
    /// It has a prepare record that was not taken back.
    pub(crate) prepared: bool,
    pub(crate) stream: usize,
    pub(crate) pages: PageList,
}

impl TrxUndo {
    /// The header of a short record that is about the transaction, and not about a row.
    #[inline]
    fn header(&self, kind: UndoKind) -> UndoHeader {
        UndoHeader {
            len: SHORT as u16,
            kind,
            flags: 0,
            undo_no: self.undo_no + 1,
            trx_id: self.id,
            table_id: 0,
            prev_of_trx: self.head,
            old: OldVersion::default(),
            key_len: 0,
            body_len: 0,
            first_long: 0,
        }
    }
}

/// Room for records: the stream's page is latched, or a new one is reserved. See
/// [`UndoLog::prepare`].
#[derive(Debug)]
pub struct UndoPrep {
    page: Option<Latched>,
    /// The next record does not fit in `page`, or there is none.
    new_page: bool,
    /// The length of all bodies that are still to come, in bytes.
    body_len: usize,
    /// The file that new pages come from.
    space: SpaceId,
    /// Until the new pages are counted.
    turning: Option<Turning>,
}

/// See the parent module. One per engine.
pub struct UndoLog {
    pub(super) store: Arc<Store>,
    pub(super) spaces: UndoSpaces,
    streams: Box<[CachePadded<Stream>]>,
    pub(super) pages: PageUse,
}

/// Fails if the transaction has no numbers left for `more` changes. The end record takes one more.
fn check_changes(trx: &TrxUndo, more: usize) -> Result<(), TxnError> {
    if trx.undo_no as usize + more > MAX_CHANGES as usize {
        let (what, limit) = ("row changes in a transaction", MAX_CHANGES as u64);
        return Err(TxnError::TooLarge { what, limit });
    }
    Ok(())
}

fn long_pages(body_len: usize) -> usize {
    if HEADER + body_len <= CAPACITY {
        0
    } else {
        body_len.div_ceil(LONG_CAPACITY)
    }
}

impl UndoLog {
    pub(crate) fn new(store: Arc<Store>, spaces: UndoSpaces, streams: usize) -> UndoLog {
        UndoLog {
            store,
            spaces,
            streams: (0..streams.max(1))
                .map(|_| CachePadded::default())
                .collect(),
            pages: PageUse::default(),
        }
    }

    pub(super) fn id(&self, page: PageNo) -> PageId {
        self.spaces.id(page)
    }

    /// The files.
    pub(crate) fn spaces(&self) -> &UndoSpaces {
        &self.spaces
    }

    /// Whether a stream appends to this file.
    pub(super) fn appends_to(&self, file: usize) -> bool {
        let in_file = |page| page != 0 && file_of(page) == file;
        self.streams
            .iter()
            .any(|s| in_file(s.current.load(Ordering::SeqCst)))
    }

    /// Makes every stream that appends to this file take a new page next.
    pub(super) fn leave_file(&self, file: usize) -> Step<()> {
        for stream in &self.streams {
            let page = stream.current.load(Ordering::Acquire);
            if page == 0 || file_of(page) != file {
                continue;
            }
            let mut mtr = self.store.mtr();
            let latched = mtr.latch(self.id(page)).map_err(Stop::lift)?;
            let (exchanged, order) = (Ordering::SeqCst, Ordering::Relaxed);
            let left = stream.current.compare_exchange(page, 0, exchanged, order);
            if left.is_ok() {
                self.pages.seal(page);
            }
            mtr.unlatch(latched);
        }
        Ok(())
    }

    /// The stream for a session.
    pub(crate) fn stream_for(&self, session_slot: u32) -> usize {
        session_slot as usize % self.streams.len()
    }

    /// Makes room in `mtr` for one record with a body of `body_len` bytes, so that
    /// [`append`](Self::append) cannot wait or fail. Called once, after all tree pages are latched
    /// and before the first change.
    pub fn prepare(&self, mtr: &mut Mtr<'_>, trx: &TrxUndo, body_len: usize) -> Step<UndoPrep> {
        check_changes(trx, 1)?;
        self.prepare_len(mtr, trx, HEADER, body_len)
    }

    /// As [`prepare`](Self::prepare), for several records whose bodies have the lengths `bodies`:
    /// for as many of the first as fit in one page, and at least for one. Also returns their
    /// number.
    pub fn prepare_several(
        &self,
        mtr: &mut Mtr<'_>,
        trx: &TrxUndo,
        bodies: &[usize],
    ) -> Step<(UndoPrep, usize)> {
        check_changes(trx, bodies.len())?;
        let page = self.latch_current(mtr, trx.stream)?;
        let used = page.map_or(CAPACITY, |page| mtr.u16(page, USED) as usize);
        let fitting = |room: usize| {
            let ends = bodies.iter().scan(0, |end, body| {
                *end += HEADER + body;
                Some(*end)
            });
            ends.take_while(|end| *end <= room).count()
        };
        let count = match fitting(CAPACITY.saturating_sub(used)) {
            0 => fitting(CAPACITY).max(1),
            count => count,
        };
        let body_len: usize = bodies[..count].iter().sum();
        let prep = self.prepare_len(mtr, trx, count * HEADER, body_len)?;
        Ok((prep, count))
    }

    fn prepare_len(
        &self,
        mtr: &mut Mtr<'_>,
        trx: &TrxUndo,
        header: usize,
        body_len: usize,
    ) -> Step<UndoPrep> {
        if body_len > MAX_BODY {
            return Err(TxnError::TooLarge {
                what: "undo record",
                limit: MAX_BODY as u64,
            }
            .into());
        }
        let long = long_pages(body_len);
        let in_page = header + if long > 0 { 0 } else { body_len };
        let page = self.latch_current(mtr, trx.stream)?;
        let fits = page.is_some_and(|p| mtr.u16(p, USED) as usize + in_page <= CAPACITY);
        let new_pages = long + usize::from(!fits);
        let (space, turning) = match page {
            Some(page) if new_pages == 0 => (mtr.id(page).space, None),
            _ => {
                let (space, turning) = self.spaces.turn();
                (space, Some(turning))
            }
        };
        let bytes = LOG_OVERHEAD * (new_pages + 1) + header + body_len;
        mtr.reserve(bytes, space, new_pages).map_err(Stop::lift)?;
        Ok(UndoPrep {
            page,
            new_page: !fits,
            body_len,
            space,
            turning,
        })
    }

    fn latch_current(&self, mtr: &mut Mtr<'_>, stream: usize) -> Step<Option<Latched>> {
        let current = &self.streams[stream].current;
        loop {
            let page = current.load(Ordering::Acquire);
            if page == 0 {
                return Ok(None);
            }
            if let Some(latched) = mtr.find(self.id(page)) {
                return Ok(Some(latched));
            }
            let latched = mtr.latch(self.id(page)).map_err(Stop::lift)?;
            if current.load(Ordering::Acquire) == page {
                return Ok(Some(latched));
            }
            mtr.unlatch(latched);
        }
    }

    /// Appends the record of a row change that `mtr` makes, and gives the undo pointer for the
    /// row's new version.
    pub fn append(
        &self,
        mtr: &mut Mtr<'_>,
        prep: &mut UndoPrep,
        trx: &mut TrxUndo,
        change: &RowChange<'_>,
    ) -> UndoPtr {
        debug_assert!(
            change.kind.is_row() && trx.id != 0,
            "a row change of a transaction with an id"
        );
        assert!(
            change.body_len() <= prep.body_len,
            "the record fits in what was prepared"
        );
        prep.body_len -= change.body_len();
        let long = long_pages(change.body_len()) > 0;
        let header = UndoHeader {
            len: (HEADER + if long { 0 } else { change.body_len() }) as u16,
            kind: change.kind,
            flags: if long { FLAG_LONG } else { 0 } | if change.quiet { FLAG_QUIET } else { 0 },
            undo_no: trx.undo_no + 1,
            trx_id: trx.id,
            table_id: change.table_id,
            prev_of_trx: trx.head,
            old: change.old,
            key_len: change.key.len() as u16,
            body_len: change.body_len() as u32,
            first_long: 0,
        };
        let ptr = self.append_record(mtr, prep, trx, header, (change.key, change.image));
        trx.head = ptr;
        trx.loud |= !change.quiet;
        ptr
    }

    fn append_record(
        &self,
        mtr: &mut Mtr<'_>,
        prep: &mut UndoPrep,
        trx: &mut TrxUndo,
        mut header: UndoHeader,
        (first, second): (&[u8], &[u8]),
    ) -> UndoPtr {
        let latched = match prep.page {
            Some(page) if !prep.new_page => page,
            _ => self.turn_page(mtr, prep.space, trx),
        };
        (prep.page, prep.new_page) = (Some(latched), false);
        let page = self.spaces.number(mtr, latched);
        let offset = (RECORDS + mtr.u16(latched, USED) as usize) as u16;
        if header.is_long() {
            let owner = (page, offset);
            let body = [first, second].concat();
            header.first_long = self.append_long(mtr, prep.space, owner, &header, &body);
        }
        prep.turning = None;
        let bytes = &header.encode()[..header.encoded_len()];
        let (first, second) = match header.is_long() {
            true => (&[][..], &[][..]),
            false => (first, second),
        };
        debug_assert_eq!(
            bytes.len() + first.len() + second.len(),
            header.len as usize
        );
        mtr.op_pieces(latched, OP_APPEND, &[bytes, first, second]);
        if trx.pages.last() != Some(&page) {
            self.pages.pin(page);
            trx.pages.push(page);
        }
        trx.undo_no = header.undo_no;
        UndoPtr::new(page, offset, header.undo_no)
    }

    /// Starts a new current page for the transaction's stream. The caller has latched the old one,
    /// if any, so no other thread appends to it.
    fn turn_page(&self, mtr: &mut Mtr<'_>, space: SpaceId, trx: &mut TrxUndo) -> Latched {
        let latched = mtr.alloc_page(space, PageType::UNDO, 0, 0);
        let page = self.spaces.number(mtr, latched);
        // Counted before it is known to others: when two find no page after a start, the second
        // seals the first one's.
        self.pages.pin(page);
        trx.pages.push(page);
        let old = self.streams[trx.stream]
            .current
            .swap(page, Ordering::AcqRel);
        if old != 0 {
            self.pages.seal(old);
        }
        latched
    }

    /// Writes a body into overflow pages, last part first, and gives the first page's number.
    fn append_long(
        &self,
        mtr: &mut Mtr<'_>,
        space: SpaceId,
        (owner, offset): (PageNo, u16),
        h: &UndoHeader,
        body: &[u8],
    ) -> PageNo {
        let mut pages = Vec::new();
        let mut next: PageNo = 0;
        for part in body.chunks(LONG_CAPACITY).rev() {
            let latched = mtr.alloc_page(space, UNDO_OVERFLOW, 0, 0);
            let mut bytes = Vec::with_capacity(24 + part.len());
            bytes.extend_from_slice(&h.trx_id.to_le_bytes());
            bytes.extend_from_slice(&owner.to_le_bytes());
            bytes.extend_from_slice(&offset.to_le_bytes());
            bytes.extend_from_slice(&(part.len() as u16).to_le_bytes());
            bytes.extend_from_slice(&next.to_le_bytes());
            bytes.extend_from_slice(&h.undo_no.to_le_bytes());
            debug_assert_eq!((LONG_LEN, LONG_NEXT), (LONG_TRX + 14, LONG_TRX + 16));
            bytes.extend_from_slice(part);
            mtr.write(latched, PAGE_HEADER, &bytes);
            next = self.spaces.number(mtr, latched);
            pages.push(next);
        }
        self.pages.add_long(owner, &pages);
        next
    }

    /// Appends a prepare record with a name and a description, and commits `mtr`. `ended` runs with
    /// the end of the record in the log, before the horizon gets there. Returns that end. The room
    /// was made by [`prepare`](Self::prepare).
    pub(crate) fn append_prepare(
        &self,
        mtr: &mut Mtr<'_>,
        mut prep: UndoPrep,
        trx: &mut TrxUndo,
        (name, about): (&[u8], &[u8]),
        ended: impl FnOnce(Lsn),
    ) -> Lsn {
        let body_len = name.len() + about.len();
        let long = long_pages(body_len) > 0;
        let header = UndoHeader {
            len: (HEADER + if long { 0 } else { body_len }) as u16,
            flags: if long { FLAG_LONG } else { 0 },
            key_len: name.len() as u16,
            body_len: body_len as u32,
            ..trx.header(UndoKind::Prepare)
        };
        self.append_record(mtr, &mut prep, trx, header, (name, about));
        trx.prepared = true;
        mtr.commit_with(ended).end
    }

    /// Appends the record that takes a prepare record back, and commits `mtr`. `ended` as in
    /// [`append_prepare`](Self::append_prepare). The room was made by
    /// [`prepare_end`](Self::prepare_end).
    pub(crate) fn append_unprepare(
        &self,
        mtr: &mut Mtr<'_>,
        mut prep: UndoPrep,
        trx: &mut TrxUndo,
        ended: impl FnOnce(Lsn),
    ) {
        let header = trx.header(UndoKind::Unprepare);
        self.append_record(mtr, &mut prep, trx, header, (&[], &[]));
        mtr.commit_with(ended);
        trx.prepared = false;
    }

    /// Makes room for a commit or end record.
    pub(crate) fn prepare_end(&self, mtr: &mut Mtr<'_>, trx: &TrxUndo) -> Step<UndoPrep> {
        self.prepare_len(mtr, trx, SHORT, 0)
    }

    /// As [`prepare_end`](Self::prepare_end), with room for an attachment of `len` bytes.
    pub(crate) fn prepare_end_with(
        &self,
        mtr: &mut Mtr<'_>,
        trx: &TrxUndo,
        len: usize,
    ) -> Step<UndoPrep> {
        let prep = self.prepare_end(mtr, trx)?;
        self.reserve_attachment(mtr, &prep, len)?;
        Ok(prep)
    }

    /// Makes room for an attachment of `len` bytes beside a record.
    pub(crate) fn reserve_attachment(
        &self,
        mtr: &mut Mtr<'_>,
        prep: &UndoPrep,
        len: usize,
    ) -> Step<()> {
        let bytes = Mtr::attachment_log(len);
        mtr.reserve(bytes, prep.space, 0).map_err(Stop::lift)
    }

    /// Ends a transaction with a commit or end record and commits `mtr`. `ended` runs with the LSN
    /// of the end, before the horizon gets there.
    pub(crate) fn end(
        &self,
        mtr: &mut Mtr<'_>,
        mut prep: UndoPrep,
        trx: &mut TrxUndo,
        committed: bool,
        ended: impl FnOnce(Lsn),
    ) -> Lsn {
        let kind = match committed {
            true => UndoKind::Commit,
            false => UndoKind::End,
        };
        let header = trx.header(kind);
        self.append_record(mtr, &mut prep, trx, header, (&[], &[]));
        let mut entry = Ended {
            end: 0,
            id: trx.id,
            committed,
            recovered: false,
            quiet: !trx.loud,
            head: trx.head,
            pages: std::mem::take(&mut trx.pages),
        };
        let stream = &self.streams[trx.stream];
        // The stream's page is latched until the commit is over, so entries come in the order of
        // their ends.
        let done = mtr.commit_with(|end| {
            entry.end = end;
            ended(end);
            stream.ended.lock().push_back(entry);
        });
        done.end
    }

    /// Transactions found at start that ended before; they are purged again.
    pub(crate) fn add_recovered(&self, entries: Vec<Ended>) {
        self.streams[0].ended.lock().extend(entries);
    }

    /// Everything that ended at or below `floor`, in the order of the ends.
    pub(crate) fn take_ended(&self, floor: Lsn) -> VecDeque<Ended> {
        let mut out = Vec::new();
        for stream in &self.streams {
            // Commits wait for this mutex: nothing is moved one by one under it.
            let taken = {
                let mut ended = stream.ended.lock();
                let count = ended.partition_point(|e| e.end <= floor);
                if count == 0 {
                    continue;
                }
                let rest = ended.split_off(count);
                std::mem::replace(&mut *ended, rest)
            };
            out.extend(taken);
        }
        out.sort_by_key(|e| e.end);
        out.into()
    }

    /// How many ended transactions wait to be taken.
    pub(crate) fn ended_count(&self) -> usize {
        self.streams.iter().map(|s| s.ended.lock().len()).sum()
    }

    /// Releases the pages of a purged transaction, which are freed when no other transaction needs
    /// them (U3, U4).
    pub(crate) fn release(&self, ended: &Ended) {
        let Some((last, others)) = ended.pages.split_last() else {
            return;
        };
        for page in others {
            self.pages.hold(*page, *last);
        }
        for page in &ended.pages {
            self.pages.unpin(*page);
        }
    }

    /// Frees one unused page. Returns whether there was one.
    pub(crate) fn free_one(&self) -> Step<bool> {
        let Some((page, long)) = self.pages.next_free() else {
            return Ok(false);
        };
        let damaged = |stop: &Stop<TxnError>| matches!(stop, Stop::Error(e) if is_damage(e));
        for long in long {
            match self.free_page(long, || ()) {
                // The page stays allocated; no pointer leads to it any more.
                Err(stop) if damaged(&stop) => {}
                other => other?,
            }
            self.pages.freed_long(page, long);
        }
        // Forgotten before the space may give the page out again: its next owner counts on it from
        // the start.
        match self.free_page(page, || self.pages.freed(page)) {
            // U3: the pages that must be freed before it stay as well.
            Err(stop) if damaged(&stop) => self.pages.set_aside(page),
            other => other?,
        }
        Ok(true)
    }

    /// Takes the page that [`free_one`](Self::free_one) failed with from those that can be freed.
    pub(crate) fn set_aside_free(&self) -> Option<PageNo> {
        let (page, _) = self.pages.next_free()?;
        self.pages.set_aside(page);
        Some(page)
    }

    /// A page that was set aside can be tried again.
    pub(crate) fn offer_free(&self, page: PageNo) {
        self.pages.offer(page);
    }

    /// Frees a page of the undo space. `forget` is called when the operation can no longer fail,
    /// and before another thread can allocate the page.
    pub(super) fn free_page(&self, page: PageNo, forget: impl FnOnce()) -> Step<()> {
        let mut mtr = self.store.mtr();
        let id = self.id(page);
        mtr.reserve(LOG_OVERHEAD, id.space, 0).map_err(Stop::lift)?;
        let latched = mtr.latch(id).map_err(Stop::lift)?;
        forget();
        mtr.free_page(latched);
        mtr.commit();
        Ok(())
    }

    /// (undo pages in use, of these free to go)
    pub(crate) fn page_counts(&self) -> (usize, usize) {
        self.pages.counts()
    }
}
