//! CHECK, CHECKSUM, ANALYZE, OPTIMIZE and REPAIR TABLE: one or more rows for each table.

use nfold_catalog::Privileges;
use nfold_exec::ExecCx;
use nfold_sql::ast::{MaintenanceKind, ObjectName, TableMaintenance};
use nfold_types::{CollationId, ColumnType, Level, SqlError, TextSize, TypeKind, Value};

use super::histogram;
use super::table::refuse_view;
use crate::session::Session;
use crate::session::response::{Response, RowSet, text_type};

/// The width of a message in its description, as in MySQL: 393,216 characters.
const MESSAGE_BYTES: u32 = 98_304;

/// The messages about one table: type (`status`, `note`, `error`) and text.
pub(super) type Lines = Vec<(&'static str, String)>;

/// Runs the statement.
pub fn run(
    session: &mut Session,
    cx: &mut dyn ExecCx,
    m: &TableMaintenance,
) -> Result<Response, SqlError> {
    let op = match m.kind {
        MaintenanceKind::Check => "check",
        MaintenanceKind::Analyze => "analyze",
        MaintenanceKind::Optimize => "optimize",
        MaintenanceKind::Repair => "repair",
        MaintenanceKind::Checksum => return session.checksums(m),
    };
    let op = match &m.histogram {
        Some(change) => {
            histogram::check(change)?;
            "histogram"
        }
        None => op,
    };
    let text = TypeKind::Text(TextSize::Medium);
    let long = ColumnType {
        width: MESSAGE_BYTES,
        ..ColumnType::string(text, CollationId::UTF8MB4_0900_AI_CI)
    };
    let mut set = RowSet::new(&[
        ("Table", text_type(128)),
        ("Op", text_type(10)),
        ("Msg_type", text_type(10)),
        ("Msg_text", long),
    ]);
    // MySQL describes it as the result of an expression, not as a column.
    set.columns[3].made = true;
    if m.histogram.is_some() && m.tables.len() > 1 {
        let text = "Only one table can be specified while modifying histogram statistics.";
        let row = ["", op, "Error", text];
        set.push(row.map(Value::from).into());
        return Ok(Response::Rows(set));
    }
    session.may_maintain(m)?;
    for name in &m.tables {
        let schema = session.schema_of(name)?;
        let label = format!("{schema}.{}", name.name);
        let done = match &m.histogram {
            Some(change) => session.change_histograms(cx, &schema, name, change),
            None => session.maintain(cx, m.kind, &schema, name),
        };
        let lines = match done {
            Ok(lines) => lines,
            Err(e) if m.histogram.is_some() => vec![("Error", e.message.to_string())],
            Err(e) => vec![
                ("Error", e.message.to_string()),
                ("status", "Operation failed".into()),
            ],
        };
        for (kind, text) in lines {
            set.push(vec![
                Value::from(label.as_str()),
                Value::from(op),
                Value::from(kind),
                Value::from(text),
            ]);
        }
    }
    Ok(Response::Rows(set))
}

impl Session {
    /// CHECKSUM TABLE. With QUICK it returns a checksum that the engine keeps, and InnoDB keeps
    /// none.
    fn checksums(&mut self, m: &TableMaintenance) -> Result<Response, SqlError> {
        let number = ColumnType::bigint();
        let mut set = RowSet::new(&[("Table", text_type(128)), ("Checksum", number)]);
        self.refresh_schema();
        for name in &m.tables {
            let (schema, name) = (self.schema_of(name)?, name.name.as_str());
            if self.temporary.find(&schema, name).is_none() {
                self.rights.need_table(Privileges::SELECT, &schema, name)?;
                let found = self.table_def(&schema, name);
                if let Err(e) = found.and_then(|def| refuse_view(&def)) {
                    self.conditions.push_error(Level::Error, &e);
                } else if m.options.iter().all(|o| o != "QUICK") {
                    return Err(SqlError::not_supported("CHECKSUM TABLE without QUICK"));
                }
            }
            set.push(vec![Value::from(format!("{schema}.{name}")), Value::Null]);
        }
        Ok(Response::Rows(set))
    }

    /// Error 1142 without the privileges on all of the tables.
    fn may_maintain(&mut self, m: &TableMaintenance) -> Result<(), SqlError> {
        let change = Privileges::SELECT.union(Privileges::INSERT);
        for name in &m.tables {
            let (schema, table) = (self.schema_of(name)?, name.name.as_str());
            if self.temporary.find(&schema, table).is_some() {
                continue;
            }
            match m.kind {
                MaintenanceKind::Check => self.rights.need_some(&schema, table)?,
                _ => self.rights.need_table(change, &schema, table)?,
            }
        }
        Ok(())
    }

    fn maintain(
        &mut self,
        cx: &mut dyn ExecCx,
        kind: MaintenanceKind,
        schema: &str,
        name: &ObjectName,
    ) -> Result<Lines, SqlError> {
        let own = self.temporary.find(schema, name.name.as_str()).cloned();
        if own.is_some() && kind == MaintenanceKind::Optimize {
            return Err(SqlError::not_supported(
                "OPTIMIZE TABLE of a temporary table",
            ));
        }
        if kind == MaintenanceKind::Optimize {
            let written = name.name.as_str();
            self.table_locks
                .allow(schema, written, Some(written), true)?;
            let (_claim, def) = self.claim_table(cx, schema, name.name.as_str(), &[])?;
            let engine = self.server.engine.clone();
            self.change(cx, move || engine.optimize_table(&def))?;
            let note = "Table does not support optimize, doing recreate + analyze instead";
            return Ok(vec![("note", note.into()), ("status", "OK".into())]);
        }
        let mut def = own;
        if def.is_none() {
            self.lock_tables_shared(cx, &mut |s| {
                def = s.table(schema, name.name.as_str()).cloned();
                def.iter().map(|d| d.id).collect()
            })?;
        }
        let def = match def {
            Some(def) => def,
            None => self.table_def(schema, name.name.as_str())?,
        };
        if def.is_view() && kind == MaintenanceKind::Check {
            self.refresh_schema();
            return Ok(match self.check_view(&def) {
                Ok(()) => vec![("status", "OK".into())],
                Err(e) => vec![
                    ("Error", e.message.to_string()),
                    ("error", "Corrupt".into()),
                ],
            });
        }
        refuse_view(&def)?;
        if kind == MaintenanceKind::Repair {
            let note = "The storage engine for the table doesn't support repair";
            return Ok(vec![("note", note.into())]);
        }
        let engine = self.server.engine.clone();
        let Some(table) = engine.table(def.id) else {
            return Err(SqlError::new(
                nfold_types::ErrorCode::ER_TABLE_DEF_CHANGED,
                &[],
            ));
        };
        let ok = || vec![("status", "OK".to_string())];
        match kind {
            MaintenanceKind::Check => {
                let report = self.change(cx, move || engine.check_table(&table))?;
                if report.problems.is_empty() {
                    return Ok(ok());
                }
                let problems = report.problems.into_iter().map(|p| ("error", p));
                Ok(problems.chain([("error", "Corrupt".into())]).collect())
            }
            _ => {
                self.change(cx, move || engine.analyze_table(&table))?;
                self.refresh_histograms(cx, &def)?;
                Ok(ok())
            }
        }
    }
}
