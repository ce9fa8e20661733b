//! `gtid_next`: the GTID that the session's next transaction gets, in place of one of this server.
//!
//! # Picture
//! ```text
//! SET gtid_next = 'uuid:7' ─▶ Owned ─ COMMIT, a DDL statement ─▶ Ended ─▶ SET gtid_next = ...
//!                        │      └──── ROLLBACK ────────────────▶   ▲
//!                        └▶ Executed: changes are left out ────────┘
//! ```
//! # Invariants
//! - N1: at most one session owns a GTID, and none that is executed. The transaction that takes the
//!   GTID keeps it owned until the GTID is executed.

use std::time::Duration;

use nfold_binlog::{BinlogError, Gtid, SourceUuid};
use nfold_exec::ExecCx;
use nfold_types::{ErrorCode, SqlError};

use super::Session;
use super::gate::{Gate, NextGtid, NextGtidState};
use super::replication::ChannelPhase;
use crate::binlog::{BinaryLog, GtidClaim};

/// The time between two attempts for a GTID that another session owns.
const PAUSE: Duration = Duration::from_millis(2);

/// A value of `gtid_next`.
enum Wanted {
    Automatic,
    Anonymous,
    Gtid(SourceUuid, u64),
}

impl Wanted {
    /// # Errors
    /// 1774; 1235 for a tag.
    fn parse(text: &str) -> Result<Wanted, SqlError> {
        let bad = || SqlError::new(ErrorCode::ER_MALFORMED_GTID_SPECIFICATION, &[&text]);
        let tagged = || SqlError::not_supported("gtid_next with a tag");
        if let Some((first, tag)) = text.split_once(':')
            && first.eq_ignore_ascii_case("AUTOMATIC")
        {
            let is_tag = nfold_binlog::Tag::parse(tag.trim()).is_some();
            return Err(if is_tag { tagged() } else { bad() });
        }
        if text.eq_ignore_ascii_case("AUTOMATIC") {
            return Ok(Wanted::Automatic);
        }
        if text.eq_ignore_ascii_case("ANONYMOUS") {
            return Ok(Wanted::Anonymous);
        }
        match Gtid::parse(text) {
            Ok(Gtid::MySql { uuid, tag, number }) if tag.as_str().is_empty() => {
                Ok(Wanted::Gtid(uuid, number))
            }
            Ok(Gtid::MySql { .. }) => Err(tagged()),
            Ok(Gtid::MariaDb { .. }) | Err(BinlogError::Gtid(_)) | Err(_) => Err(bad()),
        }
    }
}

impl Session {
    /// The GTID of `gtid_next`.
    pub(crate) fn next_gtid(&self) -> Option<NextGtid> {
        self.gate.as_ref().and_then(|gate| gate.next_gtid)
    }

    /// Sets the GTID, without a claim.
    pub(super) fn set_next_gtid(&mut self, next: Option<NextGtid>) {
        if next.is_none() && self.gate.is_none() {
            return;
        }
        let gate = self.gate.get_or_insert_with(Gate::of_ordinary_account);
        gate.next_gtid = next;
        if !gate.is_needed() {
            self.gate = None;
        }
    }

    /// SET gtid_next. Returns the value in its usual form.
    ///
    /// # Errors
    /// 1774, 1766, 1790, 1781, 1782; 1235 without a binary log, and for a GTID of this server.
    pub(crate) fn assign_next_gtid(
        &mut self,
        cx: &mut dyn ExecCx,
        text: &str,
    ) -> Result<String, SqlError> {
        let wanted = Wanted::parse(text)?;
        let autocommit = self.env.vars.settings().autocommit;
        if self.engine.in_transaction() && (self.engine.is_explicit() || !autocommit) {
            let code = ErrorCode::ER_VARIABLE_NOT_SETTABLE_IN_TRANSACTION;
            return Err(SqlError::new(code, &[&"gtid_next"]));
        }
        if let Some(next) = self.next_gtid()
            && next.state == NextGtidState::Owned
        {
            let code = ErrorCode::ER_CANT_SET_GTID_NEXT_WHEN_OWNING_GTID;
            let error = SqlError::new(code, &[&next.text()]);
            // As in MySQL, the statement that fails ends the ownership.
            self.next_gtid_rolled_back();
            return Err(error);
        }
        let log = self.server.binlog.clone().filter(|log| log.is_active());
        let gtids = &*self.server.text("gtid_mode") == "ON";
        let next = match wanted {
            Wanted::Automatic => None,
            Wanted::Anonymous if gtids => {
                let code = ErrorCode::ER_CANT_SET_GTID_NEXT_TO_ANONYMOUS_WHEN_GTID_MODE_IS_ON;
                return Err(SqlError::new(code, &[]));
            }
            Wanted::Anonymous => None,
            Wanted::Gtid(..) if !gtids => {
                let code = ErrorCode::ER_CANT_SET_GTID_NEXT_TO_GTID_WHEN_GTID_MODE_IS_OFF;
                return Err(SqlError::new(code, &[]));
            }
            Wanted::Gtid(uuid, number) => {
                let Some(log) = log.filter(|_| self.env.vars.settings().sql_log_bin) else {
                    let what = "gtid_next = UUID:NUMBER without a binary log";
                    return Err(SqlError::not_supported(what));
                };
                let state = self.claim_gtid(cx, &log, (uuid, number))?;
                Some(NextGtid {
                    uuid,
                    number,
                    state,
                })
            }
        };
        self.source_gtid = next
            .filter(|next| next.state == NextGtidState::Owned)
            .map(|next| (next.uuid, next.number));
        self.set_next_gtid(next);
        Ok(match (wanted, next) {
            (_, Some(next)) => next.text(),
            (Wanted::Anonymous, None) => "ANONYMOUS".into(),
            _ => "AUTOMATIC".into(),
        })
    }

    /// Makes the session the owner of a GTID, unless it is executed (N1).
    fn claim_gtid(
        &self,
        cx: &mut dyn ExecCx,
        log: &BinaryLog,
        gtid: (SourceUuid, u64),
    ) -> Result<NextGtidState, SqlError> {
        let (uuid, number) = gtid;
        let whole = Gtid::MySql {
            uuid,
            tag: nfold_binlog::Tag::default(),
            number,
        };
        loop {
            if self.server.replication.applied_gtids().contains(&whole) {
                return Ok(NextGtidState::Executed);
            }
            match log.claim_gtid(gtid, self.env.login.connection_id) {
                GtidClaim::Executed => return Ok(NextGtidState::Executed),
                GtidClaim::Granted if uuid == log.uuid() => {
                    log.disown_gtid(gtid);
                    let what = "gtid_next with the server_uuid of this server";
                    return Err(SqlError::not_supported(what));
                }
                GtidClaim::Granted if self.channel_applies(&whole) => log.disown_gtid(gtid),
                GtidClaim::Granted => return Ok(NextGtidState::Owned),
                GtidClaim::Busy => {}
            }
            cx.sleep(PAUSE).map_err(nfold_exec::Interrupt::to_sql)?;
        }
    }

    /// Waits until no client owns the GTID of a source's transaction. Returns whether it is
    /// executed.
    pub(crate) fn waits_for_owner(
        &self,
        cx: &mut dyn ExecCx,
        log: &BinaryLog,
        gtid: (SourceUuid, u64),
    ) -> Result<bool, SqlError> {
        loop {
            match log.claim_gtid(gtid, self.env.login.connection_id) {
                GtidClaim::Executed => return Ok(true),
                GtidClaim::Granted => {
                    // A client that gets it from now on sees that the channel applies it.
                    log.disown_gtid(gtid);
                    return Ok(false);
                }
                GtidClaim::Busy => cx.sleep(PAUSE).map_err(nfold_exec::Interrupt::to_sql)?,
            }
        }
    }

    /// Whether the replication channel has received a transaction and is about to apply it.
    fn channel_applies(&self, gtid: &Gtid) -> bool {
        self.server.replication.with_status(|status| {
            status.phase != ChannelPhase::Stopped
                && status.retrieved.contains(gtid)
                && !status.applied.gtids.contains(gtid)
        })
    }

    /// The session's transaction has taken the GTID. It stays owned until it is in the binary log.
    pub(crate) fn next_gtid_was_logged(&mut self) {
        self.end_next_gtid(false);
    }

    /// The session's transaction, or a statement outside of one, was rolled back.
    pub(crate) fn next_gtid_rolled_back(&mut self) {
        self.end_next_gtid(true);
    }

    fn end_next_gtid(&mut self, disowns: bool) {
        let Some(next) = self.gate.as_mut().and_then(|gate| gate.next_gtid.as_mut()) else {
            return;
        };
        let state = std::mem::replace(&mut next.state, NextGtidState::Ended);
        if let (NextGtidState::Owned, true, Some(log)) = (state, disowns, &self.server.binlog) {
            log.disown_gtid((next.uuid, next.number));
        }
        if state != NextGtidState::Ended {
            self.source_gtid = None;
        }
    }

    /// COMMIT: a GTID that no change has taken becomes an empty transaction.
    pub(crate) fn commit_next_gtid(&mut self, cx: &mut dyn ExecCx) -> Result<(), SqlError> {
        let Some(next) = self.next_gtid() else {
            return Ok(());
        };
        if next.state == NextGtidState::Owned
            && let Some(bytes) = self.empty_transaction()
        {
            let engine = self.server.engine.clone();
            let done = self.change(cx, move || engine.commit_attachment(bytes));
            self.end_next_gtid(done.is_err());
            return done;
        }
        self.end_next_gtid(true);
        Ok(())
    }

    /// After a DDL statement with a GTID, of `gtid_next` or of a source. `left`: its event, if it
    /// has changed nothing; as in MySQL the binary log gets it nevertheless.
    pub(crate) fn end_ddl_gtid(
        &mut self,
        cx: &mut dyn ExecCx,
        left: Option<Vec<u8>>,
        succeeded: bool,
    ) -> Result<(), SqlError> {
        let owned = self.next_gtid().map(|next| next.state) == Some(NextGtidState::Owned);
        let owns = owned || self.rights.is_replica() && self.source_gtid.is_some();
        let mut done = Ok(());
        if let (true, true, Some(bytes)) = (owns, succeeded, left) {
            let engine = self.server.engine.clone();
            done = self.change(cx, move || engine.commit_attachment(bytes));
        }
        if owned {
            self.end_next_gtid(!succeeded || done.is_err());
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gtid_next_is_one_gtid_or_a_word() {
        const UUID: &str = "3E11FA47-71CA-11E1-9E33-C80AA9429562";
        let number = |text: &str| match Wanted::parse(text) {
            Ok(Wanted::Gtid(_, number)) => Ok(number),
            Ok(_) => Ok(0),
            Err(e) => Err(e.errno()),
        };
        assert_eq!(number(&format!(" {UUID} : 7 ")), Ok(7));
        assert_eq!(number("automatic"), Ok(0));
        for bad in [
            "",
            "x",
            &format!("{UUID}:0"),
            &format!("{UUID}:1-2"),
            "1-2-3",
            "AUTOMATIC:9",
        ] {
            assert_eq!(number(bad), Err(1774), "{bad}");
        }
        assert_eq!(number(&format!("{UUID}:tag:7")), Err(1235));
        assert_eq!(number("AUTOMATIC:tag"), Err(1235));
    }
}
