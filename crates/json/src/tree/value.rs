//! A document as a tree: what the parser makes and what functions that change documents work on.

use nfold_types::{ErrorCode, SqlError};

use super::opaque::Opaque;

/// A document, or a part of one.
#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    /// `null`
    Null,
    /// `true` and `false`
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer. A number may be either; both print alike.
    UInt(u64),
    /// A finite double.
    Double(f64),
    /// A string.
    String(String),
    /// A value of an SQL type that JSON has not: DECIMAL, dates, BIT, bytes.
    Opaque(Opaque),
    /// An array.
    Array(Vec<Json>),
    /// An object; I1: sorted by [`key_order`].
    Object(Vec<(String, Json)>),
}

/// The order of an object's members (I1).
fn key_order(a: &str, b: &str) -> std::cmp::Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

/// Error 3157: deeper than [`super::MAX_DEPTH`].
pub(crate) fn too_deep() -> SqlError {
    SqlError::new(ErrorCode::ER_JSON_DOCUMENT_TOO_DEEP, &[])
}

impl Json {
    /// An object from members in any order; of several with one name the last one stays.
    pub fn object(mut members: Vec<(String, Json)>) -> Json {
        members.sort_by(|a, b| key_order(&a.0, &b.0));
        let mut kept: Vec<(String, Json)> = Vec::with_capacity(members.len());
        for member in members {
            match kept.last_mut() {
                Some(last) if last.0 == member.0 => *last = member,
                _ => kept.push(member),
            }
        }
        Json::Object(kept)
    }

    /// The member called `name`.
    pub fn member_mut(&mut self, name: &str) -> Option<&mut Json> {
        let Json::Object(members) = self else {
            return None;
        };
        let at = find_member(members, name).ok()?;
        Some(&mut members[at].1)
    }

    /// Adds a member to an object, or replaces it. Does nothing to other values.
    pub fn put_member(&mut self, name: &str, value: Json) {
        if let Json::Object(members) = self {
            match find_member(members, name) {
                Ok(at) => members[at].1 = value,
                Err(at) => members.insert(at, (name.to_string(), value)),
            }
        }
    }

    /// Levels of arrays and objects; a scalar has one.
    pub fn depth(&self) -> usize {
        let deepest = match self {
            Json::Array(elements) => elements.iter().map(Json::depth).max(),
            Json::Object(members) => members.iter().map(|m| m.1.depth()).max(),
            _ => None,
        };
        1 + deepest.unwrap_or(0)
    }

    /// # Errors
    /// Error 3157, if a tree that was put together from others is deeper than a document may be.
    pub fn check_depth(self) -> Result<Json, SqlError> {
        // A scalar inside the deepest container does not count.
        fn containers(value: &Json) -> usize {
            match value {
                Json::Array(v) => 1 + v.iter().map(containers).max().unwrap_or(0),
                Json::Object(v) => 1 + v.iter().map(|m| containers(&m.1)).max().unwrap_or(0),
                _ => 0,
            }
        }
        if containers(&self) > super::MAX_DEPTH {
            return Err(too_deep());
        }
        Ok(self)
    }
}

/// The index of a member, or where it would be inserted.
pub(crate) fn find_member(members: &[(String, Json)], name: &str) -> Result<usize, usize> {
    members.binary_search_by(|m| key_order(&m.0, name))
}
