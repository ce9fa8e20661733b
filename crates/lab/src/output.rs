//! Result files, standard output, and unnamed temporary files.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

use crate::LabError;

/// Reads a JSON file that another command of the lab wrote with `--json`. `schema` is the expected
/// schema name and version, `by` the command.
pub fn read<T: serde::de::DeserializeOwned>(
    file: &Path,
    schema: &str,
    by: &str,
) -> Result<T, LabError> {
    let bytes =
        std::fs::read(file).map_err(LabError::io(format!("cannot read {}", file.display())))?;
    let none = |why: String| {
        LabError::malformed(format!("{} is no file of `{by}`: {why}", file.display()))
    };
    let value: serde_json::Value =
        serde_json::from_slice(&bytes).map_err(|e| none(e.to_string()))?;
    match value.get("schema").and_then(|s| s.as_str()) {
        Some(found) if found == schema => {}
        Some(other) => return Err(none(format!("its schema is {other}, not {schema}"))),
        None => return Err(none(format!("it does not say that its schema is {schema}"))),
    }
    serde_json::from_value(value).map_err(|e| none(e.to_string()))
}

/// Writes a whole file; `-` is standard output, where a closed pipe is not an error.
pub fn put(file: &Path, bytes: &[u8]) -> Result<(), LabError> {
    let written = if file.as_os_str() == "-" {
        match io::stdout().lock().write_all(bytes) {
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => other,
        }
    } else {
        File::create(file).and_then(|file| {
            let mut out = BufWriter::new(file);
            out.write_all(bytes)?;
            out.flush()
        })
    };
    written.map_err(LabError::io(format!("cannot write {}", file.display())))
}

/// Prints lines on standard output.
pub fn say(lines: &str) -> Result<(), LabError> {
    put(Path::new("-"), lines.as_bytes())
}

/// Encodes a result in the format of the lab's JSON files.
pub fn json(value: &impl Serialize) -> Result<Vec<u8>, LabError> {
    let mut text =
        serde_json::to_vec_pretty(value).map_err(|e| LabError::malformed(e.to_string()))?;
    text.push(b'\n');
    Ok(text)
}

/// The `--json` option of commands whose result is text or JSON.
#[derive(Debug, Default, clap::Args)]
pub struct JsonOption {
    /// Write all results as JSON (schema: docs/lab.md); - is standard output, instead of the text
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl JsonOption {
    /// Whether the JSON goes to standard output.
    pub fn takes_output(&self) -> bool {
        self.file().is_some_and(|file| file.as_os_str() == "-")
    }

    /// The file, if `--json` is given.
    pub fn file(&self) -> Option<&Path> {
        self.json.as_deref()
    }

    /// Writes a result: as JSON if requested, and as text unless the JSON goes to standard output.
    pub fn write(&self, report: &impl Serialize, lines: &str) -> Result<(), LabError> {
        if let Some(file) = self.file() {
            put(file, &json(report)?)?;
        }
        match self.takes_output() {
            true => Ok(()),
            false => say(lines),
        }
    }
}

/// Creates a file in `directory` without a name. It disappears with its last user, even if the
/// program is killed.
pub fn nameless(directory: &Path) -> io::Result<File> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = directory.join(format!(".nfold-lab-{}-{number}", std::process::id()));
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// Escapes a text for HTML and SVG.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // Not allowed in XML, and useless in HTML.
            c if c.is_control() && !matches!(c, '\n' | '\t') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
