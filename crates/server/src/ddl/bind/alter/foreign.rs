//! The effects of ALTER TABLE on foreign keys of the table and of its children.

use std::sync::Arc;

use nfold_catalog::schema::eq_name;
use nfold_catalog::{ColumnDef, ForeignKeyDef, IndexKind, TableDef};
use nfold_engine::{IndexSpec, TableSpec};
use nfold_sql::ast;
use nfold_types::{ColumnType, ErrorCode, SqlError, TypeKind, Warnings};

use super::{Alter, Source};
use crate::ddl::bind::{DdlCx, error, foreign, key};

/// The ordinal of a dropped column in a foreign key.
const DROPPED: usize = usize::MAX;

/// The effects of one ALTER TABLE on foreign keys.
pub(super) struct Changes {
    /// The number of the last generated name.
    number: u32,
    /// Whether a foreign key was added.
    pub added: bool,
    /// Old and new names of renamed columns.
    renamed: Vec<(Arc<str>, Arc<str>)>,
    /// Dropped columns, with the table's foreign keys that used them.
    dropped: Vec<(Arc<str>, Vec<Arc<str>>)>,
    pub dropped_indexes: Vec<Arc<str>>,
}

impl Changes {
    pub fn of(old: &TableDef) -> Changes {
        Changes {
            number: foreign::last_number(old),
            added: false,
            renamed: Vec::new(),
            dropped: Vec::new(),
            dropped_indexes: Vec::new(),
        }
    }

    /// The name of a column after the statement.
    fn new_name(&self, name: &Arc<str>) -> Arc<str> {
        let renamed = self.renamed.iter().find(|(old, _)| eq_name(old, name));
        renamed.map_or(name.clone(), |(_, new)| new.clone())
    }
}

impl Alter<'_> {
    pub(super) fn add_foreign_key(
        &mut self,
        key: &ast::ForeignKey,
        cx: &mut DdlCx<'_>,
    ) -> Result<(), SqlError> {
        let all: Vec<IndexSpec> = self.new.indexes.iter().chain(&self.add).cloned().collect();
        let taken: Vec<Arc<str>> = all.iter().map(|i| i.name.clone()).collect();
        let spec = TableSpec {
            indexes: all,
            ..self.new.clone()
        };
        let bound = foreign::bind(key, &spec, &mut self.foreign.number, cx)?;
        let serves = |i: &IndexSpec| {
            // A generated index over the same columns is replaced by the new one.
            let stays = !i.generated || i.parts.len() > bound.columns.len();
            stays && covers(i, &bound.columns)
        };
        if !spec.indexes.iter().any(serves) {
            let made = foreign::generated_key(key);
            let replaced = |i: &&IndexSpec| i.generated && covers(i, &bound.columns);
            let free: Vec<Arc<str>> = match spec.indexes.iter().find(replaced) {
                Some(old) => taken.into_iter().filter(|t| *t != old.name).collect(),
                None => taken,
            };
            let mut index =
                key::bind(&made, &mut self.new.columns, &self.explicit_null, &free, cx)?;
            index.generated = true;
            self.leave_out_generated(&index);
            self.add.push(index);
        }
        self.new.foreign_keys.push(bound);
        (self.foreign.added, self.definition) = (true, true);
        Ok(())
    }

    pub(super) fn drop_foreign_key(&mut self, name: &str) -> Result<(), SqlError> {
        let mut keys = self.new.foreign_keys.iter();
        let at = keys
            .position(|k| eq_name(&k.name, name))
            .ok_or_else(|| error(ErrorCode::ER_CANT_DROP_FIELD_OR_KEY, &[&name]))?;
        self.new.foreign_keys.remove(at);
        self.definition = true;
        Ok(())
    }

    /// Drops a constraint of any kind: a foreign key or a unique key.
    pub(super) fn drop_constraint(&mut self, name: &str) -> Result<(), SqlError> {
        if self.new.foreign_keys.iter().any(|k| eq_name(&k.name, name)) {
            return self.drop_foreign_key(name);
        }
        if self.new.checks.iter().any(|c| eq_name(&c.name, name)) {
            return self.drop_check(name);
        }
        let mut indexes = self.new.indexes.iter();
        let unique = |i: &IndexSpec| matches!(i.kind, IndexKind::Primary | IndexKind::Unique);
        match indexes.any(|i| unique(i) && eq_name(&i.name, name)) {
            true => self.drop_key(name),
            false => Err(error(ErrorCode::ER_CONSTRAINT_NOT_FOUND, &[&name])),
        }
    }

    /// Drops generated indexes that the new index replaces.
    pub(super) fn leave_out_generated(&mut self, index: &IndexSpec) {
        let serves = |i: &IndexSpec| {
            let parts = index.parts.get(..i.parts.len());
            i.generated && parts.is_some_and(|parts| parts == i.parts)
        };
        self.add.retain(|i| !serves(i));
        let gone: Vec<IndexSpec> = self
            .new
            .indexes
            .iter()
            .filter(|i| serves(i))
            .cloned()
            .collect();
        self.new.indexes.retain(|i| !serves(i));
        gone.iter().for_each(|i| self.note_removed_index(i));
    }

    /// The names that a new key may not have: those of the remaining indexes.
    pub(super) fn taken_names(
        &self,
        key: &ast::KeyDef,
        cx: &DdlCx<'_>,
    ) -> Result<Vec<Arc<str>>, SqlError> {
        let unnamed = ast::KeyDef {
            name: None,
            ..key.clone()
        };
        let columns = &mut self.new.columns.clone();
        // The key is bound again, with its warnings.
        let mut unheard = Warnings::default();
        let cx = &mut cx.with_warnings(&mut unheard);
        let index = key::bind(&unnamed, columns, &self.explicit_null, &[], cx)?;
        let all = self.new.indexes.iter().chain(&self.add);
        let stays = |i: &&IndexSpec| {
            let parts = index.parts.get(..i.parts.len());
            !(i.generated && parts.is_some_and(|parts| parts == i.parts))
        };
        Ok(all.filter(stays).map(|i| i.name.clone()).collect())
    }

    pub(super) fn rename_column(&mut self, at: usize, new: &str) {
        let old = std::mem::replace(&mut self.new.columns[at].name, new.into());
        if *old != *new {
            // As in MySQL.
            self.new.columns[at].histogram = None;
            self.note_column_renamed(&old);
            self.foreign.renamed.push((old, new.into()));
        }
    }

    /// The positions (foreign key, column) of a column.
    pub(super) fn foreign_columns(&self, column: usize) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        for (k, key) in self.new.foreign_keys.iter().enumerate() {
            let places = key.columns.iter().enumerate();
            found.extend(places.filter(|(_, c)| **c == column).map(|(c, _)| (k, c)));
        }
        found
    }

    pub(super) fn note_dropped_column(&mut self, at: usize) {
        let keys = self.new.foreign_keys.iter();
        let keys = keys
            .filter(|k| k.columns.contains(&at))
            .map(|k| k.name.clone());
        let name = self.new.columns[at].name.clone();
        self.foreign.dropped.push((name, keys.collect()));
    }

    /// Updates the foreign keys after the column at position `at` was removed.
    pub(super) fn take_from_foreign_keys(&mut self, at: usize) {
        for column in self
            .new
            .foreign_keys
            .iter_mut()
            .flat_map(|k| &mut k.columns)
        {
            if *column == at {
                *column = DROPPED;
            } else if *column > at && *column != DROPPED {
                *column -= 1;
            }
        }
    }

    /// Updates the foreign keys after a column was inserted at position `at`.
    pub(super) fn make_room_in_foreign_keys(&mut self, at: usize) {
        for column in self
            .new
            .foreign_keys
            .iter_mut()
            .flat_map(|k| &mut k.columns)
        {
            if *column >= at && *column != DROPPED {
                *column += 1;
            }
        }
    }

    /// Checks the foreign keys of the table and of its children after all actions, and returns the
    /// children that change.
    pub(super) fn finish_foreign_keys(
        &mut self,
        indexes: &[IndexSpec],
        cx: &DdlCx<'_>,
    ) -> Result<Vec<TableDef>, SqlError> {
        let old = self.old;
        let children = cx.schema.children(&old.schema, &old.name).into_iter();
        let mut children: Vec<TableDef> = children
            .filter(|c| c.id != old.id)
            .map(|c| TableDef::clone(c))
            .collect();
        if self.new.foreign_keys.is_empty() && children.is_empty() {
            return Ok(children);
        }
        self.refuse_dropped_columns(&children)?;
        let mut changed = vec![false; children.len()];
        for (child, changed) in children.iter_mut().zip(&mut changed) {
            let keys = child.foreign_keys.iter_mut();
            for key in keys.filter(|k| k.references(&old.schema, &old.name)) {
                *changed |= self.rename_referenced(key);
            }
        }
        let mut own = std::mem::take(&mut self.new.foreign_keys);
        for key in own
            .iter_mut()
            .filter(|k| k.references(&old.schema, &old.name))
        {
            self.rename_referenced(key);
        }
        self.new.foreign_keys = own;
        let def = foreign::definition_of(&TableSpec {
            indexes: indexes.to_vec(),
            ..self.new.clone()
        });
        self.check_as_child(&def, cx)?;
        self.check_as_parent(&def, &children, cx)?;
        let mut changed = changed.into_iter();
        children.retain(|_| changed.next().unwrap_or(false));
        Ok(children)
    }

    /// Renames referenced columns. Returns whether one was renamed.
    fn rename_referenced(&self, key: &mut ForeignKeyDef) -> bool {
        let names = key.parent_columns.iter();
        let names: Vec<Arc<str>> = names.map(|n| self.foreign.new_name(n)).collect();
        let changed = names != key.parent_columns;
        key.parent_columns = names;
        changed
    }

    fn refuse_dropped_columns(&self, children: &[TableDef]) -> Result<(), SqlError> {
        for (column, keys) in &self.foreign.dropped {
            let mut own = self.new.foreign_keys.iter();
            if let Some(key) = own.find(|k| keys.contains(&k.name)) {
                let code = ErrorCode::ER_FK_COLUMN_CANNOT_DROP;
                return Err(error(code, &[column, &key.name]));
            }
            for child in children {
                let keys = child.foreign_keys.iter();
                let mut keys = keys.filter(|k| k.references(&self.old.schema, &self.old.name));
                let names =
                    |k: &&ForeignKeyDef| k.parent_columns.iter().any(|c| eq_name(c, column));
                if let Some(key) = keys.find(names) {
                    let code = ErrorCode::ER_FK_COLUMN_CANNOT_DROP_CHILD;
                    return Err(error(code, &[column, &key.name, &child.name]));
                }
            }
        }
        Ok(())
    }

    /// Error 1553 for the index that the statement drops.
    fn dropped_index(&self) -> SqlError {
        let name = self.foreign.dropped_indexes.first();
        let name = name.map_or("<unknown key name>", |n| &**n);
        error(ErrorCode::ER_DROP_INDEX_FK, &[&name])
    }

    /// The old definition of a column, if its type has changed such that its values may differ.
    fn changed_type(&self, column: usize) -> Option<&ColumnDef> {
        let Some(Source::Old(before)) = self.sources.get(column) else {
            return None;
        };
        let before = &self.old.columns[*before];
        (!is_extension(&before.ty, &self.new.columns[column].ty)).then_some(before)
    }

    fn check_as_child(&self, def: &TableDef, cx: &DdlCx<'_>) -> Result<(), SqlError> {
        for key in &def.foreign_keys {
            foreign::check_set_null(key, &def.columns)?;
            let own = key.references(&def.schema, &def.name);
            let parent = match own {
                true => Some(def),
                false => cx
                    .schema
                    .table(&key.parent_schema, &key.parent_table)
                    .map(|p| &**p),
            };
            if let Some(parent) = parent {
                foreign::check_types(key, &def.columns, parent, cx)?;
            }
            if key.child_index(def).is_none() {
                return Err(self.dropped_index());
            }
            if own && key.parent_index(def).is_none() {
                return Err(self.dropped_index());
            }
            let mut changed = key.columns.iter().filter_map(|c| self.changed_type(*c));
            if let Some(column) = changed.next()
                && cx.foreign_key_checks
            {
                let code = ErrorCode::ER_FK_COLUMN_CANNOT_CHANGE;
                return Err(error(code, &[&column.name, &key.name]));
            }
        }
        Ok(())
    }

    fn check_as_parent(
        &self,
        def: &TableDef,
        children: &[TableDef],
        cx: &DdlCx<'_>,
    ) -> Result<(), SqlError> {
        for child in children {
            let keys = child.foreign_keys.iter();
            for key in keys.filter(|k| k.references(&def.schema, &def.name)) {
                foreign::check_types(key, &child.columns, def, cx)?;
                if key.parent_index(def).is_none() {
                    return Err(self.dropped_index());
                }
                let columns = key.columns_in(def).unwrap_or_default();
                let mut changed = columns.iter().filter_map(|c| self.changed_type(*c));
                if let Some(column) = changed.next()
                    && cx.foreign_key_checks
                {
                    let code = ErrorCode::ER_FK_COLUMN_CANNOT_CHANGE_CHILD;
                    let name = format!("{}.{}", child.schema, child.name);
                    return Err(error(code, &[&column.name, &key.name, &name]));
                }
            }
        }
        Ok(())
    }
}

/// Whether the first parts of an index are these columns without prefix lengths.
fn covers(index: &IndexSpec, columns: &[usize]) -> bool {
    let parts = index.parts.get(..columns.len());
    parts.is_some_and(|parts| {
        let mut pairs = parts.iter().zip(columns);
        pairs.all(|(p, c)| p.column == *c && p.prefix_len.is_none())
    })
}

/// Whether every value has the same meaning in both types: they are equal, or the new one is a
/// longer string.
fn is_extension(before: &ColumnType, after: &ColumnType) -> bool {
    use TypeKind::{Char, Enum, VarBinary, VarChar};
    match (&before.kind, &after.kind) {
        (VarChar(a), VarChar(b)) | (VarBinary(a), VarBinary(b)) | (Char(a), Char(b)) => {
            a <= b && before.collation == after.collation
        }
        (Enum(a), Enum(b)) => b.starts_with(a),
        _ => before == after,
    }
}
