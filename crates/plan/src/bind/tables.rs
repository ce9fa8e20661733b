//! UPDATE and DELETE of several tables: one query block finds the joined rows, of which each table's row is changed once.
//!
//! As in MySQL, the table that is read first changes at once, where no later row is found by what changes; what the others become is computed
//! from rows as they were read.

use std::sync::Arc;

use nfold_catalog::TableDef;
use nfold_sql::ast::{self, ColumnRef, ObjectName, TableRef};
use nfold_types::{ErrorCode, SqlError};

use super::dml::{conditions, found, refuse_own_table, value};
use super::names::display;
use super::{BindCx, BlockBinder};
use crate::foreign::{Changed, ForeignKeys};
use crate::logical::expr::{ColumnAt, Expr, is_constant};
use crate::query::{
    AccessKind, Assignment, Block, DeleteTablesPlan, JoinStep, Plan, PointPart, QueryBody,
    TableSource, UpdateTablesPlan, UpdateTarget,
};

pub(super) fn update(cx: &BindCx<'_>, u: &ast::Update) -> Result<Plan, SqlError> {
    let mut b = BlockBinder::new(cx, None);
    let mut info = b.from(&u.tables)?;
    for (there, what) in [
        (!u.order_by.is_empty(), "ORDER BY"),
        (u.limit.is_some(), "LIMIT"),
    ] {
        if there {
            return Err(SqlError::new(
                ErrorCode::ER_WRONG_USAGE,
                &[&"UPDATE", &what],
            ));
        }
    }
    let conditions = conditions(&mut b, &mut info, u.selection.as_ref())?;
    b.clause = "field list";
    let places = u
        .assignments
        .iter()
        .map(|a| place(&b, &a.column))
        .collect::<Result<Vec<_>, _>>()?;
    let mut targets: Vec<UpdateTarget> = Vec::new();
    for (a, at) in u.assignments.iter().zip(places) {
        let (slot, column) = (usize::from(at.table), usize::from(at.column));
        let table = changeable(&b, at, matches!(u.tables.as_slice(), [_]))?;
        let assignment = Assignment {
            column,
            value: value(&mut b, &a.value, &table.columns[column])?,
        };
        match targets.iter_mut().find(|t| t.slot == slot) {
            Some(target) => target.assignments.push(assignment),
            None => targets.push(UpdateTarget {
                table,
                slot,
                assignments: vec![assignment],
            }),
        }
    }
    targets.sort_by_key(|t| t.slot);
    refuse_moved_twice(&b, &targets)?;
    for target in &targets {
        // MySQL names the first table, whichever is meant.
        refuse_own_table(&target.table, &b.scope[0].alias, &b.subqueries)?;
    }
    let changed = targets.iter().fold(0, |set, t| set | 1 << t.slot);
    let source = found(cx, b, info, conditions, (Vec::new(), false), changed)?;
    let at_once = at_once(&source, &targets);
    let assigned = targets.iter().map(|t| {
        let columns = t.assignments.iter().map(|a| a.column);
        columns.collect::<Vec<usize>>()
    });
    let assigned: Vec<Vec<usize>> = assigned.collect();
    let roots = targets.iter().zip(&assigned);
    let roots: Vec<_> = roots
        .map(|(t, columns)| (&t.table, Changed::Updated(columns)))
        .collect();
    Ok(Plan::UpdateTables(Box::new(UpdateTablesPlan {
        foreign: ForeignKeys::of(cx.foreign(), &roots),
        source,
        targets,
        at_once,
        ignore: u.ignore,
    })))
}

/// The column that is assigned to.
fn place(b: &BlockBinder<'_>, c: &ColumnRef) -> Result<ColumnAt, SqlError> {
    let unknown = || SqlError::new(ErrorCode::ER_BAD_FIELD_ERROR, &[&display(c), &b.clause]);
    b.find(c)?.ok_or_else(unknown)
}

/// The table of a column that is assigned to. Errors 1288 and 1348; `alone`: nothing is joined.
fn changeable(b: &BlockBinder<'_>, at: ColumnAt, alone: bool) -> Result<Arc<TableDef>, SqlError> {
    let slot = usize::from(at.table);
    let (mut alias, mut source) = (&b.tables[slot].alias, &b.tables[slot].source);
    if let TableSource::Table(table) = source {
        return Ok(table.clone());
    }
    let mut column = at.column;
    // MySQL merges simple derived tables into the statement: what it names then stands inside of them.
    while let TableSource::Derived(q) = source
        && !(alone && b.tables.len() == 1)
        && let QueryBody::Block(block) = &q.body
        && q.limit.is_none()
        && block.group.is_none()
        && !block.distinct
        && !block.tables.is_empty()
    {
        let Some(inner) = block.select[usize::from(column)].as_column() else {
            let name = &b.scope[slot].columns[usize::from(at.column)].name;
            return Err(SqlError::new(ErrorCode::ER_NONUPDATEABLE_COLUMN, &[name]));
        };
        let inner_slot = &block.tables[usize::from(inner.table)];
        (alias, source, column) = (&inner_slot.alias, &inner_slot.source, inner.column);
    }
    Err(SqlError::new(
        ErrorCode::ER_NON_UPDATABLE_TABLE,
        &[alias, &"UPDATE"],
    ))
}

/// Error 1706: a table is changed under two names, and its primary key under one of them.
fn refuse_moved_twice(b: &BlockBinder<'_>, targets: &[UpdateTarget]) -> Result<(), SqlError> {
    for (n, one) in targets.iter().enumerate() {
        for other in &targets[n + 1..] {
            let moves = |t: &UpdateTarget| assigns_key(t, 0);
            if one.table.id == other.table.id && (moves(one) || moves(other)) {
                return Err(SqlError::new(
                    ErrorCode::ER_MULTI_UPDATE_KEY_CONFLICT,
                    &[&b.scope[one.slot].alias, &b.scope[other.slot].alias],
                ));
            }
        }
    }
    Ok(())
}

/// Whether a column of the index is assigned to.
fn assigns_key(target: &UpdateTarget, index: usize) -> bool {
    let mut parts = target.table.indexes[index].parts.iter();
    parts.any(|p| target.assignments.iter().any(|a| a.column == p.column))
}

/// See [`UpdateTablesPlan::at_once`].
fn at_once(block: &Block, targets: &[UpdateTarget]) -> Option<usize> {
    let (first, later) = block.joins.split_first()?;
    let at = targets.iter().position(|t| t.slot == first.table)?;
    let target = &targets[at];
    let same = |s: &TableSource| matches!(s, TableSource::Table(t) if t.id == target.table.id);
    let named_twice = block.tables.iter().filter(|t| same(&t.source)).count() > 1;
    let moves = assigns_key(target, first.access.index) || assigns_key(target, 0);
    if named_twice || moves && !is_one_row(&target.table, first) {
        return None;
    }
    // Whether a row of another table matches must not depend on what was assigned for the one before.
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
            // Keys that are looked up are looked up once.
            AccessKind::Points(_) => false,
            _ => step.access.implied.iter().any(reads),
        };
        let ends = step.nest.iter().flat_map(|nest| &nest.ends);
        let tested = step.on.iter().chain(&step.filter);
        found || tested.chain(ends.flat_map(|end| &end.on)).any(reads)
    };
    (targets.len() == 1 || !later.iter().any(looks)).then_some(at)
}

/// Whether constants name one row.
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

pub(super) fn delete(cx: &BindCx<'_>, d: &ast::Delete) -> Result<Plan, SqlError> {
    let slots = slots_of(cx.db, d)?;
    let mut b = BlockBinder::new(cx, None);
    let mut info = b.from(&d.from)?;
    let mut targets = Vec::with_capacity(slots.len());
    for slot in slots {
        let TableSource::Table(table) = &b.tables[slot].source else {
            return Err(SqlError::new(
                ErrorCode::ER_NON_UPDATABLE_TABLE,
                &[&b.tables[slot].alias, &"DELETE"],
            ));
        };
        targets.push((table.clone(), slot));
    }
    let conditions = conditions(&mut b, &mut info, d.selection.as_ref())?;
    for (table, slot) in &targets {
        refuse_own_table(table, &b.scope[*slot].alias, &b.subqueries)?;
    }
    let changed = targets.iter().fold(0, |set, (_, slot)| set | 1 << slot);
    let source = found(cx, b, info, conditions, (Vec::new(), false), changed)?;
    let roots: Vec<_> = targets
        .iter()
        .map(|(table, _)| (table, Changed::Deleted))
        .collect();
    Ok(Plan::DeleteTables(Box::new(DeleteTablesPlan {
        foreign: ForeignKeys::of(cx.foreign(), &roots),
        source,
        targets,
        ignore: d.ignore,
    })))
}

/// A table of FROM as DELETE's list sees it.
struct Named<'a> {
    /// Alias, or name.
    name: &'a str,
    schema: Option<&'a str>,
    aliased: bool,
}

fn named<'a>(t: &'a TableRef, out: &mut Vec<Named<'a>>) {
    match t {
        TableRef::Table(f) => out.push(Named {
            name: &f.alias.as_ref().unwrap_or(&f.name.name).value,
            schema: f.name.schema.as_ref().map(|s| s.value.as_str()),
            aliased: f.alias.is_some(),
        }),
        TableRef::Derived { alias, .. } => out.push(Named {
            name: &alias.value,
            schema: None,
            aliased: true,
        }),
        TableRef::Join(j) => {
            named(&j.left, out);
            named(&j.right, out);
        }
    }
}

/// The slots of the tables in DELETE's list: an alias stands without a database, a table's own name means that of its database.
///
/// # Errors
/// 1046, 1066, 1109.
fn slots_of(db: Option<&str>, d: &ast::Delete) -> Result<Vec<usize>, SqlError> {
    let mut from = Vec::new();
    d.from.iter().for_each(|t| named(t, &mut from));
    let no_db = || SqlError::new(ErrorCode::ER_NO_DB_ERROR, &[]);
    let twice = |name: &str| SqlError::new(ErrorCode::ER_NONUNIQ_TABLE, &[&name]);
    let schema_of = |target: &'_ ObjectName| -> Result<String, SqlError> {
        let own = target.schema.as_ref().map(|s| s.value.as_str());
        own.or(db).map(str::to_string).ok_or_else(no_db)
    };
    let mut schemas: Vec<String> = Vec::with_capacity(d.targets.len());
    for target in &d.targets {
        let schema = schema_of(target)?;
        let before = d.targets.iter().zip(&schemas);
        let same =
            |(t, s): (&ObjectName, &String)| t.name.value == target.name.value && *s == schema;
        if before.into_iter().any(same) {
            return Err(twice(&target.name.value));
        }
        schemas.push(schema);
    }
    let mut slots = Vec::with_capacity(d.targets.len());
    for (target, schema) in d.targets.iter().zip(&schemas) {
        let means = |t: &Named<'_>| {
            *t.name == *target.name.value
                && match t.aliased {
                    true => target.schema.is_none(),
                    false => t.schema.or(db) == Some(schema),
                }
        };
        let mut meant = from.iter().enumerate().filter(|(_, t)| means(t));
        match (meant.next(), meant.next()) {
            (Some((slot, _)), None) => slots.push(slot),
            (Some(_), Some(_)) => return Err(twice(&target.name.value)),
            (None, _) => {
                return Err(SqlError::new(
                    ErrorCode::ER_UNKNOWN_TABLE,
                    &[&target.name.value, &"MULTI DELETE"],
                ));
            }
        }
    }
    Ok(slots)
}
