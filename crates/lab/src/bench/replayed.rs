//! A file of statements as an endless workload, in memory that does not grow with the file.
//!
//! ```text
//! small file:  in memory; every connection executes all of it, each from its own start
//! large file:  read again and again, as in `replay`; each statement goes to any free connection
//! ```

use std::cell::RefCell;
use std::path::Path;
use std::sync::{Arc, PoisonError};

use super::result::WorkloadInfo;
use crate::LabError;
use crate::client::Command;
use crate::client::drive::{Next, Source};
use crate::digest::table::grouped;
use crate::dsn::Dsn;
use crate::progress::Progress;
use crate::replay::chunk::Chunk;
use crate::replay::load::{ReadOptions, Workload, Writes};
use crate::replay::source::{Play, Player};

/// The share of the connections' time spent waiting for the file above which the client counts as
/// the limit.
const MAX_STARVED_SHARE: f64 = 0.05;

/// The statements of a file.
pub struct Replayed {
    name: String,
    work: Arc<Workload>,
    /// The state shared by the connections of the current window.
    play: RefCell<Option<Arc<Play>>>,
}

impl Replayed {
    /// Reads a file of `digest --extract` once to find out its contents.
    pub fn read(
        path: &Path,
        writes: Writes,
        progress: &mut Progress,
    ) -> Result<Replayed, LabError> {
        let name = path
            .file_name()
            .map_or_else(|| "replay".into(), |n| n.to_string_lossy().into_owned());
        Self::of(
            name,
            Workload::open(path, ReadOptions::new(writes, false), progress)?,
        )
    }

    fn of(name: String, work: Workload) -> Result<Replayed, LabError> {
        if let Some(why) = &work.first_broken {
            eprintln!(
                "nfold lab: {} lines are no statements and are skipped ({why})",
                grouped(work.broken)
            );
        }
        Ok(Replayed {
            name,
            work: Arc::new(work),
            play: RefCell::new(None),
        })
    }

    /// Sets the DSN's database to the file's, if the DSN has none and the file has only one.
    pub fn choose_database(&self, dsn: &mut Dsn) {
        if let ([db], None) = (self.work.dbs.as_slice(), &dsn.db) {
            dsn.db = Some(db.clone());
        }
    }

    pub fn info(&self) -> Result<WorkloadInfo, LabError> {
        let mut chunk = Chunk::default();
        let first = match self.work.again()?.next(&mut chunk)? {
            true => String::from_utf8_lossy(chunk.text(0)).into_owned(),
            false => String::new(),
        };
        let mut statement: String = first.chars().take(200).collect();
        if statement.len() < first.len() {
            statement.push('…');
        }
        Ok(WorkloadInfo {
            name: self.name.clone(),
            about: format!("{} statements from a file", self.work.statements),
            statement,
        })
    }

    /// The source of connection `number` out of `of` in the next window. `one_database`: the DSN
    /// names a database, which is used for all statements.
    pub fn source(&self, number: usize, of: usize, one_database: bool) -> Box<dyn Source> {
        let switch = !one_database && self.work.dbs.len() > 1;
        if let (Some(chunk), false) = (&self.work.kept, switch) {
            return Box::new(Round {
                at: number * chunk.items.len() / of.max(1),
                chunk: chunk.clone(),
            });
        }
        let mut play = self.play.borrow_mut();
        if number == 0 {
            *play = None;
        }
        let play = play.get_or_insert_with(|| Arc::new(Play::endless(&self.work, switch)));
        Box::new(Player::new(play.clone(), number))
    }

    /// After a window: whether connections had to wait for the file for more than the allowed share
    /// of `seconds`, their total time. An error if reading the file failed.
    pub fn starved(&self, seconds: f64) -> Result<bool, LabError> {
        let Some(play) = self.play.borrow_mut().take() else {
            return Ok(false);
        };
        if let Some(e) = play.feed.error() {
            return Err(e);
        }
        let tally = play.tally.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(tally.starved_s > MAX_STARVED_SHARE * seconds)
    }
}

/// Executes a file in memory again and again.
struct Round {
    chunk: Arc<Chunk>,
    at: usize,
}

impl Source for Round {
    fn next(&mut self, command: &mut Command) -> Next {
        command.text().extend_from_slice(self.chunk.text(self.at));
        self.at = if self.at + 1 < self.chunk.items.len() {
            self.at + 1
        } else {
            0
        };
        Next::Send
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::{Duration, Instant};

    use super::*;

    fn replayed(text: &str, keep: usize) -> Replayed {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("w.jsonl");
        std::fs::write(&path, text).expect("writes");
        let how = ReadOptions {
            keep,
            ..ReadOptions::new(Writes::Refuse, false)
        };
        let work = Workload::open(&path, how, &mut Progress::new(true)).expect("reads");
        Replayed::of("w.jsonl".into(), work).expect("is one")
    }

    /// The next text sent, however long the file takes.
    fn sent(source: &mut dyn Source) -> String {
        let (mut command, end) = (Command::default(), Instant::now() + Duration::from_secs(60));
        while source.next(&mut command) != Next::Send {
            assert!(Instant::now() < end, "nothing comes");
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut out = Vec::new();
        command.encode_text(&mut out);
        String::from_utf8(out[5..].to_vec()).expect("ASCII")
    }

    #[test]
    fn files_in_memory_and_streamed_files_repeat() {
        let file: String = (0..10)
            .map(|n| format!("{{\"text\":\"SELECT {n}\",\"db\":\"a\"}}\n"))
            .collect();
        let kept = replayed(&file, 1 << 20);
        let mut second = kept.source(1, 2, true);
        let texts: Vec<String> = (0..6).map(|_| sent(second.as_mut())).collect();
        assert_eq!(
            (texts[0].as_str(), texts[5].as_str()),
            ("SELECT 5", "SELECT 0")
        );
        assert!(!kept.starved(1.0).expect("no error"));
        // Two connections share a file that is not kept: each statement once a round.
        let streamed = replayed(&file, 0);
        assert_eq!(streamed.info().expect("reads").statement, "SELECT 0");
        for _window in 0..2 {
            let mut both = [0, 1].map(|n| streamed.source(n, 2, true));
            let mut counts = BTreeMap::new();
            for n in 0..30 {
                *counts.entry(sent(both[n % 2].as_mut())).or_insert(0) += 1;
            }
            assert_eq!(counts.len(), 10);
            assert!(counts.values().all(|n| *n == 3), "{counts:?}");
            drop(both);
            streamed.starved(1e9).expect("no error");
        }
        let mut dsn = Dsn::parse("mysql://root@127.0.0.1").expect("a DSN");
        streamed.choose_database(&mut dsn);
        assert_eq!(dsn.db.as_deref(), Some("a"));
    }

    #[test]
    fn connections_change_their_database_where_no_dsn_names_one() {
        let file = "{\"text\":\"SELECT 1\",\"db\":\"a\"}\n{\"text\":\"SELECT 2\",\"db\":\"b\"}\n";
        let replayed = replayed(file, 1 << 20);
        let mut source = replayed.source(0, 1, false);
        let mut texts = Vec::new();
        while texts.len() < 4 {
            texts.push(sent(source.as_mut()));
            source.answered(&crate::client::Answer::default());
        }
        assert_eq!(texts, ["USE `a`", "SELECT 1", "USE `b`", "SELECT 2"]);
        let mut named = replayed.source(0, 1, true);
        assert_eq!(sent(named.as_mut()), "SELECT 1");
    }
}
