//! To and from integers, doubles and the bytes of rows and keys.

use super::{Decimal, POW10};
use ethnum::U256;

impl Decimal {
    /// Reads the order-preserving form of [`Decimal::write_sortable`]: the width of the slice tells
    /// the precision class.
    pub fn read_sortable(bytes: &[u8], scale: u8) -> Option<Decimal> {
        let width = bytes.len();
        if width == 0 || width > 32 {
            return None;
        }
        if width <= 16 {
            // Up to 37 digits: 128 bits do.
            let stored = bytes.iter().fold(0u128, |n, b| n << 8 | u128::from(*b));
            let zero = 1u128 << (8 * width - 1);
            return Decimal::from_parts(stored < zero, U256::from(stored.abs_diff(zero)), scale);
        }
        let mut wide = [0u8; 32];
        wide[32 - width..].copy_from_slice(bytes);
        let stored = U256::from_be_bytes(wide);
        let zero = U256::ONE << (8 * width - 1) as u32;
        let negative = stored < zero;
        let m = if negative {
            zero - stored
        } else {
            stored - zero
        };
        Decimal::from_parts(negative, m, scale)
    }

    /// The greatest integer that is not above this number times 10^`scale`, and whether the two are
    /// equal; `None` if it needs more than 127 bits.
    pub fn floor_unscaled(&self, scale: u8) -> Option<(i128, bool)> {
        let magnitude = self.magnitude();
        let (whole, exact) = match self.scale.checked_sub(scale) {
            None | Some(0) => {
                let unit = POW10[usize::from(scale - self.scale)];
                (magnitude.checked_mul(unit)?, true)
            }
            Some(more) => {
                let unit = POW10[usize::from(more)];
                (magnitude / unit, magnitude % unit == U256::ZERO)
            }
        };
        let whole = i128::try_from(whole).ok()?;
        Some(match (self.negative, exact) {
            (false, _) => (whole, exact),
            (true, true) => (-whole, true),
            (true, false) => (-whole - 1, false),
        })
    }

    /// Appends `width` bytes: the unscaled number plus 2^(8*width-1), big-endian, so that `memcmp`
    /// orders numbers of one scale. `None`, with nothing appended, if the number does not fit or
    /// has digits beyond `scale`.
    pub fn write_sortable(&self, scale: u8, width: usize, out: &mut Vec<u8>) -> Option<()> {
        let start = out.len();
        out.resize(start + width, 0);
        let done = self.put_sortable(scale, &mut out[start..]);
        if done.is_none() {
            out.truncate(start);
        }
        done
    }

    /// As [`Decimal::write_sortable`], into a slice of 1 to 32 bytes.
    pub(crate) fn put_sortable(&self, scale: u8, out: &mut [u8]) -> Option<()> {
        let width = out.len();
        let m = if self.scale > scale {
            let unit = POW10[usize::from(self.scale - scale)];
            let m = self.magnitude();
            if m % unit != U256::ZERO {
                return None;
            }
            m / unit
        } else {
            self.magnitude_at(scale)?
        };
        let zero = U256::ONE << (8 * width - 1) as u32;
        if m >= zero {
            return None;
        }
        let stored = if self.negative { zero - m } else { zero + m };
        out.copy_from_slice(&stored.to_be_bytes()[32 - width..]);
        Some(())
    }

    /// The integer nearest to it, half away from zero; `None` out of i64's range.
    pub fn to_i64(&self) -> Option<i64> {
        let r = self.round(0)?;
        let m = u64::try_from(r.magnitude()).ok()?;
        if r.negative {
            0i64.checked_sub_unsigned(m)
        } else {
            i64::try_from(m).ok()
        }
    }

    /// The integer nearest to it, half away from zero; `None` out of u64's range.
    pub fn to_u64(&self) -> Option<u64> {
        let r = self.round(0)?;
        if r.negative {
            None
        } else {
            u64::try_from(r.magnitude()).ok()
        }
    }

    /// The nearest double.
    pub fn to_f64(&self) -> f64 {
        if let Some(m) = self.small()
            && m < 1 << 53
            && self.scale <= 22
        {
            // Both operands are exact, so one rounding is correct.
            let v = m as f64 / 10f64.powi(i32::from(self.scale));
            return if self.negative { -v } else { v };
        }
        self.to_string().parse().unwrap_or(0.0)
    }

    /// `v` divided by 10^`scale`, with `scale` decimal places, at most 30.
    #[inline]
    pub fn from_scaled(v: i64, scale: u8) -> Decimal {
        debug_assert!(scale <= super::MAX_SCALE, "a decimal has at most 30 places");
        Decimal {
            scale,
            ..Decimal::from(v)
        }
    }

    /// The decimal that prints as the shortest text of the double; `None` for infinities, NaN and
    /// numbers past 65 digits. Digits beyond 30 after the point are rounded off.
    pub fn from_f64(v: f64) -> Option<Decimal> {
        if !v.is_finite() {
            return None;
        }
        let parsed = Decimal::parse_prefix(ryu::Buffer::new().format_finite(v).as_bytes());
        (!parsed.overflow).then(|| parsed.value.without_trailing_zeros())
    }
}

impl From<i64> for Decimal {
    fn from(v: i64) -> Decimal {
        Decimal {
            limbs: [v.unsigned_abs(), 0, 0],
            top: 0,
            over: 0,
            scale: 0,
            negative: v < 0,
        }
    }
}

impl From<u64> for Decimal {
    fn from(v: u64) -> Decimal {
        Decimal {
            limbs: [v, 0, 0],
            top: 0,
            over: 0,
            scale: 0,
            negative: false,
        }
    }
}
