//! Translates statements that a MariaDB ran into statements of MySQL that do the same.
//!
//! # Picture
//! ```text
//! text ─▶ tokens.rs   comments that MariaDB executes become text; tokens
//!      ─▶ mod.rs      which statement it is
//!           ├─▶ table.rs    columns, keys and options of CREATE TABLE
//!           ├─▶ alter.rs    actions of ALTER TABLE, IF EXISTS and IF NOT EXISTS
//!           └─▶ account.rs  IDENTIFIED VIA and its like
//! ```
//! # Invariants
//! - M1: a clause is removed only if it changes neither rows nor definitions: compression of pages,
//!   ALGORITHM, LOCK, WAIT, and IF \[NOT\] EXISTS whose condition the caller has decided. A clause
//!   with another meaning is error 1235 that names it, or stays for the parser to refuse.
//! - M2: repeating the statements of one text from the first one has the same result.
//!
//! # Not here
//! Names of collations: `nfold_types::Collation::by_name` knows MariaDB's.

mod account;
mod alter;
mod table;
mod tokens;

#[cfg(test)]
mod tests;

use nfold_types::error::SqlError;

use crate::lexer::{LexMode, TokenKind};
use tokens::Tokens;

type Result<T> = std::result::Result<T, SqlError>;

/// The names that IF EXISTS and IF NOT EXISTS depend on. Databases are `None` where the statement
/// names none.
pub trait Names {
    fn has_table(&self, database: Option<&str>, table: &str) -> bool;
    fn has_column(&self, database: Option<&str>, table: &str, column: &str) -> bool;
    /// Whether the table has an index or a primary key of this name.
    fn has_key(&self, database: Option<&str>, table: &str, key: &str) -> bool;
    /// Whether the table has a foreign key, a CHECK constraint or a unique key of this name.
    fn has_constraint(&self, database: Option<&str>, table: &str, constraint: &str) -> bool;
}

/// Nothing exists: for definitions of new tables.
pub struct NoNames;

impl Names for NoNames {
    fn has_table(&self, _: Option<&str>, _: &str) -> bool {
        false
    }

    fn has_column(&self, _: Option<&str>, _: &str, _: &str) -> bool {
        false
    }

    fn has_key(&self, _: Option<&str>, _: &str, _: &str) -> bool {
        false
    }

    fn has_constraint(&self, _: Option<&str>, _: &str, _: &str) -> bool {
        false
    }
}

/// Translates a DDL statement or a statement about accounts. Returns the statements to run in this
/// order; none if the statement changes nothing. What is not MariaDB's own stays as it is.
///
/// # Errors
/// 1235 for a feature of MariaDB that has no equal here.
pub fn translate(sql: &[u8], mode: LexMode, names: &dyn Names) -> Result<Vec<Vec<u8>>> {
    let mut t = Tokens::new(sql, mode);
    match (t.word(0), t.word(1)) {
        ("CREATE", _) => create(t, names),
        ("ALTER", _) => alter::alter(t, names),
        ("DROP", "SEQUENCE") => Err(unsupported("sequences")),
        ("DROP", "INDEX") => drop_index(t, names),
        ("DROP", _) => {
            t.remove_wait();
            Ok(vec![t.print()])
        }
        ("RENAME", "TABLE" | "TABLES") => rename(t, names),
        ("TRUNCATE" | "OPTIMIZE" | "REPAIR", _) => {
            t.remove_wait();
            Ok(vec![t.print()])
        }
        ("ANALYZE", _) => {
            // Which statistics are collected.
            if let Some(at) = t.find(0, "PERSISTENT") {
                t.truncate(at);
            }
            Ok(vec![t.print()])
        }
        ("GRANT", _) => account::grant(t),
        ("SET", "STATEMENT") => Err(unsupported("SET STATEMENT ... FOR")),
        _ => Ok(vec![t.print()]),
    }
}

fn unsupported(what: impl std::fmt::Display) -> SqlError {
    SqlError::not_supported(format!("{what} (MariaDB)"))
}

fn create(mut t: Tokens, names: &dyn Names) -> Result<Vec<Vec<u8>>> {
    let replaces = t.word(1) == "OR" && t.word(2) == "REPLACE";
    let at = if replaces { 3 } else { 1 };
    match (t.word(at), t.word(at + 1)) {
        ("TABLE", _) => {
            table::create_table(&mut t, at + 1)?;
            Ok(replaced(t, replaces, "DROP TABLE IF EXISTS", at + 1))
        }
        ("DATABASE" | "SCHEMA", _) => {
            if let Some(comment) = t.find(at, "COMMENT") {
                t.remove(comment, t.after_option(comment));
            }
            Ok(replaced(t, replaces, "DROP DATABASE IF EXISTS", at + 1))
        }
        ("USER", _) => {
            account::identified(&mut t)?;
            Ok(replaced(t, replaces, "DROP USER IF EXISTS", at + 1))
        }
        ("ROLE", _) => Ok(replaced(t, replaces, "DROP ROLE IF EXISTS", at + 1)),
        ("SEQUENCE", _) | ("TEMPORARY", "SEQUENCE") => Err(unsupported("sequences")),
        ("PACKAGE", _) => Err(unsupported("packages")),
        ("INDEX", _) | ("UNIQUE" | "FULLTEXT" | "SPATIAL", "INDEX" | "KEY") => {
            create_index(t, at, replaces, names)
        }
        _ => Ok(vec![t.print()]),
    }
}

/// `CREATE OR REPLACE object ...` as DROP and CREATE. The object's name is at `at`.
fn replaced(mut t: Tokens, replaces: bool, drop: &str, at: usize) -> Vec<Vec<u8>> {
    if !replaces {
        return vec![t.print()];
    }
    let mut statement = format!("{drop} ").into_bytes();
    statement.extend_from_slice(&t.print_range(at, t.after_name(at)));
    t.remove(1, 3);
    vec![statement, t.print()]
}

/// CREATE [OR REPLACE] INDEX [IF NOT EXISTS] name ... ON table. `at` is behind CREATE and OR
/// REPLACE.
fn create_index(
    mut t: Tokens,
    mut at: usize,
    replaces: bool,
    names: &dyn Names,
) -> Result<Vec<Vec<u8>>> {
    if replaces {
        t.remove(1, 3);
        at = 1;
    }
    let name = match t.word(at) {
        "INDEX" => at + 1,
        _ => at + 2,
    };
    let checks = t.remove_if_not_exists(name);
    let Some(on) = t.find(name, "ON") else {
        return Ok(vec![t.print()]);
    };
    let (database, table) = t.object_name(on + 1);
    let exists = names.has_key(database.as_deref(), &table, &t.name(name));
    let mut drop = b"DROP INDEX ".to_vec();
    drop.extend_from_slice(&t.print_range(name, name + 1));
    drop.extend_from_slice(b" ON ");
    drop.extend_from_slice(&t.print_range(on + 1, t.after_name(on + 1)));
    t.remove_wait();
    table::key_attributes(&mut t, 0);
    Ok(match (exists, checks, replaces) {
        (true, true, _) => Vec::new(),
        (true, _, true) => vec![drop, t.print()],
        _ => vec![t.print()],
    })
}

fn drop_index(mut t: Tokens, names: &dyn Names) -> Result<Vec<Vec<u8>>> {
    let checks = t.remove_if_exists(2);
    t.remove_wait();
    let Some(on) = t.find(2, "ON").filter(|_| checks) else {
        return Ok(vec![t.print()]);
    };
    let (database, table) = t.object_name(on + 1);
    match names.has_key(database.as_deref(), &table, &t.name(2)) {
        true => Ok(vec![t.print()]),
        false => Ok(Vec::new()),
    }
}

/// RENAME TABLE [IF EXISTS] a [WAIT n] TO b, ...
fn rename(mut t: Tokens, names: &dyn Names) -> Result<Vec<Vec<u8>>> {
    let checks = t.remove_if_exists(2);
    t.remove_wait();
    if checks {
        let mut kept = 0;
        let mut at = 2;
        while at < t.len() {
            let end = t.find_comma(at);
            let (database, table) = t.object_name(at);
            if names.has_table(database.as_deref(), &table) {
                kept += 1;
                at = end + 1;
            } else {
                t.remove(at, end + 1);
            }
        }
        if kept == 0 {
            return Ok(Vec::new());
        }
        if t.kind(t.len() - 1) == TokenKind::Comma {
            t.truncate(t.len() - 1);
        }
    }
    Ok(vec![t.print()])
}
