//! Grouping: a hash table of groups, or groups that come together in order.
//!
//! When the table outgrows its memory, rows of groups that are not in it go to partition files by the hash of their key, keys and
//! arguments evaluated; each partition is then grouped in the same way, by other bits of the hash.

use std::hash::{Hash, Hasher};

use nfold_plan::expr::ExprType;
use nfold_plan::query::GroupPlan;
use nfold_types::SqlError;
use nfold_types::row::RowLayout;
use rustc_hash::{FxHashMap, FxHasher};

use crate::aggregate::{Acc, AggInfo, Values};
use crate::eval::{EvalCx, Val, row_error};
use crate::runtime::Runtime;
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
    bytes: usize,
    limit_bytes: usize,
    partitions: Vec<SpillWriter>,
    level: u32,
    /// Ordered input: the key of the group at hand.
    current: Vec<u8>,
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
            bytes: 0,
            limit_bytes: limit_bytes.max(256 << 10),
            partitions: Vec::new(),
            level: 0,
            current: Vec::new(),
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
            let mut key = Vec::new();
            self.key_maker.push_all(keys, &mut key)?;
            if self.plan.ordered && self.level == 0 {
                if self.groups.is_empty() || key != self.current {
                    go_on = self.flush(cx, emit)?;
                    self.new_group(keys)?;
                    self.current = key;
                }
                0
            } else if let Some(&place) = self.by_key.get(&key) {
                place as usize
            } else if self.bytes > self.limit_bytes && self.level < MAX_LEVEL {
                return self.spill(rt, &key, keys, values).map(|()| true);
            } else {
                let place = self.new_group(keys)?;
                self.bytes += key.len() + 64;
                self.by_key.insert(key, place as u32);
                place
            }
        };
        let group = &mut self.groups[place];
        let mut at = 0;
        for (acc, info) in group.accs.iter_mut().zip(&self.infos) {
            let before = acc.bytes;
            acc.add(cx, info, &values[at..at + info.width])?;
            at += info.width;
            self.bytes += acc.bytes.saturating_sub(before);
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
            let dir = rt.env.tmpdir();
            self.partitions = (0..PARTITIONS)
                .map(|_| SpillWriter::new(&dir))
                .collect::<Result<_, _>>()?;
        }
        let mut hasher = FxHasher::default();
        (self.level, key).hash(&mut hasher);
        let place = (hasher.finish() >> 40) as usize % PARTITIONS;
        let all: Vec<Val<'_>> = keys.iter().chain(values).cloned().collect();
        let mut image = Vec::new();
        tuple::encode_row(&self.spill_layout, &all, &mut image)?;
        self.partitions[place].push(&[], &image)
    }

    /// Gives all groups in memory, and forgets them. False: no more are wanted.
    fn flush(
        &mut self,
        cx: &EvalCx<'_>,
        emit: &mut dyn FnMut(&[u8]) -> Result<bool, SqlError>,
    ) -> Result<bool, SqlError> {
        self.by_key.clear();
        self.bytes = 0;
        let mut image = Vec::new();
        for group in std::mem::take(&mut self.groups) {
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
        if !self.flush(cx, emit)? {
            return Ok(());
        }
        for partition in std::mem::take(&mut self.partitions) {
            if partition.records() == 0 {
                continue;
            }
            let mut reader = partition.into_reader()?;
            let mut part = Grouper::new(self.plan, self.limit_bytes);
            part.level = self.level + 1;
            let mut n = 0u32;
            while reader.advance()? {
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
