//! The log's files are filled with zeros in the background while the log is written. Crashes at any
//! moment lose nothing.

mod common;

use common::{finish, new_page, options, read_number, sum, transfer};
use nfold_store::*;
use std::sync::Arc;
use std::time::{Duration, Instant};

const FILES: u64 = 2;
const LOG: u64 = 8 << 20;

fn options_of(io_threads: usize) -> StoreOptions {
    StoreOptions {
        pool_bytes: 256 * PAGE_SIZE as u64,
        log_bytes: LOG,
        log_fill_bytes: 1 << 20,
        io_threads,
        ..options()
    }
}

/// The log reaches its second file before, during or long after the filling of that file. Then the
/// power fails.
#[test]
fn crash_during_filling_loses_nothing() {
    for round in 0..12u64 {
        let disk = SimDisk::new();
        let opened = Store::open(
            options_of(2),
            Arc::new(disk.clone()),
            Arc::new(NoRedo),
            &|_| {},
        );
        let store = opened.unwrap().0;
        let space = store.create_space("t").unwrap();
        let pages: Vec<_> = (0..8).map(|_| new_page(&store, space)).collect();
        // Long changes, so that the log advances far during the filling.
        let fill = |page: PageId, value: u8| {
            finish(|| {
                let mut mtr = store.mtr();
                mtr.reserve(9000, space, 0)?;
                let p = mtr.latch(page)?;
                mtr.write(p, 128, &[value; 8000]);
                Ok(mtr.commit().end)
            })
        };
        let begun = Instant::now();
        let (mut durable, mut made) = (0, 0);
        // Up to three laps of the log.
        let goal = LOG / FILES * (round / 2 + 1);
        while store.durable_lsn() < goal {
            transfer(&store, pages[made % 8], pages[(made + 3) % 8], 1);
            let end = fill(pages[(made + 1) % 8], made as u8);
            if made % 16 == 0 {
                while let Some(wait) = store.wait_durable(end) {
                    wait.block();
                }
                durable = end;
            }
            made += 1;
            if round % 2 == 1 && begun.elapsed() < Duration::from_millis(20 * round) {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        let left = disk.crash_image(round);
        drop(store);
        let (store, report) =
            Store::open(options_of(0), Arc::new(left), Arc::new(NoRedo), &|_| {}).unwrap();
        // Recovery opens the space, unless nothing is left to recover after the last checkpoint.
        store.open_space(space, "t").unwrap();
        assert!(report.end_lsn >= durable, "{report:?}");
        assert!(report.log_damage.is_none(), "{report:?}");
        assert_eq!(sum(&store, &pages), 0);
        read_number(&store, pages[0]);
    }
}
