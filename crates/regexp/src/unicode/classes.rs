//! The sets that escapes name, and those that word and grapheme boundaries need.

use std::sync::OnceLock;

use super::property::{general_category, known};
use super::{CharSet, SearchSet};

/// `\d`
pub fn digits() -> CharSet {
    general_category("Nd")
}

/// `\h`
pub fn horizontal_space() -> CharSet {
    let mut set = general_category("Zs");
    set.add(9, 9);
    set
}

/// `\s`
pub fn space() -> CharSet {
    known("White_Space")
}

/// `\v`
pub fn line_ends() -> CharSet {
    let mut set = CharSet::range(0x0a, 0x0d);
    set.add(0x85, 0x85);
    set.add(0x2028, 0x2029);
    set
}

/// `\w`
pub fn word() -> CharSet {
    let mut set = known("Alphabetic");
    for name in ["M", "Nd", "Pc"] {
        set.add_all(&general_category(name));
    }
    set.add(0x200c, 0x200d);
    set
}

/// Whether a character is part of a word, for `\b`.
pub fn is_word(c: char) -> bool {
    static SET: OnceLock<SearchSet> = OnceLock::new();
    SET.get_or_init(|| SearchSet::new(&word())).has(c)
}

/// Whether `\b` takes a character as part of the one before.
pub fn is_combining(c: char) -> bool {
    static SET: OnceLock<SearchSet> = OnceLock::new();
    let build = || {
        let mut set = known("Grapheme_Extend");
        set.add_all(&general_category("Cf"));
        SearchSet::new(&set)
    };
    SET.get_or_init(build).has(c)
}
