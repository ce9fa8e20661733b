//! The coroutine that runs one connection's commands, and how it waits.
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
//! - I1: a fiber stays on the thread of its worker from its first to its last instruction.
//! - I2: every suspension re-checks its condition after being resumed; a resume may come for no reason.
//! - I3: a suspended fiber is never dropped, only resumed; at shutdown it is interrupted like a killed one.
//!
//! # Cost
//! A command that never waits costs two stack switches. Stacks come from the worker's pool; an idle connection has none.

pub(crate) mod buffer;
pub mod handler;
pub(crate) mod inbox;
pub(crate) mod lent;
pub(crate) mod link;
pub(crate) mod memory;
pub(crate) mod outbox;
pub(crate) mod panics;
pub(crate) mod slot;
pub(crate) mod transport;
pub(crate) mod writer;

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use corosensei::Yielder;
use corosensei::stack::DefaultStack;

use handler::{Limits, SessionFactory};
use lent::Lent;
use link::Link;
use memory::{Exceeded, StatementMemory};
use outbox::{Answer, Outbox};
use slot::{KillKind, Registry};

/// How long a statement may run before it gives way at its next [`Waiter::tick`].
pub const TIME_SLICE: Duration = Duration::from_millis(2);
/// How long what sessions have put off ([`SessionFactory::catch_up`]) may wait for the end of a turn. A sync of a fast disk takes as long.
pub const PUT_OFF: Duration = Duration::from_micros(200);
/// Bytes of a fiber's stack (virtual; pages are touched as needed), without its guard page.
pub const STACK_BYTES: usize = 1 << 20;
/// Stacks kept for reuse by one worker. Hundreds of statements may wait for the lock of one hot row,
/// each on a stack of its own.
const STACKS_KEPT: usize = 512;

/// Why a wait or a long statement ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupt {
    /// KILL or KILL CONNECTION, or the server shuts down.
    Killed,
    /// KILL QUERY.
    QueryKilled,
    /// The deadline of this wait has passed (lock waits: 1205).
    Timeout,
    /// `max_execution_time` has passed.
    StatementTimeout,
    /// The client is gone, or does not take its result.
    ConnectionLost,
    /// The statement holds too much memory, or the server does and the statement still grows.
    Memory(Exceeded),
}

/// What code below the session may do with the coroutine it runs in. Object-safe.
pub trait Waiter {
    /// Returns when `fut` is ready. Ends early for a KILL, the statement's time limit, or `deadline`; the future is then the
    /// caller's to drop. A wait with a deadline (a lock wait) also ends when the client has closed its side.
    fn wait(
        &self,
        fut: Pin<&mut dyn Future<Output = ()>>,
        deadline: Option<Instant>,
    ) -> Result<(), Interrupt>;

    /// Returns when `fut` is ready, whatever happens meanwhile: for waits that must not be abandoned (a commit on its way).
    fn wait_through(&self, fut: Pin<&mut dyn Future<Output = ()>>);

    /// To be called at every batch boundary: gives way to other connections when the time slice is over, and reports
    /// interrupts.
    fn tick(&self) -> Result<(), Interrupt>;
}

/// Why a fiber is suspended, told to the event loop.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Suspend {
    /// Until woken, or the deadline.
    Wait(Option<Instant>),
    /// Until the socket takes bytes, or the deadline.
    Writable(Instant),
    /// Until the others have had their turn.
    Yield,
}

/// The coroutine as its own code sees it. Sessions get it with every call; it is not kept.
pub struct FiberCx<'a> {
    pub(crate) yielder: &'a Yielder<(), Suspend>,
    pub(crate) link: &'a Link,
    pub(crate) local: &'a Local,
    pub(crate) slice_end: Cell<Instant>,
    /// The clock when it was read last.
    pub(crate) now: Cell<Instant>,
    /// When the statement at hand began, and when its time is over.
    pub(crate) statement_start: Cell<Instant>,
    pub(crate) statement_end: Cell<Option<Instant>>,
    pub(crate) memory: StatementMemory,
    /// Interrupts are off (the session is closing).
    pub(crate) masked: Cell<bool>,
}

impl FiberCx<'_> {
    /// Number of the worker, for sharded counters and slots.
    pub fn worker(&self) -> usize {
        self.local.worker
    }

    /// What the worker lends to the command at hand.
    pub fn lent(&self) -> &Lent {
        &self.local.lent
    }

    /// `CONNECTION_ID()`
    pub fn connection_id(&self) -> u32 {
        self.link.slot.id
    }

    /// All connections: KILL, PROCESSLIST.
    pub fn registry(&self) -> &Registry {
        &self.local.registry
    }

    pub fn limits(&self) -> Limits {
        self.link.limits.get()
    }

    /// From the next command on, these hold.
    pub fn set_limits(&self, limits: Limits) {
        self.link.limits.set(limits);
    }

    /// A statement begins, with no limit of its time. It may hold `memory` bytes (0: the server's
    /// default), `received` of which its text and its parameters hold already.
    #[inline]
    pub fn begin_statement(&self, memory: u64, received: usize) {
        self.statement_start.set(self.now());
        self.statement_end.set(None);
        let limit = self.registry().tunables().statement_memory(memory);
        self.memory.begin(limit, received);
    }

    /// A statement is over: its limits hold no longer.
    #[inline]
    pub fn lift_limits(&self) {
        self.statement_end.set(None);
        self.memory.end();
    }

    /// Bytes that the running statement has allocated and not freed.
    pub fn memory_held(&self) -> u64 {
        self.memory.held().max(0) as u64
    }

    /// `max_execution_time`: the running statement is interrupted when it has taken so long.
    pub fn limit_statement(&self, limit: Option<Duration>) {
        let end = limit.and_then(|limit| self.statement_start.get().checked_add(limit));
        self.statement_end.set(end);
    }

    /// What PROCESSLIST shows as the running statement, where it is not the text of COM_QUERY: a prepared one's, and a number that no other
    /// text has.
    pub fn set_statement_text(&self, text: &[u8], number: u64) {
        self.link.slot.set_text(text, number);
    }

    /// The session's current database, as PROCESSLIST shows it.
    pub fn set_database(&self, database: Option<&str>) {
        self.link.slot.set_database(database);
    }

    /// A KILL, or a limit of time or memory that has come.
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

    /// An error where the client has closed its side: nothing will read the answer, and the
    /// statement may have hours before it. A statement that ends within a time slice goes on, since
    /// its client may have sent it and closed. The time counts from the statement's start, because
    /// a statement that often waits for a file never uses up a slice.
    fn client_waits(&self) -> Result<(), Interrupt> {
        let gone = self.local.peer_closed.get() && !self.masked.get();
        if gone && self.now() - self.statement_start.get() >= self.local.slice {
            return Err(Interrupt::ConnectionLost);
        }
        Ok(())
    }

    pub(crate) fn suspend(&self, why: Suspend) {
        let allocated = nfold_memory::allocated_here();
        self.yielder.suspend(why);
        self.memory.resumed(allocated);
        nfold_observe::contention::act_for(self.link.slot.id);
        let now = self.read_clock();
        self.local.catch_up_by(now);
        self.slice_end.set(now + self.local.slice);
    }

    /// When the clock was read last: at the beginning of the fiber, after each suspension and each command.
    pub fn now(&self) -> Instant {
        self.now.get()
    }

    /// Reads the clock.
    pub fn read_clock(&self) -> Instant {
        let now = Instant::now();
        self.now.set(now);
        self.local.clock.set(now);
        now
    }

    /// When the fiber was last given the thread.
    pub(crate) fn slice_start(&self) -> Instant {
        self.slice_end.get() - self.local.slice
    }

    /// Has the time slice run out?
    pub(crate) fn slice_over(&self) -> bool {
        self.read_clock() >= self.slice_end.get()
    }

    /// As [`Self::slice_over`]; a clock that was read after `before` is not read again.
    pub(crate) fn slice_over_since(&self, before: Instant) -> bool {
        let now = self.now.get();
        if now == before {
            return self.slice_over();
        }
        now >= self.slice_end.get()
    }

    /// Suspends until the socket may take bytes again; whether that was before `until`.
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

/// What all fibers of one worker share; touched by its thread only.
pub(crate) struct Local {
    pub worker: usize,
    /// [`TIME_SLICE`], but where nobody else wants the thread.
    pub slice: Duration,
    pub registry: std::sync::Arc<Registry>,
    pub poll: mio::Registry,
    pub sessions: std::sync::Arc<dyn SessionFactory>,
    stacks: RefCell<Vec<DefaultStack>>,
    inputs: RefCell<Vec<Vec<u8>>>,
    outputs: RefCell<Vec<Vec<u8>>>,
    /// What commands use in turn.
    pub lent: Lent,
    /// Of the fiber that runs now, set by the event loop before each resume: the client has closed its sending side.
    pub peer_closed: Cell<bool>,
    /// Of the fiber that runs now: the connection is broken in both directions.
    pub peer_reset: Cell<bool>,
    /// When a fiber read the clock last.
    pub clock: Cell<Instant>,
    /// Sessions have put something off, since then.
    pub put_off: Cell<Option<Instant>>,
    /// Answers that wait for others.
    pub outbox: RefCell<Outbox>,
    pub counters: Counters,
}

/// Traffic of one worker. Written by its thread, read by anyone (`SHOW STATUS`).
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
    /// Connections given to other workers.
    pub moved: std::sync::atomic::AtomicU64,
    /// Answers handed to the kernel with others.
    pub together: std::sync::atomic::AtomicU64,
}

pub(crate) type Counters = std::sync::Arc<CounterCells>;

/// Adds to a counter that only this thread writes: a load and a store, no locked instruction.
#[inline]
pub(crate) fn add(cell: &std::sync::atomic::AtomicU64, n: u64) {
    use std::sync::atomic::Ordering::Relaxed;
    cell.store(cell.load(Relaxed).wrapping_add(n), Relaxed);
}

/// Buffers of each kind kept for reuse, for as many commands as are received together, and the largest of them.
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
            lent: Lent::default(),
            peer_closed: Cell::new(false),
            peer_reset: Cell::new(false),
            clock: Cell::new(Instant::now()),
            put_off: Cell::new(None),
            outbox: RefCell::new(Outbox::new()),
            counters,
        }
    }

    /// A fiber has suspended or ended: it may have put something off.
    pub fn note_put_off(&self) {
        if self.put_off.get().is_none() && self.sessions.has_put_off() {
            self.put_off.set(Some(self.clock.get()));
        }
    }

    /// Does what was put off; `may_block`: [`SessionFactory::catch_up`].
    pub fn catch_up(&self, may_block: bool) {
        if self.put_off.take().is_some() {
            self.sessions.catch_up(may_block);
        }
    }

    /// Does what was put off [`PUT_OFF`] ago.
    #[inline]
    pub fn catch_up_by(&self, now: Instant) {
        if self
            .put_off
            .get()
            .is_some_and(|since| now - since >= PUT_OFF)
        {
            self.catch_up(false);
        }
    }

    /// Sends the answers that wait, if it is time.
    #[inline]
    pub fn send_out_by(&self, now: Instant) {
        if self.outbox.borrow().is_due(now) {
            self.send_out();
        }
    }

    fn send_out(&self) {
        let mut outbox = self.outbox.borrow_mut();
        if outbox.waits_for() > 1 {
            add(&self.counters.together, outbox.waits_for() as u64);
        }
        let sent = outbox.send(|buffer| self.give_output(buffer));
        add(&self.counters.bytes_sent, sent);
    }

    /// Sends the answers that wait, and gives what sockets did not take.
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

    /// A receive buffer, initialised up to its length, which may be 0.
    pub fn take_input(&self) -> Vec<u8> {
        self.inputs.borrow_mut().pop().unwrap_or_default()
    }

    /// Takes a receive buffer back. Its contents stay: initialising it again would cost more than the command.
    pub fn give_input(&self, buffer: Vec<u8>) {
        keep(&self.inputs, buffer, INPUT_KEPT_BYTES);
    }

    /// An empty send buffer, with whatever capacity.
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
