//! A compact, stable form of a type for the dictionary (format v1).
//!
//! # Picture
//! ```text
//! u8 kind · u8 flags (1 unsigned, 2 zerofill) · u8 width · u8 decimals · u16 collation · parameters of the kind
//! DECIMAL: u8 precision, u8 scale · BIT, TIME, DATETIME, TIMESTAMP: u8 · CHAR..VARBINARY: u32 · TEXT, BLOB: u8 size
//! ENUM, SET: u16 count, then per member u16 length and its UTF-8 bytes
//! ```
//! Integers are little-endian. Kind numbers are never reused.

use super::{ColumnType, TextSize, TypeKind};
use crate::CollationId;
use std::sync::Arc;

impl ColumnType {
    /// Appends the stored form.
    pub fn serialize(&self, out: &mut Vec<u8>) {
        out.push(self.kind_number());
        out.push(u8::from(self.unsigned) | u8::from(self.zerofill) << 1);
        // A table's column: see the field.
        out.push(self.width.min(255) as u8);
        out.push(self.decimals);
        out.extend_from_slice(&self.collation.0.to_le_bytes());
        use TypeKind::*;
        match &self.kind {
            Decimal { precision, scale } => out.extend_from_slice(&[*precision, *scale]),
            Bit(n) | Time(n) | DateTime(n) | Timestamp(n) => out.push(*n),
            Char(n) | VarChar(n) | Binary(n) | VarBinary(n) => {
                out.extend_from_slice(&n.to_le_bytes())
            }
            Text(size) | Blob(size) => out.push(*size as u8),
            Enum(members) | Set(members) => {
                out.extend_from_slice(&(members.len() as u16).to_le_bytes());
                for m in members.iter() {
                    out.extend_from_slice(&(m.len() as u16).to_le_bytes());
                    out.extend_from_slice(m.as_bytes());
                }
            }
            _ => {}
        }
    }

    /// Reads a stored form from the front of `input` and moves `input` past it; `None` if it is
    /// malformed.
    pub fn deserialize(input: &mut &[u8]) -> Option<ColumnType> {
        let [number, flags, width, decimals, c0, c1] = take(input)?;
        use TypeKind::*;
        let kind = match number {
            1 => TinyInt,
            2 => SmallInt,
            3 => MediumInt,
            4 => Int,
            5 => BigInt,
            6 => {
                let [precision, scale] = take(input)?;
                if precision == 0 || precision > 65 || scale > 30 || scale > precision {
                    return None;
                }
                Decimal { precision, scale }
            }
            7 => Float,
            8 => Double,
            9 => Bit(take::<1>(input)?[0]).valid_bit()?,
            10 => Year,
            11 => Date,
            12 => Time(fsp(input)?),
            13 => DateTime(fsp(input)?),
            14 => Timestamp(fsp(input)?),
            15 => Char(u32::from_le_bytes(take(input)?)),
            16 => VarChar(u32::from_le_bytes(take(input)?)),
            17 => Binary(u32::from_le_bytes(take(input)?)),
            18 => VarBinary(u32::from_le_bytes(take(input)?)),
            19 => Text(text_size(input)?),
            20 => Blob(text_size(input)?),
            21 => Enum(members(input)?),
            22 => Set(members(input)?),
            23 => Null,
            24 => Json,
            _ => return None,
        };
        let collation = CollationId(u16::from_le_bytes([c0, c1]));
        collation.get()?;
        Some(ColumnType {
            kind,
            unsigned: flags & 1 != 0,
            zerofill: flags & 2 != 0,
            width: u32::from(width),
            decimals,
            collation,
        })
    }

    fn kind_number(&self) -> u8 {
        use TypeKind::*;
        match self.kind {
            TinyInt => 1,
            SmallInt => 2,
            MediumInt => 3,
            Int => 4,
            BigInt => 5,
            Decimal { .. } => 6,
            Float => 7,
            Double => 8,
            Bit(_) => 9,
            Year => 10,
            Date => 11,
            Time(_) => 12,
            DateTime(_) => 13,
            Timestamp(_) => 14,
            Char(_) => 15,
            VarChar(_) => 16,
            Binary(_) => 17,
            VarBinary(_) => 18,
            Text(_) => 19,
            Blob(_) => 20,
            Enum(_) => 21,
            Set(_) => 22,
            Null => 23,
            Json => 24,
        }
    }
}

impl TypeKind {
    fn valid_bit(self) -> Option<TypeKind> {
        matches!(self, TypeKind::Bit(1..=64)).then_some(self)
    }
}

fn take<const N: usize>(input: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = input.split_first_chunk::<N>()?;
    *input = tail;
    Some(*head)
}

fn fsp(input: &mut &[u8]) -> Option<u8> {
    let [f] = take(input)?;
    (f <= 6).then_some(f)
}

fn text_size(input: &mut &[u8]) -> Option<TextSize> {
    let [size] = take(input)?;
    [
        TextSize::Tiny,
        TextSize::Normal,
        TextSize::Medium,
        TextSize::Long,
    ]
    .get(usize::from(size))
    .copied()
}

fn members(input: &mut &[u8]) -> Option<Arc<[Box<str>]>> {
    let count = u16::from_le_bytes(take(input)?);
    let mut list = Vec::new();
    for _ in 0..count {
        let len = usize::from(u16::from_le_bytes(take(input)?));
        let (head, tail) = input.split_at_checked(len)?;
        *input = tail;
        list.push(std::str::from_utf8(head).ok()?.into());
    }
    Some(list.into())
}
