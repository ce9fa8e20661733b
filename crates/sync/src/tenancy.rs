//! A place in which one object after another lives, for readers that leave no trace of being there.
//!
//! # Picture
//! ```text
//! id       7 ──► NOBODY ──► 9 ──► NOBODY ──► ...    never the same twice
//! place    what its tenants use one after the other: atomics whose memory stays
//! users    pins << 32 | holds
//! ```
//! # Invariants
//! - I1: an id lives in one place at most, and once; nobody looks for it before it is there.
//! - I2: between a [`hold`](Tenancy::hold) or a [`pin`](Tenancy::pin) that found the id and its end the tenant stays.
//! - I3: a vacated place is given to the next tenant only after all that the last one left in it was cleared, and says nobody's id until then.
//! # Concurrency
//! A reader loads something from the place (Acquire), then the id: if that is the one it came for, what it loaded was that tenant's. For the next
//! tenant stored it (Release) after its own id, and the id before that was overwritten earlier still. A reader that came for a tenant long gone
//! may therefore look, but never believes.
//!
//! Who wants the tenant to stay adds itself to the users, `fence(SeqCst)`, and looks at the id; who wants the place takes the id away,
//! `fence(SeqCst)`, and looks at the users. Whichever fence is first, one of them sees the other: then the user goes, or the id comes back. Leaving is
//! a Release, and the look at the users an Acquire: what a user did happens before the place is cleared.
//! # Cost
//! A reader that does not hold pays for one load and one comparison, of a line that changes with the tenant alone. The users have a line of their own.

use crate::pad::CachePadded;
use crate::prim::{AtomicU32, AtomicU64, Ordering, fence};

/// The id of no tenant.
pub const NOBODY: u32 = u32::MAX;

const HOLD: u64 = 1;
const PIN: u64 = 1 << 32;

/// See the module's header.
#[derive(Debug)]
#[repr(C)]
pub struct Tenancy<T> {
    id: AtomicU32,
    place: T,
    users: CachePadded<AtomicU64>,
}

impl<T> Tenancy<T> {
    /// A place that nobody lives in.
    pub fn new(place: T) -> Self {
        Tenancy {
            id: AtomicU32::new(NOBODY),
            place,
            users: CachePadded::new(AtomicU64::new(0)),
        }
    }

    /// Whoever's it is just now.
    #[inline(always)]
    pub fn place(&self) -> &T {
        &self.place
    }

    /// Who lives here just now: for sure only while it is held or pinned.
    #[inline(always)]
    pub fn id(&self) -> u32 {
        self.id.load(Ordering::Relaxed)
    }

    /// Whether what was loaded (Acquire) from the place before this was `id`'s.
    #[inline(always)]
    #[must_use]
    pub fn is(&self, id: u32) -> bool {
        self.id() == id
    }

    /// Has the tenant `id` stay until [`release`](Self::release). False: it does not live here (any more), and there is nothing to release.
    #[must_use]
    pub fn hold(&self, id: u32) -> bool {
        self.users.fetch_add(HOLD, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let here = id != NOBODY && self.is(id);
        if !here {
            self.release();
        }
        here
    }

    /// One more hold, by who has one.
    pub fn hold_again(&self) {
        let users = self.users.fetch_add(HOLD, Ordering::Relaxed);
        debug_assert!(users > 0, "I2: only who holds holds again");
    }

    /// Ends a hold.
    pub fn release(&self) {
        self.users.fetch_sub(HOLD, Ordering::Release);
    }

    /// As [`hold`](Self::hold), counted apart; whoever is found here, [`unpin`](Self::unpin) ends it. The caller looks at the id next.
    pub fn pin(&self) {
        self.users.fetch_add(PIN, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Ends a pin; whether it was the last one.
    pub fn unpin(&self) -> bool {
        self.users.fetch_sub(PIN, Ordering::SeqCst) / PIN == 1
    }

    /// How many pins there are.
    pub fn pins(&self) -> u64 {
        self.users.load(Ordering::SeqCst) / PIN
    }

    /// Takes the place from `id`. False: somebody uses it, or it lives here no more. One thread at a time.
    #[must_use]
    pub fn vacate(&self, id: u32) -> bool {
        // Who has used it all the time does not even see the id go.
        if !self.is(id) || self.users.load(Ordering::Acquire) != 0 {
            return false;
        }
        self.id.store(NOBODY, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if self.users.load(Ordering::Acquire) != 0 {
            self.id.store(id, Ordering::Release);
            return false;
        }
        true
    }

    /// Gives a place that was vacated, and cleared, to `id`.
    pub fn occupy(&self, id: u32) {
        debug_assert!(self.is(NOBODY), "I3: a place is vacated first");
        self.id.store(id, Ordering::Release);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn tenants_follow_each_other_when_nobody_holds_them() {
        let t = Tenancy::new(());
        assert!(!t.hold(7) && !t.hold(NOBODY), "nobody lives there");
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
