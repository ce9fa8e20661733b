//! How dictionary objects are stored: a compact binary form that is part of format v1.
//!
//! # Picture
//! Integers are little-endian, strings are `u32 length, bytes`, lists are `u32 count, items`. Every
//! object starts with a version byte (1), so that a later format can tell. A table that has foreign
//! keys, stored expressions, histograms, full-text indexes, or invisible columns or indexes has
//! version 2: version 1, then a list of sections `u8 kind, bytes`; a reader refuses kinds that it
//! does not know. Version 1 shows a DEFAULT (expression) as no default; a section behind it has the
//! expression.
//!
//! # Failure
//! A decoder answers [`BadObject`] on bytes that it did not write; it never panics and never
//! allocates more than the input holds.

use nfold_types::ColumnType;
use nfold_types::collation::CollationId;
use nfold_types::row::{RowColumn, RowLayout};

use crate::foreign_key::{ForeignKeyDef, ReferentialAction};
use crate::schema::{
    ColumnDef, ColumnDefault, DatabaseDef, IndexDef, IndexId, IndexKind, IndexPart, Relation,
    TableDef, TableId, TableOptions, ViewAlgorithm, ViewCheck, ViewDef, Visibility,
};
use crate::stored_expr::BoundExprs;

pub use statistics::{StoredColumnStats, StoredIndexStats, StoredStats};

mod account;
mod fulltext;
mod histogram;
mod statistics;
mod stored_expr;

const VERSION: u8 = 1;
/// Views since WITH CHECK OPTION.
const VERSION_VIEW_CHECK: u8 = 2;
/// A table with sections behind version 1.
const VERSION_SECTIONS: u8 = 2;
/// The section of the foreign keys.
const SECTION_FOREIGN_KEYS: u8 = 1;
/// The section of the CHECK constraints.
const SECTION_CHECKS: u8 = 2;
/// The section of the columns with expressions.
const SECTION_COLUMN_EXPRS: u8 = 3;
/// The section of the columns that are not visible.
const SECTION_VISIBILITY: u8 = 4;
/// The section of the invisible indexes.
const SECTION_INVISIBLE_INDEXES: u8 = 5;
/// The section of the element types of multi-valued key parts.
const SECTION_ARRAYS: u8 = 6;

/// The section of the columns' histograms.
const SECTION_HISTOGRAMS: u8 = 7;
/// The section of the options of full-text indexes.
const SECTION_FULLTEXT: u8 = 8;

/// The bytes are not a dictionary object of this kind; says which field failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadObject(pub &'static str);

/// A dictionary object with a stored form.
pub trait Stored: Sized {
    /// Appends the stored form.
    fn encode(&self, out: &mut Vec<u8>);
    /// Reads it back.
    ///
    /// # Errors
    /// [`BadObject`] when the bytes are not one.
    fn decode(input: &[u8]) -> Result<Self, BadObject>;
}

/// Reads the stored form field by field.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize, what: &'static str) -> Result<&'a [u8], BadObject> {
        let (head, rest) = self.0.split_at_checked(n).ok_or(BadObject(what))?;
        self.0 = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], BadObject> {
        Ok(self.take(N, what)?.try_into().expect("take gives N bytes"))
    }

    fn u8(&mut self, what: &'static str) -> Result<u8, BadObject> {
        Ok(self.array::<1>(what)?[0])
    }

    fn u16(&mut self, what: &'static str) -> Result<u16, BadObject> {
        Ok(u16::from_le_bytes(self.array(what)?))
    }

    fn u32(&mut self, what: &'static str) -> Result<u32, BadObject> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    fn u64(&mut self, what: &'static str) -> Result<u64, BadObject> {
        Ok(u64::from_le_bytes(self.array(what)?))
    }

    fn bytes(&mut self, what: &'static str) -> Result<&'a [u8], BadObject> {
        let n = self.u32(what)? as usize;
        self.take(n, what)
    }

    fn text(&mut self, what: &'static str) -> Result<&'a str, BadObject> {
        std::str::from_utf8(self.bytes(what)?).map_err(|_| BadObject(what))
    }

    fn bool(&mut self, what: &'static str) -> Result<bool, BadObject> {
        Ok(self.u8(what)? != 0)
    }

    fn list<T>(
        &mut self,
        what: &'static str,
        mut item: impl FnMut(&mut Self) -> Result<T, BadObject>,
    ) -> Result<Vec<T>, BadObject> {
        let n = self.u32(what)? as usize;
        let mut items = Vec::with_capacity(n.min(self.0.len()));
        for _ in 0..n {
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn version(&mut self) -> Result<(), BadObject> {
        if self.u8("version")? == VERSION {
            Ok(())
        } else {
            Err(BadObject("version"))
        }
    }
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn put_list<T>(out: &mut Vec<u8>, items: &[T], mut item: impl FnMut(&mut Vec<u8>, &T)) {
    out.extend_from_slice(&(items.len() as u32).to_le_bytes());
    for i in items {
        item(out, i);
    }
}

impl Stored for DatabaseDef {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(VERSION);
        put_bytes(out, self.name.as_bytes());
        out.extend_from_slice(&self.collation.0.to_le_bytes());
    }

    fn decode(input: &[u8]) -> Result<Self, BadObject> {
        let mut r = Reader(input);
        r.version()?;
        Ok(DatabaseDef {
            name: r.text("name")?.into(),
            collation: CollationId(r.u16("collation")?),
        })
    }
}

/// The sections behind version 1 of a table; none: the table is stored as version 1.
fn sections_of(table: &TableDef) -> Vec<(u8, Vec<u8>)> {
    let mut sections = Vec::new();
    if !table.foreign_keys.is_empty() {
        let mut bytes = Vec::new();
        put_list(&mut bytes, &table.foreign_keys, put_foreign_key);
        sections.push((SECTION_FOREIGN_KEYS, bytes));
    }
    stored_expr::put_sections(table, &mut sections);
    histogram::put_section(table, &mut sections);
    fulltext::put_section(table, &mut sections);
    sections
}

/// Reads the sections behind version 1 into the table.
fn get_sections(r: &mut Reader<'_>, table: &mut TableDef) -> Result<(), BadObject> {
    r.list("sections", |r| {
        let kind = r.u8("section")?;
        let mut section = Reader(r.bytes("section")?);
        match kind {
            SECTION_FOREIGN_KEYS => {
                table.foreign_keys = section.list("foreign keys", get_foreign_key)?;
            }
            SECTION_HISTOGRAMS => histogram::get_section(&mut section, table)?,
            SECTION_FULLTEXT => fulltext::get_section(&mut section, table)?,
            kind => stored_expr::get_section(kind, &mut section, table)?,
        }
        Ok(())
    })?;
    Ok(())
}

impl Stored for TableDef {
    fn encode(&self, out: &mut Vec<u8>) {
        let sections = sections_of(self);
        out.push(match sections.is_empty() {
            true => VERSION,
            false => VERSION_SECTIONS,
        });
        out.extend_from_slice(&self.id.0.to_le_bytes());
        put_bytes(out, self.schema.as_bytes());
        put_bytes(out, self.name.as_bytes());
        out.extend_from_slice(&self.collation.0.to_le_bytes());
        out.extend_from_slice(&self.space.to_le_bytes());
        out.extend_from_slice(&self.row_version.to_le_bytes());
        out.extend_from_slice(&self.create_time.to_le_bytes());
        put_bytes(out, self.options.comment.as_bytes());
        put_bytes(
            out,
            self.options
                .row_format
                .as_deref()
                .unwrap_or_default()
                .as_bytes(),
        );
        put_list(out, &self.columns, put_column);
        put_list(out, &self.indexes, put_index);
        if !sections.is_empty() {
            put_list(out, &sections, |out, (kind, bytes)| {
                out.push(*kind);
                put_bytes(out, bytes);
            });
        }
    }

    fn decode(input: &[u8]) -> Result<Self, BadObject> {
        let mut r = Reader(input);
        let version = r.u8("version")?;
        if !matches!(version, VERSION | VERSION_SECTIONS) {
            return Err(BadObject("version"));
        }
        let mut table = TableDef {
            id: TableId(r.u64("table id")?),
            schema: r.text("schema")?.into(),
            name: r.text("name")?.into(),
            collation: CollationId(r.u16("collation")?),
            space: r.u32("space")?,
            row_version: r.u16("row version")?,
            create_time: r.u64("create time")?,
            options: TableOptions {
                comment: r.text("comment")?.into(),
                row_format: Some(r.text("row format")?)
                    .filter(|f| !f.is_empty())
                    .map(Into::into),
            },
            columns: r.list("columns", get_column)?,
            indexes: r.list("indexes", get_index)?,
            foreign_keys: Vec::new(),
            checks: Vec::new(),
            bound: BoundExprs::default(),
            relation: Relation::Table,
        };
        if version == VERSION_SECTIONS {
            get_sections(&mut r, &mut table)?;
        }
        let columns = table.columns.len();
        let parts_exist = table
            .indexes
            .iter()
            .flat_map(|i| &i.parts)
            .all(|p| p.column < columns);
        let keys_fit = table.foreign_keys.iter().all(|k| {
            k.columns.len() == k.parent_columns.len() && k.columns.iter().all(|c| *c < columns)
        });
        let clustered_first = table.indexes.first().is_some_and(IndexDef::is_clustered);
        match (parts_exist && clustered_first, keys_fit) {
            (true, true) => Ok(table),
            (true, false) => Err(BadObject("foreign keys")),
            (false, _) => Err(BadObject("indexes")),
        }
    }
}

/// A view, which is a [`TableDef`] with [`TableDef::view`].
pub struct StoredView(pub TableDef);

impl Stored for StoredView {
    fn encode(&self, out: &mut Vec<u8>) {
        let def = &self.0;
        let Some(view) = def.view() else {
            debug_assert!(false, "only views are stored as such");
            return;
        };
        out.push(VERSION_VIEW_CHECK);
        out.extend_from_slice(&def.id.0.to_le_bytes());
        put_bytes(out, def.schema.as_bytes());
        put_bytes(out, def.name.as_bytes());
        out.extend_from_slice(&def.collation.0.to_le_bytes());
        out.extend_from_slice(&def.create_time.to_le_bytes());
        put_list(out, &def.columns, put_column);
        put_bytes(out, &view.text);
        put_bytes(out, view.database.as_deref().unwrap_or_default().as_bytes());
        out.push(view.lexing);
        out.extend_from_slice(&view.mode.to_le_bytes());
        out.extend_from_slice(&view.collation.0.to_le_bytes());
        put_bytes(out, view.definer.0.as_bytes());
        put_bytes(out, view.definer.1.as_bytes());
        out.push(view.invoker.into());
        out.push(match view.algorithm {
            ViewAlgorithm::Undefined => 0,
            ViewAlgorithm::Merge => 1,
            ViewAlgorithm::TempTable => 2,
        });
        out.push(match view.check {
            ViewCheck::None => 0,
            ViewCheck::Local => 1,
            ViewCheck::Cascaded => 2,
        });
        out.push(view.updatable.into());
    }

    fn decode(input: &[u8]) -> Result<Self, BadObject> {
        let mut r = Reader(input);
        let version = r.u8("version")?;
        if !(VERSION..=VERSION_VIEW_CHECK).contains(&version) {
            return Err(BadObject("version"));
        }
        let id = r.u64("view id")?;
        let (schema, name) = (r.text("schema")?.into(), r.text("name")?.into());
        let collation = CollationId(r.u16("collation")?);
        let create_time = r.u64("create time")?;
        let columns = r.list("columns", get_column)?;
        let mut view = ViewDef {
            text: r.bytes("text")?.into(),
            database: Some(r.text("database")?)
                .filter(|d| !d.is_empty())
                .map(Into::into),
            lexing: r.u8("lexing")?,
            mode: r.u32("mode")?,
            collation: CollationId(r.u16("connection")?),
            definer: (r.text("definer")?.into(), r.text("definer")?.into()),
            invoker: r.bool("security")?,
            algorithm: match r.u8("algorithm")? {
                0 => ViewAlgorithm::Undefined,
                1 => ViewAlgorithm::Merge,
                2 => ViewAlgorithm::TempTable,
                _ => return Err(BadObject("algorithm")),
            },
            check: ViewCheck::None,
            updatable: false,
        };
        if version >= VERSION_VIEW_CHECK {
            view.check = match r.u8("check option")? {
                0 => ViewCheck::None,
                1 => ViewCheck::Local,
                2 => ViewCheck::Cascaded,
                _ => return Err(BadObject("check option")),
            };
            view.updatable = r.bool("updatable")?;
        }
        Ok(StoredView(TableDef::of_view(
            (TableId(id), schema, name),
            collation,
            create_time,
            columns,
            view,
        )))
    }
}

fn put_column(out: &mut Vec<u8>, c: &ColumnDef) {
    put_bytes(out, c.name.as_bytes());
    let mut ty = Vec::new();
    c.ty.serialize(&mut ty);
    put_bytes(out, &ty);
    out.push(u8::from(c.nullable) | if c.own_charset { OWN_CHARSET } else { 0 });
    match &c.default {
        ColumnDefault::None => out.push(0),
        ColumnDefault::Null => out.push(1),
        ColumnDefault::Literal(value) => {
            out.push(2);
            let mut row = Vec::new();
            let stored = default_layout(&c.ty).encode([value.as_ref()], &mut row);
            debug_assert!(
                stored.is_ok(),
                "a default was converted to its column's type"
            );
            put_bytes(out, &row);
        }
        ColumnDefault::CurrentTimestamp(fsp) => out.extend_from_slice(&[3, *fsp]),
        // A section has it.
        ColumnDefault::Expr(_) => out.push(0),
    }
    out.push(c.on_update_now.map_or(0xff, |fsp| fsp));
    out.push(c.auto_increment.into());
    put_bytes(out, c.comment.as_bytes());
}

fn get_column(r: &mut Reader<'_>) -> Result<ColumnDef, BadObject> {
    let name = r.text("column name")?.into();
    let ty =
        ColumnType::deserialize(&mut r.bytes("column type")?).ok_or(BadObject("column type"))?;
    let nullable = r.u8("nullable")?;
    let own_charset = nullable & OWN_CHARSET != 0;
    let nullable = match nullable & !OWN_CHARSET {
        0 => false,
        1 => true,
        _ => return Err(BadObject("nullable")),
    };
    let default = match r.u8("default")? {
        0 => ColumnDefault::None,
        1 => ColumnDefault::Null,
        2 => {
            let row = r.bytes("default")?;
            let value = default_layout(&ty)
                .get(row, 0)
                .map_err(|_| BadObject("default"))?;
            ColumnDefault::Literal(value.to_owned())
        }
        3 => ColumnDefault::CurrentTimestamp(r.u8("default")?),
        _ => return Err(BadObject("default")),
    };
    Ok(ColumnDef {
        name,
        ty,
        nullable,
        default,
        on_update_now: Some(r.u8("on update")?).filter(|&fsp| fsp != 0xff),
        auto_increment: r.bool("auto increment")?,
        comment: r.text("column comment")?.into(),
        own_charset,
        generated: None,
        visibility: Visibility::Visible,
        histogram: None,
    })
}

/// A literal default is stored as a row of one column.
fn default_layout(ty: &ColumnType) -> RowLayout {
    RowLayout::new(
        0,
        [RowColumn {
            ty: ty.clone(),
            nullable: true,
        }],
    )
}

/// Beside the kind of an index: `USING BTREE` was written.
const USING_BTREE: u8 = 0x10;
/// Beside the kind of an index: it was made for a foreign key.
const GENERATED: u8 = 0x20;
/// Beside a column's nullability: its character set was written.
const OWN_CHARSET: u8 = 0x10;

fn put_index(out: &mut Vec<u8>, i: &IndexDef) {
    out.extend_from_slice(&i.id.0.to_le_bytes());
    put_bytes(out, i.name.as_bytes());
    let kind = match i.kind {
        IndexKind::Primary => 0,
        IndexKind::HiddenRowId => 1,
        IndexKind::Unique => 2,
        IndexKind::Secondary => 3,
        IndexKind::Fulltext(_) => 4,
    };
    let marks = [(i.btree, USING_BTREE), (i.generated, GENERATED)];
    let marks = marks.iter().filter(|(on, _)| *on).map(|(_, bit)| bit);
    out.push(kind | marks.sum::<u8>());
    out.extend_from_slice(&i.root.to_le_bytes());
    put_bytes(out, i.comment.as_bytes());
    put_list(out, &i.parts, |out, p| {
        out.extend_from_slice(&(p.column as u16).to_le_bytes());
        out.extend_from_slice(&p.prefix_len.unwrap_or(0).to_le_bytes());
        out.push(p.desc.into());
    });
}

fn get_index(r: &mut Reader<'_>) -> Result<IndexDef, BadObject> {
    let id = IndexId(r.u64("index id")?);
    let name = r.text("index name")?.into();
    let kind = r.u8("index kind")?;
    Ok(IndexDef {
        id,
        name,
        btree: kind & USING_BTREE != 0,
        generated: kind & GENERATED != 0,
        visible: true,
        kind: match kind & !(USING_BTREE | GENERATED) {
            0 => IndexKind::Primary,
            1 => IndexKind::HiddenRowId,
            2 => IndexKind::Unique,
            3 => IndexKind::Secondary,
            // The options follow in a section.
            4 => IndexKind::Fulltext(fulltext::UNREAD),
            _ => return Err(BadObject("index kind")),
        },
        root: r.u32("root")?,
        comment: r.text("index comment")?.into(),
        parts: r.list("index parts", |r| {
            Ok(IndexPart {
                column: r.u16("part column")?.into(),
                prefix_len: Some(r.u16("part prefix")?).filter(|&n| n != 0),
                desc: r.bool("part order")?,
            })
        })?,
    })
}

fn put_foreign_key(out: &mut Vec<u8>, k: &ForeignKeyDef) {
    for text in [&k.name, &k.parent_schema, &k.parent_table] {
        put_bytes(out, text.as_bytes());
    }
    put_list(out, &k.columns, |out, c| {
        out.extend_from_slice(&(*c as u16).to_le_bytes());
    });
    put_list(out, &k.parent_columns, |out, name| {
        put_bytes(out, name.as_bytes());
    });
    for action in [k.on_delete, k.on_update] {
        out.push(match action {
            ReferentialAction::NoAction => 0,
            ReferentialAction::Restrict => 1,
            ReferentialAction::Cascade => 2,
            ReferentialAction::SetNull => 3,
            ReferentialAction::SetDefault => 4,
        });
    }
}

fn get_foreign_key(r: &mut Reader<'_>) -> Result<ForeignKeyDef, BadObject> {
    let action = |r: &mut Reader<'_>| {
        Ok(match r.u8("referential action")? {
            0 => ReferentialAction::NoAction,
            1 => ReferentialAction::Restrict,
            2 => ReferentialAction::Cascade,
            3 => ReferentialAction::SetNull,
            4 => ReferentialAction::SetDefault,
            _ => return Err(BadObject("referential action")),
        })
    };
    Ok(ForeignKeyDef {
        name: r.text("foreign key name")?.into(),
        parent_schema: r.text("parent database")?.into(),
        parent_table: r.text("parent table")?.into(),
        columns: r.list("foreign key columns", |r| {
            Ok(r.u16("foreign key column")?.into())
        })?,
        parent_columns: r.list("parent columns", |r| Ok(r.text("parent column")?.into()))?,
        on_delete: action(r)?,
        on_update: action(r)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfold_types::{TextSize, TypeKind, Value};

    pub(super) fn table() -> TableDef {
        let column = |name: &str, ty, default| ColumnDef {
            name: name.into(),
            ty,
            nullable: true,
            default,
            on_update_now: None,
            auto_increment: false,
            comment: "why".into(),
            own_charset: false,
            generated: None,
            visibility: Visibility::Visible,
            histogram: None,
        };
        TableDef {
            id: TableId(7),
            schema: "d".into(),
            name: "t\u{e9}".into(),
            columns: vec![
                column(
                    "id",
                    ColumnType::bigint().with_unsigned(),
                    ColumnDefault::Literal(Value::UInt(3)),
                ),
                column(
                    "s",
                    ColumnType::varchar(20, CollationId(255)),
                    ColumnDefault::Literal("x".into()),
                ),
                column(
                    "b",
                    ColumnType::new(TypeKind::Blob(TextSize::Normal)),
                    ColumnDefault::Null,
                ),
                column(
                    "t",
                    ColumnType::new(TypeKind::DateTime(6)),
                    ColumnDefault::CurrentTimestamp(6),
                ),
            ],
            indexes: vec![IndexDef {
                id: IndexId(9),
                name: "PRIMARY".into(),
                kind: IndexKind::Primary,
                parts: vec![IndexPart {
                    column: 0,
                    prefix_len: None,
                    desc: true,
                }],
                root: 4,
                comment: Box::default(),
                btree: false,
                generated: true,
                visible: true,
            }],
            foreign_keys: Vec::new(),
            checks: Vec::new(),
            bound: BoundExprs::default(),
            collation: CollationId(255),
            options: TableOptions {
                comment: "c".into(),
                row_format: Some("DYNAMIC".into()),
            },
            space: 12,
            row_version: 2,
            create_time: 1,
            relation: Relation::Table,
        }
    }

    #[test]
    fn objects_round_trip() {
        let mut bytes = Vec::new();
        table().encode(&mut bytes);
        assert_eq!(TableDef::decode(&bytes), Ok(table()));
        for cut in 0..bytes.len() {
            assert!(TableDef::decode(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        let database = DatabaseDef {
            name: "d".into(),
            collation: CollationId(45),
        };
        bytes.clear();
        database.encode(&mut bytes);
        assert_eq!(DatabaseDef::decode(&bytes), Ok(database));
    }

    fn child() -> TableDef {
        TableDef {
            foreign_keys: vec![ForeignKeyDef {
                name: "t_ibfk_1".into(),
                columns: vec![0, 1],
                parent_schema: "d".into(),
                parent_table: "p".into(),
                parent_columns: vec!["a".into(), "b".into()],
                on_delete: ReferentialAction::Cascade,
                on_update: ReferentialAction::SetNull,
            }],
            ..table()
        }
    }

    #[test]
    fn tables_with_foreign_keys_round_trip() {
        let mut bytes = Vec::new();
        child().encode(&mut bytes);
        assert_eq!(bytes[0], VERSION_SECTIONS);
        assert_eq!(TableDef::decode(&bytes), Ok(child()));
        for cut in 0..bytes.len() {
            assert!(TableDef::decode(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        let mut beyond = child();
        beyond.foreign_keys[0].columns[0] = 9;
        bytes.clear();
        beyond.encode(&mut bytes);
        assert_eq!(TableDef::decode(&bytes), Err(BadObject("foreign keys")));
    }

    #[test]
    fn tables_with_stored_exprs_round_trip() {
        let table = stored_expr::tests::with_exprs(child());
        let mut bytes = Vec::new();
        table.encode(&mut bytes);
        assert_eq!(bytes[0], VERSION_SECTIONS);
        assert_eq!(TableDef::decode(&bytes), Ok(table));
        for cut in 0..bytes.len() {
            assert!(TableDef::decode(&bytes[..cut]).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn tables_without_sections_keep_version_1() {
        let mut bytes = Vec::new();
        table().encode(&mut bytes);
        assert_eq!(bytes[0], VERSION);
    }

    #[test]
    fn damaged_objects_do_no_harm() {
        let mut bytes = Vec::new();
        stored_expr::tests::with_exprs(child()).encode(&mut bytes);
        for at in 0..bytes.len() {
            for flip in [1u8, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] ^= flip;
                let _refused_or_another_table = TableDef::decode(&damaged);
            }
        }
    }
}
