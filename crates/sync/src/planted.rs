//! Deliberate bugs. The simulator and the models plant them to show that they would find such bugs.
//!
//! Only the feature `planted` compiles them in. Without it [`is`] is `false` at compile time, and
//! the binary contains no trace of them.

/// A bug that can be planted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Bug {
    /// The log reports a position as durable without a sync.
    SkippedSync = 1,
    /// Recovery does not roll back the newest transaction that a crash left unfinished.
    LostUndo,
    /// Recovery rolls back a prepared transaction.
    ForgottenPrepare,
    /// A checkpoint ignores the dirty pages that are still to be written.
    WrongCheckpoint,
    /// A split does not log the entries that it moves to the new page.
    UnloggedSplit,
    /// A cursor continues in its current page without validating that it is still the right one.
    MissedValidation,
    /// A page read from disk is accepted with any checksum.
    MissedChecksum,
    /// The check of a foreign key believes an entry whose transaction has not ended.
    ProbedUncommitted,
    /// A row is changed after its foreign key was checked, and not before.
    ProbeBeforeChange,
    /// An optimistic read is accepted after any change of the page. Only the models use it: a
    /// single thread cannot notice.
    MissedVersion,
}

#[cfg(feature = "planted")]
static PLANTED: std::sync::atomic::AtomicU8 = std::sync::atomic::AtomicU8::new(0);

/// Plants a bug in this process; it replaces the bug planted before.
#[cfg(feature = "planted")]
pub fn plant(bug: Option<Bug>) {
    let bug = bug.map_or(0, |bug| bug as u8);
    PLANTED.store(bug, std::sync::atomic::Ordering::SeqCst);
}

/// Whether `bug` is planted.
#[cfg(feature = "planted")]
pub fn is(bug: Bug) -> bool {
    PLANTED.load(std::sync::atomic::Ordering::Relaxed) == bug as u8
}

/// Whether a bug is planted: never, as the feature is off.
#[cfg(not(feature = "planted"))]
#[inline(always)]
pub const fn is(_: Bug) -> bool {
    false
}
