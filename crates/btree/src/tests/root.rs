//! A reader that remembers the root finds the same rows, while it stands and when it changes.

use super::*;

fn key(i: usize) -> [u8; 8] {
    ((1 << 63) | (16 * i as u64)).to_be_bytes()
}

/// Looks at some rows, and beside them.
fn look(world: &World, shape: &mut TreeShape, rng: &mut Rng, rows: usize, looks: usize) {
    for _ in 0..looks {
        let i = rng.below(rows);
        assert_eq!(world.look(&key(i), shape), Some(vec![i as u8; 3_000]));
        let beside = ((1 << 63) | (16 * i as u64 + 1)).to_be_bytes();
        assert_eq!(world.look(&beside, shape), None, "beside row {i}");
    }
}

#[test]
fn a_root_that_stands_still_is_remembered() {
    let world = World::new(3_000, 0);
    let (mut shape, mut rng, mut copies) = (TreeShape::default(), Rng(5), 0);
    for i in 0..8_000 {
        world.put(&key(i), &[i as u8; 3_000]).unwrap();
        if i % 100 == 99 {
            look(&world, &mut shape, &mut rng, i + 1, 20);
            copies += usize::from(shape.root.is_copied());
        }
    }
    assert!(copies > 20, "{copies} copies");
    assert!(world.check().inner_pages > 2, "three levels");
    look(&world, &mut shape, &mut rng, 8_000, 2_000);
    assert!(shape.root.is_copied());
    // Keys at, before and behind the words that the copy has.
    for i in (0..8_000).step_by(7) {
        for key in [&key(i)[..4], &key(i)[..7], &[key(i), key(i)].concat()] {
            assert_eq!(world.look(key, &mut shape), world.get(key));
        }
    }
    assert_eq!(world.look(&[], &mut shape), None);
    assert_eq!(world.look(&[0xff; 9], &mut shape), None);
}

#[test]
fn another_trees_root_is_not_taken_for_it() {
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
