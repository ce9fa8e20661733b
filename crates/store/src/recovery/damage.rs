//! What tells a damaged log or control file from one that a crash cut short.
//!
//! A crash leaves a log that ends at some byte; so does a flipped bit in the middle of it, and whatever follows would be lost in silence.
//! Three things are known to come after log in time, so that finding one without the log before it is proof of damage:
//! - a page on disk (in place or in the doublewrite file): log was durable up to its LSN before it was written;
//! - a block of a later generation, or of a later lap, where the control file says that the log begins or ends: the control file was durable before
//!   such a block was written, so its newer block is gone.
//!
//! Without proof, whole blocks behind the end are reported: a power failure may leave such, a kill never does.

use crate::error::StoreError;
use crate::log::control::{self, Control};
use crate::log::files::LogFiles;
use crate::log::format::{PAYLOAD, next_block};
use crate::page::{Lsn, PageId};

/// Blocks behind the end of the log that are looked at.
const LOOK_AHEAD: u64 = 1024;

/// The log at the checkpoint and at its `end` is of the control file's time.
pub(super) fn check_control(
    files: &LogFiles,
    control: &Control,
    end: Lsn,
) -> Result<(), StoreError> {
    for lsn in [control.checkpoint, end, next_block(end)] {
        let sequence = lsn / PAYLOAD;
        let Some((found, generation)) = files.block_place(sequence)? else {
            continue;
        };
        if generation > control.generation || (generation == control.generation && found > sequence)
        {
            let (file, offset) = files.locate(lsn);
            return Err(StoreError::BadFile {
                file: control::NAME.into(),
                what: format!(
                    "the newer of its two blocks is damaged: the other one, with the checkpoint at LSN {}, is older than the log in \
                     {file} at offset {offset}",
                    control.checkpoint
                ),
            });
        }
    }
    Ok(())
}

/// Where the log ends, if whole blocks of it follow: file, offset, LSN.
pub(super) fn look_behind(
    files: &LogFiles,
    control: &Control,
    end: Lsn,
) -> Result<Option<String>, StoreError> {
    let first = end / PAYLOAD + 1;
    let limit = (control.checkpoint / PAYLOAD + files.capacity() / PAYLOAD).min(first + LOOK_AHEAD);
    let mut blocks = 0;
    for sequence in first..limit {
        blocks += u64::from(files.block_place(sequence)? == Some((sequence, control.generation)));
    }
    let (file, offset) = files.locate(end);
    Ok((blocks > 0).then(|| {
        format!(
            "{file}: the log ends in the block at offset {offset} (LSN {end}), and {blocks} whole blocks of it follow: after a power failure \
             they may be writes that nobody waited for; otherwise the file is damaged there, and what follows is lost"
        )
    }))
}

/// A page that was written when the log had gone on beyond its `end`.
pub(super) fn newer_page(files: &LogFiles, end: Lsn, id: PageId, lsn: Lsn) -> StoreError {
    let (file, offset) = files.locate(end);
    StoreError::BadFile {
        file,
        what: format!(
            "damaged in the block at offset {offset}: the log can be read up to LSN {end}, but page {} of space {} was written when it had \
             reached {lsn}; committed changes are missing",
            id.page, id.space
        ),
    }
}
