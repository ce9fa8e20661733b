//! The source of each connection of a replay: sends statements and records the answers.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::answers::{Answered, Answers};
use super::feed::{Feed, NextStatement, Ticket};
use super::load::Workload;
use crate::client::drive::{Next, Source};
use crate::client::{Answer, Command};

/// How long a connection waits until the file has been read further.
const LATER: Duration = Duration::from_millis(1);

/// The state shared by all connections of a replay.
pub struct Play {
    pub work: Arc<Workload>,
    pub feed: Feed,
    /// The speed relative to the recorded one. `None`: as fast as possible.
    pub speed: Option<f64>,
    pub ordered: bool,
    pub began: OnceLock<Instant>,
    /// Whether answers are hashed.
    pub hashed: bool,
    /// The last answer to each statement, if answers are compared.
    pub answers: Option<Answers>,
    pub tally: Mutex<Tally>,
    /// Whether there are several databases, so that connections change theirs.
    pub switch: bool,
}

impl Play {
    /// Replays `work` endlessly, as fast as possible and as text. `switch`: connections change
    /// their database as in the file.
    pub fn endless(work: &Arc<Workload>, switch: bool) -> Play {
        Play {
            work: work.clone(),
            feed: Feed::new(work, None, false, 0),
            speed: None,
            ordered: false,
            began: OnceLock::new(),
            hashed: false,
            answers: None,
            tally: Mutex::new(Tally::default()),
            switch,
        }
    }
}

/// The sums over all connections.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// The sum of a hash of (statement, its answer) over all statements; 0 if answers are not
    /// hashed.
    pub checksum: u64,
    /// The delay behind the recorded pace in seconds: sum, maximum, and number of statements.
    pub lag_sum: f64,
    pub lag_max: f64,
    pub lagged: u64,
    /// The number of changes of the current database.
    pub switches: u64,
    /// How often a connection had to wait for the file, and for how many seconds in total.
    pub starved: u64,
    pub starved_s: f64,
}

/// One connection.
pub struct Player {
    play: Arc<Play>,
    number: usize,
    /// A statement that was taken, but is not due yet or waits for a change of the database.
    pending: Option<Ticket>,
    current: Option<Ticket>,
    db: Option<u16>,
    switching: bool,
    /// Whether the current statement must be sent again after the change of its database.
    requeued: bool,
    /// Whether the delay of the pending statement has been counted.
    paced: bool,
    tally: Tally,
}

impl Player {
    pub fn new(play: Arc<Play>, number: usize) -> Player {
        Player {
            play,
            number,
            pending: None,
            current: None,
            db: None,
            switching: false,
            requeued: false,
            paced: false,
            tally: Tally::default(),
        }
    }

    /// The time at which a statement is due at the recorded pace.
    fn due(&self, ticket: &Ticket, speed: f64) -> Instant {
        let (first, last) = self.play.work.times_us.unwrap_or((0, 0));
        let us =
            ticket.chunk.items[ticket.at].time_us - first + ticket.round as i64 * (last - first);
        let began = *self.play.began.get_or_init(Instant::now);
        began + Duration::from_secs_f64((us.max(0) as f64 / 1e6 / speed).min(1e9))
    }

    /// When to try again, if the statement is not due yet.
    fn early(&mut self, ticket: &Ticket) -> Option<Instant> {
        let speed = self.play.speed.filter(|_| !self.paced)?;
        let (due, now) = (self.due(ticket, speed), Instant::now());
        if due > now {
            return Some(due);
        }
        let lag = (now - due).as_secs_f64();
        self.tally.lag_sum += lag;
        self.tally.lag_max = self.tally.lag_max.max(lag);
        self.tally.lagged += 1;
        self.paced = true;
        None
    }
}

impl Source for Player {
    fn next(&mut self, command: &mut Command) -> Next {
        let ticket = match self.pending.take() {
            Some(ticket) => ticket,
            None => match self.play.feed.take(self.number) {
                NextStatement::Statement(ticket) => {
                    self.paced = false;
                    ticket
                }
                NextStatement::Later => {
                    self.tally.starved += 1;
                    self.tally.starved_s += LATER.as_secs_f64();
                    return Next::Wait(Instant::now() + LATER);
                }
                NextStatement::End => return Next::End,
            },
        };
        if let Some(due) = self.early(&ticket) {
            self.pending = Some(ticket);
            return Next::Wait(due);
        }
        let item = &ticket.chunk.items[ticket.at];
        if self.play.switch && item.db.is_some() && item.db != self.db {
            let name = item
                .db
                .and_then(|db| self.play.work.dbs.get(usize::from(db)))
                .map_or("", String::as_str);
            let text = command.text();
            text.extend_from_slice(b"USE `");
            text.extend(name.replace('`', "``").bytes());
            text.push(b'`');
            // If this fails, the statement is sent nevertheless and fails by itself.
            (self.switching, self.db) = (true, item.db);
            self.pending = Some(ticket);
            self.tally.switches += 1;
            return Next::Send;
        }
        match item.execution {
            Some(execution) => ticket
                .chunk
                .store
                .push_values(execution, command.execute(execution.template)),
            None => command
                .text()
                .extend_from_slice(ticket.chunk.text(ticket.at)),
        }
        self.current = Some(ticket);
        Next::Send
    }

    fn template(&self, id: u32) -> &str {
        self.play.work.templates.text(id)
    }

    fn answered(&mut self, answer: &Answer) {
        if std::mem::take(&mut self.switching) {
            return;
        }
        self.requeued = false;
        let Some(ticket) = self.current.as_ref().filter(|_| self.play.hashed) else {
            return;
        };
        let number = ticket.chunk.items[ticket.at].number;
        let rows = match self.play.ordered {
            true => answer.ordered_checksum,
            false => answer.checksum,
        };
        let all = |what: u64, rows: u64| {
            crate::client::hash(&[number, what, rows].map(u64::to_le_bytes).concat())
        };
        let answered = match &answer.error {
            None => Answered::rows(all(answer.rows, rows), answer.rows),
            Some(e) => Answered::error(all(1 << 63 | u64::from(e.code), 0), e.code),
        };
        self.tally.checksum = self.tally.checksum.wrapping_add(answered.hash());
        if let Some(answers) = &self.play.answers {
            answers.set(number, answered);
        }
    }

    /// A statement that writes may have taken effect, so it is not sent twice.
    fn reconnected(&mut self) -> bool {
        self.db = None;
        let writes = |t: &Ticket| t.chunk.items[t.at].writes;
        if std::mem::take(&mut self.switching) || self.current.as_ref().is_some_and(writes) {
            return false;
        }
        if self.play.switch {
            // The database must be changed first.
            if !std::mem::replace(&mut self.requeued, true) {
                self.pending = self.current.clone();
            }
            return false;
        }
        true
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        let mut all = self
            .play
            .tally
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        all.checksum = all.checksum.wrapping_add(self.tally.checksum);
        all.lag_sum += self.tally.lag_sum;
        all.lag_max = all.lag_max.max(self.tally.lag_max);
        all.lagged += self.tally.lagged;
        all.switches += self.tally.switches;
        all.starved += self.tally.starved;
        all.starved_s += self.tally.starved_s;
    }
}
