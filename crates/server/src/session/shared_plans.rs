//! The plan cache that all sessions share, for statements that a session runs for the first time.
//!
//! # Picture
//! ```text
//! session's plans (plans.rs) ── not there ──▶ shard (mutex) ── not there ──▶ parse and plan, put into both
//!        every execution                 first execution in a session
//! ```
//! # Invariants
//! P1. A plan is found only under its complete [`PlanKey`] and the schema version that it was made
//!     for; an equal hash is not enough.
//! P2. The number of a plan context is never reused for another one.
//! P3. A plan holds no parameter value and no list member, so its size does not depend on them.
//!
//! # Concurrency
//! The mutexes are taken when a session meets a statement for the first time, or after DDL. A warm
//! statement runs from the session's own reference. That reference is counted when the session
//! takes over or drops the plan, not when it runs it.
//!
//! # Cost
//! Bounded in bytes (`nfold_plan_cache_size`), with an equal share for each shard. A full shard
//! evicts the plans that were not used since it was full last. A lookup goes through at
//! most [`MAX_VARIANTS`] plans, and compares the whole keys of few of them.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use nfold_catalog::TableId;
use nfold_observe::StatementKind;
use nfold_plan::query::Plan;
use nfold_plan::{ColumnUse, Reads};
use nfold_sql::ast::SelectInto;
use nfold_sql::digest::{Digested, LiteralRole};
use nfold_sql::parser::Deprecated;
use nfold_types::{Level, Value, Warnings};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::plans::Work;
use super::prepared::Text;
use super::tables::TableUse;

const SHARDS: usize = 16;
/// Workers keep no operators of larger plans between executions. Such plans are rare, and their
/// operators would keep them in memory after every session has dropped them.
const LARGE_BYTES: usize = 2 << 20;
/// Plans of one hash. They are of one digest with other structural literals, such as `SELECT 'a'`
/// and `SELECT 'b'`.
const MAX_VARIANTS: usize = 64;
/// The maximum number of plan contexts with a number.
const MAX_ENVIRONMENTS: usize = 4096;

/// The key of a plan, besides its plan context.
pub struct PlanKey {
    /// `Digested::key`: the normalised text and the kinds of its literals; for a list, the set of
    /// kinds.
    digest: Box<[u8]>,
    /// The kinds of the values of `?`.
    markers: Box<[u8]>,
    /// Whether values of `?` are unknown, because the statement is being prepared.
    describe: bool,
    /// The role of each literal, and the texts of the structural ones.
    roles: Box<[LiteralRole]>,
    structural: Box<[u8]>,
    /// A hash of the structural literals.
    structural_hash: u64,
    /// The text up to the last result column that is named by its text.
    named: Box<[u8]>,
}

/// A byte for the kind of a parameter's value.
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
    /// The key of a statement that was parsed with these roles.
    pub fn new(work: &Work<'_>, roles: &[LiteralRole], named_by_text: usize) -> PlanKey {
        let mut structural = Vec::new();
        work.digested
            .append_structural(roles, work.text, &mut structural);
        PlanKey {
            digest: work.digested.key().into(),
            markers: work.markers.iter().map(marker_kind).collect(),
            describe: work.describe,
            roles: roles.into(),
            structural_hash: work.digested.structural_hash(roles, work.text),
            structural: structural.into(),
            named: work.text.get(..named_by_text).unwrap_or_default().into(),
        }
    }

    /// Whether a statement has this key, so that it differs in parameter values only.
    #[inline]
    pub fn is_of(&self, work: &Work<'_>) -> bool {
        *self.digest == *work.digested.key()
            && self.describe == work.describe
            && self.is_of_markers(work.markers)
            && work
                .digested
                .structural_is(&self.roles, work.text, &self.structural)
            && self.has_names_of(work)
    }

    /// Whether the result columns that are named by their text have these names.
    #[inline]
    fn has_names_of(&self, work: &Work<'_>) -> bool {
        work.text.get(..self.named.len()) == Some(&*self.named)
    }

    /// Whether the key is for `?` values of these kinds.
    #[inline]
    pub fn is_of_markers(&self, values: &[Value]) -> bool {
        self.markers.len() == values.len()
            && values
                .iter()
                .zip(&self.markers)
                .all(|(v, &kind)| marker_kind(v) == kind)
    }

    /// Whether the key has this digest.
    pub fn is_of_digest(&self, digested: &Digested) -> bool {
        *self.digest == *digested.key()
    }

    /// Its memory on the heap, in bytes.
    pub fn bytes(&self) -> usize {
        self.digest.len()
            + self.markers.len()
            + self.roles.len()
            + self.structural.len()
            + self.named.len()
    }

    /// A hash that is equal for equal keys.
    #[inline]
    pub fn hash_of(work: &Work<'_>) -> u64 {
        let hash = work.digested.hash() as u64;
        work.markers.iter().fold(hash, |h, v| {
            (h.rotate_left(5) ^ u64::from(marker_kind(v))).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        })
    }
}

/// A plan with the conditions for using it.
pub struct SharedPlan {
    pub key: PlanKey,
    pub plan: Arc<Plan>,
    /// The tables that it uses. Each session checks its own privileges on them.
    pub uses: Vec<TableUse>,
    /// The columns that it names, for the same checks.
    pub columns: Vec<ColumnUse>,
    /// The ids to announce as metadata locks.
    pub ids: Vec<TableId>,
    pub schema_version: u64,
    /// The status variable that counts the statement.
    pub kind: Option<StatementKind>,
    /// Whether the statement may change rows.
    pub writes: bool,
    /// Whether it may change rows of tables that are not temporary.
    pub changes_stored: bool,
    /// The time limit in a MAX_EXECUTION_TIME hint.
    pub time_limit: Option<Duration>,
    /// What takes the rows, in place of the client.
    pub into: Option<SelectInto>,
    /// How tables are read: `nfold_observe::digests::access`.
    pub access: u8,
    /// The same, counted.
    pub reads: Reads,
    /// Deprecated syntax in the text. Its warnings are given when the statement is prepared, or
    /// when it runs without having been prepared.
    pub deprecated: Vec<Deprecated>,
    /// The text of a prepared statement, shared by all sessions that prepare it.
    pub text: OnceLock<Arc<Text>>,
    /// Its memory in bytes. 0 before [`SharedPlan::measured`].
    pub bytes: usize,
}

impl SharedPlan {
    /// Adds the warnings about deprecated syntax in the text.
    pub fn warn_of_text(&self, conditions: &mut Warnings) {
        for deprecated in &self.deprecated {
            conditions.push_error(Level::Warning, &deprecated.warning());
        }
    }

    /// Replaces `text` by the equal one of another session, if there is one.
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
        let columns: usize = self.columns.iter().map(ColumnUse::heap_bytes).sum();
        size_of::<Cached>()
            + size_of::<SharedPlan>()
            + size_of::<Plan>()
            + self.key.bytes()
            + self.plan.heap_bytes()
            + size_of_val(&*self.uses)
            + names
            + size_of_val(&*self.columns)
            + columns
            + size_of_val(&*self.ids)
            + size_of_val(&*self.deprecated)
            + self.into.as_ref().map_or(0, into_bytes)
            + 3 * self.key.digest.len()
    }
}

/// Bytes of INTO on the heap.
fn into_bytes(into: &SelectInto) -> usize {
    match into {
        SelectInto::Variables(names) => size_of_val(names.as_slice()),
        SelectInto::Outfile(to) => size_of_val(&**to) + to.file.len(),
        SelectInto::Dumpfile(name) => name.len(),
    }
}

struct Cached {
    plan: Arc<SharedPlan>,
    plan_context: u32,
    bytes: usize,
    /// Whether it was used since the shard was full last.
    used: bool,
}

#[derive(Default)]
struct Shard {
    by_hash: FxHashMap<u64, Vec<Cached>>,
    bytes: usize,
    plans: usize,
    schema_version: u64,
}

impl Shard {
    /// Evicts all plans of older schemas.
    fn follow(&mut self, schema_version: u64) {
        if self.schema_version < schema_version {
            *self = Shard {
                schema_version,
                ..Shard::default()
            };
        }
    }

    /// The plan of a statement among those of its hash.
    fn find<'l>(
        list: &'l mut [Cached],
        work: &Work<'_>,
        plan_context: u32,
    ) -> Option<&'l mut Cached> {
        // Statements of one digest have their literals in the same roles.
        let roles = &list.first()?.plan.key.roles;
        let structural = work.digested.structural_hash(roles, work.text);
        // The cheapest tests that tell plans of one digest apart come first.
        list.iter_mut().find(|kept| {
            kept.plan.key.structural_hash == structural
                && kept.plan.key.has_names_of(work)
                && kept.plan_context == plan_context
                && kept.plan.key.is_of(work)
        })
    }

    /// Evicts plans until `room` bytes are free below `limit`. Returns how many.
    fn make_room(&mut self, room: usize, limit: usize) -> u64 {
        let before = self.plans;
        // The first round spares used plans, the second evicts all.
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

/// Takes out one of the plans of a hash: the oldest that was not used since the last search for
/// one.
fn take_unused(list: &mut Vec<Cached>) -> Cached {
    let unused = list
        .iter_mut()
        .position(|kept| !std::mem::take(&mut kept.used));
    list.remove(unused.unwrap_or(0))
}

/// The numbers of plan contexts.
#[derive(Default)]
struct PlanContexts {
    numbers: FxHashMap<Box<str>, u32>,
    last: u32,
}

/// The counters for SHOW STATUS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PlanCacheStatus {
    pub bytes: u64,
    pub plans: u64,
    /// Sessions that have taken over a plan.
    pub hits: u64,
    /// Statements that were parsed and planned.
    pub misses: u64,
    pub evictions: u64,
}

/// See the module's header.
#[derive(Default)]
pub struct SharedPlans {
    shards: [Mutex<Shard>; SHARDS],
    plan_contexts: Mutex<PlanContexts>,
    limit_bytes: AtomicUsize,
    hits: AtomicU64,
    misses: AtomicU64,
    evictions: AtomicU64,
}

impl SharedPlans {
    /// The number of a plan context. `text` must differ if plans may differ.
    pub fn plan_context(&self, text: &str) -> u32 {
        let mut all = self.plan_contexts.lock();
        if let Some(&n) = all.numbers.get(text) {
            return n;
        }
        if all.numbers.len() >= MAX_ENVIRONMENTS {
            // They get new numbers at their next use (P2); the plans with the old numbers are
            // evicted in time.
            all.numbers.clear();
        }
        all.last += 1;
        let n = all.last;
        all.numbers.insert(text.into(), n);
        n
    }

    fn place(&self, hash: u64, plan_context: u32) -> (u64, &Mutex<Shard>) {
        let hash = hash ^ u64::from(plan_context).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (hash, &self.shards[(hash >> 60) as usize % SHARDS])
    }

    /// The plan of a statement in a plan context and for a schema version.
    pub fn get(&self, work: &Work<'_>, plan_context: u32, schema: u64) -> Option<Arc<SharedPlan>> {
        let (hash, shard) = self.place(PlanKey::hash_of(work), plan_context);
        let mut shard = shard.lock();
        shard.follow(schema);
        let list = shard.by_hash.get_mut(&hash)?;
        let found = Shard::find(list, work, plan_context)
            .filter(|kept| kept.plan.schema_version == schema)?;
        found.used = true;
        self.hits.fetch_add(1, Relaxed);
        Some(found.plan.clone())
    }

    /// Adds a new plan, and replaces one with the same key.
    pub fn put(&self, work: &Work<'_>, plan_context: u32, plan: &Arc<SharedPlan>) {
        let bytes = plan.bytes;
        let limit = self.limit_bytes.load(Relaxed) / SHARDS;
        let (hash, shard) = self.place(PlanKey::hash_of(work), plan_context);
        let mut shard = shard.lock();
        shard.follow(plan.schema_version);
        if bytes > limit || shard.schema_version != plan.schema_version {
            return;
        }
        let evicted = shard.make_room(bytes, limit);
        self.evictions.fetch_add(evicted, Relaxed);
        let kept = Cached {
            plan: plan.clone(),
            plan_context,
            bytes,
            used: true,
        };
        shard.bytes += bytes;
        let list = shard.by_hash.entry(hash).or_default();
        let is_full = list.len() >= MAX_VARIANTS;
        match Shard::find(list, work, plan_context) {
            Some(same) => {
                let gone = std::mem::replace(same, kept);
                shard.bytes -= gone.bytes;
            }
            None if is_full => {
                let gone = take_unused(list);
                list.push(kept);
                shard.bytes -= gone.bytes;
                self.evictions.fetch_add(1, Relaxed);
            }
            None => {
                list.push(kept);
                shard.plans += 1;
            }
        }
    }

    /// Counts a statement that is parsed and planned.
    pub fn count_miss(&self) {
        self.misses.fetch_add(1, Relaxed);
    }

    /// Sets `nfold_plan_cache_size`. A smaller size takes effect when the next plan is added.
    pub fn set_limit(&self, bytes: u64) {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        self.limit_bytes.store(bytes, Relaxed);
    }

    /// The sums over all shards, which are read one after the other.
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
