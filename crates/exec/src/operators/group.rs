//! Grouping: by a hash table of groups, or group by group if the rows arrive in order.
//!
//! If the hash table exceeds its memory, rows of groups that are not in it are written to partition
//! files by the hash of their key, with evaluated keys and arguments. Each partition is then
//! grouped in the same way, by other bits of the hash. Values that a group in the table would have
//! to store (of DISTINCT and GROUP_CONCAT) are written to a sorted file, and added group by group
//! at the end.

mod images;
mod rollup;

use std::hash::{Hash, Hasher};
use std::thread::LocalKey;

use hashbrown::HashTable;
use nfold_plan::expr::ExprType;
use nfold_plan::query::{AggFunc, GroupPlan};
use nfold_types::SqlError;
use nfold_types::row::RowLayout;
use rustc_hash::FxHasher;

use super::aggregate::{Acc, AggInfo, AggShape, Values};
use super::sort::{Sorted, Sorter};
use crate::env::scratch::{Memory, Pool, Pooled};
use crate::expr::eval::tuple;
use crate::expr::eval::tuple::KeyMaker;
use crate::expr::eval::{EvalCx, Val, row_error};
use crate::expr::func::is_repeatable;
use crate::expr::kernels::PartialSum;
use crate::runtime::Runtime;
use crate::runtime::spill::SpillWriter;
use images::KnownKeys;
pub(crate) use images::{
    GroupedImages, ImageInput, ImageSums, JoinedRows, PlainColumn, add_evaluated, grouped_images,
    image_inputs,
};
pub(crate) use rollup::Rollup;

const PARTITIONS: usize = 16;
/// The maximum depth of partitioning. Beyond it a hash table takes the memory that it needs.
const MAX_LEVEL: u32 = 6;

/// A group in [`Groups`].
#[derive(Clone, Copy)]
struct Group {
    /// The offsets of its key, and of the row image of its keys' values, in the arena.
    key: usize,
    image: usize,
    end: usize,
}

thread_local! {
    static POOL: Pool<Groups> = const { Pool::new() };
}

/// The groups in memory.
#[derive(Default)]
struct Groups {
    arena: Vec<u8>,
    groups: Vec<Group>,
    /// The aggregates of all groups, one group after the other.
    accs: Vec<Acc>,
    by_key: HashTable<u32>,
    /// Buffers for the key of the current row, and for the result row.
    key: Vec<u8>,
    image: Vec<u8>,
    known: KnownKeys,
}

impl Memory for Groups {
    fn pool() -> &'static LocalKey<Pool<Groups>> {
        &POOL
    }

    fn clear(&mut self) {
        self.arena.clear();
        self.groups.clear();
        self.accs.clear();
        self.by_key.clear();
        self.known.clear();
    }

    fn bytes(&self) -> usize {
        self.arena.capacity()
            + self.groups.capacity() * size_of::<Group>()
            + self.accs.capacity() * size_of::<Acc>()
            + self.by_key.capacity() * 8
            + self.key.capacity()
            + self.image.capacity()
            + self.known.bytes()
    }
}

fn hash_of(key: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(key);
    hasher.finish()
}

impl Groups {
    fn key(&self, n: u32) -> &[u8] {
        let group = self.groups[n as usize];
        &self.arena[group.key..group.image]
    }

    fn find(&self, key: &[u8]) -> Option<usize> {
        let found = self.by_key.find(hash_of(key), |&n| self.key(n) == key);
        found.map(|&n| n as usize)
    }

    /// Makes the last group findable by its key.
    fn index_last(&mut self) {
        let n = self.groups.len() as u32 - 1;
        let hash = hash_of(self.key(n));
        let Groups {
            arena,
            groups,
            by_key,
            ..
        } = self;
        by_key.insert_unique(hash, n, |&n| {
            let group = groups[n as usize];
            hash_of(&arena[group.key..group.image])
        });
    }
}

/// The parts of a GROUP BY that are built once per plan: the layouts of keys, values and results.
pub(crate) struct Grouping {
    infos: Vec<AggShape>,
    key_maker: KeyMaker,
    key_layout: RowLayout,
    /// The keys, then the results.
    pub result: RowLayout,
    /// The keys, then all arguments: the layout of spilled rows.
    spill_layout: RowLayout,
    /// The value that each aggregate reads from row images, if the images of one table are
    /// sufficient: see [`image_inputs`].
    pub inputs: Option<Vec<ImageInput>>,
    /// How rows are grouped by their images, if GROUP BY names columns of one table.
    pub grouped: Option<GroupedImages>,
}

impl Grouping {
    pub fn new(
        plan: &GroupPlan,
        inputs: Option<Vec<ImageInput>>,
        grouped: Option<GroupedImages>,
    ) -> Grouping {
        let keys = || plan.keys.iter().map(|k| &k.ty);
        let arguments = plan
            .aggregates
            .iter()
            .flat_map(super::aggregate::input_types);
        let spilled: Vec<ExprType> = keys().cloned().chain(arguments).collect();
        Grouping {
            infos: plan.aggregates.iter().map(AggShape::new).collect(),
            key_maker: KeyMaker::new(keys().map(|t| (t, false))),
            key_layout: tuple::layout_of(keys()),
            result: tuple::layout_of(&result_types(plan)),
            spill_layout: tuple::layout_of(&spilled),
            inputs,
            grouped,
        }
    }
}

/// Groups rows; see the module.
pub(crate) struct Grouper<'p> {
    plan: &'p GroupPlan,
    shape: &'p Grouping,
    groups: Pooled<Groups>,
    bytes: usize,
    limit_bytes: usize,
    partitions: Vec<SpillWriter>,
    level: u32,
    /// Values for which groups in memory have no room; see [`defer`].
    deferred: Option<Sorter>,
}

/// Defers a value of an aggregate, to be sorted by group, aggregate and `key`.
fn defer(
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

/// The length of the group and the aggregate, before the key of a deferred value.
const PLACE_BYTES: usize = 8;

/// The deferred values, in order.
struct DeferredValues {
    sorted: Sorted,
    /// The current key; empty after the last one.
    key: Vec<u8>,
    row: Vec<u8>,
}

impl DeferredValues {
    fn new(rt: &Runtime<'_>, sorter: Sorter) -> Result<DeferredValues, SqlError> {
        let mut later = DeferredValues {
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

    /// Adds the deferred values of a group to its aggregates.
    fn take_in<'p>(
        &mut self,
        rt: &Runtime<'_>,
        cx: &EvalCx<'_>,
        group: usize,
        accs: &mut [Acc],
        infos: impl Fn(usize) -> AggInfo<'p>,
    ) -> Result<(), SqlError> {
        let mut n = 0u32;
        while let Some((place, aggregate)) = self.place()
            && place == group
        {
            let (acc, info) = (&mut accs[aggregate], infos(aggregate));
            let mut values = Values::new();
            for v in info.shape.layout.values(&self.row) {
                values.push(Val::from_ref(v.map_err(|e| row_error(&e))?));
            }
            acc.take(cx, &info, &values)?;
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

/// The grouping keys of a row.
#[inline]
fn keys_of<'a>(cx: &EvalCx<'a>, plan: &'a GroupPlan) -> Result<Values<'a>, SqlError> {
    let mut keys = Values::new();
    for k in &plan.keys {
        keys.push(cx.val(k)?);
    }
    Ok(keys)
}

/// The arguments of the aggregates in a row.
#[inline]
fn arguments_of<'a>(cx: &EvalCx<'a>, plan: &'a GroupPlan) -> Result<Values<'a>, SqlError> {
    let mut values = Values::new();
    for agg in &plan.aggregates {
        super::aggregate::values(cx, agg, &mut values)?;
    }
    Ok(values)
}

/// The column types of the grouped row.
pub(crate) fn result_types(plan: &GroupPlan) -> Vec<ExprType> {
    let level = plan.level().map(|_| ExprType::ubigint(false));
    plan.keys
        .iter()
        .map(|k| k.ty.clone())
        .chain(level)
        .chain(plan.aggregates.iter().map(|a| a.ty.clone()))
        .collect()
}

impl<'p> Grouper<'p> {
    pub fn new(plan: &'p GroupPlan, shape: &'p Grouping, limit_bytes: usize) -> Grouper<'p> {
        Grouper {
            plan,
            shape,
            groups: Pooled::take(),
            bytes: 0,
            limit_bytes: limit_bytes.max(64 << 10),
            partitions: Vec::new(),
            level: 0,
            deferred: None,
        }
    }

    fn infos(plan: &'p GroupPlan, shape: &'p Grouping) -> impl Fn(usize) -> AggInfo<'p> {
        |n| AggInfo {
            plan: &plan.aggregates[n],
            shape: &shape.infos[n],
        }
    }

    /// Whether the result is a single `COUNT(*)`, for which rows need not be read.
    pub fn counts_only(&self) -> bool {
        self.plan.implicit
            && self
                .plan
                .aggregates
                .iter()
                .all(|a| a.func == AggFunc::CountStar)
    }

    pub fn count_rows(&mut self, n: u64) {
        self.only().iter_mut().for_each(|a| a.count_rows(n));
    }

    /// The aggregates of the only group.
    #[inline]
    fn only(&mut self) -> &mut [Acc] {
        if self.groups.groups.is_empty() {
            self.groups.groups.push(Group {
                key: 0,
                image: 0,
                end: 0,
            });
            let accs = self.plan.aggregates.iter().map(Acc::new);
            self.groups.accs.extend(accs);
        }
        &mut self.groups.accs
    }

    /// Adds one joined row. With ordered input, `emit` is called with each group that is complete.
    pub fn add<'a>(
        &mut self,
        rt: &Runtime<'_>,
        cx: &EvalCx<'a>,
        plan: &'a GroupPlan,
        emit: &mut dyn FnMut(&[u8]) -> Result<bool, SqlError>,
    ) -> Result<(Option<usize>, bool), SqlError> {
        let keys = keys_of(cx, plan)?;
        let values = arguments_of(cx, plan)?;
        let groups = self.groups.groups.len();
        let added = self.add_values(rt, cx, &keys, &values, emit)?;
        self.warn_of_group(cx, plan, groups)?;
        Ok(added)
    }

    /// Finds the group of a row, and creates it if there is none. Returns its position, and whether
    /// more groups are wanted. The position is `None` if there was no memory for a new group: the
    /// row was spilled then, and the caller must not add it to the aggregates.
    pub fn place<'a>(
        &mut self,
        rt: &Runtime<'_>,
        cx: &EvalCx<'a>,
        plan: &'a GroupPlan,
        emit: &mut dyn FnMut(&[u8]) -> Result<bool, SqlError>,
    ) -> Result<(Option<usize>, bool), SqlError> {
        let keys = keys_of(cx, plan)?;
        let groups = self.groups.groups.len();
        let (place, go_on) = self.find_or_add(rt, cx, &keys, emit)?;
        self.warn_of_group(cx, plan, groups)?;
        if place.is_none() {
            self.spill(rt, &keys, &arguments_of(cx, plan)?)?;
        }
        Ok((place, go_on))
    }

    /// Computes the keys of a new group once more if the statement has warnings. MySQL computes
    /// them to find the group in its temporary table, and again to store them, so they warn twice.
    /// `groups` is the number of groups before the row.
    #[inline]
    fn warn_of_group<'a>(
        &self,
        cx: &EvalCx<'a>,
        plan: &'a GroupPlan,
        groups: usize,
    ) -> Result<(), SqlError> {
        if self.groups.groups.len() == groups
            || plan.ordered
            || cx.st.warnings.borrow().total() == 0
            || plan.aggregates.iter().any(|a| a.distinct)
        {
            return Ok(());
        }
        let keys = plan.keys.iter();
        for key in keys.filter(|k| k.as_column().is_none() && is_repeatable(k)) {
            cx.val(key)?;
        }
        Ok(())
    }

    fn add_values(
        &mut self,
        rt: &Runtime<'_>,
        cx: &EvalCx<'_>,
        keys: &[Val<'_>],
        values: &[Val<'_>],
        emit: &mut dyn FnMut(&[u8]) -> Result<bool, SqlError>,
    ) -> Result<(Option<usize>, bool), SqlError> {
        let (place, go_on) = self.find_or_add(rt, cx, keys, emit)?;
        match place {
            Some(place) => self.aggregate(rt, cx, place, values)?,
            None => self.spill(rt, keys, values)?,
        }
        Ok((place, go_on))
    }

    /// The group with these keys; `None`: it is not there, and there is no memory for it. False: no
    /// more groups are wanted.
    fn find_or_add(
        &mut self,
        rt: &Runtime<'_>,
        cx: &EvalCx<'_>,
        keys: &[Val<'_>],
        emit: &mut dyn FnMut(&[u8]) -> Result<bool, SqlError>,
    ) -> Result<(Option<usize>, bool), SqlError> {
        if self.plan.implicit {
            self.only();
            return Ok((Some(0), true));
        }
        let mut go_on = true;
        let mut key = std::mem::take(&mut self.groups.key);
        key.clear();
        self.shape.key_maker.push_all(keys, &mut key)?;
        let place = if self.plan.ordered && self.level == 0 {
            if self.groups.groups.is_empty() || key != self.groups.key(0) {
                go_on = self.flush(rt, cx, emit)?;
                self.new_group(&key, keys)?;
            }
            Some(0)
        } else if let Some(place) = self.groups.find(&key) {
            Some(place)
        } else if self.bytes > self.limit_bytes && self.level < MAX_LEVEL {
            None
        } else {
            let place = self.new_group(&key, keys)?;
            self.bytes += key.len() + 64;
            self.groups.index_last();
            Some(place)
        };
        self.groups.key = key;
        Ok((place, go_on))
    }

    /// Adds the arguments of a row to the aggregates of its group.
    fn aggregate(
        &mut self,
        rt: &Runtime<'_>,
        cx: &EvalCx<'_>,
        place: usize,
        values: &[Val<'_>],
    ) -> Result<(), SqlError> {
        let infos = Self::infos(self.plan, self.shape);
        let first = place * self.plan.aggregates.len();
        let mut at = 0;
        for n in 0..self.plan.aggregates.len() {
            let info = infos(n);
            let acc = &mut self.groups.accs[first + n];
            let before = acc.bytes;
            let inputs = &values[at..at + info.shape.width];
            at += info.shape.width;
            let put = acc.add(cx, &info, inputs, self.bytes > self.limit_bytes)?;
            self.bytes = (self.bytes + acc.bytes).saturating_sub(before);
            if let Some(key) = put {
                let sorter = self
                    .deferred
                    .get_or_insert_with(|| Sorter::new(self.limit_bytes, 0));
                defer(rt, sorter, (place, n), &key, &info.shape.layout, inputs)?;
            }
        }
        Ok(())
    }

    /// Adds a group with this key, and returns its number.
    fn new_group(&mut self, key: &[u8], keys: &[Val<'_>]) -> Result<usize, SqlError> {
        let Groups {
            arena,
            groups,
            accs,
            ..
        } = &mut *self.groups;
        let start = arena.len();
        arena.extend_from_slice(key);
        let image = arena.len();
        tuple::encode_row(&self.shape.key_layout, keys, arena)?;
        let end = arena.len();
        groups.push(Group {
            key: start,
            image,
            end,
        });
        accs.extend(self.plan.aggregates.iter().map(Acc::new));
        let sum = match self.shape.grouped {
            Some(_) => size_of::<PartialSum>(),
            None => 0,
        };
        self.bytes += end - image + self.plan.aggregates.len() * (size_of::<Acc>() + sum) + 64;
        Ok(groups.len() - 1)
    }

    /// Keeps a row for later: of the key that was looked for last.
    fn spill(
        &mut self,
        rt: &Runtime<'_>,
        keys: &[Val<'_>],
        values: &[Val<'_>],
    ) -> Result<(), SqlError> {
        let key = self.groups.key.as_slice();
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
        tuple::encode_row(&self.shape.spill_layout, &all, &mut image)?;
        self.partitions[place].push(rt, &[], &image)
    }

    /// Returns all groups in memory through `emit`, and removes them. False: `emit` wants no more.
    fn flush(
        &mut self,
        rt: &Runtime<'_>,
        cx: &EvalCx<'_>,
        emit: &mut dyn FnMut(&[u8]) -> Result<bool, SqlError>,
    ) -> Result<bool, SqlError> {
        self.bytes = 0;
        let (plan, shape) = (self.plan, self.shape);
        let mut later = match self.deferred.take() {
            Some(sorter) => Some(DeferredValues::new(rt, sorter)?),
            None => None,
        };
        let Groups {
            arena,
            groups,
            accs,
            by_key,
            image,
            ..
        } = &mut *self.groups;
        by_key.clear();
        let mut go_on = true;
        for (place, group) in groups.drain(..).enumerate() {
            let first = place * plan.aggregates.len();
            let accs = &mut accs[first..first + plan.aggregates.len()];
            if let Some(later) = &mut later {
                later.take_in(rt, cx, place, accs, Self::infos(plan, shape))?;
            }
            let mut values = Values::new();
            for n in 0..plan.keys.len() {
                let keys = &arena[group.image..group.end];
                let value = shape.key_layout.get(keys, n);
                values.push(Val::from_ref(value.map_err(|e| row_error(&e))?));
            }
            for (acc, agg) in accs.iter_mut().zip(&plan.aggregates) {
                values.push(acc.finish(cx, agg)?);
            }
            image.clear();
            tuple::encode_row(&shape.result, &values, image)?;
            go_on = emit(image)?;
            if !go_on {
                break;
            }
        }
        arena.clear();
        accs.clear();
        Ok(go_on)
    }

    /// Ends the input, and returns the remaining groups.
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
            let mut part = Grouper::new(self.plan, self.shape, self.limit_bytes);
            part.level = self.level + 1;
            let mut n = 0u32;
            while reader.advance(rt)? {
                n += 1;
                if n.is_multiple_of(1024) {
                    rt.tick()?;
                }
                let image = reader.record().1;
                let mut all = Values::new();
                for v in self.shape.spill_layout.values(image) {
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
