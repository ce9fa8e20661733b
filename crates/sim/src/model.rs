//! The expected state: tables with their shapes and rows, as plain values.

use std::collections::BTreeMap;
use std::sync::Arc;

use nfold_types::Value;

use crate::shape::{CHILD, K, PARENT, Shape};

/// A row: its values by column ordinal. The id comes first.
pub type Row = Vec<Value>;
/// The rows of a table by id.
pub type Rows = BTreeMap<i64, Arc<Row>>;
/// All tables by name. A clone is cheap: tables and rows are shared.
pub type Db = BTreeMap<String, Arc<TableModel>>;
/// The changes of a transaction: (table, id) and the new row, or `None` if the row was deleted.
pub type Changes = BTreeMap<(String, i64), Option<Arc<Row>>>;

/// The expected state of one table.
#[derive(Clone, Debug, PartialEq)]
pub struct TableModel {
    pub shape: Shape,
    pub rows: Rows,
}

/// The state of `db` after `changes`.
pub fn applied(db: &Db, changes: &Changes) -> Db {
    let mut db = db.clone();
    for ((name, id), row) in changes {
        if let Some(table) = db.get_mut(name) {
            put(&mut Arc::make_mut(table).rows, *id, row);
        }
    }
    db
}

fn put(rows: &mut Rows, id: i64, row: &Option<Arc<Row>>) {
    match row {
        Some(row) => rows.insert(id, row.clone()),
        None => rows.remove(&id),
    };
}

/// The rows of one table as seen by a transaction with `changes` on top of `db`.
pub fn rows_with(db: &Db, changes: &Changes, table: &str) -> Rows {
    let mut rows = db.get(table).map(|t| t.rows.clone()).unwrap_or_default();
    let own = (table.to_owned(), i64::MIN)..=(table.to_owned(), i64::MAX);
    for ((_, id), row) in changes.range(own) {
        put(&mut rows, *id, row);
    }
    rows
}

/// Whether two states of a table agree on all rows that `changes` contains.
pub fn same_where_changed(a: &Db, b: &Db, changes: &Changes, table: &str) -> bool {
    let row = |db: &Db, id: &i64| db.get(table).and_then(|t| t.rows.get(id).cloned());
    changes
        .keys()
        .filter(|(name, _)| name == table)
        .all(|(_, id)| row(a, id) == row(b, id))
}

/// Describes a row of the child that has no parent (M8).
pub fn orphan(db: &Db) -> Option<String> {
    let child = db.get(CHILD)?;
    let has_parent = |id: &i64| db.get(PARENT).is_some_and(|t| t.rows.contains_key(id));
    child.rows.iter().find_map(|(id, row)| match &row[K] {
        Value::Int(parent) if !has_parent(parent) => {
            Some(format!("orphan: row {id} of the child refers to {parent}"))
        }
        _ => None,
    })
}

/// Describes where two sets of rows differ.
pub fn difference(what: &str, expected: &Rows, found: &Rows) -> String {
    let ids: std::collections::BTreeSet<_> = expected.keys().chain(found.keys()).collect();
    let lines: Vec<String> = ids
        .into_iter()
        .filter(|id| expected.get(id) != found.get(id))
        .take(5)
        .map(|id| {
            let (expected, found) = (expected.get(id), found.get(id));
            format!(
                "row {id}: expected {}, found {}",
                short(expected),
                short(found)
            )
        })
        .collect();
    format!("{what}: {}", lines.join("; "))
}

fn short(row: Option<&Arc<Row>>) -> String {
    let Some(row) = row else {
        return "none".into();
    };
    let values: Vec<String> = row
        .iter()
        .map(|value| match value {
            Value::Bytes(b) if b.len() > 24 => format!("{} bytes", b.len()),
            Value::Bytes(b) => format!("'{}'", String::from_utf8_lossy(b)),
            Value::Int(v) => v.to_string(),
            Value::Null => "NULL".into(),
            other => format!("{other:?}"),
        })
        .collect();
    format!("({})", values.join(", "))
}
