//! Character sets: how bytes form characters, and conversion between sets.
//!
//! This file has utf8mb4, utf8mb3, latin1 (which in MySQL is Windows code page 1252), ascii and
//! binary; `sets.rs` has the others. Malformed input never panics: a byte that starts no character
//! counts as a character of its own, as in MySQL.

mod ascii;
pub(crate) mod coded;

mod gb18030;
pub(crate) mod sets;
pub(crate) mod single;
pub(crate) mod wide;

use crate::collation_id::CollationId;
use crate::error::{ErrorCode, SqlError};
pub use ascii::is_ascii;
use coded::CodedSet;
use sets::*;
use single::SingleSet;
use wide::Wide;

/// How the bytes of a set form characters.
#[derive(Copy, Clone, Debug)]
enum Encoding {
    Utf8Mb4,
    Utf8Mb3,
    Latin1,
    Ascii,
    Binary,
    /// One byte, by a table.
    Single(&'static SingleSet),
    /// One to four bytes, by tables.
    Coded(&'static CodedSet),
    Wide(Wide),
}

/// The end of ASCII, for the sets whose bytes below it are ASCII characters.
const ASCII_END: u8 = 0x80;

/// One of MySQL's character sets. Compare by `name`; each exists once.
#[derive(Debug)]
pub struct Charset {
    /// MySQL's name, in lower case (`utf8mb4`).
    pub name: &'static str,
    /// MySQL's text in `SHOW CHARACTER SET`.
    pub description: &'static str,
    /// The default collation of the set.
    pub default_collation: CollationId,
    /// The set's collation that compares code points.
    pub binary_collation: CollationId,
    /// Longest character, in bytes.
    pub max_len: u8,
    /// Shortest character, in bytes.
    pub min_len: u8,
    /// Bytes below this value are ASCII characters: 0x80, or 0 if ASCII text is encoded
    /// differently.
    ascii_end: u8,
    encoding: Encoding,
}

/// UTF-8 of up to four bytes: all of Unicode.
pub static UTF8MB4: Charset = Charset {
    name: "utf8mb4",
    description: "UTF-8 Unicode",
    default_collation: CollationId::UTF8MB4_0900_AI_CI,
    binary_collation: CollationId::UTF8MB4_BIN,
    max_len: 4,
    min_len: 1,
    ascii_end: ASCII_END,
    encoding: Encoding::Utf8Mb4,
};
/// UTF-8 of up to three bytes: the Basic Multilingual Plane. Also called `utf8`.
pub static UTF8MB3: Charset = Charset {
    name: "utf8mb3",
    description: "UTF-8 Unicode",
    default_collation: CollationId::UTF8MB3_GENERAL_CI,
    binary_collation: CollationId::UTF8MB3_BIN,
    max_len: 3,
    min_len: 1,
    ascii_end: ASCII_END,
    encoding: Encoding::Utf8Mb3,
};
/// MySQL's latin1: code page 1252, its five holes filled with the C1 controls of the same number.
pub static LATIN1: Charset = Charset {
    name: "latin1",
    description: "cp1252 West European",
    default_collation: CollationId::LATIN1_SWEDISH_CI,
    binary_collation: CollationId::LATIN1_BIN,
    max_len: 1,
    min_len: 1,
    ascii_end: ASCII_END,
    encoding: Encoding::Latin1,
};
/// US ASCII; bytes from 0x80 up are not characters of it.
pub static ASCII: Charset = Charset {
    name: "ascii",
    description: "US ASCII",
    default_collation: CollationId::ASCII_GENERAL_CI,
    binary_collation: CollationId::ASCII_BIN,
    max_len: 1,
    min_len: 1,
    ascii_end: ASCII_END,
    encoding: Encoding::Ascii,
};
/// Binary strings.
pub static BINARY: Charset = Charset {
    name: "binary",
    description: "Binary pseudo charset",
    default_collation: CollationId::BINARY,
    binary_collation: CollationId::BINARY,
    max_len: 1,
    min_len: 1,
    ascii_end: ASCII_END,
    encoding: Encoding::Binary,
};

/// Every character set, sorted by name.
#[rustfmt::skip]
pub static ALL: [&Charset; 41] = [
    &ARMSCII8, &ASCII, &BIG5, &BINARY, &CP1250, &CP1251, &CP1256, &CP1257, &CP850, &CP852, &CP866, &CP932, &DEC8, &EUCJPMS,
    &EUCKR, &GB18030, &GB2312, &GBK, &GEOSTD8, &GREEK, &HEBREW, &HP8, &KEYBCS2, &KOI8R, &KOI8U, &LATIN1, &LATIN2, &LATIN5,
    &LATIN7, &MACCE, &MACROMAN, &SJIS, &SWE7, &TIS620, &UCS2, &UJIS, &UTF16, &UTF16LE, &UTF32,
    &UTF8MB3, &UTF8MB4,
];

/// Code points of latin1 bytes 0x80 to 0x9F (the others are equal to their byte).
const CP1252_C1: [u16; 32] = [
    0x20AC, 0x0081, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160, 0x2039,
    0x0152, 0x008D, 0x017D, 0x008F, 0x0090, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
    0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x009D, 0x017E, 0x0178,
];

impl PartialEq for Charset {
    fn eq(&self, other: &Charset) -> bool {
        std::ptr::eq(self, other)
    }
}
impl Eq for Charset {}

impl Charset {
    /// The set of that name, in any case; `utf8` is utf8mb3.
    pub fn by_name(name: &str) -> Option<&'static Charset> {
        if name.eq_ignore_ascii_case("utf8") {
            return Some(&UTF8MB3);
        }
        ALL.into_iter().find(|c| c.name.eq_ignore_ascii_case(name))
    }

    /// Whether a character may take more than one byte.
    #[inline]
    pub fn is_multi_byte(&self) -> bool {
        self.max_len > 1
    }

    /// Whether this is the set `binary`.
    #[inline]
    pub fn is_binary(&self) -> bool {
        matches!(self.encoding, Encoding::Binary)
    }

    /// Whether the set is one of the two UTF-8 sets.
    #[inline]
    pub fn is_utf8(&self) -> bool {
        matches!(self.encoding, Encoding::Utf8Mb4 | Encoding::Utf8Mb3)
    }

    /// Whether ASCII text has the same bytes in this set.
    #[inline]
    pub fn is_ascii_compatible(&self) -> bool {
        self.ascii_end == ASCII_END
    }

    /// Whether `bytes` are ASCII text, which has the same bytes in every compatible set.
    #[inline]
    pub fn is_ascii(&self, bytes: &[u8]) -> bool {
        self.is_ascii_compatible() && is_ascii(bytes)
    }

    /// Whether the set is one of Unicode's.
    #[inline]
    pub fn is_unicode(&self) -> bool {
        self.is_utf8() || self.wide().is_some()
    }

    /// Whether MySQL converts text of other Unicode sets to this one implicitly.
    pub fn takes_all_unicode(&self) -> bool {
        matches!(
            self.encoding,
            Encoding::Utf8Mb4 | Encoding::Wide(Wide::Utf32)
        )
    }

    /// Whether ASCII characters have more than one byte. Clients may not send statements in such a
    /// set.
    #[inline]
    pub fn is_wide(&self) -> bool {
        self.min_len > 1
    }

    /// Whether the bytes of ASCII characters are those characters everywhere: no character of
    /// several bytes contains one.
    pub fn keeps_ascii_apart(&self) -> bool {
        !self.is_wide() && !self.coded().is_some_and(CodedSet::hides_backslash)
    }

    /// The bytes of the space.
    pub fn space(&self) -> &'static [u8] {
        match self.encoding {
            Encoding::Wide(Wide::Utf16Le) => b" \0",
            Encoding::Wide(Wide::Utf32) => b"\0\0\0 ",
            Encoding::Wide(_) => b"\0 ",
            _ => b" ",
        }
    }

    /// `bytes` without the spaces at their end.
    #[inline]
    pub fn trim_end<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        if !self.is_wide() {
            let spaces = bytes.iter().rev().take_while(|b| **b == b' ').count();
            return &bytes[..bytes.len() - spaces];
        }
        let (mut rest, space) = (bytes, self.space());
        while rest.len().is_multiple_of(space.len())
            && let Some(before) = rest.strip_suffix(space)
        {
            rest = before;
        }
        rest
    }

    /// How many bytes `len` bytes of binary text lack to fill the first code unit.
    pub fn missing_bytes(&self, len: usize) -> usize {
        len.next_multiple_of(usize::from(self.min_len)) - len
    }

    /// Whether byte `at`, where a byte search has found a match, is the start of a character or the
    /// end of the text. In most sets this is always so.
    pub fn is_boundary(&self, text: &[u8], at: usize) -> bool {
        if let Some(wide) = self.wide() {
            return wide.is_boundary(text, at);
        }
        let Some(set) = self.coded() else {
            return true;
        };
        // Bytes below 0x30 are never part of a multi-byte character.
        let certain = text[..at].iter().rposition(|b| *b < 0x30);
        let mut start = certain.map_or(0, |before| before + 1);
        while start < at {
            start += set.len(&text[start..]).unwrap_or(1);
        }
        start == at
    }

    /// The tables of a set of one byte.
    pub(crate) const fn single(&self) -> Option<&'static SingleSet> {
        match self.encoding {
            Encoding::Single(set) => Some(set),
            _ => None,
        }
    }

    /// The encoding of a set of wide units.
    pub(crate) const fn wide(&self) -> Option<Wide> {
        match self.encoding {
            Encoding::Wide(wide) => Some(wide),
            _ => None,
        }
    }

    /// The tables of an East Asian set.
    pub(crate) const fn coded(&self) -> Option<&'static CodedSet> {
        match self.encoding {
            Encoding::Coded(set) => Some(set),
            _ => None,
        }
    }

    /// The first character and its length in bytes; `None` when `bytes` is empty or starts with no
    /// character. A byte of `binary` is the code point of the same number.
    #[inline]
    pub fn decode(&self, bytes: &[u8]) -> Option<(char, usize)> {
        let &first = bytes.first()?;
        if first < self.ascii_end {
            return Some((char::from(first), 1));
        }
        match self.encoding {
            Encoding::Utf8Mb4 => decode_multi(bytes),
            Encoding::Utf8Mb3 => decode_multi(bytes).filter(|&(_, len)| len <= 3),
            Encoding::Latin1 => Some((latin1_to_char(first), 1)),
            Encoding::Ascii => None,
            Encoding::Binary => Some((char::from(first), 1)),
            Encoding::Single(set) => set.decode(first).map(|c| (c, 1)),
            Encoding::Coded(set) => set.decode(bytes),
            Encoding::Wide(wide) => wide.decode(bytes),
        }
    }

    /// Length in bytes of the first character, 1 where none starts, 0 when `bytes` is empty.
    #[inline]
    pub fn step(&self, bytes: &[u8]) -> usize {
        match bytes.first() {
            None => 0,
            Some(&b) if b < self.ascii_end || !self.is_multi_byte() => 1,
            Some(_) => match self.encoding {
                // Well-formed characters may have no code point.
                Encoding::Coded(set) => set.len(bytes).unwrap_or(1),
                Encoding::Wide(wide) => wide.len(bytes).unwrap_or(1),
                _ => self.decode(bytes).map_or(1, |(_, len)| len),
            },
        }
    }

    /// Appends `c` in this set. Returns false, and appends nothing, if the set lacks it.
    #[inline]
    pub fn encode(&self, c: char, out: &mut Vec<u8>) -> bool {
        let byte = match self.encoding {
            Encoding::Utf8Mb3 if c > '\u{FFFF}' => return false,
            Encoding::Utf8Mb4 | Encoding::Utf8Mb3 => {
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                return true;
            }
            Encoding::Latin1 => char_to_latin1(c),
            Encoding::Ascii => u8::try_from(c).ok().filter(u8::is_ascii),
            Encoding::Binary => u8::try_from(u32::from(c)).ok(),
            Encoding::Single(set) => set.encode(c),
            Encoding::Coded(set) => return set.encode(c, out),
            Encoding::Wide(wide) => return wide.encode(c, out),
        };
        match byte {
            Some(b) => {
                out.push(b);
                true
            }
            None => false,
        }
    }

    /// Number of characters; each byte that belongs to no character counts as one.
    pub fn char_len(&self, bytes: &[u8]) -> usize {
        if !self.is_multi_byte() {
            return bytes.len();
        }
        if let Ok(s) = std::str::from_utf8(bytes)
            && matches!(self.encoding, Encoding::Utf8Mb4)
        {
            return s.chars().count();
        }
        let (mut rest, mut n) = (bytes, 0);
        while !rest.is_empty() {
            rest = &rest[self.step(rest)..];
            n += 1;
        }
        n
    }

    /// Length in bytes of the first `n` characters, or of all if there are fewer.
    pub fn char_prefix_len(&self, bytes: &[u8], n: usize) -> usize {
        // No character is shorter than a byte, so a short string is its own prefix.
        if !self.is_multi_byte() || bytes.len() <= n {
            return bytes.len().min(n);
        }
        // Nearly always: ASCII is one byte each in nearly all sets.
        if self.is_ascii(&bytes[..n]) {
            return n;
        }
        let mut at = 0;
        for _ in 0..n {
            if at == bytes.len() {
                break;
            }
            at += self.step(&bytes[at..]);
        }
        at
    }

    /// The end of a piece of about `len` bytes: between two characters.
    pub fn piece_end(&self, bytes: &[u8], len: usize) -> usize {
        if !self.is_multi_byte() || bytes.len() <= len {
            return bytes.len().min(len);
        }
        if self.is_utf8() {
            let inside = |at: &usize| bytes[*at] & 0xC0 == 0x80;
            // Malformed bytes may be anywhere; no character has more than four.
            let found = (len.saturating_sub(3)..=len).rev().find(|at| !inside(at));
            return found.filter(|at| *at > 0).unwrap_or(len);
        }
        let mut at = 0;
        while at < len {
            at += self.step(&bytes[at..]);
        }
        at
    }

    /// The first `n` characters, or all if there are fewer.
    #[inline]
    pub fn char_prefix<'a>(&self, bytes: &'a [u8], n: usize) -> &'a [u8] {
        &bytes[..self.char_prefix_len(bytes, n)]
    }

    /// Appends the characters in reverse order.
    pub fn reverse(&self, bytes: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + bytes.len(), 0);
        let (mut at, mut end) = (0, out.len());
        while at < bytes.len() {
            let len = self.step(&bytes[at..]);
            out[end - len..end].copy_from_slice(&bytes[at..at + len]);
            at += len;
            end -= len;
        }
    }

    /// Checks that `bytes` are well-formed; the error is the offset of the first byte that is not.
    pub fn is_valid(&self, bytes: &[u8]) -> Result<(), usize> {
        match self.encoding {
            Encoding::Binary | Encoding::Latin1 | Encoding::Single(_) => Ok(()),
            Encoding::Coded(set) => {
                let mut at = 0;
                while at < bytes.len() {
                    at += set.len(&bytes[at..]).ok_or(at)?;
                }
                Ok(())
            }
            Encoding::Wide(wide) => {
                let mut at = 0;
                while at < bytes.len() {
                    at += wide.len(&bytes[at..]).ok_or(at)?;
                }
                Ok(())
            }
            Encoding::Ascii => match bytes.iter().position(|b| !b.is_ascii()) {
                Some(at) => Err(at),
                None => Ok(()),
            },
            Encoding::Utf8Mb4 => match std::str::from_utf8(bytes) {
                Ok(_) => Ok(()),
                Err(e) => Err(e.valid_up_to()),
            },
            Encoding::Utf8Mb3 => {
                let valid = match std::str::from_utf8(bytes) {
                    Ok(_) => bytes.len(),
                    Err(e) => e.valid_up_to(),
                };
                match bytes[..valid].iter().position(|&b| b >= 0xF0) {
                    Some(at) => Err(at),
                    None if valid < bytes.len() => Err(valid),
                    None => Ok(()),
                }
            }
        }
    }

    /// Error 1300 for a text that is malformed from the first byte of `bad` on.
    pub fn malformed(&self, bad: &[u8]) -> SqlError {
        const SHOWN: usize = 3;
        let shown: String = bad.iter().take(SHOWN).map(|b| format!("{b:02X}")).collect();
        let code = ErrorCode::ER_INVALID_CHARACTER_STRING;
        SqlError::new(code, &[&self.name, &shown])
    }

    /// The longest prefix that is well-formed.
    pub fn well_formed_prefix<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        match self.is_valid(bytes) {
            Ok(()) => bytes,
            Err(at) => &bytes[..at],
        }
    }
}

/// Converts `bytes` from one set to another, and returns how many characters became '?', because
/// they were malformed or `to` lacks them. To and from `binary`, bytes are copied unchanged (check
/// them with [`Charset::is_valid`]); the first unit of a wide set is padded with zeros.
pub fn convert(from: &Charset, to: &Charset, bytes: &[u8], out: &mut Vec<u8>) -> usize {
    if from.is_binary() || to.is_binary() || (from.is_ascii(bytes) && to.is_ascii_compatible()) {
        if from.is_binary() {
            out.resize(out.len() + to.missing_bytes(bytes.len()), 0);
        }
        out.extend_from_slice(bytes);
        return 0;
    }
    let same = from == to || (from.is_utf8() && *to == UTF8MB4);
    if same && from.is_valid(bytes).is_ok() {
        out.extend_from_slice(bytes);
        return 0;
    }
    out.reserve(bytes.len());
    let (mut rest, mut lost) = (bytes, 0);
    while !rest.is_empty() {
        match from.decode(rest) {
            Some((c, len)) => {
                if !to.encode(c, out) {
                    to.encode('?', out);
                    lost += 1;
                }
                rest = &rest[len..];
            }
            None => {
                to.encode('?', out);
                lost += 1;
                rest = &rest[from.step(rest)..];
            }
        }
    }
    lost
}

/// Decodes a character of two to four bytes (RFC 3629: shortest form, no surrogates, at most
/// U+10FFFF).
#[inline]
fn decode_multi(b: &[u8]) -> Option<(char, usize)> {
    let cont = |i: usize| {
        b.get(i)
            .filter(|&&x| x & 0xC0 == 0x80)
            .map(|&x| u32::from(x & 0x3F))
    };
    let first = u32::from(b[0]);
    let (cp, len, min) = match b[0] {
        0xC2..=0xDF => ((first & 0x1F) << 6 | cont(1)?, 2, 0x80),
        0xE0..=0xEF => ((first & 0x0F) << 12 | cont(1)? << 6 | cont(2)?, 3, 0x800),
        0xF0..=0xF4 => (
            (first & 0x07) << 18 | cont(1)? << 12 | cont(2)? << 6 | cont(3)?,
            4,
            0x1_0000,
        ),
        _ => return None,
    };
    if cp < min {
        return None;
    }
    char::from_u32(cp).map(|c| (c, len))
}

fn latin1_to_char(b: u8) -> char {
    match b {
        0x80..=0x9F => char::from_u32(u32::from(CP1252_C1[usize::from(b - 0x80)])).unwrap_or('?'),
        _ => char::from(b),
    }
}

fn char_to_latin1(c: char) -> Option<u8> {
    match u32::from(c) {
        cp @ (0..=0x7F | 0xA0..=0xFF) => u8::try_from(cp).ok(),
        cp => CP1252_C1
            .iter()
            .position(|&x| u32::from(x) == cp)
            .and_then(|i| u8::try_from(0x80 + i).ok()),
    }
}

#[cfg(test)]
mod tests;
