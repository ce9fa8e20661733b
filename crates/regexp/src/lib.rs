//! Regular expressions with the syntax and the meaning of ICU, which MySQL uses.
//!
//! # Picture
//!
//! ```text
//! pattern ─ parse ─► Node tree ─ program ─► operations ─ matcher ─► positions
//!            │                      │
//!            └─ unicode, fold ──────┘
//! ```
//!
//! # Invariants
//!
//! - I1: positions are byte offsets into the subject, always at character boundaries.
//! - I2: a search saves at most `Limits::time` states, or its time is linear in the subject where
//!   every state is memoised; its backtracking stack holds at most `Limits::stack_bytes`.
//! - I3: the caller's progress function is called at least once in `matcher::FUEL` units of work,
//!   so a match can yield and can be stopped.
//!
//! # Cost
//!
//! A match allocates nothing once its [`Scratch`] has grown.
//!
//! # Not here
//!
//! Character sets, collations and the SQL functions: those are the executor's.
#![forbid(unsafe_code)]

mod error;
mod fold;
mod matcher;
mod node;
mod parse;
mod program;
mod replace;
mod unicode;
mod work;

#[cfg(test)]
mod tests;

pub use error::{MatchError, PatternError};
pub use matcher::{Limits, Scratch, Search};
pub use program::Regexp;
pub use replace::{ReplaceError, expand};

/// How a pattern is read: MySQL's match types.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Flags {
    /// `i`, or the collation: upper and lower case are equal.
    pub case_insensitive: bool,
    /// `m`: `^` and `$` match at line ends.
    pub multi_line: bool,
    /// `n`: `.` matches line ends.
    pub dot_all: bool,
    /// `u`: only a line feed ends a line.
    pub unix_lines: bool,
    /// `(?x)`: white space and comments in the pattern are skipped.
    pub(crate) comments: bool,
    /// `(?w)`: word boundaries by UAX 29.
    pub(crate) unicode_words: bool,
}

/// Start and end of a match, byte offsets.
pub type Span = (usize, usize);
