//! Data types of columns and of CAST.

use super::{Deprecated, Parser, Result};
use crate::ast::{TypeKind, TypeSpec};
use crate::keywords::Kw;
use crate::lexer::TokenKind;

impl Parser<'_> {
    /// A column's type with its attributes UNSIGNED, ZEROFILL, CHARACTER SET and BINARY. (COLLATE
    /// is a column attribute.)
    pub(super) fn column_type(&mut self) -> Result<TypeSpec> {
        let kw = self.kw();
        let kind = match kw {
            Kw::TINYINT | Kw::INT1 => TypeKind::TinyInt,
            Kw::SMALLINT | Kw::INT2 => TypeKind::SmallInt,
            Kw::MEDIUMINT | Kw::INT3 | Kw::MIDDLEINT => TypeKind::MediumInt,
            Kw::INT | Kw::INTEGER | Kw::INT4 => TypeKind::Int,
            Kw::BIGINT | Kw::INT8 => TypeKind::BigInt,
            Kw::BOOL | Kw::BOOLEAN => TypeKind::Bool,
            Kw::SERIAL => TypeKind::Serial,
            Kw::DECIMAL | Kw::DEC | Kw::NUMERIC | Kw::FIXED => TypeKind::Decimal,
            Kw::FLOAT | Kw::FLOAT4 => TypeKind::Float,
            Kw::DOUBLE | Kw::FLOAT8 | Kw::REAL => TypeKind::Double,
            Kw::BIT => TypeKind::Bit,
            Kw::DATE => TypeKind::Date,
            Kw::TIME => TypeKind::Time,
            Kw::DATETIME => TypeKind::DateTime,
            Kw::TIMESTAMP => TypeKind::Timestamp,
            Kw::YEAR => TypeKind::Year,
            Kw::JSON => TypeKind::Json,
            Kw::VECTOR => TypeKind::Vector,
            Kw::BINARY => TypeKind::Binary,
            Kw::VARBINARY => TypeKind::VarBinary,
            Kw::TINYBLOB => TypeKind::TinyBlob,
            Kw::BLOB => TypeKind::Blob,
            Kw::MEDIUMBLOB => TypeKind::MediumBlob,
            Kw::LONGBLOB => TypeKind::LongBlob,
            Kw::GEOMETRY
            | Kw::POINT
            | Kw::LINESTRING
            | Kw::POLYGON
            | Kw::MULTIPOINT
            | Kw::MULTILINESTRING
            | Kw::MULTIPOLYGON
            | Kw::GEOMETRYCOLLECTION
            | Kw::GEOMCOLLECTION => TypeKind::Geometry,
            Kw::ENUM | Kw::SET => return self.members_type(),
            _ => return self.character_type(),
        };
        self.advance();
        let mut ty = TypeSpec::new(kind);
        self.non_character_type(kw, &mut ty)?;
        Ok(ty)
    }

    /// The rest of a type that is no character type, behind its first word.
    fn non_character_type(&mut self, kw: Kw, ty: &mut TypeSpec) -> Result<()> {
        match ty.kind {
            TypeKind::Double => {
                if kw == Kw::DOUBLE {
                    self.accept_kw(Kw::PRECISION);
                }
                self.two_numbers(ty, true)?;
                self.numeric_attributes(ty)?;
            }
            TypeKind::Decimal | TypeKind::Float => {
                self.two_numbers(ty, false)?;
                self.numeric_attributes(ty)?;
            }
            TypeKind::TinyInt
            | TypeKind::SmallInt
            | TypeKind::MediumInt
            | TypeKind::Int
            | TypeKind::BigInt => {
                self.length(ty)?;
                self.numeric_attributes(ty)?;
            }
            TypeKind::Year => {
                self.length(ty)?;
                self.numeric_attributes(ty)?;
            }
            TypeKind::VarBinary => {
                if !self.is(TokenKind::LParen) {
                    return self.unexpected();
                }
                self.length(ty)?;
            }
            TypeKind::Bit | TypeKind::Time | TypeKind::DateTime | TypeKind::Timestamp => {
                self.length(ty)?
            }
            TypeKind::Binary | TypeKind::Blob | TypeKind::Vector => self.length(ty)?,
            _ => {}
        }
        self.warn_of_type(ty);
        ty.unsigned |= ty.zerofill;
        Ok(())
    }

    /// Records deprecated attributes of a numeric type, in MySQL's order.
    fn warn_of_type(&mut self, ty: &TypeSpec) {
        use Deprecated::{DisplayWidth, RealDigits, UnsignedReal, YearLength, Zerofill};
        let real = matches!(ty.kind, TypeKind::Float | TypeKind::Double);
        let integer = matches!(
            ty.kind,
            TypeKind::TinyInt
                | TypeKind::SmallInt
                | TypeKind::MediumInt
                | TypeKind::Int
                | TypeKind::BigInt
        );
        let warnings = [
            (ty.zerofill, Zerofill),
            (integer && ty.length.is_some(), DisplayWidth),
            (real && ty.decimals.is_some(), RealDigits),
            (
                ty.unsigned && (real || ty.kind == TypeKind::Decimal),
                UnsignedReal,
            ),
            (
                ty.kind == TypeKind::Year && ty.length == Some(4),
                YearLength,
            ),
        ];
        let met = warnings.into_iter().filter(|(met, _)| *met);
        self.deprecated.extend(met.map(|(_, warning)| warning));
    }

    /// `(n)`, if it is there.
    fn length(&mut self, ty: &mut TypeSpec) -> Result<()> {
        if self.accept(TokenKind::LParen) {
            ty.length = Some(self.number()?);
            self.expect(TokenKind::RParen)?;
        }
        Ok(())
    }

    /// `(n)` or `(n, m)`. `both`: the second number is required.
    fn two_numbers(&mut self, ty: &mut TypeSpec, both: bool) -> Result<()> {
        if self.accept(TokenKind::LParen) {
            ty.length = Some(self.number()?);
            if both || self.is(TokenKind::Comma) {
                self.expect(TokenKind::Comma)?;
                ty.decimals = Some(self.number32()?);
            }
            self.expect(TokenKind::RParen)?;
        }
        Ok(())
    }

    fn numeric_attributes(&mut self, ty: &mut TypeSpec) -> Result<()> {
        loop {
            match self.kw() {
                Kw::UNSIGNED => ty.unsigned = true,
                Kw::ZEROFILL => ty.zerofill = true,
                Kw::SIGNED => {}
                _ => return Ok(()),
            }
            self.advance();
        }
    }

    fn members_type(&mut self) -> Result<TypeSpec> {
        let kind = if self.advance().kw == Kw::ENUM {
            TypeKind::Enum
        } else {
            TypeKind::Set
        };
        let mut ty = TypeSpec::new(kind);
        ty.members = self.paren_list(Self::text_or_hex)?;
        self.charset_attributes(&mut ty)?;
        Ok(ty)
    }

    /// A string, or hexadecimal or binary digits that represent one.
    pub(super) fn text_or_hex(&mut self) -> Result<Vec<u8>> {
        use crate::literal::{Lit, bit_bytes, hex_bytes};
        if self.is(TokenKind::Str) {
            return self.string();
        }
        match Lit::read(self.kind(), self.bytes(), self.mode) {
            Some(Lit::Hex(digits)) => {
                self.advance();
                Ok(hex_bytes(digits))
            }
            Some(Lit::Bit(digits)) => {
                self.advance();
                Ok(bit_bytes(digits))
            }
            _ => self.unexpected(),
        }
    }

    /// CHAR, VARCHAR, TEXT and all their spellings.
    fn character_type(&mut self) -> Result<TypeSpec> {
        let national = self.at(Kw::NATIONAL) || matches!(self.kw(), Kw::NCHAR | Kw::NVARCHAR);
        self.accept_kw(Kw::NATIONAL);
        let kw = self.kw();
        let kind = match kw {
            Kw::CHAR | Kw::CHARACTER | Kw::NCHAR => TypeKind::Char,
            Kw::VARCHAR | Kw::VARCHARACTER | Kw::NVARCHAR => TypeKind::VarChar,
            Kw::TINYTEXT if !national => TypeKind::TinyText,
            Kw::TEXT if !national => TypeKind::Text,
            Kw::MEDIUMTEXT if !national => TypeKind::MediumText,
            Kw::LONGTEXT if !national => TypeKind::LongText,
            Kw::LONG if !national => TypeKind::MediumText,
            _ => return self.unexpected(),
        };
        self.advance();
        let mut kind = kind;
        let char_word = matches!(kw, Kw::CHAR | Kw::CHARACTER | Kw::NCHAR);
        if char_word && self.accept_kw(Kw::VARYING)
            || kw == Kw::NCHAR && self.accept_kw(Kw::VARCHAR)
        {
            kind = TypeKind::VarChar;
        } else if kw == Kw::LONG {
            if self.accept_kw(Kw::VARBINARY) {
                return Ok(TypeSpec::new(TypeKind::MediumBlob));
            }
            if matches!(self.kw(), Kw::CHAR | Kw::CHARACTER) {
                self.advance();
                self.expect_kw(Kw::VARYING)?;
            } else {
                self.accept_kw(Kw::VARCHAR);
            }
        }
        let mut ty = TypeSpec::new(kind);
        if kind == TypeKind::VarChar && !self.is(TokenKind::LParen) {
            return self.unexpected();
        }
        if matches!(kind, TypeKind::Char | TypeKind::VarChar | TypeKind::Text) {
            self.length(&mut ty)?;
        }
        if national {
            ty.charset = Some("utf8mb3".into());
            ty.binary = self.binary_attribute();
            self.deprecated.push(Deprecated::National);
        } else {
            self.charset_attributes(&mut ty)?;
        }
        Ok(ty)
    }

    /// `[CHARACTER SET x | CHARSET x | ASCII | UNICODE | BYTE] [BINARY]`, in either order.
    fn charset_attributes(&mut self, ty: &mut TypeSpec) -> Result<()> {
        ty.binary = self.binary_attribute();
        match self.kw() {
            Kw::CHARACTER => {
                self.advance();
                self.expect_kw(Kw::SET)?;
                ty.charset = Some(self.charset_name()?);
            }
            Kw::CHAR if self.peek().kw == Kw::SET => {
                self.advance();
                self.advance();
                ty.charset = Some(self.charset_name()?);
            }
            Kw::CHARSET => {
                self.advance();
                ty.charset = Some(self.charset_name()?);
            }
            Kw::ASCII => {
                self.advance();
                self.deprecated.push(Deprecated::CharsetAttribute("ASCII"));
                ty.charset = Some("latin1".into());
            }
            Kw::UNICODE => {
                self.advance();
                let word = Deprecated::CharsetAttribute("UNICODE");
                self.deprecated.push(word);
                ty.charset = Some("ucs2".into());
            }
            Kw::BYTE => {
                self.advance();
                ty.charset = Some("binary".into());
            }
            _ => {}
        }
        if !ty.binary {
            ty.binary = self.binary_attribute();
        }
        Ok(())
    }

    /// Takes BINARY where it is an attribute of a character type.
    fn binary_attribute(&mut self) -> bool {
        let found = self.accept_kw(Kw::BINARY);
        if found {
            self.deprecated.push(Deprecated::BinaryAttribute);
        }
        found
    }

    /// The type of a CAST or CONVERT.
    pub(super) fn cast_type(&mut self) -> Result<TypeSpec> {
        let kw = self.kw();
        let kind = match kw {
            Kw::BINARY => TypeKind::Binary,
            Kw::CHAR | Kw::CHARACTER | Kw::NCHAR => TypeKind::Char,
            Kw::NATIONAL => {
                self.advance();
                if !matches!(self.kw(), Kw::CHAR | Kw::CHARACTER) {
                    return self.unexpected();
                }
                TypeKind::Char
            }
            Kw::SIGNED => TypeKind::Signed,
            Kw::UNSIGNED => TypeKind::Unsigned,
            Kw::DATE => TypeKind::Date,
            Kw::TIME => TypeKind::Time,
            Kw::DATETIME => TypeKind::DateTime,
            Kw::YEAR => TypeKind::Year,
            Kw::DECIMAL | Kw::DEC => TypeKind::Decimal,
            Kw::FLOAT => TypeKind::Float,
            Kw::DOUBLE | Kw::REAL => TypeKind::Double,
            Kw::JSON => TypeKind::Json,
            _ => return self.unexpected(),
        };
        self.advance();
        let mut ty = TypeSpec::new(kind);
        match kind {
            TypeKind::Signed | TypeKind::Unsigned => {
                if matches!(self.kw(), Kw::INT | Kw::INTEGER) {
                    self.advance();
                }
            }
            TypeKind::Char => {
                self.length(&mut ty)?;
                if matches!(kw, Kw::CHAR | Kw::CHARACTER) {
                    self.charset_attributes(&mut ty)?;
                } else {
                    ty.charset = Some("utf8mb3".into());
                    self.deprecated.push(Deprecated::National);
                }
            }
            TypeKind::Binary | TypeKind::Time | TypeKind::DateTime | TypeKind::Float => {
                self.length(&mut ty)?
            }
            TypeKind::Decimal => self.two_numbers(&mut ty, false)?,
            TypeKind::Double if kw == Kw::DOUBLE => {
                self.accept_kw(Kw::PRECISION);
            }
            _ => {}
        }
        Ok(ty)
    }
}
