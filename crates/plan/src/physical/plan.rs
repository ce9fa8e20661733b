//! The plan of a statement.

use std::sync::Arc;

use nfold_catalog::TableDef;
use nfold_sql::ast::ExplainFormat;
use nfold_types::SqlError;

use super::foreign::ForeignKeys;
use super::query::{Block, QueryPlan, SubqueryPlan};
use crate::logical::changed_view::ChangedView;
use crate::logical::clauses::{
    Assignment, CheckedConstant, ColumnMeta, ConstantCheck, LimitPlan, UpdateTarget,
};
use crate::logical::expr::Expr;
use crate::logical::file_rows::FileRows;
use crate::logical::table_exprs::{BindExprs, TableExprs};

/// A planned statement.
#[allow(clippy::large_enum_variant)] // one for each planned statement
#[derive(Debug, Clone, PartialEq)]
pub enum Plan {
    Query(QueryPlan),
    Insert(Box<InsertPlan>),
    Update(Box<UpdatePlan>),
    Delete(Box<DeletePlan>),
    UpdateTables(Box<UpdateTablesPlan>),
    DeleteTables(Box<DeleteTablesPlan>),
    Do(Vec<Expr>, Vec<SubqueryPlan>),
    /// `EXPLAIN` of another plan. Its rows are computed during planning.
    Explain(Box<ExplainPlan>),
}

/// INSERT and REPLACE.
#[derive(Debug, Clone, PartialEq)]
pub struct InsertPlan {
    pub table: Arc<TableDef>,
    /// Ordinals of the columns that `source` has values for, in the order of these values.
    pub columns: Vec<usize>,
    pub source: InsertSource,
    pub ignore: bool,
    pub replace: bool,
    /// ON DUPLICATE KEY UPDATE. Slot 0 is the existing row, slot 1 the row that was to be inserted.
    pub on_duplicate: Vec<Assignment>,
    pub subqueries: Vec<SubqueryPlan>,
    /// The IN lists of VALUES, whose members are converted before the first row.
    pub constant_checks: Vec<ConstantCheck>,
    /// The view that the statement names.
    pub view: Option<Arc<ChangedView>>,
    /// The foreign keys that the statement's changes concern.
    pub foreign: Option<Arc<ForeignKeys>>,
    /// The table's stored expressions.
    pub exprs: Option<Arc<TableExprs>>,
}

#[allow(clippy::large_enum_variant)] // one for each planned INSERT
#[derive(Debug, Clone, PartialEq)]
pub enum InsertSource {
    /// `None` means DEFAULT. Slot 0 of the expressions is the new row (`INSERT INTO t SET a=1,
    /// b=a`).
    Rows(Vec<Vec<Option<Expr>>>),
    /// The rows of a VALUES list that the digest has folded into one parameter slot.
    Param(u32),
    Query(QueryPlan),
    /// LOAD DATA
    File(Box<FileRows>),
}

/// UPDATE of one table (`source.tables[target]`), whose rows a query block finds.
#[derive(Debug, Clone, PartialEq)]
pub struct UpdatePlan {
    pub table: Arc<TableDef>,
    /// The slot of the table in `source`.
    pub target: usize,
    pub source: Block,
    pub limit: Option<LimitPlan>,
    pub assignments: Vec<Assignment>,
    pub ignore: bool,
    /// The view that the statement names.
    pub view: Option<Arc<ChangedView>>,
    /// Whether the rows are collected before the first one changes: because the access path reads
    /// an index whose columns change, or because the order matters.
    pub collect: bool,
    /// The foreign keys that the statement's changes concern.
    pub foreign: Option<Arc<ForeignKeys>>,
    /// The table's stored expressions.
    pub exprs: Option<Arc<TableExprs>>,
}

/// DELETE of one table.
#[derive(Debug, Clone, PartialEq)]
pub struct DeletePlan {
    pub table: Arc<TableDef>,
    pub target: usize,
    pub source: Block,
    pub limit: Option<LimitPlan>,
    pub ignore: bool,
    pub collect: bool,
    /// The foreign keys that the statement's changes concern.
    pub foreign: Option<Arc<ForeignKeys>>,
}

/// UPDATE of several tables, or of rows found by a join.
#[derive(Debug, Clone, PartialEq)]
pub struct UpdateTablesPlan {
    /// Finds the joined rows. It reads all columns of the tables that change.
    pub source: Block,
    /// In the order of FROM.
    pub targets: Vec<UpdateTarget>,
    /// The index in `targets` of the table that is read first, if its rows change immediately. All
    /// assignments then see its new values. The other tables change after all rows are read.
    pub at_once: Option<usize>,
    pub ignore: bool,
    /// The foreign keys that the statement's changes concern.
    pub foreign: Option<Arc<ForeignKeys>>,
}

/// DELETE from several tables, or of rows found by a join.
#[derive(Debug, Clone, PartialEq)]
pub struct DeleteTablesPlan {
    pub source: Block,
    /// The tables, and their slots in `source`.
    pub targets: Vec<(Arc<TableDef>, usize)>,
    pub ignore: bool,
    /// The foreign keys that the statement's changes concern.
    pub foreign: Option<Arc<ForeignKeys>>,
}

/// A table that a multi-table statement changes.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangedTable {
    pub table: Arc<TableDef>,
    pub alias: Arc<str>,
    /// Whether by DELETE; otherwise by UPDATE.
    pub deletes: bool,
}

impl Plan {
    /// Adds the stored expressions of the tables whose rows the plan may change. `bind` binds them.
    ///
    /// # Errors
    /// The errors of `bind`.
    pub(crate) fn attach_exprs(&mut self, bind: &BindExprs<'_>) -> Result<(), SqlError> {
        let foreign = match self {
            Plan::Insert(p) => {
                p.exprs = bind(&p.table)?;
                &mut p.foreign
            }
            Plan::Update(p) => {
                p.exprs = bind(&p.table)?;
                &mut p.foreign
            }
            Plan::UpdateTables(p) => {
                for target in &mut p.targets {
                    target.exprs = bind(&target.table)?;
                }
                &mut p.foreign
            }
            Plan::Delete(p) => &mut p.foreign,
            Plan::DeleteTables(p) => &mut p.foreign,
            Plan::Query(_) | Plan::Do(..) | Plan::Explain(_) => return Ok(()),
        };
        let keys = foreign.as_mut().and_then(Arc::get_mut);
        for keys in keys.into_iter().flat_map(|keys| &mut keys.tables) {
            keys.exprs = bind(&keys.table)?;
        }
        Ok(())
    }

    /// Sets the constants that are converted before the first row. INSERT ... VALUES converts only
    /// members of IN lists before, and operands that MySQL evaluates to resolve types.
    pub(crate) fn set_constant_checks(&mut self, mut checks: Vec<ConstantCheck>) {
        if let Some(block) = self.first_block() {
            block.constant_checks = checks;
        } else if let Plan::Insert(p) = self {
            use CheckedConstant::{Members, Resolved};
            checks.retain(|check| matches!(check.constant, Members(_) | Resolved(_)));
            p.constant_checks = checks;
        }
    }

    /// The block that is executed first; `None` for a plan without one.
    pub(crate) fn first_block(&mut self) -> Option<&mut Block> {
        match self {
            Plan::Query(query) => query.first_block(),
            Plan::Insert(p) => match &mut p.source {
                InsertSource::Query(query) => query.first_block(),
                _ => None,
            },
            Plan::Update(p) => Some(&mut p.source),
            Plan::Delete(p) => Some(&mut p.source),
            Plan::UpdateTables(p) => Some(&mut p.source),
            Plan::DeleteTables(p) => Some(&mut p.source),
            Plan::Do(..) | Plan::Explain(_) => None,
        }
    }

    /// Makes the plan that of CREATE TABLE ... SELECT, which compares constants with dates and
    /// times outside of strict mode.
    pub fn check_constants_leniently(&mut self) {
        if let Some(block) = self.first_block() {
            let checks = block.constant_checks.iter_mut();
            checks.for_each(|check| check.lenient = true);
        }
    }

    /// The foreign keys that the plan's changes concern.
    pub fn foreign_keys(&self) -> Option<&ForeignKeys> {
        let keys = match self {
            Plan::Insert(p) => &p.foreign,
            Plan::Update(p) => &p.foreign,
            Plan::Delete(p) => &p.foreign,
            Plan::UpdateTables(p) => &p.foreign,
            Plan::DeleteTables(p) => &p.foreign,
            Plan::Query(_) | Plan::Do(..) | Plan::Explain(_) => return None,
        };
        keys.as_deref()
    }

    /// The tables that a multi-table UPDATE or DELETE changes; empty for other plans.
    pub fn changed_tables(&self) -> Vec<ChangedTable> {
        let of = |b: &Block, table: &Arc<TableDef>, slot: usize, deletes| ChangedTable {
            table: table.clone(),
            alias: b.tables[slot].alias.clone(),
            deletes,
        };
        match self {
            Plan::UpdateTables(p) => {
                let targets = p.targets.iter();
                let targets = targets.map(|t| of(&p.source, &t.table, t.slot, false));
                targets.collect()
            }
            Plan::DeleteTables(p) => {
                let targets = p.targets.iter();
                let targets = targets.map(|(table, slot)| of(&p.source, table, *slot, true));
                targets.collect()
            }
            Plan::Explain(e) => e.changed.clone(),
            _ => Vec::new(),
        }
    }
}

/// EXPLAIN of another plan.
#[derive(Debug, Clone, PartialEq)]
pub struct ExplainPlan {
    pub format: ExplainOutput,
    /// EXPLAIN ANALYZE: the plan is run and measured.
    pub analyze: bool,
    pub plan: Plan,
    pub columns: Vec<ColumnMeta>,
    /// The rows of FORMAT=TRADITIONAL. `None` is NULL.
    pub rows: Vec<Vec<Option<String>>>,
    /// Run in this order before `rows` are returned.
    pub probes: Vec<ExplainProbe>,
    /// The [`Plan::changed_tables`] of the explained plan.
    pub changed: Vec<ChangedTable>,
}

/// The output of EXPLAIN: a format, and of JSON its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExplainOutput {
    /// A row for each table.
    Rows,
    Tree,
    /// JSON of the tables in a nested loop (`explain_json_format_version` 1).
    TablesJson,
    /// JSON of the operators that TREE shows (`explain_json_format_version` 2).
    TreeJson,
}

impl ExplainOutput {
    /// The output of a format. `json`: `explain_json_format_version`.
    pub fn of(format: ExplainFormat, json: u8) -> ExplainOutput {
        match format {
            ExplainFormat::Traditional => ExplainOutput::Rows,
            ExplainFormat::Tree => ExplainOutput::Tree,
            ExplainFormat::Json if json == 1 => ExplainOutput::TablesJson,
            ExplainFormat::Json => ExplainOutput::TreeJson,
        }
    }
}

/// A part of a plan that MySQL executes during planning: constant conditions, and tables of which
/// at most one row is read. If it returns no row, MySQL does not plan the rest, and EXPLAIN shows
/// the text `why`.
#[derive(Debug, Clone, PartialEq)]
pub struct ExplainProbe {
    pub query: QueryPlan,
    pub why: &'static str,
}
