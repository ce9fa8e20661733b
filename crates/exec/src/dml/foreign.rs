//! Foreign keys: checks that a changed row has its parents, and restricts or cascades to its
//! children.
//!
//! # Invariants
//! - F1. A row and its index entries are changed before its parents or children are looked up. The
//!   engine's `KeyProbe` explains why no lock on the parent is needed then.
//! - F2. A cascade locks the rows of a child exclusively, and each of its changes is checked like
//!   that of a statement.

use std::sync::Arc;

use nfold_catalog::{ForeignKeyDef, ReferentialAction, TableDef};
use nfold_engine::{DeleteOp, KeyProbe, RowBatch, Table, UpdateOp, WriteOutcome};
use nfold_plan::foreign::{ChildKey, ForeignKeys, ParentIndex};
use nfold_types::key::KeyLayout;
use nfold_types::{ErrorCode, SqlError, TypeKind, ValueRef};

use super::change_log::{ChangeLog, change_kind};
use super::duplicate::{duplicate_error, index_key, is_needed, read_locked};
use super::row_exprs::RowExprs;
use crate::runtime::Runtime;

/// The maximum depth of cascades, the statement's own change included.
const MAX_DEPTH: usize = 15;

/// A foreign key with its table, as error messages show it.
fn described(child: &TableDef, key: &ForeignKeyDef) -> String {
    let quote = |name: &str| format!("`{}`", name.replace('`', "``"));
    format!(
        " ({}.{}, {})",
        quote(&child.schema),
        quote(&child.name),
        key.clause(child, quote)
    )
}

/// Error 1452: a row of `child` has no parent row.
pub fn no_referenced_row(child: &TableDef, key: &ForeignKeyDef) -> SqlError {
    SqlError::new(ErrorCode::ER_NO_REFERENCED_ROW_2, &[&described(child, key)])
}

/// Error 1451: a row of `child` refers to the changed row.
fn row_is_referenced(child: &TableDef, key: &ForeignKeyDef) -> SqlError {
    SqlError::new(ErrorCode::ER_ROW_IS_REFERENCED_2, &[&described(child, key)])
}

/// Whether IGNORE turns the error into a warning.
pub(super) fn is_refusal(error: &SqlError) -> bool {
    matches!(
        error.code,
        ErrorCode::ER_NO_REFERENCED_ROW_2 | ErrorCode::ER_ROW_IS_REFERENCED_2
    )
}

/// A row that has been changed.
#[derive(Clone, Copy, Default)]
pub(super) struct RowChange<'a> {
    /// The old image; `None` after an INSERT.
    pub old: Option<&'a [u8]>,
    /// The new image; `None` after a DELETE.
    pub new: Option<&'a [u8]>,
    /// The row that replaces a deleted one (REPLACE).
    pub replacement: Option<&'a [u8]>,
}

/// The cascade of changes that led to the current one.
struct Chain {
    /// Indexes in [`ForeignKeys::tables`].
    tables: Vec<usize>,
}

fn damaged(error: &dyn std::fmt::Display) -> SqlError {
    SqlError::with_message(ErrorCode::ER_UNKNOWN_ERROR, error.to_string())
}

fn value<'r>(table: &Table, row: &'r [u8], column: usize) -> Result<ValueRef<'r>, SqlError> {
    table.layout().get(row, column).map_err(|e| damaged(&e))
}

fn has_null(table: &Table, row: &[u8], columns: &[usize]) -> Result<bool, SqlError> {
    for &c in columns {
        if matches!(value(table, row, c)?, ValueRef::Null) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the columns have identical bytes in both rows. Strings that only their collation calls
/// equal count as different.
fn same_values(table: &Table, a: &[u8], b: &[u8], columns: &[usize]) -> Result<bool, SqlError> {
    for &c in columns {
        if value(table, a, c)? != value(table, b, c)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn encode(
    layout: &KeyLayout,
    table: &Table,
    row: &[u8],
    key: &mut Vec<u8>,
) -> Result<(), SqlError> {
    layout
        .encode_row(table.layout(), row, key)
        .map_err(|e| damaged(&e))
}

/// The probes of one table's parents. Each is created at its first use.
#[derive(Default)]
pub(super) struct Probes(Vec<Option<KeyProbe>>);

impl Probes {
    /// The probe of parent number `n`.
    fn of(
        &mut self,
        rt: &Runtime<'_>,
        n: usize,
        parent: &ParentIndex,
    ) -> Result<&mut KeyProbe, SqlError> {
        if self.0.len() <= n {
            self.0.resize_with(n + 1, || None);
        }
        Ok(match &mut self.0[n] {
            Some(probe) => probe,
            empty => empty.insert(KeyProbe::new(rt.table(parent.table)?, parent.index)),
        })
    }
}

/// Checks a row that was changed in the table with index `at`, and applies the change to its
/// children.
///
/// # Errors
/// 1452 without a parent row, 1451 if a child restricts the change, 3008 if the cascade is too
/// deep, and the errors of changing rows.
pub(super) fn check(
    rt: &Runtime<'_>,
    keys: &ForeignKeys,
    at: usize,
    table: &Arc<Table>,
    change: RowChange<'_>,
    probes: &mut Probes,
) -> Result<(), SqlError> {
    check_parents(rt, (keys, at), table, change, probes)?;
    if keys.tables[at].children.is_empty() {
        return Ok(());
    }
    let mut chain = Chain { tables: vec![at] };
    check_children(rt, keys, table, change, &mut chain)
}

fn check_parents(
    rt: &Runtime<'_>,
    (keys, at): (&ForeignKeys, usize),
    table: &Arc<Table>,
    change: RowChange<'_>,
    probes: &mut Probes,
) -> Result<(), SqlError> {
    let Some(new) = change.new else { return Ok(()) };
    for (n, key) in keys.tables[at].parents.iter().enumerate() {
        let def = &table.def().foreign_keys[key.key];
        if has_null(table, new, &def.columns)? {
            continue;
        }
        let Some(parent) = &key.parent else {
            return Err(no_referenced_row(table.def(), def));
        };
        if let Some(old) = change.old
            && same_values(table, old, new, &def.columns)?
        {
            continue;
        }
        let probe = probes.of(rt, n, parent)?;
        encode(&parent.layout, table, new, probe.key())?;
        if !rt.drive(|session| session.probe(probe))? {
            return Err(no_referenced_row(table.def(), def));
        }
    }
    Ok(())
}

/// Restricts or cascades to the children of a row of the last table in the chain.
fn check_children(
    rt: &Runtime<'_>,
    keys: &ForeignKeys,
    table: &Arc<Table>,
    change: RowChange<'_>,
    chain: &mut Chain,
) -> Result<(), SqlError> {
    let Some(old) = change.old else { return Ok(()) };
    let at = chain.tables.last().copied().unwrap_or_default();
    let mut key = Vec::new();
    for child in &keys.tables[at].children {
        if has_null(table, old, &child.referenced)? {
            continue;
        }
        if let Some(new) = change.new.or(change.replacement)
            && same_values(table, old, new, &child.referenced)?
        {
            continue;
        }
        key.clear();
        encode(&child.layout, table, old, &mut key)?;
        let def = child.def();
        let action = match change.new {
            Some(_) => def.on_update,
            None => def.on_delete,
        };
        // An update that would cascade back to a table of the chain is refused.
        let target = child
            .cascades_to
            .filter(|to| change.new.is_none() || !chain.tables.contains(to));
        match (action, target) {
            (ReferentialAction::Cascade | ReferentialAction::SetNull, Some(to)) => {
                let parent = (table, change.new);
                cascade(rt, keys, (child, to), (&key, action), parent, chain)?;
            }
            _ => restrict(rt, child, table, &key, change)?,
        }
    }
    Ok(())
}

/// Error 1451 if a child has the key.
fn restrict(
    rt: &Runtime<'_>,
    child: &ChildKey,
    table: &Arc<Table>,
    key: &[u8],
    change: RowChange<'_>,
) -> Result<(), SqlError> {
    // A row that refers to itself also restricts its own change.
    if let RowChange {
        old: Some(old),
        new: None,
        ..
    } = change
        && child.child.id == table.def().id
        && !has_null(table, old, &child.def().columns)?
    {
        let mut own = Vec::new();
        index_key(table, child.index, old, &mut own)?;
        if own.starts_with(key) {
            return Err(row_is_referenced(&child.child, child.def()));
        }
    }
    let mut probe = KeyProbe::new(rt.table(child.child.id)?, child.index);
    probe.key().extend_from_slice(key);
    match rt.drive(|session| session.probe(&mut probe))? {
        true => Err(row_is_referenced(&child.child, child.def())),
        false => Ok(()),
    }
}

/// Deletes the children with a key, or sets their columns to NULL or to the parent's new key.
fn cascade(
    rt: &Runtime<'_>,
    keys: &ForeignKeys,
    (child, to): (&ChildKey, usize),
    (key, action): (&[u8], ReferentialAction),
    (parent, new_parent): (&Arc<Table>, Option<&[u8]>),
    chain: &mut Chain,
) -> Result<(), SqlError> {
    let table = rt.table(child.child.id)?;
    let mut rows = RowBatch::new();
    read_locked(rt, &table, (child.index, key), used(&table), &mut rows)?;
    if rows.is_empty() {
        return Ok(());
    }
    if chain.tables.len() >= MAX_DEPTH {
        return Err(SqlError::new(
            ErrorCode::ER_FK_DEPTH_EXCEEDED,
            &[&MAX_DEPTH],
        ));
    }
    let mut now = RowBatch::new();
    for i in 0..rows.len() {
        rt.tick()?;
        let (mut old, row_id) = (rows.row(i), rows.row_id(i));
        if keys.revisits {
            // Another branch of the cascade may have changed the row since.
            if !read_again(rt, &table, old, row_id, &mut now)? {
                continue;
            }
            old = now.row(0);
        }
        let delete = new_parent.is_none() && action == ReferentialAction::Cascade;
        chain.tables.push(to);
        let done = match delete {
            true => delete_child(rt, keys, &table, (old, row_id), chain),
            false => {
                let source = match action {
                    ReferentialAction::SetNull => None,
                    _ => new_parent.map(|row| (parent, row)),
                };
                update_child(rt, keys, (child, &table), (old, row_id), source, chain)
            }
        };
        chain.tables.pop();
        done?;
    }
    Ok(())
}

/// Reads a locked row again. Returns false if it no longer exists.
pub(super) fn read_again(
    rt: &Runtime<'_>,
    table: &Arc<Table>,
    row: &[u8],
    row_id: Option<u64>,
    now: &mut RowBatch,
) -> Result<bool, SqlError> {
    let mut key = Vec::new();
    match row_id {
        Some(id) => key.extend_from_slice(&id.to_be_bytes()),
        None => index_key(table, 0, row, &mut key)?,
    }
    read_locked(rt, table, (0, &key), used(table), now)?;
    Ok(!now.is_empty())
}

/// The columns that a cascade reads. Long values of the others stay on their pages.
fn used(table: &Table) -> impl Fn(usize) -> bool {
    |c| is_needed(table.def(), c)
}

fn delete_child(
    rt: &Runtime<'_>,
    keys: &ForeignKeys,
    table: &Arc<Table>,
    (old, row_id): (&[u8], Option<u64>),
    chain: &mut Chain,
) -> Result<(), SqlError> {
    let mut op = DeleteOp::new(table.clone());
    op.row(old, row_id);
    rt.drive(|session| session.delete(&mut op))?;
    ChangeLog::add_cascaded(rt, table, change_kind::DELETE, [Some(old), None])?;
    let change = RowChange {
        old: Some(old),
        ..RowChange::default()
    };
    check_children(rt, keys, table, change, chain)
}

/// Sets the columns of a foreign key to the values of the parent's row `source`, or to NULL.
fn update_child(
    rt: &Runtime<'_>,
    keys: &ForeignKeys,
    (child, table): (&ChildKey, &Arc<Table>),
    (old, row_id): (&[u8], Option<u64>),
    source: Option<(&Arc<Table>, &[u8])>,
    chain: &mut Chain,
) -> Result<(), SqlError> {
    let def = child.def();
    let mut values = Vec::with_capacity(def.columns.len());
    for (n, column) in def.columns.iter().enumerate() {
        let new = match source {
            None => ValueRef::Null,
            Some((parent, row)) => value(parent, row, child.referenced[n])?,
        };
        if !fits(&new, &table.def().columns[*column].ty) {
            return Err(row_is_referenced(&child.child, def));
        }
        values.push(new);
    }
    let changed = |c| {
        let at = def.columns.iter().position(|f| *f == c)?;
        Some(values[at])
    };
    let mut op = UpdateOp::new(table.clone());
    let image = op.row(old, row_id);
    let encoded = table.layout().encode_changed(old, changed, image);
    encoded.map_err(|e| damaged(&e))?;
    let at = chain.tables.last().copied().unwrap_or_default();
    if let Some(mut exprs) = RowExprs::new(rt, keys.tables[at].exprs.as_ref(), false) {
        exprs.complete(rt, (table.def(), table.layout()), op.image_mut())?;
    }
    if let WriteOutcome::Duplicate { index } = rt.drive(|session| session.update(&mut op))? {
        return Err(duplicate_error(rt, table, index, op.image()));
    }
    let images = [Some(old), Some(op.image())];
    ChangeLog::add_cascaded(rt, table, change_kind::UPDATE, images)?;
    let change = RowChange {
        old: Some(old),
        new: Some(op.image()),
        ..RowChange::default()
    };
    check_parents(rt, (keys, at), table, change, &mut Probes::default())?;
    check_children(rt, keys, table, change, chain)
}

/// Whether a value of the parent's column fits the child's column: a string may be too long, a
/// number may have too many digits.
fn fits(value: &ValueRef<'_>, ty: &nfold_types::ColumnType) -> bool {
    let bytes: &[u8] = match (value, &ty.kind) {
        (ValueRef::Bytes(bytes), _) => bytes,
        (ValueRef::Decimal(d), TypeKind::Decimal { precision, scale }) => {
            let whole = u32::from(precision - scale);
            return d.int_digits() <= whole && !(ty.unsigned && d.is_negative());
        }
        (ValueRef::UInt(bits), TypeKind::Bit(n)) => return *n >= 64 || bits >> n == 0,
        (ValueRef::DateTime(d), TypeKind::DateTime(fsp)) => return has_digits(d.micros(), *fsp),
        (ValueRef::Timestamp(t), TypeKind::Timestamp(fsp)) => {
            let micros = t.micros().rem_euclid(1_000_000) as u32;
            return has_digits(micros, *fsp);
        }
        _ => return true,
    };
    match &ty.kind {
        TypeKind::Char(n) | TypeKind::VarChar(n) => {
            let within = ty.collation.known().char_prefix(bytes, *n as usize);
            within.len() == bytes.len()
        }
        TypeKind::Binary(n) | TypeKind::VarBinary(n) => bytes.len() <= *n as usize,
        _ => true,
    }
}

/// Whether microseconds have no more than `fsp` digits.
fn has_digits(micros: u32, fsp: u8) -> bool {
    micros.is_multiple_of(10u32.pow(6 - u32::from(fsp.min(6))))
}
