use super::*;
use crate::{Collation, CollationId, Date, DateTime, Decimal, TextSize, Time, Timestamp};
use proptest::prelude::*;
use std::cmp::Ordering;

/// A type, and a strategy for values that a column of it can hold.
fn typed_values() -> impl Strategy<Value = (ColumnType, Vec<Value>)> {
    let ints = prop_oneof![
        (Just(TypeKind::TinyInt), -128i64..128),
        (Just(TypeKind::SmallInt), -32768i64..32768),
        (Just(TypeKind::MediumInt), -(1i64 << 23)..1 << 23),
        (Just(TypeKind::Int), -(1i64 << 31)..1 << 31),
        (Just(TypeKind::BigInt), any::<i64>()),
    ];
    let ints = ints
        .prop_map(|(k, seed)| (ColumnType::new(k), seed))
        .prop_flat_map(|(ty, seed)| {
            let (lo, hi) = ty.int_range().expect("an integer");
            let value = prop_oneof![
                Just(seed),
                lo as i64..=hi as i64,
                Just(0),
                Just(-1),
                Just(lo as i64),
                Just(hi as i64)
            ];
            (
                Just(ty),
                prop::collection::vec(value.prop_map(Value::Int), 2..6),
            )
        });
    let unsigned = prop::collection::vec(any::<u64>().prop_map(Value::UInt), 2..6)
        .prop_map(|v| (ColumnType::bigint().with_unsigned(), v));
    let doubles = prop::collection::vec(
        prop_oneof![
            any::<f64>().prop_filter("no NaN", |v| !v.is_nan()),
            Just(0.0),
            Just(-0.0)
        ]
        .prop_map(Value::Double),
        2..6,
    )
    .prop_map(|v| (ColumnType::double(), v));
    let floats = prop::collection::vec((-1e9f32..1e9).prop_map(Value::Float), 2..6)
        .prop_map(|v| (ColumnType::new(TypeKind::Float), v));
    let decimals = prop::collection::vec(any::<i32>(), 2..6).prop_map(|v| {
        let values = v.into_iter().map(|n| {
            let d = Decimal::from(i64::from(n))
                .mul(&Decimal::parse("0.001").expect("a decimal"))
                .expect("no overflow");
            Value::Decimal(d)
        });
        (ColumnType::decimal(12, 3), values.collect())
    });
    let dates = prop::collection::vec((0u32..10000, 0u32..13, 0u32..32), 2..6).prop_map(|v| {
        (
            ColumnType::new(TypeKind::Date),
            v.into_iter()
                .map(|(y, m, d)| Value::Date(Date::new(y, m, d)))
                .collect(),
        )
    });
    let times =
        prop::collection::vec(-3_020_399_000_000i64..=3_020_399_000_000, 2..6).prop_map(|v| {
            (
                ColumnType::new(TypeKind::Time(6)),
                v.into_iter()
                    .map(|t| Value::Time(Time::from_micros(t, 6)))
                    .collect(),
            )
        });
    let datetimes = prop::collection::vec((0u64..1 << 59, any::<bool>()), 2..6).prop_map(|v| {
        let values = v
            .into_iter()
            .map(|(p, zero)| Value::DateTime(DateTime::from_packed(if zero { 0 } else { p }, 6)));
        (ColumnType::new(TypeKind::DateTime(6)), values.collect())
    });
    let stamps = prop::collection::vec((0i64..1 << 51, any::<bool>()), 2..6).prop_map(|v| {
        let values = v.into_iter().map(|(us, zero)| {
            Value::Timestamp(if zero {
                Timestamp::ZERO
            } else {
                Timestamp::from_micros(us, 6)
            })
        });
        (ColumnType::new(TypeKind::Timestamp(6)), values.collect())
    });
    let binary = prop::collection::vec(
        prop::collection::vec(
            prop_oneof![Just(0u8), Just(0xFF), Just(1), any::<u8>()],
            0..6,
        ),
        2..6,
    )
    .prop_map(|v| {
        (
            ColumnType::new(TypeKind::VarBinary(20)),
            v.into_iter().map(Value::Bytes).collect(),
        )
    });
    prop_oneof![
        ints, unsigned, doubles, floats, decimals, dates, times, datetimes, stamps, binary
    ]
}

/// NULL first, then by the variant's own order.
fn model(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) => Ordering::Less,
        (_, Value::Null) => Ordering::Greater,
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::UInt(a), Value::UInt(b)) => a.cmp(b),
        (Value::Double(a), Value::Double(b)) => a.partial_cmp(b).expect("no NaN"),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b).expect("no NaN"),
        (Value::Decimal(a), Value::Decimal(b)) => a.cmp(b),
        (Value::Date(a), Value::Date(b)) => a.cmp(b),
        (Value::DateTime(a), Value::DateTime(b)) => a.cmp(b),
        (Value::Time(a), Value::Time(b)) => a.cmp(b),
        (Value::Timestamp(a), Value::Timestamp(b)) => a.cmp(b),
        (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
        other => panic!("mixed kinds: {other:?}"),
    }
}

#[test]
fn words_of_integers_are_their_keys() {
    let kinds = [
        TypeKind::TinyInt,
        TypeKind::SmallInt,
        TypeKind::MediumInt,
        TypeKind::Int,
        TypeKind::BigInt,
    ];
    // Around the bounds of all types.
    let near = |v: i128| v - 1..=v + 1;
    let powers = (0..=64).flat_map(|bits| [1i128 << bits, -(1i128 << bits)]);
    let values: Vec<i128> = powers.flat_map(near).collect();
    let value_refs = |v: i128| {
        let int = i64::try_from(v).ok().map(ValueRef::Int);
        let uint = u64::try_from(v).ok().map(ValueRef::UInt);
        int.into_iter().chain(uint)
    };
    for (kind, unsigned, nullable, desc) in all_ways(&kinds) {
        let mut ty = ColumnType::new(kind.clone());
        ty.unsigned = unsigned;
        let (least, most) = ty.int_range().expect("an integer");
        let mut part = KeyPart::new(0, ty, nullable);
        part.desc = desc;
        let too_long = kind == TypeKind::BigInt && nullable;
        let layout = KeyLayout::new([part]);
        let Some(integers) = layout.integer_part(0) else {
            assert!(too_long);
            continue;
        };
        for (v, value) in values
            .iter()
            .flat_map(|&v| value_refs(v).map(move |r| (v, r)))
        {
            let word = integers.word(&value);
            assert_eq!(
                word.is_some(),
                (least..=most).contains(&v),
                "{v} {layout:?}"
            );
            let Some(word) = word else { continue };
            let mut key = Vec::new();
            layout
                .encode_part(0, value, &mut key)
                .expect("it holds that");
            let (bytes, rest) = (word.to_be_bytes(), integers.key_len());
            assert_eq!(bytes[..rest], key, "{v} {layout:?}");
            assert!(bytes[rest..].iter().all(|&b| b == 0));
        }
        assert_eq!(integers.word(&ValueRef::Null), None);
        assert_eq!(integers.word(&ValueRef::Double(1.0)), None);
    }
    let string = ColumnType::varchar(20, CollationId::UTF8MB4_BIN);
    let layout = KeyLayout::new([KeyPart::new(0, string, false)]);
    assert!(layout.integer_part(0).is_none() && layout.integer_part(1).is_none());
}

/// Each kind signed and unsigned, nullable and not, ascending and descending.
fn all_ways(kinds: &[TypeKind]) -> impl Iterator<Item = (TypeKind, bool, bool, bool)> {
    let bits = 0..8_u8;
    let all = kinds
        .iter()
        .flat_map(move |kind| bits.clone().map(|bits| (kind.clone(), bits)));
    all.map(|(kind, bits)| (kind, bits & 1 != 0, bits & 2 != 0, bits & 4 != 0))
}

proptest! {
    #[test]
    fn order_and_inverse((ty, mut values) in typed_values(), nullable: bool, desc: bool) {
        if nullable {
            values.push(Value::Null);
        }
        let mut part = KeyPart::new(0, ty, nullable);
        part.desc = desc;
        // A second part behind the first shows that parts are prefix-free (K2).
        let tail = KeyPart::new(1, ColumnType::bigint(), false);
        let layout = KeyLayout::new([part, tail]);
        let key = |v: &Value, t: i64| {
            let mut out = Vec::new();
            layout.encode_values([v.as_ref(), ValueRef::Int(t)], &mut out).expect("encodes");
            out
        };
        for a in &values {
            let bytes = key(a, 5);
            let back = layout.decode(&bytes).expect("decodes");
            prop_assert_eq!(model(&back[0], a), Ordering::Equal);
            prop_assert_eq!(&back[1], &Value::Int(5));
            prop_assert_eq!(layout.prefix_bytes(&bytes, 1).expect("skips"), bytes.len() - 8);
            prop_assert_eq!(layout.has_null(&bytes, 2).expect("reads"), a.is_null());
            for b in &values {
                let mut order = model(a, b);
                if desc {
                    order = order.reverse();
                }
                prop_assert_eq!(key(a, 5).cmp(&key(b, -7)), order.then(Ordering::Greater));
                prop_assert_eq!(key(a, 5).cmp(&key(b, 5)), order);
            }
        }
    }

    #[test]
    fn collated_strings_order_as_the_collation(
        strings in prop::collection::vec("[aAbBäß \u{0}\u{1F600}z]{0,5}", 2..6),
        collation in prop::sample::select(vec![CollationId::UTF8MB4_0900_AI_CI, CollationId::UTF8MB4_GENERAL_CI,
            CollationId::UTF8MB4_BIN, CollationId::UTF8MB4_0900_BIN]),
        desc: bool,
    ) {
        let mut part = KeyPart::new(0, ColumnType::varchar(20, collation), true);
        part.desc = desc;
        let layout = KeyLayout::new([part, KeyPart::new(1, ColumnType::bigint(), false)]);
        let key = |s: &str| {
            let mut out = Vec::new();
            layout.encode_values([ValueRef::Bytes(s.as_bytes()), ValueRef::Int(1)], &mut out).expect("encodes");
            out
        };
        for a in &strings {
            for b in &strings {
                let order = collation.known().compare(a.as_bytes(), b.as_bytes());
                prop_assert_eq!(key(a).cmp(&key(b)), if desc { order.reverse() } else { order }, "{:?} {:?}", a, b);
            }
            prop_assert_eq!(layout.prefix_bytes(&key(a), 1).expect("skips"), key(a).len() - 8);
        }
        let identity = |s: &Option<&String>| {
            let mut out = Vec::new();
            let value = s.map_or(ValueRef::Null, |s| ValueRef::Bytes(s.as_bytes()));
            layout.encode_part_identity(0, value, &mut out).expect("encodes");
            out
        };
        let values: Vec<Option<&String>> = strings.iter().map(Some).chain([None]).collect();
        for a in &values {
            for b in &values {
                let same = match (a, b) {
                    (Some(a), Some(b)) => collation.known().eq(a.as_bytes(), b.as_bytes()),
                    (a, b) => a.is_none() && b.is_none(),
                };
                prop_assert_eq!(identity(a) == identity(b), same);
                prop_assert!(same || !identity(a).starts_with(&identity(b)));
            }
        }
    }

    #[test]
    fn key_prefixes_are_beginnings_of_keys(
        string in "[aAbBäß \u{0}\u{1}\u{1F600}\u{4E00}z]{0,30}",
        collation in prop::sample::select(Collation::all().iter().map(|c| c.id).collect::<Vec<_>>()),
        nullable: bool,
        desc: bool,
        limit in 0usize..20,
        prefix_len in prop_oneof![Just(0u32), 1u32..30],
    ) {
        prop_assume!(collation.known().is_valid(string.as_bytes()).is_ok());
        let mut part = KeyPart::new(0, ColumnType::varchar(40, collation), nullable);
        part.desc = desc;
        part.prefix_len = prefix_len;
        let layout = KeyLayout::new([part]);
        let (mut whole, mut head) = (vec![7], vec![7]);
        let value = ValueRef::Bytes(string.as_bytes());
        layout.encode_part(0, value, &mut whole).expect("encodes");
        layout.encode_part_head(0, value, limit, &mut head).expect("encodes");
        prop_assert!(whole.starts_with(&head), "{:?} {:?}", whole, head);
        prop_assert!(head.len() > limit || head == whole, "{:?} {:?}", whole, head);
    }

    #[test]
    fn damaged_keys_are_errors(bytes in prop::collection::vec(any::<u8>(), 0..20), desc: bool) {
        let mut parts = vec![
            KeyPart::new(0, ColumnType::new(TypeKind::VarBinary(9)), true),
            KeyPart::new(1, ColumnType::decimal(20, 5), true),
            KeyPart::new(2, ColumnType::new(TypeKind::Time(0)), false),
        ];
        parts[0].desc = desc;
        let layout = KeyLayout::new(parts);
        // Any outcome but a panic; what decodes encodes to the same bytes again.
        if let Ok(values) = layout.decode(&bytes) {
            let mut again = Vec::new();
            if layout.encode_values(values.iter().map(Value::as_ref), &mut again).is_ok() {
                prop_assert!(bytes.starts_with(&again) || again.len() == layout.prefix_bytes(&bytes, 3).expect("skips"));
            }
        }
    }

    #[test]
    fn successor_bounds_the_prefix(mut key in prop::collection::vec(prop_oneof![Just(0xFFu8), any::<u8>()], 0..5),
                                   tail in prop::collection::vec(any::<u8>(), 0..5)) {
        let member = [key.clone(), tail].concat();
        if prefix_successor(&mut key) {
            prop_assert!(member < key);
        } else {
            prop_assert!(key.is_empty());
        }
    }
}

#[test]
fn bytes_are_as_drawn() {
    let part = |ty, nullable, desc| KeyPart {
        ordinal: 0,
        ty,
        nullable,
        desc,
        prefix_len: 0,
    };
    let encode = |p: KeyPart, v: ValueRef<'_>| {
        let mut out = Vec::new();
        KeyLayout::new([p])
            .encode_values([v], &mut out)
            .map(|()| out)
    };
    let int = ColumnType::new(TypeKind::Int);
    assert_eq!(
        encode(part(int.clone(), false, false), ValueRef::Int(-1)),
        Ok(vec![0x7F, 0xFF, 0xFF, 0xFF])
    );
    assert_eq!(
        encode(part(int.clone(), true, false), ValueRef::Null),
        Ok(vec![0])
    );
    assert_eq!(
        encode(part(int.clone(), true, true), ValueRef::Null),
        Ok(vec![0xFF])
    );
    assert_eq!(
        encode(part(int.clone(), false, false), ValueRef::Null),
        Err(KeyError::NullInNotNull { part: 0 })
    );
    assert_eq!(
        encode(part(int, false, false), ValueRef::Double(1.0)),
        Err(KeyError::TypeMismatch { part: 0 })
    );
    let blob = ColumnType::new(TypeKind::Blob(TextSize::Normal));
    let mut prefix = part(blob, true, false);
    prefix.prefix_len = 3;
    assert!(!prefix.is_invertible());
    assert_eq!(
        encode(prefix, ValueRef::Bytes(b"a\0bcd")),
        Ok(vec![1, b'a', 0, 0xFF, b'b', 0, 0])
    );
    let date = ColumnType::new(TypeKind::Date);
    assert_eq!(
        encode(
            part(date, false, false),
            ValueRef::Date(Date::new(2024, 1, 31))
        ),
        Ok(vec![0x0F, 0xD0, 0x3F])
    );
}

#[test]
fn rows_and_values_give_the_same_key() {
    let c = CollationId::UTF8MB4_0900_AI_CI;
    let column = |ty: ColumnType, nullable| crate::row::RowColumn { ty, nullable };
    let rows = RowLayout::new(
        1,
        [
            column(ColumnType::new(TypeKind::Int), false),
            column(ColumnType::varchar(9, c), true),
            column(ColumnType::decimal(5, 2), true),
        ],
    );
    let mut prefix = KeyPart::new(1, ColumnType::varchar(9, c), true);
    prefix.prefix_len = 2;
    prefix.desc = true;
    let key = KeyLayout::new([
        KeyPart::new(2, ColumnType::decimal(5, 2), true),
        prefix,
        KeyPart::new(0, ColumnType::new(TypeKind::Int), false),
    ]);
    assert!(!key.is_invertible());
    let number = Decimal::parse("-1.50").expect("a decimal");
    let values = [
        ValueRef::Int(-7),
        ValueRef::Bytes("äbc".as_bytes()),
        ValueRef::Decimal(number),
    ];
    let mut row = Vec::new();
    rows.encode(values, &mut row).expect("encodes");
    let (mut from_row, mut from_values, mut short) = (vec![9], vec![9], Vec::new());
    key.encode_row(&rows, &row, &mut from_row).expect("encodes");
    key.encode_values([values[2], values[1], values[0]], &mut from_values)
        .expect("encodes");
    assert_eq!(from_row, from_values);
    // Only the first two characters count, and case and accents do not.
    key.encode_values([values[2], ValueRef::Bytes(b"ABX"), values[0]], &mut short)
        .expect("encodes");
    assert_eq!(short, from_row[1..]);
    assert_eq!(key.decode(&short), Err(KeyError::NotInvertible));
    let mut rest = &short[..];
    assert_eq!(key.decode_part(0, &mut rest), Ok(Value::Decimal(number)));
    let mut damaged = Vec::new();
    assert_eq!(
        key.encode_row(&rows, &row[..5], &mut damaged),
        Err(KeyError::Row(RowError::Corrupt("fixed columns cut off")))
    );
    assert!(damaged.is_empty());
}

/// Format v1 is frozen: one key with every kind of part, byte for byte.
#[test]
fn the_format_does_not_change() {
    let ty = ColumnType::new;
    let parts = [
        (ty(TypeKind::MediumInt), Value::Int(-2)),
        (ty(TypeKind::BigInt).with_unsigned(), Value::UInt(258)),
        (
            ColumnType::decimal(5, 2),
            Value::Decimal(Decimal::parse("-1.50").expect("a decimal")),
        ),
        (ty(TypeKind::Float), Value::Float(1.5)),
        (ty(TypeKind::Double), Value::Double(-1.5)),
        (ty(TypeKind::Bit(9)), Value::UInt(257)),
        (ty(TypeKind::Year), Value::UInt(2024)),
        (
            ty(TypeKind::Time(0)),
            Value::Time(Time::from_micros(-1_000_000, 0)),
        ),
        (
            ty(TypeKind::DateTime(0)),
            Value::DateTime(DateTime::new(Date::new(2024, 2, 29), 23, 59, 58, 0, 0)),
        ),
        (
            ty(TypeKind::DateTime(3)),
            Value::DateTime(DateTime::new(Date::new(2024, 2, 29), 23, 59, 58, 1000, 3)),
        ),
        (
            ty(TypeKind::Timestamp(0)),
            Value::Timestamp(Timestamp::from_micros(1_000_000, 0)),
        ),
        (
            ty(TypeKind::Timestamp(6)),
            Value::Timestamp(Timestamp::ZERO),
        ),
        (ty(TypeKind::Date), Value::Date(Date::new(2024, 2, 29))),
        (ty(TypeKind::VarBinary(9)), Value::Bytes(vec![0, 1, 0xFF])),
    ];
    let (types, values): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    let layout = KeyLayout::new(
        types
            .into_iter()
            .enumerate()
            .map(|(i, ty)| KeyPart::new(i, ty, i % 2 == 0)),
    );
    let mut key = Vec::new();
    layout
        .encode_values(values.iter().map(Value::as_ref), &mut key)
        .expect("encodes");
    let hex: String = key.iter().map(|b| format!("{b:02x}")).collect();
    let want = "017ffffe0000000000000102017fff6abfc00000014007ffffffffffff0101017c7ffffff0bdc0011fa0bb7efa01fa0bb7efa003e8\
                01000000010000000000000000010fd05d00ff01ff0000";
    assert_eq!(hex, want);
}
