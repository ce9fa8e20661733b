//! `nfold lab digest`: ranks the statement patterns of a load, from server logs.

use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use nfold_sql::lexer::LexMode;

use crate::LabError;
use crate::dsn::Dsn;
use crate::extract::Extract;
use crate::interrupt;
use crate::log::input::Input;
use crate::log::{Event, Format, Log, Skipped, time};
use crate::output::{json, put};
use crate::progress::Progress;

pub mod buckets;
mod page;
pub mod patterns;
pub mod report;
mod schema;
pub(crate) mod table;

use patterns::Patterns;
use report::{By, Report, Source, Totals};

pub const HELP: &str = "Examples:
  nfold lab digest /var/log/mysql/slow.log
  nfold lab digest slow.log.1.gz slow.log --by rows --json digest.json --html digest.html
  zcat old/*.gz | nfold lab digest -
  nfold lab digest --dsn mysql://root@127.0.0.1:3306
  nfold lab digest slow.log --since 2024-03-01T12:00:00Z --until 2024-03-01T12:05:00Z
  nfold lab digest slow.log --extract 3f2a --out w.jsonl     # then: nfold lab replay w.jsonl --dsn ...";

/// The command line of `nfold lab digest`.
#[derive(clap::Args)]
pub struct Args {
    /// Slow logs or general logs of MySQL, MariaDB or Percona Server, also compressed (gz, zst); -
    /// is standard input
    #[arg(value_name = "FILE", required_unless_present = "dsn")]
    files: Vec<PathBuf>,
    /// Instead of files: the counters in the performance_schema of this server
    /// (mysql://user@host:port)
    #[arg(long, value_name = "DSN", conflicts_with_all = ["files", "extract"])]
    dsn: Option<String>,
    /// The format of the files (default: detected)
    #[arg(long)]
    format: Option<Format>,
    /// The criterion that patterns are ranked by
    #[arg(long, default_value = "time")]
    by: By,
    /// The number of patterns to list
    #[arg(long, default_value_t = 20, value_name = "N")]
    limit: usize,
    /// The number of patterns to show with all details
    #[arg(long, default_value_t = 3, value_name = "N")]
    details: usize,
    /// Write JSON (docs/lab.md has its schema); - is standard output, instead of the table
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write an HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the statements of this pattern, given by its id or a prefix of it, or of all patterns;
    /// may be repeated
    #[arg(long, value_name = "ID", requires = "out")]
    extract: Vec<String>,
    /// The file for these statements, one JSON object per line
    #[arg(long, value_name = "FILE", requires = "extract")]
    out: Option<PathBuf>,
    /// Only statements that began at or after this time (2024-03-01T12:00:00Z); with --dsn,
    /// patterns seen since then, with all their counts
    #[arg(long, value_name = "TIME", value_parser = point_in_time)]
    since: Option<i64>,
    /// Only statements that began before this time; with --dsn, patterns seen before it
    #[arg(long, value_name = "TIME", value_parser = point_in_time)]
    until: Option<i64>,
    /// Only statements in this database
    #[arg(long, value_name = "NAME")]
    db: Option<String>,
    /// The zone of times that a log contains without a zone (default: UTC), e.g. Europe/Berlin
    #[arg(long, value_name = "ZONE", value_parser = zone)]
    time_zone: Option<TimeZone>,
    /// The server runs with sql_mode ANSI_QUOTES: "x" is a name
    #[arg(long)]
    ansi_quotes: bool,
    /// The server runs with sql_mode NO_BACKSLASH_ESCAPES
    #[arg(long)]
    no_backslash_escapes: bool,
    /// Show no statement with its values
    #[arg(long)]
    no_examples: bool,
    /// Show no progress
    #[arg(long)]
    quiet: bool,
}

fn point_in_time(text: &str) -> Result<i64, String> {
    match time::read(text.as_bytes()) {
        Some((stamp, b"")) => Ok(stamp.in_utc(&TimeZone::UTC)),
        _ => Err("must be like 2024-03-01T12:00:00Z".into()),
    }
}

fn zone(name: &str) -> Result<TimeZone, String> {
    TimeZone::get(name).map_err(|_| "no such time zone".into())
}

/// The state shared by all sources.
struct Run<'a> {
    args: &'a Args,
    patterns: Patterns,
    extract: Option<Extract>,
    progress: Progress,
    sampled_one_in: Option<u64>,
}

pub fn run(args: &Args) -> Result<(), LabError> {
    let mut mode = LexMode::default();
    if args.ansi_quotes {
        mode = mode.with(LexMode::ANSI_QUOTES);
    }
    if args.no_backslash_escapes {
        mode = mode.with(LexMode::NO_BACKSLASH_ESCAPES);
    }
    check(args)?;
    let extract = match &args.out {
        Some(out) => Some(Extract::create(out, &args.extract)?),
        None => None,
    };
    let mut run = Run {
        args,
        patterns: Patterns::new(mode),
        extract,
        progress: Progress::new(args.quiet),
        sampled_one_in: None,
    };
    let mut sources = Vec::new();
    if let Some(dsn) = &args.dsn {
        sources.push(run.server(&Dsn::open(dsn)?)?);
    }
    for file in &args.files {
        if interrupt::requested() {
            break;
        }
        sources.push(run.source(file)?);
    }
    run.progress.finish();
    let extracted = run.extract.take().map(Extract::finish).transpose()?;
    let report = run.report(sources);
    if let Some(line) = extracted {
        eprintln!("{line}");
    }
    write(args, &report)
}

/// Checks the arguments before a long read begins.
fn check(args: &Args) -> Result<(), LabError> {
    let outputs = [&args.json, &args.html, &args.out];
    let standard = |file: &&PathBuf| file.as_os_str() == "-";
    if outputs.into_iter().flatten().filter(standard).count() > 1 {
        return Err(LabError::usage(
            "only one of --json, --html and --out can be standard output",
        ));
    }
    for file in args.files.iter().filter(|file| !standard(file)) {
        // An input that is not a file, such as a pipe, can be opened only once.
        if std::fs::metadata(file).map_or(true, |about| about.is_file() || about.is_dir()) {
            Input::open(file)?;
        }
    }
    Ok(())
}

impl Run<'_> {
    /// Reads one log to its end, or to where reading fails. An input that cannot be opened is an
    /// error. So is one that is not a log, unless there are other inputs.
    fn source(&mut self, file: &Path) -> Result<Source, LabError> {
        let input = Input::open(file)?;
        let (name, len) = (input.name().to_owned(), input.size());
        let zone = self.args.time_zone.clone().unwrap_or(TimeZone::UTC);
        let mut log = match Log::new(input, self.args.format, &zone) {
            Err(LabError::Malformed(what)) if self.args.files.len() > 1 => {
                let error = what.strip_prefix(&format!("{name}: ")).unwrap_or(&what);
                return Ok(Source {
                    error: Some(format!("{error}; it is left out")),
                    name,
                    format: "unknown",
                    statements: 0,
                    skipped: Skipped::default(),
                });
            }
            log => log?,
        };
        let mut event = Event::default();
        let (mut statements, mut turn) = (0u64, 0u32);
        while log.next(&mut event) {
            if self.wanted(&event) {
                let pattern = self.patterns.add(&event);
                statements += 1;
                self.sampled_one_in = self.sampled_one_in.max(event.rate.filter(|&rate| rate > 1));
                if let Some(extract) = &mut self.extract {
                    extract.offer(&self.patterns.list[pattern].id, &event)?;
                }
            }
            turn = turn.wrapping_add(1);
            if turn.is_multiple_of(1024) {
                self.progress.show(&name, log.position(), len, statements);
                if interrupt::requested() {
                    break;
                }
            }
        }
        let error = log.failure().map(|e| {
            format!(
                "reading broke off after {} bytes: {e}; what came before counts",
                log.position()
            )
        });
        Ok(Source {
            name,
            format: match log.format() {
                Format::Slow => "slow",
                Format::General => "general",
            },
            statements,
            skipped: log.skipped(),
            error,
        })
    }

    /// Reads the counters of a server.
    fn server(&mut self, dsn: &Dsn) -> Result<Source, LabError> {
        let args = self.args;
        if args.since.is_some() || args.until.is_some() {
            eprintln!(
                "nfold lab: {dsn} has no times of single statements: --since and --until choose patterns by when they were seen, with all their counts"
            );
        }
        let wanted = schema::RowFilter {
            db: args.db.as_deref(),
            since: args.since,
            until: args.until,
        };
        self.patterns.list = schema::read(dsn, &wanted)?;
        Ok(Source {
            name: dsn.to_string(),
            format: "performance_schema",
            statements: self.patterns.list.iter().map(|pattern| pattern.count).sum(),
            skipped: Skipped::default(),
            error: None,
        })
    }

    fn wanted(&self, event: &Event) -> bool {
        let args = self.args;
        if let Some(since) = args.since
            && event.time_us.is_none_or(|at| at < since)
        {
            return false;
        }
        if let Some(until) = args.until
            && event.time_us.is_none_or(|at| at >= until)
        {
            return false;
        }
        args.db.as_ref().is_none_or(|db| event.db == db.as_bytes())
    }

    fn report(&self, sources: Vec<Source>) -> Report {
        let mut skipped = Skipped::default();
        for source in &sources {
            skipped.add(source.skipped);
        }
        let patterns = &self.patterns.list;
        let ranked = report::rank(
            patterns,
            by(self.args.by, &sources),
            self.args.limit,
            !self.args.no_examples,
        );
        Report {
            schema: report::SCHEMA,
            partial: interrupt::requested() || sources.iter().any(|source| source.error.is_some()),
            by: by(self.args.by, &sources).name(),
            totals: Totals::of(patterns, self.sampled_one_in),
            skipped,
            patterns_left_out: patterns.len() - ranked.len(),
            patterns: ranked,
            sources,
        }
    }
}

/// General logs have no durations, so their patterns are ranked by count.
fn by(wanted: By, sources: &[Source]) -> By {
    if sources.iter().all(|source| source.format == "general") {
        By::Count
    } else {
        wanted
    }
}

fn write(args: &Args, report: &Report) -> Result<(), LabError> {
    if let Some(file) = &args.json {
        put(file, &json(report)?)?;
    }
    if let Some(file) = &args.html {
        put(file, page::render(report).as_bytes())?;
    }
    let taken = [&args.json, &args.html, &args.out]
        .into_iter()
        .flatten()
        .any(|file| file.as_os_str() == "-");
    if !taken {
        put(
            Path::new("-"),
            table::render(report, args.details).as_bytes(),
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
