//! Distributes the statements of a file to connections, and reads ahead a bounded part of a large
//! file.
//!
//! # Picture
//! ```text
//! small file:  the chunk in memory, round after round ────────┐
//! large file:  reader thread ── channel of AHEAD chunks ──────┼─▶ Feed ── any connection
//!               (by time: a heap of WINDOW bytes between)     ┘      └── lanes, one per connection
//! ```
//!
//! # Invariants
//! - F1: memory is bounded by the constants here, for files of any length. If the next statement of
//!   a connection's lane is too far ahead, the connection waits until the others have come that
//!   far.
//!
//! # Failure
//! An error of the reader ends the replay; [`Feed::error`] returns it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rustc_hash::FxHashMap;

use super::chunk::Chunk;
use super::load::Workload;
use crate::LabError;

/// The bytes of a chunk of the reader.
const CHUNK: usize = 256 << 10;
/// The number of chunks that the reader is ahead.
const AHEAD: usize = 16;
/// The most bytes of statements that wait in lanes.
const LANES: usize = 16 << 20;
/// The bytes of statements among which the reader finds the earliest.
const WINDOW: usize = 16 << 20;
/// The number of recorded connections that get a lane in order of appearance. Further ones get a
/// lane by their id.
const MAX_NUMBERED_CONNECTIONS: usize = 1 << 16;

/// A statement for a connection.
#[derive(Clone, Debug)]
pub struct Ticket {
    pub chunk: Arc<Chunk>,
    pub at: usize,
    /// How often the file was executed before.
    pub round: u64,
}

/// The result of a connection's request for a statement.
#[derive(Debug)]
pub enum NextStatement {
    Statement(Ticket),
    /// No statement is available yet.
    Later,
    End,
}

/// Distributes statements. See the module header.
pub struct Feed {
    state: Mutex<State>,
    reader: Option<JoinHandle<()>>,
}

enum Input {
    InMemory {
        chunk: Arc<Chunk>,
        /// `None`: endless.
        rounds: Option<u64>,
        next: u64,
    },
    Reader(Receiver<Result<Part, LabError>>),
    Ended,
}

/// A section of one round.
struct Part {
    chunk: Chunk,
    round: u64,
}

struct State {
    from: Input,
    error: Option<LabError>,
    /// The chunk that is being distributed, if there are no lanes.
    current: Option<Ticket>,
    lanes: Vec<VecDeque<Ticket>>,
    known: FxHashMap<u64, usize>,
    /// The bytes in lanes.
    waiting: usize,
}

impl Feed {
    /// `rounds`: how often to execute the file; `None`: until the driver ends. `lanes`: the number
    /// of connections among which recorded connections are distributed; 0: each statement goes to
    /// any connection.
    pub fn new(work: &Arc<Workload>, rounds: Option<u64>, by_time: bool, lanes: usize) -> Feed {
        let (from, reader) = match &work.kept {
            Some(chunk) => {
                let chunk = chunk.clone();
                let next = 0;
                (
                    Input::InMemory {
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
    pub fn take(&self, number: usize) -> NextStatement {
        let mut state = self.lock();
        match state.lanes.is_empty() {
            true => state.any(),
            false => state.lane(number),
        }
    }

    /// The error that ended reading, if any.
    pub fn error(&self) -> Option<LabError> {
        self.lock().error.take()
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        // Without a receiver, the reader ends at its next chunk.
        self.lock().from = Input::Ended;
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

impl State {
    fn any(&mut self) -> NextStatement {
        loop {
            if let Some(current) = &mut self.current
                && current.at < current.chunk.items.len()
            {
                let ticket = current.clone();
                current.at += 1;
                return NextStatement::Statement(ticket);
            }
            self.current = match self.chunk() {
                NextStatement::Statement(ticket) => Some(ticket),
                nothing => return nothing,
            };
        }
    }

    fn lane(&mut self, number: usize) -> NextStatement {
        let count = self.lanes.len();
        loop {
            if let Some(ticket) = self.lanes[number % count].pop_front() {
                self.waiting -= weight(&ticket);
                return NextStatement::Statement(ticket);
            }
            if self.waiting > LANES {
                return NextStatement::Later;
            }
            let whole = match self.chunk() {
                NextStatement::Statement(ticket) => ticket,
                nothing => return nothing,
            };
            let streamed = !matches!(self.from, Input::InMemory { .. });
            for at in 0..whole.chunk.items.len() {
                let lane = self.lane_of(whole.chunk.items[at].connection);
                let mut ticket = Ticket {
                    at,
                    ..whole.clone()
                };
                if streamed {
                    // A single waiting statement must not keep its whole chunk in memory (F1).
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
        if next >= MAX_NUMBERED_CONNECTIONS && !self.known.contains_key(&connection) {
            return (connection % count as u64) as usize;
        }
        *self.known.entry(connection).or_insert(next) % count
    }

    /// The next chunk, as a ticket for its first statement.
    fn chunk(&mut self) -> NextStatement {
        let (chunk, round) = match &mut self.from {
            Input::Ended => return NextStatement::End,
            Input::InMemory {
                chunk,
                rounds,
                next,
            } => {
                let round = *next;
                if rounds.is_some_and(|rounds| round >= rounds) {
                    return NextStatement::End;
                }
                *next += 1;
                (chunk.clone(), round)
            }
            Input::Reader(receiver) => match receiver.try_recv() {
                Ok(Ok(part)) => (Arc::new(part.chunk), part.round),
                Err(TryRecvError::Empty) => return NextStatement::Later,
                Ok(Err(e)) => {
                    self.error = Some(e);
                    self.from = Input::Ended;
                    return NextStatement::End;
                }
                Err(TryRecvError::Disconnected) => {
                    self.from = Input::Ended;
                    return NextStatement::End;
                }
            },
        };
        NextStatement::Statement(Ticket {
            chunk,
            at: 0,
            round,
        })
    }
}

fn weight(ticket: &Ticket) -> usize {
    ticket.chunk.text(ticket.at).len() + 256
}

/// Reads the file `rounds` times, or until the receiver is gone.
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

/// Sorts statements by their start time, within a window of [`WINDOW`] bytes.
#[derive(Default)]
struct Sorter {
    /// Ordered by time and then by index.
    heap: BinaryHeap<Reverse<(i64, u64, Single)>>,
    bytes: usize,
    ended: bool,
}

impl Sorter {
    /// Appends the earliest statement. Returns false if there are no more.
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

/// A chunk of one statement. All compare as equal, because the heap is ordered by the fields before
/// it.
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
