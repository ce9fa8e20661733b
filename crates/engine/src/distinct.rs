//! Counting different values in little memory: HyperLogLog (Flajolet et al., "HyperLogLog: the
//! analysis of a near-optimal cardinality estimation algorithm"), with linear counting where the
//! values are few.

/// Registers of a counter: a kibibyte, an error of 3 %.
const REGISTERS: usize = 1024;
/// Bits of a hash that choose the register.
const INDEX_BITS: u32 = REGISTERS.trailing_zeros();

/// Counts different values.
#[derive(Debug, Clone)]
pub(crate) struct DistinctCounter {
    /// Of each register, the longest run of leading zeros of a hash, and one more.
    registers: Box<[u8]>,
}

impl Default for DistinctCounter {
    fn default() -> Self {
        DistinctCounter {
            registers: vec![0; REGISTERS].into(),
        }
    }
}

impl DistinctCounter {
    /// Adds a value.
    pub fn add(&mut self, value: &[u8]) {
        let hash = hash_of(value);
        let register = (hash >> (u64::BITS - INDEX_BITS)) as usize;
        // The bit that is set ends the run in any case.
        let rest = hash << INDEX_BITS | 1 << (INDEX_BITS - 1);
        let rank = rest.leading_zeros() as u8 + 1;
        let known = &mut self.registers[register];
        *known = rank.max(*known);
    }

    /// The number of different values that were added, about.
    pub fn estimate(&self) -> u64 {
        let count = REGISTERS as f64;
        let sum: f64 = self.registers.iter().map(|&r| 0.5f64.powi(r.into())).sum();
        let raw = 0.7213 / (1.0 + 1.079 / count) * count * count / sum;
        let empty = self.registers.iter().filter(|&&r| r == 0).count();
        let estimate = match empty {
            1.. if raw <= 2.5 * count => count * (count / empty as f64).ln(),
            _ => raw,
        };
        estimate.round() as u64
    }
}

/// A hash of which all bits depend on all bytes.
fn hash_of(value: &[u8]) -> u64 {
    const PRIME: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut hash = (value.len() as u64 + 1).wrapping_mul(PRIME);
    for chunk in value.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(PRIME);
        hash ^= hash >> 32;
    }
    hash = (hash ^ hash >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash ^ hash >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counter_estimates_within_a_tenth() {
        for n in [0u64, 1, 2, 25, 150, 1_000, 5_000, 40_000, 300_000] {
            let mut counter = DistinctCounter::default();
            for _ in 0..2 {
                (0..n).for_each(|v| counter.add(&(v * 7).to_be_bytes()));
            }
            let estimate = counter.estimate();
            let error = estimate.abs_diff(n);
            assert!(error <= n / 10, "{n} values counted as {estimate}");
        }
    }
}
