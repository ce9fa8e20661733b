//! `make sim-planted`: proves that the simulator finds bugs. It plants one bug after another, and
//! the simulator must find each.

use std::process::exit;
use std::sync::mpsc;
use std::time::Duration;

use nfold_sync::planted::{Bug, plant};

/// Every bug must be found within this number of seeds.
const SEEDS: u64 = 200;
/// The number of seeds that must pass without a planted bug.
const SOUND: u64 = 20;
/// The number of crashes per seed.
const CRASHES: u32 = 4;
/// A seed that takes longer hangs, which counts as a finding, too.
const HANG: Duration = Duration::from_secs(60);

const BUGS: [Bug; 9] = [
    Bug::SkippedSync,
    Bug::LostUndo,
    Bug::ForgottenPrepare,
    Bug::WrongCheckpoint,
    Bug::UnloggedSplit,
    Bug::MissedValidation,
    Bug::MissedChecksum,
    Bug::ProbedUncommitted,
    Bug::ProbeBeforeChange,
];

/// The failure of a seed, if any.
fn finding(seed: u64) -> Option<String> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        // The receiver is gone if the run took too long.
        drop(send.send(nfold_sim::run(seed, CRASHES).err()));
    });
    receive
        .recv_timeout(HANG)
        .unwrap_or_else(|_| Some("it hangs, or its thread has died".into()))
}

fn main() {
    // A planted bug may cause panics in many places. The finding reports them.
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
