//! A search as a list of steps over one document at a time.
//!
//! # Invariants
//! P1. The steps are in the order in which InnoDB runs them. In each list it first adds documents,
//!     then intersects (`+`), then removes (`-`). The items of a list with an operator that is a
//!     term of several words run at once.
//! P2. The sums of ranks are 32-bit numbers that are added in the order of the steps, so that they
//!     are InnoDB's to the last bit.

use std::collections::BTreeSet;

use nfold_types::key::Elements;
use rustc_hash::FxHashMap;

use super::entries::{frequency, truncated_prefix, word_prefix};
use super::query::{Node, Operator};
use super::words::{Token, Tokenizer};

/// A word of a search.
#[derive(Debug, Clone)]
pub struct SearchWord {
    /// The prefix of its entries in the index.
    pub prefix: Vec<u8>,
    /// The sort key, and whether the word is truncated.
    key: (Vec<u8>, bool),
    /// The first word with this sort key. A word and its truncated form have one name, and count as
    /// one word for ranks.
    name: usize,
    /// The number of documents that each step over the word has found.
    pub documents: u64,
    /// Of a name: the inverse document frequency, and the place in the sums of ranks.
    idf: f64,
    position: usize,
}

/// A quoted text.
#[derive(Debug, Clone)]
pub struct Phrase {
    /// The words that are indexed, by their numbers.
    pub indexed: Vec<usize>,
    /// The names of these words.
    names: Vec<usize>,
    /// The words from the first indexed one on.
    words: Vec<Vec<u8>>,
    /// The words may stand in any order within this number of words.
    within: Option<u64>,
}

/// One step.
#[derive(Debug, Clone)]
pub enum Step {
    Word(Operator, usize),
    Phrase(Operator, Phrase),
    /// A list in parentheses, which is a search by itself.
    Nested(Operator, Vec<Step>),
}

/// Entries of which each matching document has one or several.
pub struct Candidates<'p> {
    /// In order; none is a prefix of another.
    pub prefixes: Vec<&'p [u8]>,
    /// Whether a document may have several entries with one prefix.
    pub truncated: bool,
}

/// A search for the documents of one index.
pub struct Program {
    pub tokenizer: Tokenizer,
    pub words: Vec<SearchWord>,
    pub steps: Vec<Step>,
    /// The whole words in the order of their prefixes, and the truncated ones.
    order: Vec<usize>,
    truncated: Vec<usize>,
}

impl Program {
    /// The steps of a parsed search.
    pub fn new(tokenizer: Tokenizer, query: &[Node]) -> Program {
        let mut program = Program {
            tokenizer,
            words: Vec::new(),
            steps: Vec::new(),
            order: Vec::new(),
            truncated: Vec::new(),
        };
        program.steps = program.nested(query);
        program.sort_words();
        program
    }

    /// Whether a phrase needs the text of the documents.
    pub fn reads_texts(&self) -> bool {
        fn any(steps: &[Step]) -> bool {
            steps.iter().any(|step| match step {
                Step::Word(..) => false,
                Step::Phrase(_, phrase) => phrase.words.len() > 1,
                Step::Nested(_, steps) => any(steps),
            })
        }
        any(&self.steps)
    }

    fn nested(&mut self, list: &[Node]) -> Vec<Step> {
        let mut out = Vec::new();
        let mut visit = Visit {
            program: self,
            out: &mut out,
        };
        visit.list(list);
        out
    }

    /// The number of a word.
    fn word(&mut self, word: &[u8], truncated: bool) -> usize {
        let mut key = Vec::new();
        self.tokenizer.sort_key(word, &mut key);
        let prefix = match truncated {
            true => {
                let mut head = Vec::new();
                self.tokenizer.sort_key_prefix(word, &mut head);
                truncated_prefix(&head)
            }
            false => word_prefix(&key),
        };
        let known = self
            .words
            .iter()
            .position(|w| w.key == (key.clone(), truncated));
        known.unwrap_or_else(|| self.push_word((key, truncated), prefix))
    }

    fn push_word(&mut self, key: (Vec<u8>, bool), prefix: Vec<u8>) -> usize {
        let at = self.words.len();
        let name = self.words.iter().position(|w| w.key.0 == key.0);
        self.words.push(SearchWord {
            prefix,
            key,
            name: name.unwrap_or(at),
            documents: 0,
            idf: 0.0,
            position: at,
        });
        at
    }

    /// Adds a step for each of the sort keys of an expanded search. `matched` are the names of the
    /// words that documents have matched before.
    pub fn expand(&mut self, matched: &BTreeSet<usize>, keys: impl Iterator<Item = Vec<u8>>) {
        let mut positions: FxHashMap<usize, usize> = FxHashMap::default();
        for name in matched {
            positions.insert(*name, positions.len());
        }
        for key in keys {
            let key = (key, false);
            let known = self.words.iter().position(|w| w.key == key);
            let word = known.unwrap_or_else(|| {
                let prefix = word_prefix(&key.0);
                self.push_word(key, prefix)
            });
            let next = positions.len();
            positions.entry(self.words[word].name).or_insert(next);
            self.steps.push(Step::Word(Operator::None, word));
        }
        for (name, position) in positions {
            self.words[name].position = position;
        }
        self.sort_words();
    }

    /// Computes the weights of the words, whose documents are counted, for `rows` rows.
    pub fn weigh(&mut self, rows: u64) {
        for name in 0..self.words.len() {
            let forms = self.words.iter().filter(|w| w.name == name);
            self.words[name].idf = match forms.map(|w| w.documents).sum::<u64>() {
                0 => 0.0,
                n if n == rows => 1.0001f64.log10(),
                n => (rows as f64 / n as f64).log10(),
            };
        }
    }

    /// The rank of a document, if it matches. `texts` are its columns, which are read only for
    /// phrases.
    pub fn rank(&self, packed: &[u8], texts: &[Option<&[u8]>]) -> Option<f32> {
        let document = Document {
            program: self,
            frequencies: self.frequencies(packed),
            texts,
        };
        let mut state = State::default();
        document.run(&self.steps, &mut state);
        state.found.then(|| document.sum(&state))
    }

    /// The names of the words that the rank of a document counts, if it matches.
    pub fn matched(&self, packed: &[u8], texts: &[Option<&[u8]>]) -> Option<Vec<usize>> {
        let document = Document {
            program: self,
            frequencies: self.frequencies(packed),
            texts,
        };
        let mut state = State::default();
        document.run(&self.steps, &mut state);
        state.found.then_some(state.words)
    }

    /// The sort key of the word with this name.
    pub fn key_of(&self, name: usize) -> &[u8] {
        &self.words[name].key.0
    }

    /// The frequency of each word in a document.
    fn frequencies(&self, packed: &[u8]) -> Vec<u32> {
        let mut found = vec![0; self.words.len()];
        let mut whole = self.order.iter().peekable();
        for element in Elements(packed) {
            while let Some(&&word) = whole.peek() {
                let prefix = &*self.words[word].prefix;
                if element.starts_with(prefix) {
                    found[word] = frequency(element);
                } else if element < prefix {
                    break;
                }
                whole.next();
            }
            // Of a truncated word, InnoDB counts the first word that begins with it.
            for &word in &self.truncated {
                if found[word] == 0 && element.starts_with(&self.words[word].prefix) {
                    found[word] = frequency(element);
                }
            }
        }
        found
    }

    /// Prepares the comparison with documents: to be called when all words are known.
    fn sort_words(&mut self) {
        let all = 0..self.words.len();
        let (truncated, mut whole): (Vec<usize>, Vec<usize>) =
            all.partition(|word| self.words[*word].key.1);
        whole.sort_unstable_by(|a, b| self.words[*a].prefix.cmp(&self.words[*b].prefix));
        (self.order, self.truncated) = (whole, truncated);
    }

    /// The entries that find all matching documents. `None`: none matches.
    pub fn candidates(&self) -> Option<Candidates<'_>> {
        let mut words = self.covering(&self.steps)?;
        words.sort_unstable();
        words.dedup();
        let truncated = words.iter().any(|w| self.words[*w].key.1);
        let mut prefixes: Vec<&[u8]> = words.iter().map(|w| &*self.words[*w].prefix).collect();
        prefixes.sort_unstable();
        // A shorter prefix finds the entries of a longer one.
        let mut kept: Vec<&[u8]> = Vec::with_capacity(prefixes.len());
        for prefix in prefixes {
            if kept.last().is_none_or(|last| !prefix.starts_with(last)) {
                kept.push(prefix);
            }
        }
        (!kept.is_empty()).then_some(Candidates {
            prefixes: kept,
            truncated,
        })
    }

    /// Words of which each found document has one.
    fn covering(&self, steps: &[Step]) -> Option<Vec<usize>> {
        let mut found: Vec<usize> = Vec::new();
        let mut required = false;
        for step in steps {
            let (operator, words) = match step {
                Step::Word(operator, word) => (*operator, vec![*word]),
                Step::Phrase(operator, phrase) => {
                    let rarest = phrase
                        .indexed
                        .iter()
                        .min_by_key(|w| self.words[**w].documents);
                    (*operator, rarest.copied().into_iter().collect())
                }
                Step::Nested(operator, steps) => {
                    (*operator, self.covering(steps).unwrap_or_default())
                }
            };
            match operator {
                Operator::None | Operator::Lower | Operator::Higher => found.extend(words),
                Operator::Excluded | Operator::Negated => {}
                Operator::Required => {
                    if !required || self.documents(&words) < self.documents(&found) {
                        found = words;
                    }
                    required = true;
                }
            }
        }
        (!found.is_empty()).then_some(found)
    }

    fn documents(&self, words: &[usize]) -> u64 {
        words.iter().map(|w| self.words[*w].documents).sum()
    }
}

/// Runs through the tree of a search in InnoDB's order.
struct Visit<'v> {
    program: &'v mut Program,
    out: &'v mut Vec<Step>,
}

/// Which operators a run through a list processes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// All but required and excluded items.
    First,
    Required,
    Excluded,
}

impl Visit<'_> {
    fn list(&mut self, list: &[Node]) {
        let mut later = false;
        for node in list {
            match node {
                Node::List(items) => later |= self.items(items, Operator::None, Pass::First),
                Node::Operator(_) => {}
                leaf => self.leaf(leaf, Operator::None),
            }
        }
        if later {
            self.passes(list, Operator::None);
        }
    }

    /// The later passes over the lists of a list.
    fn passes(&mut self, list: &[Node], operator: Operator) {
        for node in list {
            if let Node::List(items) = node
                && operator != Operator::Excluded
            {
                self.items(items, operator, Pass::Required);
            }
        }
        for node in list {
            if let Node::List(items) = node {
                self.items(items, operator, Pass::Excluded);
            }
        }
    }

    /// One pass over a list that begins with an operator, or stands behind one. Returns whether an
    /// item waits for a later pass.
    fn items(&mut self, items: &[Node], before: Operator, pass: Pass) -> bool {
        let mut operator = before;
        let (mut waits, mut later) = (false, false);
        for node in items {
            match node {
                Node::Operator(o) => operator = *o,
                Node::List(inner) => {
                    if pass == Pass::First {
                        later |= self.items(inner, operator, Pass::First);
                    }
                }
                leaf => match (operator, pass) {
                    (Operator::Required | Operator::Excluded, Pass::First) => waits = true,
                    (Operator::Required, Pass::Required)
                    | (Operator::Excluded, Pass::Excluded)
                    | (_, Pass::First) => self.leaf(leaf, operator),
                    _ => {}
                },
            }
        }
        if later {
            self.passes(items, operator);
        }
        waits
    }

    fn leaf(&mut self, node: &Node, operator: Operator) {
        let step = match node {
            Node::Word { word, truncated } => {
                Step::Word(operator, self.program.word(word, *truncated))
            }
            Node::Phrase { words, distance } => {
                Step::Phrase(operator, self.phrase(words, *distance))
            }
            Node::Nested(list) => Step::Nested(operator, self.program.nested(list)),
            Node::Operator(_) | Node::List(_) => return,
        };
        self.out.push(step);
    }

    /// Words before the first indexed one do not count.
    fn phrase(&mut self, words: &[Vec<u8>], distance: Option<u64>) -> Phrase {
        let tokenizer = self.program.tokenizer;
        let is_indexed = |word: &Vec<u8>| {
            tokenizer.is_indexed(&Token {
                bytes: word,
                chars: tokenizer.collation.char_len(word),
            })
        };
        let first = words.iter().position(is_indexed).unwrap_or(words.len());
        let words = &words[first..];
        let indexed = words.iter().filter(|word| is_indexed(word));
        let indexed: Vec<&Vec<u8>> = indexed.collect();
        let indexed: Vec<usize> = indexed
            .iter()
            .map(|w| self.program.word(w, false))
            .collect();
        Phrase {
            names: indexed
                .iter()
                .map(|w| self.program.words[*w].name)
                .collect(),
            indexed,
            words: words.to_vec(),
            within: distance.filter(|n| *n > 0),
        }
    }
}

/// The state of one document in the course of the steps.
#[derive(Default)]
struct State {
    found: bool,
    rank: f32,
    /// The names of the words that count for the rank.
    words: Vec<usize>,
    /// A required item has been processed.
    required: bool,
}

impl State {
    fn add_words(&mut self, words: &[usize]) {
        if self.found {
            for word in words {
                if !self.words.contains(word) {
                    self.words.push(*word);
                }
            }
        }
    }

    fn adjust(&mut self, by: f32) {
        if self.found {
            self.rank = (self.rank + by).clamp(-1.0, 1.0);
        }
    }

    /// Adds the document, if it is not there.
    fn add(&mut self, rank: f32) {
        if !self.found {
            self.found = true;
            self.rank = rank;
            self.words.clear();
        }
    }

    /// Applies an item that the document matches, with the rank and the words of the item.
    fn matches(&mut self, operator: Operator, rank: f32, words: &[usize]) {
        match operator {
            Operator::None => self.add(rank),
            Operator::Required => {
                if self.found {
                    self.rank = (self.rank + rank).clamp(-1.0, 1.0);
                } else if !self.required {
                    self.add(rank);
                }
            }
            Operator::Excluded => {
                self.found = false;
                self.words.clear();
            }
            Operator::Negated => self.adjust(-1.0),
            Operator::Lower => {
                self.add(rank);
                self.adjust(-1.0);
            }
            Operator::Higher => {
                self.add(rank);
                self.adjust(1.0);
            }
        }
        self.add_words(words);
    }
}

/// One document, as the steps see it.
struct Document<'d> {
    program: &'d Program,
    frequencies: Vec<u32>,
    texts: &'d [Option<&'d [u8]>],
}

impl Document<'_> {
    fn run(&self, steps: &[Step], state: &mut State) {
        for step in steps {
            let mut nested = State::default();
            let (operator, matches, words): (_, _, &[usize]) = match step {
                Step::Word(operator, word) => {
                    let matches = self.frequencies[*word] > 0;
                    let name = &self.program.words[*word].name;
                    (*operator, matches, std::slice::from_ref(name))
                }
                Step::Phrase(operator, phrase) => {
                    (*operator, self.has_phrase(phrase), phrase.names.as_slice())
                }
                Step::Nested(operator, steps) => {
                    self.run(steps, &mut nested);
                    (*operator, nested.found, nested.words.as_slice())
                }
            };
            if matches {
                state.matches(operator, nested.rank, words);
            } else if operator == Operator::Required {
                state.found = false;
                state.words.clear();
            }
            state.required |= operator == Operator::Required;
        }
    }

    fn sum(&self, state: &State) -> f32 {
        let words = &self.program.words;
        let mut names = state.words.clone();
        names.sort_unstable_by_key(|name| words[*name].position);
        let weight = |name: &usize| {
            // The first form that the document has tells the frequency.
            let forms = words.iter().zip(&self.frequencies);
            let mut forms = forms.filter(|(w, frequency)| w.name == *name && **frequency > 0);
            let frequency = forms.next().map_or(0, |(_, frequency)| *frequency);
            let idf = words[*name].idf;
            (f64::from(frequency) * idf * idf) as f32
        };
        names.iter().map(weight).fold(state.rank, |sum, w| sum + w)
    }

    fn has_phrase(&self, phrase: &Phrase) -> bool {
        if phrase.indexed.is_empty() || phrase.indexed.iter().any(|w| self.frequencies[*w] == 0) {
            return false;
        }
        match phrase.within {
            _ if phrase.words.len() == 1 => true,
            Some(within) => self.are_near(phrase, within),
            None => {
                let mut texts = self.texts.iter().flatten();
                texts.any(|text| self.text_has(text, &phrase.words))
            }
        }
    }

    /// Whether the words stand in a text, one directly behind the other.
    fn text_has(&self, text: &[u8], words: &[Vec<u8>]) -> bool {
        let tokenizer = &self.program.tokenizer;
        let tokens: Vec<&[u8]> = tokenizer.words(text).map(|token| token.bytes).collect();
        let same = |(a, b): (&&[u8], &Vec<u8>)| tokenizer.same(a, b);
        let mut windows = tokens.windows(words.len());
        windows.any(|window| window.iter().zip(words).all(same))
    }

    /// Whether all indexed words stand in `within` words of the document, in any order.
    fn are_near(&self, phrase: &Phrase, within: u64) -> bool {
        let tokenizer = &self.program.tokenizer;
        let texts = self.texts.iter().flatten();
        let tokens: Vec<&[u8]> = texts
            .flat_map(|text| tokenizer.words(text))
            .map(|token| token.bytes)
            .collect();
        let places = |word: &usize| -> Vec<usize> {
            let wanted = &self.program.words[*word].key.0;
            let mut key = Vec::new();
            let same = |token: &[u8]| {
                key.clear();
                tokenizer.sort_key(token, &mut key);
                key == *wanted
            };
            positions(&tokens, same)
        };
        let places: Vec<Vec<usize>> = phrase.indexed.iter().map(places).collect();
        let mut at = vec![0; places.len()];
        loop {
            let current = places.iter().zip(&at).map(|(p, at)| p.get(*at).copied());
            let Some(current) = current.collect::<Option<Vec<usize>>>() else {
                return false;
            };
            let (Some(first), Some(last)) = (current.iter().min(), current.iter().max()) else {
                return false;
            };
            if ((last - first) as u64) < within {
                return true;
            }
            let lowest = current.iter().position(|p| p == first).unwrap_or(0);
            at[lowest] += 1;
        }
    }
}

fn positions(tokens: &[&[u8]], mut same: impl FnMut(&[u8]) -> bool) -> Vec<usize> {
    let all = tokens.iter().enumerate();
    all.filter_map(|(n, token)| same(token).then_some(n))
        .collect()
}
