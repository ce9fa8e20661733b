//! Binds CREATE and ALTER TABLE: turns syntax into definitions, with checks, defaults and names of
//! keys. Does no I/O.
//!
//! ```text
//!  ast::CreateTable ── table::bind ──▶ engine::TableSpec
//!  ast::AlterTable  ── alter::bind ──▶ alter::Change: of the definition, of indexes, or a copy with a map of columns
//!  catalog::TableDef ── show::create_table ──▶ the text that makes it again
//! ```
//! Source: MySQL manual, "CREATE TABLE Statement", "Data Type Default Values", "Column Count and
//! Row Size Limits".

pub mod alter;
pub mod check;
pub mod column;
pub mod foreign;
pub mod fulltext;
pub mod functional;
pub mod key;
pub mod selected;
pub mod stored;
pub mod table;
#[cfg(test)]
mod tests;

use std::fmt::Display;

use nfold_catalog::{FulltextOptions, SchemaSnapshot};
use nfold_json::ParseError;
use nfold_plan::SqlMode;
pub use nfold_plan::bind::column_type::named_collation;
use nfold_sql::ast::EngineAttribute;
pub(crate) use nfold_sql::parser::check_length;
use nfold_types::charset::{UTF8MB4, convert};
use nfold_types::collation::CollationId;
use nfold_types::convert::store::StoreMode;
use nfold_types::{ErrorCode, Level, NoCheckpoint, SqlError, Warnings};

/// The context in which a definition is bound.
pub struct DdlCx<'a> {
    /// The strictness and the time zone of the session, for converting defaults.
    pub mode: &'a StoreMode,
    /// The database's default collation.
    pub collation: CollationId,
    /// `collation_connection`, the collation of literals.
    pub connection: CollationId,
    /// The SQL mode in which stored expressions are bound.
    pub sql_mode: SqlMode,
    /// NO_ENGINE_SUBSTITUTION
    pub no_engine_substitution: bool,
    /// The schema, for parents and children of foreign keys.
    pub schema: &'a SchemaSnapshot,
    /// `foreign_key_checks`
    pub foreign_key_checks: bool,
    /// `restrict_fk_on_non_standard_key`: a parent needs a unique key over exactly the referenced
    /// columns.
    pub standard_keys: bool,
    /// The table's engine has hash indexes in MySQL (MEMORY).
    pub has_hash_indexes: bool,
    /// The options of new full-text indexes; those without a parser have no `ngram_chars`.
    pub fulltext: FulltextOptions,
    pub warnings: &'a mut Warnings,
}

impl DdlCx<'_> {
    /// The same with another place for warnings.
    pub fn with_warnings<'w>(&'w self, warnings: &'w mut Warnings) -> DdlCx<'w> {
        DdlCx { warnings, ..*self }
    }
}

/// An error from the message table.
pub(crate) fn error(code: ErrorCode, args: &[&dyn Display]) -> SqlError {
    SqlError::new(code, args)
}

/// Checks that the engine attributes are empty or JSON documents.
///
/// # Errors
/// 3980.
pub fn check_attributes(list: &[EngineAttribute]) -> Result<(), SqlError> {
    let written = list.iter().filter(|a| !a.text.is_empty());
    for EngineAttribute { text, .. } in written {
        match nfold_json::parse(text, &nfold_json::Work::new(&NoCheckpoint)) {
            Ok(_) => {}
            Err(ParseError::Other(e)) => return Err(e),
            Err(ParseError::Syntax(message, at)) => {
                let rest = String::from_utf8_lossy(text.get(at..).unwrap_or_default());
                let code = ErrorCode::ER_INVALID_JSON_ATTRIBUTE;
                return Err(error(code, &[&message, &at, &rest]));
            }
        }
    }
    Ok(())
}

/// Refuses the attributes of the storage engine, which has none. Those of a secondary engine are
/// ignored. `engine`: that of the statement, if it names one.
///
/// # Errors
/// 3981.
fn refuse_engine_attributes(
    list: &[EngineAttribute],
    engine: Option<&str>,
) -> Result<(), SqlError> {
    if list.iter().all(|a| a.secondary) {
        return Ok(());
    }
    let code = ErrorCode::ER_ENGINE_ATTRIBUTE_NOT_SUPPORTED;
    Err(error(code, &[&table::engine_name(engine)]))
}

/// Checks the name of a column.
///
/// # Errors
/// 1166, also if it is too long.
pub(crate) fn check_column_name(name: &str) -> Result<(), SqlError> {
    if name.is_empty() || name.ends_with(' ') || check_length(name).is_err() {
        return Err(error(ErrorCode::ER_WRONG_COLUMN_NAME, &[&name]));
    }
    Ok(())
}

/// Checks the name of a table.
///
/// # Errors
/// 1059 if it is too long, 1103 if it is empty or ends with a space.
pub fn check_table_name(name: &str) -> Result<(), SqlError> {
    check_length(name)?;
    if name.is_empty() || name.ends_with(' ') {
        return Err(error(ErrorCode::ER_WRONG_TABLE_NAME, &[&name]));
    }
    Ok(())
}

/// What a comment describes.
#[derive(Clone, Copy)]
pub(crate) enum Commented {
    Table,
    Column,
    Index,
}

impl Commented {
    /// Most characters of a comment, and what a longer one is.
    fn limit(self) -> (usize, ErrorCode) {
        match self {
            Commented::Table => (2048, ErrorCode::ER_TOO_LONG_TABLE_COMMENT),
            Commented::Column => (1024, ErrorCode::ER_TOO_LONG_FIELD_COMMENT),
            Commented::Index => (1024, ErrorCode::ER_TOO_LONG_INDEX_COMMENT),
        }
    }
}

/// The comment of a table, column or index with this name. One that is too long is cut off where
/// the mode is not strict.
///
/// # Errors
/// 1628, 1629, 1688.
pub(crate) fn comment(
    bytes: Option<&Vec<u8>>,
    (what, name): (Commented, &str),
    cx: &mut DdlCx<'_>,
) -> Result<Box<str>, SqlError> {
    let Some(bytes) = bytes else {
        return Ok("".into());
    };
    let (connection, mut utf8) = (cx.connection.known().charset, Vec::new());
    if !connection.is_utf8() && !connection.is_binary() {
        convert(connection, &UTF8MB4, bytes, &mut utf8);
    } else {
        utf8.extend_from_slice(bytes);
    }
    let mut text = String::from_utf8_lossy(&utf8).into_owned();
    if text.bytes().any(|b| b >= 0xf0) {
        text = in_utf8mb3(&text, cx);
    }
    let (limit, code) = what.limit();
    if let Some((end, _)) = text.char_indices().nth(limit) {
        if cx.mode.strict {
            return Err(error(code, &[&name, &limit]));
        }
        cx.warnings.warn(code, &[&name, &limit]);
        text.truncate(end);
    }
    Ok(text.into())
}

/// A text as MySQL stores comments, in utf8mb3: a character beyond U+FFFF becomes a question mark.
/// The warning shows the first bytes.
fn in_utf8mb3(text: &str, cx: &mut DdlCx<'_>) -> String {
    const SHOWN_BYTES: usize = 6;
    let mut shown = String::new();
    for &b in text.as_bytes().iter().take(SHOWN_BYTES) {
        match b {
            b' '..=b'~' => shown.push(char::from(b)),
            _ => shown.push_str(&format!("\\x{b:02X}")),
        }
    }
    if text.len() > SHOWN_BYTES {
        shown.push_str("...");
    }
    let message = format!("Cannot convert string '{shown}' from utf8mb4 to utf8mb3");
    let warning = SqlError::with_message(ErrorCode::ER_INVALID_CHARACTER_STRING, message);
    cx.warnings.push_error(Level::Warning, &warning);
    let stored = |c: char| if c > '\u{ffff}' { '?' } else { c };
    text.chars().map(stored).collect()
}
