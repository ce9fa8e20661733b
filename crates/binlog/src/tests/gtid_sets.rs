//! Sets of GTIDs beside a set of numbers.

use std::collections::BTreeSet;

use nfold_protocol::Reader;
use proptest::prelude::*;

use crate::{BinlogError, Gtid, GtidSet, SourceUuid, Tag};

const UUIDS: [&str; 2] = [
    "11111111-1111-1111-1111-111111111111",
    "0a0b0c0d-0000-4000-8000-00000000ffff",
];
const TAGS: [&str; 3] = ["", "blue", "_9"];

/// (uuid, tag, number)
type Member = (usize, usize, u64);

fn gtid((uuid, tag, number): Member) -> Gtid {
    Gtid::MySql {
        uuid: SourceUuid::parse(UUIDS[uuid]).expect("a uuid"),
        tag: Tag::parse(TAGS[tag]).expect("a tag"),
        number,
    }
}

fn members() -> impl Strategy<Value = BTreeSet<Member>> {
    proptest::collection::btree_set((0..2usize, 0..3usize, 1..20u64), 0..40)
}

fn set_of(members: &BTreeSet<Member>) -> GtidSet {
    let mut set = GtidSet::new();
    members.iter().for_each(|m| set.add(&gtid(*m)));
    set
}

#[test]
fn gtid_set_error_marks_its_position() {
    const UUID: &str = "3E11FA47-71CA-11E1-9E33-C80AA9429562";
    // As MySQL 9.7 words them.
    for (text, expected) in [
        (
            "x",
            r#"Expected at least two hex digits at the beginning of the string: "x""#,
        ),
        (
            "ab",
            r#"Expected at least two hex digits after 2 characters, marked by [HERE] in: "ab[HERE]""#,
        ),
        (
            "{3E11FA4771CA11E19E33C80AA9429562}:1",
            r#"Expected "-" after 9 characters, marked by [HERE] in: "{3E11FA47[HERE]71CA11E19E33C80AA9429562}:1""#,
        ),
        (
            "3E 11FA47-71CA-11E1-9E33-C80AA9429562:1",
            r#"Expected hex digit after 2 characters, marked by [HERE] in: "3E[HERE] 11FA47-71CA-11E1-9E33-C8...""#,
        ),
        (
            &format!("{UUID}:1-9223372036854775807"),
            r#"Interval end out of range after 58 characters, marked by [HERE] in: "...36854775807[HERE]""#,
        ),
        (
            &format!("{UUID}:18446744073709551616"),
            r#"Number out of range after 37 characters, marked by [HERE] in: "...0AA9429562:[HERE]18446744073709551616""#,
        ),
        (
            &format!("{UUID}:0x1"),
            r#"Interval start out of range after 37 characters, marked by [HERE] in: "...0AA9429562:[HERE]0x1""#,
        ),
        (
            &format!("{UUID}:a b:1"),
            r#"Expected "," after 39 characters, marked by [HERE] in: "...A9429562:a [HERE]b:1""#,
        ),
        (
            "\u{e9}",
            r#"Expected hex digit at the beginning of the string: "\xc3\xa9""#,
        ),
    ] {
        let error = BinlogError::Gtid(expected.into());
        assert_eq!(GtidSet::parse(text), Err(error), "{text}");
    }
    let text = format!("{{{UUID}}} : 1 - 3 : 5-4 ,, {UUID}:blue:7,1-2-3");
    let set = GtidSet::parse(&text).expect("a set").to_string();
    assert_eq!(set, format!("{0}:1-3:blue:7,1-2-3", UUID.to_lowercase()));
}

proptest! {
    #[test]
    fn gtid_set_matches_a_set_of_numbers(a in members(), b in members()) {
        let (left, right) = (set_of(&a), set_of(&b));
        for uuid in 0..2 {
            for tag in 0..3 {
                for number in 1..21 {
                    let m = (uuid, tag, number);
                    prop_assert_eq!(left.contains(&gtid(m)), a.contains(&m));
                }
            }
        }
        let mut both = left.clone();
        both.add_all(&right);
        prop_assert_eq!(&both, &set_of(&a.union(&b).copied().collect()));
        prop_assert_eq!(&left.without(&right), &set_of(&a.difference(&b).copied().collect()));
        prop_assert_eq!(left.is_subset(&right), a.is_subset(&b));
        prop_assert!(left.is_subset(&both));
    }

    #[test]
    fn gtid_set_survives_every_form(a in members(), domains in 0..3u32) {
        let mut set = set_of(&a);
        let mut encoded = Vec::new();
        set.encode(&mut encoded);
        prop_assert_eq!(GtidSet::decode(&encoded), Ok(set.clone()));
        for domain in 0..domains {
            set.add(&Gtid::MariaDb { domain, server: 7, sequence: 100 + u64::from(domain) });
        }
        prop_assert_eq!(GtidSet::parse(&set.to_string()), Ok(set.clone()));
        let mut stored = Vec::new();
        set.store(&mut stored);
        let mut r = Reader::new(&stored);
        prop_assert_eq!(GtidSet::load(&mut r), Ok(set));
        prop_assert!(r.is_empty());
    }

    #[test]
    fn damaged_gtid_set_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        let _ = GtidSet::decode(&bytes);
        let _ = GtidSet::load(&mut Reader::new(&bytes));
        let _ = GtidSet::parse(&String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn gtid_set_text_is_that_of_mysql() {
    let text = format!("{0}:1-3:5:blue:7-9,\n{1}:1", UUIDS[1], UUIDS[0]);
    let set = GtidSet::parse(&text.replace('\n', " ")).expect("a set");
    assert_eq!(set.to_string(), text);
    assert!(set.contains(&Gtid::parse(&format!("{}:BLUE:8", UUIDS[1])).expect("a gtid")));
    for bad in [
        "x",
        "1-2",
        "0-1-2-3",
        &format!("{}:0", UUIDS[0]),
        &format!("{}:9x", UUIDS[0]),
    ] {
        assert!(GtidSet::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn mariadb_position_covers_earlier_transactions() {
    let mut set = GtidSet::parse("0-1-100,3-1-7").expect("positions");
    assert!(set.contains(&Gtid::parse("0-2-99").expect("a gtid")));
    assert!(!set.contains(&Gtid::parse("0-1-101").expect("a gtid")));
    set.add(&Gtid::parse("0-2-101").expect("a gtid"));
    assert_eq!(set.to_string(), "0-2-101,3-1-7");
}
