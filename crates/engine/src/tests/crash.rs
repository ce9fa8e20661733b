//! What a restart finds after the engine was dropped in the middle of its work.

use super::*;

#[test]
fn committed_rows_stay_and_others_go() {
    let db = Db::new();
    let table = db.table();
    let mut s = db.session();
    for id in 0..100 {
        insert(&mut s, &table, &row(id, id % 7, &format!("s{id}")));
    }
    commit(&mut s);
    let committed = all(&mut s, &table);
    commit(&mut s);
    update(&mut s, &table, 5, &row(5, 1000, "gone"));
    delete(&mut s, &table, 6);
    insert(&mut s, &table, &row(1000, 1, "never"));
    // Another transaction's commit makes the log durable up to here.
    let mut other = db.session();
    insert(&mut other, &table, &row(2000, 2, "stays"));
    commit(&mut other);
    std::mem::forget(s);
    drop((other, table));
    let db = db.crash();
    let table = db.find("t");
    while db.engine.step_background().unwrap() {}
    let mut s = db.session();
    let mut expected = committed;
    expected.push(row(2000, 2, "stays"));
    assert_eq!(all(&mut s, &table), expected);
    commit(&mut s);
    assert_sound(&db.engine, &table);
    assert_eq!(
        insert(&mut s, &table, &row(1000, 1, "never")),
        WriteOutcome::Done,
        "nothing is left of it"
    );
    commit(&mut s);
}

#[test]
fn unfinished_rows_are_invisible_and_locked_until_undone() {
    let db = Db::new();
    let table = db.table();
    let mut s = db.session();
    insert(&mut s, &table, &row(1, 1, "one"));
    commit(&mut s);
    update(&mut s, &table, 1, &row(1, 2, "two"));
    let mut other = db.session();
    insert(&mut other, &table, &row(9, 9, "nine"));
    commit(&mut other);
    std::mem::forget(s);
    drop((other, table));
    let db = db.crash();
    let table = db.find("t");
    let mut s = db.session();
    assert_eq!(
        all(&mut s, &table),
        [row(1, 1, "one"), row(9, 9, "nine")],
        "before anything was undone"
    );
    s.statement_begin(Isolation::RepeatableRead, false);
    let mut points = EqualityKeys::new();
    points.push_with(|out| {
        table
            .key_layout(0)
            .encode_values([ValueRef::Int(1)], out)
            .unwrap()
    });
    let spec = ReadSpec {
        lock: RowLock::Exclusive,
        wait: LockWaitPolicy::NoWait,
        ..ReadSpec::default()
    };
    let mut locked = Read::points(table.clone(), spec, points);
    let refused = block(|| locked.next(&mut s, &mut RowBatch::new()));
    assert_eq!(refused, Err(EngineError::LockNoWait));
    block(|| s.rollback()).unwrap();
    while db.engine.step_background().unwrap() {}
    update(&mut s, &table, 1, &row(1, 3, "three"));
    commit(&mut s);
    assert_eq!(all(&mut s, &table)[0], row(1, 3, "three"));
}
