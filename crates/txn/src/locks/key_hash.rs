//! The hash of a lock's key, by which shards and their tables are divided.
//!
//! # Picture
//! ```text
//!  key   index id, tag, 00 00 12 3│5         run = everything before the last four bits
//!  hash  from the run             │5         the lowest bits choose the bucket
//! ```
//! A scan locks keys that follow one another. The keys of a run of sixteen lie in one shard, in
//! buckets side by side, so a change of many rows misses the cache once for a run and not twice for
//! each row.

use rustc_hash::FxHasher;
use std::hash::{BuildHasherDefault, Hasher};

pub(super) const SHARDS: usize = 256;
const POSITION_BITS: u32 = 4;
const POSITION: u64 = (1 << POSITION_BITS) - 1;
/// The table compares the highest seven bits before it looks at a key.
const TAG_SHIFT: u32 = 57;

pub(super) type BuildKeyHasher = BuildHasherDefault<KeyHasher>;

/// Hashes one lock's key.
#[derive(Default)]
pub(super) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write(&mut self, key: &[u8]) {
        let (run, position) = hash_of(key);
        self.0 = (run & !POSITION | position) ^ (position << TAG_SHIFT);
    }

    /// The length of the key, which comes first, is not needed.
    fn write_usize(&mut self, _: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The hash of the key's run, and the key's position there.
fn hash_of(key: &[u8]) -> (u64, u64) {
    let mut hasher = FxHasher::default();
    let Some((&last, before)) = key.split_last() else {
        return (0, 0);
    };
    hasher.write(before);
    hasher.write_u8(last >> POSITION_BITS);
    (hasher.finish(), u64::from(last) & POSITION)
}

pub(super) fn shard_of(key: &[u8]) -> usize {
    (hash_of(key).0 >> 24) as usize % SHARDS
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::hash::BuildHasher;

    fn key(n: u32) -> [u8; 13] {
        let mut key = [7; 13];
        key[9..].copy_from_slice(&n.to_be_bytes());
        key
    }

    #[test]
    fn neighbours_lie_side_by_side() {
        let hash = |n| BuildKeyHasher::default().hash_one(&key(n)[..]);
        for run in 0..1000 {
            let first = hash(run * 16);
            assert_eq!(first & POSITION, 0);
            for position in 1..16 {
                let n = run * 16 + position;
                let lowest = |hash: u64| hash & ((1 << TAG_SHIFT) - 1);
                assert_eq!(lowest(hash(n)), lowest(first) + u64::from(position));
                assert_ne!(hash(n) >> TAG_SHIFT, first >> TAG_SHIFT);
                assert_eq!(shard_of(&key(n)), shard_of(&key(run * 16)));
            }
        }
    }

    #[test]
    fn runs_are_spread_over_shards_and_buckets() {
        let mut shards = BTreeSet::new();
        let mut buckets = BTreeSet::new();
        for run in 0..10_000 {
            shards.insert(shard_of(&key(run * 16)));
            let hash = BuildKeyHasher::default().hash_one(&key(run * 16)[..]);
            buckets.insert(hash >> POSITION_BITS & 0xFFFF);
        }
        assert_eq!(shards.len(), SHARDS);
        // 65,536 x (1 - e^(-10,000 / 65,536)) are expected of a random choice.
        assert!(buckets.len() > 9_000, "{} buckets", buckets.len());
    }
}
