//! Path expressions: `$.a[0 to last].*`, their parser and their printer.

mod parse;

pub use parse::PathError;

use crate::text::write_quoted;

/// A place in an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Index {
    /// Elements before it, or behind it.
    pub offset: u32,
    /// `last - offset`
    pub from_end: bool,
}

impl Index {
    /// The place in an array of `length` elements, if it has it.
    pub fn within(self, length: usize) -> Option<usize> {
        let offset = self.offset as usize;
        if self.from_end {
            length.checked_sub(1)?.checked_sub(offset)
        } else {
            Some(offset).filter(|at| *at < length)
        }
    }

    /// Where an element is inserted in an array of `length` elements: at most behind it.
    pub fn insertion_place(self, length: usize) -> usize {
        let offset = self.offset as usize;
        if self.from_end {
            length.saturating_sub(offset + 1)
        } else {
            offset.min(length)
        }
    }

    /// First place of a range that begins here.
    fn range_start(self, length: usize) -> usize {
        self.insertion_place(length)
    }

    /// Place behind a range that ends here.
    fn range_end(self, length: usize) -> usize {
        let offset = self.offset as usize;
        if self.from_end {
            length.saturating_sub(offset)
        } else {
            (offset + 1).min(length)
        }
    }
}

/// A step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leg {
    /// `.name`
    Member(String),
    /// `.*`
    AnyMember,
    /// `[n]`
    Cell(Index),
    /// `[n to m]`
    Range(Index, Index),
    /// `[*]`
    AnyCell,
    /// `**`: the value and all values inside it.
    Descendants,
}

impl Leg {
    /// Whether it may match several values.
    pub fn is_wildcard(&self) -> bool {
        !matches!(self, Leg::Member(_) | Leg::Cell(_))
    }

    /// Whether a value that is no array matches as if it were the only element of one.
    pub fn matches_scalar(&self) -> bool {
        match self {
            Leg::Cell(index) => index.within(1).is_some(),
            Leg::Range(from, to) => from.range_start(1) < to.range_end(1),
            _ => false,
        }
    }

    /// The places of an array of `length` elements that match.
    pub(crate) fn cells(&self, length: usize) -> std::ops::Range<usize> {
        match self {
            Leg::Cell(index) => index.within(length).map_or(0..0, |at| at..at + 1),
            Leg::Range(from, to) => from.range_start(length)..to.range_end(length),
            Leg::AnyCell => 0..length,
            _ => 0..0,
        }
    }
}

/// A path expression.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Path {
    /// The steps from the root.
    pub legs: Vec<Leg>,
}

impl Path {
    /// Parses a path.
    ///
    /// # Errors
    /// The byte at which it is wrong: error 3143.
    pub fn parse(text: &str) -> Result<Path, PathError> {
        parse::parse(text)
    }

    /// Whether it may match several values.
    pub fn has_wildcard(&self) -> bool {
        self.legs.iter().any(Leg::is_wildcard)
    }

    /// The path to the parent, and the last step.
    pub fn split_last(&self) -> Option<(&[Leg], &Leg)> {
        let (last, parent) = self.legs.split_last()?;
        Some((parent, last))
    }
}

/// Appends a step as MySQL prints it.
pub(crate) fn write_leg(leg: &Leg, out: &mut Vec<u8>) {
    let index = |index: &Index| match (index.from_end, index.offset) {
        (false, n) => n.to_string(),
        (true, 0) => "last".to_string(),
        (true, n) => format!("last-{n}"),
    };
    match leg {
        Leg::Member(name) => write_member(name, out),
        Leg::AnyMember => out.extend_from_slice(b".*"),
        Leg::Cell(at) => out.extend_from_slice(format!("[{}]", index(at)).as_bytes()),
        Leg::Range(from, to) => {
            let text = format!("[{} to {}]", index(from), index(to));
            out.extend_from_slice(text.as_bytes());
        }
        Leg::AnyCell => out.extend_from_slice(b"[*]"),
        Leg::Descendants => out.extend_from_slice(b"**"),
    }
}

/// Appends `.name`, in quotation marks unless the name is an identifier.
pub(crate) fn write_member(name: &str, out: &mut Vec<u8>) {
    out.push(b'.');
    if parse::is_identifier(name) {
        out.extend_from_slice(name.as_bytes());
    } else {
        write_quoted(name, out);
    }
}
