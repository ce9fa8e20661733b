//! ALTER TABLE by copy, and OPTIMIZE TABLE: reads and converts every row, and writes it into a new
//! tablespace, which then replaces the old one.
//!
//! # Invariants
//! B1. Copied rows carry transaction 0. The copy holds committed rows, so every snapshot may see
//!     them. An id of its own would hide them from open snapshots, because a transaction without
//!     undo records never counts as committed.
//! B2. The copy has a new table id, so pending undo records of the old rows do not apply to it.

use std::convert::Infallible;
use std::sync::Arc;

use nfold_catalog::TableDef;
use nfold_store::Wait;

use super::build::{Filler, OwnBytes};
use super::index::fill_one;
use super::stop;
use super::table::{TableSpec, spec_of};
use crate::batch::{KeyRange, RowBatch};
use crate::engine::Engine;
use crate::error::{EngineError, Stop};
use crate::overflow::Mover;
use crate::read::{Read, ReadSpec};
use crate::record::RowHeader;
use crate::session::EngineSession;
use crate::stats::{block, block_stoppable};
use crate::table::Table;

/// Why a copy stopped: the engine's own reason, or the converter's.
#[derive(Debug)]
pub enum CopyError<E> {
    Engine(EngineError),
    Convert(E),
}

impl<E> From<EngineError> for CopyError<E> {
    fn from(error: EngineError) -> Self {
        CopyError::Engine(error)
    }
}

impl Engine {
    /// Copies `old` into a table created from `spec`, which replaces it under a new id in a new
    /// tablespace. `convert` gets each row image of the old table and appends the new one, in the
    /// layout that [`Engine::layout_of`] returns for the new table. The caller holds the exclusive
    /// metadata lock. Returns the number of rows.
    ///
    /// # Errors
    /// [`EngineError::DuplicateInBuild`] for a duplicate in a unique index,
    /// [`EngineError::Stopped`], and errors of `convert`. After an error nothing has changed.
    pub fn rebuild_table<E>(
        &self,
        old: &Arc<TableDef>,
        spec: &TableSpec,
        convert: impl FnMut(&[u8], &mut Vec<u8>) -> Result<(), E>,
    ) -> Result<u64, CopyError<E>> {
        self.rebuild_table_beside(old, spec, Vec::new(), (convert, || 0), |_| Ok(()))
    }

    /// As [`Engine::rebuild_table`]. After the copy, `counter` returns the least AUTO_INCREMENT
    /// value that is above those of the rows, or 0. `verify` may refuse the filled table before it
    /// replaces the old one. The definitions `others` replace those with the same ids in the same
    /// transaction.
    pub fn rebuild_table_beside<E>(
        &self,
        old: &Arc<TableDef>,
        spec: &TableSpec,
        others: Vec<TableDef>,
        (convert, counter): (
            impl FnMut(&[u8], &mut Vec<u8>) -> Result<(), E>,
            impl FnOnce() -> u64,
        ),
        verify: impl FnOnce(&Arc<Table>) -> Result<(), CopyError<E>>,
    ) -> Result<u64, CopyError<E>> {
        let mut def = {
            let _one = self.shared().ddl.lock();
            self.make_table(spec)?
        };
        def.create_time = old.create_time;
        let copied = self.copy_rows(old, &def, convert).and_then(|rows| {
            self.carry_auto_increment(old, &def, spec.auto_increment.max(counter()))?;
            let filled = Table::new(Arc::new(def.clone()), self.shared().store.clone());
            verify(&Arc::new(filled))?;
            Ok(rows)
        });
        let rows = copied.inspect_err(|_| self.abandon_space(def.space))?;
        let one = self.shared().ddl.lock();
        self.replace_table(old, def, others)?;
        drop(one); // L2
        self.unlink_tables(std::slice::from_ref(old));
        Ok(rows)
    }

    /// Copies `old`, a temporary table of one session, into another one created from `spec`, as
    /// [`Engine::rebuild_table_beside`]. The caller drops `old`. Returns the copy, and the number
    /// of rows.
    pub fn copy_private_table<E>(
        &self,
        old: &Arc<TableDef>,
        spec: &TableSpec,
        (convert, counter): (
            impl FnMut(&[u8], &mut Vec<u8>) -> Result<(), E>,
            impl FnOnce() -> u64,
        ),
    ) -> Result<(Arc<TableDef>, u64), CopyError<E>> {
        let mut def = self.make_private(spec, &mut Wait::block)?;
        def.create_time = old.create_time;
        let copied = self.copy_rows(old, &def, convert).and_then(|rows| {
            self.carry_auto_increment(old, &def, spec.auto_increment.max(counter()))?;
            Ok(rows)
        });
        let rows = copied.inspect_err(|_| self.abandon_space(def.space))?;
        let def = Arc::new(def);
        self.open_private_table(&def);
        Ok((def, rows))
    }

    /// OPTIMIZE TABLE: the same rows in a new, dense space. The caller holds the exclusive metadata
    /// lock. Returns the number of rows.
    pub fn optimize_table(&self, table: &Arc<TableDef>) -> Result<u64, EngineError> {
        let copied = self.rebuild_table(table, &spec_of(table), |row, out| {
            out.extend_from_slice(row);
            Ok::<(), Infallible>(())
        });
        let rows = copied.map_err(|e| match e {
            CopyError::Engine(e) => e,
            CopyError::Convert(never) => match never {},
        })?;
        let schema = self.catalog().snapshot();
        let new = schema.table(&table.schema, &table.name);
        if let Some(new) = new.and_then(|t| self.table(t.id)) {
            match self.analyze_table(&new) {
                // The rows are where they should be; the background makes the statistics.
                Err(EngineError::Stopped) => {}
                other => other?,
            }
        }
        Ok(rows)
    }

    fn carry_auto_increment(
        &self,
        old: &TableDef,
        new: &TableDef,
        wanted: u64,
    ) -> Result<(), EngineError> {
        let next = match self.table(old.id) {
            Some(table) if old.auto_increment_column().is_some() => {
                block(|| table.auto_increment_next())?
            }
            _ => 1,
        };
        self.begin_auto_increment(new, next.max(wanted), &mut Wait::block)
    }

    fn copy_rows<E>(
        &self,
        old: &Arc<TableDef>,
        new: &TableDef,
        mut convert: impl FnMut(&[u8], &mut Vec<u8>) -> Result<(), E>,
    ) -> Result<u64, CopyError<E>> {
        let shared = self.shared();
        let store = &*shared.store;
        let source = self.table(old.id).ok_or(EngineError::TableChanged)?;
        let target = Table::new(Arc::new(new.clone()), shared.store.clone());
        let mut session = EngineSession::internal(shared)?;
        session.begin_internal();
        let trx = block(|| session.write_id())?;
        let header = RowHeader {
            trx: 0, // B1
            undo: 0,
            deleted: false,
        }
        .to_bytes();
        let clustered = &target.index(0).tree;
        let whole: Option<OwnBytes<'_>> = Some(Box::new(|key: &[u8]| Some(key.len())));
        let mut filler = Filler::new(store, shared.build_memory, new.space, clustered, whole);
        let spec = ReadSpec {
            columns: (0..old.columns.len()).collect(),
            ..ReadSpec::default()
        };
        let mut read = Read::range(source, spec, &KeyRange::all(), false);
        let (mut batch, mut image, mut moved, mut key, mut value) = (
            RowBatch::new(),
            Vec::new(),
            Vec::new(),
            Vec::new(),
            Vec::new(),
        );
        let mut mover = Mover::unlisted();
        let mut rows = 0;
        let failed = |e: super::build::Filled| e.into_error("PRIMARY");
        loop {
            stop::check()?;
            batch.clear();
            let more = block_stoppable(|| read.next(&mut session, &mut batch))?;
            for row in batch.iter() {
                image.clear();
                convert(row, &mut image).map_err(CopyError::Convert)?;
                key.clear();
                if target.has_hidden_row_id() {
                    let id = block(|| target.next_row_id())?;
                    key.extend_from_slice(&id.to_be_bytes());
                } else {
                    target.clustered_key(&image, &mut key)?;
                }
                mover.reset();
                let out = block(|| -> Result<bool, Stop> {
                    mover.run(
                        store,
                        &target,
                        trx,
                        (key.len(), &image[..]),
                        &[],
                        &mut moved,
                    )
                })?;
                value.clear();
                value.extend_from_slice(&header);
                value.extend_from_slice(if out { &moved } else { &image });
                filler.push(&key, &value, 0).map_err(failed)?;
                rows += 1;
            }
            if !more {
                break;
            }
        }
        filler.finish().map_err(failed)?;
        for n in 1..target.indexes().len() {
            fill_one(shared, &target, n).map_err(|e| e.into_error(&new.indexes[n].name))?;
        }
        if target.has_hidden_row_id() {
            target.save_counters(store)?;
        }
        block(|| session.commit())?;
        Ok(rows)
    }
}
