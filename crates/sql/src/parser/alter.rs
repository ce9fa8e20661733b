//! ALTER TABLE and the other ALTERs.

use super::column::ColumnExtras;
use super::create::TableConstraint;
use super::{Parser, Result};
use crate::ast::*;
use crate::keywords::Kw;
use crate::lexer::TokenKind;

impl Parser<'_> {
    pub(super) fn alter(&mut self) -> Result<Statement> {
        self.advance();
        match self.kw() {
            Kw::TABLE => self.alter_table(),
            Kw::DATABASE | Kw::SCHEMA => {
                self.advance();
                let name = if self.at_ident() {
                    Some(self.database_name()?)
                } else {
                    None
                };
                let start = self.token.start;
                let (charset, collation) = self.database_options()?;
                if self.token.start == start {
                    return self.unexpected();
                }
                Ok(Statement::AlterDatabase(AlterDatabase {
                    name,
                    charset,
                    collation,
                }))
            }
            Kw::USER => self.alter_user(),
            Kw::VIEW | Kw::ALGORITHM | Kw::SQL | Kw::DEFINER => self.view(true),
            Kw::PROCEDURE => self.unsupported("ALTER PROCEDURE"),
            Kw::FUNCTION => self.unsupported("ALTER FUNCTION"),
            Kw::EVENT => self.unsupported("ALTER EVENT"),
            Kw::SERVER => self.unsupported("ALTER SERVER"),
            Kw::TABLESPACE | Kw::UNDO => self.unsupported("ALTER TABLESPACE"),
            Kw::LOGFILE => self.unsupported("ALTER LOGFILE GROUP"),
            Kw::INSTANCE => self.unsupported("ALTER INSTANCE"),
            Kw::RESOURCE => self.unsupported("ALTER RESOURCE GROUP"),
            _ => self.unexpected(),
        }
    }

    fn alter_table(&mut self) -> Result<Statement> {
        self.advance();
        let name = self.object_name()?;
        let mut alter = AlterTable {
            name,
            actions: Vec::new(),
            algorithm: AlterAlgorithm::Default,
            lock: AlterLock::Default,
            engine_attributes: Vec::new(),
        };
        if matches!(self.kind(), TokenKind::End | TokenKind::Semicolon) {
            return Ok(Statement::AlterTable(Box::new(alter)));
        }
        loop {
            match self.kw() {
                Kw::ALGORITHM => alter.algorithm = self.alter_algorithm()?,
                Kw::LOCK => alter.lock = self.alter_lock()?,
                Kw::WITH | Kw::WITHOUT if self.peek().kw == Kw::VALIDATION => {
                    self.advance();
                    self.advance();
                }
                _ => self.alter_action(&mut alter.actions)?,
            }
            if !self.accept(TokenKind::Comma) {
                break;
            }
        }
        alter.engine_attributes = std::mem::take(&mut self.engine_attributes);
        if self.at(Kw::PARTITION) && self.peek().kw == Kw::BY {
            alter
                .actions
                .push(AlterAction::Unsupported("ALTER TABLE PARTITION BY"));
            self.rest_of_statement();
        }
        Ok(Statement::AlterTable(Box::new(alter)))
    }

    /// Parses one action. ADD COLUMN (…) produces several.
    fn alter_action(&mut self, actions: &mut Vec<AlterAction>) -> Result<()> {
        let action = match self.kw() {
            Kw::ADD => return self.alter_add(actions),
            Kw::DROP => self.alter_drop()?,
            Kw::MODIFY => {
                self.advance();
                self.accept_kw(Kw::COLUMN);
                let name = self.ident()?;
                return self.changed_column(name.clone(), name, actions);
            }
            Kw::CHANGE => {
                self.advance();
                self.accept_kw(Kw::COLUMN);
                let old = self.ident()?;
                let new = self.ident()?;
                return self.changed_column(old, new, actions);
            }
            Kw::ALTER => self.alter_alter()?,
            Kw::RENAME => self.alter_rename()?,
            Kw::CONVERT => {
                self.advance();
                self.expect_kw(Kw::TO)?;
                if !self.accept_charset_words()? {
                    return self.unexpected();
                }
                let charset = if self.accept_kw(Kw::DEFAULT) {
                    "default".into()
                } else {
                    self.charset_name()?
                };
                let mut collation = None;
                if self.accept_kw(Kw::COLLATE) {
                    self.accept(TokenKind::Eq);
                    collation = Some(self.collation_name()?);
                }
                AlterAction::ConvertTo { charset, collation }
            }
            Kw::FORCE => {
                self.advance();
                AlterAction::Force
            }
            Kw::DISABLE | Kw::ENABLE => {
                let enable = self.advance().kw == Kw::ENABLE;
                self.expect_kw(Kw::KEYS)?;
                if enable {
                    AlterAction::EnableKeys
                } else {
                    AlterAction::DisableKeys
                }
            }
            Kw::ORDER => {
                self.advance();
                self.expect_kw(Kw::BY)?;
                AlterAction::OrderBy(self.comma_list(|p| {
                    let name = p.column_ref()?.name;
                    if matches!(p.kw(), Kw::ASC | Kw::DESC) {
                        p.advance();
                    }
                    Ok(name)
                })?)
            }
            Kw::DISCARD | Kw::IMPORT => self.unsupported_action("ALTER TABLE … TABLESPACE"),
            Kw::TRUNCATE
            | Kw::COALESCE
            | Kw::REORGANIZE
            | Kw::EXCHANGE
            | Kw::ANALYZE
            | Kw::CHECK
            | Kw::OPTIMIZE
            | Kw::REBUILD
            | Kw::REPAIR
            | Kw::REMOVE => self.unsupported_action("ALTER TABLE … PARTITION"),
            Kw::SECONDARY_LOAD | Kw::SECONDARY_UNLOAD => {
                self.unsupported_action("ALTER TABLE … SECONDARY_LOAD")
            }
            _ => {
                let mut options = TableOptions::default();
                if !self.table_option(&mut options)? {
                    return self.unexpected();
                }
                while self.table_option(&mut options)? {}
                AlterAction::Options(options)
            }
        };
        actions.push(action);
        Ok(())
    }

    fn unsupported_action(&mut self, what: &'static str) -> AlterAction {
        self.rest_of_statement();
        AlterAction::Unsupported(what)
    }

    fn alter_add(&mut self, actions: &mut Vec<AlterAction>) -> Result<()> {
        self.advance();
        if self.at(Kw::PARTITION) {
            let action = self.unsupported_action("ALTER TABLE … ADD PARTITION");
            actions.push(action);
            return Ok(());
        }
        match self.constraint_or_key()? {
            Some(TableConstraint::Key(key)) => actions.push(AlterAction::AddKey(key)),
            Some(TableConstraint::Foreign(key)) => actions.push(AlterAction::AddForeignKey(key)),
            Some(TableConstraint::Check(check)) => actions.push(AlterAction::AddCheck(check)),
            None => {
                self.accept_kw(Kw::COLUMN);
                if self.is(TokenKind::LParen) {
                    self.paren_list(|p| p.add_element(actions))?;
                } else {
                    self.add_column(actions)?;
                }
            }
        }
        Ok(())
    }

    /// A member of `ADD (…)`.
    fn add_element(&mut self, actions: &mut Vec<AlterAction>) -> Result<()> {
        match self.constraint_or_key()? {
            Some(TableConstraint::Key(key)) => actions.push(AlterAction::AddKey(key)),
            Some(TableConstraint::Foreign(key)) => actions.push(AlterAction::AddForeignKey(key)),
            Some(TableConstraint::Check(check)) => actions.push(AlterAction::AddCheck(check)),
            None => self.add_column(actions)?,
        }
        Ok(())
    }

    fn add_column(&mut self, actions: &mut Vec<AlterAction>) -> Result<()> {
        let mut more = ColumnExtras::default();
        let column = self.column_def(&mut more)?;
        let place = self.column_place()?;
        actions.push(AlterAction::AddColumn {
            column,
            keys: more.keys,
            place,
        });
        actions.extend(more.checks.into_iter().map(AlterAction::AddCheck));
        let keys = more.foreign_keys.into_iter();
        actions.extend(keys.map(AlterAction::AddForeignKey));
        Ok(())
    }

    fn changed_column(
        &mut self,
        old: Ident,
        new: Ident,
        actions: &mut Vec<AlterAction>,
    ) -> Result<()> {
        // As in MySQL, REFERENCES is a syntax error here.
        let mut more = ColumnExtras {
            changed: true,
            ..ColumnExtras::default()
        };
        let column = self.column_after_name(new, &mut more)?;
        let place = self.column_place()?;
        actions.push(AlterAction::ChangeColumn {
            old,
            column,
            keys: more.keys,
            place,
        });
        actions.extend(more.checks.into_iter().map(AlterAction::AddCheck));
        Ok(())
    }

    fn column_place(&mut self) -> Result<ColumnPlace> {
        if self.accept_kw(Kw::FIRST) {
            return Ok(ColumnPlace::First);
        }
        if self.accept_kw(Kw::AFTER) {
            return Ok(ColumnPlace::After(self.ident()?));
        }
        Ok(ColumnPlace::Unspecified)
    }

    fn alter_drop(&mut self) -> Result<AlterAction> {
        self.advance();
        Ok(match self.kw() {
            Kw::PRIMARY => {
                self.advance();
                self.expect_kw(Kw::KEY)?;
                AlterAction::DropPrimaryKey
            }
            Kw::INDEX | Kw::KEY => {
                self.advance();
                AlterAction::DropKey(self.key_name()?)
            }
            Kw::FOREIGN => {
                self.advance();
                self.expect_kw(Kw::KEY)?;
                AlterAction::DropForeignKey(self.ident()?)
            }
            Kw::CHECK => {
                self.advance();
                AlterAction::DropCheck(self.ident()?)
            }
            Kw::CONSTRAINT => {
                self.advance();
                AlterAction::DropConstraint(self.ident()?)
            }
            Kw::PARTITION => self.unsupported_action("ALTER TABLE … DROP PARTITION"),
            _ => {
                self.accept_kw(Kw::COLUMN);
                let name = self.ident()?;
                if matches!(self.kw(), Kw::RESTRICT | Kw::CASCADE) {
                    self.advance();
                }
                AlterAction::DropColumn(name)
            }
        })
    }

    /// `ALTER [COLUMN] c SET DEFAULT …`, `ALTER INDEX i VISIBLE`, `ALTER CHECK …`
    fn alter_alter(&mut self) -> Result<AlterAction> {
        self.advance();
        match self.kw() {
            Kw::INDEX => {
                self.advance();
                let key = self.ident()?;
                let visible = self.visibility()?;
                return Ok(AlterAction::SetKeyVisible { key, visible });
            }
            kw @ (Kw::CHECK | Kw::CONSTRAINT) => {
                self.advance();
                let name = self.ident()?;
                let enforced = !self.accept_kw(Kw::NOT);
                self.expect_kw(Kw::ENFORCED)?;
                return Ok(AlterAction::EnforceCheck {
                    name,
                    enforced,
                    any_constraint: kw == Kw::CONSTRAINT,
                });
            }
            _ => {}
        }
        self.accept_kw(Kw::COLUMN);
        let column = self.ident()?;
        if self.accept_kw(Kw::DROP) {
            self.expect_kw(Kw::DEFAULT)?;
            return Ok(AlterAction::SetDefault {
                column,
                default: None,
            });
        }
        self.expect_kw(Kw::SET)?;
        if matches!(self.kw(), Kw::VISIBLE | Kw::INVISIBLE) {
            let visible = self.visibility()?;
            return Ok(AlterAction::SetColumnVisible { column, visible });
        }
        self.expect_kw(Kw::DEFAULT)?;
        let default = Some(self.default_value()?);
        Ok(AlterAction::SetDefault { column, default })
    }

    fn visibility(&mut self) -> Result<bool> {
        if self.accept_kw(Kw::VISIBLE) {
            return Ok(true);
        }
        self.expect_kw(Kw::INVISIBLE)?;
        Ok(false)
    }

    /// `RENAME COLUMN a TO b`, `RENAME INDEX a TO b`, `RENAME [TO|AS] t`
    fn alter_rename(&mut self) -> Result<AlterAction> {
        self.advance();
        match self.kw() {
            Kw::COLUMN => {
                self.advance();
                let old = self.ident()?;
                self.expect_kw(Kw::TO)?;
                Ok(AlterAction::RenameColumn {
                    old,
                    new: self.ident()?,
                })
            }
            Kw::INDEX | Kw::KEY => {
                self.advance();
                let old = self.ident()?;
                self.expect_kw(Kw::TO)?;
                Ok(AlterAction::RenameKey {
                    old,
                    new: self.ident()?,
                })
            }
            _ => {
                if !self.accept_kw(Kw::TO) && !self.accept_kw(Kw::AS) {
                    self.accept(TokenKind::Eq);
                }
                Ok(AlterAction::Rename(self.object_name()?))
            }
        }
    }
}
