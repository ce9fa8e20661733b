//! Encodes stored rows as result packets: chosen columns of a row image become a text or a binary
//! row, without an intermediate [`Value`](crate::Value).
//!
//! # Picture
//! ```text
//!   RowEncoder: per result column {form, place, width, null bit}      made once per plan, from the layout
//!   row image ──▶ load 8 bytes, shift ──▶ digits        integers, dates
//!             ──▶ end offsets ──▶ length ‖ bytes        strings
//!             ──▶ layout.get ──▶ the caller's function  everything else, and every row with wide offsets or external fields
//! ```
//! # Invariants
//! - E1: the bytes are those that [`crate::wire::write_text`] and [`crate::wire::write_binary`]
//!   give for [`RowLayout::get`]'s values.
//! - E2: every offset is checked against the image, as in `row` (I1), and read once: an image [in
//!   place](RowEncoder::page_rows) may change meanwhile.
//!
//! # Cost
//! No allocation except when `out` grows. The end of `out` stays in registers until a column is
//! left to the caller's function ([`Tail`]).

use super::field::FieldKind;
use super::{FLAG_EXTERNAL, FLAG_WIDE, Image, NOT_NULL, RowError, RowLayout};
use crate::append_cursor::Tail;
use crate::temporal::{Date, DateTime};
use crate::wire::{self, HEADER, RowFrames};
use crate::{ColumnType, TypeKind, ValueRef};

use super::digits::{date_binary, date_text, number_text, seconds_binary, seconds_text};

/// How one column is encoded. The order of the variants matters: those that text rows leave to the
/// caller stand in the middle, so the compiler's jump table needs no range check at its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ColumnForm {
    Signed,
    Unsigned,
    /// Integers that a text row shows with leading zeros: that is left to the caller.
    FilledSigned,
    FilledUnsigned,
    /// Several fields of fixed width that lie side by side, in a binary row as they are stored;
    /// none of them is NULL.
    Fields,
    /// By the caller's function.
    General,
    /// Length-encoded bytes as they are stored: of the first variable column, of another.
    FirstBytes,
    Bytes,
    Date,
    /// DATETIME(0)
    Seconds,
}

#[derive(Clone, Copy, Debug)]
struct Column {
    /// Its number in the result.
    number: u32,
    ordinal: u32,
    /// Byte offset in the image: of a fixed column; otherwise of the end offset of the variable
    /// column before this one, of the first one's own.
    place: u32,
    /// The bit of [`RowView::nulls`]; [`NEVER_SET`] where the column is NOT NULL.
    null_bit: u8,
    /// 64 less the bits of an integer or a time.
    shift: u8,
    /// Bytes of an integer, or of several fields, in a binary row.
    wire_width: u8,
    form: ColumnForm,
}

/// Bits of the null map in [`RowView::nulls`], and a bit behind them.
const NULL_BITS: u32 = 56;
const NEVER_SET: u8 = 63;
/// Bytes for any column but those of a string: digits with a sign and a length, several fields
/// (each of them a column), and a bit of the null map.
const COLUMN_ROOM: usize = 32;
/// Most bytes for which room is made before a row is looked at.
const ROOM_MAX: usize = 64 << 10;
/// Most bytes of fields that are copied as one.
const FIELDS_MAX: usize = 32;

/// Encodes the chosen columns of rows of one layout. See the module's header.
#[derive(Clone, Debug)]
pub struct RowEncoder {
    columns: Box<[Column]>,
    /// For binary rows without NULLs: as `columns`, but fields that lie side by side are one.
    gathered: Box<[Column]>,
    /// The bits of [`RowView::nulls`] of all columns.
    null_bits: u64,
    /// Where the strings begin in an image, behind their end offsets; 0 if no string is read.
    strings_at: u32,
    /// The minimum length of an image: the fixed columns and end offsets that are read.
    least: usize,
    /// Bytes that a row takes at most, but for those of its strings.
    room: usize,
    /// Columns that are strings.
    strings: usize,
    /// Bytes of the leading zero and the null map of a binary row.
    head: usize,
    /// Whether no column of a text row, and of a binary row, is the caller's.
    simple_formats: [bool; 2],
}

/// Writes column `n` of the result, which is not NULL and not of a simple form. `'v` is the row's
/// lifetime.
pub type General<'g, 'v> = dyn FnMut(usize, ValueRef<'v>, &mut Vec<u8>) + 'g;

impl RowEncoder {
    /// For the columns `ordinals` of rows of `layout`, in this order. `result(n)`: the type of
    /// result column `n`, which may be another than the stored one (an INT kept as BIGINT).
    /// `as_stored(n)`: whether its strings go out in the bytes they are stored in; the others are
    /// left to the caller.
    pub fn new<'t>(
        layout: &RowLayout,
        ordinals: impl IntoIterator<Item = usize>,
        result: impl Fn(usize) -> &'t ColumnType,
        as_stored: impl Fn(usize) -> bool,
    ) -> Option<RowEncoder> {
        let column = |(n, ordinal): (usize, usize)| {
            let slot = layout.slots.get(ordinal)?;
            let ty = result(n);
            let far = slot.null_bit != NOT_NULL && slot.null_bit >= NULL_BITS;
            let mut form = form_of(slot.kind, ty, as_stored(n));
            if far {
                form = ColumnForm::General;
            }
            let first = form == ColumnForm::Bytes && slot.place == 0;
            let place = match form {
                ColumnForm::Bytes => layout.ends_at as u32 + 2 * slot.place.saturating_sub(1),
                _ => slot.place,
            };
            let wire_width = match ty.kind {
                TypeKind::TinyInt => 1,
                TypeKind::SmallInt => 2,
                TypeKind::MediumInt | TypeKind::Int => 4,
                _ => 8,
            };
            Some(Column {
                number: n as u32,
                ordinal: ordinal as u32,
                place,
                null_bit: if far || slot.null_bit == NOT_NULL {
                    NEVER_SET
                } else {
                    slot.null_bit as u8
                },
                shift: 64 - 8 * slot.width.min(8) as u8,
                wire_width,
                form: if first { ColumnForm::FirstBytes } else { form },
            })
        };
        let columns = ordinals
            .into_iter()
            .enumerate()
            .map(column)
            .collect::<Option<Box<[Column]>>>()?;
        let bits = columns.iter().filter(|c| c.null_bit != NEVER_SET);
        // If no string is read, the image may end before the strings do.
        let has_bytes = |c: &Column| matches!(c.form, ColumnForm::Bytes | ColumnForm::FirstBytes);
        let strings_at = match columns.iter().any(has_bytes) {
            true => layout.ends_at + 2 * layout.var_count,
            false => 0,
        };
        let fixed = columns
            .iter()
            .filter(|c| !has_bytes(c) && c.form != ColumnForm::General);
        let fixed_end = |c: &Column| c.place as usize + (64 - usize::from(c.shift)) / 8;
        let filled = |c: &Column| {
            matches!(
                c.form,
                ColumnForm::FilledSigned | ColumnForm::FilledUnsigned
            )
        };
        let simple = !columns.iter().any(|c| c.form == ColumnForm::General);
        Some(RowEncoder {
            simple_formats: [simple && !columns.iter().any(filled), simple],
            least: fixed.map(fixed_end).fold(strings_at, usize::max),
            room: COLUMN_ROOM * (columns.len() + 1),
            strings: columns.iter().filter(|c| has_bytes(c)).count(),
            null_bits: bits.fold(0, |bits, c| bits | 1 << c.null_bit),
            gathered: gathered(&columns),
            head: 1 + (columns.len() + 9) / 8,
            columns,
            strings_at: strings_at as u32,
        })
    }

    /// Appends a text row.
    ///
    /// # Errors
    /// A damaged image; part of the row may be in `out` then.
    #[inline(always)]
    pub fn text<'v>(
        &self,
        layout: &RowLayout,
        row: &'v [u8],
        out: &mut Vec<u8>,
        general: &mut General<'_, 'v>,
    ) -> Result<(), RowError> {
        match self.view(row) {
            Some(view) => self.text_view(view, layout, out, general),
            None => self.text_slowly(layout, row, out, general),
        }
    }

    /// Whether rows can be encoded [in place](Self::page_rows), in one of the two formats.
    #[inline]
    pub fn is_simple(&self, binary: bool) -> bool {
        self.simple_formats[usize::from(binary)]
    }

    /// Appends rows, each as a packet, and returns the number of rows appended.
    ///
    /// The bytes of an image may change while they are read; `holds` tells afterwards whether they
    /// were valid. Stops before a row that `holds` rejects, that is damaged, that is not stored in
    /// one piece (wide offsets, external fields), that may take more than [`ROOM_MAX`] bytes, or
    /// that has columns which the caller encodes; no byte of that row remains. Also stops at twice
    /// the size that is [enough](RowFrames::enough).
    #[inline(always)]
    pub fn page_rows<'i, R, I: Image<'i>, const BINARY: bool>(
        &self,
        rows: impl Iterator<Item = R>,
        image: impl Fn(&R) -> I,
        holds: impl Fn(&R) -> bool,
        frames: &mut RowFrames<'_>,
    ) -> usize {
        let most = 2 * frames.enough;
        let mut sequence = *frames.sequence;
        let mut taken = 0;
        let mut tail = self.append_cursor::<true>(frames.out, 0);
        for row in rows {
            if tail.len() >= most {
                break;
            }
            let Some(view) = self.view(image(&row)) else {
                break;
            };
            let Some(room) = self.room_of(view.row.len()) else {
                break;
            };
            self.promise(&mut tail, room);
            let start = tail.begin_frame();
            let whole = if view.nulls & self.null_bits == 0 {
                self.page_columns::<I, BINARY, false>(view, &mut tail)
            } else if let Some(row) = view.row.part(0..view.row.len()) {
                // A view of its own, computed in this branch (see `short_word`).
                tail.reborrow(|tail| {
                    self.page_columns_with_nulls::<I, BINARY>(row, view.nulls, tail)
                })
            } else {
                false
            };
            // The bytes that were read count only if the page has not changed.
            if !whole || !holds(&row) {
                tail.back_to(start);
                break;
            }
            tail.end_frame(start, sequence);
            sequence = sequence.wrapping_add(1);
            taken += 1;
        }
        *frames.sequence = sequence;
        taken
    }

    #[inline(never)]
    fn page_columns_with_nulls<'i, I: Image<'i>, const BINARY: bool>(
        &self,
        row: I,
        nulls: u64,
        tail: &mut Tail<'_, true>,
    ) -> bool {
        self.page_columns::<I, BINARY, true>(RowView { row, nulls }, tail)
    }

    /// Appends all columns; false: there is damage, or some column is the caller's.
    #[inline(always)]
    fn page_columns<'i, I: Image<'i>, const BINARY: bool, const NULLS: bool>(
        &self,
        view: RowView<I>,
        tail: &mut Tail<'_, true>,
    ) -> bool {
        let end = match BINARY {
            false => self.text_until::<I, NULLS, true>(&mut self.columns.iter(), view, tail),
            true => {
                let mark = null_mark(tail.len());
                tail.zeros(self.head);
                self.binary_until::<I, NULLS, true>(
                    &mut self.binary_columns::<NULLS>(),
                    view,
                    mark,
                    tail,
                )
            }
        };
        matches!(end, Ok(None))
    }

    #[inline(always)]
    fn text_view<'v>(
        &self,
        view: RowView<&'v [u8]>,
        layout: &RowLayout,
        out: &mut Vec<u8>,
        general: &mut General<'_, 'v>,
    ) -> Result<(), RowError> {
        match (view.nulls & self.null_bits, self.room_of(view.row.len())) {
            (0, Some(room)) => self.text_of::<false, true>(view, layout, out, room, general),
            (_, room) => self.text_with_nulls(view, layout, out, room, general),
        }
    }

    #[inline(never)]
    fn text_with_nulls<'v>(
        &self,
        view: RowView<&'v [u8]>,
        layout: &RowLayout,
        out: &mut Vec<u8>,
        room: Option<usize>,
        general: &mut General<'_, 'v>,
    ) -> Result<(), RowError> {
        match room {
            Some(room) => self.text_of::<true, true>(view, layout, out, room, general),
            None => self.text_of::<true, false>(view, layout, out, view.row.len(), general),
        }
    }

    /// Appends a text row. `NULLS`: there may be some. `PROMISED`: its simple columns take no more
    /// than `room` bytes.
    #[inline(always)]
    fn text_of<'v, const NULLS: bool, const PROMISED: bool>(
        &self,
        view: RowView<&'v [u8]>,
        layout: &RowLayout,
        out: &mut Vec<u8>,
        room: usize,
        general: &mut General<'_, 'v>,
    ) -> Result<(), RowError> {
        let mut columns = self.columns.iter();
        loop {
            let mut tail = self.append_cursor::<PROMISED>(out, room);
            let end = self.text_until::<_, NULLS, PROMISED>(&mut columns, view, &mut tail)?;
            drop(tail);
            let Some(column) = end else { return Ok(()) };
            match layout.get(view.row, column.ordinal as usize)? {
                ValueRef::Null => out.push(wire::TEXT_NULL),
                value => general(column.number as usize, value, out),
            }
        }
    }

    /// Appends columns up to one that is the caller's, and gives that; `None`: to the end.
    #[inline(always)]
    fn text_until<'e, 'i, I: Image<'i>, const NULLS: bool, const PROMISED: bool>(
        &self,
        columns: &mut std::slice::Iter<'e, Column>,
        view: RowView<I>,
        tail: &mut Tail<'_, PROMISED>,
    ) -> Result<Option<&'e Column>, RowError> {
        for column in columns {
            if NULLS && view.is_null(column) {
                tail.put([wire::TEXT_NULL], 1);
                continue;
            }
            match column.form {
                ColumnForm::Signed => {
                    let value = view.signed(column);
                    number_text(value.unsigned_abs(), value < 0, tail);
                }
                ColumnForm::Unsigned => number_text(view.unsigned(column), false, tail),
                ColumnForm::FirstBytes => view.first_bytes(column, self.strings_at, tail)?,
                ColumnForm::Bytes => view.bytes(column, self.strings_at, tail)?,
                ColumnForm::Date => date_text(date(view.unsigned(column)), tail),
                ColumnForm::Seconds => seconds_text(seconds(view.unsigned(column)), tail),
                _ => return Ok(Some(column)),
            }
        }
        Ok(None)
    }

    #[cold]
    fn text_slowly<'v>(
        &self,
        layout: &RowLayout,
        row: &'v [u8],
        out: &mut Vec<u8>,
        general: &mut General<'_, 'v>,
    ) -> Result<(), RowError> {
        for (n, column) in self.columns.iter().enumerate() {
            match layout.get(row, column.ordinal as usize)? {
                ValueRef::Null => out.push(wire::TEXT_NULL),
                value => general(n, value, out),
            }
        }
        Ok(())
    }

    /// Appends a binary row, with its leading zero and null map.
    ///
    /// # Errors
    /// As [`Self::text`].
    #[inline(always)]
    pub fn binary<'v>(
        &self,
        layout: &RowLayout,
        row: &'v [u8],
        out: &mut Vec<u8>,
        general: &mut General<'_, 'v>,
    ) -> Result<(), RowError> {
        match self.view(row) {
            Some(view) => self.binary_view(view, layout, out, general),
            None => self.binary_slowly(layout, row, out, general),
        }
    }

    #[inline(always)]
    fn binary_view<'v>(
        &self,
        view: RowView<&'v [u8]>,
        layout: &RowLayout,
        out: &mut Vec<u8>,
        general: &mut General<'_, 'v>,
    ) -> Result<(), RowError> {
        match (view.nulls & self.null_bits, self.room_of(view.row.len())) {
            (0, Some(room)) => self.binary_of::<false, true>(view, layout, out, room, general),
            (_, room) => self.binary_with_nulls(view, layout, out, room, general),
        }
    }

    #[inline(never)]
    fn binary_with_nulls<'v>(
        &self,
        view: RowView<&'v [u8]>,
        layout: &RowLayout,
        out: &mut Vec<u8>,
        room: Option<usize>,
        general: &mut General<'_, 'v>,
    ) -> Result<(), RowError> {
        match room {
            Some(room) => self.binary_of::<true, true>(view, layout, out, room, general),
            None => self.binary_of::<true, false>(view, layout, out, view.row.len(), general),
        }
    }

    /// Appends a binary row. `NULLS` and `PROMISED` as in [`Self::text_of`].
    #[inline(always)]
    fn binary_of<'v, const NULLS: bool, const PROMISED: bool>(
        &self,
        view: RowView<&'v [u8]>,
        layout: &RowLayout,
        out: &mut Vec<u8>,
        room: usize,
        general: &mut General<'_, 'v>,
    ) -> Result<(), RowError> {
        let mark = null_mark(out.len());
        let mut columns = self.binary_columns::<NULLS>();
        let mut tail = self.append_cursor::<PROMISED>(out, room);
        tail.zeros(self.head);
        loop {
            let end =
                self.binary_until::<_, NULLS, PROMISED>(&mut columns, view, mark, &mut tail)?;
            drop(tail);
            let Some(column) = end else { return Ok(()) };
            let number = column.number as usize;
            match layout.get(view.row, column.ordinal as usize)? {
                ValueRef::Null => {
                    let (at, bit) = mark(number);
                    out[at] |= bit;
                }
                value => general(number, value, out),
            }
            tail = self.append_cursor::<PROMISED>(out, room);
        }
    }

    /// The parts of a binary row.
    #[inline(always)]
    fn binary_columns<const NULLS: bool>(&self) -> std::slice::Iter<'_, Column> {
        match NULLS {
            true => self.columns.iter(),
            false => self.gathered.iter(),
        }
    }

    /// As [`Self::text_until`]; `mark` says where the bit of a column is.
    #[inline(always)]
    fn binary_until<'e, 'i, I: Image<'i>, const NULLS: bool, const PROMISED: bool>(
        &self,
        columns: &mut std::slice::Iter<'e, Column>,
        view: RowView<I>,
        mark: impl Fn(usize) -> (usize, u8),
        tail: &mut Tail<'_, PROMISED>,
    ) -> Result<Option<&'e Column>, RowError> {
        for column in columns {
            if NULLS && view.is_null(column) {
                let (at, bit) = mark(column.number as usize);
                tail.set_bits(at, bit);
                continue;
            }
            match column.form {
                ColumnForm::Fields => view.fields(column, tail)?,
                ColumnForm::Signed | ColumnForm::FilledSigned => {
                    let value = view.signed(column) as u64;
                    tail.put(value.to_le_bytes(), column.wire_width.into());
                }
                ColumnForm::Unsigned | ColumnForm::FilledUnsigned => {
                    let value = view.unsigned(column);
                    tail.put(value.to_le_bytes(), column.wire_width.into());
                }
                ColumnForm::FirstBytes => view.first_bytes(column, self.strings_at, tail)?,
                ColumnForm::Bytes => view.bytes(column, self.strings_at, tail)?,
                ColumnForm::Date => date_binary(date(view.unsigned(column)), tail),
                ColumnForm::Seconds => seconds_binary(seconds(view.unsigned(column)), tail),
                ColumnForm::General => return Ok(Some(column)),
            }
        }
        Ok(None)
    }

    #[cold]
    fn binary_slowly<'v>(
        &self,
        layout: &RowLayout,
        row: &'v [u8],
        out: &mut Vec<u8>,
        general: &mut General<'_, 'v>,
    ) -> Result<(), RowError> {
        let mark = null_mark(out.len());
        out.resize(out.len() + self.head, 0);
        for (n, column) in self.columns.iter().enumerate() {
            match layout.get(row, column.ordinal as usize)? {
                ValueRef::Null => {
                    let (at, bit) = mark(n);
                    out[at] |= bit;
                }
                value => general(n, value, out),
            }
        }
        Ok(())
    }

    /// An upper bound for the bytes of the simple columns of a row whose image has `row_bytes`,
    /// with the null map of a binary row. `None` if the bound is too large to reserve it in
    /// advance.
    #[inline(always)]
    pub(super) fn room_of(&self, row_bytes: usize) -> Option<usize> {
        // Each string is a part of the image.
        let room = self.room + self.strings * row_bytes;
        (room <= ROOM_MAX).then_some(room)
    }

    /// `PROMISED`: no more than `room` bytes go into it.
    #[inline(always)]
    #[allow(unsafe_code)]
    fn append_cursor<'o, const PROMISED: bool>(
        &self,
        out: &'o mut Vec<u8>,
        room: usize,
    ) -> Tail<'o, PROMISED> {
        // SAFETY: the caller's, who has it of `room_of`: a column that is no string takes
        // `COLUMN_ROOM` at most, a string its own bytes and nine for its length, which is checked
        // to lie in the image, whose length is always the same, and the null map a bit a column.
        unsafe { Tail::with_room(out, room) }
    }

    /// Reserves room for further bytes and a packet header, in a tail without an open promise.
    #[inline(always)]
    #[allow(unsafe_code)]
    fn promise(&self, tail: &mut Tail<'_, true>, room: usize) {
        // SAFETY: as in `tail`.
        unsafe { tail.promise(HEADER + room) };
    }

    /// The image as one with narrow offsets and all fields in it; `None` if it is another, or is
    /// cut off before the strings.
    #[inline(always)]
    fn view<'i, I: Image<'i>>(&self, row: I) -> Option<RowView<I>> {
        if row.len() < self.least {
            return None;
        }
        // The flags, and what follows them: the null map, and columns behind it.
        let head = match row.at(FLAGS_AT) {
            Some(head) => u64::from_le_bytes(head),
            None => short_word(row, FLAGS_AT),
        };
        if head as u8 & (FLAG_WIDE | FLAG_EXTERNAL) != 0 || row.len() <= FLAGS_AT {
            return None;
        }
        Some(RowView {
            row,
            nulls: head >> 8,
        })
    }
}

/// The byte of the vector and the bit in it that say that column `n` is NULL, for a binary row that
/// begins at `start`.
#[inline(always)]
fn null_mark(start: usize) -> impl Fn(usize) -> (usize, u8) + Copy {
    move |n| (start + 1 + (n + 2) / 8, 1 << ((n + 2) % 8))
}

/// The columns, where integers that lie side by side and keep their width are one.
fn gathered(columns: &[Column]) -> Box<[Column]> {
    let width = |c: &Column| (64 - usize::from(c.shift)) / 8;
    let mut all: Vec<Column> = Vec::with_capacity(columns.len());
    for &column in columns {
        let integer = matches!(
            column.form,
            ColumnForm::Signed
                | ColumnForm::Unsigned
                | ColumnForm::FilledSigned
                | ColumnForm::FilledUnsigned
        );
        let as_stored = integer && width(&column) == usize::from(column.wire_width);
        match all.last_mut() {
            Some(last)
                if as_stored
                    && last.form == ColumnForm::Fields
                    && last.place + u32::from(last.wire_width) == column.place
                    && usize::from(last.wire_width + column.wire_width) <= FIELDS_MAX =>
            {
                last.wire_width += column.wire_width;
            }
            _ => all.push(Column {
                form: if as_stored {
                    ColumnForm::Fields
                } else {
                    column.form
                },
                ..column
            }),
        }
    }
    all.into()
}

/// How a column stored as `kind` goes out as `ty`.
fn form_of(kind: FieldKind, ty: &ColumnType, as_stored: bool) -> ColumnForm {
    use FieldKind as F;
    let integer = matches!(
        ty.kind,
        TypeKind::TinyInt
            | TypeKind::SmallInt
            | TypeKind::MediumInt
            | TypeKind::Int
            | TypeKind::BigInt
    );
    let string = ty.is_string() && !ty.is_enum_or_set();
    match kind {
        F::I8 | F::I16 | F::I24 | F::I32 | F::I64 if integer => match ty.zerofill {
            false => ColumnForm::Signed,
            true => ColumnForm::FilledSigned,
        },
        F::U8 | F::U16 | F::U24 | F::U32 | F::U64 if integer => match ty.zerofill {
            false => ColumnForm::Unsigned,
            true => ColumnForm::FilledUnsigned,
        },
        F::Var if string && as_stored => ColumnForm::Bytes,
        F::Date if ty.kind == TypeKind::Date => ColumnForm::Date,
        F::Seconds if matches!(ty.kind, TypeKind::DateTime(0) | TypeKind::Timestamp(0)) => {
            ColumnForm::Seconds
        }
        _ => ColumnForm::General,
    }
}

#[inline(always)]
fn date(stored: u64) -> Date {
    Date::from_packed(stored as u32)
}

#[inline(always)]
fn seconds(stored: u64) -> DateTime {
    DateTime::from_packed(stored << 20, 0)
}

/// A row image with narrow offsets that has at least the encoder's minimum length.
#[derive(Clone, Copy)]
struct RowView<I> {
    row: I,
    /// The [`NULL_BITS`] bits at the start of the null map, which may extend behind it; higher bits
    /// are zero.
    nulls: u64,
}

/// Where the flags stand in an image, behind the version.
const FLAGS_AT: usize = 2;

const CUT: RowError = RowError::Corrupt("fixed columns cut off");
const DISORDER: RowError = RowError::Corrupt("end offsets out of order or past the end");

/// The eight bytes from `at` on, zeros behind the end.
///
/// Callers must compute the arguments in the branch that calls it. If they were computed before,
/// the compiler would store them to memory for every column.
#[cold]
#[inline(never)]
fn short_word<'i>(row: impl Image<'i>, at: usize) -> u64 {
    let mut word = [0; 8];
    if let Some(bytes) = row.part(at..row.len()) {
        bytes.copy_to(&mut word);
    }
    u64::from_le_bytes(word)
}

impl<'i, I: Image<'i>> RowView<I> {
    #[inline(always)]
    fn is_null(&self, column: &Column) -> bool {
        self.nulls >> (column.null_bit & 63) & 1 == 1
    }

    /// The field's bytes in the highest bytes of a word. Only the last columns of a short image
    /// have less than a word behind them; missing bytes read as zeros.
    #[inline(always)]
    fn word(&self, column: &Column) -> u64 {
        let place = column.place as usize;
        let word = match self.row.at(place) {
            Some(word) => u64::from_le_bytes(word),
            None => short_word(self.row, place),
        };
        word << (column.shift & 63)
    }

    #[inline(always)]
    fn unsigned(&self, column: &Column) -> u64 {
        self.word(column) >> (column.shift & 63)
    }

    #[inline(always)]
    fn signed(&self, column: &Column) -> i64 {
        self.word(column) as i64 >> (column.shift & 63)
    }

    /// Several fields as one.
    #[inline(always)]
    fn fields<const P: bool>(
        &self,
        column: &Column,
        tail: &mut Tail<'_, P>,
    ) -> Result<(), RowError> {
        let (place, len) = (column.place as usize, usize::from(column.wire_width));
        match self.row.at::<FIELDS_MAX>(place) {
            Some(bytes) => tail.put(bytes, len),
            None => tail.image(self.row.part(place..place + len).ok_or(CUT)?),
        }
        Ok(())
    }

    /// The first string; the strings begin at `strings_at`.
    #[inline(always)]
    fn first_bytes<const P: bool>(
        &self,
        column: &Column,
        strings_at: u32,
        tail: &mut Tail<'_, P>,
    ) -> Result<(), RowError> {
        let strings_at = strings_at as usize;
        let end = self.row.at(column.place as usize).ok_or(DISORDER)?;
        let end = usize::from(u16::from_le_bytes(end) & 0x7FFF);
        if strings_at + end > self.row.len() {
            return Err(DISORDER);
        }
        tail.counted(self.row, strings_at, end);
        Ok(())
    }

    /// Another one.
    #[inline(always)]
    fn bytes<const P: bool>(
        &self,
        column: &Column,
        strings_at: u32,
        tail: &mut Tail<'_, P>,
    ) -> Result<(), RowError> {
        let strings_at = strings_at as usize;
        // Where it begins, and where it ends.
        let pair = self.row.at(column.place as usize).ok_or(DISORDER)?;
        let pair = u32::from_le_bytes(pair) as usize;
        let (begin, end) = (pair & 0x7FFF, pair >> 16 & 0x7FFF);
        if begin > end || strings_at + end > self.row.len() {
            return Err(DISORDER);
        }
        tail.counted(self.row, strings_at + begin, end - begin);
        Ok(())
    }
}
