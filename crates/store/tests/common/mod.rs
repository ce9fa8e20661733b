//! Helpers for tests that move amounts between numbers on pages. The sum of all numbers stays the
//! same, and the two copies of each number agree.

use nfold_store::*;

/// A pool much smaller than the data, with I/O threads.
pub fn options() -> StoreOptions {
    StoreOptions {
        pool_bytes: 48 * PAGE_SIZE as u64,
        log_bytes: 2 << 20,
        io_threads: 2,
        ..StoreOptions::default()
    }
}

/// Repeats a call, and waits between the attempts, until it returns a result.
pub fn finish<T>(mut call: impl FnMut() -> Result<T, Stop>) -> T {
    loop {
        match call() {
            Ok(value) => return value,
            Err(Stop::Wait(wait)) => wait.block(),
            Err(Stop::Error(e)) => panic!("{e}"),
        }
    }
}

/// Creates a page with the number 0.
pub fn new_page(store: &Store, space: SpaceId) -> PageId {
    finish(|| {
        let mut mtr = store.mtr();
        mtr.reserve(64, space, 1)?;
        let p = mtr.alloc_page(space, PageType::USER, 0, 1);
        let id = mtr.id(p);
        mtr.commit();
        Ok(id)
    })
}

/// Subtracts `by` from the number on one page and adds it to the number on another. Both copies on
/// each page change together.
pub fn transfer(store: &Store, from: PageId, to: PageId, by: u64) -> Lsn {
    let (low, high) = (from.min(to), from.max(to));
    finish(|| {
        let mut mtr = store.mtr();
        mtr.reserve(256, from.space, 0)?;
        let (low, high) = (mtr.latch(low)?, mtr.latch(high)?);
        let (from, to) = if mtr.id(low) == from {
            (low, high)
        } else {
            (high, low)
        };
        for (p, change) in [(from, by.wrapping_neg()), (to, by)] {
            let value = mtr.u64(p, 64).wrapping_add(change);
            mtr.write(p, 64, &value.to_le_bytes());
            mtr.write(p, PAGE_SIZE - 8, &value.to_le_bytes());
        }
        Ok(mtr.commit().end)
    })
}

/// Reads the number on a page optimistically, and checks that its two copies agree.
pub fn read_number(store: &Store, id: PageId) -> u64 {
    loop {
        let (a, b, valid) = finish(|| {
            let page = store.read(id)?;
            let (a, b) = (page.u64(64), page.u64(PAGE_SIZE - 8));
            Ok((
                a,
                b,
                page.validate() && page.u32(header::PAGE_NO) == id.page,
            ))
        });
        if valid {
            assert_eq!(a, b, "a validated read sees a single state of the page");
            return a;
        }
    }
}

/// The sum of the numbers on these pages, modulo 2^64.
pub fn sum(store: &Store, ids: &[PageId]) -> u64 {
    ids.iter()
        .fold(0, |sum, id| sum.wrapping_add(read_number(store, *id)))
}
