//! Sets of characters, and the names of properties.

mod blocks;
pub(crate) mod classes;
mod property;

use std::hash::{Hash, Hasher};

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

pub(crate) use property::{named_char, property};

use crate::fold;

/// A set of characters, ready to be searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CharSet {
    class: ClassUnicode,
}

impl Hash for CharSet {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for range in self.class.ranges() {
            (range.start(), range.end()).hash(state);
        }
    }
}

impl Default for CharSet {
    fn default() -> Self {
        CharSet {
            class: ClassUnicode::empty(),
        }
    }
}

impl CharSet {
    /// The characters from `first` to `last`; surrogates are left out.
    pub fn range(first: u32, last: u32) -> Self {
        let mut set = CharSet::default();
        set.add(i64::from(first), i64::from(last));
        set
    }

    pub(super) fn from_class(class: ClassUnicode) -> Self {
        CharSet { class }
    }

    /// Adds a range of code points. Numbers that are no code points are ignored.
    pub fn add(&mut self, first: i64, last: i64) {
        let mut add = |first: i64, last: i64| {
            let char_of = |code: i64| u32::try_from(code).ok().and_then(char::from_u32);
            if let (Some(first), Some(last)) = (char_of(first), char_of(last))
                && first <= last
            {
                self.class.push(ClassUnicodeRange::new(first, last));
            }
        };
        add(first, last.min(0xd7ff));
        add(first.max(0xe000), last);
    }

    pub fn add_all(&mut self, other: &CharSet) {
        self.class.union(&other.class);
    }

    pub fn retain_all(&mut self, other: &CharSet) {
        self.class.intersect(&other.class);
    }

    pub fn remove_all(&mut self, other: &CharSet) {
        self.class.difference(&other.class);
    }

    pub fn negate(&mut self) {
        self.class.negate();
    }

    pub fn negated(mut self) -> Self {
        self.negate();
        self
    }

    /// Adds the other case of every character.
    pub fn close_case(&mut self) {
        let mut others = Vec::new();
        for range in self.class.ranges() {
            let pairs = fold::equals_between(range.start(), range.end());
            others.extend(pairs.iter().map(|(_, c)| ClassUnicodeRange::new(*c, *c)));
        }
        self.class.union(&ClassUnicode::new(others));
    }

    pub fn is_empty(&self) -> bool {
        self.class.ranges().is_empty()
    }

    /// The one character of the set, if there is one alone.
    pub fn single(&self) -> Option<u32> {
        match self.class.ranges() {
            [range] if range.start() == range.end() => Some(u32::from(range.start())),
            _ => None,
        }
    }

    /// Its ranges in order.
    pub fn ranges(&self) -> impl Iterator<Item = (char, char)> + '_ {
        self.class.ranges().iter().map(|r| (r.start(), r.end()))
    }
}

/// A set in the form in which it is searched.
#[derive(Debug)]
pub struct SearchSet {
    ascii: [bool; 128],
    /// Ranges beyond ASCII, in order.
    ranges: Box<[(char, char)]>,
}

impl SearchSet {
    pub fn new(set: &CharSet) -> Self {
        let mut ascii = [false; 128];
        for (first, last) in set.ranges() {
            for code in u32::from(first)..=u32::from(last).min(127) {
                ascii[code as usize] = true;
            }
        }
        SearchSet {
            ascii,
            ranges: set.ranges().filter(|(_, last)| *last > '\x7f').collect(),
        }
    }

    #[inline]
    pub fn has_ascii(&self, byte: u8) -> bool {
        self.ascii[usize::from(byte & 127)]
    }

    #[inline]
    pub fn has(&self, c: char) -> bool {
        if c.is_ascii() {
            return self.has_ascii(c as u8);
        }
        self.has_beyond_ascii(c)
    }

    /// Whether it has characters beyond ASCII at all.
    pub fn is_ascii(&self) -> bool {
        self.ranges.is_empty()
    }

    fn has_beyond_ascii(&self, c: char) -> bool {
        let place = self.ranges.partition_point(|(_, last)| *last < c);
        self.ranges.get(place).is_some_and(|(first, _)| *first <= c)
    }
}
