//! Reads the text of EXPLAIN ANALYZE.
//!
//! ```text
//! -> Nested loop inner join  (cost=4.5 rows=10) (actual time=0.05..0.2 rows=90 loops=1)
//!     -> Table scan on t  (cost=1.25 rows=10) (actual time=0.02..0.04 rows=10 loops=1)
//! ```

use serde::Serialize;

use crate::LabError;

/// An estimate is wrong if it is this many times too large or too small.
const WRONG: f64 = 4.0;

/// One operation.
#[derive(Debug, Serialize, PartialEq)]
pub struct Node {
    /// The operations that it is inside of.
    pub depth: usize,
    pub operation: String,
    pub expected_cost: Option<f64>,
    /// Rows of each execution, as expected and as found. `None`: not estimated; not executed.
    pub expected_rows: Option<f64>,
    pub rows: Option<f64>,
    pub executions: f64,
    /// Milliseconds over all executions, with the operations inside and without them.
    pub total_ms: f64,
    pub own_ms: f64,
    /// How many times the estimate is too large or too small; 1 if that is not known.
    pub factor: f64,
    /// Whether the estimate is wrong here and right in all operations inside.
    pub origin: bool,
}

/// A statement with its measured plan.
#[derive(Debug, Serialize)]
pub struct Report {
    pub schema: &'static str,
    pub statement: Option<String>,
    pub version: Option<String>,
    pub total_ms: f64,
    /// In the order of the text: each before those inside of it.
    pub operations: Vec<Node>,
}

impl Report {
    pub fn new(
        text: &str,
        statement: Option<&str>,
        version: Option<&str>,
    ) -> Result<Report, LabError> {
        let mut operations = read(text);
        if operations.is_empty() {
            return Err(LabError::malformed(
                "this is no EXPLAIN ANALYZE: no line begins with '->' and has an actual time",
            ));
        }
        complete(&mut operations);
        let roots = operations.iter().filter(|node| node.depth == 0);
        Ok(Report {
            schema: "nfold-lab-plan/1",
            statement: statement.map(String::from),
            version: version.map(String::from),
            total_ms: roots.map(|node| node.total_ms).sum(),
            operations,
        })
    }

    /// The share of the whole time that an operation took itself.
    pub fn share(&self, node: &Node) -> f64 {
        match self.total_ms > 0.0 {
            true => (node.own_ms / self.total_ms).min(1.0),
            false => 0.0,
        }
    }
}

/// The operations of a text. Lines that begin no operation continue the text of the last one. None
/// if no operation was measured.
fn read(text: &str) -> Vec<Node> {
    // The client shows line ends of a value as \n.
    let text = match text.contains('\n') && !text.contains("\\n") {
        true => text.to_string(),
        false => text.replace("\\n", "\n"),
    };
    let mut starts: Vec<(usize, String)> = Vec::new();
    for line in text.lines() {
        let inside = line.trim_start_matches([' ', '|']);
        match inside.strip_prefix("-> ") {
            Some(operation) => starts.push((line.len() - inside.len(), operation.into())),
            None => {
                if let Some((_, last)) = starts.last_mut() {
                    last.push(' ');
                    last.push_str(line.trim());
                }
            }
        }
    }
    let mut above: Vec<usize> = Vec::new();
    let nodes = starts.into_iter().map(|(indent, line)| {
        above.retain(|outer| *outer < indent);
        above.push(indent);
        node(above.len() - 1, &line)
    });
    let nodes: Vec<(Node, bool)> = nodes.collect();
    let measured = nodes.iter().any(|(_, measured)| *measured);
    let nodes = nodes.into_iter().map(|(node, _)| node);
    nodes.filter(|_| measured).collect()
}

/// One operation, and whether the text says how it went.
fn node(depth: usize, line: &str) -> (Node, bool) {
    let line = line.trim_end_matches(['|', ' ']);
    let actual = group(line, "(actual time=");
    let cost = group(line, "(cost=");
    let never = line.contains("(never executed)");
    let ends = [
        "  (cost=",
        "  (actual time=",
        " (actual time=",
        " (never executed)",
    ];
    let end = ends.iter().filter_map(|end| line.find(end)).min();
    let number = |group: Option<&str>, key: &str| value(group?, key);
    let last_ms = actual.and_then(|a| {
        let times = a.split_whitespace().next()?;
        times.rsplit("..").next()?.parse::<f64>().ok()
    });
    let executions = number(actual, "loops=").unwrap_or(0.0);
    let node = Node {
        depth,
        operation: line[..end.unwrap_or(line.len())].trim().to_string(),
        expected_cost: cost.and_then(|c| {
            let costs = c.split_whitespace().next()?;
            costs.rsplit("..").next()?.parse().ok()
        }),
        expected_rows: number(cost, "rows="),
        rows: number(actual, "rows="),
        executions,
        total_ms: last_ms.unwrap_or(0.0) * executions,
        own_ms: 0.0,
        factor: 1.0,
        origin: false,
    };
    (node, never || actual.is_some())
}

/// The text behind `start`, up to the closing parenthesis.
fn group<'t>(line: &'t str, start: &str) -> Option<&'t str> {
    let at = line.rfind(start)? + start.len();
    let rest = line.get(at..)?;
    rest.get(..rest.find(')')?)
}

/// The number behind a key.
fn value(group: &str, key: &str) -> Option<f64> {
    let mut words = group.split_whitespace();
    words.find_map(|word| word.strip_prefix(key)?.parse().ok())
}

/// Computes what follows from the measured numbers.
fn complete(nodes: &mut [Node]) {
    // The time of each operation; of one without figures, such as a filter within a lookup, the
    // time of those below it.
    let mut times = vec![0.0; nodes.len()];
    for at in (0..nodes.len()).rev() {
        let depth = nodes[at].depth;
        let inside = nodes[at + 1..].iter().take_while(|n| n.depth > depth);
        let below = inside.clone().zip(&times[at + 1..]);
        let below = below.filter(|(n, _)| n.depth == depth + 1);
        let inner: f64 = below.map(|(_, time)| time).sum();
        times[at] = match nodes[at].executions > 0.0 {
            true => nodes[at].total_ms,
            false => inner,
        };
        let wrong_inside = inside.clone().any(|n| factor_of(n) >= WRONG);
        let node = &mut nodes[at];
        node.own_ms = (node.total_ms - inner).max(0.0);
        node.factor = factor_of(node);
        node.origin = node.factor >= WRONG && !wrong_inside;
    }
}

/// How many times an estimate is too large or too small. Less than one row counts as one.
fn factor_of(node: &Node) -> f64 {
    match (node.expected_rows, node.rows) {
        (Some(expected), Some(rows)) if node.executions > 0.0 => {
            let (expected, rows) = (expected.max(1.0), rows.max(1.0));
            (expected / rows).max(rows / expected)
        }
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "-> Aggregate: count(0)  (cost=9 rows=1) (actual time=12.5..12.5 rows=1 loops=1)
    -> Nested loop inner join  (cost=8 rows=20) (actual time=0.1..12 rows=900 loops=1)
        -> Filter: (t.s like '-> (x)%')  (cost=1.5 rows=10) (actual time=0.05..2 rows=300 loops=1)
            -> Table scan on t  (cost=1.5 rows=1e+3) (actual time=0.04..1 rows=1000 loops=1)
        -> Index lookup on u using k (k = t.id)  (cost=0.5 rows=2) (actual time=0.01..0.02 rows=3 loops=300)
    -> Table scan on v  (cost=0.5 rows=2) (never executed)
";

    #[test]
    fn times_and_wrong_estimates_are_found() {
        let report = Report::new(TEXT, Some("SELECT 1"), None).expect("a report");
        let shown: Vec<(usize, f64, f64, bool)> = report
            .operations
            .iter()
            .map(|n| (n.depth, n.total_ms, n.own_ms, n.origin))
            .collect();
        let expected = [
            (0, 12.5, 0.5, false),
            (1, 12.0, 4.0, false),
            (2, 2.0, 1.0, true),
            (3, 1.0, 1.0, false),
            (2, 6.0, 6.0, false),
            (1, 0.0, 0.0, false),
        ];
        assert_eq!(shown, expected);
        let filter = &report.operations[2];
        assert_eq!(filter.operation, "Filter: (t.s like '-> (x)%')");
        assert_eq!((filter.expected_cost, filter.factor), (Some(1.5), 30.0));
        assert_eq!(report.operations[5].rows, None);
        assert_eq!(report.total_ms, 12.5);
    }

    #[test]
    fn time_below_an_operation_without_figures_counts_once() {
        let text = "-> Nested loop  (cost=8 rows=20) (actual time=0.1..12 rows=900 loops=1)
    -> Filter: (t.s = 'x')  (cost=1.5 rows=10)
        -> Index lookup on t  (cost=1.5 rows=1) (actual time=0.01..0.02 rows=1 loops=500)
";
        let report = Report::new(text, None, None).expect("a report");
        let own: Vec<f64> = report.operations.iter().map(|n| n.own_ms).collect();
        assert_eq!(own, [2.0, 0.0, 10.0]);
    }

    #[test]
    fn what_the_client_prints_is_read() {
        let printed = TEXT.trim_end().replace('\n', "\\n");
        let report = Report::new(&format!("EXPLAIN\n{printed}\n"), None, None).expect("a report");
        assert_eq!(report.operations.len(), 6);
        let boxed = format!("| {} |", TEXT.trim_end());
        let report = Report::new(&boxed, None, None).expect("a report");
        assert_eq!(report.operations.len(), 6);
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "-> Table scan on t  (cost=1 rows=2)",
            "-> ",
            "->",
            "(actual time=",
        ] {
            assert!(Report::new(text, None, None).is_err(), "{text}");
        }
    }
}
