//! Waiting for a leaf latch that other writers hold almost all the time.

use super::*;
use crate::tree::Seek;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The root of a small tree is its only leaf. Writers latch it without the structure mutex, so
/// holding that mutex does not keep them away. A thread that latches it must wait its turn in the
/// latch's queue, and must not depend on a moment without changes.
#[test]
fn latching_a_leaf_root_waits_without_restarts() {
    let world = World::new(100, 0);
    let key = |i: u32| (i % 50).to_be_bytes();
    for i in 0..50 {
        world.put(&key(i), &[7; 20]).unwrap();
    }
    let restarts = || world.store.status().optimistic_restarts;
    let done = AtomicBool::new(false);
    std::thread::scope(|s| {
        s.spawn(|| {
            while !done.load(Relaxed) {
                let mut mtr = world.store.mtr();
                mtr.latch(world.tree.page_id(world.tree.tree().root))
                    .unwrap();
            }
        });
        for i in 0..200_000 {
            let mut mtr = world.store.mtr();
            let latched = world
                .tree
                .latch_leaf(&world.store, &mut mtr, Seek::At(&key(i)));
            assert!(latched.is_ok(), "{:?}", latched.err());
        }
        done.store(true, Relaxed);
    });
    assert_eq!(
        restarts(),
        0,
        "the descent waited for the latch and did not restart"
    );
}
