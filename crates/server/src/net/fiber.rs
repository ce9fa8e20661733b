//! The coroutine that runs the commands of one connection, and its ways to wait.
//!
//! # Picture
//! ```text
//! event loop ── resume ──▶ fiber: session code, straight-line
//!      ▲                      │ wait(future): poll, Pending ─┐
//!      └───── suspend ────────┴── write would block ─────────┤   worker goes on with other connections
//!        wake (any thread), writable, deadline, KILL ◀───────┘
//! ```
//!
//! # Invariants
//! - I1: a fiber stays on its worker's thread from its first to its last instruction.
//! - I2: every wait checks its condition again after a resume, because a fiber may be resumed
//!   without a reason.
//! - I3: a suspended fiber is never dropped, only resumed. At shutdown it is interrupted like a
//!   killed one.
//!
//! # Cost
//! A command that never waits costs two stack switches. Stacks come from the worker's pool; an idle
//! connection has none.

pub(crate) mod buffer;
pub(crate) mod compression;
pub mod handler;
pub(crate) mod inbox;
pub(crate) mod link;
pub mod login_failures;
pub(crate) mod memory;
pub(crate) mod outbox;
pub(crate) mod panics;
pub(crate) mod pooled;
pub(crate) mod slot;
pub(crate) mod transport;
pub(crate) mod upload;
pub(crate) mod writer;

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use corosensei::Yielder;
use corosensei::stack::DefaultStack;

use handler::{Limits, SessionFactory};
use link::Link;
use memory::{Exceeded, StatementMemory};
use outbox::{Answer, Outbox};
use pooled::Pooled;
use slot::{KillKind, Registry};

use crate::unix_time::UnixClock;

/// How long a statement may run before it yields at its next [`Waiter::tick`].
pub const TIME_SLICE: Duration = Duration::from_millis(2);
/// How long deferred work of sessions ([`SessionFactory::catch_up`]) may wait. A sync of a fast
/// disk takes about as long.
pub const DEFER_MAX: Duration = Duration::from_micros(200);
/// The size of a fiber's stack in bytes, without its guard page. It is virtual memory: pages are
/// touched on demand.
pub const STACK_BYTES: usize = 1 << 20;
/// The number of pooled stacks of one worker. Hundreds of statements may wait for the lock of one
/// hot row, each on its own stack.
const STACKS_KEPT: usize = 512;

/// Why a wait or a long statement ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupt {
    /// KILL or KILL CONNECTION, or the server is shutting down.
    Killed,
    /// KILL QUERY.
    QueryKilled,
    /// The deadline of the wait has passed (lock waits: 1205).
    Timeout,
    /// `max_execution_time` has passed.
    StatementTimeout,
    /// The client has disconnected, or does not read its result.
    ConnectionLost,
    /// The statement has reached its memory limit, or it grows while the server is at its limit.
    Memory(Exceeded),
}

/// The operations of a coroutine for code below the session. Object-safe.
pub trait Waiter {
    /// Suspends the fiber until `fut` is ready. Returns early at a KILL, at the end of the
    /// statement's time limit, or at `deadline`; the caller then drops the future. A wait with a
    /// deadline (a lock wait) also ends when the client has closed its side.
    fn wait(
        &self,
        fut: Pin<&mut dyn Future<Output = ()>>,
        deadline: Option<Instant>,
    ) -> Result<(), Interrupt>;

    /// Suspends the fiber until `fut` is ready, without exception. For waits that must not be
    /// abandoned, such as a commit.
    fn wait_through(&self, fut: Pin<&mut dyn Future<Output = ()>>);

    /// Yields to other connections if the time slice is over, and reports interrupts. To be called
    /// after every batch.
    fn tick(&self) -> Result<(), Interrupt>;
}

/// Why a fiber is suspended, for the event loop.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Suspend {
    /// Until it is woken, or the deadline passes.
    Wait(Option<Instant>),
    /// Until the socket is writable, or the deadline passes.
    Writable(Instant),
    /// Until bytes arrive at the socket, or the deadline.
    Readable(Instant),
    /// Until the other runnable connections have had a turn.
    Yield,
}

/// A fiber's view of its coroutine. Every call into a session passes it; the session does not store
/// it.
pub struct FiberCx<'a> {
    pub(crate) yielder: &'a Yielder<(), Suspend>,
    pub(crate) link: &'a Link,
    pub(crate) local: &'a Local,
    pub(crate) slice_end: Cell<Instant>,
    /// The time when the clock was read last.
    pub(crate) now: Cell<Instant>,
    /// The start of the current statement, and the end of its time limit.
    pub(crate) statement_start: Cell<Instant>,
    pub(crate) statement_end: Cell<Option<Instant>>,
    pub(crate) memory: StatementMemory,
    /// Whether interrupts are ignored, because the session is closing.
    pub(crate) masked: Cell<bool>,
    /// Whether the current statement has not called [`Waiter::tick`] yet.
    pub(crate) at_first_tick: Cell<bool>,
}

impl FiberCx<'_> {
    /// The number of the worker, for sharded counters and slots.
    pub fn worker(&self) -> usize {
        self.local.worker
    }

    /// The worker's reusable memory for the current command.
    pub fn pooled(&self) -> &Pooled {
        &self.local.pooled
    }

    /// `CONNECTION_ID()`.
    pub fn connection_id(&self) -> u32 {
        self.link.slot.id
    }

    /// The registry of all connections, for KILL and PROCESSLIST.
    pub fn registry(&self) -> &Registry {
        &self.local.registry
    }

    pub fn limits(&self) -> Limits {
        self.link.limits.get()
    }

    /// Sets the limits that hold from the next command on.
    pub fn set_limits(&self, limits: Limits) {
        self.link.limits.set(limits);
    }

    /// Starts a statement without a time limit. It may allocate `memory` bytes (0: the server's
    /// default), of which its text and its parameters take `received` already.
    #[inline]
    pub fn begin_statement(&self, memory: u64, received: usize) {
        self.statement_start.set(self.now());
        self.statement_end.set(None);
        self.at_first_tick.set(true);
        let limit = self.registry().tunables().statement_memory(memory);
        self.memory.begin(limit, received);
    }

    /// Ends a statement and its limits.
    #[inline]
    pub fn lift_limits(&self) {
        self.statement_end.set(None);
        self.memory.end();
    }

    /// The bytes that the current statement has allocated and not freed.
    pub fn memory_held(&self) -> u64 {
        self.memory.held().max(0) as u64
    }

    /// `max_execution_time`: interrupts the current statement after this time.
    pub fn limit_statement(&self, limit: Option<Duration>) {
        let end = limit.and_then(|limit| self.statement_start.get().checked_add(limit));
        self.statement_end.set(end);
    }

    /// Sets the statement that PROCESSLIST shows, if it is not the text of COM_QUERY: that of a
    /// prepared statement, with a number that identifies the text.
    pub fn set_statement_text(&self, text: &[u8], number: u64) {
        self.link.slot.set_text(text, number);
    }

    /// Sets the current database that PROCESSLIST shows.
    pub fn set_database(&self, database: Option<&str>) {
        self.link.slot.set_database(database);
    }

    /// Fails after a KILL, or if a limit of time or memory has been reached.
    pub fn interrupted(&self) -> Result<(), Interrupt> {
        if self.masked.get() {
            return Ok(());
        }
        match self.link.slot.killed() {
            Some(KillKind::Connection) => return Err(Interrupt::Killed),
            Some(KillKind::Query) => return Err(Interrupt::QueryKilled),
            None => {}
        }
        let server_limit = || self.registry().tunables().server_memory();
        self.memory.check(server_limit).map_err(Interrupt::Memory)?;
        match self.statement_end.get() {
            Some(end) if Instant::now() >= end => Err(Interrupt::StatementTimeout),
            _ => Ok(()),
        }
    }

    /// Fails if the client has closed its side, because no client will read the answer of a
    /// statement that may take hours. A statement that ends within one time slice continues: its
    /// client may have sent it and closed. The time counts from the statement's start, because a
    /// statement that often waits for a file never uses up a slice.
    fn client_waits(&self) -> Result<(), Interrupt> {
        let gone = self.local.peer_closed.get() && !self.masked.get();
        if gone && self.now() - self.statement_start.get() >= self.local.slice {
            return Err(Interrupt::ConnectionLost);
        }
        Ok(())
    }

    pub(crate) fn suspend(&self, why: Suspend) {
        let allocated = nfold_memory::allocated_here();
        self.local.just_ended.set(None);
        self.yielder.suspend(why);
        self.memory.resumed(allocated);
        nfold_observe::contention::act_for(self.link.slot.id);
        let now = self.read_clock();
        self.local.catch_up_by(now);
        self.slice_end.set(now + self.local.slice);
    }

    /// The time when the clock was read last: at the start of the fiber, after each suspension, and
    /// after each command.
    pub fn now(&self) -> Instant {
        self.now.get()
    }

    /// The system's time at [`Self::now`], in microseconds since 1970.
    #[inline]
    pub fn unix_us(&self) -> i64 {
        self.local.unix_clock.at(self.now())
    }

    /// Reads the clock.
    pub fn read_clock(&self) -> Instant {
        let now = Instant::now();
        self.now.set(now);
        self.local.clock.set(now);
        now
    }

    /// Reads the clock at the end of a statement. If the worker's next statement follows at once,
    /// it starts at this time.
    pub fn read_end_clock(&self) -> Instant {
        let now = self.read_clock();
        self.local.just_ended.set(Some(now));
        now
    }

    /// When the fiber was resumed last.
    pub(crate) fn slice_start(&self) -> Instant {
        self.slice_end.get() - self.local.slice
    }

    /// Whether the time slice is over.
    pub(crate) fn slice_over(&self) -> bool {
        self.read_clock() >= self.slice_end.get()
    }

    /// Between two statements of one text: yields if the time slice is over, and reports
    /// interrupts. The end of a statement has read the clock.
    pub(crate) fn between_statements(&self) -> Result<(), Interrupt> {
        if self.now() >= self.slice_end.get() {
            self.suspend(Suspend::Yield);
        }
        self.interrupted()
    }

    /// As [`Self::slice_over`], but does not read the clock again if it was read after `before`.
    pub(crate) fn slice_over_since(&self, before: Instant) -> bool {
        let now = self.now.get();
        if now == before {
            return self.slice_over();
        }
        now >= self.slice_end.get()
    }

    /// Suspends until the socket is writable. Returns whether that happened before `until`.
    pub(crate) fn wait_writable(&self, until: Instant) -> Result<bool, Interrupt> {
        self.suspend(Suspend::Writable(until));
        if self.link.slot.killed() == Some(KillKind::Connection) {
            return Err(Interrupt::Killed);
        }
        // The send buffer is full, and the client has closed its sending side. It may never read
        // again, so waiting for room could take for ever.
        if self.local.peer_reset.get() || self.local.peer_closed.get() {
            return Err(Interrupt::ConnectionLost);
        }
        Ok(Instant::now() < until)
    }

    /// Suspends until the socket may have bytes; whether that was before `until`. The caller has
    /// seen the socket empty, so the next byte to arrive is a new event.
    pub(crate) fn wait_readable(&self, until: Instant) -> Result<bool, Interrupt> {
        self.suspend(Suspend::Readable(until));
        if self.link.slot.killed() == Some(KillKind::Connection) {
            return Err(Interrupt::Killed);
        }
        Ok(Instant::now() < until)
    }
}

impl Waiter for FiberCx<'_> {
    fn wait(
        &self,
        mut fut: Pin<&mut dyn Future<Output = ()>>,
        deadline: Option<Instant>,
    ) -> Result<(), Interrupt> {
        let mut task = Context::from_waker(&self.link.waker);
        loop {
            if let Poll::Ready(()) = fut.as_mut().poll(&mut task) {
                return Ok(());
            }
            self.interrupted()?;
            if deadline.is_some_and(|d| Instant::now() >= d) {
                return Err(Interrupt::Timeout);
            }
            if deadline.is_some() && self.local.peer_closed.get() && !self.masked.get() {
                return Err(Interrupt::ConnectionLost);
            }
            let until = match self.statement_end.get() {
                Some(end) if !self.masked.get() => Some(deadline.map_or(end, |d| d.min(end))),
                _ => deadline,
            };
            self.suspend(Suspend::Wait(until));
        }
    }

    fn wait_through(&self, mut fut: Pin<&mut dyn Future<Output = ()>>) {
        let mut task = Context::from_waker(&self.link.waker);
        while fut.as_mut().poll(&mut task).is_pending() {
            self.suspend(Suspend::Wait(None));
        }
    }

    fn tick(&self) -> Result<(), Interrupt> {
        self.interrupted()?;
        // The executor calls this before its first batch, and the clock was read when the statement
        // began. So a short statement needs no other reading. One takes 80 ns on a virtual machine.
        if self.at_first_tick.replace(false) && self.now() < self.slice_end.get() {
            return Ok(());
        }
        let over = self.slice_over();
        self.local.catch_up_by(self.now());
        self.local.send_out_by(self.now());
        if over {
            self.suspend(Suspend::Yield);
            self.interrupted()?;
        }
        self.client_waits()
    }
}

/// The shared state of all fibers of one worker. Only its thread uses it.
pub(crate) struct Local {
    pub worker: usize,
    /// [`TIME_SLICE`], unless no other connection needs the thread.
    pub slice: Duration,
    pub registry: std::sync::Arc<Registry>,
    pub poll: mio::Registry,
    pub sessions: std::sync::Arc<dyn SessionFactory>,
    stacks: RefCell<Vec<DefaultStack>>,
    inputs: RefCell<Vec<Vec<u8>>>,
    outputs: RefCell<Vec<Vec<u8>>>,
    /// The reusable memory of commands.
    pub pooled: Pooled,
    /// Whether the client of the current fiber has closed its sending side. The event loop sets it
    /// before each resume.
    pub peer_closed: Cell<bool>,
    /// Whether the connection of the current fiber is broken in both directions.
    pub peer_reset: Cell<bool>,
    /// When a fiber read the clock last.
    pub clock: Cell<Instant>,
    /// When the last statement ended; `None` if the worker has done anything since then that takes
    /// time: a system call, a login, or another session's work.
    pub just_ended: Cell<Option<Instant>>,
    pub unix_clock: UnixClock,
    /// Since when sessions have deferred work; `None` if there is none.
    pub deferred: Cell<Option<Instant>>,
    /// Answers that will be sent together with others.
    pub outbox: RefCell<Outbox>,
    pub counters: Counters,
}

/// Traffic counters of one worker. Its thread writes them, any thread may read them (`SHOW
/// STATUS`).
#[derive(Default)]
#[repr(align(128))]
pub struct CounterCells {
    pub bytes_received: std::sync::atomic::AtomicU64,
    pub bytes_sent: std::sync::atomic::AtomicU64,
    pub commands: std::sync::atomic::AtomicU64,
    pub aborted_clients: std::sync::atomic::AtomicU64,
    pub aborted_connects: std::sync::atomic::AtomicU64,
    pub fibers_running: std::sync::atomic::AtomicU64,
    pub yields: std::sync::atomic::AtomicU64,
    pub waits: std::sync::atomic::AtomicU64,
    /// Connections moved to other workers.
    pub moved: std::sync::atomic::AtomicU64,
    /// Answers that were sent together with others.
    pub together: std::sync::atomic::AtomicU64,
}

pub(crate) type Counters = std::sync::Arc<CounterCells>;

/// Adds to a counter that only this thread writes: a load and a store, without a locked
/// instruction.
#[inline]
pub(crate) fn add(cell: &std::sync::atomic::AtomicU64, n: u64) {
    use std::sync::atomic::Ordering::Relaxed;
    cell.store(cell.load(Relaxed).wrapping_add(n), Relaxed);
}

/// The maximum number of pooled buffers of each kind, which suffices for all commands that are
/// received together; and the maximum size of a pooled buffer.
const BUFFERS_KEPT: usize = nfold_ring::MOST + 8;
const INPUT_KEPT_BYTES: usize = 256 << 10;
const OUTPUT_KEPT_BYTES: usize = 1 << 20;

impl Local {
    pub fn new(
        worker: usize,
        registry: std::sync::Arc<Registry>,
        poll: mio::Registry,
        sessions: std::sync::Arc<dyn SessionFactory>,
        counters: Counters,
    ) -> Self {
        Local {
            worker,
            slice: TIME_SLICE,
            registry,
            poll,
            sessions,
            stacks: RefCell::default(),
            inputs: RefCell::default(),
            outputs: RefCell::default(),
            pooled: Pooled::default(),
            peer_closed: Cell::new(false),
            peer_reset: Cell::new(false),
            clock: Cell::new(Instant::now()),
            just_ended: Cell::new(None),
            unix_clock: UnixClock::new(),
            deferred: Cell::new(None),
            outbox: RefCell::new(Outbox::new()),
            counters,
        }
    }

    /// Records that a suspended or ended fiber may have deferred work.
    pub fn note_deferred(&self) {
        if self.deferred.get().is_none() && self.sessions.has_deferred() {
            self.deferred.set(Some(self.clock.get()));
        }
    }

    /// Does the deferred work. `may_block`: see [`SessionFactory::catch_up`].
    pub fn catch_up(&self, may_block: bool) {
        if self.deferred.take().is_some() {
            self.just_ended.set(None);
            self.sessions.catch_up(may_block);
        }
    }

    /// Does the deferred work if it is older than [`DEFER_MAX`].
    #[inline]
    pub fn catch_up_by(&self, now: Instant) {
        if self
            .deferred
            .get()
            .is_some_and(|since| now - since >= DEFER_MAX)
        {
            self.catch_up(false);
        }
    }

    /// Sends the waiting answers if they are due.
    #[inline]
    pub fn send_out_by(&self, now: Instant) {
        if self.outbox.borrow().is_due(now) {
            self.send_out();
        }
    }

    fn send_out(&self) {
        self.just_ended.set(None);
        let mut outbox = self.outbox.borrow_mut();
        if outbox.waits_for() > 1 {
            add(&self.counters.together, outbox.waits_for() as u64);
        }
        let sent = outbox.send(|buffer| self.give_output(buffer));
        add(&self.counters.bytes_sent, sent);
    }

    /// Sends the waiting answers. Returns the parts that the sockets did not accept.
    pub fn end_round(&self) -> Vec<Answer> {
        self.send_out();
        self.outbox.borrow_mut().end_round()
    }

    pub fn take_stack(&self) -> std::io::Result<DefaultStack> {
        match self.stacks.borrow_mut().pop() {
            Some(stack) => Ok(stack),
            None => DefaultStack::new(STACK_BYTES),
        }
    }

    #[inline]
    pub fn give_stack(&self, stack: DefaultStack) {
        let mut stacks = self.stacks.borrow_mut();
        if stacks.len() < STACKS_KEPT {
            stacks.push(stack);
        }
    }

    /// Takes a receive buffer from the pool. It is initialised up to its length, which may be 0.
    pub fn take_input(&self) -> Vec<u8> {
        self.inputs.borrow_mut().pop().unwrap_or_default()
    }

    /// Returns a receive buffer to the pool. Its contents remain, because initialising it again
    /// would cost more than the command.
    pub fn give_input(&self, buffer: Vec<u8>) {
        keep(&self.inputs, buffer, INPUT_KEPT_BYTES);
    }

    /// Takes an empty send buffer of any capacity from the pool.
    pub fn take_output(&self) -> Vec<u8> {
        self.outputs.borrow_mut().pop().unwrap_or_default()
    }

    pub fn give_output(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        keep(&self.outputs, buffer, OUTPUT_KEPT_BYTES);
    }
}

fn keep(pool: &RefCell<Vec<Vec<u8>>>, buffer: Vec<u8>, largest: usize) {
    let mut pool = pool.borrow_mut();
    if (1..=largest).contains(&buffer.capacity()) && pool.len() < BUFFERS_KEPT {
        pool.push(buffer);
    }
}
