//! Many threads over a pool much smaller than the data, with I/O threads; crashes and shutdowns
//! follow.

mod common;

use common::{finish, new_page, options, read_number, sum, transfer};
use nfold_store::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

fn hammer(store: &Arc<Store>, ids: &[PageId], rounds: u64) -> Lsn {
    let stop = AtomicBool::new(false);
    let durable = AtomicU64::new(0);
    std::thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| {
                let mut at = 0;
                while !stop.load(Ordering::Relaxed) {
                    read_number(store, ids[at % ids.len()]);
                    at = at.wrapping_mul(7).wrapping_add(13);
                }
            });
        }
        let writers: Vec<_> = (0..3u64)
            .map(|t| {
                let durable = &durable;
                s.spawn(move || {
                    let mut rng = SimRng::new(t);
                    for i in 0..rounds {
                        let from = ids[rng.below(ids.len() as u64) as usize];
                        let to = ids[rng.below(ids.len() as u64) as usize];
                        if from == to {
                            continue;
                        }
                        let end = transfer(store, from, to, 1 + i);
                        if let Some(wait) = store.wait_filled(end) {
                            wait.block();
                        }
                        assert!(store.horizon().load() >= end);
                        if rng.one_in(8) {
                            if let Some(wait) = store.wait_durable(end) {
                                wait.block();
                            }
                            assert!(store.durable_lsn() >= end);
                            durable.fetch_max(end, Ordering::Relaxed);
                        }
                    }
                })
            })
            .collect();
        for w in writers {
            w.join().unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    durable.into_inner()
}

#[test]
fn transfers_preserve_the_sum_in_a_small_pool() {
    let disk = SimDisk::new();
    let open = |disk: &SimDisk| {
        Store::open(options(), Arc::new(disk.clone()), Arc::new(NoRedo), &|_| {}).unwrap()
    };
    let (store, _) = open(&disk);
    let space = store.create_space("t").unwrap();
    let ids: Vec<_> = (0..200).map(|_| new_page(&store, space)).collect();
    let durable = hammer(&store, &ids, 1000);
    assert_eq!(sum(&store, &ids), 0, "transfers preserve the sum");
    let status = store.status();
    assert!(
        status.pages_evicted > 100 && status.log_syncs > 10,
        "{status:?}"
    );

    let after = disk.crash_image(3); // The store may write until it is dropped.
    drop(store);
    let (store, report) = open(&after);
    assert!(
        report.end_lsn >= durable && report.corrupt_pages.is_empty(),
        "{report:?}"
    );
    store.open_space(space, "t").unwrap();
    assert_eq!(sum(&store, &ids), 0, "no transfer is incomplete");

    hammer(&store, &ids, 200);
    let before: Vec<_> = ids.iter().map(|id| read_number(&store, *id)).collect();
    store.shutdown().unwrap();
    drop(store);
    let (store, report) = open(&after.crash(4));
    assert!(report.clean, "{report:?}");
    store.open_space(space, "t").unwrap();
    assert_eq!(
        ids.iter()
            .map(|id| read_number(&store, *id))
            .collect::<Vec<_>>(),
        before
    );
}

#[test]
fn power_failure_during_transfers_loses_nothing() {
    let disk = SimDisk::new();
    let small = StoreOptions {
        log_bytes: 1 << 18,
        log_buffer_bytes: 1 << 16,
        ..options()
    };
    let open = |disk: &SimDisk| {
        Store::open(
            small.clone(),
            Arc::new(disk.clone()),
            Arc::new(NoRedo),
            &|_| {},
        )
        .unwrap()
    };
    let (store, _) = open(&disk);
    let space = store.create_space("t").unwrap();
    let ids: Vec<_> = (0..80).map(|_| new_page(&store, space)).collect();
    if let Some(wait) = store.wait_durable(store.horizon().load()) {
        wait.block();
    }
    let stop = AtomicBool::new(false);
    let images = std::thread::scope(|s| {
        for t in 0..3u64 {
            let (store, ids, stop) = (&store, &ids, &stop);
            s.spawn(move || {
                let mut rng = SimRng::new(t);
                while !stop.load(Ordering::Relaxed) {
                    let from = rng.below(ids.len() as u64) as usize;
                    let to = (from + 1 + rng.below(ids.len() as u64 - 1) as usize) % ids.len();
                    let end = transfer(store, ids[from], ids[to], 1);
                    if rng.one_in(16)
                        && let Some(wait) = store.wait_durable(end)
                    {
                        wait.block();
                    }
                }
            });
        }
        // Until the log wraps around and its files are overwritten.
        let mut images = std::collections::VecDeque::new();
        while images.len() < 25 || store.status().checkpoint_lsn < 2 * small.log_bytes {
            std::thread::sleep(std::time::Duration::from_millis(10));
            let durable = store.durable_lsn();
            images.push_back((durable, disk.crash_image(durable)));
            if images.len() > 25 {
                images.pop_front();
            }
        }
        stop.store(true, Ordering::Relaxed);
        images
    });
    drop(store);
    for (seed, (durable, image)) in images.into_iter().enumerate() {
        let (store, report) = open(&image);
        assert!(
            report.corrupt_pages.is_empty() && report.end_lsn >= durable,
            "image {seed}: {durable} {report:?}"
        );
        store.open_space(space, "t").unwrap();
        assert_eq!(
            sum(&store, &ids),
            0,
            "image {seed}: no transfer is incomplete"
        );
    }
}

#[test]
fn batched_loads_read_each_page_once() {
    let disk = SimDisk::new();
    let (store, _) =
        Store::open(options(), Arc::new(disk.clone()), Arc::new(NoRedo), &|_| {}).unwrap();
    let space = store.create_space("t").unwrap();
    let ids: Vec<_> = (0..100).map(|_| new_page(&store, space)).collect();
    store.shutdown().unwrap();
    drop(store);
    let (store, _) = Store::open(options(), Arc::new(disk), Arc::new(NoRedo), &|_| {}).unwrap();
    store.open_space(space, "t").unwrap();
    let batch = &ids[..16];
    assert_eq!(store.prefetch(batch[0]), Residency::Loading);
    store.wait_for(batch).expect("a cold pool").block();
    assert!(
        store.wait_for(batch).is_none(),
        "pages loaded for a waiter are resident at its next attempt"
    );
    for id in batch {
        assert_eq!(store.prefetch(*id), Residency::Resident);
        assert!(store.read(*id).is_ok());
    }
    assert_eq!(
        store.status().pages_read,
        17,
        "each page is read once, and the header"
    );
}

#[test]
fn corrupt_page_fails_only_its_readers() {
    let disk = SimDisk::new();
    let options = StoreOptions {
        doublewrite: false,
        ..options()
    }; // It would repair the page.
    let (store, _) = Store::open(
        options.clone(),
        Arc::new(disk.clone()),
        Arc::new(NoRedo),
        &|_| {},
    )
    .unwrap();
    let space = store.create_space("t").unwrap();
    let ids: Vec<_> = (0..4).map(|_| new_page(&store, space)).collect();
    store.shutdown().unwrap();
    drop(store);
    assert!(disk.flip_bit("t.nfd", u64::from(ids[1].page) * PAGE_SIZE as u64 + 5000));
    let (store, _) =
        Store::open(options, Arc::new(disk.clone()), Arc::new(NoRedo), &|_| {}).unwrap();
    store.open_space(space, "t").unwrap();
    for id in &ids {
        let result = loop {
            match store.read(*id) {
                Err(Stop::Wait(wait)) => wait.block(),
                other => break other.map(|_| ()),
            }
        };
        match result {
            Err(Stop::Error(StoreError::Corrupt { page, lsn, .. })) => {
                assert!(page == ids[1] && lsn > 0)
            }
            other => assert!(other.is_ok() && *id != ids[1], "{other:?}"),
        }
    }
    assert!(store.mtr().latch(ids[1]).is_err());
    assert!(disk.flip_bit("t.nfd", u64::from(ids[1].page) * PAGE_SIZE as u64 + 5000));
    let healed = (0..40).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        match store.read(ids[1]) {
            Err(Stop::Wait(wait)) => {
                wait.block();
                store.read(ids[1]).is_ok()
            }
            other => other.is_ok(),
        }
    });
    assert!(healed, "errors expire");
}

#[test]
fn dropped_space_returns_errors_under_load() {
    let disk = SimDisk::new();
    let (store, _) =
        Store::open(options(), Arc::new(disk.clone()), Arc::new(NoRedo), &|_| {}).unwrap();
    let keep = store.create_space("keep").unwrap();
    let ids: Vec<_> = (0..40).map(|_| new_page(&store, keep)).collect();
    std::thread::scope(|s| {
        s.spawn(|| hammer(&store, &ids, 400));
        for i in 0..20 {
            let space = store.create_space(&format!("t{i}")).unwrap();
            for _ in 0..20 {
                new_page(&store, space);
            }
            store.drop_space(space).unwrap();
        }
    });
    assert_eq!(sum(&store, &ids), 0);
    assert_eq!(
        store.spaces_on_disk().unwrap(),
        [(keep, "keep".to_string())]
    );
    assert!(store.checkpoint().unwrap() > 0);
    store.shutdown().unwrap();
}

/// Readers keep reading a dropped space. Other spaces soon reuse its object, and must not be
/// mistaken for it.
#[test]
fn readers_never_mistake_one_space_for_another() {
    let (store, _) = Store::open(
        options(),
        Arc::new(SimDisk::new()),
        Arc::new(NoRedo),
        &|_| {},
    )
    .unwrap();
    let (current, over) = (std::sync::atomic::AtomicU32::new(0), AtomicBool::new(false));
    let pages = 6;
    let read = |looks: &mut (u64, u64)| {
        let space = current.load(Ordering::Relaxed);
        let Some(there) = store.pages_of(space) else {
            return;
        };
        // This may run long after the drop.
        for turn in 0..2000 {
            let page = match there.read(1 + turn % pages) {
                Ok(page) => page,
                Err(Stop::Wait(wait)) => {
                    wait.block();
                    continue;
                }
                Err(Stop::Error(StoreError::SpaceGone(gone))) => {
                    assert_eq!(gone, space);
                    looks.1 += 1;
                    return;
                }
                Err(Stop::Error(e)) => panic!("{e}"),
            };
            let found = (page.u32(header::SPACE), page.index_id());
            if page.validate() {
                assert_eq!(found, (space, u64::from(space)));
                looks.0 += 1;
            }
        }
    };
    let latch = |looks: &mut (u64, u64)| {
        let space = current.load(Ordering::Relaxed);
        for turn in 0..200 {
            let mut mtr = store.mtr();
            match mtr.latch(PageId::new(space, 1 + turn % pages)) {
                Ok(p) => assert_eq!(mtr.u32(p, header::SPACE), space),
                Err(Stop::Wait(wait)) => wait.block(),
                Err(Stop::Error(_)) => {
                    looks.1 += 1;
                    return;
                }
            }
            looks.0 += 1;
        }
    };
    let (read, latch): (
        &(dyn Fn(&mut (u64, u64)) + Sync),
        &(dyn Fn(&mut (u64, u64)) + Sync),
    ) = (&read, &latch);
    let looks = std::thread::scope(|s| {
        let threads: Vec<_> = [read, read, latch]
            .into_iter()
            .map(|look| {
                let over = &over;
                s.spawn(move || {
                    let mut looks = (0, 0);
                    while !over.load(Ordering::Relaxed) {
                        look(&mut looks);
                    }
                    looks
                })
            })
            .collect();
        for i in 0..1500 {
            let space = store.create_space(&format!("t{i}")).unwrap();
            finish(|| {
                let mut mtr = store.mtr();
                mtr.reserve(1024, space, pages as usize)?;
                for _ in 0..pages {
                    mtr.alloc_page(space, PageType::USER, 0, space.into());
                }
                mtr.commit();
                Ok(())
            });
            let old = current.swap(space, Ordering::Relaxed);
            if old != 0 {
                store.drop_space(old).unwrap();
            }
        }
        over.store(true, Ordering::Relaxed);
        threads
            .into_iter()
            .map(|t| t.join().unwrap())
            .collect::<Vec<_>>()
    });
    assert!(
        looks.iter().all(|(good, gone)| *good > 0 && *gone > 0),
        "{looks:?}"
    );
    store.shutdown().unwrap();
}

/// A drop waits for no user of the space. The users finish or get errors, and no page of the space
/// stays in memory.
#[test]
fn dropping_a_space_in_use_leaves_no_pages() {
    let disk = SimDisk::new();
    let (store, _) = Store::open(options(), Arc::new(disk), Arc::new(NoRedo), &|_| {}).unwrap();
    let kept = store.create_space("keep").unwrap();
    new_page(&store, kept);
    let current = std::sync::atomic::AtomicU32::new(0);
    let over = AtomicBool::new(false);
    let changes = |space: SpaceId, mine: &mut Vec<PageId>| -> Result<(), Stop> {
        let mut mtr = store.mtr();
        mtr.reserve(256, space, 1)?;
        let old = mine.last().copied().filter(|_| mine.len() > 8);
        let old = old.map(|id| mtr.latch(id)).transpose()?;
        let p = mtr.alloc_page(space, PageType::USER, 0, 1);
        let new = mtr.id(p);
        if let Some(old) = old {
            mtr.free_page(old);
            mine.pop();
        }
        mine.push(new);
        mtr.commit();
        Ok(())
    };
    let done = std::thread::scope(|s| {
        let workers: Vec<_> = (0..3)
            .map(|_| {
                s.spawn(|| {
                    let (mut at, mut mine, mut done) = (0, Vec::new(), 0);
                    while !over.load(Ordering::Relaxed) {
                        let space = current.load(Ordering::Relaxed);
                        if std::mem::replace(&mut at, space) != space {
                            mine.clear();
                        }
                        match changes(space, &mut mine) {
                            Ok(()) => done += 1,
                            Err(Stop::Wait(wait)) => wait.block(),
                            Err(Stop::Error(StoreError::SpaceGone(_))) => {}
                            Err(Stop::Error(e)) => panic!("{e}"),
                        }
                    }
                    done
                })
            })
            .collect();
        for i in 0..200 {
            let space = store.create_space(&format!("t{i}")).unwrap();
            let old = current.swap(space, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(2));
            if old != 0 {
                store.drop_space(old).unwrap();
            }
        }
        over.store(true, Ordering::Relaxed);
        workers.into_iter().map(|w| w.join().unwrap()).sum::<u64>()
    });
    assert!(done > 200, "{done}");
    store.drop_space(current.into_inner()).unwrap();
    // The pages of the last space are discarded in the background.
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        store.checkpoint().unwrap();
        let dirty = store.status().pool_pages_dirty;
        if dirty == 0 {
            break;
        }
        assert!(Instant::now() < end, "{dirty} dirty pages remain");
        std::thread::sleep(Duration::from_millis(1));
    }
    store.shutdown().unwrap();
}
