//! Adding a value to an array or object, and removing one: the bytes of all other values are
//! copied, not decoded.
//!
//! # Picture
//!
//! ```text
//! before  count size │ names' entries │ values' entries │ names       │ values
//! after   count size │ ... new ...    │ ... new ...     │ ... new ... │ ... new ...
//! ```
//!
//! All offsets move, those behind the new name or value further than those before it.

use std::ops::Range;

use nfold_types::SqlError;

use crate::binary::{self, Container, Doc, DocKind};
use crate::splice::may_have_size;

/// A change of an array or object.
pub(crate) enum MemberChange<'v> {
    /// Value number `place` is new. `value` is a document; `name` is empty for an array.
    Insert {
        place: usize,
        name: &'v str,
        value: &'v [u8],
    },
    /// Value number `place` goes.
    Remove { place: usize },
}

/// Bytes that take the place of others.
struct Replacement<'v> {
    old: Range<usize>,
    new: &'v [u8],
}

impl Replacement<'_> {
    /// How far it moves the bytes behind it.
    fn shift(&self) -> i64 {
        self.new.len() as i64 - self.old.len() as i64
    }
}

/// The container with the change, as a document of its own. `None`: it must be laid out anew, as
/// it would become small or large, or its values are not in order.
pub(crate) fn changed(
    doc: Doc<'_>,
    head: Container,
    change: &MemberChange<'_>,
) -> Result<Option<Vec<u8>>, SqlError> {
    let bytes = doc.container_bytes(head)?;
    let (large, object) = (head.large, doc.kind() == DocKind::Object);
    let Some(names_end) = end_of_names(bytes, head, object)? else {
        return Ok(None);
    };
    let (place, count) = match change {
        MemberChange::Insert { place, .. } => (*place, head.count + 1),
        MemberChange::Remove { place } => (*place, head.count - 1),
    };
    let (name_at, name_len) = match object && place < head.count {
        true => head.name_place(bytes, place)?,
        false => (names_end, 0),
    };
    let value_at = next_offset(bytes, head, place)?;
    let (name, value) = match change {
        MemberChange::Insert { name, value, .. } => {
            let type_byte = Doc::new(value)?.type_byte();
            let new = match binary::is_inlined(type_byte, large) {
                true => &[][..],
                false => &value[1..],
            };
            let at = |old, new| Replacement { old, new };
            (
                at(name_at..name_at, name.as_bytes()),
                at(value_at..value_at, new),
            )
        }
        MemberChange::Remove { .. } => {
            let next = next_offset(bytes, head, place + 1)?;
            let cut = |old| Replacement { old, new: &[] };
            (cut(name_at..name_at + name_len), cut(value_at..next))
        }
    };
    let after = Container::new(large, object, count);
    let moved = after.end_of_entries() as i64 - head.end_of_entries() as i64;
    let size = bytes.len() as i64 + moved + name.shift() + value.shift();
    if !may_have_size(large, size) {
        return Ok(None);
    }
    let mut out = Vec::with_capacity(1 + size as usize);
    out.push(doc.type_byte());
    let width = binary::offset_width(large);
    out.extend_from_slice(&(count as u64).to_le_bytes()[..width]);
    out.extend_from_slice(&(size as u64).to_le_bytes()[..width]);
    let name_width = if object {
        binary::name_entry_width(large)
    } else {
        0
    };
    let value_width = binary::value_entry_width(large);
    for (start, width) in [(2 * width, name_width), (head.entry(0), value_width)] {
        let entries = &bytes[start..start + head.count * width];
        let (before, behind) = entries.split_at(place * width);
        out.extend_from_slice(before);
        match change {
            MemberChange::Insert { .. } => {
                out.resize(out.len() + width, 0);
                out.extend_from_slice(behind);
            }
            MemberChange::Remove { .. } => out.extend_from_slice(&behind[width..]),
        }
    }
    out.extend_from_slice(&bytes[head.end_of_entries()..name.old.start]);
    out.extend_from_slice(name.new);
    out.extend_from_slice(&bytes[name.old.end..value.old.start]);
    out.extend_from_slice(value.new);
    out.extend_from_slice(&bytes[value.old.end..]);
    let inserted = matches!(change, MemberChange::Insert { .. }).then_some(place);
    let container = &mut out[1..];
    let moved_names = moved + name.shift();
    for n in (0..count).filter(|_| object) {
        let entry = after.name_entry(n);
        let by = if n < place { moved } else { moved_names };
        match inserted == Some(n) {
            true => {
                put(container, entry, name.old.start as i64 + moved, width);
                put(container, entry + width, name.new.len() as i64, 2);
            }
            false => {
                let (at, _) = after.name_place(container, n)?;
                put(container, entry, at as i64 + by, width);
            }
        }
    }
    let moved_values = moved_names + value.shift();
    for n in (0..count).filter(|n| inserted != Some(*n)) {
        let by = if n < place { moved_names } else { moved_values };
        if let Some(at) = after.offset(container, n)? {
            put(container, after.entry(n) + 1, at as i64 + by, width);
        }
    }
    if let MemberChange::Insert {
        value: document, ..
    } = change
    {
        let (entry, type_byte) = (after.entry(place), document[0]);
        container[entry] = type_byte;
        let field = &mut container[entry + 1..entry + 1 + width];
        match binary::is_inlined(type_byte, large) {
            true => binary::write_inlined(type_byte, &document[1..], field),
            false => put(
                container,
                entry + 1,
                value.old.start as i64 + moved_names,
                width,
            ),
        }
    }
    Ok(Some(out))
}

/// Writes a number of `width` bytes.
fn put(bytes: &mut [u8], at: usize, number: i64, width: usize) {
    bytes[at..at + width].copy_from_slice(&number.to_le_bytes()[..width]);
}

/// Where the names of a container end and its values begin. `None`: the names do not follow each
/// other without gaps, or the values do not follow each other.
fn end_of_names(bytes: &[u8], head: Container, object: bool) -> Result<Option<usize>, SqlError> {
    let mut end = head.end_of_entries();
    for n in (0..head.count).filter(|_| object) {
        let (at, length) = head.name_place(bytes, n)?;
        if at != end {
            return Ok(None);
        }
        end = at + length;
    }
    let names_end = end;
    for n in 0..head.count {
        if let Some(at) = head.offset(bytes, n)? {
            if at < end {
                return Ok(None);
            }
            end = at + 1;
        }
    }
    Ok(Some(names_end).filter(|_| end <= bytes.len()))
}

/// The offset of the first value from number `place` on that is not stored in its entry; the end
/// of the container, if there is none.
fn next_offset(bytes: &[u8], head: Container, place: usize) -> Result<usize, SqlError> {
    for n in place..head.count {
        if let Some(at) = head.offset(bytes, n)? {
            return Ok(at);
        }
    }
    Ok(bytes.len())
}
