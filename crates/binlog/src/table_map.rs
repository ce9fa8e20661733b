//! TABLE_MAP: the table of the row events that follow, with the types of its columns.
//!
//! # Picture
//! ```text
//! u48 table id · u16 flags · u8 length, database, 0 · u8 length, table, 0
//! · number of columns · a type code each · length, metadata of the types · a NULL bit each
//! · optional fields: type · length · value
//! ```
//! Numbers without a type are length-encoded integers.

use nfold_protocol::Reader;
use nfold_types::CollationId;

use crate::value::{ColumnFormat, field};
use crate::{BinlogError, collation_of_source};

/// A table of the source as row events see it. The source chooses its id anew whenever it opens the
/// table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableMap {
    pub id: u64,
    pub database: String,
    pub table: String,
    pub columns: Vec<ColumnFormat>,
}

/// The types of optional fields.
pub(crate) mod optional {
    pub const SIGNEDNESS: u64 = 1;
    pub const DEFAULT_CHARSET: u64 = 2;
    pub const COLUMN_CHARSET: u64 = 3;
    pub const COLUMN_NAME: u64 = 4;
    pub const SET_MEMBERS: u64 = 5;
    pub const ENUM_MEMBERS: u64 = 6;
    pub const SIMPLE_PRIMARY_KEY: u64 = 8;
    pub const PRIMARY_KEY_WITH_PREFIX: u64 = 9;
    pub const ENUM_DEFAULT_CHARSET: u64 = 10;
    pub const ENUM_COLUMN_CHARSET: u64 = 11;
    pub const COLUMN_VISIBILITY: u64 = 12;
}

impl TableMap {
    pub(crate) fn read(r: &mut Reader<'_>) -> Result<TableMap, BinlogError> {
        let id = table_id(r)?;
        r.u16("flags")?;
        let database = name(r)?;
        let table = name(r)?;
        let n = column_count(r)?;
        let codes = r.take(n, "types of the columns")?;
        let mut metadata = Reader::new(r.lenenc_bytes("metadata of the types")?);
        let mut columns = Vec::with_capacity(n);
        for &code in codes {
            columns.push(ColumnFormat::read(code, &mut metadata)?);
        }
        if !metadata.is_empty() {
            return Err(BinlogError::Malformed("metadata of the types"));
        }
        let nulls = r.take(n.div_ceil(8), "NULL bits")?;
        for (i, column) in columns.iter_mut().enumerate() {
            column.nullable = bit(nulls, i);
        }
        let mut map = TableMap {
            id,
            database,
            table,
            columns,
        };
        while !r.is_empty() {
            let kind = r.lenenc_int("optional field")?;
            map.optional(kind, Reader::new(r.lenenc_bytes("optional field")?))?;
        }
        Ok(map)
    }

    /// Reads an optional field. Those that describe columns for people are not used.
    fn optional(&mut self, kind: u64, mut r: Reader<'_>) -> Result<(), BinlogError> {
        let columns = self.columns.iter_mut();
        match kind {
            optional::SIGNEDNESS => {
                for (i, column) in columns.filter(|c| c.has_sign()).enumerate() {
                    let byte = r.rest().get(i / 8);
                    let byte = byte.ok_or(BinlogError::Malformed("signs of the columns"))?;
                    column.unsigned = Some(byte & (0x80 >> (i % 8)) != 0);
                }
            }
            optional::DEFAULT_CHARSET => {
                default_charset(columns.filter(|c| c.has_charset()), &mut r)?
            }
            optional::ENUM_DEFAULT_CHARSET => {
                default_charset(columns.filter(|c| c.is_enum_or_set()), &mut r)?
            }
            optional::COLUMN_CHARSET => {
                column_charsets(columns.filter(|c| c.has_charset()), &mut r)?
            }
            optional::ENUM_COLUMN_CHARSET => {
                column_charsets(columns.filter(|c| c.is_enum_or_set()), &mut r)?
            }
            optional::COLUMN_NAME => {
                for column in columns {
                    let text = r.lenenc_bytes("name of a column")?;
                    column.name = Some(String::from_utf8_lossy(text).into());
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The number of JSON columns.
    pub(crate) fn json_columns(&self) -> usize {
        self.columns
            .iter()
            .filter(|c| c.code == field::JSON)
            .count()
    }
}

fn collation(n: u64) -> Result<Option<CollationId>, BinlogError> {
    let id = u16::try_from(n).map_err(|_| BinlogError::Malformed("collation"))?;
    Ok(Some(collation_of_source(id).unwrap_or(CollationId(id))))
}

/// One collation for all, and exceptions.
fn default_charset<'c>(
    columns: impl Iterator<Item = &'c mut ColumnFormat>,
    r: &mut Reader<'_>,
) -> Result<(), BinlogError> {
    let mut columns: Vec<_> = columns.collect();
    let default = collation(r.lenenc_int("default collation")?)?;
    columns.iter_mut().for_each(|c| c.collation = default);
    while !r.is_empty() {
        let at = r.lenenc_int("number of a column")?;
        let own = collation(r.lenenc_int("collation of a column")?)?;
        let column = usize::try_from(at).ok().and_then(|at| columns.get_mut(at));
        column
            .ok_or(BinlogError::Malformed("number of a column"))?
            .collation = own;
    }
    Ok(())
}

fn column_charsets<'c>(
    columns: impl Iterator<Item = &'c mut ColumnFormat>,
    r: &mut Reader<'_>,
) -> Result<(), BinlogError> {
    for column in columns {
        column.collation = collation(r.lenenc_int("collation of a column")?)?;
    }
    Ok(())
}

/// Whether bit `i` is set.
pub(crate) fn bit(bits: &[u8], i: usize) -> bool {
    bits.get(i / 8).is_some_and(|byte| byte >> (i % 8) & 1 == 1)
}

/// Reads a table id of six bytes.
pub(crate) fn table_id(r: &mut Reader<'_>) -> Result<u64, BinlogError> {
    let mut bytes = [0; 8];
    bytes[..6].copy_from_slice(r.take(6, "table id")?);
    Ok(u64::from_le_bytes(bytes))
}

/// Reads a number of columns, of which each needs a bit of the event at least.
pub(crate) fn column_count(r: &mut Reader<'_>) -> Result<usize, BinlogError> {
    let n = r.lenenc_int("number of columns")?;
    let most = 8 * r.rest().len() as u64;
    match n <= most {
        true => Ok(n as usize),
        false => Err(BinlogError::Malformed("number of columns")),
    }
}

fn name(r: &mut Reader<'_>) -> Result<String, BinlogError> {
    let length = usize::from(r.u8("length of a name")?);
    let text = String::from_utf8_lossy(r.take(length, "name")?).into_owned();
    r.take(1, "end of a name")?;
    Ok(text)
}
