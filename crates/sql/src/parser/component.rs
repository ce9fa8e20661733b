//! INSTALL COMPONENT and UNINSTALL COMPONENT.

use super::{Parser, Result};
use crate::ast::*;
use crate::keywords::Kw;
use crate::lexer::TokenKind;

impl Parser<'_> {
    /// `INSTALL COMPONENT 'urn' [, ...] [SET variable [, ...]]`, or INSTALL of something else.
    pub(super) fn install(&mut self) -> Result<Statement> {
        self.advance();
        if !self.accept_kw(Kw::COMPONENT) {
            return self.unsupported("INSTALL PLUGIN");
        }
        let urns = self.comma_list(Self::urn)?;
        let variables = match self.accept_kw(Kw::SET) {
            true => self.comma_list(Self::component_variable)?,
            false => Vec::new(),
        };
        let component = ComponentStatement::Install { urns, variables };
        Ok(Statement::Component(component))
    }

    /// `UNINSTALL COMPONENT 'urn' [, ...]`, or UNINSTALL of something else.
    pub(super) fn uninstall(&mut self) -> Result<Statement> {
        self.advance();
        if !self.accept_kw(Kw::COMPONENT) {
            return self.unsupported("UNINSTALL PLUGIN");
        }
        let urns = self.comma_list(Self::urn)?;
        Ok(Statement::Component(ComponentStatement::Uninstall(urns)))
    }

    fn urn(&mut self) -> Result<String> {
        let urn = self.string()?;
        Ok(String::from_utf8_lossy(&urn).into_owned())
    }

    /// `[GLOBAL | PERSIST] name = expr`
    fn component_variable(&mut self) -> Result<ComponentVariable> {
        let persist = self.accept_kw(Kw::PERSIST);
        if !persist {
            self.accept_kw(Kw::GLOBAL);
        }
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
        self.set_operator()?;
        Ok(ComponentVariable {
            persist,
            name,
            value: self.set_expr()?,
        })
    }
}
