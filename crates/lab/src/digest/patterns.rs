//! The counters of each pattern, in memory that does not grow with the log.
//!
//! A statement's key ([`Digested`]) is looked up by its 128-bit hash. The digest text, which is the
//! one that MySQL shows in `performance_schema`, is computed only for a new key. Several keys may
//! have the same text.

use nfold_sql::digest::{Digested, SlotKind};
use nfold_sql::digest_text::digest_text;
use nfold_sql::lexer::LexMode;
use rustc_hash::FxHashMap;

use super::buckets::Buckets;
use crate::log::Event;

/// The longest pattern text and example that are kept, in bytes.
const MAX_SHOWN: usize = 16 << 10;
/// Beyond this number of patterns, all new ones are counted as a single pattern.
const MAX_PATTERNS: usize = 20_000;
/// Beyond this number of keys, new ones are not stored, and are looked up by their digest text.
const MAX_KEYS: usize = 500_000;
/// The most databases and users that are listed with a pattern.
const MAX_NAMES: usize = 8;

/// The aggregates that a server has computed itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub total_us: u64,
    pub min_us: u64,
    pub max_us: u64,
    pub p95_us: Option<u64>,
    pub p99_us: Option<u64>,
}

/// The counters of one pattern.
#[derive(Clone, Debug, Default)]
pub struct Pattern {
    /// 16 hexadecimal digits: the FNV-1a hash of the text.
    pub id: String,
    pub text: String,
    pub count: u64,
    pub errors: u64,
    pub cut: u64,
    /// The durations in microseconds of the statements whose duration the log contains.
    pub time: Buckets,
    /// Instead of `time`, if the source is not a log.
    pub summary: Option<Summary>,
    pub lock_us: u64,
    pub rows_sent: u64,
    pub rows_examined: u64,
    pub rows_examined_max: u64,
    pub bytes_sent: u64,
    pub first_us: Option<i64>,
    pub last_us: Option<i64>,
    /// The slowest statement, with its real values.
    pub example: Vec<u8>,
    pub example_duration_us: Option<u64>,
    pub example_time_us: Option<i64>,
    /// The lengths of IN lists.
    pub lists: Buckets,
    /// The numbers of rows of INSERTs.
    pub rows: Buckets,
    pub dbs: Vec<String>,
    pub users: Vec<String>,
}

/// All patterns of all logs.
pub struct Patterns {
    pub list: Vec<Pattern>,
    by_key: FxHashMap<u128, u32>,
    by_text: FxHashMap<u64, u32>,
    digested: Digested,
    mode: LexMode,
}

impl Patterns {
    pub fn new(mode: LexMode) -> Self {
        Patterns {
            list: Vec::new(),
            by_key: FxHashMap::default(),
            by_text: FxHashMap::default(),
            digested: Digested::new(),
            mode,
        }
    }

    /// Counts a statement. Returns the index of its pattern.
    pub fn add(&mut self, event: &Event) -> usize {
        let number = if event.command {
            self.digested.read(b"", self.mode);
            self.command(&event.text)
        } else {
            self.statement(&event.text)
        };
        self.list[number].count_event(event, &self.digested);
        number
    }

    fn statement(&mut self, text: &[u8]) -> usize {
        self.digested.read(text, self.mode);
        let key = self.digested.hash();
        if let Some(&number) = self.by_key.get(&key) {
            return number as usize;
        }
        let number = self.by_text(digest_text(text, self.mode));
        if self.by_key.len() < MAX_KEYS {
            self.by_key.insert(key, number as u32);
        }
        number
    }

    fn command(&mut self, name: &[u8]) -> usize {
        let name = name.strip_suffix(b";").unwrap_or(name);
        let text = format!(
            "administrator command: {}",
            String::from_utf8_lossy(&name[..name.len().min(64)])
        );
        self.by_text(text)
    }

    fn by_text(&mut self, text: String) -> usize {
        let hash = fnv(text.as_bytes());
        if let Some(&number) = self.by_text.get(&hash) {
            return number as usize;
        }
        let (hash, text) = if self.list.len() >= MAX_PATTERNS {
            (0, format!("(all patterns after the first {MAX_PATTERNS})"))
        } else {
            (hash, text)
        };
        *self.by_text.entry(hash).or_insert_with(|| {
            self.list.push(Pattern {
                id: format!("{hash:016x}"),
                text: cut(text),
                ..Pattern::default()
            });
            self.list.len() as u32 - 1
        }) as usize
    }
}

impl Pattern {
    /// The total time of all its statements in microseconds.
    pub fn total_us(&self) -> u64 {
        self.summary
            .as_ref()
            .map_or_else(|| self.time.sum(), |summary| summary.total_us)
    }

    fn count_event(&mut self, event: &Event, digested: &Digested) {
        self.count += 1;
        self.errors += u64::from(event.error.is_some_and(|code| code != 0));
        self.cut += u64::from(event.cut);
        if let Some(us) = event.duration_us {
            self.time.add(us);
        }
        self.lock_us += event.lock_us.unwrap_or(0);
        self.rows_sent = self.rows_sent.saturating_add(event.rows_sent.unwrap_or(0));
        let examined = event.rows_examined.unwrap_or(0);
        self.rows_examined = self.rows_examined.saturating_add(examined);
        self.rows_examined_max = self.rows_examined_max.max(examined);
        self.bytes_sent = self
            .bytes_sent
            .saturating_add(event.bytes_sent.unwrap_or(0));
        if let Some(at) = event.time_us {
            self.first_us = Some(self.first_us.map_or(at, |first| first.min(at)));
            self.last_us = Some(self.last_us.map_or(at, |last| last.max(at)));
        }
        for slot in digested.slots() {
            match slot.kind {
                SlotKind::List => self.lists.add(u64::from(slot.count)),
                SlotKind::Rows => self.rows.add(u64::from(slot.count)),
                _ => {}
            }
        }
        if self.example.is_empty() || event.duration_us > self.example_duration_us {
            self.example.clear();
            self.example
                .extend_from_slice(&event.text[..event.text.len().min(MAX_SHOWN)]);
            self.example_duration_us = event.duration_us;
            self.example_time_us = event.time_us;
        }
        name(&mut self.dbs, &event.db);
        name(&mut self.users, &event.user);
    }
}

fn name(names: &mut Vec<String>, name: &[u8]) {
    if !name.is_empty()
        && names.len() < MAX_NAMES
        && !names.iter().any(|known| known.as_bytes() == name)
    {
        let name = String::from_utf8_lossy(&name[..name.len().min(64)]).into_owned();
        if !names.contains(&name) {
            names.push(name);
        }
    }
}

fn cut(mut text: String) -> String {
    if text.len() > MAX_SHOWN {
        let mut at = MAX_SHOWN;
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        text.truncate(at);
        text.push_str(" …");
    }
    text
}

/// FNV-1a with 64 bits. A text has the same hash in every version and on every machine.
pub fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &b| {
        (hash ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
