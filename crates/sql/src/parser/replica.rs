//! CHANGE REPLICATION SOURCE TO, START, STOP and RESET REPLICA, with their older names.

use super::{Parser, Result};
use crate::ast::{
    ChangeFilter, ChangeSource, FilterRule, ReplicaUntil, SourceOption, SourceValue, Statement,
};
use crate::keywords::Kw;
use crate::lexer::TokenKind;

impl Parser<'_> {
    /// `CHANGE REPLICATION SOURCE TO option = value, … [FOR CHANNEL 'name']`, `CHANGE MASTER TO …`
    pub(super) fn change_source(&mut self) -> Result<Statement> {
        self.advance();
        if !self.accept_kw(Kw::MASTER) {
            self.expect_kw(Kw::REPLICATION)?;
            if self.accept_kw(Kw::FILTER) {
                return self.change_filter();
            }
            self.expect_kw(Kw::SOURCE)?;
        }
        self.expect_kw(Kw::TO)?;
        let options = self.comma_list(|p| {
            let name = p.ident()?.value.to_ascii_uppercase();
            let name = match name.strip_prefix("MASTER_") {
                Some(rest) => format!("SOURCE_{rest}"),
                None => name,
            };
            p.expect(TokenKind::Eq)?;
            Ok(SourceOption {
                name,
                value: p.source_value()?,
            })
        })?;
        let channel = self.for_channel()?;
        Ok(Statement::ChangeSource(ChangeSource { options, channel }))
    }

    /// The rest of `CHANGE REPLICATION FILTER rule = (…), … [FOR CHANNEL 'name']`
    fn change_filter(&mut self) -> Result<Statement> {
        let rules = self.comma_list(Self::filter_rule)?;
        let channel = self.for_channel()?;
        Ok(Statement::ChangeFilter(ChangeFilter { rules, channel }))
    }

    fn filter_rule(&mut self) -> Result<FilterRule> {
        let name = |p: &mut Self| Ok(p.ident()?.value);
        let pattern = |p: &mut Self| Ok(String::from_utf8_lossy(&p.string()?).into_owned());
        Ok(match self.kw() {
            Kw::REPLICATE_DO_DB => FilterRule::DoDb(self.filter_list(name)?),
            Kw::REPLICATE_IGNORE_DB => FilterRule::IgnoreDb(self.filter_list(name)?),
            Kw::REPLICATE_DO_TABLE => FilterRule::DoTable(self.filter_list(Self::table_pair)?),
            Kw::REPLICATE_IGNORE_TABLE => {
                FilterRule::IgnoreTable(self.filter_list(Self::table_pair)?)
            }
            Kw::REPLICATE_WILD_DO_TABLE => FilterRule::WildDoTable(self.filter_list(pattern)?),
            Kw::REPLICATE_WILD_IGNORE_TABLE => {
                FilterRule::WildIgnoreTable(self.filter_list(pattern)?)
            }
            Kw::REPLICATE_REWRITE_DB => {
                FilterRule::RewriteDb(self.filter_list(Self::database_pair)?)
            }
            _ => return self.unexpected(),
        })
    }

    /// `= ([item, …])`, with the cursor on the name of the rule.
    fn filter_list<T>(&mut self, item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        self.advance();
        self.expect(TokenKind::Eq)?;
        self.expect(TokenKind::LParen)?;
        if self.accept(TokenKind::RParen) {
            return Ok(Vec::new());
        }
        let list = self.comma_list(item)?;
        self.expect(TokenKind::RParen)?;
        Ok(list)
    }

    /// `database.table`
    fn table_pair(&mut self) -> Result<(String, String)> {
        let database = self.ident()?.value;
        self.expect(TokenKind::Dot)?;
        Ok((database, self.ident()?.value))
    }

    /// `(from, to)`
    fn database_pair(&mut self) -> Result<(String, String)> {
        self.expect(TokenKind::LParen)?;
        let from = self.ident()?.value;
        self.expect(TokenKind::Comma)?;
        let to = self.ident()?.value;
        self.expect(TokenKind::RParen)?;
        Ok((from, to))
    }

    fn source_value(&mut self) -> Result<SourceValue> {
        if self.is(TokenKind::Str) {
            return Ok(SourceValue::Text(self.string()?));
        }
        let text = String::from_utf8_lossy(self.bytes()).into_owned();
        if self.is(TokenKind::Word) {
            self.advance();
            return Ok(SourceValue::Word(text));
        }
        match text.parse::<f64>() {
            Ok(_) => {
                self.advance();
                Ok(SourceValue::Number(text))
            }
            Err(_) => self.unexpected(),
        }
    }

    /// The rest of START REPLICA, with the cursor behind START.
    pub(super) fn start_replica(&mut self) -> Result<Statement> {
        self.advance();
        if self.replica_threads()?.is_none() {
            return self.unsupported("START REPLICA of one of its threads");
        }
        let until = match self.accept_kw(Kw::UNTIL) {
            true => {
                let of_relay_log = self.at(Kw::RELAY_LOG_FILE) || self.at(Kw::RELAY_LOG_POS);
                if of_relay_log || self.at(Kw::SQL_AFTER_MTS_GAPS) {
                    return self.unsupported("START REPLICA UNTIL a place in the relay log");
                }
                Some(self.replica_until()?)
            }
            false => None,
        };
        if self.at(Kw::USER) || self.at(Kw::PASSWORD) {
            return self.unsupported("START REPLICA with a user");
        }
        let channel = self.for_channel()?;
        Ok(Statement::StartReplica { until, channel })
    }

    /// What follows START REPLICA UNTIL.
    fn replica_until(&mut self) -> Result<ReplicaUntil> {
        let after = self.accept_kw(Kw::SQL_AFTER_GTIDS);
        if after || self.accept_kw(Kw::SQL_BEFORE_GTIDS) {
            self.expect(TokenKind::Eq)?;
            let set = String::from_utf8_lossy(&self.string()?).into_owned();
            return Ok(match after {
                true => ReplicaUntil::AfterGtids(set),
                false => ReplicaUntil::BeforeGtids(set),
            });
        }
        let (mut file, mut position) = (None, None);
        loop {
            let name = self.ident()?.value.to_ascii_uppercase();
            self.expect(TokenKind::Eq)?;
            match name.as_str() {
                "SOURCE_LOG_FILE" | "MASTER_LOG_FILE" => {
                    file = Some(String::from_utf8_lossy(&self.string()?).into_owned());
                }
                "SOURCE_LOG_POS" | "MASTER_LOG_POS" => position = Some(self.number()?),
                _ => return self.unexpected(),
            }
            if !self.accept(TokenKind::Comma) {
                return Ok(ReplicaUntil::Position { file, position });
            }
        }
    }

    /// `STOP REPLICA [FOR CHANNEL 'name']`
    pub(super) fn stop_replica(&mut self) -> Result<Statement> {
        self.advance();
        if self.at(Kw::GROUP_REPLICATION) {
            return self.unsupported("STOP GROUP_REPLICATION");
        }
        self.replica_word()?;
        if self.replica_threads()?.is_none() {
            return self.unsupported("STOP REPLICA of one of its threads");
        }
        Ok(Statement::StopReplica(self.for_channel()?))
    }

    /// The rest of `RESET REPLICA [ALL] [FOR CHANNEL 'name']`
    pub(super) fn reset_replica(&mut self) -> Result<Statement> {
        if self.accept_kw(Kw::BINARY) {
            for word in [Kw::LOGS, Kw::AND, Kw::GTIDS] {
                self.expect_kw(word)?;
            }
            let to = match self.accept_kw(Kw::TO) {
                true => Some(self.number()?),
                false => None,
            };
            return Ok(Statement::ResetBinaryLogs(to));
        }
        if !self.at(Kw::REPLICA) && !self.at(Kw::SLAVE) {
            return self.unsupported("RESET");
        }
        self.replica_word()?;
        let all = self.accept_kw(Kw::ALL);
        let channel = self.for_channel()?;
        Ok(Statement::ResetReplica { all, channel })
    }

    /// `PURGE {BINARY | MASTER} LOGS {TO 'file' | BEFORE time}`
    pub(super) fn purge(&mut self) -> Result<Statement> {
        self.advance();
        if !self.accept_kw(Kw::MASTER) {
            self.expect_kw(Kw::BINARY)?;
        }
        self.expect_kw(Kw::LOGS)?;
        if self.accept_kw(Kw::BEFORE) {
            return Ok(Statement::PurgeBefore(Box::new(self.expr()?)));
        }
        self.expect_kw(Kw::TO)?;
        let file = self.string()?;
        Ok(Statement::PurgeTo(String::from_utf8_lossy(&file).into()))
    }

    fn replica_word(&mut self) -> Result<()> {
        match self.accept_kw(Kw::SLAVE) {
            true => Ok(()),
            false => self.expect_kw(Kw::REPLICA),
        }
    }

    /// `[IO_THREAD] [, SQL_THREAD]`: `None` if one of the two is named alone.
    fn replica_threads(&mut self) -> Result<Option<()>> {
        let thread = |p: &Self| p.at(Kw::IO_THREAD) || p.at(Kw::SQL_THREAD);
        if !thread(self) {
            return Ok(Some(()));
        }
        let mut named = Vec::new();
        loop {
            if !thread(self) {
                return self.unexpected();
            }
            named.push(self.kw());
            self.advance();
            if !self.accept(TokenKind::Comma) {
                break;
            }
        }
        let both = named.contains(&Kw::IO_THREAD) && named.contains(&Kw::SQL_THREAD);
        Ok(both.then_some(()))
    }

    /// `[FOR CHANNEL 'name']`
    pub(super) fn for_channel(&mut self) -> Result<Option<String>> {
        if !self.accept_kw(Kw::FOR) {
            return Ok(None);
        }
        self.expect_kw(Kw::CHANNEL)?;
        Ok(Some(self.ident_or_text()?))
    }
}
