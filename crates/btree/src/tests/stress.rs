//! Multi-threaded tests: writers make the tree grow and shrink, while readers verify that permanent
//! entries are always found.

use super::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Keys divisible by this are permanent. The others come and go.
const STABLE: u32 = 8;
const KEYS: u32 = 6000;

fn stable_value(key: u32) -> Vec<u8> {
    vec![(key / STABLE) as u8; 20 + (key as usize / STABLE as usize) % 100]
}

fn key_of(key: &[u8]) -> u32 {
    u32::from_be_bytes(key.try_into().expect("keys of 4 bytes"))
}

/// Inserts and removes runs of non-permanent keys of this writer's residue class, so that leaves
/// split and merge.
fn write(world: &World, writer: u32, writers: u32, rounds: usize) {
    let mut rng = Rng(u64::from(writer) * 77 + 1);
    for _ in 0..rounds {
        let from = rng.below(KEYS as usize) as u32;
        let mine: Vec<u32> = (from..(from + 600).min(KEYS))
            .filter(|k| k % STABLE != 0 && k % writers == writer)
            .collect();
        let len = 50 + rng.below(400);
        for key in &mine {
            world.put(&key.to_be_bytes(), &vec![1; len]).unwrap();
        }
        for key in &mine {
            assert!(
                world.remove(&key.to_be_bytes()),
                "no other writer removes this key"
            );
        }
    }
}

/// Asserts that a run returned by a cursor is sorted, and that its permanent entries are complete
/// and correct.
fn assert_run(entries: &[(Vec<u8>, Vec<u8>)], lo: u32, hi: u32) {
    assert!(
        entries.windows(2).all(|w| w[0].0 < w[1].0),
        "keys are sorted and distinct"
    );
    let stable: Vec<u32> = entries
        .iter()
        .map(|e| key_of(&e.0))
        .filter(|k| k % STABLE == 0)
        .collect();
    let expected: Vec<u32> = (lo..hi).filter(|k| k % STABLE == 0).collect();
    assert_eq!(stable, expected, "all permanent keys are found");
    for (key, value) in entries {
        if key_of(key).is_multiple_of(STABLE) {
            assert_eq!(*value, stable_value(key_of(key)));
        }
    }
}

fn read(world: &World, reader: u64, stop: &AtomicBool, reads: &AtomicU64) {
    let mut rng = Rng(reader * 991 + 5);
    let mut batch = GetMany::new();
    let mut scan = PointScan::new();
    let mut places: BTreeMap<u32, RowHint> = BTreeMap::new();
    while !stop.load(Relaxed) {
        let key = rng.below((KEYS / STABLE) as usize) as u32 * STABLE;
        assert_eq!(world.get(&key.to_be_bytes()), Some(stable_value(key)));
        let (lo, len) = (rng.below(KEYS as usize) as u32, rng.below(300) as u32);
        let hi = (lo + len).min(KEYS);
        let range = KeyRange {
            lo: Bound::Included(lo.to_be_bytes().to_vec()),
            hi: Bound::Excluded(hi.to_be_bytes().to_vec()),
        };
        let reverse = rng.below(2) == 0;
        let mut entries = world.scan(range, reverse, 1 + rng.below(50));
        if reverse {
            entries.reverse();
        }
        assert_run(&entries, lo, hi);
        batch.clear();
        scan.clear();
        let mut wanted = Vec::new();
        for _ in 0..40 {
            let key = rng.below((KEYS / STABLE) as usize) as u32 * STABLE;
            batch.push(
                &key.to_be_bytes(),
                places.get(&key).copied().unwrap_or_default(),
            );
            scan.push(&key.to_be_bytes(), &(key + 30).min(KEYS).to_be_bytes());
            wanted.push(key);
        }
        assert!(!finish(|| world.tree.get_many(&world.store, &mut batch, usize::MAX)).unwrap());
        assert_eq!(batch.found().len(), wanted.len());
        for found in batch.found() {
            let key = wanted[found.key as usize];
            assert_eq!(batch.value(found), stable_value(key));
            places.insert(key, found.row_hint);
        }
        assert!(!finish(|| world.tree.scan_points(&world.store, &mut scan, usize::MAX)).unwrap());
        for (point, key) in wanted.iter().enumerate() {
            let of_point = scan
                .entries()
                .entries()
                .iter()
                .filter(|e| e.point as usize == point);
            let entries: Vec<_> = of_point
                .map(|e| {
                    (
                        scan.entries().key(e).to_vec(),
                        scan.entries().value(e).to_vec(),
                    )
                })
                .collect();
            assert_run(&entries, *key, (*key + 30).min(KEYS));
        }
        reads.fetch_add(1, Relaxed);
    }
}

fn run(pool_pages: u64, io_threads: usize, rounds: usize) {
    let rounds = if std::env::var("SOAK").is_ok() {
        rounds * 15
    } else {
        rounds
    };
    let world = World::new(pool_pages, io_threads);
    for key in (0..KEYS).step_by(STABLE as usize) {
        world.put(&key.to_be_bytes(), &stable_value(key)).unwrap();
    }
    let (stop, reads) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        // Readers also stop when a writer fails, so that the failure is reported.
        struct StopAtEnd<'a>(&'a AtomicBool);
        impl Drop for StopAtEnd<'_> {
            fn drop(&mut self) {
                self.0.store(true, Relaxed);
            }
        }
        for reader in 0..2 {
            let (world, stop, reads) = (&world, &stop, &reads);
            scope.spawn(move || read(world, reader, stop, reads));
        }
        let _stop = StopAtEnd(&stop);
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                let world = &world;
                scope.spawn(move || write(world, writer, 2, rounds))
            })
            .collect();
        for writer in writers {
            writer.join().unwrap();
        }
    });
    let model: BTreeMap<_, _> = (0..KEYS)
        .step_by(STABLE as usize)
        .map(|k| (k.to_be_bytes().to_vec(), stable_value(k)))
        .collect();
    world.assert_matches(&model);
    let counters = world.tree.counters();
    assert!(
        counters.splits.load(Relaxed) > 20 && counters.merges.load(Relaxed) > 5,
        "{counters:?}"
    );
    assert!(reads.load(Relaxed) > 0);
}

#[test]
fn readers_find_permanent_keys_during_splits_and_merges() {
    run(1024, 2, 40);
}

#[test]
fn readers_find_permanent_keys_under_eviction() {
    run(96, 2, 12);
}
