//! The digest of a statement: the plan-cache key, and the positions of the literals.
//!
//! A single walk over the text computes both. The key is the statement with literals as `?`. Lists
//! of literals after IN, and rows of literals after VALUES, become `(...)`, regardless of their
//! length. Blanks and comments are removed, reserved words are in upper case, and names are in
//! backquotes. Words that may be names keep their case, because it appears in the names of tables
//! and result columns. After a zero byte follow the kinds of the literals, because plans depend on
//! types.
//!
//! The text that `STATEMENT_DIGEST_TEXT` shows folds more than that (`f(1,2)` and `f(1,2,3)` become
//! equal), so it cannot serve as the key. `digest_text` computes it on request.
//!
//! # Cost
//! Nothing is allocated once the buffers of a [`Digested`] have grown. They are reused for every
//! statement.

use crate::ast::Span;
use crate::keywords::Kw;
use crate::lexer::{LexMode, Lexer, TokenKind};
use crate::list::{self, ListIter};
use crate::literal::Lit;
use crate::watch::{STRIDE, Watch};
use nfold_types::{Checkpoint, SqlError};

/// A set of kinds of literals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct KindSet(u16);

impl KindSet {
    /// An integer that fits into a signed 64-bit number.
    pub const INT: KindSet = KindSet(1);
    /// An integer that requires an unsigned 64-bit number.
    pub const BIG_INT: KindSet = KindSet(2);
    pub const DECIMAL: KindSet = KindSet(4);
    pub const FLOAT: KindSet = KindSet(8);
    pub const STRING: KindSet = KindSet(16);
    /// `N'..'`
    pub const NATIONAL: KindSet = KindSet(32);
    pub const HEX: KindSet = KindSet(64);
    pub const BIT: KindSet = KindSet(128);
    pub const NULL: KindSet = KindSet(256);
    pub const BOOL: KindSet = KindSet(512);
    /// A `?` of a prepared statement.
    pub const MARKER: KindSet = KindSet(1024);

    #[inline]
    pub fn of(lit: &Lit<'_>) -> KindSet {
        match lit {
            Lit::Null => Self::NULL,
            Lit::Bool(_) => Self::BOOL,
            Lit::Int { value, .. } if *value <= i64::MAX as u64 => Self::INT,
            Lit::Int { .. } => Self::BIG_INT,
            Lit::Decimal { .. } => Self::DECIMAL,
            Lit::Float { .. } => Self::FLOAT,
            Lit::String(s) if s.national => Self::NATIONAL,
            Lit::String(_) => Self::STRING,
            Lit::Hex(_) => Self::HEX,
            Lit::Bit(_) => Self::BIT,
        }
    }

    #[inline]
    pub fn contains(self, other: KindSet) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether the set contains only kinds of `other`.
    pub fn is_subset(self, other: KindSet) -> bool {
        self.0 & !other.0 == 0
    }

    #[inline]
    pub fn union(self, other: KindSet) -> KindSet {
        KindSet(self.0 | other.0)
    }

    pub fn bits(self) -> u16 {
        self.0
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotKind {
    /// A single literal; the span is its token.
    Literal(TokenKind),
    /// The `n`th `?` of the statement, from 0.
    Marker(u32),
    /// A folded list after IN.
    List,
    /// The folded rows after VALUES.
    Rows,
}

/// A position in the statement that supplies a value. `Expr::Param`, `InList::ListParam` and
/// `InsertSource::RowsParam` refer to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    pub kind: SlotKind,
    /// Its position. Lists and rows include their outer parentheses.
    pub span: Span,
    /// 1 for a literal, a marker and a list of scalars (whose members have no parentheses). For
    /// rows, and for lists of row constructors: the members of each.
    pub width: u32,
    /// The number of literals, rows or members.
    pub count: u32,
    /// Whether the members are rows, as in `IN ((1,2),…)` and VALUES.
    pub rows: bool,
    pub kinds: KindSet,
}

/// How the plan cache treats a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LiteralRole {
    /// Its value is bound when the plan is executed.
    Parameter,
    /// It determines the plan or the description of the result, so its text belongs to the key.
    Structural,
}

/// The digest of a statement. The object is reused: [`Digested::read`] replaces its whole contents.
#[derive(Clone, Debug, Default)]
pub struct Digested {
    key: Vec<u8>,
    kinds: Vec<u8>,
    text_len: usize,
    slots: Vec<Slot>,
    hash: u128,
    markers: u32,
    end: usize,
    next: Option<usize>,
    parameterisable: bool,
    mode: LexMode,
}

impl Digested {
    pub fn new() -> Self {
        Self::default()
    }

    /// The memory on the heap in bytes.
    pub fn memory(&self) -> usize {
        self.key.capacity() + self.kinds.capacity() + self.slots.capacity() * size_of::<Slot>()
    }

    /// Reads the first statement of `text`, up to its semicolon or the end.
    pub fn read(&mut self, text: &[u8], mode: LexMode) {
        self.read_watched(text, mode, None);
    }

    /// The longest text in bytes that is read without checking the checkpoint.
    pub const SHORT_TEXT: usize = STRIDE;

    /// As [`Self::read`], for a text that may be large.
    ///
    /// # Errors
    /// An error of the checkpoint. Then the digest covers the text up to that point.
    pub fn read_stoppable(
        &mut self,
        text: &[u8],
        mode: LexMode,
        checkpoint: &dyn Checkpoint,
    ) -> Result<(), SqlError> {
        if text.len() <= Self::SHORT_TEXT {
            self.read_watched(text, mode, None);
            return Ok(());
        }
        let watch = Watch::new(checkpoint);
        self.read_watched(text, mode, Some(&watch));
        watch.into_result()
    }

    fn read_watched(&mut self, text: &[u8], mode: LexMode, watch: Option<&Watch<'_>>) {
        self.key.clear();
        self.kinds.clear();
        self.slots.clear();
        self.markers = 0;
        self.mode = mode;
        let mut walk = Walk {
            out: self,
            lexer: Lexer::watched(text, mode, watch),
            watch,
            text,
            verb: Verb::Unknown,
            last: Kw::Other,
        };
        walk.run();
        self.text_len = self.key.len();
        self.key.push(0);
        self.key.extend_from_slice(&self.kinds);
        self.hash = hash128(&self.key);
    }

    /// The key: the normalized text, a zero byte, the kinds. Statements with equal keys differ only
    /// in the values of their slots. Valid for a single `LexMode`, which is part of the plan
    /// context.
    #[inline]
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The normalized text.
    pub fn text(&self) -> &[u8] {
        &self.key[..self.text_len]
    }

    /// A hash of the key. Hashes can collide, so keys must be compared.
    #[inline]
    pub fn hash(&self) -> u128 {
        self.hash
    }

    #[inline]
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// The number of `?`.
    pub fn markers(&self) -> u32 {
        self.markers
    }

    /// The end of the statement: its semicolon, or the end of the text.
    pub fn end(&self) -> usize {
        self.end
    }

    /// The start of the next statement of a multi-statement text, after blanks and further
    /// semicolons.
    pub fn next(&self) -> Option<usize> {
        self.next
    }

    /// Whether plans are cached for this kind of statement. Only such statements have folded lists.
    #[inline]
    pub fn is_parameterisable(&self) -> bool {
        self.parameterisable
    }

    pub fn mode(&self) -> LexMode {
        self.mode
    }

    /// The value of literal slot `n`. `None` for markers, lists and rows.
    #[inline]
    pub fn literal<'t>(&self, n: u32, text: &'t [u8]) -> Option<Lit<'t>> {
        let slot = self.slots.get(n as usize)?;
        match slot.kind {
            SlotKind::Literal(kind) => Lit::read(kind, slot.span.of(text), self.mode),
            _ => None,
        }
    }

    /// The literals of list or rows slot `n`. Rows are flattened: member `i` of row `r` has index
    /// `r * width + i`. Empty for other slots.
    #[inline]
    pub fn list<'t>(&self, n: u32, text: &'t [u8]) -> ListIter<'t> {
        match self.slots.get(n as usize) {
            Some(slot) if matches!(slot.kind, SlotKind::List | SlotKind::Rows) => {
                ListIter::new(slot.span.of(text), self.mode)
            }
            _ => ListIter::new(&[], self.mode),
        }
    }

    /// Appends the text of every structural slot. Together with the key, this identifies the plan.
    /// `roles` is the result of `parser::parse_parameterised` for this key.
    pub fn append_structural(&self, roles: &[LiteralRole], text: &[u8], out: &mut Vec<u8>) {
        for (slot, role) in self.slots.iter().zip(roles) {
            if *role == LiteralRole::Structural {
                out.extend_from_slice(&(slot.span.end - slot.span.start).to_le_bytes());
                out.extend_from_slice(slot.span.of(text));
            }
        }
    }

    /// A hash of what [`Digested::append_structural`] would append. Allocates nothing.
    pub fn structural_hash(&self, roles: &[LiteralRole], text: &[u8]) -> u64 {
        let slots = self.slots.iter().zip(roles);
        let structural = slots.filter(|(_, role)| **role == LiteralRole::Structural);
        structural.fold(0, |hash, (slot, _)| {
            let literal = hash128(slot.span.of(text)) as u64;
            (hash.rotate_left(5) ^ literal).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        })
    }

    /// Whether [`Digested::append_structural`] would append exactly `expected`. Allocates nothing.
    pub fn structural_is(&self, roles: &[LiteralRole], text: &[u8], expected: &[u8]) -> bool {
        let mut rest = expected;
        for (slot, role) in self.slots.iter().zip(roles) {
            if *role == LiteralRole::Structural {
                let literal = slot.span.of(text);
                let Some((len, after)) = rest.split_first_chunk::<4>() else {
                    return false;
                };
                if u32::from_le_bytes(*len) != slot.span.end - slot.span.start {
                    return false;
                }
                let Some(after) = after.strip_prefix(literal) else {
                    return false;
                };
                rest = after;
            }
        }
        rest.is_empty()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verb {
    /// Only opening parentheses and EXPLAIN so far.
    Unknown,
    /// INSERT, REPLACE
    Insert,
    /// SELECT, UPDATE, DELETE, WITH, TABLE, VALUES
    Other,
    /// A statement that is never parameterized.
    Plain,
}

/// A walk over one statement.
struct Walk<'d, 't> {
    out: &'d mut Digested,
    lexer: Lexer<'t>,
    watch: Option<&'t Watch<'t>>,
    text: &'t [u8],
    verb: Verb,
    /// The keyword before this token.
    last: Kw,
}

impl Walk<'_, '_> {
    fn run(&mut self) {
        loop {
            let token = self.lexer.next_token();
            let text = token.text(self.text);
            let before = std::mem::replace(&mut self.last, Kw::Other);
            match token.kind {
                TokenKind::End => {
                    self.out.end = self.text.len();
                    self.out.next = None;
                    break;
                }
                TokenKind::Semicolon => {
                    self.out.end = token.start as usize;
                    let rest = &self.text[token.end as usize..];
                    let blank = rest
                        .iter()
                        .take_while(|&&b| b == b';' || crate::lexer::is_space(b))
                        .count();
                    self.out.next = (blank < rest.len()).then_some(token.end as usize + blank);
                    break;
                }
                TokenKind::Word => self.word(token.kw, text),
                TokenKind::QuotedIdent => self.quoted(text),
                TokenKind::Marker => self.marker(token.start),
                TokenKind::LParen => {
                    if !self.fold(before, token.start as usize) {
                        self.push(b"(");
                    }
                }
                _ => match Lit::read(token.kind, text, self.out.mode) {
                    Some(lit) => self.literal(
                        token.kind,
                        &lit,
                        Span {
                            start: token.start,
                            end: token.end,
                        },
                    ),
                    None => self.push(text),
                },
            }
        }
        self.out.parameterisable = matches!(self.verb, Verb::Insert | Verb::Other);
    }

    #[inline]
    fn push(&mut self, bytes: &[u8]) {
        if !self.out.key.is_empty() {
            self.out.key.push(b' ');
        }
        self.out.key.extend_from_slice(bytes);
    }

    #[inline]
    fn word(&mut self, kw: Kw, text: &[u8]) {
        self.last = kw;
        if self.verb == Verb::Unknown {
            self.verb = match kw {
                Kw::INSERT | Kw::REPLACE => Verb::Insert,
                Kw::SELECT | Kw::UPDATE | Kw::DELETE | Kw::WITH | Kw::TABLE | Kw::VALUES => {
                    Verb::Other
                }
                Kw::EXPLAIN | Kw::DESCRIBE | Kw::DESC | Kw::FORMAT | Kw::ANALYZE => Verb::Unknown,
                Kw::Other | Kw::JSON
                    if self.out.key.starts_with(b"EXPLAIN ")
                        || self.out.key.starts_with(b"DESC") =>
                {
                    Verb::Unknown
                }
                _ => Verb::Plain,
            };
        }
        if kw == Kw::Other {
            self.push(b"`");
            self.out.key.extend_from_slice(text);
            self.out.key.push(b'`');
        } else if kw.is_reserved() {
            self.push(kw.name().as_bytes());
        } else {
            self.push(text);
        }
    }

    /// Appends a quoted name: `` `x` `` unchanged, and `"x"` as `` `x` ``, unless a quote inside
    /// would make that ambiguous.
    fn quoted(&mut self, text: &[u8]) {
        let inner = &text[1..text.len() - 1];
        if text[0] == b'`' || memchr::memchr2(b'"', b'`', inner).is_some() {
            self.push(text);
        } else {
            self.push(b"`");
            self.out.key.extend_from_slice(inner);
            self.out.key.push(b'`');
        }
    }

    fn marker(&mut self, start: u32) {
        self.push(b"?");
        let kind = SlotKind::Marker(self.out.markers);
        self.out.markers += 1;
        self.slot(
            kind,
            Span {
                start,
                end: start + 1,
            },
            1,
            1,
            KindSet::MARKER,
        );
    }

    fn slot(&mut self, kind: SlotKind, span: Span, width: u32, count: u32, kinds: KindSet) {
        self.out.slots.push(Slot {
            kind,
            span,
            width,
            count,
            rows: kind == SlotKind::Rows,
            kinds,
        });
        // The kinds in the rows of an INSERT do not matter, because each value is converted on its
        // own.
        let kinds = if kind == SlotKind::Rows {
            KindSet::default()
        } else {
            kinds
        };
        self.out.kinds.extend_from_slice(&kinds.0.to_le_bytes());
    }

    #[inline]
    fn literal(&mut self, token: TokenKind, lit: &Lit<'_>, span: Span) {
        self.push(b"?");
        self.slot(SlotKind::Literal(token), span, 1, 1, KindSet::of(lit));
        if let Lit::Decimal { text, .. } = lit {
            // Precision and scale are part of a DECIMAL's type.
            let scale = memchr::memchr(b'.', text).map_or(0, |at| text.len() - at - 1);
            self.out.kinds.push(text.len().min(255) as u8);
            self.out.kinds.push(scale.min(255) as u8);
        }
    }

    /// Handles an opening parenthesis: folds the whole list if it consists of literals.
    fn fold(&mut self, before: Kw, open: usize) -> bool {
        let rows = match before {
            Kw::IN => false,
            Kw::VALUES | Kw::VALUE if self.verb == Verb::Insert => true,
            _ => return false,
        };
        if !matches!(self.verb, Verb::Insert | Verb::Other) {
            return false;
        }
        let found = if rows {
            list::scan_rows(self.text, open, self.out.mode, self.watch)
        } else {
            list::scan_list(self.text, open, self.out.mode, self.watch)
        };
        let Some(found) = found else { return false };
        self.push(if found.rows && !rows {
            b"((...))"
        } else {
            b"(...)"
        });
        let span = Span {
            start: open as u32,
            end: found.end as u32,
        };
        self.slot(
            if rows { SlotKind::Rows } else { SlotKind::List },
            span,
            found.width,
            found.count,
            found.kinds,
        );
        if let Some(slot) = self.out.slots.last_mut() {
            slot.rows = found.rows;
        }
        self.out.kinds.extend_from_slice(&found.width.to_le_bytes());
        self.lexer.jump(found.end);
        true
    }
}

/// A hash with two multiply-and-fold lanes, which processes 16 bytes per step.
fn hash128(bytes: &[u8]) -> u128 {
    const K: [u64; 4] = [
        0xa076_1d64_78bd_642f,
        0xe703_7ed1_a0b4_28db,
        0x8ebc_6af0_9c88_c6e3,
        0x5899_65cc_7537_4cc3,
    ];
    #[inline(always)]
    fn fold(a: u64, b: u64) -> u64 {
        let product = u128::from(a) * u128::from(b);
        (product as u64) ^ (product >> 64) as u64
    }
    let step = |x: &mut u64, y: &mut u64, chunk: &[u8; 16]| {
        let word = u128::from_le_bytes(*chunk);
        let (a, b) = (word as u64, (word >> 64) as u64);
        *x = fold(*x ^ a ^ K[2], b ^ K[3]);
        *y = fold(*y ^ b ^ K[0], a ^ K[1]).wrapping_add(*x);
    };
    let (mut x, mut y) = (K[0] ^ bytes.len() as u64, K[1]);
    let (chunks, tail) = bytes.as_chunks::<16>();
    for chunk in chunks {
        step(&mut x, &mut y, chunk);
    }
    let mut last = [0; 16];
    last[..tail.len()].copy_from_slice(tail);
    step(&mut x, &mut y, &last);
    u128::from(fold(x ^ K[2], y ^ K[1])) << 64 | u128::from(fold(y ^ K[3], x ^ K[0]))
}

#[cfg(test)]
#[path = "digest_tests.rs"]
mod tests;
