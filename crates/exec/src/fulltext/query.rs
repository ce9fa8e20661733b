//! Parses the text of a search into a tree.
//!
//! ```text
//! list     = { item }
//! item     = [prefix] ( { '*' } term ['*'] | '"' text '"' ['@' number] | '(' list ')' )
//! prefix   = + | - | ~ | < | >
//! ```
//! Outside boolean mode there are terms and quoted texts alone; with the parser ngram the whole
//! text is a list of n-grams. A term is a list of its words: `don't` has two.
//!
//! Source: MySQL manual, "Boolean Full-Text Searches".

use nfold_types::{ErrorCode, SqlError};

use super::words::{Token, Tokenizer};

/// The effect of a match of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// Without a prefix: documents are added.
    None,
    /// `+`: only matching documents stay.
    Required,
    /// `-`: matching documents are removed.
    Excluded,
    /// `~`: the rank of documents found before is lowered.
    Negated,
    /// `<`: documents are added with a lower rank.
    Lower,
    /// `>`: documents are added with a higher rank.
    Higher,
}

/// A node of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// Holds for the items behind it in its list.
    Operator(Operator),
    Word {
        word: Vec<u8>,
        /// `word*`
        truncated: bool,
    },
    /// A quoted text: all its words, and the distance of `@distance`.
    Phrase {
        words: Vec<Vec<u8>>,
        distance: Option<u64>,
    },
    /// Items with one operator, or the words of one term.
    List(Vec<Node>),
    /// A list in parentheses.
    Nested(Vec<Node>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lexeme<'t> {
    End,
    Symbol(u8),
    Number(&'t [u8]),
    Term(&'t [u8]),
    /// Without the quotes.
    Quoted(&'t [u8]),
}

/// The most levels of parentheses.
const DEPTH_MAX: usize = 200;

struct Parser<'t> {
    rest: &'t [u8],
    boolean: bool,
    tokenizer: &'t Tokenizer,
    next: Lexeme<'t>,
}

/// Parses a search.
///
/// # Errors
/// 1064 in MySQL's words for a search that does not follow the grammar.
pub fn parse(text: &[u8], boolean: bool, tokenizer: &Tokenizer) -> Result<Vec<Node>, SqlError> {
    if tokenizer.options.ngram_chars > 0 && !boolean {
        return Ok(tokenizer.words(text).map(|ngram| word(&ngram)).collect());
    }
    let mut parser = Parser {
        rest: text,
        boolean,
        tokenizer,
        next: Lexeme::End,
    };
    parser.advance();
    let list = parser.list(0)?;
    match parser.next {
        Lexeme::End => Ok(list),
        _ => Err(parser.unexpected(Some("$end"))),
    }
}

fn is_symbol(byte: u8) -> bool {
    b"*()+-<>~@".contains(&byte)
}

impl<'t> Parser<'t> {
    /// Reads the next lexeme. A lone quote and `%` are skipped.
    fn advance(&mut self) {
        self.next = loop {
            let Some((&byte, behind)) = self.rest.split_first() else {
                break Lexeme::End;
            };
            match byte {
                b' ' | b'\n' | b'%' => self.rest = behind,
                b'"' => {
                    let end = behind.iter().position(|b| matches!(b, b'"' | b'\n'));
                    match end {
                        Some(end) if behind[end] == b'"' => {
                            self.rest = &behind[end + 1..];
                            break Lexeme::Quoted(&behind[..end]);
                        }
                        _ => self.rest = behind,
                    }
                }
                b'*' if !self.boolean && self.term_len() == 1 => {
                    self.rest = behind;
                    break Lexeme::Symbol(byte);
                }
                // The parser ngram knows no distance, and reads words alone.
                b'@' if self.reads_words() => self.rest = behind,
                _ if self.boolean && is_symbol(byte) => {
                    self.rest = behind;
                    break Lexeme::Symbol(byte);
                }
                _ => {
                    if self.reads_words() {
                        match self.word() {
                            Some(word) => break Lexeme::Term(word),
                            None => continue,
                        }
                    }
                    let (term, rest) = self.rest.split_at(self.term_len());
                    self.rest = rest;
                    if self.boolean && term.iter().all(u8::is_ascii_digit) {
                        break Lexeme::Number(term);
                    }
                    break Lexeme::Term(term);
                }
            }
        };
    }

    /// The length of the term at the start of the rest.
    fn term_len(&self) -> usize {
        let ends =
            |b: &u8| matches!(b, b'"' | b' ' | b'\n' | b'%') || self.boolean && is_symbol(*b);
        let end = self.rest.iter().position(ends);
        end.unwrap_or(self.rest.len())
    }

    /// Whether each word is a term by itself: in boolean mode with the parser ngram.
    fn reads_words(&self) -> bool {
        self.boolean && self.ngram_chars().is_some()
    }

    /// The word at the start of the rest; `None`: it begins with another character, which is
    /// skipped.
    fn word(&mut self) -> Option<&'t [u8]> {
        let text = &self.rest[..self.term_len()];
        let word = self.tokenizer.whole_words(text).next();
        let at_start = word.filter(|word| text.starts_with(word.bytes));
        let len = match at_start {
            Some(word) => word.bytes.len(),
            None => self.tokenizer.collation.charset.step(self.rest).max(1),
        };
        let (taken, rest) = self.rest.split_at(len.min(self.rest.len()));
        self.rest = rest;
        at_start.map(|_| taken)
    }

    fn unexpected(&self, expected: Option<&str>) -> SqlError {
        let found = match self.next {
            Lexeme::End => "$end".to_string(),
            Lexeme::Symbol(symbol) => format!("'{}'", char::from(symbol)),
            Lexeme::Number(_) => "FTS_NUMB".into(),
            Lexeme::Term(_) => "FTS_TERM".into(),
            Lexeme::Quoted(_) => "FTS_TEXT".into(),
        };
        let mut message = format!("syntax error, unexpected {found}");
        if let Some(expected) = expected {
            message.push_str(&format!(", expecting {expected}"));
        }
        SqlError::with_message(ErrorCode::ER_PARSE_ERROR, message)
    }

    fn accept(&mut self, symbol: u8) -> bool {
        let found = self.next == Lexeme::Symbol(symbol);
        if found {
            self.advance();
        }
        found
    }

    /// The items up to the end, or to a closing parenthesis.
    fn list(&mut self, depth: usize) -> Result<Vec<Node>, SqlError> {
        if depth > DEPTH_MAX {
            let message = "too many levels of parentheses in a full-text search";
            return Err(SqlError::with_message(ErrorCode::ER_PARSE_ERROR, message));
        }
        let mut list = Vec::new();
        loop {
            let operator = self.prefix();
            let item = match self.next {
                Lexeme::Symbol(b'(') => {
                    self.advance();
                    let nested = self.list(depth + 1)?;
                    if !self.accept(b')') {
                        return Err(self.unexpected(None));
                    }
                    (!nested.is_empty()).then_some(Node::Nested(nested))
                }
                Lexeme::Term(_) | Lexeme::Number(_) | Lexeme::Symbol(b'*') => {
                    let term = self.starred()?;
                    let truncated = self.boolean && self.next == Lexeme::Symbol(b'*');
                    let mut words = match self.ngram_chars() {
                        Some(chars) if self.boolean => self.ngram_term(term, chars, truncated),
                        _ => self.term(term),
                    };
                    if self.accept(b'*')
                        && let Some(words) = &mut words
                    {
                        truncate(words);
                    }
                    words
                }
                Lexeme::Quoted(text) => {
                    self.advance();
                    self.phrase(text)?
                }
                _ if operator.is_some() => return Err(self.unexpected(None)),
                _ => return Ok(list),
            };
            match (operator, item) {
                (Some(operator), item) => {
                    let operator = Node::Operator(operator);
                    list.push(Node::List(
                        [Some(operator), item].into_iter().flatten().collect(),
                    ));
                }
                (None, item) => list.extend(item),
            }
        }
    }

    /// A term, before which stars have no meaning.
    fn starred(&mut self) -> Result<&'t [u8], SqlError> {
        while self.accept(b'*') {}
        match self.next {
            Lexeme::Term(term) | Lexeme::Number(term) => {
                self.advance();
                Ok(term)
            }
            _ => Err(self.unexpected(Some("FTS_TERM or FTS_NUMB or '*'"))),
        }
    }

    fn prefix(&mut self) -> Option<Operator> {
        let Lexeme::Symbol(symbol) = self.next else {
            return None;
        };
        let operator = match symbol {
            b'+' => Operator::Required,
            b'-' => Operator::Excluded,
            b'~' => Operator::Negated,
            b'<' => Operator::Lower,
            b'>' => Operator::Higher,
            _ => return None,
        };
        self.advance();
        Some(operator)
    }

    /// The words of a term. A word that is too long is left out, and one that is too short unless
    /// it is the first.
    fn term(&self, term: &[u8]) -> Option<Node> {
        let options = self.tokenizer.options;
        let mut words = Vec::new();
        for token in self.tokenizer.words(term) {
            if options.ngram_chars > 0 {
                words.push(word(&token));
                continue;
            }
            let short = token.chars < usize::from(options.min_chars);
            let long = token.chars > usize::from(options.max_chars);
            if long || short && !words.is_empty() {
                continue;
            }
            words.push(word(&token));
        }
        match words.len() {
            0 => None,
            1 => words.pop(),
            _ => Some(Node::List(words)),
        }
    }

    fn ngram_chars(&self) -> Option<usize> {
        let chars = usize::from(self.tokenizer.options.ngram_chars);
        (chars > 0).then_some(chars)
    }

    /// The n-grams of a word. A shorter word has only itself.
    fn ngrams(&self, word: &Token<'_>, chars: usize) -> Vec<Vec<u8>> {
        if word.chars < chars {
            return vec![word.bytes.to_vec()];
        }
        let ngrams = self.tokenizer.words(word.bytes);
        ngrams.map(|ngram| ngram.bytes.to_vec()).collect()
    }

    /// A term of a search by n-grams: each word is a phrase of its n-grams. A truncated word that
    /// is shorter than an n-gram finds the n-grams that begin with it.
    fn ngram_term(&self, term: &[u8], chars: usize, truncated: bool) -> Option<Node> {
        let words: Vec<Token<'_>> = self.tokenizer.whole_words(term).collect();
        let last = words.len().saturating_sub(1);
        let node = |(n, token): (usize, &Token<'_>)| match n == last && truncated {
            true if token.chars < chars => word(token),
            _ => Node::Phrase {
                words: self.ngrams(token, chars),
                distance: None,
            },
        };
        let mut nodes: Vec<Node> = words.iter().enumerate().map(node).collect();
        match nodes.len() {
            0 => None,
            1 => nodes.pop(),
            _ => Some(Node::List(nodes)),
        }
    }

    fn phrase(&mut self, text: &[u8]) -> Result<Option<Node>, SqlError> {
        let mut distance = None;
        if self.accept(b'@') {
            let Lexeme::Number(digits) = self.next else {
                return Err(self.unexpected(Some("FTS_NUMB")));
            };
            let number = std::str::from_utf8(digits).unwrap_or_default().parse();
            distance = Some(number.unwrap_or(u64::MAX));
            self.advance();
        }
        if text.is_empty() {
            return Ok(None);
        }
        let words = self.tokenizer.whole_words(text);
        let words = match self.ngram_chars() {
            Some(chars) => words.flat_map(|word| self.ngrams(&word, chars)).collect(),
            None => words.map(|word| word.bytes.to_vec()).collect(),
        };
        Ok(Some(Node::Phrase { words, distance }))
    }
}

fn word(token: &Token<'_>) -> Node {
    Node::Word {
        word: token.bytes.to_vec(),
        truncated: false,
    }
}

/// Truncates the last word of a term.
fn truncate(node: &mut Node) {
    match node {
        Node::Word { truncated, .. } => *truncated = true,
        Node::List(words) => {
            if let Some(last) = words.last_mut() {
                truncate(last);
            }
        }
        _ => {}
    }
}
