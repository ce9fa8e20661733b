//! The rows of a subquery as a set, which is probed for IN, and for EXISTS and IN by keys.
//!
//! # Picture
//! ```text
//! image of a row:  | length u32, key | ... |   for each column; NULL is the length NULL_LEN alone
//! views[0]:  the rows unchanged                         (a, b)  (a, NULL)  (NULL, NULL)
//! views[n]:  with NULL in the columns that were NULL    (NULL, b)  (NULL, NULL)
//!            on a left side that was probed
//! ```
//! A left side is looked up once for each pattern of NULLs that the rows of its view have. So NULLs
//! on either side never require a walk over all rows.
//!
//! # Invariants
//! - S1: two images have the same bytes exactly if their columns compare as equal, with NULL equal
//!   to NULL.

use nfold_engine::RowBatch;
use nfold_plan::expr::{CmpKind, Expr, ExprType};
use nfold_plan::query::OuterKey;
use nfold_plan::query::QueryPlan;
use nfold_types::SqlError;
use nfold_types::row::RowLayout;

use super::CachedQuery;
use crate::env::batch::POOLED_BYTES;
use crate::expr::eval::tuple;
use crate::expr::eval::tuple::normal_key;
use crate::expr::eval::{EvalCx, Member, RowRef, Val};
use crate::operators::hash::{HashTable, hash_of};
use crate::runtime::Runtime;

/// The maximum number of columns of a set: a pattern of NULLs is a 64-bit word.
pub(crate) const MAX_COLUMNS: usize = 64;

/// In an image: marks NULL in place of a key's length.
const NULL_LEN: u32 = u32::MAX;

/// The meaning of NULL in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Null {
    /// Equal to nothing: `=` between the inner and the outer row.
    Nothing,
    /// Equal to NULL: `<=>`.
    Value,
    /// Unknown: IN.
    Unknown,
}

/// A column of the set.
struct SetColumn {
    ty: ExprType,
    kind: CmpKind,
    null: Null,
}

/// The rows of the set, with NULL in the columns of `hidden`.
struct View {
    hidden: u64,
    rows: HashTable,
    /// The patterns of NULL columns that occur among the rows.
    patterns: Vec<u64>,
}

impl View {
    fn new(hidden: u64) -> View {
        View {
            hidden,
            rows: HashTable::default(),
            patterns: Vec::new(),
        }
    }

    /// Adds a row whose NULLs are `pattern`. Returns false if the view has it already.
    fn push(&mut self, rt: &Runtime<'_>, image: &[u8], pattern: u64) -> Result<bool, SqlError> {
        if !self.patterns.contains(&pattern) {
            self.patterns.push(pattern);
        }
        let hash = hash_of(image);
        // Once the rows are in a file, it may contain a row several times.
        if !self.rows.is_building_file() && self.rows.contains(rt, hash, image)? {
            return Ok(false);
        }
        self.rows.push(rt, hash, image)?;
        Ok(true)
    }

    /// Looks up the left side `image`. The result is true if a row equals it in all columns. It is
    /// NULL if a row equals it in all columns that are not NULL on either side.
    fn find(
        &mut self,
        rt: &Runtime<'_>,
        image: &[u8],
        hidden: &mut Vec<u8>,
    ) -> Result<Option<bool>, SqlError> {
        let View { rows, patterns, .. } = self;
        if patterns.contains(&0) && rows.contains(rt, hash_of(image), image)? {
            return Ok(Some(true));
        }
        for pattern in patterns.iter().filter(|p| **p != 0) {
            hidden.clear();
            hide(image, *pattern, hidden);
            if rows.contains(rt, hash_of(hidden), hidden)? {
                return Ok(None);
            }
        }
        Ok(Some(false))
    }
}

/// The set.
pub(crate) struct KeySet {
    columns: Vec<SetColumn>,
    layout: RowLayout,
    /// The first view exists from the start.
    views: Vec<View>,
    any: bool,
    members: Members,
    image: Vec<u8>,
    hidden: Vec<u8>,
}

/// The distinct rows without NULLs, for lookups in an index. Duplicates are removed while the set
/// is in memory.
#[derive(Default)]
struct Members {
    /// The maximum number of rows.
    most: usize,
    rows: RowBatch,
    too_many: bool,
}

impl Members {
    fn push(&mut self, rt: &Runtime<'_>, image: &[u8]) {
        self.too_many |= self.rows.len() >= self.most || self.rows.bytes() > rt.env.work_memory();
        match self.too_many {
            true => self.rows.clear(),
            false => self.rows.push(0, image),
        }
    }
}

impl KeySet {
    /// A set for the rows of `plan`: the columns of `keys`, then those that IN compares, each with
    /// its comparison.
    pub fn new(plan: &QueryPlan, keys: &[OuterKey], kinds: &[CmpKind]) -> KeySet {
        let null = |key: &OuterKey| match key.null_safe {
            true => Null::Value,
            false => Null::Nothing,
        };
        let keys = keys.iter().map(|key| (key.kind, null(key)));
        let members = kinds.iter().map(|kind| (*kind, Null::Unknown));
        let column = |(ty, (kind, null)): (&ExprType, (CmpKind, Null))| SetColumn {
            ty: ty.clone(),
            kind,
            null,
        };
        let columns = plan.types.iter().zip(keys.chain(members)).map(column);
        KeySet {
            columns: columns.collect(),
            layout: tuple::layout_of(&plan.types),
            views: vec![View::new(0)],
            any: false,
            members: Members::default(),
            image: Vec::new(),
            hidden: Vec::new(),
        }
    }

    /// Removes the rows, and keeps the memory.
    pub fn clear(&mut self) {
        self.views.truncate(1);
        for view in &mut self.views {
            view.rows.clear();
            view.patterns.clear();
        }
        self.any = false;
        self.members.rows.clear();
        self.members.too_many = false;
    }

    /// Called between executions: removes the rows, and frees unusually large memory.
    pub fn release(&mut self) {
        self.clear();
        self.views.iter_mut().for_each(|view| view.rows.release());
        if self.members.rows.memory() > POOLED_BYTES {
            self.members = Members::default();
        }
    }

    /// Makes [`Self::collect`] keep up to `most` rows for [`Self::members`].
    pub fn want_members(&mut self, most: usize) {
        self.members.most = most;
    }

    /// Passes the values of the only column, without NULL, to `f`. Returns false if they were not
    /// kept.
    pub fn members(&self, f: &mut Member<'_>) -> Result<bool, SqlError> {
        if self.members.too_many {
            return Ok(false);
        }
        for image in self.members.rows.iter() {
            let value = self
                .layout
                .get(image, 0)
                .map_err(|e| crate::expr::eval::row_error(&e))?;
            f(&Val::from_ref(value), &self.columns[0].ty)?;
        }
        Ok(true)
    }

    /// Adds the rows of the query.
    pub fn collect(
        &mut self,
        rt: &Runtime<'_>,
        (query, plan): (&CachedQuery, &QueryPlan),
        cx: &EvalCx<'_>,
        outer: &[&[RowRef<'_>]],
    ) -> Result<(), SqlError> {
        self.clear();
        let KeySet {
            columns,
            layout,
            views,
            any,
            members,
            image: key,
            ..
        } = self;
        let rows = &mut views[0];
        query.collect(rt, plan, outer, layout, &mut |image| {
            key.clear();
            let mut pattern = 0;
            for (n, column) in columns.iter().enumerate() {
                let value = layout
                    .get(image, n)
                    .map_err(|e| crate::expr::eval::row_error(&e))?;
                let value = (&Val::from_ref(value), &column.ty);
                match (push_part(cx, value, column.kind, key), column.null) {
                    (true, _) | (false, Null::Value) => {}
                    (false, Null::Unknown) => pattern |= 1 << n,
                    (false, Null::Nothing) => return Ok(()),
                }
            }
            *any = true;
            if rows.push(rt, key, pattern)? && pattern == 0 {
                members.push(rt, image);
            }
            Ok(())
        })?;
        rows.rows.finish(rt)
    }

    /// Whether a row equals `left` column by column.
    pub fn find<'a>(
        &mut self,
        rt: &Runtime<'_>,
        cx: &EvalCx<'a>,
        left: impl Iterator<Item = &'a Expr>,
    ) -> Result<Option<bool>, SqlError> {
        if !self.any {
            return Ok(Some(false));
        }
        let mut image = std::mem::take(&mut self.image);
        image.clear();
        let mut nulls = 0;
        for (n, (e, column)) in left.zip(&self.columns).enumerate() {
            let known = push_part(cx, (&cx.val(e)?, &e.ty), column.kind, &mut image);
            match (known, column.null) {
                (true, _) | (false, Null::Value) => {}
                (false, Null::Unknown) => nulls |= 1 << n,
                (false, Null::Nothing) => {
                    self.image = image;
                    return Ok(Some(false));
                }
            }
        }
        let at = self.view(rt, nulls)?;
        let found = self.views[at].find(rt, &image, &mut self.hidden);
        self.image = image;
        found
    }

    /// The index of the view with NULL in the columns `hidden`; it is built if it does not exist.
    fn view(&mut self, rt: &Runtime<'_>, hidden: u64) -> Result<usize, SqlError> {
        if let Some(at) = self.views.iter().position(|v| v.hidden == hidden) {
            return Ok(at);
        }
        let mut view = View::new(hidden);
        let members = self.columns.iter().enumerate();
        let members = members.filter(|(_, column)| column.null == Null::Unknown);
        let members = members.fold(0, |set, (n, _)| set | 1 << n);
        let image = &mut self.hidden;
        self.views[0].rows.each(rt, &mut |row| {
            image.clear();
            let pattern = hide(row, hidden, image) & members;
            view.push(rt, image, pattern).map(drop)
        })?;
        view.rows.finish(rt)?;
        self.views.push(view);
        Ok(self.views.len() - 1)
    }
}

/// Appends a column to an image; false for NULL.
pub(super) fn push_part(
    cx: &EvalCx<'_>,
    v: (&Val<'_>, &ExprType),
    kind: CmpKind,
    out: &mut Vec<u8>,
) -> bool {
    let start = out.len();
    out.extend_from_slice(&NULL_LEN.to_le_bytes());
    let known = normal_key(cx, v, kind, out);
    let end = start + size_of::<u32>();
    if known {
        let len = (out.len() - end) as u32;
        out[start..end].copy_from_slice(&len.to_le_bytes());
    } else {
        out.truncate(end);
    }
    known
}

/// Appends an image with NULL in the columns of `hidden`. Returns the pattern of its NULLs.
fn hide(image: &[u8], hidden: u64, out: &mut Vec<u8>) -> u64 {
    let (mut rest, mut nulls) = (image, 0);
    let mut column = 1u64;
    while let Some((len, after)) = rest.split_first_chunk() {
        let len = u32::from_le_bytes(*len);
        let key;
        (key, rest) = after.split_at(if len == NULL_LEN { 0 } else { len as usize });
        if len == NULL_LEN || hidden & column != 0 {
            nulls |= column;
            out.extend_from_slice(&NULL_LEN.to_le_bytes());
        } else {
            out.extend_from_slice(&len.to_le_bytes());
            out.extend_from_slice(key);
        }
        column <<= 1;
    }
    nulls
}

/// Whether two images may be equal: they have the same bytes in each column that is NULL in neither
/// of them.
pub(super) fn is_possible(a: &[u8], b: &[u8]) -> bool {
    let (mut a, mut b) = (a, b);
    while let (Some((x, after_x)), Some((y, after_y))) = (first_part(a), first_part(b)) {
        if let (Some(x), Some(y)) = (x, y)
            && x != y
        {
            return false;
        }
        (a, b) = (after_x, after_y);
    }
    true
}

/// The first column of an image (`None`: NULL), and the others.
fn first_part(image: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let (len, after) = image.split_first_chunk()?;
    let len = u32::from_le_bytes(*len);
    if len == NULL_LEN {
        return Some((None, after));
    }
    let (part, after) = after.split_at(len as usize);
    Some((Some(part), after))
}
