//! MySQL's binary layout of documents, as comments of `sql-common/json_binary.h` describe it.
//!
//! # Picture
//!
//! ```text
//! document  type (1 byte) value
//! object    count size (name-offset name-length(2))* (type offset-or-value)* names values
//! array     count size (type offset-or-value)* values
//! string    length (7 bits a byte, low ones first) UTF-8
//! opaque    field type (1 byte) length bytes
//! ```
//!
//! `count`, `size`, offsets and values in their place take 2 bytes in a small container and 4 in a
//! large one; a container is small if `size` fits. Offsets count from the container's `count`.
//! Literals, 16-bit integers and, in large containers, 32-bit integers stand in place of an offset.

mod doc;
mod encode;

pub(crate) use doc::{Container, container_type, damaged};
pub use doc::{Doc, DocKind, Elements, Members, Scalar};
pub use encode::encode;
pub(crate) use encode::{encode_strings, write_inlined};

pub(crate) const SMALL_OBJECT: u8 = 0;
pub(crate) const LARGE_OBJECT: u8 = 1;
pub(crate) const SMALL_ARRAY: u8 = 2;
pub(crate) const LARGE_ARRAY: u8 = 3;
pub(crate) const LITERAL: u8 = 4;
pub(crate) const INT16: u8 = 5;
pub(crate) const UINT16: u8 = 6;
pub(crate) const INT32: u8 = 7;
pub(crate) const UINT32: u8 = 8;
pub(crate) const INT64: u8 = 9;
pub(crate) const UINT64: u8 = 10;
pub(crate) const DOUBLE: u8 = 11;
pub(crate) const STRING: u8 = 12;
pub(crate) const OPAQUE: u8 = 15;

pub(crate) const LITERAL_NULL: u8 = 0;
pub(crate) const LITERAL_TRUE: u8 = 1;
pub(crate) const LITERAL_FALSE: u8 = 2;

/// Bytes of a count, a size or an offset.
pub(crate) const fn offset_width(large: bool) -> usize {
    if large { 4 } else { 2 }
}

/// Bytes of an entry of a name: offset and length.
pub(crate) const fn name_entry_width(large: bool) -> usize {
    offset_width(large) + 2
}

/// Bytes of an entry of a value: type, and offset or value.
pub(crate) const fn value_entry_width(large: bool) -> usize {
    offset_width(large) + 1
}

/// Whether a value of this type is stored in its entry.
pub(crate) const fn is_inlined(type_byte: u8, large: bool) -> bool {
    matches!(type_byte, LITERAL | INT16 | UINT16) || large && matches!(type_byte, INT32 | UINT32)
}
