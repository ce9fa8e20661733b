//! The nfold binary.

mod backend;
mod follow;
mod logging;
#[allow(unsafe_code)]
mod memory;
mod serve;
#[allow(unsafe_code)]
mod signals;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Statements and the server have limits of memory, so all of it is counted.
#[global_allocator]
static ALLOCATOR: nfold_memory::CountingAllocator = nfold_memory::CountingAllocator;

/// A MySQL-compatible database server whose reads scale with the machine.
#[derive(Parser)]
#[command(name = "nfold", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve a data directory
    Serve(serve::Args),
    /// Copy a running MySQL or MariaDB, follow it, and serve the copy
    Follow(Box<follow::Args>),
    /// Compare a server with its replica while both run
    Verify(Box<nfold_follow::VerifyArgs>),
    /// Find the pattern that carries a load, replay it, measure how it scales, name what stops it
    Lab(nfold_lab::Args),
}

fn main() -> ExitCode {
    memory::give_back_large_buffers();
    match Cli::parse().command {
        Command::Serve(args) => serve::serve(&args),
        Command::Follow(args) => follow::follow(&args),
        Command::Verify(args) => nfold_follow::verify(&args),
        Command::Lab(args) => nfold_lab::main(&args),
    }
}
