//! The engine beside LMDB, RocksDB, redb and fjall. `make bench-engine` runs it; bench/README.md
//! says what it measures.
//!
//! Without `--engine` this is the parent: it runs itself once for each engine and size, and prints
//! the tables. With it, the child: one engine
//! in one process, figures as lines of JSON.

#[allow(unsafe_code)]
mod child;
#[allow(unsafe_code)]
mod control;
mod data;
mod engines;
mod report;
mod work;

use std::path::PathBuf;

use work::Workload;

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    engines: Vec<String>,
    rows: Vec<u64>,
    threads: Vec<usize>,
    workloads: Vec<Workload>,
    seconds: f64,
    /// Operations of each thread in place of seconds: for profiles.
    operations: Option<u64>,
    repeat: usize,
    dir: PathBuf,
    json: Option<PathBuf>,
    child: Option<String>,
}

const ENGINES: &[&str] = if cfg!(feature = "peers") {
    &["nfold", "lmdb", "rocksdb", "redb", "fjall"]
} else {
    &["nfold"]
};

const USAGE: &str = "\
usage: nfold-bench-engine [options]
  --engines a,b      of nfold,lmdb,rocksdb,redb,fjall (all)
  --rows 1M,10M      sizes
  --threads 1,2      thread counts
  --workloads a,b    of point,range,get_many,mixed,update,insert (all)
  --seconds S        of each sample (0.5)
  --operations N     of each thread and sample, in place of seconds
  --repeat N         samples of each, of which the median counts (3)
  --dir DIR          where the data goes (a folder of its own below the system's temporary one)
  --json FILE        all figures
";

fn list<T>(text: &str, item: impl Fn(&str) -> Option<T>) -> Vec<T> {
    let parse = |t: &str| item(t).unwrap_or_else(|| usage(&format!("not understood: {t}")));
    text.split(',').map(parse).collect()
}

fn number(text: &str) -> Option<u64> {
    let (digits, unit) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1_000),
        None => match text.strip_suffix(['m', 'M']) {
            Some(digits) => (digits, 1_000_000),
            None => (text, 1),
        },
    };
    digits.parse::<u64>().ok().map(|n| n * unit)
}

fn usage(message: &str) -> ! {
    eprint!("{message}\n{USAGE}");
    std::process::exit(2)
}

fn options() -> Options {
    let mut o = Options {
        engines: ENGINES.iter().map(|e| (*e).into()).collect(),
        rows: vec![1_000_000, 10_000_000],
        threads: vec![1, 2],
        workloads: Workload::ALL.to_vec(),
        seconds: 0.5,
        operations: None,
        repeat: 3,
        dir: std::env::temp_dir().join(format!("nfold-bench-engine-{}", std::process::id())),
        json: None,
        child: None,
    };
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        let Some(value) = args.next() else {
            usage(&format!("{name} wants a value"))
        };
        let wrong = || -> ! { usage(&format!("{name}: not understood: {value}")) };
        match name.as_str() {
            "--engines" => {
                o.engines = list(&value, |e| ENGINES.contains(&e).then(|| e.to_owned()));
            }
            "--rows" => o.rows = list(&value, number),
            "--threads" => o.threads = list(&value, |t| t.parse().ok()),
            "--workloads" => o.workloads = list(&value, Workload::named),
            "--seconds" => o.seconds = value.parse().unwrap_or_else(|_| wrong()),
            "--operations" => o.operations = Some(number(&value).unwrap_or_else(|| wrong())),
            "--repeat" => o.repeat = value.parse().unwrap_or_else(|_| wrong()),
            "--dir" => o.dir = value.into(),
            "--json" => o.json = Some(value.into()),
            "--engine" => o.child = Some(value),
            _ => usage(&format!("unknown option {name}")),
        }
    }
    o
}

fn main() {
    let options = options();
    match &options.child {
        Some(engine) => child::run(engine, &options),
        None => report::run(&options),
    }
}
