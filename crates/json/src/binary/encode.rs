//! Writing a tree in the binary layout.

use nfold_types::{ErrorCode, SqlError};

use super::*;
use crate::tree::{Json, Work};

/// Largest `size` of a small container.
const SMALL_MAX: u64 = 0xFFFF;

/// The document as bytes.
///
/// # Errors
/// 3151, if a member's name is longer than 65,535 bytes; 3150 beyond 4 GiB; a statement that must
/// end.
pub fn encode(value: &Json, work: &Work<'_>) -> Result<Vec<u8>, SqlError> {
    let mut layout = Layout {
        containers: Vec::new(),
        work,
    };
    let size = layout.measure(value)?;
    let mut out = Vec::with_capacity(1 + size as usize);
    let mut writer = Writer {
        containers: layout.containers.iter(),
        out: &mut out,
        work,
    };
    let at = writer.out.len();
    writer.out.push(0);
    let type_byte = writer.value(value)?;
    out[at] = type_byte;
    Ok(out)
}

/// An array of strings as bytes, whose length together is that of a document at most.
pub fn encode_strings(strings: &[&str]) -> Vec<u8> {
    let counted = |text: &&str| length_width(text.len() as u64) as usize + text.len();
    let bytes: usize = strings.iter().map(counted).sum();
    let head = |large| 2 * offset_width(large) + strings.len() * value_entry_width(large);
    let large = (head(false) + bytes) as u64 > SMALL_MAX;
    let (width, size) = (offset_width(large), head(large) + bytes);
    let mut out = Vec::with_capacity(1 + size);
    out.push(if large { LARGE_ARRAY } else { SMALL_ARRAY });
    let number = |number: usize, out: &mut Vec<u8>| {
        out.extend_from_slice(&(number as u64).to_le_bytes()[..width]);
    };
    number(strings.len(), &mut out);
    number(size, &mut out);
    let mut offset = head(large);
    for text in strings {
        out.push(STRING);
        number(offset, &mut out);
        offset += counted(text);
    }
    for text in strings {
        let mut length = text.len();
        while length >= 0x80 {
            out.push(length as u8 | 0x80);
            length >>= 7;
        }
        out.push(length as u8);
        out.extend_from_slice(text.as_bytes());
    }
    out
}

/// The type of a scalar.
fn scalar_type(value: &Json) -> u8 {
    match value {
        Json::Null | Json::Bool(_) => LITERAL,
        Json::Int(v) if i16::try_from(*v).is_ok() => INT16,
        Json::Int(v) if i32::try_from(*v).is_ok() => INT32,
        Json::Int(_) => INT64,
        Json::UInt(v) if u16::try_from(*v).is_ok() => UINT16,
        Json::UInt(v) if u32::try_from(*v).is_ok() => UINT32,
        Json::UInt(_) => UINT64,
        Json::Double(_) => DOUBLE,
        Json::String(_) => STRING,
        Json::Opaque(_) => OPAQUE,
        Json::Array(_) => SMALL_ARRAY,
        Json::Object(_) => SMALL_OBJECT,
    }
}

fn length_width(mut length: u64) -> u64 {
    let mut width = 1;
    while length >= 0x80 {
        length >>= 7;
        width += 1;
    }
    width
}

#[derive(Clone, Copy)]
struct Container {
    large: bool,
    size: u64,
}

/// Decides for each container, in the order in which they are written, whether it is large.
struct Layout<'w> {
    containers: Vec<Container>,
    work: &'w Work<'w>,
}

impl Layout<'_> {
    /// Bytes of the value without its type.
    fn measure(&mut self, value: &Json) -> Result<u64, SqlError> {
        self.work.add(10)?;
        let counted = |n: usize| length_width(n as u64) + n as u64;
        Ok(match value {
            Json::Null | Json::Bool(_) => 1,
            Json::Int(_) | Json::UInt(_) => match scalar_type(value) {
                INT16 | UINT16 => 2,
                INT32 | UINT32 => 4,
                _ => 8,
            },
            Json::Double(_) => 8,
            Json::String(text) => counted(text.len()),
            Json::Opaque(opaque) => 1 + counted(opaque.bytes.len()),
            Json::Array(elements) => self.container(elements.iter(), elements.len(), None)?,
            Json::Object(members) => {
                let mut names = 0;
                for (name, _) in members {
                    if name.len() > usize::from(u16::MAX) {
                        return Err(SqlError::new(ErrorCode::ER_JSON_KEY_TOO_BIG, &[]));
                    }
                    names += name.len() as u64;
                }
                let values = members.iter().map(|m| &m.1);
                self.container(values, members.len(), Some(names))?
            }
        })
    }

    fn container<'v>(
        &mut self,
        values: impl Iterator<Item = &'v Json>,
        count: usize,
        names: Option<u64>,
    ) -> Result<u64, SqlError> {
        let place = self.containers.len();
        let large = Container {
            large: true,
            size: 0,
        };
        self.containers.push(large);
        let (mut small_size, mut large_size) = (0, 0);
        for value in values {
            let size = self.measure(value)?;
            let type_byte = scalar_type(value);
            small_size += if is_inlined(type_byte, false) {
                0
            } else {
                size
            };
            large_size += if is_inlined(type_byte, true) { 0 } else { size };
        }
        let head = |large: bool| {
            let entry = value_entry_width(large) + names.map_or(0, |_| name_entry_width(large));
            2 * offset_width(large) as u64 + (count * entry) as u64 + names.unwrap_or(0)
        };
        small_size += head(false);
        large_size += head(true);
        let large = small_size > SMALL_MAX;
        let size = if large { large_size } else { small_size };
        if size > u64::from(u32::MAX) {
            return Err(SqlError::new(ErrorCode::ER_JSON_VALUE_TOO_BIG, &[]));
        }
        self.containers[place] = Container { large, size };
        Ok(size)
    }
}

struct Writer<'w> {
    containers: std::slice::Iter<'w, Container>,
    out: &'w mut Vec<u8>,
    work: &'w Work<'w>,
}

impl Writer<'_> {
    /// Appends the value; returns its type.
    fn value(&mut self, value: &Json) -> Result<u8, SqlError> {
        let type_byte = scalar_type(value);
        match value {
            Json::Null => self.out.push(LITERAL_NULL),
            Json::Bool(true) => self.out.push(LITERAL_TRUE),
            Json::Bool(false) => self.out.push(LITERAL_FALSE),
            Json::Int(v) => self.integer(*v as u64, type_byte),
            Json::UInt(v) => self.integer(*v, type_byte),
            Json::Double(v) => self.out.extend_from_slice(&v.to_le_bytes()),
            Json::String(text) => self.counted(text.as_bytes())?,
            Json::Opaque(opaque) => {
                self.out.push(opaque.field_type.0);
                self.counted(&opaque.bytes)?;
            }
            Json::Array(elements) => return self.array(elements),
            Json::Object(members) => return self.object(members),
        }
        Ok(type_byte)
    }

    fn integer(&mut self, bits: u64, type_byte: u8) {
        let width = match type_byte {
            INT16 | UINT16 => 2,
            INT32 | UINT32 => 4,
            _ => 8,
        };
        self.out.extend_from_slice(&bits.to_le_bytes()[..width]);
    }

    fn counted(&mut self, bytes: &[u8]) -> Result<(), SqlError> {
        let mut length = bytes.len();
        while length >= 0x80 {
            self.out.push(length as u8 | 0x80);
            length >>= 7;
        }
        self.out.push(length as u8);
        self.out.extend_from_slice(bytes);
        self.work.add(bytes.len() / 8)
    }

    /// Writes `value` into `width` bytes at `at`.
    fn patch(&mut self, at: usize, value: usize, width: usize) {
        self.out[at..at + width].copy_from_slice(&(value as u64).to_le_bytes()[..width]);
    }

    /// Appends count, size and room for the entries.
    fn head(&mut self, count: usize, entry: fn(bool) -> usize) -> Container {
        let container = *self.containers.next().expect("each container was measured");
        let width = offset_width(container.large);
        for number in [count as u64, container.size] {
            self.out.extend_from_slice(&number.to_le_bytes()[..width]);
        }
        let room = self.out.len() + count * entry(container.large);
        self.out.resize(room, 0);
        container
    }

    fn array(&mut self, elements: &[Json]) -> Result<u8, SqlError> {
        let start = self.out.len();
        let container = self.head(elements.len(), value_entry_width);
        let mut entry = start + 2 * offset_width(container.large);
        for element in elements {
            self.entry(element, start, entry, container.large)?;
            entry += value_entry_width(container.large);
        }
        debug_assert_eq!(self.out.len() - start, container.size as usize);
        Ok(if container.large {
            LARGE_ARRAY
        } else {
            SMALL_ARRAY
        })
    }

    fn object(&mut self, members: &[(String, Json)]) -> Result<u8, SqlError> {
        let start = self.out.len();
        let both = |large| name_entry_width(large) + value_entry_width(large);
        let container = self.head(members.len(), both);
        let width = offset_width(container.large);
        let mut entry = start + 2 * width;
        for (name, _) in members {
            self.patch(entry, self.out.len() - start, width);
            self.patch(entry + width, name.len(), 2);
            self.out.extend_from_slice(name.as_bytes());
            entry += name_entry_width(container.large);
        }
        for (_, value) in members {
            self.entry(value, start, entry, container.large)?;
            entry += value_entry_width(container.large);
        }
        debug_assert_eq!(self.out.len() - start, container.size as usize);
        Ok(if container.large {
            LARGE_OBJECT
        } else {
            SMALL_OBJECT
        })
    }

    /// Fills a value's entry at `entry`, and appends the value if it does not stand there.
    fn entry(
        &mut self,
        value: &Json,
        start: usize,
        entry: usize,
        large: bool,
    ) -> Result<(), SqlError> {
        self.work.add(10)?;
        let width = offset_width(large);
        let at = self.out.len();
        let type_byte = self.value(value)?;
        self.out[entry] = type_byte;
        if is_inlined(type_byte, large) {
            let mut bytes = [0; 4];
            write_inlined(type_byte, &self.out[at..], &mut bytes[..width]);
            self.out.truncate(at);
            self.out[entry + 1..entry + 1 + width].copy_from_slice(&bytes[..width]);
        } else {
            self.patch(entry + 1, at - start, width);
        }
        Ok(())
    }
}

/// Writes a value that is stored in its entry to the field of the entry's offset.
pub(crate) fn write_inlined(type_byte: u8, value: &[u8], field: &mut [u8]) {
    let length = value.len().min(field.len());
    let negative = type_byte == INT16 && value.get(1).is_some_and(|high| high & 0x80 != 0);
    // A negative 16-bit integer in a large container is extended as MySQL extends it.
    field.fill(if negative { 0xFF } else { 0 });
    field[..length].copy_from_slice(&value[..length]);
}
