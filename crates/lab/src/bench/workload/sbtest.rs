//! The workloads of sysbench 1.0's `oltp_*` scripts and of its two `select_random_*` scripts, over
//! a single `sbtest1`. Ids are drawn uniformly (sysbench: `--rand-type=uniform`).

use std::io::Write;

use super::plan::{Fill, Gen, Plan, Step};
use super::rng::Rng;

pub const CREATE: &str = "CREATE TABLE sbtest1 (id int NOT NULL AUTO_INCREMENT, k int NOT NULL DEFAULT '0', c char(120) NOT NULL DEFAULT '', \
    pad char(60) NOT NULL DEFAULT '', PRIMARY KEY (id), KEY k_1 (k))";

/// `groups` groups of eleven digits, joined by `-`.
pub fn digits(rng: &mut Rng, groups: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(groups * 12);
    for group in 0..groups {
        if group > 0 {
            out.push(b'-');
        }
        let mut n = rng.next();
        for _ in 0..11 {
            out.push(b'0' + (n % 10) as u8);
            n /= 10;
        }
    }
    out
}

/// Appends `(…)` with the values of row `id`.
pub fn row(out: &mut Vec<u8>, id: u64, rows: u64) {
    let mut rng = Rng::new(id ^ 0x5b);
    let _ = write!(out, "({id},{},'", rng.up_to(rows));
    out.extend_from_slice(&digits(&mut rng, 10));
    out.extend_from_slice(b"','");
    out.extend_from_slice(&digits(&mut rng, 5));
    out.extend_from_slice(b"')");
}

const ID: &[Fill] = &[Fill::One(Gen::Id)];
const RANGE: &[Fill] = &[Fill::One(Gen::Id), Fill::One(Gen::Last(99))];

fn point() -> Step {
    Step::new("SELECT c FROM sbtest1 WHERE id=?", ID)
}

fn ranges() -> [Step; 4] {
    [
        Step::new("SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ?", RANGE),
        Step::new("SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN ? AND ?", RANGE),
        Step::new(
            "SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ? ORDER BY c",
            RANGE,
        ),
        Step::new(
            "SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN ? AND ? ORDER BY c",
            RANGE,
        ),
    ]
}

fn update_index() -> Step {
    Step::new("UPDATE sbtest1 SET k=k+1 WHERE id=?", ID)
}

fn update_non_index() -> Step {
    Step::new(
        "UPDATE sbtest1 SET c=? WHERE id=?",
        &[Fill::One(Gen::Long), Fill::One(Gen::Id)],
    )
}

fn delete() -> Step {
    Step::new("DELETE FROM sbtest1 WHERE id=?", ID)
}

fn insert_again() -> Step {
    let fills = [
        Fill::One(Gen::Last(0)),
        Fill::One(Gen::Key),
        Fill::One(Gen::Long),
        Fill::One(Gen::Pad),
    ];
    Step::new(
        "INSERT INTO sbtest1 (id, k, c, pad) VALUES (?, ?, ?, ?)",
        &fills,
    )
}

fn reads() -> Vec<Step> {
    (0..10).map(|_| point()).chain(ranges()).collect()
}

fn writes() -> Vec<Step> {
    vec![update_index(), update_non_index(), delete(), insert_again()]
}

/// Adds BEGIN and COMMIT around steps.
pub fn transaction(steps: Vec<Step>) -> Plan {
    let mut all = vec![Step::new("BEGIN", &[])];
    all.extend(steps);
    all.push(Step::new("COMMIT", &[]));
    Plan {
        steps: all,
        transaction: true,
    }
}

fn plain(steps: Vec<Step>) -> Plan {
    Plan {
        steps,
        transaction: false,
    }
}

/// (Name, description, plan).
pub fn families() -> Vec<(&'static str, &'static str, Plan)> {
    let insert = Step::new(
        "INSERT INTO sbtest1 (k, c, pad) VALUES (?, ?, ?)",
        &[
            Fill::One(Gen::Key),
            Fill::One(Gen::Long),
            Fill::One(Gen::Pad),
        ],
    );
    let random_points = Step::new(
        format!(
            "SELECT id, k, c, pad FROM sbtest1 WHERE k IN ({})",
            ["?"; 10].join(", ")
        ),
        &[Fill::One(Gen::Key); 10],
    );
    let range = [Fill::One(Gen::Id), Fill::One(Gen::Last(5))];
    let random_ranges = Step::new(
        format!(
            "SELECT count(k) FROM sbtest1 WHERE {}",
            ["k BETWEEN ? AND ?"; 10].join(" OR ")
        ),
        &range.repeat(10),
    );
    let mixed: Vec<Step> = reads().into_iter().chain(writes()).collect();
    vec![
        (
            "oltp_point_select",
            "one row by primary key",
            plain(vec![point()]),
        ),
        (
            "oltp_read_only",
            "ten points and four ranges of 100 in a transaction",
            transaction(reads()),
        ),
        (
            "oltp_read_only_auto",
            "the same without BEGIN and COMMIT",
            plain(reads()),
        ),
        (
            "oltp_read_write",
            "the reads of oltp_read_only and the writes of oltp_write_only",
            transaction(mixed),
        ),
        (
            "oltp_write_only",
            "two updates, a delete and an insert in a transaction",
            transaction(writes()),
        ),
        (
            "oltp_update_index",
            "one row's indexed column",
            plain(vec![update_index()]),
        ),
        (
            "oltp_update_non_index",
            "one row's column without an index",
            plain(vec![update_non_index()]),
        ),
        ("oltp_insert", "one new row", plain(vec![insert])),
        (
            "oltp_delete",
            "one row goes (and is put back, so that the table keeps its size)",
            plain(vec![delete(), insert_again()]),
        ),
        (
            "select_random_points",
            "ten values of a secondary key",
            plain(vec![random_points]),
        ),
        (
            "select_random_ranges",
            "ten short ranges of a secondary key",
            plain(vec![random_ranges]),
        ),
    ]
}
