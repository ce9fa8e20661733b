//! GET DIAGNOSTICS, SIGNAL and RESIGNAL.

use super::{Parser, Result};
use crate::ast::*;
use crate::keywords::Kw;
use crate::lexer::TokenKind;
use nfold_types::error::{ErrorCode, SignalItem, SqlError};

/// The item of a condition that a word names.
fn condition_item(kw: Kw) -> Option<ConditionItem> {
    use ConditionItem::*;
    Some(match kw {
        Kw::CLASS_ORIGIN => Text(SignalItem::ClassOrigin),
        Kw::SUBCLASS_ORIGIN => Text(SignalItem::SubclassOrigin),
        Kw::CONSTRAINT_CATALOG => Text(SignalItem::ConstraintCatalog),
        Kw::CONSTRAINT_SCHEMA => Text(SignalItem::ConstraintSchema),
        Kw::CONSTRAINT_NAME => Text(SignalItem::ConstraintName),
        Kw::CATALOG_NAME => Text(SignalItem::CatalogName),
        Kw::SCHEMA_NAME => Text(SignalItem::SchemaName),
        Kw::TABLE_NAME => Text(SignalItem::TableName),
        Kw::COLUMN_NAME => Text(SignalItem::ColumnName),
        Kw::CURSOR_NAME => Text(SignalItem::CursorName),
        Kw::MESSAGE_TEXT => MessageText,
        Kw::MYSQL_ERRNO => MysqlErrno,
        Kw::RETURNED_SQLSTATE => ReturnedSqlstate,
        _ => return None,
    })
}

/// Whether SIGNAL can raise this SQLSTATE: digits and upper-case letters, and no success.
fn can_be_signaled(sqlstate: &[u8]) -> bool {
    sqlstate.len() == 5
        && !sqlstate.starts_with(b"00")
        && sqlstate
            .iter()
            .all(|b| b.is_ascii_digit() || b.is_ascii_uppercase())
}

impl Parser<'_> {
    /// `SIGNAL SQLSTATE [VALUE] 'state' [SET item = value, …]`
    pub(super) fn signal(&mut self) -> Result<Statement> {
        self.advance();
        if self.at_ident() {
            return self.undefined_condition();
        }
        let sqlstate = self.sqlstate()?;
        let items = self.signal_items()?;
        Ok(Statement::Signal(Box::new(Signal { sqlstate, items })))
    }

    /// `RESIGNAL [SQLSTATE [VALUE] 'state'] [SET item = value, …]`. Outside of handlers it has no
    /// condition to raise again, so its parts are only checked.
    pub(super) fn resignal(&mut self) -> Result<Statement> {
        self.advance();
        if self.at_ident() {
            return self.undefined_condition();
        }
        if self.at(Kw::SQLSTATE) {
            self.sqlstate()?;
        }
        self.signal_items()?;
        Ok(Statement::Resignal)
    }

    /// Error 1319: only a stored program declares names of conditions.
    fn undefined_condition(&mut self) -> Result<Statement> {
        let name = self.ident()?;
        Err(SqlError::new(ErrorCode::ER_SP_COND_MISMATCH, &[&name]))
    }

    /// `SQLSTATE [VALUE] 'state'`; error 1407.
    fn sqlstate(&mut self) -> Result<String> {
        self.expect_kw(Kw::SQLSTATE)?;
        self.accept_kw(Kw::VALUE);
        let state = self.string()?;
        let text = String::from_utf8_lossy(&state).into_owned();
        if can_be_signaled(&state) {
            return Ok(text);
        }
        Err(SqlError::new(ErrorCode::ER_SP_BAD_SQLSTATE, &[&text]))
    }

    /// `[SET item = value, …]`; error 1641 for an item that stands there twice.
    fn signal_items(&mut self) -> Result<Vec<(ConditionItem, Expr)>> {
        let mut items: Vec<(ConditionItem, Expr)> = Vec::new();
        if !self.accept_kw(Kw::SET) {
            return Ok(items);
        }
        loop {
            let item = match condition_item(self.kw()) {
                Some(item) if item != ConditionItem::ReturnedSqlstate => item,
                _ => return self.unexpected(),
            };
            self.advance();
            self.expect(TokenKind::Eq)?;
            let value = self.diagnostics_operand()?;
            if items.iter().any(|(other, _)| *other == item) {
                let code = ErrorCode::ER_DUP_SIGNAL_SET;
                return Err(SqlError::new(code, &[&item.name()]));
            }
            items.push((item, value));
            if !self.accept(TokenKind::Comma) {
                return Ok(items);
            }
        }
    }

    /// A literal, a variable, or a name (which only stored programs declare).
    fn diagnostics_operand(&mut self) -> Result<Expr> {
        if self.is(TokenKind::UserVar) {
            return Ok(Expr::UserVar(self.user_var()?));
        }
        if self.at_literal() || self.is(TokenKind::AtAt) {
            return self.simple();
        }
        Ok(Expr::Column(Box::new(self.column_ref()?)))
    }

    /// `GET [CURRENT|STACKED] DIAGNOSTICS [CONDITION number] @a = item, …`
    pub(super) fn get_diagnostics(&mut self) -> Result<Statement> {
        self.advance();
        let stacked = self.accept_kw(Kw::STACKED);
        if !stacked {
            self.accept_kw(Kw::CURRENT);
        }
        self.expect_kw(Kw::DIAGNOSTICS)?;
        let get = if self.accept_kw(Kw::CONDITION) {
            let number = self.diagnostics_operand()?;
            let items = self.comma_list(|p| p.diagnostics_target(condition_item))?;
            GetDiagnostics::Condition { number, items }
        } else {
            GetDiagnostics::Statement(self.comma_list(|p| {
                p.diagnostics_target(|kw| match kw {
                    Kw::NUMBER => Some(StatementItem::Number),
                    Kw::ROW_COUNT => Some(StatementItem::RowCount),
                    _ => None,
                })
            })?)
        };
        Ok(Statement::GetDiagnostics(Box::new(if stacked {
            GetDiagnostics::Stacked
        } else {
            get
        })))
    }

    /// `@a = item`; error 1327 for a variable of a stored program.
    fn diagnostics_target<T>(&mut self, item: impl Fn(Kw) -> Option<T>) -> Result<(String, T)> {
        if self.at_ident() {
            let name = self.ident()?;
            return Err(SqlError::new(ErrorCode::ER_SP_UNDECLARED_VAR, &[&name]));
        }
        if self.is(TokenKind::AtAt) {
            // MySQL has read the first sign.
            return Err(super::syntax_error_at(
                self.text,
                self.token.start as usize + 1,
            ));
        }
        let name = self.user_var()?;
        self.expect(TokenKind::Eq)?;
        let Some(item) = item(self.kw()) else {
            return self.unexpected();
        };
        self.advance();
        Ok((name, item))
    }
}
