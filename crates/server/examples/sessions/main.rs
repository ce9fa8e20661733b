//! The cost of a statement whose session is not in the cache: several sessions take turns in one
//! thread, without sockets, each with its own prepared point select. Prints nanoseconds per
//! statement for each number of sessions.
//!
//! ```text
//! cargo run --release -p nfold-server --example sessions -- 16 64 512
//! valgrind --tool=callgrind --instr-atstart=no --cache-sim=yes --LL=1048576,16,64 target/release/examples/sessions 512
//! ```
//! The second command counts the misses of a cache of 32 KiB and one of 1 MiB, by function.

#[path = "../instructions/connection.rs"]
#[allow(dead_code, reason = "one program runs kinds, the other executes")]
mod connection;
#[path = "../instructions/kinds.rs"]
#[allow(dead_code, reason = "one program runs all kinds, the other a few")]
mod kinds;
#[path = "../instructions/valgrind.rs"]
mod valgrind;

use std::time::{Duration, Instant};

use connection::{Connection, Failure};
use kinds::{Random, StatementKind, kinds, load};
use nfold_server::embedded::Embedded;

/// The number of statements in one measurement, and the number of measurements, of which the
/// fastest counts.
const STATEMENTS: usize = 20_480;
const ROUNDS: usize = 9;

fn main() -> Result<(), Failure> {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let names: Vec<String> = args
        .extract_if(.., |a| a.parse::<usize>().is_err())
        .collect();
    let mut numbers: Vec<usize> = args.iter().filter_map(|a| a.parse().ok()).collect();
    if numbers.is_empty() {
        numbers = vec![1, 32, 512];
    }
    let dir = tempfile::tempdir()?;
    let options = [
        ("innodb_buffer_pool_size", "134217728"),
        ("innodb_flush_log_at_trx_commit", "0"),
    ];
    let server = Embedded::open(dir.path(), &options).map_err(|e| e.0)?;
    let mut loader = Connection::new(server.connect()?);
    for sql in load() {
        loader.query(&sql)?;
    }
    while server.engine().step_background()? {}
    let all = kinds();
    let wanted = |k: &&StatementKind| match names.is_empty() {
        true => k.name == "point_prepared",
        false => names.contains(&k.name),
    };
    for kind in all.iter().filter(wanted) {
        for &n in &numbers {
            let took = measure(&server, kind, n)?;
            println!("{}\t{n}\t{}", kind.name, took.as_nanos());
        }
    }
    Ok(())
}

/// The time of one statement when `n` sessions take turns.
fn measure(server: &Embedded, kind: &StatementKind, n: usize) -> Result<Duration, Failure> {
    let mut random = Random(1);
    let mut sessions = Vec::new();
    for _ in 0..n {
        let mut connection = Connection::new(server.connect()?);
        connection.query("USE counted")?;
        let prepared = connection.prepare(kind)?;
        connection.runs(kind, &prepared, &mut random, &mut true, 3)?;
        sessions.push((connection, prepared));
    }
    let turns = (STATEMENTS / n).max(1);
    if valgrind::is_here() {
        valgrind::start();
        valgrind::zero();
    }
    let rounds = if valgrind::is_here() { 1 } else { ROUNDS };
    let turns = if valgrind::is_here() { 4 } else { turns };
    let mut best = Duration::MAX;
    for _ in 0..rounds {
        let start = Instant::now();
        for _ in 0..turns {
            for (connection, prepared) in &mut sessions {
                connection.runs(kind, prepared, &mut random, &mut false, 1)?;
            }
        }
        best = best.min(start.elapsed() / (turns * n) as u32);
    }
    if valgrind::is_here() {
        valgrind::dump(&std::ffi::CString::new(format!("{}-{n}", kind.name))?);
    }
    Ok(best)
}
