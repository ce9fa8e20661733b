//! Checks whether the newest version of a row with a given key exists, and waits for the
//! transaction if that version is not committed. The executor's foreign-key checks call this after
//! they have changed their own row.
//!
//! # Picture
//! ```text
//!  child    writes its row and its entries ── fence ── probes the parent's index for the key
//!  parent   marks its row and its entries  ── fence ── probes the child's index for the key
//! ```
//! At least one of the two sees what the other has written, and waits until the other's
//! transaction has ended. If both see it, the waits form a cycle, which the deadlock detector
//! breaks.
//!
//! # Invariants
//! P1. The fence stands between the caller's last write and the first read here, also after a wait.
//! P2. An entry whose last writer has ended decides: with a delete mark it is absent,
//!     without one it is live. That an entry without a mark may belong to a row that is marked
//!     already (W1 of `write`) is no error: its owner marks the entry later, and probes after
//!     that.
//! P3. Every other entry belongs to an active transaction: the probe waits for its end and looks
//!     again.
//! P4. A transaction counts as ended only if it had ended before the entry was read. One that ended
//!     between the read of the entry and that of its status may have rolled the entry back, so the
//!     entry is read again.
//!
//! `foreign_key_leaves_no_orphan` of `txn` is the loom model of the picture.
//!
//! # Cost
//! Optimistic reads: nothing is written to the pages. A lock is requested only to wait for a
//! transaction, and given up then.

use std::sync::Arc;

use nfold_btree::{Cursor, EntryBatch};
use nfold_store::{TrxId, Wait};
use nfold_sync::planted::{self, Bug};
use nfold_txn::locks::{LockKey, LockKind, LockMode, LockRequest, Locked};
use nfold_txn::view::Snapshots;
use nfold_txn::{Trx, TrxSystem};

use crate::error::{Stop, lift};
use crate::read::{damaged, prefix_range};
use crate::record::{RowHeader, SecondaryEntry};
use crate::session::EngineSession;
use crate::table::Table;

/// Entries read at once.
const SLICE: usize = 16;

/// One search for a key, to be called again after a wait ([`EngineSession::probe`]).
pub struct KeyProbe {
    table: Arc<Table>,
    index: usize,
    key: Vec<u8>,
    /// The key of the entry whose lock was requested in order to wait for its owner.
    awaited: Option<Vec<u8>>,
    /// Transactions that had ended before the entries are read (P4).
    ended: Vec<TrxId>,
    value: Vec<u8>,
    entries: EntryBatch,
}

/// The result of one look.
enum Look {
    Live,
    Absent,
    /// The entry with this key belongs to an active transaction.
    Active(Vec<u8>, TrxId),
    /// P4
    Again,
}

/// What one entry says.
enum Entry {
    Live,
    Marked,
    Active(TrxId),
    JustEnded,
}

impl KeyProbe {
    /// A probe of index number `index` of `table`.
    pub fn new(table: Arc<Table>, index: usize) -> KeyProbe {
        KeyProbe {
            table,
            index,
            key: Vec::new(),
            awaited: None,
            ended: Vec::new(),
            value: Vec::new(),
            entries: EntryBatch::default(),
        }
    }

    /// The key to look for, emptied, for the caller to fill: one or more parts of the index from
    /// the first on.
    pub fn key(&mut self) -> &mut Vec<u8> {
        self.ended.clear();
        self.key.clear();
        &mut self.key
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The number of the index.
    pub fn index(&self) -> usize {
        self.index
    }

    pub(crate) fn run(&mut self, trx: &mut Trx, system: &TrxSystem) -> Result<bool, Stop> {
        let index = self.table.def().indexes[self.index].id.0;
        if let Some(key) = self.awaited.take() {
            trx.unlock(index, &key, LockMode::S, LockKind::Record);
        }
        loop {
            Snapshots::order_changes_before_probe(); // P1
            let (key, owner) = match self.look((trx.id(), system))? {
                Look::Live => return Ok(true),
                Look::Absent => return Ok(false),
                Look::Again => continue,
                Look::Active(key, owner) => (key, owner),
            };
            let place = LockKey::Key(&key);
            let request = LockRequest::new(index, place, LockMode::S, LockKind::Record)
                .implicit_holder(Some(owner));
            match trx.lock(&request).map_err(lift) {
                Ok(Locked::New) => trx.unlock(index, &key, LockMode::S, LockKind::Record),
                Ok(Locked::Held | Locked::Skipped) => return Err(Stop::Wait(Wait::ready())),
                Err(stop) => {
                    self.awaited = matches!(stop, Stop::Wait(_)).then_some(key);
                    return Err(stop);
                }
            }
        }
    }

    fn look(&mut self, own: (TrxId, &TrxSystem)) -> Result<Look, Stop> {
        let ended_before = own.1.ended_below();
        let tree = &self.table.index(self.index).tree;
        let store = self.table.store();
        if self.index == 0 && self.table.key_layout(0).is_whole(&self.key) {
            self.value.clear();
            if !tree.get(store, &self.key, &mut self.value).map_err(lift)? {
                return Ok(Look::Absent);
            }
            let (header, _) = RowHeader::split(&self.value).ok_or_else(damaged)?;
            let entry = (header.trx, header.deleted);
            return Ok(match status(own, ended_before, &mut self.ended, entry) {
                Entry::Live => Look::Live,
                Entry::Marked => Look::Absent,
                Entry::Active(trx) => Look::Active(self.key.clone(), trx),
                Entry::JustEnded => Look::Again,
            });
        }
        let mut cursor: Cursor = tree.cursor(prefix_range(&self.key), false);
        let (mut active, mut again, mut more) = (None, false, true);
        while more {
            self.entries.clear();
            more = cursor
                .next_batch(tree, store, SLICE, &mut self.entries)
                .map_err(lift)?;
            for (key, value) in self.entries.iter() {
                let entry = match self.index {
                    0 => {
                        let (header, _) = RowHeader::split(value).ok_or_else(damaged)?;
                        (header.trx, header.deleted)
                    }
                    _ => {
                        let entry = SecondaryEntry::parse(value).ok_or_else(damaged)?;
                        (entry.trx, entry.deleted)
                    }
                };
                match status(own, ended_before, &mut self.ended, entry) {
                    Entry::Live => return Ok(Look::Live),
                    Entry::Marked => {}
                    Entry::Active(trx) if active.is_none() => active = Some((key.to_vec(), trx)),
                    Entry::Active(_) => {}
                    Entry::JustEnded => again = true,
                }
            }
        }
        Ok(match active {
            _ if again => Look::Again,
            Some((key, trx)) => Look::Active(key, trx),
            None => Look::Absent,
        })
    }
}

/// What an entry of this transaction and with this delete mark says. `ended_before`: ids below it
/// had ended before the entry was read.
fn status(
    (own, system): (TrxId, &TrxSystem),
    ended_before: TrxId,
    ended: &mut Vec<TrxId>,
    (trx, deleted): (TrxId, bool),
) -> Entry {
    let decides = trx < ended_before
        || trx == own
        || ended.contains(&trx)
        || planted::is(Bug::ProbedUncommitted);
    match (decides, deleted) {
        (true, false) => Entry::Live,
        (true, true) => Entry::Marked,
        (false, _) if system.is_active(trx) => Entry::Active(trx),
        (false, _) => {
            ended.push(trx);
            Entry::JustEnded
        }
    }
}

impl EngineSession {
    /// Whether a row with the probe's key is there; call again with the same probe after a wait.
    /// The caller has changed its own row before.
    pub fn probe(&mut self, probe: &mut KeyProbe) -> Result<bool, Stop> {
        let (trx, system) = self.trx_and_system();
        probe.run(trx, system)
    }
}
