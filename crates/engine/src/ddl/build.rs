//! Filling an empty tree, for CREATE INDEX and for tables that are copied. Entries that fit in
//! memory are sorted there, and the tree is built from them, leaf by leaf from the left (stacked).
//!
//! # Picture
//! When the memory is full for the first time, the order of the entries decides:
//! ```text
//! not sorted   sorted runs in a scratch file, merged at the end and stacked (`runs`)
//! sorted       stacked at once while the order lasts; rows of a copied table mostly come sorted
//!                └ an entry below the last one: the rest is inserted one by one, in sorted chunks
//! ```
//!
//! All calls block.

use nfold_btree::{Builder, Room, TreeHandle};
use nfold_store::{SpaceId, Store, StoreError};

use super::runs::Runs;
use super::stop;
use crate::error::{EngineError, Stop, lift};
use crate::stats::block;

#[cfg(test)]
mod tests;

/// The number of entries between two checks whether the statement was killed.
const CHECKED: u64 = 1024;

/// The number of leading bytes of a key that no other entry's key may start with: all bytes of a
/// primary key, and those before the primary key in a unique secondary index. `None` if the key may
/// repeat, because it has a NULL.
pub(super) type OwnBytes<'a> = Box<dyn Fn(&[u8]) -> Option<usize> + 'a>;

/// What was done with the entries for which memory had no room.
enum Written {
    /// All entries fit so far.
    Nothing,
    /// They came in order, and are in the tree that is being built.
    Stacked(Stack),
    /// They are in a scratch file.
    Runs(Runs),
    /// They are in the tree, and its building has ended: further entries are inserted into it.
    Inserted,
}

/// Collects the entries of one tree, and writes them to it. The tree is complete only after
/// [`finish`](Self::finish).
pub(super) struct Filler<'a> {
    target: Target<'a>,
    /// Keys and values of the entries in memory.
    arena: Vec<u8>,
    /// (start, key end, value end)
    entries: Vec<(u32, u32, u32)>,
    /// The most bytes that `arena` may take.
    memory: usize,
    written: Written,
}

/// The tree that is filled, and the state of its entries.
struct Target<'a> {
    store: &'a Store,
    space: SpaceId,
    tree: &'a TreeHandle,
    /// The newest transaction id of the entries so far. Leaves get it as theirs.
    newest_trx: u64,
    /// For a unique index. `None`: any key may repeat.
    unique: Option<OwnBytes<'a>>,
}

impl<'a> Filler<'a> {
    /// A filler of `tree`, which must be empty and unknown to other sessions. `memory`: how many
    /// bytes of entries are sorted in memory, at most 4 GiB. `unique`: `None` if any key may
    /// repeat.
    pub(super) fn new(
        store: &'a Store,
        memory: usize,
        space: SpaceId,
        tree: &'a TreeHandle,
        unique: Option<OwnBytes<'a>>,
    ) -> Self {
        Filler {
            target: Target {
                store,
                space,
                tree,
                newest_trx: 0,
                unique,
            },
            arena: Vec::new(),
            entries: Vec::new(),
            memory: memory.min(u32::MAX as usize),
            written: Written::Nothing,
        }
    }

    /// Adds an entry, in any order. `trx`: the newest transaction that changed its row. A duplicate
    /// key may be reported here for any entry so far, or not before [`finish`](Self::finish).
    pub(super) fn push(&mut self, key: &[u8], value: &[u8], trx: u64) -> Result<(), Filled> {
        if self.arena.len() + key.len() + value.len() > self.memory && !self.entries.is_empty() {
            self.write_chunk()?;
        }
        self.target.newest_trx = self.target.newest_trx.max(trx);
        let start = self.arena.len() as u32;
        self.arena.extend_from_slice(key);
        let middle = self.arena.len() as u32;
        self.arena.extend_from_slice(value);
        self.entries.push((start, middle, self.arena.len() as u32));
        Ok(())
    }

    /// Sorts the entries in memory; whether they were in order.
    fn sort(&mut self) -> bool {
        let arena = &self.arena;
        let key = |e: &(u32, u32, u32)| &arena[e.0 as usize..e.1 as usize];
        let sorted = self.entries.is_sorted_by(|a, b| key(a) <= key(b));
        if !sorted {
            self.entries.sort_unstable_by(|a, b| key(a).cmp(key(b)));
        }
        sorted
    }

    /// Writes the entries in memory, because it is full or because they are the last.
    fn write_chunk(&mut self) -> Result<(), Filled> {
        let in_order = self.sort();
        let arena = &self.arena;
        let entries = self.entries.iter().map(|&(start, middle, end)| {
            let key = &arena[start as usize..middle as usize];
            (key, &arena[middle as usize..end as usize])
        });
        let target = &self.target;
        self.written = match std::mem::replace(&mut self.written, Written::Inserted) {
            Written::Nothing if in_order => {
                let mut stack = Stack::default();
                stack.push_all(target, entries)?;
                Written::Stacked(stack)
            }
            Written::Stacked(mut stack)
                if entries.clone().next().is_some_and(|e| stack.is_below(e.0)) =>
            {
                stack.push_all(target, entries)?;
                Written::Stacked(stack)
            }
            Written::Stacked(mut stack) => {
                stack.finish(target)?;
                target.insert_all(entries)?;
                Written::Inserted
            }
            Written::Nothing => {
                let mut runs = Runs::create(target.store)?;
                runs.add(entries)?;
                Written::Runs(runs)
            }
            Written::Runs(mut runs) => {
                runs.add(entries)?;
                Written::Runs(runs)
            }
            Written::Inserted => {
                target.insert_all(entries)?;
                Written::Inserted
            }
        };
        self.arena.clear();
        self.entries.clear();
        Ok(())
    }

    /// Writes the remaining entries. After this the tree has all of them; it is not yet durable.
    pub(super) fn finish(mut self) -> Result<(), Filled> {
        if matches!(self.written, Written::Nothing) {
            self.sort();
        }
        if !self.entries.is_empty() {
            self.write_chunk()?;
        }
        match self.written {
            Written::Stacked(mut stack) => stack.finish(&self.target),
            Written::Runs(runs) => {
                // Frees memory for reading the runs.
                drop((self.arena, self.entries));
                let mut stack = Stack::default();
                runs.merge(self.memory, |key, value| {
                    stack.push(&self.target, key, value)
                })?;
                stack.finish(&self.target)
            }
            Written::Nothing | Written::Inserted => Ok(()),
        }
    }
}

impl Target<'_> {
    /// The bytes of `key` that must be unique, see [`OwnBytes`].
    fn own<'k>(&self, key: &'k [u8]) -> Option<&'k [u8]> {
        let own = self.unique.as_ref()?(key)?;
        key.get(..own)
    }

    /// Inserts entries into the tree one by one, after its building has ended.
    fn insert_all<'e>(
        &self,
        entries: impl Iterator<Item = (&'e [u8], &'e [u8])>,
    ) -> Result<(), Filled> {
        for (key, value) in entries {
            stop::check()?;
            if let Some(own) = self.own(key)
                && self.exists(own)?
            {
                return Err(Filled::Duplicate(key.to_vec()));
            }
            block(|| insert(self, key, value))?;
        }
        Ok(())
    }

    /// Whether the tree has an entry whose key starts with `own`.
    fn exists(&self, own: &[u8]) -> Result<bool, EngineError> {
        let mut cursor = self.tree.cursor(crate::read::prefix_range(own), false);
        let mut batch = nfold_btree::EntryBatch::default();
        block(|| cursor.next_batch(self.tree, self.store, 1, &mut batch))?;
        Ok(!batch.is_empty())
    }
}

/// A tree that is built from below.
#[derive(Default)]
struct Stack {
    builder: Builder,
    last: Option<Vec<u8>>,
}

impl Stack {
    /// Whether all its entries are below `key`.
    fn is_below(&self, key: &[u8]) -> bool {
        self.last.as_ref().is_none_or(|last| **last < *key)
    }

    fn push_all<'e>(
        &mut self,
        target: &Target<'_>,
        entries: impl Iterator<Item = (&'e [u8], &'e [u8])>,
    ) -> Result<(), Filled> {
        for (key, value) in entries {
            self.push(target, key, value)?;
        }
        Ok(())
    }

    /// Adds an entry. The caller makes sure that it is not below the last one. Fails if the two
    /// have the same unique bytes.
    fn push(&mut self, target: &Target<'_>, key: &[u8], value: &[u8]) -> Result<(), Filled> {
        if self.builder.entries().is_multiple_of(CHECKED) {
            stop::check()?;
        }
        let last = self.last.get_or_insert_default();
        if self.builder.entries() > 0
            && let Some(own) = target.own(key)
            && target.own(last) == Some(own)
        {
            return Err(Filled::Duplicate(key.to_vec()));
        }
        last.clear();
        last.extend_from_slice(key);
        self.builder.raise_newest_trx(target.newest_trx);
        block(|| self.builder.push(target.tree, target.store, key, value))?;
        Ok(())
    }

    /// Completes the tree.
    fn finish(&mut self, target: &Target<'_>) -> Result<(), Filled> {
        block(|| self.builder.finish(target.tree, target.store))?;
        Ok(())
    }
}

/// Inserts one entry into the tree, unless the tree has its key.
fn insert(target: &Target<'_>, key: &[u8], value: &[u8]) -> Result<(), Stop> {
    let Target { store, tree, .. } = target;
    let mut mtr = store.mtr();
    let mut pos = tree
        .leaf_for_write(store, &mut mtr, key, Room::Value(value.len()))
        .map_err(lift)?;
    mtr.reserve(key.len() + value.len() + 1024, target.space, 0)
        .map_err(lift)?;
    if !pos.found {
        tree.insert_at(&mut mtr, &mut pos, key, value);
        tree.set_newest_trx(&mut mtr, &pos, target.newest_trx);
    }
    mtr.commit();
    Ok(())
}

/// Why filling stopped.
pub(super) enum Filled {
    /// Two entries have this key.
    Duplicate(Vec<u8>),
    Error(EngineError),
}

impl From<EngineError> for Filled {
    fn from(error: EngineError) -> Self {
        Filled::Error(error)
    }
}

impl From<StoreError> for Filled {
    fn from(error: StoreError) -> Self {
        Filled::Error(error.into())
    }
}

impl Filled {
    /// As the error of building `index`.
    pub(super) fn into_error(self, index: &str) -> EngineError {
        match self {
            Filled::Duplicate(key) => EngineError::DuplicateInBuild {
                index: index.into(),
                key,
            },
            Filled::Error(error) => error,
        }
    }
}
