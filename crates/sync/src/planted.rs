//! Bugs on purpose, so that the simulator can show that it finds such bugs. Only the feature `planted` compiles them in; without it [`is`] is
//! `false` at compile time, and nothing of them is left in a binary.

/// A bug that can be planted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Bug {
    /// The log counts as durable without a sync.
    SkippedSync = 1,
    /// Recovery forgets the newest of the transactions that a crash left unfinished.
    LostUndo,
    /// A checkpoint does not look at the pages that are still to be written.
    WrongCheckpoint,
    /// What a split moves to the new page is not in the log.
    UnloggedSplit,
    /// A cursor goes on in the page where it was, without a look at whether that page is still the right one.
    MissedValidation,
    /// A page that was read is taken for whole whatever its checksum says.
    MissedChecksum,
    /// An optimistic read is taken for valid whatever has happened to the page: for the models, as one thread alone cannot notice.
    MissedVersion,
}

#[cfg(feature = "planted")]
static PLANTED: std::sync::atomic::AtomicU8 = std::sync::atomic::AtomicU8::new(0);

/// Plants a bug in this process, in the place of the one before.
#[cfg(feature = "planted")]
pub fn plant(bug: Option<Bug>) {
    let bug = bug.map_or(0, |bug| bug as u8);
    PLANTED.store(bug, std::sync::atomic::Ordering::SeqCst);
}

/// Whether a bug is planted.
#[cfg(feature = "planted")]
pub fn is(bug: Bug) -> bool {
    PLANTED.load(std::sync::atomic::Ordering::Relaxed) == bug as u8
}

/// Whether a bug is planted: never.
#[cfg(not(feature = "planted"))]
#[inline(always)]
pub const fn is(_: Bug) -> bool {
    false
}
