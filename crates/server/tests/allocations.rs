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
use std::sync::{Mutex, MutexGuard, PoisonError};

use common::TestServer;
use common::client::Client;
use connection::Connection;
use kinds::{Random, kinds, load};
use nfold_protocol::consts::com;
use nfold_protocol::frame::{begin_packet, end_packet};
use nfold_server::embedded::Embedded;

/// Counts what all threads but the marked ones allocate, and what each thread does.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static NOT_COUNTED: Cell<bool> = const { Cell::new(false) };
    static HERE: Cell<u64> = const { Cell::new(0) };
    /// Bytes that this thread has allocated and not freed, and the most of them.
    static LIVE: Cell<i64> = const { Cell::new(0) };
    static PEAK: Cell<i64> = const { Cell::new(0) };
}

fn grow(bytes: i64) {
    LIVE.set(LIVE.get() + bytes);
    PEAK.set(PEAK.get().max(LIVE.get()));
}

fn count(bytes: i64) {
    HERE.set(HERE.get() + 1);
    grow(bytes);
    if !NOT_COUNTED.get() {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: everything is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        grow(-(layout.size() as i64));
        // SAFETY: the caller's promise, passed on.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(new_size as i64 - layout.size() as i64);
        // SAFETY: the caller's promise, passed on.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}

#[global_allocator]
static GLOBAL: Counting = Counting;

/// Tests that count what all threads do run one after the other.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn a_warm_command_allocates_nothing() {
    let _alone = alone();
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

/// Kinds that change rows may allocate (versions, locks, undo); sorting and grouping make values yet.
fn may_allocate(name: &str) -> bool {
    let kinds = [
        "update",
        "insert_",
        "sum_range",
        "order_range",
        "distinct_range",
    ];
    kinds.iter().any(|w| name.starts_with(w))
}

#[test]
fn a_warm_statement_allocates_nothing() {
    let _alone = alone();
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

/// Values of the long list.
const LONG: u64 = 90_000;
/// What a statement may keep afterwards.
const KEPT_BYTES: i64 = 512 << 10;

#[test]
fn a_long_list_takes_little_memory_per_value_and_gives_it_back() {
    let _alone = alone();
    NOT_COUNTED.set(true);
    let dir = tempfile::tempdir().unwrap();
    let server = Embedded::open(dir.path(), &[("innodb_buffer_pool_size", "67108864")]).unwrap();
    let mut connection = Connection::new(server.connect().unwrap());
    for sql in load() {
        connection.query(&sql).unwrap();
    }
    let mut client = server.connect().unwrap();
    // Out of order; of each column 4,000 or 20,000 values are there. What a value may take beside the statement's own text: by the primary
    // key all lookups are prepared together, with room for their rows.
    let ids: Vec<String> = (0..LONG).map(|n| (n * 7919 % LONG).to_string()).collect();
    for (column, limit) in [("group_id", 128), ("id", 256)] {
        let list = ids.join(",");
        let sql = format!("SELECT COUNT(*) FROM counted.items WHERE {column} IN ({list})");
        let (mut packet, mut sequence) = (Vec::new(), 0);
        let at = begin_packet(&mut packet);
        packet.push(com::QUERY);
        packet.extend_from_slice(sql.as_bytes());
        end_packet(&mut packet, at, &mut sequence);
        let mut answer = Vec::with_capacity(1 << 16);
        let before = LIVE.get();
        PEAK.set(before);
        client.command(&packet, &mut answer).unwrap();
        let text = String::from_utf8_lossy(&answer);
        assert!(text.contains(&kinds::ROWS.to_string()), "{column}: {text}");
        let (peak, kept) = (PEAK.get() - before, LIVE.get() - before);
        // The received packet is in a buffer of at most twice its size.
        let values = peak - 2 * packet.len() as i64;
        println!(
            "{column}: {} bytes a value, {kept} kept",
            values / LONG as i64
        );
        assert!(values < limit * LONG as i64, "{column}: {values}");
        assert!(kept < KEPT_BYTES, "{column}: {kept}");
    }
}
