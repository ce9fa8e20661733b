//! Collations of one language: weights with contractions, comparison, and sort keys.
//!
//! # Picture
//! ```text
//! sort key, NO PAD      code* (00 accent*)*     a level each; `code` is that of the base (keys.rs)
//! sort key, PAD SPACE   (code | run of spaces)* END
//! accent                one byte for a weight below F0, else F0 + its high byte, and its low byte
//! ```
//! No weight of the higher levels is left out at the end of its level: contractions and overrides
//! do not keep invariant I3 of keys.rs.

use std::cmp::Ordering;

use super::GoesOn;
use super::compare::{Progress, against_spaces, order, starts_with};
use super::keys::{Code, Sink};
use super::tailoring::{Buffer, COMPLEX, LEVELS, Language, Tailoring};
use crate::charset::UTF8MB4;

/// Weights of a byte that belongs to no character, at each level.
const MALFORMED: [u16; LEVELS] = [0xFFFF, 0x20, 2, 0];

/// The collation of a language: this many levels of its tailoring, with PAD SPACE or NO PAD.
#[derive(Copy, Clone)]
pub(super) struct Tailored {
    pub(super) language: &'static Language,
    pub(super) levels: u8,
    pub(super) pad: bool,
}

/// The weights of a string at one level.
struct Weights<'a> {
    tailoring: &'static Tailoring,
    level: usize,
    rest: &'a [u8],
    pending: Pending,
}

/// The remaining weights of the last character or contraction.
struct Pending {
    weights: [u16; 48],
    at: usize,
    len: usize,
}

impl Pending {
    #[inline]
    fn set(&mut self, weights: &[u16]) {
        self.at = 0;
        self.len = weights.len().min(self.weights.len());
        self.weights[..self.len].copy_from_slice(&weights[..self.len]);
    }
}

impl<'a> Weights<'a> {
    #[inline]
    fn new(tailoring: &'static Tailoring, level: usize, s: &'a [u8]) -> Weights<'a> {
        Weights {
            tailoring,
            level,
            rest: s,
            pending: Pending {
                weights: [0; 48],
                at: 0,
                len: 0,
            },
        }
    }

    /// Takes the character or contraction at the front of the rest.
    #[inline(never)]
    fn take(&mut self) {
        let Some((c, len)) = UTF8MB4.decode(self.rest) else {
            let malformed = MALFORMED[self.level];
            self.pending.set(if malformed == 0 {
                &[]
            } else {
                std::slice::from_ref(&malformed)
            });
            self.rest = &self.rest[1..];
            return;
        };
        let (cp, rest) = (u32::from(c), self.rest);
        let next = |at: usize| {
            UTF8MB4
                .decode(&rest[at..])
                .map(|(c, len)| (u32::from(c), len))
        };
        if self.tailoring.joins(cp)
            && let Some((weights, len)) = self.tailoring.contraction(self.level, next)
        {
            self.pending.set(weights);
            self.rest = &rest[len..];
            return;
        }
        self.pending
            .set(self.tailoring.expand(cp, self.level, &mut Buffer::new()));
        self.rest = &rest[len..];
    }
}

impl Iterator for Weights<'_> {
    type Item = u16;

    #[inline]
    fn next(&mut self) -> Option<u16> {
        loop {
            if self.pending.at < self.pending.len {
                self.pending.at += 1;
                return Some(self.pending.weights[self.pending.at - 1]);
            }
            let &first = self.rest.first()?;
            if first < 0x80 {
                let weight = self.tailoring.ascii[self.level][usize::from(first)];
                if weight != COMPLEX {
                    self.rest = &self.rest[1..];
                    if weight != 0 {
                        return Some(weight);
                    }
                    continue;
                }
            }
            self.take();
        }
    }
}

impl Tailored {
    /// Whether letters have Turkish case pairs.
    pub(super) const fn is_turkish(self) -> bool {
        self.pad && self.language.is_turkish()
    }

    #[inline]
    fn tailoring(self) -> &'static Tailoring {
        self.language.tailoring()
    }

    fn weights(self, level: usize, s: &[u8]) -> Weights<'_> {
        Weights::new(self.tailoring(), level, s)
    }

    fn space(self) -> u16 {
        self.tailoring().ascii[0][0x20]
    }

    /// The length of the common prefix, at the start of a character in both strings that is not
    /// part of a contraction with the one before.
    fn common_prefix(self, a: &[u8], b: &[u8]) -> usize {
        let mut at = a.iter().zip(b).take_while(|(x, y)| x == y).count();
        let inside = |s: &[u8], at: usize| s.get(at).is_some_and(|&x| x & 0xC0 == 0x80);
        let tailoring = self.tailoring();
        loop {
            while at > 0 && (inside(a, at) || inside(b, at)) {
                at -= 1;
            }
            if at == 0 || !tailoring.has_contractions() {
                return at;
            }
            let mut start = at - 1;
            while start > 0 && inside(a, start) {
                start -= 1;
            }
            match UTF8MB4.decode(&a[start..at]) {
                Some((c, len)) if start + len == at && tailoring.joins(u32::from(c)) => at = start,
                _ => return at,
            }
        }
    }

    pub(super) fn compare<P: Progress>(self, a: &[u8], b: &[u8], progress: &mut P) -> Ordering {
        let at = self.common_prefix(a, b);
        let (a, b) = (&a[at..], &b[at..]);
        let first = self.compare_first(a, b, progress);
        (1..usize::from(self.levels)).fold(first, |before, level| {
            before.then_with(|| order(self.weights(level, a), self.weights(level, b), progress))
        })
    }

    fn compare_first<P: Progress>(self, a: &[u8], b: &[u8], progress: &mut P) -> Ordering {
        let (mut a, mut b) = (self.weights(0, a), self.weights(0, b));
        if !self.pad {
            return order(a, b, progress);
        }
        let space = self.space();
        while progress.step() {
            match (a.next(), b.next()) {
                (Some(x), Some(y)) if x == y => {}
                (None, None) => return Ordering::Equal,
                (Some(x), Some(y)) => return x.cmp(&y),
                (Some(x), None) => return against_spaces(x, a, space, progress),
                (None, Some(y)) => return against_spaces(y, b, space, progress).reverse(),
            }
        }
        Ordering::Equal
    }

    pub(super) fn push_key<S: Sink>(self, s: &[u8], out: &mut S) {
        self.push_first(s, out);
        if self.pad {
            self.tailoring().base.codes.spaces().push_end(out);
        }
        for level in 1..usize::from(self.levels) {
            out.push(0);
            for w in self.weights(level, s) {
                match w {
                    0..0xF0 => out.push(w as u8),
                    _ => out.push_all(&[0xF0 + (w >> 8).min(0x0F) as u8, w as u8]),
                }
            }
        }
    }

    /// Appends the codes of the first level; with PAD SPACE, without the spaces at the end.
    fn push_first<S: Sink>(self, s: &[u8], out: &mut S) {
        out.expect_more(s.len() + 1);
        let (codes, space) = (&self.tailoring().base.codes, self.space());
        let (mut run, mut code) = (0, Code::default());
        for w in self.weights(0, s) {
            if self.pad && w == space && !code.is_second_half() {
                run += 1;
                continue;
            }
            if run > 0 {
                codes.spaces().push_run(run, w < space, out);
                run = 0;
            }
            codes.push(w, &mut code, out);
        }
    }

    /// Appends the common prefix of the keys of all strings that begin with the characters of
    /// `prefix`, or with others that LIKE takes for equal. Ends where a contraction may begin.
    pub(super) fn push_prefix<S: Sink>(self, prefix: &[u8], out: &mut S) {
        let tailoring = self.tailoring();
        let mut end = prefix.len();
        if tailoring.has_contractions() {
            let mut at = 0;
            while at < prefix.len() {
                let (joins, len) = match UTF8MB4.decode(&prefix[at..]) {
                    Some((c, len)) => (tailoring.resembles_joining(u32::from(c)), len),
                    None => (true, 1),
                };
                if joins {
                    end = at;
                    break;
                }
                at += len;
            }
        }
        self.push_first(&prefix[..end], out);
    }

    /// Whether the weights of `prefix` begin those of `s` at each level. Also false if `goes_on`
    /// returns false.
    pub(super) fn has_prefix(self, s: &[u8], prefix: &[u8], goes_on: GoesOn<'_>) -> bool {
        (0..usize::from(self.levels))
            .all(|level| starts_with(self.weights(level, s), self.weights(level, prefix), goes_on))
    }

    /// Appends MySQL's weights: two bytes each, levels apart by a zero (the fourth level is left
    /// out where it is empty).
    pub(super) fn weight_string(self, s: &[u8], out: &mut Vec<u8>) {
        for level in 0..usize::from(self.levels) {
            let start = out.len();
            if level > 0 {
                out.extend([0, 0]);
            }
            let empty = out.len();
            for w in self.weights(level, s) {
                out.extend(w.to_be_bytes());
            }
            if level == 3 && out.len() == empty {
                out.truncate(start);
            }
        }
    }

    pub(super) fn same_char(self, a: char, b: char) -> bool {
        // LIKE ignores the fourth level: Hiragana equals Katakana.
        self.tailoring()
            .same_char(a, b, usize::from(self.levels.min(3)))
    }

    /// The most bytes that a character adds to a key.
    pub(super) fn longest_code(self) -> usize {
        // A character of the base has at most 18 weights at each level; a weight takes at most
        // three bytes, and may be preceded by another one.
        6 * self
            .tailoring()
            .most_weights
            .max(18 * usize::from(self.levels))
    }
}
