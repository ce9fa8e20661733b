//! The plan of a statement, which the executor runs.

use std::sync::Arc;

use nfold_catalog::TableDef;
use nfold_types::SqlError;

use super::foreign::ForeignKeys;
use super::query::{Block, QueryPlan, SubqueryPlan};
use crate::logical::clauses::{Assignment, ColumnMeta, LimitPlan, UpdateTarget};
use crate::logical::expr::Expr;
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
    /// `EXPLAIN` of another plan: its rows are made when it is planned.
    Explain(Box<ExplainPlan>),
}

/// INSERT and REPLACE.
#[derive(Debug, Clone, PartialEq)]
pub struct InsertPlan {
    pub table: Arc<TableDef>,
    /// Ordinals the source gives values for, in its order.
    pub columns: Vec<usize>,
    pub source: InsertSource,
    pub ignore: bool,
    pub replace: bool,
    /// ON DUPLICATE KEY UPDATE: slot 0 is the row that is there, slot 1 the row that was to be
    /// inserted.
    pub on_duplicate: Vec<Assignment>,
    pub subqueries: Vec<SubqueryPlan>,
    /// The foreign keys that its changes concern.
    pub foreign: Option<Arc<ForeignKeys>>,
    /// The table's stored expressions.
    pub exprs: Option<Arc<TableExprs>>,
}

#[allow(clippy::large_enum_variant)] // one for each planned INSERT
#[derive(Debug, Clone, PartialEq)]
pub enum InsertSource {
    /// `None` stands for DEFAULT. Slot 0 of the expressions is the row being made (`INSERT INTO t
    /// SET a=1, b=a`).
    Rows(Vec<Vec<Option<Expr>>>),
    /// The rows of a folded VALUES.
    Param(u32),
    Query(QueryPlan),
}

/// UPDATE of one table (`source.tables[target]`), found by a query block.
#[derive(Debug, Clone, PartialEq)]
pub struct UpdatePlan {
    pub table: Arc<TableDef>,
    /// The slot of the table in `source`.
    pub target: usize,
    pub source: Block,
    pub limit: Option<LimitPlan>,
    pub assignments: Vec<Assignment>,
    pub ignore: bool,
    /// The access path reads an index whose columns change, or the order matters: rows are
    /// collected first.
    pub collect: bool,
    /// The foreign keys that its changes concern.
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
    /// The foreign keys that its changes concern.
    pub foreign: Option<Arc<ForeignKeys>>,
}

/// UPDATE of several tables, or of those that a join finds.
#[derive(Debug, Clone, PartialEq)]
pub struct UpdateTablesPlan {
    /// Its rows are those of the join; of what is changed, whole ones.
    pub source: Block,
    /// In the order of FROM.
    pub targets: Vec<UpdateTarget>,
    /// Place of the target that is read first and changes at once: its assignments, and those of
    /// the others, see what is assigned. The others change when all is read.
    pub at_once: Option<usize>,
    pub ignore: bool,
    /// The foreign keys that its changes concern.
    pub foreign: Option<Arc<ForeignKeys>>,
}

/// DELETE from several tables, or from those that a join finds.
#[derive(Debug, Clone, PartialEq)]
pub struct DeleteTablesPlan {
    pub source: Block,
    /// The tables, and their slots in `source`.
    pub targets: Vec<(Arc<TableDef>, usize)>,
    pub ignore: bool,
    /// The foreign keys that its changes concern.
    pub foreign: Option<Arc<ForeignKeys>>,
}

/// A table of several that a statement changes, found when its names were bound.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangedTable {
    pub table: Arc<TableDef>,
    pub alias: Arc<str>,
    /// By DELETE, not UPDATE.
    pub deletes: bool,
}

impl Plan {
    /// Adds the stored expressions of the tables whose rows the plan may change.
    ///
    /// # Errors
    /// Those of `bind`.
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

    /// The foreign keys that its changes concern.
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

    /// UPDATE and DELETE of several tables: those that are changed.
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

/// EXPLAIN's rows.
#[derive(Debug, Clone, PartialEq)]
pub struct ExplainPlan {
    pub columns: Vec<ColumnMeta>,
    /// NULL is `None`.
    pub rows: Vec<Vec<Option<String>>>,
    /// Tried in order before the rows are shown.
    pub probes: Vec<ExplainProbe>,
    /// [`Plan::changed_tables`] of what is explained.
    pub changed: Vec<ChangedTable>,
}

/// A part of a plan that MySQL runs while it makes the plan: what is constant, and the tables of
/// which one row is read. Where it gives no row, there is nothing to plan, and EXPLAIN says `why`
/// instead.
#[derive(Debug, Clone, PartialEq)]
pub struct ExplainProbe {
    pub query: QueryPlan,
    pub why: &'static str,
}
