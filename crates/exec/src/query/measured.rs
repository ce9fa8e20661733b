//! The result of a query under EXPLAIN ANALYZE: counts the rows, and takes the time to the first.

use nfold_plan::expr::Expr;
use nfold_types::SqlError;

use crate::expr::eval::EvalCx;
use crate::operators::row_out::RowOut;
use crate::runtime::profile::Execution;

/// Passes rows on to `out`. It has no sink, so no row skips it.
pub(super) struct MeasuredRows<'o> {
    out: &'o mut dyn RowOut,
    pub execution: Execution,
}

impl<'o> MeasuredRows<'o> {
    pub fn new(out: &'o mut dyn RowOut) -> MeasuredRows<'o> {
        MeasuredRows {
            out,
            execution: Execution::begin(),
        }
    }
}

impl RowOut for MeasuredRows<'_> {
    fn row<'a>(&mut self, cx: &EvalCx<'a>, select: &'a [Expr]) -> Result<bool, SqlError> {
        self.execution.row();
        self.out.row(cx, select)
    }

    fn skip(&mut self) {
        self.out.skip();
    }
}
