//! The values of literals, read from the bytes of their tokens.

use crate::ast::{Literal, StringLiteral};
use crate::lexer::{LexMode, TokenKind};
use crate::watch::STRIDE;
use nfold_types::{Checkpoint, NoCheckpoint, SqlError};

/// Work of a byte between escapes.
const ESCAPE_WORK: u64 = 5;

/// A literal as written in the text; nothing is copied.
///
/// In lists, a sign may belong to the literal. Elsewhere the sign is an operator, and `negative` is
/// false.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Lit<'a> {
    Null,
    Bool(bool),
    Int {
        negative: bool,
        value: u64,
    },
    /// Digits with or without a point. Includes integers above `u64::MAX`.
    Decimal {
        negative: bool,
        text: &'a [u8],
    },
    /// A number with an exponent.
    Float {
        negative: bool,
        text: &'a [u8],
    },
    String(RawString<'a>),
    /// The hexadecimal digits of `x'..'` or `0x..`.
    Hex(&'a [u8]),
    /// The binary digits of `b'..'` or `0b..`.
    Bit(&'a [u8]),
}

/// A quoted string whose escapes are not resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawString<'a> {
    /// The bytes between the quotes.
    pub raw: &'a [u8],
    pub quote: u8,
    /// Whether a backslash is an ordinary character.
    pub no_backslash: bool,
    /// Whether it is `N'..'`: a utf8mb3 string.
    pub national: bool,
}

impl<'a> RawString<'a> {
    /// The string itself, if it contains neither escapes nor doubled quotes.
    #[inline]
    pub fn plain(&self) -> Option<&'a [u8]> {
        let escaped = if self.no_backslash {
            memchr::memchr(self.quote, self.raw)
        } else {
            memchr::memchr2(self.quote, b'\\', self.raw)
        };
        escaped.is_none().then_some(self.raw)
    }

    /// Appends the string with its escapes resolved.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        // Nothing stops it.
        let _ = self.append_stoppable(out, &NoCheckpoint);
    }

    /// As [`Self::append_to`] for a string that may be large.
    ///
    /// # Errors
    /// That of the checkpoint.
    pub fn append_stoppable(
        &self,
        out: &mut Vec<u8>,
        checkpoint: &dyn Checkpoint,
    ) -> Result<(), SqlError> {
        let mut raw = self.raw;
        let mut look_at = out.len() + STRIDE;
        loop {
            if out.len() >= look_at {
                look_at = out.len() + STRIDE;
                checkpoint.checkpoint(STRIDE as u64 * ESCAPE_WORK)?;
            }
            let at = if self.no_backslash {
                memchr::memchr(self.quote, raw)
            } else {
                memchr::memchr2(self.quote, b'\\', raw)
            };
            let Some(at) = at else {
                out.extend_from_slice(raw);
                return Ok(());
            };
            out.extend_from_slice(&raw[..at]);
            match (raw[at], raw.get(at + 1)) {
                (b'\\', Some(&escaped)) => append_escape(escaped, out),
                (quote, _) => out.push(quote),
            }
            raw = raw.get(at + 2..).unwrap_or(&[]);
        }
    }

    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.raw.len());
        self.append_to(&mut out);
        out
    }
}

/// Appends the character that the escape `\c` means. `\%` and `\_` keep their backslash, because
/// LIKE needs it.
fn append_escape(c: u8, out: &mut Vec<u8>) {
    match c {
        b'n' => out.push(b'\n'),
        b't' => out.push(b'\t'),
        b'r' => out.push(b'\r'),
        b'b' => out.push(8),
        b'0' => out.push(0),
        b'Z' => out.push(26),
        b'%' | b'_' => out.extend_from_slice(&[b'\\', c]),
        other => out.push(other),
    }
}

impl<'a> Lit<'a> {
    /// Parses a token of kind `kind` with the bytes `text`. `None` if it is not a literal.
    #[inline]
    pub fn read(kind: TokenKind, text: &'a [u8], mode: LexMode) -> Option<Lit<'a>> {
        Some(match kind {
            TokenKind::Int => integer(false, text),
            TokenKind::Decimal => Lit::Decimal {
                negative: false,
                text,
            },
            TokenKind::Float => Lit::Float {
                negative: false,
                text,
            },
            TokenKind::Str => Lit::String(raw_string(text, mode, false)),
            TokenKind::NStr => Lit::String(raw_string(&text[1..], mode, true)),
            TokenKind::HexNumber => Lit::Hex(&text[2..]),
            TokenKind::HexString => Lit::Hex(&text[2..text.len() - 1]),
            TokenKind::BitNumber => Lit::Bit(&text[2..]),
            TokenKind::BitString => Lit::Bit(&text[2..text.len() - 1]),
            _ => return None,
        })
    }

    /// Converts to a literal of the syntax tree. A sign must have been handled before.
    pub fn to_literal(&self) -> Literal {
        match self {
            Lit::Null => Literal::Null,
            Lit::Bool(b) => Literal::Bool(*b),
            Lit::Int { value, .. } => Literal::Int(*value),
            Lit::Decimal { text, .. } => {
                Literal::Decimal(String::from_utf8_lossy(text).into_owned())
            }
            Lit::Float { text, .. } => Literal::Float(String::from_utf8_lossy(text).into_owned()),
            Lit::String(s) => Literal::String(StringLiteral {
                bytes: s.to_vec(),
                charset: s.national.then(|| "utf8mb3".to_string()),
            }),
            Lit::Hex(digits) => Literal::Hex(hex_bytes(digits)),
            Lit::Bit(digits) => Literal::Bit(bit_bytes(digits)),
        }
    }
}

/// `text`, which includes its quotes, as a raw string.
#[inline]
pub(crate) fn raw_string(text: &[u8], mode: LexMode, national: bool) -> RawString<'_> {
    RawString {
        raw: &text[1..text.len() - 1],
        quote: text[0],
        no_backslash: mode.has(LexMode::NO_BACKSLASH_ESCAPES),
        national,
    }
}

/// Parses digits as an integer, or as a decimal if they exceed 64 bits.
#[inline]
pub(crate) fn integer(negative: bool, text: &[u8]) -> Lit<'_> {
    let mut value = 0u64;
    if text.len() < 20 {
        for &b in text {
            value = value * 10 + u64::from(b - b'0');
        }
        return Lit::Int { negative, value };
    }
    for &b in text {
        match value
            .checked_mul(10)
            .and_then(|v| v.checked_add(u64::from(b - b'0')))
        {
            Some(v) => value = v,
            None => return Lit::Decimal { negative, text },
        }
    }
    Lit::Int { negative, value }
}

/// Converts hexadecimal digits to bytes. If their number is odd, the first digit is a byte of its
/// own.
pub fn hex_bytes(digits: &[u8]) -> Vec<u8> {
    let value = |b: u8| (b as char).to_digit(16).unwrap_or(0) as u8;
    let (head, pairs) = digits.split_at(digits.len() % 2);
    let mut out = Vec::with_capacity(digits.len().div_ceil(2));
    out.extend(head.iter().map(|&b| value(b)));
    out.extend(
        pairs
            .chunks_exact(2)
            .map(|p| value(p[0]) << 4 | value(p[1])),
    );
    out
}

/// Converts binary digits to bytes. The first byte is padded on the left.
pub fn bit_bytes(digits: &[u8]) -> Vec<u8> {
    let (head, bytes) = digits.split_at(digits.len() % 8);
    let byte = |bits: &[u8]| bits.iter().fold(0u8, |v, &b| v << 1 | (b & 1));
    let mut out = Vec::with_capacity(digits.len().div_ceil(8));
    if !head.is_empty() {
        out.push(byte(head));
    }
    out.extend(bytes.chunks_exact(8).map(byte));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(text: &str) -> Vec<u8> {
        raw_string(text.as_bytes(), LexMode::default(), false).to_vec()
    }

    #[test]
    fn escapes() {
        assert_eq!(string(r"'a\nb\0\Z\\\'\%\_\q'"), b"a\nb\0\x1a\\'\\%\\_q");
        assert_eq!(string("'it''s'"), b"it's");
        assert_eq!(string("\"a\"\"b''\""), b"a\"b''");
        let raw = raw_string(br"'a\n''b'", LexMode::NO_BACKSLASH_ESCAPES, false);
        assert_eq!(raw.to_vec(), br"a\n'b");
        assert_eq!(raw.plain(), None);
        assert_eq!(
            raw_string(b"'ab'", LexMode::default(), false).plain(),
            Some(&b"ab"[..])
        );
    }

    #[test]
    fn numbers() {
        assert_eq!(
            integer(false, b"18446744073709551615"),
            Lit::Int {
                negative: false,
                value: u64::MAX
            }
        );
        assert!(matches!(
            integer(true, b"18446744073709551616"),
            Lit::Decimal { negative: true, .. }
        ));
        assert_eq!(
            integer(false, b"00000000000000000000000007"),
            Lit::Int {
                negative: false,
                value: 7
            }
        );
        assert_eq!(hex_bytes(b"1fF"), [0x01, 0xff]);
        assert_eq!(hex_bytes(b""), [0u8; 0]);
        assert_eq!(bit_bytes(b"100000001"), [1, 1]);
        assert_eq!(bit_bytes(b"11"), [3]);
    }
}
