//! JSON_CONTAINS, JSON_OVERLAPS and MEMBER OF.

use std::cmp::Ordering;

use nfold_types::SqlError;

use crate::binary::{Doc, DocKind};
use crate::compare::compare;
use crate::tree::Work;

fn equal(a: Doc<'_>, b: Doc<'_>, work: &Work<'_>) -> Result<bool, SqlError> {
    Ok(compare(a, b, work)? == Ordering::Equal)
}

/// Whether `doc` contains `candidate`: an object all of its members, an array all of its elements.
///
/// # Errors
/// 3142; a statement that must end.
pub fn contains(doc: Doc<'_>, candidate: Doc<'_>, work: &Work<'_>) -> Result<bool, SqlError> {
    match (doc.kind(), candidate.kind()) {
        (DocKind::Object, DocKind::Object) => {
            for member in candidate.members()? {
                let (name, wanted) = member?;
                work.add(50)?;
                match doc.member(name)? {
                    Some(found) if contains(found, wanted, work)? => {}
                    _ => return Ok(false),
                }
            }
            Ok(true)
        }
        (DocKind::Array, DocKind::Array) => {
            for element in candidate.elements()? {
                if !element_contains(doc, element?, work)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (DocKind::Array, _) => element_contains(doc, candidate, work),
        _ => equal(doc, candidate, work),
    }
}

/// Whether an element of an array contains `candidate`.
fn element_contains(array: Doc<'_>, candidate: Doc<'_>, work: &Work<'_>) -> Result<bool, SqlError> {
    for element in array.elements()? {
        if contains(element?, candidate, work)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether two arrays have an element in common, two objects a member; anything else counts as the
/// only element of an array.
///
/// # Errors
/// 3142; a statement that must end.
pub fn overlaps(a: Doc<'_>, b: Doc<'_>, work: &Work<'_>) -> Result<bool, SqlError> {
    match (a.kind(), b.kind()) {
        (DocKind::Array, DocKind::Array) => {
            for element in a.elements()? {
                if has_element(b, element?, work)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        (DocKind::Array, _) => has_element(a, b, work),
        (_, DocKind::Array) => has_element(b, a, work),
        (DocKind::Object, DocKind::Object) => {
            for member in a.members()? {
                let (name, value) = member?;
                if let Some(other) = b.member(name)?
                    && equal(value, other, work)?
                {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        _ => equal(a, b, work),
    }
}

/// Whether an element of an array is equal to `value`. Other values have no elements.
///
/// # Errors
/// 3142; a statement that must end.
pub fn has_element(array: Doc<'_>, value: Doc<'_>, work: &Work<'_>) -> Result<bool, SqlError> {
    if let Some(text) = value.string_bytes()? {
        for element in array.elements()? {
            work.add(10)?;
            if element?.is_string(text)? {
                return Ok(true);
            }
        }
        return Ok(false);
    }
    for element in array.elements()? {
        if equal(element?, value, work)? {
            return Ok(true);
        }
    }
    Ok(false)
}
