//! Places in documents as JSON pointers (RFC 6901), in the form that URIs have.

use nfold_types::SqlError;

use crate::binary::{Doc, DocKind};

/// A step from a value to one inside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step<'a> {
    Name(&'a str),
    Place(usize),
}

/// `#/a/0`
pub(super) fn pointer(steps: &[Step<'_>]) -> String {
    let mut out = String::from("#");
    for step in steps {
        out.push('/');
        match step {
            Step::Place(place) => out.push_str(&place.to_string()),
            Step::Name(name) => name.bytes().for_each(|byte| write_byte(byte, &mut out)),
        }
    }
    out
}

fn write_byte(byte: u8, out: &mut String) {
    match byte {
        b'~' => out.push_str("~0"),
        b'/' => out.push_str("~1"),
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => out.push(byte.into()),
        _ => out.push_str(&format!("%{byte:02X}")),
    }
}

/// The names of a pointer without its `#`; `None` where it is none.
pub(super) fn names_of(pointer: &str) -> Option<Vec<String>> {
    if pointer.is_empty() {
        return Some(Vec::new());
    }
    let names = pointer.strip_prefix('/')?.split('/').map(|name| {
        let plain = decoded(name)?;
        Some(plain.replace("~1", "/").replace("~0", "~"))
    });
    names.collect()
}

/// Resolves `%41`.
fn decoded(name: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).ok()
}

/// The value at `names` below `root`, with the steps to it.
pub(super) fn find<'a>(
    root: Doc<'a>,
    names: &[String],
) -> Result<Option<(Doc<'a>, Vec<Step<'a>>)>, SqlError> {
    let (mut value, mut steps) = (root, Vec::with_capacity(names.len()));
    for name in names {
        let child = match value.kind() {
            DocKind::Object => named(value, name)?,
            DocKind::Array => match name.parse::<usize>() {
                Ok(place) => value.element(place)?.map(|v| (Step::Place(place), v)),
                Err(_) => None,
            },
            DocKind::Scalar => None,
        };
        let Some((step, child)) = child else {
            return Ok(None);
        };
        steps.push(step);
        value = child;
    }
    Ok(Some((value, steps)))
}

fn named<'a>(object: Doc<'a>, name: &str) -> Result<Option<(Step<'a>, Doc<'a>)>, SqlError> {
    for member in object.members()? {
        let (own, value) = member?;
        if own == name {
            return Ok(Some((Step::Name(own), value)));
        }
    }
    Ok(None)
}
