//! The file of statements, held in memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use nfold_sql::lexer::LexMode;

use super::writes::writes;
use crate::LabError;
use crate::statement::Statement;

/// One statement of the file.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    start: usize,
    len: usize,
    /// Its line of the file, from 1.
    pub line: u64,
    pub time_us: Option<i64>,
    /// The connection that ran it, or 0.
    pub connection: u64,
    /// Number of its database in [`Workload::dbs`].
    pub db: Option<u16>,
    pub writes: bool,
}

/// All of them.
#[derive(Debug, Default)]
pub struct Workload {
    texts: Vec<u8>,
    pub items: Vec<Item>,
    pub dbs: Vec<String>,
    /// Lines that are no statement.
    pub broken: u64,
    /// The first of them, and what is wrong with it.
    pub first_broken: Option<String>,
    pub left_out: u64,
}

/// What to do with statements that write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    Refuse,
    LeaveOut,
    Run,
}

impl Workload {
    /// `-` is standard input.
    pub fn open(path: &Path, policy: Writes, mode: LexMode) -> Result<Workload, LabError> {
        let name = path.display().to_string();
        let failed = LabError::io(format!("cannot read {name}"));
        let reader: Box<dyn BufRead> = if name == "-" {
            Box::new(BufReader::new(io::stdin()))
        } else {
            match File::open(path) {
                Ok(file) => Box::new(BufReader::with_capacity(1 << 20, file)),
                Err(e) => return Err(failed(e)),
            }
        };
        Workload::read(reader, &name, policy, mode)
    }

    pub fn read(
        mut reader: impl BufRead,
        name: &str,
        policy: Writes,
        mode: LexMode,
    ) -> Result<Workload, LabError> {
        let mut work = Workload::default();
        let mut line = Vec::new();
        let (mut number, mut refused, mut first_refused) = (0, 0u64, None);
        loop {
            line.clear();
            let n = reader
                .read_until(b'\n', &mut line)
                .map_err(LabError::io(format!("cannot read {name}")))?;
            if n == 0 {
                break;
            }
            number += 1;
            if line.trim_ascii().is_empty() {
                continue;
            }
            let read = serde_json::from_slice::<Statement>(&line).map_err(|e| e.to_string());
            let text = read.as_ref().ok().and_then(Statement::bytes);
            let (Ok(statement), Some(text)) = (&read, text) else {
                work.broken += 1;
                let why = read
                    .err()
                    .unwrap_or_else(|| "it has neither text nor text_hex".into());
                work.first_broken
                    .get_or_insert_with(|| format!("line {number}: {why}"));
                continue;
            };
            let writes = writes(&text, mode);
            if writes && policy != Writes::Run {
                refused += 1;
                first_refused.get_or_insert_with(|| {
                    (
                        number,
                        String::from_utf8_lossy(&text[..text.len().min(80)]).into_owned(),
                    )
                });
                continue;
            }
            work.push(statement, &text, number, writes);
        }
        if let (Some((line, text)), Writes::Refuse) = (first_refused, policy) {
            let text: String = text
                .chars()
                .map(|c| if c.is_control() { ' ' } else { c })
                .collect();
            return Err(LabError::Usage(format!(
                "{name}: {refused} statements write or may write (line {line}: {text}): --allow-writes runs them, --reads-only leaves them out"
            )));
        }
        work.left_out = refused;
        if work.items.is_empty() {
            let why = work
                .first_broken
                .as_ref()
                .map_or(String::new(), |why| format!(" ({why})"));
            return Err(LabError::Usage(format!(
                "{name} has no statement to replay{why}"
            )));
        }
        Ok(work)
    }

    fn push(&mut self, statement: &Statement, text: &[u8], line: u64, writes: bool) {
        let db = statement
            .db
            .as_ref()
            .filter(|db| !db.is_empty())
            .and_then(|db| {
                let at = self
                    .dbs
                    .iter()
                    .position(|known| known == db)
                    .unwrap_or_else(|| {
                        self.dbs.push(db.clone());
                        self.dbs.len() - 1
                    });
                u16::try_from(at).ok()
            });
        self.items.push(Item {
            start: self.texts.len(),
            len: text.len(),
            line,
            time_us: statement.time_us,
            connection: statement.connection.unwrap_or(0),
            db,
            writes,
        });
        self.texts.extend_from_slice(text);
    }

    pub fn text(&self, item: &Item) -> &[u8] {
        &self.texts[item.start..item.start + item.len]
    }

    /// Puts the statements into the order in which they began. False where one has no time.
    pub fn sort_by_time(&mut self) -> bool {
        self.items.sort_by_key(|item| item.time_us);
        self.items.iter().all(|item| item.time_us.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, policy: Writes) -> Result<Workload, String> {
        Workload::read(text.as_bytes(), "w.jsonl", policy, LexMode::default())
            .map_err(|e| e.to_string())
    }

    const FILE: &str = "{\"text\":\"SELECT 1\",\"db\":\"a\",\"time_us\":5}\n\nnonsense\n{\"text_hex\":\"53454c45435420ff\",\"db\":\"b\",\"time_us\":3}\n{\"db\":\"x\"}\n{\"text\":\"DELETE FROM t\",\"db\":\"a\"}\n";

    #[test]
    fn lines_that_are_no_statements_are_counted() {
        let mut work = read(FILE, Writes::Run).expect("three statements");
        assert_eq!(
            (work.items.len(), work.broken, work.left_out, work.dbs.len()),
            (3, 2, 0, 2)
        );
        assert!(
            work.first_broken
                .as_ref()
                .is_some_and(|why| why.starts_with("line 3: "))
        );
        assert!(!work.sort_by_time());
        let texts: Vec<_> = work
            .items
            .iter()
            .map(|item| (work.text(item).to_vec(), item.line, item.writes))
            .collect();
        assert_eq!(
            texts,
            [
                (b"DELETE FROM t".to_vec(), 6, true),
                (b"SELECT \xff".to_vec(), 4, false),
                (b"SELECT 1".to_vec(), 1, false)
            ]
        );
    }

    #[test]
    fn writes_are_refused_or_left_out() {
        let message = read(FILE, Writes::Refuse).expect_err("it deletes");
        assert!(
            message.contains("1 statements write")
                && message.contains("line 6: DELETE FROM t")
                && message.contains("--allow-writes"),
            "{message}"
        );
        let work = read(FILE, Writes::LeaveOut).expect("two statements");
        assert_eq!((work.items.len(), work.left_out), (2, 1));
    }

    #[test]
    fn nothing_to_replay_is_one_clear_line() {
        for text in ["", "\n", "nonsense", "{\"text\":\"DELETE FROM t\"}"] {
            let message = read(text, Writes::LeaveOut).expect_err("nothing is left");
            assert!(
                message.starts_with("w.jsonl has no statement to replay"),
                "{message}"
            );
        }
    }
}
