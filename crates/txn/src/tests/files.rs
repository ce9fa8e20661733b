//! Undo files that are given up for new ones, and given back.

use super::*;

fn undo_files(w: &World) -> Vec<String> {
    let mut names: Vec<String> = w
        .store
        .spaces_on_disk()
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
            w.settle();
        }
    }
}

#[test]
fn the_undo_log_turns_to_new_files_and_gives_the_old_ones_back() {
    let w = World::new(0);
    w.system.set_undo_limit(2);
    write_some(&w, 400);
    w.settle();
    let status = w.system.status();
    assert!(status.undo_files_given_up > 2, "{status:?}");
    assert!(status.undo_file_pages < 12, "{status:?}");
    assert_eq!(undo_files(&w).len(), 1);
    // None of it is lost when the machine stops now.
    let rows = w.scan(&mut w.begun());
    let given_up = status.undo_files_given_up;
    let w = w.after_crash(7);
    w.settle();
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
        w.settle();
    }
    let status = w.system.status();
    assert_eq!(undo_files(&w).len(), 2, "{status:?}");
    // Its first records are in the old file, which so stays.
    let w = w.after_crash(3);
    assert_eq!(undo_files(&w).len(), 2);
    assert_eq!(w.scan(&mut w.begun()), expected, "before it is undone");
    w.settle();
    assert_eq!(w.scan(&mut w.begun()), expected);
    w.settle();
    assert_eq!(undo_files(&w).len(), 1);
}

#[test]
fn a_long_reader_stops_no_writer_is_named_and_then_the_space_comes_back() {
    let w = World::new(0);
    w.system.set_undo_limit(10);
    write_some(&w, 40);
    w.settle();
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
    w.settle();
    w.settle();
    let after = w.system.status();
    assert_eq!((after.history_length, after.oldest_reader), (0, None));
    assert!(after.undo_file_pages < 12, "{after:?}");
    assert_eq!(undo_files(&w).len(), 1);
}
