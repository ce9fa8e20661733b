//! ALTER TABLE, and the other ALTERs.

use super::tokens::Tokens;
use super::{Names, Result, account, table, unsupported};
use crate::lexer::TokenKind;

/// A table with the names that its statement may ask about.
struct Target<'a> {
    names: &'a dyn Names,
    database: Option<String>,
    table: String,
}

impl Target<'_> {
    fn has_column(&self, column: &str) -> bool {
        (self.names).has_column(self.database.as_deref(), &self.table, column)
    }

    fn has_key(&self, key: &str) -> bool {
        self.names
            .has_key(self.database.as_deref(), &self.table, key)
    }

    fn has_constraint(&self, constraint: &str) -> bool {
        (self.names).has_constraint(self.database.as_deref(), &self.table, constraint)
    }
}

/// Translates ALTER.
pub(super) fn alter(mut t: Tokens, names: &dyn Names) -> Result<Vec<Vec<u8>>> {
    if t.word(1) == "ONLINE" {
        t.remove(1, 2);
    }
    match t.word(1) {
        "IGNORE" => return Err(unsupported("ALTER IGNORE TABLE")),
        "SEQUENCE" => return Err(unsupported("sequences")),
        "USER" => {
            account::identified(&mut t)?;
            return Ok(vec![t.print()]);
        }
        "TABLE" => {}
        _ => return Ok(vec![t.print()]),
    }
    let checks = t.remove_if_exists(2);
    let (database, name) = t.object_name(2);
    if checks && !names.has_table(database.as_deref(), &name) {
        return Ok(Vec::new());
    }
    t.remove_wait_at(t.after_name(2));
    let target = Target {
        names,
        database,
        table: name,
    };
    let first = t.after_name(2);
    if first >= t.len() {
        return Ok(vec![t.print()]);
    }
    let mut at = first;
    while at < t.len() {
        let keeps = action(&mut t, at, &target)?;
        let end = t.find_comma(at);
        match keeps && end > at {
            true => at = end + 1,
            false => t.remove(at, end + 1),
        }
    }
    if t.len() <= first {
        return Ok(Vec::new());
    }
    if t.kind(t.len() - 1) == TokenKind::Comma {
        t.truncate(t.len() - 1);
    }
    Ok(vec![t.print()])
}

/// Translates the action at `at`. Returns false if it is to be removed.
fn action(t: &mut Tokens, at: usize, target: &Target<'_>) -> Result<bool> {
    // COLUMN may be left out.
    let skip = |t: &Tokens| at + if t.word(at + 1) == "COLUMN" { 2 } else { 1 };
    match (t.word(at), t.word(at + 1)) {
        ("ADD" | "DROP", "SYSTEM" | "PERIOD") if matches!(t.word(at + 2), "VERSIONING" | "FOR") => {
            Err(unsupported("tables WITH SYSTEM VERSIONING"))
        }
        ("ADD", "PARTITION") | ("DROP", "PARTITION") => Ok(true),
        ("ADD", "INDEX" | "KEY" | "UNIQUE" | "FULLTEXT" | "SPATIAL" | "PRIMARY" | "FOREIGN")
        | ("ADD", "CONSTRAINT" | "CHECK") => add_key(t, at, target),
        ("ADD", _) => {
            let name = skip(t);
            let checks = t.remove_if_not_exists(name);
            if t.kind(name) == TokenKind::LParen {
                return match checks {
                    true => Err(unsupported("ADD COLUMN IF NOT EXISTS (...)")),
                    false => add_columns(t, name).map(|()| true),
                };
            }
            if checks && target.has_column(&t.name(name)) {
                return Ok(false);
            }
            table::column(t, name, name + 1).map(|()| true)
        }
        ("DROP", "INDEX" | "KEY") => {
            let checks = t.remove_if_exists(at + 2);
            Ok(!checks || target.has_key(&t.name(at + 2)))
        }
        ("DROP", "CONSTRAINT") => {
            let checks = t.remove_if_exists(at + 2);
            Ok(!checks || target.has_constraint(&t.name(at + 2)))
        }
        ("DROP", "FOREIGN") => {
            let checks = t.remove_if_exists(at + 3);
            Ok(!checks || target.has_constraint(&t.name(at + 3)))
        }
        ("DROP", "PRIMARY") => Ok(true),
        ("DROP" | "ALTER", _) => {
            if matches!(t.word(at + 1), "INDEX" | "KEY") {
                // ALTER INDEX name [NOT] IGNORED
                let checks = t.remove_if_exists(at + 2);
                table::key_attributes(t, at);
                return Ok(!checks || target.has_key(&t.name(at + 2)));
            }
            let name = skip(t);
            let checks = t.remove_if_exists(name);
            Ok(!checks || target.has_column(&t.name(name)))
        }
        ("MODIFY", _) => {
            let name = skip(t);
            let checks = t.remove_if_exists(name);
            if checks && !target.has_column(&t.name(name)) {
                return Ok(false);
            }
            table::column(t, name, name + 1).map(|()| true)
        }
        ("CHANGE", _) => {
            let name = skip(t);
            let checks = t.remove_if_exists(name);
            if checks && !target.has_column(&t.name(name)) {
                return Ok(false);
            }
            table::column(t, name + 1, name + 2).map(|()| true)
        }
        ("RENAME", "COLUMN") => {
            let checks = t.remove_if_exists(at + 2);
            Ok(!checks || target.has_column(&t.name(at + 2)))
        }
        ("RENAME", "INDEX" | "KEY") => {
            let checks = t.remove_if_exists(at + 2);
            Ok(!checks || target.has_key(&t.name(at + 2)))
        }
        // How the source does it changes nothing of the result.
        ("ALGORITHM" | "LOCK", _) => Ok(false),
        ("RENAME" | "ORDER" | "CONVERT" | "PARTITION" | "REMOVE", _) => Ok(true),
        _ => {
            let rest = t.find_comma(at);
            let mut options = t.clone();
            options.truncate(rest);
            options.remove(0, at);
            table::options(&mut options, 0)?;
            let text = String::from_utf8_lossy(&options.print()).into_owned();
            t.remove(at, rest);
            if text.is_empty() {
                return Ok(false);
            }
            t.insert(at, &text);
            Ok(true)
        }
    }
}

/// ADD (column, column, key).
fn add_columns(t: &mut Tokens, at: usize) -> Result<()> {
    let mut item = at + 1;
    loop {
        table::element(t, item)?;
        item = t.find_comma(item);
        if t.kind(item) != TokenKind::Comma {
            return Ok(());
        }
        item += 1;
    }
}

/// ADD of a key or constraint at `at`, of which the name stands behind IF NOT EXISTS.
fn add_key(t: &mut Tokens, at: usize, target: &Target<'_>) -> Result<bool> {
    let end = t.find_comma(at);
    let found = t.find_before(at, end, "IF");
    if let Some(name) = found.filter(|&at| t.remove_if_not_exists(at)) {
        let is_constraint = t.word(at + 1) == "CONSTRAINT" || t.word(at + 1) == "FOREIGN";
        let exists = match is_constraint {
            true => target.has_constraint(&t.name(name)),
            false if t.word(at + 1) == "PRIMARY" => target.has_key("PRIMARY"),
            false => target.has_key(&t.name(name)),
        };
        if exists {
            return Ok(false);
        }
    }
    table::key(t, at + 1)?;
    Ok(true)
}
