//! Grouping: a hash table of groups, or groups that come together in order.
//!
//! When the table outgrows its memory, rows of groups that are not in it go to partition files by the hash of their key, keys and
//! arguments evaluated; each partition is then grouped in the same way, by other bits of the hash. What groups that are in the table
//! would have to keep (values of DISTINCT, texts of GROUP_CONCAT) goes to a sorted file, and is taken in group by group at the end.

use std::hash::{Hash, Hasher};

use nfold_plan::expr::{Expr, ExprType};
use nfold_plan::query::{Aggregate, GroupPlan};
use nfold_types::row::RowLayout;
use nfold_types::{SqlError, ValueRef};
use rustc_hash::{FxHashMap, FxHasher};

use crate::aggregate::{Acc, AggInfo, Values};
use crate::eval::{EvalCx, Val, row_error};
use crate::runtime::Runtime;
use crate::sort::{Sorted, Sorter};
use crate::spill::SpillWriter;
use crate::tuple::{self, KeyMaker};

const PARTITIONS: usize = 16;
/// Partitions of partitions, at most; a group table beyond that takes the memory it needs.
const MAX_LEVEL: u32 = 6;

struct Group {
    /// Row image of the keys.
    keys: Vec<u8>,
    accs: Vec<Acc>,
}

/// Groups rows; see the module.
pub(crate) struct Grouper<'p> {
    plan: &'p GroupPlan,
    infos: Vec<AggInfo<'p>>,
    key_maker: KeyMaker,
    key_layout: RowLayout,
    /// Keys, then results.
    pub result: RowLayout,
    /// Keys, then all arguments: what is spilled.
    spill_layout: RowLayout,
    groups: Vec<Group>,
    by_key: FxHashMap<Vec<u8>, u32>,
    /// The key of the row at hand; keeps its memory.
    key: Vec<u8>,
    bytes: usize,
    limit_bytes: usize,
    partitions: Vec<SpillWriter>,
    level: u32,
    /// Ordered input: the key of the group at hand.
    current: Vec<u8>,
    /// What groups in memory have no room for; see [`put_off`].
    put_off: Option<Sorter>,
}

/// Keeps an aggregate's values for later, sorted by group, aggregate and `key`.
fn put_off(
    rt: &Runtime<'_>,
    sorter: &mut Sorter,
    (group, aggregate): (usize, usize),
    key: &[u8],
    layout: &RowLayout,
    values: &[Val<'_>],
) -> Result<(), SqlError> {
    let mut full = Vec::with_capacity(PLACE_BYTES + key.len());
    full.extend_from_slice(&(group as u32).to_be_bytes());
    full.extend_from_slice(&(aggregate as u32).to_be_bytes());
    full.extend_from_slice(key);
    let mut image = Vec::new();
    tuple::encode_row(layout, values, &mut image)?;
    sorter.push(rt, &full, &image)
}

/// Before the key of what is put off: group and aggregate.
const PLACE_BYTES: usize = 8;

/// What was put off, in order.
struct Later {
    sorted: Sorted,
    /// The key at hand; empty: none is left.
    key: Vec<u8>,
    row: Vec<u8>,
}

impl Later {
    fn new(rt: &Runtime<'_>, sorter: Sorter) -> Result<Later, SqlError> {
        let mut later = Later {
            sorted: sorter.finish(rt)?,
            key: Vec::new(),
            row: Vec::new(),
        };
        later.advance(rt)?;
        Ok(later)
    }

    /// Moves to the next key.
    fn advance(&mut self, rt: &Runtime<'_>) -> Result<(), SqlError> {
        loop {
            let Some((key, row)) = self.sorted.next(rt)? else {
                self.key.clear();
                return Ok(());
            };
            if key != self.key {
                self.key.clear();
                self.key.extend_from_slice(key);
                self.row.clear();
                self.row.extend_from_slice(row);
                return Ok(());
            }
        }
    }

    /// Gives a group's aggregates what was put off for them.
    fn take_in(
        &mut self,
        rt: &Runtime<'_>,
        cx: &EvalCx<'_>,
        group: usize,
        accs: &mut [Acc],
        infos: &[AggInfo<'_>],
    ) -> Result<(), SqlError> {
        let mut n = 0u32;
        while let Some((place, aggregate)) = self.place()
            && place == group
        {
            let (acc, info) = (&mut accs[aggregate], &infos[aggregate]);
            let mut values = Values::new();
            for v in info.layout.values(&self.row) {
                values.push(Val::from_ref(v.map_err(|e| row_error(&e))?));
            }
            acc.take(cx, info, &values)?;
            drop(values);
            n = n.wrapping_add(1);
            if n.is_multiple_of(1024) {
                rt.tick()?;
            }
            self.advance(rt)?;
        }
        Ok(())
    }

    fn place(&self) -> Option<(usize, usize)> {
        let (group, rest) = self.key.split_first_chunk()?;
        let aggregate = rest.first_chunk()?;
        let number = |b: &[u8; 4]| u32::from_be_bytes(*b) as usize;
        Some((number(group), number(aggregate)))
    }
}

/// Types of the grouped row.
pub(crate) fn result_types(plan: &GroupPlan) -> Vec<ExprType> {
    plan.keys
        .iter()
        .map(|k| k.ty.clone())
        .chain(plan.aggregates.iter().map(|a| a.ty.clone()))
        .collect()
}

impl<'p> Grouper<'p> {
    pub fn new(plan: &'p GroupPlan, limit_bytes: usize) -> Grouper<'p> {
        let keys = || plan.keys.iter().map(|k| &k.ty);
        let inputs = plan.aggregates.iter().flat_map(|a| {
            a.args
                .iter()
                .map(|e| e.ty.clone())
                .chain(a.order.iter().map(|o| o.expr.ty.clone()))
        });
        let spilled: Vec<ExprType> = keys().cloned().chain(inputs).collect();
        Grouper {
            plan,
            infos: plan.aggregates.iter().map(AggInfo::new).collect(),
            key_maker: KeyMaker::new(keys().map(|t| (t, false))),
            key_layout: tuple::layout_of(keys()),
            result: tuple::layout_of(&result_types(plan)),
            spill_layout: tuple::layout_of(&spilled),
            groups: Vec::new(),
            by_key: FxHashMap::default(),
            key: Vec::new(),
            bytes: 0,
            limit_bytes: limit_bytes.max(64 << 10),
            partitions: Vec::new(),
            level: 0,
            current: Vec::new(),
            put_off: None,
        }
    }

    /// `COUNT(*)` and nothing else of everything: rows need not be looked at.
    pub fn counts_only(&self) -> bool {
        use nfold_plan::query::AggFunc;
        self.plan.implicit
            && self
                .plan
                .aggregates
                .iter()
                .all(|a| a.func == AggFunc::CountStar)
    }

    pub fn count_rows(&mut self, n: u64) {
        let group = self.only();
        group.accs.iter_mut().for_each(|a| a.count_rows(n));
    }

    /// For aggregates of a whole table that count rows, or count or sum plain integer columns: the argument's column, if it has one, of each.
    /// `column`: where the images hold what an expression names.
    pub fn plain_columns(
        &mut self,
        column: impl Fn(&Expr) -> Option<usize>,
    ) -> Option<Vec<Option<usize>>> {
        if !self.plan.implicit {
            return None;
        }
        let plan = self.plan;
        let accs = &self.only().accs;
        let argument = |(agg, acc): (&Aggregate, &Acc)| match agg.args.as_slice() {
            _ if !acc.takes_integers() => None,
            [] => Some(None),
            [arg] => column(arg).map(Some),
            _ => None,
        };
        plan.aggregates.iter().zip(accs).map(argument).collect()
    }

    /// Takes a row in by its image; `columns` are those of [`Grouper::plain_columns`].
    #[inline]
    pub fn add_image(
        &mut self,
        layout: &RowLayout,
        image: &[u8],
        columns: &[Option<usize>],
    ) -> Result<(), SqlError> {
        for (acc, column) in self.only().accs.iter_mut().zip(columns) {
            let value = match column {
                None => ValueRef::Int(1),
                Some(n) => layout.get(image, *n).map_err(|e| row_error(&e))?,
            };
            match value {
                ValueRef::Null => {}
                ValueRef::Int(v) => acc.add_integer(v.into()),
                ValueRef::UInt(v) => acc.add_integer(v.into()),
                _ => acc.add_integer(0),
            }
        }
        Ok(())
    }

    fn only(&mut self) -> &mut Group {
        if self.groups.is_empty() {
            let accs = self.plan.aggregates.iter().map(Acc::new).collect();
            self.groups.push(Group {
                keys: Vec::new(),
                accs,
            });
        }
        &mut self.groups[0]
    }

    /// Takes one joined row in. With ordered input, `emit` gets each group when it is whole.
    pub fn add<'a>(
        &mut self,
        rt: &Runtime<'_>,
        cx: &EvalCx<'a>,
        plan: &'a GroupPlan,
        emit: &mut dyn FnMut(&[u8]) -> Result<bool, SqlError>,
    ) -> Result<bool, SqlError> {
        let mut keys = Values::new();
        for k in &plan.keys {
            keys.push(cx.val(k)?);
        }
        let mut values = Values::new();
        for (info, agg) in self.infos.iter().zip(&plan.aggregates) {
            info.values(cx, agg, &mut values)?;
        }
        self.add_values(rt, cx, &keys, &values, emit)
    }

    fn add_values(
        &mut self,
        rt: &Runtime<'_>,
        cx: &EvalCx<'_>,
        keys: &[Val<'_>],
        values: &[Val<'_>],
        emit: &mut dyn FnMut(&[u8]) -> Result<bool, SqlError>,
    ) -> Result<bool, SqlError> {
        let mut go_on = true;
        let place = if self.plan.implicit {
            self.only();
            0
        } else {
            let mut key = std::mem::take(&mut self.key);
            key.clear();
            self.key_maker.push_all(keys, &mut key)?;
            if self.plan.ordered && self.level == 0 {
                if self.groups.is_empty() || key != self.current {
                    go_on = self.flush(rt, cx, emit)?;
                    self.new_group(keys)?;
                    std::mem::swap(&mut self.current, &mut key);
                }
                self.key = key;
                0
            } else if let Some(&place) = self.by_key.get(&key) {
                self.key = key;
                place as usize
            } else if self.bytes > self.limit_bytes && self.level < MAX_LEVEL {
                let spilled = self.spill(rt, &key, keys, values);
                self.key = key;
                return spilled.map(|()| true);
            } else {
                let place = self.new_group(keys)?;
                self.bytes += key.len() + 64;
                self.by_key.insert(key, place as u32);
                place
            }
        };
        let group = &mut self.groups[place];
        let mut at = 0;
        for (n, (acc, info)) in group.accs.iter_mut().zip(&self.infos).enumerate() {
            let before = acc.bytes;
            let inputs = &values[at..at + info.width];
            at += info.width;
            if let Some(key) = acc.add(cx, info, inputs, self.bytes > self.limit_bytes)? {
                let sorter = self
                    .put_off
                    .get_or_insert_with(|| Sorter::new(self.limit_bytes, 0));
                put_off(rt, sorter, (place, n), &key, &info.layout, inputs)?;
            }
            self.bytes = (self.bytes + acc.bytes).saturating_sub(before);
        }
        Ok(go_on)
    }

    fn new_group(&mut self, keys: &[Val<'_>]) -> Result<usize, SqlError> {
        let mut image = Vec::new();
        tuple::encode_row(&self.key_layout, keys, &mut image)?;
        let accs: Vec<Acc> = self.plan.aggregates.iter().map(Acc::new).collect();
        self.bytes += image.len() + accs.len() * size_of::<Acc>() + 64;
        self.groups.push(Group { keys: image, accs });
        Ok(self.groups.len() - 1)
    }

    fn spill(
        &mut self,
        rt: &Runtime<'_>,
        key: &[u8],
        keys: &[Val<'_>],
        values: &[Val<'_>],
    ) -> Result<(), SqlError> {
        if self.partitions.is_empty() {
            self.partitions = (0..PARTITIONS)
                .map(|_| SpillWriter::new(rt))
                .collect::<Result<_, _>>()?;
        }
        let mut hasher = FxHasher::default();
        (self.level, key).hash(&mut hasher);
        let place = (hasher.finish() >> 40) as usize % PARTITIONS;
        let all: Vec<Val<'_>> = keys.iter().chain(values).cloned().collect();
        let mut image = Vec::new();
        tuple::encode_row(&self.spill_layout, &all, &mut image)?;
        self.partitions[place].push(rt, &[], &image)
    }

    /// Gives all groups in memory, and forgets them. False: no more are wanted.
    fn flush(
        &mut self,
        rt: &Runtime<'_>,
        cx: &EvalCx<'_>,
        emit: &mut dyn FnMut(&[u8]) -> Result<bool, SqlError>,
    ) -> Result<bool, SqlError> {
        self.by_key.clear();
        self.bytes = 0;
        let mut image = Vec::new();
        let mut later = match self.put_off.take() {
            Some(sorter) => Some(Later::new(rt, sorter)?),
            None => None,
        };
        for (place, mut group) in std::mem::take(&mut self.groups).into_iter().enumerate() {
            if let Some(later) = &mut later {
                later.take_in(rt, cx, place, &mut group.accs, &self.infos)?;
            }
            let mut values: Vec<Val<'_>> =
                Vec::with_capacity(self.infos.len() + self.plan.keys.len());
            for n in 0..self.plan.keys.len() {
                values.push(Val::from_ref(
                    self.key_layout
                        .get(&group.keys, n)
                        .map_err(|e| row_error(&e))?,
                ));
            }
            for (acc, info) in group.accs.into_iter().zip(&self.infos) {
                values.push(acc.finish(cx, info.plan)?);
            }
            image.clear();
            tuple::encode_row(&self.result, &values, &mut image)?;
            if !emit(&image)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// No more rows come.
    pub fn finish(
        &mut self,
        rt: &Runtime<'_>,
        cx: &EvalCx<'_>,
        emit: &mut dyn FnMut(&[u8]) -> Result<bool, SqlError>,
    ) -> Result<(), SqlError> {
        if self.plan.implicit {
            self.only();
        }
        if !self.flush(rt, cx, emit)? {
            return Ok(());
        }
        for partition in std::mem::take(&mut self.partitions) {
            if partition.records() == 0 {
                continue;
            }
            let mut reader = partition.into_reader(rt)?;
            let mut part = Grouper::new(self.plan, self.limit_bytes);
            part.level = self.level + 1;
            let mut n = 0u32;
            while reader.advance(rt)? {
                n += 1;
                if n.is_multiple_of(1024) {
                    rt.tick()?;
                }
                let image = reader.record().1;
                let mut all = Values::new();
                for v in self.spill_layout.values(image) {
                    all.push(Val::from_ref(v.map_err(|e| row_error(&e))?));
                }
                let (keys, values) = all.split_at(self.plan.keys.len());
                part.add_values(rt, cx, keys, values, emit)?;
            }
            part.finish(rt, cx, emit)?;
        }
        Ok(())
    }
}
