//! A histogram whose buckets are narrower than 1 % of their values, and exact below 128. It takes
//! little memory if the values span a small range.

/// The number of buckets in a block.
const BLOCK: usize = 64;

/// A distribution of integers.
#[derive(Clone, Debug, Default)]
pub struct Buckets {
    /// Values below 128 have two blocks, and each power of two above that has one.
    blocks: Vec<Option<Box<[u64; BLOCK]>>>,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

#[inline]
fn bucket(value: u64) -> usize {
    if value < 128 {
        return value as usize;
    }
    let shift = 63 - value.leading_zeros() as usize - 6;
    shift * BLOCK + (value >> shift) as usize
}

/// The middle of a bucket.
fn middle(bucket: usize) -> u64 {
    if bucket < 128 {
        return bucket as u64;
    }
    let shift = bucket / BLOCK - 1;
    let low = ((bucket - shift * BLOCK) as u64) << shift;
    low + (1 << shift) / 2
}

impl Buckets {
    #[inline]
    pub fn add(&mut self, value: u64) {
        let bucket = bucket(value);
        let block = bucket / BLOCK;
        if block >= self.blocks.len() {
            self.blocks.resize(block + 1, None);
        }
        self.blocks[block].get_or_insert_with(|| Box::new([0; BLOCK]))[bucket % BLOCK] += 1;
        self.min = if self.count == 0 {
            value
        } else {
            self.min.min(value)
        };
        self.max = self.max.max(value);
        self.count += 1;
        self.sum += u128::from(value);
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn sum(&self) -> u64 {
        u64::try_from(self.sum).unwrap_or(u64::MAX)
    }

    /// The smallest value; 0 if there is none.
    pub fn min(&self) -> u64 {
        self.min
    }

    pub fn max(&self) -> u64 {
        self.max
    }

    pub fn mean(&self) -> f64 {
        if self.count == 0 {
            0.0
        } else {
            self.sum as f64 / self.count as f64
        }
    }

    /// The smallest value that at least the share `share` (0 to 1) of all values does not exceed,
    /// accurate to 1 %; 0 if there are no values.
    pub fn quantile(&self, share: f64) -> u64 {
        let wanted = ((share * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        for (at, n) in self.filled() {
            seen += n;
            if seen >= wanted {
                return middle(at).clamp(self.min, self.max);
            }
        }
        self.max
    }

    /// The counts by powers of two as (first value, last value, count), without empty ranges.
    pub fn by_powers(&self) -> Vec<(u64, u64, u64)> {
        let mut out: Vec<(u64, u64, u64)> = Vec::new();
        for (at, n) in self.filled() {
            let value = middle(at);
            let (from, to) = match value {
                0 => (0, 0),
                v => {
                    let from = 1u64 << (63 - v.leading_zeros());
                    (from, from + (from - 1))
                }
            };
            match out.last_mut() {
                Some(last) if last.0 == from => last.2 += n,
                _ => out.push((from, to, n)),
            }
        }
        out
    }

    fn filled(&self) -> impl Iterator<Item = (usize, u64)> {
        self.blocks.iter().enumerate().flat_map(|(block, counts)| {
            counts.iter().flat_map(move |counts| {
                counts
                    .iter()
                    .enumerate()
                    .filter(|(_, n)| **n > 0)
                    .map(move |(at, n)| (block * BLOCK + at, *n))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quantiles_match_sorted_values(
            mut values in proptest::collection::vec((0u32..50, any::<u64>()).prop_map(|(shift, v)| v >> (shift + 13)), 1..300),
            share in 0.0f64..=1.0,
        ) {
            let mut buckets = Buckets::default();
            for &value in &values {
                buckets.add(value);
            }
            values.sort_unstable();
            let at = ((share * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let exact = values[at - 1];
            let found = buckets.quantile(share);
            prop_assert!(found.abs_diff(exact) as f64 <= exact as f64 * 0.01, "{} for {}", found, exact);
            prop_assert_eq!(buckets.min(), values[0]);
            prop_assert_eq!(buckets.max(), values[values.len() - 1]);
            prop_assert_eq!(u128::from(buckets.sum()), values.iter().map(|&v| u128::from(v)).sum::<u128>());
            let powers = buckets.by_powers();
            prop_assert_eq!(powers.iter().map(|p| p.2).sum::<u64>(), values.len() as u64);
            for (from, to, n) in powers {
                prop_assert_eq!(values.iter().filter(|v| (from..=to).contains(v)).count() as u64, n);
            }
        }
    }

    #[test]
    fn small_values_are_exact_and_empty_is_zero() {
        let mut buckets = Buckets::default();
        assert_eq!(
            (buckets.quantile(0.5), buckets.max(), buckets.mean()),
            (0, 0, 0.0)
        );
        for value in [3, 3, 127, 5] {
            buckets.add(value);
        }
        assert_eq!(
            (
                buckets.quantile(0.0),
                buckets.quantile(0.5),
                buckets.quantile(0.75),
                buckets.quantile(1.0)
            ),
            (3, 3, 5, 127)
        );
        buckets.add(u64::MAX);
        assert_eq!(buckets.max(), u64::MAX);
        assert_eq!(buckets.by_powers().last().map(|p| p.1), Some(u64::MAX));
    }
}
