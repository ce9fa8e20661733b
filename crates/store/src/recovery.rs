//! Opening: makes a new store, or brings an old one to the state at the end of its log.
//!
//! # Picture
//! ```text
//! control file → checkpoint C, generation g
//!   → torn pages put right from the doublewrite file
//!   → scan the log of generation g from C to its end E           (first pass: where is E)
//!   → sync the log: after a kill its end may be in the system's cache only
//!   → apply every record to pages whose LSN is below its end     (second pass)
//!   → write all pages → control file: checkpoint E', generation g+1, E' = E rounded up to a block
//! ```
//! # Invariants
//! - I1: nothing is written to the log, and the control file stays as it is, until all recovered pages are on disk. So a crash
//!   during recovery starts it over.
//! - I2: a mini-transaction is applied as a whole: its pages stay latched until all its records are applied, and get its end as
//!   their LSN.
//! - I3: INIT starts a page's life: the page is not read, because every later change of it is in the log behind.
//! # Failure
//! A page that cannot be read, or that a record does not apply to, is reported and left as it is on disk; the rest is recovered. Records
//! of a space without a file are skipped: it was dropped.

use crate::cleaner::Cleaner;
use crate::core::{Core, default_fatal};
use crate::disk::Disk;
use crate::doublewrite::{self, Doublewrite};
use crate::error::StoreError;
use crate::log::Log;
use crate::log::control::{Control, ControlFile};
use crate::log::files::LogFiles;
use crate::log::format::{FIRST_LSN, Record, Records, next_block};
use crate::log::scan::Scan;
use crate::options::StoreOptions;
use crate::page::{Lsn, PageId, PageMut, PageType, SpaceId, header};
use crate::redo::{self, RedoHandler};
use crate::space::{self, Space};
use crate::status::{RecoveryPhase, RecoveryProgress, RecoveryReport};
use nfold_sync::page_word::frame_of;
use nfold_sync::{PageWord, words};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Progress is reported every so many bytes of log.
const REPORT_EVERY: u64 = 4 << 20;

pub(crate) fn open(
    options: StoreOptions,
    disk: Arc<dyn Disk>,
    handler: Arc<dyn RedoHandler>,
    progress: &dyn Fn(RecoveryProgress),
) -> Result<(Core, RecoveryReport), StoreError> {
    space::sweep_temporaries(&*disk)?;
    match ControlFile::open(&*disk)? {
        None => create(options, disk, handler),
        Some(control) => recover(options, disk, handler, control, progress),
    }
}

fn assemble(
    options: StoreOptions,
    disk: Arc<dyn Disk>,
    handler: Arc<dyn RedoHandler>,
    control: ControlFile,
    files: LogFiles,
    start: (u64, Lsn),
) -> Result<Core, StoreError> {
    let doublewrite = if options.doublewrite {
        Some(Doublewrite::open(&*disk)?)
    } else {
        doublewrite::remove(&*disk)?;
        None
    };
    let fatal = options.fatal.clone().unwrap_or_else(default_fatal);
    let inline = options.io_threads == 0;
    let log = Log::new(
        files,
        start.0,
        start.1,
        options.log_buffer_bytes,
        inline,
        fatal.clone(),
    );
    Core::new(
        options,
        disk,
        handler,
        log,
        control,
        Cleaner::new(doublewrite),
        fatal,
    )
}

fn create(
    options: StoreOptions,
    disk: Arc<dyn Disk>,
    handler: Arc<dyn RedoHandler>,
) -> Result<(Core, RecoveryReport), StoreError> {
    if let Some((_, name)) = space::discover(&*disk)?.first() {
        return Err(StoreError::BadFile {
            file: crate::log::control::NAME.into(),
            what: format!(
                "missing, but there are space files ({name}{})",
                space::SUFFIX
            ),
        });
    }
    let (count, blocks) = LogFiles::geometry(options.log_bytes);
    let files = LogFiles::create(&*disk, 0, count, blocks)?;
    let first = Control {
        sequence: 0,
        checkpoint: FIRST_LSN,
        generation: 1,
        next_trx: 1,
        space_limit: 1,
        first_file: 0,
        files: count,
        file_blocks: blocks,
    };
    if options.doublewrite {
        Doublewrite::open(&*disk)?;
    }
    let control = ControlFile::create(&*disk, first)?;
    let report = RecoveryReport {
        created: true,
        clean: true,
        checkpoint_lsn: FIRST_LSN,
        end_lsn: FIRST_LSN,
        ..RecoveryReport::default()
    };
    Ok((
        assemble(options, disk, handler, control, files, (1, FIRST_LSN))?,
        report,
    ))
}

fn recover(
    options: StoreOptions,
    disk: Arc<dyn Disk>,
    handler: Arc<dyn RedoHandler>,
    control: ControlFile,
    progress: &dyn Fn(RecoveryProgress),
) -> Result<(Core, RecoveryReport), StoreError> {
    let old = control.now;
    let tell = |phase, at_lsn, end_lsn| {
        progress(RecoveryProgress {
            phase,
            from_lsn: old.checkpoint,
            at_lsn,
            end_lsn,
        });
    };
    tell(RecoveryPhase::RepairPages, old.checkpoint, 0);
    let names: HashMap<SpaceId, String> = space::discover(&*disk)?.into_iter().collect();
    let mut report = RecoveryReport {
        checkpoint_lsn: old.checkpoint,
        repaired_pages: doublewrite::repair(&*disk, &names)?,
        ..RecoveryReport::default()
    };
    let files = LogFiles::open(&*disk, old.first_file, old.files, old.file_blocks)?;
    let end = find_end(&files, &old)?;
    // After a kill, the end of the log may be in the system's cache only, and so may names: pages are about to be written that rely on both.
    files.sync_all()?;
    disk.sync_dir()
        .map_err(|e| StoreError::io(&e, "syncing the directory"))?;
    report.end_lsn = end;
    report.clean = end == old.checkpoint;
    let start = (old.generation + 1, next_block(end));
    let geometry = LogFiles::geometry(options.log_bytes);
    let buffer = options.log_buffer_bytes;
    let mut core = assemble(options, disk, handler, control, files, start)?;

    Redo::new(&core, names, &mut report).run(&old, end, &tell)?;
    tell(RecoveryPhase::Flush, end, end);
    for space in core.spaces.list() {
        core.take_page_count(&space)
            .unwrap_or_else(|e| tracing::error!("{e}"));
    }
    core.flush_everything()?;

    let mut next = Control {
        checkpoint: start.1,
        generation: start.0,
        ..old
    };
    if geometry != (old.files, old.file_blocks) {
        next.first_file = old.first_file + old.files;
        (next.files, next.file_blocks) = geometry;
        let files = LogFiles::create(&*core.disk, next.first_file, next.files, next.file_blocks)?;
        let inline = core.options.io_threads == 0;
        core.log = Log::new(files, start.0, start.1, buffer, inline, core.fatal.clone());
    }
    core.update_control(|c| {
        *c = Control {
            next_trx: c.next_trx,
            sequence: c.sequence,
            ..next
        }
    });
    LogFiles::sweep(&*core.disk, next.first_file, next.files)?;
    tell(RecoveryPhase::Done, end, end);
    Ok((core, report))
}

/// First pass: the end of the last whole mini-transaction.
fn find_end(files: &LogFiles, control: &Control) -> Result<Lsn, StoreError> {
    let mut scan = Scan::new(files, control.generation, control.checkpoint);
    let mut records = Vec::new();
    while scan.next(&mut records)?.is_some() {}
    Ok(scan.position())
}

/// A page being changed by the mini-transaction at hand.
struct Held {
    id: PageId,
    /// `None`: its LSN says that the change is in already.
    apply: bool,
    frame: u32,
    before: u64,
    space: Arc<Space>,
}

impl Held {
    fn word(&self) -> &PageWord {
        self.space.dir.get_or_make(self.id.page)
    }
}

/// The second pass.
struct Redo<'a> {
    core: &'a Core,
    names: HashMap<SpaceId, String>,
    report: &'a mut RecoveryReport,
    missing: BTreeSet<SpaceId>,
    corrupt: BTreeSet<PageId>,
    held: Vec<Held>,
}

impl<'a> Redo<'a> {
    fn new(
        core: &'a Core,
        names: HashMap<SpaceId, String>,
        report: &'a mut RecoveryReport,
    ) -> Self {
        Redo {
            core,
            names,
            report,
            missing: BTreeSet::new(),
            corrupt: BTreeSet::new(),
            held: Vec::new(),
        }
    }

    fn run(
        mut self,
        control: &Control,
        end: Lsn,
        tell: &dyn Fn(RecoveryPhase, Lsn, Lsn),
    ) -> Result<(), StoreError> {
        let mut scan = Scan::new(
            self.core.log.files(),
            control.generation,
            control.checkpoint,
        );
        let mut records = Vec::new();
        let mut told = 0;
        while let Some((start, stop)) = scan.next(&mut records)? {
            if start >= told + REPORT_EVERY {
                tell(RecoveryPhase::Redo, start, end);
                told = start;
            }
            self.apply_mtr(&records, start, stop)?;
        }
        self.report.missing_spaces = self.missing.into_iter().collect();
        self.report.corrupt_pages = self.corrupt.into_iter().collect();
        Ok(())
    }

    fn apply_mtr(&mut self, bytes: &[u8], start: Lsn, end: Lsn) -> Result<(), StoreError> {
        let mut records = Records::new(bytes);
        for record in records.by_ref() {
            self.report.redo_records += 1;
            if let Err(e) = self.apply_record(record, end) {
                self.release(start, end);
                return Err(e);
            }
        }
        self.release(start, end);
        if !records.whole() {
            let what =
                format!("the records of the mini-transaction at {start} do not fit together");
            return Err(StoreError::BadFile {
                file: "log".into(),
                what,
            });
        }
        Ok(())
    }

    fn apply_record(&mut self, record: Record<'_>, end: Lsn) -> Result<(), StoreError> {
        let Some(at) = self.hold(record, end)? else {
            return Ok(());
        };
        let held = &self.held[at];
        if !held.apply {
            return Ok(());
        }
        let page = PageMut::new(held.id, self.core.frames.words(held.frame));
        if let Err(e) = redo::apply(&*self.core.redo, record.op, record.payload, &page) {
            tracing::error!("redo up to LSN {end}: {e}");
            self.corrupt.insert(record.id);
        }
        Ok(())
    }

    /// Latches the record's page for the rest of the mini-transaction. `None`: the page is lost or gone.
    fn hold(&mut self, record: Record<'_>, end: Lsn) -> Result<Option<usize>, StoreError> {
        let id = record.id;
        let fresh = record.op == redo::INIT;
        if fresh {
            self.corrupt.remove(&id);
        } else if self.corrupt.contains(&id) {
            return Ok(None);
        }
        if let Some(at) = self.held.iter().position(|h| h.id == id) {
            return Ok(Some(at));
        }
        let Some(space) = self.space(id.space)? else {
            return Ok(None);
        };
        let word = space.dir.get_or_make(id.page);
        if fresh {
            self.install_empty(word, id)?;
        } else if let Err(e) = self.core.load_now(&space, id) {
            if !matches!(e, StoreError::Corrupt { .. }) {
                return Err(e);
            }
            tracing::error!("redo up to LSN {end}: {e}");
            self.corrupt.insert(id);
            return Ok(None);
        }
        let before = word
            .latch_resident()
            .expect("I: recovery is alone, and the page was just made resident");
        let frame = frame_of(before).expect("I: as above");
        let bytes = self.core.frames.words(frame);
        let lsn = words::load_u64(bytes, header::LSN);
        if !fresh && lsn == 0 && words::load_u16(bytes, header::PAGE_TYPE) == PageType::UNUSED {
            word.release_unchanged(before);
            tracing::error!("redo up to LSN {end}: page {id} was never written");
            self.corrupt.insert(id);
            return Ok(None);
        }
        self.core.frames.touch(frame);
        self.held.push(Held {
            id,
            apply: lsn < end,
            frame,
            before,
            space: space.clone(),
        });
        Ok(Some(self.held.len() - 1))
    }

    /// I3: a frame for a page whose old bytes do not matter.
    fn install_empty(&self, word: &PageWord, id: PageId) -> Result<(), StoreError> {
        if frame_of(word.load()).is_some() {
            return Ok(());
        }
        let frame = self.core.frame_blocking()?;
        words::fill_zero(self.core.frames.words(frame), 0, crate::PAGE_SIZE);
        self.core.frames.set_page(frame, Some(id));
        self.core.frames.set_used(frame, 1);
        self.core
            .probation
            .admit(&self.core.frames, frame, id, false);
        if word.install(word.load(), frame) {
            self.core.probation.enter(&self.core.frames, frame, id);
        } else {
            self.core.give_frame(frame);
        }
        Ok(())
    }

    fn space(&mut self, id: SpaceId) -> Result<Option<Arc<Space>>, StoreError> {
        if let Some(space) = self.core.spaces.arc(id) {
            return Ok(Some(space));
        }
        let Some(name) = self.names.get(&id) else {
            self.missing.insert(id);
            return Ok(None);
        };
        self.core.spaces.open(&*self.core.disk, id, name).map(Some)
    }

    /// I2: stamps and releases the pages of the mini-transaction `[start, end)`.
    fn release(&mut self, start: Lsn, end: Lsn) {
        for held in self.held.drain(..) {
            let bytes = self.core.frames.words(held.frame);
            let trx = words::load_u64(bytes, header::NEWEST_TRX);
            self.core
                .trx_floor
                .fetch_max(trx.saturating_add(1), Ordering::Relaxed);
            if held.apply {
                words::store_u64(bytes, header::LSN, end);
                self.core.frames.mark_dirty(held.frame, start);
                held.word().release_changed(held.before);
            } else {
                held.word().release_unchanged(held.before);
            }
        }
    }
}
