//! Case folding of single characters and of texts.

mod data;

use std::sync::OnceLock;

use data::{FULL, SIMPLE};

/// The one character that `c` folds to without regard to case.
#[inline]
pub fn simple(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_lowercase();
    }
    let code = u32::from(c);
    let place = SIMPLE.partition_point(|(_, last, _, _)| *last < code);
    match SIMPLE.get(place) {
        Some(&(first, _, step, delta)) if first <= code && (code - first) % step == 0 => {
            let folded = code.checked_add_signed(delta).and_then(char::from_u32);
            folded.unwrap_or(c)
        }
        _ => c,
    }
}

/// The two or three characters that `c` folds to, where it folds to several.
pub fn full(c: char) -> Option<&'static str> {
    let place = FULL.binary_search_by_key(&c, |(from, _)| *from).ok()?;
    Some(FULL[place].1)
}

/// Whether other characters fold to the same as `c` does.
pub fn is_cased(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphabetic();
    }
    full(c).is_some() || !equals_between(c, c).is_empty()
}

/// For every character with another case: the character, and the one that both fold to or that
/// folds to it, in order of the characters.
pub fn equals_between(first: char, last: char) -> &'static [(char, char)] {
    static EQUALS: OnceLock<Vec<(char, char)>> = OnceLock::new();
    let equals = EQUALS.get_or_init(all_equals);
    let start = equals.partition_point(|(c, _)| *c < first);
    let end = equals.partition_point(|(c, _)| *c <= last);
    &equals[start..end.max(start)]
}

/// All pairs of different characters that fold to the same.
fn all_equals() -> Vec<(char, char)> {
    let mut by_folding: Vec<(char, char)> = Vec::new();
    for &(first, last, step, _) in &SIMPLE {
        for c in (first..=last)
            .step_by(step as usize)
            .filter_map(char::from_u32)
        {
            by_folding.push((simple(c), c));
            by_folding.push((simple(c), simple(c)));
        }
    }
    for c in 'A'..='Z' {
        by_folding.push((simple(c), c));
        by_folding.push((simple(c), simple(c)));
    }
    by_folding.sort_unstable();
    by_folding.dedup();
    let mut pairs = Vec::new();
    for class in by_folding.chunk_by(|a, b| a.0 == b.0) {
        for (_, a) in class {
            pairs.extend(class.iter().map(|(_, b)| (*a, *b)).filter(|(a, b)| a != b));
        }
    }
    pairs.sort_unstable();
    pairs
}

/// The folded characters of a text, one after the other.
#[derive(Debug, Clone)]
pub struct Folded<'t> {
    text: &'t [u8],
    /// Byte offset of the next character.
    pub at: usize,
    end: usize,
    /// The rest of a character's folding.
    rest: std::str::Chars<'static>,
}

impl<'t> Folded<'t> {
    /// `text` is UTF-8 and `at` and `end` are character boundaries.
    pub fn new(text: &'t [u8], at: usize, end: usize) -> Self {
        Folded {
            text,
            at,
            end,
            rest: "".chars(),
        }
    }

    /// Whether the last character's folding was not read to its end.
    pub fn is_inside(&self) -> bool {
        !self.rest.as_str().is_empty()
    }
}

impl Iterator for Folded<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        if let Some(c) = self.rest.next() {
            return Some(c);
        }
        if self.at >= self.end {
            return None;
        }
        let (c, len) = crate::text::char_at(self.text, self.at);
        self.at += len;
        if c.is_ascii() {
            return Some(c.to_ascii_lowercase());
        }
        match full(c) {
            None => Some(simple(c)),
            Some(folding) => {
                self.rest = folding.chars();
                self.rest.next()
            }
        }
    }
}
