//! `sql_mode`: its words, its combination modes, and the flags for the lexer and the binder.

use nfold_plan::SqlMode;
use nfold_sql::lexer::LexMode;

/// The names by bit, as in MySQL; empty: no longer used.
const NAMES: [&str; 33] = [
    "REAL_AS_FLOAT",
    "PIPES_AS_CONCAT",
    "ANSI_QUOTES",
    "IGNORE_SPACE",
    "",
    "ONLY_FULL_GROUP_BY",
    "NO_UNSIGNED_SUBTRACTION",
    "NO_DIR_IN_CREATE",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "ANSI",
    "NO_AUTO_VALUE_ON_ZERO",
    "NO_BACKSLASH_ESCAPES",
    "STRICT_TRANS_TABLES",
    "STRICT_ALL_TABLES",
    "NO_ZERO_IN_DATE",
    "NO_ZERO_DATE",
    "ALLOW_INVALID_DATES",
    "ERROR_FOR_DIVISION_BY_ZERO",
    "TRADITIONAL",
    "",
    "HIGH_NOT_PRECEDENCE",
    "NO_ENGINE_SUBSTITUTION",
    "PAD_CHAR_TO_FULL_LENGTH",
    "TIME_TRUNCATE_FRACTIONAL",
];

const ANSI: u64 = 1 << 18 | 0b1111 | 1 << 5;
const TRADITIONAL: u64 = 1 << 27 | 1 << 21 | 1 << 22 | 1 << 23 | 1 << 24 | 1 << 26 | 1 << 30;

/// A value of `sql_mode`, with MySQL's bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ModeSet(pub u64);

/// Parses words separated by commas. The error is the unknown word.
pub fn parse_modes(text: &str) -> Result<ModeSet, &str> {
    let mut bits = 0;
    for word in text.split(',').map(str::trim).filter(|w| !w.is_empty()) {
        let bit = NAMES
            .iter()
            .position(|n| !n.is_empty() && n.eq_ignore_ascii_case(word))
            .ok_or(word)?;
        bits |= 1u64 << bit;
    }
    Ok(ModeSet(bits).expanded())
}

impl ModeSet {
    /// The value of `SET sql_mode = number`; `None` if a bit has no name.
    pub fn from_bits(bits: u64) -> Option<ModeSet> {
        let known = (0..64)
            .filter(|b| bits >> b & 1 == 1)
            .all(|b| NAMES.get(b).is_some_and(|n| !n.is_empty()));
        known.then(|| ModeSet(bits).expanded())
    }

    /// Adds the modes that combination modes include.
    fn expanded(self) -> ModeSet {
        let mut bits = self.0;
        for whole in [ANSI, TRADITIONAL] {
            let own = if whole == ANSI { 1 << 18 } else { 1 << 27 };
            if bits & own != 0 {
                bits |= whole;
            }
        }
        ModeSet(bits)
    }

    /// The names of the modes, in the order of their bits.
    pub fn names(self) -> String {
        let on = NAMES
            .iter()
            .enumerate()
            .filter(|(bit, name)| self.0 >> bit & 1 == 1 && !name.is_empty());
        on.map(|(_, name)| *name).collect::<Vec<_>>().join(",")
    }

    /// Whether the mode with this name is set.
    pub fn has(self, name: &str) -> bool {
        NAMES
            .iter()
            .position(|n| *n == name)
            .is_some_and(|bit| self.0 >> bit & 1 == 1)
    }

    /// The modes that change the meaning of statements.
    pub fn semantics(self) -> SqlMode {
        const MAP: [(&str, SqlMode); 12] = [
            ("ONLY_FULL_GROUP_BY", SqlMode::ONLY_FULL_GROUP_BY),
            ("STRICT_TRANS_TABLES", SqlMode::STRICT),
            ("STRICT_ALL_TABLES", SqlMode::STRICT),
            ("NO_ZERO_IN_DATE", SqlMode::NO_ZERO_IN_DATE),
            ("NO_ZERO_DATE", SqlMode::NO_ZERO_DATE),
            (
                "ERROR_FOR_DIVISION_BY_ZERO",
                SqlMode::ERROR_FOR_DIVISION_BY_ZERO,
            ),
            ("NO_UNSIGNED_SUBTRACTION", SqlMode::NO_UNSIGNED_SUBTRACTION),
            ("NO_AUTO_VALUE_ON_ZERO", SqlMode::NO_AUTO_VALUE_ON_ZERO),
            ("PAD_CHAR_TO_FULL_LENGTH", SqlMode::PAD_CHAR_TO_FULL_LENGTH),
            ("ALLOW_INVALID_DATES", SqlMode::ALLOW_INVALID_DATES),
            ("ANSI", SqlMode::ANSI),
            (
                "TIME_TRUNCATE_FRACTIONAL",
                SqlMode::TIME_TRUNCATE_FRACTIONAL,
            ),
        ];
        MAP.iter()
            .filter(|(name, _)| self.has(name))
            .fold(SqlMode::default(), |all, (_, m)| all.with(*m))
    }

    /// The modes that change how text is split into tokens.
    pub fn lexing(self) -> LexMode {
        const MAP: [(&str, LexMode); 5] = [
            ("ANSI_QUOTES", LexMode::ANSI_QUOTES),
            ("NO_BACKSLASH_ESCAPES", LexMode::NO_BACKSLASH_ESCAPES),
            ("PIPES_AS_CONCAT", LexMode::PIPES_AS_CONCAT),
            ("HIGH_NOT_PRECEDENCE", LexMode::HIGH_NOT_PRECEDENCE),
            ("IGNORE_SPACE", LexMode::IGNORE_SPACE),
        ];
        MAP.iter()
            .filter(|(name, _)| self.has(name))
            .fold(LexMode::default(), |all, (_, m)| all.with(*m))
    }
}
