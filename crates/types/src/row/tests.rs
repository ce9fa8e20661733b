use super::*;
use crate::key::{EntryWords, KeyRows, KeySource, NULL_TEXT};
use crate::sql_type::TextSize;
use crate::temporal::{Date, DateTime, Time, Timestamp};
use crate::wire::RowFrames;
use crate::{CollationId, Decimal, Value};
use proptest::prelude::*;

fn col(ty: ColumnType, nullable: bool) -> RowColumn {
    RowColumn { ty, nullable }
}

fn small() -> RowLayout {
    let c = CollationId::UTF8MB4_0900_AI_CI;
    RowLayout::new(
        7,
        [
            col(ColumnType::new(TypeKind::Int), false),
            col(ColumnType::varchar(20, c), true),
        ],
    )
}

/// Every type once, with values at and around its bounds.
fn all_types() -> Vec<(ColumnType, Vec<Value>)> {
    let ty = ColumnType::new;
    let ints = |v: &[i64]| v.iter().map(|v| Value::Int(*v)).collect::<Vec<_>>();
    let uints = |v: &[u64]| v.iter().map(|v| Value::UInt(*v)).collect::<Vec<_>>();
    let decimals = |v: &[&str]| {
        v.iter()
            .map(|v| Value::Decimal(Decimal::parse(v).expect("a decimal")))
            .collect::<Vec<_>>()
    };
    let members = |n: usize| {
        (0..n)
            .map(|i| format!("m{i}").into())
            .collect::<Vec<Box<str>>>()
            .into()
    };
    let c = CollationId::UTF8MB4_0900_AI_CI;
    let day = Date::new(9999, 12, 31);
    vec![
        (ty(TypeKind::TinyInt), ints(&[-128, 127, 0])),
        (ty(TypeKind::SmallInt).with_unsigned(), uints(&[0, 65535])),
        (ty(TypeKind::MediumInt), ints(&[-8_388_608, 8_388_607, -1])),
        (
            ty(TypeKind::Int).with_unsigned(),
            uints(&[0, u64::from(u32::MAX)]),
        ),
        (ty(TypeKind::BigInt), ints(&[i64::MIN, i64::MAX])),
        (ty(TypeKind::BigInt).with_unsigned(), uints(&[0, u64::MAX])),
        (
            ColumnType::decimal(5, 2),
            decimals(&["-999.99", "0.00", "999.99"]),
        ),
        (
            ColumnType::decimal(65, 30),
            decimals(&["-12345678901234567890123456789012345.123456789012345678901234567890"]),
        ),
        (
            ty(TypeKind::Float),
            vec![Value::Float(-1.5), Value::Float(f32::MAX)],
        ),
        (
            ty(TypeKind::Double),
            vec![Value::Double(-1.5e-300), Value::Double(f64::MAX)],
        ),
        (ty(TypeKind::Bit(1)), uints(&[0, 1])),
        (ty(TypeKind::Bit(64)), uints(&[0, u64::MAX])),
        (ty(TypeKind::Year), uints(&[0, 1901, 2155])),
        (
            ty(TypeKind::Date),
            vec![Value::Date(Date::ZERO), Value::Date(day)],
        ),
        (
            ty(TypeKind::Time(0)),
            vec![Value::Time(Time::from_micros(
                -crate::temporal::TIME_MAX_MICROS,
                0,
            ))],
        ),
        (
            ty(TypeKind::Time(6)),
            vec![
                Value::Time(Time::from_micros(1, 6)),
                Value::Time(Time::from_micros(-1, 6)),
            ],
        ),
        (
            ty(TypeKind::DateTime(0)),
            vec![
                Value::DateTime(DateTime::ZERO),
                Value::DateTime(DateTime::new(day, 23, 59, 59, 0, 0)),
            ],
        ),
        (
            ty(TypeKind::DateTime(6)),
            vec![Value::DateTime(DateTime::new(day, 23, 59, 59, 999_999, 6))],
        ),
        (
            ty(TypeKind::Timestamp(0)),
            vec![
                Value::Timestamp(Timestamp::ZERO),
                Value::Timestamp(Timestamp::from_micros(2_147_483_647_000_000, 0)),
            ],
        ),
        (
            ty(TypeKind::Timestamp(3)),
            vec![
                Value::Timestamp(Timestamp::ZERO),
                Value::Timestamp(Timestamp::from_micros(1_001_000, 3)),
            ],
        ),
        (
            ColumnType::string(TypeKind::Char(3), c),
            vec![Value::from(""), Value::from("日本語")],
        ),
        (
            ty(TypeKind::VarBinary(70_000)),
            vec![Value::Bytes(vec![0; 40_000]), Value::Bytes(vec![1, 2, 3])],
        ),
        (ty(TypeKind::Binary(2)), vec![Value::Bytes(vec![0, 255])]),
        (
            ColumnType::string(TypeKind::Text(TextSize::Long), c),
            vec![Value::from("x")],
        ),
        (
            ColumnType::string(TypeKind::Enum(members(255)), c),
            uints(&[0, 255]),
        ),
        (
            ColumnType::string(TypeKind::Enum(members(256)), c),
            uints(&[0, 256]),
        ),
        (
            ColumnType::string(TypeKind::Set(members(9)), c),
            uints(&[0, 511]),
        ),
        (
            ColumnType::string(TypeKind::Set(members(64)), c),
            uints(&[u64::MAX]),
        ),
    ]
}

/// A layout and a row of it.
fn rows() -> impl Strategy<Value = (RowLayout, Vec<Value>)> {
    let column = (
        prop::sample::select(all_types()),
        any::<bool>(),
        any::<prop::sample::Index>(),
        0u8..4,
    );
    prop::collection::vec(column, 0..20).prop_map(|columns| {
        let values = columns.iter().map(|((_, values), nullable, at, null)| {
            if *nullable && *null == 0 {
                Value::Null
            } else {
                values[at.index(values.len())].clone()
            }
        });
        let values = values.collect();
        (
            RowLayout::new(
                3,
                columns
                    .into_iter()
                    .map(|((ty, _), nullable, ..)| col(ty, nullable)),
            ),
            values,
        )
    })
}

fn encode(layout: &RowLayout, values: &[Value]) -> Vec<u8> {
    let mut row = vec![0xEE];
    layout
        .encode(values.iter().map(Value::as_ref), &mut row)
        .expect("encodes");
    assert_eq!(row.remove(0), 0xEE, "what was in the buffer stays");
    row
}

fn decode(layout: &RowLayout, row: &[u8]) -> Result<Vec<Value>, RowError> {
    layout
        .values(row)
        .map(|v| v.map(ValueRef::to_owned))
        .collect()
}

proptest! {
    #[test]
    fn rows_round_trip((layout, values) in rows()) {
        let row = encode(&layout, &values);
        prop_assert_eq!(layout.validate(&row), Ok(()));
        prop_assert_eq!(decode(&layout, &row), Ok(values.clone()));
        for (i, value) in values.iter().enumerate() {
            prop_assert_eq!(layout.is_null(&row, i), Ok(value.is_null()));
        }
        prop_assert!(row.len() >= layout.base_bytes());
    }

    #[test]
    fn damage_is_an_error_or_a_value((layout, values) in rows(), at: prop::sample::Index, byte: u8, cut: prop::sample::Index) {
        let mut whole = encode(&layout, &values);
        let mut row = whole.clone();
        let i = at.index(row.len());
        row[i] = byte;
        let _ = layout.validate(&row);
        let _ = decode(&layout, &row);
        let cut = cut.index(row.len());
        whole.truncate(cut);
        prop_assert!(layout.validate(&whole).is_err());
        // A lower end of the last field may make the rest of a damaged row a good one.
        row.truncate(cut);
        let _ = layout.validate(&row);
        let _ = decode(&layout, &row);
    }

    #[test]
    fn fields_go_to_overflow_pages_and_back((layout, values) in rows()) {
        let row = encode(&layout, &values);
        let mut stored = Vec::new();
        let mut moved = Vec::new();
        let changes = b"changes of the value";
        let external = |i: usize, pointer| match i % 2 {
            0 => RawField::External(pointer),
            _ => RawField::Patched(pointer, &changes[..i.min(changes.len())]),
        };
        layout.rewrite(&row, &mut stored, |i, field| match field {
            RawField::Var(bytes) if bytes.len() >= 3 => {
                moved.push((i, bytes.to_vec()));
                external(i, OverflowPointer { first_page: i as u32 + 100, length: bytes.len() as u64, owner: 77 })
            }
            other => other,
        }).expect("rewrites");
        prop_assert_eq!(layout.validate(&stored), Ok(()));
        prop_assert_eq!(RowLayout::has_external(&stored), !moved.is_empty());
        for (i, bytes) in &moved {
            let pointer = OverflowPointer { first_page: *i as u32 + 100, length: bytes.len() as u64, owner: 77 };
            prop_assert_eq!(layout.raw(&stored, *i), Ok(external(*i, pointer)));
            prop_assert_eq!(layout.get(&stored, *i), Err(RowError::External(pointer)));
        }
        let mut back = Vec::new();
        layout.rewrite(&stored, &mut back, |i, field| match field {
            field if field.pointer().is_some() => RawField::Var(&moved.iter().find(|m| m.0 == i).expect("moved before").1),
            other => other,
        }).expect("rewrites");
        prop_assert_eq!(back, row);
        // Changed columns are values, the others stay where they are.
        for changed in 0..values.len() {
            let mut copy = vec![9];
            let value = |i: usize| (i == changed).then(|| values[i].as_ref());
            layout.encode_changed(&stored, value, &mut copy).expect("encodes");
            prop_assert_eq!(layout.validate(&copy[1..]), Ok(()));
            for (i, value) in values.iter().enumerate() {
                let expected = match moved.iter().any(|m| m.0 == i) && i != changed {
                    true => layout.get(&stored, i),
                    false => Ok(value.as_ref()),
                };
                prop_assert_eq!(layout.get(&copy[1..], i), expected);
            }
        }
    }
}

#[test]
fn bytes_are_as_drawn() {
    let mut row = Vec::new();
    small()
        .encode([ValueRef::Int(-2), ValueRef::Bytes(b"ab")], &mut row)
        .expect("encodes");
    assert_eq!(row, [7, 0, 0, 0, 0xFE, 0xFF, 0xFF, 0xFF, 2, 0, b'a', b'b']);
    row.clear();
    small()
        .encode([ValueRef::Int(5), ValueRef::Null], &mut row)
        .expect("encodes");
    assert_eq!(row, [7, 0, 0, 1, 5, 0, 0, 0, 0, 0]);
    let long = vec![b'x'; 0x8000];
    row.clear();
    small()
        .encode([ValueRef::Int(5), ValueRef::Bytes(&long)], &mut row)
        .expect("encodes");
    assert_eq!(row[..12], [7, 0, 1, 0, 5, 0, 0, 0, 0x00, 0x80, 0, 0]);
    let mut stored = Vec::new();
    let pointer = OverflowPointer {
        first_page: 9,
        length: 0x8000,
        owner: 0x0102,
    };
    small()
        .rewrite(&row, &mut stored, |_, _| RawField::External(pointer))
        .expect("rewrites");
    assert_eq!(stored[..10], [7, 0, 2, 0, 5, 0, 0, 0, 20, 0x80]);
    assert_eq!(
        stored[10..],
        [
            9, 0, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0
        ]
    );
}

/// Format v1 is frozen: a row with every type, byte for byte.
#[test]
fn the_format_does_not_change() {
    let columns = all_types()
        .into_iter()
        .filter(|(ty, _)| ty.max_bytes() < 20_000 || ty.is_blob());
    let (types, values): (Vec<_>, Vec<_>) = columns
        .map(|(ty, v)| (ty, v.last().expect("a value").clone()))
        .unzip();
    let layout = RowLayout::new(1, types.into_iter().map(|ty| col(ty, true)));
    let row = encode(&layout, &values);
    let hex: String = row.iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(hex, include_str!("frozen_v1.hex").trim());
}

#[test]
fn wrong_values_are_refused() {
    let layout = small();
    let mut out = vec![1, 2, 3];
    let mut refuse = |values: &[ValueRef<'_>]| {
        let e = layout
            .encode(values.iter().copied(), &mut out)
            .expect_err("refused");
        assert_eq!(out, [1, 2, 3], "the buffer is as before");
        e
    };
    assert_eq!(refuse(&[ValueRef::Int(1)]), RowError::WrongCount);
    assert_eq!(
        refuse(&[ValueRef::Int(1), ValueRef::Null, ValueRef::Null]),
        RowError::WrongCount
    );
    assert_eq!(
        refuse(&[ValueRef::Null, ValueRef::Null]),
        RowError::NullInNotNull { ordinal: 0 }
    );
    assert_eq!(
        refuse(&[ValueRef::Double(1.0), ValueRef::Null]),
        RowError::TypeMismatch { ordinal: 0 }
    );
    assert_eq!(
        refuse(&[ValueRef::Int(1 << 40), ValueRef::Null]),
        RowError::TypeMismatch { ordinal: 0 }
    );
    assert_eq!(
        refuse(&[ValueRef::Int(1), ValueRef::Int(1)]),
        RowError::TypeMismatch { ordinal: 1 }
    );
    let other = RowLayout::new(8, layout.columns().to_vec());
    let row = encode(&layout, &[Value::Int(1), Value::Null]);
    assert_eq!(other.validate(&row), Err(RowError::Version { found: 7 }));
    assert_eq!(RowLayout::version_of(&row), Ok(7));
    assert_eq!(
        layout.get(&row, 2),
        Err(RowError::Corrupt("no such column"))
    );
}

/// Bytes among others, which can be read as well, as on a page.
#[derive(Clone, Copy)]
struct Inside<'i> {
    all: &'i [u8],
    range: (usize, usize),
}

impl image::Sealed for Inside<'_> {}

impl<'i> Image<'i> for Inside<'i> {
    fn len(self) -> usize {
        self.range.1 - self.range.0
    }
    fn part(self, range: std::ops::Range<usize>) -> Option<Self> {
        let there = range.start <= range.end && range.end <= self.len();
        let range = (self.range.0 + range.start, self.range.0 + range.end);
        there.then_some(Inside { range, ..self })
    }
    fn at<const N: usize>(self, at: usize) -> Option<[u8; N]> {
        self.all[self.range.0..].get(at..)?.first_chunk().copied()
    }
    fn copy_to(self, out: &mut [u8]) {
        Image::copy_to(&self.all[self.range.0..self.range.1], out);
    }
    fn slice(self) -> Option<&'i [u8]> {
        None
    }
}

/// Encodes images in place, of which those from number `good` on do not hold.
fn simple_formats<'i, I: Image<'i>>(
    encoder: &RowEncoder,
    images: impl IntoIterator<Item = I>,
    good: usize,
    is_binary: bool,
    (out, sequence): (&mut Vec<u8>, &mut u8),
) -> usize {
    let end = |_: &mut Vec<u8>, _: usize, _: &mut u8| unreachable!("no packet is so long");
    let mut frames = RowFrames {
        out,
        sequence,
        enough: usize::MAX / 2,
        end,
    };
    let rows = images.into_iter().enumerate();
    let (image, holds) = (|row: &(usize, I)| row.1, |row: &(usize, I)| row.0 < good);
    match is_binary {
        true => encoder.page_rows::<_, _, true>(rows, image, holds, &mut frames),
        false => encoder.page_rows::<_, _, false>(rows, image, holds, &mut frames),
    }
}

proptest! {
    #[test]
    fn encoders_write_what_values_say((layout, values) in rows(), strings: bool, order: u64, times in 1usize..4) {
        use crate::wire::{write_binary, write_text};
        let zone = crate::temporal::TimeZone::Fixed(-7200);
        let row = encode(&layout, &values);
        let mut ordinals: Vec<usize> = (0..values.len()).collect();
        ordinals.rotate_left(if values.is_empty() { 0 } else { order as usize % values.len() });
        // The same column may stand in a result several times.
        let ordinals = ordinals.repeat(times);
        let encoder = RowEncoder::new(&layout, ordinals.iter().copied(), |n| &layout.columns()[ordinals[n]].ty, |_| strings).expect("columns of the layout");
        let ty = |n: usize| &layout.columns()[ordinals[n]].ty;
        let (mut text, mut binary) = (Vec::new(), vec![0]);
        binary.resize(1 + (ordinals.len() + 9) / 8, 0);
        for (n, &i) in ordinals.iter().enumerate() {
            write_text(values[i].as_ref(), ty(n), &zone, &mut text);
            if values[i].is_null() {
                binary[1 + (n + 2) / 8] |= 1 << ((n + 2) % 8);
            }
            write_binary(values[i].as_ref(), ty(n), &zone, &mut binary);
        }
        let mut out = b"before".to_vec();
        encoder.text(&layout, &row, &mut out, &mut |n, v, out| write_text(v, ty(n), &zone, out)).expect("a good row");
        prop_assert_eq!(&out[6..], &*text);
        out.truncate(6);
        encoder.binary(&layout, &row, &mut out, &mut |n, v, out| write_binary(v, ty(n), &zone, out)).expect("a good row");
        prop_assert_eq!(&out[6..], &*binary);
        // The same from the middle of other bytes, or near to their end; several rows, the last of
        // which is another one when it was read.
        for behind in [0, 1, 9, 70, 300] {
            let around = [&[0xEE; 7][..], &row, &vec![0xEE; behind]].concat();
            let image = Inside { all: &around, range: (7, 7 + row.len()) };
            for (is_binary, expected) in [(false, &text), (true, &binary)] {
                out.truncate(6);
                let mut sequence = 254;
                let taken = simple_formats(&encoder, [image; 4], 3, is_binary, (&mut out, &mut sequence));
                let fits = row[2] == 0 && encoder.room_of(row.len()).is_some();
                match encoder.is_simple(is_binary) {
                    // A column that is the caller's is not, where it is NULL.
                    false => prop_assert!(taken == 0 || fits && taken == 3),
                    true => prop_assert_eq!(taken, if fits { 3 } else { 0 }),
                }
                let packet = |n: usize| [&(expected.len() as u32 | (254 + n as u32) << 24).to_le_bytes()[..], expected].concat();
                let packets: Vec<u8> = (0..taken).flat_map(packet).collect();
                prop_assert_eq!(&out[6..], &*packets);
                prop_assert_eq!(sequence, 254_u8.wrapping_add(taken as u8));
            }
        }
    }

    #[test]
    fn encoders_do_not_panic_on_damage((layout, values) in rows(), at: prop::sample::Index, byte: u8, cut: prop::sample::Index) {
        let mut row = encode(&layout, &values);
        let i = at.index(row.len());
        row[i] = byte;
        let ordinals = (0..values.len()).cycle().take(3 * values.len());
        let encoder = RowEncoder::new(&layout, ordinals, |n| &layout.columns()[n % values.len()].ty, |_| true).expect("columns of the layout");
        for _ in 0..2 {
            let mut out = Vec::new();
            let _ = encoder.text(&layout, &row, &mut out, &mut |_, _, _| ());
            let _ = encoder.binary(&layout, &row, &mut out, &mut |_, _, _| ());
            let image = Inside { all: &row, range: (row.len().min(5), row.len()) };
            for is_binary in [false, true] {
                let mut sequence = 0;
                let (before, taken) = (out.len(), simple_formats(&encoder, [image], 1, is_binary, (&mut out, &mut sequence)));
                prop_assert!(taken == 1 || (out.len(), sequence) == (before, 0));
            }
            row.truncate(cut.index(row.len().max(1)));
        }
    }
}

#[test]
fn strings_of_all_lengths_go_out_as_often_as_asked() {
    use crate::wire::write_text;
    let zone = crate::temporal::TimeZone::Fixed(0);
    let ty = ColumnType::new(TypeKind::VarChar(40_000));
    let layout = RowLayout::new(1, [col(ty.clone(), false), col(ty.clone(), false)]);
    // Some go out with room made before, others without.
    for len in (0..300).chain([1_000, 16_000, 32_000]) {
        let values = [0, 1].map(|n| {
            Value::Bytes(vec![
                b'a' + n;
                (len + 31 * usize::from(n)).min(32_700 - len)
            ])
        });
        let row = encode(&layout, &values);
        for times in [1, 2, 5, 40] {
            let ordinals = [0, 1].repeat(times);
            let encoder = RowEncoder::new(&layout, ordinals.iter().copied(), |_| &ty, |_| true)
                .expect("columns of the layout");
            let mut expected = Vec::new();
            for &n in &ordinals {
                write_text(values[n].as_ref(), &ty, &zone, &mut expected);
            }
            // Into a vector that has no byte too many.
            let mut out = Vec::new();
            let general = &mut |_: usize, _: ValueRef<'_>, _: &mut Vec<u8>| unreachable!();
            encoder
                .text(&layout, &row, &mut out, general)
                .expect("a good row");
            assert_eq!(out, expected, "{times} times {len}");
            out.clear();
            encoder
                .binary(&layout, &row, &mut out, general)
                .expect("a good row");
            let head = 1 + (ordinals.len() + 9) / 8;
            assert!(out[..head].iter().all(|b| *b == 0));
            assert_eq!(out[head..], expected, "{times} times {len}");
        }
    }
}

/// An entry as a page holds it.
#[derive(Clone)]
struct Lying {
    suffix: Vec<u8>,
    originals: Vec<u8>,
}

fn lying<'v>(originals: impl Iterator<Item = Option<&'v [u8]>>) -> Vec<u8> {
    let mut out = Vec::new();
    for bytes in originals {
        let len = bytes.map_or(NULL_TEXT, |b| b.len() as u16);
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(bytes.unwrap_or_default());
    }
    out
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0x5A; 8];
    let rest = bytes.get(at..).unwrap_or_default();
    let len = rest.len().min(8);
    word[..len].copy_from_slice(&rest[..len]);
    u64::from_le_bytes(word)
}

impl EntryWords for Lying {
    fn suffix_word(&self, at: usize) -> u64 {
        word(&self.suffix, at)
    }
    fn suffix_len(&self) -> usize {
        self.suffix.len()
    }
    fn originals_word(&self, at: usize) -> u64 {
        word(&self.originals, at)
    }
    fn originals_len(&self) -> usize {
        self.originals.len()
    }
    fn append_originals(&self, at: usize, len: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.originals[at..at + len]);
    }
}

/// Parts of an index: columns with a value, each ascending or descending, some nullable.
fn key_columns() -> impl Strategy<Value = Vec<(ColumnType, Value, bool, bool)>> {
    let types = all_types();
    let one = (
        0..types.len(),
        any::<prop::sample::Index>(),
        any::<[bool; 2]>(),
        0..4,
    );
    let one = one.prop_map(move |(t, v, [nullable, desc], null)| {
        let (ty, values) = &types[t];
        let value = match null {
            0 if nullable => Value::Null,
            _ => values[v.index(values.len())].clone(),
        };
        (ty.clone(), value, nullable, desc)
    });
    prop::collection::vec(one, 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(300), ..ProptestConfig::default() })]

    #[test]
    fn rows_from_keys_are_the_rows(own in key_columns(), primary in key_columns(), asked: u16, damage: (prop::sample::Index, u8)) {
        use crate::key::{KeyLayout, KeyPart};
        let part = |n: usize, c: &(ColumnType, Value, bool, bool)| KeyPart {
            desc: c.3,
            ..KeyPart::new(n, c.0.clone(), c.2)
        };
        let columns: Vec<_> = own.iter().chain(&primary).collect();
        let [own_key, primary_key] = [&own, &primary].map(|key| KeyLayout::new(key.iter().enumerate().map(|(n, c)| part(n, c))));
        let layout = RowLayout::new(0, columns.iter().map(|c| col(c.0.clone(), c.2)));
        let sources: Vec<_> = (0..columns.len()).map(|n| {
            let (key, source) = match n.checked_sub(own.len()) {
                None => (&own_key.parts()[n], KeySource::Part(n)),
                Some(n) => (&primary_key.parts()[n], KeySource::PrimaryPart(n)),
            };
            if key.is_invertible() { source } else { KeySource::Original }
        }).collect();
        let texts_in_key = columns.iter().zip(&sources).any(|(c, s)| fixed_width(&c.0).is_none() && *s != KeySource::Original);
        let rows = KeyRows::new(&layout, &sources, &own_key, &primary_key, |_| true);
        prop_assert_eq!(rows.is_none(), texts_in_key);
        let wanted = |n: usize| asked >> n & 1 == 1;
        let some = KeyRows::new(&layout, &sources, &own_key, &primary_key, wanted);
        let [mut own_bytes, mut primary_bytes] = [(&own, &own_key), (&primary, &primary_key)].map(|(key, layout)| {
            let mut bytes = Vec::new();
            layout.encode_values(key.iter().map(|c| c.1.as_ref()), &mut bytes).expect("a key");
            bytes
        });
        let originals = || columns.iter().zip(&sources).filter(|(_, s)| **s == KeySource::Original).map(|(c, _)| c.1.as_ref().as_bytes());
        if let Some(some) = some {
            let mut out = Vec::new();
            let mut key = own_bytes.clone();
            match some.needs_primary() {
                true => key.extend_from_slice(&primary_bytes),
                false => key.truncate(some.own_bytes()),
            }
            prop_assert!(some.append(&key, &primary_bytes, originals(), &mut out));
            // The key as a leaf stores it, for any common prefix of the leaf's keys.
            let whole = [&*own_bytes, &*primary_bytes].concat();
            let shared = usize::from(asked) % (own_bytes.len() + 1);
            if let Some(leaf) = some.for_leaf(&whole[..shared]) {
                let lying = Lying { suffix: whole[shared..].to_vec(), originals: lying(originals()) };
                let mut again = b"before".to_vec();
                let done = leaf.append(&some, &lying, primary_bytes.len(), &mut again);
                prop_assert!(done || primary_bytes.len() > whole.len() - shared);
                prop_assert_eq!(&again[6..], if done { &out } else { &[][..] });
                for cut in [Lying { suffix: Vec::new(), ..lying.clone() }, Lying { originals: Vec::new(), ..lying }] {
                    leaf.append(&some, &cut, primary_bytes.len(), &mut again);
                }
            }
            for (n, column) in columns.iter().enumerate().filter(|(n, _)| wanted(*n)) {
                prop_assert_eq!(layout.get(&out, n).expect("a value"), column.1.as_ref());
            }
        }
        let Some(rows) = rows else { return Ok(()) };
        let mut out = b"before".to_vec();
        let whole = own_bytes.iter().chain(&primary_bytes).copied().collect::<Vec<_>>();
        prop_assert!(rows.append(&whole, &primary_bytes, originals(), &mut out));
        prop_assert_eq!(&out[6..], &*encode(&layout, &columns.iter().map(|c| c.1.clone()).collect::<Vec<_>>()));
        // Damage never panics, and leaves nothing behind where it is seen.
        out.truncate(6);
        let at = damage.0.index(own_bytes.len());
        own_bytes[at] = damage.1;
        primary_bytes.truncate(damage.0.index(primary_bytes.len()));
        if !rows.append(&own_bytes, &primary_bytes, originals(), &mut out) {
            prop_assert_eq!(out.len(), 6);
        }
    }
}

#[test]
fn cut_images_hold_the_needed_columns() {
    let types = all_types();
    let layout = RowLayout::new(1, types.iter().map(|(ty, _)| col(ty.clone(), true)));
    for round in 0..4 {
        let value = |n: usize, values: &[Value]| match (n + round) % 4 {
            0 => Value::Null,
            _ => values[round % values.len()].clone(),
        };
        let values: Vec<Value> = types
            .iter()
            .enumerate()
            .map(|(n, (_, values))| value(n, values))
            .collect();
        let image = encode(&layout, &values);
        for (n, (ty, _)) in types.iter().enumerate() {
            let up_to = layout.bytes_up_to(&[n]);
            assert_eq!(up_to == usize::MAX, fixed_width(ty).is_none());
            let cut = &image[..up_to.min(image.len())];
            assert_eq!(layout.get(cut, n), Ok(values[n].as_ref()));
            let Some(encoder) = RowEncoder::new(&layout, [n], |_| ty, |_| true) else {
                continue;
            };
            let [whole, part] = [&*image, cut].map(|image| {
                let (mut text, mut binary) = (Vec::new(), Vec::new());
                let general: &mut General<'_, '_> = &mut |_, v, out| {
                    crate::wire::write_text(v, ty, &crate::temporal::TimeZone::Fixed(0), out);
                };
                encoder.text(&layout, image, &mut text, general).unwrap();
                encoder
                    .binary(&layout, image, &mut binary, general)
                    .unwrap();
                (text, binary)
            });
            assert_eq!(whole, part);
        }
    }
    assert!(layout.bytes_up_to(&[]) <= image_head(&layout));
}

fn image_head(layout: &RowLayout) -> usize {
    layout.ends_at
}

#[test]
fn ordered_fields_have_the_order_of_their_values() {
    for (ty, values) in all_types() {
        for (before, nullable) in [(0, false), (1, true), (9, true)] {
            let first = (0..before).map(|_| col(ColumnType::new(TypeKind::TinyInt), true));
            let layout = RowLayout::new(1, first.chain([col(ty.clone(), nullable)]));
            let Some(field) = layout.ordered_field(before) else {
                continue;
            };
            let row = |value: &Value| {
                let mut all = vec![Value::Int(1); before];
                all.push(value.clone());
                encode(&layout, &all)
            };
            for a in &values {
                let key = field.key(&row(a)).expect("not NULL");
                match a {
                    Value::Int(v) if field.is_integer() => {
                        assert_eq!(field.number(key), i128::from(*v));
                    }
                    Value::UInt(v) if field.is_integer() => {
                        assert_eq!(field.number(key), i128::from(*v));
                    }
                    _ => assert!(!field.is_integer(), "{ty:?}"),
                }
                for b in &values {
                    let other = field.key(&row(b)).expect("not NULL");
                    let order = match (a, b) {
                        (Value::Int(a), Value::Int(b)) => a.cmp(b),
                        (Value::UInt(a), Value::UInt(b)) => a.cmp(b),
                        (Value::Date(a), Value::Date(b)) => a.cmp(b),
                        (Value::DateTime(a), Value::DateTime(b)) => a.cmp(b),
                        other => panic!("{other:?}"),
                    };
                    assert_eq!(key.cmp(&other), order, "{ty:?}");
                }
            }
            if nullable {
                assert_eq!(field.key(&row(&Value::Null)), None);
            }
        }
    }
}

#[test]
fn unscaled_fields_hold_the_unscaled_value() {
    for (precision, scale) in [(1u8, 0u8), (4, 2), (9, 4), (15, 2), (18, 18), (18, 0)] {
        let ty = ColumnType::new(TypeKind::Decimal { precision, scale });
        for nullable in [false, true] {
            let layout = RowLayout::new(1, [col(ty.clone(), nullable)]);
            let field = layout.unscaled_field(0).expect("at most 18 digits");
            assert_eq!(field.scale(), scale);
            let max = 10i64.pow(precision.into()) - 1;
            for unscaled in [0, 1, -1, max, -max, max / 3, -max / 7] {
                let magnitude = unscaled.unsigned_abs().into();
                let value = Decimal::from_parts(unscaled < 0, magnitude, scale).expect("fits");
                let row = encode(&layout, &[Value::Decimal(value)]);
                assert_eq!(
                    field.key(&row),
                    Some(unscaled),
                    "DECIMAL({precision}, {scale})"
                );
            }
            if nullable {
                assert_eq!(field.key(&encode(&layout, &[Value::Null])), None);
            }
        }
    }
    let wide = ColumnType::new(TypeKind::Decimal {
        precision: 30,
        scale: 2,
    });
    assert!(
        RowLayout::new(1, [col(wide, false)])
            .unscaled_field(0)
            .is_none()
    );
}
