//! The answers to the statements of a file, in a temporary file with 16 bytes per statement. Two
//! servers are compared by these files.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};

use super::load::temporary;
use crate::LabError;

/// A flag in `what`: the other bits are an error number.
const ERROR: u64 = 1 << 63;

/// An answer: its hash, and its number of rows or `ERROR | number`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    hash: u64,
    what: u64,
}

impl Answered {
    pub fn rows(hash: u64, rows: u64) -> Answered {
        Answered {
            hash: hash.max(1),
            what: rows & !ERROR,
        }
    }

    pub fn error(hash: u64, number: u16) -> Answered {
        Answered {
            hash: hash.max(1),
            what: ERROR | u64::from(number),
        }
    }

    /// Describes the answer: `7 rows`, or `error 1054`.
    pub fn words(self) -> String {
        match self.what & ERROR {
            0 => format!("{} rows", self.what),
            _ => format!("error {}", self.what & !ERROR),
        }
    }

    /// The hash, which is never 0.
    pub fn hash(self) -> u64 {
        self.hash
    }

    pub fn same(self, other: Answered) -> bool {
        self.hash == other.hash
    }
}

/// The answers of one server.
#[derive(Debug)]
pub struct Answers {
    file: File,
    failed: Mutex<Option<io::Error>>,
}

impl Answers {
    /// Room for the answers to `statements` statements, all unanswered.
    pub fn new(statements: u64) -> Result<Answers, LabError> {
        let file = temporary()?;
        file.set_len(statements * 16)
            .map_err(LabError::io("cannot keep answers"))?;
        Ok(Answers {
            file,
            failed: Mutex::new(None),
        })
    }

    /// Stores the answer to a statement, and replaces an earlier one. [`Self::error`] reports
    /// failures.
    pub fn set(&self, number: u64, answer: Answered) {
        let bytes = (u128::from(answer.hash) << 64 | u128::from(answer.what)).to_be_bytes();
        if let Err(e) = self.file.write_all_at(&bytes, number * 16) {
            *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(e);
        }
    }

    /// The error of a failed store, if any.
    pub fn error(&self) -> Option<LabError> {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = failed.as_ref()?;
        Some(LabError::io("cannot keep answers")(failed.kind().into()))
    }

    /// All answers in the order of the statements; `None` for unanswered ones.
    pub fn all(&mut self) -> impl Iterator<Item = Result<Option<Answered>, LabError>> + '_ {
        let rewound = self.file.rewind();
        let mut reader = BufReader::with_capacity(1 << 20, &self.file);
        let mut failed = rewound.err();
        std::iter::from_fn(move || {
            if let Some(e) = failed.take() {
                return Some(Err(LabError::io("cannot read answers")(e)));
            }
            let mut bytes = [0; 16];
            match reader.read_exact(&mut bytes) {
                Ok(()) => {}
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return None,
                Err(e) => return Some(Err(LabError::io("cannot read answers")(e))),
            }
            let both = u128::from_be_bytes(bytes);
            let answer = Answered {
                hash: (both >> 64) as u64,
                what: both as u64,
            };
            Some(Ok((answer.hash != 0).then_some(answer)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_answer_of_each_statement_is_stored() {
        let mut answers = Answers::new(4).expect("makes a file");
        answers.set(2, Answered::rows(9, 100));
        answers.set(0, Answered::rows(0, 7));
        answers.set(2, Answered::error(5, 1054));
        let all: Vec<Option<Answered>> =
            answers.all().collect::<Result<_, _>>().expect("reads them");
        let words: Vec<Option<String>> = all.iter().map(|a| a.map(Answered::words)).collect();
        let [seven, error] = ["7 rows", "error 1054"].map(|w| Some(w.to_owned()));
        assert_eq!(words, [seven, None, error, None]);
        assert!(answers.error().is_none());
        assert!(Answered::rows(5, 1).same(Answered::error(5, 1)));
    }
}
