//! The tokens of the lexer, and its modes.

use crate::keywords::Kw;

/// The sql_mode flags that affect the lexer and the parser.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LexMode(u8);

impl LexMode {
    /// The inverse of [`Self::bits`].
    pub fn from_bits(bits: u8) -> LexMode {
        LexMode(bits)
    }

    /// `"` quotes identifiers.
    pub const ANSI_QUOTES: LexMode = LexMode(1);
    /// A backslash in a string is an ordinary character.
    pub const NO_BACKSLASH_ESCAPES: LexMode = LexMode(2);
    /// `||` concatenates strings; otherwise it is OR.
    pub const PIPES_AS_CONCAT: LexMode = LexMode(4);
    /// NOT has the precedence of `!`.
    pub const HIGH_NOT_PRECEDENCE: LexMode = LexMode(8);
    /// Blanks are allowed between a function word and its parenthesis.
    pub const IGNORE_SPACE: LexMode = LexMode(16);

    pub const fn with(self, other: LexMode) -> LexMode {
        LexMode(self.0 | other.0)
    }

    #[inline]
    pub const fn has(self, other: LexMode) -> bool {
        self.0 & other.0 != 0
    }

    /// The flags as one byte, for cache keys.
    pub const fn bits(self) -> u8 {
        self.0
    }
}

/// The version to which the number in `/*!NNNNN … */` is compared.
pub const SERVER_VERSION: u32 = 80_406;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum TokenKind {
    /// The end of the text.
    End,
    /// An unquoted word. `Token::kw` is its keyword, if it is one.
    Word,
    /// `` `x` ``, or `"x"` under ANSI_QUOTES. The span includes the quotes.
    QuotedIdent,
    /// `'x'` or `"x"`. The span includes the quotes.
    Str,
    /// `n'x'`
    NStr,
    /// `_utf8mb4`: the name of a character set directly before a literal. The span includes the
    /// underscore.
    Introducer,
    /// `123`
    Int,
    /// `1.5`, `1.`, `.5`
    Decimal,
    /// `1e5`, `1.5e-3`
    Float,
    /// `0x1f`
    HexNumber,
    /// `x'1f'`
    HexString,
    /// `0b101`
    BitNumber,
    /// `b'101'`
    BitString,
    /// `@x`, `` @`x` ``, `@'x'`, as a whole.
    UserVar,
    /// `@@`
    AtAt,
    /// `?`
    Marker,
    /// `/*+ … */` after SELECT, INSERT, REPLACE, UPDATE or DELETE, as a whole.
    Hint,
    Comma,
    LParen,
    RParen,
    Dot,
    Semicolon,
    Star,
    Plus,
    Minus,
    Slash,
    Percent,
    Caret,
    Tilde,
    Bang,
    Amp,
    AmpAmp,
    Pipe,
    PipePipe,
    ShiftLeft,
    ShiftRight,
    Eq,
    NullSafeEq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// `:=`
    Assign,
    /// `->`
    Arrow,
    /// `->>`
    LongArrow,
    LBrace,
    RBrace,
    /// A folded list of literals. The lexer never produces it; the parser does, where the digest
    /// has folded.
    List,
    /// A byte that cannot start a token, an unterminated quote or comment, or an invalid `x'..'`.
    Invalid,
}

/// One token: its kind and its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    pub kind: TokenKind,
    /// The keyword of a word. A function word has its keyword only if a parenthesis follows.
    pub kw: Kw,
    pub start: u32,
    pub end: u32,
}

impl Token {
    /// The token's bytes in `text`.
    pub fn text<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        &text[self.start as usize..self.end as usize]
    }
}
