//! The pool grows and shrinks under load. Other threads are not disturbed, nothing is lost, and
//! memory returned to the system is not written: it is read-only, so a write there ends the test
//! with SIGSEGV.
#![allow(unsafe_code)]

mod common;

use common::{finish, new_page, options, read_number, sum, transfer};
use nfold_store::*;
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

const PAGE: u64 = PAGE_SIZE as u64;

fn open(disk: &SimDisk, options: StoreOptions) -> Arc<Store> {
    Store::open(options, Arc::new(disk.clone()), Arc::new(NoRedo), &|_| {})
        .unwrap()
        .0
}

fn inline(frames: u64) -> StoreOptions {
    StoreOptions {
        pool_bytes: frames * PAGE,
        pool_max_bytes: 1000 * PAGE,
        ..StoreOptions::default()
    }
}

/// The number of pages of the frames' mapping, from frame `from` to `to`, for which the system has
/// memory.
fn backed(store: &Store, from: usize, to: usize) -> usize {
    let base = store.frame_memory().0 + from * PAGE_SIZE;
    let mut there = vec![0u8; (to - from) * (PAGE_SIZE / 4096)];
    // SAFETY: queries pages of the store's mapping. The call writes one byte per page to the
    // vector.
    let rc = unsafe {
        let address = std::ptr::with_exposed_provenance_mut(base);
        libc::mincore(address, (to - from) * PAGE_SIZE, there.as_mut_ptr())
    };
    assert_eq!(rc, 0);
    there.iter().filter(|b| *b & 1 != 0).count()
}

#[test]
fn shrinking_moves_pages_and_evicts_the_surplus() {
    let disk = SimDisk::new();
    let store = open(&disk, inline(500));
    assert_eq!(store.max_pool_bytes(), 1000 * PAGE);
    let space = store.create_space("t").unwrap();
    let ids: Vec<_> = (0..300).map(|_| new_page(&store, space)).collect();
    for (i, id) in ids.iter().enumerate() {
        transfer(&store, *id, ids[(i + 1) % 300], 1 + i as u64);
    }
    let numbers: Vec<u64> = ids.iter().map(|id| read_number(&store, *id)).collect();
    let all = || ids.iter().map(|id| read_number(&store, *id));

    // All pages fit into the smaller pool, although they are dirty, and none has to be read again.
    let before = store.status();
    assert_eq!(store.resize_pool(320 * PAGE + 5), 320 * PAGE);
    while store.status().resize.ended.is_none() {
        assert!(store.step_background().unwrap());
    }
    let status = store.status();
    assert_eq!(status.pool_pages_total, 320);
    assert_eq!(status.resize.phase, ResizePhase::Idle);
    assert_eq!(status.resize.to_bytes, 320 * PAGE);
    assert!(all().eq(numbers.iter().copied()));
    assert_eq!(store.status().pages_read, before.pages_read);
    assert_eq!(
        backed(&store, 320, 500),
        0,
        "the memory was returned to the system"
    );

    // Now the pages do not fit any more.
    store.resize_pool(64 * PAGE);
    while store.step_background().unwrap() {}
    assert_eq!(store.status().pool_pages_total, 64);
    assert!(all().eq(numbers.iter().copied()));
    assert!(store.status().pages_read > before.pages_read);
    assert_eq!(backed(&store, 64, 500), 0);

    // Now all of them fit again, in a pool larger than at the start.
    assert_eq!(store.resize_pool(u64::MAX), 1000 * PAGE);
    store.step_background().unwrap();
    assert_eq!(store.status().pool_pages_total, 1000);
    assert!(all().eq(numbers.iter().copied()));
    let warm = store.status().pages_read;
    assert!(all().eq(numbers.iter().copied()));
    assert_eq!(store.status().pages_read, warm);
    assert_eq!(store.resize_pool(0), 32 * PAGE, "the least");
}

#[test]
fn changes_in_moved_pages_survive() {
    let disk = SimDisk::new();
    let store = open(&disk, inline(400));
    let space = store.create_space("t").unwrap();
    let ids: Vec<_> = (0..200).map(|_| new_page(&store, space)).collect();
    store.checkpoint().unwrap();
    for (i, id) in ids.iter().enumerate() {
        transfer(&store, *id, ids[(i + 1) % 200], 1 + i as u64);
    }
    let numbers: Vec<u64> = ids.iter().map(|id| read_number(&store, *id)).collect();
    let durable = store.horizon().load();
    assert!(store.wait_durable(durable).is_none());
    store.resize_pool(210 * PAGE);
    while store.status().resize.ended.is_none() {
        store.step_background().unwrap();
    }
    let store = open(&disk.crash_image(durable), inline(64));
    store.open_space(space, "t").unwrap();
    assert!(ids.iter().map(|id| read_number(&store, *id)).eq(numbers));
}

/// Requests random pool sizes until `stop` is set. Some requests replace the one before while it is
/// still being carried out; `done` counts those that were waited for.
fn resize_at_random(store: &Store, seed: u64, done: &AtomicU32, stop: &AtomicBool) {
    let mut rng = SimRng::new(seed);
    while !stop.load(Ordering::Relaxed) {
        let bytes = store.resize_pool((40 + rng.below(360)) * PAGE);
        if rng.one_in(3) {
            std::thread::sleep(Duration::from_micros(rng.below(2000)));
            continue;
        }
        while store.status().resize.ended.is_none() {
            std::thread::sleep(Duration::from_micros(200));
        }
        assert_eq!(store.status().pool_pages_total * PAGE, bytes);
        done.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn readers_and_writers_continue_during_resizes() {
    let disk = SimDisk::new();
    let options = StoreOptions {
        pool_max_bytes: 400 * PAGE,
        ..options()
    };
    let store = open(&disk, options.clone());
    let space = store.create_space("t").unwrap();
    let ids: Vec<_> = (0..250).map(|_| new_page(&store, space)).collect();
    if let Some(wait) = store.wait_durable(store.horizon().load()) {
        wait.block();
    }
    let stop = AtomicBool::new(false);
    let resizes = AtomicU32::new(0);
    let images = std::thread::scope(|s| {
        for t in 0..2u64 {
            let (store, ids, stop) = (&store, &ids, &stop);
            s.spawn(move || {
                let mut rng = SimRng::new(t);
                while !stop.load(Ordering::Relaxed) {
                    read_number(store, ids[rng.below(250) as usize]);
                }
            });
            s.spawn(move || {
                let mut rng = SimRng::new(10 + t);
                while !stop.load(Ordering::Relaxed) {
                    let from = rng.below(250) as usize;
                    let to = (from + 1 + rng.below(249) as usize) % 250;
                    transfer(store, ids[from], ids[to], 1);
                }
            });
        }
        s.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                // Frames in use and new pages while the pool shrinks.
                new_page(&store, space);
                std::thread::sleep(Duration::from_micros(300));
            }
        });
        s.spawn(|| resize_at_random(&store, 7, &resizes, &stop));
        let mut images = VecDeque::new();
        let mut images_taken = 0;
        let begun = Instant::now();
        // A busy machine completes few resizes per second, so the test lasts until there are
        // enough.
        while images_taken < 60 || resizes.load(Ordering::Relaxed) <= 10 {
            if begun.elapsed() > Duration::from_secs(60) {
                break;
            }
            images_taken += 1;
            std::thread::sleep(Duration::from_millis(25));
            let durable = store.durable_lsn();
            images.push_back((durable, disk.crash_image(durable)));
            if images.len() > 12 {
                images.pop_front();
            }
        }
        stop.store(true, Ordering::Relaxed);
        images
    });
    let resizes = resizes.into_inner();
    assert!(resizes > 10, "{resizes} resizes in a minute");
    assert_eq!(sum(&store, &ids), 0, "transfers preserve the sum");
    drop(store);
    for (durable, image) in images {
        let store = open(&image, options.clone());
        store.open_space(space, "t").unwrap();
        assert!(store.horizon().load() >= durable);
        assert_eq!(sum(&store, &ids), 0, "no transfer is incomplete");
    }
}

#[test]
fn failing_writes_only_delay_shrinking() {
    let disk = SimDisk::new();
    let store = open(&disk, inline(400));
    let space = store.create_space("t").unwrap();
    let ids: Vec<_> = (0..300).map(|_| new_page(&store, space)).collect();
    store.resize_pool(64 * PAGE);
    disk.inject(FaultOn::Write, "t.nfd", 0, u64::MAX, ErrorKind::Other);
    let _ = store.step_background();
    assert!(store.status().resize.ended.is_none());
    disk.clear_faults();
    while store.status().resize.ended.is_none() {
        store.step_background().unwrap();
    }
    assert_eq!(finish(|| Ok(sum(&store, &ids))), 0);
}

/// Waits until `done` returns true.
fn wait_for(what: &str, done: impl Fn() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn frames_are_populated_a_little_ahead_of_their_use() {
    const FRAMES: usize = 8192;
    let disk = SimDisk::new();
    let options = StoreOptions {
        pool_bytes: FRAMES as u64 * PAGE,
        pool_max_bytes: 2 * FRAMES as u64 * PAGE,
        log_bytes: 64 << 20,
        io_threads: 2,
        ..StoreOptions::default()
    };
    let store = open(&disk, options);
    let space = store.create_space("t").unwrap();
    let used = 20; // Besides the space's header, and perhaps pages of the store itself.
    for _ in 0..used {
        new_page(&store, space);
    }
    // 1/32 of the pool is populated ahead, and at least half of that at any time.
    let pages = PAGE_SIZE / 4096;
    let ready = |store: &Store| backed(store, 0, 1024);
    wait_for("memory is populated ahead of its use", || {
        ready(&store) >= (used + FRAMES / 64) * pages
    });
    assert_eq!(
        backed(&store, 1024, FRAMES),
        0,
        "unneeded frames have no memory"
    );

    // Memory returned by a shrinking pool is not populated again. A growing pool uses its lowest
    // frames first.
    for frames in [100, 2 * FRAMES] {
        store.resize_pool(frames as u64 * PAGE);
        wait_for("the pool has its new size", || {
            store.status().resize.ended.is_some()
        });
    }
    for _ in 0..used + 100 {
        new_page(&store, space);
    }
    wait_for("memory is populated again", || {
        ready(&store) >= (100 + FRAMES / 64) * pages
    });
    assert_eq!(
        backed(&store, 2048, 2 * FRAMES),
        0,
        "unneeded frames have no memory"
    );
}
