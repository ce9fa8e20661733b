//! Skip scans: goes over the distinct values of the first parts of an index, and reads some rows of
//! each.

use std::sync::Arc;

use nfold_engine::{KeyPrefixes, KeyRange, Read, ReadSpec, RowBatch, Table};
use nfold_observe::StatusCounter;
use nfold_plan::query::{SkipRows, SkipScan};
use nfold_types::{Checkpoint, SqlError};

use crate::expr::eval::EvalCx;
use crate::expr::keys::{BoundAccess, Suffixes};
use crate::runtime::Runtime;

/// The number of rows after which a batch is handed over.
const ROWS: usize = 512;
/// The work of a descent.
const DESCENT_WORK: u64 = 300;

/// Rows of one value that are still to be read.
struct Pending {
    range: KeyRange,
    reverse: bool,
    /// One row is enough.
    one: bool,
}

/// Which rows of a value are read beside the first one of the bound ranges.
#[derive(Clone, Copy)]
struct Ends {
    any: bool,
    last: bool,
}

/// The state of a skip scan.
pub(super) struct Skip {
    table: Arc<Table>,
    spec: ReadSpec,
    prefixes: KeyPrefixes,
    /// Reads one row, or all rows of a range.
    read: Option<Read>,
    bound: BoundAccess,
    suffixes: Suffixes,
    ranges: Vec<KeyRange>,
    /// In reverse order of their use.
    pending: Vec<Pending>,
    /// The last of them is being read.
    open: bool,
    ends: Option<Ends>,
    /// The number of values so far, and beyond which number the rest of the index is read.
    seen: usize,
    most: usize,
    /// As the plan says; reads of the rest of the index read ahead.
    first_rows: usize,
    ended: bool,
}

impl Skip {
    pub fn new(table: &Arc<Table>, spec: &ReadSpec, scan: &SkipScan) -> Skip {
        let (first_rows, ends) = match scan.rows {
            SkipRows::Values(_) => (spec.first_rows, None),
            SkipRows::Ends { any, last, .. } => (1, Some(Ends { any, last })),
        };
        Skip {
            table: table.clone(),
            spec: ReadSpec {
                first_rows,
                ..spec.clone()
            },
            prefixes: KeyPrefixes::new(table.clone(), spec.index, scan.parts),
            read: None,
            bound: BoundAccess::default(),
            suffixes: Suffixes::default(),
            ranges: Vec::new(),
            pending: Vec::new(),
            open: false,
            ends,
            seen: 0,
            most: scan.most,
            first_rows,
            ended: false,
        }
    }

    /// The memory that it keeps, approximately, in bytes.
    pub fn memory(&self) -> usize {
        self.bound.memory() + self.read.as_ref().map_or(0, Read::memory)
    }

    /// Frees memory.
    pub fn give_back(&mut self) {
        self.read = None;
        (self.bound, self.suffixes) = (BoundAccess::default(), Suffixes::default());
    }

    /// Binds the values of the key part after the skipped ones.
    pub fn bind<'a>(&mut self, cx: &EvalCx<'a>, scan: &'a SkipScan) -> Result<(), SqlError> {
        self.prefixes.restart();
        self.pending.clear();
        (self.open, self.seen, self.ended) = (false, 0, false);
        if self.spec.first_rows != self.first_rows {
            (self.spec.first_rows, self.read) = (self.first_rows, None);
        }
        let (SkipRows::Values(kind) | SkipRows::Ends { first: kind, .. }) = &scan.rows;
        let part = (self.spec.index, scan.parts);
        self.suffixes = self.bound.bind_suffix(cx, &self.table, part, kind)?;
        self.ended = self.suffixes.is_empty() && self.ends.is_none();
        Ok(())
    }

    /// Appends rows; false: there are no more.
    pub fn next(&mut self, rt: &Runtime<'_>, out: &mut RowBatch) -> Result<bool, SqlError> {
        while out.len() < ROWS {
            if self.pending.is_empty() && !self.next_value(rt)? {
                return Ok(false);
            }
            let Some(pending) = self.pending.last() else {
                continue;
            };
            let read = self.read.get_or_insert_with(|| {
                let points = nfold_engine::EqualityKeys::new();
                Read::points(self.table.clone(), self.spec.clone(), points)
            });
            if !self.open {
                read.bind_range(&pending.range, pending.reverse);
                rt.counters.add(StatusCounter::HandlerReadKey, 1);
                self.open = true;
            }
            let before = out.len();
            let (more, rows) = rt.read_into(read, out, None)?;
            rt.counters.add(StatusCounter::HandlerReadNext, rows);
            self.table.count_fetches(self.spec.index, rows);
            let found = out.len() > before;
            if pending.one && found {
                out.retain_from(before, |i| i == 0);
            }
            if !more || pending.one && found {
                self.pending.pop();
                self.open = false;
            }
        }
        Ok(true)
    }

    /// Goes to the next value of the first parts. False: there are no more.
    fn next_value(&mut self, rt: &Runtime<'_>) -> Result<bool, SqlError> {
        let prefixes = &mut self.prefixes;
        if self.ended || !rt.drive(|session| prefixes.next(session))? {
            return Ok(false);
        }
        rt.checkpoint(DESCENT_WORK)?;
        rt.counters.add(StatusCounter::HandlerReadKey, 1);
        self.table.count_fetches(self.spec.index, 1);
        let prefix = self.prefixes.prefix();
        self.seen += 1;
        if self.seen > self.most {
            // There are more values than expected. The rest of the index is read; the rows are
            // tested, and equal ones make no difference.
            self.ended = true;
            let rest = KeyRange {
                lo: nfold_engine::Bound::Included(prefix.into()),
                hi: nfold_engine::Bound::Unbounded,
            };
            self.read = None;
            self.spec.first_rows = 0;
            self.pending.push(Pending {
                range: rest,
                reverse: false,
                one: false,
            });
            return Ok(true);
        }
        let one = self.ends.is_some();
        let pending = |range: KeyRange, reverse: bool| Pending {
            range,
            reverse,
            one,
        };
        if let Some(Ends { any, last }) = self.ends {
            let all = || KeyRange::prefix(prefix);
            self.pending.extend(last.then(|| pending(all(), true)));
            self.pending.extend(any.then(|| pending(all(), false)));
        }
        self.suffixes.under(prefix, &mut self.ranges);
        let ranges = self.ranges.drain(..).rev();
        self.pending
            .extend(ranges.map(|range| pending(range, false)));
        Ok(true)
    }
}
