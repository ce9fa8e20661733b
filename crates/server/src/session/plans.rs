//! The plans of one session: what a warm statement runs from. The operators are the worker's
//! (`nfold_exec::OperatorPool`).
//!
//! # Invariants
//! - S1: all of them were made under the session's present environment and for `schema_version`.
//! - S2: a plan that runs is out of its place; nothing else is run meanwhile.
//!
//! # Cost
//! A hit hashes nothing (the digest has its hash) and compares the key once; a prepared statement
//! remembers its plan's place ([`Hint`]), and compares the kinds of its values only. No allocation,
//! nothing shared is written.

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

/// Plans kept by one session.
const MAX_PLANS: usize = 256;
/// Bytes of memory that they may have together. Most are in the cache of all sessions as well; but
/// that cache takes no large ones.
const MAX_BYTES: usize = 8 << 20;
/// Plans of one hash: the same digest with other structural literals (`LIMIT 10` and `LIMIT 20`).
const MAX_VARIANTS: usize = 8;

/// One statement to be run.
pub struct Work<'a> {
    pub text: &'a [u8],
    pub digested: &'a Digested,
    /// Values of `?`, in order.
    pub markers: &'a [Value],
    /// It is being prepared: values of its `?` are not known yet.
    pub describe: bool,
    /// The tree, where the caller has it already.
    pub parsed: Option<&'a Parsed>,
    /// Where a prepared statement's plan was found last, under the session's present environment or
    /// an earlier one.
    pub hint: Option<&'a Cell<Hint>>,
}

/// One planned statement.
pub struct Cached {
    pub shared: Arc<SharedPlan>,
    /// The account's privileges were checked as of this version.
    pub account_version: u64,
    /// Of the statistics; none before the first execution.
    pub digest: DigestId,
    /// It is not kept: it was planned with the types that user variables had then.
    pub once: bool,
    /// What [`Hint`]s know it by; given when it is kept.
    serial: u64,
}

impl Cached {
    /// A plan whose account's privileges were checked as of this version.
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

/// Where a prepared statement found its plan. Nothing else has that serial number in this session,
/// ever.
#[derive(Clone, Copy, Default)]
pub struct Hint {
    place: u32,
    serial: u64,
}

/// See the module's header.
#[derive(Default)]
pub struct PlanMap {
    by_hash: FxHashMap<u64, SmallVec<[u32; 2]>>,
    /// `None` while the plan runs, or after it has failed.
    places: Vec<Option<Cached>>,
    /// Bytes of the plans that were added.
    bytes: usize,
    schema_version: u64,
    /// Hash of the statement at hand, and its place if it has one.
    hash: u64,
    running: Option<u32>,
    /// Place of the plan that was kept last.
    kept: Option<u32>,
    /// Serial number of the plan that was kept anew last.
    last_serial: u64,
    /// Number of the environment; not asked for yet if `None`.
    pub environment: Option<u32>,
}

impl PlanMap {
    /// Database, sql_mode, character set or the like changed: no plan holds.
    pub fn environment_changed(&mut self) {
        self.clear();
        self.environment = None;
    }

    /// Asks the processor for the places of a few plans.
    pub fn ask_for(&self) {
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

    /// Takes the plan of a statement out of its place, if there is one for this schema version.
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

    /// Puts a plan back, or a new one of the statement that was asked for last.
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

    /// The statement that ran last is counted under this id from now on, if it was planned.
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
                // The oldest makes room.
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
