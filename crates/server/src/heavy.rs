//! Reports that a long statement has ended. It may have freed memory that the allocator still
//! holds.
//!
//! # Concurrency
//! One flag per process. A worker sets it at the end of a statement of at least [`HEAVY_NS`],
//! unless it is set already; other statements do not touch it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::Thread;
use std::time::Duration;

/// Shorter statements are not reported.
pub(crate) const HEAVY_NS: u64 = 100_000_000;
/// Statements that end within this time are reported together.
const PAUSE: Duration = Duration::from_secs(1);

static NOTED: AtomicBool = AtomicBool::new(false);
static WAITING: OnceLock<Thread> = OnceLock::new();

/// Reports the end of a heavy statement.
#[cold]
pub(crate) fn note() {
    if !NOTED.load(Relaxed) && !NOTED.swap(true, Relaxed) {
        WAITING.get().inspect(|thread| thread.unpark());
    }
}

/// Calls `f` within about a second after heavy statements have ended. For one thread only.
pub fn follow(f: impl Fn()) -> ! {
    WAITING.get_or_init(std::thread::current);
    loop {
        while !NOTED.load(Relaxed) {
            std::thread::park();
        }
        std::thread::sleep(PAUSE);
        NOTED.store(false, Relaxed);
        f();
    }
}
