//! One engine in one process: loads, checks, measures, and prints a line of JSON for each sample.

use std::time::Instant;

use serde_json::json;

use crate::Options;
use crate::control::{Chase, Gather};
use crate::data::{Data, PER_KEY};
use crate::engines::{self, Engine};
use crate::work::{GROUPS, Length, Sample, Samples, Workload, line, verify};

/// Bytes of cache for each row: twice what a row and its secondary entry take in a tree with full
/// pages.
const CACHE_PER_ROW: u64 = 450;

/// Runs `engine` over the first of the sizes.
pub fn run(engine: &str, options: &Options) {
    match engine {
        "nfold" => measure::<engines::nfold::Engine>(options, true),
        #[cfg(feature = "peers")]
        "lmdb" => measure::<engines::lmdb::Engine>(options, false),
        #[cfg(feature = "peers")]
        "rocksdb" => measure::<engines::rocksdb::Engine>(options, false),
        #[cfg(feature = "peers")]
        "redb" => measure::<engines::redb::Engine>(options, false),
        #[cfg(feature = "peers")]
        "fjall" => measure::<engines::fjall::Engine>(options, false),
        _ => crate::usage(&format!("no engine {engine}")),
    }
}

/// CPU seconds that other processes have used since the machine started; the rest of a difference
/// is this process's own.
fn busy_elsewhere() -> f64 {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let ticks: Vec<f64> = text
        .lines()
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .skip(1)
        .filter_map(|t| t.parse().ok())
        .collect();
    // user, nice, system, idle, iowait, irq, softirq, steal
    let all: f64 = [0, 1, 2, 5, 6, 7]
        .iter()
        .filter_map(|&i| ticks.get(i))
        .sum();
    // SAFETY: fills a plain struct of numbers, for which zeroes are valid.
    let own = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
        seconds(usage.ru_utime) + seconds(usage.ru_stime)
    };
    all / 100.0 - own
}

/// A sample, and the cores that others used during it.
fn beside(take: impl FnOnce() -> Sample) -> (Sample, f64) {
    let (busy, begun) = (busy_elsewhere(), Instant::now());
    let sample = take();
    let others = (busy_elsewhere() - busy) / begun.elapsed().as_secs_f64().max(1e-9);
    (sample, others.max(0.0))
}

fn measure<E: Engine>(options: &Options, gathers: bool) {
    let data = Data::new(options.rows[0]);
    let mut engine = E::open(&options.dir, data.rows * CACHE_PER_ROW + (256 << 20));
    let begun = Instant::now();
    engine.load(&data);
    println!("{}", json!({"load_seconds": begun.elapsed().as_secs_f64()}));
    verify(&engine, &data);
    println!("{}", json!({"about": engine.about()}));
    let length = match options.operations {
        Some(n) => Length::Operations(n),
        None => Length::Seconds(options.seconds),
    };
    let reads = options.workloads.contains(&Workload::Point);
    let most = options.threads.iter().copied().max().unwrap_or(1);
    // Under a profile (a number of operations) nothing but the engine runs.
    let chase = (reads && options.operations.is_none()).then(|| Chase::new(most));
    let many = options.workloads.contains(&Workload::GetMany);
    let gather = (gathers && many && options.operations.is_none()).then(|| Gather::new(data.rows));
    let mut samples = Samples::new(&engine, data);
    for &workload in &options.workloads {
        for round in 0..options.repeat {
            for &threads in &options.threads {
                if let Some(chase) = chase.as_ref().filter(|_| workload == Workload::Point) {
                    let (sample, others) = beside(|| chase.run(threads, length));
                    println!("{}", line("chase", threads, round, sample, others));
                }
                let (sample, others) = beside(|| samples.take(workload, threads, length));
                println!("{}", line(workload.name(), threads, round, sample, others));
                if !workload.only_reads() {
                    println!("{}", json!({"about": engine.about()}));
                }
            }
            if let Some(gather) = gather.as_ref().filter(|_| workload == Workload::GetMany) {
                let ns = gather.ns_per_row(GROUPS * PER_KEY as usize, options.seconds);
                println!("{}", json!({"gather_ns": ns, "round": round}));
            }
        }
    }
}
