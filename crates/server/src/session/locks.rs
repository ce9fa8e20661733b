//! LOCK TABLES, built on metadata locks.
//!
//! # Picture
//! Each table has two ids: its own, and its *write permit* (the id with a bit set), which
//! statements that change rows announce as well.
//!
//! ```text
//!                     announces (shared)      claims (exclusive)
//!  SELECT             id
//!  INSERT, UPDATE ..  id, permit
//!  LOCK ... READ      id                      permit, shared with every other READ locker
//!  LOCK ... WRITE                             id, permit
//!  DDL                                        id
//! ```
//! # Invariants
//! L1. A statement gets all of its locks together or none, so two LOCK TABLES never wait for each
//!     other.
//! L2. While a session holds table locks, its statements use no other stored table and no other
//!     alias (error 1100), and change no table that is locked for READ (error 1099).
//! L3. Plans depend on the table locks: the plan cache is emptied when locks are taken or released.
//!
//! # Cost
//! A statement that changes rows announces one additional id, in its session's own slot.

use std::sync::{Arc, Weak};

use nfold_catalog::{
    Mdl, MdlBusy, MdlExclusive, MdlSlot, Privileges, SchemaSnapshot, TableDef, TableId, sharer_of,
};
use nfold_exec::{ExecCx, SessionEnv};
use nfold_sql::ast::{LockTable, ObjectName, Statement};
use nfold_types::{ErrorCode, SqlError};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::Session;
use super::response::Response;
use super::system_schemas::{self, INFORMATION};
use super::tables::TableUse;
use super::transaction::MdlWait;

/// The bit of write permits. The ids of stored tables are far below.
const PERMIT: u64 = 1 << 62;

/// The id of the write permit of a table.
pub fn write_permit(table: TableId) -> TableId {
    TableId(table.0 | PERMIT)
}

/// The id of the table to which an id or a write permit belongs.
pub(crate) fn table_of_permit(id: TableId) -> TableId {
    TableId(id.0 & !PERMIT)
}

/// A table of LOCK TABLES.
struct Locked {
    schema: Box<str>,
    name: Box<str>,
    /// The only name under which a statement may use the lock.
    alias: Box<str>,
    id: TableId,
    write: bool,
}

/// The table locks of one session.
#[derive(Default)]
pub struct TableLocks {
    tables: Vec<Locked>,
    /// Announces the tables that are locked for READ, and with locks for WRITE that rows change.
    announced: Option<MdlSlot>,
    _shared: Vec<Arc<MdlExclusive>>,
    exclusive: Vec<MdlExclusive>,
}

impl TableLocks {
    /// Whether the session has no table lock.
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// Whether they announce changes of rows (`LOCK TABLES ... WRITE`).
    pub(crate) fn announce_changes(&self) -> bool {
        self.announced.as_ref().is_some_and(MdlSlot::is_in_server)
    }

    /// Whether the session itself has claimed this id, so that its statements need not announce it.
    pub fn claims(&self, id: TableId) -> bool {
        let bare = TableId(id.0 & !PERMIT);
        self.tables.iter().any(|t| t.write && t.id == bare)
    }

    /// Checks whether a statement may use a table, under `alias` or (for its definition) under any
    /// name. `write`: it changes rows or the definition.
    ///
    /// # Errors
    /// 1100 if the table is not locked, 1099 if it is locked for READ only.
    pub fn allow(
        &self,
        schema: &str,
        name: &str,
        alias: Option<&str>,
        write: bool,
    ) -> Result<(), SqlError> {
        if self.tables.is_empty() || system_schemas::is_system_schema(schema) {
            return Ok(());
        }
        let mut named = self
            .tables
            .iter()
            .filter(|t| *t.schema == *schema && *t.name == *name)
            .filter(|t| alias.is_none_or(|a| *t.alias == *a))
            .peekable();
        let name = alias.unwrap_or(name);
        if named.peek().is_none() {
            return Err(SqlError::new(ErrorCode::ER_TABLE_NOT_LOCKED, &[&name]));
        }
        if write && !named.any(|t| t.write) {
            let code = ErrorCode::ER_TABLE_NOT_LOCKED_FOR_WRITE;
            return Err(SqlError::new(code, &[&name]));
        }
        Ok(())
    }
}

/// The write permits that READ lockers share, by id.
#[derive(Default)]
pub struct SharedPermits(Mutex<FxHashMap<u64, Weak<MdlExclusive>>>);

impl SharedPermits {
    /// The claim on a permit, shared with other READ lockers.
    fn share(&self, mdl: &Arc<Mdl>, permit: TableId) -> Result<Arc<MdlExclusive>, MdlBusy> {
        let mut held = self.0.lock();
        if let Some(claim) = held.get(&permit.0).and_then(Weak::upgrade) {
            return Ok(claim);
        }
        held.retain(|_, claim| claim.strong_count() > 0);
        let claim = Arc::new(mdl.try_exclusive(None, &[permit])?);
        held.insert(permit.0, Arc::downgrade(&claim));
        Ok(claim)
    }
}

impl Session {
    /// LOCK TABLES. The caller has committed.
    ///
    /// # Errors
    /// 1046, 1142, 1146 and 1066 for the names; 1205 after `lock_wait_timeout`.
    pub(crate) fn lock_tables(
        &mut self,
        cx: &mut dyn ExecCx,
        list: &[LockTable],
    ) -> Result<Response, SqlError> {
        self.release_table_locks();
        if list.iter().any(|t| t.write) {
            // The slot of the locks announces it from then on.
            self.announce_change(cx, false)?;
        }
        let mut waiting = MdlWait::new(self);
        let locked = loop {
            self.refresh_schema();
            let tables = match self.tables_to_lock(list) {
                Ok(tables) => tables,
                Err(e) => break Err(e),
            };
            let permits = tables.iter().map(|t| write_permit(t.id));
            let wanted: Vec<TableId> = tables.iter().map(|t| t.id).chain(permits).collect();
            if let Ok(locks) = self.try_lock_tables(tables)
                && self.schema.version == self.server.engine.catalog().version()
            {
                break Ok(locks);
            }
            if let Err(e) = waiting.pause(self, cx, &wanted, true) {
                break Err(e);
            }
        };
        self.end_change();
        self.table_locks = locked?;
        self.plan_context_changed();
        Ok(Response::ok())
    }

    fn tables_to_lock(&self, list: &[LockTable]) -> Result<Vec<Locked>, SqlError> {
        let mut tables: Vec<Locked> = Vec::with_capacity(list.len());
        for (n, item) in list.iter().enumerate() {
            let (schema, name) = (self.schema_of(&item.name)?, item.name.name.as_str());
            if system_schemas::canonical(&schema) == Some(INFORMATION) {
                return Err(self.rights.no_database(&schema));
            }
            if self.temporary.find(&schema, name).is_some() {
                continue;
            }
            if !system_schemas::is_open_schema(&schema) {
                self.rights
                    .need_database(Privileges::LOCK_TABLES, &schema)?;
            }
            self.rights.need_table(Privileges::SELECT, &schema, name)?;
            let alias =
                |i: &LockTable| i.alias.as_ref().unwrap_or(&i.name.name).as_str().to_owned();
            if list[..n].iter().any(|other| alias(other) == alias(item)) {
                return Err(SqlError::new(ErrorCode::ER_NONUNIQ_TABLE, &[&alias(item)]));
            }
            if system_schemas::is_system_schema(&schema) {
                continue;
            }
            let def = self.table_def(&schema, name)?;
            tables.push(Locked {
                schema: (&*schema).into(),
                name: name.into(),
                alias: alias(item).into(),
                id: def.id,
                write: item.write,
            });
        }
        Ok(tables)
    }

    fn try_lock_tables(&mut self, tables: Vec<Locked>) -> Result<TableLocks, MdlBusy> {
        let mdl = self.server.engine.catalog().mdl().clone();
        let is_written = |id| tables.iter().any(|t| t.write && t.id == id);
        let mut written: Vec<TableId> = tables.iter().filter(|t| t.write).map(|t| t.id).collect();
        written.sort_unstable();
        written.dedup();
        written.extend(written.clone().into_iter().map(write_permit));
        let mut announced = mdl.slot(self.env.connection_id());
        if !written.is_empty() {
            announced.share_server(self.engine.mdl_ref());
        }
        let mut shared = Vec::new();
        for t in tables.iter().filter(|t| !is_written(t.id)) {
            announced.acquire(t.id)?;
            let permit = write_permit(t.id);
            announced.acquire(sharer_of(permit))?;
            shared.push(self.server.read_permits.share(&mdl, permit)?);
        }
        let own = Some(self.engine.mdl_ref());
        Ok(TableLocks {
            exclusive: vec![mdl.try_exclusive(own, &written)?],
            tables,
            announced: Some(announced),
            _shared: shared,
        })
    }

    /// Releases the table locks: for UNLOCK TABLES, BEGIN, and the end of the session. The caller
    /// handles an open transaction.
    pub(crate) fn release_table_locks(&mut self) {
        if !self.table_locks.is_empty() {
            self.table_locks = TableLocks::default();
            self.plan_context_changed();
        }
    }

    /// UNLOCK TABLES. Commits if the session has table locks.
    pub(crate) fn unlock_tables(&mut self, cx: &mut dyn ExecCx) -> Result<Response, SqlError> {
        if !self.table_locks.is_empty() {
            self.commit(cx)?;
            self.release_table_locks();
        }
        self.unlock_all_tables();
        Ok(Response::ok())
    }

    /// Checks whether DDL may run under the table locks.
    ///
    /// # Errors
    /// 1100 and 1099 as for [`TableLocks::allow`], 1192 for databases and views.
    pub(crate) fn table_locks_allow(&self, statement: &Statement) -> Result<(), SqlError> {
        use Statement::*;
        if self.table_locks.is_empty() {
            return Ok(());
        }
        let mut names: Vec<&ObjectName> = Vec::new();
        let mut write = true;
        // A statement that reads the table opens it under its own name.
        let mut opens = false;
        let makes = matches!(statement, CreateTable(_));
        match statement {
            CreateDatabase(_)
            | AlterDatabase(_)
            | DropDatabase { .. }
            | CreateView(_)
            | DropView { .. } => {
                let code = ErrorCode::ER_LOCK_OR_ACTIVE_TRANSACTION;
                return Err(SqlError::new(code, &[]));
            }
            CreateTable(c) => names.push(&c.name),
            DropTable(d) => names.extend(&d.names),
            Truncate(name) => names.push(name),
            // A name that an earlier part of the statement has created need not be locked.
            RenameTable(list) => names.extend(list.iter().enumerate().filter_map(|(n, pair)| {
                let given = |(_, new): &(ObjectName, ObjectName)| *new == pair.0;
                (!list[..n].iter().any(given)).then_some(&pair.0)
            })),
            AlterTable(a) => (opens, names) = (true, vec![&a.name]),
            CreateIndex(c) => (opens, names) = (true, vec![&c.table]),
            DropIndex { table, .. } => (opens, names) = (true, vec![table]),
            TableMaintenance(m) => {
                (opens, write) = (true, false);
                names.extend(&m.tables);
            }
            _ => {}
        }
        names.into_iter().try_for_each(|name| {
            let schema = self.schema_of(name)?;
            let name = name.name.as_str();
            if !makes && self.temporary.find(&schema, name).is_some() {
                return Ok(());
            }
            self.table_locks
                .allow(&schema, name, opens.then_some(name), write)
        })
    }

    /// Checks whether FLUSH TABLES may run under the table locks: for these tables, or for all.
    ///
    /// # Errors
    /// 1100 and 1099 as for [`TableLocks::allow`].
    pub(crate) fn table_locks_allow_flush(&self, names: &[ObjectName]) -> Result<(), SqlError> {
        for name in names {
            let schema = self.schema_of(name)?;
            (self.table_locks).allow(&schema, name.name.as_str(), None, true)?;
        }
        let mut locked = self.table_locks.tables.iter();
        match locked.find(|t| names.is_empty() && !t.write) {
            None => Ok(()),
            Some(t) => {
                let code = ErrorCode::ER_TABLE_NOT_LOCKED_FOR_WRITE;
                Err(SqlError::new(code, &[&t.name]))
            }
        }
    }

    /// Updates the table locks after DDL: recreated tables have new ids, renamed tables have new
    /// names, and dropped tables are no longer locked.
    pub(crate) fn renew_table_locks(&mut self, cx: &mut dyn ExecCx) -> Result<(), SqlError> {
        if self.table_locks.is_empty() {
            return Ok(());
        }
        self.refresh_schema();
        let mut locks = std::mem::take(&mut self.table_locks);
        let mut fresh = Vec::new();
        let known: Vec<TableId> = locks.tables.iter().map(|t| t.id).collect();
        let is_claimed = |id| locks.exclusive.iter().any(|claim| claim.covers(id));
        locks.tables.retain_mut(|t| {
            let Some(now) =
                current_def(&self.schema, t, |id| is_claimed(id) && !known.contains(&id))
            else {
                return false;
            };
            if now.id != t.id {
                t.id = now.id;
                // A table that replaces a claimed one is claimed too.
                if !is_claimed(now.id) {
                    fresh.push(now.id);
                }
                fresh.push(write_permit(now.id));
            }
            if *t.schema != *now.schema || *t.name != *now.name {
                t.schema = (&*now.schema).into();
                t.name = (&*now.name).into();
                t.alias = t.name.clone();
            }
            true
        });
        if !locks.tables.is_empty() {
            self.table_locks = locks;
        }
        if !fresh.is_empty() {
            let mdl = self.server.engine.catalog().mdl().clone();
            let mut waiting = MdlWait::new(self);
            let claim = loop {
                match mdl.try_exclusive(Some(self.engine.mdl_ref()), &fresh) {
                    Ok(claim) => break claim,
                    Err(MdlBusy) => waiting.pause(self, cx, &fresh, true)?,
                }
            };
            self.table_locks.exclusive.push(claim);
        }
        self.plan_context_changed();
        Ok(())
    }
}

/// The current definition of a locked table: the table with its id under any name; otherwise the
/// one that has replaced it.
fn current_def<'s>(
    schema: &'s SchemaSnapshot,
    t: &Locked,
    is_new_claim: impl Fn(TableId) -> bool,
) -> Option<&'s Arc<TableDef>> {
    let named = schema.table(&t.schema, &t.name);
    if let Some(def) = named.filter(|def| def.id == t.id) {
        return Some(def);
    }
    let same = schema.tables().find(|def| def.id == t.id);
    let rebuilt = || schema.tables().find(|def| t.write && is_new_claim(def.id));
    same.or(named).or_else(rebuilt)
}

/// Whether a statement uses the table to change rows.
pub(crate) fn is_write(u: &TableUse) -> bool {
    u.needs != Privileges::SELECT
}

/// The ids that a statement announces: those of existing tables (the binder reports the others),
/// and the permits of the tables that it changes, without the ids that the session has claimed.
pub(crate) fn ids_of(
    uses: &[TableUse],
    schema: &SchemaSnapshot,
    locks: &TableLocks,
) -> Vec<TableId> {
    let mut ids = Vec::with_capacity(uses.len());
    for u in uses {
        let Some(table) = schema.table(&u.schema, &u.name) else {
            continue;
        };
        ids.push(table.id);
        if is_write(u) {
            ids.push(write_permit(table.id));
        }
    }
    ids.retain(|id| !locks.claims(*id));
    ids.sort_unstable();
    ids.dedup();
    ids
}
