//! XA transactions of a source: they are prepared here, too, and end with the source's statement.
//!
//! # Picture
//! ```text
//! XA START ─▶ rows ─▶ XA END
//!   ─▶ coordinates with the step ─▶ XA PREPARE ─▶ coordinates behind it
//!                                │
//!                                └ crash: the step is done if the branch is prepared
//! XA COMMIT, XA ROLLBACK: the same, and the step is done if the branch is gone
//! ```
//! # Invariants
//! - B1: the coordinates behind XA PREPARE cannot be a part of the prepared transaction, because
//!   its changes count only after its commit. So each step has coordinates of its own, which name
//!   the step ([`BranchStep`]) and are written to the log before it. If the step is durable, they
//!   are.
//! - B2: nothing else prepares or ends the branch between the two. After a crash the coordinates
//!   are resolved when the server begins to serve.
//! - B3: XA COMMIT ... ONE PHASE is a commit like any other: its transaction has the coordinates.

use nfold_binlog::{Header, QueryContext, QueryEvent, XaPrepareEvent};
use nfold_replica::{BranchStep, Coordinates};
use nfold_sql::ast::{Statement, Xa};
use nfold_types::{ErrorCode, SqlError};

use super::applier::{Applier, Refusal, writable_gtid};
use crate::session::branch::xid_of;
use crate::session::replication::{CHANNEL, pending};

impl Applier {
    /// XA START: the beginning of a transaction. It begins even if the filter leaves out all of its
    /// rows, so that its end has something to end.
    pub(super) fn start_branch(
        &mut self,
        header: &Header,
        context: &QueryContext,
        sql: Vec<u8>,
    ) -> Result<(), Refusal> {
        self.in_transaction = true;
        if self.skips {
            return Ok(());
        }
        self.settings(header, context)?;
        self.run_in_branch(sql)
    }

    /// Runs a statement of the transaction at hand.
    pub(super) fn run_in_branch(&mut self, sql: Vec<u8>) -> Result<(), Refusal> {
        if self.skips {
            return Ok(());
        }
        self.thread
            .run(move |cx, session| session.run_internal(cx, &sql))?;
        Ok(())
    }

    /// The transaction at hand is prepared, or commits in one phase.
    pub(super) fn prepare_branch(&mut self, event: &XaPrepareEvent) -> Result<(), Refusal> {
        if !self.in_transaction {
            let text = "the end of an XA transaction that has no beginning";
            return Err(Refusal::Other(text.into()));
        }
        let after = self.after();
        let branch = &event.branch;
        if self.skips {
            self.committed_to(after);
        } else if event.one_phase {
            let sql = format!("XA COMMIT {branch} ONE PHASE");
            let data = pending(&after).data;
            let gtid = self.gtid.as_ref().and_then(writable_gtid);
            self.thread.run(move |cx, session| {
                session.source_gtid = gtid;
                let engine = session.server.engine.clone();
                let stored = engine.put_coordinates(&mut session.engine, CHANNEL, &data);
                stored.map_err(|e| nfold_exec::engine_error(&e))?;
                session.run_internal(cx, sql.as_bytes())?;
                session.note_commit();
                Ok(())
            })?;
            self.committed_to(after);
        } else {
            let step = BranchStep {
                prepares: true,
                branch: xid_of(branch).encode(),
                after,
            };
            self.step(format!("XA PREPARE {branch}").into(), step)?;
        }
        self.in_transaction = false;
        Ok(())
    }

    /// XA COMMIT or XA ROLLBACK of a prepared branch.
    pub(super) fn end_branch(&mut self, header: &Header, query: QueryEvent) -> Result<(), Refusal> {
        if self.skips {
            let after = self.after();
            self.committed_to(after);
            return Ok(());
        }
        self.settings(header, &query.context)?;
        let unsupported = || SqlError::not_supported("this form of an XA statement");
        let Statement::Xa(xa) = self.parse(query.sql.clone())? else {
            return Err(unsupported().into());
        };
        let (Xa::Rollback(xid)
        | Xa::Commit {
            xid,
            one_phase: false,
        }) = *xa
        else {
            return Err(unsupported().into());
        };
        let step = BranchStep {
            prepares: false,
            branch: xid.encode(),
            after: self.after(),
        };
        self.step(query.sql, step)
    }

    /// Does a step together with its coordinates (B1).
    fn step(&mut self, sql: Vec<u8>, step: BranchStep) -> Result<(), Refusal> {
        let after = step.after.clone();
        self.store(&Coordinates {
            step: Some(Box::new(step)),
            ..self.committed.clone()
        })?;
        let gtid = self.gtid.as_ref().and_then(writable_gtid);
        let shown = String::from_utf8_lossy(&sql).into_owned();
        let done = self.thread.run(move |cx, session| {
            session.source_gtid = gtid;
            session.run_internal(cx, &sql)?;
            session.note_commit();
            Ok(())
        });
        match done {
            Ok(()) => {
                self.store(&after)?;
                self.committed_to(after);
                Ok(())
            }
            Err(e) => {
                let before = self.committed.clone();
                self.store(&before)?;
                Err(match e.code {
                    ErrorCode::ER_XAER_NOTA => self.unknown_branch(&e, &shown).into(),
                    _ => e.into(),
                })
            }
        }
    }

    /// The error at the end of a branch that is not prepared here, with its cause and what to do.
    fn unknown_branch(&self, error: &SqlError, statement: &str) -> SqlError {
        let past = match &self.gtid {
            Some(gtid) => format!("SET GLOBAL gtid_purged = '+{gtid}'"),
            None => format!(
                "CHANGE REPLICATION SOURCE TO SOURCE_LOG_FILE = '{}', SOURCE_LOG_POS = {}",
                self.file, self.position
            ),
        };
        SqlError::with_message(
            error.code,
            format!(
                "{}: '{statement}' ends a branch that is not prepared here. Either it was prepared \
                 on the source before the position at which this channel began, and its rows are \
                 not here, or it was ended here. If the source committed it, copy the source \
                 again. If it was rolled back, {past} goes past this event",
                error.message
            ),
        )
    }

    fn store(&self, at: &Coordinates) -> Result<(), SqlError> {
        let stored = (self.server.engine).put_coordinates_alone(CHANNEL, &pending(at).data);
        stored.map_err(|e| nfold_exec::engine_error(&e))
    }
}
