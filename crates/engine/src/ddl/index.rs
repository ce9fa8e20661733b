//! CREATE INDEX and DROP INDEX of secondary indexes.

use std::sync::Arc;

use nfold_btree::{EntryBatch, KeyRange, MAX_KEY, TreeHandle};
use nfold_catalog::{IndexDef, IndexId, TableDef};
use nfold_store::{PageId, PageNo, PageType, StoreError, header};

use super::build::{Filled, Filler, OwnBytes};
use super::stop;
use super::table::IndexSpec;
use crate::dictionary::{self, ObjectKind};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::record::{self, CLUSTERED_HEADER, RowHeader};
use crate::shared::Shared;
use crate::stats::{block, block_stoppable};
use crate::table::Table;

impl Engine {
    /// Adds secondary indexes, all or none, and drops others, in one change. The caller holds the
    /// exclusive metadata lock, so the table's rows stand still; what transactions without a
    /// session left there is undone first.
    ///
    /// # Errors
    /// [`EngineError::DuplicateInBuild`] when a unique index cannot be;
    /// [`EngineError::TableDamaged`]; [`EngineError::Stopped`].
    pub fn change_indexes(
        &self,
        table: &Arc<TableDef>,
        add: &[IndexSpec],
        drop: &[IndexId],
    ) -> Result<(), EngineError> {
        let shared = self.shared();
        if !add.is_empty()
            && let Some(table) = self.table(table.id)
        {
            // What could not be undone in a damaged table must not get into a new index.
            table.check_sound()?;
        }
        self.finish_rollbacks()?;
        let one = shared.ddl.lock();
        let (ids, of) = (add.len().max(1) as u64, shared.dictionary.def().space);
        let first = block(|| dictionary::take_ids(&shared.store, of, ids))?;
        let mut new = TableDef::clone(table);
        new.indexes.retain(|i| !drop.contains(&i.id));
        let mut made = Vec::new();
        // A crash from here on finds the new trees by these rows (dictionary::D1): by their ids
        // first, then by their roots.
        let listed = |made: &[IndexDef]| {
            self.change_leftovers(|s| {
                made.iter()
                    .try_for_each(|i| self.put_leftover(s, table.space, i))
            })
        };
        for (n, spec) in add.iter().enumerate() {
            let id = IndexId(first + n as u64);
            let IndexSpec {
                name,
                kind,
                parts,
                comment,
                btree,
                generated,
                visible,
            } = spec.clone();
            made.push(IndexDef {
                id,
                name,
                kind,
                parts,
                root: 0,
                comment,
                btree,
                generated,
                visible,
            });
        }
        listed(&made)?;
        let trees = made.iter_mut().try_for_each(|i| {
            self.make_tree(table.space, i.id.0)
                .map(|root| i.root = root)
        });
        let announced = trees.and_then(|()| listed(&made));
        std::mem::drop(one); // L2
        if let Err(error) = announced {
            self.remove_leftovers(table.space, &made)?;
            return Err(error);
        }
        new.indexes.extend(made.iter().cloned());
        let columns = &new.columns;
        new.indexes
            .sort_by_key(|i| super::table::rank(i.kind, columns, &i.parts));
        if let Err(error) = self.fill_indexes(&new, &made) {
            self.remove_leftovers(table.space, &made)?;
            return Err(error);
        }
        let gone: Vec<IndexDef> = table
            .indexes
            .iter()
            .filter(|i| drop.contains(&i.id))
            .cloned()
            .collect();
        let new = Arc::new(new);
        let one = shared.ddl.lock();
        let dictionary = &shared.dictionary;
        self.change_dictionary(|s| {
            self.put_table(s, &new)?;
            for index in &made {
                dictionary::remove(
                    s,
                    dictionary,
                    ObjectKind::Leftover,
                    &index.id.0.to_be_bytes(),
                )?;
            }
            gone.iter()
                .try_for_each(|i| self.put_leftover(s, table.space, i))
        })?;
        let old = self.table(table.id);
        self.redefine_table(&new);
        self.catalog()
            .publish_schema(|schema| schema.put_table(new.clone()));
        std::mem::drop(one); // L2
        // By the handles that purge may still be at work with, which have the trees' structure
        // mutexes.
        let trees = old.iter().flat_map(|old| old.indexes());
        let trees = trees.filter(|i| gone.iter().any(|g| g.id.0 == i.tree.tree().index_id));
        trees.into_iter().try_for_each(|i| self.free_tree(&i.tree))
    }

    /// Until nothing of transactions without a session (a crash or a lost connection left them) is
    /// to be undone: they hold no metadata locks, and a new index would have neither the entries
    /// that undoing takes away nor those that it brings back.
    fn finish_rollbacks(&self) -> Result<(), EngineError> {
        let trx = &self.shared().trx;
        let applier = crate::undo::Applier(self.shared().clone());
        while trx.undoing() > 0 {
            stop::check()?;
            if !block(|| trx.rollback_step(&applier, 64))? && trx.undoing() > 0 {
                // The background has the last of them.
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }
        Ok(())
    }

    fn put_leftover(
        &self,
        session: &mut crate::session::EngineSession,
        space: u32,
        index: &IndexDef,
    ) -> Result<(), EngineError> {
        let data = [space.to_le_bytes(), index.root.to_le_bytes()].concat();
        dictionary::put(
            session,
            &self.shared().dictionary,
            ObjectKind::Leftover,
            &index.id.0.to_be_bytes(),
            &data,
        )
    }

    /// Frees unused trees, and deletes their leftover rows in the dictionary.
    fn remove_leftovers(&self, space: u32, indexes: &[IndexDef]) -> Result<(), EngineError> {
        indexes
            .iter()
            .try_for_each(|i| self.remove_leftover(i.id.0, space, i.root))
    }

    /// Frees a tree of which there is no handle, and its leftover row.
    pub(crate) fn remove_leftover(
        &self,
        id: u64,
        space: u32,
        root: u32,
    ) -> Result<(), EngineError> {
        let root = match root {
            0 => self.find_root(id, space)?,
            root => Some(root),
        };
        match root {
            Some(root) => self.free_tree(&TreeHandle::open(nfold_btree::Tree {
                space,
                root,
                index_id: id,
            })),
            None => self.forget_leftover(id),
        }
    }

    /// Frees a tree, and its leftover row.
    fn free_tree(&self, tree: &TreeHandle) -> Result<(), EngineError> {
        // A tree whose root is gone was freed before a crash.
        let store = &self.shared().store;
        while !matches!(block(|| tree.free_step(store)), Ok(true) | Err(_)) {}
        self.forget_leftover(tree.tree().index_id)
    }

    fn forget_leftover(&self, id: u64) -> Result<(), EngineError> {
        let _one = self.shared().ddl.lock();
        let dictionary = &self.shared().dictionary;
        self.change_leftovers(|s| {
            dictionary::remove(s, dictionary, ObjectKind::Leftover, &id.to_be_bytes()).map(drop)
        })
    }

    /// The root of a tree that a crash kept from being noted anywhere: its one page.
    fn find_root(&self, id: u64, space: u32) -> Result<Option<PageNo>, EngineError> {
        let store = &*self.shared().store;
        for page in 1..store.space_pages(space).unwrap_or(0) {
            let found = match block(|| store.read(PageId { space, page })) {
                Ok(read) => read,
                // It is not this one: a new tree's page was written just now.
                Err(EngineError::Store(StoreError::Corrupt { .. })) => continue,
                Err(error) => return Err(error),
            };
            let tree_page = found.page_type() == PageType::BTREE_LEAF;
            if tree_page && found.u64(header::INDEX_ID) == id {
                return Ok(Some(page));
            }
        }
        Ok(None)
    }

    /// Fills the trees of `made` from the clustered index of `def`, which names them.
    fn fill_indexes(&self, def: &TableDef, made: &[IndexDef]) -> Result<(), EngineError> {
        let shared = self.shared();
        let table = Table::new(Arc::new(def.clone()), shared.store.clone());
        for index in made {
            let Some(n) = def.indexes.iter().position(|i| i.id == index.id) else {
                continue;
            };
            fill_one(shared, &table, n).map_err(|e| e.into_error(&index.name))?;
        }
        Ok(())
    }
}

/// Fills index `n` of `table` from its rows.
pub(super) fn fill_one(shared: &Shared, table: &Table, n: usize) -> Result<(), Filled> {
    let store = &*shared.store;
    let index = table.index(n);
    let parts = index.key.parts().len();
    let own = move |key: &[u8]| {
        let null = index.key.has_null(key, parts).unwrap_or(true);
        if null {
            None
        } else {
            index.key.prefix_bytes(key, parts).ok()
        }
    };
    let unique: Option<OwnBytes<'_>> = index.unique.then(|| Box::new(own) as _);
    let mut filler = Filler::new(
        store,
        shared.build_memory,
        table.def().space,
        &index.tree,
        unique,
    );
    let clustered = &table.index(0).tree;
    let mut cursor = clustered.cursor(KeyRange::all(), false);
    let mut batch = EntryBatch::default();
    let (mut key, mut value) = (Vec::new(), Vec::new());
    loop {
        stop::check()?;
        batch.clear();
        let more = block_stoppable(|| cursor.next_batch(clustered, store, 1024, &mut batch))?;
        for entry in batch.entries() {
            let (primary, row) = (batch.key(entry), batch.value(entry));
            let Some((header, _)) = RowHeader::split(row) else {
                return Err(table.corrupt_row().into());
            };
            if header.deleted {
                continue;
            }
            let image = &row[CLUSTERED_HEADER..];
            let mut push = |key: &[u8], value: &mut Vec<u8>| {
                record::set_row_hint(value, entry.place);
                filler.push(key, value, header.trx)
            };
            if index.is_multi_valued() {
                fill_elements(table, n, (primary, image, header.trx), &mut push)?;
                continue;
            }
            block(|| {
                key.clear();
                value.clear();
                table.secondary_key(n, image, primary, &mut key)?;
                if key.len() > MAX_KEY {
                    return Err(EngineError::KeyTooLong { limit: MAX_KEY }.into());
                }
                table.secondary_value(n, image, (key.len(), primary.len()), header.trx, &mut value)
            })?;
            push(&key, &mut value)?;
        }
        if !more {
            return filler.finish();
        }
    }
}

/// Passes the entries of one row in multi-valued index `n` to `push`.
fn fill_elements(
    table: &Table,
    n: usize,
    (primary, image, trx): (&[u8], &[u8], u64),
    push: &mut dyn FnMut(&[u8], &mut Vec<u8>) -> Result<(), Filled>,
) -> Result<(), Filled> {
    let mut value = Vec::new();
    for key in block(|| table.entry_keys(n, image, primary))? {
        if key.len() > MAX_KEY {
            return Err(EngineError::KeyTooLong { limit: MAX_KEY }.into());
        }
        let lengths = (key.len(), primary.len());
        block(|| {
            value.clear();
            table.secondary_value(n, image, lengths, trx, &mut value)
        })?;
        push(&key, &mut value)?;
    }
    Ok(())
}
