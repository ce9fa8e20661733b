//! Finds the candidates of outer rows: by the keys of many outer rows in one read, or by one read
//! per outer row.

use nfold_engine::EqualityKeys;
use nfold_plan::query::{JoinStep, JoinType, LOOKUP_COST, LOOKUP_ROW_COST};
use nfold_types::SqlError;

use super::nested_outer::is_null_extended;
use super::read::Point;
use super::{
    Lookup, MoreCandidates, PIECE_BYTES, StepCx, StepExec, depends_on_outer, lookup_access,
};
use crate::runtime::spill::Spool;

/// The number of outer rows whose keys are looked up in one read.
const OUTER_ROWS: usize = 256;

/// The keys of outer rows that are looked up together. Its memory is reused.
#[derive(Default)]
pub(super) struct LookupKeys {
    /// The key of each outer row, if it has one, as a range in `keys`.
    keys: Vec<u8>,
    spans: Vec<Option<(u32, u32)>>,
    points: EqualityKeys,
    /// For each outer row, the number of its key in the sorted set.
    places: Vec<Option<u32>>,
    /// For each key, the offset of its first found row, and the offset for its next one.
    starts: Vec<u32>,
    next: Vec<u32>,
}

impl LookupKeys {
    /// The memory that it holds, approximately, in bytes.
    pub fn memory(&self) -> usize {
        self.keys.capacity() + self.points.memory()
    }

    fn clear(&mut self) {
        self.keys.clear();
        self.spans.clear();
        self.points.clear();
        self.places.clear();
        self.starts.clear();
        self.next.clear();
    }

    fn push(&mut self, key: Option<&[u8]>) {
        let start = self.keys.len() as u32;
        self.spans.push(key.map(|key| {
            self.keys.extend_from_slice(key);
            self.points.push(key);
            (start, self.keys.len() as u32)
        }));
    }

    /// Ends the input: numbers the keys in sorted order.
    fn seal(&mut self) {
        self.points.seal();
        let (keys, points) = (&self.keys, &self.points);
        let place = |span: &Option<(u32, u32)>| {
            let (start, end) = (*span)?;
            place_of(points, &keys[start as usize..end as usize])
        };
        self.places.extend(self.spans.iter().map(place));
    }
}

/// The number of a key in the sealed set.
fn place_of(points: &EqualityKeys, key: &[u8]) -> Option<u32> {
    let (mut lo, mut hi) = (0, points.len());
    while lo < hi {
        let mid = (lo + hi) / 2;
        match points.key(mid).cmp(key) {
            std::cmp::Ordering::Equal => return Some(mid as u32),
            std::cmp::Ordering::Less => lo = mid + 1,
            std::cmp::Ordering::Greater => hi = mid,
        }
    }
    None
}

impl StepExec {
    /// Marks all current candidates as part of no joined row.
    fn keep_none(&mut self) {
        if let Some(kept) = &mut self.kept {
            kept.clear();
            kept.resize(self.inner.len(), false);
        }
    }
}

impl StepCx<'_, '_> {
    /// Finds the candidates of outer rows from `outer_at` on.
    pub(super) fn look_up(&self, me: &mut StepExec, position: usize) -> Result<(), SqlError> {
        let step = &self.block.joins[position];
        self.give_up(me);
        me.group_start = me.outer_at;
        me.spans.clear();
        me.inner_order.clear();
        me.candidate = 0;
        me.more = MoreCandidates::No;
        me.exact = true;
        self.rt.tick()?;
        let most = self.affordable(me, step);
        match me.lookup {
            Lookup::Batched => self.look_up_batched(me, step, most),
            Lookup::Hash(_) => self.look_up_hash(me, step),
            Lookup::Scan | Lookup::PerRow => self.look_up_one(me, step),
        }?;
        if let Some(switch) = &mut me.switch {
            let lookups = me.group_end - me.group_start;
            switch.spent += lookups as f64 * LOOKUP_COST + me.inner.len() as f64 * LOOKUP_ROW_COST;
        }
        Ok(())
    }

    /// The number of outer rows to look up next. Switches to the hash table if the lookups have
    /// cost too much.
    fn affordable(&self, me: &mut StepExec, step: &JoinStep) -> usize {
        let (Some(switch), Some(other)) = (&me.switch, &step.alternative) else {
            return OUTER_ROWS;
        };
        let left = other.budget - switch.spent;
        if !switch.hashed && left < other.lookup_cost {
            me.change_over();
        }
        ((left / other.lookup_cost) as usize).clamp(1, OUTER_ROWS)
    }

    /// Finds the candidates of one outer row, piece by piece.
    fn look_up_one(&self, me: &mut StepExec, step: &JoinStep) -> Result<(), SqlError> {
        let access = lookup_access(step, me.switch.is_some());
        let mut rows = self.empty_rows();
        self.fill(&me.outer, me.outer_at, &mut rows);
        let through = is_null_extended(step, &rows);
        if let Some(reader) = me.reader.as_mut().filter(|_| !through) {
            let cx = self.eval(&rows);
            reader.choose_parts(&cx, &self.block.tables[step.table].documents)?;
            me.exact = reader.bind(&cx, access)?;
            me.more = MoreCandidates::Read;
        } else if !through && depends_on_outer(self.block, step.table) {
            let mut spool = Spool::new(self.rt.env.work_memory());
            self.dependent_rows(step.table, &rows, &mut |image| {
                spool.push(self.rt, 0, image)
            })?;
            me.made = Some(spool.into_rows(self.rt)?);
            me.more = MoreCandidates::Computed;
        }
        drop(rows);
        me.group_end = me.outer_at + 1;
        self.next_piece(me, step)
    }

    /// Ends the current candidates: releases the locks of those that no joined row contains.
    pub(super) fn give_up(&self, me: &mut StepExec) {
        let (Some(kept), Some(reader)) = (&mut me.kept, &me.reader) else {
            return;
        };
        for i in (0..kept.len()).filter(|&i| !kept[i]) {
            reader.release(self.rt, &me.inner, i);
        }
        kept.clear();
    }

    /// Reads the next candidates of the group's only outer row.
    pub(super) fn next_piece(&self, me: &mut StepExec, step: &JoinStep) -> Result<(), SqlError> {
        self.give_up(me);
        me.inner.clear();
        // One match decides a semi or anti join, so that further rows are rarely needed.
        let enough = match step.kind {
            JoinType::Semi | JoinType::Anti => 1,
            JoinType::Inner | JoinType::Left => PIECE_BYTES,
        };
        while me.inner.bytes() < enough {
            me.more = match std::mem::replace(&mut me.more, MoreCandidates::No) {
                MoreCandidates::No => break,
                MoreCandidates::Read => match &mut me.reader {
                    Some(reader) => match reader.next(self.rt, &mut me.inner)? {
                        true => MoreCandidates::Read,
                        false => MoreCandidates::No,
                    },
                    None => MoreCandidates::No,
                },
                MoreCandidates::Computed => match &mut me.made {
                    Some(rows) => match rows.next(self.rt)? {
                        Some((_, image)) => {
                            self.rt.copy_row(image, &mut me.inner)?;
                            MoreCandidates::Computed
                        }
                        None => MoreCandidates::No,
                    },
                    None => MoreCandidates::No,
                },
                MoreCandidates::Spilled(place) => match &mut me.lookup {
                    Lookup::Hash(table) => match table.spilled() {
                        Some(file) => file
                            .next(self.rt, place, &mut me.inner)?
                            .map_or(MoreCandidates::No, MoreCandidates::Spilled),
                        None => MoreCandidates::No,
                    },
                    _ => MoreCandidates::No,
                },
            };
        }
        me.candidate = 0;
        me.inner_order.clear();
        me.inner_order.extend(0..me.inner.len() as u32);
        me.keep_none();
        me.spans.clear();
        me.spans.push((0, me.inner.len() as u32));
        Ok(())
    }

    /// Looks up the keys of at most `most` outer rows in one read.
    fn look_up_batched(
        &self,
        me: &mut StepExec,
        step: &JoinStep,
        most: usize,
    ) -> Result<(), SqlError> {
        let access = lookup_access(step, me.switch.is_some());
        let Some(reader) = &mut me.reader else {
            return Ok(());
        };
        let documents = &self.block.tables[step.table].documents;
        reader.choose_parts(&self.eval(&self.empty_rows()), documents)?;
        let mut end = (me.outer_at + most).min(me.outer.len());
        let looking = &mut me.looking;
        looking.clear();
        for i in me.outer_at..end {
            let mut rows = self.empty_rows();
            self.fill(&me.outer, i, &mut rows);
            if is_null_extended(step, &rows) {
                looking.push(None);
                continue;
            }
            match reader.point(&self.eval(&rows), access)? {
                Point::At(key) => looking.push(Some(key)),
                Point::None => looking.push(None),
                Point::Ranges => {
                    end = i;
                    break;
                }
            }
            me.exact &= reader.bound.exact;
        }
        if end == me.outer_at {
            return self.look_up_one(me, step);
        }
        looking.seal();
        let count = looking.points.len();
        me.inner.clear();
        if count > 0 {
            reader.look_up(&mut looking.points);
            while reader.next(self.rt, &mut me.inner)? {
                if me.inner.bytes() > self.rt.env.work_memory().max(PIECE_BYTES) {
                    return self.look_up_one(me, step);
                }
            }
        }
        // Sorts the found rows by key.
        let (starts, next) = (&mut looking.starts, &mut looking.next);
        starts.resize(count + 1, 0);
        for i in 0..me.inner.len() {
            starts[me.inner.point(i) + 1] += 1;
        }
        if count > 0 {
            reader.count_keys(starts[1..].iter().copied());
        }
        for p in 0..count {
            starts[p + 1] += starts[p];
        }
        next.extend_from_slice(starts);
        me.inner_order.resize(me.inner.len(), 0);
        for i in 0..me.inner.len() {
            let p = me.inner.point(i);
            me.inner_order[next[p] as usize] = i as u32;
            next[p] += 1;
        }
        let span = |place: &Option<u32>| {
            place.map_or((0, 0), |p| (starts[p as usize], starts[p as usize + 1]))
        };
        me.spans.extend(looking.places.iter().map(span));
        me.group_end = end;
        me.keep_none();
        Ok(())
    }
}
