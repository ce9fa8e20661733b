//! Loads a server from many connections on few threads, and measures.
//!
//! # Picture
//! ```text
//! caller ── make(connection) ──▶ Source per connection
//!   │                              thread 1: epoll ── connections 1, 1+T, 1+2T …     histogram, counters of its own
//!   │                              thread T: epoll ── …
//!   ├─ warm-up ─┬─ measured window ─┬─ answers under way are waited for
//!   └ observer: Begin              End
//! ```
//! A connection has one command under way at a time, and asks its source for the next as soon as the answer is whole. Latency is the
//! time from the first byte sent to the last byte taken from the socket, prepares not counted.
//!
//! # Failure
//! A connection that breaks is made anew, for as long as [`Options::patience`]; its command is sent once more. The outcome says when it
//! happened and what it cost.
//!
//! # Cost
//! A share of an `epoll_wait` a command, and of one system call that receives from all connections whose answers are there, and of one that
//! sends all their next commands ([`ring`]); a `read` and a `write` of its own where only one is there, or without io_uring. No allocation
//! once buffers have grown.

mod courtesy;
mod outcome;
mod slot;
mod worker;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex, OnceLock};
use std::time::{Duration, Instant};

pub use outcome::{ErrorCount, Outcome};

use super::{Answer, Command};
use crate::dsn::Dsn;
use crate::{LabError, interrupt};

/// What a connection does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The command was filled in.
    Send,
    /// Ask again then.
    Wait(Instant),
    /// This connection has nothing more to do.
    End,
}

/// Where the commands of one connection come from.
pub trait Source: Send {
    /// Fills in the next command.
    fn next(&mut self, command: &mut Command) -> Next;

    /// The text of a template that [`Command::execute`] named. Prepared on the connection when first met.
    fn template(&self, _id: u32) -> &str {
        ""
    }

    /// The answer to the last command, the server's error included.
    fn answered(&mut self, _answer: &Answer) {}

    /// The connection was lost and made anew. True: send the last command once more.
    fn reconnected(&mut self) -> bool {
        true
    }
}

/// How to drive.
#[derive(Debug, Clone)]
pub struct Options {
    pub connections: usize,
    /// 0: one for two processors, more where there are more than [`A_THREAD`] connections for each.
    pub threads: usize,
    /// Answers in this time are not counted.
    pub warmup: Duration,
    /// None: until every source has ended.
    pub measure: Option<Duration>,
    /// Fill [`Answer::checksum`].
    pub hash_rows: bool,
    /// How long to try to get a lost connection back.
    pub patience: Duration,
    /// Send to many connections, and receive from many, by one system call (io_uring), where the kernel can.
    pub together: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            connections: 1,
            threads: 0,
            warmup: Duration::ZERO,
            measure: None,
            hash_rows: false,
            patience: Duration::from_secs(10),
            together: true,
        }
    }
}

/// Where the run stands, for an observer in the caller's thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The measured window begins, or ends.
    Begin,
    End,
    /// Ten times a second or more often between: statements answered so far by all threads, warm-up included.
    Tick(u64),
}

/// The times of a run, known once everybody is connected.
#[derive(Debug, Clone, Copy)]
struct Timeline {
    begin: Instant,
    end: Option<Instant>,
}

/// What caller and threads share; the counters are looked at ten times a second.
struct Shared<'a> {
    dsn: &'a Dsn,
    options: &'a Options,
    timeline: OnceLock<Timeline>,
    connected: Barrier,
    started: Barrier,
    stop: AtomicBool,
    tasks: Mutex<Vec<u64>>,
    /// CPU seconds of threads that have ended: /proc knows them no more.
    ended: Mutex<Vec<(u64, f64)>>,
    progress: Vec<Padded>,
}

/// Answers that one thread has seen, on a line of its own.
#[repr(align(128))]
#[derive(Default)]
struct Padded(std::sync::atomic::AtomicU64);

/// How bytes are sent and received here: `io_uring`, or `epoll` where that is not wanted or the kernel has none.
pub fn io(together: bool) -> &'static str {
    match together && nfold_ring::Ring::new().is_some() {
        true => "io_uring",
        false => "epoll",
    }
}

/// Connections that one thread drives at most while there are processors for more threads. With a thousand, one thread is never out of work: it
/// waits for its turn on one processor, behind a server's thread, while the other processors are out of work.
const A_THREAD: usize = 256;

/// How many threads `options` mean here.
pub fn thread_count(options: &Options) -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    threads_for(options, processors)
}

fn threads_for(options: &Options, processors: usize) -> usize {
    let wanted = match options.threads {
        0 => {
            let needed = options.connections.div_ceil(A_THREAD);
            (processors / 2).max(needed.min(processors))
        }
        threads => threads,
    };
    wanted.min(options.connections).max(1)
}

/// Connects, runs the sources that `make` gives (by number of the connection), and returns what was measured. An error only if not all
/// connections could be made; a run that Ctrl-C ends has [`Outcome::interrupted`] set.
pub fn drive(
    dsn: &Dsn,
    options: &Options,
    mut make: impl FnMut(usize) -> Box<dyn Source>,
    mut observer: impl FnMut(Moment),
) -> Result<Outcome, LabError> {
    let threads = thread_count(options);
    let mut sources: Vec<Vec<Box<dyn Source>>> = (0..threads).map(|_| Vec::new()).collect();
    for connection in 0..options.connections {
        sources[connection % threads].push(make(connection));
    }
    let shared = Shared {
        dsn,
        options,
        timeline: OnceLock::new(),
        connected: Barrier::new(threads + 1),
        started: Barrier::new(threads + 1),
        stop: AtomicBool::new(false),
        tasks: Mutex::new(Vec::new()),
        ended: Mutex::new(Vec::new()),
        progress: (0..threads).map(|_| Padded::default()).collect(),
    };
    std::thread::scope(|scope| {
        let handles: Vec<_> = sources
            .into_iter()
            .enumerate()
            .map(|(number, sources)| {
                let shared = &shared;
                scope.spawn(move || worker::run(shared, number, sources))
            })
            .collect();
        shared.connected.wait();
        let begin = Instant::now() + options.warmup;
        let timeline = Timeline {
            begin,
            end: options.measure.map(|m| begin + m),
        };
        let _ = shared.timeline.set(timeline);
        // Without a warm-up the window may be over before this thread runs again: its beginning is noted before anybody works.
        let early = options
            .warmup
            .is_zero()
            .then(|| Edge::begin(&shared, &mut observer));
        shared.started.wait();
        let (seconds, cpu) = watch(&shared, &timeline, early, &mut observer, || {
            handles.iter().all(|h| h.is_finished())
        });
        let mut outcome = Outcome {
            seconds,
            client_cpu: cpu,
            connections: options.connections,
            ..Outcome::default()
        };
        let mut error = None;
        for handle in handles {
            match handle.join() {
                Ok(Ok(part)) => outcome.add(part),
                Ok(Err(e)) => error = Some(e),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        outcome.interrupted = interrupt::requested();
        match error {
            Some(e) => Err(e),
            None => Ok(outcome),
        }
    })
}

/// The beginning of the window: when, and what the threads had used by then.
struct Edge {
    began: Instant,
    tasks: Vec<u64>,
    cpu: Vec<f64>,
}

impl Edge {
    fn begin(shared: &Shared<'_>, observer: &mut impl FnMut(Moment)) -> Edge {
        observer(Moment::Begin);
        let mut edge = Edge {
            began: Instant::now(),
            tasks: shared.tasks.lock().map(|t| t.clone()).unwrap_or_default(),
            cpu: Vec::new(),
        };
        edge.cpu = edge.cpu_now(shared);
        edge
    }

    /// CPU seconds of each thread until now, or until it ended.
    fn cpu_now(&self, shared: &Shared<'_>) -> Vec<f64> {
        let now: Vec<f64> = self
            .tasks
            .iter()
            .map(|t| crate::procfs::task_cpu_seconds(*t))
            .collect();
        let ended = shared.ended.lock().map(|e| e.clone()).unwrap_or_default();
        let last = |task: &u64| ended.iter().find(|(t, _)| t == task).map(|(_, cpu)| *cpu);
        self.tasks
            .iter()
            .zip(now)
            .map(|(task, now)| last(task).unwrap_or(now))
            .collect()
    }
}

/// Waits through the run in the caller's thread. Returns the window's length in seconds and the CPU seconds of each thread in it.
fn watch(
    shared: &Shared<'_>,
    timeline: &Timeline,
    early: Option<Edge>,
    observer: &mut impl FnMut(Moment),
    finished: impl Fn() -> bool,
) -> (f64, Vec<f64>) {
    const STEP: Duration = Duration::from_millis(100);
    let progress = |observer: &mut dyn FnMut(Moment)| {
        let sum = shared
            .progress
            .iter()
            .map(|p| p.0.load(Ordering::Relaxed))
            .sum();
        observer(Moment::Tick(sum));
    };
    let over = |at: Option<Instant>| {
        finished() || interrupt::requested() || at.is_some_and(|at| Instant::now() >= at)
    };
    let sleep = |at: Option<Instant>| {
        // Without an end the sources end it, at any time: the window is as long as they took.
        let left = at.map_or(STEP / 20, |at| at.saturating_duration_since(Instant::now()));
        std::thread::sleep(left.min(STEP));
    };
    while !over(Some(timeline.begin)) {
        sleep(Some(timeline.begin));
        progress(observer);
    }
    let edge = match early {
        Some(edge) => edge,
        None => Edge::begin(shared, observer),
    };
    while !over(timeline.end) {
        sleep(timeline.end);
        progress(observer);
    }
    let cpu_after = edge.cpu_now(shared);
    observer(Moment::End);
    let seconds = edge.began.elapsed().as_secs_f64();
    shared.stop.store(true, Ordering::Relaxed);
    let spent = edge
        .cpu
        .iter()
        .zip(cpu_after)
        .map(|(a, b)| (b - a).max(0.0))
        .collect();
    (seconds, spent)
}

#[cfg(test)]
mod tests;
