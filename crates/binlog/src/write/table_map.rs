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
    /// SELECT * shows it.
    pub visible: bool,
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
        let unsigned = |ty: &ColumnType| ty.unsigned || ty.kind == TypeKind::Year;
        let signs = bits(numbers.map(|(c, _)| unsigned(c.ty)), true);
        put_field(out, optional::SIGNEDNESS, &signs);
        let collations = |is: fn(&ColumnFormat) -> bool| -> Vec<u16> {
            let chosen = columns.iter().zip(&formats).filter(|(_, f)| is(f));
            chosen.map(|(c, _)| c.ty.collation.0).collect()
        };
        let kinds = (optional::DEFAULT_CHARSET, optional::COLUMN_CHARSET);
        put_charsets(out, kinds, &collations(ColumnFormat::has_charset));
        if head.full {
            let enums = collations(ColumnFormat::is_enum_or_set);
            full_metadata(out, head, columns, &enums);
        }
    });
}

/// Appends the collations of columns: that of most of them and the exceptions, if more than half
/// of them have it, as MySQL does; otherwise all.
fn put_charsets(out: &mut Vec<u8>, (default, all): (u64, u64), collations: &[u16]) {
    let share = |id: u16| collations.iter().filter(|&&other| other == id).count();
    let common = (collations.iter().copied()).find(|&id| 2 * share(id) > collations.len());
    let mut list = Vec::new();
    let Some(common) = common else {
        collations
            .iter()
            .for_each(|&id| put_int(&mut list, id.into()));
        return put_field(out, all, &list);
    };
    put_int(&mut list, common.into());
    for (at, &id) in collations
        .iter()
        .enumerate()
        .filter(|(_, id)| **id != common)
    {
        put_int(&mut list, at as u64);
        put_int(&mut list, id.into());
    }
    put_field(out, default, &list);
}

/// Appends the fields of `binlog_row_metadata = FULL`. `collations` are those of ENUM and SET
/// columns.
fn full_metadata(
    out: &mut Vec<u8>,
    head: &TableMapHead<'_>,
    columns: &[TableColumn<'_>],
    collations: &[u16],
) {
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
    let kinds = (
        optional::ENUM_DEFAULT_CHARSET,
        optional::ENUM_COLUMN_CHARSET,
    );
    put_charsets(out, kinds, collations);
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
    let visible = bits(columns.iter().map(|c| c.visible), true);
    put_field(out, optional::COLUMN_VISIBILITY, &visible);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Event, EventReader};

    #[test]
    fn year_counts_as_an_unsigned_number() {
        let types = [TypeKind::Year, TypeKind::Int].map(ColumnType::new);
        let columns = types.each_ref().map(|ty| TableColumn {
            name: "c",
            ty,
            nullable: true,
            visible: true,
        });
        let head = TableMapHead {
            id: 1,
            database: "d",
            table: "t",
            full: false,
            primary_key: &[],
        };
        let stamp = Stamp {
            timestamp: 0,
            server_id: 1,
        };
        let mut event = Vec::new();
        table_map_event(&mut event, stamp, &head, &columns);
        // As MySQL 9.7 writes it: field 1, a byte, the highest bit first.
        assert!(event.ends_with(&[1, 1, 0x80]), "{event:?}");
        let (_, read) = EventReader::new(false).read(&event).expect("an event");
        let Event::TableMap(map) = read else {
            panic!("no table map");
        };
        let unsigned = map.columns.iter().map(|c| c.unsigned);
        assert!(unsigned.eq([Some(true), Some(false)]));
    }

    /// The fields as MySQL 9.7 wrote them for columns with these collations.
    #[test]
    fn collations_are_written_as_by_mysql() {
        const L: u16 = 8;
        const G: u16 = 45;
        const U: u16 = 255;
        let cases: [(&[u16], &[u8]); 7] = [
            (&[], &[]),
            (&[U], &[2, 3, 252, 255, 0]),
            (&[U, L], &[3, 4, 252, 255, 0, 8]),
            (&[L, L, U], &[2, 5, 8, 2, 252, 255, 0]),
            (&[U, U, L, G], &[3, 8, 252, 255, 0, 252, 255, 0, 8, 45]),
            (&[L, L, U, U, U], &[2, 7, 252, 255, 0, 0, 8, 1, 8]),
            (&[G, G, G, G, L, L], &[2, 5, 45, 4, 8, 5, 8]),
        ];
        for (collations, written) in cases {
            let mut out = Vec::new();
            let kinds = (optional::DEFAULT_CHARSET, optional::COLUMN_CHARSET);
            put_charsets(&mut out, kinds, collations);
            assert_eq!(out, written, "{collations:?}");
        }
    }
}
