//! JSON_VALUE and JSON_TABLE.

use super::{Deprecated, Parser, Result};
use crate::ast::*;
use crate::keywords::Kw;
use crate::lexer::TokenKind;
use nfold_types::error::{ErrorCode, SqlError};

impl Parser<'_> {
    /// `JSON_VALUE(document, path [RETURNING type] [… ON EMPTY] [… ON ERROR])`
    #[inline(never)]
    pub(super) fn json_value(&mut self) -> Result<Expr> {
        self.open()?;
        let document = self.expr()?;
        self.expect(TokenKind::Comma)?;
        let path = self.string()?;
        let returning = match self.accept_kw(Kw::RETURNING) {
            true => Some(self.cast_type()?),
            false => None,
        };
        let fallbacks = self.json_fallbacks(false)?;
        self.expect(TokenKind::RParen)?;
        Ok(Expr::JsonValue(Box::new(JsonValue {
            document,
            path,
            returning,
            fallbacks,
        })))
    }

    /// `JSON_TABLE(document, path COLUMNS (…)) [AS] alias`
    #[inline(never)]
    pub(super) fn json_table(&mut self) -> Result<TableRef> {
        self.open()?;
        let document = self.expr()?;
        self.expect(TokenKind::Comma)?;
        let rows = self.json_rows()?;
        self.expect(TokenKind::RParen)?;
        let Some(alias) = self.table_alias()? else {
            return Err(SqlError::new(ErrorCode::ER_TF_MUST_HAVE_ALIAS, &[]));
        };
        Ok(TableRef::JsonTable(Box::new(JsonTable {
            document,
            rows,
            alias,
        })))
    }

    /// `path COLUMNS (column, …)`
    fn json_rows(&mut self) -> Result<JsonRows> {
        let path = self.string()?;
        self.expect_kw(Kw::COLUMNS)?;
        let columns = self.deeper(1, |p| p.paren_list(Self::json_column))?;
        Ok(JsonRows { path, columns })
    }

    fn json_column(&mut self) -> Result<JsonColumn> {
        if self.at(Kw::NESTED) && self.peek().kw == Kw::PATH {
            self.advance();
            self.advance();
            return Ok(JsonColumn::Nested(self.json_rows()?));
        }
        let name = self.ident()?;
        if self.accept_kws(&[Kw::FOR, Kw::ORDINALITY])? {
            return Ok(JsonColumn::Ordinality(name));
        }
        let mut ty = self.column_type()?;
        if self.accept_kw(Kw::COLLATE) {
            ty.collation = Some(self.collation_name()?);
        }
        let exists = self.accept_kw(Kw::EXISTS);
        self.expect_kw(Kw::PATH)?;
        let path = self.string()?;
        let fallbacks = self.json_fallbacks(true)?;
        Ok(JsonColumn::Value(Box::new(JsonValueColumn {
            name,
            ty,
            exists,
            path,
            fallbacks,
        })))
    }

    /// ON EMPTY, then ON ERROR. `any_order`: also the other way round, which is deprecated.
    fn json_fallbacks(&mut self, any_order: bool) -> Result<JsonFallbacks> {
        let mut fallbacks = JsonFallbacks::default();
        while matches!(self.kw(), Kw::NULL | Kw::ERROR | Kw::DEFAULT) {
            let late = fallbacks.on_error.is_some();
            if late && (fallbacks.on_empty.is_some() || !any_order) {
                break;
            }
            let fallback = self.json_fallback()?;
            self.expect_kw(Kw::ON)?;
            if !late && self.accept_kw(Kw::ERROR) {
                fallbacks.on_error = Some(fallback);
                continue;
            }
            if fallbacks.on_empty.is_some() {
                return self.unexpected();
            }
            self.expect_kw(Kw::EMPTY)?;
            fallbacks.on_empty = Some(fallback);
            if late {
                self.deprecated.push(Deprecated::EmptyAfterError);
            }
        }
        Ok(fallbacks)
    }

    fn json_fallback(&mut self) -> Result<JsonFallback> {
        match self.advance().kw {
            Kw::NULL => Ok(JsonFallback::Null),
            Kw::ERROR => Ok(JsonFallback::Error),
            _ if self.at(Kw::NULL) => self.unexpected(),
            _ => match self.keeping_literals(Self::default_value)? {
                DefaultValue::Literal(literal) => Ok(JsonFallback::Default(literal)),
                _ => self.unexpected(),
            },
        }
    }
}
