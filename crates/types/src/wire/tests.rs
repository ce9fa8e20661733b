use super::*;
use crate::temporal::Timestamp;
use crate::{CollationId, TextSize, Value};
use proptest::prelude::*;

fn text(value: &Value, ty: &ColumnType) -> Vec<u8> {
    let mut out = Vec::new();
    write_text(value.as_ref(), ty, &TimeZone::Fixed(3600), &mut out);
    out
}

fn binary(value: &Value, ty: &ColumnType) -> Vec<u8> {
    let mut out = Vec::new();
    write_binary(value.as_ref(), ty, &TimeZone::Fixed(3600), &mut out);
    out
}

fn lenenc_text(s: &str) -> Vec<u8> {
    let mut out = Vec::new();
    write_bytes(s.as_bytes(), &mut out);
    out
}

#[test]
fn text_rows() {
    let ty = ColumnType::new;
    let mut zerofill = ty(TypeKind::Int).with_unsigned();
    zerofill.zerofill = true;
    let mut fixed = ty(TypeKind::Float);
    (fixed.width, fixed.decimals) = (7, 4);
    let date = Date::new(2024, 2, 29);
    let members = |m: &[&str]| m.iter().map(|s| Box::from(*s)).collect::<Vec<_>>().into();
    let cases: Vec<(Value, ColumnType, &str)> = vec![
        (Value::Int(-42), ty(TypeKind::Int), "-42"),
        (
            Value::UInt(u64::MAX),
            ty(TypeKind::BigInt).with_unsigned(),
            "18446744073709551615",
        ),
        (Value::UInt(42), zerofill, "0000000042"),
        (Value::Double(0.5), ty(TypeKind::Double), "0.5"),
        (Value::Float(2.5), ty(TypeKind::Float), "2.5"),
        (Value::Float(3.141_55), fixed, "3.1416"),
        (
            Value::Decimal(Decimal::parse("-1.50").expect("a decimal")),
            ColumnType::decimal(5, 2),
            "-1.50",
        ),
        (
            Value::from("abc"),
            ColumnType::varchar(3, CollationId::UTF8MB4_BIN),
            "abc",
        ),
        (Value::UInt(0), ty(TypeKind::Year), "0000"),
        (Value::UInt(2024), ty(TypeKind::Year), "2024"),
        (Value::Date(date), ty(TypeKind::Date), "2024-02-29"),
        (
            Value::DateTime(DateTime::new(date, 1, 2, 3, 450_000, 0)),
            ty(TypeKind::DateTime(3)),
            "2024-02-29 01:02:03.450",
        ),
        (
            Value::Timestamp(Timestamp::from_micros(0, 0)),
            ty(TypeKind::Timestamp(0)),
            "1970-01-01 01:00:00",
        ),
        (
            Value::Time(Time::from_micros(-3_600_000_000, 0)),
            ty(TypeKind::Time(0)),
            "-01:00:00",
        ),
        (
            Value::UInt(2),
            ColumnType::string(
                TypeKind::Enum(members(&["x", "yy"])),
                CollationId::UTF8MB4_BIN,
            ),
            "yy",
        ),
        (
            Value::UInt(3),
            ColumnType::string(
                TypeKind::Set(members(&["x", "yy"])),
                CollationId::UTF8MB4_BIN,
            ),
            "x,yy",
        ),
    ];
    for (value, ty, want) in cases {
        assert_eq!(text(&value, &ty), lenenc_text(want), "{value:?}");
    }
    assert_eq!(text(&Value::Null, &ty(TypeKind::Int)), [0xFB]);
    assert_eq!(
        text(&Value::UInt(0x0102), &ty(TypeKind::Bit(12))),
        [2, 1, 2]
    );
    let mut wide = ty(TypeKind::Double);
    (wide.width, wide.decimals) = (255, 30);
    let written = text(&Value::Double(1e250), &wide);
    assert_eq!(
        (written[0], written[1..3].to_vec(), written.len()),
        (0xFC, 281u16.to_le_bytes().to_vec(), 284)
    );
    let long = Value::Bytes(vec![b'x'; 300]);
    assert_eq!(
        text(&long, &ty(TypeKind::Blob(TextSize::Normal)))[..4],
        [0xFC, 44, 1, b'x']
    );
}

#[test]
fn binary_rows() {
    let ty = ColumnType::new;
    assert_eq!(binary(&Value::Int(-2), &ty(TypeKind::TinyInt)), [0xFE]);
    assert_eq!(
        binary(&Value::Int(-2), &ty(TypeKind::MediumInt)),
        [0xFE, 0xFF, 0xFF, 0xFF]
    );
    assert_eq!(binary(&Value::UInt(2024), &ty(TypeKind::Year)), [0xE8, 7]);
    assert_eq!(
        binary(&Value::Double(1.0), &ty(TypeKind::Double)),
        1.0f64.to_le_bytes()
    );
    assert_eq!(binary(&Value::Null, &ty(TypeKind::Int)), []);
    let date = Date::new(2024, 2, 29);
    assert_eq!(
        binary(&Value::Date(date), &ty(TypeKind::Date)),
        [4, 0xE8, 7, 2, 29]
    );
    assert_eq!(binary(&Value::Date(Date::ZERO), &ty(TypeKind::Date)), [0]);
    let dt = DateTime::new(date, 1, 2, 3, 4, 6);
    assert_eq!(
        binary(&Value::DateTime(dt), &ty(TypeKind::DateTime(6))),
        [11, 0xE8, 7, 2, 29, 1, 2, 3, 4, 0, 0, 0]
    );
    let time = Time::from_micros(-(25 * 3600 + 61) * MICROS, 0);
    assert_eq!(
        binary(&Value::Time(time), &ty(TypeKind::Time(0))),
        [8, 1, 1, 0, 0, 0, 1, 1, 1]
    );
}

const MICROS: i64 = 1_000_000;

#[test]
fn malformed_parameters_are_errors() {
    assert_eq!(
        read_param(3, false, &mut &[1, 2, 3][..]),
        Err(ParamError::Malformed)
    );
    assert_eq!(
        read_param(253, false, &mut &[5, b'a'][..]),
        Err(ParamError::Malformed)
    );
    assert_eq!(
        read_param(253, false, &mut &[0xFF][..]),
        Err(ParamError::Malformed)
    );
    assert_eq!(
        read_param(12, false, &mut &[3, 1, 2, 3][..]),
        Err(ParamError::Malformed)
    );
    assert_eq!(
        read_param(77, false, &mut &[][..]),
        Err(ParamError::UnknownType(77))
    );
    assert_eq!(
        read_param(12, false, &mut &[4, 0xE8, 7, 13, 1][..]),
        Ok(Value::DateTime(DateTime::ZERO))
    );
}

fn values() -> impl Strategy<Value = (Value, ColumnType)> {
    let ty = ColumnType::new;
    prop_oneof![
        any::<i8>().prop_map(move |v| (Value::Int(i64::from(v)), ty(TypeKind::TinyInt))),
        any::<i16>().prop_map(move |v| (Value::Int(i64::from(v)), ty(TypeKind::SmallInt))),
        any::<u32>()
            .prop_map(move |v| (Value::UInt(u64::from(v)), ty(TypeKind::Int).with_unsigned())),
        any::<i64>().prop_map(move |v| (Value::Int(v), ty(TypeKind::BigInt))),
        (-1e300f64..1e300).prop_map(move |v| (Value::Double(v), ty(TypeKind::Double))),
        (any::<i32>(), 0u8..9).prop_map(move |(v, s)| {
            let d = Decimal::from(i64::from(v)).rescale(s).expect("fits");
            (Value::Decimal(d), ColumnType::decimal(30, s))
        }),
        prop::collection::vec(any::<u8>(), 0..400)
            .prop_map(move |v| (Value::Bytes(v), ty(TypeKind::VarBinary(400)))),
        (1u32..3_652_424, 0i64..86_400_000_000).prop_map(move |(d, us)| {
            let date = crate::temporal::calendar::date_of_day_number(d);
            (
                Value::DateTime(DateTime::at(date, us, 6)),
                ty(TypeKind::DateTime(6)),
            )
        }),
        (-3_020_399_000_000i64..=3_020_399_000_000)
            .prop_map(move |us| (Value::Time(Time::from_micros(us, 6)), ty(TypeKind::Time(6)))),
    ]
}

proptest! {
    #[test]
    fn parameters_read_what_rows_write((value, ty) in values()) {
        let mut bytes = binary(&value, &ty);
        bytes.push(0x55);
        let mut input = &bytes[..];
        let back = read_param(ty.wire_type() as u8, ty.unsigned, &mut input);
        prop_assert_eq!(back, Ok(value));
        prop_assert_eq!(input, [0x55]);
    }

    #[test]
    fn any_bytes_are_read_without_panic(code: u8, unsigned: bool, bytes in prop::collection::vec(any::<u8>(), 0..20)) {
        let mut input = &bytes[..];
        if read_param(code, unsigned, &mut input).is_ok() {
            prop_assert!(input.len() <= bytes.len());
        }
    }
}
