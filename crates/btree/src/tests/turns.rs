//! A leaf that others always have: whoever comes waits for its turn.

use super::*;
use crate::tree::Seek;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The root of a small tree is its only leaf, which writers latch without the structure mutex: holding that keeps nobody away from it. So to be latched
/// it need not stand still first.
#[test]
fn a_root_that_is_a_leaf_is_latched_in_turn() {
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
    assert_eq!(restarts(), 0, "its latch was waited for, and no more");
}
