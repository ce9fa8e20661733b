//! Counting the work of a function, so that its statement can be stopped and other sessions run.

use std::cell::Cell;

use nfold_types::{CHECKPOINT_WORK, Checkpoint, SqlError};

/// Collects small amounts of work into calls of a [`Checkpoint`].
pub struct Work<'c> {
    checkpoint: &'c dyn Checkpoint,
    pending: Cell<u64>,
}

impl<'c> Work<'c> {
    /// A counter that starts at 0.
    pub fn new(checkpoint: &'c dyn Checkpoint) -> Work<'c> {
        Work {
            checkpoint,
            pending: Cell::new(0),
        }
    }

    /// Counts `steps` of about a nanosecond each.
    ///
    /// # Errors
    /// The statement must end.
    #[inline]
    pub fn add(&self, steps: usize) -> Result<(), SqlError> {
        let pending = self.pending.get() + steps as u64;
        if pending < CHECKPOINT_WORK {
            self.pending.set(pending);
            return Ok(());
        }
        self.pending.set(0);
        self.checkpoint.checkpoint(pending)
    }
}
