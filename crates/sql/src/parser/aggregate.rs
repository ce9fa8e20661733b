//! Aggregates and window functions.

use super::{Parser, Result};
use crate::ast::{Expr, Frame, FrameBound, FunctionCall, Window};
use crate::keywords::Kw;
use crate::lexer::TokenKind;
use nfold_types::error::{ErrorCode, SqlError};

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
        if over.is_some() && kw == Kw::GROUP_CONCAT {
            return Err(SqlError::not_supported("group_concat as window function"));
        }
        // For MIN and MAX, DISTINCT makes no difference.
        let extreme = matches!(kw, Kw::MIN | Kw::MAX);
        if over.is_some() && distinct && !extreme {
            return Err(SqlError::not_supported("<window function>(DISTINCT ..)"));
        }
        let name = kw.name().to_ascii_lowercase();
        let span = self.span_from(start);
        Ok(Expr::Function(Box::new(FunctionCall {
            schema: None,
            stored: false,
            name,
            span,
            distinct,
            star,
            args,
            arg_spans: Vec::new(),
            order_by,
            separator,
            over,
        })))
    }

    #[inline(never)]
    pub(super) fn window_function(&mut self, kw: Kw) -> Result<Expr> {
        let start = self.token.start;
        self.open()?;
        let mut args = Vec::new();
        match kw {
            Kw::NTILE => args.push(self.stable_integer()?),
            Kw::FIRST_VALUE | Kw::LAST_VALUE => args.push(self.expr()?),
            Kw::NTH_VALUE => {
                args.push(self.expr()?);
                self.expect(TokenKind::Comma)?;
                args.push(self.keeping_literals(Self::simple)?);
            }
            Kw::LEAD | Kw::LAG => {
                args.push(self.expr()?);
                if self.accept(TokenKind::Comma) {
                    args.push(self.stable_integer()?);
                    if self.accept(TokenKind::Comma) {
                        args.push(self.expr()?);
                    }
                }
            }
            _ => {}
        }
        self.expect(TokenKind::RParen)?;
        let mut refused = None;
        if kw == Kw::NTH_VALUE && self.accept_kw(Kw::FROM) && !self.accept_kw(Kw::FIRST) {
            self.expect_kw(Kw::LAST)?;
            refused = Some("FROM LAST");
        }
        let takes_nulls = matches!(
            kw,
            Kw::LEAD | Kw::LAG | Kw::FIRST_VALUE | Kw::LAST_VALUE | Kw::NTH_VALUE
        );
        if takes_nulls && self.accept_kw(Kw::RESPECT) {
            self.expect_kw(Kw::NULLS)?;
        } else if takes_nulls && self.accept_kw(Kw::IGNORE) {
            self.expect_kw(Kw::NULLS)?;
            refused = Some("IGNORE NULLS");
        }
        if !self.at(Kw::OVER) {
            return self.unexpected();
        }
        let mut call = self.builtin(&kw.name().to_ascii_lowercase(), start, args);
        let over = self.over()?;
        if let Some(what) = refused {
            return Err(SqlError::not_supported(what));
        }
        if let Expr::Function(call) = &mut call {
            call.over = over;
        }
        Ok(call)
    }

    /// An integer, a parameter or a user variable.
    fn stable_integer(&mut self) -> Result<Expr> {
        match self.kind() {
            TokenKind::Int | TokenKind::Marker | TokenKind::UserVar => {
                self.keeping_literals(Self::simple)
            }
            _ if self.at_ident() => {
                let name = self.ident()?;
                let code = ErrorCode::ER_SP_UNDECLARED_VAR;
                Err(SqlError::new(code, &[&name.value]))
            }
            _ => self.unexpected(),
        }
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
                written: false,
                partition_by: Vec::new(),
                order_by: Vec::new(),
                frame: None,
            }
        };
        Ok(Some(Box::new(window)))
    }

    /// `([name] [PARTITION BY …] [ORDER BY …] [frame])`. Literals are kept in the tree, because
    /// windows are compared with each other.
    pub(super) fn window(&mut self) -> Result<Window> {
        self.expect(TokenKind::LParen)?;
        let name = if self.at_ident() {
            Some(self.ident()?)
        } else {
            None
        };
        let window = self.keeping_literals(|p| {
            let mut partition_by = Vec::new();
            if p.accept_kws(&[Kw::PARTITION, Kw::BY])? {
                partition_by = p.comma_list(Self::expr)?;
            }
            Ok(Window {
                name,
                written: true,
                partition_by,
                order_by: p.order_by()?,
                frame: p.frame()?.map(Box::new),
            })
        })?;
        self.expect(TokenKind::RParen)?;
        Ok(window)
    }

    fn frame(&mut self) -> Result<Option<Frame>> {
        let unit = self.kw();
        if !matches!(unit, Kw::ROWS | Kw::RANGE | Kw::GROUPS) {
            return Ok(None);
        }
        self.advance();
        let (start, end) = if self.accept_kw(Kw::BETWEEN) {
            let start = self.frame_bound(true)?;
            self.expect_kw(Kw::AND)?;
            (start, self.frame_bound(true)?)
        } else {
            (self.frame_bound(false)?, FrameBound::CurrentRow)
        };
        let excludes = self.accept_kw(Kw::EXCLUDE);
        if excludes {
            match self.kw() {
                Kw::CURRENT | Kw::NO => {
                    self.advance();
                    self.advance();
                }
                Kw::TIES | Kw::GROUP => {
                    self.advance();
                }
                _ => return self.unexpected(),
            }
        }
        if unit == Kw::GROUPS {
            return Err(SqlError::not_supported("GROUPS"));
        }
        if excludes {
            return Err(SqlError::not_supported("EXCLUDE"));
        }
        Ok(Some(Frame {
            range: unit == Kw::RANGE,
            start,
            end,
        }))
    }

    /// A bound of a frame. A bound without BETWEEN must not be `FOLLOWING`.
    fn frame_bound(&mut self, may_follow: bool) -> Result<FrameBound> {
        if self.accept_kws(&[Kw::CURRENT, Kw::ROW])? {
            return Ok(FrameBound::CurrentRow);
        }
        let mut by = None;
        if !self.accept_kw(Kw::UNBOUNDED) {
            by = Some(match self.kind() {
                TokenKind::Int | TokenKind::Decimal | TokenKind::Float | TokenKind::Marker => {
                    (self.simple()?, None)
                }
                _ if self.accept_kw(Kw::INTERVAL) => {
                    let amount = self.expr()?;
                    (amount, Some(self.interval_unit()?))
                }
                _ => return self.unexpected(),
            });
        }
        let following = may_follow && self.accept_kw(Kw::FOLLOWING);
        if !following {
            self.expect_kw(Kw::PRECEDING)?;
        }
        Ok(match by {
            None => FrameBound::Unbounded { following },
            Some((amount, unit)) => FrameBound::By {
                amount,
                unit,
                following,
            },
        })
    }
}

/// Whether the aggregate does not accept DISTINCT.
fn no_distinct(kw: Kw) -> bool {
    !matches!(
        kw,
        Kw::COUNT | Kw::SUM | Kw::AVG | Kw::MIN | Kw::MAX | Kw::GROUP_CONCAT
    )
}
