//! Updates of long values that change little share the chain of the version before.

use super::long_values::{chains, filled, long};
use super::*;
use crate::write::UpdateOp;
use crate::{ValueBytes, ValuePart};

/// The row with other bytes at a place of its long value.
fn edited(row: &Row, at: usize, removed: usize, inserted: &str) -> Row {
    let mut row = row.clone();
    let text = row.3.as_mut().expect("it has a long value");
    text.replace_range(at..at + removed, inserted);
    row
}

fn snapshot(db: &Db) -> EngineSession {
    let mut s = db.session();
    s.begin(TrxOptions {
        isolation: Isolation::RepeatableRead,
        read_only: false,
        consistent_snapshot: true,
    });
    s
}

#[test]
fn small_changes_share_the_chain() {
    let db = Db::new();
    let mut s = db.session();
    let table = filled(&db, &mut s, 1..2);
    let before = chains(&table, 1);
    let mut versions = vec![long(1, 1, "a")];
    let mut snapshots = vec![snapshot(&db)];
    for (at, removed, inserted) in [
        (0, 1, "b"),
        (0, 1, "c"),
        (49_000, 0, "inserted"),
        (7, 600, ""),
        (0, 0, "at the beginning"),
        (40_000, 9, "eight..."),
    ] {
        let row = edited(versions.last().unwrap(), at, removed, inserted);
        update(&mut s, &table, 1, &row);
        commit(&mut s);
        assert_eq!(chains(&table, 1), before);
        versions.push(row);
        snapshots.push(snapshot(&db));
    }
    while db.engine.step_background().unwrap() {}
    for (version, s) in versions.iter().zip(&mut snapshots) {
        assert_eq!(all(s, &table), std::slice::from_ref(version));
        commit(s);
    }
    // A value that is read, but stays as it is.
    let mut row = versions.pop().unwrap();
    row.1 = Some(99);
    update(&mut s, &table, 1, &row);
    commit(&mut s);
    assert_eq!(chains(&table, 1), before);
    assert_purged(&db.engine, &table);
    assert_eq!(all(&mut s, &table), [row]);
    // The end of the chain.
    update(&mut s, &table, 1, &long(1, 1, "z"));
    commit(&mut s);
    assert_ne!(chains(&table, 1), before);
    assert_purged(&db.engine, &table);
    assert_eq!(all(&mut s, &table), [long(1, 1, "z")]);
}

#[test]
fn many_small_changes_end_in_another_chain() {
    let db = Db::new();
    let mut s = db.session();
    let table = filled(&db, &mut s, 1..2);
    let before = chains(&table, 1);
    let mut row = long(1, 1, "a");
    for n in 0..400 {
        row = edited(&row, n * 100, 2, &format!("{n:03}"));
        update(&mut s, &table, 1, &row);
        commit(&mut s);
    }
    assert_ne!(chains(&table, 1), before);
    assert_purged(&db.engine, &table);
    assert_eq!(all(&mut s, &table), [row]);
}

#[test]
fn rollback_of_small_changes_keeps_the_chain() {
    let db = Db::new();
    let mut s = db.session();
    let table = filled(&db, &mut s, 1..2);
    let first = long(1, 1, "a");
    let committed = edited(&first, 5, 1, "b");
    update(&mut s, &table, 1, &committed);
    commit(&mut s);
    let before = chains(&table, 1);
    update(&mut s, &table, 1, &edited(&committed, 9, 1, "c"));
    update(&mut s, &table, 1, &edited(&committed, 9, 1, "dd"));
    block(|| s.rollback()).unwrap();
    assert_eq!(chains(&table, 1), before);
    assert_purged(&db.engine, &table);
    assert_eq!(all(&mut s, &table), std::slice::from_ref(&committed));
    // A chain of the same transaction, shared by its second change.
    update(&mut s, &table, 1, &long(1, 1, "b"));
    update(&mut s, &table, 1, &edited(&long(1, 1, "b"), 8, 1, "c"));
    block(|| s.rollback()).unwrap();
    assert_purged(&db.engine, &table);
    assert_eq!(all(&mut s, &table), [committed]);
    delete(&mut s, &table, 1);
    commit(&mut s);
    assert_purged(&db.engine, &table);
}

#[test]
fn small_changes_survive_a_crash() {
    let db = Db::new();
    let mut s = db.session();
    let table = filled(&db, &mut s, 1..3);
    let row = edited(&long(1, 1, "a"), 1000, 3, "four");
    update(&mut s, &table, 1, &row);
    commit(&mut s);
    update(&mut s, &table, 2, &edited(&long(2, 2, "a"), 0, 1, "x")); // unfinished
    drop((s, table));
    let db = db.crash();
    let (mut s, table) = (db.session(), db.find("t"));
    assert_purged(&db.engine, &table);
    assert_eq!(all(&mut s, &table), [row, long(2, 2, "a")]);
}

/// Changes of many columns would not fit the page that the pointers of their chains fit.
#[test]
fn changes_that_make_a_row_too_long_are_written_out() {
    let db = Db::new();
    let mut s = db.session();
    let mut spec = spec("t", true);
    let long = spec.columns[3].clone();
    for n in 0..4 {
        let mut another = long.clone();
        another.name = format!("b{n}").into();
        spec.columns.push(another);
    }
    let def = db.engine.create_table(spec).unwrap();
    let table = db.engine.table(def.id).unwrap();
    let row = |letter: &str| {
        let text = "a"
            .repeat(20_000)
            .replacen(&"a".repeat(1500), &letter.repeat(1500), 1);
        let long = std::iter::repeat_n(Value::Bytes(text.into_bytes()), 5);
        let first = [Value::Int(1), Value::Null, Value::Null];
        first.into_iter().chain(long).collect::<Vec<Value>>()
    };
    let image = |values: &[Value], out: &mut Vec<u8>| {
        let values = values.iter().map(Value::as_ref);
        table.layout().encode(values, out).unwrap();
    };
    s.statement_begin(Isolation::RepeatableRead, false);
    let mut op = InsertOp::new(table.clone());
    image(&row("a"), op.row());
    assert_eq!(block(|| s.insert(&mut op)).unwrap(), WriteOutcome::Done);
    let mut old = Vec::new();
    image(&row("a"), &mut old);
    let mut op = UpdateOp::new(table.clone());
    image(&row("b"), op.row(&old, None));
    assert_eq!(block(|| s.update(&mut op)).unwrap(), WriteOutcome::Done);
    block(|| s.statement_end(true)).unwrap();
    commit(&mut s);
    assert_purged(&db.engine, &table);
    s.statement_begin(Isolation::RepeatableRead, false);
    let columns = ReadSpec {
        columns: (0..8).collect(),
        ..ReadSpec::default()
    };
    let mut read = Read::range(table.clone(), columns, &KeyRange::all(), false);
    let mut batch = RowBatch::new();
    while block(|| read.next(&mut s, &mut batch)).unwrap() {}
    let mut expected = Vec::new();
    image(&row("b"), &mut expected);
    assert_eq!(batch.row(0), expected);
    block(|| s.statement_end(true)).unwrap();
}

/// The first and last bytes of a value.
#[derive(Debug)]
struct Ends(usize);

impl ValuePart for Ends {
    fn append(&self, length: usize, bytes: &mut dyn ValueBytes, out: &mut Vec<u8>) -> bool {
        let Some(last) = length.checked_sub(self.0) else {
            return false;
        };
        // One end as bytes and one as words, in turns.
        let (bytes_at, words_at) = match self.0 % 2 {
            0 => (0, last),
            _ => (last, 0),
        };
        let mut as_bytes = Vec::new();
        let appended = bytes.append(bytes_at, self.0, &mut as_bytes);
        let mut as_words = Vec::new();
        for at in (words_at..words_at + self.0).step_by(8) {
            as_words.extend_from_slice(&bytes.word(at).unwrap().to_le_bytes());
        }
        as_words.truncate(self.0);
        let ends = match self.0 % 2 {
            0 => [as_bytes, as_words],
            _ => [as_words, as_bytes],
        };
        out.extend_from_slice(&ends.concat());
        appended && !bytes.append(length, 1, &mut Vec::new())
    }
}

#[test]
fn parts_of_changed_values_equal_those_of_the_value() {
    let db = Db::new();
    let mut s = db.session();
    let table = filled(&db, &mut s, 1..2);
    let mut versions = vec![long(1, 1, "a")];
    let mut snapshots = vec![snapshot(&db)];
    for (at, removed, inserted) in [
        (0, 1, "b"),
        (49_999, 1, "the end"),
        (20_000, 0, "inserted"),
        (3, 600, ""),
        (17_000, 20, "x"),
    ] {
        let row = edited(versions.last().unwrap(), at, removed, inserted);
        update(&mut s, &table, 1, &row);
        commit(&mut s);
        versions.push(row);
        snapshots.push(snapshot(&db));
    }
    for (version, s) in versions.iter().zip(&mut snapshots) {
        for bytes in [1, 5, 700, 17_000, 30_000] {
            let text = version.3.as_deref().unwrap();
            let ends = format!("{}{}", &text[..bytes], &text[text.len() - bytes..]);
            s.statement_begin(Isolation::RepeatableRead, false);
            let spec = ReadSpec {
                columns: vec![0, 1, 2, 3],
                parts: vec![(3, Arc::new(Ends(bytes)))],
                ..ReadSpec::default()
            };
            let found = read(s, Read::range(table.clone(), spec, &KeyRange::all(), false));
            block(|| s.statement_end(true)).unwrap();
            let mut expected = version.clone();
            expected.3 = Some(ends);
            assert_eq!(found, [expected]);
        }
        commit(s);
    }
}
