//! Reading a record: copy, check, validate.

use super::record::{HEADER, UndoHeader, UndoPtr, UndoRecord};
use super::{
    LONG_CAPACITY, LONG_DATA, LONG_LEN, LONG_NEXT, LONG_NO, LONG_OFFSET, LONG_OWNER, LONG_TRX,
    RECORDS, UNDO_OVERFLOW, USED, UndoLog,
};
use crate::error::{Step, TxnError};
use nfold_store::{PAGE_SIZE, PageNo, PageRef, PageType, Stop, TrxId};

impl UndoLog {
    /// Reads the record at `ptr`, which transaction `trx` wrote, into `out`. `VersionGone` if
    /// another record, or none, is there.
    pub fn read(&self, ptr: UndoPtr, trx: TrxId, out: &mut UndoRecord) -> Step<()> {
        self.read_if(ptr, trx, out, |_| true)
    }

    /// As [`read`](Self::read), with the body only if `wanted` says so.
    pub(crate) fn read_if(
        &self,
        ptr: UndoPtr,
        trx: TrxId,
        out: &mut UndoRecord,
        wanted: impl Fn(&UndoHeader) -> bool,
    ) -> Step<()> {
        let gone = || TxnError::VersionGone {
            page: self.id(ptr.page()),
            offset: ptr.offset(),
        };
        if ptr.is_none() {
            return Err(gone().into());
        }
        loop {
            let page = self.page(ptr.page(), ptr.offset())?;
            let header = Self::header_at(&page, ptr, trx);
            out.body.clear();
            let body = header.is_some_and(|h| wanted(&h));
            if let Some(h) = &header
                && body
                && !h.is_long()
            {
                page.append(
                    ptr.offset() as usize + HEADER,
                    h.body_len as usize,
                    &mut out.body,
                );
            }
            if !page.validate() {
                continue;
            }
            let header = header.ok_or_else(gone)?;
            out.set(ptr, &header);
            if !body || !header.kind.has_body() {
                out.key_len = 0;
            } else if header.is_long() {
                self.read_long(ptr, &header, out)?;
            }
            return Ok(());
        }
    }

    /// A page; `VersionGone` if there is none of this number, because its file is gone
    /// (spaces::F1).
    fn page(&self, number: PageNo, offset: u16) -> Step<PageRef<'_>> {
        let page = self.id(number);
        self.store.read(page).map_err(|stop| match stop {
            Stop::Error(_) if self.store.space_pages(page.space).unwrap_or(0) <= page.page => {
                Stop::Error(TxnError::VersionGone { page, offset })
            }
            stop => stop.lift(),
        })
    }

    fn header_at(page: &PageRef<'_>, ptr: UndoPtr, trx: TrxId) -> Option<UndoHeader> {
        let at = ptr.offset() as usize;
        let end = (RECORDS + page.u16(USED) as usize).min(PAGE_SIZE);
        if page.page_type() != PageType::UNDO || at < RECORDS || at >= end {
            return None;
        }
        let mut bytes = [0; HEADER];
        page.copy(at, &mut bytes);
        let header = UndoHeader::decode(&bytes)?;
        let same = header.trx_id == trx && header.undo_no as u16 == ptr.undo_no_low();
        (same && at + header.len as usize <= end).then_some(header)
    }

    fn read_long(&self, ptr: UndoPtr, header: &UndoHeader, out: &mut UndoRecord) -> Step<()> {
        let mut next = header.first_long;
        let total = header.body_len as usize;
        while out.body.len() < total {
            let page = self.page(next, ptr.offset())?;
            let before = out.body.len();
            let len = page.u16(LONG_LEN) as usize;
            let ours = page.page_type() == UNDO_OVERFLOW
                && page.u64(LONG_TRX) == header.trx_id
                && page.u32(LONG_OWNER) == ptr.page()
                && page.u16(LONG_OFFSET) == ptr.offset()
                && page.u32(LONG_NO) == header.undo_no
                && (1..=LONG_CAPACITY.min(total - before)).contains(&len);
            let following = page.u32(LONG_NEXT);
            if ours {
                page.append(LONG_DATA, len, &mut out.body);
            }
            if !page.validate() {
                out.body.truncate(before);
                continue;
            }
            if !ours {
                return Err(TxnError::VersionGone {
                    page: self.id(next),
                    offset: ptr.offset(),
                }
                .into());
            }
            next = following;
        }
        Ok(())
    }
}
