//! Workers: one thread with one epoll and many connections each. `event_loop` describes how they
//! run, [`FiberCx`] how a session waits.

mod balance;
mod event_loop;
mod shared;
mod table;
mod timers;

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

pub use super::fiber::slot::{Identity, KillKind, ProcessInfo, Registry, TEXT_BYTES, Tunables};
pub use super::fiber::{CounterCells, FiberCx, Interrupt, STACK_BYTES, TIME_SLICE, Waiter};

pub(crate) use super::fiber::inbox::{Inbox, Message};
pub use super::fiber::memory::Exceeded;
pub(crate) use super::fiber::memory::StatementMemory;
pub(crate) use super::fiber::panics::{EndProcessOnPanic, last_was_contained};
pub(crate) use super::fiber::slot::{ConnSlot, Token};
pub(crate) use super::fiber::{Local, Suspend, add as counters_add};
pub(crate) use balance::Loads;
pub(crate) use shared::Shared;
pub(crate) use table::Fiber;

/// How long workers may take to stop moving connections; they normally read their inboxes within
/// milliseconds.
const STAY_LIMIT: Duration = Duration::from_secs(10);

/// Totals over all workers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    pub bytes_received: u64,
    pub bytes_sent: u64,
    pub commands: u64,
    /// Connections that ended without COM_QUIT.
    pub aborted_clients: u64,
    /// Connections that never logged in.
    pub aborted_connects: u64,
    /// Commands that are running (`Threads_running`).
    pub running: u64,
    /// How many times a statement has yielded.
    pub yields: u64,
    /// How many times a statement has waited.
    pub waits: u64,
    /// Connections that have moved between workers.
    pub moved: u64,
    /// Answers that were sent together with others.
    pub together: u64,
}

/// The counters of all workers. Any session may read them.
#[derive(Clone, Default)]
pub struct WorkerCounters(Vec<Arc<CounterCells>>);

impl WorkerCounters {
    /// Sums the counters of all workers. The counters may be read at slightly different times.
    pub fn totals(&self) -> Totals {
        let mut t = Totals::default();
        for c in &self.0 {
            let get = |cell: &std::sync::atomic::AtomicU64| cell.load(Ordering::Relaxed);
            t.bytes_received += get(&c.bytes_received);
            t.bytes_sent += get(&c.bytes_sent);
            t.commands += get(&c.commands);
            t.aborted_clients += get(&c.aborted_clients);
            t.aborted_connects += get(&c.aborted_connects);
            t.running += get(&c.fibers_running);
            t.yields += get(&c.yields);
            t.waits += get(&c.waits);
            t.moved += get(&c.moved);
            t.together += get(&c.together);
        }
        t
    }
}

/// The running workers.
pub(crate) struct Workers {
    inboxes: Vec<Arc<Inbox>>,
    threads: Vec<JoinHandle<()>>,
    pub counters: WorkerCounters,
}

impl Workers {
    pub fn start(shared: &Arc<Shared>) -> io::Result<Self> {
        super::fiber::panics::watch();
        let cpus = if shared.options.pin_workers {
            allowed_cpus()
        } else {
            vec![]
        };
        let mut workers = Workers {
            inboxes: vec![],
            threads: vec![],
            counters: WorkerCounters::default(),
        };
        let mut polls = vec![];
        for _ in 0..shared.options.workers {
            let poll = mio::Poll::new()?;
            let waker = mio::Waker::new(poll.registry(), Token::INBOX)?;
            workers.inboxes.push(Arc::new(Inbox::new(waker)));
            polls.push(poll);
        }
        let inboxes: Arc<[_]> = workers.inboxes.clone().into();
        for (i, poll) in polls.into_iter().enumerate() {
            let counters = Arc::new(CounterCells::default());
            workers.counters.0.push(counters.clone());
            let (shared, cpu) = (shared.clone(), cpus.get(i).copied());
            let inboxes = inboxes.clone();
            let thread = std::thread::Builder::new()
                .name(format!("worker-{i}"))
                .spawn(move || {
                    let _guard = EndProcessOnPanic;
                    if let Some(cpu) = cpu {
                        pin_to(cpu);
                    }
                    match event_loop::Worker::new(i, shared, poll, inboxes, counters) {
                        Ok(mut worker) => worker.run(),
                        Err(e) => tracing::error!("worker {i} cannot start: {e}"),
                    }
                })?;
            workers.threads.push(thread);
        }
        Ok(workers)
    }

    pub fn inboxes(&self) -> Vec<Arc<Inbox>> {
        self.inboxes.clone()
    }

    /// See [`crate::server::Server::give`].
    pub fn give(&self, from: usize, to: usize, most: usize) {
        self.inboxes[from].push(Message::Give { to, most });
    }

    /// Ends all sessions and waits for the threads.
    pub fn stop(self) {
        // When all workers have received this message, every moving connection is in an inbox.
        let (told, all_told) = mpsc::channel();
        for inbox in &self.inboxes {
            inbox.push(Message::Stay(told.clone()));
        }
        drop(told);
        let _ = all_told.recv_timeout(STAY_LIMIT);
        for inbox in &self.inboxes {
            inbox.push(Message::Shutdown);
        }
        for t in self.threads {
            if t.join().is_err() {
                tracing::error!("a worker thread panicked");
            }
        }
    }
}

/// The CPUs that this process may run on, in order.
#[allow(unsafe_code)]
fn allowed_cpus() -> Vec<usize> {
    // SAFETY: cpu_set_t is plain bits, for which all zeros is a value; the call writes at most its
    // size into it.
    let (set, rc) = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        let rc = libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set);
        (set, rc)
    };
    if rc != 0 {
        return vec![];
    }
    (0..libc::CPU_SETSIZE as usize)
        // SAFETY: the index is below CPU_SETSIZE.
        .filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) })
        .collect()
}

#[allow(unsafe_code)]
fn pin_to(cpu: usize) {
    // SAFETY: cpu_set_t is plain bits; `cpu` came out of a set of the same size.
    let rc = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)
    };
    if rc != 0 {
        let e = io::Error::last_os_error();
        tracing::warn!("cannot pin a worker to CPU {cpu}: {e}");
    }
}
