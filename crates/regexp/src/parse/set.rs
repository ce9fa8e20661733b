//! Set expressions: `[a-z&&[^aeiou]]`, properties, POSIX classes.

use super::scan::{END, Scanned};
use super::{NESTED_MAX, Parser, class};
use crate::error::PatternError;
use crate::unicode::{CharSet, named_char, property};

/// Operators of set expressions that wait for their right side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Start,
    Negate,
    /// Adds the other case of every character.
    CloseCase,
    Difference,
    Intersection,
    Union,
    /// `-` before a set
    SetDifference,
    /// `&` before a set
    SetIntersection,
}

impl Operator {
    fn precedence(self) -> u8 {
        match self {
            Operator::Start => 0,
            Operator::Negate | Operator::CloseCase => 2,
            Operator::Difference | Operator::Intersection => 3,
            Operator::Union | Operator::SetDifference | Operator::SetIntersection => 4,
        }
    }
}

/// About the work of building the set of a class or a property.
const SET_WORK: u64 = 2000;

const END_PRECEDENCE: u8 = 1;

/// The last item that was read, as far as it affects the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    Start,
    Literal,
    Set,
    /// A range or a class like `\d`
    Range,
    /// `--` or `&&`
    Operator,
}

struct SetStack {
    sets: Vec<CharSet>,
    operators: Vec<Operator>,
    last_literal: i64,
}

impl SetStack {
    fn top(&mut self) -> &mut CharSet {
        if self.sets.is_empty() {
            self.sets.push(CharSet::default());
        }
        let last = self.sets.len() - 1;
        &mut self.sets[last]
    }

    /// Does the operations that bind at least as strongly.
    fn evaluate(&mut self, precedence: u8) {
        while let Some(&operator) = self.operators.last() {
            if operator.precedence() < precedence {
                return;
            }
            self.operators.pop();
            match operator {
                Operator::Start => {}
                Operator::Negate => self.top().negate(),
                Operator::CloseCase => self.top().close_case(),
                _ => {
                    let right = self.sets.pop().unwrap_or_default();
                    let left = self.top();
                    match operator {
                        Operator::Union => left.add_all(&right),
                        Operator::Intersection | Operator::SetIntersection => {
                            left.retain_all(&right);
                        }
                        _ => left.remove_all(&right),
                    }
                }
            }
        }
    }

    fn push(&mut self, operator: Operator) {
        self.evaluate(operator.precedence());
        self.operators.push(operator);
        self.sets.push(CharSet::default());
    }

    fn literal(&mut self, code: i64) {
        self.evaluate(Operator::Union.precedence());
        self.top().add(code, code);
        self.last_literal = code;
    }
}

impl Parser<'_, '_> {
    /// Parses a set expression.
    pub(super) fn set(&mut self) -> Result<CharSet, PatternError> {
        let outer = self.frames.len();
        let mut stack = SetStack {
            sets: vec![CharSet::default()],
            operators: Vec::new(),
            last_literal: self.last_set_literal,
        };
        let mut depth = 0;
        let mut after = self.open_set(&mut stack, None, outer, &mut depth)?;
        while depth > 0 {
            after = match after {
                After::Start => self.set_start(&mut stack, outer, &mut depth)?,
                _ => self.set_item(&mut stack, after, outer, &mut depth)?,
            };
        }
        debug_assert_eq!(after, After::Set);
        self.last_set_literal = stack.last_literal;
        Ok(stack.sets.pop().unwrap_or_default())
    }

    /// Handles an opening bracket.
    fn open_set(
        &mut self,
        stack: &mut SetStack,
        operator: Option<Operator>,
        outer: usize,
        depth: &mut usize,
    ) -> Result<After, PatternError> {
        if let Some(operator) = operator {
            stack.push(operator);
        }
        stack.operators.push(Operator::Start);
        if self.flags.case_insensitive {
            stack.operators.push(Operator::CloseCase);
        }
        *depth += 1;
        if outer - 1 + *depth > NESTED_MAX {
            return Err(PatternError::Internal);
        }
        self.advance()?;
        if self.at.is('^') {
            // The complement is taken after the other cases were added.
            let close_case = stack.operators.last() == Some(&Operator::CloseCase);
            let place = stack.operators.len() - usize::from(close_case);
            stack.operators.insert(place, Operator::Negate);
            self.advance()?;
        } else if self.at.is(':') {
            if let Some(set) = self.posix_class()? {
                stack.top().add_all(&set);
                if !self.at.is(']') {
                    return Err(self.scanner.syntax());
                }
                return self.close_set(stack, depth);
            }
            return Ok(After::Start);
        }
        if self.at.is(']') {
            return self.set_literal(stack);
        }
        Ok(After::Start)
    }

    /// Handles a closing bracket.
    fn close_set(
        &mut self,
        stack: &mut SetStack,
        depth: &mut usize,
    ) -> Result<After, PatternError> {
        stack.evaluate(END_PRECEDENCE);
        stack.operators.pop();
        *depth -= 1;
        self.advance()?;
        Ok(After::Set)
    }

    fn set_literal(&mut self, stack: &mut SetStack) -> Result<After, PatternError> {
        stack.literal(self.at.code);
        self.advance()?;
        Ok(After::Literal)
    }

    /// The first item: `-` and `&` are literals, but not twice.
    fn set_start(
        &mut self,
        stack: &mut SetStack,
        outer: usize,
        depth: &mut usize,
    ) -> Result<After, PatternError> {
        let at = self.at;
        if at.is('-') || at.is('&') {
            self.advance()?;
            if !self.at.quoted && self.at.code == at.code {
                return Err(self.scanner.syntax());
            }
            stack.top().add(at.code, at.code);
            return Ok(After::Literal);
        }
        if at.is(']') {
            return self.close_set(stack, depth);
        }
        self.set_common(stack, outer, depth)
    }

    /// What may stand everywhere: a nested set, an escape, a literal.
    fn set_common(
        &mut self,
        stack: &mut SetStack,
        outer: usize,
        depth: &mut usize,
    ) -> Result<After, PatternError> {
        if self.at.is('[') {
            return self.open_set(stack, Some(Operator::Union), outer, depth);
        }
        if self.at.is('\\') {
            self.advance()?;
            return self.set_escape(stack);
        }
        self.set_literal(stack)
    }

    /// An item that is not the first.
    fn set_item(
        &mut self,
        stack: &mut SetStack,
        after: After,
        outer: usize,
        depth: &mut usize,
    ) -> Result<After, PatternError> {
        let at = self.at;
        if after == After::Operator {
            if at.is(']') {
                return Err(self.scanner.syntax());
            }
            return self.set_common(stack, outer, depth);
        }
        if at.is(']') {
            return self.close_set(stack, depth);
        }
        if at.is_end() {
            return Err(PatternError::MissingCloseBracket);
        }
        if at.is('-') || at.is('&') {
            self.advance()?;
            return self.set_operator(stack, after, at, outer, depth);
        }
        self.set_common(stack, outer, depth)
    }

    /// Handles `-` or `&` after an item: an operator, a range or a literal.
    fn set_operator(
        &mut self,
        stack: &mut SetStack,
        after: After,
        operator: Scanned,
        outer: usize,
        depth: &mut usize,
    ) -> Result<After, PatternError> {
        let dash = operator.is('-');
        let doubled = !self.at.quoted && self.at.code == operator.code;
        if doubled {
            stack.push(if dash {
                Operator::Difference
            } else {
                Operator::Intersection
            });
            self.advance()?;
            return Ok(After::Operator);
        }
        if after == After::Set && self.at.is('[') {
            let operator = if dash {
                Operator::SetDifference
            } else {
                Operator::SetIntersection
            };
            return self.open_set(stack, Some(operator), outer, depth);
        }
        let range = dash && after == After::Literal && !self.at.is('[') && !self.at.is(']');
        if range {
            return self.set_range(stack);
        }
        stack.top().add(operator.code, operator.code);
        Ok(After::Literal)
    }

    /// The right side of a range.
    fn set_range(&mut self, stack: &mut SetStack) -> Result<After, PatternError> {
        let mut last = self.at.code;
        if self.at.is('\\') {
            self.advance()?;
            if "sSwWdD".chars().any(|c| self.at.is(c)) {
                return Err(self.scanner.syntax());
            }
            last = self.at.code;
            if self.at.is('N') {
                last = i64::from(self.named_char()?);
                range(stack, last)?;
                stack.last_literal = last;
                return Ok(After::Range);
            }
        }
        range(stack, last)?;
        self.advance()?;
        Ok(After::Range)
    }

    /// What follows a backslash.
    fn set_escape(&mut self, stack: &mut SetStack) -> Result<After, PatternError> {
        let at = self.at;
        if at.is('p') || at.is('P') {
            let set = self.property()?;
            stack.top().add_all(&set);
            return Ok(After::Set);
        }
        if at.is('N') {
            let code = self.named_char()?;
            stack.literal(i64::from(code));
            return Ok(After::Literal);
        }
        let letter = u32::try_from(at.code).ok().and_then(char::from_u32);
        match letter.filter(|_| !at.quoted).and_then(class) {
            Some(set) => {
                self.work.spend(SET_WORK)?;
                stack.top().add_all(&set);
                self.advance()?;
                Ok(After::Range)
            }
            None => self.set_literal(stack),
        }
    }

    /// Parses `\p{...}` or `\P{...}`, from its letter on.
    pub(super) fn property(&mut self) -> Result<CharSet, PatternError> {
        let negated = self.at.is('P');
        let name = self.braced(PatternError::IllegalArgument)?;
        let set = property(&name, self.flags.case_insensitive)?;
        self.work.spend(SET_WORK)?;
        self.advance()?;
        Ok(if negated { set.negated() } else { set })
    }

    /// Parses `\N{...}`, from its letter on.
    pub(super) fn named_char(&mut self) -> Result<u32, PatternError> {
        let name = self.braced(PatternError::IllegalArgument)?;
        let code = named_char(&name)?;
        self.advance()?;
        Ok(code)
    }

    /// Parses a name between braces. Stops at the closing one.
    fn braced(&mut self, error: PatternError) -> Result<String, PatternError> {
        self.advance()?;
        // Here ICU looks at the character alone, quoted or not.
        if self.at.code != i64::from(b'{') {
            return Err(error);
        }
        let mut name = String::new();
        loop {
            self.advance()?;
            if self.at.code == i64::from(b'}') {
                break;
            }
            let code = u32::try_from(self.at.code).map_err(|_| error)?;
            name.extend(char::from_u32(code));
        }
        Ok(name)
    }

    /// Parses `[:name:]`, from its first colon on. Stops at the closing bracket. If this is no
    /// class, the position does not change.
    fn posix_class(&mut self) -> Result<Option<CharSet>, PatternError> {
        let start = (self.scanner.clone(), self.at);
        let mut name = String::new();
        self.advance()?;
        let negated = self.at.code == i64::from(b'^');
        if negated {
            self.advance()?;
        }
        loop {
            let code = u32::try_from(self.at.code).ok();
            name.extend(code.and_then(char::from_u32));
            self.advance()?;
            if self.at.quoted || self.at.is_end() {
                break;
            }
            if self.at.code == i64::from(b':') {
                self.advance()?;
                if self.at.code == i64::from(b']') {
                    let set = property(&name, self.flags.case_insensitive)?;
                    self.work.spend(SET_WORK)?;
                    return Ok(Some(if negated { set.negated() } else { set }));
                }
                break;
            }
        }
        (self.scanner, self.at) = start;
        Ok(None)
    }
}

/// Adds the characters from the last literal to `last`.
fn range(stack: &mut SetStack, last: i64) -> Result<(), PatternError> {
    if stack.last_literal == END || stack.last_literal > last {
        return Err(PatternError::InvalidRange);
    }
    let first = stack.last_literal;
    stack.top().add(first, last);
    Ok(())
}
