//! The lexer. It produces tokens as ranges of the text, without allocation.
//!
//! It follows the state machine of MySQL's lexer (sql/sql_lex.cc, `lex_one_token`): which bytes
//! form an identifier, when a word may be a keyword, how numbers end, what an executable comment
//! is. It never fails. An invalid token is [`TokenKind::Invalid`], which the parser reports as a
//! syntax error at its position.

use crate::keywords::Kw;
use crate::watch::{STRIDE, Watch};

mod token;

pub use token::{LexMode, SERVER_VERSION, Token, TokenKind};

// Byte classes.
const SPACE: u8 = 1;
const DIGIT: u8 = 2;
/// May be part of an identifier.
const IDENT: u8 = 4;
const HEX: u8 = 8;

static CLASS: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut table = [0u8; 256];
    let mut i = 0;
    while i < 256 {
        let b = i as u8;
        let mut class = 0;
        if matches!(b, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c) {
            class |= SPACE;
        }
        if b.is_ascii_digit() {
            class |= DIGIT;
        }
        if b.is_ascii_alphanumeric() || b == b'_' || b == b'$' || b >= 0x80 {
            class |= IDENT;
        }
        if b.is_ascii_hexdigit() {
            class |= HEX;
        }
        table[i] = class;
        i += 1;
    }
    table
}

#[inline]
fn is(b: u8, class: u8) -> bool {
    CLASS[b as usize] & class != 0
}

/// Whether MySQL skips this byte between tokens.
#[inline]
pub fn is_space(b: u8) -> bool {
    is(b, SPACE)
}

/// The last token was a dot behind an identifier: no keyword may follow.
const AFTER_DOT: u8 = 1;
/// The last token was an identifier right before a dot, which begins no number.
const AFTER_IDENT: u8 = 2;
/// The last token was `@@`, which a name must follow without a blank.
const AFTER_AT: u8 = 4;
/// The last token may be followed by optimizer hints.
const AFTER_HINTED: u8 = 8;

/// Walks one text. `next` after the end keeps returning `End`.
///
/// Only the first 4 GiB of a text are read; `max_allowed_packet` is at most 1 GiB.
#[derive(Clone, Debug)]
pub struct Lexer<'a> {
    text: &'a [u8],
    pos: usize,
    mode: LexMode,
    /// Whether the position is inside `/*! … */`, whose end must be skipped.
    in_version_comment: bool,
    /// The properties of the last token that concern the next one: a set of `AFTER_*`.
    after: u8,
    watch: Option<&'a Watch<'a>>,
    /// The position at which [`Self::watch`] is checked next.
    look_at: usize,
}

impl<'a> Lexer<'a> {
    pub fn new(text: &'a [u8], mode: LexMode) -> Self {
        let text = &text[..text.len().min(u32::MAX as usize)];
        Lexer {
            text,
            pos: 0,
            mode,
            in_version_comment: false,
            after: 0,
            watch: None,
            look_at: usize::MAX,
        }
    }

    /// As [`Self::new`] for a text that may be large: with a watch, the text ends early where the
    /// statement does.
    #[inline]
    pub(crate) fn watched(text: &'a [u8], mode: LexMode, watch: Option<&'a Watch<'a>>) -> Self {
        let mut lexer = Lexer::new(text, mode);
        if watch.is_some() {
            lexer.watch = watch;
            lexer.look_at = STRIDE;
        }
        lexer
    }

    /// Reports the bytes read so far.
    #[cold]
    fn look(&mut self) {
        let bytes = self.pos + STRIDE - self.look_at;
        if self.watch.is_some_and(|watch| !watch.look(bytes)) {
            self.text = &self.text[..self.pos];
        }
        self.look_at = self.pos + STRIDE;
    }

    /// The position where the next token is searched.
    #[inline]
    pub fn position(&self) -> usize {
        self.pos
    }

    /// Continues at `pos`, which must not be inside a token.
    #[inline]
    pub fn jump(&mut self, pos: usize) {
        self.pos = pos.min(self.text.len());
        self.after = 0;
    }

    #[inline]
    fn peek(&self, ahead: usize) -> u8 {
        self.text.get(self.pos + ahead).copied().unwrap_or(0)
    }

    /// Returns the next token.
    #[inline]
    pub fn next_token(&mut self) -> Token {
        let after = std::mem::take(&mut self.after);
        if self.pos >= self.look_at {
            self.look();
        }
        let before = self.pos;
        let after_at = after & AFTER_AT != 0;
        if after_at && is(self.peek(0), SPACE) {
            return self.token(TokenKind::Invalid, before);
        }
        if let Some(special) = self.skip_blanks(after & AFTER_HINTED != 0) {
            return special;
        }
        let start = self.pos;
        let Some(&b) = self.text.get(start) else {
            // An executable comment without an end.
            let kind = if std::mem::take(&mut self.in_version_comment) {
                TokenKind::Invalid
            } else {
                TokenKind::End
            };
            return self.token(kind, start);
        };
        if after & AFTER_DOT != 0 && start == before && is(b, IDENT) {
            return self.plain_word(start);
        }
        match b {
            b'0'..=b'9' => self.number(start),
            b'.' => self.dot(start, after & AFTER_IDENT != 0 && start == before),
            b'\'' => self.string(start, TokenKind::Str),
            b'"' if self.mode.has(LexMode::ANSI_QUOTES) => self.quoted_ident(start, b'"'),
            b'"' => self.string(start, TokenKind::Str),
            b'`' => self.quoted_ident(start, b'`'),
            b'@' => self.at(start),
            _ if is(b, IDENT) => self.word(start, b, after_at),
            _ => self.operator(start, b),
        }
    }

    #[inline]
    fn token(&self, kind: TokenKind, start: usize) -> Token {
        Token {
            kind,
            kw: Kw::Other,
            start: start as u32,
            end: self.pos as u32,
        }
    }

    /// Skips blanks and comments. Returns a token for a hint or an unterminated comment.
    #[inline]
    fn skip_blanks(&mut self, hints: bool) -> Option<Token> {
        loop {
            let &b = self.text.get(self.pos)?;
            if is(b, SPACE) {
                self.pos += 1;
                continue;
            }
            let comment = match b {
                b'#' => self.line_comment(),
                b'-' => self.peek(1) == b'-' && self.is_dash_comment() && self.line_comment(),
                b'/' if self.peek(1) == b'*' => {
                    if hints && self.peek(2) == b'+' {
                        return Some(self.hint());
                    }
                    if let Some(invalid) = self.block_comment() {
                        return Some(invalid);
                    }
                    true
                }
                b'*' if self.in_version_comment && self.peek(1) == b'/' => {
                    self.pos += 2;
                    self.in_version_comment = false;
                    true
                }
                _ => false,
            };
            if !comment {
                return None;
            }
        }
    }

    /// Whether `--` starts a comment: only before a blank, a control character or the end.
    fn is_dash_comment(&self) -> bool {
        self.text
            .get(self.pos + 2)
            .is_none_or(|&b| is(b, SPACE) || b < 0x20 || b == 0x7f)
    }

    fn line_comment(&mut self) -> bool {
        self.pos = memchr::memchr(b'\n', &self.text[self.pos..])
            .map_or(self.text.len(), |n| self.pos + n + 1);
        true
    }

    fn hint(&mut self) -> Token {
        let start = self.pos;
        match memchr::memmem::find(&self.text[start + 3..], b"*/") {
            Some(n) => {
                self.pos = start + 3 + n + 2;
                self.token(TokenKind::Hint, start)
            }
            None => self.invalid_to_end(start),
        }
    }

    fn invalid_to_end(&mut self, start: usize) -> Token {
        self.pos = self.text.len();
        self.token(TokenKind::Invalid, start)
    }

    /// Handles `/*`: skips the comment, or enters it if its content must be executed.
    fn block_comment(&mut self) -> Option<Token> {
        let start = self.pos;
        if self.peek(2) == b'!' {
            let digits = self.text[start + 3..]
                .iter()
                .take(6)
                .take_while(|b| b.is_ascii_digit())
                .count();
            // Five digits are a version, and so are six if all are digits. Fewer belong to the
            // content.
            if digits < 5 {
                self.pos = start + 3;
                self.in_version_comment = true;
                return None;
            }
            let version = self.text[start + 3..start + 3 + digits]
                .iter()
                .fold(0, |v, b| v * 10 + u32::from(b - b'0'));
            if version <= SERVER_VERSION {
                self.pos = start + 3 + digits;
                self.in_version_comment = true;
                return None;
            }
            return self.skip_nested(start);
        }
        match memchr::memmem::find(&self.text[start + 2..], b"*/") {
            Some(n) => {
                self.pos = start + 2 + n + 2;
                None
            }
            None => Some(self.invalid_to_end(start)),
        }
    }

    /// Skips a comment for a newer version, within which comments may be nested one level deep.
    fn skip_nested(&mut self, start: usize) -> Option<Token> {
        let mut at = start + 3;
        while at + 1 < self.text.len() {
            match &self.text[at..at + 2] {
                b"*/" => {
                    self.pos = at + 2;
                    return None;
                }
                b"/*" => match memchr::memmem::find(&self.text[at + 2..], b"*/") {
                    Some(n) => at += 2 + n + 2,
                    None => break,
                },
                _ => at += 1,
            }
        }
        Some(self.invalid_to_end(start))
    }

    #[inline]
    fn skip_class(&mut self, class: u8) {
        while self.text.get(self.pos).is_some_and(|&b| is(b, class)) {
            self.pos += 1;
        }
    }

    /// Records whether a dot follows directly.
    #[inline]
    fn end_of_ident(&mut self) {
        if self.peek(0) == b'.' {
            self.after |= AFTER_IDENT;
        }
    }

    /// A word that cannot be a keyword, because it follows a dot.
    fn plain_word(&mut self, start: usize) -> Token {
        self.skip_class(IDENT);
        self.end_of_ident();
        self.token(TokenKind::Word, start)
    }

    #[inline]
    fn word(&mut self, start: usize, first: u8, after_at: bool) -> Token {
        if self.peek(1) == b'\'' {
            match first {
                b'x' | b'X' => return self.quoted_digits(start, HEX, TokenKind::HexString),
                b'b' | b'B' => return self.quoted_digits(start, 0, TokenKind::BitString),
                b'n' | b'N' => {
                    self.pos += 1;
                    return self.string(start, TokenKind::NStr);
                }
                _ => {}
            }
        }
        self.pos += 1;
        self.skip_class(IDENT);
        let word = &self.text[start..self.pos];
        self.end_of_ident();
        if self.after & AFTER_IDENT != 0
            && !after_at
            && self.text.get(self.pos + 1).is_some_and(|&b| is(b, IDENT))
        {
            // `select.x`: directly before a dot and a name, every word is a name, except in
            // `@@global.x`.
            return self.token(TokenKind::Word, start);
        }
        if first == b'_' && is_charset(&word[1..]) {
            return self.token(TokenKind::Introducer, start);
        }
        let mut kw = Kw::of_identifier(word);
        if kw.is_function() && !self.parenthesis_follows() {
            kw = Kw::Other;
        }
        if let Kw::SELECT | Kw::INSERT | Kw::REPLACE | Kw::UPDATE | Kw::DELETE = kw {
            self.after |= AFTER_HINTED;
        }
        Token {
            kind: TokenKind::Word,
            kw,
            start: start as u32,
            end: self.pos as u32,
        }
    }

    fn parenthesis_follows(&self) -> bool {
        let mut at = self.pos;
        if self.mode.has(LexMode::IGNORE_SPACE) {
            while self.text.get(at).is_some_and(|&b| is(b, SPACE)) {
                at += 1;
            }
        }
        self.text.get(at) == Some(&b'(')
    }

    /// `x'1f'`, or `b'01'` (class 0: bits). An odd number of hexadecimal digits is invalid.
    fn quoted_digits(&mut self, start: usize, class: u8, kind: TokenKind) -> Token {
        self.pos = start + 2;
        let first = self.pos;
        while self.text.get(self.pos).is_some_and(|&b| {
            if class == 0 {
                matches!(b, b'0' | b'1')
            } else {
                is(b, class)
            }
        }) {
            self.pos += 1;
        }
        let odd = class != 0 && (self.pos - first) % 2 == 1;
        if self.peek(0) != b'\'' || odd {
            return self.token(TokenKind::Invalid, start);
        }
        self.pos += 1;
        self.token(kind, start)
    }

    /// Reads a number. The position is at its first digit.
    #[inline]
    fn number(&mut self, start: usize) -> Token {
        if self.text[start] == b'0'
            && matches!(self.peek(1), b'x' | b'b')
            && let Some(token) = self.prefixed_number(start)
        {
            return token;
        }
        self.skip_class(DIGIT);
        let b = self.peek(0);
        if !is(b, IDENT) {
            if b != b'.' {
                return self.token(TokenKind::Int, start);
            }
            self.pos += 1;
            return self.fraction(start);
        }
        if matches!(b, b'e' | b'E') {
            let sign = usize::from(matches!(self.peek(1), b'+' | b'-'));
            if is(self.peek(1 + sign), DIGIT) {
                self.pos += 1 + sign;
                self.skip_class(DIGIT);
                return self.token(TokenKind::Float, start);
            }
        }
        self.plain_word(start)
    }

    /// `0x1f` or `0b01`, unless the digits are followed by more characters of an identifier.
    fn prefixed_number(&mut self, start: usize) -> Option<Token> {
        let hex = self.text[start + 1] == b'x';
        let digits = &self.text[start + 2..];
        let n = digits
            .iter()
            .take_while(|&&b| {
                if hex {
                    is(b, HEX)
                } else {
                    matches!(b, b'0' | b'1')
                }
            })
            .count();
        if n == 0 || digits.get(n).is_some_and(|&b| is(b, IDENT)) {
            return None;
        }
        self.pos = start + 2 + n;
        Some(self.token(
            if hex {
                TokenKind::HexNumber
            } else {
                TokenKind::BitNumber
            },
            start,
        ))
    }

    /// Reads the fraction of a number, after its point.
    fn fraction(&mut self, start: usize) -> Token {
        self.skip_class(DIGIT);
        if !matches!(self.peek(0), b'e' | b'E') {
            return self.token(TokenKind::Decimal, start);
        }
        let sign = usize::from(matches!(self.peek(1), b'+' | b'-'));
        if !is(self.peek(1 + sign), DIGIT) {
            self.pos += 1;
            return self.token(TokenKind::Invalid, start);
        }
        self.pos += 1 + sign;
        self.skip_class(DIGIT);
        self.token(TokenKind::Float, start)
    }

    fn dot(&mut self, start: usize, after_ident: bool) -> Token {
        let next = self.peek(1);
        self.pos += 1;
        if is(next, DIGIT) && !after_ident {
            return self.fraction(start);
        }
        if is(next, IDENT) {
            self.after |= AFTER_DOT;
        }
        self.token(TokenKind::Dot, start)
    }

    /// Reads a string. The position is at its opening quote (after `n` for NStr).
    #[inline]
    fn string(&mut self, start: usize, kind: TokenKind) -> Token {
        let no_backslash = self.mode.has(LexMode::NO_BACKSLASH_ESCAPES);
        match string_end(self.text, self.pos, no_backslash, self.watch) {
            Some(end) => {
                self.pos = end;
                self.token(kind, start)
            }
            None => self.invalid_to_end(start),
        }
    }

    /// Reads a quoted name, in which a doubled quote means one quote. The position is at its
    /// opening quote.
    fn quoted_ident(&mut self, start: usize, quote: u8) -> Token {
        let mut at = self.pos + 1;
        loop {
            let Some(n) = memchr::memchr(quote, &self.text[at..]) else {
                return self.invalid_to_end(start);
            };
            at += n + 1;
            if self.text.get(at) != Some(&quote) {
                break;
            }
            at += 1;
        }
        self.pos = at;
        self.end_of_ident();
        self.token(TokenKind::QuotedIdent, start)
    }

    fn at(&mut self, start: usize) -> Token {
        self.pos += 1;
        match self.peek(0) {
            b'@' => {
                self.pos += 1;
                self.after |= AFTER_AT;
                self.token(TokenKind::AtAt, start)
            }
            b'\'' => self.string(start, TokenKind::UserVar),
            quote @ (b'`' | b'"') => {
                let token = if quote == b'`' || self.mode.has(LexMode::ANSI_QUOTES) {
                    self.quoted_ident(start, quote)
                } else {
                    self.string(start, TokenKind::UserVar)
                };
                let kind = if token.kind == TokenKind::Invalid {
                    TokenKind::Invalid
                } else {
                    TokenKind::UserVar
                };
                Token { kind, ..token }
            }
            _ => {
                while self
                    .text
                    .get(self.pos)
                    .is_some_and(|&b| is(b, IDENT) || b == b'.')
                {
                    self.pos += 1;
                }
                self.token(TokenKind::UserVar, start)
            }
        }
    }

    #[inline]
    fn operator(&mut self, start: usize, b: u8) -> Token {
        use TokenKind::*;
        let (n, kind) = match (b, self.peek(1), self.peek(2)) {
            (b',', ..) => (1, Comma),
            (b'(', ..) => (1, LParen),
            (b')', ..) => (1, RParen),
            (b';', ..) => (1, Semicolon),
            (b'*', ..) => (1, Star),
            (b'+', ..) => (1, Plus),
            (b'-', b'>', b'>') => (3, LongArrow),
            (b'-', b'>', _) => (2, Arrow),
            (b'-', ..) => (1, Minus),
            (b'/', ..) => (1, Slash),
            (b'%', ..) => (1, Percent),
            (b'^', ..) => (1, Caret),
            (b'~', ..) => (1, Tilde),
            (b'?', ..) => (1, Marker),
            (b'=' | b'!' | b'<' | b'>', ..) => self.comparison(),
            (b'&', b'&', _) => (2, AmpAmp),
            (b'&', ..) => (1, Amp),
            (b'|', b'|', _) => (2, PipePipe),
            (b'|', ..) => (1, Pipe),
            (b':', b'=', _) => (2, Assign),
            (b'{', ..) => (1, LBrace),
            (b'}', ..) => (1, RBrace),
            _ => (1, Invalid),
        };
        self.pos += n;
        self.token(kind, start)
    }

    /// An operator of `=`, `!`, `<` and `>`. MySQL first reads as many of these characters as an
    /// operator may have, and then looks up the operator. So `a=!b` is an error, and `!!a` is `!a`.
    fn comparison(&self) -> (usize, TokenKind) {
        use TokenKind::*;
        let may_follow = |b: u8| matches!(b, b'=' | b'!' | b'<' | b'>');
        let mut n = 1 + usize::from(may_follow(self.peek(1)));
        if self.peek(0) == b'<' && n == 2 && matches!(self.peek(2), b'=' | b'!' | b'>') {
            n = 3;
        }
        let kind = match &self.text[self.pos..self.pos + n] {
            b"=" => Eq,
            b"!=" | b"<>" => Ne,
            b"<=>" => NullSafeEq,
            b"<" => Lt,
            b"<=" => Le,
            b">" => Gt,
            b">=" => Ge,
            b"<<" => ShiftLeft,
            b">>" => ShiftRight,
            [b'!', ..] => Bang,
            _ => Invalid,
        };
        (n, kind)
    }
}

/// The end (after the closing quote) of the string with its opening quote at `open`. `None` if it
/// is not closed.
#[inline]
pub(crate) fn string_end(
    text: &[u8],
    open: usize,
    no_backslash: bool,
    watch: Option<&Watch<'_>>,
) -> Option<usize> {
    let quote = text[open];
    let mut at = open + 1;
    let mut look_at = open + STRIDE;
    loop {
        let found = if no_backslash {
            memchr::memchr(quote, &text[at..])
        } else {
            memchr::memchr2(quote, b'\\', &text[at..])
        };
        at += found?;
        if at >= look_at {
            look_at = at + STRIDE;
            if watch.is_some_and(|watch| !watch.look(STRIDE)) {
                return None;
            }
        }
        if text[at] == b'\\' && !no_backslash {
            at += 2;
            if at > text.len() {
                return None;
            }
        } else if text.get(at + 1) == Some(&quote) {
            at += 2;
        } else {
            return Some(at + 1);
        }
    }
}

/// Whether a name is that of a character set, which can be an introducer.
fn is_charset(name: &[u8]) -> bool {
    const NAMES: &[&str] = &[
        "utf8mb4", "utf8", "utf8mb3", "latin1", "ascii", "binary", "armscii8", "big5", "cp1250",
        "cp1251", "cp1256", "cp1257", "cp850", "cp852", "cp866", "cp932", "dec8", "eucjpms",
        "euckr", "gb18030", "gb2312", "gbk", "geostd8", "greek", "hebrew", "hp8", "keybcs2",
        "koi8r", "koi8u", "latin2", "latin5", "latin7", "macce", "macroman", "sjis", "swe7",
        "tis620", "ucs2", "ujis", "utf16", "utf16le", "utf32",
    ];
    NAMES
        .iter()
        .any(|n| n.as_bytes().eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests;
