//! Sorts rows by key bytes: in memory, by a heap of the first N, or by merging sorted runs in
//! files.
//!
//! # Invariants
//! S1. Equal keys keep their order of arrival (the number of the entry is part of the comparison).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::thread::LocalKey;

use nfold_types::{Checkpoint, SqlError, append_in_pieces};

use crate::env::scratch::{Memory, Pool, Pooled};
use crate::env::stoppable_sort;
use crate::runtime::Runtime;
use crate::runtime::spill::{SpillReader, SpillWriter};

/// The maximum number of runs in one merge; each needs a buffer.
const FAN_IN: usize = 128;

/// The memory that the first row allocates, so that a small sort allocates once.
const FIRST_BYTES: usize = 32 << 10;
const FIRST_ROWS: usize = 256;

#[derive(Debug, Clone, Copy)]
struct Entry {
    /// The first eight bytes of the key, big-endian, padded with zeros. Different prefixes decide
    /// the order.
    head: u64,
    start: u32,
    key: u32,
    row: u32,
}

fn head_of(key: &[u8]) -> u64 {
    let mut head = [0; 8];
    match key.first_chunk() {
        Some(first) => head = *first,
        None => head[..key.len()].copy_from_slice(key),
    }
    u64::from_be_bytes(head)
}

thread_local! {
    static POOL: Pool<Rows> = const { Pool::new() };
}

/// The rows in memory.
#[derive(Default)]
struct Rows {
    arena: Vec<u8>,
    entries: Vec<Entry>,
    /// A second arena, for the rows that remain when others are dropped.
    spare: Vec<u8>,
    /// The key of the last of the first N rows, once N rows have arrived. A later row whose key is
    /// not smaller is dropped (S1). Empty: none is known.
    bound: Vec<u8>,
}

impl Memory for Rows {
    fn pool() -> &'static LocalKey<Pool<Rows>> {
        &POOL
    }

    fn clear(&mut self) {
        self.arena.clear();
        self.entries.clear();
        self.spare.clear();
        self.bound.clear();
    }

    fn bytes(&self) -> usize {
        let bytes = [&self.arena, &self.spare, &self.bound].map(Vec::capacity);
        bytes.iter().sum::<usize>() + self.entries.capacity() * size_of::<Entry>()
    }
}

impl Rows {
    fn key(&self, e: &Entry) -> &[u8] {
        &self.arena[e.start as usize..(e.start + e.key) as usize]
    }

    fn row(&self, e: &Entry) -> &[u8] {
        &self.arena[(e.start + e.key) as usize..][..e.row as usize]
    }

    fn sort(&mut self, rt: &Runtime<'_>) -> Result<(), SqlError> {
        let arena = &self.arena;
        // Most comparisons are decided before the end of the keys.
        let cost = (arena.len() / (16 * self.entries.len().max(1))) as u64;
        let key = |e: &Entry| &arena[e.start as usize..(e.start + e.key) as usize];
        // The offsets grow, so equal keys keep their order (S1).
        stoppable_sort::sort_by(&mut self.entries, rt, cost, &|a, b| {
            let prefixes = a.head.cmp(&b.head);
            prefixes.then_with(|| key(a).cmp(key(b)).then(a.start.cmp(&b.start)))
        })
    }

    /// Drops all but the first `top` rows.
    fn keep_top(&mut self, rt: &Runtime<'_>, top: usize) -> Result<(), SqlError> {
        self.sort(rt)?;
        let Rows {
            arena,
            entries,
            spare,
            bound,
        } = self;
        entries.truncate(top);
        bound.clear();
        if let Some(e) = entries.last() {
            bound.extend_from_slice(&arena[e.start as usize..(e.start + e.key) as usize]);
        }
        // In the order of arrival, so that the offsets keep growing.
        entries.sort_unstable_by_key(|e| e.start);
        spare.clear();
        for e in entries {
            let (from, len) = (e.start as usize, (e.key + e.row) as usize);
            e.start = spare.len() as u32;
            spare.extend_from_slice(&arena[from..from + len]);
        }
        std::mem::swap(arena, spare);
        Ok(())
    }
}

/// Sorts rows by their keys; see the module.
pub(crate) struct Sorter {
    rows: Pooled<Rows>,
    runs: Vec<SpillWriter>,
    limit_bytes: usize,
    /// The number of rows wanted; 0: all.
    top: usize,
}

/// Whether a row with this sort key comes after the last one wanted, whose key is `bound`. An empty
/// `bound`: that is not known.
fn is_beyond(bound: &[u8], key: &[u8]) -> bool {
    !bound.is_empty() && key >= bound
}

impl Sorter {
    pub fn new(limit_bytes: usize, top: usize) -> Sorter {
        Sorter {
            rows: Pooled::take(),
            runs: Vec::new(),
            limit_bytes: limit_bytes.clamp(64 << 10, 1 << 30),
            top,
        }
    }

    /// Whether a row with this sort key is none of the rows wanted, so that it need not be added.
    pub fn is_beyond_top(&self, key: &[u8]) -> bool {
        is_beyond(&self.rows.bound, key)
    }

    /// Adds a row with its sort key.
    pub fn push(&mut self, rt: &Runtime<'_>, key: &[u8], row: &[u8]) -> Result<(), SqlError> {
        rt.checkpoint((key.len() + row.len()) as u64)?;
        let Rows {
            arena,
            entries,
            bound,
            ..
        } = &mut *self.rows;
        if is_beyond(bound, key) {
            return Ok(());
        }
        if entries.capacity() == 0 {
            arena.reserve(FIRST_BYTES);
            entries.reserve(FIRST_ROWS);
        }
        let start = arena.len() as u32;
        append_in_pieces(key, arena, rt)?;
        append_in_pieces(row, arena, rt)?;
        entries.push(Entry {
            head: head_of(key),
            start,
            key: key.len() as u32,
            row: row.len() as u32,
        });
        let (rows, bytes) = (
            entries.len(),
            arena.len() + entries.len() * size_of::<Entry>(),
        );
        if self.top != 0 && rows >= 2 * self.top.max(512) {
            self.rows.keep_top(rt, self.top)?;
        } else if bytes > self.limit_bytes {
            if self.top != 0 && rows > 2 * self.top {
                return self.rows.keep_top(rt, self.top);
            }
            self.spill(rt)?;
        }
        Ok(())
    }

    fn spill(&mut self, rt: &Runtime<'_>) -> Result<(), SqlError> {
        self.rows.sort(rt)?;
        let mut run = SpillWriter::new(rt)?;
        for (n, e) in self.rows.entries.iter().enumerate() {
            if n % 4096 == 0 {
                rt.tick()?;
            }
            run.push(rt, self.rows.key(e), self.rows.row(e))?;
        }
        run.pause(rt)?;
        self.runs.push(run);
        self.rows.clear();
        Ok(())
    }

    /// Ends the input, and returns the sorted rows.
    pub fn finish(mut self, rt: &Runtime<'_>) -> Result<Sorted, SqlError> {
        self.rows.sort(rt)?;
        if self.top != 0 && self.runs.is_empty() {
            self.rows.entries.truncate(self.top);
        }
        if self.runs.is_empty() {
            return Ok(Sorted {
                memory: self.rows,
                at: 0,
                merge: None,
            });
        }
        if !self.rows.entries.is_empty() {
            self.spill(rt)?;
        }
        *self.rows = Rows::default();
        let mut runs = std::mem::take(&mut self.runs);
        while runs.len() > FAN_IN {
            runs = merge_some(rt, runs)?;
        }
        Ok(Sorted {
            memory: self.rows,
            at: 0,
            merge: Some(Merge::new(rt, runs)?),
        })
    }
}

/// Merges neighbouring runs until a single merge can take the rest, but no more than necessary.
/// Only neighbours are merged, so that equal keys keep their order (S1).
fn merge_some(rt: &Runtime<'_>, runs: Vec<SpillWriter>) -> Result<Vec<SpillWriter>, SqlError> {
    let mut excess = runs.len() - FAN_IN;
    let mut out = Vec::new();
    let mut runs = runs.into_iter();
    while let Some(first) = runs.next() {
        let more = excess.min(FAN_IN - 1).min(runs.len());
        if more == 0 {
            out.push(first);
            continue;
        }
        excess -= more;
        let group = std::iter::once(first).chain(runs.by_ref().take(more));
        let mut merge = Merge::new(rt, group.collect())?;
        let mut run = SpillWriter::new(rt)?;
        let mut n = 0u32;
        while let Some(reader) = merge.next(rt)? {
            n = n.wrapping_add(1);
            if n.is_multiple_of(4096) {
                rt.tick()?;
            }
            let (key, row) = merge.readers[reader].record();
            run.push(rt, key, row)?;
        }
        run.pause(rt)?;
        out.push(run);
    }
    Ok(out)
}

/// Merges several sorted runs into one.
struct Merge {
    readers: Vec<SpillReader>,
    /// The reader on top has returned its record last.
    heap: BinaryHeap<Reverse<(Vec<u8>, usize)>>,
    started: bool,
}

impl Merge {
    fn new(rt: &Runtime<'_>, runs: Vec<SpillWriter>) -> Result<Merge, SqlError> {
        let mut readers = runs
            .into_iter()
            .map(|run| run.into_reader(rt))
            .collect::<Result<Vec<_>, _>>()?;
        let mut heap = BinaryHeap::with_capacity(readers.len());
        for (n, r) in readers.iter_mut().enumerate() {
            if r.advance(rt)? {
                heap.push(Reverse((r.record().0.to_vec(), n)));
            }
        }
        Ok(Merge {
            readers,
            heap,
            started: false,
        })
    }

    /// The reader with the next record.
    fn next(&mut self, rt: &Runtime<'_>) -> Result<Option<usize>, SqlError> {
        if self.started
            && let Some(mut top) = self.heap.peek_mut()
        {
            let Reverse((key, n)) = &mut *top;
            let reader = &mut self.readers[*n];
            if reader.advance(rt)? {
                key.clear();
                key.extend_from_slice(reader.record().0);
            } else {
                PeekMut::pop(top);
            }
        }
        self.started = true;
        Ok(self.heap.peek().map(|Reverse((_, n))| *n))
    }
}

/// Sorted rows.
pub(crate) struct Sorted {
    memory: Pooled<Rows>,
    at: usize,
    merge: Option<Merge>,
}

impl Sorted {
    /// The next row with its key.
    pub fn next(&mut self, rt: &Runtime<'_>) -> Result<Option<(&[u8], &[u8])>, SqlError> {
        match &mut self.merge {
            Some(merge) => match merge.next(rt)? {
                None => Ok(None),
                Some(n) => Ok(Some(merge.readers[n].record())),
            },
            None => {
                let Some(e) = self.memory.entries.get(self.at) else {
                    return Ok(None);
                };
                self.at += 1;
                Ok(Some((self.memory.key(e), self.memory.row(e))))
            }
        }
    }
}
