//! `make sim SEEDS=N FIRST_SEED=K`: runs seeds on all cores, and stops at the first failure.

use std::cell::Cell;
use std::process::exit;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use clap::Parser;
use nfold_sim::Outcome;

/// Runs the engine over a simulated disk, seed by seed.
#[derive(Parser)]
struct Options {
    /// The number of seeds.
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    #[arg(long, default_value_t = 1)]
    first_seed: u64,
    /// The least number of power failures and kills per seed.
    #[arg(long, default_value_t = 4)]
    crashes: u32,
    /// The number of seeds that run at the same time; 0: one per core.
    #[arg(long, default_value_t = 0)]
    jobs: usize,
    /// Log every step to standard error.
    #[arg(long)]
    tell: bool,
    /// Continue after a failed seed.
    #[arg(long)]
    keep_going: bool,
}

/// A seed that runs longer than this is considered to hang.
const HANG_SECONDS: u32 = 120;

thread_local! {
    static SEED: Cell<u64> = const { Cell::new(0) };
}

fn main() {
    let options = Options::parse();
    nfold_sim::TELL.store(options.tell, Ordering::Relaxed);
    let default_hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        eprintln!("seed {}:", SEED.get());
        default_hook(info);
    }));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = if options.jobs == 0 {
        cores
    } else {
        options.jobs
    };
    let next = AtomicU64::new(options.first_seed);
    let total = Mutex::new((Outcome::default(), 0u64, 0u64));
    let running: Vec<Running> = (0..jobs).map(|_| Mutex::default()).collect();
    let running = Arc::new(running);
    let watched = running.clone();
    std::thread::spawn(move || watch(&watched));
    std::thread::scope(|scope| {
        for mine in running.iter() {
            let (options, next, total) = (&options, &next, &total);
            scope.spawn(move || work(options, next, total, mine));
        }
    });
    let (total, passed, failed) = total.into_inner().unwrap_or_else(|e| e.into_inner());
    println!(
        "{} seeds: {} commits, {} DDL statements, {} crashes, {} unfinished and {} prepared transactions recovered, {} damaged disks opened or ({}) rejected",
        passed + failed,
        total.commits,
        total.definitions,
        total.crashes,
        total.recovered_unfinished,
        total.recovered_branches,
        total.damaged,
        total.refused
    );
    println!("{passed} passed, {failed} failed");
    exit(i32::from(failed > 0));
}

/// The seed that a thread is running.
type Running = Mutex<Option<u64>>;

/// Ends the process if a seed hangs. It counts the seconds in which this thread itself ran, so a
/// process that is stopped or not scheduled for a while does not count as hanging.
fn watch(running: &[Running]) {
    let mut seen = vec![(None, 0); running.len()];
    loop {
        std::thread::sleep(Duration::from_secs(1));
        for (running, seen) in running.iter().zip(&mut seen) {
            let now = *running.lock().unwrap_or_else(|e| e.into_inner());
            *seen = (now, if seen.0 == now { seen.1 + 1 } else { 0 });
            if let (Some(seed), HANG_SECONDS..) = *seen {
                println!("seed {seed} FAILED: it hangs");
                exit(1);
            }
        }
    }
}

fn work(
    options: &Options,
    next: &AtomicU64,
    total: &Mutex<(Outcome, u64, u64)>,
    running: &Running,
) {
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= options.first_seed + options.seeds {
            *running.lock().unwrap_or_else(|e| e.into_inner()) = None;
            return;
        }
        SEED.set(seed);
        *running.lock().unwrap_or_else(|e| e.into_inner()) = Some(seed);
        let result = nfold_sim::run(seed, options.crashes);
        let mut total = total.lock().unwrap_or_else(|e| e.into_inner());
        match result {
            Ok(done) => {
                total.0.add(&done);
                total.1 += 1;
            }
            Err(what) => {
                total.2 += 1;
                println!("seed {seed} FAILED: {what}");
                println!(
                    "replay it with: make sim SEEDS=1 FIRST_SEED={seed} CRASHES={}",
                    options.crashes
                );
                if !options.keep_going {
                    next.store(u64::MAX / 2, Ordering::Relaxed);
                }
            }
        }
    }
}
