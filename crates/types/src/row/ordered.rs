//! Numbers and moments of fixed width, read from row images as integers in the same order: what sums, counts and extremes over many rows need.

use super::field::FieldKind;
use super::{HEADER_BYTES, NOT_NULL, RowLayout};

/// A column whose values are ordered as integers are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OrderedField {
    /// Where it begins, and 64 less its bits.
    place: u32,
    shift: u8,
    /// What is less than zero is less than what is not.
    signed: bool,
    /// It is a number, not a moment.
    integer: bool,
    /// Byte and bit of the null map; no bit where it cannot be NULL.
    null: (u32, u8),
}

impl RowLayout {
    /// How column `ordinal` is read as an integer; `None` where its values have another order, or no fixed place.
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
            null: match slot.null_bit {
                NOT_NULL => (0, 0),
                bit => (HEADER_BYTES as u32 + bit / 8, 1 << (bit % 8)),
            },
        })
    }
}

impl OrderedField {
    /// Whether [`number`](Self::number) is the column's value.
    pub fn is_integer(&self) -> bool {
        self.integer
    }

    /// The field of a row: a number that is less where the value is less. `None`: it is NULL. Of a damaged image, anything.
    #[inline(always)]
    pub fn key(&self, row: &[u8]) -> Option<i64> {
        let (byte, bit) = self.null;
        if bit != 0 && row.get(byte as usize).is_some_and(|b| b & bit != 0) {
            return None;
        }
        let at = self.place as usize;
        let word = match row.get(at..at + 8).and_then(|b| b.first_chunk()) {
            Some(word) => u64::from_le_bytes(*word),
            None => short(row, at),
        };
        let top = word << (self.shift & 63);
        let top = if self.signed { top } else { top ^ SIGN };
        Some(top as i64 >> (self.shift & 63))
    }

    /// What a key of an integer stands for.
    #[inline(always)]
    pub fn number(&self, key: i64) -> i128 {
        let least = match self.signed {
            true => 0,
            false => i64::MIN >> (self.shift & 63),
        };
        i128::from(key) - i128::from(least)
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
