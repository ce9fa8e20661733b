//! Trees whose pages are on disk: read-ahead, and batched page requests.

use super::*;
use nfold_store::StoreStatus;

const ROWS: u32 = 60_000;

fn key(i: u32) -> [u8; 4] {
    i.to_be_bytes()
}

/// A tree of about 500 leaves. None of its pages is in memory.
fn cold() -> World {
    cold_with(4)
}

/// As [`cold`], with `io_threads` I/O threads. With 0, the pages that are read do not depend on
/// timing.
fn cold_with(io_threads: usize) -> World {
    let mut world = World::new(1024, 0);
    let mut builder = Builder::new(1);
    for i in 0..ROWS {
        finish(|| builder.push(&world.tree, &world.store, &key(i), &[7; 120])).unwrap();
    }
    finish(|| builder.finish(&world.tree, &world.store)).unwrap();
    world.store.shutdown().unwrap();
    let tree = world.tree.tree();
    world.store = open(world.dir.path(), 1024, io_threads);
    world.store.open_space(tree.space, "t").unwrap();
    world.tree = TreeHandle::open(tree);
    world
}

/// Reads entries of the range, in batches of at most 100, until there are `max` or the range ends.
/// Returns the keys, the number of waits, and the store's counters.
fn scan(
    world: &World,
    range: KeyRange,
    reverse: bool,
    max: usize,
) -> (Vec<u32>, usize, StoreStatus) {
    let mut cursor = world.tree.cursor(range, reverse);
    let (mut out, mut waits) = (EntryBatch::default(), 0);
    let mut keys = Vec::new();
    loop {
        out.clear();
        match cursor.next_batch(&world.tree, &world.store, max.min(100), &mut out) {
            Ok(more) => {
                keys.extend(
                    out.iter()
                        .map(|(key, _)| u32::from_be_bytes(key.try_into().unwrap())),
                );
                if !more || keys.len() >= max {
                    return (keys, waits, world.store.status());
                }
            }
            Err(Stop::Wait(wait)) => {
                waits += 1;
                wait.block();
            }
            Err(Stop::Error(e)) => panic!("{e}"),
        }
    }
}

#[test]
fn scans_read_ahead_in_large_runs() {
    for (reverse, io_threads) in [(false, 0), (true, 0), (false, 4), (true, 4)] {
        let world = cold_with(io_threads);
        let (keys, _, status) = scan(&world, KeyRange::all(), reverse, usize::MAX);
        let mut expected: Vec<u32> = (0..ROWS).collect();
        if reverse {
            expected.reverse();
        }
        assert!(keys == expected, "reverse {reverse}");
        assert!(status.pages_read > 400, "{status:?}");
        if io_threads > 0 {
            continue; // A page that the scan waits for may be read before the rest of its run.
        }
        assert!(
            status.reads * 4 <= status.pages_read,
            "neighbouring pages are read together: {status:?}"
        );
        assert!(
            status.read_misses * 4 <= status.pages_read,
            "pages are requested ahead of time: {status:?}"
        );
    }
}

#[test]
fn short_range_reads_few_pages() {
    let range = |from: u32, to: u32| KeyRange {
        lo: Bound::Included(key(from).to_vec()),
        hi: Bound::Excluded(key(to).to_vec()),
    };
    let world = cold();
    let (keys, _, status) = scan(&world, KeyRange::all(), false, 10);
    assert_eq!(keys.len(), 10);
    assert!(
        status.read_ahead == 0 && status.pages_read <= 5,
        "{status:?}"
    );
    for (from, to) in [(5_000, 5_020), (20_000, 20_300), (40_000, 40_900)] {
        for reverse in [false, true] {
            let world = cold();
            let (keys, waits, status) = scan(&world, range(from, to), reverse, usize::MAX);
            assert_eq!(keys.len(), (to - from) as usize);
            let leaves = u64::from(to - from) / 100 + 2;
            assert!(status.pages_read <= leaves + 5, "{from}: {status:?}");
            assert!(waits <= 6, "{from}: {waits}");
        }
    }
}

#[test]
fn get_many_requests_missing_pages_together() {
    let world = cold();
    let mut batch = GetMany::new();
    for i in (0..ROWS).step_by(ROWS as usize / 200) {
        batch.push(&key(i), RowHint::NONE);
    }
    let mut waits = 0;
    loop {
        match world.tree.get_many(&world.store, &mut batch, usize::MAX) {
            Ok(more) => {
                assert!(!more);
                break;
            }
            Err(Stop::Wait(wait)) => {
                waits += 1;
                wait.block();
            }
            Err(Stop::Error(e)) => panic!("{e}"),
        }
    }
    assert_eq!(batch.found().len(), batch.len());
    let status = world.store.status();
    assert!(status.pages_read >= 190, "{status:?}");
    assert!(waits <= 25, "{waits} waits for 200 pages");
}

/// The first point's leaf is missing, and the later points fill the batch while it is being read.
/// Their entries are dropped and found again later, and the scan must make progress.
#[test]
fn points_found_too_early_are_found_again() {
    let points: Vec<u32> = (0..40).map(|n| 700 + n * 1_400).collect();
    for max_bytes in [1, 1_000, 10_000] {
        let world = cold_with(0);
        // All leaves but the first point's are in memory.
        for &from in &points[1..] {
            let range = KeyRange {
                lo: Bound::Included(key(from).to_vec()),
                hi: Bound::Excluded(key(from + 20).to_vec()),
            };
            scan(&world, range, false, usize::MAX);
        }
        let mut batch = PointScan::new();
        for &from in &points {
            batch.push(&key(from), &key(from + 20));
        }
        let before = world.store.status().pages_read;
        let (mut found, mut idle) = (Vec::new(), 0);
        loop {
            let scanned = world.tree.scan_points(&world.store, &mut batch, max_bytes);
            match scanned {
                Ok(more) => {
                    let entries = batch.entries();
                    idle = if entries.is_empty() { idle + 1 } else { 0 };
                    found.extend(entries.entries().iter().map(|e| e.point));
                    if !more {
                        break;
                    }
                    // The reader consumes a batch only if it contains entries.
                    if !entries.is_empty() {
                        batch.clear_entries();
                    }
                    assert!(idle < 3, "no wait, and nothing new");
                }
                Err(Stop::Wait(wait)) => wait.block(),
                Err(Stop::Error(e)) => panic!("{e}"),
            }
        }
        let expected = (0..points.len() as u32).flat_map(|point| [point; 20]);
        assert!(found.into_iter().eq(expected), "{max_bytes}");
        let read = world.store.status().pages_read - before;
        assert!(read > 0, "the first point's leaf was already in memory");
    }
}
