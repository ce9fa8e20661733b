//! Window functions, grouped into passes. The calls of one pass read the rows in one order.

use std::sync::Arc;

use super::clauses::{AggFunc, OrderKey};
use super::expr::Expr;
use super::types::{CmpKind, ExprType};

/// Window functions computed over rows in one order.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowPass {
    pub partition: Vec<Expr>,
    /// The order within a partition: the longest ORDER BY of the calls. The orders of the other
    /// calls are prefixes of it.
    pub order: Vec<OrderKey>,
    /// The columns of the pass's row slot.
    pub calls: Vec<WindowCall>,
}

/// A call of a window function.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowCall {
    pub func: WindowFunc,
    /// The arguments, over each row. The second argument of LEAD and LAG is the default value
    /// outside the partition.
    pub args: Vec<Expr>,
    /// The N of NTILE, LEAD, LAG and NTH_VALUE: a constant, a parameter or a user variable.
    pub number: Option<Expr>,
    /// The length of the call's own ORDER BY, as a prefix of the pass's order. Rows that are equal
    /// in this prefix are peers.
    pub order: usize,
    pub frame: WindowFrame,
    pub ty: ExprType,
    /// The name of its window in error messages.
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
    /// The function's name in lower case.
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

/// The frame: for each row, the rows of its partition that the function reads.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowFrame {
    pub start: FrameBound,
    pub end: FrameBound,
}

#[derive(Debug, Clone, PartialEq)]
pub enum FrameBound {
    /// The partition's first or last row.
    Unbounded,
    /// The current row.
    CurrentRow,
    /// The first or the last peer of the current row.
    Peers,
    /// The row `amount` rows before or after the current row. `amount` is a constant or a
    /// parameter.
    Rows { amount: Expr, following: bool },
    /// RANGE with an offset: the first or the last row that is not beyond `value`, which is the
    /// current row's value of the first order member moved by `amount`.
    Value {
        value: Expr,
        amount: Expr,
        kind: CmpKind,
    },
}

impl WindowPass {
    /// Calls `f` with each expression of the pass: those over its input rows, and constants.
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
