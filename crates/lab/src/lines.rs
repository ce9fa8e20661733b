//! `nfold lab lines`: which cache lines several processors write and read, by `perf c2c`, where the machine counts such things.
//!
//! It is the cause that no stack and no latch counter shows: a counter that every reader writes (the posts of 2012).

use std::process::{Command, Stdio};

use crate::LabError;

/// For `--help`.
pub const EXAMPLES: &str = "Example:
  nfold lab lines --pid $(pidof mariadbd) --seconds 5

Needs perf and a processor that samples loads and stores (Intel PEBS, AMD IBS, ARM SPE); virtual machines mostly have none of it.";

/// Command line of `nfold lab lines`.
#[derive(clap::Args)]
pub struct Args {
    /// The process
    #[arg(long)]
    pid: u32,
    /// How long to look
    #[arg(long, default_value_t = 5)]
    seconds: u32,
    /// Lines to show
    #[arg(long, default_value_t = 10)]
    top: usize,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), LabError> {
    if !std::path::Path::new(&format!("/proc/{}", args.pid)).exists() {
        return Err(LabError::usage(format!("there is no process {}", args.pid)));
    }
    let directory = std::env::temp_dir().join(format!("nfold-lab-lines-{}", std::process::id()));
    std::fs::create_dir_all(&directory)
        .map_err(LabError::io("cannot make a temporary directory"))?;
    let done = record_and_report(args, &directory.join("c2c.data"));
    let _ = std::fs::remove_dir_all(&directory);
    print!("{}", shorten(&done?, args.top));
    Ok(())
}

fn record_and_report(args: &Args, file: &std::path::Path) -> Result<String, LabError> {
    let recorded = Command::new("perf")
        .args(["c2c", "record", "-o"])
        .arg(file)
        .args([
            "-p",
            &args.pid.to_string(),
            "--",
            "sleep",
            &args.seconds.to_string(),
        ])
        .stdin(Stdio::null())
        .output()
        .map_err(|_| LabError::usage("lines needs perf (Debian: apt-get install linux-perf)"))?;
    if !recorded.status.success() {
        let said = String::from_utf8_lossy(&recorded.stderr).into_owned();
        return Err(LabError::usage(refusal(&said)));
    }
    let report = Command::new("perf")
        .args([
            "c2c",
            "report",
            "--stdio",
            "-NN",
            "-d",
            "tot",
            "-c",
            "pid,iaddr",
            "-i",
        ])
        .arg(file)
        .stdin(Stdio::null())
        .output()
        .map_err(LabError::io("perf c2c report"))?;
    match report.status.success() {
        true => Ok(String::from_utf8_lossy(&report.stdout).into_owned()),
        false => Err(LabError::usage(refusal(&String::from_utf8_lossy(
            &report.stderr,
        )))),
    }
}

/// One line that says why not.
fn refusal(said: &str) -> String {
    let said = said.to_ascii_lowercase();
    if said.contains("permission")
        || said.contains("paranoid")
        || said.contains("operation not permitted")
    {
        return "perf may not record: /proc/sys/kernel/perf_event_paranoid must be lower, or root must ask".into();
    }
    "this machine does not sample loads and stores (perf c2c has no memory events here; virtual machines mostly have none), so shared cache \
     lines cannot be named; `nfold lab stacks` shows latches, and a machine with Intel PEBS, AMD IBS or ARM SPE shows the lines"
        .into()
}

/// The tables of shared lines and of their offsets with symbols, `top` lines of each; perf's own headings stay.
fn shorten(report: &str, top: usize) -> String {
    let mut out = String::new();
    let (mut shown, mut seen) = (false, 0);
    for line in report.lines() {
        if line.contains("Shared Data Cache Line Table")
            || line.contains("Shared Cache Line Distribution Pareto")
        {
            (shown, seen) = (true, 0);
        }
        let is_row = !line.starts_with('#')
            && !line.trim().is_empty()
            && line.trim_start().starts_with(|c: char| c.is_ascii_digit());
        if is_row {
            seen += 1;
        }
        if shown && (!is_row || seen <= top) {
            out.push_str(line);
            out.push('\n');
        }
    }
    if out.is_empty() {
        "no cache line was seen shared\n".into()
    } else {
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_one_line() {
        for said in [
            "failed: memory events not supported",
            "Permission denied",
            "",
            "event syntax error: 'cpu/mem-loads/'\n  line two",
        ] {
            let text = refusal(said);
            assert!(!text.contains('\n') && text.len() > 20, "{text}");
        }
        assert!(refusal("Operation not permitted").contains("paranoid"));
    }

    #[test]
    fn tables_are_cut() {
        let rows: String = (0..30)
            .map(|i| format!("      {i}  0x7f00  10 symbol_{i}\n"))
            .collect();
        let report = format!(
            "=====\nTrace Event Information\n  1 x\n       Shared Data Cache Line Table\n#\n{rows}"
        );
        let text = shorten(&report, 5);
        assert!(
            text.contains("symbol_4") && !text.contains("symbol_5"),
            "{text}"
        );
        assert!(!text.contains("Trace Event"));
        assert!(shorten("", 5).contains("no cache line"));
    }
}
