//! Proves that a warm digest allocates nothing. This binary counts every allocation of its only
//! thread.
#![allow(unsafe_code)]

use nfold_sql::digest::Digested;
use nfold_sql::lexer::LexMode;
use nfold_sql::literal::Lit;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call is passed unchanged to the system's allocator. The counter is a plain
// thread-local cell without a destructor, so accessing it allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|c| c.set(c.get() + 1));
        // SAFETY: the caller's layout is passed on unchanged.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: `ptr` came from `System.alloc` with this layout.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn warm_digest_allocates_nothing() {
    let ids: Vec<String> = (0..200).map(|i| (i * 37).to_string()).collect();
    let texts = [
        "SELECT c FROM sbtest1 WHERE id=42".to_string(),
        format!(
            "SELECT * FROM items WHERE deleted = 0 AND group_id IN ({})",
            ids.join(", ")
        ),
        "INSERT INTO t VALUES (1, 'a''b', NULL), (2, -3.5, x'41')".to_string(),
        "SELECT DISTINCT c FROM t WHERE id BETWEEN 1 AND 100 ORDER BY c".to_string(),
    ];
    let mut digested = Digested::new();
    for text in &texts {
        digested.read(text.as_bytes(), LexMode::default());
    }
    let before = COUNT.with(Cell::get);
    let mut literals = 0;
    for text in &texts {
        let text = text.as_bytes();
        digested.read(text, LexMode::default());
        for n in 0..digested.slots().len() as u32 {
            literals += digested.literal(n, text).iter().count();
            literals += digested
                .list(n, text)
                .filter(|l| !matches!(l, Lit::Null))
                .count();
        }
    }
    assert_eq!(COUNT.with(Cell::get) - before, 0);
    assert_eq!(literals, 1 + 1 + 200 + 5 + 2);
}
