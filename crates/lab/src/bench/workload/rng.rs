//! Random numbers for workloads: wyrand, seeded per connection, so that a run can be repeated
//! exactly.

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        let mut rng = Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        rng.next();
        rng
    }

    #[inline]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0xa076_1d64_78bd_642f);
        let wide = u128::from(self.0) * u128::from(self.0 ^ 0xe703_7ed1_a0b4_28db);
        (wide >> 64) as u64 ^ wide as u64
    }

    /// A uniform number in `1..=n`; `n` must be at least 1.
    #[inline]
    pub fn up_to(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64 + 1
    }

    /// A number in `1..=n`, with small numbers far more frequent: a uniform draw to the sixth
    /// power.
    #[inline]
    pub fn skewed(&mut self, n: u64) -> u64 {
        let u = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        ((u.powi(6) * n as f64) as u64).min(n - 1) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_cover_the_range() {
        let mut rng = Rng::new(7);
        let mut seen = [0u32; 10];
        let mut low = 0;
        for _ in 0..10_000 {
            seen[rng.up_to(10) as usize - 1] += 1;
            let s = rng.skewed(1000);
            assert!((1..=1000).contains(&s));
            low += u32::from(s <= 100);
        }
        assert!(seen.iter().all(|n| (800..1200).contains(n)), "{seen:?}");
        assert!(
            low > 6000,
            "{low}: a tenth of the values receives most draws"
        );
        assert_eq!(rng.up_to(1), 1);
    }
}
