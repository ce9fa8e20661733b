//! Tests of bulk loads, and of freeing whole trees.

use super::*;

fn build(world: &World, entries: &[(Vec<u8>, Vec<u8>)]) {
    let mut builder = Builder::new(77);
    for (key, value) in entries {
        finish(|| builder.push(&world.tree, &world.store, key, value)).unwrap();
    }
    finish(|| builder.finish(&world.tree, &world.store)).unwrap();
}

#[test]
fn bulk_load_writes_all_entries() {
    let mut rng = Rng(5);
    for (count, longest_key, longest_value) in [
        (0, 1, 1),
        (1, 10, 10),
        (40, 10, 20),
        (5000, 12, 40),
        (300, 3000, 100),
        (300, 20, 5000),
        (400, 3000, 1500),
    ] {
        let world = World::new(256, 0);
        let mut model = BTreeMap::new();
        while model.len() < count {
            let mut key = rng.bytes(1 + rng.0 as usize % longest_key);
            key[0] %= 4;
            let len = rng.below(longest_value + 1);
            model.insert(key, rng.bytes(len));
        }
        let entries: Vec<_> = model.clone().into_iter().collect();
        build(&world, &entries);
        world.assert_matches(&model);
        let check = world.check();
        if count == 5000 {
            let used: usize = entries.iter().map(|(k, v)| k.len() + v.len() + 10).sum();
            assert!(
                check.leaf_pages as usize <= used / 14_000 + 2,
                "{} leaves",
                check.leaf_pages
            );
        }
        // The tree then accepts ordinary changes.
        for (key, value) in entries.iter().step_by(3) {
            assert!(world.remove(key));
            model.remove(key);
            let mut key = key.clone();
            key.truncate(MAX_KEY - 1);
            key.push(1);
            world.put(&key, value).unwrap();
            model.insert(key, value.clone());
        }
        world.assert_matches(&model);
    }
}

#[test]
fn bulk_load_rejects_keys_out_of_order() {
    let world = World::new(64, 0);
    let mut builder = Builder::new(1);
    builder.push(&world.tree, &world.store, b"b", b"").unwrap();
    assert!(builder.push(&world.tree, &world.store, b"b", b"").is_err());
    assert!(builder.push(&world.tree, &world.store, b"a", b"").is_err());
}

#[test]
fn freed_pages_are_reused_by_other_trees() {
    let world = World::new(256, 0);
    let space = world.tree.tree().space;
    let entries: Vec<_> = (0..30_000u32)
        .map(|i| (i.to_be_bytes().to_vec(), vec![1u8; 50]))
        .collect();
    build(&world, &entries);
    let pages = world.store.space_pages(space).unwrap();
    for round in 0..3 {
        let other = World::new_tree(&world.store, space, 100 + round);
        let mut builder = Builder::new(1);
        for (key, value) in &entries[..10_000] {
            finish(|| builder.push(&other, &world.store, key, value)).unwrap();
        }
        finish(|| builder.finish(&other, &world.store)).unwrap();
        while !finish(|| other.free_step(&world.store)).unwrap() {}
    }
    let grown = world.store.space_pages(space).unwrap() - pages;
    assert!(
        grown < 150,
        "the space grew by {grown} pages although freed pages could be reused"
    );
    assert_eq!(world.check().entries, 30_000);
}
