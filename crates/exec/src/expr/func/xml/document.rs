//! Parses XML as MySQL does: without DTD and entities, and laxly. A closing tag is compared with
//! its opening tag by length alone, processing instructions and declarations are elements, and text
//! may stand outside of elements.

use nfold_types::SqlError;

use crate::expr::eval::EvalCx;

/// Elements within each other, the document included.
const DEPTH_MAX: usize = 255;

/// The bytes of a tag's name that an error shows.
const SHOWN_NAME_BYTES: usize = 31;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeKind {
    Element,
    Attribute,
    Text,
}

/// A node. The root, which is the document, is the first one; it is its own parent.
#[derive(Debug)]
pub(super) struct Node {
    pub kind: NodeKind,
    /// The number of its ancestors.
    pub level: usize,
    pub parent: usize,
    /// The bytes of its name, or of its text.
    pub start: usize,
    pub end: usize,
    /// The end of what was read of its closing tag, or of an attribute's value.
    pub tag_end: usize,
}

/// The nodes of a text, in its order.
pub(super) struct Document<'t> {
    pub text: &'t [u8],
    pub nodes: Vec<Node>,
}

impl<'t> Document<'t> {
    /// The bytes of a node's name, or of its text.
    pub fn bytes(&self, node: usize) -> &'t [u8] {
        &self.text[self.nodes[node].start..self.nodes[node].end]
    }

    /// The nodes within `node`, and those beside it that come before the first other one.
    pub fn below(&self, node: usize) -> impl Iterator<Item = usize> {
        let level = self.nodes[node].level;
        let rest = self.nodes[node + 1..].iter();
        let within = rest.take_while(move |n| n.level > level).count();
        node + 1..node + 1 + within
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    End,
    Text,
    Name,
    CData,
    Comment,
    Unknown,
    /// One of `?=/<>!`, or the byte 0.
    Sign(u8),
}

impl Token {
    /// The token's name in errors.
    fn name(self) -> &'static str {
        match self {
            Token::End => "END-OF-INPUT",
            Token::Text => "STRING",
            Token::Name => "IDENT",
            Token::CData => "CDATA",
            Token::Comment => "COMMENT",
            Token::Unknown | Token::Sign(0) => "unknown token",
            Token::Sign(b'?') => "'?'",
            Token::Sign(b'=') => "'='",
            Token::Sign(b'/') => "'/'",
            Token::Sign(b'<') => "'<'",
            Token::Sign(b'>') => "'>'",
            Token::Sign(_) => "'!'",
        }
    }
}

/// Why a text is no XML, as the warning says it.
type Fault = String;

struct Parser<'t> {
    text: &'t [u8],
    at: usize,
    nodes: Vec<Node>,
    /// The open elements, the root first.
    open: Vec<usize>,
}

/// Parses a text. An invalid one is the message of warning 1525.
///
/// # Errors
/// The statement is killed or out of time.
pub(super) fn parse<'t>(
    cx: &EvalCx<'_>,
    text: &'t [u8],
) -> Result<Result<Document<'t>, Fault>, SqlError> {
    let mut parser = Parser {
        text,
        at: 0,
        nodes: Vec::new(),
        open: Vec::new(),
    };
    parser.add(NodeKind::Element, (0, 0));
    parser.open.push(0);
    let mut done = 0;
    while parser.at < text.len() {
        if let Err(fault) = parser.piece() {
            return Ok(Err(parser.located(&fault)));
        }
        cx.checkpoint(4 * (parser.at - done) as u64)?;
        done = parser.at;
    }
    if parser.open.len() > 1 {
        return Ok(Err(parser.located("unexpected END-OF-INPUT")));
    }
    Ok(Ok(Document {
        text,
        nodes: parser.nodes,
    }))
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn starts_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b':') || byte >= 0x80
}

fn continues_name(byte: u8) -> bool {
    starts_name(byte) || byte.is_ascii_digit() || matches!(byte, b'-' | b'.')
}

impl Parser<'_> {
    /// A fault with its line, and its position in it.
    fn located(&self, fault: &str) -> Fault {
        let read = &self.text[..self.at];
        let line = 1 + read.iter().filter(|b| **b == b'\n').count();
        // The line feed before it counts.
        let start = read.iter().rposition(|b| *b == b'\n').unwrap_or(0);
        let position = self.at - start + 1;
        format!("parse error at line {line} pos {position}: {fault}")
    }

    fn add(&mut self, kind: NodeKind, (start, end): (usize, usize)) {
        self.nodes.push(Node {
            kind,
            level: self.open.len(),
            parent: self.open.last().copied().unwrap_or(0),
            start,
            end,
            tag_end: end,
        });
    }

    fn enter(&mut self, kind: NodeKind, name: (usize, usize)) -> Result<(), Fault> {
        if self.open.len() >= DEPTH_MAX {
            return Err(Fault::new());
        }
        self.add(kind, name);
        self.open.push(self.nodes.len() - 1);
        Ok(())
    }

    /// Closes the innermost element. `name`: the closing tag's, if there is one.
    fn leave(&mut self, name: Option<&[u8]>) -> Result<(), Fault> {
        let open = match self.open.as_slice() {
            [_, .., open] => Some(*open),
            _ => None,
        };
        let wanted = open.map(|n| &self.text[self.nodes[n].start..self.nodes[n].end]);
        if let Some(name) = name
            && name.len() != wanted.map_or(0, <[u8]>::len)
        {
            return Err(unexpected_end(name, wanted, self.open.len() == 2));
        }
        if let Some(open) = open {
            self.nodes[open].tag_end = self.at;
            self.open.pop();
        }
        Ok(())
    }

    /// Reads a token, and the bytes of its name or text.
    fn token(&mut self) -> (Token, (usize, usize)) {
        let text = self.text;
        while self.at < text.len() && is_space(text[self.at]) {
            self.at += 1;
        }
        let start = self.at;
        let rest = &text[start..];
        let Some(first) = rest.first().copied() else {
            return (Token::End, (start, start));
        };
        if rest.starts_with(b"<!--") {
            let end = find(rest, b"-->");
            self.at += end.map_or(rest.len(), |at| at + 3);
            return (Token::Comment, (start, self.at));
        }
        if rest.starts_with(CDATA) {
            let Some(end) = find(&rest[CDATA.len()..], b"]]>") else {
                self.at = text.len();
                return (Token::End, (start, start));
            };
            let content = start + CDATA.len();
            self.at = content + end + 3;
            return (Token::CData, (content, content + end));
        }
        if b"?=/<>!\0".contains(&first) {
            self.at += 1;
            return (Token::Sign(first), (start, self.at));
        }
        if matches!(first, b'"' | b'\'') {
            let len = rest[1..].iter().position(|b| *b == first);
            let end = start + 1 + len.unwrap_or(rest.len() - 1);
            self.at = text.len().min(end + 1);
            return (Token::Text, (start + 1, end));
        }
        if !starts_name(first) {
            return (Token::Unknown, (start, start));
        }
        let len = rest.iter().position(|b| !continues_name(*b));
        self.at += len.unwrap_or(rest.len());
        (Token::Name, (start, self.at))
    }

    /// Reads a text, a tag, a comment or a CDATA section.
    fn piece(&mut self) -> Result<(), Fault> {
        if self.text[self.at] != b'<' {
            let start = self.at;
            let rest = &self.text[start..];
            let len = rest.iter().position(|b| *b == b'<');
            self.at += len.unwrap_or(rest.len());
            self.add(NodeKind::Text, (start, self.at));
            return Ok(());
        }
        match self.token() {
            (Token::Comment, _) => Ok(()),
            (Token::CData, content) => {
                self.add(NodeKind::Text, content);
                Ok(())
            }
            (Token::End, _) => Err("unexpected END-OF-INPUT".to_owned()),
            _ => self.tag(),
        }
    }

    /// Reads a tag behind its `<`.
    fn tag(&mut self) -> Result<(), Fault> {
        let (mut token, mut name) = self.token();
        if token == Token::Sign(b'/') {
            let (token, (start, end)) = self.token();
            if token != Token::Name {
                return Err(format!("{} unexpected (ident wanted)", token.name()));
            }
            let text = self.text;
            self.leave(Some(&text[start..end]))?;
            let token = self.token().0;
            return expect_end(token);
        }
        let kind = match token {
            Token::Sign(sign @ (b'!' | b'?')) => {
                (token, name) = self.token();
                Some(sign)
            }
            _ => None,
        };
        if token != Token::Name {
            return Err(format!("{} unexpected (ident or '/' wanted)", token.name()));
        }
        self.enter(NodeKind::Element, name)?;
        let mut token = self.attributes(kind == Some(b'!'))?;
        if token == Token::Sign(b'/') {
            self.leave(None)?;
            token = self.token().0;
        }
        match kind {
            Some(b'?') => {
                if token != Token::Sign(b'?') {
                    return Err(format!("{} unexpected ('?' wanted)", token.name()));
                }
                self.leave(None)?;
                token = self.token().0;
            }
            Some(_) => self.leave(None)?,
            None => {}
        }
        expect_end(token)
    }

    /// Reads attributes, with and without values; returns the token after them. A declaration
    /// (`<!DOCTYPE a SYSTEM "b">`) may have texts among them.
    fn attributes(&mut self, declaration: bool) -> Result<Token, Fault> {
        loop {
            let (token, name) = self.token();
            match token {
                Token::Name => {}
                Token::Text if declaration => {}
                _ => return Ok(token),
            }
            let (token, _) = self.token();
            match token {
                Token::Sign(b'=') => {
                    let (token, value) = self.token();
                    if !matches!(token, Token::Name | Token::Text) {
                        let name = token.name();
                        return Err(format!("{name} unexpected (ident or string wanted)"));
                    }
                    self.enter(NodeKind::Attribute, name)?;
                    self.add(NodeKind::Text, value);
                    self.leave(None)?;
                }
                // As in MySQL the second name is lost.
                Token::Name => {
                    self.enter(NodeKind::Attribute, name)?;
                    self.leave(None)?;
                }
                Token::Text if declaration => {}
                _ => return Ok(token),
            }
        }
    }
}

const CDATA: &[u8] = b"<![CDATA[";

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|w| w == what)
}

fn expect_end(token: Token) -> Result<(), Fault> {
    match token {
        Token::Sign(b'>') => Ok(()),
        _ => Err(format!("{} unexpected ('>' wanted)", token.name())),
    }
}

/// The fault of a closing tag `name` where `wanted` is open. `outer`: it is an element that lies in
/// no other; MySQL shows its name without the first byte.
fn unexpected_end(name: &[u8], wanted: Option<&[u8]>, outer: bool) -> Fault {
    let shown = |name: &[u8]| {
        let cut = &name[..name.len().min(SHOWN_NAME_BYTES)];
        String::from_utf8_lossy(cut).into_owned()
    };
    let name = shown(name);
    match wanted {
        None => format!("'</{name}>' unexpected (END-OF-INPUT wanted)"),
        Some(wanted) => {
            let wanted = shown(&wanted[usize::from(outer)..]);
            format!("'</{name}>' unexpected ('</{wanted}>' wanted)")
        }
    }
}
