//! Pages with numbers on them, between which threads move amounts: the sum stays, and the two copies on each page agree.

use nfold_store::*;

/// A pool much smaller than the data, with background I/O.
pub fn options() -> StoreOptions {
    StoreOptions {
        pool_bytes: 48 * PAGE_SIZE as u64,
        log_bytes: 2 << 20,
        io_threads: 2,
        ..StoreOptions::default()
    }
}

/// Repeats a call until it does not have to wait.
pub fn finish<T>(mut call: impl FnMut() -> Result<T, Stop>) -> T {
    loop {
        match call() {
            Ok(value) => return value,
            Err(Stop::Wait(wait)) => wait.block(),
            Err(Stop::Error(e)) => panic!("{e}"),
        }
    }
}

/// A page whose number is 0.
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

/// Takes `by` from the number on one page and adds it to that on another; both copies on each page change together.
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

/// The number on a page, read optimistically; checks that its two copies agree.
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
            assert_eq!(a, b, "a validated read is one state of the page");
            return a;
        }
    }
}

/// Of the numbers on these pages, modulo 2^64.
pub fn sum(store: &Store, ids: &[PageId]) -> u64 {
    ids.iter()
        .fold(0, |sum, id| sum.wrapping_add(read_number(store, *id)))
}
