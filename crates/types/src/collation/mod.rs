//! Collations: how strings of a character set compare, hash, match and fold, with MySQL's ids and
//! names.
//!
//! Everything here works on the bytes as stored, without allocation, and accepts malformed bytes.
#![forbid(unsafe_code)]

mod case;
mod compare;
mod identity;
mod keys;
mod like;
mod list;
mod mapped;
mod mariadb;
mod orders;
mod search;
mod tables;
mod tailored;
mod tailoring;
mod weights;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::hash::Hasher;

use crate::charset::Charset;
pub use crate::collation_id::CollationId;
use case::CaseMap;
use compare::{Mixer, Progress, Unwatched, Watched};
use keys::Sink;
pub use like::LikePrefix;
use list::{ALL, PLACES};
use mapped::{Mapped, Scratch, UnicodeEncoding};
use orders::{CZECH_CASE, CZECH1250_CASE};
pub use search::GoesOn;
use tables::IDENTITY;
use tailored::Tailored;
use weights::{
    GENERAL_CI, GENERAL_MYSQL500_CI, GENERAL_TOLOWER_CI, UCA_0400, UCA_0520, UCA_0900, Weigher,
};

impl CollationId {
    /// The collation of this id, or `None` where it is not supported.
    #[inline]
    pub fn get(self) -> Option<&'static Collation> {
        let place = *PLACES.get(usize::from(self.0))?;
        ALL.get(usize::from(place))
    }

    /// The collation of an id that is known to exist: one of the constants, or one that
    /// [`CollationId::get`] has found before.
    ///
    /// # Panics
    /// When there is no such collation.
    #[inline]
    pub fn known(self) -> &'static Collation {
        self.get()
            .expect("a collation id was checked when it entered the system")
    }
}

/// The algorithm of a collation.
#[derive(Copy, Clone)]
enum Algorithm {
    /// Byte by byte, NO PAD.
    Bytes,
    /// By a weight of each byte, PAD SPACE.
    Table(&'static [u8; 256]),
    /// As `Table`, with a weight of the space other than 0x20.
    Spaced(&'static [u8; 256]),
    /// By a rewritten form of the string.
    Mapped(Mapped),
    /// MySQL's general_ci, PAD SPACE.
    General,
    /// general_ci as it was before MySQL 5.1.24: 'ß' is not 's'.
    General500,
    /// Weights are the small letters' code points, PAD SPACE.
    GeneralLower,
    /// UCA 4.0, one level, PAD SPACE.
    Uca0400,
    /// UCA 5.2, one level, PAD SPACE.
    Uca0520,
    /// UCA 9.0, NO PAD, with this many levels.
    Uca0900(u8),
    /// UCA 4.0 or 9.0 with a language's tailoring.
    Tailored(Tailored),
}

/// A collation of one character set.
pub struct Collation {
    pub id: CollationId,
    /// MySQL's name, in lower case.
    pub name: &'static str,
    pub charset: &'static Charset,
    /// PAD SPACE: trailing spaces do not count, and a shorter string compares as if padded with
    /// spaces.
    pub pad_space: bool,
    /// Whether it is the default of its character set.
    pub is_default: bool,
    /// MySQL's `SORTLEN`.
    pub sort_len: u8,
    kind: Algorithm,
    case: CaseMap,
}

const TURKISH: CollationId = CollationId(233);
const UNICODE_520: CollationId = CollationId(246);

const fn collation(
    id: u16,
    name: &'static str,
    charset: &'static Charset,
    kind: Algorithm,
    sort_len: u8,
) -> Collation {
    let is_default = id == charset.default_collation.0;
    let pad_space = match kind {
        Algorithm::Bytes | Algorithm::Uca0900(_) => false,
        Algorithm::Tailored(t) => t.pad,
        _ => true,
    };
    let case = match (charset.name.as_bytes(), kind) {
        (b"binary", _) => CaseMap::None,
        (b"latin1", _) => CaseMap::Latin1,
        (b"ascii", _) => CaseMap::Ascii,
        (_, Algorithm::Uca0520 | Algorithm::Mapped(Mapped::Unicode(_, UNICODE_520))) => {
            CaseMap::Uca0520
        }
        (_, Algorithm::Mapped(Mapped::Unicode(_, TURKISH))) => CaseMap::Turkish,
        (
            _,
            Algorithm::Bytes
            | Algorithm::Uca0900(_)
            | Algorithm::Tailored(Tailored { pad: false, .. }),
        ) => CaseMap::Uca0900,
        (_, Algorithm::Tailored(t)) if t.is_turkish() => CaseMap::Turkish,
        _ => CaseMap::General,
    };
    let case = match (charset.single(), kind) {
        (_, Algorithm::Mapped(Mapped::Coded(set, _))) => CaseMap::Coded(set),
        (_, Algorithm::Mapped(Mapped::Unicode(UnicodeEncoding::Gb18030(set), _))) => {
            CaseMap::Coded(set)
        }
        (_, Algorithm::Mapped(Mapped::Czech)) => CaseMap::Own(&CZECH_CASE),
        (_, Algorithm::Mapped(Mapped::Czech1250)) => CaseMap::Own(&CZECH1250_CASE),
        (Some(set), _) => CaseMap::Single(set),
        _ => case,
    };
    let id = CollationId(id);
    Collation {
        id,
        name,
        charset,
        pad_space,
        is_default,
        sort_len,
        kind,
        case,
    }
}

impl std::fmt::Debug for Collation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Collation {
    fn eq(&self, other: &Collation) -> bool {
        self.id == other.id
    }
}
impl Eq for Collation {}

/// If both strings are longer than this, comparing them has checkpoints.
const LONG_BYTES: usize = 64 << 10;
/// How many bytes before a difference are compared again; a contraction is shorter.
const CONTEXT_BYTES: usize = 64;

impl Collation {
    /// The collation of that name, in any case; `utf8_...` is `utf8mb3_...`, and a name that only
    /// MariaDB has is the nearest collation of MySQL.
    pub fn by_name(name: &str) -> Option<&'static Collation> {
        Collation::by_own_name(name)
            .or_else(|| mariadb::nearest(name).and_then(|own| Collation::by_own_name(&own)))
    }

    fn by_own_name(name: &str) -> Option<&'static Collation> {
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
        match self.kind {
            Algorithm::Bytes => true,
            Algorithm::Table(table) => std::ptr::eq(table, &IDENTITY),
            Algorithm::Mapped(mapped) => mapped.is_binary(),
            _ => false,
        }
    }

    /// The order of two strings.
    #[inline]
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        self.compare_by(a, b, &mut Unwatched)
    }

    /// As [`Self::compare`], for strings that may be long. `goes_on` is called with the work since
    /// its last call; if it returns false, the result is meaningless.
    pub fn compare_stoppable(&self, a: &[u8], b: &[u8], goes_on: GoesOn<'_>) -> Ordering {
        if a.len().min(b.len()) < LONG_BYTES {
            return self.compare(a, b);
        }
        let equal = compare::equal_bytes_watched(a, b, goes_on);
        if let Algorithm::Mapped(_) = self.kind {
            // Weights may depend on everything before them, and a byte that differs may be in the
            // middle of a character.
            return self.compare_by(a, b, &mut Watched::new(goes_on));
        }
        if self.is_binary() {
            // The rest differs soon, or the strings are equal, or `goes_on` has returned false.
            return self.compare(&a[equal..], &b[equal..]);
        }
        // The part before the difference holds what a contraction may join to it.
        let mut start = equal.saturating_sub(CONTEXT_BYTES);
        while start > 0 && a[start] & 0xC0 == 0x80 && self.charset.is_multi_byte() {
            start -= 1;
        }
        self.compare_by(&a[start..], &b[start..], &mut Watched::new(goes_on))
    }

    #[inline]
    fn compare_by<P: Progress>(&self, a: &[u8], b: &[u8], p: &mut P) -> Ordering {
        match self.kind {
            Algorithm::Bytes => a.cmp(b),
            Algorithm::Table(table) | Algorithm::Spaced(table) => {
                compare::compare_bytes_padded(table, a, b, p)
            }
            Algorithm::Mapped(mapped) => mapped.compare(a, b, p),
            Algorithm::General => compare::compare(GENERAL_CI, a, b, true, p),
            Algorithm::General500 => compare::compare(GENERAL_MYSQL500_CI, a, b, true, p),
            Algorithm::GeneralLower => compare::compare(GENERAL_TOLOWER_CI, a, b, true, p),
            Algorithm::Tailored(t) => t.compare(a, b, p),
            Algorithm::Uca0400 => compare::compare(&UCA_0400, a, b, true, p),
            Algorithm::Uca0520 => compare::compare(&UCA_0520, a, b, true, p),
            Algorithm::Uca0900(1) => compare::compare(&UCA_0900, a, b, false, p),
            Algorithm::Uca0900(levels) => compare::compare(&UCA_0900, a, b, false, p)
                .then_with(|| compare::compare_accents(&UCA_0900, a, b, levels, p)),
        }
    }

    /// Whether two strings compare equal.
    #[inline]
    pub fn eq(&self, a: &[u8], b: &[u8]) -> bool {
        match self.kind {
            Algorithm::Bytes => a == b,
            _ => self.compare(a, b) == Ordering::Equal,
        }
    }

    /// Appends the sort key: `memcmp` of two keys gives [`Collation::compare`] of the strings, and
    /// keys are equal exactly when the strings compare equal. Keys are not self-delimiting (one may
    /// be a prefix of another) and may hold any byte.
    #[inline]
    pub fn sort_key(&self, s: &[u8], out: &mut Vec<u8>) {
        self.push_key(s, out);
    }

    fn push_key<S: Sink>(&self, s: &[u8], out: &mut S) {
        match self.kind {
            Algorithm::Bytes => out.push_all(s),
            Algorithm::Table(table) => keys::push_bytes_padded(table, s, out),
            Algorithm::Spaced(table) => keys::push_spaced(table, s, out),
            Algorithm::Mapped(mapped) => mapped.push_key(s, out),
            Algorithm::General => keys::push_padded(GENERAL_CI, keys::PLAIN_SPACES, s, out),
            Algorithm::General500 => {
                keys::push_padded(GENERAL_MYSQL500_CI, keys::PLAIN_SPACES, s, out)
            }
            Algorithm::GeneralLower => {
                keys::push_padded(GENERAL_TOLOWER_CI, keys::PLAIN_SPACES, s, out)
            }
            Algorithm::Tailored(t) => t.push_key(s, out),
            Algorithm::Uca0400 => keys::push_padded(&UCA_0400, UCA_0400.codes.spaces(), s, out),
            Algorithm::Uca0520 => keys::push_padded(&UCA_0520, UCA_0520.codes.spaces(), s, out),
            Algorithm::Uca0900(levels) => {
                keys::push_codes(&UCA_0900, s, out);
                keys::push_accents(&UCA_0900, s, levels, out);
            }
        }
    }

    /// Whether the string can be recovered from its sort key, because the key is the string.
    #[inline]
    pub fn is_invertible(&self) -> bool {
        matches!(self.kind, Algorithm::Bytes)
    }

    /// A hash that is equal for strings that compare as equal, and the same in every process. Not
    /// for storing.
    pub fn hash64(&self, s: &[u8]) -> u64 {
        let mut mixer = Mixer::new();
        self.push_key(s, &mut mixer);
        mixer.finish()
    }

    /// Feeds the hasher so that strings which compare equal hash equally.
    #[inline]
    pub fn hash<H: Hasher>(&self, s: &[u8], state: &mut H) {
        state.write_u64(self.hash64(s));
    }

    /// Appends the common prefix of the sort keys of all strings that begin with the characters of
    /// `prefix`.
    pub fn sort_key_prefix(&self, prefix: &[u8], out: &mut Vec<u8>) {
        match self.kind {
            Algorithm::Bytes => out.extend_from_slice(prefix),
            Algorithm::Table(table) => keys::push_bytes_unended(table, prefix, out),
            Algorithm::Spaced(table) => keys::push_spaced_unended(table, prefix, out),
            Algorithm::Mapped(mapped) => mapped.push_prefix(prefix, out),
            Algorithm::General => keys::push_unended(GENERAL_CI, keys::PLAIN_SPACES, prefix, out),
            Algorithm::General500 => {
                keys::push_unended(GENERAL_MYSQL500_CI, keys::PLAIN_SPACES, prefix, out)
            }
            Algorithm::GeneralLower => {
                keys::push_unended(GENERAL_TOLOWER_CI, keys::PLAIN_SPACES, prefix, out)
            }
            Algorithm::Tailored(t) => t.push_prefix(prefix, out),
            Algorithm::Uca0400 => {
                keys::push_unended(&UCA_0400, UCA_0400.codes.spaces(), prefix, out)
            }
            Algorithm::Uca0520 => {
                keys::push_unended(&UCA_0520, UCA_0520.codes.spaces(), prefix, out)
            }
            Algorithm::Uca0900(_) => keys::push_codes(&UCA_0900, prefix, out),
        }
    }

    /// The maximum length of the sort key of a string of `chars` characters.
    pub fn max_sort_key_len(&self, chars: usize) -> usize {
        let (per_char, fixed) = match self.kind {
            Algorithm::Bytes => (usize::from(self.charset.max_len), 0),
            // A run of spaces takes two bytes, and so do the three weights that have no single
            // code.
            Algorithm::Table(_) | Algorithm::Spaced(_) => {
                (2.max(usize::from(self.charset.max_len)), 1)
            }
            Algorithm::Mapped(mapped) => mapped.key_len(),
            Algorithm::General | Algorithm::General500 | Algorithm::GeneralLower => (3, 1),
            Algorithm::Tailored(t) => (t.longest_code(), 3),
            Algorithm::Uca0400 => (keys::MAX_0400, 1),
            Algorithm::Uca0520 => (keys::MAX_0520, 1),
            Algorithm::Uca0900(1) => (keys::MAX_0900[0], 0),
            Algorithm::Uca0900(2) => (keys::MAX_0900[1], 1),
            Algorithm::Uca0900(_) => (keys::MAX_0900[2], 2),
        };
        per_char.saturating_mul(chars).saturating_add(fixed)
    }

    /// Appends the string in lower case.
    pub fn lower(&self, s: &[u8], out: &mut Vec<u8>) {
        case::lower(self.case, self.charset, s, out);
    }

    /// Appends the string in upper case.
    pub fn upper(&self, s: &[u8], out: &mut Vec<u8>) {
        case::upper(self.case, self.charset, s, out);
    }

    /// Appends the result of MySQL's WEIGHT_STRING(): two bytes a weight, a zero between levels,
    /// with padding.
    pub fn weight_string(&self, s: &[u8], out: &mut Vec<u8>) {
        let mut push = |w: u32| out.extend_from_slice(&(w.min(0xFFFF) as u16).to_be_bytes());
        match self.kind {
            Algorithm::Bytes => out.extend_from_slice(s),
            Algorithm::Table(_) if self.charset.is_multi_byte() => {
                let mut rest = s;
                while let Some(&first) = rest.first() {
                    let (c, len) = self
                        .charset
                        .decode(rest)
                        .map_or((u32::from(first), 1), |(c, n)| (u32::from(c), n));
                    let width = usize::from(self.charset.max_len) - 1;
                    out.extend_from_slice(&c.to_be_bytes()[4 - width..]);
                    rest = &rest[len..];
                }
            }
            Algorithm::Table(table) | Algorithm::Spaced(table) => {
                out.extend(s.iter().map(|&b| table[usize::from(b)]))
            }
            Algorithm::Mapped(mapped) => self.mapped_weights(mapped, s, out),
            Algorithm::General => GENERAL_CI.weights(s).for_each(push),
            Algorithm::General500 => GENERAL_MYSQL500_CI.weights(s).for_each(push),
            Algorithm::GeneralLower => GENERAL_TOLOWER_CI.weights(s).for_each(push),
            Algorithm::Tailored(t) => t.weight_string(s, out),
            Algorithm::Uca0400 => (&UCA_0400).weights(s).for_each(push),
            Algorithm::Uca0520 => (&UCA_0520).weights(s).for_each(push),
            Algorithm::Uca0900(levels) => {
                (&UCA_0900).weights(s).for_each(&mut push);
                if levels > 1 {
                    push(0);
                    UCA_0900
                        .level::<1>(s)
                        .for_each(|rank| push(u32::from(UCA_0900.secondary(rank as u16))));
                }
                if levels > 2 {
                    push(0);
                    UCA_0900.level::<2>(s).for_each(&mut push);
                }
            }
        }
    }

    fn mapped_weights(&self, mapped: Mapped, s: &[u8], out: &mut Vec<u8>) {
        if mapped.is_binary() && self.charset.max_len == 2 {
            return out.extend_from_slice(s);
        }
        let mut rewritten = Scratch::new();
        mapped.rewrite_whole(s, &mut rewritten);
        match mapped.base() {
            Some(base) => base.weight_string(rewritten.bytes(), out),
            None => out.extend_from_slice(rewritten.bytes()),
        }
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
