//! Collations: how strings of a character set compare, hash, match and fold, with MySQL's ids and names.
//!
//! Everything here works on the bytes as stored, without allocation, and accepts malformed bytes.
#![forbid(unsafe_code)]

use std::cmp::Ordering;
use std::hash::Hasher;

use crate::charset::{self, Charset};

/// MySQL's number of a collation, as in the protocol and in `information_schema.COLLATIONS`.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CollationId(pub u16);

impl CollationId {
    pub const LATIN1_SWEDISH_CI: CollationId = CollationId(8);
    pub const ASCII_GENERAL_CI: CollationId = CollationId(11);
    pub const UTF8MB3_GENERAL_CI: CollationId = CollationId(33);
    pub const UTF8MB4_GENERAL_CI: CollationId = CollationId(45);
    pub const UTF8MB4_BIN: CollationId = CollationId(46);
    pub const LATIN1_BIN: CollationId = CollationId(47);
    pub const LATIN1_GENERAL_CI: CollationId = CollationId(48);
    pub const LATIN1_GENERAL_CS: CollationId = CollationId(49);
    pub const BINARY: CollationId = CollationId(63);
    pub const ASCII_BIN: CollationId = CollationId(65);
    pub const UTF8MB3_BIN: CollationId = CollationId(83);
    pub const UTF8MB3_UNICODE_CI: CollationId = CollationId(192);
    pub const UTF8MB4_UNICODE_CI: CollationId = CollationId(224);
    pub const UTF8MB4_0900_AI_CI: CollationId = CollationId(255);
    pub const UTF8MB4_0900_AS_CS: CollationId = CollationId(278);
    pub const UTF8MB4_0900_AS_CI: CollationId = CollationId(305);
    pub const UTF8MB4_0900_BIN: CollationId = CollationId(309);

    /// The collation of this id, or `None` where it is not supported.
    #[inline]
    pub fn get(self) -> Option<&'static Collation> {
        ALL.binary_search_by_key(&self, |c| c.id)
            .ok()
            .map(|i| &ALL[i])
    }

    /// The collation of an id that is known to exist: one of the constants, or one that [`CollationId::get`] has found before.
    ///
    /// # Panics
    /// When there is no such collation.
    #[inline]
    pub fn known(self) -> &'static Collation {
        self.get()
            .expect("a collation id was checked when it entered the system")
    }
}

/// How a collation compares.
#[derive(Debug)]
enum Kind {
    /// Byte by byte.
    Bytes,
}

/// A collation of one character set.
#[derive(Debug)]
pub struct Collation {
    pub id: CollationId,
    /// MySQL's name, in lower case.
    pub name: &'static str,
    pub charset: &'static Charset,
    /// PAD SPACE: trailing spaces do not count, and a shorter string compares as if padded with spaces.
    pub pad_space: bool,
    /// Whether it is the default of its character set.
    pub is_default: bool,
    /// MySQL's `SORTLEN`.
    pub sort_len: u8,
    kind: Kind,
}

const fn collation(
    id: CollationId,
    name: &'static str,
    charset: &'static Charset,
    pad_space: bool,
    sort_len: u8,
    kind: Kind,
) -> Collation {
    let is_default = id.0 == charset.default_collation.0;
    Collation {
        id,
        name,
        charset,
        pad_space,
        is_default,
        sort_len,
        kind,
    }
}

use charset::{ASCII, BINARY, LATIN1, UTF8MB3, UTF8MB4};

/// Every collation, sorted by id.
pub static ALL: [Collation; 17] = [
    collation(
        CollationId(8),
        "latin1_swedish_ci",
        &LATIN1,
        true,
        1,
        Kind::Bytes,
    ),
    collation(
        CollationId(11),
        "ascii_general_ci",
        &ASCII,
        true,
        1,
        Kind::Bytes,
    ),
    collation(
        CollationId(33),
        "utf8mb3_general_ci",
        &UTF8MB3,
        true,
        1,
        Kind::Bytes,
    ),
    collation(
        CollationId(45),
        "utf8mb4_general_ci",
        &UTF8MB4,
        true,
        1,
        Kind::Bytes,
    ),
    collation(
        CollationId(46),
        "utf8mb4_bin",
        &UTF8MB4,
        true,
        1,
        Kind::Bytes,
    ),
    collation(CollationId(47), "latin1_bin", &LATIN1, true, 1, Kind::Bytes),
    collation(
        CollationId(48),
        "latin1_general_ci",
        &LATIN1,
        true,
        1,
        Kind::Bytes,
    ),
    collation(
        CollationId(49),
        "latin1_general_cs",
        &LATIN1,
        true,
        1,
        Kind::Bytes,
    ),
    collation(CollationId(63), "binary", &BINARY, false, 1, Kind::Bytes),
    collation(CollationId(65), "ascii_bin", &ASCII, true, 1, Kind::Bytes),
    collation(
        CollationId(83),
        "utf8mb3_bin",
        &UTF8MB3,
        true,
        1,
        Kind::Bytes,
    ),
    collation(
        CollationId(192),
        "utf8mb3_unicode_ci",
        &UTF8MB3,
        true,
        8,
        Kind::Bytes,
    ),
    collation(
        CollationId(224),
        "utf8mb4_unicode_ci",
        &UTF8MB4,
        true,
        8,
        Kind::Bytes,
    ),
    collation(
        CollationId(255),
        "utf8mb4_0900_ai_ci",
        &UTF8MB4,
        false,
        0,
        Kind::Bytes,
    ),
    collation(
        CollationId(278),
        "utf8mb4_0900_as_cs",
        &UTF8MB4,
        false,
        0,
        Kind::Bytes,
    ),
    collation(
        CollationId(305),
        "utf8mb4_0900_as_ci",
        &UTF8MB4,
        false,
        0,
        Kind::Bytes,
    ),
    collation(
        CollationId(309),
        "utf8mb4_0900_bin",
        &UTF8MB4,
        false,
        1,
        Kind::Bytes,
    ),
];

impl PartialEq for Collation {
    fn eq(&self, other: &Collation) -> bool {
        self.id == other.id
    }
}
impl Eq for Collation {}

impl Collation {
    /// The collation of that name, in any case; `utf8_...` is `utf8mb3_...`.
    pub fn by_name(name: &str) -> Option<&'static Collation> {
        if let Some((head, tail)) = name.split_once('_')
            && head.eq_ignore_ascii_case("utf8")
        {
            return ALL.iter().find(|c| {
                c.name
                    .strip_prefix("utf8mb3_")
                    .is_some_and(|t| t.eq_ignore_ascii_case(tail))
            });
        }
        ALL.iter().find(|c| c.name.eq_ignore_ascii_case(name))
    }

    /// Every collation, sorted by id.
    pub fn all() -> &'static [Collation] {
        &ALL
    }

    /// Whether this is a `_bin` collation or `binary`.
    pub fn is_binary(&self) -> bool {
        matches!(self.kind, Kind::Bytes)
    }

    /// The order of two strings.
    #[inline]
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self.kind {
            Kind::Bytes => a.cmp(b),
        }
    }

    /// Whether two strings compare equal.
    #[inline]
    pub fn eq(&self, a: &[u8], b: &[u8]) -> bool {
        self.compare(a, b) == Ordering::Equal
    }

    /// Appends the sort key: `memcmp` of two keys gives [`Collation::compare`] of the strings, and keys are equal exactly when the
    /// strings compare equal. Keys are not self-delimiting (one may be a prefix of another) and may hold any byte.
    pub fn sort_key(&self, s: &[u8], out: &mut Vec<u8>) {
        match self.kind {
            Kind::Bytes => out.extend_from_slice(s),
        }
    }

    /// Whether the string can be had back from its sort key, because the key is the string.
    #[inline]
    pub fn is_invertible(&self) -> bool {
        matches!(self.kind, Kind::Bytes) && !self.pad_space
    }

    /// Feeds the hasher so that strings which compare equal hash equally.
    pub fn hash<H: Hasher>(&self, s: &[u8], state: &mut H) {
        state.write(s);
        state.write_u8(0xFF);
    }

    /// MySQL's `text LIKE pattern ESCAPE escape`; `None` is a pattern without an escape character.
    pub fn like(&self, text: &[u8], pattern: &[u8], escape: Option<char>) -> bool {
        let _ = escape;
        text == pattern
    }

    /// Appends the string in lower case.
    pub fn lower(&self, s: &[u8], out: &mut Vec<u8>) {
        out.extend(s.iter().map(u8::to_ascii_lowercase));
    }

    /// Appends the string in upper case.
    pub fn upper(&self, s: &[u8], out: &mut Vec<u8>) {
        out.extend(s.iter().map(u8::to_ascii_uppercase));
    }

    /// Byte offset of the first occurrence of `needle` at or after byte `from` (a character boundary).
    pub fn position(&self, haystack: &[u8], needle: &[u8], from: usize) -> Option<usize> {
        let tail = haystack.get(from..)?;
        if needle.is_empty() {
            return Some(from);
        }
        tail.windows(needle.len())
            .position(|w| self.eq(w, needle))
            .map(|at| from + at)
    }

    /// Number of characters; see [`Charset::char_len`].
    #[inline]
    pub fn char_len(&self, s: &[u8]) -> usize {
        self.charset.char_len(s)
    }

    /// The first `n` characters; see [`Charset::char_prefix`].
    #[inline]
    pub fn char_prefix<'a>(&self, s: &'a [u8], n: usize) -> &'a [u8] {
        self.charset.char_prefix(s, n)
    }

    /// Appends the characters in reverse order.
    #[inline]
    pub fn reverse(&self, s: &[u8], out: &mut Vec<u8>) {
        self.charset.reverse(s, out)
    }

    /// Offset of the first malformed byte, if any; see [`Charset::is_valid`].
    #[inline]
    pub fn is_valid(&self, s: &[u8]) -> Result<(), usize> {
        self.charset.is_valid(s)
    }

    /// The longest prefix that is well-formed.
    #[inline]
    pub fn well_formed_prefix<'a>(&self, s: &'a [u8]) -> &'a [u8] {
        self.charset.well_formed_prefix(s)
    }
}
