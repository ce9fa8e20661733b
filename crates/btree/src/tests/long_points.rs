//! Scans of points that go on over hundreds of leaves, of which the sink wants few entries or none.

use super::*;

const POINTS: u32 = 5;
const ENTRIES: u64 = 8_000;

/// Takes the entries whose numbers are divisible by `every`.
struct Few {
    every: u64,
    leaves: usize,
    /// Point, number.
    taken: Vec<(u32, u64)>,
}

impl PointSink for Few {
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

/// The caller gets to go on now and then, entries come in the order of the points, and leaves that give nothing are read once.
#[test]
fn points_that_give_little_are_left_and_gone_on_with() {
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
            let (mut found, mut calls, mut looked) = (Vec::new(), 0, 0);
            loop {
                let mut few = Few {
                    every,
                    leaves: 0,
                    taken: Vec::new(),
                };
                let more = finish(|| {
                    world
                        .tree
                        .scan_points_into(&world.store, &mut scan, &mut few)
                })
                .unwrap();
                few.taken.sort_by_key(|(point, _)| *point);
                found.extend(few.taken);
                (calls, looked) = (calls + 1, looked + few.leaves);
                assert!(
                    scan.memory() < 64 << 10,
                    "what was gone on with is forgotten"
                );
                if !more {
                    break;
                }
                // With waits it is several calls of the tree.
                assert!(cold || few.leaves < 300, "{}", few.leaves);
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
                assert!(looked < leaves * 5 / 4, "{looked} of {leaves} leaves");
            }
        }
    }
}
