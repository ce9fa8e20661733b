//! Constant tables: engines, plugins, character sets, keywords. SHOW uses the same rows.

use nfold_sql::keywords;
use nfold_types::{Collation, SqlError, Value, charset};

use super::rows::Put;

/// The comment of the only engine, which is listed under the name that clients expect.
pub const ENGINE_COMMENT: &str =
    "Supports transactions, row-level locking, and lock-free reads (Nfold)";

/// The names and types of plugins that MySQL would list.
pub const PLUGINS: [(&str, &str); 3] = [
    ("caching_sha2_password", "AUTHENTICATION"),
    ("mysql_native_password", "AUTHENTICATION"),
    ("InnoDB", "STORAGE ENGINE"),
];

pub(super) fn engines(put: &mut Put<'_>) -> Result<(), SqlError> {
    let row = ["InnoDB", "DEFAULT", ENGINE_COMMENT, "YES", "YES", "YES"];
    put(row.iter().map(|s| Value::from(*s)).collect())
}

pub(super) fn stopwords(put: &mut Put<'_>) -> Result<(), SqlError> {
    let words = nfold_exec::STOPWORDS;
    words.iter().try_for_each(|word| put(vec![(*word).into()]))
}

pub(super) fn plugins(put: &mut Put<'_>) -> Result<(), SqlError> {
    for (name, kind) in PLUGINS {
        let mut row: Vec<Value> = [name, "1.0", "ACTIVE", kind, "1.0"]
            .iter()
            .map(|s| Value::from(*s))
            .collect();
        row.extend([Value::Null, Value::Null]);
        row.extend(["Nfold", "", "Apache-2.0", "FORCE"].map(Value::from));
        put(row)?;
    }
    Ok(())
}

pub(super) fn character_sets(put: &mut Put<'_>) -> Result<(), SqlError> {
    for set in charset::ALL {
        put(vec![
            set.name.into(),
            set.default_collation.known().name.into(),
            set.description.into(),
            Value::UInt(set.max_len.into()),
        ])?;
    }
    Ok(())
}

/// Collations by name.
fn sorted() -> Vec<&'static Collation> {
    let mut all: Vec<_> = Collation::all().iter().collect();
    all.sort_unstable_by_key(|c| c.name);
    all
}

pub(super) fn collations(put: &mut Put<'_>) -> Result<(), SqlError> {
    for c in sorted() {
        put(vec![
            c.name.into(),
            c.charset.name.into(),
            Value::UInt(c.id.0.into()),
            (if c.is_default { "Yes" } else { "" }).into(),
            "Yes".into(),
            Value::UInt(c.sort_len.into()),
            (if c.pad_space { "PAD SPACE" } else { "NO PAD" }).into(),
        ])?;
    }
    Ok(())
}

pub(super) fn applicability(put: &mut Put<'_>) -> Result<(), SqlError> {
    sorted()
        .iter()
        .try_for_each(|c| put(vec![c.name.into(), c.charset.name.into()]))
}

pub(super) fn keywords(put: &mut Put<'_>) -> Result<(), SqlError> {
    let mut all: Vec<_> = keywords::words().collect();
    all.sort_unstable();
    all.into_iter()
        .try_for_each(|(word, reserved)| put(vec![word.into(), Value::Int(reserved.into())]))
}
