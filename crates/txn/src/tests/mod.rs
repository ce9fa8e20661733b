//! The whole layer over a real store, real trees and a simulated disk, with a table of byte rows.

mod damage;
mod files;
mod model;
mod recovery;
mod scenes;
mod stress;

use crate::locks::{LockKey, LockKind, LockMode, LockRequest};
use crate::undo::{OldVersion, RowChange, UNDO_OP_FIRST, UndoKind, UndoPtr, UndoRecord, UndoRedo};
use crate::*;
use nfold_btree::{BtreeRedo, KeyRange, LeafPos, Room, Tree, TreeHandle};
use nfold_store::{
    Mtr, PageMut, RedoHandler, SimDisk, Stop, Store, StoreError, StoreOptions, TrxId,
};
use std::sync::Arc;

const TABLE: u64 = 9;
const DELETED: u16 = 1;
/// Bytes before the image in a value: transaction id and flags, undo pointer.
const ROW_HEAD: usize = 16;

struct Redo;

impl RedoHandler for Redo {
    fn apply(&self, op: u8, payload: &[u8], page: &PageMut<'_>) -> Result<(), StoreError> {
        if op >= UNDO_OP_FIRST {
            UndoRedo.apply(op, payload, page)
        } else {
            BtreeRedo.apply(op, payload, page)
        }
    }
}

#[derive(Clone, PartialEq, Debug)]
struct Row {
    trx: TrxId,
    flags: u16,
    undo: UndoPtr,
    image: Vec<u8>,
}

impl Row {
    fn decode(value: &[u8]) -> Row {
        let word = |at: usize| u64::from_le_bytes(value[at..at + 8].try_into().unwrap());
        Row {
            trx: word(0) & ((1 << 48) - 1),
            flags: (word(0) >> 48) as u16,
            undo: UndoPtr(word(8)),
            image: value[ROW_HEAD..].to_vec(),
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = (self.trx | (self.flags as u64) << 48)
            .to_le_bytes()
            .to_vec();
        out.extend_from_slice(&self.undo.0.to_le_bytes());
        out.extend_from_slice(&self.image);
        out
    }

    fn version(&self) -> OldVersion {
        OldVersion {
            trx_id: self.trx,
            undo: self.undo,
            flags: self.flags,
        }
    }

    fn visible(self) -> Option<Vec<u8>> {
        (self.flags & DELETED == 0).then_some(self.image)
    }
}

/// An engine with one table.
struct World {
    disk: SimDisk,
    store: Arc<Store>,
    system: Arc<TrxSystem>,
    recovery: TrxRecovery,
    tree: TreeHandle,
}

fn finish<T>(mut call: impl FnMut() -> Result<T, Stop>) -> Result<T, StoreError> {
    loop {
        match call() {
            Ok(value) => return Ok(value),
            Err(Stop::Wait(wait)) => wait.block(),
            Err(Stop::Error(error)) => return Err(error),
        }
    }
}

/// What is in the log survives a kill.
fn flush(store: &Store) {
    let end = store.horizon().load();
    while let Some(wait) = store.wait_durable(end) {
        wait.block();
    }
}

impl World {
    fn new(io_threads: usize) -> World {
        let disk = SimDisk::new();
        Self::open(disk, io_threads, None)
    }

    fn open(disk: SimDisk, io_threads: usize, tree: Option<Tree>) -> World {
        Self::try_open(disk, io_threads, tree).unwrap()
    }

    fn try_open(disk: SimDisk, io_threads: usize, tree: Option<Tree>) -> Result<World, TxnError> {
        let options = StoreOptions {
            io_threads,
            log_bytes: 16 << 20,
            ..StoreOptions::default()
        };
        let (store, _) =
            Store::open(options, Arc::new(disk.clone()), Arc::new(Redo), &|_| ()).unwrap();
        let tree = tree.unwrap_or_else(|| Self::create_table(&store));
        store.open_space(tree.space, "t").unwrap();
        let (system, recovery) = TrxSystem::open(&store, &TrxOptions { undo_streams: 3 })?;
        Ok(World {
            disk,
            store,
            system,
            recovery,
            tree: TreeHandle::open(tree),
        })
    }

    fn create_table(store: &Store) -> Tree {
        let space = finish(|| store.create_space("t")).unwrap();
        let root = finish(|| {
            let mut mtr = store.mtr();
            mtr.reserve(TreeHandle::CREATE_LOG_BYTES, space, 1)?;
            let root = TreeHandle::create(&mut mtr, space, 7);
            mtr.commit();
            Ok(root)
        });
        flush(store);
        Tree {
            space,
            root: root.unwrap(),
            index_id: 7,
        }
    }

    /// The same directory after the process was killed (unsynced writes are kept).
    fn after_kill(self) -> World {
        let disk = self.disk.kill();
        Self::open(disk, 0, Some(self.tree.tree()))
    }

    /// The same directory after the power failed (unsynced writes are lost, torn or kept).
    fn after_crash(self, seed: u64) -> World {
        let disk = self.disk.crash(seed);
        Self::open(disk, 0, Some(self.tree.tree()))
    }

    fn session(&self) -> Trx {
        self.system.session(1).unwrap()
    }

    fn begun(&self) -> Trx {
        let mut trx = self.session();
        trx.begin(Isolation::RepeatableRead, false);
        trx
    }

    /// Latches the row's leaf with room for `len` bytes of image.
    fn latch(&self, mtr: &mut Mtr<'_>, key: &[u8], len: usize) -> Step<(LeafPos, Option<Row>)> {
        mtr.reserve(len + key.len() + 300, self.tree.tree().space, 0)
            .map_err(Stop::lift)?;
        let pos = self
            .tree
            .leaf_for_write(&self.store, mtr, key, Room::Value(ROW_HEAD + len))
            .map_err(Stop::lift)?;
        let row = pos.found.then(|| {
            let mut value = Vec::new();
            self.tree.value(mtr, &pos, &mut value);
            Row::decode(&value)
        });
        Ok((pos, row))
    }

    fn store_row(&self, mtr: &mut Mtr<'_>, pos: &mut LeafPos, key: &[u8], row: &Row) {
        if pos.found {
            self.tree.replace_value_at(mtr, pos, &row.encode());
        } else {
            self.tree.insert_at(mtr, pos, key, &row.encode());
        }
        self.tree.set_newest_trx(mtr, pos, row.trx);
    }

    /// Stores `image` as the row, or deletes it. Returns whether there was a row.
    fn try_write(&self, trx: &mut Trx, key: &[u8], image: Option<&[u8]>) -> Step<bool> {
        let id = trx.assign_id()?;
        let mut mtr = self.store.mtr();
        // Room for what a rollback brings back, too, is not guaranteed here: undo makes its own.
        let (mut pos, row) = self.latch(&mut mtr, key, image.map_or(0, <[u8]>::len).max(200))?;
        let holder = row
            .as_ref()
            .map(|r| r.trx)
            .filter(|t| self.system.is_active(*t));
        let request = LockRequest::new(7, LockKey::Key(key), LockMode::X, LockKind::Record)
            .implicit_holder(holder)
            .becomes_implicit();
        if let Err(stop) = trx.lock(&request) {
            drop(mtr);
            return Err(stop);
        }
        let existed = row.as_ref().is_some_and(|r| r.flags & DELETED == 0);
        let (kind, old_image) = match (&row, image) {
            (None, None) => return Ok(false),
            (Some(_), None) if !existed => return Ok(false),
            (None, Some(_)) => (UndoKind::Insert, Vec::new()),
            (Some(r), Some(_)) => (UndoKind::Update, r.image.clone()),
            (Some(r), None) => (UndoKind::DeleteMark, r.image.clone()),
        };
        let old = row.as_ref().map(Row::version).unwrap_or_default();
        let change = RowChange {
            kind,
            table_id: TABLE,
            key,
            old,
            image: &old_image,
            quiet: false,
        };
        let mut prep = trx.prepare_undo(&mut mtr, change.body_len())?;
        let undo = trx.append_undo(&mut mtr, &mut prep, &change);
        let new = match image {
            Some(image) => Row {
                trx: id,
                flags: 0,
                undo,
                image: image.to_vec(),
            },
            None => Row {
                trx: id,
                flags: DELETED,
                undo,
                image: old_image.clone(),
            },
        };
        self.store_row(&mut mtr, &mut pos, key, &new);
        mtr.commit();
        Ok(existed)
    }

    fn write(&self, trx: &mut Trx, key: &[u8], image: Option<&[u8]>) -> Result<bool, TxnError> {
        block_on(|| self.try_write(trx, key, image))
    }

    fn current(&self, key: &[u8]) -> Option<Row> {
        let mut value = Vec::new();
        finish(|| {
            value.clear();
            self.tree.get(&self.store, key, &mut value)
        })
        .unwrap()
        .then(|| Row::decode(&value))
    }

    /// The row as the transaction's snapshot has it.
    fn read(&self, trx: &mut Trx, key: &[u8]) -> Option<Vec<u8>> {
        let snapshot = trx.snapshot();
        let row = self.current(key)?;
        self.version(&snapshot, row)
    }

    fn version(&self, snapshot: &view::Snapshot, row: Row) -> Option<Vec<u8>> {
        let mut record = UndoRecord::default();
        match block_on(|| {
            self.system
                .find_visible(snapshot, row.trx, row.undo, &mut record)
        })
        .unwrap()
        {
            Visible::Current => row.visible(),
            Visible::None => None,
            Visible::Older(old) => (old.flags & DELETED == 0).then(|| record.image().to_vec()),
        }
    }

    /// All visible rows.
    fn scan(&self, trx: &mut Trx) -> Vec<(Vec<u8>, Vec<u8>)> {
        let snapshot = trx.snapshot();
        let mut out = Vec::new();
        for (key, value) in self.entries() {
            if let Some(image) = self.version(&snapshot, Row::decode(&value)) {
                out.push((key, image));
            }
        }
        out
    }

    /// What is in the tree, delete-marked rows included.
    fn entries(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut cursor = self.tree.cursor(KeyRange::all(), false);
        let mut out = Vec::new();
        let mut batch = nfold_btree::EntryBatch::default();
        loop {
            batch.clear();
            let more =
                finish(|| cursor.next_batch(&self.tree, &self.store, 100, &mut batch)).unwrap();
            out.extend(batch.iter().map(|(k, v)| (k.to_vec(), v.to_vec())));
            if !more {
                return out;
            }
        }
    }

    fn commit(&self, trx: &mut Trx) -> u64 {
        block_on(|| trx.commit(FlushAtCommit::Durable)).unwrap()
    }

    fn rollback(&self, trx: &mut Trx) {
        block_on(|| trx.rollback(self)).unwrap();
    }

    /// Purges and rolls back until there is nothing to do.
    fn run_background(&self) {
        while block_on(|| self.system.rollback_step(self, 10)).unwrap() {}
        while block_on(|| self.system.purge_step(self, 10)).unwrap().more {}
    }
}

impl RowApplier for World {
    fn undo(&self, record: &UndoRecord, system: &TrxSystem) -> Step<()> {
        assert_eq!(record.table_id, TABLE);
        let mut mtr = self.store.mtr();
        let (mut pos, row) = self.latch(&mut mtr, record.key(), record.image().len())?;
        let ours = row.is_some_and(|r| r.trx == record.trx_id && r.undo == record.ptr);
        if !ours {
            return Ok(());
        }
        let old = record.old;
        let gone = old.flags & DELETED != 0 && system.is_purgeable(old.trx_id);
        if record.kind == UndoKind::Insert || gone {
            self.tree.remove_at(&mut mtr, &mut pos);
        } else {
            let row = Row {
                trx: old.trx_id,
                flags: old.flags,
                undo: old.undo,
                image: record.image().to_vec(),
            };
            self.store_row(&mut mtr, &mut pos, record.key(), &row);
        }
        mtr.commit();
        Ok(())
    }

    fn give_up(&self, _: &UndoRecord, _: &TxnError) -> bool {
        false
    }

    fn purge(&self, record: &UndoRecord, _: &TrxSystem) -> Step<()> {
        assert_eq!(record.table_id, TABLE);
        if record.kind != UndoKind::DeleteMark {
            return Ok(());
        }
        let mut mtr = self.store.mtr();
        let (mut pos, row) = self.latch(&mut mtr, record.key(), 0)?;
        if row.is_some_and(|r| {
            r.trx == record.trx_id && r.undo == record.ptr && r.flags & DELETED != 0
        }) {
            self.tree.remove_at(&mut mtr, &mut pos);
            mtr.commit();
        }
        Ok(())
    }
}

fn rows(pairs: &[(&str, &str)]) -> Vec<(Vec<u8>, Vec<u8>)> {
    pairs
        .iter()
        .map(|(k, v)| (k.as_bytes().to_vec(), v.as_bytes().to_vec()))
        .collect()
}
