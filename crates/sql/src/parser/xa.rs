//! XA statements.

use super::{Parser, Result};
use crate::ast::{Statement, Xa, XaAssociation, Xid};
use crate::keywords::Kw;
use crate::lexer::TokenKind;
use crate::literal::{bit_bytes, hex_bytes};

/// Bytes of a gtrid, and of a bqual, at most.
const PART: usize = 64;
/// The formatID of an xid that has none.
const DEFAULT_FORMAT: i64 = 1;

impl Parser<'_> {
    pub(super) fn xa(&mut self) -> Result<Statement> {
        self.advance();
        let verb = self.kw();
        if !matches!(
            verb,
            Kw::START | Kw::BEGIN | Kw::END | Kw::PREPARE | Kw::COMMIT | Kw::ROLLBACK | Kw::RECOVER
        ) {
            return self.unexpected();
        }
        self.advance();
        if verb == Kw::RECOVER {
            let convert = self.accept_kws(&[Kw::CONVERT, Kw::XID])?;
            return Ok(Statement::Xa(Box::new(Xa::Recover { convert })));
        }
        let xid = self.xid()?;
        Ok(Statement::Xa(Box::new(match verb {
            Kw::END => Xa::End {
                xid,
                suspend: self.suspend()?,
            },
            Kw::PREPARE => Xa::Prepare(xid),
            Kw::COMMIT => Xa::Commit {
                xid,
                one_phase: self.accept_kws(&[Kw::ONE, Kw::PHASE])?,
            },
            Kw::ROLLBACK => Xa::Rollback(xid),
            _ => Xa::Start(xid, self.association()),
        })))
    }

    fn association(&mut self) -> XaAssociation {
        if self.accept_kw(Kw::JOIN) {
            XaAssociation::Join
        } else if self.accept_kw(Kw::RESUME) {
            XaAssociation::Resume
        } else {
            XaAssociation::New
        }
    }

    /// `[SUSPEND [FOR MIGRATE]]`
    fn suspend(&mut self) -> Result<bool> {
        let suspend = self.accept_kw(Kw::SUSPEND);
        if suspend {
            self.accept_kws(&[Kw::FOR, Kw::MIGRATE])?;
        }
        Ok(suspend)
    }

    fn xid(&mut self) -> Result<Xid> {
        let gtrid = self.xid_part()?;
        let mut xid = Xid {
            format: DEFAULT_FORMAT,
            gtrid,
            bqual: Vec::new(),
        };
        let mut format = false;
        if self.accept(TokenKind::Comma) {
            xid.bqual = self.xid_part()?;
            format = self.accept(TokenKind::Comma);
        }
        if format {
            xid.format = match self.xid_format() {
                Some(format) => format,
                None => return self.unexpected(),
            };
        }
        if xid.gtrid.len() > PART || xid.bqual.len() > PART {
            return self.unexpected();
        }
        if format {
            self.advance();
        }
        Ok(xid)
    }

    /// A string, or a hexadecimal or binary number.
    fn xid_part(&mut self) -> Result<Vec<u8>> {
        let bytes = self.bytes();
        let digits = |head: usize, tail: usize| bytes.get(head..bytes.len() - tail);
        let part = match self.token.kind {
            TokenKind::Str => return self.string(),
            TokenKind::HexNumber => digits(2, 0).map(hex_bytes),
            TokenKind::HexString => digits(2, 1).map(hex_bytes),
            TokenKind::BitNumber => digits(2, 0).map(bit_bytes),
            TokenKind::BitString => digits(2, 1).map(bit_bytes),
            _ => None,
        };
        match part {
            Some(part) => {
                self.advance();
                Ok(part)
            }
            None => self.unexpected(),
        }
    }

    /// The formatID at the current token: an integer, or the integer at the beginning of another
    /// number. `None`: there is none that fits.
    fn xid_format(&self) -> Option<i64> {
        let bytes = self.bytes();
        let number = match self.token.kind {
            TokenKind::HexNumber => u64::from_str_radix(std::str::from_utf8(&bytes[2..]).ok()?, 16),
            TokenKind::Int | TokenKind::Decimal | TokenKind::Float => {
                let digits = bytes.iter().take_while(|b| b.is_ascii_digit()).count();
                match std::str::from_utf8(&bytes[..digits]).ok()? {
                    "" => Ok(0),
                    digits => digits.parse(),
                }
            }
            _ => return None,
        };
        number.ok().and_then(|number| i64::try_from(number).ok())
    }
}
