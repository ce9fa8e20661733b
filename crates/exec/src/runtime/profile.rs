//! The measurements of EXPLAIN ANALYZE: for each operator, how often it was executed, its rows, and
//! its times. They belong to one execution of one statement, and are not shared.
//!
//! An operator is named by the address of its block or query in the plan, which does not move while
//! the statement runs, and by its stage in it. Its times contain those of its inputs.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

/// A stage of a block or query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Stage {
    /// The rows that the access path of a join step finds.
    Read(usize),
    /// The joined rows of a step that pass its conditions.
    Join(usize),
    /// The change of a join step from lookups to a hash table.
    Changed(usize),
    /// The groups, before HAVING.
    Groups,
    /// The rows that pass HAVING, with the results of window functions.
    Rows,
    /// The rows of the result, after DISTINCT, ORDER BY and LIMIT.
    Result,
}

/// The measurements of an operator, summed over its executions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub loops: u64,
    pub rows: u64,
    /// The time to the first row of each execution, or to its end if it had no row.
    pub first: Duration,
    /// The time to the end of each execution.
    pub last: Duration,
}

/// The measurements of an operator, with those of its current execution.
#[derive(Debug, Clone, Copy, Default)]
struct Operator {
    counts: Counts,
    /// The time of the current execution, while it has returned no row.
    before_first: Option<Duration>,
}

impl Operator {
    /// The measurements so far: an execution without rows ends without a first row.
    fn so_far(&self) -> Counts {
        Counts {
            first: self.counts.first + self.before_first.unwrap_or_default(),
            ..self.counts
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Profile {
    operators: RefCell<FxHashMap<(usize, Stage), Operator>>,
}

/// One execution of an operator that passes its rows on.
pub(crate) struct Execution {
    start: Instant,
    first: Option<Duration>,
    rows: u64,
}

impl Execution {
    pub fn begin() -> Execution {
        Execution {
            start: Instant::now(),
            first: None,
            rows: 0,
        }
    }

    /// Counts a row.
    #[inline]
    pub fn row(&mut self) {
        if self.rows == 0 {
            self.first = Some(self.start.elapsed());
        }
        self.rows += 1;
    }

    /// Counts rows whose first one is not timed.
    pub fn count(&mut self, rows: u64) {
        self.rows += rows;
    }
}

impl Profile {
    /// Begins an execution of the join steps of a block, of which there are `steps`.
    pub fn begin_steps<T>(&self, block: &T, steps: usize) {
        let joins = (0..steps).map(Stage::Join);
        for stage in joins.chain([Stage::Read(0)]) {
            self.change(block, stage, |operator| {
                operator.counts = operator.so_far();
                operator.counts.loops += 1;
                operator.before_first = Some(Duration::ZERO);
            });
        }
    }

    /// Adds a call of the current execution of a step, which has returned `rows`.
    pub fn add_call<T>(&self, block: &T, stage: Stage, rows: u64, time: Duration) {
        self.change(block, stage, |operator| {
            operator.counts.rows += rows;
            operator.counts.last += time;
            let Some(before) = operator.before_first else {
                return;
            };
            operator.before_first = Some(before + time);
            if rows > 0 {
                operator.counts = operator.so_far();
                operator.before_first = None;
            }
        });
    }

    /// Adds whole executions.
    pub fn add<T>(&self, of: &T, stage: Stage, more: Counts) {
        self.change(of, stage, |operator| {
            let counts = &mut operator.counts;
            counts.loops += more.loops;
            counts.rows += more.rows;
            counts.first += more.first;
            counts.last += more.last;
        });
    }

    /// Ends an execution.
    pub fn end<T>(&self, of: &T, stage: Stage, execution: &Execution) {
        let last = execution.start.elapsed();
        let counts = Counts {
            loops: 1,
            rows: execution.rows,
            first: execution.first.unwrap_or(last),
            last,
        };
        self.add(of, stage, counts);
    }

    /// The measurements of an operator, if it was executed.
    pub fn of<T>(&self, of: &T, stage: Stage) -> Option<Counts> {
        let operators = self.operators.borrow();
        operators.get(&(address(of), stage)).map(Operator::so_far)
    }

    fn change<T>(&self, of: &T, stage: Stage, f: impl FnOnce(&mut Operator)) {
        let mut operators = self.operators.borrow_mut();
        f(operators.entry((address(of), stage)).or_default());
    }
}

fn address<T>(of: &T) -> usize {
    std::ptr::from_ref(of).addr()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn first_row_time_ends_with_the_first_rows() {
        let (profile, block) = (Profile::default(), 0u32);
        let stage = Stage::Join(0);
        // Two executions: of three calls, and of one call that returns nothing.
        profile.begin_steps(&block, 1);
        profile.add_call(&block, stage, 0, MS);
        profile.add_call(&block, stage, 5, MS);
        profile.add_call(&block, stage, 2, MS);
        profile.begin_steps(&block, 1);
        profile.add_call(&block, stage, 0, 4 * MS);
        let counts = profile.of(&block, stage).unwrap();
        let expected = Counts {
            loops: 2,
            rows: 7,
            first: 6 * MS,
            last: 7 * MS,
        };
        assert_eq!(counts, expected);
        assert_eq!(profile.of(&block, Stage::Rows), None);
    }
}
