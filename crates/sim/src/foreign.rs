//! The foreign key of the simulated tables, and its checks after each change of a row, as the
//! executor makes them. A change of the child's `k` needs a parent; a change of the parent's id is
//! refused if there are children, or changes them.
//!
//! # Invariants
//! F1. A row is changed before its parent or its children are looked for.
//! F2. Other actors may run between any two steps of the checks, and between a change and its
//! checks.

use std::collections::VecDeque;
use std::sync::Arc;

use nfold_catalog::ReferentialAction;
use nfold_engine::{
    DeleteOp, EngineSession, KeyProbe, Read, RowBatch, RowLock, Stop, Table, UpdateOp, WriteOutcome,
};
use nfold_types::{Value, ValueRef};

use crate::actor::StepContext;
use crate::model::{Changes, Db, Row, Rows, difference, rows_with};
use crate::select::Wanted;
use crate::shape::{CHILD, ID, K, PARENT, decode, find, id_index, id_of};

/// The tables of the foreign key, and the checks of one changed row.
pub struct ForeignKey {
    parent: Arc<Table>,
    child: Arc<Table>,
    action: ReferentialAction,
    checks: VecDeque<Check>,
}

/// A step of the checks.
enum Check {
    /// There must be a parent with this id.
    Parent(i64, Box<KeyProbe>),
    /// There must be no child with this key.
    NoChild(i64, Box<KeyProbe>),
    /// The children with this key are locked, and get the new one.
    Children(i64, Option<i64>, Box<(Read, RowBatch)>),
    DeleteChild(i64, Box<DeleteOp>),
    UpdateChild(Arc<Row>, Box<UpdateOp>),
}

impl ForeignKey {
    /// The foreign key that a table of this name belongs to.
    pub fn of_table(name: &str, around: &StepContext<'_>) -> Result<Option<ForeignKey>, String> {
        let Some(action) = around
            .scale
            .foreign
            .filter(|_| name == PARENT || name == CHILD)
        else {
            return Ok(None);
        };
        Ok(Some(ForeignKey {
            parent: find(around.engine, PARENT)?,
            child: find(around.engine, CHILD)?,
            action,
            checks: VecDeque::new(),
        }))
    }

    /// Whether the changed row is checked, and its children are changed.
    pub fn is_done(&self) -> bool {
        self.checks.is_empty()
    }

    /// Begins the checks of a row of `table` that was `old` and is now `new`.
    pub fn begin(&mut self, table: &Arc<Table>, old: Option<&[u8]>, new: Option<&Row>) {
        let is_child = table.def().id == self.child.def().id;
        let column = if is_child { K } else { ID };
        let old = old.and_then(|image| match table.layout().get(image, column) {
            Ok(ValueRef::Int(v)) => Some(v),
            _ => None,
        });
        let new = new.and_then(|row| match row[column] {
            Value::Int(v) => Some(v),
            _ => None,
        });
        self.checks.clear();
        match (is_child, old, new) {
            _ if old == new => {}
            (true, _, Some(id)) => self.needs_parent(id),
            (false, Some(id), _) => self.has_children(id, new),
            _ => {}
        }
    }

    fn needs_parent(&mut self, id: i64) {
        let index = id_index(&self.parent);
        let probe = self.probe(&self.parent, index, id);
        self.checks.push_back(Check::Parent(id, probe));
    }

    fn has_children(&mut self, id: i64, new: Option<i64>) {
        let index = self.child.def().index("k").unwrap_or(0);
        if !self.action.changes_children() {
            let probe = self.probe(&self.child, index, id);
            self.checks.push_back(Check::NoChild(id, probe));
            return;
        }
        let wanted = Wanted::Equal(K, "k", Value::Int(id));
        let (read, ..) = wanted.read(&self.child, 0, false, |spec| {
            spec.lock = RowLock::Exclusive;
        });
        let found = Box::new((read, RowBatch::new()));
        self.checks.push_back(Check::Children(id, new, found));
    }

    fn probe(&self, table: &Arc<Table>, index: usize, id: i64) -> Box<KeyProbe> {
        let mut probe = KeyProbe::new(table.clone(), index);
        probe.key().extend(key(table, index, id));
        Box::new(probe)
    }

    /// Makes the next step of the checks. Returns whether the change of the row is allowed so far.
    /// The newest rows are `changes` upon `db`.
    pub fn go_on(
        &mut self,
        session: &mut EngineSession,
        db: &Db,
        changes: &mut Changes,
    ) -> Result<Result<bool, String>, Stop> {
        let children = |changes: &Changes, id: i64| {
            let mut rows = rows_with(db, changes, CHILD);
            rows.retain(|_, row| row[K] == Value::Int(id));
            rows
        };
        let verdict = match self.checks.front_mut() {
            None => Ok(true),
            Some(Check::Parent(id, probe)) => {
                let found = session.probe(probe)?;
                let expected = rows_with(db, changes, PARENT).contains_key(id);
                agree(found, expected, format_args!("parent {id}")).map(|()| found)
            }
            Some(Check::NoChild(id, probe)) => {
                let found = session.probe(probe)?;
                let expected = !children(changes, *id).is_empty();
                agree(found, expected, format_args!("a child of {id}")).map(|()| !found)
            }
            Some(Check::Children(id, new, found)) => {
                let (read, batch) = &mut **found;
                while read.next(session, batch)? {}
                let (expected, new) = (children(changes, *id), *new);
                let batch = std::mem::take(batch);
                self.change_children(&batch, &expected, new).map(|()| true)
            }
            Some(Check::DeleteChild(id, op)) => {
                session.delete(op)?;
                changes.insert((CHILD.into(), *id), None);
                Ok(true)
            }
            Some(Check::UpdateChild(row, op)) => {
                let done = session.update(op)? == WriteOutcome::Done;
                let row = row.clone();
                if let Some(id) = id_of(&row) {
                    changes.insert((CHILD.into(), id), Some(row.clone()));
                }
                if let Value::Int(id) = row[K] {
                    self.needs_parent(id);
                }
                match done {
                    true => Ok(true),
                    false => Err(format!("the cascade to {row:?} is a duplicate")),
                }
            }
        };
        self.checks.pop_front();
        if !matches!(verdict, Ok(true)) {
            self.checks.clear();
        }
        Ok(verdict)
    }

    /// Queues the changes of the locked children, which must be all that there are.
    fn change_children(
        &mut self,
        batch: &RowBatch,
        expected: &Rows,
        new: Option<i64>,
    ) -> Result<(), String> {
        let layout = self.child.layout();
        let mut found = Rows::new();
        for n in 0..batch.len() {
            let (image, row_id) = (batch.row(n), batch.row_id(n));
            let mut row = decode(layout, image).ok_or("a damaged row")?;
            let id = id_of(&row).ok_or("a row without an id")?;
            found.insert(id, Arc::new(row.clone()));
            if new.is_none() && self.action == ReferentialAction::Cascade {
                let mut op = Box::new(DeleteOp::new(self.child.clone()));
                op.row(image, row_id);
                self.checks.push_back(Check::DeleteChild(id, op));
                continue;
            }
            let new = new.filter(|_| self.action == ReferentialAction::Cascade);
            row[K] = new.map_or(Value::Null, Value::Int);
            let mut op = Box::new(UpdateOp::new(self.child.clone()));
            let out = op.row(image, row_id);
            let changed = |column| (column == K).then(|| row[K].as_ref());
            let encoded = layout.encode_changed(image, changed, out);
            encoded.map_err(|e| e.to_string())?;
            self.checks.push_back(Check::UpdateChild(Arc::new(row), op));
        }
        match &found == expected {
            true => Ok(()),
            false => Err(difference("children of a cascade", expected, &found)),
        }
    }
}

/// The prefix of an index's keys for this value of its first column.
fn key(table: &Table, index: usize, value: i64) -> Vec<u8> {
    let mut out = Vec::new();
    table
        .key_layout(index)
        .encode_values([ValueRef::Int(value)], &mut out)
        .expect("the model's keys fit the index");
    out
}

/// Compares what a probe has found with the newest rows (M8).
fn agree(found: bool, expected: bool, what: std::fmt::Arguments<'_>) -> Result<(), String> {
    match (found, expected) {
        (true, false) => Err(format!("a foreign key finds {what}, which does not exist")),
        (false, true) => Err(format!("a foreign key does not find {what}")),
        _ => Ok(()),
    }
}
