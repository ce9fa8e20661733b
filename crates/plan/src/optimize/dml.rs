//! UPDATE and DELETE: whether the rows must be collected before the first one changes.

use nfold_catalog::TableDef;
use nfold_types::{ErrorCode, SqlError};

use super::context::OptimizeCx;
use crate::logical::clauses::{Assignment, UpdateTarget};
use crate::logical::context::PlanCx;
use crate::logical::expr::{Expr, is_constant};
use crate::logical::query as logical;
use crate::logical::statement::{Delete, DeleteTables, Update, UpdateTables};
use crate::logical::tame::is_silent;
use crate::physical::foreign::{Changed, ForeignKeys};
use crate::physical::{
    AccessKind, Block, DeletePlan, DeleteTablesPlan, JoinStep, Plan, PointPart, TableSource,
    UpdatePlan, UpdateTablesPlan,
};

pub(super) fn update(cx: &OptimizeCx<'_>, u: Update) -> Result<Plan, SqlError> {
    let mut source = source(cx, u.source, u.limit.is_some())?;
    let moves = source.joins.first().is_some_and(|step| {
        let access = step.access.of_table();
        let indexes = access.kind.indexes(access.index);
        indexes
            .iter()
            .any(|&i| touches(&u.table, i, &u.assignments))
    });
    let warns = !are_silent(cx, &source);
    // As in MySQL, ORDER BY tests all rows before the first one changes.
    let collect = collects(&source) || source.ordered && warns || moves;
    source.row_by_row = warns && (!collect || u.limit.is_some());
    let assigned: Vec<usize> = u.assignments.iter().map(|a| a.column).collect();
    Ok(Plan::Update(Box::new(UpdatePlan {
        foreign: ForeignKeys::of(cx.foreign(), &[(&u.table, Changed::Updated(&assigned))]),
        table: u.table,
        target: 0,
        source,
        limit: u.limit,
        assignments: u.assignments,
        ignore: u.ignore,
        view: u.view,
        collect,
        exprs: None,
    })))
}

pub(super) fn delete(cx: &OptimizeCx<'_>, d: Delete) -> Result<Plan, SqlError> {
    let mut source = source(cx, d.source, d.limit.is_some())?;
    let collect = collects(&source);
    source.row_by_row = d.limit.is_some() && !are_silent(cx, &source);
    Ok(Plan::Delete(Box::new(DeletePlan {
        foreign: ForeignKeys::of(cx.foreign(), &[(&d.table, Changed::Deleted)]),
        table: d.table,
        target: 0,
        source,
        limit: d.limit,
        ignore: d.ignore,
        collect,
    })))
}

pub(super) fn update_tables(cx: &OptimizeCx<'_>, u: UpdateTables) -> Result<Plan, SqlError> {
    let source = source(cx, u.source, false)?;
    let at_once = at_once(&source, &u.targets);
    let assigned = u.targets.iter().map(|t| {
        let columns = t.assignments.iter().map(|a| a.column);
        columns.collect::<Vec<usize>>()
    });
    let assigned: Vec<Vec<usize>> = assigned.collect();
    let roots = u.targets.iter().zip(&assigned);
    let roots: Vec<_> = roots
        .map(|(t, columns)| (&t.table, Changed::Updated(columns)))
        .collect();
    Ok(Plan::UpdateTables(Box::new(UpdateTablesPlan {
        foreign: ForeignKeys::of(cx.foreign(), &roots),
        source,
        targets: u.targets,
        at_once,
        ignore: u.ignore,
    })))
}

pub(super) fn delete_tables(cx: &OptimizeCx<'_>, d: DeleteTables) -> Result<Plan, SqlError> {
    let roots = d.targets.iter();
    let roots: Vec<_> = roots.map(|(table, _)| (table, Changed::Deleted)).collect();
    Ok(Plan::DeleteTables(Box::new(DeleteTablesPlan {
        foreign: ForeignKeys::of(cx.foreign(), &roots),
        source: source(cx, d.source, false)?,
        targets: d.targets,
        ignore: d.ignore,
    })))
}

/// Whether rows are collected before the first change regardless of the access path.
fn collects(source: &Block) -> bool {
    !source.order.is_empty() || !source.subqueries.is_empty()
}

/// Whether testing the conditions on the rows causes no warning and has no effect, and no change of
/// a row decides whether a later row passes.
fn are_silent(cx: &PlanCx<'_>, source: &Block) -> bool {
    source.joins.iter().all(|step| {
        let implied = &step.access.of_table().implied;
        implied.iter().chain(&step.filter).all(|e| is_silent(cx, e))
    })
}

/// Whether an assignment changes a column of the index by which the rows are found.
fn touches(table: &TableDef, index: usize, assignments: &[Assignment]) -> bool {
    let parts = table.indexes[index]
        .parts
        .iter()
        .chain(&table.indexes[0].parts);
    parts.into_iter().any(|p| {
        assignments.iter().any(|a| a.column == p.column)
            || table.columns[p.column].on_update_now.is_some()
            || table.columns[p.column].generated.is_some()
    })
}

/// Plans the block that finds the rows. Error 1175 with `sql_safe_updates` if no key finds them.
fn source(cx: &OptimizeCx<'_>, b: logical::Block, limited: bool) -> Result<Block, SqlError> {
    let block = super::block(cx, b, limited);
    let scans = |step: &JoinStep| {
        matches!(step.access.of_table().kind, AccessKind::Full) && block.changes(step.table)
    };
    if cx.safe_updates && !limited && block.joins.iter().any(scans) {
        let code = ErrorCode::ER_UPDATE_WITHOUT_KEY_IN_SAFE_MODE;
        return Err(SqlError::new(code, &[&""]));
    }
    Ok(block)
}

/// See [`UpdateTablesPlan::at_once`].
fn at_once(block: &Block, targets: &[UpdateTarget]) -> Option<usize> {
    let (first, later) = block.joins.split_first()?;
    let at = targets.iter().position(|t| t.slot == first.table)?;
    let target = &targets[at];
    let same = |s: &TableSource| matches!(s, TableSource::Table(t) if t.id == target.table.id);
    let named_twice = block.tables.iter().filter(|t| same(&t.source)).count() > 1;
    let moves = target.assigns_key(first.access.index) || target.assigns_key(0);
    if named_twice || moves && !is_one_row(&target.table, first) {
        return None;
    }
    // Changed rows must not affect which rows of the later tables match.
    let assigned = |e: &Expr| {
        e.as_column().is_some_and(|at| {
            usize::from(at.table) == target.slot
                && target
                    .assignments
                    .iter()
                    .any(|a| a.column == usize::from(at.column))
        })
    };
    let reads = |e: &Expr| e.any(&mut |e| assigned(e));
    let looks = |step: &JoinStep| {
        let found = match &step.access.kind {
            AccessKind::Hash { keys, .. } => keys.iter().any(|k| reads(&k.outer)),
            // The keys of a lookup are read once, before the row changes.
            AccessKind::Points(_) => false,
            _ => step.access.implied.iter().any(reads),
        };
        let ends = step.nested_join.iter().flat_map(|join| &join.ends);
        let tested = step.on.iter().chain(&step.filter);
        found || tested.chain(ends.flat_map(|end| &end.on)).any(reads)
    };
    (targets.len() == 1 || !later.iter().any(looks)).then_some(at)
}

/// Whether the access path finds at most one row, by constants.
fn is_one_row(table: &TableDef, step: &JoinStep) -> bool {
    let index = &table.indexes[step.access.index];
    let constant =
        |p: &PointPart| matches!(p, PointPart::Eq { expr, null_safe: false } if is_constant(expr));
    match &step.access.kind {
        AccessKind::Points(parts) => {
            index.is_unique() && parts.len() == index.parts.len() && parts.iter().all(constant)
        }
        _ => false,
    }
}
