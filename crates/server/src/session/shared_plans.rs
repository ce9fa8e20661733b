//! Plans of all sessions, for those that have not met a statement yet.
//!
//! # Picture
//! ```text
//! session's plans (plans.rs) ── not there ──▶ shard (mutex) ── not there ──▶ parse and plan, put into both
//!        every execution                 first execution in a session
//! ```
//! # Invariants
//! P1. A plan is found only under the whole of its [`PlanKey`] and the schema version it was made
//!     for; a hash alone decides nothing.
//! P2. A number of an environment is never given to another one.
//! P3. A plan holds no value of a parameter and no member of a list: its size does not depend on
//!     them.
//!
//! # Concurrency
//! The mutexes are taken when a session meets a statement for the first time, or after DDL. A warm
//! statement runs from the session's own reference, which is counted when it is taken over and when
//! it is let go, not when it is used.
//!
//! # Cost
//! Bounded by bytes (`nfold_plan_cache_size`), each shard by its share. A shard that is full lets
//! go what nobody has asked for since it was full last.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use nfold_catalog::TableId;
use nfold_plan::query::Plan;
use nfold_sql::digest::{Digested, LiteralRole};
use nfold_sql::parser::Deprecated;
use nfold_types::{Level, Value, Warnings};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::plans::Work;
use super::prepared::Text;
use super::tables::TableUse;

const SHARDS: usize = 16;
/// Larger plans are rare, and their operators would keep them in memory after every session has
/// let them go.
const LARGE_BYTES: usize = 256 << 10;
/// Environments that have a number at a time.
const MAX_ENVIRONMENTS: usize = 4096;

/// What a plan is found by, beside its environment.
pub struct PlanKey {
    /// `Digested::key`: the normalised text and the kinds of its literals, per list a set.
    digest: Box<[u8]>,
    /// Kinds of the values of `?`.
    markers: Box<[u8]>,
    /// There are `?` whose values are not known: a statement that is being prepared.
    describe: bool,
    /// What became of each literal, and the texts of the structural ones.
    roles: Box<[LiteralRole]>,
    structural: Box<[u8]>,
    /// The text up to the last result column that is named by it.
    named: Box<[u8]>,
}

/// One byte for the kind of a parameter's value.
fn marker_kind(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Int(_) => 1,
        Value::UInt(_) => 2,
        Value::Float(_) | Value::Double(_) => 3,
        Value::Decimal(_) => 4,
        Value::Bytes(_) => 5,
        Value::Date(_) => 6,
        Value::DateTime(_) | Value::Timestamp(_) => 7,
        Value::Time(_) => 8,
    }
}

impl PlanKey {
    /// Of a statement that was parsed with these roles.
    pub fn new(work: &Work<'_>, roles: &[LiteralRole], named_by_text: usize) -> PlanKey {
        let mut structural = Vec::new();
        work.digested
            .append_structural(roles, work.text, &mut structural);
        PlanKey {
            digest: work.digested.key().into(),
            markers: work.markers.iter().map(marker_kind).collect(),
            describe: work.describe,
            roles: roles.into(),
            structural: structural.into(),
            named: work.text.get(..named_by_text).unwrap_or_default().into(),
        }
    }

    /// Whether a statement is this one but for the values of parameters.
    #[inline]
    pub fn is_of(&self, work: &Work<'_>) -> bool {
        *self.digest == *work.digested.key()
            && self.describe == work.describe
            && self.is_of_markers(work.markers)
            && work
                .digested
                .structural_is(&self.roles, work.text, &self.structural)
            && work.text.get(..self.named.len()) == Some(&*self.named)
    }

    /// Whether it is for values of these kinds, in the places of `?`.
    #[inline]
    pub fn is_of_markers(&self, values: &[Value]) -> bool {
        self.markers.len() == values.len()
            && values
                .iter()
                .zip(&self.markers)
                .all(|(v, &kind)| marker_kind(v) == kind)
    }

    /// Whether it is of this digest, whatever the values.
    pub fn is_of_digest(&self, digested: &Digested) -> bool {
        *self.digest == *digested.key()
    }

    /// Bytes on the heap.
    pub fn bytes(&self) -> usize {
        self.digest.len()
            + self.markers.len()
            + self.roles.len()
            + self.structural.len()
            + self.named.len()
    }

    /// Equal for equal keys.
    #[inline]
    pub fn hash_of(work: &Work<'_>) -> u64 {
        let hash = work.digested.hash() as u64;
        work.markers.iter().fold(hash, |h, v| {
            (h.rotate_left(5) ^ u64::from(marker_kind(v))).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        })
    }
}

/// A plan, and what must hold for it to be used.
pub struct SharedPlan {
    pub key: PlanKey,
    pub plan: Arc<Plan>,
    /// The tables, for privileges: each session asks its own.
    pub uses: Vec<TableUse>,
    /// What is announced as metadata locks.
    pub ids: Vec<TableId>,
    pub schema_version: u64,
    /// Rows may change.
    pub writes: bool,
    /// Of the hint MAX_EXECUTION_TIME.
    pub time_limit: Option<Duration>,
    /// The user variables that take the row, in place of the client.
    pub into: Option<Box<[String]>>,
    /// How tables are read: `nfold_observe::digests::access`.
    pub access: u8,
    /// What the text has that MySQL deprecates: preparing it warns of these, or running it as it
    /// is.
    pub deprecated: Vec<Deprecated>,
    /// Of a statement that was prepared: its text, for all who prepare the same.
    pub text: OnceLock<Arc<Text>>,
    /// Bytes of memory. 0 before [`SharedPlan::measured`].
    pub bytes: usize,
}

impl SharedPlan {
    /// Adds the warnings that the text itself earns.
    pub fn warn_of_text(&self, conditions: &mut Warnings) {
        for deprecated in &self.deprecated {
            conditions.push_error(Level::Warning, &deprecated.warning());
        }
    }

    /// Takes the text that another session has prepared, if it is the same.
    pub fn share_text(&self, text: &mut Arc<Text>) {
        let first = self.text.get_or_init(|| text.clone());
        if first.is_like(text) {
            *text = first.clone();
        }
    }

    /// Sets `bytes`.
    pub fn measured(mut self) -> SharedPlan {
        self.bytes = self.count_bytes();
        self
    }

    /// Whether it is so large that workers keep no operators of it between executions.
    #[inline]
    pub fn is_large(&self) -> bool {
        self.bytes > LARGE_BYTES
    }

    fn count_bytes(&self) -> usize {
        let names: usize = self
            .uses
            .iter()
            .map(|u| u.schema.len() + u.name.len())
            .sum();
        size_of::<Kept>()
            + size_of::<SharedPlan>()
            + size_of::<Plan>()
            + self.key.bytes()
            + self.plan.heap_bytes()
            + size_of_val(&*self.uses)
            + names
            + size_of_val(&*self.ids)
            + size_of_val(&*self.deprecated)
            + self.into.as_ref().map_or(0, |names| size_of_val(&**names))
            + 3 * self.key.digest.len()
    }
}

struct Kept {
    plan: Arc<SharedPlan>,
    environment: u32,
    bytes: usize,
    /// It was asked for since the shard was full last.
    used: bool,
}

#[derive(Default)]
struct Shard {
    by_hash: FxHashMap<u64, Vec<Kept>>,
    bytes: usize,
    plans: usize,
    schema_version: u64,
}

impl Shard {
    /// Lets everything go that was made for an older schema.
    fn follow(&mut self, schema_version: u64) {
        if self.schema_version < schema_version {
            *self = Shard {
                schema_version,
                ..Shard::default()
            };
        }
    }

    /// Lets go until `room` bytes are free below `limit`; gives how many plans went.
    fn make_room(&mut self, room: usize, limit: usize) -> u64 {
        let before = self.plans;
        // The first round spares what was used, the second nothing.
        for spare in [true, false] {
            if self.bytes + room <= limit {
                break;
            }
            let (bytes, plans) = (&mut self.bytes, &mut self.plans);
            self.by_hash.retain(|_, list| {
                list.retain_mut(|kept| {
                    let stays = *bytes + room <= limit || spare && std::mem::take(&mut kept.used);
                    if !stays {
                        *bytes -= kept.bytes;
                        *plans -= 1;
                    }
                    stays
                });
                !list.is_empty()
            });
        }
        (before - self.plans) as u64
    }
}

/// Numbers for environments.
#[derive(Default)]
struct Environments {
    numbers: FxHashMap<Box<str>, u32>,
    last: u32,
}

/// What SHOW STATUS tells of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PlanCacheStatus {
    pub bytes: u64,
    pub plans: u64,
    /// Sessions that took a plan over.
    pub hits: u64,
    /// Statements that were parsed and planned.
    pub misses: u64,
    pub evictions: u64,
}

/// See the module's header.
#[derive(Default)]
pub struct SharedPlans {
    shards: [Mutex<Shard>; SHARDS],
    environments: Mutex<Environments>,
    limit_bytes: AtomicUsize,
    hits: AtomicU64,
    misses: AtomicU64,
    evictions: AtomicU64,
}

impl SharedPlans {
    /// The number of an environment, described by a text that differs wherever a plan might.
    pub fn environment(&self, text: &str) -> u32 {
        let mut all = self.environments.lock();
        if let Some(&n) = all.numbers.get(text) {
            return n;
        }
        if all.numbers.len() >= MAX_ENVIRONMENTS {
            // They get new numbers when they come again (P2); the plans under the old ones are
            // evicted in time.
            all.numbers.clear();
        }
        all.last += 1;
        let n = all.last;
        all.numbers.insert(text.into(), n);
        n
    }

    fn place(&self, hash: u64, environment: u32) -> (u64, &Mutex<Shard>) {
        let hash = hash ^ u64::from(environment).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (hash, &self.shards[(hash >> 60) as usize % SHARDS])
    }

    /// The plan of a statement under an environment and a schema version.
    pub fn get(&self, work: &Work<'_>, environment: u32, schema: u64) -> Option<Arc<SharedPlan>> {
        let (hash, shard) = self.place(PlanKey::hash_of(work), environment);
        let mut shard = shard.lock();
        shard.follow(schema);
        let found = shard.by_hash.get_mut(&hash)?.iter_mut().find(|kept| {
            kept.environment == environment
                && kept.plan.schema_version == schema
                && kept.plan.key.is_of(work)
        })?;
        found.used = true;
        self.hits.fetch_add(1, Relaxed);
        Some(found.plan.clone())
    }

    /// A statement was planned: keeps the plan, in place of one with its key.
    pub fn put(&self, work: &Work<'_>, environment: u32, plan: &Arc<SharedPlan>) {
        let bytes = plan.bytes;
        let limit = self.limit_bytes.load(Relaxed) / SHARDS;
        let (hash, shard) = self.place(PlanKey::hash_of(work), environment);
        let mut shard = shard.lock();
        shard.follow(plan.schema_version);
        if bytes > limit || shard.schema_version != plan.schema_version {
            return;
        }
        let evicted = shard.make_room(bytes, limit);
        self.evictions.fetch_add(evicted, Relaxed);
        let kept = Kept {
            plan: plan.clone(),
            environment,
            bytes,
            used: true,
        };
        shard.bytes += bytes;
        let list = shard.by_hash.entry(hash).or_default();
        let old = list
            .iter_mut()
            .find(|k| k.environment == environment && k.plan.key.is_of(work));
        match old {
            Some(old) => {
                let gone = std::mem::replace(old, kept);
                shard.bytes -= gone.bytes;
            }
            None => {
                list.push(kept);
                shard.plans += 1;
            }
        }
    }

    /// A statement is parsed and planned.
    pub fn count_miss(&self) {
        self.misses.fetch_add(1, Relaxed);
    }

    /// `nfold_plan_cache_size`; what is beyond a smaller one goes at the next plan.
    pub fn set_limit(&self, bytes: u64) {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        self.limit_bytes.store(bytes, Relaxed);
    }

    /// Sums over the shards; not of one moment.
    pub fn status(&self) -> PlanCacheStatus {
        let mut status = PlanCacheStatus {
            hits: self.hits.load(Relaxed),
            misses: self.misses.load(Relaxed),
            evictions: self.evictions.load(Relaxed),
            ..PlanCacheStatus::default()
        };
        for shard in &self.shards {
            let shard = shard.lock();
            status.bytes += shard.bytes as u64;
            status.plans += shard.plans as u64;
        }
        status
    }
}
