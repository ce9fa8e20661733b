//! Filling an empty tree: entries are collected, sorted and stacked leaf by leaf; what does not fit in memory goes in by chunks.

use nfold_btree::{Builder, Room, TreeHandle};
use nfold_store::{SpaceId, Store};

use crate::error::{EngineError, Stop, lift};
use crate::stats::block;

/// Bytes of entries that are sorted in memory.
const CHUNK_BYTES: usize = 128 << 20;

/// For a key: how many of its bytes must differ from every other's; `None`: it may repeat (NULLs).
pub(super) type OwnBytes<'a> = Box<dyn Fn(&[u8]) -> Option<usize> + 'a>;

/// Collects entries for one tree.
pub(super) struct Filler<'a> {
    store: &'a Store,
    space: SpaceId,
    tree: &'a TreeHandle,
    arena: Vec<u8>,
    /// (start, key end, value end)
    entries: Vec<(u32, u32, u32)>,
    /// Becomes the newest transaction id of the leaves.
    newest_trx: u64,
    /// A chunk was written: the tree is not empty any more.
    chunked: bool,
    /// Keys (all bytes, or the own ones of a unique index) may not repeat.
    unique: Option<OwnBytes<'a>>,
}

impl<'a> Filler<'a> {
    /// `unique`: for a key, how many of its bytes must differ from every other's; `None` from it: the key may repeat (NULLs).
    pub(super) fn new(
        store: &'a Store,
        space: SpaceId,
        tree: &'a TreeHandle,
        unique: Option<OwnBytes<'a>>,
    ) -> Self {
        Filler {
            store,
            space,
            tree,
            arena: Vec::new(),
            entries: Vec::new(),
            newest_trx: 0,
            chunked: false,
            unique,
        }
    }

    /// Adds an entry. An error: another entry has the key.
    pub(super) fn push(&mut self, key: &[u8], value: &[u8], trx: u64) -> Result<(), Filled> {
        self.newest_trx = self.newest_trx.max(trx);
        if self.arena.len() + key.len() + value.len() > CHUNK_BYTES {
            self.write_chunk()?;
        }
        let start = self.arena.len() as u32;
        self.arena.extend_from_slice(key);
        let middle = self.arena.len() as u32;
        self.arena.extend_from_slice(value);
        self.entries.push((start, middle, self.arena.len() as u32));
        Ok(())
    }

    fn sort(&mut self) {
        let arena = &self.arena;
        let key = |e: &(u32, u32, u32)| &arena[e.0 as usize..e.1 as usize];
        if !self.entries.is_sorted_by(|a, b| key(a) <= key(b)) {
            self.entries.sort_unstable_by(|a, b| key(a).cmp(key(b)));
        }
    }

    /// The own bytes of a key that must be unique.
    fn own<'k>(&self, key: &'k [u8]) -> Option<&'k [u8]> {
        self.unique
            .as_ref()
            .and_then(|own| own(key))
            .and_then(|n| key.get(..n))
    }

    fn check_sorted(&self) -> Result<(), Filled> {
        let key = |e: &(u32, u32, u32)| &self.arena[e.0 as usize..e.1 as usize];
        for pair in self.entries.windows(2) {
            let (a, b) = (key(&pair[0]), key(&pair[1]));
            if self.own(a).is_some_and(|own| self.own(b) == Some(own)) {
                return Err(Filled::Duplicate(b.to_vec()));
            }
        }
        Ok(())
    }

    /// Memory is full: this chunk goes in entry by entry, in order.
    fn write_chunk(&mut self) -> Result<(), Filled> {
        self.sort();
        self.check_sorted()?;
        for &(start, middle, end) in &self.entries {
            let key = &self.arena[start as usize..middle as usize];
            let value = &self.arena[middle as usize..end as usize];
            if self.chunked
                && let Some(own) = self.own(key)
                && self.exists(own)?
            {
                return Err(Filled::Duplicate(key.to_vec()));
            }
            block(|| {
                insert(
                    self.store,
                    self.space,
                    self.tree,
                    self.newest_trx,
                    (key, value),
                )
            })?;
        }
        self.chunked = true;
        self.arena.clear();
        self.entries.clear();
        Ok(())
    }

    fn exists(&self, own: &[u8]) -> Result<bool, EngineError> {
        let mut cursor = self.tree.cursor(crate::read::prefix_range(own), false);
        let mut batch = nfold_btree::EntryBatch::default();
        block(|| cursor.next_batch(self.tree, self.store, 1, &mut batch))?;
        Ok(!batch.is_empty())
    }

    /// Writes what is left.
    pub(super) fn finish(mut self) -> Result<(), Filled> {
        if self.chunked {
            return self.write_chunk();
        }
        self.sort();
        self.check_sorted()?;
        let mut builder = Builder::new(self.newest_trx);
        for &(start, middle, end) in &self.entries {
            let key = &self.arena[start as usize..middle as usize];
            let value = &self.arena[middle as usize..end as usize];
            block(|| builder.push(self.tree, self.store, key, value))?;
        }
        block(|| builder.finish(self.tree, self.store))?;
        Ok(())
    }
}

fn insert(
    store: &Store,
    space: SpaceId,
    tree: &TreeHandle,
    trx: u64,
    (key, value): (&[u8], &[u8]),
) -> Result<(), Stop> {
    let mut mtr = store.mtr();
    let mut pos = tree
        .leaf_for_write(store, &mut mtr, key, Room::Value(value.len()))
        .map_err(lift)?;
    mtr.reserve(key.len() + value.len() + 1024, space, 0)
        .map_err(lift)?;
    if !pos.found {
        tree.insert_at(&mut mtr, &mut pos, key, value);
        tree.set_newest_trx(&mut mtr, &pos, trx);
    }
    mtr.commit();
    Ok(())
}

/// Why filling stopped.
pub(super) enum Filled {
    /// This key stands already.
    Duplicate(Vec<u8>),
    Error(EngineError),
}

impl From<EngineError> for Filled {
    fn from(error: EngineError) -> Self {
        Filled::Error(error)
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
