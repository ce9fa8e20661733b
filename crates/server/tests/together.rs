//! Commands of many connections that are received together, and answers that go out together: each
//! client gets its own, whole and in order.
//!
//! Everything runs with and without io_uring, on one worker, which a long statement keeps busy 2 ms
//! at a time, so that much arrives meanwhile.

mod common;

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::TestServer;
use common::client::Client;
use nfold_protocol::consts::com;
use nfold_protocol::frame::{begin_packet, end_packet};

/// As in the server: a longer answer is sent alone.
const ANSWER_BYTES: usize = 16 << 10;

fn root(s: &TestServer) -> Client {
    Client::login(s.port, "root", "").expect("root logs in")
}

/// Runs `f` with each kind of server while a statement computes.
fn with_a_busy_worker(options: &[(&str, &str)], f: impl Fn(&TestServer, bool)) {
    for io_uring in ["ON", "OFF"] {
        let mine = [("nfold_workers", "1"), ("nfold_io_uring", io_uring)];
        let s = TestServer::start(&[&mine, options].concat());
        let done = AtomicBool::new(false);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                let mut busy = root(&s);
                while !done.load(Ordering::SeqCst) {
                    assert_eq!(busy.query("SPIN 40"), Ok(vec![]));
                }
            });
            let stop = Stop(&done);
            f(&s, io_uring == "ON" && nfold_ring::Ring::new().is_some());
            drop(stop);
        });
    }
}

/// Also when an assertion fails.
struct Stop<'d>(&'d AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A command as bytes.
fn command(text: &str) -> Vec<u8> {
    let mut bytes = vec![];
    let at = begin_packet(&mut bytes);
    bytes.push(com::QUERY);
    bytes.extend_from_slice(text.as_bytes());
    end_packet(&mut bytes, at, &mut 0);
    bytes
}

fn together(s: &TestServer) -> u64 {
    s.server().counters().totals().together
}

#[test]
fn each_gets_its_own_answers() {
    with_a_busy_worker(&[], |s, rings| {
        // More than go together.
        let mut clients: Vec<Client> = (0..150).map(|_| root(s)).collect();
        let lengths = [1, 100, 2000, ANSWER_BYTES - 100, ANSWER_BYTES, 60_000];
        for round in 0..6 {
            for (i, c) in clients.iter_mut().enumerate() {
                let mut text = command(&format!("SELECT {}", 1000 * round + i));
                match i % 5 {
                    // Several commands, one that is cut in two.
                    0 => text.extend(command(&format!("SELECT {i}"))),
                    1 => text.extend_from_slice(&command(&format!("SELECT {i}"))[..7]),
                    2 => text.extend(command(&format!("ROWS 1 {}", lengths[i % 6]))),
                    _ => {}
                }
                c.stream.write_all(&text).expect("it takes them");
            }
            std::thread::sleep(Duration::from_millis(5));
            for (i, c) in clients.iter_mut().enumerate().rev() {
                if i % 5 == 1 {
                    let rest = &command(&format!("SELECT {i}"))[7..];
                    c.stream.write_all(rest).expect("it takes the rest");
                }
                let number = |n: usize| vec![n.to_string().into_bytes()];
                c.sequence = 1;
                assert_eq!(c.result(), Ok(number(1000 * round + i)));
                c.sequence = 1;
                match i % 5 {
                    0 | 1 => assert_eq!(c.result(), Ok(number(i))),
                    2 => assert_eq!(c.result(), Ok(vec![vec![b'x'; lengths[i % 6]]])),
                    _ => {}
                }
            }
        }
        assert_eq!(together(s) > 300, rings, "{} together", together(s));
    });
}

/// If a socket is full, the rest of its answer is sent later, in order. Other connections do not
/// wait for it.
#[test]
fn what_a_socket_does_not_take_follows() {
    with_a_busy_worker(&[], |s, rings| {
        let mut slow: Vec<_> = (0..8)
            .map(|_| Client::login_unix(&s.socket(), "root").expect("root logs in"))
            .collect();
        let mut other = root(s);
        let rounds = 60;
        for round in 0..rounds {
            for c in &mut slow {
                let text = command(&format!("ROWS 1 {}", 9000 + round));
                c.stream.write_all(&text).expect("it takes them");
            }
            assert_eq!(other.value("SELECT 1"), "1");
        }
        for c in &mut slow {
            for round in 0..rounds {
                c.sequence = 1;
                assert_eq!(c.result(), Ok(vec![vec![b'x'; 9000 + round]]));
            }
        }
        assert_eq!(together(s) > 0, rings);
    });
}

/// A client that reads nothing is given up after `net_write_timeout`, also when its answer was left
/// to the outbox.
#[test]
fn who_does_not_read_is_given_up() {
    with_a_busy_worker(&[("net_write_timeout", "1")], |s, _| {
        let mut mute: Vec<_> = (0..4)
            .map(|_| Client::login_unix(&s.socket(), "root").expect("root logs in"))
            .collect();
        let ids: Vec<u32> = mute.iter().map(|c| c.id).collect();
        for _ in 0..60 {
            for c in &mut mute {
                let _ = c.stream.write_all(&command("ROWS 1 9000"));
            }
            std::thread::sleep(Duration::from_millis(3));
        }
        s.eventually("they are given up", |s| {
            let processes = s.server().registry().processes();
            processes.iter().all(|p| !ids.contains(&p.id))
        });
        assert_eq!(root(s).value("SELECT 1"), "1");
    });
}

/// Clients that leave, are killed or log in anew while answers wait.
#[test]
fn any_order_of_things() {
    with_a_busy_worker(&[], |s, _| {
        let mut seed = 0x2545_F491_4F6C_DD1D_u64;
        let mut random = move |below: u64| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed % below
        };
        let mut clients: Vec<(Client, Vec<String>)> = (0..40).map(|_| (root(s), vec![])).collect();
        let mut killer = root(s);
        for step in 0..4000 {
            let i = random(40) as usize;
            let (c, expected) = &mut clients[i];
            match random(20) {
                0 => clients[i] = (root(s), vec![]), // without a farewell
                1 => {
                    let _ = c.send(com::QUIT, b"");
                    clients[i] = (root(s), vec![]);
                }
                2 => {
                    killer
                        .query(&format!("KILL {}", c.id))
                        .expect("it is there");
                    // It has received whole answers, from the first on.
                    for want in expected.iter() {
                        c.sequence = 1;
                        match c.result() {
                            Ok(rows) => assert_eq!(rows, vec![want.clone().into_bytes()]),
                            Err(_) => break,
                        }
                    }
                    clients[i] = (root(s), vec![]);
                }
                3 => {
                    for want in expected.drain(..) {
                        c.sequence = 1;
                        assert_eq!(c.result(), Ok(vec![want.into_bytes()]));
                    }
                    let login = b"nat\0\0\0\x2d\0mysql_native_password\0\0";
                    c.send(com::CHANGE_USER, login).expect("it takes it");
                    let switch = c.read().expect("a switch");
                    let salt = &switch[switch.len() - 21..switch.len() - 1];
                    let proof = nfold_protocol::scramble::native_answer(b"npw", salt);
                    c.write(&proof).expect("it takes it");
                    assert_eq!(c.read().expect("an OK")[0], 0);
                }
                4..12 => {
                    let text = command(&format!("SELECT {step}"));
                    c.stream.write_all(&text).expect("it takes it");
                    expected.push(step.to_string());
                }
                _ => {
                    for want in expected.drain(..) {
                        c.sequence = 1;
                        assert_eq!(c.result(), Ok(vec![want.into_bytes()]));
                    }
                }
            }
        }
        let left = clients.len() + 2;
        s.eventually("the others are gone", |s| {
            s.server().registry().connections() == left
        });
    });
}
