//! The names of the system schemas, and the interface to their tables. `introspection`, which lies
//! above this, implements the tables; it is passed in at startup.

use std::sync::Arc;

use nfold_catalog::{DatabaseDef, TableDef};
use nfold_types::collation::CollationId;
use nfold_types::{SqlError, Value};

use super::env::Env;
use super::server::ServerState;

/// The schema whose table names are case-insensitive.
pub const INFORMATION: &str = "information_schema";
/// The other schema; its table names are compared by bytes, like those of stored tables.
pub const PERFORMANCE: &str = "performance_schema";

/// The schema of the grant tables, which only accounts with privileges on it read. Its table names
/// are compared by bytes.
pub const MYSQL: &str = "mysql";

/// All system schemas, with their default collations.
pub const SCHEMAS: [(&str, CollationId); 3] = [
    (INFORMATION, CollationId::UTF8MB3_GENERAL_CI),
    (PERFORMANCE, CollationId::UTF8MB4_0900_AI_CI),
    (MYSQL, CollationId::UTF8MB3_GENERAL_CI),
];

/// The canonical name of a system schema; `None` for other names.
pub fn canonical(schema: &str) -> Option<&'static str> {
    if schema.eq_ignore_ascii_case(INFORMATION) {
        Some(INFORMATION)
    } else {
        [PERFORMANCE, MYSQL]
            .into_iter()
            .find(|name| schema == *name)
    }
}

/// Whether every account may read the schema's tables, which leave out what it may not see.
pub fn is_open_schema(name: &str) -> bool {
    canonical(name).is_some_and(|name| name != MYSQL)
}

/// Whether a database is a system schema, which is not stored.
pub fn is_system_schema(name: &str) -> bool {
    canonical(name).is_some()
}

/// A system schema as a database.
pub fn database(schema: &str) -> Option<DatabaseDef> {
    let name = canonical(schema)?;
    let (_, collation) = SCHEMAS.iter().find(|(n, _)| *n == name)?;
    Some(DatabaseDef {
        name: name.into(),
        collation: *collation,
    })
}

/// A consumer of computed rows: a value for each column. ENUM members are passed as text.
pub type PutRow<'a> = dyn FnMut(Vec<Value>) -> Result<(), SqlError> + 'a;

/// A consumer of rows of a system table.
pub type SystemRow<'a> = dyn FnMut(&[Value]) -> Result<(), SqlError> + 'a;

/// Why TRUNCATE refuses a table of `performance_schema`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TruncateRefusal {
    /// The table has no counts that could begin anew, in MySQL either: error 1142.
    NotASummary,
    /// MySQL could: error 1235.
    NotSupported,
}

/// The tables of the system schemas.
pub trait SystemTables: Send + Sync {
    /// The definition of a system table.
    fn find(&self, schema: &str, name: &str) -> Option<&'static Arc<TableDef>>;

    /// Calls `row` with every row of a system table; an unknown table has none.
    ///
    /// # Errors
    /// The errors of `row`, and 1227 if the table needs a global privilege.
    fn rows(
        &self,
        env: &Env,
        schema: &str,
        name: &str,
        row: &mut SystemRow<'_>,
    ) -> Result<(), SqlError>;

    /// Lets the counts in a table of `performance_schema` begin anew.
    fn truncate(&self, server: &ServerState, name: &str) -> Result<(), TruncateRefusal>;
}
