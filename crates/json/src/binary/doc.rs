//! Reading a document in place.

use std::borrow::Cow;

use nfold_types::{Date, DateTime, Decimal, ErrorCode, SqlError, Time};

use super::*;
use crate::tree::{self, FieldType, Json, Opaque, Work};

/// A value inside a document's bytes. Nothing is read before it is needed.
#[derive(Clone, Copy, Debug)]
pub struct Doc<'a> {
    type_byte: u8,
    /// The value, and maybe more behind it.
    bytes: &'a [u8],
}

/// The kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocKind {
    /// An object.
    Object,
    /// An array.
    Array,
    /// Anything else.
    Scalar,
}

/// A value that is neither array nor object.
#[derive(Clone, Copy, Debug)]
pub enum Scalar<'a> {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    UInt(u64),
    /// A double.
    Double(f64),
    /// A DECIMAL.
    Decimal(Decimal),
    /// A string.
    String(&'a str),
    /// A DATE.
    Date(Date),
    /// A TIME.
    Time(Time),
    /// A DATETIME.
    DateTime(DateTime),
    /// A TIMESTAMP, in the time zone of the session that made the document.
    Timestamp(DateTime),
    /// Bytes of another SQL type.
    Opaque(FieldType, &'a [u8]),
}

/// Error 3142 (I3).
#[cold]
pub(crate) fn damaged() -> SqlError {
    SqlError::new(ErrorCode::ER_INVALID_JSON_BINARY_DATA, &[])
}

/// A number of 2, 4 or 8 bytes.
#[inline]
fn number(bytes: &[u8], at: usize, width: usize) -> Result<usize, SqlError> {
    let field = bytes.get(at..).unwrap_or_default();
    let number = match width {
        2 => field
            .first_chunk()
            .map(|b| usize::from(u16::from_le_bytes(*b))),
        4 => field.first_chunk().map(|b| u32::from_le_bytes(*b) as usize),
        _ => field.first_chunk().map(|b| u64::from_le_bytes(*b) as usize),
    };
    number.ok_or_else(damaged)
}

/// The bytes behind their length.
fn counted(bytes: &[u8]) -> Result<&[u8], SqlError> {
    let mut length = 0usize;
    for (i, byte) in bytes.iter().take(5).enumerate() {
        length |= usize::from(byte & 0x7F) << (7 * i);
        if byte & 0x80 == 0 {
            return bytes[i + 1..].get(..length).ok_or_else(damaged);
        }
    }
    Err(damaged())
}

/// Whether the container of a type is large, and whether it is an object; `None` for a scalar's
/// type.
#[inline]
pub(crate) fn container_type(type_byte: u8) -> Option<(bool, bool)> {
    match type_byte {
        SMALL_OBJECT => Some((false, true)),
        LARGE_OBJECT => Some((true, true)),
        SMALL_ARRAY => Some((false, false)),
        LARGE_ARRAY => Some((true, false)),
        _ => None,
    }
}

/// The head of an array or an object.
#[derive(Clone, Copy)]
pub(crate) struct Container {
    pub large: bool,
    pub count: usize,
    /// Where the entries of values begin.
    values: usize,
}

impl Container {
    /// The head of a container with `count` values.
    pub fn new(large: bool, object: bool, count: usize) -> Container {
        let names = if object { name_entry_width(large) } else { 0 };
        let values = 2 * offset_width(large) + count * names;
        Container {
            large,
            count,
            values,
        }
    }

    /// Where the entries end: names and values follow.
    pub fn end_of_entries(&self) -> usize {
        self.entry(self.count)
    }

    /// Place of the entry of a value.
    pub fn entry(&self, place: usize) -> usize {
        self.values + place * value_entry_width(self.large)
    }

    /// Place of the entry of a member's name.
    pub fn name_entry(&self, place: usize) -> usize {
        2 * offset_width(self.large) + place * name_entry_width(self.large)
    }

    /// Offset and length of a member's name.
    pub fn name_place(&self, bytes: &[u8], place: usize) -> Result<(usize, usize), SqlError> {
        let (entry, width) = (self.name_entry(place), offset_width(self.large));
        Ok((
            number(bytes, entry, width)?,
            number(bytes, entry + width, 2)?,
        ))
    }

    /// The size that the container's bytes say.
    pub fn size(&self, bytes: &[u8]) -> Result<usize, SqlError> {
        let width = offset_width(self.large);
        number(bytes, width, width)
    }

    /// The offset of a value; `None` if the value is stored in its entry.
    pub fn offset(&self, bytes: &[u8], place: usize) -> Result<Option<usize>, SqlError> {
        let entry = self.entry(place);
        let type_byte = *bytes.get(entry).ok_or_else(damaged)?;
        if is_inlined(type_byte, self.large) {
            return Ok(None);
        }
        number(bytes, entry + 1, offset_width(self.large)).map(Some)
    }
}

impl<'a> Doc<'a> {
    /// The document of these bytes. An empty text, which an implicit default may leave in a column,
    /// is `null`, as in MySQL.
    ///
    /// # Errors
    /// 3142, if they begin with no type.
    pub fn new(bytes: &'a [u8]) -> Result<Doc<'a>, SqlError> {
        let Some((&type_byte, value)) = bytes.split_first() else {
            return Ok(Doc {
                type_byte: LITERAL,
                bytes: &[LITERAL_NULL],
            });
        };
        if type_byte > STRING && type_byte != OPAQUE {
            return Err(damaged());
        }
        Ok(Doc {
            type_byte,
            bytes: value,
        })
    }

    /// The kind of the document.
    pub fn kind(self) -> DocKind {
        match self.type_byte {
            SMALL_OBJECT | LARGE_OBJECT => DocKind::Object,
            SMALL_ARRAY | LARGE_ARRAY => DocKind::Array,
            _ => DocKind::Scalar,
        }
    }

    /// The type as the layout has it.
    pub(crate) fn type_byte(self) -> u8 {
        self.type_byte
    }

    /// Tells values of one document apart: two of them have the same address only if they are one.
    pub(crate) fn address(self) -> usize {
        self.bytes.as_ptr() as usize
    }

    /// Whether a container is large, and whether it is an object; `None` for a scalar.
    #[inline]
    fn container_type(self) -> Option<(bool, bool)> {
        container_type(self.type_byte)
    }

    #[inline]
    pub(crate) fn head(self) -> Result<Option<Container>, SqlError> {
        let Some((large, object)) = self.container_type() else {
            return Ok(None);
        };
        let count = number(self.bytes, 0, offset_width(large))?;
        let head = Container::new(large, object, count);
        if head.end_of_entries() > self.bytes.len() {
            return Err(damaged());
        }
        Ok(Some(head))
    }

    /// Elements of an array, members of an object, 1 for a scalar.
    ///
    /// # Errors
    /// 3142
    pub fn length(self) -> Result<usize, SqlError> {
        match self.container_type() {
            Some((large, _)) => number(self.bytes, 0, offset_width(large)),
            None => Ok(1),
        }
    }

    #[inline]
    pub(crate) fn child(self, head: Container, place: usize) -> Result<Doc<'a>, SqlError> {
        let entry = head.entry(place);
        let type_byte = *self.bytes.get(entry).ok_or_else(damaged)?;
        if is_inlined(type_byte, head.large) {
            let bytes = self.bytes.get(entry + 1..).ok_or_else(damaged)?;
            return Ok(Doc { type_byte, bytes });
        }
        let at = number(self.bytes, entry + 1, offset_width(head.large))?;
        // A child lies behind all entries, so a damaged document makes no cycle.
        if at < head.end_of_entries() {
            return Err(damaged());
        }
        let bytes = self.bytes.get(at..).ok_or_else(damaged)?;
        Ok(Doc { type_byte, bytes })
    }

    /// Where a container's bytes are: from its count to the end of its last value.
    pub(crate) fn container_bytes(self, head: Container) -> Result<&'a [u8], SqlError> {
        let size = head.size(self.bytes)?;
        self.bytes.get(..size).ok_or_else(damaged)
    }

    #[inline]
    fn name(self, head: Container, place: usize) -> Result<&'a [u8], SqlError> {
        let (at, length) = head.name_place(self.bytes, place)?;
        let end = at.checked_add(length).ok_or_else(damaged)?;
        self.bytes.get(at..end).ok_or_else(damaged)
    }

    /// Element `place` of an array.
    ///
    /// # Errors
    /// 3142
    pub fn element(self, place: usize) -> Result<Option<Doc<'a>>, SqlError> {
        match self.head()? {
            Some(head) if self.kind() == DocKind::Array && place < head.count => {
                self.child(head, place).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The member of an object called `name`.
    ///
    /// # Errors
    /// 3142
    pub fn member(self, name: &str) -> Result<Option<Doc<'a>>, SqlError> {
        match self.place_of(name)? {
            Some((head, place)) => self.child(head, place).map(Some),
            None => Ok(None),
        }
    }

    /// The number of the member called `name`.
    #[inline]
    pub(crate) fn place_of(self, name: &str) -> Result<Option<(Container, usize)>, SqlError> {
        let Some(head) = self.head()?.filter(|_| self.kind() == DocKind::Object) else {
            return Ok(None);
        };
        let place = self.place_in(head, name)?;
        Ok(place.ok().map(|place| (head, place)))
    }

    /// The number of the member of an object called `name`, or the number that a member of that
    /// name would have. Found by binary search (I1).
    #[inline]
    pub(crate) fn place_in(
        self,
        head: Container,
        name: &str,
    ) -> Result<Result<usize, usize>, SqlError> {
        let (mut low, mut high) = (0, head.count);
        while low < high {
            let middle = (low + high) / 2;
            let found = self.name(head, middle)?;
            let order = found.len().cmp(&name.len());
            match order.then_with(|| found.cmp(name.as_bytes())) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Ok(Ok(middle)),
            }
        }
        Ok(Err(low))
    }

    /// The elements of an array; those of other values are none.
    ///
    /// # Errors
    /// 3142
    pub fn elements(self) -> Result<Elements<'a>, SqlError> {
        let head = self.head()?.filter(|_| self.kind() == DocKind::Array);
        Ok(Elements {
            doc: self,
            head,
            next: 0,
        })
    }

    /// The members of an object; those of other values are none.
    ///
    /// # Errors
    /// 3142
    pub fn members(self) -> Result<Members<'a>, SqlError> {
        let head = self.head()?.filter(|_| self.kind() == DocKind::Object);
        Ok(Members {
            doc: self,
            head,
            next: 0,
        })
    }

    /// The value, if it is neither array nor object.
    ///
    /// # Errors
    /// 3142
    pub fn scalar(self) -> Result<Option<Scalar<'a>>, SqlError> {
        let signed = |width: usize| {
            let bits = number(self.bytes, 0, width)? as u64;
            let unused = 64 - 8 * width as u32;
            Ok::<i64, SqlError>((bits << unused) as i64 >> unused)
        };
        let unsigned = |width: usize| Ok::<u64, SqlError>(number(self.bytes, 0, width)? as u64);
        Ok(Some(match self.type_byte {
            LITERAL => match self.bytes.first() {
                Some(&LITERAL_NULL) => Scalar::Null,
                Some(&LITERAL_TRUE) => Scalar::Bool(true),
                Some(&LITERAL_FALSE) => Scalar::Bool(false),
                _ => return Err(damaged()),
            },
            INT16 => Scalar::Int(signed(2)?),
            INT32 => Scalar::Int(signed(4)?),
            INT64 => Scalar::Int(signed(8)?),
            UINT16 => Scalar::UInt(unsigned(2)?),
            UINT32 => Scalar::UInt(unsigned(4)?),
            UINT64 => Scalar::UInt(unsigned(8)?),
            DOUBLE => Scalar::Double(f64::from_bits(unsigned(8)?)),
            STRING => {
                let text = counted(self.bytes)?;
                Scalar::String(std::str::from_utf8(text).map_err(|_| damaged())?)
            }
            OPAQUE => self.opaque()?,
            _ => return Ok(None),
        }))
    }

    /// The bytes of a string, which are not checked to be UTF-8; `None`: it is no string.
    pub(crate) fn string_bytes(self) -> Result<Option<&'a [u8]>, SqlError> {
        match self.type_byte {
            STRING => counted(self.bytes).map(Some),
            _ => Ok(None),
        }
    }

    fn opaque(self) -> Result<Scalar<'a>, SqlError> {
        let (&field_type, rest) = self.bytes.split_first().ok_or_else(damaged)?;
        let bytes = counted(rest)?;
        let field_type = FieldType(field_type);
        let value = match field_type {
            FieldType::DECIMAL => tree::read_decimal(bytes).map(Scalar::Decimal),
            FieldType::TIME => tree::read_time(bytes).map(Scalar::Time),
            FieldType::DATE => tree::read_datetime(bytes).map(|v| Scalar::Date(v.date())),
            FieldType::DATETIME => tree::read_datetime(bytes).map(Scalar::DateTime),
            FieldType::TIMESTAMP => tree::read_datetime(bytes).map(Scalar::Timestamp),
            other => Some(Scalar::Opaque(other, bytes)),
        };
        value.ok_or_else(damaged)
    }

    /// Bytes of the value, without its type.
    pub(crate) fn stored_len(self) -> Result<usize, SqlError> {
        let behind = |bytes: &[u8]| bytes.as_ptr() as usize - self.address() + bytes.len();
        Ok(match self.type_byte {
            LITERAL => 1,
            INT16 | UINT16 => 2,
            INT32 | UINT32 => 4,
            INT64 | UINT64 | DOUBLE => 8,
            STRING => behind(counted(self.bytes)?),
            OPAQUE => behind(counted(self.bytes.get(1..).ok_or_else(damaged)?)?),
            _ => {
                let width = offset_width(matches!(self.type_byte, LARGE_OBJECT | LARGE_ARRAY));
                number(self.bytes, width, width)?
            }
        })
    }

    /// Appends the value as a document of its own.
    ///
    /// # Errors
    /// 3142
    pub fn write_to(self, out: &mut Vec<u8>) -> Result<(), SqlError> {
        let length = self.stored_len()?;
        out.push(self.type_byte);
        out.extend_from_slice(self.bytes.get(..length).ok_or_else(damaged)?);
        Ok(())
    }

    /// The value as a document of its own.
    ///
    /// # Errors
    /// 3142
    pub fn to_bytes(self) -> Result<Vec<u8>, SqlError> {
        let length = self.stored_len()?;
        let value = self.bytes.get(..length).ok_or_else(damaged)?;
        let mut out = Vec::with_capacity(1 + length);
        out.push(self.type_byte);
        out.extend_from_slice(value);
        Ok(out)
    }

    /// As [`Self::to_bytes`], without a copy where the value's type lies in front of the value in
    /// `document`, which it is a part of.
    ///
    /// # Errors
    /// 3142
    pub(crate) fn to_bytes_in(self, document: &'a [u8]) -> Result<Cow<'a, [u8]>, SqlError> {
        let length = self.stored_len()?;
        let at = self.address().checked_sub(document.as_ptr() as usize + 1);
        let end = at.and_then(|at| at.checked_add(1 + length));
        let bytes = at.zip(end).and_then(|(at, end)| document.get(at..end));
        match bytes {
            Some(bytes) if bytes[0] == self.type_byte => Ok(Cow::Borrowed(bytes)),
            _ => self.to_bytes().map(Cow::Owned),
        }
    }

    /// Whether the value is this string.
    #[inline]
    pub(crate) fn is_string(self, text: &[u8]) -> Result<bool, SqlError> {
        Ok(self.string_bytes()?.is_some_and(|found| found == text))
    }

    /// The name of member number `place` of an object, which has `head`.
    pub(crate) fn name_text(self, head: Container, place: usize) -> Result<&'a str, SqlError> {
        std::str::from_utf8(self.name(head, place)?).map_err(|_| damaged())
    }

    /// The value as a tree.
    ///
    /// # Errors
    /// 3142; a statement that must end.
    pub fn to_json(self, work: &Work<'_>) -> Result<Json, SqlError> {
        work.add(30)?;
        let Some(scalar) = self.scalar()? else {
            return match self.kind() {
                DocKind::Object => {
                    let members = self.members()?.map(|member| {
                        let (name, value) = member?;
                        Ok((name.to_string(), value.to_json(work)?))
                    });
                    Ok(Json::Object(members.collect::<Result<_, SqlError>>()?))
                }
                _ => {
                    let elements = self.elements()?.map(|element| element?.to_json(work));
                    Ok(Json::Array(elements.collect::<Result<_, SqlError>>()?))
                }
            };
        };
        Ok(match scalar {
            Scalar::Null => Json::Null,
            Scalar::Bool(v) => Json::Bool(v),
            Scalar::Int(v) => Json::Int(v),
            Scalar::UInt(v) => Json::UInt(v),
            Scalar::Double(v) => Json::Double(v),
            Scalar::String(text) => {
                work.add(text.len() / 8)?;
                Json::String(text.to_string())
            }
            _ => Json::Opaque(Opaque {
                field_type: FieldType(self.bytes[0]),
                bytes: counted(&self.bytes[1..])?.to_vec(),
            }),
        })
    }
}

/// See [`Doc::elements`].
pub struct Elements<'a> {
    doc: Doc<'a>,
    head: Option<Container>,
    next: usize,
}

impl<'a> Iterator for Elements<'a> {
    type Item = Result<Doc<'a>, SqlError>;

    fn next(&mut self) -> Option<Self::Item> {
        let head = self.head?;
        let place = self.next;
        if place == head.count {
            return None;
        }
        self.next += 1;
        Some(self.doc.child(head, place))
    }
}

/// See [`Doc::members`].
pub struct Members<'a> {
    doc: Doc<'a>,
    head: Option<Container>,
    next: usize,
}

impl<'a> Iterator for Members<'a> {
    type Item = Result<(&'a str, Doc<'a>), SqlError>;

    fn next(&mut self) -> Option<Self::Item> {
        let head = self.head?;
        let place = self.next;
        if place == head.count {
            return None;
        }
        self.next += 1;
        let name = self.doc.name_text(head, place);
        Some(name.and_then(|name| Ok((name, self.doc.child(head, place)?))))
    }
}
