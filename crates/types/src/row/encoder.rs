//! Stored rows straight into result packets: chosen columns of a row image as a text or a binary row, without a value in between.
//!
//! # Picture
//! ```text
//!   RowEncoder: per result column {form, place, width, null bit}      made once per plan, from the layout
//!   row image ──▶ load 8 bytes, shift ──▶ digits        integers
//!             ──▶ end offsets ──▶ length ‖ bytes        strings
//!             ──▶ layout.get ──▶ the caller's function  everything else, and every row with wide offsets or external fields
//! ```
//! # Invariants
//! - E1: the bytes are those that [`crate::wire::write_text`] and [`crate::wire::write_binary`] give for [`RowLayout::get`]'s values.
//! - E2: every offset is checked against the image, as in `row` (I1).
//!
//! # Cost
//! No allocation but the growth of `out`.

use super::field::FieldKind;
use super::{FLAG_EXTERNAL, FLAG_WIDE, HEADER_BYTES, NOT_NULL, RowError, RowLayout};
use crate::temporal::{Date, DateTime};
use crate::wire::{self, write_bytes};
use crate::{ColumnType, TypeKind, ValueRef};

/// How one column goes out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Signed,
    Unsigned,
    /// Length-encoded bytes as they are stored.
    Bytes,
    Date,
    /// DATETIME(0)
    Seconds,
    /// By the caller's function.
    General,
}

#[derive(Clone, Copy, Debug)]
struct Column {
    ordinal: u32,
    /// As in the layout's slot.
    place: u32,
    null_bit: u32,
    /// Stored bytes of an integer or a time.
    width: u8,
    /// Bytes of an integer in a binary row.
    wire_width: u8,
    form: Form,
    /// A number that a text row shows with leading zeros.
    zerofill: bool,
}

/// Encodes the chosen columns of rows of one layout. See the module's header.
#[derive(Clone, Debug)]
pub struct RowEncoder {
    columns: Box<[Column]>,
    ends_at: usize,
    var_count: usize,
}

/// Writes column `n` of the result, which is not NULL and not of a simple form.
pub type General<'g> = dyn FnMut(usize, ValueRef<'_>, &mut Vec<u8>) + 'g;

impl RowEncoder {
    /// For the columns `ordinals` of rows of `layout`, in this order. `result(n)`: the type of result column `n`, which may be another
    /// than the stored one (an INT kept as BIGINT). `as_stored(n)`: whether its strings go out in the bytes they are stored in; the others
    /// are left to the caller.
    pub fn new<'t>(
        layout: &RowLayout,
        ordinals: impl IntoIterator<Item = usize>,
        result: impl Fn(usize) -> &'t ColumnType,
        as_stored: impl Fn(usize) -> bool,
    ) -> Option<RowEncoder> {
        let column = |(n, ordinal): (usize, usize)| {
            let slot = layout.slots.get(ordinal)?;
            let ty = result(n);
            let integer = matches!(
                ty.kind,
                TypeKind::TinyInt
                    | TypeKind::SmallInt
                    | TypeKind::MediumInt
                    | TypeKind::Int
                    | TypeKind::BigInt
            );
            let string = ty.is_string() && !ty.is_enum_or_set();
            let form = match slot.kind {
                FieldKind::I8
                | FieldKind::I16
                | FieldKind::I24
                | FieldKind::I32
                | FieldKind::I64
                    if !integer =>
                {
                    Form::General
                }
                FieldKind::U8
                | FieldKind::U16
                | FieldKind::U24
                | FieldKind::U32
                | FieldKind::U64
                    if !integer =>
                {
                    Form::General
                }
                FieldKind::I8
                | FieldKind::I16
                | FieldKind::I24
                | FieldKind::I32
                | FieldKind::I64 => Form::Signed,
                FieldKind::U8
                | FieldKind::U16
                | FieldKind::U24
                | FieldKind::U32
                | FieldKind::U64 => Form::Unsigned,
                FieldKind::Var if string && as_stored(n) => Form::Bytes,
                FieldKind::Date if ty.kind == TypeKind::Date => Form::Date,
                FieldKind::Seconds
                    if matches!(ty.kind, TypeKind::DateTime(0) | TypeKind::Timestamp(0)) =>
                {
                    Form::Seconds
                }
                _ => Form::General,
            };
            let wire_width = match ty.kind {
                TypeKind::TinyInt => 1,
                TypeKind::SmallInt => 2,
                TypeKind::MediumInt | TypeKind::Int => 4,
                _ => 8,
            };
            Some(Column {
                ordinal: ordinal as u32,
                place: slot.place,
                null_bit: slot.null_bit,
                width: slot.width as u8,
                wire_width,
                form,
                zerofill: ty.zerofill,
            })
        };
        Some(RowEncoder {
            columns: ordinals
                .into_iter()
                .enumerate()
                .map(column)
                .collect::<Option<_>>()?,
            ends_at: layout.ends_at,
            var_count: layout.var_count,
        })
    }

    /// Appends a text row.
    ///
    /// # Errors
    /// A damaged image; part of the row may be in `out` then.
    #[inline]
    pub fn text(
        &self,
        layout: &RowLayout,
        row: &[u8],
        out: &mut Vec<u8>,
        general: &mut General<'_>,
    ) -> Result<(), RowError> {
        let Some(view) = self.view(row) else {
            return self.text_slowly(layout, row, out, general);
        };
        for (n, column) in self.columns.iter().enumerate() {
            if view.is_null(column)? {
                out.push(wire::TEXT_NULL);
                continue;
            }
            match column.form {
                Form::Bytes => write_bytes(view.bytes(column)?, out),
                Form::Signed | Form::Unsigned if column.zerofill => {
                    general(n, layout.get(row, column.ordinal as usize)?, out);
                }
                Form::Signed => signed_text(view.signed(column)?, out),
                Form::Unsigned => number_text(view.unsigned(column)?, false, out),
                Form::Date => date_text(Date::from_packed(view.unsigned(column)? as u32), out),
                Form::Seconds => {
                    seconds_text(DateTime::from_packed(view.unsigned(column)? << 20, 0), out);
                }
                Form::General => general(n, layout.get(row, column.ordinal as usize)?, out),
            }
        }
        Ok(())
    }

    #[cold]
    fn text_slowly(
        &self,
        layout: &RowLayout,
        row: &[u8],
        out: &mut Vec<u8>,
        general: &mut General<'_>,
    ) -> Result<(), RowError> {
        for (n, column) in self.columns.iter().enumerate() {
            match layout.get(row, column.ordinal as usize)? {
                ValueRef::Null => out.push(wire::TEXT_NULL),
                value => general(n, value, out),
            }
        }
        Ok(())
    }

    /// Appends a binary row, with its leading zero and null map.
    ///
    /// # Errors
    /// As [`Self::text`].
    #[inline]
    pub fn binary(
        &self,
        layout: &RowLayout,
        row: &[u8],
        out: &mut Vec<u8>,
        general: &mut General<'_>,
    ) -> Result<(), RowError> {
        out.push(0);
        let nulls = out.len();
        out.resize(nulls + (self.columns.len() + 9) / 8, 0);
        let view = self.view(row);
        for (n, column) in self.columns.iter().enumerate() {
            let Some(view) = &view else {
                match layout.get(row, column.ordinal as usize)? {
                    ValueRef::Null => out[nulls + (n + 2) / 8] |= 1 << ((n + 2) % 8),
                    value => general(n, value, out),
                }
                continue;
            };
            if view.is_null(column)? {
                out[nulls + (n + 2) / 8] |= 1 << ((n + 2) % 8);
                continue;
            }
            match column.form {
                Form::Bytes => write_bytes(view.bytes(column)?, out),
                Form::Signed => put_integer(view.signed(column)? as u64, column, out),
                Form::Unsigned => put_integer(view.unsigned(column)?, column, out),
                Form::Date => {
                    wire::binary_date(Date::from_packed(view.unsigned(column)? as u32), out);
                }
                Form::Seconds => {
                    let value = DateTime::from_packed(view.unsigned(column)? << 20, 0);
                    wire::binary_datetime(value, out);
                }
                Form::General => general(n, layout.get(row, column.ordinal as usize)?, out),
            }
        }
        Ok(())
    }

    /// The image as one with narrow offsets and all fields in it; `None` if it is another.
    #[inline(always)]
    fn view<'r>(&self, row: &'r [u8]) -> Option<RowView<'r>> {
        let plain = row
            .get(2)
            .is_some_and(|f| f & (FLAG_WIDE | FLAG_EXTERNAL) == 0);
        if !plain {
            return None;
        }
        let ends = row.get(self.ends_at..self.ends_at + 2 * self.var_count)?;
        let strings = &row[self.ends_at + 2 * self.var_count..];
        // With what follows the map, or what is left of a short image.
        let map = row.get(HEADER_BYTES..).unwrap_or(&[]);
        let nulls = match map.first_chunk() {
            Some(word) => u64::from_le_bytes(*word),
            None => {
                let mut word = [0; 8];
                word[..map.len()].copy_from_slice(map);
                u64::from_le_bytes(word)
            }
        };
        Some(RowView {
            row,
            nulls,
            ends,
            strings,
        })
    }
}

/// A row image with narrow offsets.
#[derive(Clone, Copy)]
struct RowView<'r> {
    row: &'r [u8],
    /// The first 64 bits of the null map.
    nulls: u64,
    ends: &'r [u8],
    strings: &'r [u8],
}

const CUT: RowError = RowError::Corrupt("fixed columns cut off");

impl<'r> RowView<'r> {
    #[inline(always)]
    fn is_null(&self, column: &Column) -> Result<bool, RowError> {
        if column.null_bit < 64 {
            return Ok(self.nulls >> column.null_bit & 1 == 1);
        }
        if column.null_bit == NOT_NULL {
            return Ok(false);
        }
        let bit = column.null_bit as usize;
        let byte = self.row.get(HEADER_BYTES + bit / 8).ok_or(CUT)?;
        Ok(byte >> (bit % 8) & 1 == 1)
    }

    /// The field's bytes at the top of a word, and how far down they have to go.
    #[inline(always)]
    fn word(&self, column: &Column) -> Result<(u64, u32), RowError> {
        let (at, width) = (column.place as usize, usize::from(column.width));
        let shift = 64 - 8 * u32::from(column.width);
        if let Some(word) = self.row.get(at..at + 8).and_then(|b| b.first_chunk()) {
            return Ok((u64::from_le_bytes(*word) << shift, shift));
        }
        // The last bytes of a short image.
        let mut word = [0; 8];
        word[..width].copy_from_slice(self.row.get(at..at + width).ok_or(CUT)?);
        Ok((u64::from_le_bytes(word) << shift, shift))
    }

    #[inline(always)]
    fn unsigned(&self, column: &Column) -> Result<u64, RowError> {
        let (word, shift) = self.word(column)?;
        Ok(word >> shift)
    }

    #[inline(always)]
    fn signed(&self, column: &Column) -> Result<i64, RowError> {
        let (word, shift) = self.word(column)?;
        Ok(word as i64 >> shift)
    }

    #[inline(always)]
    fn bytes(&self, column: &Column) -> Result<&'r [u8], RowError> {
        let index = column.place as usize;
        let end = |i: usize| {
            let pair = self
                .ends
                .get(2 * i..2 * i + 2)
                .and_then(|b| b.first_chunk());
            pair.map(|b| usize::from(u16::from_le_bytes(*b) & 0x7FFF))
        };
        let begin = if index == 0 { Some(0) } else { end(index - 1) };
        let field = begin
            .zip(end(index))
            .and_then(|(begin, end)| self.strings.get(begin..end));
        field.ok_or(RowError::Corrupt(
            "end offsets out of order or past the end",
        ))
    }
}

#[inline(always)]
fn put_integer(value: u64, column: &Column, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&value.to_le_bytes());
    out.truncate(start + usize::from(column.wire_width));
}

/// `00` to `99`.
static PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut i = 0;
    while i < 100 {
        pairs[i] = [b'0' + (i / 10) as u8, b'0' + (i % 10) as u8];
        i += 1;
    }
    pairs
};

/// Decimal digits of `v`, 1 to 20.
#[inline(always)]
fn digits(v: u64) -> usize {
    // log10(2) * 4096 = 1233; the estimate is the number of digits or one less.
    let estimate = (((64 - (v | 1).leading_zeros()) * 1233) >> 12) as usize;
    estimate + usize::from(v >= POWERS[estimate])
}

static POWERS: [u64; 20] = {
    let mut powers = [0; 20];
    let (mut i, mut power) = (1, 10u64);
    while i < 20 {
        powers[i] = power;
        power = if i < 19 {
            power.wrapping_mul(10)
        } else {
            power
        };
        i += 1;
    }
    powers
};

#[inline(always)]
fn signed_text(v: i64, out: &mut Vec<u8>) {
    number_text(v.unsigned_abs(), v < 0, out);
}

/// Length, sign and digits. All of a fixed buffer is appended and the rest cut off: a copy of known size needs no call.
#[inline(always)]
fn number_text(mut v: u64, negative: bool, out: &mut Vec<u8>) {
    let sign = usize::from(negative);
    if v < 10 && !negative {
        return out.extend_from_slice(&[1, b'0' + v as u8]);
    }
    let len = sign + digits(v);
    let mut text = [0u8; 24];
    text[0] = len as u8;
    text[1] = b'-';
    let mut at = 1 + len;
    while v >= 100 {
        at -= 2;
        text[at..at + 2].copy_from_slice(&PAIRS[(v % 100) as usize]);
        v /= 100;
    }
    if v >= 10 {
        text[at - 2..at].copy_from_slice(&PAIRS[v as usize]);
    } else {
        text[at - 1] = b'0' + v as u8;
    }
    let start = out.len();
    out.extend_from_slice(&text);
    out.truncate(start + 1 + len);
}

#[inline(always)]
fn pair(v: u32) -> [u8; 2] {
    PAIRS[(v % 100) as usize]
}

#[inline(always)]
fn date_digits(v: Date) -> [u8; 10] {
    let ([a, b], [c, d]) = (pair(v.year() / 100), pair(v.year()));
    let ([e, f], [g, h]) = (pair(v.month()), pair(v.day()));
    [a, b, c, d, b'-', e, f, b'-', g, h]
}

#[inline(always)]
fn date_text(v: Date, out: &mut Vec<u8>) {
    let mut text = [10; 11];
    text[1..].copy_from_slice(&date_digits(v));
    out.extend_from_slice(&text);
}

#[inline(always)]
fn seconds_text(v: DateTime, out: &mut Vec<u8>) {
    let mut text = *b"\x13yyyy-mm-dd hh:mm:ss";
    text[1..11].copy_from_slice(&date_digits(v.date()));
    text[12..14].copy_from_slice(&pair(v.hour()));
    text[15..17].copy_from_slice(&pair(v.minute()));
    text[18..20].copy_from_slice(&pair(v.second()));
    out.extend_from_slice(&text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_counted() {
        for power in 0..20 {
            let v = 10u64.pow(power);
            for v in [v - 1, v, v + 1] {
                assert_eq!(digits(v), v.to_string().len(), "{v}");
                let mut out = Vec::new();
                number_text(v, false, &mut out);
                assert_eq!(out[1..], *v.to_string().as_bytes());
                assert_eq!(usize::from(out[0]), out.len() - 1);
            }
        }
        for v in [i64::MIN, -1_000, -10, -9, -1, 0, 9, 10, i64::MAX] {
            let mut out = Vec::new();
            signed_text(v, &mut out);
            assert_eq!(out[1..], *v.to_string().as_bytes());
        }
        let mut out = Vec::new();
        number_text(u64::MAX, false, &mut out);
        assert_eq!(out[1..], *u64::MAX.to_string().as_bytes());
    }
}
