//! What a worker lends to the statements that run on it: operators of plans that have run there, and memory for parameters.
//!
//! # Picture
//! ```text
//! session A ─▶ plan ─▶ take(plan) ─▶ operators ─▶ execute ─▶ give ─▶ bucket of the plan ─▶ session B runs the same plan with them
//! ```
//! So a thousand sessions that run one statement run it with the same few operators, which stay in the processor's cache, and an idle session
//! keeps none.
//!
//! # Invariants
//! - L1: operators are given for the very plan that they were made for: the plan's address is compared, and they hold a reference to it, so that it
//!   is not another's address meanwhile.
//! - L2: what waits here belongs to no execution. Operators that failed have been emptied by [`execute`](crate::execute).
//!
//! # Concurrency
//! One thread's own. A fiber that waits keeps what it has taken; whoever comes meanwhile gets others.
//!
//! # Cost
//! No allocation for a plan that ran here before. Hundreds of statements may wait for the lock of one hot row, each with operators of its own,
//! so a place keeps up to [`PER_BUCKET`] of them. Those beyond [`ALWAYS_KEPT`] that no statement has used between two looks go again. What one
//! piece of an operator may keep is bounded by itself; what all keep is looked at once in [`LOOK_EVERY`] statements, and the largest go where it
//! is more than [`MOST_BYTES`].

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use nfold_plan::query::Plan;

use crate::params::Params;
use crate::statement::Executable;

/// Places to look for a plan's operators.
const BUCKETS: usize = 256;
/// Operators in one place: of plans that share it, or of one that runs many times at once.
const PER_BUCKET: usize = 512;
/// As many of them stay, also unused.
const ALWAYS_KEPT: usize = 8;
/// Parameters that wait, of any size.
const PARAMS: usize = 64;
/// Parameters that wait, with at most [`SMALL_PARAMS`] bytes each.
const MANY_PARAMS: usize = 512;
const SMALL_PARAMS: usize = 4 << 10;

/// Statements between two looks at how much memory waits.
const LOOK_EVERY: u32 = 1024;
/// Bytes that may wait in all.
const MOST_BYTES: usize = 32 << 20;

/// Operators that wait in one place, the last used last.
#[derive(Default)]
struct Bucket {
    list: Vec<Executable>,
    /// The shortest that `list` was since the last look: so many of the first were not used.
    unused: usize,
}

impl Bucket {
    fn take(&mut self, plan: &Arc<Plan>) -> Option<Executable> {
        let at = self
            .list
            .iter()
            .rposition(|e| Arc::ptr_eq(e.plan(), plan))?;
        let operators = self.list.remove(at);
        self.unused = self.unused.min(self.list.len());
        Some(operators)
    }

    /// The oldest of a full place go.
    fn give(&mut self, operators: Executable) {
        if self.list.len() >= PER_BUCKET {
            self.list.drain(..PER_BUCKET / 2);
        }
        self.list.push(operators);
    }

    /// Operators that were not used since the last look go, but for a few.
    fn drop_unused(&mut self) {
        self.list.drain(..self.unused.saturating_sub(ALWAYS_KEPT));
        self.unused = self.list.len();
    }
}

/// See the module's header.
#[derive(Default)]
pub struct Loans {
    buckets: RefCell<Vec<Bucket>>,
    /// Operators that were taken back so far.
    given: Cell<u32>,
    /// Schema version of what waits.
    schema_version: Cell<u64>,
    params: RefCell<Vec<Params>>,
}

/// The place of a plan.
fn bucket(plan: &Arc<Plan>) -> usize {
    let address = Arc::as_ptr(plan).addr() as u64;
    (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % BUCKETS
}

/// The size up to which pieces of these sizes may stay, so that they are `most` bytes at most together.
fn largest_kept(sizes: &mut [usize], most: usize) -> usize {
    sizes.sort_unstable();
    let (mut sum, mut kept) = (0, 0);
    for same in sizes.chunk_by(|a, b| a == b) {
        sum += same.len() * same[0];
        if sum > most {
            break;
        }
        kept = same[0];
    }
    kept
}

impl Loans {
    /// Operators for a plan of this schema version: those that ran it last here, or new ones.
    pub fn operators(&self, plan: &Arc<Plan>, schema_version: u64) -> Executable {
        if self.schema_version.get() != schema_version {
            self.forget();
            self.schema_version.set(schema_version);
        }
        let mut buckets = self.buckets.borrow_mut();
        let kept = buckets.get_mut(bucket(plan)).and_then(|b| b.take(plan));
        kept.unwrap_or_else(|| Executable::new(plan.clone()))
    }

    /// Takes operators of a plan of this schema version back.
    pub fn give_operators(&self, operators: Executable, schema_version: u64) {
        if self.schema_version.get() != schema_version {
            return; // the schema moved while they ran: nobody will ask for them
        }
        let mut buckets = self.buckets.borrow_mut();
        if buckets.is_empty() {
            buckets.resize_with(BUCKETS, Bucket::default);
        }
        buckets[bucket(operators.plan())].give(operators);
        let given = self.given.get().wrapping_add(1);
        self.given.set(given);
        if given.is_multiple_of(LOOK_EVERY) {
            buckets.iter_mut().for_each(Bucket::drop_unused);
            drop(buckets);
            self.trim(MOST_BYTES);
        }
    }

    /// Bytes that wait here with operators, near enough.
    pub fn memory(&self) -> usize {
        let buckets = self.buckets.borrow();
        let waiting = buckets.iter().flat_map(|b| &b.list);
        waiting.map(Executable::memory).sum()
    }

    /// Where more than `most` bytes wait, the largest operators go, until half of that is left.
    #[cold]
    fn trim(&self, most: usize) {
        if self.memory() <= most {
            return;
        }
        let mut buckets = self.buckets.borrow_mut();
        let waiting = buckets.iter().flat_map(|b| &b.list);
        let mut sizes: Vec<usize> = waiting.map(Executable::memory).collect();
        let largest = largest_kept(&mut sizes, most / 2);
        for bucket in &mut *buckets {
            bucket
                .list
                .retain(|operators| operators.memory() <= largest);
            bucket.unused = bucket.unused.min(bucket.list.len());
        }
    }

    /// The schema has moved: tables that are gone are let go.
    #[cold]
    fn forget(&self) {
        self.buckets.borrow_mut().clear();
    }

    /// Parameters without a value.
    pub fn params(&self) -> Params {
        self.params.borrow_mut().pop().unwrap_or_default()
    }

    /// Takes parameters back.
    pub fn give_params(&self, mut params: Params) {
        params.release();
        let mut waiting = self.params.borrow_mut();
        let limit = match params.memory() {
            ..=SMALL_PARAMS => MANY_PARAMS,
            _ => PARAMS,
        };
        if waiting.len() < limit {
            waiting.push(params);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Arc<Plan> {
        Arc::new(Plan::Do(Vec::new(), Vec::new()))
    }

    #[test]
    fn operators_are_of_their_plan_and_of_the_schema() {
        let loans = Loans::default();
        let (a, b) = (plan(), plan());
        let first = loans.operators(&a, 1);
        let second = loans.operators(&a, 1);
        loans.give_operators(first, 1);
        loans.give_operators(second, 1);
        assert!(Arc::ptr_eq(loans.operators(&b, 1).plan(), &b));
        let again = loans.operators(&a, 1);
        assert_eq!(Arc::strong_count(&a), 3, "none is made where one waits");
        loans.give_operators(again, 1);
        assert_eq!(Arc::strong_count(&a), 3);
        let anew = loans.operators(&a, 2);
        assert_eq!(Arc::strong_count(&a), 2, "older ones are gone");
        for _ in 0..PER_BUCKET {
            loans.give_operators(Executable::new(a.clone()), 2);
        }
        loans.give_operators(anew, 2);
        assert_eq!(Arc::strong_count(&a), 2 + PER_BUCKET / 2);
        loans.give_operators(Executable::new(b.clone()), 1);
        assert_eq!(Arc::strong_count(&b), 1, "late ones are not kept");
    }

    #[test]
    fn operators_that_many_statements_used_at_once_go_again() {
        let (loans, a) = (Loans::default(), plan());
        let many: Vec<Executable> = (0..200).map(|_| loans.operators(&a, 1)).collect();
        for operators in many {
            loans.give_operators(operators, 1);
        }
        assert_eq!(Arc::strong_count(&a), 1 + 200, "all wait for the next use");
        for _ in 0..2 * LOOK_EVERY {
            let operators = loans.operators(&a, 1);
            loans.give_operators(operators, 1);
        }
        assert_eq!(Arc::strong_count(&a), 1 + ALWAYS_KEPT + 1);
    }

    #[test]
    fn the_largest_go_until_the_rest_is_small_enough() {
        assert_eq!(largest_kept(&mut [5, 1, 3, 3], 12), 5);
        assert_eq!(largest_kept(&mut [5, 1, 3, 3], 11), 3);
        assert_eq!(largest_kept(&mut [5, 1, 3, 3], 6), 1, "both or none");
        assert_eq!(largest_kept(&mut [5, 1, 3, 3], 0), 0);
        assert_eq!(largest_kept(&mut [0, 0, 9], 8), 0);
    }

    #[test]
    fn parameters_come_back_empty() {
        let loans = Loans::default();
        let mut params = loans.params();
        params.push(&nfold_types::Value::Int(7));
        loans.give_params(params);
        let params = loans.params();
        assert!(params.memory() > 0 && params.get(0).is_null());
    }
}
