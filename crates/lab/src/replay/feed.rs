//! Hands the statements of a file to connections, reading ahead a bounded stretch of a large one.
//!
//! # Picture
//! ```text
//! small file:  the kept chunk, round after round ─────────────┐
//! large file:  reader thread ── channel of AHEAD chunks ──────┼─▶ Feed ── whoever asks
//!               (by time: a heap of WINDOW bytes between)     ┘      └── lanes, one a connection, LANES bytes in all
//! ```
//!
//! # Invariants
//! - F1: memory is bounded by the constants here, whatever the length of the file. A connection whose lane's statements lie further ahead waits
//!   until the others have come as far.
//!
//! # Failure
//! An error of the reader ends the play; [`Feed::error`] has it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rustc_hash::FxHashMap;

use super::chunk::Chunk;
use super::load::Workload;
use crate::LabError;

/// Bytes of a chunk of the reader.
const CHUNK: usize = 256 << 10;
/// Chunks that the reader is ahead.
const AHEAD: usize = 16;
/// Bytes of statements that wait in lanes.
const LANES: usize = 16 << 20;
/// Bytes of statements among which the reader finds the earliest.
const WINDOW: usize = 16 << 20;
/// Recorded connections that get a lane in order of appearance; further ones by their number.
const KNOWN: usize = 1 << 16;

/// A statement for a connection.
#[derive(Clone, Debug)]
pub struct Ticket {
    pub chunk: Arc<Chunk>,
    pub at: usize,
    /// How often the file was played before.
    pub round: u64,
}

/// What a connection gets that asks for a statement.
#[derive(Debug)]
pub enum Took {
    Statement(Ticket),
    /// None is there yet.
    Later,
    End,
}

/// See the module.
pub struct Feed {
    state: Mutex<State>,
    reader: Option<JoinHandle<()>>,
}

enum Input {
    Kept {
        chunk: Arc<Chunk>,
        /// None: without end.
        rounds: Option<u64>,
        next: u64,
    },
    Reader(Receiver<Result<Part, LabError>>),
    Ended,
}

/// A stretch of one round.
struct Part {
    chunk: Chunk,
    round: u64,
}

struct State {
    from: Input,
    error: Option<LabError>,
    /// The chunk that is given out, where there are no lanes.
    current: Option<Ticket>,
    lanes: Vec<VecDeque<Ticket>>,
    known: FxHashMap<u64, usize>,
    /// Bytes in lanes.
    waiting: usize,
}

impl Feed {
    /// `rounds`: how often the file is played; None: until the driver ends. `lanes`: connections among which recorded ones are
    /// shared out; 0: each statement goes to whoever asks.
    pub fn new(work: &Arc<Workload>, rounds: Option<u64>, by_time: bool, lanes: usize) -> Feed {
        let (from, reader) = match &work.kept {
            Some(chunk) => {
                let chunk = chunk.clone();
                let next = 0;
                (
                    Input::Kept {
                        chunk,
                        rounds,
                        next,
                    },
                    None,
                )
            }
            None => {
                let (sender, receiver) = sync_channel(AHEAD);
                let work = work.clone();
                let read = move || {
                    if let Err(e) = read(&work, rounds, by_time, &sender) {
                        let _ = sender.send(Err(e));
                    }
                };
                (Input::Reader(receiver), Some(std::thread::spawn(read)))
            }
        };
        Feed {
            state: Mutex::new(State {
                from,
                error: None,
                current: None,
                lanes: (0..lanes).map(|_| VecDeque::new()).collect(),
                known: FxHashMap::default(),
                waiting: 0,
            }),
            reader,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next statement for connection `number`.
    pub fn take(&self, number: usize) -> Took {
        let mut state = self.lock();
        match state.lanes.is_empty() {
            true => state.any(),
            false => state.lane(number),
        }
    }

    /// What ended the reading, if not the file's end.
    pub fn error(&self) -> Option<LabError> {
        self.lock().error.take()
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        // Without its receiver the reader ends at the next chunk.
        self.lock().from = Input::Ended;
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

impl State {
    fn any(&mut self) -> Took {
        loop {
            if let Some(current) = &mut self.current
                && current.at < current.chunk.items.len()
            {
                let ticket = current.clone();
                current.at += 1;
                return Took::Statement(ticket);
            }
            self.current = match self.chunk() {
                Took::Statement(ticket) => Some(ticket),
                nothing => return nothing,
            };
        }
    }

    fn lane(&mut self, number: usize) -> Took {
        let count = self.lanes.len();
        loop {
            if let Some(ticket) = self.lanes[number % count].pop_front() {
                self.waiting -= weight(&ticket);
                return Took::Statement(ticket);
            }
            if self.waiting > LANES {
                return Took::Later;
            }
            let whole = match self.chunk() {
                Took::Statement(ticket) => ticket,
                nothing => return nothing,
            };
            let streamed = !matches!(self.from, Input::Kept { .. });
            for at in 0..whole.chunk.items.len() {
                let lane = self.lane_of(whole.chunk.items[at].connection);
                let mut ticket = Ticket {
                    at,
                    ..whole.clone()
                };
                if streamed {
                    // One statement that waits must not hold its whole chunk (F1).
                    let mut single = Chunk::default();
                    single.copy(&whole.chunk, at);
                    (ticket.chunk, ticket.at) = (Arc::new(single), 0);
                }
                self.waiting += weight(&ticket);
                self.lanes[lane].push_back(ticket);
            }
        }
    }

    fn lane_of(&mut self, connection: u64) -> usize {
        let (count, next) = (self.lanes.len(), self.known.len());
        if next >= KNOWN && !self.known.contains_key(&connection) {
            return (connection % count as u64) as usize;
        }
        *self.known.entry(connection).or_insert(next) % count
    }

    /// The next chunk, as a ticket for its first statement.
    fn chunk(&mut self) -> Took {
        let (chunk, round) = match &mut self.from {
            Input::Ended => return Took::End,
            Input::Kept {
                chunk,
                rounds,
                next,
            } => {
                let round = *next;
                if rounds.is_some_and(|rounds| round >= rounds) {
                    return Took::End;
                }
                *next += 1;
                (chunk.clone(), round)
            }
            Input::Reader(receiver) => match receiver.try_recv() {
                Ok(Ok(part)) => (Arc::new(part.chunk), part.round),
                Err(TryRecvError::Empty) => return Took::Later,
                Ok(Err(e)) => {
                    self.error = Some(e);
                    self.from = Input::Ended;
                    return Took::End;
                }
                Err(TryRecvError::Disconnected) => {
                    self.from = Input::Ended;
                    return Took::End;
                }
            },
        };
        Took::Statement(Ticket {
            chunk,
            at: 0,
            round,
        })
    }
}

fn weight(ticket: &Ticket) -> usize {
    ticket.chunk.text(ticket.at).len() + 256
}

/// Reads the file `rounds` times, or until nobody listens.
fn read(
    work: &Workload,
    rounds: Option<u64>,
    by_time: bool,
    to: &SyncSender<Result<Part, LabError>>,
) -> Result<(), LabError> {
    let mut round = 0;
    while rounds.is_none_or(|rounds| round < rounds) {
        let mut again = work.again()?;
        let mut sorter = Sorter::default();
        loop {
            let mut chunk = Chunk::default();
            let mut more = true;
            while more && chunk.size() < CHUNK {
                more = match by_time {
                    true => sorter.next(&mut again, &mut chunk)?,
                    false => again.next(&mut chunk)?,
                };
            }
            if !chunk.items.is_empty() && to.send(Ok(Part { chunk, round })).is_err() {
                return Ok(());
            }
            if !more {
                break;
            }
        }
        round += 1;
    }
    Ok(())
}

/// Puts statements into the order in which they began, as far as [`WINDOW`] reaches.
#[derive(Default)]
struct Sorter {
    /// By time, then number.
    heap: BinaryHeap<Reverse<(i64, u64, Single)>>,
    bytes: usize,
    ended: bool,
}

impl Sorter {
    /// Appends the earliest. False: there are no more.
    fn next(
        &mut self,
        again: &mut super::load::Again<'_>,
        to: &mut Chunk,
    ) -> Result<bool, LabError> {
        while !self.ended && self.bytes < WINDOW {
            let mut single = Chunk::default();
            if !again.next(&mut single)? {
                self.ended = true;
                break;
            }
            self.bytes += single.size() + 256;
            let item = single.items[0];
            let single = Single(Box::new(single));
            self.heap.push(Reverse((item.time_us, item.number, single)));
        }
        let Some(Reverse((_, _, single))) = self.heap.pop() else {
            return Ok(false);
        };
        self.bytes -= single.0.size() + 256;
        to.copy(&single.0, 0);
        Ok(true)
    }
}

/// A chunk of one statement; all are equal to the heap, which orders by what stands before.
struct Single(Box<Chunk>);

impl PartialEq for Single {
    fn eq(&self, _: &Single) -> bool {
        true
    }
}

impl Eq for Single {}

impl PartialOrd for Single {
    fn partial_cmp(&self, other: &Single) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Single {
    fn cmp(&self, _: &Single) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

#[cfg(test)]
mod tests;
