//! Why a pattern cannot be compiled, and why a match cannot be finished.

/// An error of a pattern, as ICU reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatternError {
    /// An empty pattern, an unknown property.
    IllegalArgument,
    /// More than 99 nested groups and sets.
    Internal,
    /// Syntax error at this line and character, both counted from 1.
    Syntax {
        line: u32,
        column: u32,
    },
    BadEscape,
    Unimplemented,
    MismatchedParen,
    BadInterval,
    MaxBelowMin,
    InvalidBackReference,
    LookBehindLimit,
    MissingCloseBracket,
    InvalidRange,
    /// The compiled pattern is too large.
    TooBig,
    InvalidGroupName,
    InvalidFlag,
    NumberTooBig,
    /// `\N{...}` with a name that no character has.
    UnknownCharacterName,
    /// The caller's progress function has stopped the compilation.
    Stopped,
    /// Syntax of ICU that this engine does not have.
    NotSupported(&'static str),
}

/// Why a search ended without an answer. `E` is the error of the caller's progress function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchError<E> {
    /// More steps than `Limits::steps`.
    TimeOut,
    /// The backtracking stack is larger than `Limits::stack_bytes`.
    StackOverflow,
    Stopped(E),
}
