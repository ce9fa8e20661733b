//! Events that were written are read back.

use nfold_types::{
    CollationId, ColumnType, Date, DateTime, Decimal, TextSize, Time, Timestamp, TypeKind, Value,
};

use crate::write::{
    GtidHead, ImageColumns, RowsHead, Stamp, TableColumn, TableMapHead, end_statement,
    format_description, gtid, place, query_event, rows_event, split_events, table_map_event,
    write_value,
};
use crate::{
    Event, EventReader, Gtid, QueryContext, QueryEvent, RowChangeKind, RowValue, SourceUuid, Tag,
};

const STAMP: Stamp = Stamp {
    timestamp: 1_700_000_000,
    server_id: 7,
};

fn decimal(text: &str) -> Value {
    Value::Decimal(Decimal::parse(text).expect("a number"))
}

/// Types with values at their bounds.
fn samples() -> Vec<(ColumnType, Vec<Value>)> {
    let plain = ColumnType::new;
    let unsigned = |kind| ColumnType::new(kind).with_unsigned();
    let text = |kind| ColumnType::string(kind, CollationId::UTF8MB4_0900_AI_CI);
    let bytes = |b: &[u8]| Value::Bytes(b.to_vec());
    let members: std::sync::Arc<[Box<str>]> = ["a", "b", "c"].map(Box::from).into();
    let number = |precision, scale| TypeKind::Decimal { precision, scale };
    let date = Date::new(2024, 2, 29);
    let at = |fsp, micros| DateTime::new(date, 23, 59, 58, micros, fsp);
    let time = |micros, fsp| Value::Time(Time::from_micros(micros, fsp));
    vec![
        (
            plain(TypeKind::TinyInt),
            vec![Value::Int(-128), Value::Int(127)],
        ),
        (unsigned(TypeKind::TinyInt), vec![Value::UInt(255)]),
        (
            plain(TypeKind::MediumInt),
            vec![Value::Int(-8_388_608), Value::Int(1)],
        ),
        (plain(TypeKind::Int), vec![Value::Int(i32::MIN.into())]),
        (unsigned(TypeKind::BigInt), vec![Value::UInt(u64::MAX)]),
        (plain(TypeKind::Float), vec![Value::Float(-1.5)]),
        (plain(TypeKind::Double), vec![Value::Double(1e300)]),
        (
            plain(number(30, 10)),
            vec![
                decimal("-12345678901234567890.0123456789"),
                decimal("0.0000000000"),
                decimal("99999999999999999999.9999999999"),
            ],
        ),
        (
            plain(number(5, 5)),
            vec![decimal("-0.00001"), decimal("0.99999")],
        ),
        (
            plain(number(9, 0)),
            vec![decimal("-999999999"), decimal("1")],
        ),
        (plain(TypeKind::Bit(9)), vec![Value::UInt(0x1ff)]),
        (
            plain(TypeKind::Year),
            vec![Value::UInt(0), Value::UInt(2155)],
        ),
        (
            plain(TypeKind::Date),
            vec![Value::Date(date), Value::Date(Date::ZERO)],
        ),
        (plain(TypeKind::Time(0)), vec![time(-3_020_399_000_000, 0)]),
        (
            plain(TypeKind::Time(2)),
            vec![time(-500_000, 2), time(12_340_000, 2)],
        ),
        (
            plain(TypeKind::Time(6)),
            vec![time(-1, 6), time(45_296_789_012, 6)],
        ),
        (
            plain(TypeKind::DateTime(0)),
            vec![Value::DateTime(at(0, 0))],
        ),
        (
            plain(TypeKind::DateTime(3)),
            vec![Value::DateTime(at(3, 123_000))],
        ),
        (
            plain(TypeKind::DateTime(6)),
            vec![Value::DateTime(at(6, 999_999))],
        ),
        (
            plain(TypeKind::Timestamp(6)),
            vec![
                Value::Timestamp(Timestamp::from_micros(1_700_000_000_123_456, 6)),
                Value::Timestamp(Timestamp::ZERO.with_fsp(6)),
            ],
        ),
        (
            text(TypeKind::Char(255)),
            vec![bytes(b""), bytes("ü".repeat(255).as_bytes())],
        ),
        (text(TypeKind::VarChar(10)), vec![bytes(b"ten")]),
        (text(TypeKind::VarChar(300)), vec![bytes(&[b'x'; 300])]),
        (
            plain(TypeKind::Binary(6)),
            vec![bytes(b"ab\0\0\0\0"), bytes(&[0; 6])],
        ),
        (plain(TypeKind::VarBinary(300)), vec![bytes(b"ab\0\0")]),
        (plain(TypeKind::Blob(TextSize::Tiny)), vec![bytes(b"t")]),
        (
            text(TypeKind::Text(TextSize::Long)),
            vec![bytes(&[b'y'; 70_000])],
        ),
        (
            text(TypeKind::Enum(members.clone())),
            vec![Value::UInt(3), Value::UInt(0)],
        ),
        (text(TypeKind::Set(members)), vec![Value::UInt(5)]),
    ]
}

#[test]
fn written_rows_are_read_back() {
    let samples = samples();
    let columns: Vec<TableColumn<'_>> = samples
        .iter()
        .map(|(ty, _)| TableColumn {
            name: "c",
            ty,
            nullable: true,
            visible: true,
        })
        .collect();
    let all = ImageColumns::all(columns.len());
    for full in [false, true] {
        for round in 0..3 {
            let row: Vec<Value> = samples
                .iter()
                .map(|(_, values)| values.get(round).cloned().unwrap_or_default())
                .collect();
            let mut bytes = vec![0; columns.len().div_ceil(8)];
            for (i, value) in row.iter().enumerate() {
                match value {
                    Value::Null => bytes[i / 8] |= 1 << (i % 8),
                    value => write_value(columns[i].ty, value.as_ref(), &mut bytes).expect("fits"),
                }
            }
            let head = TableMapHead {
                id: 9,
                database: "d",
                table: "t",
                full,
                primary_key: &[(0, 0)],
            };
            let mut events = Vec::new();
            table_map_event(&mut events, STAMP, &head, &columns);
            let rows = RowsHead {
                kind: RowChangeKind::Insert,
                table_id: 9,
                columns: columns.len(),
                first: &all,
                second: &all,
                no_foreign_key_checks: true,
                no_unique_checks: false,
            };
            let at = events.len();
            rows_event(&mut events, STAMP, &rows, &bytes);
            end_statement(&mut events[at..]);
            let events = split_events(&events).expect("events");
            let mut reader = EventReader::new(false);
            let Ok((_, Event::TableMap(map))) = reader.read(events[0]) else {
                panic!("a table map");
            };
            let Ok((_, Event::Rows(event))) = reader.read(events[1]) else {
                panic!("rows");
            };
            assert!(event.ends_statement() && event.no_foreign_key_checks() && event.is_full());
            let types: Vec<&ColumnType> = samples.iter().map(|(ty, _)| ty).collect();
            for (format, ty) in map.columns.iter().zip(&types) {
                assert!(format.stores(ty), "{} {ty}", format.describe());
            }
            let mut cursor = event.rows(&map, &types).expect("the same columns");
            let (mut found, mut unused) = (Vec::new(), Vec::new());
            assert_eq!(cursor.next(&mut found, &mut unused), Ok(true));
            let wanted: Vec<RowValue> = row.into_iter().map(RowValue::Value).collect();
            assert_eq!(found, wanted);
            assert_eq!(cursor.next(&mut found, &mut unused), Ok(false));
        }
    }
}

#[test]
fn written_transaction_is_read_back() {
    let query = QueryEvent {
        thread: 3,
        error: 0,
        database: "d".into(),
        context: QueryContext {
            no_foreign_key_checks: true,
            sql_mode: Some(0x45a0_0020),
            auto_increment: Some((2, 1)),
            collations: Some((255, 255, 45)),
            time_zone: Some("+05:00".into()),
            microseconds: 999_999,
            explicit_defaults_for_timestamp: Some(true),
            collation_for_utf8mb4: Some(255),
            sql_require_primary_key: Some(false),
            is_atomic_ddl: true,
            updated_databases: vec!["d".into(), "e".into()],
            ..QueryContext::default()
        },
        sql: b"CREATE TABLE t (id INT)".to_vec(),
    };
    let mut body = Vec::new();
    query_event(&mut body, STAMP, &query);
    for rest in [100, 251 - 80, 70_000, 20_000_000] {
        let head = GtidHead {
            gtid: Some((SourceUuid([5; 16]), 12)),
            last_committed: 3,
            sequence_number: 4,
            commit_us: 1_700_000_000_000_000,
            rows_only: false,
            version: 90_700,
        };
        let mut first = Vec::new();
        gtid(&mut first, STAMP, &head, rest, true);
        let mut file = Vec::new();
        format_description(&mut file, STAMP, "9.7.0", true, 1);
        let mut reader = EventReader::new(false);
        let format = reader.read(&file).expect("a format");
        let Event::FormatDescription(format) = format.1 else {
            panic!("a format");
        };
        assert_eq!((format.version, format.checksums), (4, true));
        let start = 4 + file.len() as u64;
        let at = file.len();
        let middle = place(&mut file, &first, start, true).expect("an event");
        let behind = file.len();
        let end = place(&mut file, &body, middle, true).expect("an event");
        let (header, event) = reader.read(&file[at..behind]).expect("a GTID");
        assert_eq!(u64::from(header.end), middle);
        let Event::Gtid(event) = event else {
            panic!("a GTID");
        };
        let number = Gtid::MySql {
            uuid: SourceUuid([5; 16]),
            tag: Tag::default(),
            number: 12,
        };
        assert_eq!(event.gtid, Some(number));
        assert_eq!((event.last_committed, event.sequence_number), (3, 4));
        let (header, event) = reader.read(&file[behind..]).expect("a statement");
        assert_eq!(u64::from(header.end), end);
        assert_eq!(event, Event::Query(Box::new(query.clone())));
    }
}
