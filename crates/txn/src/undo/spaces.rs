//! The files of the undo log: the active file, and for a while its predecessor, until all records
//! in it are purged.
//!
//! # Picture
//! ```text
//!  undo.nfd      0 ──┐ larger than the limit        undo.1.nfd   1 ──┐                undo.2.nfd   2
//!                    └─▶ draining ─▶ retired ─▶ unlinked             └─▶ draining ─▶ ...
//!
//!  page number in pointers and in undo pages:  generation & 1: bit 31 │ page of that file: 31 bits
//!  user area of page 0:  0 u64 transaction id ceiling   8 u64 magic   16 u64 generations below this are retired   24 u64 at rest
//! ```
//! # Invariants
//! - F1: at most two files of successive generations exist, so one bit tells them apart. A pointer
//!   into a removed file leads to a page of the file two generations later, or nowhere. A record
//!   found there belongs to another transaction.
//! - F2: a file is retired when none of its pages is in use, and no stream appends to it or is
//!   about to. The retirement is durable before the file is unlinked. If a crash restores a file of
//!   a retired generation, the next start removes it unread, because some of its pages may never
//!   have been written.
//! - F3: the newest file's header has the ceiling over all transaction ids before the file before
//!   it is retired.
//! - F4: no pointer leads into the file of a generation before that generation becomes active. A
//!   file left by a failed switch is removed before the next attempt. After a crash such a file is
//!   the newest one, and becomes active.
//! - F5: "at rest" equals the ceiling if and only if all transactions had ended at a shutdown and
//!   none began since, because the ceiling is raised before the first id is assigned (system::T1).
//!   Then undo pages are needed for purge alone.
//!
//! # Concurrency
//! A thread that takes new pages increments `turning` and then loads `active` again. The purger
//! stores `active` and then loads `turning`. All four operations are SeqCst, so at least one thread
//! sees the other. Only the purge thread switches and retires files.

use super::UndoLog;
use crate::error::{Step, TxnError};
use nfold_store::{Latched, Lsn, Mtr, PageId, PageNo, SpaceId, Stop, Store, StoreError, USER_AREA};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};

const NAME: &str = "undo";
/// The bit of a page number that names the file.
const FILE_BIT: u32 = 1 << 31;
pub(super) const CEILING_AT: usize = USER_AREA;
const MAGIC_AT: usize = USER_AREA + 8;
const RETIRED_AT: usize = USER_AREA + 16;
const REST_AT: usize = USER_AREA + 24;
/// "NFUNDO" and the format's version.
const MAGIC: u64 = u64::from_le_bytes(*b"NFUNDO\x01\0");
const HEADER_LOG: usize = 256;

/// Which files there are. One per undo log.
pub(crate) struct UndoSpaces {
    /// By the low bit of the generation; 0: none.
    ids: [AtomicU32; 2],
    /// The generation that is appended to.
    active: AtomicU64,
    /// How many are between taking new pages from a file and having them counted.
    turning: [Arc<AtomicU32>; 2],
    /// F5, as it was found.
    at_rest: bool,
    /// The end of the record that says that the older file is retired; 0: it is not yet.
    retired_at: AtomicU64,
}

/// Counts as one who takes pages of a file.
#[derive(Debug)]
pub(super) struct Turning(Arc<AtomicU32>);

impl Drop for Turning {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

fn name_of(generation: u64) -> String {
    match generation {
        0 => NAME.to_string(),
        n => format!("{NAME}.{n}"),
    }
}

fn generation_of(name: &str) -> Option<u64> {
    match name.strip_prefix(NAME)? {
        "" => Some(0),
        rest => rest.strip_prefix('.')?.parse().ok(),
    }
}

/// The file of a page number: 0 or 1.
pub(super) fn file_of(page: PageNo) -> usize {
    (page / FILE_BIT) as usize
}

impl UndoSpaces {
    /// Opens the files, creates the first if there is none, and removes retired ones (F2). Also
    /// returns the ceiling. Blocks.
    pub(crate) fn open(store: &Arc<Store>) -> Result<(UndoSpaces, u64), TxnError> {
        let on_disk = store.spaces_on_disk()?.into_iter();
        let mut found: Vec<(u64, SpaceId, String)> = on_disk
            .filter_map(|(id, name)| Some((generation_of(&name)?, id, name)))
            .collect();
        found.sort_unstable();
        // If a file were too damaged to be recognized, the remaining files would pass for the whole
        // undo log, or a new first file would replace it.
        let mut names = store.space_names()?.into_iter();
        let known = |name: &String| found.iter().any(|(_, _, known)| known == name);
        if let Some(name) = names.find(|name| generation_of(name).is_some() && !known(name)) {
            let what = "an undo file with a damaged header".to_string();
            let file = format!("{name}.nfd");
            return Err(TxnError::Store(StoreError::BadFile { file, what }));
        }
        if found.is_empty() {
            let id = blocking(|| store.create_space(NAME).map_err(Stop::lift))?;
            found.push((0, id, NAME.to_string()));
        }
        let mut spaces = UndoSpaces {
            ids: Default::default(),
            active: AtomicU64::new(0),
            at_rest: false,
            turning: Default::default(),
            retired_at: AtomicU64::new(0),
        };
        let (mut ceiling, mut retired) = (0, 0);
        while let Some((generation, id, name)) = found.pop() {
            store.open_space(id, &name)?;
            if generation < retired {
                store.drop_space(id)?;
                continue;
            }
            let header = blocking(|| read_header(store, id))?;
            if spaces.all().next().is_none() {
                // F5: the newest file says it.
                spaces.at_rest = header.2 != 0 && header.2 == header.0;
            }
            ceiling = header.0.max(ceiling);
            retired = header.1.max(retired);
            let cell = &spaces.ids[(generation & 1) as usize];
            if cell.swap(id, SeqCst) != 0 {
                let what = "an undo file of a generation that cannot be".to_string();
                let file = format!("{name}.nfd");
                return Err(TxnError::Store(StoreError::BadFile { file, what }));
            }
            spaces.active.fetch_max(generation, SeqCst);
        }
        Ok((spaces, ceiling))
    }

    /// Where a page number of the undo log leads.
    #[inline]
    pub(super) fn id(&self, page: PageNo) -> PageId {
        PageId {
            space: self.ids[file_of(page)].load(SeqCst),
            page: page & !FILE_BIT,
        }
    }

    /// The undo log's number of a page that is latched.
    pub(super) fn number(&self, mtr: &Mtr<'_>, page: Latched) -> PageNo {
        let id = mtr.id(page);
        if id.space == self.ids[1].load(SeqCst) {
            id.page | FILE_BIT
        } else {
            id.page
        }
    }

    /// The file that new pages come from, and the caller counted as one who takes some.
    pub(super) fn turn(&self) -> (SpaceId, Turning) {
        loop {
            let file = self.active_file();
            let count = &self.turning[file];
            count.fetch_add(1, SeqCst);
            let turning = Turning(count.clone());
            if self.active_file() == file {
                return (self.ids[file].load(SeqCst), turning);
            }
        }
    }

    fn active_file(&self) -> usize {
        (self.active.load(SeqCst) & 1) as usize
    }

    /// How many files there have been before the one that is appended to.
    pub(crate) fn generation(&self) -> u64 {
        self.active.load(SeqCst)
    }

    /// The file that is appended to.
    pub(crate) fn active(&self) -> SpaceId {
        self.ids[self.active_file()].load(SeqCst)
    }

    /// Whether nothing was unfinished when the files were opened (F5).
    pub(crate) fn at_rest(&self) -> bool {
        self.at_rest
    }

    /// The file that a page number names, and the offset of the page there.
    pub(super) fn locate(&self, page: PageNo) -> (String, u64) {
        let active = self.active.load(SeqCst);
        let older = u64::from(file_of(page) != self.active_file());
        let name = name_of(active.saturating_sub(older));
        let offset = u64::from(page & !FILE_BIT) * nfold_store::PAGE_SIZE as u64;
        (format!("{name}.nfd"), offset)
    }

    /// All files, with the bit that their page numbers bear.
    pub(crate) fn all(&self) -> impl Iterator<Item = (SpaceId, PageNo)> {
        let ids = [0, 1].map(|file: u32| (self.ids[file as usize].load(SeqCst), file * FILE_BIT));
        ids.into_iter().filter(|(id, _)| *id != 0)
    }

    /// The file that is draining, if there is one.
    fn draining(&self) -> Option<(usize, SpaceId)> {
        let file = 1 - self.active_file();
        let id = self.ids[file].load(SeqCst);
        (id != 0).then_some((file, id))
    }
}

/// Runs a call to its end on a thread that may sleep.
fn blocking<T>(call: impl FnMut() -> Step<T>) -> Result<T, TxnError> {
    crate::error::block_on(call)
}

/// (ceiling, retired generations, at rest); marks a new file as ours.
fn read_header(store: &Arc<Store>, space: SpaceId) -> Step<(u64, u64, u64)> {
    let mut mtr = store.mtr();
    mtr.reserve(HEADER_LOG, space, 0).map_err(Stop::lift)?;
    let page = mtr.latch(PageId { space, page: 0 }).map_err(Stop::lift)?;
    match mtr.u64(page, MAGIC_AT) {
        MAGIC => {
            let field = |at| mtr.u64(page, at);
            return Ok((field(CEILING_AT), field(RETIRED_AT), field(REST_AT)));
        }
        0 => mtr.write(page, MAGIC_AT, &MAGIC.to_le_bytes()),
        _ => {
            let error = mtr.corrupt(page, "not an undo space of this format");
            return Err(TxnError::Store(error).into());
        }
    }
    mtr.commit();
    Ok((0, 0, 0))
}

impl UndoLog {
    /// Writes the ceiling over all transaction ids.
    pub(crate) fn write_ceiling(&self, ceiling: u64) -> Step<()> {
        let space = self.spaces.active();
        let mut mtr = self.store.mtr();
        mtr.reserve(HEADER_LOG, space, 0).map_err(Stop::lift)?;
        let page = mtr.latch(PageId { space, page: 0 }).map_err(Stop::lift)?;
        mtr.write(page, CEILING_AT, &ceiling.to_le_bytes());
        mtr.commit();
        Ok(())
    }

    /// Writes that all transactions have ended, and the id that the next one gets (F5).
    pub(crate) fn write_rest(&self, next: u64) -> Step<()> {
        let space = self.spaces.active();
        let mut mtr = self.store.mtr();
        mtr.reserve(HEADER_LOG, space, 0).map_err(Stop::lift)?;
        let page = mtr.latch(PageId { space, page: 0 }).map_err(Stop::lift)?;
        mtr.write(page, CEILING_AT, &next.to_le_bytes());
        mtr.write(page, REST_AT, &next.to_le_bytes());
        mtr.commit();
        Ok(())
    }

    /// Pages of all files.
    pub(crate) fn file_pages(&self) -> u64 {
        let pages = |(id, _)| u64::from(self.store.space_pages(id).unwrap_or(0));
        self.spaces.all().map(pages).sum()
    }

    /// Switches to a new file if the active one has more than `limit` pages and its predecessor is
    /// gone. The caller prevents changes of the ceiling meanwhile. Blocks shortly on the disk.
    /// Returns whether it switched.
    pub(crate) fn turn_file(&self, limit: u32, ceiling: u64) -> Result<bool, TxnError> {
        let spaces = &self.spaces;
        if spaces.draining().is_some() || self.store.space_pages(spaces.active())? <= limit {
            return Ok(false);
        }
        let generation = spaces.active.load(SeqCst) + 1;
        let name = name_of(generation);
        let id = self.make_file(&name)?;
        blocking(|| read_header(&self.store, id))?;
        spaces.ids[(generation & 1) as usize].store(id, SeqCst);
        spaces.active.store(generation, SeqCst);
        tracing::info!(file = name, "the undo log goes on in a new file");
        blocking(|| self.write_ceiling(ceiling))?;
        Ok(true)
    }

    /// Makes the file of a generation that is not turned to yet, in the place of one that was left
    /// (F4).
    fn make_file(&self, name: &str) -> Result<SpaceId, TxnError> {
        let store = &self.store;
        let make = || blocking(|| store.create_space(name).map_err(Stop::lift));
        match make() {
            Err(TxnError::Store(StoreError::SpaceExists(file))) => {
                tracing::warn!(file, "an undo file that was not finished is made anew");
                let on_disk = store.spaces_on_disk()?.into_iter();
                for (id, _) in on_disk.filter(|(_, found)| found == name) {
                    store.open_space(id, name)?;
                    store.drop_space(id)?;
                }
                make()
            }
            made => made,
        }
    }

    /// Gets on with giving the older file back, if there is one: no stream appends to it any more;
    /// it is retired when nothing in it is known, and unlinked when that is durable. Returns
    /// whether it was.
    pub(crate) fn retire_step(&self, ceiling: u64) -> Step<bool> {
        let Some((file, id)) = self.spaces.draining() else {
            return Ok(false);
        };
        self.leave_file(file)?;
        // F2: first those who are about to, then what they may have left.
        let in_use = self.spaces.turning[file].load(SeqCst) > 0
            || self.appends_to(file)
            || self.pages.known(file) > 0;
        if in_use {
            return Ok(false);
        }
        let mut end: Lsn = self.spaces.retired_at.load(SeqCst);
        if end == 0 {
            end = self.write_retired(ceiling)?;
            self.spaces.retired_at.store(end, SeqCst);
        }
        if let Some(wait) = self.store.wait_durable(end) {
            return Err(Stop::Wait(wait));
        }
        self.spaces.ids[file].store(0, SeqCst);
        self.spaces.retired_at.store(0, SeqCst);
        match self.store.drop_space(id) {
            Ok(()) => tracing::info!(space = id, "an undo file was given back"),
            // Retired it is all the same.
            Err(error) => tracing::error!(%error, "an undo file is removed at the next start"),
        }
        Ok(true)
    }

    fn write_retired(&self, ceiling: u64) -> Step<Lsn> {
        let space = self.spaces.active();
        let retired = self.spaces.active.load(SeqCst);
        let mut mtr = self.store.mtr();
        mtr.reserve(HEADER_LOG, space, 0).map_err(Stop::lift)?;
        let page = mtr.latch(PageId { space, page: 0 }).map_err(Stop::lift)?;
        let ceiling = ceiling.max(mtr.u64(page, CEILING_AT));
        mtr.write(page, CEILING_AT, &ceiling.to_le_bytes()); // F3
        mtr.write(page, RETIRED_AT, &retired.to_le_bytes());
        Ok(mtr.commit().end)
    }
}
