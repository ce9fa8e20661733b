//! GROUP BY ... WITH ROLLUP: groups in the order of their keys, and behind those that share the
//! first n keys the row for all of them.
//!
//! # Picture
//! ```text
//! rows in key order   level 2   level 1   level 0        emitted
//! (1, x)  (1, x)      (1, x)    (1)       ()             (1, x)
//! (1, y)              (1, y)                             (1, y)  (1, NULL)
//! (2, x)              (2, x)    (2)                      (2, x)  (2, NULL)  (NULL, NULL)
//! ```
//! A row is taken in by the group alone, or, where sums of groups are not what the sum of their
//! rows is (DISTINCT, doubles, GROUP_CONCAT), by each level. Where a key changes, the levels behind
//! it are given, the deepest first, and joined to the next one.
//!
//! # Invariants
//! U1. Rows come to [`Rollup::take`] in the order of their keys: as they are read where the plan
//!     says so, else out of a sorter, which keeps the order of equal ones.
//! U2. A level has taken in the rows since it was last given, and only them.

use nfold_plan::query::{AggFunc, Aggregate, GroupPlan};
use nfold_types::{SqlError, Value};

use super::{Grouper, Grouping, Later, put_off};
use crate::expr::eval::tuple;
use crate::expr::eval::{EvalCx, Val, row_error};
use crate::operators::aggregate::{Acc, Values, owned};
use crate::operators::sort::Sorter;
use crate::runtime::Runtime;

/// Takes result rows; false: no more are wanted.
type Emit<'f> = dyn FnMut(&[u8]) -> Result<bool, SqlError> + 'f;

/// What one level has taken in.
struct Level {
    accs: Vec<Acc>,
    bytes: usize,
    /// What there is no memory for.
    put_off: Option<Sorter>,
}

impl Level {
    fn new(plan: &GroupPlan) -> Level {
        Level {
            accs: plan.aggregates.iter().map(Acc::new).collect(),
            bytes: 0,
            put_off: None,
        }
    }

    /// Takes the values of one row in, but for aggregates that `skip`.
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
                    .put_off
                    .get_or_insert_with(|| Sorter::new(limit_bytes, 0));
                put_off(rt, sorter, (0, n), &key, &info.shape.layout, inputs)?;
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
    /// Rows on their way into the order of their keys.
    sorter: Option<Sorter>,
    /// By the number of keys that their rows share: everything first, the group last.
    levels: Vec<Level>,
    /// The group's key, and where its parts end; the same of the row at hand.
    group: Key,
    row: Key,
    /// Row image of the keys of the group's first row; empty: there was no row yet.
    image: Vec<u8>,
    /// Which aggregates of groups are joined to those of all their rows.
    joins: Vec<bool>,
    /// The results of the group just given whose values are those of any row.
    any: Vec<Option<Value>>,
    /// The row that is given.
    out: Vec<u8>,
}

/// Whether what groups have gathered, joined in their order, is what their rows would have given.
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
    /// How many parts are the same from the beginning on.
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

    /// Takes one joined row in. With ordered input, `emit` gets the rows that are whole. False: no
    /// more are wanted.
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

    /// Takes in the next row (U1), its keys and then the arguments of the aggregates. `key`: its
    /// whole key, where it is known.
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

    /// Gives what ends before a row with these keys, if anything does. False: no more are wanted.
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

    /// Gives the rows of all levels from the group up to this one. False: no more are wanted.
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
        if let Some(sorter) = level.put_off {
            let infos = Grouper::infos(plan, shape);
            Later::new(rt, sorter)?.take_in(rt, cx, 0, &mut level.accs, infos)?;
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
                // That of the group that was given last.
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

    /// There are no rows, and that was known before any was read: the row for all of them is no sum
    /// to GROUPING (as in MySQL).
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

    /// No more rows come.
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
        // Of no rows at all there is the sum.
        let up_to = 0;
        match self.image.is_empty() {
            true => self.give_level(rt, cx, up_to, emit).map(|_| ()),
            false => self.give(rt, cx, up_to, emit).map(|_| ()),
        }
    }
}
