//! The rows: what key, secondary key and value each has, computed from its number alone, so that
//! all engines hold the same.

/// Bytes of a value: the secondary key (8, little-endian), and 112 that look random.
pub const VALUE: usize = 120;
/// Rows that share a secondary key.
pub const PER_KEY: u64 = 5;
/// Keys of loaded rows lie this far apart: inserts go between them.
pub const GAP: u64 = 16;

/// A table of `rows` rows. Row number `i` has the key `i * GAP`.
#[derive(Clone, Copy)]
pub struct Data {
    pub rows: u64,
    /// Odd and coprime to `rows`: `i * step mod rows` visits every row once, far from the one
    /// before.
    step: u64,
    /// The inverse of `step` modulo `rows`.
    back: u64,
}

impl Data {
    /// `rows` is a multiple of [`PER_KEY`].
    pub fn new(rows: u64) -> Data {
        assert!(rows >= 100 && rows.is_multiple_of(PER_KEY));
        let golden = (rows as f64 * 0.618_033_988_749_895) as u64;
        let step = (golden..)
            .find(|&s| gcd(s, rows) == 1)
            .expect("some number is coprime");
        Data {
            rows,
            step,
            back: inverse(step, rows),
        }
    }

    /// Different secondary keys.
    pub fn groups(&self) -> u64 {
        self.rows / PER_KEY
    }

    /// The secondary key of row `i`: its other rows lie far away.
    pub fn group_of(&self, i: u64) -> u64 {
        (u128::from(i) * u128::from(self.step) % u128::from(self.rows)) as u64 % self.groups()
    }

    /// The rows of secondary key `group`, ascending.
    pub fn rows_of(&self, group: u64) -> [u64; PER_KEY as usize] {
        let mut rows = std::array::from_fn(|j| {
            let at = group + j as u64 * self.groups();
            (u128::from(at) * u128::from(self.back) % u128::from(self.rows)) as u64
        });
        rows.sort_unstable();
        rows
    }

    /// The key of the `n`th row that worker `worker` inserts; all are different, and lie all over
    /// the table. Where a row goes is as good as random:
    /// steps of equal length would fill all pages evenly, so that for a while none has to be split,
    /// and then all at once. Workers go different ways, so
    /// that they do not meet in the same pages at every step.
    pub fn new_key(&self, worker: u64, n: u64) -> u64 {
        let lap = n / self.rows;
        let at = self.shuffled((n + worker * (self.rows / 3)) % self.rows);
        at * GAP + 1 + (worker + 2 * lap) % (GAP - 1)
    }

    /// Another number below `rows`, a different one for each.
    fn shuffled(&self, mut i: u64) -> u64 {
        let bits = 64 - (self.rows - 1).leading_zeros();
        let mask = (1 << bits) - 1;
        loop {
            // Each step can be undone, so the numbers below 2^bits are permuted; those that are too
            // large go round once more.
            for factor in [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9_u64] {
                i = i.wrapping_mul(factor) & mask;
                i ^= i >> (bits / 2);
            }
            if i < self.rows {
                return i;
            }
        }
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn inverse(a: u64, modulus: u64) -> u64 {
    let (mut old, mut new) = ((i128::from(a), 1), (i128::from(modulus), 0));
    while new.0 != 0 {
        let q = old.0 / new.0;
        (old, new) = (new, (old.0 - q * new.0, old.1 - q * new.1));
    }
    old.1.rem_euclid(i128::from(modulus)) as u64
}

fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The value of the row with this key, in its `version`th form (an update makes the next).
pub fn value(key: u64, group: u64, version: u64) -> [u8; VALUE] {
    let mut out = [0; VALUE];
    out[..8].copy_from_slice(&group.to_le_bytes());
    let seed = mix(key ^ version << 48);
    for (j, word) in out[8..].chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(
            &mix(seed.wrapping_add(j as u64 * 0x9e37_79b9_7f4a_7c15)).to_le_bytes(),
        );
    }
    out
}

/// What a reader makes of a value: it looks at every byte.
#[inline(always)]
pub fn digest(value: &[u8]) -> u64 {
    let word = |w: &[u8]| w.try_into().map_or(0, u64::from_le_bytes);
    value.chunks_exact(8).fold(0, |sum, w| sum ^ word(w))
}

/// xorshift64*
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(mix(seed + 1) | 1)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((u128::from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)) * u128::from(n)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_and_rows_belong_together() {
        for rows in [100, 1_000, 99_995, 1_000_000] {
            let data = Data::new(rows);
            for group in (0..data.groups()).step_by(17) {
                let members = data.rows_of(group);
                assert!(members.is_sorted_by(|a, b| a < b));
                assert!(
                    members
                        .iter()
                        .all(|&i| i < rows && data.group_of(i) == group)
                );
            }
        }
    }

    #[test]
    fn new_keys_are_new() {
        let data = Data::new(1_000);
        let mut seen = std::collections::HashSet::new();
        for worker in 0..2 {
            for n in 0..7_000 {
                let key = data.new_key(worker, n);
                assert!(key % GAP != 0 && seen.insert(key));
            }
        }
    }
}
