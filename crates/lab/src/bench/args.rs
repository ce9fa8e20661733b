//! The command line of `nfold lab bench`, and the values of its presets.

use std::path::{Path, PathBuf};

use crate::LabError;
use crate::output::JsonOption;

/// For `--help`.
pub const EXAMPLES: &str = "Examples:
  nfold lab bench --list
  nfold lab bench --start-nfold --start-mariadb --workloads in_list_200,in_list_200:prepared --clients 1,8,64 --json r.json
  nfold lab bench --compare old=mysql://app@db1/bench --compare new=mysql://app@db2/bench --workloads sysbench --clients 64
  nfold lab bench --dsn mysql://app@127.0.0.1/shop --replay w.jsonl --clients 1,2,4,8,16,32,64
  nfold lab bench --start-nfold --cores 1,2,4,8 --clients 64 --json cores.json
  nfold lab bench --publish --markdown results.md --json results.json
  nfold lab bench --publish --clients 64 --time 2 --compare mysql=mysql://app@127.0.0.1:3307/bench

Passwords: NFOLD_LAB_PASSWORD, an option file (?option_file=FILE) or a prompt (?prompt=yes); never in a DSN.";

/// The default seconds of the warm-up and of a window. The published figures use longer ones.
const TIMES: (f64, f64) = (2.0, 5.0);
const PUBLISHED_TIMES: (f64, f64) = (3.0, 10.0);

/// The command line of `nfold lab bench`.
#[derive(clap::Args)]
pub struct Args {
    /// The workloads: names and groups (in-list, keys, 2007, sysbench, published, all), with
    /// :prepared and :trx, separated by commas (in_list_200)
    #[arg(long)]
    workloads: Option<String>,
    /// List the workloads and exit
    #[arg(long)]
    pub list: bool,
    /// Make figures as Nfold publishes them: start Nfold, MariaDB and the floor server here, run
    /// the published workloads at 8 and 64 clients with windows of 10 s, and write a Markdown
    /// table; all other options still apply
    #[arg(long, conflicts_with = "replay")]
    pub publish: bool,
    /// Run the statements of a file (`digest --extract`) instead of built-in workloads
    #[arg(long, value_name = "FILE")]
    pub replay: Option<PathBuf>,
    /// Let --replay run statements that write
    #[arg(long)]
    pub allow_writes: bool,
    /// Let --replay skip statements that write
    #[arg(long, conflicts_with = "allow_writes")]
    pub reads_only: bool,
    /// A server, named "server" (see `nfold lab dsn --help`); its database receives the tables
    #[arg(long)]
    pub dsn: Option<String>,
    /// A server with a name; may be repeated
    #[arg(long, value_name = "NAME=DSN")]
    pub compare: Vec<String>,
    /// Start a MariaDB from its package for this run
    #[arg(long)]
    pub start_mariadb: bool,
    /// Start this program as a server for this run
    #[arg(long)]
    pub start_nfold: bool,
    /// Also start a server without SQL, which answers everything with one row: the lower bound of a
    /// request's CPU time on this machine (point reads only)
    #[arg(long, alias = "floor", conflicts_with = "replay")]
    pub start_floor: bool,
    /// Buffer pool of servers started here, in MiB
    #[arg(long, default_value_t = 2048)]
    pub pool_mib: u64,
    /// Client counts, separated by commas (1,8,64)
    #[arg(long, value_delimiter = ',')]
    clients: Vec<usize>,
    /// Bind the servers to this number of processors; several counts run one after the other
    #[arg(long, value_delimiter = ',')]
    pub cores: Vec<usize>,
    /// Rows of each table
    #[arg(long, default_value_t = 1_000_000)]
    pub rows: u64,
    /// Seconds of warm-up before a window (2)
    #[arg(long)]
    warmup: Option<f64>,
    /// Seconds of a window (5)
    #[arg(long)]
    time: Option<f64>,
    /// End a window after this number of statements per client, without a warm-up, instead of after
    /// a time
    #[arg(long, conflicts_with_all = ["time", "warmup"])]
    pub count: Option<u64>,
    /// Windows of each kind; the median is reported
    #[arg(long, default_value_t = 3)]
    pub repeat: usize,
    /// Threads of the client; 0: one per two processors, or one per 256 clients if that is more, at
    /// most one per processor
    #[arg(long, default_value_t = 0)]
    pub client_threads: usize,
    /// Make one system call for each send and each receive of the client, as on a kernel without
    /// io_uring
    #[arg(long)]
    pub no_io_uring: bool,
    #[command(flatten)]
    pub json: JsonOption,
    /// Write a Markdown table: medians of CPU time, their ratios, throughput, p99; - is standard
    /// output, instead of the plain table (as with --publish)
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

impl Args {
    pub fn workloads(&self) -> &str {
        match &self.workloads {
            Some(names) => names,
            None if self.publish => "published",
            None => "in_list_200",
        }
    }

    pub fn clients(&self) -> &[usize] {
        match self.clients.as_slice() {
            [] if self.publish => &[8, 64],
            [] => &[1, 8, 64],
            given => given,
        }
    }

    /// The file for the Markdown table, if any.
    pub fn markdown(&self) -> Option<&Path> {
        let standard = self.publish.then_some(Path::new("-"));
        self.markdown.as_deref().or(standard)
    }

    fn times(&self) -> (f64, f64) {
        if self.publish { PUBLISHED_TIMES } else { TIMES }
    }

    /// Seconds of warm-up before a window; 0 if statements end the window.
    pub fn warmup(&self) -> f64 {
        match self.count {
            Some(_) => 0.0,
            None => self.warmup.unwrap_or(self.times().0),
        }
    }

    /// Seconds of a window; 0 if statements end it.
    pub fn window(&self) -> f64 {
        match self.count {
            Some(_) => 0.0,
            None => self.time.unwrap_or(self.times().1),
        }
    }

    /// Checks the arguments before anything is started.
    pub fn check(&self) -> Result<(), LabError> {
        let bad = |what: &str| Err(LabError::usage(what.to_owned()));
        if self.clients.contains(&0) {
            return bad("--clients: counts from 1 on, such as 1,8,64");
        }
        if self.cores.contains(&0) {
            return bad("--cores: counts from 1 on, such as 1,2,4");
        }
        let have = std::thread::available_parallelism().map_or(1, usize::from);
        if let Some(most) = self.cores.iter().find(|c| **c > have) {
            return Err(LabError::usage(format!(
                "--cores {most}: this machine has {have}"
            )));
        }
        if self.repeat == 0 || self.rows == 0 || self.count == Some(0) {
            return bad("--repeat, --rows and --count: at least 1");
        }
        let day = 86_400.0;
        let window = self.count.is_some() || self.window() > 0.0 && self.window() <= day;
        if !window || !(0.0..=day).contains(&self.warmup()) {
            return bad("--time and --warmup: seconds, at most a day");
        }
        Ok(())
    }
}
