//! One thread of the driver: an event loop over its connections.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token};
use nfold_ring::{MOST, Op, Ring};

use super::outcome::Outcome;
use super::slot::{ReceiveOutcome, Slot, State};
use super::{Next, Shared, Source, Timeline};
use crate::client::connection::{CONNECT_TIMEOUT, open_stream};
use crate::{LabError, interrupt};

/// The longest time between two checks of the clock.
const IDLE: Duration = Duration::from_millis(50);
/// The longest time to wait for answers in progress at the end of the window.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// The pause between two attempts to reopen a connection.
const RETRY: Duration = Duration::from_millis(200);
const BUFFER: usize = 256 << 10;
/// The buffer size of each of several connections that receive at once. Not a power of two, so that
/// the buffers do not compete for the same cache sets.
const PIECE: usize = (16 << 10) + 64;

/// Opens the connections, waits for the other threads, and runs the event loop.
pub fn run(
    shared: &Shared<'_>,
    number: usize,
    sources: Vec<Box<dyn Source>>,
) -> Result<Outcome, LabError> {
    super::courtesy::give_way();
    let made = Worker::connect(shared, number, sources);
    let task = crate::procfs::own_task();
    if let Some(task) = task
        && let Ok(mut tasks) = shared.tasks.lock()
    {
        tasks.push(task);
    }
    shared.connected.wait();
    shared.started.wait();
    if made.is_err() {
        shared.stop.store(true, Ordering::Relaxed);
    }
    let mut worker = made?;
    if let Some(timeline) = shared.timeline.get() {
        worker.timeline = *timeline;
    }
    worker.drive();
    if let Some(task) = task
        && let Ok(mut ended) = shared.ended.lock()
    {
        ended.push((task, crate::procfs::task_cpu_seconds(task)));
    }
    Ok(worker.outcome)
}

struct Worker<'a> {
    shared: &'a Shared<'a>,
    number: usize,
    poll: Poll,
    slots: Vec<Slot>,
    timers: BinaryHeap<Reverse<(Instant, usize)>>,
    buffer: Vec<u8>,
    /// The connections that have something to send, or to receive.
    outbox: Vec<usize>,
    inbox: Vec<usize>,
    many: Option<BatchedIo>,
    timeline: Timeline,
    outcome: Outcome,
    answered: u64,
    ending: Option<Instant>,
}

/// The buffers for sending or receiving on several connections by one system call.
struct BatchedIo {
    ring: Ring,
    pieces: Vec<u8>,
    results: Vec<i32>,
}

impl BatchedIo {
    /// `None` if the kernel does not support io_uring, or if there is only one connection.
    fn new(together: bool, connections: usize) -> Option<BatchedIo> {
        let wanted = together && connections > 1;
        Some(BatchedIo {
            ring: wanted.then(Ring::new)??,
            pieces: vec![0; PIECE * connections.min(MOST)],
            results: Vec::with_capacity(MOST),
        })
    }
}

impl<'a> Worker<'a> {
    fn connect(
        shared: &'a Shared<'a>,
        number: usize,
        sources: Vec<Box<dyn Source>>,
    ) -> Result<Self, LabError> {
        let poll = Poll::new().map_err(LabError::io("epoll"))?;
        let connections = sources.len();
        let mut slots = Vec::with_capacity(connections);
        for (index, source) in sources.into_iter().enumerate() {
            if shared.stop.load(Ordering::Relaxed) || interrupt::requested() {
                break;
            }
            let (stream, agreed) = open_stream(shared.dsn, CONNECT_TIMEOUT)?;
            let mut socket = stream.into_evented().map_err(LabError::io("epoll"))?;
            socket
                .register(poll.registry(), Token(index))
                .map_err(LabError::io("epoll"))?;
            slots.push(Slot::new(
                socket,
                agreed.capabilities,
                shared.options.hash_rows,
                source,
            ));
        }
        Ok(Worker {
            shared,
            number,
            poll,
            slots,
            timers: BinaryHeap::new(),
            buffer: vec![0; BUFFER],
            outbox: Vec::new(),
            inbox: Vec::new(),
            many: BatchedIo::new(shared.options.together, connections),
            timeline: Timeline {
                begin: Instant::now(),
                end: None,
            },
            outcome: Outcome::default(),
            answered: 0,
            ending: None,
        })
    }

    fn drive(&mut self) {
        let now = Instant::now();
        for index in 0..self.slots.len() {
            self.next(index, now);
        }
        // At most as many events as are received together. Their next commands are sent before
        // others are received, so that servers need not wait for them.
        let mut events = Events::with_capacity(MOST);
        while self.slots.iter().any(|s| s.state != State::Ended) {
            let timeout = self.due(Instant::now());
            self.send();
            if let Err(e) = self.poll.poll(&mut events, Some(timeout))
                && e.kind() != std::io::ErrorKind::Interrupted
            {
                break;
            }
            for event in &events {
                let index = event.token().0;
                if event.is_writable() && self.slots[index].flush().is_err() {
                    self.lose(index);
                } else if event.is_readable() || event.is_read_closed() {
                    self.inbox.push(index);
                }
            }
            self.receive();
            self.shared.progress[self.number]
                .0
                .store(self.answered, Ordering::Relaxed);
            self.drain();
        }
        for slot in &mut self.slots {
            slot.close();
        }
    }

    /// Handles all timers that are due. Returns the time until the next one.
    fn due(&mut self, now: Instant) -> Duration {
        while let Some(Reverse((at, index))) = self.timers.peek().copied() {
            if at > now {
                return (at - now).min(IDLE);
            }
            self.timers.pop();
            match self.slots[index].state {
                State::Waiting => self.next(index, now),
                State::Lost { since } => self.retry(index, since, now),
                _ => {}
            }
        }
        IDLE
    }

    fn over(&self, now: Instant) -> bool {
        self.timeline.end.is_some_and(|end| now >= end) || self.shared.stop.load(Ordering::Relaxed)
    }

    /// After the window, ends each connection when its answer has arrived, or at the latest after
    /// [`DRAIN_TIMEOUT`].
    fn drain(&mut self) {
        let now = Instant::now();
        if !self.over(now) && !interrupt::requested() {
            return;
        }
        let deadline = *self.ending.get_or_insert(now + DRAIN_TIMEOUT);
        for slot in &mut self.slots {
            if now >= deadline || !matches!(slot.state, State::Busy | State::Preparing) {
                slot.close();
            }
        }
    }

    /// Requests the next command from the source and sends it.
    fn next(&mut self, index: usize, now: Instant) {
        if self.over(now) {
            self.slots[index].close();
            return;
        }
        let slot = &mut self.slots[index];
        slot.command.more = false;
        match slot.source.next(&mut slot.command) {
            Next::Send => {
                if !slot.inside_event {
                    slot.event_began = now;
                }
                slot.retried = false;
                slot.encode(now);
                self.outbox.push(index);
            }
            Next::Wait(at) => {
                slot.state = State::Waiting;
                self.timers.push(Reverse((at, index)));
            }
            Next::End => slot.close(),
        }
    }

    /// Sends for the connections in the outbox, for several by one call if possible.
    fn send(&mut self) {
        let mut outbox = std::mem::take(&mut self.outbox);
        if let Some(many) = self.many.take_if(|_| outbox.len() > 1) {
            self.many = Some(self.send_many(&mut outbox, many));
        }
        for index in outbox.drain(..) {
            if self.slots[index].flush().is_err() {
                self.lose(index);
            }
        }
        self.outbox = outbox;
    }

    /// Leaves the connections in the outbox that must be sent to individually.
    fn send_many(&mut self, outbox: &mut Vec<usize>, mut many: BatchedIo) -> BatchedIo {
        let mut plain = outbox.len();
        // Connections with TLS are moved to the end.
        for at in (0..outbox.len()).rev() {
            if self.slots[outbox[at]].plain().is_none() {
                plain -= 1;
                outbox.swap(at, plain);
            }
        }
        for chunk in outbox[..plain].chunks(MOST) {
            let ops = chunk.iter().filter_map(|&index| {
                let slot = &self.slots[index];
                Some(Op::Send(slot.plain()?, slot.unsent()))
            });
            many.ring.run(ops, &mut many.results);
            for (&index, &result) in chunk.iter().zip(&many.results) {
                if self.slots[index].was_sent(result).is_err() {
                    self.lose(index);
                }
            }
        }
        outbox.drain(..plain);
        many
    }

    /// Receives for the connections in the inbox, for several by one call if possible.
    fn receive(&mut self) {
        let mut inbox = std::mem::take(&mut self.inbox);
        if let Some(mut many) = self.many.take_if(|_| inbox.len() > 1) {
            let mut plain = inbox.len();
            for at in (0..inbox.len()).rev() {
                let slot = &self.slots[inbox[at]];
                if slot.plain().is_none() || slot.long {
                    plain -= 1;
                    inbox.swap(at, plain);
                }
            }
            for chunk in inbox[..plain].chunks(MOST) {
                let pieces = many.pieces.chunks_exact_mut(PIECE);
                let ops = chunk.iter().zip(pieces).filter_map(|(&index, piece)| {
                    Some(Op::Receive(self.slots[index].plain()?, piece))
                });
                many.ring.run(ops, &mut many.results);
                for (i, &index) in chunk.iter().enumerate() {
                    let piece = &many.pieces[i * PIECE..][..PIECE];
                    let slot = &mut self.slots[index];
                    let got = slot.was_received(many.results[i], piece, &mut self.buffer);
                    self.got(index, got);
                }
            }
            inbox.drain(..plain);
            self.many = Some(many);
        }
        for index in inbox.drain(..) {
            let got = self.slots[index].receive(&mut self.buffer);
            self.got(index, got);
        }
        self.inbox = inbox;
    }

    fn got(&mut self, index: usize, got: ReceiveOutcome) {
        match got {
            ReceiveOutcome::Nothing => return,
            ReceiveOutcome::Lost => return self.lose(index),
            ReceiveOutcome::Answer => {}
        }
        let now = Instant::now();
        let slot = &mut self.slots[index];
        if slot.state == State::Preparing && slot.prepared(now) {
            self.outbox.push(index);
            return;
        }
        self.complete(index, now);
        self.next(index, now);
    }

    /// Counts a complete answer.
    fn complete(&mut self, index: usize, now: Instant) {
        let slot = &mut self.slots[index];
        let answer = slot.response.answer();
        slot.source.answered(answer);
        slot.long = answer.bytes > PIECE as u64;
        let ends_event = !slot.command.more || answer.error.is_some();
        self.answered += 1;
        let counts = now >= self.timeline.begin && self.timeline.end.is_none_or(|end| now < end);
        if counts {
            let out = &mut self.outcome;
            out.statements += 1;
            out.rows += answer.rows;
            out.bytes += answer.bytes;
            out.checksum = out.checksum.wrapping_add(answer.checksum);
            out.latency
                .saturating_record((now - slot.began).as_nanos() as u64);
            if let Some(error) = &answer.error {
                out.error(error.code, &error.message);
            }
            if ends_event {
                out.events += 1;
                if slot.inside_event {
                    out.event_latency
                        .saturating_record((now - slot.event_began).as_nanos() as u64);
                }
            }
            let second = (now - self.timeline.begin).as_secs() as usize;
            if out.per_second.len() <= second {
                out.per_second.resize(second + 1, 0);
            }
            out.per_second[second] += 1;
        }
        slot.inside_event = !ends_event;
    }

    fn lose(&mut self, index: usize) {
        let now = Instant::now();
        let since_begin = |begin: Instant| match now.checked_duration_since(begin) {
            Some(after) => after.as_secs_f64(),
            None => -(begin - now).as_secs_f64(),
        };
        self.outcome.lost_at.push(since_begin(self.timeline.begin));
        let over = self.over(now);
        let slot = &mut self.slots[index];
        slot.socket = None;
        if over {
            slot.state = State::Ended;
            return;
        }
        slot.state = State::Lost { since: now };
        self.timers
            .push(Reverse((now + Duration::from_millis(1), index)));
    }

    fn retry(&mut self, index: usize, since: Instant, now: Instant) {
        if self.over(now) {
            self.slots[index].close();
            return;
        }
        let opened = open_stream(self.shared.dsn, RETRY.max(Duration::from_secs(1)))
            .ok()
            .and_then(|(stream, agreed)| {
                let mut socket = stream.into_evented().ok()?;
                socket.register(self.poll.registry(), Token(index)).ok()?;
                Some((socket, agreed.capabilities))
            });
        let slot = &mut self.slots[index];
        let Some((socket, capabilities)) = opened else {
            if now - since > self.shared.options.reconnect_timeout {
                self.outcome.dead += 1;
                slot.state = State::Ended;
            } else {
                self.timers.push(Reverse((now + RETRY, index)));
            }
            return;
        };
        slot.replace(socket, capabilities, self.shared.options.hash_rows);
        slot.inside_event = false;
        let again = slot.source.reconnected() && !slot.retried;
        if !again {
            return self.next(index, Instant::now());
        }
        slot.retried = true;
        slot.encode(Instant::now());
        self.outbox.push(index);
    }
}
