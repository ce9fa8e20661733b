//! SET, transactions, table locks.

use super::{Deprecated, Parser, Result, bare_column};
use crate::ast::*;
use crate::keywords::Kw;
use crate::lexer::TokenKind;

impl Parser<'_> {
    // SET

    pub(super) fn set(&mut self) -> Result<Statement> {
        self.advance();
        match self.kw() {
            Kw::ROLE => return self.set_role(),
            Kw::DEFAULT => return self.set_default_role(),
            Kw::PASSWORD => return self.set_password(),
            Kw::RESOURCE if self.peek().kw == Kw::GROUP => {
                return self.unsupported("SET RESOURCE GROUP");
            }
            _ => {}
        }
        if let Some(transaction) = self.set_transaction()? {
            return Ok(Statement::Set(vec![SetItem::Transaction(transaction)]));
        }
        Ok(Statement::Set(self.comma_list(Self::set_item)?))
    }

    /// `[scope] TRANSACTION …`
    fn set_transaction(&mut self) -> Result<Option<SetTransaction>> {
        let start = self.save();
        let scope = self.scope_word();
        if !self.at(Kw::TRANSACTION) || self.peek().kind == TokenKind::Eq {
            self.restore(start);
            return Ok(None);
        }
        self.advance();
        let mut set = SetTransaction {
            scope,
            isolation: None,
            read_only: None,
        };
        loop {
            if self.at(Kw::ISOLATION) && set.isolation.is_none() {
                self.advance();
                self.expect_kw(Kw::LEVEL)?;
                set.isolation = Some(self.isolation_level()?);
            } else if self.at(Kw::READ) && set.read_only.is_none() {
                self.advance();
                set.read_only = Some(self.read_only()?);
            } else {
                return self.unexpected();
            }
            if !self.accept(TokenKind::Comma) {
                return Ok(Some(set));
            }
        }
    }

    fn scope_word(&mut self) -> Option<VarScope> {
        let scope = match self.kw() {
            Kw::GLOBAL => VarScope::Global,
            Kw::SESSION | Kw::LOCAL => VarScope::Session,
            Kw::PERSIST => VarScope::Persist,
            Kw::PERSIST_ONLY => VarScope::PersistOnly,
            _ => return None,
        };
        self.advance();
        Some(scope)
    }

    /// ONLY or WRITE, after READ.
    fn read_only(&mut self) -> Result<bool> {
        if self.accept_kw(Kw::ONLY) {
            return Ok(true);
        }
        self.expect_kw(Kw::WRITE)?;
        Ok(false)
    }

    fn isolation_level(&mut self) -> Result<IsolationLevel> {
        if self.accept_kw(Kw::SERIALIZABLE) {
            return Ok(IsolationLevel::Serializable);
        }
        if self.accept_kw(Kw::REPEATABLE) {
            self.expect_kw(Kw::READ)?;
            return Ok(IsolationLevel::RepeatableRead);
        }
        self.expect_kw(Kw::READ)?;
        if self.accept_kw(Kw::COMMITTED) {
            return Ok(IsolationLevel::ReadCommitted);
        }
        self.expect_kw(Kw::UNCOMMITTED)?;
        Ok(IsolationLevel::ReadUncommitted)
    }

    fn set_item(&mut self) -> Result<SetItem> {
        match self.kind() {
            TokenKind::UserVar => {
                let name = self.user_var()?;
                self.set_operator()?;
                return Ok(SetItem::UserVar {
                    name,
                    value: self.expr()?,
                });
            }
            TokenKind::AtAt => {
                let (scope, name) = self.system_variable_name()?;
                self.deprecated.extend(Deprecated::variable(&name));
                self.set_operator()?;
                return Ok(SetItem::SysVar {
                    scope,
                    at_signs: true,
                    name,
                    value: self.set_value()?,
                });
            }
            _ => {}
        }
        match self.kw() {
            Kw::NAMES => return self.set_names(),
            Kw::CHARSET | Kw::CHARACTER | Kw::CHAR => {
                if !self.accept_charset_words()? {
                    return self.unexpected();
                }
                let charset = if self.accept_kw(Kw::DEFAULT) {
                    None
                } else {
                    Some(self.silent_charset_name()?)
                };
                return Ok(SetItem::CharacterSet(charset));
            }
            _ => {}
        }
        let scope = self.scope_word();
        if matches!(
            self.kw(),
            Kw::GLOBAL | Kw::SESSION | Kw::LOCAL | Kw::PERSIST | Kw::PERSIST_ONLY
        ) {
            return self.unexpected();
        }
        let mut name = self.ident()?.value;
        if self.accept(TokenKind::Dot) {
            name.push('.');
            name.push_str(&self.ident_after_dot()?.value);
        }
        self.deprecated.extend(Deprecated::variable(&name));
        self.set_operator()?;
        Ok(SetItem::SysVar {
            scope,
            at_signs: false,
            name,
            value: self.set_value()?,
        })
    }

    pub(super) fn set_operator(&mut self) -> Result<()> {
        if !self.accept(TokenKind::Assign) {
            self.expect(TokenKind::Eq)?;
        }
        Ok(())
    }

    fn set_value(&mut self) -> Result<SetValue> {
        if self.at(Kw::DEFAULT) && self.peek().kind != TokenKind::LParen {
            self.advance();
            return Ok(SetValue::Default);
        }
        self.set_expr().map(SetValue::Expr)
    }

    /// An expression, or a word that is the value of a variable.
    pub(super) fn set_expr(&mut self) -> Result<Expr> {
        let word = matches!(self.kw(), Kw::ON | Kw::ALL | Kw::SYSTEM)
            || (matches!(self.kw(), Kw::BINARY | Kw::ROW) && self.value_ends_after());
        if word {
            return Ok(bare_column(self.any_word()?));
        }
        self.expr()
    }

    fn value_ends_after(&self) -> bool {
        matches!(
            self.peek().kind,
            TokenKind::Comma | TokenKind::End | TokenKind::Semicolon
        )
    }

    /// The name of SET CHARACTER SET, which is taken without a warning.
    fn silent_charset_name(&mut self) -> Result<String> {
        let warned = self.deprecated.len();
        let name = self.charset_name();
        self.deprecated.truncate(warned);
        name
    }

    fn set_names(&mut self) -> Result<SetItem> {
        self.advance();
        if self.accept_kw(Kw::DEFAULT) {
            return Ok(SetItem::Names {
                charset: None,
                collation: None,
            });
        }
        let charset = Some(self.charset_name()?);
        let collation = if self.accept_kw(Kw::COLLATE) {
            Some(self.collation_name()?)
        } else {
            None
        };
        Ok(SetItem::Names { charset, collation })
    }

    // Transactions

    /// `START TRANSACTION …`
    pub(super) fn start_transaction(&mut self) -> Result<Statement> {
        self.advance();
        match self.kw() {
            Kw::TRANSACTION => self.advance(),
            Kw::REPLICA | Kw::SLAVE => return self.start_replica(),
            Kw::GROUP_REPLICATION => return self.unsupported("START GROUP_REPLICATION"),
            _ => return self.unexpected(),
        };
        let mut options = BeginOptions::default();
        if matches!(self.kind(), TokenKind::End | TokenKind::Semicolon) {
            return Ok(Statement::Begin(options));
        }
        loop {
            if self.accept_kws(&[Kw::WITH, Kw::CONSISTENT, Kw::SNAPSHOT])? {
                options.consistent_snapshot = true;
            } else {
                self.expect_kw(Kw::READ)?;
                let read_only = self.read_only()?;
                if options.read_only.is_some_and(|before| before != read_only) {
                    return self.unexpected();
                }
                options.read_only = Some(read_only);
            }
            if !self.accept(TokenKind::Comma) {
                return Ok(Statement::Begin(options));
            }
        }
    }

    pub(super) fn commit(&mut self) -> Result<Statement> {
        self.advance();
        self.accept_kw(Kw::WORK);
        Ok(Statement::Commit(self.completion()?))
    }

    pub(super) fn rollback(&mut self) -> Result<Statement> {
        self.advance();
        self.accept_kw(Kw::WORK);
        if self.accept_kw(Kw::TO) {
            self.accept_kw(Kw::SAVEPOINT);
            return Ok(Statement::RollbackTo(self.ident()?));
        }
        Ok(Statement::Rollback(self.completion()?))
    }

    /// `[AND [NO] CHAIN] [[NO] RELEASE]`
    fn completion(&mut self) -> Result<CompletionOptions> {
        let mut options = CompletionOptions::default();
        if self.accept_kw(Kw::AND) {
            options.chain = Some(!self.accept_kw(Kw::NO));
            self.expect_kw(Kw::CHAIN)?;
        }
        if self.at(Kw::NO) || self.at(Kw::RELEASE) {
            let no = self.accept_kw(Kw::NO);
            let at = self.token.start;
            self.expect_kw(Kw::RELEASE)?;
            options.release = Some(!no);
            if options.chain == Some(true) && !no {
                return Err(super::syntax_error_at(self.text, at as usize));
            }
        }
        Ok(options)
    }

    // Table locks

    pub(super) fn lock(&mut self) -> Result<Statement> {
        self.advance();
        if self.accept_kw(Kw::INSTANCE) {
            self.expect_kw(Kw::FOR)?;
            self.expect_kw(Kw::BACKUP)?;
            return Ok(Statement::LockInstance);
        }
        if !self.accept_kw(Kw::TABLE) {
            self.expect_kw(Kw::TABLES)?;
        }
        let locks = self.comma_list(|p| {
            let name = p.object_name()?;
            let alias = p.table_alias()?;
            let write = if p.accept_kw(Kw::READ) {
                p.accept_kw(Kw::LOCAL);
                false
            } else {
                p.expect_kw(Kw::WRITE)?;
                true
            };
            Ok(LockTable { name, alias, write })
        })?;
        Ok(Statement::LockTables(locks))
    }

    pub(super) fn unlock(&mut self) -> Result<Statement> {
        self.advance();
        if self.accept_kw(Kw::INSTANCE) {
            return Ok(Statement::UnlockInstance);
        }
        if !self.accept_kw(Kw::TABLE) {
            self.expect_kw(Kw::TABLES)?;
        }
        Ok(Statement::UnlockTables)
    }
}
