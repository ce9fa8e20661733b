//! Opening a store: creates a new one, or recovers an old one to the state at the end of its log.
//!
//! # Picture
//! ```text
//! control file → checkpoint C, generation g
//!   → repair torn pages from the doublewrite file
//!   → scan the log of generation g from C to its end E      (first pass: finds E)
//!   → sync the log: after a kill, its end may be only in the page cache
//!   → pass the attachments above what their reader has to it          (recovery/attachments.rs)
//!   → apply every record to pages whose LSN is below its end (second pass: recovery/replay.rs)
//!   → write all pages
//!   → control file: checkpoint E', generation g+1, where E' = E rounded up to a block
//! ```
//! # Invariants
//! - I1: until all recovered pages are on disk, nothing is written to the log, and the control file
//!   is unchanged. So after a crash during recovery, recovery starts over.
//! # Failure
//! A page that cannot be read, or to which a record does not apply, is reported and the other pages
//! are recovered. Records of a space without a file are skipped, because the space was dropped. If
//! log is lost because of damage and this can be detected, recovery fails (recovery/damage.rs).
//! # Cost
//! It reads the log from the checkpoint twice, and reads and writes the pages named there once. The
//! size of the log bounds all three.

use crate::cleaner::Cleaner;
use crate::core::{Core, default_fatal};
use crate::disk::Disk;
use crate::doublewrite::{self, Doublewrite};
use crate::error::StoreError;
use crate::log::Log;
use crate::log::control::{Control, ControlFile};
use crate::log::files::LogFiles;
use crate::log::format::{FIRST_LSN, next_block};
use crate::log::scan::Scan;
use crate::options::StoreOptions;
use crate::page::{Lsn, SpaceId};
use crate::redo::RedoHandler;
use crate::scratch;
use crate::space;
use crate::status::{RecoveryPhase, RecoveryProgress, RecoveryReport};
use std::collections::HashMap;
use std::sync::Arc;

mod attachments;
mod damage;
mod replay;

/// A progress callback: (phase, redo applied up to this LSN, end of the log).
type ReportProgress<'a> = dyn Fn(RecoveryPhase, Lsn, Lsn) + 'a;

pub(crate) fn open(
    options: StoreOptions,
    disk: Arc<dyn Disk>,
    handler: Arc<dyn RedoHandler>,
    progress: &dyn Fn(RecoveryProgress),
) -> Result<(Core, RecoveryReport), StoreError> {
    space::sweep_temporaries(&*disk)?;
    scratch::sweep(&*disk)?;
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
        (options.log_buffer_bytes, options.huge_pages),
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
    let start = (FIRST_LSN, options.log_fill_bytes);
    let files = LogFiles::create(&*disk, 0, (count, blocks), start)?;
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
        ..RecoveryReport::default()
    };
    let repaired = doublewrite::repair(&*disk, &names)?;
    report.repaired_pages = repaired.pages;
    let files = LogFiles::open(&*disk, old.first_file, old.files, old.file_blocks)?;
    let (end, missing) = find_end(&files, &old)?;
    damage::check_control(&files, &old, end)?;
    if let Some((lsn, page)) = repaired.newest
        && lsn > end
    {
        return Err(damage::newer_page(&files, end, page, lsn));
    }
    report.log_damage = damage::look_behind(&files, &old, end, missing)?;
    if let Some(damage) = &report.log_damage {
        tracing::warn!("{damage}");
    }
    // After a kill, the end of the log and file names may be only in the page cache. The pages
    // written below depend on both.
    files.sync_all()?;
    disk.sync_dir()
        .map_err(|e| StoreError::io(&e, "syncing the directory"))?;
    if let Some(reader) = &options.attachments {
        attachments::pass_on(&files, &old, end, &**reader)?;
    }
    report.end_lsn = end;
    report.clean = end == old.checkpoint;
    let start = (old.generation + 1, next_block(end));
    let geometry = LogFiles::geometry(options.log_bytes);
    let buffer = (options.log_buffer_bytes, options.huge_pages);
    let mut core = assemble(options, disk, handler, control, files, start)?;

    let found = replay::replay(&core, &names, &old, end, &tell)?;
    report.redo_records = found.records;
    report.missing_spaces = found.missing.into_iter().collect();
    report.corrupt_pages = found.corrupt.into_iter().collect();
    tell(RecoveryPhase::Flush, end, end);
    for space in core.spaces.list() {
        core.take_page_count(&space)
            .unwrap_or_else(|e| tracing::error!("{e}"));
    }
    core.flush_everything()?;
    for id in &report.corrupt_pages {
        // From now on, the page is read from the file.
        if let Some(word) = core.spaces.get(id.space).and_then(|s| s.dir().get(id.page)) {
            core.discard(word);
        }
    }

    let mut next = Control {
        checkpoint: start.1,
        generation: start.0,
        ..old
    };
    if geometry != (old.files, old.file_blocks) {
        next.first_file = old.first_file + old.files;
        (next.files, next.file_blocks) = geometry;
        let begin = (start.1, core.options.log_fill_bytes);
        let files = LogFiles::create(&*core.disk, next.first_file, geometry, begin)?;
        let inline = core.options.io_threads == 0;
        core.log = Log::new(
            files,
            start.0,
            start.1,
            buffer,
            inline,
            core.lifecycle.fatal.clone(),
        );
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

/// The first pass. Returns the end of the last complete mini-transaction, and the sequence of the
/// missing block if that ended the log.
fn find_end(files: &LogFiles, control: &Control) -> Result<(Lsn, Option<u64>), StoreError> {
    let mut scan = Scan::new(files, control.generation, control.checkpoint);
    let mut records = Vec::new();
    while scan.next(&mut records)?.is_some() {}
    Ok((scan.position(), scan.missing()))
}
