//! Consumers of a query's rows, with OFFSET and LIMIT.

use nfold_plan::expr::{ColumnAt, Expr, ExprKind};
use nfold_plan::query::{Block, LimitPlan};
use nfold_types::SqlError;
use nfold_types::row::RowLayout;
use smallvec::SmallVec;

use super::sort::Sorter;
use crate::env::RowSink;
use crate::expr::eval::{EvalCx, RowCounts, Val};
use crate::runtime::Runtime;

/// A consumer of result rows. It may evaluate `select` over `cx`. It returns false if it wants no
/// more rows.
pub(crate) trait RowOut {
    fn row<'a>(&mut self, cx: &EvalCx<'a>, select: &'a [Expr]) -> Result<bool, SqlError>;

    /// Whether it takes the images of rows in this layout as they are ([`Self::image`]).
    fn takes_images(&self, _layout: &RowLayout) -> bool {
        false
    }

    /// Takes the image of a row. Returns as [`Self::row`].
    fn image(&mut self, _image: &[u8]) -> Result<bool, SqlError> {
        Ok(true)
    }

    /// Reports a row that OFFSET has skipped.
    fn skip(&mut self) {}

    /// For a consumer that sends rows to the client unchanged: the sink, and the counts of rows.
    fn sink(&mut self) -> Option<(&mut dyn RowSink, &RowCounts)> {
        None
    }
}

/// The values of OFFSET and LIMIT.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub skip: u64,
    pub count: u64,
}

impl Limits {
    pub const NONE: Limits = Limits {
        skip: 0,
        count: u64::MAX,
    };

    pub fn new(rt: &Runtime<'_>, plan: Option<&LimitPlan>) -> Result<Limits, SqlError> {
        let Some(plan) = plan else {
            return Ok(Limits::NONE);
        };
        let state = rt.state(&crate::expr::eval::NoSubqueries);
        let cx = EvalCx {
            rows: &[],
            outer: &[],
            st: &state,
        };
        let number = |e: &Expr| -> Result<u64, SqlError> {
            let v = cx.integer(e)?.unwrap_or(0);
            u64::try_from(v)
                .map_err(|_| SqlError::new(nfold_types::ErrorCode::ER_WRONG_ARGUMENTS, &[&"LIMIT"]))
        };
        Ok(Limits {
            skip: plan.offset.as_ref().map(number).transpose()?.unwrap_or(0),
            count: number(&plan.count)?,
        })
    }

    /// Whether all rows are returned.
    pub fn is_none(self) -> bool {
        self.skip == 0 && self.count == u64::MAX
    }

    /// The number of rows that have to be found.
    pub fn wanted(self) -> u64 {
        self.skip.saturating_add(self.count)
    }
}

/// The columns of a row that holds the values of `select`.
pub(crate) fn projected(select: &[Expr]) -> Vec<Expr> {
    select
        .iter()
        .enumerate()
        .map(|(n, e)| Expr {
            kind: ExprKind::Column(ColumnAt {
                table: 0,
                column: n as u16,
            }),
            ty: e.ty.clone(),
        })
        .collect()
}

/// The sorter for a block's ORDER BY, which drops the rows beyond LIMIT.
pub(crate) fn sorter_of(rt: &Runtime<'_>, block: &Block, limits: Limits) -> Sorter {
    Sorter::new(rt.env.work_memory(), top_of(block, limits))
}

/// The number of sorted rows that are wanted; 0: all.
pub(crate) fn top_of(block: &Block, limits: Limits) -> usize {
    let wanted = limits.wanted();
    if wanted < 1 << 20 && !block.calc_found_rows {
        wanted.max(1) as usize
    } else {
        0
    }
}

/// Passes sorted rows to the consumer until it wants no more, and returns their number.
pub(crate) fn give_sorted(
    rt: &Runtime<'_>,
    sorter: Sorter,
    give: &mut dyn FnMut(&[u8]) -> Result<bool, SqlError>,
) -> Result<u64, SqlError> {
    let mut sorted = sorter.finish(rt)?;
    let mut n = 0u64;
    while let Some((_, image)) = sorted.next(rt)? {
        n += 1;
        if n.is_multiple_of(1024) {
            rt.tick()?;
        }
        if !give(image)? {
            break;
        }
    }
    Ok(n)
}

/// Evaluates expressions over one row.
pub(crate) fn values_of<'a>(
    cx: &EvalCx<'a>,
    select: &'a [Expr],
) -> Result<SmallVec<[Val<'a>; 4]>, SqlError> {
    select.iter().map(|e| cx.val(e)).collect()
}
