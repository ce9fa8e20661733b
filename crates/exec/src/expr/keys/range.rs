//! Ranges of keys: their bounds, their order, and the prefix of a LIKE pattern.

use nfold_engine::{Bound as KeyBound, KeyBytes, KeyRange};
use nfold_plan::expr::Expr;
use nfold_types::key::{KeyLayout, KeyPart};
use nfold_types::{SqlError, Value, ValueRef};
use smallvec::SmallVec;

use super::key_error;
use crate::expr::eval::{EvalCx, compare};

/// One bound of a range over a key part.
pub(super) enum End {
    Open,
    /// The value, and whether it is included.
    At(Value, bool),
    /// An encoded prefix: keys that begin with it are included.
    Raw(KeyBytes),
}

/// The encoded bounds of one key part, without the prefix before it.
pub(super) struct PartBounds {
    lo: KeyBound,
    hi: KeyBound,
}

impl PartBounds {
    /// A range between two encoded values, in key order, both included.
    pub(super) fn between(lo: &[u8], hi: &[u8]) -> PartBounds {
        PartBounds {
            lo: KeyBound::Included(lo.into()),
            hi: KeyBound::Included(hi.into()),
        }
    }

    pub(super) fn new(
        layout: &KeyLayout,
        part: usize,
        lo: &End,
        hi: &End,
        scratch: &mut Vec<u8>,
    ) -> Result<PartBounds, SqlError> {
        let mut encoded = |value: ValueRef<'_>| -> Result<KeyBytes, SqlError> {
            scratch.clear();
            layout
                .encode_part(part, value, scratch)
                .map_err(|e| key_error(&e))?;
            Ok(KeyBytes::from_slice(scratch))
        };
        let mut encode = |end: &End| -> Result<KeyBound, SqlError> {
            Ok(match end {
                End::Open => KeyBound::Unbounded,
                End::Raw(bytes) => KeyBound::Included(bytes.clone()),
                End::At(value, inside) => {
                    let key = encoded(value.as_ref())?;
                    // A prefix represents all values that begin with it, so the bound itself is
                    // always included.
                    if *inside || layout.parts()[part].prefix_len != 0 {
                        KeyBound::Included(key)
                    } else {
                        KeyBound::Excluded(key)
                    }
                }
            })
        };
        let (mut low, mut high) = (encode(lo)?, encode(hi)?);
        let desc = layout.parts()[part].desc;
        if desc {
            std::mem::swap(&mut low, &mut high);
        }
        // NULL is in no range. It sorts first, or last in a descending part.
        if layout.parts()[part].nullable {
            let null = encoded(ValueRef::Null)?;
            if desc && matches!(high, KeyBound::Unbounded) {
                high = KeyBound::Excluded(null);
            } else if !desc && matches!(low, KeyBound::Unbounded) {
                low = KeyBound::Excluded(null);
            }
        }
        Ok(PartBounds { lo: low, hi: high })
    }

    /// The range of keys that begin with `prefix`.
    pub(super) fn under(&self, prefix: &[u8]) -> KeyRange {
        let behind = |k: &[u8]| {
            let mut key = KeyBytes::from_slice(prefix);
            key.extend_from_slice(k);
            key
        };
        let join = |b: &KeyBound| match b {
            KeyBound::Unbounded if prefix.is_empty() => KeyBound::Unbounded,
            KeyBound::Unbounded => KeyBound::Included(prefix.into()),
            KeyBound::Included(k) => KeyBound::Included(behind(k)),
            KeyBound::Excluded(k) => KeyBound::Excluded(behind(k)),
        };
        KeyRange {
            lo: join(&self.lo),
            hi: join(&self.hi),
        }
    }
}

/// The first key of a range, and the first key after it.
pub(super) type ByteRange = (KeyBytes, Option<KeyBytes>);

/// Sorts ranges and merges those that touch, so that no row is found twice.
pub(super) fn merge(all: &mut SmallVec<[ByteRange; 2]>, out: &mut Vec<KeyRange>) {
    all.retain(|(lo, hi)| hi.as_ref().is_none_or(|hi| *lo < *hi));
    all.sort();
    let mut ranges = all.drain(..);
    let mut next = ranges.next();
    while let Some((lo, mut hi)) = next {
        next = ranges.next();
        while let (Some((from, to)), Some(end)) = (&mut next, &hi)
            && *end >= *from
        {
            if to.as_ref().is_none_or(|to| *to > *end) {
                hi = to.take();
            }
            next = ranges.next();
        }
        if hi.is_none() {
            next = None;
        }
        out.push(KeyRange {
            // Byte bounds: the lower bound and all keys that begin with it are included.
            lo: if lo.is_empty() {
                KeyBound::Unbounded
            } else {
                KeyBound::Included(lo)
            },
            hi: hi.map_or(KeyBound::Unbounded, KeyBound::Excluded),
        });
    }
}

/// The key bytes that every match of a LIKE pattern begins with. `None` if the pattern begins with
/// a wildcard.
pub(super) fn like_prefix<'a>(
    cx: &EvalCx<'a>,
    pattern: &'a Expr,
    escape: Option<&'a Expr>,
    part: &KeyPart,
) -> Result<Option<Vec<u8>>, SqlError> {
    let collation = part.ty.collation.known();
    let Some(pattern) = cx.text(pattern, part.ty.collation)? else {
        return Ok(None);
    };
    let escape = match escape {
        None => Some('\\'),
        Some(e) => compare::escape_char(cx.bytes(e)?.as_deref()),
    };
    let mut literal = Vec::new();
    collation.like_prefix(&pattern, escape, &mut literal);
    if part.prefix_len != 0 {
        let keep = collation
            .char_prefix(&literal, part.prefix_len as usize)
            .len();
        literal.truncate(keep);
    }
    if literal.is_empty() {
        return Ok(None);
    }
    let mut sort = Vec::new();
    collation.sort_key_prefix(&literal, &mut sort);
    if sort.is_empty() {
        return Ok(None);
    }
    // The encoding of a key part: a NOT NULL marker and escaped zeros, but no end marker, because a
    // match may continue.
    let mut key = Vec::with_capacity(sort.len() + 2);
    if part.nullable {
        key.push(1);
    }
    for b in sort {
        key.push(b);
        if b == 0 {
            key.push(0xFF);
        }
    }
    if part.desc {
        key.iter_mut().for_each(|b| *b = !*b);
    }
    Ok(Some(key))
}
