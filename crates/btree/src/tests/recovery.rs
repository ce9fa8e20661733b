//! What the log makes of a tree after a crash is what was there, byte for byte.

use super::*;
use nfold_store::{PAGE_WORDS, PageId};
use std::sync::atomic::Ordering::Relaxed;

fn copy_dir(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            std::fs::create_dir_all(&target).unwrap();
            copy_dir(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The words of a page without its checksum.
fn page_words(store: &Store, id: PageId) -> Vec<u64> {
    finish(|| {
        let page = store.read(id)?;
        let mut words: Vec<u64> = page.words().iter().map(|w| w.load(Relaxed)).collect();
        assert!(page.validate() && words.len() == PAGE_WORDS);
        words[0] &= !0xFFFF_FFFF;
        Ok(words)
    })
    .unwrap()
}

#[test]
fn replay_gives_the_same_bytes() {
    for (seed, checkpoint) in [(3u64, false), (4, true)] {
        let world = World::new(512, 0);
        let mut rng = Rng(seed);
        let mut model = BTreeMap::new();
        for i in 0..4000usize {
            let key = rng.bytes(1 + i % 9);
            if rng.below(3) == 0 || (1500..2500).contains(&i) && rng.below(2) == 0 {
                let key = model
                    .range(key.clone()..)
                    .next()
                    .map_or(key, |(k, _): (&Vec<u8>, &Vec<u8>)| k.clone());
                assert_eq!(world.remove(&key), model.remove(&key).is_some());
            } else {
                let value = rng.bytes(20 + i % 300);
                world.put(&key, &value).unwrap();
                model.insert(key, value);
            }
            if checkpoint && i == 2000 {
                world.store.checkpoint().unwrap();
            }
        }
        let end = world.store.horizon().load();
        while let Some(wait) = world.store.wait_durable(end) {
            wait.block();
        }
        let copy = tempfile::tempdir().unwrap();
        copy_dir(world.dir.path(), copy.path());
        let store = open(copy.path(), 512, 0);
        let space = world.tree.tree().space;
        store.open_space(space, "t").unwrap();
        let recovered = World {
            store,
            tree: TreeHandle::open(world.tree.tree()),
            dir: copy,
        };
        recovered.assert_holds(&model);
        let pages = world.store.space_pages(space).unwrap();
        assert!(pages > 10);
        for page in 1..pages {
            let id = PageId { space, page };
            assert_eq!(
                page_words(&world.store, id),
                page_words(&recovered.store, id),
                "page {page}"
            );
        }
    }
}
