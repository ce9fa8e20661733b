//! A log-scale histogram. It has four buckets for each power of two, so a bucket's bounds differ by
//! at most a quarter.

use crate::sharded::Sharded;

const BUCKETS: usize = 256;

/// A histogram of u64 values of any unit (name the unit at the field). It is sharded like the
/// counters.
#[derive(Debug, Default)]
pub struct Histogram {
    buckets: Sharded<BUCKETS>,
}

/// The quantiles and the count of a histogram at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub count: u64,
    pub p50: u64,
    pub p95: u64,
    pub p99: u64,
    pub max: u64,
}

#[inline]
pub(crate) fn bucket_of(value: u64) -> usize {
    if value < 4 {
        return value as usize;
    }
    let power = 63 - value.leading_zeros() as usize;
    let quarter = (value >> (power - 2)) as usize & 3;
    (power - 1) * 4 + quarter
}

/// The largest value of a bucket.
pub(crate) fn upper(bucket: usize) -> u64 {
    if bucket < 4 {
        return bucket as u64;
    }
    let (power, quarter) = (bucket / 4 + 1, (bucket % 4) as u64);
    let width = 1u64 << (power - 2);
    (4 + quarter).wrapping_mul(width).wrapping_add(width - 1)
}

impl Histogram {
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts one value.
    #[inline]
    pub fn record(&self, value: u64) {
        self.buckets.add(bucket_of(value), 1);
    }

    /// Returns the quantiles, each as the upper bound of its bucket.
    pub fn summary(&self) -> Summary {
        let sums = self.buckets.sums();
        let count: u64 = sums.iter().sum();
        let quantile = |percent: u64| {
            let rank = (count * percent).div_ceil(100).max(1);
            let mut seen = 0;
            for (bucket, n) in sums.iter().enumerate() {
                seen += n;
                if seen >= rank {
                    return upper(bucket);
                }
            }
            0
        };
        let max = sums.iter().rposition(|n| *n > 0).map_or(0, upper);
        Summary {
            count,
            p50: quantile(50),
            p95: quantile(95),
            p99: quantile(99),
            max,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_tile_the_numbers() {
        for bucket in 0..251 {
            assert_eq!(bucket_of(upper(bucket)), bucket);
            assert_eq!(bucket_of(upper(bucket) + 1), bucket + 1);
        }
        assert!(bucket_of(u64::MAX) < BUCKETS);
        assert_eq!(upper(bucket_of(u64::MAX)), u64::MAX);
    }

    #[test]
    fn quantiles_bound_the_values() {
        let h = Histogram::new();
        for v in 1..=1000 {
            h.record(v);
        }
        let s = h.summary();
        assert_eq!(s.count, 1000);
        assert!((500..=640).contains(&s.p50), "{s:?}");
        assert!((990..=1280).contains(&s.p99), "{s:?}");
        assert!(s.max >= 1000);
        assert_eq!(Histogram::new().summary(), Summary::default());
    }
}
