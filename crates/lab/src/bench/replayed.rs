//! A file of statements as a workload: every connection goes through all of them, from a place of its own, again and again.

use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;

use super::result::WorkloadInfo;
use nfold_sql::lexer::LexMode;

use crate::LabError;
use crate::client::Command;
use crate::client::drive::{Next, Source};
use crate::statement::Statement;

/// The statements of a file.
pub struct Replayed {
    name: String,
    texts: Arc<Vec<Vec<u8>>>,
}

impl Replayed {
    /// Reads a file of `digest --extract`. Statements that write are refused unless `allow_writes`.
    pub fn read(path: &Path, allow_writes: bool) -> Result<Replayed, LabError> {
        let cannot = || LabError::io(format!("cannot read {}", path.display()));
        let file = std::io::BufReader::new(std::fs::File::open(path).map_err(cannot())?);
        let mut texts = Vec::new();
        for (number, line) in file.lines().enumerate() {
            let line = line.map_err(cannot())?;
            if line.trim().is_empty() {
                continue;
            }
            let text = serde_json::from_str::<Statement>(&line)
                .ok()
                .and_then(|s| s.bytes());
            let Some(text) = text else {
                return Err(LabError::malformed(format!(
                    "{}:{}: no statement of `digest --extract`",
                    path.display(),
                    number + 1
                )));
            };
            if !allow_writes && crate::replay::writes(&text, LexMode::default()) {
                return Err(LabError::usage(format!(
                    "{}:{}: the statement writes, or may write; --allow-writes runs it",
                    path.display(),
                    number + 1
                )));
            }
            texts.push(text);
        }
        if texts.is_empty() {
            return Err(LabError::usage(format!(
                "{} holds no statement",
                path.display()
            )));
        }
        let name = path
            .file_name()
            .map_or_else(|| "replay".into(), |n| n.to_string_lossy().into_owned());
        Ok(Replayed {
            name,
            texts: Arc::new(texts),
        })
    }

    pub fn info(&self) -> WorkloadInfo {
        let first = String::from_utf8_lossy(&self.texts[0]);
        let mut statement: String = first.chars().take(200).collect();
        if statement.len() < first.len() {
            statement.push('…');
        }
        WorkloadInfo {
            name: self.name.clone(),
            about: format!("{} statements from a file", self.texts.len()),
            statement,
        }
    }

    /// Connection `number` of `of` begins at its share of the file.
    pub fn source(&self, number: usize, of: usize) -> Box<dyn Source> {
        Box::new(Round {
            texts: self.texts.clone(),
            at: number * self.texts.len() / of.max(1),
        })
    }
}

struct Round {
    texts: Arc<Vec<Vec<u8>>>,
    at: usize,
}

impl Source for Round {
    fn next(&mut self, command: &mut Command) -> Next {
        command.text().extend_from_slice(&self.texts[self.at]);
        self.at = if self.at + 1 < self.texts.len() {
            self.at + 1
        } else {
            0
        };
        Next::Send
    }
}
