//! Changes of the entries of one row in a multi-valued index: as many as its array has distinct
//! elements.
//!
//! # Invariants
//! E1. The list of changes is the same at each call for one row, so that an operation that waited
//!     goes on behind the changes that it has made (`Progress::Elements`).
//! E2. An entry that both versions of a row have is not touched, unless its original bytes change.

use nfold_txn::locks::LockMode;

use crate::error::Stop;
use crate::session::EngineSession;
use crate::table::Table;
use crate::write::{Progress, Work, secondary};

/// One change of an entry.
enum EntryChange {
    /// Another row must not have the element.
    Check(Vec<u8>),
    Mark(Vec<u8>),
    Insert(Vec<u8>),
}

/// A row, and its clustered key.
pub(super) type Version<'r> = (&'r [u8], &'r [u8]);

/// Replaces the entries of `old` in multi-valued index `n` by those of `new`. Locks of other rows'
/// entries with the same unique keys are taken in mode `duplicates`. `rewrite`: entries of both are
/// written again, because their original bytes differ. Returns whether another row has one of the
/// keys; the operation has to be undone then.
pub(super) fn replace(
    session: &mut EngineSession,
    table: &Table,
    work: &mut Work,
    n: usize,
    (old, new): (Option<Version<'_>>, Option<Version<'_>>),
    (duplicates, rewrite): (LockMode, bool),
) -> Result<bool, Stop> {
    let done = match work.progress {
        Progress::Elements { n: at, done } if at == n => done,
        _ => 0,
    };
    let changes = changes(table, n, (old, new), rewrite)?;
    let own = old
        .or(new)
        .map_or(Vec::new(), |(_, primary)| primary.to_vec());
    for (at, change) in changes.iter().enumerate().skip(done) {
        work.progress = Progress::Elements { n, done: at };
        match change {
            EntryChange::Check(key) => {
                if secondary::unique_conflict(session, table, n, key, (&own, duplicates))? {
                    return Ok(true);
                }
            }
            EntryChange::Mark(key) => {
                work.key.clone_from(key);
                secondary::mark_key(session, table, work, n)?;
            }
            EntryChange::Insert(key) => {
                work.key.clone_from(key);
                let row = new.map_or(&[][..], |(row, _)| row);
                secondary::insert_key(session, table, work, n, row)?;
            }
        }
    }
    Ok(false)
}

/// The changes in their order: checks, entries to mark, entries to insert.
fn changes(
    table: &Table,
    n: usize,
    (old, new): (Option<Version<'_>>, Option<Version<'_>>),
    rewrite: bool,
) -> Result<Vec<EntryChange>, Stop> {
    let keys = |version: Option<Version<'_>>| match version {
        Some((row, primary)) => table.entry_keys(n, row, primary),
        None => Ok(Vec::new()),
    };
    let (before, after) = (keys(old)?, keys(new)?);
    let gone = before
        .iter()
        .filter(|key| after.binary_search(key).is_err());
    let added = || {
        after
            .iter()
            .filter(|key| before.binary_search(key).is_err())
    };
    let mut changes = Vec::new();
    if table.index(n).unique {
        let primary = new.map_or(0, |(_, primary)| primary.len());
        let own_parts = added().map(|key| key[..key.len() - primary].to_vec());
        changes.extend(own_parts.map(EntryChange::Check));
    }
    changes.extend(gone.cloned().map(EntryChange::Mark));
    match rewrite {
        true => changes.extend(after.iter().cloned().map(EntryChange::Insert)),
        false => changes.extend(added().cloned().map(EntryChange::Insert)),
    }
    Ok(changes)
}
