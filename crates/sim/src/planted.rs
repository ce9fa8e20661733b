//! `make sim-planted`: shows that the simulator can fail. Bugs are planted one after the other, and each must be found.

use std::process::exit;
use std::sync::mpsc;
use std::time::Duration;

use nfold_sync::planted::{Bug, plant};

/// Every bug is found within so many seeds.
const SEEDS: u64 = 200;
/// Seeds that must pass when nothing is planted.
const SOUND: u64 = 20;
/// Crashes of each seed.
const CRASHES: u32 = 4;
/// A seed that takes longer waits for ever, which is a finding too.
const HANG: Duration = Duration::from_secs(60);

const BUGS: [Bug; 6] = [
    Bug::SkippedSync,
    Bug::LostUndo,
    Bug::WrongCheckpoint,
    Bug::UnloggedSplit,
    Bug::MissedValidation,
    Bug::MissedChecksum,
];

/// What a seed finds, if anything.
fn finding(seed: u64) -> Option<String> {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        // The receiver is gone if this took too long.
        drop(tell.send(nfold_sim::run(seed, CRASHES).err()));
    });
    told.recv_timeout(HANG)
        .unwrap_or_else(|_| Some("it hangs, or its thread has died".into()))
}

fn main() {
    // What a planted bug breaks may panic in many places: the finding says it.
    std::panic::set_hook(Box::new(|_| {}));
    if let Some((seed, what)) = first_finding(SOUND) {
        println!("nothing is planted, and seed {seed} FAILED: {what}");
        exit(1);
    }
    println!("nothing planted: {SOUND} seeds pass");
    let mut missed = 0;
    for bug in BUGS {
        plant(Some(bug));
        match first_finding(SEEDS) {
            Some((seed, what)) => {
                let short: String = what.chars().take(160).collect();
                println!("{bug:?}: found by seed {seed}: {short}");
            }
            None => {
                println!("{bug:?}: NOT FOUND within {SEEDS} seeds");
                missed += 1;
            }
        }
        plant(None);
    }
    println!(
        "{} of {} planted bugs found",
        BUGS.len() - missed,
        BUGS.len()
    );
    exit(i32::from(missed > 0));
}

fn first_finding(seeds: u64) -> Option<(u64, String)> {
    (1..=seeds).find_map(|seed| Some((seed, finding(seed)?)))
}
