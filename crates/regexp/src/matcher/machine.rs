//! One try of a pattern at one start, and what goes from try to try.

use super::consume::View;
use super::control::Flow;
use super::{FUEL, Frame, RESTORE, Scratch, UNSET};
use crate::error::MatchError;
use crate::program::{NO_MEMO, Op, Regexp, group_slot};

/// Saved states in one unit of `Limits::time`.
const STATES_PER_TICK: u64 = 10_000;

/// Largest memo, bits: 128 MiB.
const MEMO_BITS_MAX: u64 = 1 << 30;

/// A pattern at work on a text.
pub(super) struct Machine<'m, E> {
    pub view: View<'m>,
    pub scratch: &'m mut Scratch,
    pub progress: &'m mut dyn FnMut(u64) -> Result<(), E>,
    /// Units of work until the next call of `progress`.
    pub fuel: u64,
    /// Saved states so far.
    pub steps: u64,
    pub steps_max: u64,
    /// Branches on the stack.
    pub branches: u64,
    pub branches_max: u64,
    /// The first position that the memo has bits for.
    pub base: usize,
    pub is_memo_on: bool,
    /// Saved states at which the memo is turned on.
    pub memo_after: u64,
}

pub(super) type Outcome<T, E> = Result<T, MatchError<E>>;

impl<E> Machine<'_, E> {
    pub fn regexp(&self) -> &Regexp {
        self.view.regexp
    }

    /// Counts work.
    #[inline]
    pub fn spend(&mut self, work: u64) -> Outcome<(), E> {
        if self.fuel > work {
            self.fuel -= work;
            return Ok(());
        }
        self.report(work)
    }

    #[cold]
    fn report(&mut self, work: u64) -> Outcome<(), E> {
        let done = FUEL - self.fuel + work;
        self.fuel = FUEL;
        (self.progress)(done).map_err(MatchError::Stopped)
    }

    /// Matches at `start`; the end of the match.
    pub fn try_at(&mut self, start: usize) -> Outcome<Option<usize>, E> {
        self.scratch.stack.clear();
        self.scratch.slots.fill(UNSET);
        self.branches = 0;
        self.view.limit = self.view.text.len();
        let (mut at, mut pos) = (0, start);
        loop {
            self.spend(1)?;
            let op = self.regexp().ops[at];
            let after = match op {
                Op::Match => return Ok(Some(pos)),
                Op::Jump(target) => {
                    at = target as usize;
                    continue;
                }
                Op::Split(_) | Op::SplitBack(_) if self.is_memo_on && self.is_tried(at, pos) => {
                    None
                }
                Op::Split(target) => {
                    self.branch(target, pos)?;
                    at += 1;
                    continue;
                }
                Op::SplitBack(target) => {
                    self.branch(at as u32 + 1, pos)?;
                    at = target as usize;
                    continue;
                }
                Op::CaptureStart(group) => {
                    self.set_slot(group_slot(group) + 2, pos);
                    Some(pos)
                }
                Op::CaptureEnd(group) => {
                    let slot = group_slot(group);
                    let start = self.scratch.slots[slot + 2];
                    self.set_slot(slot, start);
                    self.set_slot(slot + 1, pos);
                    Some(pos)
                }
                Op::SetStar { .. } | Op::DotStar { .. } => self.star(op, at, pos)?,
                op if is_control(op) => match self.control(op, at, pos)? {
                    Flow::Next(pos) => Some(pos),
                    Flow::Fail => None,
                    Flow::Go(target, to) => {
                        (at, pos) = (target as usize, to);
                        continue;
                    }
                },
                op => self.view.consume(op, pos, &self.scratch.slots),
            };
            match after {
                Some(after) => (at, pos) = (at + 1, after),
                None => match self.backtrack() {
                    Some(state) => (at, pos) = state,
                    None => return Ok(None),
                },
            }
        }
    }

    /// Saves a state.
    pub fn branch(&mut self, target: u32, pos: usize) -> Outcome<(), E> {
        self.push_branch(Frame {
            target,
            run: 0,
            value: pos,
        })
    }

    pub fn push_branch(&mut self, frame: Frame) -> Outcome<(), E> {
        self.steps += 1;
        if self.steps >= self.memo_after && !self.is_memo_on {
            self.start_memo();
        }
        if self.steps > self.steps_max {
            return Err(MatchError::TimeOut);
        }
        self.branches += 1;
        if self.branches > self.branches_max {
            return Err(MatchError::StackOverflow);
        }
        self.scratch.stack.push(frame);
        Ok(())
    }

    /// Takes the branch saved last.
    fn backtrack(&mut self) -> Option<(usize, usize)> {
        while let Some(frame) = self.scratch.stack.pop() {
            if frame.target & RESTORE != 0 {
                // M1
                self.scratch.slots[(frame.target & !RESTORE) as usize] = frame.value;
                continue;
            }
            if frame.run > 0 {
                if let Some(state) = self.shorten_run(frame) {
                    return Some(state);
                }
                continue;
            }
            self.branches -= 1;
            return Some((frame.target as usize, frame.value));
        }
        None
    }

    /// Returns one character of a run to the input, and saves the rest of it.
    fn shorten_run(&mut self, frame: Frame) -> Option<(usize, usize)> {
        let at = frame.target as usize;
        let first = frame.value - frame.run as usize;
        let mut pos = frame.value;
        while pos > first {
            pos = self.previous_of_run(at, first, pos);
            if self.is_memo_on && self.is_tried(at, pos) {
                continue;
            }
            if pos > first {
                self.steps += 1;
                self.scratch.stack.push(Frame {
                    target: frame.target,
                    run: (pos - first) as u32,
                    value: pos,
                });
            } else {
                self.branches -= 1;
            }
            return Some((at + 1, pos));
        }
        self.branches -= 1;
        None
    }

    /// Changes a slot; the branch below undoes it.
    pub fn set_slot(&mut self, slot: usize, value: usize) {
        let old = std::mem::replace(&mut self.scratch.slots[slot], value);
        let target = slot as u32 | RESTORE;
        // Without a branch there is nothing to return to; a second change since the last branch
        // needs no frame.
        let since = self.scratch.stack.iter().rev().take(8);
        let mut recent = since.take_while(|f| f.target & RESTORE != 0);
        if self.branches == 0 || recent.any(|f| f.target == target) {
            return;
        }
        self.scratch.stack.push(Frame {
            target,
            run: 0,
            value: old,
        });
    }

    /// Removes the branches above `height`.
    pub fn cut(&mut self, height: usize) {
        let stack = &mut self.scratch.stack;
        let mut kept = height;
        for n in height..stack.len() {
            let frame = stack[n];
            if frame.target & RESTORE == 0 {
                self.branches -= 1;
            } else if self.branches > 0 || kept > 0 {
                stack[kept] = frame;
                kept += 1;
            }
        }
        stack.truncate(kept);
    }

    fn start_memo(&mut self) {
        self.memo_after = u64::MAX;
        let bits = self.memo_bits();
        if bits == 0 || bits > MEMO_BITS_MAX {
            return;
        }
        self.scratch.memo.clear();
        self.scratch.memo.resize(bits.div_ceil(64) as usize, 0);
        self.is_memo_on = true;
    }

    fn positions(&self) -> u64 {
        (self.view.text.len() - self.base) as u64 + 1
    }

    /// Size of the memo.
    pub fn memo_bits(&self) -> u64 {
        u64::from(self.regexp().memo_maps) * self.positions()
    }

    /// When the search gives up, in saved states.
    pub fn bound_steps(&mut self, time: u64) {
        let mut max = time.saturating_mul(STATES_PER_TICK);
        let bits = self.memo_bits();
        if self.regexp().is_linear && bits <= MEMO_BITS_MAX {
            // Once the memo is on, every state is saved once, and a run once for each position.
            max = max.max(self.memo_after.saturating_add(bits * 4));
        }
        self.steps_max = if time == 0 { u64::MAX } else { max };
    }

    /// Whether a state was tried before; it counts as tried from now on. Only if the memo is on.
    #[inline]
    pub fn is_tried(&mut self, at: usize, pos: usize) -> bool {
        let Some((word, bit)) = self.memo_place(at, pos) else {
            return false;
        };
        let word = &mut self.scratch.memo[word];
        let known = *word & bit != 0;
        *word |= bit;
        known
    }

    /// Whether a state was tried before.
    pub fn was_tried(&self, at: usize, pos: usize) -> bool {
        let place = self.memo_place(at, pos);
        place.is_some_and(|(word, bit)| self.scratch.memo[word] & bit != 0)
    }

    fn memo_place(&self, at: usize, pos: usize) -> Option<(usize, u64)> {
        let memo = self.regexp().memos[at];
        if memo.map == NO_MEMO {
            return None;
        }
        let (start, len) = memo.loops;
        let slots = &self.regexp().loops[start as usize..(start + len) as usize];
        // M2: an iteration that may still be empty is not known by its position.
        let is_beyond = |slot: &u32| pos > self.scratch.slots[*slot as usize];
        if !slots.iter().all(is_beyond) {
            return None;
        }
        let index = u64::from(memo.map) * self.positions() + (pos - self.base) as u64;
        Some(((index / 64) as usize, 1 << (index % 64)))
    }
}

/// Whether an operation determines where the matcher continues.
fn is_control(op: Op) -> bool {
    matches!(
        op,
        Op::LoopMark(_)
            | Op::LoopAgain { .. }
            | Op::LoopProgress(_)
            | Op::CountInit(_)
            | Op::CountLoop(_)
            | Op::AtomicStart(_)
            | Op::AtomicEnd(_)
            | Op::LookStart(_)
            | Op::LookEnd(_)
            | Op::BehindStart(_)
            | Op::Behind(_)
            | Op::BehindEnd(_)
            | Op::NotBehindEnd(_)
    )
}
