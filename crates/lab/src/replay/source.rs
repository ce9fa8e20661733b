//! What each connection of a replay sends, and what came back.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::load::Workload;
use super::prepare::{Execution, Templates};
use crate::client::drive::{Next, Source};
use crate::client::{Answer, Command};

/// How statements are given to connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Each goes to whichever connection is free.
    Any,
    /// Those of one recorded connection stay together, in their order.
    Kept,
}

/// What all connections of a replay share.
pub struct Play {
    pub work: Arc<Workload>,
    /// One for each statement, where they are prepared.
    pub executions: Vec<Option<Execution>>,
    pub templates: Templates,
    /// How often the file is played; None: until the driver ends.
    pub rounds: Option<usize>,
    /// Speed relative to the recorded one; None: as fast as possible.
    pub speed: Option<f64>,
    pub ordered: bool,
    /// Statements by connection, where they are kept together.
    pub queues: Option<Vec<Vec<u32>>>,
    pub cursor: AtomicUsize,
    pub began: OnceLock<Instant>,
    /// For each statement what its last answer was, if that is compared.
    pub answers: Option<Vec<Seen>>,
    pub tally: Mutex<Tally>,
    /// More than one database: connections change theirs.
    pub switch: bool,
}

/// An answer as two numbers: 0, 0 is none.
#[derive(Debug, Default)]
pub struct Seen {
    hash: AtomicU64,
    /// Rows, or `ERROR | number`.
    what: AtomicU64,
}

const ERROR: u64 = 1 << 63;

impl Seen {
    fn set(&self, hash: u64, what: u64) {
        self.what.store(what, Ordering::Relaxed);
        self.hash.store(hash.max(1), Ordering::Relaxed);
    }

    /// None where there was no answer.
    pub fn get(&self) -> Option<(u64, String)> {
        let hash = self.hash.load(Ordering::Relaxed);
        let what = self.what.load(Ordering::Relaxed);
        let what = if what & ERROR != 0 {
            format!("error {}", what & !ERROR)
        } else {
            format!("{what} rows")
        };
        (hash != 0).then_some((hash, what))
    }
}

/// Sums over connections.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Sum over statements of a hash of (statement, its answer): 0 where answers are not hashed.
    pub checksum: u64,
    /// Seconds behind the recorded pace: sum, most, and of how many statements.
    pub lag_sum: f64,
    pub lag_max: f64,
    pub lagged: u64,
    /// Changes of database.
    pub switches: u64,
}

/// One connection.
pub struct Player {
    play: Arc<Play>,
    number: usize,
    /// Position in the queue, where there is one.
    at: usize,
    /// A position that was taken and is not yet due.
    pending: Option<usize>,
    current: Option<usize>,
    db: Option<u16>,
    switching: Option<u16>,
    /// The current statement waits for its database, to be sent once more.
    requeued: bool,
    tally: Tally,
}

impl Player {
    pub fn new(play: Arc<Play>, number: usize) -> Player {
        Player {
            play,
            number,
            at: 0,
            pending: None,
            current: None,
            db: None,
            switching: None,
            requeued: false,
            tally: Tally::default(),
        }
    }

    /// The next position: number of the statement plus rounds before it times their number.
    fn take(&mut self) -> Option<usize> {
        let all = self.play.work.items.len();
        let position = match &self.play.queues {
            None => self.play.cursor.fetch_add(1, Ordering::Relaxed),
            Some(queues) => {
                let queue = queues.get(self.number).filter(|queue| !queue.is_empty())?;
                let position = self.at / queue.len() * all + queue[self.at % queue.len()] as usize;
                self.at += 1;
                position
            }
        };
        self.play
            .rounds
            .is_none_or(|rounds| position / all < rounds)
            .then_some(position)
    }

    /// When it is due by the recorded pace.
    fn due(&self, position: usize, speed: f64) -> Instant {
        let items = &self.play.work.items;
        let time = |n: usize| items[n].time_us.unwrap_or(0);
        let (first, last) = (time(0), time(items.len() - 1));
        let round = (position / items.len()) as i64;
        let us = (time(position % items.len()) - first) + round * (last - first);
        let began = *self.play.began.get_or_init(Instant::now);
        began + Duration::from_secs_f64((us.max(0) as f64 / 1e6 / speed).min(1e9))
    }
}

impl Source for Player {
    fn next(&mut self, command: &mut Command) -> Next {
        let Some(position) = self.pending.take().or_else(|| self.take()) else {
            return Next::End;
        };
        if let Some(speed) = self.play.speed
            && self.switching.is_none()
        {
            let (due, now) = (self.due(position, speed), Instant::now());
            if due > now {
                self.pending = Some(position);
                return Next::Wait(due);
            }
            let lag = (now - due).as_secs_f64();
            self.tally.lag_sum += lag;
            self.tally.lag_max = self.tally.lag_max.max(lag);
            self.tally.lagged += 1;
        }
        let work = &self.play.work;
        let number = position % work.items.len();
        let item = &work.items[number];
        if self.play.switch && item.db.is_some() && item.db != self.db {
            let name = item
                .db
                .and_then(|db| work.dbs.get(usize::from(db)))
                .map_or("", String::as_str);
            let text = command.text();
            text.extend_from_slice(b"USE `");
            text.extend(name.replace('`', "``").bytes());
            text.push(b'`');
            // Should it fail, the statement is sent all the same, and fails by itself.
            (self.switching, self.db, self.pending) = (item.db, item.db, Some(position));
            self.tally.switches += 1;
            return Next::Send;
        }
        self.current = Some(number);
        match self.play.executions.get(number).copied().flatten() {
            Some(execution) => self
                .play
                .templates
                .push_values(execution, command.execute(execution.template)),
            None => command.text().extend_from_slice(work.text(item)),
        }
        Next::Send
    }

    fn template(&self, id: u32) -> &str {
        self.play.templates.text(id)
    }

    fn answered(&mut self, answer: &Answer) {
        if self.switching.take().is_some() {
            return;
        }
        self.requeued = false;
        let (Some(number), Some(answers)) = (self.current, &self.play.answers) else {
            return;
        };
        let what = answer
            .error
            .as_ref()
            .map_or(answer.rows, |error| ERROR | u64::from(error.code));
        let rows = if self.play.ordered {
            answer.ordered_checksum
        } else {
            answer.checksum
        };
        let hash = if answer.error.is_some() { 0 } else { rows };
        let hash = crate::client::hash(&[number as u64, what, hash].map(u64::to_le_bytes).concat());
        self.tally.checksum = self.tally.checksum.wrapping_add(hash);
        answers[number].set(hash, what);
    }

    /// A statement that writes may have taken effect: it is not sent twice.
    fn reconnected(&mut self) -> bool {
        self.db = None;
        if self.switching.take().is_some()
            || self
                .current
                .is_some_and(|number| self.play.work.items[number].writes)
        {
            return false;
        }
        if self.play.switch {
            // Its database first.
            if !std::mem::replace(&mut self.requeued, true) {
                self.pending = self.current;
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
    }
}
