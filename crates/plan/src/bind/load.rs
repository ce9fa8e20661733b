//! LOAD DATA: an INSERT whose rows come from a file.

use std::sync::Arc;

use nfold_catalog::{TableDef, Visibility};
use nfold_sql::ast::{self, FileFormat};
use nfold_types::{ErrorCode, SqlError};

use super::dml::{base_table, refuse_own_table, target_of, value};
use super::{BindCx, BlockBinder};
use crate::logical::clauses::Assignment;
use crate::logical::column_uses::ColumnAccess;
use crate::logical::file_rows::{FileRows, FileTarget};
use crate::logical::statement::{Insert, InsertRows, Statement};

pub(super) fn load(cx: &BindCx<'_>, i: &ast::Insert) -> Result<Statement, SqlError> {
    let ast::InsertSource::File {
        format,
        skip_lines,
        targets,
        set,
    } = &i.source
    else {
        return Err(SqlError::not_supported("LOAD DATA without a file"));
    };
    check_delimiters(format)?;
    if !i.partitions.is_empty() {
        return Err(SqlError::not_supported("PARTITION selection"));
    }
    let mut b = BlockBinder::new(cx, None);
    b.single(&target_of(i), "LOAD")?;
    let table = base_table(&b.tables[0].source, &i.table.name.value, "LOAD")?;
    let targets = file_targets(&b, &table, targets)?;
    let mut assignments = Vec::with_capacity(set.len());
    for a in set {
        let column = b.target_column(&table, &a.column, "field list")?;
        let def = &table.columns[column];
        let value = value(&mut b, &a.value, def)?;
        // As in MySQL, a value for a generated column is lost.
        if def.generated.is_none() {
            assignments.push(Assignment { column, value });
        }
    }
    b.put_computed(assignments.iter_mut().flat_map(|a| &mut a.value))?;
    refuse_own_table(&table, &i.table.name.value, &b.subqueries)?;
    let columns = assigned_columns(&table, &targets, &assignments);
    let named = columns.iter();
    named.for_each(|c| b.assign_column(&table, *c, ColumnAccess::Insert));
    let rows = FileRows {
        format: FileFormat::clone(format),
        skip_lines: *skip_lines,
        targets,
        set: assignments,
    };
    check_fixed_lengths(&table, &rows)?;
    Ok(Statement::Insert(Box::new(Insert {
        table,
        columns,
        source: InsertRows::File(Box::new(rows)),
        ignore: i.ignore,
        replace: i.replace,
        on_duplicate: Vec::new(),
        view: b.changed_view()?,
        subqueries: b.subqueries,
    })))
}

/// Error 1083 where fields are enclosed or escaped by more than one byte.
pub(super) fn check_delimiters(format: &FileFormat) -> Result<(), SqlError> {
    match format.escaped.len() > 1 || format.enclosed.len() > 1 {
        true => Err(SqlError::new(ErrorCode::ER_WRONG_FIELD_TERMINATORS, &[])),
        false => Ok(()),
    }
}

/// The targets of the fields: the list, or all columns that are not invisible.
fn file_targets(
    b: &BlockBinder<'_>,
    table: &Arc<TableDef>,
    list: &[ast::FileTarget],
) -> Result<Vec<FileTarget>, SqlError> {
    if list.is_empty() {
        if let Some(columns) = b.view_columns()? {
            return Ok(columns.into_iter().map(FileTarget::Column).collect());
        }
        let columns = table.columns.iter().enumerate();
        let visible = columns.filter(|(_, c)| c.visibility == Visibility::Visible);
        return Ok(visible.map(|(c, _)| FileTarget::Column(c)).collect());
    }
    let target = |t: &ast::FileTarget| match t {
        ast::FileTarget::Variable(name) => {
            Ok(FileTarget::Variable(name.to_lowercase().into_boxed_str()))
        }
        ast::FileTarget::Column(c) => Ok(FileTarget::Column(b.target_column(
            table,
            c,
            "field list",
        )?)),
    };
    list.iter().map(target).collect()
}

/// The columns that get values, each once. A value for a generated column is lost.
fn assigned_columns(table: &TableDef, targets: &[FileTarget], set: &[Assignment]) -> Vec<usize> {
    let fields = targets.iter().filter_map(|t| match t {
        FileTarget::Column(c) => Some(*c),
        FileTarget::Variable(_) => None,
    });
    let mut columns: Vec<usize> = fields.chain(set.iter().map(|a| a.column)).collect();
    columns.sort_unstable();
    columns.dedup();
    columns.retain(|c| table.columns[*c].generated.is_none());
    columns
}

/// Errors 1084 and 1409: fields of fixed lengths have no place for a BLOB or a variable.
fn check_fixed_lengths(table: &TableDef, rows: &FileRows) -> Result<(), SqlError> {
    let is_blob = |t: &FileTarget| matches!(t, FileTarget::Column(c) if is_blob(table, *c));
    let blobs = rows.targets.iter().any(is_blob);
    if blobs && rows.format.line_end.is_empty() && rows.format.field_end.is_empty() {
        return Err(SqlError::new(ErrorCode::ER_BLOBS_AND_NO_TERMINATED, &[]));
    }
    let is_variable = |t: &FileTarget| matches!(t, FileTarget::Variable(_));
    if rows.is_fixed() && rows.targets.iter().any(is_variable) {
        let code = ErrorCode::ER_LOAD_FROM_FIXED_SIZE_ROWS_TO_VAR;
        return Err(SqlError::new(code, &[]));
    }
    Ok(())
}

fn is_blob(table: &TableDef, column: usize) -> bool {
    let ty = &table.columns[column].ty;
    ty.is_json() || ty.is_blob()
}
