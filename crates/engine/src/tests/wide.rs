//! Rows whose indexed columns lie on overflow pages: the rest of the row pushes them out.

use super::*;

/// `w (id BIGINT PRIMARY KEY, a, b, c VARCHAR(700), each with a key)`; rows of three long values
/// keep one of them.
fn wide(db: &Db, indexed: bool) -> Arc<Table> {
    let text = ColumnType::varchar(700, CollationId(255));
    let index = |name: &str, kind, column| IndexSpec {
        name: name.into(),
        kind,
        parts: vec![IndexPart {
            column,
            prefix_len: None,
            desc: false,
        }],
        comment: Box::default(),
        btree: false,
        generated: false,
        visible: true,
    };
    let mut indexes = vec![index("PRIMARY", IndexKind::Primary, 0)];
    if indexed {
        indexes.extend(keys(index));
    }
    let def = db
        .engine
        .create_table(TableSpec {
            schema: "d".into(),
            name: "w".into(),
            columns: vec![
                column("id", ColumnType::bigint(), false),
                column("a", text.clone(), true),
                column("b", text.clone(), true),
                column("c", text, true),
            ],
            indexes,
            foreign_keys: Vec::new(),
            checks: Vec::new(),
            collation: CollationId(255),
            options: TableOptions::default(),
            auto_increment: 0,
        })
        .unwrap();
    db.engine.table(def.id).unwrap()
}

fn keys(index: impl Fn(&str, IndexKind, usize) -> IndexSpec) -> impl Iterator<Item = IndexSpec> {
    ["a", "b", "c"]
        .into_iter()
        .enumerate()
        .map(move |(n, name)| index(name, IndexKind::Secondary, n + 1))
}

type Wide = (i64, [String; 3]);

fn wide_row(id: i64, letters: &str) -> Wide {
    let mut columns = letters.chars().map(|c| c.to_string().repeat(700));
    (id, std::array::from_fn(|_| columns.next().unwrap()))
}

fn image(table: &Table, row: &Wide) -> Vec<u8> {
    let mut values = vec![Value::Int(row.0)];
    values.extend(row.1.iter().map(|s| Value::from(Some(s.as_str()))));
    let mut out = Vec::new();
    let values = values.iter().map(Value::as_ref);
    table.layout().encode(values, &mut out).unwrap();
    out
}

fn put(s: &mut EngineSession, table: &Arc<Table>, row: &Wide) {
    s.statement_begin(Isolation::RepeatableRead, false);
    let mut op = InsertOp::new(table.clone());
    op.row().extend(image(table, row));
    assert_eq!(block(|| s.insert(&mut op)).unwrap(), WriteOutcome::Done);
    block(|| s.statement_end(true)).unwrap();
}

fn change(s: &mut EngineSession, table: &Arc<Table>, old: &Wide, new: Option<&Wide>) {
    s.statement_begin(Isolation::RepeatableRead, false);
    match new {
        Some(new) => {
            let mut op = UpdateOp::new(table.clone());
            op.row(&image(table, old), None).extend(image(table, new));
            block(|| s.update(&mut op)).unwrap();
        }
        None => {
            let mut op = DeleteOp::new(table.clone());
            op.row(&image(table, old), None);
            block(|| s.delete(&mut op)).unwrap();
        }
    }
    block(|| s.statement_end(true)).unwrap();
}

/// What column `n` is in the rows of its own index, read without the rows.
fn covered(s: &mut EngineSession, table: &Arc<Table>, n: usize) -> Vec<String> {
    let index = table.def().index(["", "a", "b", "c"][n]).unwrap();
    let spec = ReadSpec {
        index,
        covering: true,
        columns: table.index_columns(index).to_vec(),
        ..ReadSpec::default()
    };
    let mut read = Read::range(table.clone(), spec, &KeyRange::all(), false);
    let mut batch = RowBatch::new();
    while block(|| read.next(s, &mut batch)).unwrap() {}
    let text = |row: &[u8]| {
        let value = table.index_layout(index).get(row, 0).unwrap();
        String::from_utf8(value.as_bytes().unwrap().to_vec()).unwrap()
    };
    batch.iter().map(text).collect()
}

#[test]
fn undoing_reads_the_indexed_columns_from_their_pages() {
    let db = Db::new();
    let table = wide(&db, true);
    let mut s = db.session();
    let (one, two) = (wide_row(1, "ＡÄß"), wide_row(2, "öü€"));
    put(&mut s, &table, &one);
    put(&mut s, &table, &two);
    commit(&mut s);
    change(&mut s, &table, &one, None);
    block(|| s.rollback()).unwrap();
    // The same key, other bytes; and another key.
    change(&mut s, &table, &one, Some(&wide_row(1, "ａäß")));
    change(&mut s, &table, &two, Some(&wide_row(2, "öxy")));
    block(|| s.rollback()).unwrap();
    assert!(table.check_sound().is_ok());
    assert_sound(&db.engine, &table);
    for n in 1..=3 {
        let mut found = covered(&mut s, &table, n);
        let mut expected = vec![one.1[n - 1].clone(), two.1[n - 1].clone()];
        found.sort();
        expected.sort();
        assert!(found == expected, "column {n}");
    }
    commit(&mut s);
    assert_purged(&db.engine, &table);
}

#[test]
fn an_old_snapshot_reads_them_by_the_index_alone() {
    let db = Db::new();
    let table = wide(&db, true);
    let (mut s, mut old) = (db.session(), db.session());
    let one = wide_row(1, "ＡÄß");
    put(&mut s, &table, &one);
    commit(&mut s);
    old.begin(TrxOptions {
        isolation: Isolation::RepeatableRead,
        read_only: false,
        consistent_snapshot: true,
    });
    change(&mut s, &table, &one, Some(&wide_row(1, "ａäx")));
    commit(&mut s);
    for n in 1..=3 {
        old.statement_begin(Isolation::RepeatableRead, false);
        assert!(covered(&mut old, &table, n) == [one.1[n - 1].clone()]);
        block(|| old.statement_end(true)).unwrap();
    }
}

#[test]
fn an_index_is_made_of_them() {
    let db = Db::new();
    let table = wide(&db, false);
    let mut s = db.session();
    for id in 1..=5 {
        put(&mut s, &table, &wide_row(id, "ＡÄß"));
    }
    commit(&mut s);
    let index = |name: &str, kind, column| IndexSpec {
        name: name.into(),
        kind,
        parts: vec![IndexPart {
            column,
            prefix_len: None,
            desc: false,
        }],
        comment: Box::default(),
        btree: false,
        generated: false,
        visible: true,
    };
    let added: Vec<IndexSpec> = keys(index).collect();
    db.engine.change_indexes(table.def(), &added, &[]).unwrap();
    let table = db.find("w");
    assert_sound(&db.engine, &table);
    s.statement_begin(Isolation::RepeatableRead, false);
    assert_eq!(covered(&mut s, &table, 2).len(), 5);
}
