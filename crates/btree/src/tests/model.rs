//! Random operations on one thread; compares every read path with a `BTreeMap`.

use super::*;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// The key and value distribution of a run.
#[derive(Copy, Clone, Debug)]
enum Shape {
    /// Rows of a clustered index: 4-byte keys, mostly ascending, and values of about 190 bytes.
    Rows,
    /// Entries of a secondary index: a number with many duplicates, followed by a row number, and a
    /// short value.
    Secondary,
    /// Random bytes of all lengths. Some keys and values have the maximum length.
    Arbitrary,
    /// Text with long common prefixes.
    Text,
}

fn entry(shape: Shape, rng: &mut Rng, i: usize) -> (Vec<u8>, Vec<u8>) {
    match shape {
        Shape::Rows => {
            let id = if rng.below(4) == 0 {
                rng.below(20_000)
            } else {
                i
            } as u32;
            let len = 180 + rng.below(20);
            (id.to_be_bytes().to_vec(), rng.bytes(len))
        }
        Shape::Secondary => {
            let key = [
                (rng.below(40) as u32).to_be_bytes(),
                (rng.below(20_000) as u32).to_be_bytes(),
            ]
            .concat();
            (key, vec![i as u8; 11])
        }
        Shape::Arbitrary => {
            let longest = if rng.below(8) == 0 { MAX_KEY } else { 60 };
            let len = rng.below(longest + 1);
            let key = rng.bytes(len);
            let longest = if rng.below(8) == 0 {
                MAX_ENTRY - key.len()
            } else {
                200
            };
            let len = rng.below(longest + 1);
            (key, rng.bytes(len))
        }
        Shape::Text => {
            let len = 1 + rng.below(30);
            let tail: Vec<u8> = (0..len).map(|_| b"ab\0\xff"[rng.below(4)]).collect();
            let mut key = b"http://example.org/a/long/common/beginning/".repeat(1 + rng.below(4));
            key.extend(tail);
            (key, vec![7; rng.below(60)])
        }
    }
}

fn bound(rng: &mut Rng, key: Vec<u8>) -> Bound<Vec<u8>> {
    match rng.below(5) {
        0 => Bound::Unbounded,
        1 | 2 => Bound::Included(key),
        _ => Bound::Excluded(key),
    }
}

fn in_range(range: &KeyRange, key: &Vec<u8>) -> bool {
    (match &range.lo {
        Bound::Included(lo) => key >= lo,
        Bound::Excluded(lo) => key > lo,
        Bound::Unbounded => true,
    }) && (match &range.hi {
        Bound::Included(hi) => key <= hi,
        Bound::Excluded(hi) => key < hi,
        Bound::Unbounded => true,
    })
}

/// An existing key, a key near one, or an arbitrary key.
fn probe(shape: Shape, rng: &mut Rng, model: &Model) -> Vec<u8> {
    let any = entry(shape, rng, rng.0 as usize % 3000).0;
    match model.range(any.clone()..).next() {
        Some((key, _)) if rng.below(3) > 0 => {
            let mut key = key.clone();
            match rng.below(6) {
                0 => key.push(0),
                1 => drop(key.pop()),
                _ => {}
            }
            key
        }
        _ => any,
    }
}

fn compare_reads(world: &World, model: &Model, shape: Shape, rng: &mut Rng) {
    world.assert_matches(model);
    let mut seen = TreeShape::default();
    for _ in 0..40 {
        let key = probe(shape, rng, model);
        assert_eq!(world.get(&key), model.get(&key).cloned());
        assert_eq!(world.look(&key, &mut seen), model.get(&key).cloned());
        let (a, b) = (probe(shape, rng, model), probe(shape, rng, model));
        let range = KeyRange {
            lo: bound(rng, a),
            hi: bound(rng, b),
        };
        let mut expected: Vec<_> = model
            .iter()
            .filter(|(k, _)| in_range(&range, k))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        let max = 1 + rng.below(80);
        assert_eq!(world.scan(range.clone(), false, max), expected, "{range:?}");
        expected.reverse();
        assert_eq!(world.scan(range.clone(), true, max), expected, "{range:?}");
    }
    compare_get_many(world, model, shape, rng);
    compare_points(world, model, shape, rng);
    compare_ends(world, model, shape, rng);
}

fn compare_get_many(world: &World, model: &Model, shape: Shape, rng: &mut Rng) {
    let mut batch = GetMany::new();
    let mut places = BTreeMap::new();
    // The second round has row-location hints from the first. Some are right, some name other pages
    // or slots, some are impossible.
    for round in 0..2 {
        batch.clear();
        let mut expected = BTreeMap::new();
        for _ in 0..200 {
            let key = probe(shape, rng, model);
            let seen: RowHint = places.get(&key).copied().unwrap_or_default();
            let row_hint = match rng.below(5) {
                _ if round == 0 => RowHint::NONE,
                0 => RowHint::new(rng.below(300) as u32, rng.below(300)),
                1 => RowHint::new(u32::MAX - rng.below(5) as u32, 0),
                2 => RowHint::new(seen.page, rng.below(300)),
                _ => seen,
            };
            assert_eq!(RowHint::from_bytes(row_hint.to_bytes()), row_hint);
            let number = batch.push(&key, row_hint);
            if let Some(value) = model.get(&key) {
                expected.insert(number, value.clone());
            }
        }
        let limit = [usize::MAX, 2000][rng.below(2)];
        let mut found = BTreeMap::new();
        loop {
            let more = finish(|| world.tree.get_many(&world.store, &mut batch, limit)).unwrap();
            for f in batch.found() {
                assert!(found.insert(f.key, batch.value(f).to_vec()).is_none());
                places.insert(batch.key(f.key).to_vec(), f.row_hint);
            }
            batch.clear_found();
            if !more {
                break;
            }
        }
        assert_eq!(found, expected);
    }
}

/// A sink that reads the last bytes of keys and the first bytes of values on the page.
#[derive(Default)]
struct Ends {
    /// The last bytes of the keys, each tagged with its point.
    keys: GetMany<u32>,
    /// (point, page number of the leaf, length of the value, its first eight bytes or 0 if it is
    /// shorter).
    seen: Vec<(u32, u32, usize, u64)>,
    copied: EntryBatch,
    most: usize,
}

/// The number of bytes taken from the end of each key of a point. Shorter keys are skipped.
fn end_len(point: u32) -> usize {
    [0, 1, 4, 8, 13][point as usize % 5]
}

impl PointSink for Ends {
    type Mark = (usize, usize);
    fn mark(&self) -> (usize, usize) {
        (self.seen.len(), self.copied.len())
    }
    fn cut(&mut self, (seen, copied): (usize, usize)) {
        self.keys.truncate(seen);
        self.seen.truncate(seen);
        self.copied.truncate(copied);
    }
    fn take(&mut self, point: u32, entries: LeafEntries<'_>) {
        for entry in entries.iter() {
            let (len, [before, word, _]) = entry.around_value();
            let key_len = end_len(point);
            let whole = self
                .keys
                .push_key_end(entry, before, key_len, RowHint::NONE, point);
            if !whole {
                continue;
            }
            assert_eq!(len, entry.value_len());
            let word = if len >= 8 { word } else { 0 };
            self.seen.push((point, entries.page(), len, word));
            entries.copy(entry, point, &mut self.copied);
        }
    }
    fn is_full(&self) -> bool {
        self.seen.len() >= self.most
    }
    fn holds_behind(&self, last: u32) -> bool {
        self.seen.iter().any(|s| s.0 > last)
    }
    fn keep_points(&mut self, last: u32) {
        assert!(self.keys.tags().eq(self.seen.iter().map(|s| &s.0)));
        self.keys.retain(|point| *point <= last);
        self.seen.retain(|s| s.0 <= last);
    }
}

/// Compares the key ends and value beginnings that a sink reads on the page with the model.
fn compare_ends(world: &World, model: &Model, shape: Shape, rng: &mut Rng) {
    let (mut scan, mut expected) = (PointScan::new(), BTreeMap::new());
    for point in 0..60 {
        let mut lo = probe(shape, rng, model);
        lo.truncate(lo.len().min(1 + rng.below(50)));
        scan.push_prefix(&lo);
        let hi = prefix_successor(&lo).unwrap_or_default();
        let ends = model
            .range(lo..)
            .take_while(|(k, _)| hi.is_empty() || **k < hi)
            .filter(|(k, _)| k.len() >= end_len(point))
            .map(|(k, v)| {
                let word = v.first_chunk().map_or(0, |w| u64::from_le_bytes(*w));
                (k[k.len() - end_len(point)..].to_vec(), v.len(), word)
            });
        expected.insert(point, ends.collect::<Vec<_>>());
    }
    let most = [usize::MAX, 20, 300][rng.below(3)];
    let mut found: BTreeMap<u32, Vec<_>> = (0..60).map(|p| (p, Vec::new())).collect();
    loop {
        let mut ends = Ends {
            most,
            ..Ends::default()
        };
        let more = finish(|| {
            world
                .tree
                .scan_points_into(&world.store, &mut scan, &mut ends)
        });
        let copies: Vec<_> = ends.copied.iter().collect();
        for (i, (point, page, len, word)) in ends.seen.iter().enumerate() {
            let key = ends.keys.key(i as u32);
            assert!(
                *page != 0
                    && copies
                        .iter()
                        .any(|(k, v)| k.ends_with(key) && v.len() == *len)
            );
            found
                .get_mut(point)
                .unwrap()
                .push((key.to_vec(), *len, *word));
        }
        if !more.unwrap() {
            break;
        }
    }
    assert_eq!(found, expected);
}

fn compare_points(world: &World, model: &Model, shape: Shape, rng: &mut Rng) {
    let mut scan = PointScan::new();
    let mut expected = BTreeMap::new();
    for _ in 0..120 {
        let mut lo = probe(shape, rng, model);
        let hi = match rng.below(4) {
            // All keys with a given prefix.
            0..2 => {
                lo.truncate(lo.len().min(4 + rng.below(50)));
                assert_eq!(scan.push_prefix(&lo), expected.len() as u32);
                prefix_successor(&lo).unwrap_or_default()
            }
            2 => {
                let hi = probe(shape, rng, model);
                scan.push(&lo, &hi);
                hi
            }
            _ => {
                let mut hi = lo.clone();
                hi.push(0xFF);
                scan.push(&lo, &hi);
                hi
            }
        };
        let entries: Vec<_> = model
            .range(lo..)
            .take_while(|(k, _)| hi.is_empty() || **k < hi)
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        expected.insert(expected.len() as u32, entries);
    }
    let limit = [usize::MAX, 5000][rng.below(2)];
    let mut reached = 0;
    let mut found: BTreeMap<u32, Vec<_>> =
        (0..scan.len() as u32).map(|p| (p, Vec::new())).collect();
    loop {
        let more = finish(|| world.tree.scan_points(&world.store, &mut scan, limit)).unwrap();
        let batch = scan.entries();
        let points = batch.entries().iter().map(|e| e.point);
        if let (Some(first), Some(last)) = (points.clone().min(), points.max()) {
            assert!(first >= reached, "successive calls return points in order");
            reached = last;
        }
        for e in batch.entries() {
            found
                .get_mut(&e.point)
                .unwrap()
                .push((batch.key(e).to_vec(), batch.value(e).to_vec()));
        }
        scan.clear_entries();
        if !more {
            break;
        }
    }
    assert_eq!(found, expected);
}

fn run(shape: Shape, seed: u64, pool_pages: u64, io_threads: usize, steps: usize) {
    let world = World::new(pool_pages, io_threads);
    let mut model = Model::new();
    let seed = seed + std::env::var("SOAK").map_or(0, |s| s.parse::<u64>().unwrap()) * 7919;
    let mut rng = Rng(seed | 1);
    for i in 0..steps {
        // The tree grows, shrinks, and grows again.
        let removing = i % steps > steps / 3 && i % steps < steps * 2 / 3;
        if rng.below(10) < if removing { 8 } else { 2 } {
            let key = probe(shape, &mut rng, &model);
            assert_eq!(world.remove(&key), model.remove(&key).is_some());
        } else {
            let (key, value) = entry(shape, &mut rng, i);
            assert_eq!(
                world.put(&key, &value).unwrap(),
                model.insert(key, value).is_some()
            );
        }
        if (i + 1) % (steps / 4) == 0 {
            compare_reads(&world, &model, shape, &mut rng);
        }
    }
    assert!(
        world
            .tree
            .counters()
            .splits
            .load(std::sync::atomic::Ordering::Relaxed)
            > 2,
        "the run was too small to split pages"
    );
    // Remove all entries. Pages are merged and freed until the root is a leaf again.
    let mut keys: Vec<_> = model.keys().cloned().collect();
    while !keys.is_empty() {
        let key = keys.swap_remove(rng.below(keys.len()));
        assert!(world.remove(&key));
    }
    let check = world.check();
    assert_eq!(check.entries, 0);
    assert_eq!(
        finish(|| world.tree.stats(&world.store)).unwrap().entries,
        0
    );
    assert!(
        check.leaf_pages <= 2,
        "{} leaves are left of an empty tree",
        check.leaf_pages
    );
}

#[test]
fn rows_match_btreemap() {
    run(Shape::Rows, 11, 512, 0, 4000);
}

#[test]
fn rows_match_btreemap_under_eviction() {
    run(Shape::Rows, 12, 40, 0, 3000);
}

#[test]
fn secondary_entries_match_btreemap() {
    run(Shape::Secondary, 13, 512, 0, 8000);
}

#[test]
fn arbitrary_entries_match_btreemap() {
    run(Shape::Arbitrary, 14, 512, 0, 3000);
}

#[test]
fn arbitrary_entries_match_btreemap_under_eviction() {
    run(Shape::Arbitrary, 15, 64, 2, 1200);
}

#[test]
fn text_matches_btreemap() {
    run(Shape::Text, 16, 512, 0, 4000);
}

#[test]
fn put_rejects_too_large_entries() {
    let world = World::new(64, 0);
    assert!(matches!(
        world.put(&vec![1; MAX_KEY + 1], b""),
        Err(StoreError::TooLarge { .. })
    ));
    assert!(matches!(
        world.put(b"k", &vec![1; MAX_ENTRY]),
        Err(StoreError::TooLarge { .. })
    ));
    world
        .put(&vec![1; MAX_KEY], &vec![1; MAX_ENTRY - MAX_KEY])
        .unwrap();
    assert_eq!(world.check().entries, 1);
}

#[test]
fn ascending_inserts_fill_pages() {
    let world = World::new(512, 0);
    for i in 0..4000u32 {
        world.put(&i.to_be_bytes(), &[3; 190]).unwrap();
    }
    let check = world.check();
    let per_leaf = check.entries / check.leaf_pages;
    assert!(
        per_leaf >= 70,
        "{per_leaf} rows of about 204 bytes in a page of 16 KiB"
    );
    let stats = finish(|| world.tree.stats(&world.store)).unwrap();
    assert_eq!((stats.depth, stats.leaf_pages), (2, check.leaf_pages));
    assert!(stats.entries.abs_diff(4000) < 400, "{stats:?}");
}

#[test]
fn spread_keys_divide_the_tree() {
    let world = World::new(512, 0);
    let spread = |most| finish(|| world.tree.spread(&world.store, most)).unwrap();
    assert_eq!(spread(10), Vec::<Vec<u8>>::new());
    for i in 0..20_000u32 {
        world.put(&i.to_be_bytes(), &[3; 60]).unwrap();
    }
    let keys = spread(16);
    assert!((9..=16).contains(&keys.len()), "{}", keys.len());
    let mut apart: Vec<u32> = keys.iter().map(|key| key_number(key)).collect();
    apart.push(20_000);
    let widths: Vec<u32> = apart.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // The last part is what remains.
    let (last, others) = widths.split_last().unwrap();
    assert!(
        others.iter().all(|w| (600..=3_000).contains(w)),
        "{widths:?}"
    );
    assert!(*last <= 3_000, "{widths:?}");
}

/// The number that a separator begins with: separators are as short as possible.
fn key_number(key: &[u8]) -> u32 {
    let mut bytes = [0; 4];
    bytes[..key.len().min(4)].copy_from_slice(&key[..key.len().min(4)]);
    u32::from_be_bytes(bytes)
}

#[test]
fn range_estimates_are_accurate() {
    let world = World::new(512, 0);
    for i in 0..20_000u32 {
        world.put(&(i * 2).to_be_bytes(), &[3; 60]).unwrap();
    }
    let estimate = |lo: u32, hi: u32| {
        finish(|| {
            world
                .tree
                .estimate_range(&world.store, &lo.to_be_bytes(), &hi.to_be_bytes())
        })
        .unwrap()
    };
    assert_eq!(estimate(100, 120), 10);
    assert_eq!(estimate(101, 101), 0);
    assert_eq!(estimate(120, 100), 0);
    for (lo, hi) in [(0u32, 40_000u32), (1000, 9000), (30_001, 30_900)] {
        let (got, real) = (estimate(lo, hi), u64::from(hi - lo) / 2);
        assert!(
            got.abs_diff(real) <= real / 5 + 2,
            "{lo}..{hi}: {got} for {real}"
        );
    }
    assert!(
        finish(|| world.tree.estimate_range(&world.store, b"", b""))
            .unwrap()
            .abs_diff(20_000)
            < 2000
    );
}

#[test]
fn next_entry_crosses_leaves() {
    let world = World::new(512, 0);
    let keys: Vec<[u8; 4]> = (0..600u32).map(|i| (i * 3).to_be_bytes()).collect();
    for key in &keys {
        world.put(key, &[1; 300]).unwrap();
    }
    for probe in 0..1800u32 {
        let mut mtr = world.store.mtr();
        let pos = world
            .tree
            .leaf_for_write(
                &world.store,
                &mut mtr,
                &probe.to_be_bytes(),
                Room::Unchanged,
            )
            .unwrap();
        assert_eq!(pos.found, probe % 3 == 0);
        let mut next = Vec::new();
        let found = finish(|| world.tree.next_entry(&mut mtr, &pos, &mut next)).unwrap();
        let expected = keys.get((probe / 3 + 1) as usize);
        assert_eq!(found.is_some(), expected.is_some());
        assert_eq!(next, expected.map(|k| k.to_vec()).unwrap_or_default());
    }
}

/// Damage in memory, which no checksum catches, may cause errors or wrong answers, but no endless
/// loop and no panic.
#[test]
fn damaged_fences_cause_no_hang_or_panic() {
    use crate::node::{OFF_LOWER_LEN, OFF_PREFIX, OFF_UPPER_LEN};
    use nfold_store::{PageId, PageType};
    let fields = [
        (OFF_UPPER_LEN, 0u16),
        (OFF_LOWER_LEN, 300),
        (OFF_PREFIX, 7),
        (OFF_UPPER_LEN, 9000),
        (20, 3),
    ];
    for (off, value) in fields {
        let world = World::new(256, 0);
        for i in 0..2000u32 {
            world.put(&i.to_be_bytes(), &[1; 100]).unwrap();
        }
        let space = world.tree.tree().space;
        for page in 1..world.store.space_pages(space).unwrap() {
            let id = PageId { space, page };
            let mut mtr = world.store.mtr();
            finish(|| mtr.reserve(100, space, 0)).unwrap();
            let latched = finish(|| mtr.latch(id)).unwrap();
            let ours = [PageType::BTREE_LEAF, PageType::BTREE_INNER].contains(&mtr.u16(latched, 4));
            if ours && page % 4 != 0 {
                mtr.write(latched, off, &value.to_le_bytes());
            }
            mtr.commit();
        }
        let mut errors = 0;
        for reverse in [false, true] {
            let mut cursor = world.tree.cursor(KeyRange::all(), reverse);
            let mut batch = EntryBatch::default();
            loop {
                batch.clear();
                match finish(|| cursor.next_batch(&world.tree, &world.store, 100, &mut batch)) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(_) => {
                        errors += 1;
                        break;
                    }
                }
            }
        }
        let mut scan = PointScan::new();
        let mut many = GetMany::new();
        for i in (0..2000u32).step_by(50) {
            scan.push(&i.to_be_bytes(), &(i + 300).to_be_bytes());
            many.push(&i.to_be_bytes(), RowHint::new(i / 50, i as usize % 50));
            errors += usize::from(world.put(&(i + 7).to_be_bytes(), &[2; 200]).is_err());
            errors +=
                usize::from(finish(|| world.tree.compact(&world.store, &i.to_be_bytes())).is_err());
        }
        errors += usize::from(
            finish(|| world.tree.scan_points(&world.store, &mut scan, usize::MAX)).is_err(),
        );
        errors += usize::from(
            finish(|| world.tree.get_many(&world.store, &mut many, usize::MAX)).is_err(),
        );
        let mut check = TreeCheck::default();
        loop {
            match finish(|| {
                world
                    .tree
                    .check_step(&world.store, &mut check, &mut |_, _| ())
            }) {
                Ok(false) => {}
                Ok(true) => break,
                Err(_) => {
                    errors += 1;
                    break;
                }
            }
        }
        assert!(
            errors + check.problems.len() > 0,
            "no reader, writer or check noticed the damage at {off}"
        );
    }
}
