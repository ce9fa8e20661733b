//! The parser converts tokens to a syntax tree, by recursive descent that follows MySQL's grammar
//! (sql/sql_yacc.yy).
//!
//! It accepts and rejects the same texts as MySQL, level by level: `a IN (1) IN (2)` and `1 = NOT
//! 2` are syntax errors in both, and errors name the same token.
//!
//! # Depth
//! Parentheses use no stack. Other nesting is limited by [`MAX_DEPTH`], so that the parser works
//! with a stack of 1 MiB. The height of the tree, even of a long chain of `+`, is limited by
//! [`MAX_HEIGHT`]. AND and OR chains are flat. A table reference that names a common table
//! expression counts with that expression's height. So code that walks a tree may use recursion.
//!
//! # Parameters
//! [`parse_parameterised`] replaces literals by `Expr::Param` if their values are only needed when
//! a plan is bound. A literal stays in the tree (and is `LiteralRole::Structural`) where it
//! determines a plan or the description of a result: in the select list, GROUP BY, HAVING and ORDER
//! BY, in LIKE patterns, after a character set introducer, and in calls of functions whose
//! arguments determine their type.

mod account;
mod aggregate;
mod alter;
mod column;
mod component;
mod create;
mod deprecated;
mod diagnostics;
mod dml;
mod expr;
mod function;
mod handler;
mod json;
mod load;
mod misc;
mod primary;
mod query;
mod replica;
mod session;
mod set_chain;
mod show;
mod table;
mod table_options;
mod types;
mod view;
mod xa;

use crate::ast::{EngineAttribute, Expr, Ident, ObjectName, SelectInto, Span, Statement};
use crate::digest::{Digested, LiteralRole, Slot, SlotKind};
use crate::keywords::Kw;
use crate::lexer::{LexMode, Lexer, Token, TokenKind, is_space};
use crate::watch::Watch;
pub use deprecated::{Deprecated, OLDER_NAMES};
use nfold_types::charset::Charset;
use nfold_types::error::{ErrorCode, SqlError};

pub(crate) type Result<T> = std::result::Result<T, SqlError>;

/// The nesting limit of operands, calls and subqueries. A subquery counts three or four times.
pub const MAX_DEPTH: u32 = 160;

/// The limit of a tree's height: the longest path from an expression to a leaf.
pub const MAX_HEIGHT: u32 = 300;

/// The nesting limit of subqueries, as in MySQL. Usually [`MAX_DEPTH`] is reached first.
pub const MAX_SUBQUERIES: u32 = 63;

/// The most expression nodes of a statement (a folded list counts as one). That is a tree of about
/// 500 MB.
pub const MAX_NODES: u32 = 4_000_000;

/// A parsed statement, with the roles of its literals.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    pub statement: Statement,
    /// One role for each slot of the digest.
    pub roles: Vec<LiteralRole>,
    /// The end of the text that names columns of the result (`SELECT a+1` has a column `a+1`). Two
    /// texts with the same key have the same result header only if they agree up to this offset. 0:
    /// no column is named by its text.
    pub named_by_text: u32,
    /// The deprecated syntax that the text uses, in order.
    pub deprecated: Vec<Deprecated>,
}

/// Parses the first statement of `text`, all literals in the tree.
///
/// Errors: 1064 with MySQL's message, 1065 if the text is empty, 1436 and 1473 beyond the nesting
/// limits.
pub fn parse(text: &[u8], mode: LexMode) -> Result<Statement> {
    Parser::new(text, mode, None, false, None).whole_statement()
}

/// Parses a text that is one expression.
///
/// Errors: as [`parse`].
pub fn parse_expression(text: &[u8], mode: LexMode) -> Result<Expr> {
    let mut parser = Parser::new(text, mode, None, false, None);
    parser.token = parser.lex();
    let e = parser.expr()?;
    match parser.token.kind {
        TokenKind::End => Ok(e),
        _ => parser.unexpected(),
    }
}

/// As [`parse`] for a text that may be large; also ends with an error of the checkpoint.
/// Appends the deprecated syntax of the text to `deprecated`.
pub fn parse_stoppable(
    text: &[u8],
    mode: LexMode,
    checkpoint: &dyn nfold_types::Checkpoint,
    deprecated: &mut Vec<Deprecated>,
) -> Result<Statement> {
    if text.len() <= Digested::SHORT_TEXT {
        let mut parser = Parser::new(text, mode, None, false, None);
        parser.deprecated_to = Some(deprecated);
        return parser.whole_statement();
    }
    let watch = Watch::new(checkpoint);
    let mut parser = Parser::new(text, mode, None, false, Some(&watch));
    parser.deprecated_to = Some(deprecated);
    let parsed = parser.whole_statement();
    watch.into_result()?;
    parsed
}

/// Parses the statement that `digested` was computed from. `markers`: the statement is being
/// prepared and may contain `?`.
///
/// `Expr::Param(n)` is slot `n` of the digest, a literal or a marker.
pub fn parse_parameterised(text: &[u8], digested: &Digested, markers: bool) -> Result<Parsed> {
    parse_watched(text, digested, markers, None)
}

/// As [`parse_parameterised`], for a text that may be large. Also ends with an error of the
/// checkpoint.
pub fn parse_parameterised_stoppable(
    text: &[u8],
    digested: &Digested,
    markers: bool,
    checkpoint: &dyn nfold_types::Checkpoint,
) -> Result<Parsed> {
    if text.len() <= Digested::SHORT_TEXT {
        return parse_watched(text, digested, markers, None);
    }
    let watch = Watch::new(checkpoint);
    let parsed = parse_watched(text, digested, markers, Some(&watch));
    watch.into_result()?;
    parsed
}

fn parse_watched(
    text: &[u8],
    digested: &Digested,
    markers: bool,
    watch: Option<&Watch<'_>>,
) -> Result<Parsed> {
    let new = || Parser::new(text, digested.mode(), Some(digested), markers, watch);
    let mut parser = new();
    let statement = match parser.whole_statement() {
        // A folded list is at a place where the grammar does not permit one. Parse again without
        // folding, to get the right error.
        Err(_) if parser.met_list => {
            parser = new();
            parser.fold = false;
            parser.whole_statement()?
        }
        other => other?,
    };
    Ok(Parsed {
        statement,
        roles: parser.roles,
        named_by_text: parser.named_by_text,
        deprecated: parser.deprecated,
    })
}

/// Error 1064 at `offset` of `text`. For a server that rejects a second statement.
pub fn syntax_error_at(text: &[u8], offset: usize) -> SqlError {
    let first = text
        .iter()
        .take_while(|&&b| is_space(b))
        .count()
        .min(offset);
    let line = 1 + text[first.min(text.len())..offset.min(text.len())]
        .iter()
        .filter(|&&b| b == b'\n')
        .count();
    let mut rest = text.get(offset..).unwrap_or(&[]);
    while let [head @ .., last] = rest {
        if *last != b';' && !is_space(*last) {
            break;
        }
        rest = head;
    }
    // At most 80 characters are shown, which is less than this number of bytes.
    let near = String::from_utf8_lossy(&rest[..rest.len().min(400)]);
    SqlError::new(
        ErrorCode::ER_PARSE_ERROR,
        &[&ErrorCode::ER_SYNTAX_ERROR.template(), &near, &line],
    )
}

/// A position to which the parser can return.
#[derive(Clone)]
struct Checkpoint<'a> {
    lexer: Lexer<'a>,
    token: Token,
    end: u32,
    deprecated: usize,
    time_limits: u32,
}

pub(crate) struct Parser<'a> {
    text: &'a [u8],
    mode: LexMode,
    digested: Option<&'a Digested>,
    /// Whether the statement may contain `?`.
    markers_allowed: bool,
    markers: u32,
    /// Whether folded lists are read as one token.
    fold: bool,
    /// Whether a folded list was the current token of an error.
    met_list: bool,
    lexer: Lexer<'a>,
    token: Token,
    /// The end of the last accepted token.
    end: u32,
    roles: Vec<LiteralRole>,
    /// If greater than 0, literals stay in the tree.
    structural: u32,
    named_by_text: u32,
    deprecated: Vec<Deprecated>,
    /// Where `deprecated` goes at the end of a statement without an error.
    deprecated_to: Option<&'a mut Vec<Deprecated>>,
    /// The nesting depth of the expressions being parsed.
    depth: u32,
    /// The height of the highest expression since it was last set to 0.
    height: u32,
    ctes: Vec<CteSeen>,
    subqueries: u32,
    /// How many of `subqueries` are parentheses around the statement's query or an operand of its
    /// set operations.
    outermost_parens: u32,
    /// Whether the statement is a query whose result may have an INTO.
    into_allowed: bool,
    /// The INTO of the last operand of a set operation.
    into_of_operand: Option<SelectInto>,
    /// Whether INTO is used in a subquery, or before the last query of a set operation.
    misplaced_into: bool,
    nodes: u32,
    /// The optimizer hint that was met last.
    hint: Option<Token>,
    /// The engine attributes of the statement so far.
    engine_attributes: Vec<EngineAttribute>,
    /// Blocks with a hint MAX_EXECUTION_TIME.
    time_limits: u32,
}

/// A common table expression of the statement.
struct CteSeen {
    name: String,
    /// The height of the highest expression in it, which counts for each reference to it.
    height: u32,
    /// Whether it was referenced.
    named: bool,
}

impl<'a> Parser<'a> {
    fn new(
        text: &'a [u8],
        mode: LexMode,
        digested: Option<&'a Digested>,
        markers_allowed: bool,
        watch: Option<&'a Watch<'a>>,
    ) -> Self {
        let lexer = Lexer::watched(text, mode, watch);
        let slots = digested.map_or(0, |d| d.slots().len());
        let none = Token {
            kind: TokenKind::End,
            kw: Kw::Other,
            start: 0,
            end: 0,
        };
        let mut parser = Parser {
            text,
            mode,
            digested,
            markers_allowed,
            markers: 0,
            fold: digested.is_some_and(Digested::is_parameterisable),
            met_list: false,
            lexer,
            token: none,
            end: 0,
            roles: vec![LiteralRole::Structural; slots],
            structural: 0,
            named_by_text: 0,
            deprecated: Vec::new(),
            deprecated_to: None,
            depth: 0,
            height: 0,
            ctes: Vec::new(),
            subqueries: 0,
            outermost_parens: 0,
            into_allowed: false,
            into_of_operand: None,
            misplaced_into: false,
            nodes: 0,
            hint: None,
            engine_attributes: Vec::new(),
            time_limits: 0,
        };
        if !digested.is_some_and(Digested::is_parameterisable) {
            parser.structural = 1;
        }
        parser
    }

    fn whole_statement(&mut self) -> Result<Statement> {
        self.token = self.lex();
        let blank = |text: &[u8]| text.iter().all(|&b| b == b';' || is_space(b));
        let (before, rest) = self.text.split_at(self.token.start as usize);
        let nothing = match self.token.kind {
            TokenKind::End => true,
            TokenKind::Semicolon => blank(rest),
            _ => false,
        };
        if nothing && blank(before) {
            return Err(SqlError::new(ErrorCode::ER_EMPTY_QUERY, &[]));
        }
        if nothing {
            return Ok(Statement::Empty);
        }
        // Not moved: a statement is large.
        let parsed = self.statement();
        if let Ok(statement) = &parsed {
            self.end_statement(statement)?;
        }
        parsed
    }

    /// What can be said only when the whole statement was read.
    fn end_statement(&mut self, statement: &Statement) -> Result<()> {
        if !matches!(self.token.kind, TokenKind::End | TokenKind::Semicolon) {
            return self.unexpected();
        }
        if self.misplaced_into {
            return Err(SqlError::new(ErrorCode::ER_MISPLACED_INTO, &[]));
        }
        if self.time_limits > 0 && !matches!(statement, Statement::CreateView(_)) {
            let own = u32::from(statement.max_execution_ms().is_some());
            let misplaced = self.time_limits.saturating_sub(own);
            (self.deprecated).extend((0..misplaced).map(|_| Deprecated::MisplacedTimeLimit));
        }
        if !self.deprecated.is_empty()
            && let Some(to) = &mut self.deprecated_to
        {
            to.append(&mut self.deprecated);
        }
        Ok(())
    }

    /// The next token: of the lexer, or a folded list whole. An optimizer hint before it goes to
    /// `hint`.
    fn lex(&mut self) -> Token {
        let mut token = self.lexer.next_token();
        while token.kind == TokenKind::Hint {
            self.hint = Some(token);
            token = self.lexer.next_token();
        }
        if token.kind == TokenKind::LParen
            && self.fold
            && let Some(slot) = self.folded_slot_at(token.start)
        {
            self.lexer.jump(slot.span.end as usize);
            token.kind = TokenKind::List;
            token.end = slot.span.end;
        }
        token
    }

    /// The list or rows slot that begins at byte `start`.
    fn folded_slot_at(&self, start: u32) -> Option<Slot> {
        let slot = self.digested?.slots()[self.slot_at(start)? as usize];
        matches!(slot.kind, SlotKind::List | SlotKind::Rows).then_some(slot)
    }

    /// The digest's slot that begins at byte `start`.
    fn slot_at(&self, start: u32) -> Option<u32> {
        let slots = self.digested?.slots();
        slots
            .binary_search_by_key(&start, |s| s.span.start)
            .ok()
            .map(|n| n as u32)
    }

    // Tokens

    #[inline]
    fn kind(&self) -> TokenKind {
        self.token.kind
    }

    /// The current keyword; `Other` if the current token is not a word.
    #[inline]
    fn kw(&self) -> Kw {
        self.token.kw
    }

    fn bytes(&self) -> &'a [u8] {
        self.token.text(self.text)
    }

    /// Accepts the current token.
    #[inline]
    fn advance(&mut self) -> Token {
        let taken = self.token;
        self.end = taken.end;
        self.token = self.lex();
        taken
    }

    /// The token after the current one.
    fn peek(&self) -> Token {
        self.lexer.clone().next_token()
    }

    fn save(&self) -> Checkpoint<'a> {
        Checkpoint {
            lexer: self.lexer.clone(),
            token: self.token,
            end: self.end,
            deprecated: self.deprecated.len(),
            time_limits: self.time_limits,
        }
    }

    fn restore(&mut self, to: Checkpoint<'a>) {
        self.lexer = to.lexer;
        self.token = to.token;
        self.end = to.end;
        self.deprecated.truncate(to.deprecated);
        self.time_limits = to.time_limits;
    }

    #[inline]
    fn is(&self, kind: TokenKind) -> bool {
        self.token.kind == kind
    }

    #[inline]
    fn at(&self, kw: Kw) -> bool {
        self.token.kw == kw
    }

    /// Accepts the current token if it has this kind.
    fn accept(&mut self, kind: TokenKind) -> bool {
        let found = self.is(kind);
        if found {
            self.advance();
        }
        found
    }

    /// Accepts the current keyword if it is this one.
    fn accept_kw(&mut self, kw: Kw) -> bool {
        let found = self.at(kw);
        if found {
            self.advance();
        }
        found
    }

    /// Accepts the first keyword if it is the current one. Then the others must follow.
    fn accept_kws(&mut self, kws: &[Kw]) -> Result<bool> {
        let [first, rest @ ..] = kws else {
            return Ok(false);
        };
        if !self.accept_kw(*first) {
            return Ok(false);
        }
        for kw in rest {
            self.expect_kw(*kw)?;
        }
        Ok(true)
    }

    fn expect(&mut self, kind: TokenKind) -> Result<Token> {
        if self.is(kind) {
            Ok(self.advance())
        } else {
            self.unexpected()
        }
    }

    fn expect_kw(&mut self, kw: Kw) -> Result<()> {
        if self.accept_kw(kw) {
            Ok(())
        } else {
            self.unexpected()
        }
    }

    /// A syntax error at the current token.
    fn unexpected<T>(&mut self) -> Result<T> {
        if self.is(TokenKind::List) {
            self.met_list = true;
        }
        Err(syntax_error_at(self.text, self.token.start as usize))
    }

    /// `item, item, …`
    fn comma_list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut list = vec![item(self)?];
        while self.accept(TokenKind::Comma) {
            list.push(item(self)?);
        }
        Ok(list)
    }

    /// `(item, item, …)`
    fn paren_list<T>(&mut self, item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        self.expect(TokenKind::LParen)?;
        let list = self.comma_list(item)?;
        self.expect(TokenKind::RParen)?;
        Ok(list)
    }

    /// Runs `parse` with all literals kept in the tree.
    fn keeping_literals<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.structural += 1;
        let result = parse(self);
        self.structural -= 1;
        result
    }

    // Names

    /// Whether the current token can be a name: a quoted one, or a word that is not reserved.
    fn at_ident(&self) -> bool {
        match self.token.kind {
            TokenKind::QuotedIdent => true,
            TokenKind::Word => !self.token.kw.is_reserved(),
            _ => false,
        }
    }

    fn ident(&mut self) -> Result<Ident> {
        if !self.at_ident() {
            return self.unexpected();
        }
        let token = self.advance();
        self.ident_of(token)
    }

    /// A name after a dot, which may be any word.
    fn ident_after_dot(&mut self) -> Result<Ident> {
        if self.is(TokenKind::Word) && !(self.kw().is_reserved() && self.token.start != self.end) {
            let token = self.advance();
            return self.ident_of(token);
        }
        self.ident()
    }

    fn ident_of(&self, token: Token) -> Result<Ident> {
        let raw = token.text(self.text);
        let quoted = token.kind == TokenKind::QuotedIdent;
        let bytes = if quoted { unquote(raw) } else { raw.to_vec() };
        Ok(Ident {
            value: utf8(bytes)?,
            quoted,
        })
    }

    /// The name of a database: error 1059 if it is too long, whether the database exists or not.
    fn database_name(&mut self) -> Result<Ident> {
        let name = self.ident()?;
        check_length(&name.value)?;
        Ok(name)
    }

    /// `[schema.]name`: error 1059 if either name is too long, whether the object exists or not.
    fn object_name(&mut self) -> Result<ObjectName> {
        let first = self.database_name()?;
        if !self.accept(TokenKind::Dot) {
            return Ok(ObjectName {
                schema: None,
                name: first,
            });
        }
        let name = self.ident_after_dot()?;
        check_length(&name.value)?;
        Ok(ObjectName {
            schema: Some(first),
            name,
        })
    }

    /// A name or a string, like MySQL's `ident_or_text`.
    fn ident_or_text(&mut self) -> Result<String> {
        if self.is(TokenKind::Str) {
            utf8(self.string()?)
        } else {
            Ok(self.ident()?.value)
        }
    }

    /// `[SECONDARY_]ENGINE_ATTRIBUTE [=] 'document'`, from its first word
    fn engine_attribute(&mut self) -> Result<()> {
        let secondary = self.advance().kw == Kw::SECONDARY_ENGINE_ATTRIBUTE;
        self.accept(TokenKind::Eq);
        let text = self.string()?;
        self.engine_attributes
            .push(EngineAttribute { secondary, text });
        Ok(())
    }

    /// One quoted string.
    fn string(&mut self) -> Result<Vec<u8>> {
        let token = self.expect(TokenKind::Str)?;
        Ok(crate::literal::raw_string(token.text(self.text), self.mode, false).to_vec())
    }

    /// An unsigned integer that fits into 64 bits.
    fn number(&mut self) -> Result<u64> {
        let value = match crate::literal::integer(
            false,
            if self.is(TokenKind::Int) {
                self.bytes()
            } else {
                b""
            },
        ) {
            crate::literal::Lit::Int { value, .. } if self.is(TokenKind::Int) => value,
            _ => return self.unexpected(),
        };
        self.advance();
        Ok(value)
    }

    fn number32(&mut self) -> Result<u32> {
        let at = self.token.start as usize;
        let value = self.number()?;
        u32::try_from(value).map_err(|_| syntax_error_at(self.text, at))
    }

    /// Parses `@name` and returns the name.
    fn user_var(&mut self) -> Result<String> {
        let token = self.expect(TokenKind::UserVar)?;
        let raw = &token.text(self.text)[1..];
        match raw.first() {
            Some(b'`') => utf8(unquote(raw)),
            Some(b'"') if self.mode.has(LexMode::ANSI_QUOTES) => utf8(unquote(raw)),
            Some(b'\'' | b'"') => utf8(crate::literal::raw_string(raw, self.mode, false).to_vec()),
            _ => utf8(raw.to_vec()),
        }
    }

    fn span_from(&self, start: u32) -> Span {
        Span {
            start,
            end: self.end,
        }
    }

    /// Accepts all tokens up to the end of the statement.
    fn rest_of_statement(&mut self) {
        while !matches!(
            self.kind(),
            TokenKind::End | TokenKind::Semicolon | TokenKind::Invalid
        ) {
            self.advance();
        }
    }

    /// Counts a node, and rejects statements whose tree would be too large for memory.
    fn count_node(&mut self) -> Result<()> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            let message = format!("A statement may hold at most {MAX_NODES} expressions");
            return Err(SqlError::with_message(
                ErrorCode::ER_OUT_OF_RESOURCES,
                message,
            ));
        }
        Ok(())
    }

    /// Records an expression of this height.
    fn grow(&mut self, height: u32) -> Result<u32> {
        if height > MAX_HEIGHT {
            return Err(too_deep(MAX_HEIGHT));
        }
        self.height = self.height.max(height);
        Ok(height)
    }

    /// Records a reference to a table, which may be a common table expression.
    fn grow_by_table(&mut self, name: &ObjectName) -> Result<()> {
        let mut seen = self.ctes.iter_mut().rev();
        let Some(cte) = seen.find(|c| name.schema.is_none() && c.name == name.name.value) else {
            return Ok(());
        };
        cte.named = true;
        let height = cte.height + 1;
        self.grow(height).map(drop)
    }

    fn check_depth(&self) -> Result<()> {
        if self.depth > MAX_DEPTH {
            Err(too_deep(MAX_DEPTH))
        } else {
            Ok(())
        }
    }

    /// Runs `parse` with the depth raised by `levels`.
    fn deeper<T>(&mut self, levels: u32, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.depth += levels;
        self.check_depth()?;
        let result = parse(self);
        self.depth -= levels;
        result
    }
}

/// MySQL's error for a statement that would overflow its stack.
/// Checks the length of an identifier: 64 characters.
///
/// # Errors
/// 1059.
pub fn check_length(name: &str) -> Result<()> {
    if name.len() > 64 && name.chars().count() > 64 {
        return Err(SqlError::new(ErrorCode::ER_TOO_LONG_IDENT, &[&name]));
    }
    Ok(())
}

fn too_deep(limit: u32) -> SqlError {
    let message = format!("Thread stack overrun: expressions may nest {limit} levels deep");
    SqlError::with_message(ErrorCode::ER_STACK_OVERRUN_NEED_MORE, message)
}

/// Removes the quotes of a name.
fn unquote(raw: &[u8]) -> Vec<u8> {
    let quote = raw[0];
    let mut out = Vec::with_capacity(raw.len());
    let mut bytes = raw[1..raw.len() - 1].iter();
    while let Some(&b) = bytes.next() {
        if b == quote {
            bytes.next();
        }
        out.push(b);
    }
    out
}

/// Names must be UTF-8. Otherwise the error is 1300.
fn utf8(bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|e| {
        let bad = &e.as_bytes()[e.utf8_error().valid_up_to()..];
        let shown: String = bad.iter().take(6).map(|b| format!("\\x{b:02X}")).collect();
        SqlError::new(
            ErrorCode::ER_INVALID_CHARACTER_STRING,
            &[&"utf8mb4", &shown],
        )
    })
}

/// Digits behind an introducer must be well-formed in a set of several bytes. Otherwise the
/// error is 1300.
fn check_introduced(charset: &str, bytes: &[u8]) -> Result<()> {
    let known = Charset::by_name(charset).filter(|set| set.is_multi_byte());
    match known.map(|set| (set, set.is_valid(bytes))) {
        Some((set, Err(at))) => Err(set.malformed(&bytes[at..])),
        _ => Ok(()),
    }
}

/// The error for an unknown word as the value of an option.
fn unknown_option(code: ErrorCode, word: &Ident) -> SqlError {
    SqlError::new(code, &[&word.value])
}

/// A reference to a column by its unqualified name.
fn bare_column(name: Ident) -> Expr {
    Expr::Column(Box::new(crate::ast::ColumnRef {
        schema: None,
        table: None,
        name,
    }))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
