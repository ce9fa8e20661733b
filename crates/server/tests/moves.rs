//! Connections that go from one worker to another: clients notice nothing.

mod common;

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::TestServer;
use common::client::Client;

fn root(s: &TestServer) -> Client {
    Client::login(s.port, "root", "").expect("root logs in")
}

fn moved(s: &TestServer) -> u64 {
    s.server().counters().totals().moved
}

/// Asks worker `from` until as many connections as `wanted` have gone over since `before`: a busy
/// one stays.
fn give(s: &TestServer, from: usize, to: usize, before: u64, wanted: u64) {
    s.eventually("connections go over", |s| {
        let left = (before + wanted).saturating_sub(moved(s));
        s.server().give(from, to, left as usize);
        left == 0
    });
}

#[test]
fn idle_connections_go_over_and_answer() {
    let s = TestServer::start(&[]);
    let mut clients: Vec<Client> = (0..8).map(|_| root(&s)).collect();
    let ids: Vec<u32> = clients.iter().map(|c| c.id).collect();
    for c in &mut clients {
        assert_eq!(c.value("SELECT 1"), "1");
    }
    for (from, to, n) in [(0, 1, 4), (1, 0, 8), (0, 1, 8)] {
        give(&s, from, to, moved(&s), n);
        for (c, i) in clients.iter_mut().zip(0..) {
            assert_eq!(c.value(&format!("SELECT {i}")), i.to_string());
        }
    }
    assert_eq!(s.server().registry().connections(), 8);
    let processes = s.server().registry().processes();
    let listed: Vec<u32> = processes.iter().map(|p| p.id).collect();
    assert!(processes.iter().all(|p| p.identity.user == "root"));
    assert_eq!(listed, {
        let mut ids = ids.clone();
        ids.sort_unstable();
        ids
    });
    // A KILL finds a connection where it is now.
    let (killed, rest) = clients.split_first_mut().unwrap();
    rest[0].query(&format!("KILL {}", killed.id)).unwrap();
    assert!(killed.read().is_err(), "the server hangs up");
    let ended = s.ended.load(Ordering::SeqCst);
    drop(clients);
    s.eventually("all are gone", |s| s.server().registry().connections() == 0);
    assert!(s.ended.load(Ordering::SeqCst) >= ended);
    assert_eq!(s.ended.load(Ordering::SeqCst), 8);
}

#[test]
fn connections_with_tls_go_over_and_answer() {
    let s = TestServer::start(&[]);
    let mut clients: Vec<_> = (0..4)
        .map(|_| Client::login_tls(s.port, "root", "").expect("root logs in"))
        .collect();
    for c in &mut clients {
        assert_eq!(c.value("TLS"), "true");
    }
    for (from, to, n) in [(0, 1, 2), (1, 0, 4), (0, 1, 4)] {
        give(&s, from, to, moved(&s), n);
        for (c, i) in clients.iter_mut().zip(0..) {
            assert_eq!(c.value(&format!("SELECT {i}")), i.to_string());
            // More than a socket takes at once, and records in many pieces.
            assert_eq!(c.query("ROWS 3 1000000").map(|r| r.len()), Ok(3));
        }
    }
}

/// A command of which a part has come stays where it is; the rest of it is not lost.
#[test]
fn a_command_that_is_not_whole_stays() {
    let s = TestServer::start(&[]);
    let mut c = root(&s);
    let mut packets = vec![];
    for text in ["SELECT 1", "SELECT 22", "SELECT 333"] {
        packets.extend_from_slice(&[text.len() as u8 + 1, 0, 0, 0, 3]);
        packets.extend_from_slice(text.as_bytes());
    }
    let cut = packets.len() - 4;
    c.stream.write_all(&packets[..cut]).unwrap();
    for answer in [&b"1"[..], b"22"] {
        c.sequence = 1;
        assert_eq!(c.result(), Ok(vec![answer.to_vec()]));
    }
    s.server().give(0, 1, 9);
    s.server().give(1, 0, 9);
    // Later connections of both workers are answered after that.
    for _ in 0..2 {
        assert_eq!(root(&s).value("SELECT 1"), "1");
    }
    assert_eq!(moved(&s), 0);
    c.stream.write_all(&packets[cut..]).unwrap();
    c.sequence = 1;
    assert_eq!(c.result(), Ok(vec![b"333".to_vec()]));
}

#[test]
fn a_transaction_stays() {
    let s = TestServer::start(&[]);
    let (mut a, mut b) = (root(&s), root(&s));
    assert_eq!(a.query("BEGIN"), Ok(vec![]));
    assert_eq!(b.query("BEGIN"), Ok(vec![]));
    s.server().give(0, 1, 9);
    s.server().give(1, 0, 9);
    for c in [&mut a, &mut b] {
        // The request has been seen when a later connection of that worker is answered.
        assert_eq!(c.value("SELECT 1"), "1");
    }
    assert_eq!(moved(&s), 0);
}

#[test]
fn moving_all_the_time_loses_no_answer() {
    let s = TestServer::start(&[]);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|n| {
                let (s, stop) = (&s, &stop);
                scope.spawn(move || {
                    let mut c = root(s);
                    let mut i = 0u64;
                    while !stop.load(Ordering::Relaxed) {
                        i += 1;
                        let number = (n * 1_000_000_000 + i).to_string();
                        assert_eq!(c.value(&format!("SELECT {number}")), number);
                    }
                    i
                })
            })
            .collect();
        s.eventually("they go to and fro", |s| {
            s.server().give(0, 1, 2);
            s.server().give(1, 0, 2);
            std::thread::sleep(Duration::from_micros(200));
            moved(s) >= 200
        });
        stop.store(true, Ordering::Relaxed);
        for c in clients {
            assert!(c.join().unwrap() > 0);
        }
    });
}

#[test]
fn a_shutdown_ends_those_that_have_moved() {
    let mut s = TestServer::start(&[]);
    let clients: Vec<Client> = (0..4).map(|_| root(&s)).collect();
    give(&s, 0, 1, 0, 2);
    s.server().give(1, 0, 4);
    s.stop();
    assert_eq!(s.ended.load(Ordering::SeqCst), 4);
    drop(clients);
}
