//! Statements of a MariaDB as statements of this server: what their IF EXISTS depends on.

use nfold_sql::mariadb::{Names, translate};
use nfold_types::SqlError;

use crate::session::Session;

/// Translates a statement of a MariaDB. `database` is its current database.
///
/// # Errors
/// 1235 for a feature that has no equal here.
pub(super) fn translated(
    session: &mut Session,
    database: &str,
    sql: Vec<u8>,
) -> Result<Vec<Vec<u8>>, SqlError> {
    session.refresh_schema();
    let settings = session.env.vars.settings();
    let (rewritten, lexing) = (settings.rewritten.is_some(), settings.lexing);
    if rewritten {
        // A byte of a character may look like a quote. The parser refuses what is MariaDB's own.
        return Ok(vec![sql]);
    }
    let names = SchemaNames { session, database };
    translate(&sql, lexing, &names)
}

/// The names in the dictionary.
struct SchemaNames<'a> {
    session: &'a Session,
    /// The current database.
    database: &'a str,
}

impl SchemaNames<'_> {
    fn table(
        &self,
        database: Option<&str>,
        table: &str,
    ) -> Option<&std::sync::Arc<nfold_catalog::TableDef>> {
        let database = database.unwrap_or(self.database);
        self.session.schema.table(database, table)
    }
}

fn same(a: &str, b: &str) -> bool {
    a.to_lowercase() == b.to_lowercase()
}

impl Names for SchemaNames<'_> {
    fn has_table(&self, database: Option<&str>, table: &str) -> bool {
        self.table(database, table).is_some()
    }

    fn has_column(&self, database: Option<&str>, table: &str, column: &str) -> bool {
        let table = self.table(database, table);
        table.is_some_and(|t| t.columns.iter().any(|c| same(&c.name, column)))
    }

    fn has_key(&self, database: Option<&str>, table: &str, key: &str) -> bool {
        let table = self.table(database, table);
        table.is_some_and(|t| t.indexes.iter().any(|i| same(&i.name, key)))
    }

    fn has_constraint(&self, database: Option<&str>, table: &str, constraint: &str) -> bool {
        let Some(table) = self.table(database, table) else {
            return false;
        };
        let checks = table.checks.iter().map(|c| &*c.name);
        let keys = table.foreign_keys.iter().map(|k| &*k.name);
        let unique = table.indexes.iter().map(|i| &*i.name);
        checks
            .chain(keys)
            .chain(unique)
            .any(|name| same(name, constraint))
    }
}
