//! `digest --extract`: writes the statements of some patterns to a file of [`Statement`]s, in the
//! order of the logs.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::LabError;
use crate::log::Event;
use crate::statement::Statement;

/// The shortest accepted prefix of an id.
const MIN_PREFIX: usize = 4;

/// The output file, and the patterns that it receives.
pub struct Extract {
    name: String,
    out: Box<dyn Write>,
    /// Each wanted id or prefix, and the id that it first matched.
    wanted: Vec<(String, Option<String>)>,
    all: bool,
    written: u64,
    /// The number of statements without their end, which cannot be executed.
    cut: u64,
}

impl Extract {
    /// Creates the file; `-` is standard output. `ids` contains ids, prefixes of ids, or `all`.
    pub fn create(path: &Path, ids: &[String]) -> Result<Extract, LabError> {
        for id in ids.iter().filter(|id| *id != "all") {
            if id.len() < MIN_PREFIX || id.len() > 16 || !id.bytes().all(|b| b.is_ascii_hexdigit())
            {
                return Err(LabError::Usage(format!(
                    "--extract takes an id of the list, at least its first {MIN_PREFIX} digits, or all; {id:?} is neither"
                )));
            }
        }
        let name = path.display().to_string();
        let out: Box<dyn Write> = if name == "-" {
            Box::new(BufWriter::new(io::stdout()))
        } else {
            Box::new(BufWriter::with_capacity(
                1 << 20,
                File::create(path).map_err(LabError::io(format!("cannot write {name}")))?,
            ))
        };
        Ok(Extract {
            name,
            out,
            wanted: ids
                .iter()
                .map(|id| (id.to_ascii_lowercase(), None))
                .collect(),
            all: ids.iter().any(|id| id == "all"),
            written: 0,
            cut: 0,
        })
    }

    /// Writes the event if its pattern is wanted.
    pub fn offer(&mut self, id: &str, event: &Event) -> Result<(), LabError> {
        if event.command || !self.wants(id)? {
            return Ok(());
        }
        if event.cut {
            self.cut += 1;
            return Ok(());
        }
        let text =
            |bytes: &[u8]| (!bytes.is_empty()).then(|| String::from_utf8_lossy(bytes).into_owned());
        let mut statement = Statement {
            pattern: Some(id.to_owned()),
            db: text(&event.db),
            user: text(&event.user),
            host: text(&event.host),
            connection: event.connection,
            time_us: event.time_us,
            duration_us: event.duration_us,
            lock_us: event.lock_us,
            rows_sent: event.rows_sent,
            rows_examined: event.rows_examined,
            error: event.error,
            ..Statement::default()
        };
        statement.set_text(&event.text);
        let doing = || LabError::io(format!("cannot write {}", self.name));
        serde_json::to_writer(&mut self.out, &statement)
            .map_err(io::Error::from)
            .map_err(doing())?;
        self.out.write_all(b"\n").map_err(doing())?;
        self.written += 1;
        Ok(())
    }

    fn wants(&mut self, id: &str) -> Result<bool, LabError> {
        for (wanted, met) in &mut self.wanted {
            if !id.starts_with(wanted.as_str()) {
                continue;
            }
            match met {
                Some(met) if met != id => {
                    return Err(LabError::Usage(format!(
                        "--extract {wanted} means both {met} and {id}: name more of its digits"
                    )));
                }
                Some(_) => {}
                None => *met = Some(id.to_owned()),
            }
            return Ok(true);
        }
        Ok(self.all)
    }

    /// Describes the file written. An id without any statement is an error.
    pub fn finish(mut self) -> Result<String, LabError> {
        self.out
            .flush()
            .map_err(LabError::io(format!("cannot write {}", self.name)))?;
        let missing = self
            .wanted
            .iter()
            .find(|(wanted, met)| met.is_none() && wanted != "all");
        if let Some((wanted, _)) = missing
            && !crate::interrupt::requested()
        {
            return Err(LabError::Usage(format!(
                "no statement has the id {wanted}: nfold lab digest without --extract lists the ids"
            )));
        }
        let cut = if self.cut > 0 {
            format!(", {} left out because their end is missing", self.cut)
        } else {
            String::new()
        };
        Ok(format!(
            "{} statements written to {}{cut}",
            self.written, self.name
        ))
    }
}
