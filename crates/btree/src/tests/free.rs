//! Frees a tree while a writer still changes its entries, as purge does with a dropped index.

use super::*;
use std::sync::mpsc;
use std::time::Duration;

fn key(i: u32) -> [u8; 4] {
    i.to_be_bytes()
}

/// The writer latches a leaf and then its right sibling. Freeing both must use the same order, or
/// the two would deadlock.
#[test]
fn freeing_a_tree_does_not_deadlock_with_a_writer() {
    let (finished, done) = mpsc::channel();
    std::thread::spawn(move || {
        let world = World::new(1_000, 2);
        for i in 0..1000 {
            world.put(&key(i), &[7; 120]).unwrap();
        }
        // `last` is the last entry of a leaf; its successor is on the next leaf.
        let leaf_of = |i: u32| {
            let mut mtr = world.store.mtr();
            let leaf = finish(|| {
                world
                    .tree
                    .leaf_for_write(&world.store, &mut mtr, &key(i), Room::Unchanged)
            });
            mtr.id(leaf.unwrap().leaf).page
        };
        let last = (0..999).rev().find(|i| leaf_of(*i) != leaf_of(999));
        let last = last.expect("more than one leaf");
        let mut mtr = world.store.mtr();
        let pos = world
            .tree
            .leaf_for_write(&world.store, &mut mtr, &key(last), Room::Unchanged)
            .unwrap();
        std::thread::scope(|s| {
            let freeing =
                s.spawn(|| while !finish(|| world.tree.free_step(&world.store)).unwrap() {});
            // Give the freeing thread time to reach the latch held here.
            std::thread::sleep(Duration::from_millis(300));
            assert!(!freeing.is_finished());
            let mut next = Vec::new();
            let found = world.tree.next_entry(&mut mtr, &pos, &mut next).unwrap();
            assert_eq!((found.is_some(), &next[..]), (true, &key(last + 1)[..]));
            drop(mtr);
        });
        // Later writers get an error, because the tree no longer exists.
        let mut mtr = world.store.mtr();
        let gone = finish(|| {
            world
                .tree
                .leaf_for_write(&world.store, &mut mtr, &key(last), Room::Unchanged)
        });
        assert!(matches!(gone, Err(StoreError::Corrupt { .. })));
        drop(mtr);
        let gone = finish(|| world.tree.compact(&world.store, &key(last)));
        assert!(matches!(gone, Err(StoreError::Corrupt { .. })), "{gone:?}");
        finished.send(()).unwrap();
    });
    done.recv_timeout(Duration::from_secs(30))
        .expect("no deadlock, and no thread failed");
}

/// Two handles of one tree, as two versions of a table have them, change the tree's structure one
/// after the other.
#[test]
fn cloned_handles_share_the_structure_mutex() {
    let world = World::new(100, 0);
    let other = world.tree.clone();
    let held = world.tree.hold_smo(&world.store);
    assert!(other.shape.smo.try_lock().is_none());
    drop(held);
    assert!(other.shape.smo.try_lock().is_some());
}
