//! Foreign keys: as a child's definition holds them, and which index serves each side.
//!
//! A foreign key names its parent's columns and table, not their ids: the parent may be missing
//! (`foreign_key_checks=0`), and a table of this name that comes later becomes the parent.

use std::sync::Arc;

use nfold_types::key::{KeyLayout, KeyPart};

use crate::schema::{IndexDef, IndexKind, TableDef, eq_name};

/// The effect on a child's row when its parent's row is deleted, or gets another key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReferentialAction {
    /// Refuses the change, as [`Self::Restrict`] does: checks are never deferred.
    #[default]
    NoAction,
    Restrict,
    Cascade,
    SetNull,
    /// Stored and shown; it refuses the change.
    SetDefault,
}

impl ReferentialAction {
    /// Whether the child's rows change, too.
    pub fn changes_children(self) -> bool {
        matches!(self, Self::Cascade | Self::SetNull)
    }

    /// The words of SQL.
    pub fn words(self) -> &'static str {
        match self {
            Self::NoAction => "NO ACTION",
            Self::Restrict => "RESTRICT",
            Self::Cascade => "CASCADE",
            Self::SetNull => "SET NULL",
            Self::SetDefault => "SET DEFAULT",
        }
    }
}

/// One foreign key of a table, the child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignKeyDef {
    /// Unique in the child's database.
    pub name: Arc<str>,
    /// Ordinals in the child.
    pub columns: Vec<usize>,
    pub parent_schema: Arc<str>,
    pub parent_table: Arc<str>,
    /// As many as `columns`.
    pub parent_columns: Vec<Arc<str>>,
    pub on_delete: ReferentialAction,
    pub on_update: ReferentialAction,
}

impl ForeignKeyDef {
    /// Whether its parent is called `schema.table`.
    pub fn references(&self, schema: &str, table: &str) -> bool {
        *self.parent_schema == *schema && *self.parent_table == *table
    }

    /// Ordinals of its columns in the parent; `None` where one is missing.
    pub fn columns_in(&self, parent: &TableDef) -> Option<Vec<usize>> {
        let columns = self.parent_columns.iter();
        columns.map(|name| parent.column(name)).collect()
    }

    /// The child's index by which rows are found for a key of the parent.
    pub fn child_index(&self, child: &TableDef) -> Option<usize> {
        find_index(child, |i| begins_with(i, &self.columns))
    }

    /// The parent's index by which a key is found: a unique one over exactly these columns if
    /// there is one.
    pub fn parent_index(&self, parent: &TableDef) -> Option<usize> {
        let columns = self.columns_in(parent)?;
        find_index(parent, |i| is_key_of(i, &columns))
            .or_else(|| find_index(parent, |i| begins_with(i, &columns)))
    }

    /// `CONSTRAINT name FOREIGN KEY ...`, as SHOW CREATE TABLE of its table and error messages
    /// show it.
    pub fn clause(&self, child: &TableDef, quote: impl Fn(&str) -> String) -> String {
        let list = |names: &mut dyn Iterator<Item = &Arc<str>>| {
            let names: Vec<String> = names.map(|n| quote(n)).collect();
            names.join(", ")
        };
        let database = match self.parent_schema == child.schema {
            true => String::new(),
            false => format!("{}.", quote(&self.parent_schema)),
        };
        let mut text = format!(
            "CONSTRAINT {} FOREIGN KEY ({}) REFERENCES {database}{} ({})",
            quote(&self.name),
            list(&mut self.columns.iter().map(|c| &child.columns[*c].name)),
            quote(&self.parent_table),
            list(&mut self.parent_columns.iter()),
        );
        for (event, action) in [("DELETE", self.on_delete), ("UPDATE", self.on_update)] {
            if action != ReferentialAction::NoAction {
                text.push_str(&format!(" ON {event} {}", action.words()));
            }
        }
        text
    }

    /// The name that the foreign key has once its table is called `new`: a generated name goes
    /// with the table's.
    pub fn renamed(&self, old: &str, new: &str) -> Arc<str> {
        match generated_number(&self.name, old) {
            Some(n) => generated_name(new, n),
            None => self.name.clone(),
        }
    }
}

/// The name of foreign key number `n` of a table, where none was written.
pub fn generated_name(table: &str, n: u32) -> Arc<str> {
    format!("{table}_ibfk_{n}").into()
}

/// The number of a generated name.
pub fn generated_number(name: &str, table: &str) -> Option<u32> {
    let rest = name.strip_prefix(table)?.strip_prefix("_ibfk_")?;
    rest.parse().ok()
}

fn find_index(table: &TableDef, fits: impl Fn(&IndexDef) -> bool) -> Option<usize> {
    // A multi-valued index has no entry for a row whose array is empty.
    let mut indexes = table.indexes.iter();
    indexes.position(|i| table.array_part(i).is_none() && fits(i))
}

/// Whether the first parts of an index are these columns, whole and in this order.
pub fn begins_with(index: &IndexDef, columns: &[usize]) -> bool {
    index.kind != IndexKind::HiddenRowId
        && index.parts.len() >= columns.len()
        && columns
            .iter()
            .zip(&index.parts)
            .all(|(c, p)| p.column == *c && p.prefix_len.is_none())
}

/// How `columns` of a row of another table are written as the first parts of index number `index`
/// of `to`. The values have to be no NULLs, of types that go together in a foreign key.
pub fn key_of_other_table(columns: &[usize], (to, index): (&TableDef, usize)) -> KeyLayout {
    let parts = to.indexes[index].parts.iter().zip(columns);
    KeyLayout::new(parts.map(|(part, &column)| {
        let target = &to.columns[part.column];
        KeyPart {
            desc: part.desc,
            ..KeyPart::new(column, target.ty.clone(), target.nullable)
        }
    }))
}

/// Whether an index is unique over exactly these columns.
pub fn is_key_of(index: &IndexDef, columns: &[usize]) -> bool {
    index.is_unique() && index.parts.len() == columns.len() && begins_with(index, columns)
}

impl TableDef {
    /// The foreign key called `name`.
    pub fn foreign_key(&self, name: &str) -> Option<usize> {
        self.foreign_keys
            .iter()
            .position(|k| eq_name(&k.name, name))
    }
}
