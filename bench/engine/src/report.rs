//! The parent: a child for each engine and size, then tables of medians, JSON of everything, and
//! the aims.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::Options;
use crate::data::PER_KEY;
use crate::work::GROUPS;

/// Everything one child said.
struct Run {
    engine: String,
    rows: u64,
    lines: Vec<Value>,
}

impl Run {
    fn numbers(&self, workload: &str, threads: usize, field: &str) -> Vec<f64> {
        let of = |l: &&Value| l["workload"] == workload && l["threads"] == threads;
        self.lines
            .iter()
            .filter(of)
            .filter_map(|l| l[field].as_f64())
            .collect()
    }

    /// Median operations a second.
    fn rate(&self, workload: &str, threads: usize) -> Option<f64> {
        median(self.numbers(workload, threads, "per_second"))
    }

    fn fact(&self, field: &str) -> Option<f64> {
        median(
            self.lines
                .iter()
                .filter_map(|l| l[field].as_f64())
                .collect(),
        )
    }

    /// How much faster two threads are than one in the same round: the median over the rounds.
    fn speed_up(&self, workload: &str, threads: usize) -> Option<f64> {
        let (one, more) = (
            self.numbers(workload, 1, "per_second"),
            self.numbers(workload, threads, "per_second"),
        );
        median(
            one.iter()
                .zip(&more)
                .map(|(one, more)| more / one)
                .collect(),
        )
    }
}

fn median(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied()
}

/// Runs all children, prints the tables, writes the JSON.
pub fn run(options: &Options) {
    let conditions = conditions();
    println!("{conditions}");
    let mut runs = Vec::new();
    for &rows in &options.rows {
        for engine in &options.engines {
            let run = child(options, engine, rows);
            let seconds = run.fact("load_seconds").unwrap_or_default();
            eprintln!(
                "{engine}, {rows} rows: loaded in {seconds:.1} s, {} samples",
                run.lines.len()
            );
            runs.push(run);
        }
        table(options, &runs, rows);
    }
    aims(options, &runs);
    if let Some(path) = &options.json {
        let all: Vec<Value> = runs
            .iter()
            .map(|r| json!({"engine": r.engine, "rows": r.rows, "lines": r.lines}))
            .collect();
        let text = serde_json::to_string_pretty(&json!({"conditions": conditions, "runs": all}));
        let written = text
            .map_err(std::io::Error::from)
            .and_then(|t| std::fs::write(path, t));
        written.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }
}

fn conditions() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpu = read("/proc/cpuinfo");
    let model = cpu
        .lines()
        .find_map(|l| l.strip_prefix("model name"))
        .map_or("unknown", |m| m.trim_start_matches(['\t', ' ', ':']));
    let cores = std::thread::available_parallelism().map_or(0, |n| n.get());
    let load = read("/proc/loadavg");
    format!(
        "{cores} cores ({model}), load average before: {}",
        load.trim()
    )
}

fn child(options: &Options, engine: &str, rows: u64) -> Run {
    let _ = std::fs::remove_dir_all(&options.dir);
    std::fs::create_dir_all(&options.dir).expect("a folder for the data");
    let join = |items: Vec<String>| items.join(",");
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command
        .args(["--engine", engine, "--rows", &rows.to_string()])
        .args([
            "--threads",
            &join(options.threads.iter().map(usize::to_string).collect()),
        ])
        .args([
            "--workloads",
            &join(options.workloads.iter().map(|w| w.name().into()).collect()),
        ])
        .args(["--seconds", &options.seconds.to_string()])
        .args(["--repeat", &options.repeat.to_string()])
        .arg("--dir")
        .arg(&options.dir)
        .stdout(Stdio::piped());
    if let Some(n) = options.operations {
        command.args(["--operations", &n.to_string()]);
    }
    let mut child = command.spawn().expect("a child process");
    let out = child.stdout.take().expect("its output");
    let lines = BufReader::new(out)
        .lines()
        .map_while(Result::ok)
        .filter_map(|line| serde_json::from_str(&line).ok())
        .collect();
    let status = child.wait().expect("the child ends");
    let _ = std::fs::remove_dir_all(&options.dir);
    assert!(status.success(), "{engine} with {rows} rows: {status}");
    Run {
        engine: engine.into(),
        rows,
        lines,
    }
}

fn table(options: &Options, runs: &[Run], rows: u64) {
    let runs: Vec<&Run> = runs.iter().filter(|r| r.rows == rows).collect();
    println!(
        "\n{rows} rows, thousands of operations a second (median of {})\n",
        options.repeat
    );
    print!("| workload | threads |");
    runs.iter().for_each(|r| print!(" {} |", r.engine));
    println!(
        " Nfold / best other |\n| --- | --- |{} --- |",
        " --- |".repeat(runs.len())
    );
    for workload in &options.workloads {
        for &threads in &options.threads {
            print!("| {} | {threads} |", workload.name());
            let mut rates = BTreeMap::new();
            for run in &runs {
                let rate = run.rate(workload.name(), threads).unwrap_or_default() / 1e3;
                print!(
                    " {} |",
                    if rate < 100.0 {
                        format!("{rate:.2}")
                    } else {
                        format!("{rate:.0}")
                    }
                );
                rates.insert(run.engine.as_str(), rate);
            }
            let own = rates.remove("nfold");
            let best = rates.into_values().reduce(f64::max);
            match own.zip(best) {
                Some((own, best)) => println!(" {:.2} |", own / best),
                None => println!(" - |"),
            }
        }
    }
    print!("| loading, s | |");
    runs.iter()
        .for_each(|r| print!(" {:.1} |", r.fact("load_seconds").unwrap_or_default()));
    println!(" |");
    print!("| cores of others | |");
    for run in &runs {
        let busy = run.lines.iter().filter_map(|l| l["others"].as_f64());
        print!(" {:.2} |", median(busy.collect()).unwrap_or_default());
    }
    println!(" |");
}

/// The aims of the project at the largest size, each with what was reached.
fn aims(options: &Options, runs: &[Run]) {
    let Some(&rows) = options.rows.iter().max() else {
        return;
    };
    let find = |engine: &str| runs.iter().find(|r| r.rows == rows && r.engine == engine);
    let Some(own) = find("nfold") else { return };
    println!("\nAims at {rows} rows\n\n| aim | reached |\n| --- | --- |");
    let own_points = own.rate("point", 1);
    if let Some(rate) = own_points {
        println!(
            "| point reads, one thread: 1.8 M/s | {:.2} M/s |",
            rate / 1e6
        );
    }
    if let Some((own, peer)) = own_points.zip(find("lmdb").and_then(|r| r.rate("point", 1))) {
        println!(
            "| point reads, one thread: 2 times LMDB | {:.2} |",
            own / peer
        );
    }
    for &threads in options.threads.iter().filter(|&&t| t > 1) {
        let pair = own
            .speed_up("point", threads)
            .zip(own.speed_up("chase", threads));
        if let Some((up, control)) = pair {
            println!(
                "| point reads, {threads} threads: 0.97 of the control's speed-up | {:.3} ({up:.3} of {control:.3}) |",
                up / control
            );
        }
    }
    if let Some((rate, gather)) = own.rate("get_many", 1).zip(own.fact("gather_ns")) {
        let ns = 1e9 / rate / (GROUPS as f64 * PER_KEY as f64);
        println!(
            "| get_many, ns a row: 4.5 times the gather | {:.2} ({ns:.1} of {gather:.1}) |",
            ns / gather
        );
    }
}
