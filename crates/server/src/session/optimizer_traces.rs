//! The optimizer traces that a session remembers, for `information_schema.OPTIMIZER_TRACE`. Source:
//! MySQL manual, "Tracing the Optimizer".

use std::collections::VecDeque;

/// The trace of one statement.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Trace {
    pub query: String,
    /// A JSON document, or its beginning.
    pub text: String,
    /// The bytes that were left out.
    pub missing: u64,
    /// The account may not see what the statement reads. `query` and `text` are empty.
    pub insufficient_privileges: bool,
}

/// The variables that say which traces are remembered.
#[derive(Debug, Clone, Copy)]
pub struct TraceLimits {
    /// `optimizer_trace_offset`: the first trace, or if it is negative the number of newest ones.
    pub offset: i64,
    /// `optimizer_trace_limit`: the number of traces.
    pub limit: u64,
    /// `optimizer_trace_max_mem_size`: bytes of all of them.
    pub bytes: u64,
}

/// See the module's header.
#[derive(Debug, Default)]
pub struct Traces {
    list: VecDeque<Trace>,
    /// The number of traced statements since the offset or the limit was set.
    seen: u64,
}

impl Traces {
    /// Forgets all traces.
    pub fn clear(&mut self) {
        *self = Traces::default();
    }

    /// Whether the next trace is remembered.
    pub fn wants_next(&self, limits: TraceLimits) -> bool {
        match u64::try_from(limits.offset) {
            Ok(first) => (first..first.saturating_add(limits.limit)).contains(&self.seen),
            Err(_) => limits.limit > 0,
        }
    }

    /// Counts a statement that is not remembered.
    pub fn skip(&mut self) {
        self.seen += 1;
    }

    /// Remembers a trace, as much of it as memory allows.
    pub fn add(&mut self, mut trace: Trace, limits: TraceLimits) {
        self.seen += 1;
        if limits.offset < 0 {
            let most = usize::try_from(limits.offset.unsigned_abs()).unwrap_or(usize::MAX);
            while self.list.len() >= most {
                self.list.pop_front();
            }
        }
        let used = self.list.iter().map(|t| t.query.len() + t.text.len());
        let mut left = limits.bytes.saturating_sub(used.sum::<usize>() as u64);
        cut(&mut trace.query, left);
        left -= trace.query.len() as u64;
        trace.missing = cut(&mut trace.text, left);
        self.list.push_back(trace);
    }

    /// The traces that the table shows.
    pub fn shown(&self, limits: TraceLimits) -> impl Iterator<Item = &Trace> {
        let most = usize::try_from(limits.limit).unwrap_or(usize::MAX);
        self.list.iter().take(most)
    }
}

/// Cuts a text to at most `most` bytes; returns the number of bytes that it loses.
fn cut(text: &mut String, most: u64) -> u64 {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let end = text.floor_char_boundary(most);
    let lost = text.len() - end;
    text.truncate(end);
    lost as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(offset: i64, limit: u64) -> TraceLimits {
        TraceLimits {
            offset,
            limit,
            bytes: 100,
        }
    }

    /// The queries that are shown after five statements.
    fn shown(limits: TraceLimits) -> Vec<String> {
        let mut traces = Traces::default();
        for n in 0..5 {
            if !traces.wants_next(limits) {
                traces.skip();
                continue;
            }
            let trace = Trace {
                query: n.to_string(),
                ..Trace::default()
            };
            traces.add(trace, limits);
        }
        traces.shown(limits).map(|t| t.query.clone()).collect()
    }

    #[test]
    fn offset_and_limit_choose_traces() {
        assert_eq!(shown(limits(-1, 1)), ["4"]);
        assert_eq!(shown(limits(-3, 2)), ["2", "3"]);
        assert_eq!(shown(limits(-9, 9)), ["0", "1", "2", "3", "4"]);
        assert_eq!(shown(limits(0, 2)), ["0", "1"]);
        assert_eq!(shown(limits(3, 9)), ["3", "4"]);
        assert!(shown(limits(-1, 0)).is_empty());
        assert!(shown(limits(9, 1)).is_empty());
    }

    #[test]
    fn memory_cuts_the_text() {
        let mut traces = Traces::default();
        let trace = Trace {
            query: "q".repeat(10),
            text: "\u{e9}".repeat(60),
            ..Trace::default()
        };
        traces.add(trace, limits(-2, 2));
        let first = traces.shown(limits(-2, 2)).next().expect("a trace");
        assert_eq!((first.text.len(), first.missing), (90, 30));
        traces.add(
            Trace {
                text: "more".into(),
                ..Trace::default()
            },
            limits(-2, 2),
        );
        let second = traces.shown(limits(-2, 2)).nth(1).expect("a trace");
        assert_eq!((second.text.as_str(), second.missing), ("", 4));
    }
}
