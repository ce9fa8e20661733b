//! `nfold lab lines`: finds the cache lines that several processors write and read, with `perf
//! c2c`, if the machine supports it.
//!
//! This shows a cause that no stack and no latch counter shows: a counter that every reader writes.

mod report;

use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde::Serialize;

use crate::digest::table::{grouped, shortened};
use crate::output::JsonOption;
use crate::{LabError, interrupt};
use report::Line;

pub const SCHEMA: &str = "nfold-lab-lines/1";

/// For `--help`.
pub const EXAMPLES: &str = "Example:
  nfold lab lines --pid $(pidof mariadbd) --seconds 5 --json lines.json

Needs perf and a processor that samples loads and stores (Intel PEBS, AMD IBS, ARM SPE); virtual machines mostly have none of it.";

/// The most places of a line that are printed.
const PLACES: usize = 8;

/// The command line of `nfold lab lines`.
#[derive(clap::Args)]
pub struct Args {
    /// The process
    #[arg(long)]
    pid: u32,
    /// How long to record, in seconds
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
    /// Lines to show
    #[arg(long, default_value_t = 10)]
    top: usize,
    #[command(flatten)]
    json: JsonOption,
}

/// The result.
#[derive(Debug, Serialize)]
struct Report {
    schema: &'static str,
    /// Whether Ctrl-C ended the recording early.
    partial: bool,
    pid: u32,
    command: String,
    /// The most shared lines come first.
    lines: Vec<Line>,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), LabError> {
    let command = std::fs::read_to_string(format!("/proc/{}/comm", args.pid))
        .map_err(|_| LabError::usage(format!("there is no process {}", args.pid)))?;
    let directory = std::env::temp_dir().join(format!("nfold-lab-lines-{}", std::process::id()));
    std::fs::create_dir_all(&directory)
        .map_err(LabError::io("cannot make a temporary directory"))?;
    let done = record_and_report(args, &directory.join("c2c.data"));
    let _ = std::fs::remove_dir_all(&directory);
    let report = Report {
        schema: SCHEMA,
        partial: interrupt::requested(),
        pid: args.pid,
        command: command.trim().to_owned(),
        lines: report::read(&done?).ok_or_else(|| {
            LabError::malformed("perf c2c report has printed no table of cache lines")
        })?,
    };
    args.json.write(&report, &shown(&report, args.top))
}

fn record_and_report(args: &Args, file: &Path) -> Result<String, LabError> {
    let mut record = Command::new("perf");
    record
        .args(["c2c", "record", "-o"])
        .arg(file)
        .args(["-p", &args.pid.to_string(), "--", "sleep"])
        .arg(args.seconds.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let child = interrupt::spawn(&mut record)
        .map_err(|_| LabError::usage("lines needs perf (Debian: apt-get install linux-perf)"))?;
    let (well, said) = interrupt::output(child).map_err(LabError::io("perf c2c record"))?;
    if !well {
        return Err(LabError::usage(refusal(&said)));
    }
    // perf chooses the ranking: HITM, or on ARM, which has none, loads answered by a peer.
    let report = Command::new("perf")
        .args(["c2c", "report", "--stdio", "-c", "pid,iaddr", "-i"])
        .arg(file)
        .stdin(Stdio::null())
        .output()
        .map_err(LabError::io("perf c2c report"))?;
    match report.status.success() {
        true => Ok(String::from_utf8_lossy(&report.stdout).into_owned()),
        false => Err(LabError::usage(refusal(&String::from_utf8_lossy(
            &report.stderr,
        )))),
    }
}

/// Explains in one line why recording is impossible.
fn refusal(said: &str) -> String {
    let low = said.to_ascii_lowercase();
    let any = |words: &[&str]| words.iter().any(|word| low.contains(word));
    if any(&[
        "permission",
        "paranoid",
        "operation not permitted",
        "eacces",
    ]) {
        return "perf may not record: /proc/sys/kernel/perf_event_paranoid must be lower, or root must ask".into();
    }
    let none = [
        "memory events",
        "not supported",
        "unsupported",
        "event syntax error",
        "unable to find",
        "no such file or directory",
    ];
    if said.trim().is_empty() || any(&none) {
        return "this machine does not sample loads and stores (perf c2c has no memory events here; virtual machines mostly have none), so shared cache \
     lines cannot be named; `nfold lab stacks` shows latches, and a machine with Intel PEBS, AMD IBS or ARM SPE shows the lines"
        .into();
    }
    let last = said.lines().rfind(|l| !l.trim().is_empty());
    format!("perf c2c failed: {}", last.unwrap_or_default().trim())
}

/// The `top` lines with their places.
fn shown(report: &Report, top: usize) -> String {
    let mut out = String::new();
    for (number, line) in (1..).zip(report.lines.iter().take(top)) {
        let found = line.hitm_local + line.hitm_remote + line.peer;
        let _ = writeln!(
            out,
            "{number}. cache line {}: {:.1} % of all loads that found a line changed by another processor ({} of {} samples of it; {} stores)",
            line.address,
            line.share * 100.0,
            grouped(found),
            grouped(line.records),
            grouped(line.stores)
        );
        let _ = writeln!(
            out,
            "   {:>6} {:>7} {:>7} {:>8} {:>5}  symbol, program, source",
            "offset", "found", "stores", "samples", "cpus"
        );
        for place in line.places.iter().take(PLACES) {
            let _ = writeln!(
                out,
                "   {:>6} {:>5.1} % {:>5.1} % {:>8} {:>5}  {}  {}  {}",
                place.offset,
                place.hitm * 100.0,
                place.stores * 100.0,
                grouped(place.records),
                place.processors,
                shortened(&place.symbol, 90),
                place.object,
                place.source
            );
        }
        if line.places.len() > PLACES {
            let _ = writeln!(out, "   and {} places more", line.places.len() - PLACES);
        }
    }
    if report.lines.is_empty() {
        out.push_str("no cache line was seen shared\n");
    } else if report.lines.len() > top {
        let _ = writeln!(out, "and {} lines more", report.lines.len() - top);
    }
    if report.partial {
        out.push_str("partial: the run did not come to its end\n");
    }
    out
}

#[cfg(test)]
mod tests;
