//! GROUP BY ... WITH ROLLUP: returns groups in the order of their keys. After the groups that share
//! their first n keys, it returns the row that summarizes them.
//!
//! # Picture
//! ```text
//! rows in key order   level 2   level 1   level 0        emitted
//! (1, x)  (1, x)      (1, x)    (1)       ()             (1, x)
//! (1, y)              (1, y)                             (1, y)  (1, NULL)
//! (2, x)              (2, x)    (2)                      (2, x)  (2, NULL)  (NULL, NULL)
//! ```
//! A row is added to the group only. If an aggregate over groups differs from the aggregate over
//! their rows (DISTINCT, doubles, GROUP_CONCAT), the row is added to each level. When a key
//! changes, the levels below it are emitted, the deepest first, and each is merged into the next
//! one.
//!
//! # Invariants
//! U1. Rows arrive at [`Rollup::take`] in the order of their keys: as they are read if the plan
//!     says so, otherwise from a sorter, which keeps the order of equal keys.
//! U2. A level contains the rows since it was last emitted, and no others.

use nfold_plan::query::{AggFunc, Aggregate, GroupPlan};
use nfold_types::{SqlError, Value};

use super::{DeferredValues, Grouper, Grouping, defer};
use crate::expr::eval::tuple;
use crate::expr::eval::{EvalCx, Val, row_error};
use crate::operators::aggregate::{Acc, Values, owned};
use crate::operators::sort::Sorter;
use crate::runtime::Runtime;

/// A consumer of result rows. It returns false if it wants no more.
type Emit<'f> = dyn FnMut(&[u8]) -> Result<bool, SqlError> + 'f;

/// The aggregates of one level.
struct Level {
    accs: Vec<Acc>,
    bytes: usize,
    /// Deferred values, for which there is no memory.
    deferred: Option<Sorter>,
}

impl Level {
    fn new(plan: &GroupPlan) -> Level {
        Level {
            accs: plan.aggregates.iter().map(Acc::new).collect(),
            bytes: 0,
            deferred: None,
        }
    }

    /// Adds the values of one row, except to aggregates for which `skip` is true.
    fn add(
        &mut self,
        rt: &Runtime<'_>,
        cx: &EvalCx<'_>,
        (plan, shape): (&GroupPlan, &Grouping),
        (values, skip): (&[Val<'_>], Option<&[bool]>),
        limit_bytes: usize,
    ) -> Result<(), SqlError> {
        let infos = Grouper::infos(plan, shape);
        let mut at = 0;
        for (n, acc) in self.accs.iter_mut().enumerate() {
            let info = infos(n);
            let before = acc.bytes;
            let inputs = &values[at..at + info.shape.width];
            at += info.shape.width;
            if skip.is_some_and(|skip| skip[n]) {
                continue;
            }
            let put = acc.add(cx, &info, inputs, self.bytes > limit_bytes)?;
            self.bytes = (self.bytes + acc.bytes).saturating_sub(before);
            if let Some(key) = put {
                let sorter = self
                    .deferred
                    .get_or_insert_with(|| Sorter::new(limit_bytes, 0));
                defer(rt, sorter, (0, n), &key, &info.shape.layout, inputs)?;
            }
        }
        Ok(())
    }
}

/// See the module.
pub(crate) struct Rollup<'p> {
    plan: &'p GroupPlan,
    shape: &'p Grouping,
    limit_bytes: usize,
    /// Sorts the rows by their keys, if they arrive unsorted.
    sorter: Option<Sorter>,
    /// By the number of shared keys: the total first, the group last.
    levels: Vec<Level>,
    /// The key of the group with the ends of its parts, and that of the current row.
    group: Key,
    row: Key,
    /// The keys of the group's first row, as a row image; empty before the first row.
    image: Vec<u8>,
    /// For each aggregate: whether a level is computed by merging groups.
    joins: Vec<bool>,
    /// ANY_VALUE results of the group emitted last.
    any: Vec<Option<Value>>,
    /// The row to emit.
    out: Vec<u8>,
}

/// Whether merging the states of groups in order gives the state of their rows.
fn is_joined(agg: &Aggregate) -> bool {
    let whole = [
        AggFunc::GroupConcat,
        AggFunc::JsonArray,
        AggFunc::JsonObject,
    ];
    !agg.distinct && !whole.contains(&agg.func) && Acc::new(agg).is_exact()
}

#[derive(Default)]
struct Key {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Key {
    /// The number of leading parts that are equal.
    fn shared(&self, other: &Key) -> usize {
        let mut start = 0;
        let same = |(a, b): &(&usize, &usize)| {
            let same = a == b && self.bytes[start..**a] == other.bytes[start..**b];
            start = **a;
            same
        };
        self.ends.iter().zip(&other.ends).take_while(same).count()
    }
}

impl<'p> Rollup<'p> {
    pub fn new(plan: &'p GroupPlan, shape: &'p Grouping, limit_bytes: usize) -> Rollup<'p> {
        let limit_bytes = limit_bytes.max(64 << 10);
        Rollup {
            plan,
            shape,
            limit_bytes,
            sorter: (!plan.ordered).then(|| Sorter::new(limit_bytes, 0)),
            levels: (0..=plan.keys.len()).map(|_| Level::new(plan)).collect(),
            group: Key::default(),
            row: Key::default(),
            image: Vec::new(),
            joins: plan.aggregates.iter().map(is_joined).collect(),
            any: plan.aggregates.iter().map(|_| None).collect(),
            out: Vec::new(),
        }
    }

    /// Adds one joined row. With ordered input, calls `emit` with the rows that are complete.
    /// False: `emit` wants no more.
    pub fn add<'a>(
        &mut self,
        rt: &Runtime<'_>,
        cx: &EvalCx<'a>,
        plan: &'a GroupPlan,
        emit: &mut Emit<'_>,
    ) -> Result<bool, SqlError> {
        let mut all = Values::new();
        for k in &plan.keys {
            all.push(cx.val(k)?);
        }
        for agg in &plan.aggregates {
            crate::operators::aggregate::values(cx, agg, &mut all)?;
        }
        let Some(sorter) = &mut self.sorter else {
            return self.take(rt, cx, &all, None, emit);
        };
        let (key, image) = (&mut self.row.bytes, &mut self.out);
        key.clear();
        image.clear();
        let keys = &all[..plan.keys.len()];
        self.shape.key_maker.push_all(keys, key)?;
        tuple::encode_row(&self.shape.spill_layout, &all, image)?;
        sorter.push(rt, key, image)?;
        Ok(true)
    }

    /// Adds the next row (U1): its keys, then the arguments of the aggregates. `key`: its encoded
    /// key, if it is known.
    fn take(
        &mut self,
        rt: &Runtime<'_>,
        cx: &EvalCx<'_>,
        all: &[Val<'_>],
        key: Option<&[u8]>,
        emit: &mut Emit<'_>,
    ) -> Result<bool, SqlError> {
        let (keys, values) = all.split_at(self.plan.keys.len());
        let first = self.image.is_empty();
        let same = !first && key.is_some_and(|key| key == self.group.bytes);
        if !same && !self.begin(rt, cx, keys, first, emit)? {
            return Ok(false);
        }
        let limit = self.limit_bytes / self.levels.len();
        let of = (self.plan, self.shape);
        let group = self.plan.keys.len();
        for (n, level) in self.levels.iter_mut().enumerate() {
            let skip = (n < group).then_some(self.joins.as_slice());
            level.add(rt, cx, of, (values, skip), limit)?;
        }
        Ok(true)
    }

    /// Emits the levels that end before a row with these keys. False: `emit` wants no more.
    fn begin(
        &mut self,
        rt: &Runtime<'_>,
        cx: &EvalCx<'_>,
        keys: &[Val<'_>],
        first: bool,
        emit: &mut Emit<'_>,
    ) -> Result<bool, SqlError> {
        let row = &mut self.row;
        row.bytes.clear();
        row.ends.clear();
        for (n, v) in keys.iter().enumerate() {
            self.shape.key_maker.push(n, v, &mut row.bytes)?;
            row.ends.push(row.bytes.len());
        }
        let shared = match first {
            true => 0,
            false => self.group.shared(&self.row),
        };
        if !first && shared < keys.len() && !self.give(rt, cx, shared + 1, emit)? {
            return Ok(false);
        }
        if first || shared < keys.len() {
            std::mem::swap(&mut self.group, &mut self.row);
            self.image.clear();
            tuple::encode_row(&self.shape.key_layout, keys, &mut self.image)?;
        }
        Ok(true)
    }

    /// Emits all levels from the group up to this one. False: `emit` wants no more.
    fn give(
        &mut self,
        rt: &Runtime<'_>,
        cx: &EvalCx<'_>,
        up_to: usize,
        emit: &mut Emit<'_>,
    ) -> Result<bool, SqlError> {
        for n in (up_to..self.levels.len()).rev() {
            if !self.give_level(rt, cx, n, emit)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn give_level(
        &mut self,
        rt: &Runtime<'_>,
        cx: &EvalCx<'_>,
        n: usize,
        emit: &mut Emit<'_>,
    ) -> Result<bool, SqlError> {
        let (plan, shape) = (self.plan, self.shape);
        let keys = plan.keys.len();
        let mut level = std::mem::replace(&mut self.levels[n], Level::new(plan));
        if let Some(sorter) = level.deferred {
            let infos = Grouper::infos(plan, shape);
            DeferredValues::new(rt, sorter)?.take_in(rt, cx, 0, &mut level.accs, infos)?;
        }
        if n > 0 {
            let above = self.levels[n - 1].accs.iter_mut().zip(&level.accs);
            let joined = above.zip(&plan.aggregates).zip(&self.joins);
            for (((above, acc), agg), _) in joined.filter(|(_, joins)| **joins) {
                above.join(cx, agg, acc)?;
            }
        }
        let mut values = Values::new();
        for k in 0..keys {
            values.push(match k < n {
                true => {
                    let value = shape.key_layout.get(&self.image, k);
                    Val::from_ref(value.map_err(|e| row_error(&e))?)
                }
                false => Val::Null,
            });
        }
        values.push(Val::UInt(n as u64));
        for (i, (acc, agg)) in level.accs.iter_mut().zip(&plan.aggregates).enumerate() {
            let mut value = acc.finish(cx, agg)?;
            if agg.func == AggFunc::Any {
                // The value in the group emitted last.
                if n == keys {
                    self.any[i] = Some(value.to_value());
                } else if let Some(any) = &self.any[i] {
                    value = owned(any.clone());
                }
            }
            values.push(value);
        }
        self.out.clear();
        tuple::encode_row(&shape.result, &values, &mut self.out)?;
        drop(values);
        emit(&self.out)
    }

    /// Ends an input that was known to be empty before any row was read. As in MySQL, GROUPING then
    /// returns 0 for the only row.
    pub fn finish_empty(
        mut self,
        rt: &Runtime<'_>,
        cx: &EvalCx<'_>,
        emit: &mut Emit<'_>,
    ) -> Result<(), SqlError> {
        let keys = self.plan.keys.len();
        let image = &mut self.image;
        tuple::encode_row(&self.shape.key_layout, &vec![Val::Null; keys], image)?;
        self.give_level(rt, cx, keys, emit).map(|_| ())
    }

    /// Ends the input.
    pub fn finish(
        &mut self,
        rt: &Runtime<'_>,
        cx: &EvalCx<'_>,
        emit: &mut Emit<'_>,
    ) -> Result<(), SqlError> {
        if let Some(sorter) = self.sorter.take() {
            let mut sorted = sorter.finish(rt)?;
            let mut n = 0u32;
            while let Some((key, image)) = sorted.next(rt)? {
                n = n.wrapping_add(1);
                if n.is_multiple_of(1024) {
                    rt.tick()?;
                }
                let mut all = Values::new();
                for v in self.shape.spill_layout.values(image) {
                    all.push(Val::from_ref(v.map_err(|e| row_error(&e))?));
                }
                if !self.take(rt, cx, &all, Some(key), emit)? {
                    return Ok(());
                }
            }
        }
        // Without any row, only the total is emitted.
        let up_to = 0;
        match self.image.is_empty() {
            true => self.give_level(rt, cx, up_to, emit).map(|_| ()),
            false => self.give(rt, cx, up_to, emit).map(|_| ()),
        }
    }
}
