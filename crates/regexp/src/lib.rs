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
//! - I3: the caller's progress function is called at least once in `work::FUEL` units of work,
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
mod flags;
mod fold;
mod length;
mod matcher;
mod node;
mod parse;
mod program;
mod replace;
mod text;
mod unicode;
mod work;

#[cfg(test)]
mod tests;

pub use error::{MatchError, PatternError};
pub use flags::Flags;
pub use matcher::{Limits, Scratch, Search, Span};
pub use program::Regexp;
pub use replace::{ReplaceError, expand};
