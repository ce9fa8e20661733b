//! Sorting row images by the first bytes of their keys. A whole key is made for rows whose heads are equal, and for all of them once they are too
//! many for it to pay.
//!
//! # Picture
//! ```text
//!   image ──▶ head (16 bytes) ──▶ entries {head, where the image is}      a few rows: most keys are never made
//!                  │ too many bytes
//!                  └─▶ [`Sorter`], with whole keys                        memory, then files
//! ```
//! # Invariants
//! - H1: a head is the first 16 bytes of the key, zeros behind a shorter one. So unequal heads decide the order; equal ones decide nothing.
//! - H2: equal keys keep the order in which they came (starts grow).

use nfold_types::SqlError;

use crate::block::give_sorted;
use crate::runtime::Runtime;
use crate::sort::Sorter;

/// What makes the key of an image, or its head.
pub(crate) trait MakeKeys {
    /// Appends the key.
    fn key(&self, image: &[u8], out: &mut Vec<u8>) -> Result<(), SqlError>;
    /// Appends the key, or at least its first [`HEAD`] bytes.
    fn head(&self, image: &[u8], out: &mut Vec<u8>) -> Result<(), SqlError>;
}

/// Bytes of a head.
pub(crate) const HEAD: usize = 16;

/// Share of the sort memory that images without keys may take: keys made at the end have to find room, too.
const SHARE: usize = 4;

/// Memory taken with the first row, so that a small sort grows no further.
const FIRST_BYTES: usize = 32 << 10;
const FIRST_ROWS: usize = 256;

#[derive(Debug, Clone, Copy)]
struct Entry {
    head: u128,
    start: u32,
    len: u32,
}

fn head_of(key: &[u8]) -> u128 {
    let mut head = [0; HEAD];
    match key.first_chunk() {
        Some(first) => head = *first,
        None => head[..key.len()].copy_from_slice(key),
    }
    u128::from_be_bytes(head)
}

/// Takes row images and gives them back in order.
pub(crate) struct HeadSorter<'k> {
    keys: &'k dyn MakeKeys,
    arena: Vec<u8>,
    entries: Vec<Entry>,
    limit_bytes: usize,
    /// Only so many rows are wanted; 0: all.
    top: usize,
    /// A head that so many rows do not exceed: rows behind it are not wanted.
    bound: Option<u128>,
    scratch: Vec<u8>,
    /// Takes all rows, once they are too many.
    whole: Option<Sorter>,
}

impl<'k> HeadSorter<'k> {
    /// `limit_bytes`: memory for images and keys. `top`: rows that are wanted, 0 for all.
    pub fn new(keys: &'k dyn MakeKeys, limit_bytes: usize, top: usize) -> HeadSorter<'k> {
        HeadSorter {
            keys,
            arena: Vec::new(),
            entries: Vec::new(),
            limit_bytes: limit_bytes.min(1 << 30),
            top,
            bound: None,
            scratch: Vec::new(),
            whole: None,
        }
    }

    /// Adds a row.
    pub fn push(&mut self, rt: &Runtime<'_>, image: &[u8]) -> Result<(), SqlError> {
        self.scratch.clear();
        if let Some(whole) = &mut self.whole {
            self.keys.key(image, &mut self.scratch)?;
            return whole.push(rt, &self.scratch, image);
        }
        self.keys.head(image, &mut self.scratch)?;
        let head = head_of(&self.scratch);
        if self.bound.is_some_and(|bound| head > bound) {
            return Ok(());
        }
        if self.entries.capacity() == 0 {
            self.arena.reserve(FIRST_BYTES);
            self.entries.reserve(FIRST_ROWS);
        }
        self.entries.push(Entry {
            head,
            start: self.arena.len() as u32,
            len: image.len() as u32,
        });
        self.arena.extend_from_slice(image);
        if self.top != 0 && self.entries.len() >= 2 * self.top.max(512) {
            self.keep_top()?;
        }
        if self.bytes() > self.limit_bytes / SHARE {
            self.give_up(rt)?;
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.arena.len() + self.entries.len() * size_of::<Entry>()
    }

    fn image<'a>(arena: &'a [u8], e: &Entry) -> &'a [u8] {
        &arena[e.start as usize..][..e.len as usize]
    }

    /// Hands all rows to a sorter with whole keys.
    fn give_up(&mut self, rt: &Runtime<'_>) -> Result<(), SqlError> {
        let mut whole = Sorter::new(self.limit_bytes, self.top);
        for e in &self.entries {
            let image = Self::image(&self.arena, e);
            self.scratch.clear();
            self.keys.key(image, &mut self.scratch)?;
            whole.push(rt, &self.scratch, image)?;
        }
        (self.arena, self.entries) = (Vec::new(), Vec::new());
        self.whole = Some(whole);
        Ok(())
    }

    fn sort(&mut self) -> Result<(), SqlError> {
        self.entries.sort_unstable_by_key(|e| (e.head, e.start));
        let mut keys = Vec::new();
        for tied in self.entries.chunk_by_mut(|a, b| a.head == b.head) {
            if tied.len() > 1 {
                sort_tied(self.keys, &self.arena, tied, &mut keys)?;
            }
        }
        Ok(())
    }

    /// Forgets all but the first `top` rows.
    fn keep_top(&mut self) -> Result<(), SqlError> {
        self.sort()?;
        self.entries.truncate(self.top);
        self.bound = self.entries.last().map(|e| e.head);
        let mut arena = Vec::with_capacity(self.arena.len() / 2);
        // In the order they came, so that starts keep telling it.
        self.entries.sort_unstable_by_key(|e| e.start);
        for e in &mut self.entries {
            let start = arena.len() as u32;
            arena.extend_from_slice(Self::image(&self.arena, e));
            e.start = start;
        }
        self.arena = arena;
        Ok(())
    }

    /// No more rows come: gives them in order until `give` wants no more.
    pub fn finish(
        mut self,
        rt: &Runtime<'_>,
        give: &mut dyn FnMut(&[u8]) -> Result<bool, SqlError>,
    ) -> Result<(), SqlError> {
        if let Some(whole) = self.whole {
            return give_sorted(rt, whole, give);
        }
        self.sort()?;
        for (n, e) in self.entries.iter().enumerate() {
            if n % 1024 == 1023 {
                rt.tick()?;
            }
            if !give(Self::image(&self.arena, e))? {
                break;
            }
        }
        Ok(())
    }
}

/// Sorts entries of equal heads by their keys. `keys` is scratch.
fn sort_tied(
    make: &dyn MakeKeys,
    arena: &[u8],
    tied: &mut [Entry],
    keys: &mut Vec<u8>,
) -> Result<(), SqlError> {
    keys.clear();
    let mut spans = Vec::with_capacity(tied.len());
    for e in tied.iter() {
        let start = keys.len();
        make.key(HeadSorter::image(arena, e), keys)?;
        spans.push((start..keys.len(), *e));
    }
    let key = |span: &std::ops::Range<usize>| &keys[span.clone()];
    spans.sort_unstable_by(|(a, x), (b, y)| key(a).cmp(key(b)).then(x.start.cmp(&y.start)));
    for (to, (_, e)) in tied.iter_mut().zip(spans) {
        *to = e;
    }
    Ok(())
}
