//! The plan cache of one session, from which warm statements run. The operators belong to the
//! worker (`nfold_exec::OperatorPool`).
//!
//! # Invariants
//! - S1: all plans were made in the session's current plan context and for `schema_version`.
//! - S2: a running plan is taken out of its slot. No other statement runs meanwhile.
//!
//! # Cost
//! A hit computes no hash (the digest has one) and compares the key once. A prepared statement
//! remembers the slot of its plan ([`Hint`]), and compares only the kinds of its values. Nothing is
//! allocated, and nothing shared is written.

use std::cell::Cell;
use std::sync::Arc;

use nfold_observe::digests::DigestId;
use nfold_sql::digest::Digested;
use nfold_sql::parser::Parsed;
use nfold_sync::words::prefetch_line_outer;
use nfold_types::Value;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::shared_plans::{PlanKey, SharedPlan};

/// The maximum number of plans in one session's cache.
const MAX_PLANS: usize = 256;
/// The maximum memory of these plans in bytes. Most of them are in the shared cache as well, but
/// that cache takes no large ones.
const MAX_BYTES: usize = 8 << 20;
/// The maximum number of plans with one hash: the same digest with different structural literals
/// (`LIMIT 10` and `LIMIT 20`).
const MAX_VARIANTS: usize = 8;

/// A statement to be run.
pub struct Work<'a> {
    pub text: &'a [u8],
    pub digested: &'a Digested,
    /// The values of its `?`, in order.
    pub markers: &'a [Value],
    /// Whether it is being prepared, so that the values of its `?` are unknown.
    pub describe: bool,
    /// The syntax tree, if the caller has it.
    pub parsed: Option<&'a Parsed>,
    /// Where a prepared statement's plan was found last, in the current plan context or an earlier
    /// one.
    pub hint: Option<&'a Cell<Hint>>,
}

impl<'a> Work<'a> {
    /// A statement that was parsed, runs once, and has no `?`.
    pub fn parsed(text: &'a [u8], digested: &'a Digested, parsed: &'a Parsed) -> Work<'a> {
        Work {
            text,
            digested,
            markers: &[],
            describe: false,
            parsed: Some(parsed),
            hint: None,
        }
    }
}

/// A cached plan.
pub struct Cached {
    pub shared: Arc<SharedPlan>,
    /// The version of the accounts at which the privileges were checked.
    pub account_version: u64,
    /// Its id in the statistics; none before the first execution.
    pub digest: DigestId,
    /// Whether it is used only once, because it depends on the current types of user variables.
    pub once: bool,
    /// Identifies the plan to a [`Hint`]; set when the plan is cached.
    serial: u64,
}

impl Cached {
    /// A plan whose privileges were checked at this version of the accounts.
    pub fn new(shared: Arc<SharedPlan>, account_version: u64, once: bool) -> Cached {
        Cached {
            shared,
            account_version,
            digest: DigestId::default(),
            once,
            serial: 0,
        }
    }
}

/// The slot in which a prepared statement found its plan. The serial number is never reused in a
/// session.
#[derive(Clone, Copy, Default)]
pub struct Hint {
    place: u32,
    serial: u64,
}

/// See the module's header.
#[derive(Default)]
pub struct PlanMap {
    by_hash: FxHashMap<u64, SmallVec<[u32; 2]>>,
    /// A slot is `None` while its plan runs, and after the plan has failed.
    places: Vec<Option<Cached>>,
    /// The memory of the cached plans.
    bytes: usize,
    schema_version: u64,
    /// The hash of the current statement, and its slot if it has one.
    hash: u64,
    running: Option<u32>,
    /// The slot of the plan that was cached last.
    kept: Option<u32>,
    /// The serial number of the newest plan.
    last_serial: u64,
    /// The number of the plan context; `None`: not looked up yet.
    pub plan_context: Option<u32>,
}

impl PlanMap {
    /// Discards all plans, after a change of the database, the SQL mode, the character set or
    /// similar.
    pub fn environment_changed(&mut self) {
        self.clear();
        self.plan_context = None;
    }

    /// Prefetches the slots of a few plans.
    pub fn prefetch(&self) {
        if let Some(first) = self.places.first() {
            prefetch_line_outer(first);
        }
    }

    fn clear(&mut self) {
        self.by_hash.clear();
        self.places.clear();
        self.bytes = 0;
        self.running = None;
        self.kept = None;
    }

    /// Takes the plan of a statement out of its slot, if there is one for this schema version.
    #[inline]
    pub fn take(&mut self, work: &Work<'_>, schema_version: u64) -> Option<Cached> {
        self.running = None;
        self.kept = None;
        if self.schema_version != schema_version {
            self.clear();
            self.schema_version = schema_version;
        }
        if let Some(hint) = work.hint
            && let Some(place) = self.places.get_mut(hint.get().place as usize)
            && place.as_ref().is_some_and(|p| {
                p.serial == hint.get().serial && p.shared.key.is_of_markers(work.markers)
            })
        {
            self.running = Some(hint.get().place);
            return place.take();
        }
        self.hash = PlanKey::hash_of(work);
        for &at in self.by_hash.get(&self.hash)? {
            let place = &mut self.places[at as usize];
            if let Some(plan) = place.take_if(|p| p.shared.key.is_of(work)) {
                self.running = Some(at);
                if let Some(hint) = work.hint {
                    hint.set(Hint {
                        place: at,
                        serial: plan.serial,
                    });
                }
                return Some(plan);
            }
        }
        None
    }

    /// Returns a plan to its slot, or caches a new plan of the statement passed to `take` last.
    #[inline]
    pub fn keep(&mut self, plan: Cached) {
        if plan.once || plan.shared.schema_version != self.schema_version {
            return;
        }
        match self.running.take() {
            Some(at) => self.put(at, plan),
            None => self.add(plan),
        }
    }

    fn put(&mut self, at: u32, plan: Cached) {
        self.places[at as usize] = Some(plan);
        self.kept = Some(at);
    }

    /// Sets the id under which the last statement is counted from now on, if it has a plan.
    pub fn set_digest(&mut self, digested: &Digested, id: DigestId) {
        let place = self.kept.and_then(|at| self.places[at as usize].as_mut());
        if let Some(plan) = place
            && plan.shared.key.is_of_digest(digested)
        {
            plan.digest = id;
        }
    }

    fn add(&mut self, mut plan: Cached) {
        let bytes = plan.shared.bytes;
        if bytes > MAX_BYTES {
            return;
        }
        self.last_serial += 1;
        plan.serial = self.last_serial;
        if self.places.len() >= MAX_PLANS || self.bytes + bytes > MAX_BYTES {
            self.clear();
        }
        self.bytes += bytes;
        let list = self.by_hash.entry(self.hash).or_default();
        let empty = list
            .iter()
            .find(|&&at| self.places[at as usize].is_none())
            .copied();
        let at = match empty {
            None if list.len() >= MAX_VARIANTS => {
                // The oldest variant is replaced.
                list.rotate_left(1);
                list[MAX_VARIANTS - 1]
            }
            None => {
                self.places.push(None);
                list.push(self.places.len() as u32 - 1);
                list[list.len() - 1]
            }
            Some(at) => at,
        };
        self.put(at, plan);
    }
}
