//! Histograms that the statistics sample.

use nfold_catalog::{Histogram, HistogramType};

use super::*;
use crate::{saved_stats, stats};

/// Makes a table whose column `k` is NULL in a tenth of the rows, 7 in half of them, and otherwise
/// grows with the primary key.
fn filled(db: &Db, rows: i64) -> Arc<Table> {
    let table = db.table();
    let mut w = db.session();
    for id in 0..rows {
        let k = match id % 10 {
            0 => None,
            1..=5 => Some(7),
            _ => Some(1_000 + id),
        };
        insert(&mut w, &table, &(id, k, Some(format!("n{id}")), None));
        if id % 1_000 == 999 {
            commit(&mut w);
        }
    }
    commit(&mut w);
    table
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The share of the value 7, the last bound, and the share of NULL.
fn summary(h: &Histogram) -> (f64, i64, f64) {
    let first = &h.buckets[0];
    assert_eq!(
        (text(&first.lower), text(&first.upper)),
        ("7".into(), "7".into())
    );
    let last = text(&h.buckets.last().unwrap().upper).parse().unwrap();
    (first.cumulative, last, h.null_share)
}

#[test]
fn analyze_table_makes_them_of_all_columns() {
    let db = Db::new();
    let table = filled(&db, 3_000);
    let version = db.engine.catalog().version();
    db.engine.analyze_table(&table).unwrap();
    assert!(db.engine.catalog().version() > version);
    let stats = table.stats();
    let k = stats.histogram(1).unwrap();
    assert_eq!(summary(k), (0.5, 3_999, 0.1));
    assert_eq!((k.kind, k.sampling_rate), (HistogramType::Int, 1.0));
    assert_eq!(stats.histogram(2).unwrap().kind, HistogramType::String);
    assert!(stats.histogram(3).unwrap().buckets.is_empty());
    // The statistics of the table outlive a change of its definition.
    drop(table);
    let def = db.find("t").def().clone();
    let k2 = secondary("k2", 1, None, false);
    db.engine.change_indexes(&def, &[k2], &[]).unwrap();
    assert!(db.find("t").stats().histogram(1).is_some());
}

#[test]
fn background_samples_wanted_columns_all_over_the_table() {
    let db = Db::new();
    let table = filled(&db, 60_000);
    let make = || stats::make(&db.engine.shared().store, &table, false).unwrap();
    assert!(!table.lacks_histogram());
    let make_before = make();
    assert!(make_before.histograms.is_empty());
    table.want_histogram(1);
    let stats = make();
    assert!(stats.histogram(0).is_none() && stats.histogram(2).is_none());
    let (seven, last, nulls) = summary(stats.histogram(1).unwrap());
    assert!((0.48..0.52).contains(&seven), "{seven}");
    assert!((60_000..=61_000).contains(&last), "{last}");
    assert!((0.08..0.12).contains(&nulls), "{nulls}");
    let rate = stats.histogram(1).unwrap().sampling_rate;
    assert!((0.05..0.7).contains(&rate), "{rate}");
    assert!(stats.differs_much(&make_before) && !stats.differs_much(&stats));
    table.set_stats(stats);
    assert!(!table.lacks_histogram());
}

fn restarted(db: Db) -> Db {
    let Db { engine, dir } = db;
    engine.shutdown().unwrap();
    drop(engine);
    let engine = open(dir.path());
    Db { engine, dir }
}

#[test]
fn restart_leaves_statistics_as_they_were() {
    let db = Db::new();
    let table = filled(&db, 3_000);
    db.engine.analyze_table(&table).unwrap();
    let before = table.stats();
    // Rows that change after the save are counted by the next start.
    let mut w = db.session();
    insert(&mut w, &table, &(9_000, None, None, None));
    commit(&mut w);
    drop((w, table));
    let db = restarted(db);
    let table = db.find("t");
    assert_eq!(table.stats(), before);
    assert_eq!(table.estimate_rows(), 3_001);
    assert!(!table.has_unsaved_stats());
    assert!(!saved_stats::are_outdated(
        &db.engine.shared().store,
        &table
    ));
}

#[test]
fn restart_knows_which_columns_conditions_use() {
    let db = Db::new();
    let table = filled(&db, 2_000);
    table.want_histogram(1);
    let made = stats::make(&db.engine.shared().store, &table, false).unwrap();
    table.set_stats(made);
    assert!(table.has_unsaved_stats());
    saved_stats::save(db.engine.shared(), table.def().id);
    assert!(!table.has_unsaved_stats());
    let before = table.stats();
    drop(table);
    let db = db.crash();
    let table = db.find("t");
    assert_eq!(table.stats(), before);
    assert!(table.wants_histogram(1) && !table.wants_histogram(2));
    assert!(!table.lacks_histogram());
}

#[test]
fn statistics_of_unsampled_columns_stay() {
    let db = Db::new();
    let table = filled(&db, 2_000);
    db.engine.analyze_table(&table).unwrap();
    table.want_histogram(1);
    let made = stats::make(&db.engine.shared().store, &table, false).unwrap();
    assert_eq!(made.histograms[2], table.stats().histograms[2]);
}

#[test]
fn crash_after_many_changes_makes_statistics_due() {
    let db = Db::new();
    let table = db.table();
    db.engine.analyze_table(&table).unwrap();
    let mut w = db.session();
    for id in 0..2_000 {
        insert(&mut w, &table, &(id, None, None, None));
    }
    commit(&mut w);
    drop((w, table));
    let db = db.crash();
    let table = db.find("t");
    assert_eq!(table.stats().rows, 0);
    let store = &db.engine.shared().store;
    assert!(saved_stats::are_outdated(store, &table));
    assert!(!saved_stats::are_outdated(store, &table), "answered once");
}

#[test]
fn dropped_tables_leave_no_statistics() {
    let db = Db::new();
    let table = filled(&db, 100);
    db.engine.analyze_table(&table).unwrap();
    let id = table.def().id;
    let saved = |db: &Db| {
        let mut session = db.session();
        session.begin_internal();
        let dictionary = &db.engine.shared().dictionary;
        let kind = crate::dictionary::ObjectKind::Statistics;
        let id = id.0.to_be_bytes();
        let found = crate::dictionary::get(&mut session, dictionary, kind, &id).unwrap();
        commit(&mut session);
        found.is_some()
    };
    assert!(saved(&db));
    let def = table.def().clone();
    drop(table);
    db.engine.drop_tables(&[def]).unwrap();
    assert!(!saved(&db));
    // A save that comes late writes nothing.
    saved_stats::save(db.engine.shared(), id);
    assert!(!saved(&db));
}
