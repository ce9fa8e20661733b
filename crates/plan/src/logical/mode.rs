//! The bits of `sql_mode` that have an effect after lexing.

/// A set of SQL modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SqlMode(pub u32);

impl SqlMode {
    pub const ONLY_FULL_GROUP_BY: SqlMode = SqlMode(1);
    /// STRICT_TRANS_TABLES or STRICT_ALL_TABLES.
    pub const STRICT: SqlMode = SqlMode(2);
    pub const NO_ZERO_IN_DATE: SqlMode = SqlMode(4);
    pub const NO_ZERO_DATE: SqlMode = SqlMode(8);
    pub const ERROR_FOR_DIVISION_BY_ZERO: SqlMode = SqlMode(16);
    pub const NO_UNSIGNED_SUBTRACTION: SqlMode = SqlMode(32);
    pub const NO_AUTO_VALUE_ON_ZERO: SqlMode = SqlMode(64);
    pub const PAD_CHAR_TO_FULL_LENGTH: SqlMode = SqlMode(128);
    pub const ALLOW_INVALID_DATES: SqlMode = SqlMode(256);
    pub const TIME_TRUNCATE_FRACTIONAL: SqlMode = SqlMode(512);

    /// Makes an aggregate invalid where it belongs to an enclosing query that does not allow
    /// aggregates.
    pub const ANSI: SqlMode = SqlMode(1024);

    /// MySQL's default modes.
    pub const DEFAULT: SqlMode = SqlMode(1 | 2 | 4 | 8 | 16);

    /// Whether all modes of `other` are set.
    pub fn has(self, other: SqlMode) -> bool {
        self.0 & other.0 == other.0
    }

    /// The union of two sets.
    pub fn with(self, other: SqlMode) -> SqlMode {
        SqlMode(self.0 | other.0)
    }
}
