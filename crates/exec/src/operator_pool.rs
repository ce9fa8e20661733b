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
//! up the memory of all trees, and frees the largest ones beyond [`MOST_BYTES`]. A tree's operators
//! and expressions take about as much as its plan, which the tree also keeps alive, so the pool
//! bounds the sum of the plans' sizes as well, at each return.

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
/// The maximum memory of all pooled trees, in bytes. Their buffers may exceed it between two
/// checks, their plans may not.
const MOST_BYTES: usize = 32 << 20;

/// A pooled tree, and the memory of its plan in bytes.
struct Pooled {
    operators: Executable,
    plan_bytes: usize,
}

impl Pooled {
    /// The approximate memory of the tree, its plan included, in bytes.
    fn memory(&self) -> usize {
        self.operators.memory() + self.plan_bytes
    }
}

/// The pooled trees of one bucket, most recently used last.
#[derive(Default)]
struct Bucket {
    list: Vec<Pooled>,
    /// The least length of `list` since the last check: the first `unused` trees were not used.
    unused: usize,
}

impl Bucket {
    fn take(&mut self, plan: &Arc<Plan>) -> Option<Pooled> {
        let at = self
            .list
            .iter()
            .rposition(|e| Arc::ptr_eq(e.operators.plan(), plan))?;
        let pooled = self.list.remove(at);
        self.unused = self.unused.min(self.list.len());
        Some(pooled)
    }

    /// If the bucket is full, its oldest trees are freed. Returns the bytes of their plans.
    fn give(&mut self, pooled: Pooled) -> usize {
        let freed = match self.list.len() {
            PER_BUCKET.. => self.free_oldest(PER_BUCKET / 2),
            _ => 0,
        };
        self.list.push(pooled);
        freed
    }

    /// Frees the trees that were not used since the last check, except for [`ALWAYS_KEPT`]. Returns
    /// the bytes of their plans.
    fn drop_unused(&mut self) -> usize {
        let freed = self.free_oldest(self.unused.saturating_sub(ALWAYS_KEPT));
        self.unused = self.list.len();
        freed
    }

    fn free_oldest(&mut self, count: usize) -> usize {
        self.list.drain(..count).map(|p| p.plan_bytes).sum()
    }
}

/// See the module's header.
#[derive(Default)]
pub struct OperatorPool {
    buckets: RefCell<Vec<Bucket>>,
    /// The sum of the pooled trees' `plan_bytes`.
    plan_bytes: Cell<usize>,
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
        match buckets.get_mut(bucket(plan)).and_then(|b| b.take(plan)) {
            Some(pooled) => {
                self.forget_plan_bytes(pooled.plan_bytes);
                pooled.operators
            }
            None => Executable::new(plan.clone()),
        }
    }

    #[inline]
    fn forget_plan_bytes(&self, freed: usize) {
        self.plan_bytes.set(self.plan_bytes.get() - freed);
    }

    /// Returns a tree to the pool. Its plan takes `plan_bytes` and is of this schema version.
    #[inline]
    pub fn give_operators(&self, operators: Executable, plan_bytes: usize, schema_version: u64) {
        if self.schema_version.get() != schema_version {
            return; // the schema changed while they ran: no statement can use them
        }
        let mut buckets = self.buckets.borrow_mut();
        if buckets.is_empty() {
            buckets.resize_with(BUCKETS, Bucket::default);
        }
        let pooled = Pooled {
            operators,
            plan_bytes,
        };
        let freed = buckets[bucket(pooled.operators.plan())].give(pooled);
        let sum = self.plan_bytes.get() + plan_bytes - freed;
        self.plan_bytes.set(sum);
        let given = self.given.get().wrapping_add(1);
        self.given.set(given);
        if given.is_multiple_of(LOOK_EVERY) || sum > MOST_BYTES {
            drop(buckets);
            self.drop_unused();
        }
    }

    #[cold]
    fn drop_unused(&self) {
        let mut buckets = self.buckets.borrow_mut();
        let freed = buckets.iter_mut().map(Bucket::drop_unused).sum();
        self.forget_plan_bytes(freed);
        drop(buckets);
        self.trim(MOST_BYTES);
    }

    /// The memory of the pooled trees and their plans, approximately, in bytes.
    pub fn memory(&self) -> usize {
        let buckets = self.buckets.borrow();
        let waiting = buckets.iter().flat_map(|b| &b.list);
        waiting.map(Pooled::memory).sum()
    }

    /// If the trees take more than `most` bytes, frees the largest ones until half of that remains.
    fn trim(&self, most: usize) {
        if self.memory() <= most {
            return;
        }
        let mut buckets = self.buckets.borrow_mut();
        let waiting = buckets.iter().flat_map(|b| &b.list);
        let mut sizes: Vec<usize> = waiting.map(Pooled::memory).collect();
        let largest = largest_kept(&mut sizes, most / 2);
        let mut left = 0;
        for bucket in &mut *buckets {
            bucket.list.retain(|pooled| pooled.memory() <= largest);
            bucket.unused = bucket.unused.min(bucket.list.len());
            left += bucket.list.iter().map(|p| p.plan_bytes).sum::<usize>();
        }
        self.plan_bytes.set(left);
    }

    /// Frees all trees after a change of the schema, and with them the references to dropped
    /// tables.
    #[cold]
    fn forget(&self) {
        self.buckets.borrow_mut().clear();
        self.plan_bytes.set(0);
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
        operator_pool.give_operators(first, 0, 1);
        operator_pool.give_operators(second, 0, 1);
        assert!(Arc::ptr_eq(operator_pool.operators(&b, 1).plan(), &b));
        let again = operator_pool.operators(&a, 1);
        assert_eq!(Arc::strong_count(&a), 3, "none is made where one waits");
        operator_pool.give_operators(again, 0, 1);
        assert_eq!(Arc::strong_count(&a), 3);
        let anew = operator_pool.operators(&a, 2);
        assert_eq!(Arc::strong_count(&a), 2, "older ones are gone");
        for _ in 0..PER_BUCKET {
            operator_pool.give_operators(Executable::new(a.clone()), 0, 2);
        }
        operator_pool.give_operators(anew, 0, 2);
        assert_eq!(Arc::strong_count(&a), 2 + PER_BUCKET / 2);
        operator_pool.give_operators(Executable::new(b.clone()), 0, 1);
        assert_eq!(Arc::strong_count(&b), 1, "late ones are not kept");
    }

    #[test]
    fn operators_that_many_statements_used_at_once_go_again() {
        let (operator_pool, a) = (OperatorPool::default(), plan());
        let many: Vec<Executable> = (0..200).map(|_| operator_pool.operators(&a, 1)).collect();
        for operators in many {
            operator_pool.give_operators(operators, 0, 1);
        }
        assert_eq!(Arc::strong_count(&a), 1 + 200, "all wait for the next use");
        for _ in 0..2 * LOOK_EVERY {
            let operators = operator_pool.operators(&a, 1);
            operator_pool.give_operators(operators, 0, 1);
        }
        assert_eq!(Arc::strong_count(&a), 1 + ALWAYS_KEPT + 1);
    }

    #[test]
    fn sum_of_pooled_plans_is_bounded() {
        let operator_pool = OperatorPool::default();
        const LARGE: usize = 1 << 20;
        let small = plan();
        let first = operator_pool.operators(&small, 1);
        operator_pool.give_operators(first, 1000, 1);
        let mut plans = Vec::new();
        for _ in 0..3 * MOST_BYTES / LARGE + 5 {
            let large = plan();
            operator_pool.give_operators(Executable::new(large.clone()), LARGE, 1);
            plans.push(large);
            assert!(operator_pool.memory() <= MOST_BYTES);
        }
        let pooled = plans.iter().filter(|p| Arc::strong_count(p) > 1).count();
        assert!(0 < pooled && pooled <= MOST_BYTES / LARGE);
        assert_eq!(Arc::strong_count(&small), 2, "the small tree stays");
        for large in &plans {
            operator_pool.operators(large, 1);
        }
        operator_pool.operators(&small, 1);
        assert_eq!(operator_pool.plan_bytes.get(), 0);
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
