//! Which of a source's changes a channel applies when it follows some databases or tables only.
//!
//! NFOLD_DATABASES counts the databases of the changed objects. CHANGE REPLICATION FILTER has
//! MySQL's rules (manual, "How Servers Evaluate Replication Filtering Rules").
//!
//! # Invariants
//! - F1. A change is left out only if it is known that it concerns other databases or tables. A
//!   statement that cannot be read stops the channel.

use nfold_replica::Filters;
use nfold_sql::ast::Statement;
use nfold_types::{CollationId, SqlError};

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

/// The tables of accounts and their rights, which statements about accounts change in MySQL.
const ACCOUNT_TABLES: [&str; 9] = [
    "user",
    "db",
    "tables_priv",
    "columns_priv",
    "procs_priv",
    "proxies_priv",
    "role_edges",
    "default_roles",
    "global_grants",
];

/// Which of a source's changes a channel applies.
#[derive(Debug, Clone, Default)]
pub(super) struct Filter {
    /// NFOLD_DATABASES; empty: all of them.
    databases: Vec<String>,
    /// CHANGE REPLICATION FILTER.
    rules: Filters,
}

/// Whether `name` is the table of a pair.
fn names((database, table): &(String, String), name: (&str, &str)) -> bool {
    (database.as_str(), table.as_str()) == name
}

impl Filter {
    pub fn new(databases: &[String], rules: &Filters) -> Filter {
        Filter {
            databases: databases.to_vec(),
            rules: rules.clone(),
        }
    }

    /// Whether changes may be left out.
    pub fn is_active(&self) -> bool {
        let Filters {
            do_db, ignore_db, ..
        } = &self.rules;
        let by_database = [&self.databases, do_db, ignore_db];
        self.has_table_rules() || by_database.iter().any(|list| !list.is_empty())
    }

    /// REPLICATE_REWRITE_DB: makes a current database of the source, or that of a row event, the
    /// one of this server.
    pub fn rewrite(&self, database: &mut String) {
        let mut pairs = self.rules.rewrite_db.iter();
        if let Some((_, to)) = pairs.find(|(from, _)| from == database) {
            database.clone_from(to);
        }
    }

    /// Whether the changes of a table's rows are applied.
    pub fn follows_rows(&self, database: &str, table: &str) -> bool {
        if !self.follows(database) || !self.allows_database(database) {
            return false;
        }
        if !self.has_table_rules() {
            return true;
        }
        let rule = self.rule_of_tables([(database, table)]);
        rule.unwrap_or_else(|| !self.has_do_tables())
    }

    /// Whether changes of this database are applied, by NFOLD_DATABASES.
    fn follows(&self, database: &str) -> bool {
        self.databases.is_empty() || self.databases.iter().any(|name| name == database)
    }

    /// REPLICATE_DO_DB and REPLICATE_IGNORE_DB. The second counts only without the first.
    fn allows_database(&self, database: &str) -> bool {
        match self.rules.do_db.is_empty() {
            true => !self.rules.ignore_db.iter().any(|name| name == database),
            false => self.rules.do_db.iter().any(|name| name == database),
        }
    }

    fn has_do_tables(&self) -> bool {
        !self.rules.do_table.is_empty() || !self.rules.wild_do_table.is_empty()
    }

    fn has_table_rules(&self) -> bool {
        let Filters {
            ignore_table,
            wild_ignore_table,
            ..
        } = &self.rules;
        self.has_do_tables() || !ignore_table.is_empty() || !wild_ignore_table.is_empty()
    }

    /// The decision of the first rule that names one of the tables or has a pattern for it; `None`
    /// without such a rule. True: the change is applied.
    fn rule_of_tables<'a>(
        &self,
        tables: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Option<bool> {
        let rules = &self.rules;
        tables.into_iter().find_map(|name| {
            if rules.do_table.iter().any(|pair| names(pair, name)) {
                return Some(true);
            }
            if rules.ignore_table.iter().any(|pair| names(pair, name)) {
                return Some(false);
            }
            self.pattern_of(&format!("{}.{}", name.0, name.1))
        })
    }

    /// True if `name` matches a pattern of REPLICATE_WILD_DO_TABLE, otherwise false if it matches
    /// one of REPLICATE_WILD_IGNORE_TABLE. `None` without a match.
    fn pattern_of(&self, name: &str) -> Option<bool> {
        let like = |patterns: &[String]| {
            patterns.iter().any(|pattern| {
                let (name, pattern) = (name.as_bytes(), pattern.as_bytes());
                CollationId::UTF8MB4_BIN
                    .known()
                    .like(name, pattern, Some('\\'))
            })
        };
        match like(&self.rules.wild_do_table) {
            true => Some(true),
            false => like(&self.rules.wild_ignore_table).then_some(false),
        }
    }

    /// Whether the rules of CHANGE REPLICATION FILTER let a statement pass. As in MySQL, the
    /// current database counts for those of databases, also if the statement changes another one.
    fn allows(&self, statement: &Statement, current: &str) -> bool {
        if !self.allows_database(current) {
            return false;
        }
        if let Some(database) = statement.changed_database(current) {
            let rule = self.pattern_of(&format!("{database}."));
            return rule.unwrap_or(self.rules.wild_do_table.is_empty());
        }
        let mut tables = statement.changed_tables(current);
        if statement.changes_accounts() {
            tables.extend(ACCOUNT_TABLES.map(|table| ("mysql", table)));
        }
        if tables.is_empty() || !self.has_table_rules() {
            return true;
        }
        let rule = self.rule_of_tables(tables);
        rule.unwrap_or_else(|| !self.has_do_tables())
    }

    /// What a statement changes. `current` is its current database.
    ///
    /// A statement that CHANGE REPLICATION FILTER leaves out changes no followed database.
    ///
    /// # Errors
    /// 1235 for a statement that may change a followed database, but is not supported (F1).
    pub fn scope(&self, statement: &Statement, current: &str) -> Result<Scope, SqlError> {
        if !self.allows(statement, current) {
            return Ok(Scope::Other);
        }
        if self.databases.is_empty() {
            return Ok(Scope::Followed);
        }
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
        let filter = Filter::new(&["a".into(), "b".into()], &Filters::default());
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

    /// What MySQL 9.7 left out as a replica.
    #[test]
    fn rules_are_those_of_mysql() {
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        let filter = |rules: Filters| Filter::new(&[], &rules);
        let passes = |filter: &Filter, sql: &str, current: &str| {
            let parsed = nfold_sql::parser::parse(sql.as_bytes(), Default::default());
            let scope = filter.scope(&parsed.expect("a statement"), current);
            scope.ok() == Some(Scope::Followed)
        };
        let do_db = filter(Filters {
            do_db: vec!["a".into()],
            ignore_db: vec!["a".into()],
            ..Filters::default()
        });
        assert!(passes(&do_db, "CREATE TABLE b.t (id INT)", "a"));
        assert!(!passes(&do_db, "CREATE TABLE a.t (id INT)", "b"));
        assert!(!passes(&do_db, "CREATE USER u", ""));
        assert!(do_db.follows_rows("a", "t") && !do_db.follows_rows("b", "t"));

        let do_table = filter(Filters {
            do_table: vec![pair("a", "y2"), pair("a", "x1")],
            ..Filters::default()
        });
        assert!(passes(&do_table, "CREATE DATABASE b", "b"));
        assert!(passes(&do_table, "RENAME TABLE y1 TO y2", "a"));
        assert!(passes(&do_table, "DROP TABLE x1, x2", "a"));
        assert!(!passes(&do_table, "ALTER TABLE y1 RENAME TO y2", "a"));
        assert!(!passes(&do_table, "CREATE TABLE y3 LIKE y2", "a"));
        assert!(!passes(&do_table, "CREATE VIEW v AS SELECT * FROM y2", "a"));
        assert!(!passes(&do_table, "CREATE USER u", "a"));
        assert!(do_table.follows_rows("a", "x1") && !do_table.follows_rows("a", "x2"));

        let ignore_table = filter(Filters {
            ignore_table: vec![pair("a", "x1"), pair("mysql", "db")],
            ..Filters::default()
        });
        assert!(!passes(&ignore_table, "DROP TABLE x1, x2", "a"));
        assert!(passes(&ignore_table, "CREATE TABLE x2 (id INT)", "a"));
        assert!(!passes(&ignore_table, "GRANT SELECT ON *.* TO u", "a"));

        let wild = filter(Filters {
            wild_do_table: vec!["a.%".into(), "b.x\\_".into()],
            wild_ignore_table: vec!["a.t".into(), "c.%".into()],
            ..Filters::default()
        });
        assert!(passes(&wild, "CREATE DATABASE a", "a"));
        assert!(!passes(&wild, "CREATE DATABASE b", "b"));
        assert!(!passes(&wild, "DROP DATABASE c", ""));
        assert!(wild.follows_rows("a", "t") && wild.follows_rows("b", "x_"));
        assert!(!wild.follows_rows("b", "x1") && !wild.follows_rows("A", "t"));

        let renamed = filter(Filters {
            rewrite_db: vec![pair("a", "d"), pair("a", "e"), pair("d", "f")],
            ..Filters::default()
        });
        let mut database = "a".to_owned();
        renamed.rewrite(&mut database);
        assert_eq!(database, "d");
        assert!(!renamed.is_active() && do_db.is_active());
    }
}
