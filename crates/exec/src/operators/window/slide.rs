//! An aggregate over moving frames. Rows that enter the frame are added, and rows that leave it are
//! removed, if that is exact. Otherwise short frames are recomputed, and long ones are merged from
//! the states of whole stretches of rows.

use nfold_types::{SqlError, Value};

use super::pass::{CallShape, PassCx};
use super::rows::{Cursor, Rows};
use crate::operators::aggregate::{Acc, AggInfo};
use crate::runtime::Runtime;

/// Frames of at most this many rows are recomputed, so that doubles are added in the order of the
/// rows.
const DIRECT_ROWS: u64 = 128;

/// The same for aggregates that do not depend on the order of the rows.
const DIRECT_EXACT_ROWS: u64 = 48;

/// The number of rows in a stretch, and of stretches in a longer one.
const FAN: u64 = 16;

/// See the module.
pub(super) struct Slide {
    /// The state over the rows `from..to`.
    acc: Acc,
    from: u64,
    to: u64,
    invertible: bool,
    exact: bool,
    adds: Cursor,
    removes: Cursor,
    /// The last frame and its result.
    last: Option<(u64, u64)>,
    value: Value,
    /// The states of stretches of [`FAN`] rows, of stretches of [`FAN`] of these, and so on.
    stretches: Vec<Vec<Acc>>,
}

impl Slide {
    pub fn new(shape: &CallShape<'_>) -> Option<Slide> {
        let (plan, _) = shape.aggregate.as_ref()?;
        let acc = Acc::new(plan);
        Some(Slide {
            invertible: acc.is_invertible(plan.func),
            exact: acc.is_exact(),
            acc,
            from: 0,
            to: 0,
            adds: Cursor::default(),
            removes: Cursor::default(),
            last: None,
            value: Value::Null,
            stretches: Vec::new(),
        })
    }

    /// Starts the next partition.
    pub fn reset(&mut self, info: &AggInfo<'_>) {
        self.acc = Acc::new(info.plan);
        (self.from, self.to) = (0, 0);
        self.last = None;
        self.stretches.clear();
        self.adds.reset();
        self.removes.reset();
    }

    /// The result over the rows `start..end`. `start` must not be less than in the previous call.
    pub fn value(
        &mut self,
        cx: &PassCx<'_, '_>,
        shape: &CallShape<'_>,
        rows: &Rows,
        (start, end): (u64, u64),
    ) -> Result<&Value, SqlError> {
        let (start, end) = if start < end { (start, end) } else { (0, 0) };
        if self.last == Some((start, end)) {
            return Ok(&self.value);
        }
        let info = shape.info();
        if end == 0 {
            self.value = Acc::new(info.plan).finish(&cx.eval, info.plan)?.to_value();
        } else {
            self.move_to(cx, shape, rows, (start, end))?;
            let mut acc = self.acc.copy();
            self.value = acc.finish(&cx.eval, info.plan)?.to_value();
        }
        self.last = Some((start, end));
        Ok(&self.value)
    }

    fn move_to(
        &mut self,
        cx: &PassCx<'_, '_>,
        shape: &CallShape<'_>,
        rows: &Rows,
        (start, end): (u64, u64),
    ) -> Result<(), SqlError> {
        let grows = end >= self.to;
        let overlaps = (self.from..self.to).contains(&start);
        let slides = self.invertible
            && grows
            && overlaps
            && (start - self.from) + (end - self.to) < end - start;
        if grows && start == self.from || slides {
            let info = shape.info();
            for n in self.from..start {
                tick(cx.rt, n)?;
                let values = shape.values(cx, rows.get(cx.rt, &mut self.removes, n)?)?;
                self.acc.take_out(&cx.eval, &info, &values)?;
            }
            let new_rows = (self.to, end);
            add(cx, shape, rows, new_rows, &mut self.adds, &mut self.acc)?;
        } else if self.goes_through(rows, end - start) {
            self.acc = Acc::new(shape.info().plan);
            add(cx, shape, rows, (start, end), &mut self.adds, &mut self.acc)?;
        } else {
            self.put_together(cx, shape, rows, (start, end))?;
        }
        (self.from, self.to) = (start, end);
        Ok(())
    }

    /// Whether a frame of this many rows is recomputed. For an aggregate that depends on the order
    /// of the rows, the decision does not depend on whether they are in memory.
    fn goes_through(&self, rows: &Rows, frame: u64) -> bool {
        match self.exact {
            false => frame <= DIRECT_ROWS,
            true => frame < 2 * FAN || frame <= DIRECT_EXACT_ROWS && rows.are_near(frame),
        }
    }

    fn put_together(
        &mut self,
        cx: &PassCx<'_, '_>,
        shape: &CallShape<'_>,
        rows: &Rows,
        (start, end): (u64, u64),
    ) -> Result<(), SqlError> {
        if self.stretches.is_empty() {
            self.stretch(cx, shape, rows)?;
        }
        let (first, last) = (start.next_multiple_of(FAN), end - end % FAN);
        let mut acc = Acc::new(shape.info().plan);
        add(cx, shape, rows, (start, first), &mut self.removes, &mut acc)?;
        join(
            cx,
            shape,
            &self.stretches,
            (first / FAN, last / FAN),
            &mut acc,
        )?;
        add(cx, shape, rows, (last, end), &mut self.adds, &mut acc)?;
        self.acc = acc;
        Ok(())
    }

    /// Computes the states of all stretches.
    fn stretch(
        &mut self,
        cx: &PassCx<'_, '_>,
        shape: &CallShape<'_>,
        rows: &Rows,
    ) -> Result<(), SqlError> {
        let plan = shape.info().plan;
        let mut level = Vec::new();
        for n in 0..rows.len() / FAN {
            let mut acc = Acc::new(plan);
            let part = (n * FAN, (n + 1) * FAN);
            add(cx, shape, rows, part, &mut self.adds, &mut acc)?;
            level.push(acc);
        }
        loop {
            let mut above = Vec::new();
            for part in level.chunks_exact(FAN as usize) {
                let mut acc = Acc::new(plan);
                part.iter().try_for_each(|a| acc.join(&cx.eval, plan, a))?;
                above.push(acc);
            }
            self.stretches.push(level);
            if above.is_empty() {
                return Ok(());
            }
            level = above;
        }
    }
}

fn tick(rt: &Runtime<'_>, n: u64) -> Result<(), SqlError> {
    match n % 1024 {
        0 => rt.tick(),
        _ => Ok(()),
    }
}

/// Adds the rows `from..to`.
fn add(
    cx: &PassCx<'_, '_>,
    shape: &CallShape<'_>,
    rows: &Rows,
    (from, to): (u64, u64),
    cursor: &mut Cursor,
    acc: &mut Acc,
) -> Result<(), SqlError> {
    let info = shape.info();
    for n in from..to {
        tick(cx.rt, n)?;
        shape.add(cx, &info, rows.get(cx.rt, cursor, n)?, acc)?;
    }
    Ok(())
}

/// Merges stretches `from..to` of the first level, using longer ones that are entirely inside.
fn join(
    cx: &PassCx<'_, '_>,
    shape: &CallShape<'_>,
    levels: &[Vec<Acc>],
    (from, to): (u64, u64),
    acc: &mut Acc,
) -> Result<(), SqlError> {
    let Some((level, above)) = levels.split_first() else {
        return Ok(());
    };
    let plan = shape.info().plan;
    let each = |part: std::ops::Range<u64>, acc: &mut Acc| -> Result<(), SqlError> {
        part.into_iter()
            .try_for_each(|n| acc.join(&cx.eval, plan, &level[n as usize]))
    };
    let (first, last) = (from.next_multiple_of(FAN), to - to % FAN);
    if above.is_empty() || first >= last {
        return each(from..to, acc);
    }
    each(from..first, acc)?;
    join(cx, shape, above, (first / FAN, last / FAN), acc)?;
    each(last..to, acc)
}
