//! Columns of fixed width, read from row images as integers in the order of their values: sums,
//! extremes and conditions over many rows work on these integers.

use super::field::FieldKind;
use super::{HEADER_BYTES, NOT_NULL, RowLayout, Slot};

/// A column whose values are ordered as integers are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OrderedField {
    /// Where it begins, and 64 less its bits.
    place: u32,
    shift: u8,
    /// The type has negative values.
    signed: bool,
    /// The column is an integer, not a temporal value.
    integer: bool,
    /// Byte and bit of the null map; no bit where it cannot be NULL.
    null: (u32, u8),
}

impl RowLayout {
    /// How column `ordinal` is read as an integer; `None` where its values have another order, or
    /// no fixed place.
    pub fn ordered_field(&self, ordinal: usize) -> Option<OrderedField> {
        use FieldKind as F;
        let slot = self.slots.get(ordinal)?;
        let (signed, integer) = match slot.kind {
            F::I8 | F::I16 | F::I24 | F::I32 | F::I64 => (true, true),
            F::U8 | F::U16 | F::U24 | F::U32 | F::U64 => (false, true),
            F::Date | F::Seconds | F::DateTime(_) => (false, false),
            _ => return None,
        };
        Some(OrderedField {
            place: slot.place,
            shift: 64 - 8 * slot.width as u8,
            signed,
            integer,
            null: null_place(slot),
        })
    }

    /// How the DECIMAL column `ordinal` is read as an unscaled integer; `None` for other types, and
    /// for a DECIMAL that takes more than eight bytes (more than 18 digits).
    pub fn unscaled_field(&self, ordinal: usize) -> Option<UnscaledField> {
        let slot = self.slots.get(ordinal)?;
        let FieldKind::Decimal { scale } = slot.kind else {
            return None;
        };
        (slot.width <= 8).then(|| UnscaledField {
            place: slot.place,
            shift: 64 - 8 * slot.width as u8,
            scale,
            null: null_place(slot),
        })
    }
}

/// Byte and bit of a column in the null map; no bit for a NOT NULL column.
fn null_place(slot: &Slot) -> (u32, u8) {
    match slot.null_bit {
        NOT_NULL => (0, 0),
        bit => (HEADER_BYTES as u32 + bit / 8, 1 << (bit % 8)),
    }
}

/// A DECIMAL column of at most 18 digits, read as an integer: the value times 10 to the power of
/// the column's scale.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnscaledField {
    /// Offset of the field, and 64 less its bits.
    place: u32,
    shift: u8,
    scale: u8,
    /// Byte and bit of the null map; no bit for a NOT NULL column.
    null: (u32, u8),
}

impl UnscaledField {
    /// Digits after the decimal point.
    pub fn scale(&self) -> u8 {
        self.scale
    }

    /// The unscaled value; `None`: it is NULL. The result for a damaged image is unspecified.
    #[inline(always)]
    pub fn key(&self, row: &[u8]) -> Option<i64> {
        if is_null(row, self.null) {
            return None;
        }
        // Big-endian, with the sign bit turned over (see `decimal_width`).
        let word = word_at(row, self.place as usize).swap_bytes() ^ SIGN;
        Some(word as i64 >> (self.shift & 63))
    }
}

#[inline(always)]
fn is_null(row: &[u8], (byte, bit): (u32, u8)) -> bool {
    bit != 0 && row.get(byte as usize).is_some_and(|b| b & bit != 0)
}

/// The eight bytes from `at` on as a little-endian word.
#[inline(always)]
fn word_at(row: &[u8], at: usize) -> u64 {
    match row.get(at..at + 8).and_then(|b| b.first_chunk()) {
        Some(word) => u64::from_le_bytes(*word),
        None => short(row, at),
    }
}

impl OrderedField {
    /// Whether [`number`](Self::number) is the column's value.
    pub fn is_integer(&self) -> bool {
        self.integer
    }

    /// The field of a row: a number that is less where the value is less. `None`: it is NULL. Of a
    /// damaged image, anything.
    #[inline(always)]
    pub fn key(&self, row: &[u8]) -> Option<i64> {
        if is_null(row, self.null) {
            return None;
        }
        let top = word_at(row, self.place as usize) << (self.shift & 63);
        let top = if self.signed { top } else { top ^ SIGN };
        Some(top as i64 >> (self.shift & 63))
    }

    /// The column's value that has this key.
    #[inline(always)]
    pub fn number(&self, key: i64) -> i128 {
        i128::from(key) - self.zero()
    }

    /// The key of a stored integer, also of one that lies outside of the column's range. A DATE is
    /// stored as its packed value, a DATETIME without fraction as its packed value shifted right by
    /// 20 bits, any other DATETIME as its packed value.
    pub fn key_of(&self, stored: i128) -> i128 {
        stored.saturating_add(self.zero())
    }

    /// The key of 0.
    #[inline(always)]
    fn zero(&self) -> i128 {
        match self.signed {
            true => 0,
            false => i128::from(i64::MIN >> (self.shift & 63)),
        }
    }
}

const SIGN: u64 = 1 << 63;

/// The bytes from `at` on, of which there are fewer than eight.
#[cold]
fn short(row: &[u8], at: usize) -> u64 {
    let rest = row.get(at..).unwrap_or_default();
    let mut word = [0; 8];
    let len = rest.len().min(8);
    word[..len].copy_from_slice(&rest[..len]);
    u64::from_le_bytes(word)
}
