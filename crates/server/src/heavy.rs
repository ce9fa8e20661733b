//! Notes that a statement has taken long: it may have freed memory, which the allocator keeps.
//!
//! # Concurrency
//! One flag of the process. A worker writes it at the end of a statement that took [`HEAVY_NS`],
//! and only when it is not set; no other statement touches it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::Thread;
use std::time::Duration;

/// Shorter statements are not noted.
pub(crate) const HEAVY_NS: u64 = 100_000_000;
/// Statements that end within this time are noted together.
const PAUSE: Duration = Duration::from_secs(1);

static NOTED: AtomicBool = AtomicBool::new(false);
static WAITING: OnceLock<Thread> = OnceLock::new();

/// A heavy statement has ended.
#[cold]
pub(crate) fn note() {
    if !NOTED.load(Relaxed) && !NOTED.swap(true, Relaxed) {
        WAITING.get().inspect(|thread| thread.unpark());
    }
}

/// Calls `f` within about a second after heavy statements have ended; to be called by one thread.
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
