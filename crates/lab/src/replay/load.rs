//! Reads the file of statements: once to survey its contents, and again during the replay, in
//! memory that does not grow with the file.
//!
//! # Picture
//! ```text
//! w.jsonl ── survey: counts, databases, templates ──▶ Workload ── small: one Chunk in memory
//!    └── (standard input, a pipe: copied to an unnamed file) ──── large: Again, reads it once per
//!    round
//! ```

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use nfold_sql::lexer::LexMode;
use rustc_hash::FxHashMap;

use super::chunk::{Chunk, Item};
use super::prepare::Templates;
use super::writes::writes;
use crate::output::nameless;
use crate::progress::Progress;
use crate::statement::Statement;
use crate::{LabError, interrupt};

/// Files whose statements take at most this much memory are kept in memory. Larger ones are read
/// again.
const KEEP: usize = 32 << 20;
/// A longer line is not a statement: a text has at most 64 MiB, in hexadecimal 128.
const MAX_LINE: usize = 160 << 20;
/// The most databases that are distinguished.
const MAX_DBS: usize = 1 << 16;

/// How to read the file.
#[derive(Clone, Copy, Debug)]
pub struct ReadOptions {
    pub policy: Writes,
    pub mode: LexMode,
    /// Whether to find templates.
    pub prepared: bool,
    /// The most memory in bytes for which the statements are kept.
    pub keep: usize,
}

impl ReadOptions {
    pub fn new(policy: Writes, prepared: bool) -> ReadOptions {
        ReadOptions {
            policy,
            mode: LexMode::default(),
            prepared,
            keep: KEEP,
        }
    }
}

/// The treatment of statements that write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    Refuse,
    LeaveOut,
    Run,
}

/// The contents of the file.
#[derive(Debug)]
pub struct Workload {
    name: String,
    how: ReadOptions,
    file: File,
    /// All statements, if they take little memory.
    pub kept: Option<Arc<Chunk>>,
    pub statements: u64,
    pub dbs: Vec<String>,
    by_db: FxHashMap<String, u16>,
    pub templates: Templates,
    /// The statements that cannot be prepared although that was requested.
    pub sent_as_text: u64,
    /// The start times of the first and the last statement. `None` if one of all statements has no
    /// time.
    pub times_us: Option<(i64, i64)>,
    /// The number of lines that are not statements.
    pub broken: u64,
    /// The first broken one, and the reason.
    pub first_broken: Option<String>,
    pub left_out: u64,
}

impl Workload {
    /// Opens a file; `-` is standard input.
    pub fn open(
        path: &Path,
        how: ReadOptions,
        progress: &mut Progress,
    ) -> Result<Workload, LabError> {
        let name = path.display().to_string();
        let cannot = || LabError::io(format!("cannot read {name}"));
        if name == "-" {
            return Workload::spooled(io::stdin(), name, how, progress);
        }
        let file = File::open(path).map_err(cannot())?;
        let about = file.metadata().map_err(cannot())?;
        if about.is_dir() {
            return Err(LabError::usage(format!("{name} is a directory")));
        }
        match about.is_file() {
            true => Workload::survey(file, name, how, Some(about.len()), progress),
            false => Workload::spooled(file, name, how, progress),
        }
    }

    /// Copies an input that can be read only once.
    fn spooled(
        mut from: impl Read,
        name: String,
        how: ReadOptions,
        progress: &mut Progress,
    ) -> Result<Workload, LabError> {
        let mut file = temporary()?;
        io::copy(&mut from, &mut file).map_err(LabError::io(format!(
            "cannot copy {name} to a temporary file"
        )))?;
        Workload::survey(file, name, how, None, progress)
    }

    fn survey(
        file: File,
        name: String,
        how: ReadOptions,
        len: Option<u64>,
        progress: &mut Progress,
    ) -> Result<Workload, LabError> {
        let mut work = Workload {
            name,
            how,
            file,
            kept: None,
            statements: 0,
            dbs: Vec::new(),
            by_db: FxHashMap::default(),
            templates: Templates::default(),
            sent_as_text: 0,
            times_us: None,
            broken: 0,
            first_broken: None,
            left_out: 0,
        };
        let mut lines = work.lines()?;
        let mut chunk = Chunk::default();
        let (mut keeping, mut untimed, mut first_refused) = (true, false, None);
        let (mut first, mut last) = (i64::MAX, i64::MIN);
        while let Some(line) = lines.next()? {
            match line {
                Line::Broken(why) => {
                    work.broken += 1;
                    let number = lines.number;
                    work.first_broken
                        .get_or_insert_with(|| format!("line {number}: {why}"));
                }
                Line::LeftOut(text) => {
                    work.left_out += 1;
                    first_refused.get_or_insert_with(|| (lines.number, beginning(&text)));
                }
                Line::Statement {
                    statement,
                    text,
                    writes,
                } => {
                    let mut item = Item::new(work.statements, lines.number);
                    work.fill(&mut item, &statement, writes);
                    untimed |= statement.time_us.is_none();
                    (first, last) = (first.min(item.time_us), last.max(item.time_us));
                    if how.prepared {
                        item.execution = work.templates.add(&text, how.mode, &mut chunk.store);
                        work.sent_as_text += u64::from(item.execution.is_none());
                    }
                    work.statements += 1;
                    chunk.push(item, &text);
                    keeping &= chunk.size() <= how.keep;
                    if !keeping {
                        chunk = Chunk::default();
                    }
                }
            }
            progress.show(&work.name, lines.read, len, work.statements);
            if lines.number.is_multiple_of(1024) && interrupt::requested() {
                break;
            }
        }
        if let (Some((line, text)), Writes::Refuse) = (first_refused, how.policy) {
            return Err(LabError::Usage(format!(
                "{}: {} statements write or may write (line {line}: {text}): --allow-writes runs them, --reads-only leaves them out",
                work.name, work.left_out
            )));
        }
        if work.statements == 0 && !interrupt::requested() {
            let why = work
                .first_broken
                .as_ref()
                .map_or(String::new(), |why| format!(" ({why})"));
            return Err(LabError::Usage(format!(
                "{} has no statement of `digest --extract`{why}",
                work.name
            )));
        }
        work.times_us = (!untimed).then_some((first, last));
        work.kept = keeping.then(|| Arc::new(chunk));
        Ok(work)
    }

    /// Sets all fields of an item but its text. A new database gets an index.
    fn fill(&mut self, item: &mut Item, statement: &Statement, writes: bool) {
        item.time_us = statement.time_us.unwrap_or(0);
        item.connection = statement.connection.unwrap_or(0);
        item.writes = writes;
        let Some(db) = statement.db.as_ref().filter(|db| !db.is_empty()) else {
            return;
        };
        item.db = self.by_db.get(db).copied();
        if item.db.is_none() && self.dbs.len() < MAX_DBS {
            item.db = Some(self.dbs.len() as u16);
            self.by_db.insert(db.clone(), self.dbs.len() as u16);
            self.dbs.push(db.clone());
        }
    }

    /// Sorts the statements in memory by their start time.
    pub fn sort_by_time(&mut self) {
        if let Some(chunk) = self.kept.as_mut().and_then(Arc::get_mut) {
            chunk.items.sort_by_key(|item| item.time_us);
        }
    }

    fn lines(&self) -> Result<Lines, LabError> {
        let cannot = LabError::io(format!("cannot read {}", self.name));
        let at = At {
            file: self.file.try_clone().map_err(cannot)?,
            offset: 0,
        };
        Ok(Lines {
            input: BufReader::with_capacity(256 << 10, at),
            name: self.name.clone(),
            how: self.how,
            line: Vec::new(),
            number: 0,
            read: 0,
        })
    }

    /// Starts reading the statements again.
    pub fn again(&self) -> Result<Again<'_>, LabError> {
        Ok(Again {
            work: self,
            lines: self.lines()?,
            number: 0,
        })
    }
}

/// The statements of a file, read again as in the survey.
pub struct Again<'a> {
    work: &'a Workload,
    lines: Lines,
    number: u64,
}

impl Again<'_> {
    /// Appends the next statement. Returns false if there are no more. Statements added to the file
    /// since the survey are ignored.
    pub fn next(&mut self, chunk: &mut Chunk) -> Result<bool, LabError> {
        while self.number < self.work.statements {
            let Some(line) = self.lines.next()? else {
                return Err(LabError::malformed(format!(
                    "{} has become shorter while it was played",
                    self.work.name
                )));
            };
            let Line::Statement {
                statement,
                text,
                writes,
            } = line
            else {
                continue;
            };
            let work = self.work;
            let mut item = Item::new(self.number, self.lines.number);
            item.time_us = statement.time_us.unwrap_or(0);
            item.connection = statement.connection.unwrap_or(0);
            item.writes = writes;
            item.db = statement.db.and_then(|db| work.by_db.get(&db).copied());
            if work.how.prepared {
                item.execution = work.templates.find(&text, work.how.mode, &mut chunk.store);
            }
            chunk.push(item, &text);
            self.number += 1;
            return Ok(true);
        }
        Ok(false)
    }
}

/// The beginning of a text, on one line.
fn beginning(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[..text.len().min(80)])
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// A non-empty line.
enum Line {
    Statement {
        statement: Box<Statement>,
        text: Vec<u8>,
        writes: bool,
    },
    /// It writes, and writing statements are skipped.
    LeftOut(Vec<u8>),
    Broken(String),
}

struct Lines {
    input: BufReader<At>,
    name: String,
    how: ReadOptions,
    line: Vec<u8>,
    /// The number of lines and bytes read.
    number: u64,
    read: u64,
}

impl Lines {
    fn next(&mut self) -> Result<Option<Line>, LabError> {
        loop {
            self.line.clear();
            let cannot = LabError::io(format!("cannot read {}", self.name));
            let (n, whole) = read_line(&mut self.input, &mut self.line).map_err(cannot)?;
            if n == 0 {
                return Ok(None);
            }
            self.number += 1;
            self.read += n;
            if !whole {
                self.line = Vec::new();
                return Ok(Some(Line::Broken(format!(
                    "longer than {} MiB",
                    MAX_LINE >> 20
                ))));
            }
            if !self.line.trim_ascii().is_empty() {
                return Ok(Some(self.parsed()));
            }
        }
    }

    fn parsed(&self) -> Line {
        let statement = match serde_json::from_slice::<Statement>(&self.line) {
            Ok(statement) => Box::new(statement),
            Err(e) => return Line::Broken(e.to_string()),
        };
        let Some(text) = statement.bytes() else {
            return Line::Broken("it has neither text nor text_hex".into());
        };
        let writes = writes(&text, self.how.mode);
        if writes && self.how.policy != Writes::Run {
            return Line::LeftOut(text);
        }
        Line::Statement {
            statement,
            text,
            writes,
        }
    }
}

/// Reads a line. Returns the number of its bytes, and whether `line` contains all of them.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<(u64, bool)> {
    let (mut n, mut whole) = (0, true);
    loop {
        let buffer = match input.fill_buf() {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        let end = memchr::memchr(b'\n', buffer);
        let taken = end.map_or(buffer.len(), |at| at + 1);
        whole &= line.len() + taken <= MAX_LINE;
        if whole {
            line.extend_from_slice(&buffer[..taken]);
        }
        input.consume(taken);
        n += taken as u64;
        if end.is_some() || taken == 0 {
            return Ok((n, whole));
        }
    }
}

/// Reads a file from its own position.
struct At {
    file: File,
    offset: u64,
}

impl Read for At {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read_at(buf, self.offset)?;
        self.offset += n as u64;
        Ok(n)
    }
}

/// Creates a temporary file that disappears with its last user.
pub fn temporary() -> Result<File, LabError> {
    let directory = std::env::temp_dir();
    nameless(&directory).map_err(LabError::io(format!(
        "cannot make a temporary file in {}",
        directory.display()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, policy: Writes, keep: usize) -> Result<Workload, String> {
        let how = ReadOptions {
            keep,
            ..ReadOptions::new(policy, false)
        };
        let progress = &mut Progress::new(true);
        Workload::spooled(text.as_bytes(), "w.jsonl".into(), how, progress)
            .map_err(|e| e.to_string())
    }

    const FILE: &str = "{\"text\":\"SELECT 1\",\"db\":\"a\",\"time_us\":5}\n\nnonsense\n{\"text_hex\":\"53454c45435420ff\",\"db\":\"b\",\"time_us\":3}\n{\"db\":\"x\"}\n{\"text\":\"DELETE FROM t\",\"db\":\"a\",\"time_us\":4}\n";

    type Row = (Vec<u8>, u64, u64, Option<u16>, bool);

    fn rows(chunk: &Chunk) -> Vec<Row> {
        let row = |(at, item): (usize, &Item)| {
            let text = chunk.text(at).to_vec();
            (text, item.number, item.line, item.db, item.writes)
        };
        chunk.items.iter().enumerate().map(row).collect()
    }

    #[test]
    fn in_memory_and_reread_statements_are_equal() {
        let expected = [
            (b"SELECT 1".to_vec(), 0, 1, Some(0), false),
            (b"SELECT \xff".to_vec(), 1, 4, Some(1), false),
            (b"DELETE FROM t".to_vec(), 2, 6, Some(0), true),
        ];
        for keep in [KEEP, 0] {
            let mut work = read(FILE, Writes::Run, keep).expect("three statements");
            let counts = (work.statements, work.broken, work.left_out);
            assert_eq!((counts, work.dbs.len()), ((3, 2, 0), 2));
            assert_eq!(work.times_us, Some((3, 5)));
            let why = work.first_broken.clone().expect("there is one");
            assert!(why.starts_with("line 3: "), "{why}");
            assert_eq!(work.kept.is_some(), keep > 0);
            let mut chunk = Chunk::default();
            let mut again = work.again().expect("opens");
            while again.next(&mut chunk).expect("reads") {}
            assert_eq!(rows(&chunk), expected);
            if let Some(kept) = &work.kept {
                assert_eq!(rows(kept), expected);
                work.sort_by_time();
                let kept = work.kept.as_ref().expect("still");
                assert_eq!(rows(kept)[0], expected[1]);
            }
        }
    }

    #[test]
    fn writes_are_rejected_or_skipped() {
        let message = read(FILE, Writes::Refuse, KEEP).expect_err("it deletes");
        assert!(
            message.contains("1 statements write")
                && message.contains("line 6: DELETE FROM t")
                && message.contains("--allow-writes"),
            "{message}"
        );
        for keep in [KEEP, 0] {
            let work = read(FILE, Writes::LeaveOut, keep).expect("two statements");
            assert_eq!((work.statements, work.left_out), (2, 1));
        }
    }

    #[test]
    fn empty_replay_reports_one_clear_line() {
        for text in ["", "\n", "nonsense", "{\"text\":\"DELETE FROM t\"}"] {
            let message = read(text, Writes::LeaveOut, KEEP).expect_err("nothing is left");
            assert!(
                message.starts_with("w.jsonl has no statement of `digest --extract`"),
                "{message}"
            );
        }
    }

    #[test]
    fn lines_are_read_up_to_their_limit() {
        let mut line = Vec::new();
        let mut input = io::Cursor::new(b"ab\n\ncd".to_vec());
        for (expected, n) in [("ab\n", 3), ("\n", 1), ("cd", 2), ("", 0)] {
            line.clear();
            assert_eq!(read_line(&mut input, &mut line).expect("reads"), (n, true));
            assert_eq!(line, expected.as_bytes());
        }
        let mut long = BufReader::new(io::repeat(b'x').take(MAX_LINE as u64 + 7));
        line.clear();
        let (n, whole) = read_line(&mut long, &mut line).expect("reads");
        assert_eq!((n, whole), (MAX_LINE as u64 + 7, false));
    }
}
