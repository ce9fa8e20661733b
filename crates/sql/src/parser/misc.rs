//! Dispatches statements by their first word, and parses the short ones.

use super::{Deprecated, Parser, Result};
use crate::ast::*;
use crate::keywords::Kw;
use crate::lexer::TokenKind;

impl Parser<'_> {
    /// Parses a statement according to its first word.
    pub(super) fn statement(&mut self) -> Result<Statement> {
        self.into_allowed = matches!(self.kw(), Kw::SELECT | Kw::WITH | Kw::VALUES | Kw::TABLE)
            || self.is(TokenKind::LParen);
        if self.is(TokenKind::LParen) {
            return Ok(Statement::Query(Box::new(self.query_statement()?)));
        }
        match self.kw() {
            Kw::SELECT | Kw::VALUES | Kw::TABLE => {
                Ok(Statement::Query(Box::new(self.query_statement()?)))
            }
            Kw::WITH => self.with_statement(),
            Kw::INSERT | Kw::REPLACE => self.insert(),
            Kw::UPDATE => self.update(None),
            Kw::DELETE => self.delete(None),
            Kw::LOAD => self.load(),
            Kw::DO => {
                self.advance();
                Ok(Statement::Do(self.comma_list(|p| {
                    let expr = p.expr()?;
                    p.select_alias()?;
                    Ok(expr)
                })?))
            }
            Kw::CREATE => self.create(),
            Kw::DROP => self.drop_statement(),
            Kw::ALTER => self.alter(),
            Kw::TRUNCATE => {
                self.advance();
                self.accept_kw(Kw::TABLE);
                Ok(Statement::Truncate(self.object_name()?))
            }
            Kw::RENAME => self.rename(),
            Kw::BEGIN => {
                self.advance();
                self.accept_kw(Kw::WORK);
                Ok(Statement::Begin(BeginOptions::default()))
            }
            Kw::START => self.start_transaction(),
            Kw::COMMIT => self.commit(),
            Kw::ROLLBACK => self.rollback(),
            Kw::SAVEPOINT => {
                self.advance();
                Ok(Statement::Savepoint(self.ident()?))
            }
            Kw::RELEASE => {
                self.advance();
                self.expect_kw(Kw::SAVEPOINT)?;
                Ok(Statement::ReleaseSavepoint(self.ident()?))
            }
            Kw::XA => self.xa(),
            Kw::LOCK => self.lock(),
            Kw::UNLOCK => self.unlock(),
            Kw::SET => self.set(),
            Kw::USE => {
                self.advance();
                Ok(Statement::Use(self.database_name()?))
            }
            Kw::KILL => self.kill(),
            Kw::PREPARE => self.prepare(),
            Kw::EXECUTE => self.execute(),
            Kw::DEALLOCATE => {
                self.advance();
                self.expect_kw(Kw::PREPARE)?;
                Ok(Statement::Deallocate(self.ident()?))
            }
            Kw::HANDLER => self.handler(),
            Kw::SIGNAL => self.signal(),
            Kw::RESIGNAL => self.resignal(),
            Kw::GET => self.get_diagnostics(),
            Kw::SHOW => self.show(),
            Kw::DESCRIBE | Kw::DESC | Kw::EXPLAIN => self.explain(),
            Kw::CHECK => self.maintenance(MaintenanceKind::Check),
            Kw::ANALYZE => self.maintenance(MaintenanceKind::Analyze),
            Kw::OPTIMIZE => self.maintenance(MaintenanceKind::Optimize),
            Kw::REPAIR => self.maintenance(MaintenanceKind::Repair),
            Kw::CHECKSUM => self.maintenance(MaintenanceKind::Checksum),
            Kw::FLUSH => self.flush(),
            Kw::CHANGE => self.change_source(),
            Kw::STOP => self.stop_replica(),
            Kw::RESET => self.reset(),
            Kw::PURGE => self.purge(),
            Kw::BINLOG => {
                self.advance();
                Ok(Statement::Binlog(self.string()?))
            }
            Kw::GRANT => self.grant(),
            Kw::REVOKE => self.revoke(),
            Kw::INSTALL => self.install(),
            Kw::UNINSTALL => self.uninstall(),
            kw => match unsupported_verb(kw) {
                Some(what) => self.unsupported(what),
                None => self.unexpected(),
            },
        }
    }

    /// A statement of MySQL that the server does not support. The rest of its text is not parsed.
    pub(super) fn unsupported(&mut self, what: &'static str) -> Result<Statement> {
        self.rest_of_statement();
        Ok(Statement::Unsupported { what })
    }

    /// `WITH … SELECT|UPDATE|DELETE`
    fn with_statement(&mut self) -> Result<Statement> {
        let start = self.save();
        let with = self.with()?;
        match self.kw() {
            Kw::UPDATE => self.update(with),
            Kw::DELETE => self.delete(with),
            _ => {
                self.restore(start);
                Ok(Statement::Query(Box::new(self.query()?)))
            }
        }
    }

    /// `RENAME TABLE a TO b, …`, `RENAME USER a TO b, …`
    fn rename(&mut self) -> Result<Statement> {
        self.advance();
        if self.accept_kw(Kw::USER) {
            return Ok(Statement::RenameUser(self.comma_list(|p| {
                let old = p.account()?;
                p.expect_kw(Kw::TO)?;
                Ok((old, p.account()?))
            })?));
        }
        if !self.accept_kw(Kw::TABLE) {
            self.expect_kw(Kw::TABLES)?;
        }
        Ok(Statement::RenameTable(self.comma_list(|p| {
            let old = p.object_name()?;
            p.expect_kw(Kw::TO)?;
            Ok((old, p.object_name()?))
        })?))
    }

    fn kill(&mut self) -> Result<Statement> {
        self.advance();
        let target = match self.kw() {
            Kw::QUERY => KillTarget::Query,
            _ => KillTarget::Connection,
        };
        if matches!(self.kw(), Kw::QUERY | Kw::CONNECTION) {
            self.advance();
        }
        Ok(Statement::Kill {
            target,
            id: self.expr()?,
        })
    }

    fn prepare(&mut self) -> Result<Statement> {
        self.advance();
        let name = self.ident()?;
        self.expect_kw(Kw::FROM)?;
        let source = if self.is(TokenKind::UserVar) {
            PrepareSource::Variable(self.user_var()?)
        } else {
            PrepareSource::Text(self.string()?)
        };
        Ok(Statement::Prepare { name, source })
    }

    fn execute(&mut self) -> Result<Statement> {
        self.advance();
        let name = self.ident()?;
        let using = if self.accept_kw(Kw::USING) {
            self.comma_list(Self::user_var)?
        } else {
            Vec::new()
        };
        Ok(Statement::Execute { name, using })
    }

    /// `[NO_WRITE_TO_BINLOG|LOCAL]`
    fn no_binlog(&mut self) -> bool {
        self.accept_kw(Kw::NO_WRITE_TO_BINLOG) || self.accept_kw(Kw::LOCAL)
    }

    fn maintenance(&mut self, kind: MaintenanceKind) -> Result<Statement> {
        self.advance();
        let no_write_to_binlog =
            !matches!(kind, MaintenanceKind::Check | MaintenanceKind::Checksum) && self.no_binlog();
        if !self.accept_kw(Kw::TABLE) {
            self.expect_kw(Kw::TABLES)?;
        }
        let tables = self.comma_list(Self::object_name)?;
        let (mut options, mut histogram) = (Vec::new(), None);
        loop {
            let known: &[Kw] = match kind {
                MaintenanceKind::Check => &[
                    Kw::QUICK,
                    Kw::FAST,
                    Kw::MEDIUM,
                    Kw::EXTENDED,
                    Kw::CHANGED,
                    Kw::FOR,
                ],
                MaintenanceKind::Repair => &[Kw::QUICK, Kw::EXTENDED, Kw::USE_FRM],
                MaintenanceKind::Checksum => &[Kw::QUICK, Kw::EXTENDED],
                MaintenanceKind::Analyze => &[Kw::UPDATE, Kw::DROP],
                MaintenanceKind::Optimize => &[],
            };
            if !known.contains(&self.kw()) {
                break;
            }
            match self.advance().kw {
                Kw::FOR => {
                    self.expect_kw(Kw::UPGRADE)?;
                    options.push("FOR UPGRADE".to_string());
                }
                kw @ (Kw::UPDATE | Kw::DROP) => {
                    histogram = Some(self.histogram(kw == Kw::UPDATE)?);
                    break;
                }
                kw => options.push(kw.name().to_string()),
            }
        }
        Ok(Statement::TableMaintenance(TableMaintenance {
            kind,
            no_write_to_binlog,
            tables,
            options,
            histogram,
        }))
    }

    /// `HISTOGRAM ON …`, after UPDATE or DROP.
    fn histogram(&mut self, update: bool) -> Result<HistogramChange> {
        self.expect_kw(Kw::HISTOGRAM)?;
        self.expect_kw(Kw::ON)?;
        let columns = self.comma_list(Self::ident)?;
        let update = match update {
            false => None,
            true => {
                let mut update = HistogramUpdate {
                    buckets: None,
                    auto_update: false,
                    data: None,
                };
                if self.accept_kw(Kw::USING) {
                    self.expect_kw(Kw::DATA)?;
                    update.data = Some(self.string()?);
                } else {
                    if self.accept_kw(Kw::WITH) {
                        update.buckets = Some(self.number()?);
                        self.expect_kw(Kw::BUCKETS)?;
                    }
                    update.auto_update = self.at(Kw::AUTO);
                    if update.auto_update || self.at(Kw::MANUAL) {
                        self.advance();
                        self.expect_kw(Kw::UPDATE)?;
                    }
                }
                Some(update)
            }
        };
        Ok(HistogramChange { columns, update })
    }

    /// `RESET PERSIST [[IF EXISTS] name]`, or RESET of something else.
    fn reset(&mut self) -> Result<Statement> {
        self.advance();
        if !self.accept_kw(Kw::PERSIST) {
            return self.reset_replica();
        }
        let if_exists = self.if_exists()?;
        let name = match if_exists || self.at_ident() {
            true => Some(self.persisted_name()?),
            false => None,
        };
        Ok(Statement::ResetPersist { if_exists, name })
    }

    /// The name of a variable, which may be one of a component.
    fn persisted_name(&mut self) -> Result<Ident> {
        let mut name = self.ident()?;
        if self.accept(TokenKind::Dot) {
            name.value.push('.');
            name.value.push_str(&self.ident_after_dot()?.value);
        }
        Ok(name)
    }

    fn flush(&mut self) -> Result<Statement> {
        self.advance();
        let no_write_to_binlog = self.no_binlog();
        if matches!(self.kw(), Kw::TABLE | Kw::TABLES) {
            self.advance();
            let names = if self.at_ident() {
                self.comma_list(Self::object_name)?
            } else {
                Vec::new()
            };
            let read_lock = self.accept_kws(&[Kw::WITH, Kw::READ, Kw::LOCK])?;
            let for_export =
                !read_lock && !names.is_empty() && self.accept_kws(&[Kw::FOR, Kw::EXPORT])?;
            let what = vec![FlushItem::Tables {
                names,
                read_lock,
                for_export,
            }];
            return Ok(Statement::Flush(Flush {
                no_write_to_binlog,
                what,
            }));
        }
        let what = self.comma_list(|p| {
            let first = p.kw();
            let item = match first {
                Kw::PRIVILEGES => {
                    p.deprecated.push(Deprecated::FlushPrivileges);
                    FlushItem::Privileges
                }
                Kw::STATUS => FlushItem::Status,
                Kw::LOGS | Kw::USER_RESOURCES | Kw::OPTIMIZER_COSTS => {
                    FlushItem::Other(first.name().into())
                }
                Kw::BINARY | Kw::ENGINE | Kw::ERROR | Kw::GENERAL | Kw::SLOW | Kw::RELAY => {
                    p.advance();
                    if !p.at(Kw::LOGS) {
                        return p.unexpected();
                    }
                    FlushItem::Other(format!("{} LOGS", first.name()))
                }
                _ => return p.unexpected(),
            };
            p.advance();
            Ok(item)
        })?;
        Ok(Statement::Flush(Flush {
            no_write_to_binlog,
            what,
        }))
    }
}

/// The first words of statements that MySQL supports and this server does not.
fn unsupported_verb(kw: Kw) -> Option<&'static str> {
    Some(match kw {
        Kw::CALL => "CALL",
        Kw::HELP => "HELP",
        Kw::CACHE => "CACHE INDEX",
        Kw::IMPORT => "IMPORT TABLE",
        Kw::CLONE => "CLONE",
        Kw::RESTART => "RESTART",
        Kw::SHUTDOWN => "SHUTDOWN",
        _ => return None,
    })
}
