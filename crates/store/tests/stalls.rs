//! A thread that waits for a cold page waits only for the disk, and not for other work of the
//! store.

#[allow(dead_code)] // Not all of it is used here.
mod common;
#[allow(dead_code)]
#[path = "common/gate.rs"]
mod gate;

use common::{finish, new_page, read_number, transfer};
use gate::GateDisk;
use nfold_store::*;
use std::sync::Arc;

const POOL: usize = 64;

fn opened(disk: &GateDisk, io_threads: usize) -> Arc<Store> {
    let options = StoreOptions {
        pool_bytes: (POOL * PAGE_SIZE) as u64,
        log_bytes: 16 << 20,
        io_threads,
        ..StoreOptions::default()
    };
    let (store, _) =
        Store::open(options, Arc::new(disk.clone()), Arc::new(NoRedo), &|_| {}).unwrap();
    store
}

/// Lets no more syncs of the gate's files end. Returns the number of syncs that have begun.
fn close(disk: &GateDisk) -> u64 {
    let mut begun = 0;
    disk.change(|s| {
        begun = s.begun;
        s.allowed = Some(begun);
    });
    begun
}

/// Spaces are dropped while a batch of pages is being written. Cold pages can be read meanwhile,
/// with one I/O thread and with several. Discarding the pages of the dropped spaces does not delay
/// reads either.
#[test]
fn dropping_spaces_during_a_batch_delays_no_read() {
    for io_threads in [1, 4] {
        let disk = GateDisk::new("nfold.doublewrite");
        let store = opened(&disk, io_threads);
        let space = store.create_space("kept").unwrap();
        let pages: Vec<_> = (0..2 * POOL).map(|_| new_page(&store, space)).collect();
        let doomed: Vec<_> = (0..3 * io_threads)
            .map(|n| {
                let space = store.create_space(&format!("doomed{n}")).unwrap();
                (space, new_page(&store, space))
            })
            .collect();
        store.checkpoint().unwrap();
        for (_, page) in &doomed {
            finish(|| store.read(*page).map(drop));
        }
        std::thread::scope(|scope| {
            let begun = close(&disk);
            transfer(&store, pages[0], pages[1], 1);
            let batch = scope.spawn(|| store.checkpoint().unwrap());
            disk.wait_until(|s| s.begun > begun);
            for (space, _) in &doomed {
                store.drop_space(*space).unwrap();
            }
            let cold = pages.iter().filter(|page| !store.is_resident(**page));
            let cold: Vec<_> = cold.take(POOL / 2).collect();
            assert_eq!(cold.len(), POOL / 2);
            for page in cold {
                read_number(&store, *page);
            }
            assert!(!batch.is_finished(), "the batch is still in progress");
            disk.change(|s| s.allowed = None);
            batch.join().unwrap();
        });
        for (space, page) in &doomed {
            assert!(matches!(
                store.read(*page),
                Err(Stop::Error(StoreError::SpaceGone(id))) if id == *space
            ));
        }
        assert_eq!(read_number(&store, pages[1]), 1);
        store.shutdown().unwrap();
    }
}

/// A space is dropped while a batch has images of its pages. Pages that reuse their frames are not
/// marked as written, and no change is lost.
#[test]
fn frames_of_a_dropped_space_are_reused_during_its_batch() {
    let disk = GateDisk::new("nfold.doublewrite");
    let store = opened(&disk, 2);
    let kept = store.create_space("kept").unwrap();
    for round in 0..20 {
        let doomed = store.create_space(&format!("doomed{round}")).unwrap();
        for _ in 0..POOL / 4 {
            new_page(&store, doomed);
        }
        std::thread::scope(|scope| {
            let begun = close(&disk);
            let batch = scope.spawn(|| store.checkpoint().unwrap());
            disk.wait_until(|s| s.begun > begun);
            store.drop_space(doomed).unwrap();
            let free = || store.status().pool_pages_free as usize;
            while free() < POOL / 4 {
                std::thread::yield_now();
            }
            // New pages are loaded into those frames and changed there while the batch is in
            // progress.
            let pages: Vec<_> = (0..POOL / 4 - 4).map(|_| new_page(&store, kept)).collect();
            for pair in pages.chunks_exact(2) {
                transfer(&store, pair[0], pair[1], round + 1);
            }
            assert!(!batch.is_finished(), "the batch is still in progress");
            disk.change(|s| s.allowed = None);
            batch.join().unwrap();
            store.checkpoint().unwrap();
            assert_eq!(store.status().pool_pages_dirty, 0);
            for pair in pages.chunks_exact(2) {
                assert_eq!(read_number(&store, pair[1]), round + 1);
            }
        });
    }
    store.shutdown().unwrap();
}

/// Many dirty pages are written at once. A thread that needs a frame gets one after the first
/// batch.
#[test]
fn waiting_for_a_frame_takes_at_most_one_batch() {
    let disk = GateDisk::new("nfold.doublewrite");
    let options = StoreOptions {
        pool_bytes: (512 * PAGE_SIZE) as u64,
        log_bytes: 64 << 20,
        io_threads: 2,
        ..StoreOptions::default()
    };
    let (store, _) =
        Store::open(options, Arc::new(disk.clone()), Arc::new(NoRedo), &|_| {}).unwrap();
    let space = store.create_space("t").unwrap();
    let cold: Vec<_> = (0..64).map(|_| new_page(&store, space)).collect();
    let pages: Vec<_> = (0..480).map(|_| new_page(&store, space)).collect();
    store.checkpoint().unwrap();
    std::thread::scope(|scope| {
        for pair in pages.chunks_exact(2) {
            transfer(&store, pair[0], pair[1], 1);
        }
        let begun = close(&disk);
        let batch = scope.spawn(|| store.checkpoint().unwrap());
        disk.wait_until(|s| s.begun > begun);
        // One batch may end. The next one, or the cleaner's, may not.
        disk.change(|s| s.allowed = Some(begun + 1));
        disk.wait_until(|s| s.begun > begun + 1);
        assert!(
            cold.iter()
                .filter(|page| !store.is_resident(**page))
                .count()
                > 16
        );
        for page in &cold {
            read_number(&store, *page);
        }
        assert!(!batch.is_finished(), "another batch is still in progress");
        disk.change(|s| s.allowed = None);
        batch.join().unwrap();
    });
    store.shutdown().unwrap();
}
