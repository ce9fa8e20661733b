//! The results of a run: the JSON file (docs/lab.md describes its schema), and the table on the
//! terminal.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::LabError;

/// The name and version of the schema.
pub const SCHEMA: &str = "nfold-lab-bench/1";

/// A whole run. Times are in seconds, or in microseconds if the name ends in `_us`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub schema: String,
    /// Whether the run ended early. Then the samples are valid, but some are missing.
    pub partial: bool,
    /// The start time, in UTC.
    pub started: String,
    pub machine: String,
    pub processors: usize,
    pub lab_version: String,
    /// The command line.
    pub command: Vec<String>,
    /// The number of client threads with the highest number of clients. With fewer clients there
    /// may be fewer.
    pub client_threads: usize,
    /// How the client sends and receives: `io_uring` (for many connections by one system call) or
    /// `epoll` (one call each).
    #[serde(default)]
    pub client_io: String,
    pub warmup_s: f64,
    pub window_s: f64,
    /// The number of statements per client that ended a window, if statements ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    pub repeat: usize,
    /// The rows of the workloads' tables; 0 for a replay.
    pub rows: u64,
    pub servers: Vec<ServerInfo>,
    pub workloads: Vec<WorkloadInfo>,
    /// One sample per window, in the order of measurement.
    pub samples: Vec<Sample>,
    /// The medians of the samples per server, workload, number of cores and number of clients.
    pub summary: Vec<Summary>,
    /// The profiles by phase, if `stacks --json` files were given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<serde_json::Value>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerInfo {
    pub name: String,
    /// The DSN without the password.
    pub dsn: String,
    pub version: String,
    /// Whether the server runs on this machine and its process is accessible.
    pub local: bool,
    /// Whether this is the server without SQL, which shows the lower bound of a request's cost on
    /// this machine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub floor: bool,
    pub settings: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkloadInfo {
    pub name: String,
    pub about: String,
    pub statement: String,
}

/// The errors of a window with one error number.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ErrorInfo {
    pub count: u64,
    pub message: String,
}

/// The measurements of one window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    pub server: String,
    pub workload: String,
    pub clients: usize,
    /// The number of processors that the server was bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<usize>,
    /// Starts at 1.
    pub round: usize,
    pub seconds: f64,
    pub statements: u64,
    pub statements_per_s: f64,
    pub events_per_s: f64,
    pub rows_per_statement: f64,
    pub bytes_per_statement: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
    pub max_us: f64,
    /// By MySQL's error number.
    pub errors: BTreeMap<u16, ErrorInfo>,
    /// The times at which connections were lost, in seconds since the beginning of the window.
    pub lost_at: Vec<f64>,
    /// The server's CPU time per statement. `None` for a server on another machine.
    pub server_us: Option<f64>,
    pub server_system_us: Option<f64>,
    pub switches: Option<f64>,
    pub client_us: f64,
    /// The average number of processors that the server used.
    pub server_cores: Option<f64>,
    pub client_cores: f64,
    pub other_cores: Option<f64>,
    pub stolen_cores: f64,
    /// `client-limit`: a client thread was busy nearly all the time; `not-quiet`: other programs
    /// used the machine; `connections-lost`.
    pub marks: Vec<String>,
}

/// The medians of a group of samples.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub server: String,
    pub workload: String,
    pub clients: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<usize>,
    pub windows: usize,
    pub statements_per_s: f64,
    /// The lowest and the highest window.
    pub statements_per_s_spread: [f64; 2],
    pub p50_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
    pub server_us: Option<f64>,
    pub server_us_spread: Option<[f64; 2]>,
    pub switches: Option<f64>,
    pub client_us: f64,
    pub errors: u64,
    pub marks: Vec<String>,
}

/// The median of `values`; 0 if there are none.
pub fn median(values: &mut [f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    values.sort_by(f64::total_cmp);
    let mid = values.len() / 2;
    if values.len().is_multiple_of(2) {
        (values[mid - 1] + values[mid]) / 2.0
    } else {
        values[mid]
    }
}

fn spread(values: &[f64]) -> [f64; 2] {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    [low, high]
}

impl Report {
    /// Computes `summary` from `samples`, in the samples' order.
    pub fn summarise(&mut self) {
        let mut groups: Vec<(&Sample, Vec<&Sample>)> = Vec::new();
        for s in &self.samples {
            let same = |o: &Sample| {
                (&o.server, &o.workload, o.clients, o.cores)
                    == (&s.server, &s.workload, s.clients, s.cores)
            };
            match groups.iter_mut().find(|(first, _)| same(first)) {
                Some((_, group)) => group.push(s),
                None => groups.push((s, vec![s])),
            }
        }
        self.summary = groups
            .into_iter()
            .map(|(_, group)| Summary::of(&group))
            .collect();
    }

    /// Writes the file and renames it, so that readers always find a complete file.
    pub fn write(&self, path: &Path) -> Result<(), LabError> {
        let cannot = || LabError::io(format!("cannot write {}", path.display()));
        let text = crate::output::json(self)?;
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(".new");
        std::fs::write(&temporary, text).map_err(cannot())?;
        std::fs::rename(&temporary, path).map_err(cannot())
    }

    /// Reads a file written by [`Self::write`].
    pub fn read(path: &Path) -> Result<Report, LabError> {
        crate::output::read(path, SCHEMA, "bench --json")
    }

    /// The summary as a text table. CPU times are compared with the first server's.
    pub fn table(&self) -> String {
        let mut out = format!(
            "{:<28} {:<12} {:>5} {:>7} {:>11} {:>17} {:>9} {:>9} {:>9} {:>9} {:>6}  {}\n",
            "workload",
            "server",
            "cores",
            "clients",
            "stmt/s",
            "lowest…highest",
            "p50 us",
            "p99 us",
            "p99.9 us",
            "cpu us",
            "errors",
            "notes"
        );
        for s in &self.summary {
            let cores = s.cores.map_or("-".into(), |c| c.to_string());
            let range = format!(
                "{:.0}…{:.0}",
                s.statements_per_s_spread[0], s.statements_per_s_spread[1]
            );
            let cpu = s.server_us.map_or("-".into(), |c| format!("{c:.1}"));
            let line = format!(
                "{:<28} {:<12} {cores:>5} {:>7} {:>11.0} {range:>17} {:>9.0} {:>9.0} {:>9.0} {cpu:>9} {:>6}  {}",
                s.workload,
                s.server,
                s.clients,
                s.statements_per_s,
                s.p50_us,
                s.p99_us,
                s.p999_us,
                s.errors,
                s.marks.join(" ")
            );
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}

impl Summary {
    fn of(group: &[&Sample]) -> Summary {
        let first = group[0];
        let column =
            |get: &dyn Fn(&Sample) -> f64| -> Vec<f64> { group.iter().map(|s| get(s)).collect() };
        let optional = |get: &dyn Fn(&Sample) -> Option<f64>| -> Option<Vec<f64>> {
            let values: Vec<f64> = group.iter().filter_map(|s| get(s)).collect();
            (!values.is_empty()).then_some(values)
        };
        let mid = |get: &dyn Fn(&Sample) -> f64| median(&mut column(get));
        let server = optional(&|s| s.server_us);
        let mut marks: Vec<String> = group.iter().flat_map(|s| s.marks.iter().cloned()).collect();
        marks.sort();
        marks.dedup();
        Summary {
            server: first.server.clone(),
            workload: first.workload.clone(),
            clients: first.clients,
            cores: first.cores,
            windows: group.len(),
            statements_per_s: mid(&|s| s.statements_per_s),
            statements_per_s_spread: spread(&column(&|s| s.statements_per_s)),
            p50_us: mid(&|s| s.p50_us),
            p99_us: mid(&|s| s.p99_us),
            p999_us: mid(&|s| s.p999_us),
            server_us_spread: server.as_deref().map(spread),
            server_us: server.map(|mut v| median(&mut v)),
            switches: optional(&|s| s.switches).map(|mut v| median(&mut v)),
            client_us: mid(&|s| s.client_us),
            errors: group
                .iter()
                .map(|s| s.errors.values().map(|e| e.count).sum::<u64>())
                .sum(),
            marks,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(server: &str, round: usize, rate: f64, cpu: Option<f64>) -> Sample {
        Sample {
            server: server.into(),
            workload: "w".into(),
            clients: 8,
            round,
            statements_per_s: rate,
            server_us: cpu,
            marks: if round == 2 {
                vec!["not-quiet".into()]
            } else {
                vec![]
            },
            ..Sample::default()
        }
    }

    #[test]
    fn summary_has_medians_and_spread_by_server() {
        let mut report = Report {
            schema: SCHEMA.into(),
            ..Report::default()
        };
        for (round, rate) in [(1, 10.0), (2, 30.0), (3, 20.0)] {
            report
                .samples
                .push(sample("a", round, rate, Some(rate / 10.0)));
            report.samples.push(sample("b", round, rate * 2.0, None));
        }
        report.summarise();
        assert_eq!(report.summary.len(), 2);
        let a = &report.summary[0];
        assert_eq!(
            (a.statements_per_s, a.statements_per_s_spread),
            (20.0, [10.0, 30.0])
        );
        assert_eq!(
            (a.server_us, a.server_us_spread),
            (Some(2.0), Some([1.0, 3.0]))
        );
        assert_eq!(a.marks, ["not-quiet"]);
        assert_eq!(
            (report.summary[1].server_us, report.summary[1].windows),
            (None, 3)
        );
        assert!(report.table().lines().count() == 3);
    }

    #[test]
    fn report_round_trips_and_other_files_are_rejected() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("r.json");
        let mut report = Report {
            schema: SCHEMA.into(),
            partial: true,
            ..Report::default()
        };
        report.samples.push(sample("a", 1, 1.0, None));
        report.write(&path).expect("writes");
        assert_eq!(Report::read(&path).expect("reads"), report);
        for text in ["", "{", "[]", "{\"schema\":\"x\"}"] {
            std::fs::write(&path, text).expect("writes");
            assert!(Report::read(&path).is_err(), "{text}");
        }
    }

    #[test]
    fn median_of_odd_even_and_empty_lists() {
        assert_eq!(median(&mut []), 0.0);
        assert_eq!(median(&mut [3.0, 1.0]), 2.0);
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
    }
}
