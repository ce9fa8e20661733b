//! The rows that the steps of recursive common table expressions read.

use std::cell::RefCell;

use super::spill::Spool;

/// For each running recursion, the rows that are new to its current step; the innermost recursion
/// is last.
#[derive(Default)]
pub(crate) struct Working(pub RefCell<Vec<(u32, Option<Spool>)>>);

impl Working {
    /// Takes the rows of recursion `number`; `None` if they were taken already.
    pub fn take(&self, number: u32) -> Option<Spool> {
        let mut all = self.0.borrow_mut();
        let (_, rows) = all.iter_mut().rev().find(|w| w.0 == number)?;
        rows.take()
    }
}
