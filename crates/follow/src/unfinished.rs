//! What the target knows about a copy until it is complete, so that a later start continues it.
//!
//! # Picture
//! ```text
//! first start    snapshot 1 ── chunks 1 2 3 ── killed
//! second start   snapshot 2 ── chunks 4 5 ── changes from snapshot 1 to snapshot 2 ── complete
//! ```
//! # Invariants
//! - U1: a chunk is noted as done no earlier than its last rows are committed.
//! - U2: chunks come from several snapshots. The changes of the source from the first snapshot on
//!   to the latest one are applied on top of them, each as the new values of a row. The last change
//!   of a row decides, so all rows are those of the latest snapshot in the end.
//! - U3: this needs changes that name whole rows: a primary key, `binlog_row_image = FULL`, no
//!   foreign key that changes rows without an event of their own, and no changed definition.
//!   Otherwise the copy begins anew.

use std::collections::BTreeMap;

use nfold_replica::Client;

use crate::check::{Facts, list};
use crate::error::CopyError;
use crate::literal::quoted;
use crate::rows::Chunk;
use crate::schema::{Table, definition, tables};
use crate::snapshot::Position;

/// The database of the target that holds the state.
pub(crate) const DATABASE: &str = "nfold_unfinished_copy";

/// The definitions of the tables by their paths, without the AUTO_INCREMENT counters, which change
/// all the time.
pub(crate) type Definitions = BTreeMap<String, String>;

/// A copy that an earlier start has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unfinished {
    /// Names the source.
    pub source: String,
    /// The databases that were named; empty: all.
    pub databases: String,
    /// Where the source was at the first snapshot.
    pub first: Position,
    /// Where it was at the latest one.
    pub latest: Position,
    pub definitions: Definitions,
    /// The chunks that are still to be copied.
    pub chunks: Vec<Chunk>,
}

/// A text that tells a source from others.
pub(crate) fn identity(source: &mut Client, facts: &Facts) -> Result<String, CopyError> {
    let sql = match facts.is_mariadb {
        true => "SELECT CONCAT_WS(':', @@hostname, @@port, @@server_id)",
        false => "SELECT @@server_uuid",
    };
    Ok(source.value(sql)?.unwrap_or_default())
}

/// The definitions of all tables.
pub(crate) fn definitions(
    source: &mut Client,
    databases: &[String],
) -> Result<Definitions, CopyError> {
    let mut found = Definitions::new();
    for table in all_tables(source, databases)? {
        let path = table.path();
        let sql = definition(source, &format!("TABLE {path}"))?;
        found.insert(path, without_counter(&sql));
    }
    Ok(found)
}

/// A definition without its last AUTO_INCREMENT option.
fn without_counter(sql: &str) -> String {
    const OPTION: &str = " AUTO_INCREMENT=";
    let Some(at) = sql.rfind(OPTION) else {
        return sql.to_owned();
    };
    let digits = &sql[at + OPTION.len()..];
    let rest = digits.trim_start_matches(|c: char| c.is_ascii_digit());
    format!("{}{rest}", &sql[..at])
}

/// Why a copy of these tables could not be continued (U3), if so.
pub(crate) fn obstacle(
    source: &mut Client,
    databases: &[String],
) -> Result<Option<String>, CopyError> {
    let image = source.value("SELECT @@global.binlog_row_image")?;
    if image.as_deref() != Some("FULL") {
        return Ok(Some("binlog_row_image is not FULL".into()));
    }
    // MariaDB has no such variable.
    let partial = source.value("SELECT @@global.binlog_row_value_options");
    if partial.is_ok_and(|value| value.is_some_and(|value| !value.is_empty())) {
        return Ok(Some("binlog_row_value_options is PARTIAL_JSON".into()));
    }
    for database in databases {
        let found = tables(source, database)?;
        if let Some(table) = found.iter().find(|table| table.key.is_empty()) {
            return Ok(Some(format!("{} has no primary key", table.path())));
        }
        let sql = format!(
            "SELECT CONCAT(table_name, '.', constraint_name) \
             FROM information_schema.referential_constraints \
             WHERE constraint_schema = {} AND (delete_rule IN ('CASCADE', 'SET NULL') \
             OR update_rule IN ('CASCADE', 'SET NULL'))",
            quoted(database)
        );
        if let Some(constraint) = list(source, &sql)?.into_iter().next() {
            return Ok(Some(format!(
                "the foreign key {database}.{constraint} changes rows by itself"
            )));
        }
    }
    Ok(None)
}

/// Whether the source still has the file in which the changes behind `at` begin.
pub(crate) fn has_file(source: &mut Client, at: &Position) -> Result<bool, CopyError> {
    let files = source.query("SHOW BINARY LOGS")?;
    let mut names = files.into_iter().filter_map(|row| row.into_iter().next());
    Ok(names.any(|name| name.as_deref() == Some(&at.file)))
}

/// Notes a copy that begins, before its first row.
pub(crate) fn begin(target: &mut Client, copy: &Unfinished) -> Result<(), CopyError> {
    forget(target)?;
    for sql in [
        format!("CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"),
        format!(
            "CREATE TABLE {DATABASE}.chunks (n INT PRIMARY KEY, path LONGTEXT, condition_text LONGTEXT)"
        ),
        format!(
            "CREATE TABLE {DATABASE}.definitions (n INT PRIMARY KEY, path LONGTEXT, text LONGTEXT)"
        ),
        format!("CREATE TABLE {DATABASE}.facts (name VARCHAR(30) PRIMARY KEY, value LONGTEXT)"),
        "BEGIN".into(),
    ] {
        target.run(sql.as_bytes())?;
    }
    for chunk in &copy.chunks {
        let (path, condition) = (quoted(&chunk.path), quoted(&chunk.condition));
        let row = format!("({}, {path}, {condition})", chunk.number);
        target.run(format!("INSERT INTO {DATABASE}.chunks VALUES {row}").as_bytes())?;
    }
    for (n, (path, sql)) in copy.definitions.iter().enumerate() {
        let row = format!("({n}, {}, {})", quoted(path), quoted(sql));
        target.run(format!("INSERT INTO {DATABASE}.definitions VALUES {row}").as_bytes())?;
    }
    put(target, "source", &copy.source)?;
    put(target, "databases", &copy.databases)?;
    put_position(target, "first", &copy.first)?;
    put_position(target, "latest", &copy.latest)?;
    target.run(b"COMMIT")?;
    Ok(())
}

/// Notes the moment of the snapshot from which the remaining chunks are copied.
pub(crate) fn continue_at(target: &mut Client, latest: &Position) -> Result<(), CopyError> {
    target.run(b"BEGIN")?;
    put_position(target, "latest", latest)?;
    target.run(b"COMMIT")?;
    Ok(())
}

fn put(target: &mut Client, fact: &str, value: &str) -> Result<(), CopyError> {
    let row = format!("({}, {})", quoted(fact), quoted(value));
    target.run(format!("REPLACE INTO {DATABASE}.facts VALUES {row}").as_bytes())?;
    Ok(())
}

fn put_position(target: &mut Client, which: &str, at: &Position) -> Result<(), CopyError> {
    put(target, &format!("{which} file"), &at.file)?;
    put(
        target,
        &format!("{which} position"),
        &at.position.to_string(),
    )?;
    put(target, &format!("{which} gtids"), &at.gtids)
}

/// Reads what an earlier start has noted. `None`: it had not begun to copy rows.
pub(crate) fn read(target: &mut Client) -> Result<Option<Unfinished>, CopyError> {
    let sql = format!(
        "SELECT COUNT(*) FROM information_schema.tables \
         WHERE table_schema = '{DATABASE}' AND table_name = 'facts'"
    );
    if target.value(&sql)?.as_deref() != Some("1") {
        return Ok(None);
    }
    let pairs = |rows: Vec<Vec<Option<String>>>| {
        let pair = |row: Vec<Option<String>>| {
            let mut values = row.into_iter().map(Option::unwrap_or_default);
            Some((values.next()?, values.next()?))
        };
        rows.into_iter()
            .filter_map(pair)
            .collect::<BTreeMap<_, _>>()
    };
    let mut facts = pairs(target.query(&format!("SELECT name, value FROM {DATABASE}.facts"))?);
    let definitions = target.query(&format!("SELECT path, text FROM {DATABASE}.definitions"))?;
    let chunks = target.query(&format!(
        "SELECT n, path, condition_text FROM {DATABASE}.chunks ORDER BY n"
    ))?;
    let Some(source) = facts.remove("source") else {
        return Ok(None);
    };
    let mut fact = |name: &str| facts.remove(name).unwrap_or_default();
    let mut position = |which: &str| Position {
        file: fact(&format!("{which} file")),
        position: fact(&format!("{which} position")).parse().unwrap_or(0),
        gtids: fact(&format!("{which} gtids")),
    };
    let (first, latest) = (position("first"), position("latest"));
    let chunk = |row: Vec<Option<String>>| {
        let mut values = row.into_iter().map(Option::unwrap_or_default);
        Some(Chunk {
            number: values.next()?.parse().ok()?,
            path: values.next()?,
            condition: values.next()?,
        })
    };
    Ok(Some(Unfinished {
        source,
        databases: fact("databases"),
        first,
        latest,
        definitions: pairs(definitions),
        chunks: chunks.into_iter().filter_map(chunk).collect(),
    }))
}

/// The statement that notes a chunk as done.
pub(crate) fn done(chunk: &Chunk) -> String {
    format!("DELETE FROM {DATABASE}.chunks WHERE n = {}", chunk.number)
}

/// Deletes the rows that an earlier start has written of a chunk.
pub(crate) fn clear(target: &mut Client, chunk: &Chunk) -> Result<(), CopyError> {
    let path = &chunk.path;
    let sql = match chunk.condition.is_empty() {
        true => format!("TRUNCATE TABLE {path}"),
        false => format!("DELETE FROM {path}{}", chunk.condition),
    };
    target.run(sql.as_bytes())?;
    Ok(())
}

/// Removes the state: the copy is complete, or cannot be continued.
pub(crate) fn forget(target: &mut Client) -> Result<(), CopyError> {
    target.run(format!("DROP DATABASE IF EXISTS {DATABASE}").as_bytes())?;
    Ok(())
}

/// All tables with their columns, as the chunks name them.
pub(crate) fn all_tables(
    source: &mut Client,
    databases: &[String],
) -> Result<Vec<Table>, CopyError> {
    let mut all = Vec::new();
    for database in databases {
        all.extend(tables(source, database)?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counter_is_left_out_of_definitions() {
        let sql = "CREATE TABLE `t` (\n  `id` int AUTO_INCREMENT\n) ENGINE=InnoDB AUTO_INCREMENT=42 \
                   DEFAULT CHARSET=utf8mb4 COMMENT=' AUTO_INCREMENT=x'";
        assert_eq!(
            without_counter("CREATE TABLE t (n INT)"),
            "CREATE TABLE t (n INT)"
        );
        let plain = sql.replace(" COMMENT=' AUTO_INCREMENT=x'", "");
        assert_eq!(
            without_counter(&plain),
            plain.replace(" AUTO_INCREMENT=42", "")
        );
    }
}
