//! Scans the undo space at start.
//!
//! # Failure
//! A damaged page hides the transactions that wrote on it, and whether they committed. Recovery
//! could then undo a committed change, or leave an uncommitted one. So a damaged page stops the
//! start with its file and offset, unless it is not needed: it is on the free list, or no
//! transaction was unfinished at the last shutdown (spaces::F5). In the latter case purge does not
//! remove the old versions whose records it held.

use super::log::{Ended, PageList};
use super::record::{HEADER, UndoHeader, UndoKind, UndoPtr};
use super::{
    LONG_NO, LONG_OFFSET, LONG_OWNER, LONG_TRX, RECORDS, TrxUndo, UNDO_OVERFLOW, USED, UndoLog,
};
use crate::error::TxnError;
use nfold_store::{PAGE_SIZE, PageNo, PageType, Stop, StoreError, TrxId};
use nfold_sync::planted::{self, Bug};
use rustc_hash::{FxHashMap, FxHashSet};

/// Pages whose loads are queued before they are looked at.
const READ_AHEAD: PageNo = 64;

/// One transaction found in the undo pages.
#[derive(Default)]
struct ScannedTrx {
    /// The highest number of a record, and the last row record there.
    newest: Option<(u32, UndoPtr)>,
    /// Its commit or end record: committed, head of the chain, page.
    end: Option<(bool, UndoPtr, PageNo)>,
    /// Its prepare record, and whether that was taken back.
    prepare: Option<UndoPtr>,
    unprepared: bool,
    pages: PageList,
}

/// One overflow page: itself, its owner, and whose it says it is.
struct Long {
    page: PageNo,
    owner: PageNo,
    key: (PageNo, u16, TrxId, u32),
}

#[derive(Default)]
struct Scan {
    trxs: FxHashMap<TrxId, ScannedTrx>,
    longs: Vec<Long>,
    /// Records that have overflow pages: page, offset, transaction, number.
    owners: FxHashSet<(PageNo, u16, TrxId, u32)>,
    unfit: Vec<PageNo>,
    /// Damaged pages that are not needed.
    damaged: usize,
}

/// The result: what to undo, what to purge.
pub(crate) struct Scanned {
    pub unfinished: Vec<TrxUndo>,
    /// With their prepare records.
    pub prepared: Vec<(TrxUndo, UndoPtr)>,
    pub ended: Vec<Ended>,
    pub max_id: TrxId,
    pub pages: usize,
}

impl UndoLog {
    /// Reads all pages of the undo space and rebuilds the page counts in memory. Blocks. Called
    /// once, at start.
    pub(crate) fn scan(&self) -> Result<Scanned, TxnError> {
        let mut scan = Scan::default();
        for (space, bit) in self.spaces.all() {
            let end = self.store.space_pages(space)?;
            for page in 1..end {
                if page + READ_AHEAD < end {
                    self.store.prefetch(self.id(bit | (page + READ_AHEAD)));
                }
                match self.scan_page(bit | page, &mut scan) {
                    Err(TxnError::Store(error @ StoreError::Corrupt { .. })) => {
                        self.pass_over(bit | page, error)?;
                        scan.damaged += 1;
                    }
                    other => other?,
                }
            }
        }
        let mut known: FxHashSet<PageNo> = FxHashSet::default();
        let mut result = Scanned {
            unfinished: Vec::new(),
            prepared: Vec::new(),
            ended: Vec::new(),
            max_id: 0,
            pages: 0,
        };
        for (id, trx) in std::mem::take(&mut scan.trxs) {
            result.max_id = result.max_id.max(id);
            for page in &trx.pages {
                self.pages.pin(*page);
                known.insert(*page);
            }
            trx.sort_into(id, scan.damaged > 0 && self.spaces.at_rest(), &mut result);
        }
        result.pages = known.len();
        for page in &known {
            self.pages.seal(*page);
        }
        for long in &scan.longs {
            if scan.owners.contains(&long.key) {
                self.pages.add_long(long.owner, &[long.page]);
            } else {
                scan.unfit.push(long.page);
            }
        }
        // Pages without records, and overflow pages whose record's page went first: sealed and
        // unused, so purge frees them.
        for page in &scan.unfit {
            self.pages.seal(*page);
        }
        result.unfinished.sort_by_key(|u| u.id);
        result.prepared.sort_by_key(|(u, _)| u.id);
        result.ended.sort_by_key(|e| e.id);
        Ok(result)
    }

    /// Returns the error of a damaged page, unless the page is not needed.
    fn pass_over(&self, number: PageNo, error: StoreError) -> Result<(), TxnError> {
        let id = self.id(number);
        let (file, offset) = self.spaces.locate(number);
        let free = || -> Result<bool, StoreError> {
            Ok(self.store.free_pages(id.space)?.contains(&id.page))
        };
        if self.spaces.at_rest() {
            tracing::error!(
                %error,
                "{file} is damaged at offset {offset}: no transaction needs it, but a part of what was deleted will not be purged"
            );
            return Ok(());
        }
        if free()? {
            tracing::error!(%error, "{file} is damaged at offset {offset}, in a page that is not in use");
            return Ok(());
        }
        let what = format!(
            "damaged at offset {offset} ({error}): which transactions were unfinished cannot be known without it, so nothing is served; \
             restore the data directory, or this file as it was at the same moment"
        );
        Err(TxnError::Store(StoreError::BadFile { file, what }))
    }

    fn scan_page(&self, number: PageNo, scan: &mut Scan) -> Result<(), TxnError> {
        let page = loop {
            match self.store.read(self.id(number)) {
                Ok(page) => break page,
                Err(Stop::Wait(wait)) => wait.block(),
                Err(Stop::Error(e)) => return Err(e.into()),
            }
        };
        match page.page_type() {
            UNDO_OVERFLOW => {
                let owner = page.u32(LONG_OWNER);
                let key = (
                    owner,
                    page.u16(LONG_OFFSET),
                    page.u64(LONG_TRX),
                    page.u32(LONG_NO),
                );
                scan.longs.push(Long {
                    page: number,
                    owner,
                    key,
                });
                return Ok(());
            }
            PageType::UNDO => {}
            _ => return Ok(()),
        }
        let end = (RECORDS + page.u16(USED) as usize).min(PAGE_SIZE);
        let mut at = RECORDS;
        if at >= end {
            scan.unfit.push(number);
        }
        while at < end {
            let mut bytes = [0; HEADER];
            page.copy(at, &mut bytes);
            let header = UndoHeader::decode(&bytes).filter(|h| at + h.len as usize <= end);
            let Some(h) = header else {
                let lsn = page.u64(nfold_store::header::LSN);
                return Err(StoreError::Corrupt {
                    page: self.id(number),
                    lsn,
                    what: "undo record",
                }
                .into());
            };
            let ptr = UndoPtr::new(number, at as u16, h.undo_no);
            if h.is_long() {
                scan.owners.insert((number, at as u16, h.trx_id, h.undo_no));
            }
            scan.trxs.entry(h.trx_id).or_default().add(number, ptr, &h);
            at += h.len as usize;
        }
        Ok(())
    }
}

impl ScannedTrx {
    fn add(&mut self, page: PageNo, ptr: UndoPtr, h: &UndoHeader) {
        if self.pages.last() != Some(&page) {
            self.pages.push(page);
        }
        if self.newest.is_none_or(|(no, _)| h.undo_no > no) {
            let head = if h.kind.is_row() { ptr } else { h.prev_of_trx };
            self.newest = Some((h.undo_no, head));
        }
        match h.kind {
            UndoKind::Prepare => self.prepare = Some(ptr),
            UndoKind::Unprepare => self.unprepared = true,
            kind if kind.is_end() => {
                self.end = Some((kind == UndoKind::Commit, h.prev_of_trx, page));
            }
            _ => {}
        }
    }

    /// `all_ended`: one without an end has it on a damaged page. Whether it was committed is not
    /// known then, so it is not purged.
    fn sort_into(mut self, id: TrxId, all_ended: bool, out: &mut Scanned) {
        if let (None, Some((_, head)), Some(last)) = (self.end, self.newest, self.pages.last())
            && all_ended
        {
            self.end = Some((false, head, *last));
        }
        match (self.end, self.newest) {
            (Some((committed, head, last)), _) => {
                // U3 speaks of the page with the end; page numbers need not grow.
                self.pages.retain(|p| *p != last);
                self.pages.push(last);
                out.ended.push(Ended {
                    end: 1,
                    id,
                    committed,
                    recovered: true,
                    quiet: false,
                    head,
                    pages: self.pages,
                });
            }
            (None, Some((undo_no, head))) => {
                let undo = TrxUndo {
                    id,
                    head,
                    undo_no,
                    stream: 0,
                    pages: self.pages,
                    ..TrxUndo::default()
                };
                match self.prepare {
                    Some(at) if !self.unprepared && !planted::is(Bug::ForgottenPrepare) => {
                        out.prepared.push((undo, at));
                    }
                    _ => out.unfinished.push(undo),
                }
            }
            (None, None) => {}
        }
    }
}
