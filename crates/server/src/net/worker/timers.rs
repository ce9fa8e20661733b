//! The deadlines of one worker's connections: a heap with at most one live entry for each.
//!
//! A connection's deadline mostly moves later, because each command extends the idle timeout.
//! Moving it later changes nothing here: the entry in the heap fires early, is found to be
//! premature, and is added again. Only an earlier deadline is pushed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

use super::Token;

#[derive(Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Instant, Token)>>,
}

impl Timers {
    /// Ensures that `token` fires at `at` or earlier. `armed` is the connection's record of its
    /// earliest entry.
    pub fn arm(&mut self, token: Token, at: Instant, armed: &mut Option<Instant>) {
        if armed.is_none_or(|t| at < t) {
            *armed = Some(at);
            self.heap.push(Reverse((at, token)));
        }
    }

    /// When the next entry is due.
    pub fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// Removes one entry that is due, and returns its time and connection. The connection may be
    /// closed, or may have an earlier entry since.
    pub fn pop_due(&mut self, now: Instant) -> Option<(Instant, Token)> {
        let &Reverse((at, token)) = self.heap.peek()?;
        if at > now {
            return None;
        }
        self.heap.pop();
        Some((at, token))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn later_deadlines_add_nothing_and_earlier_ones_fire_first() {
        let t0 = Instant::now();
        let s = |n| t0 + Duration::from_secs(n);
        let mut timers = Timers::default();
        let (mut a, mut b) = (None, None);
        let (ta, tb) = (Token::new(1, 0), Token::new(2, 0));
        timers.arm(ta, s(10), &mut a);
        timers.arm(ta, s(20), &mut a);
        timers.arm(tb, s(5), &mut b);
        timers.arm(tb, s(3), &mut b);
        assert_eq!((a, b, timers.next()), (Some(s(10)), Some(s(3)), Some(s(3))));
        let due: Vec<_> = std::iter::from_fn(|| timers.pop_due(s(10))).collect();
        assert_eq!(due, [(s(3), tb), (s(5), tb), (s(10), ta)]);
        assert_eq!(timers.next(), None);
    }
}
