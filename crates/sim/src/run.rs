//! Runs one seed: a sequence of engine runs, each from opening to shutdown or crash.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use nfold_engine::{Engine, EngineOptions, StoreOptions};
use nfold_store::{SimDisk, SimRng};

use crate::actor::{Actor, StepContext, Stepped};
use crate::branches::Branches;
use crate::damage::{self, Allowed};
use crate::ddl::Ddl;
use crate::faults::{Ending, Faults};
use crate::model::{Db, applied, orphan};
use crate::verify;
use crate::write::Scale;

/// The counters of one or more seeds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outcome {
    pub crashes: u32,
    pub commits: u64,
    pub definitions: u64,
    pub recovered_unfinished: u64,
    /// Prepared transactions that ended, and those that an opening has found.
    pub branches: u64,
    pub recovered_branches: u64,
    /// Undo files that were abandoned for new ones.
    pub undo_files: u64,
    /// Disks that were opened with flipped bits, and those of them that were rejected.
    pub damaged: u64,
    pub refused: u64,
    /// A digest of all disk calls in order. Equal seeds have equal digests.
    pub trace: u64,
}

impl Outcome {
    /// Adds the counters of another outcome.
    pub fn add(&mut self, other: &Outcome) {
        self.crashes += other.crashes;
        self.commits += other.commits;
        self.definitions += other.definitions;
        self.recovered_unfinished += other.recovered_unfinished;
        self.branches += other.branches;
        self.recovered_branches += other.recovered_branches;
        self.undo_files += other.undo_files;
        self.damaged += other.damaged;
        self.refused += other.refused;
        self.trace = self.trace.rotate_left(5) ^ other.trace;
    }
}

/// The most steps of one engine run.
const STEPS: u64 = 400;
/// The number of rounds after which transactions that do not end are considered stuck.
const MAX_END_ROUNDS: u64 = 20_000;
/// After one in this number of engine runs, a copy of the disk with flipped bits is opened.
const DAMAGE_RATE: u64 = 3;
/// The number of commits that damage to the end of the log may lose: those of one sync. That is one
/// commit, or two for a DDL statement.
const LOSABLE_COMMITS: usize = 2;
const LAZY_LOSABLE_COMMITS: usize = 200;
/// The panic payload that simulates the death of the process.
struct Died;

/// Runs one seed with at least `crashes` power failures or kills.
///
/// # Errors
/// A description of the failure.
pub fn run(seed: u64, crashes: u32) -> Result<Outcome, String> {
    let mut world = World::new(seed);
    while world.outcome.crashes < crashes {
        let ending = Ending::choose(&mut world.rng);
        world
            .run_to_end(ending)
            .map_err(|e| world.failed(&e, ending))?;
    }
    world
        .run_to_end(Ending::Last)
        .map_err(|e| world.failed(&e, Ending::Last))?;
    Ok(world.outcome)
}

pub(crate) struct World {
    pub disk: SimDisk,
    pub rng: SimRng,
    scale: Scale,
    /// Whether commits are not synced, so that the most recent ones may be lost, in order.
    lazy: bool,
    /// The committed state.
    pub db: Db,
    /// Other states that recovery may find instead of `db`.
    pub maybe: Vec<Db>,
    /// The committed states before the most recent commits; the newest state comes last.
    before: VecDeque<Db>,
    /// Decides about flipped bits. It is separate so that the rest of a seed does not depend on
    /// them.
    flips: SimRng,
    /// The step of the last DDL statement on each table.
    changed_at: BTreeMap<String, u64>,
    /// The number of the current step.
    pub now: u64,
    faulty: bool,
    faults: Faults,
    pub branches: Branches,
    pub outcome: Outcome,
}

impl World {
    pub(crate) fn new(seed: u64) -> World {
        let mut rng = SimRng::new(seed);
        let scale = Scale::choose(&mut rng);
        World {
            disk: SimDisk::new(),
            scale,
            lazy: rng.one_in(5),
            rng,
            db: Db::new(),
            maybe: Vec::new(),
            before: VecDeque::new(),
            flips: SimRng::new(!seed),
            changed_at: BTreeMap::new(),
            now: 0,
            faulty: false,
            faults: Faults::default(),
            branches: Branches::default(),
            outcome: Outcome::default(),
        }
    }

    fn failed(&self, what: &str, ending: Ending) -> String {
        format!(
            "{what} [crash {}, engine run that ends by {ending:?}]",
            self.outcome.crashes
        )
    }

    fn options(&mut self) -> EngineOptions {
        let rng = &mut self.rng;
        let pages = if rng.one_in(2) {
            64 + rng.below(64)
        } else {
            600
        };
        let store = StoreOptions {
            pool_bytes: pages * 16384,
            pool_max_bytes: 600 * 16384,
            log_bytes: (1 + rng.below(3)) << 20,
            log_buffer_bytes: 1 << 19,
            extend_bytes: 1 << 17,
            fatal: Some(Arc::new(|_| resume_unwind(Box::new(Died)))),
            ..StoreOptions::default()
        };
        EngineOptions {
            store,
            flush_at_commit: if self.lazy { 2 } else { 1 },
            // The entries of some rows, or of all. Derived from an existing random number, so as
            // not to change the sequence.
            build_memory: if pages % 2 == 1 { 1 << 10 } else { 1 << 20 },
        }
    }

    /// Runs the engine from opening to its end, and sets the disk to the state after that.
    fn run_to_end(&mut self, ending: Ending) -> Result<(), String> {
        if let Ending::Power(steps) = ending {
            self.disk.fail_power_after(steps);
        }
        self.faulty = false;
        let lived = catch_unwind(AssertUnwindSafe(|| self.run_engine(ending)));
        let mut died = self.disk.is_dead();
        match lived {
            Ok(Ok(())) => {}
            Ok(Err(_)) if died => {}
            Ok(Err(what)) => return Err(what),
            Err(payload) if payload.is::<Died>() => died = true,
            Err(_) if died => {}
            Err(payload) => return Err(panic_text(&*payload)),
        }
        self.outcome.trace = self.outcome.trace.rotate_left(9) ^ self.disk.trace();
        if !died && matches!(ending, Ending::Last | Ending::Shutdown) {
            self.disk = self.disk.kill();
            return self.flip_bits();
        }
        self.outcome.crashes += 1;
        let killed = matches!(ending, Ending::Kill) && !self.disk.is_dead();
        self.disk = if killed {
            self.disk.kill()
        } else {
            self.disk.crash(self.rng.next_u64())
        };
        self.disk.set_capacity(None);
        self.flip_bits()
    }

    /// Opens a copy of the disk with flipped bits after some engine runs.
    pub(crate) fn flip_bits(&mut self) -> Result<(), String> {
        if !self.flips.one_in(DAMAGE_RATE) {
            return Ok(());
        }
        let mut before: Vec<Db> = self.before.iter().cloned().collect();
        let committed = self.committed_by_crash()?;
        let allowed = match &committed {
            Some(after) => {
                before.push(self.db.clone());
                before.drain(..before.len().saturating_sub(self.losable_commits()));
                // All commits before it are durable, too.
                Allowed {
                    now: after,
                    maybe: &[],
                    before: &before,
                }
            }
            None => Allowed {
                now: &self.db,
                maybe: &self.maybe,
                before: &before,
            },
        };
        let refused = damage::probe(&self.disk, &mut self.flips, &allowed)?;
        self.outcome.damaged += 1;
        self.outcome.refused += u64::from(refused);
        Ok(())
    }

    /// The state after the commit of a prepared transaction that the crash interrupted, if an
    /// undamaged copy of the disk has that commit.
    pub(crate) fn committed_by_crash(&self) -> Result<Option<Db>, String> {
        if !self.branches.interrupted_commit() {
            return Ok(None);
        }
        let opened = damage::open(&self.disk.copy());
        let (engine, _) = opened.map_err(|e| format!("opening: {e}"))?;
        Ok(self.branches.committed(&self.db, &engine))
    }

    /// The number of commits that damage to the end of the log may lose.
    fn losable_commits(&self) -> usize {
        if self.lazy {
            LAZY_LOSABLE_COMMITS
        } else {
            LOSABLE_COMMITS
        }
    }

    /// Makes `after` the committed state, after a commit or a DDL statement. Returns the previous
    /// state.
    pub(crate) fn put_db(&mut self, after: Db) -> Db {
        let before = std::mem::replace(&mut self.db, after);
        self.before.push_back(before.clone());
        let limit = self.losable_commits();
        while self.before.len() > limit {
            self.before.pop_front();
        }
        before
    }

    fn run_engine(&mut self, ending: Ending) -> Result<(), String> {
        tell!("{} an engine run that ends by {ending:?}", self.now);
        let options = self.options();
        let opened = Engine::open(options, Arc::new(self.disk.clone()), &|_| {});
        let (engine, report) = opened.map_err(|e| format!("opening: {e}"))?;
        if self.rng.one_in(2) {
            // With a few pages, an undo file is abandoned every few transactions.
            let pages = 1 + self.rng.below(24);
            engine.set_undo_limit(Some(pages << 14));
        }
        self.outcome.recovered_unfinished += report.trx.unfinished as u64;
        self.outcome.recovered_branches += report.trx.prepared as u64;
        verify::after_recovery(self, &engine)?;
        let mut actors = Vec::new();
        for number in 0..1 + self.rng.below(5) {
            actors.push(Actor::new(&engine, number + 1).map_err(|e| e.to_string())?);
        }
        self.faults = Faults::choose(&mut self.rng, ending);
        for step in 0..STEPS {
            self.now += 1;
            self.faults.at_step(step, &self.disk);
            self.faulty = self.faults.active();
            self.turn(&engine, &mut actors)?;
        }
        self.end_faults();
        if matches!(ending, Ending::Last | Ending::Shutdown) {
            self.end_well(&engine, &mut actors)?;
            drop(actors);
            verify::check_idle(self, &engine)?;
            engine.shutdown().map_err(|e| format!("shutdown: {e}"))?;
        }
        Ok(())
    }

    fn end_faults(&mut self) {
        self.faults.end(&self.disk);
        self.faulty = false;
    }

    /// Runs one step of an actor, or of something else.
    fn turn(&mut self, engine: &Engine, actors: &mut [Actor]) -> Result<(), String> {
        if self.rng.one_in(10) {
            tell!("{} background", self.now);
            let stepped = engine.step_background().map(drop);
            self.tolerate(stepped, "background")?;
        }
        if self.rng.one_in(60) {
            let pages = 64 + self.rng.below(600);
            tell!("{} the pool is to have {pages} pages", self.now);
            engine.resize_pool(pages * 16384);
        }
        if self.rng.one_in(40) {
            tell!("{} checkpoint", self.now);
            let checkpointed = engine.checkpoint();
            self.tolerate(checkpointed, "checkpoint")?;
        }
        if self.rng.one_in(80) && !self.faulty {
            verify::check_tables(self, engine)?;
        }
        if self.rng.one_in(20) && !self.faulty {
            self.end_branch(engine)?;
        }
        if self.rng.one_in(15) {
            return self.define(engine, actors);
        }
        let n = self.rng.below(actors.len() as u64) as usize;
        // The end of a preparation is waited for, whether or not the connection lasts.
        if self.rng.one_in(120) && actors[n].preparing().is_none() {
            tell!("{} actor {} is lost", self.now, n + 1);
            // A lost connection: its transaction is rolled back in the background.
            actors[n] = Actor::new(engine, n as u64 + 1).map_err(|e| e.to_string())?;
        }
        self.step(engine, &mut actors[n], false).map(drop)
    }

    fn tolerate(
        &self,
        done: Result<(), nfold_engine::EngineError>,
        what: &str,
    ) -> Result<(), String> {
        use nfold_engine::{EngineError, StoreError};
        match done {
            Err(EngineError::Store(StoreError::Io { .. } | StoreError::DiskFull))
                if self.faulty =>
            {
                Ok(())
            }
            other => other.map_err(|e| format!("{what}: {e}")),
        }
    }

    /// Runs one step of an actor.
    fn step(
        &mut self,
        engine: &Engine,
        actor: &mut Actor,
        ending: bool,
    ) -> Result<Stepped, String> {
        // If the power fails during this step, the commit in progress may be durable or not.
        let after = actor.committing().map(|changes| applied(&self.db, changes));
        let known = self.maybe.len();
        self.maybe.extend(after);
        self.branches.preparing = actor.preparing();
        let around = StepContext {
            engine,
            db: &self.db,
            changed_at: &self.changed_at,
            now: self.now,
            scale: self.scale,
            faulty: self.faulty,
            ending,
        };
        let stepped = actor.step(&mut self.rng, &around)?;
        self.maybe.truncate(known);
        self.branches.preparing = None;
        if let Stepped::Prepared(name, branch) = &stepped {
            (self.branches.prepared).insert(name.clone(), branch.clone());
            // It is durable, and so are all commits before it.
            self.maybe.clear();
        }
        if let Stepped::Committed(changes) = &stepped {
            let after = applied(&self.db, changes);
            if let Some(orphan) = orphan(&after) {
                return Err(format!("a commit leaves an {orphan}"));
            }
            let before = self.put_db(after);
            if self.lazy {
                self.maybe.push(before);
            }
            self.outcome.commits += 1;
        }
        Ok(stepped)
    }

    /// Runs a DDL statement.
    fn define(&mut self, engine: &Engine, actors: &[Actor]) -> Result<(), String> {
        let branches = &self.branches;
        let used = |t: &str| branches.use_table(t) || actors.iter().any(|a| a.uses(t));
        let Some(ddl) = Ddl::choose(&self.db, &mut self.rng, self.scale.foreign, used) else {
            return Ok(());
        };
        let known = self.maybe.len();
        self.maybe.extend(ddl.after.clone());
        tell!("{} {:?} of {}", self.now, ddl.what, ddl.table);
        let done = ddl.run(engine);
        let mut done_durably = false;
        let named = |e: &dyn std::fmt::Display| format!("{:?} of {}: {e}", ddl.what, ddl.table);
        match (done, ddl.after.clone()) {
            (Ok(true), Some(after)) => {
                self.put_db(after);
                done_durably = true;
            }
            (Ok(false), None) => {}
            (Ok(true), None) => return Err(named(&"was done")),
            (Ok(false), Some(_)) => return Err(named(&"was refused")),
            (Err(e), after) => {
                self.tolerate(Err(e), &named(&"failed"))?;
                self.end_faults();
                // A statement that could not be rolled back at once is rolled back now. It has
                // locks on rows of the dictionary, and no other actor runs meanwhile.
                while engine
                    .step_background()
                    .map_err(|e| format!("background: {e}"))?
                {}
                if let Some(after) = after
                    && verify::which(engine, &self.db, &after).map_err(|e| named(&e))?
                {
                    self.put_db(after);
                    done_durably = true;
                }
            }
        }
        self.maybe.truncate(known);
        // A DDL statement deletes files at its end, so it is durable, and so are all commits before
        // it.
        if done_durably {
            self.maybe.clear();
        }
        self.outcome.definitions += 1;
        for name in ddl.tables() {
            self.changed_at.insert(name, self.now);
        }
        Ok(())
    }

    /// Ends all transactions, and checks that none waits for ever (M6).
    fn end_well(&mut self, engine: &Engine, actors: &mut [Actor]) -> Result<(), String> {
        // No actor must wait for one.
        while !self.branches.prepared.is_empty() {
            self.end_branch(engine)?;
        }
        let mut idle = vec![false; actors.len()];
        for _ in 0..MAX_END_ROUNDS {
            let n = self.rng.below(actors.len() as u64) as usize;
            if self.rng.one_in(10) {
                let stepped = engine.step_background().map(drop);
                self.tolerate(stepped, "background")?;
            }
            idle[n] = matches!(self.step(engine, &mut actors[n], true)?, Stepped::Idle);
            if idle.iter().all(|i| *i) {
                return Ok(());
            }
        }
        Err("a transaction does not end".into())
    }
}

pub(crate) fn panic_text(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| payload.downcast_ref::<&str>().copied());
    format!("panicked: {}", text.unwrap_or("?"))
}
