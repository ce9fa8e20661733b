//! Stopping what runs for minutes: a change of a definition that fills trees, CHECK and ANALYZE
//! TABLE. Whoever runs one on a thread lends it a flag, which KILL raises.
//!
//! # Concurrency
//! The flag is shared with the session's worker, which stores it once. It orders nothing: the
//! change ends by its own error, and the session learns that as of any other.
//! # Failure
//! What stops of a change is the filling alone (step 1 of the protocol), so the change leaves what
//! a full disk would: nothing.

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
    /// Takes the flag away, also when the change panics: the thread goes on to other jobs.
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
