//! Histograms that the statistics sample.

use nfold_catalog::{Histogram, HistogramType};

use super::*;
use crate::stats;

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
