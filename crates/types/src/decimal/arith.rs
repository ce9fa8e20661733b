//! Arithmetic and rounding.

use super::{Decimal, MAX_DIGITS, MAX_SCALE, POW10, digits, wide};
use ethnum::U256;

/// Digits per word of MySQL's `decimal_t`; a quotient's scale is a multiple of it.
const WORD_DIGITS: u32 = 9;

/// How to cut digits off.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// Half away from zero.
    Round,
    /// Towards zero.
    Truncate,
    /// Away from zero if anything is cut.
    Away,
}

/// `m / 10^by`, cut as told.
fn cut(m: U256, by: u32, how: Cut) -> U256 {
    let Some(&unit) = POW10.get(by as usize) else {
        // More digits are cut than a magnitude has.
        return if how == Cut::Away && m != U256::ZERO {
            U256::ONE
        } else {
            U256::ZERO
        };
    };
    if let (Ok(m), Ok(unit)) = (u64::try_from(m), u64::try_from(unit)) {
        let (q, r) = (m / unit, m % unit);
        return U256::from(q + u64::from(carries(U256::from(r), U256::from(unit), how)));
    }
    let (q, r) = (m / unit, m % unit);
    q + U256::from(u8::from(carries(r, unit, how)))
}

fn carries(rest: U256, unit: U256, how: Cut) -> bool {
    match how {
        Cut::Truncate => false,
        Cut::Away => rest != U256::ZERO,
        // unit is a power of ten: 1 cuts nothing, the others are even.
        Cut::Round => rest != U256::ZERO && rest >= unit >> 1u32,
    }
}

impl Decimal {
    /// self + rhs at the larger scale; `None` when it overflows 72 digits.
    pub fn add(&self, rhs: &Decimal) -> Option<Decimal> {
        let scale = self.scale.max(rhs.scale);
        let (a, b) = (self.magnitude_at(scale)?, rhs.magnitude_at(scale)?);
        if self.negative == rhs.negative {
            Decimal::from_parts(self.negative, a.checked_add(b)?, scale)
        } else if a >= b {
            Decimal::from_parts(self.negative, a - b, scale)
        } else {
            Decimal::from_parts(rhs.negative, b - a, scale)
        }
    }

    /// self - rhs at the larger scale; `None` when it overflows.
    pub fn sub(&self, rhs: &Decimal) -> Option<Decimal> {
        self.add(&rhs.neg())
    }

    /// self * rhs; the scale is the sum of both, at most 30 (rounded there); `None` when it
    /// overflows.
    pub fn mul(&self, rhs: &Decimal) -> Option<Decimal> {
        let negative = self.negative != rhs.negative;
        let scale = self.scale.saturating_add(rhs.scale);
        let surplus = u32::from(scale.saturating_sub(MAX_SCALE));
        if let (Some(a), Some(b)) = (self.small(), rhs.small()) {
            let product = U256::from(u128::from(a) * u128::from(b));
            return Decimal::from_parts(
                negative,
                cut(product, surplus, Cut::Round),
                scale.min(MAX_SCALE),
            );
        }
        let mut product = wide::mul(self.magnitude(), rhs.magnitude());
        // Division by 10^19 at a time keeps the digits exact; only the last one cut decides the
        // rounding.
        let mut left = surplus;
        let mut last_digit = 0;
        while left > 0 {
            let step = left.min(19);
            let rest = wide::div_small(&mut product, 10u64.pow(step));
            last_digit = rest / 10u64.pow(step - 1);
            left -= step;
        }
        let mut m = wide::narrow(&product)?;
        if last_digit >= 5 {
            m = m.checked_add(U256::ONE)?;
        }
        Decimal::from_parts(negative, m, scale.min(MAX_SCALE))
    }

    /// self / rhs, rounded to the scale of the expression, [`Decimal::div_scale`]. Outer `None`:
    /// division by zero; inner `None`: overflow.
    ///
    /// MySQL computes the quotient in words of nine digits, cuts it there and then rounds; where
    /// the words end exactly at the wanted scale nothing is left to round: `2.00000/3` is
    /// 0.666666666.
    pub fn div(&self, rhs: &Decimal, increment: u8) -> Option<Option<Decimal>> {
        if rhs.is_zero() {
            return None;
        }
        let words = |scale: u8| u32::from(scale).div_ceil(WORD_DIGITS) * WORD_DIGITS;
        let (f1, f2) = (words(self.scale), words(rhs.scale));
        let padding = f1 - u32::from(self.scale) + f2 - u32::from(rhs.scale);
        let extra = u32::from(increment).saturating_sub(padding);
        let mut scale = (f1 + f2 + extra).div_ceil(WORD_DIGITS) * WORD_DIGITS;
        let wanted = Decimal::div_scale(self.scale, increment);
        let negative = self.negative != rhs.negative;
        // Where the quotient outgrows its digits, those of the fraction are given up.
        loop {
            match self.quotient(rhs, scale) {
                Some(m) if digits(m) <= MAX_DIGITS => {
                    let exact = Decimal::from_parts(negative, m, scale as u8);
                    return Some(exact.and_then(|q| q.rescale(wanted)));
                }
                _ if scale > 0 => scale -= 1,
                _ => return Some(None),
            }
        }
    }

    /// |self| / |rhs| * 10^scale, truncated.
    fn quotient(&self, rhs: &Decimal, scale: u32) -> Option<U256> {
        let shift = scale as i32 + i32::from(rhs.scale) - i32::from(self.scale);
        let (a, b) = (self.magnitude(), rhs.magnitude());
        if shift < 0 {
            let unit = POW10.get(-shift as usize)?;
            return Some(a / b.checked_mul(*unit)?);
        }
        // 10^shift may itself pass the table: split it.
        let (first, second) = (shift.min(67) as usize, (shift - shift.min(67)) as usize);
        let wide = wide::mul(a, POW10[first]);
        match (wide::narrow(&wide), second) {
            (Some(scaled), 0) => match (u128::try_from(scaled), u128::try_from(b)) {
                (Ok(x), Ok(y)) => Some(U256::from(x / y)),
                _ => Some(scaled / b),
            },
            (_, 0) => wide::div_rem(&wide, b).map(|(q, _)| q),
            _ => {
                // a is short where the shift is long; otherwise the result overflows anyway.
                let scaled = wide::narrow(&wide)?;
                wide::div_rem(&wide::mul(scaled, *POW10.get(second)?), b).map(|(q, _)| q)
            }
        }
    }

    /// The scale of a quotient as an expression: the dividend's plus the increment, at most 30.
    pub fn div_scale(dividend_scale: u8, increment: u8) -> u8 {
        dividend_scale.saturating_add(increment).min(MAX_SCALE)
    }

    /// self MOD rhs, with the sign of self, at the larger scale; `None` for a zero divisor.
    pub fn rem(&self, rhs: &Decimal) -> Option<Decimal> {
        if rhs.is_zero() {
            return None;
        }
        let scale = self.scale.max(rhs.scale);
        let m = match (self.magnitude_at(scale), rhs.magnitude_at(scale)) {
            (Some(a), Some(b)) => a % b,
            (None, Some(b)) => {
                let unit = POW10[usize::from(scale - self.scale)];
                let product = wide::mul(self.magnitude(), unit);
                // The quotient may pass 256 bits: reduce by modular halves.
                wide_rem(&product, b)
            }
            // The divisor outgrows 256 bits, so it is larger than self.
            (a, None) => a?,
        };
        Decimal::from_parts(self.negative, m, scale)
    }

    /// self DIV rhs: the integer part of the quotient; outer `None` for a zero divisor, inner for
    /// overflow.
    pub fn int_div(&self, rhs: &Decimal) -> Option<Option<Decimal>> {
        if rhs.is_zero() {
            return None;
        }
        let m = self.quotient(rhs, 0);
        Some(m.and_then(|m| Decimal::from_parts(self.negative != rhs.negative, m, 0)))
    }

    fn cut_to(&self, scale: i32, how: Cut) -> Option<Decimal> {
        if scale >= i32::from(self.scale) {
            return Some(*self);
        }
        let by = i32::from(self.scale).saturating_sub(scale) as u32;
        let m = cut(self.magnitude(), by, how);
        if scale >= 0 {
            return Decimal::from_parts(self.negative, m, scale as u8);
        }
        // Digits before the point become zeros.
        let m = if m == U256::ZERO {
            m
        } else {
            m.checked_mul(*POW10.get(scale.unsigned_abs() as usize)?)?
        };
        Decimal::from_parts(self.negative, m, 0)
    }

    /// Rounds half away from zero to `scale` digits after the point (before it, where negative). A
    /// larger scale changes nothing. `None` if a carry overflows.
    pub fn round(&self, scale: i32) -> Option<Decimal> {
        self.cut_to(scale, Cut::Round)
    }

    /// Cuts towards zero to `scale` digits after the point (before it, where negative). A larger
    /// scale changes nothing.
    #[must_use]
    pub fn truncate(&self, scale: i32) -> Decimal {
        self.cut_to(scale, Cut::Truncate).unwrap_or(*self)
    }

    /// Rounds or extends with zeros to exactly `scale` digits after the point; `None` when it
    /// overflows.
    pub fn rescale(&self, scale: u8) -> Option<Decimal> {
        if scale <= self.scale {
            return self.round(i32::from(scale));
        }
        Decimal::from_parts(self.negative, self.magnitude_at(scale)?, scale)
    }

    /// The smallest integer not below self, at scale 0.
    pub fn ceil(&self) -> Option<Decimal> {
        self.cut_to(
            0,
            if self.negative {
                Cut::Truncate
            } else {
                Cut::Away
            },
        )
    }

    /// The largest integer not above self, at scale 0.
    pub fn floor(&self) -> Option<Decimal> {
        self.cut_to(
            0,
            if self.negative {
                Cut::Away
            } else {
                Cut::Truncate
            },
        )
    }

    /// The same number with the smallest scale that holds it.
    #[must_use]
    pub fn without_trailing_zeros(&self) -> Decimal {
        let mut scale = self.scale;
        if self.is_zero() {
            return Decimal::ZERO;
        }
        if let Some(mut m) = self.small() {
            while scale > 0 && m % 10 == 0 {
                m /= 10;
                scale -= 1;
            }
            return Decimal {
                limbs: [m, 0, 0],
                top: 0,
                over: 0,
                scale,
                negative: self.negative,
            };
        }
        let mut m = self.magnitude();
        let ten = U256::from(10u8);
        while scale > 0 && m % ten == U256::ZERO {
            m /= ten;
            scale -= 1;
        }
        Decimal::from_parts(self.negative, m, scale).unwrap_or(*self)
    }

    /// The largest value of DECIMAL(precision, scale), or its negation.
    pub fn max_of(precision: u8, scale: u8, negative: bool) -> Decimal {
        let m = POW10[usize::from(precision.min(super::MAX_PRECISION))] - U256::ONE;
        Decimal::from_parts(negative, m, scale).unwrap_or(Decimal::ZERO)
    }
}

fn wide_rem(v: &wide::Wide, d: U256) -> U256 {
    let mut rem = U256::ZERO;
    for bit in (0..512).rev() {
        let carry = rem >> 255u32 != U256::ZERO;
        rem = (rem << 1u32) | U256::from(v[bit / 64] >> (bit % 64) & 1);
        if carry || rem >= d {
            rem = rem.wrapping_sub(d);
        }
    }
    rem
}
