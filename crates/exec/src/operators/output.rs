//! Sends result rows: encodes row images and values into the sink's buffer, in the client's
//! character set.
//!
//! A result of plain columns of one table uses [`Direct`], an encoder built once from the table's
//! layout. Other results are evaluated expression by expression in [`emit`].

use nfold_engine::{PageRow, PageRowSink, PageRows};
use nfold_plan::expr::{Expr, ExprKind};
use nfold_plan::query::Block;
use nfold_types::row::{General, RowEncoder, RowError, RowLayout};
use nfold_types::temporal::TimeZone;
use nfold_types::wire::RowFrames;
use nfold_types::{Charset, CollationId, ColumnType, SqlError, ValueRef, charset, wire};

use super::step::{Slot, Source};
use crate::env::batch::Batch;
use crate::env::{RowSink, SessionEnv, WireFormat};
use crate::expr::eval::{EvalCx, row_error};

/// A sink may send a text of at least this many bytes from the row in place of its buffer.
const SENT_IN_PLACE_BYTES: usize = 64 << 10;
/// Long texts are looked for in batches of at most this many rows: the engine ends a batch behind
/// some long rows.
const FEW_ROWS: usize = 16;

/// The encoder for a block whose result is plain columns of its only table, without grouping, sort,
/// or a filter after the read.
pub(crate) struct Direct {
    /// The columns of the slot's layout, in the order of the select list.
    ordinals: Vec<usize>,
    /// The encoder, with the client character set that it was built for.
    encoder: Option<(Option<&'static Charset>, RowEncoder)>,
}

impl Direct {
    /// `None` if the block is of another form.
    pub fn open(block: &Block, slot: Option<&Slot>) -> Option<Direct> {
        let [step] = block.joins.as_slice() else {
            return None;
        };
        // A derived table that is the block's only source is streamed, not read in batches.
        let plain = matches!(slot?.source, Source::Table(_))
            && block.group.is_none()
            && block.windows.is_empty()
            && block.having.is_empty()
            && block.order.is_empty()
            && !block.distinct
            && !block.calc_found_rows;
        let ordinal = |e: &Expr| match e.kind {
            ExprKind::Column(at) if usize::from(at.table) == step.table => {
                slot?.ordinal(at.column.into())
            }
            _ => None,
        };
        let ordinals = block.select.iter().map(ordinal).collect::<Option<_>>()?;
        plain.then_some(Direct {
            ordinals,
            encoder: None,
        })
    }

    /// For rows that consist of the select list: sorted or distinct rows.
    pub fn of_made(columns: usize) -> Direct {
        Direct::of_columns((0..columns).collect())
    }

    /// For rows that have the select list in these columns.
    pub fn of_columns(ordinals: Vec<usize>) -> Direct {
        Direct {
            ordinals,
            encoder: None,
        }
    }

    /// The encoder of rows in `layout`, in the session's client character set.
    pub fn rows<'d>(
        &'d mut self,
        layout: &'d RowLayout,
        select: &'d [Expr],
        env: &'d dyn SessionEnv,
    ) -> Option<DirectRows<'d>> {
        if !self.prepare(layout, select, env) {
            return None;
        }
        self.prepared(layout, select, env)
    }

    /// Builds the encoder, unless there is one for this character set. Returns false if the result
    /// cannot be encoded so.
    pub fn prepare(&mut self, layout: &RowLayout, select: &[Expr], env: &dyn SessionEnv) -> bool {
        let charset = env.result_charset();
        let same = |known: &Option<&'static Charset>| match (known, charset) {
            (Some(a), Some(b)) => std::ptr::eq(*a, b),
            (a, b) => a.is_none() && b.is_none(),
        };
        if !self.encoder.as_ref().is_some_and(|(known, _)| same(known)) {
            let as_stored = |n: usize| {
                let ty = &select[n].ty.col;
                let same = charset.is_none_or(|to| ty.charset() == to);
                ty.collation == CollationId::BINARY || same && !ty.is_json()
            };
            let ordinals = self.ordinals.iter().copied();
            let result = |n: usize| &select[n].ty.col;
            self.encoder =
                RowEncoder::new(layout, ordinals, result, as_stored).map(|e| (charset, e));
        }
        self.encoder.is_some()
    }

    /// The encoder that [`prepare`](Self::prepare) has built.
    pub fn prepared<'d>(
        &'d self,
        layout: &'d RowLayout,
        select: &'d [Expr],
        env: &'d dyn SessionEnv,
    ) -> Option<DirectRows<'d>> {
        let (charset, encoder) = self.encoder.as_ref()?;
        let to = ResultText {
            zone: env.time_zone(),
            charset: *charset,
        };
        Some(DirectRows {
            encoder,
            layout,
            select,
            to,
        })
    }
}

/// A [`Direct`] in one execution.
pub(crate) struct DirectRows<'d> {
    encoder: &'d RowEncoder,
    layout: &'d RowLayout,
    select: &'d [Expr],
    to: ResultText<'d>,
}

impl DirectRows<'_> {
    /// Appends one row to the sink's buffer and ends it.
    pub fn emit(
        &self,
        image: &[u8],
        format: WireFormat,
        sink: &mut dyn RowSink,
    ) -> Result<(), SqlError> {
        match image.len() >= SENT_IN_PLACE_BYTES {
            true => self.emit_long(image, format, sink),
            false => self.emit_all(1, |_| image, format, sink),
        }
    }

    /// Appends rows `skipped..skipped + count` of a batch to the sink's buffer.
    #[inline]
    pub fn emit_batch(
        &self,
        batch: &Batch,
        (skipped, count): (usize, usize),
        format: WireFormat,
        sink: &mut dyn RowSink,
    ) -> Result<(), SqlError> {
        let image = |i: usize| batch.scanned(skipped + i);
        match batch.read.bytes() >= SENT_IN_PLACE_BYTES && count <= FEW_ROWS {
            true => (0..count).try_for_each(|i| self.emit(image(i), format, sink)),
            false => self.emit_all(count, image, format, sink),
        }
    }

    /// Appends rows `0..count` to the sink's buffer.
    // Out of line: the loop of its only other caller leaves it too few registers.
    #[inline(never)]
    fn emit_all<'i>(
        &self,
        count: usize,
        image: impl Fn(usize) -> &'i [u8],
        format: WireFormat,
        sink: &mut dyn RowSink,
    ) -> Result<(), SqlError> {
        let DirectRows {
            encoder,
            layout,
            select,
            to,
        } = self;
        match format {
            WireFormat::Text => {
                let general = &mut |n: usize, v: ValueRef<'i>, out: &mut Vec<u8>| {
                    to.text(v, &select[n].ty.col, out);
                };
                let rows = Rows::<false> {
                    encoder,
                    layout,
                    general,
                };
                put_rows(count, image, rows, sink)
            }
            WireFormat::Binary => {
                let general = &mut |n: usize, v: ValueRef<'i>, out: &mut Vec<u8>| {
                    to.binary(v, &select[n].ty.col, out);
                };
                let rows = Rows::<true> {
                    encoder,
                    layout,
                    general,
                };
                put_rows(count, image, rows, sink)
            }
        }
    }

    /// Appends a row that may have a long text, which is not copied.
    #[cold]
    fn emit_long<'i>(
        &self,
        image: &'i [u8],
        format: WireFormat,
        sink: &mut dyn RowSink,
    ) -> Result<(), SqlError> {
        let mut long = LongText::default();
        let general = &mut |n: usize, v: ValueRef<'i>, out: &mut Vec<u8>| {
            long.write(&self.to, v, (&self.select[n].ty.col, format), out);
        };
        let (layout, out) = (self.layout, sink.row_buffer());
        let encoded = match format {
            WireFormat::Text => self.encoder.text(layout, image, out, general),
            WireFormat::Binary => self.encoder.binary(layout, image, out, general),
        };
        encoded.map_err(|e| row_error(&e))?;
        long.end_row(sink)
    }
}

/// The long text of a row that is left out of the sink's buffer.
#[derive(Default)]
struct LongText<'v> {
    /// Its place in the buffer, and its bytes.
    left_out: Option<(usize, &'v [u8])>,
}

impl<'v> LongText<'v> {
    /// Appends a value. Of the row's first long text only the length is appended. Returns true for
    /// NULL, which has no bytes in the binary protocol.
    #[inline]
    fn write(
        &mut self,
        to: &ResultText<'_>,
        v: ValueRef<'v>,
        (ty, format): (&ColumnType, WireFormat),
        out: &mut Vec<u8>,
    ) -> bool {
        if let ValueRef::Bytes(text) = v
            && text.len() >= SENT_IN_PLACE_BYTES
            && self.left_out.is_none()
            && to.is_sent_as_stored(text, ty)
        {
            wire::write_lenenc(text.len() as u64, out);
            self.left_out = Some((out.len(), text));
            return false;
        }
        match format {
            WireFormat::Text => {
                to.text(v, ty, out);
                v.is_null()
            }
            WireFormat::Binary => to.binary(v, ty, out),
        }
    }

    /// Ends the row.
    #[inline]
    fn end_row(self, sink: &mut dyn RowSink) -> Result<(), SqlError> {
        match self.left_out {
            None => sink.end_row(),
            Some((at, text)) => sink.end_row_with(at, text),
        }
    }
}

impl<'d> DirectRows<'d> {
    /// Whether rows can be encoded directly from their pages.
    pub fn are_simple(&self, format: WireFormat) -> bool {
        self.encoder.is_simple(format == WireFormat::Binary)
    }

    /// The zero-copy row sink, which encodes rows from their pages into the sink's buffer. The
    /// caller reports the rows by [`framed`](RowSink::framed) afterwards. `None`: the sink has no
    /// buffer for many rows.
    pub fn page_rows<'s>(
        &'s self,
        format: WireFormat,
        sink: &'s mut dyn RowSink,
    ) -> Option<PageRowEncoder<'s>> {
        Some(PageRowEncoder {
            encoder: self.encoder,
            binary: format == WireFormat::Binary,
            frames: sink.frames()?,
            taken: 0,
        })
    }
}

/// A zero-copy row sink: encodes rows directly from their pages.
pub(crate) struct PageRowEncoder<'s> {
    encoder: &'s RowEncoder,
    binary: bool,
    frames: RowFrames<'s>,
    taken: u64,
}

impl PageRowEncoder<'_> {
    /// The number of rows encoded so far.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    #[inline(always)]
    fn encode<const BINARY: bool>(&mut self, rows: PageRows<'_, '_>) -> usize {
        let (image, holds) = (PageRow::image, PageRow::validate);
        let taken = self
            .encoder
            .page_rows::<_, _, BINARY>(rows, image, holds, &mut self.frames);
        self.taken += taken as u64;
        taken
    }
}

impl PageRowSink for PageRowEncoder<'_> {
    fn take(&mut self, rows: PageRows<'_, '_>) -> usize {
        match self.binary {
            true => self.encode::<true>(rows),
            false => self.encode::<false>(rows),
        }
    }
}

/// Appends row images in one of the two protocols. It is not a closure, so that the work for a row
/// is inlined into the loop over rows.
struct Rows<'d, 'i, const BINARY: bool> {
    encoder: &'d RowEncoder,
    layout: &'d RowLayout,
    general: &'d mut General<'d, 'i>,
}

impl<'i, const BINARY: bool> Rows<'_, 'i, BINARY> {
    #[inline(always)]
    fn row(&mut self, image: &'i [u8], out: &mut Vec<u8>) -> Result<(), RowError> {
        match BINARY {
            true => self.encoder.binary(self.layout, image, out, self.general),
            false => self.encoder.text(self.layout, image, out, self.general),
        }
    }
}

/// Sends rows `0..count`.
#[inline(always)]
fn put_rows<'i, const BINARY: bool>(
    count: usize,
    image: impl Fn(usize) -> &'i [u8],
    mut rows: Rows<'_, 'i, BINARY>,
    sink: &mut dyn RowSink,
) -> Result<(), SqlError> {
    let mut next = 0;
    while next < count {
        let first = next;
        let Some(mut frames) = sink.frames() else {
            return put_singly(next..count, &image, &mut rows, sink);
        };
        // One row goes in even if the buffer is full.
        let done = loop {
            let done = frames.row(|out| rows.row(image(next), out));
            next += 1;
            if done.is_err() || next == count || frames.is_full() {
                break done;
            }
        };
        let whole = (next - first) as u64 - u64::from(done.is_err());
        sink.framed(whole)?;
        done.map_err(|e| row_error(&e))?;
    }
    Ok(())
}

/// As [`put_rows`], for a sink without a buffer for many rows.
#[cold]
#[inline(never)]
fn put_singly<'i, const BINARY: bool>(
    range: std::ops::Range<usize>,
    image: &dyn Fn(usize) -> &'i [u8],
    rows: &mut Rows<'_, 'i, BINARY>,
    sink: &mut dyn RowSink,
) -> Result<(), SqlError> {
    for i in range {
        rows.row(image(i), sink.row_buffer())
            .map_err(|e| row_error(&e))?;
        sink.end_row()?;
    }
    Ok(())
}

/// Appends one row to the sink's buffer and ends it. Plain columns are encoded from the row image.
pub(crate) fn emit<'a>(
    cx: &EvalCx<'a>,
    select: &'a [Expr],
    sink: &mut dyn RowSink,
) -> Result<(), SqlError> {
    let to = ResultText {
        zone: cx.env().time_zone(),
        charset: cx.env().result_charset(),
    };
    let (format, mut long) = (sink.format(), LongText::default());
    let out = sink.row_buffer();
    match format {
        WireFormat::Text => {
            for e in select {
                write_value(cx, e, (&to, format), &mut long, out)?;
            }
        }
        WireFormat::Binary => {
            let start = out.len();
            out.push(0);
            out.resize(start + 1 + (select.len() + 9) / 8, 0);
            for (n, e) in select.iter().enumerate() {
                if write_value(cx, e, (&to, format), &mut long, out)? {
                    out[start + 1 + (n + 2) / 8] |= 1 << ((n + 2) % 8);
                }
            }
        }
    }
    long.end_row(sink)
}

/// Appends one value of the select list. Returns whether it is NULL.
#[inline]
fn write_value<'a>(
    cx: &EvalCx<'a>,
    e: &'a Expr,
    (to, format): (&ResultText<'_>, WireFormat),
    long: &mut LongText<'a>,
    out: &mut Vec<u8>,
) -> Result<bool, SqlError> {
    let ty = &e.ty.col;
    if let ExprKind::Column(at) = e.kind {
        let v = cx.rows[usize::from(at.table)]
            .get(at.column)
            .map_err(|e| row_error(&e))?;
        return Ok(long.write(to, v, (ty, format), out));
    }
    let value = cx.val(e)?;
    let v = value.as_value_ref();
    match format {
        WireFormat::Text => {
            to.text(v, ty, out);
            Ok(v.is_null())
        }
        WireFormat::Binary => Ok(to.binary(v, ty, out)),
    }
}

/// The client's view of values: a time zone, and the character set of results (see
/// [`SessionEnv::result_charset`]).
pub struct ResultText<'a> {
    pub zone: &'a TimeZone,
    pub charset: Option<&'static Charset>,
}

impl ResultText<'_> {
    /// The string in the client's character set, if it has to be converted.
    #[inline]
    fn converted(&self, v: ValueRef<'_>, ty: &ColumnType) -> Option<Vec<u8>> {
        if let ValueRef::UInt(number) = v
            && ty.is_enum_or_set()
        {
            return converted_member(number, ty, self.charset.unwrap_or(ty.charset()));
        }
        if ty.is_json() {
            return self.document(v);
        }
        let (ValueRef::Bytes(text), Some(to)) = (v, self.charset) else {
            return None;
        };
        if has_equal_bytes(text, ty, to) {
            return None;
        }
        let mut out = Vec::with_capacity(text.len() * 2);
        charset::convert(ty.charset(), to, text, &mut out);
        Some(out)
    }

    /// Whether the client receives the bytes of a text as they are.
    fn is_sent_as_stored(&self, text: &[u8], ty: &ColumnType) -> bool {
        !ty.is_json() && self.charset.is_none_or(|to| has_equal_bytes(text, ty, to))
    }

    /// The text of a document. The text of a damaged document ends where the damage begins.
    #[cold]
    fn document(&self, v: ValueRef<'_>) -> Option<Vec<u8>> {
        let ValueRef::Bytes(doc) = v else {
            return None;
        };
        let mut text = Vec::new();
        let work = nfold_json::Work::new(&nfold_types::NoCheckpoint);
        if let Ok(doc) = nfold_json::Doc::new(doc) {
            let _ = nfold_json::print(doc, &work, &mut text);
        }
        let is_same = |to: &&Charset| to.is_utf8() || to.is_ascii(&text);
        let Some(to) = self.charset.filter(|to| !is_same(to)) else {
            return Some(text);
        };
        let mut out = Vec::with_capacity(text.len());
        charset::convert(&charset::UTF8MB4, to, &text, &mut out);
        Some(out)
    }

    /// Appends a value in the text protocol.
    #[inline]
    pub fn text(&self, v: ValueRef<'_>, ty: &ColumnType, out: &mut Vec<u8>) {
        match self.converted(v, ty) {
            Some(text) => wire::write_text(ValueRef::Bytes(&text), ty, self.zone, out),
            None => wire::write_text(v, ty, self.zone, out),
        }
    }

    /// Appends a value in the binary protocol. Returns true for NULL, which has no bytes.
    #[inline]
    pub fn binary(&self, v: ValueRef<'_>, ty: &ColumnType, out: &mut Vec<u8>) -> bool {
        match self.converted(v, ty) {
            _ if v.is_null() => {}
            Some(text) => wire::write_binary(ValueRef::Bytes(&text), ty, self.zone, out),
            None => wire::write_binary(v, ty, self.zone, out),
        }
        v.is_null()
    }
}

/// Whether a text of type `ty` has the same bytes in the character set `to`.
#[inline]
fn has_equal_bytes(text: &[u8], ty: &ColumnType, to: &Charset) -> bool {
    let from = ty.charset();
    ty.collation == CollationId::BINARY
        || from == to
        || (to.is_ascii_compatible() && from.is_ascii(text))
}

/// The text of an ENUM or SET value in the client's character set. Member names are stored in
/// UTF-8.
fn converted_member(number: u64, ty: &ColumnType, to: &Charset) -> Option<Vec<u8>> {
    let from = &charset::UTF8MB4;
    if std::ptr::eq(from, to) || to.is_binary() {
        return None;
    }
    let mut name = Vec::new();
    ty.member_text(number, &mut name);
    if to.is_ascii(&name) {
        return None;
    }
    let mut out = Vec::with_capacity(name.len());
    charset::convert(from, to, &name, &mut out);
    Some(out)
}
