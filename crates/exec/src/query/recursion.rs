//! Recursive common table expressions, evaluated round by round.
//!
//! # Picture
//! ```text
//!   seed ──▶ rows ──▶ result
//!             │
//!             ▼ rows that are new to a step (`Working`)
//!           step ──▶ rows ──▶ result        ... until no step returns a row
//! ```

use nfold_plan::query::Recursion;
use nfold_types::row::RowLayout;
use nfold_types::{ErrorCode, SqlError, Value};
use smallvec::SmallVec;

use super::CachedQuery;
use crate::expr::eval::tuple;
use crate::expr::eval::tuple::KeyMaker;
use crate::expr::eval::{EvalCx, RowRef, Val};
use crate::operators::column_values::ColumnValues;
use crate::operators::distinct::Distinct;
use crate::operators::row_out::RowOut;
use crate::runtime::Runtime;
use crate::runtime::spill::Spool;
use nfold_plan::expr::Expr;

/// Consumes the rows of the seed and the steps.
struct Rounds<'o, 's> {
    rt: &'o Runtime<'s>,
    plan: &'o Recursion,
    layout: &'o RowLayout,
    unique: &'o KeyMaker,
    values: ColumnValues,
    seen: Option<Distinct>,
    /// For each step, the rows that it has not read yet.
    next: Vec<UnreadRows>,
    /// Whether the consumer wants more rows.
    more: bool,
    image: &'o mut Vec<u8>,
    rows: &'o mut dyn FnMut(&[u8]) -> Result<bool, SqlError>,
}

impl RowOut for Rounds<'_, '_> {
    fn row<'a>(&mut self, cx: &EvalCx<'a>, select: &'a [Expr]) -> Result<bool, SqlError> {
        let mut stored: SmallVec<[Value; 4]> = SmallVec::new();
        for (e, column) in select.iter().zip(&self.plan.columns) {
            let value = cx.val(e)?;
            // A value that does not fit is an error in strict mode, and otherwise truncated without
            // a warning.
            let warnings = self.rt.warnings.take();
            let value = self.values.store(cx, column, value, &e.ty, 1);
            self.rt.warnings.replace(warnings);
            stored.push(value?);
        }
        let values: SmallVec<[Val<'_>; 4]> =
            stored.iter().map(|v| Val::from_ref(v.as_ref())).collect();
        if let Some(seen) = &mut self.seen
            && !seen.is_new(
                self.rt,
                |key| self.unique.push_all(&values, key),
                |_| Ok(()),
            )?
        {
            if seen.has_rest() {
                return Err(SqlError::not_supported(
                    "recursive common table expressions with more different rows than fit in memory",
                ));
            }
            return Ok(true);
        }
        self.image.clear();
        tuple::encode_row(self.layout, &values, self.image)?;
        for next in &mut self.next {
            next.rows.push(self.rt, 0, self.image)?;
            next.any = true;
        }
        self.more = (self.rows)(self.image)?;
        Ok(self.more)
    }
}

/// The rows that a step has not read yet.
struct UnreadRows {
    rows: Spool,
    any: bool,
    /// How many times the step has run.
    rounds: u64,
}

impl UnreadRows {
    fn new(memory: usize) -> UnreadRows {
        UnreadRows {
            rows: Spool::new(memory),
            any: false,
            rounds: 0,
        }
    }
}

/// Passes the rows of a recursion, converted to its column types, to `rows`.
///
/// # Errors
/// 3636 after too many rounds, the errors of converting values, and the errors of the queries.
pub(super) fn run(
    rt: &Runtime<'_>,
    plan: &Recursion,
    (seed, steps): (&CachedQuery, &[CachedQuery]),
    outer: &[&[RowRef<'_>]],
    (layout, unique, image): (&RowLayout, &KeyMaker, &mut Vec<u8>),
    rows: &mut dyn FnMut(&[u8]) -> Result<bool, SqlError>,
) -> Result<(), SqlError> {
    let memory = rt.env.work_memory();
    let each = memory / plan.steps.len().max(1);
    // `ColumnValues::new` sets the strictness by the SQL mode. The expressions of the queries keep
    // theirs.
    let strict = rt.strict.get();
    let values = ColumnValues::new(rt, false, false);
    rt.strict.set(strict);
    let mut rounds = Rounds {
        rt,
        plan,
        layout,
        unique,
        values,
        seen: plan.distinct.then(|| Distinct::new(memory)),
        next: plan.steps.iter().map(|_| UnreadRows::new(each)).collect(),
        more: true,
        image,
        rows,
    };
    seed.run(rt, &plan.seed, outer, &mut rounds)?;
    // A step runs until it has read its own rows too, before the next step starts.
    while rounds.more && rounds.next.iter().any(|n| n.any) {
        for (n, (step, kept)) in plan.steps.iter().zip(steps).enumerate() {
            while rounds.more && rounds.next[n].any {
                let before = rounds.begin(n, each)?;
                let working = &rt.working.0;
                working.borrow_mut().push((plan.number, Some(before)));
                let result = kept.run(rt, step, outer, &mut rounds);
                working.borrow_mut().pop();
                result?;
            }
        }
    }
    Ok(())
}

impl Rounds<'_, '_> {
    /// Takes the unread rows of step `n`, for one more round.
    fn begin(&mut self, n: usize, memory: usize) -> Result<Spool, SqlError> {
        let next = &mut self.next[n];
        next.rounds += 1;
        if next.rounds > self.rt.env.cte_max_recursion_depth() {
            return Err(SqlError::new(
                ErrorCode::ER_CTE_MAX_RECURSION_DEPTH,
                &[&next.rounds],
            ));
        }
        self.rt.tick()?;
        next.any = false;
        Ok(std::mem::replace(&mut next.rows, Spool::new(memory)))
    }
}
