//! What the lexer yields, and the modes it knows.

use crate::keywords::Kw;

/// The sql_mode bits that change how a text is cut into tokens and put together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LexMode(u8);

impl LexMode {
    /// From [`Self::bits`].
    pub fn from_bits(bits: u8) -> LexMode {
        LexMode(bits)
    }

    /// `"` quotes identifiers.
    pub const ANSI_QUOTES: LexMode = LexMode(1);
    /// A backslash in a string is an ordinary character.
    pub const NO_BACKSLASH_ESCAPES: LexMode = LexMode(2);
    /// `||` concatenates; otherwise it is OR.
    pub const PIPES_AS_CONCAT: LexMode = LexMode(4);
    /// NOT binds as tightly as `!`.
    pub const HIGH_NOT_PRECEDENCE: LexMode = LexMode(8);
    /// Blanks may stand between a function word and its parenthesis.
    pub const IGNORE_SPACE: LexMode = LexMode(16);

    pub const fn with(self, other: LexMode) -> LexMode {
        LexMode(self.0 | other.0)
    }

    #[inline]
    pub const fn has(self, other: LexMode) -> bool {
        self.0 & other.0 != 0
    }

    /// The bits as one byte, for keys of caches.
    pub const fn bits(self) -> u8 {
        self.0
    }
}

/// The version that `/*!NNNNN … */` comments are compared with.
pub const SERVER_VERSION: u32 = 80_406;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum TokenKind {
    /// The end of the text.
    End,
    /// A bare word; `Token::kw` says which keyword it is, if any.
    Word,
    /// `` `x` ``, or `"x"` under ANSI_QUOTES; the quotes belong to the span.
    QuotedIdent,
    /// `'x'` or `"x"`; the quotes belong to the span.
    Str,
    /// `n'x'`
    NStr,
    /// `_utf8mb4`, a name of a character set right before a literal; the underscore belongs to the span.
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
    /// `@x`, `` @`x` ``, `@'x'`: the whole of it
    UserVar,
    /// `@@`
    AtAt,
    /// `?`
    Marker,
    /// `/*+ … */` after SELECT, INSERT, REPLACE, UPDATE or DELETE: the whole of it
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
    /// A folded list of literals. The lexer never makes one; the parser does, where the digest has folded.
    List,
    /// A byte that starts no token, an unterminated quote or comment, a malformed `x'..'`.
    Invalid,
}

/// One token: its kind and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    pub kind: TokenKind,
    /// For words. A function word has its keyword only where its parenthesis follows.
    pub kw: Kw,
    pub start: u32,
    pub end: u32,
}

impl Token {
    /// The token's bytes.
    pub fn text<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        &text[self.start as usize..self.end as usize]
    }
}
