//! JSON documents as MySQL stores, prints and compares them.
//!
//! # Picture
//!
//! ```text
//! text ─ text::parse ─► Json tree ─ binary::encode ─► bytes ─► Doc ─ path ─► members
//!                          ▲                                    │
//!                          └──────────── Doc::to_json ──────────┤
//!                        edit: set, remove, merge               └─ text::print, compare, contains
//! ```
//!
//! A document is the bytes of MySQL's binary layout ([`binary`]). [`Doc`] reads it in place.
//! Functions that change a document make a tree ([`Json`]) of it. Those that change one value of an
//! array or object copy the bytes of all others instead ([`set_value`], [`remove_value`]).
//!
//! # Invariants
//!
//! - I1: the members of an object are sorted by the length of their name, then by its bytes, and no
//!   name occurs twice.
//! - I2: no document is deeper than [`MAX_DEPTH`], so functions may recurse over it.
//! - I3: no offset or length of a stored document is trusted: a damaged one is error 3142.
//!
//! # Not here
//!
//! SQL NULL, character sets other than UTF-8, and conversions from and to SQL types: those are the
//! executor's.
#![forbid(unsafe_code)]

mod aggregate;
pub mod binary;
mod compare;
mod contains;
mod edit;
mod excerpt;
mod members;
mod path;
mod read;
pub mod scalar_value;
mod schema;
mod search;
mod sort_key;
mod splice;
mod text;
mod tree;

#[cfg(test)]
mod tests;

pub use aggregate::{ArrayBuilder, ObjectBuilder};
pub use binary::{Doc, DocKind, Scalar};
pub use compare::compare;
pub use contains::{contains, has_element, overlaps};
pub use edit::{EditMode, array_append, array_insert, merge_patch, merge_preserve, remove, set};
pub use excerpt::{DocumentBytes, MemberTree, ValueNeed};
pub use path::{Index, Leg, Path, PathError};
pub use read::{depth, keys, seek, seek_bytes, seek_exactly, seek_one, type_name};
pub use schema::{MatchPattern, SchemaFailure, schema_report, validate_schema};
pub use search::search;
pub use sort_key::{append_hash_key, append_sort_key};
pub use splice::{Spliced, remove_value, set_value};
pub use text::{
    ParseError, is_valid, parse, print, print_pretty, print_unquoted, quote, unquote, write_quoted,
};
pub use tree::{FieldType, Json, MAX_DEPTH, Opaque, Work};
