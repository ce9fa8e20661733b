//! The rows that the steps of recursive common table expressions read.

use std::cell::RefCell;

use super::spill::Spool;

/// The rows that the step that runs has not seen, of each recursion that runs, innermost last.
#[derive(Default)]
pub(crate) struct Working(pub RefCell<Vec<(u32, Option<Spool>)>>);

impl Working {
    /// Takes the rows of recursion `number`; `None`: they were taken already.
    pub fn take(&self, number: u32) -> Option<Spool> {
        let mut all = self.0.borrow_mut();
        let (_, rows) = all.iter_mut().rev().find(|w| w.0 == number)?;
        rows.take()
    }
}
