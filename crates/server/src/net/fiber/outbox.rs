//! Answers that go out together: what several connections have to send, by one system call.
//!
//! # Picture
//! ```text
//! fiber ends ─ short answer, and other commands have arrived ─▶ waiting ─▶ sent: before the loop looks at the sockets again, when they are
//!      └────── otherwise: sent by the fiber                      many, or old; what a socket does not take goes back to its connection
//! ```
//! # Invariants
//! - O1: while an answer waits, its connection is idle, and its socket open: whoever takes the
//!   connection has what waits sent first (`Worker::take_idle`).
//!
//! # Cost
//! No allocation when warm. The kernel does the same for each answer; the way into it and back is
//! gone once for all.

use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use nfold_ring::{MOST, Op, Ring};

use super::buffer::Output;
use super::slot::Token;
use super::transport::Transport;

/// Longer answers go out alone: what they cost is not the way into the kernel, and they would drive
/// one another out of the cache.
const ANSWER_BYTES: usize = 16 << 10;
/// Answers, and bytes of all of them, that are sent at the latest.
const FULL: usize = 32;
const FULL_BYTES: usize = 64 << 10;
/// How long an answer waits for others while statements run.
const PATIENCE: Duration = Duration::from_micros(100);

/// An answer, or what is left of one.
pub(crate) struct Answer {
    pub token: Token,
    fd: RawFd,
    pub bytes: Vec<u8>,
    pub sent: usize,
}

/// One worker's.
pub(crate) struct Outbox {
    /// None: each is sent by itself.
    ring: Option<Ring>,
    /// Another command has arrived, and will be run before the loop looks at the sockets again.
    more_follow: bool,
    waiting: Vec<Answer>,
    bytes: usize,
    /// When the first of them came.
    since: Instant,
    /// What sockets did not take.
    left: Vec<Answer>,
    results: Vec<i32>,
    /// How often it was emptied, with 1 to begin with.
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

    /// By the thread that will use it. Where the kernel has no io_uring, nothing waits here.
    pub fn open(&mut self) {
        self.ring = Ring::new();
    }

    /// What receives from many sockets, and the results, of which there are as many as operations.
    pub fn ring(&mut self) -> Option<(&mut Ring, &mut Vec<i32>)> {
        Some((self.ring.as_mut()?, &mut self.results))
    }

    pub fn is_open(&self) -> bool {
        self.ring.is_some()
    }

    pub fn set_more_follow(&mut self, more: bool) {
        self.more_follow = more;
    }

    /// Whether an answer that is whole is to be left to [`Self::put`].
    pub fn takes(&self, output: &Output, transport: &Transport) -> bool {
        (self.more_follow || !self.waiting.is_empty())
            && self.ring.is_some()
            && (1..=ANSWER_BYTES).contains(&output.pending().len())
            && output.lost.is_none()
            && transport.plain_fd().is_some()
    }

    /// Takes a connection's answer, if it takes such. Gives the round, for [`Self::holds`].
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

    /// How many wait.
    pub fn waits_for(&self) -> usize {
        self.waiting.len()
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.left.is_empty()
    }

    /// Whether what was taken in this round may still be here.
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

    /// Sends what waits; `done` gets the buffers of what has gone out. Gives the bytes sent.
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
                // An error is met again by whoever sends the rest.
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

    /// A round ends: nothing waits any more. What sockets did not take is for their connections to
    /// send.
    pub fn end_round(&mut self) -> Vec<Answer> {
        self.round += 1;
        std::mem::take(&mut self.left)
    }
}
