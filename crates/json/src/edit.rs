//! Functions that change a document. They work on a tree.

use nfold_types::SqlError;

use crate::path::{Leg, Path};
use crate::tree::{Json, find_member};

/// What to do with a value that is there, and with one that is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditMode {
    /// JSON_SET: replace, and insert.
    Set,
    /// JSON_INSERT: insert only.
    Insert,
    /// JSON_REPLACE: replace only.
    Replace,
}

/// The value that a path without wildcards leads to.
fn seek_mut<'v>(value: &'v mut Json, legs: &[Leg]) -> Option<&'v mut Json> {
    let mut value = value;
    for leg in legs {
        value = match leg {
            Leg::Member(name) => value.member_mut(name)?,
            Leg::Cell(index) => match value {
                Json::Array(elements) => {
                    let place = index.within(elements.len())?;
                    &mut elements[place]
                }
                // A value that is no array counts as one with that element alone.
                other if leg.matches_scalar() => other,
                _ => return None,
            },
            _ => return None,
        };
    }
    Some(value)
}

fn child<'v>(value: &'v Json, leg: &Leg) -> Option<&'v Json> {
    match (leg, value) {
        (Leg::Member(name), Json::Object(members)) => {
            find_member(members, name).ok().map(|at| &members[at].1)
        }
        (Leg::Cell(index), Json::Array(elements)) => {
            index.within(elements.len()).map(|at| &elements[at])
        }
        _ => None,
    }
}

/// JSON_SET, JSON_INSERT and JSON_REPLACE with one path, which has no wildcards.
///
/// # Errors
/// 3157
pub fn set(doc: &mut Json, path: &Path, value: Json, mode: EditMode) -> Result<(), SqlError> {
    if let Some(place) = seek_mut(doc, &path.legs) {
        if mode != EditMode::Insert {
            *place = value;
        }
        return Ok(());
    }
    let Some((parent, last)) = path.split_last() else {
        return Ok(());
    };
    if mode == EditMode::Replace {
        return Ok(());
    }
    let Some(parent) = seek_mut(doc, parent) else {
        return Ok(());
    };
    match (last, parent) {
        (Leg::Member(name), parent @ Json::Object(_)) => parent.put_member(name, value),
        (Leg::Cell(index), Json::Array(elements)) => {
            elements.insert(index.insertion_place(elements.len()), value);
        }
        (Leg::Cell(index), scalar) => {
            let mut elements = vec![std::mem::replace(scalar, Json::Null)];
            elements.insert(index.insertion_place(1), value);
            *scalar = Json::Array(elements);
        }
        _ => {}
    }
    Ok(())
}

/// JSON_REMOVE with one path, which has a last step and no wildcards.
pub fn remove(doc: &mut Json, path: &Path) {
    let mut legs = path.legs.as_slice();
    // `[0]` of a value that is no array is the value itself, which its parent holds.
    loop {
        let Some((last, parent)) = legs.split_last() else {
            return;
        };
        match (last, seek_mut(doc, parent)) {
            (Leg::Member(name), Some(Json::Object(members))) => {
                if let Ok(at) = find_member(members, name) {
                    members.remove(at);
                }
                return;
            }
            (Leg::Cell(index), Some(Json::Array(elements))) => {
                if let Some(at) = index.within(elements.len()) {
                    elements.remove(at);
                }
                return;
            }
            (Leg::Cell(_), Some(_)) if last.matches_scalar() => legs = parent,
            _ => return,
        }
    }
}

/// JSON_ARRAY_APPEND with one path, which has no wildcards.
pub fn array_append(doc: &mut Json, path: &Path, value: Json) {
    match seek_mut(doc, &path.legs) {
        Some(Json::Array(elements)) => elements.push(value),
        Some(other) => {
            let first = std::mem::replace(other, Json::Null);
            *other = Json::Array(vec![first, value]);
        }
        None => {}
    }
}

/// JSON_ARRAY_INSERT with one path, which ends in an array cell and has no wildcards.
pub fn array_insert(doc: &mut Json, path: &Path, value: Json) {
    // Here alone a value that is no array is not its own first element.
    let mut at = &*doc;
    for leg in &path.legs {
        at = match (leg, at) {
            (Leg::Cell(_), Json::Array(_)) | (Leg::Member(_), Json::Object(_)) => {
                match child(at, leg) {
                    Some(child) => child,
                    None => break,
                }
            }
            _ => return,
        };
    }
    if let Some((parent, Leg::Cell(index))) = path.split_last()
        && let Some(Json::Array(elements)) = seek_mut(doc, parent)
    {
        elements.insert(index.insertion_place(elements.len()), value);
    }
}

/// JSON_MERGE_PRESERVE of two documents.
pub fn merge_preserve(a: Json, b: Json) -> Json {
    match (a, b) {
        (Json::Object(mut members), Json::Object(others)) => {
            for (name, value) in others {
                match find_member(&members, &name) {
                    Ok(at) => {
                        let own = std::mem::replace(&mut members[at].1, Json::Null);
                        members[at].1 = merge_preserve(own, value);
                    }
                    Err(at) => members.insert(at, (name, value)),
                }
            }
            Json::Object(members)
        }
        (a, b) => {
            let mut elements = into_elements(a);
            elements.append(&mut into_elements(b));
            Json::Array(elements)
        }
    }
}

fn into_elements(value: Json) -> Vec<Json> {
    match value {
        Json::Array(elements) => elements,
        other => vec![other],
    }
}

/// JSON_MERGE_PATCH of two documents, as RFC 7396 says.
pub fn merge_patch(target: Json, patch: Json) -> Json {
    let Json::Object(changes) = patch else {
        return patch;
    };
    let mut members = match target {
        Json::Object(members) => members,
        _ => Vec::new(),
    };
    for (name, change) in changes {
        match (find_member(&members, &name), change) {
            (Ok(at), Json::Null) => {
                members.remove(at);
            }
            (Err(_), Json::Null) => {}
            (Ok(at), change) => {
                let own = std::mem::replace(&mut members[at].1, Json::Null);
                members[at].1 = merge_patch(own, change);
            }
            (Err(at), change) => {
                let value = merge_patch(Json::Null, change);
                members.insert(at, (name, value));
            }
        }
    }
    Json::Object(members)
}
