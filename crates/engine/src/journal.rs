//! The row changes of an open transaction as the layer above describes them, until its commit makes
//! an attachment of them. Rolled back changes disappear from it.
//!
//! # Invariants
//! - J1: an entry stands for a change that the transaction has made and not undone. Each entry has
//!   the transaction's number of changes behind it, so a rollback to a mark removes the entries
//!   with higher numbers.

use nfold_catalog::TableId;

/// One row change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalEntry {
    /// The transaction's changes up to and with this one (J1).
    change: u32,
    /// The statement, as a number that differs from those of the transaction's other statements.
    pub statement: u32,
    pub table: TableId,
    /// A kind of change, chosen by the caller.
    pub kind: u8,
    /// The end of its bytes.
    end: usize,
}

/// The row changes of an open transaction, in their order.
#[derive(Debug, Default)]
pub struct ChangeJournal {
    entries: Vec<JournalEntry>,
    bytes: Vec<u8>,
    /// The texts of statements, by their numbers.
    texts: Vec<(u32, Vec<u8>)>,
}

impl ChangeJournal {
    /// Adds a change, whose description `write` appends.
    ///
    /// # Errors
    /// The error of `write`; the journal is as before.
    pub(crate) fn add<E>(
        &mut self,
        (change, statement): (u32, u32),
        (table, kind): (TableId, u8),
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let start = self.bytes.len();
        let written = write(&mut self.bytes);
        if written.is_err() {
            self.bytes.truncate(start);
            return written;
        }
        self.entries.push(JournalEntry {
            change,
            statement,
            table,
            kind,
            end: self.bytes.len(),
        });
        Ok(())
    }

    /// Removes the changes after `mark` (J1).
    pub(crate) fn truncate(&mut self, mark: u32) {
        let kept = self.entries.partition_point(|e| e.change <= mark);
        self.entries.truncate(kept);
        let end = self.entries.last().map_or(0, |e| e.end);
        self.bytes.truncate(end);
        // A later statement may have the number of one that is gone.
        let last = self.entries.last().map(|e| e.statement);
        self.texts.retain(|(number, _)| Some(*number) <= last);
    }

    /// Sets the text of the statement that made the last change, unless it has one. A statement
    /// without changes comes behind one that has its text.
    pub(crate) fn set_text(&mut self, text: &[u8]) {
        if let Some(last) = self.entries.last()
            && self.text(last.statement).is_none()
        {
            self.texts.push((last.statement, text.to_vec()));
        }
    }

    /// The text of a statement, if it was set.
    pub fn text(&self, statement: u32) -> Option<&[u8]> {
        let mut all = self.texts.iter();
        let found = all.find(|(number, _)| *number == statement);
        found.map(|(_, text)| &**text)
    }

    /// Whether the transaction has changed no row.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The bytes of all changes.
    pub fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The changes in their order, each with its bytes.
    pub fn iter(&self) -> impl Iterator<Item = (&JournalEntry, &[u8])> {
        let mut start = 0;
        self.entries.iter().map(move |entry| {
            let bytes = &self.bytes[start..entry.end];
            start = entry.end;
            (entry, bytes)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncate_removes_changes_after_the_mark() {
        let mut journal = ChangeJournal::default();
        for (change, text) in [(1, "a"), (2, "bc"), (5, "def")] {
            let write = |out: &mut Vec<u8>| {
                out.extend_from_slice(text.as_bytes());
                Ok::<(), ()>(())
            };
            assert!(journal.add((change, 0), (TableId(7), 1), write).is_ok());
        }
        journal.truncate(4);
        let left: Vec<&[u8]> = journal.iter().map(|(_, bytes)| bytes).collect();
        assert_eq!(left, [&b"a"[..], b"bc"]);
        let failed = journal.add((9, 0), (TableId(7), 1), |out| {
            out.push(1);
            Err(())
        });
        assert!(failed.is_err());
        assert_eq!(journal.len_bytes(), 3);
        journal.truncate(0);
        assert!(journal.is_empty());
    }

    #[test]
    fn text_belongs_to_the_statement_of_the_last_change() {
        let mut journal = ChangeJournal::default();
        let nothing = |_: &mut Vec<u8>| Ok::<(), ()>(());
        journal.set_text(b"no change");
        assert!(journal.add((1, 0), (TableId(7), 1), nothing).is_ok());
        journal.set_text(b"first");
        journal.set_text(b"no change either");
        assert!(journal.add((2, 1), (TableId(7), 1), nothing).is_ok());
        journal.set_text(b"undone");
        journal.truncate(1);
        assert!(journal.add((2, 1), (TableId(7), 1), nothing).is_ok());
        journal.set_text(b"second");
        assert_eq!(journal.text(0), Some(&b"first"[..]));
        assert_eq!(journal.text(1), Some(&b"second"[..]));
        assert_eq!(journal.text(9), None);
    }
}
