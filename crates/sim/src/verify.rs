//! Compares the contents of an engine with the model.

use std::sync::Arc;

use nfold_catalog::DatabaseDef;
use nfold_engine::{Engine, Isolation, TrxOptions, block};
use nfold_store::Disk;
use nfold_types::collation::CollationId;

use crate::model::{Db, TableModel, difference, orphan};
use crate::run::World;
use crate::select::all_rows;
use crate::shape::{DATABASE, Shape, find};

/// After opening: checks M1, M3 and M8, before and after the rollback of unfinished transactions.
/// Creates the database in a new engine.
pub fn after_recovery(world: &mut World, engine: &Engine) -> Result<(), String> {
    if let Some(certain) = world.branches.adopt(&world.db, engine)? {
        world.db = certain;
        world.maybe.clear();
    }
    // The changes of unfinished transactions must be invisible already.
    adopt_state(world, engine)?;
    if world.rng.one_in(2) {
        check_idle(world, engine)?;
    }
    if engine.catalog().snapshot().database(DATABASE).is_none() {
        let database = DatabaseDef {
            name: DATABASE.into(),
            collation: CollationId::UTF8MB4_0900_AI_CI,
        };
        engine.put_database(database).map_err(|e| e.to_string())?;
    }
    Ok(())
}

/// Lets background work finish, and then checks M1, M3, M7, and that every file belongs to a table.
pub fn check_idle(world: &mut World, engine: &Engine) -> Result<(), String> {
    // Purge that an I/O error prevented is retried after some steps.
    while engine
        .step_background()
        .map_err(|e| format!("background: {e}"))?
        || engine.trx_status().history_length > 0
    {}
    let found = contents(engine)?;
    same(&world.db, &found).map_err(|e| format!("after background work: {e}"))?;
    let marked = check_tables(world, engine)?;
    // A prepared transaction has marked what it deletes, and its undo log alone names long values.
    let all_ended = world.branches.prepared.is_empty();
    if marked > 0 && all_ended {
        return Err(format!(
            "purge has left {marked} delete-marked rows and entries"
        ));
    }
    if all_ended {
        check_spaces(world, engine)?;
    }
    world.outcome.undo_files = engine.trx_status().undo_files_given_up;
    let files = world
        .disk
        .list("")
        .map_err(|e| e.to_string())?
        .into_iter()
        .filter(|name| name.ends_with(".nfd"))
        .count();
    // One file for the dictionary, and those of the undo log, which may just have switched to a new
    // file.
    let expected = world.db.len() + 1 + engine.trx_system().undo_spaces().len();
    if files != expected {
        return Err(format!("{files} tablespaces instead of {expected}"));
    }
    Ok(())
}

/// Checks that the engine is in one of the possible states, which becomes the expected state.
fn adopt_state(world: &mut World, engine: &Engine) -> Result<(), String> {
    let found = contents(engine)?;
    if let Some(orphan) = orphan(&found) {
        return Err(format!("recovery leaves an {orphan}"));
    }
    let wrong = same(&world.db, &found);
    let other = world.maybe.iter().any(|db| same(db, &found).is_ok());
    world.maybe.clear();
    if wrong.is_ok() {
        return Ok(());
    }
    if other {
        world.db = found;
        return Ok(());
    }
    wrong.map_err(|e| format!("after recovery: {e}"))
}

/// All tables with their rows, as a new transaction sees them.
fn contents(engine: &Engine) -> Result<Db, String> {
    let mut session = engine.session(100).map_err(|e| e.to_string())?;
    session.begin(TrxOptions {
        isolation: Isolation::RepeatableRead,
        read_only: true,
        consistent_snapshot: true,
    });
    let schema = engine.catalog().snapshot();
    let mut db = Db::new();
    for def in schema.tables() {
        let table = find(engine, &def.name)?;
        let model = TableModel {
            shape: Shape::of(def),
            rows: all_rows(&mut session, &table).map_err(|e| format!("{}: {e}", def.name))?,
        };
        db.insert(def.name.to_string(), Arc::new(model));
    }
    block(|| session.rollback()).map_err(|e| e.to_string())?;
    Ok(db)
}

fn same(expected: &Db, found: &Db) -> Result<(), String> {
    let names = |db: &Db| {
        db.iter()
            .map(|(name, t)| format!("{name} {:?}", t.shape))
            .collect::<Vec<_>>()
    };
    if names(expected) != names(found) {
        return Err(format!(
            "tables {:?} instead of {:?}",
            names(found),
            names(expected)
        ));
    }
    for (name, table) in expected {
        let rows = &found[name].rows;
        if table.rows != *rows {
            return Err(difference(&format!("table {name}"), &table.rows, rows));
        }
    }
    Ok(())
}

/// Whether a DDL statement that returned an error has taken effect nevertheless. The engine must be
/// in one of the two states.
pub fn which(engine: &Engine, before: &Db, after: &Db) -> Result<bool, String> {
    let found = contents(engine)?;
    if same(before, &found).is_ok() {
        return Ok(false);
    }
    same(after, &found).map(|()| true)
}

/// M3: runs CHECK TABLE on all tables. Returns the number of delete-marked rows and entries.
pub fn check_tables(world: &World, engine: &Engine) -> Result<u64, String> {
    let mut marked = 0;
    for name in world.db.keys() {
        let table = find(engine, name)?;
        let report = engine
            .check_table(&table)
            .map_err(|e| format!("CHECK TABLE {name}: {e}"))?;
        if !report.problems.is_empty() {
            return Err(format!(
                "CHECK TABLE {name}: {}",
                report.problems.join("; ")
            ));
        }
        marked += report.marked;
    }
    Ok(marked)
}

/// M7: checks that every page of every table is in use or free.
fn check_spaces(world: &World, engine: &Engine) -> Result<(), String> {
    for name in world.db.keys() {
        let table = find(engine, name)?;
        let lost = engine
            .check_space(&table)
            .map_err(|e| format!("pages of {name}: {e}"))?;
        if !lost.is_empty() {
            return Err(format!("table {name}: {}", lost.join("; ")));
        }
    }
    Ok(())
}
