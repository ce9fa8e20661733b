//! Collations against what a MySQL server answered (`fixtures/`, written by
//! `tools/collations/record.py`; another folder of such files is read when NFOLD_COLLATION_FIXTURES
//! names one), and against themselves. `fixtures/added/` has the collations that came later.

use super::*;
use crate::charset;
use crate::charset::coded::CodedSet;

#[test]
fn lists_are_sorted_and_consistent() {
    assert!(ALL.is_sorted_by_key(|c| c.id));
    for c in Collation::all() {
        assert_eq!(c.id.get(), Some(c));
        assert_eq!(Collation::by_name(&c.name.to_uppercase()), Some(c));
        assert!(c.name == "binary" || c.name.starts_with(&format!("{}_", c.charset.name)));
        assert_eq!(c.is_default, c.charset.default_collation == c.id);
        assert_eq!(c.is_binary(), c.name.ends_with("bin") || c.name == "binary");
        assert_eq!(c.charset.binary_collation.known().charset, c.charset);
    }
    assert_eq!(
        Collation::by_name("utf8_general_ci").map(|c| c.id),
        Some(CollationId(33))
    );
    assert_eq!(CollationId(17).get(), None);
}

fn unhex(s: &str) -> Vec<u8> {
    (0..s.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&s[i..i + 2], 16).unwrap())
        .collect()
}

fn hex(s: &[u8]) -> String {
    s.iter().map(|b| format!("{b:02X}")).collect()
}

/// Runs `check` on the fields of each line of a fixture; reports the first lines on which it gives
/// another answer than the one recorded. `check` returns what was expected and what came out.
fn replay(file: &str, least: usize, check: impl Fn(&[&str]) -> (String, String)) {
    let dir = std::env::var("NFOLD_COLLATION_FIXTURES")
        .unwrap_or(concat!(env!("CARGO_MANIFEST_DIR"), "/src/collation/fixtures").into());
    let mut text = std::fs::read_to_string(format!("{dir}/{file}")).unwrap();
    text += &std::fs::read_to_string(format!("{dir}/added/{file}")).unwrap_or_default();
    let (mut lines, mut wrong) = (0, Vec::new());
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        lines += 1;
        let (expected, got) = check(&line.split('\t').collect::<Vec<_>>());
        if expected != got {
            wrong.push(format!("{line}\n      got {got}"));
        }
    }
    assert!(lines >= least, "{file} has only {lines} lines");
    assert!(
        wrong.is_empty(),
        "{} of {lines} wrong:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
}

fn named(name: &str) -> &'static Collation {
    Collation::by_name(name).unwrap()
}

fn into(f: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    f(&mut out);
    out
}

#[test]
fn weight_strings_are_the_servers() {
    replay("weights.tsv", 1000, |f| {
        let got = into(|out| named(f[0]).weight_string(&unhex(f[1]), out));
        (f[2].into(), hex(&got))
    });
}

#[test]
fn comparisons_are_the_servers_and_keys_and_hashes_agree() {
    replay("compare.tsv", 1000, |f| {
        let (c, a, b) = (named(f[0]), unhex(f[1]), unhex(f[2]));
        let order = c.compare(&a, &b);
        assert_eq!(c.compare(&b, &a), order.reverse(), "{f:?}");
        let key = |s: &[u8]| into(|out| c.sort_key(s, out));
        assert_eq!(
            key(&a).cmp(&key(&b)),
            order,
            "{f:?}: {} {}",
            hex(&key(&a)),
            hex(&key(&b))
        );
        assert_eq!(c.eq(&a, &b), order.is_eq());
        assert_eq!(c.hash64(&a) == c.hash64(&b), order.is_eq(), "{f:?}");
        (f[3].into(), (order as i8).to_string())
    });
}

#[test]
fn like_is_the_servers() {
    replay("like.tsv", 1000, |f| {
        let escape = f[3].chars().next();
        let got = named(f[0]).like(&unhex(f[1]), &unhex(f[2]), escape);
        (f[4].into(), u8::from(got).to_string())
    });
}

#[test]
fn locate_is_the_servers() {
    replay("locate.tsv", 1000, |f| {
        let (c, hay, needle) = (named(f[0]), unhex(f[1]), unhex(f[2]));
        let got = c
            .position(&hay, &needle, 0)
            .map_or(0, |at| c.char_len(&hay[..at]) + 1);
        (f[3].into(), got.to_string())
    });
}

#[test]
fn case_reverse_and_lengths_are_the_servers() {
    replay("case.tsv", 1000, |f| {
        let (c, s) = (named(f[0]), unhex(f[1]));
        let got = [
            hex(&into(|out| c.lower(&s, out))),
            hex(&into(|out| c.upper(&s, out))),
            hex(&into(|out| c.reverse(&s, out))),
            hex(c.char_prefix(&s, 2)),
            c.char_len(&s).to_string(),
        ];
        (f[2..].join(" "), got.join(" "))
    });
}

#[test]
fn conversions_are_the_servers() {
    replay("convert.tsv", 1000, |f| {
        let set = |name| Charset::by_name(name).unwrap();
        let got = into(|out| {
            charset::convert(set(f[0]), set(f[1]), &unhex(f[2]), out);
        });
        (f[3].into(), hex(&got))
    });
}

/// Whether this is a collation that no language tailors, and of the encoding that it compares.
fn is_first(c: &Collation) -> bool {
    !matches!(c.kind, Algorithm::Tailored(_) | Algorithm::Mapped(_))
}

/// Every character, and a malformed byte; of the ideographs and beyond, every 97th if there are
/// many collations like this one.
fn all_chars(c: &Collation) -> impl Iterator<Item = Vec<u8>> {
    let mut first = vec![b"\xFF".to_vec()];
    let is_unicode = c.charset.wide().is_some() || c.charset.max_len == 4;
    if is_unicode && !c.charset.is_utf8() {
        let all = ('\0'..='\u{10FFFF}').step_by(97);
        first = all
            .filter_map(|ch| {
                let mut bytes = Vec::new();
                c.charset.encode(ch, &mut bytes).then_some(bytes)
            })
            .collect();
    } else if !c.charset.is_utf8() {
        first = (0..=255).map(|b| vec![b]).collect();
    }
    if c.charset.coded().is_some() {
        let two = |n: u16| n.to_be_bytes().to_vec();
        first.extend((0x8000..=0xFFFF).map(two));
        first.extend(
            (0xA1A1..=0xFFFF)
                .step_by(97)
                .map(|n| [&[0x8F], &two(n)[..]].concat()),
        );
    }
    let last = match c.charset.max_len {
        _ if !c.charset.is_utf8() => '\0',
        4 => '\u{10FFFF}',
        3 => '\u{FFFF}',
        _ => '\0',
    };
    let few = !is_first(c);
    let wide = c.charset.is_wide();
    let some = move |ch: &char| {
        let listed = !few || *ch < '\u{3400}' || u32::from(*ch) % 97 == 0;
        listed && !wide
    };
    first.into_iter().chain(
        ('\0'..=last)
            .filter(some)
            .map(|ch| ch.to_string().into_bytes()),
    )
}

#[test]
fn no_key_is_longer_than_announced() {
    for c in Collation::all() {
        let len = |s: &[u8]| into(|out| c.sort_key(s, out)).len();
        let (one, none) = (c.max_sort_key_len(1), c.max_sort_key_len(0));
        // What a character adds in front of one that has weights of every level, so that nothing is
        // left out at the end.
        let mut tail = Vec::new();
        let letter = if c.charset.encode('Á', &mut tail) {
            'Á'
        } else {
            'A'
        };
        tail.clear();
        c.charset.encode(letter, &mut tail);
        let added = |s: &[u8]| len(&[s, &tail[..]].concat()) - len(&tail);
        // Malformed bytes of gb18030 may form characters with the bytes behind them.
        let joins = c.charset.coded().is_some_and(CodedSet::has_four_bytes);
        let is_alone = |s: &Vec<u8>| !joins || c.is_valid(s).is_ok();
        let chars = all_chars(c).filter(is_alone);
        let longest = chars.map(|s| added(&s)).max().unwrap();
        if is_first(c) {
            assert_eq!(longest, one - none, "{}", c.name);
            assert_eq!(len(b""), none);
        }
        assert!(longest <= one - none && len(b"") <= none, "{}", c.name);
        // A run of spaces may take as much as two characters.
        assert!(len(&b"a ".repeat(100)) <= c.max_sort_key_len(200));
    }
}

/// Indexes on disk hold sort keys: a change of these sums is a change of the format.
#[test]
fn keys_are_frozen() {
    let sums = Collation::all().iter().map(|c| {
        let mut sum = 0_u64;
        let mut key = Vec::new();
        // Contractions, and what looks like them.
        let joined = "chCHcHllnjǆdžddzsaaAAāīcscsz\u{307}\u{300}カーかゝヾm\u{300}";
        let encoded = |text: &str| {
            let mut out = Vec::new();
            for ch in text.chars() {
                c.charset.encode(ch, &mut out);
            }
            out
        };
        let joined = (!is_first(c)).then(|| match c.charset.is_wide() {
            true => encoded(joined),
            false => joined.as_bytes().to_vec(),
        });
        let (before, between, after) = (encoded("a "), encoded("  b "), encoded(" "));
        for s in all_chars(c).chain(joined) {
            key.clear();
            c.sort_key(&[&before[..], &s, &between, &s, &after].concat(), &mut key);
            sum = key.iter().fold(sum.rotate_left(1), |h, &b| {
                (h ^ u64::from(b)).wrapping_mul(0x100_0000_01B3)
            });
        }
        format!("{} {sum:016x}", c.name)
    });
    let frozen = include_str!("fixtures/keys.txt");
    assert_eq!(sums.collect::<Vec<_>>(), frozen.lines().collect::<Vec<_>>());
}

#[test]
fn long_strings_compare_as_short_ones() {
    let endings: [&[u8]; 9] = [
        b"",
        b"a",
        b"A",
        b"b   ",
        "\u{e9}".as_bytes(),
        "e\u{301}".as_bytes(),
        b"ch",
        b"\xC3",
        "\u{e9}\u{e9}A ".as_bytes(),
    ];
    // Those of a language in wide units are compared as in UTF-8.
    let is_listed = |c: &&Collation| {
        let base = ["_general_ci", "_bin", "_unicode_ci"];
        !c.charset.is_wide() || base.iter().any(|end| c.name.ends_with(end))
    };
    for collation in Collation::all().iter().filter(is_listed) {
        for (unit, times) in [("x", 70_000), ("\u{e4}", 40_000), ("ch ", 30_000)] {
            let prefix = unit.repeat(times).into_bytes();
            for a in endings {
                for b in endings {
                    let long = |end| [&prefix[..], end].concat();
                    let (a, b) = (long(a), long(b));
                    let mut looks = 0;
                    let watched = collation.compare_stoppable(&a, &b, &mut |_| {
                        looks += 1;
                        true
                    });
                    assert_eq!(watched, collation.compare(&a, &b), "{collation:?} {unit}");
                    assert!(looks > 0, "{collation:?}");
                }
            }
        }
    }
}

#[test]
fn long_comparison_sees_whole_characters() {
    // U+FF5E, and U+1F600 as a surrogate pair: the second is greater, its first byte is not.
    let bmp = [0xFF, 0x5E];
    let pair = [0xD8, 0x3D, 0xDE, 0x00];
    let prefix = [0x00, 0x61].repeat(50_000);
    let long = |end: &[u8]| [&prefix[..], end].concat();
    for name in ["utf16_bin", "utf16_general_ci"] {
        let collation = Collation::by_name(name).unwrap();
        for (a, b) in [
            (&bmp[..], &pair[..]),
            (&pair, &bmp),
            (&[0x01, 0x41], &[0x01, 0x61]),
        ] {
            let watched = collation.compare_stoppable(&long(a), &long(b), &mut |_| true);
            assert_eq!(watched, collation.compare(a, b), "{name}");
        }
    }
    // Two bytes of one character, which the first of them begins.
    let gbk = Collation::by_name("gbk_bin").unwrap();
    let prefix = [0xB0, 0xA1].repeat(40_000);
    let long = |end: &[u8]| [&prefix[..], end].concat();
    let watched = gbk.compare_stoppable(&long(b"\xB0\x41"), &long(b"\xB0\xA1"), &mut |_| true);
    assert_eq!(watched, gbk.compare(b"\xB0\x41", b"\xB0\xA1"));
}

#[test]
fn long_comparison_gives_up() {
    // Equal at every level but by bytes, so that each character is looked at.
    let (a, b) = ("\u{e4}".repeat(200_000), "\u{c4}".repeat(200_000));
    for collation in Collation::all() {
        let mut looks = 0;
        collation.compare_stoppable(a.as_bytes(), b.as_bytes(), &mut |_| {
            looks += 1;
            looks < 3
        });
        assert!(looks <= 3, "{collation:?}");
    }
}

#[test]
fn like_looks_while_it_searches() {
    for name in [
        "utf8mb4_0900_ai_ci",
        "utf8mb4_bin",
        "latin1_swedish_ci",
        "binary",
    ] {
        let collation = Collation::by_name(name).unwrap();
        let text = "ab".repeat(200_000);
        for (pattern, expected) in [("%a%b%c", false), ("%a%c", false), ("%b%a%b", true)] {
            let mut work = 0;
            let like = |goes_on: GoesOn<'_>| {
                collation.like_stoppable(text.as_bytes(), pattern.as_bytes(), None, goes_on)
            };
            let found = like(&mut |more| {
                assert!(more < 100_000, "{name} {pattern}");
                work += more;
                true
            });
            assert_eq!(found, expected, "{name} {pattern}");
            assert!(expected || work >= 350_000, "{name} {pattern}: {work}");
        }
    }
}
