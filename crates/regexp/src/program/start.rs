//! Where a match can start.

use crate::error::PatternError;
use crate::fold;
use crate::node::{Assertion, Node};
use crate::work::Work;

/// Restrictions on the first byte of a match.
#[derive(Debug)]
pub(crate) enum Start {
    /// A match may start everywhere.
    Anywhere,
    /// Only at the start of the text.
    Once,
    /// Only at the start of a line.
    Line { unix: bool },
    /// Only at one of these bytes.
    Bytes(Box<[bool; 256]>),
    /// Only at one of one, two or three bytes.
    Few([u8; 3]),
}

/// The start of matches of `node`.
pub(super) fn start_of(node: &Node, work: &mut Work<'_>) -> Result<Start, PatternError> {
    match anchor(node) {
        Some(Assertion::TextStart) => return Ok(Start::Once),
        Some(Assertion::LineStart) => return Ok(Start::Line { unix: false }),
        Some(Assertion::UnixLineStart) => return Ok(Start::Line { unix: true }),
        _ => {}
    }
    let mut bytes = Box::new([false; 256]);
    if !first_bytes(node, &mut bytes, work)? {
        return Ok(Start::Anywhere);
    }
    let mut few = (0..=255_u8).filter(|b| bytes[usize::from(*b)]);
    let (Some(a), b, c, None) = (few.next(), few.next(), few.next(), few.next()) else {
        return Ok(Start::Bytes(bytes));
    };
    Ok(Start::Few([a, b.unwrap_or(a), c.unwrap_or(a)]))
}

/// The assertion that every match of `node` starts with.
fn anchor(node: &Node) -> Option<Assertion> {
    match node {
        Node::Assert(assertion) => Some(*assertion),
        Node::Concat(nodes) => {
            let mut solid = nodes.iter().filter(|n| !matches!(n, Node::Empty));
            solid.next().and_then(anchor)
        }
        Node::Alternate(nodes) => {
            let start = Some(Assertion::TextStart);
            nodes.iter().all(|n| anchor(n) == start).then_some(start)?
        }
        Node::Capture { body, .. } | Node::Atomic(body) => anchor(body),
        _ => None,
    }
}

/// Adds the first bytes of the texts that `node` matches; `false` if it may match an empty one, or
/// if nothing is known.
fn first_bytes(
    node: &Node,
    bytes: &mut [bool; 256],
    work: &mut Work<'_>,
) -> Result<bool, PatternError> {
    work.spend(1)?;
    Ok(match node {
        // As in ICU, a reference at the start repeats an empty group.
        Node::BackReference { .. } => false,
        Node::Empty | Node::Assert(_) | Node::Look { .. } => false,
        Node::Never => true,
        Node::Char { code, fold } => {
            first_of_char(*code, *fold, bytes);
            true
        }
        Node::Set(set) => {
            for (first, last) in set.ranges() {
                for code in u32::from(first)..=u32::from(last).min(127) {
                    bytes[code as usize] = true;
                }
                if last > '\x7f' {
                    add_beyond_ascii(bytes);
                }
            }
            true
        }
        Node::Dot(_) | Node::LineBreak | Node::Grapheme => {
            bytes.fill(true);
            true
        }
        Node::Concat(nodes) => {
            for node in nodes {
                if first_bytes(node, bytes, work)? {
                    return Ok(true);
                }
            }
            false
        }
        Node::Alternate(nodes) => {
            // All alternatives are checked, even if the first one already decides.
            let mut is_solid = true;
            for node in nodes {
                is_solid &= first_bytes(node, bytes, work)?;
            }
            is_solid
        }
        Node::Capture { body, .. } | Node::Atomic(body) => first_bytes(body, bytes, work)?,
        Node::Repeat { max: Some(0), .. } => false,
        Node::LazyOption(body) => {
            first_bytes(body, bytes, work)?;
            false
        }
        Node::Repeat { body, min, .. } => first_bytes(body, bytes, work)? && *min > 0,
    })
}

fn add_beyond_ascii(bytes: &mut [bool; 256]) {
    bytes[0xc2..].fill(true);
}

fn first_of_char(code: u32, is_folded: bool, bytes: &mut [bool; 256]) {
    let Some(c) = char::from_u32(code) else {
        return;
    };
    let mut buffer = [0; 4];
    if !is_folded {
        bytes[usize::from(c.encode_utf8(&mut buffer).as_bytes()[0])] = true;
        return;
    }
    let first = fold::full(c).and_then(|f| f.chars().next());
    let first = first.unwrap_or_else(|| fold::simple(c));
    if !first.is_ascii() || first.is_ascii_alphabetic() {
        add_beyond_ascii(bytes);
    }
    if first.is_ascii() {
        bytes[usize::from(first.to_ascii_lowercase() as u8)] = true;
        bytes[usize::from(first.to_ascii_uppercase() as u8)] = true;
    }
}
