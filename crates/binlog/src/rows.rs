//! Row events: the rows that a statement inserted, updated or deleted in one table.
//!
//! # Picture
//! ```text
//! u48 table id · u16 flags · u16 length of extra data, including itself (not in version 1), data
//! · number of columns · bits: columns of the image [· bits: columns of the new image]
//! · rows: image [· new image]
//!
//! image: a NULL bit for each of its columns · the values that are not NULL
//! new image of a partial update: options · [a bit for each JSON column: its value is a list of
//!                                changes] · image
//! ```

use nfold_protocol::Reader;
use nfold_types::{ColumnType, Value};

use crate::table_map::{TableMap, bit, column_count, table_id};
use crate::value::field;
use crate::{BinlogError, mariadb};

/// What happened to the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowChangeKind {
    Insert,
    Update,
    /// An update whose JSON values may be lists of changes.
    PartialUpdate,
    Delete,
}

/// A column of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum RowValue {
    /// The image does not have the column.
    Absent,
    Value(Value),
    /// The changes of a JSON document, for [`crate::apply_diffs`].
    JsonDiffs(Vec<u8>),
}

/// A row event. Its rows are read with the TABLE_MAP of its table id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowsEvent {
    pub kind: RowChangeKind,
    pub table_id: u64,
    flags: u16,
    columns: usize,
    /// The columns of the old image of an update or delete, or of the new image of an insert.
    first: Vec<u8>,
    /// The columns of an update's new image.
    second: Vec<u8>,
    data: Vec<u8>,
}

impl RowsEvent {
    pub(crate) const STATEMENT_END: u16 = 1;
    pub(crate) const NO_FOREIGN_KEY_CHECKS: u16 = 2;

    pub(crate) fn read(
        kind: RowChangeKind,
        has_extra: bool,
        r: &mut Reader<'_>,
    ) -> Result<RowsEvent, BinlogError> {
        let table_id = table_id(r)?;
        let flags = r.u16("flags")?;
        if has_extra {
            let length = usize::from(r.u16("length of extra data")?);
            let length = length
                .checked_sub(2)
                .ok_or(BinlogError::Malformed("length of extra data"))?;
            r.take(length, "extra data")?;
        }
        let columns = column_count(r)?;
        let first = r
            .take(columns.div_ceil(8), "columns of the image")?
            .to_vec();
        let second = match kind {
            RowChangeKind::Update | RowChangeKind::PartialUpdate => r
                .take(columns.div_ceil(8), "columns of the new image")?
                .to_vec(),
            _ => Vec::new(),
        };
        Ok(RowsEvent {
            kind,
            table_id,
            flags,
            columns,
            first,
            second,
            data: r.rest().to_vec(),
        })
    }

    /// The event whose rows were compressed by MariaDB.
    pub(crate) fn decompressed(self) -> Result<RowsEvent, BinlogError> {
        Ok(RowsEvent {
            data: mariadb::decompress(&self.data)?,
            ..self
        })
    }

    /// Whether it is the last event of its statement. The table ids before it end with it.
    pub fn ends_statement(&self) -> bool {
        self.flags & RowsEvent::STATEMENT_END != 0
    }

    /// Whether the source did not check foreign keys.
    pub fn no_foreign_key_checks(&self) -> bool {
        self.flags & RowsEvent::NO_FOREIGN_KEY_CHECKS != 0
    }

    /// Whether the first image of each row has column `i`.
    pub fn has_column(&self, i: usize) -> bool {
        bit(&self.first, i)
    }

    /// Whether the first image of each row has all columns.
    pub fn is_full(&self) -> bool {
        (0..self.columns).all(|i| self.has_column(i))
    }

    /// The rows of the event. `types` are the types of the table's columns, which
    /// [`ColumnFormat::stores`](crate::ColumnFormat::stores) has compared (B3).
    ///
    /// # Errors
    /// The event has another number of columns than the table.
    pub fn rows<'r>(
        &'r self,
        map: &'r TableMap,
        types: &'r [&'r ColumnType],
    ) -> Result<Rows<'r>, BinlogError> {
        if self.columns != map.columns.len() || self.columns != types.len() {
            return Err(BinlogError::Malformed("number of columns of the rows"));
        }
        Ok(Rows {
            event: self,
            map,
            types,
            r: Reader::new(&self.data),
        })
    }
}

/// A cursor over the rows of an event.
pub struct Rows<'r> {
    event: &'r RowsEvent,
    map: &'r TableMap,
    types: &'r [&'r ColumnType],
    r: Reader<'r>,
}

impl<'r> Rows<'r> {
    /// Reads the next row: the old image of an update or delete, or the new one of an insert, into
    /// `first`, and the new image of an update into `second`. Returns false after the last row.
    ///
    /// # Errors
    /// Damage.
    pub fn next(
        &mut self,
        first: &mut Vec<RowValue>,
        second: &mut Vec<RowValue>,
    ) -> Result<bool, BinlogError> {
        if self.r.is_empty() {
            return Ok(false);
        }
        let before = self.r.rest().len();
        self.image(&self.event.first, None, first)?;
        second.clear();
        match self.event.kind {
            RowChangeKind::Insert | RowChangeKind::Delete => {}
            RowChangeKind::Update => self.image(&self.event.second, None, second)?,
            RowChangeKind::PartialUpdate => {
                let partial = self.partial_bits()?;
                self.image(&self.event.second, Some(partial), second)?;
            }
        }
        // A table without columns in the image would never end.
        match self.r.rest().len() < before {
            true => Ok(true),
            false => Err(BinlogError::Malformed("row without bytes")),
        }
    }

    /// Reads which JSON columns of a new image are lists of changes.
    fn partial_bits(&mut self) -> Result<&'r [u8], BinlogError> {
        const HAS_PARTIAL_VALUES: u64 = 1;
        match self.r.lenenc_int("options of a row")? {
            0 => Ok(&[]),
            HAS_PARTIAL_VALUES => {
                let bytes = self.map.json_columns().div_ceil(8);
                Ok(self.r.take(bytes, "bits of partial values")?)
            }
            other => Err(BinlogError::Unsupported(format!(
                "options {other} of an updated row"
            ))),
        }
    }

    fn image(
        &mut self,
        columns: &[u8],
        partial: Option<&[u8]>,
        to: &mut Vec<RowValue>,
    ) -> Result<(), BinlogError> {
        to.clear();
        let present = (0..self.types.len()).filter(|&i| bit(columns, i)).count();
        let nulls = self.r.take(present.div_ceil(8), "NULL bits of a row")?;
        let (mut at, mut json) = (0, 0);
        for (i, format) in self.map.columns.iter().enumerate() {
            let mut has_diffs = false;
            if format.code == field::JSON {
                has_diffs = partial.is_some_and(|bits| bit(bits, json));
                json += 1;
            }
            if !bit(columns, i) {
                to.push(RowValue::Absent);
                continue;
            }
            let is_null = bit(nulls, at);
            at += 1;
            to.push(match (is_null, has_diffs) {
                (true, _) => RowValue::Value(Value::Null),
                (false, true) => RowValue::JsonDiffs(format.read_bytes(&mut self.r)?.to_vec()),
                (false, false) => RowValue::Value(format.read_value(self.types[i], &mut self.r)?),
            });
        }
        Ok(())
    }
}
