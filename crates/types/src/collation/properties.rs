//! Properties of every collation on arbitrary bytes, well-formed or not, and LIKE against a naive
//! evaluator.

use std::cmp::Ordering;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Strings over few characters, so that many are equal or begin alike; some with bytes of no
/// character.
fn text() -> impl Strategy<Value = Vec<u8>> {
    const PARTS: &[&[u8]] = &[
        b"a",
        b"A",
        b"b",
        b" ",
        b"  ",
        b"\t",
        b"\0",
        b"!",
        b"\xFF",
        b"\xE9",
        b"\xC3",
        b"\x80",
        b"\xFD",
        b"\xF0\x9F",
        "é".as_bytes(),
        "e\u{301}".as_bytes(),
        "ß".as_bytes(),
        b"ss",
        "豈".as_bytes(),
        "更".as_bytes(),
        "가".as_bytes(),
        "\u{3000}".as_bytes(),
        "😀".as_bytes(),
        "笀".as_bytes(),
        "\u{FDFA}".as_bytes(),
        "\u{200D}".as_bytes(),
    ];
    let one = prop_oneof![
        20 => proptest::sample::select(PARTS).prop_map(<[u8]>::to_vec),
        1 => vec(any::<u8>(), 1..4),
        1 => Just(b" ".repeat(300)),
    ];
    vec(one, 0..6).prop_map(|v| v.concat())
}

fn pattern() -> impl Strategy<Value = Vec<u8>> {
    const PARTS: &[&[u8]] = &[
        b"a",
        b"A",
        b"b",
        b"%",
        b"%",
        b"_",
        b"\\",
        b" ",
        "é".as_bytes(),
        "😀".as_bytes(),
    ];
    vec(proptest::sample::select(PARTS), 0..7).prop_map(|v| v.concat())
}

fn any_collation() -> impl Strategy<Value = &'static Collation> {
    proptest::sample::select(Collation::all().iter().collect::<Vec<_>>())
}

/// Those that compare characters of one byte or of UTF-8 one by one.
fn any_plain_collation() -> impl Strategy<Value = &'static Collation> {
    let all = Collation::all().iter();
    let plain = |c: &&Collation| !matches!(c.kind, Algorithm::Mapped(_));
    proptest::sample::select(all.filter(plain).collect::<Vec<_>>())
}

fn any_utf8_collation() -> impl Strategy<Value = &'static Collation> {
    let all = Collation::all().iter();
    proptest::sample::select(all.filter(|c| c.charset.is_utf8()).collect::<Vec<_>>())
}

fn key(c: &Collation, s: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    c.sort_key(s, &mut out);
    out
}

/// LIKE by definition, on the characters of well-formed strings.
fn naive_like(c: &Collation, text: &[char], pattern: &[char]) -> bool {
    let same = |a: char, b: char| {
        c.like(
            a.to_string().as_bytes(),
            format!("\\{b}").as_bytes(),
            Some('\\'),
        )
    };
    match pattern {
        [] => text.is_empty(),
        ['%', rest @ ..] => (0..=text.len()).any(|i| naive_like(c, &text[i..], rest)),
        ['_', rest @ ..] => !text.is_empty() && naive_like(c, &text[1..], rest),
        ['\\', l, rest @ ..] | [l, rest @ ..] => {
            !text.is_empty() && same(text[0], *l) && naive_like(c, &text[1..], rest)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(2000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn keys_hashes_and_comparison_agree(c in any_collation(), a in text(), b in text()) {
        let order = c.compare(&a, &b);
        prop_assert_eq!(c.compare(&b, &a), order.reverse());
        prop_assert_eq!(key(c, &a).cmp(&key(c, &b)), order);
        prop_assert_eq!(c.eq(&a, &b), order.is_eq());
        prop_assert!(c.compare(&a, &a).is_eq());
        let identity = |s| {
            let mut out = Vec::new();
            c.identity(s, &mut out);
            out
        };
        prop_assert_eq!(identity(&a) == identity(&b), order.is_eq());
        if order.is_eq() {
            prop_assert_eq!(c.hash64(&a), c.hash64(&b));
        }
        if c.is_invertible() {
            prop_assert_eq!(key(c, &a), a);
        }
    }

    #[test]
    fn padding_is_without_effect_or_makes_greater(c in any_plain_collation(), a in text(), n in 1..5_usize) {
        let padded = [&a[..], &b" ".repeat(n)].concat();
        let expected = if c.pad_space { Ordering::Equal } else { Ordering::Greater };
        prop_assert_eq!(c.compare(&padded, &a), expected);
        // The tab of latin7 may weigh more than the space.
        let tab = if c.charset.name == "latin7" { b"\0" } else { b"\t" };
        prop_assert_eq!(c.compare(&[&a[..], tab].concat(), &a), if c.pad_space { Ordering::Less } else { Ordering::Greater });
    }

    #[test]
    fn a_common_beginning_does_not_change_the_order(c in any_plain_collation(), s in "[a-zA-Z \té]{0,9}", a in text(), b in text()) {
        // Nothing joins a full stop to what follows it.
        let with = |t: &[u8]| [s.as_bytes(), b".", t].concat();
        prop_assert_eq!(c.compare(&with(&a), &with(&b)), c.compare(&a, &b));
    }

    #[test]
    fn like_is_the_naive_evaluator(c in any_utf8_collation(), t in "[aAb é]{0,8}", p in pattern()) {
        let (Ok(p), t) = (String::from_utf8(p), t) else { return Ok(()) };
        let (text, pattern) = (t.chars().collect::<Vec<_>>(), p.chars().collect::<Vec<_>>());
        prop_assert_eq!(c.like(t.as_bytes(), p.as_bytes(), Some('\\')), naive_like(c, &text, &pattern));
    }

    #[test]
    fn what_is_like_a_pattern_has_its_prefix_in_its_key(c in any_collation(), t in text(), p in pattern()) {
        let mut literal = Vec::new();
        let kind = c.like_prefix(&p, Some('\\'), &mut literal);
        let mut prefix = Vec::new();
        c.sort_key_prefix(&literal, &mut prefix);
        let begins = [&literal[..], &t[..]].concat();
        prop_assert!(key(c, &begins).starts_with(&prefix) || c.charset.is_valid(&begins).is_err());
        for text in [begins, t] {
            if c.like(&text, &p, Some('\\')) {
                prop_assert!(key(c, &text).starts_with(&prefix));
            } else if kind == LikePrefix::Begins && c.charset.is_valid(&text).is_ok() && c.charset.is_valid(&literal).is_ok() {
                prop_assert!(!text.starts_with(&literal));
            }
        }
    }

    #[test]
    fn bytes_of_no_character_do_no_harm(c in any_collation(), s in vec(any::<u8>(), 0..40), n in 0..10_usize) {
        let mut out = Vec::new();
        c.reverse(&s, &mut out);
        prop_assert_eq!(out.len(), s.len());
        c.lower(&s, &mut out);
        c.upper(&s, &mut out);
        c.weight_string(&s, &mut out);
        prop_assert_eq!(c.char_len(&s), (0..).take_while(|&i| c.char_prefix(&s, i).len() < s.len()).count());
        prop_assert!(c.char_len(c.char_prefix(&s, n)) <= n.max(c.char_len(&s).min(n)));
        prop_assert!(c.is_valid(c.well_formed_prefix(&s)).is_ok());
        prop_assert!(c.is_valid(&s).is_ok() || c.charset.step(&s[c.well_formed_prefix(&s).len()..]) == 1);
        c.like(&s, b"%a%_", Some('\\'));
        let at = c.position(&s, &s[s.len() / 2..], 0);
        prop_assert!(at.is_none_or(|at| at <= s.len()));
    }
}

#[test]
fn like_takes_no_exponential_time() {
    let text = b"a".repeat(3000);
    let pattern = b"%a".repeat(40);
    for c in Collation::all()
        .iter()
        .filter(|c| c.charset.is_ascii_compatible())
    {
        assert!(c.like(&text, &pattern, Some('\\')));
        assert!(!c.like(&text, &[&pattern[..], b"b"].concat(), Some('\\')));
    }
}

#[test]
fn conversion_counts_what_is_lost() {
    use crate::charset::{self, ASCII, LATIN1, UTF8MB3, UTF8MB4};
    let count = |from, to, s: &[u8]| {
        let mut out = b"x".to_vec();
        let lost = charset::convert(from, to, s, &mut out);
        (String::from_utf8_lossy(&out).into_owned(), lost)
    };
    assert_eq!(
        count(&UTF8MB4, &ASCII, "aé😀b".as_bytes()),
        ("xa??b".into(), 2)
    );
    assert_eq!(
        count(&UTF8MB4, &UTF8MB3, "é😀b".as_bytes()),
        ("xé?b".into(), 1)
    );
    assert_eq!(count(&LATIN1, &UTF8MB4, b"\xE9\x80"), ("xé€".into(), 0));
    assert_eq!(count(&UTF8MB4, &LATIN1, b"a\xC3"), ("xa?".into(), 1));
    assert_eq!(count(&UTF8MB3, &UTF8MB4, "é".as_bytes()), ("xé".into(), 0));
}
