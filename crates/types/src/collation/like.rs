//! LIKE: `%` matches any number of characters, `_` one character, and the escape character makes
//! the next one literal.
//!
//! Characters are compared one by one, as in MySQL, so 'ß' = 'ss' but not 'ß' LIKE 'ss', and
//! trailing spaces count. After a mismatch the search continues from the last `%`, one character
//! further. Earlier `%` cannot help, so the time is at most the product of the lengths, and nothing
//! recurses.

use crate::charset::Charset;

/// The number of bytes searched for a character between two checkpoints.
const FIND_BYTES: usize = 32 << 10;
/// The work between two checkpoints, and that of one step.
const LOOK_WORK: u64 = 40_000;
const STEP_WORK: u64 = 10;

/// Finds and compares characters of one collation.
pub(super) trait Matcher {
    /// The first character and its length in bytes; `s` is not empty. `None`: malformed.
    fn next(&self, s: &[u8]) -> Option<(char, usize)>;
    /// Whether two characters are equal.
    fn same(&self, a: char, b: char) -> bool;
    /// The offset of the first character equal to `c`. If none is within the first [`FIND_BYTES`],
    /// the offset of a character about there. `None`: there is none before the end or before
    /// malformed bytes.
    #[inline]
    fn find(&self, s: &[u8], c: char) -> Option<usize> {
        let mut at = 0;
        while let Some(rest) = s.get(at..).filter(|rest| !rest.is_empty()) {
            let (found, len) = self.next(rest)?;
            if self.same(found, c) || at >= FIND_BYTES {
                return Some(at);
            }
            at += len;
        }
        None
    }
}

/// Characters of a set, compared by a function.
pub(super) struct ByChar<F> {
    pub(super) charset: &'static Charset,
    pub(super) same: F,
}

impl<F: Fn(char, char) -> bool> Matcher for ByChar<F> {
    #[inline]
    fn next(&self, s: &[u8]) -> Option<(char, usize)> {
        self.charset.decode(s)
    }
    #[inline]
    fn same(&self, a: char, b: char) -> bool {
        (self.same)(a, b)
    }
}

/// Compares bytes by their weights. A byte is represented by the code point of its value.
pub(super) struct ByByte<'a>(pub(super) &'a [u8; 256]);

impl Matcher for ByByte<'_> {
    #[inline]
    fn next(&self, s: &[u8]) -> Option<(char, usize)> {
        s.first().map(|&b| (char::from(b), 1))
    }
    #[inline]
    fn same(&self, a: char, b: char) -> bool {
        let weight = |c: char| self.0[usize::from(u32::from(c) as u8)];
        weight(a) == weight(b)
    }
}

/// Bytes that are the same only if they are equal.
pub(super) struct Bytes;

impl Matcher for Bytes {
    #[inline]
    fn next(&self, s: &[u8]) -> Option<(char, usize)> {
        s.first().map(|&b| (char::from(b), 1))
    }
    #[inline]
    fn same(&self, a: char, b: char) -> bool {
        u32::from(a) as u8 == u32::from(b) as u8
    }
    #[inline]
    fn find(&self, s: &[u8], c: char) -> Option<usize> {
        let piece = &s[..s.len().min(FIND_BYTES)];
        memchr::memchr(u32::from(c) as u8, piece).or((piece.len() < s.len()).then_some(FIND_BYTES))
    }
}

/// One element of a pattern.
enum Element {
    Literal(char),
    One,
    Many,
}

/// The element at the start of a pattern that is not empty, and its length in bytes.
#[inline]
fn element<M: Matcher>(m: &M, pattern: &[u8], escape: Option<char>) -> Option<(Element, usize)> {
    let (c, len) = m.next(pattern)?;
    if Some(c) == escape && len < pattern.len() {
        let (c, next) = m.next(&pattern[len..])?;
        return Some((Element::Literal(c), len + next));
    }
    // An escape character at the end of the pattern is literal.
    let element = match c {
        '%' if escape != Some('%') => Element::Many,
        '_' if escape != Some('_') => Element::One,
        _ => Element::Literal(c),
    };
    Some((element, len))
}

/// Whether all of `text` matches `pattern`. Malformed text or pattern does not match from the
/// malformed byte on.
pub(super) fn like<M: Matcher>(
    m: &M,
    text: &[u8],
    pattern: &[u8],
    escape: Option<char>,
    goes_on: super::GoesOn<'_>,
) -> bool {
    let (mut t, mut p) = (0, 0);
    let mut work = 0;
    // Where to continue after a mismatch: the pattern after the last '%', and the text not consumed
    // by it.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        work += STEP_WORK;
        if work >= LOOK_WORK {
            if !goes_on(work) {
                return false;
            }
            work = 0;
        }
        let step = if p == pattern.len() {
            if t == text.len() {
                return true;
            }
            None
        } else {
            match element(m, &pattern[p..], escape) {
                None => return false,
                Some((Element::Many, len)) => {
                    p += len;
                    if p == pattern.len() {
                        return true;
                    }
                    retry = Some((p, t));
                    continue;
                }
                Some(_) if t == text.len() => return false,
                Some((element, len)) => match (m.next(&text[t..]), element) {
                    (None, _) => return false,
                    (Some((c, at)), Element::Literal(l)) if m.same(c, l) => Some((at, len)),
                    (Some((_, at)), Element::One) => Some((at, len)),
                    _ => None,
                },
            }
        };
        if let Some((text_len, pattern_len)) = step {
            t += text_len;
            p += pattern_len;
            continue;
        }
        let Some((behind, from)) = retry else {
            return false;
        };
        let Some((_, len)) = text.get(from..).and_then(|s| m.next(s)) else {
            return false;
        };
        let mut from = from + len;
        // Skips positions where the next literal does not occur.
        if let Some((Element::Literal(literal), _)) = element(m, &pattern[behind..], escape) {
            match m.find(&text[from..], literal) {
                Some(at) => {
                    from += at;
                    work += at as u64;
                }
                None => return false,
            }
        }
        retry = Some((behind, from));
        (p, t) = (behind, from);
    }
}

/// The literal prefix of a pattern, and what it tells about matching texts.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum LikePrefix {
    /// The pattern has no wildcard: only the literal itself matches.
    Whole,
    /// The literal, then one or more `%` to the end.
    Begins,
    /// The literal, then other wildcards.
    Other,
}

/// Appends the literal prefix of the pattern, without escape characters.
pub(super) fn literal_prefix<M: Matcher>(
    m: &M,
    pattern: &[u8],
    escape: Option<char>,
    out: &mut Vec<u8>,
) -> LikePrefix {
    let mut at = 0;
    while at < pattern.len() {
        match element(m, &pattern[at..], escape) {
            Some((Element::Literal(_), len)) => {
                // The literal follows the escape character, if there is one.
                let first = m.next(&pattern[at..]).map_or(0, |(_, len)| len);
                let literal = if first < len { at + first } else { at };
                out.extend_from_slice(&pattern[literal..at + len]);
                at += len;
            }
            Some((Element::Many, _)) => {
                let mut rest = &pattern[at..];
                while let Some((Element::Many, len)) = element(m, rest, escape) {
                    rest = &rest[len..];
                }
                return if rest.is_empty() {
                    LikePrefix::Begins
                } else {
                    LikePrefix::Other
                };
            }
            Some((Element::One, _)) | None => return LikePrefix::Other,
        }
    }
    LikePrefix::Whole
}
