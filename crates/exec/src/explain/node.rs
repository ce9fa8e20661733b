//! The operators of a plan as EXPLAIN shows them: a tree with estimates and measurements, printed
//! as FORMAT=TREE.

use std::fmt::Write;

use super::json::Json;

/// An operator.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// The operator in MySQL's words.
    pub operation: String,
    /// The line above the operator, of a subquery.
    pub heading: Option<String>,
    pub estimate: Option<Estimate>,
    pub measured: Option<Measured>,
    pub inputs: Vec<Node>,
    /// The subqueries of the expressions that the operator computes for the client.
    pub of_select_list: Vec<Node>,
    /// The other members of the operator's JSON object.
    pub fields: Vec<(&'static str, Json)>,
}

/// Estimates: costs in microseconds, and rows for each execution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Estimate {
    /// The cost before the first row, if it differs from that of the first row itself.
    pub startup: Option<f64>,
    pub cost: f64,
    pub rows: f64,
}

/// The measurements of EXPLAIN ANALYZE.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Measured {
    /// How often the operator was executed; 0: never.
    pub loops: u64,
    /// The mean number of rows of an execution.
    pub rows: f64,
    /// The mean times to the first row and to the end of an execution, in milliseconds.
    pub first_ms: f64,
    pub last_ms: f64,
}

impl Node {
    pub fn new(operation: impl Into<String>) -> Node {
        Node {
            operation: operation.into(),
            ..Node::default()
        }
    }

    /// An operator over one input.
    pub fn over(operation: impl Into<String>, input: Node) -> Node {
        Node {
            inputs: vec![input],
            ..Node::new(operation)
        }
    }

    /// Sets `access_type`, which says what kind of operator this is.
    pub fn kind(self, kind: &'static str) -> Node {
        self.field("access_type", Json::text(kind))
    }

    pub fn field(mut self, name: &'static str, value: Json) -> Node {
        self.fields.push((name, value));
        self
    }

    pub fn estimated(mut self, cost: f64, rows: f64) -> Node {
        self.estimate = Some(Estimate {
            startup: None,
            cost,
            rows,
        });
        self
    }

    /// As [`estimated`](Self::estimated), for an operator that reads all input before its first
    /// row.
    pub fn materialized(mut self, startup: f64, cost: f64, rows: f64) -> Node {
        self.estimate = Some(Estimate {
            startup: Some(startup),
            cost,
            rows,
        });
        self
    }

    pub fn measured(mut self, measured: Option<Measured>) -> Node {
        self.measured = measured;
        self
    }

    /// The estimated cost, and the estimated number of rows.
    pub fn cost(&self) -> f64 {
        self.estimate.map_or(0.0, |e| e.cost)
    }

    pub fn rows(&self) -> f64 {
        self.estimate.map_or(1.0, |e| e.rows)
    }

    /// The text of FORMAT=TREE.
    pub fn tree(&self) -> String {
        let mut out = String::new();
        self.write(0, &mut out);
        out
    }

    fn write(&self, depth: usize, out: &mut String) {
        let mut depth = depth;
        if let Some(heading) = &self.heading {
            let _ = writeln!(out, "{:1$}-> {heading}", "", 4 * depth);
            depth += 1;
        }
        let _ = write!(out, "{:1$}-> {2}", "", 4 * depth, self.operation);
        if let Some(Estimate {
            startup,
            cost,
            rows,
        }) = self.estimate
        {
            let startup = startup.map_or_else(String::new, |s| format!("{}..", readable(s)));
            let (cost, rows) = (readable(cost), readable(rows));
            let _ = write!(out, "  (cost={startup}{cost} rows={rows})");
        }
        if let Some(m) = self.measured {
            let gap = if self.estimate.is_some() { " " } else { "  " };
            let _ = match m.loops {
                0 => write!(out, "{gap}(never executed)"),
                loops => write!(
                    out,
                    "{gap}(actual time={}..{} rows={} loops={loops})",
                    readable(m.first_ms),
                    readable(m.last_ms),
                    readable(m.rows)
                ),
            };
        }
        out.push('\n');
        self.inputs.iter().for_each(|n| n.write(depth + 1, out));
        self.of_select_list.iter().for_each(|n| n.write(depth, out));
    }
}

/// A number with three significant digits, as MySQL prints estimates and times: small and large
/// numbers with an exponent that is a multiple of 3.
pub(super) fn readable(number: f64) -> String {
    if number <= 0.0 || !number.is_finite() {
        return "0".to_string();
    }
    if (0.001..999.5).contains(&number) {
        return significant(number);
    }
    if (999.5..1e6).contains(&number) {
        return format!("{number:.0}");
    }
    let exponent = 3 * (number.log10() / 3.0).floor() as i32;
    let mantissa = significant(number / 10f64.powi(exponent));
    match exponent < 0 {
        true => format!("{mantissa}e{exponent}"),
        false => format!("{mantissa}e+{exponent}"),
    }
}

/// At most three significant digits, without zeros at the end.
fn significant(number: f64) -> String {
    let digits = (2 - number.log10().floor() as i32).clamp(0, 9) as usize;
    let text = format!("{number:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::readable;

    #[test]
    fn numbers_have_three_significant_digits() {
        let shown = [
            (0.0, "0"),
            (0.25, "0.25"),
            (0.0206, "0.0206"),
            (1.0, "1"),
            (50.75, "50.8"),
            (406.0, "406"),
            (10551.4, "10551"),
            (450_000.0, "450000"),
            (1_234_567.0, "1.23e+6"),
            (0.000_903, "903e-6"),
            (0.000_000_04, "40e-9"),
        ];
        for (number, text) in shown {
            assert_eq!(readable(number), text);
        }
    }
}
