//! The lab alone, without the server beside it: quick to build while one works on it.

use std::process::ExitCode;

use clap::Parser;

#[derive(Parser)]
#[command(name = "lab", version)]
struct Cli {
    #[command(flatten)]
    args: nfold_lab::Args,
}

fn main() -> ExitCode {
    nfold_lab::main(&Cli::parse().args)
}
