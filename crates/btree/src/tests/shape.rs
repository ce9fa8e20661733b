//! A reader that predicts a cell's position from its key finds the same rows, whether the
//! predictions are right or not.

use super::*;

const ROWS: usize = 8_000;

fn key(i: usize) -> [u8; 8] {
    (3 * i as u64).to_be_bytes()
}

fn value(i: usize) -> Vec<u8> {
    vec![i as u8; 2_000]
}

/// Reads rows in random order, and for each a key between rows that does not exist.
fn read_random_rows(world: &World, shape: &mut TreeShape, value: impl Fn(usize) -> Vec<u8>) {
    let mut rng = Rng(7);
    for _ in 0..2 * ROWS {
        let i = rng.below(ROWS);
        assert_eq!(world.look(&key(i), shape), Some(value(i)), "row {i}");
        let beside = (3 * i as u64 + 1).to_be_bytes();
        assert_eq!(world.look(&beside, shape), None, "beside row {i}");
    }
}

#[test]
fn predictions_are_trusted_after_ordered_inserts() {
    let world = World::new(3_000, 0);
    for i in 0..ROWS {
        world.put(&key(i), &value(i)).unwrap();
    }
    assert!(world.check().inner_pages > 2, "three levels");
    let mut shape = TreeShape::default();
    read_random_rows(&world, &mut shape, value);
    let trust = (shape.leaves.trust(), shape.parents.trust());
    assert!(
        shape.leaves.is_trusted() && shape.parents.is_trusted(),
        "{trust:?}"
    );
}

#[test]
fn predictions_are_not_trusted_after_random_inserts() {
    let world = World::new(3_000, 0);
    let value = |i: usize| vec![i as u8; 20 + i * 7 % 500];
    let mut order: Vec<usize> = (0..ROWS).collect();
    let mut rng = Rng(11);
    for i in (1..ROWS).rev() {
        order.swap(i, rng.below(i + 1));
    }
    for i in order {
        world.put(&key(i), &value(i)).unwrap();
    }
    let mut shape = TreeShape::default();
    read_random_rows(&world, &mut shape, value);
    assert!(!shape.leaves.is_trusted(), "{:?}", shape.leaves.trust());
}
