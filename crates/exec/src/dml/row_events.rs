//! Row events of a replication source: finds the rows that they change, and changes them through
//! the pipeline.
//!
//! # Picture
//! ```text
//! TableMap ── columns compared with the table ── RowsEvent
//!    insert   values ─▶ image ─▶ pipeline
//!    update   old values ─▶ key ─▶ locked row ─▶ image with the new values ─▶ pipeline
//!    delete   old values ─▶ key ─▶ locked row ─▶ pipeline
//! ```
//! # Invariants
//! - E1. Each row of an event changes exactly one row. A row that is not found, or exists already,
//!   is an error that names the row.
//! - E1a. With [`ExpectedRows::AnyVersion`] the table may have newer rows than the source had, or
//!   lack some. An event sets its row to the new values: a missing row is inserted, other rows with
//!   one of its unique keys are deleted, and a row to delete may be missing. After the last event
//!   each row has the values of the newest event about it.
//! - E2. A table without a key whose columns are all in the event is read as a whole, and a row
//!   counts if all columns of the event are equal.

use std::sync::Arc;

use nfold_binlog::{RowChangeKind, RowValue, Rows, RowsEvent, TableMap, apply_diffs};
use nfold_catalog::{IndexDef, IndexKind, TableDef, Visibility};
use nfold_engine::{KeyRange, Read, ReadSpec, RowBatch, RowLock, Table};
use nfold_plan::row_event::RowEventPlan;
use nfold_types::{ColumnType, ErrorCode, SqlError, TypeKind, Value, ValueRef, wire};

use super::auto_increment::observe_updated;
use super::duplicate::{duplicate_error, index_keys, is_needed, read_locked};
use super::pipeline::{ROWS_PER_TICK, RowOutcome, TableChanges};
use crate::expr::eval::row_error;
use crate::operators::column_values::ColumnValues;
use crate::runtime::Runtime;

/// The longest text of a value in an error message, in bytes.
const SHOWN_BYTES: usize = 64;

/// Which rows an event may find (E1, E1a).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExpectedRows {
    /// Those that the source had.
    #[default]
    SourceVersion,
    /// Others, too.
    AnyVersion,
}

/// A table and an event that changes it.
struct Applying<'a, 's> {
    rt: &'a Runtime<'s>,
    table: Arc<Table>,
    /// For each column of the event, its ordinal in the table.
    columns: Vec<usize>,
    /// The columns that a found row must have in memory.
    needed: Vec<bool>,
    changes: TableChanges,
    values: ColumnValues,
    /// The key by which rows are found.
    key: Option<usize>,
    found: RowBatch,
    expected: ExpectedRows,
}

/// Applies the rows of an event. Returns their number.
///
/// # Errors
/// 1677 if a column has another type than on the source; 1032 and 1062 as in E1; errors of the
/// table's constraints and of the engine.
pub(crate) fn apply_row_event(
    rt: &Runtime<'_>,
    plan: &RowEventPlan,
    (map, event): (&TableMap, &RowsEvent),
    expected: ExpectedRows,
) -> Result<u64, SqlError> {
    let table = rt.table(plan.table.id)?;
    let columns = compare_columns(table.def(), map)?;
    let def = table.def().clone();
    let types: Vec<&ColumnType> = columns.iter().map(|&c| &def.columns[c].ty).collect();
    let partial = event.kind == RowChangeKind::PartialUpdate;
    let needed = |c: usize| is_needed(&def, c) || partial && def.columns[c].ty.is_json();
    let mut applying = Applying {
        rt,
        key: key_of(&def, &columns, event),
        needed: (0..def.columns.len()).map(needed).collect(),
        columns: columns.clone(),
        changes: TableChanges::new(
            rt,
            table.clone(),
            plan.exprs.as_ref(),
            plan.foreign.as_ref(),
            false,
        ),
        values: ColumnValues::new(rt, false, false),
        table,
        found: RowBatch::new(),
        expected,
    };
    let rows = event.rows(map, &types).map_err(damaged)?;
    match event.kind {
        RowChangeKind::Insert => applying.insert(rows),
        _ if applying.key.is_some() => applying.by_key(rows),
        _ if expected == ExpectedRows::AnyVersion => {
            let what = "events without a key while a copy is completed";
            Err(SqlError::not_supported(what))
        }
        _ => applying.by_scan(rows),
    }
}

fn damaged(e: nfold_binlog::BinlogError) -> SqlError {
    SqlError::with_message(ErrorCode::ER_REPLICA_CORRUPT_EVENT, e.to_string())
}

/// The table's columns in the order of the event. Hidden columns are not in events.
///
/// # Errors
/// 1677 for a column of another type; 1105 for another number of columns.
fn compare_columns(def: &TableDef, map: &TableMap) -> Result<Vec<usize>, SqlError> {
    let all = def.columns.iter().enumerate();
    let shown = all.filter(|(_, c)| c.visibility != Visibility::Hidden);
    let columns: Vec<usize> = shown.map(|(i, _)| i).collect();
    if columns.len() != map.columns.len() {
        let text = format!(
            "table '{}.{}' has {} columns on the source and {} here",
            def.schema,
            def.name,
            map.columns.len(),
            columns.len()
        );
        return Err(SqlError::with_message(ErrorCode::ER_UNKNOWN_ERROR, text));
    }
    for (n, (&c, format)) in columns.iter().zip(&map.columns).enumerate() {
        let column = &def.columns[c];
        let same_name = format
            .name
            .as_ref()
            .is_none_or(|name| **name == *column.name);
        if !format.stores(&column.ty) || !same_name {
            return Err(SqlError::new(
                ErrorCode::ER_REPLICA_CONVERSION_FAILED,
                &[&n, &def.schema, &def.name, &format.describe(), &column.ty],
            ));
        }
    }
    Ok(columns)
}

/// The key that finds the rows of an event: the primary key, or a unique one without NULLs.
fn key_of(def: &TableDef, columns: &[usize], event: &RowsEvent) -> Option<usize> {
    let in_event = |c: usize| {
        let at = columns.iter().position(|&column| column == c);
        at.is_some_and(|at| event.has_column(at))
    };
    let finds = |index: &IndexDef| {
        matches!(index.kind, IndexKind::Primary | IndexKind::Unique)
            && index.parts.iter().all(|part| {
                let column = &def.columns[part.column];
                !column.nullable && part.prefix_len.is_none() && in_event(part.column)
            })
    };
    def.indexes.iter().position(finds)
}

/// An old row of an event, and the values of its new image.
struct ChangedRow {
    old: Vec<RowValue>,
    new: Vec<RowValue>,
    done: bool,
}

impl Applying<'_, '_> {
    fn insert(&mut self, mut rows: Rows<'_>) -> Result<u64, SqlError> {
        let (mut row, mut unused, mut n) = (Vec::new(), Vec::new(), 0);
        let moves_counter = self.table.def().auto_increment_column().is_some();
        while rows.next(&mut row, &mut unused).map_err(damaged)? {
            n += 1;
            if n % ROWS_PER_TICK == 0 {
                self.rt.tick()?;
            }
            let def = self.table.def();
            let mut values = vec![None; def.columns.len()];
            for (value, &c) in row.iter_mut().zip(&self.columns) {
                if let RowValue::Value(value) = value {
                    values[c] = Some(std::mem::take(value));
                }
            }
            for (value, column) in values.iter_mut().zip(&def.columns) {
                if value.is_none() {
                    *value = Some(self.values.default_value(self.rt, column)?);
                }
            }
            self.insert_row(&values)?;
            if moves_counter {
                observe_updated(self.rt, &self.table, self.changes.inserted())?;
            }
        }
        Ok(n)
    }

    /// Inserts a row, given by column.
    fn insert_row(&mut self, values: &[Option<Value>]) -> Result<(), SqlError> {
        loop {
            let image = self.changes.begin_insert(false);
            let values = values
                .iter()
                .map(|v| v.as_ref().map_or(ValueRef::Null, Value::as_ref));
            let encoded = self.table.layout().encode(values, image);
            encoded.map_err(|e| row_error(&e))?;
            match self.changes.insert(self.rt)? {
                RowOutcome::Done => return Ok(()),
                RowOutcome::Duplicate { index } => {
                    let image = self.changes.inserted().to_vec();
                    self.make_room(index, &image)?;
                }
                RowOutcome::Refused(e) => return Err(e),
                RowOutcome::Gone => return Err(self.cannot_find("the inserted row")),
            }
        }
    }

    /// Deletes the row that has the same key in unique index `index` as `image` (E1a).
    ///
    /// # Errors
    /// 1062 if the event must not find such a row.
    fn make_room(&mut self, index: usize, image: &[u8]) -> Result<(), SqlError> {
        if self.expected == ExpectedRows::SourceVersion {
            return Err(duplicate_error(self.rt, &self.table, index, image));
        }
        let mut other = RowBatch::new();
        for key in index_keys(self.rt, &self.table, index, image)? {
            let needed = |c: usize| is_needed(self.table.def(), c);
            read_locked(self.rt, &self.table, (index, &key), needed, &mut other)?;
            for i in 0..other.len() {
                self.change(other.row(i), other.row_id(i), &[])?;
            }
        }
        Ok(())
    }

    /// Updates or deletes rows that a key finds.
    fn by_key(&mut self, mut rows: Rows<'_>) -> Result<u64, SqlError> {
        let (mut old, mut new, mut n) = (Vec::new(), Vec::new(), 0);
        let mut key = Vec::new();
        while rows.next(&mut old, &mut new).map_err(damaged)? {
            n += 1;
            if n % ROWS_PER_TICK == 0 {
                self.rt.tick()?;
            }
            if !self.find(&old, &mut key)? {
                self.change_missing(&old, &new)?;
                continue;
            }
            let found = std::mem::take(&mut self.found);
            let changed = self.change(found.row(0), found.row_id(0), &new);
            self.found = found;
            changed?;
        }
        Ok(n)
    }

    /// Handles an event about a row that does not exist.
    ///
    /// # Errors
    /// 1032 if the event must find it.
    fn change_missing(&mut self, old: &[RowValue], new: &[RowValue]) -> Result<(), SqlError> {
        if self.expected == ExpectedRows::SourceVersion {
            return Err(self.not_found(old));
        }
        if new.is_empty() {
            return Ok(());
        }
        let mut values = vec![None; self.table.def().columns.len()];
        for (value, &c) in new.iter().zip(&self.columns) {
            let RowValue::Value(value) = value else {
                let what = "events without whole rows while a copy is completed";
                return Err(SqlError::not_supported(what));
            };
            values[c] = Some(value.clone());
        }
        self.insert_row(&values)
    }

    /// Reads the row with the key of `old` into `self.found`, and locks it. Returns whether it
    /// exists.
    fn find(&mut self, old: &[RowValue], key: &mut Vec<u8>) -> Result<bool, SqlError> {
        let index = self.key.unwrap_or_default();
        let parts = &self.table.def().indexes[index].parts;
        let value = |column: usize| {
            let at = self.columns.iter().position(|&c| c == column);
            match at.map(|at| &old[at]) {
                Some(RowValue::Value(value)) => value.as_ref(),
                _ => ValueRef::Null,
            }
        };
        key.clear();
        let values = parts.iter().map(|part| value(part.column));
        let encoded = self.table.key_layout(index).encode_values(values, key);
        encoded.map_err(|e| SqlError::with_message(ErrorCode::ER_UNKNOWN_ERROR, e.to_string()))?;
        let mut found = std::mem::take(&mut self.found);
        let (needed, at) = (&self.needed, (index, &**key));
        let read = read_locked(self.rt, &self.table, at, |c| needed[c], &mut found);
        self.found = found;
        read?;
        Ok(self.found.len() == 1)
    }

    /// Changes a locked row: an update if there are new values, otherwise a delete.
    fn change(
        &mut self,
        image: &[u8],
        row_id: Option<u64>,
        new: &[RowValue],
    ) -> Result<(), SqlError> {
        if new.is_empty() {
            return match self.changes.delete(self.rt, image, row_id)? {
                RowOutcome::Refused(e) => Err(e),
                RowOutcome::Gone => Err(self.cannot_find("the row of a cascade")),
                RowOutcome::Done | RowOutcome::Duplicate { .. } => Ok(()),
            };
        }
        let layout = self.table.layout();
        let mut values: Vec<Option<Value>> = vec![None; self.table.def().columns.len()];
        for (value, &c) in new.iter().zip(&self.columns) {
            values[c] = match value {
                RowValue::Absent => None,
                RowValue::Value(value) => Some(value.clone()),
                RowValue::JsonDiffs(diffs) => {
                    let old = layout.get(image, c).map_err(|e| row_error(&e))?;
                    let old = old.as_bytes().unwrap_or_default();
                    Some(Value::Bytes(apply_diffs(old, diffs).map_err(damaged)?))
                }
            };
        }
        loop {
            let to = self.changes.begin_update(image, row_id);
            let changed = |c: usize| values[c].as_ref().map(Value::as_ref);
            let encoded = self.table.layout().encode_changed(image, changed, to);
            encoded.map_err(|e| row_error(&e))?;
            match self.changes.update(self.rt)? {
                RowOutcome::Done => break,
                RowOutcome::Duplicate { index } => {
                    let image = self.changes.updated().to_vec();
                    self.make_room(index, &image)?;
                }
                RowOutcome::Refused(e) => return Err(e),
                RowOutcome::Gone => return Err(self.cannot_find("the row of a cascade")),
            }
        }
        observe_updated(self.rt, &self.table, self.changes.updated()).map(drop)
    }

    /// Updates or deletes rows of a table without a suitable key (E2). Rows of the event that
    /// change a row that another one has changed need another pass.
    fn by_scan(&mut self, mut rows: Rows<'_>) -> Result<u64, SqlError> {
        let mut changed = Vec::new();
        loop {
            let (mut old, mut new) = (Vec::new(), Vec::new());
            if !rows.next(&mut old, &mut new).map_err(damaged)? {
                break;
            }
            changed.push(ChangedRow {
                old,
                new,
                done: false,
            });
        }
        let mut left = changed.len();
        while left > 0 {
            let before = left;
            left -= self.pass(&mut changed)?;
            if left == before {
                let missing = changed.iter().find(|row| !row.done);
                return Err(self.not_found(missing.map_or(&[], |row| &row.old)));
            }
        }
        Ok(changed.len() as u64)
    }

    /// Finds rows of the event in the whole table, and then changes them. Returns their number.
    fn pass(&mut self, rows: &mut [ChangedRow]) -> Result<usize, SqlError> {
        let spec = ReadSpec {
            lock: RowLock::Exclusive,
            columns: (0..self.table.def().columns.len()).collect(),
            ..ReadSpec::default()
        };
        let mut read = Read::range(self.table.clone(), spec, &KeyRange::all(), false);
        let mut batch = RowBatch::new();
        let mut found: Vec<(usize, Vec<u8>, Option<u64>)> = Vec::new();
        let mut left = rows.iter().filter(|row| !row.done).count();
        loop {
            batch.clear();
            let more = self.rt.read(&mut read, &mut batch)?;
            for i in 0..batch.len() {
                let mut at = None;
                if left > 0 {
                    at = self.equal_row(rows, batch.row(i))?;
                }
                match at {
                    Some(at) => {
                        rows[at].done = true;
                        left -= 1;
                        found.push((at, batch.row(i).to_vec(), batch.row_id(i)));
                    }
                    None => self.rt.release(&read, &batch, i),
                }
            }
            if !more || left == 0 {
                break;
            }
        }
        drop(read);
        for (at, image, row_id) in &found {
            self.change(image, *row_id, &rows[*at].new)?;
        }
        Ok(found.len())
    }

    /// The first row of the event that is still to be found and equals an image.
    fn equal_row(&self, rows: &[ChangedRow], image: &[u8]) -> Result<Option<usize>, SqlError> {
        for (at, row) in rows.iter().enumerate() {
            if !row.done && self.equals(&row.old, image)? {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    fn equals(&self, old: &[RowValue], image: &[u8]) -> Result<bool, SqlError> {
        for (value, &c) in old.iter().zip(&self.columns) {
            let RowValue::Value(value) = value else {
                continue;
            };
            let own = self.table.layout().get(image, c);
            let own = own.map_err(|e| row_error(&e))?;
            let same = match (own, value.as_ref()) {
                (ValueRef::DateTime(a), ValueRef::DateTime(b)) => a.packed() == b.packed(),
                (ValueRef::Time(a), ValueRef::Time(b)) => a.micros() == b.micros(),
                (ValueRef::Timestamp(a), ValueRef::Timestamp(b)) => a.micros() == b.micros(),
                (a, b) => a == b,
            };
            if !same {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Error 1032 with the values by which the row was looked for.
    fn not_found(&self, old: &[RowValue]) -> SqlError {
        let def = self.table.def();
        let key = self.key.map(|index| &def.indexes[index].parts);
        let mut shown = Vec::new();
        for (value, &c) in old.iter().zip(&self.columns) {
            let column = &def.columns[c];
            let wanted = key.is_none_or(|parts| parts.iter().any(|p| p.column == c));
            let RowValue::Value(value) = value else {
                continue;
            };
            if !wanted || column.ty.kind == TypeKind::Json {
                continue;
            }
            let mut text = Vec::new();
            match value {
                Value::Null => text.extend_from_slice(b"NULL"),
                value => {
                    let zone = self.rt.env.time_zone();
                    wire::display_text(value.as_ref(), &column.ty, zone, &mut text);
                }
            }
            text.truncate(SHOWN_BYTES);
            let text = String::from_utf8_lossy(&text).into_owned();
            shown.push(format!("{} = {text}", column.name));
        }
        self.cannot_find(&shown.join(", "))
    }

    fn cannot_find(&self, row: &str) -> SqlError {
        let def = self.table.def();
        let text = format!("Can't find record in '{}': {row}", def.name);
        SqlError::with_message(ErrorCode::ER_KEY_NOT_FOUND, text)
    }
}
