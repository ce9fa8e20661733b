//! The bits of `sql_mode` that have an effect after lexing, and the switches of `optimizer_switch`
//! that change plans.

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

/// A set of switches of `optimizer_switch` that are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Switches(u32);

impl Switches {
    pub const INDEX_MERGE: Switches = Switches(1);
    pub const INDEX_MERGE_UNION: Switches = Switches(2);
    pub const INDEX_MERGE_SORT_UNION: Switches = Switches(4);
    pub const INDEX_MERGE_INTERSECTION: Switches = Switches(8);
    pub const USE_INVISIBLE_INDEXES: Switches = Switches(16);
    pub const SKIP_SCAN: Switches = Switches(32);

    pub const SEMIJOIN: Switches = Switches(64);
    pub const DERIVED_MERGE: Switches = Switches(128);
    pub const DERIVED_CONDITION_PUSHDOWN: Switches = Switches(256);

    const NAMES: [(&'static str, Switches); 9] = [
        ("index_merge", Switches::INDEX_MERGE),
        ("index_merge_union", Switches::INDEX_MERGE_UNION),
        ("index_merge_sort_union", Switches::INDEX_MERGE_SORT_UNION),
        (
            "index_merge_intersection",
            Switches::INDEX_MERGE_INTERSECTION,
        ),
        ("use_invisible_indexes", Switches::USE_INVISIBLE_INDEXES),
        ("skip_scan", Switches::SKIP_SCAN),
        ("semijoin", Switches::SEMIJOIN),
        ("derived_merge", Switches::DERIVED_MERGE),
        (
            "derived_condition_pushdown",
            Switches::DERIVED_CONDITION_PUSHDOWN,
        ),
    ];

    /// MySQL's default.
    pub const DEFAULT: Switches = Switches(1 | 2 | 4 | 8 | 32 | 64 | 128 | 256);

    /// The switches of a value of `optimizer_switch`.
    pub fn of(value: &str) -> Switches {
        let words = value.split(',').filter_map(|word| word.strip_suffix("=on"));
        let bit = |word: &str| Switches::NAMES.iter().find(|(name, _)| *name == word);
        Switches(words.filter_map(bit).fold(0, |set, (_, bit)| set | bit.0))
    }

    /// The set without the switches of `other`.
    #[cfg(test)]
    pub(crate) fn without(self, other: Switches) -> Switches {
        Switches(self.0 & !other.0)
    }

    /// Whether all switches of `other` are on.
    pub fn has(self, other: Switches) -> bool {
        self.0 & other.0 == other.0
    }
}
