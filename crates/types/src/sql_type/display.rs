//! Types as `SHOW CREATE TABLE` and `information_schema` write them.

use super::{ColumnType, NOT_FIXED_DECIMALS, TextSize, TypeKind};
use std::fmt::{self, Display, Formatter};

impl Display for ColumnType {
    /// `int unsigned`, `varchar(64)`, `tinyint(1)`, `enum('a','b')`; character set and collation
    /// are not part of it.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        use TypeKind::*;
        match &self.kind {
            TinyInt | SmallInt | MediumInt | Int | BigInt => {
                f.write_str(self.data_type_name())?;
                if self.zerofill || (self.width == 1 && self.kind == TinyInt && !self.unsigned) {
                    write!(f, "({})", self.integer_width())?;
                }
            }
            Float | Double => {
                f.write_str(self.data_type_name())?;
                if self.decimals != NOT_FIXED_DECIMALS {
                    write!(f, "({},{})", self.width, self.decimals)?;
                }
            }
            Decimal { precision, scale } => write!(f, "decimal({precision},{scale})")?,
            Bit(n) => write!(f, "bit({n})")?,
            Time(0) | DateTime(0) | Timestamp(0) => f.write_str(self.data_type_name())?,
            Time(fsp) | DateTime(fsp) | Timestamp(fsp) => {
                write!(f, "{}({fsp})", self.data_type_name())?
            }
            Char(n) | VarChar(n) | Binary(n) | VarBinary(n) => {
                write!(f, "{}({n})", self.data_type_name())?
            }
            Enum(members) | Set(members) => write_members(f, self.data_type_name(), members)?,
            Year | Date | Text(_) | Blob(_) | Json => f.write_str(self.data_type_name())?,
            // A column that can hold nothing but NULL, as views have them.
            Null => f.write_str("varbinary(0)")?,
        }
        if self.unsigned {
            f.write_str(" unsigned")?;
        }
        if self.zerofill {
            f.write_str(" zerofill")?;
        }
        Ok(())
    }
}

fn write_members(f: &mut Formatter<'_>, word: &str, members: &[Box<str>]) -> fmt::Result {
    write!(f, "{word}(")?;
    for (i, member) in members.iter().enumerate() {
        if i > 0 {
            f.write_str(",")?;
        }
        write!(f, "'{}'", member.replace('\'', "''"))?;
    }
    f.write_str(")")
}

impl ColumnType {
    /// The bare name, as in `information_schema.COLUMNS.DATA_TYPE`.
    pub fn data_type_name(&self) -> &'static str {
        use TypeKind::*;
        match &self.kind {
            TinyInt => "tinyint",
            SmallInt => "smallint",
            MediumInt => "mediumint",
            Int => "int",
            BigInt => "bigint",
            Decimal { .. } => "decimal",
            Float => "float",
            Double => "double",
            Bit(_) => "bit",
            Year => "year",
            Date => "date",
            Time(_) => "time",
            DateTime(_) => "datetime",
            Timestamp(_) => "timestamp",
            Char(_) => "char",
            VarChar(_) => "varchar",
            Binary(_) => "binary",
            VarBinary(_) => "varbinary",
            Text(TextSize::Tiny) => "tinytext",
            Text(TextSize::Normal) => "text",
            Text(TextSize::Medium) => "mediumtext",
            Text(TextSize::Long) => "longtext",
            Blob(TextSize::Tiny) => "tinyblob",
            Blob(TextSize::Normal) => "blob",
            Blob(TextSize::Medium) => "mediumblob",
            Blob(TextSize::Long) => "longblob",
            Enum(_) => "enum",
            Set(_) => "set",
            Json => "json",
            Null => "varbinary",
        }
    }
}
