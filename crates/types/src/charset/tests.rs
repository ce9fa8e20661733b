//! Every character of every set.

use super::*;

/// Strings of one and two bytes, and those of three that 0x8F begins.
fn short_strings() -> impl Iterator<Item = Vec<u8>> {
    let one = (0..=0xFF_u8).map(|b| vec![b]);
    let two = (0x8000..=0xFFFF_u16).map(|n| n.to_be_bytes().to_vec());
    let three = (0x8000..=0xFFFF_u16).map(|n| [&[0x8F][..], &n.to_be_bytes()].concat());
    one.chain(two).chain(three)
}

#[test]
fn characters_survive_encoding() {
    for set in ALL.into_iter().filter(|set| !set.is_unicode()) {
        let mut chars = 0;
        for bytes in short_strings() {
            let Some((c, len)) = set.decode(&bytes) else {
                continue;
            };
            if len < bytes.len() {
                continue;
            }
            let mut encoded = Vec::new();
            assert!(set.encode(c, &mut encoded), "{} {bytes:X?}", set.name);
            assert_eq!(
                set.decode(&encoded),
                Some((c, encoded.len())),
                "{}",
                set.name
            );
            assert!(set.is_valid(&bytes).is_ok());
            chars += 1;
        }
        assert!(chars >= 117, "{} has {chars} characters", set.name);
    }
}

#[test]
fn unicode_survives_encoding() {
    for set in [&UTF8MB4, &UTF16, &UTF16LE, &UTF32, &GB18030] {
        for c in '\0'..='\u{10FFFF}' {
            let mut encoded = Vec::new();
            assert!(set.encode(c, &mut encoded), "{} {c:?}", set.name);
            let decoded = set.decode(&encoded);
            assert_eq!(decoded, Some((c, encoded.len())), "{} {c:?}", set.name);
        }
    }
    assert!(!UCS2.encode('\u{10000}', &mut Vec::new()));
}

#[test]
fn ascii_is_the_same_in_compatible_sets() {
    for set in ALL {
        let same = (0..0x80_u8).all(|b| set.decode(&[b]) == Some((char::from(b), 1)));
        assert_eq!(same, set.is_ascii_compatible(), "{}", set.name);
    }
}

#[test]
fn boundaries_are_not_inside_characters() {
    let text = b"a\x83\x5C\\b";
    let boundaries = |set: &Charset| (0..=5).filter(|at| set.is_boundary(text, *at)).collect();
    let sjis: Vec<usize> = boundaries(&SJIS);
    assert_eq!(sjis, [0, 1, 3, 4, 5]);
    let latin1: Vec<usize> = boundaries(&LATIN1);
    assert_eq!(latin1, [0, 1, 2, 3, 4, 5]);
    let wide: Vec<usize> = (0..=6)
        .filter(|at| UTF16.is_boundary(b"\0a\xD8\x3D\xDE\0", *at))
        .collect();
    assert_eq!(wide, [0, 2, 6]);
    assert!(!GBK.keeps_ascii_apart() && UJIS.keeps_ascii_apart() && UTF8MB4.keeps_ascii_apart());
}
