//! A worker's pool of reusable operator trees and parameter buffers, keyed by plan.
//!
//! # Picture
//! ```text
//! session A ─▶ plan ─▶ take(plan) ─▶ operators ─▶ execute ─▶ give ─▶ bucket of the plan ─▶ session B
//! ```
//! Sessions that run the same statement share a few operator trees, so these stay in the
//! processor's cache and an idle session holds none.
//!
//! # Invariants
//! - L1: an operator tree is handed out only for the plan that it was built from. Plans are
//!   compared by address; the tree holds an `Arc` to its plan, so the address cannot be reused.
//! - L2: a tree in the pool belongs to no execution. A tree whose execution failed has been emptied
//!   by [`execute`](crate::execute).
//!
//! # Concurrency
//! The pool belongs to one thread. A fiber that waits keeps the tree that it has taken; other
//! sessions take other trees meanwhile.
//!
//! # Cost
//! A plan that ran on this worker before is run without an allocation. Hundreds of statements may
//! wait for the lock of one hot row, each with a tree of its own, so a bucket keeps up to
//! [`PER_BUCKET`] trees. Beyond [`ALWAYS_KEPT`], trees that were not used between two checks are
//! freed. Each piece of a tree bounds its own memory. Every [`LOOK_EVERY`] statements the pool adds
//! up the memory of all trees, and frees the largest ones beyond [`MOST_BYTES`].

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use nfold_plan::query::Plan;

use crate::env::StatementFiber;
use crate::env::params::Params;
use crate::statement::Executable;

/// The context in which the session runs statements: a fiber, and the pool of its worker.
pub trait ExecCx: StatementFiber {
    /// The worker's pool of operator trees and parameter buffers.
    fn operator_pool(&self) -> &OperatorPool;
}

/// The number of buckets; a plan's address selects one.
const BUCKETS: usize = 256;
/// The maximum number of trees in a bucket: of several plans, or of one plan that many sessions run
/// at once.
const PER_BUCKET: usize = 512;
/// The number of trees per bucket that stay even if they are unused.
const ALWAYS_KEPT: usize = 8;
/// The maximum number of pooled parameter buffers of any size.
const PARAMS: usize = 64;
/// The maximum number of pooled parameter buffers of at most [`SMALL_PARAMS`] bytes.
const MANY_PARAMS: usize = 512;
const SMALL_PARAMS: usize = 4 << 10;

/// The number of statements between two checks of the pool's memory.
const LOOK_EVERY: u32 = 1024;
/// The maximum memory of all pooled trees, in bytes.
const MOST_BYTES: usize = 32 << 20;

/// The pooled trees of one bucket, most recently used last.
#[derive(Default)]
struct Bucket {
    list: Vec<Executable>,
    /// The least length of `list` since the last check: the first `unused` trees were not used.
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

    /// If the bucket is full, its oldest trees are freed.
    fn give(&mut self, operators: Executable) {
        if self.list.len() >= PER_BUCKET {
            self.list.drain(..PER_BUCKET / 2);
        }
        self.list.push(operators);
    }

    /// Frees the trees that were not used since the last check, except for [`ALWAYS_KEPT`].
    fn drop_unused(&mut self) {
        if self.unused > ALWAYS_KEPT {
            self.list.drain(..self.unused - ALWAYS_KEPT);
        }
        self.unused = self.list.len();
    }
}

/// See the module's header.
#[derive(Default)]
pub struct OperatorPool {
    buckets: RefCell<Vec<Bucket>>,
    /// The number of trees returned so far.
    given: Cell<u32>,
    /// The schema version of the pooled trees.
    schema_version: Cell<u64>,
    params: RefCell<Vec<Params>>,
}

/// The bucket of a plan.
fn bucket(plan: &Arc<Plan>) -> usize {
    let address = Arc::as_ptr(plan).addr() as u64;
    (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % BUCKETS
}

/// The largest size that pieces may have so that all pieces up to this size take at most `most`
/// bytes together.
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

impl OperatorPool {
    /// Takes a tree for a plan of this schema version out of the pool, or creates one.
    #[inline]
    pub fn operators(&self, plan: &Arc<Plan>, schema_version: u64) -> Executable {
        if self.schema_version.get() != schema_version {
            self.forget();
            self.schema_version.set(schema_version);
        }
        let mut buckets = self.buckets.borrow_mut();
        let kept = buckets.get_mut(bucket(plan)).and_then(|b| b.take(plan));
        kept.unwrap_or_else(|| Executable::new(plan.clone()))
    }

    /// Returns a tree of a plan of this schema version to the pool.
    #[inline]
    pub fn give_operators(&self, operators: Executable, schema_version: u64) {
        if self.schema_version.get() != schema_version {
            return; // the schema changed while they ran: no statement can use them
        }
        let mut buckets = self.buckets.borrow_mut();
        if buckets.is_empty() {
            buckets.resize_with(BUCKETS, Bucket::default);
        }
        buckets[bucket(operators.plan())].give(operators);
        let given = self.given.get().wrapping_add(1);
        self.given.set(given);
        if given.is_multiple_of(LOOK_EVERY) {
            drop(buckets);
            self.drop_unused();
        }
    }

    #[cold]
    fn drop_unused(&self) {
        let mut buckets = self.buckets.borrow_mut();
        buckets.iter_mut().for_each(Bucket::drop_unused);
        drop(buckets);
        self.trim(MOST_BYTES);
    }

    /// The memory of the pooled trees, approximately, in bytes.
    pub fn memory(&self) -> usize {
        let buckets = self.buckets.borrow();
        let waiting = buckets.iter().flat_map(|b| &b.list);
        waiting.map(Executable::memory).sum()
    }

    /// If the trees take more than `most` bytes, frees the largest ones until half of that remains.
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

    /// Frees all trees after a change of the schema, and with them the references to dropped
    /// tables.
    #[cold]
    fn forget(&self) {
        self.buckets.borrow_mut().clear();
    }

    /// Takes an empty parameter buffer.
    pub fn params(&self) -> Params {
        self.params.borrow_mut().pop().unwrap_or_default()
    }

    /// Returns a parameter buffer to the pool.
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
        let operator_pool = OperatorPool::default();
        let (a, b) = (plan(), plan());
        let first = operator_pool.operators(&a, 1);
        let second = operator_pool.operators(&a, 1);
        operator_pool.give_operators(first, 1);
        operator_pool.give_operators(second, 1);
        assert!(Arc::ptr_eq(operator_pool.operators(&b, 1).plan(), &b));
        let again = operator_pool.operators(&a, 1);
        assert_eq!(Arc::strong_count(&a), 3, "none is made where one waits");
        operator_pool.give_operators(again, 1);
        assert_eq!(Arc::strong_count(&a), 3);
        let anew = operator_pool.operators(&a, 2);
        assert_eq!(Arc::strong_count(&a), 2, "older ones are gone");
        for _ in 0..PER_BUCKET {
            operator_pool.give_operators(Executable::new(a.clone()), 2);
        }
        operator_pool.give_operators(anew, 2);
        assert_eq!(Arc::strong_count(&a), 2 + PER_BUCKET / 2);
        operator_pool.give_operators(Executable::new(b.clone()), 1);
        assert_eq!(Arc::strong_count(&b), 1, "late ones are not kept");
    }

    #[test]
    fn operators_that_many_statements_used_at_once_go_again() {
        let (operator_pool, a) = (OperatorPool::default(), plan());
        let many: Vec<Executable> = (0..200).map(|_| operator_pool.operators(&a, 1)).collect();
        for operators in many {
            operator_pool.give_operators(operators, 1);
        }
        assert_eq!(Arc::strong_count(&a), 1 + 200, "all wait for the next use");
        for _ in 0..2 * LOOK_EVERY {
            let operators = operator_pool.operators(&a, 1);
            operator_pool.give_operators(operators, 1);
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
        let operator_pool = OperatorPool::default();
        let mut params = operator_pool.params();
        params.push(&nfold_types::Value::Int(7));
        operator_pool.give_params(params);
        let params = operator_pool.params();
        assert!(params.memory() > 0 && params.get(0).is_null());
    }
}
