//! Replacing, adding or removing one value of a document: the bytes of all other values are copied,
//! not decoded.
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
use crate::edit::EditMode;
use crate::members::{self, MemberChange};
use crate::path::Leg;
use crate::read::{depth, seek_exactly, seek_one};
use crate::tree::{MAX_DEPTH, Work};

/// Largest size of a container that may become small by the replacement of a value.
const SURELY_LARGE: usize = 4 * 0xFFFF;

/// The outcome of a change of a document's bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum Spliced {
    /// The new document.
    Changed(Vec<u8>),
    /// The change does nothing to this document.
    Unchanged,
    /// The change must be made on a tree.
    NeedsTree,
}

/// JSON_SET, JSON_INSERT or JSON_REPLACE of `value`, another document, at the end of a path without
/// wildcards.
///
/// # Errors
/// 3142; a statement that must end.
pub fn set_value(
    document: &[u8],
    legs: &[Leg],
    value: &[u8],
    mode: EditMode,
    work: &Work<'_>,
) -> Result<Spliced, SqlError> {
    let root = Doc::new(document)?;
    if seek_one(root, legs)?.is_some() {
        if mode == EditMode::Insert {
            return Ok(Spliced::Unchanged);
        }
        let replaced = replace_value(document, legs, value, work)?;
        return Ok(replaced.map_or(Spliced::NeedsTree, Spliced::Changed));
    }
    if mode == EditMode::Replace {
        return Ok(Spliced::Unchanged);
    }
    let Some((last, parent_legs, parent, head)) = parent_of(root, legs)? else {
        return Ok(Spliced::NeedsTree);
    };
    let (place, name) = match (last, parent.kind()) {
        (Leg::Member(name), DocKind::Object) if name.len() <= usize::from(u16::MAX) => {
            let (Ok(place) | Err(place)) = parent.place_in(head, name)?;
            (place, name.as_str())
        }
        (Leg::Cell(index), DocKind::Array) => (index.insertion_place(head.count), ""),
        _ => return Ok(Spliced::NeedsTree),
    };
    if legs.len() + depth(Doc::new(value)?, work)? > MAX_DEPTH {
        return Ok(Spliced::NeedsTree);
    }
    let change = MemberChange::Insert { place, name, value };
    with_change(document, parent_legs, (parent, head), &change, work)
}

/// JSON_REMOVE of the value at the end of a path without wildcards.
///
/// # Errors
/// 3142; a statement that must end.
pub fn remove_value(document: &[u8], legs: &[Leg], work: &Work<'_>) -> Result<Spliced, SqlError> {
    let Some((last, parent_legs, parent, head)) = parent_of(Doc::new(document)?, legs)? else {
        return Ok(Spliced::NeedsTree);
    };
    let place = match (last, parent.kind()) {
        (Leg::Member(name), DocKind::Object) => parent.place_in(head, name)?.ok(),
        (Leg::Cell(index), DocKind::Array) => index.within(head.count),
        _ => return Ok(Spliced::NeedsTree),
    };
    let Some(place) = place else {
        return Ok(Spliced::Unchanged);
    };
    let change = MemberChange::Remove { place };
    with_change(document, parent_legs, (parent, head), &change, work)
}

/// The last step of a path, the steps to its container, and the container.
#[allow(
    clippy::type_complexity,
    reason = "used by the two callers above alone"
)]
fn parent_of<'d, 'l>(
    root: Doc<'d>,
    legs: &'l [Leg],
) -> Result<Option<(&'l Leg, &'l [Leg], Doc<'d>, Container)>, SqlError> {
    let Some((last, parent_legs)) = legs.split_last() else {
        return Ok(None);
    };
    let Some(parent) = seek_exactly(root, parent_legs)? else {
        return Ok(None);
    };
    let head = parent.head()?;
    Ok(head.map(|head| (last, parent_legs, parent, head)))
}

/// The document with a change of one container.
fn with_change(
    document: &[u8],
    legs: &[Leg],
    (container, head): (Doc<'_>, Container),
    change: &MemberChange<'_>,
    work: &Work<'_>,
) -> Result<Spliced, SqlError> {
    work.add(document.len() / 16 + 100)?;
    let Some(changed) = members::changed(container, head, change)? else {
        return Ok(Spliced::NeedsTree);
    };
    if legs.is_empty() {
        return Ok(Spliced::Changed(changed));
    }
    let replaced = replace_value(document, legs, &changed, work)?;
    Ok(replaced.map_or(Spliced::NeedsTree, Spliced::Changed))
}

/// Whether a container keeps its layout at a new size: it stays certainly large, or small.
pub(crate) fn may_have_size(large: bool, size: i64) -> bool {
    match large {
        false => size <= 0xFFFF,
        true => size >= SURELY_LARGE as i64,
    }
}

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
fn replace_value(
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
    // All containers' entries lie before their values, so they stay within the new document.
    let first = last.start + last.container.end_of_entries();
    if range.start < first || document.get(range.clone()).is_none() {
        return Err(binary::damaged());
    }
    let inlined = binary::is_inlined(new.type_byte(), large);
    let stored = if inlined { &[][..] } else { &value[1..] };
    let delta = stored.len() as i64 - range.len() as i64;
    let mut out = Vec::with_capacity(document.len() + stored.len());
    out.extend_from_slice(&document[..range.start]);
    out.extend_from_slice(stored);
    out.extend_from_slice(&document[range.end..]);
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
    if !may_have_size(container.large, new_size) {
        return Ok(false);
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
