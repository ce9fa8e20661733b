//! Aggregates and window functions.

use super::{Parser, Result};
use crate::ast::{Expr, FunctionCall, Window};
use crate::keywords::Kw;
use crate::lexer::TokenKind;

impl Parser<'_> {
    #[inline(never)]
    pub(super) fn aggregate(&mut self, kw: Kw) -> Result<Expr> {
        let start = self.token.start;
        self.open()?;
        let distinct =
            !no_distinct(kw) && (self.accept_kw(Kw::DISTINCT) || self.accept_kw(Kw::DISTINCTROW));
        if !distinct && kw != Kw::GROUP_CONCAT && kw != Kw::JSON_OBJECTAGG {
            self.accept_kw(Kw::ALL);
        }
        let star = kw == Kw::COUNT && !distinct && self.accept(TokenKind::Star);
        let args = match kw {
            _ if star => Vec::new(),
            Kw::COUNT if !distinct => vec![self.expr()?],
            Kw::COUNT | Kw::GROUP_CONCAT => self.comma_list(Self::expr)?,
            Kw::JSON_OBJECTAGG => {
                let key = self.expr()?;
                self.expect(TokenKind::Comma)?;
                vec![key, self.expr()?]
            }
            _ => vec![self.expr()?],
        };
        let (mut order_by, mut separator) = (Vec::new(), None);
        if kw == Kw::GROUP_CONCAT {
            order_by = self.order_by()?;
            if self.accept_kw(Kw::SEPARATOR) {
                separator = Some(self.string()?);
            }
        }
        self.expect(TokenKind::RParen)?;
        let over = self.over()?;
        let name = kw.name().to_ascii_lowercase();
        let span = self.span_from(start);
        Ok(Expr::Function(Box::new(FunctionCall {
            schema: None,
            name,
            span,
            distinct,
            star,
            args,
            order_by,
            separator,
            over,
        })))
    }

    #[inline(never)]
    pub(super) fn window_function(&mut self, kw: Kw) -> Result<Expr> {
        let start = self.token.start;
        self.open()?;
        let (least, most) = match kw {
            Kw::NTILE | Kw::FIRST_VALUE | Kw::LAST_VALUE => (1, 1),
            Kw::LEAD | Kw::LAG => (1, 3),
            Kw::NTH_VALUE => (2, 2),
            _ => (0, 0),
        };
        let mut args = Vec::new();
        while args.len() < most && (args.len() < least || self.is(TokenKind::Comma)) {
            if !args.is_empty() {
                self.expect(TokenKind::Comma)?;
            }
            args.push(self.expr()?);
        }
        self.expect(TokenKind::RParen)?;
        if self.accept_kw(Kw::FROM) && !self.accept_kw(Kw::FIRST) {
            self.expect_kw(Kw::LAST)?;
        }
        if self.accept_kw(Kw::RESPECT) || self.accept_kw(Kw::IGNORE) {
            self.expect_kw(Kw::NULLS)?;
        }
        if !self.at(Kw::OVER) {
            return self.unexpected();
        }
        let mut call = self.builtin(&kw.name().to_ascii_lowercase(), start, args);
        let over = self.over()?;
        if let Expr::Function(call) = &mut call {
            call.over = over;
        }
        Ok(call)
    }

    fn over(&mut self) -> Result<Option<Box<Window>>> {
        if !self.accept_kw(Kw::OVER) {
            return Ok(None);
        }
        let window = if self.is(TokenKind::LParen) {
            self.window()?
        } else {
            Window {
                name: Some(self.ident()?),
                partition_by: Vec::new(),
                order_by: Vec::new(),
                framed: false,
            }
        };
        Ok(Some(Box::new(window)))
    }

    /// `([name] [PARTITION BY …] [ORDER BY …] [frame])`
    pub(super) fn window(&mut self) -> Result<Window> {
        self.expect(TokenKind::LParen)?;
        let name = if self.at_ident() {
            Some(self.ident()?)
        } else {
            None
        };
        let mut partition_by = Vec::new();
        if self.accept_kws(&[Kw::PARTITION, Kw::BY])? {
            partition_by = self.comma_list(Self::expr)?;
        }
        let order_by = self.order_by()?;
        let framed = matches!(self.kw(), Kw::ROWS | Kw::RANGE | Kw::GROUPS);
        if framed {
            let mut open = 0;
            while open > 0 || !self.is(TokenKind::RParen) {
                match self.kind() {
                    TokenKind::LParen => open += 1,
                    TokenKind::RParen => open -= 1,
                    TokenKind::End | TokenKind::Semicolon | TokenKind::Invalid => {
                        return self.unexpected();
                    }
                    _ => {}
                }
                self.advance();
            }
        }
        self.expect(TokenKind::RParen)?;
        Ok(Window {
            name,
            partition_by,
            order_by,
            framed,
        })
    }
}

/// True for the aggregates that take no DISTINCT.
fn no_distinct(kw: Kw) -> bool {
    !matches!(
        kw,
        Kw::COUNT | Kw::SUM | Kw::AVG | Kw::MIN | Kw::MAX | Kw::GROUP_CONCAT
    )
}
