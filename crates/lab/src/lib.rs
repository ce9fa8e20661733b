//! The lab: load analysis and benchmarks for any MySQL-compatible server, as one tool. It
//! implements the method that found why IN lists of medium size do not scale.
//!
//! ```text
//!  log files, stdin ── log ──▶ Statement ── digest ──▶ ranked patterns (table, JSON, HTML)
//!                                  │ extract
//!                              w.jsonl ── replay ──▶ client ──▶ server(s)
//! ```
//!
//! # Invariants
//! - L1: no input from a log or a server causes a panic. Unreadable input is counted and reported.
//! - L2: no password appears in an argument, in output, or in an error.
//! - L3: after Ctrl-C ([`interrupt`]), a command writes the results so far, marked as partial, and
//!   exits with code 130.
//!
//! # Not here
//! The server. This crate uses the protocol codec and the SQL lexer, and nothing else of the
//! server.
#![deny(unsafe_code)]

use std::process::ExitCode;

use clap::Subcommand;

pub mod bench;
pub mod client;
pub mod digest;
pub mod dsn;
mod error;
mod extract;
pub mod interrupt;
mod limits;
pub mod lines;
pub mod log;
mod output;
pub mod plan;
pub mod probes;
pub mod procfs;
pub mod progress;
pub mod replay;
pub mod report;
pub mod stacks;
pub mod statement;
mod tls;
pub mod usl;

pub use error::LabError;

/// Command line of `nfold lab`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Rank the patterns of a load by what they cost, from slow logs and general logs
    #[command(after_help = digest::HELP)]
    Digest(digest::Args),
    /// Play extracted statements against one server or several
    #[command(after_help = replay::HELP)]
    Replay(replay::Args),
    /// Run workloads over client counts, on one or several servers in turn
    #[command(after_help = bench::EXAMPLES, args_override_self = true)]
    Bench(Box<bench::Args>),
    /// Turn results of bench into one HTML page, and pictures
    #[command(after_help = report::EXAMPLES)]
    Report(report::Args),
    /// Show where a statement spends its time, and where the optimizer's estimates are wrong
    #[command(after_help = plan::HELP)]
    Plan(plan::Args),
    /// Look for moments at which a server stalls under writes, and whether its disk stalled, too
    #[command(after_help = probes::stalls::EXAMPLES, args_override_self = true)]
    Stalls(probes::stalls::Args),
    /// Measure the cost of writers for a reader: processor time of a select, alone and beside them
    #[command(after_help = probes::beside::EXAMPLES, args_override_self = true)]
    Beside(probes::beside::Args),
    /// Measure which share of the disk's syncs becomes commits
    #[command(after_help = probes::commits::EXAMPLES, args_override_self = true)]
    Commits(probes::commits::Args),
    /// Measure the cost of idle connections: memory and processor time
    #[command(after_help = probes::idle::EXAMPLES, args_override_self = true)]
    Idle(probes::idle::Args),
    /// Sample a running process: what it executes, and what its threads wait for
    #[command(after_help = stacks::EXAMPLES)]
    Stacks(stacks::Args),
    /// Name the cache lines that processors share, if the machine can count them
    #[command(after_help = lines::EXAMPLES)]
    Lines(lines::Args),
    /// Check where a DSN leads, and that a password is found for it
    #[command(after_help = dsn::EXAMPLES)]
    Dsn(dsn::Args),
}

/// Runs one command. An error is printed as one line on standard error.
pub fn main(args: &Args) -> ExitCode {
    interrupt::install();
    limits::open_files();
    let done = match &args.command {
        Command::Digest(args) => digest::run(args),
        Command::Replay(args) => replay::run(args),
        Command::Bench(args) => bench::run(args),
        Command::Report(args) => report::run(args),
        Command::Plan(args) => plan::run(args),
        Command::Stalls(args) => probes::stalls::run(args),
        Command::Beside(args) => probes::beside::run(args),
        Command::Commits(args) => probes::commits::run(args),
        Command::Idle(args) => probes::idle::run(args),
        Command::Stacks(args) => stacks::run(args),
        Command::Lines(args) => lines::run(args),
        Command::Dsn(args) => dsn::run(args),
    };
    match done {
        Ok(()) if interrupt::requested() => ExitCode::from(interrupt::INTERRUPTED),
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("nfold lab: {e}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        _args: super::Args,
    }

    /// Splits a line of a shell into words: handles quotes, comments, and `$(…)`, which stands for
    /// a process here.
    fn words(line: &str) -> Vec<String> {
        let line = line.replace("$(pidof mariadbd)", "1");
        let line = line
            .replace("$(pidof mysqld)", "1")
            .replace("$(pidof nfold)", "1");
        let (mut words, mut quoted) = (vec![String::new()], false);
        for c in line.chars() {
            let last = words.last_mut().expect("there is one");
            match c {
                '\'' => quoted = !quoted,
                '#' if !quoted && last.is_empty() => break,
                ' ' if !quoted && last.is_empty() => {}
                ' ' if !quoted => words.push(String::new()),
                c => last.push(c),
            }
        }
        words.retain(|w| !w.is_empty());
        words
    }

    #[test]
    fn examples_of_help_are_command_lines() {
        let mut seen = 0;
        for help in [
            super::digest::HELP,
            super::replay::HELP,
            super::bench::EXAMPLES,
            super::report::EXAMPLES,
            super::plan::HELP,
            super::probes::stalls::EXAMPLES,
            super::probes::beside::EXAMPLES,
            super::probes::commits::EXAMPLES,
            super::probes::idle::EXAMPLES,
            super::stacks::EXAMPLES,
            super::lines::EXAMPLES,
            super::dsn::EXAMPLES,
        ] {
            for line in help.lines().filter(|l| l.starts_with("  ")) {
                for command in line.split(" && ").flat_map(|c| c.split(" | ")) {
                    let words = words(command);
                    if words[0] == "zcat" {
                        continue;
                    }
                    assert_eq!(words[..2], ["nfold", "lab"], "{line}");
                    if let Err(e) = Cli::try_parse_from(&words[1..]) {
                        panic!("{line}: {e}");
                    }
                    seen += 1;
                }
            }
        }
        assert!(seen >= 20, "{seen}");
    }
}
