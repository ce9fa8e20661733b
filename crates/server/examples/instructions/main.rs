//! Runs each kind of statement many times, in one thread and without sockets, for callgrind to
//! count instructions (`bench/instructions`). Without valgrind it prints nanoseconds.
//!
//! All runs are deterministic: random numbers have fixed seeds, the engine has no threads, and no
//! statement yields.

mod connection;
mod kinds;
mod valgrind;

use std::ffi::CString;
use std::time::Instant;

use connection::{Connection, Failure};
use kinds::{Random, kinds, load};
use nfold_server::embedded::Embedded;

/// The allocator of the server, whose counting is part of a statement's cost.
#[global_allocator]
static ALLOCATOR: nfold_memory::CountingAllocator = nfold_memory::CountingAllocator;

/// The number of uncounted runs.
const WARM_UP: u32 = 30;
/// The maximum number of background steps between two kinds.
const STEPS: usize = 1000;

fn main() -> Result<(), Failure> {
    let dir = tempfile::tempdir()?;
    let options = [
        ("innodb_buffer_pool_size", "134217728"),
        ("innodb_flush_log_at_trx_commit", "0"),
    ];
    let server = Embedded::open(dir.path(), &options).map_err(|e| e.0)?;
    let mut connection = Connection::new(server.connect()?);
    for sql in load() {
        connection.query(&sql)?;
    }
    if valgrind::is_here() {
        valgrind::start();
    }
    for (number, kind) in kinds().iter().enumerate() {
        let mut random = Random(number as u64 * 1000);
        let prepared = connection.prepare(kind)?;
        let mut first = true;
        connection.runs(kind, &prepared, &mut random, &mut first, WARM_UP)?;
        // Completes the background work of the load and of the previous kind: writing pages,
        // purging versions, and repairing row-location hints.
        for _ in 0..STEPS {
            if !server.engine().step_background()? {
                break;
            }
        }
        connection.runs(kind, &prepared, &mut random, &mut first, WARM_UP)?;
        valgrind::zero();
        let start = Instant::now();
        let bytes = connection.runs(kind, &prepared, &mut random, &mut first, kind.runs)?;
        let time = start.elapsed() / kind.runs;
        valgrind::dump(&CString::new(kind.name.as_str())?);
        let unit = if valgrind::is_here() {
            0
        } else {
            time.as_nanos()
        };
        println!("{}\t{}\t{bytes}\t{unit}", kind.name, kind.runs);
    }
    Ok(())
}
