//! Runs of one character, loops, atomic groups, look-around.

use super::machine::{Machine, Outcome};
use super::{Frame, UNSET, char_at, previous};
use crate::node::Dot;
use crate::program::Op;

/// Where the matcher continues.
pub(super) enum Flow {
    /// With the next operation.
    Next(usize),
    Go(u32, usize),
    Fail,
}

/// Bytes that a run reads between two reports of work.
const RUN_CHUNK: usize = 1 << 14;

impl<E> Machine<'_, E> {
    /// Takes as long a run of characters as there is.
    pub fn star(&mut self, op: Op, at: usize, pos: usize) -> Outcome<Option<usize>, E> {
        if self.is_memo_on && self.was_tried(at, pos) {
            return Ok(None);
        }
        let mut end = pos;
        loop {
            let chunk = end.saturating_add(RUN_CHUNK).min(self.view.limit);
            let stop = if self.is_memo_on {
                self.run_untried(op, at, end, chunk)
            } else {
                self.run(op, end, chunk)
            };
            self.spend((stop - end) as u64 / 8)?;
            let is_full = stop >= chunk && stop < self.view.limit;
            end = stop;
            if !is_full {
                break;
            }
        }
        let possessive = matches!(
            op,
            Op::SetStar {
                possessive: true,
                ..
            } | Op::DotStar {
                possessive: true,
                ..
            }
        );
        if possessive || end == pos {
            if !possessive && self.is_memo_on && self.is_tried(at, end) {
                return Ok(None);
            }
            return Ok(Some(end));
        }
        // A run is as long as its text, which is shorter than 4 GiB.
        let run = u32::try_from(end - pos).unwrap_or(u32::MAX);
        self.push_branch(Frame {
            target: at as u32,
            run,
            value: end,
        })?;
        if self.is_memo_on && self.is_tried(at, end) {
            // Only shorter runs are new.
            return Ok(None);
        }
        Ok(Some(end))
    }

    /// The end of the run from `from`, at `chunk` or the next character boundary at the latest.
    fn run(&self, op: Op, from: usize, chunk: usize) -> usize {
        let text = self.view.text;
        let mut end = from;
        match op {
            Op::SetStar { set, .. } => {
                let set = &self.view.regexp.sets[set as usize];
                while end < chunk {
                    let byte = text[end];
                    if byte < 0x80 {
                        if !set.has_ascii(byte) {
                            break;
                        }
                        end += 1;
                        continue;
                    }
                    let (c, len) = char_at(text, end);
                    if set.is_ascii() || !set.has(c) {
                        break;
                    }
                    end += len;
                }
            }
            Op::DotStar { dot: Dot::All, .. } => return self.view.limit,
            Op::DotStar { dot, .. } => {
                while end < chunk {
                    let byte = text[end];
                    // No line end starts with any of these.
                    if matches!(byte, 0x0e..=0x7f | 0x00..=0x09) {
                        end += 1;
                        continue;
                    }
                    match self.view.dot(dot, end) {
                        Some(after) => end = after,
                        None => break,
                    }
                }
            }
            _ => {}
        }
        end
    }

    /// The same, but the run ends where one before it went on.
    fn run_untried(&self, op: Op, at: usize, from: usize, chunk: usize) -> usize {
        let mut end = from;
        while end < chunk && !(end > from && self.was_tried(at, end)) {
            let after = match op {
                Op::SetStar { set, .. } => {
                    let (c, len) = char_at(self.view.text, end);
                    let has = self.view.regexp.sets[set as usize].has(c);
                    has.then_some(end + len)
                }
                Op::DotStar { dot: Dot::All, .. } => Some(end + char_at(self.view.text, end).1),
                Op::DotStar { dot, .. } => self.view.dot(dot, end),
                _ => None,
            };
            match after {
                Some(after) => end = after,
                None => break,
            }
        }
        end
    }

    /// The end of the run without its last character; `.` gives back CR LF together.
    pub fn previous_of_run(&self, at: usize, first: usize, pos: usize) -> usize {
        let text = self.view.text;
        let start = previous(text, pos);
        let is_dot = matches!(self.view.regexp.ops[at], Op::DotStar { .. });
        if is_dot && text[start] == 0x0a && start > first && text[start - 1] == 0x0d {
            return start - 1;
        }
        start
    }

    /// An operation that decides where to go on.
    pub fn control(&mut self, op: Op, at: usize, pos: usize) -> Outcome<Flow, E> {
        match op {
            Op::LoopMark(slot) => self.set_slot(slot as usize, pos),
            Op::LoopAgain { slot, body } if self.scratch.slots[slot as usize] < pos => {
                if self.is_memo_on && self.is_tried(at, pos) {
                    return Ok(Flow::Fail);
                }
                self.branch(at as u32 + 1, pos)?;
                return Ok(Flow::Go(body, pos));
            }
            Op::LoopProgress(slot) if self.scratch.slots[slot as usize] == pos => {
                return Ok(Flow::Fail);
            }
            Op::CountInit(number) => return self.count_init(number as usize, pos),
            Op::CountLoop(number) => return self.count_loop(number as usize, at, pos),
            Op::AtomicStart(data) => {
                self.scratch.data[data as usize] = self.scratch.stack.len();
            }
            Op::AtomicEnd(data) => self.cut(self.scratch.data[data as usize]),
            Op::LookStart(data) => self.look_start(data as usize, pos, self.view.text.len()),
            Op::LookEnd(data) => return Ok(Flow::Next(self.look_end(data as usize))),
            Op::BehindStart(data) => {
                self.look_start(data as usize, pos, pos);
                self.scratch.data[data as usize + 3] = UNSET;
            }
            Op::Behind(number) => return self.behind(number as usize, at, pos),
            Op::BehindEnd(_) | Op::NotBehindEnd(_) if pos != self.view.limit => {
                return Ok(Flow::Fail);
            }
            Op::BehindEnd(data) => return Ok(Flow::Next(self.look_end(data as usize))),
            Op::NotBehindEnd(data) => {
                self.look_end(data as usize);
                return Ok(Flow::Fail);
            }
            _ => {}
        }
        Ok(Flow::Next(pos))
    }

    fn look_start(&mut self, data: usize, pos: usize, limit: usize) {
        self.scratch.data[data] = self.scratch.stack.len();
        self.scratch.data[data + 1] = pos;
        self.scratch.data[data + 2] = self.view.limit;
        self.view.limit = limit;
    }

    /// Removes the branches of a look-around; where it started.
    fn look_end(&mut self, data: usize) -> usize {
        self.cut(self.scratch.data[data]);
        self.view.limit = self.scratch.data[data + 2];
        self.scratch.data[data + 1]
    }

    /// The next start of a look-behind's body, one character earlier than the last.
    fn behind(&mut self, number: usize, at: usize, pos: usize) -> Outcome<Flow, E> {
        let behind = &self.regexp().behinds[number];
        let (data, max, otherwise) = (behind.data as usize, behind.max, behind.otherwise);
        let last = self.scratch.data[data + 3];
        let next = match last {
            UNSET => Some((pos, 0)),
            0 => None,
            _ => {
                let start = previous(self.view.text, last);
                let (c, _) = char_at(self.view.text, start);
                Some((start, self.scratch.data[data + 4] + c.len_utf16()))
            }
        };
        let Some((start, units)) = next.filter(|(_, units)| *units <= max as usize) else {
            self.view.limit = self.scratch.data[data + 2];
            return Ok(otherwise.map_or(Flow::Fail, |target| Flow::Go(target, pos)));
        };
        self.scratch.data[data + 3] = start;
        self.scratch.data[data + 4] = units;
        self.branch(at as u32, pos)?;
        Ok(Flow::Next(start))
    }

    fn count_init(&mut self, number: usize, pos: usize) -> Outcome<Flow, E> {
        let counter = &self.regexp().counters[number];
        let (slot, last) = (counter.slot as usize, counter.last as usize);
        let (body, end, lazy) = (counter.body, counter.end, counter.lazy);
        let (is_optional, is_open) = (counter.min == 0, counter.max.is_none());
        self.set_slot(slot, 0);
        if is_open {
            self.set_slot(last, pos);
        }
        if is_optional && lazy {
            self.branch(body, pos)?;
            return Ok(Flow::Go(end, pos));
        }
        if is_optional {
            self.branch(end, pos)?;
        }
        Ok(Flow::Next(pos))
    }

    fn count_loop(&mut self, number: usize, at: usize, pos: usize) -> Outcome<Flow, E> {
        let counter = &self.regexp().counters[number];
        let (slot, last) = (counter.slot as usize, counter.last as usize);
        let (min, max, body) = (counter.min as usize, counter.max, counter.body);
        let lazy = counter.lazy;
        let count = self.scratch.slots[slot] + 1;
        self.set_slot(slot, count);
        if max.is_some_and(|max| count >= max as usize) {
            return Ok(Flow::Next(pos));
        }
        if count < min {
            return Ok(Flow::Go(body, pos));
        }
        if max.is_none() {
            // An iteration that matched nothing is the last one.
            if self.scratch.slots[last] == pos {
                return Ok(Flow::Next(pos));
            }
            self.set_slot(last, pos);
        }
        if lazy {
            self.branch(body, pos)?;
            return Ok(Flow::Next(pos));
        }
        self.branch(at as u32 + 1, pos)?;
        Ok(Flow::Go(body, pos))
    }
}
