//! Hash joins with few outer rows and many inner ones: the outer rows are gathered in a hash table,
//! and the inner table is scanned once. So the inner rows are neither copied nor kept.
//!
//! # Picture
//! ```text
//!   outer rows ──▶ all of them, by the hashes of their keys
//!                        ▲ probe
//!   inner rows ──────────┴──▶ ON ──▶ filter ──▶ batch
//!   afterwards, of a left or anti join: the outer rows without a match ──▶ batch
//! ```
//! Plans only estimate the number of outer rows, so the step gathers them first. If they turn out
//! to be many, it puts the inner rows into the hash table, and the gathered rows are its first
//! outer batch.
//!
//! # Invariants
//! S1. The joined rows are in the order of the inner table. A step that must keep the order of the
//!     outer rows is not swapped.

use std::time::Instant;

use nfold_engine::RowLock;
use nfold_plan::query::{AccessKind, Block, JoinStep, JoinType, TableSource};
use nfold_types::{Checkpoint, SqlError};

use super::hashed::{keys_and_filter, passes_others};
use super::{CANDIDATE_WORK, StepCx, StepExec, depends_on_outer, row_lock};
use crate::env::batch::Batch;
use crate::operators::hash::HashIndex;
use crate::runtime::Runtime;
use crate::runtime::profile::{Counts, Stage};

/// A swapped join expects at least this many inner rows, and this many for each outer row.
const INNER_ROWS_MIN: f64 = 4096.0;
const INNER_ROWS_PER_OUTER: f64 = 2.0;

/// The bytes of gathered rows, as a share of the memory of a hash table.
const GATHERED_SHARE: usize = 2;

/// Whether a step may be swapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Swapping {
    No,
    /// Its outer rows have not been read yet.
    Possible,
    /// They have been gathered.
    Decided,
}

/// A step that is being swapped. The outer rows are those of [`StepExec::outer`].
pub(super) struct SwappedJoin {
    /// The outer rows whose keys have no NULL, and their hashes.
    rows: Vec<u32>,
    index: HashIndex,
    /// For each outer row, whether an inner row has matched; and how many have no match yet.
    matched: Vec<bool>,
    unmatched: usize,
    /// Whether the access path implies its conditions.
    exact: bool,
    /// The next one of the inner rows in memory, and whether the table has more.
    inner_at: usize,
    more: bool,
    /// The next outer row that may be returned without a match.
    outer_at: usize,
}

impl Swapping {
    pub fn of(rt: &Runtime<'_>, block: &Block, step: &JoinStep, position: usize) -> Swapping {
        let AccessKind::Hash { keys, rows, .. } = &step.access.kind else {
            return Swapping::No;
        };
        let swaps = position > 0
            && *rows >= INNER_ROWS_MIN
            && !keys.is_empty()
            && step.nested_join.is_none()
            && step.alternative.is_none()
            && !block.ordered
            && block.changed == 0
            && matches!(block.tables[step.table].source, TableSource::Table(_))
            && !depends_on_outer(block, step.table)
            && row_lock(rt, block, step.table) == RowLock::None;
        match swaps {
            true => Swapping::Possible,
            false => Swapping::No,
        }
    }
}

/// Whether outer rows without a match are returned.
fn keeps_unmatched(step: &JoinStep) -> bool {
    matches!(step.kind, JoinType::Left | JoinType::Anti)
}

impl StepCx<'_, '_> {
    /// Reads the outer rows of step `position`, and decides whether it is swapped.
    pub(super) fn gather(&self, steps: &mut [StepExec], position: usize) -> Result<(), SqlError> {
        let step = &self.block.joins[position];
        let expected = match &step.access.kind {
            AccessKind::Hash { rows, .. } => *rows,
            _ => 0.0,
        };
        let rows_max = (expected / INNER_ROWS_PER_OUTER) as usize;
        let bytes_max = self.rt.env.work_memory() / GATHERED_SHARE;
        let (before, rest) = steps.split_at_mut(position);
        let me = &mut rest[0];
        me.swapping = Swapping::Decided;
        let mut all = Batch::new(position);
        let append = |all: &mut Batch, some: &Batch| {
            for i in 0..some.len() {
                for p in 0..position {
                    all.push_of(some, i, p);
                }
            }
            all.len() <= rows_max && all.memory() <= bytes_max
        };
        // The first batch may have been read ahead.
        let mut fits = append(&mut all, &me.outer);
        while fits && !me.outer_done {
            me.outer_done = !self.next(before, position - 1, &mut me.outer)?;
            fits = append(&mut all, &me.outer);
        }
        me.outer = all;
        (me.outer_at, me.group_start, me.group_end) = (0, 0, 0);
        me.hashes.clear();
        if fits && !me.outer.is_empty() {
            self.swap(me, step)?;
        }
        Ok(())
    }

    /// Puts the outer rows into a hash table, and starts the scan of the inner table.
    fn swap(&self, me: &mut StepExec, step: &JoinStep) -> Result<(), SqlError> {
        let (keys, filter) = keys_and_filter(step, false);
        let Some(reader) = &mut me.reader else {
            return Ok(());
        };
        me.join_keys.prepare(self, step, keys);
        let count = me.outer.len();
        let (mut found, mut index) = (Vec::with_capacity(count), HashIndex::default());
        let mut rows = self.empty_rows();
        self.rt.checkpoint(CANDIDATE_WORK * count as u64)?;
        for i in 0..count {
            let outer = (&me.outer, i);
            if let Some(hash) = me.join_keys.outer(self, (step, keys), outer, &mut rows)? {
                index.push(hash);
                found.push(i as u32);
            }
        }
        drop(rows);
        index.finish();
        let exact = match &step.access.kind {
            AccessKind::Hash { build, .. } => {
                let rows = self.empty_rows();
                let cx = self.eval(&rows);
                reader.choose_parts(&cx, &self.block.tables[step.table].documents)?;
                reader.bind(&cx, build)?
            }
            _ => true,
        };
        me.kernel.compile(self, step.table, filter);
        me.inner.clear();
        me.swapped = Some(Box::new(SwappedJoin {
            unmatched: found.len(),
            rows: found,
            index,
            matched: vec![false; count],
            exact,
            inner_at: 0,
            more: true,
            outer_at: 0,
        }));
        Ok(())
    }

    /// Reads the next batch of joined rows of a swapped step; false: there are no more.
    pub(super) fn next_swapped(
        &self,
        me: &mut StepExec,
        position: usize,
        out: &mut Batch,
    ) -> Result<bool, SqlError> {
        let step = &self.block.joins[position];
        while !out.is_full() {
            let Some(swapped) = &mut me.swapped else {
                break;
            };
            if swapped.inner_at < me.inner.len() {
                self.probe(me, step, position, out)?;
            } else if swapped.more && !swapped.is_decided(step) {
                self.read_inner(me, position)?;
            } else if keeps_unmatched(step) && swapped.outer_at < me.outer.len() {
                self.return_unmatched(me, step, out)?;
            } else {
                break;
            }
        }
        Ok(!out.is_empty())
    }

    /// Reads the next inner rows.
    fn read_inner(&self, me: &mut StepExec, position: usize) -> Result<(), SqlError> {
        let (Some(reader), Some(swapped)) = (&mut me.reader, &mut me.swapped) else {
            return Ok(());
        };
        let (start, first) = (
            self.rt.profile.as_ref().map(|_| Instant::now()),
            me.inner.is_empty(),
        );
        me.inner.clear();
        swapped.inner_at = 0;
        swapped.more = reader.next(self.rt, &mut me.inner)?;
        if let (Some(profile), Some(start)) = (&self.rt.profile, start) {
            let counts = Counts {
                loops: u64::from(first),
                rows: me.inner.len() as u64,
                first: start.elapsed(),
                last: start.elapsed(),
            };
            profile.add(self.block, Stage::Read(position), counts);
        }
        self.rt.checkpoint(CANDIDATE_WORK * me.inner.len() as u64)
    }

    /// Joins inner rows with the outer rows, until the batch is full.
    fn probe(
        &self,
        me: &mut StepExec,
        step: &JoinStep,
        position: usize,
        out: &mut Batch,
    ) -> Result<(), SqlError> {
        let (keys, filter) = keys_and_filter(step, false);
        let AccessKind::Hash { build, .. } = &step.access.kind else {
            return Ok(());
        };
        let slot = &self.slots[step.table];
        let StepExec {
            swapped: Some(swapped),
            outer,
            inner,
            join_keys,
            kernel,
            ..
        } = me
        else {
            return Ok(());
        };
        let (outer, inner, implied) = (&*outer, &*inner, join_keys.implied);
        // One match decides a semi or anti join.
        let once = matches!(step.kind, JoinType::Semi | JoinType::Anti);
        let mut rows = self.empty_rows();
        while swapped.inner_at < inner.len() && !out.is_full() {
            let image = inner.row(swapped.inner_at);
            swapped.inner_at += 1;
            rows[step.table] = slot.row(Some(image));
            let cx = self.eval(&rows);
            let passes = kernel.passes(&cx, slot.layout(), image, filter)?
                && (swapped.exact || cx.passes(&build.implied)?);
            let hash = match passes {
                true => join_keys.inner(&cx, keys, image)?,
                false => None,
            };
            let Some(hash) = hash else { continue };
            for (n, place) in swapped.index.find(hash).enumerate() {
                if n % super::CANDIDATES == super::CANDIDATES - 1 {
                    self.rt
                        .checkpoint(CANDIDATE_WORK * super::CANDIDATES as u64)?;
                }
                let i = swapped.rows[place as usize] as usize;
                if once && swapped.matched[i] {
                    continue;
                }
                self.fill(outer, i, &mut rows);
                rows[step.table] = slot.row(Some(image));
                let cx = self.eval(&rows);
                if !passes_others(&cx, &step.on, implied.on)? {
                    continue;
                }
                if !std::mem::replace(&mut swapped.matched[i], true) {
                    swapped.unmatched -= 1;
                }
                if step.kind != JoinType::Anti && passes_others(&cx, &step.filter, implied.filter)?
                {
                    for p in 0..position {
                        out.push_of(outer, i, p);
                    }
                    out.push_row(Some(image), None);
                }
            }
        }
        Ok(())
    }

    /// Returns outer rows without a match, until the batch is full.
    fn return_unmatched(
        &self,
        me: &mut StepExec,
        step: &JoinStep,
        out: &mut Batch,
    ) -> Result<(), SqlError> {
        let Some(swapped) = &mut me.swapped else {
            return Ok(());
        };
        let outer = &me.outer;
        let mut rows = self.empty_rows();
        while swapped.outer_at < outer.len() && !out.is_full() {
            let i = swapped.outer_at;
            swapped.outer_at += 1;
            if !swapped.matched[i] {
                self.fill(outer, i, &mut rows);
                rows[step.table] = self.slots[step.table].row(None);
                self.push_unmatched(&rows, step, (outer, i), out)?;
            }
        }
        Ok(())
    }
}

impl SwappedJoin {
    /// Whether further inner rows cannot change the result.
    fn is_decided(&self, step: &JoinStep) -> bool {
        let once = matches!(step.kind, JoinType::Semi | JoinType::Anti);
        self.unmatched == 0 && (once || self.rows.is_empty())
    }
}
