//! Foreign keys of CREATE and ALTER TABLE: their names, the indexes that they need, and whether
//! parent and child are compatible.
//!
//! Source: MySQL manual, "FOREIGN KEY Constraints".

use std::sync::Arc;

use nfold_catalog::foreign_key::{begins_with, generated_name, generated_number, is_key_of};
use nfold_catalog::schema::eq_name;
use nfold_catalog::{
    ColumnDef, ForeignKeyDef, IndexDef, IndexId, ReferentialAction, SchemaSnapshot, TableDef,
    TableId,
};
use nfold_engine::TableSpec;
use nfold_sql::ast::{self, CreateTable, KeyDef, KeyKind, KeyPart, KeyTarget};
use nfold_types::{ColumnType, ErrorCode, SqlError, TypeKind};

use super::{DdlCx, check, check_length, error};

/// The definition of a spec, without the positions of its trees, so that it can be checked like an
/// existing table.
pub fn definition_of(spec: &TableSpec) -> TableDef {
    let indexes = spec.indexes.iter().map(|i| IndexDef {
        id: IndexId(0),
        name: i.name.clone(),
        kind: i.kind,
        parts: i.parts.clone(),
        root: 0,
        comment: Box::default(),
        btree: i.btree,
        generated: i.generated,
        visible: i.visible,
    });
    TableDef {
        id: TableId(0),
        schema: spec.schema.clone(),
        name: spec.name.clone(),
        columns: spec.columns.clone(),
        indexes: indexes.collect(),
        foreign_keys: spec.foreign_keys.clone(),
        checks: spec.checks.clone(),
        bound: nfold_catalog::BoundExprs::default(),
        collation: spec.collation,
        options: spec.options.clone(),
        space: 0,
        row_version: 0,
        create_time: 0,
        relation: nfold_catalog::Relation::Table,
    }
}

/// The index that a foreign key needs if the table has no suitable one.
pub fn generated_key(key: &ast::ForeignKey) -> KeyDef {
    let part = |name: &ast::Ident| KeyPart {
        target: KeyTarget::Column {
            name: name.clone(),
            prefix: None,
        },
        descending: false,
        ordered: false,
    };
    KeyDef {
        kind: KeyKind::Index,
        name: key.name.clone().or_else(|| key.index.clone()),
        parts: key.columns.iter().map(part).collect(),
        algorithm: None,
        comment: None,
        invisible: false,
        parser: None,
    }
}

/// Whether a generated key is a prefix of another key, which then replaces it.
fn is_prefix(generated: &KeyDef, other: &KeyDef) -> bool {
    let same = |a: &KeyPart, b: &KeyPart| match (&a.target, &b.target) {
        (
            KeyTarget::Column {
                name: a,
                prefix: None,
            },
            KeyTarget::Column {
                name: b,
                prefix: None,
            },
        ) => eq_name(a.as_str(), b.as_str()),
        _ => false,
    };
    generated.parts.len() <= other.parts.len()
        && generated
            .parts
            .iter()
            .zip(&other.parts)
            .all(|(a, b)| same(a, b))
}

/// The keys of a definition and those that its foreign keys need, in the order written, each with
/// whether it is generated.
pub fn with_generated_keys(keys: &[KeyDef], foreign: &[ast::ForeignKey]) -> Vec<(KeyDef, bool)> {
    let mut all: Vec<(KeyDef, bool)> = Vec::with_capacity(keys.len() + foreign.len());
    let mut rest = foreign.iter().peekable();
    for n in 0..=keys.len() {
        while let Some(key) = rest.next_if(|k| k.keys_before <= n) {
            all.push((generated_key(key), true));
        }
        all.extend(keys.get(n).map(|k| (k.clone(), false)));
    }
    let serves = |all: &[(KeyDef, bool)], at: usize| {
        all.iter().enumerate().any(|(n, (other, made))| {
            // Of two generated keys with the same columns the later one is kept.
            let longer = other.parts.len() > all[at].0.parts.len();
            n != at && (!made || longer || n > at) && is_prefix(&all[at].0, other)
        })
    };
    let kept: Vec<bool> = (0..all.len())
        .map(|n| !all[n].1 || !serves(&all, n))
        .collect();
    let mut kept = kept.into_iter();
    all.retain(|_| kept.next().unwrap_or(true));
    all
}

fn action(written: Option<ast::ReferentialAction>) -> ReferentialAction {
    match written {
        None | Some(ast::ReferentialAction::NoAction) => ReferentialAction::NoAction,
        Some(ast::ReferentialAction::Restrict) => ReferentialAction::Restrict,
        Some(ast::ReferentialAction::Cascade) => ReferentialAction::Cascade,
        Some(ast::ReferentialAction::SetNull) => ReferentialAction::SetNull,
        Some(ast::ReferentialAction::SetDefault) => ReferentialAction::SetDefault,
    }
}

/// Binds one foreign key of the table of `spec`. `number` is that of the last generated name.
///
/// # Errors
/// 1072 and 1239 for its columns, 1824 without a parent, 1826 for its name, and those of
/// [`check_pair`].
pub fn bind(
    key: &ast::ForeignKey,
    spec: &TableSpec,
    number: &mut u32,
    cx: &DdlCx<'_>,
) -> Result<ForeignKeyDef, SqlError> {
    let columns = key.columns.iter().map(|name| {
        let named = |c: &ColumnDef| eq_name(&c.name, name.as_str());
        let found = spec.columns.iter().position(named);
        found.ok_or_else(|| error(ErrorCode::ER_KEY_COLUMN_DOES_NOT_EXITS, &[&name.as_str()]))
    });
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let mismatch = || {
        let name = key.name.as_ref().or(key.index.as_ref());
        let name = name.map_or("foreign key without name", ast::Ident::as_str);
        let what = "Key reference and table reference don't match";
        error(ErrorCode::ER_WRONG_FK_DEF, &[&name, &what])
    };
    if !key.referenced.is_empty() && key.referenced.len() != columns.len() {
        return Err(mismatch());
    }
    let schema = key.table.schema.as_ref();
    let parent_schema: Arc<str> = schema.map_or(spec.schema.clone(), |s| s.as_str().into());
    let parent_table: Arc<str> = key.table.name.as_str().into();
    let own = parent_schema == spec.schema && parent_table == spec.name;
    let definition;
    let parent = match own {
        true => {
            definition = definition_of(spec);
            Some(&definition)
        }
        false => {
            let found = cx.schema.table(&parent_schema, &parent_table);
            found.map(|p| &**p).filter(|p| !p.is_view())
        }
    };
    if parent.is_none() && cx.foreign_key_checks {
        return Err(error(ErrorCode::ER_FK_CANNOT_OPEN_PARENT, &[&parent_table]));
    }
    let parent_columns: Vec<Arc<str>> = match (key.referenced.is_empty(), parent) {
        (false, _) => key.referenced.iter().map(|c| c.as_str().into()).collect(),
        (true, Some(parent)) if parent.has_primary_key() => {
            let parts = parent.clustered().parts.iter();
            parts
                .map(|p| parent.columns[p.column].name.clone())
                .collect()
        }
        (true, _) => return Err(mismatch()),
    };
    if parent_columns.len() != columns.len() {
        return Err(mismatch());
    }
    let name: Arc<str> = match &key.name {
        Some(name) => name.as_str().into(),
        None => {
            *number += 1;
            generated_name(&spec.name, *number)
        }
    };
    check_length(&name)?;
    check_name(&name, spec, cx)?;
    let bound = ForeignKeyDef {
        name,
        columns,
        parent_schema,
        parent_table,
        parent_columns,
        on_delete: action(key.on_delete),
        on_update: action(key.on_update),
    };
    check_set_null(&bound, &spec.columns)?;
    check_generated(&bound, &spec.columns)?;
    if let Some(parent) = parent {
        check_pair(&bound, &spec.columns, parent, cx)?;
    }
    Ok(bound)
}

/// Error 1826 if another foreign key of the database has the name.
fn check_name(name: &str, spec: &TableSpec, cx: &DdlCx<'_>) -> Result<(), SqlError> {
    let database = cx.schema.database(&spec.schema);
    let others = database.into_iter().flat_map(|d| d.tables.values());
    let others = others
        .filter(|t| t.name != spec.name)
        .flat_map(|t| &t.foreign_keys);
    let mut all = others.chain(&spec.foreign_keys);
    match all.any(|k| eq_name(&k.name, name)) {
        true => Err(error(ErrorCode::ER_FK_DUP_NAME, &[&name])),
        false => Ok(()),
    }
}

/// Error 1830 for SET NULL on a NOT NULL column.
pub fn check_set_null(key: &ForeignKeyDef, columns: &[ColumnDef]) -> Result<(), SqlError> {
    let set_null = ReferentialAction::SetNull;
    if key.on_delete != set_null && key.on_update != set_null {
        return Ok(());
    }
    let mut strict = key.columns.iter().filter(|c| !columns[**c].nullable);
    match strict.next() {
        Some(&c) => Err(error(
            ErrorCode::ER_FK_COLUMN_NOT_NULL,
            &[&columns[c].name, &key.name],
        )),
        None => Ok(()),
    }
}

/// Checks a foreign key against the generated columns of its table.
///
/// # Errors
/// 3733 for a virtual column, 3104 for an action that would assign to a generated column, 1215 for
/// one that would change a column that a stored column is computed from.
pub fn check_generated(key: &ForeignKeyDef, columns: &[ColumnDef]) -> Result<(), SqlError> {
    let assigns = |action: ReferentialAction| {
        matches!(
            action,
            ReferentialAction::SetNull | ReferentialAction::SetDefault
        )
    };
    let changes = assigns(key.on_delete) || assigns(key.on_update);
    let updates = key.on_update == ReferentialAction::Cascade;
    for column in key.columns.iter().map(|c| &columns[*c]) {
        let Some(generated) = &column.generated else {
            let computed = |c: &ColumnDef| {
                let g = c.generated.as_ref();
                g.is_some_and(|g| g.stored && g.expr.names(&column.name))
            };
            if (changes || updates) && columns.iter().any(computed) {
                return Err(error(ErrorCode::ER_CANNOT_ADD_FOREIGN, &[]));
            }
            continue;
        };
        if !generated.stored {
            let code = ErrorCode::ER_FK_CANNOT_USE_VIRTUAL_COLUMN;
            return Err(error(code, &[&key.name, &column.name]));
        }
        let refused = match (key.on_update, key.on_delete) {
            (action, _) if updates || assigns(action) => Some(("UPDATE", action)),
            (_, action) if assigns(action) => Some(("DELETE", action)),
            _ => None,
        };
        if let Some((event, action)) = refused {
            let clause = format!("ON {event} {}", action.words());
            let code = ErrorCode::ER_WRONG_FK_OPTION_FOR_GENERATED_COLUMN;
            return Err(error(code, &[&clause]));
        }
    }
    Ok(())
}

/// Checks a foreign key of a table with these columns against its parent.
///
/// # Errors
/// 3734 for a column that the parent lacks, 3780 for incompatible types, 6125 or 1822 without a key
/// in the parent.
pub fn check_pair(
    key: &ForeignKeyDef,
    columns: &[ColumnDef],
    parent: &TableDef,
    cx: &DdlCx<'_>,
) -> Result<(), SqlError> {
    check_types(key, columns, parent, cx)?;
    let referenced = key.columns_in(parent).unwrap_or_default();
    let fits = |i: &IndexDef| match cx.standard_keys {
        true => is_key_of(i, &referenced),
        false => begins_with(i, &referenced),
    };
    let mut indexes = parent.indexes.iter();
    if indexes.any(|i| parent.array_part(i).is_none() && fits(i)) {
        return Ok(());
    }
    let code = match cx.standard_keys {
        true => ErrorCode::ER_FK_NO_UNIQUE_INDEX_PARENT,
        false => ErrorCode::ER_FK_NO_INDEX_PARENT,
    };
    Err(error(code, &[&key.name, &parent.name]))
}

/// Checks for the errors 3734 and 3780 of [`check_pair`].
pub fn check_types(
    key: &ForeignKeyDef,
    columns: &[ColumnDef],
    parent: &TableDef,
    cx: &DdlCx<'_>,
) -> Result<(), SqlError> {
    for (&column, name) in key.columns.iter().zip(&key.parent_columns) {
        let Some(referenced) = parent.column(name) else {
            let code = ErrorCode::ER_FK_NO_COLUMN_PARENT;
            return Err(error(code, &[name, &key.name, &parent.name]));
        };
        let (child, referenced) = (&columns[column], &parent.columns[referenced]);
        match compare_types(&child.ty, &referenced.ty, cx.foreign_key_checks) {
            TypeMatch::Same => {}
            TypeMatch::Other => {
                return Err(error(
                    ErrorCode::ER_FK_INCOMPATIBLE_COLUMNS,
                    &[&child.name, &referenced.name, &key.name],
                ));
            }
            TypeMatch::Unsupported => {
                return Err(SqlError::not_supported(
                    "a foreign key between columns of these two types",
                ));
            }
        }
    }
    Ok(())
}

/// Whether two column types are compatible in a foreign key.
enum TypeMatch {
    Same,
    Other,
    /// MySQL compares the stored bytes of the two types, which differ from the stored values here.
    Unsupported,
}

fn compare_types(child: &ColumnType, parent: &ColumnType, checks: bool) -> TypeMatch {
    use TypeKind::{BigInt, Binary, Bit, Blob, Date, DateTime, Decimal, Double, Enum, Float, Int};
    use TypeKind::{MediumInt, Set, SmallInt, Time, Timestamp, TinyInt, VarBinary, Year};
    let text = |ty: &ColumnType| ty.is_string() && ty.collation != nfold_types::CollationId::BINARY;
    if text(child) && text(parent) {
        return match !checks || child.collation == parent.collation {
            true => TypeMatch::Same,
            false => TypeMatch::Other,
        };
    }
    let same_sign = child.unsigned == parent.unsigned;
    let same = match (&child.kind, &parent.kind) {
        (TinyInt, TinyInt)
        | (SmallInt, SmallInt)
        | (MediumInt, MediumInt)
        | (Int, Int)
        | (BigInt, BigInt) => same_sign,
        (Decimal { .. }, Decimal { .. }) => same_sign && stored_alike(child, parent),
        (Date, Date) | (Year, Year) | (Float, Float) | (Double, Double) => true,
        (Bit(_), Bit(_)) | (DateTime(_), DateTime(_)) | (Timestamp(_), Timestamp(_)) => {
            stored_alike(child, parent)
        }
        (Time(_), Time(_)) => true,
        (Enum(a), Enum(b)) | (Set(a), Set(b)) => (a.len() < 256) == (b.len() < 256),
        (Binary(_) | VarBinary(_) | Blob(_), Binary(_) | VarBinary(_) | Blob(_)) => true,
        _ => false,
    };
    // InnoDB stores some types as bytes, and others as integers.
    let bytes = |kind: &TypeKind| {
        matches!(
            kind,
            Decimal { .. }
                | DateTime(_)
                | Timestamp(_)
                | Time(_)
                | Bit(_)
                | Binary(_)
                | VarBinary(_)
                | Blob(_)
        )
    };
    let number = |kind: &TypeKind| match kind {
        TinyInt | Year => Some(1),
        Enum(members) => Some(if members.len() < 256 { 1 } else { 2 }),
        _ => None,
    };
    match same {
        true => TypeMatch::Same,
        false if bytes(&child.kind) && bytes(&parent.kind) => TypeMatch::Unsupported,
        false
            if number(&child.kind).is_some()
                && number(&child.kind) == number(&parent.kind)
                && child.kind != parent.kind =>
        {
            TypeMatch::Unsupported
        }
        false => TypeMatch::Other,
    }
}

/// Whether equal values of two columns of the same kind have equal bytes in InnoDB, and different
/// values different ones.
fn stored_alike(child: &ColumnType, parent: &ColumnType) -> bool {
    use TypeKind::{Bit, DateTime, Decimal, Timestamp};
    // Nine digits take four bytes; fewer take as many as they need.
    let bytes = |digits: u8| digits / 9 * 4 + (digits % 9).div_ceil(2);
    let whole = |precision: u8, scale: u8| bytes(precision - scale);
    match (&child.kind, &parent.kind) {
        (
            Decimal { precision, scale },
            Decimal {
                precision: other,
                scale: other_scale,
            },
        ) => scale == other_scale && whole(*precision, *scale) == whole(*other, *other_scale),
        (Bit(a), Bit(b)) => a.div_ceil(8) == b.div_ceil(8),
        (DateTime(a), DateTime(b)) | (Timestamp(a), Timestamp(b)) => a.div_ceil(2) == b.div_ceil(2),
        (a, b) => a == b,
    }
}

/// Binds the foreign keys of CREATE TABLE, and adds them to `spec`. Also checks the foreign keys of
/// other tables that name this one as their parent.
pub fn bind_created(
    create: &CreateTable,
    spec: &mut TableSpec,
    cx: &DdlCx<'_>,
) -> Result<(), SqlError> {
    let mut number = 0;
    for key in &create.foreign_keys {
        let bound = bind(key, spec, &mut number, cx)?;
        spec.foreign_keys.push(bound);
    }
    let waiting = cx.schema.children(&spec.schema, &spec.name);
    if waiting.is_empty() {
        return Ok(());
    }
    let def = definition_of(spec);
    for child in waiting
        .into_iter()
        .filter(|t| t.name != spec.name || t.schema != spec.schema)
    {
        let keys = child.foreign_keys.iter();
        for key in keys.filter(|k| k.references(&spec.schema, &spec.name)) {
            check_pair(key, &child.columns, &def, cx).map_err(|e| match cx.foreign_key_checks {
                true => error(ErrorCode::ER_CANNOT_ADD_FOREIGN, &[]),
                false => e,
            })?;
        }
    }
    Ok(())
}

/// The number of the last generated foreign-key name of a table.
pub fn last_number(table: &TableDef) -> u32 {
    let names = table.foreign_keys.iter().map(|k| &k.name);
    let numbers = names.filter_map(|name| generated_number(name, &table.name));
    numbers.max().unwrap_or(0)
}

/// The other tables that have a foreign key to or from a table: its parents and its children.
pub fn related(schema: &SchemaSnapshot, def: &TableDef) -> Vec<TableId> {
    let parents = def.foreign_keys.iter();
    let parents = parents.filter_map(|k| schema.table(&k.parent_schema, &k.parent_table));
    let children = schema.children(&def.schema, &def.name).into_iter();
    let mut ids: Vec<TableId> = parents.chain(children).map(|t| t.id).collect();
    ids.retain(|id| *id != def.id);
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// The existing parents that the foreign keys of a statement name.
pub fn named_parents(
    keys: &[&ast::ForeignKey],
    schema: &SchemaSnapshot,
    database: &str,
) -> Vec<TableId> {
    let parents = keys.iter().filter_map(|k| {
        let written = k.table.schema.as_ref().map(ast::Ident::as_str);
        schema.table(written.unwrap_or(database), k.table.name.as_str())
    });
    parents.map(|t| t.id).collect()
}

/// A renamed table: its definition, its new database and its new name.
pub type Rename = (Arc<TableDef>, Arc<str>, Arc<str>);

/// All definitions that change when tables are renamed: those of the tables, and of their children,
/// whose foreign keys follow.
pub fn renamed(schema: &SchemaSnapshot, renames: &[Rename]) -> Vec<TableDef> {
    let mut all: Vec<TableDef> = Vec::with_capacity(renames.len());
    for (table, to_schema, to_name) in renames {
        let mut def = TableDef::clone(table);
        for key in &mut def.foreign_keys {
            key.name = key.renamed(&table.name, to_name);
        }
        def.checks = check::renamed(&def.checks, &table.name, to_name);
        (def.schema, def.name) = (to_schema.clone(), to_name.clone());
        all.push(def);
    }
    for (table, ..) in renames {
        for child in schema.children(&table.schema, &table.name) {
            if !all.iter().any(|t| t.id == child.id) {
                all.push(TableDef::clone(child));
            }
        }
    }
    for key in all.iter_mut().flat_map(|t| &mut t.foreign_keys) {
        let moved = renames
            .iter()
            .find(|(t, ..)| key.references(&t.schema, &t.name));
        if let Some((_, to_schema, to_name)) = moved {
            (key.parent_schema, key.parent_table) = (to_schema.clone(), to_name.clone());
        }
    }
    all
}

/// Error 3730 if a table that is not dropped has a foreign key to a dropped one.
pub fn check_droppable(schema: &SchemaSnapshot, dropped: &[Arc<TableDef>]) -> Result<(), SqlError> {
    for table in dropped {
        for child in schema.children(&table.schema, &table.name) {
            if dropped.iter().any(|t| t.id == child.id) {
                continue;
            }
            let mut keys = child.foreign_keys.iter();
            if let Some(key) = keys.find(|k| k.references(&table.schema, &table.name)) {
                return Err(error(
                    ErrorCode::ER_FK_CANNOT_DROP_PARENT,
                    &[&table.name, &key.name, &child.name],
                ));
            }
        }
    }
    Ok(())
}

/// Error 1701 if another table has a foreign key to the table.
pub fn check_truncatable(schema: &SchemaSnapshot, table: &TableDef) -> Result<(), SqlError> {
    let children = schema.children(&table.schema, &table.name).into_iter();
    for child in children.filter(|c| c.id != table.id) {
        let mut keys = child.foreign_keys.iter();
        if let Some(key) = keys.find(|k| k.references(&table.schema, &table.name)) {
            let place = format!(
                "`{}`.`{}`, CONSTRAINT `{}`",
                child.schema, child.name, key.name
            );
            return Err(error(ErrorCode::ER_TRUNCATE_ILLEGAL_FK, &[&place]));
        }
    }
    Ok(())
}
