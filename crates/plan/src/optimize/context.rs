//! The context in which a statement is optimized.

use std::cell::RefCell;
use std::ops::Deref;

use crate::logical::context::PlanCx;
use crate::logical::query as logical;
use crate::physical::QueryPlan;

/// A [`PlanCx`], to which it dereferences, and the plans of the queries whose rows are shared.
pub(super) struct OptimizeCx<'a> {
    plan: &'a PlanCx<'a>,
    shared: RefCell<Vec<(u32, QueryPlan)>>,
}

impl<'a> Deref for OptimizeCx<'a> {
    type Target = PlanCx<'a>;

    fn deref(&self) -> &PlanCx<'a> {
        self.plan
    }
}

impl<'a> OptimizeCx<'a> {
    pub fn new(plan: &'a PlanCx<'a>) -> OptimizeCx<'a> {
        OptimizeCx {
            plan,
            shared: RefCell::default(),
        }
    }

    /// The plan of the shared query `number`, which `plan` makes once.
    pub fn shared_plan(
        &self,
        number: u32,
        q: logical::Query,
        plan: impl FnOnce(&Self, logical::Query) -> QueryPlan,
    ) -> QueryPlan {
        let known = self.shared.borrow();
        if let Some((_, plan)) = known.iter().find(|(n, _)| *n == number) {
            return plan.clone();
        }
        drop(known);
        let made = plan(self, q);
        self.shared.borrow_mut().push((number, made.clone()));
        made
    }
}
