//! Scans of points that extend over hundreds of leaves, with a sink that takes few of their entries
//! or none.

use super::*;

const POINTS: u32 = 5;
const ENTRIES: u64 = 8_000;

/// Takes the entries whose numbers are divisible by `every`.
struct EveryNth {
    every: u64,
    leaves: usize,
    /// (point, number).
    taken: Vec<(u32, u64)>,
}

impl PointSink for EveryNth {
    type Mark = usize;
    fn mark(&self) -> usize {
        self.taken.len()
    }
    fn cut(&mut self, taken: usize) {
        self.taken.truncate(taken);
    }
    fn take(&mut self, point: u32, entries: LeafEntries<'_>) {
        self.leaves += 1;
        let numbers = entries.iter().map(|entry| entry.value_word(0));
        let wanted = numbers.filter(|n| n.is_multiple_of(self.every));
        self.taken.extend(wanted.map(|n| (point, n)));
    }
    fn is_full(&self) -> bool {
        self.taken.len() >= 100
    }
    fn holds_behind(&self, last: u32) -> bool {
        self.taken.iter().any(|(point, _)| *point > last)
    }
    fn keep_points(&mut self, last: u32) {
        self.taken.retain(|(point, _)| *point <= last);
    }
}

/// Long scans return control to the caller regularly, entries arrive in point order, and leaves
/// without a taken entry are read once.
#[test]
fn sparse_long_points_resume_without_rereading() {
    for cold in [false, true] {
        let mut world = World::new(3000, 0);
        let mut builder = Builder::new(1);
        for point in 0..POINTS {
            for i in 1..=ENTRIES {
                let key = [&point.to_be_bytes()[..], &i.to_be_bytes()].concat();
                let value = [&i.to_le_bytes()[..], &[7; 600]].concat();
                finish(|| builder.push(&world.tree, &world.store, &key, &value)).unwrap();
            }
        }
        finish(|| builder.finish(&world.tree, &world.store)).unwrap();
        if cold {
            world.store.shutdown().unwrap();
            let tree = world.tree.tree();
            world.store = open(world.dir.path(), 512, 4);
            world.store.open_space(tree.space, "t").unwrap();
            world.tree = TreeHandle::open(tree);
        }
        let leaves = (ENTRIES * 600 * u64::from(POINTS)) as usize / 15_000;
        for every in [u64::MAX, 2_500, 3] {
            let mut scan = PointScan::new();
            for point in 0..POINTS {
                scan.push_prefix(&point.to_be_bytes());
            }
            let (mut found, mut calls, mut leaves_read) = (Vec::new(), 0, 0);
            loop {
                let mut sink = EveryNth {
                    every,
                    leaves: 0,
                    taken: Vec::new(),
                };
                let more = finish(|| {
                    world
                        .tree
                        .scan_points_into(&world.store, &mut scan, &mut sink)
                })
                .unwrap();
                sink.taken.sort_by_key(|(point, _)| *point);
                found.extend(sink.taken);
                (calls, leaves_read) = (calls + 1, leaves_read + sink.leaves);
                assert!(
                    scan.memory() < 64 << 10,
                    "the keys of finished continuations are dropped"
                );
                if !more {
                    break;
                }
                // In the cold case, waits make several calls of one.
                assert!(cold || sink.leaves < 300, "{}", sink.leaves);
            }
            let numbers = |point| {
                (1..=ENTRIES)
                    .filter(|n| n.is_multiple_of(every))
                    .map(move |n| (point, n))
            };
            let expected: Vec<_> = (0..POINTS).flat_map(numbers).collect();
            assert!(found == expected, "{every}");
            assert!(cold || calls > leaves / 300, "{every}: {calls}");
            if every == u64::MAX {
                assert!(
                    leaves_read < leaves * 5 / 4,
                    "{leaves_read} of {leaves} leaves"
                );
            }
        }
    }
}
