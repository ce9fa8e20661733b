//! The entries of documents in a full-text index: a word with its frequency.
//!
//! # Picture
//! ```text
//! entry     = key part (VARBINARY) of: word, 00 00, frequency
//! word      = sort key under the collation of the columns, 00 as 00 01
//! frequency = u8, or FF and u32 big-endian from 255 on
//! ```
//! The entries of a word begin with [`word_prefix`], and those of all words that begin alike with
//! [`truncated_prefix`]. A row holds its entries as the elements of a packed array
//! (`nfold_types::key::Elements`); the index has one entry for each element, followed by the
//! primary key of the row.

use nfold_types::key::{Elements, KeyError, pack_elements};
use nfold_types::{CollationId, ColumnType, TypeKind, Value};
use rustc_hash::FxHashMap;

use super::words::Tokenizer;

/// The end of the word in an entry.
const WORD_END: [u8; 2] = [0, 0];
/// A frequency that follows in four bytes.
const LONG_FREQUENCY: u8 = 0xFF;

/// The words of one document with their frequencies.
#[derive(Default)]
pub struct DocumentWords {
    words: FxHashMap<Vec<u8>, u32>,
    scratch: Vec<u8>,
}

impl DocumentWords {
    /// Adds the words of a text.
    pub fn add(&mut self, tokenizer: &Tokenizer, text: &[u8]) {
        tokenizer.indexed(text, &mut |word| {
            self.scratch.clear();
            tokenizer.sort_key(word, &mut self.scratch);
            if let Some(frequency) = self.words.get_mut(&self.scratch) {
                *frequency = frequency.saturating_add(1);
            } else {
                self.words.insert(self.scratch.clone(), 1);
            }
        });
    }

    /// The packed entries.
    ///
    /// # Errors
    /// None: the entries have the type of the elements.
    pub fn pack(self) -> Result<Vec<u8>, KeyError> {
        let entry = |(word, frequency): (&Vec<u8>, &u32)| {
            let mut entry = ended(word);
            match u8::try_from(*frequency) {
                Ok(short) if short != LONG_FREQUENCY => entry.push(short),
                _ => {
                    entry.push(LONG_FREQUENCY);
                    entry.extend_from_slice(&frequency.to_be_bytes());
                }
            }
            Value::Bytes(entry)
        };
        let entries: Vec<Value> = self.words.iter().map(entry).collect();
        let ty = ColumnType::string(TypeKind::VarBinary(u32::MAX), CollationId::BINARY);
        pack_elements(&ty, &entries)
    }
}

/// A sort key with its zeros escaped.
fn escaped(word: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(word.len() + 3);
    for &byte in word {
        out.push(byte);
        if byte == 0 {
            out.push(1);
        }
    }
    out
}

fn ended(word: &[u8]) -> Vec<u8> {
    let mut out = escaped(word);
    out.extend_from_slice(&WORD_END);
    out
}

/// The bytes of a key part that is not NULL and begins with `payload`.
fn part_prefix(payload: &[u8]) -> Vec<u8> {
    let mut out = vec![1];
    for &byte in payload {
        out.push(byte);
        if byte == 0 {
            out.push(0xFF);
        }
    }
    out
}

/// The prefix of the entries of a word, which is given by its sort key.
pub fn word_prefix(word: &[u8]) -> Vec<u8> {
    part_prefix(&ended(word))
}

/// The prefix of the entries of all words whose sort keys begin with `word`.
pub fn truncated_prefix(word: &[u8]) -> Vec<u8> {
    part_prefix(&escaped(word))
}

/// The frequency in an entry. 0 if the entry is damaged.
pub fn frequency(element: &[u8]) -> u32 {
    let mut payload = Vec::with_capacity(element.len());
    let mut bytes = element.get(1..).unwrap_or_default().iter();
    while let Some(&byte) = bytes.next() {
        if byte == 0 && bytes.next() != Some(&0xFF) {
            break;
        }
        payload.push(byte);
    }
    let mut at = 0;
    let end = loop {
        match payload.get(at..at + 2) {
            Some([0, 0]) => break at + 2,
            Some([0, _]) => at += 2,
            Some(_) => at += 1,
            None => return 0,
        }
    };
    match &payload[end..] {
        [LONG_FREQUENCY, a, b, c, d] => u32::from_be_bytes([*a, *b, *c, *d]),
        [short] => u32::from(*short),
        _ => 0,
    }
}

/// Calls `f` with the sort key of each word of a document, in order.
pub fn each_word(packed: &[u8], mut f: impl FnMut(&[u8])) {
    let mut word = Vec::new();
    for element in Elements(packed) {
        word.clear();
        // A zero of the sort key is 00 01 in the payload, which is 00 FF 01 in the entry.
        let mut bytes = element.get(1..).unwrap_or_default();
        while let Some((&byte, rest)) = bytes.split_first() {
            bytes = rest;
            if byte == 0 {
                match bytes {
                    [0xFF, 1, rest @ ..] => bytes = rest,
                    _ => break,
                }
            }
            word.push(byte);
        }
        f(&word);
    }
}

#[cfg(test)]
mod tests {
    use nfold_catalog::FulltextOptions;

    use super::*;

    /// Calls `f` with the frequency of each entry that begins with `prefix`.
    fn frequencies(packed: &[u8], prefix: &[u8], mut f: impl FnMut(u32)) {
        let found = Elements(packed).filter(|element| element.starts_with(prefix));
        found.for_each(|element| f(frequency(element)));
    }

    fn tokenizer(collation: CollationId) -> Tokenizer {
        Tokenizer {
            options: FulltextOptions {
                ngram_chars: 0,
                min_chars: 1,
                max_chars: 84,
                stopwords: false,
            },
            collation: collation.known(),
        }
    }

    fn key(t: &Tokenizer, word: &str) -> Vec<u8> {
        let mut key = Vec::new();
        t.sort_key(word.as_bytes(), &mut key);
        key
    }

    #[test]
    fn frequencies_are_read_back_by_word_and_by_prefix() {
        for collation in [
            CollationId::UTF8MB4_0900_AI_CI,
            CollationId::UTF8MB4_0900_BIN,
            CollationId::LATIN1_SWEDISH_CI,
        ] {
            let t = tokenizer(collation);
            let mut document = DocumentWords::default();
            document.add(&t, b"app apple apple banana");
            document.add(&t, "zoo ".repeat(300).as_bytes());
            let packed = document.pack().unwrap();
            let of = |prefix: Vec<u8>| {
                let mut all = Vec::new();
                frequencies(&packed, &prefix, |f| all.push(f));
                all
            };
            assert_eq!(of(word_prefix(&key(&t, "app"))), [1]);
            assert_eq!(of(word_prefix(&key(&t, "apple"))), [2]);
            assert_eq!(of(word_prefix(&key(&t, "zoo"))), [300]);
            assert_eq!(of(word_prefix(&key(&t, "appl"))), [0; 0]);
            let mut head = Vec::new();
            t.sort_key_prefix(b"app", &mut head);
            assert_eq!(of(truncated_prefix(&head)), [1, 2]);
            let mut words = Vec::new();
            each_word(&packed, |word| words.push(word.to_vec()));
            let expected = ["app", "apple", "banana", "zoo"].map(|w| key(&t, w));
            assert_eq!(words, expected);
        }
    }

    #[test]
    fn zeros_in_sort_keys_keep_words_apart() {
        let packed = DocumentWords {
            words: [(vec![5, 0], 1), (vec![5, 0, 0, 7], 2), (vec![5], 3)]
                .into_iter()
                .collect(),
            scratch: Vec::new(),
        };
        let packed = packed.pack().unwrap();
        for (word, expected) in [(&[5, 0][..], 1), (&[5, 0, 0, 7], 2), (&[5], 3)] {
            let mut all = Vec::new();
            frequencies(&packed, &word_prefix(word), |f| all.push(f));
            assert_eq!(all, [expected]);
        }
        let mut words = Vec::new();
        each_word(&packed, |word| words.push(word.to_vec()));
        assert_eq!(words, [vec![5], vec![5, 0], vec![5, 0, 0, 7]]);
    }
}
