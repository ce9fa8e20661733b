//! Proves that a warm read allocates nothing, with an allocator that counts the calls of each
//! thread.
#![allow(unsafe_code)]

use nfold_btree::*;
use nfold_store::{RealDisk, Stop, Store, StoreOptions};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is passed unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|n| n.set(n.get() + 1));
        // SAFETY: the caller keeps the promises that `System` requires.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.with(|n| n.set(n.get() + 1));
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn finish<T>(mut call: impl FnMut() -> Result<T, Stop>) -> T {
    loop {
        match call() {
            Ok(value) => return value,
            Err(Stop::Wait(wait)) => wait.block(),
            Err(Stop::Error(error)) => panic!("{error}"),
        }
    }
}

const ROWS: u32 = 20_000;

fn setup(dir: &std::path::Path) -> (Arc<Store>, TreeHandle) {
    let options = StoreOptions {
        pool_bytes: 16 << 20,
        ..StoreOptions::default()
    };
    let disk = Arc::new(RealDisk::new(dir, false));
    let (store, _) = Store::open(options, disk, Arc::new(BtreeRedo), &|_| ()).unwrap();
    let space = finish(|| store.create_space("t"));
    let mut mtr = store.mtr();
    finish(|| mtr.reserve(TreeHandle::CREATE_LOG_BYTES, space, 1));
    let root = TreeHandle::create(&mut mtr, space, 1);
    mtr.commit();
    drop(mtr);
    let tree = TreeHandle::open(Tree {
        space,
        root,
        index_id: 1,
    });
    let mut builder = Builder::new(1);
    for i in 0..ROWS {
        finish(|| builder.push(&tree, &store, &i.to_be_bytes(), &[5; 100]));
    }
    finish(|| builder.finish(&tree, &store));
    (store, tree)
}

#[test]
fn warm_reads_allocate_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (store, tree) = setup(dir.path());
    let (mut value, mut batch, mut scan) = (Vec::new(), GetMany::new(), PointScan::new());
    let (mut cursor, mut entries) = (Cursor::default(), EntryBatch::default());
    let mut row_hints = vec![RowHint::NONE; ROWS as usize];
    let mut round = || {
        value.clear();
        batch.clear();
        scan.clear();
        entries.clear();
        assert!(finish(|| tree.get(
            &store,
            &777u32.to_be_bytes(),
            &mut value
        )));
        for i in (0..ROWS).step_by(97) {
            batch.push(&i.to_be_bytes(), row_hints[i as usize]);
            // Some of these continue on a second leaf.
            scan.push(&i.to_be_bytes(), &(i + 40).to_be_bytes());
        }
        assert!(!finish(|| tree.get_many(&store, &mut batch, usize::MAX)));
        for found in batch.found() {
            let key = u32::from_be_bytes(batch.key(found.key).try_into().unwrap());
            row_hints[key as usize] = found.row_hint;
        }
        assert!(!finish(|| tree.scan_points(&store, &mut scan, usize::MAX)));
        for reverse in [false, true] {
            cursor.reset(
                Bound::Included(&100u32.to_be_bytes()),
                Bound::Excluded(&900u32.to_be_bytes()),
                reverse,
            );
            while finish(|| cursor.next_batch(&tree, &store, 100, &mut entries)) {}
        }
        (batch.found().len(), scan.entries().len(), entries.len())
    };
    round();
    let warm = round();
    let before = ALLOCATIONS.with(Cell::get);
    let again = round();
    let allocated = ALLOCATIONS.with(Cell::get) - before;
    assert_eq!(warm, again);
    assert_eq!((warm.0, warm.2), (ROWS.div_ceil(97) as usize, 1600));
    assert!(scan.len() > 200 && warm.1 > scan.len() * 39, "{warm:?}");
    assert_eq!(allocated, 0);
}
