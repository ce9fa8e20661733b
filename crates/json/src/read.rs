//! Reading documents: members by path, keys, length, depth, type.

use std::borrow::Cow;

use nfold_types::SqlError;

use crate::binary::{Doc, DocKind, Scalar, encode_strings};
use crate::path::{Leg, Path};
use crate::tree::FieldType;
use crate::tree::Work;

/// All values that a path matches, each once, in document order of the steps.
///
/// # Errors
/// 3142; a statement that must end.
pub fn seek<'a>(
    doc: Doc<'a>,
    path: &Path,
    work: &Work<'_>,
    found: &mut Vec<Doc<'a>>,
) -> Result<(), SqlError> {
    if !path.has_wildcard() {
        found.extend(seek_one(doc, &path.legs)?);
        return Ok(());
    }
    let mut current = vec![doc];
    for leg in &path.legs {
        let mut next = Vec::new();
        for value in current {
            children(value, leg, work, &mut next)?;
        }
        // Only `**` reaches a value in two ways.
        if path.legs.contains(&Leg::Descendants) {
            remove_repeated(&mut next);
        }
        current = next;
    }
    found.append(&mut current);
    Ok(())
}

fn remove_repeated(values: &mut Vec<Doc<'_>>) {
    let mut seen = std::collections::HashSet::with_capacity(values.len());
    values.retain(|value| seen.insert(value.address()));
}

/// The value that a path without wildcards matches. It parses nothing and allocates nothing.
///
/// # Errors
/// 3142
pub fn seek_one<'a>(doc: Doc<'a>, legs: &[Leg]) -> Result<Option<Doc<'a>>, SqlError> {
    let mut value = doc;
    for leg in legs {
        let child = match leg {
            Leg::Member(name) => value.member(name)?,
            Leg::Cell(_) if value.kind() != DocKind::Array => {
                Some(value).filter(|_| leg.matches_scalar())
            }
            Leg::Cell(index) => match index.within(value.length()?) {
                Some(place) => value.element(place)?,
                None => None,
            },
            _ => None,
        };
        let Some(child) = child else {
            return Ok(None);
        };
        value = child;
    }
    Ok(Some(value))
}

/// As [`seek_one`] in the document of these bytes, but returns the bytes of the value as a document
/// of its own.
///
/// # Errors
/// 3142
pub fn seek_bytes<'a>(document: &'a [u8], legs: &[Leg]) -> Result<Option<Cow<'a, [u8]>>, SqlError> {
    match seek_one(Doc::new(document)?, legs)? {
        Some(found) => found.to_bytes_in(document).map(Some),
        None => Ok(None),
    }
}

/// As [`seek_one`], but only an array has elements.
///
/// # Errors
/// 3142
pub fn seek_exactly<'a>(doc: Doc<'a>, legs: &[Leg]) -> Result<Option<Doc<'a>>, SqlError> {
    let mut value = doc;
    for leg in legs {
        let is_cell = matches!(leg, Leg::Cell(_));
        if is_cell && value.kind() != DocKind::Array {
            return Ok(None);
        }
        match seek_one(value, std::slice::from_ref(leg))? {
            Some(child) => value = child,
            None => return Ok(None),
        }
    }
    Ok(Some(value))
}

fn children<'a>(
    doc: Doc<'a>,
    leg: &Leg,
    work: &Work<'_>,
    found: &mut Vec<Doc<'a>>,
) -> Result<(), SqlError> {
    work.add(50)?;
    match leg {
        Leg::Member(name) => found.extend(doc.member(name)?),
        Leg::AnyMember => {
            for member in doc.members()? {
                work.add(20)?;
                found.push(member?.1);
            }
        }
        Leg::Descendants => descendants(doc, work, found)?,
        _ if doc.kind() != DocKind::Array => {
            if leg.matches_scalar() {
                found.push(doc);
            }
        }
        _ => {
            for place in leg.cells(doc.length()?) {
                work.add(20)?;
                found.extend(doc.element(place)?);
            }
        }
    }
    Ok(())
}

/// The value, then all values inside it, depth first.
fn descendants<'a>(
    doc: Doc<'a>,
    work: &Work<'_>,
    found: &mut Vec<Doc<'a>>,
) -> Result<(), SqlError> {
    work.add(50)?;
    found.push(doc);
    for element in doc.elements()? {
        descendants(element?, work, found)?;
    }
    for member in doc.members()? {
        descendants(member?.1, work, found)?;
    }
    Ok(())
}

/// Levels of arrays and objects; a scalar has one.
///
/// # Errors
/// 3142; a statement that must end.
pub fn depth(doc: Doc<'_>, work: &Work<'_>) -> Result<usize, SqlError> {
    work.add(20)?;
    let mut deepest = 0;
    for element in doc.elements()? {
        deepest = deepest.max(depth(element?, work)?);
    }
    for member in doc.members()? {
        deepest = deepest.max(depth(member?.1, work)?);
    }
    Ok(deepest + 1)
}

/// The names of an object's members as an array; `None` for other values.
///
/// # Errors
/// 3142
pub fn keys(doc: Doc<'_>) -> Result<Option<Vec<u8>>, SqlError> {
    if doc.kind() != DocKind::Object {
        return Ok(None);
    }
    let Some(head) = doc.head()? else {
        return Ok(None);
    };
    let names = (0..head.count).map(|place| doc.name_text(head, place));
    let names = names.collect::<Result<Vec<&str>, SqlError>>()?;
    Ok(Some(encode_strings(&names)))
}

/// What JSON_TYPE says.
///
/// # Errors
/// 3142
pub fn type_name(doc: Doc<'_>) -> Result<&'static str, SqlError> {
    let Some(scalar) = doc.scalar()? else {
        return Ok(match doc.kind() {
            DocKind::Object => "OBJECT",
            _ => "ARRAY",
        });
    };
    Ok(match scalar {
        Scalar::Null => "NULL",
        Scalar::Bool(_) => "BOOLEAN",
        Scalar::Int(_) => "INTEGER",
        Scalar::UInt(_) => "UNSIGNED INTEGER",
        Scalar::Double(_) => "DOUBLE",
        Scalar::Decimal(_) => "DECIMAL",
        Scalar::String(_) => "STRING",
        Scalar::Date(_) => "DATE",
        Scalar::Time(_) => "TIME",
        Scalar::DateTime(_) | Scalar::Timestamp(_) => "DATETIME",
        Scalar::Opaque(field_type, _) => opaque_name(field_type),
    })
}

fn opaque_name(field_type: FieldType) -> &'static str {
    match field_type.0 {
        16 => "BIT",
        15 | 249..=254 => "BLOB",
        _ => "OPAQUE",
    }
}
