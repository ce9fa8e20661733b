//! Reads the primary keys of an index merge.
//!
//! A locking read locks the entries and rows of each branch, and the gaps, like a read by that
//! index alone (as in InnoDB, rows that fail the other conditions keep these locks in READ
//! COMMITTED). The rows are then read again by their keys, which are locked by now.
//!
//! # Cost
//! The keys of all branches are held in memory. Beyond the bound of the plan or of the statement's
//! memory the table is scanned instead, and its rows are tested like those of the merge. A locking
//! read ignores the bound of the plan. With a LIMIT it takes the keys of a union one by one.

use std::sync::Arc;

use nfold_engine::{EqualityKeys, Read, ReadSpec, RowBatch, RowLock, Table};
use nfold_observe::StatusCounter;
use nfold_plan::query::{IndexMerge, MergeBranch, MergeKind};
use nfold_types::{Checkpoint, SqlError};

use crate::expr::eval::EvalCx;
use crate::expr::keys::{BoundAccess, BoundKind};
use crate::runtime::{Runtime, engine_error};

/// The number of rows that are looked up together.
const ROWS: usize = 1_024;
/// The work of sorting and combining one key.
const KEY_WORK: u64 = 10;

/// The state of an index merge.
pub(super) struct Merge {
    kind: MergeKind,
    most: usize,
    /// How the table is read. A branch locks the entries and rows that it reads in the same way.
    spec: ReadSpec,
    branches: Vec<Branch>,
    keys: EqualityKeys,
    /// The keys of one branch of an intersection.
    others: EqualityKeys,
    /// The index of the next key to look up; `None`: the keys have not been read yet.
    next: Option<usize>,
}

struct Branch {
    index: usize,
    bound: BoundAccess,
    kind: BoundKind,
    read: Option<Read>,
    /// Ranges that were begun. An equality lookup counts as one.
    begun: usize,
    open: bool,
    /// The lookups of the open range less the rows that they have found.
    unanswered: u64,
    rows: RowBatch,
    /// Of a stepwise union: the last keys read, and the index of the first one not yet taken.
    keys: EqualityKeys,
    taken: usize,
}

impl Branch {
    fn new(branch: &MergeBranch) -> Branch {
        Branch {
            index: branch.index,
            bound: BoundAccess::default(),
            kind: BoundKind::Empty,
            read: None,
            begun: 0,
            open: false,
            unanswered: 0,
            rows: RowBatch::new(),
            keys: EqualityKeys::new(),
            taken: 0,
        }
    }

    fn bind<'a>(
        &mut self,
        cx: &EvalCx<'a>,
        table: &Table,
        path: &'a MergeBranch,
    ) -> Result<(), SqlError> {
        self.kind = self.bound.bind(cx, table, path.index, &path.kind)?;
        (self.begun, self.open, self.taken) = (0, false, 0);
        self.keys.clear();
        Ok(())
    }

    /// Appends the keys of all its rows. False: they need more than `memory` bytes.
    fn read_all(
        &mut self,
        rt: &Runtime<'_>,
        source: (&Arc<Table>, &ReadSpec),
        memory: usize,
        keys: &mut EqualityKeys,
    ) -> Result<bool, SqlError> {
        while self.read_some(rt, source, keys)? {
            if keys.memory() > memory {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Its next key, which is the lowest one not yet taken.
    fn first_key(
        &mut self,
        rt: &Runtime<'_>,
        source: (&Arc<Table>, &ReadSpec),
    ) -> Result<Option<&[u8]>, SqlError> {
        while self.taken == self.keys.len() {
            self.taken = 0;
            let mut keys = std::mem::take(&mut self.keys);
            keys.clear();
            let more = self.read_some(rt, source, &mut keys);
            keys.seal();
            self.keys = keys;
            if !more? {
                return Ok(None);
            }
        }
        Ok(Some(self.keys.key(self.taken)))
    }

    /// Begins the next range, or the lookup of the equality keys. False: there is none.
    fn begin(&mut self, rt: &Runtime<'_>, (table, spec): (&Arc<Table>, &ReadSpec)) -> bool {
        let ranges = match self.kind {
            BoundKind::Empty => 0,
            BoundKind::Points => 1,
            _ => self.bound.ranges.len(),
        };
        if self.begun == ranges {
            return false;
        }
        let read = self.read.get_or_insert_with(|| {
            let spec = branch_spec(table, self.index, spec);
            Read::points(table.clone(), spec, EqualityKeys::new())
        });
        let mut lookups = 1;
        if self.kind == BoundKind::Points {
            lookups = self.bound.points.len() as u64;
            let points = std::mem::take(&mut self.bound.points);
            self.bound.points = read.bind_points(points);
        } else {
            read.bind_range(&self.bound.ranges[self.begun], false);
        }
        rt.counters.add(StatusCounter::HandlerReadKey, lookups);
        self.unanswered = lookups;
        self.begun += 1;
        self.open = true;
        true
    }

    /// Appends the keys of some rows. False: there are no more.
    fn read_some(
        &mut self,
        rt: &Runtime<'_>,
        source: (&Arc<Table>, &ReadSpec),
        keys: &mut EqualityKeys,
    ) -> Result<bool, SqlError> {
        if !self.open && !self.begin(rt, source) {
            return Ok(false);
        }
        let Some(read) = &mut self.read else {
            return Ok(false);
        };
        rt.tick()?;
        let before = keys.len();
        let whole_rows = self.index == 0 || read.spec().lock != RowLock::None;
        let more = match whole_rows {
            true => append_row_keys(rt, source.0, read, &mut self.rows, keys)?,
            false => rt.drive(|session| read.next_keys(session, keys))?,
        };
        let found = (keys.len() - before) as u64;
        rt.counters.add(StatusCounter::HandlerReadNext, found);
        self.unanswered = self.unanswered.saturating_sub(found);
        let without_rows = if more { 0 } else { self.unanswered };
        let place = source.0.io_place(self.index);
        source.0.count_fetches(place, found + without_rows);
        rt.checkpoint(KEY_WORK * found)?;
        self.open = more;
        Ok(true)
    }
}

/// How a branch reads its index. `spec` is that of the table's rows.
fn branch_spec(table: &Table, index: usize, spec: &ReadSpec) -> ReadSpec {
    let locks = spec.lock != RowLock::None;
    let key = table.def().indexes[0].parts.iter().map(|p| p.column);
    ReadSpec {
        index,
        columns: match index == 0 || locks {
            true => key.collect(),
            false => Vec::new(),
        },
        lock: spec.lock,
        wait: spec.wait,
        first_rows: if locks { spec.first_rows } else { 0 },
        ..ReadSpec::default()
    }
}

/// Reads some rows and appends their keys. False: there are no more.
fn append_row_keys(
    rt: &Runtime<'_>,
    table: &Table,
    read: &mut Read,
    rows: &mut RowBatch,
    keys: &mut EqualityKeys,
) -> Result<bool, SqlError> {
    rows.clear();
    let (more, _) = rt.read_into(read, rows, None)?;
    let mut key = Vec::new();
    for i in 0..rows.len() {
        key.clear();
        let made = table.batch_row_key(rows, i, &mut key);
        made.map_err(|e| engine_error(&e))?;
        keys.push(&key);
    }
    Ok(more)
}

/// Removes the keys that are not in `others`. Both are sorted.
fn intersect(keys: &EqualityKeys, others: &EqualityKeys) -> EqualityKeys {
    let mut both = EqualityKeys::new();
    let mut others = others.iter().peekable();
    for key in keys.iter() {
        while others.next_if(|other| *other < key).is_some() {}
        if others.peek() == Some(&key) {
            both.push(key);
        }
    }
    both.seal();
    both
}

impl Merge {
    pub fn new(merge: &IndexMerge, spec: &ReadSpec) -> Merge {
        Merge {
            kind: merge.kind,
            // A scan would lock all rows.
            most: match spec.lock {
                RowLock::None => merge.most,
                RowLock::Shared | RowLock::Exclusive => usize::MAX,
            },
            spec: spec.clone(),
            branches: merge.branches.iter().map(Branch::new).collect(),
            keys: EqualityKeys::new(),
            others: EqualityKeys::new(),
            next: None,
        }
    }

    /// The memory that it keeps, approximately, in bytes.
    pub fn memory(&self) -> usize {
        let branches = self.branches.iter();
        let reads = branches.map(|branch| {
            let read = branch.read.as_ref().map_or(0, Read::memory);
            branch.bound.memory() + branch.keys.memory() + branch.rows.memory() + read
        });
        reads.sum::<usize>() + self.keys.memory() + self.others.memory()
    }

    /// Frees the memory of many keys.
    pub fn give_back(&mut self) {
        (self.keys, self.others) = (EqualityKeys::new(), EqualityKeys::new());
        for branch in &mut self.branches {
            (branch.bound, branch.read) = (BoundAccess::default(), None);
            (branch.rows, branch.keys) = (RowBatch::new(), EqualityKeys::new());
        }
    }

    /// Binds the branches.
    pub fn bind<'a>(
        &mut self,
        cx: &EvalCx<'a>,
        table: &Table,
        merge: &'a IndexMerge,
    ) -> Result<(), SqlError> {
        self.keys.clear();
        self.next = None;
        for (branch, path) in self.branches.iter_mut().zip(&merge.branches) {
            branch.bind(cx, table, path)?;
        }
        Ok(())
    }

    /// Moves the next keys to `keys`. `None`: the table must be scanned. False: there are no more.
    pub fn next_keys(
        &mut self,
        rt: &Runtime<'_>,
        table: &Arc<Table>,
        keys: &mut EqualityKeys,
    ) -> Result<Option<bool>, SqlError> {
        if self.is_stepwise() {
            keys.clear();
            return Ok(Some(self.next_of_union(rt, table, keys)?));
        }
        if self.next.is_none() && !self.read_keys(rt, table)? {
            return Ok(None);
        }
        let next = self.next.unwrap_or(0);
        let end = self.keys.len().min(next + ROWS);
        keys.clear();
        (next..end).for_each(|i| keys.push(self.keys.key(i)));
        self.next = Some(end);
        Ok(Some(next < end))
    }

    /// Whether the branches are read only as far as the rows are needed: a locking read with a
    /// LIMIT locks few rows beyond it.
    fn is_stepwise(&self) -> bool {
        let locks = self.spec.lock != RowLock::None;
        locks && self.spec.first_rows > 0 && self.kind == MergeKind::Union
    }

    /// Moves the next key of a stepwise union to `keys`. False: there are no more.
    fn next_of_union(
        &mut self,
        rt: &Runtime<'_>,
        table: &Arc<Table>,
        keys: &mut EqualityKeys,
    ) -> Result<bool, SqlError> {
        let source = (table, &self.spec);
        let mut lowest: Option<&[u8]> = None;
        for branch in &mut self.branches {
            let key = branch.first_key(rt, source)?;
            lowest = match (lowest, key) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (one, other) => one.or(other),
            };
        }
        let Some(lowest) = lowest else {
            return Ok(false);
        };
        keys.push(lowest);
        keys.seal();
        let key = keys.key(0);
        for branch in &mut self.branches {
            let taken = branch.taken < branch.keys.len() && branch.keys.key(branch.taken) == key;
            branch.taken += usize::from(taken);
        }
        Ok(true)
    }

    /// Reads and combines the keys of all branches. False: there are too many.
    fn read_keys(&mut self, rt: &Runtime<'_>, table: &Arc<Table>) -> Result<bool, SqlError> {
        let memory = rt.env.work_memory();
        let source = (table, &self.spec);
        for (n, branch) in self.branches.iter_mut().enumerate() {
            let intersects = n > 0 && self.kind == MergeKind::Intersection;
            if intersects && self.keys.is_empty() {
                break;
            }
            let keys = match intersects {
                true => &mut self.others,
                false => &mut self.keys,
            };
            if intersects {
                keys.clear();
            }
            if !branch.read_all(rt, source, memory, keys)? {
                return Ok(false);
            }
            keys.seal();
            if intersects {
                self.keys = intersect(&self.keys, &self.others);
            }
            if self.keys.len() > self.most {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
