//! Rows are added to their groups by their images, a batch at a time.
//!
//! # Picture
//! ```text
//!  batch ─▶ bytes of each row's key columns ─▶ known? ── yes: number of the group ──┐
//!                                               └── no: the evaluator places the row ┤
//!                                                                                    ▼
//!           numbers of the batch (kernels) ─────────▶ sums of each group   number of each row's group
//!           stored values and expressions, row by row ─▶ aggregates of each group
//! ```
//!
//! # Invariants
//! - I1: images with equal bytes in all key columns belong to the same group, because every key is
//!   a plain column. Different bytes may belong to the same group as well, by a collation.
//! - I2: the evaluator computes arguments row by row, and each row's in the order of the
//!   aggregates. Kernels and stored values give no warning. So errors and warnings are the same as
//!   without images.
//! - I3: where groups come in order, or memory is full, all rows before a row are in their groups
//!   when the evaluator places it: it may complete a group, or evaluate the arguments of the row.

use std::ops::Range;

use hashbrown::HashTable;
use nfold_plan::expr::Expr;
use nfold_plan::query::{AggFunc, Aggregate, GroupPlan};
use nfold_types::SqlError;
use nfold_types::row::{OrderedField, RawField, RowLayout};
use smallvec::SmallVec;

use super::{Grouper, Grouping, Groups, hash_of};
use crate::env::batch::Batch;
use crate::expr::eval::{EvalCx, row_error};
use crate::expr::kernels::{NO_GROUP, Number, NumberProgram, PartialSum, Vectors};
use crate::operators::aggregate::{Acc, AggInfo, Values, values};

/// Bytes of keys that are remembered with their groups.
const KNOWN_BYTES: usize = 1 << 20;
/// Rows after which keys must have been known for at least a quarter of the rows. Before, the keys
/// of some ten thousand groups are mostly new.
const JUDGED_ROWS: u32 = 32768;

/// The value that an aggregate reads from the image of a row.
#[derive(Clone, Copy)]
pub(crate) enum ImageInput {
    /// Nothing: it counts rows.
    Row,
    Column(PlainColumn),
    /// A number that a kernel computes, which is compiled for each execution.
    Number,
    /// Its arguments, which are evaluated for each row.
    Expression,
}

/// A column of row images that is a key or the argument of an aggregate.
#[derive(Clone, Copy)]
pub(crate) struct PlainColumn {
    /// The join step whose images hold it, and where.
    pub position: usize,
    pub ordinal: usize,
    /// The images are rows of a table, whose values are those of its columns' types.
    pub of_table: bool,
    /// For aggregating many rows without creating a value for each, if the column allows it.
    pub field: Option<OrderedField>,
}

/// The inputs of the aggregates of `plan` over the rows of one table, if all of them count rows,
/// aggregate plain columns, or sum exact numbers computed from columns; otherwise `None`. `column`
/// returns the position in the images of the column that an expression is.
pub(crate) fn image_inputs(
    plan: &GroupPlan,
    column: impl Fn(&Expr) -> Option<PlainColumn>,
) -> Option<Vec<ImageInput>> {
    if !plan.implicit {
        return None;
    }
    let aggregates = plan.aggregates.iter();
    aggregates.map(|agg| image_input(agg, &column)).collect()
}

/// The input of one aggregate, as in [`image_inputs`].
fn image_input(
    agg: &Aggregate,
    column: impl Fn(&Expr) -> Option<PlainColumn>,
) -> Option<ImageInput> {
    match agg.args.as_slice() {
        [] => Acc::new(agg).takes_stored(None).then_some(ImageInput::Row),
        [arg] if Acc::new(agg).takes_stored(Some(&arg.ty)) => {
            let sums = matches!(agg.func, AggFunc::Sum | AggFunc::Avg);
            let number = sums && NumberProgram::is_possible(arg);
            match column(arg).filter(|column| column.of_table) {
                Some(column) => Some(ImageInput::Column(column)),
                None => number.then_some(ImageInput::Number),
            }
        }
        _ => None,
    }
}

/// How rows are grouped by their images.
pub(crate) struct GroupedImages {
    keys: Vec<PlainColumn>,
    pub inputs: Vec<ImageInput>,
}

/// How rows are grouped by their images; `None` if a key is no plain column, or an aggregate
/// collects values, or none is computed from images. `column` returns where the images hold the
/// column that an expression is.
pub(crate) fn grouped_images(
    plan: &GroupPlan,
    column: impl Fn(&Expr) -> Option<PlainColumn>,
) -> Option<GroupedImages> {
    if plan.rollup || plan.first_row_only {
        return None;
    }
    let input = |agg: &Aggregate| {
        let collects = matches!(
            agg.func,
            AggFunc::GroupConcat | AggFunc::JsonArray | AggFunc::JsonObject
        );
        if agg.distinct || collects {
            return None;
        }
        let input = image_input(agg, &column);
        Some(input.unwrap_or(ImageInput::Expression))
    };
    let images = GroupedImages {
        keys: plan.keys.iter().map(&column).collect::<Option<_>>()?,
        inputs: plan.aggregates.iter().map(input).collect::<Option<_>>()?,
    };
    let computed = |input: &ImageInput| !matches!(input, ImageInput::Expression);
    (!plan.implicit || images.inputs.iter().any(computed)).then_some(images)
}

/// A key that was met.
#[derive(Clone, Copy)]
struct KnownKey {
    start: u32,
    end: u32,
    group: u32,
}

/// The keys met so far, and sums of numbers in the same order as the aggregates of all groups.
#[derive(Default)]
pub(crate) struct KnownKeys {
    arena: Vec<u8>,
    known: HashTable<KnownKey>,
    /// The key of the current row, and that of the row before where groups come in order.
    key: Vec<u8>,
    last: Vec<u8>,
    /// Sums of kernels that are not yet in their group's aggregate.
    sums: Vec<PartialSum>,
    /// The group of each row of the batch.
    groups: Vec<u32>,
    rows: u32,
    hits: u32,
}

impl KnownKeys {
    /// Forgets all keys, and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.arena.clear();
        self.known.clear();
        self.key.clear();
        self.last.clear();
        self.sums.clear();
        self.groups.clear();
        (self.rows, self.hits) = (0, 0);
    }

    /// Bytes allocated.
    pub(super) fn bytes(&self) -> usize {
        self.arena.capacity()
            + self.known.capacity() * size_of::<KnownKey>()
            + self.key.capacity()
            + self.last.capacity()
            + self.sums.capacity() * size_of::<PartialSum>()
            + self.groups.capacity() * size_of::<u32>()
    }

    /// Reads the key columns of a row. False: a column lies on overflow pages.
    fn read(&mut self, rows: &JoinedRows<'_>, row: usize, columns: &[PlainColumn]) -> bool {
        self.key.clear();
        for column in columns {
            let Some(image) = rows.batch.image(row, column.position) else {
                self.key.push(0);
                continue;
            };
            match rows.layouts[column.position].raw(image, column.ordinal) {
                Ok(RawField::Null) => self.key.push(0),
                Ok(RawField::Fixed(bytes)) => {
                    self.key.push(1);
                    self.key.extend_from_slice(bytes);
                }
                Ok(RawField::Var(bytes)) => {
                    self.key.push(1);
                    self.key
                        .extend_from_slice(&(bytes.len() as u32).to_le_bytes());
                    self.key.extend_from_slice(bytes);
                }
                // The evaluator reads the value, or tells of the damage.
                Ok(RawField::External(_) | RawField::Patched(..)) | Err(_) => {
                    self.key.clear();
                    return false;
                }
            }
        }
        true
    }

    /// The group of the key that was read.
    fn find(&mut self) -> Option<usize> {
        self.rows = self.rows.saturating_add(1);
        let same = |k: &KnownKey| self.arena[k.start as usize..k.end as usize] == self.key[..];
        let found = self.known.find(hash_of(&self.key), same)?;
        self.hits = self.hits.saturating_add(1);
        Some(found.group as usize)
    }

    /// Remembers the group of the key that was read.
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

    /// Whether so few keys were known that looking for them does not pay.
    fn is_useless(&self) -> bool {
        self.rows >= JUDGED_ROWS && self.hits < self.rows / 4
    }
}

/// The rows of a batch, and the layouts of their images by join step.
pub(crate) struct JoinedRows<'b> {
    pub batch: &'b Batch,
    pub layouts: &'b [&'b RowLayout],
}

/// The kernels of a group plan's aggregates, compiled for one execution.
pub(crate) struct ImageSums {
    program: NumberProgram,
    /// Of each aggregate; `None`: it has no kernel.
    numbers: SmallVec<[Option<Number>; 8]>,
    vectors: Vectors,
}

impl ImageSums {
    /// `compile` adds an aggregate to the program.
    pub fn new<'p>(
        plan: &'p GroupPlan,
        mut compile: impl FnMut(&mut NumberProgram, &'p Expr) -> Option<Number>,
    ) -> ImageSums {
        let mut program = NumberProgram::default();
        let mut number = |agg: &'p Aggregate| match agg.args.as_slice() {
            [arg] if Acc::new(agg).is_exact_sum() => compile(&mut program, arg),
            _ => None,
        };
        let numbers = plan.aggregates.iter().map(&mut number).collect();
        ImageSums {
            program,
            numbers,
            vectors: Vectors::default(),
        }
    }

    /// Whether aggregate `n` has a kernel.
    pub fn has(&self, n: usize) -> bool {
        self.numbers.get(n).is_some_and(Option::is_some)
    }

    /// Computes the numbers of a batch.
    pub fn run(&mut self, batch: &Batch) {
        if !self.program.is_empty() {
            self.program.run(batch, &mut self.vectors);
        }
    }

    /// Adds the numbers of all rows of the batch to aggregate `n`; false: it has no kernel. The
    /// evaluator adds a row that the kernel cannot compute.
    pub fn add_all(
        &mut self,
        n: usize,
        rows: usize,
        acc: &mut Acc,
        mut evaluate: impl FnMut(usize, &mut Acc) -> Result<(), SqlError>,
    ) -> Result<bool, SqlError> {
        let Some(Some(number)) = self.numbers.get(n).copied() else {
            return Ok(false);
        };
        acc.add_sum(self.vectors.sum(number, 0..rows), number.scale)?;
        if self.vectors.has_missing(number) {
            for row in 0..rows {
                if self.vectors.is_missing(number, row) {
                    evaluate(row, acc)?;
                }
            }
        }
        Ok(true)
    }

    /// Whether the kernel of aggregate `n` has left a row to the evaluator.
    fn is_missing(&self, n: usize, row: usize) -> bool {
        let number = self.numbers.get(n).copied().flatten();
        number.is_some_and(|number| self.vectors.is_missing(number, row))
    }

    fn has_missing(&self) -> bool {
        let mut numbers = self.numbers.iter().flatten();
        numbers.any(|number| self.vectors.has_missing(*number))
    }
}

/// Evaluates and adds the arguments of aggregate `n` of `plan` for the row that `cx` sees.
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
    /// Adds the rows of a batch by their images, where no aggregate has a kernel. Only for a
    /// [`Grouping`] with `inputs`, whose rows are those of one table.
    #[inline]
    pub fn add_columns<'i>(
        &mut self,
        layout: &RowLayout,
        images: impl Iterator<Item = &'i [u8]> + Clone,
    ) -> Result<(), SqlError> {
        let (plan, shape) = (self.plan, self.shape);
        let inputs = shape.inputs.as_deref().unwrap_or_default();
        let aggregates = plan.aggregates.iter().zip(inputs);
        for (acc, (agg, input)) in self.only().iter_mut().zip(aggregates) {
            add_input(acc, agg, input, layout, images.clone())?;
        }
        Ok(())
    }

    /// Adds the rows of a batch by their images. Only for a [`Grouping`] with `inputs`, whose rows
    /// are those of one table. `sums` has a kernel for each aggregate with [`ImageInput::Number`];
    /// `evaluate` adds aggregate `n` of a row whose kernel fails.
    #[inline(never)]
    pub fn add_images<'i>(
        &mut self,
        layout: &RowLayout,
        sums: &mut ImageSums,
        images: impl Iterator<Item = &'i [u8]> + Clone,
        rows: usize,
        mut evaluate: impl FnMut(usize, usize, &mut Acc) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        let (plan, shape) = (self.plan, self.shape);
        let inputs = shape.inputs.as_deref().unwrap_or_default();
        let aggregates = plan.aggregates.iter().zip(inputs).enumerate();
        for (acc, (n, (agg, input))) in self.only().iter_mut().zip(aggregates) {
            if sums.add_all(n, rows, acc, |row, acc| evaluate(row, n, acc))? {
                continue;
            }
            add_input(acc, agg, input, layout, images.clone())?;
        }
        Ok(())
    }

    /// The group of a row, if its key's bytes are known; otherwise the evaluator places it, and
    /// [`remember`](Self::remember) follows.
    pub fn known_group(&mut self, rows: &JoinedRows<'_>, row: usize) -> Option<usize> {
        let shape = self.shape.grouped.as_ref()?;
        if self.plan.implicit {
            self.only();
            return Some(0);
        }
        let Groups { known, groups, .. } = &mut *self.groups;
        known.key.clear();
        if self.plan.ordered {
            let read = known.read(rows, row, &shape.keys);
            let same = read && !groups.is_empty() && known.key == known.last;
            return same.then_some(0);
        }
        if known.is_useless() || !known.read(rows, row, &shape.keys) {
            return None;
        }
        known.find()
    }

    /// Remembers the group in which the evaluator has placed the current row.
    pub fn remember(&mut self, place: Option<usize>) {
        let known = &mut self.groups.known;
        if self.plan.ordered {
            std::mem::swap(&mut known.key, &mut known.last);
            return;
        }
        if let Some(group) = place
            && !known.key.is_empty()
        {
            known.remember(group);
        }
    }

    /// Whether placing a row may have an effect beyond its group (I3).
    pub fn is_last_resort(&self) -> bool {
        self.plan.ordered || self.bytes > self.limit_bytes
    }

    /// The groups of the rows of a batch, to be filled for [`add_rows`](Self::add_rows) and given
    /// back.
    pub fn take_row_groups(&mut self) -> Vec<u32> {
        let mut groups = std::mem::take(&mut self.groups.known.groups);
        groups.clear();
        groups
    }

    pub fn give_back_row_groups(&mut self, groups: Vec<u32>) {
        self.groups.known.groups = groups;
    }

    /// Adds some rows of a batch to their groups; `groups` has one for each row from the first of
    /// the batch on. `evaluate` adds aggregate `n` of a row by the evaluator.
    pub fn add_rows(
        &mut self,
        rows: &JoinedRows<'_>,
        range: Range<usize>,
        groups: &[u32],
        sums: &mut ImageSums,
        mut evaluate: impl FnMut(usize, usize, &mut Acc) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        let Some(shape) = &self.shape.grouped else {
            return Ok(());
        };
        if range.is_empty() {
            return Ok(());
        }
        let width = self.plan.aggregates.len();
        let one_group = self.plan.implicit || self.plan.ordered;
        let Groups { known, accs, .. } = &mut *self.groups;
        let mut by_row = false;
        for (n, input) in shape.inputs.iter().enumerate() {
            match (sums.numbers[n], input) {
                (Some(number), _) if one_group => {
                    let part = sums.vectors.sum(number, range.clone());
                    accs[n].add_sum(part, number.scale)?;
                }
                (Some(number), _) => {
                    known.sums.resize(accs.len(), PartialSum::default());
                    let into = (&mut known.sums[..], n, width);
                    sums.vectors.add_to(number, range.clone(), groups, into);
                }
                (None, ImageInput::Row) if one_group => accs[n].count_rows(range.len() as u64),
                (None, ImageInput::Row) => {
                    for &group in groups[range.clone()].iter().filter(|g| **g != NO_GROUP) {
                        accs[n + group as usize * width].count_rows(1);
                    }
                }
                _ => by_row = true,
            }
        }
        if !by_row && !sums.has_missing() {
            return Ok(());
        }
        for row in range.filter(|&row| groups[row] != NO_GROUP) {
            let first = groups[row] as usize * width;
            for (n, input) in shape.inputs.iter().enumerate() {
                let acc = &mut accs[first + n];
                match input {
                    _ if sums.numbers[n].is_some() => {
                        if sums.is_missing(n, row) {
                            evaluate(row, n, acc)?;
                        }
                    }
                    ImageInput::Row => {}
                    ImageInput::Column(column) => {
                        add_column(rows, row, *column, &self.plan.aggregates[n], acc)?;
                    }
                    ImageInput::Number | ImageInput::Expression => {
                        let before = acc.bytes;
                        evaluate(row, n, acc)?;
                        self.bytes = (self.bytes + acc.bytes).saturating_sub(before);
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds the sums of kernels to their groups.
    pub fn add_sums(&mut self, sums: &ImageSums) -> Result<(), SqlError> {
        let width = self.plan.aggregates.len().max(1);
        let Groups { known, accs, .. } = &mut *self.groups;
        for (at, part) in known.sums.drain(..).enumerate() {
            if part.rows > 0
                && let Some(number) = sums.numbers[at % width]
            {
                accs[at].add_sum(part, number.scale)?;
            }
        }
        Ok(())
    }
}

/// Adds rows to an aggregate that counts them or reads a column.
#[inline]
fn add_input<'i>(
    acc: &mut Acc,
    agg: &Aggregate,
    input: &ImageInput,
    layout: &RowLayout,
    images: impl Iterator<Item = &'i [u8]> + Clone,
) -> Result<(), SqlError> {
    let ImageInput::Column(column) = input else {
        acc.count_rows(images.count() as u64);
        return Ok(());
    };
    let get = |image| layout.get(image, column.ordinal).map_err(|e| row_error(&e));
    if let Some(field) = &column.field
        && let Some(best) = acc.add_ordered(agg.func, field, images.clone())
    {
        return best.map_or(Ok(()), |image| acc.add_stored(agg.func, get(image)?));
    }
    for image in images {
        acc.add_stored(agg.func, get(image)?)?;
    }
    Ok(())
}

/// Adds a column's stored value to an aggregate.
fn add_column(
    rows: &JoinedRows<'_>,
    row: usize,
    column: PlainColumn,
    agg: &Aggregate,
    acc: &mut Acc,
) -> Result<(), SqlError> {
    let Some(image) = rows.batch.image(row, column.position) else {
        return acc.add_stored(agg.func, nfold_types::ValueRef::Null);
    };
    let layout = rows.layouts[column.position];
    if agg.func == AggFunc::Count {
        let null = layout.is_null(image, column.ordinal);
        if !null.map_err(|e| row_error(&e))? {
            acc.count_rows(1);
        }
        return Ok(());
    }
    let value = layout.get(image, column.ordinal);
    acc.add_stored(agg.func, value.map_err(|e| row_error(&e))?)
}
