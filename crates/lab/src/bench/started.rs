//! The servers that the lab can start: their preparation and their command lines.
//!
//! # Failure
//! They are children that die with the lab (`PR_SET_PDEATHSIG`), in a process group of their own,
//! so that Ctrl-C at the terminal reaches only the lab.
#![allow(unsafe_code)]

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::LabError;

/// A kind of server that the lab can start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerKind {
    MariaDb,
    Nfold,
    /// `bench/floor`: answers every SELECT with the same row, and contains no SQL.
    Floor,
}

/// The source of the floor server. Its cost per request is a lower bound, mostly the kernel's
/// share.
const FLOOR: &str = include_str!("../../../../bench/floor/floor.c");

/// How to start a server.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// The size of the buffer pool in MiB.
    pub pool_mib: u64,
    /// Bind the server to the first processors, this many. `None`: to all.
    pub cores: Option<usize>,
    /// More settings, by the server's own names. The last one of a name applies.
    pub settings: Vec<(String, String)>,
    /// The directory below which its data is stored. `None`: that for temporary files.
    pub under: Option<PathBuf>,
}

/// A server that the lab has started or is about to start.
#[derive(Debug)]
pub struct Started {
    pub kind: ServerKind,
    /// Contains its data, its log, and the files that [`Started::prepare`] creates.
    pub directory: PathBuf,
    pub port: u16,
    pub setup: Setup,
    pub child: Option<Child>,
}

impl Started {
    /// Creates the files that are required before the first start.
    pub fn prepare(&self) -> Result<(), LabError> {
        let put = |name: &str, text: &str| {
            let path = self.directory.join(name);
            fs::write(&path, text).map_err(LabError::io(format!("cannot write {}", path.display())))
        };
        match self.kind {
            ServerKind::Nfold => {
                let mut text = format!(
                    "[mysqld]\ninnodb_buffer_pool_size={}M\nmax_connections=2000\n",
                    self.setup.pool_mib
                );
                for (name, value) in &self.setup.settings {
                    text.push_str(&format!("{name}={value}\n"));
                }
                put("nfold.cnf", &text)
            }
            ServerKind::MariaDb => run_tool(
                "mariadb-install-db",
                "--start-mariadb needs MariaDB's package (Debian: apt-get install mariadb-server)",
                &[
                    "--no-defaults".into(),
                    "--auth-root-authentication-method=normal".into(),
                    "--skip-test-db".into(),
                    format!("--datadir={}", self.directory.join("data").display()),
                    format!("--user={}", user()),
                ],
            ),
            ServerKind::Floor => {
                put("floor.c", FLOOR)?;
                let file = |name| self.directory.join(name).display().to_string();
                run_tool(
                    "cc",
                    "--start-floor needs a C compiler (Debian: apt-get install gcc libc6-dev)",
                    &[
                        "-O2".into(),
                        "-pthread".into(),
                        "-o".into(),
                        file("floor"),
                        file("floor.c"),
                    ],
                )
            }
        }
    }

    /// The command that runs it on the first `cores` processors (`None`: all), with its output in
    /// `log`.
    pub fn command(&self, cores: Option<usize>, log: &Path) -> Result<Command, LabError> {
        let mut words: Vec<String> = Vec::new();
        if let Some(cores) = cores {
            words.extend(["taskset".into(), "-c".into(), first(cores)]);
        }
        words.extend(self.words(cores)?);
        let out = fs::File::create(log)
            .map_err(LabError::io(format!("cannot write {}", log.display())))?;
        let err = out
            .try_clone()
            .map_err(LabError::io("cannot write the log"))?;
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .process_group(0);
        // SAFETY: prctl is async-signal-safe and does not access the parent's memory.
        unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            });
        }
        Ok(command)
    }

    fn words(&self, cores: Option<usize>) -> Result<Vec<String>, LabError> {
        let file = |name: &str| self.directory.join(name).display().to_string();
        let mut words: Vec<String> = match self.kind {
            ServerKind::Nfold => {
                let own =
                    std::env::current_exe().map_err(LabError::io("cannot find this program"))?;
                vec![
                    own.display().to_string(),
                    "serve".into(),
                    "--datadir".into(),
                    file("data"),
                    "--port".into(),
                    self.port.to_string(),
                    "--config".into(),
                    file("nfold.cnf"),
                ]
            }
            ServerKind::MariaDb => vec![
                "mariadbd".into(),
                "--no-defaults".into(),
                format!("--datadir={}", file("data")),
                format!("--port={}", self.port),
                "--bind-address=127.0.0.1".into(),
                format!("--user={}", user()),
                format!("--socket={}", file("s")),
                format!("--innodb-buffer-pool-size={}M", self.setup.pool_mib),
            ],
            ServerKind::Floor => vec![
                file("floor"),
                "-p".into(),
                self.port.to_string(),
                "-t".into(),
                cores
                    .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
                    .to_string(),
            ],
        };
        if self.kind == ServerKind::MariaDb {
            words.extend(MARIADB.iter().map(|s| (*s).to_owned()));
            let settings = &self.setup.settings;
            words.extend(settings.iter().map(|(n, v)| format!("--{n}={v}")));
        }
        Ok(words)
    }
}

/// Settings that make it comparable: all data in memory, durable commits, no unnecessary logs.
const MARIADB: &[&str] = &[
    "--skip-name-resolve",
    "--skip-log-bin",
    "--performance-schema=OFF",
    "--max-connections=2000",
    "--back-log=2000",
    "--innodb-log-file-size=1G",
    "--innodb-flush-log-at-trx-commit=1",
    "--innodb-adaptive-hash-index=OFF",
    "--character-set-server=utf8mb4",
    "--max-prepared-stmt-count=1000000",
];

/// Runs a program that creates a file. `missing` is the error if the program does not exist.
fn run_tool(program: &str, missing: &str, words: &[String]) -> Result<(), LabError> {
    let done = Command::new(program)
        .args(words)
        .output()
        .map_err(|_| LabError::usage(missing))?;
    match done.status.success() {
        true => Ok(()),
        false => Err(LabError::usage(format!(
            "{program} failed: {}",
            String::from_utf8_lossy(&done.stderr)
                .lines()
                .last()
                .unwrap_or_default()
        ))),
    }
}

fn user() -> String {
    std::env::var("USER").unwrap_or_else(|_| "root".into())
}

/// The list of the first `cores` processors in taskset's format.
pub fn first(cores: usize) -> String {
    format!("0-{}", cores.saturating_sub(1))
}
