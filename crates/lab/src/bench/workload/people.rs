//! The table and the thirteen reads of the comparisons of 2007 and 2009: by primary key, and by a
//! secondary key of three columns.

use std::io::Write;

use super::plan::{Fill, Gen, Plan, Step};
use super::rng::Rng;

pub const COUNTRIES: u64 = 200;
pub const STATES: u64 = 50;

pub const CREATE: &str = "CREATE TABLE people (id int unsigned NOT NULL AUTO_INCREMENT, name varchar(64) NOT NULL DEFAULT '', \
    email varchar(64) NOT NULL DEFAULT '', password varchar(64) NOT NULL DEFAULT '', dob date DEFAULT NULL, \
    address varchar(128) NOT NULL DEFAULT '', city varchar(64) NOT NULL DEFAULT '', state_id tinyint unsigned NOT NULL DEFAULT '0', \
    zip varchar(8) NOT NULL DEFAULT '', country_id smallint unsigned NOT NULL DEFAULT '0', PRIMARY KEY (id), KEY email (email), \
    KEY country_id (country_id, state_id, city))";

/// Appends `(…)` with the values of row `id`, which depend only on the id.
pub fn row(out: &mut Vec<u8>, id: u64) {
    let mut rng = Rng::new(id);
    let word = |rng: &mut Rng, len: u64| -> String {
        (0..len)
            .map(|_| char::from(b'a' + (rng.up_to(26) - 1) as u8))
            .collect()
    };
    let (name, email, password) = (word(&mut rng, 12), word(&mut rng, 10), word(&mut rng, 16));
    let (address, city) = (word(&mut rng, 30), word(&mut rng, 8));
    let _ = write!(
        out,
        "({id},'{name}','{email}@example.com','{password}','{}-{:02}-{:02}','{address}','{city}',{},'{:05}',{})",
        1940 + rng.up_to(60),
        rng.up_to(12),
        rng.up_to(28),
        rng.up_to(STATES),
        rng.up_to(99_999),
        rng.up_to(COUNTRIES),
    );
}

const ID: &[Fill] = &[Fill::One(Gen::Id)];
const COUNTRY: &[Fill] = &[Fill::One(Gen::Country)];
const ID_RANGE: &[Fill] = &[Fill::One(Gen::Id), Fill::One(Gen::Last(100))];
const STATE_RANGE: &[Fill] = &[
    Fill::One(Gen::Country),
    Fill::One(Gen::State),
    Fill::One(Gen::Last(10)),
];

/// (Name, statement, values).
pub const SHAPES: [(&str, &str, &[Fill]); 13] = [
    ("read_pk_point", "SELECT name FROM people WHERE id = ?", ID),
    (
        "read_pk_point_index",
        "SELECT id FROM people WHERE id = ?",
        ID,
    ),
    (
        "read_key_point",
        "SELECT name FROM people WHERE country_id = ?",
        COUNTRY,
    ),
    (
        "read_key_point_no_data",
        "SELECT state_id FROM people WHERE country_id = ?",
        COUNTRY,
    ),
    (
        "read_key_point_limit",
        "SELECT name FROM people WHERE country_id = ? LIMIT 5",
        COUNTRY,
    ),
    (
        "read_key_point_no_data_limit",
        "SELECT state_id FROM people WHERE country_id = ? LIMIT 5",
        COUNTRY,
    ),
    (
        "read_pk_range",
        "SELECT min(dob) FROM people WHERE id BETWEEN ? AND ?",
        ID_RANGE,
    ),
    (
        "read_pk_range_index",
        "SELECT count(id) FROM people WHERE id BETWEEN ? AND ?",
        ID_RANGE,
    ),
    (
        "read_key_range",
        "SELECT name FROM people WHERE country_id = ? AND state_id BETWEEN ? AND ?",
        STATE_RANGE,
    ),
    (
        "read_key_range_no_data",
        "SELECT city FROM people WHERE country_id = ? AND state_id BETWEEN ? AND ?",
        STATE_RANGE,
    ),
    (
        "read_key_range_limit",
        "SELECT name FROM people WHERE country_id = ? AND state_id BETWEEN ? AND ? LIMIT 50",
        STATE_RANGE,
    ),
    (
        "read_key_range_no_data_limit",
        "SELECT city FROM people WHERE country_id = ? AND state_id BETWEEN ? AND ? LIMIT 50",
        STATE_RANGE,
    ),
    ("read_fts", "SELECT min(dob) FROM people", &[]),
];

/// The plan of one of [`SHAPES`].
pub fn plan(shape: &(&str, &str, &[Fill])) -> Plan {
    Plan {
        steps: vec![Step::new(shape.1, shape.2)],
        transaction: false,
    }
}
