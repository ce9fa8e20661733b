//! Files of results, and standard output.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::LabError;

/// Reads a file that another command of the lab has written with `--json`: `schema` is the name and version that it begins with, `by` the
/// command.
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

/// Writes a whole file; `-` is standard output, whose reader may have gone.
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
