//! SHOW DATABASES, SHOW CREATE DATABASE.

use nfold_catalog::Privileges;
use nfold_sql::ast::ShowFilter;
use nfold_types::{ErrorCode, SqlError, Value};

use super::filter;
use crate::introspection::system;
use crate::session::Session;
use crate::session::response::{Response, RowSet};

impl Session {
    pub(super) fn show_databases(
        &mut self,
        wanted: Option<&ShowFilter>,
    ) -> Result<Response, SqlError> {
        self.refresh_schema();
        let all = self.rights.has_global(Privileges::SHOW_DATABASES);
        let mut names: Vec<&str> = self
            .schema
            .databases()
            .map(|d| &*d.def.name)
            .filter(|name| all || self.rights.held().sees_database(name))
            .chain([system::INFORMATION, system::PERFORMANCE])
            .chain(Some(system::MYSQL).filter(|name| all || self.rights.held().sees_database(name)))
            .collect();
        names.sort_unstable();
        let column = match wanted {
            Some(ShowFilter::Like(pattern)) => {
                format!("Database ({})", String::from_utf8_lossy(pattern))
            }
            _ => "Database".into(),
        };
        let mut set = RowSet::of_text(&[(&column, 64)]);
        names
            .into_iter()
            .for_each(|n| set.push(vec![Value::from(n)]));
        filter::apply(&mut set, wanted, 0);
        Ok(Response::Rows(set))
    }

    pub(super) fn show_create_database(
        &mut self,
        if_not_exists: bool,
        name: &str,
    ) -> Result<Response, SqlError> {
        self.refresh_schema();
        self.rights.need_to_show(name)?;
        let stored = self.schema.database(name).map(|d| d.def.clone());
        let Some(def) = stored.or_else(|| system::database(name)) else {
            return Err(SqlError::new(ErrorCode::ER_BAD_DB_ERROR, &[&name]));
        };
        let (name, collation) = (&*def.name, def.collation.known());
        // The default collation of utf8mb4 is named as well, because earlier versions had another
        // default.
        let clause = if collation.is_default && collation.charset.name != "utf8mb4" {
            String::new()
        } else {
            format!(" COLLATE {}", collation.name)
        };
        let existing = if if_not_exists {
            "/*!32312 IF NOT EXISTS*/ "
        } else {
            ""
        };
        let quoted = self.quoting()?.name(name);
        let line = format!(
            "CREATE DATABASE {existing}{quoted} /*!40100 DEFAULT CHARACTER SET {}{clause} */ /*!80016 DEFAULT ENCRYPTION='N' */",
            collation.charset.name
        );
        let mut set = RowSet::of_text(&[("Database", 64), ("Create Database", 1024)]);
        set.push(vec![Value::from(name), Value::from(line)]);
        Ok(Response::Rows(set))
    }
}
