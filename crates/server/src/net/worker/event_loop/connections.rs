//! A worker's connections: accepting, parking and closing them.

use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use super::{LINGER, Worker};
use crate::net::conn::{Conn, Input, Job, Link, Output, Phase, Transport};
use crate::net::fiber::add;
use crate::net::fiber::inbox::Accepted;
use crate::net::fiber::slot::{ConnSlot, KillKind};
use crate::net::worker::Token;
use crate::net::worker::table::{Entry, State};

impl Worker {
    pub(super) fn accept(&mut self, accepted: Accepted) {
        if self.stop_by.is_some() {
            self.shared.registry.count_out();
            return;
        }
        let token = self.table.reserve();
        let transport = Transport::new(accepted.socket, &self.local.poll, token.to_mio());
        let transport = match transport {
            Ok(t) => t,
            Err(e) => {
                tracing::warn!("cannot watch a new connection: {e}");
                self.table.remove(token);
                self.shared.registry.count_out();
                return;
            }
        };
        let slot = Arc::new(ConnSlot::new(
            self.shared.registry.new_id(),
            token,
            self.inbox.clone(),
            accepted.peer.process_host(),
        ));
        self.shared.registry.add(&slot);
        slot.end(self.shared.registry.us(Instant::now()));
        let mut conn = Box::new(Conn {
            link: Rc::new(Link {
                waker: Waker::from(slot.clone()),
                slot: slot.clone(),
                limits: std::cell::Cell::new(self.shared.options.limits),
            }),
            transport,
            input: Input::default(),
            output: Output::default(),
            peer: accepted.peer,
            phase: Phase::Closing,
            session: None,
            capabilities: 0,
            sequence: 0,
            answer_sequence: 0,
            deadline: None,
            in_reserve: accepted.in_reserve,
        });
        conn.output.borrow(&self.local);
        conn.greet(
            &self.shared.auth,
            self.shared.registry.tunables().connect_timeout(),
        );
        self.table.fill(token, Entry::new(State::Taken, slot));
        self.park(token, conn);
    }

    /// Sends the buffered output of a connection, and parks it until an event.
    pub(super) fn park(&mut self, token: Token, mut conn: Box<Conn>) {
        if conn
            .output
            .send_some(&mut conn.transport, &self.local)
            .and_then(|done| {
                if !done {
                    conn.transport.want_writable(&self.local.poll, true)?;
                }
                Ok(())
            })
            .is_err()
        {
            self.close(token, conn);
            return;
        }
        conn.output.release(&self.local);
        conn.input.release(&self.local);
        let deadline = conn.deadline;
        let Some(entry) = self.table.get(token) else {
            debug_assert!(false, "a connection that runs has an entry");
            return;
        };
        entry.state = State::Idle(conn);
        if let Some(at) = deadline {
            self.timers.arm(token, at, &mut entry.armed);
        }
        if entry.readable || entry.slot.killed() == Some(KillKind::Connection) {
            self.enqueue(token);
        }
    }

    #[inline(never)]
    pub(super) fn close(&mut self, token: Token, mut conn: Box<Conn>) {
        debug_assert!(
            conn.session.is_none(),
            "the session ends in a fiber, before its connection"
        );
        conn.transport.close(&self.local.poll);
        self.shared.registry.remove(conn.link.slot.id);
        self.shared.registry.count_out();
        conn.input.clear();
        conn.input.release(&self.local);
        conn.output.reset();
        conn.output.release(&self.local);
        self.table.remove(token);
    }

    /// Closes a connection without a fiber. If it has a session, a fiber ends the session.
    #[inline(never)]
    pub(super) fn hang_up(&mut self, token: Token, mut conn: Box<Conn>) {
        if conn.session.is_some() {
            conn.input.clear();
            self.start(token, conn, Job::Disconnect);
        } else {
            if matches!(conn.phase, Phase::Login(_)) {
                add(&self.local.counters.aborted_connects, 1);
            }
            self.close(token, conn);
        }
    }

    /// After an error was written: sends it, and reads on until the client closes.
    #[inline(never)]
    pub(super) fn linger(&mut self, token: Token, mut conn: Box<Conn>) {
        conn.phase = Phase::Closing;
        conn.deadline = Some(Instant::now() + LINGER);
        conn.input.clear();
        match conn.output.send_some(&mut conn.transport, &self.local) {
            Ok(true) => conn.transport.shutdown_write(),
            Ok(false) => {}
            Err(_) => return self.close(token, conn),
        }
        if let Some(entry) = self.table.get(token) {
            entry.readable = true;
        }
        self.park(token, conn);
    }
}
