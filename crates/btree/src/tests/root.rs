//! A reader that caches a copy of the root finds the same rows, whether the root changes or not.

use super::*;

fn key(i: usize) -> [u8; 8] {
    ((1 << 63) | (16 * i as u64)).to_be_bytes()
}

/// Reads random rows, and keys between rows that do not exist.
fn read_rows(world: &World, shape: &mut TreeShape, rng: &mut Rng, rows: usize, reads: usize) {
    for _ in 0..reads {
        let i = rng.below(rows);
        assert_eq!(world.look(&key(i), shape), Some(vec![i as u8; 3_000]));
        let beside = ((1 << 63) | (16 * i as u64 + 1)).to_be_bytes();
        assert_eq!(world.look(&beside, shape), None, "beside row {i}");
    }
}

#[test]
fn unchanged_root_is_cached() {
    let world = World::new(3_000, 0);
    let (mut shape, mut rng, mut copies) = (TreeShape::default(), Rng(5), 0);
    for i in 0..8_000 {
        world.put(&key(i), &[i as u8; 3_000]).unwrap();
        if i % 100 == 99 {
            read_rows(&world, &mut shape, &mut rng, i + 1, 20);
            copies += usize::from(shape.root.is_copied());
        }
    }
    assert!(copies > 20, "{copies} copies");
    assert!(world.check().inner_pages > 2, "three levels");
    read_rows(&world, &mut shape, &mut rng, 8_000, 2_000);
    assert!(shape.root.is_copied());
    // Keys that are shorter or longer than the words in the copy.
    for i in (0..8_000).step_by(7) {
        for key in [&key(i)[..4], &key(i)[..7], &[key(i), key(i)].concat()] {
            assert_eq!(world.look(key, &mut shape), world.get(key));
        }
    }
    assert_eq!(world.look(&[], &mut shape), None);
    assert_eq!(world.look(&[0xff; 9], &mut shape), None);
}

#[test]
fn cached_root_is_not_used_for_other_trees() {
    let (one, other) = (World::new(300, 0), World::new(300, 0));
    for i in 0..400 {
        one.put(&key(i), &[1; 2_000]).unwrap();
        other.put(&key(i), &[2; 2_000]).unwrap();
    }
    let mut shape = TreeShape::default();
    for round in 0..4 {
        for i in 0..400 {
            assert_eq!(one.look(&key(i), &mut shape), Some(vec![1; 2_000]));
            if round % 2 == 0 {
                assert_eq!(other.look(&key(i), &mut shape), Some(vec![2; 2_000]));
            }
        }
        for i in 0..400 {
            assert_eq!(other.look(&key(i), &mut shape), Some(vec![2; 2_000]));
        }
    }
}
