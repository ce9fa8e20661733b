//! A worker's fibers: admitting, starting and resuming them, and what follows when one suspends or
//! ends.

use std::time::Instant;

use corosensei::{Coroutine, CoroutineResult};
use nfold_protocol::consts::status;

use super::Worker;
use crate::net::conn::{After, Conn, Job, run};
use crate::net::fiber::memory::StatementMemory;
use crate::net::fiber::{Local, Suspend, TIME_SLICE, add};
use crate::net::worker::table::{Fiber, State};
use crate::net::worker::{FiberCx, Token};

impl Worker {
    /// Starts a fiber for the waiting command, or queues the connection (I3).
    pub(super) fn admit(&mut self, token: Token, mut conn: Box<Conn>) {
        let flags = conn.session.as_ref().map_or(0, |s| s.status_flags());
        if self.fibers < self.bound || flags & status::IN_TRANS != 0 {
            return self.start(token, conn, Job::Commands);
        }
        conn.deadline = None;
        if let Some(entry) = self.table.get(token) {
            entry.waits_for_turn = true;
            entry.state = State::Idle(conn);
            self.admission.push_back(token);
        }
    }

    pub(super) fn admit_next(&mut self) {
        while self.fibers < self.bound
            && let Some(token) = self.admission.pop_front()
        {
            let Some(entry) = self.table.get(token) else {
                continue;
            };
            if std::mem::take(&mut entry.waits_for_turn) {
                // Through the run queue, so that this call does not recurse.
                self.enqueue(token);
                return;
            }
        }
    }

    pub(super) fn start(&mut self, token: Token, mut conn: Box<Conn>, job: Job) {
        let stack = match self.local.take_stack() {
            Ok(stack) => stack,
            Err(e) => {
                // Out of memory: the session cannot run, not even to end in order.
                tracing::error!("no stack for connection {}: {e}", conn.link.slot.id);
                conn.session = None;
                return self.close(token, conn);
            }
        };
        conn.deadline = None;
        self.fibers += 1;
        let local = self.local.clone();
        let now = self.local.just_ended.take().unwrap_or_else(Instant::now);
        self.local.clock.set(now);
        self.local.catch_up_by(now);
        if self.only.0 != token {
            self.only = (token, now);
        }
        let slice_end = now + TIME_SLICE;
        let fiber: Fiber = Coroutine::with_stack(stack, move |yielder, ()| {
            let link = conn.link.clone();
            nfold_observe::contention::act_for(link.slot.id);
            let cx = FiberCx {
                yielder,
                link: &link,
                local: &local,
                slice_end: std::cell::Cell::new(slice_end),
                now: std::cell::Cell::new(now),
                statement_start: std::cell::Cell::new(now),
                statement_end: std::cell::Cell::new(None),
                memory: StatementMemory::default(),
                masked: std::cell::Cell::new(false),
                at_first_tick: std::cell::Cell::new(false),
            };
            let after = run(&mut conn, &cx, &*local.sessions, job);
            (conn, after)
        });
        let Some(entry) = self.table.get(token) else {
            debug_assert!(false, "a connection that runs has an entry");
            return;
        };
        entry.state = State::Running {
            fiber,
            waits: Suspend::Yield,
        };
        self.resume(token);
    }

    pub(super) fn resume(&mut self, token: Token) {
        let Some(entry) = self.table.get(token) else {
            return;
        };
        let State::Running { mut fiber, .. } = std::mem::replace(&mut entry.state, State::Taken)
        else {
            debug_assert!(false, "only running connections are resumed");
            return;
        };
        self.local.just_ended.set(None);
        self.local.peer_closed.set(entry.peer_closed);
        self.local.peer_reset.set(entry.peer_reset);
        let running = &self.local.counters.fibers_running;
        running.store(self.fibers as u64, std::sync::atomic::Ordering::Relaxed);
        let resumed = fiber.resume(());
        // Even after the fiber has ended: its deferred work may be pending.
        self.local.note_deferred();
        match resumed {
            CoroutineResult::Yield(waits) => self.suspended(token, fiber, waits),
            CoroutineResult::Return((conn, after)) => {
                self.local.give_stack(fiber.into_stack());
                self.fibers -= 1;
                running_store(&self.local, self.fibers);
                self.fiber_done(token, conn, after);
                self.admit_next();
            }
        }
    }

    pub(super) fn suspended(&mut self, token: Token, fiber: Fiber, waits: Suspend) {
        let Some(entry) = self.table.get(token) else {
            debug_assert!(false, "a connection that runs has an entry");
            return;
        };
        entry.state = State::Running { fiber, waits };
        match waits {
            Suspend::Yield => add(&self.local.counters.yields, 1),
            Suspend::Wait(_) | Suspend::Writable(_) | Suspend::Readable(_) => {
                add(&self.local.counters.waits, 1);
            }
        }
        if let Some(at) = entry.deadline() {
            self.timers.arm(token, at, &mut entry.armed);
        }
        if matches!(waits, Suspend::Yield) {
            self.enqueue(token);
        }
    }

    pub(super) fn fiber_done(&mut self, token: Token, mut conn: Box<Conn>, after: After) {
        match after {
            After::Close => self.close(token, conn),
            After::Linger => self.linger(token, conn),
            After::KeepOpen => {
                // Mostly the buffer is empty and the connection is parked at once. Otherwise the
                // rest gets a turn after the other connections.
                let limits = conn.link.limits.get();
                let waiting = !conn.input.is_empty();
                let timeout = if waiting {
                    limits.net_read_timeout
                } else {
                    limits.wait_timeout
                };
                conn.deadline = Some(self.now + timeout);
                self.put_out(token, &mut conn);
                self.park(token, conn);
                if waiting {
                    self.enqueue(token);
                }
            }
        }
    }
}

impl Worker {
    /// Passes an answer to the outbox if the outbox accepts it.
    fn put_out(&mut self, token: Token, conn: &mut Conn) {
        if conn.output.is_empty() {
            return;
        }
        let (now, mut outbox) = (self.local.clock.get(), self.local.outbox.borrow_mut());
        if let Some(round) = outbox.put(token, (&mut conn.output, &conn.transport), now)
            && let Some(entry) = self.table.get(token)
        {
            entry.put_out = round;
        }
        drop(outbox);
        self.local.send_out_by(now);
    }

    /// Sends the waiting answers. For each answer that its socket did not accept completely, a
    /// fiber sends the rest.
    pub(super) fn send_out(&mut self) {
        if self.local.outbox.borrow().is_empty() {
            return;
        }
        for answer in self.local.end_round() {
            let Some(entry) = self.table.get(answer.token) else {
                continue;
            };
            match std::mem::replace(&mut entry.state, State::Taken) {
                State::Idle(mut conn) => {
                    debug_assert!(conn.output.is_empty(), "O1");
                    conn.output.release(&self.local);
                    (conn.output.bytes, conn.output.sent) = (answer.bytes, answer.sent);
                    self.start(answer.token, conn, Job::Flush);
                }
                other => {
                    debug_assert!(false, "O1");
                    entry.state = other;
                }
            }
        }
    }
}

fn running_store(local: &Local, n: usize) {
    local
        .counters
        .fibers_running
        .store(n as u64, std::sync::atomic::Ordering::Relaxed);
}
