//! CHECK constraints of CREATE and ALTER TABLE: their names, and the columns that their conditions
//! may name.

use std::sync::Arc;

use nfold_catalog::schema::eq_name;
use nfold_catalog::stored_expr::{check_name, check_number};
use nfold_catalog::{CheckDef, ReferentialAction, SchemaSnapshot, TableDef, TableId};
use nfold_engine::TableSpec;
use nfold_sql::ast;
use nfold_sql::stored::is_boolean;
use nfold_types::{ErrorCode, SqlError};

use super::stored::{Purpose, column_of, stored_expr};
use super::{DdlCx, check_length, error};

/// The number of the last generated constraint name of a table.
pub fn last_number(table: &TableDef) -> u32 {
    let names = table.checks.iter().map(|c| &c.name);
    let numbers = names.filter_map(|name| check_number(name, &table.name));
    numbers.max().unwrap_or(0)
}

/// Binds a constraint of the table of `spec`. `number` is that of the last generated name.
///
/// # Errors
/// 1059, 3812 to 3818, 3820, 3822.
pub fn bind(
    check: &ast::Check,
    spec: &TableSpec,
    number: &mut u32,
    cx: &DdlCx<'_>,
) -> Result<CheckDef, SqlError> {
    let name: Arc<str> = match &check.name {
        Some(name) => name.as_str().into(),
        None => {
            *number += 1;
            check_name(&spec.name, *number)
        }
    };
    check_length(&name)?;
    check_free(&name, spec, cx)?;
    if !is_boolean(&check.expr) {
        let code = ErrorCode::ER_NON_BOOLEAN_EXPR_FOR_CHECK_CONSTRAINT;
        return Err(error(code, &[&name]));
    }
    let expr = stored_expr(&check.expr, Purpose::Check(&name), cx)?;
    for column in &expr.columns {
        if check
            .column
            .as_ref()
            .is_some_and(|own| !eq_name(own.as_str(), column))
        {
            let code = ErrorCode::ER_COLUMN_CHECK_CONSTRAINT_REFERENCES_OTHER_COLUMN;
            return Err(error(code, &[&name]));
        }
        let Some(at) = column_of(&spec.columns, column) else {
            let code = ErrorCode::ER_CHECK_CONSTRAINT_REFERS_UNKNOWN_COLUMN;
            return Err(error(code, &[&name, column]));
        };
        if spec.columns[at].auto_increment {
            let code = ErrorCode::ER_CHECK_CONSTRAINT_REFERS_AUTO_INCREMENT_COLUMN;
            return Err(error(code, &[&name]));
        }
    }
    Ok(CheckDef {
        name,
        expr,
        enforced: check.enforced,
    })
}

/// Error 3822 if another constraint of the database has the name.
pub fn check_free(name: &str, spec: &TableSpec, cx: &DdlCx<'_>) -> Result<(), SqlError> {
    let database = cx.schema.database(&spec.schema);
    let others = database.into_iter().flat_map(|d| d.tables.values());
    let others = others
        .filter(|t| t.name != spec.name)
        .flat_map(|t| &t.checks);
    let mut all = others.chain(&spec.checks);
    match all.any(|c| eq_name(&c.name, name)) {
        true => Err(error(ErrorCode::ER_CHECK_CONSTRAINT_DUP_NAME, &[&name])),
        false => Ok(()),
    }
}

/// Error 3823 if a constraint names a column that a foreign key's action changes.
pub fn check_foreign_keys(spec: &TableSpec) -> Result<(), SqlError> {
    for key in &spec.foreign_keys {
        let changes = key.on_update.changes_children()
            || key.on_delete == ReferentialAction::SetNull
            || key.on_update == ReferentialAction::SetDefault
            || key.on_delete == ReferentialAction::SetDefault;
        if !changes {
            continue;
        }
        for column in key.columns.iter().map(|c| &spec.columns[*c].name) {
            if let Some(check) = spec.checks.iter().find(|c| c.expr.names(column)) {
                let code = ErrorCode::ER_CHECK_CONSTRAINT_CLAUSE_USING_FK_REFER_ACTION_COLUMN;
                return Err(error(code, &[column, &check.name, &key.name]));
            }
        }
    }
    Ok(())
}

/// Binds the constraints of CREATE TABLE, and adds them to `spec`.
pub fn bind_created(
    checks: &[ast::Check],
    spec: &mut TableSpec,
    cx: &DdlCx<'_>,
) -> Result<(), SqlError> {
    let mut number = 0;
    for check in checks {
        let bound = bind(check, spec, &mut number, cx)?;
        spec.checks.push(bound);
    }
    sort(&mut spec.checks);
    check_foreign_keys(spec)
}

/// Sorts constraints in the order of definitions.
pub fn sort(checks: &mut [CheckDef]) {
    checks.sort_by_cached_key(|c| c.name.to_lowercase());
}

/// The constraints of a copied table (CREATE TABLE ... LIKE), with generated names.
pub fn renumbered(checks: &[CheckDef], table: &str) -> Vec<CheckDef> {
    let numbered = checks.iter().zip(1..);
    let mut all: Vec<CheckDef> = numbered
        .map(|(check, n)| CheckDef {
            name: check_name(table, n),
            ..check.clone()
        })
        .collect();
    sort(&mut all);
    all
}

/// Checks the names of the constraints and foreign keys of a table that becomes `new` in database
/// `schema`. `moved`: tables that get other names, too.
///
/// # Errors
/// 1059, 3822.
pub fn check_renamed(
    old: &TableDef,
    (schema, new): (&str, &str),
    moved: &[TableId],
    snapshot: &SchemaSnapshot,
) -> Result<(), SqlError> {
    let database = snapshot.database(schema);
    let others = database.into_iter().flat_map(|d| d.tables.values());
    let stays = |t: &&Arc<TableDef>| t.id != old.id && !moved.contains(&t.id);
    let others = others.filter(stays).flat_map(|t| &t.checks);
    for key in &old.foreign_keys {
        check_length(&key.renamed(&old.name, new))?;
    }
    for check in &old.checks {
        let name = check.renamed(&old.name, new);
        check_length(&name)?;
        if others.clone().any(|c| eq_name(&c.name, &name)) {
            return Err(error(ErrorCode::ER_CHECK_CONSTRAINT_DUP_NAME, &[&name]));
        }
    }
    Ok(())
}

/// The constraints of a renamed table.
pub fn renamed(checks: &[CheckDef], old: &str, new: &str) -> Vec<CheckDef> {
    let mut all: Vec<CheckDef> = checks
        .iter()
        .map(|check| CheckDef {
            name: check.renamed(old, new),
            ..check.clone()
        })
        .collect();
    sort(&mut all);
    all
}
