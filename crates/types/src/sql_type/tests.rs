use super::*;
use crate::charset::UTF8MB4;

fn members(m: &[&str]) -> Arc<[Box<str>]> {
    m.iter().map(|s| Box::from(*s)).collect()
}

fn examples() -> Vec<ColumnType> {
    use TypeKind::*;
    let c = CollationId::UTF8MB4_0900_AI_CI;
    let mut zerofill = ColumnType::new(Int).with_unsigned();
    zerofill.zerofill = true;
    let mut float = ColumnType::new(Float);
    (float.width, float.decimals) = (7, 4);
    let mut all: Vec<ColumnType> = [
        TinyInt,
        SmallInt,
        MediumInt,
        Int,
        BigInt,
        Float,
        Double,
        Bit(9),
        Year,
        Date,
        Time(0),
        Time(3),
        DateTime(0),
        DateTime(6),
        Timestamp(0),
        Timestamp(2),
        Binary(3),
        VarBinary(70000),
        Blob(TextSize::Tiny),
        Blob(TextSize::Long),
        Null,
    ]
    .into_iter()
    .map(ColumnType::new)
    .collect();
    all.extend([
        zerofill,
        float,
        ColumnType::decimal(65, 30),
        ColumnType::varchar(64, c),
    ]);
    all.push(ColumnType::string(Char(120), c));
    all.push(ColumnType::string(Text(TextSize::Medium), c));
    all.push(ColumnType::string(Enum(members(&["a", "it's"])), c));
    all.push(ColumnType::string(Set(members(&["x", "y", "ü"])), c));
    all
}

#[test]
fn types_read_as_show_create_table_writes_them() {
    let texts: Vec<String> = examples().iter().map(|t| t.to_string()).collect();
    let want = "tinyint|smallint|mediumint|int|bigint|float|double|bit(9)|year|date|time|time(3)|datetime|datetime(6)|timestamp|\
        timestamp(2)|binary(3)|varbinary(70000)|tinyblob|longblob|varbinary(0)|int(10) unsigned zerofill|float(7,4)|decimal(65,30)|\
        varchar(64)|char(120)|mediumtext|enum('a','it''s')|set('x','y','ü')";
    assert_eq!(texts.join("|"), want);
    let mut t = ColumnType::new(TypeKind::TinyInt);
    t.width = 1;
    assert_eq!(t.to_string(), "tinyint(1)");
    assert_eq!(t.with_unsigned().to_string(), "tinyint unsigned");
}

#[test]
fn stored_form_round_trips_and_refuses_damage() {
    for t in examples() {
        let mut bytes = Vec::new();
        t.serialize(&mut bytes);
        bytes.push(0xAA);
        let mut input = &bytes[..];
        assert_eq!(ColumnType::deserialize(&mut input), Some(t));
        assert_eq!(input, [0xAA]);
        for cut in 0..bytes.len() - 1 {
            assert_eq!(ColumnType::deserialize(&mut &bytes[..cut]), None);
        }
    }
    assert_eq!(
        ColumnType::deserialize(&mut &[99, 0, 0, 0, 63, 0][..]),
        None
    );
}

#[test]
fn metadata_agrees_with_the_server() {
    let client = CollationId::UTF8MB4_GENERAL_CI;
    for line in include_str!("recorded.tsv")
        .lines()
        .filter(|l| !l.starts_with('#'))
    {
        let columns: Vec<&str> = line.split('\t').collect();
        let ty = crate::testing::column(columns[0]);
        let shown = columns[1].split(" CHARACTER SET").next();
        assert_eq!(Some(&*ty.to_string()), shown);
        let got = [
            u32::from(ty.wire_type() as u8),
            ty.display_length(&UTF8MB4),
            u32::from(ty.wire_decimals()),
            u32::from(ty.wire_flags()),
            u32::from(ty.wire_charset(client.0)),
        ];
        let want: Vec<u32> = columns[2..]
            .iter()
            .map(|c| c.parse().expect("a number"))
            .collect();
        assert_eq!(got[..], want[..], "{ty}");
    }
    for code in 0..=255 {
        assert!(WireType::from_u8(code).is_none_or(|t| t as u8 == code));
    }
}

#[test]
fn members_have_names() {
    let e = ColumnType::string(
        TypeKind::Enum(members(&["a", "b"])),
        CollationId::UTF8MB4_BIN,
    );
    assert_eq!(
        (e.enum_name(0), e.enum_name(2), e.enum_name(3)),
        (Some(""), Some("b"), None)
    );
    let s = ColumnType::string(
        TypeKind::Set(members(&["a", "b", "c"])),
        CollationId::UTF8MB4_BIN,
    );
    let mut out = Vec::new();
    s.member_text(0b101, &mut out);
    assert_eq!(out, b"a,c");
}
