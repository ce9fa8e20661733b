//! Prepares full-text searches: parses their text, and counts the documents of their words.
//!
//! A statement prepares a search once. It reads entries of the index in the statement's snapshot,
//! and writes nothing.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use nfold_catalog::TableId;
use nfold_engine::{KeyRange, Read, ReadSpec, RowBatch, Table};
use nfold_plan::fulltext::{SearchMode, SearchTarget};
use nfold_types::row::RowLayout;
use nfold_types::{ErrorCode, SqlError, ValueRef};

use super::Runtime;
use crate::fulltext::entries::each_word;
use crate::fulltext::program::{Program, Step};
use crate::fulltext::query::parse;
use crate::fulltext::words::Tokenizer;

/// The searches of a statement.
#[derive(Default)]
pub(crate) struct Searches(RefCell<Vec<Prepared>>);

struct Prepared {
    target: SearchTarget,
    text: Vec<u8>,
    program: Rc<Program>,
}

/// A full-text index and its table.
struct SearchedIndex {
    table: Arc<Table>,
    index: usize,
    /// Ordinals of the hidden column and of the columns of the documents.
    columns: Vec<usize>,
}

impl Runtime<'_> {
    /// The search for `text`, which is in the character set of the index.
    ///
    /// # Errors
    /// 1064 for a text that does not follow the grammar, and those of reading.
    pub fn search(&self, target: SearchTarget, text: &[u8]) -> Result<Rc<Program>, SqlError> {
        let known = |s: &&Prepared| s.target == target && s.text == text;
        if let Some(found) = self.searches.0.borrow().iter().find(known) {
            return Ok(found.program.clone());
        }
        let program = Rc::new(self.prepare_search(target, text)?);
        self.searches.0.borrow_mut().push(Prepared {
            target,
            text: text.to_vec(),
            program: program.clone(),
        });
        Ok(program)
    }

    fn prepare_search(&self, target: SearchTarget, text: &[u8]) -> Result<Program, SqlError> {
        let gone = || SqlError::new(ErrorCode::ER_TABLE_DEF_CHANGED, &[]);
        let table = self.table(TableId(target.table))?;
        let def = table.def();
        let mut indexes = def.indexes.iter();
        let index = indexes
            .position(|i| i.id.0 == target.index)
            .ok_or_else(gone)?;
        let parts = &def.indexes[index].parts;
        let options = def.indexes[index].fulltext().ok_or_else(gone)?;
        let first = parts.get(1).ok_or_else(gone)?.column;
        let tokenizer = Tokenizer {
            options,
            collation: def.columns[first].ty.collation.known(),
        };
        let columns = parts.iter().map(|p| p.column).collect();
        let searched = SearchedIndex {
            table: table.clone(),
            index,
            columns,
        };
        let query = parse(text, target.mode == SearchMode::Boolean, &tokenizer)?;
        let mut program = Program::new(tokenizer, &query);
        let steps = std::mem::take(&mut program.steps);
        self.count_steps(&searched, &mut program, &steps)?;
        program.steps = steps;
        if target.mode == SearchMode::Expanded {
            self.expand(&searched, &mut program)?;
        }
        let rows = match table.estimate_rows() {
            0 => self.count_rows(&table)?,
            rows => rows,
        };
        program.weigh(rows);
        Ok(program)
    }

    /// Counts the documents of the words of steps. Words behind a word of a phrase that no document
    /// has are not counted.
    fn count_steps(
        &self,
        searched: &SearchedIndex,
        program: &mut Program,
        steps: &[Step],
    ) -> Result<(), SqlError> {
        for step in steps {
            match step {
                Step::Word(_, word) => {
                    self.count_word(searched, program, *word)?;
                }
                Step::Phrase(_, phrase) => {
                    for word in &phrase.indexed {
                        if self.count_word(searched, program, *word)? == 0 {
                            break;
                        }
                    }
                }
                Step::Nested(_, steps) => self.count_steps(searched, program, steps)?,
            }
        }
        Ok(())
    }

    fn count_word(
        &self,
        searched: &SearchedIndex,
        program: &mut Program,
        word: usize,
    ) -> Result<u64, SqlError> {
        let word = &mut program.words[word];
        let spec = ReadSpec {
            index: searched.index,
            covering: true,
            columns: searched.columns[..1].to_vec(),
            ..ReadSpec::default()
        };
        let range = KeyRange::prefix(&word.prefix);
        let count = self.count(Read::range(searched.table.clone(), spec, &range, false))?;
        word.documents += count;
        Ok(count)
    }

    /// The number of rows of a table that has no statistics yet.
    fn count_rows(&self, table: &Arc<Table>) -> Result<u64, SqlError> {
        let all = KeyRange::all();
        self.count(Read::range(table.clone(), ReadSpec::default(), &all, false))
    }

    fn count(&self, mut read: Read) -> Result<u64, SqlError> {
        let mut batch = RowBatch::new();
        let mut count = 0;
        loop {
            batch.clear();
            let more = self.read(&mut read, &mut batch)?;
            count += batch.len() as u64;
            if !more {
                return Ok(count);
            }
        }
    }

    /// Adds the words of the documents that match, without the words that they were found by.
    fn expand(&self, searched: &SearchedIndex, program: &mut Program) -> Result<(), SqlError> {
        let mut words: BTreeSet<Vec<u8>> = BTreeSet::new();
        let mut names: BTreeSet<usize> = BTreeSet::new();
        let Some(candidates) = program.candidates() else {
            return Ok(());
        };
        // A document that is found again adds the same words.
        for prefix in candidates.prefixes {
            let spec = ReadSpec {
                index: searched.index,
                columns: searched.columns.clone(),
                ..ReadSpec::default()
            };
            let range = KeyRange::prefix(prefix);
            let mut read = Read::range(searched.table.clone(), spec, &range, false);
            let mut batch = RowBatch::new();
            loop {
                batch.clear();
                let more = self.read(&mut read, &mut batch)?;
                for row in batch.iter() {
                    expand_by(searched, program, row, (&mut words, &mut names));
                }
                if !more {
                    break;
                }
            }
        }
        let before = program.steps.len();
        program.expand(&names, words.into_iter());
        let added: Vec<Step> = program.steps[before..].to_vec();
        self.count_steps(searched, program, &added)
    }
}

/// Adds the words of one document to those of an expanded search, without those that it matches,
/// whose names it adds.
fn expand_by(
    searched: &SearchedIndex,
    program: &Program,
    row: &[u8],
    (words, names): (&mut BTreeSet<Vec<u8>>, &mut BTreeSet<usize>),
) {
    let layout: &RowLayout = searched.table.layout();
    let bytes = |column: &usize| match layout.get(row, *column) {
        Ok(ValueRef::Bytes(bytes)) => Some(bytes),
        _ => None,
    };
    let Some(packed) = searched.columns.first().and_then(bytes) else {
        return;
    };
    let texts: Vec<Option<&[u8]>> = searched.columns[1..].iter().map(bytes).collect();
    let Some(matched) = program.matched(packed, &texts) else {
        return;
    };
    each_word(packed, |word| {
        words.insert(word.to_vec());
    });
    for name in matched {
        words.remove(program.key_of(name));
        names.insert(name);
    }
}
