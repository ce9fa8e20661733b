//! Helpers of this crate's tests.

use crate::{CollationId, ColumnType, TextSize, TypeKind};

/// A type as CREATE TABLE writes it, of a utf8mb4 table.
pub fn column(text: &str) -> ColumnType {
    let (text, charset) = text
        .split_once(" character set ")
        .unwrap_or((text, "utf8mb4"));
    let collation = match charset {
        "utf8mb4 collate utf8mb4_bin" => CollationId::UTF8MB4_BIN,
        "latin1" => CollationId::LATIN1_SWEDISH_CI,
        "ascii" => CollationId::ASCII_GENERAL_CI,
        _ => CollationId::UTF8MB4_0900_AI_CI,
    };
    let (text, zerofill) = text
        .strip_suffix(" zerofill")
        .map_or((text, false), |t| (t, true));
    let (text, unsigned) = text
        .strip_suffix(" unsigned")
        .map_or((text, false), |t| (t, true));
    let (name, args) = text
        .strip_suffix(')')
        .and_then(|t| t.split_once('('))
        .unwrap_or((text, ""));
    let arg = |i: usize| {
        args.split(',')
            .nth(i)
            .and_then(|a| a.parse::<u8>().ok())
            .unwrap_or(0)
    };
    let length = args.parse::<u32>().unwrap_or(0);
    let members = || {
        args.split(',')
            .map(|m| m.trim_matches('\'').into())
            .collect::<Vec<Box<str>>>()
            .into()
    };
    let kind = match name {
        "tinyint" => TypeKind::TinyInt,
        "smallint" => TypeKind::SmallInt,
        "mediumint" => TypeKind::MediumInt,
        "int" => TypeKind::Int,
        "bigint" => TypeKind::BigInt,
        "decimal" => TypeKind::Decimal {
            precision: arg(0),
            scale: arg(1),
        },
        "float" => TypeKind::Float,
        "double" => TypeKind::Double,
        "date" => TypeKind::Date,
        "time" => TypeKind::Time(arg(0)),
        "datetime" => TypeKind::DateTime(arg(0)),
        "timestamp" => TypeKind::Timestamp(arg(0)),
        "year" => TypeKind::Year,
        "char" => TypeKind::Char(length),
        "varchar" => TypeKind::VarChar(length),
        "binary" => TypeKind::Binary(length),
        "varbinary" => TypeKind::VarBinary(length),
        "tinytext" => TypeKind::Text(TextSize::Tiny),
        "text" => TypeKind::Text(TextSize::Normal),
        "mediumtext" => TypeKind::Text(TextSize::Medium),
        "longtext" => TypeKind::Text(TextSize::Long),
        "tinyblob" => TypeKind::Blob(TextSize::Tiny),
        "blob" => TypeKind::Blob(TextSize::Normal),
        "mediumblob" => TypeKind::Blob(TextSize::Medium),
        "longblob" => TypeKind::Blob(TextSize::Long),
        "enum" => TypeKind::Enum(members()),
        "set" => TypeKind::Set(members()),
        "bit" => TypeKind::Bit(arg(0)),
        other => panic!("type {other}"),
    };
    let mut ty = ColumnType::new(kind);
    (ty.unsigned, ty.zerofill) = (unsigned, zerofill);
    if (ty.is_string() && !name.ends_with("binary") && !name.ends_with("blob"))
        || ty.is_enum_or_set()
    {
        ty.collation = collation;
    }
    if matches!(name, "float" | "double") && !args.is_empty() {
        (ty.width, ty.decimals) = (arg(0).into(), arg(1));
    }
    if ty.is_integer() && !args.is_empty() {
        ty.width = arg(0).into();
    }
    ty
}
