//! Receives the commands of several connections by one system call (`nfold_ring`). Their answers
//! are sent by another one (the outbox).

use nfold_ring::{MOST, Op};
use smallvec::SmallVec;

use super::Worker;
use crate::net::conn::{Conn, Phase};
use crate::net::fiber::add;
use crate::net::worker::Token;
use crate::net::worker::table::{Entry, State};

/// Whether the socket can be received from at any time: the connection is between two commands, and
/// has nothing else to do.
fn receives(entry: &Entry) -> bool {
    let State::Idle(conn) = &entry.state else {
        return false;
    };
    matches!(conn.phase, Phase::Command)
        && conn.input.is_empty()
        && conn.output.is_empty()
        && conn.transport.plain_fd().is_some()
        && !(entry.waits_for_turn || entry.peer_closed)
        && entry.slot.killed().is_none()
}

impl Worker {
    /// Tells the outbox whether further commands will run before the loop checks the sockets again,
    /// so that answers may wait.
    pub(super) fn more_follow(&self, more: bool) {
        self.local.outbox.borrow_mut().set_more_follow(more);
    }

    /// Handles events like the loop over single events, but receives the input of all connections
    /// together.
    pub(super) fn socket_events_together(&mut self, events: &mio::Events) {
        let mut events = events.iter();
        let mut chunk: SmallVec<[&mio::event::Event; MOST]> = events.by_ref().take(MOST).collect();
        while !chunk.is_empty() {
            let received = self.receive_together(&chunk);
            let next = events.by_ref().take(MOST).collect::<SmallVec<_>>();
            for (i, event) in chunk.iter().enumerate() {
                for (ahead, stage) in [(2, 2), (1, 3)] {
                    if let Some(event) = chunk.get(i + ahead) {
                        let token = Token::from_mio(event.token());
                        self.table.prefetch(token, stage);
                    }
                }
                self.more_follow(i + 1 < chunk.len() || !next.is_empty());
                match received[i] {
                    true => self.turn(Token::from_mio(event.token())),
                    false if event.token() == Token::INBOX => {}
                    false => self.socket_event(event),
                }
                self.run_woken(i + 1 < chunk.len() || !next.is_empty());
            }
            chunk = next;
        }
        self.more_follow(false);
    }

    /// Receives from those connections that have nothing else to do. Returns which of the events
    /// these are.
    fn receive_together(&mut self, events: &[&mio::event::Event]) -> SmallVec<[bool; MOST]> {
        self.local.just_ended.set(None);
        let mut group = std::mem::take(&mut self.together);
        let mut received = SmallVec::new();
        for (i, event) in events.iter().enumerate() {
            for (ahead, stage) in [(2, 0), (1, 1)] {
                if let Some(event) = events.get(i + ahead) {
                    let token = Token::from_mio(event.token());
                    self.table.prefetch(token, stage);
                }
            }
            let token = Token::from_mio(event.token());
            let is_command = event.is_readable() && !event.is_read_closed() && !event.is_error();
            let conn = is_command.then(|| self.take_receiver(token)).flatten();
            received.push(conn.is_some());
            group.extend(conn.map(|conn| (token, conn)));
        }
        let local = self.local.clone();
        let mut outbox = local.outbox.borrow_mut();
        let Some((ring, results)) = outbox.ring() else {
            debug_assert!(false, "there is a group where there is a ring");
            return received;
        };
        let receives = group.iter_mut().map(|(_, conn)| {
            let Conn {
                transport, input, ..
            } = &mut **conn;
            let fd = transport.plain_fd().unwrap_or(-1);
            Op::Receive(fd, input.space(&local, 0))
        });
        ring.run(receives, results);
        for ((token, mut conn), result) in group.drain(..).zip(results) {
            let n = usize::try_from(*result).unwrap_or(0);
            let drained = n < conn.input.space(&local, 0).len();
            conn.input.received(n);
            add(&local.counters.bytes_received, n as u64);
            conn.input.release(&local);
            if let Some(entry) = self.table.get(token) {
                // The end of the stream and errors are reported again by the next read.
                entry.readable = match *result {
                    n if n == -libc::EAGAIN => false,
                    ..=0 => true,
                    _ => !drained,
                };
                entry.state = State::Idle(conn);
            }
        }
        self.together = group;
        received
    }

    /// Takes an idle connection that can be received from.
    fn take_receiver(&mut self, token: Token) -> Option<Box<Conn>> {
        let entry = self.table.get(token).filter(|entry| receives(entry))?;
        let round = entry.put_out;
        if self.local.outbox.borrow().holds(round) {
            return None;
        }
        match std::mem::replace(&mut entry.state, State::Taken) {
            State::Idle(conn) => Some(conn),
            other => {
                entry.state = other;
                None
            }
        }
    }
}
