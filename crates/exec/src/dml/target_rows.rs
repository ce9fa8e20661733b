//! The rows that an UPDATE or DELETE of one table changes, in order and up to its limit.

use nfold_plan::query::{Block, LimitPlan};
use nfold_types::SqlError;

use crate::expr::eval::tuple::KeyMaker;
use crate::operators::row_out::Limits;
use crate::operators::sort::Sorter;
use crate::query::block::BlockExec;
use crate::runtime::Runtime;
use crate::runtime::spill::Spool;

/// Calls `f` with the image of each row to change, its hidden row id, and its number from 1. As in
/// MySQL, the number counts the rows that were read; with ORDER BY or `collect`, those that passed.
///
/// `collect`: all rows are found before the first one is changed, so that no row is found twice.
/// The planner sets it if a change may move rows within the index that is read, or if ORDER BY
/// decides which rows are changed, or which warnings come first.
pub(super) fn each_target(
    rt: &Runtime<'_>,
    block: &Block,
    exec: &mut Option<Box<BlockExec>>,
    limit: Option<&LimitPlan>,
    collect: bool,
    f: &mut dyn FnMut(&[u8], Option<u64>, u64) -> Result<(), SqlError>,
) -> Result<(), SqlError> {
    let limits = Limits::new(rt, limit)?;
    if exec.is_none() {
        *exec = Some(Box::new(BlockExec::open(rt, block, limits)?));
    }
    let Some(exec) = exec else { return Ok(()) };
    if limits.count == 0 {
        // Its constant conditions may warn or fail, as in MySQL.
        return exec.check_constants(rt, block);
    }
    let mut n = 0u64;
    if !collect {
        return exec.batches(rt, block, &mut |_, batch| {
            for &i in &batch.selected {
                n += 1;
                let number = match block.ordered {
                    true => n,
                    false => rt.counts.before.get() + u64::from(i) + 1,
                };
                let i = i as usize;
                f(batch.read.row(i), batch.read.row_id(i), number)?;
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
            // Row ids start at 1.
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
