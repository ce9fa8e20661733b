//! Collations that compare a rewritten form of the string: bytes of its weights, or UTF-8.
//!
//! # Picture
//! ```text
//! latin1_german2_ci    one or two weights a byte                            PAD SPACE
//! latin2_czech_cs      (pass 1 of a word 01 | pass 2 of a word 01)* pass 3 01 pass 4 00
//! cp1250_czech_cs      pass 1, pass 2, of the string without spaces at its end
//! gbk, sjis, ...       a weight for each byte of ASCII, and two bytes of weight or the bytes
//!                      themselves for the others                            PAD SPACE
//! tis620_thai_ci       weights, leading vowels behind their consonants, marks at the end
//!                                                                           PAD SPACE
//! ucs2, utf16, ...     UTF-8, compared by a collation of utf8mb4
//! ```

use std::cmp::Ordering;

use super::compare::{Progress, compare_bytes_padded};
use super::keys::{self, Sink};
use super::like::Matcher;
use super::orders::{CZECH, CZECH1250, GERMAN2, THAI};
use super::tables::IDENTITY;
use super::{Collation, CollationId};
use crate::charset::coded::CodedSet;
use crate::charset::wide::Wide;

/// How a collation rewrites strings.
#[derive(Copy, Clone)]
pub(super) enum Mapped {
    German2,
    Czech,
    Czech1250,
    Thai,
    /// An East Asian set, compared by its weights or by its bytes.
    Coded(&'static CodedSet, By),
    /// An encoding of Unicode, and the utf8mb4 collation that has the weights.
    Unicode(UnicodeEncoding, CollationId),
}

/// An encoding of Unicode other than UTF-8.
#[derive(Copy, Clone)]
pub(super) enum UnicodeEncoding {
    Wide(Wide),
    Gb18030(&'static CodedSet),
}

impl UnicodeEncoding {
    fn to_utf8(self, s: &[u8], out: &mut Scratch) {
        match self {
            UnicodeEncoding::Wide(wide) => wide.to_utf8(s, |bytes| out.push_all(bytes)),
            UnicodeEncoding::Gb18030(set) => set.to_utf8(s, |bytes| out.push_all(bytes)),
        }
    }
}

/// How an East Asian collation compares characters.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum By {
    Weights,
    Bytes,
}

/// How rewritten strings are compared.
enum Order {
    /// Byte by byte; the shorter one is padded with spaces.
    Padded,
    /// Byte by byte.
    Plain,
    By(&'static Collation),
}

/// A rewritten string. Short ones need no allocation.
pub(super) struct Scratch {
    short: [u8; 256],
    len: usize,
    long: Vec<u8>,
}

impl Scratch {
    pub(super) fn new() -> Scratch {
        Scratch {
            short: [0; 256],
            len: 0,
            long: Vec::new(),
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match self.long.is_empty() {
            true => &self.short[..self.len],
            false => &self.long,
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match self.long.is_empty() {
            true => &mut self.short[..self.len],
            false => &mut self.long,
        }
    }
}

impl Sink for Scratch {
    fn push(&mut self, byte: u8) {
        self.push_all(&[byte]);
    }
    fn push_all(&mut self, bytes: &[u8]) {
        if self.long.is_empty() {
            if let Some(room) = self.short.get_mut(self.len..self.len + bytes.len()) {
                room.copy_from_slice(bytes);
                self.len += bytes.len();
                return;
            }
            self.long.extend_from_slice(&self.short[..self.len]);
        }
        self.long.extend_from_slice(bytes);
    }
    fn expect_more(&mut self, _: usize) {}
}

impl Mapped {
    fn order(self) -> Order {
        match self {
            Mapped::German2 | Mapped::Thai | Mapped::Coded(..) => Order::Padded,
            Mapped::Czech | Mapped::Czech1250 => Order::Plain,
            Mapped::Unicode(_, base) => Order::By(base.known()),
        }
    }

    /// Appends the rewritten form of `s`.
    pub(super) fn rewrite(self, s: &[u8], out: &mut Scratch) {
        match self {
            Mapped::German2 => german2(s, out),
            Mapped::Czech => czech(s, out),
            Mapped::Czech1250 => {
                let spaces = s.iter().rev().take_while(|b| **b == b' ').count();
                czech1250(&s[..s.len() - spaces], out);
            }
            Mapped::Thai => thai(s, out),
            Mapped::Coded(set, By::Weights) if set.compares_bytes() => {
                s.iter().for_each(|b| out.push(set.byte_weight(*b)));
            }
            Mapped::Coded(set, By::Weights) => {
                let weights = set.has_compared_weights();
                coded(set, |code| set.weight(code).filter(|_| weights), s, out);
            }
            Mapped::Coded(_, By::Bytes) => out.push_all(s),
            Mapped::Unicode(encoding, _) => encoding.to_utf8(s, out),
        }
    }

    /// Appends the weights for WEIGHT_STRING: trailing spaces count, and Thai text ends at a zero
    /// byte, after which spaces follow.
    pub(super) fn rewrite_whole(self, s: &[u8], out: &mut Scratch) {
        match self {
            Mapped::Czech1250 => czech1250(s, out),
            Mapped::Thai => {
                let end = s.iter().position(|b| *b == 0).unwrap_or(s.len());
                thai(&s[..end], out);
                s[end..].iter().for_each(|_| out.push(b' '));
            }
            Mapped::Coded(set, By::Weights) => coded(set, |code| set.weight(code), s, out),
            _ => self.rewrite(s, out),
        }
    }

    pub(super) fn is_binary(self) -> bool {
        // The bases of ucs2_bin, utf16_bin, utf16le_bin and utf32_bin.
        let bin = CollationId::UTF8MB4_BIN;
        matches!(self, Mapped::Coded(_, By::Bytes))
            || matches!(self, Mapped::Unicode(_, base) if base == bin)
    }

    /// The utf8mb4 collation with the same weights.
    pub(super) fn base(self) -> Option<&'static Collation> {
        match self {
            Mapped::Unicode(_, base) => Some(base.known()),
            _ => None,
        }
    }

    pub(super) fn compare<P: Progress>(self, a: &[u8], b: &[u8], progress: &mut P) -> Ordering {
        let (mut x, mut y) = (Scratch::new(), Scratch::new());
        self.rewrite(a, &mut x);
        self.rewrite(b, &mut y);
        let (x, y) = (x.bytes(), y.bytes());
        match self.order() {
            Order::Padded => compare_bytes_padded(&IDENTITY, x, y, progress),
            Order::Plain => x.cmp(y),
            Order::By(base) => base.compare_by(x, y, progress),
        }
    }

    pub(super) fn push_key<S: Sink>(self, s: &[u8], out: &mut S) {
        let mut rewritten = Scratch::new();
        self.rewrite(s, &mut rewritten);
        match self.order() {
            Order::Padded => keys::push_bytes_padded(&IDENTITY, rewritten.bytes(), out),
            Order::Plain => out.push_all(rewritten.bytes()),
            Order::By(base) => base.push_key(rewritten.bytes(), out),
        }
    }

    /// Appends the common prefix of the keys of all strings for which LIKE finds the prefix
    /// `prefix`.
    pub(super) fn push_prefix(self, prefix: &[u8], out: &mut Vec<u8>) {
        let mut rewritten = Scratch::new();
        match self {
            Mapped::German2 => {
                let end = prefix.iter().position(|b| !weighs_alone(*b));
                german2(&prefix[..end.unwrap_or(prefix.len())], &mut rewritten);
                keys::push_bytes_unended(&IDENTITY, rewritten.bytes(), out);
            }
            Mapped::Coded(..) => {
                self.rewrite(prefix, &mut rewritten);
                keys::push_bytes_unended(&IDENTITY, rewritten.bytes(), out);
            }
            Mapped::Unicode(encoding, base) => {
                encoding.to_utf8(prefix, &mut rewritten);
                base.known().sort_key_prefix(rewritten.bytes(), out);
            }
            // Bytes of later passes, and marks that move, may be anywhere in the key.
            Mapped::Czech | Mapped::Czech1250 | Mapped::Thai => {}
        }
    }

    /// The maximum number of key bytes that one character adds, and the key length of the empty
    /// string.
    pub(super) fn key_len(self) -> (usize, usize) {
        match self {
            Mapped::German2 | Mapped::Thai => (4, 1),
            Mapped::Czech => (6, 6),
            // Each byte of a character may take two.
            Mapped::Coded(set, _) if set.has_four_bytes() => (8, 1),
            Mapped::Coded(..) => (6, 1),
            Mapped::Unicode(_, base) => {
                let none = base.known().max_sort_key_len(0);
                // A byte of no character may weigh as much as a character.
                (base.known().max_sort_key_len(1) - none, none)
            }
            Mapped::Czech1250 => (2, 0),
        }
    }

    /// For each byte, the byte that represents it in LIKE.
    pub(super) fn like_classes(self) -> &'static [u8; 256] {
        match self {
            Mapped::German2 => &GERMAN2.same,
            Mapped::Thai => &THAI.same,
            _ => &IDENTITY,
        }
    }

    /// For each byte, the byte that represents it in LOCATE.
    pub(super) fn locate_classes(self) -> &'static [u8; 256] {
        match self {
            Mapped::Czech => &CZECH.located,
            _ => self.like_classes(),
        }
    }
}

/// Appends the weights of an East Asian string. `weight` returns that of a two-byte character;
/// `None`: its code is the weight.
fn coded(set: &CodedSet, weight: impl Fn(u32) -> Option<u16>, s: &[u8], out: &mut Scratch) {
    let mut rest = s;
    while let Some((code, len)) = set.code(rest) {
        match len {
            1 => out.push(set.byte_weight(rest[0])),
            _ if set.has_four_bytes() => {
                let bytes = set.long_weight(code).unwrap_or(code).to_be_bytes();
                let zeros = bytes.iter().take_while(|b| **b == 0).count();
                out.push_all(&bytes[zeros..]);
            }
            2 => match weight(code) {
                Some(weight) => out.push_all(&weight.to_be_bytes()),
                None => out.push_all(&rest[..2]),
            },
            _ => out.push_all(&rest[..len]),
        }
        rest = &rest[len..];
    }
}

/// Compares the characters of an East Asian set for LIKE: single bytes by their weights, other
/// characters by their bytes.
pub(super) struct ByCode(pub(super) &'static CodedSet, pub(super) By);

impl ByCode {
    /// A character that represents a code. Multi-byte codes are not represented by ASCII.
    pub(super) fn unit(code: u32) -> Option<char> {
        char::from_u32(match code {
            0..0x100 => code,
            0x100..0x1_0000 => 0x1_0000 + code,
            _ => 0x2_0000 + (code & 0xFFFF),
        })
    }
}

impl Matcher for ByCode {
    fn next(&self, s: &[u8]) -> Option<(char, usize)> {
        let (code, len) = self.0.code(s)?;
        ByCode::unit(code).map(|c| (c, len))
    }

    fn same(&self, a: char, b: char) -> bool {
        let byte = |c| u8::try_from(u32::from(c));
        match (byte(a), byte(b)) {
            (Ok(a), Ok(b)) if self.1 == By::Weights => {
                self.0.byte_weight(a) == self.0.byte_weight(b)
            }
            _ => a == b,
        }
    }
}

fn german2(s: &[u8], out: &mut Scratch) {
    for b in s {
        match GERMAN2.weights[usize::from(*b)] {
            [first, 0] => out.push(first),
            both => out.push_all(&both),
        }
    }
}

/// Whether all bytes that LIKE takes for equal have one weight each, and the same one.
fn weighs_alone(b: u8) -> bool {
    let weights = GERMAN2.weights[usize::from(b)];
    let same = |c: &u8| GERMAN2.same[usize::from(*c)] == GERMAN2.same[usize::from(b)];
    weights[1] == 0
        && (0..=255)
            .filter(same)
            .all(|c| GERMAN2.weights[usize::from(c)] == weights)
}

/// Which of "ch", "Ch" and "CH" is at the front.
fn ch(s: &[u8]) -> Option<usize> {
    [b"ch", b"Ch", b"CH"]
        .iter()
        .position(|ch| s.starts_with(*ch))
}

/// Appends the weights of a word in one pass. With `one_word` the pass ends at a space. Returns the
/// length of the input that was read.
fn czech_pass(s: &[u8], pass: usize, one_word: bool, out: &mut Scratch) -> usize {
    let mut at = 0;
    while at < s.len() {
        if let Some(ch) = ch(&s[at..]) {
            out.push(CZECH.ch[ch][pass]);
            at += 2;
            continue;
        }
        match CZECH.passes[pass][usize::from(s[at])] {
            0 => at += 1,
            2 => {
                let space = |b: &u8| CZECH.passes[pass][usize::from(*b)] == 2;
                let run = s[at..].iter().take_while(|b| space(b)).count();
                if at + run == s.len() {
                    return s.len();
                }
                // The last pass counts spaces, the others do not.
                at += if pass < 3 { run } else { 1 };
                out.push(2);
                if one_word {
                    return at;
                }
            }
            weight => {
                out.push(weight);
                at += 1;
            }
        }
    }
    at
}

fn czech(s: &[u8], out: &mut Scratch) {
    let mut at = 0;
    loop {
        let len = czech_pass(&s[at..], 0, true, out);
        let last = at + len == s.len();
        if last {
            out.push(1);
        }
        czech_pass(&s[at..at + len], 1, true, out);
        if last {
            break;
        }
        // The space that ends the word in the first pass ends it in the second one.
        out.push(2);
        at += len;
    }
    out.push(1);
    czech_pass(s, 2, false, out);
    out.push(1);
    czech_pass(s, 3, false, out);
    out.push(0);
}

fn czech1250(s: &[u8], out: &mut Scratch) {
    for pass in 0..2 {
        let mut at = 0;
        while at < s.len() {
            match ch(&s[at..]) {
                Some(ch) => {
                    out.push(CZECH1250.ch[ch][pass]);
                    at += 2;
                }
                None => {
                    out.push(CZECH1250.passes[pass][usize::from(s[at])]);
                    at += 1;
                }
            }
        }
    }
}

/// The steps of MySQL's order: the weight of a mark replaces the last position, even that of
/// another mark.
fn thai(s: &[u8], out: &mut Scratch) {
    let is_consonant = |b: u8| (0xA1..=0xCE).contains(&b);
    let start = out.bytes().len();
    out.push_all(s);
    let text = &mut out.bytes_mut()[start..];
    let (mut at, mut left) = (0, text.len());
    let mut bias = 248_u8;
    while left > 0 {
        let b = text[at];
        if b < 0x80 || is_consonant(b) {
            bias = bias.wrapping_sub(8);
        }
        if (0xE0..=0xE4).contains(&b) && left != 1 && is_consonant(text[at + 1]) {
            text.swap(at, at + 1);
            (at, left) = (at + 2, left - 2);
            continue;
        }
        match THAI.levels[usize::from(b)] {
            0 => {
                text[at] = THAI.weights[usize::from(b)];
                at += 1;
            }
            level => {
                text.copy_within(at + 1..at + left, at);
                if let Some(last) = text.last_mut() {
                    *last = bias.wrapping_add(level);
                }
            }
        }
        left -= 1;
    }
}
