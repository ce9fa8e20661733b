//! Random schedules of writers that split and merge pages, and of concurrent readers. Every read
//! finds all permanent entries, and no read returns a value that was never written.
//!
//! Under shuttle, threads are coroutines. They switch at every access to a page word, every copy
//! out of a page, and every store into one (`nfold_sync::prim::point`).
//!
//! To run: `RUSTFLAGS="--cfg shuttle" cargo test -p nfold-btree --test shuttle`, as `tests/models`
//! does. `SHUTTLE_SCHEDULES` sets the number of schedules. A failure prints its schedule, which
//! `shuttle::replay` can run again.
#![cfg(shuttle)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use nfold_btree::*;
use nfold_store::{RealDisk, Stop, Store, StoreOptions};
use shuttle::scheduler::RandomScheduler;
use shuttle::{Config, Runner, thread};

/// Keys divisible by this are permanent. The others come and go.
const STABLE: u32 = 6;
const KEYS: u32 = 48;
/// Keys and values are long, so that few fit a page and few changes suffice to split and merge
/// leaves and inner pages.
const KEY_BYTES: usize = 1800;

/// The total splits and merges of all schedules.
static SPLITS: AtomicU64 = AtomicU64::new(0);
static MERGES: AtomicU64 = AtomicU64::new(0);

/// Whether keys differ in their first bytes rather than in their last. Then readers copy inner
/// pages, and these seldom split.
static NUMBER_FIRST: AtomicBool = AtomicBool::new(false);

fn key(n: u32) -> Vec<u8> {
    let mut key = vec![b'k'; KEY_BYTES];
    match NUMBER_FIRST.load(Relaxed) {
        true => key.splice(..0, n.to_be_bytes()).for_each(drop),
        false => key.extend_from_slice(&n.to_be_bytes()),
    }
    key
}

fn number(key: &[u8]) -> u32 {
    let number = match NUMBER_FIRST.load(Relaxed) {
        true => key.first_chunk(),
        false => key.last_chunk(),
    };
    u32::from_be_bytes(*number.expect("a key of this test has four bytes"))
}

/// A value that begins and ends with parts of its number, so a mix of two values is noticed.
fn value(n: u32) -> Vec<u8> {
    let mut value = vec![n as u8; 2600 + n as usize % 5];
    value[..4].copy_from_slice(&n.to_be_bytes());
    value
}

fn finish<T>(mut call: impl FnMut() -> Result<T, Stop>) -> T {
    loop {
        match call() {
            Ok(done) => return done,
            Err(Stop::Wait(_)) => thread::yield_now(),
            Err(Stop::Error(error)) => panic!("{error}"),
        }
    }
}

struct World {
    store: Arc<Store>,
    tree: TreeHandle,
}

impl World {
    fn new() -> World {
        let dir = tempfile::tempdir().expect("a folder");
        // Everything stays in memory and nothing runs in the background, so the only races are
        // those of the tree.
        let options = StoreOptions {
            pool_bytes: 256 << 14,
            log_bytes: 8 << 20,
            log_buffer_bytes: 4 << 20,
            doublewrite: false,
            ..StoreOptions::default()
        };
        let disk = Arc::new(RealDisk::new(dir.path(), false));
        let opened = Store::open(options, disk, Arc::new(BtreeRedo), &|_| ());
        let store = opened.expect("the store opens").0;
        let space = finish(|| Ok(store.create_space("t").expect("a space")));
        let root = finish(|| {
            let mut mtr = store.mtr();
            mtr.reserve(TreeHandle::CREATE_LOG_BYTES, space, 1)?;
            let root = TreeHandle::create(&mut mtr, space, 7);
            mtr.commit();
            Ok(root)
        });
        let tree = TreeHandle::open(Tree {
            space,
            root,
            index_id: 7,
        });
        let world = World { store, tree };
        (0..KEYS)
            .step_by(STABLE as usize)
            .for_each(|n| world.put(n));
        world
    }

    fn put(&self, n: u32) {
        let (key, value) = (key(n), value(n));
        finish(|| {
            let mut mtr = self.store.mtr();
            let room = key.len() + value.len() + ENTRY_LOG_OVERHEAD;
            mtr.reserve(room, self.tree.tree().space, 0)?;
            let mut pos =
                self.tree
                    .leaf_for_write(&self.store, &mut mtr, &key, Room::Value(value.len()))?;
            assert!(!pos.found, "no other writer inserts this key");
            self.tree.insert_at(&mut mtr, &mut pos, &key, &value);
            mtr.commit();
            Ok(())
        });
    }

    fn remove(&self, n: u32) {
        let key = key(n);
        let underfull = finish(|| {
            let mut mtr = self.store.mtr();
            mtr.reserve(ENTRY_LOG_OVERHEAD, self.tree.tree().space, 0)?;
            let mut pos = self
                .tree
                .leaf_for_write(&self.store, &mut mtr, &key, Room::Unchanged)?;
            assert!(pos.found, "no other writer removes this key");
            let underfull = self.tree.remove_at(&mut mtr, &mut pos);
            mtr.commit();
            Ok(underfull)
        });
        if underfull {
            finish(|| self.tree.compact(&self.store, &key));
        }
    }

    /// Inserts and then removes the non-permanent keys of a range.
    fn write(&self, from: u32, to: u32) {
        let mine = || (from..to).filter(|n| n % STABLE != 0);
        mine().for_each(|n| self.put(n));
        mine().for_each(|n| self.remove(n));
    }

    fn get(&self, n: u32) {
        let mut found = Vec::new();
        let there = finish(|| self.tree.get(&self.store, &key(n), &mut found));
        assert!(there || n % STABLE != 0, "key {n} was missed");
        assert!(!there || found == value(n), "a wrong value for key {n}");
    }

    /// As [`get`](Self::get), by a reader that caches the tree's shape.
    fn look(&self, n: u32, shape: &mut TreeShape) {
        let mut found = Vec::new();
        let span = finish(|| {
            self.tree
                .get_span(&self.store, &key(n), shape, &mut found, || ())
        });
        assert!(span.is_some() || n % STABLE != 0, "key {n} was missed");
        let value = value(n);
        assert!(
            span.is_none_or(|span| found[span] == value),
            "a wrong value for key {n}"
        );
    }

    fn many(&self, numbers: &[u32]) {
        let mut batch = GetMany::new();
        numbers
            .iter()
            .for_each(|n| _ = batch.push(&key(*n), Default::default()));
        while finish(|| self.tree.get_many(&self.store, &mut batch, usize::MAX)) {}
        let found: BTreeMap<u32, &[u8]> = batch
            .found()
            .iter()
            .map(|f| (numbers[f.key as usize], batch.value(f)))
            .collect();
        for n in numbers {
            match found.get(n) {
                Some(bytes) => assert!(*bytes == value(*n), "a wrong value for key {n}"),
                None => assert!(n % STABLE != 0, "get_many missed key {n}"),
            }
        }
    }

    fn scan(&self, reverse: bool, max: usize) {
        let range = KeyRange {
            lo: Bound::Unbounded,
            hi: Bound::Unbounded,
        };
        let mut cursor = self.tree.cursor(range, reverse);
        let (mut seen, mut batch) = (Vec::new(), EntryBatch::default());
        loop {
            batch.clear();
            let more = finish(|| cursor.next_batch(&self.tree, &self.store, max, &mut batch));
            for (k, v) in batch.iter() {
                assert!(v == value(number(k)), "a wrong value for key {}", number(k));
                seen.push(number(k));
            }
            if !more {
                break;
            }
        }
        if reverse {
            seen.reverse();
        }
        assert!(
            seen.is_sorted_by(|a, b| a < b),
            "keys are sorted and distinct: {seen:?}"
        );
        seen.retain(|n| n % STABLE == 0);
        let expected: Vec<u32> = (0..KEYS).step_by(STABLE as usize).collect();
        assert_eq!(seen, expected, "all permanent keys are found");
    }
}

/// Runs two writers, each on one half of the keys, beside four readers.
fn races() {
    let world = Arc::new(World::new());
    let spawn = |work: fn(&World)| {
        let world = world.clone();
        thread::spawn(move || work(&world))
    };
    let threads = [
        spawn(|w| w.write(0, KEYS / 2)),
        spawn(|w| w.write(KEYS / 2, KEYS)),
        spawn(|w| (0..KEYS).step_by(3).for_each(|n| w.get(n))),
        spawn(|w| {
            let mut shape = TreeShape::default();
            (0..3 * KEYS).for_each(|n| w.look(n * 5 % KEYS, &mut shape));
        }),
        spawn(|w| {
            w.many(&(0..KEYS).step_by(2).collect::<Vec<_>>());
            w.many(&[0, 6, 7, 12, 24, 25, 30, 42]);
        }),
        spawn(|w| {
            w.scan(false, 3);
            w.scan(true, 100);
        }),
    ];
    for t in threads {
        t.join().expect("a thread");
    }
    let mut check = TreeCheck::default();
    while !finish(|| {
        world
            .tree
            .check_step(&world.store, &mut check, &mut |_, _| ())
    }) {}
    assert!(check.problems.is_empty(), "{:#?}", check.problems);
    assert_eq!(check.entries, u64::from(KEYS / STABLE));
    let counters = world.tree.counters();
    SPLITS.fetch_add(counters.splits.load(Relaxed), Relaxed);
    MERGES.fetch_add(counters.merges.load(Relaxed), Relaxed);
}

fn run(seed: u64, schedules: usize, number_first: bool) {
    NUMBER_FIRST.store(number_first, Relaxed);
    let mut config = Config::new();
    config.stack_size = 1 << 20;
    Runner::new(RandomScheduler::new_from_seed(seed, schedules), config).run(races);
}

fn schedules() -> usize {
    let wanted = std::env::var("SHUTTLE_SCHEDULES").ok();
    wanted.and_then(|n| n.parse().ok()).unwrap_or(60)
}

/// A single test, because a planted bug affects all threads of the process.
#[test]
fn readers_find_permanent_keys_in_any_schedule() {
    run(1, schedules(), false);
    let (splits, merges) = (SPLITS.load(Relaxed), MERGES.load(Relaxed));
    println!(
        "{} schedules, {splits} splits, {merges} merges",
        schedules()
    );
    let enough = 3 * schedules() as u64;
    assert!(
        splits >= enough && merges >= enough,
        "{splits} splits, {merges} merges"
    );
    run(3, schedules() / 2, true);
    #[cfg(feature = "planted")]
    planted();
}

/// Plants a bug that skips validation. Some schedule must notice it.
#[cfg(feature = "planted")]
fn planted() {
    use nfold_sync::planted::{Bug, plant};
    plant(Some(Bug::MissedVersion));
    let found = std::panic::catch_unwind(|| run(2, schedules().max(200), false));
    plant(None);
    assert!(found.is_err(), "no schedule noticed a missed validation");
}
