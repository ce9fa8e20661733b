//! A tree that is given back while somebody who came before its end still changes entries of it, as purge does with an index that is dropped.

use super::*;
use std::sync::mpsc;
use std::time::Duration;

fn key(i: u32) -> [u8; 4] {
    i.to_be_bytes()
}

/// A leaf is latched, and then the one right of it: whoever frees both may not do it the other way round.
#[test]
fn a_writer_between_two_leaves_and_the_end_of_the_tree() {
    let (told, done) = mpsc::channel();
    std::thread::spawn(move || {
        let world = World::new(1_000, 2);
        for i in 0..1000 {
            world.put(&key(i), &[7; 120]).unwrap();
        }
        // The last entry of a leaf; its successor is on the leaf right of it.
        let leaf_of = |i: u32| {
            let mut mtr = world.store.mtr();
            let leaf = finish(|| {
                world
                    .tree
                    .leaf_for_write(&world.store, &mut mtr, &key(i), Room::InPlace)
            });
            mtr.id(leaf.unwrap().leaf).page
        };
        let last = (0..999).rev().find(|i| leaf_of(*i) != leaf_of(999));
        let last = last.expect("more than one leaf");
        let mut mtr = world.store.mtr();
        let pos = world
            .tree
            .leaf_for_write(&world.store, &mut mtr, &key(last), Room::InPlace)
            .unwrap();
        std::thread::scope(|s| {
            let freeing =
                s.spawn(|| while !finish(|| world.tree.free_step(&world.store)).unwrap() {});
            // It has come to the latch that is held here.
            std::thread::sleep(Duration::from_millis(300));
            assert!(!freeing.is_finished());
            let mut next = Vec::new();
            let found = world.tree.next_entry(&mut mtr, &pos, &mut next).unwrap();
            assert_eq!((found.is_some(), &next[..]), (true, &key(last + 1)[..]));
            drop(mtr);
        });
        // Whoever comes now is told that there is no such tree.
        let mut mtr = world.store.mtr();
        let gone = finish(|| {
            world
                .tree
                .leaf_for_write(&world.store, &mut mtr, &key(last), Room::InPlace)
        });
        assert!(matches!(gone, Err(StoreError::Corrupt { .. })));
        drop(mtr);
        let gone = finish(|| world.tree.compact(&world.store, &key(last)));
        assert!(matches!(gone, Err(StoreError::Corrupt { .. })), "{gone:?}");
        told.send(()).unwrap();
    });
    done.recv_timeout(Duration::from_secs(30))
        .expect("they wait for each other, or one of them has failed");
}

/// Two handles of one tree, as two definitions of a table have them, change its structure one after the other.
#[test]
fn clones_have_one_structure_mutex() {
    let world = World::new(100, 0);
    let other = world.tree.clone();
    let held = world.tree.hold_smo(&world.store);
    assert!(other.shape.smo.try_lock().is_none());
    drop(held);
    assert!(other.shape.smo.try_lock().is_some());
}
