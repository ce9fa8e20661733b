//! Background writing keeps ahead of the log in even steps: under a steady load, writers never run
//! out of log, and no round writes much more than the others.

use nfold_store::*;
use std::sync::Arc;

const LOG: u64 = 8 << 20;

struct Load {
    store: Arc<Store>,
    ids: Vec<PageId>,
    rng: SimRng,
}

impl Load {
    fn new(io_capacity: u32, io_capacity_max: u32) -> Load {
        let options = StoreOptions {
            pool_bytes: 4096 * PAGE_SIZE as u64,
            log_bytes: LOG,
            io_capacity,
            io_capacity_max,
            doublewrite: false,
            ..StoreOptions::default()
        };
        let (store, _) =
            Store::open(options, Arc::new(SimDisk::new()), Arc::new(NoRedo), &|_| {}).unwrap();
        let space = store.create_space("t").unwrap();
        let ids = (0..2000)
            .map(|_| {
                let mut mtr = store.mtr();
                mtr.reserve(100, space, 1).unwrap();
                let p = mtr.alloc_page(space, PageType::USER, 0, 1);
                let id = mtr.id(p);
                mtr.commit();
                id
            })
            .collect();
        store.checkpoint().unwrap();
        Load {
            store,
            ids,
            rng: SimRng::new(3),
        }
    }

    /// Changes random pages until about `bytes` bytes of log are written.
    fn write(&mut self, bytes: usize) {
        for _ in 0..bytes / 1000 {
            let id = self.ids[self.rng.below(self.ids.len() as u64) as usize];
            let mut mtr = self.store.mtr();
            mtr.reserve(1000, id.space, 0).unwrap();
            let p = mtr.latch(id).unwrap();
            mtr.write(p, 64, &[self.rng.next_u64() as u8; 960]);
            mtr.commit();
        }
    }
}

/// Runs `count` rounds of a steady load. Returns the pages written in each of the later rounds.
fn rounds(load: &mut Load, count: usize, bytes: usize) -> Vec<u64> {
    let mut written = Vec::new();
    for round in 0..count {
        load.write(bytes);
        let before = load.store.status().pages_written;
        load.store.step_background().unwrap();
        if round >= count / 3 {
            written.push(load.store.status().pages_written - before);
        }
    }
    written
}

#[test]
fn steady_load_never_waits_for_log_space() {
    // With a minimal capacity, only the age of the log causes writes.
    let mut load = Load::new(10, 20_000);
    let written = rounds(&mut load, 300, 100_000);
    let status = load.store.status();
    assert!(
        status.log_bytes_written > 3 * LOG,
        "the log wrapped around: {status:?}"
    );
    assert_eq!(status.log_waits, 0, "no writer waited for log space");
    let mean = written.iter().sum::<u64>() / written.len() as u64;
    let most = written.iter().max().copied().unwrap_or(0);
    assert!(mean > 5, "{written:?}");
    assert!(
        most <= 4 * mean,
        "the rounds are even, mean {mean}: {written:?}"
    );
    let age = status.horizon_lsn - status.checkpoint_lsn;
    assert!(
        age > LOG / 5 && age < LOG * 3 / 4,
        "the age stabilizes: {age} of {LOG}"
    );
}

#[test]
fn cleaner_catches_up_after_a_burst() {
    let mut load = Load::new(10, 20_000);
    for _ in 0..20 {
        load.write(LOG as usize / 8);
        load.store.step_background().unwrap();
    }
    assert_eq!(load.store.status().log_waits, 0);
}

#[test]
fn dirty_pages_are_written_at_the_lower_capacity() {
    let mut load = Load::new(500, 1000);
    load.write(1_200_000);
    let dirty = load.store.status().pool_pages_dirty;
    assert!(dirty > 800, "{dirty}");
    let mut rounds = 0;
    while load.store.status().pool_pages_dirty > 4096 / 10 {
        let before = load.store.status().pages_written;
        load.store.step_background().unwrap();
        let step = load.store.status().pages_written - before;
        assert!((1..=50).contains(&step), "{step}");
        rounds += 1;
    }
    assert!(rounds > 5, "{rounds}");
    let left = load.store.status().pool_pages_dirty;
    load.store.step_background().unwrap();
    assert_eq!(
        load.store.status().pool_pages_dirty,
        left,
        "a few dirty pages stay, because they may be changed again"
    );
}

#[test]
fn dirty_pool_is_written_at_the_upper_capacity() {
    let mut load = Load::new(100, 3000);
    let step = |load: &Load| {
        let before = load.store.status().pages_written;
        load.store.step_background().unwrap();
        load.store.status().pages_written - before
    };
    load.store.resize_pool(2600 * PAGE_SIZE as u64);
    while load.store.status().resize.ended.is_none() {
        load.store.step_background().unwrap();
    }
    load.store.checkpoint().unwrap();
    load.write(2_800_000);
    let dirty = load.store.status().pool_pages_dirty;
    assert!(
        (1500..1950).contains(&dirty),
        "between a half and three quarters of the pool is dirty: {dirty}"
    );
    let most = step(&load);
    assert!((50..=300).contains(&most), "{most}");
    let mut last = most;
    while load.store.status().pool_pages_dirty > 2600 / 2 {
        let now = step(&load);
        assert!(now <= last, "the writes decrease: {now} after {last}");
        last = now;
    }
    assert!(step(&load) <= 10, "no more than the capacity");

    // The same, with both capacities changed at run time.
    load.store.set_io_capacity(50, 50);
    load.write(2_800_000);
    assert!(step(&load) <= 5);
}

#[test]
fn old_log_is_advanced_at_the_upper_capacity() {
    let mut load = Load::new(10, 200);
    // The log's age is between a half and three quarters of its size.
    while load.store.status().horizon_lsn - load.store.status().checkpoint_lsn < LOG * 9 / 16 {
        load.write(50_000);
    }
    let before = load.store.status().pages_written;
    load.write(100_000);
    load.store.step_background().unwrap();
    assert_eq!(load.store.status().pages_written - before, 20);
}
