//! What an expression cannot do alone: the executor that holds the session and its fiber runs
//! subqueries, and waits.

use std::time::{Duration, Instant};

use nfold_catalog::UserLockWait;
use nfold_plan::expr::{CmpKind, ExprType, SubqueryUse};
use nfold_types::SqlError;

use super::{EvalCx, Val};

/// Takes a value with its type.
pub type Member<'f> = dyn FnMut(&Val<'_>, &ExprType) -> Result<(), SqlError> + 'f;

/// Runs subqueries of the query block that is being evaluated.
pub trait Subqueries {
    /// The value of subquery `index`, used as `use_as`, for the current rows of `cx`.
    fn value<'a>(
        &self,
        cx: &EvalCx<'a>,
        index: u16,
        use_as: &'a SubqueryUse,
        ty: &'a ExprType,
    ) -> Result<Val<'a>, SqlError>;

    /// Gives the values of the only column of subquery `index`, which is not correlated, to `f`:
    /// each once (or seldom more than once), as it is compared by `kind`, without NULL. False: they
    /// are more than `most`, or more than fit in memory; then `f` has got none.
    fn members(
        &self,
        _cx: &EvalCx<'_>,
        _index: u16,
        _kind: CmpKind,
        _most: usize,
        _f: &mut Member<'_>,
    ) -> Result<bool, SqlError> {
        Ok(false)
    }

    /// Lets the statement sleep. False: KILL QUERY or the time limit has ended it.
    fn sleep(&self, time: Duration) -> Result<bool, SqlError> {
        let _ = time;
        Err(SqlError::not_supported("SLEEP at this place"))
    }

    /// Waits for a user-level lock until `deadline`; error 1317 when the statement is killed
    /// meanwhile.
    fn wait_for_user_lock(
        &self,
        _wait: &mut UserLockWait,
        _deadline: Option<Instant>,
    ) -> Result<(), SqlError> {
        Err(SqlError::not_supported("GET_LOCK that waits at this place"))
    }
}

/// For expressions that cannot hold any.
pub struct NoSubqueries;

impl Subqueries for NoSubqueries {
    fn value<'a>(
        &self,
        _: &EvalCx<'a>,
        _: u16,
        _: &'a SubqueryUse,
        _: &'a ExprType,
    ) -> Result<Val<'a>, SqlError> {
        Err(SqlError::not_supported("subquery at this place"))
    }
}
