//! Measures one window: drives the load, and reads /proc at its beginning and end.

use std::time::Duration;

use super::result::{ErrorInfo, Sample};
use super::servers::Server;
use crate::LabError;
use crate::client::drive::{self, Moment, Next, Outcome, Source};
use crate::client::{Answer, Command};
use crate::procfs::{self, MachineTimes, ProcessTimes};

pub const CLIENT_LIMIT: &str = "client-limit";
pub const NOT_QUIET: &str = "not-quiet";
pub const LOST: &str = "connections-lost";
/// The processors that other programs may use on a quiet machine.
pub const BUSY_CORES: f64 = 0.15;
/// The share of its time that a client thread may work before the client counts as the limit.
const CLIENT_SHARE: f64 = 0.85;

/// The load to run, and its server.
pub struct Window<'a> {
    pub server: &'a Server,
    pub workload: &'a str,
    pub clients: usize,
    pub cores: Option<usize>,
    pub round: usize,
    pub warmup: f64,
    pub seconds: f64,
    /// The number of statements per client that ends the window, instead of warm-up and seconds.
    pub count: Option<u64>,
    pub threads: usize,
    /// Whether the client sends and receives for many connections by one system call, if the kernel
    /// supports that.
    pub together: bool,
}

/// The counters of /proc at one moment.
#[derive(Default, Clone, Copy)]
struct ProcCounters {
    machine: MachineTimes,
    server: Option<ProcessTimes>,
}

impl Window<'_> {
    /// Runs the window. `None` if Ctrl-C ended it.
    pub fn run(
        &self,
        mut make: impl FnMut(usize) -> Box<dyn Source>,
        mut tick: impl FnMut(),
    ) -> Result<Option<Sample>, LabError> {
        let by_time = self.count.is_none();
        let time = |seconds| {
            if by_time {
                Duration::from_secs_f64(seconds)
            } else {
                Duration::ZERO
            }
        };
        let make = |connection| match self.count {
            None => make(connection),
            Some(left) => Box::new(Counted {
                inner: make(connection),
                left,
            }),
        };
        let options = drive::Options {
            connections: self.clients,
            threads: self.threads,
            together: self.together,
            warmup: time(self.warmup),
            measure: by_time.then(|| time(self.seconds)),
            ..drive::Options::default()
        };
        let look = || ProcCounters {
            machine: procfs::machine_times(),
            server: self.server.pid.and_then(procfs::process_times),
        };
        let (mut before, mut after) = (ProcCounters::default(), ProcCounters::default());
        let outcome = drive::drive(&self.server.dsn, &options, make, |moment| match moment {
            Moment::Begin => before = look(),
            Moment::End => after = look(),
            Moment::Tick(_) => tick(),
        })?;
        if outcome.interrupted {
            return Ok(None);
        }
        if outcome.dead == self.clients {
            return Err(LabError::usage(format!(
                "{} went away and did not come back",
                self.server.name
            )));
        }
        Ok(Some(self.sample(&outcome, &before, &after)))
    }

    fn sample(&self, outcome: &Outcome, before: &ProcCounters, after: &ProcCounters) -> Sample {
        let statements = outcome.statements.max(1) as f64;
        let seconds = outcome.seconds.max(1e-9);
        let client: f64 = outcome.client_cpu.iter().sum();
        let busiest = outcome.client_cpu.iter().copied().fold(0.0, f64::max);
        let server = before.server.zip(after.server);
        let cpu = server.map(|(b, a)| {
            let system = (a.system - b.system).max(0.0);
            ((a.user - b.user).max(0.0) + system, system)
        });
        // The switches of threads that have ended are no longer counted by /proc.
        let switches =
            server.and_then(|(b, a)| (a.voluntary + a.forced).checked_sub(b.voluntary + b.forced));
        let busy = after.machine.busy - before.machine.busy;
        let stolen = (after.machine.stolen - before.machine.stolen) / seconds;
        let other = cpu.map(|(cpu, _)| ((busy - cpu - client) / seconds).max(0.0));
        let mut marks = Vec::new();
        if busiest / seconds > CLIENT_SHARE {
            marks.push(CLIENT_LIMIT.to_owned());
        }
        if other.unwrap_or(0.0) > BUSY_CORES || stolen > BUSY_CORES {
            marks.push(NOT_QUIET.to_owned());
        }
        if !outcome.lost_at.is_empty() {
            marks.push(LOST.to_owned());
        }
        let errors = outcome.errors.iter().map(|(code, e)| {
            (
                *code,
                ErrorInfo {
                    count: e.count,
                    message: e.message.clone(),
                },
            )
        });
        Sample {
            server: self.server.name.clone(),
            workload: self.workload.to_owned(),
            clients: self.clients,
            cores: self.cores,
            round: self.round,
            seconds,
            statements: outcome.statements,
            statements_per_s: outcome.per_second_mean(),
            events_per_s: outcome.events as f64 / seconds,
            rows_per_statement: outcome.rows as f64 / statements,
            bytes_per_statement: outcome.bytes as f64 / statements,
            p50_us: outcome.latency_us(0.5),
            p99_us: outcome.latency_us(0.99),
            p999_us: outcome.latency_us(0.999),
            max_us: outcome.latency.max() as f64 / 1_000.0,
            errors: errors.collect(),
            lost_at: outcome.lost_at.clone(),
            server_us: cpu.map(|(all, _)| all * 1e6 / statements),
            server_system_us: cpu.map(|(_, system)| system * 1e6 / statements),
            switches: switches.map(|s| s as f64 / statements),
            client_us: client * 1e6 / statements,
            server_cores: cpu.map(|(all, _)| all / seconds),
            client_cores: client / seconds,
            other_cores: other,
            stolen_cores: stolen,
            marks,
        }
    }
}

/// A source that ends after a number of commands.
struct Counted {
    inner: Box<dyn Source>,
    left: u64,
}

impl Source for Counted {
    fn next(&mut self, command: &mut Command) -> Next {
        if self.left == 0 {
            return Next::End;
        }
        let next = self.inner.next(command);
        self.left -= u64::from(next == Next::Send);
        next
    }

    fn template(&self, id: u32) -> &str {
        self.inner.template(id)
    }

    fn answered(&mut self, answer: &Answer) {
        self.inner.answered(answer);
    }

    fn reconnected(&mut self) -> bool {
        self.inner.reconnected()
    }
}
