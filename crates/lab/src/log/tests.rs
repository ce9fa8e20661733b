use std::collections::BTreeMap;
use std::io::{Cursor, Read, Write};

use jiff::tz::TimeZone;
use proptest::prelude::*;

use super::*;

fn open(bytes: &[u8], format: Option<Format>) -> Result<Log, LabError> {
    let input = Input::new("test".into(), Box::new(Cursor::new(bytes.to_vec())), None)?;
    Log::new(input, format, &TimeZone::UTC)
}

fn events_of(log: &mut Log) -> Vec<Event> {
    let (mut event, mut out) = (Event::default(), Vec::new());
    while log.next(&mut event) {
        out.push(event.clone());
    }
    out
}

/// The events of a log, and the numbers of skipped parts.
fn read(bytes: &[u8]) -> (Vec<Event>, Skipped) {
    let mut log = open(bytes, None).expect("a log");
    let events = events_of(&mut log);
    assert!(log.failure().is_none());
    (events, log.skipped())
}

fn fixture(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/logs/{name}.log", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(path).expect("the fixture is there")
}

fn text(event: &Event) -> String {
    String::from_utf8_lossy(&event.text).into_owned()
}

const FIVE: [&str; 5] = [
    "mysql-slow",
    "mysql-slow-extra",
    "mysql-general",
    "mariadb-slow",
    "mariadb-general",
];

#[test]
fn logs_of_all_servers_contain_the_same_statements() {
    // The statements sent to all servers. Slow logs lack those from before long_query_time was set.
    for name in FIVE {
        let (events, skipped) = read(&fixture(name));
        assert_eq!(skipped, Skipped::default(), "{name}");
        let statements: Vec<String> = events.iter().filter(|e| !e.command).map(text).collect();
        let count = |t: &str| statements.iter().filter(|s| s.as_str() == t).count();
        assert_eq!(
            count("SELECT * FROM items WHERE deleted = 0 AND group_id IN (0,1,2)"),
            2,
            "{name}"
        );
        assert_eq!(count("select title from items where id = 3"), 1, "{name}");
        assert_eq!(
            count("update items set title='it''s; new' where id=5"),
            1,
            "{name}"
        );
        assert_eq!(count("# leading comment\nselect 2"), 1, "{name}");
        assert_eq!(
            count("select /* app:cart */ count(*) from items -- trailing\n where title like 'x%'"),
            1,
            "{name}"
        );
        assert_eq!(
            count(
                "SELECT 'a;\n# Time: not a header\n# comment; in a string;\nb' AS x,\n  1\nFROM items\nWHERE id=3"
            ),
            1,
            "{name}"
        );
        assert_eq!(
            events
                .iter()
                .filter(|e| e.text.ends_with(b"as bin"))
                .count(),
            1,
            "{name}"
        );
        assert!(events.iter().all(|e| !e.cut), "{name}");
        let list = events
            .iter()
            .find(|e| e.text.ends_with(b"(0,1,2)"))
            .expect("was checked");
        assert_eq!(
            (
                list.user.as_slice(),
                list.host.as_slice(),
                list.db.as_slice()
            ),
            (&b"sb"[..], &b"127.0.0.1"[..], &b"laba_logs"[..]),
            "{name}"
        );
        assert_eq!(list.duration_us.is_some(), name.contains("slow"), "{name}");
        let at = time::show(list.time_us.expect("a time"));
        assert!(at.starts_with("2026-11-21T11:02:2"), "{name}: {at}");
    }
}

#[test]
fn members_of_each_format_are_parsed() {
    let (events, _) = read(&fixture("mysql-slow-extra"));
    let failed = events
        .iter()
        .find(|e| text(e) == "select * from nothere")
        .expect("was sent");
    assert_eq!(failed.error, Some(1146));
    let list = events
        .iter()
        .find(|e| e.text.ends_with(b"(0,1,2)"))
        .expect("was sent");
    assert_eq!(
        (
            list.rows_sent,
            list.rows_examined,
            list.bytes_sent,
            list.connection
        ),
        (Some(15), Some(15), Some(466), Some(22))
    );
    assert_eq!((list.duration_us, list.lock_us), (Some(346), Some(2)));
    assert_eq!(
        list.time_us.map(time::show).as_deref(),
        Some("2026-11-21T11:02:23.967131Z")
    );

    let (events, _) = read(&fixture("mariadb-slow"));
    let list = events
        .iter()
        .find(|e| e.text.ends_with(b"(0,1,2)"))
        .expect("was sent");
    assert_eq!(
        (
            list.rows_sent,
            list.rows_examined,
            list.bytes_sent,
            list.connection
        ),
        (Some(15), Some(15), Some(466), Some(7))
    );
    let sleep = events
        .iter()
        .find(|e| text(e) == "select sleep(0.02)")
        .expect("was sent");
    assert_eq!(sleep.db, b"");

    let (events, skipped) = read(&fixture("percona-slow"));
    assert_eq!((events.len(), skipped), (2, Skipped::default()));
    assert_eq!(
        (events[0].connection, events[0].rate, events[0].error),
        (Some(181), Some(10), Some(0))
    );
    assert_eq!(
        (events[0].host.as_slice(), events[0].db.as_slice()),
        (&b"web1.example"[..], &b"shop"[..])
    );
    assert_eq!(
        events[0].time_us.map(time::show).as_deref(),
        Some("2024-03-01T12:34:56.250000Z")
    );
    assert_eq!(
        (text(&events[1]).as_str(), events[1].error),
        (
            "INSERT INTO carts (owner, item) VALUES (1, 2), (3, 4)",
            Some(1062)
        )
    );

    let (events, skipped) = read(&fixture("old-slow"));
    let seen: Vec<_> = events
        .iter()
        .map(|e| (text(e), e.duration_us, e.time_us.map(time::show)))
        .collect();
    assert_eq!(
        seen,
        [
            (
                "select sleep(2) from n".to_string(),
                Some(2_000_000),
                Some("2007-10-15T21:43:50.000000Z".to_string())
            ),
            (
                "select sleep(3) from n".to_string(),
                Some(3_000_000),
                Some("2007-10-15T21:43:49.000000Z".to_string())
            ),
        ]
    );
    // The third duration is what a server writes after its clock was set back.
    assert_eq!(
        skipped,
        Skipped {
            entries: 1,
            ..Skipped::default()
        }
    );
}

#[test]
fn carriage_returns_and_banners_are_not_part_of_texts() {
    let mut log = String::from_utf8(fixture("percona-slow")).expect("is UTF-8");
    log.push_str("/usr/sbin/mysqld, Version: 5.7.44-48 (x). started with:\nTcp port: 3306  Unix socket: /m.sock\nTime                 Id Command    Argument\n");
    log.push_str(&String::from_utf8(fixture("percona-slow")).expect("is UTF-8"));
    let (plain, _) = read(log.as_bytes());
    let (windows, skipped) = read(log.replace('\n', "\r\n").as_bytes());
    assert_eq!(plain.len(), 4);
    assert_eq!(plain, windows);
    assert_eq!(skipped, Skipped::default());
}

#[test]
fn malformed_entries_are_skipped_and_counted() {
    let good = String::from_utf8(fixture("percona-slow")).expect("is UTF-8");
    let (head, rest) = good.split_at(good.find("SELECT").expect("is in it"));
    // A header without a statement, followed by a complete entry.
    let (events, skipped) = read(format!("{head}{good}").as_bytes());
    assert_eq!((events.len(), skipped.entries), (2, 1));
    // An entry cut off within the statement, as a full disk leaves it, followed by the next start.
    let (events, skipped) = read(format!("{head}{}\n{good}", &rest[..30]).as_bytes());
    assert_eq!(
        (events.len(), skipped),
        (
            3,
            Skipped {
                cut: 1,
                ..Skipped::default()
            }
        )
    );
    assert!(events[0].cut && !events[1].cut);
    // Lines of another kind at the beginning.
    let (events, skipped) = read(format!("hello\n\u{0}\u{1}\n\n{good}").as_bytes());
    assert_eq!(
        (events.len(), skipped),
        (
            2,
            Skipped {
                lines: 2,
                ..Skipped::default()
            }
        )
    );
    // A Query_time that is not a number.
    let (events, skipped) = read(good.replace("0.250000", "0.25x").as_bytes());
    assert_eq!((events.len(), skipped.entries), (1, 1));
}

#[test]
fn unrecognized_input_is_rejected_in_one_line() {
    for bytes in [
        &b"\x7fELF\x02\x01\x01 something"[..],
        b"SELECT 1;\nSELECT 2;\n",
        b"{\"a\":1}",
    ] {
        let message = open(bytes, None).err().expect("is refused").to_string();
        assert!(
            message.starts_with("test: neither a slow log nor a general log"),
            "{message}"
        );
        assert_eq!(message.lines().count(), 1);
    }
    let (events, skipped) = read(b"");
    assert_eq!((events.len(), skipped), (0, Skipped::default()));
    let started = &fixture("mysql-slow")[..200];
    assert_eq!(
        read(&started[..started.iter().rposition(|&b| b == b'#').expect("a head")])
            .0
            .len(),
        0
    );
    for (magic, name) in [
        (&b"\xfd7zXZ\0..."[..], "xz"),
        (b"BZh91AY", "bzip2"),
        (b"PK\x03\x04....", "zip"),
    ] {
        let message = open(magic, None).err().expect("is refused").to_string();
        assert!(message.contains(name), "{message}");
    }
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).expect("into memory");
    out.finish().expect("into memory")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

#[test]
fn compressed_logs_of_several_frames_are_read() {
    let log = fixture("mysql-slow-extra");
    let expected = read(&log).0;
    let (one, two) = log.split_at(log.len() / 3);
    for compressed in [
        gzipped(&log),
        [gzipped(one), gzipped(two)].concat(),
        zstd(&log),
        [zstd(one), zstd(two)].concat(),
    ] {
        assert_eq!(read(&compressed).0, expected);
    }
}

#[test]
fn damaged_compressed_log_is_read_up_to_the_damage() {
    let log = fixture("mysql-slow-extra").repeat(200);
    for compressed in [gzipped(&log), zstd(&log)] {
        let mut log =
            open(&compressed[..compressed.len() / 2], None).expect("its beginning is whole");
        let events = events_of(&mut log);
        assert!(
            events.len() > 10 && events.len() < 31 * 200,
            "{}",
            events.len()
        );
        let failure = log.failure().map(ToString::to_string);
        let said = ["unexpected end of file", "incomplete deflate stream"];
        assert!(
            failure.as_deref().is_some_and(|f| said.contains(&f)),
            "{failure:?}"
        );
    }
}

/// A reader that returns its bytes in pieces.
struct Pieces(Vec<u8>, usize, usize);

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.2.min(buffer.len()).min(self.0.len() - self.1);
        buffer[..n].copy_from_slice(&self.0[self.1..self.1 + n]);
        self.1 += n;
        Ok(n)
    }
}

#[test]
fn result_does_not_depend_on_read_sizes() {
    for name in FIVE {
        let log = fixture(name);
        let expected = read(&log).0;
        for piece in [1, 7, 4096] {
            let input = Input::new("test".into(), Box::new(Pieces(log.clone(), 0, piece)), None)
                .expect("opens");
            let mut log = Log::new(input, None, &TimeZone::UTC).expect("is a log");
            assert_eq!(events_of(&mut log), expected, "{name} in pieces of {piece}");
        }
    }
}

#[test]
fn too_long_lines_are_cut_and_the_next_is_complete() {
    let mut lines = Lines::with_limit(
        Cursor::new(b"short\n0123456789abcdef0123\nnext\n0123456789abcdef".to_vec()),
        16,
    );
    let mut seen = Vec::new();
    while let Some(line) = lines.peek() {
        seen.push((String::from_utf8_lossy(line.bytes).into_owned(), line.cut));
        lines.consume();
    }
    let expected = [
        ("short", false),
        ("0123456789abcdef", true),
        ("next", false),
        ("0123456789abcdef", true),
    ];
    assert_eq!(seen, expected.map(|(text, cut)| (text.to_string(), cut)));
}

/// A statement's text as a server would write it: not empty, without blanks at its ends, and
/// without a line that is completely a header or a banner.
fn statement_text() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        "[ -~]{0,40}".prop_map(String::into_bytes),
        Just(b"# Time: soon".to_vec()),
        Just(b"# comment;".to_vec()),
        Just(b"SET timestamp=1;".to_vec()),
        Just(b"use x;".to_vec()),
        proptest::collection::vec(
            any::<u8>().prop_filter("one line", |b| !matches!(b, b'\n' | b'\r')),
            0..30
        ),
    ];
    proptest::collection::vec(line, 1..5).prop_map(|lines| {
        let mut text = b"SELECT ".to_vec();
        text.extend(lines.join(&b'\n'));
        text.push(b'x');
        text
    })
}

proptest! {
    #[test]
    fn slow_log_round_trips(
        statements in proptest::collection::vec((statement_text(), 0u64..100_000_000, any::<u32>(), any::<bool>()), 1..20),
        mariadb in any::<bool>(),
    ) {
        let mut log = Vec::new();
        for (i, (text, us, rows, timed)) in statements.iter().enumerate() {
            if mariadb {
                if *timed || i == 0 {
                    log.extend_from_slice(b"# Time: 240301 12:34:56\n");
                }
                log.extend_from_slice(b"# User@Host: app[app] @ web [10.0.0.1]\n# Thread_id: 9  Schema: shop  QC_hit: No\n");
            } else {
                log.extend_from_slice(b"# Time: 2024-03-01T12:34:56.000000Z\n# User@Host: app[app] @ web [10.0.0.1]  Id:     9\n");
            }
            log.extend(format!("# Query_time: {}.{:06}  Lock_time: 0.000001 Rows_sent: {rows}  Rows_examined: 5\n", us / 1_000_000, us % 1_000_000).bytes());
            if i == 0 && !mariadb {
                log.extend_from_slice(b"use `shop`;\n");
            }
            log.extend_from_slice(b"SET timestamp=1709296496;\n");
            log.extend_from_slice(text);
            log.extend_from_slice(b";\n");
        }
        let (events, skipped) = read(&log);
        prop_assert_eq!(skipped, Skipped::default());
        prop_assert_eq!(events.len(), statements.len());
        for (event, (text, us, rows, _)) in events.iter().zip(&statements) {
            prop_assert_eq!(&event.text, text);
            prop_assert_eq!(event.duration_us, Some(*us));
            prop_assert_eq!(event.rows_sent, Some(u64::from(*rows)));
            prop_assert_eq!((event.connection, event.db.as_slice()), (Some(9), &b"shop"[..]));
        }
    }

    #[test]
    fn damage_loses_only_the_entries_that_it_hits(
        name in proptest::sample::select(&FIVE[..]),
        at in 0.0f64..1.0,
        garbage in proptest::collection::vec(any::<u8>(), 0..60),
        removed in 0usize..200,
    ) {
        let log_bytes = fixture(name);
        let whole = read(&log_bytes).0;
        let at = (at * log_bytes.len() as f64) as usize;
        let mut damaged = log_bytes[..at].to_vec();
        damaged.extend(&garbage);
        damaged.extend(&log_bytes[(at + removed).min(log_bytes.len())..]);
        let format = if name.contains("slow") { Format::Slow } else { Format::General };
        if damaged.starts_with(b"BZh") || open(&damaged, Some(format)).is_err() {
            return Ok(());
        }
        let mut log = open(&damaged, Some(format)).expect("was opened before");
        let found = events_of(&mut log);
        // All entries before and after the damage are found unchanged.
        let mut texts: BTreeMap<&[u8], i64> = BTreeMap::new();
        for event in &whole {
            *texts.entry(&event.text).or_default() += 1;
        }
        for event in &found {
            *texts.entry(&event.text).or_default() -= 1;
        }
        let lost: i64 = texts.values().filter(|n| **n > 0).sum();
        let hit = log_bytes[at..(at + removed).min(log_bytes.len())].iter().filter(|b| **b == b'\n').count() as i64;
        prop_assert!(lost <= hit + 2, "{} of {} lost", lost, whole.len());
    }

    #[test]
    fn arbitrary_bytes_cause_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2000), slow in any::<bool>()) {
        let format = if slow { Format::Slow } else { Format::General };
        if let Ok(mut log) = open(&bytes, Some(format)) {
            let n = events_of(&mut log).len();
            prop_assert!(n <= bytes.len());
        }
        let _ = open(&bytes, None);
    }
}
