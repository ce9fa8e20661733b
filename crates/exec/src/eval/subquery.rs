//! What an expression cannot do alone: the executor that holds the session and its fiber runs subqueries, and waits.

use std::time::Duration;

use nfold_plan::expr::{ExprType, SubqueryUse};
use nfold_types::SqlError;

use super::{EvalCx, Val};

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

    /// Lets the statement sleep; zero lets the others have their turn. Error 1317 when it is killed meanwhile.
    fn sleep(&self, time: Duration) -> Result<(), SqlError> {
        if time.is_zero() {
            return Ok(());
        }
        Err(SqlError::not_supported("SLEEP at this place"))
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
