//! Which of a source's changes a channel applies when it follows some databases only.
//!
//! # Invariants
//! - F1. A change is left out only if it is known that it concerns other databases. A statement
//!   that cannot be read stops the channel.

use nfold_sql::ast::Statement;
use nfold_types::SqlError;

/// What a statement of the source changes, as far as a filter needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// Followed databases only.
    Followed,
    /// No followed database.
    Other,
    /// Both kinds.
    Both,
}

/// The databases that a channel follows; empty: all of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Filter(Vec<String>);

impl Filter {
    pub fn new(databases: &[String]) -> Filter {
        Filter(databases.to_vec())
    }

    pub fn is_active(&self) -> bool {
        !self.0.is_empty()
    }

    /// Whether changes of this database are applied.
    pub fn follows(&self, database: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|name| name == database)
    }

    /// What a statement changes. `current` is its current database.
    ///
    /// # Errors
    /// 1235 for a statement that may change a followed database, but is not supported (F1).
    pub fn scope(&self, statement: &Statement, current: &str) -> Result<Scope, SqlError> {
        if let Statement::Unsupported { what } = statement {
            // Row events carry the effects of stored programs.
            let program = ["TRIGGER", "PROCEDURE", "FUNCTION", "EVENT"];
            let is_program = program.iter().any(|word| what.contains(word));
            return match is_program && !self.follows(current) {
                true => Ok(Scope::Other),
                false => Err(SqlError::not_supported(*what)),
            };
        }
        let databases = statement.changed_databases(current);
        let followed = databases.iter().filter(|name| self.follows(name)).count();
        Ok(match followed {
            0 => Scope::Other,
            n if n == databases.len() => Scope::Followed,
            _ => Scope::Both,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_left_out_by_what_they_change() {
        let filter = Filter::new(&["a".into(), "b".into()]);
        let scope = |sql: &str, current: &str| {
            let parsed = nfold_sql::parser::parse(sql.as_bytes(), Default::default());
            filter.scope(&parsed.expect("a statement"), current).ok()
        };
        for (sql, current, expected) in [
            ("CREATE TABLE t (id INT)", "a", Some(Scope::Followed)),
            ("CREATE TABLE t (id INT)", "c", Some(Scope::Other)),
            ("CREATE TABLE b.t (id INT)", "c", Some(Scope::Followed)),
            ("CREATE TABLE c.t LIKE a.t", "a", Some(Scope::Other)),
            ("DROP TABLE t, c.t", "a", Some(Scope::Both)),
            ("RENAME TABLE a.t TO c.t", "", Some(Scope::Both)),
            ("ALTER TABLE t RENAME TO c.t", "a", Some(Scope::Both)),
            ("ALTER TABLE c.t ADD KEY (id)", "a", Some(Scope::Other)),
            ("DROP DATABASE c", "a", Some(Scope::Other)),
            ("CREATE USER u", "a", Some(Scope::Other)),
            (
                "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET @a = 1",
                "c",
                Some(Scope::Other),
            ),
            (
                "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET @a = 1",
                "a",
                None,
            ),
        ] {
            assert_eq!(scope(sql, current), expected, "{sql}");
        }
    }
}
