//! The answers in `recorded_store.tsv` are those of a MySQL 9.7.

use super::*;
use crate::TextSize;
use crate::temporal::parse::{parse_datetime, parse_time};
use crate::testing::column;

pub(super) fn mode(strict: bool) -> StoreMode {
    let midnight = Date::new(2026, 11, 21).at_midnight();
    let (now, _) = TimeZone::UTC.to_instant(midnight).expect("an instant");
    StoreMode {
        strict,
        ignore: false,
        dates: DateFlags {
            no_zero_in_date: strict,
            no_zero_date: strict,
            allow_invalid: false,
        },
        truncate_fractional: false,
        time_zone: TimeZone::UTC,
        now,
    }
}

/// A literal of SQL as a value and the collation of its strings.
fn literal(text: &str) -> (Value, CollationId) {
    let utf8 = CollationId::UTF8MB4_0900_AI_CI;
    let quoted = |t: &str| t.trim_matches('\'').as_bytes().to_vec();
    let at = |t: &str| {
        parse_datetime(&quoted(t), DateFlags::default())
            .expect("a date")
            .value
    };
    if let Some(rest) = text.strip_prefix("x'") {
        let hex = rest.trim_end_matches('\'').as_bytes();
        let byte = |pair: &[u8]| {
            u8::from_str_radix(std::str::from_utf8(pair).expect("ASCII"), 16).expect("hexadecimal")
        };
        return (
            Value::Bytes(hex.chunks(2).map(byte).collect()),
            CollationId::BINARY,
        );
    }
    let value = if text.starts_with('\'') {
        Value::Bytes(quoted(text))
    } else if let Some(rest) = text.strip_prefix("DATE") {
        Value::Date(at(rest).date())
    } else if let Some(rest) = text.strip_prefix("TIMESTAMP") {
        Value::DateTime(at(rest))
    } else if let Some(rest) = text.strip_prefix("TIME") {
        Value::Time(parse_time(&quoted(rest)).expect("a time").value)
    } else if text.contains('e') {
        Value::Double(text.parse().expect("a double"))
    } else if text.contains('.') {
        Value::Decimal(Decimal::parse(text).expect("a decimal"))
    } else {
        text.parse::<i64>().map_or_else(
            |_| Value::UInt(text.parse().expect("an integer")),
            Value::Int,
        )
    };
    (value, utf8)
}

/// The answer in the form of the recorded file.
fn answer(ty: &ColumnType, literal: &(Value, CollationId), strict: bool) -> String {
    let mode = mode(strict);
    let mut warnings = Warnings::default();
    let mut cx = StoreCx {
        mode: &mode,
        column: "v",
        row: 1,
        from: CollationId::UTF8MB4_BIN,
        warnings: &mut warnings,
    };
    let cut = |m: &str| m.replace(" for column 'v' at row 1", "");
    let value = match store_value(literal.0.as_ref(), literal.1, ty, &mut cx) {
        Ok(value) => value,
        Err(e) => return format!("E {} {}", e.errno(), cut(&e.message)),
    };
    let layout = crate::row::RowLayout::new(
        1,
        [crate::row::RowColumn {
            ty: ty.clone(),
            nullable: false,
        }],
    );
    let mut row = Vec::new();
    layout
        .encode([value.as_ref()], &mut row)
        .expect("a stored value fits its row");
    assert_eq!(
        layout.get(&row, 0).map(ValueRef::to_owned),
        Ok(value.clone()),
        "{ty}"
    );
    let mut text = Vec::new();
    crate::wire::display_text(value.as_ref(), ty, &TimeZone::UTC, &mut text);
    let mut out = match (&ty.kind, &value) {
        (TypeKind::Bit(_), Value::UInt(v)) => format!("{v:X}"),
        // CONCAT took it to text.
        (TypeKind::Float, Value::Float(v)) if ty.width == 0 => {
            text.clear();
            crate::number::write_float_as_text(*v, &mut text);
            String::from_utf8(text).expect("text")
        }
        _ if ty.is_string() => text.iter().map(|b| format!("{b:02X}")).collect(),
        _ => String::from_utf8(text).expect("text"),
    };
    // Recorded without the warnings about unusual delimiters.
    let odd = ErrorCode::ER_WARN_DEPRECATED_DATETIME_DELIMITER;
    for w in warnings.list().iter().filter(|w| w.code != odd) {
        let note = if w.level == Level::Note { "Note " } else { "" };
        out.push_str(&format!("|{note}{} {}", w.code.errno(), cut(&w.message)));
    }
    out
}

#[test]
fn columns_take_values_as_recorded() {
    let (mut wrong, mut count) = (Vec::new(), 0);
    for line in include_str!("../recorded_store.tsv")
        .lines()
        .filter(|l| !l.starts_with('#'))
    {
        let [ty, text, strict, lax] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("four columns: {line}")
        };
        let (ty, value) = (column(ty), literal(text));
        let lax = if lax == "=" { strict } else { lax };
        for (mode, want) in [(true, strict), (false, lax)] {
            count += 1;
            let got = answer(&ty, &value, mode);
            // Some fields of 9.7 report the same warning twice; here each is given once.
            let twice = "|1264 Out of range value|1264 Out of range value";
            if got != want.replace(twice, "|1264 Out of range value") {
                wrong.push(format!(
                    "{ty} {text} strict={mode}\n  got  {got}\n  want {want}"
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {count} wrong\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn ignore_makes_warnings_of_errors() {
    // As INSERT IGNORE in strict mode: (column, literal, value, warning).
    let cases = [
        ("date", "''", "0000-00-00", 1265),
        ("date", "'2020-02-30'", "0000-00-00", 1264),
        ("int", "'1x'", "1", 1265),
        ("int", "1e20", "2147483647", 1264),
        ("datetime", "'0000-00-00'", "0000-00-00 00:00:00", 1264),
        ("datetime", "'2020-00-01'", "0000-00-00 00:00:00", 1264),
        ("decimal(5,2)", "'1x'", "1.00", 1265),
        ("time", "'25:00:00x'", "25:00:00", 1265),
    ];
    for (ty, text, want, code) in cases {
        let (ty, value) = (column(ty), literal(text));
        let mode = StoreMode {
            ignore: true,
            ..mode(true)
        };
        let mut warnings = Warnings::default();
        let mut cx = StoreCx {
            mode: &mode,
            column: "v",
            row: 1,
            from: CollationId::UTF8MB4_BIN,
            warnings: &mut warnings,
        };
        let stored =
            store_value(value.0.as_ref(), value.1, &ty, &mut cx).expect("IGNORE gives no error");
        let mut out = Vec::new();
        crate::wire::display_text(stored.as_ref(), &ty, &TimeZone::UTC, &mut out);
        assert_eq!(String::from_utf8_lossy(&out), want);
        assert_eq!(
            warnings
                .list()
                .iter()
                .map(|w| w.code.errno())
                .collect::<Vec<_>>(),
            [code]
        );
    }
    let mode = StoreMode {
        ignore: true,
        ..mode(true)
    };
    let mut warnings = Warnings::default();
    let mut cx = StoreCx {
        mode: &mode,
        column: "v",
        row: 1,
        from: CollationId::UTF8MB4_BIN,
        warnings: &mut warnings,
    };
    assert_eq!(
        store_value(
            ValueRef::Int(3),
            CollationId::BINARY,
            &column("bit(1)"),
            &mut cx
        ),
        Ok(Value::UInt(1))
    );
    assert_eq!(warnings.list()[0].code, ErrorCode::ER_DATA_TOO_LONG);
}

#[test]
fn date_flags_and_fractions() {
    let store = |mode: &StoreMode, ty: &str, text: &str| {
        let mut warnings = Warnings::default();
        let mut cx = StoreCx {
            mode,
            column: "v",
            row: 1,
            from: CollationId::UTF8MB4_BIN,
            warnings: &mut warnings,
        };
        let (ty, value) = (column(ty), literal(text));
        let stored = store_value(value.0.as_ref(), value.1, &ty, &mut cx).expect("no strict mode");
        let mut out = Vec::new();
        crate::wire::display_text(stored.as_ref(), &ty, &TimeZone::UTC, &mut out);
        (
            String::from_utf8(out).expect("text"),
            warnings
                .list()
                .iter()
                .map(|w| w.code.errno())
                .collect::<Vec<_>>(),
        )
    };
    let zeros = StoreMode {
        dates: DateFlags {
            no_zero_date: true,
            no_zero_in_date: true,
            allow_invalid: false,
        },
        ..mode(false)
    };
    assert_eq!(
        store(&zeros, "date", "'0000-00-00'"),
        ("0000-00-00".into(), vec![1264])
    );
    assert_eq!(
        store(&zeros, "date", "'2020-00-01'"),
        ("0000-00-00".into(), vec![1264])
    );
    assert_eq!(
        store(&zeros, "datetime", "20200001"),
        ("0000-00-00 00:00:00".into(), vec![1265])
    );
    assert_eq!(
        store(&mode(false), "date", "'0'"),
        ("0000-00-00".into(), vec![1264])
    );
    let invalid = StoreMode {
        dates: DateFlags {
            allow_invalid: true,
            ..DateFlags::default()
        },
        ..mode(false)
    };
    assert_eq!(
        store(&invalid, "date", "'2020-02-30'"),
        ("2020-02-30".into(), vec![])
    );
    assert_eq!(
        store(&invalid, "timestamp", "'2020-02-30'"),
        ("0000-00-00 00:00:00".into(), vec![1264])
    );
    let cut = StoreMode {
        truncate_fractional: true,
        ..mode(false)
    };
    assert_eq!(
        store(&cut, "datetime", "'2020-02-20 10:10:10.9'"),
        ("2020-02-20 10:10:10".into(), vec![])
    );
    assert_eq!(
        store(&mode(true), "date", "'2020-01-01 23:59:59.9'"),
        ("2020-01-02".into(), vec![])
    );
    assert_eq!(
        store(&mode(true), "varchar(3)", "123.456e0"),
        ("123".into(), vec![])
    );
    assert_eq!(
        store(&mode(true), "varchar(5)", "0.123456789e0"),
        ("0.123".into(), vec![])
    );
    assert_eq!(
        store(&mode(true), "varchar(5)", "123456789e0"),
        ("1.2e8".into(), vec![])
    );
    assert_eq!(
        store(&mode(true), "year", "DATE'2020-01-01'"),
        ("2020".into(), vec![])
    );
    assert_eq!(
        store(&mode(true), "year", "TIME'10:00:00'"),
        ("2026".into(), vec![])
    );
}

#[test]
fn long_texts_are_cut_at_characters() {
    let ty = ColumnType::string(
        TypeKind::Text(TextSize::Tiny),
        CollationId::UTF8MB4_0900_AI_CI,
    );
    let text = "é".repeat(200);
    let lax = mode(false);
    let mut warnings = Warnings::default();
    let mut cx = StoreCx {
        mode: &lax,
        column: "v",
        row: 1,
        from: CollationId::UTF8MB4_BIN,
        warnings: &mut warnings,
    };
    let stored = store_value(ValueRef::Bytes(text.as_bytes()), ty.collation, &ty, &mut cx);
    assert_eq!(stored, Ok(Value::from("é".repeat(127))));
    let strict = mode(true);
    let mut cx = StoreCx {
        mode: &strict,
        column: "v",
        row: 1,
        from: CollationId::UTF8MB4_BIN,
        warnings: &mut warnings,
    };
    let error = store_value(ValueRef::Bytes(text.as_bytes()), ty.collation, &ty, &mut cx)
        .expect_err("strict");
    assert_eq!((error.errno(), error.sqlstate()), (1406, "22001"));
}

/// Texts are checked and copied in pieces.
#[test]
fn long_texts_are_stored_whole() {
    let ty = ColumnType::string(
        TypeKind::Text(TextSize::Long),
        CollationId::UTF8MB4_0900_AI_CI,
    );
    let strict = mode(true);
    for len in [0, 1, 8191, 8192, 8193, 40_000] {
        for end in ["", "é", "\u{1F600}"] {
            let text = format!("{}{end}", "a".repeat(len));
            let mut warnings = Warnings::default();
            let mut cx = StoreCx {
                mode: &strict,
                column: "v",
                row: 1,
                from: CollationId::UTF8MB4_BIN,
                warnings: &mut warnings,
            };
            let value = ValueRef::Bytes(text.as_bytes());
            let stored = store_value(value, ty.collation, &ty, &mut cx);
            assert_eq!(
                stored,
                Ok(Value::from(text.clone())),
                "{len} bytes and {end:?}"
            );
            let bad = [text.as_bytes(), b"\xFF"].concat();
            let stored = store_value(ValueRef::Bytes(&bad), ty.collation, &ty, &mut cx);
            let error = stored.expect_err("not UTF-8");
            assert_eq!(error.errno(), 1366, "{len} bytes and {end:?}");
        }
    }
}

#[test]
fn defaults_fit_their_columns() {
    for ty in [
        "int",
        "bigint unsigned",
        "decimal(5,2)",
        "float",
        "double",
        "date",
        "time(3)",
        "datetime",
        "timestamp(3)",
        "year",
        "char(3)",
        "binary(3)",
        "text",
        "enum('a')",
        "set('a')",
        "bit(8)",
    ] {
        let ty = column(ty);
        let default = implicit_default(&ty);
        let layout = crate::row::RowLayout::new(
            1,
            [crate::row::RowColumn {
                ty: ty.clone(),
                nullable: false,
            }],
        );
        let mut row = Vec::new();
        layout.encode([default.as_ref()], &mut row).expect("fits");
        assert_eq!(
            layout.get(&row, 0).map(ValueRef::to_owned),
            Ok(default),
            "{ty}"
        );
    }
}

#[test]
fn local_times_that_do_not_exist() {
    let zone = TimeZone::parse("Europe/Helsinki").expect("a zone");
    let ty = column("timestamp(3)");
    let value = ValueRef::Bytes(b"2021-03-28 03:30:00.123");
    let mut warnings = Warnings::default();
    let lax = StoreMode {
        time_zone: zone.clone(),
        ..mode(false)
    };
    let mut cx = StoreCx {
        mode: &lax,
        column: "v",
        row: 1,
        from: CollationId::UTF8MB4_BIN,
        warnings: &mut warnings,
    };
    let stored = store_value(value, CollationId::UTF8MB4_0900_AI_CI, &ty, &mut cx);
    assert_eq!(
        stored,
        Ok(Value::Timestamp(Timestamp::from_micros(
            1_616_893_200_123_000,
            3
        )))
    );
    assert_eq!(
        warnings.list()[0].code,
        ErrorCode::ER_WARN_INVALID_TIMESTAMP
    );
    let strict = StoreMode {
        time_zone: zone,
        ..mode(true)
    };
    let mut cx = StoreCx {
        mode: &strict,
        column: "v",
        row: 1,
        from: CollationId::UTF8MB4_BIN,
        warnings: &mut warnings,
    };
    let error =
        store_value(value, CollationId::UTF8MB4_0900_AI_CI, &ty, &mut cx).expect_err("strict");
    assert_eq!(
        &*error.message,
        "Incorrect datetime value: '2021-03-28 03:30:00.123' for column 'v' at row 1"
    );
}
