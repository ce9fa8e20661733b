//! CREATE and DROP of databases, tables and indexes; column and key definitions.

use super::column::ColumnExtras;
use super::table_options::check_charset;
use super::{Parser, Result};
use crate::ast::*;
use crate::keywords::Kw;
use crate::lexer::TokenKind;
use nfold_types::error::{ErrorCode, SqlError};

impl Parser<'_> {
    pub(super) fn create(&mut self) -> Result<Statement> {
        self.advance();
        match self.kw() {
            Kw::DATABASE | Kw::SCHEMA => self.create_database(),
            Kw::TABLE => self.create_table(false),
            Kw::TEMPORARY => {
                self.advance();
                if !self.at(Kw::TABLE) {
                    return self.unexpected();
                }
                self.create_table(true)
            }
            Kw::INDEX | Kw::UNIQUE | Kw::FULLTEXT | Kw::SPATIAL => self.create_index(),
            Kw::USER => self.create_user(),
            Kw::ROLE => self.create_role(),
            Kw::VIEW | Kw::ALGORITHM | Kw::SQL | Kw::OR | Kw::DEFINER => self.view(false),
            Kw::TRIGGER => self.unsupported("CREATE TRIGGER"),
            Kw::PROCEDURE => self.unsupported("CREATE PROCEDURE"),
            Kw::FUNCTION | Kw::AGGREGATE => self.unsupported("CREATE FUNCTION"),
            Kw::EVENT => self.unsupported("CREATE EVENT"),
            Kw::SERVER => self.unsupported("CREATE SERVER"),
            Kw::TABLESPACE | Kw::UNDO => self.unsupported("CREATE TABLESPACE"),
            Kw::LOGFILE => self.unsupported("CREATE LOGFILE GROUP"),
            Kw::RESOURCE => self.unsupported("CREATE RESOURCE GROUP"),
            _ => self.unexpected(),
        }
    }

    pub(super) fn drop_statement(&mut self) -> Result<Statement> {
        self.advance();
        let temporary = self.at(Kw::TEMPORARY) && self.accept_kw(Kw::TEMPORARY);
        if temporary && !matches!(self.kw(), Kw::TABLE | Kw::TABLES) {
            return self.unexpected();
        }
        match self.kw() {
            Kw::DATABASE | Kw::SCHEMA => {
                self.advance();
                let if_exists = self.if_exists()?;
                Ok(Statement::DropDatabase {
                    if_exists,
                    name: self.database_name()?,
                })
            }
            Kw::TABLE | Kw::TABLES => {
                self.advance();
                let if_exists = self.if_exists()?;
                let names = self.comma_list(Self::object_name)?;
                if matches!(self.kw(), Kw::RESTRICT | Kw::CASCADE) {
                    self.advance();
                }
                Ok(Statement::DropTable(DropTable {
                    temporary,
                    if_exists,
                    names,
                }))
            }
            Kw::INDEX => {
                self.advance();
                let name = self.key_name()?;
                self.expect_kw(Kw::ON)?;
                let table = self.object_name()?;
                self.algorithm_and_lock()?;
                Ok(Statement::DropIndex { name, table })
            }
            Kw::USER => {
                self.advance();
                let if_exists = self.if_exists()?;
                Ok(Statement::DropUser {
                    if_exists,
                    users: self.comma_list(Self::account)?,
                })
            }
            Kw::VIEW => {
                self.advance();
                let if_exists = self.if_exists()?;
                let names = self.comma_list(Self::object_name)?;
                if matches!(self.kw(), Kw::RESTRICT | Kw::CASCADE) {
                    self.advance();
                }
                Ok(Statement::DropView { if_exists, names })
            }
            Kw::ROLE => self.drop_role(),
            Kw::TRIGGER => self.unsupported("DROP TRIGGER"),
            Kw::PROCEDURE => self.unsupported("DROP PROCEDURE"),
            Kw::FUNCTION => self.unsupported("DROP FUNCTION"),
            Kw::EVENT => self.unsupported("DROP EVENT"),
            Kw::SERVER => self.unsupported("DROP SERVER"),
            Kw::TABLESPACE | Kw::UNDO => self.unsupported("DROP TABLESPACE"),
            Kw::LOGFILE => self.unsupported("DROP LOGFILE GROUP"),
            Kw::RESOURCE => self.unsupported("DROP RESOURCE GROUP"),
            Kw::PREPARE => {
                self.advance();
                Ok(Statement::Deallocate(self.ident()?))
            }
            _ => self.unexpected(),
        }
    }

    pub(super) fn if_exists(&mut self) -> Result<bool> {
        self.accept_kws(&[Kw::IF, Kw::EXISTS])
    }

    pub(super) fn if_not_exists(&mut self) -> Result<bool> {
        self.accept_kws(&[Kw::IF, Kw::NOT, Kw::EXISTS])
    }

    fn create_database(&mut self) -> Result<Statement> {
        self.advance();
        let if_not_exists = self.if_not_exists()?;
        let name = self.ident()?;
        let (charset, collation) = self.database_options()?;
        Ok(Statement::CreateDatabase(CreateDatabase {
            if_not_exists,
            name,
            charset,
            collation,
        }))
    }

    /// `[DEFAULT] CHARACTER SET [=] x`, `[DEFAULT] COLLATE [=] x`, `ENCRYPTION`, in any number.
    pub(super) fn database_options(&mut self) -> Result<(Option<String>, Option<String>)> {
        let (mut charset, mut collation) = (None, None);
        loop {
            let default = self.accept_kw(Kw::DEFAULT);
            if self.accept_charset_words()? {
                self.accept(TokenKind::Eq);
                let named = self.charset_name()?;
                check_charset((charset.as_deref(), collation.as_deref()), &named)?;
                charset = Some(named);
            } else if self.accept_kw(Kw::COLLATE) {
                self.accept(TokenKind::Eq);
                collation = Some(self.collation_name()?);
            } else if self.accept_kw(Kw::ENCRYPTION) {
                self.accept(TokenKind::Eq);
                self.string()?;
            } else if default {
                return self.unexpected();
            } else {
                return Ok((charset, collation));
            }
        }
    }

    /// Accepts `CHARACTER SET`, `CHAR SET` or `CHARSET`.
    pub(super) fn accept_charset_words(&mut self) -> Result<bool> {
        if self.accept_kw(Kw::CHARSET) {
            return Ok(true);
        }
        if matches!(self.kw(), Kw::CHARACTER | Kw::CHAR) {
            self.advance();
            self.expect_kw(Kw::SET)?;
            return Ok(true);
        }
        Ok(false)
    }

    fn create_table(&mut self, temporary: bool) -> Result<Statement> {
        self.advance();
        let if_not_exists = self.if_not_exists()?;
        let mut table = CreateTable {
            temporary,
            if_not_exists,
            name: self.object_name()?,
            like: None,
            columns: Vec::new(),
            keys: Vec::new(),
            foreign_keys: Vec::new(),
            checks: Vec::new(),
            options: TableOptions::default(),
            partitioned: false,
            query: None,
            on_existing: OnExisting::Error,
            engine_attributes: Vec::new(),
        };
        let like_in_parens = self.is(TokenKind::LParen) && self.peek().kw == Kw::LIKE;
        if like_in_parens || self.at(Kw::LIKE) {
            self.accept(TokenKind::LParen);
            self.advance();
            table.like = Some(self.object_name()?);
            if like_in_parens {
                self.expect(TokenKind::RParen)?;
            }
            return Ok(Statement::CreateTable(Box::new(table)));
        }
        let defined = self.is(TokenKind::LParen) && !self.query_follows_paren();
        if defined && self.peek().kind == TokenKind::LParen {
            while self.accept(TokenKind::LParen) {}
            return self.unexpected();
        }
        if defined {
            self.paren_list(|p| p.table_element(&mut table))?;
        }
        table.options = self.table_options()?;
        table.engine_attributes = std::mem::take(&mut self.engine_attributes);
        if self.at(Kw::PARTITION) {
            self.partition_clause()?;
            table.partitioned = true;
        }
        if self.accept_kw(Kw::IGNORE) {
            table.on_existing = OnExisting::Ignore;
        } else if self.accept_kw(Kw::REPLACE) {
            table.on_existing = OnExisting::Replace;
        }
        let as_query = self.accept_kw(Kw::AS);
        let query_follows = self.is(TokenKind::LParen)
            || matches!(self.kw(), Kw::SELECT | Kw::WITH | Kw::VALUES | Kw::TABLE);
        if as_query || query_follows || table.on_existing != OnExisting::Error {
            table.query = Some(Box::new(self.query_statement()?));
        } else if !defined {
            return Err(SqlError::new(ErrorCode::ER_TABLE_MUST_HAVE_COLUMNS, &[]));
        }
        Ok(Statement::CreateTable(Box::new(table)))
    }

    /// `PARTITION BY …`: skips it, with nested parentheses.
    fn partition_clause(&mut self) -> Result<()> {
        self.advance();
        self.expect_kw(Kw::BY)?;
        if !matches!(
            self.kw(),
            Kw::HASH | Kw::KEY | Kw::LINEAR | Kw::RANGE | Kw::LIST
        ) {
            return self.unexpected();
        }
        let mut open = 0u32;
        loop {
            match self.kind() {
                TokenKind::LParen => open += 1,
                TokenKind::RParen if open == 0 => return self.unexpected(),
                TokenKind::RParen => open -= 1,
                TokenKind::End | TokenKind::Semicolon if open > 0 => return self.unexpected(),
                TokenKind::End | TokenKind::Semicolon => return Ok(()),
                TokenKind::Invalid => return self.unexpected(),
                TokenKind::Word
                    if open == 0
                        && matches!(self.kw(), Kw::AS | Kw::SELECT | Kw::IGNORE | Kw::REPLACE) =>
                {
                    return Ok(());
                }
                _ => {}
            }
            self.advance();
        }
    }

    /// A column, key or constraint of CREATE TABLE.
    fn table_element(&mut self, table: &mut CreateTable) -> Result<()> {
        match self.constraint_or_key()? {
            Some(TableConstraint::Key(key)) => table.keys.push(key),
            Some(TableConstraint::Foreign(mut key)) => {
                key.keys_before = table.keys.len();
                table.foreign_keys.push(key);
            }
            Some(TableConstraint::Check(check)) => table.checks.push(check),
            None => {
                let mut more = ColumnExtras::default();
                let column = self.column_def(&mut more)?;
                table.columns.push(column);
                for mut key in more.foreign_keys {
                    key.keys_before += table.keys.len();
                    table.foreign_keys.push(key);
                }
                table.keys.append(&mut more.keys);
                table.checks.append(&mut more.checks);
            }
        }
        Ok(())
    }

    /// Parses a key or constraint, if there is one at the current token.
    pub(super) fn constraint_or_key(&mut self) -> Result<Option<TableConstraint>> {
        let mut name = None;
        if self.accept_kw(Kw::CONSTRAINT) {
            if self.at_ident() {
                name = Some(self.ident()?);
            }
            if !matches!(
                self.kw(),
                Kw::PRIMARY | Kw::UNIQUE | Kw::FOREIGN | Kw::CHECK
            ) {
                return self.unexpected();
            }
        }
        Ok(Some(match self.kw() {
            Kw::CHECK => TableConstraint::Check(self.check(name)?),
            Kw::FOREIGN => TableConstraint::Foreign(self.foreign_key(name)?),
            Kw::PRIMARY | Kw::UNIQUE | Kw::KEY | Kw::INDEX | Kw::FULLTEXT | Kw::SPATIAL => {
                let kind = self.key_kind()?;
                let mut key = self.key_def(kind)?;
                if kind == KeyKind::Primary {
                    key.name = None;
                } else if key.name.is_none() {
                    key.name = name;
                }
                TableConstraint::Key(key)
            }
            _ => return Ok(None),
        }))
    }

    /// `CHECK (expr) [[NOT] ENFORCED]`
    pub(super) fn check(&mut self, name: Option<Ident>) -> Result<Check> {
        self.expect_kw(Kw::CHECK)?;
        self.expect(TokenKind::LParen)?;
        let expr = self.expr()?;
        self.expect(TokenKind::RParen)?;
        let not = self.at(Kw::NOT) && self.peek().kw == Kw::ENFORCED && self.accept_kw(Kw::NOT);
        self.accept_kw(Kw::ENFORCED);
        Ok(Check {
            name,
            column: None,
            expr,
            enforced: !not,
        })
    }

    fn foreign_key(&mut self, name: Option<Ident>) -> Result<ForeignKey> {
        self.expect_kw(Kw::FOREIGN)?;
        self.expect_kw(Kw::KEY)?;
        let index = if self.at_ident() {
            Some(self.ident()?)
        } else {
            None
        };
        let columns = self.paren_list(Self::ident)?;
        let mut key = self.references()?;
        (key.name, key.index) = (name, index);
        key.columns = columns;
        Ok(key)
    }

    /// `REFERENCES t (columns) [MATCH …] [ON DELETE …] [ON UPDATE …]`
    pub(super) fn references(&mut self) -> Result<ForeignKey> {
        self.expect_kw(Kw::REFERENCES)?;
        let table = self.object_name()?;
        let referenced = if self.is(TokenKind::LParen) {
            self.paren_list(Self::ident)?
        } else {
            Vec::new()
        };
        if self.accept_kw(Kw::MATCH) {
            if !matches!(self.kw(), Kw::FULL | Kw::PARTIAL | Kw::SIMPLE) {
                return self.unexpected();
            }
            self.advance();
        }
        let mut key = ForeignKey {
            name: None,
            index: None,
            keys_before: 0,
            columns: Vec::new(),
            table,
            referenced,
            on_delete: None,
            on_update: None,
        };
        while self.at(Kw::ON) && matches!(self.peek().kw, Kw::DELETE | Kw::UPDATE) {
            self.advance();
            let delete = self.kw() == Kw::DELETE;
            let twice = match delete {
                true => key.on_delete.is_some(),
                false => key.on_update.is_some(),
            };
            if twice {
                return self.unexpected();
            }
            self.advance();
            let action = self.referential_action()?;
            *(if delete {
                &mut key.on_delete
            } else {
                &mut key.on_update
            }) = Some(action);
        }
        Ok(key)
    }

    fn referential_action(&mut self) -> Result<ReferentialAction> {
        let first = self.kw();
        let action = match (first, self.peek().kw) {
            (Kw::RESTRICT, _) => ReferentialAction::Restrict,
            (Kw::CASCADE, _) => ReferentialAction::Cascade,
            (Kw::SET, Kw::NULL) => ReferentialAction::SetNull,
            (Kw::SET, Kw::DEFAULT) => ReferentialAction::SetDefault,
            (Kw::NO, Kw::ACTION) => ReferentialAction::NoAction,
            _ => return self.unexpected(),
        };
        self.advance();
        if matches!(first, Kw::SET | Kw::NO) {
            self.advance();
        }
        Ok(action)
    }

    pub(super) fn key_kind(&mut self) -> Result<KeyKind> {
        let kind = match self.advance().kw {
            Kw::PRIMARY => {
                self.expect_kw(Kw::KEY)?;
                return Ok(KeyKind::Primary);
            }
            Kw::UNIQUE => KeyKind::Unique,
            Kw::FULLTEXT => KeyKind::Fulltext,
            Kw::SPATIAL => KeyKind::Spatial,
            _ => return Ok(KeyKind::Index),
        };
        if matches!(self.kw(), Kw::KEY | Kw::INDEX) {
            self.advance();
        }
        Ok(kind)
    }

    /// `[name] [USING BTREE] (parts) [options]`
    fn key_def(&mut self, kind: KeyKind) -> Result<KeyDef> {
        let name = if self.at_ident() && self.kw() != Kw::TYPE {
            Some(self.ident()?)
        } else {
            None
        };
        let algorithm = match kind {
            KeyKind::Fulltext => None,
            _ => self.index_algorithm()?,
        };
        self.key_body(kind, name, algorithm)
    }

    /// `(parts) [options]`
    fn key_body(
        &mut self,
        kind: KeyKind,
        name: Option<Ident>,
        algorithm: Option<IndexAlgorithm>,
    ) -> Result<KeyDef> {
        let parts = self.paren_list(Self::key_part)?;
        let mut key = KeyDef {
            kind,
            name,
            parts,
            algorithm,
            comment: None,
            invisible: false,
            parser: None,
        };
        loop {
            match self.kw() {
                Kw::USING | Kw::TYPE if kind != KeyKind::Fulltext => {
                    key.algorithm = self.index_algorithm()?
                }
                Kw::COMMENT => {
                    self.advance();
                    key.comment = Some(self.string()?);
                }
                Kw::VISIBLE | Kw::INVISIBLE => key.invisible = self.advance().kw == Kw::INVISIBLE,
                Kw::KEY_BLOCK_SIZE => {
                    self.advance();
                    self.accept(TokenKind::Eq);
                    self.number()?;
                }
                Kw::WITH if kind == KeyKind::Fulltext => {
                    self.advance();
                    self.expect_kw(Kw::PARSER)?;
                    key.parser = Some(self.ident()?);
                }
                Kw::ENGINE_ATTRIBUTE | Kw::SECONDARY_ENGINE_ATTRIBUTE => {
                    self.engine_attribute()?;
                }
                _ => return Ok(key),
            }
        }
    }

    /// `USING|TYPE BTREE|HASH|RTREE`
    fn index_algorithm(&mut self) -> Result<Option<IndexAlgorithm>> {
        if !matches!(self.kw(), Kw::USING | Kw::TYPE) {
            return Ok(None);
        }
        self.advance();
        let algorithm = match self.kw() {
            Kw::BTREE => IndexAlgorithm::BTree,
            Kw::HASH => IndexAlgorithm::Hash,
            Kw::RTREE => IndexAlgorithm::RTree,
            _ => return self.unexpected(),
        };
        self.advance();
        Ok(Some(algorithm))
    }

    /// `column[(n)] [ASC|DESC]`, `(expr) [ASC|DESC]`
    fn key_part(&mut self) -> Result<KeyPart> {
        let target = if self.accept(TokenKind::LParen) {
            let expr = self.expr()?;
            self.expect(TokenKind::RParen)?;
            KeyTarget::Expr(expr)
        } else {
            let name = self.ident()?;
            let mut prefix = None;
            if self.accept(TokenKind::LParen) {
                prefix = Some(self.number32()?);
                self.expect(TokenKind::RParen)?;
            }
            KeyTarget::Column { name, prefix }
        };
        let descending = self.accept_kw(Kw::DESC);
        let ordered = descending || self.accept_kw(Kw::ASC);
        Ok(KeyPart {
            target,
            descending,
            ordered,
        })
    }

    /// The name of a key, which may be PRIMARY in backquotes.
    pub(super) fn key_name(&mut self) -> Result<Ident> {
        if self.accept_kw(Kw::PRIMARY) {
            Ok(Ident::new("PRIMARY"))
        } else {
            self.ident()
        }
    }

    fn create_index(&mut self) -> Result<Statement> {
        let kind = match self.kw() {
            Kw::UNIQUE => KeyKind::Unique,
            Kw::FULLTEXT => KeyKind::Fulltext,
            Kw::SPATIAL => KeyKind::Spatial,
            _ => KeyKind::Index,
        };
        if kind != KeyKind::Index {
            self.advance();
        }
        self.expect_kw(Kw::INDEX)?;
        let name = Some(self.ident()?);
        let using = match kind {
            KeyKind::Fulltext => None,
            _ => self.index_algorithm()?,
        };
        self.expect_kw(Kw::ON)?;
        let table = self.object_name()?;
        let key = self.key_body(kind, name, using)?;
        let (algorithm, lock) = self.algorithm_and_lock()?;
        Ok(Statement::CreateIndex(Box::new(CreateIndex {
            key,
            table,
            algorithm,
            lock,
            engine_attributes: std::mem::take(&mut self.engine_attributes),
        })))
    }

    /// `ALGORITHM [=] x`, `LOCK [=] x`, in any order.
    fn algorithm_and_lock(&mut self) -> Result<(AlterAlgorithm, AlterLock)> {
        let (mut algorithm, mut lock) = Default::default();
        loop {
            if self.at(Kw::ALGORITHM) {
                algorithm = self.alter_algorithm()?;
            } else if self.at(Kw::LOCK) {
                lock = self.alter_lock()?;
            } else {
                return Ok((algorithm, lock));
            }
        }
    }

    pub(super) fn alter_algorithm(&mut self) -> Result<AlterAlgorithm> {
        self.expect_kw(Kw::ALGORITHM)?;
        self.accept(TokenKind::Eq);
        let word = self.any_word()?;
        Ok(match word.value.to_ascii_uppercase().as_str() {
            "INSTANT" => AlterAlgorithm::Instant,
            "INPLACE" => AlterAlgorithm::Inplace,
            "COPY" => AlterAlgorithm::Copy,
            "DEFAULT" => AlterAlgorithm::Default,
            _ => {
                return Err(super::unknown_option(
                    ErrorCode::ER_UNKNOWN_ALTER_ALGORITHM,
                    &word,
                ));
            }
        })
    }

    pub(super) fn alter_lock(&mut self) -> Result<AlterLock> {
        self.expect_kw(Kw::LOCK)?;
        self.accept(TokenKind::Eq);
        let word = self.any_word()?;
        Ok(match word.value.to_ascii_uppercase().as_str() {
            "NONE" => AlterLock::None,
            "SHARED" => AlterLock::Shared,
            "EXCLUSIVE" => AlterLock::Exclusive,
            "DEFAULT" => AlterLock::Default,
            _ => {
                return Err(super::unknown_option(
                    ErrorCode::ER_UNKNOWN_ALTER_LOCK,
                    &word,
                ));
            }
        })
    }
}

/// A table-level key or constraint.
pub(super) enum TableConstraint {
    Key(KeyDef),
    Foreign(ForeignKey),
    Check(Check),
}
