//! The foreign keys that a statement's changes may violate or cascade through. They are found at
//! planning time, so that a table without any pays nothing.

use std::sync::Arc;

use nfold_catalog::foreign_key::key_of_other_table;
use nfold_catalog::{ForeignKeyDef, SchemaSnapshot, TableDef, TableId};
use nfold_types::key::KeyLayout;

use crate::logical::table_exprs::TableExprs;

/// The tables that a statement may change, with the foreign keys of which they are child or parent.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignKeys {
    /// The tables that the statement names, followed by those that cascades reach.
    pub tables: Vec<TableKeys>,
    /// Whether a cascade may reach a table that the statement or another cascade changes too.
    pub revisits: bool,
}

/// The foreign keys of one table.
#[derive(Debug, Clone, PartialEq)]
pub struct TableKeys {
    pub table: Arc<TableDef>,
    /// The foreign keys of which the table is the child.
    pub parents: Vec<ParentKey>,
    /// The foreign keys of which the table is the parent.
    pub children: Vec<ChildKey>,
    /// The table's stored expressions, for cascades.
    pub exprs: Option<Arc<TableExprs>>,
}

/// A foreign key, as seen from the child.
#[derive(Debug, Clone, PartialEq)]
pub struct ParentKey {
    /// The index in [`TableDef::foreign_keys`].
    pub key: usize,
    /// `None` if the parent table does not exist, or lacks a suitable key.
    pub parent: Option<ParentIndex>,
}

/// The index that finds a row of the parent.
#[derive(Debug, Clone, PartialEq)]
pub struct ParentIndex {
    pub table: TableId,
    pub index: usize,
    /// How to build a key of that index from a row of the child.
    pub layout: KeyLayout,
}

/// A foreign key, as seen from the parent.
#[derive(Debug, Clone, PartialEq)]
pub struct ChildKey {
    pub child: Arc<TableDef>,
    /// The index in [`TableDef::foreign_keys`] of the child.
    pub key: usize,
    /// The child's index that finds its rows.
    pub index: usize,
    /// How to build a key of that index from a row of the parent.
    pub layout: KeyLayout,
    /// Ordinals of the referenced columns in the parent.
    pub referenced: Vec<usize>,
    /// The child's position in [`ForeignKeys::tables`], if a cascade may change its rows.
    pub cascades_to: Option<usize>,
}

impl ChildKey {
    /// The foreign key's definition.
    pub fn def(&self) -> &ForeignKeyDef {
        &self.child.foreign_keys[self.key]
    }
}

/// How a statement changes a table that it names.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Changed<'a> {
    Inserted,
    /// REPLACE and ON DUPLICATE KEY UPDATE, which may also delete or update rows.
    Replaced,
    Deleted,
    /// UPDATE of these columns.
    Updated(&'a [usize]),
}

impl ForeignKeys {
    /// The foreign keys that changes of `roots` concern. `None` if there are none, or
    /// `foreign_key_checks` is off.
    pub(crate) fn of(
        (schema, checks): (&SchemaSnapshot, bool),
        roots: &[(&Arc<TableDef>, Changed<'_>)],
    ) -> Option<Arc<ForeignKeys>> {
        let stored = |t: &TableDef| schema.table_by_id(t.id).is_some();
        if !checks || !roots.iter().any(|(t, _)| stored(t)) {
            return None;
        }
        let concerned = |t: &TableDef| {
            let children = || schema.children(&t.schema, &t.name);
            stored(t) && (!t.foreign_keys.is_empty() || !children().is_empty())
        };
        if !roots.iter().any(|(t, _)| concerned(t)) {
            return None;
        }
        let mut all = ForeignKeys {
            tables: Vec::new(),
            revisits: false,
        };
        for (table, _) in roots {
            all.place_of(schema, table);
        }
        let named = all.tables.len();
        let mut at = 0;
        while at < all.tables.len() {
            all.add_children(schema, at);
            at += 1;
        }
        all.narrow(roots, named);
        let idle = |t: &TableKeys| t.parents.is_empty() && t.children.is_empty();
        match all.tables[..named].iter().all(idle) {
            true => None,
            false => Some(Arc::new(all)),
        }
    }

    /// The position of a table in `tables`.
    pub fn find(&self, table: TableId) -> Option<usize> {
        self.tables.iter().position(|t| t.table.id == table)
    }

    /// The rank of a table by the foreign keys of the statement: the more direct and indirect
    /// parents it has, the lower. So a child has a lower generation than its parents.
    pub fn generation(&self, table: TableId) -> usize {
        let mut reached: Vec<TableId> = vec![table];
        let mut at = 0;
        while at < reached.len() {
            let parents = self.tables.iter().filter(|t| {
                let mut children = t.children.iter();
                children.any(|c| c.child.id == reached[at])
            });
            let parents: Vec<TableId> = parents.map(|t| t.table.id).collect();
            for id in parents {
                if !reached.contains(&id) {
                    reached.push(id);
                }
            }
            at += 1;
        }
        self.tables.len() - reached.len().min(self.tables.len())
    }

    /// The other tables that the statement uses, each with whether it changes their rows.
    pub fn uses(&self) -> impl Iterator<Item = (TableId, bool)> {
        let cascades = self.tables.iter().flat_map(|t| &t.children);
        let cascades = cascades.map(|c| (c.child.id, c.cascades_to.is_some()));
        let parents = self.tables.iter().flat_map(|t| &t.parents);
        let parents = parents.filter_map(|p| Some((p.parent.as_ref()?.table, false)));
        cascades.chain(parents)
    }

    /// The position of a table in `tables`, to which it is added if necessary.
    fn place_of(&mut self, schema: &SchemaSnapshot, table: &Arc<TableDef>) -> usize {
        if let Some(at) = self.find(table.id) {
            return at;
        }
        let keys = table.foreign_keys.iter().enumerate();
        let parents = keys.map(|(n, key)| ParentKey {
            key: n,
            parent: parent_index(schema, key),
        });
        self.tables.push(TableKeys {
            table: table.clone(),
            parents: parents.collect(),
            children: Vec::new(),
            exprs: None,
        });
        self.tables.len() - 1
    }

    /// Adds the children of the table at position `at`.
    fn add_children(&mut self, schema: &SchemaSnapshot, at: usize) {
        let parent = self.tables[at].table.clone();
        for child in schema.children(&parent.schema, &parent.name) {
            for (n, key) in child.foreign_keys.iter().enumerate() {
                if !key.references(&parent.schema, &parent.name) {
                    continue;
                }
                let (Some(index), Some(referenced)) =
                    (key.child_index(child), key.columns_in(&parent))
                else {
                    continue;
                };
                let cascades = key.on_delete.changes_children() || key.on_update.changes_children();
                let cascades_to = cascades.then(|| {
                    self.revisits |= self.find(child.id).is_some();
                    self.place_of(schema, child)
                });
                self.tables[at].children.push(ChildKey {
                    child: child.clone(),
                    key: n,
                    index,
                    layout: key_of_other_table(&referenced, (child, index)),
                    referenced,
                    cascades_to,
                });
            }
        }
    }

    /// Removes the foreign keys that the statement cannot violate from the first `named` tables,
    /// except for tables that cascades reach too.
    fn narrow(&mut self, roots: &[(&Arc<TableDef>, Changed<'_>)], named: usize) {
        let cascades = self.tables.iter().flat_map(|t| &t.children);
        let reached: Vec<usize> = cascades.filter_map(|c| c.cascades_to).collect();
        for (at, keys) in self.tables[..named].iter_mut().enumerate() {
            if reached.contains(&at) {
                continue;
            }
            let changes = roots.iter().filter(|(t, _)| t.id == keys.table.id);
            let changes: Vec<Changed<'_>> = changes.map(|(_, c)| *c).collect();
            let touches = |columns: &[usize], assigned: &[usize]| {
                let computed = |c: &usize| {
                    let column = &keys.table.columns[*c];
                    column.on_update_now.is_some() || column.generated.is_some()
                };
                columns.iter().any(|c| assigned.contains(c) || computed(c))
            };
            let table = keys.table.clone();
            keys.parents.retain(|p| {
                let columns = &table.foreign_keys[p.key].columns;
                changes.iter().any(|change| match change {
                    Changed::Inserted | Changed::Replaced => true,
                    Changed::Deleted => false,
                    Changed::Updated(set) => p.parent.is_none() || touches(columns, set),
                })
            });
            keys.children.retain(|c| {
                changes.iter().any(|change| match change {
                    Changed::Inserted => false,
                    Changed::Replaced | Changed::Deleted => true,
                    Changed::Updated(set) => touches(&c.referenced, set),
                })
            });
        }
    }
}

fn parent_index(schema: &SchemaSnapshot, key: &ForeignKeyDef) -> Option<ParentIndex> {
    let parent = schema.table(&key.parent_schema, &key.parent_table)?;
    let index = key.parent_index(parent)?;
    Some(ParentIndex {
        table: parent.id,
        index,
        layout: key_of_other_table(&key.columns, (parent, index)),
    })
}
