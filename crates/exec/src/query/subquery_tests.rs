//! The rows of an EXISTS or IN that is related to the outer row by more than equalities. They are
//! read once, into groups by the keys of the equalities. For each outer row, the rows of its group
//! are tested by the other conditions until one passes.
//!
//! # Picture
//! ```text
//! row:      | keys | columns that IN compares | values that the tests read |
//! matches:  keys and columns, none of them NULL  ─▶  rows
//! unknown:  keys, of rows with NULL in a column  ─▶  rows
//! all:      keys                                 ─▶  rows     for a NULL on the left side of IN
//! ```
//! If one comparison is the only test, a group keeps only the row with the smallest or greatest
//! value.

use nfold_engine::RowBatch;
use nfold_plan::expr::{CmpKind, Expr, ExprType};
use nfold_plan::query::{DecorrelatedPlan, Extreme};
use nfold_types::SqlError;
use nfold_types::row::RowLayout;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::CachedQuery;
use super::subquery_set::{is_possible, push_part};
use crate::expr::eval::{CONDITION_WORK, EvalCx, RowRef, Val, compare, row_error, tuple};
use crate::runtime::Runtime;

/// The maximum memory of the rows, as a multiple of that of a sort. Beyond it the subquery runs for
/// each outer row.
const MEMORY_FACTOR: usize = 4;
/// The memory of a group besides its key, and of a row besides its image, in bytes.
const GROUP_BYTES: usize = 96;
const ROW_BYTES: usize = 32;

/// The numbers of the rows of each group.
type Groups = FxHashMap<Box<[u8]>, SmallVec<[u32; 2]>>;

/// A column of the rows that is looked up.
struct KeyColumn {
    ty: ExprType,
    kind: CmpKind,
    /// NULL equals NULL.
    null_safe: bool,
}

/// The rows of the subquery.
pub(super) struct TestedRows {
    keys: Vec<KeyColumn>,
    /// The columns that IN compares.
    members: Vec<KeyColumn>,
    layout: RowLayout,
    rows: RowBatch,
    matches: Groups,
    unknown: Groups,
    all: Option<Groups>,
    bytes: usize,
    /// Whether the rows did not fit into memory.
    too_many: bool,
    key: Vec<u8>,
}

impl TestedRows {
    /// No rows yet. `kinds`: how IN compares its columns.
    pub fn new(plan: &DecorrelatedPlan, kinds: &[CmpKind]) -> TestedRows {
        let types = &plan.plan.types;
        let column = |ty: &ExprType, kind, null_safe| KeyColumn {
            ty: ty.clone(),
            kind,
            null_safe,
        };
        let keys = plan.keys.iter().zip(types);
        let members = kinds.iter().zip(&types[plan.keys.len()..]);
        TestedRows {
            keys: keys
                .map(|(k, ty)| column(ty, k.kind, k.null_safe))
                .collect(),
            members: members.map(|(kind, ty)| column(ty, *kind, false)).collect(),
            layout: tuple::layout_of(types),
            rows: RowBatch::new(),
            matches: Groups::default(),
            unknown: Groups::default(),
            all: None,
            bytes: 0,
            too_many: false,
            key: Vec::new(),
        }
    }

    /// Reads the rows.
    pub fn collect(
        &mut self,
        rt: &Runtime<'_>,
        (query, plan): (&CachedQuery, &DecorrelatedPlan),
        cx: &EvalCx<'_>,
        outer: &[&[RowRef<'_>]],
    ) -> Result<(), SqlError> {
        let memory = rt.env.work_memory().saturating_mul(MEMORY_FACTOR);
        let layout = self.layout.clone();
        query.collect(rt, &plan.plan, outer, &layout, &mut |image| {
            if self.too_many {
                return Ok(());
            }
            self.push(cx, plan, image)?;
            if self.bytes > memory {
                (self.matches, self.unknown) = (Groups::default(), Groups::default());
                self.rows = RowBatch::new();
                self.too_many = true;
            }
            Ok(())
        })
    }

    fn push(
        &mut self,
        cx: &EvalCx<'_>,
        plan: &DecorrelatedPlan,
        image: &[u8],
    ) -> Result<(), SqlError> {
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        if self.push_keys(cx, image, &mut key)? {
            let keys = key.len();
            let null = self.push_members(cx, image, &mut key)?;
            let columns = (&self.layout, plan.plan.types.as_slice());
            let (groups, key) = match null {
                true => (&mut self.unknown, &key[..keys]),
                false => (&mut self.matches, &key[..]),
            };
            let rows = &mut self.rows;
            let number = rows.len() as u32;
            let group = groups.get_mut(key);
            let new = group.is_none();
            let added = add(cx, (group, plan.extreme), columns, rows, image)?;
            if added && new {
                groups.insert(key.into(), SmallVec::from_slice(&[number]));
                self.bytes += key.len() + GROUP_BYTES;
            }
            if added {
                self.rows.push(0, image);
                self.bytes += image.len() + ROW_BYTES;
            }
        }
        self.key = key;
        Ok(())
    }

    /// Appends the keys of a row. False if a NULL equals nothing.
    fn push_keys(
        &self,
        cx: &EvalCx<'_>,
        image: &[u8],
        key: &mut Vec<u8>,
    ) -> Result<bool, SqlError> {
        for (n, column) in self.keys.iter().enumerate() {
            let value = self.layout.get(image, n).map_err(|e| row_error(&e))?;
            let value = (&Val::from_ref(value), &column.ty);
            if !push_part(cx, value, column.kind, key) && !column.null_safe {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Appends the columns that IN compares. True if one is NULL.
    fn push_members(
        &self,
        cx: &EvalCx<'_>,
        image: &[u8],
        key: &mut Vec<u8>,
    ) -> Result<bool, SqlError> {
        let mut null = false;
        for (n, column) in (self.keys.len()..).zip(&self.members) {
            let value = self.layout.get(image, n).map_err(|e| row_error(&e))?;
            null |= !push_part(cx, (&Val::from_ref(value), &column.ty), column.kind, key);
        }
        Ok(null)
    }

    /// The result for the outer row of `cx`, whose frame is the last of `frames`: for EXISTS
    /// without `left`, whether a row passes; for IN, whether such a row equals `left`. `None`: the
    /// subquery must run.
    pub fn find<'a>(
        &mut self,
        cx: &EvalCx<'a>,
        frames: &[&[RowRef<'_>]],
        plan: &'a DecorrelatedPlan,
        left: &'a [Expr],
    ) -> Result<Option<Option<bool>>, SqlError> {
        if self.too_many {
            return Ok(None);
        }
        if !cx.passes(&plan.conditions)? {
            return Ok(Some(Some(false)));
        }
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        let found = self.found(cx, frames, plan, left, &mut key);
        self.key = key;
        found.map(Some)
    }

    fn found<'a>(
        &mut self,
        cx: &EvalCx<'a>,
        frames: &[&[RowRef<'_>]],
        plan: &'a DecorrelatedPlan,
        left: &'a [Expr],
        key: &mut Vec<u8>,
    ) -> Result<Option<bool>, SqlError> {
        for part in &plan.keys {
            let value = (&cx.val(&part.outer)?, &part.outer.ty);
            if !push_part(cx, value, part.kind, key) && !part.null_safe {
                return Ok(Some(false));
            }
        }
        let keys = key.len();
        let mut null = false;
        for (e, column) in left.iter().zip(&self.members) {
            null |= !push_part(cx, (&cx.val(e)?, &e.ty), column.kind, key);
        }
        if null && self.all.is_none() {
            self.all = Some(self.by_keys(cx)?);
        }
        if !null && self.any_passes(cx, frames, plan, self.matches.get(&key[..]), &[])? {
            return Ok(Some(true));
        }
        let possible = match (&self.all, null) {
            (Some(all), true) => all.get(&key[..keys]),
            _ => self.unknown.get(&key[..keys]),
        };
        let unknown = self.any_passes(cx, frames, plan, possible, &key[keys..])?;
        Ok(if unknown { None } else { Some(false) })
    }

    /// All rows by their keys.
    fn by_keys(&self, cx: &EvalCx<'_>) -> Result<Groups, SqlError> {
        let mut groups = Groups::default();
        let mut key = Vec::new();
        for (n, image) in self.rows.iter().enumerate() {
            key.clear();
            self.push_keys(cx, image, &mut key)?;
            let group = groups.entry(key.as_slice().into());
            group.or_default().push(n as u32);
            cx.checkpoint(CONDITION_WORK)?;
        }
        Ok(groups)
    }

    /// Whether one of these rows passes the tests, and may equal `left` in the columns that IN
    /// compares.
    fn any_passes(
        &self,
        cx: &EvalCx<'_>,
        frames: &[&[RowRef<'_>]],
        plan: &DecorrelatedPlan,
        rows: Option<&SmallVec<[u32; 2]>>,
        left: &[u8],
    ) -> Result<bool, SqlError> {
        let mut members = Vec::new();
        for number in rows.into_iter().flatten() {
            cx.checkpoint(CONDITION_WORK)?;
            let image = self.rows.row(*number as usize);
            let row = [RowRef {
                layout: &self.layout,
                image: Some(image),
                places: None,
            }];
            let inner = EvalCx {
                rows: &row,
                outer: frames,
                st: cx.st,
            };
            if !inner.passes(&plan.tests)? {
                continue;
            }
            members.clear();
            if left.is_empty() {
                return Ok(true);
            }
            self.push_members(cx, image, &mut members)?;
            if is_possible(&members, left) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Adds the row that comes next to its group. Returns false if the group does not need it; a group
/// that does not exist yet is not made.
fn add(
    cx: &EvalCx<'_>,
    (group, extreme): (Option<&mut SmallVec<[u32; 2]>>, Option<Extreme>),
    (layout, types): (&RowLayout, &[ExprType]),
    rows: &RowBatch,
    image: &[u8],
) -> Result<bool, SqlError> {
    let number = rows.len() as u32;
    let Some(Extreme {
        column,
        kind,
        greatest,
    }) = extreme
    else {
        if let Some(group) = group {
            group.push(number);
        }
        return Ok(true);
    };
    let column = usize::from(column);
    let value = layout.get(image, column).map_err(|e| row_error(&e))?;
    let value = Val::from_ref(value);
    if value.is_null() {
        // It passes no comparison.
        return Ok(false);
    }
    let Some(known) = group.and_then(|group| group.first_mut()) else {
        return Ok(true);
    };
    let best = rows.row(*known as usize);
    let best = Val::from_ref(layout.get(best, column).map_err(|e| row_error(&e))?);
    let ty = &types[column];
    let order = compare::order(cx, kind, (&value, ty), (&best, ty));
    let better = order.is_some_and(|o| if greatest { o.is_gt() } else { o.is_lt() });
    if better {
        *known = number;
    }
    Ok(better)
}
