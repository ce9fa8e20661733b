//! Columns, keys and options of tables.

use super::tokens::Tokens;
use super::{Result, unsupported};
use crate::lexer::TokenKind;

/// Types of MariaDB that have no equal.
const TYPES: [&str; 5] = ["INET4", "INET6", "UUID", "XMLTYPE", "VECTOR"];
/// Options that say how MariaDB stores a table.
const STORAGE_OPTIONS: [&str; 7] = [
    "PAGE_COMPRESSED",
    "PAGE_COMPRESSION_LEVEL",
    "PAGE_CHECKSUM",
    "TRANSACTIONAL",
    "ENCRYPTION_KEY_ID",
    "TABLE_CHECKSUM",
    "IETF_QUOTES",
];

/// Translates CREATE TABLE, whose name, or IF NOT EXISTS, is at `at`.
pub(super) fn create_table(t: &mut Tokens, at: usize) -> Result<()> {
    let name = match t.word(at) {
        "IF" => at + 3,
        _ => at,
    };
    let mut at = t.after_name(name);
    if t.kind(at) == TokenKind::LParen && t.word(at + 1) != "LIKE" && t.word(at + 1) != "SELECT" {
        let mut item = at + 1;
        while item < t.len() {
            element(t, item)?;
            item = t.find_comma(item);
            if t.kind(item) != TokenKind::Comma {
                break;
            }
            item += 1;
        }
        at = t.after(at);
    }
    options(t, at)
}

/// Translates the column or key of a CREATE TABLE that begins at `at`.
pub(super) fn element(t: &mut Tokens, at: usize) -> Result<()> {
    match t.word(at) {
        "CONSTRAINT" | "PRIMARY" | "UNIQUE" | "KEY" | "INDEX" | "FULLTEXT" | "SPATIAL"
        | "FOREIGN" | "CHECK" => key(t, at),
        "PERIOD" if t.word(at + 1) == "FOR" => Err(unsupported("PERIOD FOR")),
        _ => column(t, at, at + 1),
    }
}

/// Translates a key or constraint that begins at `at`.
pub(super) fn key(t: &mut Tokens, at: usize) -> Result<()> {
    let end = t.find_comma(at);
    let exists = t.find_before(at, end, "IF");
    if let Some(exists) = exists {
        t.remove_if_not_exists(exists);
    }
    key_attributes(t, at);
    Ok(())
}

/// IGNORED and NOT IGNORED of the key at `at` as INVISIBLE and VISIBLE.
pub(super) fn key_attributes(t: &mut Tokens, at: usize) {
    let end = t.find_comma(at);
    let Some(found) = t.find_before(at, end, "IGNORED") else {
        return;
    };
    match t.word(found - 1) {
        "NOT" => t.replace(found - 1, found + 1, "VISIBLE"),
        _ => t.replace(found, found + 1, "INVISIBLE"),
    }
}

/// Translates the definition of the column with its name at `name` and its type at `at`.
pub(super) fn column(t: &mut Tokens, name: usize, at: usize) -> Result<()> {
    let column = String::from_utf8_lossy(&t.print_range(name, name + 1)).into_owned();
    let ty = t.word(at).to_owned();
    if TYPES.contains(&ty.as_str()) {
        return Err(unsupported(format!("the type {ty}")));
    }
    let is_long = ty.ends_with("TEXT") || ty.ends_with("BLOB") || ty == "JSON" || ty == "LONG";
    if ty == "JSON" {
        json(t, &column, at);
    }
    let mut here = at;
    // The end moves with each change.
    while here < t.find_comma(at) {
        match (t.word(here), t.word(here + 1)) {
            ("COMPRESSED", _) => return Err(unsupported("columns that are COMPRESSED")),
            ("DEFAULT", _) => default(t, here + 1, is_long)?,
            ("PERSISTENT", _) => t.replace(here, here + 1, "STORED"),
            ("AS", "ROW") | ("WITH" | "WITHOUT", "SYSTEM") | ("REF_SYSTEM_ID", _) => {
                return Err(unsupported("tables WITH SYSTEM VERSIONING"));
            }
            _ => {}
        }
        here = t.after(here);
    }
    Ok(())
}

/// JSON is LONGTEXT with a check, unless the column has another check.
fn json(t: &mut Tokens, column: &str, at: usize) {
    t.replace(
        at,
        at + 1,
        "LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    );
    let mut end = t.find_comma(at);
    if t.find_before(at, end, "CHECK").is_some() {
        return;
    }
    // The position of an added column stands last.
    if end > at + 1 && t.word(end - 1) == "FIRST" {
        end -= 1;
    } else if end > at + 2 && t.word(end - 2) == "AFTER" {
        end -= 2;
    }
    t.insert(end, &format!("CHECK (JSON_VALID({column}))"));
}

/// An expression as a default needs parentheses, and so does each value of a long text.
fn default(t: &mut Tokens, at: usize, is_long: bool) -> Result<()> {
    let word = t.word(at);
    let called = t.kind(at + 1) == TokenKind::LParen;
    let end = match t.kind(at) {
        TokenKind::LParen => return Ok(()),
        TokenKind::Word if matches!(word, "NEXTVAL" | "LASTVAL") => {
            return Err(unsupported("sequences"));
        }
        TokenKind::Word if word == "NEXT" && t.word(at + 1) == "VALUE" => {
            return Err(unsupported("sequences"));
        }
        TokenKind::Word
            if matches!(
                word,
                "NULL" | "CURRENT_TIMESTAMP" | "NOW" | "LOCALTIME" | "LOCALTIMESTAMP"
            ) =>
        {
            return Ok(());
        }
        TokenKind::Word if called => t.after(at + 1),
        TokenKind::Word if word.starts_with("CURRENT_") || word.starts_with("UTC_") || is_long => {
            at + 1
        }
        TokenKind::Plus | TokenKind::Minus | TokenKind::Introducer if is_long => at + 2,
        _ if is_long => at + 1,
        _ => return Ok(()),
    };
    t.insert(end, ")");
    t.insert(at, "(");
    Ok(())
}

/// Translates the options of a table, which begin at `at`.
pub(super) fn options(t: &mut Tokens, at: usize) -> Result<()> {
    let mut at = at;
    while at < t.len() {
        let name = t.name(at).to_ascii_uppercase();
        match name.as_str() {
            "AS" | "SELECT" | "PARTITION" | "IGNORE" | "REPLACE" => return Ok(()),
            "WITH" | "WITHOUT" if t.word(at + 1) == "SYSTEM" => {
                return Err(unsupported("tables WITH SYSTEM VERSIONING"));
            }
            "SEQUENCE" => return Err(unsupported("sequences")),
            "ENCRYPTED" => {
                let value = t.name(t.after_option(at) - 1);
                if value.trim_matches('\'').eq_ignore_ascii_case("YES") {
                    return Err(unsupported("ENCRYPTED = YES"));
                }
                t.remove(at, t.after_option(at));
            }
            name if STORAGE_OPTIONS.contains(&name) => t.remove(at, t.after_option(at)),
            _ => {
                at = t.after(at);
                continue;
            }
        }
        // A comma between two options.
        if t.kind(at) == TokenKind::Comma {
            t.remove(at, at + 1);
        }
    }
    if t.len() > 0 && t.kind(t.len() - 1) == TokenKind::Comma {
        t.truncate(t.len() - 1);
    }
    Ok(())
}
