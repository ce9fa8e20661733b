//! Writers that insert in key order and skip the descent, and the stale or damaged pages they must
//! not trust.

use super::*;
use crate::node::{OFF_GARBAGE, OFF_UPPER_LEN};
use nfold_store::PageId;

impl World {
    /// Whether this thread's next write of `key` would skip the descent.
    fn is_hinted(&self, key: &[u8]) -> bool {
        let mut mtr = self.store.mtr();
        self.tree.latch_hinted(&self.store, &mut mtr, key).is_some()
    }

    fn leaf_of(&self, key: &[u8]) -> u32 {
        let mut mtr = self.store.mtr();
        let pos = finish(|| {
            self.tree
                .leaf_for_write(&self.store, &mut mtr, key, Room::Unchanged)
        });
        mtr.id(pos.unwrap().leaf).page
    }

    /// Overwrites a header field of a page with a wrong value.
    fn damage(&self, page: u32, off: usize, value: u16) {
        let space = self.tree.tree().space;
        let mut mtr = self.store.mtr();
        finish(|| mtr.reserve(100, space, 0)).unwrap();
        let latched = finish(|| mtr.latch(PageId { space, page })).unwrap();
        mtr.write(latched, off, &value.to_le_bytes());
        mtr.commit();
    }
}

/// Rows inserted in key order go to the leaf of the last insert, without a descent, and leave full
/// leaves behind.
#[test]
fn ascending_inserts_skip_the_descent_and_fill_leaves() {
    const ROWS: u32 = 20_000;
    let world = World::new(2_000, 0);
    let mut hits = 0;
    for i in 0..ROWS {
        hits += u32::from(world.is_hinted(&i.to_be_bytes()));
        assert!(!world.put(&i.to_be_bytes(), &[7; 120]).unwrap());
    }
    // An entry takes 134 bytes, so a leaf has room for about 120.
    let leaves = world.tree.counters().splits.load(Relaxed) as u32 + 1;
    assert!(leaves <= ROWS / 118, "{leaves} leaves");
    assert!(hits >= ROWS - 3 * leaves, "{hits} of {ROWS} by the hint");
    let entries = world.check().entries;
    assert_eq!(entries, u64::from(ROWS));
}

/// A leaf that another thread split, merged away, or gave to another tree is not mistaken for the
/// old one.
#[test]
fn write_hint_notices_split_merge_and_reuse() {
    let world = World::new(2_000, 0);
    let key = |i: u32| i.to_be_bytes();
    for i in 0..1000 {
        world.put(&key(2 * i), &[7; 120]).unwrap();
    }
    let elsewhere = |f: &(dyn Fn() + Sync)| std::thread::scope(|s| s.spawn(f).join().unwrap());
    // Another thread splits the leaf: the hint does not lead to the part that moved to the right.
    for i in [600, 600] {
        world.put(&key(i), &[8; 120]).unwrap();
    }
    assert!(world.is_hinted(&key(600)));
    let before = world.leaf_of(&key(600));
    let last = (600..2000)
        .step_by(2)
        .take_while(|i| world.leaf_of(&key(*i)) == before)
        .last()
        .unwrap();
    for i in [600, 600] {
        world.put(&key(i), &[8; 120]).unwrap();
    }
    elsewhere(&|| {
        for i in (601..last).step_by(2) {
            world.put(&key(i), &[9; 120]).unwrap();
        }
    });
    assert!(!world.is_hinted(&key(last)));
    assert!(world.put(&key(last), &[3; 120]).unwrap());
    // Another thread merges the leaf away.
    for _ in 0..2 {
        world.put(&key(last), &[4; 120]).unwrap();
    }
    elsewhere(&|| {
        for i in 0..1990 {
            world.remove(&key(i));
        }
    });
    assert!(!world.put(&key(last), &[5; 120]).unwrap());
    assert_eq!(world.get(&key(last)).unwrap(), [5; 120]);
    // Another tree with the same index number has no hint at first.
    let other = World::new_tree(&world.store, world.tree.tree().space, 7);
    let mut mtr = world.store.mtr();
    let hinted = other.latch_hinted(&world.store, &mut mtr, &key(last));
    assert!(hinted.is_none());
    drop(mtr);
    world.check();
}

/// A leaf whose cells do not match its header is never compacted, because compaction would panic.
#[test]
fn damaged_leaf_is_not_compacted() {
    for (off, value) in [(OFF_GARBAGE, 120), (OFF_UPPER_LEN, 9000)] {
        let world = World::new(256, 0);
        let value_of = |len: usize| vec![1; len];
        for i in 0..2000u32 {
            world.put(&i.to_be_bytes(), &value_of(100)).unwrap();
        }
        let mut errors = 0;
        world.damage(world.leaf_of(&1000u32.to_be_bytes()), off, value);
        for len in [90, 101, 110, 120, 90, 130] {
            for i in 900..1200u32 {
                errors += u32::from(world.put(&i.to_be_bytes(), &value_of(len)).is_err());
            }
        }
        assert!(errors > 0, "damage at {off} was not noticed");
    }
}
