//! Tests the driver against a minimal server, which answers every command with one row or an error,
//! and can drop connections.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize};

use nfold_protocol::consts::{NATIVE_PASSWORD, cap, com};
use nfold_protocol::frame::{begin_packet, end_packet};
use nfold_protocol::handshake::{Greeting, SALT};
use nfold_protocol::response::{
    Column, Ok as OkPacket, encode_column, encode_end_of_rows, encode_err, encode_ok,
};
use nfold_protocol::stmt::encode_prepare_ok;

use super::*;
use crate::client::Param;

/// Drops each connection after a number of commands, `breaks` times in total.
struct Fake {
    dsn: Dsn,
    executed: Arc<AtomicU64>,
}

fn payload(out: &mut Vec<u8>, sequence: &mut u8, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = begin_packet(out);
    fill(out);
    end_packet(out, start, sequence);
}

fn receive(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut header = [0; 4];
    stream.read_exact(&mut header).ok()?;
    let mut body = vec![0; u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize];
    stream.read_exact(&mut body).ok()?;
    Some(body)
}

fn serve(
    mut stream: TcpStream,
    executed: &AtomicU64,
    after: usize,
    breaks: &AtomicUsize,
) -> Option<()> {
    let mut out = Vec::new();
    let greeting = Greeting {
        server_version: "8.0-fake",
        connection_id: 1,
        salt: &[b'x'; SALT],
        capabilities: cap::SERVER,
        collation: 45,
        status: 2,
        plugin: NATIVE_PASSWORD,
    };
    payload(&mut out, &mut 0, |out| greeting.encode(out));
    stream.write_all(&out).ok()?;
    receive(&mut stream)?;
    out.clear();
    payload(&mut out, &mut 2, |out| {
        encode_ok(out, 0, &OkPacket::default())
    });
    stream.write_all(&out).ok()?;
    let mut seen = 0;
    loop {
        let command = receive(&mut stream)?;
        if command[0] == com::QUIT {
            return None;
        }
        seen += 1;
        if seen == after
            && breaks
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1))
                .is_ok()
        {
            return None;
        }
        out.clear();
        let mut sequence = 1;
        match command[0] {
            com::STMT_PREPARE => payload(&mut out, &mut sequence, |out| {
                encode_prepare_ok(out, 9, 0, 0, 0)
            }),
            _ if command.ends_with(b"bad") => payload(&mut out, &mut sequence, |out| {
                encode_err(out, 1064, "42000", b"no")
            }),
            _ => {
                executed.fetch_add(1, Ordering::Relaxed);
                payload(&mut out, &mut sequence, |out| out.push(1));
                payload(&mut out, &mut sequence, |out| {
                    encode_column(out, &Column::default())
                });
                payload(&mut out, &mut sequence, |out| {
                    out.extend_from_slice(b"\x01a")
                });
                payload(&mut out, &mut sequence, |out| {
                    encode_end_of_rows(out, cap::DEPRECATE_EOF, 0, 2)
                });
            }
        }
        stream.write_all(&out).ok()?;
    }
}

fn fake(after: usize, breaks: usize) -> Fake {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let executed = Arc::new(AtomicU64::new(0));
    let counter = executed.clone();
    std::thread::spawn(move || {
        let breaks = Arc::new(AtomicUsize::new(breaks));
        for stream in listener.incoming().flatten() {
            let (counter, breaks) = (counter.clone(), breaks.clone());
            std::thread::spawn(move || serve(stream, &counter, after, &breaks));
        }
    });
    Fake {
        dsn: Dsn::parse(&format!("mysql://x@127.0.0.1:{port}")).expect("a DSN"),
        executed,
    }
}

/// A number of statements. Every fifth is rejected, every third is prepared.
struct Count {
    left: u32,
    answers: Arc<AtomicU64>,
}

impl Source for Count {
    fn next(&mut self, command: &mut Command) -> Next {
        if self.left == 0 {
            return Next::End;
        }
        self.left -= 1;
        if self.left.is_multiple_of(3) {
            command.execute(self.left % 2).push(Param::Int(1));
        } else {
            let text: &[u8] = if self.left.is_multiple_of(5) {
                b"bad"
            } else {
                b"good"
            };
            command.text().extend_from_slice(text);
        }
        Next::Send
    }

    fn template(&self, _id: u32) -> &str {
        "SELECT ?"
    }

    fn answered(&mut self, _answer: &Answer) {
        self.answers.fetch_add(1, Ordering::Relaxed);
    }
}

fn run(fake: &Fake, connections: usize, threads: usize, each: u32, together: bool) -> Outcome {
    let answers = Arc::new(AtomicU64::new(0));
    let options = Options {
        connections,
        threads,
        hash_rows: true,
        together,
        ..Options::default()
    };
    let make = |_| -> Box<dyn Source> {
        Box::new(Count {
            left: each,
            answers: answers.clone(),
        })
    };
    let outcome = drive(&fake.dsn, &options, make, |_| {}).expect("it connects");
    assert_eq!(answers.load(Ordering::Relaxed), outcome.statements);
    outcome
}

#[test]
fn every_statement_is_counted_once() {
    every_statement_once(true);
    every_statement_once(false);
}

fn every_statement_once(together: bool) {
    let fake = fake(0, 0);
    let outcome = run(&fake, 7, 2, 30, together);
    assert_eq!(outcome.statements, 7 * 30);
    assert_eq!(outcome.events, outcome.statements);
    assert_eq!(outcome.latency.len(), outcome.statements);
    // The numbers of 0..30 that are divisible by 5 but not by 3: 5, 10, 20, 25.
    assert_eq!(outcome.errors.get(&1064).map(|e| e.count), Some(7 * 4));
    assert_eq!(outcome.rows, 7 * 26);
    assert_eq!(outcome.rows, fake.executed.load(Ordering::Relaxed));
    assert_eq!(outcome.lost_at.len(), 0);
    assert_eq!(outcome.per_second.iter().sum::<u64>(), outcome.statements);
}

#[test]
fn lost_connection_is_reopened_and_statement_resent() {
    for together in [true, false] {
        let fake = fake(5, 3);
        let outcome = run(&fake, 2, 1, 30, together);
        assert_eq!(
            outcome.statements, 60,
            "each lost statement was sent once more"
        );
        assert_eq!(outcome.lost_at.len(), 3);
        assert_eq!(outcome.dead, 0);
    }
}

/// BEGIN, a statement, COMMIT.
struct Transactions(u32);

impl Source for Transactions {
    fn next(&mut self, command: &mut Command) -> Next {
        command.text().extend_from_slice(b"x");
        self.0 += 1;
        command.more = !self.0.is_multiple_of(3);
        if self.0 > 30 { Next::End } else { Next::Send }
    }
}

#[test]
fn transaction_counts_as_one_event() {
    let fake = fake(0, 0);
    let options = Options {
        connections: 2,
        ..Options::default()
    };
    let outcome =
        drive(&fake.dsn, &options, |_| Box::new(Transactions(0)), |_| {}).expect("it connects");
    assert_eq!((outcome.statements, outcome.events), (60, 20));
    assert_eq!(outcome.event_latency.len(), 20);
}

#[test]
fn window_counts_only_statements_that_end_in_it() {
    struct Endless;
    impl Source for Endless {
        fn next(&mut self, command: &mut Command) -> Next {
            command.text().extend_from_slice(b"x");
            Next::Send
        }
    }
    let fake = fake(0, 0);
    // If the machine is too busy to answer anything in one of the parts, the window is made longer.
    for part in [100, 1_000, 10_000] {
        let options = Options {
            connections: 2,
            warmup: Duration::from_millis(part),
            measure: Some(Duration::from_millis(part)),
            ..Options::default()
        };
        let before = fake.executed.load(Ordering::Relaxed);
        let mut moments = Vec::new();
        let outcome = drive(
            &fake.dsn,
            &options,
            |_| Box::new(Endless),
            |m| moments.push(m),
        )
        .expect("it connects");
        let executed = fake.executed.load(Ordering::Relaxed) - before;
        let edges: Vec<_> = moments
            .into_iter()
            .filter(|m| !matches!(m, Moment::Tick(_)))
            .collect();
        assert_eq!(edges, [Moment::Begin, Moment::End]);
        assert!(outcome.statements <= executed);
        if outcome.statements > 0 && outcome.statements < executed {
            return;
        }
    }
    panic!("no window had answers in it and before it");
}

#[test]
fn missing_server_is_an_error() {
    let dsn = Dsn::parse("mysql://x@127.0.0.1:1").expect("a DSN");
    let options = Options {
        connections: 3,
        threads: 2,
        ..Options::default()
    };
    let error = drive(&dsn, &options, |_| Box::new(Transactions(0)), |_| {})
        .expect_err("no server listens on this port");
    assert!(error.to_string().contains("cannot connect"), "{error}");
}

#[test]
fn many_connections_use_a_thread_per_processor() {
    let threads = |threads, connections, processors| {
        let options = Options {
            threads,
            connections,
            ..Options::default()
        };
        threads_for(&options, processors)
    };
    for (connections, processors, expected) in [
        (1, 1, 1),
        (1, 16, 1),
        (64, 2, 1),
        (64, 16, 8),
        (256, 2, 1),
        (257, 2, 2),
        (1024, 2, 2),
        (1024, 3, 3),
        (1024, 16, 8),
        (10_000, 16, 16),
        (10_000, 1, 1),
    ] {
        let got = threads(0, connections, processors);
        assert_eq!(
            got, expected,
            "{connections} connections, {processors} processors"
        );
    }
    assert_eq!(threads(3, 1024, 2), 3, "the number of threads was given");
    assert_eq!(threads(3, 2, 16), 2, "no thread without a connection");
}
