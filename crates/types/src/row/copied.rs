//! Copies stored fields to rows of another layout, without decoding their values.

use super::{RawField, RowError, RowLayout};
use crate::{CollationId, ColumnType, TypeKind, ValueRef};

/// How a stored field becomes a field of another layout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FieldCopy {
    /// The bytes are the same.
    Same,
    /// A signed integer gets eight bytes.
    Signed,
    /// An unsigned integer gets eight bytes.
    Unsigned,
}

impl FieldCopy {
    /// How the fields of a column of type `from` are copied to one of type `to`. `None`: their
    /// values have to be decoded.
    pub fn between(from: &ColumnType, to: &ColumnType) -> Option<FieldCopy> {
        use TypeKind::{
            BigInt, Char, Date, DateTime, Decimal, Double, Int, MediumInt, SmallInt, Text, Time,
            TinyInt, VarChar,
        };
        let same_sign = from.unsigned == to.unsigned;
        match (&from.kind, &to.kind) {
            (TinyInt | SmallInt | MediumInt | Int, BigInt) if same_sign => {
                Some(match from.unsigned {
                    true => FieldCopy::Unsigned,
                    false => FieldCopy::Signed,
                })
            }
            (BigInt | Decimal { .. } | Double | Date | Time(_) | DateTime(_), kind)
                if from.kind == *kind && same_sign =>
            {
                Some(FieldCopy::Same)
            }
            (Char(_) | VarChar(_) | Text(_), Text(_)) => {
                let same = from.collation == to.collation && to.collation != CollationId::BINARY;
                same.then_some(FieldCopy::Same)
            }
            _ => None,
        }
    }
}

/// A field of a row that is put together.
#[derive(Clone, Copy, Debug)]
pub enum Field<'v> {
    /// A field of another row.
    Stored(RawField<'v>, FieldCopy),
    /// A value as [`RowLayout::encode`] takes it.
    Value(ValueRef<'v>),
}

impl RowLayout {
    /// Appends the image of a row that consists of these fields. On an error `out` is as before.
    ///
    /// # Errors
    /// [`RowError::External`] for a field on overflow pages, and those of [`RowLayout::encode`].
    pub fn encode_fields<'v>(
        &self,
        fields: impl IntoIterator<Item = Result<Field<'v>, RowError>>,
        out: &mut Vec<u8>,
    ) -> Result<(), RowError> {
        let start = out.len();
        let done = self.put_fields(fields, out, start);
        match done {
            Ok(()) => self.narrow(out, start),
            Err(_) => out.truncate(start),
        }
        done
    }

    fn put_fields<'v>(
        &self,
        fields: impl IntoIterator<Item = Result<Field<'v>, RowError>>,
        out: &mut Vec<u8>,
        start: usize,
    ) -> Result<(), RowError> {
        self.begin_image(out, start);
        let mut fields = fields.into_iter();
        for (ordinal, slot) in self.slots.iter().enumerate() {
            match fields.next().ok_or(RowError::WrongCount)?? {
                Field::Value(value) => self.put_value((ordinal, slot), value, out, start)?,
                Field::Stored(RawField::External(p) | RawField::Patched(p, _), _) => {
                    return Err(RowError::External(p));
                }
                Field::Stored(RawField::Fixed(bytes), copy) => {
                    let wide;
                    let bytes = match copy {
                        FieldCopy::Same => bytes,
                        FieldCopy::Signed | FieldCopy::Unsigned => {
                            wide = widened(bytes, copy);
                            &wide
                        }
                    };
                    if bytes.len() != slot.width as usize {
                        return Err(RowError::TypeMismatch { ordinal });
                    }
                    self.put_field(ordinal, RawField::Fixed(bytes), out, start)?;
                }
                Field::Stored(RawField::Var(bytes), _) => {
                    if slot.width != 0 {
                        return Err(RowError::TypeMismatch { ordinal });
                    }
                    self.put_field(ordinal, RawField::Var(bytes), out, start)?;
                }
                Field::Stored(RawField::Null, _) => {
                    self.put_field(ordinal, RawField::Null, out, start)?;
                }
            }
        }
        match fields.next() {
            Some(_) => Err(RowError::WrongCount),
            None => Ok(()),
        }
    }
}

/// A stored integer in eight bytes.
fn widened(bytes: &[u8], copy: FieldCopy) -> [u8; 8] {
    let negative = copy == FieldCopy::Signed && bytes.last().is_some_and(|b| b & 0x80 != 0);
    let mut wide = [if negative { 0xFF } else { 0 }; 8];
    let len = bytes.len().min(8);
    wide[..len].copy_from_slice(&bytes[..len]);
    wide
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::RowColumn;
    use crate::{Decimal, TextSize};

    fn layout(types: &[ColumnType]) -> RowLayout {
        let column = |ty: &ColumnType| RowColumn {
            ty: ty.clone(),
            nullable: true,
        };
        RowLayout::new(0, types.iter().map(column))
    }

    #[test]
    fn copied_fields_decode_to_the_same_values() {
        let decimal = ColumnType::new(TypeKind::Decimal {
            precision: 7,
            scale: 2,
        });
        let text = |kind| {
            let mut ty = ColumnType::new(kind);
            ty.collation = CollationId::UTF8MB4_BIN;
            ty
        };
        let from = [
            ColumnType::new(TypeKind::Int),
            text(TypeKind::VarChar(20)),
            decimal.clone(),
            ColumnType::new(TypeKind::TinyInt),
        ];
        let to = [
            ColumnType::new(TypeKind::BigInt),
            text(TypeKind::Text(TextSize::Long)),
            decimal,
            ColumnType::new(TypeKind::BigInt),
        ];
        let (source, target) = (layout(&from), layout(&to));
        let copies: Vec<FieldCopy> = from
            .iter()
            .zip(&to)
            .map(|(from, to)| FieldCopy::between(from, to).expect("the types are alike"))
            .collect();
        let price = Decimal::from(-123i64)
            .rescale(2)
            .expect("it has five digits");
        for row in [
            [
                ValueRef::Int(-7),
                ValueRef::Bytes(b"text"),
                ValueRef::Decimal(price),
                ValueRef::Int(-1),
            ],
            [
                ValueRef::Int(7),
                ValueRef::Null,
                ValueRef::Null,
                ValueRef::Int(1),
            ],
        ] {
            let (mut image, mut copied) = (Vec::new(), Vec::new());
            source.encode(row, &mut image).expect("the values fit");
            let fields = copies
                .iter()
                .enumerate()
                .map(|(n, copy)| Ok(Field::Stored(source.raw(&image, n)?, *copy)));
            target
                .encode_fields(fields, &mut copied)
                .expect("the fields fit");
            for n in 0..row.len() {
                assert_eq!(source.get(&image, n), target.get(&copied, n));
            }
        }
    }

    #[test]
    fn other_types_are_not_copied() {
        let int = ColumnType::new(TypeKind::Int);
        let mut unsigned = int.clone();
        unsigned.unsigned = true;
        let big = ColumnType::new(TypeKind::BigInt);
        assert_eq!(FieldCopy::between(&int, &big), Some(FieldCopy::Signed));
        assert_eq!(FieldCopy::between(&unsigned, &big), None);
        let decimal = |precision| {
            ColumnType::new(TypeKind::Decimal {
                precision,
                scale: 2,
            })
        };
        assert_eq!(FieldCopy::between(&decimal(7), &decimal(9)), None);
    }
}
