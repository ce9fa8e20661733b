//! The network side under clients that behave well, badly, and in great number.

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use common::TestServer;
use common::client::{Client, error};
use nfold_protocol::consts::{cap, com};
use nfold_protocol::frame::{begin_packet, end_packet};

fn root(s: &TestServer) -> Client {
    Client::login(s.port, "root", "").expect("root logs in")
}

#[test]
fn both_ways_of_ending_rows() {
    let s = TestServer::start(&[]);
    for caps in [cap::SERVER, cap::SERVER & !cap::DEPRECATE_EOF] {
        let caps = caps & !cap::CONNECT_WITH_DB & !cap::CONNECT_ATTRS;
        let (c, greeting) = Client::greeted(s.port).unwrap();
        let mut c = c.login_with(greeting, "nat", "npw", caps).unwrap();
        assert_eq!(c.query("ROWS 3 5"), Ok(vec![b"xxxxx".to_vec(); 3]));
        assert_eq!(c.query("BEGIN"), Ok(vec![]));
        assert_eq!(c.query("frob").unwrap_err().0, 1064);
        c.send(com::STMT_PREPARE, b"?").unwrap();
        assert_eq!(c.read().unwrap()[..5], [0, 7, 0, 0, 0]);
        c.read().unwrap();
        if caps & cap::DEPRECATE_EOF == 0 {
            assert_eq!(c.read().unwrap()[0], 0xfe);
        }
        c.send(com::STMT_SEND_LONG_DATA, b"\x07\0\0\0\0\0long")
            .unwrap();
        c.send(com::STMT_CLOSE, b"\x09\0\0\0").unwrap();
        c.send(com::STMT_EXECUTE, b"\x07\0\0\0\0\x01\0\0\0abc")
            .unwrap();
        assert_eq!(c.result(), Ok(vec![b"7 3 4".to_vec()]));
    }
}

/// This includes work that was deferred by a statement that never suspends: nothing else would do
/// it before the worker sleeps.
#[test]
fn a_worker_does_deferred_work_before_it_sleeps() {
    let s = TestServer::start(&[]);
    let mut c = root(&s);
    for _ in 0..3 {
        assert_eq!(c.query("PUTOFF"), Ok(vec![]));
        let end = Instant::now() + Duration::from_secs(20);
        while s.deferred.load(Ordering::SeqCst) {
            assert!(Instant::now() < end, "the worker sleeps over it");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// A worker may block for a connection only while it has no other: none that runs a statement, and
/// none that began one a short time ago.
#[test]
fn a_worker_blocks_for_one_connection_only_when_it_has_no_other() {
    const ALONE: Duration = Duration::from_millis(100);
    let s = TestServer::start(&[("nfold_workers", "1")]);
    let (mut a, mut b) = (root(&s), root(&s));
    let alone = |a: &mut Client| {
        let before = s.caught_up.times_it_may_block();
        s.eventually("it may block", |s| {
            assert_eq!(a.query("SYNC"), Ok(vec![]));
            s.caught_up.times_it_may_block() > before
        });
    };
    alone(&mut a);
    for pause_ms in [0, 1, 10, 60, 99, 150] {
        for _ in 0..5 {
            assert_eq!(b.value("SELECT 1"), "1");
            assert_eq!(a.query("SYNC"), Ok(vec![]));
            std::thread::sleep(Duration::from_millis(pause_ms));
            assert_eq!(a.query("SYNC"), Ok(vec![]));
        }
    }
    alone(&mut a);
    alone(&mut b);
    let told = std::mem::take(&mut *s.caught_up.may_block.lock().unwrap());
    let too_soon = |ago: &&Option<Duration>| ago.is_some_and(|ago| ago < ALONE);
    assert_eq!(told.iter().find(too_soon), None);
    // One that waits for something, however long it has.
    b.send(com::QUERY, b"WAIT 0").unwrap();
    s.eventually("it waits", |s| s.server().counters().totals().running == 1);
    let end = Instant::now() + 2 * ALONE;
    while Instant::now() < end {
        assert_eq!(a.query("SYNC"), Ok(vec![]));
    }
    assert_eq!(s.caught_up.times_it_may_block(), 0);
}

#[test]
fn small_commands_answer() {
    let s = TestServer::start(&[]);
    let mut c = root(&s);
    for (code, body, first) in [
        (com::PING, &b""[..], 0u8),
        (com::INIT_DB, b"db", 0),
        (com::STATISTICS, b"", b'U'),
        (com::SET_OPTION, b"\0\0", 0xfe),
        (com::RESET_CONNECTION, b"", 0),
        (com::FIELD_LIST, b"t\0", 0xfe),
        (0x55, b"", 0xff),
        (com::DEBUG, b"", 0xff),
    ] {
        c.send(code, body).unwrap();
        assert_eq!(c.read().unwrap()[0], first, "{code}");
    }
    c.send(0x55, b"").unwrap();
    assert_eq!(error(&c.read().unwrap()).0, 1047);
    c.sequence = 0;
    c.write(b"").unwrap();
    assert_eq!(error(&c.read().unwrap()).0, 1047);
    // Too short: an error, and the connection lives.
    c.send(com::STMT_EXECUTE, b"\x01").unwrap();
    assert_eq!(error(&c.read().unwrap()).0, 1835);
    assert_eq!(c.value("SELECT 5"), "5");
    c.send(com::QUIT, b"").unwrap();
    assert_eq!(c.stream.read(&mut [0; 8]).unwrap(), 0);
    s.eventually("the session ends", |s| s.ended.load(Ordering::SeqCst) == 1);
    s.eventually("the connection is gone", |s| {
        s.server().registry().connections() == 0
    });
    assert_eq!(s.server().counters().totals().aborted_clients, 0);
}

#[test]
fn change_user_authenticates_again() {
    let s = TestServer::start(&[]);
    let mut c = root(&s);
    c.send(
        com::CHANGE_USER,
        b"nat\0\0\0\x2d\0mysql_native_password\0\0",
    )
    .unwrap();
    let switch = c.read().unwrap();
    assert_eq!(switch[0], 0xfe);
    let salt = switch[switch.len() - 21..switch.len() - 1].to_vec();
    c.write(&nfold_protocol::scramble::native_answer(b"npw", &salt))
        .unwrap();
    assert_eq!(c.read().unwrap()[0], 0);
    assert_eq!(c.value("SELECT USER()"), "nat@localhost");
    c.send(
        com::CHANGE_USER,
        b"nat\0\0\0\x2d\0mysql_native_password\0\0",
    )
    .unwrap();
    c.read().unwrap();
    c.write(&[1; 20]).unwrap();
    assert_eq!(error(&c.read().unwrap()).0, 1045);
    assert_eq!(c.stream.read(&mut [0; 8]).unwrap(), 0);
    s.eventually("the session ends", |s| s.ended.load(Ordering::SeqCst) == 1);
}

#[test]
fn pipelined_commands_are_answered_in_order_and_together() {
    let s = TestServer::start(&[]);
    let mut c = root(&s);
    let mut all = vec![];
    for i in 0..500 {
        let at = begin_packet(&mut all);
        all.extend_from_slice(format!("\x03SELECT {i}").as_bytes());
        end_packet(&mut all, at, &mut 0);
    }
    c.stream.write_all(&all).unwrap();
    for i in 0..500 {
        c.sequence = 1;
        assert_eq!(c.result(), Ok(vec![i.to_string().into_bytes()]));
    }
    // Byte by byte.
    c.sequence = 0;
    for b in b"\x09\0\0\0\x03SELECT 7" {
        c.stream.write_all(&[*b]).unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
    c.sequence = 1;
    assert_eq!(c.result(), Ok(vec![b"7".to_vec()]));
}

#[test]
fn packets_beyond_16_mib_and_beyond_the_limit() {
    let s = TestServer::start(&[("max_allowed_packet", "40M")]);
    let mut c = root(&s);
    for len in [
        (1 << 24) - 2,
        (1 << 24) - 1,
        1 << 24,
        20 << 20,
        (33 << 20) - 2,
    ] {
        let sql = format!("LENGTH {}", "x".repeat(len - 8));
        assert_eq!(c.value(&sql), (len - 1).to_string());
    }
    // One that authentication never takes in several packets.
    c.send(com::CHANGE_USER, &vec![b'x'; 17 << 20]).unwrap();
    c.sequence = 2;
    assert_eq!(error(&c.read().unwrap()).0, 1047);
    let rows = c.query("ROWS 1 20971520").unwrap();
    assert_eq!(rows[0].len(), 20 << 20);
    // 41 MiB: the error arrives although much of it is still on its way.
    let big = vec![b'x'; 41 << 20];
    let _ = c.send(com::QUERY, &big);
    c.sequence = 3; // it answers the packet that went beyond the limit
    assert_eq!(error(&c.read().unwrap()).0, 1153);
    assert_eq!(root(&s).value("SELECT 1"), "1");
}

#[test]
fn out_of_order_packets_are_refused() {
    let s = TestServer::start(&[]);
    let mut c = root(&s);
    c.sequence = 5;
    c.write(b"\x03SELECT 1").unwrap();
    assert_eq!(error(&c.read().unwrap()).0, 1156);
}

#[test]
fn garbage_gets_an_error_or_a_close_and_the_server_lives() {
    let s = TestServer::start(&[]);
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    for round in 0..200 {
        let logged_in = round % 2 == 0;
        let mut stream = if logged_in {
            root(&s).stream
        } else {
            let (c, _) = Client::greeted(s.port).unwrap();
            c.stream
        };
        let len = random() % 300 + 1;
        let mut bytes: Vec<u8> = (0..len).map(|_| random() as u8).collect();
        if round % 3 == 0 && bytes.len() > 4 {
            // A header that is believed, then garbage.
            bytes[..4].copy_from_slice(&[(len - 4) as u8, 0, 0, u8::from(!logged_in)]);
        }
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        // It ends: closed, or reset.
        let mut rest = vec![];
        if let Err(e) = stream.read_to_end(&mut rest) {
            assert_eq!(e.kind(), std::io::ErrorKind::ConnectionReset, "{e}");
        }
    }
    assert_eq!(root(&s).value("SELECT 1"), "1");
    s.eventually("all are gone", |s| s.server().registry().connections() <= 1);
}

#[test]
fn waits_end_by_wake_deadline_kill_and_disconnect() {
    let s = TestServer::start(&[]);
    let mut c = root(&s);
    assert_eq!(c.query("WAKE 30"), Ok(vec![]));
    assert_eq!(c.query("WAIT 30").unwrap_err().0, 1205);
    let mut other = root(&s);
    // KILL QUERY ends the statement only.
    c.send(com::QUERY, b"WAIT 0").unwrap();
    s.eventually("it waits", |_| {
        other
            .query("PROCESSLIST")
            .unwrap()
            .iter()
            .any(|p| p.windows(6).any(|w| w == b"WAIT 0"))
    });
    assert_eq!(other.query(&format!("KILL QUERY {}", c.id)), Ok(vec![]));
    assert_eq!(c.result().unwrap_err().0, 1317);
    assert_eq!(c.value("SELECT 2"), "2");
    // One that comes while nothing runs is forgotten.
    other.query(&format!("KILL QUERY {}", c.id)).unwrap();
    assert_eq!(c.query("WAIT 10").unwrap_err().0, 1205);
    // A statement that computes notices at its next batch.
    c.send(com::QUERY, b"SPIN 60000").unwrap();
    std::thread::sleep(Duration::from_millis(20));
    other.query(&format!("KILL QUERY {}", c.id)).unwrap();
    assert_eq!(c.result().unwrap_err().0, 1317);
    // KILL ends the connection, waiting or idle.
    c.send(com::QUERY, b"WAIT 0").unwrap();
    std::thread::sleep(Duration::from_millis(20));
    other.query(&format!("KILL {}", c.id)).unwrap();
    assert_eq!(c.result().unwrap_err().0, 1053);
    assert_eq!(c.stream.read(&mut [0; 8]).unwrap(), 0);
    let mut idle = root(&s);
    other.query(&format!("KILL {}", idle.id)).unwrap();
    assert_eq!(idle.stream.read(&mut [0; 8]).unwrap(), 0);
    assert_eq!(other.query("KILL 4000000000").unwrap_err().0, 1094);
    // A client that goes away gives up its lock wait long before the deadline.
    let ended = s.ended.load(Ordering::SeqCst);
    let mut gone = root(&s);
    gone.send(com::QUERY, b"WAIT 60000").unwrap();
    std::thread::sleep(Duration::from_millis(20));
    drop(gone);
    s.eventually("its session ends", |s| {
        s.ended.load(Ordering::SeqCst) == ended + 1
    });
}

#[test]
fn long_statements_give_way_to_others_of_the_same_worker() {
    let s = TestServer::start(&[("nfold_workers", "1")]);
    let mut long = root(&s);
    let mut short = root(&s);
    long.send(com::QUERY, b"SPIN 1500").unwrap();
    let start = Instant::now();
    for _ in 0..20 {
        assert_eq!(short.value("SELECT 1"), "1");
    }
    let answered = start.elapsed();
    assert_eq!(long.result(), Ok(vec![]));
    assert!(
        start.elapsed() > answered,
        "the short ones did not wait for the long one"
    );
    assert!(s.server().counters().totals().yields > 0);
}

#[test]
fn a_slow_reader_holds_up_only_itself_and_is_dropped_in_the_end() {
    let s = TestServer::start(&[("nfold_workers", "1"), ("net_write_timeout", "1")]);
    let mut slow = root(&s);
    slow.send(com::QUERY, b"ROWS 100 1000000").unwrap();
    let mut other = root(&s);
    assert_eq!(other.value("SELECT 1"), "1");
    // Reads some, pauses less than the timeout, reads on: gets everything.
    let mut patient = root(&s);
    patient.send(com::QUERY, b"ROWS 30 1000000").unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(patient.result().map(|r| r.len()), Ok(30));
    s.eventually("the slow one is dropped", |s| {
        s.ended.load(Ordering::SeqCst) == 1
    });
    assert_eq!(s.server().counters().totals().aborted_clients, 1);
    drop(slow);
}

#[test]
fn a_panic_ends_one_connection() {
    let s = TestServer::start(&[]);
    let mut c = root(&s);
    assert_eq!(c.query("PANIC").unwrap_err().0, 1815);
    assert_eq!(c.stream.read(&mut [0; 8]).unwrap(), 0);
    s.eventually("its session ends", |s| s.ended.load(Ordering::SeqCst) == 1);
    assert_eq!(root(&s).value("SELECT 1"), "1");
}

#[test]
fn one_more_than_max_connections_is_for_the_administrator() {
    let s = TestServer::start(&[("max_connections", "2")]);
    let _a = Client::login(s.port, "nat", "npw").unwrap();
    let _b = Client::login(s.port, "nat", "npw").unwrap();
    let refused = Client::login(s.port, "nat", "npw").map(|_| ()).unwrap_err();
    assert_eq!(refused, (1040, "Too many connections".into()));
    s.eventually("its place is free", |s| {
        s.server().registry().connections() == 2
    });
    let mut admin = root(&s);
    assert_eq!(admin.value("SELECT 1"), "1");
    let refused = Client::login(s.port, "root", "").map(|_| ()).unwrap_err();
    assert_eq!(refused.0, 1040);
}

#[test]
fn timeouts_close_connections() {
    let s = TestServer::start(&[("connect_timeout", "2")]);
    let start = Instant::now();
    let (mut silent, _) = Client::greeted(s.port).unwrap();
    let mut idle = root(&s);
    idle.query("TIMEOUT 50").unwrap();
    assert_eq!(idle.stream.read(&mut [0; 8]).unwrap(), 0);
    assert_eq!(silent.stream.read(&mut [0; 8]).unwrap(), 0);
    assert!(start.elapsed() >= Duration::from_secs(2));
    assert_eq!(s.server().counters().totals().aborted_connects, 1);
}

#[test]
fn admission_is_bounded_and_never_holds_up_a_transaction() {
    let s = TestServer::start(&[("nfold_workers", "1"), ("innodb_thread_concurrency", "1")]);
    let mut holder = root(&s);
    holder.query("BEGIN").unwrap();
    let mut waiter = root(&s);
    waiter.send(com::QUERY, b"WAIT 400").unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let mut queued = root(&s);
    queued.send(com::QUERY, b"SELECT 1").unwrap();
    // The transaction is let in although the only place is taken.
    assert_eq!(holder.value("SELECT 3"), "3");
    queued
        .stream
        .set_read_timeout(Some(Duration::from_millis(50)))
        .unwrap();
    assert!(
        queued.stream.peek(&mut [0]).is_err(),
        "it waits for its turn"
    );
    queued
        .stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    assert_eq!(waiter.result().unwrap_err().0, 1205);
    assert_eq!(queued.result(), Ok(vec![b"1".to_vec()]));
}

#[test]
fn stopping_ends_waiting_and_idle_sessions() {
    let mut s = TestServer::start(&[]);
    let _idle: Vec<Client> = (0..5).map(|_| root(&s)).collect();
    let mut waiting = root(&s);
    waiting.send(com::QUERY, b"WAIT 0").unwrap();
    let mut spinning = root(&s);
    spinning.send(com::QUERY, b"SPIN 60000").unwrap();
    let greeted = Client::greeted(s.port).unwrap();
    std::thread::sleep(Duration::from_millis(30));
    s.stop();
    assert_eq!(s.ended.load(Ordering::SeqCst), 7);
    assert!(TcpStream::connect(("127.0.0.1", s.port)).is_err());
    assert!(!std::path::Path::new(&s.socket()).exists());
    drop(greeted);
}
