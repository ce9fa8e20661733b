//! LOWER and UPPER: one character to one character, as in MySQL ('ß' stays what it is). Where the result is longer in
//! bytes than the source ('Ⱥ'), MySQL cuts the string off at that character; here it is whole.

use super::tables::{ASCII_LOWER, ASCII_UPPER, LATIN1_LOWER, LATIN1_UPPER};
use super::tables::{CASE_0520, CASE_0900, CASE_GENERAL, CaseTable, Trie};
use crate::charset::Charset;

/// Where a collation has its case mapping from.
#[derive(Copy, Clone, Debug)]
pub(super) enum CaseMap {
    /// `binary` has no letters.
    None,
    Latin1,
    Ascii,
    /// The older Unicode mapping of general_ci, unicode_ci and utf8mb4_bin.
    General,
    /// That mapping, but for 'I' with 'ı' and 'İ' with 'i'.
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
        CaseMap::Turkish => turkish(
            s,
            b'I',
            "ı",
            |s, out| lower(CaseMap::General, charset, s, out),
            out,
        ),
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
        CaseMap::Turkish => turkish(
            s,
            b'i',
            "İ",
            |s, out| upper(CaseMap::General, charset, s, out),
            out,
        ),
        CaseMap::General | CaseMap::Uca0520 | CaseMap::Uca0900 => {
            convert(&table(map).upper, u8::to_ascii_uppercase, charset, s, out)
        }
    }
}

/// Appends `s` with `to` for each `from`, and the other characters as `convert` maps them.
fn turkish(s: &[u8], from: u8, to: &str, convert: impl Fn(&[u8], &mut Vec<u8>), out: &mut Vec<u8>) {
    for (i, part) in s.split(|&b| b == from).enumerate() {
        if i > 0 {
            out.extend_from_slice(to.as_bytes());
        }
        convert(part, out);
    }
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
        if first.is_ascii() {
            out.push(ascii(first));
            rest = &rest[1..];
            continue;
        }
        let (c, len) = match charset.decode(rest) {
            Some((c, len)) => (Some(c), len),
            None => (None, 1),
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
