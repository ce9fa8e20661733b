//! `make sim SEEDS=N FIRST_SEED=K`: runs seeds, and stops at the first that fails.

use clap::Parser;

/// Runs the engine over a simulated disk, seed by seed.
#[derive(Parser)]
struct Options {
    /// How many seeds.
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    #[arg(long, default_value_t = 1)]
    first_seed: u64,
    /// Power failures of each seed.
    #[arg(long, default_value_t = 4)]
    crashes: u32,
}

fn main() {
    let options = Options::parse();
    let mut total = nfold_sim::Outcome::default();
    for seed in options.first_seed..options.first_seed + options.seeds {
        match nfold_sim::run(seed, options.crashes) {
            Ok(done) => {
                total.crashes += done.crashes;
                total.commits += done.commits;
                total.recovered_unfinished += done.recovered_unfinished;
            }
            Err(what) => {
                println!("seed {seed} FAILED: {what}");
                println!("replay it with: make sim SEEDS=1 FIRST_SEED={seed}");
                std::process::exit(1);
            }
        }
    }
    println!(
        "{} seeds: {} commits, {} power failures, {} unfinished transactions recovered",
        options.seeds, total.commits, total.crashes, total.recovered_unfinished
    );
    println!("{} passed, 0 failed", options.seeds);
}
