//! The table of the IN-list workloads (2011) and its reads by secondary key. The rows equal those
//! of `bench/lua/items_common.lua`.

use std::io::Write;

use super::plan::{Fill, Gen, Plan, Spread, Step};

/// `items`: five rows per group on average, and a key that covers few queries.
pub const CREATE: &str = "CREATE TABLE items (id bigint unsigned NOT NULL AUTO_INCREMENT, group_id int unsigned NOT NULL, \
    deleted tinyint NOT NULL, owner int, title varchar(64), body varchar(120), created datetime, PRIMARY KEY (id), \
    KEY group_deleted (group_id, deleted))";
/// `items_named`: groups have names with a collation instead of numbers.
pub const CREATE_NAMED: &str = "CREATE TABLE items_named (id bigint unsigned NOT NULL AUTO_INCREMENT, group_name varchar(40) NOT NULL, \
    deleted tinyint NOT NULL, title varchar(64), PRIMARY KEY (id), KEY name_deleted (group_name, deleted)) DEFAULT CHARACTER SET utf8mb4";

const MOD: u64 = 2_147_483_647;
const WORDS: [&str; 24] = [
    "alpha", "bravo", "carbon", "delta", "ember", "forest", "garnet", "harbor", "island",
    "jasmine", "kernel", "lumen", "marble", "nectar", "orchid", "pepper", "quartz", "river",
    "saddle", "timber", "umber", "violet", "willow", "yonder",
];

/// Multiplies and folds three times. Every column is a function of the row's id and a salt.
fn mix(id: u64, salt: u64) -> u64 {
    let mut x = (id * 48271 + salt * 69621) % MOD;
    for _ in 0..3 {
        x ^= x >> 15;
        x = (x * 48271 + 12345) % MOD;
    }
    x
}

fn words(out: &mut Vec<u8>, id: u64, salt: u64, max: u64) {
    let (mut len, mut h) = (0, mix(id, salt));
    loop {
        let word = WORDS[(h % WORDS.len() as u64) as usize];
        if len + word.len() as u64 + 1 > max {
            return;
        }
        if len > 0 {
            out.push(b' ');
        }
        out.extend_from_slice(word.as_bytes());
        len += word.len() as u64 + 1;
        h = mix(h, salt + 1);
    }
}

/// The group of row `id`.
fn group(id: u64, groups: u64) -> u64 {
    mix(id, 1) % groups + 1
}

/// The name of a group. Neighbouring names share most of their characters.
pub fn name(group: u64) -> String {
    format!(
        "{} {} group {group:07}",
        WORDS[group as usize % 3],
        WORDS[3 + group as usize % 5]
    )
}

/// Appends `(…)` with the values of row `id`.
pub fn row(out: &mut Vec<u8>, id: u64, groups: u64) {
    let deleted = u8::from(mix(id, 2).is_multiple_of(10));
    let owner = mix(id, 3) % 50_000 + 1;
    let _ = write!(out, "({id},{},{deleted},{owner},'", group(id, groups));
    words(out, id, 10, 20 + mix(id, 4) % 45);
    out.extend_from_slice(b"','");
    words(out, id, 20, 60 + mix(id, 5) % 61);
    let m = mix(id, 6);
    let _ = write!(
        out,
        "','20{:02}-{:02}-{:02} {:02}:{:02}:{:02}')",
        10 + m % 15,
        1 + (m >> 4) % 12,
        1 + (m >> 8) % 28,
        (m >> 12) % 24,
        (m >> 16) % 60,
        (m >> 20) % 60
    );
}

/// Appends `(…)` with the values of row `id` of `items_named`.
pub fn row_named(out: &mut Vec<u8>, id: u64, groups: u64) {
    let deleted = u8::from(mix(id, 2).is_multiple_of(10));
    let _ = write!(out, "({id},'{}',{deleted},'", name(group(id, groups)));
    words(out, id, 10, 20 + mix(id, 4) % 45);
    out.extend_from_slice(b"')");
}

const IN: &str = "SELECT * FROM items WHERE deleted = 0 AND group_id IN ";

fn plain(step: Step) -> Plan {
    Plan {
        steps: vec![step],
        transaction: false,
    }
}

/// The statement of 2011 with `n` ids.
pub fn in_list(n: u32, spread: Spread) -> Plan {
    plain(Step::list(IN, n, spread, ""))
}

pub fn in_list_order() -> Plan {
    plain(Step::list(
        IN,
        200,
        Spread::Uniform,
        " ORDER BY created DESC LIMIT 20",
    ))
}

pub fn in_list_names() -> Plan {
    plain(Step::list(
        "SELECT * FROM items_named WHERE deleted = 0 AND group_name IN ",
        200,
        Spread::Names,
        "",
    ))
}

/// `(group_id, deleted) IN ((1,0),(2,0),…)`.
pub fn in_list_rows() -> Plan {
    let pairs = vec!["(?,0)"; 200].join(",");
    plain(Step::new(
        format!("SELECT * FROM items WHERE (group_id, deleted) IN ({pairs})"),
        &[Fill::List(200, Spread::Uniform)],
    ))
}

/// A hundred rows by primary key, of groups that are not in a list.
pub fn not_in_list() -> Plan {
    let marks = vec!["?"; 200].join(",");
    plain(Step::new(
        format!("SELECT * FROM items WHERE id BETWEEN ? AND ? AND group_id NOT IN ({marks})"),
        &[
            Fill::One(Gen::Id),
            Fill::One(Gen::Last(100)),
            Fill::List(200, Spread::Near),
        ],
    ))
}

/// The writers beside the IN list. Each update moves a row from one side of the IN list's key to
/// the other.
pub fn writer() -> Plan {
    plain(Step::new(
        "UPDATE items SET deleted = 1 - deleted WHERE id = ?",
        &[Fill::One(Gen::Id)],
    ))
}

/// A read by one value.
pub fn point(template: &str, kind: Gen) -> Plan {
    plain(Step::new(template, &[Fill::One(kind)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with rows that `sysbench in_list.lua --items-rows=1000 --items-groups=200 prepare`
    /// wrote.
    #[test]
    fn rows_match_the_lua_script() {
        for (id, expected) in RECORDED {
            let mut out = Vec::new();
            row(&mut out, *id, 200);
            assert_eq!(String::from_utf8_lossy(&out), *expected);
        }
    }

    const RECORDED: &[(u64, &str)] = &[
        (
            1,
            "(1,45,0,16210,'kernel alpha bravo bravo nectar timber alpha','river alpha island garnet island bravo garnet nectar lumen \
             jasmine bravo timber harbor jasmine island lumen forest','2022-04-11 10:11:26')",
        ),
        (
            500,
            "(500,43,0,15081,'yonder nectar bravo','harbor timber quartz kernel nectar bravo yonder delta pepper kernel violet saddle \
             bravo yonder kernel harbor','2018-05-19 21:04:56')",
        ),
        (
            1000,
            "(1000,109,0,7627,'willow lumen forest harbor delta lumen','alpha marble delta kernel harbor saddle umber saddle timber \
             pepper bravo harbor','2019-04-06 20:40:02')",
        ),
    ];
}
