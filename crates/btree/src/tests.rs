//! Tests of trees over a real store, most of them against models.

mod build;
mod cold;
mod free;
mod hint;
mod long_points;
mod model;
mod recovery;
mod root;
mod run;
mod shape;
mod stress;
mod turns;

use crate::*;
use nfold_store::{RealDisk, Stop, Store, StoreError, StoreOptions};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Repeats a call, and waits between the attempts, until it returns a result.
fn finish<T>(mut call: impl FnMut() -> Result<T, Stop>) -> Result<T, StoreError> {
    loop {
        match call() {
            Ok(value) => return Ok(value),
            Err(Stop::Wait(wait)) => wait.block(),
            Err(Stop::Error(error)) => return Err(error),
        }
    }
}

/// A store with one space and one tree in it.
struct World {
    store: Arc<Store>,
    tree: TreeHandle,
    dir: tempfile::TempDir,
    /// The end LSN of the last `put` or `remove`.
    ended: AtomicU64,
}

fn open(dir: &Path, pool_pages: u64, io_threads: usize) -> Arc<Store> {
    let options = StoreOptions {
        pool_bytes: pool_pages << 14,
        log_bytes: 16 << 20,
        io_threads,
        ..StoreOptions::default()
    };
    let disk = Arc::new(RealDisk::new(dir, false));
    Store::open(options, disk, Arc::new(BtreeRedo), &|_| ())
        .unwrap()
        .0
}

impl World {
    fn new(pool_pages: u64, io_threads: usize) -> World {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path(), pool_pages, io_threads);
        let space = finish(|| store.create_space("t")).unwrap();
        let tree = Self::new_tree(&store, space, 7);
        World {
            store,
            tree,
            dir,
            ended: AtomicU64::new(0),
        }
    }

    fn new_tree(store: &Store, space: u32, index_id: u64) -> TreeHandle {
        let root = finish(|| {
            let mut mtr = store.mtr();
            mtr.reserve(TreeHandle::CREATE_LOG_BYTES, space, 1)?;
            let root = TreeHandle::create(&mut mtr, space, index_id);
            mtr.commit();
            Ok(root)
        });
        TreeHandle::open(Tree {
            space,
            root: root.unwrap(),
            index_id,
        })
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, StoreError> {
        finish(|| {
            let mut mtr = self.store.mtr();
            mtr.reserve(
                key.len() + value.len() + ENTRY_LOG_OVERHEAD,
                self.tree.tree().space,
                0,
            )?;
            let mut pos =
                self.tree
                    .leaf_for_write(&self.store, &mut mtr, key, Room::Value(value.len()))?;
            let found = pos.found;
            if found {
                self.tree.replace_value_at(&mut mtr, &pos, value);
            } else {
                self.tree.insert_at(&mut mtr, &mut pos, key, value);
            }
            self.ended.store(mtr.commit().end, Relaxed);
            Ok(found)
        })
    }

    fn remove(&self, key: &[u8]) -> bool {
        let (found, underfull) = finish(|| {
            let mut mtr = self.store.mtr();
            mtr.reserve(ENTRY_LOG_OVERHEAD, self.tree.tree().space, 0)?;
            let mut pos = self
                .tree
                .leaf_for_write(&self.store, &mut mtr, key, Room::Unchanged)?;
            let found = pos.found;
            let underfull = found && self.tree.remove_at(&mut mtr, &mut pos);
            self.ended.store(mtr.commit().end, Relaxed);
            Ok((found, underfull))
        })
        .unwrap();
        if underfull {
            finish(|| self.tree.compact(&self.store, key)).unwrap();
        }
        found
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let mut value = Vec::new();
        finish(|| self.tree.get(&self.store, key, &mut value))
            .unwrap()
            .then_some(value)
    }

    /// As [`get`](Self::get), by a reader that caches the tree's shape.
    fn look(&self, key: &[u8], shape: &mut TreeShape) -> Option<Vec<u8>> {
        let mut values = vec![9; 3];
        let found = finish(|| {
            self.tree
                .get_span(&self.store, key, shape, &mut values, || ())
        });
        found.unwrap().map(|span| {
            assert!(span.start >= 3, "the caller's bytes are unchanged");
            values[span].to_vec()
        })
    }

    /// All entries of a range, read in batches of at most `max`.
    fn scan(&self, range: KeyRange, reverse: bool, max: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut cursor = self.tree.cursor(range, reverse);
        let (mut out, mut batch) = (Vec::new(), EntryBatch::default());
        loop {
            batch.clear();
            let more =
                finish(|| cursor.next_batch(&self.tree, &self.store, max, &mut batch)).unwrap();
            assert!(batch.len() <= max);
            out.extend(batch.iter().map(|(k, v)| (k.to_vec(), v.to_vec())));
            if !more {
                return out;
            }
        }
    }

    fn check(&self) -> TreeCheck {
        let mut check = TreeCheck::default();
        while !finish(|| {
            self.tree
                .check_step(&self.store, &mut check, &mut |_, _| ())
        })
        .unwrap()
        {}
        assert!(check.problems.is_empty(), "{:#?}", check.problems);
        check
    }

    fn assert_matches(&self, model: &BTreeMap<Vec<u8>, Vec<u8>>) {
        let check = self.check();
        assert_eq!(check.entries, model.len() as u64);
        let all: Vec<_> = model.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        assert_eq!(self.scan(KeyRange::all(), false, 1000), all);
    }
}

/// A small deterministic pseudorandom generator (xorshift).
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}
