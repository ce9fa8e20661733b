//! A condition over rows that are values in memory, such as those of SHOW.

use nfold_plan::expr::{Expr, ExprType};
use nfold_types::{ColumnType, SqlError, Value};

use super::tuple::{encode_row, layout_of};
use super::{EvalCx, RowRef, StmtState, Val};

/// For each of `rows`, whether `condition` holds. `columns`: the types of the rows' values.
///
/// # Errors
/// Those of the condition.
pub fn matching<'r>(
    st: &StmtState<'_>,
    columns: impl IntoIterator<Item = &'r ColumnType>,
    rows: &[Vec<Value>],
    condition: &Expr,
) -> Result<Vec<bool>, SqlError> {
    let types = columns
        .into_iter()
        .map(|ty| ExprType::new(ty.clone(), true));
    let types: Vec<ExprType> = types.collect();
    let layout = layout_of(&types);
    let mut image = Vec::new();
    let mut matches = |row: &Vec<Value>| -> Result<bool, SqlError> {
        let values = row.iter().map(|v| Val::from_ref(v.as_ref()));
        let values: Vec<Val<'_>> = values.collect();
        image.clear();
        encode_row(&layout, &values, &mut image)?;
        let row = RowRef {
            layout: &layout,
            image: Some(&image),
            places: None,
        };
        let cx = EvalCx {
            rows: &[row],
            outer: &[],
            st,
        };
        Ok(cx.bool(condition)? == Some(true))
    };
    rows.iter().map(&mut matches).collect()
}
