//! One seed: lives and deaths of an engine.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use nfold_catalog::DatabaseDef;
use nfold_engine::{Engine, EngineOptions, Isolation, StoreOptions, Table, TrxOptions, block};
use nfold_store::{SimDisk, SimRng};
use nfold_types::collation::CollationId;

use crate::actor::{Actor, Stepped, difference, rows_of};
use crate::model::{Fields, Rows, table};

/// What a seed did.
#[derive(Debug, Clone, Copy, Default)]
pub struct Outcome {
    pub crashes: u32,
    pub commits: u64,
    pub recovered_unfinished: u64,
}

/// Steps of one life at most.
const STEPS: u64 = 400;
/// What a crash looks like from inside.
struct PowerFailed;

fn options(rng: &mut SimRng) -> EngineOptions {
    let store = StoreOptions {
        pool_bytes: (if rng.one_in(2) {
            64 + rng.below(64)
        } else {
            600
        }) * 16384,
        log_bytes: (1 + rng.below(3)) << 20,
        log_buffer_bytes: 1 << 19,
        extend_bytes: 1 << 17,
        fatal: Some(Arc::new(|_| resume_unwind(Box::new(PowerFailed)))),
        ..StoreOptions::default()
    };
    EngineOptions {
        store,
        flush_at_commit: 1,
    }
}

/// Runs one seed with `crashes` power failures.
///
/// # Errors
/// What went wrong, in words.
pub fn run(seed: u64, crashes: u32) -> Result<Outcome, String> {
    let mut rng = SimRng::new(seed);
    let mut disk = SimDisk::new();
    let mut committed = Rows::new();
    let mut outcome = Outcome::default();
    // The state that the commit cut off by the last crash would have made.
    let mut unsure: Option<Rows> = None;
    for life in 0..=crashes {
        let last = life == crashes;
        if !last {
            let steps = if rng.one_in(3) {
                rng.below(40)
            } else {
                rng.below(1500)
            };
            disk.fail_power_after(steps);
        }
        let lived = catch_unwind(AssertUnwindSafe(|| {
            live(
                &disk,
                &mut rng,
                &mut committed,
                &mut unsure,
                &mut outcome,
                last,
            )
        }));
        match lived {
            Ok(Err(what)) if !disk.is_dead() => return Err(what),
            Ok(_) => {}
            Err(payload) if payload.is::<PowerFailed>() || disk.is_dead() => {}
            Err(payload) => resume_unwind(payload),
        }
        if disk.is_dead() {
            outcome.crashes += 1;
        }
        disk = disk.crash(rng.next_u64());
    }
    Ok(outcome)
}

/// From opening to the crash, or to the last step.
fn live(
    disk: &SimDisk,
    rng: &mut SimRng,
    committed: &mut Rows,
    unsure: &mut Option<Rows>,
    outcome: &mut Outcome,
    last: bool,
) -> Result<(), String> {
    let opened = Engine::open(options(rng), Arc::new(disk.clone()), &|_| {});
    let (engine, report) = opened.map_err(|e| format!("opening: {e}"))?;
    // Whatever happens, nothing of a dead engine runs its destructors.
    let engine = std::mem::ManuallyDrop::new(engine);
    outcome.recovered_unfinished += report.trx.unfinished as u64;
    let table = find_table(&engine)?;
    settle(&engine, &table, committed, unsure)?;
    let mut actors = Vec::new();
    for number in 0..1 + rng.below(5) {
        let actor = Actor::new(&engine, &table, number + 1).map_err(|e| e.to_string())?;
        actors.push(std::mem::ManuallyDrop::new(actor));
    }
    for _ in 0..STEPS {
        let n = rng.below(actors.len() as u64) as usize;
        if rng.one_in(10) {
            engine
                .step_background()
                .map_err(|e| format!("background: {e}"))?;
        }
        if rng.one_in(60) {
            check(&engine, &table)?;
        }
        // Should the power fail inside this step, a commit under way may be there or not.
        *unsure = actors[n]
            .committing()
            .map(|changes| applied(committed, &changes));
        if let Stepped::Committed(changes) = actors[n].step(rng, committed)? {
            *committed = applied(committed, &changes);
            outcome.commits += 1;
        }
        *unsure = None;
    }
    if last {
        for actor in &mut actors {
            // Dropping rolls back in the background, as a lost connection does.
            drop(std::mem::ManuallyDrop::into_inner(std::mem::replace(
                actor,
                idle(&engine, &table)?,
            )));
        }
        settle(&engine, &table, committed, unsure)?;
    }
    Ok(())
}

fn idle(engine: &Engine, table: &Arc<Table>) -> Result<std::mem::ManuallyDrop<Actor>, String> {
    Actor::new(engine, table, 99)
        .map(std::mem::ManuallyDrop::new)
        .map_err(|e| e.to_string())
}

fn applied(rows: &Rows, changes: &[(i64, Option<Fields>)]) -> Rows {
    let mut rows = rows.clone();
    for (id, fields) in changes {
        match fields {
            Some(f) => rows.insert(*id, f.clone()),
            None => rows.remove(id),
        };
    }
    rows
}

fn find_table(engine: &Engine) -> Result<Arc<Table>, String> {
    let schema = engine.catalog().snapshot();
    if schema.database("d").is_none() {
        let database = DatabaseDef {
            name: "d".into(),
            collation: CollationId::UTF8MB4_0900_AI_CI,
        };
        engine.put_database(database).map_err(|e| e.to_string())?;
    }
    let def = match schema.table("d", "t") {
        Some(def) => def.clone(),
        None => engine.create_table(table()).map_err(|e| e.to_string())?,
    };
    engine
        .table(def.id)
        .ok_or_else(|| "the table is not open".into())
}

/// Lets background work finish, then compares with the model (M1, M3).
fn settle(
    engine: &Engine,
    table: &Arc<Table>,
    committed: &mut Rows,
    unsure: &mut Option<Rows>,
) -> Result<(), String> {
    // Before anything was undone, the unfinished must be invisible already.
    compare(engine, table, committed, unsure)?;
    while engine
        .step_background()
        .map_err(|e| format!("background: {e}"))?
    {}
    compare(engine, table, committed, unsure)?;
    check(engine, table)
}

fn compare(
    engine: &Engine,
    table: &Arc<Table>,
    committed: &mut Rows,
    unsure: &mut Option<Rows>,
) -> Result<(), String> {
    let mut session = engine.session(100).map_err(|e| e.to_string())?;
    session.begin(TrxOptions {
        isolation: Isolation::RepeatableRead,
        read_only: true,
        consistent_snapshot: true,
    });
    let found = rows_of(&mut session, table)?;
    block(|| session.rollback()).map_err(|e| e.to_string())?;
    if unsure.as_ref() == Some(&found) {
        *committed = found;
    } else if found != *committed {
        return Err(difference("after recovery", committed, &found));
    }
    *unsure = None;
    Ok(())
}

fn check(engine: &Engine, table: &Arc<Table>) -> Result<(), String> {
    let report = engine
        .check_table(table)
        .map_err(|e| format!("CHECK TABLE: {e}"))?;
    if report.problems.is_empty() {
        Ok(())
    } else {
        Err(format!("CHECK TABLE: {}", report.problems.join("; ")))
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn seeds() {
        let mut commits = 0;
        for seed in 1..=40 {
            commits += super::run(seed, 3)
                .unwrap_or_else(|e| panic!("seed {seed}: {e}"))
                .commits;
        }
        assert!(commits > 100, "{commits}");
    }
}
