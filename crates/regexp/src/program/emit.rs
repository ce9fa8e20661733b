//! From the tree to operations.

use std::collections::HashMap;

use super::start::start_of;
use super::{BEHIND_DATA, Behind, Counter, LOOK_DATA, Memo, NO_MEMO, Op, Regexp};
use crate::error::PatternError;
use crate::fold;
use crate::length::{OPS_MAX, UNROLL_MAX, max_units, may_be_empty, min_units, operations};
use crate::node::{Greed, Node};
use crate::parse::Parsed;
use crate::unicode::{CharSet, SearchSet};
use crate::work::Work;

pub(super) fn compile(parsed: Parsed, work: &mut Work<'_>) -> Result<Regexp, PatternError> {
    let start = start_of(&parsed.node, work)?;
    let min_units = min_units(&parsed.node, work)?;
    let mut emitter = Emitter {
        work,
        out: Regexp {
            ops: Vec::new(),
            literals: Vec::new(),
            folded: Vec::new(),
            sets: Vec::new(),
            counters: Vec::new(),
            behinds: Vec::new(),
            memos: Vec::new(),
            loops: Vec::new(),
            memo_maps: 0,
            is_linear: true,
            slots: parsed.groups * 3,
            data: 0,
            frame_words: 2 + parsed.groups * 3,
            start,
            min_units,
            groups: parsed.groups,
            names: parsed.names,
        },
        known_sets: HashMap::new(),
        volatile: 0,
        back_references: parsed.back_references,
        loop_slots: Vec::new(),
    };
    emitter.node(&parsed.node)?;
    emitter.push(Op::Match);
    Ok(emitter.finish())
}

struct Emitter<'e, 'w> {
    work: &'e mut Work<'w>,
    out: Regexp,
    /// Numbers of the sets that are compiled already.
    known_sets: HashMap<CharSet, u32>,
    /// How many enclosing constructs keep state that a position does not tell.
    volatile: u32,
    back_references: bool,
    /// Slots of the enclosing loops whose iterations may be empty.
    loop_slots: Vec<u32>,
}

impl Emitter<'_, '_> {
    fn here(&self) -> u32 {
        self.out.ops.len() as u32
    }

    /// Adds an operation; its address.
    fn push(&mut self, op: Op) -> u32 {
        let at = self.here();
        let map = if self.volatile > 0 { NO_MEMO } else { 0 };
        let slots = &self.loop_slots;
        let start = self.out.loops.len() as u32;
        let known = self.out.memos.last().map(|m| m.loops);
        let same = known.filter(|(start, len)| {
            let range = *start as usize..(*start + *len) as usize;
            self.out.loops[range] == slots[..]
        });
        let loops = same.unwrap_or_else(|| {
            self.out.loops.extend_from_slice(slots);
            (start, slots.len() as u32)
        });
        self.out.ops.push(op);
        self.out.memos.push(Memo { map, loops });
        at
    }

    fn patch(&mut self, at: u32, op: Op) {
        self.out.ops[at as usize] = op;
    }

    fn new_slot(&mut self) -> u32 {
        let slot = self.out.slots;
        self.out.slots += 1;
        self.out.frame_words += 1;
        slot
    }

    fn new_data(&mut self, entries: u32) -> u32 {
        let data = self.out.data;
        self.out.data += entries;
        data
    }

    /// Numbers the bit maps of the operations that save states.
    fn finish(mut self) -> Regexp {
        let out = &mut self.out;
        for (op, memo) in out.ops.iter().zip(&mut out.memos) {
            let saves = match op {
                Op::Split(_) | Op::SplitBack(_) | Op::LoopAgain { .. } => true,
                Op::SetStar { possessive, .. } | Op::DotStar { possessive, .. } => !possessive,
                _ => false,
            };
            let usable = saves && memo.map != NO_MEMO && !self.back_references;
            out.is_linear &= usable || !saves;
            memo.map = if usable { out.memo_maps } else { NO_MEMO };
            out.memo_maps += u32::from(usable);
        }
        out.is_linear &= out.counters.is_empty();
        self.out
    }

    fn node(&mut self, node: &Node) -> Result<(), PatternError> {
        if self.out.ops.len() > OPS_MAX {
            return Err(PatternError::TooBig);
        }
        self.work.spend(1)?;
        match node {
            Node::Empty => {}
            Node::Never => drop(self.push(Op::Fail)),
            Node::Char { .. } => self.literal(std::slice::from_ref(node))?,
            Node::Set(set) => {
                let set = self.set(set);
                self.push(Op::Set(set));
            }
            Node::Dot(dot) => drop(self.push(Op::Dot(*dot))),
            Node::LineBreak => drop(self.push(Op::LineBreak)),
            Node::Grapheme => drop(self.push(Op::Grapheme)),
            Node::Assert(assertion) => drop(self.push(Op::Assert(*assertion))),
            Node::BackReference { group, .. } if *group > self.out.groups => {
                return Err(PatternError::InvalidBackReference);
            }
            Node::BackReference { group, fold } => {
                self.push(Op::BackReference {
                    group: *group,
                    fold: *fold,
                });
            }
            Node::Concat(nodes) => self.concat(nodes)?,
            Node::Alternate(nodes) => self.alternate(nodes)?,
            Node::Capture { group, body } => {
                self.push(Op::CaptureStart(*group));
                self.node(body)?;
                self.push(Op::CaptureEnd(*group));
            }
            Node::Atomic(body) => self.atomic(|e| e.node(body))?,
            Node::LazyOption(body) => self.optional(body, false)?,
            Node::Look {
                behind: false,
                negative,
                body,
            } => self.look_ahead(*negative, body)?,
            Node::Look { negative, body, .. } => self.look_behind(*negative, body)?,
            Node::Repeat {
                body,
                min,
                max,
                greed,
            } => self.repeat(body, *min, *max, *greed)?,
        }
        Ok(())
    }

    /// Neighbouring characters of one kind become one string.
    fn concat(&mut self, nodes: &[Node]) -> Result<(), PatternError> {
        let mut at = 0;
        while at < nodes.len() {
            let Node::Char { fold, .. } = nodes[at] else {
                self.node(&nodes[at])?;
                at += 1;
                continue;
            };
            let same = |n: &&Node| matches!(n, Node::Char { fold: f, .. } if *f == fold);
            let len = nodes[at..].iter().take_while(same).count();
            self.literal(&nodes[at..at + len])?;
            at += len;
        }
        Ok(())
    }

    /// A string; `nodes` are characters, all folded or none.
    fn literal(&mut self, nodes: &[Node]) -> Result<(), PatternError> {
        let mut text = String::new();
        let mut is_folded = false;
        for node in nodes {
            self.work.spend(1)?;
            let Node::Char { code, fold } = node else {
                continue;
            };
            // A surrogate on its own is in no text.
            let Some(c) = char::from_u32(*code) else {
                self.push(Op::Fail);
                return Ok(());
            };
            is_folded = *fold;
            match fold::full(c).filter(|_| is_folded) {
                Some(folding) => text.push_str(folding),
                None if is_folded => text.push(fold::simple(c)),
                None => text.push(c),
            }
        }
        let mut chars = text.chars();
        let first = chars.next().filter(|_| is_folded);
        if let (Some(c), None) = (first, chars.next()) {
            if fold::is_cased(c) {
                self.push(Op::FoldChar(c));
                return Ok(());
            }
            is_folded = false;
        }
        let (start, len) = (self.out.literals.len() as u32, text.len() as u32);
        if is_folded && !text.is_ascii() {
            let start = self.out.folded.len() as u32;
            self.out.folded.extend(text.chars());
            let len = self.out.folded.len() as u32 - start;
            self.push(Op::FoldChars { start, len });
            return Ok(());
        }
        self.out.literals.extend_from_slice(text.as_bytes());
        self.push(if is_folded {
            Op::FoldAscii { start, len }
        } else {
            Op::Bytes { start, len }
        });
        Ok(())
    }

    fn set(&mut self, set: &CharSet) -> u32 {
        if let Some(known) = self.known_sets.get(set) {
            return *known;
        }
        let number = self.out.sets.len() as u32;
        self.out.sets.push(SearchSet::new(set));
        self.known_sets.insert(set.clone(), number);
        number
    }

    fn alternate(&mut self, nodes: &[Node]) -> Result<(), PatternError> {
        let mut ends = Vec::new();
        for (n, node) in nodes.iter().enumerate() {
            if n + 1 == nodes.len() {
                self.node(node)?;
                break;
            }
            let split = self.push(Op::Split(0));
            self.node(node)?;
            ends.push(self.push(Op::Jump(0)));
            let next = self.here();
            self.patch(split, Op::Split(next));
        }
        let end = self.here();
        for at in ends {
            self.patch(at, Op::Jump(end));
        }
        Ok(())
    }

    fn atomic(
        &mut self,
        body: impl FnOnce(&mut Self) -> Result<(), PatternError>,
    ) -> Result<(), PatternError> {
        let data = self.new_data(1);
        self.volatile += 1;
        self.push(Op::AtomicStart(data));
        body(self)?;
        self.push(Op::AtomicEnd(data));
        self.volatile -= 1;
        Ok(())
    }

    fn look_ahead(&mut self, negative: bool, body: &Node) -> Result<(), PatternError> {
        let data = self.new_data(LOOK_DATA);
        self.volatile += 1;
        self.push(Op::LookStart(data));
        let split = self.push(Op::Split(0));
        if negative {
            self.node(body)?;
            self.push(Op::LookEnd(data));
            self.push(Op::Fail);
            let end = self.push(Op::LookEnd(data));
            self.patch(split, Op::Split(end));
        } else {
            let jump = self.push(Op::Jump(0));
            let failed = self.push(Op::LookEnd(data));
            self.push(Op::Fail);
            let start = self.here();
            self.patch(split, Op::Split(failed));
            self.patch(jump, Op::Jump(start));
            self.node(body)?;
            self.push(Op::LookEnd(data));
        }
        self.volatile -= 1;
        Ok(())
    }

    fn look_behind(&mut self, negative: bool, body: &Node) -> Result<(), PatternError> {
        let data = self.new_data(BEHIND_DATA);
        let number = self.out.behinds.len() as u32;
        self.out.behinds.push(Behind {
            data,
            max: max_units(body).ok_or(PatternError::LookBehindLimit)?,
            otherwise: None,
        });
        self.volatile += 1;
        self.push(Op::BehindStart(data));
        self.push(Op::Behind(number));
        self.node(body)?;
        if negative {
            self.push(Op::NotBehindEnd(data));
            self.out.behinds[number as usize].otherwise = Some(self.here());
        } else {
            self.push(Op::BehindEnd(data));
        }
        self.volatile -= 1;
        Ok(())
    }

    fn repeat(
        &mut self,
        body: &Node,
        min: u32,
        max: Option<u32>,
        greed: Greed,
    ) -> Result<(), PatternError> {
        if max == Some(0) {
            // ICU drops the body of `{0}`, but looks at the references of `{0}?` and `{0}+`.
            let (ops, loops) = (self.out.ops.len(), self.out.loops.len());
            if greed != Greed::Greedy {
                self.node(body)?;
            }
            self.out.ops.truncate(ops);
            self.out.memos.truncate(ops);
            self.out.loops.truncate(loops);
            return Ok(());
        }
        if greed == Greed::Possessive {
            // A run of one character needs no stack at all.
            if min <= 1 && max.is_none() && self.is_single(body) {
                return self.star_of_single(body, min, true);
            }
            return self.atomic(|e| e.repeat(body, min, max, Greed::Greedy));
        }
        let greedy = greed == Greed::Greedy;
        if greedy && min <= 1 && max.is_none() && self.is_single(body) {
            return self.star_of_single(body, min, false);
        }
        match (min, max) {
            (0, None) => self.star(body, greedy),
            (1, None) => self.plus(body, greedy),
            (0, Some(1)) => self.optional(body, greedy),
            _ => self.counted(body, min, max, greedy),
        }
    }

    /// Whether a node matches one character by one operation.
    fn is_single(&self, node: &Node) -> bool {
        match node {
            Node::Set(_) | Node::Dot(_) => true,
            Node::Char { code, fold } => {
                let c = char::from_u32(*code);
                c.is_some_and(|c| !*fold || fold::full(c).is_none())
            }
            _ => false,
        }
    }

    fn star_of_single(
        &mut self,
        body: &Node,
        min: u32,
        possessive: bool,
    ) -> Result<(), PatternError> {
        if min == 1 {
            self.node(body)?;
        }
        let op = match body {
            Node::Dot(dot) => Op::DotStar {
                dot: *dot,
                possessive,
            },
            Node::Set(set) => Op::SetStar {
                set: self.set(set),
                possessive,
            },
            Node::Char { code, fold } => {
                let mut set = CharSet::range(*code, *code);
                if *fold {
                    set.close_case();
                }
                let set = self.set(&set);
                Op::SetStar { set, possessive }
            }
            _ => return Ok(()),
        };
        self.push(op);
        Ok(())
    }

    /// The body of a loop, whose slot tells whether an iteration was empty.
    fn marked_body(&mut self, body: &Node) -> Result<(u32, u32), PatternError> {
        let slot = self.new_slot();
        let mark = self.push(Op::LoopMark(slot));
        self.loop_slots.push(slot);
        self.node(body)?;
        self.loop_slots.pop();
        Ok((slot, mark))
    }

    fn star(&mut self, body: &Node, greedy: bool) -> Result<(), PatternError> {
        if !greedy {
            let jump = self.push(Op::Jump(0));
            let top = self.lazy_body(body)?;
            let end = self.push(Op::Split(top));
            self.patch(jump, Op::Jump(end));
            return Ok(());
        }
        let split = self.push(Op::Split(0));
        self.plus(body, true)?;
        let end = self.here();
        self.patch(split, Op::Split(end));
        Ok(())
    }

    fn lazy_body(&mut self, body: &Node) -> Result<u32, PatternError> {
        // An empty iteration leads nowhere that was not tried, unless a group that is referred to
        // changes.
        if !may_be_empty(body) || self.back_references {
            let top = self.here();
            self.node(body)?;
            return Ok(top);
        }
        let (slot, mark) = self.marked_body(body)?;
        self.push(Op::LoopProgress(slot));
        Ok(mark)
    }

    fn plus(&mut self, body: &Node, greedy: bool) -> Result<(), PatternError> {
        if !greedy {
            // The first iteration may be empty.
            self.node(body)?;
            return self.star(body, false);
        }
        if may_be_empty(body) {
            let (slot, mark) = self.marked_body(body)?;
            self.push(Op::LoopAgain { slot, body: mark });
        } else {
            let top = self.here();
            self.node(body)?;
            self.push(Op::SplitBack(top));
        }
        Ok(())
    }

    fn optional(&mut self, body: &Node, greedy: bool) -> Result<(), PatternError> {
        let split = self.push(Op::Split(0));
        if greedy {
            self.node(body)?;
            let end = self.here();
            self.patch(split, Op::Split(end));
            return Ok(());
        }
        // The branch leads to the body.
        let jump = self.push(Op::Jump(0));
        let top = self.here();
        self.patch(split, Op::Split(top));
        self.node(body)?;
        let end = self.here();
        self.patch(jump, Op::Jump(end));
        Ok(())
    }

    fn counted(
        &mut self,
        body: &Node,
        min: u32,
        max: Option<u32>,
        greedy: bool,
    ) -> Result<(), PatternError> {
        let times = max.unwrap_or(min).max(1) as usize;
        let cost = operations(body, UNROLL_MAX).saturating_mul(times);
        if may_be_empty(body) || times > UNROLL_MAX || cost > UNROLL_MAX {
            return self.counter(body, min, max, !greedy);
        }
        for _ in 0..min {
            self.node(body)?;
        }
        let Some(max) = max else {
            let greed = if greedy { Greed::Greedy } else { Greed::Lazy };
            return self.repeat(body, 0, None, greed);
        };
        // The rest are nested options, which all end here.
        let mut splits = Vec::new();
        for _ in min..max {
            let split = self.push(Op::Split(0));
            let jump = (!greedy).then(|| self.push(Op::Jump(0)));
            splits.push((split, jump, self.here()));
            self.node(body)?;
        }
        let end = self.here();
        for (split, jump, top) in splits {
            match jump {
                None => self.patch(split, Op::Split(end)),
                Some(jump) => {
                    self.patch(split, Op::Split(top));
                    self.patch(jump, Op::Jump(end));
                }
            }
        }
        Ok(())
    }

    fn counter(
        &mut self,
        body: &Node,
        min: u32,
        max: Option<u32>,
        lazy: bool,
    ) -> Result<(), PatternError> {
        let slot = self.new_slot();
        let last = if max.is_none() { self.new_slot() } else { slot };
        let number = self.out.counters.len() as u32;
        self.out.counters.push(Counter {
            slot,
            last,
            min,
            max,
            lazy,
            body: 0,
            end: 0,
        });
        self.volatile += 1;
        self.push(Op::CountInit(number));
        let top = self.here();
        self.node(body)?;
        self.push(Op::CountLoop(number));
        self.volatile -= 1;
        let end = self.here();
        let counter = &mut self.out.counters[number as usize];
        (counter.body, counter.end) = (top, end);
        Ok(())
    }
}
