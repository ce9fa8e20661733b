//! Visibility: which version of a row or an index entry a reader sees.
//!
//! # Invariants
//! V1. An entry without a delete mark, whose newest change is visible, belongs to the row's visible
//!     version, and no other version is needed. An entry with one, whose newest change is visible,
//!     belongs to no visible version.
//! V2. For every other entry the clustered row decides: its visible version counts if it has the
//!     entry's key.
//!
//! READ UNCOMMITTED has no snapshot; its invariants are `newest::V3` and `newest::V4`.
//!
//! V1 holds because a transaction changes the clustered row before the entries, and rolls entries
//! back before the row.

use nfold_store::{PageId, StoreError, TrxId};
use nfold_txn::TrxSystem;
use nfold_txn::undo::{UndoKind, UndoPtr, UndoRecord};
use nfold_txn::view::{Snapshot, StatusTable};
use nfold_types::row::Image;

use crate::error::{EngineError, Stop, lift};
use crate::read::version_memo::{LONG_CHAIN, VersionMemo};
use crate::record::{RowHead, RowHeader};

/// Which versions a reader sees.
#[derive(Clone, Copy)]
pub(crate) enum View<'a> {
    /// The newest version, committed or not (READ UNCOMMITTED, and locked rows).
    Newest,
    /// The versions committed when the snapshot was opened, and the reader's own changes.
    Snapshot(Snapshot, &'a StatusTable),
}

impl View<'_> {
    /// The changes of transactions below this id are visible. For others, ask [`View::sees`].
    #[inline]
    pub(crate) fn sees_below(&self) -> TrxId {
        match self {
            View::Newest => TrxId::MAX,
            View::Snapshot(snapshot, _) => snapshot.all_ended_below(),
        }
    }

    /// Whether the changes of `trx` are visible.
    #[inline]
    pub(crate) fn sees(&self, trx: TrxId) -> bool {
        match self {
            View::Newest => true,
            View::Snapshot(snapshot, status) => snapshot.sees(trx, status),
        }
    }
}

/// Reused buffers of one reader.
#[derive(Default)]
pub(crate) struct Scratch {
    /// An older version: header and image.
    pub version: Vec<u8>,
    record: UndoRecord,
    /// Made at the first long version chain.
    memo: Option<Box<VersionMemo>>,
    /// Undo records read, for tests of growth.
    pub undo_reads: u64,
}

impl Scratch {
    /// Bytes of memory that are kept.
    pub(super) fn memory(&self) -> usize {
        self.version.capacity() + self.memo.as_ref().map_or(0, |memo| memo.memory())
    }
}

/// The version of a clustered value that a reader sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resolved {
    /// The newest version.
    Current,
    /// The version in [`Scratch::version`].
    Older,
    /// Nothing.
    Gone,
}

/// Decides what `view` sees of the clustered `value`, whose primary key is `primary`.
#[inline]
pub(crate) fn resolve_row<'k>(
    system: &TrxSystem,
    view: &View<'_>,
    value: &[u8],
    primary: impl FnOnce() -> &'k [u8],
    scratch: &mut Scratch,
) -> Result<Resolved, Stop> {
    let Some((header, _)) = RowHeader::split(value) else {
        return Err(damaged());
    };
    if view.sees(header.trx) {
        return Ok(if header.deleted {
            Resolved::Gone
        } else {
            Resolved::Current
        });
    }
    older(system, view, header, primary(), scratch)
}

/// Whether `view`, which sees all transactions below `below`, sees the newest version of the
/// clustered `value`, and the whole row is on the page. Returns false also if the quick check
/// cannot decide: the full check follows then.
#[inline(always)]
pub(crate) fn visible<'i>(view: &View<'_>, below: TrxId, value: impl Image<'i>) -> bool {
    let len = value.len();
    if len < RowHead::SECOND + size_of::<u64>() {
        return false;
    }
    let (Some(first), Some(second)) = (value.at(0), value.at(RowHead::SECOND)) else {
        return false;
    };
    let head = RowHead::from_words(u64::from_le_bytes(first), u64::from_le_bytes(second));
    head.unmarked && (head.trx < below || view.sees(head.trx))
}

/// Finds an older version, in the memo or along the version chain.
#[cold]
fn older(
    system: &TrxSystem,
    view: &View<'_>,
    newest: RowHeader,
    primary: &[u8],
    scratch: &mut Scratch,
) -> Result<Resolved, Stop> {
    let View::Snapshot(snapshot, _) = view else {
        return walk_chain(system, view, newest, scratch).map(|(resolved, _)| resolved);
    };
    if let Some(memo) = &scratch.memo
        && let Some(version) = memo.get(snapshot, primary)
    {
        let Some(version) = version else {
            return Ok(Resolved::Gone);
        };
        scratch.version.clear();
        scratch.version.extend_from_slice(version);
        return Ok(Resolved::Older);
    }
    let (resolved, steps) = walk_chain(system, view, newest, scratch)?;
    if steps >= LONG_CHAIN {
        let version = (resolved == Resolved::Older).then_some(scratch.version.as_slice());
        let memo = &mut scratch.memo;
        memo.get_or_insert_with(|| Box::new(VersionMemo::new(*snapshot)))
            .put(*snapshot, primary, version);
    }
    Ok(resolved)
}

/// Walks a version chain to the version that `view` sees; also returns the number of steps.
fn walk_chain(
    system: &TrxSystem,
    view: &View<'_>,
    newest: RowHeader,
    scratch: &mut Scratch,
) -> Result<(Resolved, usize), Stop> {
    let mut header = newest;
    let mut steps = 0;
    loop {
        steps += 1;
        if !previous_version(system, header, scratch)? {
            return Ok((Resolved::Gone, steps));
        }
        let Some((previous, _)) = RowHeader::split(&scratch.version) else {
            return Err(damaged());
        };
        if view.sees(previous.trx) {
            let resolved = match previous.deleted {
                true => Resolved::Gone,
                false => Resolved::Older,
            };
            return Ok((resolved, steps));
        }
        header = previous;
    }
}

/// Puts the version that `header`'s version replaced into [`Scratch::version`]; false if the row
/// did not exist before.
pub(crate) fn previous_version(
    system: &TrxSystem,
    header: RowHeader,
    scratch: &mut Scratch,
) -> Result<bool, Stop> {
    if header.undo == 0 {
        return Ok(false);
    }
    scratch.undo_reads += 1;
    let record = &mut scratch.record;
    system
        .undo()
        .read(UndoPtr(header.undo), header.trx, record)
        .map_err(lift)?;
    if record.kind == UndoKind::Insert {
        return Ok(false);
    }
    scratch.version.clear();
    scratch
        .version
        .extend_from_slice(&RowHeader::from(record.old).to_bytes());
    scratch.version.extend_from_slice(record.image());
    Ok(true)
}

/// An entry or row that cannot be read.
#[cold]
pub(crate) fn damaged() -> Stop {
    let page = PageId { space: 0, page: 0 };
    EngineError::Store(StoreError::Corrupt {
        page,
        lsn: 0,
        what: "a row or an index entry is damaged",
    })
    .into()
}
