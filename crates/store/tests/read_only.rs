//! Proves that a warm read writes nothing: all memory that the store owns is made read-only, and
//! then the store is read.
//!
//! The allocator of this test binary can place the allocations of a thread into one mapping. The
//! store is opened in inline mode, so by that thread alone, and warmed. Then the mapping and the
//! frames are protected, and threads read. A write by any of them ends the process with SIGSEGV.
#![allow(unsafe_code)]

use nfold_store::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const ZONE: usize = 256 << 20;

thread_local! {
    static IN_ZONE: Cell<bool> = const { Cell::new(false) };
}

static BASE: AtomicUsize = AtomicUsize::new(0);
static USED: AtomicUsize = AtomicUsize::new(0);

struct Zoned;

// SAFETY: the zone hands out disjoint pieces of a mapping that is never unmapped, with the
// requested alignment. All other calls go to `System`.
unsafe impl GlobalAlloc for Zoned {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !IN_ZONE.try_with(Cell::get).unwrap_or(false) {
            // SAFETY: the caller's layout is passed unchanged.
            return unsafe { System.alloc(layout) };
        }
        let from = USED.fetch_add(layout.size() + layout.align(), Ordering::Relaxed);
        if from + layout.size() + layout.align() > ZONE {
            return null_mut();
        }
        let address = (BASE.load(Ordering::Relaxed) + from).next_multiple_of(layout.align());
        std::ptr::with_exposed_provenance_mut(address)
    }

    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        let base = BASE.load(Ordering::Relaxed);
        if !(base..base + ZONE).contains(&p.addr()) {
            // SAFETY: not from the zone, so it was allocated by `System` with the same layout.
            unsafe { System.dealloc(p, layout) }
        }
    }
}

#[global_allocator]
static ALLOCATOR: Zoned = Zoned;

fn protect(address: usize, len: usize, how: i32) {
    // SAFETY: changes the protection of a mapping of this process. A write to it meanwhile is the
    // bug that this test looks for.
    let rc = unsafe { libc::mprotect(std::ptr::with_exposed_provenance_mut(address), len, how) };
    assert_eq!(rc, 0);
}

#[test]
fn warm_read_writes_nothing() {
    // SAFETY: creates an anonymous mapping.
    let base = unsafe {
        libc::mmap(
            null_mut(),
            ZONE,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    assert_ne!(base, libc::MAP_FAILED);
    BASE.store(base.expose_provenance(), Ordering::Relaxed);

    IN_ZONE.set(true);
    let disk = Arc::new(SimDisk::new());
    let (store, _) = Store::open(StoreOptions::default(), disk, Arc::new(NoRedo), &|_| {}).unwrap();
    let space = store.create_space("t").unwrap();
    let ids: Vec<PageId> = (0..300u64)
        .map(|i| {
            let mut mtr = store.mtr();
            mtr.reserve(100, space, 1).unwrap();
            let p = mtr.alloc_page(space, PageType::USER, 0, 1);
            mtr.write(p, 64, &i.to_le_bytes());
            let id = mtr.id(p);
            mtr.commit();
            id
        })
        .collect();
    for id in &ids {
        assert!(store.read(*id).is_ok(), "warm");
    }
    let marks = store.status().clock_marks;
    IN_ZONE.set(false);
    assert!(
        USED.load(Ordering::Relaxed) > 1 << 20,
        "the store was allocated in the zone"
    );

    let (frames, frames_len) = store.frame_memory();
    protect(base.addr(), ZONE, libc::PROT_READ);
    protect(frames, frames_len, libc::PROT_READ);
    let sums: Vec<u64> = std::thread::scope(|s| {
        let (store, ids) = (&*store, &ids);
        let readers: Vec<_> = (0..4)
            .map(|_| {
                s.spawn(move || {
                    let mut sum = 0;
                    for id in ids.iter().cycle().take(20_000) {
                        assert_eq!(store.prefetch(*id), Residency::Resident);
                        let Ok(page) = store.read(*id) else {
                            unreachable!("warm")
                        };
                        sum += page.u64(64);
                        assert!(page.validate());
                    }
                    assert!(store.wait_for(ids).is_none());
                    assert!(store.horizon().load() >= store.durable_lsn());
                    sum
                })
            })
            .collect();
        readers.into_iter().map(|r| r.join().unwrap()).collect()
    });
    protect(frames, frames_len, libc::PROT_READ | libc::PROT_WRITE);
    protect(base.addr(), ZONE, libc::PROT_READ | libc::PROT_WRITE);
    let expected: u64 = (0..300u64).cycle().take(20_000).sum();
    assert_eq!(sums, [expected; 4]);
    assert_eq!(
        store.status().clock_marks,
        marks,
        "no clock mark had to be set"
    );
}
