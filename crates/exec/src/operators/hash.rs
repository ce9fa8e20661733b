//! The hash table of a hash join: its rows by the hash of their keys, in memory or, beyond a limit,
//! in a file sorted by hash.
//!
//! # Picture
//! ```text
//! file:   | hash u64, length u32, image | ... |   blocks of whole records, BLOCK_BYTES or one record
//! index:  first hash and offset of each block, in memory: about two thousandths of the file
//! ```
//! The outer rows keep their order in either case: each reads its candidates, block by block.
//! Without a key all rows have the same hash, and so are candidates.
//!
//! # Invariants
//! H1. The candidates are a superset of the matching rows: the join tests its conditions on each
//!     candidate.

use std::collections::BTreeSet;
use std::fs::File;
use std::hash::Hasher;
use std::sync::Arc;

use nfold_engine::RowBatch;
use nfold_types::{SqlError, append_in_pieces};
use rustc_hash::{FxHashMap, FxHasher};

use super::sort::Sorter;
use crate::env::batch::POOLED_BYTES;
use crate::runtime::Runtime;
use crate::runtime::spill;

/// Each probe of the file reads a block and searches it; blocks are written together.
const BLOCK_BYTES: usize = 8 << 10;
const WRITE_BYTES: usize = 256 << 10;
/// The blocks of one hash that are read ahead.
const READ_AHEAD: usize = 31;
const HEAD: usize = 12;
const NO_ROW: u32 = u32::MAX;
/// The number of rows of a hash among which an equal row is searched.
const RECENT_ROWS: usize = 4;

/// Numbers that are found by their hashes. Hashes are added first and looked up afterwards.
///
/// # Picture
/// ```text
/// buckets: | bucket 0 | bucket 1 | ... |     the bucket of a hash: its product's high bits
///               │
/// next:         └─▶ number ─▶ number ─▶ NO_ROW
/// ```
#[derive(Default)]
pub(crate) struct HashIndex {
    /// The hash of each number.
    hashes: Vec<u64>,
    /// For each bucket its first number, and for each number the next one of its bucket
    /// ([`NO_ROW`]: none). Numbers from `next.len()` on are not in a bucket yet.
    buckets: Vec<u32>,
    next: Vec<u32>,
}

impl HashIndex {
    /// Removes all hashes, and keeps the memory.
    pub fn clear(&mut self) {
        self.hashes.clear();
        self.buckets.clear();
        self.next.clear();
    }

    /// The memory that it holds, in bytes.
    pub fn memory(&self) -> usize {
        let numbers = self.buckets.capacity() + self.next.capacity();
        self.hashes.capacity() * size_of::<u64>() + numbers * size_of::<u32>()
    }

    /// Adds the hash of the next number.
    pub fn push(&mut self, hash: u64) {
        self.hashes.push(hash);
    }

    /// Ends the input: puts all numbers into buckets, those of one hash in ascending order.
    pub fn finish(&mut self) {
        self.rebuild(self.hashes.len());
    }

    /// Puts the numbers that are in no bucket yet into buckets, in any order.
    fn update(&mut self) {
        if self.hashes.len() > self.buckets.len() {
            // Doubled, so that a number moves to another bucket about once.
            self.rebuild(self.hashes.len() * 2);
            return;
        }
        for n in self.next.len()..self.hashes.len() {
            let bucket = self.bucket(self.hashes[n]);
            self.next.push(self.buckets[bucket]);
            self.buckets[bucket] = n as u32;
        }
    }

    /// Makes at least `count` buckets.
    fn rebuild(&mut self, count: usize) {
        let count = count.next_power_of_two().max(16);
        self.buckets.clear();
        self.buckets.resize(count, NO_ROW);
        self.next.clear();
        self.next.resize(self.hashes.len(), NO_ROW);
        for n in (0..self.hashes.len()).rev() {
            let bucket = self.bucket(self.hashes[n]);
            self.next[n] = self.buckets[bucket];
            self.buckets[bucket] = n as u32;
        }
    }

    #[inline]
    fn bucket(&self, hash: u64) -> usize {
        // Fibonacci hashing (Knuth, "The Art of Computer Programming", 6.4): a hash may be a number
        // whose low bits alone differ.
        let bits = self.buckets.len().trailing_zeros();
        (hash.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - bits)) as usize
    }

    /// The numbers with this hash. Only after [`Self::finish`] or [`Self::update`].
    #[inline]
    pub fn find(&self, hash: u64) -> impl Iterator<Item = u32> {
        let mut at = match self.buckets.is_empty() {
            true => NO_ROW,
            false => self.buckets[self.bucket(hash)],
        };
        std::iter::from_fn(move || {
            while at != NO_ROW {
                let n = at;
                at = self.next[n as usize];
                if self.hashes[n as usize] == hash {
                    return Some(n);
                }
            }
            None
        })
    }
}

/// The hash table. Rows are added first and looked up afterwards.
#[derive(Default)]
pub(crate) struct HashTable {
    pub built: bool,
    pub rows: RowBatch,
    by_hash: HashIndex,
    bytes: usize,
    sorter: Option<Sorter>,
    spilled: Option<SortedFile>,
}

/// The bytes of rows that a hash table has in memory.
fn memory_limit(rt: &Runtime<'_>) -> usize {
    rt.env.work_memory().clamp(64 << 10, 1 << 30)
}

/// The hash of a key's bytes.
pub(crate) fn hash_of(key: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(key);
    hasher.finish()
}

/// Splits a row that has its hidden row id appended into image and id.
pub(crate) fn with_id(row: &[u8]) -> (&[u8], Option<u64>) {
    match row.split_last_chunk::<8>() {
        Some((image, id)) => (image, Some(u64::from_le_bytes(*id))),
        None => (row, None),
    }
}

impl HashTable {
    /// Removes the rows, and keeps the memory.
    pub fn clear(&mut self) {
        self.built = false;
        self.rows.clear();
        self.by_hash.clear();
        self.bytes = 0;
        (self.sorter, self.spilled) = (None, None);
    }

    /// Whether it has no rows, once it is built.
    pub fn is_empty(&self) -> bool {
        self.rows.len() == 0 && !self.is_spilled()
    }

    /// The memory that it holds, approximately, in bytes.
    pub fn memory(&self) -> usize {
        self.rows.memory() + self.by_hash.memory()
    }

    /// Called between executions: closes the file, and frees unusually large memory.
    pub fn release(&mut self) {
        if self.memory() > POOLED_BYTES || self.is_spilled() {
            *self = HashTable::default();
        }
    }

    /// Adds a row.
    pub fn push(&mut self, rt: &Runtime<'_>, hash: u64, image: &[u8]) -> Result<(), SqlError> {
        if let Some(sorter) = &mut self.sorter {
            return sorter.push(rt, &hash.to_be_bytes(), image);
        }
        rt.copy_row(image, &mut self.rows)?;
        self.by_hash.push(hash);
        self.bytes += image.len() + 64;
        if self.bytes > memory_limit(rt) {
            self.spill(rt)?;
        }
        Ok(())
    }

    fn spill(&mut self, rt: &Runtime<'_>) -> Result<(), SqlError> {
        let mut sorter = Sorter::new(rt.env.work_memory(), 0);
        for (hash, image) in self.by_hash.hashes.iter().zip(self.rows.iter()) {
            sorter.push(rt, &hash.to_be_bytes(), image)?;
        }
        self.by_hash = HashIndex::default();
        self.rows = RowBatch::new();
        self.sorter = Some(sorter);
        Ok(())
    }

    /// Ends the input.
    pub fn finish(&mut self, rt: &Runtime<'_>) -> Result<(), SqlError> {
        self.built = true;
        match self.sorter.take() {
            Some(sorter) => self.spilled = Some(SortedFile::write(rt, sorter)?),
            None => self.by_hash.finish(),
        }
        Ok(())
    }

    /// Whether rows are being written to the file.
    pub fn is_building_file(&self) -> bool {
        self.sorter.is_some()
    }

    /// Whether rows are looked up in the file.
    pub fn is_spilled(&self) -> bool {
        self.spilled.is_some()
    }

    /// The file, if the rows are not in memory.
    pub fn spilled(&mut self) -> Option<&mut SortedFile> {
        self.spilled.as_mut()
    }

    /// Whether a row with this hash has exactly these bytes.
    pub fn contains(
        &mut self,
        rt: &Runtime<'_>,
        hash: u64,
        image: &[u8],
    ) -> Result<bool, SqlError> {
        let Some(file) = &mut self.spilled else {
            self.by_hash.update();
            let mut places = self.places(hash);
            return Ok(places.any(|p| self.rows.row(p as usize) == image));
        };
        let mut piece = RowBatch::new();
        let mut place = Some(file.find(hash));
        while let Some(at) = place {
            piece.clear();
            place = file.next(rt, at, &mut piece)?;
            if piece.iter().any(|row| row == image) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether one of the latest rows in memory with this hash is one that `known` accepts.
    pub fn has_recent(&mut self, hash: u64, known: impl Fn(&[u8]) -> bool) -> bool {
        if self.sorter.is_some() {
            return false;
        }
        self.by_hash.update();
        let mut recent = self.by_hash.find(hash).take(RECENT_ROWS);
        recent.any(|n| known(self.rows.row(n as usize)))
    }

    /// Calls `f` with all rows, in any order.
    pub fn each(
        &mut self,
        rt: &Runtime<'_>,
        f: &mut dyn FnMut(&[u8]) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        match &mut self.spilled {
            Some(file) => file.each(rt, f),
            None => self.rows.iter().try_for_each(f),
        }
    }

    /// The rows in memory with this hash, in the order of arrival.
    #[inline]
    pub fn places(&self, hash: u64) -> impl Iterator<Item = u32> {
        self.by_hash.find(hash)
    }
}

/// The position of a reader of one hash's rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReaderPosition {
    hash: u64,
    block: usize,
}

/// Rows in a file, sorted by hash.
pub(crate) struct SortedFile {
    file: Arc<File>,
    /// The first hash and the offset of each block, and the file's length.
    blocks: Vec<(u64, u64)>,
    end: u64,
    /// Blocks in memory by their numbers, and their bytes: at most `cache_bytes_max`, unless one
    /// request needs more.
    cache: FxHashMap<usize, Vec<u8>>,
    cached_bytes: usize,
    cache_bytes_max: usize,
}

impl SortedFile {
    fn write(rt: &Runtime<'_>, sorter: Sorter) -> Result<SortedFile, SqlError> {
        let mut sorted = sorter.finish(rt)?;
        let file = spill::nameless(rt)?;
        let (mut blocks, mut end) = (Vec::new(), 0u64);
        let (mut buffer, mut block_bytes) = (Vec::new(), 0);
        while let Some((key, image)) = sorted.next(rt)? {
            let hash = key.first_chunk().map_or(0, |b| u64::from_be_bytes(*b));
            if block_bytes == 0 {
                blocks.push((hash, end + buffer.len() as u64));
            }
            buffer.extend_from_slice(&hash.to_le_bytes());
            buffer.extend_from_slice(&(image.len() as u32).to_le_bytes());
            append_in_pieces(image, &mut buffer, rt)?;
            block_bytes += HEAD + image.len();
            if block_bytes >= BLOCK_BYTES {
                block_bytes = 0;
            }
            if buffer.len() >= WRITE_BYTES {
                rt.tick()?;
                let len = buffer.len() as u64;
                buffer = spill::write_at(rt, &file, end, buffer)?;
                buffer.clear();
                end += len;
            }
        }
        let len = buffer.len() as u64;
        spill::write_at(rt, &file, end, buffer)?;
        Ok(SortedFile {
            file,
            blocks,
            end: end + len,
            cache: FxHashMap::default(),
            cached_bytes: 0,
            // The rows have left as much.
            cache_bytes_max: memory_limit(rt) / 2,
        })
    }

    /// The position of the first row with this hash.
    pub fn find(&self, hash: u64) -> ReaderPosition {
        let after = self.blocks.partition_point(|(first, _)| *first < hash);
        ReaderPosition {
            hash,
            // The previous block may end with rows of this hash.
            block: after.saturating_sub(1),
        }
    }

    /// The offset and the length of a block.
    fn span(&self, block: usize) -> (u64, usize) {
        let (_, start) = self.blocks[block];
        let end = self.blocks.get(block + 1).map_or(self.end, |(_, at)| *at);
        (start, (end - start) as usize)
    }

    /// Whether the block begins with rows of this hash, or of a smaller one.
    fn may_have(&self, block: usize, hash: u64) -> bool {
        let first = self.blocks.get(block).map(|(first, _)| *first);
        first.is_some_and(|first| first <= hash)
    }

    /// Reads the blocks of the first of these hashes, and with them those of further ones, as far
    /// as there is memory: one request for many probes.
    pub fn prefetch(
        &mut self,
        rt: &Runtime<'_>,
        mut hashes: impl Iterator<Item = u64>,
    ) -> Result<(), SqlError> {
        let (mut wanted, mut bytes) = (BTreeSet::new(), 0);
        for (n, hash) in hashes.by_ref().enumerate() {
            let mut block = self.find(hash).block;
            while bytes < self.cache_bytes_max && self.may_have(block, hash) {
                if !self.cache.contains_key(&block) && wanted.insert(block) {
                    bytes += self.span(block).1;
                }
                block += 1;
            }
            if bytes >= self.cache_bytes_max || n == 0 && wanted.is_empty() {
                break;
            }
        }
        self.read(rt, &wanted.into_iter().collect::<Vec<_>>())
    }

    /// Reads blocks, in ascending order, into the cache.
    fn read(&mut self, rt: &Runtime<'_>, wanted: &[usize]) -> Result<(), SqlError> {
        if wanted.is_empty() {
            return Ok(());
        }
        let spans: Vec<(u64, usize)> = wanted.iter().map(|block| self.span(*block)).collect();
        let bytes: usize = spans.iter().map(|(_, len)| len).sum();
        if self.cached_bytes + bytes > self.cache_bytes_max {
            self.cache.clear();
            self.cached_bytes = 0;
        }
        let read = spill::read_many(rt, &self.file, spans)?;
        self.cached_bytes += bytes;
        self.cache.extend(wanted.iter().copied().zip(read));
        Ok(())
    }

    /// Calls `f` with all rows.
    fn each(
        &mut self,
        rt: &Runtime<'_>,
        f: &mut dyn FnMut(&[u8]) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        let mut buffer = Vec::new();
        for block in 0..self.blocks.len() {
            rt.tick()?;
            let (start, len) = self.span(block);
            buffer.clear();
            buffer = spill::read_at(rt, &self.file, start, len, buffer)?;
            let mut at = 0;
            while let Some((_, image, after)) = record(&buffer, at) {
                f(image)?;
                at = after;
            }
        }
        Ok(())
    }

    /// Appends further rows with the position's hash. Returns the position after them, or `None` if
    /// there are no more.
    pub fn next(
        &mut self,
        rt: &Runtime<'_>,
        place: ReaderPosition,
        out: &mut RowBatch,
    ) -> Result<Option<ReaderPosition>, SqlError> {
        if place.block >= self.blocks.len() {
            return Ok(None);
        }
        if !self.cache.contains_key(&place.block) {
            let further = place.block + 1..;
            let further = further.take_while(|block| self.may_have(*block, place.hash));
            let further = further.filter(|block| !self.cache.contains_key(block));
            let wanted = std::iter::once(place.block).chain(further.take(READ_AHEAD));
            let wanted: Vec<usize> = wanted.collect();
            self.read(rt, &wanted)?;
        }
        let block = self.cache.get(&place.block).map_or(&[][..], Vec::as_slice);
        let mut at = 0;
        while let Some((hash, image, after)) = record(block, at) {
            if hash > place.hash {
                return Ok(None);
            }
            if hash == place.hash {
                rt.copy_row(image, out)?;
            }
            at = after;
        }
        let next = place.block + 1;
        Ok(self.may_have(next, place.hash).then_some(ReaderPosition {
            block: next,
            ..place
        }))
    }
}

/// Parses the record at offset `at`: its hash, its image, and the offset of the next record.
fn record(block: &[u8], at: usize) -> Option<(u64, &[u8], usize)> {
    let head = block.get(at..at + HEAD)?;
    let hash = u64::from_le_bytes(*head.first_chunk()?);
    let len = u32::from_le_bytes(*head.last_chunk()?) as usize;
    let image = block.get(at + HEAD..at + HEAD + len)?;
    Some((hash, image, at + HEAD + len))
}
