//! CREATE TABLE.

use std::sync::Arc;

use nfold_catalog::schema::eq_name;
use nfold_catalog::{ColumnDef, IndexKind, TableDef, TableOptions, Visibility};
use nfold_engine::{IndexSpec, TableSpec};
use nfold_sql::ast::{self, CreateTable};
use nfold_types::{ErrorCode, SqlError, TypeKind};

use nfold_plan::results::ResultColumn;

use super::{
    Commented, DdlCx, check, check_attributes, check_length, check_table_name, column, comment,
    error, foreign, fulltext, key, named_collation, refuse_engine_attributes, selected, stored,
};

/// The maximum number of columns of a table.
const MAX_COLUMNS: usize = 1017;

/// Binds CREATE TABLE (not LIKE) in database `schema`. `selected` are the result columns of its
/// query; those without a definition become additional columns.
///
/// # Errors
/// MySQL's errors; 1235 for partitioned tables.
pub fn bind(
    create: &CreateTable,
    selected: &[ResultColumn],
    schema: &str,
    cx: &mut DdlCx<'_>,
) -> Result<TableSpec, SqlError> {
    let name = create.name.name.as_str();
    check_table_name(name)?;
    refuse_unsupported(create)?;
    if create.temporary {
        fulltext::refuse_temporary(&create.keys)?;
    }
    if create.temporary && !create.foreign_keys.is_empty() {
        return Err(error(ErrorCode::ER_CANNOT_ADD_FOREIGN, &[]));
    }
    check_engine(create.options.engine.as_deref(), cx)?;
    let options = &create.options;
    let engine = options.engine.as_deref();
    let in_memory = |e: &str| ["memory", "heap"].iter().any(|m| m.eq_ignore_ascii_case(e));
    cx.has_hash_indexes = engine.is_some_and(in_memory);
    let collation = named_collation(options.charset.as_deref(), options.collation.as_deref())?
        .unwrap_or(cx.collation);
    let comment = comment(options.comment.as_ref(), (Commented::Table, name), cx)?;
    let mut columns: Vec<ColumnDef> = Vec::with_capacity(create.columns.len());
    for c in &create.columns {
        let bound = column::bind(c, collation, cx)?;
        if columns.iter().any(|o| eq_name(&o.name, &bound.name)) {
            return Err(error(ErrorCode::ER_DUP_FIELDNAME, &[&bound.name]));
        }
        columns.push(bound);
    }
    let mut columns = selected::merge(columns, selected, cx)?;
    let null_written = create.columns.iter().filter(|c| c.not_null == Some(false));
    let null_written: Vec<&str> = null_written.map(|c| c.name.as_str()).collect();
    let is_null = |c: &ColumnDef| null_written.iter().any(|name| eq_name(name, &c.name));
    let explicit_null: Vec<bool> = columns.iter().map(is_null).collect();
    let keys = foreign::with_generated_keys(&create.keys, &create.foreign_keys);
    let (keys, generated): (Vec<_>, Vec<_>) = keys.into_iter().unzip();
    let mut indexes = bind_keys((schema, name), &keys, &mut columns, &explicit_null, cx)?;
    for (index, generated) in indexes.iter_mut().zip(generated) {
        index.generated = generated;
    }
    check_columns(&columns, &indexes)?;
    let mut spec = TableSpec {
        schema: schema.into(),
        name: name.into(),
        columns,
        indexes,
        foreign_keys: Vec::new(),
        checks: Vec::new(),
        collation,
        options: TableOptions {
            comment,
            row_format: options.row_format.as_deref().map(Into::into),
        },
        auto_increment: options.auto_increment.unwrap_or(0),
    };
    if !create.temporary && has_foreign_keys(options.engine.as_deref()) {
        foreign::bind_created(create, &mut spec, cx)?;
    }
    check::bind_created(&create.checks, &mut spec, cx)?;
    stored::check(&spec, cx)?;
    Ok(spec)
}

/// The names of a query's result columns, for the INSERT that stores its rows.
pub fn named(results: &[ResultColumn]) -> Vec<ast::ColumnRef> {
    let column = |r: &ResultColumn| ast::ColumnRef {
        schema: None,
        table: None,
        name: ast::Ident::new(&*r.name),
    };
    results.iter().map(column).collect()
}

/// CREATE TABLE ... LIKE: the same table under another name.
///
/// # Errors
/// 1059, 1103.
pub fn like(old: &TableDef, schema: &str, name: &str) -> Result<TableSpec, SqlError> {
    check_table_name(name)?;
    let mut spec = spec_of(old);
    spec.columns.iter_mut().for_each(|c| c.histogram = None);
    let checks = check::renumbered(&spec.checks, name);
    checks.iter().try_for_each(|c| check_length(&c.name))?;
    Ok(TableSpec {
        schema: schema.into(),
        name: name.into(),
        checks,
        foreign_keys: Vec::new(),
        ..spec
    })
}

/// The spec of an empty table with the same definition.
pub fn spec_of(old: &TableDef) -> TableSpec {
    let visible = old
        .indexes
        .iter()
        .filter(|i| i.kind != IndexKind::HiddenRowId);
    TableSpec {
        schema: old.schema.clone(),
        name: old.name.clone(),
        columns: old.columns.clone(),
        indexes: visible
            .map(|i| IndexSpec {
                name: i.name.clone(),
                kind: i.kind,
                parts: i.parts.clone(),
                comment: i.comment.clone(),
                btree: i.btree,
                generated: i.generated,
                visible: i.visible,
            })
            .collect(),
        foreign_keys: old.foreign_keys.clone(),
        checks: old.checks.clone(),
        collation: old.collation,
        options: old.options.clone(),
        auto_increment: 0,
    }
}

fn refuse_unsupported(create: &CreateTable) -> Result<(), SqlError> {
    let what = if create.partitioned {
        "partitioned tables"
    } else if !create.foreign_keys.is_empty() && create.query.is_some() {
        "foreign keys in CREATE TABLE ... SELECT"
    } else {
        return Ok(());
    };
    Err(SqlError::not_supported(what))
}

/// The storage engines that a table may name. All of them mean the only engine.
const ENGINES: [&str; 8] = [
    "InnoDB",
    "MyISAM",
    "MEMORY",
    "HEAP",
    "Aria",
    "RocksDB",
    "ndbcluster",
    "Nfold",
];

/// Those of them that ignore foreign keys in MySQL.
const WITHOUT_FOREIGN_KEYS: [&str; 4] = ["MyISAM", "MEMORY", "HEAP", "Aria"];

/// Whether foreign keys of a new table with this ENGINE clause are kept.
fn has_foreign_keys(engine: Option<&str>) -> bool {
    let ignores = |engine: &str| {
        let mut names = WITHOUT_FOREIGN_KEYS.iter();
        names.any(|e| e.eq_ignore_ascii_case(engine))
    };
    !engine.is_some_and(ignores)
}

/// The name of the engine that an ENGINE clause means, as MySQL writes it.
pub(super) fn engine_name(engine: Option<&str>) -> &'static str {
    let same = |e: &&&str| engine.is_some_and(|engine| e.eq_ignore_ascii_case(engine));
    ENGINES.iter().find(same).copied().unwrap_or("InnoDB")
}

/// Checks the engine attributes of a new table.
///
/// # Errors
/// 3980, 3981.
pub fn refuse_attributes(create: &ast::CreateTable) -> Result<(), SqlError> {
    check_attributes(&create.engine_attributes)?;
    refuse_engine_attributes(&create.engine_attributes, create.options.engine.as_deref())
}

/// Checks an ENGINE clause.
///
/// # Errors
/// 1286 for an unknown engine under NO_ENGINE_SUBSTITUTION; otherwise a warning.
pub fn check_engine(engine: Option<&str>, cx: &mut DdlCx<'_>) -> Result<(), SqlError> {
    let Some(engine) = engine else { return Ok(()) };
    if ENGINES.iter().any(|e| e.eq_ignore_ascii_case(engine)) {
        return Ok(());
    }
    if cx.no_engine_substitution {
        return Err(error(ErrorCode::ER_UNKNOWN_STORAGE_ENGINE, &[&engine]));
    }
    cx.warnings
        .warn(ErrorCode::ER_UNKNOWN_STORAGE_ENGINE, &[&engine]);
    Ok(())
}

/// Binds the keys. Names are assigned to primary keys first.
pub fn bind_keys(
    table: (&str, &str),
    keys: &[ast::KeyDef],
    columns: &mut Vec<ColumnDef>,
    explicit_null: &[bool],
    cx: &mut DdlCx<'_>,
) -> Result<Vec<IndexSpec>, SqlError> {
    let mut bound: Vec<(usize, IndexSpec)> = Vec::with_capacity(keys.len());
    // Explicit names are taken before names are generated.
    let mut order: Vec<(usize, &ast::KeyDef)> = keys.iter().enumerate().collect();
    order.sort_by_key(|(_, k)| k.name.is_none());
    for (place, k) in order {
        let taken: Vec<Arc<str>> = bound.iter().map(|(_, b)| b.name.clone()).collect();
        let index = key::bind(k, columns, explicit_null, &taken, cx)?;
        let primary = |i: &IndexSpec| i.kind == IndexKind::Primary;
        if primary(&index) && bound.iter().any(|(_, b)| primary(b)) {
            return Err(error(ErrorCode::ER_MULTIPLE_PRI_KEY, &[]));
        }
        bound.push((place, index));
    }
    if bound.len() > key::MAX_KEYS {
        return Err(error(ErrorCode::ER_TOO_MANY_KEYS, &[&key::MAX_KEYS]));
    }
    // Restores the order in which the keys are written.
    bound.sort_by_key(|(place, _)| *place);
    let bound: Vec<IndexSpec> = bound.into_iter().map(|(_, index)| index).collect();
    for (n, index) in bound.iter().enumerate() {
        key::warn_of_duplicate(index, bound[..n].iter(), table, cx);
    }
    Ok(bound)
}

/// Checks all columns and keys of a table together.
pub fn check_columns(columns: &[ColumnDef], indexes: &[IndexSpec]) -> Result<(), SqlError> {
    if columns.is_empty() {
        return Err(error(ErrorCode::ER_TABLE_MUST_HAVE_COLUMNS, &[]));
    }
    if columns.iter().all(|c| c.visibility != Visibility::Visible) {
        return Err(error(ErrorCode::ER_TABLE_MUST_HAVE_A_VISIBLE_COLUMN, &[]));
    }
    if columns.len() > MAX_COLUMNS {
        return Err(error(ErrorCode::ER_TOO_MANY_FIELDS, &[]));
    }
    column::check_row_size(columns)?;
    let mut auto = columns.iter().enumerate().filter(|(_, c)| c.auto_increment);
    if let Some((n, _)) = auto.next() {
        let first_part = indexes
            .iter()
            .any(|i| i.parts.first().is_some_and(|p| p.column == n));
        if auto.next().is_some() || !first_part {
            return Err(error(ErrorCode::ER_WRONG_AUTO_KEY, &[]));
        }
    }
    let too_wide = |i: &&IndexSpec| {
        i.kind == IndexKind::Primary
            && i.parts
                .iter()
                .any(|p| matches!(columns[p.column].ty.kind, TypeKind::Null))
    };
    if indexes.iter().any(|i| too_wide(&i)) {
        return Err(error(ErrorCode::ER_PRIMARY_CANT_HAVE_NULL, &[]));
    }
    match key::primary(columns, indexes) {
        Some(i) if !i.visible => Err(error(ErrorCode::ER_PK_INDEX_CANT_BE_INVISIBLE, &[])),
        _ => Ok(()),
    }
}
