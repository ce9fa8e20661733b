//! Flipped bits: the disk after an engine run is copied, damaged and opened. The result must be
//! correct, or an error that names the location. Data must never be lost silently.
//!
//! # Invariants
//! D1. Opening returns an engine, or an error that names a file or a page. It never panics.
//! D2. Every table exists. Each is read correctly, or rejected with an error that names a page or a
//! file. All tables that can be read are in the state of the same moment.
//! D3. CHECK TABLE finds no problem, or names a page. Tables that are already fenced have reported
//! an error before: a partial rollback may have left entries without rows, until the index is
//! rebuilt.
//! D4. Purge and rollback preserve this.
//!
//! The log is the only exception (see `recovery::damage`). Damage to the log of the very last write
//! looks like a write that the crash cut short, so a flipped bit there may lose the last commit. If
//! complete blocks follow the damage, the report of the opening says so.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use nfold_engine::{
    Engine, EngineError, EngineOptions, Isolation, OpenReport, StoreOptions, TrxOptions, block,
};
use nfold_store::{Disk, OpenMode, SimDisk, SimRng};

use crate::model::{Db, TableModel, difference};
use crate::select::all_rows;
use crate::shape::{Shape, find};

/// The steps of purge and rollback after an opening.
const STEPS: usize = 60;
const PAGE: u64 = 16384;

/// The states that may be found.
pub struct Allowed<'a> {
    pub now: &'a Db,
    /// Other states, of which a crash may have left one.
    pub maybe: &'a [Db],
    /// The states before the last commits. They may be found only after damage to the log.
    pub before: &'a [Db],
}

/// Damages a copy of `disk` and opens it. Returns whether that was rejected.
///
/// # Errors
/// Data that was silently lost or wrong, with the flipped bits.
pub fn probe(disk: &SimDisk, rng: &mut SimRng, allowed: &Allowed<'_>) -> Result<bool, String> {
    let image = disk.copy();
    let (file, flipped) = flip(&image, rng).map_err(|e| e.to_string())?;
    tell!("bits flipped: {flipped}");
    let log = file.starts_with("redo.");
    let opened = catch_unwind(AssertUnwindSafe(|| open_damaged(&image, allowed, log)));
    match opened {
        Ok(done) => done.map_err(|what| format!("with {flipped} flipped: {what}")),
        Err(payload) => {
            let text = crate::run::panic_text(&*payload);
            Err(format!("with {flipped} flipped: {text}"))
        }
    }
}

/// Flips up to three bits of one file, and chooses all kinds of files with the same probability.
/// Returns the file, and a description of the flipped bits.
fn flip(image: &SimDisk, rng: &mut SimRng) -> std::io::Result<(String, String)> {
    let names = image.list("")?;
    let kinds: [fn(&str) -> bool; 6] = [
        |n| n.ends_with(".nfd") && n.starts_with("t"),
        |n| n.ends_with(".nfd"),
        |n| n.starts_with("undo"),
        |n| n.starts_with("redo."),
        |n| n == "nfold.control",
        |n| n == "nfold.doublewrite",
    ];
    // Most files are tables.
    let kind = kinds[[0, 0, 0, 1, 2, 3, 3, 4, 5][rng.below(9) as usize]];
    if names.is_empty() {
        return Ok((String::new(), "nothing".into()));
    }
    let mut of_kind: Vec<&String> = names.iter().filter(|n| kind(n)).collect();
    if of_kind.is_empty() {
        of_kind = names.iter().collect();
    }
    let file = of_kind[rng.below(of_kind.len() as u64) as usize].clone();
    let len = image.open(&file, OpenMode::Existing)?.len()?;
    // All within one page or block, so that two flips may affect the same one.
    let size = if file.ends_with(".nfd") { PAGE } else { 4096 };
    let base = rng.below(len.div_ceil(size).max(1)) * size;
    let mut places = Vec::new();
    for _ in 0..1 + rng.below(3) {
        // The headers are at the beginning.
        let within = if rng.one_in(3) { 100 } else { size };
        let at = base + rng.below(within);
        if image.flip_bit_of(&file, at, rng.below(8) as u32) {
            places.push(at.to_string());
        }
    }
    let text = format!("bits of {file} at {}", places.join(", "));
    Ok((file, text))
}

/// Opens an engine over `image`. A fatal error panics.
pub fn open(image: &SimDisk) -> Result<(Arc<Engine>, OpenReport), EngineError> {
    let store = StoreOptions {
        pool_bytes: 600 * PAGE,
        log_buffer_bytes: 1 << 19,
        extend_bytes: 1 << 17,
        fatal: Some(Arc::new(|what| panic!("the process ends: {what}"))),
        ..StoreOptions::default()
    };
    let options = EngineOptions {
        store,
        flush_at_commit: 1,
        build_memory: EngineOptions::BUILD_MEMORY,
    };
    Engine::open(options, Arc::new(image.clone()), &|_| {})
}

fn open_damaged(image: &SimDisk, allowed: &Allowed<'_>, log: bool) -> Result<bool, String> {
    let (engine, report) = match open(image) {
        Ok(opened) => opened,
        Err(e) => return named(&e.to_string()).map(|()| true), // D1
    };
    let allowed = candidates(allowed, log, &report);
    compare(&engine, &allowed).map_err(|e| format!("after recovery: {e}"))?;
    for _ in 0..STEPS {
        match engine.step_background() {
            Ok(true) => {}
            Ok(false) => break,
            Err(e) => {
                named(&e.to_string())?;
                break;
            }
        }
    }
    compare(&engine, &allowed).map_err(|e| format!("after purge and rollback: {e}"))?;
    Ok(false)
}

/// The states that may be found. Empty if any state may be found, because the opening has reported
/// lost log.
fn candidates<'a>(allowed: &Allowed<'a>, log: bool, report: &OpenReport) -> Vec<&'a Db> {
    if log && report.store.log_damage.is_some() {
        return Vec::new();
    }
    let mut all = vec![allowed.now];
    all.extend(allowed.maybe);
    if log {
        all.extend(allowed.before);
    }
    all
}

/// Checks that an error says where the damage is. A space that could not be opened does not exist
/// for a reader; then the opening has named its file.
fn named(error: &str) -> Result<(), String> {
    let space = error.contains("space ");
    let page = space && (error.contains("page ") || error.contains("does not exist"));
    let file = ["nfd", "redo.", "nfold.control", "nfold.doublewrite"];
    if page || file.iter().any(|f| error.contains(f)) {
        return Ok(());
    }
    Err(format!("an error that names no location: {error}"))
}

/// Checks D2 and D3.
fn compare(engine: &Engine, allowed: &[&Db]) -> Result<(), String> {
    let mut found = Db::new();
    let mut refused = Vec::new();
    let mut session = engine.session(200).map_err(|e| e.to_string())?;
    session.begin(TrxOptions {
        isolation: Isolation::RepeatableRead,
        read_only: true,
        consistent_snapshot: true,
    });
    for def in engine.catalog().snapshot().tables() {
        let table = find(engine, &def.name)?;
        let shape = Shape::of(def);
        match all_rows(&mut session, &table) {
            Ok(rows) => {
                found.insert(def.name.to_string(), Arc::new(TableModel { shape, rows }));
            }
            Err(e) => {
                named(&e)?;
                refused.push(def.name.to_string());
            }
        }
        let fenced = table.check_sound().is_err();
        match engine.check_table(&table) {
            Ok(_) if fenced => {}
            Ok(report) => report.problems.iter().try_for_each(|p| named(p))?,
            Err(e) => named(&e.to_string())?,
        }
    }
    block(|| session.rollback()).map_err(|e| e.to_string())?;
    let mut first = Ok(());
    for db in allowed {
        match fits(db, &found, &refused) {
            Ok(()) => return Ok(()),
            wrong if first.is_ok() => first = wrong,
            _ => {}
        }
    }
    first
}

/// Whether the tables that could be read are those of `db`.
fn fits(db: &Db, found: &Db, refused: &[String]) -> Result<(), String> {
    for (name, table) in db {
        match found.get(name) {
            Some(read) if read.shape != table.shape => {
                return Err(format!("table {name} has another shape"));
            }
            Some(read) if read.rows != table.rows => {
                let what = format!("table {name}");
                return Err(difference(&what, &table.rows, &read.rows));
            }
            None if !refused.contains(name) => return Err(format!("table {name} is missing")),
            _ => {}
        }
    }
    let unknown = |name: &&String| !db.contains_key(*name);
    match found.keys().chain(refused).find(unknown) {
        Some(name) => Err(format!("table {name} is there")),
        None => Ok(()),
    }
}
