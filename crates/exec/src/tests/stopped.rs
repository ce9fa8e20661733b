//! Long computations look whether their statement was killed: often enough, and end with error
//! 1317.

use std::cell::Cell;

use nfold_types::{CHECKPOINT_WORK, Checkpoint};

use super::{Db, Fiber};
use crate::OperatorPool;
use crate::env::Checkpoints;

#[test]
fn checkpoint_ticks_when_work_is_due() {
    let left = Cell::new(3);
    let mut fiber = Fiber {
        operator_pool: OperatorPool::default(),
        kill_after: Some(&left),
    };
    let checkpoints = Checkpoints::new(&mut fiber);
    for _ in 0..2 * CHECKPOINT_WORK / 10 {
        checkpoints.checkpoint(10).unwrap();
    }
    assert_eq!(left.get(), 1, "once for each CHECKPOINT_WORK");
    assert!(checkpoints.checkpoint(u64::MAX).is_err(), "killed");
}

#[test]
fn copies_of_long_rows_look_whether_the_statement_was_killed() {
    let db = Db::new();
    db.create("t", &["id int", "s longtext"], &["primary id"]);
    const ROWS: u64 = 4;
    const BYTES: u64 = 2_000_000;
    for id in 1..=ROWS {
        db.exec(&format!(
            "INSERT INTO t VALUES ({id}, REPEAT('x', {BYTES}))"
        ));
    }
    db.env.memory.set(64 << 10);
    for sql in [
        "SELECT LENGTH(s) FROM (SELECT s FROM t ORDER BY -id LIMIT 4) x",
        "SELECT LENGTH(a.s) + LENGTH(b.s) FROM t a JOIN t b ON a.id + 0 = b.id + 0",
    ] {
        // `ticks` runs it twice.
        let ticks = db.ticks(sql) / 2;
        // Each row is copied into memory, and from there into the buffer of a file.
        let least = 2 * ROWS * BYTES / (256 << 10);
        assert!(ticks > least, "{ticks} ticks of {sql}, at least {least}");
    }
}

#[test]
fn killed_computation_ends_with_error_1317() {
    let db = Db::new();
    for sql in [
        "SELECT REPEAT('a', 3000000) LIKE '%b%'",
        "SELECT SHA2(REPEAT('a', 4000000), 512)",
        "SELECT REVERSE(REPEAT('abc', 1000000)) = UPPER(REPEAT('abc', 1000000))",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900)
         SELECT MAX(a.i) FROM n a, n b ORDER BY MAX(b.i)",
    ] {
        let ticks = db.ticks(sql);
        assert!(ticks > 3, "{ticks} ticks of {sql}");
        for at in [1, ticks / 2, ticks - 1] {
            let error = db.killed_at(at, sql);
            assert!(
                error.starts_with("ERROR 1317"),
                "tick {at} of {sql}: {error}"
            );
        }
    }
}
