//! How a long computation lets its statement be stopped, and other sessions run.

use crate::SqlError;

/// Called from inside parsing, planning, sorting, matching and functions over large values. The
/// statement counts the work and looks at KILL, its time limit and its time slice about every
/// 100 µs, so that a call costs an addition and a comparison.
///
/// A call may suspend the statement's coroutine. The caller holds no latch, no mutex and no borrow
/// of state that other statements of the thread use.
pub trait Checkpoint {
    /// Counts `work`, in steps of about a nanosecond: a byte that is read, a tenth of a comparison.
    ///
    /// # Errors
    /// The statement must end: 1317 after KILL, 3024 when its time is over, and so on.
    fn checkpoint(&self, work: u64) -> Result<(), SqlError>;
}

/// Bytes that are copied between two checkpoints.
const COPY_BYTES: usize = 64 << 10;

/// A copy of a text that may be large, made in pieces.
///
/// # Errors
/// The statement must end.
pub fn copy_in_pieces(text: &[u8], checkpoint: &dyn Checkpoint) -> Result<Vec<u8>, SqlError> {
    let mut copy = Vec::new();
    append_in_pieces(text, &mut copy, checkpoint)?;
    Ok(copy)
}

/// Appends a text or a row that may be large, in pieces with checkpoints between them.
///
/// # Errors
/// The statement must end. A part of the text may have been appended.
#[inline]
pub fn append_in_pieces(
    text: &[u8],
    out: &mut Vec<u8>,
    checkpoint: &dyn Checkpoint,
) -> Result<(), SqlError> {
    if text.len() <= COPY_BYTES {
        out.extend_from_slice(text);
        return Ok(());
    }
    append_large(text, out, checkpoint)
}

#[cold]
fn append_large(
    text: &[u8],
    out: &mut Vec<u8>,
    checkpoint: &dyn Checkpoint,
) -> Result<(), SqlError> {
    out.reserve(text.len());
    for piece in text.chunks(COPY_BYTES) {
        out.extend_from_slice(piece);
        // New memory costs more than the copy.
        checkpoint.checkpoint(piece.len() as u64 / 2)?;
    }
    Ok(())
}

/// A computation that is never stopped: tests and short texts.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoCheckpoint;

impl Checkpoint for NoCheckpoint {
    fn checkpoint(&self, _: u64) -> Result<(), SqlError> {
        Ok(())
    }
}

/// Work between two looks of a [`Checkpoint`] at its statement: about 100 µs.
pub const CHECKPOINT_WORK: u64 = 100_000;
