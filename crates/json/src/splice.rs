//! Replacing one value of a document: the bytes of all other values are copied, not decoded.
//!
//! # Picture
//!
//! ```text
//! before  root: entries .. k:offset .. m:offset │ values │ old value │ value of m
//! after   root: entries .. k:offset .. m:offset'│ values │ new value longer │ value of m
//! ```
//!
//! Offsets count from their container, so only the containers around the value change: their sizes,
//! and the offsets of the values behind it.

use nfold_types::SqlError;

use crate::binary::{self, Container, Doc, DocKind};
use crate::path::Leg;
use crate::read::depth;
use crate::tree::{MAX_DEPTH, Work};

/// Largest size of a container that may become small by the replacement of a value.
const SURELY_LARGE: usize = 4 * 0xFFFF;

/// A container on the way to the value.
struct Step {
    /// Place of the container in the document.
    start: usize,
    container: Container,
    /// The number of the member or element.
    place: usize,
}

/// The document with `value`, another document, at the end of a path without wildcards. `None`: the
/// path leads to no value, or the containers around it must be laid out anew.
///
/// # Errors
/// 3142; a statement that must end.
pub fn replace_value(
    document: &[u8],
    legs: &[Leg],
    value: &[u8],
    work: &Work<'_>,
) -> Result<Option<Vec<u8>>, SqlError> {
    if document.is_empty() || legs.is_empty() {
        return Ok(None);
    }
    let root = Doc::new(document)?;
    let place_of = |doc: Doc<'_>| 1 + doc.address() - root.address();
    let (mut old, mut steps) = (root, Vec::with_capacity(legs.len()));
    for leg in legs {
        let Some((container, place)) = find(old, leg)? else {
            return Ok(None);
        };
        let start = place_of(old);
        old = old.child(container, place)?;
        steps.push(Step {
            start,
            container,
            place,
        });
    }
    let Some(last) = steps.last() else {
        return Ok(None);
    };
    let new = Doc::new(value)?;
    if steps.len() + depth(new, work)? > MAX_DEPTH {
        return Ok(None);
    }
    work.add(document.len() / 16 + 100)?;
    let large = last.container.large;
    let range = match binary::is_inlined(old.type_byte(), large) {
        true => {
            let at = behind(document, last)?;
            at..at
        }
        false => {
            let at = place_of(old);
            at..at + old.stored_len()?
        }
    };
    let inlined = binary::is_inlined(new.type_byte(), large);
    let stored = if inlined { &[][..] } else { &value[1..] };
    let delta = stored.len() as i64 - range.len() as i64;
    let mut out = Vec::with_capacity(document.len() + stored.len());
    out.extend_from_slice(&document[..range.start]);
    out.extend_from_slice(stored);
    out.extend_from_slice(document.get(range.end..).unwrap_or(&[]));
    for step in &steps {
        if !resize(&mut out, step, range.end, delta)? {
            return Ok(None);
        }
    }
    let entry = last.start + last.container.entry(last.place);
    out[entry] = new.type_byte();
    let width = binary::offset_width(large);
    let field = &mut out[entry + 1..entry + 1 + width];
    match inlined {
        true => binary::write_inlined(new.type_byte(), &value[1..], field),
        false => {
            let offset = (range.start - last.start) as u64;
            field.copy_from_slice(&offset.to_le_bytes()[..width]);
        }
    }
    Ok(Some(out))
}

/// The number of the member or element that a step of a path leads to. A value that is no array has
/// none here.
fn find(doc: Doc<'_>, leg: &Leg) -> Result<Option<(Container, usize)>, SqlError> {
    match leg {
        Leg::Member(name) => doc.place_of(name),
        Leg::Cell(index) if doc.kind() == DocKind::Array => {
            let place = |head: Container| Some((head, index.within(head.count)?));
            Ok(doc.head()?.and_then(place))
        }
        _ => Ok(None),
    }
}

/// The offset after all values that precede the value of a step, which is stored in its entry.
fn behind(document: &[u8], step: &Step) -> Result<usize, SqlError> {
    let bytes = &document[step.start..];
    for place in step.place + 1..step.container.count {
        if let Some(offset) = step.container.offset(bytes, place)? {
            return Ok(step.start + offset);
        }
    }
    Ok(step.start + step.container.size(bytes)?)
}

/// Adds `delta` to a container's size, and to the offsets of its values at `from` and behind.
/// False: it might change from small to large, or from large to small.
fn resize(out: &mut [u8], step: &Step, from: usize, delta: i64) -> Result<bool, SqlError> {
    let (container, bytes) = (&step.container, &mut out[step.start..]);
    let size = container.size(bytes)?;
    let new_size = size as i64 + delta;
    match container.large {
        false if new_size > 0xFFFF => return Ok(false),
        true if new_size < SURELY_LARGE as i64 => return Ok(false),
        _ => {}
    }
    if delta == 0 {
        return Ok(true);
    }
    let width = binary::offset_width(container.large);
    bytes[width..2 * width].copy_from_slice(&new_size.to_le_bytes()[..width]);
    for place in 0..container.count {
        if let Some(offset) = container.offset(bytes, place)?
            && step.start + offset >= from
        {
            let field = container.entry(place) + 1;
            let moved = offset as i64 + delta;
            bytes[field..field + width].copy_from_slice(&moved.to_le_bytes()[..width]);
        }
    }
    Ok(true)
}
