//! Trees filled with little memory, against a map.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use nfold_btree::{BtreeRedo, EntryBatch, KeyRange, Tree, TreeCheck, TreeHandle};
use nfold_store::{RealDisk, Store, StoreOptions};

use super::*;

/// Bytes of entries in memory: a few dozen of them.
const MEMORY: usize = 4 << 10;
const OWN: usize = 4;

fn store(dir: &Path) -> Arc<Store> {
    let options = StoreOptions {
        io_threads: 0,
        ..StoreOptions::default()
    };
    let disk = Arc::new(RealDisk::new(dir, false));
    let opened = Store::open(options, disk, Arc::new(BtreeRedo), &|_| ());
    opened.unwrap().0
}

fn scratch_files(dir: &Path) -> usize {
    let names = std::fs::read_dir(dir)
        .unwrap()
        .map(|f| f.unwrap().file_name());
    names
        .filter(|name| name.to_str().unwrap().ends_with(".scratch"))
        .count()
}

/// Fills a tree with `(own key, rest of the key)` in this order, and compares it with a map; the
/// key that stood there twice, if one did.
fn fill(store: &Store, memory: usize, unique: bool, keys: &[(u32, u32)]) -> Option<Vec<u8>> {
    let space = block(|| store.create_space("t").map_err(lift)).unwrap();
    let root = block(|| {
        let mut mtr = store.mtr();
        mtr.reserve(TreeHandle::CREATE_LOG_BYTES, space, 1)
            .map_err(lift)?;
        let root = TreeHandle::create(&mut mtr, space, 7);
        mtr.commit();
        Ok::<_, Stop>(root)
    });
    let (root, index_id) = (root.unwrap(), 7);
    let tree = TreeHandle::open(Tree {
        space,
        root,
        index_id,
    });
    let own: Option<OwnBytes<'_>> = unique.then(|| Box::new(|_: &[u8]| Some(OWN)) as _);
    let mut filler = Filler::new(store, memory, space, &tree, own);
    let mut model = BTreeMap::new();
    let mut filled = Ok(());
    for (i, (own, rest)) in keys.iter().enumerate() {
        let key = [own.to_be_bytes(), rest.to_be_bytes()].concat();
        let value = vec![i as u8; i % 90];
        filled = filler.push(&key, &value, i as u64);
        if filled.is_err() {
            break;
        }
        model.insert(key, value);
    }
    match filled.and_then(|()| filler.finish()) {
        Ok(()) => {}
        Err(Filled::Duplicate(key)) => {
            store.drop_space(space).unwrap();
            return Some(key);
        }
        Err(Filled::Error(e)) => panic!("{e}"),
    }
    let mut check = TreeCheck::default();
    while !block(|| {
        tree.check_step(store, &mut check, &mut |_, _| ())
            .map_err(lift)
    })
    .unwrap()
    {}
    assert!(check.problems.is_empty(), "{:?}", check.problems);
    let mut cursor = tree.cursor(KeyRange::all(), false);
    let (mut batch, mut found) = (EntryBatch::default(), BTreeMap::new());
    let mut more = true;
    while more {
        batch.clear();
        more = block(|| {
            cursor
                .next_batch(&tree, store, 1000, &mut batch)
                .map_err(lift)
        })
        .unwrap();
        found.extend(batch.iter().map(|(k, v)| (k.to_vec(), v.to_vec())));
    }
    assert_eq!(found.len(), model.len());
    assert!(found == model);
    store.drop_space(space).unwrap();
    None
}

/// Numbers below `n`, each once, in an order of no kind.
fn shuffled(n: u32) -> Vec<(u32, u32)> {
    let mut numbers: Vec<(u32, u32)> = (0..n).map(|i| (i, i ^ 5)).collect();
    numbers.sort_by_key(|(i, _)| i.wrapping_mul(2_654_435_761).rotate_left(7));
    numbers
}

#[test]
fn a_tree_larger_than_the_memory_holds_what_came_in_any_order() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let sorted: Vec<(u32, u32)> = (0..5000).map(|i| (i / 3, i)).collect();
    let mut reversed = sorted.clone();
    reversed.reverse();
    // In order at first, then below and between what is there.
    let mut half = sorted[2500..].to_vec();
    half.extend(shuffled(700).iter().map(|(i, j)| (i + 600, 90_000 + j)));
    half.extend(&sorted[..2500]);
    for keys in [sorted, reversed, half, shuffled(5000), Vec::new()] {
        for memory in [MEMORY, 0, 1 << 30] {
            assert_eq!(fill(&store, memory, false, &keys), None);
            assert_eq!(scratch_files(dir.path()), 0);
        }
    }
    for n in [0, 1, 2, 40, 100, 101] {
        assert_eq!(fill(&store, MEMORY, true, &shuffled(n)), None);
    }
}

#[test]
fn a_key_that_stands_there_twice_is_noticed_wherever_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let sorted: Vec<(u32, u32)> = (0..600).map(|i| (2 * i, i)).collect();
    let mut half = sorted[300..].to_vec();
    half.extend(&sorted[..300]);
    let mixed: Vec<(u32, u32)> = shuffled(600).iter().map(|(i, j)| (2 * i, *j)).collect();
    for keys in [sorted, half, mixed] {
        for memory in [MEMORY, 0, 1 << 30] {
            assert_eq!(fill(&store, memory, true, &keys), None);
            for (from, to) in [(0, 599), (599, 0), (17, 18), (350, 20), (20, 350)] {
                let mut twice = keys.clone();
                let own = keys[from].0;
                twice[to].0 = own;
                let key = fill(&store, memory, true, &twice).expect("a duplicate");
                assert_eq!(key[..OWN], own.to_be_bytes());
                assert_eq!(fill(&store, memory, false, &twice), None);
            }
        }
    }
    assert_eq!(scratch_files(dir.path()), 0);
}

#[test]
fn scratch_files_that_a_crash_left_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let left = store(dir.path());
    left.scratch().unwrap().write_at(0, b"bytes").unwrap();
    assert_eq!(scratch_files(dir.path()), 0);
    let one = left.scratch().unwrap();
    one.write_at(3, b"bytes").unwrap();
    let other = left.scratch().unwrap();
    let mut read = [0; 4];
    one.read_at(4, &mut read).unwrap();
    assert_eq!(&read, b"ytes");
    assert_eq!(scratch_files(dir.path()), 2);
    std::mem::forget((one, other));
    drop(left);
    let again = store(dir.path());
    assert_eq!(scratch_files(dir.path()), 0);
    drop(again);
}
