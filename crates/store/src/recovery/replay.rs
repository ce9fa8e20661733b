//! The second pass over the log: applies every record to its page.
//!
//! # Picture
//! ```text
//! log ─► reader: splits each mini-transaction by page ─┬─► part 0: pages with hash 0, in log order
//!                                                      ├─► part 1
//!                                                      └─► ...  each loads, applies and stamps
//! ```
//! # Invariants
//! - R1: all records of a page go to one part, in log order. A record changes one page and depends
//!   on no other.
//! - R2: the records of one mini-transaction on a page are applied together: the page stays latched
//!   until then, and gets the mini-transaction's end as its LSN. Different pages of a
//!   mini-transaction may be written at different times, because recovery would start again from
//!   the same checkpoint.
//! - R3: INIT starts the life of a page. The page is not read, because every later change of it
//!   follows in the log.
//! - R4: a page to which a record does not apply is marked as broken and written that way. So later
//!   readers get an error.
//! - R5: no page is newer than the end of the log, because the log was durable up to each page that
//!   was written. A newer page proves that log was lost.
//! # Concurrency
//! In inline mode there is one part, on the caller's thread, so the order is deterministic.

use super::ReportProgress;
use crate::core::Core;
use crate::error::StoreError;
use crate::log::control::Control;
use crate::log::format::{Record, Records, push_record};
use crate::log::scan::Scan;
use crate::page::{Lsn, NEWER, PageId, PageMut, PageType, SpaceId, header};
use crate::redo;
use crate::space;
use crate::status::RecoveryPhase;
use nfold_sync::page_word::frame_of;
use nfold_sync::{PageWord, words};
use std::collections::{BTreeSet, HashMap};
use std::panic::resume_unwind;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// The bytes of log between two progress reports.
const REPORT_EVERY: u64 = 4 << 20;
/// The most parts.
const PARTS: usize = 8;
/// The fewest frames per part, because each part holds the pages of a mini-transaction latched.
const FRAMES_PER_PART: usize = 64;
/// The bytes of records sent to a part at a time, and the number of batches that may be queued.
const BATCH_BYTES: usize = 64 << 10;
const BATCHES: usize = 8;

/// The result of the second pass.
#[derive(Default)]
pub(super) struct ReplayResult {
    pub(super) records: u64,
    pub(super) missing: BTreeSet<SpaceId>,
    pub(super) corrupt: BTreeSet<PageId>,
}

impl ReplayResult {
    fn add(&mut self, other: ReplayResult) {
        self.records += other.records;
        self.missing.extend(other.missing);
        self.corrupt.extend(other.corrupt);
    }
}

/// The records of several mini-transactions for one part.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    /// The mini-transactions as (start, end, bytes of records).
    mtrs: Vec<(Lsn, Lsn, usize)>,
}

/// Applies the log from `control`'s checkpoint up to `end`.
pub(super) fn replay(
    core: &Core,
    names: &HashMap<SpaceId, String>,
    control: &Control,
    end: Lsn,
    tell: &ReportProgress<'_>,
) -> Result<ReplayResult, StoreError> {
    let parts = core
        .options
        .io_threads
        .min(PARTS)
        .min(core.pool.frames.count() / FRAMES_PER_PART);
    let mut scan = Scan::new(core.log.files(), control.generation, control.checkpoint);
    let mut records = Vec::new();
    let mut told = 0;
    let mut next = |records: &mut Vec<u8>| -> Result<Option<(Lsn, Lsn)>, StoreError> {
        let found = scan.next(records)?;
        if let Some((start, _)) = found
            && start >= told + REPORT_EVERY
        {
            tell(RecoveryPhase::Redo, start, end);
            told = start;
        }
        Ok(found)
    };
    if parts <= 1 {
        let mut redo = Redo::new(core, names, end);
        while let Some((start, stop)) = next(&mut records)? {
            redo.apply_mtr(&records, start, stop)?;
        }
        return Ok(redo.found);
    }
    std::thread::scope(|scope| {
        let mut senders = Vec::new();
        let mut threads = Vec::new();
        for _ in 0..parts {
            let (send, receive) = sync_channel(BATCHES);
            senders.push(send);
            threads.push(scope.spawn(move || Redo::new(core, names, end).run(receive)));
        }
        let mut batches: Vec<Batch> = (0..parts).map(|_| Batch::default()).collect();
        let mut read = Ok(());
        loop {
            match next(&mut records) {
                Ok(Some((start, stop))) => {
                    read = split(&records, start, stop, &mut batches);
                    // A part that failed has closed its channel. Its error is reported below.
                    if read.is_err() || !hand_over(&mut batches, &senders, BATCH_BYTES) {
                        break;
                    }
                }
                Ok(None) => {
                    hand_over(&mut batches, &senders, 1);
                    break;
                }
                Err(e) => {
                    read = Err(e);
                    break;
                }
            }
        }
        drop(senders);
        let mut found = ReplayResult::default();
        for thread in threads {
            match thread.join().unwrap_or_else(|e| resume_unwind(e)) {
                Ok(part) => found.add(part),
                Err(e) => read = read.and(Err(e)),
            }
        }
        read.map(|()| found)
    })
}

/// Adds the records of a mini-transaction to the batches of their pages' parts (R1).
fn split(bytes: &[u8], start: Lsn, end: Lsn, batches: &mut [Batch]) -> Result<(), StoreError> {
    let before: Vec<usize> = batches.iter().map(|b| b.bytes.len()).collect();
    let mut records = Records::new(bytes);
    for record in records.by_ref() {
        if record.op == redo::ATTACHMENT {
            continue;
        }
        let hash = record.id.packed().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let batch = &mut batches[hash as usize % before.len()];
        push_record(&mut batch.bytes, record.op, record.id, &[record.payload]);
    }
    for (batch, before) in batches.iter_mut().zip(before) {
        if batch.bytes.len() > before {
            batch.mtrs.push((start, end, batch.bytes.len() - before));
        }
    }
    if records.whole() {
        Ok(())
    } else {
        Err(unfit(start))
    }
}

/// Sends the batches that have at least `bytes` bytes. Returns false if a part has closed its
/// channel.
fn hand_over(batches: &mut [Batch], senders: &[SyncSender<Batch>], bytes: usize) -> bool {
    batches
        .iter_mut()
        .zip(senders)
        .filter(|(batch, _)| batch.bytes.len() >= bytes)
        .all(|(batch, sender)| sender.send(std::mem::take(batch)).is_ok())
}

fn unfit(start: Lsn) -> StoreError {
    StoreError::BadFile {
        file: "log".into(),
        what: format!("the records of the mini-transaction at LSN {start} do not fit together"),
    }
}

/// A page latched for the current mini-transaction.
struct HeldPage {
    id: PageId,
    /// Whether the mini-transaction's changes must be applied. If not, the page's LSN shows that
    /// they have been.
    apply: bool,
    frame: u32,
    before: u64,
    space: space::HeldSpace,
}

impl HeldPage {
    fn word(&self) -> &PageWord {
        self.space.dir().get_or_make(self.id.page)
    }
}

/// Applies records to the pages of one part, or to all pages.
struct Redo<'a> {
    core: &'a Core,
    names: &'a HashMap<SpaceId, String>,
    /// The end of the log.
    end: Lsn,
    found: ReplayResult,
    held: Vec<HeldPage>,
}

impl<'a> Redo<'a> {
    fn new(core: &'a Core, names: &'a HashMap<SpaceId, String>, end: Lsn) -> Self {
        Redo {
            core,
            names,
            end,
            found: ReplayResult::default(),
            held: Vec::new(),
        }
    }

    fn run(mut self, batches: Receiver<Batch>) -> Result<ReplayResult, StoreError> {
        for batch in batches {
            let mut rest = &batch.bytes[..];
            for (start, end, len) in batch.mtrs {
                let (records, behind) = rest.split_at(len);
                self.apply_mtr(records, start, end)?;
                rest = behind;
            }
        }
        Ok(self.found)
    }

    fn apply_mtr(&mut self, bytes: &[u8], start: Lsn, end: Lsn) -> Result<(), StoreError> {
        let mut records = Records::new(bytes);
        for record in records.by_ref() {
            self.found.records += 1;
            if let Err(e) = self.apply_record(record, end) {
                self.release(start, end);
                return Err(e);
            }
        }
        self.release(start, end);
        if !records.whole() {
            return Err(unfit(start));
        }
        Ok(())
    }

    fn apply_record(&mut self, record: Record<'_>, end: Lsn) -> Result<(), StoreError> {
        if record.op == redo::ATTACHMENT {
            return Ok(());
        }
        let Some(at) = self.hold(record, end)? else {
            return Ok(());
        };
        let held = &self.held[at];
        if !held.apply {
            return Ok(());
        }
        let page = PageMut::new(held.id, self.core.pool.frames.words(held.frame));
        if let Err(e) = redo::apply(&*self.core.redo, record.op, record.payload, &page) {
            tracing::error!("redo up to LSN {end}: {e}");
            page.write(header::FORMAT, &[header::FORMAT_BROKEN]); // R4
            self.found.corrupt.insert(record.id);
        }
        Ok(())
    }

    /// Latches the record's page for the rest of the mini-transaction. `None` if the page is
    /// corrupt or its space was dropped.
    fn hold(&mut self, record: Record<'_>, end: Lsn) -> Result<Option<usize>, StoreError> {
        let id = record.id;
        let fresh = record.op == redo::INIT;
        if fresh {
            self.found.corrupt.remove(&id);
        } else if self.found.corrupt.contains(&id) {
            return Ok(None);
        }
        if let Some(at) = self.held.iter().position(|h| h.id == id) {
            return Ok(Some(at));
        }
        let Some(space) = self.space(id.space)? else {
            return Ok(None);
        };
        let word = space.dir().get_or_make(id.page);
        // Other parts load pages, too, so the page may be evicted again before it is latched.
        let before = loop {
            if fresh {
                self.install_empty(word, id)?;
            } else if let Err(e) = self.core.load_now(&space, id) {
                let StoreError::Corrupt { lsn, what, .. } = e else {
                    return Err(e);
                };
                if what == NEWER {
                    let files = self.core.log.files();
                    return Err(super::damage::newer_page(files, self.end, id, lsn));
                }
                tracing::error!("redo up to LSN {end}: {e}");
                self.found.corrupt.insert(id);
                return Ok(None);
            }
            if let Some(before) = word.latch_resident() {
                break before;
            }
        };
        let frame = frame_of(before).expect("a latched page is resident");
        let bytes = self.core.pool.frames.words(frame);
        let lsn = words::load_u64(bytes, header::LSN);
        if lsn > self.end {
            word.release_unchanged(before);
            return Err(super::damage::newer_page(
                self.core.log.files(),
                self.end,
                id,
                lsn,
            ));
        }
        if !fresh && lsn == 0 && words::load_u16(bytes, header::PAGE_TYPE) == PageType::UNUSED {
            word.release_unchanged(before);
            tracing::error!("redo up to LSN {end}: page {id} was never written");
            self.found.corrupt.insert(id);
            return Ok(None);
        }
        self.core.pool.frames.touch(frame);
        self.held.push(HeldPage {
            id,
            apply: lsn < end,
            frame,
            before,
            space: space.clone(),
        });
        Ok(Some(self.held.len() - 1))
    }

    /// Installs an empty frame for a page whose old contents do not matter (R3).
    fn install_empty(&self, word: &PageWord, id: PageId) -> Result<(), StoreError> {
        if frame_of(word.load()).is_some() {
            return Ok(());
        }
        let frame = self.core.frame_blocking()?;
        words::fill_zero(self.core.pool.frames.words(frame), 0, crate::PAGE_SIZE);
        self.core.pool.frames.set_page(frame, Some(id));
        self.core.pool.frames.set_used(frame, 1);
        self.core
            .pool
            .probation
            .admit(&self.core.pool.frames, frame, id, false);
        if word.install(word.load(), frame) {
            self.core
                .pool
                .probation
                .enter(&self.core.pool.frames, frame, id);
        } else {
            self.core.give_frame(frame);
        }
        Ok(())
    }

    fn space(&mut self, id: SpaceId) -> Result<Option<space::HeldSpace>, StoreError> {
        if let Some(space) = self.core.spaces.hold(id) {
            return Ok(Some(space));
        }
        let Some(name) = self.names.get(&id) else {
            self.found.missing.insert(id);
            return Ok(None);
        };
        self.core.spaces.open(&*self.core.disk, id, name).map(Some)
    }

    /// Stamps and releases the pages of the mini-transaction `[start, end)` (R2).
    fn release(&mut self, start: Lsn, end: Lsn) {
        for held in self.held.drain(..) {
            let bytes = self.core.pool.frames.words(held.frame);
            let trx = words::load_u64(bytes, header::NEWEST_TRX);
            self.core
                .control
                .trx_floor
                .fetch_max(trx.saturating_add(1), Ordering::Relaxed);
            if held.apply {
                words::store_u64(bytes, header::LSN, end);
                self.core.pool.frames.mark_dirty(held.frame, start);
                held.word().release_changed(held.before);
            } else {
                held.word().release_unchanged(held.before);
            }
        }
    }
}
