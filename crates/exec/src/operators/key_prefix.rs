//! Sorts row images by a 16-byte prefix of their sort keys. The full key is built only to break
//! ties between equal prefixes. When the images exceed their share of memory, a [`Sorter`] with
//! full keys takes over.
//!
//! # Picture
//! ```text
//!   image ──▶ head (16 bytes) ──▶ entries {head, where the image is}      a few rows: most keys are never made
//!                  │ too many bytes
//!                  └─▶ [`Sorter`], with whole keys                        memory, then files
//! ```
//! # Invariants
//! - H1: a head is the first 16 bytes of the key, padded with zeros. So two different ones decide
//!   the order, and two equal ones decide nothing.
//! - H2: equal keys keep their order of arrival (the offsets of images grow).

use std::thread::LocalKey;

use nfold_types::{Checkpoint, SqlError};

use super::row_out::give_sorted;
use super::sort::Sorter;
use crate::env::scratch::{Memory, Pool, Pooled};
use crate::env::stoppable_sort;
use crate::runtime::Runtime;

/// Builds the sort key of an image, or a prefix of it.
pub(crate) trait MakeKeys {
    /// Appends the full key.
    fn key(&self, image: &[u8], out: &mut Vec<u8>) -> Result<(), SqlError>;
    /// Appends at least the first [`HEAD`] bytes of the key.
    fn head(&self, image: &[u8], out: &mut Vec<u8>) -> Result<(), SqlError>;
}

/// The length of a head in bytes.
pub(crate) const HEAD: usize = 16;

/// The divisor for the memory of images without keys: the rest is for the keys that are built at
/// the end.
const SHARE: usize = 4;

/// The memory that the first row allocates, so that a small sort allocates once.
const FIRST_BYTES: usize = 32 << 10;
const FIRST_ROWS: usize = 256;

#[derive(Debug, Clone, Copy)]
struct Entry {
    head: u128,
    start: u32,
    len: u32,
}

/// The start and the end of a key.
type Span = (usize, usize);

fn head_of(key: &[u8]) -> u128 {
    let mut head = [0; HEAD];
    match key.first_chunk() {
        Some(first) => head = *first,
        None => head[..key.len()].copy_from_slice(key),
    }
    u128::from_be_bytes(head)
}

thread_local! {
    static POOL: Pool<Images> = const { Pool::new() };
}

/// The images in memory.
#[derive(Default)]
struct Images {
    arena: Vec<u8>,
    entries: Vec<Entry>,
    /// A second arena, for the images that remain when others are dropped.
    spare: Vec<u8>,
    /// A buffer for the current head or key.
    scratch: Vec<u8>,
    /// The keys of entries with an equal head.
    keys: Vec<u8>,
    tied: Vec<(Span, Entry)>,
}

impl Memory for Images {
    fn pool() -> &'static LocalKey<Pool<Images>> {
        &POOL
    }

    fn clear(&mut self) {
        self.arena.clear();
        self.entries.clear();
        self.spare.clear();
        self.keys.clear();
        self.tied.clear();
    }

    fn bytes(&self) -> usize {
        self.arena.capacity()
            + self.entries.capacity() * size_of::<Entry>()
            + self.spare.capacity()
            + self.scratch.capacity()
            + self.keys.capacity()
            + self.tied.capacity() * size_of::<(Span, Entry)>()
    }
}

fn image<'a>(arena: &'a [u8], e: &Entry) -> &'a [u8] {
    &arena[e.start as usize..][..e.len as usize]
}

impl Images {
    fn bytes_used(&self) -> usize {
        self.arena.len() + self.entries.len() * size_of::<Entry>()
    }

    fn sort(&mut self, rt: &Runtime<'_>, make: &dyn MakeKeys) -> Result<(), SqlError> {
        let Images {
            arena,
            entries,
            keys,
            tied,
            ..
        } = self;
        stoppable_sort::sort_by(entries, rt, 10, &|a, b| {
            (a.head, a.start).cmp(&(b.head, b.start))
        })?;
        for equal in entries.chunk_by_mut(|a, b| a.head == b.head) {
            if equal.len() > 1 {
                sort_tied(rt, make, arena, equal, (keys, tied))?;
            }
        }
        Ok(())
    }

    /// Drops all but the first `top` rows.
    fn keep_top(
        &mut self,
        rt: &Runtime<'_>,
        make: &dyn MakeKeys,
        top: usize,
    ) -> Result<Option<u128>, SqlError> {
        self.sort(rt, make)?;
        let Images {
            arena,
            entries,
            spare,
            ..
        } = self;
        entries.truncate(top);
        let bound = entries.last().map(|e| e.head);
        // In the order of arrival, so that the offsets keep growing (H2).
        entries.sort_unstable_by_key(|e| e.start);
        spare.clear();
        for e in entries {
            let start = spare.len() as u32;
            spare.extend_from_slice(image(arena, e));
            e.start = start;
        }
        std::mem::swap(arena, spare);
        Ok(bound)
    }
}

/// Sorts row images; see the module.
pub(crate) struct HeadSorter<'k> {
    keys: &'k dyn MakeKeys,
    images: Pooled<Images>,
    limit_bytes: usize,
    /// The number of rows wanted; 0: all.
    top: usize,
    /// The largest head among the first `top` rows: rows with a larger head are dropped.
    bound: Option<u128>,
    /// The sorter with full keys, once it has taken over.
    whole: Option<Sorter>,
}

impl<'k> HeadSorter<'k> {
    /// `limit_bytes` is the memory for images and keys, `top` the number of rows wanted (0: all).
    pub fn new(keys: &'k dyn MakeKeys, limit_bytes: usize, top: usize) -> HeadSorter<'k> {
        HeadSorter {
            keys,
            images: Pooled::take(),
            limit_bytes: limit_bytes.min(1 << 30),
            top,
            bound: None,
            whole: None,
        }
    }

    /// Adds a row.
    pub fn push(&mut self, rt: &Runtime<'_>, image: &[u8]) -> Result<(), SqlError> {
        let Images {
            arena,
            entries,
            scratch,
            ..
        } = &mut *self.images;
        scratch.clear();
        if let Some(whole) = &mut self.whole {
            self.keys.key(image, scratch)?;
            return whole.push(rt, scratch, image);
        }
        self.keys.head(image, scratch)?;
        let head = head_of(scratch);
        if self.bound.is_some_and(|bound| head > bound) {
            return Ok(());
        }
        if entries.capacity() == 0 {
            arena.reserve(FIRST_BYTES);
            entries.reserve(FIRST_ROWS);
        }
        entries.push(Entry {
            head,
            start: arena.len() as u32,
            len: image.len() as u32,
        });
        arena.extend_from_slice(image);
        if self.top != 0 && entries.len() >= 2 * self.top.max(512) {
            self.bound = self.images.keep_top(rt, self.keys, self.top)?;
        }
        if self.images.bytes_used() > self.limit_bytes / SHARE {
            self.give_up(rt)?;
        }
        Ok(())
    }

    /// Passes all rows to a sorter with full keys.
    fn give_up(&mut self, rt: &Runtime<'_>) -> Result<(), SqlError> {
        let mut whole = Sorter::new(self.limit_bytes, self.top);
        let mut given = std::mem::take(&mut *self.images);
        for e in &given.entries {
            let image = image(&given.arena, e);
            given.scratch.clear();
            self.keys.key(image, &mut given.scratch)?;
            whole.push(rt, &given.scratch, image)?;
        }
        self.whole = Some(whole);
        Ok(())
    }

    /// Ends the input, and calls `give` with the rows in order until it returns false.
    pub fn finish(
        mut self,
        rt: &Runtime<'_>,
        give: &mut dyn FnMut(&[u8]) -> Result<bool, SqlError>,
    ) -> Result<(), SqlError> {
        if let Some(whole) = self.whole {
            return give_sorted(rt, whole, give).map(|_| ());
        }
        self.images.sort(rt, self.keys)?;
        let Images { arena, entries, .. } = &*self.images;
        for (n, e) in entries.iter().enumerate() {
            if n % 1024 == 1023 {
                rt.tick()?;
            }
            if !give(image(arena, e))? {
                break;
            }
        }
        Ok(())
    }
}

/// Sorts entries with an equal head by their full keys.
fn sort_tied(
    rt: &Runtime<'_>,
    make: &dyn MakeKeys,
    arena: &[u8],
    equal: &mut [Entry],
    (keys, tied): (&mut Vec<u8>, &mut Vec<(Span, Entry)>),
) -> Result<(), SqlError> {
    keys.clear();
    tied.clear();
    for e in equal.iter() {
        let start = keys.len();
        make.key(image(arena, e), keys)?;
        rt.checkpoint(100 + (keys.len() - start) as u64)?;
        tied.push(((start, keys.len()), *e));
    }
    let key = |span: &Span| &keys[span.0..span.1];
    let cost = (keys.len() / (4 * tied.len().max(1))) as u64;
    stoppable_sort::sort_by(tied, rt, cost, &|(a, x), (b, y)| {
        key(a).cmp(key(b)).then(x.start.cmp(&y.start))
    })?;
    for (to, (_, e)) in equal.iter_mut().zip(tied) {
        *to = *e;
    }
    Ok(())
}
