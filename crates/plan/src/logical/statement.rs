//! The logical tree of a statement.

use std::sync::Arc;

use nfold_catalog::TableDef;

use super::changed_view::ChangedView;
use super::clauses::{Assignment, LimitPlan, UpdateTarget};
use super::expr::Expr;
use super::file_rows::FileRows;
use super::query::{Block, Query, Subquery};

/// A bound statement.
#[allow(clippy::large_enum_variant)] // one for each statement
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Statement {
    Query(Query),
    Insert(Box<Insert>),
    Update(Box<Update>),
    Delete(Box<Delete>),
    UpdateTables(Box<UpdateTables>),
    DeleteTables(Box<DeleteTables>),
    Do(Vec<Expr>, Vec<Subquery>),
}

/// INSERT and REPLACE.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Insert {
    pub table: Arc<TableDef>,
    /// Ordinals of the columns that `source` has values for, in the order of these values.
    pub columns: Vec<usize>,
    pub source: InsertRows,
    pub ignore: bool,
    pub replace: bool,
    /// ON DUPLICATE KEY UPDATE. Slot 0 is the existing row, slot 1 the row that was to be inserted.
    pub on_duplicate: Vec<Assignment>,
    pub subqueries: Vec<Subquery>,
    /// The view that the statement names.
    pub view: Option<Arc<ChangedView>>,
}

#[allow(clippy::large_enum_variant)] // one for each INSERT
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum InsertRows {
    /// `None` means DEFAULT. Slot 0 of the expressions is the new row (`INSERT INTO t SET a=1,
    /// b=a`).
    Rows(Vec<Vec<Option<Expr>>>),
    /// The rows of a VALUES list that the digest has folded into one parameter slot.
    Param(u32),
    Query(Query),
    /// LOAD DATA
    File(Box<FileRows>),
}

/// UPDATE of one table, which is slot 0 of `source`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Update {
    pub table: Arc<TableDef>,
    pub source: Block,
    pub limit: Option<LimitPlan>,
    pub assignments: Vec<Assignment>,
    pub ignore: bool,
    /// The view that the statement names.
    pub view: Option<Arc<ChangedView>>,
}

/// DELETE from one table, which is slot 0 of `source`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Delete {
    pub table: Arc<TableDef>,
    pub source: Block,
    pub limit: Option<LimitPlan>,
    pub ignore: bool,
}

/// UPDATE of several tables, or of rows found by a join.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct UpdateTables {
    pub source: Block,
    /// In the order of FROM.
    pub targets: Vec<UpdateTarget>,
    pub ignore: bool,
}

/// DELETE from several tables, or of rows found by a join.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DeleteTables {
    pub source: Block,
    /// The tables, and their slots in `source`.
    pub targets: Vec<(Arc<TableDef>, usize)>,
    pub ignore: bool,
}
