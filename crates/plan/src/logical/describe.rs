//! The descriptions of the result columns of a query block, for the client and for enclosing
//! queries. MySQL describes a value that went through a temporary table as that table's column.

use std::sync::Arc;

use nfold_types::TypeKind;
use nfold_types::sql_type::ColumnFlags;

use super::clauses::ColumnMeta;
use super::expr::{Expr, ExprKind, ExprType};
use super::query::{Block, Query, QueryBody};

/// The role of a select item in the temporary table that MySQL uses for grouping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResultKind {
    Constant,
    Aggregate,
    /// Computed from aggregates, which are columns of the temporary table.
    OfAggregates,
    Value,
    /// The value of a subquery that reads tables, or of ANY_VALUE.
    Subquery,
    /// The value of an uncorrelated subquery that reads tables. Sorted rows do not store it.
    UncorrelatedSubquery,
}

/// The inputs that decide how a block's columns are described, besides its grouping.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Description {
    pub kinds: Vec<ResultKind>,
    /// Whether an aggregate has DISTINCT or is GROUP_CONCAT. Then MySQL sorts the rows and uses no
    /// temporary table.
    pub sorted_groups: bool,
    pub distinct: bool,
    pub windowed: bool,
}

/// The grouping of a block, as far as it matters to the description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Groups {
    pub implicit: bool,
    pub rollup: bool,
    pub key_count: usize,
    /// Whether rows arrive sorted by the keys, so that MySQL uses no temporary table.
    pub ordered: bool,
}

/// Which rows of a block MySQL stores in a temporary table, besides groups and distinct rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoredRows {
    /// With ROLLUP, the rows of the groups.
    pub rolled_up: bool,
    /// With ROLLUP, rows with the keys in them, before the rows of the groups are stored again.
    pub twice: bool,
    /// The joined rows, to sort them.
    pub sorted: bool,
}

impl Query {
    /// Describes the columns before access paths are chosen. This is final for a nested query; the
    /// outermost query is described by the optimizer, which knows more.
    pub fn describe(&mut self) {
        let (Some(description), QueryBody::Block(block)) =
            (self.description.take(), &mut self.body)
        else {
            return;
        };
        let groups = block.group.as_ref().map(|g| Groups {
            implicit: g.implicit,
            rollup: g.rollup,
            key_count: g.keys.len(),
            ordered: false,
        });
        let stored = StoredRows {
            rolled_up: keeps_rows(block),
            twice: false,
            sorted: false,
        };
        description.apply(&mut self.columns, &mut block.select, groups, stored);
        self.types = block.select.iter().map(|e| e.ty.clone()).collect();
    }
}

/// Whether MySQL stores the grouped rows of a block WITH ROLLUP, or its joined rows, in a temporary
/// table.
fn keeps_rows(b: &Block) -> bool {
    b.distinct || !b.order.is_empty() || !b.windows.is_empty() || b.merged_table_count() > 1
}

impl Description {
    /// The description of the same columns if MySQL stores no rows: it knows, when it has planned
    /// the query, that the result is empty, or that it has at most one row.
    pub fn unstored(&self) -> Description {
        Description {
            kinds: self.kinds.clone(),
            sorted_groups: false,
            distinct: false,
            windowed: false,
        }
    }

    /// Describes the result columns `select`.
    pub fn apply(
        &self,
        columns: &mut [ColumnMeta],
        select: &mut [Expr],
        groups: Option<Groups>,
        stored_rows: StoredRows,
    ) {
        let implicit = groups.is_some_and(|g| g.implicit);
        let grouped = groups.is_some_and(|g| !g.implicit && !g.ordered) && !self.sorted_groups;
        let rolled_up = groups.filter(|g| g.rollup);
        let distinct_rows = self.distinct && !implicit;
        for ((meta, e), kind) in columns.iter_mut().zip(select).zip(&self.kinds) {
            if let Some(groups) = rolled_up {
                let distinct = self.distinct || self.windowed;
                describe_rolled_up(meta, e, groups.key_count, *kind, (stored_rows, distinct));
                continue;
            }
            let kept = match kind {
                ResultKind::Constant => false,
                // MySQL computes it from the aggregates that it has stored.
                ResultKind::OfAggregates => distinct_rows,
                _ if self.windowed => true,
                ResultKind::Aggregate => grouped,
                ResultKind::UncorrelatedSubquery => grouped || distinct_rows,
                ResultKind::Value | ResultKind::Subquery => {
                    grouped || distinct_rows || stored_rows.sorted
                }
            };
            if self.windowed {
                meta.flags &= !TABLE_COLUMN_FLAGS;
            }
            // MySQL sets a user variable after the grouping.
            let late = grouped && matches!(e.kind, ExprKind::AssignUserVar(..));
            if meta.made && kept && !late {
                let of_subquery = *kind == ResultKind::Subquery;
                let form = match e.kind {
                    _ if stored_rows.sorted && !self.windowed => StoredForm::Value,
                    ExprKind::Subquery { .. } if of_subquery => StoredForm::Value,
                    _ if of_subquery && grouped && !self.distinct => StoredForm::Subquery,
                    _ if *kind == ResultKind::Value && (groups.is_some() || is_computed(e)) => {
                        StoredForm::Value
                    }
                    _ => StoredForm::AsComputed,
                };
                describe_kept(meta, e, *kind, self.windowed, form);
            }
            // A parameter that is NULL is described as a text.
            if !matches!(
                (&e.kind, &e.ty.col.kind),
                (ExprKind::Param(_), TypeKind::Null)
            ) {
                meta.ty = e.ty.col.clone();
            }
        }
    }
}

/// The type of the column in which a temporary table stores a computed value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StoredForm {
    /// An ENUM or SET becomes a string, a short BIGINT an INT.
    AsComputed,
    /// [`ExprType::stored_subquery`]
    Subquery,
    /// [`ExprType::stored_value`]
    Value,
}

/// Describes a value that a temporary table of groups, window results, or distinct or sorted rows
/// stores.
fn describe_kept(
    meta: &mut ColumnMeta,
    e: &mut Expr,
    kind: ResultKind,
    windowed: bool,
    form: StoredForm,
) {
    meta.made = false;
    if windowed && e.ty.col.kind == TypeKind::Year {
        meta.flags &= !ColumnFlags::ZEROFILL;
    }
    if e.ty.col.kind == TypeKind::Null {
        e.ty = e.ty.kept();
    } else if kind == ResultKind::Aggregate {
        let mut ty = e.ty.clone();
        ty.col = ty.column();
        set_stored_type(e, ty);
    } else {
        match form {
            _ if e.ty.col.is_enum_or_set() => keep(e),
            StoredForm::AsComputed => keep(e),
            StoredForm::Subquery => set_stored_type(e, e.ty.stored_subquery()),
            StoredForm::Value => set_stored_type(e, e.ty.stored_value()),
        }
        meta.flags &= !(ColumnFlags::ENUM | ColumnFlags::SET);
    }
}

/// Column flags that a table's column loses in the temporary table of window results.
pub(crate) const TABLE_COLUMN_FLAGS: u16 = ColumnFlags::PRI_KEY
    | ColumnFlags::UNIQUE_KEY
    | ColumnFlags::MULTIPLE_KEY
    | ColumnFlags::PART_KEY
    | ColumnFlags::AUTO_INCREMENT
    | ColumnFlags::TIMESTAMP
    | ColumnFlags::ON_UPDATE_NOW;

/// Describes the result column of an expression.
pub(crate) fn computed_column(name: Arc<str>, ty: &ExprType) -> ColumnMeta {
    let none: Arc<str> = "".into();
    let not_null = match ty.nullable {
        true => 0,
        false => ColumnFlags::NOT_NULL,
    };
    ColumnMeta {
        schema: none.clone(),
        table: none.clone(),
        org_table: none.clone(),
        name,
        org_name: none,
        ty: ty.col.clone(),
        flags: ty.col.wire_flags() | not_null,
        made: true,
    }
}

/// Whether `e` is no plain column.
fn is_computed(e: &Expr) -> bool {
    !matches!(
        e.kind,
        ExprKind::Column(_) | ExprKind::Outer { .. } | ExprKind::Subquery { .. }
    )
}

/// Whether `e` is an ENUM or SET value that is no plain column.
pub(crate) fn is_computed_member(e: &Expr) -> bool {
    e.ty.col.is_enum_or_set() && e.as_column().is_none()
}

/// Converts `e` to the value that a temporary table stores: an ENUM or SET member becomes its text.
pub(crate) fn keep(e: &mut Expr) {
    set_stored_type(e, e.ty.kept());
}

/// Changes the type of a computed value to that of the column which stores it.
fn set_stored_type(e: &mut Expr, ty: ExprType) {
    if e.ty.col.is_enum_or_set() {
        e.cast_to(ty);
    } else {
        e.ty = ty;
    }
}

/// Describes a result column of a block WITH ROLLUP. `distinct`: the block has DISTINCT or windows.
fn describe_rolled_up(
    meta: &mut ColumnMeta,
    e: &mut Expr,
    key_count: usize,
    kind: ResultKind,
    (stored, distinct): (StoredRows, bool),
) {
    let rows_are_stored = stored.rolled_up;
    let is_column = !meta.made;
    let key = |e: &Expr| {
        e.as_column()
            .is_some_and(|at| at.table == 0 && usize::from(at.column) <= key_count)
    };
    if meta.made || e.any(&mut |e| key(e)) {
        *meta = computed_column(meta.name.clone(), &e.ty);
    } else {
        // A column that has no single value per group.
        let lost = if rows_are_stored {
            TABLE_COLUMN_FLAGS
        } else {
            0
        };
        meta.flags &= !(lost | ColumnFlags::NOT_NULL);
        meta.ty = e.ty.col.clone();
        return;
    }
    let alone = key(e);
    if alone {
        e.ty = e.ty.clone().computed();
    }
    let kept = match kind {
        _ if alone => rows_are_stored,
        ResultKind::Constant => false,
        ResultKind::OfAggregates => distinct,
        ResultKind::Aggregate
        | ResultKind::Value
        | ResultKind::Subquery
        | ResultKind::UncorrelatedSubquery => rows_are_stored,
    };
    if !kept {
        if alone {
            *meta = computed_column(meta.name.clone(), &e.ty.item());
        }
        return;
    }
    let value = matches!(
        kind,
        ResultKind::Value | ResultKind::Subquery | ResultKind::UncorrelatedSubquery
    );
    if value && e.ty.col.is_integer() && e.ty.col.kind != TypeKind::Year {
        e.ty.col.width = e.ty.max_length() as u32;
        e.ty.col.kind = TypeKind::BigInt;
    }
    match kind {
        ResultKind::Aggregate => e.ty.col = e.ty.column(),
        _ if alone && is_column => set_stored_type(e, e.ty.stored_value()),
        // MySQL reads the key from the first table as a BIGINT of unknown length.
        _ if alone && stored.twice && e.ty.col.is_integer() => {}
        _ => keep(e),
    }
    *meta = ColumnMeta {
        made: false,
        ..computed_column(meta.name.clone(), &e.ty)
    };
}
