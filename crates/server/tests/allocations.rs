//! A warm command allocates nothing on its worker, from the packet to the answer.

mod common;
#[path = "../examples/instructions/connection.rs"]
mod connection;
#[path = "../examples/instructions/kinds.rs"]
#[allow(dead_code, reason = "how often a kind is counted")]
mod kinds;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use common::TestServer;
use common::client::Client;
use connection::Connection;
use kinds::{Random, kinds, load};
use nfold_protocol::consts::com;
use nfold_server::embedded::Embedded;

/// Counts what all threads but the marked ones allocate, and what each thread does.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static NOT_COUNTED: Cell<bool> = const { Cell::new(false) };
    static HERE: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    HERE.set(HERE.get() + 1);
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

/// Kinds that change rows may allocate (versions, locks, undo); sorting and grouping make values yet, and ranges a batch for each leaf.
fn may_allocate(name: &str) -> bool {
    let kinds = [
        "update",
        "insert_",
        "sum_range",
        "order_range",
        "distinct_range",
        "range_",
    ];
    kinds.iter().any(|w| name.starts_with(w))
}

#[test]
fn a_warm_statement_allocates_nothing() {
    NOT_COUNTED.set(true);
    let dir = tempfile::tempdir().unwrap();
    let server = Embedded::open(dir.path(), &[("innodb_buffer_pool_size", "67108864")]).unwrap();
    let mut connection = Connection::new(server.connect().unwrap());
    for sql in load() {
        connection.query(&sql).unwrap();
    }
    assert!(HERE.get() > 1000, "the load was counted");
    let mut found = Vec::new();
    for kind in kinds().iter().filter(|k| !may_allocate(&k.name)) {
        let (mut random, mut first) = (Random(7), true);
        let prepared = connection.prepare(kind).unwrap();
        let mut runs = |random: &mut Random, n| {
            let before = HERE.get();
            let bytes = connection.runs(kind, &prepared, random, &mut first, n);
            assert!(bytes.unwrap() > 0);
            HERE.get() - before
        };
        runs(&mut random, 50);
        // The second round meets the same values: buffers have their sizes.
        random = Random(7);
        let allocations = runs(&mut random, 50);
        if allocations > 0 {
            found.push(format!("{}: {allocations} in 50 runs", kind.name));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}
