//! LOWER and UPPER: maps one character to one character, as MySQL does ('ß' stays unchanged). If
//! the result has more bytes than the source ('Ⱥ'), MySQL truncates the string at that character;
//! here it is complete.

use super::orders::Cased;
use super::tables::{ASCII_LOWER, ASCII_UPPER, LATIN1_LOWER, LATIN1_UPPER};
use super::tables::{CASE_0520, CASE_0900, CASE_GENERAL, CaseTable, Trie};
use crate::charset::Charset;
use crate::charset::coded::CodedSet;
use crate::charset::single::SingleSet;

/// The source of a collation's case mapping.
#[derive(Copy, Clone)]
pub(super) enum CaseMap {
    /// `binary` has no letters.
    None,
    Latin1,
    Ascii,
    /// A single-byte set with a table.
    Single(&'static SingleSet),
    /// A single-byte collation with a table of its own.
    Own(&'static Cased),
    Coded(&'static CodedSet),
    /// The older Unicode mapping of general_ci, unicode_ci and utf8mb4_bin.
    General,
    /// As `General`, but with 'I' and 'ı', and 'İ' and 'i', as pairs.
    Turkish,
    /// Unicode 5.2.
    Uca0520,
    /// Unicode 9.0.
    Uca0900,
}

/// Appends `s` in lower case.
pub(super) fn lower(map: CaseMap, charset: &Charset, s: &[u8], out: &mut Vec<u8>) {
    match map {
        CaseMap::None => out.extend_from_slice(s),
        CaseMap::Latin1 => out.extend(s.iter().map(|&b| LATIN1_LOWER[usize::from(b)])),
        CaseMap::Ascii => out.extend(s.iter().map(|&b| ASCII_LOWER[usize::from(b)])),
        CaseMap::Single(set) => out.extend(s.iter().map(|&b| set.lower[usize::from(b)])),
        CaseMap::Own(own) => out.extend(s.iter().map(|&b| own.lower[usize::from(b)])),
        CaseMap::Coded(set) => set.convert_case(s, false, out),
        CaseMap::Turkish => turkish(charset, s, 'I', 'ı', out, |s, out| {
            lower(CaseMap::General, charset, s, out)
        }),
        CaseMap::General | CaseMap::Uca0520 | CaseMap::Uca0900 => {
            convert(&table(map).lower, u8::to_ascii_lowercase, charset, s, out)
        }
    }
}

/// Appends `s` in upper case.
pub(super) fn upper(map: CaseMap, charset: &Charset, s: &[u8], out: &mut Vec<u8>) {
    match map {
        CaseMap::None => out.extend_from_slice(s),
        CaseMap::Latin1 => out.extend(s.iter().map(|&b| LATIN1_UPPER[usize::from(b)])),
        CaseMap::Ascii => out.extend(s.iter().map(|&b| ASCII_UPPER[usize::from(b)])),
        CaseMap::Single(set) => out.extend(s.iter().map(|&b| set.upper[usize::from(b)])),
        CaseMap::Own(own) => out.extend(s.iter().map(|&b| own.upper[usize::from(b)])),
        CaseMap::Coded(set) => set.convert_case(s, true, out),
        CaseMap::Turkish => turkish(charset, s, 'i', 'İ', out, |s, out| {
            upper(CaseMap::General, charset, s, out)
        }),
        CaseMap::General | CaseMap::Uca0520 | CaseMap::Uca0900 => {
            convert(&table(map).upper, u8::to_ascii_uppercase, charset, s, out)
        }
    }
}

/// Appends `s` with `from` replaced by `to`; other characters are mapped by `convert`.
fn turkish(
    charset: &Charset,
    s: &[u8],
    from: char,
    to: char,
    out: &mut Vec<u8>,
    convert: impl Fn(&[u8], &mut Vec<u8>),
) {
    let (mut start, mut at) = (0, 0);
    while at < s.len() {
        let len = charset.step(&s[at..]);
        if charset.decode(&s[at..]) == Some((from, len)) {
            convert(&s[start..at], out);
            charset.encode(to, out);
            start = at + len;
        }
        at += len;
    }
    convert(&s[start..], out);
}

fn table(map: CaseMap) -> &'static CaseTable {
    match map {
        CaseMap::Uca0520 => &CASE_0520,
        CaseMap::Uca0900 => &CASE_0900,
        _ => &CASE_GENERAL,
    }
}

fn convert(
    deltas: &Trie<i32>,
    ascii: impl Fn(&u8) -> u8,
    charset: &Charset,
    s: &[u8],
    out: &mut Vec<u8>,
) {
    out.reserve(s.len());
    let mut rest = s;
    while let Some(first) = rest.first() {
        if first.is_ascii() && charset.is_ascii_compatible() {
            out.push(ascii(first));
            rest = &rest[1..];
            continue;
        }
        let (c, len) = match charset.decode(rest) {
            Some((c, len)) => (Some(c), len),
            None => (None, charset.step(rest)),
        };
        let mapped = c.and_then(|c| {
            let delta = deltas.get(u32::from(c)).filter(|&d| d != 0)?;
            char::from_u32(u32::from(c).wrapping_add_signed(delta))
        });
        match mapped {
            Some(c) if charset.encode(c, out) => {}
            _ => out.extend_from_slice(&rest[..len]),
        }
        rest = &rest[len..];
    }
}
