//! Sends the answers of several connections by one system call.
//!
//! # Picture
//! ```text
//! fiber ends ─ short answer, and other commands have arrived ─▶ waiting ─▶ sent: before the loop looks at the sockets again, when they are
//!      └────── otherwise: sent by the fiber                      many, or old; what a socket does not take goes back to its connection
//! ```
//! # Invariants
//! - O1: while an answer waits, its connection is idle and its socket open. Code that takes the
//!   connection first sends the waiting answers (`Worker::take_idle`).
//!
//! # Cost
//! No allocation when warm. The kernel does the same work for each answer, but is entered once for
//! all of them.

use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use nfold_ring::{MOST, Op, Ring};

use super::buffer::Output;
use super::slot::Token;
use super::transport::Transport;

/// The maximum size of an answer that waits for others. For a longer one, entering the kernel is a
/// small part of the cost, and long answers would evict one another from the cache.
const ANSWER_BYTES: usize = 16 << 10;
/// The number of waiting answers, and their total size, at which they are sent.
const FULL: usize = 32;
const FULL_BYTES: usize = 64 << 10;
/// How long an answer waits for others while statements run.
const PATIENCE: Duration = Duration::from_micros(100);

/// An answer, or the rest of one.
pub(crate) struct Answer {
    pub token: Token,
    fd: RawFd,
    pub bytes: Vec<u8>,
    pub sent: usize,
}

/// The waiting answers of one worker.
pub(crate) struct Outbox {
    /// `None`: each answer is sent by itself.
    ring: Option<Ring>,
    /// Whether another command has arrived and will run before the loop checks the sockets again.
    more_follow: bool,
    waiting: Vec<Answer>,
    bytes: usize,
    /// When the first of them was added.
    since: Instant,
    /// The parts that sockets did not accept.
    left: Vec<Answer>,
    results: Vec<i32>,
    /// How many times it was emptied, plus 1.
    round: u64,
}

impl Outbox {
    pub fn new() -> Outbox {
        Outbox {
            ring: None,
            more_follow: false,
            waiting: Vec::new(),
            bytes: 0,
            since: Instant::now(),
            left: Vec::new(),
            results: Vec::with_capacity(MOST),
            round: 1,
        }
    }

    /// Opens the ring, on the thread that will use it. Without io_uring in the kernel no answer
    /// waits here.
    pub fn open(&mut self) {
        self.ring = Ring::new();
    }

    /// The ring for receiving from many sockets, and the buffer for its results: one for each
    /// operation.
    pub fn ring(&mut self) -> Option<(&mut Ring, &mut Vec<i32>)> {
        Some((self.ring.as_mut()?, &mut self.results))
    }

    pub fn is_open(&self) -> bool {
        self.ring.is_some()
    }

    pub fn set_more_follow(&mut self, more: bool) {
        self.more_follow = more;
    }

    /// Whether a complete answer should be passed to [`Self::put`].
    pub fn takes(&self, output: &Output, transport: &Transport) -> bool {
        (self.more_follow || !self.waiting.is_empty())
            && self.ring.is_some()
            && (1..=ANSWER_BYTES).contains(&output.pending().len())
            && output.lost.is_none()
            && transport.plain_fd().is_some()
    }

    /// Takes the answer of a connection. Returns the round, for [`Self::holds`].
    pub fn put(
        &mut self,
        token: Token,
        (output, transport): (&mut Output, &Transport),
        now: Instant,
    ) -> Option<u64> {
        let fd = transport.plain_fd()?;
        if !self.takes(output, transport) {
            return None;
        }
        if self.waiting.is_empty() {
            self.since = now;
        }
        let sent = std::mem::take(&mut output.sent);
        let bytes = std::mem::take(&mut output.bytes);
        self.bytes += bytes.len();
        self.waiting.push(Answer {
            token,
            fd,
            bytes,
            sent,
        });
        Some(self.round)
    }

    /// The number of waiting answers.
    pub fn waits_for(&self) -> usize {
        self.waiting.len()
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.left.is_empty()
    }

    /// Whether an answer that was taken in this round may still be waiting.
    pub fn holds(&self, round: u64) -> bool {
        round == self.round && !self.is_empty()
    }

    /// Whether it is time to send.
    pub fn is_due(&self, now: Instant) -> bool {
        !self.waiting.is_empty()
            && (self.waiting.len() >= FULL
                || self.bytes >= FULL_BYTES
                || now.saturating_duration_since(self.since) >= PATIENCE)
    }

    /// Sends the waiting answers. `done` receives the buffers of those that were sent completely.
    /// Returns the number of bytes sent.
    pub fn send(&mut self, mut done: impl FnMut(Vec<u8>)) -> u64 {
        let mut sum = 0;
        while !self.waiting.is_empty() {
            let Some(ring) = &mut self.ring else {
                break;
            };
            let sends = self.waiting.iter();
            let sends = sends.map(|a| Op::Send(a.fd, &a.bytes[a.sent..]));
            ring.run(sends, &mut self.results);
            let results = self.results.iter();
            for (mut answer, sent) in self.waiting.drain(..self.results.len()).zip(results) {
                // An error is ignored here: sending the rest of the answer fails again.
                let sent = usize::try_from(*sent).unwrap_or(0);
                sum += sent as u64;
                answer.sent += sent;
                match answer.sent == answer.bytes.len() {
                    true => done(answer.bytes),
                    false => self.left.push(answer),
                }
            }
        }
        self.bytes = 0;
        sum
    }

    /// Ends a round, so that no answer waits any more. Returns the parts that sockets did not
    /// accept; their connections send them.
    pub fn end_round(&mut self) -> Vec<Answer> {
        self.round += 1;
        std::mem::take(&mut self.left)
    }
}
