//! Updates of long values that change little: the row goes on naming the chain of the value, and
//! describes the changes ([`value_changes`]). So neither the overflow pages nor the undo record nor
//! the log hold the value again.
//!
//! # Cost
//! One more descent for a row with long values. The value is compared once; a value that has
//! changes already is also read from its chain and compared with that.

use nfold_btree::TreeHandle;
use nfold_types::row::{OverflowPointer, RawField, RowLayout};

use crate::error::{Stop, lift};
use crate::overflow;
use crate::read::damaged;
use crate::record::RowHeader;
use crate::session::EngineSession;
use crate::table::Table;
use crate::value_changes::describe;

/// Replaces the long values of `new` that differ little from those of `old`, the version that is
/// stored under `key`. `current` is scratch memory.
pub(super) fn describe_long_values(
    session: &EngineSession,
    table: &Table,
    key: &[u8],
    (old, new): (&[u8], &mut Vec<u8>),
    current: &mut Vec<u8>,
) -> Result<(), Stop> {
    if !overflow::is_long((key.len(), new)) {
        return Ok(());
    }
    current.clear();
    let tree: &TreeHandle = &table.index(0).tree;
    if !tree.get(session.store(), key, current).map_err(lift)? {
        return Ok(());
    }
    let (_, stored) = RowHeader::split(current).ok_or_else(damaged)?;
    if !RowLayout::has_external(stored) {
        return Ok(());
    }
    let layout = table.layout();
    let (mut described, mut changes) = (Vec::new(), Vec::new());
    for ordinal in 0..layout.columns().len() {
        let Some(chain) = layout.raw(stored, ordinal).ok().and_then(RawField::pointer) else {
            continue;
        };
        // overflow::O3: columns of an index are written anew.
        if table.is_in_key(ordinal) {
            continue;
        }
        let values = (layout.raw(old, ordinal), layout.raw(new, ordinal));
        if let (Ok(RawField::Var(old)), Ok(RawField::Var(new))) = values {
            let start = changes.len();
            let field = layout.raw(stored, ordinal);
            let field = field.map_err(|_| table.corrupt_row())?;
            if describe_value(session, table, (field, chain), (old, new), &mut changes)? {
                described.push((ordinal, chain, start..changes.len()));
            }
        }
    }
    if described.is_empty() {
        return Ok(());
    }
    let mut image = Vec::with_capacity(RowLayout::FLAGS_END + changes.len());
    let done = layout.rewrite(new, &mut image, |ordinal, field| {
        match described.iter().find(|(column, ..)| *column == ordinal) {
            Some((_, chain, range)) if range.is_empty() => RawField::External(*chain),
            Some((_, chain, range)) => RawField::Patched(*chain, &changes[range.clone()]),
            None => field,
        }
    });
    done.map_err(|_| table.corrupt_row())?;
    *new = image;
    Ok(())
}

/// Appends the changes that make `new` of the bytes of the chain. False: they are too many.
/// `field` is the stored field, and `old` its value.
fn describe_value(
    session: &EngineSession,
    table: &Table,
    (field, chain): (RawField<'_>, OverflowPointer),
    (old, new): (&[u8], &[u8]),
    changes: &mut Vec<u8>,
) -> Result<bool, Stop> {
    let start = changes.len();
    if !describe(old, new, changes) {
        return Ok(false);
    }
    let in_memory = || overflow::chain_in_memory(session.store(), table.def().space, chain);
    let RawField::Patched(_, before) = field else {
        debug_assert!(
            in_memory().is_ok_and(|value| value.is_none_or(|value| value == old)),
            "the old image is the stored version"
        );
        return Ok(old.len() as u64 == chain.length);
    };
    if changes.len() == start {
        changes.extend_from_slice(before);
        return Ok(true);
    }
    changes.truncate(start);
    Ok(in_memory()?.is_some_and(|value| describe(&value, new, changes)))
}

/// Whether values of a row image are described by their changes.
pub(super) fn has_described_values(table: &Table, image: &[u8]) -> bool {
    let layout = table.layout();
    let described = |n| matches!(layout.raw(image, n), Ok(RawField::Patched(..)));
    RowLayout::has_external(image) && (0..layout.columns().len()).any(described)
}
