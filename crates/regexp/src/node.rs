//! The tree of a parsed pattern.

use std::rc::Rc;

use crate::unicode::CharSet;

/// How a repetition chooses between one more round and going on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Greed {
    Greedy,
    Lazy,
    Possessive,
}

/// Which characters end a line, and what `.` does with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dot {
    /// All characters but line ends.
    Line,
    /// All characters but the line feed.
    UnixLine,
    /// All characters; CR LF counts as one.
    All,
}

/// Conditions on a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assertion {
    /// `^` and `\A`
    TextStart,
    /// `^` with `m`
    LineStart,
    UnixLineStart,
    /// `$` and `\Z`: the end, or before the line end that ends the text.
    TextEnd,
    UnixTextEnd,
    /// `$` with `m`
    LineEnd,
    UnixLineEnd,
    /// `\z`
    VeryEnd,
    /// `\b`
    WordBoundary,
    /// `\B`
    NoWordBoundary,
    /// `\G`: the end of the match before.
    MatchEnd,
}

/// A part of a pattern.
#[derive(Debug, Clone)]
pub enum Node {
    /// Matches the empty text.
    Empty,
    /// Matches nothing, as an empty set does.
    Never,
    /// One character; `fold`: without regard to case. Neighbours are matched as one string.
    Char {
        code: u32,
        fold: bool,
    },
    Set(Rc<CharSet>),
    Dot(Dot),
    /// `\R`
    LineBreak,
    /// `\X`
    Grapheme,
    Assert(Assertion),
    BackReference {
        group: u32,
        fold: bool,
    },
    Concat(Vec<Node>),
    Alternate(Vec<Node>),
    Capture {
        group: u32,
        body: Box<Node>,
    },
    Atomic(Box<Node>),
    /// `??`, which ICU treats differently from `{0,1}?` in a look-behind.
    LazyOption(Box<Node>),
    Look {
        behind: bool,
        negative: bool,
        body: Box<Node>,
    },
    Repeat {
        body: Box<Node>,
        min: u32,
        max: Option<u32>,
        greed: Greed,
    },
}
