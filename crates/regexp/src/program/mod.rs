//! Compiled patterns: operations that the matcher runs.

mod emit;
pub(crate) mod start;

use crate::error::PatternError;
use crate::flags::Flags;
use crate::node::{Assertion, Dot};
use crate::parse;
use crate::unicode::SearchSet;
use crate::work::Work;

/// An operation. A *branch* is a state that the matcher goes back to when what follows fails.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Op {
    /// The bytes at `literals[start..start + len]`.
    Bytes {
        start: u32,
        len: u32,
    },
    /// ASCII letters without regard to case, in lower case at `literals[start..start + len]`.
    FoldAscii {
        start: u32,
        len: u32,
    },
    /// The folded characters `folded[start..start + len]`.
    FoldChars {
        start: u32,
        len: u32,
    },
    /// One character, folded.
    FoldChar(char),
    Set(u32),
    Dot(Dot),
    LineBreak,
    Grapheme,
    Assert(Assertion),
    BackReference {
        group: u32,
        fold: bool,
    },
    /// Fails.
    Fail,
    /// Continues, with an alternative at the target.
    Split(u32),
    /// Goes to the target, with a branch to the next operation.
    SplitBack(u32),
    Jump(u32),
    /// As many characters of a set as there are, with a branch for each fewer.
    SetStar {
        set: u32,
        possessive: bool,
    },
    DotStar {
        dot: Dot,
        possessive: bool,
    },
    CaptureStart(u32),
    CaptureEnd(u32),
    /// Notes where an iteration starts that may be empty.
    LoopMark(u32),
    /// [`Op::SplitBack`] if the iteration was not empty.
    LoopAgain {
        slot: u32,
        body: u32,
    },
    /// Fails if the iteration was empty.
    LoopProgress(u32),
    /// Starts a counted loop.
    CountInit(u32),
    /// Ends an iteration of a counted loop.
    CountLoop(u32),
    /// Notes the height of the stack.
    AtomicStart(u32),
    /// Removes the branches since.
    AtomicEnd(u32),
    LookStart(u32),
    /// Removes the branches since and returns to where the look-around started.
    LookEnd(u32),
    BehindStart(u32),
    /// Tries the next start of a look-behind.
    Behind(u32),
    BehindEnd(u32),
    /// A negative look-behind's body has matched: fails.
    NotBehindEnd(u32),
    Match,
}

/// A counted loop that is not unrolled.
#[derive(Debug)]
pub(crate) struct Counter {
    /// Slot of the count.
    pub slot: u32,
    /// Slot of the position at the last count beyond the minimum.
    pub last: u32,
    pub min: u32,
    pub max: Option<u32>,
    pub lazy: bool,
    pub body: u32,
    /// The operation after the loop.
    pub end: u32,
}

/// A look-behind.
#[derive(Debug)]
pub(crate) struct Behind {
    /// First of the [`BEHIND_DATA`] entries in the matcher's data.
    pub data: u32,
    /// Longest text that the body matches, in UTF-16 units.
    pub max: u32,
    /// Where to continue if it is negative and matches.
    pub otherwise: Option<u32>,
}

/// Entries of data that a look-around needs: stack height, position, limit of the text.
pub(crate) const LOOK_DATA: u32 = 3;
/// A look-behind also keeps the start that it tried last, and its distance in UTF-16 units.
pub(crate) const BEHIND_DATA: u32 = 5;

/// No memo for states at an operation.
pub(crate) const NO_MEMO: u32 = u32::MAX;

/// Where the states at an operation are memoised.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memo {
    /// Number of the bit map, or [`NO_MEMO`].
    pub map: u32,
    /// The slots of the enclosing loops, `loops[start..start + len]`: a state is memoised only once
    /// it is beyond the start of their iterations.
    pub loops: (u32, u32),
}

/// A compiled pattern.
#[derive(Debug)]
pub struct Regexp {
    pub(crate) ops: Vec<Op>,
    pub(crate) literals: Vec<u8>,
    pub(crate) folded: Vec<char>,
    pub(crate) sets: Vec<SearchSet>,
    pub(crate) counters: Vec<Counter>,
    pub(crate) behinds: Vec<Behind>,
    /// One for each operation.
    pub(crate) memos: Vec<Memo>,
    pub(crate) loops: Vec<u32>,
    pub(crate) memo_maps: u32,
    /// Every branch is memoised: a match takes linear time.
    pub(crate) is_linear: bool,
    /// Positions and counts that a branch restores.
    pub(crate) slots: u32,
    /// Stack heights and positions that stay.
    pub(crate) data: u32,
    /// Words of a saved state in ICU, by which the stack limit counts.
    pub(crate) frame_words: u32,
    pub(crate) start: start::Start,
    /// The minimum length of a match in UTF-16 units, which is also a minimum in bytes.
    pub(crate) min_units: u64,
    pub(crate) groups: u32,
    pub(crate) names: Vec<(String, u32)>,
}

impl Regexp {
    /// Compiles a pattern. Calls `progress` with the work done since its last call, and stops
    /// where it returns `false`.
    pub fn new(
        pattern: &str,
        flags: Flags,
        progress: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Self, PatternError> {
        let mut work = Work::new(progress);
        let parsed = parse::parse(pattern, flags, &mut work)?;
        emit::compile(parsed, &mut work)
    }

    /// How many groups it captures.
    pub fn groups(&self) -> u32 {
        self.groups
    }

    /// The number of a named group.
    pub(crate) fn group_named(&self, name: &str) -> Option<u32> {
        let found = self.names.iter().find(|(known, _)| known == name);
        found.map(|(_, group)| *group)
    }
}

/// The first of a group's three slots: start, end, start of the match in progress.
pub(crate) fn group_slot(group: u32) -> usize {
    (group as usize - 1) * 3
}
