//! Match types.

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
