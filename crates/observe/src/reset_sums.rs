//! Counts that begin at zero again although nothing writes to their counters: the sums of that time
//! are recorded, and later reports subtract them.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The rows of a report, by their keys, with their counts.
pub type CountRows = BTreeMap<String, Vec<u64>>;

/// The sums of each report at its last reset.
#[derive(Debug, Default)]
pub struct ResetSums(Mutex<BTreeMap<&'static str, CountRows>>);

impl ResetSums {
    /// Lets the counts of a report begin at zero. `rows` are its sums now.
    pub fn reset(&self, report: &'static str, rows: CountRows) {
        let mut reports = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        reports.insert(report, rows);
    }

    /// Subtracts the sums of the report's last reset. A count below them belongs to something new
    /// with an old key, and is left as it is.
    pub fn since(&self, report: &str, mut rows: CountRows) -> CountRows {
        let reports = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(before) = reports.get(report) else {
            return rows;
        };
        for (key, counts) in &mut rows {
            let Some(before) = before.get(key) else {
                continue;
            };
            if counts.iter().zip(before).all(|(now, then)| now >= then) {
                counts.iter_mut().zip(before).for_each(|(n, b)| *n -= b);
            }
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(counts: &[(&str, [u64; 2])]) -> CountRows {
        let each = counts.iter().map(|(key, n)| ((*key).into(), n.to_vec()));
        each.collect()
    }

    #[test]
    fn counts_begin_at_the_last_reset() {
        let sums = ResetSums::default();
        let now = rows(&[("a", [5, 7]), ("b", [3, 3])]);
        assert_eq!(sums.since("r", now.clone()), now);
        sums.reset("r", now.clone());
        assert_eq!(sums.since("other", now.clone()), now);
        let later = rows(&[("a", [6, 7]), ("b", [1, 0]), ("c", [2, 2])]);
        let since = rows(&[("a", [1, 0]), ("b", [1, 0]), ("c", [2, 2])]);
        assert_eq!(sums.since("r", later), since);
    }
}
