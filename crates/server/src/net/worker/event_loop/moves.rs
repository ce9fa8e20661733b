//! Connections that move to and from other workers (see [`balance`](crate::net::worker::balance)).

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use nfold_protocol::consts::status;

use super::Worker;
use crate::net::conn::{Conn, Input, Link, Output, Phase};
use crate::net::fiber::inbox::Message;
use crate::net::fiber::inbox::MovedConnection;
use crate::net::fiber::slot::KillKind;
use crate::net::worker::table::{Entry, State};
use crate::net::worker::{Token, counters_add};

/// Whether a connection may move (balance::B1).
fn may_go(entry: &Entry) -> bool {
    let State::Idle(conn) = &entry.state else {
        return false;
    };
    let flags = conn.session.as_ref().map(|s| s.status_flags());
    flags.is_some_and(|flags| flags & status::IN_TRANS == 0)
        && matches!(conn.phase, Phase::Command)
        && conn.input.is_empty()
        && conn.output.is_empty()
        && conn.output.lost.is_none()
        && !(entry.readable || entry.peer_closed || entry.peer_reset)
        && !(entry.queued || entry.waits_for_turn)
        && entry.slot.killed().is_none()
}

impl Worker {
    /// Publishes this worker's load, and moves connections to another worker that has spare time.
    pub(super) fn balance(&mut self) {
        let (now, registry) = (self.now, &self.shared.registry);
        let (meter, table) = (&mut self.meter, &mut self.table);
        let mut since = 0;
        let active = |from: Instant| {
            since = registry.us(from);
            table
                .entries()
                .filter(|e| e.1.slot.since_us() >= since)
                .count()
        };
        let found = meter.look(&self.shared.loads, self.local.worker, now, active);
        if let Some((to, most)) = found {
            self.give_away(to, most, since);
        }
    }

    /// Moves up to `most` connections that have run a command since `since_us` to another worker.
    pub(super) fn give_away(&mut self, to: usize, most: usize, since_us: u64) {
        if self.stays || to == self.local.worker || to >= self.inboxes.len() {
            return;
        }
        let going: Vec<Token> = (self.table.entries())
            .filter(|(_, e)| e.slot.since_us() >= since_us && may_go(e))
            .map(|(token, _)| token)
            .take(most)
            .collect();
        for token in going {
            self.send_off(token, to);
        }
    }

    fn send_off(&mut self, token: Token, to: usize) {
        let Some(mut conn) = self.take_idle(token) else {
            return;
        };
        let Some(session) = conn.session.take() else {
            return self.park(token, conn);
        };
        conn.transport.deregister(&self.local.poll);
        self.table.remove(token);
        counters_add(&self.local.counters.moved, 1);
        let Conn {
            link,
            transport,
            peer,
            capabilities,
            deadline,
            in_reserve,
            ..
        } = *conn;
        self.inboxes[to].push(Message::Moved(Box::new(MovedConnection {
            slot: link.slot.clone(),
            limits: link.limits.get(),
            transport,
            peer,
            session,
            capabilities,
            deadline,
            in_reserve,
        })));
    }

    /// Takes over a connection from another worker.
    pub(super) fn take_over(&mut self, moved: MovedConnection) {
        let MovedConnection {
            slot,
            limits,
            mut transport,
            peer,
            session,
            capabilities,
            deadline,
            in_reserve,
        } = moved;
        let token = self.table.reserve();
        let slot = Arc::new(slot.moved(token, self.inbox.clone()));
        // If input arrived meanwhile, the registration reports an edge.
        let watched = transport.register(&self.local.poll, token.to_mio());
        let conn = Box::new(Conn {
            link: Rc::new(Link {
                waker: Waker::from(slot.clone()),
                slot: slot.clone(),
                limits: Cell::new(limits),
            }),
            transport,
            input: Input::default(),
            output: Output::default(),
            peer,
            phase: Phase::Command,
            session: Some(session),
            capabilities,
            sequence: 0,
            answer_sequence: 0,
            deadline,
            in_reserve,
        });
        self.table
            .fill(token, Entry::new(State::Taken, slot.clone()));
        self.shared.registry.replace(&slot);
        if let Err(e) = watched {
            tracing::warn!("cannot watch a connection: {e}");
            return self.hang_up(token, conn);
        }
        self.park(token, conn);
        // Arrived in spite of B3, from a worker that did not read its inbox for a long time.
        if self.stop_by.is_some() {
            self.shared.registry.kill(slot.id, KillKind::Connection);
        }
    }
}
