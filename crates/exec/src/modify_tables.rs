//! UPDATE and DELETE of several tables: all joined rows are found first, under locks; then each row of each table is changed once.
//!
//! # Picture
//! ```text
//!   join ─▶ for each table: its row's key ─▶ met before? ─▶ spool (memory, then a file) ─▶ change, table by table
//! ```
//!
//! # Invariants
//! M1. Of the joined rows that hold a row, the first decides what becomes of it.
//! M2. Nothing is changed before all is found, so that no row is found by what a change has made of it. The rows found are locked
//!     exclusively until the transaction's end: what was read is what is changed, unless the statement itself changes it under another name.

use std::sync::Arc;

use nfold_engine::{DeleteOp, RowBatch, Table, UpdateOp, WriteOutcome};
use nfold_plan::query::{Block, DeleteTablesPlan, UpdateTablesPlan};
use nfold_types::SqlError;

use crate::batch::Batch;
use crate::block::{BlockExec, Limits};
use crate::distinct::Distinct;
use crate::eval::RowRef;
use crate::modify::{self, Assigner, fail_or_warn, observe};
use crate::runtime::Runtime;
use crate::spill::Spool;
use crate::statement::{StatementResult, full_table};
use crate::step::{RowRefs, StepCx, is_named_once};
use crate::store::{self, Storing};

/// Which rows of a table were met.
enum Seen {
    /// Its rows come together: the key of the last one.
    Last(Vec<u8>),
    Any(Box<Distinct>),
}

/// What becomes of a row that was looked for among those met.
enum Met {
    First,
    Before,
    /// It may have been met: it comes again when all is read.
    Perhaps,
}

impl Seen {
    /// `first`: the table is read first, and under no other name.
    fn new(rt: &Runtime<'_>, first: bool) -> Seen {
        match first {
            true => Seen::Last(Vec::new()),
            false => Seen::Any(Box::new(Distinct::new(rt.env.work_memory()))),
        }
    }

    /// Looks for a row by its key; what `record` writes comes again if it is not known whether it was met.
    fn meet(
        &mut self,
        rt: &Runtime<'_>,
        key: &[u8],
        record: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Met, SqlError> {
        let distinct = match self {
            Seen::Any(distinct) => distinct,
            Seen::Last(last) if last == key => return Ok(Met::Before),
            Seen::Last(last) => {
                last.clear();
                last.extend_from_slice(key);
                return Ok(Met::First);
            }
        };
        let mut put_off = false;
        let new = distinct.is_new(
            rt,
            |out| {
                out.extend_from_slice(key);
                Ok(())
            },
            |out| {
                put_off = true;
                record(out);
                Ok(())
            },
        )?;
        Ok(match (new, put_off) {
            (true, _) => Met::First,
            (false, true) => Met::Perhaps,
            (false, false) => Met::Before,
        })
    }

    /// When all is read: gives what is to be looked at again, each row once.
    fn put_off(
        self,
        rt: &Runtime<'_>,
        f: &mut dyn FnMut(&[u8]) -> Result<bool, SqlError>,
    ) -> Result<(), SqlError> {
        match self {
            Seen::Last(_) => Ok(()),
            Seen::Any(distinct) => distinct.put_off(rt, f),
        }
    }
}

/// Replaces `out` by the key of a row in the clustered index.
fn clustered_key(
    table: &Table,
    image: &[u8],
    id: Option<u64>,
    out: &mut Vec<u8>,
) -> Result<(), SqlError> {
    out.clear();
    match id {
        Some(id) => out.extend_from_slice(&id.to_be_bytes()),
        None => modify::index_key(table, 0, image, out)?,
    }
    Ok(())
}

/// A row as it was found, and what an UPDATE makes of it (nothing, where it stays as it is), in bytes:
/// `hidden row id u64, 0: none | length of the found image u32 | found image | new image`.
fn write_record(out: &mut Vec<u8>, id: Option<u64>, found: &[u8], new: &[u8]) {
    out.extend_from_slice(&id.unwrap_or(0).to_le_bytes());
    out.extend_from_slice(&(found.len() as u32).to_le_bytes());
    out.extend_from_slice(found);
    out.extend_from_slice(new);
}

/// The hidden row id, the found image and the new one.
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

/// The step of the join that reads a slot.
fn step_of(block: &Block, slot: usize) -> usize {
    let mut steps = block.joins.iter();
    steps.position(|step| step.table == slot).unwrap_or(0)
}

/// Row `i` of a batch, in the slots.
fn filled<'a>(scx: &'a StepCx<'_, '_>, batch: &'a Batch, i: usize) -> RowRefs<'a> {
    let mut rows = scx.empty_rows();
    scx.fill(batch, i, &mut rows);
    rows
}

/// The rows of one table that an UPDATE changes.
struct Updating<'p> {
    table: &'p Arc<Table>,
    slot: usize,
    step: usize,
    assigner: Assigner<'p>,
    /// The statement changes the table under another name, too.
    shared: bool,
    seen: Seen,
    rows: Spool,
    found: u64,
    /// Of the row at hand: its key, what it becomes, its record.
    key: Vec<u8>,
    new: Vec<u8>,
    record: Vec<u8>,
}

/// What the rows of a statement are made with.
struct Making<'m, 'r, 's> {
    storing: &'m Storing,
    scx: &'m StepCx<'r, 's>,
    batch: &'m Batch,
    /// Row of the batch, and its number in the statement from 1.
    i: usize,
    n: u64,
}

impl Updating<'_> {
    /// Computes what the row at hand becomes; false: it stays as it is.
    fn make(
        &mut self,
        m: &Making<'_, '_, '_>,
        found: &[u8],
        rows: &[RowRef<'_>],
    ) -> Result<bool, SqlError> {
        self.new.clear();
        let (state, new) = (m.scx.state, &mut self.new);
        self.assigner
            .apply(m.scx.rt, m.storing, state, found, rows, m.n, new)
    }

    /// Takes the row at hand if it is met first.
    fn take(&mut self, m: &Making<'_, '_, '_>, rows: &[RowRef<'_>]) -> Result<(), SqlError> {
        let Some(found) = rows[self.slot].image else {
            return Ok(());
        };
        // Also of one that was met before: what does not fit is an error all the same.
        let changes = self.make(m, found, rows)? || self.shared;
        let id = m.batch.row_id(m.i, self.step);
        clustered_key(self.table, found, id, &mut self.key)?;
        let new: &[u8] = if changes { &self.new } else { &[] };
        let write = |out: &mut Vec<u8>| write_record(out, id, found, new);
        if let Met::First = self.seen.meet(m.scx.rt, &self.key, write)? {
            self.found += 1;
            if changes {
                self.record.clear();
                write_record(&mut self.record, id, found, new);
                self.rows.push(m.scx.rt, 0, &self.record)?;
            }
        }
        Ok(())
    }

    /// The table changes at once: whether its row at hand is another one than before, which is taken then. What it becomes is in `new`.
    fn take_at_once(&mut self, m: &Making<'_, '_, '_>) -> Result<(), SqlError> {
        let rows = filled(m.scx, m.batch, m.i);
        let Some(found) = rows[self.slot].image else {
            return Ok(());
        };
        let id = m.batch.row_id(m.i, self.step);
        self.found += 1;
        if self.make(m, found, &rows)? {
            self.record.clear();
            write_record(&mut self.record, id, found, &self.new);
            self.rows.push(m.scx.rt, 0, &self.record)?;
        }
        Ok(())
    }

    /// Whether the row at hand was met before.
    fn is_met(&mut self, m: &Making<'_, '_, '_>) -> Result<bool, SqlError> {
        let Some(found) = m.batch.image(m.i, self.step) else {
            return Ok(true);
        };
        let id = m.batch.row_id(m.i, self.step);
        clustered_key(self.table, found, id, &mut self.key)?;
        Ok(matches!(
            self.seen.meet(m.scx.rt, &self.key, |_| ())?,
            Met::Before
        ))
    }

    /// When all is read: changes the rows; gives how many were found, and how many changed.
    fn change(self, rt: &Runtime<'_>, ignore: bool) -> Result<(u64, u64), SqlError> {
        let Updating {
            table,
            assigner,
            shared,
            seen,
            mut rows,
            mut found,
            ..
        } = self;
        seen.put_off(rt, &mut |record| {
            found += 1;
            let (_, _, new) = read_record(record);
            if !new.is_empty() {
                rows.push(rt, 0, record)?;
            }
            Ok(true)
        })?;
        let counts = assigner.changes_auto_increment();
        let mut op = UpdateOp::new(table.clone());
        let (mut now, mut key) = (RowBatch::new(), Vec::new());
        let (mut changed, mut n) = (0u64, 0u64);
        rows.each(rt, &mut |_, record| {
            n += 1;
            if n.is_multiple_of(256) {
                rt.tick()?;
            }
            let (id, old, new) = read_record(record);
            if shared {
                clustered_key(table, old, id, &mut key)?;
                modify::read_locked(rt, table, 0, &key, &mut now)?;
                if now.is_empty() {
                    return Ok(true);
                }
                let image = op.row(now.row(0), id);
                if !assigner.carry_over(rt, now.row(0), new, image)? {
                    return Ok(true);
                }
            } else {
                op.row(old, id).extend_from_slice(new);
            }
            match rt.drive(|session| session.update(&mut op))? {
                WriteOutcome::Done => {
                    changed += 1;
                    if counts {
                        observe(rt, table, op.image())?;
                    }
                }
                WriteOutcome::Duplicate { index } => {
                    let error = store::duplicate(rt, table, index, op.image());
                    fail_or_warn(rt, ignore, error)?;
                }
            }
            Ok(true)
        })?;
        Ok((found, changed))
    }
}

/// Lets each table take its row of the joined row at hand.
fn take_row(
    m: &Making<'_, '_, '_>,
    targets: &mut [Updating<'_>],
    at_once: Option<usize>,
) -> Result<(), SqlError> {
    let Some(at) = at_once else {
        let rows = filled(m.scx, m.batch, m.i);
        return targets.iter_mut().try_for_each(|t| t.take(m, &rows));
    };
    let (before, rest) = targets.split_at_mut(at);
    let Some((first, after)) = rest.split_first_mut() else {
        return Ok(());
    };
    let met = first.is_met(m)?;
    if !before.is_empty() {
        let mut rows = filled(m.scx, m.batch, m.i);
        if met {
            rows[first.slot] = m.scx.slots[first.slot].row(Some(&first.new));
        }
        before.iter_mut().try_for_each(|t| t.take(m, &rows))?;
    }
    if !met {
        first.take_at_once(m)?;
    }
    if !after.is_empty() {
        let mut rows = filled(m.scx, m.batch, m.i);
        rows[first.slot] = m.scx.slots[first.slot].row(Some(&first.new));
        after.iter_mut().try_for_each(|t| t.take(m, &rows))?;
    }
    Ok(())
}

/// The operators that find the rows, made when they are needed first.
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

/// Whether the slot is read first, and no other is of its table.
fn comes_together(block: &Block, slot: usize) -> bool {
    step_of(block, slot) == 0 && is_named_once(block, slot)
}

/// What gathers the rows of each table; `tables`: those of the plan's targets, opened.
fn updating<'p>(
    rt: &Runtime<'_>,
    plan: &'p UpdateTablesPlan,
    tables: &'p [Arc<Table>],
) -> Vec<Updating<'p>> {
    let block = &plan.source;
    let mut targets: Vec<Updating<'p>> = Vec::with_capacity(tables.len());
    for (n, (target, table)) in plan.targets.iter().zip(tables).enumerate() {
        let assigner = Assigner::of_slot(table, &target.assignments, target.slot);
        let same = |t: &&Arc<Table>| t.def().id == table.def().id;
        targets.push(Updating {
            table,
            slot: target.slot,
            step: step_of(block, target.slot),
            assigner: match plan.at_once == Some(n) {
                true => assigner,
                false => assigner.together(),
            },
            shared: tables.iter().filter(same).count() > 1,
            seen: Seen::new(rt, comes_together(block, target.slot)),
            rows: Spool::new(rt.env.work_memory()),
            found: 0,
            key: Vec::new(),
            new: Vec::new(),
            record: Vec::new(),
        });
    }
    targets
}

pub(crate) fn update(
    rt: &Runtime<'_>,
    plan: &UpdateTablesPlan,
    exec: &mut Option<Box<BlockExec>>,
) -> Result<StatementResult, SqlError> {
    let block = &plan.source;
    let storing = Storing::new(rt, plan.ignore, false);
    let tables = (plan.targets.iter())
        .map(|t| rt.table(t.table.id))
        .collect::<Result<Vec<_>, _>>()?;
    let mut targets = updating(rt, plan, &tables);
    let mut n = 0u64;
    opened(rt, block, exec)?.batches(rt, block, &mut |scx, batch| {
        for i in 0..batch.len() {
            n += 1;
            if n.is_multiple_of(256) {
                rt.tick()?;
            }
            let storing = &storing;
            let making = Making {
                storing,
                scx,
                batch,
                i,
                n,
            };
            take_row(&making, &mut targets, plan.at_once)?;
        }
        Ok(true)
    })?;
    let (mut matched, mut changed) = (0, 0);
    // What changes at once has changed before the others do.
    if let Some(at) = plan.at_once {
        targets[..=at].rotate_right(1);
    }
    for target in targets {
        let name = &target.table.def().name;
        let counts = target.change(rt, plan.ignore);
        let (found, more) = counts.map_err(|e| full_table(e, name))?;
        (matched, changed) = (matched + found, changed + more);
    }
    let warnings = rt.warnings.borrow().total();
    Ok(StatementResult {
        affected: changed,
        matched,
        info: format!("Rows matched: {matched}  Changed: {changed}  Warnings: {warnings}"),
        ..StatementResult::default()
    })
}

/// The rows of one table that a DELETE removes, under whatever names they are found.
struct Deleting {
    table: Arc<Table>,
    steps: Vec<usize>,
    seen: Seen,
    rows: Spool,
}

impl Deleting {
    fn remove(self, rt: &Runtime<'_>) -> Result<u64, SqlError> {
        let Deleting {
            table,
            seen,
            mut rows,
            ..
        } = self;
        seen.put_off(rt, &mut |record| {
            rows.push(rt, 0, record)?;
            Ok(true)
        })?;
        let mut op = DeleteOp::new(table);
        let mut gone = 0u64;
        rows.each(rt, &mut |_, record| {
            gone += 1;
            if gone.is_multiple_of(256) {
                rt.tick()?;
            }
            let (id, image, _) = read_record(record);
            op.row(image, id);
            rt.drive(|session| session.delete(&mut op))?;
            Ok(true)
        })?;
        Ok(gone)
    }
}

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
            seen: Seen::new(rt, comes_together(block, *slot)),
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
                    if let Met::First = target.seen.meet(rt, &key, write)? {
                        record.clear();
                        write_record(&mut record, id, image, &[]);
                        target.rows.push(rt, 0, &record)?;
                    }
                }
            }
        }
        Ok(true)
    })?;
    let mut gone = 0;
    for target in targets {
        gone += target.remove(rt)?;
    }
    Ok(StatementResult {
        affected: gone,
        matched: gone,
        ..StatementResult::default()
    })
}
