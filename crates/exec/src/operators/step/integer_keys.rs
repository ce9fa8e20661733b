//! The keys of a hash join whose sides are integer columns: they are read from the row images,
//! without the evaluator.

use nfold_plan::expr::{CmpKind, Expr};
use nfold_plan::query::{HashKey, JoinStep};
use nfold_types::TypeKind;
use nfold_types::row::OrderedField;
use smallvec::SmallVec;

use super::StepCx;
use crate::env::batch::Batch;

/// One equality.
#[derive(Debug, Clone, Copy)]
struct IntegerKey {
    /// The join step whose images hold the outer side.
    position: usize,
    outer: OrderedField,
    inner: OrderedField,
}

/// All equalities of a hash join.
#[derive(Debug, Default)]
pub(super) struct IntegerKeys(SmallVec<[IntegerKey; 2]>);

/// Whether the values of a column are stored as integers.
fn is_integer(e: &Expr) -> bool {
    use TypeKind::{BigInt, Int, MediumInt, SmallInt, TinyInt};
    let kind = &e.ty.col.kind;
    e.as_column().is_some() && matches!(kind, TinyInt | SmallInt | MediumInt | Int | BigInt)
}

/// Whether a column may have values above the largest BIGINT.
fn is_wide(e: &Expr) -> bool {
    e.ty.col.unsigned && e.ty.col.kind == TypeKind::BigInt
}

/// The lowest 64 bits of the number in an image; `None`: NULL.
#[inline(always)]
fn number(field: OrderedField, image: &[u8]) -> Option<u64> {
    field.key(image).map(|key| field.number(key) as u64)
}

/// Appends a number to the hash. The hash of the first number is the number itself.
#[inline(always)]
fn combine(hash: u64, number: u64) -> u64 {
    const ODD: u64 = 0xD6E8_FEB8_6659_FD93;
    hash.wrapping_mul(ODD).rotate_left(29) ^ number
}

impl IntegerKeys {
    /// `None` if a side is no integer column.
    pub fn new(cx: &StepCx<'_, '_>, step: &JoinStep, keys: &[HashKey]) -> Option<IntegerKeys> {
        let field = |e: &Expr| {
            let at = e.as_column().filter(|_| is_integer(e))?;
            let slot = cx.slots.get(usize::from(at.table))?;
            let ordinal = slot.ordinal(at.column.into())?;
            let field = slot.layout().ordered_field(ordinal)?;
            field.is_integer().then_some((usize::from(at.table), field))
        };
        let integer = |key: &HashKey| {
            let (outer_slot, outer) = field(&key.outer)?;
            let (inner_slot, inner) = field(&key.inner)?;
            let mut steps = cx.block.joins.iter();
            let position = steps.position(|step| step.table == outer_slot)?;
            // Otherwise a negative number and one above the largest BIGINT have the same 64 bits.
            let alike = key.outer.ty.col.unsigned == key.inner.ty.col.unsigned
                || !(is_wide(&key.outer) || is_wide(&key.inner));
            let plain = key.kind == CmpKind::Int && !key.null_safe && alike;
            (plain && inner_slot == step.table).then_some(IntegerKey {
                position,
                outer,
                inner,
            })
        };
        let keys: Option<SmallVec<_>> = keys.iter().map(integer).collect();
        keys.filter(|keys| !keys.is_empty()).map(IntegerKeys)
    }

    /// Whether rows with equal hashes have equal keys.
    pub fn is_exact(&self) -> bool {
        self.0.len() == 1
    }

    /// The hash of row `i` of the outer side; `None`: a part of the key is NULL.
    #[inline]
    pub fn outer(&self, batch: &Batch, i: usize) -> Option<u64> {
        self.0.iter().try_fold(0, |hash, key| {
            let image = batch.image(i, key.position)?;
            Some(combine(hash, number(key.outer, image)?))
        })
    }

    /// The hash of a row of the inner side; `None`: a part of the key is NULL.
    #[inline]
    pub fn inner(&self, image: &[u8]) -> Option<u64> {
        self.0.iter().try_fold(0, |hash, key| {
            Some(combine(hash, number(key.inner, image)?))
        })
    }
}
