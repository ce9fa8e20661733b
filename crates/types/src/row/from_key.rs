//! Rows made from the entries of an index: what a covering read gives.
//!
//! The key holds numbers and moments in another order of bytes (`crate::key`), texts stand beside it as they were. What has to be done
//! with each key part is worked out once per index, so that a row costs a copy of a template and a few stores.

use super::field::FieldKind;
use super::{HEADER_BYTES, NOT_NULL, RowLayout, fixed_width};
use crate::key::{KeyLayout, KeyPart, framed_len};

/// Where a column of an index's own row layout comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// Part `n` of the index's own key.
    Part(usize),
    /// Part `n` of the primary key behind it.
    PrimaryPart(usize),
    /// The next of the original values that stand beside the key.
    Original,
}

/// How the bits of a key part become those of a field.
#[derive(Clone, Copy, Debug)]
enum Op {
    /// Not asked for.
    Skip,
    /// Big-endian to little-endian, these bits flipped.
    Bits { flip: u64 },
    /// The bytes as they are.
    Bytes,
    /// As `Bits`, the sign bit flipped, or all bits where it is clear.
    Float,
}

/// What to do with one key part.
#[derive(Clone, Copy, Debug)]
struct Step {
    op: Op,
    /// A null mark stands before it.
    nullable: bool,
    /// All its bytes are inverted.
    desc: bool,
    /// Bytes of the value; 0: a string, which ends with its mark.
    width: usize,
    /// Offset of the field in the image, and its bit in the null map.
    place: usize,
    null_bit: u32,
}

/// A text: where its end is noted, and its bit in the null map.
#[derive(Clone, Copy, Debug)]
struct Text {
    end_at: usize,
    null_bit: u32,
}

/// Makes rows of an index's own layout.
#[derive(Clone, Debug)]
pub struct KeyRows {
    /// An image of zeros without variable bytes.
    template: Box<[u8]>,
    own: Box<[Step]>,
    primary: Box<[Step]>,
    texts: Box<[Text]>,
}

impl KeyRows {
    /// For rows of `layout`, whose columns come from `sources`. `None` where a column is a string held by the key itself: such rows are
    /// made value by value.
    pub fn new(
        layout: &RowLayout,
        sources: &[KeySource],
        own: &KeyLayout,
        primary: &KeyLayout,
    ) -> Option<KeyRows> {
        let mut template = layout.version.to_le_bytes().to_vec();
        template.resize(layout.base_bytes(), 0);
        let steps = |key: &KeyLayout, source: fn(usize) -> KeySource| {
            let mut steps = Vec::new();
            for (n, part) in key.parts().iter().enumerate() {
                let column = sources.iter().position(|s| *s == source(n));
                steps.push(step(layout, part, column)?);
            }
            // What lies behind the last part that counts needs no look.
            let asked = |s: &Step| !matches!(s.op, Op::Skip);
            steps.truncate(steps.iter().rposition(asked).map_or(0, |n| n + 1));
            Some(steps.into_boxed_slice())
        };
        let texts = sources.iter().enumerate();
        let texts = texts.filter(|(_, s)| **s == KeySource::Original);
        let texts = texts.map(|(column, _)| {
            let slot = &layout.slots[column];
            (slot.width == 0).then_some(Text {
                end_at: layout.ends_at + 2 * slot.place as usize,
                null_bit: slot.null_bit,
            })
        });
        Some(KeyRows {
            own: steps(own, KeySource::Part)?,
            primary: steps(primary, KeySource::PrimaryPart)?,
            texts: texts.collect::<Option<_>>()?,
            template: template.into(),
        })
    }

    /// Appends the row of an entry: its own key (what follows it does no harm), the primary key, the original values. False, and `out` is as
    /// before: they are damaged, or the texts are longer than a narrow row holds.
    #[inline]
    pub fn append<'v>(
        &self,
        own: &[u8],
        primary: &[u8],
        originals: impl Iterator<Item = Option<&'v [u8]>>,
        out: &mut Vec<u8>,
    ) -> bool {
        let start = out.len();
        out.extend_from_slice(&self.template);
        let image = &mut out[start..];
        let fields = run(&self.own, own, image).and_then(|()| run(&self.primary, primary, image));
        let done = fields.and_then(|()| self.append_texts(start, originals, out));
        if done.is_none() {
            out.truncate(start);
        }
        done.is_some()
    }

    #[inline]
    fn append_texts<'v>(
        &self,
        start: usize,
        mut originals: impl Iterator<Item = Option<&'v [u8]>>,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let base = start + self.template.len();
        for text in &self.texts {
            match originals.next()? {
                Some(bytes) => out.extend_from_slice(bytes),
                None => set_null(&mut out[start..], text.null_bit)?,
            }
            let end = u16::try_from(out.len() - base).ok();
            let end = end.filter(|end| *end <= 0x7FFF)?;
            let at = start + text.end_at;
            out[at..at + 2].copy_from_slice(&end.to_le_bytes());
        }
        Some(())
    }
}

fn step(layout: &RowLayout, part: &KeyPart, column: Option<usize>) -> Option<Step> {
    let mut step = Step {
        op: Op::Skip,
        nullable: part.nullable,
        desc: part.desc,
        width: fixed_width(&part.ty).unwrap_or(0),
        place: 0,
        null_bit: NOT_NULL,
    };
    let Some(column) = column else {
        return Some(step);
    };
    let slot = &layout.slots[column];
    let sign = 1 << (8 * step.width.max(1) - 1).min(63);
    step.op = match slot.kind {
        FieldKind::Var => return None,
        FieldKind::I8
        | FieldKind::I16
        | FieldKind::I24
        | FieldKind::I32
        | FieldKind::I64
        | FieldKind::Time(_)
        | FieldKind::Timestamp(_) => Op::Bits { flip: sign },
        FieldKind::U8
        | FieldKind::U16
        | FieldKind::U24
        | FieldKind::U32
        | FieldKind::U64
        | FieldKind::Bits
        | FieldKind::Year
        | FieldKind::Date
        | FieldKind::Seconds
        | FieldKind::DateTime(_)
        | FieldKind::EpochSeconds => Op::Bits { flip: 0 },
        FieldKind::Float | FieldKind::Double => Op::Float,
        FieldKind::Decimal { .. } => Op::Bytes,
    };
    (step.place, step.null_bit) = (slot.place as usize, slot.null_bit);
    (slot.width as usize == step.width).then_some(step)
}

/// Walks the parts of a key and fills their fields. `None`: the key does not follow its layout.
#[inline]
fn run(steps: &[Step], mut key: &[u8], image: &mut [u8]) -> Option<()> {
    for step in steps {
        let invert = if step.desc { 0xFF } else { 0 };
        if step.nullable {
            let (mark, rest) = key.split_first()?;
            key = rest;
            match mark ^ invert {
                0 => {
                    if !matches!(step.op, Op::Skip) {
                        set_null(image, step.null_bit)?;
                    }
                    continue;
                }
                1 => {}
                _ => return None,
            }
        }
        if step.width == 0 {
            key = &key[framed_len(step.desc, key).ok()?..];
            continue;
        }
        let (value, rest) = key.split_at_checked(step.width)?;
        key = rest;
        let field = image.get_mut(step.place..step.place + step.width)?;
        match step.op {
            Op::Skip => {}
            Op::Bytes => {
                for (to, from) in field.iter_mut().zip(value) {
                    *to = from ^ invert;
                }
            }
            Op::Bits { flip } => put(bits(value, invert) ^ flip, field),
            Op::Float => {
                let sign = 1 << (8 * step.width - 1);
                let all = u64::MAX >> (64 - 8 * step.width);
                let bits = bits(value, invert);
                put(bits ^ if bits & sign == 0 { all } else { sign }, field);
            }
        }
    }
    Some(())
}

/// Big-endian bytes as a number, inverted first where the part is descending.
#[inline]
fn bits(value: &[u8], invert: u8) -> u64 {
    if invert == 0 {
        match value.len() {
            4 => return value.try_into().map_or(0, u32::from_be_bytes).into(),
            8 => return value.try_into().map_or(0, u64::from_be_bytes),
            _ => {}
        }
    }
    value.iter().fold(0, |n, b| n << 8 | u64::from(b ^ invert))
}

#[inline]
fn put(bits: u64, field: &mut [u8]) {
    let bytes = bits.to_le_bytes();
    match field.len() {
        4 => field.copy_from_slice(&bytes[..4]),
        8 => field.copy_from_slice(&bytes),
        _ => {
            for (to, from) in field.iter_mut().zip(bytes) {
                *to = from;
            }
        }
    }
}

#[inline]
fn set_null(image: &mut [u8], null_bit: u32) -> Option<()> {
    if null_bit == NOT_NULL {
        return None;
    }
    *image.get_mut(HEADER_BYTES + null_bit as usize / 8)? |= 1 << (null_bit % 8);
    Some(())
}
