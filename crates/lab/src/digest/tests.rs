//! Tests from complete logs to rendered results.

use nfold_sql::lexer::LexMode;

use super::report::{By, Report, Source, Totals};
use super::*;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/logs/{name}.log"))
}

fn patterns(names: &[&str]) -> (Patterns, Skipped) {
    let (mut patterns, mut skipped) = (Patterns::new(LexMode::default()), Skipped::default());
    for name in names {
        let mut log = Log::new(
            Input::open(&fixture(name)).expect("is there"),
            None,
            &TimeZone::UTC,
        )
        .expect("a log");
        let mut event = Event::default();
        while log.next(&mut event) {
            patterns.add(&event);
        }
        skipped.add(log.skipped());
    }
    (patterns, skipped)
}

fn report(names: &[&str], by: By, limit: usize, examples: bool) -> Report {
    let (patterns, skipped) = patterns(names);
    let ranked = report::rank(&patterns.list, by, limit, examples);
    Report {
        schema: report::SCHEMA,
        partial: false,
        by: by.name(),
        totals: Totals::of(&patterns.list, Some(10)),
        skipped,
        patterns_left_out: patterns.list.len() - ranked.len(),
        patterns: ranked,
        sources: names
            .iter()
            .map(|name| Source {
                name: format!("<{name}>"),
                format: "slow",
                statements: 0,
                skipped,
                error: None,
            })
            .collect(),
    }
}

#[test]
fn pattern_collects_statements_of_all_servers() {
    let report = report(
        &["mysql-slow", "mysql-slow-extra", "mariadb-slow"],
        By::Count,
        100,
        true,
    );
    let list = report
        .patterns
        .iter()
        .find(|p| p.pattern.ends_with("`group_id` IN (...)"))
        .expect("was sent");
    assert_eq!((list.count, list.rank), (15, 1));
    let lengths = list.in_lists.as_ref().expect("it has lists");
    assert_eq!(
        (lengths.lists, lengths.min, lengths.p50, lengths.max),
        (15, 3, 7, 20)
    );
    let bars: Vec<_> = lengths
        .histogram
        .iter()
        .map(|bar| (bar.from, bar.to, bar.count))
        .collect();
    assert_eq!(bars, [(2, 3, 6), (4, 7, 3), (16, 31, 6)]);
    let time = list.time_s.as_ref().expect("slow logs have times");
    assert!(time.min <= time.mean && time.mean <= time.max && time.p95 <= Some(time.max));
    assert_eq!(list.databases, ["laba_logs"]);
    let insert = report
        .patterns
        .iter()
        .find(|p| p.pattern.starts_with("INSERT INTO `items` ( `group_id`"))
        .expect("was sent");
    assert_eq!(
        insert
            .insert_rows
            .as_ref()
            .map(|rows| (rows.lists, rows.max)),
        Some((3, 100))
    );
    let failed = report
        .patterns
        .iter()
        .find(|p| p.pattern.ends_with("`nothere`"))
        .expect("was sent");
    assert_eq!(failed.errors, 1, "only one of the three logs names errors");
    assert_eq!(
        report.totals.statements,
        report.patterns.iter().map(|p| p.count).sum::<u64>()
    );
    assert_eq!(report.totals.statements, 31 * 3);
    let shares: f64 = report.patterns.iter().map(|p| p.share).sum();
    assert!((shares - 1.0).abs() < 1e-9);
}

#[test]
fn patterns_are_ranked_by_the_requested_criterion() {
    let ranked = |by, of: fn(&report::Entry) -> f64| {
        let values: Vec<f64> = report(&["mysql-slow-extra"], by, 100, true)
            .patterns
            .iter()
            .map(of)
            .collect();
        assert!(values.is_sorted_by(|a, b| a >= b), "{values:?}");
        assert!(values[0] > 0.0);
    };
    ranked(By::Time, |p| p.time_s.as_ref().map_or(0.0, |t| t.total));
    ranked(By::Count, |p| p.count as f64);
    ranked(By::Rows, |p| p.rows_examined as f64);
}

#[test]
fn pattern_ids_are_stable() {
    // A file that contains an id must still find its pattern in later versions.
    assert_eq!(
        format!("{:016x}", patterns::fnv(b"SELECT ?")),
        "199e7dca63ea8858"
    );
    let report = report(&["mysql-slow"], By::Time, 100, true);
    let list = report
        .patterns
        .iter()
        .find(|p| p.pattern.ends_with("`group_id` IN (...)"))
        .expect("was sent");
    assert_eq!(list.id, "5e0f2530f234e591");
}

#[test]
fn no_examples_hides_all_values() {
    for examples in [true, false] {
        let report = report(&["mysql-slow-extra"], By::Count, 100, examples);
        let json = serde_json::to_string(&report).expect("is JSON");
        for shown in [json, table::render(&report, 100), page::render(&report)] {
            assert_eq!(
                shown.contains("new&#39; where id=5")
                    || shown.contains("it''s; new")
                    || shown.contains("it&#39;&#39;s; new"),
                examples
            );
        }
    }
}

#[test]
fn page_and_table_escape_the_contents_of_the_log() {
    let mut report = report(&["mysql-slow"], By::Time, 5, true);
    report.patterns[0].pattern = "SELECT '<script>alert(1)</script>' & \u{1b}[31m".into();
    report.partial = true;
    let page = page::render(&report);
    assert!(
        !page.contains("<script")
            && page.contains("&lt;script&gt;alert(1)&lt;/script&gt;&#39; &amp; ")
    );
    assert!(!page.contains('\u{1b}'));
    assert!(
        page.contains("&lt;mysql-slow&gt;")
            && page.contains("Partial")
            && page.contains("one in 10")
    );
    assert!(
        !page.contains("http://") && !page.contains("https://"),
        "the page is self-contained"
    );
    for tag in ["table", "section", "pre", "dl", "tr"] {
        assert_eq!(
            page.matches(&format!("<{tag}")).count(),
            page.matches(&format!("</{tag}>")).count(),
            "{tag}"
        );
    }
    let table = table::render(&report, 2);
    assert!(table.contains("PARTIAL") && table.contains("and 17 patterns more"));
    assert!(!table.contains('\u{1b}'));
    assert_eq!(table.matches("\n#").count(), 2);
}

#[test]
fn memory_is_bounded_for_many_patterns_and_long_texts() {
    let mut patterns = Patterns::new(LexMode::default());
    let mut event = Event::default();
    for n in 0..21_000 {
        event.text = format!("SELECT a{n} FROM t").into_bytes();
        patterns.add(&event);
    }
    assert_eq!(patterns.list.len(), 20_001);
    assert_eq!(patterns.list[20_000].count, 1_000);
    event.text = format!("SELECT '{}'", "x".repeat(1 << 20)).into_bytes();
    event.duration_us = Some(1);
    let at = patterns.add(&event);
    assert!(patterns.list[at].example.len() <= 16 << 10);
}

#[test]
fn extract_contains_the_statements_of_its_patterns() {
    let dir = tempfile::tempdir().expect("a directory");
    let write = |ids: &[&str]| {
        let out = dir.path().join("w.jsonl");
        let ids: Vec<String> = ids.iter().map(|id| id.to_string()).collect();
        let mut extract = Extract::create(&out, &ids).map_err(|e| e.to_string())?;
        let mut patterns = Patterns::new(LexMode::default());
        let mut log = Log::new(
            Input::open(&fixture("mysql-slow-extra")).expect("is there"),
            None,
            &TimeZone::UTC,
        )
        .expect("a log");
        let mut event = Event::default();
        while log.next(&mut event) {
            let at = patterns.add(&event);
            extract
                .offer(&patterns.list[at].id, &event)
                .map_err(|e| e.to_string())?;
        }
        extract.finish().map_err(|e| e.to_string())?;
        let text = std::fs::read_to_string(&out).expect("was written");
        Ok::<_, String>(
            text.lines()
                .map(|line| {
                    serde_json::from_str::<crate::statement::Statement>(line)
                        .expect("is a statement")
                })
                .collect::<Vec<_>>(),
        )
    };
    let lists = write(&["5e0f"]).expect("is an id");
    assert_eq!(lists.len(), 5);
    assert_eq!(
        lists[0].bytes().as_deref(),
        Some(&b"SELECT * FROM items WHERE deleted = 0 AND group_id IN (0,1,2)"[..])
    );
    assert_eq!(
        (
            lists[0].duration_us,
            lists[0].rows_sent,
            lists[0].db.as_deref()
        ),
        (Some(346), Some(15), Some("laba_logs"))
    );
    // All events but the single command.
    assert_eq!(write(&["all"]).expect("is a word").len(), 30);
    assert!(
        write(&["0000"])
            .expect_err("is no id")
            .contains("no statement has the id 0000")
    );
    assert!(
        write(&["xyz"])
            .expect_err("is no id")
            .contains("takes an id")
    );
}
