//! FLUSH TABLES WITH READ LOCK, LOCK INSTANCE FOR BACKUP, and the announcements of statements that
//! wait for their end; see `session/server_locks.rs`.

use std::sync::Arc;

use nfold_catalog::{SERVER_DDL, SERVER_WRITES, TableId, sharer_of};
use nfold_exec::{ExecCx, SessionEnv};
use nfold_sql::ast::{LockTable, ObjectName};
use nfold_types::{ErrorCode, SqlError};

use crate::session::Session;
use crate::session::response::Response;
use crate::session::server_locks::HeldServerLock;
use crate::session::transaction::MdlWait;

impl Session {
    /// Takes a share of a lock, once no other session's statement is in its way.
    fn share_server_lock(
        &mut self,
        cx: &mut dyn ExecCx,
        id: TableId,
    ) -> Result<HeldServerLock, SqlError> {
        let mdl = self.server.engine.catalog().mdl().clone();
        let mut announced = mdl.slot(self.env.connection_id());
        // No session claims this id.
        let _ = announced.acquire(sharer_of(id));
        let lock = match id {
            SERVER_WRITES => &self.server.read_lock,
            _ => &self.server.backup_lock,
        };
        let mut shared = lock.0.lock();
        let claim = shared.upgrade().unwrap_or_else(|| {
            let claim = Arc::new(mdl.claim_server(id));
            *shared = Arc::downgrade(&claim);
            claim
        });
        drop(shared);
        let held = HeldServerLock {
            claim,
            _announced: announced,
        };
        let mut waiting = MdlWait::new(self);
        while !held.claim.is_alone() {
            waiting.pause(self, cx, &[id], true)?;
        }
        Ok(held)
    }

    /// FLUSH TABLES WITH READ LOCK. The caller has committed.
    ///
    /// # Errors
    /// 1192 under LOCK TABLES; 1205 after `lock_wait_timeout`.
    pub(crate) fn lock_all_tables(&mut self, cx: &mut dyn ExecCx) -> Result<(), SqlError> {
        self.refuse_under_table_locks()?;
        if self.server_locks.reads_only.is_none() {
            let mut waiting = MdlWait::new(self);
            while self.server_locks.backup.is_none() && self.server.backup_lock.is_claimed() {
                waiting.pause(self, cx, &[SERVER_DDL], false)?;
            }
            let held = self.share_server_lock(cx, SERVER_WRITES)?;
            self.server_locks.reads_only = Some(held);
        }
        Ok(())
    }

    /// FLUSH TABLES ... WITH READ LOCK for some tables. The caller has committed.
    ///
    /// # Errors
    /// 1192 under LOCK TABLES, 1347 for a view, and those of LOCK TABLES.
    pub(crate) fn flush_and_lock(
        &mut self,
        cx: &mut dyn ExecCx,
        names: &[ObjectName],
    ) -> Result<(), SqlError> {
        self.refuse_under_table_locks()?;
        self.refresh_schema();
        for name in names {
            let (schema, table) = (self.schema_of(name)?, name.name.as_str());
            if self
                .schema
                .table(&schema, table)
                .is_some_and(|t| t.is_view())
            {
                let code = ErrorCode::ER_WRONG_OBJECT;
                return Err(SqlError::new(code, &[&schema, &table, &"BASE TABLE"]));
            }
        }
        let read = |name: &ObjectName| LockTable {
            name: name.clone(),
            alias: None,
            write: false,
        };
        let list: Vec<LockTable> = names.iter().map(read).collect();
        self.lock_tables(cx, &list).map(|_| ())
    }

    /// Error 1192 under LOCK TABLES.
    fn refuse_under_table_locks(&self) -> Result<(), SqlError> {
        match self.table_locks.is_empty() {
            true => Ok(()),
            false => Err(SqlError::new(ErrorCode::ER_LOCK_OR_ACTIVE_TRANSACTION, &[])),
        }
    }

    /// LOCK INSTANCE FOR BACKUP and UNLOCK INSTANCE.
    ///
    /// # Errors
    /// 1227 without BACKUP_ADMIN; 1205 after `lock_wait_timeout`.
    pub(crate) fn lock_instance(
        &mut self,
        cx: &mut dyn ExecCx,
        lock: bool,
    ) -> Result<Response, SqlError> {
        if !self.rights.held().has_dynamic("BACKUP_ADMIN") {
            let code = ErrorCode::ER_SPECIFIC_ACCESS_DENIED_ERROR;
            return Err(SqlError::new(code, &[&"BACKUP_ADMIN"]));
        }
        if !lock {
            self.server_locks.backup = None;
        } else if self.server_locks.backup.is_none() {
            self.server_locks.backup = Some(self.share_server_lock(cx, SERVER_DDL)?);
        }
        Ok(Response::ok())
    }

    /// UNLOCK TABLES ends FLUSH TABLES WITH READ LOCK.
    pub(crate) fn unlock_all_tables(&mut self) {
        self.server_locks.reads_only = None;
    }

    /// Ends all locks of this kind (the end of the session).
    pub(crate) fn release_server_locks(&mut self) {
        self.server_locks.reads_only = None;
        self.server_locks.backup = None;
    }

    /// Error 1223 under the session's own FLUSH TABLES WITH READ LOCK.
    pub(crate) fn refuse_under_read_lock(&self) -> Result<(), SqlError> {
        match self.server_locks.reads_only {
            None => Ok(()),
            Some(_) => Err(SqlError::new(ErrorCode::ER_CANT_UPDATE_WITH_READLOCK, &[])),
        }
    }

    /// Announces a statement that changes stored rows (I6 of `mdl`), after other sessions' FLUSH
    /// TABLES WITH READ LOCK have ended. `ddl`: it changes definitions or accounts, and waits for
    /// LOCK INSTANCE FOR BACKUP as well.
    ///
    /// # Errors
    /// 1223 under the session's own lock; 1205 after `lock_wait_timeout`.
    #[inline]
    pub(crate) fn announce_change(
        &mut self,
        cx: &mut dyn ExecCx,
        ddl: bool,
    ) -> Result<(), SqlError> {
        if !ddl && self.engine.mdl_ref().is_in_server() {
            return Ok(());
        }
        self.refuse_under_read_lock()?;
        let writes = !self.table_locks.announce_changes();
        let ddl = ddl && self.server_locks.backup.is_none();
        match self.engine.mdl().enter_server(writes, ddl) {
            Ok(()) => Ok(()),
            Err(_) => self.wait_for_server_locks(cx, writes, ddl),
        }
    }

    #[cold]
    fn wait_for_server_locks(
        &mut self,
        cx: &mut dyn ExecCx,
        writes: bool,
        ddl: bool,
    ) -> Result<(), SqlError> {
        let wanted = [SERVER_WRITES, SERVER_DDL];
        let wanted = &wanted[usize::from(!writes)..1 + usize::from(ddl)];
        let mut waiting = MdlWait::new(self);
        while self.engine.mdl().enter_server(writes, ddl).is_err() {
            waiting.pause(self, cx, wanted, false)?;
        }
        Ok(())
    }

    /// Announces a statement that changes definitions, until [`Self::end_ddl`].
    pub(crate) fn begin_ddl(&mut self, cx: &mut dyn ExecCx) -> Result<(), SqlError> {
        self.announce_change(cx, true)?;
        self.server_locks.in_ddl = true;
        Ok(())
    }

    pub(crate) fn end_ddl(&mut self) {
        self.server_locks.in_ddl = false;
        self.end_change();
    }

    /// The end of a statement that may have changed rows.
    #[inline]
    pub(crate) fn end_change(&mut self) {
        if !self.server_locks.in_ddl {
            self.engine.mdl().leave_server();
        }
    }
}
