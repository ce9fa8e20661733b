//! Multi-table UPDATE and DELETE. One query block finds the joined rows; each row of a target table
//! is changed once.
//!
//! As in MySQL, the rows of the table that is read first change immediately, if such a change
//! cannot affect the rows found later. The other tables change after all rows have been read, by
//! values computed at that time.

use std::sync::Arc;

use nfold_catalog::TableDef;
use nfold_sql::ast::{self, ColumnRef, ObjectName, TableRef};
use nfold_types::{ErrorCode, SqlError};

use super::dml::{assigned, find_rows, refuse_own_table};
use super::names::display;
use super::{BindCx, BlockBinder};
use crate::logical::clauses::{Assignment, UpdateTarget};
use crate::logical::column_uses::ColumnAccess;
use crate::logical::expr::ColumnAt;
use crate::logical::query::{QueryBody, Source};
use crate::logical::statement::{DeleteTables, Statement, UpdateTables};

pub(super) fn update(cx: &BindCx<'_>, u: &ast::Update) -> Result<Statement, SqlError> {
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
    let conditions = b.where_conditions(&mut info, u.selection.as_ref())?;
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
        b.mark_used(slot, column);
        b.name_column(at, ColumnAccess::Update);
        let assignment = Assignment {
            column,
            value: assigned(&mut b, &a.value, (&table, column))?,
        };
        match targets.iter_mut().find(|t| t.slot == slot) {
            Some(target) => target.assignments.push(assignment),
            None => targets.push(UpdateTarget {
                table,
                slot,
                assignments: vec![assignment],
                exprs: None,
            }),
        }
    }
    targets.sort_by_key(|t| t.slot);
    refuse_moved_twice(&b, &targets)?;
    for target in &targets {
        // MySQL's message names the first table, whichever table the subquery reads.
        refuse_own_table(&target.table, &b.scope[0].alias, &b.subqueries)?;
    }
    let changed = targets.iter().fold(0, |set, t| set | 1 << t.slot);
    let source = find_rows(cx, b, info, conditions, changed);
    Ok(Statement::UpdateTables(Box::new(UpdateTables {
        source,
        targets,
        ignore: u.ignore,
    })))
}

/// The column that an assignment sets.
fn place(b: &BlockBinder<'_>, c: &ColumnRef) -> Result<ColumnAt, SqlError> {
    let unknown = || SqlError::new(ErrorCode::ER_BAD_FIELD_ERROR, &[&display(c), &b.clause]);
    b.find(c)?.ok_or_else(unknown)
}

/// The table of an assigned column. Errors 1288 and 1348 if it cannot be updated. `alone`: the
/// statement has no join.
fn changeable(b: &BlockBinder<'_>, at: ColumnAt, alone: bool) -> Result<Arc<TableDef>, SqlError> {
    let slot = usize::from(at.table);
    let (mut alias, mut source) = (&b.tables[slot].alias, &b.tables[slot].source);
    if let Source::Table(table) = source {
        return Ok(table.clone());
    }
    let mut column = at.column;
    // MySQL merges simple derived tables, and its message names the table inside.
    while let Source::Derived(q) = source
        && !(alone && b.tables.len() == 1)
        && let (true, QueryBody::Block(block)) = (q.is_merged(), &q.body)
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

/// Error 1706 if a table is updated under two aliases and its primary key changes.
fn refuse_moved_twice(b: &BlockBinder<'_>, targets: &[UpdateTarget]) -> Result<(), SqlError> {
    for (n, one) in targets.iter().enumerate() {
        for other in &targets[n + 1..] {
            let moves = |t: &UpdateTarget| t.assigns_key(0);
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

pub(super) fn delete(cx: &BindCx<'_>, d: &ast::Delete) -> Result<Statement, SqlError> {
    let slots = slots_of(cx.db, d)?;
    let mut b = BlockBinder::new(cx, None);
    let mut info = b.from(&d.from)?;
    let mut targets = Vec::with_capacity(slots.len());
    for slot in slots {
        let Source::Table(table) = &b.tables[slot].source else {
            return Err(SqlError::new(
                ErrorCode::ER_NON_UPDATABLE_TABLE,
                &[&b.tables[slot].alias, &"DELETE"],
            ));
        };
        targets.push((table.clone(), slot));
    }
    let conditions = b.where_conditions(&mut info, d.selection.as_ref())?;
    for (table, slot) in &targets {
        refuse_own_table(table, &b.scope[*slot].alias, &b.subqueries)?;
    }
    let changed = targets.iter().fold(0, |set, (_, slot)| set | 1 << slot);
    let source = find_rows(cx, b, info, conditions, changed);
    Ok(Statement::DeleteTables(Box::new(DeleteTables {
        source,
        targets,
        ignore: d.ignore,
    })))
}

/// A table of FROM, for the lookup of DELETE targets.
struct Named<'a> {
    /// The alias if there is one, otherwise the table's name.
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
        TableRef::JsonTable(t) => out.push(Named {
            name: &t.alias.value,
            schema: None,
            aliased: true,
        }),
        TableRef::Join(j) => {
            named(&j.left, out);
            named(&j.right, out);
        }
    }
}

/// The slots of the targets of a DELETE. A target without a database means an alias, or a table of
/// the current database. A target with a database means a table that has no alias.
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
