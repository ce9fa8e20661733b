//! The command line of `nfold lab bench`, and what its presets stand for.

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

/// Seconds before a window, and of it, where nothing else is said; the published ones are longer.
const TIMES: (f64, f64) = (2.0, 5.0);
const PUBLISHED_TIMES: (f64, f64) = (3.0, 10.0);

/// Command line of `nfold lab bench`.
#[derive(clap::Args)]
pub struct Args {
    /// What to run: names, groups (in-list, keys, 2007, sysbench, published, all), with :prepared and :trx; parted by commas (in_list_200)
    #[arg(long)]
    workloads: Option<String>,
    /// Name the workloads and end
    #[arg(long)]
    pub list: bool,
    /// Figures as Nfold publishes them: Nfold, MariaDB and the floor server started here, the published workloads at 8 and 64 clients,
    /// windows of 10 s, as a table in Markdown; every other option still counts
    #[arg(long, conflicts_with = "replay")]
    pub publish: bool,
    /// Run the statements of a file (`digest --extract`) in place of built-in workloads
    #[arg(long, value_name = "FILE")]
    pub replay: Option<PathBuf>,
    /// Let --replay run statements that write
    #[arg(long)]
    pub allow_writes: bool,
    /// Let --replay leave out statements that write
    #[arg(long, conflicts_with = "allow_writes")]
    pub reads_only: bool,
    /// A server, named "server" (see `nfold lab dsn --help`); its database gets the tables
    #[arg(long)]
    pub dsn: Option<String>,
    /// A server with a name; may be given again and again
    #[arg(long, value_name = "NAME=DSN")]
    pub compare: Vec<String>,
    /// Start a MariaDB from its package for this run
    #[arg(long)]
    pub start_mariadb: bool,
    /// Start this program as a server for this run
    #[arg(long)]
    pub start_nfold: bool,
    /// Start a server without SQL as well, which answers one row to everything: the least CPU that a request can cost here (point reads only)
    #[arg(long, alias = "floor", conflicts_with = "replay")]
    pub start_floor: bool,
    /// Buffer pool of servers started here, in MiB
    #[arg(long, default_value_t = 2048)]
    pub pool_mib: u64,
    /// Client counts, parted by commas (1,8,64)
    #[arg(long, value_delimiter = ',')]
    clients: Vec<usize>,
    /// Bind the servers to so many processors, one count after the other
    #[arg(long, value_delimiter = ',')]
    pub cores: Vec<usize>,
    /// Rows of each table
    #[arg(long, default_value_t = 1_000_000)]
    pub rows: u64,
    /// Seconds before a window that are not counted (2)
    #[arg(long)]
    warmup: Option<f64>,
    /// Seconds of a window (5)
    #[arg(long)]
    time: Option<f64>,
    /// End a window after so many statements of each client, without warm-up, in place of after a time
    #[arg(long, conflicts_with_all = ["time", "warmup"])]
    pub count: Option<u64>,
    /// Windows of each kind; the median counts
    #[arg(long, default_value_t = 3)]
    pub repeat: usize,
    /// Threads of the client; 0: one for two processors, one for 256 clients where that is more, at most one for each processor
    #[arg(long, default_value_t = 0)]
    pub client_threads: usize,
    /// Make one system call for each send and each receive of the client, as where the kernel has no io_uring
    #[arg(long)]
    pub no_io_uring: bool,
    #[command(flatten)]
    pub json: JsonOption,
    /// Write a table in Markdown: medians of CPU, their ratios, throughput, p99; - is standard output, in place of the plain table (which is
    /// what --publish does)
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

    /// Where the Markdown goes; None: nowhere.
    pub fn markdown(&self) -> Option<&Path> {
        let standard = self.publish.then_some(Path::new("-"));
        self.markdown.as_deref().or(standard)
    }

    fn times(&self) -> (f64, f64) {
        if self.publish { PUBLISHED_TIMES } else { TIMES }
    }

    /// Seconds before a window; 0 where statements end it.
    pub fn warmup(&self) -> f64 {
        match self.count {
            Some(_) => 0.0,
            None => self.warmup.unwrap_or(self.times().0),
        }
    }

    /// Seconds of a window; 0 where statements end it.
    pub fn window(&self) -> f64 {
        match self.count {
            Some(_) => 0.0,
            None => self.time.unwrap_or(self.times().1),
        }
    }

    /// Says what cannot be, before anything is started.
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
