//! TABLE_MAP events.

use nfold_protocol::lenenc::{put_bytes, put_int};
use nfold_types::{ColumnType, TypeKind};

use super::{Stamp, event};
use crate::event::code;
use crate::table_map::optional;
use crate::value::ColumnFormat;

/// A column.
#[derive(Debug, Clone, Copy)]
pub struct TableColumn<'a> {
    pub name: &'a str,
    pub ty: &'a ColumnType,
    pub nullable: bool,
}

/// A table.
#[derive(Debug, Clone, Copy)]
pub struct TableMapHead<'a> {
    pub id: u64,
    pub database: &'a str,
    pub table: &'a str,
    /// `binlog_row_metadata = FULL`: with names, members, and the primary key.
    pub full: bool,
    /// The columns of the primary key, each with the characters of its prefix; 0: all.
    pub primary_key: &'a [(usize, u64)],
}

fn put_name(out: &mut Vec<u8>, name: &str) {
    out.push(name.len() as u8);
    out.extend_from_slice(name.as_bytes());
    out.push(0);
}

fn put_field(out: &mut Vec<u8>, kind: u64, value: &[u8]) {
    if !value.is_empty() {
        put_int(out, kind);
        put_bytes(out, value);
    }
}

/// Appends TABLE_MAP.
pub fn table_map_event(
    out: &mut Vec<u8>,
    stamp: Stamp,
    head: &TableMapHead<'_>,
    columns: &[TableColumn<'_>],
) {
    /// A table id that is real.
    const FLAGS: u16 = 1;
    let formats: Vec<ColumnFormat> = columns.iter().map(|c| ColumnFormat::of(c.ty)).collect();
    event(out, stamp, (code::TABLE_MAP, 0), |out| {
        out.extend_from_slice(&head.id.to_le_bytes()[..6]);
        out.extend_from_slice(&FLAGS.to_le_bytes());
        put_name(out, head.database);
        put_name(out, head.table);
        put_int(out, columns.len() as u64);
        out.extend(formats.iter().map(|f| f.code));
        let mut metadata = Vec::new();
        formats.iter().for_each(|f| f.write(&mut metadata));
        put_bytes(out, &metadata);
        out.extend(bits(columns.iter().map(|c| c.nullable), false));
        let numbers = columns.iter().zip(&formats).filter(|(_, f)| f.has_sign());
        let signs = bits(numbers.map(|(c, _)| c.ty.unsigned), true);
        put_field(out, optional::SIGNEDNESS, &signs);
        let charsets = |is: fn(&ColumnFormat) -> bool| {
            let mut list = Vec::new();
            let chosen = columns.iter().zip(&formats).filter(|(_, f)| is(f));
            chosen.for_each(|(c, _)| put_int(&mut list, c.ty.collation.0.into()));
            list
        };
        let list = charsets(ColumnFormat::has_charset);
        put_field(out, optional::COLUMN_CHARSET, &list);
        if head.full {
            let list = charsets(ColumnFormat::is_enum_or_set);
            put_field(out, optional::ENUM_COLUMN_CHARSET, &list);
            full_metadata(out, head, columns);
        }
    });
}

/// Appends the fields of `binlog_row_metadata = FULL`.
fn full_metadata(out: &mut Vec<u8>, head: &TableMapHead<'_>, columns: &[TableColumn<'_>]) {
    let (mut names, mut sets, mut enums) = (Vec::new(), Vec::new(), Vec::new());
    for column in columns {
        put_bytes(&mut names, column.name.as_bytes());
        let (list, members) = match &column.ty.kind {
            TypeKind::Set(members) => (&mut sets, members),
            TypeKind::Enum(members) => (&mut enums, members),
            _ => continue,
        };
        put_int(list, members.len() as u64);
        members.iter().for_each(|m| put_bytes(list, m.as_bytes()));
    }
    put_field(out, optional::COLUMN_NAME, &names);
    put_field(out, optional::SET_MEMBERS, &sets);
    put_field(out, optional::ENUM_MEMBERS, &enums);
    let has_prefix = head.primary_key.iter().any(|(_, prefix)| *prefix > 0);
    let mut key = Vec::new();
    for (column, prefix) in head.primary_key {
        put_int(&mut key, *column as u64);
        if has_prefix {
            put_int(&mut key, *prefix);
        }
    }
    let kind = match has_prefix {
        true => optional::PRIMARY_KEY_WITH_PREFIX,
        false => optional::SIMPLE_PRIMARY_KEY,
    };
    put_field(out, kind, &key);
}

/// Packs bits: from the lowest one of each byte on, or from the highest.
fn bits(values: impl Iterator<Item = bool>, highest_first: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (i, on) in values.enumerate() {
        if i % 8 == 0 {
            bytes.push(0);
        }
        let bit = match highest_first {
            true => 0x80 >> (i % 8),
            false => 1 << (i % 8),
        };
        if on {
            bytes[i / 8] |= bit;
        }
    }
    bytes
}
