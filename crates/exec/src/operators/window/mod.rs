//! Window functions. Each pass sorts the rows by partition and order, and adds its results to them.
//!
//! # Picture
//! ```text
//! record: | inputs | images of the row slots below | results of the passes so far |      cells
//! sorted: | end of each part of the key, u32 | record |
//! ```
//! *Inputs* are the operands of all calls of all passes, evaluated once when the row is added.
//!
//! # Cost
//! A partition in memory or in a file ([`rows`]), and the sort before it. Each call reads a row a
//! few times, because frames only move forwards.

mod frame;
mod narrow;
mod number;
mod pass;
mod rows;
mod slide;

use nfold_plan::expr::{Expr, ExprKind, ExprType};
use nfold_plan::query::{
    AggFunc, Aggregate, Block, FrameBound, WindowCall, WindowFunc, WindowPass,
};
use nfold_types::row::RowLayout;
use nfold_types::{ErrorCode, SqlError, TypeKind};
use smallvec::SmallVec;

use super::aggregate::{AggShape, Values};
use super::cells;
use super::sort::Sorter;
use super::step::Slot;
use crate::expr::eval::tuple;
use crate::expr::eval::tuple::KeyMaker;
use crate::expr::eval::{EvalCx, RowRef, StmtState, arith};
use crate::runtime::Runtime;

use narrow::Narrow;
use pass::{CallShape, HEAD, PassCx, Walk};
use rows::Rows;

/// The parts of a block's passes that are built once per plan.
pub(crate) struct Windowing {
    inputs: RowLayout,
    passes: Vec<CachedPass>,
    /// For each table slot, if there are no groups.
    narrow: Vec<Option<Narrow>>,
}

struct CachedPass {
    keys: KeyMaker,
    result: RowLayout,
    calls: Vec<CachedCall>,
}

/// The positions of a call's operands among the inputs; see [`CallShape`].
struct CachedCall {
    aggregate: Option<(Aggregate, AggShape)>,
    first: usize,
    key: usize,
    start: usize,
    end: usize,
}

impl Windowing {
    /// `slots` are the opened slots of the block's tables.
    pub fn new(block: &Block, slots: &[Slot]) -> Windowing {
        let plan = block.windows.as_slice();
        let mut types: Vec<ExprType> = Vec::new();
        let mut passes = Vec::new();
        for pass in plan {
            let calls = pass.calls.iter().map(|call| {
                let first = types.len();
                types.extend(call.args.iter().map(|a| input_type(call, a).clone()));
                let bound = |b: &FrameBound, types: &mut Vec<ExprType>| {
                    if let FrameBound::Value { value, .. } = b {
                        types.push(value.ty.clone());
                    }
                    types.len() - 1
                };
                if has_values(call) {
                    types.push(pass.order[0].expr.ty.clone());
                }
                let key = types.len().saturating_sub(1);
                let (start, end) = match has_values(call) {
                    true => (
                        bound(&call.frame.start, &mut types),
                        bound(&call.frame.end, &mut types),
                    ),
                    false => (0, 0),
                };
                CachedCall {
                    aggregate: aggregate(call),
                    first,
                    key,
                    start,
                    end,
                }
            });
            let calls = calls.collect();
            let partition = pass.partition.iter().map(|e| (&e.ty, false));
            let order = pass.order.iter().map(|k| (&k.expr.ty, k.desc));
            passes.push(CachedPass {
                keys: KeyMaker::new(partition.chain(order)),
                result: tuple::layout_of(pass.calls.iter().map(|c| &c.ty)),
                calls,
            });
        }
        let tables = block.tables.iter().zip(slots);
        Windowing {
            inputs: tuple::layout_of(&types),
            passes,
            narrow: tables
                .map(|(table, slot)| Narrow::new(slot, &table.used))
                .collect(),
        }
    }
}

/// The aggregate of a call whose function is one with an argument.
fn aggregate(call: &WindowCall) -> Option<(Aggregate, AggShape)> {
    let WindowFunc::Aggregate(func) = call.func else {
        return None;
    };
    let plan = Aggregate {
        func,
        args: call.args.clone(),
        distinct: false,
        order: Vec::new(),
        separator: Vec::new(),
        ty: call.ty.clone(),
    };
    let shape = AggShape::new(&plan);
    Some((plan, shape))
}

/// Whether values bound the frames of the call.
fn has_values(call: &WindowCall) -> bool {
    let by_value = |b: &FrameBound| matches!(b, FrameBound::Value { .. });
    by_value(&call.frame.start) || by_value(&call.frame.end)
}

/// The type in which an operand is stored: the type of the result if the function returns the
/// operand.
fn input_type<'p>(call: &'p WindowCall, arg: &'p Expr) -> &'p ExprType {
    match call.func {
        WindowFunc::Aggregate(AggFunc::Min | AggFunc::Max) => &call.ty,
        WindowFunc::Aggregate(_) => &arg.ty,
        _ => &call.ty,
    }
}

/// Evaluates the inputs of a row.
fn inputs<'a>(cx: &EvalCx<'a>, plan: &'a [WindowPass]) -> Result<Values<'a>, SqlError> {
    let mut out = Values::new();
    for pass in plan {
        for call in &pass.calls {
            for arg in &call.args {
                out.push(match call.func {
                    WindowFunc::Aggregate(AggFunc::Min | AggFunc::Max) => tuple::own_text(cx, arg)?,
                    WindowFunc::Aggregate(_) => cx.val(arg)?,
                    // A YEAR becomes a number without leading zeros.
                    _ if arg.ty.col.kind == TypeKind::Year && call.ty.col.is_string() => {
                        cx.digits(arg, &call.ty)?
                    }
                    _ => cx.val_as(arg, &call.ty)?,
                });
            }
            if has_values(call) {
                out.push(cx.val(&pass.order[0].expr)?);
            }
            for bound in [&call.frame.start, &call.frame.end] {
                if let FrameBound::Value { value, .. } = bound {
                    out.push(cx.val(value).map_err(|e| bound_error(cx, value, e))?);
                }
            }
        }
    }
    Ok(out)
}

/// Error 1690 for a frame bound shows the current row's value as a stored one.
#[cold]
fn bound_error(cx: &EvalCx<'_>, value: &Expr, error: SqlError) -> SqlError {
    match &value.kind {
        ExprKind::Arith(op, sides) if error.code == ErrorCode::ER_DATA_OUT_OF_RANGE => {
            let [own, amount] = [&sides[0], &sides[1]].map(|e| cx.describe(e));
            let text = format!("(<cache>({own}) {} {amount})", arith::symbol(*op));
            arith::range_error(value, &text)
        }
        _ => error,
    }
}

/// The row slots that the window functions read.
#[derive(Clone, Copy)]
pub(crate) enum WindowSlots<'r> {
    Tables(&'r [Slot]),
    /// The only slot of a grouped row.
    Groups(&'r RowLayout),
}

impl<'r> WindowSlots<'r> {
    fn slots(self) -> usize {
        match self {
            WindowSlots::Tables(slots) => slots.len(),
            WindowSlots::Groups(_) => 1,
        }
    }

    fn row<'a>(self, kept: &'a Windowing, n: usize, image: Option<&'a [u8]>) -> RowRef<'a>
    where
        'r: 'a,
    {
        match self {
            WindowSlots::Tables(slots) => match &kept.narrow[n] {
                Some(narrow) => narrow.row(image),
                None => slots[n].row(image),
            },
            WindowSlots::Groups(layout) => RowRef {
                layout,
                image,
                places: None,
            },
        }
    }
}

type Slots<'a> = SmallVec<[RowRef<'a>; 4]>;

/// Collects the rows of a pass.
enum PassCollector {
    Sorted(Sorter),
    /// All rows form one partition without an order.
    Whole(Rows),
}

/// One execution of a block's passes.
pub(crate) struct Stage<'p> {
    plan: &'p [WindowPass],
    kept: &'p Windowing,
    below: WindowSlots<'p>,
    calls: Vec<Vec<CallShape<'p>>>,
    feed: PassCollector,
    /// Buffers for the current row.
    key: Vec<u8>,
    entry: Vec<u8>,
    image: Vec<u8>,
    record: Vec<u8>,
}

impl<'p> Stage<'p> {
    /// `cx` has no row.
    pub fn new(
        rt: &Runtime<'_>,
        cx: &EvalCx<'p>,
        plan: &'p [WindowPass],
        kept: &'p Windowing,
        below: WindowSlots<'p>,
    ) -> Result<Stage<'p>, SqlError> {
        let mut calls = Vec::new();
        for (pass, kept) in plan.iter().zip(&kept.passes) {
            let shapes = pass.calls.iter().zip(&kept.calls);
            let shapes: Result<Vec<_>, SqlError> = shapes
                .map(|(call, kept)| CallShape::new(cx, call, kept))
                .collect();
            calls.push(shapes?);
        }
        Ok(Stage {
            plan,
            kept,
            below,
            calls,
            feed: feed(rt, &plan[0]),
            key: Vec::new(),
            entry: Vec::new(),
            image: Vec::new(),
            record: Vec::new(),
        })
    }

    /// Adds a row.
    pub fn add<'a>(&mut self, rt: &Runtime<'_>, cx: &EvalCx<'a>) -> Result<(), SqlError>
    where
        'p: 'a,
    {
        let values = inputs(cx, self.plan)?;
        self.image.clear();
        tuple::encode_row(&self.kept.inputs, &values, &mut self.image)?;
        self.record.clear();
        cells::put(Some(&self.image), &mut self.record);
        for (n, row) in cx.rows.iter().enumerate() {
            let narrow = match self.below {
                WindowSlots::Tables(_) => self.kept.narrow[n].as_ref(),
                WindowSlots::Groups(_) => None,
            };
            match narrow {
                Some(narrow) => {
                    let image = narrow.encode(row, &mut self.image)?.then_some(&*self.image);
                    cells::put(image, &mut self.record);
                }
                None => cells::put(row.image, &mut self.record),
            }
        }
        let record = std::mem::take(&mut self.record);
        self.gather(rt, cx, 0, &record)?;
        self.record = record;
        Ok(())
    }

    /// Adds a record to the input of pass `n`.
    fn gather<'a>(
        &mut self,
        rt: &Runtime<'_>,
        cx: &EvalCx<'a>,
        n: usize,
        record: &[u8],
    ) -> Result<(), SqlError>
    where
        'p: 'a,
    {
        let (pass, kept) = (&self.plan[n], &self.kept.passes[n]);
        match &mut self.feed {
            PassCollector::Whole(rows) => rows.push(rt, &[0; HEAD], record),
            PassCollector::Sorted(sorter) => {
                self.key.clear();
                self.entry.clear();
                let order = pass.order.iter().map(|k| &k.expr);
                for (n, e) in pass.partition.iter().chain(order).enumerate() {
                    kept.keys.push(n, &cx.val(e)?, &mut self.key)?;
                    let end = self.key.len() as u32;
                    self.entry.extend_from_slice(&end.to_le_bytes());
                }
                self.entry.extend_from_slice(record);
                sorter.push(rt, &self.key, &self.entry)
            }
        }
    }

    /// Ends the input. Returns the rows, with a slot for the results of each pass after the others,
    /// until the consumer wants no more.
    pub fn finish(
        mut self,
        rt: &Runtime<'_>,
        outer: &'p [&'p [RowRef<'p>]],
        st: &'p StmtState<'p>,
        each: &mut dyn for<'a> FnMut(&EvalCx<'a>) -> Result<bool, SqlError>,
    ) -> Result<(), SqlError> {
        let calls = std::mem::take(&mut self.calls);
        let mut record_out = Vec::new();
        for (n, shapes) in calls.iter().enumerate() {
            let last = n + 1 == calls.len();
            let next = match last {
                true => PassCollector::Whole(Rows::new(0)),
                false => feed(rt, &self.plan[n + 1]),
            };
            let feed = std::mem::replace(&mut self.feed, next);
            let cx = PassCx {
                rt,
                eval: EvalCx {
                    rows: &[],
                    outer,
                    st,
                },
                pass: &self.plan[n],
                inputs: &self.kept.inputs,
                result: &self.kept.passes[n].result,
            };
            let mut walk = Walk::new(shapes);
            let stage = &mut self;
            walk_feed(&cx, feed, &mut walk, &mut |record, result| {
                record_out.clear();
                record_out.extend_from_slice(record);
                cells::put(Some(result), &mut record_out);
                let rows = rows_of(stage.kept, stage.below, &record_out, n + 1);
                let cx = EvalCx {
                    rows: &rows,
                    outer,
                    st,
                };
                if last {
                    return each(&cx);
                }
                stage.gather(rt, &cx, n + 1, &record_out)?;
                Ok(true)
            })?;
        }
        Ok(())
    }
}

fn feed(rt: &Runtime<'_>, pass: &WindowPass) -> PassCollector {
    let bytes = rt.env.work_memory();
    match pass.partition.is_empty() && pass.order.is_empty() {
        true => PassCollector::Whole(Rows::new(bytes)),
        false => PassCollector::Sorted(Sorter::new(bytes, 0)),
    }
}

/// The row slots of a record with the results of the first passes.
fn rows_of<'a>(
    kept: &'a Windowing,
    below: WindowSlots<'a>,
    record: &'a [u8],
    passes: usize,
) -> Slots<'a> {
    let mut out = Slots::new();
    let Some((_, mut rest)) = cells::take(record) else {
        return out;
    };
    for n in 0..below.slots() + passes {
        let Some((image, behind)) = cells::take(rest) else {
            break;
        };
        rest = behind;
        out.push(match n.checked_sub(below.slots()) {
            None => below.row(kept, n, image),
            Some(pass) => RowRef {
                layout: &kept.passes[pass].result,
                image,
                places: None,
            },
        });
    }
    out
}

/// Passes the partitions of the collected rows to a pass.
fn walk_feed(
    cx: &PassCx<'_, '_>,
    feed: PassCollector,
    walk: &mut Walk<'_>,
    sink: &mut dyn FnMut(&[u8], &[u8]) -> Result<bool, SqlError>,
) -> Result<(), SqlError> {
    let rt = cx.rt;
    let sorter = match feed {
        PassCollector::Whole(mut rows) => {
            rows.seal(rt)?;
            walk.partition(cx, &rows, sink)?;
            return Ok(());
        }
        PassCollector::Sorted(sorter) => sorter,
    };
    let parts = cx.pass.partition.len() + cx.pass.order.len();
    let mut sorted = sorter.finish(rt)?;
    let mut rows = Rows::new(rt.env.work_memory());
    let mut before: (Vec<u8>, Vec<u8>) = Default::default();
    let mut n = 0u32;
    while let Some((key, entry)) = sorted.next(rt)? {
        n = n.wrapping_add(1);
        if n.is_multiple_of(1024) {
            rt.tick()?;
        }
        let (ends, record) = entry.split_at(4 * parts);
        let alike = match rows.len() {
            0 => 0,
            _ => alike((key, ends), (&before.0, &before.1)),
        };
        let members = alike.checked_sub(cx.pass.partition.len());
        if members.is_none() && rows.len() > 0 {
            rows.seal(rt)?;
            if !walk.partition(cx, &rows, sink)? {
                return Ok(());
            }
            rows.clear();
        }
        let head = members.unwrap_or(0) as u16;
        rows.push(rt, &head.to_le_bytes(), record)?;
        before.0.clear();
        before.0.extend_from_slice(key);
        before.1.clear();
        before.1.extend_from_slice(ends);
    }
    rows.seal(rt)?;
    walk.partition(cx, &rows, sink)?;
    Ok(())
}

/// The number of leading parts that two keys share. Each key comes with the ends of its parts.
fn alike(a: (&[u8], &[u8]), b: (&[u8], &[u8])) -> usize {
    let number = |bytes: &[u8]| {
        bytes
            .first_chunk::<4>()
            .map_or(0, |b| u32::from_le_bytes(*b))
    };
    let mut from = 0;
    let ends = a.1.chunks_exact(4).zip(b.1.chunks_exact(4));
    for (n, (x, y)) in ends.enumerate() {
        let (x, y) = (number(x) as usize, number(y) as usize);
        if x != y || a.0[from..x] != b.0[from..y] {
            return n;
        }
        from = x;
    }
    a.1.len() / 4
}
