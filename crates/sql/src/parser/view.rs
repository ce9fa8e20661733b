//! CREATE VIEW and ALTER VIEW.

use super::{Parser, Result};
use crate::ast::*;
use crate::keywords::Kw;
use crate::lexer::TokenKind;

impl Parser<'_> {
    /// What stands behind CREATE or ALTER: `[OR REPLACE] [ALGORITHM = x] [DEFINER = account]
    /// [SQL SECURITY x] VIEW [IF NOT EXISTS] name [(columns)] AS query [WITH [CASCADED | LOCAL]
    /// CHECK OPTION]`.
    pub(super) fn view(&mut self, alter: bool) -> Result<Statement> {
        let or_replace = self.at(Kw::OR) && self.accept_kws(&[Kw::OR, Kw::REPLACE])?;
        let algorithm = match self.accept_kw(Kw::ALGORITHM) {
            true => self.view_algorithm()?,
            false => ViewAlgorithm::Undefined,
        };
        let definer = match self.accept_kw(Kw::DEFINER) {
            true => {
                self.expect(TokenKind::Eq)?;
                Some(self.account()?)
            }
            false => None,
        };
        let mut invoker = false;
        if self.accept_kw(Kw::SQL) {
            self.expect_kw(Kw::SECURITY)?;
            invoker = self.accept_kw(Kw::INVOKER);
            if !invoker {
                self.expect_kw(Kw::DEFINER)?;
            }
        }
        match self.kw() {
            Kw::TRIGGER => return self.unsupported("CREATE TRIGGER"),
            Kw::PROCEDURE => return self.unsupported("CREATE PROCEDURE"),
            Kw::FUNCTION | Kw::AGGREGATE => return self.unsupported("CREATE FUNCTION"),
            Kw::EVENT => return self.unsupported("CREATE EVENT"),
            _ => self.expect_kw(Kw::VIEW)?,
        };
        let if_not_exists = !or_replace
            && !alter
            && self.at(Kw::IF)
            && self.accept_kws(&[Kw::IF, Kw::NOT, Kw::EXISTS])?;
        let name = self.object_name()?;
        let columns = match self.is(TokenKind::LParen) && !self.query_follows_paren() {
            true => self.paren_list(Self::ident)?,
            false => Vec::new(),
        };
        self.expect_kw(Kw::AS)?;
        let start = self.token.start;
        let query = Box::new(self.query_statement()?);
        let text = self.span_from(start);
        let mut check = ViewCheck::None;
        if self.accept_kw(Kw::WITH) {
            check = match self.kw() {
                Kw::LOCAL => ViewCheck::Local,
                _ => ViewCheck::Cascaded,
            };
            if matches!(self.kw(), Kw::CASCADED | Kw::LOCAL) {
                self.advance();
            }
            self.expect_kw(Kw::CHECK)?;
            self.expect_kw(Kw::OPTION)?;
        }
        Ok(Statement::CreateView(Box::new(CreateView {
            or_replace,
            if_not_exists,
            alter,
            algorithm,
            definer,
            invoker,
            name,
            columns,
            query,
            text,
            check,
        })))
    }

    fn view_algorithm(&mut self) -> Result<ViewAlgorithm> {
        self.expect(TokenKind::Eq)?;
        let algorithm = match self.kw() {
            Kw::UNDEFINED => ViewAlgorithm::Undefined,
            Kw::MERGE => ViewAlgorithm::Merge,
            Kw::TEMPTABLE => ViewAlgorithm::TempTable,
            _ => return self.unexpected(),
        };
        self.advance();
        Ok(algorithm)
    }
}
