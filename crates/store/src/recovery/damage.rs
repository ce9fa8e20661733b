//! What tells a damaged log or control file from one that a crash cut short.
//!
//! A crash leaves a log that ends at some byte; so does a flipped bit in the middle of it, and whatever follows would be lost in silence.
//! Five things prove damage. A block's header lies in one sector, which no crash leaves half written:
//! - a header that is neither whole nor zeros, where the log ends.
//!
//! The others are known to come after log in time, so that finding one without the log before it is proof of damage:
//! - a page on disk (in place or in the doublewrite file): log was durable up to its LSN before it was written;
//! - a block of a later generation, or of a later lap, where the control file says that the log begins or ends: the control file was durable before
//!   such a block was written, so its newer block is gone;
//! - a block that says that the log was synced up to an LSN beyond the end: each block says so when it is written, the last one again and again.
//!
//! What cannot be told from a write that the crash cut short: a flipped byte in what the very last write to the log appended.
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
        let Some(found) = files.block_head(sequence)? else {
            continue;
        };
        let later = found.generation > control.generation;
        let lap = found.generation == control.generation && found.sequence > sequence;
        if later || lap {
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

/// Where the log ends, if whole blocks of it follow: file, offset, LSN. An error if there is proof that it went on: `missing` is the block at
/// which reading ended.
pub(super) fn look_behind(
    files: &LogFiles,
    control: &Control,
    end: Lsn,
    missing: Option<u64>,
) -> Result<Option<String>, StoreError> {
    if let Some(sequence) = missing
        && files.is_head_damaged(sequence)?
    {
        let (file, offset) = files.locate(sequence * PAYLOAD);
        return Err(StoreError::BadFile {
            file,
            what: format!(
                "damaged: the header of the block at offset {offset} is not whole, which no crash leaves; the log can be read up to LSN {end}"
            ),
        });
    }
    let own = end / PAYLOAD;
    let limit = (control.checkpoint / PAYLOAD + files.capacity() / PAYLOAD).min(own + LOOK_AHEAD);
    let (mut blocks, mut synced) = (0, 0);
    for sequence in own.saturating_sub(1)..limit {
        let head = files.block_head(sequence)?;
        let head = head.filter(|h| (h.sequence, h.generation) == (sequence, control.generation));
        blocks += u64::from(head.is_some() && sequence > own);
        synced = synced.max(head.map_or(0, |h| h.synced));
    }
    if synced > end {
        let (file, offset) = files.locate(end);
        return Err(StoreError::BadFile {
            file,
            what: format!(
                "damaged in the block at offset {offset} or behind: the log can be read up to LSN {end}, but it was synced up to {synced}; \
                 committed changes are missing"
            ),
        });
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
