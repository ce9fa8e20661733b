//! `nfold lab report`: renders the JSON of `bench` as one self-contained HTML file, and as
//! pictures.
//!
//! Charts are SVG in the page. With `--png`, an installed Chromium renders each of them, so no
//! drawing library is needed.

mod chart;
mod page;
mod png;
mod profile;

use std::path::PathBuf;

use crate::LabError;
use crate::bench::result::Report;
use crate::output::say;

/// For `--help`.
pub const EXAMPLES: &str = "Examples:
  nfold lab bench --start-nfold --start-mariadb --clients 1,8,64 --json r.json && nfold lab report r.json --out r.html
  nfold lab report r.json cores.json --title 'IN lists, 24 cores' --profile nfold=stacks.json --png pictures --out r.html";

/// The command line of `nfold lab report`.
#[derive(clap::Args)]
pub struct Args {
    /// Files of `bench --json`
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The page to write
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    out: PathBuf,
    /// The title of the page
    #[arg(long, default_value = "How it scales")]
    title: String,
    /// A profile of a server (`stacks --json`), with the server's name; may be repeated
    #[arg(long, value_name = "NAME=FILE")]
    profile: Vec<String>,
    /// Also write each chart as a PNG into this directory (requires Chromium)
    #[arg(long, value_name = "DIRECTORY")]
    png: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), LabError> {
    let reports = args
        .files
        .iter()
        .map(|f| Report::read(f))
        .collect::<Result<Vec<_>, _>>()?;
    let mut profiles = Vec::new();
    for pair in &args.profile {
        let Some((name, path)) = pair.split_once('=') else {
            return Err(LabError::usage(format!("--profile {pair:?}: NAME=FILE")));
        };
        profiles.push(profile::Profile::read(name, path.as_ref())?);
    }
    let page = page::build(&args.title, &reports, &profiles);
    std::fs::write(&args.out, &page.html)
        .map_err(LabError::io(format!("cannot write {}", args.out.display())))?;
    say(&format!(
        "{}: {} charts\n",
        args.out.display(),
        page.charts.len()
    ))?;
    if let Some(directory) = &args.png {
        png::write(&page.charts, directory)?;
    }
    Ok(())
}
