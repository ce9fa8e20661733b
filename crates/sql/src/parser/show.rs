//! SHOW, DESCRIBE and EXPLAIN.

use super::{Deprecated, Parser, Result};
use crate::ast::*;
use crate::keywords::Kw;
use crate::lexer::TokenKind;
use nfold_types::error::{ErrorCode, SqlError};

impl Parser<'_> {
    pub(super) fn show(&mut self) -> Result<Statement> {
        self.advance();
        let extended = self.at(Kw::EXTENDED) && self.accept_kw(Kw::EXTENDED);
        let full = self.at(Kw::FULL) && self.accept_kw(Kw::FULL);
        if extended || full {
            let fits = matches!(self.kw(), Kw::COLUMNS | Kw::FIELDS | Kw::TABLES)
                || (full && !extended && matches!(self.kw(), Kw::PROCESSLIST))
                || (extended && !full && matches!(self.kw(), Kw::INDEX | Kw::INDEXES | Kw::KEYS));
            if !fits {
                return self.unexpected();
            }
        }
        Ok(Statement::Show(self.show_what(full, extended)?))
    }

    fn show_what(&mut self, full: bool, extended: bool) -> Result<Show> {
        let kw = self.kw();
        if !matches!(kw, Kw::GLOBAL | Kw::SESSION | Kw::LOCAL | Kw::COUNT) {
            if !self.is(TokenKind::Word) || (kw == Kw::Other) {
                return self.unexpected();
            }
            self.advance();
        }
        Ok(match kw {
            Kw::DATABASES | Kw::SCHEMAS => Show::Databases {
                filter: self.filter()?,
            },
            Kw::TABLES => Show::Tables {
                full,
                extended,
                schema: self.in_schema()?,
                filter: self.filter()?,
            },
            Kw::TABLE => {
                self.expect_kw(Kw::STATUS)?;
                Show::TableStatus {
                    schema: self.in_schema()?,
                    filter: self.filter()?,
                }
            }
            Kw::OPEN => {
                self.expect_kw(Kw::TABLES)?;
                Show::OpenTables {
                    schema: self.in_schema()?,
                    filter: self.filter()?,
                }
            }
            Kw::COLUMNS | Kw::FIELDS => Show::Columns {
                full,
                extended,
                table: self.of_table()?,
                filter: self.filter()?,
            },
            Kw::INDEX | Kw::INDEXES | Kw::KEYS => self.show_index(extended)?,
            Kw::CREATE => self.show_create()?,
            Kw::VARIABLES | Kw::STATUS | Kw::GLOBAL | Kw::SESSION | Kw::LOCAL => {
                self.show_values(kw)?
            }
            Kw::PROCESSLIST => Show::ProcessList { full },
            Kw::WARNINGS => Show::Warnings(self.show_limit()?),
            Kw::ERRORS => Show::Errors(self.show_limit()?),
            Kw::COUNT => self.show_count()?,
            Kw::ENGINES => Show::Engines,
            Kw::STORAGE => {
                self.expect_kw(Kw::ENGINES)?;
                Show::Engines
            }
            Kw::ENGINE => self.show_engine()?,
            Kw::GRANTS => self.show_grants()?,
            Kw::PRIVILEGES => Show::Privileges,
            Kw::CHARSET => Show::CharacterSet {
                filter: self.filter()?,
            },
            Kw::CHARACTER | Kw::CHAR => {
                self.expect_kw(Kw::SET)?;
                Show::CharacterSet {
                    filter: self.filter()?,
                }
            }
            Kw::COLLATION => Show::Collation {
                filter: self.filter()?,
            },
            Kw::PLUGINS => Show::Plugins,
            Kw::TRIGGERS => Show::Triggers {
                schema: self.in_schema()?,
                filter: self.filter()?,
            },
            Kw::EVENTS => Show::Events {
                schema: self.in_schema()?,
                filter: self.filter()?,
            },
            Kw::FUNCTION | Kw::PROCEDURE => self.show_routines(kw)?,
            Kw::BINARY
            | Kw::MASTER
            | Kw::BINLOG
            | Kw::RELAYLOG
            | Kw::REPLICA
            | Kw::REPLICAS
            | Kw::SLAVE => self.show_replication(kw)?,
            Kw::PROFILES => {
                self.deprecated.push(Deprecated::Profiles("SHOW PROFILES"));
                Show::Profiles
            }
            Kw::PROFILE => {
                self.deprecated.push(Deprecated::Profiles("SHOW PROFILE"));
                return self.unsupported_show("SHOW PROFILE");
            }
            Kw::PARSE_TREE => return self.unsupported_show("SHOW PARSE_TREE"),
            _ => {
                return Err(super::syntax_error_at(
                    self.text,
                    self.end as usize - kw.name().len(),
                ));
            }
        })
    }

    /// `INDEX FROM table [WHERE expr]`
    fn show_index(&mut self, extended: bool) -> Result<Show> {
        Ok(Show::Index {
            extended,
            table: self.of_table()?,
            filter: match self.accept_kw(Kw::WHERE) {
                true => Some(ShowFilter::Where(self.expr()?)),
                false => None,
            },
        })
    }

    /// `[GLOBAL | SESSION | LOCAL] VARIABLES | STATUS`. `first` is the first word: VARIABLES or
    /// STATUS, behind which the parser is, or the scope, at which it is.
    fn show_values(&mut self, first: Kw) -> Result<Show> {
        let scope = match first {
            Kw::GLOBAL => VarScope::Global,
            _ => VarScope::Session,
        };
        let scoped = !matches!(first, Kw::VARIABLES | Kw::STATUS);
        if scoped {
            self.advance();
        }
        if first == Kw::VARIABLES || scoped && self.accept_kw(Kw::VARIABLES) {
            let filter = self.filter()?;
            return Ok(Show::Variables { scope, filter });
        }
        if scoped {
            self.expect_kw(Kw::STATUS)?;
        }
        let filter = self.filter()?;
        Ok(Show::Status { scope, filter })
    }

    /// `FUNCTION | PROCEDURE STATUS`; `kind` is the first word.
    fn show_routines(&mut self, kind: Kw) -> Result<Show> {
        if self.accept_kw(Kw::CODE) {
            return self.unsupported_show("SHOW PROCEDURE CODE");
        }
        self.expect_kw(Kw::STATUS)?;
        let filter = self.filter()?;
        Ok(match kind {
            Kw::FUNCTION => Show::FunctionStatus { filter },
            _ => Show::ProcedureStatus { filter },
        })
    }

    /// The statements about binary logs and replicas; `first` is their first word.
    fn show_replication(&mut self, first: Kw) -> Result<Show> {
        Ok(match first {
            Kw::BINARY if self.accept_kw(Kw::LOGS) => Show::BinaryLogs,
            Kw::BINARY => {
                self.expect_kw(Kw::LOG)?;
                self.expect_kw(Kw::STATUS)?;
                Show::BinaryLogStatus
            }
            Kw::MASTER if self.accept_kw(Kw::STATUS) => Show::BinaryLogStatus,
            Kw::MASTER => {
                self.expect_kw(Kw::LOGS)?;
                Show::BinaryLogs
            }
            Kw::BINLOG => {
                self.expect_kw(Kw::EVENTS)?;
                let file = match self.accept_kw(Kw::IN) {
                    true => Some(self.ident_or_text()?),
                    false => None,
                };
                let from = match self.accept_kw(Kw::FROM) {
                    true => Some(self.number()?),
                    false => None,
                };
                Show::BinlogEvents {
                    file,
                    from,
                    limit: self.show_limit()?,
                }
            }
            Kw::RELAYLOG => {
                self.expect_kw(Kw::EVENTS)?;
                self.rest_of_statement();
                Show::RelayLogEvents
            }
            Kw::REPLICAS => Show::Replicas,
            Kw::SLAVE if self.accept_kw(Kw::HOSTS) => Show::Replicas,
            _ => {
                self.expect_kw(Kw::STATUS)?;
                Show::ReplicaStatus(self.for_channel()?)
            }
        })
    }

    fn unsupported_show(&mut self, what: &'static str) -> Result<Show> {
        self.rest_of_statement();
        Ok(Show::Unsupported(what))
    }

    /// `[LIKE 'pattern' | WHERE expr]`
    fn filter(&mut self) -> Result<Option<ShowFilter>> {
        if self.accept_kw(Kw::LIKE) {
            return Ok(Some(ShowFilter::Like(self.string()?)));
        }
        if self.accept_kw(Kw::WHERE) {
            return Ok(Some(ShowFilter::Where(self.expr()?)));
        }
        Ok(None)
    }

    fn accept_from(&mut self) -> bool {
        self.accept_kw(Kw::FROM) || self.accept_kw(Kw::IN)
    }

    /// `[FROM|IN schema]`
    fn in_schema(&mut self) -> Result<Option<Ident>> {
        if self.accept_from() {
            Ok(Some(self.database_name()?))
        } else {
            Ok(None)
        }
    }

    /// `FROM|IN table [FROM|IN schema]`
    fn of_table(&mut self) -> Result<ObjectName> {
        if !self.accept_from() {
            return self.unexpected();
        }
        let mut table = self.object_name()?;
        if let Some(schema) = self.in_schema()? {
            table.schema = Some(schema);
        }
        Ok(table)
    }

    fn show_create(&mut self) -> Result<Show> {
        Ok(match self.kw() {
            Kw::TABLE => {
                self.advance();
                Show::CreateTable(self.object_name()?)
            }
            Kw::VIEW => {
                self.advance();
                Show::CreateView(self.object_name()?)
            }
            Kw::DATABASE | Kw::SCHEMA => {
                self.advance();
                let if_not_exists = self.if_not_exists()?;
                Show::CreateDatabase {
                    if_not_exists,
                    name: self.database_name()?,
                }
            }
            Kw::USER => {
                self.advance();
                let account = self.account()?;
                Show::CreateUser(Some(account).filter(|a| !a.current))
            }
            Kw::TRIGGER => return self.unsupported_show("SHOW CREATE TRIGGER"),
            Kw::PROCEDURE => return self.unsupported_show("SHOW CREATE PROCEDURE"),
            Kw::FUNCTION => return self.unsupported_show("SHOW CREATE FUNCTION"),
            Kw::EVENT => return self.unsupported_show("SHOW CREATE EVENT"),
            _ => return self.unexpected(),
        })
    }

    /// `COUNT(*) WARNINGS|ERRORS`
    fn show_count(&mut self) -> Result<Show> {
        self.advance();
        self.expect(TokenKind::LParen)?;
        self.expect(TokenKind::Star)?;
        self.expect(TokenKind::RParen)?;
        if self.accept_kw(Kw::WARNINGS) {
            return Ok(Show::WarningCount);
        }
        self.expect_kw(Kw::ERRORS)?;
        Ok(Show::ErrorCount)
    }

    fn show_engine(&mut self) -> Result<Show> {
        let name = if self.accept_kw(Kw::ALL) {
            Ident::new("ALL")
        } else {
            Ident::new(self.ident_or_text()?)
        };
        let what = match self.kw() {
            Kw::STATUS => EngineInfo::Status,
            Kw::MUTEX => EngineInfo::Mutex,
            Kw::LOGS => EngineInfo::Logs,
            Kw::Other
                if name.as_str().eq_ignore_ascii_case("nfold")
                    && self.bytes().eq_ignore_ascii_case(b"contention") =>
            {
                EngineInfo::Contention
            }
            _ => return self.unexpected(),
        };
        self.advance();
        Ok(Show::Engine { name, what })
    }

    fn show_grants(&mut self) -> Result<Show> {
        if !self.accept_kw(Kw::FOR) {
            return Ok(Show::Grants(None, Vec::new()));
        }
        let account = self.account()?;
        let using = match self.accept_kw(Kw::USING) {
            true => self.comma_list(Self::account)?,
            false => Vec::new(),
        };
        Ok(Show::Grants(Some(account).filter(|a| !a.current), using))
    }

    fn show_limit(&mut self) -> Result<Option<ShowLimit>> {
        if !self.accept_kw(Kw::LIMIT) {
            return Ok(None);
        }
        let first = self.number()?;
        Ok(Some(if self.accept(TokenKind::Comma) {
            ShowLimit {
                offset: first,
                count: self.number()?,
            }
        } else if self.accept_kw(Kw::OFFSET) {
            ShowLimit {
                count: first,
                offset: self.number()?,
            }
        } else {
            ShowLimit {
                offset: 0,
                count: first,
            }
        }))
    }

    /// `DESCRIBE t [column]`, `EXPLAIN [ANALYZE] [FORMAT = x] statement`, `EXPLAIN FOR CONNECTION
    /// n`
    pub(super) fn explain(&mut self) -> Result<Statement> {
        self.advance();
        if self.at_ident() && !(self.at(Kw::FORMAT) && self.peek().kind == TokenKind::Eq) {
            let table = self.object_name()?;
            let column = if self.is(TokenKind::Str) {
                Some(Ident {
                    value: self.ident_or_text()?,
                    quoted: true,
                })
            } else if self.at_ident() {
                Some(self.ident()?)
            } else {
                None
            };
            return Ok(Statement::Describe { table, column });
        }
        let options = self.explain_options()?;
        if self.at(Kw::FOR) {
            return self.explain_connection(options);
        }
        let explainable = self.is(TokenKind::LParen)
            || matches!(
                self.kw(),
                Kw::SELECT
                    | Kw::INSERT
                    | Kw::REPLACE
                    | Kw::UPDATE
                    | Kw::DELETE
                    | Kw::WITH
                    | Kw::TABLE
                    | Kw::VALUES
            );
        if !explainable {
            return self.unexpected();
        }
        let statement = Box::new(self.statement()?);
        Ok(Statement::Explain { options, statement })
    }

    /// `[ANALYZE] [FORMAT = format] [INTO @variable] [FOR SCHEMA name]`
    fn explain_options(&mut self) -> Result<ExplainOptions> {
        let mut options = ExplainOptions {
            analyze: self.accept_kw(Kw::ANALYZE),
            ..ExplainOptions::default()
        };
        if self.accept_kw(Kw::FORMAT) {
            self.expect(TokenKind::Eq)?;
            let name = self.ident_or_text()?;
            let formats = [
                ExplainFormat::Traditional,
                ExplainFormat::Json,
                ExplainFormat::Tree,
            ];
            let found = formats
                .iter()
                .find(|f| f.name().eq_ignore_ascii_case(&name));
            let unknown =
                || SqlError::new(ErrorCode::ER_UNKNOWN_EXPLAIN_FORMAT, &[&name.to_string()]);
            options.format = Some(*found.ok_or_else(unknown)?);
        }
        if self.accept_kw(Kw::INTO) {
            options.into = Some(self.user_var()?);
            let Some(format) = options.format else {
                let code = ErrorCode::ER_EXPLAIN_INTO_IMPLICIT_FORMAT_NOT_SUPPORTED;
                return Err(SqlError::new(code, &[]));
            };
            if format != ExplainFormat::Json {
                let code = ErrorCode::ER_EXPLAIN_INTO_FORMAT_NOT_SUPPORTED;
                return Err(SqlError::new(code, &[&format.name()]));
            }
        }
        let start = self.save();
        if self.accept_kw(Kw::FOR) {
            if self.accept_kw(Kw::SCHEMA) || self.accept_kw(Kw::DATABASE) {
                options.schema = Some(self.ident()?);
            } else {
                self.restore(start);
            }
        }
        Ok(options)
    }

    /// `FOR CONNECTION n`
    fn explain_connection(&mut self, options: ExplainOptions) -> Result<Statement> {
        if options.schema.is_some() {
            return self.unexpected();
        }
        self.advance();
        self.expect_kw(Kw::CONNECTION)?;
        let id = self.number()?;
        if options.into.is_some() {
            let code = ErrorCode::ER_EXPLAIN_INTO_FOR_CONNECTION_NOT_SUPPORTED;
            return Err(SqlError::new(code, &[]));
        }
        if options.analyze {
            return Err(SqlError::not_supported("EXPLAIN ANALYZE FOR CONNECTION"));
        }
        Ok(Statement::ExplainConnection(options, id))
    }
}
