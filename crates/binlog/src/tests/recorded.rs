//! The events of files that a MySQL 9.7 and a MariaDB 10.11 wrote, as texts beside them
//! (`tests/replication/recorded/make` and `make-mariadb`). `tests/replication/run` compares values
//! with what the servers answer to SELECT.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use nfold_types::{CollationId, ColumnType, TextSize, TypeKind, Value};

use crate::value::field;
use crate::{
    BinlogError, ColumnFormat, Event, EventReader, Header, RowValue, TableMap, apply_diffs,
    event_name,
};

/// A recorded file.
struct Recorded {
    name: &'static str,
    file: &'static [u8],
    text: &'static str,
}

static MYSQL: Recorded = Recorded {
    name: "mysql97",
    file: include_bytes!("../../../../tests/replication/recorded/mysql97.binlog"),
    text: include_str!("../../../../tests/replication/recorded/mysql97.txt"),
};
static MARIADB: Recorded = Recorded {
    name: "mariadb1011",
    file: include_bytes!("../../../../tests/replication/recorded/mariadb1011.binlog"),
    text: include_str!("../../../../tests/replication/recorded/mariadb1011.txt"),
};
/// The bytes before the first event.
const MAGIC: usize = 4;

/// A column type that stores the values of a format, for tables whose definition is not known.
fn type_of(format: &ColumnFormat) -> ColumnType {
    let (a, b) = format.metadata;
    let members = |n: usize| Arc::from(vec![Box::from("m"); n]);
    let mut ty = ColumnType::new(match format.real_code() {
        field::TINY => TypeKind::TinyInt,
        field::SHORT => TypeKind::SmallInt,
        field::INT24 => TypeKind::MediumInt,
        field::LONG => TypeKind::Int,
        field::LONGLONG => TypeKind::BigInt,
        field::FLOAT => TypeKind::Float,
        field::DOUBLE => TypeKind::Double,
        field::NEWDECIMAL => TypeKind::Decimal {
            precision: a,
            scale: b,
        },
        field::YEAR => TypeKind::Year,
        field::DATE => TypeKind::Date,
        field::OLD_TIME => TypeKind::Time(0),
        field::OLD_DATETIME => TypeKind::DateTime(0),
        field::OLD_TIMESTAMP => TypeKind::Timestamp(0),
        field::TIME2 => TypeKind::Time(a),
        field::DATETIME2 => TypeKind::DateTime(a),
        field::TIMESTAMP2 => TypeKind::Timestamp(a),
        field::BIT => TypeKind::Bit(b * 8 + a),
        field::VARCHAR => TypeKind::VarBinary(u16::from_le_bytes([a, b]).into()),
        field::STRING => TypeKind::Binary(0),
        field::ENUM => TypeKind::Enum(members(if b == 1 { 1 } else { 256 })),
        field::SET => TypeKind::Set(members(8 * usize::from(b))),
        field::JSON => TypeKind::Json,
        field::BLOB => TypeKind::Blob(match a {
            1 => TextSize::Tiny,
            2 => TextSize::Normal,
            3 => TextSize::Medium,
            _ => TextSize::Long,
        }),
        other => panic!("type {other}"),
    });
    ty.unsigned = format.unsigned == Some(true);
    ty.collation = format.collation.unwrap_or(CollationId::BINARY);
    match (ty.kind.clone(), ty.collation.known().charset.max_len) {
        (TypeKind::VarBinary(n), max) if ty.collation != CollationId::BINARY => {
            ty.kind = TypeKind::VarChar(n / u32::from(max));
        }
        (TypeKind::Binary(_), max) => {
            let bytes = (usize::from((a & 0x30) ^ 0x30) << 4) + usize::from(b);
            ty.kind = match ty.collation == CollationId::BINARY {
                true => TypeKind::Binary(bytes as u32),
                false => TypeKind::Char(bytes as u32 / u32::from(max)),
            };
        }
        _ => {}
    }
    assert!(format.stores(&ty), "{format:?} {ty:?}");
    ty
}

/// A document as text, or the bytes of a string, shortened.
fn show(value: &RowValue, ty: &ColumnType, old: Option<&RowValue>) -> String {
    let json = |bytes: &[u8]| {
        let doc = nfold_json::Doc::new(bytes).expect("a document");
        let work = nfold_json::Work::new(&nfold_types::NoCheckpoint);
        let mut text = Vec::new();
        nfold_json::print(doc, &work, &mut text).expect("prints");
        String::from_utf8(text).expect("utf8")
    };
    let shown = match value {
        RowValue::Absent => "-".into(),
        RowValue::Value(Value::Null) => "NULL".into(),
        RowValue::Value(Value::Bytes(b)) if ty.kind == TypeKind::Json => json(b),
        RowValue::Value(Value::Bytes(b)) => format!("'{}'", b.escape_ascii()),
        RowValue::Value(v) => {
            let mut text = Vec::new();
            let zone = nfold_types::temporal::TimeZone::UTC;
            nfold_types::wire::display_text(v.as_ref(), ty, &zone, &mut text);
            String::from_utf8_lossy(&text).into_owned()
        }
        RowValue::JsonDiffs(diffs) => match old {
            Some(RowValue::Value(Value::Bytes(old))) => {
                format!(
                    "diffs to {}",
                    json(&apply_diffs(old, diffs).expect("applies"))
                )
            }
            _ => format!("diffs of {} bytes", diffs.len()),
        },
    };
    match shown.len() {
        0..160 => shown,
        n => format!("{}...{n}", shown.chars().take(60).collect::<String>()),
    }
}

/// Appends an event to the text.
fn print(
    (header, event): (&Header, Event),
    tables: &mut HashMap<u64, TableMap>,
    out: &mut String,
) -> Result<(), BinlogError> {
    write!(out, "{} {} ", header.end, event_name(header.code)).expect("writes");
    match event {
        Event::TableMap(map) => {
            let types: Vec<String> = map.columns.iter().map(ColumnFormat::describe).collect();
            writeln!(out, "{}.{} {}", map.database, map.table, types.join(", ")).expect("writes");
            tables.insert(map.id, *map);
        }
        Event::Rows(rows) => {
            let map = &tables[&rows.table_id];
            let types: Vec<ColumnType> = map.columns.iter().map(type_of).collect();
            let refs: Vec<&ColumnType> = types.iter().collect();
            writeln!(out, "{:?} end={}", rows.kind, rows.ends_statement()).expect("writes");
            let (mut first, mut second) = (Vec::new(), Vec::new());
            let mut cursor = rows.rows(map, &refs)?;
            while cursor.next(&mut first, &mut second)? {
                for (n, image) in [&first, &second].iter().enumerate() {
                    let old = |i| first.get(i).filter(|_| n == 1);
                    let values = image.iter().enumerate();
                    let values = values.map(|(i, v)| show(v, &types[i], old(i)));
                    let values: Vec<String> = values.collect();
                    if !values.is_empty() {
                        let sign = if n == 0 { ' ' } else { '>' };
                        writeln!(out, "  {sign} {}", values.join(" | ")).expect("writes");
                    }
                }
            }
        }
        Event::Query(q) => writeln!(
            out,
            "{:?} {} {:?}",
            q.database,
            q.sql.escape_ascii(),
            q.context
        )
        .expect("writes"),
        Event::Payload(payload) => {
            writeln!(out, "{{").expect("writes");
            payload.each(&mut |header, event| print((header, event), tables, out))?;
            writeln!(out, "}}").expect("writes");
        }
        Event::RowsQuery(text) => writeln!(out, "{}", text.escape_ascii()).expect("writes"),
        other => writeln!(out, "{other:?}").expect("writes"),
    }
    Ok(())
}

/// The events of a file as text, up to an event that cannot be read.
fn dump(file: &[u8]) -> (String, Result<(), BinlogError>) {
    let mut reader = EventReader::new(false);
    let (mut at, mut out, mut tables) = (MAGIC, String::new(), HashMap::new());
    while at < file.len() {
        let size = match Header::read(&file[at..]) {
            Ok(header) => header.size as usize,
            Err(e) => return (out, Err(e)),
        };
        let bytes = file.get(at..at + size);
        let read = bytes.ok_or(BinlogError::Malformed("size"));
        let read = read.and_then(|bytes| reader.read(bytes));
        let printed = read.and_then(|(h, event)| print((&h, event), &mut tables, &mut out));
        if let Err(e) = printed {
            return (out, Err(e));
        }
        at += size;
    }
    (out, Ok(()))
}

fn reads_as_its_text(recorded: &Recorded) {
    let (text, end) = dump(recorded.file);
    if let Ok(directory) = std::env::var("NFOLD_RECORD_EVENTS") {
        let path = format!("{directory}/{}.txt", recorded.name);
        std::fs::write(path, &text).expect("writes");
    }
    assert_eq!(end, Ok(()));
    for (line, (found, expected)) in text.lines().zip(recorded.text.lines()).enumerate() {
        assert_eq!(found, expected, "line {}", line + 1);
    }
    assert_eq!(text.lines().count(), recorded.text.lines().count());
}

#[test]
fn recorded_file_of_mysql_reads_as_its_text() {
    reads_as_its_text(&MYSQL);
}

#[test]
fn recorded_file_of_mariadb_reads_as_its_text() {
    reads_as_its_text(&MARIADB);
}

#[test]
fn changed_byte_fails_its_checksum() {
    for recorded in [&MYSQL, &MARIADB] {
        for at in (MAGIC..recorded.file.len()).step_by(37) {
            let mut file = recorded.file.to_vec();
            file[at] ^= 0x10;
            assert!(dump(&file).1.is_err(), "{}: byte {at}", recorded.name);
        }
    }
}

#[test]
fn truncated_file_is_an_error() {
    for Recorded { name, file, .. } in [&MYSQL, &MARIADB] {
        // A file may end between two events.
        let mut ends = vec![MAGIC];
        while let Some(at) = ends.last().filter(|at| **at < file.len()) {
            let header = Header::read(&file[*at..]).expect("a header");
            ends.push(at + header.size as usize);
        }
        for at in (MAGIC..file.len())
            .filter(|at| !ends.contains(at))
            .step_by(29)
        {
            assert!(dump(&file[..at]).1.is_err(), "{name}: length {at}");
        }
    }
}

#[test]
fn damaged_events_of_mysql_do_not_panic() {
    damage(MYSQL.file);
}

#[test]
fn damaged_events_of_mariadb_do_not_panic() {
    damage(MARIADB.file);
}

fn damage(file: &[u8]) {
    // Without checksums, damage reaches the decoder.
    let mut plain = file.to_vec();
    let size = Header::read(&file[MAGIC..]).expect("a header").size as usize;
    plain[MAGIC + size - 5] = 0;
    for at in MAGIC + size..plain.len() {
        for bit in [0x01, 0x80] {
            let mut file = plain.clone();
            file[at] ^= bit;
            let mut reader = EventReader::new(false);
            let first = &file[MAGIC..MAGIC + size];
            reader.read(first).expect("a format without checksums");
            let mut from = MAGIC + size;
            let mut tables = HashMap::new();
            while let Ok(header) = Header::read(file.get(from..).unwrap_or_default()) {
                let end = from.saturating_add(header.size as usize);
                // The last four bytes are the checksum.
                let Some(bytes) = file.get(from..end).filter(|b| b.len() >= 23) else {
                    break;
                };
                let mut bytes = bytes[..bytes.len() - 4].to_vec();
                let size = (bytes.len() as u32).to_le_bytes();
                bytes[9..13].copy_from_slice(&size);
                if from <= at
                    && at < end
                    && let Ok((_, event)) = reader.read(&bytes)
                {
                    read_rows(event, &mut tables);
                } else if let Ok((_, Event::TableMap(map))) = reader.read(&bytes) {
                    tables.insert(map.id, *map);
                }
                if from > at {
                    break;
                }
                from = end;
            }
        }
    }
}

/// Reads what an event holds, and ignores errors.
fn read_rows(event: Event, tables: &mut HashMap<u64, TableMap>) {
    match event {
        Event::TableMap(map) => drop(tables.insert(map.id, *map)),
        Event::Rows(rows) => {
            let Some(map) = tables.get(&rows.table_id) else {
                return;
            };
            let types: Vec<ColumnType> = map.columns.iter().map(type_of).collect();
            let refs: Vec<&ColumnType> = types.iter().collect();
            let (mut first, mut second) = (Vec::new(), Vec::new());
            if let Ok(mut cursor) = rows.rows(map, &refs) {
                while let Ok(true) = cursor.next(&mut first, &mut second) {}
            }
        }
        Event::Payload(payload) => {
            let mut ignored = |_: &Header, event: Event| -> Result<(), BinlogError> {
                read_rows(event, tables);
                Ok(())
            };
            let _ = payload.each(&mut ignored);
        }
        _ => {}
    }
}
