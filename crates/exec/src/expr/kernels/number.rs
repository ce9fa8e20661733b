//! Exact arithmetic over the columns of joined rows, a batch of rows at a time.
//!
//! # Picture
//! ```text
//!   SUM(a * (1 - b)), AVG(a)      v0 = a    v1 = 1    v2 = b    v3 = v1 - v2    v4 = v0 * v3
//!                                 the sums are those of v4 and v0
//! ```
//! Each node is a vector with one number for each row of the batch. Equal parts of several
//! expressions are one node.
//!
//! # Invariants
//! - N1: the vector of a node holds 64-bit numbers, unless one of them needs more: then all of them
//!   have 128 bits.
//! - N2: a row that needs more than 127 bits has no number, and neither do the nodes above. The
//!   evaluator computes its result.

use std::ops::Range;

use nfold_plan::expr::{ArithOp, Class, ColumnAt, Expr, ExprKind};
use nfold_types::Decimal;

use super::images::NumberColumn;
use super::threshold::{constant, is_exact_number};
use crate::env::batch::Batch;
use crate::expr::eval::{EvalCx, convert};

/// More digits behind the point than a DECIMAL has are rounded, which is left to the evaluator.
const MAX_SCALE: u8 = 30;

/// Expressions that compute sums, differences and products of columns and constants, compiled for
/// one execution.
#[derive(Debug, Default)]
pub(crate) struct NumberProgram {
    /// Operands stand before the nodes that use them.
    nodes: Vec<Node>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Node {
    Column(NumberColumn),
    Constant(i128),
    Negative(usize),
    /// A value with more digits behind the point: times a power of ten.
    Scaled(usize, i128),
    Arith(ArithOp, [usize; 2]),
}

/// A result of a program: unscaled integers with `scale` digits behind the point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Number {
    node: usize,
    pub scale: u8,
}

/// Finds the column of a joined row that an expression names; `None`: it is not read as a number.
pub(crate) type FindColumn<'f> = &'f dyn Fn(ColumnAt) -> Option<NumberColumn>;

impl NumberProgram {
    /// Whether an expression has the shape of a result. Columns and constants may still rule it
    /// out.
    pub fn is_possible(e: &Expr) -> bool {
        let integer = e.ty.class() == Class::Int && e.as_column().is_some();
        (integer || e.ty.class() == Class::Decimal) && is_number(e)
    }

    /// Adds the nodes of `e`; `None`: the evaluator computes it. `cx` sees no row.
    pub fn add<'a>(
        &mut self,
        cx: &EvalCx<'a>,
        column: FindColumn<'_>,
        e: &'a Expr,
    ) -> Option<Number> {
        let before = self.nodes.len();
        let possible = NumberProgram::is_possible(e);
        let number = possible.then(|| self.compile(cx, column, e)).flatten();
        if number.is_none() {
            self.nodes.truncate(before);
        }
        number
    }

    /// Whether it has no result.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Computes all nodes for the rows of `batch`.
    pub fn run(&self, batch: &Batch, vectors: &mut Vectors) {
        let all = &mut vectors.0;
        all.resize_with(self.nodes.len(), Vector::default);
        for (n, node) in self.nodes.iter().enumerate() {
            let (operands, rest) = all.split_at_mut(n);
            let out = &mut rest[0];
            out.clear();
            match *node {
                Node::Column(column) => out.load(column, batch),
                Node::Constant(v) => out.fill(v, batch.len()),
                Node::Negative(a) => {
                    out.map(&operands[a], i64::checked_neg, |v| v.checked_neg());
                }
                Node::Scaled(a, unit) => {
                    let narrow = |v: i64| v.checked_mul(i64::try_from(unit).ok()?);
                    out.map(&operands[a], narrow, |v| v.checked_mul(unit));
                }
                Node::Arith(op, [a, b]) => {
                    let (a, b) = (&operands[a], &operands[b]);
                    match op {
                        ArithOp::Add => out.combine(a, b, i64::checked_add, i128::checked_add),
                        ArithOp::Sub => out.combine(a, b, i64::checked_sub, i128::checked_sub),
                        _ => out.combine(a, b, i64::checked_mul, i128::checked_mul),
                    }
                }
            }
        }
    }

    /// The place of a node, which is added if there is no equal one.
    fn node(&mut self, node: Node) -> usize {
        let known = self.nodes.iter().position(|n| *n == node);
        known.unwrap_or_else(|| {
            self.nodes.push(node);
            self.nodes.len() - 1
        })
    }

    /// Adds the nodes of an expression of such a shape.
    fn compile<'a>(
        &mut self,
        cx: &EvalCx<'a>,
        column: FindColumn<'_>,
        e: &'a Expr,
    ) -> Option<Number> {
        match &e.kind {
            ExprKind::Column(at) => {
                let column = column(*at)?;
                let scale = column.scale()?;
                let node = self.node(Node::Column(column));
                Some(Number { node, scale })
            }
            ExprKind::Neg(inner) => {
                let Number { node, scale } = self.compile(cx, column, inner)?;
                let node = self.node(Node::Negative(node));
                Some(Number { node, scale })
            }
            ExprKind::Arith(op, sides) => {
                let a = self.compile(cx, column, &sides[0])?;
                let b = self.compile(cx, column, &sides[1])?;
                if *op == ArithOp::Mul {
                    let scale = a.scale.checked_add(b.scale);
                    let scale = scale.filter(|s| *s <= MAX_SCALE)?;
                    let node = self.node(Node::Arith(*op, [a.node, b.node]));
                    return Some(Number { node, scale });
                }
                let scale = a.scale.max(b.scale);
                let sides = [self.scaled(a, scale)?, self.scaled(b, scale)?];
                let node = self.node(Node::Arith(*op, sides));
                Some(Number { node, scale })
            }
            _ => {
                let v = constant(cx, e).filter(is_exact_number)?;
                let number: Decimal = convert::to_decimal(cx, &v, &e.ty)?;
                let (unscaled, _) = number.floor_unscaled(number.scale())?;
                let node = self.node(Node::Constant(unscaled));
                let scale = number.scale();
                Some(Number { node, scale })
            }
        }
    }

    /// The node of a number with `scale` digits behind the point.
    fn scaled(&mut self, number: Number, scale: u8) -> Option<usize> {
        match scale - number.scale {
            0 => Some(number.node),
            digits => {
                let unit = 10i128.checked_pow(digits.into())?;
                Some(self.node(Node::Scaled(number.node, unit)))
            }
        }
    }
}

/// Whether `e` is built of columns of exact numbers, constants, and sums, differences and products
/// of class DECIMAL. (Those of integers have errors of their own.)
fn is_number(e: &Expr) -> bool {
    let class = e.ty.class();
    match &e.kind {
        ExprKind::Column(_) | ExprKind::Const(_) | ExprKind::Param(_) => {
            matches!(class, Class::Int | Class::Decimal)
        }
        ExprKind::Neg(inner) => class == Class::Decimal && is_number(inner),
        ExprKind::Arith(ArithOp::Add | ArithOp::Sub | ArithOp::Mul, sides) => {
            class == Class::Decimal && sides.iter().all(is_number)
        }
        _ => false,
    }
}

/// Numbers of several rows, summed: an unscaled integer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PartialSum {
    pub unscaled: i128,
    /// Rows that have a number.
    pub rows: u64,
}

impl PartialSum {
    /// False: the sum would need more than 127 bits, and stays as it is.
    #[inline]
    fn add(&mut self, v: i128) -> bool {
        let sum = self.unscaled.checked_add(v);
        if let Some(sum) = sum {
            self.unscaled = sum;
            self.rows += 1;
        }
        sum.is_some()
    }
}

/// The numbers of a batch: one vector for each node of a program. The memory is used again.
#[derive(Debug, Default)]
pub(crate) struct Vectors(Vec<Vector>);

impl Vectors {
    /// The sum of the numbers of some rows. A row that does not fit is marked as missing.
    pub fn sum(&mut self, number: Number, rows: Range<usize>) -> PartialSum {
        let mut sum = PartialSum::default();
        self.0[number.node].each(rows, |_, v| sum.add(v));
        sum
    }

    /// Adds the numbers of some rows to the sums of their groups: those of the first group have
    /// place `first`, each next group's are `width` places behind. `groups` are those of the rows
    /// from the first of the batch on.
    pub fn add_to(
        &mut self,
        number: Number,
        rows: Range<usize>,
        groups: &[u32],
        (sums, first, width): (&mut [PartialSum], usize, usize),
    ) {
        self.0[number.node].each(rows, |row, v| match groups[row] {
            NO_GROUP => true,
            group => sums[first + group as usize * width].add(v),
        });
    }

    /// Whether some row's number is missing, because it has too many bits.
    pub fn has_missing(&self, number: Number) -> bool {
        self.0[number.node].has_missing
    }

    /// Whether a row's number is missing.
    pub fn is_missing(&self, number: Number, row: usize) -> bool {
        self.0[number.node].state(row) == State::Missing
    }
}

/// The group of a row that is already in its aggregates.
pub(crate) const NO_GROUP: u32 = u32::MAX;

/// Whether a row has a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Number,
    Null,
    /// N2
    Missing,
}

#[derive(Debug, Default)]
struct Vector {
    /// 0 for rows without a number.
    narrow: Vec<i64>,
    /// In place of `narrow` where 64 bits are too few (N1).
    wide: Vec<i128>,
    is_wide: bool,
    /// Empty: each row has a number.
    states: Vec<State>,
    has_missing: bool,
}

impl Vector {
    fn clear(&mut self) {
        self.narrow.clear();
        self.wide.clear();
        self.states.clear();
        (self.is_wide, self.has_missing) = (false, false);
    }

    fn len(&self) -> usize {
        match self.is_wide {
            true => self.wide.len(),
            false => self.narrow.len(),
        }
    }

    fn state(&self, row: usize) -> State {
        self.states.get(row).copied().unwrap_or(State::Number)
    }

    fn set_state(&mut self, rows: usize, row: usize, state: State) {
        if self.states.is_empty() {
            self.states.resize(rows, State::Number);
        }
        self.states[row] = state;
        self.has_missing |= state == State::Missing;
    }

    fn at(&self, row: usize) -> i128 {
        match self.is_wide {
            true => self.wide[row],
            false => self.narrow[row].into(),
        }
    }

    fn load(&mut self, column: NumberColumn, batch: &Batch) {
        let rows = batch.len();
        for row in 0..rows {
            let number = match column.number(batch, row) {
                Some(number) => number,
                None => {
                    self.set_state(rows, row, State::Null);
                    0
                }
            };
            match i64::try_from(number) {
                Ok(narrow) if !self.is_wide => self.narrow.push(narrow),
                _ => {
                    self.widen();
                    self.wide.push(number);
                }
            }
        }
    }

    fn widen(&mut self) {
        if !self.is_wide {
            self.wide.extend(self.narrow.iter().map(|&v| i128::from(v)));
            self.is_wide = true;
        }
    }

    fn fill(&mut self, v: i128, rows: usize) {
        match i64::try_from(v) {
            Ok(narrow) => self.narrow.resize(rows, narrow),
            Err(_) => {
                self.is_wide = true;
                self.wide.resize(rows, v);
            }
        }
    }

    fn map(
        &mut self,
        a: &Vector,
        narrow: impl Fn(i64) -> Option<i64>,
        wide: impl Fn(i128) -> Option<i128>,
    ) {
        self.combine(a, a, |v, _| narrow(v), |v, _| wide(v));
    }

    /// Computes each number from those of `a` and `b` in the same row.
    fn combine(
        &mut self,
        a: &Vector,
        b: &Vector,
        narrow: impl Fn(i64, i64) -> Option<i64>,
        wide: impl Fn(i128, i128) -> Option<i128>,
    ) {
        let rows = a.len();
        for operand in [a, b] {
            for (row, state) in operand.states.iter().enumerate() {
                // NULL beside a missing number is NULL.
                if *state != State::Number && self.state(row) != State::Null {
                    self.set_state(rows, row, *state);
                }
            }
        }
        if !a.is_wide && !b.is_wide {
            let mut fits = true;
            let pairs = a.narrow.iter().zip(&b.narrow);
            self.narrow.extend(pairs.map(|(&x, &y)| {
                let v = narrow(x, y);
                fits &= v.is_some();
                v.unwrap_or(0)
            }));
            if fits {
                return;
            }
            self.narrow.clear();
        }
        self.is_wide = true;
        for row in 0..rows {
            let v = match self.state(row) {
                State::Number => wide(a.at(row), b.at(row)),
                State::Null | State::Missing => Some(0),
            };
            if v.is_none() {
                self.set_state(rows, row, State::Missing);
            }
            self.wide.push(v.unwrap_or(0));
        }
    }

    /// Calls `f` with the number of each row that has one; where `f` refuses it, it is missing.
    fn each(&mut self, rows: Range<usize>, mut f: impl FnMut(usize, i128) -> bool) {
        let count = self.len();
        if self.states.is_empty() && !self.is_wide {
            let numbers = &self.narrow[rows.clone()];
            let mut refused = Vec::new();
            for (row, &v) in rows.zip(numbers) {
                if !f(row, v.into()) {
                    refused.push(row);
                }
            }
            for row in refused {
                self.set_state(count, row, State::Missing);
            }
            return;
        }
        for row in rows {
            if self.state(row) == State::Number && !f(row, self.at(row)) {
                self.set_state(count, row, State::Missing);
            }
        }
    }
}

#[cfg(test)]
#[path = "number_tests.rs"]
mod tests;
