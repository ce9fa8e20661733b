//! A warm command allocates nothing on its worker.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use common::TestServer;
use common::client::Client;
use nfold_protocol::consts::com;

/// Counts what all threads but the marked ones allocate.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static NOT_COUNTED: Cell<bool> = const { Cell::new(false) };
}

fn count() {
    if !NOT_COUNTED.get() {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: everything is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise, passed on.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's promise, passed on.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}

#[global_allocator]
static GLOBAL: Counting = Counting;

#[test]
fn a_warm_command_allocates_nothing() {
    NOT_COUNTED.set(true);
    let s = TestServer::start(&[("nfold_workers", "2")]);
    let mut clients: Vec<Client> = (0..8)
        .map(|_| Client::login(s.port, "root", "").expect("root logs in"))
        .collect();
    let mut ping_all = |rounds: usize| {
        for _ in 0..rounds {
            for c in &mut clients {
                c.send(com::PING, b"").unwrap();
            }
            for c in &mut clients {
                assert_eq!(c.read().unwrap()[0], 0);
            }
        }
    };
    ping_all(50);
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    assert!(before > 0, "the server was counted while it started");
    ping_all(500);
    assert_eq!(ALLOCATIONS.load(Ordering::Relaxed) - before, 0);
}
