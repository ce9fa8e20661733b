//! An old snapshot reads an index whose rows have changed often since: each row's version chain is
//! walked once, however many of the row's entries the index holds.

use super::*;

/// Changes the indexed column of each of `rows` rows `versions` times under a snapshot. Checks that
/// the snapshot's scan of the index returns the old rows, and returns the undo records read.
fn undo_reads(rows: i64, versions: i64, covering: bool, reverse: bool) -> u64 {
    let db = Db::new();
    let table = db.table();
    let mut writer = db.session();
    for id in 0..rows {
        insert(&mut writer, &table, &row(id, id, &format!("s{id}")));
    }
    commit(&mut writer);
    let mut reader = db.session();
    reader.begin(TrxOptions {
        isolation: Isolation::RepeatableRead,
        read_only: false,
        consistent_snapshot: true,
    });
    for version in 1..=versions {
        for id in 0..rows {
            let new = row(id, version * rows + id, &format!("s{id}"));
            update(&mut writer, &table, id, &new);
        }
        commit(&mut writer);
    }
    let index = table.def().index("k").unwrap();
    let columns = match covering {
        true => table.index_columns(index).to_vec(),
        false => vec![0, 1, 2, 3],
    };
    let spec = ReadSpec {
        index,
        covering,
        columns,
        ..ReadSpec::default()
    };
    reader.statement_begin(Isolation::RepeatableRead, false);
    let mut read = Read::range(table.clone(), spec, &KeyRange::all(), reverse);
    let mut batch = RowBatch::new();
    while block(|| read.next(&mut reader, &mut batch)).unwrap() {}
    let (layout, column) = match covering {
        true => (table.index_layout(index), 0),
        false => (table.layout(), 1),
    };
    let mut seen: Vec<i64> = batch
        .iter()
        .map(|image| match layout.get(image, column).unwrap() {
            ValueRef::Int(k) => k,
            _ => panic!("k is an integer"),
        })
        .collect();
    if reverse {
        seen.reverse();
    }
    assert_eq!(seen, (0..rows).collect::<Vec<_>>());
    read.undo_reads()
}

#[test]
fn index_scan_walks_each_long_chain_once() {
    for covering in [false, true] {
        for reverse in [false, true] {
            for (rows, versions) in [(1, 100), (1, 200), (20, 20)] {
                let reads = undo_reads(rows, versions, covering, reverse);
                let bound = (rows * (versions + 1)) as u64;
                assert!(
                    reads <= bound,
                    "{rows} rows of {versions} versions (covering: {covering}, \
                     reverse: {reverse}): {reads} undo records read, {bound} expected at most"
                );
            }
        }
    }
}
