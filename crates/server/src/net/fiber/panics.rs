//! Whether the server may continue after a panic in a statement.
//!
//! A hook records the location of each panic before the stack unwinds. A panic in parsing, planning
//! or execution affects its own session only. A panic inside the engine, or inside a
//! mini-transaction, may leave shared memory half changed; then the process must end, and recovery
//! restores the state from the log.

use std::cell::Cell;
use std::panic::{self, PanicHookInfo};
use std::sync::Once;

thread_local! {
    static CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// Crates without state shared between sessions, or whose shared state cannot be left half changed.
/// A panic in the standard library is reported at its caller.
const PRIVATE: [&str; 6] = ["protocol", "server", "sql", "plan", "exec", "types"];

/// Ends the process if a thread panics on which all clients depend: a restart is better than
/// hanging.
pub(crate) struct EndProcessOnPanic;

impl Drop for EndProcessOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!("a thread of the network side panicked; the server ends");
            std::process::abort();
        }
    }
}

/// Installs the hook, once per process. The previous hook still prints the panic.
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

/// Whether the last panic on this thread can only have affected its own session.
pub(crate) fn last_was_contained() -> bool {
    CONTAINED.get()
}

fn is_contained(info: &PanicHookInfo<'_>) -> bool {
    nfold_engine::mini_transactions_here() == 0
        && info.location().is_some_and(|at| is_private(at.file()))
}

/// Whether a path is `crates/NAME/src/...` with a NAME of [`PRIVATE`].
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
