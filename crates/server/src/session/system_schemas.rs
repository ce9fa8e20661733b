//! The names of the system schemas, and their tables as sessions use them. `introspection` has the
//! tables themselves, above this; the server is started with them.

use std::sync::Arc;

use nfold_catalog::{DatabaseDef, TableDef};
use nfold_types::collation::CollationId;
use nfold_types::{SqlError, Value};

use super::env::Env;

/// The schema whose names compare without regard to case.
pub const INFORMATION: &str = "information_schema";
/// The other one: its names compare by bytes, as those of stored tables do.
pub const PERFORMANCE: &str = "performance_schema";

/// Both, with their default collations.
pub const SCHEMAS: [(&str, CollationId); 2] = [
    (INFORMATION, CollationId::UTF8MB3_GENERAL_CI),
    (PERFORMANCE, CollationId::UTF8MB4_0900_AI_CI),
];

/// The table that TRUNCATE empties: the statistics by digest.
pub const DIGESTS: &str = "events_statements_summary_by_digest";

/// The name of a system schema as it is written here; `None` for any other.
pub fn canonical(schema: &str) -> Option<&'static str> {
    if schema.eq_ignore_ascii_case(INFORMATION) {
        Some(INFORMATION)
    } else {
        (schema == PERFORMANCE).then_some(PERFORMANCE)
    }
}

/// Whether a database exists without being stored.
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

/// Takes one row of a system table.
pub type SystemRow<'a> = dyn FnMut(&[Value]) -> Result<(), SqlError> + 'a;

/// The tables of the system schemas.
pub trait SystemTables: Send + Sync {
    /// The definition of a system table.
    fn find(&self, schema: &str, name: &str) -> Option<&'static Arc<TableDef>>;

    /// Calls `row` with every row of a system table; an unknown one has none.
    ///
    /// # Errors
    /// Those of `row`, and 1227 where a table needs a global privilege.
    fn rows(
        &self,
        env: &Env,
        schema: &str,
        name: &str,
        row: &mut SystemRow<'_>,
    ) -> Result<(), SqlError>;
}
