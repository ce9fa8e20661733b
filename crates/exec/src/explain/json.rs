//! JSON documents as EXPLAIN prints them: two spaces for each level, and a line for each member.

use std::fmt::Write;

use super::node::Node;

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Json {
    Text(String),
    Integer(u64),
    Number(f64),
    Bool(bool),
    List(Vec<Json>),
    /// In the order of printing.
    Object(Vec<(&'static str, Json)>),
}

impl Json {
    pub fn text(text: impl Into<String>) -> Json {
        Json::Text(text.into())
    }

    /// A list of texts.
    pub fn texts<S: Into<String>>(list: impl IntoIterator<Item = S>) -> Json {
        Json::List(list.into_iter().map(Json::text).collect())
    }

    /// The document's text.
    pub fn print(&self) -> String {
        let mut out = String::new();
        self.write(0, &mut out);
        out
    }

    fn write(&self, depth: usize, out: &mut String) {
        let indent = |out: &mut String, depth: usize| {
            let _ = write!(out, "\n{:1$}", "", 2 * depth);
        };
        match self {
            Json::Text(text) => quote(text, out),
            Json::Integer(n) => drop(write!(out, "{n}")),
            Json::Number(n) => drop(write!(out, "{n:?}")),
            Json::Bool(b) => drop(write!(out, "{b}")),
            Json::List(list) => {
                out.push('[');
                for (n, value) in list.iter().enumerate() {
                    out.push_str(if n > 0 { "," } else { "" });
                    indent(out, depth + 1);
                    value.write(depth + 1, out);
                }
                if !list.is_empty() {
                    indent(out, depth);
                }
                out.push(']');
            }
            Json::Object(members) => {
                out.push('{');
                for (n, (name, value)) in members.iter().enumerate() {
                    out.push_str(if n > 0 { "," } else { "" });
                    indent(out, depth + 1);
                    let _ = write!(out, "\"{name}\": ");
                    value.write(depth + 1, out);
                }
                if !members.is_empty() {
                    indent(out, depth);
                }
                out.push('}');
            }
        }
    }
}

fn quote(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => drop(write!(out, "\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// The document of version 2. `query` is the statement as the planner has rewritten it.
pub(super) fn document(node: &Node, query: Option<String>, query_type: &str) -> String {
    let mut members = Vec::new();
    if let Some(query) = query {
        members.push(("query", Json::Text(query)));
    }
    members.push(("query_plan", of_node(node)));
    members.push(("query_type", Json::text(query_type)));
    members.push(("json_schema_version", Json::text("2.0")));
    Json::Object(members).print()
}

/// An operator, with its members in MySQL's order: by length, then by name.
fn of_node(node: &Node) -> Json {
    let mut members = node.fields.clone();
    members.push(("operation", Json::text(node.operation.trim_end())));
    if let Some(heading) = &node.heading {
        members.push(("heading", Json::text(heading)));
    }
    let list = |nodes: &[Node]| Json::List(nodes.iter().map(of_node).collect());
    if !node.inputs.is_empty() {
        members.push(("inputs", list(&node.inputs)));
    }
    if !node.of_select_list.is_empty() {
        members.push(("inputs_from_select_list", list(&node.of_select_list)));
    }
    if let Some(estimate) = node.estimate {
        members.push(("estimated_rows", Json::Number(estimate.rows)));
        members.push(("estimated_total_cost", Json::Number(estimate.cost)));
        if let Some(startup) = estimate.startup {
            members.push(("estimated_first_row_cost", Json::Number(startup)));
        }
    }
    if let Some(m) = node.measured {
        members.push(("actual_loops", Json::Integer(m.loops)));
        if m.loops > 0 {
            members.push(("actual_rows", Json::Number(m.rows)));
            members.push(("actual_first_row_ms", Json::Number(m.first_ms)));
            members.push(("actual_last_row_ms", Json::Number(m.last_ms)));
        }
    }
    members.sort_by_key(|(name, _)| (name.len(), *name));
    Json::Object(members)
}
