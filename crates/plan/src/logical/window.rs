//! Window functions, grouped into passes: the calls of one pass read the rows in one order.

use std::sync::Arc;

use super::clauses::{AggFunc, OrderKey};
use super::expr::Expr;
use super::types::{CmpKind, ExprType};

/// Window functions that are computed over rows in one order.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowPass {
    pub partition: Vec<Expr>,
    /// Within a partition: the longest order of those that the calls ask for, the beginnings of
    /// which are the others.
    pub order: Vec<OrderKey>,
    /// The columns of the pass's row slot.
    pub calls: Vec<WindowCall>,
}

/// A call of a window function.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowCall {
    pub func: WindowFunc,
    /// What is looked at of each row; the second one of LEAD and LAG is what they give beyond the
    /// partition.
    pub args: Vec<Expr>,
    /// N of NTILE, LEAD, LAG and NTH_VALUE: a constant, a parameter or a user variable.
    pub number: Option<Expr>,
    /// By how many members of the pass's order rows are peers or not.
    pub order: usize,
    pub frame: WindowFrame,
    pub ty: ExprType,
    /// What its window is called in error messages.
    pub window: Arc<str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowFunc {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    Ntile,
    Lead,
    Lag,
    FirstValue,
    LastValue,
    NthValue,
    Aggregate(AggFunc),
}

impl WindowFunc {
    /// Its name in lower case.
    pub fn name(self) -> &'static str {
        match self {
            WindowFunc::RowNumber => "row_number",
            WindowFunc::Rank => "rank",
            WindowFunc::DenseRank => "dense_rank",
            WindowFunc::PercentRank => "percent_rank",
            WindowFunc::CumeDist => "cume_dist",
            WindowFunc::Ntile => "ntile",
            WindowFunc::Lead => "lead",
            WindowFunc::Lag => "lag",
            WindowFunc::FirstValue => "first_value",
            WindowFunc::LastValue => "last_value",
            WindowFunc::NthValue => "nth_value",
            WindowFunc::Aggregate(_) => "aggregate",
        }
    }
}

/// The rows of a partition that a function looks at, for each row.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowFrame {
    pub start: FrameBound,
    pub end: FrameBound,
}

#[derive(Debug, Clone, PartialEq)]
pub enum FrameBound {
    /// The partition's first or last row.
    Unbounded,
    /// The row itself.
    CurrentRow,
    /// The first or last of the rows that the order does not tell from this one.
    Peers,
    /// So many rows before or behind it; a constant or a parameter.
    Rows { amount: Expr, following: bool },
    /// The first or last row that is not beyond `value`, which differs from the row's own by
    /// `amount`, as the pass's first order member compares.
    Value {
        value: Expr,
        amount: Expr,
        kind: CmpKind,
    },
}

impl WindowPass {
    /// Calls `f` on each expression over the rows that come in, and on constants.
    pub fn each_expr<'e>(&'e self, f: &mut dyn FnMut(&'e Expr)) {
        self.partition.iter().for_each(&mut *f);
        self.order.iter().for_each(|k| f(&k.expr));
        for call in &self.calls {
            call.args.iter().chain(&call.number).for_each(&mut *f);
            for bound in [&call.frame.start, &call.frame.end] {
                match bound {
                    FrameBound::Rows { amount, .. } => f(amount),
                    FrameBound::Value { value, amount, .. } => {
                        f(value);
                        f(amount);
                    }
                    _ => {}
                }
            }
        }
    }

    /// As [`each_expr`](Self::each_expr), mutably.
    pub fn each_expr_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        self.partition.iter_mut().for_each(&mut *f);
        self.order.iter_mut().for_each(|k| f(&mut k.expr));
        for call in &mut self.calls {
            call.args.iter_mut().for_each(&mut *f);
            call.number.iter_mut().for_each(&mut *f);
            for bound in [&mut call.frame.start, &mut call.frame.end] {
                match bound {
                    FrameBound::Rows { amount, .. } => f(amount),
                    FrameBound::Value { value, amount, .. } => {
                        f(value);
                        f(amount);
                    }
                    _ => {}
                }
            }
        }
    }
}
