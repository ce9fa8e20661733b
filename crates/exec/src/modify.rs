//! UPDATE and DELETE: rows are found under exclusive locks and changed one by one.
//!
//! Where the change could move rows within the index that is being read, or ORDER BY decides which are changed, all rows are found
//! before the first is changed (no row is met twice).

use std::sync::Arc;

use nfold_engine::{
    DeleteOp, PointSet, Read, ReadSpec, RowBatch, RowLock, Table, UpdateOp, WriteOutcome,
};
use nfold_plan::expr::ExprKind;
use nfold_plan::query::{Assignment, Block, DeletePlan, LimitPlan, UpdatePlan};
use nfold_types::{ErrorCode, Level, SqlError, Value, ValueRef};

use crate::block::{BlockExec, Limits};
use crate::eval::{EvalCx, RowRef, Scope, StmtState, row_error};
use crate::runtime::Runtime;
use crate::sort::Sorter;
use crate::spill::Spool;
use crate::statement::StatementResult;
use crate::step::RowRefs;
use crate::store::{self, Storing, now_value};
use crate::subquery::{BlockSubqueries, KeptSubquery};
use crate::tuple::KeyMaker;

/// With IGNORE an error becomes a warning.
pub(crate) fn fail_or_warn(
    rt: &Runtime<'_>,
    ignore: bool,
    error: SqlError,
) -> Result<(), SqlError> {
    if !ignore {
        return Err(error);
    }
    rt.warnings.borrow_mut().push_error(Level::Warning, &error);
    Ok(())
}

/// Appends the key of a row in an index of its table.
pub(crate) fn index_key(
    table: &Table,
    index: usize,
    image: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), SqlError> {
    let key = table.key_layout(index);
    key.encode_row(table.layout(), image, out)
        .map_err(|e| SqlError::with_message(ErrorCode::ER_UNKNOWN_ERROR, e.to_string()))
}

/// Locks and reads the rows with this key in an index, into `out`.
pub(crate) fn read_locked(
    rt: &Runtime<'_>,
    table: &Arc<Table>,
    index: usize,
    key: &[u8],
    out: &mut RowBatch,
) -> Result<(), SqlError> {
    let mut points = PointSet::new();
    points.push(key);
    points.seal();
    let spec = ReadSpec {
        index,
        lock: RowLock::Exclusive,
        columns: (0..table.def().columns.len()).collect(),
        ..ReadSpec::default()
    };
    let mut read = Read::points(table.clone(), spec, points);
    out.clear();
    while rt.read(&mut read, out)? {}
    Ok(())
}

/// Makes new row images by assignments.
pub(crate) struct Assigner<'p> {
    table: &'p Arc<Table>,
    assignments: &'p [Assignment],
    /// The row slot of what is changed.
    slot: usize,
    /// An assignment looks at a column that one to its left has changed.
    sequential: bool,
    /// Columns with ON UPDATE that no assignment names.
    stamps: Vec<(usize, u8)>,
}

impl<'p> Assigner<'p> {
    /// Slot 0 is what is changed; each assignment sees what those to its left have made.
    pub fn new(table: &'p Arc<Table>, assignments: &'p [Assignment]) -> Assigner<'p> {
        Assigner::of_slot(table, assignments, 0)
    }

    /// As [`Self::new`], for any slot.
    pub fn of_slot(
        table: &'p Arc<Table>,
        assignments: &'p [Assignment],
        slot: usize,
    ) -> Assigner<'p> {
        let sequential = assignments.iter().enumerate().any(|(n, a)| {
            let before = &assignments[..n];
            a.value.as_ref().is_some_and(|e| {
                e.any(&mut |e| {
                    matches!(e.kind, ExprKind::Column(at)
                        if usize::from(at.table) == slot && before.iter().any(|b| b.column == usize::from(at.column)))
                })
            })
        });
        let stamps = table
            .def()
            .columns
            .iter()
            .enumerate()
            .filter(|(c, _)| !assignments.iter().any(|a| a.column == *c))
            .filter_map(|(c, d)| d.on_update_now.map(|fsp| (c, fsp)))
            .collect();
        Assigner {
            table,
            assignments,
            slot,
            sequential,
            stamps,
        }
    }

    /// Whether a value of AUTO_INCREMENT is assigned.
    pub fn changes_auto_increment(&self) -> bool {
        let auto = self.table.def().auto_increment_column();
        self.assignments.iter().any(|a| Some(a.column) == auto)
    }

    /// All assignments see the row as it was.
    pub fn together(mut self) -> Assigner<'p> {
        self.sequential = false;
        self
    }

    /// Appends the new image of `old` to `out`; false: nothing changes. `around`: the slots of the expressions, of which that of the row is replaced.
    #[allow(clippy::too_many_arguments)]
    pub fn apply(
        &self,
        rt: &Runtime<'_>,
        storing: &Storing,
        state: &StmtState<'_>,
        old: &[u8],
        around: &[RowRef<'_>],
        row: u64,
        out: &mut Vec<u8>,
    ) -> Result<bool, SqlError> {
        let def = self.table.def();
        let mut changed: Vec<(usize, Value)> =
            Vec::with_capacity(self.assignments.len() + self.stamps.len());
        let mut between = Vec::new();
        for a in self.assignments {
            if self.sequential && !changed.is_empty() {
                between.clear();
                self.encode(old, &changed, &mut between)?;
            }
            let image = if between.is_empty() { old } else { &between };
            let mut rows = RowRefs::from_slice(around);
            rows[self.slot] = self.slot_of(Some(image));
            let cx = EvalCx {
                rows: &rows,
                outer: &[],
                st: state,
            };
            let column = &def.columns[a.column];
            let mut value = match &a.value {
                None => storing.default_value(rt, column)?,
                Some(e) => {
                    let v = cx.val(e)?;
                    storing.store(rt, &cx, column, v, &e.ty, row)?
                }
            };
            if value.is_null() && !column.nullable {
                value = storing.null(rt, column)?;
            }
            changed.retain(|(c, _)| *c != a.column);
            changed.push((a.column, value));
        }
        self.finish(rt, old, changed, out)
    }

    /// A row of the table, or none, as a slot.
    pub fn slot_of<'a>(&'a self, image: Option<&'a [u8]>) -> RowRef<'a> {
        RowRef {
            layout: self.table.layout(),
            image,
            places: None,
        }
    }

    /// Appends `now` to `out` with what was assigned in `made`; false: nothing changes.
    pub fn carry_over(
        &self,
        rt: &Runtime<'_>,
        now: &[u8],
        made: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool, SqlError> {
        let layout = self.table.layout();
        let mut changed = Vec::with_capacity(self.assignments.len() + self.stamps.len());
        for a in self.assignments {
            let value = layout.get(made, a.column).map_err(|e| row_error(&e))?;
            changed.push((a.column, value.to_owned()));
        }
        self.finish(rt, now, changed, out)
    }

    /// Appends `old` to `out` with these values, and with ON UPDATE if they change anything.
    fn finish(
        &self,
        rt: &Runtime<'_>,
        old: &[u8],
        mut changed: Vec<(usize, Value)>,
        out: &mut Vec<u8>,
    ) -> Result<bool, SqlError> {
        self.encode(old, &changed, out)?;
        if out.as_slice() == old {
            return Ok(false);
        }
        if !self.stamps.is_empty() {
            let def = self.table.def();
            for &(c, fsp) in &self.stamps {
                changed.push((c, now_value(rt, &def.columns[c], fsp)));
            }
            out.clear();
            self.encode(old, &changed, out)?;
        }
        Ok(true)
    }

    fn encode(
        &self,
        old: &[u8],
        changed: &[(usize, Value)],
        out: &mut Vec<u8>,
    ) -> Result<(), SqlError> {
        let layout = self.table.layout();
        let mut values = Vec::with_capacity(layout.columns().len());
        for c in 0..layout.columns().len() {
            values.push(match changed.iter().find(|(n, _)| *n == c) {
                Some((_, v)) => v.as_ref(),
                None => layout.get(old, c).map_err(|e| row_error(&e))?,
            });
        }
        layout.encode(values, out).map_err(|e| row_error(&e))
    }
}

/// Calls `f` with each row to change, its hidden row id and its number from 1, in order and up to the limit.
fn each_row(
    rt: &Runtime<'_>,
    block: &Block,
    exec: &mut Option<Box<BlockExec>>,
    limit: Option<&LimitPlan>,
    collect: bool,
    f: &mut dyn FnMut(&[u8], Option<u64>, u64) -> Result<(), SqlError>,
) -> Result<(), SqlError> {
    let limits = Limits::new(rt, limit)?;
    if limits.count == 0 {
        return Ok(());
    }
    if exec.is_none() {
        *exec = Some(Box::new(BlockExec::open(rt, block, limits)?));
    }
    let Some(exec) = exec else { return Ok(()) };
    let mut n = 0u64;
    if !collect {
        return exec.batches(rt, block, &mut |_, batch| {
            for &i in &batch.selected {
                n += 1;
                f(batch.read.row(i as usize), batch.read.row_id(i as usize), n)?;
                if n == limits.count {
                    return Ok(false);
                }
            }
            Ok(true)
        });
    }
    let maker = KeyMaker::of_order(
        block.order.iter().map(|k| (&k.expr.ty, k.desc)),
        rt.env.max_sort_length(),
    );
    let mut spool = Spool::new(rt.env.work_memory());
    let mut sorter = (!block.order.is_empty()).then(|| Sorter::new(rt.env.work_memory(), 0));
    let (mut key, mut record) = (Vec::new(), Vec::new());
    exec.batches(rt, block, &mut |scx, batch| {
        for &i in &batch.selected {
            let image = batch.read.row(i as usize);
            // Row ids begin at 1.
            let row_id = batch.read.row_id(i as usize).unwrap_or(0);
            match &mut sorter {
                Some(sorter) => {
                    let mut slots = scx.empty_rows();
                    slots[block.joins[0].table] = scx.slots[block.joins[0].table].row(Some(image));
                    let cx = scx.eval(&slots);
                    key.clear();
                    for (n, k) in block.order.iter().enumerate() {
                        maker.push(n, &cx.val(&k.expr)?, &mut key)?;
                    }
                    record.clear();
                    record.extend_from_slice(&row_id.to_le_bytes());
                    record.extend_from_slice(image);
                    sorter.push(rt, &key, &record)?;
                }
                None => {
                    n += 1;
                    spool.push(rt, row_id, image)?;
                    if n == limits.count {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    })?;
    n = 0;
    let mut one = |row_id: u64, image: &[u8]| -> Result<bool, SqlError> {
        n += 1;
        f(image, (row_id != 0).then_some(row_id), n)?;
        Ok(n < limits.count)
    };
    let Some(sorter) = sorter else {
        return spool.each(rt, &mut one);
    };
    let mut sorted = sorter.finish(rt)?;
    while let Some((_, record)) = sorted.next(rt)? {
        let Some((id, image)) = record.split_first_chunk::<8>() else {
            continue;
        };
        if !one(u64::from_le_bytes(*id), image)? {
            break;
        }
    }
    Ok(())
}

/// Takes note of an updated row's AUTO_INCREMENT value, so that it is not given out again; tells what it is.
pub(crate) fn observe(
    rt: &Runtime<'_>,
    table: &Arc<Table>,
    image: &[u8],
) -> Result<Option<u64>, SqlError> {
    let Some(c) = table.def().auto_increment_column() else {
        return Ok(None);
    };
    let v = match table.layout().get(image, c) {
        Ok(ValueRef::Int(v)) => match u64::try_from(v) {
            Ok(v) => v,
            Err(_) => return Ok(Some(v as u64)),
        },
        Ok(ValueRef::UInt(v)) => v,
        _ => return Ok(None),
    };
    rt.drive(|_| table.auto_increment_observe(v))?;
    Ok(Some(v))
}

pub(crate) fn update(
    rt: &Runtime<'_>,
    plan: &UpdatePlan,
    exec: &mut Option<Box<BlockExec>>,
) -> Result<StatementResult, SqlError> {
    let table = rt.table(plan.table.id)?;
    let storing = Storing::new(rt, plan.ignore, false);
    let assigner = Assigner::new(&table, &plan.assignments);
    let kept = KeptSubquery::of(&plan.source.subqueries);
    let subqueries = BlockSubqueries::new(rt, &plan.source.subqueries, &kept);
    let state = StmtState {
        scope: Scope::Tables(&plan.source),
        ..rt.state(&subqueries)
    };
    let mut op = UpdateOp::new(table.clone());
    let moves_counter = assigner.changes_auto_increment();
    let (mut matched, mut changed) = (0u64, 0u64);
    each_row(
        rt,
        &plan.source,
        exec,
        plan.limit.as_ref(),
        plan.collect,
        &mut |old, row_id, n| {
            matched += 1;
            if n % 256 == 0 {
                rt.tick()?;
            }
            let image = op.row(old, row_id);
            let around = [assigner.slot_of(None)];
            if !assigner.apply(rt, &storing, &state, old, &around, n, image)? {
                return Ok(());
            }
            match rt.drive(|session| session.update(&mut op))? {
                WriteOutcome::Done => {
                    changed += 1;
                    if moves_counter {
                        observe(rt, &table, op.image())?;
                    }
                    Ok(())
                }
                WriteOutcome::Duplicate { index } => fail_or_warn(
                    rt,
                    plan.ignore,
                    store::duplicate(rt, &table, index, op.image()),
                ),
            }
        },
    )?;
    let warnings = rt.warnings.borrow().total();
    Ok(StatementResult {
        affected: changed,
        matched,
        info: format!("Rows matched: {matched}  Changed: {changed}  Warnings: {warnings}"),
        ..StatementResult::default()
    })
}

pub(crate) fn delete(
    rt: &Runtime<'_>,
    plan: &DeletePlan,
    exec: &mut Option<Box<BlockExec>>,
) -> Result<StatementResult, SqlError> {
    let table = rt.table(plan.table.id)?;
    let mut op = DeleteOp::new(table);
    let mut gone = 0u64;
    each_row(
        rt,
        &plan.source,
        exec,
        plan.limit.as_ref(),
        plan.collect,
        &mut |row, row_id, n| {
            if n % 256 == 0 {
                rt.tick()?;
            }
            op.row(row, row_id);
            rt.drive(|session| session.delete(&mut op))?;
            gone += 1;
            Ok(())
        },
    )?;
    Ok(StatementResult {
        affected: gone,
        matched: gone,
        ..StatementResult::default()
    })
}
