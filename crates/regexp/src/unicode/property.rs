//! Names of properties: `\p{...}` and `[:...:]`, with ICU's and Java's spellings.

use regex_syntax::hir::{Class, HirKind};

use super::CharSet;
use super::blocks::BLOCKS;
use crate::error::PatternError;

/// Properties of ICU whose data this engine does not have.
const WITHOUT_DATA: [&str; 26] = [
    "bc",
    "bidiclass",
    "bpt",
    "bidipairedbrackettype",
    "ccc",
    "canonicalcombiningclass",
    "dt",
    "decompositiontype",
    "ea",
    "eastasianwidth",
    "hst",
    "hangulsyllabletype",
    "jg",
    "joininggroup",
    "jt",
    "joiningtype",
    "lb",
    "linebreak",
    "nt",
    "numerictype",
    "nv",
    "numericvalue",
    "na",
    "name",
    "insc",
    "vo",
];

/// The set that `name` names. `insensitive`: with the other case of every character.
pub fn property(name: &str, insensitive: bool) -> Result<CharSet, PatternError> {
    if let Some(mut set) = icu_property(name)? {
        if insensitive {
            set.close_case();
        }
        return Ok(set);
    }
    if name.eq_ignore_ascii_case("word") {
        return Ok(super::classes::word());
    }
    if name == "all" {
        return Ok(CharSet::range(0, 0x10_ffff));
    }
    if let Some(block_name) = name.strip_prefix("In").filter(|n| !n.is_empty()) {
        return block(block_name).ok_or(PatternError::IllegalArgument);
    }
    let mut set = match name.strip_prefix("Is").filter(|n| !n.is_empty()) {
        Some(plain) => java_is(plain)?,
        None => java(name).ok_or(PatternError::IllegalArgument)?,
    };
    if insensitive {
        set.close_case();
    }
    Ok(set)
}

/// `\p{IsName}`: a category, a script or a binary property.
fn java_is(name: &str) -> Result<CharSet, PatternError> {
    if name.contains('=') {
        return Err(PatternError::IllegalArgument);
    }
    if name.eq_ignore_ascii_case("assigned") {
        return Ok(general_category("Cn").negated());
    }
    let plain = if name.eq_ignore_ascii_case("TitleCase") {
        "Titlecase_Letter"
    } else {
        name
    };
    icu_property(plain)?.ok_or(PatternError::IllegalArgument)
}

/// A name without what does not count in it.
fn loose(name: &str) -> String {
    name.chars()
        .filter(|c| !matches!(c, ' ' | '-' | '_' | '\t' | '\n' | '\r' | '\x0b' | '\x0c'))
        .flat_map(char::to_lowercase)
        .collect()
}

/// `None`: ICU does not know the name either.
fn icu_property(name: &str) -> Result<Option<CharSet>, PatternError> {
    // ICU reads `[:name}rest:]` as the set `[\p{name}rest}]`.
    if let Some((name, rest)) = name.split_once('}') {
        let mut set = icu_property(name)?;
        let letters = rest.chars().all(char::is_alphanumeric);
        if let Some(set) = set.as_mut().filter(|_| letters) {
            for c in rest.chars().chain(['}']) {
                let code = i64::from(u32::from(c));
                set.add(code, code);
            }
        }
        return Ok(set.filter(|_| letters));
    }
    match name.split_once('=') {
        Some((property, value)) => with_value(&loose(property), value),
        None => Ok(single_name(&loose(name))),
    }
}

/// `\p{name}`: a general category, a script, or a binary property.
fn single_name(name: &str) -> Option<CharSet> {
    if let Some(set) = posix(name) {
        return Some(set);
    }
    // A block's name alone is none of ICU's.
    from_tables(name)
}

/// The POSIX names that are no property of Unicode's.
fn posix(name: &str) -> Option<CharSet> {
    let mut set = CharSet::default();
    match name {
        "alnum" => {
            set = known("Alphabetic");
            set.add_all(&general_category("Nd"));
        }
        "blank" => set = super::classes::horizontal_space(),
        "xdigit" => {
            set = general_category("Nd");
            for first in [0x41, 0x61, 0xff21, 0xff41] {
                set.add(first, first + 5);
            }
        }
        "graph" | "print" => {
            set = known("White_Space");
            for category in ["Cc", "Cn"] {
                set.add_all(&general_category(category));
            }
            set.negate();
            if name == "print" {
                set.add_all(&general_category("Zs"));
            }
        }
        "any" => set.add(0, 0x10_ffff),
        "ascii" => set.add(0, 0x7f),
        "assigned" => set = general_category("Cn").negated(),
        _ => return None,
    }
    Some(set)
}

/// `\p{property=value}`
fn with_value(property: &str, value: &str) -> Result<Option<CharSet>, PatternError> {
    let loose_value = loose(value);
    if matches!(property, "blk" | "block") {
        return Ok(block(&loose_value));
    }
    if WITHOUT_DATA.contains(&property) {
        return Err(PatternError::NotSupported("this Unicode property"));
    }
    if matches!(
        property,
        "age" | "gc" | "generalcategory" | "sc" | "script" | "scx"
    ) || matches!(
        property,
        "scriptextensions" | "gcb" | "graphemeclusterbreak"
    ) || matches!(property, "wb" | "wordbreak" | "sb" | "sentencebreak")
    {
        return Ok(from_tables(&format!("{property}={loose_value}")));
    }
    let yes = match loose_value.as_str() {
        "y" | "yes" | "t" | "true" => true,
        "n" | "no" | "f" | "false" => false,
        _ => return Ok(None),
    };
    let set = single_name(property);
    Ok(set.map(|set| if yes { set } else { set.negated() }))
}

/// A set of the tables of `regex-syntax`.
fn from_tables(name: &str) -> Option<CharSet> {
    let usable = |c: char| c.is_ascii_alphanumeric() || matches!(c, '=' | '.' | '_');
    if name.is_empty() || !name.chars().all(usable) {
        return None;
    }
    let hir = regex_syntax::parse(&format!("\\p{{{name}}}")).ok()?;
    match hir.into_kind() {
        HirKind::Class(Class::Unicode(class)) => Some(CharSet::from_class(class)),
        // A set of one character.
        HirKind::Literal(literal) => {
            let text = std::str::from_utf8(&literal.0).ok()?;
            let code = u32::from(text.chars().next()?);
            Some(CharSet::range(code, code))
        }
        _ => None,
    }
}

/// A property whose table is compiled in.
pub fn known(name: &str) -> CharSet {
    from_tables(name).unwrap_or_default()
}

/// The characters of a general category, by its short name.
pub fn general_category(name: &str) -> CharSet {
    known(&format!("gc={name}"))
}

fn block(name: &str) -> Option<CharSet> {
    let name = loose(name);
    let (first, last, _) = BLOCKS.iter().find(|(_, _, known)| *known == name)?;
    Some(CharSet::range(*first, *last))
}

fn categories(names: &[&str]) -> CharSet {
    let mut set = CharSet::default();
    for name in names {
        set.add_all(&general_category(name));
    }
    set
}

fn identifier_ignorable() -> CharSet {
    let mut set = general_category("Cf");
    for (first, last) in [(0, 8), (0x0e, 0x1b), (0x7f, 0x9f)] {
        set.add(first, last);
    }
    set
}

/// The names that Java has.
fn java(name: &str) -> Option<CharSet> {
    Some(match name.strip_prefix("java")? {
        "Defined" => general_category("Cn").negated(),
        "Digit" => general_category("Nd"),
        "IdentifierIgnorable" => identifier_ignorable(),
        "ISOControl" => {
            let mut set = CharSet::range(0, 0x1f);
            set.add(0x7f, 0x9f);
            set
        }
        "JavaIdentifierPart" => {
            let mut set = categories(&["L", "Sc", "Pc", "Nd", "Nl", "Mc", "Mn"]);
            set.add_all(&identifier_ignorable());
            set
        }
        "JavaIdentifierStart" => categories(&["L", "Nl", "Sc", "Pc"]),
        "Letter" => general_category("L"),
        "LetterOrDigit" => categories(&["L", "Nd"]),
        "LowerCase" => general_category("Ll"),
        "SpaceChar" => general_category("Z"),
        "SupplementaryCodePoint" => CharSet::range(0x1_0000, 0x10_ffff),
        "TitleCase" => general_category("Lt"),
        "UnicodeIdentifierStart" => categories(&["L", "Nl"]),
        "UnicodeIdentifierPart" => {
            let mut set = categories(&["L", "Pc", "Nd", "Nl", "Mc", "Mn"]);
            set.add_all(&identifier_ignorable());
            set
        }
        "UpperCase" => general_category("Lu"),
        "ValidCodePoint" => CharSet::range(0, 0x10_ffff),
        "Whitespace" => {
            let mut set = general_category("Z");
            for code in [0xa0, 0x2007, 0x202f] {
                set.remove_all(&CharSet::range(code, code));
            }
            set.add(9, 0x0d);
            set.add(0x1c, 0x1f);
            set
        }
        _ => return None,
    })
}

/// `\N{name}`: there is no table of names, so only what cannot be a name is told apart.
pub fn named_char(name: &str) -> Result<u32, PatternError> {
    const NAME_MAX: usize = 99;
    let portable = |c: char| c.is_ascii_alphanumeric() || " \"%&'()*+,-./:;<=>?_".contains(c);
    if name.len() > NAME_MAX || !name.chars().all(portable) {
        return Err(PatternError::IllegalArgument);
    }
    let usual = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '-');
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !name.chars().all(usual) {
        return Err(PatternError::UnknownCharacterName);
    }
    Err(PatternError::NotSupported(
        "character names in regular expressions",
    ))
}
