//! A reusable slot whose memory serves one object ("tenant") after another. Readers can tell
//! whether the slot still holds their object without storing anything.
//!
//! # Picture
//! ```text
//! id       7 ──► NO_TENANT ──► 9 ──► NO_TENANT ──► ...    no id is used twice
//! value    atomics that each tenant uses in turn; their memory is never freed
//! users    pins << 32 | holds
//! ```
//! # Invariants
//! - I1: an id occupies at most one slot, and only once. Readers learn an id only after its tenant
//!   has moved in.
//! - I2: a tenant stays from a [`hold`](Tenancy::hold) or a [`pin`](Tenancy::pin) that found its id
//!   until the matching release.
//! - I3: before the next tenant occupies the slot, its value is cleared. Until then the id is
//!   `NO_TENANT`.
//! # Concurrency
//! A reader loads something from the value (Acquire), and then the id. If the id is the expected
//! one, the loaded data belong to that tenant: the next tenant stores its data (Release) only after
//! its own id, and the old id was overwritten before that. A reader that looks for a former tenant
//! may load foreign data, but it then finds another id and discards them.
//!
//! A user that wants the tenant to stay adds itself to `users`, runs `fence(SeqCst)` and checks the
//! id. A thread that wants to reuse the slot clears the id, runs `fence(SeqCst)` and checks
//! `users`. Whichever fence comes first, one of the two sees the other: either the user backs off,
//! or the id is restored.
//!
//! A release is a Release operation and the check of `users` an Acquire load, so a user's accesses
//! happen before the slot is cleared.
//! # Cost
//! A reader that does not hold the tenant pays for one load and one comparison. The id's line
//! changes only with the tenant. `users` has a line of its own.

use crate::pad::CachePadded;
use crate::prim::{AtomicU32, AtomicU64, Ordering, fence};

/// The id of a slot without a tenant.
pub const NO_TENANT: u32 = u32::MAX;

const HOLD: u64 = 1;
const PIN: u64 = 1 << 32;

/// See the module's header.
#[derive(Debug)]
#[repr(C)]
pub struct Tenancy<T> {
    id: AtomicU32,
    value: T,
    users: CachePadded<AtomicU64>,
}

impl<T> Tenancy<T> {
    /// An unoccupied slot.
    pub fn new(value: T) -> Self {
        Tenancy {
            id: AtomicU32::new(NO_TENANT),
            value,
            users: CachePadded::new(AtomicU64::new(0)),
        }
    }

    /// The value, which belongs to the current tenant.
    #[inline(always)]
    pub fn value(&self) -> &T {
        &self.value
    }

    /// The id of the current tenant. It is stable only while the tenant is held or pinned.
    #[inline(always)]
    pub fn id(&self) -> u32 {
        self.id.load(Ordering::Relaxed)
    }

    /// Whether data loaded (Acquire) from the value before this call belong to `id`.
    #[inline(always)]
    #[must_use]
    pub fn is(&self, id: u32) -> bool {
        self.id() == id
    }

    /// Keeps the tenant `id` in the slot until [`release`](Self::release). False: the slot does not
    /// hold it (any more), and there is nothing to release.
    #[must_use]
    pub fn hold(&self, id: u32) -> bool {
        self.users.fetch_add(HOLD, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let here = id != NO_TENANT && self.is(id);
        if !here {
            self.release();
        }
        here
    }

    /// Adds a hold. The caller must have one already.
    pub fn hold_again(&self) {
        let users = self.users.fetch_add(HOLD, Ordering::Relaxed);
        debug_assert!(users > 0, "I2: a second hold needs a first");
    }

    /// Ends a hold.
    pub fn release(&self) {
        self.users.fetch_sub(HOLD, Ordering::Release);
    }

    /// As [`hold`](Self::hold), but counted apart and for whichever tenant is there. The caller
    /// checks the id next, and ends the pin by [`unpin`](Self::unpin) in any case.
    pub fn pin(&self) {
        self.users.fetch_add(PIN, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Ends a pin. Returns whether it was the last one.
    pub fn unpin(&self) -> bool {
        self.users.fetch_sub(PIN, Ordering::SeqCst) / PIN == 1
    }

    /// The number of pins.
    pub fn pins(&self) -> u64 {
        self.users.load(Ordering::SeqCst) / PIN
    }

    /// Evicts the tenant `id` from the slot. False: it is in use, or not here any more. Only one
    /// thread at a time may call this.
    #[must_use]
    pub fn vacate(&self, id: u32) -> bool {
        // This early check spares long-standing users a moment in which the id is gone.
        if !self.is(id) || self.users.load(Ordering::Acquire) != 0 {
            return false;
        }
        self.id.store(NO_TENANT, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if self.users.load(Ordering::Acquire) != 0 {
            self.id.store(id, Ordering::Release);
            return false;
        }
        true
    }

    /// Lets `id` occupy the slot, which must be vacated and cleared.
    pub fn occupy(&self, id: u32) {
        debug_assert!(self.is(NO_TENANT), "I3: the slot is vacated first");
        self.id.store(id, Ordering::Release);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn slot_changes_tenant_when_unused() {
        let t = Tenancy::new(());
        assert!(!t.hold(7) && !t.hold(NO_TENANT), "the slot is empty");
        t.occupy(7);
        assert!(t.is(7) && t.hold(7) && !t.hold(8));
        t.hold_again();
        t.release();
        assert!(!t.vacate(7), "it is held");
        t.release();
        t.pin();
        assert!(!t.vacate(7) && t.pins() == 1, "it is pinned");
        t.pin();
        assert!(!t.unpin());
        assert!(t.unpin());
        assert!(t.is(7) && !t.vacate(8) && t.vacate(7));
        assert!(!t.hold(7) && !t.is(7));
        t.occupy(9);
        assert!(!t.hold(7) && t.hold(9));
    }
}
