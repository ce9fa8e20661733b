//! Files of results, and standard output.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::LabError;

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
