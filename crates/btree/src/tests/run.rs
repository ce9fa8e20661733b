//! Runs of entries that are inserted together.

use super::*;
use crate::LeafUse;

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
            let count = self
                .tree
                .run_len(&mtr, &pos, next, lengths, &mut LeafUse::default());
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

    /// Inserts the first of `entries`, and those behind it that go to gaps of its leaf, by one
    /// mini-transaction. Returns their number.
    fn try_put_gaps(&self, entries: &[Entry]) -> Result<usize, Stop> {
        let mut mtr = self.store.mtr();
        let (key, value) = &entries[0];
        let room = Room::Value(value.len());
        let mut pos = self.tree.leaf_for_write(&self.store, &mut mtr, key, room)?;
        let mut used = LeafUse::default();
        let mut runs = Vec::new();
        while let Some((key, _)) = entries.get(used.entries) {
            let (first, mut next) = (used.entries, Vec::new());
            let here = match first {
                0 => self
                    .tree
                    .next_entry(&mut mtr, &pos, &mut next)?
                    .map(|_| pos),
                _ => self.tree.gap_behind(&mtr, &pos, key, &mut next),
            };
            let Some(here) = here else {
                break;
            };
            let rest = entries[first..].iter().map(|(k, v)| (&k[..], v.len()));
            let count = self.tree.run_len(&mtr, &here, Some(&next), rest, &mut used);
            if count == 0 {
                break;
            }
            runs.push((here, first..first + count));
            pos = here;
        }
        let logged = |(k, v): &Entry| k.len() + v.len() + ENTRY_LOG_OVERHEAD;
        let bytes = entries[..used.entries].iter().map(logged).sum();
        mtr.reserve(bytes, self.tree.tree().space, 0)?;
        let mut run = EntryRun::default();
        for (pos, range) in runs.into_iter().rev() {
            self.tree.begin_run(&mtr, &pos, &mut run);
            for (key, value) in &entries[range] {
                run.push(key, [value, &[]]);
            }
            self.tree.insert_run(&mut mtr, &pos, &run);
        }
        self.ended.store(mtr.commit().end, Relaxed);
        Ok(used.entries)
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

/// Several runs of one mini-transaction, at positions that were found before its first change.
#[test]
fn runs_of_one_leaf_are_inserted_from_the_last_to_the_first() {
    let world = World::new(64, 0);
    let mut model = BTreeMap::new();
    let first: Vec<Entry> = (0..8).map(|n| entry(n * 100, 60)).collect();
    world.put_runs(&first);
    model.extend(first);
    let mut random = Rng(7);
    for _ in 0..200 {
        let mut news: Vec<Entry> = (0..12)
            .map(|_| entry(random.below(690) as u32, random.below(60)))
            .filter(|(key, _)| !model.contains_key(key))
            .collect();
        news.sort();
        news.dedup_by(|a, b| a.0 == b.0);
        if news.is_empty() {
            continue;
        }
        let inserted = finish(|| world.try_put_gaps(&news)).unwrap();
        assert!((1..=news.len()).contains(&inserted));
        model.extend(news.into_iter().take(inserted));
    }
    assert!(model.len() > 300, "{} entries", model.len());
    world.assert_matches(&model);
}

#[test]
fn gap_behind_needs_a_new_key_between_entries_of_the_leaf() {
    let world = World::new(64, 0);
    world.put_runs(&[entry(10, 5), entry(20, 5), entry(30, 5)]);
    let mut mtr = world.store.mtr();
    let (key, _) = entry(5, 5);
    let pos = world
        .tree
        .leaf_for_write(&world.store, &mut mtr, &key, Room::Value(5))
        .unwrap();
    for (n, next) in [(15, Some(20)), (25, Some(30)), (20, None), (35, None)] {
        let mut found = Vec::new();
        let gap = world
            .tree
            .gap_behind(&mtr, &pos, &entry(n, 0).0, &mut found);
        assert_eq!(gap.is_some(), next.is_some(), "{n}");
        let expected = next.map_or(Vec::new(), |next| entry(next, 0).0);
        assert_eq!(found, expected, "{n}");
    }
}
