//! Work of compiling, counted so that a long pattern can be stopped.

use crate::error::PatternError;

/// Units of work between two calls of the progress function: about 100 µs.
pub(crate) const FUEL: u64 = 20_000;

/// Calls a function once in [`FUEL`] units of work.
pub struct Work<'w> {
    fuel: u64,
    progress: &'w mut dyn FnMut(u64) -> bool,
}

impl<'w> Work<'w> {
    /// `progress` returns `false` to stop.
    pub fn new(progress: &'w mut dyn FnMut(u64) -> bool) -> Self {
        Work {
            fuel: FUEL,
            progress,
        }
    }

    /// Counts work.
    pub fn spend(&mut self, work: u64) -> Result<(), PatternError> {
        if self.fuel > work {
            self.fuel -= work;
            return Ok(());
        }
        let done = FUEL - self.fuel + work;
        self.fuel = FUEL;
        if (self.progress)(done) {
            return Ok(());
        }
        Err(PatternError::Stopped)
    }
}
