//! Prints JSON_VALUE and JSON_TABLE as text.

use super::{Commas, Quoted, Text};
use crate::ast::*;
use std::fmt::{Display, Formatter, Result};

impl Display for JsonValue {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "json_value({}, {}", self.document, Text(&self.path))?;
        if let Some(ty) = &self.returning {
            write!(f, " returning {ty}")?;
        }
        write!(f, "{})", self.fallbacks)
    }
}

impl Display for JsonFallbacks {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        for (clause, event) in [(&self.on_empty, "empty"), (&self.on_error, "error")] {
            match clause {
                None => {}
                Some(JsonFallback::Null) => write!(f, " null on {event}")?,
                Some(JsonFallback::Error) => write!(f, " error on {event}")?,
                Some(JsonFallback::Default(value)) => write!(f, " default {value} on {event}")?,
            }
        }
        Ok(())
    }
}

impl Display for JsonTable {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let alias = Quoted(&self.alias.value);
        write!(f, "json_table({}, {}) {alias}", self.document, self.rows)
    }
}

impl Display for JsonRows {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let columns = Commas(&self.columns);
        write!(f, "{} columns ({columns})", Text(&self.path))
    }
}

impl Display for JsonColumn {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            JsonColumn::Ordinality(name) => write!(f, "{} for ordinality", Quoted(&name.value)),
            JsonColumn::Nested(rows) => write!(f, "nested path {rows}"),
            JsonColumn::Value(column) => {
                let exists = if column.exists { " exists" } else { "" };
                let (name, ty) = (Quoted(&column.name.value), ColumnTypeText(&column.ty));
                let path = Text(&column.path);
                write!(f, "{name} {ty}{exists} path {path}{}", column.fallbacks)
            }
        }
    }
}

/// A type as it is written in a column definition.
struct ColumnTypeText<'a>(&'a TypeSpec);

impl Display for ColumnTypeText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let ty = self.0;
        f.write_str(word_of(ty.kind))?;
        if !ty.members.is_empty() {
            f.write_str("(")?;
            for (i, member) in ty.members.iter().enumerate() {
                write!(f, "{}{}", if i == 0 { "" } else { "," }, Text(member))?;
            }
            f.write_str(")")?;
        }
        match (ty.length, ty.decimals) {
            (Some(length), Some(decimals)) => write!(f, "({length},{decimals})")?,
            (Some(length), None) => write!(f, "({length})")?,
            _ => {}
        }
        for (is_set, word) in [(ty.unsigned, " unsigned"), (ty.zerofill, " zerofill")] {
            f.write_str(if is_set { word } else { "" })?;
        }
        if let Some(charset) = &ty.charset {
            write!(f, " character set {charset}")?;
        }
        if ty.binary {
            f.write_str(" binary")?;
        }
        match &ty.collation {
            Some(collation) => write!(f, " collate {collation}"),
            None => Ok(()),
        }
    }
}

fn word_of(kind: TypeKind) -> &'static str {
    match kind {
        TypeKind::TinyInt => "tinyint",
        TypeKind::SmallInt => "smallint",
        TypeKind::MediumInt => "mediumint",
        TypeKind::Int => "int",
        TypeKind::BigInt | TypeKind::Signed | TypeKind::Unsigned => "bigint",
        TypeKind::Bool => "bool",
        TypeKind::Serial => "serial",
        TypeKind::Decimal => "decimal",
        TypeKind::Float => "float",
        TypeKind::Double => "double",
        TypeKind::Bit => "bit",
        TypeKind::Date => "date",
        TypeKind::Time => "time",
        TypeKind::DateTime => "datetime",
        TypeKind::Timestamp => "timestamp",
        TypeKind::Year => "year",
        TypeKind::Json => "json",
        TypeKind::Vector => "vector",
        TypeKind::Binary => "binary",
        TypeKind::VarBinary => "varbinary",
        TypeKind::TinyBlob => "tinyblob",
        TypeKind::Blob => "blob",
        TypeKind::MediumBlob => "mediumblob",
        TypeKind::LongBlob => "longblob",
        TypeKind::Geometry => "geometry",
        TypeKind::Enum => "enum",
        TypeKind::Set => "set",
        TypeKind::Char => "char",
        TypeKind::VarChar => "varchar",
        TypeKind::TinyText => "tinytext",
        TypeKind::Text => "text",
        TypeKind::MediumText => "mediumtext",
        TypeKind::LongText => "longtext",
    }
}
