//! Bulk load for CREATE INDEX: fills an empty tree from a sorted stream, and writes each leaf once
//! and nearly full.
//!
//! # Invariants
//! - B1: the tree is consistent at all times. The entries written so far can be read, checked and
//!   freed.
//! - B2: all pending keys are above every key in the tree, and its last leaf is empty until the
//!   end.

use crate::node::edit::push_cell;
use crate::node::{CAPACITY, ENTRY_OVERHEAD, Node, common_prefix};
use crate::redo;
use crate::split::{SPLIT_LOG_BYTES, separator};
use crate::tree::{MAX_ENTRY, MAX_KEY, Seek, TreeHandle};
use nfold_store::{PAGE_SIZE, Stop, Store, StoreError, TrxId};

/// The fill target of a leaf. A sixteenth stays free for updates.
const FILL: usize = CAPACITY / 16 * 15;

/// Collects the entries of one leaf at a time. The tree must be empty, and no other thread may use
/// it until [`finish`](Self::finish) returns.
#[derive(Debug, Default)]
pub struct Builder {
    /// The keys and values of the pending entries.
    bytes: Vec<u8>,
    /// The (key length, value length) of each pending entry.
    lens: Vec<(u16, u16)>,
    /// The lower fence of the leaf that the pending entries will fill.
    lower: Vec<u8>,
    newest_trx: TrxId,
    entries: u64,
}

impl Builder {
    /// `newest_trx` becomes the newest transaction id of the leaves.
    pub fn new(newest_trx: TrxId) -> Builder {
        Builder {
            newest_trx,
            ..Builder::default()
        }
    }

    /// Raises the newest transaction id for the entries from here on.
    pub fn raise_newest_trx(&mut self, id: TrxId) {
        self.newest_trx = self.newest_trx.max(id);
    }

    /// The number of entries added so far.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Adds an entry. Its key must be above all keys added before; otherwise the result is a
    /// `Corrupt` error. An entry that is too large is a `TooLarge` error. On `Wait`, nothing was
    /// added; call again.
    pub fn push(
        &mut self,
        tree: &TreeHandle,
        store: &Store,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), Stop> {
        if key.len() > MAX_KEY || key.len() + value.len() > MAX_ENTRY {
            return Err(StoreError::TooLarge {
                what: "index entry",
                limit: MAX_ENTRY as u64,
            }
            .into());
        }
        if self.last_key().is_some_and(|last| last >= key) {
            return Err(tree.corrupt(
                tree.tree.root,
                "keys of a tree being built are not ascending",
            ));
        }
        let prefix = common_prefix(&self.lower, key);
        let more = key.len() + value.len() + ENTRY_OVERHEAD;
        let saved = prefix * (self.lens.len() + 1);
        let fences = self.lower.len() + key.len();
        if self.raw_bytes() + more + fences > FILL + saved && !self.lens.is_empty() {
            self.flush(tree, store, Some(key))?;
        }
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.lens.push((key.len() as u16, value.len() as u16));
        self.entries += 1;
        Ok(())
    }

    /// Writes the remaining entries. On `Wait`, call again.
    pub fn finish(&mut self, tree: &TreeHandle, store: &Store) -> Result<(), Stop> {
        // The last leaf has no upper fence, so its keys have no common prefix that could save
        // bytes.
        while self.lower.len() + self.raw_bytes() > CAPACITY {
            self.flush(tree, store, None)?;
        }
        if self.lens.is_empty() {
            return Ok(());
        }
        let _smo = tree.hold_smo(store);
        let path = tree.path(store, Seek::Last)?;
        let mut mtr = store.mtr();
        mtr.reserve(SPLIT_LOG_BYTES, tree.tree.space, 0)?;
        let leaf = mtr.latch(tree.page_id(path[0].0))?;
        if Node::new(mtr.words(leaf)).count() != 0 {
            return Err(tree.corrupt(
                path[0].0,
                "the last leaf of a tree being built is not empty",
            ));
        }
        redo::log_append(&mut mtr, leaf, &self.cells(self.lens.len(), 0));
        mtr.set_newest_trx(leaf, self.newest_trx);
        mtr.commit();
        self.drop_first(self.lens.len());
        Ok(())
    }

    fn raw_bytes(&self) -> usize {
        self.bytes.len() + self.lens.len() * ENTRY_OVERHEAD
    }

    fn last_key(&self) -> Option<&[u8]> {
        let (key, value) = self.lens.last()?;
        let start = self.bytes.len() - *key as usize - *value as usize;
        Some(&self.bytes[start..start + *key as usize])
    }

    /// The key of pending entry `i`.
    fn key_at(&self, i: usize) -> &[u8] {
        let start: usize = self.lens[..i]
            .iter()
            .map(|(k, v)| *k as usize + *v as usize)
            .sum();
        &self.bytes[start..start + self.lens[i].0 as usize]
    }

    /// The first `count` pending entries, as cells for a page with a common prefix of `prefix`
    /// bytes.
    fn cells(&self, count: usize, prefix: usize) -> Vec<u8> {
        let mut cells = Vec::with_capacity(PAGE_SIZE);
        let mut rest = &self.bytes[..];
        for (key_len, value_len) in &self.lens[..count] {
            let (key, after) = rest.split_at(*key_len as usize);
            let (value, after) = after.split_at(*value_len as usize);
            push_cell(&mut cells, &key[prefix..], value);
            rest = after;
        }
        cells
    }

    fn drop_first(&mut self, count: usize) {
        let bytes: usize = self.lens[..count]
            .iter()
            .map(|(k, v)| *k as usize + *v as usize)
            .sum();
        self.bytes.drain(..bytes);
        self.lens.drain(..count);
    }

    /// Writes as many pending entries as fit into the last leaf, and adds an empty leaf after it.
    /// `next` is the key that follows the pending ones.
    fn flush(&mut self, tree: &TreeHandle, store: &Store, next: Option<&[u8]>) -> Result<(), Stop> {
        let most = if next.is_some() {
            self.lens.len()
        } else {
            self.lens.len() - 1
        };
        let mut fit = None;
        for count in (1..=most).rev() {
            let right = if count == self.lens.len() {
                next.unwrap_or(&[])
            } else {
                self.key_at(count)
            };
            let fence = separator(self.key_at(count - 1), right).to_vec();
            let prefix = common_prefix(&self.lower, &fence);
            let taken: usize = self.lens[..count]
                .iter()
                .map(|(k, v)| *k as usize + *v as usize + ENTRY_OVERHEAD - prefix)
                .sum();
            if taken + self.lower.len() + fence.len() <= CAPACITY {
                fit = Some((count, fence, prefix));
                break;
            }
        }
        let Some((count, fence, prefix)) = fit else {
            return Err(StoreError::TooLarge {
                what: "index entry",
                limit: MAX_ENTRY as u64,
            }
            .into());
        };
        {
            let _smo = tree.hold_smo(store);
            let path = tree.path(store, Seek::Last)?;
            let mut mtr = store.mtr();
            let levels = path.len() + 1;
            mtr.reserve((levels + 1) * SPLIT_LOG_BYTES, tree.tree.space, levels)?;
            let leaf = tree.cut_empty_last(&mut mtr, &path, &fence)?;
            redo::log_append(&mut mtr, leaf, &self.cells(count, prefix));
            mtr.set_newest_trx(leaf, self.newest_trx);
            mtr.commit();
        }
        self.drop_first(count);
        self.lower = fence;
        Ok(())
    }
}
