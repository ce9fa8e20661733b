//! Common table expressions that name themselves, round by round.
//!
//! # Picture
//! ```text
//!   seed ──▶ rows ──▶ result
//!             │
//!             ▼ rows of the round before (`Working`)
//!           step ──▶ rows ──▶ result        ... until a round gives none
//! ```

use std::cell::RefCell;

use nfold_plan::query::Recursion;
use nfold_types::row::RowLayout;
use nfold_types::{ErrorCode, SqlError, Value};
use smallvec::SmallVec;

use super::KeptQuery;
use crate::block::RowOut;
use crate::distinct::Distinct;
use crate::eval::{EvalCx, RowRef, Val};
use crate::runtime::Runtime;
use crate::spill::Spool;
use crate::store::Storing;
use crate::tuple::{self, KeyMaker};
use nfold_plan::expr::Expr;

/// The rows of the round before, of each recursion that runs, innermost last.
#[derive(Default)]
pub(crate) struct Working(RefCell<Vec<(u32, Option<Spool>)>>);

impl Working {
    /// Takes the rows of recursion `number`; `None`: they were taken already.
    pub fn take(&self, number: u32) -> Option<Spool> {
        let mut all = self.0.borrow_mut();
        let (_, rows) = all.iter_mut().rev().find(|w| w.0 == number)?;
        rows.take()
    }
}

/// Takes the rows of seed and steps.
struct Rounds<'o, 's> {
    rt: &'o Runtime<'s>,
    plan: &'o Recursion,
    layout: &'o RowLayout,
    unique: &'o KeyMaker,
    storing: Storing,
    seen: Option<Distinct>,
    /// Those of the round that runs.
    next: Spool,
    any: bool,
    /// More rows are wanted.
    more: bool,
    image: &'o mut Vec<u8>,
    rows: &'o mut dyn FnMut(&[u8]) -> Result<bool, SqlError>,
}

impl RowOut for Rounds<'_, '_> {
    fn row<'a>(&mut self, cx: &EvalCx<'a>, select: &'a [Expr]) -> Result<bool, SqlError> {
        let mut stored: SmallVec<[Value; 4]> = SmallVec::new();
        for (e, column) in select.iter().zip(&self.plan.columns) {
            let value = cx.val(e)?;
            // What does not fit is an error in strict mode, and otherwise cut off without a word.
            let warnings = self.rt.warnings.take();
            let value = self.storing.store(self.rt, cx, column, value, &e.ty, 1);
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
        self.next.push(self.rt, 0, self.image)?;
        self.any = true;
        self.more = (self.rows)(self.image)?;
        Ok(self.more)
    }
}

/// Gives the rows of a recursion, in its columns' types, to `rows`.
///
/// # Errors
/// 3636 after too many rounds; those of storing a value in a column; the queries' own.
pub(super) fn run(
    rt: &Runtime<'_>,
    plan: &Recursion,
    [seed, step]: &[KeptQuery; 2],
    outer: &[&[RowRef<'_>]],
    (layout, unique, image): (&RowLayout, &KeyMaker, &mut Vec<u8>),
    rows: &mut dyn FnMut(&[u8]) -> Result<bool, SqlError>,
) -> Result<(), SqlError> {
    let memory = rt.env.work_memory();
    // Expressions of a query are as strict as they were.
    let strict = rt.strict.get();
    let storing = Storing::new(rt, false, false);
    rt.strict.set(strict);
    let mut rounds = Rounds {
        rt,
        plan,
        layout,
        unique,
        storing,
        seen: plan.distinct.then(|| Distinct::new(memory)),
        next: Spool::new(memory),
        any: false,
        more: true,
        image,
        rows,
    };
    seed.run(rt, &plan.seed, outer, &mut rounds)?;
    let most = rt.env.cte_max_recursion_depth();
    let mut round = 0;
    while rounds.any && rounds.more {
        round += 1;
        if round > most {
            return Err(SqlError::new(
                ErrorCode::ER_CTE_MAX_RECURSION_DEPTH,
                &[&round],
            ));
        }
        rt.tick()?;
        rounds.any = false;
        let before = std::mem::replace(&mut rounds.next, Spool::new(memory));
        let working = &rt.working.0;
        working.borrow_mut().push((plan.number, Some(before)));
        let result = step.run(rt, &plan.step, outer, &mut rounds);
        working.borrow_mut().pop();
        result?;
    }
    Ok(())
}
