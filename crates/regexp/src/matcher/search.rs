//! Finds matches one after the other.

use super::Span;
use super::consume::View;
use super::machine::{Machine, Outcome};
use super::{FUEL, Limits, Scratch, UNSET, char_at, line_end_before};
use crate::program::start::Start;
use crate::program::{Regexp, group_slot};

/// Bytes in which a start is searched between two reports of work.
const SEARCH_CHUNK: usize = 1 << 16;

/// The least number of saved states before the memo is used.
const MEMO_AFTER: u64 = 2048;

/// A search for the matches of a pattern in a text.
#[derive(Debug)]
pub struct Search<'s> {
    regexp: &'s Regexp,
    text: &'s str,
    scratch: &'s mut Scratch,
    limits: Limits,
    /// Where the next search starts.
    from: usize,
    /// The match found last.
    found: Option<Span>,
    /// There are no further matches.
    is_done: bool,
    /// Saved states of all matches so far.
    steps: u64,
}

impl<'s> Search<'s> {
    /// A search that starts at byte `from`.
    pub fn new(
        regexp: &'s Regexp,
        text: &'s str,
        from: usize,
        limits: Limits,
        scratch: &'s mut Scratch,
    ) -> Self {
        Search {
            regexp,
            text,
            scratch,
            limits,
            from,
            found: None,
            is_done: false,
            steps: 0,
        }
    }

    /// The next match. Calls `progress` with the work done since its last call.
    pub fn next<E>(
        &mut self,
        progress: &mut dyn FnMut(u64) -> Result<(), E>,
    ) -> Outcome<Option<Span>, E> {
        if let Some((start, end)) = self.found {
            self.from = end;
            // An empty match is not found twice.
            if start == end && end < self.text.len() {
                self.from += char_at(self.text.as_bytes(), end).1;
            } else if start == end {
                self.is_done = true;
            }
        }
        if self.is_done {
            return Ok(None);
        }
        let previous_end = self.found.map(|(_, end)| end);
        self.found = self.find(previous_end, progress)?;
        self.is_done = self.found.is_none();
        Ok(self.found)
    }

    /// A group of the last match.
    pub fn group(&self, group: u32) -> Option<Span> {
        if group == 0 {
            return self.found;
        }
        let slot = group_slot(group);
        let (start, end) = (self.scratch.slots[slot], self.scratch.slots[slot + 1]);
        (start != UNSET && end != UNSET).then_some((start, end))
    }

    /// The pattern.
    pub fn regexp(&self) -> &'s Regexp {
        self.regexp
    }

    /// The text.
    pub fn text(&self) -> &'s str {
        self.text
    }

    fn find<E>(
        &mut self,
        previous_end: Option<usize>,
        progress: &mut dyn FnMut(u64) -> Result<(), E>,
    ) -> Outcome<Option<Span>, E> {
        let regexp = self.regexp;
        self.scratch.slots.resize(regexp.slots as usize, UNSET);
        self.scratch.data.resize(regexp.data as usize, 0);
        let words = u64::from(regexp.frame_words);
        let mut machine = Machine {
            view: View {
                regexp,
                text: self.text.as_bytes(),
                limit: self.text.len(),
                previous_end,
            },
            scratch: self.scratch,
            progress,
            fuel: FUEL,
            steps: self.steps,
            steps_max: u64::MAX,
            branches: 0,
            // ICU counts in words of 8 bytes but takes the limit in words of 4.
            branches_max: match self.limits.stack_bytes {
                0 => u64::MAX,
                bytes => bytes / 4 / words,
            },
            base: self.from,
            is_memo_on: false,
            memo_after: 0,
        };
        let bits = machine.memo_bits();
        machine.memo_after = self.steps + MEMO_AFTER + bits / 64;
        machine.bound_steps(self.limits.time);
        let found = machine.search(self.from);
        self.steps = machine.steps;
        found
    }
}

impl<E> Machine<'_, E> {
    /// The first match at or after `from`.
    fn search(&mut self, from: usize) -> Outcome<Option<Span>, E> {
        let mut start = from;
        let min = self.regexp().min_units;
        if self.is_too_short(from, min) {
            return Ok(None);
        }
        while let Some(at) = self.next_start(start, from)? {
            if let Some(end) = self.try_at(at)? {
                return Ok(Some((at, end)));
            }
            if ((self.view.text.len() - at) as u64) <= min {
                break;
            }
            start = at + char_at(self.view.text, at).1;
        }
        Ok(None)
    }

    /// Whether the text from `from` on is shorter than every match.
    fn is_too_short(&self, from: usize, min: u64) -> bool {
        let rest = &self.view.text[from..];
        let len = rest.len() as u64;
        if len < min {
            return true;
        }
        // A character has at most three bytes to each unit.
        let units = |b: &u8| u64::from(*b & 0xc0 != 0x80) + u64::from(*b >= 0xf0);
        len / 3 < min && rest.iter().map(units).sum::<u64>() < min
    }

    /// The first position from `start` on where a match may start.
    fn next_start(&mut self, start: usize, from: usize) -> Outcome<Option<usize>, E> {
        let regexp = self.view.regexp;
        let text = self.view.text;
        match &regexp.start {
            Start::Anywhere => Ok(Some(start)),
            Start::Once => Ok((start == 0 && from == 0).then_some(0)),
            Start::Line { unix } => self.next_line(start, *unix),
            Start::Few([a, b, c]) => {
                self.next_byte(start, |chunk| memchr::memchr3(*a, *b, *c, chunk))
            }
            Start::Bytes(bytes) => {
                // Most tries of short texts start at once.
                if text.get(start).is_some_and(|b| bytes[usize::from(*b)]) {
                    return Ok(Some(start));
                }
                self.next_byte(start, |chunk| {
                    chunk.iter().position(|b| bytes[usize::from(*b)])
                })
            }
        }
    }

    fn next_byte(
        &mut self,
        start: usize,
        find: impl Fn(&[u8]) -> Option<usize>,
    ) -> Outcome<Option<usize>, E> {
        let text = self.view.text;
        let mut at = start;
        while at < text.len() {
            let end = (at + SEARCH_CHUNK).min(text.len());
            let found = find(&text[at..end]);
            self.spend((found.unwrap_or(end - at) / 16) as u64)?;
            if let Some(n) = found {
                return Ok(Some(at + n));
            }
            at = end;
        }
        Ok(None)
    }

    /// The next start of a line; not between CR and LF.
    fn next_line(&mut self, start: usize, unix: bool) -> Outcome<Option<usize>, E> {
        let text = self.view.text;
        let mut at = start;
        loop {
            let is_start = match unix {
                true => at == 0 || text[at - 1] == 0x0a,
                false => at == 0 || line_end_before(text, at) > 0,
            };
            let splits = !unix && at > 0 && text[at - 1] == 0x0d && text.get(at) == Some(&0x0a);
            if is_start && !splits {
                return Ok(Some(at));
            }
            if at >= text.len() {
                return Ok(None);
            }
            self.spend(1)?;
            at += char_at(text, at).1;
        }
    }
}
