//! `nfold lab stacks`: samples where a process spends its time, and what its threads wait for.
//!
//! # Picture
//! ```text
//! each round, each thread: running or waiting (/proc) ▶ ptrace: registers and stack, about 100 µs
//!   ▶ unwind ▶ (state, stack) += 1
//! with perf: stacks on the processor from perf, those of waiting threads from ptrace
//! ```
//! One thread is stopped at a time, and only while its stack is copied. It is unwound afterwards,
//! from the copy.

mod flame;
mod perf;
mod phases;
mod places;
mod ptrace;
mod unwind;
mod waits;

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::output::{JsonOption, put};
use crate::progress::Progress;
use crate::{LabError, interrupt, procfs};

/// The name and version of the JSON schema.
pub const SCHEMA: &str = "nfold-lab-stacks/1";

/// For `--help`.
pub const EXAMPLES: &str = "Examples:
  nfold lab stacks --pid $(pidof mariadbd) --seconds 10 --flame flame.svg
  nfold lab stacks --pid $(pidof nfold) --json nfold.json --dsn mysql://root@127.0.0.1               # with Nfold's own wait sites
  nfold lab stacks --pid $(pidof mysqld) --dsn mysql://root@127.0.0.1 --instrument   # with the names of latches

Needs the right to trace the process: the same user, and /proc/sys/kernel/yama/ptrace_scope at 0, or root.";

/// The command line of `nfold lab stacks`.
#[derive(clap::Args)]
pub struct Args {
    /// The process
    #[arg(long)]
    pid: u32,
    /// How long to sample, in seconds
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Rounds over all threads per second
    #[arg(long, default_value_t = 20)]
    rate: u32,
    /// The method: perf (on-processor stacks only from perf), ptrace, or auto (perf if it works;
    /// waits always by ptrace)
    #[arg(long, default_value = "auto", value_parser = ["auto", "perf", "ptrace"])]
    by: String,
    /// Stacks to print of each kind
    #[arg(long, default_value_t = 8)]
    top: usize,
    /// Write a flame graph of the stacks on the processor
    #[arg(long, value_name = "FILE.svg")]
    flame: Option<PathBuf>,
    /// Write stacks as folded lines (`state;frame;frame count`)
    #[arg(long, value_name = "FILE")]
    folded: Option<PathBuf>,
    #[command(flatten)]
    json: JsonOption,
    /// The DSN of the same server: adds its own statistics of waits, from SHOW ENGINE NFOLD
    /// CONTENTION or performance_schema
    #[arg(long)]
    dsn: Option<String>,
    /// Enable performance_schema's instruments of latches meanwhile (requires --dsn)
    #[arg(long, requires = "dsn")]
    instrument: bool,
}

/// A stack and the number of its samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stack {
    /// Whether the thread was running or ready to run. Otherwise it was waiting.
    pub running: bool,
    /// Whether it was waiting for work: a client's next command, a timer, a page to write.
    #[serde(default)]
    pub idle: bool,
    pub count: u64,
    /// From the thread's start function to the leaf.
    pub frames: Vec<Arc<str>>,
}

/// The state of a sampled thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    /// Waiting for another thread, a disk, or a lock.
    Waiting,
    /// Waiting for work.
    Idle,
}

impl Stack {
    fn state(&self) -> State {
        match (self.running, self.idle) {
            (true, _) => State::Running,
            (false, true) => State::Idle,
            (false, false) => State::Waiting,
        }
    }
}

/// The samples of a process.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    pub schema: String,
    pub partial: bool,
    pub pid: u32,
    pub command: String,
    pub by: String,
    pub seconds: f64,
    pub threads: usize,
    pub samples: u64,
    /// The longest time that a thread was stopped, in microseconds; 0 if only perf was used.
    pub longest_stop_us: f64,
    /// The most frequent stacks come first.
    pub stacks: Vec<Stack>,
    /// The server's own statistics of waits: column names, followed by rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contention: Vec<Vec<String>>,
}

impl Profile {
    /// The shares of phases among the running stacks, or of places among the waiting ones that are
    /// not idle. The largest come first.
    pub fn phases(&self, running: bool) -> Vec<(String, f64)> {
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        for stack in self
            .stacks
            .iter()
            .filter(|s| s.running == running && !s.idle)
        {
            let name = match running {
                true => phases::work(&stack.frames).to_owned(),
                false => places::wait(&stack.frames).0,
            };
            *sums.entry(name).or_default() += stack.count;
        }
        let all: u64 = sums.values().sum();
        let mut shares: Vec<(String, f64)> = sums
            .into_iter()
            .map(|(n, c)| (n, c as f64 / all.max(1) as f64))
            .collect();
        shares.sort_by(|a, b| b.1.total_cmp(&a.1));
        shares
    }

    /// The samples of idle threads by what they were waiting for. The most frequent come first.
    pub fn idle(&self) -> Vec<(String, u64)> {
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        for stack in self.stacks.iter().filter(|s| s.state() == State::Idle) {
            *sums.entry(places::wait(&stack.frames).0).or_default() += stack.count;
        }
        let mut sums: Vec<(String, u64)> = sums.into_iter().collect();
        sums.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        sums
    }

    /// The numbers of samples: running, waiting, idle.
    pub fn counts(&self) -> [u64; 3] {
        [State::Running, State::Waiting, State::Idle].map(|state| self.count(state))
    }

    fn count(&self, state: State) -> u64 {
        self.stacks
            .iter()
            .filter(|s| s.state() == state)
            .map(|s| s.count)
            .sum()
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), LabError> {
    let time = args.seconds > 0.0 && args.seconds <= 3600.0;
    if !time || !(1..=1000).contains(&args.rate) {
        return Err(LabError::usage("--seconds: up to 3600; --rate: 1 to 1000"));
    }
    let command = std::fs::read_to_string(format!("/proc/{}/comm", args.pid))
        .map_err(|_| LabError::usage(format!("there is no process {}", args.pid)))?;
    let mut profile = Profile {
        schema: SCHEMA.into(),
        pid: args.pid,
        command: command.trim().into(),
        ..Profile::default()
    };
    let waits = args
        .dsn
        .as_deref()
        .map(|dsn| waits::Waits::begin(dsn, args.instrument))
        .transpose()?;
    let sampled = sample(args, &mut profile);
    // Also after an error, so that the instruments are disabled again.
    if let Some(waits) = waits {
        profile.contention = waits.end()?;
    }
    sampled?;
    profile.partial = interrupt::requested();
    write(args, &profile)?;
    args.json.write(&profile, &lines(args, &profile))?;
    Ok(())
}

fn sample(args: &Args, profile: &mut Profile) -> Result<(), LabError> {
    let recording = if args.by == "ptrace" {
        None
    } else {
        perf::start(args.pid, args.seconds, 199)
    };
    let mut counts: HashMap<(bool, Vec<Arc<str>>), u64> = HashMap::new();
    let begin = Instant::now();
    if args.by != "perf" {
        rounds(args, profile, &mut counts)?;
    }
    profile.by = "ptrace".into();
    if let Some(recording) = recording
        && let Some(stacks) = recording.finish()?
    {
        counts.retain(|(running, _), _| !running);
        profile.by = if args.by == "perf" {
            "perf".into()
        } else {
            "perf (running) and ptrace (waiting)".into()
        };
        counts.extend(
            stacks
                .into_iter()
                .map(|(frames, count)| ((true, frames), count)),
        );
    } else if args.by == "perf" {
        return Err(LabError::usage(
            "perf is not installed or may not record this process (see /proc/sys/kernel/perf_event_paranoid); --by ptrace",
        ));
    }
    profile.seconds = begin.elapsed().as_secs_f64();
    profile.samples = counts.values().sum();
    profile.stacks = counts
        .into_iter()
        .map(|((running, frames), count)| Stack {
            running,
            idle: !running && places::wait(&frames).1,
            count,
            frames,
        })
        .collect();
    profile
        .stacks
        .sort_by(|a, b| (b.count, &a.frames).cmp(&(a.count, &b.frames)));
    Ok(())
}

/// Samples all threads in rounds until the time is over.
fn rounds(
    args: &Args,
    profile: &mut Profile,
    counts: &mut HashMap<(bool, Vec<Arc<str>>), u64>,
) -> Result<(), LabError> {
    let cannot = |e: std::io::Error| {
        let hint = if e.raw_os_error() == Some(libc::EPERM) {
            " (same user and ptrace_scope 0, or root, is needed)"
        } else {
            ""
        };
        LabError::Io {
            doing: format!("cannot trace process {}{hint}", args.pid),
            error: e,
        }
    };
    let mut code = unwind::Unwound::of(args.pid).map_err(cannot)?;
    let mut progress = Progress::new(false);
    ptrace::hurry();
    let begin = Instant::now();
    let step = Duration::from_secs_f64(1.0 / f64::from(args.rate));
    let mut next = begin;
    while begin.elapsed().as_secs_f64() < args.seconds && !interrupt::requested() {
        let tasks = procfs::tasks(args.pid);
        if tasks.is_empty() {
            break;
        }
        profile.threads = profile.threads.max(tasks.len());
        for task in tasks {
            let running = is_running(args.pid, task);
            let Some(snapshot) = ptrace::sample(args.pid, task).map_err(cannot)? else {
                continue;
            };
            profile.longest_stop_us = profile
                .longest_stop_us
                .max(snapshot.stopped.as_secs_f64() * 1e6);
            let frames = code.names(&snapshot);
            // A thread that was just woken is ready to run, but was waiting before.
            let running = running && !places::just_waited(&frames);
            *counts.entry((running, frames)).or_default() += 1;
        }
        progress.say(&format!(
            "{:.1} of {} s",
            begin.elapsed().as_secs_f64(),
            args.seconds
        ));
        next += step;
        // A machine that cannot keep up gets fewer rounds and no backlog.
        next = next.max(Instant::now());
        std::thread::sleep(next.saturating_duration_since(Instant::now()).max(step / 4));
    }
    Ok(())
}

fn is_running(pid: u32, task: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/task/{task}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| rest.starts_with('R'))
}

fn write(args: &Args, profile: &Profile) -> Result<(), LabError> {
    if let Some(path) = &args.flame {
        let running: Vec<(Vec<Arc<str>>, u64)> = profile
            .stacks
            .iter()
            .filter(|s| s.running)
            .map(|s| (s.frames.clone(), s.count))
            .collect();
        put(
            path,
            flame::svg(&format!("{} on the processor", profile.command), &running).as_bytes(),
        )?;
    }
    if let Some(path) = &args.folded {
        let line = |s: &Stack| {
            format!(
                "{};{} {}\n",
                match s.state() {
                    State::Running => "running",
                    State::Waiting => "waiting",
                    State::Idle => "idle",
                },
                s.frames.join(";"),
                s.count
            )
        };
        let text: String = profile.stacks.iter().map(line).collect();
        put(path, text.as_bytes())?;
    }
    Ok(())
}

fn lines(args: &Args, profile: &Profile) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{} (process {}): {} samples of {} threads in {:.1} s by {}; longest stop of a thread {:.0} us{}",
        profile.command,
        profile.pid,
        profile.samples,
        profile.threads,
        profile.seconds,
        profile.by,
        profile.longest_stop_us,
        if profile.partial { "; partial" } else { "" }
    );
    for (state, title) in [
        (State::Running, "on the processor"),
        (State::Waiting, "waiting"),
    ] {
        let all = profile.count(state).max(1) as f64;
        let _ = writeln!(out, "\n{title}: {} samples", profile.count(state));
        let phases = profile.phases(state == State::Running);
        for (name, share) in phases.iter().take(args.top) {
            let _ = writeln!(out, "  {:5.1} %  {name}", share * 100.0);
        }
        for stack in profile
            .stacks
            .iter()
            .filter(|s| s.state() == state)
            .take(args.top)
        {
            let leaf: Vec<&str> = stack.frames.iter().rev().take(6).map(|f| &**f).collect();
            let _ = writeln!(
                out,
                "  {:6} {:5.1} %  {}",
                stack.count,
                stack.count as f64 / all * 100.0,
                leaf.join(" < ")
            );
        }
    }
    let _ = writeln!(out, "\nidle: {} samples", profile.count(State::Idle));
    for (name, count) in profile.idle() {
        let _ = writeln!(out, "  {count:6}  {}", name.trim_start_matches("idle: "));
    }
    if !profile.contention.is_empty() {
        let _ = writeln!(out, "\nwaits, as the server counts them");
        for row in &profile.contention {
            let _ = writeln!(out, "  {}", row.join("  "));
        }
    }
    out
}
