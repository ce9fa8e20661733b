//! INTERSECT and EXCEPT: the distinct rows of the left operand in their order of arrival, with the
//! number of occurrences in each operand.
//!
//! Rows are counted in a hash table. If it exceeds its memory, its rows and all later ones are
//! sorted by their keys, which brings equal rows together. The remaining rows are then sorted by
//! their order of arrival.
//!
//! # Invariants
//! C1. All rows of the left operand arrive before those of the right one. So the first of equal
//!     rows, which represents all of them, is one of the left operand if there is any.
//! C2. Rows of the right operand never enter the table, so only the left one makes it grow.

use std::hash::Hasher;
use std::thread::LocalKey;

use hashbrown::HashTable;
use nfold_plan::expr::{Expr, ExprType};
use nfold_sql::ast::SetOp;
use nfold_types::SqlError;
use nfold_types::row::RowLayout;
use rustc_hash::FxHasher;
use smallvec::SmallVec;

use crate::env::scratch::{Memory, Pool, Pooled};
use crate::expr::eval::tuple;
use crate::expr::eval::tuple::KeyMaker;
use crate::expr::eval::{EvalCx, Val};
use crate::operators::row_out::RowOut;
use crate::operators::sort::Sorter;
use crate::runtime::Runtime;

/// A row of the left operand: its key and its image, in the arena.
struct Entry {
    key: usize,
    image: usize,
    end: usize,
    counts: [u64; 2],
}

/// The memory of an entry besides its bytes.
const ENTRY_BYTES: usize = size_of::<Entry>() + 8;

/// The length of a sorted record's prefix: the row's number, and its occurrences in each operand.
const HEAD_BYTES: usize = 24;

thread_local! {
    static POOL: Pool<Table> = const { Pool::new() };
}

#[derive(Default)]
struct Table {
    arena: Vec<u8>,
    entries: Vec<Entry>,
    by_key: HashTable<u32>,
    /// The key of the current row.
    key: Vec<u8>,
    /// A buffer for a sorted record.
    record: Vec<u8>,
}

impl Memory for Table {
    fn pool() -> &'static LocalKey<Pool<Table>> {
        &POOL
    }

    fn clear(&mut self) {
        self.arena.clear();
        self.entries.clear();
        self.by_key.clear();
    }

    fn bytes(&self) -> usize {
        self.arena.capacity()
            + self.entries.capacity() * size_of::<Entry>()
            + self.by_key.capacity() * 8
            + self.key.capacity()
            + self.record.capacity()
    }
}

fn hash_of(key: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(key);
    hasher.finish()
}

impl Table {
    fn bytes_used(&self) -> usize {
        self.arena.len() + self.entries.len() * ENTRY_BYTES
    }

    fn find(&mut self) -> Option<&mut Entry> {
        let Table {
            arena,
            entries,
            by_key,
            key,
            ..
        } = self;
        let of = |n: &u32| {
            let e = &entries[*n as usize];
            &arena[e.key..e.image]
        };
        let found = by_key.find(hash_of(key), |n| of(n) == key.as_slice());
        let n = found.map(|n| *n as usize);
        n.map(|n| &mut entries[n])
    }

    /// Adds the row with the current key. `image` appends the row.
    fn add(
        &mut self,
        image: impl FnOnce(&mut Vec<u8>) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        let Table {
            arena,
            entries,
            by_key,
            key,
            ..
        } = self;
        let start = arena.len();
        arena.extend_from_slice(key);
        let middle = arena.len();
        image(arena)?;
        let n = entries.len() as u32;
        entries.push(Entry {
            key: start,
            image: middle,
            end: arena.len(),
            counts: [1, 0],
        });
        by_key.insert_unique(hash_of(key), n, |n| {
            let e = &entries[*n as usize];
            hash_of(&arena[e.key..e.image])
        });
        Ok(())
    }
}

/// Appends the prefix of a sorted record.
fn head(out: &mut Vec<u8>, number: u64, counts: [u64; 2]) {
    for n in [number, counts[0], counts[1]] {
        out.extend_from_slice(&n.to_be_bytes());
    }
}

/// Splits a sorted record.
fn parts(record: &[u8]) -> (u64, [u64; 2], &[u8]) {
    let number = |n: usize| {
        let bytes = record[8 * n..].first_chunk::<8>();
        bytes.map_or(0, |b| u64::from_be_bytes(*b))
    };
    (number(0), [number(1), number(2)], &record[HEAD_BYTES..])
}

/// How many times a row is returned, given its occurrences on the left and on the right.
fn times(op: SetOp, distinct: bool, [left, right]: [u64; 2]) -> u64 {
    match (op, distinct) {
        (SetOp::Intersect, true) => u64::from(left > 0 && right > 0),
        (SetOp::Intersect, false) => left.min(right),
        (SetOp::Except, true) => u64::from(left > 0 && right == 0),
        (SetOp::Except | SetOp::Union, _) => left.saturating_sub(right),
    }
}

/// See the module.
pub(super) struct Counted<'o, 's> {
    rt: &'o Runtime<'s>,
    types: &'o [ExprType],
    layout: &'o RowLayout,
    unique: &'o KeyMaker,
    table: Pooled<Table>,
    limit_bytes: usize,
    sorter: Option<Sorter>,
    /// The number of rows so far.
    came: u64,
    right: bool,
}

impl<'o, 's> Counted<'o, 's> {
    pub fn new(
        rt: &'o Runtime<'s>,
        types: &'o [ExprType],
        layout: &'o RowLayout,
        unique: &'o KeyMaker,
    ) -> Counted<'o, 's> {
        Counted {
            rt,
            types,
            layout,
            unique,
            table: Pooled::take(),
            limit_bytes: rt.env.work_memory().clamp(64 << 10, 1 << 30),
            sorter: None,
            came: 0,
            right: false,
        }
    }

    /// Ends the rows of the left operand.
    pub fn turn(&mut self) {
        self.right = true;
    }

    fn count(
        &mut self,
        image: impl FnOnce(&mut Vec<u8>) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        self.came += 1;
        let right = self.right;
        if let Some(sorter) = &mut self.sorter {
            let Table { key, record, .. } = &mut *self.table;
            record.clear();
            head(record, self.came, [u64::from(!right), u64::from(right)]);
            if !right {
                image(record)?;
            }
            return sorter.push(self.rt, key, record);
        }
        if let Some(entry) = self.table.find() {
            entry.counts[usize::from(right)] += 1;
            return Ok(());
        }
        if right {
            return Ok(());
        }
        self.table.add(image)?;
        match self.table.bytes_used() > self.limit_bytes {
            true => self.spill(),
            false => Ok(()),
        }
    }

    /// Starts sorting: first the rows of the table, then all later ones.
    fn spill(&mut self) -> Result<(), SqlError> {
        let mut sorter = Sorter::new(self.limit_bytes, 0);
        let Table {
            arena,
            entries,
            record,
            ..
        } = &mut *self.table;
        for (n, e) in entries.iter().enumerate() {
            record.clear();
            head(record, n as u64, e.counts);
            record.extend_from_slice(&arena[e.image..e.end]);
            sorter.push(self.rt, &arena[e.key..e.image], record)?;
        }
        self.table.clear();
        self.sorter = Some(sorter);
        Ok(())
    }

    /// Passes the result's rows to `f`, until it returns false.
    pub fn give(
        mut self,
        op: SetOp,
        distinct: bool,
        f: &mut dyn FnMut(&[u8]) -> Result<bool, SqlError>,
    ) -> Result<(), SqlError> {
        if let Some(sorter) = self.sorter.take() {
            let rt = self.rt;
            drop(self);
            return give_sorted((rt, sorter), (op, distinct), f);
        }
        let Table { arena, entries, .. } = &*self.table;
        for (i, e) in entries.iter().enumerate() {
            if (i + 1).is_multiple_of(1024) {
                self.rt.tick()?;
            }
            for _ in 0..times(op, distinct, e.counts) {
                if !f(&arena[e.image..e.end])? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// As [`Counted::give`], for rows that were sorted by key.
fn give_sorted(
    (rt, sorter): (&Runtime<'_>, Sorter),
    (op, distinct): (SetOp, bool),
    f: &mut dyn FnMut(&[u8]) -> Result<bool, SqlError>,
) -> Result<(), SqlError> {
    let mut ordered = Sorter::new(rt.env.work_memory(), 0);
    let mut keep = |first: &[u8], counts| {
        let (number, _, image) = parts(first);
        let again = times(op, distinct, counts);
        if again == 0 {
            return Ok(());
        }
        let mut row = again.to_be_bytes().to_vec();
        row.extend_from_slice(image);
        ordered.push(rt, &number.to_be_bytes(), &row)
    };
    let mut sorted = sorter.finish(rt)?;
    let (mut last, mut first) = (Vec::new(), Vec::new());
    let mut counts = [0u64; 2];
    let mut n = 0u32;
    while let Some((key, record)) = sorted.next(rt)? {
        n = n.wrapping_add(1);
        if n.is_multiple_of(1024) {
            rt.tick()?;
        }
        let (_, more, _) = parts(record);
        if n == 1 || last != key {
            if n != 1 {
                keep(&first, counts)?;
            }
            last.clear();
            last.extend_from_slice(key);
            first.clear();
            first.extend_from_slice(record);
            counts = [0; 2];
        }
        counts = [counts[0] + more[0], counts[1] + more[1]];
    }
    if n > 0 {
        keep(&first, counts)?;
    }
    drop(sorted);
    let mut rows = ordered.finish(rt)?;
    while let Some((_, row)) = rows.next(rt)? {
        n = n.wrapping_add(1);
        if n.is_multiple_of(1024) {
            rt.tick()?;
        }
        let Some((again, image)) = row.split_first_chunk::<8>() else {
            continue;
        };
        for _ in 0..u64::from_be_bytes(*again) {
            if !f(image)? {
                return Ok(());
            }
        }
    }
    Ok(())
}

impl RowOut for Counted<'_, '_> {
    fn row<'a>(&mut self, cx: &EvalCx<'a>, select: &'a [Expr]) -> Result<bool, SqlError> {
        let mut values: SmallVec<[Val<'a>; 4]> = SmallVec::new();
        for (e, ty) in select.iter().zip(self.types) {
            values.push(tuple::kept(cx, e, ty)?);
        }
        let key = &mut self.table.key;
        key.clear();
        self.unique.push_all(&values, key)?;
        let layout = self.layout;
        self.count(|out| tuple::encode_row(layout, &values, out))?;
        Ok(true)
    }
}
