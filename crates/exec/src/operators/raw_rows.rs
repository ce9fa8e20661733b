//! The raw-row fast path: ORDER BY, DISTINCT and GROUP BY without aggregates over plain columns of
//! one table. Rows remain images from the page to the client; no values are created.
//! [`crate::block`] runs all other blocks.
//!
//! # Invariants
//! - L1: of equal rows the one that is read first is returned, as in the general case.

use nfold_plan::expr::{Class, ColumnAt, Expr, ExprKind};
use nfold_plan::query::Block;
use nfold_types::row::RowLayout;
use nfold_types::{SqlError, TypeKind};

use super::distinct::Distinct;
use super::key_prefix::{HEAD, HeadSorter, MakeKeys};
use super::output::{Direct, DirectRows};
use super::row_out::{Limits, top_of};
use super::step::{Slot, Source};
use crate::env::RowSink;
use crate::expr::eval::tuple::KeyMaker;
use crate::expr::eval::{RowCounts, Val, row_error};
use crate::runtime::Runtime;

/// The maximum length of columns that are carried through a sort although the result does not need
/// them, in bytes.
const CARRIED_MAX: u64 = 1024;

/// The key includes all characters of a string.
const ALL: usize = usize::MAX;

/// Builds keys from columns of row images.
struct ImageKeys {
    maker: KeyMaker,
    ordinals: Vec<usize>,
    /// For each key column: whether its stored value is encoded without conversion.
    as_stored: Vec<bool>,
}

impl ImageKeys {
    fn new<'e>(
        keys: impl Iterator<Item = (&'e Expr, bool)> + Clone,
        ordinal: impl Fn(&Expr) -> Option<usize>,
        max_sort_length: usize,
    ) -> Option<ImageKeys> {
        // A TIMESTAMP is compared in the session's local time.
        let simple = |e: &Expr| !matches!(e.ty.col.kind, TypeKind::Timestamp(_));
        let ordinals = keys
            .clone()
            .map(|(e, _)| if simple(e) { ordinal(e) } else { None })
            .collect::<Option<_>>()?;
        // The key's type may differ from the column's, for example in its number of decimals.
        let as_stored = keys
            .clone()
            .map(|(e, _)| matches!(e.ty.class(), Class::String | Class::Int | Class::DateTime))
            .collect();
        let maker = KeyMaker::of_order(keys.map(|(e, desc)| (&e.ty, desc)), max_sort_length);
        Some(ImageKeys {
            maker,
            ordinals,
            as_stored,
        })
    }

    /// Appends the key of an image in the given form.
    #[inline]
    fn push(
        &self,
        form: KeyForm,
        layout: &RowLayout,
        image: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), SqlError> {
        for (n, ordinal) in self.ordinals.iter().enumerate() {
            let value = layout.get(image, *ordinal).map_err(|e| row_error(&e))?;
            match form {
                _ if !self.as_stored[n] => self.maker.push(n, &Val::from_ref(value), out)?,
                KeyForm::Whole => self.maker.push_stored(n, value, out)?,
                KeyForm::Identity => self.maker.push_identity(n, value, out)?,
                KeyForm::Head => self.maker.push_head(n, value, HEAD - out.len(), out)?,
            }
            if form == KeyForm::Head && out.len() >= HEAD {
                break;
            }
        }
        Ok(())
    }
}

/// The form of a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KeyForm {
    Whole,
    /// Equal exactly if the full keys are equal; does not sort.
    Identity,
    /// At least the first [`HEAD`] bytes.
    Head,
}

/// The keys of images in one layout.
struct ImageKeyMaker<'k>(&'k ImageKeys, &'k RowLayout);

impl MakeKeys for ImageKeyMaker<'_> {
    fn key(&self, image: &[u8], out: &mut Vec<u8>) -> Result<(), SqlError> {
        self.0.push(KeyForm::Whole, self.1, image, out)
    }

    fn head(&self, image: &[u8], out: &mut Vec<u8>) -> Result<(), SqlError> {
        self.0.push(KeyForm::Head, self.1, image, out)
    }
}

/// The operators of such a block, built once per plan.
pub(crate) struct RawRows {
    pub direct: Direct,
    /// The select list as columns of the table, for the encoder.
    pub select: Vec<Expr>,
    order: Option<ImageKeys>,
    unique: Option<ImageKeys>,
}

impl RawRows {
    /// `None` if the block is of another form.
    pub fn open(rt: &Runtime<'_>, block: &Block, slot: Option<&Slot>) -> Option<RawRows> {
        let ([step], slot) = (block.joins.as_slice(), slot?) else {
            return None;
        };
        let other = !matches!(slot.source, Source::Table(_))
            || !block.having.is_empty()
            || !block.windows.is_empty()
            || block.calc_found_rows
            || (block.order.is_empty() && !block.distinct && block.group.is_none());
        if other {
            return None;
        }
        let keys = match &block.group {
            None => None,
            Some(g) if !g.aggregates.is_empty() || g.implicit || g.rollup => return None,
            // Groups that arrive in order need no set, and DISTINCT over groups would be a second
            // step.
            Some(g) if g.ordered || g.first_row_only || block.distinct => return None,
            Some(g) => Some(&g.keys),
        };
        // After a grouping, columns are numbers of its keys.
        let column = |e: &Expr| -> Option<ColumnAt> {
            match (&e.kind, keys) {
                (ExprKind::Column(at), None) => Some(*at),
                (ExprKind::Column(at), Some(keys)) => {
                    match keys.get(usize::from(at.column))?.kind {
                        ExprKind::Column(at) => Some(at),
                        _ => None,
                    }
                }
                _ => None,
            }
        };
        let of_table = |at: ColumnAt| {
            (usize::from(at.table) == step.table).then(|| slot.ordinal(at.column.into()))?
        };
        let ordinal = |e: &Expr| of_table(column(e)?);
        let select = block
            .select
            .iter()
            .map(|e| {
                let kind = ExprKind::Column(column(e)?);
                let ty = e.ty.clone();
                Some(Expr { kind, ty })
            })
            .collect::<Option<Vec<_>>>()?;
        let ordinals = select
            .iter()
            .map(|e| match e.kind {
                ExprKind::Column(at) => of_table(at),
                _ => None,
            })
            .collect::<Option<Vec<_>>>()?;
        let unneeded = slot.layout().columns().iter().enumerate();
        let carried = unneeded
            .filter(|(n, _)| !ordinals.contains(n))
            .map(|(_, c)| c.ty.max_bytes())
            .sum::<u64>();
        if carried > CARRIED_MAX {
            return None;
        }
        let unique = match (keys, block.distinct) {
            (Some(keys), _) => {
                let own = |e: &Expr| match e.kind {
                    ExprKind::Column(at) => of_table(at),
                    _ => None,
                };
                Some(ImageKeys::new(keys.iter().map(|e| (e, false)), own, ALL)?)
            }
            (None, true) => Some(ImageKeys::new(
                block.select.iter().map(|e| (e, false)),
                ordinal,
                ALL,
            )?),
            (None, false) => None,
        };
        let order = match block.order.as_slice() {
            [] => None,
            order => Some(ImageKeys::new(
                order.iter().map(|k| (&k.expr, k.desc)),
                ordinal,
                rt.env.max_sort_length(),
            )?),
        };
        Some(RawRows {
            direct: Direct::of_columns(ordinals),
            select,
            order,
            unique,
        })
    }

    /// Reads images from `rows`, and sends those of the result to the sink. `rows` calls its
    /// argument with each row that passes the filter.
    pub fn run(
        parts: (&RawRows, &DirectRows<'_>, &RowLayout),
        rt: &Runtime<'_>,
        block: &Block,
        limits: Limits,
        rows: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<bool, SqlError>) -> Result<(), SqlError>,
        (sink, counts): (&mut dyn RowSink, &RowCounts),
    ) -> Result<(), SqlError> {
        let (raw_rows, encoder, layout) = parts;
        if limits.wanted() == 0 {
            return Ok(());
        }
        let format = sink.format();
        let wanted = limits.wanted();
        let mut seen = 0;
        let mut give = |image: &[u8]| -> Result<bool, SqlError> {
            seen += 1;
            if seen > limits.skip {
                encoder.emit(image, format, sink)?;
                counts.add_sent(1);
            } else {
                counts.add_skipped(1);
            }
            Ok(seen < wanted)
        };
        let mut unique = raw_rows
            .unique
            .as_ref()
            .map(|keys| (keys, Distinct::new(rt.env.work_memory())));
        let Some(order) = &raw_rows.order else {
            let mut more = true;
            rows(&mut |image| {
                if let Some(unique) = &mut unique
                    && !is_new(rt, unique, layout, image)?
                {
                    return Ok(true);
                }
                more = give(image)?;
                Ok(more)
            })?;
            return match unique {
                Some((_, set)) => {
                    set.count(rt);
                    match more {
                        true => set.give_deferred(rt, &mut give),
                        false => Ok(()),
                    }
                }
                None => Ok(()),
            };
        };
        let key_maker = ImageKeyMaker(order, layout);
        let mut sorter = HeadSorter::new(&key_maker, rt.env.work_memory(), top_of(block, limits));
        rows(&mut |image| {
            if let Some(unique) = &mut unique
                && !is_new(rt, unique, layout, image)?
            {
                return Ok(true);
            }
            sorter.push(rt, image)?;
            Ok(true)
        })?;
        if let Some((_, set)) = unique {
            set.count(rt);
            set.give_deferred(rt, &mut |image| {
                sorter.push(rt, image)?;
                Ok(true)
            })?;
        }
        sorter.finish(rt, &mut give)?;
        rt.count_sort(seen);
        Ok(())
    }
}

/// Whether the row is known to be new.
#[inline]
fn is_new(
    rt: &Runtime<'_>,
    (keys, set): &mut (&ImageKeys, Distinct),
    layout: &RowLayout,
    image: &[u8],
) -> Result<bool, SqlError> {
    set.is_new(
        rt,
        |key| keys.push(KeyForm::Identity, layout, image, key),
        |out| {
            out.extend_from_slice(image);
            Ok(())
        },
    )
}
