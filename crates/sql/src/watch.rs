//! Checks the statement's [`Checkpoint`] (KILL, timeouts) regularly while a large text is read.

use std::cell::RefCell;

use nfold_types::{Checkpoint, SqlError};

/// The bytes between two checks. Shorter texts are never checked.
pub(crate) const STRIDE: usize = 4096;
/// The work of one byte. A token has a few bytes.
const BYTE_WORK: u64 = 10;

/// [`Watch::look`], where the text is watched.
#[inline]
pub(crate) fn look(watch: Option<&Watch<'_>>, bytes: usize) -> bool {
    watch.is_none_or(|watch| watch.look(bytes))
}

/// The state that the lexers of one text share. After a failure they see the text end where they
/// are.
pub(crate) struct Watch<'c> {
    checkpoint: &'c dyn Checkpoint,
    stopped: RefCell<Option<SqlError>>,
}

impl<'c> Watch<'c> {
    pub fn new(checkpoint: &'c dyn Checkpoint) -> Watch<'c> {
        Watch {
            checkpoint,
            stopped: RefCell::new(None),
        }
    }

    /// Reports that `bytes` bytes were read. Returns false if the statement must end.
    #[cold]
    pub fn look(&self, bytes: usize) -> bool {
        if self.stopped.borrow().is_some() {
            return false;
        }
        match self.checkpoint.checkpoint(bytes as u64 * BYTE_WORK) {
            Ok(()) => true,
            Err(e) => {
                *self.stopped.borrow_mut() = Some(e);
                false
            }
        }
    }

    /// The error that ended the text, if any.
    pub fn into_result(self) -> Result<(), SqlError> {
        self.stopped.into_inner().map_or(Ok(()), Err)
    }
}

impl std::fmt::Debug for Watch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watch")
    }
}
