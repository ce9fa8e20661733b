//! Servers that the lab can start: what they need before, and by which command they run.
//!
//! # Failure
//! They are children that die with the lab (`PR_SET_PDEATHSIG`), in a process group of their own, so that Ctrl-C at the terminal reaches
//! the lab alone.
#![allow(unsafe_code)]

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::LabError;

/// What the lab can start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    MariaDb,
    Nfold,
    /// `bench/floor`: answers every SELECT with the same row, and has no SQL in it.
    Floor,
}

/// Source of the floor server; its least that a request costs here is the kernel's share.
const FLOOR: &str = include_str!("../../../../bench/floor/floor.c");

/// How a server is started here.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// Buffer pool, MiB.
    pub pool_mib: u64,
    /// The first so many processors; None: all.
    pub cores: Option<usize>,
    /// Further settings, by the server's own names; the last of a name counts.
    pub settings: Vec<(String, String)>,
    /// The directory below which its data lie; None: the one for temporary files.
    pub under: Option<PathBuf>,
}

/// A server of the lab's own, running or about to.
#[derive(Debug)]
pub struct Started {
    pub kind: Kind,
    /// Holds its data, its log, and what [`Started::prepare`] makes.
    pub directory: PathBuf,
    pub port: u16,
    pub setup: Setup,
    pub child: Option<Child>,
}

impl Started {
    /// Makes what has to be there before the first start.
    pub fn prepare(&self) -> Result<(), LabError> {
        let put = |name: &str, text: &str| {
            let path = self.directory.join(name);
            fs::write(&path, text).map_err(LabError::io(format!("cannot write {}", path.display())))
        };
        match self.kind {
            Kind::Nfold => {
                let mut text = format!(
                    "[mysqld]\ninnodb_buffer_pool_size={}M\nmax_connections=2000\n",
                    self.setup.pool_mib
                );
                for (name, value) in &self.setup.settings {
                    text.push_str(&format!("{name}={value}\n"));
                }
                put("nfold.cnf", &text)
            }
            Kind::MariaDb => made(
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
            Kind::Floor => {
                put("floor.c", FLOOR)?;
                let file = |name| self.directory.join(name).display().to_string();
                made(
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

    /// The command that runs it on the first `cores` processors (all: None), writing to `log`.
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
        // SAFETY: prctl is async-signal-safe and touches nothing of the parent.
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
            Kind::Nfold => {
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
            Kind::MariaDb => vec![
                "mariadbd".into(),
                "--no-defaults".into(),
                format!("--datadir={}", file("data")),
                format!("--port={}", self.port),
                "--bind-address=127.0.0.1".into(),
                format!("--user={}", user()),
                format!("--socket={}", file("s")),
                format!("--innodb-buffer-pool-size={}M", self.setup.pool_mib),
            ],
            Kind::Floor => vec![
                file("floor"),
                "-p".into(),
                self.port.to_string(),
                "-t".into(),
                cores
                    .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
                    .to_string(),
            ],
        };
        if self.kind == Kind::MariaDb {
            words.extend(MARIADB.iter().map(|s| (*s).to_owned()));
            let settings = &self.setup.settings;
            words.extend(settings.iter().map(|(n, v)| format!("--{n}={v}")));
        }
        Ok(words)
    }
}

/// Settings that make it comparable: all data in memory, durable commits, no log that nobody asked for.
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

/// Runs a program that makes something; `missing` is said where it is not there.
fn made(program: &str, missing: &str, words: &[String]) -> Result<(), LabError> {
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

/// The first so many processors, as taskset wants them.
pub fn first(cores: usize) -> String {
    format!("0-{}", cores.saturating_sub(1))
}
