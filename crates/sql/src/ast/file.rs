//! Files that statements read and write: LOAD DATA and SELECT ... INTO OUTFILE.

use super::{ColumnRef, Insert};

/// How rows stand in a text file: the clauses FIELDS and LINES.
#[derive(Clone, Debug, PartialEq)]
pub struct FileFormat {
    /// FIELDS TERMINATED BY
    pub field_end: Vec<u8>,
    /// ENCLOSED BY
    pub enclosed: Vec<u8>,
    /// OPTIONALLY ENCLOSED BY: only strings are enclosed when a file is written.
    pub optionally: bool,
    /// ESCAPED BY
    pub escaped: Vec<u8>,
    /// LINES STARTING BY
    pub line_start: Vec<u8>,
    /// LINES TERMINATED BY
    pub line_end: Vec<u8>,
}

impl Default for FileFormat {
    fn default() -> Self {
        FileFormat {
            field_end: b"\t".to_vec(),
            enclosed: Vec::new(),
            optionally: false,
            escaped: b"\\".to_vec(),
            line_start: Vec::new(),
            line_end: b"\n".to_vec(),
        }
    }
}

/// `INTO OUTFILE 'file' [CHARACTER SET set] [FIELDS …] [LINES …]`
#[derive(Clone, Debug, PartialEq)]
pub struct OutFile {
    pub file: Vec<u8>,
    /// The character set's name in lower case; `None`: each value keeps its own set.
    pub charset: Option<String>,
    pub format: FileFormat,
}

/// LOAD DATA
#[derive(Clone, Debug, PartialEq)]
pub struct LoadData {
    /// The client sends the file.
    pub local: bool,
    pub file: Vec<u8>,
    /// The file's character set in lower case; `None`: the database's.
    pub charset: Option<String>,
    /// The table and the columns; the source is `InsertSource::File`.
    pub insert: Insert,
}

/// The target of a field of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum FileTarget {
    Column(ColumnRef),
    /// `@name`
    Variable(String),
}
