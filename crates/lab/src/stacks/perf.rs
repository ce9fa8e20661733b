//! On-processor stacks from `perf`, if it is installed and permitted.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use crate::{LabError, interrupt};

/// A recording in progress.
pub struct Recording {
    child: Child,
    file: PathBuf,
}

/// Starts recording `pid` for `seconds`, `rate` times per second. `None` if perf is not installed
/// or not permitted.
pub fn start(pid: u32, seconds: f64, rate: u32) -> Option<Recording> {
    let file = std::env::temp_dir().join(format!("nfold-lab-{}.perf", std::process::id()));
    let mut record = Command::new("perf");
    record
        .args([
            "record",
            "-q",
            "-e",
            "cpu-clock",
            "--call-graph",
            "dwarf,16384",
            "-F",
            &rate.to_string(),
            "-p",
            &pid.to_string(),
        ])
        .arg("-o")
        .arg(&file)
        .args(["--", "sleep", &seconds.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let child = interrupt::spawn(&mut record).ok()?;
    Some(Recording { child, file })
}

impl Recording {
    /// Waits until the recording ends, or ends it after Ctrl-C. Returns the counted stacks, roots
    /// first, or `None` if perf failed, as it does without permission.
    pub fn finish(mut self) -> Result<Option<HashMap<Vec<Arc<str>>, u64>>, LabError> {
        let well = interrupt::wait(&mut self.child).map_err(LabError::io("perf record"))?;
        let stacks = if well { script(&self.file)? } else { None };
        let _ = std::fs::remove_file(&self.file);
        Ok(stacks)
    }
}

fn script(file: &Path) -> Result<Option<HashMap<Vec<Arc<str>>, u64>>, LabError> {
    let done = Command::new("perf")
        .args(["script", "--no-inline", "-F", "ip,sym", "-i"])
        .arg(file)
        .stdin(Stdio::null())
        .output()
        .map_err(LabError::io("perf script"))?;
    let stacks = read(&String::from_utf8_lossy(&done.stdout));
    Ok((done.status.success() && !stacks.is_empty()).then_some(stacks))
}

/// Parses blocks of `address name` lines, leaves first, separated by empty lines.
fn read(text: &str) -> HashMap<Vec<Arc<str>>, u64> {
    let mut stacks = HashMap::new();
    let mut names: HashMap<&str, Arc<str>> = HashMap::new();
    let mut frames: Vec<Arc<str>> = Vec::new();
    for line in text.lines().chain([""]) {
        match line.trim().split_once(' ') {
            Some((address, name)) if u64::from_str_radix(address, 16).is_ok() => {
                frames.push(
                    names
                        .entry(name)
                        .or_insert_with(|| clean(name).into())
                        .clone(),
                );
            }
            _ if line.trim().is_empty() && !frames.is_empty() => {
                frames.reverse();
                *stacks.entry(std::mem::take(&mut frames)).or_insert(0) += 1;
            }
            _ => {}
        }
    }
    stacks
}

/// Removes offsets, parameters and hashes from a name.
fn clean(name: &str) -> String {
    let name = name.split("@@").next().unwrap_or(name);
    let name = match name.find('(') {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    };
    match name.rsplit_once("::h") {
        Some((head, hash)) if hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()) => {
            head.to_owned()
        }
        _ => name.replace(';', ":"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn perf_script_blocks_are_parsed() {
        let text = "\n    55d0 inner::h0123456789abcdef\n    55d1 outer(int, char*)\n\n    55d0 inner::h0123456789abcdef\n    55d1 outer(int, char*)\n\nffff [unknown]\n";
        let stacks = read(text);
        let key = |names: &[&str]| {
            names
                .iter()
                .map(|n| Arc::from(*n))
                .collect::<Vec<Arc<str>>>()
        };
        assert_eq!(stacks.get(&key(&["outer", "inner"])), Some(&2));
        assert_eq!(stacks.get(&key(&["[unknown]"])), Some(&1));
        assert_eq!(read("").len(), 0);
    }
}
