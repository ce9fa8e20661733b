//! The texts of a plan's expressions, and the numbers of its query blocks.

use nfold_plan::expr::Expr;
use nfold_plan::query::{
    Aggregate, Block, OrderKey, Plan, QueryBody, QueryPlan, SubqueryPlan, TableSource,
};
use rustc_hash::FxHashMap;

use crate::expr::eval::{EvalCx, Scope, StmtState};
use crate::expr::print::Printer;
use crate::expr::print::names::QueryNames;

/// The numbers of query blocks, in the order in which FORMAT=TRADITIONAL shows them.
#[derive(Debug, Default)]
pub(super) struct SelectNumbers {
    by_query: FxHashMap<usize, u32>,
    next: u32,
}

impl SelectNumbers {
    pub fn of(plan: &Plan) -> SelectNumbers {
        let mut numbers = SelectNumbers::default();
        match plan {
            Plan::Query(q) => numbers.query(q),
            Plan::Insert(p) => {
                use nfold_plan::query::InsertSource;
                if let InsertSource::Query(q) = &p.source {
                    numbers.query(q);
                }
            }
            Plan::Update(p) => numbers.first_block(&p.source),
            Plan::Delete(p) => numbers.first_block(&p.source),
            Plan::UpdateTables(p) => numbers.first_block(&p.source),
            Plan::DeleteTables(p) => numbers.first_block(&p.source),
            Plan::Do(..) | Plan::Explain(_) => {}
        }
        numbers
    }

    /// The number of a query's first block.
    pub fn get(&self, q: &QueryPlan) -> u32 {
        let number = self.by_query.get(&std::ptr::from_ref(q).addr());
        number.copied().unwrap_or(1)
    }

    /// The number of the last block.
    pub fn last(&self) -> u32 {
        self.next
    }

    fn first_block(&mut self, b: &Block) {
        self.next += 1;
        self.block(b);
    }

    fn query(&mut self, q: &QueryPlan) {
        let address = std::ptr::from_ref(q).addr();
        self.by_query.insert(address, self.next + 1);
        match &q.body {
            QueryBody::Block(b) => self.first_block(b),
            QueryBody::Set { left, right, .. } => {
                self.query(left);
                self.query(right);
            }
            QueryBody::Recursive(r) => r.queries().for_each(|q| self.query(q)),
            QueryBody::Rows(_) | QueryBody::Working(_) => self.next += 1,
        }
    }

    fn block(&mut self, b: &Block) {
        for slot in &b.tables {
            if let TableSource::Derived(q) = &slot.source
                && !matches!(q.body, QueryBody::Working(_))
            {
                self.query(q);
            }
        }
        for sub in &b.subqueries {
            self.query(&sub.plan);
        }
    }
}

/// A name as FORMAT=TREE prints it: quoted only where it must be.
pub(super) fn short_name(name: &str) -> String {
    crate::expr::print::names::short_name(name).into_owned()
}

/// The texts of expressions of one block.
#[derive(Clone, Copy)]
pub(super) struct Texts<'p> {
    pub state: &'p StmtState<'p>,
    pub numbers: &'p SelectNumbers,
    /// The rows of the enclosing queries, innermost last.
    pub outer: &'p [Scope<'p>],
}

impl Texts<'_> {
    fn with<T>(&self, f: impl FnOnce(&Printer<'_>) -> T) -> T {
        self.with_names(true, f)
    }

    /// Conditions that must all hold, with the full names of columns.
    pub fn full(&self, list: &[&Expr], scope: Scope<'_>) -> String {
        self.with_names(false, |p| p.all_of(list, scope))
    }

    fn with_names<T>(&self, short: bool, f: impl FnOnce(&Printer<'_>) -> T) -> T {
        let subquery = |sub: &SubqueryPlan| format!("select #{}", self.numbers.get(&sub.plan));
        let names = QueryNames {
            outer: self.outer,
            subquery: &subquery,
            short,
        };
        let cx = EvalCx {
            rows: &[],
            outer: &[],
            st: self.state,
        };
        f(&Printer::with_names(cx, &names))
    }

    pub fn expr(&self, e: &Expr, scope: Scope<'_>) -> String {
        self.with(|p| p.expr(e, scope))
    }

    pub fn exprs(&self, list: &[Expr], scope: Scope<'_>) -> String {
        self.with(|p| p.exprs(list, ", ", scope))
    }

    /// Conditions that must all hold.
    pub fn all_of(&self, list: &[&Expr], scope: Scope<'_>) -> String {
        self.with(|p| p.all_of(list, scope))
    }

    pub fn order(&self, keys: &[OrderKey], scope: Scope<'_>) -> String {
        self.with(|p| p.order(keys, scope))
    }

    pub fn aggregates(&self, list: &[Aggregate], block: &Block) -> Vec<String> {
        self.with(|p| list.iter().map(|a| p.call(a, block)).collect())
    }

    pub fn window_call(&self, block: &Block, pass: usize, n: usize, scope: Scope<'_>) -> String {
        self.with(|p| p.window_call(block, pass, n, scope))
    }

    /// The values of list parameter `list`, of which each row has a number of columns.
    pub fn list(&self, list: u32, column: &Expr) -> Vec<Vec<String>> {
        self.with(|p| p.list_rows(list, column))
    }
}
