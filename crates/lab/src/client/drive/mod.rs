//! Loads a server from many connections on few threads, and measures.
//!
//! # Picture
//! ```text
//! caller ── make(connection) ──▶ Source per connection
//!   │                              thread 1: epoll ── connections 1, 1+T, 1+2T …    own histogram,
//!   counters
//!   │                              thread T: epoll ── …
//!   ├─ warm-up ─┬─ measured window ─┬─ wait for the responses in progress
//!   └ observer: Begin              End
//! ```
//! A connection has one command in progress at a time. As soon as the response is complete, it
//! requests the next command from its source. Latency is the time from the first byte sent to the
//! last byte read from the socket, without prepares.
//!
//! # Failure
//! A broken connection is reopened, within [`Options::reconnect_timeout`], and its command is sent
//! once more. The outcome contains when this happened and what it cost.
//!
//! # Cost
//! The system calls are shared by all connections that are ready: an `epoll_wait`, one call that
//! receives from all of them, and one that sends all their next commands ([`ring`]). If only one is
//! ready, or without io_uring, there is a `read` and a `write` per command. Nothing is allocated
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

/// The next action of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Send the command that was filled in.
    Send,
    /// Ask the source again at this time.
    Wait(Instant),
    /// End the connection.
    End,
}

/// The source of one connection's commands.
pub trait Source: Send {
    /// Fills in the next command.
    fn next(&mut self, command: &mut Command) -> Next;

    /// The text of a template that [`Command::execute`] referred to. It is prepared on the
    /// connection at its first use.
    fn template(&self, _id: u32) -> &str {
        ""
    }

    /// Receives the answer to the last command, which may be an error of the server.
    fn answered(&mut self, _answer: &Answer) {}

    /// Called after a lost connection was reopened. Returns true if the last command should be sent
    /// again.
    fn reconnected(&mut self) -> bool {
        true
    }
}

/// The options of a run.
#[derive(Debug, Clone)]
pub struct Options {
    pub connections: usize,
    /// The number of threads. 0: one per two processors, or more if there would be more than
    /// [`MAX_CONNECTIONS_PER_THREAD`] connections per thread.
    pub threads: usize,
    /// The warm-up time, in which answers are not counted.
    pub warmup: Duration,
    /// The length of the measured window. `None`: until every source has ended.
    pub measure: Option<Duration>,
    /// Whether to compute [`Answer::checksum`].
    pub hash_rows: bool,
    /// How long to try to reopen a lost connection.
    pub reconnect_timeout: Duration,
    /// Whether to send to many connections, and to receive from many, by one system call
    /// (io_uring), if the kernel supports that.
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
            reconnect_timeout: Duration::from_secs(10),
            together: true,
        }
    }
}

/// A point of a run, for an observer in the caller's thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The measured window begins or ends.
    Begin,
    End,
    /// Called at least ten times per second in between: the number of statements answered so far by
    /// all threads, including the warm-up.
    Tick(u64),
}

/// The times of a run. They are set once all connections are open.
#[derive(Debug, Clone, Copy)]
struct Timeline {
    begin: Instant,
    end: Option<Instant>,
}

/// The state shared by the caller and the threads. The caller reads the counters ten times per
/// second.
struct Shared<'a> {
    dsn: &'a Dsn,
    options: &'a Options,
    timeline: OnceLock<Timeline>,
    connected: Barrier,
    started: Barrier,
    stop: AtomicBool,
    tasks: Mutex<Vec<u64>>,
    /// The CPU seconds of threads that have ended, because /proc no longer contains them.
    ended: Mutex<Vec<(u64, f64)>>,
    progress: Vec<Padded>,
}

/// The answers counted by one thread, on a cache line of its own.
#[repr(align(128))]
#[derive(Default)]
struct Padded(std::sync::atomic::AtomicU64);

/// How bytes are sent and received on this machine: `io_uring`, or `epoll` if io_uring is not
/// wanted or not supported.
pub fn io(together: bool) -> &'static str {
    match together && nfold_ring::Ring::new().is_some() {
        true => "io_uring",
        false => "epoll",
    }
}

/// The most connections per thread as long as there are processors for more threads. A thread with
/// a thousand connections is always busy: it waits for its turn on one processor, behind a server's
/// thread, while other processors are idle.
const MAX_CONNECTIONS_PER_THREAD: usize = 256;

/// The number of threads that `options` result in on this machine.
pub fn thread_count(options: &Options) -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    threads_for(options, processors)
}

fn threads_for(options: &Options, processors: usize) -> usize {
    let wanted = match options.threads {
        0 => {
            let needed = options.connections.div_ceil(MAX_CONNECTIONS_PER_THREAD);
            (processors / 2).max(needed.min(processors))
        }
        threads => threads,
    };
    wanted.min(options.connections).max(1)
}

/// Connects, runs the sources that `make` returns (it receives the connection's number), and
/// returns the measurements. An error only if not all connections could be opened. A run ended by
/// Ctrl-C has [`Outcome::interrupted`] set.
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
        // Without a warm-up, the window may be over before this thread runs again. So its beginning
        // is recorded before any thread works.
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

/// The beginning of the window: its time, and the CPU time that the threads had used by then.
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

    /// The CPU seconds of each thread until now, or until it ended.
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

/// Waits in the caller's thread until the run is over. Returns the window's length in seconds, and
/// each thread's CPU seconds in it.
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
        // Without a fixed end, the run is over when the sources end, and the window is as long as
        // that takes.
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
