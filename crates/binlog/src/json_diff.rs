//! Partial updates of JSON documents.
//!
//! # Picture
//! ```text
//! changes, one after the other:
//!   u8 operation: 0 replace, 1 insert, 2 remove │ length, path │ length, value (not of a removal)
//! ```
//! Lengths are length-encoded integers, and values are documents in the binary layout.

use nfold_json::{Doc, EditMode, Json, Leg, Path, Work, array_insert, binary, remove, set};
use nfold_protocol::Reader;
use nfold_types::{NoCheckpoint, SqlError};

use crate::BinlogError;

const REPLACE: u8 = 0;
const INSERT: u8 = 1;
const REMOVE: u8 = 2;

/// The document after a list of changes to `document`.
///
/// # Errors
/// Damage; a path that leads to no value.
pub fn apply_diffs(document: &[u8], diffs: &[u8]) -> Result<Vec<u8>, BinlogError> {
    let work = Work::new(&NoCheckpoint);
    let damaged = |_: SqlError| BinlogError::Malformed("JSON document");
    let tree = |bytes: &[u8]| {
        let doc = Doc::new(bytes).map_err(damaged)?;
        doc.to_json(&work).map_err(damaged)
    };
    let mut json = tree(document)?;
    let mut r = Reader::new(diffs);
    while !r.is_empty() {
        let operation = r.u8("operation")?;
        let text = r.lenenc_bytes("path")?;
        let text = String::from_utf8_lossy(text).into_owned();
        let path = Path::parse(&text).map_err(|_| BinlogError::Malformed("path"))?;
        let exists = exists(&json, &path.legs);
        let no_value =
            || BinlogError::Unsupported(format!("a change of JSON at {text}, where no value is"));
        match operation {
            REPLACE if exists => {
                let value = tree(r.lenenc_bytes("value")?)?;
                set(&mut json, &path, value, EditMode::Replace).map_err(damaged)?;
            }
            INSERT => {
                let value = tree(r.lenenc_bytes("value")?)?;
                match path.legs.last() {
                    Some(Leg::Cell(_)) => array_insert(&mut json, &path, value),
                    Some(Leg::Member(_)) if !exists => {
                        set(&mut json, &path, value, EditMode::Insert).map_err(damaged)?;
                    }
                    _ => return Err(no_value()),
                }
            }
            REMOVE if exists => remove(&mut json, &path),
            REPLACE | REMOVE => return Err(no_value()),
            _ => return Err(BinlogError::Malformed("operation")),
        }
    }
    binary::encode(&json, &work).map_err(damaged)
}

/// Whether a path leads to a value. Unlike in SQL, a value is not its own first element.
fn exists(json: &Json, legs: &[Leg]) -> bool {
    let mut at = json;
    for leg in legs {
        let next = match (leg, at) {
            (Leg::Member(name), Json::Object(members)) => {
                members.iter().find(|m| m.0 == *name).map(|m| &m.1)
            }
            (Leg::Cell(index), Json::Array(elements)) => {
                index.within(elements.len()).map(|i| &elements[i])
            }
            _ => None,
        };
        match next {
            Some(value) => at = value,
            None => return false,
        }
    }
    true
}
