//! The connections of one worker, by token.
//!
//! # Invariants
//! - I1: an entry is `Idle` or `Running`; it is `Taken` only during one call of the event loop.
//! - I2: the generation of a token differs from that of all earlier connections at the same index,
//!   so that late wakes and timers find nothing.

use std::sync::Arc;
use std::time::Instant;

use corosensei::Coroutine;
use corosensei::stack::DefaultStack;
use nfold_sync::words::{prefetch_line_outer, prefetch_value};

use super::Token;
use crate::net::conn::{After, Conn};
use crate::net::fiber::Suspend;
use crate::net::fiber::slot::ConnSlot;

pub(crate) type Finished = (Box<Conn>, After);
pub(crate) type Fiber = Coroutine<(), Suspend, Finished, DefaultStack>;

pub(super) enum State {
    Idle(Box<Conn>),
    Running { fiber: Fiber, waits: Suspend },
    Taken,
}

pub(super) struct Entry {
    pub state: State,
    pub slot: Arc<ConnSlot>,
    /// The earliest timer in the heap.
    pub armed: Option<Instant>,
    /// Whether the socket may have data that was not received yet.
    pub readable: bool,
    /// The client has closed its sending side.
    pub peer_closed: bool,
    /// Whether the connection is broken.
    pub peer_reset: bool,
    /// Whether it is in the run queue.
    pub queued: bool,
    /// Whether it is in the admission queue.
    pub waits_for_turn: bool,
    /// The round in which the outbox took its last answer; 0: none.
    pub put_out: u64,
}

impl Entry {
    pub fn new(state: State, slot: Arc<ConnSlot>) -> Self {
        Entry {
            state,
            slot,
            armed: None,
            readable: false,
            peer_closed: false,
            peer_reset: false,
            queued: false,
            waits_for_turn: false,
            put_out: 0,
        }
    }

    /// When the connection must be checked.
    pub fn deadline(&self) -> Option<Instant> {
        match &self.state {
            State::Idle(conn) => conn.deadline,
            State::Running { waits, .. } => match waits {
                Suspend::Wait(until) => *until,
                Suspend::Writable(until) | Suspend::Readable(until) => Some(*until),
                Suspend::Yield => None,
            },
            State::Taken => None,
        }
    }
}

/// The number of stages of [`Table::prefetch`].
pub(super) const STAGES: usize = 4;

#[derive(Default)]
pub(super) struct Table {
    places: Vec<(u32, Option<Entry>)>,
    free: Vec<u32>,
    count: usize,
}

impl Table {
    /// Reserves a token for the next connection. The caller calls [`Self::fill`] or
    /// [`Self::remove`].
    pub fn reserve(&mut self) -> Token {
        self.count += 1;
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push((0, None));
            self.places.len() as u32 - 1
        });
        Token::new(index, self.places[index as usize].0)
    }

    pub fn fill(&mut self, token: Token, entry: Entry) {
        self.places[token.index()].1 = Some(entry);
    }

    pub fn get(&mut self, token: Token) -> Option<&mut Entry> {
        let (generation, entry) = self.places.get_mut(token.index())?;
        if *generation == token.generation() {
            entry.as_mut()
        } else {
            None
        }
    }

    /// Prefetches the memory of a connection that will have its turn soon. It takes several stages,
    /// because the memory of each stage has the pointers for the next one.
    #[inline]
    pub fn prefetch(&self, token: Token, stage: usize) {
        let Some(place) = self.places.get(token.index()) else {
            return;
        };
        if stage == 0 {
            return prefetch_value(place);
        }
        let Some(Entry {
            state: State::Idle(conn),
            slot,
            ..
        }) = &place.1
        else {
            return;
        };
        match (stage, &conn.session) {
            (1, _) => {
                prefetch_value(&**conn);
                prefetch_line_outer(&**slot);
            }
            (2, Some(session)) => {
                prefetch_value(&*conn.link);
                session.prefetch_own();
            }
            (3, Some(session)) => session.prefetch_rest(),
            _ => {}
        }
    }

    pub fn remove(&mut self, token: Token) -> Option<Entry> {
        let (generation, entry) = self.places.get_mut(token.index())?;
        if *generation != token.generation() {
            return None;
        }
        // The highest generation is never used, so that no token equals the inbox's.
        *generation = (*generation + 1) % u32::MAX;
        self.free.push(token.index() as u32);
        self.count -= 1;
        entry.take()
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn tokens(&self) -> Vec<Token> {
        self.entries().map(|(token, _)| token).collect()
    }

    pub fn entries(&self) -> impl Iterator<Item = (Token, &Entry)> {
        let places = self.places.iter().enumerate();
        places.filter_map(|(i, (g, e))| Some((Token::new(i as u32, *g), e.as_ref()?)))
    }
}
