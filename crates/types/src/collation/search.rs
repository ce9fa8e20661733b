//! Searching text: LIKE, and the position of one string in another.

use std::sync::OnceLock;

use super::mapped::{By, ByCode, Mapped, Scratch};
use super::tables::IDENTITY;
use super::weights::{
    GENERAL_CI, GENERAL_MYSQL500_CI, GENERAL_TOLOWER_CI, UCA_0400, UCA_0520, UCA_0900,
};
use super::{Algorithm, Collation, LikePrefix, compare, like};
use crate::charset::coded::CodedSet;
use crate::charset::is_ascii;

/// Called from time to time by a long search, with the work since the last call. False: the search
/// stops.
pub type GoesOn<'f> = &'f mut dyn FnMut(u64) -> bool;

/// The position of `needle` in `haystack` from byte `from` on.
fn find_bytes(haystack: &[u8], needle: &[u8], from: usize, goes_on: GoesOn<'_>) -> Option<usize> {
    /// The number of bytes that are searched at a time.
    const PIECE: usize = 1 << 20;
    let finder = memchr::memmem::Finder::new(needle);
    let mut at = from;
    loop {
        let rest = haystack.get(at..)?;
        let piece = &rest[..rest.len().min(PIECE.max(needle.len()) + needle.len())];
        if let Some(found) = finder.find(piece) {
            return Some(at + found);
        }
        if piece.len() == rest.len() || !goes_on(piece.len() as u64) {
            return None;
        }
        at += piece.len() - needle.len() + 1;
    }
}

impl Collation {
    /// MySQL's `text LIKE pattern ESCAPE escape`. `None` is `ESCAPE ''`: no escape character.
    pub fn like(&self, text: &[u8], pattern: &[u8], escape: Option<char>) -> bool {
        self.like_stoppable(text, pattern, escape, &mut |_| true)
    }

    /// As [`Self::like`]. Also false if `goes_on` returns false; it is called with the work since
    /// the last call.
    pub fn like_stoppable(
        &self,
        text: &[u8],
        pattern: &[u8],
        escape: Option<char>,
        goes_on: GoesOn<'_>,
    ) -> bool {
        if let Some(classes) = self.ascii_classes()
            && is_ascii(text)
            && is_ascii(pattern)
        {
            return self.like_bytes(classes, text, pattern, escape, goes_on);
        }
        match self.kind {
            Algorithm::Bytes | Algorithm::Table(_) if self.charset.is_multi_byte() => {
                self.like_by(|a, b| a == b, text, pattern, escape, goes_on)
            }
            Algorithm::Bytes => like::like(&like::Bytes, text, pattern, escape, goes_on),
            Algorithm::Table(table) | Algorithm::Spaced(table) => {
                self.like_bytes(table, text, pattern, escape, goes_on)
            }
            Algorithm::Mapped(Mapped::Unicode(_, base)) => {
                let base = base.known();
                let same = |a, b| a == b || base.same_char(a, b);
                self.like_by(same, text, pattern, escape, goes_on)
            }
            Algorithm::Mapped(Mapped::Coded(set, by)) if set.has_four_bytes() => {
                let same = |a, b| a == b || (by == By::Weights && set.same_weight(a, b));
                self.like_by(same, text, pattern, escape, goes_on)
            }
            Algorithm::Mapped(Mapped::Coded(set, by)) => {
                let escape = self.unit_of(escape);
                like::like(&ByCode(set, by), text, pattern, escape, goes_on)
            }
            Algorithm::Mapped(mapped) => {
                self.like_bytes(mapped.like_classes(), text, pattern, escape, goes_on)
            }
            Algorithm::General => {
                let same = |a, b| a == b || GENERAL_CI.weight(a) == GENERAL_CI.weight(b);
                self.like_by(same, text, pattern, escape, goes_on)
            }
            Algorithm::Uca0900(levels) => {
                let same = |a, b| UCA_0900.same_char(a, b, levels);
                self.like_by(same, text, pattern, escape, goes_on)
            }
            _ => self.like_by(|a, b| self.same_char(a, b), text, pattern, escape, goes_on),
        }
    }

    /// For each ASCII character, the first one that LIKE takes for equal. `None`: the collation has
    /// no such table.
    fn ascii_classes(&self) -> Option<&'static [u8; 256]> {
        static CLASSES: [OnceLock<[u8; 256]>; 4] = [const { OnceLock::new() }; 4];
        let place = match self.kind {
            Algorithm::General => 0,
            Algorithm::Uca0900(levels) => usize::from(levels),
            _ => return None,
        };
        let classes = CLASSES.get(place)?;
        Some(classes.get_or_init(|| {
            let mut classes = [0; 256];
            for b in 0..128u8 {
                let same = |a: &u8| *a == b || self.same_char(char::from(*a), char::from(b));
                classes[usize::from(b)] = (0..b).find(same).unwrap_or(b);
            }
            classes
        }))
    }

    /// LIKE, with characters compared by a function.
    #[inline]
    fn like_by(
        &self,
        same: impl Fn(char, char) -> bool,
        text: &[u8],
        pattern: &[u8],
        escape: Option<char>,
        goes_on: GoesOn<'_>,
    ) -> bool {
        let charset = self.charset;
        let by_char = like::ByChar { charset, same };
        like::like(&by_char, text, pattern, escape, goes_on)
    }

    /// LIKE, with bytes compared by their weights.
    fn like_bytes(
        &self,
        weights: &[u8; 256],
        text: &[u8],
        pattern: &[u8],
        escape: Option<char>,
        goes_on: GoesOn<'_>,
    ) -> bool {
        let escape = self.byte_of(escape);
        like::like(&like::ByByte(weights), text, pattern, escape, goes_on)
    }

    /// Whether LIKE takes two characters for equal, in a Unicode collation.
    fn same_char(&self, a: char, b: char) -> bool {
        match self.kind {
            Algorithm::General => GENERAL_CI.weight(a) == GENERAL_CI.weight(b),
            Algorithm::General500 => GENERAL_MYSQL500_CI.weight(a) == GENERAL_MYSQL500_CI.weight(b),
            Algorithm::GeneralLower => GENERAL_TOLOWER_CI.weight(a) == GENERAL_TOLOWER_CI.weight(b),
            Algorithm::Tailored(t) => t.same_char(a, b),
            Algorithm::Uca0400 => UCA_0400.same_char(a, b, 1),
            Algorithm::Uca0520 => UCA_0520.same_char(a, b, 1),
            Algorithm::Uca0900(levels) => UCA_0900.same_char(a, b, levels),
            _ => a == b,
        }
    }

    /// Appends the literal prefix of a LIKE pattern. The sort keys of all matching texts begin with
    /// its [`Collation::sort_key_prefix`].
    pub fn like_prefix(
        &self,
        pattern: &[u8],
        escape: Option<char>,
        out: &mut Vec<u8>,
    ) -> LikePrefix {
        if let Algorithm::Mapped(Mapped::Coded(set, by)) = self.kind
            && !set.has_four_bytes()
        {
            let escape = self.unit_of(escape);
            return like::literal_prefix(&ByCode(set, by), pattern, escape, out);
        }
        if self.charset.is_multi_byte() {
            let by_char = like::ByChar {
                charset: self.charset,
                same: |a, b| a == b,
            };
            return like::literal_prefix(&by_char, pattern, escape, out);
        }
        like::literal_prefix(&like::ByByte(&IDENTITY), pattern, self.byte_of(escape), out)
    }

    /// The representation of the escape character in an East Asian set.
    fn unit_of(&self, escape: Option<char>) -> Option<char> {
        let escape = escape?;
        let mut bytes = Vec::new();
        if !self.charset.encode(escape, &mut bytes) {
            return Some(escape);
        }
        let code = bytes.iter().fold(0, |n, b| n << 8 | u32::from(*b));
        ByCode::unit(code)
    }

    /// In single-byte sets a byte is represented by the code point of its value, and so is the
    /// escape character.
    fn byte_of(&self, escape: Option<char>) -> Option<char> {
        let mut byte = Vec::new();
        escape.map(|c| {
            if self.charset.encode(c, &mut byte) {
                char::from(byte[0])
            } else {
                c
            }
        })
    }

    /// The byte offset of the first position, from byte `from` on (the start of a character), at
    /// which the weights of `needle` begin the weights of the rest of `haystack`. For LOCATE, INSTR
    /// and similar functions: 'ss' is found in 'aß', and 'e' in 'é'.
    pub fn position(&self, haystack: &[u8], needle: &[u8], from: usize) -> Option<usize> {
        self.position_stoppable(haystack, needle, from, &mut |_| true)
    }

    /// As [`Self::position`]. Also `None` if `goes_on` returns false; it is called with the work
    /// since the last call.
    pub fn position_stoppable(
        &self,
        haystack: &[u8],
        needle: &[u8],
        from: usize,
        goes_on: GoesOn<'_>,
    ) -> Option<usize> {
        if needle.is_empty() {
            return (from <= haystack.len()).then_some(from);
        }
        if let Algorithm::Mapped(Mapped::Coded(set, _)) = self.kind {
            return self.coded_position(set, haystack, needle, from);
        }
        if let Algorithm::Mapped(mapped @ Mapped::Unicode(_, base)) = self.kind {
            return self.unicode_position(mapped, base.known(), haystack, needle, from, goes_on);
        }
        // Bytes that start a character are found only at the start of a character.
        if self.is_binary() && (!self.charset.is_multi_byte() || needle[0] & 0xC0 != 0x80) {
            return find_bytes(haystack, needle, from, goes_on);
        }
        let mut at = from;
        let mut steps = 0;
        while at < haystack.len() {
            let rest = &haystack[at..];
            if self.has_prefix(rest, needle, goes_on) {
                return Some(at);
            }
            at += self.charset.step(rest);
            steps += 1;
            if steps % 4096 == 0 && !goes_on(10 * 4096) {
                return None;
            }
        }
        None
    }

    /// The position in text of another Unicode encoding, found in its UTF-8 form and converted back
    /// character by character.
    fn unicode_position(
        &self,
        mapped: Mapped,
        base: &Collation,
        haystack: &[u8],
        needle: &[u8],
        from: usize,
        goes_on: GoesOn<'_>,
    ) -> Option<usize> {
        let rest = haystack.get(from..)?;
        let (mut text, mut searched) = (Scratch::new(), Scratch::new());
        mapped.rewrite(rest, &mut text);
        mapped.rewrite(needle, &mut searched);
        let found = base.position_stoppable(text.bytes(), searched.bytes(), 0, goes_on)?;
        let chars = base.charset.char_len(&text.bytes()[..found]);
        Some(from + self.charset.char_prefix_len(rest, chars))
    }

    /// The first position between two characters at which the bytes of the needle occur.
    fn coded_position(
        &self,
        set: &CodedSet,
        haystack: &[u8],
        needle: &[u8],
        from: usize,
    ) -> Option<usize> {
        let mut at = from;
        while let Some(piece) = haystack.get(at..at + needle.len()) {
            if self.eq(piece, needle) {
                return Some(at);
            }
            at += set.len(&haystack[at..]).unwrap_or(1);
        }
        None
    }

    /// Whether the weights of `prefix` begin those of `s`, level by level.
    fn has_prefix(&self, s: &[u8], prefix: &[u8], goes_on: GoesOn<'_>) -> bool {
        match self.kind {
            Algorithm::Bytes => s.starts_with(prefix),
            Algorithm::Table(table) | Algorithm::Spaced(table) => {
                bytes_have_prefix(table, s, prefix)
            }
            Algorithm::Mapped(mapped) => bytes_have_prefix(mapped.locate_classes(), s, prefix),
            Algorithm::General => compare::has_prefix(GENERAL_CI, s, prefix, goes_on),
            Algorithm::General500 => compare::has_prefix(GENERAL_MYSQL500_CI, s, prefix, goes_on),
            Algorithm::GeneralLower => compare::has_prefix(GENERAL_TOLOWER_CI, s, prefix, goes_on),
            Algorithm::Tailored(t) => t.has_prefix(s, prefix, goes_on),
            Algorithm::Uca0400 => compare::has_prefix(&UCA_0400, s, prefix, goes_on),
            Algorithm::Uca0520 => compare::has_prefix(&UCA_0520, s, prefix, goes_on),
            Algorithm::Uca0900(levels) => {
                compare::has_prefix_uca(&UCA_0900, s, prefix, levels, goes_on)
            }
        }
    }
}

fn bytes_have_prefix(table: &[u8; 256], s: &[u8], prefix: &[u8]) -> bool {
    let same = |(a, b): (&u8, &u8)| table[usize::from(*a)] == table[usize::from(*b)];
    s.len() >= prefix.len() && s.iter().zip(prefix).all(same)
}
