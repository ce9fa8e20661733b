//! The read-only proof: everything that threads share is made read-only memory, and then four of
//! them run all read workloads, through the whole server from packets to packets.
//!
//! What the server allocates when it opens the database, makes the tables, plans each statement and
//! resolves lies in one mapping (`zone`): page table, transaction status, latches, locks, schema,
//! statistics, plans, reference counts of all these. That mapping, the page frames and the
//! program's statics are protected; each worker's own memory is not. A store to any of them ends
//! the process, saying where it came from. The exceptions are lines of their own that the design
//! allows: a session's snapshot and metadata-lock slots, and sharded counters. Background threads
//! do not exist here; what they would do has been done.
//!
//! The search for a parent that the check of a foreign key makes is among the reads. The change of
//! the child before it is left out, for it does write.

#[allow(dead_code)] // parts of it
mod workload;
mod zone;

use std::sync::Barrier;

use nfold_engine::{EngineSession, Isolation, KeyProbe, TrxOptions};
use nfold_protocol::consts::{column_type, com};
use nfold_protocol::frame::{begin_packet, end_packet};
use nfold_protocol::response::parse_err;
use nfold_server::embedded::{Client, Embedded, Seed};
use nfold_types::ValueRef;
use nfold_types::key::KeyLayout;
use workload::{BESIDE, EVERYTHING, Given, ROWS, Random, Statement, load, statements};

#[global_allocator]
static ALLOCATOR: zone::Zoned = zone::Zoned;

const THREADS: u64 = 8;
/// Rounds of everything before the proof: marks are set, hints are put right.
const WARM_ROUNDS: u64 = 3;
/// The memory to which a warm read may store: cache lines of its own session or worker.
const SLOTS_AND_COUNTERS: &[&str] = &[
    "txn::view::slots::Line",
    "catalog::mdl::",
    "observe::sharded::Shard",
    "observe::table_io::",
];
const LEVELS: [&str; 3] = ["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ"];

/// A connection that fails the test when a statement fails.
struct Connection<'a> {
    client: Client<'a>,
    packet: Vec<u8>,
    answer: Vec<u8>,
    /// Ids of prepared statements, by their texts.
    prepared: Vec<(String, u32)>,
    bytes: u64,
}

impl<'a> Connection<'a> {
    fn new(server: &'a Embedded) -> Self {
        Connection {
            client: server.connect().unwrap(),
            packet: Vec::new(),
            answer: Vec::new(),
            prepared: Vec::new(),
            bytes: 0,
        }
    }

    fn command(&mut self, code: u8, body: &[u8]) {
        self.fails(code, body, 0);
    }

    /// Code 0: it does not fail.
    fn fails(&mut self, code: u8, body: &[u8], wanted: u16) {
        self.packet.clear();
        let (mut sequence, at) = (0, begin_packet(&mut self.packet));
        self.packet.push(code);
        self.packet.extend_from_slice(body);
        end_packet(&mut self.packet, at, &mut sequence);
        self.answer.clear();
        self.client.command(&self.packet, &mut self.answer).unwrap();
        let (mut found, mut packets) = (0, &*self.answer);
        while let [a, b, c, _, rest @ ..] = packets {
            let len = usize::from(*a) | usize::from(*b) << 8 | usize::from(*c) << 16;
            let (packet, rest) = rest.split_at(len);
            packets = rest;
            if packet.first() == Some(&0xff) {
                let (code, _, message) = parse_err(packet).unwrap();
                let message = String::from_utf8_lossy(message);
                let sql = String::from_utf8_lossy(body);
                assert_eq!(code, wanted, "{message}: {sql}");
                found = code;
            }
        }
        assert_eq!(found, wanted, "{}", String::from_utf8_lossy(body));
        self.bytes += self.answer.len() as u64;
    }

    fn query(&mut self, sql: &str) {
        self.command(com::QUERY, sql.as_bytes());
    }

    /// With the values in place of its `?`.
    fn text(&mut self, s: &Statement) {
        let mut parts = s.sql.split('?');
        let mut sql = parts.next().unwrap_or_default().to_string();
        for (part, value) in parts.zip(&s.values) {
            match value {
                Given::Number(n) => sql.push_str(&n.to_string()),
                Given::Text(t) => sql.extend(["'", t, "'"]),
            }
            sql.push_str(part);
        }
        self.query(&sql);
    }

    fn execute(&mut self, s: &Statement) {
        let known = self.prepared.iter().find(|(sql, _)| *sql == s.sql);
        let id = match known {
            Some((_, id)) => *id,
            None => {
                self.command(com::STMT_PREPARE, s.sql.as_bytes());
                let id = u32::from_le_bytes(self.answer[5..9].try_into().unwrap());
                self.prepared.push((s.sql.clone(), id));
                id
            }
        };
        let mut body = id.to_le_bytes().to_vec();
        body.extend_from_slice(&[0, 1, 0, 0, 0]);
        if !s.values.is_empty() {
            body.resize(body.len() + s.values.len().div_ceil(8), 0);
            body.push(1);
            for value in &s.values {
                body.extend(match value {
                    Given::Number(_) => [column_type::LONGLONG, 0],
                    Given::Text(_) => [column_type::VAR_STRING, 0],
                });
            }
            for value in &s.values {
                match value {
                    Given::Number(n) => body.extend(n.to_le_bytes()),
                    Given::Text(t) => {
                        body.push(t.len() as u8);
                        body.extend(t.bytes());
                    }
                }
            }
        }
        self.command(com::STMT_EXECUTE, &body);
    }

    /// What sessions do beside reading tables.
    fn beside(&mut self) {
        for (sql, error) in BESIDE {
            self.fails(com::QUERY, sql.as_bytes(), *error);
        }
        self.command(com::PING, b"");
        self.command(com::INIT_DB, b"ro");
    }

    /// Everything at these levels, with and without BEGIN, in text and prepared.
    fn everything(&mut self, levels: &[&str], seed: u64) {
        let mut random = Random(seed);
        for level in levels {
            self.query(&format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"));
            for (begin, prepared) in [(false, false), (false, true), (true, false), (true, true)] {
                if begin {
                    self.query("BEGIN");
                }
                for statement in statements(&mut random) {
                    if prepared {
                        self.execute(&statement);
                    } else {
                        self.text(&statement);
                    }
                }
                if begin {
                    self.query("COMMIT");
                }
            }
            self.beside();
        }
    }
}

/// The search for parents by a child's foreign keys.
struct ParentChecks {
    session: EngineSession,
    /// By the primary key, and by a key that is not unique; with values of
    /// which half are there.
    probes: [(KeyProbe, KeyLayout, fn(u64) -> ValueRef<'static>); 2],
    found: u64,
    missing: u64,
}

impl ParentChecks {
    fn new(server: &Embedded, number: u64) -> Self {
        let engine = server.engine();
        let schema = engine.catalog().snapshot();
        let people = schema.table("ro", "people").expect("loaded");
        let country = people.index("country").expect("loaded");
        let people = engine.table(people.id).expect("open");
        let mut session = engine.session(1000 + number).expect("a slot");
        session.begin(TrxOptions {
            isolation: Isolation::RepeatableRead,
            read_only: false,
            consistent_snapshot: false,
        });
        let probe = |index| KeyProbe::new(people.clone(), index);
        let layout = |index| people.key_layout(index).clone();
        ParentChecks {
            session,
            probes: [
                (probe(0), layout(0), |n| {
                    ValueRef::Int((n % (2 * ROWS)) as i64)
                }),
                (probe(country), layout(country), |n| ValueRef::UInt(n % 80)),
            ],
            found: 0,
            missing: 0,
        }
    }

    fn run(&mut self, seed: u64) {
        let mut random = Random(seed);
        for (probe, layout, value) in &mut self.probes {
            for _ in 0..500 {
                let value = value(random.below(1 << 20));
                layout
                    .encode_values([value], probe.key())
                    .expect("a number");
                match self.session.probe(probe) {
                    Ok(true) => self.found += 1,
                    Ok(false) => self.missing += 1,
                    Err(stop) => panic!("a probe of rows at rest: {stop:?}"),
                }
            }
        }
    }
}

/// A reader: warms itself up in step with the others, then reads while all is protected. Returns
/// the bytes that it was answered then.
fn read(seed: &Seed, number: u64, step: &Barrier) -> u64 {
    let server = Embedded::worker(seed, number as u16 + 1)
        .map_err(|e| e.0)
        .unwrap();
    let mut connection = Connection::new(&server);
    connection.query("USE ro");
    let mut parents = ParentChecks::new(&server, number);
    for round in 0..WARM_ROUNDS {
        EVERYTHING.iter().for_each(|sql| connection.query(sql));
        // Every statement once, then enough for marks and hints.
        let levels = if round == 0 { LEVELS.len() } else { 1 };
        connection.everything(&LEVELS[..levels], 100 * round + number);
        parents.run(100 * round + number);
        step.wait();
        step.wait(); // the background's turn
    }
    step.wait(); // protected from here on
    let before = connection.bytes;
    connection.everything(&LEVELS, 7777 + number);
    parents.run(7777 + number);
    assert!(parents.found > 500 && parents.missing > 500);
    let bytes = connection.bytes - before;
    step.wait();
    step.wait(); // protected again, to see that stores are seen
    if number == 0 {
        connection.query("UPDATE people SET zip = '54321' WHERE id = 7");
    }
    step.wait();
    step.wait(); // writable
    bytes
}

/// A program of its own, without the test harness, whose main thread stores to statics when a test
/// takes long.
fn main() {
    let say = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |what| {
        say(what);
        std::process::exit(101); // the others wait for this thread
    }));
    zone::prepare(SLOTS_AND_COUNTERS);

    let dir = tempfile::tempdir().unwrap();
    let options = [
        ("innodb_buffer_pool_size", "67108864"),
        ("innodb_flush_log_at_trx_commit", "0"),
    ];
    let server = zone::inside(|| {
        let server = Embedded::open(dir.path(), &options)
            .map_err(|e| e.0)
            .unwrap();
        let mut connection = Connection::new(&server);
        load().iter().for_each(|sql| connection.query(sql));
        // Plans that the workers will share.
        connection.everything(&LEVELS[..1], 1);
        drop(connection);
        server
    });
    let run_background = || zone::inside(|| while server.engine().step_background().unwrap() {});

    run_background();

    let seed = server.seed();
    let step = Barrier::new(THREADS as usize + 1);
    let (frames, statics) = (server.engine().frame_memory(), zone::statics());
    assert!(zone::used() > 8 << 20 && frames.1 == 64 << 20 && !statics.is_empty());
    let status = || {
        let s = server.engine().store_status();
        [
            s.latches_acquired,
            s.latch_waits,
            s.latch_fallbacks,
            s.optimistic_restarts,
            s.clock_marks,
            s.read_misses,
        ]
    };
    let pages = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..THREADS)
            .map(|number| {
                let (seed, step) = (&seed, &step);
                scope.spawn(move || read(seed, number, step))
            })
            .collect();
        for _ in 0..WARM_ROUNDS {
            step.wait();

            run_background();

            step.wait();
        }
        let before = status();
        let protect = |read_only| {
            zone::protect(zone::zone(), read_only);
            zone::protect(frames, read_only);
            statics.iter().for_each(|s| zone::protect(*s, read_only));
        };
        protect(true);
        step.wait();
        step.wait(); // they read
        protect(false);
        assert_eq!(
            zone::failures(),
            0,
            "stores to what threads share, told above"
        );
        let names = "latches, waits, fallbacks, restarts, marks, misses";
        assert_eq!(status(), before, "{names}");
        let noted = zone::noted();
        assert!(noted > 0, "snapshots are announced in slots");
        zone::be_quiet();
        protect(true);
        step.wait();
        step.wait(); // one of them writes
        protect(false);
        assert!(zone::failures() > 3, "stores are noticed");
        step.wait();
        for reader in readers {
            assert!(reader.join().unwrap() > 1 << 20, "it was answered");
        }
        noted
    });
    println!(
        "read-only proof: {THREADS} threads, {pages} pages of slots and counters were stored to, nothing else"
    );
}
