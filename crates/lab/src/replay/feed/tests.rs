//! Files in memory and streamed files yield the same statements, in bounded memory.

use super::super::load::{ReadOptions, Writes};
use super::*;
use crate::progress::Progress;

/// A file with `count` statements of `connections` recorded connections. Every tenth began before
/// its predecessor.
fn file(count: u64, connections: u64) -> (tempfile::TempDir, std::path::PathBuf) {
    use std::io::Write;
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("w.jsonl");
    let mut out = std::io::BufWriter::new(std::fs::File::create(&path).expect("creates"));
    for n in 0..count {
        let time = if n % 10 == 9 { n * 100 - 150 } else { n * 100 };
        let filler = "x".repeat(n as usize % 300);
        writeln!(
            out,
            r#"{{"text":"SELECT {n}, '{filler}'","connection":{},"time_us":{time}}}"#,
            n * 5 % connections
        )
        .expect("writes");
    }
    out.flush().expect("writes");
    (dir, path)
}

fn open(path: &std::path::Path, keep: usize) -> Arc<Workload> {
    let how = ReadOptions {
        keep,
        ..ReadOptions::new(Writes::Refuse, true)
    };
    let mut work = Workload::open(path, how, &mut Progress::new(true)).expect("reads");
    work.sort_by_time();
    Arc::new(work)
}

fn take(feed: &Feed, number: usize) -> Option<Ticket> {
    loop {
        match feed.take(number) {
            NextStatement::Statement(ticket) => return Some(ticket),
            NextStatement::Later => std::thread::yield_now(),
            NextStatement::End => return None,
        }
    }
}

/// All statements as (round, index, text), in the order in which a single connection gets them.
fn drained(feed: &Feed) -> Vec<(u64, u64, Vec<u8>)> {
    let row = |t: Ticket| {
        let item = t.chunk.items[t.at];
        assert!(item.execution.is_some(), "it can be prepared");
        (t.round, item.number, t.chunk.text(t.at).to_vec())
    };
    std::iter::from_fn(|| take(feed, 0)).map(row).collect()
}

#[test]
fn files_in_memory_and_streamed_files_yield_the_same() {
    let (_dir, path) = file(5_000, 3);
    let (kept, streamed) = (open(&path, usize::MAX), open(&path, 1000));
    assert!(kept.kept.is_some() && streamed.kept.is_none());
    let all = drained(&Feed::new(&kept, Some(3), true, 0));
    assert_eq!(all.len(), 15_000);
    let times: Vec<u64> = all[..5_000].iter().map(|(_, n, _)| *n).collect();
    assert_ne!(
        times,
        (0..5_000).collect::<Vec<u64>>(),
        "by time, not by position"
    );
    assert_eq!(drained(&Feed::new(&streamed, Some(3), true, 0)), all);
    // In the order of the file.
    let numbers: Vec<u64> = drained(&Feed::new(&streamed, Some(1), false, 0))
        .into_iter()
        .map(|(_, n, _)| n)
        .collect();
    assert_eq!(numbers, (0..5_000).collect::<Vec<u64>>());
}

#[test]
fn recorded_connections_keep_their_statements_in_order() {
    let (_dir, path) = file(5_000, 7);
    for keep in [usize::MAX, 1000] {
        let work = open(&path, keep);
        let feed = Feed::new(&work, Some(2), false, 4);
        let mut seen = 0;
        let mut home: FxHashMap<u64, usize> = FxHashMap::default();
        let mut last: FxHashMap<u64, (u64, i64)> = FxHashMap::default();
        let mut open: Vec<usize> = (0..4).collect();
        while let Some(lane) = open.get(seen % open.len().max(1)).copied() {
            let Some(t) = take(&feed, lane) else {
                open.retain(|l| *l != lane);
                continue;
            };
            seen += 1;
            let item = t.chunk.items[t.at];
            assert_eq!(*home.entry(item.connection).or_insert(lane), lane);
            // A file in memory is in the order of time, and so is each connection.
            let now = (t.round, item.number as i64);
            let before = last.insert(item.connection, (now.0, now.1));
            assert!(
                before.is_none_or(|b| b < now || work.kept.is_some()),
                "{before:?} {now:?}"
            );
        }
        assert_eq!((seen, home.len()), (10_000, 7));
    }
}

#[test]
fn endless_replay_reads_ahead_within_bounds() {
    let (_dir, path) = file(20_000, 2);
    let work = open(&path, 1000);
    let feed = Feed::new(&work, None, false, 2);
    // The other connection never takes a statement. This one continues until its statements are too
    // far ahead.
    let (mut waits, mut taken) = (0, 0);
    while waits < 10 {
        match feed.take(0) {
            NextStatement::Statement(_) => taken += 1,
            // The reader may be slow, which has nothing to do with full lanes.
            NextStatement::Later if feed.lock().waiting > LANES => waits += 1,
            NextStatement::Later => std::thread::yield_now(),
            NextStatement::End => panic!("it has no end"),
        }
    }
    assert!(taken > 20_000, "{taken}");
    let waiting = feed.lock().waiting;
    assert!(waiting < LANES + 4 * CHUNK, "{waiting}");
    drop(feed);
}

#[test]
fn truncated_file_is_an_error() {
    let (_dir, path) = file(20_000, 2);
    let work = open(&path, 1000);
    std::fs::File::options()
        .write(true)
        .open(&path)
        .and_then(|f| f.set_len(100_000))
        .expect("shortens");
    let feed = Feed::new(&work, Some(1), false, 0);
    while take(&feed, 0).is_some() {}
    let error = feed.error().expect("it was cut").to_string();
    assert!(error.contains("shorter"), "{error}");
}
