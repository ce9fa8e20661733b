//! The shapes of the simulated tables, and the encoding of their rows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use nfold_catalog::{
    ColumnDef, ColumnDefault, ForeignKeyDef, IndexKind, IndexPart, ReferentialAction, TableDef,
    TableOptions,
};
use nfold_engine::{IndexSpec, Table, TableSpec};
use nfold_types::collation::CollationId;
use nfold_types::row::RowLayout;
use nfold_types::{ColumnType, TextSize, TypeKind, Value};

use crate::model::Row;

pub const DATABASE: &str = "d";
/// The tables of the foreign key, in seeds that have one: column `k` of the child refers to the id
/// of the parent.
pub const PARENT: &str = "p";
pub const CHILD: &str = "c";
const TEXT: CollationId = CollationId::UTF8MB4_0900_AI_CI;

/// The ordinals of the columns.
pub const ID: usize = 0;
pub const K: usize = 1;
pub const S: usize = 2;
pub const B: usize = 3;
pub const X: usize = 4;

/// `(id BIGINT NOT NULL, k INT, s VARCHAR(30), b LONGTEXT [, x INT])` with some of the indexes of
/// [`Shape::possible`]. Without a primary key, ids are still unique because of `UNIQUE KEY id
/// (id)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    pub primary: bool,
    pub x: bool,
    /// The names of the indexes other than that on the id.
    pub indexes: BTreeSet<&'static str>,
    /// The actions of the foreign key, if the table is the [`CHILD`].
    pub action: Option<ReferentialAction>,
}

impl Shape {
    /// The names of the indexes that a table of this shape may have.
    pub fn possible(&self) -> &'static [&'static str] {
        if self.x {
            &["k", "s", "sk", "b", "x"]
        } else {
            &["k", "s", "sk", "b"]
        }
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        if self.x { 5 } else { 4 }
    }

    /// The specification that creates a table of this shape.
    pub fn spec(&self, name: &str) -> TableSpec {
        let mut columns = vec![
            column("id", ColumnType::bigint(), false),
            column("k", ColumnType::new(TypeKind::Int), true),
            column("s", ColumnType::varchar(30, TEXT), true),
            column(
                "b",
                ColumnType::string(TypeKind::Text(TextSize::Long), TEXT),
                true,
            ),
        ];
        if self.x {
            columns.push(column("x", ColumnType::new(TypeKind::Int), true));
        }
        let mut indexes = vec![if self.primary {
            index("PRIMARY", IndexKind::Primary, &[(ID, None, false)])
        } else {
            index("id", IndexKind::Unique, &[(ID, None, false)])
        }];
        indexes.extend(self.indexes.iter().map(|name| index_spec(name)));
        TableSpec {
            schema: DATABASE.into(),
            name: name.into(),
            columns,
            indexes,
            foreign_keys: self.action.map(foreign_key).into_iter().collect(),
            checks: Vec::new(),
            collation: TEXT,
            options: TableOptions::default(),
            auto_increment: 0,
        }
    }

    /// The shape of a table definition.
    pub fn of(def: &TableDef) -> Shape {
        const NAMES: [&str; 5] = ["k", "s", "sk", "b", "x"];
        Shape {
            primary: def.has_primary_key(),
            x: def.columns.len() > X,
            indexes: NAMES
                .into_iter()
                .filter(|n| def.index(n).is_some())
                .collect(),
            action: def.foreign_keys.first().map(|key| key.on_delete),
        }
    }
}

fn foreign_key(action: ReferentialAction) -> ForeignKeyDef {
    ForeignKeyDef {
        name: "k".into(),
        columns: vec![K],
        parent_schema: DATABASE.into(),
        parent_table: PARENT.into(),
        parent_columns: vec!["id".into()],
        on_delete: action,
        on_update: action,
    }
}

/// The tables that a statement on this table uses: the other table of the foreign key, too.
pub fn used_tables(name: &str) -> Vec<&str> {
    match name {
        PARENT | CHILD => vec![PARENT, CHILD],
        _ => vec![name],
    }
}

fn column(name: &str, ty: ColumnType, nullable: bool) -> ColumnDef {
    ColumnDef {
        name: name.into(),
        ty,
        nullable,
        default: ColumnDefault::Null,
        on_update_now: None,
        auto_increment: false,
        comment: Box::default(),
        own_charset: false,
        generated: None,
        visibility: nfold_catalog::Visibility::Visible,
        histogram: None,
    }
}

fn index(name: &str, kind: IndexKind, parts: &[(usize, Option<u16>, bool)]) -> IndexSpec {
    let parts = parts
        .iter()
        .map(|&(column, prefix_len, desc)| IndexPart {
            column,
            prefix_len,
            desc,
        })
        .collect();
    IndexSpec {
        name: name.into(),
        kind,
        parts,
        comment: Box::default(),
        btree: false,
        generated: false,
        visible: true,
    }
}

/// The specification of the index with this name: `k (k DESC, s)`, `UNIQUE s (s)`, `sk (s, k)`, `b
/// (b(12))`, `x (x)`.
pub fn index_spec(name: &str) -> IndexSpec {
    let (kind, parts): (_, &[_]) = match name {
        "k" => (IndexKind::Secondary, &[(K, None, true), (S, None, false)]),
        "s" => (IndexKind::Unique, &[(S, None, false)]),
        "sk" => (IndexKind::Secondary, &[(S, None, false), (K, None, false)]),
        "b" => (IndexKind::Secondary, &[(B, Some(12), false)]),
        _ => (IndexKind::Secondary, &[(X, None, false)]),
    };
    index(name, kind, parts)
}

/// Appends the row image of `row`.
pub fn encode(layout: &RowLayout, row: &Row, out: &mut Vec<u8>) {
    layout
        .encode(row.iter().map(Value::as_ref), out)
        .expect("the model's rows fit the table");
}

/// Decodes a row image; `None` if it is invalid.
pub fn decode(layout: &RowLayout, image: &[u8]) -> Option<Row> {
    (0..layout.columns().len())
        .map(|n| layout.get(image, n).ok().map(|v| v.to_owned()))
        .collect()
}

/// The id of a row, which is its first value.
pub fn id_of(row: &Row) -> Option<i64> {
    match row.first() {
        Some(Value::Int(id)) => Some(*id),
        _ => None,
    }
}

/// The ordinal of the index on the id.
pub fn id_index(table: &Table) -> usize {
    table.def().index("id").unwrap_or(0)
}

/// Whether several rows have the same value in `column`, apart from NULL.
pub fn duplicates(rows: &crate::model::Rows, column: usize) -> bool {
    let mut seen: BTreeMap<&[u8], i64> = BTreeMap::new();
    rows.iter().any(|(id, row)| match &row[column] {
        Value::Bytes(bytes) => seen.insert(bytes, *id).is_some(),
        _ => false,
    })
}

/// The row layout of a shape, for a table that is not open yet.
pub fn layout_of(shape: &Shape) -> RowLayout {
    let columns = shape.spec("").columns;
    RowLayout::new(
        0,
        columns.iter().map(|c| nfold_types::row::RowColumn {
            ty: c.ty.clone(),
            nullable: c.nullable,
        }),
    )
}

/// The open table of this name.
pub fn find(engine: &nfold_engine::Engine, name: &str) -> Result<Arc<Table>, String> {
    let schema = engine.catalog().snapshot();
    let def = schema
        .table(DATABASE, name)
        .ok_or_else(|| format!("table {name} is missing"))?;
    engine
        .table(def.id)
        .ok_or_else(|| format!("table {name} is not open"))
}
