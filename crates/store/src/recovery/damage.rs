//! Distinguishes a damaged log or control file from one that a crash cut short.
//!
//! After a crash, the log ends at some byte. A flipped bit in the middle of the log looks similar,
//! and the log after it would be lost silently. Five observations prove damage. The first one
//! follows from the size of a block's header, which lies in one sector and so is never half
//! written:
//! - a block header at the end of the log that is neither valid nor all zeros.
//!
//! The others are written after log, so finding them without that log proves damage:
//! - A page on disk, in place or in the doublewrite file: the log was durable up to the page's LSN
//!   before the page was written.
//! - A block of a later generation or a later lap, at the position where the log begins or ends
//!   according to the control file: the control file was durable before such a block was written,
//!   so its newer block is lost.
//! - A block whose header contains a synced LSN beyond the end of the log. Every block header
//!   contains the LSN up to which the log was synced when the block was written.
//!
//! One kind of damage looks like a write that the crash cut short: a flipped byte in the log that
//! the very last write appended.
//!
//! Without proof of damage, complete blocks after the end are reported. A power failure may leave
//! such blocks; a kill cannot.

use crate::error::StoreError;
use crate::log::control::{self, Control};
use crate::log::files::LogFiles;
use crate::log::format::{PAYLOAD, next_block};
use crate::page::{Lsn, PageId};

/// The number of blocks after the end of the log that are examined.
const LOOK_AHEAD: u64 = 1024;

/// Checks that the log at the checkpoint and at its `end` is not newer than the control file.
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

/// Examines the blocks after the end of the log. `missing` is the block at which reading ended.
/// Returns an error if there is proof that the log continued. Returns a description with file,
/// offset and LSN if complete blocks follow.
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
             they may be writes without an acknowledged sync; otherwise the file is damaged there, and what follows is lost"
        )
    }))
}

/// The error for a page that was written when the log extended beyond its present `end`.
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
