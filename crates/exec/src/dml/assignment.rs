//! `SET column = value, ...`: computes the new image of a row.

use std::sync::Arc;

use nfold_engine::Table;
use nfold_plan::expr::ExprKind;
use nfold_plan::query::Assignment;
use nfold_plan::table_exprs::TableExprs;
use nfold_types::{SqlError, Value};
use smallvec::SmallVec;

use super::row_exprs::CompletedRow;
use crate::expr::documents;
use crate::expr::eval::{EvalCx, RowRef, StmtState, row_error};
use crate::operators::column_values::{ColumnValues, now_value};
use crate::operators::step::RowRefs;
use crate::runtime::Runtime;

/// New values by column. Most statements set few columns.
type NewValues = SmallVec<[(usize, Value); 4]>;

/// The assignments of a statement to one table.
pub(super) struct Assigner<'p> {
    table: &'p Arc<Table>,
    assignments: &'p [Assignment],
    /// The row slot of the table.
    slot: usize,
    /// Whether an assignment reads a column that an assignment to its left changes.
    sequential: bool,
    /// ON UPDATE columns that no assignment names: ordinal and fractional digits.
    stamps: Vec<(usize, u8)>,
    /// The table's stored expressions.
    exprs: Option<&'p TableExprs>,
}

impl<'p> Assigner<'p> {
    /// For the table in slot 0. As in MySQL, each assignment sees the values that the assignments
    /// to its left have set.
    pub fn new(
        table: &'p Arc<Table>,
        assignments: &'p [Assignment],
        exprs: Option<&'p TableExprs>,
    ) -> Assigner<'p> {
        Assigner::of_slot(table, assignments, exprs, 0)
    }

    /// As [`Self::new`], for the table in slot `slot`.
    pub fn of_slot(
        table: &'p Arc<Table>,
        assignments: &'p [Assignment],
        exprs: Option<&'p TableExprs>,
        slot: usize,
    ) -> Assigner<'p> {
        let sequential = assignments.iter().enumerate().any(|(n, a)| {
            let before = &assignments[..n];
            a.value.as_ref().is_some_and(|e| {
                e.any(&mut |e| {
                    matches!(e.kind, ExprKind::Column(at)
                        if usize::from(at.table) == slot && before.iter().any(|b| b.column == usize::from(at.column)))
                })
            })
        });
        let stamps = table
            .def()
            .columns
            .iter()
            .enumerate()
            .filter(|(c, _)| !assignments.iter().any(|a| a.column == *c))
            .filter_map(|(c, d)| d.on_update_now.map(|fsp| (c, fsp)))
            .collect();
        Assigner {
            table,
            assignments,
            slot,
            sequential,
            stamps,
            exprs,
        }
    }

    /// Whether a column with AUTO_INCREMENT is assigned.
    pub fn changes_auto_increment(&self) -> bool {
        let auto = self.table.def().auto_increment_column();
        self.assignments.iter().any(|a| Some(a.column) == auto)
    }

    /// The columns that get values.
    pub fn columns(&self) -> impl Iterator<Item = usize> {
        self.assignments.iter().map(|a| a.column)
    }

    /// Makes all assignments read the old row.
    pub fn together(mut self) -> Assigner<'p> {
        self.sequential = false;
        self
    }

    /// Appends the new image of `old` to `out`. Returns false if no column changes. `around` holds
    /// the row slots that the expressions read, except the slot of the table itself, which is set
    /// here.
    #[allow(clippy::too_many_arguments)]
    pub fn apply(
        &self,
        rt: &Runtime<'_>,
        values: &ColumnValues,
        state: &StmtState<'_>,
        old: &[u8],
        around: &[RowRef<'_>],
        row: u64,
        out: &mut Vec<u8>,
    ) -> Result<bool, SqlError> {
        let def = self.table.def();
        let mut changed = NewValues::new();
        let mut between = Vec::new();
        for a in self.assignments {
            if self.sequential && !changed.is_empty() {
                between.clear();
                self.encode(old, &changed, &mut between)?;
            }
            let image = if between.is_empty() { old } else { &between };
            let mut rows = RowRefs::from_slice(around);
            rows[self.slot] = self.slot_of(Some(image));
            let cx = EvalCx {
                rows: &rows,
                outer: &[],
                st: state,
            };
            let column = &def.columns[a.column];
            let mut value = match &a.value {
                // The row pipeline computes generated columns.
                None if column.generated.is_some() => continue,
                None => match self.exprs.and_then(|e| e.default_of(a.column)) {
                    None => values.default_value(rt, column)?,
                    Some(e) => {
                        let mut image = Vec::new();
                        self.encode(old, &changed, &mut image)?;
                        let (def, layout) = (&**def, self.table.layout());
                        let completed = CompletedRow {
                            def,
                            layout,
                            values,
                            state,
                            number: row,
                        };
                        completed.value(e, a.column, &image)?
                    }
                },
                Some(e) => {
                    let v = cx.val(e)?;
                    let stored = values.store(&cx, column, v, &e.ty, row);
                    stored.map_err(|e| documents::with_table(e, &def.name, &column.name))?
                }
            };
            if value.is_null() && !column.nullable {
                value = values.null(rt.warnings, column)?;
            }
            changed.retain(|(c, _)| *c != a.column);
            changed.push((a.column, value));
        }
        self.finish(rt, old, changed, out)
    }

    /// The row slot for an image of the table; for `None`, a slot of NULLs.
    pub fn slot_of<'a>(&'a self, image: Option<&'a [u8]>) -> RowRef<'a> {
        RowRef {
            layout: self.table.layout(),
            image,
            places: None,
        }
    }

    /// Appends `now` to `out`, with the assigned columns taken from the new image `made`. Returns
    /// false if no column changes.
    pub fn carry_over(
        &self,
        rt: &Runtime<'_>,
        now: &[u8],
        made: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool, SqlError> {
        let layout = self.table.layout();
        let mut changed = NewValues::new();
        for a in self.assignments {
            let value = layout.get(made, a.column).map_err(|e| row_error(&e))?;
            changed.push((a.column, value.to_owned()));
        }
        self.finish(rt, now, changed, out)
    }

    /// Appends `old` to `out` with the new values, and with the ON UPDATE columns if a value
    /// changes.
    fn finish(
        &self,
        rt: &Runtime<'_>,
        old: &[u8],
        mut changed: NewValues,
        out: &mut Vec<u8>,
    ) -> Result<bool, SqlError> {
        self.encode(old, &changed, out)?;
        if out.as_slice() == old {
            return Ok(false);
        }
        if !self.stamps.is_empty() {
            let def = self.table.def();
            for &(c, fsp) in &self.stamps {
                changed.push((c, now_value(rt, &def.columns[c], fsp)));
            }
            out.clear();
            self.encode(old, &changed, out)?;
        }
        Ok(true)
    }

    fn encode(
        &self,
        old: &[u8],
        changed: &[(usize, Value)],
        out: &mut Vec<u8>,
    ) -> Result<(), SqlError> {
        let layout = self.table.layout();
        let value = |c| changed.iter().find(|(n, _)| *n == c);
        let value = |c| value(c).map(|(_, v)| v.as_ref());
        let done = layout.encode_changed(old, value, out);
        done.map_err(|e| row_error(&e))
    }
}
