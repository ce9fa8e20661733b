//! Reads the primary keys of an index merge.
//!
//! # Cost
//! The keys of all branches are held in memory. Beyond the bound of the plan or of the statement's
//! memory the table is scanned instead, and its rows are tested like those of the merge.

use std::sync::Arc;

use nfold_engine::{EqualityKeys, Read, ReadSpec, RowBatch, Table};
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
}

impl Branch {
    fn new(branch: &MergeBranch) -> Branch {
        Branch {
            index: branch.index,
            bound: BoundAccess::default(),
            kind: BoundKind::Empty,
            read: None,
        }
    }

    /// Appends the keys of its rows. False: they need more than `memory` bytes.
    fn read(
        &mut self,
        rt: &Runtime<'_>,
        table: &Arc<Table>,
        memory: usize,
        keys: &mut EqualityKeys,
    ) -> Result<bool, SqlError> {
        if self.kind == BoundKind::Empty {
            return Ok(true);
        }
        let read = match &mut self.read {
            Some(read) => read,
            None => {
                let columns = match self.index {
                    0 => table.def().indexes[0]
                        .parts
                        .iter()
                        .map(|p| p.column)
                        .collect(),
                    _ => Vec::new(),
                };
                let spec = ReadSpec {
                    index: self.index,
                    columns,
                    ..ReadSpec::default()
                };
                let points = EqualityKeys::new();
                self.read.insert(Read::points(table.clone(), spec, points))
            }
        };
        if self.kind == BoundKind::Points {
            rt.counters.add(
                StatusCounter::HandlerReadKey,
                self.bound.points.len() as u64,
            );
            let points = std::mem::take(&mut self.bound.points);
            self.bound.points = read.bind_points(points);
            return append_keys(rt, table, read, memory, keys);
        }
        for range in &self.bound.ranges {
            rt.counters.add(StatusCounter::HandlerReadKey, 1);
            read.bind_range(range, false);
            if !append_keys(rt, table, read, memory, keys)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn append_keys(
    rt: &Runtime<'_>,
    table: &Table,
    read: &mut Read,
    memory: usize,
    keys: &mut EqualityKeys,
) -> Result<bool, SqlError> {
    let clustered = read.spec().index == 0;
    let mut rows = RowBatch::new();
    let mut key = Vec::new();
    loop {
        rt.tick()?;
        let before = keys.len();
        let more = if clustered {
            rows.clear();
            let (more, _) = rt.read_into(read, &mut rows, None)?;
            for i in 0..rows.len() {
                key.clear();
                let made = table.batch_row_key(&rows, i, &mut key);
                made.map_err(|e| engine_error(&e))?;
                keys.push(&key);
            }
            more
        } else {
            rt.drive(|session| read.next_keys(session, keys))?
        };
        let found = (keys.len() - before) as u64;
        rt.counters.add(StatusCounter::HandlerReadNext, found);
        rt.checkpoint(KEY_WORK * found)?;
        if keys.memory() > memory {
            return Ok(false);
        }
        if !more {
            return Ok(true);
        }
    }
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
    pub fn new(merge: &IndexMerge) -> Merge {
        Merge {
            kind: merge.kind,
            most: merge.most,
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
            branch.bound.memory() + read
        });
        reads.sum::<usize>() + self.keys.memory() + self.others.memory()
    }

    /// Frees the memory of many keys.
    pub fn give_back(&mut self) {
        (self.keys, self.others) = (EqualityKeys::new(), EqualityKeys::new());
        for branch in &mut self.branches {
            (branch.bound, branch.read) = (BoundAccess::default(), None);
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
            branch.kind = branch.bound.bind(cx, table, path.index, &path.kind)?;
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

    /// Reads and combines the keys of all branches. False: there are too many.
    fn read_keys(&mut self, rt: &Runtime<'_>, table: &Arc<Table>) -> Result<bool, SqlError> {
        let memory = rt.env.work_memory();
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
            if !branch.read(rt, table, memory, keys)? {
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
