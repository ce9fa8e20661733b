//! DECIMAL: exact numbers of up to 65 digits, 30 of them after the point.
//!
//! A value is a sign, a magnitude below 10^72 and a scale; `1.0` and `1.00` are equal, hash alike
//! and print differently. The arithmetic follows MySQL's `decimal_t`: which digits a quotient has,
//! where a product is cut, and rounding half away from zero.

mod arith;
mod convert;
mod text;
mod wide;

pub use text::ParsedDecimal;

use ethnum::U256;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

/// Most digits of a DECIMAL column.
pub const MAX_PRECISION: u8 = 65;
/// Most digits after the point of a DECIMAL column or of a product.
pub const MAX_SCALE: u8 = 30;
/// Digits that division adds to its dividend's scale, unless the session says otherwise
/// (`div_precision_increment`).
pub const DIV_PRECISION_INCREMENT: u8 = 4;
/// Most digits of a magnitude inside (intermediate results may pass 65).
const MAX_DIGITS: u32 = 72;

/// An exact decimal number. 32 bytes, `Copy`.
#[derive(Clone, Copy)]
pub struct Decimal {
    /// Magnitude, least significant limb first: the number is ±magnitude / 10^scale.
    limbs: [u64; 3],
    top: u32,
    /// Bits 224 to 239 of the magnitude.
    over: u16,
    scale: u8,
    /// Never set on zero.
    negative: bool,
}

/// The powers of ten from 10^0 to 10^77.
pub(crate) static POW10: [U256; 78] = {
    let mut table = [U256::ONE; 78];
    let mut i = 1;
    while i < 78 {
        // 10 * x without operators, which are not const.
        let (hi, lo) = table[i - 1].into_words();
        let low = lo as u64 as u128 * 10;
        let mid = (lo >> 64) * 10 + (low >> 64);
        table[i] = U256::from_words(hi * 10 + (mid >> 64), (mid << 64) | (low as u64 as u128));
        i += 1;
    }
    table
};

impl Decimal {
    /// 0
    pub const ZERO: Decimal = Decimal {
        limbs: [0; 3],
        top: 0,
        over: 0,
        scale: 0,
        negative: false,
    };

    /// ±magnitude / 10^scale; `None` if the magnitude has more than 72 digits.
    pub fn from_parts(negative: bool, magnitude: U256, scale: u8) -> Option<Decimal> {
        if magnitude >= POW10[MAX_DIGITS as usize] {
            return None;
        }
        let (hi, lo) = magnitude.into_words();
        Some(Decimal {
            limbs: [lo as u64, (lo >> 64) as u64, hi as u64],
            top: (hi >> 64) as u32,
            over: (hi >> 96) as u16,
            scale,
            negative: negative && magnitude != U256::ZERO,
        })
    }

    /// The unscaled magnitude.
    #[inline]
    pub fn magnitude(&self) -> U256 {
        U256::from_words(
            u128::from(self.over) << 96 | u128::from(self.top) << 64 | u128::from(self.limbs[2]),
            u128::from(self.limbs[1]) << 64 | u128::from(self.limbs[0]),
        )
    }

    /// Digits after the point.
    #[inline]
    pub fn scale(&self) -> u8 {
        self.scale
    }

    /// Whether it is below zero.
    #[inline]
    pub fn is_negative(&self) -> bool {
        self.negative
    }

    /// Whether it is zero.
    #[inline]
    pub fn is_zero(&self) -> bool {
        self.limbs == [0; 3] && self.top == 0 && self.over == 0
    }

    /// The magnitude where it fits 64 bits: the fast path of everything.
    #[inline]
    fn small(&self) -> Option<u64> {
        (self.over == 0 && self.top == 0 && self.limbs[1] == 0 && self.limbs[2] == 0)
            .then_some(self.limbs[0])
    }

    /// Number of digits of the magnitude, at least 1.
    pub fn digits(&self) -> u32 {
        digits(self.magnitude())
    }

    /// Digits before the point, 0 for a number below 1.
    pub fn int_digits(&self) -> u32 {
        if self.is_zero() {
            0
        } else {
            self.digits().saturating_sub(u32::from(self.scale))
        }
    }

    /// -self
    #[must_use]
    #[expect(
        clippy::should_implement_trait,
        reason = "the arithmetic is checked and spelled out; one operator alone would mislead"
    )]
    pub fn neg(mut self) -> Decimal {
        self.negative = !self.negative && !self.is_zero();
        self
    }

    /// |self|
    #[must_use]
    pub fn abs(mut self) -> Decimal {
        self.negative = false;
        self
    }

    /// The magnitude at a larger scale than its own; `None` past 256 bits.
    fn magnitude_at(&self, scale: u8) -> Option<U256> {
        let m = self.magnitude();
        if scale <= self.scale {
            return Some(m);
        }
        m.checked_mul(*POW10.get(usize::from(scale - self.scale))?)
    }
}

/// Number of decimal digits of `m`, at least 1.
pub(crate) fn digits(m: U256) -> u32 {
    let bits = 256 - m.leading_zeros();
    // bits * log10(2), rounded down, is at most one less than the number of digits.
    let estimate = (bits * 1233) >> 12;
    let estimate = estimate.min(77);
    (estimate + u32::from(m >= POW10[estimate as usize])).max(1)
}

impl Ord for Decimal {
    fn cmp(&self, other: &Decimal) -> Ordering {
        match (self.negative, other.negative) {
            (false, true) => return Ordering::Greater,
            (true, false) => return Ordering::Less,
            _ => {}
        }
        let order = self.cmp_magnitude(other);
        if self.negative {
            order.reverse()
        } else {
            order
        }
    }
}

impl Decimal {
    fn cmp_magnitude(&self, other: &Decimal) -> Ordering {
        if self.scale == other.scale {
            return match (self.small(), other.small()) {
                (Some(a), Some(b)) => a.cmp(&b),
                _ => self.magnitude().cmp(&other.magnitude()),
            };
        }
        let scale = self.scale.max(other.scale);
        match (self.magnitude_at(scale), other.magnitude_at(scale)) {
            (Some(a), Some(b)) => a.cmp(&b),
            // Only one can be scaled up; the one that outgrows 256 bits is the larger.
            (None, _) => Ordering::Greater,
            (_, None) => Ordering::Less,
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Decimal) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Decimal {}

impl Hash for Decimal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let n = self.without_trailing_zeros();
        n.limbs.hash(state);
        n.top.hash(state);
        n.over.hash(state);
        n.scale.hash(state);
        n.negative.hash(state);
    }
}

#[cfg(test)]
mod tests;
