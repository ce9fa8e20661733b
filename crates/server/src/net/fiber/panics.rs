//! Whether the server may go on after a statement has panicked.
//!
//! A hook looks at the place of each panic before the stack unwinds. A mistake in parsing, planning
//! or computing spoils nothing but its own session; one inside the engine, or inside a
//! mini-transaction, may have left shared memory half changed, and the process must end: recovery
//! then begins from what the log says.

use std::cell::Cell;
use std::panic::{self, PanicHookInfo};
use std::sync::Once;

thread_local! {
    static CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// Crates that hold no state shared between sessions, or none that a panic can leave half changed.
/// A panic in the standard library is reported where it was called.
const PRIVATE: [&str; 6] = ["protocol", "server", "sql", "plan", "exec", "types"];

/// A thread without which clients would hang takes the process with it: better to be started again.
pub(crate) struct EndProcessOnPanic;

impl Drop for EndProcessOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!("a thread of the network side panicked; the server ends");
            std::process::abort();
        }
    }
}

/// Sets the hook, once in a process; the one before it still prints the panic.
pub(crate) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            CONTAINED.set(is_contained(info));
            before(info);
        }));
    });
}

/// Did the last panic of this thread happen where it can have spoiled its own session only?
pub(crate) fn last_was_contained() -> bool {
    CONTAINED.get()
}

fn is_contained(info: &PanicHookInfo<'_>) -> bool {
    nfold_engine::mini_transactions_here() == 0
        && info.location().is_some_and(|at| is_private(at.file()))
}

/// `crates/NAME/src/…` with a name of [`PRIVATE`].
fn is_private(file: &str) -> bool {
    let Some((_, inside)) = file.rsplit_once("crates/") else {
        return false;
    };
    inside
        .split_once("/src/")
        .is_some_and(|(name, _)| PRIVATE.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_told_apart() {
        assert!(is_private("crates/plan/src/bind/from.rs"));
        assert!(is_private(
            "/home/x/crates/y/nfold/crates/exec/src/expr/func/mod.rs"
        ));
        assert!(!is_private("crates/engine/src/session.rs"));
        assert!(!is_private("crates/btree/src/tree.rs"));
        assert!(!is_private("/rustc/abc/library/core/src/slice/index.rs"));
        assert!(!is_private(
            "/root/.cargo/registry/src/x/smallvec-1.0/src/lib.rs"
        ));
        assert!(!is_private(""));
    }

    #[test]
    fn a_panic_in_this_crate_is_contained() {
        watch();
        watch();
        let nothing: Vec<u8> = vec![];
        let index = std::hint::black_box(3);
        assert!(panic::catch_unwind(|| nothing[index]).is_err());
        assert!(last_was_contained());
    }
}
