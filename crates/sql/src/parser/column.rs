//! Column definitions.

use super::{Parser, Result};
use crate::ast::*;
use crate::keywords::Kw;
use crate::lexer::TokenKind;

/// The keys and checks defined by a column's attributes.
#[derive(Default)]
pub(super) struct ColumnExtras {
    /// MODIFY or CHANGE of a column, which cannot have REFERENCES.
    pub changed: bool,
    pub keys: Vec<KeyDef>,
    pub checks: Vec<Check>,
    pub foreign_keys: Vec<ForeignKey>,
}

impl Parser<'_> {
    /// `name type attributes`
    pub(super) fn column_def(&mut self, more: &mut ColumnExtras) -> Result<ColumnDef> {
        let name = self.ident()?;
        self.column_after_name(name, more)
    }

    pub(super) fn column_after_name(
        &mut self,
        name: Ident,
        more: &mut ColumnExtras,
    ) -> Result<ColumnDef> {
        let ty = self.column_type()?;
        let mut column = ColumnDef {
            name,
            ty,
            not_null: None,
            default: None,
            on_update_now: None,
            auto_increment: false,
            comment: None,
            generated: None,
            invisible: false,
        };
        if column.ty.kind == TypeKind::Serial {
            column.ty.kind = TypeKind::BigInt;
            column.ty.unsigned = true;
            column.not_null = Some(true);
            column.auto_increment = true;
            more.keys.push(inline_key(KeyKind::Unique, &column.name));
        }
        while self.column_attribute(&mut column, more)? {}
        Ok(column)
    }

    /// Parses one attribute. Returns false if there is none.
    fn column_attribute(
        &mut self,
        column: &mut ColumnDef,
        more: &mut ColumnExtras,
    ) -> Result<bool> {
        let kw = self.kw();
        match kw {
            Kw::NULL => {
                self.advance();
                column.not_null = Some(false);
            }
            Kw::NOT => {
                self.advance();
                if self.accept_kw(Kw::NULL) {
                    column.not_null = Some(true);
                } else if self.at(Kw::SECONDARY) {
                    self.advance();
                } else {
                    return self.unexpected();
                }
            }
            Kw::DEFAULT => {
                self.advance();
                column.default = Some(self.default_value()?);
            }
            Kw::ON => {
                self.advance();
                self.expect_kw(Kw::UPDATE)?;
                match self.now_digits()? {
                    Some(digits) => column.on_update_now = Some(digits),
                    None => return self.unexpected(),
                }
            }
            Kw::AUTO_INCREMENT => {
                self.advance();
                column.auto_increment = true;
            }
            Kw::SERIAL => {
                self.advance();
                self.expect_kw(Kw::DEFAULT)?;
                self.expect_kw(Kw::VALUE)?;
                column.not_null = Some(true);
                column.auto_increment = true;
                more.keys.push(inline_key(KeyKind::Unique, &column.name));
            }
            Kw::PRIMARY | Kw::KEY => {
                if self.advance().kw == Kw::PRIMARY {
                    self.expect_kw(Kw::KEY)?;
                }
                more.keys.push(inline_key(KeyKind::Primary, &column.name));
            }
            Kw::UNIQUE => {
                self.advance();
                self.accept_kw(Kw::KEY);
                more.keys.push(inline_key(KeyKind::Unique, &column.name));
            }
            Kw::COMMENT => {
                self.advance();
                column.comment = Some(self.string()?);
            }
            Kw::COLLATE => {
                self.advance();
                column.ty.collation = Some(self.collation_name()?);
            }
            Kw::COLUMN_FORMAT | Kw::STORAGE => {
                self.advance();
                self.any_word()?;
            }
            Kw::VISIBLE | Kw::INVISIBLE => column.invisible = self.advance().kw == Kw::INVISIBLE,
            Kw::GENERATED | Kw::AS => column.generated = Some(self.generated()?),
            Kw::REFERENCES if !more.changed => {
                let mut key = self.references()?;
                key.columns.push(column.name.clone());
                key.keys_before = more.keys.len();
                more.foreign_keys.push(key);
            }
            Kw::CONSTRAINT | Kw::CHECK => {
                let mut name = None;
                if self.accept_kw(Kw::CONSTRAINT) && self.at_ident() {
                    name = Some(self.ident()?);
                }
                let mut check = self.check(name)?;
                check.column = Some(column.name.clone());
                more.checks.push(check);
            }
            Kw::SRID => {
                self.advance();
                self.number()?;
            }
            Kw::ENGINE_ATTRIBUTE | Kw::SECONDARY_ENGINE_ATTRIBUTE => self.engine_attribute()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// `[GENERATED ALWAYS] AS (expr) [VIRTUAL|STORED]`
    fn generated(&mut self) -> Result<Generated> {
        self.accept_kws(&[Kw::GENERATED, Kw::ALWAYS])?;
        self.expect_kw(Kw::AS)?;
        self.expect(TokenKind::LParen)?;
        let expr = self.expr()?;
        self.expect(TokenKind::RParen)?;
        let stored = self.accept_kw(Kw::STORED);
        if !stored {
            self.accept_kw(Kw::VIRTUAL);
        }
        Ok(Generated { expr, stored })
    }

    pub(super) fn default_value(&mut self) -> Result<DefaultValue> {
        if self.accept(TokenKind::LParen) {
            let expr = self.expr()?;
            self.expect(TokenKind::RParen)?;
            return Ok(DefaultValue::Expr(expr));
        }
        if let Some(digits) = self.now_digits()? {
            return Ok(DefaultValue::Now(digits));
        }
        if matches!(self.kind(), TokenKind::Minus | TokenKind::Plus) {
            let op = if self.is(TokenKind::Minus) {
                UnaryOp::Minus
            } else {
                UnaryOp::Plus
            };
            self.advance();
            if !matches!(
                self.kind(),
                TokenKind::Int | TokenKind::Decimal | TokenKind::Float
            ) {
                return self.unexpected();
            }
            let expr = Box::new(self.simple()?);
            return Ok(DefaultValue::Literal(Expr::Unary { op, expr }));
        }
        if !self.at_literal() {
            return self.unexpected();
        }
        let expr = self.simple()?;
        match expr {
            Expr::Literal(_) => Ok(DefaultValue::Literal(expr)),
            _ => self.unexpected(),
        }
    }

    /// `CURRENT_TIMESTAMP[(n)]` or a synonym: n.
    fn now_digits(&mut self) -> Result<Option<u8>> {
        if !matches!(
            self.kw(),
            Kw::CURRENT_TIMESTAMP | Kw::LOCALTIME | Kw::LOCALTIMESTAMP | Kw::NOW
        ) {
            return Ok(None);
        }
        self.advance();
        let mut digits = 0;
        if self.accept(TokenKind::LParen) {
            if !self.is(TokenKind::RParen) {
                digits = self.number()?.min(255) as u8;
            }
            self.expect(TokenKind::RParen)?;
        }
        Ok(Some(digits))
    }
}

/// The key that a column's attribute defines.
fn inline_key(kind: KeyKind, column: &Ident) -> KeyDef {
    let part = KeyPart {
        target: KeyTarget::Column {
            name: column.clone(),
            prefix: None,
        },
        descending: false,
        ordered: false,
    };
    KeyDef {
        kind,
        name: None,
        parts: vec![part],
        algorithm: None,
        comment: None,
        invisible: false,
        parser: None,
    }
}
