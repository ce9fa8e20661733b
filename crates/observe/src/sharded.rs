//! Counters with one shard per worker.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The number of shards of every counter. With more workers some of them share a shard, which costs
/// speed only.
pub const SHARDS: usize = 64;

static NEXT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static SHARD: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// This thread's shard: assigned round-robin at the first use, unless [`set_shard`] chose it.
#[inline]
pub fn shard() -> usize {
    SHARD.with(|s| {
        let mut at = s.get();
        if at == usize::MAX {
            at = NEXT.fetch_add(1, Relaxed) % SHARDS;
            s.set(at);
        }
        at
    })
}

/// Sets this thread's shard. A worker passes its own number.
pub fn set_shard(worker: usize) {
    SHARD.with(|s| s.set(worker % SHARDS));
}

#[derive(Debug)]
#[repr(align(128))]
struct Shard<const N: usize>([AtomicU64; N]);

/// `N` counters, each with a value in every shard. The user of the counters defines an enum of
/// their indexes.
#[derive(Debug)]
pub struct Sharded<const N: usize> {
    shards: Box<[Shard<N>]>,
}

impl<const N: usize> Default for Sharded<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> Sharded<N> {
    pub fn new() -> Self {
        let shard = || Shard(std::array::from_fn(|_| AtomicU64::new(0)));
        Sharded {
            shards: (0..SHARDS).map(|_| shard()).collect(),
        }
    }

    /// Adds to counter `which` of this thread's shard. An index out of range is ignored.
    #[inline]
    pub fn add(&self, which: usize, n: u64) {
        if let Some(counter) = self.shards[shard()].0.get(which) {
            counter.fetch_add(n, Relaxed);
        }
    }

    /// The sum over all shards, with wrapping addition.
    pub fn sum(&self, which: usize) -> u64 {
        self.shards
            .iter()
            .filter_map(|s| s.0.get(which))
            .fold(0, |sum, c| sum.wrapping_add(c.load(Relaxed)))
    }

    /// The sums of all counters.
    pub fn sums(&self) -> [u64; N] {
        std::array::from_fn(|i| self.sum(i))
    }

    /// The value of one counter in each shard. Tests use it to prove that a read wrote nothing.
    pub fn by_shard(&self, which: usize) -> Vec<u64> {
        self.shards
            .iter()
            .filter_map(|s| s.0.get(which))
            .map(|c| c.load(Relaxed))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_cover_all_threads() {
        let counters = Sharded::<3>::new();
        std::thread::scope(|s| {
            for t in 0..8 {
                let counters = &counters;
                s.spawn(move || {
                    set_shard(t);
                    for _ in 0..1000 {
                        counters.add(0, 1);
                        counters.add(2, 3);
                        counters.add(9, 1);
                    }
                });
            }
        });
        assert_eq!(counters.sums(), [8000, 0, 24000]);
        assert_eq!(
            counters.by_shard(0).iter().filter(|v| **v == 1000).count(),
            8,
            "I1: each worker has its shard"
        );
    }

    #[test]
    fn shards_do_not_share_lines() {
        assert_eq!(std::mem::align_of::<Shard<1>>(), 128);
        assert_eq!(std::mem::size_of::<Shard<17>>() % 128, 0);
    }
}
