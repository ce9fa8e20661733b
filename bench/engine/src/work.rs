//! The workloads, and how they are timed: a number of threads, each with a worker of its own, for a
//! span of time or a number of operations.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::data::{Data, GAP, PER_KEY, Rng, digest, value};
use crate::engines::{Engine, Worker};

/// Secondary keys of one `get_many`.
pub const GROUPS: usize = 200;
/// Rows of a range read.
pub const RANGE: usize = 100;
/// The mixed workload has one update in this many operations. The others are point reads.
pub const MIXED_UPDATE: u64 = 10;

/// How long a sample takes.
#[derive(Clone, Copy)]
pub enum Length {
    Seconds(f64),
    /// Operations of each thread: for profiles that count instructions.
    Operations(u64),
}

/// Operations of all threads, and their rate.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub operations: u64,
    pub per_second: f64,
}

/// Runs what `make` gives for each thread, which does some operations a call and says how many,
/// until the time is over.
pub fn on_threads<F: FnMut() -> u64>(
    threads: usize,
    length: Length,
    make: impl Fn(usize) -> F + Sync,
) -> Sample {
    let barrier = Barrier::new(threads);
    let one = |n: usize| {
        let mut step = make(n);
        step();
        barrier.wait();
        let begun = Instant::now();
        let mut done = 0;
        let elapsed = loop {
            done += step();
            let elapsed = begun.elapsed();
            let over = match length {
                Length::Seconds(s) => elapsed >= Duration::from_secs_f64(s),
                Length::Operations(n) => done >= n,
            };
            if over {
                break elapsed;
            }
        };
        (done, done as f64 / elapsed.as_secs_f64())
    };
    let each: Vec<(u64, f64)> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|n| scope.spawn(move || one(n))).collect();
        let join = |h: std::thread::ScopedJoinHandle<'_, _>| h.join().expect("a worker");
        handles.into_iter().map(join).collect()
    });
    Sample {
        operations: each.iter().map(|e| e.0).sum(),
        per_second: each.iter().map(|e| e.1).sum(),
    }
}

/// What a sample does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Workload {
    /// One random row, with a snapshot of its own.
    Point,
    /// [`RANGE`] rows from a random one on.
    Range,
    /// All rows of [`GROUPS`] random secondary keys: five each.
    GetMany,
    /// Nine point reads, one update.
    Mixed,
    /// Another value for a random row, in a transaction of its own.
    Update,
    /// A new row at a random place and its secondary entry, in a transaction of its own.
    Insert,
}

impl Workload {
    /// Reads first: what changes the data comes last.
    pub const ALL: [Workload; 6] = [
        Workload::Point,
        Workload::Range,
        Workload::GetMany,
        Workload::Mixed,
        Workload::Update,
        Workload::Insert,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Workload::Point => "point",
            Workload::Range => "range",
            Workload::GetMany => "get_many",
            Workload::Mixed => "mixed",
            Workload::Update => "update",
            Workload::Insert => "insert",
        }
    }

    pub fn named(name: &str) -> Option<Workload> {
        Self::ALL.into_iter().find(|w| w.name() == name)
    }

    pub fn only_reads(self) -> bool {
        matches!(self, Workload::Point | Workload::Range | Workload::GetMany)
    }

    /// Operations between two looks at the clock.
    fn slice(self) -> u64 {
        match self {
            Workload::Point | Workload::Mixed => 64,
            Workload::Range | Workload::Update | Workload::Insert => 8,
            Workload::GetMany => 1,
        }
    }
}

/// Numbers the samples, so that no two use the same random numbers or new keys.
pub struct Samples<'e, E> {
    engine: &'e E,
    data: Data,
    taken: u64,
}

impl<'e, E: Engine> Samples<'e, E> {
    pub fn new(engine: &'e E, data: Data) -> Self {
        Samples {
            engine,
            data,
            taken: 0,
        }
    }

    pub fn take(&mut self, workload: Workload, threads: usize, length: Length) -> Sample {
        self.taken += 1;
        let (engine, data, sample) = (self.engine, self.data, self.taken);
        on_threads(threads, length, |n| {
            let mut worker = engine.worker(n as u64);
            let mut rng = Rng::new(sample * 64 + n as u64);
            let mut groups = Vec::with_capacity(GROUPS);
            let mut operation = 0;
            move || {
                for _ in 0..workload.slice() {
                    operation += 1;
                    let at = (sample, n as u64, operation);
                    step(&mut worker, workload, &data, &mut rng, &mut groups, at);
                }
                workload.slice()
            }
        })
    }
}

fn step<W: Worker>(
    worker: &mut W,
    workload: Workload,
    data: &Data,
    rng: &mut Rng,
    groups: &mut Vec<u64>,
    (sample, thread, operation): (u64, u64, u64),
) {
    let i = rng.below(data.rows);
    let update = |worker: &mut W| {
        worker.update(i * GAP, &value(i * GAP, data.group_of(i), operation));
    };
    match workload {
        Workload::Point => assert!(worker.point(i * GAP).is_some(), "a row is missing"),
        Workload::Mixed if operation % MIXED_UPDATE == 0 => update(worker),
        Workload::Mixed => assert!(worker.point(i * GAP).is_some(), "a row is missing"),
        Workload::Update => update(worker),
        Workload::Range => {
            let from = i.min(data.rows - RANGE as u64);
            assert_eq!(worker.range(from * GAP, RANGE).0, RANGE as u64);
        }
        Workload::GetMany => {
            groups.clear();
            groups.extend((0..GROUPS).map(|_| rng.below(data.groups())));
            groups.sort_unstable();
            groups.dedup();
            let fresh = groups.len();
            let (rows, _) = worker.get_many(groups);
            assert!(rows >= fresh as u64 * PER_KEY, "rows are missing");
        }
        Workload::Insert => {
            // Each sample has a range of its own: far more than one can insert.
            let n = sample * (data.rows / 4) + operation;
            let key = data.new_key(thread, n);
            let group = rng.below(data.groups());
            worker.insert(key, group, &value(key, group, 0));
        }
    }
}

/// Checks after loading that the engine has what it should: random rows, ranges, groups, and no
/// others.
pub fn verify<E: Engine>(engine: &E, data: &Data) {
    let mut worker = engine.worker(0);
    let mut rng = Rng::new(1);
    let row = |i: u64| digest(&value(i * GAP, data.group_of(i), 0));
    for _ in 0..1_000 {
        let i = rng.below(data.rows);
        assert_eq!(worker.point(i * GAP), Some(row(i)), "row {i}");
        assert_eq!(worker.point(i * GAP + 1), None, "beside row {i}");
    }
    for _ in 0..20 {
        let from = rng.below(data.rows - RANGE as u64);
        let wanted = (from..from + RANGE as u64).fold(0, |sum, i| sum ^ row(i));
        assert_eq!(worker.range(from * GAP, RANGE), (RANGE as u64, wanted));
        let group = rng.below(data.groups());
        let wanted = data.rows_of(group).iter().fold(0, |sum, &i| sum ^ row(i));
        assert_eq!(
            worker.get_many(&[group]),
            (PER_KEY, wanted),
            "group {group}"
        );
    }
}

/// One line of the child's report.
pub fn line(workload: &str, threads: usize, round: usize, sample: Sample, load: f64) -> Value {
    json!({
        "workload": workload, "threads": threads, "round": round,
        "operations": sample.operations, "per_second": sample.per_second, "others": load,
    })
}
