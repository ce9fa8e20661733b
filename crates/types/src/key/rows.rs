//! Builds rows from index entries, for covering reads.
//!
//! The key holds numbers and temporal values in big-endian form (`crate::key`); the entry's value
//! holds the original strings. The steps for each key part are computed once per index, so a row
//! costs a copy of a template and a few stores.

use super::{KeyLayout, KeyPart, framed_len};
use crate::append_cursor::Tail;
use crate::row::field::FieldKind;
use crate::row::{HEADER_BYTES, NOT_NULL, RowLayout, Slot, fixed_width};

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
    /// The column is not read.
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
    /// The part begins with a null mark.
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
    /// Its bytes are read.
    wanted: bool,
}

/// Longest image without its variable bytes that is made in registers.
const SHORT: usize = 32;

/// Builds rows of an index's own layout, or of some of its columns.
#[derive(Clone, Debug)]
pub struct KeyRows {
    /// An image of zeros without variable bytes.
    template: Box<[u8]>,
    /// The same, where it is not longer.
    short: Option<[u8; SHORT]>,
    own: Box<[Step]>,
    primary: Box<[Step]>,
    texts: Box<[Text]>,
    /// See [`own_bytes`](Self::own_bytes).
    own_bytes: usize,
    /// Where all wanted parts have fixed places in their keys.
    moves: Option<Box<[Move]>>,
}

/// A number or temporal value at a fixed place of the key.
#[derive(Clone, Copy, Debug, Default)]
struct Move {
    at: u32,
    /// Counted from where the primary key begins, which is found from its end.
    primary: bool,
    width: u8,
    /// Offset of the field in the image.
    place: u8,
    flip: u64,
}

/// An entry where it lies: words of eight bytes, the first one lowest, that may be anything behind
/// the end.
pub trait EntryWords {
    /// Of the key, from byte `at` behind what all keys of the page begin with.
    fn suffix_word(&self, at: usize) -> u64;
    /// How many bytes of the key are there.
    fn suffix_len(&self) -> usize;
    /// Of the original values, from byte `at` on.
    fn originals_word(&self, at: usize) -> u64;
    /// Their bytes.
    fn originals_len(&self) -> usize;
    /// Appends some of them.
    fn append_originals(&self, at: usize, len: usize, out: &mut Vec<u8>);
}

/// [`KeyRows`] for entries whose keys begin alike, and with the fields that this decides filled in.
#[derive(Clone, Debug)]
pub struct LeafRows {
    image: [u8; SHORT + FIELD_MAX],
    moves: [Move; MOVES],
    count: usize,
    /// Bytes that the key and the primary key have at least.
    own_bytes: usize,
    primary_bytes: usize,
}

/// Most bytes of a field, and most fields of a [`LeafRows`].
const FIELD_MAX: usize = 8;
const MOVES: usize = 8;

impl KeyRows {
    /// A builder for rows of `layout`, whose columns come from `sources`. Columns that are not
    /// `wanted` get arbitrary values. `None` if a wanted column is a string that the key itself
    /// holds, or if such a string lies between two wanted strings; those rows are built value by
    /// value.
    pub fn new(
        layout: &RowLayout,
        sources: &[KeySource],
        own: &KeyLayout,
        primary: &KeyLayout,
        wanted: impl Fn(usize) -> bool,
    ) -> Option<KeyRows> {
        let mut template = layout.version.to_le_bytes().to_vec();
        template.resize(layout.base_bytes(), 0);
        let steps = |key: &KeyLayout, source: fn(usize) -> KeySource| {
            let mut steps = Vec::new();
            for (n, part) in key.parts().iter().enumerate() {
                let column = sources.iter().position(|s| *s == source(n));
                steps.push(step(layout, part, column.filter(|c| wanted(*c)))?);
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
                wanted: wanted(column),
            })
        });
        let mut texts = texts.collect::<Option<Vec<_>>>()?;
        texts.truncate(texts.iter().rposition(|t| t.wanted).map_or(0, |n| n + 1));
        // A text begins where the variable field before it ends, and only the ends of texts are
        // noted.
        let first = texts.iter().find(|t| t.wanted).map_or(0, |t| t.end_at);
        let last = texts.last().map_or(0, |t| t.end_at);
        let held_by_key = |(slot, source): (&Slot, &KeySource)| {
            let end_at = layout.ends_at + 2 * slot.place as usize;
            slot.width == 0 && *source != KeySource::Original && (first..last).contains(&end_at)
        };
        if layout.slots.iter().zip(sources).any(held_by_key) {
            return None;
        }
        let own_key = own;
        let own = steps(own, KeySource::Part)?;
        let fixed = own.iter().all(|s| s.width != 0);
        let bytes = |s: &Step| s.width + usize::from(s.nullable);
        let lens = own_key.parts().iter().map(|part| match part.nullable {
            true => None,
            false => fixed_width(&part.ty),
        });
        let own_len = lens.sum::<Option<usize>>();
        let primary = steps(primary, KeySource::PrimaryPart)?;
        let mut short = [0; SHORT];
        let is_short = template.len() <= SHORT;
        if is_short {
            short[..template.len()].copy_from_slice(&template);
        }
        Some(KeyRows {
            own_bytes: match fixed {
                true => own.iter().map(bytes).sum(),
                false => usize::MAX,
            },
            moves: moves(&own, &primary, own_len).filter(|_| is_short),
            own,
            primary,
            texts: texts.into(),
            short: is_short.then_some(short),
            template: template.into(),
        })
    }

    /// Most bytes at the beginning of an entry's own key that it looks at.
    #[inline]
    pub fn own_bytes(&self) -> usize {
        self.own_bytes
    }

    /// Whether it looks at the primary key.
    #[inline]
    pub fn needs_primary(&self) -> bool {
        !self.primary.is_empty()
    }

    /// Whether it looks at the original values.
    #[inline]
    pub fn needs_originals(&self) -> bool {
        !self.texts.is_empty()
    }

    /// Appends the row of an entry: its own key (what follows it does no harm), the primary key,
    /// the original values. False, and `out` is as before: they are damaged, or the texts are
    /// longer than a narrow row holds.
    #[inline]
    pub fn append<'v>(
        &self,
        own: &[u8],
        primary: &[u8],
        originals: impl Iterator<Item = Option<&'v [u8]>> + Clone,
        out: &mut Vec<u8>,
    ) -> bool {
        let start = out.len();
        let done = match self.short {
            Some(mut image) => {
                let head = &mut image[..self.template.len()];
                let fields = self.fill(own, primary, originals.clone(), head);
                fields.map(|()| Tail::new(out, SHORT).put(image, self.template.len()))
            }
            None => {
                out.extend_from_slice(&self.template);
                self.fill(own, primary, originals.clone(), &mut out[start..])
            }
        };
        if done.is_none() {
            out.truncate(start);
            return false;
        }
        for (text, bytes) in self.texts.iter().zip(originals) {
            if text.wanted
                && let Some(bytes) = bytes
            {
                Tail::new(out, bytes.len()).short_slice(bytes);
            }
        }
        true
    }

    /// Fills the image of an entry but for its variable bytes.
    #[inline(always)]
    fn fill<'v>(
        &self,
        own: &[u8],
        primary: &[u8],
        mut originals: impl Iterator<Item = Option<&'v [u8]>>,
        image: &mut [u8],
    ) -> Option<()> {
        run(&self.own, own, image)?;
        run(&self.primary, primary, image)?;
        let mut end = 0;
        for text in &self.texts {
            match originals.next()? {
                Some(bytes) if text.wanted => end += bytes.len(),
                None if text.wanted => set_null(image, text.null_bit)?,
                _ => {}
            }
            let narrow = u16::try_from(end).ok().filter(|end| *end <= 0x7FFF)?;
            let field = image.get_mut(text.end_at..text.end_at + 2)?;
            field.copy_from_slice(&narrow.to_le_bytes());
        }
        Some(())
    }
}

/// The wanted fields of both keys; `None` where one has no fixed place, or is more than flipped
/// bits. `own_len`: bytes of the own key, if they are always as many; the primary key is found from
/// its end otherwise.
fn moves(own: &[Step], primary: &[Step], own_len: Option<usize>) -> Option<Box<[Move]>> {
    let mut moves = Vec::new();
    let from_end = own_len.is_none();
    for (steps, primary, start) in [(own, false, 0), (primary, from_end, own_len.unwrap_or(0))] {
        let mut at = start;
        for step in steps {
            if step.nullable || step.width == 0 {
                return None;
            }
            let ones = if step.desc { u64::MAX } else { 0 };
            let flip = match step.op {
                Op::Skip => None,
                Op::Bits { flip } => Some(flip ^ ones >> (64 - 8 * step.width.min(8))),
                Op::Bytes | Op::Float => return None,
            };
            if let Some(flip) = flip {
                moves.push(Move {
                    at: at as u32,
                    primary,
                    width: step.width as u8,
                    place: u8::try_from(step.place).ok()?,
                    flip,
                });
            }
            at += step.width;
        }
    }
    (moves.len() <= MOVES).then(|| moves.into())
}

impl Move {
    /// The field's bytes from those of the key, little-endian as loaded; zeros behind it.
    #[inline(always)]
    fn bits(&self, word: u64) -> u64 {
        (word.swap_bytes() >> ((64 - 8 * u32::from(self.width)) & 63)) ^ self.flip
    }

    #[inline(always)]
    fn put(&self, bits: u64, image: &mut [u8; SHORT + FIELD_MAX]) {
        let place = usize::from(self.place) % SHORT;
        if let Some(field) = image[place..].first_chunk_mut::<FIELD_MAX>() {
            // The field holds zeros.
            *field = (u64::from_le_bytes(*field) | bits).to_le_bytes();
        }
    }
}

impl LeafRows {
    /// Appends the row of an entry. Returns false, and leaves `out` unchanged, if the caller must
    /// use [`KeyRows::append`] instead.
    #[inline(always)]
    pub fn append(
        &self,
        rows: &KeyRows,
        entry: &impl EntryWords,
        primary_len: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        let len = entry.suffix_len();
        let primary = len.wrapping_sub(primary_len);
        let found =
            self.primary_bytes <= primary_len && (self.primary_bytes == 0 || primary <= len);
        if len < self.own_bytes || !found {
            return false;
        }
        let mut image = self.image;
        for part in &self.moves[..self.count] {
            let at = part.at as usize + if part.primary { primary } else { 0 };
            part.put(part.bits(entry.suffix_word(at)), &mut image);
        }
        if rows.texts.is_empty() {
            put_image(&image, rows.template.len(), out);
            return true;
        }
        rows.append_with_texts(image, entry, out)
    }
}

#[inline(always)]
fn put_image(image: &[u8; SHORT + FIELD_MAX], len: usize, out: &mut Vec<u8>) {
    if let Some(image) = image.first_chunk::<SHORT>() {
        Tail::new(out, SHORT).put(*image, len);
    }
}

impl KeyRows {
    /// For entries whose keys all begin with `prefix`; `None` where they go by
    /// [`append`](Self::append).
    #[inline]
    pub fn for_leaf(&self, prefix: &[u8]) -> Option<LeafRows> {
        let (all, short) = (self.moves.as_ref()?, self.short.as_ref()?);
        let mut leaf = LeafRows {
            image: [0; SHORT + FIELD_MAX],
            moves: [Move::default(); MOVES],
            count: 0,
            own_bytes: 0,
            primary_bytes: 0,
        };
        leaf.image[..SHORT].copy_from_slice(short);
        for part in all {
            let (at, end) = (part.at as usize, part.at as usize + usize::from(part.width));
            let mut part = *part;
            if part.primary {
                leaf.primary_bytes = leaf.primary_bytes.max(end);
            } else if let Some(value) = prefix.get(at..end) {
                let mut word = [0; 8];
                word[..value.len()].copy_from_slice(value);
                part.put(part.bits(u64::from_le_bytes(word)), &mut leaf.image);
                continue;
            } else {
                let rest = end - prefix.len();
                if let Some(shared @ [_, ..]) = prefix.get(at..) {
                    // Its first bytes are shared.
                    let high = shared.iter().fold(0, |n, b| n << 8 | u64::from(*b));
                    part.flip ^= high << (8 * rest);
                    (part.at, part.width) = (0, rest as u8);
                } else {
                    part.at = (at - prefix.len()) as u32;
                }
                leaf.own_bytes = leaf.own_bytes.max(rest);
            }
            leaf.moves[leaf.count] = part;
            leaf.count += 1;
        }
        Some(leaf)
    }

    /// Appends an image and the original values behind it. False: they are damaged, or too long.
    #[inline(always)]
    fn append_with_texts(
        &self,
        mut image: [u8; SHORT + FIELD_MAX],
        entry: &impl EntryWords,
        out: &mut Vec<u8>,
    ) -> bool {
        let head = &mut image[..self.template.len()];
        let (mut at, mut end) = (0, 0);
        for text in &self.texts {
            let len = entry.originals_word(at) as u16;
            at += 2;
            if len == NULL_TEXT {
                if text.wanted && set_null(head, text.null_bit).is_none() {
                    return false;
                }
            } else {
                at += usize::from(len);
                end += if text.wanted { usize::from(len) } else { 0 };
            }
            let Some(field) = head.get_mut(text.end_at..text.end_at + 2) else {
                return false;
            };
            field.copy_from_slice(&(end as u16).to_le_bytes());
        }
        if at > entry.originals_len() || end > 0x7FFF {
            return false;
        }
        put_image(&image, self.template.len(), out);
        at = 0;
        for text in &self.texts {
            let len = entry.originals_word(at) as u16;
            at += 2;
            if len != NULL_TEXT {
                if text.wanted {
                    entry.append_originals(at, len.into(), out);
                }
                at += usize::from(len);
            }
        }
        true
    }
}

/// The length that marks NULL among the lengths of original values.
pub const NULL_TEXT: u16 = u16::MAX;

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
