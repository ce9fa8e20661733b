//! HANDLER.

use super::{Parser, Result};
use crate::ast::*;
use crate::keywords::Kw;
use crate::lexer::TokenKind;

impl Parser<'_> {
    /// `HANDLER name OPEN [[AS] alias]`, `HANDLER name CLOSE`, `HANDLER name READ …`
    pub(super) fn handler(&mut self) -> Result<Statement> {
        self.advance();
        let name = self.object_name()?;
        let action = match self.kw() {
            Kw::OPEN => {
                self.advance();
                let named = self.accept_kw(Kw::AS) || self.at_ident();
                let alias = named.then(|| self.ident()).transpose()?;
                HandlerAction::Open { alias }
            }
            Kw::CLOSE if name.schema.is_none() => {
                self.advance();
                HandlerAction::Close
            }
            Kw::READ if name.schema.is_none() => {
                self.advance();
                HandlerAction::Read(self.handler_read()?)
            }
            _ => return self.unexpected(),
        };
        Ok(Statement::Handler(Box::new(Handler { name, action })))
    }

    fn handler_read(&mut self) -> Result<HandlerRead> {
        let in_table = match self.kw() {
            Kw::FIRST => Some(HandlerRows::First),
            Kw::NEXT => Some(HandlerRows::Next),
            _ => None,
        };
        let in_table = in_table.filter(|_| {
            let next = self.peek();
            matches!(next.kind, TokenKind::End | TokenKind::Semicolon)
                || matches!(next.kw, Kw::WHERE | Kw::LIMIT)
        });
        let (index, rows) = match in_table {
            Some(rows) => {
                self.advance();
                (None, rows)
            }
            None => {
                let index = self.ident()?;
                (Some(index), self.handler_rows()?)
            }
        };
        let mut condition = None;
        if self.accept_kw(Kw::WHERE) {
            condition = Some(self.handler_text()?);
        }
        let (mut offset, mut count) = (0, 1);
        if self.accept_kw(Kw::LIMIT) {
            count = self.number()?;
            if self.accept(TokenKind::Comma) {
                (offset, count) = (count, self.number()?);
            } else if self.accept_kw(Kw::OFFSET) {
                offset = self.number()?;
            }
        }
        Ok(HandlerRead {
            index,
            rows,
            condition,
            offset,
            count,
        })
    }

    fn handler_rows(&mut self) -> Result<HandlerRows> {
        let rows = match self.kw() {
            Kw::FIRST => HandlerRows::First,
            Kw::NEXT => HandlerRows::Next,
            Kw::PREV => HandlerRows::Prev,
            Kw::LAST => HandlerRows::Last,
            _ => {
                let op = match self.kind() {
                    TokenKind::Eq => HandlerOp::Eq,
                    TokenKind::Le => HandlerOp::Le,
                    TokenKind::Ge => HandlerOp::Ge,
                    TokenKind::Lt => HandlerOp::Lt,
                    TokenKind::Gt => HandlerOp::Gt,
                    _ => return self.unexpected(),
                };
                self.advance();
                let values = self.paren_list(Self::handler_value)?;
                return Ok(HandlerRows::Key { op, values });
            }
        };
        self.advance();
        Ok(rows)
    }

    /// A value of a key. It is no subquery.
    fn handler_value(&mut self) -> Result<Span> {
        let query = matches!(
            self.peek().kw,
            Kw::SELECT | Kw::WITH | Kw::VALUES | Kw::TABLE
        );
        if self.kind() == TokenKind::LParen && query {
            return self.unexpected();
        }
        self.handler_text()
    }

    /// The place of an expression in the text.
    fn handler_text(&mut self) -> Result<Span> {
        let start = self.token.start;
        self.expr()?;
        Ok(self.span_from(start))
    }
}
