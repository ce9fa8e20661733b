//! Indexes and constraints.

use nfold_catalog::foreign_key::is_key_of;
use nfold_catalog::{CheckDef, ForeignKeyDef, IndexDef, IndexKind, ReferentialAction, TableDef};
use nfold_types::{SqlError, Value};

use super::rows::{Cx, Put};
use super::schema::{CATALOG, stored};
use super::{is_system_table, visible_keys};
use crate::introspection::table_facts::{
    index_type, part_column, part_expression, shown_cardinality, shown_order,
};

pub(super) fn statistics(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    for def in cx.tables() {
        let table = cx.server.engine.table(def.id);
        let stats = table.as_ref().map(|t| t.stats());
        for (n, index) in visible_keys(def) {
            for (seq, part) in index.shown_parts().iter().enumerate() {
                let column = &def.columns[part.column];
                let distinct = stats
                    .as_ref()
                    .and_then(|s| shown_cardinality(s, (index, n), seq));
                let order = shown_order(index, part);
                let kind = if is_system_table(def) {
                    "HASH"
                } else {
                    index_type(index)
                };
                put(vec![
                    CATALOG.into(),
                    (&*def.schema).into(),
                    (&*def.name).into(),
                    Value::Int((!index.is_unique()).into()),
                    (&*def.schema).into(),
                    (&*index.name).into(),
                    Value::UInt(seq as u64 + 1),
                    part_column(column).into(),
                    order.filter(|_| !is_system_table(def)).into(),
                    distinct.map(|d| d as i64).into(),
                    part.prefix_len.map(i64::from).into(),
                    Value::Null,
                    (if column.nullable { "YES" } else { "" }).into(),
                    kind.into(),
                    "".into(),
                    (&*index.comment).into(),
                    (if index.visible { "YES" } else { "NO" }).into(),
                    part_expression(column).into(),
                ])?;
            }
        }
    }
    Ok(())
}

/// Keys that are constraints, each with its table.
fn constraints<'a>(cx: &'a Cx<'_>) -> impl Iterator<Item = (&'a TableDef, &'a IndexDef)> + use<'a> {
    let keys = |def: &'a TableDef| visible_keys(def).map(move |(_, i)| (def, i));
    cx.tables()
        .into_iter()
        .flat_map(keys)
        .filter(|(_, i)| i.is_unique())
}

pub(super) fn key_column_usage(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    for (def, index) in constraints(cx) {
        for (seq, part) in index.parts.iter().enumerate() {
            let Some(column) = part_column(&def.columns[part.column]) else {
                continue;
            };
            put(vec![
                CATALOG.into(),
                (&*def.schema).into(),
                (&*index.name).into(),
                CATALOG.into(),
                (&*def.schema).into(),
                (&*def.name).into(),
                column.into(),
                Value::UInt(seq as u64 + 1),
                Value::Null,
                Value::Null,
                Value::Null,
                Value::Null,
            ])?;
        }
    }
    for (def, key) in foreign_keys(cx) {
        for (n, (column, parent)) in key.columns.iter().zip(&key.parent_columns).enumerate() {
            put(vec![
                CATALOG.into(),
                (&*def.schema).into(),
                (&*key.name).into(),
                CATALOG.into(),
                (&*def.schema).into(),
                (&*def.name).into(),
                (&*def.columns[*column].name).into(),
                Value::UInt(n as u64 + 1),
                Value::UInt(n as u64 + 1),
                (&*key.parent_schema).into(),
                (&*key.parent_table).into(),
                (&**parent).into(),
            ])?;
        }
    }
    Ok(())
}

/// The foreign keys of tables that the account may see.
fn foreign_keys<'a>(
    cx: &'a Cx<'_>,
) -> impl Iterator<Item = (&'a TableDef, &'a ForeignKeyDef)> + use<'a> {
    let keys = |def: &'a TableDef| def.foreign_keys.iter().map(move |k| (def, k));
    cx.tables().into_iter().flat_map(keys)
}

pub(super) fn referential_constraints(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    for (def, key) in foreign_keys(cx) {
        let parent = cx.schema.table(&key.parent_schema, &key.parent_table);
        let unique = parent.and_then(|parent| {
            let index = &parent.indexes[key.parent_index(parent)?];
            is_key_of(index, &key.columns_in(parent)?).then(|| index.name.clone())
        });
        put(vec![
            CATALOG.into(),
            (&*def.schema).into(),
            (&*key.name).into(),
            CATALOG.into(),
            (&*key.parent_schema).into(),
            unique.as_deref().into(),
            "NONE".into(),
            key.on_update.words().into(),
            key.on_delete.words().into(),
            (&*def.name).into(),
            (&*key.parent_table).into(),
        ])?;
    }
    Ok(())
}

/// The stored foreign keys, for accounts that may see internal tables of the engine.
fn stored_foreign_keys<'a>(
    cx: &'a Cx<'_>,
) -> Result<Vec<(&'a TableDef, &'a ForeignKeyDef)>, SqlError> {
    let keys = |def: &'a TableDef| def.foreign_keys.iter().map(move |k| (def, k));
    Ok(stored(cx)?.into_iter().flat_map(keys).collect())
}

/// INNODB_FOREIGN.TYPE: one bit for each action.
fn action_bits(key: &ForeignKeyDef) -> i64 {
    use ReferentialAction::{Cascade, NoAction, SetNull};
    let bit = |action, [cascade, set_null, none]: [i64; 3]| match action {
        Cascade => cascade,
        SetNull => set_null,
        NoAction => none,
        _ => 0,
    };
    bit(key.on_delete, [1, 2, 16]) | bit(key.on_update, [4, 8, 32])
}

pub(super) fn innodb_foreign(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    for (def, key) in stored_foreign_keys(cx)? {
        put(vec![
            format!("{}/{}", def.schema, key.name).into(),
            format!("{}/{}", def.schema, def.name).into(),
            format!("{}/{}", key.parent_schema, key.parent_table).into(),
            Value::Int(key.columns.len() as i64),
            Value::Int(action_bits(key)),
        ])?;
    }
    Ok(())
}

pub(super) fn innodb_foreign_cols(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    for (def, key) in stored_foreign_keys(cx)? {
        for (n, (column, parent)) in key.columns.iter().zip(&key.parent_columns).enumerate() {
            put(vec![
                format!("{}/{}", def.schema, key.name).into(),
                (&*def.columns[*column].name).into(),
                (&**parent).into(),
                Value::UInt(n as u64 + 1),
            ])?;
        }
    }
    Ok(())
}

pub(super) fn table_constraints(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    for (def, index) in constraints(cx) {
        let kind = match index.kind {
            IndexKind::Primary => "PRIMARY KEY",
            _ => "UNIQUE",
        };
        put(vec![
            CATALOG.into(),
            (&*def.schema).into(),
            (&*index.name).into(),
            (&*def.schema).into(),
            (&*def.name).into(),
            kind.into(),
            "YES".into(),
        ])?;
    }
    for (def, key) in foreign_keys(cx) {
        put(vec![
            CATALOG.into(),
            (&*def.schema).into(),
            (&*key.name).into(),
            (&*def.schema).into(),
            (&*def.name).into(),
            "FOREIGN KEY".into(),
            "YES".into(),
        ])?;
    }
    for (def, check) in checks(cx) {
        put(vec![
            CATALOG.into(),
            (&*def.schema).into(),
            (&*check.name).into(),
            (&*def.schema).into(),
            (&*def.name).into(),
            "CHECK".into(),
            (if check.enforced { "YES" } else { "NO" }).into(),
        ])?;
    }
    Ok(())
}

/// The CHECK constraints of tables that the account may see.
fn checks<'a>(cx: &'a Cx<'_>) -> impl Iterator<Item = (&'a TableDef, &'a CheckDef)> + use<'a> {
    let checks = |def: &'a TableDef| def.checks.iter().map(move |c| (def, c));
    cx.tables().into_iter().flat_map(checks)
}

pub(super) fn check_constraints(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    for (def, check) in checks(cx) {
        put(vec![
            CATALOG.into(),
            (&*def.schema).into(),
            (&*check.name).into(),
            nfold_sql::stored::escaped(&check.expr.text).into(),
        ])?;
    }
    Ok(())
}

/// All indexes, including those of tables that are otherwise hidden, as in MySQL.
pub(super) fn table_constraints_extensions(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    for def in cx.tables() {
        for (_, index) in visible_keys(def) {
            put(vec![
                CATALOG.into(),
                (&*def.schema).into(),
                (&*index.name).into(),
                (&*def.name).into(),
                Value::Null,
                Value::Null,
            ])?;
        }
    }
    Ok(())
}

/// INNODB_INDEXES.TYPE: bit 0 clustered, bit 1 unique, bit 5 full-text.
fn kind_bits(index: &IndexDef) -> i64 {
    let fulltext = i64::from(index.fulltext().is_some()) << 5;
    i64::from(index.is_clustered()) | i64::from(index.is_unique()) << 1 | fulltext
}

pub(super) fn innodb_indexes(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    for def in stored(cx)? {
        for index in &def.indexes {
            put(vec![
                Value::UInt(index.id.0),
                (&*index.name).into(),
                Value::UInt(def.id.0),
                Value::Int(kind_bits(index)),
                Value::Int(index.shown_parts().len() as i64),
                Value::Int(index.root.into()),
                Value::Int(def.space.into()),
                Value::Int(50),
            ])?;
        }
    }
    Ok(())
}

pub(super) fn innodb_fields(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    for def in stored(cx)? {
        for index in &def.indexes {
            for (at, part) in index.shown_parts().iter().enumerate() {
                put(vec![
                    index.id.0.to_string().into(),
                    (&*def.columns[part.column].name).into(),
                    Value::UInt(at as u64),
                ])?;
            }
        }
    }
    Ok(())
}
