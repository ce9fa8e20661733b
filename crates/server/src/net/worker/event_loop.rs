//! The event loop of a worker thread: epoll, its connections, and their fibers.
//!
//! # Picture
//! ```text
//!        ┌─ inbox: new connections, wakes, shutdown
//!  turn ─┼─ timers that are due
//!        ├─ woken connections: run before the next command begins
//!        ├─ run queue: yielded and continued connections, each once
//!        └─ epoll: does not block while a queue holds any
//!  readable ─ recv once, several together ─ whole command? ─ fiber ─ answer sent by the fiber, or with others ─ back to epoll
//! ```
//!
//! # Invariants
//! - I1: sockets are edge-triggered; after an edge, `Entry::readable` stays true until a recv has
//!   found the socket empty.
//! - I2: a command starts only when it has been received completely, and at most one fiber runs for
//!   a connection.
//! - I3: at most `bound` fibers of statements outside transactions exist; further statements wait
//!   in order of arrival. Statements inside a transaction never queue, because others may wait for
//!   their locks.
//! - I4: a woken connection runs before the next command begins. It may have been granted a lock:
//!   until it runs and commits, each command that begins and needs the lock waits too, and the
//!   queue for a row that many clients update never becomes shorter (a lock convoy).
//!
//! # Cost
//! A command that arrives completely and never waits: one recv, two stack switches, one send; no
//! allocation, no epoll_ctl, no timer. If several have arrived, they share one receiving and one
//! sending call ([`together`], [`outbox`](super::outbox)), and each begins with the reading of the
//! clock that ended the one before. What a command rarely needs is not inlined, so that the stack
//! of a statement stays small: it competes for the processor's first cache with everything else.

mod connections;
mod fibers;
mod moves;
mod together;

use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nfold_protocol::consts::com;
use nfold_protocol::frame::{Frame, HEADER, next_frame};

use super::balance::Meter;
use super::table::{STAGES, State, Table};
use super::timers::Timers;
use super::{Shared, Token};
use crate::net::conn::{Conn, Job, LoginStep, Phase, Received};
use crate::net::fiber::inbox::{Inbox, Message};
use crate::net::fiber::slot::KillKind;
use crate::net::fiber::{Counters, Local, Suspend, add};

/// A worker that has run only one connection's commands for this long may block on behalf of it. A
/// connection that arrives meanwhile waits for at most one such block. Of statements that follow
/// each other faster than this, only the first one may wait, for a short sync.
const ALONE: Duration = Duration::from_millis(100);
/// The maximum number of fibers outside transactions per worker if `innodb_thread_concurrency` is
/// 0.
const DEFAULT_BOUND: usize = 1024;
/// How long, and how many bytes, the server reads from a client after an error.
const LINGER: Duration = Duration::from_secs(5);
const EVENTS: usize = 256;
/// How long the run queue may delay the next epoll.
const RUN_BUDGET: Duration = Duration::from_millis(4);
/// How long woken connections may delay the commands of a turn of the loop.
const WOKEN_BUDGET: Duration = Duration::from_millis(4);
/// How long sessions may take to end at shutdown before they are abandoned.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(20);

pub(super) struct Worker {
    shared: Arc<Shared>,
    local: Rc<Local>,
    poll: mio::Poll,
    inbox: Arc<Inbox>,
    /// The inboxes of all workers, by number.
    inboxes: Arc<[Arc<Inbox>]>,
    meter: Meter,
    table: Table,
    timers: Timers,
    run_queue: VecDeque<Token>,
    /// Woken connections, in the order of their wakes (I4).
    woken: VecDeque<Token>,
    /// How long woken connections have run in this turn.
    woken_ran: Duration,
    /// A buffer for messages, empty between uses.
    messages: Vec<Message>,
    /// A buffer for connections that receive together.
    together: Vec<(Token, Box<Conn>)>,
    /// Connections with a complete command that wait for admission (I3).
    admission: VecDeque<Token>,
    bound: usize,
    fibers: usize,
    /// The connection that started a fiber last, and since when no other one has.
    only: (Token, Instant),
    /// Whether connections no longer move, because the server is about to shut down.
    stays: bool,
    /// Set at shutdown: when to abandon the remaining sessions.
    stop_by: Option<Instant>,
    /// The start of the current turn.
    now: Instant,
}

impl Worker {
    pub fn new(
        number: usize,
        shared: Arc<Shared>,
        poll: mio::Poll,
        inboxes: Arc<[Arc<Inbox>]>,
        counters: Counters,
    ) -> io::Result<Self> {
        let now = Instant::now();
        let meter = Meter::new(now, shared.options.move_connections);
        let registry = poll.registry().try_clone()?;
        let local = Rc::new(Local::new(
            number,
            shared.registry.clone(),
            registry,
            shared.sessions.clone(),
            counters,
        ));
        let bound = match shared.options.concurrency {
            0 => DEFAULT_BOUND,
            n => n.div_ceil(shared.options.workers),
        };
        Ok(Worker {
            shared,
            local,
            poll,
            inbox: inboxes[number].clone(),
            inboxes,
            meter,
            table: Table::default(),
            timers: Timers::default(),
            run_queue: VecDeque::new(),
            woken: VecDeque::new(),
            woken_ran: Duration::ZERO,
            messages: Vec::new(),
            together: Vec::new(),
            admission: VecDeque::new(),
            bound,
            fibers: 0,
            only: (Token::new(u32::MAX, u32::MAX), now),
            stays: false,
            stop_by: None,
            now,
        })
    }

    pub fn run(&mut self) {
        let mut events = mio::Events::with_capacity(EVENTS);
        self.local.sessions.worker_begins();
        if self.shared.options.io_uring {
            self.local.outbox.borrow_mut().open();
        }
        loop {
            self.take_messages();
            if self.finished() {
                self.local.catch_up(false);
                return;
            }
            let timeout = if self.more_to_do(&events) {
                Some(Duration::ZERO)
            } else if self.local.deferred.get().is_some() {
                let alone = self.is_alone();
                self.local.catch_up(alone);
                // If the deferred work has blocked, new messages are in the inbox.
                continue;
            } else {
                self.sleep_for()
            };
            if let Err(e) = self.poll.poll(&mut events, timeout)
                && e.kind() != io::ErrorKind::Interrupted
            {
                tracing::error!("epoll failed: {e}");
                return;
            }
            self.inbox.awake();
            self.now = Instant::now();
            self.local.just_ended.set(None);
            // New input may not start a fiber, which would read the clock.
            self.local.catch_up_by(self.now);
            self.woken_ran = Duration::ZERO;
            self.run_woken(!events.is_empty());
            self.socket_events(&events);
            self.fire_timers();
            self.run_queued();
            self.send_out();
            if self.meter.is_due(self.now) {
                self.balance();
            }
        }
    }

    /// Whether only one session has needed this thread recently.
    fn is_alone(&mut self) -> bool {
        let (token, since) = self.only;
        self.fibers == 1
            && self.now.saturating_duration_since(since) >= ALONE
            && (self.table.get(token)).is_some_and(|e| matches!(e.state, State::Running { .. }))
    }

    /// With deferred work pending, the loop checks once more for input before it sleeps.
    fn more_to_do(&self, last: &mio::Events) -> bool {
        self.local.deferred.get().is_some()
            && !(last.is_empty() && self.run_queue.is_empty() && self.woken.is_empty())
    }

    /// Runs each connection in the run queue once, but returns to the sockets soon, so that many
    /// long statements do not delay a short one.
    fn run_queued(&mut self) {
        let end = self.now + RUN_BUDGET;
        for _ in 0..self.run_queue.len() {
            if let Some(token) = self.run_queue.pop_front() {
                self.more_follow(!self.run_queue.is_empty());
                self.turn(token);
                self.run_woken(!self.run_queue.is_empty());
            }
            if Instant::now() >= end {
                break;
            }
        }
        self.more_follow(false);
    }

    /// Runs the connections that have been woken (I4), as far as the turn's budget allows it.
    /// `more`: other commands follow.
    #[inline]
    fn run_woken(&mut self, more: bool) {
        if self.inbox.has_messages() {
            self.take_messages();
        }
        if !self.woken.is_empty() && self.woken_ran < WOKEN_BUDGET {
            self.run_woken_now(more);
        }
    }

    #[inline(never)]
    fn run_woken_now(&mut self, more: bool) {
        let (begin, ran) = (Instant::now(), self.woken_ran);
        while self.woken_ran < WOKEN_BUDGET
            && let Some(token) = self.woken.pop_front()
        {
            self.more_follow(more || !self.woken.is_empty());
            self.turn(token);
            if self.inbox.has_messages() {
                self.take_messages();
            }
            self.woken_ran = ran + begin.elapsed();
        }
    }

    fn take_messages(&mut self) {
        let mut messages = std::mem::take(&mut self.messages);
        self.inbox.take(&mut messages);
        for m in messages.drain(..) {
            self.message(m);
        }
        self.messages = messages;
    }

    fn sleep_for(&mut self) -> Option<Duration> {
        let queued = !(self.run_queue.is_empty() && self.woken.is_empty());
        if queued || !self.inbox.may_sleep() {
            return Some(Duration::ZERO);
        }
        let next = self.timers.next().into_iter().chain(self.stop_by).min();
        next.map(|at| {
            let left = at.saturating_duration_since(Instant::now());
            // epoll has a resolution of milliseconds, and would wake up just before the deadline.
            Duration::from_millis(left.as_millis() as u64 + 1)
        })
    }

    fn message(&mut self, m: Message) {
        match m {
            Message::Accept(accepted) => self.accept(accepted),
            Message::Wake(token) => self.enqueue_woken(token),
            Message::Moved(moved) => self.take_over(*moved),
            Message::Give { to, most } => self.give_away(to, most, 0),
            Message::Stay(told) => {
                self.stays = true;
                drop(told);
            }
            Message::Shutdown => self.begin_shutdown(),
        }
    }

    fn enqueue_woken(&mut self, token: Token) {
        if let Some(entry) = self.table.get(token)
            && !entry.queued
        {
            entry.queued = true;
            self.woken.push_back(token);
        }
    }

    fn enqueue(&mut self, token: Token) {
        if let Some(entry) = self.table.get(token)
            && !entry.queued
        {
            entry.queued = true;
            self.run_queue.push_back(token);
        }
    }

    // ---- events

    /// While one connection is served, the memory of the next ones is prefetched: with a thousand
    /// sessions it is not in any cache.
    fn socket_events(&mut self, events: &mio::Events) {
        if self.local.outbox.borrow().is_open() && events.iter().nth(1).is_some() {
            return self.socket_events_together(events);
        }
        let mut ahead: [_; STAGES] =
            std::array::from_fn(|stage| events.iter().skip(STAGES - stage));
        for event in events {
            for (stage, next) in ahead.iter_mut().enumerate() {
                if let Some(event) = next.next() {
                    self.table.prefetch(Token::from_mio(event.token()), stage);
                }
            }
            if event.token() != Token::INBOX {
                self.socket_event(event);
                self.run_woken(true);
            }
        }
    }

    fn socket_event(&mut self, event: &mio::event::Event) {
        let token = Token::from_mio(event.token());
        let Some(entry) = self.table.get(token) else {
            return;
        };
        entry.readable |= event.is_readable() || event.is_read_closed();
        entry.peer_closed |= event.is_read_closed();
        entry.peer_reset |= event.is_error() || event.is_write_closed() && event.is_read_closed();
        match &entry.state {
            State::Idle(_) => self.turn(token),
            State::Running { waits, .. } => {
                let resume = match waits {
                    Suspend::Writable(_) => event.is_writable() || entry.peer_closed,
                    Suspend::Readable(_) => entry.readable || entry.peer_closed,
                    Suspend::Wait(_) => entry.peer_closed,
                    Suspend::Yield => false,
                };
                if resume {
                    self.resume(token);
                }
            }
            State::Taken => debug_assert!(false, "I1 of the table"),
        }
    }

    fn fire_timers(&mut self) {
        while let Some((at, token)) = self.timers.pop_due(self.now) {
            let Some(entry) = self.table.get(token) else {
                continue;
            };
            if entry.armed != Some(at) {
                continue;
            }
            entry.armed = None;
            match entry.deadline() {
                Some(deadline) if deadline > self.now => {
                    self.timers.arm(token, deadline, &mut entry.armed);
                }
                Some(_) if matches!(entry.state, State::Running { .. }) => self.enqueue(token),
                Some(_) => self.idle_timeout(token),
                None => {}
            }
        }
    }

    #[inline(never)]
    fn idle_timeout(&mut self, token: Token) {
        let Some(conn) = self.take_idle(token) else {
            return;
        };
        if conn.session.is_some() {
            add(&self.local.counters.aborted_clients, 1);
        }
        self.hang_up(token, conn);
    }

    fn take_idle(&mut self, token: Token) -> Option<Box<Conn>> {
        let round = self.table.get(token)?.put_out;
        if self.local.outbox.borrow().holds(round) {
            self.send_out(); // O1 of the outbox
        }
        let entry = self.table.get(token)?;
        match std::mem::replace(&mut entry.state, State::Taken) {
            State::Idle(conn) => Some(conn),
            other => {
                entry.state = other;
                None
            }
        }
    }

    /// Runs a connection: resumes its fiber, or handles received input.
    fn turn(&mut self, token: Token) {
        let Some(entry) = self.table.get(token) else {
            return;
        };
        entry.queued = false;
        if matches!(entry.state, State::Running { .. }) {
            return self.resume(token);
        }
        let killed = entry.slot.killed() == Some(KillKind::Connection);
        if entry.waits_for_turn && !killed {
            return;
        }
        entry.waits_for_turn = false;
        if let Some(conn) = self.take_idle(token) {
            if killed {
                return self.hang_up(token, conn);
            }
            self.receive(token, conn);
        }
    }

    /// Reads once if the socket may have data, then handles the input.
    fn receive(&mut self, token: Token, mut conn: Box<Conn>) {
        let Some(entry) = self.table.get(token) else {
            return;
        };
        if !conn.output.is_empty() {
            // Login and closing answer without a fiber, so the answer must be sent first.
            match conn.output.send_some(&mut conn.transport, &self.local) {
                Ok(true) if matches!(conn.phase, Phase::Closing) => conn.transport.shutdown_write(),
                Ok(_) => {}
                Err(_) => return self.hang_up(token, conn),
            }
        }
        if entry.readable {
            self.local.just_ended.set(None);
            let need = match next_frame(
                conn.input.data(),
                conn.input.data().get(3).copied().unwrap_or(0),
                usize::MAX,
            ) {
                Ok(Frame::Partial { need }) => need,
                _ => 0,
            };
            let space = conn.input.space(&self.local, need);
            match conn.transport.recv(space) {
                Ok(Received::Bytes { n, drained }) => {
                    conn.input.received(n);
                    add(&self.local.counters.bytes_received, n as u64);
                    // A closed peer causes no further edge, so reading continues until the end of
                    // the stream.
                    entry.readable = !drained || entry.peer_closed;
                }
                Ok(Received::Nothing) => entry.readable = false,
                Ok(Received::Closed) | Err(_) => {
                    entry.readable = false;
                    entry.peer_closed = true;
                    return self.closed_by_peer(token, conn);
                }
            }
        }
        self.advance(token, conn);
    }

    #[inline(never)]
    fn closed_by_peer(&mut self, token: Token, conn: Box<Conn>) {
        if conn.session.is_some() {
            add(&self.local.counters.aborted_clients, 1);
        }
        self.hang_up(token, conn);
    }

    /// Handles the contents of the receive buffer.
    fn advance(&mut self, token: Token, mut conn: Box<Conn>) {
        match conn.phase {
            Phase::Closing => {
                conn.input.clear();
                self.park(token, conn);
            }
            Phase::Login(_) => {
                self.local.just_ended.set(None);
                conn.output.borrow(&self.local);
                let step = conn.login_step(&self.shared.auth);
                self.after_login_step(token, conn, step);
            }
            Phase::Command => self.command(token, conn),
        }
    }

    #[inline(never)]
    fn after_login_step(&mut self, token: Token, conn: Box<Conn>, step: LoginStep) {
        match step {
            // Another packet can be there already only if the client does not wait for answers. The
            // next turn handles it.
            LoginStep::NeedInput => {
                let more = !conn.input.is_empty();
                self.park(token, conn);
                if more && self.whole_packet_waits(token) {
                    self.enqueue(token);
                }
            }
            LoginStep::Authenticated(info, false) => self.start(token, conn, Job::Login(info)),
            LoginStep::Authenticated(info, true) => self.start(token, conn, Job::ChangeUser(info)),
            LoginStep::Refused => {
                add(&self.local.counters.aborted_connects, 1);
                if conn.session.is_some() {
                    // COM_CHANGE_USER was refused: sends the error, then ends the session.
                    return self.hang_up(token, conn);
                }
                self.linger(token, conn);
            }
        }
    }

    fn whole_packet_waits(&mut self, token: Token) -> bool {
        match self.table.get(token).map(|e| &e.state) {
            Some(State::Idle(conn)) => !matches!(
                next_frame(conn.input.data(), conn.sequence, usize::MAX),
                Ok(Frame::Partial { .. })
            ),
            _ => false,
        }
    }

    fn command(&mut self, token: Token, mut conn: Box<Conn>) {
        let limits = conn.link.limits.get();
        match next_frame(conn.input.data(), 0, limits.max_allowed_packet) {
            Ok(Frame::Partial { .. }) => {
                let timeout = if conn.input.is_empty() {
                    limits.wait_timeout
                } else {
                    limits.net_read_timeout
                };
                conn.deadline = Some(self.now + timeout);
                self.park(token, conn);
            }
            Ok(Frame::Whole { len, .. })
                if len > 0 && conn.input.data()[HEADER] == com::CHANGE_USER =>
            {
                self.local.just_ended.set(None);
                conn.output.borrow(&self.local);
                conn.deadline = Some(self.now + self.shared.registry.tunables().connect_timeout());
                let step = conn.begin_change_user(&self.shared.auth, len);
                self.after_login_step(token, conn, step);
            }
            _ => self.admit(token, conn),
        }
    }

    // ---- shutdown

    fn begin_shutdown(&mut self) {
        self.stop_by = Some(Instant::now() + SHUTDOWN_LIMIT);
        for token in self.table.tokens() {
            if let Some(entry) = self.table.get(token) {
                let id = entry.slot.id;
                self.shared.registry.kill(id, KillKind::Connection);
            }
        }
    }

    fn finished(&mut self) -> bool {
        let Some(stop_by) = self.stop_by else {
            return false;
        };
        if self.table.len() == 0 {
            return true;
        }
        if Instant::now() < stop_by {
            return false;
        }
        tracing::warn!(
            "{} sessions did not end in time and are given up",
            self.table.len()
        );
        for token in self.table.tokens() {
            // A suspended fiber cannot be dropped (I3 of the fiber). Its stack is leaked, since the
            // process ends.
            std::mem::forget(self.table.remove(token));
        }
        true
    }
}
