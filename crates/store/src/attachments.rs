//! Attachments: bytes of the layer above that travel in the log with a commit, for a reader that
//! writes them elsewhere. The binary log is made of them.
//!
//! # Picture
//! ```text
//! commit ─▶ log record ATTACHMENT, in the commit's own mini-transaction
//!        └▶ ready ─ durable ─▶ take ─▶ the reader's file ─ synced ─▶ release
//! crash  ─▶ recovery reads the records of the log again ─▶ AttachmentReader
//! ```
//! # Invariants
//! - A1: an attachment is in the log if and only if its commit is, because one mini-transaction has
//!   both.
//! - A2: an attachment is ready before the horizon passes its commit. So the attachments up to a
//!   durable LSN are complete, and the reader takes them in the order of their commits.
//! - A3: no checkpoint passes an attachment before it is released. So after a crash, the log still
//!   has every attachment that the reader had not synced.
//! # Concurrency
//! One mutex. A commit with an attachment takes it for a push, the reader for a swap. A checkpoint
//! takes it after it has loaded the horizon: an attachment that is not listed then lies above that
//! horizon (A2).
//! # Cost
//! A commit without an attachment does not come here.

use crate::page::Lsn;
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::time::Duration;

/// The most payload bytes of one log record of an attachment.
pub(crate) const PIECE: usize = 60_000;

/// The attachment of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// The end of the commit's mini-transaction. It identifies the commit, and orders them.
    pub commit: Lsn,
    pub bytes: Vec<u8>,
}

/// Reads the attachments that a crash has left in the log.
///
/// [`Self::recovered`] is called in the order of the commits, when the log is durable and before
/// any of it is given up. An error ends the recovery.
pub trait AttachmentReader: Send + Sync {
    /// An attachment whose commit is above [`Self::synced`].
    ///
    /// # Errors
    /// The bytes cannot be kept.
    fn recovered(&self, attachment: Attachment) -> std::io::Result<()>;
    /// The highest commit whose attachment the reader has on disk.
    fn synced(&self) -> Lsn;
    /// All attachments were read. The log ends at `end`. Must make everything durable.
    ///
    /// # Errors
    /// The disk fails, or the reader has more than the log.
    fn finish(&self, end: Lsn) -> std::io::Result<()>;
}

#[derive(Default)]
struct State {
    /// Not taken yet, in any order.
    ready: Vec<Attachment>,
    /// For each commit that is not released, an LSN at or below its mini-transaction.
    held: BTreeMap<Lsn, Lsn>,
    /// The reader is to look even if nothing is ready.
    nudged: bool,
    /// The newest commit with an attachment since the start.
    newest: Lsn,
}

/// See the module header.
#[derive(Default)]
pub struct Attachments {
    state: Mutex<State>,
    arrived: Condvar,
}

impl Attachments {
    /// Adds the attachment of a commit whose mini-transaction begins at or behind `floor` (A2).
    pub fn push(&self, floor: Lsn, commit: Lsn, bytes: Vec<u8>) {
        let mut state = self.state.lock();
        state.held.insert(commit, floor);
        state.newest = state.newest.max(commit);
        state.ready.push(Attachment { commit, bytes });
        if state.ready.len() == 1 {
            self.arrived.notify_all();
        }
    }

    /// The lowest LSN that a checkpoint may not pass (A3).
    pub(crate) fn floor(&self) -> Option<Lsn> {
        self.state.lock().held.values().min().copied()
    }

    /// Waits until an attachment is ready, [`Self::nudge`] is called or `time` is over. Returns the
    /// lowest commit that is ready. Blocks.
    pub fn wait(&self, time: Duration) -> Option<Lsn> {
        let mut state = self.state.lock();
        if state.ready.is_empty() && !state.nudged {
            self.arrived.wait_for(&mut state, time);
        }
        state.nudged = false;
        state.ready.iter().map(|a| a.commit).min()
    }

    /// The newest commit with an attachment since the start; 0: there was none.
    pub fn newest(&self) -> Lsn {
        self.state.lock().newest
    }

    /// Ends a [`Self::wait`] of the reader.
    pub fn nudge(&self) {
        self.state.lock().nudged = true;
        self.arrived.notify_all();
    }

    /// Whether an attachment up to `commit` is ready and not taken.
    pub fn is_ready_below(&self, commit: Lsn) -> bool {
        self.state.lock().ready.iter().any(|a| a.commit <= commit)
    }

    /// Takes all attachments up to `durable`, in the order of their commits (A2).
    pub fn take(&self, durable: Lsn) -> Vec<Attachment> {
        let mut state = self.state.lock();
        let all = std::mem::take(&mut state.ready);
        let (mut taken, left) = all.into_iter().partition(|a| a.commit <= durable);
        state.ready = left;
        drop(state);
        let order = |a: &Attachment| a.commit;
        <[Attachment]>::sort_unstable_by_key(&mut taken, order);
        taken
    }

    /// The reader has synced all attachments up to this commit (A3).
    pub fn release(&self, commit: Lsn) {
        let mut state = self.state.lock();
        state.held = state.held.split_off(&(commit + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attachments_are_taken_in_order_up_to_the_durable_lsn() {
        let all = Attachments::default();
        all.push(90, 200, b"b".to_vec());
        all.push(40, 100, b"a".to_vec());
        all.push(200, 300, b"c".to_vec());
        assert_eq!(all.wait(Duration::ZERO), Some(100));
        assert_eq!(all.newest(), 300);
        let taken: Vec<Lsn> = all.take(250).iter().map(|a| a.commit).collect();
        assert_eq!(taken, [100, 200]);
        assert_eq!(all.floor(), Some(40));
        all.release(100);
        assert_eq!(all.floor(), Some(90));
        all.release(200);
        assert_eq!(all.floor(), Some(200));
        assert_eq!(all.take(300).len(), 1);
        all.release(300);
        assert_eq!(all.floor(), None);
    }
}
