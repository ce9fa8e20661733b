//! Operands: literals, names, variables, and expressions that start with an operator or a
//! parenthesis.

use super::expr::{Paren, level};
use super::{Deprecated, Parser, Result, check_introduced, utf8};
use crate::ast::{
    ColumnRef, Expr, FunctionCall, Ident, Literal, StringLiteral, TemporalKind, UnaryOp, VarScope,
};
use crate::digest::LiteralRole;
use crate::keywords::Kw;
use crate::lexer::{LexMode, Token, TokenKind};
use crate::literal::{Lit, bit_bytes, hex_bytes};
use nfold_types::charset::Charset;
use nfold_types::collation::Collation;

impl Parser<'_> {
    /// One operand (`simple_expr` without its binary operators).
    #[inline(never)]
    pub(super) fn simple(&mut self) -> Result<Expr> {
        self.count_node()?;
        match self.kind() {
            TokenKind::Int
            | TokenKind::Decimal
            | TokenKind::Float
            | TokenKind::HexNumber
            | TokenKind::HexString
            | TokenKind::BitNumber
            | TokenKind::BitString
            | TokenKind::Str
            | TokenKind::NStr => self.literal(),
            TokenKind::Introducer => self.introduced(),
            TokenKind::Marker => self.marker(),
            TokenKind::LParen => Ok(match self.parenthesised(false)? {
                Paren::Expr(expr) => expr,
                Paren::Query(query) => Expr::Subquery(query),
            }),
            TokenKind::Minus => self.unary(UnaryOp::Minus),
            TokenKind::Plus => self.unary(UnaryOp::Plus),
            TokenKind::Tilde => self.unary(UnaryOp::BitNot),
            TokenKind::Bang => self.tight_not(),
            TokenKind::UserVar => self.user_variable(),
            TokenKind::AtAt => self.system_variable(),
            TokenKind::LBrace => self.odbc(),
            TokenKind::Word => self.word(),
            TokenKind::QuotedIdent => self.name(),
            _ => self.unexpected(),
        }
    }

    /// `!expr`, and NOT under HIGH_NOT_PRECEDENCE.
    #[inline(never)]
    fn tight_not(&mut self) -> Result<Expr> {
        if self.kind() == TokenKind::Bang {
            self.deprecated.push(Deprecated::Bang);
        }
        self.advance();
        Ok(Expr::Not(Box::new(self.expr_at(level::UNARY)?)))
    }

    // Literals

    /// Whether the current token begins a literal.
    pub(super) fn at_literal(&self) -> bool {
        use TokenKind::*;
        match self.kind() {
            Int | Decimal | Float | HexNumber | HexString | BitNumber | BitString | Str | NStr => {
                true
            }
            Introducer => true,
            _ => match self.kw() {
                Kw::NULL | Kw::TRUE | Kw::FALSE => true,
                Kw::DATE | Kw::TIME | Kw::TIMESTAMP => self.peek().kind == Str,
                _ => false,
            },
        }
    }

    /// A literal. It becomes a parameter if the digest has a slot for it and the context permits
    /// that.
    #[inline(never)]
    fn literal(&mut self) -> Result<Expr> {
        let token = self.advance();
        let text = token.text(self.text);
        let Some(lit) = Lit::read(token.kind, text, self.mode) else {
            return self.unexpected();
        };
        if token.kind == TokenKind::NStr {
            self.deprecated.push(Deprecated::National);
        }
        if matches!(token.kind, TokenKind::Str | TokenKind::NStr) && self.is(TokenKind::Str) {
            return self.adjacent_strings(lit);
        }
        if self.structural == 0
            && let Some(n) = self.slot_at(token.start)
        {
            self.roles[n as usize] = LiteralRole::Parameter;
            return Ok(Expr::Param(n));
        }
        Ok(Expr::Literal(lit.to_literal()))
    }

    /// `'a' 'b'` is `'ab'`.
    #[inline(never)]
    fn adjacent_strings(&mut self, first: Lit<'_>) -> Result<Expr> {
        let Literal::String(mut whole) = first.to_literal() else {
            return self.unexpected();
        };
        while self.is(TokenKind::Str) {
            whole.bytes.extend(self.string()?);
        }
        Ok(Expr::Literal(Literal::String(whole)))
    }

    /// `_charset'x'`, `_charset x'41'`
    #[inline(never)]
    fn introduced(&mut self) -> Result<Expr> {
        let charset = self.advance();
        let charset = utf8(charset.text(self.text)[1..].to_ascii_lowercase())?;
        let charset = self.known_charset(charset);
        if !matches!(
            self.kind(),
            TokenKind::Str
                | TokenKind::HexNumber
                | TokenKind::HexString
                | TokenKind::BitNumber
                | TokenKind::BitString
        ) {
            return self.unexpected();
        }
        let token = self.advance();
        let mut bytes = match Lit::read(token.kind, token.text(self.text), self.mode) {
            Some(Lit::String(s)) => s.to_vec(),
            Some(Lit::Hex(digits)) => hex_bytes(digits),
            Some(Lit::Bit(digits)) => bit_bytes(digits),
            _ => return self.unexpected(),
        };
        while token.kind == TokenKind::Str && self.is(TokenKind::Str) {
            bytes.extend(self.string()?);
        }
        if token.kind != TokenKind::Str {
            if let Some(set) = Charset::by_name(&charset) {
                // Zeros fill the first unit of a wide set.
                bytes.splice(..0, vec![0; set.missing_bytes(bytes.len())]);
            }
            check_introduced(&charset, &bytes)?;
        }
        Ok(Expr::Literal(Literal::String(StringLiteral {
            bytes,
            charset: Some(charset),
        })))
    }

    #[inline(never)]
    pub(super) fn marker(&mut self) -> Result<Expr> {
        if !self.markers_allowed {
            return self.unexpected();
        }
        let token = self.advance();
        let Some(n) = self.slot_at(token.start) else {
            return self.unexpected();
        };
        self.roles[n as usize] = LiteralRole::Parameter;
        self.markers += 1;
        Ok(Expr::Param(n))
    }

    /// `DATE'..'`, `TIME'..'`, `TIMESTAMP'..'`
    #[inline(never)]
    fn temporal(&mut self, kind: TemporalKind) -> Result<Expr> {
        self.advance();
        let text = self.string()?;
        Ok(Expr::Literal(Literal::Temporal {
            kind,
            text,
            odbc: false,
        }))
    }

    /// `{d '2020-01-01'}`, `{fn expr}`. The braces and an unknown word are ignored.
    #[inline(never)]
    fn odbc(&mut self) -> Result<Expr> {
        self.advance();
        let word = self.ident()?;
        let kind = if word.is("d") {
            Some(TemporalKind::Date)
        } else if word.is("t") {
            Some(TemporalKind::Time)
        } else if word.is("ts") {
            Some(TemporalKind::Timestamp)
        } else {
            None
        };
        let expr = match kind {
            Some(kind) if self.is(TokenKind::Str) && self.peek().kind == TokenKind::RBrace => {
                Expr::Literal(Literal::Temporal {
                    kind,
                    text: self.string()?,
                    odbc: true,
                })
            }
            _ => self.expr()?,
        };
        self.expect(TokenKind::RBrace)?;
        Ok(expr)
    }

    // Variables

    #[inline(never)]
    fn user_variable(&mut self) -> Result<Expr> {
        let name = self.user_var()?;
        if self.accept(TokenKind::Assign) {
            self.deprecated.push(Deprecated::Assignment);
            return Ok(Expr::AssignUserVar {
                name,
                value: self.boxed()?,
            });
        }
        Ok(Expr::UserVar(name))
    }

    /// `@@[scope.]name`
    #[inline(never)]
    fn system_variable(&mut self) -> Result<Expr> {
        let (scope, name) = self.system_variable_name()?;
        self.deprecated.extend(Deprecated::variable(&name));
        Ok(Expr::SysVar { scope, name })
    }

    pub(super) fn system_variable_name(&mut self) -> Result<(Option<VarScope>, String)> {
        self.expect(TokenKind::AtAt)?;
        let scope = match self.kw() {
            Kw::GLOBAL => Some(VarScope::Global),
            Kw::SESSION | Kw::LOCAL => Some(VarScope::Session),
            Kw::PERSIST => Some(VarScope::Persist),
            Kw::PERSIST_ONLY => Some(VarScope::PersistOnly),
            _ => None,
        };
        if scope.is_some() {
            self.advance();
            self.expect(TokenKind::Dot)?;
        }
        let start = self.token.start as usize;
        let mut name = self.ident()?.value;
        if self.is(TokenKind::Dot)
            && ["global", "local", "session"]
                .iter()
                .any(|s| name.eq_ignore_ascii_case(s))
        {
            return Err(super::syntax_error_at(self.text, start));
        }
        if self.accept(TokenKind::Dot) {
            name.push('.');
            name.push_str(&self.ident_after_dot()?.value);
        }
        Ok((scope, name))
    }

    // Words and names

    #[inline(never)]
    fn word(&mut self) -> Result<Expr> {
        let kw = self.kw();
        let constant = match kw {
            Kw::NULL => Some(Literal::Null),
            Kw::TRUE => Some(Literal::Bool(true)),
            Kw::FALSE => Some(Literal::Bool(false)),
            _ => None,
        };
        if let Some(constant) = constant {
            self.advance();
            return Ok(Expr::Literal(constant));
        }
        if kw == Kw::Other {
            return self.name();
        }
        let next = self.peek().kind;
        match kw {
            Kw::DATE if next == TokenKind::Str => self.temporal(TemporalKind::Date),
            Kw::TIME if next == TokenKind::Str => self.temporal(TemporalKind::Time),
            Kw::TIMESTAMP if next == TokenKind::Str => self.temporal(TemporalKind::Timestamp),
            Kw::BINARY => self.unary(UnaryOp::Binary),
            Kw::NOT if self.mode.has(LexMode::HIGH_NOT_PRECEDENCE) => self.tight_not(),
            Kw::CASE => self.case(),
            Kw::EXISTS => {
                self.advance();
                Ok(Expr::Exists(self.subquery()?))
            }
            Kw::ROW => {
                self.advance();
                self.expect(TokenKind::LParen)?;
                let first = self.expr()?;
                if !self.is(TokenKind::Comma) {
                    return self.unexpected();
                }
                self.advance();
                let mut members = vec![first];
                members.extend(self.comma_list(Self::expr)?);
                self.expect(TokenKind::RParen)?;
                Ok(Expr::Row(members))
            }
            Kw::INTERVAL => self.interval_operand(),
            Kw::DEFAULT => {
                self.advance();
                self.expect(TokenKind::LParen)?;
                let column = self.column_ref()?;
                self.expect(TokenKind::RParen)?;
                Ok(Expr::Default(Some(Box::new(column))))
            }
            Kw::VALUES => {
                self.advance();
                self.expect(TokenKind::LParen)?;
                let column = self.column_ref()?;
                self.expect(TokenKind::RParen)?;
                self.deprecated.push(Deprecated::ValuesFunction);
                Ok(Expr::Values(Box::new(column)))
            }
            _ => match self.keyword_function(kw, next)? {
                Some(call) => Ok(call),
                None => self.name(),
            },
        }
    }

    /// `CASE [operand] WHEN a THEN b … [ELSE c] END`
    #[inline(never)]
    fn case(&mut self) -> Result<Expr> {
        self.advance();
        let operand = if self.at(Kw::WHEN) {
            None
        } else {
            Some(self.boxed()?)
        };
        let mut whens = Vec::new();
        while self.at(Kw::WHEN) || whens.is_empty() {
            self.expect_kw(Kw::WHEN)?;
            let when = self.expr()?;
            self.expect_kw(Kw::THEN)?;
            whens.push((when, self.expr()?));
        }
        let otherwise = if self.accept_kw(Kw::ELSE) {
            Some(self.boxed()?)
        } else {
            None
        };
        self.expect_kw(Kw::END)?;
        Ok(Expr::Case {
            operand,
            whens,
            otherwise,
        })
    }

    /// A column, or a call of a function whose name is not a keyword.
    #[inline(never)]
    fn name(&mut self) -> Result<Expr> {
        let first_token = self.token;
        let first = self.ident()?;
        if self.is(TokenKind::LParen) && first_token.kw == Kw::Other {
            return self.call(None, first, first_token.start);
        }
        if !self.accept(TokenKind::Dot) {
            return self.json_path(ColumnRef {
                schema: None,
                table: None,
                name: first,
            });
        }
        let second = self.ident_after_dot()?;
        if self.is(TokenKind::LParen) {
            return self.call(Some(first), second, first_token.start);
        }
        if !self.accept(TokenKind::Dot) {
            return self.json_path(ColumnRef {
                schema: None,
                table: Some(first),
                name: second,
            });
        }
        let name = self.ident_after_dot()?;
        self.json_path(ColumnRef {
            schema: Some(first),
            table: Some(second),
            name,
        })
    }

    /// `column -> '$.path'`, `column ->> '$.path'`
    #[inline(never)]
    fn json_path(&mut self, column: ColumnRef) -> Result<Expr> {
        let unquote = self.is(TokenKind::LongArrow);
        if !unquote && !self.is(TokenKind::Arrow) {
            return Ok(Expr::Column(Box::new(column)));
        }
        let start = self.advance().start;
        let path = Literal::String(StringLiteral {
            bytes: self.string()?,
            charset: None,
        });
        let extract = self.builtin(
            "json_extract",
            start,
            vec![Expr::Column(Box::new(column)), Expr::Literal(path)],
        );
        Ok(if unquote {
            self.builtin("json_unquote", start, vec![extract])
        } else {
            extract
        })
    }

    /// A call of a built-in function, given by its name in lower case.
    pub(super) fn builtin(&self, name: &str, start: u32, args: Vec<Expr>) -> Expr {
        Expr::Function(Box::new(FunctionCall {
            schema: None,
            stored: false,
            name: name.to_string(),
            span: self.span_from(start),
            distinct: false,
            star: false,
            args,
            arg_spans: Vec::new(),
            order_by: Vec::new(),
            separator: None,
            over: None,
        }))
    }

    /// `[[schema.]table.]name`
    pub(super) fn column_ref(&mut self) -> Result<ColumnRef> {
        let first = self.ident()?;
        if !self.accept(TokenKind::Dot) {
            return Ok(ColumnRef {
                schema: None,
                table: None,
                name: first,
            });
        }
        let second = self.ident_after_dot()?;
        if !self.accept(TokenKind::Dot) {
            return Ok(ColumnRef {
                schema: None,
                table: Some(first),
                name: second,
            });
        }
        let name = self.ident_after_dot()?;
        Ok(ColumnRef {
            schema: Some(first),
            table: Some(second),
            name,
        })
    }

    /// A collation's or character set's name in lower case: a name, a string, or BINARY.
    fn charset_or_collation(&mut self) -> Result<String> {
        if self.at(Kw::BINARY) || self.at(Kw::ASCII) {
            let token: Token = self.advance();
            return utf8(token.text(self.text).to_ascii_lowercase());
        }
        Ok(self.ident_or_text()?.to_ascii_lowercase())
    }

    /// A character set's name in lower case; utf8 is utf8mb3.
    pub(super) fn charset_name(&mut self) -> Result<String> {
        let name = self.charset_or_collation()?;
        Ok(self.known_charset(name))
    }

    /// Notes the names of deprecated character sets; that of utf8 becomes utf8mb3.
    fn known_charset(&mut self, name: String) -> String {
        if let Some(set) = Deprecated::charset(&name) {
            self.deprecated.push(set);
            return name;
        }
        match name.as_str() {
            "utf8" => self.deprecated.push(Deprecated::Utf8),
            "utf8mb3" => self.deprecated.push(Deprecated::Utf8mb3),
            _ => return name,
        }
        "utf8mb3".into()
    }

    /// A collation's name in lower case, in a definition or an option.
    pub(super) fn collation_name(&mut self) -> Result<String> {
        let name = self.collation_operand()?;
        if let Some(known) = Collation::by_name(&name)
            && known.charset.name == "utf8mb3"
        {
            self.deprecated
                .push(Deprecated::Utf8mb3Collation(known.name));
        }
        Ok(name)
    }

    /// A collation's name in lower case, behind the operator COLLATE.
    pub(super) fn collation_operand(&mut self) -> Result<String> {
        let name = self.charset_or_collation()?;
        Ok(match name.strip_prefix("utf8_") {
            Some(rest) => format!("utf8mb3_{rest}"),
            None => name,
        })
    }

    /// `INTERVAL amount unit + expr`, or the function `INTERVAL(n, a, …)`.
    #[inline(never)]
    fn interval_operand(&mut self) -> Result<Expr> {
        let start = self.advance().start;
        let amount = if self.is(TokenKind::LParen) {
            // Either the function's arguments, or an amount in parentheses that operators may
            // follow.
            match self.parenthesised(false)? {
                Paren::Expr(Expr::Row(args)) => return Ok(self.builtin("interval", start, args)),
                Paren::Expr(expr) => self.infix(expr, level::SIMPLE, level::OR)?,
                Paren::Query(query) => {
                    self.infix(Expr::Subquery(query), level::SIMPLE, level::OR)?
                }
            }
        } else {
            self.expr()?
        };
        let unit = self.interval_unit()?;
        self.expect(TokenKind::Plus)?;
        let expr = Box::new(self.expr_at(level::NOT)?);
        Ok(Expr::IntervalArith {
            expr,
            amount: Box::new(amount),
            unit,
            subtract: false,
        })
    }

    /// Any unquoted word, as the value of an option or for an error message.
    pub(super) fn any_word(&mut self) -> Result<Ident> {
        if !self.is(TokenKind::Word) {
            return self.ident();
        }
        let token = self.advance();
        self.ident_of(token)
    }
}
