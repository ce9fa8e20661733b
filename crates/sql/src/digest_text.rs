//! The digest text that MySQL shows (`STATEMENT_DIGEST_TEXT`, `performance_schema`).
//!
//! Values become `?`. The reductions of MySQL (sql/sql_digest.cc) are applied: `?, ...` for values
//! separated by commas, anywhere; `(?)` and `(...)` for rows, with `/* , ... */` after several; `IN
//! (...)`. A keyword is printed as the last of its synonyms in MySQL's token table. The text is
//! computed once per new digest, and never per statement. The plan-cache key is in
//! [`crate::digest`].

use crate::keywords::Kw;
use crate::lexer::{LexMode, Lexer, Token, TokenKind};

/// A token, or the result of reducing tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    /// `?`
    Value,
    /// `?, ...`
    ValueList,
    /// `(?)`
    Row,
    /// `(?) /* , ... */`
    RowList,
    /// `(...)`
    LongRow,
    /// `(...) /* , ... */`
    LongRowList,
    /// `IN (...)`
    InList,
    /// The name of a hint.
    HintName(u32, u32),
    /// A number in ORDER BY or GROUP BY that refers to a column.
    Position(u32, u32),
    /// An unreduced token.
    Token(Token),
    /// `/*+`
    HintStart,
    /// `*/`
    HintEnd,
    /// `@`, with no blank after it.
    At,
}

impl Item {
    fn is(self, kind: TokenKind) -> bool {
        matches!(self, Item::Token(token) if token.kind == kind)
    }

    fn kw(self) -> Kw {
        if let Item::Token(token) = self {
            token.kw
        } else {
            Kw::Other
        }
    }

    /// Whether an expression may start after it, so that a sign there is not a binary operator.
    fn starts_expression(self) -> bool {
        use TokenKind::*;
        let Item::Token(token) = self else {
            return false;
        };
        match token.kind {
            LParen | Comma | Plus | Minus | Star | Slash | Percent | Caret | Pipe | PipePipe
            | Amp | AmpAmp | ShiftLeft | ShiftRight | Eq | NullSafeEq | Ne | Lt | Le | Gt | Ge => {
                true
            }
            _ => matches!(
                token.kw,
                Kw::EVERY
                    | Kw::AT
                    | Kw::STARTS
                    | Kw::ENDS
                    | Kw::DEFAULT
                    | Kw::RETURN
                    | Kw::IF
                    | Kw::ELSEIF
                    | Kw::ELSE
                    | Kw::CASE
                    | Kw::WHEN
                    | Kw::THEN
                    | Kw::WHILE
                    | Kw::UNTIL
                    | Kw::SELECT
                    | Kw::OR
                    | Kw::XOR
                    | Kw::AND
                    | Kw::IS
                    | Kw::NOT
                    | Kw::BETWEEN
                    | Kw::LIKE
                    | Kw::REGEXP
                    | Kw::RLIKE
                    | Kw::INTERVAL
                    | Kw::DIV
                    | Kw::MOD
            ),
        }
    }
}

/// Bytes of a statement that its digest text is made of.
const READ_BYTES: usize = 64 << 10;

/// The digest text of the first statement of `text`. That of a very long one ends early, in `...`.
pub fn digest_text(text: &[u8], mode: LexMode) -> String {
    let is_cut = text.len() > READ_BYTES;
    let text = &text[..text.len().min(READ_BYTES)];
    let mut reducer = Reducer {
        text,
        items: Vec::new(),
        definition: false,
        parens: 0,
        by: None,
    };
    let at_end = reducer.run(Lexer::new(text, mode), mode, is_cut);
    let mut digest = reducer.print();
    if is_cut && at_end {
        digest.push_str(" ...");
    }
    digest
}

struct Reducer<'a> {
    text: &'a [u8],
    items: Vec<Item>,
    /// Whether the statement is CREATE or ALTER, where NULL is mostly an attribute.
    definition: bool,
    parens: u32,
    /// Within ORDER BY or GROUP BY: the number of open parentheses.
    by: Option<u32>,
}

impl Reducer<'_> {
    /// Reads a statement; whether it ends with the text. The last token of a text that `is_cut` may
    /// be a part of one, and is left out.
    fn run(&mut self, mut lexer: Lexer<'_>, mode: LexMode, is_cut: bool) -> bool {
        let mut next = lexer.next_token();
        loop {
            let token = next;
            if matches!(token.kind, TokenKind::End | TokenKind::Semicolon) {
                return token.kind == TokenKind::End;
            }
            next = lexer.next_token();
            if is_cut && next.kind == TokenKind::End {
                return true;
            }
            if self.items.is_empty() {
                self.definition = matches!(token.kw, Kw::CREATE | Kw::ALTER);
            }
            self.take(token, next, mode);
        }
    }

    fn last(&self, back: usize) -> Option<Item> {
        self.items.len().checked_sub(back).map(|at| self.items[at])
    }

    fn take(&mut self, token: Token, next: Token, mode: LexMode) {
        use TokenKind::*;
        match token.kind {
            Int if self.is_position(next) => {
                self.items.push(Item::Position(token.start, token.end))
            }
            Int | Decimal | Float | HexNumber | HexString | BitNumber | BitString => {
                self.drop_signs();
                self.value();
            }
            Str | NStr | Marker => self.value(),
            UserVar => self.user_var(token),
            AtAt => self.items.extend([Item::At, Item::At]),
            LParen => {
                self.parens += 1;
                self.items.push(Item::Token(token));
            }
            RParen => {
                if self.by.is_some_and(|depth| depth >= self.parens) {
                    self.by = None;
                }
                self.parens = self.parens.saturating_sub(1);
                self.close(token);
            }
            Hint => self.hint(token, mode),
            Word if token.kw == Kw::NULL && self.null_is_value() => self.value(),
            Word => {
                match token.kw {
                    Kw::BY => self.by = Some(self.parens),
                    Kw::ASC | Kw::DESC | Kw::Other => {}
                    kw if kw.is_reserved() && self.by == Some(self.parens) => self.by = None,
                    _ => {}
                }
                self.items.push(Item::Token(token));
            }
            _ => self.items.push(Item::Token(token)),
        }
    }

    /// Whether the current integer is a whole item of ORDER BY or GROUP BY.
    fn is_position(&self, next: Token) -> bool {
        let starts = self.by == Some(self.parens)
            && self
                .last(1)
                .is_some_and(|l| l.kw() == Kw::BY || l.is(TokenKind::Comma));
        // A number after a value forms a list with it.
        let listed = matches!(self.last(2), Some(Item::Value | Item::ValueList));
        starts
            && !listed
            && match next.kind {
                TokenKind::Comma | TokenKind::RParen | TokenKind::End | TokenKind::Semicolon => {
                    true
                }
                TokenKind::Word => !matches!(
                    next.kw,
                    Kw::DIV | Kw::MOD | Kw::AND | Kw::OR | Kw::XOR | Kw::IS | Kw::IN
                ),
                _ => false,
            }
    }

    /// Removes signs that do not follow an operand, because they belong to the next number.
    fn drop_signs(&mut self) {
        while let (Some(sign), Some(before)) = (self.last(1), self.last(2)) {
            if !(sign.is(TokenKind::Minus) || sign.is(TokenKind::Plus))
                || !before.starts_expression()
            {
                return;
            }
            self.items.pop();
        }
    }

    fn null_is_value(&self) -> bool {
        let Some(last) = self.last(1) else {
            return false;
        };
        match last.kw() {
            Kw::DEFAULT => true,
            Kw::IS | Kw::SET => false,
            Kw::NOT => !self.definition && self.last(2).is_none_or(|l| l.kw() != Kw::IS),
            _ => !self.definition,
        }
    }

    /// Adds a value. After a comma and another value, both become a list of values.
    fn value(&mut self) {
        let comma = self.last(1).is_some_and(|l| l.is(TokenKind::Comma));
        if comma && matches!(self.last(2), Some(Item::Value | Item::ValueList)) {
            self.items.truncate(self.items.len() - 2);
            self.items.push(Item::ValueList);
        } else {
            self.items.push(Item::Value);
        }
    }

    /// Reduces `@x` and `@'x'` to `@?`; `` @`x` `` keeps its name.
    fn user_var(&mut self, token: Token) {
        self.items.push(Item::At);
        if self.text[token.start as usize + 1..].first() == Some(&b'`') {
            let name = Token {
                kind: TokenKind::QuotedIdent,
                start: token.start + 1,
                ..token
            };
            self.items.push(Item::Token(name));
        } else {
            self.value();
        }
    }

    /// Handles a closing parenthesis: reduces to `(?)` or `(...)`, and combines that with the items
    /// before it.
    fn close(&mut self, token: Token) {
        let open = self.last(2).is_some_and(|l| l.is(TokenKind::LParen));
        let (one, list) = match self.last(1) {
            Some(Item::Value) if open => (Item::Row, Item::RowList),
            Some(Item::ValueList) if open => (Item::LongRow, Item::LongRowList),
            _ => return self.items.push(Item::Token(token)),
        };
        self.items.truncate(self.items.len() - 2);
        if self.last(1).is_some_and(|l| l.kw() == Kw::IN) {
            self.items.pop();
            self.items.push(Item::InList);
            return;
        }
        let comma = self.last(1).is_some_and(|l| l.is(TokenKind::Comma));
        if comma && self.last(2).is_some_and(|l| l == one || l == list) {
            self.items.truncate(self.items.len() - 2);
            self.items.push(list);
        } else {
            self.items.push(one);
        }
    }

    /// Adds the tokens inside `/*+ … */`.
    fn hint(&mut self, token: Token, mode: LexMode) {
        self.items.push(Item::HintStart);
        let (start, end) = (token.start as usize + 3, token.end as usize - 2);
        let mut lexer = Lexer::new(&self.text[..end], mode);
        lexer.jump(start);
        let mut next = lexer.next_token();
        while next.kind != TokenKind::End {
            let token = next;
            next = lexer.next_token();
            if token.kind == TokenKind::Word && next.kind == TokenKind::LParen {
                self.items.push(Item::HintName(token.start, token.end));
            } else {
                self.take(token, next, mode);
            }
        }
        self.items.push(Item::HintEnd);
    }

    fn print(&self) -> String {
        let mut out = Vec::with_capacity(self.text.len().min(4096));
        let mut space = false;
        for item in &self.items {
            if space {
                out.push(b' ');
            }
            space = *item != Item::At;
            match *item {
                Item::Value => out.push(b'?'),
                Item::ValueList => out.extend(b"?, ..."),
                Item::Row => out.extend(b"(?)"),
                Item::RowList => out.extend(b"(?) /* , ... */"),
                Item::LongRow => out.extend(b"(...)"),
                Item::LongRowList => out.extend(b"(...) /* , ... */"),
                Item::InList => out.extend(b"IN (...)"),
                Item::Position(start, end) => out.extend(&self.text[start as usize..end as usize]),
                Item::HintName(start, end) => {
                    out.extend(self.text[start as usize..end as usize].to_ascii_uppercase());
                }
                Item::HintStart => out.extend(b"/*+"),
                Item::HintEnd => out.extend(b"*/"),
                Item::At => out.push(b'@'),
                Item::Token(token) => self.print_token(token, &mut out),
            }
        }
        String::from_utf8_lossy(&out).into_owned()
    }

    fn print_token(&self, token: Token, out: &mut Vec<u8>) {
        let text = token.text(self.text);
        match token.kind {
            TokenKind::Word if token.kw != Kw::Other => out.extend(canonical(token.kw).as_bytes()),
            TokenKind::Word => {
                out.push(b'`');
                out.extend(text);
                out.push(b'`');
            }
            TokenKind::QuotedIdent => {
                let quote = text[0];
                let doubled = [quote, quote];
                out.push(b'`');
                let mut inner = &text[1..text.len() - 1];
                // MySQL prints the name itself, with doubled quotes as single ones.
                while let Some(at) = memchr::memmem::find(inner, &doubled) {
                    out.extend(&inner[..=at]);
                    inner = &inner[at + 2..];
                }
                out.extend(inner);
                out.push(b'`');
            }
            TokenKind::Introducer => out.extend(b"(_charset)"),
            TokenKind::Ne => out.extend(b"!="),
            TokenKind::Bang => out.push(b'!'),
            _ => out.extend(text),
        }
    }
}

/// The spelling that is printed for all synonyms of a keyword.
fn canonical(kw: Kw) -> &'static str {
    match kw {
        Kw::CHAR => "CHARACTER",
        Kw::COLUMNS => "FIELDS",
        Kw::INT | Kw::INT4 => "INTEGER",
        Kw::INT1 => "TINYINT",
        Kw::INT2 => "SMALLINT",
        Kw::INT3 | Kw::MEDIUMINT => "MIDDLEINT",
        Kw::BIGINT => "INT8",
        Kw::FLOAT => "FLOAT4",
        Kw::DOUBLE => "FLOAT8",
        Kw::DEC => "DECIMAL",
        Kw::VARCHAR => "VARCHARACTER",
        Kw::DATABASE => "SCHEMA",
        Kw::DATABASES => "SCHEMAS",
        Kw::ANY => "SOME",
        Kw::DISTINCT => "DISTINCTROW",
        Kw::DESCRIBE => "EXPLAIN",
        Kw::REGEXP => "RLIKE",
        Kw::USER | Kw::SESSION_USER => "SYSTEM_USER",
        Kw::CURRENT_TIMESTAMP | Kw::LOCALTIME | Kw::LOCALTIMESTAMP => "NOW",
        Kw::CURRENT_DATE => "CURDATE",
        Kw::CURRENT_TIME => "CURTIME",
        Kw::SUBSTR | Kw::MID => "SUBSTRING",
        Kw::STD | Kw::STDDEV => "STDDEV_POP",
        Kw::VARIANCE => "VAR_POP",
        Kw::DAY => "SQL_TSI_DAY",
        Kw::HOUR => "SQL_TSI_HOUR",
        Kw::MINUTE => "SQL_TSI_MINUTE",
        Kw::MONTH => "SQL_TSI_MONTH",
        Kw::QUARTER => "SQL_TSI_QUARTER",
        Kw::SECOND => "SQL_TSI_SECOND",
        other => other.name(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_text_of_long_statement_is_cut() {
        let digest = |text: &str| digest_text(text.as_bytes(), LexMode::default());
        let sum = digest(&format!("SELECT a {} FROM t", "+ a ".repeat(100_000)));
        assert!(
            sum.starts_with("SELECT `a` + `a`") && sum.ends_with(" ..."),
            "{}",
            &sum[..40]
        );
        assert!(sum.len() < 4 * READ_BYTES);
        // A literal that is cut is not shown.
        let secret = digest(&format!("SELECT 1, a = 'x{}'", "y\\n".repeat(100_000)));
        assert_eq!(secret, "SELECT ? , `a` = ...");
        let two = digest(&format!("SELECT 1; SELECT '{}'", "x".repeat(100_000)));
        assert_eq!(two, "SELECT ?");
    }
}
