//! CREATE, DROP, TRUNCATE and RENAME TABLE, and changes of a definition that touch no row.

use std::sync::Arc;

use nfold_btree::TreeHandle;
use nfold_catalog::{
    BoundExprs, CheckDef, ColumnDef, ForeignKeyDef, IndexDef, IndexId, IndexKind, IndexPart,
    Relation, TableDef, TableId, TableOptions,
};
use nfold_store::{PageNo, SpaceId, Wait};
use nfold_types::ValueRef;
use nfold_types::collation::CollationId;

use crate::batch::{KeyRange, RowBatch};
use crate::dictionary;
use crate::engine::Engine;
use crate::error::{EngineError, Stop, lift};
use crate::read::{Read, ReadSpec};
use crate::session::EngineSession;
use crate::stats::{block, finish, now};
use crate::table::Table;

/// An index to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexSpec {
    pub name: Arc<str>,
    /// Not `HiddenRowId`: that one is added where there is no primary key.
    pub kind: IndexKind,
    pub parts: Vec<IndexPart>,
    pub comment: Box<str>,
    /// `USING BTREE` was written.
    pub btree: bool,
    /// Made for a foreign key that had no index.
    pub generated: bool,
    /// Queries may use it.
    pub visible: bool,
}

/// A table to be made; checked by the caller (names, types, keys).
#[derive(Debug, Clone, PartialEq)]
pub struct TableSpec {
    pub schema: Arc<str>,
    pub name: Arc<str>,
    pub columns: Vec<ColumnDef>,
    /// The primary key may stand anywhere, or be absent.
    pub indexes: Vec<IndexSpec>,
    pub foreign_keys: Vec<ForeignKeyDef>,
    /// Sorted by name.
    pub checks: Vec<CheckDef>,
    pub collation: CollationId,
    pub options: TableOptions,
    /// First AUTO_INCREMENT value; 0 or 1: from the start.
    pub auto_increment: u64,
}

/// Which indexes come first in a definition, and are looked at first for duplicates: unique ones
/// without NULLs, other unique ones, others, full-text indexes. Of unique ones of a sort, those
/// with column prefixes come last.
pub(super) fn rank(kind: IndexKind, columns: &[ColumnDef], parts: &[IndexPart]) -> u8 {
    let by_prefix = |whole: u8| whole + u8::from(parts.iter().any(|p| p.prefix_len.is_some()));
    match kind {
        IndexKind::Primary | IndexKind::HiddenRowId => 0,
        IndexKind::Unique if parts.iter().all(|p| !columns[p.column].nullable) => by_prefix(1),
        IndexKind::Unique => by_prefix(3),
        IndexKind::Secondary => 5,
        IndexKind::Fulltext(_) => 6,
    }
}

impl TableSpec {
    /// Indexes in the order of a definition: the clustered one first, then by [`rank`] (as SHOW
    /// CREATE TABLE lists them).
    fn ordered_indexes(&self) -> Vec<IndexSpec> {
        let mut indexes = self.indexes.clone();
        indexes.sort_by_key(|i| rank(i.kind, &self.columns, &i.parts));
        if indexes.first().is_none_or(|i| i.kind != IndexKind::Primary) {
            let hidden = IndexSpec {
                name: "".into(),
                kind: IndexKind::HiddenRowId,
                parts: Vec::new(),
                btree: false,
                generated: false,
                visible: true,
                comment: Box::default(),
            };
            indexes.insert(0, hidden);
        }
        indexes
    }
}

impl Engine {
    /// CREATE TABLE. The name is free and the database exists (L1).
    pub fn create_table(&self, spec: TableSpec) -> Result<Arc<TableDef>, EngineError> {
        let _one = self.shared().ddl.lock();
        let def = Arc::new(self.make_table(&spec)?);
        let done = self
            .begin_auto_increment(&def, spec.auto_increment, &mut Wait::block)
            .and_then(|()| self.change_dictionary(|s| self.put_table(s, &def)));
        self.unless_failed(done, def.space)?;
        self.open_new_table(&def);
        self.catalog()
            .publish_schema(|schema| schema.put_table(def.clone()));
        Ok(def)
    }

    /// An empty table that no schema names: rows can be written to it, and a crash removes it.
    /// [`Engine::name_table`] or [`Engine::abandon_table`] is to follow, after the end of every
    /// transaction that has written to it.
    pub fn create_unnamed_table(&self, spec: TableSpec) -> Result<Arc<TableDef>, EngineError> {
        let def = self.make_unnamed(&spec)?;
        self.open_new_table(&def);
        Ok(def)
    }

    /// An empty table that no schema will name, for one session: also a transaction whose snapshot
    /// is older can use it. It ends with the process, so nothing waits for
    /// the disk, and its commits are not durable. [`Engine::abandon_table`] is to follow. `wait`
    /// waits for pages in other hands.
    pub fn create_private_table(
        &self,
        spec: &TableSpec,
        wait: &mut dyn FnMut(Wait),
    ) -> Result<Arc<TableDef>, EngineError> {
        let def = Arc::new(self.make_private(spec, wait)?);
        let begun = self.begin_auto_increment(&def, spec.auto_increment, wait);
        self.unless_failed(begun, def.space)?;
        self.open_private_table(&def);
        Ok(def)
    }

    /// Creates the space and the empty trees of a temporary table.
    pub(super) fn make_private(
        &self,
        spec: &TableSpec,
        wait: &mut dyn FnMut(Wait),
    ) -> Result<TableDef, EngineError> {
        let store = &self.shared().store;
        self.make_table_in(spec, |name| store.create_private_space(name), wait)
    }

    fn make_unnamed(&self, spec: &TableSpec) -> Result<Arc<TableDef>, EngineError> {
        let _one = self.shared().ddl.lock();
        let def = Arc::new(self.make_table(spec)?);
        let begun = self.begin_auto_increment(&def, spec.auto_increment, &mut Wait::block);
        self.unless_failed(begun, def.space)?;
        Ok(def)
    }

    /// Renames a table to a name, which is free, in a database that exists (L1).
    ///
    /// # Errors
    /// The table is as it was, without a name.
    pub fn name_table(&self, def: &Arc<TableDef>) -> Result<(), EngineError> {
        let _one = self.shared().ddl.lock();
        self.change_dictionary(|s| self.put_table(s, def))?;
        self.open_filled_table(def);
        self.catalog()
            .publish_schema(|schema| schema.put_table(def.clone()));
        Ok(())
    }

    /// Drops a table that no schema names.
    pub fn abandon_table(&self, def: &Arc<TableDef>) {
        self.forget_tables(std::slice::from_ref(def));
        self.unlink_tables(std::slice::from_ref(def));
    }

    /// Makes the space and the empty trees of a table; nothing names them yet.
    pub(super) fn make_table(&self, spec: &TableSpec) -> Result<TableDef, EngineError> {
        let create = |name: &str| self.shared().store.create_space(name);
        self.make_table_in(spec, create, &mut Wait::block)
    }

    /// As [`make_table`](Self::make_table), in a space that `create` makes under a name.
    fn make_table_in(
        &self,
        spec: &TableSpec,
        create: impl Fn(&str) -> Result<SpaceId, nfold_store::Stop>,
        wait: &mut dyn FnMut(Wait),
    ) -> Result<TableDef, EngineError> {
        let indexes = spec.ordered_indexes();
        let shared = self.shared();
        let (ids, of) = (1 + indexes.len() as u64, shared.dictionary.def().space);
        let first = finish(wait, || dictionary::take_ids(&shared.store, of, ids))?;
        let name = format!("t{first}");
        let space = finish(wait, || create(&name))?;
        let mut defs = Vec::with_capacity(indexes.len());
        for (n, index) in indexes.into_iter().enumerate() {
            let id = first + 1 + n as u64;
            let root = self
                .make_tree_waiting(space, id, wait)
                .inspect_err(|_| self.abandon_space(space))?;
            let IndexSpec {
                name,
                kind,
                parts,
                comment,
                btree,
                generated,
                visible,
            } = index;
            defs.push(IndexDef {
                id: IndexId(id),
                name,
                kind,
                parts,
                root,
                comment,
                btree,
                generated,
                visible,
            });
        }
        Ok(TableDef {
            id: TableId(first),
            schema: spec.schema.clone(),
            name: spec.name.clone(),
            columns: spec.columns.clone(),
            indexes: defs,
            foreign_keys: spec.foreign_keys.clone(),
            checks: spec.checks.clone(),
            bound: BoundExprs::default(),
            collation: spec.collation,
            options: spec.options.clone(),
            space,
            row_version: 0,
            create_time: now(),
            relation: Relation::Table,
        })
    }

    /// Makes an empty tree; its root page.
    pub(super) fn make_tree(&self, space: SpaceId, index: u64) -> Result<PageNo, EngineError> {
        self.make_tree_waiting(space, index, &mut Wait::block)
    }

    fn make_tree_waiting(
        &self,
        space: SpaceId,
        index: u64,
        wait: &mut dyn FnMut(Wait),
    ) -> Result<PageNo, EngineError> {
        let store = &self.shared().store;
        finish(wait, || -> Result<PageNo, Stop> {
            let mut mtr = store.mtr();
            mtr.reserve(TreeHandle::CREATE_LOG_BYTES, space, 1)
                .map_err(lift)?;
            let root = TreeHandle::create(&mut mtr, space, index);
            mtr.commit();
            Ok(root)
        })
    }

    /// Passes a result on; if it is an error, the space that was made for it goes.
    pub(super) fn unless_failed<T>(
        &self,
        done: Result<T, EngineError>,
        space: SpaceId,
    ) -> Result<T, EngineError> {
        done.inspect_err(|_| self.abandon_space(space))
    }

    /// Drops a space that nothing names. If that fails, the next start removes it as an orphan.
    pub(crate) fn abandon_space(&self, space: SpaceId) {
        if let Err(error) = self.shared().store.drop_space(space) {
            tracing::warn!(space, %error, "an unused tablespace could not be removed; the next start does it");
        }
    }

    /// Sets the first AUTO_INCREMENT value of a table that is being created. It becomes durable
    /// with the table's definition.
    pub(super) fn begin_auto_increment(
        &self,
        new: &TableDef,
        first: u64,
        wait: &mut dyn FnMut(Wait),
    ) -> Result<(), EngineError> {
        if first > 1 && new.auto_increment_column().is_some() {
            let store = &self.shared().store;
            let table = Table::new(Arc::new(new.clone()), store.clone());
            finish(wait, || table.auto_increment_begin(first))?;
            table.save_counters(store)?;
        }
        Ok(())
    }

    /// ALTER TABLE ... AUTO_INCREMENT = `first`: sets the next value, which may be lower than
    /// before, but is above the values of all rows. The caller holds the exclusive metadata lock.
    pub fn reset_auto_increment(&self, table: TableId, first: u64) -> Result<(), EngineError> {
        let Some(table) = self.table(table) else {
            return Ok(());
        };
        let def = table.def();
        let Some(column) = def.auto_increment_column() else {
            return Ok(());
        };
        let leads = |i: &IndexDef| i.parts.first().is_some_and(|p| p.column == column);
        match def.indexes.iter().position(leads) {
            Some(index) => {
                let used = self.greatest_value(&table, column, index)?;
                block(|| table.auto_increment_reset(first, used))
            }
            // Without an index the greatest value is not known, so the counter only rises.
            None => block(|| table.auto_increment_begin(first)),
        }
    }

    /// The greatest value of an integer column, which leads `index`; 0 if no value is positive.
    fn greatest_value(
        &self,
        table: &Arc<Table>,
        column: usize,
        index: usize,
    ) -> Result<u64, EngineError> {
        let mut session = EngineSession::internal(self.shared())?;
        session.begin_internal();
        let spec = ReadSpec {
            index,
            columns: vec![column],
            first_rows: 1,
            ..ReadSpec::default()
        };
        let descending = table.def().indexes[index].parts[0].desc;
        let mut read = Read::range(table.clone(), spec, &KeyRange::all(), !descending);
        let mut batch = RowBatch::new();
        while batch.is_empty() && block(|| read.next(&mut session, &mut batch))? {}
        let greatest = match batch.iter().next() {
            Some(row) => table.layout().get(row, column),
            None => Ok(ValueRef::Int(0)),
        };
        let greatest = match greatest.map_err(|e| EngineError::Dictionary(e.to_string()))? {
            ValueRef::Int(n) => u64::try_from(n).unwrap_or(0),
            ValueRef::UInt(n) => n,
            _ => 0,
        };
        block(|| session.commit())?;
        Ok(greatest)
    }

    /// Raises the next value of a column that ALTER TABLE has made AUTO_INCREMENT.
    pub fn start_auto_increment(&self, table: TableId, first: u64) -> Result<(), EngineError> {
        match (first, self.table(table)) {
            (0 | 1, _) | (_, None) => Ok(()),
            (_, Some(table)) => block(|| table.auto_increment_begin(first)),
        }
    }

    /// DROP TABLE: all of them or none.
    pub fn drop_tables(&self, tables: &[Arc<TableDef>]) -> Result<(), EngineError> {
        let one = self.shared().ddl.lock();
        let dictionary = &self.shared().dictionary;
        self.change_dictionary(|s| {
            let mut tables = tables.iter();
            tables.try_for_each(|t| dictionary::remove_table(s, dictionary, t.id))
        })?;
        self.catalog()
            .publish_schema(|schema| tables.iter().for_each(|t| schema.remove_table(t.id)));
        self.forget_tables(tables);
        drop(one); // L2
        self.unlink_tables(tables);
        Ok(())
    }

    /// TRUNCATE TABLE: the same definition over a new, empty space. The table gets a new id, as if
    /// it were dropped and made again: undo records of the old rows must not find the new table.
    pub fn truncate_table(&self, table: &Arc<TableDef>) -> Result<(), EngineError> {
        let one = self.shared().ddl.lock();
        let spec = spec_of(table);
        let mut def = self.make_table(&spec)?;
        def.create_time = table.create_time;
        self.replace_table(table, def, Vec::new())?;
        drop(one); // L2
        self.unlink_tables(std::slice::from_ref(table));
        Ok(())
    }

    /// Puts `new` in the place of `old`, and the definitions `others` in the place of those with
    /// the same ids, whose file the caller [unlinks](Self::unlink_tables). The caller's metadata
    /// lock is one on `new` from now on.
    pub(super) fn replace_table(
        &self,
        old: &Arc<TableDef>,
        new: TableDef,
        others: Vec<TableDef>,
    ) -> Result<(), EngineError> {
        let new = Arc::new(new);
        let others: Vec<Arc<TableDef>> = others.into_iter().map(Arc::new).collect();
        let dictionary = &self.shared().dictionary;
        let done = self.change_dictionary(|s| {
            dictionary::remove_table(s, dictionary, old.id)?;
            self.put_table(s, &new)?;
            others.iter().try_for_each(|t| self.put_table(s, t))
        });
        self.unless_failed(done, new.space)?;
        self.open_new_table(&new);
        others.iter().for_each(|t| self.redefine_table(t));
        self.catalog().mdl().replace(old.id, new.id);
        self.catalog().publish_schema(|schema| {
            schema.remove_table(old.id);
            schema.put_table(new);
            others.into_iter().for_each(|t| schema.put_table(t));
        });
        self.forget_tables(std::slice::from_ref(old));
        Ok(())
    }

    /// RENAME TABLE: (table, new database, new name), all of them or none, in order.
    pub fn rename_tables(
        &self,
        renames: &[(Arc<TableDef>, Arc<str>, Arc<str>)],
    ) -> Result<(), EngineError> {
        let _one = self.shared().ddl.lock();
        let renamed = renames.iter().map(|(table, schema, name)| TableDef {
            schema: schema.clone(),
            name: name.clone(),
            ..TableDef::clone(table)
        });
        self.redefine(renamed.collect())
    }

    /// A change of the definition that no stored byte depends on: defaults, comments, names of
    /// columns and indexes.
    pub fn alter_definition(&self, new: TableDef) -> Result<(), EngineError> {
        self.alter_definitions(vec![new])
    }

    /// As [`Engine::alter_definition`], of several tables, whose names may change, too: all of
    /// them or none.
    pub fn alter_definitions(&self, new: Vec<TableDef>) -> Result<(), EngineError> {
        let _one = self.shared().ddl.lock();
        self.redefine(new)
    }

    /// Puts new definitions in the place of those with the same ids.
    fn redefine(&self, new: Vec<TableDef>) -> Result<(), EngineError> {
        let new: Vec<Arc<TableDef>> = new.into_iter().map(Arc::new).collect();
        self.change_dictionary(|s| new.iter().try_for_each(|t| self.put_table(s, t)))?;
        let stored = new.iter().filter(|t| !t.is_view());
        stored.for_each(|t| self.redefine_table(t));
        self.catalog().publish_schema(|schema| {
            // All old names first: two tables may change names.
            new.iter().for_each(|t| schema.remove_table(t.id));
            new.iter().for_each(|t| schema.put_table(t.clone()));
        });
        Ok(())
    }
}

/// What makes an empty copy of a table.
pub(super) fn spec_of(table: &TableDef) -> TableSpec {
    let indexes = table
        .indexes
        .iter()
        .filter(|i| i.kind != IndexKind::HiddenRowId);
    TableSpec {
        schema: table.schema.clone(),
        name: table.name.clone(),
        columns: table.columns.clone(),
        indexes: indexes
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
        foreign_keys: table.foreign_keys.clone(),
        checks: table.checks.clone(),
        collation: table.collation,
        options: table.options.clone(),
        auto_increment: 0,
    }
}
