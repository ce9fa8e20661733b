//! How long the texts are that a part of a pattern matches.

use crate::error::PatternError;
use crate::fold;
use crate::node::Node;
use crate::work::Work;

/// The maximum number of operations of an unrolled counted loop. The states of an unrolled loop can
/// be memoised.
pub(crate) const UNROLL_MAX: usize = 1000;
/// Longest match of a look-behind: 24 bits in ICU.
const BEHIND_MAX: u32 = 0x00ff_ffff;

/// Error 3695 where a look-behind's body has no upper bound.
pub(crate) fn check_look_behind(body: &Node) -> Result<(), PatternError> {
    match max_units(body) {
        Some(max) if max <= BEHIND_MAX => Ok(()),
        _ => Err(PatternError::LookBehindLimit),
    }
}

/// The most UTF-16 units that `node` matches; `None`: no bound. An upper bound, as ICU computes it.
pub(crate) fn max_units(node: &Node) -> Option<u32> {
    let within = |units: u64| u32::try_from(units).ok().filter(|u| *u < i32::MAX as u32);
    match node {
        Node::Empty | Node::Never | Node::Assert(_) => Some(0),
        Node::Char { code, fold } => Some(char_units(*code, *fold)),
        Node::Set(_) | Node::Dot(_) | Node::LineBreak => Some(2),
        Node::Grapheme | Node::BackReference { .. } => None,
        Node::Concat(nodes) => {
            let mut sum = 0;
            for node in nodes {
                sum += u64::from(max_units(node)?);
            }
            within(sum)
        }
        Node::Alternate(nodes) => {
            let mut max = 0;
            for node in nodes {
                max = max.max(max_units(node)?);
            }
            Some(max)
        }
        Node::Capture { body, .. } | Node::Atomic(body) => max_units(body),
        Node::Look { behind: true, .. } => Some(0),
        Node::Look { body, .. } => max_units(body),
        Node::Repeat { max: Some(0), .. } => Some(0),
        // ICU takes the jump back for a loop.
        Node::LazyOption(_) => None,
        Node::Repeat { body, max, .. } => {
            let body = max_units(body)?;
            within(u64::from(body) * u64::from((*max)?))
        }
    }
}

fn char_units(code: u32, is_folded: bool) -> u32 {
    let Some(c) = char::from_u32(code) else {
        return 1;
    };
    if !is_folded {
        return c.len_utf16() as u32;
    }
    match fold::full(c) {
        Some(folding) => folding.chars().map(|c| c.len_utf16() as u32).sum(),
        None => 2,
    }
}

/// The fewest UTF-16 units that `node` matches, or fewer.
pub(crate) fn min_units(node: &Node, work: &mut Work<'_>) -> Result<u64, PatternError> {
    work.spend(1)?;
    Ok(match node {
        Node::Char { code, fold: false } => u64::from(char_units(*code, false)),
        Node::Set(_) | Node::Dot(_) | Node::LineBreak | Node::Grapheme => 1,
        Node::Concat(nodes) => {
            // A character of the text folds to three at most.
            let folded = |n: &&Node| matches!(n, Node::Char { fold: true, .. });
            let folded = nodes.iter().filter(folded).count() as u64;
            let mut sum = folded.div_ceil(3);
            for node in nodes {
                sum = sum.saturating_add(min_units(node, work)?);
            }
            sum
        }
        Node::Alternate(nodes) => {
            let mut least = u64::MAX;
            for node in nodes {
                least = least.min(min_units(node, work)?);
            }
            least
        }
        Node::Capture { body, .. } | Node::Atomic(body) => min_units(body, work)?,
        Node::Repeat { body, min, .. } => min_units(body, work)?.saturating_mul(u64::from(*min)),
        _ => 0,
    })
}

/// Whether `node` may match the empty text, or may do so for all that is known.
pub(crate) fn may_be_empty(node: &Node) -> bool {
    match node {
        Node::Empty | Node::Assert(_) | Node::BackReference { .. } | Node::Look { .. } => true,
        Node::Never | Node::Char { .. } | Node::Set(_) => false,
        Node::Dot(_) | Node::LineBreak | Node::Grapheme => false,
        Node::Concat(nodes) => nodes.iter().all(may_be_empty),
        Node::Alternate(nodes) => nodes.iter().any(may_be_empty),
        Node::Capture { body, .. } | Node::Atomic(body) => may_be_empty(body),
        Node::LazyOption(_) => true,
        Node::Repeat { body, min, .. } => *min == 0 || may_be_empty(body),
    }
}

/// The most operations of a program: ICU's code positions are 24 bits wide.
pub(crate) const OPS_MAX: usize = 0x00ff_fff0;

/// About how many operations `node` compiles to, up to `limit`.
pub(crate) fn operations(node: &Node, limit: usize) -> usize {
    let many = |nodes: &[Node]| {
        let mut sum = nodes.len();
        for node in nodes {
            sum += operations(node, limit);
            if sum > limit {
                break;
            }
        }
        sum
    };
    match node {
        Node::Concat(nodes) | Node::Alternate(nodes) => many(nodes),
        Node::Capture { body, .. } | Node::Atomic(body) => operations(body, limit) + 2,
        Node::Look { body, .. } => operations(body, limit) + 6,
        Node::LazyOption(body) => operations(body, limit) + 2,
        Node::Repeat { body, min, max, .. } => {
            let times = max.unwrap_or(min + 1) as usize;
            let times = if times > UNROLL_MAX { 1 } else { times.max(1) };
            (operations(body, limit) + 2).saturating_mul(times)
        }
        _ => 1,
    }
}
