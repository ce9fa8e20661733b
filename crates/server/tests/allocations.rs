//! A warm command allocates nothing on its worker, from the packet to the answer.
#![allow(unsafe_code)]

mod common;
#[path = "../examples/instructions/connection.rs"]
mod connection;
#[path = "../examples/instructions/kinds.rs"]
#[allow(dead_code, reason = "how often a kind is counted")]
mod kinds;
#[path = "read_only/workload.rs"]
#[allow(dead_code, reason = "what sessions do beside reading")]
mod workload;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use common::TestServer;
use common::client::Client;
use connection::Connection;
use kinds::{Random, kinds, load};
use nfold_protocol::consts::{column_type, com};
use nfold_protocol::frame::{begin_packet, end_packet};
use nfold_server::embedded::Embedded;
use workload::{Given, Statement};

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
    assert!(
        ALLOCATIONS.load(Ordering::Relaxed) > 0,
        "the server was counted while it started"
    );
    // A worker takes a new buffer only when more connections are ready at once than ever before,
    // which the scheduler decides. An allocation by each command would show in every round.
    let rounds: Vec<u64> = (0..10)
        .map(|_| {
            let before = ALLOCATIONS.load(Ordering::Relaxed);
            ping_all(500);
            ALLOCATIONS.load(Ordering::Relaxed) - before
        })
        .collect();
    assert!(
        rounds.contains(&0),
        "allocations of 4,000 commands: {rounds:?}"
    );
    // Eight connections on either of two workers, with one buffer each to receive and to send.
    let buffers = 2 * 2 * 8;
    assert!(
        rounds.iter().sum::<u64>() <= 2 * buffers,
        "allocations: {rounds:?}"
    );
}

/// Kinds that change rows may allocate (versions, locks, undo).
fn may_allocate(name: &str) -> bool {
    ["update", "insert_"].iter().any(|w| name.starts_with(w))
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

/// The command of a statement, with its values in their places; `id`: as an execution of a prepared
/// one.
fn packet_of(s: &Statement, id: Option<u32>) -> Vec<u8> {
    let (mut packet, mut sequence) = (Vec::new(), 0);
    let at = begin_packet(&mut packet);
    let Some(id) = id else {
        let mut values = s.values.iter();
        packet.push(com::QUERY);
        for (n, part) in s.sql.split('?').enumerate() {
            match (n, n.checked_sub(1).and_then(|_| values.next())) {
                (_, Some(Given::Number(v))) => packet.extend(v.to_string().bytes()),
                (_, Some(Given::Text(t))) => packet.extend(format!("'{t}'").bytes()),
                _ => {}
            }
            packet.extend(part.bytes());
        }
        end_packet(&mut packet, at, &mut sequence);
        return packet;
    };
    packet.push(com::STMT_EXECUTE);
    packet.extend(id.to_le_bytes());
    packet.extend([0, 1, 0, 0, 0]);
    if !s.values.is_empty() {
        packet.resize(packet.len() + s.values.len().div_ceil(8), 0);
        packet.push(1);
        packet.extend(s.values.iter().flat_map(|v| match v {
            Given::Number(_) => [column_type::LONGLONG, 0],
            Given::Text(_) => [column_type::VAR_STRING, 0],
        }));
    }
    for value in &s.values {
        match value {
            Given::Number(n) => packet.extend(n.to_le_bytes()),
            Given::Text(t) => {
                packet.push(t.len() as u8);
                packet.extend(t.bytes());
            }
        }
    }
    end_packet(&mut packet, at, &mut sequence);
    packet
}

/// Whether a statement still allocates memory: for each text that is a key to look up; for texts
/// that it keeps from one row to the next (the MAX of a group, the value of a scalar subquery) and
/// for results computed from a MAX; for the keys of a subquery, if they are more than a plan keeps.
fn takes_memory(sql: &str) -> bool {
    let parts = [
        "email IN (?",
        "email = ?",
        "MAX(email)",
        "MAX(title)",
        "(SELECT title FROM",
        "MAX(deleted) + 9",
        "NOT IN (SELECT",
    ];
    parts.iter().any(|part| sql.contains(part))
}

#[test]
fn a_warm_read_of_any_workload_allocates_nothing() {
    let _alone = alone();
    NOT_COUNTED.set(true);
    let dir = tempfile::tempdir().unwrap();
    let server = Embedded::open(dir.path(), &[("innodb_buffer_pool_size", "67108864")]).unwrap();
    let mut loader = Connection::new(server.connect().unwrap());
    for sql in workload::load() {
        loader.query(&sql).unwrap();
    }
    let mut client = server.connect().unwrap();
    let mut answer = Vec::with_capacity(4 << 20);
    let mut run = |packet: &[u8], times: u32| {
        let before = HERE.get();
        for _ in 0..times {
            answer.clear();
            client.command(packet, &mut answer).unwrap();
            assert_ne!(answer[4], 0xff, "{}", answer.escape_ascii());
        }
        (HERE.get() - before, answer.get(5..9).map(<[u8]>::to_vec))
    };
    let alone = |code: u8, body: &[u8]| {
        let (mut packet, mut sequence) = (Vec::new(), 0);
        let at = begin_packet(&mut packet);
        packet.push(code);
        packet.extend(body);
        end_packet(&mut packet, at, &mut sequence);
        packet
    };
    run(&alone(com::QUERY, b"USE ro"), 1);
    let mut found = Vec::new();
    let statements = workload::statements(&mut workload::Random(3));
    assert!(statements.len() > 70);
    for s in &statements {
        let (_, id) = run(&alone(com::STMT_PREPARE, s.sql.as_bytes()), 1);
        let id = u32::from_le_bytes(id.unwrap().try_into().unwrap());
        for id in [None, Some(id)] {
            let packet = packet_of(s, id);
            run(&packet, 5);
            let (allocations, _) = run(&packet, 5);
            if allocations > 0 && !takes_memory(&s.sql) {
                let sql: String = s.sql.chars().take(150).collect();
                found.push(format!("{allocations} in 5, {}: {sql}", id.is_some()));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// Values of the long list.
const LONG: u64 = 90_000;
/// The most memory that a statement may keep afterwards.
const POOLED_BYTES: i64 = 512 << 10;

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
    // The values are not sorted, and 4,000 or 20,000 of them exist in the column. `limit` is how
    // many bytes a value may take besides the statement's text. It is more for the primary key,
    // where all lookups are prepared together, with room for their rows.
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
        assert!(kept < POOLED_BYTES, "{column}: {kept}");
    }
}
