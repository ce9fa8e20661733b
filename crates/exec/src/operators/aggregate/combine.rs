//! Aggregates over changing sets of rows: copies and merges states, and removes values from them.

use std::ops::ControlFlow;

use nfold_plan::query::{AggFunc, Aggregate};
use nfold_types::{Decimal, SqlError};

use super::{Acc, AggInfo, State, bit_op, bits, convert, extreme, sum_overflow};
use crate::expr::eval::{EvalCx, Val};

impl Acc {
    /// Copies the state. Not for DISTINCT and GROUP_CONCAT.
    pub fn copy(&self) -> Acc {
        let state = match &self.state {
            State::Count(n) => State::Count(*n),
            State::SumInt { sum, count } => State::SumInt {
                sum: *sum,
                count: *count,
            },
            State::SumDecimal { sum, count } => State::SumDecimal {
                sum: *sum,
                count: *count,
            },
            State::SumDouble { sum, count } => State::SumDouble {
                sum: *sum,
                count: *count,
            },
            State::Extreme(best) => State::Extreme(best.clone()),
            State::Bits(bits) => State::Bits(*bits),
            State::BitText(text) => State::BitText(text.clone()),
            State::Spread { n, mean, m2 } => State::Spread {
                n: *n,
                mean: *mean,
                m2: *m2,
            },
            State::Array(elements) => State::Array(elements.clone()),
            State::Object(members) => State::Object(members.clone()),
            State::Concat { .. } | State::ConcatOrdered(_) => State::Count(0),
        };
        Acc {
            state,
            seen: None,
            bytes: 0,
            seen_bytes: 0,
            deferred: 0,
        }
    }

    /// Whether [`take_out`](Self::take_out) leaves exactly the state that the remaining values
    /// alone would produce.
    pub fn is_invertible(&self, func: AggFunc) -> bool {
        match self.state {
            State::Count(_) | State::SumInt { .. } | State::SumDecimal { .. } => true,
            State::Bits(_) => func == AggFunc::BitXor,
            _ => false,
        }
    }

    /// Whether the result is independent of the order in which values are combined.
    pub fn is_exact(&self) -> bool {
        !matches!(
            self.state,
            State::SumDouble { .. } | State::Spread { .. } | State::Array(_) | State::Object(_)
        )
    }

    /// Removes a row that was added before.
    ///
    /// # Errors
    /// 1690. (Adding the row has not failed.)
    pub fn take_out(
        &mut self,
        cx: &EvalCx<'_>,
        info: &AggInfo<'_>,
        values: &[Val<'_>],
    ) -> Result<(), SqlError> {
        let plan = info.plan;
        if plan.func != AggFunc::CountStar && values.iter().any(Val::is_null) {
            return Ok(());
        }
        let number = |v: &Val<'_>| convert::to_integer(cx, v, &plan.args[0].ty).unwrap_or(0);
        match &mut self.state {
            State::Count(n) => *n -= 1,
            State::SumInt { sum, count } => {
                *sum -= number(&values[0]);
                *count -= 1;
            }
            State::SumDecimal { sum, count } => {
                let v = convert::to_decimal(cx, &values[0], &plan.args[0].ty);
                let v = v.unwrap_or(Decimal::from(0i64));
                *sum = sum.sub(&v).ok_or_else(sum_overflow)?;
                *count -= 1;
            }
            State::Bits(bits) => *bits ^= number(&values[0]) as u64,
            _ => debug_assert!(false, "`is_invertible` excludes them"),
        }
        Ok(())
    }

    /// Merges the state of `other`, whose rows follow those of this one.
    ///
    /// # Errors
    /// 1690 for a sum, 3513 for binary strings of different lengths.
    pub fn join(&mut self, cx: &EvalCx<'_>, plan: &Aggregate, other: &Acc) -> Result<(), SqlError> {
        match (&mut self.state, &other.state) {
            (State::Count(a), State::Count(b)) => *a += b,
            (State::SumInt { sum, count }, State::SumInt { sum: s, count: c }) => {
                *sum += s;
                *count += c;
            }
            (State::SumDecimal { sum, count }, State::SumDecimal { sum: s, count: c }) => {
                *sum = sum.add(s).ok_or_else(sum_overflow)?;
                *count += c;
            }
            (State::SumDouble { sum, count }, State::SumDouble { sum: s, count: c }) => {
                *sum += s;
                *count += c;
            }
            (State::Extreme(best), State::Extreme(Some(v))) => {
                extreme(cx, plan, best, &Val::from_ref(v.as_ref()));
            }
            (State::Bits(a), State::Bits(b)) => match plan.func {
                AggFunc::BitAnd => *a &= b,
                AggFunc::BitOr => *a |= b,
                _ => *a ^= b,
            },
            (State::BitText(a), State::BitText(Some(b))) => {
                *a = Some(match a {
                    None => b.clone(),
                    Some(a) => bits::joined(bit_op(plan.func), a, b)?,
                });
            }
            (State::Array(a), State::Array(b)) => a.extend_from_slice(b),
            (State::Object(a), State::Object(b)) => a.extend_from_slice(b),
            (State::Spread { .. }, State::Spread { .. }) => {
                let _ = self.join_spread(other);
            }
            _ => {}
        }
        Ok(())
    }

    /// Merges variances (Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for
    /// computing sample variances", 1979).
    fn join_spread(&mut self, other: &Acc) -> ControlFlow<()> {
        let (
            State::Spread { n, mean, m2 },
            State::Spread {
                n: k,
                mean: m,
                m2: s,
            },
        ) = (&mut self.state, &other.state)
        else {
            return ControlFlow::Break(());
        };
        if *k == 0 {
            return ControlFlow::Break(());
        }
        let (a, b) = (*n as f64, *k as f64);
        let delta = m - *mean;
        *mean += delta * b / (a + b);
        *m2 += s + delta * delta * a * b / (a + b);
        *n += k;
        ControlFlow::Continue(())
    }
}
