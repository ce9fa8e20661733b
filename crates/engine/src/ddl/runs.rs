//! Sorted runs in a scratch file, and their merge: entries of an index that is larger than the
//! memory for building one.
//!
//! # Picture
//! ```text
//! run:    entry entry ...                        sorted by key; runs follow each other in the file
//! entry:  [u32 key length][u32 value length][key][value]
//! ```

use nfold_store::{Scratch, Store, StoreError};

/// Bytes that are written, and read, at once.
const BLOCK: usize = 1 << 20;
/// Least bytes of a run that are read at once when there are many runs.
const MIN_BLOCK: usize = 64 << 10;
/// Bytes of the two lengths.
const HEAD: usize = 8;

/// Runs as they are written.
pub(super) struct Runs {
    scratch: Scratch,
    /// Where each run begins; the last one ends at `end`.
    starts: Vec<u64>,
    end: u64,
    buffer: Vec<u8>,
}

impl Runs {
    pub(super) fn create(store: &Store) -> Result<Runs, StoreError> {
        Ok(Runs {
            scratch: store.scratch()?,
            starts: Vec::new(),
            end: 0,
            buffer: Vec::new(),
        })
    }

    /// Writes a run of entries that are in order.
    pub(super) fn add<'e>(
        &mut self,
        entries: impl Iterator<Item = (&'e [u8], &'e [u8])>,
    ) -> Result<(), StoreError> {
        self.starts.push(self.end);
        for (key, value) in entries {
            self.buffer
                .extend_from_slice(&(key.len() as u32).to_le_bytes());
            self.buffer
                .extend_from_slice(&(value.len() as u32).to_le_bytes());
            self.buffer.extend_from_slice(key);
            self.buffer.extend_from_slice(value);
            if self.buffer.len() >= BLOCK {
                self.flush()?;
            }
        }
        self.flush()
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        self.scratch.write_at(self.end, &self.buffer)?;
        self.end += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Passes all entries to `take` in the order of their keys. `memory`: bytes for reading, of all
    /// runs together; a run takes 64 KiB at least.
    pub(super) fn merge<E: From<StoreError>>(
        self,
        memory: usize,
        mut take: impl FnMut(&[u8], &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let block = (memory / self.starts.len().max(1)).clamp(MIN_BLOCK, BLOCK);
        let ends = self.starts.iter().skip(1).copied().chain([self.end]);
        let mut runs = Vec::with_capacity(self.starts.len());
        for (start, end) in self.starts.iter().copied().zip(ends) {
            let mut run = Run::new(start, end, block);
            if run.advance(&self.scratch)? {
                runs.push(run);
            }
        }
        // A binary heap with the least key first. A sorted list is a valid heap.
        runs.sort_by(|a, b| a.key().cmp(b.key()));
        while let Some(first) = runs.first_mut() {
            take(first.key(), first.value())?;
            if !first.advance(&self.scratch)? {
                runs.swap_remove(0);
            }
            sift_down(&mut runs);
        }
        Ok(())
    }
}

/// Restores the heap order after the first element has changed.
fn sift_down(runs: &mut [Run]) {
    let mut at = 0;
    loop {
        let child = 2 * at + 1;
        let children = child..runs.len().min(child + 2);
        let Some(least) = children.min_by_key(|i| runs[*i].key()) else {
            return;
        };
        if runs[at].key() <= runs[least].key() {
            return;
        }
        runs.swap(at, least);
        at = least;
    }
}

/// A run as it is read: a block of it, and the entry that comes next.
struct Run {
    /// What follows in the file is `next..end`.
    next: u64,
    end: u64,
    block: Vec<u8>,
    block_len: usize,
    /// The entry: its key is `block[key_at..value_at]`, its value `block[value_at..after]`.
    key_at: usize,
    value_at: usize,
    after: usize,
}

impl Run {
    fn new(next: u64, end: u64, block_len: usize) -> Run {
        Run {
            next,
            end,
            block: Vec::new(),
            block_len,
            key_at: 0,
            value_at: 0,
            after: 0,
        }
    }

    fn key(&self) -> &[u8] {
        &self.block[self.key_at..self.value_at]
    }

    fn value(&self) -> &[u8] {
        &self.block[self.value_at..self.after]
    }

    /// Goes to the next entry; false at the end.
    fn advance(&mut self, scratch: &Scratch) -> Result<bool, StoreError> {
        if self.after == self.block.len() && self.next == self.end {
            return Ok(false);
        }
        let head = self.take(HEAD, scratch)?;
        let len = |at: usize| {
            let bytes = self.block[head + at..].first_chunk();
            bytes.map_or(0, |b| u32::from_le_bytes(*b) as usize)
        };
        let (key, value) = (len(0), len(4));
        self.key_at = self.take(key + value, scratch)?;
        self.value_at = self.key_at + key;
        Ok(true)
    }

    /// Makes sure that the next `len` bytes are in the block, and passes over them; gives where
    /// they begin.
    fn take(&mut self, len: usize, scratch: &Scratch) -> Result<usize, StoreError> {
        let left = self.block.len() - self.after;
        if left < len {
            self.block.drain(..self.after);
            self.after = 0;
            let wanted = self.block_len.max(len) - left;
            let more = self.end.saturating_sub(self.next).min(wanted as u64) as usize;
            if left + more < len {
                return Err(StoreError::Io {
                    kind: std::io::ErrorKind::UnexpectedEof,
                    what: "a scratch file is shorter than what was written".into(),
                });
            }
            self.block.resize(left + more, 0);
            scratch.read_at(self.next, &mut self.block[left..])?;
            self.next += more as u64;
        }
        let at = self.after;
        self.after += len;
        Ok(at)
    }
}
