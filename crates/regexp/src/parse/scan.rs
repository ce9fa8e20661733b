//! Scans the characters of a pattern: quoting, escapes of single characters, comments, positions.

use crate::error::PatternError;

/// A character of the pattern; `code` is [`END`] at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scanned {
    pub code: i64,
    /// A literal: quoted by `\Q`, or written as an escape.
    pub quoted: bool,
}

pub(super) const END: i64 = -1;

impl Scanned {
    /// Whether it is this character, and not quoted.
    pub fn is(self, c: char) -> bool {
        !self.quoted && self.code == i64::from(u32::from(c))
    }

    pub fn is_end(self) -> bool {
        self.code == END
    }

    /// A character that needs no escape.
    pub fn is_plain(self) -> bool {
        !self.quoted && !self.is_end() && !"*?+[(){}^$|\\.".chars().any(|c| self.is(c))
    }

    pub fn is_ascii_letter(self) -> bool {
        !self.quoted && self.byte().is_some_and(|b| b.is_ascii_alphabetic())
    }

    /// The value of an ASCII digit.
    pub fn digit(self) -> Option<u32> {
        let byte = self.byte().filter(|_| !self.quoted)?;
        byte.is_ascii_digit().then(|| u32::from(byte - b'0'))
    }

    fn byte(self) -> Option<u8> {
        u8::try_from(self.code).ok()
    }
}

/// Reads a pattern. Cloned to look ahead.
#[derive(Debug, Clone)]
pub(super) struct Scanner<'p> {
    pattern: &'p [char],
    /// Index of the next character.
    next: usize,
    peeked: Option<i64>,
    line: u32,
    column: u32,
    last: i64,
    in_quote: bool,
    after_backslash: bool,
    /// Cleared for the one character after `(?`, where `#` opens a comment of its own.
    pub end_of_line_comments: bool,
}

fn is_line_end(code: i64) -> bool {
    matches!(code, 0x0a | 0x0d | 0x85 | 0x2028)
}

/// `Pattern_White_Space`
fn is_pattern_space(code: i64) -> bool {
    matches!(
        code,
        0x09..=0x0d | 0x20 | 0x85 | 0x200e | 0x200f | 0x2028 | 0x2029
    )
}

impl<'p> Scanner<'p> {
    pub fn new(pattern: &'p [char]) -> Self {
        Scanner {
            pattern,
            next: 0,
            peeked: None,
            line: 1,
            column: 0,
            last: END,
            in_quote: false,
            after_backslash: false,
            end_of_line_comments: true,
        }
    }

    /// A syntax error at the character read last.
    pub fn syntax(&self) -> PatternError {
        PatternError::Syntax {
            line: self.line,
            column: self.column,
        }
    }

    fn read(&mut self) -> i64 {
        if let Some(code) = self.peeked.take() {
            return code;
        }
        let Some(&c) = self.pattern.get(self.next) else {
            return END;
        };
        self.next += 1;
        let code = i64::from(u32::from(c));
        if is_line_end(code) && !(code == 0x0a && self.last == 0x0d) {
            self.line += 1;
            self.column = 0;
        } else if code != 0x0a {
            self.column += 1;
        }
        self.last = code;
        code
    }

    /// The character that follows as it is written.
    pub fn peek(&mut self) -> i64 {
        match self.peeked {
            Some(code) => code,
            None => {
                let code = self.read();
                // The end is not kept: reading there again answers the same.
                self.peeked = Some(code).filter(|&c| c != END);
                code
            }
        }
    }

    /// Skips the character that [`Self::peek`] returned.
    pub fn skip(&mut self) {
        self.read();
    }

    /// The next character. `comments`: white space and comments are skipped.
    pub fn advance(&mut self, comments: bool) -> Result<Scanned, PatternError> {
        loop {
            let mut code = self.read();
            if self.in_quote {
                let closes = code == i64::from(b'\\') && self.peek() == i64::from(b'E');
                if closes || code == END {
                    self.in_quote = false;
                    self.read();
                    continue;
                }
                return Ok(self.scanned(code, true));
            }
            if self.after_backslash {
                self.after_backslash = false;
                return Ok(self.scanned(code, false));
            }
            if comments {
                code = self.skip_comments(code);
            }
            if code != i64::from(b'\\') {
                return Ok(self.scanned(code, false));
            }
            let after = self.next;
            match u8::try_from(self.peek()) {
                Ok(b'a' | b'c' | b'e' | b'f' | b'n' | b'r' | b't' | b'u' | b'U' | b'x') => {
                    self.read();
                    let (code, end) =
                        unescape(self.pattern, after).ok_or(PatternError::BadEscape)?;
                    self.column += u32::try_from(end - after).unwrap_or(0);
                    self.next = end;
                    return Ok(self.scanned(i64::from(code), true));
                }
                Ok(b'0') => {
                    let code = self.octal()?;
                    return Ok(self.scanned(code, true));
                }
                Ok(b'Q') => {
                    self.in_quote = true;
                    self.read();
                }
                _ => {
                    self.after_backslash = true;
                    return Ok(self.scanned(code, false));
                }
            }
        }
    }

    fn scanned(&mut self, code: i64, quoted: bool) -> Scanned {
        self.end_of_line_comments = true;
        Scanned { code, quoted }
    }

    fn skip_comments(&mut self, mut code: i64) -> i64 {
        loop {
            if code == i64::from(b'#') && self.end_of_line_comments {
                while code != END && !is_line_end(code) {
                    code = self.read();
                }
            }
            if !is_pattern_space(code) {
                return code;
            }
            code = self.read();
        }
    }

    /// `\0` and up to three octal digits, at most 0377.
    fn octal(&mut self) -> Result<i64, PatternError> {
        self.read();
        let mut code = 0;
        for n in 0..3 {
            let digit = self.peek() - i64::from(b'0');
            if !(0..=7).contains(&digit) {
                if n == 0 {
                    return Err(PatternError::BadEscape);
                }
                break;
            }
            if code * 8 + digit <= 255 {
                code = code * 8 + digit;
                self.read();
            }
        }
        Ok(code)
    }
}

/// The character that an escape denotes, and the index after it. `at` is the index after the
/// backslash.
pub(crate) fn unescape(text: &[char], at: usize) -> Option<(u32, usize)> {
    let (code, end) = unescape_one(text, at)?;
    // A leading surrogate takes the trailing one that follows.
    if (0xd800..0xdc00).contains(&code)
        && text.get(end) == Some(&'\\')
        && let Some((low, after)) = unescape_one(text, end + 1)
        && (0xdc00..0xe000).contains(&low)
    {
        return Some((0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00), after));
    }
    Some((code, end))
}

fn unescape_one(text: &[char], at: usize) -> Option<(u32, usize)> {
    let c = *text.get(at)?;
    let next = at + 1;
    let single = |code: u32| Some((code, next));
    match c {
        'u' => hexadecimal(text, next, 4, 4),
        'U' => hexadecimal(text, next, 8, 8),
        'x' if text.get(next) == Some(&'{') => {
            let (code, end) = hexadecimal(text, next + 1, 1, 8)?;
            (text.get(end) == Some(&'}')).then_some((code, end + 1))
        }
        'x' => hexadecimal(text, next, 1, 2),
        'a' => single(0x07),
        'b' => single(0x08),
        'e' => single(0x1b),
        'f' => single(0x0c),
        'n' => single(0x0a),
        'r' => single(0x0d),
        't' => single(0x09),
        'v' => single(0x0b),
        'c' => match text.get(next) {
            Some(&control) => Some((u32::from(control) & 0x1f, next + 1)),
            None => single(u32::from('c')),
        },
        other => single(u32::from(other)),
    }
}

fn hexadecimal(text: &[char], at: usize, min: usize, max: usize) -> Option<(u32, usize)> {
    let mut code = 0_u32;
    let mut end = at;
    while end < at + max {
        let Some(digit) = text.get(end).and_then(|c| c.to_digit(16)) else {
            break;
        };
        code = code.checked_mul(16)? + digit;
        end += 1;
    }
    (end - at >= min && code < 0x11_0000).then_some((code, end))
}
