//! Locks, waits, transactions and the last deadlock as the status views show them:
//! `performance_schema.data_locks`, `data_lock_waits` and SHOW ENGINE INNODB STATUS.
//!
//! Names and texts are InnoDB's. As in InnoDB, a lock on a page that is not in memory is shown
//! without its data.

use std::fmt::Write;
use std::hash::Hasher;
use std::sync::Arc;

use nfold_catalog::SessionWait;
use nfold_observe::contention::WaitPlace;
use nfold_store::TrxId;
use nfold_txn::locks::{DeadlockInfo, LockInfo, LockKind, LockMode, LockTableStatus, OwnerInfo};
use nfold_types::row::RowLayout;
use nfold_types::temporal::TimeZone;
use nfold_types::wire::display_text;
use nfold_types::{ColumnType, Timestamp, TypeKind, ValueRef};
use rustc_hash::{FxHashMap, FxHasher};

use crate::engine::Engine;
use crate::record::{RowHeader, SecondaryEntry};
use crate::table::{CoveringScratch, Table};

/// Added to the session's number where a transaction has no id yet, as InnoDB does with an address.
const NO_ID: u64 = 1 << 48;

/// One lock on a table or a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataLock {
    /// Names the lock while it is there.
    pub id: String,
    /// The transaction's id, or a number above 2^48 where it has none.
    pub trx: TrxId,
    /// The session's number; 0: the transaction is being undone in the background.
    pub session: u64,
    pub schema: Arc<str>,
    pub table: Arc<str>,
    /// `None`: a lock on the table.
    pub index: Option<Arc<str>>,
    /// `X`, `S,REC_NOT_GAP`, `X,GAP,INSERT_INTENTION`, `IX`, ...
    pub mode: String,
    pub granted: bool,
    /// The values of the index's columns and of the primary key.
    pub data: Option<String>,
}

/// A waiting lock and one that is in its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataLockWait {
    pub waiting: DataLock,
    pub blocking: DataLock,
}

/// A transaction, for the status views.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrxInfo {
    pub owner: OwnerInfo,
    /// As in [`DataLock::trx`].
    pub trx: TrxId,
}

/// The intention lock on a table that the views derive from its record locks: by transaction and
/// table id, with whether one of the record locks is exclusive.
type TableLocks = FxHashMap<(usize, u64), (LockInfo, bool)>;

impl Engine {
    /// Every explicit lock, and the intention locks on tables that go with them.
    pub fn data_locks(&self) -> Vec<DataLock> {
        let tables = self.tables_by_index();
        let mut on_tables = TableLocks::default();
        let mut out = Vec::new();
        for info in self.trx_system().locks().locks() {
            let Some((table, ordinal)) = tables.get(&info.index) else {
                continue;
            };
            out.push(describe(table, *ordinal, &info));
            let place = (info.owner, table.def().id.0);
            let exclusive = info.mode == LockMode::X;
            let lock = on_tables.entry(place).or_insert((info, false));
            lock.1 |= exclusive;
        }
        for ((owner, id), (info, exclusive)) in on_tables {
            if let Some((table, _)) = tables.get(&info.index) {
                let def = table.def();
                out.push(DataLock {
                    id: format!("{owner:x}:{id}"),
                    trx: trx_number(info.trx_id, info.session),
                    session: info.session,
                    schema: def.schema.clone(),
                    table: def.name.clone(),
                    index: None,
                    mode: if exclusive { "IX" } else { "IS" }.into(),
                    granted: true,
                    data: None,
                });
            }
        }
        out.sort_by(|a, b| {
            (a.trx, a.index.is_some(), &a.id).cmp(&(b.trx, b.index.is_some(), &b.id))
        });
        out
    }

    /// How often and how long requests for row locks have waited.
    pub fn row_lock_status(&self) -> LockTableStatus {
        self.trx_system().locks().status()
    }

    /// Who waits for whom.
    pub fn data_lock_waits(&self) -> Vec<DataLockWait> {
        let tables = self.tables_by_index();
        let waits = self.trx_system().locks().waits();
        let mut out: Vec<DataLockWait> = waits
            .iter()
            .filter_map(|w| {
                let (table, ordinal) = tables.get(&w.waiting.index)?;
                Some(DataLockWait {
                    waiting: describe(table, *ordinal, &w.waiting),
                    blocking: describe(table, *ordinal, &w.blocking),
                })
            })
            .collect();
        out.sort_by(|a, b| (&a.waiting.id, &a.blocking.id).cmp(&(&b.waiting.id, &b.blocking.id)));
        out
    }

    /// The session's wait for a row lock.
    pub fn row_lock_wait_of(&self, session: u64) -> Option<SessionWait> {
        let connection = u32::try_from(session).ok()?;
        let WaitPlace::Row(key) = self.contention().site_of(connection)?.place else {
            return None;
        };
        let found = self.trx_system().locks().wait_of(session, &key);
        found.map(|(since, blockers)| SessionWait { since, blockers })
    }

    /// Transactions that have changed or locked something.
    pub fn transactions(&self) -> Vec<TrxInfo> {
        let owners = self.trx_system().locks().owners();
        let known = owners.into_iter().map(|owner| TrxInfo {
            trx: trx_number(owner.trx_id, owner.session),
            owner,
        });
        known.collect()
    }

    /// The part of SHOW ENGINE INNODB STATUS about deadlocks and transactions. `of_session` appends
    /// the description of a session: its user and statement.
    pub fn transaction_report(&self, of_session: &dyn Fn(u64, &mut String)) -> String {
        let mut out = String::new();
        if let Some(deadlock) = self.trx_system().locks().last_deadlock() {
            self.write_deadlock(&deadlock, &mut out);
        }
        let status = self.trx_status();
        section("TRANSACTIONS", &mut out);
        _ = writeln!(out, "Trx id counter {}", status.next_id);
        _ = writeln!(
            out,
            "Purge done for trx's n:o < {} undo n:o < 0 state: {}",
            status.oldest_active_id,
            if status.history_length == 0 {
                "running but idle"
            } else {
                "running"
            }
        );
        _ = writeln!(out, "History list length {}", status.history_length);
        _ = writeln!(
            out,
            "Undo pages {} ({} free)",
            status.undo_pages, status.undo_pages_free
        );
        if let Some(reader) = &status.oldest_reader {
            _ = writeln!(
                out,
                "Oldest snapshot at LSN {}, which holds purge back:",
                reader.s
            );
            if reader.session == 0 {
                out.push_str("of the server itself\n");
            } else {
                of_session(reader.session, &mut out);
            }
        }
        _ = writeln!(
            out,
            "Undo files {} pages, {} given up so far",
            status.undo_file_pages, status.undo_files_given_up
        );
        out.push_str("LIST OF TRANSACTIONS FOR EACH SESSION:\n");
        let waits = self.data_lock_waits();
        for trx in self.transactions() {
            write_owner(&trx.owner, "---TRANSACTION", &mut out);
            if trx.owner.session == 0 {
                out.push_str("being rolled back in the background\n");
            } else {
                of_session(trx.owner.session, &mut out);
            }
            let Some(waiting) = trx.owner.waiting else {
                continue;
            };
            let seconds = waiting.as_secs();
            _ = writeln!(
                out,
                "------- TRX HAS BEEN WAITING {seconds} SEC FOR THIS LOCK TO BE GRANTED:"
            );
            let mine = waits.iter().filter(|w| w.waiting.trx == trx.trx);
            for (n, wait) in mine.enumerate() {
                if n == 0 {
                    write_lock(&wait.waiting, &mut out);
                }
                let blocking = &wait.blocking;
                _ = writeln!(
                    out,
                    "blocked by TRANSACTION {}, MySQL thread id {}",
                    blocking.trx, blocking.session
                );
            }
            out.push_str("------------------\n");
        }
        out
    }

    fn write_deadlock(&self, deadlock: &DeadlockInfo, out: &mut String) {
        section("LATEST DETECTED DEADLOCK", out);
        let since = deadlock.at.duration_since(std::time::UNIX_EPOCH);
        let at = Timestamp::from_micros(since.map_or(0, |d| d.as_micros() as i64), 0);
        let mut text = Vec::new();
        let ty = ColumnType::new(TypeKind::Timestamp(0));
        display_text(ValueRef::Timestamp(at), &ty, &TimeZone::UTC, &mut text);
        _ = writeln!(out, "{} UTC", String::from_utf8_lossy(&text));
        let tables = self.tables_by_index();
        for (n, (owner, wait)) in deadlock.members.iter().enumerate() {
            let n = n + 1;
            _ = writeln!(out, "*** ({n}) TRANSACTION:");
            write_owner(owner, "TRANSACTION", out);
            _ = writeln!(out, "MySQL thread id {}", owner.session);
            let Some(wait) = wait else { continue };
            let Some((table, ordinal)) = tables.get(&wait.waiting.index) else {
                continue;
            };
            _ = writeln!(out, "*** ({n}) WAITING FOR THIS LOCK TO BE GRANTED:");
            write_lock(&describe(table, *ordinal, &wait.waiting), out);
            let holder = n % deadlock.members.len() + 1;
            _ = writeln!(out, "*** ({holder}) HOLDS THE LOCK:");
            write_lock(&describe(table, *ordinal, &wait.blocking), out);
        }
        _ = writeln!(
            out,
            "*** WE ROLL BACK TRANSACTION ({})",
            deadlock.victim + 1
        );
    }

    /// Open tables and index ordinals by index id.
    pub(crate) fn tables_by_index(&self) -> FxHashMap<u64, (Arc<Table>, usize)> {
        let tables = self.shared().tables.read();
        let mut out = FxHashMap::default();
        for table in tables.values() {
            for (n, index) in table.def().indexes.iter().enumerate() {
                out.insert(index.id.0, (table.clone(), n));
            }
        }
        out
    }
}

fn section(name: &str, out: &mut String) {
    let line = "-".repeat(name.len());
    _ = writeln!(out, "{line}\n{name}\n{line}");
}

fn write_owner(owner: &OwnerInfo, word: &str, out: &mut String) {
    let id = trx_number(owner.trx_id, owner.session);
    _ = writeln!(out, "{word} {id}, ACTIVE {} sec", owner.age.as_secs());
    if owner.waiting.is_some() {
        out.push_str("LOCK WAIT ");
    }
    _ = write!(
        out,
        "{} lock struct(s), {} row lock(s)",
        owner.sorts, owner.locks
    );
    if owner.changes > 0 {
        _ = write!(out, ", undo log entries {}", owner.changes);
    }
    out.push('\n');
}

fn write_lock(lock: &DataLock, out: &mut String) {
    let index = lock.index.as_deref().unwrap_or_default();
    let waiting = if lock.granted { "" } else { " waiting" };
    _ = writeln!(
        out,
        "RECORD LOCKS index {index} of table `{}`.`{}` trx id {} lock mode {}{waiting}",
        lock.schema, lock.table, lock.trx, lock.mode
    );
    if let Some(data) = &lock.data {
        _ = writeln!(out, "Record lock, {data}");
    }
}

pub(crate) fn trx_number(id: TrxId, session: u64) -> u64 {
    if id == 0 { NO_ID + session } else { id }
}

/// An index's name as InnoDB's views have it.
pub(crate) fn index_name(table: &Table, ordinal: usize) -> Arc<str> {
    if ordinal == 0 && table.has_hidden_row_id() {
        "GEN_CLUST_INDEX".into()
    } else {
        table.def().indexes[ordinal].name.clone()
    }
}

fn describe(table: &Table, ordinal: usize, info: &LockInfo) -> DataLock {
    let def = table.def();
    let mut hasher = FxHasher::default();
    hasher.write(info.key.as_deref().unwrap_or_default());
    let place = hasher.finish();
    let name = index_name(table, ordinal);
    DataLock {
        id: format!(
            "{:x}:{}:{place:016x}:{:?}{:?}",
            info.owner, info.index, info.mode, info.kind
        ),
        trx: trx_number(info.trx_id, info.session),
        session: info.session,
        schema: def.schema.clone(),
        table: def.name.clone(),
        index: Some(name),
        mode: mode_text(info),
        granted: info.granted,
        data: match &info.key {
            None => Some("supremum pseudo-record".into()),
            Some(key) => data_of(table, ordinal, key),
        },
    }
}

fn mode_text(info: &LockInfo) -> String {
    let kind = match info.kind {
        LockKind::Record => ",REC_NOT_GAP",
        // On the supremum InnoDB says it without GAP.
        LockKind::Gap if info.key.is_none() => "",
        LockKind::Gap => ",GAP",
        LockKind::NextKey => "",
        LockKind::InsertIntention if info.key.is_none() => ",INSERT_INTENTION",
        LockKind::InsertIntention => ",GAP,INSERT_INTENTION",
    };
    format!("{:?}{kind}", info.mode)
}

/// The values of an entry's columns, if it is there and in memory.
pub(crate) fn data_of(table: &Table, ordinal: usize, key: &[u8]) -> Option<String> {
    let mut value = Vec::new();
    let index = table.index(ordinal);
    if !index.tree.get(table.store(), key, &mut value).ok()? {
        return None;
    }
    if ordinal != 0 {
        let entry = SecondaryEntry::parse(&value)?;
        let mut row = Vec::new();
        let known = table.covering_row(
            ordinal,
            key,
            &entry,
            &mut CoveringScratch::default(),
            &mut row,
        );
        return known.then(|| texts(&index.layout, &row, 0..index.columns.len()));
    }
    if table.has_hidden_row_id() {
        return Some(format!(
            "0x{:012X}",
            u64::from_be_bytes(key.try_into().ok()?)
        ));
    }
    let (_, image) = RowHeader::split(&value)?;
    let parts = table.def().indexes[0].parts.iter().map(|p| p.column);
    Some(texts(table.layout(), image, parts))
}

fn texts(layout: &RowLayout, row: &[u8], columns: impl Iterator<Item = usize>) -> String {
    let mut out = String::new();
    for column in columns {
        if !out.is_empty() {
            out.push_str(", ");
        }
        match layout.get(row, column) {
            Ok(ValueRef::Null) => out.push_str("NULL"),
            Ok(ValueRef::Bytes(text)) => _ = write!(out, "'{}'", String::from_utf8_lossy(text)),
            Ok(value) => {
                let mut text = Vec::new();
                display_text(
                    value,
                    &layout.columns()[column].ty,
                    &TimeZone::UTC,
                    &mut text,
                );
                out.push_str(&String::from_utf8_lossy(&text));
            }
            Err(_) => out.push('?'),
        }
    }
    out
}
