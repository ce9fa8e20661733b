//! Stops long operations: DDL that fills trees, CHECK TABLE and ANALYZE TABLE. The thread that runs
//! one has a flag, which KILL sets.
//!
//! # Concurrency
//! The session's worker shares the flag and sets it once. The flag orders no memory: the operation
//! ends with an error of its own, which the session gets like any other error.
//!
//! # Failure
//! Only the filling of trees (step 1 of the protocol) can be stopped, so a stopped DDL statement
//! leaves nothing behind, like one that met a full disk.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::error::EngineError;

thread_local! {
    /// The flag of the change that this thread runs.
    static ASKED: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Runs `change`; a filling of trees in it ends with [`EngineError::Stopped`] soon after `asked`
/// was raised.
pub fn stoppable<T>(asked: Arc<AtomicBool>, change: impl FnOnce() -> T) -> T {
    /// Removes the flag, also after a panic, because the thread runs other jobs afterwards.
    struct Restore(Option<Arc<AtomicBool>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            ASKED.replace(self.0.take());
        }
    }
    let _restore = Restore(ASKED.replace(Some(asked)));
    change()
}

/// [`EngineError::Stopped`] if the change that this thread runs is to stop.
pub(crate) fn check() -> Result<(), EngineError> {
    let asked = ASKED.with_borrow(|flag| flag.as_ref().is_some_and(|f| f.load(Relaxed)));
    if asked {
        Err(EngineError::Stopped)
    } else {
        Ok(())
    }
}
