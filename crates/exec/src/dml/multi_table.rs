//! Multi-table UPDATE and DELETE. First all joined rows are found and locked, then each row of each
//! target table is changed once.
//!
//! # Picture
//! ```text
//!   join ─▶ for each table: its row's key ─▶ seen before? ─▶ spool (memory, then a file) ─▶ changes
//! ```
//!
//! # Invariants
//! - M1. A row that is part of several joined rows is changed as the first of them says.
//! - M2. No row is changed before all are found, so the join cannot find a changed row. Found rows
//!   stay locked exclusively until the end of the transaction, so they do not change in between,
//!   unless the statement itself changes them under another alias.

use std::sync::Arc;

use nfold_engine::{RowBatch, Table};
use nfold_plan::foreign::ForeignKeys;
use nfold_plan::query::{Block, DeleteTablesPlan, UpdateTablesPlan};
use nfold_plan::table_exprs::TableExprs;
use nfold_types::SqlError;

use super::assignment::Assigner;
use super::auto_increment::observe_updated;
use super::duplicate::{duplicate_error, fail_or_warn, index_key, read_locked};
use super::encounters::{Encounter, Encounters};
use super::pipeline::{ROWS_PER_TICK, RowOutcome, TableChanges};
use crate::env::batch::Batch;
use crate::expr::eval::RowRef;
use crate::operators::column_values::ColumnValues;
use crate::operators::row_out::Limits;
use crate::operators::step::{RowRefs, StepCx, is_named_once};
use crate::query::block::BlockExec;
use crate::runtime::Runtime;
use crate::runtime::result::{ChangeSummary, StatementResult, full_table};
use crate::runtime::spill::Spool;

/// Replaces `out` by the clustered key of a row.
fn clustered_key(
    table: &Table,
    image: &[u8],
    id: Option<u64>,
    out: &mut Vec<u8>,
) -> Result<(), SqlError> {
    out.clear();
    match id {
        Some(id) => out.extend_from_slice(&id.to_be_bytes()),
        None => index_key(table, 0, image, out)?,
    }
    Ok(())
}

/// Appends the record of a row: `hidden row id u64 (0: none) | length of the found image u32 |
/// found image | new image (empty: unchanged)`.
fn write_record(out: &mut Vec<u8>, id: Option<u64>, found: &[u8], new: &[u8]) {
    out.extend_from_slice(&id.unwrap_or(0).to_le_bytes());
    out.extend_from_slice(&(found.len() as u32).to_le_bytes());
    out.extend_from_slice(found);
    out.extend_from_slice(new);
}

/// Splits a record into the hidden row id, the found image and the new image.
fn read_record(record: &[u8]) -> (Option<u64>, &[u8], &[u8]) {
    let Some((id, rest)) = record.split_first_chunk::<8>() else {
        return (None, &[], &[]);
    };
    let Some((len, images)) = rest.split_first_chunk::<4>() else {
        return (None, &[], &[]);
    };
    let (found, new) = images.split_at((u32::from_le_bytes(*len) as usize).min(images.len()));
    let id = u64::from_le_bytes(*id);
    ((id != 0).then_some(id), found, new)
}

/// The number of the join step that reads a slot.
fn step_of(block: &Block, slot: usize) -> usize {
    let mut steps = block.joins.iter();
    steps.position(|step| step.table == slot).unwrap_or(0)
}

/// Row `i` of a batch, as row slots.
fn filled<'a>(scx: &'a StepCx<'_, '_>, batch: &'a Batch, i: usize) -> RowRefs<'a> {
    let mut rows = scx.empty_rows();
    scx.fill(batch, i, &mut rows);
    rows
}

/// The rows of one table that an UPDATE changes.
struct Updating<'p> {
    table: &'p Arc<Table>,
    /// The table's stored expressions.
    exprs: Option<&'p Arc<TableExprs>>,
    slot: usize,
    step: usize,
    assigner: Assigner<'p>,
    /// Whether the rows may also change in another way: under a second alias, or by a cascade.
    shared: bool,
    encounters: Encounters,
    rows: Spool,
    found: u64,
    /// Buffers for the current row: its key, its new image, and its record.
    key: Vec<u8>,
    new: Vec<u8>,
    record: Vec<u8>,
}

/// One joined row, with the context in which new images are computed.
struct JoinedRow<'m, 'r, 's> {
    values: &'m ColumnValues,
    scx: &'m StepCx<'r, 's>,
    batch: &'m Batch,
    /// The position of the row in the batch, and its number in the statement, from 1.
    i: usize,
    n: u64,
}

impl Updating<'_> {
    /// Computes the new image of the current row. Returns false if the row does not change.
    fn compute(
        &mut self,
        m: &JoinedRow<'_, '_, '_>,
        found: &[u8],
        rows: &[RowRef<'_>],
    ) -> Result<bool, SqlError> {
        self.new.clear();
        let (state, new) = (m.scx.state, &mut self.new);
        self.assigner
            .apply(m.scx.rt, m.values, state, found, rows, m.n, new)
    }

    /// Records the current row at its first encounter.
    fn record_first(
        &mut self,
        m: &JoinedRow<'_, '_, '_>,
        rows: &[RowRef<'_>],
    ) -> Result<(), SqlError> {
        let Some(found) = rows[self.slot].image else {
            return Ok(());
        };
        // Computed for repeated rows too: a value that does not fit is an error in any case.
        let changes = self.compute(m, found, rows)? || self.shared;
        let id = m.batch.row_id(m.i, self.step);
        clustered_key(self.table, found, id, &mut self.key)?;
        let new: &[u8] = if changes { &self.new } else { &[] };
        let write = |out: &mut Vec<u8>| write_record(out, id, found, new);
        if let Encounter::First = self.encounters.meet(m.scx.rt, &self.key, write)? {
            self.found += 1;
            if changes {
                self.record.clear();
                write_record(&mut self.record, id, found, new);
                self.rows.push(m.scx.rt, 0, &self.record)?;
            }
        }
        Ok(())
    }

    /// As [`Self::record_first`], for the table whose new values the other assignments see. The new
    /// image stays in `new`.
    fn record_leading(&mut self, m: &JoinedRow<'_, '_, '_>) -> Result<(), SqlError> {
        let rows = filled(m.scx, m.batch, m.i);
        let Some(found) = rows[self.slot].image else {
            return Ok(());
        };
        let id = m.batch.row_id(m.i, self.step);
        self.found += 1;
        if self.compute(m, found, &rows)? {
            self.record.clear();
            write_record(&mut self.record, id, found, &self.new);
            self.rows.push(m.scx.rt, 0, &self.record)?;
        }
        Ok(())
    }

    /// Whether the current row was encountered before.
    fn is_repeated(&mut self, m: &JoinedRow<'_, '_, '_>) -> Result<bool, SqlError> {
        let Some(found) = m.batch.image(m.i, self.step) else {
            return Ok(true);
        };
        let id = m.batch.row_id(m.i, self.step);
        clustered_key(self.table, found, id, &mut self.key)?;
        Ok(matches!(
            self.encounters.meet(m.scx.rt, &self.key, |_| ())?,
            Encounter::Repeated
        ))
    }

    /// Changes the recorded rows. Returns the number of rows found, and the number of rows changed.
    fn change(
        self,
        rt: &Runtime<'_>,
        foreign: Option<&Arc<ForeignKeys>>,
        ignore: bool,
    ) -> Result<(u64, u64), SqlError> {
        let Updating {
            table,
            assigner,
            shared,
            encounters,
            mut rows,
            mut found,
            exprs,
            ..
        } = self;
        encounters.drain_undecided(rt, &mut |record| {
            found += 1;
            let (_, _, new) = read_record(record);
            if !new.is_empty() {
                rows.push(rt, 0, record)?;
            }
            Ok(true)
        })?;
        let moves_counter = assigner.changes_auto_increment();
        let mut changes = TableChanges::new(rt, table.clone(), exprs, foreign, ignore);
        changes.found_again();
        changes.set_written(assigner.columns());
        let (mut now, mut key) = (RowBatch::new(), Vec::new());
        let (mut changed, mut n) = (0u64, 0u64);
        rows.each(rt, &mut |_, record| {
            n += 1;
            if n.is_multiple_of(ROWS_PER_TICK) {
                rt.tick()?;
            }
            let (id, old, new) = read_record(record);
            if shared {
                clustered_key(table, old, id, &mut key)?;
                read_locked(rt, table, (0, &key), |_| true, &mut now)?;
                if now.is_empty() {
                    return Ok(true);
                }
                let image = changes.begin_update(now.row(0), id);
                if !assigner.carry_over(rt, now.row(0), new, image)? {
                    return Ok(true);
                }
            } else {
                changes.begin_update(old, id).extend_from_slice(new);
            }
            match changes.update(rt)? {
                RowOutcome::Done => {
                    changed += 1;
                    if moves_counter {
                        observe_updated(rt, table, changes.updated())?;
                    }
                }
                RowOutcome::Duplicate { index } => {
                    let error = duplicate_error(rt, table, index, changes.updated());
                    fail_or_warn(rt, ignore, error)?;
                }
                RowOutcome::Refused(error) => fail_or_warn(rt, ignore, error)?,
                RowOutcome::Gone => {}
            }
            Ok(true)
        })?;
        Ok((found, changed))
    }
}

/// Records the rows of all target tables in a joined row. `leading` is the table whose new values
/// the others see.
fn record_joined_row(
    m: &JoinedRow<'_, '_, '_>,
    targets: &mut [Updating<'_>],
    leading: Option<usize>,
) -> Result<(), SqlError> {
    let Some(at) = leading else {
        let rows = filled(m.scx, m.batch, m.i);
        return targets
            .iter_mut()
            .try_for_each(|t| t.record_first(m, &rows));
    };
    let (before, rest) = targets.split_at_mut(at);
    let Some((first, after)) = rest.split_first_mut() else {
        return Ok(());
    };
    let repeated = first.is_repeated(m)?;
    if !before.is_empty() {
        let mut rows = filled(m.scx, m.batch, m.i);
        if repeated {
            rows[first.slot] = m.scx.slots[first.slot].row(Some(&first.new));
        }
        before
            .iter_mut()
            .try_for_each(|t| t.record_first(m, &rows))?;
    }
    if !repeated {
        first.record_leading(m)?;
    }
    if !after.is_empty() {
        let mut rows = filled(m.scx, m.batch, m.i);
        rows[first.slot] = m.scx.slots[first.slot].row(Some(&first.new));
        after
            .iter_mut()
            .try_for_each(|t| t.record_first(m, &rows))?;
    }
    Ok(())
}

/// Returns the operators that find the rows; creates them at the first use.
fn opened<'e>(
    rt: &Runtime<'_>,
    block: &Block,
    exec: &'e mut Option<Box<BlockExec>>,
) -> Result<&'e mut BlockExec, SqlError> {
    let made = match exec.take() {
        Some(made) => made,
        None => Box::new(BlockExec::open(rt, block, Limits::NONE)?),
    };
    Ok(exec.insert(made))
}

/// Whether repetitions of a slot's rows are adjacent: the join reads the slot first, and no other
/// slot is of the same table.
fn is_grouped(block: &Block, slot: usize) -> bool {
    step_of(block, slot) == 0 && is_named_once(block, slot)
}

/// Creates the state of each target table. `tables` are the opened tables of the plan's targets.
fn update_targets<'p>(
    rt: &Runtime<'_>,
    plan: &'p UpdateTablesPlan,
    tables: &'p [Arc<Table>],
) -> Vec<Updating<'p>> {
    let block = &plan.source;
    let mut targets: Vec<Updating<'p>> = Vec::with_capacity(tables.len());
    for (n, (target, table)) in plan.targets.iter().zip(tables).enumerate() {
        let assigner = Assigner::of_slot(
            table,
            &target.assignments,
            target.exprs.as_deref(),
            target.slot,
        );
        let same = |t: &&Arc<Table>| t.def().id == table.def().id;
        targets.push(Updating {
            table,
            exprs: target.exprs.as_ref(),
            slot: target.slot,
            step: step_of(block, target.slot),
            assigner: match plan.at_once == Some(n) {
                true => assigner,
                false => assigner.together(),
            },
            // A cascade from one table may change the rows of another.
            shared: tables.iter().filter(same).count() > 1
                || (plan.foreign.as_ref()).is_some_and(|keys| keys.revisits),
            encounters: Encounters::new(rt, is_grouped(block, target.slot)),
            rows: Spool::new(rt.env.work_memory()),
            found: 0,
            key: Vec::new(),
            new: Vec::new(),
            record: Vec::new(),
        });
    }
    targets
}

/// Runs a multi-table UPDATE.
#[inline(never)]
pub(crate) fn update(
    rt: &Runtime<'_>,
    plan: &UpdateTablesPlan,
    exec: &mut Option<Box<BlockExec>>,
) -> Result<StatementResult, SqlError> {
    let block = &plan.source;
    let values = ColumnValues::new(rt, plan.ignore, false);
    let tables = (plan.targets.iter())
        .map(|t| rt.table(t.table.id))
        .collect::<Result<Vec<_>, _>>()?;
    let mut targets = update_targets(rt, plan, &tables);
    let mut n = 0u64;
    opened(rt, block, exec)?.batches(rt, block, &mut |scx, batch| {
        for i in 0..batch.len() {
            n += 1;
            if n.is_multiple_of(ROWS_PER_TICK) {
                rt.tick()?;
            }
            let joined = JoinedRow {
                values: &values,
                scx,
                batch,
                i,
                n,
            };
            record_joined_row(&joined, &mut targets, plan.at_once)?;
        }
        Ok(true)
    })?;
    let (mut matched, mut changed) = (0, 0);
    // The leading table changes first.
    if let Some(at) = plan.at_once {
        targets[..=at].rotate_right(1);
    }
    for target in targets {
        let name = &target.table.def().name;
        let counted = target.change(rt, plan.foreign.as_ref(), plan.ignore);
        let (found, more) = counted.map_err(|e| full_table(e, name))?;
        (matched, changed) = (matched + found, changed + more);
    }
    Ok(StatementResult {
        affected: changed,
        matched,
        summary: Some(ChangeSummary::Update {
            matched,
            changed,
            warnings: rt.warnings.borrow().total(),
        }),
        ..StatementResult::default()
    })
}

/// The rows of one table that a DELETE removes. The statement may name the table several times.
struct Deleting {
    table: Arc<Table>,
    steps: Vec<usize>,
    encounters: Encounters,
    rows: Spool,
}

impl Deleting {
    /// Deletes the recorded rows, and returns their number.
    fn remove(self, rt: &Runtime<'_>, plan: &DeleteTablesPlan) -> Result<u64, SqlError> {
        let Deleting {
            table,
            encounters,
            mut rows,
            ..
        } = self;
        encounters.drain_undecided(rt, &mut |record| {
            rows.push(rt, 0, record)?;
            Ok(true)
        })?;
        let foreign = plan.foreign.as_ref();
        let mut changes = TableChanges::new(rt, table, None, foreign, plan.ignore);
        changes.found_again();
        let (mut deleted, mut n) = (0u64, 0u64);
        rows.each(rt, &mut |_, record| {
            n += 1;
            if n.is_multiple_of(ROWS_PER_TICK) {
                rt.tick()?;
            }
            let (id, image, _) = read_record(record);
            match changes.delete(rt, image, id)? {
                RowOutcome::Refused(error) => fail_or_warn(rt, plan.ignore, error)?,
                RowOutcome::Done => deleted += 1,
                RowOutcome::Duplicate { .. } | RowOutcome::Gone => {}
            }
            Ok(true)
        })?;
        Ok(deleted)
    }
}

/// Runs a multi-table DELETE.
#[inline(never)]
pub(crate) fn delete(
    rt: &Runtime<'_>,
    plan: &DeleteTablesPlan,
    exec: &mut Option<Box<BlockExec>>,
) -> Result<StatementResult, SqlError> {
    let block = &plan.source;
    let mut targets: Vec<Deleting> = Vec::with_capacity(plan.targets.len());
    for (def, slot) in &plan.targets {
        let step = step_of(block, *slot);
        if let Some(target) = targets.iter_mut().find(|t| t.table.def().id == def.id) {
            target.steps.push(step);
            continue;
        }
        let table = rt.table(def.id)?;
        targets.push(Deleting {
            encounters: Encounters::new(rt, is_grouped(block, *slot)),
            table,
            steps: vec![step],
            rows: Spool::new(rt.env.work_memory()),
        });
    }
    let (mut key, mut record) = (Vec::new(), Vec::new());
    opened(rt, block, exec)?.batches(rt, block, &mut |_, batch| {
        rt.tick()?;
        for i in 0..batch.len() {
            for target in &mut targets {
                for &step in &target.steps {
                    let Some(image) = batch.image(i, step) else {
                        continue;
                    };
                    let id = batch.row_id(i, step);
                    clustered_key(&target.table, image, id, &mut key)?;
                    let write = |out: &mut Vec<u8>| write_record(out, id, image, &[]);
                    if let Encounter::First = target.encounters.meet(rt, &key, write)? {
                        record.clear();
                        write_record(&mut record, id, image, &[]);
                        target.rows.push(rt, 0, &record)?;
                    }
                }
            }
        }
        Ok(true)
    })?;
    let mut deleted = 0;
    if let Some(keys) = &plan.foreign {
        // Children are deleted before their parents.
        targets.sort_by_key(|t| keys.generation(t.table.def().id));
    }
    for target in targets {
        deleted += target.remove(rt, plan)?;
    }
    Ok(StatementResult {
        affected: deleted,
        matched: deleted,
        ..StatementResult::default()
    })
}
