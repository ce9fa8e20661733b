//! Removes duplicate rows: by a hash set of keys, and by sorting once the set exceeds its memory.
//!
//! # Invariants
//! D1. A distinct row is returned once: immediately if its key fits into the set, otherwise from
//!     the sorted rest. No key of the rest is in the set, because the set takes no more keys after
//!     the first deferred row.

use std::hash::Hasher;
use std::thread::LocalKey;

use hashbrown::HashTable;
use nfold_types::SqlError;
use rustc_hash::FxHasher;

use super::sort::Sorter;
use crate::env::scratch::{Memory, Pool, Pooled};
use crate::runtime::Runtime;

/// The memory of a key in the set, besides its bytes.
const KEY_BYTES: usize = 24;

/// The memory that the first key allocates.
const FIRST_BYTES: usize = 8 << 10;
const FIRST_KEYS: usize = 128;

/// A set of keys in one arena.
#[derive(Default)]
struct KeySet {
    arena: Vec<u8>,
    /// The start and end of each key.
    spans: HashTable<(u32, u32)>,
    /// The current key.
    key: Vec<u8>,
}

thread_local! {
    static POOL: Pool<KeySet> = const { Pool::new() };
}

impl Memory for KeySet {
    fn pool() -> &'static LocalKey<Pool<KeySet>> {
        &POOL
    }

    fn clear(&mut self) {
        self.arena.clear();
        self.spans.clear();
    }

    fn bytes(&self) -> usize {
        self.arena.capacity() + self.spans.capacity() * KEY_BYTES + self.key.capacity()
    }
}

fn hash(key: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(key);
    hasher.finish()
}

impl KeySet {
    fn bytes_used(&self) -> usize {
        self.arena.len() + self.spans.len() * KEY_BYTES
    }

    fn key(arena: &[u8], (start, end): (u32, u32)) -> &[u8] {
        &arena[start as usize..end as usize]
    }

    /// Looks up a key, and adds it if it is missing and `room` is true.
    fn look(&mut self, key: &[u8], room: bool) -> SetLookup {
        let KeySet { arena, spans, .. } = self;
        let hashed = hash(key);
        if spans
            .find(hashed, |s| Self::key(arena, *s) == key)
            .is_some()
        {
            return SetLookup::There;
        }
        if !room {
            return SetLookup::NoRoom;
        }
        if arena.capacity() == 0 {
            arena.reserve(FIRST_BYTES);
            spans.reserve(FIRST_KEYS, |_| 0);
        }
        let start = arena.len() as u32;
        arena.extend_from_slice(key);
        let span = (start, arena.len() as u32);
        spans.insert_unique(hashed, span, |s| hash(Self::key(arena, *s)));
        SetLookup::Added
    }
}

enum SetLookup {
    There,
    Added,
    NoRoom,
}

/// The set of rows seen so far, and the deferred rows.
pub(crate) struct Distinct {
    seen: Pooled<KeySet>,
    limit_bytes: usize,
    rest: Option<Sorter>,
    /// Rows looked at, and those of them that were new at once.
    rows: u64,
    new_rows: u64,
}

impl Distinct {
    pub fn new(limit_bytes: usize) -> Distinct {
        Distinct {
            seen: Pooled::take(),
            limit_bytes: limit_bytes.clamp(64 << 10, 1 << 30),
            rest: None,
            rows: 0,
            new_rows: 0,
        }
    }

    /// Whether the row is known to be new, by the key that `make` appends. If that is undecided,
    /// the row, as `row` appends it, is deferred until [`Distinct::give_deferred`].
    pub fn is_new(
        &mut self,
        rt: &Runtime<'_>,
        make: impl FnOnce(&mut Vec<u8>) -> Result<(), SqlError>,
        row: impl FnOnce(&mut Vec<u8>) -> Result<(), SqlError>,
    ) -> Result<bool, SqlError> {
        let mut key = std::mem::take(&mut self.seen.key);
        key.clear();
        make(&mut key)?;
        let new = self.is_new_key(rt, &key, row);
        self.seen.key = key;
        new
    }

    fn is_new_key(
        &mut self,
        rt: &Runtime<'_>,
        key: &[u8],
        row: impl FnOnce(&mut Vec<u8>) -> Result<(), SqlError>,
    ) -> Result<bool, SqlError> {
        self.rows += 1;
        let room = self.rest.is_none() && self.seen.bytes_used() < self.limit_bytes;
        match self.seen.look(key, room) {
            SetLookup::There => return Ok(false),
            SetLookup::Added => {
                self.new_rows += 1;
                return Ok(true);
            }
            SetLookup::NoRoom => {}
        }
        let limit = self.limit_bytes;
        let mut image = Vec::new();
        row(&mut image)?;
        self.rest
            .get_or_insert_with(|| Sorter::new(limit, 0))
            .push(rt, key, &image)?;
        Ok(false)
    }

    /// Counts the temporary table that MySQL writes the rows to.
    pub fn count(&self, rt: &Runtime<'_>) {
        rt.count_temporary_table(self.rows, self.new_rows);
    }

    /// Whether rows have been deferred.
    pub fn has_rest(&self) -> bool {
        self.rest.is_some()
    }

    /// Passes each distinct deferred row to `f`, until `f` returns false.
    pub fn give_deferred(
        self,
        rt: &Runtime<'_>,
        f: &mut dyn FnMut(&[u8]) -> Result<bool, SqlError>,
    ) -> Result<(), SqlError> {
        let Some(rest) = self.rest else {
            return Ok(());
        };
        drop(self.seen);
        let mut sorted = rest.finish(rt)?;
        let mut last: Option<Vec<u8>> = None;
        let mut n = 0u32;
        while let Some((key, row)) = sorted.next(rt)? {
            n = n.wrapping_add(1);
            if n.is_multiple_of(1024) {
                rt.tick()?;
            }
            if last.as_deref() == Some(key) {
                continue;
            }
            let last = last.get_or_insert_default();
            last.clear();
            last.extend_from_slice(key);
            if !f(row)? {
                break;
            }
        }
        Ok(())
    }
}
