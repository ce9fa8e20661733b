//! 512-bit helpers for products and quotients that pass 256 bits.

use ethnum::U256;

/// Eight 64-bit limbs, least significant first.
pub(super) type Wide = [u64; 8];

fn limbs(v: U256) -> [u64; 4] {
    let (hi, lo) = v.into_words();
    [lo as u64, (lo >> 64) as u64, hi as u64, (hi >> 64) as u64]
}

/// a * b
pub(super) fn mul(a: U256, b: U256) -> Wide {
    let (a, b) = (limbs(a), limbs(b));
    let mut out = [0u64; 8];
    for (i, &x) in a.iter().enumerate() {
        let mut carry = 0u128;
        for (j, &y) in b.iter().enumerate() {
            let t = u128::from(x) * u128::from(y) + u128::from(out[i + j]) + carry;
            out[i + j] = t as u64;
            carry = t >> 64;
        }
        out[i + 4] = carry as u64;
    }
    out
}

/// Divides in place by `d` and returns the remainder.
pub(super) fn div_small(v: &mut Wide, d: u64) -> u64 {
    let mut rem = 0u128;
    for limb in v.iter_mut().rev() {
        let cur = rem << 64 | u128::from(*limb);
        *limb = (cur / u128::from(d)) as u64;
        rem = cur % u128::from(d);
    }
    rem as u64
}

/// The low 256 bits if the value fits them.
pub(super) fn narrow(v: &Wide) -> Option<U256> {
    if v[4..].iter().any(|&l| l != 0) {
        return None;
    }
    Some(U256::from_words(
        u128::from(v[3]) << 64 | u128::from(v[2]),
        u128::from(v[1]) << 64 | u128::from(v[0]),
    ))
}

/// v / d by shift and subtract; `None` if the quotient passes 256 bits. Slow (512 steps), for huge
/// operands only.
pub(super) fn div_rem(v: &Wide, d: U256) -> Option<(U256, U256)> {
    let (mut quotient, mut rem) = (U256::ZERO, U256::ZERO);
    for bit in (0..512).rev() {
        let carry = rem >> 255u32 != U256::ZERO;
        rem = (rem << 1u32) | U256::from(v[bit / 64] >> (bit % 64) & 1);
        let fits = carry || rem >= d;
        if fits {
            rem = rem.wrapping_sub(d);
            if bit >= 256 {
                return None;
            }
            quotient |= U256::ONE << bit as u32;
        }
    }
    Some((quotient, rem))
}
