//! Recovery rebuilds trees from the log byte for byte.

use super::*;
use nfold_store::{PAGE_WORDS, PageId};

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

/// The words of a page, without its checksum.
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
fn replay_reproduces_pages_byte_for_byte() {
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
            ended: AtomicU64::new(0),
        };
        recovered.assert_matches(&model);
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

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// A change, and the end LSN of its log records. It survives a crash if and only if the log does up
/// to that LSN.
type Change = (u64, Vec<u8>, Option<Vec<u8>>);

/// Makes random changes to the tree and appends them to `history`. Returns the LSN up to which the
/// log was awaited.
fn work(world: &World, model: &mut Model, history: &mut Vec<Change>, rng: &mut Rng) -> u64 {
    let mut durable = 0;
    for _ in 0..100 + rng.below(700) {
        let len = 1 + rng.below(6);
        let key = rng.bytes(len);
        let above = model.range(key.clone()..).next().map(|(k, _)| k.clone());
        if let Some(key) = above
            && rng.below(5) < 2
        {
            assert!(world.remove(&key));
            model.remove(&key);
            history.push((world.ended.load(Relaxed), key, None));
        } else {
            let len = rng.below(400);
            let value = rng.bytes(len);
            world.put(&key, &value).unwrap();
            model.insert(key.clone(), value.clone());
            history.push((world.ended.load(Relaxed), key, Some(value)));
        }
        match rng.below(200) {
            0..4 => {
                durable = world.ended.load(Relaxed);
                while let Some(wait) = world.store.wait_durable(durable) {
                    wait.block();
                }
            }
            4..8 => drop(world.store.step_background().unwrap()),
            8 => drop(world.store.checkpoint().unwrap()),
            _ => {}
        }
    }
    durable
}

fn open_sim(disk: &nfold_store::SimDisk) -> (Arc<Store>, nfold_store::RecoveryReport) {
    let options = StoreOptions {
        pool_bytes: 48 << 14,
        log_bytes: 2 << 20,
        ..StoreOptions::default()
    };
    Store::open(
        options,
        Arc::new(disk.clone()),
        Arc::new(BtreeRedo),
        &|_| (),
    )
    .unwrap()
}

#[test]
fn tree_after_power_failure_matches_the_durable_log() {
    for seed in 1..12u64 {
        let mut rng = Rng(seed * 1_000_003);
        let mut disk = nfold_store::SimDisk::new();
        let (store, _) = open_sim(&disk);
        let space = finish(|| store.create_space("t")).unwrap();
        let tree = World::new_tree(&store, space, 7);
        let made = store.horizon().load();
        while let Some(wait) = store.wait_durable(made) {
            wait.block();
        }
        let mut world = World {
            store,
            tree,
            dir: tempfile::tempdir().unwrap(),
            ended: AtomicU64::new(0),
        };
        let mut model = Model::new();
        for _ in 0..6 {
            let before = model.clone();
            let mut history = Vec::new();
            let durable = work(&world, &mut model, &mut history, &mut rng);
            disk = disk.crash(rng.next());
            let (store, report) = open_sim(&disk);
            store.open_space(space, "t").unwrap();
            assert!(
                report.end_lsn >= durable,
                "the awaited log survives the crash"
            );
            assert!(
                report.corrupt_pages.is_empty(),
                "{:?}",
                report.corrupt_pages
            );
            world.store = store;
            model = before;
            for (end, key, value) in history {
                if end > report.end_lsn {
                    break;
                }
                match value {
                    Some(value) => model.insert(key, value),
                    None => model.remove(&key),
                };
            }
            world.assert_matches(&model);
        }
    }
}
