//! The stored image of a row (format v1, frozen): what clustered leaves and secondary entries hold,
//! read field by field in place.
//!
//! # Picture
//! ```text
//! offset        size                 what
//! 0             2                    schema version, u16
//! 2             1                    flags: bit 0 wide (end offsets are u32), bit 1 has external fields; others 0
//! 3             ceil(nullable / 8)   null map: bit i % 8 of byte i / 8 is the i-th nullable column; 1 = NULL
//! ..            sum of widths        fixed-length columns in column order, no padding; zeros where NULL
//! ..            2 or 4 per column    variable-length columns in column order: end of the field, counted from the start of the
//!                                    variable bytes; the top bit marks an external field
//! ..            last end offset      variable bytes
//!
//! an external field's bytes:   u32 first page · u64 length in bytes · u64 owner: the transaction that wrote it      (20 bytes)
//!                              then the changes of the value since it was written, if any, as the engine encodes them
//! ```
//! Integers are little-endian. Fixed columns:
//!
//! | type | bytes |
//! | --- | --- |
//! | TINYINT, SMALLINT, MEDIUMINT, INT, BIGINT | 1, 2, 3, 4, 8: two's complement |
//! | FLOAT, DOUBLE | 4, 8: IEEE 754 |
//! | DECIMAL(p,s) | [`crate::sql_type::decimal_width`]: unscaled number + 2^(bits-1), big-endian (as in keys) |
//! | BIT(n), SET | ceil(n/8); 1, 2, 3, 4 or 8: the bits as an integer |
//! | YEAR | 1: 0, or year - 1900 |
//! | DATE | 3: packed |
//! | TIME(f) | 6: microseconds, two's complement |
//! | DATETIME(0), DATETIME(f) | 5: packed >> 20; 8: packed |
//! | TIMESTAMP(0), TIMESTAMP(f) | 4: seconds, 0 is the zero value; 8: microseconds, i64::MIN is the zero value |
//! | ENUM | 1 or 2 (more than 255 members): the index |
//!
//! CHAR (trailing spaces removed), VARCHAR, BINARY, VARBINARY, TEXT and BLOB are variable. A row of
//! an older schema version has fewer columns and is read with that version's layout.
//!
//! # Invariants
//! - I1: every offset is checked against the image; a damaged image gives [`RowError::Corrupt`],
//!   never a panic.
//! - I2: where a field lies depends on the layout and the wide flag only, so reading one field
//!   costs O(1).
//!
//! # Cost
//! Reading allocates nothing and writes nothing shared. The layout is immutable.

mod copied;
mod digits;
mod encoder;
pub(crate) mod field;
mod image;
mod ordered;

pub use copied::{Field, FieldCopy};
pub use encoder::{General, RowEncoder};
pub use image::Image;
pub use ordered::{OrderedField, UnscaledField};

use crate::{ColumnType, TypeKind, ValueRef};
use field::{FieldKind, read_fixed, write_fixed};
use std::fmt::{self, Display, Formatter};

/// The bytes that are loaded at once for a fixed-width field, unless the image ends before.
const FIELD_ROOM: usize = 8;
const FLAG_WIDE: u8 = 1;
const FLAG_EXTERNAL: u8 = 2;
pub(crate) const HEADER_BYTES: usize = 3;
/// Bytes of an external field's pointer.
pub const OVERFLOW_POINTER_BYTES: usize = 20;

/// A column as the row format sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowColumn {
    /// The type.
    pub ty: ColumnType,
    /// Whether it may be NULL.
    pub nullable: bool,
}

/// Where an external field's bytes are; written by the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OverflowPointer {
    /// First page of the chain, in the table's space.
    pub first_page: u32,
    /// Bytes of the whole value.
    pub length: u64,
    /// The transaction that wrote the chain. The pages of the chain have it as well, so that a
    /// chain is never freed twice.
    pub owner: u64,
}

/// A field as stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RawField<'a> {
    /// NULL
    Null,
    /// The bytes of a fixed-length column.
    Fixed(&'a [u8]),
    /// The bytes of a variable-length column.
    Var(&'a [u8]),
    /// A variable-length column whose bytes lie on overflow pages.
    External(OverflowPointer),
    /// The same, and the changes of these bytes since they were written there. Not empty.
    Patched(OverflowPointer, &'a [u8]),
}

/// Why a row could not be read or written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowError {
    /// The image contradicts itself or the layout.
    Corrupt(&'static str),
    /// The image has another schema version than the layout.
    Version {
        /// The version found.
        found: u16,
    },
    /// The field lies on overflow pages and must be fetched by the engine.
    External(OverflowPointer),
    /// NULL for a column that is NOT NULL.
    NullInNotNull {
        /// Which column.
        ordinal: usize,
    },
    /// A value of another kind than the column's.
    TypeMismatch {
        /// Which column.
        ordinal: usize,
    },
    /// Not as many values as columns.
    WrongCount,
    /// More than 2 GiB of variable bytes.
    TooLarge,
}

impl Display for RowError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            RowError::Corrupt(what) => write!(f, "corrupt row: {what}"),
            RowError::Version { found } => write!(f, "row of schema version {found}"),
            RowError::External(p) => write!(f, "field on overflow page {}", p.first_page),
            RowError::NullInNotNull { ordinal } => write!(f, "NULL in NOT NULL column {ordinal}"),
            RowError::TypeMismatch { ordinal } => {
                write!(f, "value does not fit the type of column {ordinal}")
            }
            RowError::WrongCount => f.write_str("wrong number of values"),
            RowError::TooLarge => f.write_str("row too large"),
        }
    }
}

impl std::error::Error for RowError {}

/// Where one column lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    /// Byte offset of a fixed column in the image; index among the variable columns otherwise.
    pub(crate) place: u32,
    /// Width of a fixed column, 0 for a variable one.
    pub(crate) width: u32,
    /// Index in the null map, or `NOT_NULL`.
    pub(crate) null_bit: u32,
    pub(crate) kind: FieldKind,
}

pub(crate) const NOT_NULL: u32 = u32::MAX;

/// The places of all columns of one schema version.
#[derive(Clone, Debug)]
pub struct RowLayout {
    pub(crate) version: u16,
    columns: Box<[RowColumn]>,
    pub(crate) slots: Box<[Slot]>,
    /// Image offset of the end offsets.
    pub(crate) ends_at: usize,
    var_count: usize,
}

impl RowLayout {
    /// The layout of these columns.
    pub fn new(version: u16, columns: impl IntoIterator<Item = RowColumn>) -> RowLayout {
        let columns: Box<[RowColumn]> = columns.into_iter().collect();
        let null_bytes = columns.iter().filter(|c| c.nullable).count().div_ceil(8);
        let mut slots = Vec::with_capacity(columns.len());
        let (mut fixed_at, mut var_count, mut nullable) = (HEADER_BYTES + null_bytes, 0, 0);
        for column in &columns {
            let null_bit = if column.nullable { nullable } else { NOT_NULL };
            nullable += u32::from(column.nullable);
            let kind = FieldKind::of(&column.ty);
            match fixed_width(&column.ty) {
                Some(width) => {
                    slots.push(Slot {
                        place: fixed_at as u32,
                        width: width as u32,
                        null_bit,
                        kind,
                    });
                    fixed_at += width;
                }
                None => {
                    slots.push(Slot {
                        place: var_count,
                        width: 0,
                        null_bit,
                        kind,
                    });
                    var_count += 1;
                }
            }
        }
        RowLayout {
            version,
            columns,
            slots: slots.into(),
            ends_at: fixed_at,
            var_count: var_count as usize,
        }
    }

    /// Bytes of an image up to its flags, and the flag that says that a field lies on overflow
    /// pages.
    pub const FLAGS_END: usize = HEADER_BYTES;
    pub const EXTERNAL: u8 = FLAG_EXTERNAL;

    /// The schema version of the rows.
    pub fn version(&self) -> u16 {
        self.version
    }

    /// The columns.
    pub fn columns(&self) -> &[RowColumn] {
        &self.columns
    }

    /// Bytes of an image without its variable bytes (narrow offsets).
    pub fn base_bytes(&self) -> usize {
        self.ends_at + 2 * self.var_count
    }

    /// How many bytes from the beginning of an image hold all that is needed to read `columns`;
    /// `usize::MAX`: some of them have no fixed place. No bytes of other columns are missed by
    /// [`get`](Self::get), nor by a [`RowEncoder`] of these columns.
    pub fn bytes_up_to(&self, columns: &[usize]) -> usize {
        let end = |&column: &usize| match self.slots.get(column) {
            Some(slot) if slot.width != 0 => {
                Some(slot.place as usize + FIELD_ROOM.max(slot.width as usize))
            }
            _ => None,
        };
        let ends = columns.iter().map(end).collect::<Option<Vec<usize>>>();
        let head = self.ends_at.min(HEADER_BYTES + FIELD_ROOM);
        ends.map_or(usize::MAX, |ends| ends.into_iter().fold(head, usize::max))
    }

    /// Appends the image of a row. Values are as `store_value` left them: of the column's kind and
    /// within its bounds. On an error `out` is as before.
    pub fn encode<'v>(
        &self,
        values: impl IntoIterator<Item = ValueRef<'v>>,
        out: &mut Vec<u8>,
    ) -> Result<(), RowError> {
        let start = out.len();
        let done = self.encode_narrow(values, out, start);
        if done.is_err() {
            out.truncate(start);
        }
        done
    }

    fn encode_narrow<'v>(
        &self,
        values: impl IntoIterator<Item = ValueRef<'v>>,
        out: &mut Vec<u8>,
        start: usize,
    ) -> Result<(), RowError> {
        self.begin_image(out, start);
        let mut values = values.into_iter();
        for (ordinal, slot) in self.slots.iter().enumerate() {
            let value = values.next().ok_or(RowError::WrongCount)?;
            self.put_value((ordinal, slot), value, out, start)?;
        }
        if values.next().is_some() {
            return Err(RowError::WrongCount);
        }
        self.narrow(out, start);
        Ok(())
    }

    /// Appends a copy of the image `old` with other values in the `changed` columns. Fields on
    /// overflow pages stay
    /// there, named by the same pointers. On an error `out` is as before.
    pub fn encode_changed<'v>(
        &self,
        old: &[u8],
        changed: impl Fn(usize) -> Option<ValueRef<'v>>,
        out: &mut Vec<u8>,
    ) -> Result<(), RowError> {
        let start = out.len();
        self.begin_image(out, start);
        let mut slots = self.slots.iter().enumerate();
        let done = slots.try_for_each(|(ordinal, slot)| match changed(ordinal) {
            Some(value) => self.put_value((ordinal, slot), value, out, start),
            None => self.put_field(ordinal, self.raw(old, ordinal)?, out, start),
        });
        match done {
            Ok(()) => self.narrow(out, start),
            Err(_) => out.truncate(start),
        }
        done
    }

    /// Appends the beginning of an image without values, with room for wide offsets.
    /// [`narrow`](Self::narrow) closes that up where they are not needed.
    #[inline]
    fn begin_image(&self, out: &mut Vec<u8>, start: usize) {
        out.extend_from_slice(&self.version.to_le_bytes());
        out.push(0);
        out.resize(start + self.ends_at + 4 * self.var_count, 0);
    }

    /// Puts the next value into the image that begins at `start`.
    #[inline(always)]
    fn put_value(
        &self,
        (ordinal, slot): (usize, &Slot),
        value: ValueRef<'_>,
        out: &mut Vec<u8>,
        start: usize,
    ) -> Result<(), RowError> {
        if value.is_null() {
            return self.put_field(ordinal, RawField::Null, out, start);
        }
        if slot.width == 0 {
            let bytes = value.as_bytes();
            out.extend_from_slice(bytes.ok_or(RowError::TypeMismatch { ordinal })?);
            return self.end_field(slot, false, out, start);
        }
        let at = start + slot.place as usize;
        let field = &mut out[at..at + slot.width as usize];
        write_fixed(slot.kind, value, field).ok_or(RowError::TypeMismatch { ordinal })
    }

    /// Puts the next field, as it is stored, into the image that begins at `start`.
    fn put_field(
        &self,
        ordinal: usize,
        field: RawField<'_>,
        out: &mut Vec<u8>,
        start: usize,
    ) -> Result<(), RowError> {
        let slot = &self.slots[ordinal];
        match field {
            RawField::Null if slot.null_bit == NOT_NULL => {
                return Err(RowError::NullInNotNull { ordinal });
            }
            RawField::Null => {
                let bit = slot.null_bit as usize;
                out[start + HEADER_BYTES + bit / 8] |= 1 << (bit % 8);
            }
            RawField::Fixed(bytes) => {
                let at = start + slot.place as usize;
                out[at..at + slot.width as usize].copy_from_slice(bytes);
            }
            RawField::Var(_) | RawField::External(_) | RawField::Patched(..) => {}
        }
        match slot.width {
            0 => {
                let external = field.append_to(out);
                self.end_field(slot, external, out, start)
            }
            _ => Ok(()),
        }
    }

    /// Notes that the variable field of `slot` ends where `out` ends.
    #[inline]
    fn end_field(
        &self,
        slot: &Slot,
        external: bool,
        out: &mut [u8],
        start: usize,
    ) -> Result<(), RowError> {
        let end = out.len() - start - self.ends_at - 4 * self.var_count;
        if end > 0x7FFF_FFFF {
            return Err(RowError::TooLarge);
        }
        if external {
            out[start + 2] |= FLAG_EXTERNAL;
        }
        let at = start + self.ends_at + 4 * slot.place as usize;
        let mark = u32::from(external) << 31;
        out[at..at + 4].copy_from_slice(&(end as u32 | mark).to_le_bytes());
        Ok(())
    }

    /// Turns u32 end offsets into u16 where the variable bytes allow it, otherwise sets the wide
    /// flag.
    fn narrow(&self, out: &mut Vec<u8>, start: usize) {
        let var_at = start + self.ends_at + 4 * self.var_count;
        if out.len() - var_at > 0x7FFF {
            out[start + 2] |= FLAG_WIDE;
            return;
        }
        let ends = start + self.ends_at;
        for i in 0..self.var_count {
            let external = out[ends + 4 * i + 3] & 0x80;
            let low = [out[ends + 4 * i], out[ends + 4 * i + 1] | external];
            out[ends + 2 * i..ends + 2 * i + 2].copy_from_slice(&low);
        }
        out.copy_within(var_at.., ends + 2 * self.var_count);
        out.truncate(out.len() - 2 * self.var_count);
    }

    /// The schema version of an image.
    pub fn version_of(row: &[u8]) -> Result<u16, RowError> {
        match row {
            [a, b, _, ..] => Ok(u16::from_le_bytes([*a, *b])),
            _ => Err(RowError::Corrupt("shorter than its header")),
        }
    }

    /// Whether any field lies on overflow pages.
    #[inline]
    pub fn has_external(row: &[u8]) -> bool {
        row.get(2).is_some_and(|flags| flags & FLAG_EXTERNAL != 0)
    }

    #[inline]
    fn slot(&self, ordinal: usize) -> Result<&Slot, RowError> {
        self.slots
            .get(ordinal)
            .ok_or(RowError::Corrupt("no such column"))
    }

    #[inline]
    fn null_of(&self, row: &[u8], slot: &Slot) -> Result<bool, RowError> {
        if slot.null_bit == NOT_NULL {
            return Ok(false);
        }
        let byte = row
            .get(HEADER_BYTES + slot.null_bit as usize / 8)
            .ok_or(RowError::Corrupt("null map cut off"))?;
        Ok(byte >> (slot.null_bit % 8) & 1 == 1)
    }

    /// Whether a column is NULL.
    #[inline]
    pub fn is_null(&self, row: &[u8], ordinal: usize) -> Result<bool, RowError> {
        self.null_of(row, self.slot(ordinal)?)
    }

    /// A field as stored. O(1).
    #[inline]
    pub fn raw<'a>(&self, row: &'a [u8], ordinal: usize) -> Result<RawField<'a>, RowError> {
        let slot = self.slot(ordinal)?;
        if self.null_of(row, slot)? {
            return Ok(RawField::Null);
        }
        if slot.width > 0 {
            let at = slot.place as usize;
            let field = row.get(at..at + slot.width as usize);
            return field
                .map(RawField::Fixed)
                .ok_or(RowError::Corrupt("fixed columns cut off"));
        }
        let (bytes, external) = self.var_field(row, slot.place as usize)?;
        if !external {
            return Ok(RawField::Var(bytes));
        }
        let (pointer, changes) = OverflowPointer::read(bytes)?;
        Ok(match changes {
            [] => RawField::External(pointer),
            _ => RawField::Patched(pointer, changes),
        })
    }

    #[inline]
    fn end_offset(&self, row: &[u8], wide: bool, index: usize) -> Result<(usize, bool), RowError> {
        const CUT: RowError = RowError::Corrupt("end offsets cut off");
        if wide {
            let at = self.ends_at + 4 * index;
            let raw = row
                .get(at..at + 4)
                .and_then(|b| b.first_chunk())
                .ok_or(CUT)?;
            let raw = u32::from_le_bytes(*raw);
            Ok(((raw & 0x7FFF_FFFF) as usize, raw >> 31 == 1))
        } else {
            let at = self.ends_at + 2 * index;
            let raw = row
                .get(at..at + 2)
                .and_then(|b| b.first_chunk())
                .ok_or(CUT)?;
            let raw = u16::from_le_bytes(*raw);
            Ok((usize::from(raw & 0x7FFF), raw >> 15 == 1))
        }
    }

    #[inline]
    fn var_field<'a>(&self, row: &'a [u8], index: usize) -> Result<(&'a [u8], bool), RowError> {
        let wide = row
            .get(2)
            .ok_or(RowError::Corrupt("shorter than its header"))?
            & FLAG_WIDE
            != 0;
        let begin = if index == 0 {
            0
        } else {
            self.end_offset(row, wide, index - 1)?.0
        };
        let (end, external) = self.end_offset(row, wide, index)?;
        let base = self.ends_at + if wide { 4 } else { 2 } * self.var_count;
        let bytes = row.get(base + begin..base + end).ok_or(RowError::Corrupt(
            "end offsets out of order or past the end",
        ))?;
        Ok((bytes, external))
    }

    /// The bytes of a variable-length column; `None` for NULL.
    #[inline]
    pub fn var_bytes<'a>(
        &self,
        row: &'a [u8],
        ordinal: usize,
    ) -> Result<Option<&'a [u8]>, RowError> {
        match self.raw(row, ordinal)? {
            RawField::Null => Ok(None),
            RawField::Var(bytes) => Ok(Some(bytes)),
            RawField::External(pointer) | RawField::Patched(pointer, _) => {
                Err(RowError::External(pointer))
            }
            RawField::Fixed(_) => Err(RowError::Corrupt("not a variable-length column")),
        }
    }

    /// The value of a column. O(1), without allocation.
    #[inline]
    pub fn get<'a>(&self, row: &'a [u8], ordinal: usize) -> Result<ValueRef<'a>, RowError> {
        let slot = self.slot(ordinal)?;
        if self.null_of(row, slot)? {
            return Ok(ValueRef::Null);
        }
        if slot.width > 0 {
            let at = slot.place as usize;
            let field = row
                .get(at..at + slot.width as usize)
                .ok_or(RowError::Corrupt("fixed columns cut off"))?;
            return read_fixed(slot.kind, field)
                .ok_or(RowError::Corrupt("impossible value in a fixed column"));
        }
        let (bytes, external) = self.var_field(row, slot.place as usize)?;
        if external {
            Err(RowError::External(OverflowPointer::read(bytes)?.0))
        } else {
            Ok(ValueRef::Bytes(bytes))
        }
    }

    /// All values of a row, in column order.
    pub fn values<'a>(
        &'a self,
        row: &'a [u8],
    ) -> impl Iterator<Item = Result<ValueRef<'a>, RowError>> + 'a {
        (0..self.columns.len()).map(move |i| self.get(row, i))
    }

    /// Checks a whole image: version, flags, offsets in order, total length, every fixed value.
    pub fn validate(&self, row: &[u8]) -> Result<(), RowError> {
        let found = RowLayout::version_of(row)?;
        if found != self.version {
            return Err(RowError::Version { found });
        }
        let flags = row[2];
        if flags & !(FLAG_WIDE | FLAG_EXTERNAL) != 0 {
            return Err(RowError::Corrupt("unknown flags"));
        }
        let mut external = false;
        for ordinal in 0..self.columns.len() {
            match self.get(row, ordinal) {
                Err(RowError::External(_)) => external = true,
                other => drop(other?),
            }
        }
        if external != (flags & FLAG_EXTERNAL != 0) {
            return Err(RowError::Corrupt("external flag disagrees with the fields"));
        }
        let wide = flags & FLAG_WIDE != 0;
        let end = if self.var_count == 0 {
            0
        } else {
            self.end_offset(row, wide, self.var_count - 1)?.0
        };
        let total = self.ends_at + if wide { 4 } else { 2 } * self.var_count + end;
        if row.len() != total {
            return Err(RowError::Corrupt("length disagrees with the end offsets"));
        }
        Ok(())
    }

    /// Appends a copy of an image in which `change` replaces each variable field by bytes or by an
    /// overflow pointer. `change` is not called for NULL fields. After an error `out` is unchanged.
    pub fn rewrite<'a>(
        &self,
        row: &'a [u8],
        out: &mut Vec<u8>,
        mut change: impl FnMut(usize, RawField<'a>) -> RawField<'a>,
    ) -> Result<(), RowError> {
        self.rewrite_with(row, out, |ordinal, field, out| {
            Ok(change(ordinal, field).append_to(out))
        })
    }

    /// As [`rewrite`](Self::rewrite), but `put` appends the bytes of each variable field itself,
    /// and returns whether they are an overflow pointer.
    pub fn rewrite_with<'a, E: From<RowError>>(
        &self,
        row: &'a [u8],
        out: &mut Vec<u8>,
        mut put: impl FnMut(usize, RawField<'a>, &mut Vec<u8>) -> Result<bool, E>,
    ) -> Result<(), E> {
        let start = out.len();
        let done = self.rewrite_fields(row, out, &mut put);
        match done {
            Ok(()) => self.narrow(out, start),
            Err(_) => out.truncate(start),
        }
        done
    }

    fn rewrite_fields<'a, E: From<RowError>>(
        &self,
        row: &'a [u8],
        out: &mut Vec<u8>,
        put: &mut impl FnMut(usize, RawField<'a>, &mut Vec<u8>) -> Result<bool, E>,
    ) -> Result<(), E> {
        let start = out.len();
        let head = row
            .get(..self.ends_at)
            .ok_or(RowError::Corrupt("fixed columns cut off"))?;
        out.extend_from_slice(head);
        out[start + 2] = 0;
        out.resize(start + self.ends_at + 4 * self.var_count, 0);
        for (ordinal, slot) in self.slots.iter().enumerate().filter(|(_, s)| s.width == 0) {
            let external = match self.raw(row, ordinal)? {
                RawField::Null => false,
                field => put(ordinal, field, out)?,
            };
            self.end_field(slot, external, out, start)?;
        }
        Ok(())
    }
}

impl RawField<'_> {
    /// Appends the bytes of a variable field; whether they are an overflow pointer.
    pub fn append_to(self, out: &mut Vec<u8>) -> bool {
        match self {
            RawField::Var(bytes) => out.extend_from_slice(bytes),
            RawField::External(pointer) => out.extend_from_slice(&pointer.to_bytes()),
            RawField::Patched(pointer, changes) => {
                out.extend_from_slice(&pointer.to_bytes());
                out.extend_from_slice(changes);
            }
            RawField::Null | RawField::Fixed(_) => {}
        }
        self.pointer().is_some()
    }

    /// Where the bytes of a field on overflow pages are.
    pub fn pointer(self) -> Option<OverflowPointer> {
        match self {
            RawField::External(pointer) | RawField::Patched(pointer, _) => Some(pointer),
            _ => None,
        }
    }
}

impl OverflowPointer {
    /// The stored form.
    pub fn to_bytes(self) -> [u8; OVERFLOW_POINTER_BYTES] {
        let mut out = [0; OVERFLOW_POINTER_BYTES];
        out[..4].copy_from_slice(&self.first_page.to_le_bytes());
        out[4..12].copy_from_slice(&self.length.to_le_bytes());
        out[12..].copy_from_slice(&self.owner.to_le_bytes());
        out
    }

    /// The pointer of an external field, and the changes behind it.
    fn read(bytes: &[u8]) -> Result<(OverflowPointer, &[u8]), RowError> {
        let (pointer, changes) = bytes
            .split_first_chunk()
            .ok_or(RowError::Corrupt("overflow pointer cut off"))?;
        Ok((OverflowPointer::from_bytes(pointer), changes))
    }

    /// Reads the stored form.
    pub fn from_bytes(bytes: &[u8; OVERFLOW_POINTER_BYTES]) -> OverflowPointer {
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        OverflowPointer {
            first_page: number(0) as u32,
            length: number(4),
            owner: number(12),
        }
    }
}

/// Bytes of a fixed-length column in a row; `None` for a variable-length one.
pub fn fixed_width(ty: &ColumnType) -> Option<usize> {
    match ty.kind {
        TypeKind::Char(_) | TypeKind::VarChar(_) | TypeKind::Binary(_) | TypeKind::VarBinary(_) => {
            None
        }
        // A column of type NULL holds nothing but NULL; it takes the place of an empty string.
        TypeKind::Text(_) | TypeKind::Blob(_) | TypeKind::Json | TypeKind::Null => None,
        _ => Some(ty.max_bytes() as usize),
    }
}

#[cfg(test)]
mod tests;
