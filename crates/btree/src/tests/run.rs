//! Runs of entries that are inserted together.

use super::*;

type Entry = (Vec<u8>, Vec<u8>);

impl World {
    /// Inserts the first of `entries`, and those behind it that fit, by one mini-transaction.
    /// Returns their number.
    fn put_run(&self, entries: &[Entry]) -> usize {
        let inserted = finish(|| {
            let mut mtr = self.store.mtr();
            let (key, value) = &entries[0];
            let room = Room::Value(value.len());
            let pos = self.tree.leaf_for_write(&self.store, &mut mtr, key, room)?;
            assert!(!pos.found);
            let mut next = Vec::new();
            let successor = self.tree.next_entry(&mut mtr, &pos, &mut next)?;
            let next = successor.map(|_| &next[..]);
            let lengths = entries.iter().map(|(key, value)| (&key[..], value.len()));
            let count = self.tree.run_len(&mtr, &pos, next, lengths);
            let bytes = entries[..count].iter().map(|(k, v)| k.len() + v.len() + 4);
            let bytes = bytes.sum::<usize>() + ENTRY_LOG_OVERHEAD;
            mtr.reserve(bytes, self.tree.tree().space, 0)?;
            let mut run = EntryRun::default();
            self.tree.begin_run(&mtr, &pos, &mut run);
            for (key, value) in &entries[..count] {
                let (first, second) = value.split_at(value.len() / 3);
                run.push(key, [first, second]);
            }
            self.tree.insert_run(&mut mtr, &pos, &run);
            self.ended.store(mtr.commit().end, Relaxed);
            Ok(count)
        });
        inserted.unwrap()
    }

    /// Inserts all entries in runs. Returns the number of runs.
    fn put_runs(&self, entries: &[Entry]) -> usize {
        let (mut done, mut runs) = (0, 0);
        while done < entries.len() {
            done += self.put_run(&entries[done..]);
            runs += 1;
        }
        runs
    }
}

fn entry(n: u32, len: usize) -> Entry {
    let key = [b"prefix".as_slice(), &n.to_be_bytes()].concat();
    (key, vec![n as u8; len])
}

#[test]
fn ascending_runs_fill_leaves_and_split_them() {
    let world = World::new(256, 0);
    let entries: Vec<Entry> = (0..5000).map(|n| entry(n, 40 + n as usize % 90)).collect();
    let mut runs = 0;
    for group in entries.chunks(16) {
        runs += world.put_runs(group);
    }
    let model: BTreeMap<_, _> = entries.into_iter().collect();
    world.assert_matches(&model);
    let leaves = world.check().leaf_pages as usize;
    assert!(leaves < 50, "{leaves} leaves");
    // Each group is one run, or two where a leaf ends.
    assert!(
        runs <= 5000 / 16 + 1 + leaves,
        "{runs} runs, {leaves} leaves"
    );
}

#[test]
fn run_ends_before_an_existing_key_or_a_descent() {
    let world = World::new(64, 0);
    world.put_runs(&[entry(10, 5), entry(20, 5)]);
    let keys = [11, 12, 13, 20, 21];
    let entries = keys.map(|n| entry(n, 5));
    assert_eq!(world.put_run(&entries), 3, "20 exists");
    let entries = [22, 24, 23].map(|n| entry(n, 5));
    assert_eq!(world.put_run(&entries), 2, "23 is below 24");
    let entries = [30, 30].map(|n| entry(n, 5));
    assert_eq!(world.put_run(&entries), 1, "30 is there then");
    assert_eq!(world.scan(KeyRange::all(), false, 100).len(), 8);
}

#[test]
fn run_ends_at_the_upper_fence() {
    let world = World::new(256, 0);
    // Every tenth key, on several leaves.
    let sparse: Vec<Entry> = (0..400).map(|n| entry(n * 10, 300)).collect();
    world.put_runs(&sparse);
    let mut model: BTreeMap<_, _> = sparse.into_iter().collect();
    for n in (0..4000).step_by(10) {
        let between: Vec<Entry> = (n + 1..n + 6).map(|n| entry(n, 120)).collect();
        world.put_runs(&between);
        model.extend(between);
    }
    world.assert_matches(&model);
}

#[test]
fn runs_match_btreemap_among_other_changes() {
    let world = World::new(512, 0);
    let mut random = Rng(11);
    let mut model = BTreeMap::new();
    for _ in 0..600 {
        let from = random.below(20_000) as u32;
        let mut run: Vec<Entry> = (0..1 + random.below(20) as u32)
            .map(|n| entry(from + n * (1 + from % 3), random.below(300)))
            .collect();
        run.retain(|(key, _)| !model.contains_key(key));
        if !run.is_empty() {
            world.put_runs(&run);
            model.extend(run);
        }
        for _ in 0..random.below(12) {
            let (key, _) = entry(random.below(20_000) as u32, 0);
            assert_eq!(world.remove(&key), model.remove(&key).is_some());
        }
    }
    world.assert_matches(&model);
    let end = world.store.horizon().load();
    while let Some(wait) = world.store.wait_durable(end) {
        wait.block();
    }
    let World {
        store, tree, dir, ..
    } = world;
    drop(store);
    let world = World {
        store: open(dir.path(), 512, 0),
        tree: TreeHandle::open(tree.tree()),
        dir,
        ended: AtomicU64::new(0),
    };
    world.assert_matches(&model);
}
