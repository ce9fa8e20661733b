//! An in-memory sort with checkpoints ([`Checkpoint`]), so that it can be killed.
//!
//! Quicksort partitions the entries until a part is small enough for one call of the standard
//! library's sort. After an error the entries are some permutation of the input.

use std::cmp::Ordering;

use nfold_types::{Checkpoint, SqlError};

/// The maximum work of a part that is sorted without a checkpoint.
const PART_WORK: u64 = 500_000;
/// The maximum number of entries of such a part.
const PART_ROWS: usize = 4096;
/// The number of comparisons between two checkpoints.
const STRIDE: usize = 1024;

/// Sorts entries by a total order in which no two entries are equal. `cost` is the maximum work of
/// one comparison, for example the mean length of a key.
pub(crate) fn sort_by<T: Copy>(
    entries: &mut [T],
    checkpoint: &dyn Checkpoint,
    cost: u64,
    order: &impl Fn(&T, &T) -> Ordering,
) -> Result<(), SqlError> {
    let cost = cost.max(10);
    let rows = part_rows(cost);
    if entries.len() <= rows {
        entries.sort_unstable_by(order);
        return checkpoint.checkpoint(work_of(entries.len(), cost));
    }
    let sort = Sort {
        checkpoint,
        cost,
        rows,
        order,
    };
    match sort.run_at_start(entries)? {
        n if n == entries.len() => Ok(()),
        _ => sort.quicksort(entries),
    }
}

/// The number of entries that the standard library sorts within [`PART_WORK`].
fn part_rows(cost: u64) -> usize {
    let mut rows = PART_ROWS;
    while rows > 1 && work_of(rows, cost) > PART_WORK {
        rows /= 2;
    }
    rows
}

/// The work of sorting this many entries.
fn work_of(rows: usize, cost: u64) -> u64 {
    rows as u64 * u64::from(usize::BITS - rows.leading_zeros()) * cost
}

struct Sort<'c, F> {
    checkpoint: &'c dyn Checkpoint,
    cost: u64,
    rows: usize,
    order: &'c F,
}

impl<F> Sort<'_, F> {
    /// The length of the sorted run at the start.
    fn run_at_start<T: Copy>(&self, entries: &[T]) -> Result<usize, SqlError>
    where
        F: Fn(&T, &T) -> Ordering,
    {
        for (n, pair) in entries.windows(2).enumerate() {
            if (self.order)(&pair[0], &pair[1]).is_gt() {
                return Ok(n + 1);
            }
            self.count(n)?;
        }
        Ok(entries.len())
    }

    fn quicksort<T: Copy>(&self, mut entries: &mut [T]) -> Result<(), SqlError>
    where
        F: Fn(&T, &T) -> Ordering,
    {
        // The loop continues with the larger part, so the recursion is at most log2(n) deep.
        while entries.len() > self.rows {
            let at = self.partition(entries)?;
            let (left, right) = entries.split_at_mut(at);
            let right = &mut right[1..];
            let (small, large) = match left.len() < right.len() {
                true => (left, right),
                false => (right, left),
            };
            self.quicksort(small)?;
            entries = large;
        }
        entries.sort_unstable_by(self.order);
        self.checkpoint
            .checkpoint(work_of(entries.len(), self.cost))
    }

    /// Moves a pivot to its final position, with all smaller entries before it. Returns that
    /// position.
    fn partition<T: Copy>(&self, entries: &mut [T]) -> Result<usize, SqlError>
    where
        F: Fn(&T, &T) -> Ordering,
    {
        let last = entries.len() - 1;
        entries.swap(self.pivot(entries), last);
        let pivot = entries[last];
        let mut place = 0;
        for n in 0..last {
            // The swap is unconditional: a branch would be mispredicted half of the time.
            let smaller = (self.order)(&entries[n], &pivot).is_lt();
            entries.swap(place, n);
            place += usize::from(smaller);
            self.count(n)?;
        }
        entries.swap(place, last);
        Ok(place)
    }

    /// The position of the median of nine entries that are spread over the slice.
    fn pivot<T: Copy>(&self, entries: &[T]) -> usize
    where
        F: Fn(&T, &T) -> Ordering,
    {
        let step = entries.len() / 9;
        let mut places: [usize; 9] = std::array::from_fn(|n| n * step + step / 2);
        places.sort_unstable_by(|&a, &b| (self.order)(&entries[a], &entries[b]));
        places[4]
    }

    #[inline]
    fn count(&self, n: usize) -> Result<(), SqlError> {
        match n % self.stride() {
            0 => self.checkpoint.checkpoint(self.stride() as u64 * self.cost),
            _ => Ok(()),
        }
    }

    /// How many comparisons take at most about 100 µs: a power of two.
    fn stride(&self) -> usize {
        match self.cost {
            ..=100 => STRIDE,
            _ => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use nfold_types::{ErrorCode, NoCheckpoint};

    use super::*;

    #[test]
    fn sort_matches_standard_sort() {
        for (rows, distinct, cost) in [
            (0, 1, 1),
            (3_000, 2, 1_000_000),
            (3_000, 500, 10_000),
            (30_000, 1, 10),
            (30_000, 500, 50),
            (30_000, u64::MAX, 10),
        ] {
            let key = |n: usize| (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
            let mut entries: Vec<(u64, usize)> =
                (0..rows).map(|n| (key(n) % distinct, n)).collect();
            let mut expected = entries.clone();
            expected.sort_unstable();
            sort_by(&mut entries, &NoCheckpoint, cost, &|a, b| a.cmp(b)).unwrap();
            assert_eq!(entries, expected, "{rows} rows, {distinct} keys");
        }
    }

    #[test]
    fn sort_of_ordered_entries_keeps_them() {
        for rows in [0, 1, 2, 100_000] {
            let mut entries: Vec<usize> = (0..rows).collect();
            sort_by(&mut entries, &NoCheckpoint, 1, &|a, b| a.cmp(b)).unwrap();
            assert!(entries.is_sorted());
            entries.reverse();
            sort_by(&mut entries, &NoCheckpoint, 1, &|a, b| a.cmp(b)).unwrap();
            assert!(entries.is_sorted());
        }
    }

    /// A checkpoint whose n-th call fails.
    struct FailAt(Cell<u32>);

    impl Checkpoint for FailAt {
        fn checkpoint(&self, _: u64) -> Result<(), SqlError> {
            self.0.set(self.0.get() - 1);
            match self.0.get() {
                0 => Err(SqlError::new(ErrorCode::ER_QUERY_INTERRUPTED, &[])),
                _ => Ok(()),
            }
        }
    }

    #[test]
    fn stopped_sort_loses_no_entry() {
        for stop in 1..40 {
            let mut entries: Vec<u64> = (0..50_000)
                .map(|n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15))
                .collect();
            let mut expected = entries.clone();
            let stopped = sort_by(&mut entries, &FailAt(Cell::new(stop)), 20, &|a, b| a.cmp(b));
            assert!(stopped.is_err(), "at checkpoint {stop}");
            entries.sort_unstable();
            expected.sort_unstable();
            assert_eq!(entries, expected);
        }
    }
}
