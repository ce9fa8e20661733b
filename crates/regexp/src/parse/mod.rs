//! Parses a pattern by the grammar of ICU's `regexcst.txt`.
//!
//! The parser keeps its own stack of open groups, so a deeply nested pattern cannot exhaust the
//! thread's stack.

mod group;
pub(crate) mod scan;
mod set;

use std::rc::Rc;

use scan::{Scanned, Scanner};

use crate::error::PatternError;
use crate::flags::Flags;
use crate::length::OPS_MAX;
use crate::node::{Assertion, Dot, Greed, Node};
use crate::unicode::{CharSet, classes};
use crate::work::Work;

/// A parsed pattern.
#[derive(Debug)]
pub struct Parsed {
    pub node: Node,
    pub groups: u32,
    /// Groups with a name.
    pub names: Vec<(String, u32)>,
    pub back_references: bool,
}

/// What may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Term,
    /// A term, or a quantifier of the term before.
    Quantifier,
    /// A term; a quantifier is an error.
    Continue,
}

/// A group, or the whole pattern, that is being parsed.
struct Frame {
    kind: GroupKind,
    /// Flags before the group.
    flags: Flags,
    alternatives: Vec<Node>,
    current: Vec<Node>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GroupKind {
    Pattern,
    Plain,
    Capture(u32),
    Atomic,
    Look { behind: bool, negative: bool },
}

/// ICU's limit of nested groups and sets.
const NESTED_MAX: usize = 99;

/// Counts and code positions of a compiled pattern are 24 bits wide in ICU.
const NUMBER_MAX: u32 = 0x00ff_ffff;

/// Characters that are decoded between two reports of work.
const PIECE_CHARS: usize = 4096;

struct Parser<'p, 'w> {
    scanner: Scanner<'p>,
    work: &'p mut Work<'w>,
    at: Scanned,
    flags: Flags,
    frames: Vec<Frame>,
    groups: u32,
    names: Vec<(String, u32)>,
    /// The last literal of all sets so far, or [`scan::END`]: the left side of a range.
    last_set_literal: i64,
    classes: Vec<(char, Rc<CharSet>)>,
    back_references: bool,
    /// How many nodes the pattern has so far.
    nodes: usize,
}

/// Parses `pattern`.
pub fn parse(pattern: &str, flags: Flags, work: &mut Work<'_>) -> Result<Parsed, PatternError> {
    let mut chars: Vec<char> = Vec::with_capacity(pattern.len());
    let mut left = pattern.chars();
    loop {
        let before = chars.len();
        chars.extend(left.by_ref().take(PIECE_CHARS));
        if chars.len() == before {
            break;
        }
        work.spend((chars.len() - before) as u64)?;
    }
    if chars.is_empty() {
        return Err(PatternError::IllegalArgument);
    }
    let mut parser = Parser {
        scanner: Scanner::new(&chars),
        work,
        at: Scanned {
            code: scan::END,
            quoted: false,
        },
        flags,
        frames: vec![Frame::new(GroupKind::Pattern, flags)],
        groups: 0,
        names: Vec::new(),
        last_set_literal: scan::END,
        classes: Vec::new(),
        back_references: false,
        nodes: 0,
    };
    parser.advance()?;
    let node = parser.pattern()?;
    Ok(Parsed {
        node,
        groups: parser.groups,
        names: parser.names,
        back_references: parser.back_references,
    })
}

impl Frame {
    fn new(kind: GroupKind, flags: Flags) -> Self {
        Frame {
            kind,
            flags,
            alternatives: Vec::new(),
            current: Vec::new(),
        }
    }

    /// Ends an alternative.
    fn or(&mut self) {
        let nodes = std::mem::take(&mut self.current);
        self.alternatives.push(Node::Concat(nodes));
    }

    /// The node of the parsed pattern.
    fn finish(mut self) -> Node {
        self.or();
        match self.alternatives.len() {
            1 => self.alternatives.remove(0),
            _ => Node::Alternate(self.alternatives),
        }
    }
}

impl Parser<'_, '_> {
    fn advance(&mut self) -> Result<(), PatternError> {
        self.work.spend(1)?;
        // Each node becomes an operation or a character of a literal, of which ICU has no more.
        if self.nodes > OPS_MAX {
            return Err(PatternError::TooBig);
        }
        self.at = self.scanner.advance(self.flags.comments)?;
        Ok(())
    }

    fn push(&mut self, node: Node) {
        self.nodes += 1;
        if let Some(frame) = self.frames.last_mut() {
            frame.current.push(node);
        }
    }

    fn pattern(&mut self) -> Result<Node, PatternError> {
        let mut next = Next::Term;
        loop {
            if next == Next::Quantifier
                && let Some(after) = self.quantifier()?
            {
                next = after;
                continue;
            }
            if self.at.is_end() {
                return self.finish();
            }
            next = self.term()?;
        }
    }

    fn finish(&mut self) -> Result<Node, PatternError> {
        match self.frames.pop() {
            Some(frame) if self.frames.is_empty() => Ok(frame.finish()),
            Some(frame) => {
                // ICU closes the innermost group before it reports that it is open.
                if let GroupKind::Look { behind: true, .. } = frame.kind {
                    crate::length::check_look_behind(&frame.finish())?;
                }
                Err(PatternError::MismatchedParen)
            }
            None => Err(PatternError::MismatchedParen),
        }
    }

    /// A term, an alternative's or a group's end.
    fn term(&mut self) -> Result<Next, PatternError> {
        let at = self.at;
        if at.quoted || at.is_plain() {
            return self.literal(at.code);
        }
        if at.is('[') {
            let set = self.set()?;
            self.push_set(set);
            return Ok(Next::Quantifier);
        }
        if at.is('\\') {
            self.advance()?;
            return self.escape();
        }
        if !"(.^$|)".chars().any(|c| at.is(c)) {
            return Err(self.scanner.syntax());
        }
        self.advance_after(at)
    }

    fn advance_after(&mut self, at: Scanned) -> Result<Next, PatternError> {
        if at.is(')') {
            let next = self.close()?;
            self.advance()?;
            return Ok(next);
        }
        if at.is('(') {
            self.advance()?;
            return self.open();
        }
        if at.is('|') {
            if let Some(frame) = self.frames.last_mut() {
                frame.or();
            }
            self.advance()?;
            return Ok(Next::Term);
        }
        let node = if at.is('.') {
            Node::Dot(self.dot())
        } else if at.is('^') {
            Node::Assert(self.caret())
        } else {
            Node::Assert(self.dollar())
        };
        self.push(node);
        self.advance()?;
        Ok(Next::Quantifier)
    }

    fn literal(&mut self, code: i64) -> Result<Next, PatternError> {
        let code = u32::try_from(code).map_err(|_| PatternError::BadEscape)?;
        let fold = self.flags.case_insensitive;
        self.push(Node::Char { code, fold });
        self.advance()?;
        Ok(Next::Quantifier)
    }

    /// A set, or the character that it consists of.
    fn push_set(&mut self, set: CharSet) {
        let fold = self.flags.case_insensitive;
        let node = match set.single() {
            Some(code) => Node::Char { code, fold },
            None if set.is_empty() => Node::Never,
            None => Node::Set(Rc::new(set)),
        };
        self.push(node);
    }

    fn dot(&self) -> Dot {
        match (self.flags.dot_all, self.flags.unix_lines) {
            (true, _) => Dot::All,
            (false, true) => Dot::UnixLine,
            (false, false) => Dot::Line,
        }
    }

    fn caret(&self) -> Assertion {
        match (self.flags.multi_line, self.flags.unix_lines) {
            (false, _) => Assertion::TextStart,
            (true, false) => Assertion::LineStart,
            (true, true) => Assertion::UnixLineStart,
        }
    }

    fn dollar(&self) -> Assertion {
        match (self.flags.multi_line, self.flags.unix_lines) {
            (false, false) => Assertion::TextEnd,
            (false, true) => Assertion::UnixTextEnd,
            (true, false) => Assertion::LineEnd,
            (true, true) => Assertion::UnixLineEnd,
        }
    }

    /// What follows a backslash that is no escape of one character.
    fn escape(&mut self) -> Result<Next, PatternError> {
        let at = self.at;
        if at.is_end() {
            return Err(PatternError::BadEscape);
        }
        let letter = u32::try_from(at.code).ok().and_then(char::from_u32);
        let letter = letter.filter(|_| !at.quoted).unwrap_or('\0');
        if let Some(assertion) = self.assertion(letter)? {
            self.push(Node::Assert(assertion));
            self.advance()?;
            return Ok(Next::Term);
        }
        match letter {
            'd' | 'D' | 'h' | 'H' | 's' | 'S' | 'v' | 'V' | 'w' | 'W' => {
                let set = self.class_set(letter)?;
                self.push(Node::Set(set));
            }
            'R' => self.push(Node::LineBreak),
            'X' => self.push(Node::Grapheme),
            'p' | 'P' => {
                let set = self.property()?;
                self.push_set(set);
                return Ok(Next::Quantifier);
            }
            'N' => {
                let code = self.named_char()?;
                let fold = self.flags.case_insensitive;
                self.push(Node::Char { code, fold });
                return Ok(Next::Quantifier);
            }
            'k' => self.named_reference()?,
            '1'..='9' => self.reference(letter),
            _ => return self.literal(at.code),
        }
        self.advance()?;
        Ok(Next::Quantifier)
    }

    /// The set of a class outside of brackets, built once for each pattern.
    fn class_set(&mut self, letter: char) -> Result<Rc<CharSet>, PatternError> {
        if let Some((_, set)) = self.classes.iter().find(|(known, _)| *known == letter) {
            return Ok(Rc::clone(set));
        }
        let set = Rc::new(class(letter).unwrap_or_default());
        self.classes.push((letter, Rc::clone(&set)));
        Ok(set)
    }

    fn assertion(&self, letter: char) -> Result<Option<Assertion>, PatternError> {
        let words = matches!(letter, 'b' | 'B') && self.flags.unicode_words;
        if words {
            return Err(PatternError::NotSupported("(?w) in regular expressions"));
        }
        Ok(match letter {
            'A' => Some(Assertion::TextStart),
            'b' => Some(Assertion::WordBoundary),
            'B' => Some(Assertion::NoWordBoundary),
            'G' => Some(Assertion::MatchEnd),
            // Not subject to the flags, unlike `$`.
            'Z' => Some(Assertion::TextEnd),
            'z' => Some(Assertion::VeryEnd),
            _ => None,
        })
    }

    /// Parses `\1`. It takes further digits as long as a group with that number exists.
    fn reference(&mut self, first: char) {
        let mut group = first.to_digit(10).unwrap_or(0);
        while group < self.groups {
            let digit = self.scanner.peek() - i64::from(b'0');
            let Some(digit) = u32::try_from(digit).ok().filter(|d| *d < 10) else {
                break;
            };
            group = group.saturating_mul(10).saturating_add(digit);
            self.scanner.skip();
        }
        self.push_reference(group);
    }

    fn push_reference(&mut self, group: u32) {
        let fold = self.flags.case_insensitive;
        self.back_references = true;
        self.push(Node::BackReference { group, fold });
    }

    /// Parses the quantifier after the last node, if there is one.
    fn quantifier(&mut self) -> Result<Option<Next>, PatternError> {
        let at = self.at;
        let (min, max) = if at.is('*') {
            (0, None)
        } else if at.is('+') {
            (1, None)
        } else if at.is('?') {
            (0, Some(1))
        } else if at.is('{') {
            self.advance()?;
            return self.interval().map(Some);
        } else if at.is('(') {
            return self.comment_before_quantifier();
        } else {
            return Ok(None);
        };
        self.advance()?;
        if max.is_some() && self.at.is('?') {
            self.advance()?;
            let body = self.last_node();
            self.push(Node::LazyOption(Box::new(body)));
        } else {
            self.repeat(min, max)?;
        }
        Ok(Some(Next::Continue))
    }

    /// Takes the node that a quantifier applies to.
    fn last_node(&mut self) -> Node {
        let last = self.frames.last_mut().and_then(|f| f.current.pop());
        last.unwrap_or(Node::Empty)
    }

    /// Wraps the last node; reads what makes the quantifier lazy or possessive.
    fn repeat(&mut self, min: u32, max: Option<u32>) -> Result<(), PatternError> {
        let greed = if self.at.is('?') {
            Greed::Lazy
        } else if self.at.is('+') {
            Greed::Possessive
        } else {
            Greed::Greedy
        };
        if greed != Greed::Greedy {
            self.advance()?;
        }
        let body = self.last_node();
        self.push(Node::Repeat {
            body: Box::new(body),
            min,
            max,
            greed,
        });
        Ok(())
    }

    /// `{min,max}` after its brace.
    fn interval(&mut self) -> Result<Next, PatternError> {
        let min = self.number()?.ok_or(PatternError::BadInterval)?;
        let mut max = Some(min);
        if self.at.is(',') {
            self.advance()?;
            max = self.number()?;
        }
        if !self.at.is('}') {
            return Err(PatternError::BadInterval);
        }
        self.advance()?;
        if min > NUMBER_MAX || max.is_some_and(|max| max > NUMBER_MAX) {
            return Err(PatternError::NumberTooBig);
        }
        if max.is_some_and(|max| max < min) {
            return Err(PatternError::MaxBelowMin);
        }
        self.repeat(min, max)?;
        Ok(Next::Continue)
    }

    fn number(&mut self) -> Result<Option<u32>, PatternError> {
        let mut number: Option<u32> = None;
        while let Some(digit) = self.at.digit() {
            let value = u64::from(number.unwrap_or(0)) * 10 + u64::from(digit);
            let value = i32::try_from(value).map_err(|_| PatternError::NumberTooBig)?;
            number = Some(value.unsigned_abs());
            self.advance()?;
        }
        Ok(number)
    }
}

/// The set of a class like `\d`; `None` for letters that name none.
fn class(letter: char) -> Option<CharSet> {
    let set = match letter.to_ascii_lowercase() {
        'd' => classes::digits(),
        'h' => classes::horizontal_space(),
        's' => classes::space(),
        'v' => classes::line_ends(),
        'w' => classes::word(),
        _ => return None,
    };
    Some(if letter.is_ascii_uppercase() {
        set.negated()
    } else {
        set
    })
}
