//! Documents as MySQL prints them.

use nfold_types::SqlError;
use nfold_types::convert::number::{write_double, write_i64, write_u64};

use crate::binary::{Doc, DocKind, Scalar};
use crate::tree::Work;

/// Appends the text of a document.
///
/// # Errors
/// 3142; a statement that must end.
pub fn print(doc: Doc<'_>, work: &Work<'_>, out: &mut Vec<u8>) -> Result<(), SqlError> {
    print_at(doc, None, work, out)
}

/// Appends the text of a document, one member or element a line.
///
/// # Errors
/// 3142; a statement that must end.
pub fn print_pretty(doc: Doc<'_>, work: &Work<'_>, out: &mut Vec<u8>) -> Result<(), SqlError> {
    print_at(doc, Some(0), work, out)
}

/// Appends the text of a document without the quotation marks of a scalar, as JSON_UNQUOTE has it.
///
/// # Errors
/// 3142; a statement that must end.
pub fn print_unquoted(doc: Doc<'_>, work: &Work<'_>, out: &mut Vec<u8>) -> Result<(), SqlError> {
    match doc.scalar()? {
        None => print(doc, work, out),
        Some(Scalar::String(text)) => {
            out.extend_from_slice(text.as_bytes());
            work.add(text.len() / 8)
        }
        Some(scalar) if is_quoted(&scalar) => {
            write_unquoted(scalar, b"\n", out);
            work.add(10)
        }
        Some(scalar) => {
            write_scalar(scalar, out);
            Ok(())
        }
    }
}

/// Whether a scalar that is no string is printed in quotation marks.
fn is_quoted(scalar: &Scalar<'_>) -> bool {
    use Scalar::{Date, DateTime, Opaque, Time, Timestamp};
    matches!(
        scalar,
        Date(_) | Time(_) | DateTime(_) | Timestamp(_) | Opaque(..)
    )
}

/// `level`: the indentation, if each value has a line of its own.
fn print_at(
    doc: Doc<'_>,
    level: Option<usize>,
    work: &Work<'_>,
    out: &mut Vec<u8>,
) -> Result<(), SqlError> {
    let before = out.len();
    let inner = level.map(|n| n + 1);
    match doc.kind() {
        DocKind::Scalar => {
            if let Some(scalar) = doc.scalar()? {
                write_scalar(scalar, out);
            }
            return work.add(10 + (out.len() - before));
        }
        DocKind::Array => {
            out.push(b'[');
            for (i, element) in doc.elements()?.enumerate() {
                separate(i, inner, out);
                print_at(element?, inner, work, out)?;
            }
        }
        DocKind::Object => {
            out.push(b'{');
            for (i, member) in doc.members()?.enumerate() {
                let (name, value) = member?;
                separate(i, inner, out);
                write_quoted(name, out);
                out.extend_from_slice(b": ");
                print_at(value, inner, work, out)?;
            }
        }
    }
    if out.len() > before + 1 {
        new_line(level, out);
    }
    out.push(match doc.kind() {
        DocKind::Array => b']',
        _ => b'}',
    });
    work.add(10)
}

fn separate(place: usize, level: Option<usize>, out: &mut Vec<u8>) {
    if place > 0 {
        out.push(b',');
        if level.is_none() {
            out.push(b' ');
        }
    }
    new_line(level, out);
}

fn new_line(level: Option<usize>, out: &mut Vec<u8>) {
    if let Some(level) = level {
        out.push(b'\n');
        out.resize(out.len() + 2 * level, b' ');
    }
}

/// Appends a scalar as a document shows it.
fn write_scalar(scalar: Scalar<'_>, out: &mut Vec<u8>) {
    match scalar {
        Scalar::Null => out.extend_from_slice(b"null"),
        Scalar::Bool(true) => out.extend_from_slice(b"true"),
        Scalar::Bool(false) => out.extend_from_slice(b"false"),
        Scalar::Int(v) => write_i64(v, out),
        Scalar::UInt(v) => write_u64(v, out),
        Scalar::Double(v) => {
            let start = out.len();
            write_double(v, out);
            // A double is told from an integer: `1.0`.
            let digits = |b: &u8| b.is_ascii_digit() || *b == b'-';
            if out[start..].iter().all(digits) {
                out.extend_from_slice(b".0");
            }
        }
        Scalar::Decimal(v) => v.write_to(out),
        Scalar::String(text) => write_quoted(text, out),
        other => {
            out.push(b'"');
            write_unquoted(other, b"\\n", out);
            out.push(b'"');
        }
    }
}

/// The text between the quotation marks of values that are neither numbers nor strings.
fn write_unquoted(scalar: Scalar<'_>, line_break: &[u8], out: &mut Vec<u8>) {
    match scalar {
        Scalar::Date(v) => v.write_to(out),
        Scalar::Time(v) => v.with_fsp(6).write_to(out),
        Scalar::DateTime(v) | Scalar::Timestamp(v) => v.with_fsp(6).write_to(out),
        Scalar::Opaque(field_type, bytes) => {
            out.extend_from_slice(b"base64:type");
            write_u64(u64::from(field_type.0), out);
            out.push(b':');
            // As MySQL breaks it.
            nfold_types::base64::encode_lines(bytes, line_break, out);
        }
        _ => {}
    }
}

/// Appends a string in quotation marks.
pub fn write_quoted(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    let special = |b: &u8| *b < 0x20 || *b == b'"' || *b == b'\\';
    while let Some(at) = rest.iter().position(special) {
        out.extend_from_slice(&rest[..at]);
        let short = match rest[at] {
            b'"' => b'"',
            b'\\' => b'\\',
            8 => b'b',
            12 => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            control => {
                out.extend_from_slice(format!("\\u{control:04x}").as_bytes());
                rest = &rest[at + 1..];
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', short]);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// A text as a JSON string.
pub fn quote(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 2);
    write_quoted(text, &mut out);
    out
}
