//! A statement as tokens that can be removed, replaced and printed again.

use crate::lexer::{LexMode, Lexer, TokenKind};

/// A token with its text.
#[derive(Clone, Debug)]
struct Piece {
    kind: TokenKind,
    text: Vec<u8>,
    /// The text in upper case if it is an unquoted word, otherwise empty.
    word: String,
    /// Whether blanks or a comment stand before it.
    apart: bool,
}

/// See the module's header.
#[derive(Clone, Debug)]
pub(super) struct Tokens(Vec<Piece>);

impl Tokens {
    /// The tokens of a text up to a semicolon or its end.
    pub fn new(sql: &[u8], mode: LexMode) -> Tokens {
        let text = without_comments(sql, mode);
        let mut lexer = Lexer::new(&text, mode);
        let mut pieces = Vec::new();
        let mut before = 0;
        loop {
            let token = lexer.next_token();
            if matches!(token.kind, TokenKind::End | TokenKind::Semicolon) {
                return Tokens(pieces);
            }
            let bytes = token.text(&text);
            pieces.push(Piece {
                kind: token.kind,
                text: bytes.to_vec(),
                word: match token.kind {
                    TokenKind::Word => String::from_utf8_lossy(bytes).to_ascii_uppercase(),
                    _ => String::new(),
                },
                apart: token.start > before,
            });
            before = token.end;
            if token.kind == TokenKind::Invalid {
                // The parser reports it.
                let rest = text.get(before as usize..).unwrap_or_default().to_vec();
                pieces.push(Piece {
                    kind: TokenKind::Invalid,
                    text: rest,
                    word: String::new(),
                    apart: false,
                });
                return Tokens(pieces);
            }
        }
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The unquoted word at `at` in upper case; empty for another token, and behind the end.
    pub fn word(&self, at: usize) -> &str {
        self.0.get(at).map_or("", |p| &p.word)
    }

    /// The kind of the token at `at`; End behind the end.
    pub fn kind(&self, at: usize) -> TokenKind {
        self.0.get(at).map_or(TokenKind::End, |p| p.kind)
    }

    /// The identifier at `at`, without its quotes.
    pub fn name(&self, at: usize) -> String {
        let Some(piece) = self.0.get(at) else {
            return String::new();
        };
        let text = String::from_utf8_lossy(&piece.text).into_owned();
        match (piece.kind, text.chars().next()) {
            (TokenKind::QuotedIdent, Some(quote)) if text.len() >= 2 => {
                let doubled = format!("{quote}{quote}");
                text[1..text.len() - 1].replace(&doubled, &quote.to_string())
            }
            _ => text,
        }
    }

    /// The end of the name at `at`, which may have a database in front.
    pub fn after_name(&self, at: usize) -> usize {
        match self.kind(at + 1) {
            TokenKind::Dot => at + 3,
            _ => at + 1,
        }
    }

    /// The name at `at`: its database, if it has one, and itself.
    pub fn object_name(&self, at: usize) -> (Option<String>, String) {
        match self.kind(at + 1) {
            TokenKind::Dot => (Some(self.name(at)), self.name(at + 2)),
            _ => (None, self.name(at)),
        }
    }

    /// Removes the tokens from `from` to before `to`.
    pub fn remove(&mut self, from: usize, to: usize) {
        let end = to.min(self.0.len());
        if from < end {
            self.0.drain(from..end);
        }
    }

    pub fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }

    /// Inserts a text, which counts as one token.
    pub fn insert(&mut self, at: usize, text: &str) {
        let piece = Piece {
            kind: TokenKind::Word,
            text: text.into(),
            word: text.to_ascii_uppercase(),
            apart: true,
        };
        self.0.insert(at.min(self.0.len()), piece);
    }

    /// Replaces the tokens from `from` to before `to` by a text.
    pub fn replace(&mut self, from: usize, to: usize, text: &str) {
        self.remove(from, to);
        self.insert(from, text);
    }

    /// The place of a word outside of parentheses, from `from` on.
    pub fn find(&self, from: usize, word: &str) -> Option<usize> {
        self.find_before(from, self.len(), word)
    }

    /// As [`Self::find`], before `end`.
    pub fn find_before(&self, from: usize, end: usize, word: &str) -> Option<usize> {
        let mut at = from;
        while at < end {
            if self.word(at) == word {
                return Some(at);
            }
            at = self.after(at);
        }
        None
    }

    /// The place of the next comma outside of parentheses, or the end, or the parenthesis that
    /// closes those around `from`.
    pub fn find_comma(&self, from: usize) -> usize {
        let mut at = from;
        while at < self.len() && !matches!(self.kind(at), TokenKind::Comma | TokenKind::RParen) {
            at = self.after(at);
        }
        at.min(self.len())
    }

    /// The place behind the token at `at`, or behind the parenthesis that closes the one at `at`.
    pub fn after(&self, at: usize) -> usize {
        if self.kind(at) != TokenKind::LParen {
            return at + 1;
        }
        let (mut depth, mut at) = (0, at);
        while at < self.len() {
            match self.kind(at) {
                TokenKind::LParen => depth += 1,
                TokenKind::RParen => depth -= 1,
                _ => {}
            }
            at += 1;
            if depth == 0 {
                break;
            }
        }
        at
    }

    /// The place behind an option at `at`: its name, `=` or not, and its value.
    pub fn after_option(&self, at: usize) -> usize {
        match self.kind(at + 1) {
            TokenKind::Eq => at + 3,
            _ => at + 2,
        }
    }

    /// Removes IF NOT EXISTS at `at`; whether it was there.
    pub fn remove_if_not_exists(&mut self, at: usize) -> bool {
        self.remove_words(at, &["IF", "NOT", "EXISTS"])
    }

    /// Removes IF EXISTS at `at`; whether it was there.
    pub fn remove_if_exists(&mut self, at: usize) -> bool {
        self.remove_words(at, &["IF", "EXISTS"])
    }

    fn remove_words(&mut self, at: usize, words: &[&str]) -> bool {
        let found = words
            .iter()
            .enumerate()
            .all(|(n, w)| self.word(at + n) == *w);
        if found {
            self.remove(at, at + words.len());
        }
        found
    }

    /// Removes each `WAIT n` and `NOWAIT` outside of parentheses.
    pub fn remove_wait(&mut self) {
        let mut at = 0;
        while at < self.len() {
            self.remove_wait_at(at);
            at = self.after(at);
        }
    }

    /// Removes `WAIT n` or `NOWAIT` at `at`.
    pub fn remove_wait_at(&mut self, at: usize) {
        match self.word(at) {
            "NOWAIT" => self.remove(at, at + 1),
            "WAIT" if self.kind(at + 1) == TokenKind::Int => self.remove(at, at + 2),
            _ => {}
        }
    }

    /// The text.
    pub fn print(&self) -> Vec<u8> {
        self.print_range(0, self.len())
    }

    /// The text of some tokens.
    pub fn print_range(&self, from: usize, to: usize) -> Vec<u8> {
        let mut out = Vec::new();
        for piece in &self.0[from.min(self.len())..to.min(self.len())] {
            if piece.apart && !out.is_empty() {
                out.push(b' ');
            }
            out.extend_from_slice(&piece.text);
        }
        out
    }
}

/// The text in which each comment is a blank, and those that MariaDB executes (`/*! ... */`,
/// `/*!100301 ... */`, `/*M! ... */`) are text. The binary log has no comment for a later version
/// than the source's: MariaDB makes it an ordinary one.
fn without_comments(sql: &[u8], mode: LexMode) -> Vec<u8> {
    let mut out = Vec::with_capacity(sql.len());
    let (mut at, mut executes) = (0, false);
    while let Some(&b) = sql.get(at) {
        let rest = &sql[at..];
        let end_of = |found: Option<usize>, length: usize| found.map_or(rest.len(), |n| n + length);
        match b {
            b'\'' | b'"' | b'`' => {
                let escapes = b != b'`' && !mode.has(LexMode::NO_BACKSLASH_ESCAPES);
                let length = quoted_length(rest, escapes);
                out.extend_from_slice(&rest[..length]);
                at += length;
            }
            b'#' => {
                out.push(b' ');
                at += end_of(memchr::memchr(b'\n', rest), 1);
            }
            b'-' if rest.starts_with(b"--") && rest.get(2).is_none_or(|b| *b <= b' ') => {
                out.push(b' ');
                at += end_of(memchr::memchr(b'\n', rest), 1);
            }
            b'/' if rest.starts_with(b"/*!") || rest.starts_with(b"/*M!") => {
                at += if rest[2] == b'M' { 4 } else { 3 };
                let digits = sql[at..].iter().take(6).take_while(|b| b.is_ascii_digit());
                let digits = digits.count();
                at += if digits >= 5 { digits } else { 0 };
                out.push(b' ');
                executes = true;
            }
            b'/' if rest.starts_with(b"/*") => {
                out.push(b' ');
                let end = memchr::memmem::find(&rest[2..], b"*/").map(|n| n + 2);
                at += end_of(end, 2);
            }
            b'*' if executes && rest.starts_with(b"*/") => {
                out.push(b' ');
                at += 2;
                executes = false;
            }
            _ => {
                out.push(b);
                at += 1;
            }
        }
    }
    out
}

/// The length of the quoted text at the beginning of `text`.
fn quoted_length(text: &[u8], escapes: bool) -> usize {
    let mut at = 1;
    while let Some(&b) = text.get(at) {
        at += 1;
        match b {
            b'\\' if escapes => at += 1,
            // Two quotes are one, and the second begins another quoted text here.
            _ if b == text[0] => return at,
            _ => {}
        }
    }
    text.len()
}
