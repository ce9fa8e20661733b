//! Operations that match characters or test a position.

use super::{UNSET, char_at, grapheme, line_end_at, line_end_before, previous};
use crate::fold::{self, Folded};
use crate::node::{Assertion, Dot};
use crate::program::{Op, Regexp, group_slot};
use crate::unicode::classes::{is_combining, is_word};

/// What the operations see of a search.
pub(super) struct View<'v> {
    pub regexp: &'v Regexp,
    pub text: &'v [u8],
    /// Where the text that may be matched ends: earlier than the text itself in a look-behind.
    pub limit: usize,
    /// End of the match before.
    pub previous_end: Option<usize>,
}

impl View<'_> {
    /// The position after what `op` matches at `at`.
    #[inline]
    pub fn consume(&self, op: Op, at: usize, slots: &[usize]) -> Option<usize> {
        match op {
            Op::Bytes { start, len } => {
                let literal = &self.regexp.literals[start as usize..(start + len) as usize];
                let end = at + literal.len();
                (end <= self.limit && self.text[at..end] == *literal).then_some(end)
            }
            Op::FoldAscii { start, len } => self.fold_ascii(start as usize, len as usize, at),
            Op::FoldChars { start, len } => {
                let folded = &self.regexp.folded[start as usize..(start + len) as usize];
                self.fold_chars(folded.iter().copied(), at)
            }
            Op::FoldChar(c) => {
                let (found, len) = self.char(at)?;
                (fold::simple(found) == c).then_some(at + len)
            }
            Op::Set(set) => {
                let (found, len) = self.char(at)?;
                self.regexp.sets[set as usize]
                    .has(found)
                    .then_some(at + len)
            }
            Op::Dot(dot) => self.dot(dot, at),
            Op::Assert(assertion) => self.holds(assertion, at).then_some(at),
            Op::LineBreak => self.line_break(at),
            Op::Grapheme if at < self.limit => Some(grapheme::end(self.text, at, self.limit)),
            Op::BackReference { group, fold } => self.back_reference(group, fold, at, slots),
            _ => None,
        }
    }

    #[inline]
    fn char(&self, at: usize) -> Option<(char, usize)> {
        (at < self.limit).then(|| char_at(self.text, at))
    }

    fn fold_ascii(&self, start: usize, len: usize, at: usize) -> Option<usize> {
        let literal = &self.regexp.literals[start..start + len];
        let text = &self.text[at..self.limit];
        for (n, byte) in literal.iter().enumerate() {
            let found = text.get(n)?;
            if !found.is_ascii() {
                // A character beyond ASCII may fold to ASCII ones.
                let rest = literal[n..].iter().map(|b| char::from(*b));
                return self.fold_chars(rest, at + n);
            }
            if found.to_ascii_lowercase() != *byte {
                return None;
            }
        }
        Some(at + len)
    }

    fn fold_chars(&self, folded: impl Iterator<Item = char>, at: usize) -> Option<usize> {
        let mut text = Folded::new(self.text, at, self.limit);
        for c in folded {
            if text.next()? != c {
                return None;
            }
        }
        (!text.is_inside()).then_some(text.at)
    }

    #[inline]
    pub fn dot(&self, dot: Dot, at: usize) -> Option<usize> {
        if at >= self.limit {
            return None;
        }
        let first = self.text[at];
        match dot {
            Dot::Line if line_end_at(self.text, at) > 0 => None,
            Dot::UnixLine if first == 0x0a => None,
            Dot::All if first == 0x0d && self.is_line_feed(at + 1) => Some(at + 2),
            _ => Some(at + char_at(self.text, at).1),
        }
    }

    fn is_line_feed(&self, at: usize) -> bool {
        at < self.limit && self.text[at] == 0x0a
    }

    fn line_break(&self, at: usize) -> Option<usize> {
        let len = if at < self.limit {
            line_end_at(self.text, at)
        } else {
            0
        };
        match len {
            0 => None,
            1 if self.text[at] == 0x0d && self.is_line_feed(at + 1) => Some(at + 2),
            _ => Some(at + len),
        }
    }

    fn holds(&self, assertion: Assertion, at: usize) -> bool {
        let (text, end) = (self.text, self.text.len());
        let byte_before = |b: u8| at > 0 && text[at - 1] == b;
        // Not between CR and LF.
        let at_line_end = |at: usize| {
            let len = line_end_at(text, at);
            len > 0 && !(text[at] == 0x0a && byte_before(0x0d))
        };
        match assertion {
            Assertion::TextStart => at == 0,
            Assertion::LineStart => at == 0 || (at < end && line_end_before(text, at) > 0),
            Assertion::UnixLineStart => at == 0 || byte_before(0x0a),
            Assertion::VeryEnd => at >= end,
            Assertion::TextEnd => {
                at >= end || text[at..] == *b"\r\n" || {
                    let len = line_end_at(text, at);
                    at + len == end && at_line_end(at)
                }
            }
            Assertion::UnixTextEnd => at >= end || text[at..] == *b"\n",
            Assertion::LineEnd => at >= end || at_line_end(at),
            Assertion::UnixLineEnd => at >= end || text[at] == 0x0a,
            Assertion::WordBoundary => self.is_word_boundary(at),
            Assertion::NoWordBoundary => !self.is_word_boundary(at),
            Assertion::MatchEnd => at == self.previous_end.unwrap_or(0),
        }
    }

    fn is_word_boundary(&self, at: usize) -> bool {
        let mut is_inside = false;
        if at < self.text.len() {
            let (c, _) = char_at(self.text, at);
            // What combines with the character before is no boundary.
            if !c.is_ascii() && is_combining(c) {
                return false;
            }
            is_inside = is_word(c);
        }
        let mut start = at;
        let mut follows = false;
        while start > 0 {
            start = previous(self.text, start);
            let (c, _) = char_at(self.text, start);
            if c.is_ascii() || !is_combining(c) {
                follows = is_word(c);
                break;
            }
        }
        is_inside != follows
    }

    fn back_reference(&self, group: u32, fold: bool, at: usize, slots: &[usize]) -> Option<usize> {
        let slot = group_slot(group);
        let (start, end) = (slots[slot], slots[slot + 1]);
        if start == UNSET || end == UNSET {
            return None;
        }
        if fold {
            return self.fold_chars(Folded::new(self.text, start, end), at);
        }
        let after = at + (end - start);
        (after <= self.limit && self.text[at..after] == self.text[start..end]).then_some(after)
    }
}
