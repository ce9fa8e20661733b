//! `nfold lab plan`: where EXPLAIN ANALYZE spent its time, and where its estimates were wrong.

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::LabError;
use crate::client::Connection;
use crate::digest::table::duration;
use crate::dsn::Dsn;
use crate::output::{JsonOption, put};

mod page;
mod tree;

use tree::{Node, Report};

pub const HELP: &str = "Examples:
  nfold lab plan --dsn mysql://app@127.0.0.1/shop query.sql --html plan.html
  nfold lab plan --dsn mysql://app@127.0.0.1/shop -          # standard input
  nfold lab plan --explained explain.txt --html plan.html    # the text of an EXPLAIN ANALYZE

The statement is executed. Its rows are not sent.";

/// Operations in each list.
const LISTED: usize = 8;

/// The command line of `nfold lab plan`.
#[derive(clap::Args)]
pub struct Args {
    /// A file with one SELECT; - is standard input
    #[arg(
        value_name = "FILE",
        required_unless_present = "explained",
        requires = "dsn"
    )]
    statement: Option<PathBuf>,
    /// The server (mysql://user@host:port/db): MySQL 8.0.18 or later, or Nfold
    #[arg(long, value_name = "DSN")]
    dsn: Option<String>,
    /// Instead of a statement: what EXPLAIN ANALYZE has printed
    #[arg(long, value_name = "FILE", conflicts_with_all = ["statement", "dsn"])]
    explained: Option<PathBuf>,
    /// Write an HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    json: JsonOption,
}

pub fn run(args: &Args) -> Result<(), LabError> {
    let report = match (&args.statement, &args.dsn, &args.explained) {
        (_, _, Some(file)) => Report::new(&text_of(file)?, None, None)?,
        (Some(file), Some(dsn), _) => measured(&text_of(file)?, dsn)?,
        _ => return Err(LabError::usage("a statement needs --dsn")),
    };
    if let Some(file) = &args.html {
        put(file, page::render(&report).as_bytes())?;
    }
    args.json.write(&report, &summary(&report))
}

/// Runs EXPLAIN ANALYZE.
fn measured(statement: &str, dsn: &str) -> Result<Report, LabError> {
    let statement = statement.trim().trim_end_matches(';').trim();
    let mut connection = Connection::open(&Dsn::open(dsn)?)?;
    let version = connection.server_version().to_string();
    let result = connection.query(&format!("EXPLAIN ANALYZE {statement}"));
    let result = result.map_err(|e| match e {
        LabError::Server { code: 1064, message } => LabError::usage(format!(
            "this server does not explain the statement ({version}; EXPLAIN ANALYZE is in MySQL 8.0.18 and later): {message}"
        )),
        other => other,
    })?;
    let text = result.text(0, 0).unwrap_or_default();
    Report::new(&text, Some(statement), Some(&version))
}

fn text_of(file: &Path) -> Result<String, LabError> {
    let mut bytes = Vec::new();
    let read = match file.as_os_str() == "-" {
        true => std::io::stdin().lock().read_to_end(&mut bytes),
        false => std::fs::File::open(file).and_then(|mut f| f.read_to_end(&mut bytes)),
    };
    read.map_err(LabError::io(format!("cannot read {}", file.display())))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The operations that took the most time themselves, the most expensive first.
fn expensive(report: &Report) -> Vec<&Node> {
    let mut nodes: Vec<&Node> = report.operations.iter().collect();
    nodes.retain(|node| node.own_ms > 0.0);
    nodes.sort_by(|a, b| b.own_ms.total_cmp(&a.own_ms));
    nodes.truncate(LISTED);
    nodes
}

/// The operations at which an estimate goes wrong, the worst first.
fn misjudged(report: &Report) -> Vec<&Node> {
    let mut nodes: Vec<&Node> = report.operations.iter().filter(|n| n.origin).collect();
    nodes.sort_by(|a, b| b.factor.total_cmp(&a.factor));
    nodes.truncate(LISTED);
    nodes
}

fn summary(report: &Report) -> String {
    let mut out = format!(
        "{} in {} operations\n",
        duration(report.total_ms / 1e3),
        report.operations.len()
    );
    out += "\nWhere the time went:\n";
    for node in expensive(report) {
        out += &format!(
            "  {:>9}  {:>5.1} %  {}\n",
            duration(node.own_ms / 1e3),
            report.share(node) * 100.0,
            node.operation
        );
    }
    let misjudged = misjudged(report);
    if !misjudged.is_empty() {
        out += "\nWhere estimates went wrong:\n";
    }
    for node in misjudged {
        let (expected, found) = (node.expected_rows.unwrap_or(0.0), node.rows.unwrap_or(0.0));
        out += &format!(
            "  {expected:>9.1} rows expected, {found:>9.1} found  {}\n",
            node.operation
        );
    }
    out
}
