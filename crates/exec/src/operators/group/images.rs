//! GROUP BY columns of one table: adds rows to their groups by their images.
//!
//! # Picture
//! ```text
//!  image ─▶ bytes of its key columns ─▶ known? ── yes: number of the group ─▶ kernels, stored values
//!                                         └── no: the evaluator adds the row and returns its group
//! ```
//!
//! # Invariants
//! - I1: images with equal bytes in all key columns belong to the same group, because every key is
//!   a plain column. Images with different bytes may belong to the same group, too, because of a
//!   collation.
//! - I2: rows are added one by one, and the aggregates of a row in their order, as by the
//!   evaluator. So errors and warnings are the same.

use hashbrown::HashTable;
use nfold_plan::expr::Expr;
use nfold_plan::query::{AggFunc, Aggregate, GroupPlan};
use nfold_types::row::{RawField, RowLayout};
use nfold_types::{Decimal, SqlError};

use super::{Grouper, Grouping, Groups, ImageInput, PlainColumn, hash_of};
use crate::expr::eval::{EvalCx, row_error};
use crate::expr::kernels::NumberKernel;
use crate::operators::aggregate::{Acc, AggInfo, Values, values};

/// The maximum memory of known keys in bytes.
const KNOWN_BYTES: usize = 1 << 20;
/// After this many rows, at least half of them must have had a known key.
const JUDGED_ROWS: u32 = 8192;

/// How rows are grouped by their images.
pub(crate) struct GroupedImages {
    /// The position of each key column in the images.
    keys: Vec<usize>,
    pub inputs: Vec<ImageInput>,
}

/// How rows of table `table` are grouped by their images. `None` if a key is no plain column, or an
/// aggregate collects values. `column` returns the position in the images of the column that an
/// expression is.
pub(crate) fn grouped_images(
    plan: &GroupPlan,
    table: usize,
    column: impl Fn(&Expr) -> Option<PlainColumn>,
) -> Option<GroupedImages> {
    if plan.implicit || plan.ordered || plan.rollup {
        return None;
    }
    let key = |e: &Expr| column(e).map(|column| column.ordinal);
    let input = |agg: &Aggregate| {
        let collects = matches!(
            agg.func,
            AggFunc::GroupConcat | AggFunc::JsonArray | AggFunc::JsonObject
        );
        if agg.distinct || collects {
            return None;
        }
        let input = super::image_input(agg, table, &column);
        Some(input.unwrap_or(ImageInput::Expression))
    };
    Some(GroupedImages {
        keys: plan.keys.iter().map(key).collect::<Option<_>>()?,
        inputs: plan.aggregates.iter().map(input).collect::<Option<_>>()?,
    })
}

/// A key with its group.
#[derive(Clone, Copy)]
struct KnownKey {
    start: u32,
    end: u32,
    group: u32,
}

/// Sums of kernels that are not added to their group's aggregate yet.
#[derive(Clone, Copy, Default)]
struct Part {
    unscaled: i128,
    rows: u64,
}

/// The keys seen so far, and pending sums in the order of all groups' aggregates.
#[derive(Default)]
pub(crate) struct KnownKeys {
    arena: Vec<u8>,
    known: HashTable<KnownKey>,
    /// The key of the current row.
    key: Vec<u8>,
    parts: Vec<Part>,
    rows: u32,
    hits: u32,
}

impl KnownKeys {
    /// Removes all keys, and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.arena.clear();
        self.known.clear();
        self.key.clear();
        self.parts.clear();
        (self.rows, self.hits) = (0, 0);
    }

    /// The allocated memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.arena.capacity()
            + self.known.capacity() * size_of::<KnownKey>()
            + self.key.capacity()
            + self.parts.capacity() * size_of::<Part>()
    }

    /// Reads the key columns of an image. False: a column is on overflow pages.
    fn read(
        &mut self,
        layout: &RowLayout,
        image: &[u8],
        columns: &[usize],
    ) -> Result<bool, SqlError> {
        self.key.clear();
        for &column in columns {
            match layout.raw(image, column).map_err(|e| row_error(&e))? {
                RawField::Null => self.key.push(0),
                RawField::Fixed(bytes) => {
                    self.key.push(1);
                    self.key.extend_from_slice(bytes);
                }
                RawField::Var(bytes) => {
                    self.key.push(1);
                    self.key.extend_from_slice(&bytes.len().to_le_bytes());
                    self.key.extend_from_slice(bytes);
                }
                RawField::External(_) => return Ok(false),
            }
        }
        Ok(true)
    }

    /// The group of the key that was read last.
    fn find(&mut self) -> Option<usize> {
        self.rows = self.rows.saturating_add(1);
        let same = |k: &KnownKey| self.arena[k.start as usize..k.end as usize] == self.key[..];
        let found = self.known.find(hash_of(&self.key), same)?;
        self.hits = self.hits.saturating_add(1);
        Some(found.group as usize)
    }

    /// Adds the key that was read last, with its group.
    fn remember(&mut self, group: usize) {
        let start = self.arena.len();
        if start + self.key.len() > KNOWN_BYTES {
            return;
        }
        self.arena.extend_from_slice(&self.key);
        let new = KnownKey {
            start: start as u32,
            end: self.arena.len() as u32,
            group: group as u32,
        };
        let arena = &self.arena;
        let hash = |k: &KnownKey| hash_of(&arena[k.start as usize..k.end as usize]);
        self.known.insert_unique(hash(&new), new, hash);
    }

    /// Whether too few rows had a known key for the lookups to pay.
    fn is_useless(&self) -> bool {
        self.rows >= JUDGED_ROWS && self.hits < self.rows / 2
    }
}

/// Evaluates and adds the arguments of aggregate `n` of `plan`, for the row of `cx`.
pub(crate) fn add_evaluated(
    cx: &EvalCx<'_>,
    (plan, grouping): (&GroupPlan, &Grouping),
    n: usize,
    acc: &mut Acc,
) -> Result<(), SqlError> {
    let agg = &plan.aggregates[n];
    let mut arguments = Values::new();
    values(cx, agg, &mut arguments)?;
    let info = AggInfo {
        plan: agg,
        shape: &grouping.infos[n],
    };
    // It collects no values, so no value is deferred.
    acc.add(cx, &info, &arguments, false).map(drop)
}

impl Grouper<'_> {
    /// Adds a row by its image if its key is known. Returns false if it is not: then the caller
    /// adds the row by the evaluator, and calls [`remember`](Self::remember). `kernels` has a
    /// kernel for each aggregate with [`ImageInput::Number`], if it could be compiled. `evaluate`
    /// adds aggregate `n` of a row by the evaluator.
    pub fn add_image(
        &mut self,
        layout: &RowLayout,
        kernels: &[Option<NumberKernel>],
        image: &[u8],
        mut evaluate: impl FnMut(usize, &mut Acc) -> Result<(), SqlError>,
    ) -> Result<bool, SqlError> {
        let Some(shape) = &self.shape.grouped else {
            return Ok(false);
        };
        let Groups { known, accs, .. } = &mut *self.groups;
        if known.is_useless() || !known.read(layout, image, &shape.keys)? {
            known.key.clear();
            return Ok(false);
        }
        let Some(group) = known.find() else {
            return Ok(false);
        };
        let first = group * self.plan.aggregates.len();
        let aggregates = self.plan.aggregates.iter().zip(&shape.inputs).enumerate();
        for (n, (agg, input)) in aggregates {
            let acc = &mut accs[first + n];
            match (kernels.get(n), input) {
                (Some(Some(kernel)), _) => match kernel.value(image) {
                    Ok(None) => {}
                    Ok(Some(v)) => {
                        let at = first + n;
                        if known.parts.len() <= at {
                            known.parts.resize(at + 1, Part::default());
                        }
                        let part = &mut known.parts[at];
                        part.rows += 1;
                        match part.unscaled.checked_add(v) {
                            Some(sum) => part.unscaled = sum,
                            None => {
                                acc.add_sum(decimal(part.unscaled, kernel.scale()), 0)?;
                                part.unscaled = v;
                            }
                        }
                    }
                    Err(_) => evaluate(n, acc)?,
                },
                (_, ImageInput::Row) => acc.count_rows(1),
                (_, ImageInput::Column(column)) => {
                    let value = layout.get(image, column.ordinal);
                    acc.add_stored(agg.func, value.map_err(|e| row_error(&e))?)?;
                }
                (_, ImageInput::Number | ImageInput::Expression) => {
                    let before = acc.bytes;
                    evaluate(n, acc)?;
                    self.bytes = (self.bytes + acc.bytes).saturating_sub(before);
                }
            }
        }
        Ok(true)
    }

    /// Adds the key of the current row, with the group to which the evaluator has added the row.
    pub fn remember(&mut self) {
        if let Some(group) = self.last
            && !self.groups.known.key.is_empty()
        {
            self.groups.known.remember(group);
        }
    }

    /// Adds the pending sums to their groups.
    pub fn add_parts(&mut self, kernels: &[Option<NumberKernel>]) -> Result<(), SqlError> {
        let width = self.plan.aggregates.len().max(1);
        let Groups { known, accs, .. } = &mut *self.groups;
        for (at, part) in known.parts.drain(..).enumerate() {
            if part.rows > 0
                && let Some(Some(kernel)) = kernels.get(at % width)
            {
                let sum = decimal(part.unscaled, kernel.scale());
                accs[at].add_sum(sum, part.rows)?;
            }
        }
        Ok(())
    }
}

/// The DECIMAL of an unscaled integer with `scale` decimals.
fn decimal(unscaled: i128, scale: u8) -> Option<Decimal> {
    Decimal::from_parts(unscaled < 0, unscaled.unsigned_abs().into(), scale)
}
