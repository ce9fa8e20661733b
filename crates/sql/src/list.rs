//! Lists of literals: recognized in a single scan, and later read value by value.
//!
//! The scan of the digest and the reader of the values both use [`element`], so they cannot
//! disagree about where a member ends.

use crate::digest::KindSet;
use crate::keywords::Kw;
use crate::lexer::{LexMode, Lexer, TokenKind, is_space, string_end};
use crate::literal::{Lit, integer, raw_string};
use crate::watch::{STRIDE, Watch, look};

/// The members of a list between two checks of the statement's checkpoint.
const MEMBERS: u32 = 1024;

/// A scanned list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScannedList {
    /// The offset after the last closing parenthesis.
    pub end: usize,
    pub width: u32,
    pub count: u32,
    /// Whether the members are rows in parentheses.
    pub rows: bool,
    pub kinds: KindSet,
}

/// Scans `(1, 2, …)` or `((1,2), (3,4), …)` from its opening parenthesis on. `None` if a member is
/// not a literal, if the rows have different widths, or if there is a comment inside. A single row
/// is no list: IN compares it as `=` does, whose constants MySQL converts before the first row.
pub(crate) fn scan_list(
    text: &[u8],
    open: usize,
    mode: LexMode,
    watch: Option<&Watch<'_>>,
) -> Option<ScannedList> {
    let first = skip_blanks(text, open + 1);
    if text.get(first) != Some(&b'(') {
        let (end, count, kinds) = scan_members(text, open, mode, watch)?;
        return Some(ScannedList {
            end,
            width: 1,
            count,
            rows: false,
            kinds,
        });
    }
    let mut found = scan_row_list(text, first, mode, watch)?;
    found.end = skip_blanks(text, found.end);
    if text.get(found.end) != Some(&b')') || found.width < 2 || found.count < 2 {
        return None;
    }
    found.end += 1;
    Some(found)
}

/// Scans `(1,2), (3,4), …` from the first opening parenthesis on.
pub(crate) fn scan_rows(
    text: &[u8],
    open: usize,
    mode: LexMode,
    watch: Option<&Watch<'_>>,
) -> Option<ScannedList> {
    scan_row_list(text, open, mode, watch)
}

fn scan_row_list(
    text: &[u8],
    open: usize,
    mode: LexMode,
    watch: Option<&Watch<'_>>,
) -> Option<ScannedList> {
    let (mut end, width, mut kinds) = scan_members(text, open, mode, watch)?;
    let (mut count, mut looked) = (1, open);
    loop {
        let comma = skip_blanks(text, end);
        if text.get(comma) != Some(&b',') {
            return Some(ScannedList {
                end,
                width,
                count,
                rows: true,
                kinds,
            });
        }
        let open = skip_blanks(text, comma + 1);
        if text.get(open) != Some(&b'(') {
            return None;
        }
        if end - looked >= STRIDE {
            if !look(watch, end - looked) {
                return None;
            }
            looked = end;
        }
        let (row_end, row_width, row_kinds) = scan_members(text, open, mode, watch)?;
        if row_width != width {
            return None;
        }
        kinds = kinds.union(row_kinds);
        count += 1;
        end = row_end;
    }
}

/// Scans `(a, b, …)`. Returns its end, the number of members, and their kinds.
#[inline]
fn scan_members(
    text: &[u8],
    open: usize,
    mode: LexMode,
    watch: Option<&Watch<'_>>,
) -> Option<(usize, u32, KindSet)> {
    let (mut at, mut count, mut kinds) = (open + 1, 0, KindSet::default());
    loop {
        at = skip_blanks(text, at);
        let end = match plain_string_end(text, at, mode) {
            Some(end) => {
                kinds = kinds.union(KindSet::STRING);
                end
            }
            None => {
                let (lit, end) = element(text, at, mode)?;
                kinds = kinds.union(KindSet::of(&lit));
                end
            }
        };
        count += 1;
        if count % MEMBERS == 0 && !look(watch, MEMBERS as usize) {
            return None;
        }
        at = skip_blanks(text, end);
        match text.get(at)? {
            b',' => at += 1,
            b')' => return Some((at + 1, count, kinds)),
            _ => return None,
        }
    }
}

#[inline]
fn skip_blanks(text: &[u8], mut at: usize) -> usize {
    while text.get(at).is_some_and(|&b| is_space(b)) {
        at += 1;
    }
    at
}

/// The bytes that are examined for the end of a string before the general search.
const SHORT_STRING: usize = 16;
/// The least length of a text, in bytes, in which short strings are looked for. Shorter texts have
/// few strings, and a long one among them costs more than the search saves.
const LEAST_TEXT: usize = 1024;

/// The end of the string in single quotes at `at`, if it is short and has neither escapes nor
/// doubled quotes. Eight bytes are examined together, because a call of the general search takes
/// longer than that.
#[inline]
fn plain_string_end(text: &[u8], at: usize, mode: LexMode) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    // The high bit of the first zero byte, and possibly of bytes after it.
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & (ONES << 7);
    if text.len() < LEAST_TEXT || text.get(at) != Some(&b'\'') {
        return None;
    }
    let no_backslash = mode.has(LexMode::NO_BACKSLASH_ESCAPES);
    for from in (at + 1..at + 1 + SHORT_STRING).step_by(8) {
        let word = u64::from_le_bytes(*text.get(from..)?.first_chunk()?);
        let mut special = zeros(word ^ (ONES * u64::from(b'\'')));
        if !no_backslash {
            special |= zeros(word ^ (ONES * u64::from(b'\\')));
        }
        if special != 0 {
            let end = from + special.trailing_zeros() as usize / 8;
            let is_plain = text[end] == b'\'' && text.get(end + 1) != Some(&b'\'');
            return is_plain.then_some(end + 1);
        }
    }
    None
}

/// Parses the literal at `at`. Also returns its end. A number may have one sign.
#[inline]
fn element(text: &[u8], at: usize, mode: LexMode) -> Option<(Lit<'_>, usize)> {
    match *text.get(at)? {
        b'0'..=b'9' => number(text, at, false, mode),
        quote @ (b'\'' | b'"') => {
            if quote == b'"' && mode.has(LexMode::ANSI_QUOTES) {
                return None;
            }
            let end = string_end(text, at, mode.has(LexMode::NO_BACKSLASH_ESCAPES), None)?;
            Some((Lit::String(raw_string(&text[at..end], mode, false)), end))
        }
        sign @ (b'-' | b'+') => {
            let digits = skip_blanks(text, at + 1);
            if sign == b'-' && text.get(at + 1) == Some(&b'-')
                || !matches!(text.get(digits), Some(b'0'..=b'9' | b'.'))
            {
                return None;
            }
            number(text, digits, sign == b'-', mode)
        }
        _ => other(text, at, mode),
    }
}

/// Whether a byte certainly ends an integer in a list.
#[inline]
fn ends_integer(b: u8) -> bool {
    matches!(b, b',' | b')' | b' ')
}

/// Parses one to seven digits at `at` that are followed by a byte that [ends an
/// integer](ends_integer). Also returns the number of digits. All eight bytes are examined
/// together.
///
/// Source: Daniel Lemire, "Quickly parsing eight digits" (2018).
#[inline]
fn short_integer(text: &[u8], at: usize) -> Option<(u64, usize)> {
    let word = u64::from_le_bytes(*text.get(at..)?.first_chunk()?);
    let digits = word ^ 0x3030_3030_3030_3030;
    // The high bit of the first byte that is not a digit, and possibly of bytes after it.
    let others = (digits.wrapping_add(0x7676_7676_7676_7676) | digits) & 0x8080_8080_8080_8080;
    let count = others.trailing_zeros() as usize / 8;
    if !(1..8).contains(&count) || !ends_integer((word >> (8 * count)) as u8) {
        return None;
    }
    // Shifted so that zeros precede the digits, which makes eight.
    let eight = digits << (64 - 8 * count);
    let pairs = (eight.wrapping_mul(2561) >> 8) & 0x00FF_00FF_00FF_00FF;
    let fours = (pairs.wrapping_mul(6_553_601) >> 16) & 0x0000_FFFF_0000_FFFF;
    Some((fours.wrapping_mul(42_949_672_960_001) >> 32, count))
}

/// Parses a number. Plain integers have a fast path.
#[inline]
fn number(text: &[u8], at: usize, negative: bool, mode: LexMode) -> Option<(Lit<'_>, usize)> {
    if let Some((value, count)) = short_integer(text, at) {
        return Some((Lit::Int { negative, value }, at + count));
    }
    long_number(text, at, negative, mode)
}

#[inline(never)]
fn long_number(text: &[u8], at: usize, negative: bool, mode: LexMode) -> Option<(Lit<'_>, usize)> {
    let mut end = at;
    while text.get(end).is_some_and(u8::is_ascii_digit) {
        end += 1;
    }
    if end > at && text.get(end).copied().is_some_and(ends_integer) {
        return Some((integer(negative, &text[at..end]), end));
    }
    let (lit, end) = other(text, at, mode)?;
    let signed = match lit {
        Lit::Int { value, .. } => Lit::Int { negative, value },
        Lit::Decimal { text, .. } => Lit::Decimal { negative, text },
        Lit::Float { text, .. } => Lit::Float { negative, text },
        other if !negative => other,
        _ => return None,
    };
    Some((signed, end))
}

/// Parses any other literal with the lexer.
fn other(text: &[u8], at: usize, mode: LexMode) -> Option<(Lit<'_>, usize)> {
    let mut lexer = Lexer::new(text, mode);
    lexer.jump(at);
    let token = lexer.next_token();
    if token.start as usize != at {
        return None;
    }
    let lit = match (token.kind, token.kw) {
        (TokenKind::Word, Kw::NULL) => Lit::Null,
        (TokenKind::Word, Kw::TRUE) => Lit::Bool(true),
        (TokenKind::Word, Kw::FALSE) => Lit::Bool(false),
        (kind, _) => Lit::read(kind, token.text(text), mode)?,
    };
    Some((lit, token.end as usize))
}

/// Iterates over the literals of a folded list, directly from the text. Rows are flattened.
#[derive(Clone, Debug)]
pub struct ListIter<'t> {
    text: &'t [u8],
    at: usize,
    mode: LexMode,
}

impl<'t> ListIter<'t> {
    /// `text` is the span of a list or rows slot.
    pub(crate) fn new(text: &'t [u8], mode: LexMode) -> Self {
        ListIter { text, at: 0, mode }
    }

    /// Moves to the next member, for [`plain_string`](Self::plain_string) and
    /// [`literal`](Self::literal).
    #[inline]
    pub fn advance(&mut self) {
        while matches!(
            self.text.get(self.at),
            Some(b',' | b'(' | b')' | b' ' | b'\t'..=b'\r')
        ) {
            self.at += 1;
        }
    }

    /// Reads the member without its quotes, if it is a short string without escapes. Otherwise
    /// `None`, and [`literal`](Self::literal) reads it.
    #[inline]
    pub fn plain_string(&mut self) -> Option<&'t [u8]> {
        let end = plain_string_end(self.text, self.at, self.mode)?;
        let plain = &self.text[self.at + 1..end - 1];
        self.at = end;
        Some(plain)
    }

    /// Reads the member; `None` at the end of the list.
    #[inline]
    pub fn literal(&mut self) -> Option<Lit<'t>> {
        let (lit, end) = element(self.text, self.at, self.mode)?;
        self.at = end;
        Some(lit)
    }
}

impl<'t> Iterator for ListIter<'t> {
    type Item = Lit<'t>;

    #[inline]
    fn next(&mut self) -> Option<Lit<'t>> {
        self.advance();
        self.literal()
    }
}
