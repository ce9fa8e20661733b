//! SHOW and DESCRIBE of tables, columns and indexes: privileges and filters; `crate::views` builds
//! the results.

use std::sync::Arc;

use nfold_catalog::snapshot::Database;
use nfold_catalog::{ColumnDef, Privileges, TableDef, ViewDef};
use nfold_exec::ExecCx;
use nfold_plan::query::ColumnMeta;
use nfold_sql::ast::{Ident, ObjectName, Show, ShowFilter};
use nfold_types::sql_type::ColumnFlags;
use nfold_types::{ErrorCode, Level, SqlError, Value};

use super::filter;
use crate::ddl::show::Quoting;
use crate::introspection::system;
use crate::introspection::views;
use crate::introspection::views::View;
use crate::session::Session;
use crate::session::plan_info::check_view;
use crate::session::response::{Response, RowSet};
use crate::session::vars::VarValue;

fn rows(view: View) -> RowSet {
    RowSet {
        columns: view
            .columns
            .into_iter()
            .map(|(name, ty)| ColumnMeta::without_table(&name, ty))
            .collect(),
        rows: view.rows,
        counted: true,
        of_conditions: false,
    }
}

fn filtered(view: View, wanted: Option<&ShowFilter>) -> Result<Response, SqlError> {
    let mut set = rows(view);
    filter::apply(&mut set, wanted, 0);
    Ok(Response::Rows(set))
}

/// SHOW TABLES, TABLE STATUS, COLUMNS, INDEX, CREATE TABLE.
pub fn show(
    session: &mut Session,
    _cx: &mut dyn ExecCx,
    show: &Show,
) -> Result<Response, SqlError> {
    session.refresh_schema();
    match show {
        Show::Tables {
            full,
            schema,
            filter,
            ..
        } => {
            let database = session.visible_database(schema.as_ref())?;
            let mut view = views::schema::tables(&database, *full);
            if let Some(ShowFilter::Like(pattern)) = filter {
                let mut pattern = String::from_utf8_lossy(pattern).into_owned();
                if *database.def.name == *system::INFORMATION {
                    pattern.make_ascii_uppercase();
                }
                view.columns[0].0.push_str(&format!(" ({pattern})"));
            }
            filtered(view, filter.as_ref())
        }
        Show::TableStatus { schema, filter } => {
            let database = session.visible_database(schema.as_ref())?;
            session.table_status(&database, filter.as_ref())
        }
        Show::Columns {
            full,
            table,
            filter,
            ..
        } => {
            let def = session.visible_table(table, ShownPart::Columns)?;
            session.check_view(&def)?;
            let zone = &session.env.vars.settings().zone;
            let held = session.column_privileges(&def);
            filtered(
                views::schema::columns(&def, *full, zone, &held),
                filter.as_ref(),
            )
        }
        Show::Index { table, filter, .. } => {
            let def = session.visible_table(table, ShownPart::Columns)?;
            filtered(
                views::schema::indexes(&def, &session.server.engine),
                filter.as_ref(),
            )
        }
        Show::CreateView(name) => {
            let def = session.visible_table(name, ShownPart::View)?;
            let Some(view) = def.view() else {
                let code = ErrorCode::ER_WRONG_OBJECT;
                return Err(SqlError::new(code, &[&def.schema, &def.name, &"VIEW"]));
            };
            session.show_view(&def, view)
        }
        Show::CreateTable(table) => {
            let def = session.visible_table(table, ShownPart::Definition)?;
            if let Some(view) = def.view() {
                return session.show_view(&def, view);
            }
            let zone = &session.env.vars.settings().zone;
            let quoting = session.quoting()?;
            let own = session.temporary.find(&def.schema, &def.name).is_some();
            let engine = &session.server.engine;
            filtered(
                views::schema::create_table((&def, own), engine, zone, quoting),
                None,
            )
        }
        _ => Err(SqlError::not_supported("this SHOW")),
    }
}

impl Session {
    /// Error 1356 if a table, column or function that a view names does not exist any more.
    pub(crate) fn check_view(&self, def: &TableDef) -> Result<(), SqlError> {
        check_view((&self.env, &self.server.engine), &self.schema, def)
    }

    /// SHOW TABLE STATUS. A view whose tables are gone is shown with a warning.
    fn table_status(
        &mut self,
        database: &Database,
        wanted: Option<&ShowFilter>,
    ) -> Result<Response, SqlError> {
        let mut invalid = Vec::new();
        let view = views::schema::table_status(database, &self.server.engine, |def| {
            let Err(e) = self.check_view(def) else {
                return "VIEW".into();
            };
            let text = e.message.to_string();
            invalid.push((Value::from(&*def.name), e));
            text
        });
        let mut set = rows(view);
        filter::apply(&mut set, wanted, 0);
        for (name, error) in invalid {
            if set.rows.iter().any(|row| row[0] == name) {
                self.conditions.push_error(Level::Warning, &error);
            }
        }
        Ok(Response::Rows(set))
    }

    /// SHOW CREATE VIEW, for accounts with SHOW VIEW and SELECT.
    fn show_view(&mut self, def: &TableDef, view: &ViewDef) -> Result<Response, SqlError> {
        self.rights
            .need_table(Privileges::SHOW_VIEW, &def.schema, &def.name)?;
        if let Err(e) = self.check_view(def) {
            self.conditions.push_error(Level::Warning, &e);
        }
        filtered(views::schema::create_view(def, view, self.quoting()?), None)
    }

    /// The account's privileges on each column of a table, in the format of SHOW FULL COLUMNS.
    fn column_privileges(&self, def: &TableDef) -> impl Fn(&str) -> String + use<'_> {
        let (schema, table) = (def.schema.clone(), def.name.clone());
        let own = self.temporary.find(&schema, &table).is_some();
        let on_table = match own {
            true => Privileges::all_column(),
            false => self.rights.on_table(&schema, &table),
        };
        move |column| {
            let on_column = self.rights.held().on_column(&schema, &table, column);
            system::privileges_text(on_table.union(on_column))
        }
    }

    /// How SHOW CREATE quotes names.
    pub(super) fn quoting(&self) -> Result<Quoting, SqlError> {
        let at = crate::session::vars::find("sql_quote_show_create")?;
        Ok(Quoting {
            always: *self.env.vars.get(at) != VarValue::Bool(false),
        })
    }
}

/// What a statement shows of a table, which decides about the privileges that it needs.
#[derive(Clone, Copy)]
enum ShownPart {
    Columns,
    View,
    Definition,
}

/// DESCRIBE
pub fn describe(
    session: &mut Session,
    _cx: &mut dyn ExecCx,
    table: &ObjectName,
    column: Option<&Ident>,
) -> Result<Response, SqlError> {
    session.refresh_schema();
    let def = session.visible_table(table, ShownPart::Columns)?;
    session.check_view(&def)?;
    let zone = &session.env.vars.settings().zone;
    let view = views::schema::columns(&def, false, zone, &session.column_privileges(&def));
    let wanted = column.map(|c| ShowFilter::Like(c.as_str().as_bytes().to_vec()));
    filtered(view, wanted.as_ref())
}

/// A system schema as a stored database.
fn system_database(name: &str) -> Option<Arc<Database>> {
    let def = system::database(name)?;
    let tables = system::tables_of(name).map(|t| (t.name.clone(), t.clone()));
    let tables = tables.collect();
    Some(Arc::new(Database { def, tables }))
}

impl Session {
    /// A database that SHOW may list. Errors 1046, 1044, 1049.
    fn visible_database(&self, name: Option<&Ident>) -> Result<Arc<Database>, SqlError> {
        let name = match name {
            Some(name) => Arc::from(name.as_str()),
            None => self
                .env
                .database
                .clone()
                .ok_or_else(|| SqlError::new(ErrorCode::ER_NO_DB_ERROR, &[]))?,
        };
        self.rights.need_any(&name)?;
        let stored = self.schema.database(&name).cloned();
        let found = stored.or_else(|| system_database(&name));
        let mut found = found.ok_or_else(|| SqlError::new(ErrorCode::ER_BAD_DB_ERROR, &[&name]))?;
        if !self
            .rights
            .on_database(&name)
            .has_any(Privileges::all_table())
        {
            let tables = &mut Arc::make_mut(&mut found).tables;
            tables.retain(|table, _| self.rights.sees_table(&name, table));
        }
        Ok(found)
    }

    /// A table that SHOW may describe. Errors 1046, 1142, 1146.
    fn visible_table(
        &self,
        table: &ObjectName,
        for_statement: ShownPart,
    ) -> Result<Arc<TableDef>, SqlError> {
        let (schema, name) = (self.schema_of(table)?, table.name.as_str());
        if let Some(own) = self.temporary.find(&schema, name) {
            return Ok(own.clone());
        }
        match for_statement {
            ShownPart::Columns => {
                if self.schema.database(&schema).is_some() {
                    self.table_def(&schema, name)?;
                }
                self.rights.need_some(&schema, name)?;
            }
            ShownPart::View => self.rights.need_table(Privileges::SELECT, &schema, name)?,
            ShownPart::Definition => {
                let any = Privileges::all_table();
                if !self.rights.on_table(&schema, name).has_any(any) {
                    return Err(self.rights.denied("SHOW", name));
                }
            }
        }
        if let Some(def) = system::find(&schema, name) {
            return Ok(def.clone());
        }
        if system::canonical(&schema) == Some(system::INFORMATION) {
            let name = name.to_uppercase();
            return Err(SqlError::new(
                ErrorCode::ER_UNKNOWN_TABLE,
                &[&name, &system::INFORMATION],
            ));
        }
        self.table_def(&schema, name)
    }

    /// COM_FIELD_LIST: the columns of a table.
    pub(crate) fn field_columns(
        &mut self,
        table: &[u8],
        wildcard: &[u8],
    ) -> Result<Vec<ColumnMeta>, SqlError> {
        self.refresh_schema();
        let name = ObjectName::bare(String::from_utf8_lossy(table).into_owned());
        let def = self.visible_table(&name, ShownPart::Columns)?;
        let wanted =
            |c: &&ColumnDef| wildcard.is_empty() || filter::like(c.name.as_bytes(), wildcard);
        let column = |c: &ColumnDef| ColumnMeta {
            schema: def.schema.clone(),
            table: def.name.clone(),
            org_table: def.name.clone(),
            name: c.name.clone(),
            org_name: c.name.clone(),
            flags: if c.nullable { 0 } else { ColumnFlags::NOT_NULL },
            ty: c.ty.clone(),
            made: false,
        };
        Ok(def.columns.iter().filter(wanted).map(column).collect())
    }
}
