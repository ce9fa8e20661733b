//! ALTER TABLE by copy: converts the rows of the old definition to the new one.

use std::cell::RefCell;
use std::sync::Arc;

use nfold_catalog::{ColumnDef, ColumnDefault, TableDef};
use nfold_engine::{CopyError, Engine, EngineError, IndexSpec, Table, TableSpec, ValueSeries};
use nfold_exec::{CopiedRows, ExecCx, SessionEnv, documents};
use nfold_plan::SqlMode;
use nfold_plan::table_exprs::TableExprs;
use nfold_types::convert::store::{StoreCx, StoreMode, implicit_default, store_value};
use nfold_types::row::{RowColumn, RowLayout};
use nfold_types::{
    CollationId, ColumnType, ErrorCode, SqlError, Timestamp, TypeKind, Value, ValueRef, Warnings,
};

use super::auto_increment::{NewValueOptions, NewValues};
use super::row_env::RowEnv;
use crate::ddl::bind;
use crate::ddl::bind::alter::Source;
use crate::ddl::bind::foreign::definition_of;
use crate::session::Session;

/// Error 1452 if a row of a new table, which no schema contains yet, has no parent.
fn verify_foreign_keys(engine: &Engine, table: &Arc<Table>) -> Result<(), CopyError<SqlError>> {
    let def = table.def();
    for key in &def.foreign_keys {
        let schema = engine.catalog().snapshot();
        let parent = match key.references(&def.schema, &def.name) {
            true => Some(table.clone()),
            false => schema
                .table(&key.parent_schema, &key.parent_table)
                .and_then(|p| engine.table(p.id)),
        };
        let orphan = match &parent {
            Some(parent) => engine.has_orphan(table, key, parent)?,
            None => true,
        };
        if orphan {
            return Err(CopyError::Convert(nfold_exec::no_referenced_row(def, key)));
        }
    }
    Ok(())
}

/// Where the copy of a table goes.
pub enum CopyTarget {
    /// It replaces the table. `others`: definitions that change together with it; `verify`: the
    /// rows must satisfy the foreign keys; `inplace`: MySQL would change the table in place, where
    /// NULL in a NOT NULL column has an error of its own.
    Instead {
        others: Vec<TableDef>,
        verify: bool,
        inplace: bool,
    },
    /// It is a temporary table beside the old one.
    Temporary,
}

/// The number of rows, and the copy if it is a temporary table.
pub type Copied = (u64, Option<Arc<TableDef>>);

impl Session {
    /// Copies `old` into a table of this specification. `columns`: where its columns get their
    /// values.
    ///
    /// # Errors
    /// Those of conversions and of stored expressions; 1062, 1452.
    pub(super) fn copy_table(
        &mut self,
        cx: &mut dyn ExecCx,
        old: &Arc<TableDef>,
        (spec, columns): (TableSpec, Vec<Source>),
        target: CopyTarget,
    ) -> Result<Copied, SqlError> {
        let engine = self.server.engine.clone();
        let (mode, now) = (self.store_mode(), self.env.now());
        let (indexes, def) = (spec.indexes.clone(), old.clone());
        let exprs = bind::stored::bound(&spec, &self.schema)?;
        let exprs = exprs.map(|e| (e, RowEnv::of(&self.env)));
        let (increment, offset) = self.env.auto_increment();
        let options = NewValueOptions {
            series: ValueSeries {
                offset,
                increment: increment.max(1),
            },
            zero_is_a_value: self.env.sql_mode().has(SqlMode::NO_AUTO_VALUE_ON_ZERO),
            inplace: matches!(target, CopyTarget::Instead { inplace: true, .. }),
            first: spec.auto_increment,
            rows: engine.table(old.id).map_or(0, |t| t.estimate_rows()),
        };
        let automatic = NewValues::of(&spec.columns, &columns, old, options);
        let copied = self.try_change(cx, move || {
            let values = (&*columns, &mode, now);
            Ok(run(
                &engine,
                &def,
                &spec,
                target,
                values,
                (exprs, automatic),
            ))
        });
        let (result, warnings) = copied?.map_err(|e| nfold_exec::engine_error(&e))?;
        for w in warnings.list() {
            let e = SqlError::with_message(w.code, w.message.clone());
            self.conditions.push_error(w.level, &e);
        }
        result.map_err(|e| match e {
            CopyError::Convert(e) => e,
            CopyError::Engine(e) => duplicate(&e, old, &indexes),
        })
    }
}

/// Copies `old` into a new table of `spec`. `sources`: where the columns get their values; `exprs`:
/// the stored expressions of `spec`, with the session's state for them; `automatic`: values for a
/// column that becomes AUTO_INCREMENT. Also returns the warnings of conversions. Blocks.
fn run(
    engine: &Engine,
    old: &Arc<TableDef>,
    spec: &TableSpec,
    target: CopyTarget,
    (sources, mode, now): (&[Source], &StoreMode, Timestamp),
    (exprs, automatic): (Option<(Arc<TableExprs>, RowEnv)>, Option<NewValues>),
) -> (Result<Copied, CopyError<SqlError>>, Warnings) {
    let layout = |columns: &[ColumnDef], version| {
        RowLayout::new(
            version,
            columns.iter().map(|c| RowColumn {
                ty: c.ty.clone(),
                nullable: c.nullable,
            }),
        )
    };
    let (from, to) = (
        layout(&old.columns, old.row_version),
        layout(&spec.columns, 0),
    );
    let warnings = RefCell::new(Warnings::default());
    let def = definition_of(spec);
    let mut completed = exprs
        .as_ref()
        .map(|(e, env)| CopiedRows::new(env, e.clone()));
    let defaulted = sources.iter().enumerate();
    let defaulted = defaulted.filter(|(_, source)| **source == Source::Default);
    let defaulted: Vec<usize> = defaulted.map(|(n, _)| n).collect();
    // MySQL copies only if a column gets another type, and then checks the dates in all columns.
    let other_type = |(column, source): (&ColumnDef, &Source)| match source {
        Source::Old(n) => !stays(&old.columns[*n].ty, &column.ty),
        Source::Default => false,
    };
    let looks = spec.columns.iter().zip(sources).any(other_type);
    let inplace = matches!(target, CopyTarget::Instead { inplace: true, .. });
    let automatic = RefCell::new(automatic);
    let mut row = 0;
    let mut values: Vec<Value> = Vec::with_capacity(spec.columns.len());
    let convert_row = |image: &[u8], out: &mut Vec<u8>| {
        row += 1;
        values.clear();
        let mut automatic = automatic.borrow_mut();
        for (n, (column, source)) in spec.columns.iter().zip(sources).enumerate() {
            let computed = column.generated.is_some()
                || *source == Source::Default && matches!(column.default, ColumnDefault::Expr(_));
            if computed {
                values.push(CopiedRows::placeholder(&def, n));
                continue;
            }
            let mut warnings = warnings.borrow_mut();
            let mut cx = StoreCx {
                mode,
                column: &column.name,
                row,
                from: CollationId::UTF8MB4_BIN,
                warnings: &mut warnings,
            };
            let value = match source {
                Source::Default if is_zero_date(column) => {
                    let zero = implicit_default(&column.ty);
                    store_value(zero.as_ref(), column.ty.collation, &column.ty, &mut cx)?
                }
                Source::Default => default_value(column, now, mode),
                Source::Old(n) => {
                    let stored = from
                        .get(image, *n)
                        .map_err(|e| corrupt(old, &e.to_string()))?;
                    match looks {
                        true => convert(stored, &old.columns[*n].ty, &column.ty, &mut cx)?,
                        false => stored.to_owned(),
                    }
                }
            };
            let value = match automatic.as_mut().filter(|new| new.column == n) {
                Some(new) => new.value((*source != Source::Default).then_some(value))?,
                None => value,
            };
            values.push(fill_null(
                value,
                column,
                row,
                (mode, inplace),
                &mut warnings,
            )?);
        }
        to.encode(values.iter().map(Value::as_ref), out)
            .map_err(|e| corrupt(old, &e.to_string()))?;
        match &mut completed {
            Some(rows) => rows.complete((&def, &to), &defaulted, out, (row, &warnings)),
            None => Ok(()),
        }
    };
    let counter = || automatic.borrow().as_ref().map_or(0, NewValues::counter);
    let copied =
        match target {
            CopyTarget::Instead { others, verify, .. } => engine
                .rebuild_table_beside(old, spec, others, (convert_row, counter), |table| {
                    match verify {
                        true => verify_foreign_keys(engine, table),
                        false => Ok(()),
                    }
                })
                .map(|rows| (rows, None)),
            CopyTarget::Temporary => engine
                .copy_private_table(old, spec, (convert_row, counter))
                .map(|(copy, rows)| (rows, Some(copy))),
        };
    (copied, warnings.into_inner())
}

/// Converts a stored value of type `from` to type `to`. An ENUM or SET value is the number of a
/// member, which has no meaning in another list of members. So except for numeric types, the
/// member's text is converted, as in MySQL.
fn convert(
    stored: ValueRef<'_>,
    from: &ColumnType,
    to: &ColumnType,
    cx: &mut StoreCx<'_>,
) -> Result<Value, SqlError> {
    if to.is_json() != from.is_json()
        && let ValueRef::Bytes(bytes) = stored
    {
        return match to.is_json() {
            true => documents::of_text(bytes, from.collation, cx.column),
            false => {
                let text = documents::text(bytes)?;
                store_value(ValueRef::Bytes(&text), CollationId::UTF8MB4_BIN, to, cx)
            }
        };
    }
    let ValueRef::UInt(members) = stored else {
        return store_value(stored, from.collation, to, cx);
    };
    if !from.is_enum_or_set() || to.is_numeric() || to.kind == TypeKind::Year {
        return store_value(stored, from.collation, to, cx);
    }
    // The number 0 is an empty SET, or the error value of an ENUM, which is copied without a
    // warning.
    if from == to || (members == 0 && to.is_enum_or_set()) {
        return Ok(Value::UInt(members));
    }
    let mut text = Vec::new();
    from.member_text(members, &mut text);
    store_value(ValueRef::Bytes(&text), CollationId::UTF8MB4_BIN, to, cx)
}

fn corrupt(table: &TableDef, what: &str) -> SqlError {
    SqlError::with_message(
        ErrorCode::ER_UNKNOWN_ERROR,
        format!("a row of table {}.{}: {what}", table.schema, table.name),
    )
}

/// Whether values of type `from` are valid values of type `to`: the types are equal, or `to` is a
/// longer VARCHAR.
fn stays(from: &ColumnType, to: &ColumnType) -> bool {
    match (&from.kind, &to.kind) {
        (TypeKind::VarChar(a), TypeKind::VarChar(b))
        | (TypeKind::VarBinary(a), TypeKind::VarBinary(b)) => {
            a <= b && from.collation == to.collation
        }
        _ => from == to,
    }
}

/// Whether rows get the zero date in a new column, which the SQL mode may forbid.
fn is_zero_date(column: &ColumnDef) -> bool {
    let date = matches!(column.ty.kind, TypeKind::Date | TypeKind::DateTime(_));
    date && !column.nullable && column.default == ColumnDefault::None
}

/// The value of a new column.
fn default_value(column: &ColumnDef, now: Timestamp, mode: &StoreMode) -> Value {
    match &column.default {
        ColumnDefault::None | ColumnDefault::Expr(_) => implicit_default(&column.ty),
        ColumnDefault::Null => Value::Null,
        ColumnDefault::Literal(v) => v.clone(),
        ColumnDefault::CurrentTimestamp(fsp) => {
            let unit = 10i64.pow(6 - u32::from((*fsp).min(6)));
            let at = Timestamp::from_micros(now.micros() / unit * unit, *fsp);
            match column.ty.kind {
                TypeKind::Timestamp(_) => Value::Timestamp(at),
                _ => mode
                    .time_zone
                    .to_local(at)
                    .map_or(Value::Null, Value::DateTime),
            }
        }
    }
}

/// Handles NULL in a NOT NULL column: error 1265 in strict mode, or 1138 if MySQL would change the
/// table in place; otherwise the type's default with a warning.
fn fill_null(
    value: Value,
    column: &ColumnDef,
    row: u64,
    (mode, inplace): (&StoreMode, bool),
    warnings: &mut Warnings,
) -> Result<Value, SqlError> {
    if !value.is_null() || column.nullable {
        return Ok(value);
    }
    let truncated = ErrorCode::WARN_DATA_TRUNCATED;
    if mode.strict {
        return Err(match inplace {
            true => SqlError::new(ErrorCode::ER_INVALID_USE_OF_NULL, &[]),
            false => SqlError::new(truncated, &[&column.name, &row]),
        });
    }
    warnings.warn(truncated, &[&column.name, &row]);
    Ok(implicit_default(&column.ty))
}

/// The error of a change of indexes. A duplicate is reported with the name of its key, because its
/// values are not known here.
pub fn duplicate(e: &EngineError, table: &TableDef, _: &[IndexSpec]) -> SqlError {
    match e {
        EngineError::DuplicateInBuild { index, .. } => SqlError::new(
            ErrorCode::ER_DUP_ENTRY,
            &[&"...", &format!("{}.{index}", table.name)],
        ),
        other => nfold_exec::full_table(nfold_exec::engine_error(other), &table.name),
    }
}
