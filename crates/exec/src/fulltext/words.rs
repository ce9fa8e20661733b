//! Divides documents into words.

use nfold_catalog::FulltextOptions;
use nfold_types::collation::Collation;

use super::word_chars::is_word_char;

/// The words of INFORMATION_SCHEMA.INNODB_FT_DEFAULT_STOPWORD, as MySQL lists them.
pub static STOPWORDS: [&str; 36] = [
    "a", "about", "an", "are", "as", "at", "be", "by", "com", "de", "en", "for", "from", "how",
    "i", "in", "is", "it", "la", "of", "on", "or", "that", "the", "this", "to", "was", "what",
    "when", "where", "who", "will", "with", "und", "the", "www",
];

/// Finds the words of documents for one index.
#[derive(Clone, Copy)]
pub struct Tokenizer {
    pub options: FulltextOptions,
    /// Of the columns of the index.
    pub collation: &'static Collation,
}

/// A word of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'t> {
    pub bytes: &'t [u8],
    pub chars: usize,
}

/// The words of a text, of any length: maximal runs of word characters. Of an index with the
/// parser ngram: all runs of its number of characters without a space or punctuation mark of one
/// byte (as MySQL's parser, which takes longer marks such as an ideographic full stop).
pub struct Words<'t> {
    rest: &'t [u8],
    collation: &'static Collation,
    /// 0: words.
    ngram_chars: usize,
}

impl<'t> Words<'t> {
    fn next_ngram(&mut self) -> Option<Token<'t>> {
        let charset = self.collation.charset;
        let (mut len, mut first_len, mut chars) = (0, 0, 0);
        while chars < self.ngram_chars {
            let char = self.rest.get(len..).filter(|rest| !rest.is_empty())?;
            let char_len = charset.step(char).max(1);
            if char_len == 1 && !self.word_at(char).1 {
                self.rest = &self.rest[len + 1..];
                (len, chars) = (0, 0);
                continue;
            }
            if chars == 0 {
                first_len = char_len;
            }
            len = (len + char_len).min(self.rest.len());
            chars += 1;
        }
        let bytes = &self.rest[..len];
        self.rest = &self.rest[first_len.min(len)..];
        Some(Token { bytes, chars })
    }

    /// The length of the first character of the rest, and whether it belongs to a word.
    fn first(&self) -> Option<(usize, bool)> {
        (!self.rest.is_empty()).then(|| self.word_at(self.rest))
    }

    /// The length of the first character of a text that is not empty, and whether it belongs to a
    /// word.
    fn word_at(&self, text: &[u8]) -> (usize, bool) {
        let charset = self.collation.charset;
        if text[0] < 0x80 && charset.is_ascii_compatible() {
            return (1, text[0].is_ascii_alphanumeric() || text[0] == b'_');
        }
        match charset.decode(text) {
            Some((c, len)) => (len.max(1), is_word_char(c)),
            None => (1, false),
        }
    }
}

impl<'t> Iterator for Words<'t> {
    type Item = Token<'t>;

    fn next(&mut self) -> Option<Token<'t>> {
        if self.ngram_chars > 0 {
            return self.next_ngram();
        }
        loop {
            let (len, word) = self.first()?;
            if word {
                break;
            }
            self.rest = &self.rest[len..];
        }
        let start = self.rest;
        let mut chars = 0;
        while let Some((len, true)) = self.first() {
            self.rest = &self.rest[len..];
            chars += 1;
        }
        Some(Token {
            bytes: &start[..start.len() - self.rest.len()],
            chars,
        })
    }
}

impl Tokenizer {
    /// The words of a text, including those that are not indexed.
    pub fn words<'t>(&self, text: &'t [u8]) -> Words<'t> {
        Words {
            rest: text,
            collation: self.collation,
            ngram_chars: self.options.ngram_chars.into(),
        }
    }

    /// The words of a search in boolean mode, before an index with the parser ngram divides them.
    pub fn whole_words<'t>(&self, text: &'t [u8]) -> Words<'t> {
        Words {
            ngram_chars: 0,
            ..self.words(text)
        }
    }

    /// Calls `f` with each token of a text that is indexed.
    pub fn indexed(&self, text: &[u8], f: &mut dyn FnMut(&[u8])) {
        self.words(text)
            .filter(|token| self.is_indexed(token))
            .for_each(|token| f(token.bytes));
    }

    /// Whether a word is indexed: it is neither too short nor too long, and no stop word.
    pub fn is_indexed(&self, token: &Token<'_>) -> bool {
        if self.options.ngram_chars > 0 {
            let whole = token.chars == usize::from(self.options.ngram_chars);
            return whole && !(self.options.stopwords && self.has_stopword(token.bytes));
        }
        let sizes = usize::from(self.options.min_chars)..=usize::from(self.options.max_chars);
        sizes.contains(&token.chars) && !(self.options.stopwords && is_stopword(token.bytes))
    }

    /// Whether a part of an n-gram is a stop word.
    fn has_stopword(&self, ngram: &[u8]) -> bool {
        (0..ngram.len()).any(|start| {
            let ends = start + 1..=ngram.len();
            ends.into_iter().any(|end| is_stopword(&ngram[start..end]))
        })
    }

    /// Appends the sort key of a word, by which equal words are equal. A case-sensitive collation
    /// that is not a binary one compares the words in lower case.
    pub fn sort_key(&self, word: &[u8], out: &mut Vec<u8>) {
        self.folded(word, |word| self.collation.sort_key(word, out));
    }

    /// Appends the common prefix of the sort keys of all words that begin with `word`.
    pub fn sort_key_prefix(&self, word: &[u8], out: &mut Vec<u8>) {
        self.folded(word, |word| self.collation.sort_key_prefix(word, out));
    }

    fn folded(&self, word: &[u8], f: impl FnOnce(&[u8])) {
        if !self.collation.name.ends_with("_cs") {
            return f(word);
        }
        let mut lower = Vec::with_capacity(word.len());
        self.collation.lower(word, &mut lower);
        f(&lower);
    }

    /// Whether two words are equal.
    pub fn same(&self, a: &[u8], b: &[u8]) -> bool {
        if a == b {
            return true;
        }
        let (mut left, mut right) = (Vec::new(), Vec::new());
        self.sort_key(a, &mut left);
        self.sort_key(b, &mut right);
        left == right
    }
}

/// Whether a word is a stop word, in any case.
fn is_stopword(word: &[u8]) -> bool {
    word.len() <= 5
        && STOPWORDS
            .iter()
            .any(|s| s.as_bytes().eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use nfold_types::CollationId;

    use super::*;

    fn tokenizer() -> Tokenizer {
        Tokenizer {
            options: FulltextOptions {
                ngram_chars: 0,
                min_chars: 3,
                max_chars: 84,
                stopwords: true,
            },
            collation: CollationId::UTF8MB4_0900_AI_CI.known(),
        }
    }

    fn indexed(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        tokenizer().indexed(text.as_bytes(), &mut |word| {
            found.push(String::from_utf8_lossy(word).into_owned());
        });
        found
    }

    #[test]
    fn words_end_at_other_characters() {
        let text = "It's a well-known_fact: caf\u{e9}, \u{4e2d}\u{56fd}\u{4eba}\u{3002}x2y";
        let words = [
            "well",
            "known_fact",
            "caf\u{e9}",
            "\u{4e2d}\u{56fd}\u{4eba}",
            "x2y",
        ];
        assert_eq!(indexed(text), words);
    }

    #[test]
    fn stop_words_and_sizes_limit_the_index() {
        assert_eq!(indexed("The ABOUT wHEn of ab abc"), ["abc"]);
        assert_eq!(indexed(&format!("{} x", "y".repeat(85))), [""; 0]);
        assert_eq!(indexed(&"y".repeat(84)).len(), 1);
    }

    #[test]
    fn ngrams_end_at_short_marks_and_have_no_stop_word() {
        let mut t = tokenizer();
        t.options.ngram_chars = 2;
        let mut found = Vec::new();
        t.indexed(
            "xyz, q-r e_f \u{4e2d}\u{56fd}\u{3002}\u{4eba} nag".as_bytes(),
            &mut |word| {
                found.push(String::from_utf8_lossy(word).into_owned());
            },
        );
        assert_eq!(
            found,
            [
                "xy",
                "yz",
                "e_",
                "_f",
                "\u{4e2d}\u{56fd}",
                "\u{56fd}\u{3002}",
                "\u{3002}\u{4eba}"
            ]
        );
    }

    #[test]
    fn words_compare_by_the_collation() {
        let t = tokenizer();
        assert!(t.same(b"CAFE", "caf\u{e9}".as_bytes()));
        assert!(!t.same(b"cafe", b"cafes"));
        let binary = Tokenizer {
            collation: CollationId::UTF8MB4_0900_BIN.known(),
            ..t
        };
        assert!(!binary.same(b"CAFE", b"cafe"));
    }
}
