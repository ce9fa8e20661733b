//! Groups: kinds, flags, names, comments, references by name.

use super::{Frame, GroupKind, NESTED_MAX, Next, Parser};
use crate::error::PatternError;
use crate::flags::Flags;
use crate::node::Node;

impl Parser<'_, '_> {
    /// What follows an opening parenthesis.
    pub(super) fn open(&mut self) -> Result<Next, PatternError> {
        if self.at.is('?') {
            self.scanner.end_of_line_comments = false;
            self.advance()?;
            return self.open_extended();
        }
        self.open_capture(None)?;
        Ok(Next::Term)
    }

    fn open_group(&mut self, kind: GroupKind) -> Result<(), PatternError> {
        let flags = self.flags;
        self.frames.push(Frame::new(kind, flags));
        if self.frames.len() > NESTED_MAX + 1 {
            return Err(PatternError::Internal);
        }
        Ok(())
    }

    fn open_capture(&mut self, name: Option<String>) -> Result<(), PatternError> {
        self.groups += 1;
        let group = self.groups;
        if let Some(name) = name {
            if self.names.iter().any(|(known, _)| *known == name) {
                return Err(PatternError::InvalidGroupName);
            }
            self.names.push((name, group));
        }
        self.open_group(GroupKind::Capture(group))
    }

    /// What follows `(?`.
    fn open_extended(&mut self) -> Result<Next, PatternError> {
        let at = self.at;
        let kind = if at.is(':') {
            GroupKind::Plain
        } else if at.is('>') {
            GroupKind::Atomic
        } else if at.is('=') || at.is('!') {
            GroupKind::Look {
                behind: false,
                negative: at.is('!'),
            }
        } else if at.is('<') {
            self.advance()?;
            return self.open_look_behind();
        } else if at.is('#') {
            self.comment()?;
            return Ok(Next::Term);
        } else if "idmsuwx-".chars().any(|c| at.is(c)) {
            return self.flags_group();
        } else if at.is('(') || at.is('{') {
            return Err(PatternError::Unimplemented);
        } else {
            return Err(self.scanner.syntax());
        };
        self.open_group(kind)?;
        self.advance()?;
        Ok(Next::Term)
    }

    fn open_look_behind(&mut self) -> Result<Next, PatternError> {
        let at = self.at;
        if at.is('=') || at.is('!') {
            self.open_group(GroupKind::Look {
                behind: true,
                negative: at.is('!'),
            })?;
            self.advance()?;
            return Ok(Next::Term);
        }
        if !at.is_ascii_letter() {
            return Err(self.scanner.syntax());
        }
        let name = self.name()?;
        self.open_capture(Some(name))?;
        self.advance()?;
        Ok(Next::Term)
    }

    /// Parses a group's name. Stops at its `>`.
    fn name(&mut self) -> Result<String, PatternError> {
        let mut name = String::new();
        while !self.at.is('>') {
            let letter = self.at.is_ascii_letter() || self.at.digit().is_some();
            let code = u32::try_from(self.at.code).ok().filter(|_| letter);
            let c = code.and_then(char::from_u32);
            name.push(c.ok_or(PatternError::InvalidGroupName)?);
            self.advance()?;
        }
        Ok(name)
    }

    /// Parses `\k<name>`. Stops at its `>`.
    pub(super) fn named_reference(&mut self) -> Result<(), PatternError> {
        self.advance()?;
        if !self.at.is('<') {
            return Err(PatternError::InvalidGroupName);
        }
        self.advance()?;
        if !self.at.is_ascii_letter() {
            return Err(PatternError::InvalidGroupName);
        }
        let name = self.name()?;
        let known = self.names.iter().find(|(known, _)| *known == name);
        let group = known.ok_or(PatternError::InvalidGroupName)?.1;
        self.push_reference(group);
        Ok(())
    }

    /// Skips a comment, from its `#` on.
    fn comment(&mut self) -> Result<(), PatternError> {
        self.advance()?;
        while !self.at.is(')') {
            if self.at.is_end() {
                return Err(PatternError::MismatchedParen);
            }
            self.advance()?;
        }
        self.advance()
    }

    /// A parenthesis after a term: a comment may stand between a term and its quantifier.
    pub(super) fn comment_before_quantifier(&mut self) -> Result<Option<Next>, PatternError> {
        self.advance()?;
        if !self.at.is('?') {
            return self.open().map(Some);
        }
        self.scanner.end_of_line_comments = false;
        self.advance()?;
        if self.at.is('#') {
            self.comment()?;
            return Ok(Some(Next::Quantifier));
        }
        self.open_extended().map(Some)
    }

    /// `(?im-sx)` and `(?im-sx:`
    fn flags_group(&mut self) -> Result<Next, PatternError> {
        let mut flags = self.flags;
        let mut on = true;
        loop {
            let at = self.at;
            if at.is(')') || at.is(':') {
                break;
            } else if at.is('-') {
                on = false;
            } else if !set_flag(&mut flags, |c| at.is(c), on) {
                return Err(PatternError::InvalidFlag);
            }
            self.advance()?;
        }
        if self.at.is(':') {
            self.open_group(GroupKind::Plain)?;
        } else {
            // Keeps strings of different flags apart.
            self.push(Node::Empty);
        }
        self.flags = flags;
        self.advance()?;
        Ok(Next::Term)
    }

    /// Closes the innermost group, at its parenthesis.
    pub(super) fn close(&mut self) -> Result<Next, PatternError> {
        let frame = self.frames.pop().ok_or(PatternError::MismatchedParen)?;
        if self.frames.is_empty() {
            return Err(PatternError::MismatchedParen);
        }
        self.flags = frame.flags;
        let kind = frame.kind;
        let body = Box::new(frame.finish());
        let mut next = Next::Quantifier;
        let node = match kind {
            GroupKind::Pattern | GroupKind::Plain => Node::Concat(vec![*body]),
            GroupKind::Capture(group) => Node::Capture { group, body },
            GroupKind::Atomic => Node::Atomic(body),
            GroupKind::Look { behind, negative } => {
                next = Next::Continue;
                if behind {
                    crate::length::check_look_behind(&body)?;
                }
                Node::Look {
                    behind,
                    negative,
                    body,
                }
            }
        };
        self.push(node);
        Ok(next)
    }
}

fn set_flag(flags: &mut Flags, is: impl Fn(char) -> bool, on: bool) -> bool {
    let flag = if is('i') {
        &mut flags.case_insensitive
    } else if is('d') {
        &mut flags.unix_lines
    } else if is('m') {
        &mut flags.multi_line
    } else if is('s') {
        &mut flags.dot_all
    } else if is('w') {
        &mut flags.unicode_words
    } else if is('x') {
        &mut flags.comments
    } else {
        // Letters are always matched by their Unicode case.
        return is('u');
    };
    *flag = on;
    true
}
