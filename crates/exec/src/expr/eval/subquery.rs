//! Callbacks from expressions to the executor, which has the session and its fiber: to run a
//! subquery, and to wait.

use std::rc::Rc;
use std::time::{Duration, Instant};

use nfold_catalog::UserLockWait;
use nfold_plan::expr::{CmpKind, ExprType, SubqueryUse};
use nfold_plan::fulltext::SearchTarget;
use nfold_types::SqlError;

use super::{EvalCx, Val};
use crate::fulltext::program::Program;

/// A consumer of a value and its type.
pub type Member<'f> = dyn FnMut(&Val<'_>, &ExprType) -> Result<(), SqlError> + 'f;

/// Runs the subqueries of the query block whose expressions are evaluated.
pub trait Subqueries {
    /// The value of subquery `index` in the use `use_as`, for the current rows of `cx`.
    fn value<'a>(
        &self,
        cx: &EvalCx<'a>,
        index: u16,
        use_as: &'a SubqueryUse,
        ty: &'a ExprType,
    ) -> Result<Val<'a>, SqlError>;

    /// Passes the distinct values of the only column of the uncorrelated subquery `index` to `f`,
    /// without NULL. Two values are equal if `kind` compares them as equal; in rare cases a value
    /// is passed twice. Returns false without calling `f` if there are more than `most` values, or
    /// if they do not fit into memory.
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

    /// The full-text search for `text` in an index.
    fn search(&self, _target: SearchTarget, _text: &[u8]) -> Result<Rc<Program>, SqlError> {
        Err(SqlError::not_supported("MATCH ... AGAINST at this place"))
    }

    /// Suspends the statement. Returns false if KILL QUERY or the time limit has ended the sleep.
    fn sleep(&self, time: Duration) -> Result<bool, SqlError> {
        let _ = time;
        Err(SqlError::not_supported("SLEEP at this place"))
    }

    /// Waits for a user-level lock until `deadline`. Error 1317 if the statement is killed
    /// meanwhile.
    fn wait_for_user_lock(
        &self,
        _wait: &mut UserLockWait,
        _deadline: Option<Instant>,
    ) -> Result<(), SqlError> {
        Err(SqlError::not_supported("GET_LOCK that waits at this place"))
    }
}

/// For expressions that have no subquery.
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
