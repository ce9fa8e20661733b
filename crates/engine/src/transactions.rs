//! Every active transaction as `information_schema.INNODB_TRX` shows it: those that changed or
//! locked something, and those that only read.
//!
//! What the lock table knows of (owners) and what the sessions' slots say (readers, start times,
//! levels) are put together by the session's number.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nfold_store::TrxId;
use nfold_txn::locks::OwnerInfo;
use nfold_txn::view::SlotInfo;
use nfold_txn::{Isolation, TrxAbout};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::engine::Engine;
use crate::locks::trx_number;

/// Sessions from here on are the server's own.
const INTERNAL: u64 = 1 << 32;

/// An active transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveTrx {
    /// As in [`DataLock::trx`](crate::DataLock::trx).
    pub trx: TrxId,
    /// The connection; 0: the server's own, prepared, or being undone in the background.
    pub session: u64,
    /// Its session is gone, and the background rolls it back.
    pub rolling_back: bool,
    /// Microseconds since 1970.
    pub started_us: u64,
    /// Since when it waits for a lock, in microseconds since 1970, and for which.
    pub waiting: Option<(u64, Option<String>)>,
    /// It has requested a lock or changed a row.
    pub locking: bool,
    /// Row changes so far.
    pub changes: u64,
    /// Places that it holds explicit locks at, and sorts of locks there.
    pub locks: u64,
    pub sorts: u64,
    /// Tables that these are on.
    pub tables_locked: u64,
    pub about: TrxAbout,
    /// Its snapshot is open, and holds purge back.
    pub has_snapshot: bool,
}

fn before_now(ago: Duration) -> u64 {
    let at = SystemTime::now().checked_sub(ago).unwrap_or(UNIX_EPOCH);
    at.duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_micros() as u64)
}

impl Engine {
    /// All active transactions, in the order of their ids.
    pub fn active_transactions(&self) -> Vec<ActiveTrx> {
        let system = self.trx_system();
        let mut slots: FxHashMap<u64, SlotInfo> = FxHashMap::default();
        for slot in system.views().slots.in_use() {
            slots.insert(slot.session, slot);
        }
        let owners = system.locks().owners();
        let mut out = Vec::with_capacity(owners.len() + slots.len());
        let mut requested: FxHashMap<u64, String> = FxHashMap::default();
        if owners.iter().any(|o| o.waiting.is_some()) {
            let waits = self.data_lock_waits().into_iter().map(|w| w.waiting);
            requested.extend(waits.map(|lock| (lock.trx, lock.id)));
        }
        let tables = self.tables_by_index();
        for owner in owners {
            let slot = match owner.session {
                0 => None,
                session => slots.remove(&session),
            };
            let on = owner.indexes.iter().filter_map(|id| tables.get(id));
            let tables: FxHashSet<u64> = on.map(|(t, _)| t.def().id.0).collect();
            let mut trx = of_owner(&owner, slot, tables.len() as u64, &mut requested);
            trx.rolling_back &= !self.shared().branches.is_prepared(owner.trx_id);
            out.push(trx);
        }
        out.extend(slots.into_values().map(of_reader));
        out.sort_by_key(|t| (t.trx, t.session));
        out
    }
}

fn of_owner(
    owner: &OwnerInfo,
    slot: Option<SlotInfo>,
    tables: u64,
    requested: &mut FxHashMap<u64, String>,
) -> ActiveTrx {
    let trx = trx_number(owner.trx_id, owner.session);
    let noted = slot.filter(|s| s.since_us != 0);
    ActiveTrx {
        trx,
        session: connection(owner.session),
        rolling_back: owner.session == 0,
        started_us: noted.map_or_else(|| before_now(owner.age), |s| s.since_us),
        waiting: owner
            .waiting
            .map(|ago| (before_now(ago), requested.remove(&trx))),
        locking: true,
        changes: owner.changes,
        locks: owner.locks as u64,
        sorts: owner.sorts as u64,
        // Rows that were changed without meeting anybody carry their lock themselves.
        tables_locked: tables.max(u64::from(owner.changes > 0)),
        about: noted.map_or(TrxAbout::of_the_server(), |s| TrxAbout::decode(s.about)),
        has_snapshot: slot.is_some_and(|s| s.s.is_some()),
    }
}

fn of_reader(slot: SlotInfo) -> ActiveTrx {
    let noted = slot.since_us != 0;
    ActiveTrx {
        trx: trx_number(0, slot.session),
        session: connection(slot.session),
        rolling_back: false,
        started_us: if noted {
            slot.since_us
        } else {
            before_now(Duration::ZERO)
        },
        waiting: None,
        locking: false,
        changes: 0,
        locks: 0,
        sorts: 0,
        tables_locked: 0,
        about: if noted {
            TrxAbout::decode(slot.about)
        } else {
            TrxAbout::of_the_server()
        },
        has_snapshot: slot.s.is_some(),
    }
}

fn connection(session: u64) -> u64 {
    if session < INTERNAL { session } else { 0 }
}

/// The name of a level, as variables and views have it.
pub fn isolation_name(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::ReadUncommitted => "READ UNCOMMITTED",
        Isolation::ReadCommitted => "READ COMMITTED",
        Isolation::RepeatableRead => "REPEATABLE READ",
        Isolation::Serializable => "SERIALIZABLE",
    }
}
