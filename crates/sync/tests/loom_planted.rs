//! Shows that the models can fail: it plants a read that skips the version check, and expects loom
//! to find it.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p nfold-sync --features planted --test loom_planted`
#![cfg(all(loom, feature = "planted"))]

use loom::sync::atomic::AtomicU64;
use loom::thread;
use nfold_sync::page_word::{PageWord, frame_of, is_exclusive};
use nfold_sync::planted::{Bug, plant};
use nfold_sync::words;
use std::panic::catch_unwind;
use std::sync::Arc;

/// A writer that stores the same value to two words. A reader whose read validates must see equal
/// values.
fn model() {
    let page = (0..2).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
    let shared = Arc::new((PageWord::new(), page));
    assert!(shared.0.install(0, 0));
    let writer = shared.clone();
    let t = thread::spawn(move || {
        let (word, bytes) = &*writer;
        let before = word.latch_resident().unwrap();
        words::store_u64(bytes, 0, 1);
        words::store_u64(bytes, 8, 1);
        word.release_changed(before);
    });
    let reader = thread::spawn(move || {
        let (word, bytes) = &*shared;
        let seen = word.load();
        if !is_exclusive(seen) && frame_of(seen).is_some() {
            let pair = (words::load_u64(bytes, 0), words::load_u64(bytes, 8));
            if word.validate(seen) {
                assert_eq!(pair.0, pair.1, "half of a change");
            }
        }
    });
    t.join().unwrap();
    reader.join().unwrap();
}

/// There is only one test here, because a planted bug applies to the whole process.
#[test]
fn model_finds_a_missed_validation() {
    loom::model(model);
    plant(Some(Bug::MissedVersion));
    let found = catch_unwind(|| loom::model(model));
    plant(None);
    assert!(found.is_err(), "the model missed the bug");
}
