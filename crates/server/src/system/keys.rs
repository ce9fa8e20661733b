//! Indexes and constraints.

use nfold_catalog::{IndexDef, IndexKind, TableDef};
use nfold_types::{SqlError, Value};

use super::rows::{Cx, Put};
use super::schema::{CATALOG, stored};
use super::{is_system_table, visible_keys};

pub(super) fn statistics(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    for def in cx.tables() {
        let table = cx.server.engine.table(def.id);
        let stats = table.as_ref().map(|t| t.stats());
        for (n, index) in visible_keys(def) {
            for (seq, part) in index.parts.iter().enumerate() {
                let column = &def.columns[part.column];
                let distinct = stats
                    .as_ref()
                    .and_then(|s| s.indexes.get(n)?.distinct.get(seq).copied());
                let order = if part.desc { "D" } else { "A" };
                let kind = if is_system_table(def) {
                    "HASH"
                } else {
                    "BTREE"
                };
                put(vec![
                    CATALOG.into(),
                    (&*def.schema).into(),
                    (&*def.name).into(),
                    Value::Int((!index.is_unique()).into()),
                    (&*def.schema).into(),
                    (&*index.name).into(),
                    Value::UInt(seq as u64 + 1),
                    (&*column.name).into(),
                    (!is_system_table(def)).then_some(order).into(),
                    distinct.map(|d| d as i64).into(),
                    part.prefix_len.map(i64::from).into(),
                    Value::Null,
                    (if column.nullable { "YES" } else { "" }).into(),
                    kind.into(),
                    "".into(),
                    (&*index.comment).into(),
                    "YES".into(),
                    Value::Null,
                ])?;
            }
        }
    }
    Ok(())
}

/// Keys that are constraints, with their tables.
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
            put(vec![
                CATALOG.into(),
                (&*def.schema).into(),
                (&*index.name).into(),
                CATALOG.into(),
                (&*def.schema).into(),
                (&*def.name).into(),
                (&*def.columns[part.column].name).into(),
                Value::UInt(seq as u64 + 1),
                Value::Null,
                Value::Null,
                Value::Null,
                Value::Null,
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
    Ok(())
}

/// Every index, whatever the table's name says: so does MySQL.
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

/// INNODB_INDEXES.TYPE: bit 0 clustered, bit 1 unique.
fn kind_bits(index: &IndexDef) -> i64 {
    i64::from(index.is_clustered()) | i64::from(index.is_unique()) << 1
}

pub(super) fn innodb_indexes(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    for def in stored(cx)? {
        for index in &def.indexes {
            put(vec![
                Value::UInt(index.id.0),
                (&*index.name).into(),
                Value::UInt(def.id.0),
                Value::Int(kind_bits(index)),
                Value::Int(index.parts.len() as i64),
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
            for (at, part) in index.parts.iter().enumerate() {
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
