//! A look at the statement's [`Checkpoint`] now and then while a large text is read.

use std::cell::RefCell;

use nfold_types::{Checkpoint, SqlError};

/// Bytes between two looks. Shorter texts are never watched.
pub(crate) const STRIDE: usize = 4096;
/// Work of one byte: a token is a few bytes long.
const BYTE_WORK: u64 = 10;

/// [`Watch::look`], where the text is watched.
#[inline]
pub(crate) fn look(watch: Option<&Watch<'_>>, bytes: usize) -> bool {
    watch.is_none_or(|watch| watch.look(bytes))
}

/// What the lexers of one text share. After a failure they see the text end where they are.
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

    /// So many bytes were read; false: the statement ends.
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

    /// The error that the text ended with, if it did.
    pub fn into_result(self) -> Result<(), SqlError> {
        self.stopped.into_inner().map_or(Ok(()), Err)
    }
}

impl std::fmt::Debug for Watch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watch")
    }
}
