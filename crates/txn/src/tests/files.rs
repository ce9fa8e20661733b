//! Undo files that are given up for new ones, and given back.

use super::*;
use nfold_store::FaultOn;

fn undo_files(w: &World) -> Vec<String> {
    let mut names: Vec<String> = w
        .store
        .spaces_on_disk()
        .unwrap()
        .into_iter()
        .map(|(_, n)| n)
        .collect();
    names.retain(|n| n.starts_with("undo"));
    names.sort();
    names
}

/// `count` transactions that change two keys each.
fn write_some(w: &World, count: u32) {
    let mut a = w.session();
    for n in 0..count {
        a.begin(Isolation::RepeatableRead, false);
        for k in 0..2u32 {
            let key = format!("k{}", (n * 2 + k) % 40);
            let image = vec![b'a' + (n % 26) as u8; 600];
            w.write(&mut a, key.as_bytes(), Some(&image)).unwrap();
        }
        w.commit(&mut a);
        if n % 8 == 7 {
            w.run_background();
        }
    }
}

#[test]
fn the_undo_log_turns_to_new_files_and_gives_the_old_ones_back() {
    let w = World::new(0);
    w.system.set_undo_limit(2);
    write_some(&w, 400);
    w.run_background();
    let status = w.system.status();
    assert!(status.undo_files_given_up > 2, "{status:?}");
    assert!(status.undo_file_pages < 12, "{status:?}");
    assert_eq!(undo_files(&w).len(), 1);
    // None of it is lost when the machine stops now.
    let rows = w.scan(&mut w.begun());
    let given_up = status.undo_files_given_up;
    let w = w.after_crash(7);
    w.run_background();
    assert_eq!(w.scan(&mut w.begun()), rows);
    assert_eq!(w.system.status().undo_files_given_up, given_up);
    assert_eq!(undo_files(&w).len(), 1);
}

#[test]
fn a_transaction_may_span_two_files_and_be_taken_back() {
    let w = World::new(0);
    w.system.set_undo_limit(2);
    write_some(&w, 20);
    let expected = w.scan(&mut w.begun());
    let mut long = w.begun();
    for n in 0..60u32 {
        let key = format!("k{}", n % 40);
        w.write(&mut long, key.as_bytes(), Some(&[n as u8; 900]))
            .unwrap();
        w.run_background();
    }
    let status = w.system.status();
    assert_eq!(undo_files(&w).len(), 2, "{status:?}");
    // Its first records are in the old file, which so stays.
    let w = w.after_crash(3);
    assert_eq!(undo_files(&w).len(), 2);
    assert_eq!(w.scan(&mut w.begun()), expected, "before it is undone");
    w.run_background();
    assert_eq!(w.scan(&mut w.begun()), expected);
    w.run_background();
    assert_eq!(undo_files(&w).len(), 1);
}

#[test]
fn a_long_reader_blocks_no_writer_and_returns_the_space() {
    let w = World::new(0);
    w.system.set_undo_limit(10);
    write_some(&w, 40);
    w.run_background();
    let mut reader = w.system.session(4711).unwrap();
    reader.begin(Isolation::RepeatableRead, true);
    let before = w.scan(&mut reader);
    write_some(&w, 300);
    let held = w.system.status();
    assert_eq!(
        held.history_length, 300,
        "nothing that it may look for is purged"
    );
    assert_eq!(held.oldest_reader.unwrap().session, 4711);
    assert!(held.undo_file_pages > 20);
    assert_eq!(w.scan(&mut reader), before);
    // What was committed before it began is purged as ever.
    assert!(held.purge_floor <= held.horizon);
    w.commit(&mut reader);
    w.run_background();
    w.run_background();
    let after = w.system.status();
    assert_eq!((after.history_length, after.oldest_reader), (0, None));
    assert!(after.undo_file_pages < 12, "{after:?}");
    assert_eq!(undo_files(&w).len(), 1);
}

/// An error of the disk while the next file is made, once, and the power failing after it or not:
/// turning works later, and no file stays behind.
#[test]
fn an_unfinished_new_file_blocks_no_session() {
    let faults = [
        FaultOn::Allocate,
        FaultOn::Write,
        FaultOn::Sync,
        FaultOn::Read,
    ];
    for on in faults {
        for crash in [false, true] {
            let mut w = World::new(0);
            write_some(&w, 40);
            let rows = w.scan(&mut w.begun());
            w.disk.inject(on, "undo.1", 0, 1, std::io::ErrorKind::Other);
            w.system.set_undo_limit(2);
            let failed = block_on(|| w.system.purge_step(&w, 10));
            assert!(
                matches!(failed, Err(TxnError::Store(StoreError::Io { .. }))),
                "{on:?}: {failed:?}"
            );
            assert_eq!(w.system.status().undo_files_given_up, 0);
            if on == FaultOn::Read {
                // Nor while it goes on, and the file that was left cannot be looked at.
                w.disk.inject(on, "undo.1", 0, 1, std::io::ErrorKind::Other);
                let failed = block_on(|| w.system.purge_step(&w, 10));
                assert!(
                    matches!(failed, Err(TxnError::Store(StoreError::Io { .. }))),
                    "{failed:?}"
                );
            }
            if crash {
                w = w.after_crash(5);
                w.system.set_undo_limit(2);
            }
            w.run_background();
            w.run_background();
            assert_eq!(w.system.status().undo_files_given_up, 1, "{on:?}");
            assert_eq!(undo_files(&w), ["undo.1"], "{on:?}, crash: {crash}");
            write_some(&w, 40);
            w.run_background();
            assert!(w.system.status().undo_files_given_up > 1, "{on:?}");
            w = w.after_crash(6);
            w.run_background();
            assert_eq!(undo_files(&w).len(), 1, "{on:?}, crash: {crash}");
            assert_eq!(w.scan(&mut w.begun()), rows, "the same was written again");
        }
    }
}

/// The first file's name is free once that was given back: who does not see the others must not
/// begin anew.
#[test]
fn no_undo_log_begins_beside_one_that_cannot_be_read() {
    let w = World::new(0);
    w.system.set_undo_limit(2);
    write_some(&w, 100);
    w.run_background();
    let files = undo_files(&w);
    assert!(files.len() == 1 && files[0] != "undo", "{files:?}");
    let file = format!("{}.nfd", files[0]);
    let rows = w.scan(&mut w.begun());
    let mut unfinished = w.begun();
    w.write(&mut unfinished, b"k1", Some(b"never")).unwrap();
    flush(&w.store);
    let w = w.after_kill();
    let reopened = || TrxSystem::open(&w.store, &TrxOptions { undo_streams: 3 }).map(drop);
    w.disk
        .inject(FaultOn::Read, "undo", 0, 1, std::io::ErrorKind::Other);
    let refused = reopened().unwrap_err();
    assert!(
        matches!(refused, TxnError::Store(StoreError::Io { .. })),
        "{refused:?}"
    );
    // The space's magic number.
    assert!(w.disk.flip_bit(&file, 64));
    let refused = reopened().unwrap_err();
    assert!(
        matches!(refused, TxnError::Store(StoreError::BadFile { .. })),
        "{refused:?}"
    );
    assert!(w.disk.flip_bit(&file, 64));
    assert_eq!(undo_files(&w), files);
    w.run_background();
    assert_eq!(w.scan(&mut w.begun()), rows);
}
